/* Loads, stores and the operations that only move elements. */
#include "exec.h"

static bool is_whole(const exec_run *run, const exec_tile *tile, const int64_t *lo, const int64_t *hi) {
    for (uint32_t a = 0; a < tile->rank; a++)
        if (lo[a] != 0 || hi[a] != exec_extent(run, tile, a)) return false;
    return true;
}

static void extents_of(const exec_run *run, const exec_tile *tile, int64_t *out) {
    for (uint32_t a = 0; a < tile->rank; a++) out[a] = exec_extent(run, tile, a);
}

static int64_t dot(uint32_t rank, const int64_t *strides, const int64_t *position) {
    int64_t sum = 0;
    for (uint32_t a = 0; a < rank; a++) sum += strides[a] * position[a];
    return sum;
}

/* ---- affine moves: one rectangle ---- */

static void load_rectangle(exec_run *run, const exec_step *step) {
    const exec_access *access = &run->plan->accesses[step->access];
    const exec_tile *tile = &run->plan->tiles[step->dst];
    int64_t lo[EXEC_RANK], hi[EXEC_RANK], extents[EXEC_RANK];
    int64_t offset = exec_rectangle(run, access, tile, lo, hi);
    bool whole = is_whole(run, tile, lo, hi);
    const char *buffer = run->buffers[access->buffer];
    exec_view *view = &run->views[step->dst];
    if (whole && tile->viewable) {
        view->base = (char *)(uintptr_t)buffer + offset * access->element_bytes;
        view->strides = access->strides;
        return;
    }
    exec_place(run, step->dst);
    if (!whole) {
        extents_of(run, tile, extents);
        exec_fill_value(tile->rank, extents, view->base, view->strides, tile->dtype, step->op->f[0]);
        if (hi[0] == 0) return;
    }
    for (uint32_t a = 0; a < tile->rank; a++) extents[a] = hi[a] - lo[a];
    exec_copy(run->plan->kernels, tile->rank, extents,
              buffer + (offset + dot(tile->rank, access->strides, lo)) * access->element_bytes,
              access->strides, view->base + dot(tile->rank, view->strides, lo) * tile->element_bytes,
              view->strides, tile->element_bytes);
}

static void store_rectangle(exec_run *run, const exec_step *step) {
    const exec_access *access = &run->plan->accesses[step->access];
    const exec_tile *tile = &run->plan->tiles[step->source[0]];
    const exec_view *view = &run->views[step->source[0]];
    int64_t lo[EXEC_RANK], hi[EXEC_RANK], extents[EXEC_RANK];
    if (tile->direct == step->access && view->strides == access->strides) return; /* written there already */
    int64_t offset = exec_rectangle(run, access, tile, lo, hi);
    if (hi[0] == 0) return;
    for (uint32_t a = 0; a < tile->rank; a++) extents[a] = hi[a] - lo[a];
    exec_copy(run->plan->kernels, tile->rank, extents,
              view->base + dot(tile->rank, view->strides, lo) * tile->element_bytes, view->strides,
              (char *)run->buffers[access->buffer] +
                  (offset + dot(tile->rank, access->strides, lo)) * access->element_bytes,
              access->strides, tile->element_bytes);
}

void exec_load(exec_run *run, const exec_step *step) {
    char fill[16] = {0};
    if (run->plan->accesses[step->access].affine) {
        load_rectangle(run, step);
        return;
    }
    exec_place(run, step->dst);
    exec_element(run->plan->tiles[step->dst].dtype, step->op->f[0], fill);
    exec_move_by_table(run, step, step->dst, step->source, fill);
}

void exec_store(exec_run *run, const exec_step *step) {
    if (run->plan->accesses[step->access].affine)
        store_rectangle(run, step);
    else
        exec_move_by_table(run, step, step->source[0], step->source + 1, NULL);
}

/* ---- operations on tiles ---- */

void exec_fill(exec_run *run, const exec_step *step) {
    const exec_tile *tile = &run->plan->tiles[step->dst];
    int64_t extents[EXEC_RANK];
    exec_place(run, step->dst);
    extents_of(run, tile, extents);
    exec_fill_value(tile->rank, extents, run->views[step->dst].base, run->views[step->dst].strides,
                    tile->dtype, step->op->f[0]);
}

/* Both sides count elements in row-major order of their own shapes: through a packed copy when the source is
 * not packed. */
void exec_reshape(exec_run *run, const exec_step *step) {
    const exec_tile *from = &run->plan->tiles[step->source[0]], *to = &run->plan->tiles[step->dst];
    const exec_view *view = &run->views[step->source[0]];
    exec_place_scratch(run, step->dst);
    exec_copy(run->plan->kernels, from->rank, from->shape, view->base, view->strides,
              run->views[step->dst].base, from->strides, to->element_bytes);
}

void exec_permute(exec_run *run, const exec_step *step) {
    const exec_tile *to = &run->plan->tiles[step->dst];
    const exec_view *view = &run->views[step->source[0]];
    int64_t extents[EXEC_RANK], strides[EXEC_RANK];
    exec_place(run, step->dst);
    extents_of(run, to, extents);
    for (uint32_t a = 0; a < to->rank; a++) strides[a] = view->strides[step->op->perm[a]];
    exec_copy(run->plan->kernels, to->rank, extents, view->base, strides, run->views[step->dst].base,
              run->views[step->dst].strides, to->element_bytes);
}

/* n numbers from `value` on, each `step` more. */
/* size: table */
static void count(char *to, uint32_t dtype, uint64_t value, uint64_t step, int64_t n) {
    switch (dtype) {
    case ENT_DTYPE_F32:
        for (int64_t i = 0; i < n; i++, value += step) ((float *)(void *)to)[i] = (float)(int64_t)value;
        break;
    case ENT_DTYPE_I64:
        for (int64_t i = 0; i < n; i++, value += step) ((uint64_t *)(void *)to)[i] = value;
        break;
    case ENT_DTYPE_I32:
        for (int64_t i = 0; i < n; i++, value += step) ((uint32_t *)(void *)to)[i] = (uint32_t)value;
        break;
    default:
        for (int64_t i = 0; i < n; i++, value += step) ent_ops_store_i64(to, dtype, i, (int64_t)value);
        break;
    }
}

void exec_iota(exec_run *run, const exec_step *step) {
    const exec_tile *tile = &run->plan->tiles[step->dst];
    uint32_t inner = tile->rank - 1;
    uint64_t start = step->op->f[0] >= -9223372036854775808.0 && step->op->f[0] < 9223372036854775808.0
                         ? (uint64_t)(int64_t)step->op->f[0]
                         : (uint64_t)INT64_MIN;
    if (step->op->variable != EXEC_NONE)
        start += (uint64_t)step->op->step * (uint64_t)run->variables[step->op->variable];
    exec_place_scratch(run, step->dst);
    char *base = run->views[step->dst].base;
    int64_t extents[EXEC_RANK] = {1, 1, 1, 1}, position[EXEC_RANK] = {0};
    extents_of(run, tile, extents);
    for (;;) { /* row by row */
        uint64_t value = start;
        for (uint32_t a = 0; a < inner; a++)
            if (step->op->axis_mask >> a & 1) value += (uint64_t)position[a];
        count(base + dot(tile->rank, tile->strides, position) * tile->element_bytes, tile->dtype, value,
              step->op->axis_mask >> inner & 1, extents[inner]);
        uint32_t a = inner;
        while (a > 0 && ++position[a - 1] == extents[a - 1]) position[--a] = 0;
        if (a == 0) return;
    }
}
