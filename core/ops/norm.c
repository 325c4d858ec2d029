/* BatchNormalization, InstanceNormalization, LayerNormalization. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

static ent_code check_per_channel(ent_ops_call *call, uint32_t index, int64_t channels) {
    const ent_tensor *tensor = ent_ops_input(call, index);
    if (tensor->rank != 1 || tensor->dims[0] != channels)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u must have %lld values", index,
                              (long long)channels);
    return ENT_OK;
}

static double value_at(const ent_ops_call *call, uint32_t index, int64_t i) {
    const ent_tensor *tensor = ent_ops_input(call, index);
    return ent_ops_load_f64(tensor->data, tensor->dtype, i);
}

/* Running statistics are outputs of training only. */
ent_code ent_ops_dims_batch_normalization(ent_ops_call *call, ent_tensor *outputs) {
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    for (uint32_t i = 1; i < call->output_count; i++)
        ent_ops_dims_copy(ent_ops_input(call, i + 2), &outputs[i]);
    return ENT_OK;
}

typedef struct channels {
    int64_t batch, count, plane;
    double *values;
    double *mean, *variance; /* by channel */
} channels;

/* In training a channel has the statistics of its own values; the running ones move towards them. */
static void measure(ent_ops_call *call, const channels *c) {
    double momentum = ent_attrs_float(call->attrs, "momentum", 0.9), *statistics[2] = {c->mean, c->variance};
    for (int64_t k = 0; k < c->count; k++) {
        double sum = 0, squares = 0, n = (double)(c->batch * c->plane);
        for (int64_t i = k; i < c->batch * c->count; i += c->count)
            for (int64_t j = 0; j < c->plane; j++) sum += c->values[i * c->plane + j];
        c->mean[k] = sum / n;
        for (int64_t i = k; i < c->batch * c->count; i += c->count)
            for (int64_t j = 0; j < c->plane; j++) {
                double away = c->values[i * c->plane + j] - c->mean[k];
                squares += away * away;
            }
        c->variance[k] = squares / n;
    }
    for (uint32_t i = 0; i < 2; i++) {
        ent_tensor *running = ent_ops_output(call, i + 1);
        for (int64_t k = 0; running && k < c->count; k++)
            ent_ops_store_f64(running->data, running->dtype, k,
                              value_at(call, i + 3, k) * momentum + statistics[i][k] * (1 - momentum));
    }
}

ent_code ent_ops_batch_normalization(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    channels c = {.batch = x->rank > 0 ? x->dims[0] : 1,
                  .count = x->rank > 1 ? x->dims[1] : 1,
                  .plane = x->rank > 2 ? ent_ops_product(x->dims, 2, x->rank) : 1,
                  .values = ent_ops_values_f64(call, x)};
    for (uint32_t i = 1; i < 5; i++) {
        ent_code code = check_per_channel(call, i, c.count);
        if (code != ENT_OK) return code;
    }
    c.mean = ent_ops_scratch(call, c.count, sizeof *c.mean);
    c.variance = ent_ops_scratch(call, c.count, sizeof *c.variance);
    if (!c.values || !c.mean || !c.variance) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t k = 0; k < c.count; k++) {
        c.mean[k] = value_at(call, 3, k);
        c.variance[k] = value_at(call, 4, k);
    }
    if (ent_attrs_int(call->attrs, "training_mode", 0) != 0) measure(call, &c);
    double epsilon = ent_attrs_float(call->attrs, "epsilon", 1e-5);
    for (int64_t i = 0; i < c.batch * c.count; i++) {
        int64_t k = i % c.count;
        double factor = value_at(call, 1, k) / sqrt(c.variance[k] + epsilon), shift = value_at(call, 2, k);
        for (int64_t j = 0; j < c.plane; j++)
            c.values[i * c.plane + j] = (c.values[i * c.plane + j] - c.mean[k]) * factor + shift;
    }
    ent_ops_result_f64(ent_ops_output(call, 0), c.values);
    return ENT_OK;
}

/* In place; mean and 1 / sqrt(variance + epsilon) come back. */
static void normalize(double *x, int64_t count, double epsilon, double *out_mean, double *out_factor) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    double mean = sum / (double)count;
    for (int64_t i = 0; i < count; i++) squares += (x[i] - mean) * (x[i] - mean);
    double factor = 1 / sqrt(squares / (double)count + epsilon);
    for (int64_t i = 0; i < count; i++) x[i] = (x[i] - mean) * factor;
    *out_mean = mean;
    *out_factor = factor;
}

ent_code ent_ops_instance_normalization(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    if (x->rank < 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has rank %u, below 2", x->rank);
    ent_code code = check_per_channel(call, 1, x->dims[1]);
    if (code == ENT_OK) code = check_per_channel(call, 2, x->dims[1]);
    if (code != ENT_OK) return code;
    double *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    int64_t plane = ent_ops_product(x->dims, 2, x->rank);
    for (int64_t i = 0; i < x->dims[0] * x->dims[1]; i++) {
        double mean, factor, scale = value_at(call, 1, i % x->dims[1]),
                             shift = value_at(call, 2, i % x->dims[1]);
        normalize(values + i * plane, plane, ent_attrs_float(call->attrs, "epsilon", 1e-5), &mean, &factor);
        for (int64_t j = 0; j < plane; j++) values[i * plane + j] = values[i * plane + j] * scale + shift;
    }
    ent_ops_result_f64(output, values);
    return ENT_OK;
}

ent_code ent_ops_dims_layer_normalization(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    if (code != ENT_OK) return code;
    for (uint32_t i = 0; i < call->output_count; i++) ent_ops_dims_copy(x, &outputs[i]);
    for (uint32_t i = 1; i < call->output_count; i++) {
        outputs[i].dtype = ent_ops_attr_dtype(call->attrs, "stash_type", ENT_DTYPE_F32);
        for (uint32_t j = axis; j < x->rank; j++) outputs[i].dims[j] = 1;
    }
    for (uint32_t i = 1; i < 3 && code == ENT_OK; i++) {
        const ent_tensor *tensor = ent_ops_input(call, i);
        ent_tensor merged = *x;
        if (tensor) code = ent_ops_dims_merge(call, tensor->dims, tensor->rank, &merged);
        for (uint32_t j = 0; tensor && code == ENT_OK && j < merged.rank; j++)
            if (merged.rank != x->rank || merged.dims[j] != x->dims[j])
                return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                      "input %u does not broadcast to input 0", i);
    }
    return code;
}

typedef struct affine {
    double *values;
    const ent_tensor *operand;
    bool adds;
} affine;

static void affine_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const affine *a = context;
    for (int64_t i = 0; i < count; i++) {
        double value = ent_ops_load_f64(a->operand->data, a->operand->dtype, offset[1] + i * stride[1]);
        double *to = &a->values[offset[0] + i * stride[0]];
        *to = a->adds ? *to + value : *to * value;
    }
}

ent_code ent_ops_layer_normalization(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t axis = 0;
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    int64_t rows = ent_ops_product(x->dims, 0, axis), count = ent_ops_product(x->dims, axis, x->rank);
    double *values = ent_ops_values_f64(call, x);
    double *means = ent_ops_scratch(call, rows, sizeof(double)),
           *factors = ent_ops_scratch(call, rows, sizeof(double));
    if (!values || !means || !factors) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < rows; i++)
        normalize(values + i * count, count, ent_attrs_float(call->attrs, "epsilon", 1e-5), &means[i],
                  &factors[i]);
    for (uint32_t i = 1; i < 3; i++) {
        affine a = {values, ent_ops_input(call, i), i == 2};
        const ent_tensor *operands[2] = {x, a.operand};
        if (a.operand) ent_ops_walk(operands, 2, affine_run, &a);
    }
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    ent_ops_result_f64(ent_ops_output(call, 1), means);
    ent_ops_result_f64(ent_ops_output(call, 2), factors);
    return ENT_OK;
}
