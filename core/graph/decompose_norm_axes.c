/* Bodies of RMSNormalization, GroupNormalization, MeanVarianceNormalization and LpNormalization.
 * Source of the formulas: the texts and function bodies of the ONNX schemas. */
#include "core/graph/decompose.h"

uint32_t ent_body_rms_norm(ent_body *body, const ent_layer_norm *n) {
    uint32_t rank = ent_body_value(body, n->x)->rank, dtype = ent_body_value(body, n->scale)->dtype;
    uint32_t wide = ent_body_cast(body, n->x, n->stash);
    uint32_t mean =
        ent_body_mean_from(body, ent_body_binary(body, ENT_OP_Mul, wide, wide), n->axis, rank, ENT_ID_NONE);
    mean = ent_body_binary(body, ENT_OP_Add, mean, ent_body_scalar(body, n->stash, n->epsilon));
    uint32_t inverse =
        ent_body_add(body, ENT_OP_Reciprocal, ENT_NO_ATTRS, ent_body_unary(body, ENT_OP_Sqrt, mean),
                     ENT_ID_NONE, ENT_ID_NONE, n->out_inverse);
    uint32_t normal = ent_body_cast(body, ent_body_binary(body, ENT_OP_Mul, wide, inverse), dtype);
    return ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, normal, n->scale, ENT_ID_NONE, n->out);
}

bool ent_decompose_RMSNormalization(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), scale = ent_body_input(body, 1),
             rank = ent_body_value(body, x)->rank;
    int64_t axis = ent_attrs_int(body->node.attrs, "axis", -1),
            stash = ent_attrs_int(body->node.attrs, "stash_type", ENT_DTYPE_F32);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || stash <= 0 || !ent_dtype_is_float((uint32_t)stash)) return false;
    ent_layer_norm n = {.x = x,
                        .scale = scale,
                        .axis = (uint32_t)axis,
                        .stash = (uint32_t)stash,
                        .epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5),
                        .out = ent_body_output(body, 0),
                        .out_inverse = ENT_ID_NONE};
    ent_body_rms_norm(body, &n);
    return true;
}

/* (value - mean) and its mean square over the last axes, from `first` on. */
static uint32_t centre(ent_body *body, uint32_t value, uint32_t first, uint32_t rank,
                       uint32_t *out_variance) {
    uint32_t centred =
        ent_body_binary(body, ENT_OP_Sub, value, ent_body_mean_from(body, value, first, rank, ENT_ID_NONE));
    uint32_t square = ent_body_binary(body, ENT_OP_Mul, centred, centred);
    *out_variance = ent_body_mean_from(body, square, first, rank, ENT_ID_NONE);
    return centred;
}

/* A group is one row: batch x groups x the rest. */
bool ent_decompose_GroupNormalization(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), dtype = ent_body_value(body, x)->dtype,
             rank = ent_body_value(body, x)->rank;
    int64_t groups = ent_attrs_int(body->node.attrs, "num_groups", 0),
            stash = ent_attrs_int(body->node.attrs, "stash_type", ENT_DTYPE_F32), shape[3] = {0, groups, -1};
    if (groups <= 0 || rank < 2 || stash <= 0 || !ent_dtype_is_float((uint32_t)stash)) return false;
    if (ent_value_static(body->module, x) && ent_value_elements(body->module, x) == 0) return false;
    uint32_t wide = ent_body_cast(body, x, (uint32_t)stash), variance;
    wide = ent_body_binary(body, ENT_OP_Reshape, wide, ent_body_i64s(body, shape, 3));
    uint32_t centred = centre(body, wide, 2, 3, &variance);
    double epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5);
    variance = ent_body_binary(body, ENT_OP_Add, variance, ent_body_scalar(body, (uint32_t)stash, epsilon));
    uint32_t normal = ent_body_binary(body, ENT_OP_Div, centred, ent_body_unary(body, ENT_OP_Sqrt, variance));
    normal = ent_body_reshape_like(body, normal, x, ENT_ID_NONE);
    normal = ent_body_cast(body, normal, dtype);
    uint32_t scale = ent_body_along_channels(body, ent_body_input(body, 1), rank);
    normal = ent_body_binary(body, ENT_OP_Mul, normal, scale);
    ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, normal,
                 ent_body_along_channels(body, ent_body_input(body, 2), rank), ENT_ID_NONE,
                 ent_body_output(body, 0));
    return true;
}

static uint32_t reduce(ent_body *body, uint32_t op, uint32_t value, const int64_t *axes, uint32_t count) {
    ent_attr keep = ent_attr_int("keepdims", 1);
    return ent_body_add(body, op, ent_attrs_make(body->module, &keep, 1), value,
                        ent_body_i64s(body, axes, count), ENT_ID_NONE, ENT_ID_NONE);
}

/* The deviation, not the variance, gets the small number: so says the function body. */
bool ent_decompose_MeanVarianceNormalization(ent_body *body) {
    static const int64_t common[3] = {0, 2, 3};
    const ent_attr *attr = ent_attrs_find(body->node.attrs, "axes");
    const int64_t *axes = attr ? attr->ints : common;
    uint32_t x = ent_body_input(body, 0), dtype = ent_body_value(body, x)->dtype,
             count = attr ? attr->count : 3;
    if (count == 0) return false;
    uint32_t wide = ent_body_wide(dtype);
    x = ent_body_cast(body, x, wide);
    uint32_t centred = ent_body_binary(body, ENT_OP_Sub, x, reduce(body, ENT_OP_ReduceMean, x, axes, count));
    uint32_t square = ent_body_binary(body, ENT_OP_Mul, centred, centred);
    uint32_t deviation =
        ent_body_unary(body, ENT_OP_Sqrt, reduce(body, ENT_OP_ReduceMean, square, axes, count));
    deviation = ent_body_binary(body, ENT_OP_Add, deviation, ent_body_scalar(body, wide, 1e-9));
    uint32_t result = ent_body_output(body, 0);
    uint32_t y = ent_body_add(body, ENT_OP_Div, ENT_NO_ATTRS, centred, deviation, ENT_ID_NONE,
                              wide == dtype ? result : ENT_ID_NONE);
    if (wide != dtype) ent_body_cast_to(body, y, dtype, result);
    return true;
}

/* A row of zeros is divided by 1. */
bool ent_decompose_LpNormalization(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), dtype = ent_body_value(body, x)->dtype,
             result = ent_body_output(body, 0);
    int64_t axis = ent_attrs_int(body->node.attrs, "axis", -1), p = ent_attrs_int(body->node.attrs, "p", 2);
    if (p != 1 && p != 2) return false;
    uint32_t wide = ent_body_wide(dtype);
    x = ent_body_cast(body, x, wide);
    uint32_t norm = reduce(body, p == 1 ? ENT_OP_ReduceL1 : ENT_OP_ReduceL2, x, &axis, 1);
    uint32_t none = ent_body_binary(body, ENT_OP_Equal, norm, ent_body_scalar(body, wide, 0));
    norm = ent_body_add(body, ENT_OP_Where, ENT_NO_ATTRS, none, ent_body_scalar(body, wide, 1), norm,
                        ENT_ID_NONE);
    uint32_t y = ent_body_add(body, ENT_OP_Div, ENT_NO_ATTRS, x, norm, ENT_ID_NONE,
                              wide == dtype ? result : ENT_ID_NONE);
    if (wide != dtype) ent_body_cast_to(body, y, dtype, result);
    return true;
}

/* LogSoftmax over the classes, then the likelihood loss of it. */
bool ent_decompose_SoftmaxCrossEntropyLoss(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), dtype = ent_body_value(body, x)->dtype, wide = ent_body_wide(dtype);
    uint32_t loss = ent_body_output(body, 0), logs = ent_body_output(body, 1),
             weight = ent_body_input(body, 2);
    ent_attr axis = ent_attr_int("axis", 1);
    bool direct = wide == dtype;
    x = ent_body_cast(body, x, wide);
    uint32_t log = ent_body_add(body, ENT_OP_LogSoftmax, ent_attrs_make(body->module, &axis, 1), x,
                                ENT_ID_NONE, ENT_ID_NONE, direct ? logs : ENT_ID_NONE);
    if (!direct && logs != ENT_ID_NONE) ent_body_cast_to(body, log, dtype, logs);
    if (loss == ENT_ID_NONE) return true;
    if (weight != ENT_ID_NONE) weight = ent_body_cast(body, weight, wide);
    uint32_t y = ent_body_add(body, ENT_OP_NegativeLogLikelihoodLoss, body->node.attrs, log,
                              ent_body_input(body, 1), weight, direct ? loss : ENT_ID_NONE);
    if (!direct) ent_body_cast_to(body, y, dtype, loss);
    return true;
}
