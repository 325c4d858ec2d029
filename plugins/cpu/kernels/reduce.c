/* Row reductions, softmax and layer norm. Sums run in several lanes and vectors at once, which also bounds
 * their rounding error as a pairwise sum of a few levels would. */
#include "vec_math.h"
#include "kernels_isa.h"

#define CHAINS 4

ENT_INLINE vf sum_step(vf acc, vf x) {
    return vf_add(acc, x);
}
ENT_INLINE vf square_step(vf acc, vf x) {
    return vf_fma(x, x, acc);
}
ENT_INLINE vf absolute_step(vf acc, vf x) {
    return vf_add(acc, vf_abs(x));
}
ENT_INLINE float any_nan(vf x, float value) {
    return vm_any(vf_is_nan(x)) ? NAN : value;
}
ENT_INLINE float max_of_lanes(vf x) {
    return any_nan(x, vf_largest(x));
}
ENT_INLINE float min_of_lanes(vf x) {
    return any_nan(x, vf_smallest(x));
}

/* `merge` joins partial results: for sums of squares that is a plain addition. The tail is padded with
 * `start`. */
#define REDUCE(name, start, pad, step, merge, finish)                                                        \
    static float name(const float *x, int64_t n) {                                                           \
        vf acc[CHAINS];                                                                                      \
        int64_t i = 0;                                                                                       \
        ENT_UNROLL                                                                                           \
        for (int j = 0; j < CHAINS; j++) acc[j] = vf_set1(start);                                            \
        for (; i + CHAINS * VF_LANES <= n; i += CHAINS * VF_LANES) {                                         \
            ENT_UNROLL                                                                                       \
            for (int j = 0; j < CHAINS; j++) acc[j] = step(acc[j], vf_load(x + i + j * VF_LANES));           \
        }                                                                                                    \
        for (; i + VF_LANES <= n; i += VF_LANES) acc[0] = step(acc[0], vf_load(x + i));                      \
        if (i < n) {                                                                                         \
            float last[VF_LANES];                                                                            \
            for (int j = 0; j < VF_LANES; j++) last[j] = i + j < n ? x[i + j] : (pad);                       \
            acc[1] = step(acc[1], vf_load(last));                                                            \
        }                                                                                                    \
        return finish(merge(merge(acc[0], acc[1]), merge(acc[2], acc[3])));                                  \
    }

#define BLOCK_ROWS 8

/* Columns of several rows: the accumulator is read and written once for BLOCK_ROWS of them, and memory is
 * read in its order. `first` takes the first row of a block into a partial result. */
#define REDUCE_COLUMNS(name, first, step, merge)                                                             \
    ENT_INLINE vf name##_block(const float *x, int64_t stride, const int rows, bool ragged, vt t) {          \
        vf part = first(ragged ? vf_load_first(x, t) : vf_load(x));                                          \
        ENT_UNROLL                                                                                           \
        for (int r = 1; r < rows; r++)                                                                       \
            part = step(part, ragged ? vf_load_first(x + r * stride, t) : vf_load(x + r * stride));          \
        return part;                                                                                         \
    }                                                                                                        \
    ENT_INLINE void name##_band(const float *x, int64_t stride, const int rows, float *y, int64_t n) {       \
        int64_t i = 0;                                                                                       \
        vt t = vt_first(VF_LANES);                                                                           \
        for (; i + VF_LANES <= n; i += VF_LANES)                                                             \
            vf_store(y + i, merge(vf_load(y + i), name##_block(x + i, stride, rows, false, t)));             \
        if (i == n) return;                                                                                  \
        t = vt_first(n - i);                                                                                 \
        vf last = merge(vf_load_first(y + i, t), name##_block(x + i, stride, rows, true, t));                \
        vf_store_first(y + i, t, last);                                                                      \
    }                                                                                                        \
    static void name##_columns(const float *x, int64_t stride, int64_t rows, float *y, int64_t n) {          \
        int64_t r = 0;                                                                                       \
        for (; r + BLOCK_ROWS <= rows; r += BLOCK_ROWS)                                                      \
            name##_band(x + r * stride, stride, BLOCK_ROWS, y, n);                                           \
        for (; r < rows; r++) name##_band(x + r * stride, stride, 1, y, n);                                  \
    }

ENT_INLINE vf itself(vf x) {
    return x;
}
ENT_INLINE vf square(vf x) {
    return vf_mul(x, x);
}

REDUCE(sum, 0.0f, 0.0f, sum_step, vf_add, vf_sum)
REDUCE(largest, -INFINITY, -INFINITY, vf_max_nan, vf_max_nan, max_of_lanes)
REDUCE(smallest, INFINITY, INFINITY, vf_min_nan, vf_min_nan, min_of_lanes)
REDUCE(sum_squares, 0.0f, 0.0f, square_step, vf_add, vf_sum)
REDUCE(sum_absolute, 0.0f, 0.0f, absolute_step, vf_add, vf_sum)

REDUCE_COLUMNS(sum, itself, sum_step, vf_add)
REDUCE_COLUMNS(largest, itself, vf_max_nan, vf_max_nan)
REDUCE_COLUMNS(smallest, itself, vf_min_nan, vf_min_nan)
REDUCE_COLUMNS(sum_squares, square, square_step, vf_add)
REDUCE_COLUMNS(sum_absolute, vf_abs, absolute_step, vf_add)

/* exp(scale x - max); the caller chooses max so that no argument is above 0 (up to rounding). */
ENT_INLINE float exp_sum_scaled(const float *x, float *y, int64_t n, float scale, float max) {
    vf s = vf_set1(scale), m = vf_set1(-max), total = vf_zero(), total2 = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        vf e = vf_exp(vf_fma(vf_load(x + i), s, m));
        vf e2 = vf_exp(vf_fma(vf_load(x + i + VF_LANES), s, m));
        vf_store(y + i, e);
        vf_store(y + i + VF_LANES, e2);
        total = vf_add(total, e);
        total2 = vf_add(total2, e2);
    }
    for (; i < n; i += VF_LANES) {
        vt t = vt_first(n - i < VF_LANES ? n - i : VF_LANES);
        vf_store_first(y + i, t, vf_exp(vf_fma(vf_load_first(x + i, t), s, m)));
        /* Reading back drops the lanes beyond the end, which hold exp(-max). */
        total = vf_add(total, vf_load_first(y + i, t));
    }
    return vf_sum(vf_add(total, total2));
}

float ENT_ISA(ent_cpu_exp_sum)(const float *x, float *y, int64_t n, float max) {
    return exp_sum_scaled(x, y, n, 1.0f, max);
}

void ENT_ISA(ent_cpu_softmax_row)(const float *x, float *y, int64_t n, float scale) {
    float max = scale >= 0 ? largest(x, n) : smallest(x, n);
    float total = exp_sum_scaled(x, y, n, scale, max * scale);
    vf inverse = vf_set1(1.0f / total);
    int64_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) vf_store(y + i, vf_mul(vf_load(y + i), inverse));
    if (i == n) return;
    vt t = vt_first(n - i);
    vf_store_first(y + i, t, vf_mul(vf_load_first(y + i, t), inverse));
}

static float squared_distance(const float *x, int64_t n, float mean) {
    vf m = vf_set1(mean), a = vf_zero(), b = vf_zero();
    int64_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        vf d = vf_sub(vf_load(x + i), m), e = vf_sub(vf_load(x + i + VF_LANES), m);
        a = vf_fma(d, d, a);
        b = vf_fma(e, e, b);
    }
    float total = vf_sum(vf_add(a, b));
    for (; i < n; i++) total += (x[i] - mean) * (x[i] - mean);
    return total;
}

void ENT_ISA(ent_cpu_layer_norm_row)(const float *x, float *y, int64_t n, const float *scale,
                                     const float *bias, float epsilon) {
    float mean = sum(x, n) / (float)n;
    float variance = squared_distance(x, n, mean) / (float)n;
    vf m = vf_set1(mean), inverse = vf_set1(1.0f / sqrtf(variance + epsilon));
    for (int64_t i = 0; i < n; i += VF_LANES) {
        vt t = vt_first(n - i < VF_LANES ? n - i : VF_LANES);
        vf z = vf_mul(vf_sub(vf_load_first(x + i, t), m), inverse);
        if (scale) z = vf_mul(z, vf_load_first(scale + i, t));
        if (bias) z = vf_add(z, vf_load_first(bias + i, t));
        vf_store_first(y + i, t, z);
    }
}

void ENT_ISA(ent_cpu_reduce_bind)(ent_cpu_kernels *table) {
    table->reduce[ENT_CPU_REDUCE_SUM] = sum;
    table->reduce[ENT_CPU_REDUCE_MAX] = largest;
    table->reduce[ENT_CPU_REDUCE_MIN] = smallest;
    table->reduce[ENT_CPU_REDUCE_SUM_SQUARES] = sum_squares;
    table->reduce[ENT_CPU_REDUCE_SUM_ABS] = sum_absolute;
    table->reduce_columns[ENT_CPU_REDUCE_SUM] = sum_columns;
    table->reduce_columns[ENT_CPU_REDUCE_MAX] = largest_columns;
    table->reduce_columns[ENT_CPU_REDUCE_MIN] = smallest_columns;
    table->reduce_columns[ENT_CPU_REDUCE_SUM_SQUARES] = sum_squares_columns;
    table->reduce_columns[ENT_CPU_REDUCE_SUM_ABS] = sum_absolute_columns;
}
