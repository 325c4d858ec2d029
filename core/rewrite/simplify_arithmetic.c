/* Arithmetic with constants in one form each, so that later passes need to know one only: constants stand
 * right in Add and Mul, x - c is x + (-c), x / c is x * (1 / c) where that is exact or precision is not
 * strict, and x ^ 2 is x * x. */
#include <math.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/rewrite/internal.h"

/* The reciprocal as the type stores it, and whether x * it always equals x / c. */
static bool reciprocal(uint32_t dtype, double c, double *out, bool *out_exact) {
    int exponent;
    double least = dtype == ENT_DTYPE_F64 ? 0x1p-1022 : dtype == ENT_DTYPE_F16 ? 0x1p-14 : 0x1p-126;
    double most = dtype == ENT_DTYPE_F64 ? 0x1p1023 : dtype == ENT_DTYPE_F16 ? 0x1p15 : 0x1p127;
    *out = 1 / c;
    *out_exact = fabs(frexp(c, &exponent)) == 0.5;
    return isfinite(*out) && fabs(*out) >= least && fabs(*out) <= most && fabs(c) <= most;
}

typedef enum constant_change { CHANGE_NEGATE, CHANGE_INVERT } constant_change;

/* The changed constant, or NONE when it cannot be changed without harm. */
static uint32_t change_constant(ent_rewrite_context *context, uint32_t graph, uint32_t value,
                                constant_change change) {
    const ent_tensor *t = ent_rewrite_float_tensor(context, value);
    int64_t count = t ? ent_value_elements(context->module, value) : -1;
    bool may_round =
        t && !context->options->strict && t->dtype != ENT_DTYPE_F16 && t->dtype != ENT_DTYPE_BF16;
    if (count < 1) return ENT_ID_NONE;
    void *data = ent_arena_array(context->module->arena, t->size_bytes, 1);
    if (!data) return ENT_ID_NONE;
    for (int64_t i = 0; i < count; i++) {
        double c = ent_ops_load_f64(t->data, t->dtype, i), changed = -c;
        bool exact = true;
        if (change == CHANGE_INVERT && (!reciprocal(t->dtype, c, &changed, &exact) || !(exact || may_round)))
            return ENT_ID_NONE;
        ent_ops_store_f64(data, t->dtype, i, changed);
    }
    return ent_module_add_constant(context->module, graph, NULL, t->dtype, t->rank, t->dims, data,
                                   t->size_bytes, true);
}

static ent_status change_operator(ent_rewrite_context *context, uint32_t id, uint32_t op,
                                  constant_change change, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    if (ent_rewrite_tensor(context, node->inputs[0])) return NULL;
    uint32_t inputs[2] = {node->inputs[0], change_constant(context, node->graph, node->inputs[1], change)};
    if (inputs[1] == ENT_ID_NONE) return NULL;
    *out_done = true;
    return ent_rewrite_become(context, id, op, (ent_attrs){0}, inputs, 2);
}

static void constant_right(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t x = node->inputs[0], y = node->inputs[1];
    if (!ent_rewrite_tensor(context, x) || ent_rewrite_tensor(context, y)) return;
    ent_module_set_input(context->module, id, 0, y);
    ent_module_set_input(context->module, id, 1, x);
    context->changed = true;
}

/* x ^ 2: the product is rounded once, as the power is. */
static ent_status square(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t x = node->inputs[0], inputs[2] = {x, x}, dtype = ent_module_value(context->module, x)->dtype;
    bool short_float = dtype == ENT_DTYPE_F32 || dtype == ENT_DTYPE_F16 || dtype == ENT_DTYPE_BF16;
    if (!(short_float || (dtype == ENT_DTYPE_F64 && !context->options->strict)) ||
        !ent_rewrite_is_number(context, node->inputs[1], 2) ||
        !ent_rewrite_same_shape(context->module, x, node->outputs[0]))
        return NULL;
    *out_done = true;
    return ent_rewrite_become(context, id, ENT_OP_Mul, (ent_attrs){0}, inputs, 2);
}

ent_status ent_rewrite_simplify_arithmetic(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    switch (ent_module_node(context->module, id)->op) {
    case ENT_OP_Add:
    case ENT_OP_Mul:
        constant_right(context, id);
        return NULL;
    case ENT_OP_Sub:
        return change_operator(context, id, ENT_OP_Add, CHANGE_NEGATE, out_done);
    case ENT_OP_Div:
        return change_operator(context, id, ENT_OP_Mul, CHANGE_INVERT, out_done);
    case ENT_OP_Pow:
        return square(context, id, out_done);
    default:
        return NULL;
    }
}
