/* QuantizeLinear and DequantizeLinear: one scale for all, one per index of an axis, or one per block along an
 * axis. */
#include "core/ops/internal.h"

#include <math.h>

/* Where each element's scale and zero point lie. */
typedef struct scaling {
    const ent_tensor *x, *y, *scale, *zero_point; /* zero_point can be NULL */
    uint32_t axis;
    int64_t block; /* elements of the axis that share a scale; 0: one scale for all */
    bool saturate;
    uint32_t precision; /* of the division; NONE: f32 */
} scaling;

static ent_code scaling_resolve(ent_ops_call *call, scaling *s) {
    *s = (scaling){.x = ent_ops_input(call, 0),
                   .y = ent_ops_output(call, 0),
                   .scale = ent_ops_input(call, 1),
                   .zero_point = ent_ops_input(call, 2),
                   .saturate = ent_attrs_int(call->attrs, "saturate", 1) != 0};
    const ent_tensor *x = s->x, *scale = s->scale, *zero = s->zero_point;
    bool alike = !zero || zero->rank == scale->rank;
    for (uint32_t i = 0; zero && alike && i < zero->rank; i++) alike = zero->dims[i] == scale->dims[i];
    if (!alike && !(ent_ops_element_count(scale) == 1 && ent_ops_element_count(zero) == 1))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "scale and zero point have different dims");
    if (!ent_ops_dtype_in(scale->dtype, ENT_OPS_FLOATS | ENT_OPS_BIT(ENT_DTYPE_F8E8M0)))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the scale must be floating point");
    int64_t block = ent_attrs_int(call->attrs, "block_size", 0);
    if (scale->rank == 0 || (ent_ops_element_count(scale) == 1 && block == 0)) return ENT_OK;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 1), x->rank, &s->axis);
    if (code != ENT_OK) return code;
    int64_t extent = x->dims[s->axis];
    s->block = 1;
    if (scale->rank == 1 && block == 0) {
        if (scale->dims[0] == extent) return ENT_OK;
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%lld scales for extent %lld",
                              (long long)scale->dims[0], (long long)extent);
    }
    s->block = block;
    bool fits = block > 0 && scale->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = scale->dims[i] == (i == s->axis ? extent / block + (extent % block != 0) : x->dims[i]);
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                 "the scale's dims do not fit blocks of %lld", (long long)block);
}

/* The value of the scale or the zero point that goes with an element of x. */
static double shared_value(const scaling *s, const ent_tensor *tensor, const int64_t *index) {
    int64_t own[ENT_MAX_RANK] = {0};
    for (uint32_t i = 0; s->block > 0 && i < tensor->rank; i++) {
        uint32_t axis = tensor->rank == 1 ? s->axis : i;
        own[i] = axis == s->axis ? index[axis] / s->block : index[axis];
    }
    return ent_ops_load_f64(tensor->data, tensor->dtype, ent_ops_offset(tensor, own));
}

static double zero_point(const scaling *s, const int64_t *index) {
    return s->zero_point ? shared_value(s, s->zero_point, index) : 0;
}

static void bounds_of(uint32_t dtype, double *out_low, double *out_high) {
    double span = ldexp(1, (int)ent_dtype_bits((ent_dtype)dtype));
    bool is_signed = dtype == ENT_DTYPE_I8 || dtype == ENT_DTYPE_I16 || dtype == ENT_DTYPE_I32 ||
                     dtype == ENT_DTYPE_I4 || dtype == ENT_DTYPE_I2;
    *out_low = is_signed ? -span / 2 : 0;
    *out_high = is_signed ? span / 2 - 1 : span - 1;
}

/* The quotient is rounded in the precision of the division before it is rounded to an integer: ties fall as
 * they do there. */
static double quotient(const scaling *s, double x, double scale) {
    uint64_t room = 0;
    if (s->precision == ENT_DTYPE_F64) return x / scale;
    double exact = (double)(float)(x / scale);
    if (s->precision != ENT_DTYPE_F16 && s->precision != ENT_DTYPE_BF16) return exact;
    ent_ops_store_f64(&room, s->precision, 0, x);
    x = ent_ops_load_f64(&room, s->precision, 0);
    ent_ops_store_f64(&room, s->precision, 0, scale);
    scale = ent_ops_load_f64(&room, s->precision, 0);
    ent_ops_store_f64(&room, s->precision, 0, (double)(float)(x / scale));
    return ent_ops_load_f64(&room, s->precision, 0);
}

static void quantize_element(const scaling *s, const int64_t *index, double low, double high) {
    double x = ent_ops_load_f64(s->x->data, s->x->dtype, ent_ops_offset(s->x, index));
    double scale = shared_value(s, s->scale, index);
    double q = quotient(s, x, scale);
    int64_t to = ent_ops_offset(s->y, index);
    if (ent_ops_dtype_in(s->y->dtype, ENT_OPS_FLOAT8 | ENT_OPS_BIT(ENT_DTYPE_F4E2M1))) {
        uint32_t code = ent_ops_float_encode(s->y->dtype, q + zero_point(s, index), s->saturate);
        ent_ops_code_store(s->y->data, s->y->dtype, to, code);
        return;
    }
    q = nearbyint(q) + zero_point(s, index);
    ent_ops_store_f64(s->y->data, s->y->dtype, to, isnan(q) ? 0 : q < low ? low : q > high ? high : q);
}

static void dequantize_element(const scaling *s, const int64_t *index) {
    double x = ent_ops_load_f64(s->x->data, s->x->dtype, ent_ops_offset(s->x, index));
    double scale = shared_value(s, s->scale, index);
    ent_ops_store_f64(s->y->data, s->y->dtype, ent_ops_offset(s->y, index),
                      (x - zero_point(s, index)) * scale);
}

static void each_element(const scaling *s, bool quantizes) {
    int64_t index[ENT_MAX_RANK] = {0};
    double low = 0, high = 0;
    bounds_of(s->y->dtype, &low, &high);
    if (ent_ops_element_count(s->x) == 0) return;
    for (;;) {
        if (quantizes)
            quantize_element(s, index, low, high);
        else
            dequantize_element(s, index);
        uint32_t axis = s->x->rank;
        while (axis-- > 0) {
            if (++index[axis] < s->x->dims[axis]) break;
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) return;
    }
}

ent_code ent_ops_dims_quantize(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *zero = ent_ops_input(call, 2);
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    uint32_t missing = zero ? zero->dtype : ENT_DTYPE_U8;
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "output_dtype", missing);
    const uint32_t allowed = ENT_OPS_SUB_BYTE | ENT_OPS_FLOAT8 | ENT_OPS_BIT(ENT_DTYPE_I8) |
                             ENT_OPS_BIT(ENT_DTYPE_U8) | ENT_OPS_BIT(ENT_DTYPE_I16) |
                             ENT_OPS_BIT(ENT_DTYPE_U16);
    if (!ent_ops_dtype_in(outputs[0].dtype, allowed) || (zero && zero->dtype != outputs[0].dtype))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "cannot quantize to %s",
                              ent_dtype_name((ent_dtype)outputs[0].dtype));
    return ENT_OK;
}

ent_code ent_ops_quantize(ent_ops_call *call) {
    scaling s;
    ent_code code = scaling_resolve(call, &s);
    s.precision = ent_ops_attr_dtype(call->attrs, "precision", s.scale->dtype);
    if (code == ENT_OK && s.y) each_element(&s, true);
    return code;
}

ent_code ent_ops_dims_dequantize(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *scale = ent_ops_input(call, 1), *zero = ent_ops_input(call, 2);
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "output_dtype", scale->dtype);
    if (!ent_ops_dtype_in(outputs[0].dtype, ENT_OPS_FLOATS))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "cannot dequantize to %s",
                              ent_dtype_name((ent_dtype)outputs[0].dtype));
    if (zero && zero->dtype != ent_ops_input(call, 0)->dtype)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the zero point has another dtype than the input");
    return ENT_OK;
}

ent_code ent_ops_dequantize(ent_ops_call *call) {
    scaling s;
    ent_code code = scaling_resolve(call, &s);
    if (code == ENT_OK && s.y) each_element(&s, false);
    return code;
}
