/* Random numbers. Element i of a node is a function of (seed, i): the same every time and on
 * every machine. ONNX fixes no generator. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* splitmix64 (Steele, Lea, Flood 2014), entered at place `index` of the sequence that the seed starts. */
static double unit_at(uint64_t seed, uint64_t index) {
    uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) / 9007199254740992.0;
}

static uint64_t seed_of(const ent_ops_call *call) {
    double seed = ent_attrs_float(call->attrs, "seed", 0);
    uint64_t bits;
    memcpy(&bits, &seed, sizeof bits);
    return bits * 0x9e3779b97f4a7c15u + call->op;
}

ent_code ent_ops_dims_random_like(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    ent_ops_dims_copy(x, &outputs[0]);
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "dtype", x->dtype);
    return ENT_OK;
}

ent_code ent_ops_dims_random(ent_ops_call *call, ent_tensor *outputs) {
    const ent_attr *shape = ent_attrs_find(call->attrs, "shape");
    if (!shape || shape->type != ENT_ATTR_INTS || shape->count > ENT_MAX_RANK)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "there is no shape of at most %d axes",
                              ENT_MAX_RANK);
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "dtype", ENT_DTYPE_F32);
    outputs[0].rank = shape->count;
    for (uint32_t i = 0; i < shape->count; i++) outputs[0].dims[i] = shape->ints[i];
    return ENT_OK;
}

static double random_at(const ent_ops_call *call, uint64_t seed, int64_t i) {
    if (call->op == ENT_OP_RandomUniform || call->op == ENT_OP_RandomUniformLike) {
        double low = ent_attrs_float(call->attrs, "low", 0), high = ent_attrs_float(call->attrs, "high", 1);
        return low + (high - low) * unit_at(seed, (uint64_t)i);
    }
    double radius = sqrt(-2 * log(1 - unit_at(seed, 2 * (uint64_t)i))); /* Box and Muller */
    double normal = radius * cos(2 * PI * unit_at(seed, 2 * (uint64_t)i + 1));
    return ent_attrs_float(call->attrs, "mean", 0) + ent_attrs_float(call->attrs, "scale", 1) * normal;
}

ent_code ent_ops_random(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    int64_t count = ent_ops_element_count(y);
    double *values = ent_ops_scratch(call, count, sizeof *values);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    uint64_t seed = seed_of(call);
    for (int64_t i = 0; i < count; i++) values[i] = random_at(call, seed, i);
    ent_ops_result_f64(y, values);
    return ENT_OK;
}

ent_code ent_ops_bernoulli(ent_ops_call *call) {
    double *values = ent_ops_values_f64(call, ent_ops_input(call, 0));
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    uint64_t seed = seed_of(call);
    for (int64_t i = 0; i < ent_ops_element_count(ent_ops_input(call, 0)); i++)
        values[i] = unit_at(seed, (uint64_t)i) < values[i];
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    return ENT_OK;
}

ent_code ent_ops_dims_multinomial(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t samples = ent_attrs_int(call->attrs, "sample_size", 1);
    if (x->rank != 2 || x->dims[1] < 1 || samples < 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input is not batch x classes");
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "dtype", ENT_DTYPE_I32);
    outputs[0].rank = 2;
    outputs[0].dims[0] = x->dims[0];
    outputs[0].dims[1] = samples;
    return ENT_OK;
}

/* The input holds logarithms of weights that need not sum to 1. */
ent_code ent_ops_multinomial(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    int64_t classes = x->dims[1], samples = y->dims[1],
            *result = ent_ops_scratch(call, y->dims[0] * samples, 8);
    double *values = ent_ops_values_f64(call, x);
    if (!values || !result) return ENT_CODE_OUT_OF_MEMORY;
    uint64_t seed = seed_of(call);
    for (int64_t i = 0; i < x->dims[0]; i++) {
        double *row = values + i * classes, largest = -INFINITY, total = 0;
        for (int64_t j = 0; j < classes; j++) largest = row[j] > largest ? row[j] : largest;
        for (int64_t j = 0; j < classes; j++) row[j] = total += exp(row[j] - largest);
        for (int64_t j = 0; j < samples; j++) {
            double point = unit_at(seed, (uint64_t)(i * samples + j)) * total;
            int64_t class = 0;
            while (class + 1 < classes && row[class] <= point) class ++;
            result[i * samples + j] = class;
        }
    }
    ent_ops_result_i64(y, result);
    return ENT_OK;
}
