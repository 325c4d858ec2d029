/* RMSNormalization, GroupNormalization, MeanVarianceNormalization, LpNormalization, LRN, Hardmax.
 * Source of the formulas: the texts and function bodies of the ONNX schemas. */
#include "core/ops/internal.h"

#include <math.h>

static ent_code check_broadcasts(ent_ops_call *call, const ent_tensor *operand, const ent_tensor *x) {
    ent_tensor merged = *x;
    ent_code code = ent_ops_dims_merge(call, operand->dims, operand->rank, &merged);
    bool same = code == ENT_OK && merged.rank == x->rank;
    for (uint32_t i = 0; same && i < x->rank; i++) same = merged.dims[i] == x->dims[i];
    return same ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the scale does not broadcast to input 0");
}

/* The result has the scale's dtype. */
ent_code ent_ops_dims_rms_normalization(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *scale = ent_ops_input(call, 1);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    if (code == ENT_OK) code = check_broadcasts(call, scale, x);
    ent_ops_dims_copy(x, &outputs[0]);
    outputs[0].dtype = scale->dtype;
    return code;
}

typedef struct scaling {
    double *values;
    const ent_tensor *scale;
} scaling;

static void scale_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const scaling *s = context;
    for (int64_t i = 0; i < count; i++)
        s->values[offset[0] + i * stride[0]] *=
            ent_ops_load_f64(s->scale->data, s->scale->dtype, offset[1] + i * stride[1]);
}

ent_code ent_ops_rms_normalization(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t axis = 0;
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    int64_t rows = ent_ops_product(x->dims, 0, axis), count = ent_ops_product(x->dims, axis, x->rank);
    double epsilon = ent_attrs_float(call->attrs, "epsilon", 1e-5), *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0, *row = values + i * count;
        for (int64_t j = 0; j < count; j++) sum += row[j] * row[j];
        double factor = 1 / sqrt(sum / (double)count + epsilon);
        for (int64_t j = 0; j < count; j++) row[j] *= factor;
    }
    scaling s = {values, ent_ops_input(call, 1)};
    const ent_tensor *operands[2] = {x, s.scale};
    ent_ops_walk(operands, 2, scale_run, &s);
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    return ENT_OK;
}

static ent_code check_groups(ent_ops_call *call, int64_t groups) {
    const ent_tensor *x = ent_ops_input(call, 0);
    bool fits = x->rank >= 2 && groups > 0 && x->dims[1] % groups == 0;
    for (uint32_t i = 1; fits && i < 3; i++) {
        const ent_tensor *operand = ent_ops_input(call, i);
        fits = operand->rank == 1 && operand->dims[0] == x->dims[1];
    }
    return fits ? ENT_OK
                : ent_ops_refuse(
                      call, ENT_CODE_INVALID_ARGUMENT,
                      "the channels do not divide into %lld groups, or scale and bias do not fit them",
                      (long long)groups);
}

ent_code ent_ops_group_normalization(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *scale = ent_ops_input(call, 1),
                     *bias = ent_ops_input(call, 2);
    int64_t groups = ent_attrs_int(call->attrs, "num_groups", 0);
    ent_code code = check_groups(call, groups);
    if (code != ENT_OK) return code;
    double epsilon = ent_attrs_float(call->attrs, "epsilon", 1e-5), *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    int64_t plane = ent_ops_product(x->dims, 2, x->rank), per_group = x->dims[1] / groups,
            count = per_group * plane;
    for (int64_t i = 0; i < x->dims[0] * groups; i++) {
        double sum = 0, squares = 0, *group = values + i * count;
        for (int64_t j = 0; j < count; j++) sum += group[j];
        double mean = sum / (double)count;
        for (int64_t j = 0; j < count; j++) squares += (group[j] - mean) * (group[j] - mean);
        double factor = 1 / sqrt(squares / (double)count + epsilon);
        for (int64_t j = 0; j < count; j++) {
            int64_t channel = i % groups * per_group + j / plane;
            group[j] = (group[j] - mean) * factor * ent_ops_load_f64(scale->data, scale->dtype, channel) +
                       ent_ops_load_f64(bias->data, bias->dtype, channel);
        }
    }
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    return ENT_OK;
}

/* Which group of the kept axes an element belongs to. */
static int64_t group_of(const ent_tensor *x, uint32_t mask, int64_t element) {
    int64_t group = 0, stride = 1;
    for (uint32_t i = x->rank; i-- > 0; element /= x->dims[i]) {
        if (mask >> i & 1) continue;
        group += element % x->dims[i] * stride;
        stride *= x->dims[i];
    }
    return group;
}

ent_code ent_ops_mean_variance_normalization(ent_ops_call *call) {
    static const int64_t common[3] = {0, 2, 3};
    const ent_tensor *x = ent_ops_input(call, 0);
    const ent_attr *attr = ent_attrs_find(call->attrs, "axes");
    const int64_t *axes = attr ? attr->ints : common;
    uint32_t mask = 0, axis_count = attr ? attr->count : 3;
    for (uint32_t i = 0; i < axis_count; i++) {
        uint32_t axis;
        ent_code code = ent_ops_axis(call, axes[i], x->rank, &axis);
        if (code != ENT_OK) return code;
        mask |= 1u << axis;
    }
    int64_t groups = 1, count = ent_ops_element_count(x);
    for (uint32_t i = 0; i < x->rank; i++) groups *= mask >> i & 1 ? 1 : x->dims[i];
    double *values = ent_ops_values_f64(call, x), *mean = ent_ops_scratch(call, groups, sizeof(double)),
           *deviation = ent_ops_scratch(call, groups, sizeof(double));
    if (!values || !mean || !deviation) return ENT_CODE_OUT_OF_MEMORY;
    double members = (double)(count / groups);
    for (int64_t i = 0; i < groups; i++) mean[i] = deviation[i] = 0;
    for (int64_t i = 0; i < count; i++) mean[group_of(x, mask, i)] += values[i] / members;
    for (int64_t i = 0; i < count; i++) {
        int64_t group = group_of(x, mask, i);
        values[i] -= mean[group];
        deviation[group] += values[i] * values[i] / members;
    }
    for (int64_t i = 0; i < count; i++) values[i] /= sqrt(deviation[group_of(x, mask, i)]) + 1e-9;
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    return ENT_OK;
}

/* Calls `row` for each run along `axis`. */
typedef void (*row_function)(double *x, int64_t count, int64_t stride, int64_t parameter);
static ent_code along_axis(ent_ops_call *call, row_function row, int64_t parameter) {
    const ent_tensor *x = ent_ops_input(call, 0);
    double *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    uint32_t axis = 0;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    if (code != ENT_OK) return code;
    int64_t inner = ent_ops_product(x->dims, axis + 1, x->rank), outer = ent_ops_product(x->dims, 0, axis);
    for (int64_t i = 0; i < outer * inner; i++)
        row(values + i / inner * x->dims[axis] * inner + i % inner, x->dims[axis], inner, parameter);
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    return ENT_OK;
}

/* A row of zeros stays one. */
static void lp_row(double *x, int64_t count, int64_t stride, int64_t p) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += p == 1 ? fabs(x[i * stride]) : x[i * stride] * x[i * stride];
    double norm = p == 1 ? sum : sqrt(sum);
    for (int64_t i = 0; i < count; i++) x[i * stride] = norm == 0 ? 0 : x[i * stride] / norm;
}

ent_code ent_ops_lp_normalization(ent_ops_call *call) {
    int64_t p = ent_attrs_int(call->attrs, "p", 2);
    if (p != 1 && p != 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "p is %lld, not 1 or 2", (long long)p);
    return along_axis(call, lp_row, p);
}

/* 1 at the first of the largest values. */
static void hardmax_row(double *x, int64_t count, int64_t stride, int64_t unused) {
    int64_t best = 0;
    (void)unused;
    for (int64_t i = 1; i < count; i++)
        if (x[i * stride] > x[best * stride]) best = i;
    for (int64_t i = 0; i < count; i++) x[i * stride] = i == best;
}

ent_code ent_ops_hardmax(ent_ops_call *call) {
    return along_axis(call, hardmax_row, 0);
}

/* Channel c is divided by a power of the squares of its neighbours c - floor((size - 1) / 2) .. c +
 * ceil(...). */
ent_code ent_ops_lrn(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t size = ent_attrs_int(call->attrs, "size", 0);
    if (x->rank < 2 || size < 1)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the input has no channels, or size is below 1");
    double alpha = ent_attrs_float(call->attrs, "alpha", 1e-4),
           beta = ent_attrs_float(call->attrs, "beta", 0.75), bias = ent_attrs_float(call->attrs, "bias", 1);
    int64_t channels = x->dims[1], plane = ent_ops_product(x->dims, 2, x->rank),
            count = x->dims[0] * channels;
    double *values = ent_ops_values_f64(call, x),
           *result = ent_ops_scratch(call, count * plane, sizeof(double));
    if (!values || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        int64_t c = i % channels, first = c - (size - 1) / 2, last = c + size / 2;
        if (first < 0) first = 0;
        if (last >= channels) last = channels - 1;
        for (int64_t j = 0; j < plane; j++) {
            double sum = 0;
            for (int64_t k = first; k <= last; k++) {
                double v = values[(i - c + k) * plane + j];
                sum += v * v;
            }
            result[i * plane + j] = values[i * plane + j] / pow(bias + alpha / (double)size * sum, beta);
        }
    }
    ent_ops_result_f64(ent_ops_output(call, 0), result);
    return ENT_OK;
}
