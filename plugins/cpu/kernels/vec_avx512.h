/* vec.h for AVX-512 F/BW/DQ/VL. With ENT_SIMULATED_AVX512 the same source is built on SIMDe, so that its
 * logic is tested on a machine without AVX-512. */
#ifndef ENT_CPU_KERNELS_VEC_AVX512_H
#define ENT_CPU_KERNELS_VEC_AVX512_H

#ifdef ENT_SIMULATED_AVX512
#include "vec_simulated.h"
#else
#include <immintrin.h>
#endif

#define VF_LANES 16
#define VF_REGISTERS 32

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
typedef __mmask16 vt;

ENT_INLINE vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}
ENT_INLINE void vf_store(float *p, vf x) {
    _mm512_storeu_ps(p, x);
}
ENT_INLINE vf vf_set1(float x) {
    return _mm512_set1_ps(x);
}
ENT_INLINE vf vf_zero(void) {
    return _mm512_setzero_ps();
}
ENT_INLINE vt vt_first(int64_t n) {
    return (vt)((1u << n) - 1u);
}
ENT_INLINE vf vf_load_first(const float *p, vt t) {
    return _mm512_maskz_loadu_ps(t, p);
}
ENT_INLINE void vf_store_first(float *p, vt t, vf x) {
    _mm512_mask_storeu_ps(p, t, x);
}
ENT_INLINE vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
ENT_INLINE vf vf_sub(vf a, vf b) {
    return _mm512_sub_ps(a, b);
}
ENT_INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
ENT_INLINE vf vf_div(vf a, vf b) {
    return _mm512_div_ps(a, b);
}
ENT_INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* *acc += a * b, in this very form: left to itself gcc overwrites a or b instead and then copies and spills.
 */
ENT_INLINE void vf_accumulate(vf *acc, vf a, vf b) {
#ifdef ENT_SIMULATED_AVX512
    *acc = vf_fma(a, b, *acc);
#else
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*acc) : "v"(a), "v"(b));
#endif
}
ENT_INLINE vf vf_max(vf a, vf b) {
    return _mm512_max_ps(a, b);
}
ENT_INLINE vf vf_min(vf a, vf b) {
    return _mm512_min_ps(a, b);
}
ENT_INLINE vf vf_sqrt(vf a) {
    return _mm512_sqrt_ps(a);
}
ENT_INLINE vi vf_bits(vf x) {
    return _mm512_castps_si512(x);
}
ENT_INLINE vf vf_from_bits(vi x) {
    return _mm512_castsi512_ps(x);
}
ENT_INLINE vf vf_and(vf a, vf b) {
    return vf_from_bits(_mm512_and_si512(vf_bits(a), vf_bits(b)));
}
ENT_INLINE vf vf_andnot(vf a, vf b) {
    return vf_from_bits(_mm512_andnot_si512(vf_bits(a), vf_bits(b)));
}
ENT_INLINE vf vf_or(vf a, vf b) {
    return vf_from_bits(_mm512_or_si512(vf_bits(a), vf_bits(b)));
}
ENT_INLINE vf vf_xor(vf a, vf b) {
    return vf_from_bits(_mm512_xor_si512(vf_bits(a), vf_bits(b)));
}
ENT_INLINE vm vf_lt(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ);
}
ENT_INLINE vm vf_le(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ);
}
ENT_INLINE vm vf_eq(vf a, vf b) {
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}
ENT_INLINE vm vf_is_nan(vf a) {
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
ENT_INLINE vf vf_nan_of(vf y, vf x) {
    return _mm512_mask_mov_ps(y, vf_is_nan(x), x);
}
ENT_INLINE vf vf_select(vm m, vf yes, vf no) {
    return _mm512_mask_blend_ps(m, no, yes);
}
ENT_INLINE int vm_any(vm m) {
    return m != 0;
}
ENT_INLINE vi vf_to_int(vf x) {
    return _mm512_cvtps_epi32(x);
}
ENT_INLINE vf vf_from_int(vi x) {
    return _mm512_cvtepi32_ps(x);
}
ENT_INLINE vi vi_set1(int32_t x) {
    return _mm512_set1_epi32(x);
}
ENT_INLINE vi vi_add(vi a, vi b) {
    return _mm512_add_epi32(a, b);
}
ENT_INLINE vi vi_sub(vi a, vi b) {
    return _mm512_sub_epi32(a, b);
}
ENT_INLINE vi vi_and(vi a, vi b) {
    return _mm512_and_si512(a, b);
}
ENT_INLINE vi vi_or(vi a, vi b) {
    return _mm512_or_si512(a, b);
}
#define vi_shift_left(a, n) _mm512_slli_epi32(a, n)
#define vi_shift_right(a, n) _mm512_srli_epi32(a, n)
#define vi_shift_right_signed(a, n) _mm512_srai_epi32(a, n)

ENT_INLINE vf vf_round(vf x) {
    return _mm512_roundscale_ps(x, 0x08);
}
ENT_INLINE vf vf_floor(vf x) {
    return _mm512_roundscale_ps(x, 0x09);
}
ENT_INLINE vf vf_ceil(vf x) {
    return _mm512_roundscale_ps(x, 0x0a);
}
ENT_INLINE float vf_sum(vf x) {
    return _mm512_reduce_add_ps(x);
}
ENT_INLINE float vf_largest(vf x) {
    return _mm512_reduce_max_ps(x);
}
ENT_INLINE float vf_smallest(vf x) {
    return _mm512_reduce_min_ps(x);
}

#endif
