/* Products with B given as rows of k: vectors run along k, a block of 2 x 4 results shares its loads. */
#include "vec.h"
#include "kernels_isa.h"

ENT_INLINE void dot_block(const ent_cpu_gemm_dot *g, int64_t i0, int64_t j0, const int rows,
                          const int columns) {
    vf acc[2][4];
    const float *a[2], *b[4];
    ENT_UNROLL
    for (int i = 0; i < rows; i++) a[i] = g->a + (i0 + i) * g->a_stride;
    ENT_UNROLL
    for (int j = 0; j < columns; j++) b[j] = g->b + (j0 + j) * g->b_stride;
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        ENT_UNROLL
        for (int j = 0; j < columns; j++) acc[i][j] = vf_zero();
    }
    int64_t k = 0;
    ENT_NO_UNROLL
    for (; k + VF_LANES <= g->k; k += VF_LANES) {
        vf av[2];
        ENT_UNROLL
        for (int i = 0; i < rows; i++) av[i] = vf_load(a[i] + k);
        ENT_UNROLL
        for (int j = 0; j < columns; j++) {
            vf bv = vf_load(b[j] + k);
            ENT_UNROLL
            for (int i = 0; i < rows; i++) acc[i][j] = vf_fma(av[i], bv, acc[i][j]);
        }
    }
    if (k < g->k) {
        vt t = vt_first(g->k - k);
        ENT_UNROLL
        for (int j = 0; j < columns; j++) {
            vf bv = vf_load_first(b[j] + k, t);
            ENT_UNROLL
            for (int i = 0; i < rows; i++) acc[i][j] = vf_fma(vf_load_first(a[i] + k, t), bv, acc[i][j]);
        }
    }
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        float *c = g->c + (i0 + i) * g->c_stride + j0;
        ENT_UNROLL
        for (int j = 0; j < columns; j++) c[j] = vf_sum(acc[i][j]) * g->scale + (g->accumulate ? c[j] : 0.0f);
    }
}

void ENT_ISA(ent_cpu_gemm_dot_run)(const ent_cpu_gemm_dot *g) {
    int64_t j = 0;
    for (; j + 4 <= g->n; j += 4) {
        int64_t i = 0;
        for (; i + 2 <= g->m; i += 2) dot_block(g, i, j, 2, 4);
        if (i < g->m) dot_block(g, i, j, 1, 4);
    }
    for (; j < g->n; j++) {
        for (int64_t i = 0; i < g->m; i++) dot_block(g, i, j, 1, 1);
    }
}
