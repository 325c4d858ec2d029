/* The one copy loop: n axes, any strides on both sides. Axes are sorted by the target's strides and fused
 * where both sides step evenly. What is left is either runs that are dense on both sides (memcpy), or a
 * transpose: then the axis that is dense in the source and the one that is dense in the target are walked
 * together in small tiles, so that each cache line is touched while it is still near. */
#include "core/ops/internal.h"

#include <string.h>

#define TILE 16
#define SHORT_RUN_BYTES 512

typedef struct copy_plan {
    const uint8_t *from;
    uint8_t *to;
    int64_t size_bytes;
    ent_ops_copy_axis outer[ENT_OPS_COPY_AXES];
    uint32_t outer_count;
    ent_ops_copy_axis source_dense, inner; /* inner: dense in the target */
    int64_t run_bytes;                     /* not 0: both strides move over runs of so many bytes */
} copy_plan;

static int64_t magnitude(int64_t value) {
    return value < 0 ? -value : value;
}

/* Drops size-1 axes, sorts by target stride, largest first, and fuses. Returns the number left. */
static uint32_t simplify(ent_ops_copy_axis *axes, uint32_t count) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (axes[i].extent == 1) continue;
        ent_ops_copy_axis axis = axes[i];
        uint32_t place = kept++;
        while (place > 0 && magnitude(axes[place - 1].to_stride) < magnitude(axis.to_stride)) {
            axes[place] = axes[place - 1];
            place--;
        }
        axes[place] = axis;
    }
    if (kept == 0) return 0;
    uint32_t last = 0;
    for (uint32_t i = 1; i < kept; i++) {
        bool even = axes[last].from_stride == axes[i].from_stride * axes[i].extent &&
                    axes[last].to_stride == axes[i].to_stride * axes[i].extent;
        int64_t extent = even ? axes[last].extent * axes[i].extent : axes[i].extent;
        if (!even) last++;
        axes[last] = axes[i];
        axes[last].extent = extent;
    }
    return last + 1;
}

#define COPY_TILE(type, name)                                                                                \
    static void name(const uint8_t *from, uint8_t *to, const ent_ops_copy_axis *s,                           \
                     const ent_ops_copy_axis *d, int64_t s_count, int64_t d_count) {                         \
        const type *source = (const type *)from;                                                             \
        type *target = (type *)to;                                                                           \
        int64_t step = d->from_stride, place = d->to_stride;                                                 \
        if (place == 1 && d_count == TILE && s_count == TILE && s->from_stride == 1) {                       \
            type block[TILE][TILE]; /* whole lines in, whole lines out, even where rows share a cache set */ \
            for (int64_t j = 0; j < TILE; j++)                                                               \
                for (int64_t i = 0; i < TILE; i++) block[i][j] = source[j * step + i];                       \
            for (int64_t i = 0; i < TILE; i++) memcpy(target + i * s->to_stride, block[i], sizeof block[i]); \
            return;                                                                                          \
        }                                                                                                    \
        if (place == 1 && d_count == TILE) {                                                                 \
            for (int64_t i = 0; i < s_count; i++)                                                            \
                for (int64_t j = 0; j < TILE; j++)                                                           \
                    target[i * s->to_stride + j] = source[i * s->from_stride + j * step];                    \
            return;                                                                                          \
        }                                                                                                    \
        for (int64_t i = 0; i < s_count; i++)                                                                \
            for (int64_t j = 0; j < d_count; j++)                                                            \
                target[i * s->to_stride + j * place] = source[i * s->from_stride + j * step];                \
    }
typedef struct element16 {
    uint64_t half[2];
} element16;
COPY_TILE(uint8_t, copy_tile_1)
COPY_TILE(uint16_t, copy_tile_2)
COPY_TILE(uint32_t, copy_tile_4)
COPY_TILE(uint64_t, copy_tile_8)
COPY_TILE(element16, copy_tile_16)

/* A plane of short runs, in tiles. */
static void copy_runs(const copy_plan *plan, const uint8_t *from, uint8_t *to) {
    const ent_ops_copy_axis *s = &plan->source_dense, *d = &plan->inner;
    int64_t size = plan->size_bytes;
    size_t run = (size_t)plan->run_bytes;
    for (int64_t j = 0; j < d->extent; j += TILE)
        for (int64_t i = 0; i < s->extent; i++)
            for (int64_t k = j; k < d->extent && k < j + TILE; k++)
                memcpy(to + (i * s->to_stride + k * d->to_stride) * size,
                       from + (i * s->from_stride + k * d->from_stride) * size, run);
}

static void copy_plane(const copy_plan *plan, const uint8_t *from, uint8_t *to) {
    const ent_ops_copy_axis *s = &plan->source_dense, *d = &plan->inner;
    int64_t size = plan->size_bytes;
    if (plan->run_bytes > 0) {
        copy_runs(plan, from, to);
        return;
    }
    if (s->extent == 1 && d->from_stride == 1 && d->to_stride == 1) {
        memcpy(to, from, (size_t)(d->extent * size));
        return;
    }
    for (int64_t j = 0; j < d->extent; j += TILE) {
        int64_t d_count = d->extent - j < TILE ? d->extent - j : TILE;
        for (int64_t i = 0; i < s->extent; i += TILE) {
            int64_t s_count = s->extent - i < TILE ? s->extent - i : TILE;
            const uint8_t *source = from + (i * s->from_stride + j * d->from_stride) * size;
            uint8_t *target = to + (i * s->to_stride + j * d->to_stride) * size;
            switch (size) {
            case 1:
                copy_tile_1(source, target, s, d, s_count, d_count);
                break;
            case 2:
                copy_tile_2(source, target, s, d, s_count, d_count);
                break;
            case 4:
                copy_tile_4(source, target, s, d, s_count, d_count);
                break;
            case 8:
                copy_tile_8(source, target, s, d, s_count, d_count);
                break;
            default:
                copy_tile_16(source, target, s, d, s_count, d_count);
                break;
            }
        }
    }
}

static void copy_outer(const copy_plan *plan) {
    int64_t index[ENT_OPS_COPY_AXES] = {0}, from = 0, to = 0;
    for (;;) {
        copy_plane(plan, plan->from + from * plan->size_bytes, plan->to + to * plan->size_bytes);
        uint32_t axis = plan->outer_count;
        while (axis-- > 0) {
            const ent_ops_copy_axis *a = &plan->outer[axis];
            from += a->from_stride;
            to += a->to_stride;
            if (++index[axis] < a->extent) break;
            from -= a->from_stride * a->extent;
            to -= a->to_stride * a->extent;
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) return;
    }
}

/* The axis among axes[0..count) that steps least in the source, if less than `below`; UINT32_MAX if none. */
static uint32_t nearest_in_source(const ent_ops_copy_axis *axes, uint32_t count, int64_t below) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        int64_t step = magnitude(axes[i].from_stride);
        if (step == 0 || step >= below) continue;
        below = step;
        best = i;
    }
    return best;
}

void ent_ops_copy(const void *from, void *to, int64_t size_bytes, ent_ops_copy_axis *axes,
                  uint32_t axis_count) {
    for (uint32_t i = 0; i < axis_count; i++)
        if (axes[i].extent <= 0) return;
    uint32_t count = simplify(axes, axis_count);
    copy_plan plan = {.from = from, .to = to, .size_bytes = size_bytes};
    plan.inner = plan.source_dense = (ent_ops_copy_axis){1, 1, 1};
    uint32_t dense = UINT32_MAX, left = count > 0 ? count - 1 : 0;
    if (count > 0) plan.inner = axes[count - 1];
    bool runs = count > 0 && plan.inner.from_stride == 1 && plan.inner.to_stride == 1;
    if (!runs) {
        dense = nearest_in_source(axes, left, magnitude(plan.inner.from_stride));
    } else if (count > 2 && plan.inner.extent * size_bytes <= SHORT_RUN_BYTES) {
        dense = nearest_in_source(axes, count - 2, magnitude(axes[count - 2].from_stride));
        if (dense != UINT32_MAX) {
            plan.run_bytes = plan.inner.extent * size_bytes;
            plan.inner = axes[count - 2];
            left = count - 2;
        }
    }
    if (dense != UINT32_MAX) plan.source_dense = axes[dense];
    for (uint32_t i = 0; i < left; i++)
        if (i != dense) plan.outer[plan.outer_count++] = axes[i];
    copy_outer(&plan);
}
