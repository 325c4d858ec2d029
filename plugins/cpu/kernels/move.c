/* Transposition, packing and strided copies. Transposes go by square blocks in registers; SSE2 shuffles serve
 * all levels for 1 and 2 bytes, where memory and not shuffling is the limit. */
#include "vec.h"
#include "kernels_isa.h"

#include <string.h>

typedef void (*square_fn)(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes);

ENT_INLINE __m128i load_16(const uint8_t *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}
ENT_INLINE __m128i load_8(const uint8_t *p) {
    return _mm_loadl_epi64((const __m128i *)(const void *)p);
}
ENT_INLINE void store_16(uint8_t *p, __m128i x) {
    _mm_storeu_si128((__m128i *)(void *)p, x);
}

/* Three rounds of interleaving transpose 8 x 8; for bytes two rows of the result share a register. */
static void square_1(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes) {
    __m128i r[8], s[4], t[4], u[4];
    for (int i = 0; i < 8; i++) r[i] = load_8(in + i * in_bytes);
    for (int i = 0; i < 4; i++) s[i] = _mm_unpacklo_epi8(r[2 * i], r[2 * i + 1]);
    for (int i = 0; i < 2; i++) {
        t[2 * i] = _mm_unpacklo_epi16(s[2 * i], s[2 * i + 1]);
        t[2 * i + 1] = _mm_unpackhi_epi16(s[2 * i], s[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        u[2 * i] = _mm_unpacklo_epi32(t[i], t[i + 2]);
        u[2 * i + 1] = _mm_unpackhi_epi32(t[i], t[i + 2]);
    }
    for (int i = 0; i < 4; i++) {
        _mm_storel_epi64((__m128i *)(void *)(out + 2 * i * out_bytes), u[i]);
        _mm_storel_epi64((__m128i *)(void *)(out + (2 * i + 1) * out_bytes), _mm_unpackhi_epi64(u[i], u[i]));
    }
}

static void square_2(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes) {
    __m128i r[8], s[8], t[8];
    for (int i = 0; i < 8; i++) r[i] = load_16(in + i * in_bytes);
    for (int i = 0; i < 4; i++) {
        s[i] = _mm_unpacklo_epi16(r[2 * i], r[2 * i + 1]);
        s[i + 4] = _mm_unpackhi_epi16(r[2 * i], r[2 * i + 1]);
    }
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 2; i++) {
            t[4 * half + 2 * i] = _mm_unpacklo_epi32(s[4 * half + 2 * i], s[4 * half + 2 * i + 1]);
            t[4 * half + 2 * i + 1] = _mm_unpackhi_epi32(s[4 * half + 2 * i], s[4 * half + 2 * i + 1]);
        }
        for (int i = 0; i < 2; i++) {
            __m128i low = t[4 * half + i], high = t[4 * half + 2 + i];
            store_16(out + (4 * half + 2 * i) * out_bytes, _mm_unpacklo_epi64(low, high));
            store_16(out + (4 * half + 2 * i + 1) * out_bytes, _mm_unpackhi_epi64(low, high));
        }
    }
}

#if ENT_ISA_LEVEL >= 1
#define SQUARE_4 8
static void square_4(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes) {
    __m256 r[8], s[8], t[8];
    /* Halves of rows i and i + 4 share a register, so that no shuffle crosses lanes. */
    for (int i = 0; i < 4; i++) {
        for (int half = 0; half < 2; half++) {
            const float *low = (const float *)(const void *)(in + i * in_bytes) + 4 * half;
            const float *high = (const float *)(const void *)(in + (i + 4) * in_bytes) + 4 * half;
            r[i + 4 * half] =
                _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
        }
    }
    for (int half = 0; half < 8; half += 4) {
        for (int i = 0; i < 2; i++) {
            s[half + 2 * i] = _mm256_unpacklo_ps(r[half + 2 * i], r[half + 2 * i + 1]);
            s[half + 2 * i + 1] = _mm256_unpackhi_ps(r[half + 2 * i], r[half + 2 * i + 1]);
        }
        for (int i = 0; i < 2; i++) {
            t[half + 2 * i] = _mm256_shuffle_ps(s[half + i], s[half + 2 + i], 0x44);
            t[half + 2 * i + 1] = _mm256_shuffle_ps(s[half + i], s[half + 2 + i], 0xee);
        }
    }
    for (int i = 0; i < 8; i++) _mm256_storeu_ps((float *)(void *)(out + i * out_bytes), t[i]);
}
#define SQUARE_8 4
static void square_8(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes) {
    __m256d r[4], s[4];
    for (int i = 0; i < 2; i++) {
        for (int half = 0; half < 2; half++) {
            const double *low = (const double *)(const void *)(in + i * in_bytes) + 2 * half;
            const double *high = (const double *)(const void *)(in + (i + 2) * in_bytes) + 2 * half;
            r[i + 2 * half] =
                _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high), 1);
        }
    }
    for (int half = 0; half < 4; half += 2) {
        s[half] = _mm256_unpacklo_pd(r[half], r[half + 1]);
        s[half + 1] = _mm256_unpackhi_pd(r[half], r[half + 1]);
    }
    for (int i = 0; i < 4; i++) _mm256_storeu_pd((double *)(void *)(out + i * out_bytes), s[i]);
}
#else
#define SQUARE_4 4
static void square_4(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes) {
    __m128i r[4], s[4];
    for (int i = 0; i < 4; i++) r[i] = load_16(in + i * in_bytes);
    for (int i = 0; i < 2; i++) {
        s[2 * i] = _mm_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
        s[2 * i + 1] = _mm_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; i++) {
        store_16(out + 2 * i * out_bytes, _mm_unpacklo_epi64(s[i], s[i + 2]));
        store_16(out + (2 * i + 1) * out_bytes, _mm_unpackhi_epi64(s[i], s[i + 2]));
    }
}
#define SQUARE_8 2
static void square_8(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes) {
    __m128i a = load_16(in), b = load_16(in + in_bytes);
    store_16(out, _mm_unpacklo_epi64(a, b));
    store_16(out + out_bytes, _mm_unpackhi_epi64(a, b));
}
#endif

/* What no square covers: the right and lower edges. */
ENT_INLINE void transpose_plain(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes,
                                int64_t rows, int64_t columns, const int64_t size) {
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < columns; c++)
            memcpy(out + c * out_bytes + r * size, in + r * in_bytes + c * size, (size_t)size);
    }
}

ENT_INLINE void transpose_squares(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes,
                                  int64_t rows, int64_t columns, const int64_t size, const int64_t edge,
                                  square_fn square) {
    int64_t whole_rows = rows - rows % edge, whole_columns = columns - columns % edge;
    /* Blocks of 64 columns keep the destination lines in L1 until their neighbours are written. */
    for (int64_t c0 = 0; c0 < whole_columns; c0 += 64) {
        int64_t c1 = c0 + 64 < whole_columns ? c0 + 64 : whole_columns;
        for (int64_t r = 0; r < whole_rows; r += edge) {
            for (int64_t c = c0; c < c1; c += edge)
                square(in + r * in_bytes + c * size, in_bytes, out + c * out_bytes + r * size, out_bytes);
        }
    }
    transpose_plain(in + whole_columns * size, in_bytes, out + whole_columns * out_bytes, out_bytes,
                    whole_rows, columns - whole_columns, size);
    transpose_plain(in + whole_rows * in_bytes, in_bytes, out + whole_rows * size, out_bytes,
                    rows - whole_rows, columns, size);
}

void ENT_ISA(ent_cpu_transpose)(const void *in, int64_t in_stride, void *out, int64_t out_stride,
                                int64_t rows, int64_t columns, int64_t element_bytes) {
    int64_t from = in_stride * element_bytes, to = out_stride * element_bytes;
    if (element_bytes == 1)
        transpose_squares(in, from, out, to, rows, columns, 1, 8, square_1);
    else if (element_bytes == 2)
        transpose_squares(in, from, out, to, rows, columns, 2, 8, square_2);
    else if (element_bytes == 4)
        transpose_squares(in, from, out, to, rows, columns, 4, SQUARE_4, square_4);
    else
        transpose_squares(in, from, out, to, rows, columns, 8, SQUARE_8, square_8);
}

/* Rows of B are contiguous: whole panels, four at a time, so that each visit to a row reads several lines. */
static void pack_rows(const float *b, int64_t k_stride, int64_t k, int64_t panels, float *out,
                      int64_t panel_stride) {
    for (int64_t p = 0; p < panels; p += 4) {
        int64_t together = panels - p < 4 ? panels - p : 4;
        for (int64_t row = 0; row < k; row++) {
            const float *from = b + p * ENT_CPU_PANEL + row * k_stride;
            float *to = out + p * panel_stride + row * ENT_CPU_PANEL;
            for (int64_t i = 0; i < together; i++, from += ENT_CPU_PANEL, to += panel_stride) {
                ENT_UNROLL
                for (int v = 0; v < ENT_CPU_PANEL; v += VF_LANES) vf_store(to + v, vf_load(from + v));
            }
        }
    }
}

/* One panel of `width` columns in any order, zeros in the rest. */
static void pack_panel(const float *b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t width,
                       float *out) {
    if (width < ENT_CPU_PANEL) memset(out, 0, (size_t)(k * ENT_CPU_PANEL) * sizeof(float));
    if (k_stride == 1) {
        ENT_ISA(ent_cpu_transpose)(b, n_stride, out, ENT_CPU_PANEL, width, k, sizeof(float));
        return;
    }
    for (int64_t row = 0; row < k; row++) {
        for (int64_t j = 0; j < width; j++) out[row * ENT_CPU_PANEL + j] = b[row * k_stride + j * n_stride];
    }
}

void ENT_ISA(ent_cpu_pack_b)(const float *b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n,
                             float *out, int64_t panel_stride) {
    int64_t column = 0;
    if (n_stride == 1) {
        pack_rows(b, k_stride, k, n / ENT_CPU_PANEL, out, panel_stride);
        column = n - n % ENT_CPU_PANEL;
    }
    for (; column < n; column += ENT_CPU_PANEL) {
        int64_t width = n - column < ENT_CPU_PANEL ? n - column : ENT_CPU_PANEL;
        pack_panel(b + column * n_stride, k_stride, n_stride, k, width,
                   out + column / ENT_CPU_PANEL * panel_stride);
    }
}

/* Short rows dominate in practice; a call of memcpy for each would cost more than the copy. */
ENT_INLINE void copy_row(const uint8_t *in, uint8_t *out, int64_t bytes) {
    if (bytes > 256) {
        memcpy(out, in, (size_t)bytes);
        return;
    }
    int64_t i = 0;
    for (; i + 16 <= bytes; i += 16) store_16(out + i, load_16(in + i));
    for (; i + 4 <= bytes; i += 4) memcpy(out + i, in + i, 4);
    for (; i < bytes; i++) out[i] = in[i];
}

void ENT_ISA(ent_cpu_gather_rows)(const void *in, int64_t in_stride_bytes, const int64_t *indices, int64_t n,
                                  void *out, int64_t out_stride_bytes, int64_t row_bytes) {
    const uint8_t *from = in;
    uint8_t *to = out;
    for (int64_t i = 0; i < n; i++)
        copy_row(from + indices[i] * in_stride_bytes, to + i * out_stride_bytes, row_bytes);
}

void ENT_ISA(ent_cpu_copy_rows)(const void *in, int64_t in_stride_bytes, void *out, int64_t out_stride_bytes,
                                int64_t n, int64_t row_bytes) {
    const uint8_t *from = in;
    uint8_t *to = out;
    if (in_stride_bytes == row_bytes && out_stride_bytes == row_bytes) {
        memcpy(to, from, (size_t)(n * row_bytes));
        return;
    }
    for (int64_t i = 0; i < n; i++)
        copy_row(from + i * in_stride_bytes, to + i * out_stride_bytes, row_bytes);
}
