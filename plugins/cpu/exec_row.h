/* Elementwise functions on rows: how one map of Tile IR runs on the kernels. */
#ifndef ENT_CPU_EXEC_ROW_H
#define ENT_CPU_EXEC_ROW_H

#include "exec.h"

typedef struct exec_map_data exec_map_data;

/* dst[i] = f(src[0][i * steps[0]], ...), i < n; steps 0 or 1. dst may be a source whose step is 1. */
typedef void (*exec_row_fn)(const exec_map_data *map, char *dst, const char *const *src, const int64_t *steps,
                            int64_t n);

struct exec_map_data {
    const ent_cpu_kernels *kernels;
    exec_row_fn row;
    uint32_t map, sources;
    uint32_t dtype;  /* of the sources (of source 1 for select) */
    uint32_t result; /* dtype of dst */
    uint32_t type;   /* ent_cpu_type of dtype */
    uint32_t source_bytes, result_bytes;
    ent_cpu_unary_fn unary;
    ent_cpu_binary_fn binary;
    ent_cpu_cast_fn cast;
    bool swap;
    float a, b;
    double f[2];
    const exec_map_data *inner; /* f16, bf16: the same map on f32 */
};

/* Finds the row function of a map. True when it runs on vector kernels; *out_emulated: through another dtype.
 */
bool exec_row_bind(const ent_cpu_kernels *kernels, exec_map_data *map, exec_map_data *room,
                   bool *out_emulated);

#endif
