/* vec.h for baseline x86-64 (SSE2 only: no blend, no rounding instruction, no masked access). */
#ifndef ENT_CPU_KERNELS_VEC_SSE2_H
#define ENT_CPU_KERNELS_VEC_SSE2_H

#include <emmintrin.h>

#define VF_LANES 4
#define VF_REGISTERS 16

typedef __m128 vf;
typedef __m128i vi;
typedef __m128 vm;
typedef int vt;

ENT_INLINE vf vf_load(const float *p) {
    return _mm_loadu_ps(p);
}
ENT_INLINE void vf_store(float *p, vf x) {
    _mm_storeu_ps(p, x);
}
ENT_INLINE vf vf_set1(float x) {
    return _mm_set1_ps(x);
}
ENT_INLINE vf vf_zero(void) {
    return _mm_setzero_ps();
}
ENT_INLINE vt vt_first(int64_t n) {
    return (int)n;
}
ENT_INLINE vf vf_load_first(const float *p, vt n) {
    float buffer[4] = {0, 0, 0, 0};
    for (int i = 0; i < n; i++) buffer[i] = p[i];
    return _mm_loadu_ps(buffer);
}
ENT_INLINE void vf_store_first(float *p, vt n, vf x) {
    float buffer[4];
    _mm_storeu_ps(buffer, x);
    for (int i = 0; i < n; i++) p[i] = buffer[i];
}
ENT_INLINE vf vf_add(vf a, vf b) {
    return _mm_add_ps(a, b);
}
ENT_INLINE vf vf_sub(vf a, vf b) {
    return _mm_sub_ps(a, b);
}
ENT_INLINE vf vf_mul(vf a, vf b) {
    return _mm_mul_ps(a, b);
}
ENT_INLINE vf vf_div(vf a, vf b) {
    return _mm_div_ps(a, b);
}
ENT_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm_add_ps(_mm_mul_ps(a, b), c);
}
ENT_INLINE void vf_accumulate(vf *acc, vf a, vf b) {
    *acc = vf_fma(a, b, *acc);
}
ENT_INLINE vf vf_max(vf a, vf b) {
    return _mm_max_ps(a, b);
}
ENT_INLINE vf vf_min(vf a, vf b) {
    return _mm_min_ps(a, b);
}
ENT_INLINE vf vf_sqrt(vf a) {
    return _mm_sqrt_ps(a);
}
ENT_INLINE vf vf_and(vf a, vf b) {
    return _mm_and_ps(a, b);
}
ENT_INLINE vf vf_andnot(vf a, vf b) {
    return _mm_andnot_ps(a, b);
}
ENT_INLINE vf vf_or(vf a, vf b) {
    return _mm_or_ps(a, b);
}
ENT_INLINE vf vf_xor(vf a, vf b) {
    return _mm_xor_ps(a, b);
}
ENT_INLINE vm vf_lt(vf a, vf b) {
    return _mm_cmplt_ps(a, b);
}
ENT_INLINE vm vf_le(vf a, vf b) {
    return _mm_cmple_ps(a, b);
}
ENT_INLINE vm vf_eq(vf a, vf b) {
    return _mm_cmpeq_ps(a, b);
}
ENT_INLINE vm vf_is_nan(vf a) {
    return _mm_cmpunord_ps(a, a);
}
ENT_INLINE vf vf_nan_of(vf y, vf x) {
    return _mm_or_ps(y, _mm_cmpunord_ps(x, x));
}
ENT_INLINE vf vf_select(vm m, vf yes, vf no) {
    return _mm_or_ps(_mm_and_ps(m, yes), _mm_andnot_ps(m, no));
}
ENT_INLINE int vm_any(vm m) {
    return _mm_movemask_ps(m) != 0;
}
ENT_INLINE vi vf_bits(vf x) {
    return _mm_castps_si128(x);
}
ENT_INLINE vf vf_from_bits(vi x) {
    return _mm_castsi128_ps(x);
}
ENT_INLINE vi vf_to_int(vf x) {
    return _mm_cvtps_epi32(x);
}
ENT_INLINE vf vf_from_int(vi x) {
    return _mm_cvtepi32_ps(x);
}
ENT_INLINE vi vi_set1(int32_t x) {
    return _mm_set1_epi32(x);
}
ENT_INLINE vi vi_add(vi a, vi b) {
    return _mm_add_epi32(a, b);
}
ENT_INLINE vi vi_sub(vi a, vi b) {
    return _mm_sub_epi32(a, b);
}
ENT_INLINE vi vi_and(vi a, vi b) {
    return _mm_and_si128(a, b);
}
ENT_INLINE vi vi_or(vi a, vi b) {
    return _mm_or_si128(a, b);
}
#define vi_shift_left(a, n) _mm_slli_epi32(a, n)
#define vi_shift_right(a, n) _mm_srli_epi32(a, n)
#define vi_shift_right_signed(a, n) _mm_srai_epi32(a, n)

/* Half to even: adding and taking away 2^23 leaves the rounded value; larger values are whole already. */
ENT_INLINE vf vf_round(vf x) {
    vf sign = _mm_and_ps(x, _mm_set1_ps(-0.0f));
    vf size = _mm_andnot_ps(_mm_set1_ps(-0.0f), x);
    vf magic = _mm_set1_ps(8388608.0f);
    vf rounded = _mm_sub_ps(_mm_add_ps(size, magic), magic);
    return vf_select(_mm_cmplt_ps(size, magic), _mm_or_ps(rounded, sign), x);
}
ENT_INLINE vf vf_floor(vf x) {
    vf r = vf_round(x);
    vf down = _mm_sub_ps(r, _mm_and_ps(_mm_cmplt_ps(x, r), _mm_set1_ps(1.0f)));
    return _mm_or_ps(down, _mm_and_ps(x, _mm_set1_ps(-0.0f)));
}
ENT_INLINE vf vf_ceil(vf x) {
    vf r = vf_round(x);
    vf up = _mm_add_ps(r, _mm_and_ps(_mm_cmplt_ps(r, x), _mm_set1_ps(1.0f)));
    return _mm_or_ps(up, _mm_and_ps(x, _mm_set1_ps(-0.0f)));
}
ENT_INLINE float vf_sum(vf x) {
    vf y = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}
ENT_INLINE float vf_largest(vf x) {
    vf y = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_shuffle_ps(y, y, 1)));
}
ENT_INLINE float vf_smallest(vf x) {
    vf y = _mm_min_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_min_ss(y, _mm_shuffle_ps(y, y, 1)));
}

#endif
