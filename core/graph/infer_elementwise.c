/* Shape rules: elementwise operators and those that keep a shape. */
#include "core/graph/infer.h"

static ent_status keep(ent_infer *infer) {
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

static ent_status keep_as_bool(ent_infer *infer) {
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = ENT_DTYPE_BOOL;
    return NULL;
}

static ent_status broadcast(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, infer->node->input_count));
    return ent_infer_broadcast_inputs(infer, ent_infer_input(infer, 0)->dtype);
}

/* The types of the operands may differ. */
static ent_status broadcast_mixed(ent_infer *infer) {
    return ent_infer_broadcast_inputs(infer, ent_infer_input(infer, 0)->dtype);
}

static ent_status compare(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    return ent_infer_broadcast_inputs(infer, ENT_DTYPE_BOOL);
}

#define RULE(op, rule)                                                                                       \
    ent_status ent_infer_##op(ent_infer *infer) {                                                            \
        return rule(infer);                                                                                  \
    }
RULE(Abs, keep)
RULE(Neg, keep)
RULE(Sqrt, keep)
RULE(Reciprocal, keep)
RULE(Exp, keep)
RULE(Log, keep)
RULE(Erf, keep)
RULE(Tanh, keep)
RULE(Sigmoid, keep)
RULE(Relu, keep)
RULE(LeakyRelu, keep)
RULE(Elu, keep)
RULE(Selu, keep)
RULE(Celu, keep)
RULE(ThresholdedRelu, keep)
RULE(HardSigmoid, keep)
RULE(Softplus, keep)
RULE(Softsign, keep)
RULE(Floor, keep)
RULE(Ceil, keep)
RULE(Round, keep)
RULE(Sign, keep)
RULE(Not, keep_as_bool)
RULE(IsNaN, keep_as_bool)
RULE(IsInf, keep_as_bool)
RULE(Sin, keep)
RULE(Cos, keep)
RULE(Tan, keep)
RULE(Asin, keep)
RULE(Acos, keep)
RULE(Atan, keep)
RULE(Sinh, keep)
RULE(Cosh, keep)
RULE(Asinh, keep)
RULE(Acosh, keep)
RULE(Atanh, keep)
RULE(BitwiseNot, keep)
RULE(Identity, keep)
RULE(Gelu, keep)
RULE(HardSwish, keep)
RULE(Mish, keep)
RULE(Shrink, keep)
RULE(Swish, keep)
RULE(Add, broadcast)
RULE(Sub, broadcast)
RULE(Mul, broadcast)
RULE(Div, broadcast)
RULE(Pow, broadcast_mixed)
RULE(Mod, broadcast)
RULE(Equal, compare)
RULE(Less, compare)
RULE(LessOrEqual, compare)
RULE(Greater, compare)
RULE(GreaterOrEqual, compare)
RULE(And, compare)
RULE(Or, compare)
RULE(Xor, compare)
RULE(BitwiseAnd, broadcast)
RULE(BitwiseOr, broadcast)
RULE(BitwiseXor, broadcast)
RULE(BitShift, broadcast)
RULE(Max, broadcast)
RULE(Min, broadcast)
RULE(Sum, broadcast)
RULE(Mean, broadcast)

/* The slope may only broadcast to X. */
ent_status ent_infer_PRelu(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ENT_TRY(broadcast(infer));
    bool grew = infer->out[0].rank != x->rank;
    for (uint32_t i = 0; !grew && i < x->rank; i++)
        grew = ent_infer_differ(infer, infer->out[0].dims[i], x->dims[i]);
    if (grew)
        return ent_infer_fail(infer, "shape.broadcast", "slope %s does not broadcast to %s",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 0));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_Clip(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 3));
    return keep(infer);
}

ent_status ent_infer_Where(ent_infer *infer) {
    const ent_value *condition = ent_infer_input(infer, 0);
    if (condition->dtype && condition->dtype != ENT_DTYPE_BOOL)
        return ent_infer_fail(infer, "dtype.condition", "the condition has type %s, not bool",
                              ent_dtype_name((ent_dtype)condition->dtype));
    ENT_TRY(ent_infer_same_dtype(infer, 1, 3));
    return ent_infer_broadcast_inputs(infer, ent_infer_input(infer, 1)->dtype);
}

static ent_status attr_dtype(ent_infer *infer, const char *name, uint32_t missing, uint32_t *out) {
    int64_t dtype = ent_attrs_int(infer->attrs, name, 0);
    *out = dtype ? (uint32_t)dtype : missing;
    if (dtype < 0 || dtype >= ENT_DTYPE_COUNT)
        return ent_infer_fail(infer, "attribute.dtype", "attribute '%s' is %lld, which is no element type",
                              name, (long long)dtype);
    return NULL;
}

ent_status ent_infer_Cast(ent_infer *infer) {
    uint32_t dtype;
    ENT_TRY(attr_dtype(infer, "to", ENT_DTYPE_NONE, &dtype));
    if (dtype == ENT_DTYPE_NONE)
        return ent_infer_fail(infer, "attribute.dtype", "Cast needs the attribute 'to'");
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = dtype;
    return NULL;
}

ent_status ent_infer_CastLike(ent_infer *infer) {
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = ent_infer_input(infer, 1)->dtype;
    return NULL;
}

/* A scalar, or the list of one element that exporters write for it. */
static bool holds_one(const ent_value *value) {
    return value->rank == 0 || (value->rank == 1 && value->dims[0] == 1);
}

/* A scale is a scalar, one per index of the axis, or blocks along it. */
static ent_status check_scale(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *scale = ent_infer_input(infer, 1),
                    *zero = ent_infer_input(infer, 2);
    uint32_t axis;
    bool single = holds_one(scale), both = single && zero && holds_one(zero);
    bool ok = both || !zero || zero->rank == scale->rank;
    for (uint32_t i = 0; ok && !both && zero && i < zero->rank; i++)
        ok = !ent_infer_differ(infer, zero->dims[i], scale->dims[i]);
    if (!ok)
        return ent_infer_fail(infer, "shape.quantize", "scale %s and zero point %s have different shapes",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 2));
    if (single) return NULL;
    if (scale->rank == 1) {
        ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", 1), x->rank, &axis));
        ok = !ent_infer_differ(infer, x->dims[axis], scale->dims[0]);
    } else {
        ok = scale->rank == x->rank;
    }
    return ok ? NULL
              : ent_infer_fail(infer, "shape.quantize", "scale %s does not fit input %s",
                               ent_infer_text(infer, 1), ent_infer_text(infer, 0));
}

ent_status ent_infer_QuantizeLinear(ent_infer *infer) {
    const ent_value *zero = ent_infer_input(infer, 2);
    uint32_t dtype;
    ENT_TRY(check_scale(infer));
    ENT_TRY(attr_dtype(infer, "output_dtype", zero ? zero->dtype : ENT_DTYPE_U8, &dtype));
    if (zero && zero->dtype && zero->dtype != dtype)
        return ent_infer_fail(infer, "dtype.same", "output_dtype is %s, the zero point is %s",
                              ent_dtype_name((ent_dtype)dtype), ent_dtype_name((ent_dtype)zero->dtype));
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = dtype;
    return NULL;
}

ent_status ent_infer_DequantizeLinear(ent_infer *infer) {
    uint32_t dtype;
    ENT_TRY(check_scale(infer));
    ENT_TRY(attr_dtype(infer, "output_dtype", ent_infer_input(infer, 1)->dtype, &dtype));
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = dtype;
    return NULL;
}

/* Whether it draws numbers must be known: then it is refused. */
ent_status ent_infer_Dropout(ent_infer *infer) {
    ent_infer_want(infer, 1);
    ent_infer_want(infer, 2);
    ent_infer_copy(infer, 0, 0);
    ent_infer_copy(infer, 1, 0);
    if (infer->node->output_count > 1) infer->out[1].dtype = ENT_DTYPE_BOOL;
    return NULL;
}
