/* Finds softmax and layer norm written out as maps and reductions, and runs them by the row kernels. */
#include "exec.h"

#include <math.h>

typedef struct rows_data {
    uint32_t axis;
    float epsilon, scale;
    uint32_t weight, bias; /* tiles of one row, or NONE */
} rows_data;

#define MAX_MEMBERS 12

typedef struct finder {
    exec_plan *plan;
    uint32_t members[MAX_MEMBERS], count; /* steps that the row kernel replaces, ascending */
} finder;

uint32_t exec_rows_mask(const exec_step *step) {
    return 1u << ((const rows_data *)step->data)->axis;
}

/* The next step after the newest member that reads the tile; NONE when it is no top-level step of the kind.
 */
static const exec_step *reader(finder *f, uint32_t tile, exec_kind kind, uint32_t op_kind) {
    const exec_plan *plan = f->plan;
    for (uint32_t i = f->members[f->count - 1] + 1; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        for (uint32_t s = 0; s < step->source_count; s++) {
            if (step->source[s] != tile) continue;
            if (step->kind != kind || step->depth > 0 || step->op->kind != op_kind || f->count == MAX_MEMBERS)
                return NULL;
            f->members[f->count++] = i;
            return step;
        }
    }
    return NULL;
}

static bool has_readers(const exec_plan *plan, uint32_t tile, uint32_t readers) {
    return plan->tiles[tile].readers == readers && plan->tiles[tile].writers == 1;
}

static const exec_step *only_reader(finder *f, uint32_t tile, exec_kind kind, uint32_t op_kind) {
    return has_readers(f->plan, tile, 1) ? reader(f, tile, kind, op_kind) : NULL;
}

/* The one reduced axis with elements, which must be the innermost; NONE otherwise. */
static uint32_t row_axis(const exec_plan *plan, const exec_step *reduce) {
    const exec_tile *tile = &plan->tiles[reduce->source[0]];
    uint32_t inner = EXEC_NONE;
    for (uint32_t a = 0; a < tile->rank; a++) {
        if (tile->shape[a] == 1) continue;
        if (inner != EXEC_NONE && reduce->op->axis_mask >> inner & 1) return EXEC_NONE;
        inner = a;
    }
    return inner != EXEC_NONE && reduce->op->axis_mask >> inner & 1 ? inner : EXEC_NONE;
}

/* Rows of the source must be runs whatever happens: a view of one repeated element is none. */
static bool is_run(const exec_plan *plan, uint32_t tile, uint32_t axis) {
    if (plan->tiles[tile].dtype != ENT_DTYPE_F32) return false;
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].kind == EXEC_LOAD && plan->steps[i].dst == tile)
            if (plan->accesses[plan->steps[i].access].affine &&
                plan->accesses[plan->steps[i].access].strides[axis] != 1)
                return false;
    return true;
}

/* The row kernel runs in place of the last member. Until then nothing may overwrite what it reads, or use
 * what it writes. */
static bool may_move(const finder *f, uint32_t from, uint32_t to) {
    const exec_plan *plan = f->plan;
    for (uint32_t i = f->members[0], m = 0; i < f->members[f->count - 1]; i++) {
        const exec_step *step = &plan->steps[i];
        if (m < f->count && f->members[m] == i) {
            m++;
            continue;
        }
        if (step->kind == EXEC_LOOP || step->kind == EXEC_END) return false;
        if (step->dst == EXEC_NONE) continue;
        uint32_t value = plan->tiles[step->dst].source;
        if (value == plan->tiles[from].source || value == plan->tiles[to].source) return false;
    }
    return true;
}

static void replace(finder *f, exec_kind kind, uint32_t source, uint32_t dst, rows_data *data) {
    exec_plan *plan = f->plan;
    rows_data *kept = exec_allocate(&plan->arena, sizeof *kept);
    if (!kept || !may_move(f, source, dst)) return;
    *kept = *data;
    for (uint32_t m = 0; m < f->count; m++) {
        plan->steps[f->members[m]].kind = EXEC_NOTHING;
        plan->steps[f->members[m]].source_count = 0;
        plan->steps[f->members[m]].dst = EXEC_NONE;
    }
    exec_step *step = &plan->steps[f->members[f->count - 1]];
    step->kind = kind;
    step->dst = dst;
    step->data = kept;
    step->source[step->source_count++] = source;
    if (data->weight != EXEC_NONE) step->source[step->source_count++] = data->weight;
    if (data->bias != EXEC_NONE) step->source[step->source_count++] = data->bias;
}

/* max; x - max; exp; sum; exp / sum */
static void find_softmax(exec_plan *plan, uint32_t at) {
    const exec_step *max = &plan->steps[at];
    finder f = {plan, {at}, 1};
    uint32_t x = max->source[0];
    rows_data data = {row_axis(plan, max), 0, 1, EXEC_NONE, EXEC_NONE};
    if (data.axis == EXEC_NONE || !is_run(plan, x, data.axis)) return;
    const exec_step *shift = only_reader(&f, max->dst, EXEC_MAP, ENT_MAP_SUB);
    if (!shift || shift->source[0] != x) return;
    const exec_step *power = only_reader(&f, shift->dst, EXEC_MAP, ENT_MAP_EXP);
    if (!power || !has_readers(plan, power->dst, 2)) return;
    const exec_step *sum = reader(&f, power->dst, EXEC_REDUCE, ENT_REDUCE_SUM);
    if (!sum || sum->op->axis_mask != max->op->axis_mask) return;
    const exec_step *share = only_reader(&f, sum->dst, EXEC_MAP, ENT_MAP_DIV);
    if (!share || share->source[0] != power->dst || plan->tiles[share->dst].writers != 1) return;
    replace(&f, EXEC_SOFTMAX, x, share->dst, &data);
}

static bool is_mean(const exec_step *scale, int64_t count, bool shifted) {
    return fabs(scale->op->f[0] * (double)count - 1) < 1e-5 &&
           (shifted ? scale->op->f[1] >= 0 : scale->op->f[1] == 0);
}

/* A map of the result with one row that is the same for all: its tile; NONE otherwise. */
static uint32_t row_operand(finder *f, uint32_t *tile, uint32_t map, uint32_t axis) {
    exec_plan *plan = f->plan;
    uint32_t before = f->count;
    const exec_step *step = only_reader(f, *tile, EXEC_MAP, map);
    if (!step) return EXEC_NONE;
    uint32_t other = step->source[0] == *tile ? step->source[1] : step->source[0];
    const exec_tile *row = &plan->tiles[other];
    bool fits = other != *tile && row->shape[axis] == plan->tiles[*tile].shape[axis] &&
                plan->tiles[step->dst].writers == 1 && is_run(plan, other, axis);
    for (uint32_t a = 0; a < row->rank; a++) fits = fits && (a == axis || row->shape[a] == 1);
    if (!fits) {
        f->count = before;
        return EXEC_NONE;
    }
    *tile = step->dst;
    return other;
}

/* mean; x - mean; mean of squares; 1 / sqrt(. + epsilon); product; then perhaps weight and bias */
static void find_layer_norm(exec_plan *plan, uint32_t at) {
    const exec_step *sum = &plan->steps[at];
    finder f = {plan, {at}, 1};
    uint32_t x = sum->source[0];
    rows_data data = {row_axis(plan, sum), 0, 1, EXEC_NONE, EXEC_NONE};
    if (data.axis == EXEC_NONE || !is_run(plan, x, data.axis)) return;
    int64_t count = plan->tiles[x].shape[data.axis];
    const exec_step *mean = only_reader(&f, sum->dst, EXEC_MAP, ENT_MAP_SCALE_SHIFT);
    if (!mean || !is_mean(mean, count, false)) return;
    const exec_step *centred = only_reader(&f, mean->dst, EXEC_MAP, ENT_MAP_SUB);
    if (!centred || centred->source[0] != x || !has_readers(plan, centred->dst, 2)) return;
    const exec_step *square = reader(&f, centred->dst, EXEC_MAP, ENT_MAP_SQUARE);
    if (!square) return;
    const exec_step *squares = only_reader(&f, square->dst, EXEC_REDUCE, ENT_REDUCE_SUM);
    if (!squares || squares->op->axis_mask != sum->op->axis_mask) return;
    const exec_step *variance = only_reader(&f, squares->dst, EXEC_MAP, ENT_MAP_SCALE_SHIFT);
    if (!variance || !is_mean(variance, count, true)) return;
    const exec_step *root = only_reader(&f, variance->dst, EXEC_MAP, ENT_MAP_RSQRT);
    if (!root) return;
    const exec_step *product = only_reader(&f, root->dst, EXEC_MAP, ENT_MAP_MUL);
    if (!product || (product->source[0] != centred->dst && product->source[1] != centred->dst)) return;
    uint32_t y = product->dst;
    if (plan->tiles[y].writers != 1) return;
    data.epsilon = (float)variance->op->f[1];
    data.weight = row_operand(&f, &y, ENT_MAP_MUL, data.axis);
    if (data.weight != EXEC_NONE || plan->tiles[y].readers == 1)
        data.bias = row_operand(&f, &y, ENT_MAP_ADD, data.axis);
    replace(&f, EXEC_LAYER_NORM, x, y, &data);
}

void exec_find_rows(exec_plan *plan) {
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const exec_step *step = &plan->steps[i];
        if (step->kind != EXEC_REDUCE || step->depth > 0) continue;
        if (step->op->kind == ENT_REDUCE_MAX)
            find_softmax(plan, i);
        else if (step->op->kind == ENT_REDUCE_SUM)
            find_layer_norm(plan, i);
    }
}

/* ---- running ---- */

typedef void (*row_fn)(const exec_run *run, const exec_step *step, const float *x, float *y, int64_t n);

static void each_row(exec_run *run, const exec_step *step, row_fn row) {
    const rows_data *d = step->data;
    const exec_tile *tile = &run->plan->tiles[step->dst];
    int64_t position[EXEC_RANK] = {0}, n = exec_extent(run, tile, d->axis);
    exec_place(run, step->dst);
    const exec_view *from = &run->views[step->source[0]], *to = &run->views[step->dst];
    for (;;) {
        const float *x = (const float *)(const void *)from->base;
        float *y = (float *)(void *)to->base;
        for (uint32_t a = 0; a < d->axis; a++) {
            x += from->strides[a] * position[a];
            y += to->strides[a] * position[a];
        }
        row(run, step, x, y, n);
        uint32_t a = d->axis;
        while (a > 0 && ++position[a - 1] == exec_extent(run, tile, a - 1)) position[--a] = 0;
        if (a == 0) return;
    }
}

static void softmax_row(const exec_run *run, const exec_step *step, const float *x, float *y, int64_t n) {
    run->plan->kernels->softmax_row(x, y, n, ((const rows_data *)step->data)->scale);
}

static void layer_norm_row(const exec_run *run, const exec_step *step, const float *x, float *y, int64_t n) {
    const rows_data *d = step->data;
    const float *weight =
        d->weight == EXEC_NONE ? NULL : (const float *)(const void *)run->views[d->weight].base;
    const float *bias = d->bias == EXEC_NONE ? NULL : (const float *)(const void *)run->views[d->bias].base;
    run->plan->kernels->layer_norm_row(x, y, n, weight, bias, d->epsilon);
}

void exec_softmax(exec_run *run, const exec_step *step) {
    each_row(run, step, softmax_row);
}

void exec_layer_norm(exec_run *run, const exec_step *step) {
    each_row(run, step, layer_norm_row);
}
