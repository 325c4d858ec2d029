/* The passes that turn a program's operations into steps. */
#include "exec.h"

#include <stdio.h>

static const exec_kind kinds[] = {
    [ENT_TILE_LOAD] = EXEC_LOAD,    [ENT_TILE_STORE] = EXEC_STORE,     [ENT_TILE_FILL] = EXEC_FILL,
    [ENT_TILE_MMA] = EXEC_MULTIPLY, [ENT_TILE_MAP] = EXEC_MAP,         [ENT_TILE_REDUCE] = EXEC_REDUCE,
    [ENT_TILE_LOOP] = EXEC_LOOP,    [ENT_TILE_END] = EXEC_END,         [ENT_TILE_COPY] = EXEC_LOAD,
    [ENT_TILE_WAIT] = EXEC_NOTHING, [ENT_TILE_RESHAPE] = EXEC_RESHAPE, [ENT_TILE_PERMUTE] = EXEC_PERMUTE,
    [ENT_TILE_IOTA] = EXEC_IOTA,
};

static const exec_step_fn runs[] = {
    [EXEC_LOAD] = exec_load,
    [EXEC_STORE] = exec_store,
    [EXEC_FILL] = exec_fill,
    [EXEC_MULTIPLY] = exec_multiply,
    [EXEC_MAP] = exec_map,
    [EXEC_REDUCE] = exec_reduce,
    [EXEC_RESHAPE] = exec_reshape,
    [EXEC_PERMUTE] = exec_permute,
    [EXEC_IOTA] = exec_iota,
    [EXEC_GEMM] = exec_gemm,
    [EXEC_WINDOW] = exec_window,
    [EXEC_SOFTMAX] = exec_softmax,
    [EXEC_LAYER_NORM] = exec_layer_norm,
};

static void add_gathers(const exec_plan *plan, exec_step *step) {
    const exec_access *access = &plan->accesses[step->access];
    for (uint32_t d = 0; d < access->rank; d++)
        if (access->dims[d].gather != EXEC_NONE) step->source[step->source_count++] = access->dims[d].gather;
}

static void make_step(exec_plan *plan, const ent_tile_op *op, exec_step *step) {
    step->kind = kinds[op->opcode];
    step->op = op;
    step->dst = op->opcode == ENT_TILE_STORE || op->opcode == ENT_TILE_WAIT || op->opcode == ENT_TILE_LOOP ||
                        op->opcode == ENT_TILE_END
                    ? EXEC_NONE
                    : op->dst;
    step->source_count = op->source_count;
    for (uint32_t i = 0; i < op->source_count; i++) step->source[i] = op->source[i];
    step->access = op->access;
    step->accumulates = op->opcode == ENT_TILE_MMA;
    if (step->kind == EXEC_LOAD || step->kind == EXEC_STORE) add_gathers(plan, step);
    if (step->kind == EXEC_LOOP) {
        step->begin = ent_dim_value(op->begin, plan->sizes);
        step->end = ent_dim_value(op->end, plan->sizes);
    }
}

static void make_list(exec_plan *plan) {
    const ent_tile_program *p = &plan->program;
    uint32_t open[64], depth = 0;
    for (uint32_t at = 0; at < p->op_count;) {
        exec_step *step = &plan->steps[plan->step_count];
        uint32_t taken = depth == 0 ? exec_match_gemm(plan, at, step) : 0;
        if (taken == 0 && depth == 0) taken = exec_match_window(plan, at, step);
        if (taken == 0) {
            make_step(plan, &p->ops[at], step);
            taken = 1;
        }
        at += taken;
        if (step->kind == EXEC_END) {
            step->jump = open[--depth];
            plan->steps[step->jump].jump = plan->step_count;
        }
        step->depth = depth;
        if (step->kind == EXEC_LOOP) open[depth++] = plan->step_count;
        plan->step_count++;
    }
}

static void bind(exec_plan *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        exec_step *step = &plan->steps[i];
        step->vector = true;
        if (step->kind < sizeof runs / sizeof runs[0]) step->run = runs[step->kind];
        if (step->kind == EXEC_GEMM && plan->tiles[step->dst].dtype == ENT_DTYPE_I32)
            step->run = exec_gemm_integer;
        if (step->kind == EXEC_MAP) step->vector = exec_bind_map(plan, step);
        if (step->kind == EXEC_REDUCE) step->vector = exec_bind_reduce(plan, step);
        if (step->kind == EXEC_MULTIPLY) step->vector = exec_bind_multiply(plan, step);
    }
}

static size_t align(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

/* Scratch of a thread: the run's tables, then one place for each tile value (its versions share it), then
 * what steps need. */
static void lay_out_scratch(exec_plan *plan) {
    const ent_tile_program *p = &plan->program;
    size_t end = align(plan->tile_count * sizeof(exec_view)) + align(plan->class_count * sizeof(int64_t));
    size_t *place = exec_allocate(&plan->arena, p->value_count * sizeof *place);
    if (!place) return;
    for (uint32_t t = 0; t < plan->tile_count; t++) {
        exec_tile *tile = &plan->tiles[t];
        if (place[tile->source] == 0) {
            place[tile->source] = end;
            end += align((size_t)exec_elements(tile) * tile->element_bytes);
        }
        tile->offset = place[tile->source];
    }
    for (uint32_t i = 0; i < plan->step_count; i++) {
        exec_step *step = &plan->steps[i];
        if (step->kind == EXEC_GEMM) end = exec_gemm_scratch(plan, step, end);
        if (step->kind == EXEC_WINDOW) end = exec_window_scratch(plan, step, end);
        if (step->kind == EXEC_MULTIPLY) end = exec_multiply_scratch(plan, step, end);
        if (step->kind == EXEC_LOAD || step->kind == EXEC_STORE) end = exec_move_scratch(plan, step, end);
    }
    plan->scratch_bytes = align(end) + 64; /* a cache line apart from the next thread's */
}

ent_code exec_make_steps(exec_plan *plan) {
    plan->steps = exec_allocate(&plan->arena, (plan->program.op_count + 1) * sizeof *plan->steps);
    if (!plan->steps) return exec_refuse(plan, ENT_CODE_OUT_OF_MEMORY, "out of memory for a plan");
    make_list(plan);
    ent_code code = exec_make_tiles(plan);
    if (code == ENT_OK) {
        exec_find_rows(plan);
        exec_fold_steps(plan);
        exec_settle_places(plan);
        code = exec_make_classes(plan);
    }
    if (code != ENT_OK) return code;
    bind(plan);
    lay_out_scratch(plan);
    exec_settle_tier(plan);
    return ENT_OK;
}
