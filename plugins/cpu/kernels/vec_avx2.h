/* vec.h for AVX2 + FMA + F16C. */
#ifndef ENT_CPU_KERNELS_VEC_AVX2_H
#define ENT_CPU_KERNELS_VEC_AVX2_H

#include <immintrin.h>

#define VF_LANES 8
#define VF_REGISTERS 16

typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;
typedef __m256i vt;

ENT_INLINE vf vf_load(const float *p) {
    return _mm256_loadu_ps(p);
}
ENT_INLINE void vf_store(float *p, vf x) {
    _mm256_storeu_ps(p, x);
}
ENT_INLINE vf vf_set1(float x) {
    return _mm256_set1_ps(x);
}
ENT_INLINE vf vf_zero(void) {
    return _mm256_setzero_ps();
}
ENT_INLINE vt vt_first(int64_t n) {
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane);
}
ENT_INLINE vf vf_load_first(const float *p, vt t) {
    return _mm256_maskload_ps(p, t);
}
ENT_INLINE void vf_store_first(float *p, vt t, vf x) {
    _mm256_maskstore_ps(p, t, x);
}
ENT_INLINE vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
ENT_INLINE vf vf_sub(vf a, vf b) {
    return _mm256_sub_ps(a, b);
}
ENT_INLINE vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}
ENT_INLINE vf vf_div(vf a, vf b) {
    return _mm256_div_ps(a, b);
}
ENT_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
/* *acc += a * b, in this very form: left to itself gcc overwrites a or b instead and then copies and spills.
 */
ENT_INLINE void vf_accumulate(vf *acc, vf a, vf b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*acc) : "x"(a), "x"(b));
}
ENT_INLINE vf vf_max(vf a, vf b) {
    return _mm256_max_ps(a, b);
}
ENT_INLINE vf vf_min(vf a, vf b) {
    return _mm256_min_ps(a, b);
}
ENT_INLINE vf vf_sqrt(vf a) {
    return _mm256_sqrt_ps(a);
}
ENT_INLINE vf vf_and(vf a, vf b) {
    return _mm256_and_ps(a, b);
}
ENT_INLINE vf vf_andnot(vf a, vf b) {
    return _mm256_andnot_ps(a, b);
}
ENT_INLINE vf vf_or(vf a, vf b) {
    return _mm256_or_ps(a, b);
}
ENT_INLINE vf vf_xor(vf a, vf b) {
    return _mm256_xor_ps(a, b);
}
ENT_INLINE vm vf_lt(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_LT_OQ);
}
ENT_INLINE vm vf_le(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_LE_OQ);
}
ENT_INLINE vm vf_eq(vf a, vf b) {
    return _mm256_cmp_ps(a, b, _CMP_EQ_OQ);
}
ENT_INLINE vm vf_is_nan(vf a) {
    return _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
}
ENT_INLINE vf vf_nan_of(vf y, vf x) {
    return _mm256_or_ps(y, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
ENT_INLINE vf vf_select(vm m, vf yes, vf no) {
    return _mm256_blendv_ps(no, yes, m);
}
ENT_INLINE int vm_any(vm m) {
    return _mm256_movemask_ps(m) != 0;
}
ENT_INLINE vi vf_bits(vf x) {
    return _mm256_castps_si256(x);
}
ENT_INLINE vf vf_from_bits(vi x) {
    return _mm256_castsi256_ps(x);
}
ENT_INLINE vi vf_to_int(vf x) {
    return _mm256_cvtps_epi32(x);
}
ENT_INLINE vf vf_from_int(vi x) {
    return _mm256_cvtepi32_ps(x);
}
ENT_INLINE vi vi_set1(int32_t x) {
    return _mm256_set1_epi32(x);
}
ENT_INLINE vi vi_add(vi a, vi b) {
    return _mm256_add_epi32(a, b);
}
ENT_INLINE vi vi_sub(vi a, vi b) {
    return _mm256_sub_epi32(a, b);
}
ENT_INLINE vi vi_and(vi a, vi b) {
    return _mm256_and_si256(a, b);
}
ENT_INLINE vi vi_or(vi a, vi b) {
    return _mm256_or_si256(a, b);
}
#define vi_shift_left(a, n) _mm256_slli_epi32(a, n)
#define vi_shift_right(a, n) _mm256_srli_epi32(a, n)
#define vi_shift_right_signed(a, n) _mm256_srai_epi32(a, n)

ENT_INLINE vf vf_round(vf x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ENT_INLINE vf vf_floor(vf x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
ENT_INLINE vf vf_ceil(vf x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}
ENT_INLINE float vf_sum(vf x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_shuffle_ps(y, y, 1)));
}
ENT_INLINE float vf_largest(vf x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_shuffle_ps(y, y, 1)));
}
ENT_INLINE float vf_smallest(vf x) {
    __m128 y = _mm_min_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_min_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_min_ss(y, _mm_shuffle_ps(y, y, 1)));
}

#endif
