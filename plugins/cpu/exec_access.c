/* Coordinates, rectangles, and where tiles lie. */
#include "exec.h"

int64_t exec_dim_start(const exec_run *run, const exec_dim *dim) {
    int64_t start = dim->base;
    for (uint32_t t = 0; t < dim->term_count; t++)
        start += dim->terms[t].coefficient * run->variables[dim->terms[t].variable];
    return start;
}

void exec_interval(int64_t start, int64_t step, int64_t limit, int64_t extent, int64_t *lo, int64_t *hi) {
    int64_t first = 0, end = extent;
    if (step == 1) {
        if (start < 0) first = -start;
        if (limit - start < end) end = limit - start;
    } else if (step > 0) {
        if (start < 0) first = (-start + step - 1) / step;
        int64_t room = limit - start;
        if (room <= 0)
            end = 0;
        else if ((room + step - 1) / step < end)
            end = (room + step - 1) / step;
    } else if (step < 0) {
        if (start >= limit) first = (start - limit) / -step + 1;
        if (start < 0)
            end = 0;
        else if (start / -step + 1 < end)
            end = start / -step + 1;
    } else if (start < 0 || start >= limit) {
        end = 0;
    }
    if (first >= end) first = end = 0;
    *lo = first;
    *hi = end;
}

int64_t exec_rectangle(const exec_run *run, const exec_access *access, const exec_tile *tile, int64_t *lo,
                       int64_t *hi) {
    int64_t offset = 0;
    bool empty = false;
    for (uint32_t a = 0; a < tile->rank; a++) {
        lo[a] = 0;
        hi[a] = exec_extent(run, tile, a);
    }
    for (uint32_t d = 0; d < access->rank; d++) {
        const exec_dim *dim = &access->dims[d];
        int64_t start = exec_dim_start(run, dim), first, end;
        offset += start * dim->stride;
        if (dim->axis == EXEC_NONE) {
            if (start < 0 || start >= dim->limit) empty = true;
            continue;
        }
        exec_interval(start, dim->step, dim->limit, exec_extent(run, tile, dim->axis), &first, &end);
        if (first > lo[dim->axis]) lo[dim->axis] = first;
        if (end < hi[dim->axis]) hi[dim->axis] = end;
        if (lo[dim->axis] >= hi[dim->axis]) empty = true;
    }
    if (empty)
        for (uint32_t a = 0; a < tile->rank; a++) lo[a] = hi[a] = 0;
    return offset;
}

void exec_place_scratch(exec_run *run, uint32_t index) {
    const exec_tile *tile = &run->plan->tiles[index];
    run->views[index].base = run->scratch + tile->offset;
    run->views[index].strides = tile->strides;
}

void exec_place(exec_run *run, uint32_t index) {
    const exec_tile *tile = &run->plan->tiles[index];
    int64_t lo[EXEC_RANK], hi[EXEC_RANK];
    exec_place_scratch(run, index);
    if (tile->direct == EXEC_NONE) return;
    const exec_access *access = &run->plan->accesses[tile->direct];
    int64_t offset = exec_rectangle(run, access, tile, lo, hi);
    for (uint32_t a = 0; a < tile->rank; a++)
        if (lo[a] != 0 || hi[a] != exec_extent(run, tile, a)) return;
    run->views[index].base = (char *)run->buffers[access->buffer] + offset * access->element_bytes;
    run->views[index].strides = access->strides;
}

/* Axes of one element vanish; neighbours merge where every operand steps through both in one go. */
void exec_nest_make(exec_nest *nest, const exec_run *run, const uint32_t *tiles, uint32_t count) {
    const exec_tile *shape = &run->plan->tiles[tiles[0]];
    int64_t extents[EXEC_RANK], strides[EXEC_MAX_OPERANDS][EXEC_RANK];
    uint32_t axes = 0;
    for (uint32_t a = shape->rank; a-- > 0;) {
        int64_t extent = exec_extent(run, shape, a);
        if (extent == 1) continue;
        bool merges = axes > 0;
        for (uint32_t i = 0; i < count; i++) {
            strides[i][axes] = run->plan->tiles[tiles[i]].shape[a] == 1 ? 0 : run->views[tiles[i]].strides[a];
            if (merges && strides[i][axes] != strides[i][axes - 1] * extents[axes - 1]) merges = false;
        }
        if (merges)
            extents[axes - 1] *= extent;
        else
            extents[axes++] = extent;
    }
    /* innermost first so far; the inner run wants steps of 0 or 1 */
    bool run_inner = axes > 0;
    for (uint32_t i = 0; i < count && run_inner; i++) run_inner = strides[i][0] == 0 || strides[i][0] == 1;
    if (run_inner && strides[0][0] != 1) run_inner = false;
    nest->n = run_inner ? extents[0] : 1;
    for (uint32_t i = 0; i < count; i++) nest->inner[i] = run_inner ? strides[i][0] : 1;
    for (uint32_t k = 0; k < EXEC_RANK; k++) {
        uint32_t from = k + run_inner; /* outermost last in strides: nest axes are innermost first */
        nest->extents[k] = from < axes ? extents[from] : 1;
        for (uint32_t i = 0; i < count; i++)
            nest->strides[i][k] =
                from < axes ? strides[i][from] * run->plan->tiles[tiles[i]].element_bytes : 0;
    }
}
