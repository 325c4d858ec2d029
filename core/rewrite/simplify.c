/* Nodes that change nothing, and long forms of short operators. First the values that stand for a node's
 * result as they are (here), then rules that write a shorter node (simplify_*.c). */
#include "core/rewrite/internal.h"

#include <math.h>

#include "core/ops/ops.h"

#define NONE ENT_ID_NONE

static bool is_identity_permutation(const ent_module *module, const ent_node *node) {
    int64_t perm[ENT_MAX_RANK];
    uint32_t rank = 0;
    if (!ent_rewrite_permutation(module, node, perm, &rank)) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (perm[i] != i) return false;
    return true;
}

/* No step runs backwards: a whole axis backwards has the shape of the axis as well. */
static bool steps_forward(const ent_rewrite_context *context, const ent_node *node) {
    int64_t steps[ENT_MAX_RANK];
    uint32_t count = 0, input = ent_rewrite_input(node, 4);
    if (input == NONE) return true;
    if (!ent_value_i64s(context->module, input, steps, ENT_MAX_RANK, &count)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (steps[i] < 1) return false;
    return true;
}

static bool pads_nothing(const ent_rewrite_context *context, const ent_node *node) {
    int64_t pads[2 * ENT_MAX_RANK];
    uint32_t count = 0;
    if (!ent_value_i64s(context->module, ent_rewrite_input(node, 1), pads, 2 * ENT_MAX_RANK, &count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (pads[i] != 0) return false;
    return true;
}

static bool in_training(const ent_rewrite_context *context, const ent_node *node) {
    uint32_t mode = ent_rewrite_input(node, 2), ratio = ent_rewrite_input(node, 1);
    return mode != NONE && !ent_rewrite_is_number(context, mode, 0) &&
           !ent_rewrite_is_number(context, ratio, 0);
}

static bool second_output_unread(const ent_rewrite_context *context, const ent_node *node) {
    uint32_t at = 0, user, index;
    if (node->output_count < 2 || node->outputs[1] == NONE) return true;
    return !ent_value_is_output(context->module, node->outputs[1]) &&
           !ent_value_next_use(context->module, node->outputs[1], &at, &user, &index);
}

/* One condition for all elements of a Where: the branch it takes, else NONE. */
static uint32_t taken_branch(const ent_rewrite_context *context, const ent_node *node) {
    const ent_tensor *t = ent_rewrite_tensor(context, node->inputs[0]);
    int64_t count = t ? ent_value_elements(context->module, node->inputs[0]) : 0;
    if (count < 1) return NONE;
    int64_t first = ent_ops_load_i64(t->data, t->dtype, 0);
    for (int64_t i = 1; i < count; i++)
        if ((ent_ops_load_i64(t->data, t->dtype, i) != 0) != (first != 0)) return NONE;
    uint32_t x = node->inputs[first ? 1 : 2];
    return ent_rewrite_same_shape(context->module, x, node->outputs[0]) ? x : NONE;
}

/* x - 0 gives x to the bit, x + 0 turns -0 into 0: strict keeps that one. */
static bool is_neutral_zero(const ent_rewrite_context *context, const ent_node *node, uint32_t value) {
    double zero;
    if (value == NONE || !ent_value_scalar(context->module, value, &zero) || zero != 0) return false;
    bool exact = node->op == ENT_OP_Sub ? !signbit(zero) : (bool)signbit(zero);
    return exact || !context->options->strict || !ent_rewrite_float_tensor(context, value);
}

/* x + 0, x - 0, x * 1, x / 1, x ^ 1, where the result keeps the shape and type of x. */
static uint32_t neutral(const ent_rewrite_context *context, const ent_node *node) {
    bool sum = node->op == ENT_OP_Add || node->op == ENT_OP_Sub;
    bool commutes = node->op == ENT_OP_Add || node->op == ENT_OP_Mul;
    for (uint32_t i = 0; i < (commutes ? 2u : 1u); i++) {
        uint32_t x = node->inputs[i], unit = node->inputs[1 - i];
        bool is_unit = sum ? is_neutral_zero(context, node, unit) : ent_rewrite_is_number(context, unit, 1);
        if (is_unit && ent_rewrite_same_shape(context->module, x, node->outputs[0])) return x;
    }
    return NONE;
}

/* size: table */
static uint32_t stands_for(const ent_rewrite_context *context, const ent_node *node) {
    uint32_t x = ent_rewrite_input(node, 0), y = node->output_count ? node->outputs[0] : NONE;
    if (x == NONE || y == NONE) return NONE;
    bool same = ent_rewrite_same_shape(context->module, x, y);
    switch (node->op) {
    case ENT_OP_Identity:
        return x;
    case ENT_OP_Dropout:
        return second_output_unread(context, node) && !in_training(context, node) ? x : NONE;
    case ENT_OP_Cast:
    case ENT_OP_CastLike:
    case ENT_OP_Reshape:
    case ENT_OP_Flatten:
    case ENT_OP_Squeeze:
    case ENT_OP_Unsqueeze:
    case ENT_OP_Expand:
    case ENT_OP_Tile:
        return same ? x : NONE;
    case ENT_OP_Transpose:
        return same && is_identity_permutation(context->module, node) ? x : NONE;
    case ENT_OP_Slice:
        return same && steps_forward(context, node) ? x : NONE;
    case ENT_OP_Pad:
        return same && pads_nothing(context, node) ? x : NONE;
    case ENT_OP_Concat:
    case ENT_OP_Sum:
    case ENT_OP_Mean:
    case ENT_OP_Max:
    case ENT_OP_Min:
        return node->input_count == 1 ? x : NONE;
    case ENT_OP_Split:
        return node->output_count == 1 && same ? x : NONE;
    case ENT_OP_Where:
        return taken_branch(context, node);
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

/* ---- casts ---- */

/* Bits that a type keeps of a number, and its exponent bits; 0 for types this does not compare. */
typedef struct number_range {
    uint32_t digits, exponent;
    bool is_signed, is_float;
} number_range;

static number_range range_of(uint32_t dtype) {
    switch (dtype) {
    case ENT_DTYPE_F64:
        return (number_range){53, 11, true, true};
    case ENT_DTYPE_F32:
        return (number_range){24, 8, true, true};
    case ENT_DTYPE_F16:
        return (number_range){11, 5, true, true};
    case ENT_DTYPE_BF16:
        return (number_range){8, 8, true, true};
    case ENT_DTYPE_BOOL:
        return (number_range){1, 0, false, false};
    case ENT_DTYPE_U8:
    case ENT_DTYPE_U16:
    case ENT_DTYPE_U32:
    case ENT_DTYPE_U64:
        return (number_range){ent_dtype_bits((ent_dtype)dtype), 0, false, false};
    case ENT_DTYPE_I8:
    case ENT_DTYPE_I16:
    case ENT_DTYPE_I32:
    case ENT_DTYPE_I64:
        return (number_range){ent_dtype_bits((ent_dtype)dtype) - 1, 0, true, false};
    default:
        return (number_range){0, 0, false, false};
    }
}

/* Every number of `from` has itself in `to`. An f16 range holds integers of 11 bits, so exponents bound
 * floats only. */
static bool keeps_all(uint32_t from, uint32_t to) {
    number_range a = range_of(from), b = range_of(to);
    if (a.digits == 0 || b.digits == 0 || a.digits > b.digits) return false;
    if (a.is_float) return b.is_float && a.exponent <= b.exponent;
    return !a.is_signed || b.is_signed;
}

/* Cast to a type that holds every number of the source, then another: the second alone. */
static ent_status join_casts(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    if (node->op != ENT_OP_Cast) return NULL;
    const ent_node *before = ent_rewrite_producer(context, node->inputs[0]);
    if (!before || before->op != ENT_OP_Cast) return NULL;
    uint32_t source = before->inputs[0], middle = ent_module_value(context->module, node->inputs[0])->dtype;
    if (!keeps_all(ent_module_value(context->module, source)->dtype, middle)) return NULL;
    uint32_t from[2] = {ent_module_value(context->module, node->inputs[0])->producer, id}, value;
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Cast, node->attrs, &source, 1, id, from, 2, &value));
    ent_rewrite_forward(context, id, value);
    *out_done = true;
    return NULL;
}

/* ---- the pass ---- */

static ent_status forward_rule(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    uint32_t value = stands_for(context, ent_module_node(context->module, id));
    if (value == NONE) return NULL;
    ent_rewrite_forward(context, id, value);
    *out_done = true;
    return NULL;
}

static const ent_rewrite_rule rules[] = {
    forward_rule,
    join_casts,
    ent_rewrite_simplify_arithmetic,
    ent_rewrite_simplify_bounds,
    ent_rewrite_simplify_pads,
    ent_rewrite_simplify_reduction,
    ent_rewrite_simplify_broadcast,
    ent_rewrite_simplify_selections,
};

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    bool done = false;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !done; i++)
        ENT_TRY(rules[i](context, id, &done));
    return NULL;
}

ent_status ent_rewrite_simplify(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
