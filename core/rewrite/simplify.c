/* Nodes that change nothing, and many-input operators with one input. Each rule gives a value that stands for
 * the node's result. */
#include <math.h>
#include <string.h>

#include "core/rewrite/internal.h"

#define NONE ENT_ID_NONE

static bool same_shape(const ent_module *module, uint32_t a, uint32_t b) {
    const ent_value *x = ent_module_value(module, a), *y = ent_module_value(module, b);
    if (x->rank == ENT_RANK_UNKNOWN || x->rank != y->rank || x->dtype != y->dtype) return false;
    return memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0;
}

static bool constant_is(const ent_rewrite_context *context, uint32_t value, double wanted) {
    double scalar;
    return value != NONE && ent_value_scalar(context->module, value, &scalar) && scalar == wanted;
}

static uint32_t input_of(const ent_node *node, uint32_t index) {
    return index < node->input_count ? node->inputs[index] : NONE;
}

/* x + 0, x - 0, x * 1, x / 1, x ^ 1, where the result keeps the shape and type of x. */
static uint32_t neutral(const ent_rewrite_context *context, const ent_node *node) {
    double unit = node->op == ENT_OP_Add || node->op == ENT_OP_Sub ? 0 : 1;
    bool commutes = node->op == ENT_OP_Add || node->op == ENT_OP_Mul;
    uint32_t x = node->inputs[0], y = node->inputs[1];
    if (constant_is(context, y, unit) && same_shape(context->module, x, node->outputs[0])) return x;
    if (commutes && constant_is(context, x, unit) && same_shape(context->module, y, node->outputs[0]))
        return y;
    return NONE;
}

static bool is_identity_permutation(const ent_node *node, uint32_t rank) {
    const ent_attr *perm = ent_attrs_find(node->attrs, "perm");
    if (!perm || perm->count != rank) return rank < 2;
    for (uint32_t i = 0; i < rank; i++)
        if (perm->ints[i] != i) return false;
    return true;
}

/* All steps are 1 and nothing is cut: the shapes alone do not say so, since a step of -1 keeps them. */
static bool is_whole_slice(const ent_rewrite_context *context, const ent_node *node) {
    int64_t steps[ENT_MAX_RANK];
    uint32_t count = 0;
    uint32_t step_input = input_of(node, 4);
    if (step_input == NONE) return true;
    if (!ent_value_i64s(context->module, step_input, steps, ENT_MAX_RANK, &count)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (steps[i] != 1) return false;
    return true;
}

static bool infinite_bounds(const ent_rewrite_context *context, const ent_node *node) {
    double low, high;
    uint32_t a = input_of(node, 1), b = input_of(node, 2);
    bool no_low = a == NONE || (ent_value_scalar(context->module, a, &low) && low == -INFINITY);
    bool no_high = b == NONE || (ent_value_scalar(context->module, b, &high) && high == INFINITY);
    return no_low && no_high;
}

/* size: operator switch */
static uint32_t stands_for(const ent_rewrite_context *context, const ent_node *node) {
    const ent_module *module = context->module;
    uint32_t x = input_of(node, 0), y = node->outputs[0];
    if (x == NONE || y == NONE) return NONE;
    bool same = same_shape(module, x, y);
    switch (node->op) {
    case ENT_OP_Identity:
        return x;
    case ENT_OP_Dropout:
        return node->output_count == 1 || node->outputs[1] == NONE ? x : NONE;
    case ENT_OP_Cast:
    case ENT_OP_Reshape:
    case ENT_OP_Flatten:
    case ENT_OP_Squeeze:
    case ENT_OP_Unsqueeze:
    case ENT_OP_Expand:
    case ENT_OP_Tile:
        return same ? x : NONE;
    case ENT_OP_Transpose:
        return same && is_identity_permutation(node, ent_module_value(module, x)->rank) ? x : NONE;
    case ENT_OP_Slice:
        return same && is_whole_slice(context, node) ? x : NONE;
    case ENT_OP_Concat:
    case ENT_OP_Sum:
    case ENT_OP_Mean:
    case ENT_OP_Max:
    case ENT_OP_Min:
        return node->input_count == 1 ? x : NONE;
    case ENT_OP_Split:
        return node->output_count == 1 && same ? x : NONE;
    case ENT_OP_Clip:
        return infinite_bounds(context, node) ? x : NONE;
    case ENT_OP_Add:
    case ENT_OP_Sub:
    case ENT_OP_Mul:
    case ENT_OP_Div:
    case ENT_OP_Pow:
        return neutral(context, node);
    default:
        return NONE;
    }
}

/* Transpose of a transpose: one, or none. */
static ent_status compose_transposes(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_node *before =
        node->op == ENT_OP_Transpose ? ent_rewrite_producer(context, node->inputs[0]) : NULL;
    if (!before || before->op != ENT_OP_Transpose) return NULL;
    const ent_attr *p = ent_attrs_find(before->attrs, "perm"), *q = ent_attrs_find(node->attrs, "perm");
    int64_t perm[ENT_MAX_RANK];
    if (!p || !q || p->count != q->count) return NULL;
    for (uint32_t i = 0; i < q->count; i++) perm[i] = p->ints[q->ints[i]];
    ent_attr attr = ent_attr_ints(context->module, "perm", perm, q->count);
    uint32_t from[2] = {ent_module_value(context->module, node->inputs[0])->producer, id},
             input = before->inputs[0], value;
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Transpose, ent_attrs_make(context->module, &attr, 1), &input, 1,
                            id, from, 2, &value));
    ent_rewrite_forward(context, id, value);
    *out_done = true;
    return NULL;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    bool done = false;
    ENT_TRY(compose_transposes(context, id, &done));
    if (done) return NULL;
    uint32_t value = stands_for(context, ent_module_node(context->module, id));
    if (value != NONE) ent_rewrite_forward(context, id, value);
    return NULL;
}

ent_status ent_rewrite_simplify(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
