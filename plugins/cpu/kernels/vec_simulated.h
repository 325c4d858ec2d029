/* Test only: AVX-512 intrinsics through SIMDe, and plain-C forms of those that SIMDe 0.7.4 lacks:
 * masked load and store, 32-bit float/int conversion, horizontal reductions, arithmetic shift right, f16
 * conversion. */
#ifndef ENT_CPU_KERNELS_VEC_SIMULATED_H
#define ENT_CPU_KERNELS_VEC_SIMULATED_H

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <math.h>
#include <simde/x86/avx512.h>
#include <simde/x86/avx2.h>
#include <simde/x86/fma.h>
#include <simde/x86/f16c.h>
#include <string.h>

ENT_INLINE __m512 simulated_maskz_loadu_ps(__mmask16 mask, const float *p) {
    float lane[16] = {0};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) lane[i] = p[i];
    return simde_mm512_loadu_ps(lane);
}
ENT_INLINE void simulated_mask_storeu_ps(float *p, __mmask16 mask, __m512 x) {
    float lane[16];
    simde_mm512_storeu_ps(lane, x);
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) p[i] = lane[i];
}
ENT_INLINE __m512i simulated_cvtps_epi32(__m512 x) {
    float lane[16];
    int32_t whole[16];
    simde_mm512_storeu_ps(lane, x);
    for (int i = 0; i < 16; i++) {
        float r = rintf(lane[i]);
        whole[i] = r >= -2147483648.0f && r < 2147483648.0f ? (int32_t)r : INT32_MIN;
    }
    return simde_mm512_loadu_si512(whole);
}
ENT_INLINE __m512 simulated_cvtepi32_ps(__m512i x) {
    float lane[16];
    int32_t whole[16];
    simde_mm512_storeu_si512(whole, x);
    for (int i = 0; i < 16; i++) lane[i] = (float)whole[i];
    return simde_mm512_loadu_ps(lane);
}
ENT_INLINE __m512i simulated_srai_epi32(__m512i x, int n) {
    int32_t whole[16];
    simde_mm512_storeu_si512(whole, x);
    for (int i = 0; i < 16; i++) whole[i] >>= n;
    return simde_mm512_loadu_si512(whole);
}
ENT_INLINE float simulated_reduce_ps(__m512 x, int op) {
    float lane[16];
    simde_mm512_storeu_ps(lane, x);
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) {
            float a = lane[i], b = lane[i + width];
            lane[i] = op == 0 ? a + b : op == 1 ? (a > b ? a : b) : (a < b ? a : b);
        }
    }
    return lane[0];
}

#define _mm512_maskz_loadu_ps simulated_maskz_loadu_ps
#define _mm512_mask_storeu_ps simulated_mask_storeu_ps
#define _mm512_cvtps_epi32 simulated_cvtps_epi32
#define _mm512_cvtepi32_ps simulated_cvtepi32_ps
#define _mm512_srai_epi32 simulated_srai_epi32
#define _mm512_reduce_add_ps(x) simulated_reduce_ps(x, 0)
#define _mm512_reduce_max_ps(x) simulated_reduce_ps(x, 1)
#define _mm512_reduce_min_ps(x) simulated_reduce_ps(x, 2)

#endif
