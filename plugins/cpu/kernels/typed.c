/* Arithmetic and comparison on element types other than f32: plain loops that the compiler vectorises for the
 * level. */
#include "vec.h"
#include "kernels_isa.h"

#include <math.h>

#define LOOPS(name, in_type, out_type, expression)                                                           \
    static void name(const void *av, int64_t a_step, const void *bv, int64_t b_step, void *yv, int64_t n) {  \
        const in_type *a = av, *b = bv;                                                                      \
        out_type *out = yv;                                                                                  \
        if (n <= 0) return;                                                                                  \
        in_type x = a[0], y = b[0];                                                                          \
        if (a_step && b_step) {                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                \
                x = a[i];                                                                                    \
                y = b[i];                                                                                    \
                out[i] = (out_type)(expression);                                                             \
            }                                                                                                \
        } else if (a_step) {                                                                                 \
            for (int64_t i = 0; i < n; i++) {                                                                \
                x = a[i];                                                                                    \
                out[i] = (out_type)(expression);                                                             \
            }                                                                                                \
        } else {                                                                                             \
            for (int64_t i = 0; i < n; i++) {                                                                \
                y = b[i * b_step];                                                                           \
                out[i] = (out_type)(expression);                                                             \
            }                                                                                                \
        }                                                                                                    \
    }

/* Arithmetic in the unsigned type wraps without undefined behaviour. */
#define INTEGER(t, type, wrap)                                                                               \
    LOOPS(add_##t, type, type, (wrap)x + (wrap)y)                                                            \
    LOOPS(subtract_##t, type, type, (wrap)x - (wrap)y)                                                       \
    LOOPS(multiply_##t, type, type, (wrap)x *(wrap)y)                                                        \
    LOOPS(divide_##t, type, type, y == 0 ? 0 : y == (type)-1 ? (type)(0 - (wrap)x) : (type)(x / y))          \
    LOOPS(minimum_##t, type, type, x < y ? x : y)                                                            \
    LOOPS(maximum_##t, type, type, x > y ? x : y)
#define UNSIGNED(t, type)                                                                                    \
    LOOPS(add_##t, type, type, x + y)                                                                        \
    LOOPS(subtract_##t, type, type, x - y)                                                                   \
    LOOPS(multiply_##t, type, type, x *y)                                                                    \
    LOOPS(divide_##t, type, type, y == 0 ? 0 : x / y)                                                        \
    LOOPS(minimum_##t, type, type, x < y ? x : y)                                                            \
    LOOPS(maximum_##t, type, type, x > y ? x : y)
#define COMPARISONS(t, type)                                                                                 \
    LOOPS(equal_##t, type, uint8_t, x == y)                                                                  \
    LOOPS(less_##t, type, uint8_t, x < y)                                                                    \
    LOOPS(less_equal_##t, type, uint8_t, x <= y)

INTEGER(i32, int32_t, uint32_t)
INTEGER(i64, int64_t, uint64_t)
INTEGER(i8, int8_t, uint8_t)
UNSIGNED(u8, uint8_t)
LOOPS(add_f64, double, double, x + y)
LOOPS(subtract_f64, double, double, x - y)
LOOPS(multiply_f64, double, double, x *y)
LOOPS(divide_f64, double, double, x / y)
LOOPS(minimum_f64, double, double, x != x ? x : y != y ? y : x < y ? x : y)
LOOPS(maximum_f64, double, double, x != x ? x : y != y ? y : x > y ? x : y)
LOOPS(power_f64, double, double, pow(x, y))
COMPARISONS(f32, float)
COMPARISONS(f64, double)
COMPARISONS(i32, int32_t)
COMPARISONS(i64, int64_t)
COMPARISONS(i8, int8_t)
COMPARISONS(u8, uint8_t)

#define BIND_ARITHMETIC(t, type)                                                                             \
    table->binary[ENT_CPU_ADD][type] = add_##t;                                                              \
    table->binary[ENT_CPU_SUB][type] = subtract_##t;                                                         \
    table->binary[ENT_CPU_MUL][type] = multiply_##t;                                                         \
    table->binary[ENT_CPU_DIV][type] = divide_##t;                                                           \
    table->binary[ENT_CPU_MIN][type] = minimum_##t;                                                          \
    table->binary[ENT_CPU_MAX][type] = maximum_##t;
#define BIND_COMPARISON(t, type)                                                                             \
    table->compare[ENT_CPU_EQUAL][type] = equal_##t;                                                         \
    table->compare[ENT_CPU_LESS][type] = less_##t;                                                           \
    table->compare[ENT_CPU_LESS_EQUAL][type] = less_equal_##t;

void ENT_ISA(ent_cpu_typed_bind)(ent_cpu_kernels *table) {
    BIND_ARITHMETIC(i32, ENT_CPU_I32)
    BIND_ARITHMETIC(i64, ENT_CPU_I64)
    BIND_ARITHMETIC(i8, ENT_CPU_I8)
    BIND_ARITHMETIC(u8, ENT_CPU_U8)
    BIND_ARITHMETIC(f64, ENT_CPU_F64)
    table->binary[ENT_CPU_POW][ENT_CPU_F64] = power_f64;
    BIND_COMPARISON(f32, ENT_CPU_F32)
    BIND_COMPARISON(f64, ENT_CPU_F64)
    BIND_COMPARISON(i32, ENT_CPU_I32)
    BIND_COMPARISON(i64, ENT_CPU_I64)
    BIND_COMPARISON(i8, ENT_CPU_I8)
    BIND_COMPARISON(u8, ENT_CPU_U8)
    BIND_COMPARISON(u8, ENT_CPU_BOOL)
    /* For bool: min is and, max is or, mul is and. */
    table->binary[ENT_CPU_MIN][ENT_CPU_BOOL] = minimum_u8;
    table->binary[ENT_CPU_MAX][ENT_CPU_BOOL] = maximum_u8;
    table->binary[ENT_CPU_MUL][ENT_CPU_BOOL] = minimum_u8;
}
