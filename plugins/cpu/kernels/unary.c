#include "vec_math.h"
#include "kernels_isa.h"

/* One function: `body` computes from x with the parameters a and b in all lanes. */
#define UNARY(name, body)                                                                                    \
    ENT_INLINE vf name##_of(vf x, vf a, vf b) {                                                              \
        (void)a;                                                                                             \
        (void)b;                                                                                             \
        return body;                                                                                         \
    }                                                                                                        \
    static void name(const float *x, float *y, int64_t n, float a, float b) {                                \
        vf va = vf_set1(a), vb = vf_set1(b);                                                                 \
        int64_t i = 0;                                                                                       \
        for (; i + VF_LANES <= n; i += VF_LANES) vf_store(y + i, name##_of(vf_load(x + i), va, vb));         \
        if (i == n) return;                                                                                  \
        vt t = vt_first(n - i);                                                                              \
        vf_store_first(y + i, t, name##_of(vf_load_first(x + i, t), va, vb));                                \
    }

#define ZERO vf_zero()
#define ONE vf_set1(1.0f)

ENT_INLINE vf gelu_tanh_of_value(vf x) {
    /* x/2 (1 + tanh u) is x sigmoid(2u), which loses no digits for negative u. */
    vf cube = vf_mul(vf_mul(x, x), x);
    vf u = vf_mul(vf_fma(cube, vf_set1(0.044715f), x), vf_set1(1.5957691216057308f));
    return vf_mul(x, vf_sigmoid(u));
}

ENT_INLINE vf mish_of_value(vf x) {
    /* tanh(log(1 + w)) = (w^2 + 2w) / (w^2 + 2w + 2) with w = exp x; above 20 the quotient is 1. */
    vf w = vf_exp(vf_min(vf_set1(20.0f), x));
    vf top = vf_mul(w, vf_add(w, vf_set1(2.0f)));
    return vf_mul(x, vf_div(top, vf_add(top, vf_set1(2.0f))));
}

ENT_INLINE vf elu_of_value(vf x, vf a) {
    vf low = vf_mul(a, vf_expm1_negative(vf_min(ZERO, x)));
    return vf_select(vf_lt(x, ZERO), low, x);
}

ENT_INLINE vf sign_of_value(vf x) {
    vf s = vf_copysign(ONE, x);
    return vf_select(vf_eq(x, ZERO), ZERO, vf_select(vf_is_nan(x), x, s));
}

UNARY(negate, vf_neg(x))
UNARY(absolute, vf_abs(x))
UNARY(square_root, vf_sqrt(x))
UNARY(inverse_root, vf_div(ONE, vf_sqrt(x)))
UNARY(reciprocal, vf_div(ONE, x))
UNARY(exponential, vf_exp(x))
UNARY(logarithm, vf_log(x))
UNARY(hyperbolic_tangent, vf_tanh(x))
UNARY(sigmoid, vf_sigmoid(x))
UNARY(error_function, vf_erf(x))
UNARY(gelu, vf_mul(vf_mul(x, vf_set1(0.5f)), vf_add(ONE, vf_erf(vf_mul(x, vf_set1(0.70710678118654752f))))))
UNARY(gelu_tanh, gelu_tanh_of_value(x))
UNARY(relu, vf_max(ZERO, x))
UNARY(leaky_relu, vf_select(vf_lt(x, ZERO), vf_mul(a, x), x))
UNARY(elu, elu_of_value(x, a))
UNARY(hard_sigmoid, vf_clip(vf_fma(a, x, b), ZERO, ONE))
UNARY(hard_swish, vf_mul(x, vf_clip(vf_fma(x, vf_set1(1.0f / 6.0f), vf_set1(0.5f)), ZERO, ONE)))
UNARY(clip, vf_clip(x, a, b))
UNARY(round_down, vf_floor(x))
UNARY(round_up, vf_ceil(x))
UNARY(round_even, vf_round(x))
UNARY(sign, sign_of_value(x))
UNARY(softplus, vf_add(vf_max(ZERO, x), vf_log1p_unit(vf_exp(vf_neg(vf_abs(x))))))
UNARY(silu, vf_mul(x, vf_sigmoid(x)))
UNARY(mish, mish_of_value(x))
UNARY(square, vf_mul(x, x))
UNARY(scale_shift, vf_fma(a, x, b))
UNARY(copy, x)

/* The vector reduction keeps its digits up to 8192; a block with a larger argument goes to the C library. */
#define SINE(name, quarter, scalar)                                                                          \
    static void name(const float *x, float *y, int64_t n, float a, float b) {                                \
        (void)a;                                                                                             \
        (void)b;                                                                                             \
        for (int64_t i = 0; i < n; i += VF_LANES) {                                                          \
            int64_t count = n - i < VF_LANES ? n - i : VF_LANES;                                             \
            vt t = vt_first(count);                                                                          \
            vf v = vf_load_first(x + i, t);                                                                  \
            if (vm_any(vf_lt(vf_set1(8192.0f), vf_abs(v)))) {                                                \
                for (int64_t j = i; j < i + count; j++) y[j] = scalar(x[j]);                                 \
            } else {                                                                                         \
                vf_store_first(y + i, t, vf_sin_quarter(v, quarter));                                        \
            }                                                                                                \
        }                                                                                                    \
    }

SINE(sine, 0, sinf)
SINE(cosine, 1, cosf)

/* exp(a log x) would lose digits for large a, so exponents without a short form go to the C library. */
static void power(const float *x, float *y, int64_t n, float a, float b) {
    if (a == 1.0f)
        copy(x, y, n, a, b);
    else if (a == 2.0f)
        square(x, y, n, a, b);
    else if (a == -1.0f)
        reciprocal(x, y, n, a, b);
    else if (a == 3.0f)
        for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i];
    else if (a == 0.5f) /* pow(-0, 1/2) is +0 and pow(-inf, 1/2) is +inf; sqrt differs there. */
        for (int64_t i = 0; i < n; i++) y[i] = x[i] == -INFINITY ? INFINITY : sqrtf(x[i] + 0.0f);
    else
        for (int64_t i = 0; i < n; i++) y[i] = powf(x[i], a);
}

void ENT_ISA(ent_cpu_unary_bind)(ent_cpu_kernels *table) {
    static const ent_cpu_unary_fn functions[ENT_CPU_UNARY_COUNT] = {
        [ENT_CPU_NEG] = negate,
        [ENT_CPU_ABS] = absolute,
        [ENT_CPU_SQRT] = square_root,
        [ENT_CPU_RSQRT] = inverse_root,
        [ENT_CPU_RECIPROCAL] = reciprocal,
        [ENT_CPU_EXP] = exponential,
        [ENT_CPU_LOG] = logarithm,
        [ENT_CPU_TANH] = hyperbolic_tangent,
        [ENT_CPU_SIGMOID] = sigmoid,
        [ENT_CPU_ERF] = error_function,
        [ENT_CPU_GELU] = gelu,
        [ENT_CPU_GELU_TANH] = gelu_tanh,
        [ENT_CPU_RELU] = relu,
        [ENT_CPU_LEAKY_RELU] = leaky_relu,
        [ENT_CPU_ELU] = elu,
        [ENT_CPU_HARD_SIGMOID] = hard_sigmoid,
        [ENT_CPU_HARD_SWISH] = hard_swish,
        [ENT_CPU_CLIP] = clip,
        [ENT_CPU_FLOOR] = round_down,
        [ENT_CPU_CEIL] = round_up,
        [ENT_CPU_ROUND] = round_even,
        [ENT_CPU_SIGN] = sign,
        [ENT_CPU_SOFTPLUS] = softplus,
        [ENT_CPU_SILU] = silu,
        [ENT_CPU_MISH] = mish,
        [ENT_CPU_SIN] = sine,
        [ENT_CPU_COS] = cosine,
        [ENT_CPU_POWER] = power,
        [ENT_CPU_SQUARE] = square,
        [ENT_CPU_SCALE_SHIFT] = scale_shift,
        [ENT_CPU_COPY] = copy,
    };
    for (int i = 0; i < ENT_CPU_UNARY_COUNT; i++) table->unary[i] = functions[i];
}
