/* Transcendental functions on vectors. Polynomials are the classical single-precision ones (Cephes: exp, log,
 * tanh, sin, cos; a two-range minimax fit for erf), valid over the whole range, with IEEE results for NaN and
 * infinity. */
#ifndef ENT_CPU_KERNELS_VEC_MATH_H
#define ENT_CPU_KERNELS_VEC_MATH_H

#include "vec.h"

#include <math.h>

ENT_INLINE vf vf_power_of_two(vi n) {
    return vf_from_bits(vi_shift_left(vi_add(n, vi_set1(127)), 23));
}

/* exp(x) = 2^n exp(r), |r| <= ln 2 / 2. The scale is applied in two halves, so that results near the ends of
 * the range (subnormal or just below overflow) come out right. */
ENT_INLINE vf vf_exp(vf x) {
    vf bounded = vf_clip(x, vf_set1(-104.0f), vf_set1(89.0f));
    vf n = vf_round(vf_mul(bounded, vf_set1(1.44269504088896341f)));
    vf r = vf_fma(n, vf_set1(-0.693359375f), bounded);
    r = vf_fma(n, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_add(vf_fma(p, vf_mul(r, r), r), vf_set1(1.0f));
    vi whole = vf_to_int(n);
    vi half = vi_shift_right_signed(whole, 1);
    return vf_mul(vf_mul(p, vf_power_of_two(half)), vf_power_of_two(vi_sub(whole, half)));
}

/* log(m 2^e) with sqrt(1/2) <= m < sqrt 2; subnormals are scaled up first. */
ENT_INLINE vf vf_log(vf x) {
    vm tiny = vf_lt(x, vf_set1(1.17549435e-38f));
    vf scaled = vf_select(tiny, vf_mul(x, vf_set1(8388608.0f)), x);
    vi bits = vf_bits(scaled);
    vi shifted = vi_sub(bits, vi_set1(0x3f3504f3));
    vf e = vf_from_int(vi_shift_right_signed(shifted, 23));
    e = vf_sub(e, vf_select(tiny, vf_set1(23.0f), vf_zero()));
    vi mantissa = vi_add(vi_and(shifted, vi_set1(0x007fffff)), vi_set1(0x3f3504f3));
    vf m = vf_sub(vf_from_bits(mantissa), vf_set1(1.0f));
    vf z = vf_mul(m, m);
    vf p = vf_set1(7.0376836292e-2f);
    p = vf_fma(p, m, vf_set1(-1.1514610310e-1f));
    p = vf_fma(p, m, vf_set1(1.1676998740e-1f));
    p = vf_fma(p, m, vf_set1(-1.2420140846e-1f));
    p = vf_fma(p, m, vf_set1(1.4249322787e-1f));
    p = vf_fma(p, m, vf_set1(-1.6668057665e-1f));
    p = vf_fma(p, m, vf_set1(2.0000714765e-1f));
    p = vf_fma(p, m, vf_set1(-2.4999993993e-1f));
    p = vf_fma(p, m, vf_set1(3.3333331174e-1f));
    vf y = vf_mul(vf_mul(p, m), z);
    y = vf_fma(e, vf_set1(-2.12194440e-4f), y);
    y = vf_fma(z, vf_set1(-0.5f), y);
    y = vf_fma(e, vf_set1(0.693359375f), vf_add(m, y));
    vf infinity = vf_set1(INFINITY);
    y = vf_select(vf_eq(x, infinity), infinity, y);
    y = vf_select(vf_eq(x, vf_zero()), vf_neg(infinity), y);
    y = vf_select(vf_lt(x, vf_zero()), vf_set1(NAN), y);
    return vf_select(vf_is_nan(x), x, y);
}

/* exp(x) - 1 for x <= 0: Kahan's correction u = exp x, (u - 1) x / log u, where u is not 1 and not tiny. */
ENT_INLINE vf vf_expm1_negative(vf x) {
    vf u = vf_exp(x);
    vf d = vf_sub(u, vf_set1(1.0f));
    vf y = vf_div(vf_mul(d, x), vf_log(u));
    y = vf_select(vf_lt(x, vf_set1(-1.0f)), d, y);
    return vf_select(vf_eq(u, vf_set1(1.0f)), x, y);
}

/* log(1 + z) for 0 <= z <= 1: the rounding error of 1 + z is added back. */
ENT_INLINE vf vf_log1p_unit(vf z) {
    vf u = vf_add(z, vf_set1(1.0f));
    vf lost = vf_sub(z, vf_sub(u, vf_set1(1.0f)));
    return vf_add(vf_log(u), vf_div(lost, u));
}

ENT_INLINE vf vf_tanh(vf x) {
    vf size = vf_abs(x), z = vf_mul(x, x);
    vf p = vf_set1(-5.70498872745e-3f);
    p = vf_fma(p, z, vf_set1(2.06390887954e-2f));
    p = vf_fma(p, z, vf_set1(-5.37397155531e-2f));
    p = vf_fma(p, z, vf_set1(1.33314422036e-1f));
    p = vf_fma(p, z, vf_set1(-3.33332819422e-1f));
    vf small = vf_fma(vf_mul(p, z), x, x);
    vf e = vf_exp(vf_add(size, size));
    vf large = vf_sub(vf_set1(1.0f), vf_div(vf_set1(2.0f), vf_add(e, vf_set1(1.0f))));
    return vf_select(vf_lt(size, vf_set1(0.625f)), small, vf_copysign(large, x));
}

/* 1 / (1 + exp(-x)), with exp of a negative argument only, so that small results keep their digits. */
ENT_INLINE vf vf_sigmoid(vf x) {
    vf one = vf_set1(1.0f);
    vf z = vf_exp(vf_neg(vf_abs(x)));
    vf top = vf_select(vf_lt(x, vf_zero()), z, one);
    return vf_div(top, vf_add(one, z));
}

ENT_INLINE vf vf_erf(vf x) {
    vf t = vf_abs(x), s = vf_mul(x, x);
    vf r = vf_fma(vf_set1(-1.72853470e-5f), t, vf_set1(3.83197126e-4f));
    vf u = vf_fma(vf_set1(-3.88396438e-3f), t, vf_set1(2.42546219e-2f));
    r = vf_fma(r, s, u);
    r = vf_fma(r, t, vf_set1(-1.06777877e-1f));
    r = vf_fma(r, t, vf_set1(-6.34846687e-1f));
    r = vf_fma(r, t, vf_set1(-1.28717512e-1f));
    r = vf_fma(r, t, vf_neg(t));
    /* Beyond 4 the result is 1 in single precision, and the polynomial is not valid for ever. */
    r = vf_select(vf_lt(vf_set1(4.0f), t), vf_set1(-104.0f), r);
    vf large = vf_copysign(vf_sub(vf_set1(1.0f), vf_exp(r)), x);
    vf p = vf_set1(-5.96761703e-4f);
    p = vf_fma(p, s, vf_set1(4.99119423e-3f));
    p = vf_fma(p, s, vf_set1(-2.67681349e-2f));
    p = vf_fma(p, s, vf_set1(1.12819925e-1f));
    p = vf_fma(p, s, vf_set1(-3.76125336e-1f));
    p = vf_fma(p, s, vf_set1(1.28379166e-1f));
    vf small = vf_fma(p, x, x);
    return vf_select(vf_lt(vf_set1(0.927734375f), t), large, small);
}

/* sin(x + quarter * pi/2) for |x| <= 8192: reduction by pi/2 in three parts, then one of two polynomials. */
ENT_INLINE vf vf_sin_quarter(vf x, int32_t quarter) {
    vf n = vf_round(vf_mul(x, vf_set1(0.636619772367581343f)));
    vf r = vf_fma(n, vf_set1(-1.5703125f), x);
    r = vf_fma(n, vf_set1(-4.837512969970703125e-4f), r);
    r = vf_fma(n, vf_set1(-7.54978995489188216e-8f), r);
    vi which = vi_add(vf_to_int(n), vi_set1(quarter));
    vf z = vf_mul(r, r);
    vf s = vf_fma(vf_set1(-1.9515295891e-4f), z, vf_set1(8.3321608736e-3f));
    s = vf_fma(s, z, vf_set1(-1.6666654611e-1f));
    s = vf_fma(vf_mul(s, z), r, r);
    vf c = vf_fma(vf_set1(2.443315711809948e-5f), z, vf_set1(-1.388731625493765e-3f));
    c = vf_fma(c, z, vf_set1(4.166664568298827e-2f));
    c = vf_fma(vf_mul(c, z), z, vf_fma(vf_set1(-0.5f), z, vf_set1(1.0f)));
    vm odd = vf_eq(vf_from_int(vi_and(which, vi_set1(1))), vf_set1(1.0f));
    vf sign = vf_from_bits(vi_shift_left(vi_and(which, vi_set1(2)), 30));
    return vf_xor(vf_select(odd, c, s), sign);
}

#endif
