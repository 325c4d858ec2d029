/* What every module must keep: one definition per value, uses after definitions and only from enclosing
 * graphs, operators as the table has them, sound constants. Ids are checked before anything is read through
 * them. */
#include "core/graph/internal.h"

#include <string.h>

typedef struct verifier {
    const ent_module *module;
    uint32_t *position; /* per node: place in its graph's order */
    uint8_t *depth;     /* per graph */
    uint8_t *is_input;  /* per value: a graph input */
} verifier;

static ent_status fail(const verifier *v, uint32_t node, const char *rule, const char *text) {
    return ent_status_make(v->module->arena, ENT_ERROR_MODEL, rule, ent_node_place(v->module, node), "%s",
                           text);
}

static ent_status fail_graph(const verifier *v, uint32_t graph, const char *rule, const char *text) {
    const char *place = ent_arena_format(v->module->arena, "%s: graph '%s'", v->module->name,
                                         v->module->graphs.items[graph].name);
    return ent_status_make(v->module->arena, ENT_ERROR_MODEL, rule, place, "%s", text);
}

#define FORMAT(v, ...) ent_arena_format((v)->module->arena, __VA_ARGS__)

/* ---- attributes against the table ---- */

static uint32_t type_named(const char *name, size_t size) {
    static const char *const names[] = {"none", "int",    "float",  "string",
                                        "ints", "floats", "tensor", "graph"};
    for (uint32_t i = 1; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && memcmp(names[i], name, size) == 0) return i;
    return ENT_ATTR_NONE;
}

/* The type that the table gives an attribute; NONE when it does not know it. */
static uint32_t table_type(const char *table, ent_str name) {
    while (*table) {
        const char *colon = strchr(table, ':');
        if (!colon) break;
        size_t type_size = strcspn(colon + 1, "= ");
        if ((size_t)(colon - table) == name.size && memcmp(table, name.data, name.size) == 0)
            return type_named(colon + 1, type_size);
        table = colon + strcspn(colon, " ");
        table += strspn(table, " ");
    }
    return ENT_ATTR_NONE;
}

static ent_status verify_attrs(const verifier *v, uint32_t node) {
    const ent_node *n = &v->module->nodes.items[node];
    const ent_op_info *info = ent_op_info_get(n->op);
    for (uint32_t i = 0; i < n->attrs.count; i++) {
        const ent_attr *attr = &n->attrs.items[i];
        const char *name = ent_arena_strndup(v->module->arena, attr->name.data, attr->name.size);
        uint32_t type = table_type(info->attributes, attr->name);
        if (type == ENT_ATTR_NONE)
            return fail(v, node, "attribute.unknown",
                        FORMAT(v, "%s has no attribute '%s'", info->name, name));
        if (type != attr->type)
            return fail(v, node, "attribute.type", FORMAT(v, "attribute '%s' has the wrong type", name));
        if (ent_attrs_find(n->attrs, name) != attr)
            return fail(v, node, "attribute.twice", FORMAT(v, "attribute '%s' is given twice", name));
        if (type != ENT_ATTR_GRAPH) continue;
        if (attr->i <= 0 || attr->i >= v->module->graphs.count ||
            v->module->graphs.items[attr->i].owner != node)
            return fail(v, node, "graph.owner",
                        FORMAT(v, "attribute '%s' must name a graph that only this node uses", name));
    }
    return NULL;
}

/* ---- graphs ---- */

static ent_status verify_nesting(const verifier *v, uint32_t graph) {
    uint32_t at = graph;
    for (uint32_t depth = 0; depth <= ENT_MAX_NESTING; depth++) {
        uint32_t owner = v->module->graphs.items[at].owner;
        if (owner == ENT_ID_NONE) {
            if (at != 0) return fail_graph(v, graph, "graph.owner", "no control node uses this graph");
            v->depth[graph] = (uint8_t)depth;
            return NULL;
        }
        if (owner >= v->module->nodes.count || at == 0)
            return fail_graph(v, graph, "graph.owner", "the owner is no node");
        at = v->module->nodes.items[owner].graph;
        if (at >= v->module->graphs.count)
            return fail_graph(v, graph, "graph.owner", "the owner is in no graph");
    }
    return fail_graph(v, graph, "graph.nesting",
                      FORMAT(v, "graphs are nested deeper than %u", ENT_MAX_NESTING));
}

/* Whether `value` may be read by the node at `position` of `graph`. NULL, or what is wrong. */
static const char *check_visible(const verifier *v, uint32_t value, uint32_t graph, uint32_t position) {
    const ent_module *module = v->module;
    if (value >= module->values.count) return "an input is no value of this module";
    const ent_value *val = &module->values.items[value];
    while (val->graph != graph && v->depth[graph] > 0) {
        uint32_t owner = module->graphs.items[graph].owner;
        position = v->position[owner];
        graph = module->nodes.items[owner].graph;
    }
    if (val->graph != graph)
        return FORMAT(v, "value '%s' belongs to a graph that does not enclose this one", val->name);
    if (val->producer == ENT_ID_NONE) {
        bool defined = val->constant || v->is_input[value];
        return defined ? NULL
                       : FORMAT(v, "value '%s' is neither an input, a constant nor computed", val->name);
    }
    if (val->producer >= module->nodes.count || module->nodes.items[val->producer].dead)
        return FORMAT(v, "value '%s' is computed by a removed node", val->name);
    if (v->position[val->producer] < position) return NULL;
    return FORMAT(v, "value '%s' is used before it is computed", val->name);
}

static ent_status verify_graph_lists(const verifier *v, uint32_t graph) {
    const ent_graph *g = &v->module->graphs.items[graph];
    for (uint32_t i = 0; i < g->inputs.count; i++) {
        uint32_t value = g->inputs.items[i];
        if (value >= v->module->values.count || v->module->values.items[value].graph != graph ||
            v->module->values.items[value].producer != ENT_ID_NONE)
            return fail_graph(v, graph, "graph.input",
                              FORMAT(v, "input %u is not a value of this graph that nobody computes", i));
        if (v->is_input[value])
            return fail_graph(v, graph, "graph.input", FORMAT(v, "input %u is listed twice", i));
        v->is_input[value] = 1;
    }
    return NULL;
}

static ent_status verify_outputs_of_graph(const verifier *v, uint32_t graph) {
    const ent_graph *g = &v->module->graphs.items[graph];
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        const char *wrong = check_visible(v, g->outputs.items[i], graph, UINT32_MAX);
        if (wrong) return fail_graph(v, graph, "graph.output", FORMAT(v, "output %u: %s", i, wrong));
    }
    return NULL;
}

/* ---- nodes ---- */

static ent_status verify_arity(const verifier *v, uint32_t node) {
    const ent_node *n = &v->module->nodes.items[node];
    const ent_op_info *info = ent_op_info_get(n->op);
    bool inputs_fit = (int64_t)n->input_count >= info->min_inputs &&
                      (info->max_inputs < 0 || (int64_t)n->input_count <= info->max_inputs);
    bool outputs_fit = (int64_t)n->output_count >= info->min_outputs &&
                       (info->max_outputs < 0 || (int64_t)n->output_count <= info->max_outputs);
    if (!inputs_fit)
        return fail(v, node, "node.arity",
                    FORMAT(v, "%u inputs where %s takes %d to %d (-1: any number)", n->input_count,
                           info->name, info->min_inputs, info->max_inputs));
    if (!outputs_fit)
        return fail(v, node, "node.arity",
                    FORMAT(v, "%u outputs where %s has %d to %d (-1: any number)", n->output_count,
                           info->name, info->min_outputs, info->max_outputs));
    for (int32_t i = 0; i < info->min_inputs; i++)
        if (n->inputs[i] == ENT_ID_NONE)
            return fail(v, node, "node.arity", FORMAT(v, "input %d is required", i));
    return NULL;
}

static ent_status verify_results(const verifier *v, uint32_t node) {
    const ent_node *n = &v->module->nodes.items[node];
    for (uint32_t i = 0; i < n->output_count; i++) {
        uint32_t value = n->outputs[i];
        if (value == ENT_ID_NONE) continue;
        if (value >= v->module->values.count)
            return fail(v, node, "node.output", FORMAT(v, "output %u is no value", i));
        const ent_value *val = &v->module->values.items[value];
        if (val->producer != node || val->producer_output != i || val->graph != n->graph || val->constant)
            return fail(v, node, "node.output", FORMAT(v, "value '%s' has another definition", val->name));
        if (v->module->frozen && (val->dtype == ENT_DTYPE_NONE || val->rank == ENT_RANK_UNKNOWN))
            return fail(v, node, "value.type",
                        FORMAT(v, "value '%s' has no type or shape in a frozen graph", val->name));
    }
    return NULL;
}

static ent_status verify_node(const verifier *v, uint32_t node) {
    const ent_node *n = &v->module->nodes.items[node];
    if (!ent_op_info_get(n->op) || !ent_op_info_get(n->op)->name)
        return fail(v, node, "node.operator", "the operator is unknown");
    ENT_TRY(verify_arity(v, node));
    ENT_TRY(verify_attrs(v, node));
    ENT_TRY(verify_results(v, node));
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == ENT_ID_NONE) continue;
        const char *wrong = check_visible(v, n->inputs[i], n->graph, v->position[node]);
        if (wrong) return fail(v, node, "node.input", FORMAT(v, "input %u: %s", i, wrong));
    }
    for (uint32_t i = 0; i < n->origin_count; i++)
        if (n->origins[i] >= v->module->model_nodes.count || (i && n->origins[i] <= n->origins[i - 1]))
            return fail(v, node, "node.origins", "the origins are not ascending indices of model nodes");
    return NULL;
}

/* ---- values and overlays ---- */

static ent_status verify_value(const verifier *v, uint32_t value) {
    const ent_value *val = &v->module->values.items[value];
    const char *wrong = NULL;
    if (val->graph >= v->module->graphs.count)
        wrong = "it is in no graph";
    else if (val->dtype >= ENT_DTYPE_COUNT)
        wrong = "its dtype is unknown";
    else if (val->rank != ENT_RANK_UNKNOWN && val->rank > ENT_MAX_RANK)
        wrong = "its rank is too large";
    for (uint32_t i = 0; !wrong && val->rank != ENT_RANK_UNKNOWN && i < val->rank; i++)
        if (val->dims[i] < 0 && (uint64_t)~val->dims[i] >= v->module->exprs.count)
            wrong = "a size is no expression of this module";
    if (!wrong && val->constant) {
        const ent_tensor *tensor = &val->constant->tensor;
        uint64_t size;
        if (tensor->dtype != val->dtype || tensor->rank != val->rank)
            wrong = "its constant has another type or rank";
        for (uint32_t i = 0; !wrong && i < val->rank; i++)
            if (tensor->dims[i] != val->dims[i]) wrong = "its constant has another shape";
        if (!wrong && val->dtype != ENT_DTYPE_STRING &&
            (!ent_tensor_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &size) ||
             size != tensor->size_bytes))
            wrong = "its constant does not have the bytes that its shape needs";
    }
    if (!wrong) return NULL;
    return ent_status_make(v->module->arena, ENT_ERROR_MODEL, "value.sound", v->module->name,
                           "value '%s': %s", val->name, wrong);
}

static ent_status verify_overlay(const verifier *v, const ent_overlay *overlay) {
    const char *wrong = overlay->graph >= v->module->graphs.count ? "it is in no graph" : NULL;
    if (!ent_op_info_get(overlay->op)) wrong = "its operator is unknown";
    for (uint32_t i = 0; !wrong && i < overlay->node_count; i++) {
        uint32_t node = overlay->nodes[i];
        if (node >= v->module->nodes.count || v->module->nodes.items[node].dead ||
            v->module->nodes.items[node].graph != overlay->graph)
            wrong = "a member is no live node of its graph";
        else if (i && v->position[overlay->nodes[i - 1]] >= v->position[node])
            wrong = "its members are not in graph order";
    }
    for (uint32_t i = 0; !wrong && i < overlay->input_count; i++)
        if (overlay->inputs[i] != ENT_ID_NONE && overlay->inputs[i] >= v->module->values.count)
            wrong = "an input is no value";
    for (uint32_t i = 0; !wrong && i < overlay->output_count; i++)
        if (overlay->outputs[i] != ENT_ID_NONE && overlay->outputs[i] >= v->module->values.count)
            wrong = "an output is no value";
    if (!wrong) return NULL;
    return ent_status_make(v->module->arena, ENT_ERROR_INTERNAL, "overlay.sound", v->module->name,
                           "overlay '%s': %s", overlay->name, wrong);
}

static void number_nodes(const verifier *v) {
    for (uint32_t g = 0; g < v->module->graphs.count; g++) {
        uint32_t at = 0, node, position = 0;
        while (ent_graph_next(v->module, g, &at, &node)) v->position[node] = ++position;
    }
}

ent_status ent_module_verify(const ent_module *module, ent_arena *arena) {
    verifier v = {module, ent_arena_alloc(arena, module->nodes.count * sizeof(uint32_t)),
                  ent_arena_alloc(arena, module->graphs.count), ent_arena_alloc(arena, module->values.count)};
    number_nodes(&v);
    for (uint32_t i = 0; i < module->values.count; i++) ENT_TRY(verify_value(&v, i));
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        if (ent_graph_is_dead(module, g)) continue;
        ENT_TRY(verify_nesting(&v, g));
        ENT_TRY(verify_graph_lists(&v, g));
    }
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, node;
        if (ent_graph_is_dead(module, g)) continue;
        while (ent_graph_next(module, g, &at, &node)) ENT_TRY(verify_node(&v, node));
        ENT_TRY(verify_outputs_of_graph(&v, g));
    }
    for (uint32_t i = 0; i < module->overlays.count; i++)
        ENT_TRY(verify_overlay(&v, &module->overlays.items[i]));
    return NULL;
}
