/* Running a plan: instances over the pool, steps of an instance. */
#include "exec.h"

/* Below this much work a second thread costs more than it saves. */
#define PARALLEL_NS 6000.0

typedef struct exec_job {
    const exec_plan *plan;
    void *const *buffers;
    char *scratch;
} exec_job;

static size_t align(size_t bytes) {
    return (bytes + 63) & ~(size_t)63;
}

static void start(const exec_job *job, int thread, exec_run *run) {
    const exec_plan *plan = job->plan;
    run->plan = plan;
    run->buffers = job->buffers;
    run->scratch = job->scratch + (size_t)thread * plan->scratch_bytes;
    run->views = (exec_view *)(void *)run->scratch;
    run->extents = (int64_t *)(void *)(run->scratch + align(plan->tile_count * sizeof(exec_view)));
    run->packed_b = NULL;
    run->tables_made = 0;
    memcpy(run->extents, plan->extents, plan->class_count * sizeof *run->extents);
}

/* Grid variables of an instance; the last axis runs fastest. */
static void seek(exec_run *run, int64_t instance) {
    const exec_plan *plan = run->plan;
    for (uint32_t g = plan->program.grid_count; g-- > 0;) {
        run->variables[g] = instance % plan->grid[g] * plan->program.grid[g].step;
        instance /= plan->grid[g];
    }
}

static void advance(exec_run *run) {
    const exec_plan *plan = run->plan;
    for (uint32_t g = plan->program.grid_count; g-- > 0;) {
        int64_t step = plan->program.grid[g].step;
        run->variables[g] += step;
        if (run->variables[g] < plan->grid[g] * step) return;
        run->variables[g] = 0;
    }
}

/* How far the instance's tiles reach into what is stored. At least 1: kernels want something to do. */
static void clip(exec_run *run) {
    const exec_plan *plan = run->plan;
    for (uint32_t i = 0; i < plan->clip_count; i++) run->extents[plan->clips[i].axis_class] = 1;
    for (uint32_t i = 0; i < plan->clip_count; i++) {
        const exec_clip *c = &plan->clips[i];
        const exec_access *access = &plan->accesses[c->access];
        int64_t end = plan->extents[c->axis_class];
        for (uint32_t d = 0; d < access->rank; d++) {
            const exec_dim *dim = &access->dims[d];
            if (dim->axis != c->axis) continue;
            int64_t start = exec_dim_start(run, dim), last = dim->limit - 1 - start;
            if (last < 0)
                end = 0;
            else if (last / dim->step + 1 < end)
                end = last / dim->step + 1;
        }
        if (end > run->extents[c->axis_class]) run->extents[c->axis_class] = end;
    }
}

static void run_steps(exec_run *run) {
    const exec_plan *plan = run->plan;
    for (uint32_t at = 0; at < plan->step_count; at++) {
        const exec_step *step = &plan->steps[at];
        if (step->run) {
            step->run(run, step);
        } else if (step->kind == EXEC_LOOP) {
            run->variables[step->op->variable] = step->begin;
            if (step->begin >= step->end) at = step->jump;
        } else if (step->kind == EXEC_END) {
            const exec_step *loop = &plan->steps[step->jump];
            int64_t *variable = &run->variables[loop->op->variable];
            if (loop->end - *variable > loop->op->step) {
                *variable += loop->op->step;
                at = step->jump;
            }
        }
    }
}

static void run_chunk(void *context, int64_t begin, int64_t end, int thread) {
    exec_run run;
    start(context, thread, &run);
    seek(&run, begin);
    for (int64_t i = begin; i < end; i++) {
        if (run.plan->clip_count) clip(&run);
        run_steps(&run);
        advance(&run);
    }
}

void exec_plan_run(const exec_plan *plan, ent_cpu_pool *pool, char *scratch, void *const *buffers) {
    exec_job job = {plan, buffers, scratch};
    if (plan->instances == 0) return;
    if (plan->instances == 1 || !pool || plan->work_ns < PARALLEL_NS || ent_cpu_pool_threads(pool) == 1)
        run_chunk(&job, 0, plan->instances, 0);
    else
        ent_cpu_pool_run(pool, plan->instances, run_chunk, &job);
}
