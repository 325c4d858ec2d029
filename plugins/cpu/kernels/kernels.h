/* The CPU's microkernels: one table of functions for each ISA level.
 *
 * All kernels are pure functions on memory of the caller: no allocation, no global state, safe from any
 * thread. Lengths are in elements, strides in elements unless a name ends in _bytes. Buffers need no
 * alignment. Outputs may alias inputs only where said ("in place"). f32 results do not depend on how a run is
 * split, except reductions. Transcendental functions keep about 1e-6 relative error (exp, log, tanh, erf 3
 * ulp) and follow IEEE for NaN and infinity. */
#ifndef ENT_CPU_KERNELS_H
#define ENT_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../isa.h"

/* Columns in one packed panel of B, the same at every ISA level, so that packed weights are portable. */
#define ENT_CPU_PANEL 16

/* Rows of a matrix whose elements are contiguous within a row: either base + row * stride, or, where `rows`
 * is not NULL, the pointer rows[row]. */
typedef struct ent_cpu_rows {
    float *base;
    int64_t stride;
    float *const *rows;
} ent_cpu_rows;

/* Batch-reduce matrix multiply: C[m x n] = clip(sum over b < batch of A_b[m x k] * B_b[k x n] + bias + add).
 *
 * A: row i of batch b starts at a_rows[b * a_rows_stride + i], or if a_rows is NULL at
 *    a + b * a_batch_stride + i * a_stride. k elements are contiguous. A convolution passes one row pointer
 * for each (tap, pixel), a zero row for padding, so stride, dilation, padding and gathers need no copy. B
 * packed (b_stride == 0): panel p (columns 16 p ...) of batch b starts at b + p * b_panel_stride + b_b *
 * b_batch_stride and holds [k][16] floats, zero beyond n. ent_cpu_kernels.pack_b writes this form. B plain
 * (b_stride != 0): row kk of batch b starts at b + b_b * b_batch_stride + kk * b_stride; b_panel_stride
 * unused. C: rows, n floats each. add (base and rows NULL: none): same shape, added before the clip; it may
 * be C itself, which accumulates. bias: n floats or NULL. clip: bounds lo, hi when clip is true; NaN passes.
 * Relu is lo 0, hi infinity. m, n, k, batch >= 1. The kernel blocks over k for L1; choose m and n so that A,
 * C and a k-slice of B suit L2. */
typedef struct ent_cpu_gemm {
    int64_t m, n, k, batch;
    const float *a;
    int64_t a_stride, a_batch_stride;
    const float *const *a_rows;
    int64_t a_rows_stride;
    const float *b;
    int64_t b_stride, b_batch_stride, b_panel_stride;
    ent_cpu_rows c;
    ent_cpu_rows add;
    const float *bias;
    bool clip;
    float lo, hi;
} ent_cpu_gemm;

/* Matrix multiply of 8-bit integers: C[m x n] = sum over k of (A - a_zero) * (B - b_zero), exact, 32-bit sums
 * that wrap.
 *
 * A: m rows as ent_cpu_kernels.pack_a8 writes them, a_stride elements of a8_bytes apart. B: panel p (columns
 * 16 p ...) starts at b + p * b_panel_stride and holds [k / 4][16][4] bytes; pack_b8 writes this form. k is a
 * multiple of 4: A is padded with a_zero, so that it does not matter what B holds there. C: rows of n int32,
 * in memory that ent_cpu_rows takes for floats. */
typedef struct ent_cpu_gemm8 {
    int64_t m, n, k;
    const void *a;
    int64_t a_stride;
    bool a_signed, b_signed;
    int32_t a_zero, b_zero;
    const uint8_t *b;
    int64_t b_panel_stride;
    ent_cpu_rows c;
} ent_cpu_gemm8;
#define ENT_CPU_GEMM8_K 4 /* bytes of k side by side in a panel */

/* C[i][j] = scale * dot(A row i, B row j) + (accumulate ? C[i][j] : 0), B given as [n][k]. Meant for small m
 * (below about 8); for more rows pack B. */
typedef struct ent_cpu_gemm_dot {
    int64_t m, n, k;
    const float *a;
    int64_t a_stride;
    const float *b;
    int64_t b_stride;
    float *c;
    int64_t c_stride;
    float scale;
    bool accumulate;
} ent_cpu_gemm_dot;

typedef enum ent_cpu_window_op {
    ENT_CPU_WINDOW_DEPTHWISE, /* sum of input * weight, + bias */
    ENT_CPU_WINDOW_MAX,       /* NaN if any is NaN */
    ENT_CPU_WINDOW_SUM,       /* sum * scale: average pooling */
} ent_cpu_window_op;

/* One run of output pixels of a channels-last window operation (depthwise convolution, pooling).
 * out[w * out_stride + c] = op over t < taps of in[t][w * in_stride + c] (* weights[t][c]), w < width, c <
 * channels. in[t] and weights[t] are pointers, so that padding is left out by leaving out the tap: a border
 * pixel is a run of its own with fewer taps. bias (channels floats or NULL) is for DEPTHWISE only, scale for
 * SUM only. taps may be 0 except for MAX. clip as in ent_cpu_gemm. */
typedef struct ent_cpu_window {
    ent_cpu_window_op op;
    int64_t taps, width, channels;
    const float *const *in;
    int64_t in_stride;
    const float *const *weights;
    const float *bias;
    float *out;
    int64_t out_stride;
    float scale;
    bool clip;
    float lo, hi;
} ent_cpu_window;

/* Unary f32 functions: y[i] = f(x[i]; a, b). In place is allowed. */
typedef enum ent_cpu_unary {
    ENT_CPU_NEG,
    ENT_CPU_ABS,
    ENT_CPU_SQRT,
    ENT_CPU_RSQRT,
    ENT_CPU_RECIPROCAL,
    ENT_CPU_EXP,
    ENT_CPU_LOG,
    ENT_CPU_TANH,
    ENT_CPU_SIGMOID,
    ENT_CPU_ERF,
    ENT_CPU_GELU,      /* x/2 (1 + erf(x/sqrt 2)) */
    ENT_CPU_GELU_TANH, /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    ENT_CPU_RELU,
    ENT_CPU_LEAKY_RELU,   /* x < 0 ? a x : x */
    ENT_CPU_ELU,          /* x < 0 ? a (exp x - 1) : x */
    ENT_CPU_HARD_SIGMOID, /* min(1, max(0, a x + b)) */
    ENT_CPU_HARD_SWISH,   /* x min(1, max(0, x/6 + 1/2)) */
    ENT_CPU_CLIP,         /* min(b, max(a, x)) */
    ENT_CPU_FLOOR,
    ENT_CPU_CEIL,
    ENT_CPU_ROUND, /* half to even */
    ENT_CPU_SIGN,
    ENT_CPU_SOFTPLUS,
    ENT_CPU_SILU,
    ENT_CPU_MISH,
    ENT_CPU_SIN,
    ENT_CPU_COS,
    ENT_CPU_POWER, /* x^a */
    ENT_CPU_SQUARE,
    ENT_CPU_SCALE_SHIFT, /* a x + b */
    ENT_CPU_COPY,
    ENT_CPU_UNARY_COUNT
} ent_cpu_unary;

/* Binary functions: y[i] = f(a[i * a_step], b[i * b_step]), steps 0 (one value for the whole run) or 1. In
 * place is allowed on an operand whose step is 1. min and max give NaN if either is NaN. */
typedef enum ent_cpu_binary {
    ENT_CPU_ADD,
    ENT_CPU_SUB,
    ENT_CPU_MUL,
    ENT_CPU_DIV, /* integers: towards zero; by zero gives 0 (all bits of the quotient INT_MIN / -1 wrap) */
    ENT_CPU_MIN,
    ENT_CPU_MAX,
    ENT_CPU_POW, /* floating point only */
    ENT_CPU_BINARY_COUNT
} ent_cpu_binary;

typedef enum ent_cpu_compare {
    ENT_CPU_EQUAL,
    ENT_CPU_LESS,
    ENT_CPU_LESS_EQUAL,
    ENT_CPU_COMPARE_COUNT
} ent_cpu_compare;

/* Element types of the kernels that are not f32 only. BOOL is one byte, 0 or 1. */
typedef enum ent_cpu_type {
    ENT_CPU_F32,
    ENT_CPU_F64,
    ENT_CPU_I32,
    ENT_CPU_I64,
    ENT_CPU_U8,
    ENT_CPU_I8,
    ENT_CPU_BOOL,
    ENT_CPU_F16,
    ENT_CPU_BF16,
    ENT_CPU_TYPE_COUNT
} ent_cpu_type;

typedef enum ent_cpu_reduce {
    ENT_CPU_REDUCE_SUM,
    ENT_CPU_REDUCE_MAX, /* NaN if any is NaN */
    ENT_CPU_REDUCE_MIN, /* NaN if any is NaN */
    ENT_CPU_REDUCE_SUM_SQUARES,
    ENT_CPU_REDUCE_SUM_ABS,
    ENT_CPU_REDUCE_COUNT
} ent_cpu_reduce;

typedef void (*ent_cpu_unary_fn)(const float *x, float *y, int64_t n, float a, float b);
typedef void (*ent_cpu_binary_fn)(const void *a, int64_t a_step, const void *b, int64_t b_step, void *y,
                                  int64_t n);
typedef void (*ent_cpu_cast_fn)(const void *x, void *y, int64_t n);

typedef struct ent_cpu_kernels {
    ent_cpu_isa isa;
    int64_t lanes;  /* floats in a vector */
    int64_t gemm_m; /* rows of the register block */
    int64_t gemm_n; /* columns of the register block */

    /* Matrix multiply. */
    void (*gemm)(const ent_cpu_gemm *g);
    void (*gemm_dot)(const ent_cpu_gemm_dot *g);
    /* Packs B into panels: element (kk, j) is b[kk * k_stride + j * n_stride]; panel p goes to out + p *
     * panel_stride as [k][16], zeros beyond n. Either stride may be 1. */
    void (*pack_b)(const float *b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n, float *out,
                   int64_t panel_stride);

    void (*gemm8)(const ent_cpu_gemm8 *gemm);
    /* One row of A, k elements k_step bytes apart, filled up to a multiple of ENT_CPU_GEMM8_K with the zero
     * point; all zero points if row is NULL. out: a8_bytes for each element. */
    void (*pack_a8)(const uint8_t *row, int64_t k_step, int64_t k, bool is_signed, int32_t zero, void *out);
    int64_t a8_bytes;
    const char *gemm8_name; /* of the instructions that it is made of */
    void (*window)(const ent_cpu_window *w);

    /* Runs of elements. */
    ent_cpu_unary_fn unary[ENT_CPU_UNARY_COUNT];
    /* NULL where an operation makes no sense for a type (F16 and BF16: convert to F32 first; POW on
     * integers). */
    ent_cpu_binary_fn binary[ENT_CPU_BINARY_COUNT][ENT_CPU_TYPE_COUNT];
    /* y is BOOL; greater is less with operands exchanged. */
    ent_cpu_binary_fn compare[ENT_CPU_COMPARE_COUNT][ENT_CPU_TYPE_COUNT];
    /* cast[from][to]; floats to integers truncate towards zero, saturate, NaN gives 0; to BOOL means "not
     * zero". NULL only between F16/BF16 and types other than F32: go through F32. */
    ent_cpu_cast_fn cast[ENT_CPU_TYPE_COUNT][ENT_CPU_TYPE_COUNT];
    /* y = a * b + c, steps 0 or 1 as in binary. */
    void (*multiply_add)(const float *a, int64_t a_step, const float *b, int64_t b_step, const float *c,
                         int64_t c_step, float *y, int64_t n);
    /* y = condition ? a : b for elements of 1, 2, 4 or 8 bytes; steps 0 or 1. */
    void (*select)(const uint8_t *condition, int64_t condition_step, const void *a, int64_t a_step,
                   const void *b, int64_t b_step, void *y, int64_t n, int64_t element_bytes);

    /* Reductions of one contiguous run of n >= 1. */
    float (*reduce[ENT_CPU_REDUCE_COUNT])(const float *x, int64_t n);
    /* accumulator[c] = accumulator[c] op x[r * stride + c] for r < rows, c < n. */
    void (*reduce_columns[ENT_CPU_REDUCE_COUNT])(const float *x, int64_t stride, int64_t rows,
                                                 float *accumulator, int64_t n);
    /* y = exp(scale * x - max) / sum; returns nothing; in place allowed. A row of -infinity gives NaN. */
    void (*softmax_row)(const float *x, float *y, int64_t n, float scale);
    /* y = exp(x - max), returns the sum: a step of the online softmax. In place allowed. */
    float (*exp_sum)(const float *x, float *y, int64_t n, float max);
    /* y = (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias n floats or NULL. Two passes.
     * In place. */
    void (*layer_norm_row)(const float *x, float *y, int64_t n, const float *scale, const float *bias,
                           float epsilon);

    /* Movement. out[c * out_stride + r] = in[r * in_stride + c], r < rows, c < columns, elements of 1, 2, 4,
     * 8 bytes. */
    void (*transpose)(const void *in, int64_t in_stride, void *out, int64_t out_stride, int64_t rows,
                      int64_t columns, int64_t element_bytes);
    /* out + i * out_stride_bytes = in + indices[i] * in_stride_bytes, row_bytes each; indices are in bounds.
     */
    void (*gather_rows)(const void *in, int64_t in_stride_bytes, const int64_t *indices, int64_t n, void *out,
                        int64_t out_stride_bytes, int64_t row_bytes);
    /* The same without indices: a strided copy of n rows. */
    void (*copy_rows)(const void *in, int64_t in_stride_bytes, void *out, int64_t out_stride_bytes, int64_t n,
                      int64_t row_bytes);

    /* Measuring. Runs `loops` rounds of independent multiply-adds in registers; returns floating-point
     * operations. */
    double (*fma_work)(int64_t loops);
    /* Reads n floats as fast as the machine can (result only defeats the optimiser). */
    float (*read_work)(const float *x, int64_t n);
} ent_cpu_kernels;

/* Columns rounded up to whole panels, and floats that pack_b writes for [k x n]. */
static inline int64_t ent_cpu_panels(int64_t n) {
    return (n + ENT_CPU_PANEL - 1) / ENT_CPU_PANEL;
}

/* B[k x n] of 8-bit integers as panels: what lies beyond n and k is 0. */
void ent_cpu_pack_b8(const uint8_t *b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n, uint8_t *out,
                     int64_t panel_stride);

/* The table of one level, or NULL if the level is not built or the machine cannot run it. Static lifetime. */
const ent_cpu_kernels *ent_cpu_kernels_get(ent_cpu_isa isa);

#endif
