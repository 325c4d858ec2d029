/* Matrix multiply of 8-bit integers by products of 16-bit pairs (pmaddwd), exact at every level: A is centred
 * and widened when it is packed, B when it is loaded. pmaddubsw would do twice as much at once, but its sums
 * of two products saturate. A vector holds the two partial sums of each of its columns; they are added at the
 * end. The AVX-512 level uses the 256-bit code: almost every such processor has VNNI (gemm8_vnni.c). */
#include <string.h>

#include "vec.h"
#include "kernels_isa.h"

#if ENT_ISA_LEVEL == 0
typedef __m128i wi;
#define WI_COLUMNS 2
#define WI_VECTORS 4 /* of one block: half a panel */
#define WI_ROWS 2
#else
typedef __m256i wi;
#define WI_COLUMNS 4
#define WI_VECTORS 4 /* a panel */
#define WI_ROWS 2
#endif
#define BLOCK_COLUMNS (WI_COLUMNS * WI_VECTORS)

/* What B is: signed without a zero point, signed, unsigned. */
enum { B_PLAIN, B_SIGNED, B_UNSIGNED, B_KINDS };

#if ENT_ISA_LEVEL == 0
ENT_INLINE wi wi_zero(void) {
    return _mm_setzero_si128();
}
ENT_INLINE wi wi_set1(int16_t x) {
    return _mm_set1_epi16(x);
}
ENT_INLINE wi wi_broadcast4(const int16_t *p) {
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm_unpacklo_epi64(x, x);
}
ENT_INLINE wi wi_widen(const uint8_t *p, const bool is_signed) {
    __m128i x = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return is_signed ? _mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8) : _mm_unpacklo_epi8(x, _mm_setzero_si128());
}
ENT_INLINE wi wi_sub(wi a, wi b) {
    return _mm_sub_epi16(a, b);
}
ENT_INLINE void wi_accumulate(wi *acc, wi a, wi b) {
    *acc = _mm_add_epi32(*acc, _mm_madd_epi16(a, b));
}
/* The sums of both halves of each column. */
ENT_INLINE void wi_columns(const wi *acc, int32_t *out) {
    for (int i = 0; i < WI_VECTORS; i += 2) {
        __m128 a = _mm_castsi128_ps(acc[i]), b = _mm_castsi128_ps(acc[i + 1]);
        __m128i even = _mm_castps_si128(_mm_shuffle_ps(a, b, 0x88)),
                odd = _mm_castps_si128(_mm_shuffle_ps(a, b, 0xdd));
        _mm_storeu_si128((__m128i *)(void *)(out + 2 * i), _mm_add_epi32(even, odd));
    }
}
#else
ENT_INLINE wi wi_zero(void) {
    return _mm256_setzero_si256();
}
ENT_INLINE wi wi_set1(int16_t x) {
    return _mm256_set1_epi16(x);
}
ENT_INLINE wi wi_broadcast4(const int16_t *p) {
    long long x;
    memcpy(&x, p, sizeof x);
    return _mm256_set1_epi64x(x);
}
ENT_INLINE wi wi_widen(const uint8_t *p, const bool is_signed) {
    __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
    return is_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
}
ENT_INLINE wi wi_sub(wi a, wi b) {
    return _mm256_sub_epi16(a, b);
}
/* In this very form: left to itself gcc starts all products early and then spills the sums. */
ENT_INLINE void wi_accumulate(wi *acc, wi a, wi b) {
    wi product = _mm256_madd_epi16(a, b);
#ifdef ENT_SIMULATED_AVX512
    *acc = _mm256_add_epi32(*acc, product);
#else
    __asm__("vpaddd %1, %0, %0" : "+x"(*acc) : "x"(product));
#endif
}
ENT_INLINE void wi_columns(const wi *acc, int32_t *out) {
    for (int i = 0; i < WI_VECTORS; i += 2) {
        __m256i sums = _mm256_permute4x64_epi64(_mm256_hadd_epi32(acc[i], acc[i + 1]), 0xd8);
        _mm256_storeu_si256((__m256i *)(void *)(out + 4 * i), sums);
    }
}
#endif

ENT_INLINE int32_t *row_of(const ent_cpu_rows *rows, int64_t row) {
    return (int32_t *)(void *)(rows->rows ? rows->rows[row] : rows->base + row * rows->stride);
}

/* rows and kind are constants in every instance. */
ENT_INLINE void micro(const ent_cpu_gemm8 *g, int64_t row, int64_t column, const int rows, const int kind) {
    const uint8_t *b =
        g->b + column / ENT_CPU_PANEL * g->b_panel_stride + column % ENT_CPU_PANEL * ENT_CPU_GEMM8_K;
    const int64_t left = g->n - column;
    const int16_t *a[WI_ROWS];
    wi acc[WI_ROWS][WI_VECTORS];
    const wi zero = wi_set1((int16_t)g->b_zero);
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        a[i] = (const int16_t *)g->a + (row + i) * g->a_stride;
        ENT_UNROLL
        for (int v = 0; v < WI_VECTORS; v++) acc[i][v] = wi_zero();
    }
    ENT_NO_UNROLL
    for (int64_t k = 0; k < g->k; k += ENT_CPU_GEMM8_K, b += ENT_CPU_PANEL * ENT_CPU_GEMM8_K) {
        wi x[WI_ROWS];
        ENT_UNROLL
        for (int i = 0; i < rows; i++) x[i] = wi_broadcast4(a[i] + k);
        ENT_UNROLL
        for (int v = 0; v < WI_VECTORS; v++) {
            wi y = wi_widen(b + v * WI_COLUMNS * ENT_CPU_GEMM8_K, kind != B_UNSIGNED);
            if (kind != B_PLAIN) y = wi_sub(y, zero);
            ENT_UNROLL
            for (int i = 0; i < rows; i++) wi_accumulate(&acc[i][v], x[i], y);
        }
    }
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        int32_t *c = row_of(&g->c, row + i) + column, sums[BLOCK_COLUMNS];
        if (left >= BLOCK_COLUMNS) {
            wi_columns(acc[i], c);
            continue;
        }
        wi_columns(acc[i], sums);
        memcpy(c, sums, (size_t)left * sizeof *c);
    }
}

typedef void (*micro_fn)(const ent_cpu_gemm8 *g, int64_t row, int64_t column);

#define MICRO(rows, kind, name)                                                                              \
    static void name(const ent_cpu_gemm8 *g, int64_t row, int64_t column) {                                  \
        micro(g, row, column, rows, kind);                                                                   \
    }
#define MICRO_KINDS(rows)                                                                                    \
    MICRO(rows, B_PLAIN, plain_##rows)                                                                       \
    MICRO(rows, B_SIGNED, signed_##rows)                                                                     \
    MICRO(rows, B_UNSIGNED, unsigned_##rows)
MICRO_KINDS(1)
MICRO_KINDS(2)
#if WI_ROWS == 3
MICRO_KINDS(3)
static const micro_fn micros[B_KINDS][WI_ROWS] = {
    {plain_1, plain_2, plain_3}, {signed_1, signed_2, signed_3}, {unsigned_1, unsigned_2, unsigned_3}};
#else
static const micro_fn micros[B_KINDS][WI_ROWS] = {
    {plain_1, plain_2}, {signed_1, signed_2}, {unsigned_1, unsigned_2}};
#endif

void ENT_ISA(ent_cpu_gemm8_run)(const ent_cpu_gemm8 *g) {
    int kind = !g->b_signed ? B_UNSIGNED : g->b_zero != 0 ? B_SIGNED : B_PLAIN;
    int64_t blocks = (g->m + WI_ROWS - 1) / WI_ROWS, low = g->m / blocks, high = g->m % blocks;
    for (int64_t column = 0; column < g->n; column += BLOCK_COLUMNS)
        for (int64_t i = 0, row = 0; i < blocks; i++) {
            int64_t rows = low + (i < high);
            micros[kind][rows - 1](g, row, column);
            row += rows;
        }
}

void ENT_ISA(ent_cpu_pack_a8)(const uint8_t *row, int64_t k_step, int64_t k, bool is_signed, int32_t zero,
                              void *out) {
    int16_t *to = out;
    int64_t i = 0;
    if (row && k_step == 1) {
        const wi z = wi_set1((int16_t)zero);
        for (; i + WI_COLUMNS * 4 <= k; i += WI_COLUMNS * 4) {
            wi x = wi_sub(wi_widen(row + i, is_signed), z);
            memcpy(to + i, &x, sizeof x);
        }
    }
    for (; row && i < k; i++)
        to[i] = (int16_t)((is_signed ? (int8_t)row[i * k_step] : row[i * k_step]) - zero);
    for (; i < k || i % ENT_CPU_GEMM8_K != 0; i++) to[i] = 0;
}
