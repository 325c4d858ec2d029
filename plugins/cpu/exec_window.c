/* Windows, channels last: depthwise convolution and pooling as runs of output pixels that share their valid
 * taps. */
#include "exec.h"

#define MAX_TAPS 1024
#define MAX_LOOPS 4

typedef struct window_data {
    exec_access x, w; /* without the loops' terms */
    ent_cpu_window_op op;
    uint32_t rank; /* of the tiles; the last axis is channels */
    int64_t taps;
    int64_t *x_moves; /* [taps][x.rank] */
    int64_t *w_moves; /* [taps]: offset in the weights */
    bool weights;
    uint32_t bias; /* access, or NONE */
    double bias_outside;
    bool clip;
    float lo, hi, scale;
    size_t lists, bias_row; /* places in scratch */
} window_data;

typedef struct match {
    exec_plan *plan;
    const ent_tile_program *p;
    const ent_tile_op *x, *w, *map;
    struct {
        uint32_t variable;
        int64_t begin, step, trips;
    } loops[MAX_LOOPS];
    uint32_t loop_count, used, acc;
    window_data *d;
} match;

static bool find_nest(match *m, uint32_t at) {
    const ent_tile_program *p = m->p;
    uint32_t start = at;
    for (; at < p->op_count && p->ops[at].opcode == ENT_TILE_LOOP; at++) {
        const ent_tile_op *op = &p->ops[at];
        int64_t begin = ent_dim_value(op->begin, m->plan->sizes),
                end = ent_dim_value(op->end, m->plan->sizes);
        if (m->loop_count == MAX_LOOPS || begin >= end) return false;
        m->loops[m->loop_count].variable = op->variable;
        m->loops[m->loop_count].begin = begin;
        m->loops[m->loop_count].step = op->step;
        m->loops[m->loop_count++].trips = (end - begin - 1) / op->step + 1;
    }
    if (m->loop_count == 0 || at + 2 >= p->op_count || p->ops[at].opcode != ENT_TILE_LOAD) return false;
    m->x = &p->ops[at++];
    if (p->ops[at].opcode == ENT_TILE_LOAD) m->w = &p->ops[at++];
    if (at + m->loop_count >= p->op_count || p->ops[at].opcode != ENT_TILE_MAP) return false;
    m->map = &p->ops[at++];
    for (uint32_t i = 0; i < m->loop_count; i++, at++)
        if (p->ops[at].opcode != ENT_TILE_END) return false;
    m->used = at - start;
    return true;
}

/* acc = x * w + acc, max(acc, x) or acc + x, with x (and w) used nowhere else. */
static bool read_map(match *m) {
    const ent_tile_op *op = m->map;
    uint32_t x = m->x->dst, acc = op->dst, touches = 0;
    m->acc = acc;
    if (op->kind == ENT_MAP_FMA) {
        if (!m->w || op->source[2] != acc) return false;
        if (op->source[0] != x) { /* the factors may come in either order */
            const ent_tile_op *swap = m->x;
            m->x = m->w;
            m->w = swap;
            x = m->x->dst;
        }
        if (op->source[0] != x || op->source[1] != m->w->dst) return false;
        m->d->op = ENT_CPU_WINDOW_DEPTHWISE;
    } else if (op->kind == ENT_MAP_MAX || op->kind == ENT_MAP_ADD) {
        if (m->w ||
            !((op->source[0] == acc && op->source[1] == x) || (op->source[1] == acc && op->source[0] == x)))
            return false;
        m->d->op = op->kind == ENT_MAP_MAX ? ENT_CPU_WINDOW_MAX : ENT_CPU_WINDOW_SUM;
    } else
        return false;
    for (uint32_t i = 0; i < m->p->op_count; i++)
        for (uint32_t s = 0; s < m->p->ops[i].source_count; s++) {
            touches += m->p->ops[i].source[s] == x;
            touches += m->w && m->p->ops[i].source[s] == m->w->dst;
        }
    return touches == (m->w ? 2u : 1u) && x != acc && (!m->w || (m->w->dst != acc && m->w->dst != x));
}

static bool is_shaped_alike(const match *m) {
    const ent_tile_value *x = &m->p->values[m->x->dst], *acc = &m->p->values[m->acc];
    if (acc->dtype != ENT_DTYPE_F32 || acc->shape[acc->rank - 1] == 1) return false;
    for (uint32_t a = 0; a < acc->rank; a++)
        if (x->shape[a] != acc->shape[a] ||
            (m->w && a + 1 < acc->rank && m->p->values[m->w->dst].shape[a] != 1))
            return false;
    return !m->w || m->p->values[m->w->dst].shape[acc->rank - 1] == acc->shape[acc->rank - 1];
}

/* The only dim that advances the axis, its coordinates never negative; NONE: there is none such. */
static uint32_t channel_dim(const exec_access *access, uint32_t axis) {
    uint32_t found = EXEC_NONE;
    for (uint32_t i = 0; i < access->rank; i++) {
        if (access->dims[i].axis != axis) continue;
        if (found != EXEC_NONE || access->dims[i].base < 0) return EXEC_NONE;
        for (uint32_t t = 0; t < access->dims[i].term_count; t++)
            if (access->dims[i].terms[t].coefficient < 0) return EXEC_NONE;
        found = i;
    }
    return found;
}

/* Channels are contiguous, and the taps do not move along them. */
static bool are_runs(const match *m) {
    const window_data *d = m->d;
    uint32_t last = d->rank - 1;
    double outside = d->op == ENT_CPU_WINDOW_MAX ? -__builtin_inf() : 0;
    if (!d->x.affine || d->x.strides[last] != 1 || m->x->f[0] != outside) return false;
    if (m->w && (!d->w.affine || d->w.strides[last] != 1)) return false;
    if (channel_dim(&d->x, last) == EXEC_NONE || (m->w && channel_dim(&d->w, last) == EXEC_NONE))
        return false;
    for (uint32_t i = 0; i < d->x.rank; i++) {
        const exec_dim *dim = &d->x.dims[i];
        if (dim->step < 0 || (dim->axis == last && dim->step != 1)) return false;
        for (uint32_t t = 0; t < dim->term_count; t++)
            if (dim->axis == last && dim->terms[t].variable >= m->p->grid_count) return false;
    }
    for (uint32_t i = 0; m->w && i < d->w.rank; i++) {
        const exec_dim *dim = &d->w.dims[i];
        int64_t most = dim->base;
        for (uint32_t t = 0; t < dim->term_count; t++) {
            if (dim->terms[t].coefficient < 0) return false;
            for (uint32_t l = 0; l < m->loop_count; l++)
                if (m->loops[l].variable == dim->terms[t].variable)
                    most += dim->terms[t].coefficient *
                            (m->loops[l].begin + (m->loops[l].trips - 1) * m->loops[l].step);
            if (dim->axis != last && dim->terms[t].variable < m->p->grid_count) return false;
        }
        if (dim->axis != last && (dim->base < 0 || most >= dim->limit)) return false;
    }
    return true;
}

static int64_t move_of(const match *m, const exec_dim *dim, int64_t tap) {
    int64_t move = 0;
    for (uint32_t l = m->loop_count; l-- > 0;) {
        int64_t value = m->loops[l].begin + tap % m->loops[l].trips * m->loops[l].step;
        tap /= m->loops[l].trips;
        for (uint32_t t = 0; t < dim->term_count; t++)
            if (dim->terms[t].variable == m->loops[l].variable) move += dim->terms[t].coefficient * value;
    }
    return move;
}

static void drop_loop_terms(const match *m, exec_access *access) {
    for (uint32_t i = 0; i < access->rank; i++) {
        exec_dim *dim = &access->dims[i];
        uint32_t kept = 0;
        for (uint32_t t = 0; t < dim->term_count; t++)
            if (dim->terms[t].variable < m->p->grid_count) dim->terms[kept++] = dim->terms[t];
        dim->term_count = kept;
    }
}

static bool list_taps(match *m) {
    window_data *d = m->d;
    d->taps = 1;
    for (uint32_t l = 0; l < m->loop_count; l++) {
        if (m->loops[l].trips > MAX_TAPS / d->taps) return false;
        d->taps *= m->loops[l].trips;
    }
    d->x_moves = exec_allocate(&m->plan->arena, (size_t)(d->taps * d->x.rank) * sizeof(int64_t));
    d->w_moves = exec_allocate(&m->plan->arena, (size_t)d->taps * sizeof(int64_t));
    if (!d->x_moves || !d->w_moves) return false;
    for (int64_t tap = 0; tap < d->taps; tap++) {
        for (uint32_t i = 0; i < d->x.rank; i++)
            d->x_moves[tap * d->x.rank + i] = move_of(m, &d->x.dims[i], tap);
        for (uint32_t i = 0; m->w && i < d->w.rank; i++)
            d->w_moves[tap] += move_of(m, &d->w.dims[i], tap) * d->w.dims[i].stride;
    }
    drop_loop_terms(m, &d->x);
    drop_loop_terms(m, &d->w);
    return true;
}

/* The neutral element, or for a depthwise convolution one row of bias. */
static bool read_start(match *m, const ent_tile_op *op) {
    const ent_tile_value *acc = &m->p->values[m->acc];
    double neutral = m->d->op == ENT_CPU_WINDOW_MAX ? -__builtin_inf() : 0;
    if (op->dst != m->acc) return false;
    if (op->opcode == ENT_TILE_FILL) return op->f[0] == neutral;
    if (op->opcode != ENT_TILE_LOAD || m->d->op != ENT_CPU_WINDOW_DEPTHWISE) return false;
    const exec_access *access = &m->plan->accesses[op->access];
    if (!access->affine || access->strides[acc->rank - 1] != 1) return false;
    for (uint32_t i = 0; i < access->rank; i++)
        if (access->dims[i].axis != EXEC_NONE && access->dims[i].axis + 1 < acc->rank &&
            acc->shape[access->dims[i].axis] > 1)
            return false;
    m->d->bias = op->access;
    m->d->bias_outside = op->f[0];
    return true;
}

uint32_t exec_match_window(exec_plan *plan, uint32_t at, exec_step *step) {
    const ent_tile_op *first = &plan->program.ops[at];
    window_data d = {.bias = EXEC_NONE, .scale = 1};
    match m = {.plan = plan, .p = &plan->program, .d = &d};
    if ((first->opcode != ENT_TILE_FILL && first->opcode != ENT_TILE_LOAD) || !find_nest(&m, at + 1))
        return 0;
    if (!read_map(&m) || !is_shaped_alike(&m) || !read_start(&m, first)) return 0;
    d.rank = m.p->values[m.acc].rank;
    d.weights = m.w != NULL;
    d.x = plan->accesses[m.x->access];
    if (m.w) d.w = plan->accesses[m.w->access];
    if (!are_runs(&m) || !list_taps(&m)) return 0;
    memset(step, 0, sizeof *step);
    window_data *kept = exec_allocate(&plan->arena, sizeof *kept);
    if (!kept) return 0;
    *kept = d;
    step->kind = EXEC_WINDOW;
    step->dst = m.acc;
    step->data = kept;
    return m.used + 1;
}

bool exec_window_fold(exec_plan *plan, exec_step *nest, const exec_step *step) {
    window_data *d = nest->data;
    const ent_tile_op *op = step->op;
    (void)plan;
    if (op->kind == ENT_MAP_RELU || op->kind == ENT_MAP_CLIP) {
        if (d->clip) return false;
        d->clip = true;
        d->lo = op->kind == ENT_MAP_RELU ? 0 : (float)op->f[0];
        d->hi = op->kind == ENT_MAP_RELU ? __builtin_inff() : (float)op->f[1];
        return true;
    }
    if (op->kind != ENT_MAP_SCALE_SHIFT || d->op != ENT_CPU_WINDOW_SUM || d->clip || d->scale != 1 ||
        op->f[1] != 0)
        return false;
    d->scale = (float)op->f[0];
    return true;
}

size_t exec_window_scratch(exec_plan *plan, exec_step *nest, size_t offset) {
    window_data *d = nest->data;
    const exec_tile *acc = &plan->tiles[nest->dst];
    d->lists = offset; /* two pointers and two bounds a tap, three marks */
    offset += (size_t)d->taps * (2 * sizeof(void *) + 3 * sizeof(int64_t)) + 64;
    d->bias_row = offset = (offset + 63) & ~(size_t)63;
    return (offset + (size_t)acc->shape[d->rank - 1] * sizeof(float) + 63) & ~(size_t)63;
}

int64_t exec_window_taps(const exec_step *nest) {
    return ((const window_data *)nest->data)->taps;
}

/* ---- running ---- */

typedef struct work {
    exec_run *run;
    const window_data *d;
    int64_t extent[EXEC_RANK], x_start[ENT_MAX_RANK];
    const float *x, *weights;
    const float **in, **w; /* of the taps of one call */
    int64_t *lo, *hi;      /* pixels of the run axis at which a tap is inside */
    int64_t *offset;
    uint32_t pixel; /* the run axis; rank - 1 when there is none */
} work;

static const float *bias_of(const work *w) {
    const exec_access *access = &w->run->plan->accesses[w->d->bias];
    int64_t channels = w->extent[w->d->rank - 1], offset = 0, first = 0, end = channels;
    for (uint32_t i = 0; i < access->rank; i++) {
        const exec_dim *dim = &access->dims[i];
        int64_t start = exec_dim_start(w->run, dim), lo, hi;
        offset += start * dim->stride;
        exec_interval(start, dim->axis == w->d->rank - 1 ? dim->step : 0, dim->limit, channels, &lo, &hi);
        if (lo > first) first = lo;
        if (hi < end) end = hi;
    }
    const float *bias = (const float *)w->run->buffers[access->buffer];
    if (first == 0 && end == channels) return bias + offset;
    float *made = (float *)(void *)(w->run->scratch + w->d->bias_row);
    for (int64_t i = 0; i < channels; i++)
        made[i] = i >= first && i < end ? bias[offset + i] : (float)w->d->bias_outside;
    return made;
}

/* The pixels at which each tap is inside, for one position of the other axes. */
static void bound_taps(work *w, const int64_t *position) {
    const window_data *d = w->d;
    for (int64_t tap = 0; tap < d->taps; tap++) {
        const int64_t *moves = d->x_moves + tap * d->x.rank;
        int64_t lo = 0, hi = w->extent[w->pixel], offset = 0;
        if (w->pixel == d->rank - 1) hi = 1;
        for (uint32_t i = 0; i < d->x.rank; i++) {
            const exec_dim *dim = &d->x.dims[i];
            int64_t at = w->x_start[i] + moves[i], first, end;
            if (dim->axis != EXEC_NONE && dim->axis != w->pixel && dim->axis != d->rank - 1)
                at += dim->step * position[dim->axis];
            offset += at * dim->stride;
            if (dim->axis == d->rank - 1) continue;
            exec_interval(at, dim->axis == w->pixel ? dim->step : 0, dim->limit, hi > 0 ? hi : 1, &first,
                          &end);
            if (first > lo) lo = first;
            if (end < hi) hi = end;
        }
        w->lo[tap] = lo;
        w->hi[tap] = hi > lo ? hi : lo;
        w->offset[tap] = offset;
    }
}

/* The end of the run that starts at `from`: until a tap comes in or goes out. */
static int64_t run_end(const work *w, int64_t from, int64_t end) {
    for (int64_t tap = 0; tap < w->d->taps; tap++) {
        if (w->lo[tap] > from && w->lo[tap] < end && w->hi[tap] > w->lo[tap]) end = w->lo[tap];
        if (w->lo[tap] <= from && w->hi[tap] > from && w->hi[tap] < end) end = w->hi[tap];
    }
    return end;
}

/* Channels that no tap reaches: the start value alone. */
static void fill_empty(const ent_cpu_window *call, int64_t first, int64_t end) {
    for (int64_t p = 0; p < call->width; p++)
        for (int64_t c = first; c < end; c++) {
            float x = call->op == ENT_CPU_WINDOW_MAX ? -__builtin_inff() : call->bias ? call->bias[c] : 0;
            if (call->clip && x < call->lo) x = call->lo;
            if (call->clip && x > call->hi) x = call->hi;
            call->out[p * call->out_stride + c] = x;
        }
}

/* Channels that lie inside an operand from its instance's first one on. */
static int64_t channels_inside(const work *w, const exec_access *access, int64_t count) {
    const exec_dim *dim = &access->dims[channel_dim(access, w->d->rank - 1)];
    int64_t room = dim->limit - exec_dim_start(w->run, dim);
    return room < count ? (room < 0 ? 0 : room) : count;
}

static void run_pixels(work *w, ent_cpu_window *call, float *out) {
    const window_data *d = w->d;
    int64_t width = w->pixel == d->rank - 1 ? 1 : w->extent[w->pixel];
    for (int64_t from = 0, end; from < width; from = end) {
        end = run_end(w, from, width);
        call->taps = 0;
        for (int64_t tap = 0; tap < d->taps; tap++) {
            if (w->lo[tap] > from || w->hi[tap] <= from) continue;
            w->in[call->taps] = w->x + w->offset[tap] + from * call->in_stride;
            if (d->weights) w->w[call->taps] = w->weights + d->w_moves[tap];
            call->taps++;
        }
        call->width = end - from;
        call->out = out + from * call->out_stride;
        if (call->channels > 0 && (call->taps > 0 || d->op != ENT_CPU_WINDOW_MAX)) {
            w->run->plan->kernels->window(call);
            continue;
        }
        fill_empty(call, 0, call->channels);
    }
    call->out = out;
    call->width = width;
    fill_empty(call, call->channels, w->extent[d->rank - 1]);
}

static void start(exec_run *run, const exec_step *step, work *w) {
    const window_data *d = w->d;
    const exec_tile *acc = &run->plan->tiles[step->dst];
    w->run = run;
    for (uint32_t a = 0; a < d->rank; a++) w->extent[a] = exec_extent(run, acc, a);
    for (uint32_t i = 0; i < d->x.rank; i++) w->x_start[i] = exec_dim_start(run, &d->x.dims[i]);
    w->x = run->buffers[d->x.buffer];
    char *room = run->scratch + d->lists;
    w->in = (const float **)(void *)room;
    w->w = w->in + d->taps;
    w->lo = (int64_t *)(void *)(w->w + d->taps);
    w->hi = w->lo + d->taps;
    w->offset = w->hi + d->taps;
    w->pixel = d->rank - 1;
    for (uint32_t a = d->rank - 1; a-- > 0 && w->pixel == d->rank - 1;)
        if (w->extent[a] > 1) w->pixel = a;
    if (!d->weights) return;
    int64_t offset = 0;
    for (uint32_t i = 0; i < d->w.rank; i++)
        offset += exec_dim_start(run, &d->w.dims[i]) * d->w.dims[i].stride;
    w->weights = (const float *)run->buffers[d->w.buffer] + offset;
}

void exec_window(exec_run *run, const exec_step *step) {
    work w = {.d = step->data};
    const window_data *d = w.d;
    int64_t position[EXEC_RANK] = {0};
    exec_place(run, step->dst);
    start(run, step, &w);
    const exec_view *view = &run->views[step->dst];
    ent_cpu_window call = {
        .op = d->op, .channels = w.extent[d->rank - 1], .in = w.in, .weights = w.w, .scale = d->scale};
    call.in_stride = w.pixel == d->rank - 1 ? 0 : d->x.strides[w.pixel];
    call.out_stride = w.pixel == d->rank - 1 ? 0 : view->strides[w.pixel];
    if (d->bias != EXEC_NONE) call.bias = bias_of(&w);
    call.channels = channels_inside(&w, &d->x, call.channels);
    if (d->weights) call.channels = channels_inside(&w, &d->w, call.channels);
    call.clip = d->clip;
    call.lo = d->lo;
    call.hi = d->hi;
    for (;;) {
        float *out = (float *)(void *)view->base;
        for (uint32_t a = 0; a + 1 < d->rank; a++)
            if (a != w.pixel) out += view->strides[a] * position[a];
        bound_taps(&w, position);
        run_pixels(&w, &call, out);
        uint32_t a = d->rank - 1;
        while (a > 0 && (a - 1 == w.pixel || ++position[a - 1] == w.extent[a - 1])) position[--a] = 0;
        if (a == 0) return;
    }
}
