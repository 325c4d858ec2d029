/* Matrix multiply of 8-bit integers by VNNI: vpdpbusd adds four products of an unsigned and a signed byte to
 * each 32-bit sum, without saturation. A is made unsigned (xor 128 when it is packed), B signed (xor 128 when
 * it is loaded), both with their zero points; then
 *   sum (a - za)(b - zb) = sum a b - za sum b - zb sum a + k za zb.
 * The sums of B's columns come from the same instruction with an A of ones, once for all rows. Built twice,
 * in 256 bits (AVX-VNNI) and 512 (AVX512-VNNI). */
#include <string.h>

#include "kernels.h"
#include "vec.h"

#if ENT_ISA_LEVEL == 1
typedef __m256i wi;
#ifdef ENT_SIMULATED_AVX512
#include <simde/x86/avx512.h>
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32
#define BIND ent_cpu_gemm8_bind_avx_vnni_simulated
#else
#define BIND ent_cpu_gemm8_bind_avx_vnni
#endif
#define NAME "AVX-VNNI"
#define WI_COLUMNS 8
#define PANELS 1
#define ROWS 6
#else
typedef __m512i wi;
#ifdef ENT_SIMULATED_AVX512
#include <simde/x86/avx512.h>
#define BIND ent_cpu_gemm8_bind_avx512_vnni_simulated
#else
#define BIND ent_cpu_gemm8_bind_avx512_vnni
#endif
#define NAME "AVX512-VNNI"
#define WI_COLUMNS 16
#define PANELS 4
#define ROWS 6
#endif
#define WI_BYTES ((int64_t)sizeof(wi))
#define PANEL_VECTORS (ENT_CPU_PANEL / WI_COLUMNS)
#define VECTORS (PANELS * PANEL_VECTORS)
#define GROUP (ENT_CPU_PANEL * ENT_CPU_GEMM8_K)

ENT_INLINE wi wi_load(const void *p) {
    wi x;
    memcpy(&x, p, sizeof x);
    return x;
}
#if ENT_ISA_LEVEL == 1
ENT_INLINE wi wi_set1(int32_t x) {
    return _mm256_set1_epi32(x);
}
ENT_INLINE wi wi_xor(wi a, wi b) {
    return _mm256_xor_si256(a, b);
}
ENT_INLINE wi wi_add(wi a, wi b) {
    return _mm256_add_epi32(a, b);
}
ENT_INLINE wi wi_mul(wi a, wi b) {
    return _mm256_mullo_epi32(a, b);
}
ENT_INLINE wi wi_dot(wi acc, wi unsigned_bytes, wi signed_bytes) {
    return _mm256_dpbusd_avx_epi32(acc, unsigned_bytes, signed_bytes);
}
#else
ENT_INLINE wi wi_set1(int32_t x) {
    return _mm512_set1_epi32(x);
}
ENT_INLINE wi wi_xor(wi a, wi b) {
    return _mm512_xor_si512(a, b);
}
ENT_INLINE wi wi_add(wi a, wi b) {
    return _mm512_add_epi32(a, b);
}
ENT_INLINE wi wi_mul(wi a, wi b) {
    return _mm512_mullo_epi32(a, b);
}
ENT_INLINE wi wi_dot(wi acc, wi unsigned_bytes, wi signed_bytes) {
    return _mm512_dpbusd_epi32(acc, unsigned_bytes, signed_bytes);
}
#endif

ENT_INLINE int32_t *row_of(const ent_cpu_rows *rows, int64_t row) {
    return (int32_t *)(void *)(rows->rows ? rows->rows[row] : rows->base + row * rows->stride);
}

/* What is added to the sums of a column block: k za zb - za sum b, by column. */
typedef struct columns {
    wi start[VECTORS];
    int32_t a_zero, b_zero; /* of the unsigned A, of the signed B */
} columns;

ENT_INLINE wi b_vector(const ent_cpu_gemm8 *g, const uint8_t *b, int v, wi flip) {
    return wi_xor(wi_load(b + v / PANEL_VECTORS * g->b_panel_stride + v % PANEL_VECTORS * WI_BYTES), flip);
}

ENT_INLINE wi flip_of(const ent_cpu_gemm8 *g) {
    return wi_set1(g->b_signed ? 0 : (int32_t)0x80808080u);
}

ENT_INLINE void sum_columns(const ent_cpu_gemm8 *g, const uint8_t *b, columns *c, const int vectors) {
    const wi ones = wi_set1(0x01010101), flip = flip_of(g), factor = wi_set1(-c->a_zero);
    const wi both = wi_set1((int32_t)((uint32_t)g->k * (uint32_t)(c->a_zero * c->b_zero)));
    wi acc[VECTORS];
    ENT_UNROLL
    for (int v = 0; v < vectors; v++) acc[v] = wi_set1(0);
    ENT_NO_UNROLL
    for (int64_t k = 0; k < g->k; k += ENT_CPU_GEMM8_K, b += GROUP) {
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) acc[v] = wi_dot(acc[v], ones, b_vector(g, b, v, flip));
    }
    ENT_UNROLL
    for (int v = 0; v < vectors; v++) c->start[v] = wi_add(wi_mul(acc[v], factor), both);
}

static int32_t sum_of_bytes(const uint8_t *a, int64_t k) {
    int32_t sum = 0;
    for (int64_t i = 0; i < k; i++) sum += a[i];
    return sum;
}

/* rows and vectors are constants in every instance. */
ENT_INLINE void micro(const ent_cpu_gemm8 *g, const columns *columns, int64_t row, int64_t column,
                      const int rows, const int vectors) {
    const uint8_t *b = g->b + column / ENT_CPU_PANEL * g->b_panel_stride, *a[ROWS];
    const wi flip = flip_of(g);
    wi acc[ROWS][VECTORS];
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        a[i] = (const uint8_t *)g->a + (row + i) * g->a_stride;
        wi start = wi_set1(columns->b_zero ? -columns->b_zero * sum_of_bytes(a[i], g->k) : 0);
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) acc[i][v] = wi_add(columns->start[v], start);
    }
    ENT_NO_UNROLL
    for (int64_t k = 0; k < g->k; k += ENT_CPU_GEMM8_K, b += GROUP) {
        wi y[VECTORS];
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) y[v] = b_vector(g, b, v, flip);
        ENT_UNROLL
        for (int i = 0; i < rows; i++) {
            int32_t four;
            memcpy(&four, a[i] + k, sizeof four);
            wi x = wi_set1(four);
            ENT_UNROLL
            for (int v = 0; v < vectors; v++) acc[i][v] = wi_dot(acc[i][v], x, y[v]);
        }
    }
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        int32_t *c = row_of(&g->c, row + i) + column;
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t left = g->n - column - v * WI_COLUMNS;
            if (left > 0)
                memcpy(c + v * WI_COLUMNS, &acc[i][v], left < WI_COLUMNS ? (size_t)left * 4 : sizeof(wi));
        }
    }
}

typedef void (*micro_fn)(const ent_cpu_gemm8 *g, const columns *columns, int64_t row, int64_t column);

#define MICRO(rows, panels)                                                                                  \
    static void micro_##rows##_##panels(const ent_cpu_gemm8 *g, const columns *c, int64_t row,               \
                                        int64_t column) {                                                    \
        micro(g, c, row, column, rows, (panels)*PANEL_VECTORS);                                              \
    }
#define SUMS(panels)                                                                                         \
    static void sums_##panels(const ent_cpu_gemm8 *g, const uint8_t *b, columns *c) {                        \
        sum_columns(g, b, c, (panels)*PANEL_VECTORS);                                                        \
    }
#define ROW_LIST(panels)                                                                                     \
    {                                                                                                        \
        micro_1_##panels, micro_2_##panels, micro_3_##panels, micro_4_##panels, micro_5_##panels,            \
            micro_6_##panels                                                                                 \
    }

MICRO(1, 1)
MICRO(2, 1)
MICRO(3, 1)
MICRO(4, 1)
MICRO(5, 1)
MICRO(6, 1)
SUMS(1)
#if PANELS == 4
MICRO(1, 2)
MICRO(2, 2)
MICRO(3, 2)
MICRO(4, 2)
MICRO(5, 2)
MICRO(6, 2)
SUMS(2)
MICRO(1, 4)
MICRO(2, 4)
MICRO(3, 4)
MICRO(4, 4)
MICRO(5, 4)
MICRO(6, 4)
SUMS(4)
static const micro_fn micros[3][ROWS] = {ROW_LIST(1), ROW_LIST(2), ROW_LIST(4)};
static void (*const sums[3])(const ent_cpu_gemm8 *, const uint8_t *, columns *) = {sums_1, sums_2, sums_4};
#else
static const micro_fn micros[1][ROWS] = {ROW_LIST(1)};
static void (*const sums[1])(const ent_cpu_gemm8 *, const uint8_t *, columns *) = {sums_1};
#endif

static void run(const ent_cpu_gemm8 *g) {
    columns c = {.a_zero = g->a_zero + (g->a_signed ? 128 : 0),
                 .b_zero = g->b_zero - (g->b_signed ? 0 : 128)};
    int64_t blocks = (g->m + ROWS - 1) / ROWS, low = g->m / blocks, high = g->m % blocks;
    for (int64_t column = 0, width = 0; column < g->n; column += width) {
        int64_t panels = ent_cpu_panels(g->n - column);
        int log = panels >= 4 && PANELS >= 4 ? 2 : panels >= 2 && PANELS >= 2 ? 1 : 0;
        width = (int64_t)ENT_CPU_PANEL << log;
        sums[log](g, g->b + column / ENT_CPU_PANEL * g->b_panel_stride, &c);
        for (int64_t i = 0, row = 0; i < blocks; i++) {
            int64_t rows = low + (i < high);
            micros[log][rows - 1](g, &c, row, column);
            row += rows;
        }
    }
}

static void pack_a8(const uint8_t *row, int64_t k_step, int64_t k, bool is_signed, int32_t zero, void *out) {
    const uint8_t flip = is_signed ? 0x80 : 0;
    uint8_t *to = out;
    int64_t i = 0;
    if (row && k_step == 1 && !flip) {
        memcpy(to, row, (size_t)k);
        i = k;
    }
    for (; row && i < k; i++) to[i] = row[i * k_step] ^ flip;
    for (; i < k || i % ENT_CPU_GEMM8_K != 0; i++) to[i] = (uint8_t)zero ^ flip;
}

void BIND(ent_cpu_kernels *table);

void BIND(ent_cpu_kernels *table) {
    table->gemm8 = run;
    table->pack_a8 = pack_a8;
    table->a8_bytes = 1;
    table->gemm8_name = NAME;
}
