/* ConvInteger, MatMulInteger, QLinearConv, QLinearMatMul, DynamicQuantizeLinear. The zero points are
 * subtracted, then Conv or MatMul runs on doubles, which hold every sum of such products exactly. Formulas:
 * the ONNX schemas. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

/* The inputs of such an operator by number. The plain ones have no scales and no result zero point. */
typedef struct operands {
    const ent_tensor *a, *a_scale, *a_zero, *b, *b_scale, *b_zero, *y_scale, *y_zero, *bias;
    uint32_t a_axis, b_axis; /* the axis that a list of zero points or scales goes along */
    bool convolves;
} operands;

static operands operands_of(const ent_ops_call *call) {
    bool scaled = call->op == ENT_OP_QLinearConv || call->op == ENT_OP_QLinearMatMul;
    operands o = {.a = ent_ops_input(call, 0),
                  .convolves = call->op == ENT_OP_QLinearConv || call->op == ENT_OP_ConvInteger};
    if (scaled) {
        o.a_scale = ent_ops_input(call, 1), o.a_zero = ent_ops_input(call, 2);
        o.b = ent_ops_input(call, 3), o.b_scale = ent_ops_input(call, 4), o.b_zero = ent_ops_input(call, 5);
        o.y_scale = ent_ops_input(call, 6), o.y_zero = ent_ops_input(call, 7);
        o.bias = o.convolves ? ent_ops_input(call, 8) : NULL;
    } else {
        o.b = ent_ops_input(call, 1), o.a_zero = ent_ops_input(call, 2), o.b_zero = ent_ops_input(call, 3);
    }
    o.a_axis = o.convolves || o.a->rank < 2 ? 0 : o.a->rank - 2;
    o.b_axis = o.convolves || o.b->rank < 1 ? 0 : o.b->rank - 1;
    return o;
}

/* A scale or zero point that holds one value, one an index of `axis`, or broadcasts. */
static bool shares(const ent_tensor *shared, const int64_t *dims, uint32_t rank, uint32_t axis) {
    if (!shared || ent_ops_element_count(shared) == 1) return true;
    if (shared->rank == 1) return axis < rank && shared->dims[0] == dims[axis];
    bool fits = shared->rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++) fits = shared->dims[i] == 1 || shared->dims[i] == dims[i];
    return fits;
}

static double shared_at(const ent_tensor *shared, const int64_t *dims, uint32_t rank, uint32_t axis,
                        int64_t flat) {
    if (ent_ops_element_count(shared) == 1) return ent_ops_load_f64(shared->data, shared->dtype, 0);
    int64_t at = 0, step = 1;
    for (uint32_t i = rank; i-- > 0; flat /= dims[i]) {
        if (shared->rank == 1) {
            if (i == axis) at = flat % dims[i];
        } else if (shared->dims[i] != 1) {
            at += flat % dims[i] * step;
            step *= shared->dims[i];
        }
    }
    return ent_ops_load_f64(shared->data, shared->dtype, at);
}

static ent_code check(ent_ops_call *call, const operands *o) {
    bool zero_types =
        (!o->a_zero || o->a_zero->dtype == o->a->dtype) && (!o->b_zero || o->b_zero->dtype == o->b->dtype);
    if (!zero_types)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "a zero point has another dtype than its tensor");
    uint32_t kinds = ENT_OPS_BIT(ENT_DTYPE_I8) | ENT_OPS_BIT(ENT_DTYPE_U8);
    if (call->op == ENT_OP_QLinearMatMul) kinds |= ENT_OPS_FLOAT8;
    if (!ent_ops_dtype_in(o->b->dtype, kinds) || (o->y_zero && !ent_ops_dtype_in(o->y_zero->dtype, kinds)))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "no product of %s and %s to %s",
                              ent_dtype_name((ent_dtype)o->a->dtype), ent_dtype_name((ent_dtype)o->b->dtype),
                              o->y_zero ? ent_dtype_name((ent_dtype)o->y_zero->dtype) : "i32");
    bool fits = shares(o->a_zero, o->a->dims, o->a->rank, o->a_axis) &&
                shares(o->b_zero, o->b->dims, o->b->rank, o->b_axis);
    if (o->convolves)
        fits = fits && (!o->a_zero || ent_ops_element_count(o->a_zero) == 1) &&
               (!o->a_scale || ent_ops_element_count(o->a_scale) == 1);
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                 "a zero point or scale does not fit its tensor");
}

static ent_tensor doubles_like(const ent_tensor *tensor, void *data) {
    ent_tensor plain = *tensor;
    plain.dtype = ENT_DTYPE_F64;
    plain.layout = ent_layout_plain(tensor->rank);
    plain.data = data;
    plain.size_bytes = (uint64_t)ent_ops_element_count(tensor) * sizeof(double);
    return plain;
}

/* tensor - zero point, as doubles. */
static ent_code centre(ent_ops_call *call, const ent_tensor *tensor, const ent_tensor *zero, uint32_t axis,
                       ent_tensor *out) {
    double *values = ent_ops_values_f64(call, tensor);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; zero && i < ent_ops_element_count(tensor); i++)
        values[i] -= shared_at(zero, tensor->dims, tensor->rank, axis, i);
    *out = doubles_like(tensor, values);
    return ENT_OK;
}

/* Runs Conv or MatMul on other tensors, with this call's attributes and scratch. out_dims: only the dims
 * rule. */
static ent_code inner_call(ent_ops_call *call, bool convolves, const ent_tensor *a, const ent_tensor *b,
                           const ent_tensor *bias, ent_tensor *y, bool only_dims) {
    const ent_tensor *inputs[3] = {a, b, bias};
    ent_tensor *outputs[1] = {y};
    ent_ops_call inner = {.op = call->op,
                          .input_count = 3,
                          .output_count = 1,
                          .attrs = call->attrs,
                          .inputs = inputs,
                          .outputs = only_dims ? NULL : outputs,
                          .memory = call->memory,
                          .error = call->error,
                          .blocks = call->blocks};
    ent_code code;
    if (only_dims)
        code = convolves ? ent_ops_dims_conv(&inner, y) : ent_ops_dims_matmul(&inner, y);
    else
        code = convolves ? ent_ops_conv(&inner) : ent_ops_matmul(&inner);
    call->blocks = inner.blocks;
    return code;
}

ent_code ent_ops_dims_integer(ent_ops_call *call, ent_tensor *outputs) {
    operands o = operands_of(call);
    ent_code code = check(call, &o);
    if (code == ENT_OK) code = inner_call(call, o.convolves, o.a, o.b, o.bias, &outputs[0], true);
    outputs[0].dtype = o.y_zero ? o.y_zero->dtype : ENT_DTYPE_I32;
    return code;
}

/* The sums of products as doubles, in scratch. */
static ent_code accumulate(ent_ops_call *call, const operands *o, ent_tensor *out) {
    const ent_tensor *y = ent_ops_output(call, 0);
    ent_tensor a, b;
    ent_code code = centre(call, o->a, o->a_zero, o->a_axis, &a);
    if (code == ENT_OK) code = centre(call, o->b, o->b_zero, o->b_axis, &b);
    if (code != ENT_OK) return code;
    double *sums = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *sums);
    if (!sums) return ENT_CODE_OUT_OF_MEMORY;
    *out = doubles_like(y, sums);
    return inner_call(call, o->convolves, &a, &b, o->bias, out, false);
}

ent_code ent_ops_integer_product(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    operands o = operands_of(call);
    ent_tensor sums;
    ent_code code = accumulate(call, &o, &sums);
    if (code != ENT_OK) return code;
    for (int64_t i = 0; i < ent_ops_element_count(y); i++) /* 32-bit sums wrap */
        ent_ops_store_i64(y->data, y->dtype, i, (int64_t)((const double *)sums.data)[i]);
    return ENT_OK;
}

/* value in the precision of a scale's dtype. */
static double rounded(double value, uint32_t dtype) {
    uint64_t room = 0;
    ent_ops_store_f64(&room, dtype, 0, value);
    return ent_ops_load_f64(&room, dtype, 0);
}

/* round(sum * (a_scale * b_scale / y_scale)) + zero point; the factor in the precision of the scales, the
 * product in f32; 8-bit floats round once, to their own format. */
static ent_code requantize(ent_ops_call *call, const operands *o, const double *sums) {
    const ent_tensor *y = ent_ops_output(call, 0);
    uint32_t rank = y->rank, row_axis = o->convolves || rank < 2 ? 0 : rank - 2,
             column_axis = o->convolves ? 1 : rank - 1;
    bool fits = ent_ops_element_count(o->y_scale) == 1 && ent_ops_element_count(o->y_zero) == 1 &&
                shares(o->a_scale, y->dims, rank, row_axis) && shares(o->b_scale, y->dims, rank, column_axis);
    if (!fits)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED,
                              "the scales are none of one value, per row and per column");
    double y_scale = ent_ops_load_f64(o->y_scale->data, o->y_scale->dtype, 0),
           zero = ent_ops_load_f64(o->y_zero->data, o->y_zero->dtype, 0);
    double low = y->dtype == ENT_DTYPE_I8 ? -128 : 0, high = y->dtype == ENT_DTYPE_I8 ? 127 : 255;
    bool narrow = ent_ops_dtype_in(y->dtype, ENT_OPS_FLOAT8);
    for (int64_t i = 0; i < ent_ops_element_count(y); i++) {
        double factor = shared_at(o->a_scale, y->dims, rank, row_axis, i) *
                        shared_at(o->b_scale, y->dims, rank, column_axis, i);
        factor = rounded(rounded(factor, o->y_scale->dtype) / y_scale, o->y_scale->dtype);
        double value = (double)(float)(sums[i] * factor);
        if (narrow) {
            ent_ops_store_f64(y->data, y->dtype, i, value + zero);
            continue;
        }
        value = nearbyint(value) + zero;
        ent_ops_store_f64(y->data, y->dtype, i,
                          isnan(value)   ? 0
                          : value < low  ? low
                          : value > high ? high
                                         : value);
    }
    return ENT_OK;
}

ent_code ent_ops_qlinear_product(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    operands o = operands_of(call);
    ent_tensor sums;
    ent_code code = accumulate(call, &o, &sums);
    return code == ENT_OK ? requantize(call, &o, sums.data) : code;
}

ent_code ent_ops_dims_dynamic_quantize(ent_ops_call *call, ent_tensor *outputs) {
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dtype = ENT_DTYPE_U8;
    for (uint32_t i = 1; i < call->output_count; i++) {
        outputs[i].rank = 0;
        outputs[i].dtype = i == 1 ? ENT_DTYPE_F32 : ENT_DTYPE_U8;
    }
    return ENT_OK;
}

/* The range is stretched to hold 0; a range of nothing has scale 1 / 255. All in f32. */
ent_code ent_ops_dynamic_quantize(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    const float *values = x->data;
    float low = 0, high = 0;
    for (int64_t i = 0; i < ent_ops_element_count(x); i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    float scale = (high == low ? 1.0f : high - low) / 255.0f, zero = nearbyintf(0 - low / scale);
    zero = zero > 0 ? zero < 255 ? zero : 255 : 0;
    double scale_value = (double)scale, zero_value = (double)zero;
    for (int64_t i = 0; y && i < ent_ops_element_count(x); i++) {
        float q = nearbyintf(values[i] / scale) + zero;
        ((uint8_t *)y->data)[i] = q > 0 ? q < 255 ? (uint8_t)q : 255 : 0;
    }
    ent_ops_result_f64(ent_ops_output(call, 1), &scale_value);
    ent_ops_result_f64(ent_ops_output(call, 2), &zero_value);
    return ENT_OK;
}
