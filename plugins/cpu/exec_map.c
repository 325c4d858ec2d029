/* Elementwise steps: rows of a nest. */
#include "exec_row.h"

bool exec_bind_map(exec_plan *plan, exec_step *step) {
    exec_map_data *map = exec_allocate(&plan->arena, 2 * sizeof *map);
    if (!map) return false;
    const ent_tile_op *op = step->op;
    map->map = op->kind;
    map->sources = step->source_count;
    map->dtype = plan->tiles[step->source[op->kind == ENT_MAP_SELECT ? 1 : 0]].dtype;
    map->result = plan->tiles[step->dst].dtype;
    map->f[0] = op->f[0];
    map->f[1] = op->f[1];
    step->data = map;
    return exec_row_bind(plan->kernels, map, map + 1, &step->emulated);
}

void exec_map(exec_run *run, const exec_step *step) {
    const exec_map_data *map = step->data;
    uint32_t tiles[EXEC_MAX_OPERANDS] = {step->dst, 0, 0, 0};
    exec_nest nest;
    for (uint32_t i = 0; i < map->sources; i++) tiles[i + 1] = step->source[i];
    exec_place(run, step->dst);
    exec_nest_make(&nest, run, tiles, map->sources + 1);
    char *dst = run->views[step->dst].base;
    const char *src[3] = {NULL, NULL, NULL};
    for (int64_t i = 0; i < nest.extents[3] * nest.extents[2]; i++)
        for (int64_t j = 0; j < nest.extents[1]; j++)
            for (int64_t k = 0; k < nest.extents[0]; k++) {
                int64_t i3 = i / nest.extents[2], i2 = i % nest.extents[2];
                char *to = dst + i3 * nest.strides[0][3] + i2 * nest.strides[0][2] + j * nest.strides[0][1] +
                           k * nest.strides[0][0];
                for (uint32_t s = 0; s < map->sources; s++)
                    src[s] = run->views[tiles[s + 1]].base + i3 * nest.strides[s + 1][3] +
                             i2 * nest.strides[s + 1][2] + j * nest.strides[s + 1][1] +
                             k * nest.strides[s + 1][0];
                map->row(map, to, src, nest.inner + 1, nest.n);
            }
}
