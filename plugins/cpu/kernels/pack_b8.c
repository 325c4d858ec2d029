#include <string.h>

#include "kernels.h"

/* Runs once for a tile of a B that is no constant: what it costs is the reads. */
void ent_cpu_pack_b8(const uint8_t *b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n, uint8_t *out,
                     int64_t panel_stride) {
    const int64_t group = ENT_CPU_PANEL * ENT_CPU_GEMM8_K;
    for (int64_t column = 0; column < n; column += ENT_CPU_PANEL, out += panel_stride) {
        int64_t width = n - column < ENT_CPU_PANEL ? n - column : ENT_CPU_PANEL;
        const uint8_t *from = b + column * n_stride;
        if (width < ENT_CPU_PANEL || k % ENT_CPU_GEMM8_K != 0)
            memset(out, 0, (size_t)((k + ENT_CPU_GEMM8_K - 1) / ENT_CPU_GEMM8_K * group));
        if (k_stride == 1) {
            for (int64_t j = 0; j < width; j++)
                for (int64_t i = 0; i < k; i++)
                    out[i / ENT_CPU_GEMM8_K * group + j * ENT_CPU_GEMM8_K + i % ENT_CPU_GEMM8_K] =
                        from[j * n_stride + i];
            continue;
        }
        for (int64_t i = 0; i < k; i++) {
            uint8_t *to = out + i / ENT_CPU_GEMM8_K * group + i % ENT_CPU_GEMM8_K;
            for (int64_t j = 0; j < width; j++) to[j * ENT_CPU_GEMM8_K] = from[i * k_stride + j * n_stride];
        }
    }
}
