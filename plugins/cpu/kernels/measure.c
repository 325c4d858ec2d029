#include "vec.h"
#include "kernels_isa.h"

/* Enough independent chains to cover latency 4 at two per cycle, and few enough for the registers. */
#define CHAINS 12

double ENT_ISA(ent_cpu_fma_work)(int64_t loops) {
    vf acc[CHAINS];
    vf x = vf_set1(0.5f), y = vf_set1(0.25f);
    ENT_UNROLL
    for (int i = 0; i < CHAINS; i++) acc[i] = vf_set1((float)i);
    ENT_NO_UNROLL
    for (int64_t loop = 0; loop < loops; loop++) {
        ENT_UNROLL
        for (int i = 0; i < CHAINS; i++) acc[i] = vf_fma(acc[i], x, y);
    }
    vf total = acc[0];
    for (int i = 1; i < CHAINS; i++) total = vf_add(total, acc[i]);
    volatile float sink = vf_sum(total);
    (void)sink;
    return 2.0 * VF_LANES * CHAINS * (double)loops;
}

float ENT_ISA(ent_cpu_read_work)(const float *x, int64_t n) {
    vf acc[8];
    int64_t i = 0;
    ENT_UNROLL
    for (int j = 0; j < 8; j++) acc[j] = vf_zero();
    for (; i + 8 * VF_LANES <= n; i += 8 * VF_LANES) {
        ENT_UNROLL
        for (int j = 0; j < 8; j++) acc[j] = vf_max(acc[j], vf_load(x + i + j * VF_LANES));
    }
    for (int j = 1; j < 8; j++) acc[0] = vf_max(acc[0], acc[j]);
    float largest = vf_largest(acc[0]);
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}
