/* Tile loads and stores. */
#include "exec.h"

#include <math.h>
#include <string.h>

#define MAX_EXTENT_TABLE 65536

int64_t exec_coordinate(const exec_run *run, const ent_tile_index *index) {
    int64_t at = index->base;
    for (uint32_t i = 0; i < index->term_count; i++) at += index->terms[i].coefficient * run->variables[index->terms[i].variable];
    return at;
}

static inline int64_t dim_offset(const exec_dim *dim, int64_t c) {
    return dim->block > 1 ? c / dim->block * dim->stride + c % dim->block * dim->block_stride : c * dim->stride;
}

static int64_t floor_div(int64_t a, int64_t b) {
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/* First and past-the-last t with 0 <= start + step * t < extent. */
static void clip_range(int64_t start, int64_t step, int64_t extent, int64_t *lo, int64_t *hi) {
    if (step == 0) {
        if (start < 0 || start >= extent) *hi = *lo;
        return;
    }
    int64_t first = step > 0 ? -floor_div(start, step) : -floor_div(start - extent + 1, step); /* ceil(-start / step) and its mirror */
    int64_t last = step > 0 ? floor_div(extent - 1 - start, step) : floor_div(-start, step);
    if (step < 0) first = -floor_div(-(extent - 1 - start), -step);
    if (first > *lo) *lo = first;
    if (last + 1 < *hi) *hi = last + 1;
    if (*hi < *lo) *hi = *lo;
}

bool exec_affine(const exec_run *run, const exec_access *access, uint32_t rank, const int64_t *shape, int64_t *lo, int64_t *hi,
                 int64_t *offset, int64_t *strides) {
    *offset = 0;
    for (uint32_t a = 0; a < rank; a++) {
        lo[a] = 0;
        hi[a] = shape[a];
        strides[a] = 0;
    }
    bool inside = true;
    for (uint32_t d = 0; d < access->source->rank; d++) {
        const ent_tile_index *index = &access->source->index[d];
        const exec_dim *dim = &access->dims[d];
        int64_t start = exec_coordinate(run, index);
        if (index->tile_axis == ENT_TILE_NONE) {
            if (index->divisor > 1) start = floor_div(start, index->divisor);
            inside &= start >= 0 && start < dim->extent;
            *offset += dim_offset(dim, start);
        } else {
            clip_range(start, index->step, dim->extent, &lo[index->tile_axis], &hi[index->tile_axis]);
            *offset += dim->block > 1 ? dim_offset(dim, start) : start * dim->stride;
            strides[index->tile_axis] += index->step * (dim->block > 1 ? dim->block_stride : dim->stride);
        }
    }
    return inside;
}

/* ---- the general walk: offsets of each tile axis in a table, -1 outside ---- */

typedef struct walk {
    int64_t *offsets[ENT_TILE_MAX_RANK];
    uint8_t *valid[ENT_TILE_MAX_RANK];
    int64_t base;
    bool inside;
} walk;

/* Tables lie in the thread's scratch behind everything else. */
static void make_walk(exec_run *run, const exec_access *access, const ent_tile_value *value, walk *w) {
    uint8_t *room = run->scratch + run->kernel->scratch_bytes;
    w->base = 0;
    w->inside = true;
    for (uint32_t a = 0; a < value->rank; a++) {
        w->offsets[a] = (int64_t *)room;
        room += value->shape[a] * (int64_t)sizeof(int64_t);
        w->valid[a] = room;
        room += (value->shape[a] + 7) / 8 * 8;
        memset(w->offsets[a], 0, (size_t)value->shape[a] * sizeof(int64_t));
        memset(w->valid[a], 1, (size_t)value->shape[a]);
    }
    for (uint32_t d = 0; d < access->source->rank; d++) {
        const ent_tile_index *index = &access->source->index[d];
        const exec_dim *dim = &access->dims[d];
        if (index->gather != ENT_TILE_NONE) continue; /* added per element */
        int64_t start = exec_coordinate(run, index);
        int64_t count = index->tile_axis == ENT_TILE_NONE ? 1 : value->shape[index->tile_axis];
        for (int64_t t = 0; t < count; t++) {
            int64_t c = start + index->step * t, q = index->divisor > 1 ? floor_div(c, index->divisor) : c;
            bool good = q >= 0 && q < dim->extent && !(index->exact && index->divisor > 1 && q * index->divisor != c);
            int64_t offset = good ? dim_offset(dim, q) : 0;
            if (index->tile_axis == ENT_TILE_NONE) {
                w->inside &= good;
                w->base += offset;
            } else {
                w->offsets[index->tile_axis][t] += offset;
                w->valid[index->tile_axis][t] &= good;
            }
        }
    }
}

/* Offset that gathered dimensions add at a tile position; false outside. */
static bool gathered(const exec_run *run, const exec_access *access, const int64_t *position, int64_t *offset) {
    for (uint32_t d = 0; d < access->source->rank; d++) {
        const ent_tile_index *index = &access->source->index[d];
        if (index->gather == ENT_TILE_NONE) continue;
        const ent_tile_value *value = exec_value(run->kernel, index->gather);
        const exec_tile *tile = &run->tiles[index->gather];
        int64_t at = 0;
        for (uint32_t a = 0; a < value->rank; a++) at += (value->shape[a] == 1 ? 0 : position[a]) * tile->strides[a];
        int64_t c = exec_coordinate(run, index);
        if (index->tile_axis != ENT_TILE_NONE) c += index->step * position[index->tile_axis];
        if (index->divisor > 1) c = floor_div(c, index->divisor);
        c += value->dtype == ENT_DTYPE_I64 ? ((const int64_t *)tile->data)[at] : ((const int32_t *)tile->data)[at];
        if (c < 0 || c >= access->dims[d].extent) return false;
        *offset += dim_offset(&access->dims[d], c);
    }
    return true;
}

static bool gather_varies_inside(const exec_run *run, const exec_access *access, uint32_t last) {
    for (uint32_t d = 0; d < access->source->rank; d++) {
        uint32_t tile = access->source->index[d].gather;
        if (tile != ENT_TILE_NONE && exec_value(run->kernel, tile)->shape[last] > 1) return true;
        if (tile != ENT_TILE_NONE && access->source->index[d].tile_axis == last) return true;
    }
    return false;
}

static void store_scalar(uint8_t *at, uint32_t dtype, double value) { ent_ops_store_f64(at, dtype, 0, value); }

static void fill_run(uint8_t *at, int64_t count, uint32_t bytes, const uint8_t *value) {
    bool zero = true;
    for (uint32_t i = 0; i < bytes; i++) zero &= value[i] == 0;
    if (zero) {
        memset(at, 0, (size_t)count * bytes);
        return;
    }
    for (int64_t i = 0; i < count; i++) memcpy(at + i * bytes, value, bytes);
}

static void copy_run(uint8_t *to, int64_t to_step, const uint8_t *from, int64_t from_step, int64_t count, uint32_t bytes) {
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * bytes);
        return;
    }
    if (bytes == 4) {
        uint32_t *y = (uint32_t *)(void *)to;
        const uint32_t *x = (const uint32_t *)(const void *)from;
        for (int64_t i = 0; i < count; i++) y[i * to_step] = x[i * from_step];
        return;
    }
    for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step * bytes, from + i * from_step * bytes, bytes);
}

/* The walk for one innermost run. Loads write every element, stores only those inside. */
static void walk_run(exec_run *run, const exec_access *access, const walk *w, const ent_tile_value *value, int64_t *position,
                     uint8_t *tile, int64_t tile_step, uint8_t *buffer, bool store, const uint8_t *outside) {
    uint32_t last = value->rank - 1, bytes = access->element_bytes;
    int64_t count = value->shape[last], base = w->base;
    bool row = w->inside, varies = access->has_gather && gather_varies_inside(run, access, last);
    for (uint32_t a = 0; a < last; a++) {
        row &= w->valid[a][position[a]];
        base += w->offsets[a][position[a]];
    }
    position[last] = 0;
    if (row && access->has_gather && !varies) row = gathered(run, access, position, &base);
    for (int64_t t = 0; t < count;) {
        int64_t offset = base + w->offsets[last][t];
        position[last] = t;
        bool good = row && w->valid[last][t] && (!varies || gathered(run, access, position, &offset));
        int64_t stop = t + 1, step = stop < count ? w->offsets[last][stop] - w->offsets[last][t] : 1;
        while (!varies && stop < count && (row && w->valid[last][stop]) == good &&
               (!good || w->offsets[last][stop] - w->offsets[last][stop - 1] == step))
            stop++;
        uint8_t *at = tile + t * tile_step * bytes;
        if (good && store) copy_run(buffer + offset * bytes, step, at, tile_step, stop - t, bytes);
        else if (good) copy_run(at, tile_step, buffer + offset * bytes, step, stop - t, bytes);
        else if (!store) fill_run(at, stop - t, bytes, outside);
        t = stop;
    }
}

static void walk_all(exec_run *run, const exec_access *access, const ent_tile_value *value, const exec_tile *tile, bool store,
                     const uint8_t *outside) {
    walk w;
    int64_t position[ENT_TILE_MAX_RANK] = {0}, outer = 1;
    make_walk(run, access, value, &w);
    if (store && !w.inside) return;
    for (uint32_t a = 0; a + 1 < value->rank; a++) outer *= value->shape[a];
    uint8_t *buffer = run->buffers[access->source->buffer];
    for (int64_t i = 0; i < outer; i++) {
        int64_t rest = i, at = 0;
        for (uint32_t a = value->rank - 1; a-- > 0; rest /= value->shape[a]) position[a] = rest % value->shape[a];
        for (uint32_t a = 0; a + 1 < value->rank; a++) at += position[a] * tile->strides[a];
        walk_run(run, access, &w, value, position, tile->data + at * access->element_bytes, tile->strides[value->rank - 1], buffer,
                 store, outside);
    }
}

/* Inside rectangle only, uniform strides: rows of the innermost axis, or a transpose where the other side runs along another axis. */
static void copy_rectangle(const exec_run *run, const ent_tile_value *value, const int64_t *lo, const int64_t *hi, uint8_t *to,
                           const int64_t *to_strides, const uint8_t *from, const int64_t *from_strides, uint32_t bytes) {
    uint32_t rank = value->rank, last = rank - 1, swap = ENT_TILE_NONE;
    for (uint32_t a = 0; a < last && (to_strides[last] == 1) != (from_strides[last] == 1); a++) {
        const int64_t *other = to_strides[last] == 1 ? from_strides : to_strides;
        if (other[a] == 1 && hi[a] - lo[a] > 1) swap = a;
    }
    int64_t outer = 1;
    for (uint32_t a = 0; a < last; a++) outer *= a == swap ? 1 : hi[a] - lo[a];
    for (int64_t i = 0; i < outer; i++) {
        int64_t rest = i, x = lo[last] * from_strides[last], y = lo[last] * to_strides[last];
        for (uint32_t a = last; a-- > 0;) {
            int64_t extent = a == swap ? 1 : hi[a] - lo[a], p = lo[a] + rest % extent;
            rest /= extent;
            x += p * from_strides[a];
            y += p * to_strides[a];
        }
        if (swap == ENT_TILE_NONE) {
            copy_run(to + y * bytes, to_strides[last], from + x * bytes, from_strides[last], hi[last] - lo[last], bytes);
        } else if (to_strides[last] == 1) { /* in[r = last][c = swap] -> out[c = swap][r = last] */
            run->kernel->kernels->transpose(from + x * bytes, from_strides[last], to + y * bytes, to_strides[swap], hi[last] - lo[last],
                                            hi[swap] - lo[swap], bytes);
        } else {
            run->kernel->kernels->transpose(from + x * bytes, from_strides[swap], to + y * bytes, to_strides[last], hi[swap] - lo[swap],
                                            hi[last] - lo[last], bytes);
        }
    }
}

void exec_load_tile(exec_run *run, const exec_step *step) {
    const exec_access *access = &run->kernel->accesses[step->access];
    const ent_tile_value *value = exec_value(run->kernel, step->op->dst);
    exec_tile *tile = &run->tiles[step->op->dst];
    tile->data = run->scratch + run->kernel->tile_offsets[step->op->dst];
    exec_plain_strides(value, tile->strides);
    uint8_t outside[8] = {0};
    store_scalar(outside, value->dtype, step->op->f[0]);
    if (access->has_gather || access->has_divisor || access->has_block) {
        walk_all(run, access, value, tile, false, outside);
        return;
    }
    int64_t lo[ENT_TILE_MAX_RANK], hi[ENT_TILE_MAX_RANK], strides[ENT_TILE_MAX_RANK], offset;
    bool inside = exec_affine(run, access, value->rank, value->shape, lo, hi, &offset, strides), full = inside;
    for (uint32_t a = 0; a < value->rank; a++) full &= lo[a] == 0 && hi[a] == value->shape[a];
    uint8_t *from = (uint8_t *)run->buffers[access->source->buffer] + offset * access->element_bytes;
    uint32_t last = value->rank - 1;
    if (full && step->in_place && (strides[last] == 1 || strides[last] == 0 || value->shape[last] == 1)) {
        tile->data = from;
        memcpy(tile->strides, strides, sizeof strides);
        return;
    }
    if (!full) fill_run(tile->data, exec_elements(value), access->element_bytes, outside);
    if (inside) copy_rectangle(run, value, lo, hi, tile->data, tile->strides, from, strides, access->element_bytes);
}

void exec_store_tile(exec_run *run, const exec_step *step) {
    const exec_access *access = &run->kernel->accesses[step->access];
    const ent_tile_value *value = exec_value(run->kernel, step->op->source[0]);
    const exec_tile *tile = &run->tiles[step->op->source[0]];
    if (access->has_gather || access->has_divisor || access->has_block) {
        walk_all(run, access, value, tile, true, NULL);
        return;
    }
    int64_t lo[ENT_TILE_MAX_RANK], hi[ENT_TILE_MAX_RANK], strides[ENT_TILE_MAX_RANK], offset;
    if (!exec_affine(run, access, value->rank, value->shape, lo, hi, &offset, strides)) return;
    uint8_t *to = (uint8_t *)run->buffers[access->source->buffer] + offset * access->element_bytes;
    copy_rectangle(run, value, lo, hi, to, strides, tile->data, tile->strides, access->element_bytes);
}
