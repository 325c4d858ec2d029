/* FlexAttention written out: its bodies, which change scores and weights, are copied between the products.
 * Source of the steps and their types: the schema of ai.onnx.preview. */
#include "core/rewrite/internal.h"

#include <math.h>
#include <string.h>

typedef struct flex {
    ent_rewrite_context *context;
    uint32_t node, wide; /* the type of scores and weights */
} flex;

static ent_attrs with(const flex *f, ent_attr attr) {
    return ent_attrs_make(f->context->module, &attr, 1);
}

static ent_status add(const flex *f, uint32_t op, ent_attrs attrs, uint32_t a, uint32_t b, uint32_t *out) {
    uint32_t inputs[2] = {a, b};
    return ent_rewrite_add(f->context, op, attrs, inputs, b == ENT_ID_NONE ? 1 : 2, f->node, &f->node, 1,
                           out);
}

static uint32_t dtype_of(const flex *f, uint32_t value) {
    return ent_module_value(f->context->module, value)->dtype;
}

static ent_status cast(const flex *f, uint32_t dtype, uint32_t *value) {
    if (dtype_of(f, *value) == dtype) return NULL;
    return add(f, ENT_OP_Cast, with(f, ent_attr_int("to", dtype)), *value, ENT_ID_NONE, value);
}

static ent_status scale(const flex *f, double factor, uint32_t *value) {
    uint32_t graph = ent_module_node(f->context->module, f->node)->graph;
    uint32_t number = ent_module_add_scalar(f->context->module, graph, dtype_of(f, *value), factor);
    return add(f, ENT_OP_Mul, (ent_attrs){0}, *value, number, value);
}

/* Each head of keys or values serves a run of query heads. */
static ent_status repeat_heads(const flex *f, int64_t heads, uint32_t *value) {
    ent_module *module = f->context->module;
    const ent_value v = *ent_module_value(module, *value);
    uint32_t graph = ent_module_node(module, f->node)->graph;
    int64_t axis = 2, wide[5] = {v.dims[0], v.dims[1], heads / v.dims[1], v.dims[2], v.dims[3]},
            whole[4] = {v.dims[0], heads, v.dims[2], v.dims[3]};
    ent_attr zeros = ent_attr_int("allowzero", 1);
    if (v.dims[1] == heads) return NULL;
    ENT_TRY(add(f, ENT_OP_Unsqueeze, (ent_attrs){0}, *value, ent_module_add_i64s(module, graph, &axis, 1),
                value));
    ENT_TRY(
        add(f, ENT_OP_Expand, (ent_attrs){0}, *value, ent_module_add_i64s(module, graph, wide, 5), value));
    return add(f, ENT_OP_Reshape, with(f, zeros), *value, ent_module_add_i64s(module, graph, whole, 4),
               value);
}

static ent_status apply_body(const flex *f, const char *name, uint32_t *value) {
    const ent_attr *attr = ent_attrs_find(ent_module_node(f->context->module, f->node)->attrs, name);
    if (!attr || attr->type != ENT_ATTR_GRAPH) return NULL;
    const ent_graph *body = ent_module_graph(f->context->module, (uint32_t)attr->i);
    if (body->inputs.count != 1 || body->outputs.count != 1)
        return ent_status_make(f->context->module->arena, ENT_ERROR_MODEL, "control.inputs",
                               ent_module_node(f->context->module, f->node)->name,
                               "%s of FlexAttention must have one input and one output", name);
    uint32_t before = *value, rank = ent_module_value(f->context->module, before)->rank;
    ENT_TRY(ent_rewrite_copy_body(f->context, f->node, (uint32_t)attr->i, &before, value));
    const ent_value *after = ent_module_value(f->context->module, *value);
    if (after->dtype == f->wide && (after->rank == rank || after->rank == ENT_RANK_UNKNOWN)) return NULL;
    return ent_status_make(f->context->module->arena, ENT_ERROR_MODEL, "control.outputs",
                           ent_module_node(f->context->module, f->node)->name,
                           "%s of FlexAttention gives another type or rank than it gets", name);
}

static bool is_float(uint32_t dtype) {
    return dtype == ENT_DTYPE_F32 || dtype == ENT_DTYPE_F64 || dtype == ENT_DTYPE_F16 ||
           dtype == ENT_DTYPE_BF16;
}

static bool is_ready(const flex *f) {
    const ent_node *node = ent_module_node(f->context->module, f->node);
    for (uint32_t i = 0; i < 3; i++) {
        const ent_value *value = ent_module_value(f->context->module, node->inputs[i]);
        if (!ent_value_static(f->context->module, node->inputs[i]) || value->rank != 4) return false;
        if (!is_float(value->dtype)) return false;
    }
    return ent_module_value(f->context->module, node->inputs[1])->dims[1] > 0;
}

static ent_status scores(const flex *f, const ent_node *node, uint32_t *out) {
    const ent_value query = *ent_module_value(f->context->module, node->inputs[0]);
    int64_t order[4] = {0, 1, 3, 2};
    uint32_t q = node->inputs[0], k = node->inputs[1];
    double whole = ent_attrs_float(node->attrs, "scale", 1 / sqrt((double)query.dims[3]));
    ENT_TRY(repeat_heads(f, query.dims[1], &k));
    if (whole >= 0) { /* both sides get the root, so that neither leaves the range of a narrow type */
        ENT_TRY(scale(f, sqrt(whole), &q));
        ENT_TRY(scale(f, sqrt(whole), &k));
    } else {
        ENT_TRY(scale(f, whole, &q));
    }
    ent_attr perm = ent_attr_ints(f->context->module, "perm", order, 4);
    ENT_TRY(add(f, ENT_OP_Transpose, with(f, perm), k, ENT_ID_NONE, &k));
    ENT_TRY(add(f, ENT_OP_MatMul, (ent_attrs){0}, q, k, out));
    return cast(f, f->wide, out);
}

ent_status ent_rewrite_write_attention(ent_rewrite_context *context, uint32_t id) {
    flex f = {context, id, ENT_DTYPE_F32};
    const ent_node node = *ent_module_node(context->module, id);
    if (node.op != ENT_OP_FlexAttention || !is_ready(&f)) return NULL;
    if (dtype_of(&f, node.inputs[0]) == ENT_DTYPE_F64) f.wide = ENT_DTYPE_F64;
    f.wide = (uint32_t)ent_attrs_int(node.attrs, "softmax_precision", f.wide);
    if (!is_float(f.wide)) return NULL;
    uint32_t value = node.inputs[2], weights;
    ENT_TRY(scores(&f, &node, &weights));
    ENT_TRY(apply_body(&f, "score_mod", &weights));
    ENT_TRY(add(&f, ENT_OP_Softmax, with(&f, ent_attr_int("axis", -1)), weights, ENT_ID_NONE, &weights));
    ENT_TRY(apply_body(&f, "prob_mod", &weights));
    ENT_TRY(repeat_heads(&f, ent_module_value(context->module, node.inputs[0])->dims[1], &value));
    uint32_t dtype = dtype_of(&f, value);
    ENT_TRY(cast(&f, f.wide, &value));
    ENT_TRY(add(&f, ENT_OP_MatMul, (ent_attrs){0}, weights, value, &value));
    ENT_TRY(cast(&f, dtype, &value));
    ent_rewrite_forward(context, id, value);
    return NULL;
}
