/* Axis classes: which tile axes always have the same extent, and which of them end where the outputs end. */
#include "exec.h"

typedef struct classifier {
    exec_plan *plan;
    uint32_t *parent; /* union-find over tile * EXEC_RANK + axis */
    bool *fixed;      /* by root: every position matters, though it lies outside the outputs */
} classifier;

static uint32_t root_of(classifier *c, uint32_t slot) {
    while (c->parent[slot] != slot) {
        c->parent[slot] = c->parent[c->parent[slot]];
        slot = c->parent[slot];
    }
    return slot;
}

static void join(classifier *c, uint32_t a, uint32_t b) {
    a = root_of(c, a);
    b = root_of(c, b);
    if (a == b) return;
    c->parent[a] = b;
    c->fixed[b] |= c->fixed[a];
}

static uint32_t slot(uint32_t tile, uint32_t axis) {
    return tile * EXEC_RANK + axis;
}

static void fix(classifier *c, uint32_t tile, uint32_t axis) {
    c->fixed[root_of(c, slot(tile, axis))] = true;
}

static void fix_all(classifier *c, uint32_t tile) {
    for (uint32_t a = 0; a < c->plan->tiles[tile].rank; a++) fix(c, tile, a);
}

/* Axes at the same place that both have elements. */
static void join_same(classifier *c, uint32_t a, uint32_t b) {
    const exec_tile *ta = &c->plan->tiles[a], *tb = &c->plan->tiles[b];
    for (uint32_t i = 0; i < ta->rank && i < tb->rank; i++)
        if (ta->shape[i] > 1 && tb->shape[i] > 1) join(c, slot(a, i), slot(b, i));
}

static void join_reduce(classifier *c, const exec_step *step) {
    const exec_tile *from = &c->plan->tiles[step->source[0]];
    for (uint32_t i = 0; i < from->rank; i++) {
        if (step->op->axis_mask >> i & 1)
            fix(c, step->source[0], i);
        else if (from->shape[i] > 1)
            join(c, slot(step->source[0], i), slot(step->dst, i));
    }
}

static void join_multiply(classifier *c, const exec_step *step) {
    uint32_t a = step->source[0], b = step->source[1], d = step->dst, rank = c->plan->tiles[d].rank;
    uint32_t columns = step->op->flags & ENT_TILE_TRANSPOSE_B ? 0 : 1;
    for (uint32_t i = 0; i + 1 < rank; i++) join(c, slot(a, i), slot(d, i));
    join(c, slot(b, columns), slot(d, rank - 1));
    join(c, slot(a, rank - 1), slot(b, 1 - columns));
    fix(c, a, rank - 1);
}

/* Rows are whole: the last axes of a row kernel are not cut. */
static void join_rows(classifier *c, const exec_step *step) {
    const exec_tile *tile = &c->plan->tiles[step->dst];
    for (uint32_t s = 0; s < step->source_count; s++) join_same(c, step->source[s], step->dst);
    for (uint32_t a = 0; a < tile->rank; a++)
        if (exec_rows_mask(step) >> a & 1) fix(c, step->dst, a);
}

static void join_step(classifier *c, const exec_step *step) {
    switch (step->kind) {
    case EXEC_LOAD:
        for (uint32_t s = 0; s < step->source_count; s++) join_same(c, step->source[s], step->dst);
        break;
    case EXEC_STORE:
        for (uint32_t s = 1; s < step->source_count; s++) join_same(c, step->source[s], step->source[0]);
        break;
    case EXEC_MAP:
    case EXEC_GEMM:
    case EXEC_WINDOW:
        for (uint32_t s = 0; s < step->source_count; s++) join_same(c, step->source[s], step->dst);
        break;
    case EXEC_SOFTMAX:
    case EXEC_LAYER_NORM:
        join_rows(c, step);
        break;
    case EXEC_REDUCE:
        join_reduce(c, step);
        break;
    case EXEC_MULTIPLY:
        join_multiply(c, step);
        break;
    case EXEC_RESHAPE:
        fix_all(c, step->source[0]);
        fix_all(c, step->dst);
        break;
    case EXEC_PERMUTE:
        for (uint32_t i = 0; i < c->plan->tiles[step->dst].rank; i++)
            join(c, slot(step->source[0], step->op->perm[i]), slot(step->dst, i));
        break;
    default:
        break;
    }
}

/* A store ends a class only if skipping what lies beyond its end is all it does there. */
static bool ends_class(const exec_plan *plan, const exec_access *access, uint32_t axis) {
    bool named = false;
    for (uint32_t d = 0; d < access->rank; d++) {
        const exec_dim *dim = &access->dims[d];
        if (dim->gather != EXEC_NONE) return false;
        if (dim->axis != axis) continue;
        if (dim->divisor != 1 || dim->step < 1) return false;
        for (uint32_t t = 0; t < dim->term_count; t++)
            if (dim->terms[t].variable >= plan->program.grid_count) return false;
        named = true;
    }
    return named;
}

static void look_at_store(classifier *c, const exec_step *store, uint8_t *stored) {
    exec_plan *plan = c->plan;
    const exec_tile *tile = &plan->tiles[store->source[0]];
    for (uint32_t a = 0; a < tile->rank; a++) {
        if (tile->shape[a] == 1) continue;
        uint32_t root = root_of(c, slot(store->source[0], a));
        stored[root] = 1;
        if (!ends_class(plan, &plan->accesses[store->access], a)) c->fixed[root] = true;
    }
}

/* Numbers the classes: 0 for axes of one element, then one for each root. */
static bool number_classes(classifier *c, uint16_t *number) {
    exec_plan *plan = c->plan;
    plan->class_count = 1;
    for (uint32_t t = 0; t < plan->tile_count; t++) {
        exec_tile *tile = &plan->tiles[t];
        for (uint32_t a = 0; a < tile->rank; a++) {
            if (tile->shape[a] == 1) continue;
            uint32_t root = root_of(c, slot(t, a));
            if (number[root] == 0) {
                if (plan->class_count == UINT16_MAX) return false;
                number[root] = (uint16_t)plan->class_count++;
            }
            tile->axis_class[a] = number[root];
        }
    }
    plan->extents = exec_allocate(&plan->arena, plan->class_count * sizeof *plan->extents);
    if (!plan->extents) return false;
    plan->extents[0] = 1;
    for (uint32_t t = 0; t < plan->tile_count; t++)
        for (uint32_t a = 0; a < plan->tiles[t].rank; a++)
            plan->extents[plan->tiles[t].axis_class[a]] = plan->tiles[t].shape[a];
    return true;
}

static void make_clips(classifier *c, const uint8_t *stored) {
    exec_plan *plan = c->plan;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        if (step->kind != EXEC_STORE) continue;
        const exec_tile *tile = &plan->tiles[step->source[0]];
        for (uint32_t a = 0; a < tile->rank; a++) {
            uint32_t root = root_of(c, slot(step->source[0], a));
            if (tile->shape[a] == 1 || c->fixed[root] || !stored[root]) continue;
            plan->clips[plan->clip_count++] = (exec_clip){tile->axis_class[a], step->access, a};
        }
    }
}

ent_code exec_make_classes(exec_plan *plan) {
    uint32_t slots = plan->tile_count * EXEC_RANK + 1;
    classifier c = {plan, exec_allocate(&plan->arena, slots * sizeof(uint32_t)),
                    exec_allocate(&plan->arena, slots)};
    uint8_t *stored = exec_allocate(&plan->arena, slots);
    uint16_t *number = exec_allocate(&plan->arena, slots * sizeof *number);
    plan->clips = exec_allocate(&plan->arena, (size_t)plan->step_count * EXEC_RANK * sizeof *plan->clips);
    if (plan->arena.failed) return exec_refuse(plan, ENT_CODE_OUT_OF_MEMORY, "out of memory for a plan");
    for (uint32_t i = 0; i < slots; i++) c.parent[i] = i;
    for (uint32_t i = 0; i < plan->step_count; i++) join_step(&c, &plan->steps[i]);
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == EXEC_STORE) look_at_store(&c, &plan->steps[i], stored);
    if (!number_classes(&c, number))
        return exec_refuse(plan, ENT_CODE_UNSUPPORTED, "more than 65535 kinds of tile axes");
    make_clips(&c, stored);
    return ENT_OK;
}
