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

/* ---- other moves: a table of offsets for each tile axis, -1 outside ---- */

/* Adds a dim's offset at one coordinate; false outside. */
static bool add_coordinate(const exec_dim *dim, int64_t sum, int64_t gathered, int64_t *offset) {
    if (dim->exact && sum % dim->divisor != 0) return false;
    int64_t at = dim->divisor == 1 ? sum : ent_expr_floordiv(sum, dim->divisor);
    if (__builtin_add_overflow(at, gathered, &at) || at < 0 || at >= dim->limit) return false;
    *offset += dim->block == 1 ? at * dim->stride
                               : at / dim->block * dim->stride + at % dim->block * dim->block_stride;
    return true;
}

static int64_t gathered_at(const exec_run *run, uint32_t index, const int64_t *position) {
    const exec_tile *tile = &run->plan->tiles[index];
    const exec_view *view = &run->views[index];
    int64_t at = 0;
    for (uint32_t a = 0; a < tile->rank; a++)
        if (tile->shape[a] > 1) at += view->strides[a] * position[a];
    return tile->dtype == ENT_DTYPE_I32 ? ((const int32_t *)(const void *)view->base)[at]
                                        : ((const int64_t *)(const void *)view->base)[at];
}

typedef struct table {
    const exec_run *run;
    const exec_access *access;
    const exec_tile *tile;
    const uint32_t *gathers;     /* tiles of the dims that gather, in order */
    int64_t *axis[EXEC_RANK];    /* offset of each position, INT64_MIN outside */
    int64_t constant;            /* of dims that no axis moves; INT64_MIN: all is outside */
    uint32_t rest[ENT_MAX_RANK]; /* dims gathered through more than one axis */
    uint32_t rest_gather[ENT_MAX_RANK];
    uint32_t rest_count;
    bool inner_is_run; /* the innermost axis is one run of elements, all inside */
} table;

/* The one tile axis that a dim depends on; EXEC_RANK: none; NONE: several. */
static uint32_t axis_of(const table *t, const exec_dim *dim, uint32_t gather) {
    uint32_t axis = dim->axis == EXEC_NONE ? EXEC_RANK : dim->axis;
    for (uint32_t a = 0; gather != EXEC_NONE && a < t->tile->rank; a++) {
        if (t->run->plan->tiles[gather].shape[a] == 1 || a == axis) continue;
        if (axis != EXEC_RANK) return EXEC_NONE;
        axis = a;
    }
    return axis;
}

static void add_dim(table *t, const exec_dim *dim, uint32_t gather) {
    uint32_t axis = axis_of(t, dim, gather);
    int64_t start = exec_dim_start(t->run, dim), position[EXEC_RANK] = {0};
    if (axis == EXEC_NONE) {
        t->rest_gather[t->rest_count] = gather;
        t->rest[t->rest_count++] = (uint32_t)(dim - t->access->dims);
    } else if (axis == EXEC_RANK) {
        int64_t moved = gather == EXEC_NONE ? 0 : gathered_at(t->run, gather, position);
        if (t->constant != INT64_MIN && !add_coordinate(dim, start, moved, &t->constant))
            t->constant = INT64_MIN;
    } else {
        for (int64_t i = 0; i < exec_extent(t->run, t->tile, axis); i++) {
            position[axis] = i;
            int64_t moved = gather == EXEC_NONE ? 0 : gathered_at(t->run, gather, position);
            int64_t sum = start + (dim->axis == axis ? dim->step * i : 0), *offset = &t->axis[axis][i];
            if (*offset != INT64_MIN && !add_coordinate(dim, sum, moved, offset)) *offset = INT64_MIN;
        }
    }
}

static void make_table(table *t, exec_run *run, const exec_step *step, const exec_tile *tile,
                       const uint32_t *gathers) {
    int64_t *room = (int64_t *)(void *)(run->scratch + (size_t)step->data_offset);
    uint32_t gather = 0;
    t->run = run;
    t->access = &run->plan->accesses[step->access];
    t->tile = tile;
    t->constant = 0;
    t->rest_count = 0;
    for (uint32_t a = 0; a < tile->rank; a++) {
        t->axis[a] = room;
        room += tile->shape[a];
        memset(t->axis[a], 0, (size_t)exec_extent(run, tile, a) * sizeof(int64_t));
    }
    for (uint32_t d = 0; d < t->access->rank; d++) {
        const exec_dim *dim = &t->access->dims[d];
        add_dim(t, dim, dim->gather == EXEC_NONE ? EXEC_NONE : gathers[gather++]);
    }
}

size_t exec_move_scratch(exec_plan *plan, exec_step *step, size_t offset) {
    const exec_tile *tile = &plan->tiles[step->kind == EXEC_LOAD ? step->dst : step->source[0]];
    if (plan->accesses[step->access].affine) return offset;
    step->data_offset = offset;
    for (uint32_t a = 0; a < tile->rank; a++) offset += (size_t)tile->shape[a] * sizeof(int64_t);
    return (offset + 63) & ~(size_t)63;
}

/* Offset of an element, INT64_MIN outside. */
static int64_t offset_at(const table *t, int64_t outer, const int64_t *position, uint32_t inner) {
    int64_t offset = outer;
    if (inner < EXEC_RANK) {
        if (t->axis[inner][position[inner]] == INT64_MIN) return INT64_MIN;
        offset += t->axis[inner][position[inner]];
    }
    for (uint32_t r = 0; r < t->rest_count; r++) {
        const exec_dim *dim = &t->access->dims[t->rest[r]];
        int64_t sum =
            exec_dim_start(t->run, dim) + (dim->axis == EXEC_NONE ? 0 : dim->step * position[dim->axis]);
        if (!add_coordinate(dim, sum, gathered_at(t->run, t->rest_gather[r], position), &offset))
            return INT64_MIN;
    }
    return offset;
}

static int64_t outer_offset(const table *t, const int64_t *position, uint32_t inner) {
    int64_t offset = t->constant;
    for (uint32_t a = 0; a < inner && a < t->tile->rank && offset != INT64_MIN; a++)
        offset = t->axis[a][position[a]] == INT64_MIN ? INT64_MIN : offset + t->axis[a][position[a]];
    return offset;
}

/* Elements from `i` on whose offsets follow each other (or all lie outside). */
static int64_t run_length(const table *t, int64_t outer, int64_t *position, uint32_t inner, int64_t count,
                          int64_t *out_first) {
    int64_t i = position[inner],
            first = outer == INT64_MIN ? INT64_MIN : offset_at(t, outer, position, inner), n = 1;
    *out_first = first;
    if (outer == INT64_MIN) return count - i;
    for (; i + n < count; n++) {
        position[inner] = i + n;
        int64_t next = offset_at(t, outer, position, inner);
        if (first == INT64_MIN ? next != INT64_MIN : next != first + n) break;
    }
    position[inner] = i;
    return n;
}

/* One row of the tile: runs of elements. fill: bytes of an outside element; NULL: a store. */
static void move_row(const table *t, int64_t *position, uint32_t inner, char *row, int64_t stride,
                     const char *fill) {
    int64_t outer = outer_offset(t, position, inner), count = exec_extent(t->run, t->tile, inner);
    int64_t bytes = t->tile->element_bytes, first = 0;
    char *buffer = t->run->buffers[t->access->buffer];
    const int64_t one = 1, still = 0;
    if (t->inner_is_run && outer != INT64_MIN) {
        char *at = buffer + (outer + t->axis[inner][0]) * bytes;
        exec_copy(t->run->plan->kernels, 1, &count, fill ? at : row, fill ? &one : &stride, fill ? row : at,
                  fill ? &stride : &one, (uint32_t)bytes);
        return;
    }
    for (position[inner] = 0; position[inner] < count;) {
        int64_t n = run_length(t, outer, position, inner, count, &first);
        char *at = row + position[inner] * stride * bytes;
        if (first == INT64_MIN) {
            if (fill) exec_copy(t->run->plan->kernels, 1, &n, fill, &still, at, &stride, (uint32_t)bytes);
        } else if (fill && n == 1)
            memcpy(at, buffer + first * bytes, (size_t)bytes);
        else if (fill)
            exec_copy(t->run->plan->kernels, 1, &n, buffer + first * bytes, &one, at, &stride,
                      (uint32_t)bytes);
        else
            exec_copy(t->run->plan->kernels, 1, &n, at, &stride, buffer + first * bytes, &one,
                      (uint32_t)bytes);
        position[inner] += n;
    }
    position[inner] = 0;
}

static void move_by_table(exec_run *run, const exec_step *step, uint32_t index, const uint32_t *gathers,
                          const char *fill) {
    const exec_tile *tile = &run->plan->tiles[index];
    const exec_view *view = &run->views[index];
    uint32_t inner = tile->rank - 1;
    int64_t position[EXEC_RANK] = {0};
    table t;
    while (inner > 0 && exec_extent(run, tile, inner) == 1) inner--;
    make_table(&t, run, step, tile, gathers);
    for (uint32_t a = inner + 1; a < tile->rank; a++) { /* axes of one element */
        if (t.constant != INT64_MIN)
            t.constant = t.axis[a][0] == INT64_MIN ? INT64_MIN : t.constant + t.axis[a][0];
    }
    t.inner_is_run = t.rest_count == 0 && t.axis[inner][0] != INT64_MIN;
    for (int64_t i = 1; i < exec_extent(run, tile, inner) && t.inner_is_run; i++)
        t.inner_is_run = t.axis[inner][i] == t.axis[inner][0] + i;
    for (;;) {
        move_row(&t, position, inner, view->base + dot(inner, view->strides, position) * tile->element_bytes,
                 view->strides[inner], fill);
        uint32_t a = inner;
        while (a > 0 && ++position[a - 1] == exec_extent(run, tile, a - 1)) position[--a] = 0;
        if (a == 0) return;
    }
}

void exec_load(exec_run *run, const exec_step *step) {
    char fill[16] = {0};
    if (run->plan->accesses[step->access].affine) {
        load_rectangle(run, step);
        return;
    }
    exec_place(run, step->dst);
    exec_element(run->plan->tiles[step->dst].dtype, step->op->f[0], fill);
    move_by_table(run, step, step->dst, step->source, fill);
}

void exec_store(exec_run *run, const exec_step *step) {
    if (run->plan->accesses[step->access].affine)
        store_rectangle(run, step);
    else
        move_by_table(run, step, step->source[0], step->source + 1, NULL);
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

void exec_iota(exec_run *run, const exec_step *step) {
    const exec_tile *tile = &run->plan->tiles[step->dst];
    uint64_t start = step->op->f[0] >= -9223372036854775808.0 && step->op->f[0] < 9223372036854775808.0
                         ? (uint64_t)(int64_t)step->op->f[0]
                         : (uint64_t)INT64_MIN;
    if (step->op->variable != EXEC_NONE)
        start += (uint64_t)step->op->step * (uint64_t)run->variables[step->op->variable];
    exec_place_scratch(run, step->dst);
    char *base = run->views[step->dst].base;
    int64_t extents[EXEC_RANK] = {1, 1, 1, 1}, position[EXEC_RANK] = {0};
    extents_of(run, tile, extents);
    for (;;) {
        uint64_t value = start;
        for (uint32_t a = 0; a < tile->rank; a++)
            if (step->op->axis_mask >> a & 1) value += (uint64_t)position[a];
        int64_t at = dot(tile->rank, tile->strides, position);
        if (tile->dtype == ENT_DTYPE_F32)
            ((float *)(void *)base)[at] = (float)(int64_t)value;
        else
            ent_ops_store_i64(base, tile->dtype, at, (int64_t)value);
        uint32_t a = tile->rank;
        while (a > 0 && ++position[a - 1] == extents[a - 1]) position[--a] = 0;
        if (a == 0) return;
    }
}
