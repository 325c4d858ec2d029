/* A thin vector layer, so that each kernel is one source for every ISA level.
 *
 * ENT_ISA_LEVEL picks the version: 0 = SSE2 (baseline x86-64), 1 = AVX2+FMA+F16C, 2 = AVX-512 F/BW/DQ/VL.
 * Types: vf = vector of VF_LANES floats, vi = as many int32, vm = a comparison result, vt = "the first n
 * lanes". Masked loads give 0 in the lanes left out and never touch their memory; masked stores leave it
 * alone. vf_max(a, b) and vf_min(a, b) return b where either is NaN (the rule of the x86 instructions).
 * vf_nan_of(y, x) is y, but NaN where x is NaN.
 * vf_fma rounds once on levels 1 and 2 and twice on level 0. */
#ifndef ENT_CPU_KERNELS_VEC_H
#define ENT_CPU_KERNELS_VEC_H

#include <stddef.h>
#include <stdint.h>

#define ENT_PASTE2(a, b) a##b
#define ENT_PASTE(a, b) ENT_PASTE2(a, b)
#define ENT_INLINE static inline __attribute__((always_inline, unused))

#if defined(__clang__)
#define ENT_UNROLL _Pragma("clang loop unroll(full)")
#define ENT_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define ENT_UNROLL _Pragma("GCC unroll 32")
#define ENT_NO_UNROLL _Pragma("GCC unroll 1")
#endif

#if ENT_ISA_LEVEL == 0
#include "vec_sse2.h"
#define ENT_ISA(name) ENT_PASTE(name, _baseline)
#elif ENT_ISA_LEVEL == 1
#include "vec_avx2.h"
#define ENT_ISA(name) ENT_PASTE(name, _avx2)
#elif ENT_ISA_LEVEL == 2
#include "vec_avx512.h"
#ifdef ENT_SIMULATED_AVX512
#define ENT_ISA(name) ENT_PASTE(name, _avx512_simulated)
#else
#define ENT_ISA(name) ENT_PASTE(name, _avx512)
#endif
#else
#error "ENT_ISA_LEVEL must be 0, 1 or 2"
#endif

ENT_INLINE vf vf_abs(vf x) {
    return vf_and(x, vf_from_bits(vi_set1(0x7fffffff)));
}

ENT_INLINE vf vf_neg(vf x) {
    return vf_xor(x, vf_from_bits(vi_set1((int32_t)0x80000000u)));
}

ENT_INLINE vf vf_copysign(vf magnitude, vf sign) {
    vf bit = vf_from_bits(vi_set1((int32_t)0x80000000u));
    return vf_or(vf_andnot(bit, magnitude), vf_and(bit, sign));
}

/* The greater and the smaller, NaN where either is NaN. The instruction keeps the NaN of acc; only that of x
 * takes more, and off the chain of accs. */
ENT_INLINE vf vf_max_nan(vf acc, vf x) {
    return vf_nan_of(vf_max(x, acc), x);
}

ENT_INLINE vf vf_min_nan(vf acc, vf x) {
    return vf_nan_of(vf_min(x, acc), x);
}

/* Clamp that lets NaN through. */
ENT_INLINE vf vf_clip(vf x, vf lo, vf hi) {
    return vf_min(hi, vf_max(lo, x));
}

#endif
