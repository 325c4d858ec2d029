/* Versions of tiles, and where each may live.
 *
 * A write at top level starts a new version; what a loop writes keeps the version that it had before, since
 * the loop may carry it from one round to the next. */
#include "exec.h"

typedef struct namer {
    exec_plan *plan;
    uint32_t *current; /* program value -> version */
    uint32_t *pinned;  /* open loops that write the value */
} namer;

static void new_version(namer *n, uint32_t value) {
    exec_plan *plan = n->plan;
    const ent_tile_value *from = &plan->program.values[value];
    exec_tile *tile = &plan->tiles[plan->tile_count];
    n->current[value] = plan->tile_count++;
    tile->source = value;
    tile->dtype = from->dtype;
    tile->rank = from->rank;
    tile->element_bytes = ent_dtype_bits((ent_dtype)from->dtype) / 8;
    tile->direct = EXEC_NONE;
    int64_t stride = 1;
    for (uint32_t a = from->rank; a-- > 0;) {
        tile->shape[a] = from->shape[a];
        tile->strides[a] = from->shape[a] == 1 ? 0 : stride;
        stride *= from->shape[a];
    }
}

static uint32_t read_version(namer *n, uint32_t value) {
    if (n->current[value] == EXEC_NONE) new_version(n, value);
    n->plan->tiles[n->current[value]].readers++;
    return n->current[value];
}

static uint32_t write_version(namer *n, uint32_t value, bool accumulates) {
    if (n->current[value] == EXEC_NONE || (n->pinned[value] == 0 && !accumulates)) new_version(n, value);
    n->plan->tiles[n->current[value]].writers++;
    return n->current[value];
}

/* Values written between a LOOP and its END gain or lose a pin. */
static void pin(namer *n, uint32_t loop, uint32_t change) {
    const exec_plan *plan = n->plan;
    for (uint32_t i = loop + 1; i < plan->steps[loop].jump; i++) {
        uint32_t value = plan->steps[i].op ? plan->steps[i].op->dst : EXEC_NONE;
        if (plan->steps[i].kind != EXEC_STORE && plan->steps[i].kind != EXEC_LOOP &&
            plan->steps[i].kind != EXEC_END && plan->steps[i].kind != EXEC_NOTHING && value != EXEC_NONE)
            n->pinned[value] += change;
    }
}

static void name_step(namer *n, uint32_t index) {
    exec_step *step = &n->plan->steps[index];
    if (step->kind == EXEC_LOOP) pin(n, index, 1);
    if (step->kind == EXEC_END) pin(n, step->jump, UINT32_MAX);
    for (uint32_t i = 0; i < step->source_count; i++) step->source[i] = read_version(n, step->source[i]);
    if (step->dst == EXEC_NONE) return;
    if (step->accumulates) read_version(n, step->dst);
    step->dst = write_version(n, step->dst, step->accumulates);
}

ent_code exec_make_tiles(exec_plan *plan) {
    const ent_tile_program *p = &plan->program;
    namer n = {plan, exec_allocate(&plan->arena, p->value_count * sizeof(uint32_t)),
               exec_allocate(&plan->arena, p->value_count * sizeof(uint32_t))};
    plan->tiles =
        exec_allocate(&plan->arena, ((size_t)p->value_count + plan->step_count) * sizeof *plan->tiles);
    if (plan->arena.failed) return exec_refuse(plan, ENT_CODE_OUT_OF_MEMORY, "out of memory for a plan");
    memset(n.current, 0xff, p->value_count * sizeof *n.current);
    for (uint32_t i = 0; i < plan->step_count; i++) name_step(&n, i);
    return ENT_OK;
}

/* ---- places ---- */

static uint32_t inner_axis(const exec_tile *tile) {
    for (uint32_t a = tile->rank; a-- > 0;)
        if (tile->shape[a] > 1) return a;
    return EXEC_NONE;
}

static bool only_stored(const exec_plan *plan, uint32_t tile) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        for (uint32_t s = 0; s < step->source_count; s++)
            if (step->source[s] == tile && (step->kind != EXEC_STORE || s > 0)) return false;
    }
    return true;
}

/* A load may be left where it is when nothing overwrites it and its rows are runs, or one value. */
static bool may_view(const exec_plan *plan, const exec_step *step) {
    const exec_tile *tile = &plan->tiles[step->dst];
    const exec_access *access = &plan->accesses[step->access];
    uint32_t role = plan->program.buffers[access->buffer].role, inner = inner_axis(tile);
    if (!access->affine || tile->writers != 1 || role == ENT_ROLE_OUTPUT || role == ENT_ROLE_SCRATCH)
        return false;
    if (inner == EXEC_NONE || access->strides[inner] == 0 || access->strides[inner] == 1) return true;
    return only_stored(plan, step->dst);
}

/* Only one store goes to the buffer and no load comes from it: the time of the store does not matter. */
static bool stored_once(const exec_plan *plan, uint32_t buffer) {
    uint32_t moves = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        bool move = step->kind == EXEC_LOAD || step->kind == EXEC_STORE;
        moves += move && plan->accesses[step->access].buffer == buffer;
    }
    return moves == 1;
}

/* A tile may be written straight to the buffer of its first store at top level. */
static void settle_direct(exec_plan *plan, const exec_step *store) {
    exec_tile *tile = &plan->tiles[store->source[0]];
    const exec_access *access = &plan->accesses[store->access];
    uint32_t inner = inner_axis(tile);
    if (store->depth > 0 || tile->writers != 1 || tile->direct != EXEC_NONE || !access->affine) return;
    if (inner != EXEC_NONE && access->strides[inner] != 1) return;
    if (!stored_once(plan, access->buffer)) return;
    for (uint32_t a = 0; a < tile->rank; a++)
        if (tile->shape[a] > 1 && access->strides[a] == 0) return;
    tile->direct = store->access;
}

void exec_settle_places(exec_plan *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        if (step->kind == EXEC_LOAD) plan->tiles[step->dst].viewable = may_view(plan, step);
        if (step->kind == EXEC_STORE) settle_direct(plan, step);
    }
    /* Accumulations are read back, and what a loop writes is written many times. */
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        if (step->dst != EXEC_NONE && (step->depth > 0 || step->accumulates))
            plan->tiles[step->dst].direct = EXEC_NONE;
    }
}
