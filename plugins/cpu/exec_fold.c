/* Folds maps into the nests before them, weighs the steps, and settles the tier by what really runs. */
#include "exec.h"

#include <stdio.h>

static uint32_t only_reader(const exec_plan *plan, uint32_t tile, uint32_t after) {
    if (plan->tiles[tile].readers != 1) return EXEC_NONE;
    for (uint32_t i = after + 1; i < plan->step_count; i++)
        for (uint32_t s = 0; s < plan->steps[i].source_count; s++)
            if (plan->steps[i].source[s] == tile) return i;
    return EXEC_NONE;
}

/* The nest runs at the map's place, so that the map's other operand is there. */
static void fold_nest(exec_plan *plan, uint32_t at) {
    while (plan->steps[at].dst != EXEC_NONE && !plan->steps[at].accumulates) {
        uint32_t next = only_reader(plan, plan->steps[at].dst, at);
        if (next == EXEC_NONE || plan->steps[next].kind != EXEC_MAP || plan->steps[next].depth > 0) return;
        exec_step nest = plan->steps[at];
        const exec_tile *to = &plan->tiles[plan->steps[next].dst];
        if (to->writers != 1 || to->dtype != ENT_DTYPE_F32) return;
        bool folds = nest.kind == EXEC_GEMM ? exec_gemm_fold(plan, &nest, &plan->steps[next])
                                            : exec_window_fold(plan, &nest, &plan->steps[next]);
        if (!folds) return;
        nest.dst = plan->steps[next].dst;
        plan->steps[next] = nest;
        plan->steps[at] = (exec_step){.kind = EXEC_NOTHING, .dst = EXEC_NONE};
        at = next;
    }
}

static bool is_scale_shift(const exec_step *step) {
    return step->kind == EXEC_MAP && step->op->kind == ENT_MAP_SCALE_SHIFT && step->depth == 0;
}

/* A product and then a sum are one multiply-add, which is the only change of rounding that Tile IR allows. */
static void fold_scale(exec_plan *plan, uint32_t at) {
    exec_step *first = &plan->steps[at];
    uint32_t next = only_reader(plan, first->dst, at);
    if (first->op->f[1] != 0 || next == EXEC_NONE || !is_scale_shift(&plan->steps[next])) return;
    exec_step *second = &plan->steps[next];
    if (second->op->f[0] != 1 || plan->tiles[first->dst].writers != 1 ||
        plan->tiles[second->dst].writers != 1)
        return;
    uint32_t source = plan->tiles[first->source[0]].source;
    for (uint32_t i = at + 1; i < next; i++) /* the source must still be there */
        if (plan->steps[i].dst != EXEC_NONE && plan->tiles[plan->steps[i].dst].source == source) return;
    ent_tile_op *both = exec_allocate(&plan->arena, sizeof *both);
    if (!both) return;
    *both = *second->op;
    both->f[0] = first->op->f[0];
    second->op = both;
    second->source[0] = first->source[0];
    *first = (exec_step){.kind = EXEC_NOTHING, .dst = EXEC_NONE};
}

void exec_fold_steps(exec_plan *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (is_scale_shift(&plan->steps[i])) fold_scale(plan, i);
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == EXEC_GEMM || plan->steps[i].kind == EXEC_WINDOW) fold_nest(plan, i);
}

/* ---- tier ---- */

typedef struct weights {
    double total, matrix, scalar;
    bool emulated;
} weights;

/* Rough nanoseconds of a step on one core. Only ratios matter: they choose the tier and whether threads pay.
 */
static double weigh(const exec_plan *plan, const exec_step *step) {
    double elements = step->dst != EXEC_NONE ? (double)exec_elements(&plan->tiles[step->dst]) : 0;
    switch (step->kind) {
    case EXEC_GEMM:
        return exec_nest_flops(plan, step) / 60;
    case EXEC_WINDOW:
        return elements * 0.1 * (double)exec_window_taps(step);
    case EXEC_MULTIPLY:
        return 2 * elements * (double)plan->tiles[step->source[0]].shape[plan->tiles[step->dst].rank - 1] *
               (step->vector ? 0.025 : 2);
    case EXEC_MAP:
        return elements * (step->vector ? 0.3 : 6);
    case EXEC_REDUCE:
        return (double)exec_elements(&plan->tiles[step->source[0]]) * (step->vector ? 0.1 : 4);
    case EXEC_SOFTMAX:
    case EXEC_LAYER_NORM:
        return elements * 1.2;
    case EXEC_STORE:
        return (double)exec_elements(&plan->tiles[step->source[0]]) * 0.1;
    case EXEC_IOTA:
        return elements * 2;
    case EXEC_LOAD:
        return elements * (plan->accesses[step->access].affine ? 0.1 : 0.5);
    default:
        return elements * 0.1;
    }
}

static void add_weight(const exec_plan *plan, const exec_step *step, double times, weights *w) {
    if (!step->run) return;
    double ns = (weigh(plan, step) + 20) * times;
    w->total += ns;
    if (step->kind == EXEC_GEMM || (step->kind == EXEC_MULTIPLY && step->vector)) w->matrix += ns;
    if (!step->vector) w->scalar += ns;
    w->emulated |= step->emulated;
}

static void describe(exec_plan *plan, const char *what) {
    const ent_cpu_kernels *k = plan->kernels;
    if (plan->tier == ENT_TIER_NATIVE && strcmp(what, "gemm8") == 0)
        snprintf(plan->path, sizeof plan->path, "gemm 8-bit %s %s", k->gemm8_name, ent_cpu_isa_name(k->isa));
    else if (plan->tier == ENT_TIER_NATIVE)
        snprintf(plan->path, sizeof plan->path, "gemm %lldx%lld %s", (long long)k->gemm_m,
                 (long long)k->gemm_n, ent_cpu_isa_name(k->isa));
    else
        snprintf(plan->path, sizeof plan->path, "%s%s %s", plan->tier == ENT_TIER_GENERIC ? "scalar " : "",
                 what, ent_cpu_isa_name(k->isa));
}

void exec_settle_tier(exec_plan *plan) {
    weights w = {0, 0, 0, false};
    double times[64] = {1};
    uint32_t depth = 0;
    const char *what = "vector";
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        if (step->kind == EXEC_LOOP) {
            double trips =
                step->end > step->begin ? (double)((step->end - step->begin - 1) / step->op->step + 1) : 0;
            times[depth + 1] = times[depth] * trips;
            depth++;
        } else if (step->kind == EXEC_END) {
            depth--;
        }
        add_weight(plan, step, times[depth], &w);
        if (step->kind == EXEC_GEMM && plan->tiles[step->dst].dtype == ENT_DTYPE_I32) what = "gemm8";
        if (step->kind == EXEC_WINDOW) what = "window";
        if (step->kind == EXEC_SOFTMAX) what = "softmax";
        if (step->kind == EXEC_LAYER_NORM) what = "layer_norm";
    }
    plan->work_ns = w.total * (double)plan->instances;
    plan->tier = w.emulated                 ? ENT_TIER_EMULATED
                 : w.scalar > 0.1 * w.total ? ENT_TIER_GENERIC
                 : w.matrix > 0.3 * w.total ? ENT_TIER_NATIVE
                                            : ENT_TIER_TUNED;
    describe(plan, what);
}
