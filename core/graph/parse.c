/* Text form, read: modules, graphs, nodes and overlays. Names may be used before they are defined, so that a
 * list out of order reads too and the verifier can say so; they are resolved at the end. */
#include "core/graph/parse.h"

#include <string.h>

typedef ENT_ARRAY(uint32_t) id_list;

static ent_status add_fixup(ent_parser *parser, ent_parse_fixups *fixups, uint32_t owner, uint32_t slot) {
    ent_parse_fixup fixup = {NULL, owner, slot, parser->scan.line};
    ENT_TRY(ent_parse_name(parser, &fixup.name));
    ent_array_push(parser->module->arena, fixups, fixup);
    return NULL;
}

static ent_status fixup_error(ent_parser *parser, const ent_parse_fixup *fixup, const char *what) {
    parser->scan.line = fixup->line;
    return ent_scan_error(&parser->scan, "%s '%s' is not defined", what, fixup->name);
}

/* A name that must be new. */
static ent_status check_new(ent_parser *parser, const ent_map *map, const char *name, const char *what) {
    if (name[0] && !ent_map_find(map, name, NULL)) return NULL;
    return ent_scan_error(&parser->scan, "%s '%s' is defined twice or has no name", what, name);
}

/* %name or %name: type; `_` gives NONE. */
static ent_status parse_definition(ent_parser *parser, uint32_t graph, uint32_t *out) {
    ent_scan *scan = &parser->scan;
    const char *name;
    uint32_t dtype = ENT_DTYPE_NONE, rank = ENT_RANK_UNKNOWN;
    ent_dim dims[ENT_MAX_RANK] = {0};
    *out = ENT_ID_NONE;
    if (ent_scan_accept(scan, "_")) return NULL;
    ENT_TRY(ent_scan_expect(scan, "%"));
    ENT_TRY(ent_parse_name(parser, &name));
    ENT_TRY(check_new(parser, parser->module->state->value_names, name, "value"));
    if (ent_scan_accept(scan, ":")) ENT_TRY(ent_parse_type(parser, &dtype, &rank, dims));
    *out = ent_module_add_value(parser->module, graph, name, dtype, rank, dims);
    return NULL;
}

static ent_status parse_constant(ent_parser *parser, uint32_t value) {
    ent_module *module = parser->module;
    ent_constant *constant = ent_arena_alloc(module->arena, sizeof *constant);
    ent_tensor *tensor = &constant->tensor;
    ENT_TRY(ent_parse_type(parser, &tensor->dtype, &tensor->rank, tensor->dims));
    ENT_TRY(ent_parse_tensor(parser, tensor, &constant->recipe));
    constant->hash = ent_hash_bytes(tensor->data, tensor->size_bytes);
    ent_value *v = ent_module_value(module, value);
    v->dtype = tensor->dtype;
    v->rank = tensor->rank;
    memcpy(v->dims, tensor->dims, sizeof v->dims);
    v->constant = constant;
    return NULL;
}

static ent_status parse_op(ent_parser *parser, uint32_t *out) {
    const char *word = ent_scan_word(&parser->scan);
    if (!word) return ent_scan_error(&parser->scan, "expected an operator");
    *out = ent_op_find(word);
    return *out == ENT_OP_NONE ? ent_scan_error(&parser->scan, "there is no operator '%s'", word) : NULL;
}

/* (%a, _, %b) of the next node. */
static ent_status parse_inputs(ent_parser *parser, uint32_t node, uint32_t *out_count) {
    ent_scan *scan = &parser->scan;
    *out_count = 0;
    ENT_TRY(ent_scan_expect(scan, "("));
    if (ent_scan_accept(scan, ")")) return NULL;
    do {
        if (!ent_scan_accept(scan, "_")) {
            ENT_TRY(ent_scan_expect(scan, "%"));
            ENT_TRY(add_fixup(parser, &parser->inputs, node, *out_count));
        }
        ++*out_count;
    } while (ent_scan_accept(scan, ","));
    return ent_scan_expect(scan, ")");
}

static ent_status parse_origins(ent_parser *parser, id_list *out) {
    ent_scan *scan = &parser->scan;
    if (!ent_scan_accept(scan, "origins")) return NULL;
    ENT_TRY(ent_scan_expect(scan, "["));
    do {
        int64_t index;
        ENT_TRY(ent_scan_int(scan, &index));
        if (index < 0 || index >= parser->module->model_nodes.count)
            return ent_scan_error(scan, "there is no model_node %lld", (long long)index);
        ent_array_push(parser->module->arena, out, (uint32_t)index);
    } while (ent_scan_accept(scan, ","));
    return ent_scan_expect(scan, "]");
}

static ent_status parse_node(ent_parser *parser, uint32_t graph, const id_list *outputs) {
    ent_module *module = parser->module;
    uint32_t node = module->nodes.count;
    ent_node_spec spec = {.outputs = outputs->items, .output_count = outputs->count};
    id_list origins = {0};
    ENT_TRY(parse_op(parser, &spec.op));
    ENT_TRY(parse_inputs(parser, node, &spec.input_count));
    ENT_TRY(ent_parse_attrs(parser, node, &spec.attrs));
    ENT_TRY(parse_origins(parser, &origins));
    if (ent_scan_accept(&parser->scan, "name")) {
        ent_str name;
        ENT_TRY(ent_scan_string(&parser->scan, &name));
        ENT_TRY(check_new(parser, module->state->node_names, name.data, "node"));
        spec.name = name.data;
    }
    uint32_t *inputs = ent_arena_alloc(module->arena, spec.input_count * sizeof *inputs);
    for (uint32_t i = 0; i < spec.input_count; i++) inputs[i] = ENT_ID_NONE;
    spec.inputs = inputs;
    spec.origins = origins.items;
    spec.origin_count = origins.count;
    ent_module_add_node(module, graph, &spec, ENT_ID_NONE);
    return NULL;
}

static ent_status parse_statement(ent_parser *parser, uint32_t graph) {
    id_list outputs = {0};
    do {
        uint32_t value;
        ENT_TRY(parse_definition(parser, graph, &value));
        ent_array_push(parser->module->arena, &outputs, value);
    } while (ent_scan_accept(&parser->scan, ","));
    ENT_TRY(ent_scan_expect(&parser->scan, "="));
    if (!ent_scan_accept(&parser->scan, "constant")) return parse_node(parser, graph, &outputs);
    if (outputs.count != 1 || outputs.items[0] == ENT_ID_NONE)
        return ent_scan_error(&parser->scan, "a constant defines one value");
    return parse_constant(parser, outputs.items[0]);
}

static ent_status parse_graph_head(ent_parser *parser, uint32_t graph) {
    ent_scan *scan = &parser->scan;
    ENT_TRY(ent_scan_expect(scan, "("));
    if (!ent_scan_accept(scan, ")")) {
        do {
            uint32_t value;
            ENT_TRY(parse_definition(parser, graph, &value));
            if (value == ENT_ID_NONE) return ent_scan_error(scan, "a graph input needs a name");
            ent_graph_add_input(parser->module, graph, value);
        } while (ent_scan_accept(scan, ","));
        ENT_TRY(ent_scan_expect(scan, ")"));
    }
    ENT_TRY(ent_scan_expect(scan, "->"));
    ENT_TRY(ent_scan_expect(scan, "("));
    if (ent_scan_accept(scan, ")")) return NULL;
    uint32_t count = 0;
    do {
        ENT_TRY(ent_scan_expect(scan, "%"));
        ENT_TRY(add_fixup(parser, &parser->outputs, graph, count++));
    } while (ent_scan_accept(scan, ","));
    return ent_scan_expect(scan, ")");
}

static ent_status parse_graph(ent_parser *parser, bool first) {
    ent_module *module = parser->module;
    ent_scan *scan = &parser->scan;
    const char *name;
    uint32_t graph = 0;
    ENT_TRY(ent_parse_name(parser, &name));
    if (first) {
        if (strcmp(name, "main") != 0) return ent_scan_error(scan, "the first graph is called main");
    } else {
        ENT_TRY(check_new(parser, module->state->graph_names, name, "graph"));
        graph = ent_module_add_graph(module, name, ENT_ID_NONE);
        ENT_TRY(ent_scan_expect(scan, "of"));
        ENT_TRY(add_fixup(parser, &parser->owners, graph, 0));
    }
    ENT_TRY(parse_graph_head(parser, graph));
    ENT_TRY(ent_scan_expect(scan, "{"));
    while (!ent_scan_accept(scan, "}")) ENT_TRY(parse_statement(parser, graph));
    return NULL;
}

/* ---- overlays ---- */

static ent_status parse_value_list(ent_parser *parser, id_list *out) {
    ent_scan *scan = &parser->scan;
    ENT_TRY(ent_scan_expect(scan, "("));
    if (ent_scan_accept(scan, ")")) return NULL;
    do {
        uint64_t value = ENT_ID_NONE;
        const char *name;
        if (!ent_scan_accept(scan, "_")) {
            ENT_TRY(ent_scan_expect(scan, "%"));
            ENT_TRY(ent_parse_name(parser, &name));
            if (!ent_map_find(parser->module->state->value_names, name, &value))
                return ent_scan_error(scan, "value '%s' is not defined", name);
        }
        ent_array_push(parser->module->arena, out, (uint32_t)value);
    } while (ent_scan_accept(scan, ","));
    return ent_scan_expect(scan, ")");
}

static ent_status parse_overlay_nodes(ent_parser *parser, id_list *out) {
    ent_scan *scan = &parser->scan;
    ENT_TRY(ent_scan_expect(scan, "nodes"));
    ENT_TRY(ent_scan_expect(scan, "["));
    if (ent_scan_accept(scan, "]")) return NULL;
    do {
        ent_str name;
        uint64_t node;
        ENT_TRY(ent_scan_string(scan, &name));
        if (!ent_map_find(parser->module->state->node_names, name.data, &node))
            return ent_scan_error(scan, "node '%s' is not defined", name.data);
        ent_array_push(parser->module->arena, out, (uint32_t)node);
    } while (ent_scan_accept(scan, ","));
    return ent_scan_expect(scan, "]");
}

static ent_status parse_overlay(ent_parser *parser) {
    ent_scan *scan = &parser->scan;
    ent_overlay overlay = {0};
    id_list inputs = {0}, outputs = {0}, nodes = {0};
    const char *graph_name;
    uint64_t graph;
    ent_str name;
    ENT_TRY(parse_value_list(parser, &outputs));
    ENT_TRY(ent_scan_expect(scan, "="));
    ENT_TRY(parse_op(parser, &overlay.op));
    ENT_TRY(parse_value_list(parser, &inputs));
    ENT_TRY(ent_parse_attrs(parser, ENT_ID_NONE, &overlay.attrs));
    ENT_TRY(ent_scan_expect(scan, "in"));
    ENT_TRY(ent_parse_name(parser, &graph_name));
    if (!ent_map_find(parser->module->state->graph_names, graph_name, &graph))
        return ent_scan_error(scan, "graph '%s' is not defined", graph_name);
    ENT_TRY(parse_overlay_nodes(parser, &nodes));
    ENT_TRY(ent_scan_expect(scan, "name"));
    ENT_TRY(ent_scan_string(scan, &name));
    overlay.graph = (uint32_t)graph;
    overlay.name = name.data;
    overlay.inputs = inputs.items;
    overlay.input_count = inputs.count;
    overlay.outputs = outputs.items;
    overlay.output_count = outputs.count;
    overlay.nodes = nodes.items;
    overlay.node_count = nodes.count;
    ent_array_push(parser->module->arena, &parser->module->overlays, overlay);
    return NULL;
}

/* ---- the module ---- */

static ent_status parse_symbol(ent_parser *parser) {
    ent_scan *scan = &parser->scan;
    const char *name;
    int64_t min = 0, max = INT64_MAX;
    ENT_TRY(ent_parse_name(parser, &name));
    ENT_TRY(check_new(parser, parser->module->state->symbol_names, name, "symbol"));
    if (ent_scan_accept(scan, "min")) ENT_TRY(ent_scan_int(scan, &min));
    if (ent_scan_accept(scan, "max")) ENT_TRY(ent_scan_int(scan, &max));
    if (min < 0 || max < min) return ent_scan_error(scan, "symbol '%s' needs 0 <= min <= max", name);
    ent_module_add_symbol(parser->module, name, min, max);
    return NULL;
}

static ent_status resolve_values(ent_parser *parser, const ent_parse_fixups *fixups, bool outputs) {
    ent_module *module = parser->module;
    for (uint32_t i = 0; i < fixups->count; i++) {
        const ent_parse_fixup *fixup = &fixups->items[i];
        uint64_t value;
        if (!ent_map_find(module->state->value_names, fixup->name, &value))
            return fixup_error(parser, fixup, "value");
        if (outputs)
            ent_graph_add_output(module, fixup->owner, (uint32_t)value);
        else
            ent_module_set_input(module, fixup->owner, fixup->slot, (uint32_t)value);
    }
    return NULL;
}

static ent_status resolve_graphs(ent_parser *parser) {
    ent_module *module = parser->module;
    for (uint32_t i = 0; i < parser->graphs.count; i++) {
        const ent_parse_fixup *fixup = &parser->graphs.items[i];
        uint64_t graph;
        if (fixup->owner == ENT_ID_NONE) continue;
        if (!ent_map_find(module->state->graph_names, fixup->name, &graph))
            return fixup_error(parser, fixup, "graph");
        ent_attr *attr = (ent_attr *)(uintptr_t)&module->nodes.items[fixup->owner].attrs.items[fixup->slot];
        attr->i = (int64_t)graph;
        module->graphs.items[graph].owner = fixup->owner;
    }
    for (uint32_t i = 0; i < parser->owners.count; i++) {
        const ent_parse_fixup *fixup = &parser->owners.items[i];
        uint64_t node;
        if (!ent_map_find(module->state->node_names, fixup->name, &node))
            return fixup_error(parser, fixup, "node");
        parser->scan.line = fixup->line;
        if (module->graphs.items[fixup->owner].owner != node)
            return ent_scan_error(&parser->scan, "no attribute of node '%s' names graph '%s'", fixup->name,
                                  module->graphs.items[fixup->owner].name);
    }
    return NULL;
}

static ent_status parse_item(ent_parser *parser, bool *has_graph) {
    ent_scan *scan = &parser->scan;
    ent_module *module = parser->module;
    ent_str text;
    if (ent_scan_accept(scan, "frozen")) {
        module->frozen = true;
        return NULL;
    }
    if (ent_scan_accept(scan, "symbol")) return parse_symbol(parser);
    if (ent_scan_accept(scan, "overlay")) return parse_overlay(parser);
    if (ent_scan_accept(scan, "graph")) {
        bool first = !*has_graph;
        *has_graph = true;
        return parse_graph(parser, first);
    }
    bool is_note = ent_scan_accept(scan, "note");
    if (!is_note) ENT_TRY(ent_scan_expect(scan, "model_node"));
    ENT_TRY(ent_scan_string(scan, &text));
    if (is_note)
        ent_array_push(module->arena, &module->notes, text.data);
    else
        ent_array_push(module->arena, &module->model_nodes, text.data);
    return NULL;
}

ent_status ent_module_parse(ent_arena *arena, const char *file, const char *text, ent_module **out) {
    ent_parser parser = {0};
    ent_str name;
    bool has_graph = false;
    ent_scan_init(&parser.scan, arena, file, text, strlen(text));
    ENT_TRY(ent_scan_expect(&parser.scan, "module"));
    ENT_TRY(ent_scan_string(&parser.scan, &name));
    parser.module = ent_module_create(arena, name.data);
    ENT_TRY(ent_scan_expect(&parser.scan, "{"));
    while (!ent_scan_accept(&parser.scan, "}")) ENT_TRY(parse_item(&parser, &has_graph));
    if (!ent_scan_done(&parser.scan)) return ent_scan_error(&parser.scan, "something follows the module");
    if (!has_graph) return ent_scan_error(&parser.scan, "the module has no graph");
    ENT_TRY(resolve_values(&parser, &parser.inputs, false));
    ENT_TRY(resolve_values(&parser, &parser.outputs, true));
    ENT_TRY(resolve_graphs(&parser));
    *out = parser.module;
    return NULL;
}
