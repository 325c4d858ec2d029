/* f32 functions of two and three operands. */
#include "vec.h"
#include "kernels_isa.h"

#include <math.h>
#include <string.h>

/* The step is a constant in each of the calls below, so that each case has a loop of its own. */
#define BINARY(name, f)                                                                                      \
    ENT_INLINE void name##_loop(const float *a, const int a_step, const float *b, const int b_step,          \
                                float *y, int64_t n) {                                                       \
        vf va = vf_set1(a[0]), vb = vf_set1(b[0]);                                                           \
        int64_t i = 0;                                                                                       \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                             \
            vf_store(y + i, f(a_step ? vf_load(a + i) : va, b_step ? vf_load(b + i) : vb));                  \
        if (i == n) return;                                                                                  \
        vt t = vt_first(n - i);                                                                              \
        vf_store_first(y + i, t,                                                                             \
                       f(a_step ? vf_load_first(a + i, t) : va, b_step ? vf_load_first(b + i, t) : vb));     \
    }                                                                                                        \
    static void name(const void *a, int64_t a_step, const void *b, int64_t b_step, void *y, int64_t n) {     \
        if (n <= 0) return;                                                                                  \
        if (a_step && b_step)                                                                                \
            name##_loop(a, 1, b, 1, y, n);                                                                   \
        else if (a_step)                                                                                     \
            name##_loop(a, 1, b, 0, y, n);                                                                   \
        else if (b_step)                                                                                     \
            name##_loop(a, 0, b, 1, y, n);                                                                   \
        else                                                                                                 \
            name##_loop(a, 0, b, 0, y, n);                                                                   \
    }

BINARY(add, vf_add)
BINARY(subtract, vf_sub)
BINARY(multiply, vf_mul)
BINARY(divide, vf_div)
BINARY(minimum, vf_min_nan)
BINARY(maximum, vf_max_nan)

static void power(const void *a, int64_t a_step, const void *b, int64_t b_step, void *y, int64_t n) {
    const float *x = a, *e = b;
    float *out = y;
    for (int64_t i = 0; i < n; i++) out[i] = powf(x[i * a_step], e[i * b_step]);
}

void ENT_ISA(ent_cpu_multiply_add)(const float *a, int64_t a_step, const float *b, int64_t b_step,
                                   const float *c, int64_t c_step, float *y, int64_t n) {
    if (n <= 0) return;
    vf va = vf_set1(a[0]), vb = vf_set1(b[0]), vc = vf_set1(c[0]);
    int64_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf_store(y + i, vf_fma(a_step ? vf_load(a + i) : va, b_step ? vf_load(b + i) : vb,
                               c_step ? vf_load(c + i) : vc));
    }
    if (i == n) return;
    vt t = vt_first(n - i);
    vf_store_first(y + i, t,
                   vf_fma(a_step ? vf_load_first(a + i, t) : va, b_step ? vf_load_first(b + i, t) : vb,
                          c_step ? vf_load_first(c + i, t) : vc));
}

#define SELECT(bits)                                                                                         \
    static void select_##bits(const uint8_t *condition, int64_t condition_step, const uint##bits##_t *a,     \
                              int64_t a_step, const uint##bits##_t *b, int64_t b_step, uint##bits##_t *y,    \
                              int64_t n) {                                                                   \
        if (condition_step == 1 && a_step == 1 && b_step == 1) {                                             \
            for (int64_t i = 0; i < n; i++) {                                                                \
                uint##bits##_t yes = a[i], no = b[i];                                                        \
                y[i] = condition[i] ? yes : no;                                                              \
            }                                                                                                \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                      \
            y[i] = condition[i * condition_step] ? a[i * a_step] : b[i * b_step];                            \
    }

SELECT(8)
SELECT(16)
SELECT(32)
SELECT(64)

void ENT_ISA(ent_cpu_select)(const uint8_t *condition, int64_t condition_step, const void *a, int64_t a_step,
                             const void *b, int64_t b_step, void *y, int64_t n, int64_t element_bytes) {
    if (element_bytes == 1)
        select_8(condition, condition_step, a, a_step, b, b_step, y, n);
    else if (element_bytes == 2)
        select_16(condition, condition_step, a, a_step, b, b_step, y, n);
    else if (element_bytes == 4)
        select_32(condition, condition_step, a, a_step, b, b_step, y, n);
    else
        select_64(condition, condition_step, a, a_step, b, b_step, y, n);
}

void ENT_ISA(ent_cpu_binary_bind)(ent_cpu_kernels *table) {
    static const ent_cpu_binary_fn functions[ENT_CPU_BINARY_COUNT] = {add,     subtract, multiply, divide,
                                                                      minimum, maximum,  power};
    for (int i = 0; i < ENT_CPU_BINARY_COUNT; i++) table->binary[i][ENT_CPU_F32] = functions[i];
}
