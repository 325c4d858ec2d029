/* Bodies of QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: per tensor and per axis, integers of
 * 8 bits and more. Blocks, 4-bit integers and 8-bit floats stay one leaf. Source of the formulas: the ONNX
 * schemas (QuantizeLinear 25, DequantizeLinear 25, DynamicQuantizeLinear 11). */
#include "core/graph/decompose.h"

static const ent_value *value_of(const ent_body *body, uint32_t value) {
    return ent_module_value(body->module, value);
}

static bool integer_range(uint32_t dtype, double *out_low, double *out_high) {
    switch (dtype) {
    case ENT_DTYPE_I8:
        return *out_low = -128, *out_high = 127, true;
    case ENT_DTYPE_U8:
        return *out_low = 0, *out_high = 255, true;
    case ENT_DTYPE_I16:
        return *out_low = -32768, *out_high = 32767, true;
    case ENT_DTYPE_U16:
        return *out_low = 0, *out_high = 65535, true;
    default:
        return false;
    }
}

/* Per tensor or, with *out_axis, per index of an axis. False for blocks and what does not fit. */
static bool granularity(const ent_body *body, uint32_t *out_axis) {
    const ent_value *x = value_of(body, ent_body_input(body, 0)),
                    *scale = value_of(body, ent_body_input(body, 1));
    int64_t axis = ent_attrs_int(body->node.attrs, "axis", 1), rank = (int64_t)x->rank;
    uint32_t zero = ent_body_input(body, 2);
    if (scale->rank > 1 || ent_attrs_int(body->node.attrs, "block_size", 0) != 0 ||
        (zero != ENT_ID_NONE && value_of(body, zero)->rank > 1))
        return false;
    bool single = scale->rank == 0 || scale->dims[0] == 1;
    if (axis < 0) axis += rank;
    if (single || axis < 0 || axis >= rank) axis = rank - 1;
    *out_axis = (uint32_t)axis;
    return rank > 0 || scale->rank == 0;
}

/* A scale or zero point as `dtype`, shaped so that it meets `axis` of `rank` axes. A constant needs no node
 * for that. */
static uint32_t spread(ent_body *body, uint32_t value, uint32_t dtype, uint32_t axis, uint32_t rank) {
    const ent_value *v = value_of(body, value);
    double number;
    if (body->status) return value;
    if (ent_value_scalar(body->module, value, &number)) return ent_body_scalar(body, dtype, number);
    if (v->rank == 0 || v->dims[0] == 1 || axis + 1 == rank) return ent_body_cast(body, value, dtype);
    int64_t axes[ENT_MAX_RANK], dims[ENT_MAX_RANK];
    for (uint32_t i = 0; axis + i < rank; i++) {
        axes[i] = i + 1;
        dims[i] = i ? 1 : v->dims[0];
    }
    if (v->constant && v->dtype == dtype)
        return ent_module_add_constant(body->module, body->node.graph, NULL, dtype, rank - axis, dims,
                                       v->constant->tensor.data, v->constant->tensor.size_bytes, true);
    uint32_t cast = ent_body_cast(body, value, dtype);
    return ent_body_binary(body, ENT_OP_Unsqueeze, cast, ent_body_i64s(body, axes, rank - axis - 1));
}

static bool is_zero(const ent_body *body, uint32_t value) {
    double number;
    return value == ENT_ID_NONE || (ent_value_scalar(body->module, value, &number) && number == 0);
}

/* round(x), + zero unless NONE, cut to the range of dtype. */
static uint32_t settle(ent_body *body, uint32_t x, uint32_t wide, uint32_t zero, uint32_t dtype,
                       uint32_t result) {
    double low = 0, high = 0;
    integer_range(dtype, &low, &high);
    uint32_t y = ent_body_unary(body, ENT_OP_Round, x);
    y = ent_body_cast(body, y, wide);
    if (zero != ENT_ID_NONE) y = ent_body_binary(body, ENT_OP_Add, y, zero);
    uint32_t least = ent_body_scalar(body, wide, low), most = ent_body_scalar(body, wide, high);
    y = ent_body_add(body, ENT_OP_Clip, ENT_NO_ATTRS, y, least, most, ENT_ID_NONE);
    return ent_body_cast_to(body, y, dtype, result);
}

/* The division's precision is that of `precision` or of the scale; the zero point is added in f32 or wider.
 */
bool ent_decompose_QuantizeLinear(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), scale = ent_body_input(body, 1), zero = ent_body_input(body, 2),
             axis;
    uint32_t output = ent_body_output(body, 0), dtype = value_of(body, output)->dtype,
             rank = value_of(body, x)->rank;
    uint32_t precision =
        (uint32_t)ent_attrs_int(body->node.attrs, "precision", (int64_t)value_of(body, scale)->dtype);
    double low, high;
    if (precision == ENT_DTYPE_NONE) precision = value_of(body, scale)->dtype;
    if (!integer_range(dtype, &low, &high) || !ent_dtype_is_float(precision) ||
        !ent_dtype_is_float(value_of(body, scale)->dtype) || !granularity(body, &axis))
        return false;
    uint32_t wide = precision == ENT_DTYPE_F64 ? ENT_DTYPE_F64 : ENT_DTYPE_F32;
    uint32_t divisor = spread(body, scale, precision, axis, rank);
    zero = is_zero(body, zero) ? ENT_ID_NONE : spread(body, zero, wide, axis, rank);
    x = ent_body_cast(body, x, precision);
    settle(body, ent_body_binary(body, ENT_OP_Div, x, divisor), wide, zero, dtype, output);
    return true;
}

uint32_t ent_body_quantize(ent_body *body, uint32_t x, uint32_t scale, uint32_t zero, uint32_t dtype,
                           uint32_t result) {
    uint32_t f32 = ENT_DTYPE_F32, divisor = spread(body, scale, f32, 0, 1);
    zero = is_zero(body, zero) ? ENT_ID_NONE : spread(body, zero, f32, 0, 1);
    return settle(body, ent_body_binary(body, ENT_OP_Div, x, divisor), f32, zero, dtype, result);
}

uint32_t ent_body_centre(ent_body *body, uint32_t x, uint32_t zero) {
    x = ent_body_cast(body, x, ENT_DTYPE_F32);
    if (is_zero(body, zero)) return x;
    return ent_body_binary(body, ENT_OP_Sub, x, spread(body, zero, ENT_DTYPE_F32, 0, 1));
}

uint32_t ent_body_dequantize(ent_body *body, uint32_t x, uint32_t scale, uint32_t zero) {
    x = ent_body_centre(body, x, zero);
    return ent_body_binary(body, ENT_OP_Mul, x, spread(body, scale, ENT_DTYPE_F32, 0, 1));
}

bool ent_decompose_DequantizeLinear(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), scale = ent_body_input(body, 1), zero = ent_body_input(body, 2),
             axis;
    uint32_t output = ent_body_output(body, 0), dtype = value_of(body, output)->dtype,
             rank = value_of(body, x)->rank;
    uint32_t from = value_of(body, x)->dtype;
    double low, high;
    if ((!integer_range(from, &low, &high) && from != ENT_DTYPE_I32) || !ent_dtype_is_float(dtype) ||
        !ent_dtype_is_float(value_of(body, scale)->dtype) || !granularity(body, &axis))
        return false;
    bool doubles = dtype == ENT_DTYPE_F64 || value_of(body, scale)->dtype == ENT_DTYPE_F64;
    uint32_t wide = doubles ? ENT_DTYPE_F64 : ENT_DTYPE_F32;
    uint32_t factor = spread(body, scale, wide, axis, rank);
    zero = is_zero(body, zero) ? ENT_ID_NONE : spread(body, zero, wide, axis, rank);
    x = ent_body_cast(body, x, wide);
    if (zero != ENT_ID_NONE) x = ent_body_binary(body, ENT_OP_Sub, x, zero);
    uint32_t last = dtype == wide ? output : ENT_ID_NONE;
    x = ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, x, factor, ENT_ID_NONE, last);
    if (dtype != wide) ent_body_cast_to(body, x, dtype, output);
    return true;
}

/* The range is stretched to hold 0; a range of nothing has scale 1 / 255. *scale and *zero: values that hold
 * them, or NONE. */
uint32_t ent_body_dynamic_quantize(ent_body *body, uint32_t x, uint32_t result, uint32_t *scale,
                                   uint32_t *zero) {
    ent_attr keep = ent_attr_int("keepdims", 0);
    ent_attrs attrs = ent_attrs_make(body->module, &keep, 1);
    uint32_t f32 = ENT_DTYPE_F32, none = ENT_ID_NONE, nought = ent_body_scalar(body, f32, 0);
    uint32_t one = ent_body_scalar(body, f32, 1), steps = ent_body_scalar(body, f32, 255);
    uint32_t low = ent_body_add(body, ENT_OP_ReduceMin, attrs, x, none, none, none);
    uint32_t high = ent_body_add(body, ENT_OP_ReduceMax, attrs, x, none, none, none);
    low = ent_body_binary(body, ENT_OP_Min, low, nought);
    high = ent_body_binary(body, ENT_OP_Max, high, nought);
    uint32_t range = ent_body_binary(body, ENT_OP_Sub, high, low);
    uint32_t empty = ent_body_binary(body, ENT_OP_Equal, high, low);
    range = ent_body_add(body, ENT_OP_Where, ENT_NO_ATTRS, empty, one, range, none);
    *scale = ent_body_add(body, ENT_OP_Div, ENT_NO_ATTRS, range, steps, none, *scale);
    uint32_t point = ent_body_binary(body, ENT_OP_Div, low, *scale);
    point = ent_body_binary(body, ENT_OP_Sub, nought, point);
    *zero = settle(body, point, f32, none, ENT_DTYPE_U8, *zero);
    uint32_t added = ent_body_cast(body, *zero, f32);
    return settle(body, ent_body_binary(body, ENT_OP_Div, x, *scale), f32, added, ENT_DTYPE_U8, result);
}

bool ent_decompose_DynamicQuantizeLinear(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), scale = ent_body_output(body, 1), zero = ent_body_output(body, 2);
    if (value_of(body, x)->dtype != ENT_DTYPE_F32) return false;
    ent_body_dynamic_quantize(body, x, ent_body_output(body, 0), &scale, &zero);
    return true;
}
