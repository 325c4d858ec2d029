/* Loads and stores of single elements and runs of them, for every numeric dtype. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

/* A float format narrower than f32. A code is sign | exponent | mantissa; codes are compared without their
 * sign. */
typedef struct float_format {
    uint32_t width, mantissa_bits;
    int32_t bias;
    uint32_t largest;  /* code of the largest finite value */
    uint32_t infinity; /* 0: the format has none */
    uint32_t nan;      /* with its sign bit; 0: the format has none */
    bool negative_zero;
} float_format;

static float_format format_of(uint32_t dtype) {
    switch (dtype) {
    case ENT_DTYPE_F16:
        return (float_format){16, 10, 15, 0x7bff, 0x7c00, 0x7e00, true};
    case ENT_DTYPE_BF16:
        return (float_format){16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, true};
    case ENT_DTYPE_F8E4M3FN:
        return (float_format){8, 3, 7, 0x7e, 0, 0x7f, true};
    case ENT_DTYPE_F8E4M3FNUZ:
        return (float_format){8, 3, 8, 0x7f, 0, 0x80, false};
    case ENT_DTYPE_F8E5M2:
        return (float_format){8, 2, 15, 0x7b, 0x7c, 0x7e, true};
    case ENT_DTYPE_F8E5M2FNUZ:
        return (float_format){8, 2, 16, 0x7f, 0, 0x80, false};
    default:
        return (float_format){4, 1, 1, 0x7, 0, 0, true};
    }
}

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounded to nearest, ties to even, in a format without an upper end. */
static uint64_t round_code(double value, const float_format *format) {
    uint64_t bits = bits_of(value) & 0x7fffffffffffffffu;
    int64_t exponent = (int64_t)(bits >> 52);
    if (exponent == 0) return 0;
    uint64_t mantissa = (bits & 0xfffffffffffffu) | 0x10000000000000u;
    int64_t biased = exponent - 1023 + format->bias;
    int64_t shift = 52 - (int64_t)format->mantissa_bits;
    if (biased <= 0) {
        shift += 1 - biased;
        biased = 1;
    }
    if (shift > 54) return 0;
    uint64_t half = (uint64_t)1 << (shift - 1);
    uint64_t kept = mantissa >> shift;
    uint64_t dropped = mantissa & ((half << 1) - 1);
    if (dropped > half || (dropped == half && (kept & 1))) kept++;
    return kept + ((uint64_t)(biased - 1) << format->mantissa_bits);
}

uint32_t ent_ops_e8m0_encode(double value, bool saturate, char mode) {
    if (isnan(value)) return 0xff;
    int exponent = 0;
    double fraction = frexp(fabs(value), &exponent); /* in [0.5, 1) */
    if (isinf(value)) return saturate ? 0xfe : 0xff;
    if (fraction == 0) return 0;
    int power = exponent - 1;
    bool exact = fraction == 0.5;
    if (!exact && (mode == 'u' || (mode == 'n' && fraction >= 0.75))) power++;
    if (power > 127) return saturate ? 0xfe : 0xff;
    return power < -127 ? 0 : (uint32_t)(power + 127);
}

uint32_t ent_ops_float_encode(uint32_t dtype, double value, bool saturate) {
    if (dtype == ENT_DTYPE_F8E8M0) return ent_ops_e8m0_encode(value, saturate, 'u');
    float_format format = format_of(dtype);
    uint32_t sign = signbit(value) ? 1u << (format.width - 1) : 0;
    if (isnan(value)) {
        if (!format.negative_zero) return format.nan;
        return format.nan ? format.nan | sign : 0x8; /* no NaN: minus zero, as ONNX casts it */
    }
    uint64_t code = isinf(value) ? UINT64_MAX : round_code(value, &format);
    if (code > format.largest) {
        if (format.width == 4 || (saturate && format.width == 8))
            code = format.largest;
        else if (format.infinity)
            code = format.infinity;
        else
            return format.negative_zero ? format.nan | sign : format.nan;
    }
    if (code == 0 && !format.negative_zero) return 0;
    return (uint32_t)code | sign;
}

static double float_decode(uint32_t dtype, uint32_t code) {
    if (dtype == ENT_DTYPE_F8E8M0) return code == 0xff ? NAN : ldexp(1, (int)code - 127);
    float_format format = format_of(dtype);
    uint32_t sign_bit = 1u << (format.width - 1);
    uint32_t magnitude = code & (sign_bit - 1);
    uint64_t sign = code & sign_bit ? (uint64_t)1 << 63 : 0;
    if (!format.negative_zero && code == format.nan) return NAN;
    if (magnitude > format.largest)
        return double_of(sign | (magnitude == format.infinity ? 0x7ff0000000000000u : 0x7ff8000000000000u));
    uint64_t exponent = magnitude >> format.mantissa_bits;
    uint64_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    if (exponent == 0) {
        double value = ldexp((double)mantissa, 1 - format.bias - (int)format.mantissa_bits);
        return sign ? -value : value;
    }
    return double_of(sign | (uint64_t)((int64_t)exponent - format.bias + 1023) << 52 |
                     mantissa << (52 - format.mantissa_bits));
}

uint64_t ent_ops_code_load(const void *data, uint32_t dtype, int64_t index) {
    uint32_t bits = ent_dtype_bits((ent_dtype)dtype);
    const uint8_t *bytes = data;
    if (bits < 8) {
        uint64_t bit = (uint64_t)index * bits;
        return (uint64_t)(bytes[bit >> 3] >> (bit & 7)) & ((1u << bits) - 1);
    }
    uint64_t code = 0;
    memcpy(&code, bytes + index * (int64_t)(bits / 8), bits / 8);
    return code;
}

void ent_ops_code_store(void *data, uint32_t dtype, int64_t index, uint64_t code) {
    uint32_t bits = ent_dtype_bits((ent_dtype)dtype);
    uint8_t *bytes = data;
    if (bits < 8) {
        uint64_t bit = (uint64_t)index * bits;
        uint32_t mask = ((1u << bits) - 1) << (bit & 7);
        uint8_t *byte = &bytes[bit >> 3];
        *byte = (uint8_t)((*byte & ~mask) | (((uint32_t)code << (bit & 7)) & mask));
        return;
    }
    memcpy(bytes + index * (int64_t)(bits / 8), &code, bits / 8);
}

static int64_t sign_extend(uint64_t code, uint32_t bits) {
    uint64_t sign = (uint64_t)1 << (bits - 1);
    return (int64_t)((code ^ sign) - sign);
}

/* Truncates; NaN gives 0; outside int64 the nearest end. */
static int64_t truncate_i64(double value) {
    if (isnan(value)) return 0;
    if (value >= 9223372036854775808.0) return INT64_MAX;
    if (value < -9223372036854775808.0) return INT64_MIN;
    return (int64_t)value;
}

static uint64_t truncate_u64(double value) {
    if (value < 9223372036854775808.0 || isnan(value)) return (uint64_t)truncate_i64(value);
    return value >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value;
}

#define LOAD_AS(type, result) ((result)((const type *)data)[index])
#define STORE_AS(type, value) (((type *)data)[index] = (type)(value))

/* size: table */
double ent_ops_load_f64(const void *data, uint32_t dtype, int64_t index) {
    switch (dtype) {
    case ENT_DTYPE_F32:
        return LOAD_AS(float, double);
    case ENT_DTYPE_F64:
        return LOAD_AS(double, double);
    case ENT_DTYPE_I8:
        return LOAD_AS(int8_t, double);
    case ENT_DTYPE_U8:
        return LOAD_AS(uint8_t, double);
    case ENT_DTYPE_I16:
        return LOAD_AS(int16_t, double);
    case ENT_DTYPE_U16:
        return LOAD_AS(uint16_t, double);
    case ENT_DTYPE_I32:
        return LOAD_AS(int32_t, double);
    case ENT_DTYPE_U32:
        return LOAD_AS(uint32_t, double);
    case ENT_DTYPE_I64:
        return LOAD_AS(int64_t, double);
    case ENT_DTYPE_U64:
        return LOAD_AS(uint64_t, double);
    case ENT_DTYPE_BOOL:
        return LOAD_AS(uint8_t, int) != 0;
    case ENT_DTYPE_I4:
    case ENT_DTYPE_I2:
        return (double)sign_extend(ent_ops_code_load(data, dtype, index), ent_dtype_bits((ent_dtype)dtype));
    case ENT_DTYPE_U4:
    case ENT_DTYPE_U2:
        return (double)ent_ops_code_load(data, dtype, index);
    case ENT_DTYPE_F16:
    case ENT_DTYPE_BF16:
        return float_decode(dtype, LOAD_AS(uint16_t, uint32_t));
    case ENT_DTYPE_F8E4M3FN:
    case ENT_DTYPE_F8E4M3FNUZ:
    case ENT_DTYPE_F8E5M2:
    case ENT_DTYPE_F8E5M2FNUZ:
    case ENT_DTYPE_F8E8M0:
        return float_decode(dtype, LOAD_AS(uint8_t, uint32_t));
    case ENT_DTYPE_F4E2M1:
        return float_decode(dtype, (uint32_t)ent_ops_code_load(data, dtype, index));
    default:
        return NAN;
    }
}

/* size: table */
void ent_ops_store_f64(void *data, uint32_t dtype, int64_t index, double value) {
    switch (dtype) {
    case ENT_DTYPE_F32:
        STORE_AS(float, value);
        break;
    case ENT_DTYPE_F64:
        STORE_AS(double, value);
        break;
    case ENT_DTYPE_U64:
        STORE_AS(uint64_t, truncate_u64(value));
        break;
    case ENT_DTYPE_BOOL:
        STORE_AS(uint8_t, value != 0);
        break;
    case ENT_DTYPE_F16:
    case ENT_DTYPE_BF16:
        STORE_AS(uint16_t, ent_ops_float_encode(dtype, value, true));
        break;
    case ENT_DTYPE_F8E4M3FN:
    case ENT_DTYPE_F8E4M3FNUZ:
    case ENT_DTYPE_F8E5M2:
    case ENT_DTYPE_F8E5M2FNUZ:
    case ENT_DTYPE_F8E8M0:
        STORE_AS(uint8_t, ent_ops_float_encode(dtype, value, true));
        break;
    case ENT_DTYPE_F4E2M1:
        ent_ops_code_store(data, dtype, index, ent_ops_float_encode(dtype, value, true));
        break;
    default:
        ent_ops_store_i64(data, dtype, index, truncate_i64(value));
        break;
    }
}

/* size: table */
int64_t ent_ops_load_i64(const void *data, uint32_t dtype, int64_t index) {
    switch (dtype) {
    case ENT_DTYPE_I8:
        return LOAD_AS(int8_t, int64_t);
    case ENT_DTYPE_U8:
        return LOAD_AS(uint8_t, int64_t);
    case ENT_DTYPE_I16:
        return LOAD_AS(int16_t, int64_t);
    case ENT_DTYPE_U16:
        return LOAD_AS(uint16_t, int64_t);
    case ENT_DTYPE_I32:
        return LOAD_AS(int32_t, int64_t);
    case ENT_DTYPE_U32:
        return LOAD_AS(uint32_t, int64_t);
    case ENT_DTYPE_I64:
        return LOAD_AS(int64_t, int64_t);
    case ENT_DTYPE_U64:
        return LOAD_AS(uint64_t, int64_t);
    case ENT_DTYPE_BOOL:
        return LOAD_AS(uint8_t, int) != 0;
    case ENT_DTYPE_I4:
    case ENT_DTYPE_I2:
        return sign_extend(ent_ops_code_load(data, dtype, index), ent_dtype_bits((ent_dtype)dtype));
    case ENT_DTYPE_U4:
    case ENT_DTYPE_U2:
        return (int64_t)ent_ops_code_load(data, dtype, index);
    default:
        return truncate_i64(ent_ops_load_f64(data, dtype, index));
    }
}

/* size: table */
void ent_ops_store_i64(void *data, uint32_t dtype, int64_t index, int64_t value) {
    switch (dtype) {
    case ENT_DTYPE_I8:
    case ENT_DTYPE_U8:
        STORE_AS(uint8_t, value);
        break;
    case ENT_DTYPE_I16:
    case ENT_DTYPE_U16:
        STORE_AS(uint16_t, value);
        break;
    case ENT_DTYPE_I32:
    case ENT_DTYPE_U32:
        STORE_AS(uint32_t, value);
        break;
    case ENT_DTYPE_I64:
    case ENT_DTYPE_U64:
        STORE_AS(int64_t, value);
        break;
    case ENT_DTYPE_BOOL:
        STORE_AS(uint8_t, value != 0);
        break;
    case ENT_DTYPE_F32:
        STORE_AS(float, value);
        break; /* one rounding, not two */
    case ENT_DTYPE_I4:
    case ENT_DTYPE_I2:
    case ENT_DTYPE_U4:
    case ENT_DTYPE_U2:
        ent_ops_code_store(data, dtype, index, (uint64_t)value);
        break;
    case ENT_DTYPE_NONE:
    case ENT_DTYPE_STRING:
    case ENT_DTYPE_C64:
    case ENT_DTYPE_C128:
        break;
    default:
        ent_ops_store_f64(data, dtype, index, (double)value);
        break;
    }
}

void ent_ops_load_run_f64(const void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                          double *out) {
    if (stride == 0 && count > 0) {
        double value = ent_ops_load_f64(data, dtype, offset);
        for (int64_t i = 0; i < count; i++) out[i] = value;
    } else if (dtype == ENT_DTYPE_F32) {
        const float *from = (const float *)data + offset;
        for (int64_t i = 0; i < count; i++) out[i] = from[i * stride];
    } else if (dtype == ENT_DTYPE_F64) {
        const double *from = (const double *)data + offset;
        for (int64_t i = 0; i < count; i++) out[i] = from[i * stride];
    } else {
        for (int64_t i = 0; i < count; i++) out[i] = ent_ops_load_f64(data, dtype, offset + i * stride);
    }
}

void ent_ops_store_run_f64(void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                           const double *in) {
    if (dtype == ENT_DTYPE_F32) {
        float *to = (float *)data + offset;
        for (int64_t i = 0; i < count; i++) to[i * stride] = (float)in[i];
    } else if (dtype == ENT_DTYPE_F64) {
        double *to = (double *)data + offset;
        for (int64_t i = 0; i < count; i++) to[i * stride] = in[i];
    } else {
        for (int64_t i = 0; i < count; i++) ent_ops_store_f64(data, dtype, offset + i * stride, in[i]);
    }
}

void ent_ops_load_run_i64(const void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                          int64_t *out) {
    if (dtype == ENT_DTYPE_I64) {
        const int64_t *from = (const int64_t *)data + offset;
        for (int64_t i = 0; i < count; i++) out[i] = from[i * stride];
    } else {
        for (int64_t i = 0; i < count; i++) out[i] = ent_ops_load_i64(data, dtype, offset + i * stride);
    }
}

void ent_ops_store_run_i64(void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                           const int64_t *in) {
    if (dtype == ENT_DTYPE_I64) {
        int64_t *to = (int64_t *)data + offset;
        for (int64_t i = 0; i < count; i++) to[i * stride] = in[i];
    } else {
        for (int64_t i = 0; i < count; i++) ent_ops_store_i64(data, dtype, offset + i * stride, in[i]);
    }
}
