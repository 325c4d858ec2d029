/* Every kernel against plain scalar code, at each ISA level that this machine can run, and the AVX-512
 * sources on a simulation of the instructions. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

void ent_cpu_kernels_fill_avx512_simulated(ent_cpu_kernels *table);

enum { TABLES = ENT_CPU_ISA_COUNT + 1 };
static ent_cpu_kernels simulated;
static const ent_cpu_kernels *tables[TABLES];
static const ent_cpu_kernels *k; /* the table under test */

static uint32_t seed = 1;

static float random_float(void) {
    seed = seed * 1664525u + 1013904223u;
    return (float)(int32_t)seed / 2147483648.0f;
}

static int64_t random_in(int64_t low, int64_t high) {
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)((uint64_t)(seed >> 8) * (uint64_t)(high - low + 1) >> 24);
}

/* Memory of exactly n floats, so that the address sanitizer sees reads beyond the end; filled with random
 * values. */
static float *floats(int64_t n) {
    float *p = malloc((size_t)(n > 0 ? n : 1) * sizeof *p);
    for (int64_t i = 0; i < n; i++) p[i] = random_float();
    return p;
}

static void expect_close(double got, double want, double relative, double absolute, const char *what) {
    if (isnan(want) ? isnan(got) : got == want) return;
    if (fabs(got - want) <= absolute + relative * fabs(want)) return;
    ck_abort_msg("%s (%s): got %.9g, want %.9g", what, ent_cpu_isa_name(k->isa), got, want);
}

/* ---- matrix multiply ---- */

typedef struct gemm_case {
    int64_t m, n, k, batch;
    bool by_rows, c_by_rows, plain_b, bias, add, add_is_c, clip;
} gemm_case;

static double gemm_value(const gemm_case *t, const float *a, const float *b, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t bb = 0; bb < t->batch; bb++) {
        for (int64_t kk = 0; kk < t->k; kk++)
            sum += (double)a[(bb * t->m + i) * t->k + kk] * b[(bb * t->k + kk) * t->n + j];
    }
    return sum;
}

static float *pack_all(const gemm_case *t, const float *b, int64_t *panel_stride) {
    int64_t panels = ent_cpu_panels(t->n);
    *panel_stride = t->batch * t->k * ENT_CPU_PANEL;
    float *packed = floats(panels * *panel_stride);
    for (int64_t bb = 0; bb < t->batch; bb++)
        k->pack_b(b + bb * t->k * t->n, t->n, 1, t->k, t->n, packed + bb * t->k * ENT_CPU_PANEL,
                  *panel_stride);
    return packed;
}

static void check_gemm(const gemm_case *t) {
    float *a = floats(t->batch * t->m * t->k), *b = floats(t->batch * t->k * t->n), *c = floats(t->m * t->n);
    float *add = floats(t->m * t->n), *bias = floats(t->n), *before = floats(t->m * t->n), *packed = NULL;
    const float **rows = malloc((size_t)(t->batch * t->m) * sizeof *rows);
    float **c_rows = malloc((size_t)t->m * sizeof *c_rows);
    memcpy(before, c, (size_t)(t->m * t->n) * sizeof *c);
    for (int64_t i = 0; i < t->batch * t->m; i++) rows[i] = a + i * t->k;
    for (int64_t i = 0; i < t->m; i++) c_rows[i] = c + i * t->n;
    ent_cpu_gemm g = {
        .m = t->m, .n = t->n, .k = t->k, .batch = t->batch, .clip = t->clip, .lo = -0.5f, .hi = 0.75f};
    if (t->by_rows)
        g.a_rows = rows, g.a_rows_stride = t->m;
    else
        g.a = a, g.a_stride = t->k, g.a_batch_stride = t->m * t->k;
    if (t->plain_b) {
        g.b = b, g.b_stride = t->n, g.b_batch_stride = t->k * t->n;
    } else {
        g.b = packed = pack_all(t, b, &g.b_panel_stride);
        g.b_batch_stride = t->k * ENT_CPU_PANEL;
    }
    if (t->c_by_rows)
        g.c.rows = c_rows;
    else
        g.c = (ent_cpu_rows){.base = c, .stride = t->n};
    if (t->bias) g.bias = bias;
    if (t->add) g.add = t->add_is_c ? g.c : (ent_cpu_rows){.base = add, .stride = t->n};
    k->gemm(&g);
    for (int64_t i = 0; i < t->m; i++) {
        for (int64_t j = 0; j < t->n; j++) {
            double want = gemm_value(t, a, b, i, j) + (t->bias ? bias[j] : 0);
            if (t->add) want += t->add_is_c ? before[i * t->n + j] : add[i * t->n + j];
            if (t->clip) want = want < -0.5 ? -0.5 : want > 0.75 ? 0.75 : want;
            expect_close(c[i * t->n + j], want, 1e-5, 2e-6 * sqrt((double)(t->k * t->batch)) + 1e-6, "gemm");
        }
    }
    free(a), free(b), free(c), free(add), free(bias), free(before), free(packed), free(rows), free(c_rows);
}

START_TEST(gemm_all_block_shapes) {
    k = tables[_i];
    if (!k) return;
    for (int64_t m = 1; m <= 14; m++) {
        for (int64_t n = 1; n <= 70; n += n < 36 ? 1 : 5) {
            for (int plain = 0; plain < 2; plain++)
                check_gemm(
                    &(gemm_case){.m = m, .n = n, .k = 7, .batch = 2, .plain_b = plain, .by_rows = n & 1});
        }
    }
    check_gemm(&(gemm_case){.m = 1, .n = 200, .k = 33, .batch = 1});
    check_gemm(&(gemm_case){.m = 1, .n = 200, .k = 33, .batch = 1, .plain_b = true});
}
END_TEST

START_TEST(gemm_options) {
    k = tables[_i];
    if (!k) return;
    for (int bits = 0; bits < 128; bits++) {
        gemm_case t = {
            .m = random_in(1, 20), .n = random_in(1, 80), .k = random_in(1, 40), .batch = random_in(1, 9)};
        t.by_rows = bits & 1, t.c_by_rows = bits & 2, t.plain_b = bits & 4, t.bias = bits & 8;
        t.add = bits & 16, t.add_is_c = bits & 32, t.clip = bits & 64;
        check_gemm(&t);
        t.k = random_in(200, 900), t.batch = random_in(1, 3); /* several slices of k */
        if (bits % 8 == _i) check_gemm(&t);
        t.k = random_in(30, 60), t.batch = random_in(10, 20); /* several batches in a slice, several slices */
        if (bits % 8 == _i + 4) check_gemm(&t);
    }
}
END_TEST

START_TEST(gemm_clip_lets_nan_through) {
    k = tables[_i];
    if (!k) return;
    float a[2] = {NAN, 1}, b[16] = {1}, c[2];
    ent_cpu_gemm g = {.m = 2,
                      .n = 1,
                      .k = 1,
                      .batch = 1,
                      .a = a,
                      .a_stride = 1,
                      .b = b,
                      .b_panel_stride = 16,
                      .c = {.base = c, .stride = 1},
                      .clip = true,
                      .lo = 0,
                      .hi = 6};
    k->gemm(&g);
    ck_assert(isnan(c[0]));
    ck_assert(c[1] == 1.0f);
}
END_TEST

START_TEST(gemm_dot) {
    k = tables[_i];
    if (!k) return;
    for (int round = 0; round < 200; round++) {
        int64_t m = random_in(1, 9), n = random_in(1, 19), depth = random_in(1, 70);
        float *a = floats(m * depth), *b = floats(n * depth), *c = floats(m * n), *before = floats(m * n);
        memcpy(before, c, (size_t)(m * n) * sizeof *c);
        ent_cpu_gemm_dot g = {.m = m,
                              .n = n,
                              .k = depth,
                              .a = a,
                              .a_stride = depth,
                              .b = b,
                              .b_stride = depth,
                              .c = c,
                              .c_stride = n,
                              .scale = 0.5f,
                              .accumulate = round & 1};
        k->gemm_dot(&g);
        for (int64_t i = 0; i < m * n; i++) {
            double sum = round & 1 ? before[i] : 0;
            for (int64_t kk = 0; kk < depth; kk++) sum += 0.5 * a[i / n * depth + kk] * b[i % n * depth + kk];
            expect_close(c[i], sum, 1e-5, 1e-5, "gemm_dot");
        }
        free(a), free(b), free(c), free(before);
    }
}
END_TEST

START_TEST(pack_b_all_orders) {
    k = tables[_i];
    if (!k) return;
    for (int round = 0; round < 60; round++) {
        int64_t depth = random_in(1, 40), n = random_in(1, 50), gap = random_in(1, 3),
                panels = ent_cpu_panels(n);
        int64_t k_stride = round % 3 == 0 ? n : round % 3 == 1 ? 1 : gap;
        int64_t n_stride = round % 3 == 0 ? 1 : round % 3 == 1 ? depth : gap * depth;
        float *b = floats((depth - 1) * k_stride + (n - 1) * n_stride + 1),
              *out = floats(panels * depth * 16);
        k->pack_b(b, k_stride, n_stride, depth, n, out, depth * 16);
        for (int64_t p = 0; p < panels * 16; p++) {
            for (int64_t kk = 0; kk < depth; kk++) {
                float want = p < n ? b[kk * k_stride + p * n_stride] : 0;
                ck_assert(out[p / 16 * depth * 16 + kk * 16 + p % 16] == want);
            }
        }
        free(b), free(out);
    }
}
END_TEST

/* ---- windows ---- */

/* Every third call has special values in a few places. */
static void add_specials(float *x, int64_t n) {
    static const float specials[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-40f};
    if (random_in(0, 2) > 0) return;
    for (int64_t i = 0; i < 5; i++) x[random_in(0, n - 1)] = specials[i];
}

static void check_window(ent_cpu_window_op op, int64_t taps, int64_t width, int64_t channels, bool bias,
                         bool clip) {
    int64_t step = channels * random_in(1, 2), span = (width - 1) * step + channels;
    float *data = floats(span + taps * channels), *weight = floats(taps * channels),
          *out = floats(width * channels);
    float *b = floats(channels);
    add_specials(data, span + taps * channels);
    const float *in[32], *weights[32];
    for (int64_t t = 0; t < taps; t++) in[t] = data + t * channels, weights[t] = weight + t * channels;
    ent_cpu_window w = {.op = op,
                        .taps = taps,
                        .width = width,
                        .channels = channels,
                        .in = in,
                        .in_stride = step,
                        .weights = weights,
                        .bias = bias ? b : NULL,
                        .out = out,
                        .out_stride = channels,
                        .scale = 0.25f,
                        .clip = clip,
                        .lo = -0.25f,
                        .hi = 0.5f};
    k->window(&w);
    for (int64_t i = 0; i < width * channels; i++) {
        int64_t c = i % channels, at = i / channels * step + c;
        double x = op == ENT_CPU_WINDOW_MAX ? -INFINITY : op == ENT_CPU_WINDOW_DEPTHWISE && bias ? b[c] : 0;
        for (int64_t t = 0; t < taps; t++) {
            double v = in[t][at];
            if (op == ENT_CPU_WINDOW_MAX)
                x = isnan(x) || x > v ? x : v;
            else
                x += op == ENT_CPU_WINDOW_SUM ? v : v * weights[t][c];
        }
        if (op == ENT_CPU_WINDOW_SUM) x *= 0.25;
        if (clip) x = x < -0.25 ? -0.25 : x > 0.5 ? 0.5 : x;
        expect_close(out[i], x, 1e-5, 1e-5, "window");
    }
    free(data), free(weight), free(out), free(b);
}

START_TEST(windows) {
    k = tables[_i];
    if (!k) return;
    for (int op = 0; op < 3; op++) {
        for (int round = 0; round < 150; round++)
            check_window((ent_cpu_window_op)op, random_in(1, 25), random_in(1, 15), random_in(1, 70),
                         round & 1, round & 2);
    }
    check_window(ENT_CPU_WINDOW_DEPTHWISE, 0, 4, 9, true, false);
}
END_TEST

/* ---- elementwise ---- */

static double unary_value(int f, double x, double a, double b) {
    double t;
    switch (f) {
    case ENT_CPU_NEG:
        return -x;
    case ENT_CPU_ABS:
        return fabs(x);
    case ENT_CPU_SQRT:
        return sqrt(x);
    case ENT_CPU_RSQRT:
        return 1 / sqrt(x);
    case ENT_CPU_RECIPROCAL:
        return 1 / x;
    case ENT_CPU_EXP:
        return exp(x);
    case ENT_CPU_LOG:
        return log(x);
    case ENT_CPU_TANH:
        return tanh(x);
    case ENT_CPU_SIGMOID:
        return 1 / (1 + exp(-x));
    case ENT_CPU_ERF:
        return erf(x);
    case ENT_CPU_GELU:
        return x * 0.5 * erfc(-x * 0.70710678118654752440);
    case ENT_CPU_GELU_TANH:
        return x / (1 + exp(-2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case ENT_CPU_RELU:
        return x < 0 ? 0 : x;
    case ENT_CPU_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case ENT_CPU_ELU:
        return x < 0 ? a * expm1(x) : x;
    case ENT_CPU_HARD_SIGMOID:
        t = a * x + b;
        return t < 0 ? 0 : t > 1 ? 1 : t;
    case ENT_CPU_HARD_SWISH:
        t = x / 6 + 0.5;
        return x * (t < 0 ? 0 : t > 1 ? 1 : t);
    case ENT_CPU_CLIP:
        return x < a ? a : x > b ? b : x;
    case ENT_CPU_FLOOR:
        return floor(x);
    case ENT_CPU_CEIL:
        return ceil(x);
    case ENT_CPU_ROUND:
        return nearbyint(x);
    case ENT_CPU_SIGN:
        return x > 0 ? 1 : x < 0 ? -1 : x;
    case ENT_CPU_SOFTPLUS:
        return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
    case ENT_CPU_SILU:
        return x / (1 + exp(-x));
    case ENT_CPU_MISH:
        return x * tanh((x > 0 ? x : 0) + log1p(exp(-fabs(x))));
    case ENT_CPU_SIN:
        return sin(x);
    case ENT_CPU_COS:
        return cos(x);
    case ENT_CPU_POWER:
        return pow(x, a);
    case ENT_CPU_SQUARE:
        return x * x;
    case ENT_CPU_SCALE_SHIFT:
        return a * x + b;
    default:
        return x;
    }
}

/* Absolute slack where the formula itself subtracts near-equal numbers, or where single precision of the
 * argument already costs that much. */
static double unary_slack(int f, double x) {
    if (f == ENT_CPU_GELU) return 1.5e-7 * fabs(x) + 1e-7;
    if (f == ENT_CPU_GELU_TANH || f == ENT_CPU_MISH || f == ENT_CPU_SILU) return 2e-7;
    if (f == ENT_CPU_SIN || f == ENT_CPU_COS) return 3e-7 + fabs(x) * 4e-8;
    if (f == ENT_CPU_HARD_SWISH || f == ENT_CPU_HARD_SIGMOID || f == ENT_CPU_SCALE_SHIFT)
        return 2e-7 * (1 + fabs(x));
    return 1e-37;
}

static void check_unary(int f, const float *x, int64_t n, float a, float b) {
    float *in = malloc((size_t)n * sizeof *in), *y = malloc((size_t)n * sizeof *y);
    memcpy(in, x, (size_t)n * sizeof *in);
    k->unary[f](in, y, n, a, b);
    for (int64_t i = 0; i < n; i++) {
        float want = (float)unary_value(f, x[i], a, b);
        char what[64];
        snprintf(what, sizeof what, "unary %d of %.9g", f, x[i]);
        double relative = f == ENT_CPU_GELU_TANH || f == ENT_CPU_GELU || f == ENT_CPU_MISH ? 4e-6 : 1.2e-6;
        expect_close(y[i], want, relative, isfinite(x[i]) ? unary_slack(f, x[i]) : 0, what);
    }
    k->unary[f](in, in, n, a, b);
    ck_assert(memcmp(in, y, (size_t)n * sizeof *in) == 0);
    free(in), free(y);
}

START_TEST(unary_functions) {
    k = tables[_i];
    if (!k) return;
    static const float special[] = {
        0.0f,    -0.0f,  1.0f,  -1.0f,  0.5f,  -0.5f, 1.5f,        2.5f,     -2.5f,      0.625f, 1e-20f,
        -1e-20f, 1e-40f, 87.0f, -87.0f, 88.7f, 89.5f, -103.0f,     -110.0f,  8388609.0f, 1e10f,  -1e10f,
        3e38f,   -3e38f, 20.0f, -20.0f, 5.0f,  -5.0f, 0.99999994f, INFINITY, -INFINITY,  NAN};
    enum { SPECIALS = sizeof special / sizeof *special, MANY = 4003 };
    static float x[MANY];
    for (int f = 0; f < ENT_CPU_UNARY_COUNT; f++) {
        bool unbounded = f != ENT_CPU_GELU && f != ENT_CPU_GELU_TANH && f != ENT_CPU_MISH &&
                         f != ENT_CPU_SILU && f != ENT_CPU_HARD_SWISH && f != ENT_CPU_SIN &&
                         f != ENT_CPU_COS && f != ENT_CPU_SCALE_SHIFT;
        for (int i = 0; i < SPECIALS && unbounded; i++) check_unary(f, &special[i], 1, 0.25f, 0.5f);
        for (int i = 0; i < MANY; i++)
            x[i] = random_float() * (i % 4 == 0 ? 0.01f : i % 4 == 1 ? 1 : i % 4 == 2 ? 10 : 90);
        if (f == ENT_CPU_LOG || f == ENT_CPU_SQRT || f == ENT_CPU_RSQRT || f == ENT_CPU_POWER)
            for (int i = 0; i < MANY; i++)
                x[i] = fabsf(x[i]) * (i % 5 ? 1.0f : 1e-38f) * (i % 7 ? 1.0f : 1e30f);
        for (int n = 1; n < 40; n++) check_unary(f, x, n, 0.25f, 0.5f);
        check_unary(f, x, MANY, 0.1f, 0.5f);
    }
    float nan = NAN, y;
    for (int f = 0; f < ENT_CPU_UNARY_COUNT; f++) {
        k->unary[f](&nan, &y, 1, 0.25f, 0.5f);
        if (!isnan(y)) ck_abort_msg("unary %d drops NaN", f);
    }
    static const float exponents[] = {2, 0.5f, -1, 3, 1, 0, -0.5f, 2.7f};
    for (int i = 0; i < 8; i++) check_unary(ENT_CPU_POWER, special, SPECIALS, exponents[i], 0);
}
END_TEST

static float binary_value(int f, float a, float b) {
    switch (f) {
    case ENT_CPU_ADD:
        return a + b;
    case ENT_CPU_SUB:
        return a - b;
    case ENT_CPU_MUL:
        return a * b;
    case ENT_CPU_DIV:
        return a / b;
    case ENT_CPU_MIN:
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case ENT_CPU_MAX:
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default:
        return powf(a, b);
    }
}

START_TEST(binary_functions) {
    k = tables[_i];
    if (!k) return;
    for (int f = 0; f < ENT_CPU_BINARY_COUNT; f++) {
        for (int64_t n = 1; n < 45; n++) {
            for (int steps = 0; steps < 4; steps++) {
                int64_t as = steps & 1, bs = steps >> 1;
                float *a = floats(as ? n : 1), *b = floats(bs ? n : 1), *y = floats(n);
                if (n % 5 == 0) a[as ? n / 2 : 0] = NAN;
                if (n % 5 == 1) b[bs ? n - 1 : 0] = NAN;
                k->binary[f][ENT_CPU_F32](a, as, b, bs, y, n);
                for (int64_t i = 0; i < n; i++)
                    expect_close(y[i], binary_value(f, a[i * as], b[i * bs]), 0, 0, "binary");
                k->multiply_add(a, as, b, bs, y, 1, y, n);
                for (int64_t i = 0; i < n; i++) {
                    double want = (double)a[i * as] * b[i * bs] + binary_value(f, a[i * as], b[i * bs]);
                    expect_close(y[i], want, 1e-6, 1e-6, "multiply_add");
                }
                free(a), free(b), free(y);
            }
        }
    }
}
END_TEST

#define CHECK_INTEGER(type, id, values)                                                                      \
    for (int i = 0; i < n; i++) {                                                                            \
        type a[9], b = (type)values[i], y[9];                                                                \
        uint8_t c[9];                                                                                        \
        for (int j = 0; j < 9; j++) a[j] = (type)values[(i + j) % n];                                        \
        for (int f = 0; f <= ENT_CPU_MAX; f++) {                                                             \
            k->binary[f][id](a, 1, &b, 0, y, 9);                                                             \
            for (int j = 0; j < 9; j++) {                                                                    \
                uint64_t ua = (uint64_t)a[j], ub = (uint64_t)b;                                              \
                type q = b == 0 ? 0 : b == (type)-1 && (type)-1 < 1 ? (type)(0 - ua) : (type)(a[j] / b);     \
                type want = f == ENT_CPU_ADD   ? (type)(ua + ub)                                             \
                            : f == ENT_CPU_SUB ? (type)(ua - ub)                                             \
                            : f == ENT_CPU_MUL ? (type)(ua * ub)                                             \
                            : f == ENT_CPU_DIV ? q                                                           \
                            : f == ENT_CPU_MIN ? (a[j] < b ? a[j] : b)                                       \
                                               : (a[j] > b ? a[j] : b);                                      \
                ck_assert_msg(y[j] == want, "type %d op %d", (int)id, f);                                    \
            }                                                                                                \
        }                                                                                                    \
        for (int f = 0; f < ENT_CPU_COMPARE_COUNT; f++) {                                                    \
            k->compare[f][id](&b, 0, a, 1, c, 9);                                                            \
            for (int j = 0; j < 9; j++)                                                                      \
                ck_assert(c[j] == (f == 0 ? b == a[j] : f == 1 ? b < a[j] : b <= a[j]));                     \
        }                                                                                                    \
    }

START_TEST(integer_functions) {
    k = tables[_i];
    if (!k) return;
    static const int64_t values[] = {0,         1,         -1,        2,         7,   -7,  100,
                                     INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 255, -128};
    enum { n = sizeof values / sizeof *values };
    CHECK_INTEGER(int32_t, ENT_CPU_I32, values)
    CHECK_INTEGER(int64_t, ENT_CPU_I64, values)
    CHECK_INTEGER(int8_t, ENT_CPU_I8, values)
    CHECK_INTEGER(uint8_t, ENT_CPU_U8, values)
}
END_TEST

START_TEST(casts) {
    k = tables[_i];
    if (!k) return;
    float in[] = {0,     1.9f,   -1.9f, 300,      -300,   3e9f,         -3e9f,
                  1e20f, -1e20f, NAN,   INFINITY, 127.5f, 2147483520.0f};
    enum { n = sizeof in / sizeof *in };
    int32_t i32[n];
    int64_t i64[n];
    uint8_t u8[n], bools[n];
    k->cast[ENT_CPU_F32][ENT_CPU_I32](in, i32, n);
    k->cast[ENT_CPU_F32][ENT_CPU_I64](in, i64, n);
    k->cast[ENT_CPU_F32][ENT_CPU_U8](in, u8, n);
    k->cast[ENT_CPU_F32][ENT_CPU_BOOL](in, bools, n);
    static const int32_t want32[n] = {0,         1,         -1, 300,       -300, INT32_MAX, INT32_MIN,
                                      INT32_MAX, INT32_MIN, 0,  INT32_MAX, 127,  2147483520};
    static const int64_t want64[n] = {0,         1,         -1, 300,       -300, 3000000000, -3000000000,
                                      INT64_MAX, INT64_MIN, 0,  INT64_MAX, 127,  2147483520};
    static const uint8_t want8[n] = {0, 1, 0, 255, 0, 255, 0, 255, 0, 0, 255, 127, 255};
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(i32[i], want32[i]);
        ck_assert(i64[i] == want64[i]);
        ck_assert_int_eq(u8[i], want8[i]);
        ck_assert_int_eq(bools[i], in[i] != 0);
    }
    int64_t big[2] = {-5, 1ll << 40};
    double wide[2];
    k->cast[ENT_CPU_I64][ENT_CPU_F64](big, wide, 2);
    ck_assert(wide[0] == -5 && wide[1] == 1099511627776.0);
}
END_TEST

/* Every half value must survive both ways, and rounding must be to even between neighbours. */
START_TEST(half_precision) {
    k = tables[_i];
    if (!k) return;
    static uint16_t h[65536], back[65536];
    static float f[65536], middle[31743];
    for (int i = 0; i < 65536; i++) h[i] = (uint16_t)i;
    k->cast[ENT_CPU_F16][ENT_CPU_F32](h, f, 65536);
    k->cast[ENT_CPU_F32][ENT_CPU_F16](f, back, 65536);
    ck_assert(f[0x3c00] == 1.0f && f[1] == 5.9604644775390625e-8f && f[0xfbff] == -65504.0f &&
              isinf(f[0x7c00]));
    for (int i = 0; i < 65536; i++) {
        if (isnan(f[i]))
            ck_assert((i & 0x7fff) > 0x7c00 && (back[i] & 0x7fff) > 0x7c00);
        else
            ck_assert_int_eq(back[i], i);
    }
    for (int i = 0; i < 31743; i++) middle[i] = (f[i] + f[i + 1]) / 2;
    k->cast[ENT_CPU_F32][ENT_CPU_F16](middle, back, 31743);
    for (int i = 0; i < 31743; i++) ck_assert_int_eq(back[i], i + (i & 1));
    for (int i = 0; i < 5; i++) { /* the scalar tail must agree */
        k->cast[ENT_CPU_F32][ENT_CPU_F16](middle + 1000 + i, back, 1);
        ck_assert_int_eq(back[0], 1000 + i + (i & 1));
    }
    float b[4] = {1.0f, 1.00390625f, 1.01171875f, NAN}, r[4];
    k->cast[ENT_CPU_F32][ENT_CPU_BF16](b, back, 4);
    k->cast[ENT_CPU_BF16][ENT_CPU_F32](back, r, 4);
    ck_assert(r[0] == 1.0f && r[1] == 1.0f && r[2] == 1.015625f && isnan(r[3]));
}
END_TEST

START_TEST(selects) {
    k = tables[_i];
    if (!k) return;
    uint8_t condition[19];
    for (int i = 0; i < 19; i++) condition[i] = (uint8_t)(i % 3 == 0);
    for (int64_t size = 1; size <= 8; size *= 2) {
        uint8_t a[19 * 8], b[19 * 8], y[19 * 8];
        for (int i = 0; i < 19 * 8; i++) a[i] = (uint8_t)i, b[i] = (uint8_t)(255 - i);
        for (int steps = 0; steps < 8; steps++) {
            int64_t cs = steps & 1, as = steps >> 1 & 1, bs = steps >> 2;
            k->select(condition, cs, a, as, b, bs, y, 19, size);
            for (int64_t i = 0; i < 19; i++) {
                const uint8_t *want = condition[i * cs] ? a + i * as * size : b + i * bs * size;
                ck_assert(memcmp(y + i * size, want, (size_t)size) == 0);
            }
        }
    }
}
END_TEST

/* ---- reductions ---- */

static double reduce_value(int f, double acc, double x) {
    if (f == ENT_CPU_REDUCE_SUM) return acc + x;
    if (f == ENT_CPU_REDUCE_SUM_SQUARES) return acc + x * x;
    if (f == ENT_CPU_REDUCE_SUM_ABS) return acc + fabs(x);
    if (isnan(acc) || isnan(x)) return NAN;
    return f == ENT_CPU_REDUCE_MAX ? (x > acc ? x : acc) : (x < acc ? x : acc);
}

START_TEST(reductions) {
    k = tables[_i];
    if (!k) return;
    for (int f = 0; f < ENT_CPU_REDUCE_COUNT; f++) {
        for (int64_t n = 1; n < 200; n++) {
            float *x = floats(n);
            if (n % 11 == 0) x[random_in(0, n - 1)] = NAN;
            double want = f == ENT_CPU_REDUCE_MAX ? -INFINITY : f == ENT_CPU_REDUCE_MIN ? INFINITY : 0;
            for (int64_t i = 0; i < n; i++) want = reduce_value(f, want, x[i]);
            expect_close(k->reduce[f](x, n), want, 1e-5, 1e-5, "reduce");
            free(x);
        }
    }
}
END_TEST

START_TEST(column_reductions) {
    k = tables[_i];
    if (!k) return;
    for (int f = 0; f < ENT_CPU_REDUCE_COUNT; f++) {
        for (int64_t rows = 0; rows < 27; rows++) {
            int64_t n = random_in(1, 100), stride = n + random_in(0, 9);
            float *x = floats(rows * stride + n), *acc = floats(n), *before = floats(n);
            if (rows % 3 == 1) x[random_in(0, rows - 1) * stride + random_in(0, n - 1)] = NAN;
            if (rows % 5 == 1) acc[random_in(0, n - 1)] = NAN;
            memcpy(before, acc, (size_t)n * sizeof *acc);
            k->reduce_columns[f](x, stride, rows, acc, n);
            for (int64_t i = 0; i < n; i++) {
                double want = before[i];
                for (int64_t r = 0; r < rows; r++) want = reduce_value(f, want, x[r * stride + i]);
                expect_close(acc[i], want, 1e-5, 1e-5, "column");
            }
            free(x), free(acc), free(before);
        }
    }
}
END_TEST

START_TEST(softmax_and_norm) {
    k = tables[_i];
    if (!k) return;
    for (int64_t n = 1; n < 130; n++) {
        float *x = floats(n), *y = floats(n), *scale = floats(n), *bias = floats(n);
        for (int64_t i = 0; i < n; i++) x[i] = x[i] * 30 + 100;
        if (n > 3) x[1] = -INFINITY;
        double max = -INFINITY, total = 0, mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) max = x[i] > max ? x[i] : max;
        for (int64_t i = 0; i < n; i++) total += exp((x[i] - max) * 0.7);
        k->softmax_row(x, y, n, 0.7f);
        for (int64_t i = 0; i < n; i++)
            expect_close(y[i], exp((x[i] - max) * 0.7) / total, 2e-5, 1e-9, "softmax");
        float sum = k->exp_sum(x, y, n, (float)max);
        double exact = 0;
        for (int64_t i = 0; i < n; i++) exact += exp(x[i] - max);
        expect_close(sum, exact, 1e-5, 0, "exp_sum");
        if (n > 3) x[1] = 3;
        for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
        for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
        k->layer_norm_row(x, x == y ? y : y, n, n & 1 ? scale : NULL, n & 2 ? bias : NULL, 1e-3f);
        for (int64_t i = 0; i < n; i++) {
            double z = (x[i] - mean) / sqrt(variance + 1e-3) * (n & 1 ? scale[i] : 1) + (n & 2 ? bias[i] : 0);
            expect_close(y[i], z, 1e-5, 3e-4, "layer_norm");
        }
        free(x), free(y), free(scale), free(bias);
    }
}
END_TEST

/* ---- movement ---- */

START_TEST(transposes) {
    k = tables[_i];
    if (!k) return;
    for (int64_t size = 1; size <= 8; size *= 2) {
        for (int round = 0; round < 80; round++) {
            int64_t rows = random_in(1, 40), columns = random_in(1, round % 8 ? 40 : 150);
            uint8_t *in = malloc((size_t)(rows * columns * size)),
                    *out = malloc((size_t)(rows * columns * size));
            for (int64_t i = 0; i < rows * columns * size; i++) in[i] = (uint8_t)random_in(0, 255);
            k->transpose(in, columns, out, rows, rows, columns, size);
            for (int64_t i = 0; i < rows * columns; i++) {
                int64_t r = i / columns, c = i % columns;
                ck_assert(memcmp(in + i * size, out + (c * rows + r) * size, (size_t)size) == 0);
            }
            free(in), free(out);
        }
    }
}
END_TEST

START_TEST(row_copies) {
    k = tables[_i];
    if (!k) return;
    for (int64_t bytes = 1; bytes < 600; bytes += bytes < 40 ? 1 : 37) {
        int64_t indices[5] = {3, 0, 2, 2, 1};
        uint8_t *in = malloc((size_t)(bytes * 4)), *out = malloc((size_t)((bytes + 3) * 5)),
                *plain = malloc((size_t)(bytes * 4));
        for (int64_t i = 0; i < bytes * 4; i++) in[i] = (uint8_t)random_in(0, 255);
        k->gather_rows(in, bytes, indices, 5, out, bytes + 3, bytes);
        for (int i = 0; i < 5; i++)
            ck_assert(memcmp(out + i * (bytes + 3), in + indices[i] * bytes, (size_t)bytes) == 0);
        k->copy_rows(in, bytes, plain, bytes, 4, bytes);
        ck_assert(memcmp(in, plain, (size_t)(bytes * 4)) == 0);
        k->copy_rows(out, bytes + 3, plain, bytes, 4, bytes);
        for (int i = 0; i < 4; i++)
            ck_assert(memcmp(plain + i * bytes, in + indices[i] * bytes, (size_t)bytes) == 0);
        free(in), free(out), free(plain);
    }
}
END_TEST

START_TEST(isa_names) {
    ent_cpu_isa isa = ENT_CPU_ISA_AVX2;
    const char *bad = NULL;
    ck_assert(ent_cpu_isa_parse("avx512", &isa) && isa == ENT_CPU_ISA_AVX512);
    ck_assert(!ent_cpu_isa_parse("avx3", &isa) && isa == ENT_CPU_ISA_AVX512);
    unsetenv("ENTENTE_CPU_ISA");
    ck_assert(ent_cpu_isa_choose("baseline", &isa, &bad) && isa == ENT_CPU_ISA_BASELINE);
    ck_assert(ent_cpu_isa_choose(NULL, &isa, &bad) && isa == ent_cpu_isa_detect());
    setenv("ENTENTE_CPU_ISA", "sse9", 1);
    ck_assert(!ent_cpu_isa_choose(NULL, &isa, &bad));
    ck_assert_str_eq(bad, "sse9");
    setenv("ENTENTE_CPU_ISA", "baseline", 1);
    ck_assert(ent_cpu_isa_choose("avx2", &isa, &bad) && isa == ENT_CPU_ISA_BASELINE);
    unsetenv("ENTENTE_CPU_ISA");
    ck_assert(ent_cpu_kernels_get(ent_cpu_isa_detect()) != NULL);
}
END_TEST

int main(void) {
    for (int i = 0; i < ENT_CPU_ISA_COUNT; i++) tables[i] = ent_cpu_kernels_get((ent_cpu_isa)i);
    /* The simulation itself is built for AVX2. */
    if (ent_cpu_isa_detect() >= ENT_CPU_ISA_AVX2) {
        ent_cpu_kernels_fill_avx512_simulated(&simulated);
        tables[ENT_CPU_ISA_COUNT] = &simulated;
    }
    Suite *suite = suite_create("cpu_kernels");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, 120);
    const TTest *const each[] = {gemm_all_block_shapes,
                                 gemm_options,
                                 gemm_clip_lets_nan_through,
                                 gemm_dot,
                                 pack_b_all_orders,
                                 windows,
                                 unary_functions,
                                 binary_functions,
                                 integer_functions,
                                 casts,
                                 half_precision,
                                 selects,
                                 reductions,
                                 column_reductions,
                                 softmax_and_norm,
                                 transposes,
                                 row_copies};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) tcase_add_loop_test(cases, each[i], 0, TABLES);
    tcase_add_test(cases, isa_names);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
