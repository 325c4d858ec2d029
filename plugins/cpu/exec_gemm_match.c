/* Finds LOOPs around LOAD a, LOAD b, MMA, and decides how the operands reach the kernel. */
#include "exec_gemm.h"

#define MAX_BATCHES 65536
#define FEW_CHANNELS 16 /* below this many, taps side by side are one run of k */

typedef struct match {
    exec_plan *plan;
    const ent_tile_program *p;
    const ent_tile_op *a, *b, *mma;
    gemm_data *g;
    uint32_t used; /* ops, without the initialisation */
} match;

static const ent_tile_op *op_at(const ent_tile_program *p, uint32_t at) {
    return at < p->op_count ? &p->ops[at] : NULL;
}

/* What lies outside must add nothing to the product. */
static bool is_load_of(const ent_tile_op *op, uint32_t tile, double zero) {
    return op && (op->opcode == ENT_TILE_LOAD) && op->dst == tile && op->f[0] == zero;
}

/* Nothing but the multiply looks at the operand's tile. */
static bool is_private(const ent_tile_program *p, uint32_t tile) {
    uint32_t touches = 0;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const ent_tile_op *op = &p->ops[i];
        bool writes = op->opcode != ENT_TILE_STORE && op->opcode != ENT_TILE_LOOP &&
                      op->opcode != ENT_TILE_END && op->opcode != ENT_TILE_WAIT;
        touches += writes && op->dst == tile;
        for (uint32_t s = 0; s < op->source_count; s++) touches += op->source[s] == tile;
    }
    for (uint32_t i = 0; i < p->access_count; i++)
        for (uint32_t d = 0; d < p->accesses[i].rank; d++) touches += p->accesses[i].index[d].gather == tile;
    return touches == 2;
}

static bool find_nest(match *m, uint32_t at) {
    const ent_tile_program *p = m->p;
    uint32_t start = at;
    m->g->loop_count = 0;
    for (; op_at(p, at) && p->ops[at].opcode == ENT_TILE_LOOP; at++) {
        const ent_tile_op *op = &p->ops[at];
        int64_t begin = ent_dim_value(op->begin, m->plan->sizes),
                end = ent_dim_value(op->end, m->plan->sizes);
        if (m->g->loop_count == GEMM_MAX_LOOPS || begin >= end) return false;
        m->g->loops[m->g->loop_count++] =
            (gemm_loop){op->variable, begin, op->step, (end - begin - 1) / op->step + 1};
    }
    m->mma = op_at(p, at + 2);
    if (!m->mma || m->mma->opcode != ENT_TILE_MMA) return false;
    uint32_t a = m->mma->source[0], b = m->mma->source[1], dst = m->mma->dst;
    uint32_t swap = is_load_of(op_at(p, at), b, 0);
    m->a = op_at(p, at + swap);
    m->b = op_at(p, at + !swap);
    if (a == b || !is_load_of(m->a, a, m->mma->f[0]) || !is_load_of(m->b, b, 0) || !is_private(p, a) ||
        !is_private(p, b))
        return false;
    m->g->integer = p->values[dst].dtype == ENT_DTYPE_I32; /* the verifier allows bytes only */
    if (!m->g->integer && (p->values[dst].dtype != ENT_DTYPE_F32 || p->values[a].dtype != ENT_DTYPE_F32))
        return false;
    m->g->a_signed = p->values[a].dtype == ENT_DTYPE_I8;
    m->g->b_signed = p->values[b].dtype == ENT_DTYPE_I8;
    m->g->a_zero = (int32_t)m->mma->f[0];
    m->g->b_zero = (int32_t)m->mma->f[1];
    for (uint32_t i = 0; i < m->g->loop_count; i++)
        if (!op_at(p, at + 3 + i) || p->ops[at + 3 + i].opcode != ENT_TILE_END) return false;
    m->used = at + 3 + m->g->loop_count - start;
    return true;
}

/* ---- operands ---- */

/* The dim that a tile axis advances; false when there are several, or it does not step by one coordinate at a
 * time. */
static bool dim_of_axis(const exec_access *access, uint32_t axis, bool unit, uint32_t *out) {
    *out = EXEC_NONE;
    for (uint32_t d = 0; d < access->rank; d++) {
        if (access->dims[d].axis != axis) continue;
        if (*out != EXEC_NONE || (unit && access->dims[d].step != 1)) return false;
        *out = d;
    }
    return true;
}

static bool is_plain_dim(const exec_dim *dim) {
    return dim->divisor == 1 && dim->gather == EXEC_NONE;
}

static int64_t last_of_variable(const match *m, uint32_t variable, int64_t *out_first) {
    *out_first = 0;
    if (variable < m->p->grid_count) return (m->plan->grid[variable] - 1) * m->p->grid[variable].step;
    for (uint32_t i = 0; i < m->g->loop_count; i++)
        if (m->g->loops[i].variable == variable) {
            *out_first = m->g->loops[i].begin;
            return m->g->loops[i].begin + (m->g->loops[i].trips - 1) * m->g->loops[i].step;
        }
    return 0;
}

static void range_of(const match *m, const exec_dim *dim, int64_t *out_least, int64_t *out_most) {
    *out_least = *out_most = dim->base;
    for (uint32_t t = 0; t < dim->term_count; t++) {
        int64_t first, last = last_of_variable(m, dim->terms[t].variable, &first),
                       c = dim->terms[t].coefficient;
        *out_least += c > 0 ? c * first : c * last;
        *out_most += c > 0 ? c * last : c * first;
    }
}

static bool read_operands(match *m) {
    gemm_data *g = m->g;
    const ent_tile_value *a = &m->p->values[m->mma->source[0]], *b = &m->p->values[m->mma->source[1]];
    uint32_t n_axis = m->mma->flags & ENT_TILE_TRANSPOSE_B ? 0 : 1;
    g->a = m->plan->accesses[m->a->access];
    g->b = m->plan->accesses[m->b->access];
    g->m_axes = a->rank - 1;
    g->k = a->shape[a->rank - 1];
    if (!g->a.affine) return false;
    for (uint32_t i = 0; i < g->b.rank; i++)
        if (!is_plain_dim(&g->b.dims[i])) return false;
    for (uint32_t i = 0; i < g->m_axes; i++) {
        uint32_t d;
        if (!dim_of_axis(&g->a, i, false, &d) || (d != EXEC_NONE && g->a.dims[d].step < 0)) return false;
    }
    if (!dim_of_axis(&g->a, a->rank - 1, true, &g->a_k) || !dim_of_axis(&g->b, 1 - n_axis, true, &g->b_k) ||
        !dim_of_axis(&g->b, n_axis, true, &g->b_n))
        return false;
    if (g->k > 1 && (g->a_k == EXEC_NONE || g->b_k == EXEC_NONE)) return false;
    return b->shape[n_axis] == 1 || g->b_n != EXEC_NONE;
}

static uint32_t find_term(const exec_dim *dim, uint32_t variable) {
    for (uint32_t t = 0; t < dim->term_count; t++)
        if (dim->terms[t].variable == variable) return t;
    return EXEC_NONE;
}

static bool only_dim_with(const exec_access *access, uint32_t variable, uint32_t dim) {
    for (uint32_t d = 0; d < access->rank; d++)
        if ((find_term(&access->dims[d], variable) != EXEC_NONE) != (d == dim)) return false;
    return true;
}

static void drop_term(exec_dim *dim, uint32_t term) {
    dim->terms[term] = dim->terms[--dim->term_count];
}

static void drop_loop(gemm_data *g, uint32_t loop) {
    for (uint32_t i = loop; i + 1 < g->loop_count; i++) g->loops[i] = g->loops[i + 1];
    g->loop_count--;
}

static bool is_single_unit_term(const exec_dim *dim, uint32_t variable) {
    return dim->base == 0 && dim->term_count == 1 && dim->terms[0].variable == variable &&
           dim->terms[0].coefficient == 1;
}

/* Blocks of k that follow each other are one k: the kernel blocks by itself. */
static void merge_k_loop(match *m) {
    gemm_data *g = m->g;
    if (g->a_k == EXEC_NONE || g->b_k == EXEC_NONE) return;
    exec_dim *a = &g->a.dims[g->a_k], *b = &g->b.dims[g->b_k];
    for (uint32_t i = 0; i < g->loop_count; i++) {
        const gemm_loop *loop = &g->loops[i];
        if (!is_single_unit_term(a, loop->variable) || !is_single_unit_term(b, loop->variable)) continue;
        if (loop->begin != 0 || loop->step != g->k || a->limit != b->limit) continue;
        if (!only_dim_with(&g->a, loop->variable, g->a_k) || !only_dim_with(&g->b, loop->variable, g->b_k))
            continue;
        int64_t covered = loop->trips * g->k;
        g->k = covered < a->limit ? covered : a->limit;
        drop_term(a, 0);
        drop_term(b, 0);
        drop_loop(g, i);
        return;
    }
}

/* Where both operands end together inside the block, k ends there. B must be inside for all of k. */
static bool settle_k(match *m) {
    gemm_data *g = m->g;
    int64_t least, most;
    if (g->b_k == EXEC_NONE) return true;
    exec_dim *b = &g->b.dims[g->b_k];
    if (g->a_k != EXEC_NONE) {
        const exec_dim *a = &g->a.dims[g->a_k];
        bool fixed = a->base == 0 && a->term_count == 0 && b->base == 0 && b->term_count == 0;
        if (fixed && a->limit == b->limit && b->limit < g->k) g->k = b->limit;
    }
    range_of(m, b, &least, &most);
    return g->k > 0 && least >= 0 && most + g->k <= b->limit;
}

static bool in_whole_panels(const match *m, const exec_dim *dim) {
    if (dim->base % ENT_CPU_PANEL != 0) return false;
    for (uint32_t t = 0; t < dim->term_count; t++) {
        uint32_t v = dim->terms[t].variable;
        if (v >= m->p->grid_count || dim->terms[t].coefficient * m->p->grid[v].step % ENT_CPU_PANEL != 0)
            return false;
    }
    return true;
}

static bool choose_b_form(match *m) {
    gemm_data *g = m->g;
    const exec_dim *k = g->b_k == EXEC_NONE ? NULL : &g->b.dims[g->b_k],
                   *n = g->b_n == EXEC_NONE ? NULL : &g->b.dims[g->b_n];
    int64_t least, most;
    for (uint32_t d = 0; d < g->b.rank; d++)
        if (g->b.dims[d].block != 1 && d != g->b_n) return false;
    if (n) {
        range_of(m, n, &least, &most);
        if (least < 0) return false;
        for (uint32_t t = 0; t < n->term_count; t++)
            if (n->terms[t].variable >= m->p->grid_count) return false;
    }
    if (n && n->block != 1) {
        g->b_form = GEMM_B_PANELS;
        return n->block == ENT_CPU_PANEL && n->block_stride == 1 && (!k || k->stride == ENT_CPU_PANEL) &&
               in_whole_panels(m, n);
    }
    g->b_form = !n || n->stride == 1 ? GEMM_B_ROWS : GEMM_B_PACK;
    return g->b_form == GEMM_B_ROWS || !k || k->stride == 1;
}

/* ---- taps side by side ---- */

static int64_t stride_of_term(const exec_access *access, uint32_t variable, bool *out_clean) {
    int64_t stride = 0;
    for (uint32_t d = 0; d < access->rank; d++) {
        uint32_t t = find_term(&access->dims[d], variable);
        if (t == EXEC_NONE) continue;
        if (access->dims[d].block != 1) *out_clean = false;
        stride += access->dims[d].terms[t].coefficient * access->dims[d].stride;
    }
    return stride;
}

static void merge_row_loop(match *m) {
    gemm_data *g = m->g;
    bool clean = true;
    g->row_dim = EXEC_NONE;
    if (g->loop_count == 0 || g->k > FEW_CHANNELS || !g->a_runs || g->b_form == GEMM_B_PACK) return;
    const gemm_loop *loop = &g->loops[g->loop_count - 1];
    const exec_dim *k = g->a_k == EXEC_NONE ? NULL : &g->a.dims[g->a_k];
    int64_t b_step = g->b_k == EXEC_NONE ? 0 : g->b.dims[g->b_k].stride, least, most;
    if (k && (k->base != 0 || k->term_count != 0 || k->limit != g->k)) return;
    if (stride_of_term(&g->a, loop->variable, &clean) * loop->step != g->k || !clean) return;
    if (stride_of_term(&g->b, loop->variable, &clean) * loop->step != g->k * b_step || !clean || b_step == 0)
        return;
    uint32_t dim = EXEC_NONE;
    for (uint32_t d = 0; d < g->a.rank; d++)
        if (find_term(&g->a.dims[d], loop->variable) != EXEC_NONE) dim = dim == EXEC_NONE ? d : g->a.rank;
    if (dim >= g->a.rank || loop->begin != 0) return;
    for (uint32_t d = 0; d < g->b.rank; d++) { /* every round must be inside B */
        if (find_term(&g->b.dims[d], loop->variable) == EXEC_NONE) continue;
        range_of(m, &g->b.dims[d], &least, &most);
        if (least < 0 || most >= g->b.dims[d].limit) return;
    }
    uint32_t term = find_term(&g->a.dims[dim], loop->variable);
    g->row_step = g->a.dims[dim].terms[term].coefficient * loop->step;
    if (g->row_step < 1) return;
    g->row_dim = dim;
    g->row_trips = loop->trips;
    g->row_k = g->k;
    g->k *= loop->trips;
    drop_term(&g->a.dims[dim], term);
    for (uint32_t d = 0; d < g->b.rank; d++)
        if ((term = find_term(&g->b.dims[d], loop->variable)) != EXEC_NONE) drop_term(&g->b.dims[d], term);
    g->loop_count--;
}

/* ---- batches ---- */

/* Takes the loops' terms out of the dims and lists what they add in each round. */
static int64_t *list_moves(match *m, exec_access *access) {
    gemm_data *g = m->g;
    int64_t *moves = exec_allocate(&m->plan->arena, (size_t)(g->batches * access->rank) * sizeof *moves + 8);
    if (!moves) return NULL;
    for (uint32_t d = 0; d < access->rank; d++) {
        exec_dim *dim = &access->dims[d];
        int64_t inner = 1;
        for (uint32_t i = g->loop_count; i-- > 0;) {
            const gemm_loop *loop = &g->loops[i];
            uint32_t t = find_term(dim, loop->variable);
            for (int64_t b = 0; t != EXEC_NONE && b < g->batches; b++)
                moves[b * access->rank + d] +=
                    dim->terms[t].coefficient * (loop->begin + b / inner % loop->trips * loop->step);
            if (t != EXEC_NONE) drop_term(dim, t);
            inner *= loop->trips;
        }
    }
    return moves;
}

static bool make_batches(match *m) {
    gemm_data *g = m->g;
    g->batches = 1;
    for (uint32_t i = 0; i < g->loop_count; i++) {
        if (g->loops[i].trips > MAX_BATCHES / g->batches) return false;
        g->batches *= g->loops[i].trips;
    }
    g->a_moves = list_moves(m, &g->a);
    g->b_moves = list_moves(m, &g->b);
    if (!g->a_moves || !g->b_moves) return false;
    for (int64_t b = 0; g->a_k != EXEC_NONE && b < g->batches; b++) {
        int64_t move = g->a_moves[b * g->a.rank + g->a_k];
        if (b == 0 || move < g->a_k_least) g->a_k_least = move;
        if (b == 0 || move > g->a_k_most) g->a_k_most = move;
    }
    return true;
}

/* ---- the start value ---- */

/* FILL 0 or a LOAD that is one row for all: the nest then starts there. */
static bool is_start(match *m, const ent_tile_op *op) {
    const ent_tile_value *acc = &m->p->values[m->mma->dst];
    if (op->dst != m->mma->dst) return false;
    if (op->opcode == ENT_TILE_FILL) return op->f[0] == 0;
    if (op->opcode != ENT_TILE_LOAD || m->g->integer) return false;
    const exec_access *access = &m->plan->accesses[op->access];
    if (!access->affine) return false;
    for (uint32_t a = 0; a + 1 < acc->rank; a++)
        for (uint32_t d = 0; d < access->rank && acc->shape[a] > 1; d++)
            if (access->dims[d].axis == a) return false;
    if (acc->shape[acc->rank - 1] > 1 && access->strides[acc->rank - 1] != 1) return false;
    m->g->bias = op->access;
    m->g->bias_outside = op->f[0];
    return true;
}

/* Hostile sizes: what the step keeps in scratch must be countable. They run one operation after another. */
static bool is_reasonable(const match *m) {
    const ent_tile_value *acc = &m->p->values[m->mma->dst];
    double elements = 1;
    for (uint32_t a = 0; a < acc->rank; a++) elements *= (double)acc->shape[a];
    return elements * (double)m->g->batches * (double)m->g->k < 1e15 && m->g->k < ENT_TILE_MAX_ELEMENTS;
}

/* ---- integers ---- */

static bool a_covers_k(const match *m) {
    const gemm_data *g = m->g;
    int64_t least, most;
    if (g->a_k == EXEC_NONE) return true;
    range_of(m, &g->a.dims[g->a_k], &least, &most);
    return least >= 0 && most + g->k <= g->a.dims[g->a_k].limit;
}

/* Every batch lies inside B, columns apart; blocks are those of panels. */
static bool b_is_steady(const match *m) {
    const gemm_data *g = m->g;
    int64_t least, most;
    for (uint32_t d = 0; d < g->b.rank; d++) {
        const exec_dim *dim = &g->b.dims[d];
        range_of(m, dim, &least, &most);
        if (least < 0 || (d != g->b_k && d != g->b_n && most >= dim->limit)) return false;
        if (dim->block != 1 && (d != g->b_n || !in_whole_panels(m, dim)) && d != g->b_k) return false;
        for (uint32_t t = 0; d == g->b_n && t < dim->term_count; t++)
            if (dim->terms[t].variable >= m->p->grid_count) return false;
    }
    return g->b_k == EXEC_NONE || (g->b.dims[g->b_k].base == 0 && g->b.dims[g->b_k].term_count == 0);
}

static bool settle(match *m) {
    gemm_data *g = m->g;
    if (!read_operands(m)) return false;
    merge_k_loop(m);
    g->a_runs = g->a_k == EXEC_NONE || g->a.dims[g->a_k].stride == 1;
    if (!settle_k(m)) return false;
    if (g->integer) {
        g->row_dim = EXEC_NONE;
        return a_covers_k(m) && b_is_steady(m) && make_batches(m) && is_reasonable(m) &&
               gemm_integer_settle(m->plan, g);
    }
    if (!choose_b_form(m)) return false;
    merge_row_loop(m);
    if (!make_batches(m) || !is_reasonable(m)) return false;
    g->zeros = exec_allocate(&m->plan->arena, (size_t)g->k * sizeof(float));
    return g->zeros != NULL;
}

uint32_t exec_match_gemm(exec_plan *plan, uint32_t at, exec_step *step) {
    const ent_tile_op *first = &plan->program.ops[at];
    gemm_data g = {.bias = EXEC_NONE, .add = EXEC_NONE};
    match m = {.plan = plan, .p = &plan->program, .g = &g};
    bool starts = (first->opcode == ENT_TILE_FILL || first->opcode == ENT_TILE_LOAD) &&
                  find_nest(&m, at + 1) && is_start(&m, first);
    if (!starts && ((first->opcode != ENT_TILE_LOOP && first->opcode != ENT_TILE_LOAD) || !find_nest(&m, at)))
        return 0;
    if (!settle(&m) || (g.integer && !starts)) return 0;
    memset(step, 0, sizeof *step);
    step->kind = EXEC_GEMM;
    step->dst = m.mma->dst;
    step->accumulates = !starts;
    gemm_data *kept = exec_allocate(&plan->arena, sizeof *kept);
    if (!kept) return 0;
    *kept = g;
    step->data = kept;
    return m.used + (starts ? 1 : 0);
}

/* Nothing else may read the map's other operand row by row in another shape. */
static bool fits_add(const exec_plan *plan, uint32_t other, uint32_t dst) {
    const exec_tile *a = &plan->tiles[other], *d = &plan->tiles[dst];
    for (uint32_t i = 0; i < d->rank; i++)
        if (a->shape[i] != d->shape[i]) return false;
    return a->dtype == ENT_DTYPE_F32;
}

bool exec_gemm_fold(exec_plan *plan, exec_step *nest, const exec_step *step) {
    gemm_data *g = nest->data;
    const ent_tile_op *op = step->op;
    if (g->integer) return false;
    if (op->kind == ENT_MAP_RELU || op->kind == ENT_MAP_CLIP) {
        if (g->clip) return false;
        g->clip = true;
        g->lo = op->kind == ENT_MAP_RELU ? 0 : (float)op->f[0];
        g->hi = op->kind == ENT_MAP_RELU ? __builtin_inff() : (float)op->f[1];
        return true;
    }
    if (op->kind != ENT_MAP_ADD || g->clip || g->add != EXEC_NONE || nest->accumulates) return false;
    uint32_t other = step->source[0] == nest->dst ? step->source[1] : step->source[0];
    if (other == nest->dst || !fits_add(plan, other, nest->dst)) return false;
    g->add = other;
    nest->source[nest->source_count++] = other;
    return true;
}
