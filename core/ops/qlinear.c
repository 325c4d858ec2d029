/* Quantized operators of com.microsoft: the operands become real numbers, the plain operator runs on them,
 * and its result is quantized again. Source: ONNX Runtime, docs/ContribOperators.md. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

/* A tensor with its scale and zero point (input numbers). */
static ent_code real_values(ent_ops_call *call, uint32_t index, uint32_t scale_index, uint32_t zero_index,
                            ent_tensor *out) {
    const ent_tensor *x = ent_ops_input(call, index), *scale = ent_ops_input(call, scale_index),
                     *zero = ent_ops_input(call, zero_index);
    if (!x || !scale || ent_ops_element_count(scale) != 1 || (zero && ent_ops_element_count(zero) != 1))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "input %u needs a scale and a zero point of one value", index);
    double *values = ent_ops_values_f64(call, x), factor = ent_ops_load_f64(scale->data, scale->dtype, 0),
           shift = zero ? ent_ops_load_f64(zero->data, zero->dtype, 0) : 0;
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < ent_ops_element_count(x); i++)
        values[i] = (double)(float)((values[i] - shift) * factor);
    *out = *x;
    out->dtype = ENT_DTYPE_F64;
    out->data = values;
    out->size_bytes = (uint64_t)ent_ops_element_count(x) * sizeof(double);
    return ENT_OK;
}

static ent_code result_room(ent_ops_call *call, ent_tensor *out) {
    *out = *ent_ops_output(call, 0);
    out->dtype = ENT_DTYPE_F64;
    out->size_bytes = (uint64_t)ent_ops_element_count(out) * sizeof(double);
    out->data = ent_ops_scratch(call, ent_ops_element_count(out), sizeof(double));
    return out->data ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
}

static ent_code quantize_result(ent_ops_call *call, const ent_tensor *real, uint32_t scale_index,
                                uint32_t zero_index) {
    const ent_tensor *y = ent_ops_output(call, 0), *scale = ent_ops_input(call, scale_index),
                     *zero = ent_ops_input(call, zero_index);
    if (!scale || ent_ops_element_count(scale) != 1 || (zero && ent_ops_element_count(zero) != 1))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the result needs a scale and a zero point of one value");
    double divisor = ent_ops_load_f64(scale->data, scale->dtype, 0),
           shift = zero ? ent_ops_load_f64(zero->data, zero->dtype, 0) : 0;
    double low = y->dtype == ENT_DTYPE_I8 ? -128 : 0, high = y->dtype == ENT_DTYPE_I8 ? 127 : 255;
    for (int64_t i = 0; i < ent_ops_element_count(y); i++) {
        double q = nearbyint((double)((float)((const double *)real->data)[i] / (float)divisor)) + shift;
        ent_ops_store_f64(y->data, y->dtype, i, isnan(q) ? 0 : q < low ? low : q > high ? high : q);
    }
    return ENT_OK;
}

/* Runs a plain operator on other tensors, with this call's attributes and scratch. */
static ent_code run_plain(ent_ops_call *call, uint32_t op, const ent_tensor *const *inputs,
                          uint32_t input_count, ent_tensor *output) {
    ent_tensor *outputs[1] = {output};
    ent_ops_call inner = {.op = op,
                          .input_count = input_count,
                          .output_count = 1,
                          .attrs = call->attrs,
                          .inputs = inputs,
                          .outputs = outputs,
                          .memory = call->memory,
                          .error = call->error,
                          .blocks = call->blocks};
    ent_code code = ent_ops_binding_get(op)->evaluate(&inner);
    call->blocks = inner.blocks;
    return code;
}

static uint32_t plain_op(uint32_t op) {
    switch (op) {
    case ENT_OP_QLinearAdd:
        return ENT_OP_Add;
    case ENT_OP_QLinearMul:
        return ENT_OP_Mul;
    case ENT_OP_QLinearSigmoid:
        return ENT_OP_Sigmoid;
    case ENT_OP_QLinearLeakyRelu:
        return ENT_OP_LeakyRelu;
    case ENT_OP_QLinearSoftmax:
        return ENT_OP_Softmax;
    case ENT_OP_QLinearAveragePool:
        return ENT_OP_AveragePool;
    default:
        return ENT_OP_GlobalAveragePool;
    }
}

ent_code ent_ops_dims_qlinear_binary(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *b = ent_ops_input(call, 3);
    if (!b) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "B is missing");
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    return ent_ops_dims_merge(call, b->dims, b->rank, &outputs[0]);
}

ent_code ent_ops_qlinear_binary(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    ent_tensor a, b, y;
    const ent_tensor *inputs[2] = {&a, &b};
    ent_code code = real_values(call, 0, 1, 2, &a);
    if (code == ENT_OK) code = real_values(call, 3, 4, 5, &b);
    if (code == ENT_OK) code = result_room(call, &y);
    if (code == ENT_OK) code = run_plain(call, plain_op(call->op), inputs, 2, &y);
    return code == ENT_OK ? quantize_result(call, &y, 6, 7) : code;
}

static ent_code check_plain(ent_ops_call *call) {
    uint32_t axis = 0, rank = ent_ops_input(call, 0)->rank;
    if (ent_attrs_int(call->attrs, "channels_last", 0) != 0)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "channels_last is not supported");
    if (call->op != ENT_OP_QLinearSoftmax || ent_attrs_int(call->attrs, "opset", 13) >= 13) return ENT_OK;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), rank, &axis);
    if (code != ENT_OK || axis + 1 == rank) return code;
    return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the softmax over several axes of an opset below 13");
}

ent_code ent_ops_qlinear_unary(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    ent_tensor x, y;
    const ent_tensor *inputs[1] = {&x};
    ent_code code = check_plain(call);
    if (code == ENT_OK) code = real_values(call, 0, 1, 2, &x);
    if (code == ENT_OK) code = result_room(call, &y);
    if (code == ENT_OK) code = run_plain(call, plain_op(call->op), inputs, 1, &y);
    return code == ENT_OK ? quantize_result(call, &y, 3, 4) : code;
}

ent_code ent_ops_dims_qlinear_concat(ent_ops_call *call, ent_tensor *outputs) {
    uint32_t axis;
    if (call->input_count % 3 != 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the operands are no triples");
    const ent_tensor *first = ent_ops_input(call, 2); /* none is missing where any number is taken */
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", INT64_MIN), first->rank, &axis);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(first, &outputs[0]);
    for (uint32_t i = 5; i < call->input_count; i += 3) {
        const ent_tensor *x = ent_ops_input(call, i);
        bool fits = x->rank == first->rank && x->dtype == first->dtype;
        for (uint32_t k = 0; fits && k < x->rank; k++) fits = k == axis || x->dims[k] == first->dims[k];
        if (!fits) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u does not fit", i);
        outputs[0].dims[axis] += x->dims[axis];
    }
    bool bytes = first->dtype == ENT_DTYPE_I8 || first->dtype == ENT_DTYPE_U8;
    return bytes ? ENT_OK
                 : ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "an operand is %s",
                                  ent_dtype_name((ent_dtype)first->dtype));
}

ent_code ent_ops_qlinear_concat(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    uint32_t count = (call->input_count - 2) / 3;
    ent_tensor *parts = ent_ops_scratch(call, count, sizeof *parts), y;
    const ent_tensor **inputs = ent_ops_scratch(call, count, sizeof *inputs);
    if (!parts || !inputs) return ENT_CODE_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        inputs[i] = &parts[i];
        ent_code code = real_values(call, 2 + 3 * i, 3 + 3 * i, 4 + 3 * i, &parts[i]);
        if (code != ENT_OK) return code;
    }
    ent_code code = result_room(call, &y);
    if (code == ENT_OK) code = run_plain(call, ENT_OP_Concat, inputs, count, &y);
    return code == ENT_OK ? quantize_result(call, &y, 0, 1) : code;
}

/* ---- products with a float result ---- */

typedef struct float_product {
    const ent_tensor *b, *a_scale, *b_scale, *a_zero, *b_zero, *bias;
} float_product;

static float_product product_of(const ent_ops_call *call) {
    if (call->op == ENT_OP_DynamicQuantizeMatMul)
        return (float_product){.b = ent_ops_input(call, 1),
                               .b_scale = ent_ops_input(call, 2),
                               .b_zero = ent_ops_input(call, 3),
                               .bias = ent_ops_input(call, 4)};
    return (float_product){ent_ops_input(call, 1), ent_ops_input(call, 2), ent_ops_input(call, 3),
                           ent_ops_input(call, 4), ent_ops_input(call, 5), ent_ops_input(call, 6)};
}

static bool per_column(const ent_tensor *shared, const ent_tensor *b) {
    if (!shared || ent_ops_element_count(shared) == 1) return true;
    return shared->rank == 1 && b->rank >= 2 && shared->dims[0] == b->dims[b->rank - 1];
}

static double column_value(const ent_tensor *shared, int64_t column, double missing) {
    if (!shared) return missing;
    return ent_ops_load_f64(shared->data, shared->dtype, ent_ops_element_count(shared) == 1 ? 0 : column);
}

ent_code ent_ops_dims_float_product(ent_ops_call *call, ent_tensor *outputs) {
    float_product p = product_of(call);
    const uint32_t bytes = ENT_OPS_BIT(ENT_DTYPE_I8) | ENT_OPS_BIT(ENT_DTYPE_U8);
    ent_code code = ent_ops_dims_matmul(call, outputs);
    if (code != ENT_OK) return code;
    outputs[0].dtype = p.a_scale ? p.a_scale->dtype : ENT_DTYPE_F32;
    bool fits = ent_ops_dtype_in(p.b->dtype, bytes) && per_column(p.b_scale, p.b) &&
                per_column(p.b_zero, p.b) && per_column(p.bias, p.b) &&
                (!p.a_scale || ent_ops_element_count(p.a_scale) == 1) &&
                (!p.a_zero || ent_ops_element_count(p.a_zero) == 1);
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                 "B, a scale, a zero point or the bias does not fit");
}

/* A as whole numbers: as it is less its zero point, or quantized to the range it has, rounded as
 * DynamicQuantizeLinear does. */
static double centre_left(const ent_ops_call *call, const float_product *p, double *values, int64_t count) {
    if (call->op != ENT_OP_DynamicQuantizeMatMul) {
        for (int64_t i = 0; i < count; i++) values[i] -= column_value(p->a_zero, 0, 0);
        return column_value(p->a_scale, 0, 1);
    }
    double low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    float scale = (high > low ? (float)high - (float)low : 1.0f) / 255.0f;
    double zero = nearbyint((double)(0 - (float)low / scale));
    zero = zero > 0 ? zero < 255 ? zero : 255 : 0;
    for (int64_t i = 0; i < count; i++) {
        double q = nearbyint((double)((float)values[i] / scale)) + zero;
        values[i] = (q > 0 ? q < 255 ? q : 255 : 0) - zero;
    }
    return (double)scale;
}

static ent_tensor doubles(const ent_tensor *like, double *values) {
    ent_tensor t = *like;
    t.dtype = ENT_DTYPE_F64;
    t.data = values;
    t.size_bytes = (uint64_t)ent_ops_element_count(like) * sizeof(double);
    return t;
}

ent_code ent_ops_float_product(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    float_product p = product_of(call);
    double *left = ent_ops_values_f64(call, ent_ops_input(call, 0)), *right = ent_ops_values_f64(call, p.b);
    ent_tensor y;
    if (!left || !right) return ENT_CODE_OUT_OF_MEMORY;
    double scale = centre_left(call, &p, left, ent_ops_element_count(ent_ops_input(call, 0)));
    int64_t columns = p.b->rank >= 2 ? p.b->dims[p.b->rank - 1] : 1;
    for (int64_t i = 0; i < ent_ops_element_count(p.b); i++)
        right[i] -= column_value(p.b_zero, i % columns, 0);
    ent_tensor a = doubles(ent_ops_input(call, 0), left), b = doubles(p.b, right);
    const ent_tensor *inputs[2] = {&a, &b};
    ent_code code = result_room(call, &y);
    if (code == ENT_OK) code = run_plain(call, ENT_OP_MatMul, inputs, 2, &y);
    if (code != ENT_OK) return code;
    double *sums = y.data;
    for (int64_t i = 0; i < ent_ops_element_count(&y); i++)
        sums[i] = sums[i] * (scale * column_value(p.b_scale, i % columns, 1)) +
                  column_value(p.bias, i % columns, 0);
    ent_ops_result_f64(ent_ops_output(call, 0), sums);
    return ENT_OK;
}

/* ---- MatMulNBits ---- */

typedef struct packed {
    int64_t k, n, bits, block, blocks;
    const ent_tensor *b, *scales, *zeros;
} packed;

static ent_code packed_resolve(ent_ops_call *call, packed *out) {
    const ent_tensor *a = ent_ops_input(call, 0);
    *out = (packed){.k = ent_attrs_int(call->attrs, "K", 0),
                    .n = ent_attrs_int(call->attrs, "N", 0),
                    .bits = ent_attrs_int(call->attrs, "bits", 4),
                    .block = ent_attrs_int(call->attrs, "block_size", 0),
                    .b = ent_ops_input(call, 1),
                    .scales = ent_ops_input(call, 2),
                    .zeros = ent_ops_input(call, 3)};
    if (ent_ops_input(call, 4)) return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "g_idx is not supported");
    if (out->bits != 2 && out->bits != 4 && out->bits != 8)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "bits is %lld", (long long)out->bits);
    bool sane = out->k > 0 && out->n > 0 && out->k <= INT32_MAX && out->n <= INT32_MAX && out->block >= 16 &&
                out->block <= 1 << 20 && (out->block & (out->block - 1)) == 0;
    if (sane) out->blocks = (out->k + out->block - 1) / out->block;
    bool fits = sane && a->rank >= 1 && a->dims[a->rank - 1] == out->k && out->b->dtype == ENT_DTYPE_U8 &&
                ent_ops_element_count(out->b) == out->n * out->blocks * (out->block * out->bits / 8) &&
                ent_ops_element_count(out->scales) == out->n * out->blocks;
    int64_t zero_count = sane ? out->n * ((out->blocks * out->bits + 7) / 8) : 0;
    if (fits && out->zeros)
        fits = ent_ops_element_count(out->zeros) ==
               (out->zeros->dtype == ENT_DTYPE_U8 ? zero_count : out->n * out->blocks);
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                 "the packed weights do not fit K, N and the blocks");
}

ent_code ent_ops_dims_matmul_nbits(ent_ops_call *call, ent_tensor *outputs) {
    packed p;
    ent_code code = packed_resolve(call, &p);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dims[outputs[0].rank - 1] = p.n;
    return ENT_OK;
}

/* Number `index` of a row of packed ones, the lowest bits of a byte first. */
static double unpack(const uint8_t *row, int64_t index, int64_t bits) {
    int64_t bit = index * bits;
    return (double)(row[bit / 8] >> (bit % 8) & ((1 << bits) - 1));
}

static double packed_weight(const packed *p, int64_t row, int64_t k) {
    const uint8_t *bytes = p->b->data;
    int64_t block = k / p->block, row_bytes = p->blocks * p->block * p->bits / 8;
    double zero = (double)(1 << (p->bits - 1));
    if (p->zeros && p->zeros->dtype == ENT_DTYPE_U8)
        zero =
            unpack((const uint8_t *)p->zeros->data + row * ((p->blocks * p->bits + 7) / 8), block, p->bits);
    else if (p->zeros)
        zero = ent_ops_load_f64(p->zeros->data, p->zeros->dtype, row * p->blocks + block);
    double scale = ent_ops_load_f64(p->scales->data, p->scales->dtype, row * p->blocks + block);
    return (unpack(bytes + row * row_bytes, k, p->bits) - zero) * scale;
}

ent_code ent_ops_matmul_nbits(ent_ops_call *call) {
    const ent_tensor *a = ent_ops_input(call, 0), *y = ent_ops_output(call, 0),
                     *bias = ent_ops_input(call, 5);
    packed p;
    ent_code code = packed_resolve(call, &p);
    if (code != ENT_OK || !y) return code;
    if (bias && ent_ops_element_count(bias) != p.n)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the bias does not fit");
    int64_t rows = ent_ops_element_count(a) / p.k;
    double *left = ent_ops_values_f64(call, a), *weights = ent_ops_scratch(call, p.k, sizeof *weights),
           *result = ent_ops_scratch(call, rows * p.n, sizeof *result);
    if (!left || !weights || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t n = 0; n < p.n; n++) {
        for (int64_t k = 0; k < p.k; k++) weights[k] = packed_weight(&p, n, k);
        for (int64_t i = 0; i < rows; i++) {
            double sum = bias ? ent_ops_load_f64(bias->data, bias->dtype, n) : 0;
            for (int64_t k = 0; k < p.k; k++) sum += left[i * p.k + k] * weights[k];
            result[i * p.n + n] = sum;
        }
    }
    ent_ops_result_f64(y, result);
    return ENT_OK;
}
