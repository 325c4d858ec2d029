/* Bodies of the normalisations over channels or trailing axes.
 * Source of the formulas: the function bodies and texts of the ONNX schemas. */
#include "core/graph/decompose.h"

#include <math.h>

#define value_of ent_body_value

/* A constant needs no node for that. */
uint32_t ent_body_along_channels(ent_body *body, uint32_t vector, uint32_t rank) {
    int64_t axes[ENT_MAX_RANK], dims[ENT_MAX_RANK] = {0};
    if (rank <= 2 || body->status) return vector;
    const ent_constant *constant = value_of(body, vector)->constant;
    if (constant && constant->tensor.rank == 1) {
        for (uint32_t i = 0; i + 1 < rank; i++) dims[i] = i ? 1 : constant->tensor.dims[0];
        return ent_module_add_constant(body->module, body->node.graph, NULL, constant->tensor.dtype, rank - 1,
                                       dims, constant->tensor.data, constant->tensor.size_bytes, true);
    }
    for (uint32_t i = 0; i + 2 < rank; i++) axes[i] = i + 1;
    return ent_body_binary(body, ENT_OP_Unsqueeze, vector, ent_body_i64s(body, axes, rank - 2));
}

uint32_t ent_body_mean_from(ent_body *body, uint32_t value, uint32_t first, uint32_t rank, uint32_t result) {
    int64_t axes[ENT_MAX_RANK];
    for (uint32_t i = first; i < rank; i++) axes[i - first] = i;
    ent_attr keep = ent_attr_int("keepdims", 1);
    return ent_body_add(body, ENT_OP_ReduceMean, ent_attrs_make(body->module, &keep, 1), value,
                        ent_body_i64s(body, axes, rank - first), ENT_ID_NONE, result);
}

/* ---- BatchNormalization: Y = X * f + (B - mean * f), f = scale / sqrt(var + epsilon) ---- */

/* The constant's tensor when it is a float vector whose bytes are all there. */
static const ent_tensor *float_vector(const ent_body *body, uint32_t input) {
    const ent_value *value = value_of(body, ent_body_input(body, input));
    uint64_t size;
    if (!value->constant || !ent_dtype_is_float(value->dtype) || value->rank != 1) return NULL;
    const ent_tensor *tensor = &value->constant->tensor;
    bool sized =
        ent_tensor_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &size) && size == tensor->size_bytes;
    return sized ? tensor : NULL;
}

/* Constant statistics, as nearly always, are folded here: both vectors become constants. */
static bool fold_statistics(ent_body *body, double epsilon, uint32_t dtype, uint32_t *out_factor,
                            uint32_t *out_shift) {
    const ent_tensor *inputs[4];
    for (uint32_t i = 0; i < 4; i++) {
        inputs[i] = float_vector(body, i + 1);
        if (!inputs[i] || inputs[i]->dims[0] != inputs[0]->dims[0]) return false;
    }
    uint64_t count = (uint64_t)inputs[0]->dims[0], width = ent_dtype_bits(dtype) / 8;
    void *factor = ent_arena_array(body->scratch, count, width),
         *shift = ent_arena_array(body->scratch, count, width);
    if (!factor || !shift) return false;
    for (uint64_t i = 0; i < count; i++) {
        double item[4];
        for (uint32_t k = 0; k < 4; k++) item[k] = ent_element_get_f64(inputs[k]->data, inputs[k]->dtype, i);
        double f = item[0] / sqrt(item[3] + epsilon);
        ent_element_set_f64(factor, dtype, i, f);
        ent_element_set_f64(shift, dtype, i, item[1] - item[2] * f);
    }
    ent_module *module = body->module;
    *out_factor = ent_module_add_constant(module, body->node.graph, NULL, dtype, 1, inputs[0]->dims, factor,
                                          count * width, false);
    *out_shift = ent_module_add_constant(module, body->node.graph, NULL, dtype, 1, inputs[0]->dims, shift,
                                         count * width, false);
    return true;
}

static uint32_t mean_but_channels(ent_body *body, uint32_t value, uint32_t rank) {
    int64_t axes[ENT_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != 1) axes[count++] = i;
    ent_attr attr = ent_attr_int("keepdims", 0);
    return ent_body_add(body, ENT_OP_ReduceMean, ent_attrs_make(body->module, &attr, 1), value,
                        ent_body_i64s(body, axes, count), ENT_ID_NONE, ENT_ID_NONE);
}

/* running * momentum + measured * (1 - momentum), in the type of the running statistics */
static void move_running(ent_body *body, uint32_t input, uint32_t measured, uint32_t result) {
    double momentum = ent_attrs_float(body->node.attrs, "momentum", 0.9);
    uint32_t running = ent_body_input(body, input), dtype = value_of(body, running)->dtype;
    if (result == ENT_ID_NONE || body->status) return;
    running = ent_body_binary(body, ENT_OP_Mul, running, ent_body_scalar(body, dtype, momentum));
    measured = ent_body_cast(body, measured, dtype);
    measured = ent_body_binary(body, ENT_OP_Mul, measured, ent_body_scalar(body, dtype, 1 - momentum));
    ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, running, measured, ENT_ID_NONE, result);
}

/* In training, mean and variance are those of the batch. */
static bool train_batch_norm(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), dtype = value_of(body, x)->dtype, rank = value_of(body, x)->rank;
    if (rank < 2 || !ent_dtype_is_float(value_of(body, ent_body_input(body, 3))->dtype) ||
        !ent_dtype_is_float(value_of(body, ent_body_input(body, 4))->dtype))
        return false;
    uint32_t wide = ent_body_wide(dtype), centred = ent_body_cast(body, x, wide);
    uint32_t mean = mean_but_channels(body, centred, rank);
    centred = ent_body_binary(body, ENT_OP_Sub, centred, ent_body_along_channels(body, mean, rank));
    uint32_t square = ent_body_binary(body, ENT_OP_Mul, centred, centred);
    uint32_t variance = mean_but_channels(body, square, rank);
    move_running(body, 3, mean, ent_body_output(body, 1));
    move_running(body, 4, variance, ent_body_output(body, 2));
    double epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5);
    uint32_t deviation = ent_body_binary(body, ENT_OP_Add, variance, ent_body_scalar(body, wide, epsilon));
    deviation = ent_body_unary(body, ENT_OP_Sqrt, deviation);
    uint32_t scale = ent_body_cast(body, ent_body_input(body, 1), wide),
             bias = ent_body_cast(body, ent_body_input(body, 2), wide);
    uint32_t factor = ent_body_binary(body, ENT_OP_Div, scale, deviation);
    uint32_t y = ent_body_binary(body, ENT_OP_Mul, centred, ent_body_along_channels(body, factor, rank));
    bias = ent_body_along_channels(body, bias, rank);
    y = ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, y, bias, ENT_ID_NONE,
                     wide == dtype ? ent_body_output(body, 0) : ENT_ID_NONE);
    if (wide != dtype) ent_body_cast_to(body, y, dtype, ent_body_output(body, 0));
    return true;
}

bool ent_decompose_BatchNormalization(ent_body *body) {
    if (ent_attrs_int(body->node.attrs, "training_mode", 0) != 0) return train_batch_norm(body);
    uint32_t x = ent_body_input(body, 0), scale = ent_body_input(body, 1), bias = ent_body_input(body, 2);
    uint32_t mean = ent_body_input(body, 3), variance = ent_body_input(body, 4), factor, shift;
    uint32_t dtype = value_of(body, x)->dtype, rank = value_of(body, x)->rank,
             statistics = value_of(body, variance)->dtype;
    double epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5);
    if (!ent_dtype_is_float(statistics)) return false;
    if (!fold_statistics(body, epsilon, dtype, &factor, &shift)) {
        scale = ent_body_cast(body, scale, statistics);
        bias = ent_body_cast(body, bias, statistics);
        mean = ent_body_cast(body, mean, statistics);
        uint32_t deviation =
            ent_body_binary(body, ENT_OP_Add, variance, ent_body_scalar(body, statistics, epsilon));
        deviation = ent_body_unary(body, ENT_OP_Sqrt, deviation);
        factor = ent_body_binary(body, ENT_OP_Div, scale, deviation);
        shift = ent_body_binary(body, ENT_OP_Sub, bias, ent_body_binary(body, ENT_OP_Mul, mean, factor));
        factor = ent_body_cast(body, factor, dtype);
        shift = ent_body_cast(body, shift, dtype);
    }
    uint32_t scaled = ent_body_binary(body, ENT_OP_Mul, x, ent_body_along_channels(body, factor, rank));
    ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, scaled, ent_body_along_channels(body, shift, rank),
                 ENT_ID_NONE, ent_body_output(body, 0));
    return true;
}

/* ---- InstanceNormalization: per sample and channel over the spatial axes ---- */

bool ent_decompose_InstanceNormalization(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), dtype = value_of(body, x)->dtype, rank = value_of(body, x)->rank;
    if (rank < 3) return false;
    double epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5);
    uint32_t centred =
        ent_body_binary(body, ENT_OP_Sub, x, ent_body_mean_from(body, x, 2, rank, ENT_ID_NONE));
    uint32_t square = ent_body_binary(body, ENT_OP_Mul, centred, centred);
    uint32_t variance = ent_body_mean_from(body, square, 2, rank, ENT_ID_NONE);
    uint32_t deviation = ent_body_binary(body, ENT_OP_Add, variance, ent_body_scalar(body, dtype, epsilon));
    deviation = ent_body_unary(body, ENT_OP_Sqrt, deviation);
    uint32_t normal = ent_body_binary(body, ENT_OP_Div, centred, deviation);
    normal = ent_body_binary(body, ENT_OP_Mul, normal,
                             ent_body_along_channels(body, ent_body_input(body, 1), rank));
    ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, normal,
                 ent_body_along_channels(body, ent_body_input(body, 2), rank), ENT_ID_NONE,
                 ent_body_output(body, 0));
    return true;
}

/* ---- LayerNormalization: over the axes from `axis`; mean and deviation in stash_type ---- */

uint32_t ent_body_layer_norm(ent_body *body, const ent_layer_norm *n) {
    uint32_t x = n->x, dtype = value_of(body, x)->dtype, rank = value_of(body, x)->rank, bias = n->bias;
    uint32_t wide = ent_body_cast(body, x, n->stash);
    uint32_t mean = ent_body_mean_from(body, wide, n->axis, rank, n->out_mean);
    uint32_t centred = ent_body_binary(body, ENT_OP_Sub, wide, mean);
    uint32_t square = ent_body_binary(body, ENT_OP_Mul, centred, centred);
    uint32_t variance = ent_body_mean_from(body, square, n->axis, rank, ENT_ID_NONE);
    uint32_t deviation =
        ent_body_binary(body, ENT_OP_Add, variance, ent_body_scalar(body, n->stash, n->epsilon));
    deviation = ent_body_unary(body, ENT_OP_Sqrt, deviation);
    uint32_t inverse = ent_body_add(body, ENT_OP_Reciprocal, ENT_NO_ATTRS, deviation, ENT_ID_NONE,
                                    ENT_ID_NONE, n->out_inverse);
    uint32_t normal = ent_body_cast(body, ent_body_binary(body, ENT_OP_Mul, centred, inverse), dtype);
    uint32_t scale = ent_body_cast(body, n->scale, dtype);
    if (bias != ENT_ID_NONE) bias = ent_body_cast(body, bias, dtype);
    uint32_t scaled = ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, normal, scale, ENT_ID_NONE,
                                   bias == ENT_ID_NONE ? n->out : ENT_ID_NONE);
    if (bias == ENT_ID_NONE) return scaled;
    return ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, scaled, bias, ENT_ID_NONE, n->out);
}

bool ent_decompose_LayerNormalization(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), rank = value_of(body, x)->rank;
    int64_t axis = ent_attrs_int(body->node.attrs, "axis", -1),
            stash = ent_attrs_int(body->node.attrs, "stash_type", ENT_DTYPE_F32);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || stash <= 0 || !ent_dtype_is_float((uint32_t)stash)) return false;
    ent_layer_norm n = {.x = x,
                        .scale = ent_body_input(body, 1),
                        .bias = ent_body_input(body, 2),
                        .axis = (uint32_t)axis,
                        .stash = (uint32_t)stash,
                        .epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5),
                        .out = ent_body_output(body, 0),
                        .out_mean = ent_body_output(body, 1),
                        .out_inverse = ent_body_output(body, 2)};
    ent_body_layer_norm(body, &n);
    return true;
}
