/* Conversions between element types. */
#include "vec.h"
#include "kernels_isa.h"

#include <math.h>
#include <string.h>

#define CAST(name, from, to, expression)                                                                     \
    static void name(const void *xv, void *yv, int64_t n) {                                                  \
        const from *in = xv;                                                                                 \
        to *out = yv;                                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            from x = in[i];                                                                                  \
            out[i] = (to)(expression);                                                                       \
        }                                                                                                    \
    }

/* Float to integer truncates and saturates; NaN gives 0. The limit 2^31 or 2^63 is exact in both float types.
 */
#define TO_INTEGER(x, type, low, high, limit)                                                                \
    ((x) != (x) ? 0 : (x) <= -(limit) ? (low) : (x) >= (limit) ? (high) : (type)(x))
#define TO_SMALL(x, type, low, high)                                                                         \
    ((x) != (x) ? 0 : (x) <= (low) ? (low) : (x) >= (high) ? (high) : (type)(x))
#define FROM_FLOAT(f, type)                                                                                  \
    CAST(f##_to_i32, type, int32_t, TO_INTEGER(x, int32_t, INT32_MIN, INT32_MAX, (type)2147483648.0))        \
    CAST(f##_to_i64, type, int64_t,                                                                          \
         TO_INTEGER(x, int64_t, INT64_MIN, INT64_MAX, (type)9223372036854775808.0))                          \
    CAST(f##_to_u8, type, uint8_t, TO_SMALL(x, uint8_t, 0, 255))                                             \
    CAST(f##_to_i8, type, int8_t, TO_SMALL(x, int8_t, -128, 127))                                            \
    CAST(f##_to_bool, type, uint8_t, x != 0)
#define FROM_INTEGER(t, type)                                                                                \
    CAST(t##_to_f32, type, float, x)                                                                         \
    CAST(t##_to_f64, type, double, x)                                                                        \
    CAST(t##_to_i32, type, int32_t, x)                                                                       \
    CAST(t##_to_i64, type, int64_t, x)                                                                       \
    CAST(t##_to_u8, type, uint8_t, x)                                                                        \
    CAST(t##_to_i8, type, int8_t, x)                                                                         \
    CAST(t##_to_bool, type, uint8_t, x != 0)

FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)
CAST(f32_to_f32, float, float, x)
CAST(f32_to_f64, float, double, x)
CAST(f64_to_f32, double, float, x)
CAST(f64_to_f64, double, double, x)
FROM_INTEGER(i32, int32_t)
FROM_INTEGER(i64, int64_t)
FROM_INTEGER(u8, uint8_t)
FROM_INTEGER(i8, int8_t)

/* Half precision without the F16C instructions: subnormals by a multiplication, rounding half to even by
 * addition. */
static inline __attribute__((unused)) float half_to_float(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu, bits;
    float value;
    if (rest >= 0x7c00u) {
        bits = (rest << 13) + 0x70000000u;
        if (rest > 0x7c00u) bits |= 0x00400000u;
        bits |= sign;
        memcpy(&value, &bits, 4);
        return value;
    }
    bits = rest << 13;
    memcpy(&value, &bits, 4);
    value *= 5.192296858534828e33f; /* 2^112 moves the exponent bias from 15 to 127 */
    memcpy(&bits, &value, 4);
    bits |= sign;
    memcpy(&value, &bits, 4);
    return value;
}

static inline __attribute__((unused)) uint16_t float_to_half(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (bits >> 13 & 0x3ffu));
    if (bits >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (bits < 0x38800000u) { /* below 2^-14: adding 1/2 puts the result in the low bits, rounded */
        float size;
        memcpy(&size, &bits, 4);
        size += 0.5f;
        memcpy(&bits, &size, 4);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    uint32_t odd = bits >> 13 & 1u;
    return (uint16_t)(sign | ((bits + 0xc8000fffu + odd) >> 13));
}

static void f16_to_f32(const void *xv, void *yv, int64_t n) {
    const uint16_t *x = xv;
    float *y = yv;
    int64_t i = 0;
#if ENT_ISA_LEVEL >= 1
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
#endif
    for (; i < n; i++) y[i] = half_to_float(x[i]);
}

static void f32_to_f16(const void *xv, void *yv, int64_t n) {
    const float *x = xv;
    uint16_t *y = yv;
    int64_t i = 0;
#if ENT_ISA_LEVEL >= 1
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), 0));
#endif
    for (; i < n; i++) y[i] = float_to_half(x[i]);
}

static void bf16_to_f32(const void *xv, void *yv, int64_t n) {
    const uint16_t *x = xv;
    uint32_t *y = yv;
    for (int64_t i = 0; i < n; i++) y[i] = (uint32_t)x[i] << 16;
}

static void f32_to_bf16(const void *xv, void *yv, int64_t n) {
    const uint32_t *x = xv;
    uint16_t *y = yv;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = x[i];
        uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        y[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded);
    }
}

static void copy_2(const void *x, void *y, int64_t n) {
    memmove(y, x, (size_t)n * 2);
}

#define BIND(from, t)                                                                                        \
    table->cast[from][ENT_CPU_F32] = t##_to_f32;                                                             \
    table->cast[from][ENT_CPU_F64] = t##_to_f64;                                                             \
    table->cast[from][ENT_CPU_I32] = t##_to_i32;                                                             \
    table->cast[from][ENT_CPU_I64] = t##_to_i64;                                                             \
    table->cast[from][ENT_CPU_U8] = t##_to_u8;                                                               \
    table->cast[from][ENT_CPU_I8] = t##_to_i8;                                                               \
    table->cast[from][ENT_CPU_BOOL] = t##_to_bool;

void ENT_ISA(ent_cpu_cast_bind)(ent_cpu_kernels *table) {
    BIND(ENT_CPU_F32, f32)
    BIND(ENT_CPU_F64, f64)
    BIND(ENT_CPU_I32, i32)
    BIND(ENT_CPU_I64, i64)
    BIND(ENT_CPU_U8, u8)
    BIND(ENT_CPU_I8, i8)
    BIND(ENT_CPU_BOOL, u8)
    table->cast[ENT_CPU_F16][ENT_CPU_F32] = f16_to_f32;
    table->cast[ENT_CPU_F32][ENT_CPU_F16] = f32_to_f16;
    table->cast[ENT_CPU_BF16][ENT_CPU_F32] = bf16_to_f32;
    table->cast[ENT_CPU_F32][ENT_CPU_BF16] = f32_to_bf16;
    table->cast[ENT_CPU_F16][ENT_CPU_F16] = copy_2;
    table->cast[ENT_CPU_BF16][ENT_CPU_BF16] = copy_2;
}
