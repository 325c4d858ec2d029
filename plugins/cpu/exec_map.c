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

/* ---- short rows, many at a time ---- */

#define SHORT 32  /* elements; from here on calls for each row cost little */
#define BLOCK 256 /* elements of a block */
#define SLACK 32  /* bytes that a splat may write too far */

/* rows of n times one element each, `stride` bytes apart in `from`. */
#define SPLAT(type, step)                                                                                    \
    for (int64_t r = 0; r < rows; r++, from += stride, to += n * (int64_t)sizeof(type)) {                    \
        type x[SLACK / sizeof(type)], one;                                                                   \
        memcpy(&one, from, sizeof one);                                                                      \
        for (size_t i = 0; i < sizeof x / sizeof x[0]; i++) x[i] = one;                                      \
        for (int64_t i = 0; i < n; i += step) memcpy(to + i * (int64_t)sizeof(type), x, sizeof x);           \
    }

/* size: table */
static void splat(const char *from, int64_t stride, char *to, int64_t rows, int64_t n, int64_t bytes) {
    switch (bytes) {
    case 1:
        SPLAT(uint8_t, 32)
        break;
    case 2:
        SPLAT(uint16_t, 16)
        break;
    case 4:
        SPLAT(uint32_t, 8)
        break;
    default:
        SPLAT(uint64_t, 4)
        break;
    }
}

/* The source's elements for a block of rows as one run: where they are, or brought together in `room`. */
static const char *as_run(const ent_cpu_kernels *kernels, const char *from, int64_t inner, int64_t stride,
                          int64_t rows, int64_t n, int64_t bytes, char *room, int64_t *out_step) {
    *out_step = inner;
    if (inner ? stride == n * bytes : stride == 0) return from;
    *out_step = 1;
    if (inner == 0)
        splat(from, stride, room, rows, n, bytes);
    else
        kernels->copy_rows(from, stride, room, n * bytes, rows, n * bytes);
    return room;
}

typedef struct operands {
    const exec_map_data *map;
    const exec_nest *nest;
    int64_t bytes[3]; /* of the sources' elements */
} operands;

/* The destination's rows follow each other. */
static bool joins_rows(const operands *o) {
    const exec_nest *nest = o->nest;
    return nest->n > 1 && nest->n < SHORT && nest->extents[0] > 1 &&
           nest->strides[0][0] == nest->n * o->map->result_bytes;
}

static void map_rows(const operands *o, char *to, const char *const *src) {
    _Alignas(32) char room[3][BLOCK * 8 + SLACK];
    const exec_nest *nest = o->nest;
    int64_t most = BLOCK / nest->n, steps[3] = {0};
    const char *at[3] = {NULL, NULL, NULL};
    for (int64_t row = 0; row < nest->extents[0]; row += most) {
        int64_t rows = nest->extents[0] - row < most ? nest->extents[0] - row : most;
        for (uint32_t s = 0; s < o->map->sources; s++) {
            int64_t stride = nest->strides[s + 1][0];
            at[s] = as_run(o->map->kernels, src[s] + row * stride, nest->inner[s + 1], stride, rows, nest->n,
                           o->bytes[s], room[s], &steps[s]);
        }
        o->map->row(o->map, to + row * nest->strides[0][0], at, steps, rows * nest->n);
    }
}

void exec_map(exec_run *run, const exec_step *step) {
    const exec_map_data *map = step->data;
    uint32_t tiles[EXEC_MAX_OPERANDS] = {step->dst, 0, 0, 0};
    exec_nest nest;
    operands o = {.map = map, .nest = &nest};
    for (uint32_t i = 0; i < map->sources; i++) {
        tiles[i + 1] = step->source[i];
        o.bytes[i] = run->plan->tiles[step->source[i]].element_bytes;
    }
    exec_place(run, step->dst);
    exec_nest_make(&nest, run, tiles, map->sources + 1);
    bool joined = joins_rows(&o);
    char *dst = run->views[step->dst].base;
    const char *src[3] = {NULL, NULL, NULL};
    for (int64_t i = 0; i < nest.extents[3] * nest.extents[2]; i++)
        for (int64_t j = 0; j < nest.extents[1]; j++)
            for (int64_t k = 0; k < (joined ? 1 : nest.extents[0]); k++) {
                int64_t i3 = i / nest.extents[2], i2 = i % nest.extents[2];
                char *to = dst + i3 * nest.strides[0][3] + i2 * nest.strides[0][2] + j * nest.strides[0][1] +
                           k * nest.strides[0][0];
                for (uint32_t s = 0; s < map->sources; s++)
                    src[s] = run->views[tiles[s + 1]].base + i3 * nest.strides[s + 1][3] +
                             i2 * nest.strides[s + 1][2] + j * nest.strides[s + 1][1] +
                             k * nest.strides[s + 1][0];
                if (joined)
                    map_rows(&o, to, src);
                else
                    map->row(map, to, src, nest.inner + 1, nest.n);
            }
}
