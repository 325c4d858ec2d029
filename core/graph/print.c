/* Text form, written. text.h says what it looks like; parse.c reads it. */
#include "core/graph/internal.h"

#include <math.h>
#include <string.h>

#define MAX_SHOWN_BYTES 128u

typedef struct printer {
    const ent_module *module;
    ent_text text;
} printer;

static void add_value_name(printer *p, uint32_t value) {
    if (value == ENT_ID_NONE) {
        ent_text_add(&p->text, "_");
        return;
    }
    ent_text_add(&p->text, "%%");
    ent_text_add_name(&p->text, p->module->values.items[value].name);
}

static void add_type(printer *p, uint32_t dtype, uint32_t rank, const ent_dim *dims) {
    ent_text_add(&p->text, "%s", ent_dtype_name((ent_dtype)dtype));
    if (rank == ENT_RANK_UNKNOWN) return;
    ent_text_add(&p->text, "[");
    for (uint32_t i = 0; i < rank; i++) {
        if (i) ent_text_add(&p->text, ",");
        ent_module_print_dim(p->module, &p->text, dims[i]);
    }
    ent_text_add(&p->text, "]");
}

static void add_typed_value(printer *p, uint32_t value) {
    add_value_name(p, value);
    if (value == ENT_ID_NONE) return;
    const ent_value *v = &p->module->values.items[value];
    if (v->dtype == ENT_DTYPE_NONE && v->rank == ENT_RANK_UNKNOWN) return;
    ent_text_add(&p->text, ": ");
    add_type(p, v->dtype, v->rank, v->dims);
}

static void add_values(printer *p, const uint32_t *values, uint32_t count, bool typed) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) ent_text_add(&p->text, ", ");
        if (typed)
            add_typed_value(p, values[i]);
        else
            add_value_name(p, values[i]);
    }
}

/* ---- tensors ---- */

static void add_element(printer *p, const ent_tensor *tensor, uint64_t index) {
    if (ent_dtype_is_float(tensor->dtype))
        ent_text_add_number(&p->text, ent_element_get_f64(tensor->data, tensor->dtype, index),
                            tensor->dtype != ENT_DTYPE_F64);
    else if (tensor->dtype == ENT_DTYPE_U64)
        ent_text_add(&p->text, "%llu",
                     (unsigned long long)ent_element_get_i64(tensor->data, tensor->dtype, index));
    else
        ent_text_add(&p->text, "%lld", (long long)ent_element_get_i64(tensor->data, tensor->dtype, index));
}

static bool is_fill(const ent_tensor *tensor, uint64_t size) {
    uint64_t width = ent_dtype_bits(tensor->dtype) / 8;
    return size > width && memcmp(tensor->data, (const char *)tensor->data + width, size - width) == 0;
}

static void add_hex(printer *p, const uint8_t *data, uint64_t size) {
    ent_text_add(&p->text, " bytes \"");
    for (uint64_t i = 0; i < size; i++) ent_text_add(&p->text, "%02x", data[i]);
    ent_text_add(&p->text, "\"");
}

/* Short contents in full, long ones as a fill, the recipe they came from, or a hash. */
static void add_tensor(printer *p, const ent_tensor *tensor, const ent_hash128 *hash, const char *recipe) {
    uint64_t size = 0;
    add_type(p, tensor->dtype, tensor->rank, tensor->dims);
    bool sized =
        ent_tensor_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &size) && size == tensor->size_bytes;
    bool numeric = ent_element_is_numeric(tensor->dtype);
    if (recipe) {
        ent_text_add(&p->text, " %s", recipe);
    } else if (sized && numeric && size > MAX_SHOWN_BYTES && is_fill(tensor, size)) {
        ent_text_add(&p->text, " fill ");
        add_element(p, tensor, 0);
    } else if (sized && size <= MAX_SHOWN_BYTES && !numeric) {
        add_hex(p, tensor->data, size);
    } else if (sized && size <= MAX_SHOWN_BYTES) {
        ent_text_add(&p->text, " {");
        for (uint64_t i = 0; i < size / (ent_dtype_bits(tensor->dtype) / 8); i++) {
            if (i) ent_text_add(&p->text, ", ");
            add_element(p, tensor, i);
        }
        ent_text_add(&p->text, "}");
    } else {
        ent_hash128 own = hash ? *hash : ent_hash_bytes(tensor->data, tensor->size_bytes);
        ent_text_add(&p->text, " hash %016llx%016llx", (unsigned long long)own.high,
                     (unsigned long long)own.low);
    }
}

/* ---- attributes ---- */

/* Floats of models are 32-bit; a number that is none carries a d. */
static void add_double(printer *p, double value) {
    bool single = !(fabs(value) <= 3.4028234663852886e38) || (double)(float)value == value;
    size_t start = p->text.size;
    ent_text_add_number(&p->text, value, single);
    bool marked = false;
    for (size_t i = start; i < p->text.size; i++) marked |= strchr(".ein", p->text.data[i]) != NULL;
    if (!marked) ent_text_add(&p->text, ".0");
    if (!single) ent_text_add(&p->text, "d");
}

static void add_list(printer *p, const ent_attr *attr) {
    if (attr->type == ENT_ATTR_FLOATS && attr->count == 0) ent_text_add(&p->text, "floats ");
    ent_text_add(&p->text, "[");
    for (uint32_t i = 0; i < attr->count; i++) {
        if (i) ent_text_add(&p->text, ", ");
        if (attr->type == ENT_ATTR_INTS)
            ent_text_add(&p->text, "%lld", (long long)attr->ints[i]);
        else
            add_double(p, attr->floats[i]);
    }
    ent_text_add(&p->text, "]");
}

static void add_attr(printer *p, const ent_attr *attr) {
    ent_text_add_name(&p->text, ent_arena_strndup(p->text.arena, attr->name.data, attr->name.size));
    ent_text_add(&p->text, " = ");
    switch (attr->type) {
    case ENT_ATTR_INT:
        ent_text_add(&p->text, "%lld", (long long)attr->i);
        break;
    case ENT_ATTR_FLOAT:
        add_double(p, attr->f);
        break;
    case ENT_ATTR_STRING:
        ent_text_add_quoted(&p->text, attr->s.data, attr->s.size);
        break;
    case ENT_ATTR_INTS:
    case ENT_ATTR_FLOATS:
        add_list(p, attr);
        break;
    case ENT_ATTR_TENSOR:
        ent_text_add(&p->text, "tensor ");
        add_tensor(p, attr->tensor, NULL, NULL);
        break;
    case ENT_ATTR_GRAPH:
        ent_text_add(&p->text, "graph @");
        if (attr->i >= 0 && attr->i < p->module->graphs.count)
            ent_text_add_name(&p->text, p->module->graphs.items[attr->i].name);
        break;
    default:
        ent_text_add(&p->text, "none");
        break;
    }
}

static void add_attrs(printer *p, ent_attrs attrs) {
    if (attrs.count == 0) return;
    ent_text_add(&p->text, " {");
    for (uint32_t i = 0; i < attrs.count; i++) {
        if (i) ent_text_add(&p->text, ", ");
        add_attr(p, &attrs.items[i]);
    }
    ent_text_add(&p->text, "}");
}

/* ---- graphs ---- */

static const char *op_name(uint32_t op) {
    const ent_op_info *info = ent_op_info_get(op);
    return info ? info->name : "unknown";
}

static void add_node(printer *p, const ent_node *node) {
    ent_text_add(&p->text, "    ");
    add_values(p, node->outputs, node->output_count, true);
    ent_text_add(&p->text, " = %s(", op_name(node->op));
    add_values(p, node->inputs, node->input_count, false);
    ent_text_add(&p->text, ")");
    add_attrs(p, node->attrs);
    for (uint32_t i = 0; i < node->origin_count; i++)
        ent_text_add(&p->text, "%s%u", i ? ", " : " origins [", node->origins[i]);
    if (node->origin_count) ent_text_add(&p->text, "]");
    ent_text_add(&p->text, " name ");
    ent_text_add_quoted(&p->text, node->name, strlen(node->name));
    ent_text_add(&p->text, "\n");
}

static bool is_used(const ent_module *module, uint32_t value) {
    uint32_t at = 0, node, input;
    return ent_value_next_use(module, value, &at, &node, &input) || ent_value_is_output(module, value);
}

static void add_graph(printer *p, uint32_t id, const uint32_t *constants, uint32_t constant_count) {
    const ent_graph *graph = &p->module->graphs.items[id];
    ent_text_add(&p->text, "  graph ");
    ent_text_add_name(&p->text, graph->name);
    if (graph->owner != ENT_ID_NONE) {
        const char *owner = p->module->nodes.items[graph->owner].name;
        ent_text_add(&p->text, " of ");
        ent_text_add_quoted(&p->text, owner, strlen(owner));
    }
    ent_text_add(&p->text, "(");
    add_values(p, graph->inputs.items, graph->inputs.count, true);
    ent_text_add(&p->text, ") -> (");
    add_values(p, graph->outputs.items, graph->outputs.count, false);
    ent_text_add(&p->text, ") {\n");
    for (uint32_t i = 0; i < constant_count; i++) {
        const ent_constant *constant = p->module->values.items[constants[i]].constant;
        ent_text_add(&p->text, "    ");
        add_value_name(p, constants[i]);
        ent_text_add(&p->text, " = constant ");
        add_tensor(p, &constant->tensor, &constant->hash, constant->recipe);
        ent_text_add(&p->text, "\n");
    }
    uint32_t at = 0, node;
    while (ent_graph_next(p->module, id, &at, &node)) add_node(p, &p->module->nodes.items[node]);
    ent_text_add(&p->text, "  }\n");
}

/* Constants of all graphs, grouped by graph: starts has graphs + 1 entries. */
static uint32_t *group_constants(const ent_module *module, ent_arena *arena, uint32_t *starts) {
    uint32_t total = 0;
    uint8_t *shown = ent_arena_alloc(arena, module->values.count),
            *in_overlay = ent_arena_alloc(arena, module->values.count);
    for (uint32_t i = 0; i < module->overlays.count; i++) {
        const ent_overlay *overlay = &module->overlays.items[i];
        for (uint32_t k = 0; k < overlay->input_count; k++)
            if (overlay->inputs[k] < module->values.count) in_overlay[overlay->inputs[k]] = 1;
    }
    for (uint32_t v = 0; v < module->values.count; v++) {
        const ent_value *value = &module->values.items[v];
        shown[v] = value->constant && value->producer == ENT_ID_NONE && (in_overlay[v] || is_used(module, v));
        if (shown[v]) starts[value->graph + 1]++;
        total += shown[v];
    }
    for (uint32_t g = 0; g < module->graphs.count; g++) starts[g + 1] += starts[g];
    uint32_t *fill = ent_arena_copy(arena, starts, (module->graphs.count + 1) * sizeof *starts);
    uint32_t *list = ent_arena_alloc(arena, total * sizeof *list);
    for (uint32_t v = 0; v < module->values.count; v++)
        if (shown[v]) list[fill[module->values.items[v].graph]++] = v;
    return list;
}

static void add_overlay(printer *p, const ent_overlay *overlay) {
    ent_text_add(&p->text, "  overlay (");
    add_values(p, overlay->outputs, overlay->output_count, false);
    ent_text_add(&p->text, ") = %s(", op_name(overlay->op));
    add_values(p, overlay->inputs, overlay->input_count, false);
    ent_text_add(&p->text, ")");
    add_attrs(p, overlay->attrs);
    ent_text_add(&p->text, " in ");
    ent_text_add_name(&p->text, p->module->graphs.items[overlay->graph].name);
    for (uint32_t i = 0; i < overlay->node_count; i++) {
        const char *name = p->module->nodes.items[overlay->nodes[i]].name;
        ent_text_add(&p->text, "%s", i ? ", " : " nodes [");
        ent_text_add_quoted(&p->text, name, strlen(name));
    }
    ent_text_add(&p->text, "%s] name ", overlay->node_count ? "" : " nodes [");
    ent_text_add_quoted(&p->text, overlay->name, strlen(overlay->name));
    ent_text_add(&p->text, "\n");
}

static void add_symbols(printer *p) {
    for (uint32_t i = 0; i < p->module->symbols.count; i++) {
        const ent_symbol *symbol = &p->module->symbols.items[i];
        ent_text_add(&p->text, "  symbol ");
        ent_text_add_name(&p->text, symbol->name);
        ent_text_add(&p->text, " min %lld", (long long)symbol->min);
        if (symbol->max != INT64_MAX) ent_text_add(&p->text, " max %lld", (long long)symbol->max);
        ent_text_add(&p->text, "\n");
    }
}

static void add_strings(printer *p, const char *keyword, const char *const *items, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        ent_text_add(&p->text, "  %s ", keyword);
        ent_text_add_quoted(&p->text, items[i], strlen(items[i]));
        ent_text_add(&p->text, "\n");
    }
}

const char *ent_module_print(const ent_module *module, ent_arena *arena) {
    printer p = {.module = module};
    ent_text_init(&p.text, arena);
    uint32_t *starts = ent_arena_alloc(arena, ((size_t)module->graphs.count + 1) * sizeof *starts);
    uint32_t *constants = group_constants(module, arena, starts);
    ent_text_add(&p.text, "module ");
    ent_text_add_quoted(&p.text, module->name, strlen(module->name));
    ent_text_add(&p.text, " {\n%s", module->frozen ? "  frozen\n" : "");
    add_symbols(&p);
    add_strings(&p, "model_node", module->model_nodes.items, module->model_nodes.count);
    add_strings(&p, "note", module->notes.items, module->notes.count);
    for (uint32_t g = 0; g < module->graphs.count; g++)
        if (!ent_graph_is_dead(module, g)) add_graph(&p, g, constants + starts[g], starts[g + 1] - starts[g]);
    for (uint32_t i = 0; i < module->overlays.count; i++) add_overlay(&p, &module->overlays.items[i]);
    ent_text_add(&p.text, "}\n");
    return p.text.data;
}
