/* Elements of plain constant data, for the dtypes of 8 bits and more that plain C can compute with. */
#include "core/graph/internal.h"

#include <string.h>

bool ent_dtype_is_float(uint32_t dtype) {
    return dtype == ENT_DTYPE_F32 || dtype == ENT_DTYPE_F16 || dtype == ENT_DTYPE_BF16 ||
           dtype == ENT_DTYPE_F64;
}

bool ent_dtype_is_integer(uint32_t dtype) {
    return dtype >= ENT_DTYPE_I8 && dtype <= ENT_DTYPE_BOOL;
}

bool ent_element_is_numeric(uint32_t dtype) {
    return ent_dtype_is_float(dtype) || ent_dtype_is_integer(dtype);
}

bool ent_tensor_size_bytes(uint32_t dtype, uint32_t rank, const int64_t *dims, uint64_t *out) {
    if (ent_dtype_bits(dtype) == 0 || rank > ENT_MAX_RANK) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0) return false;
    ent_layout layout = ent_layout_plain(rank);
    int64_t bytes = ent_layout_bytes(&layout, (ent_dtype)dtype, dims);
    if (bytes < 0) return false;
    *out = (uint64_t)bytes;
    return true;
}

static float f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double f16_get(uint16_t half) {
    double sign = half & 0x8000 ? -1.0 : 1.0;
    uint32_t exponent = (half >> 10) & 31, fraction = half & 1023;
    if (exponent == 31)
        return f32_from_bits(((uint32_t)(half & 0x8000) << 16) | 0x7f800000u | (fraction << 13));
    double value = exponent ? 1024.0 + fraction : fraction;
    int shift = (int)(exponent ? exponent : 1) - 25;
    for (; shift < 0; shift++) value *= 0.5;
    for (; shift > 0; shift--) value *= 2.0;
    return sign * value;
}

/* Rounds a float's bits to even at `drop` low bits. */
static uint32_t round_bits(uint32_t bits, uint32_t drop) {
    uint32_t half = 1u << (drop - 1), odd = (bits >> drop) & 1;
    return (bits + half - 1 + odd) >> drop;
}

static uint16_t f16_from(double number) {
    float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x477ff000u) return (uint16_t)(sign | 0x7c00);
    if (bits >= 0x38800000u) return (uint16_t)(sign | round_bits(bits - 0x38000000u, 13));
    /* Below the least normal half: count units of 2^-24, rounded to even. */
    double units = (double)f32_from_bits(bits) * 16777216.0;
    uint32_t whole = (uint32_t)units;
    double rest = units - whole;
    if (rest > 0.5 || (rest == 0.5 && (whole & 1))) whole++;
    return (uint16_t)(sign | whole);
}

static uint16_t bf16_from(double number) {
    float value = (float)number;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40);
    return (uint16_t)round_bits(bits, 16);
}

#define LOAD(type)                                                                                           \
    {                                                                                                        \
        type item;                                                                                           \
        memcpy(&item, (const char *)data + index * sizeof item, sizeof item);                                \
        return item;                                                                                         \
    }

double ent_element_get_f64(const void *data, uint32_t dtype, uint64_t index) {
    uint16_t half;
    switch (dtype) {
    case ENT_DTYPE_F32:
        LOAD(float)
    case ENT_DTYPE_F64:
        LOAD(double)
    case ENT_DTYPE_F16:
        memcpy(&half, (const char *)data + index * 2, 2);
        return f16_get(half);
    case ENT_DTYPE_BF16:
        memcpy(&half, (const char *)data + index * 2, 2);
        return f32_from_bits((uint32_t)half << 16);
    case ENT_DTYPE_U64:
        LOAD(uint64_t)
    default:
        return (double)ent_element_get_i64(data, dtype, index);
    }
}

int64_t ent_element_get_i64(const void *data, uint32_t dtype, uint64_t index) {
    switch (dtype) {
    case ENT_DTYPE_I8:
        LOAD(int8_t)
    case ENT_DTYPE_U8:
    case ENT_DTYPE_BOOL:
        LOAD(uint8_t)
    case ENT_DTYPE_I16:
        LOAD(int16_t)
    case ENT_DTYPE_U16:
        LOAD(uint16_t)
    case ENT_DTYPE_I32:
        LOAD(int32_t)
    case ENT_DTYPE_U32:
        LOAD(uint32_t)
    case ENT_DTYPE_I64:
    case ENT_DTYPE_U64:
        LOAD(int64_t)
    default:
        return 0;
    }
}

#define STORE(type)                                                                                          \
    {                                                                                                        \
        type item = (type)value;                                                                             \
        memcpy((char *)data + index * sizeof item, &item, sizeof item);                                      \
        return;                                                                                              \
    }

void ent_element_set_i64(void *data, uint32_t dtype, uint64_t index, int64_t value) {
    switch (dtype) {
    case ENT_DTYPE_I8:
    case ENT_DTYPE_U8:
        STORE(uint8_t)
    case ENT_DTYPE_BOOL:
        value = value != 0;
        STORE(uint8_t)
    case ENT_DTYPE_I16:
    case ENT_DTYPE_U16:
        STORE(uint16_t)
    case ENT_DTYPE_I32:
    case ENT_DTYPE_U32:
        STORE(uint32_t)
    case ENT_DTYPE_I64:
    case ENT_DTYPE_U64:
        STORE(int64_t)
    default:
        return;
    }
}

/* A conversion of a number outside the type's range is undefined in C, so integers saturate. */
static int64_t whole_from(double value) {
    if (!(value > -9223372036854775808.0)) return value != value ? 0 : INT64_MIN;
    return value >= 9223372036854775808.0 ? INT64_MAX : (int64_t)value;
}

void ent_element_set_f64(void *data, uint32_t dtype, uint64_t index, double value) {
    uint16_t half;
    switch (dtype) {
    case ENT_DTYPE_F32:
        STORE(float)
    case ENT_DTYPE_F64:
        STORE(double)
    case ENT_DTYPE_F16:
        half = f16_from(value);
        memcpy((char *)data + index * 2, &half, 2);
        return;
    case ENT_DTYPE_BF16:
        half = bf16_from(value);
        memcpy((char *)data + index * 2, &half, 2);
        return;
    default:
        ent_element_set_i64(data, dtype, index, whole_from(value));
        return;
    }
}
