/* Runs a matrix multiply step: rows of A by pointer, so that strides, padding and gathered taps need no copy;
 * B in panels. */
#include "exec_gemm.h"

size_t gemm_claim(size_t *offset, size_t bytes) {
    size_t at = *offset;
    *offset = (at + bytes + 63) & ~(size_t)63;
    return at;
}

size_t exec_gemm_scratch(exec_plan *plan, exec_step *nest, size_t offset) {
    gemm_data *g = nest->data;
    if (g->integer) return gemm_integer_scratch(plan, nest, offset);
    const exec_tile *acc = &plan->tiles[nest->dst];
    int64_t n = acc->shape[g->m_axes], rows = exec_elements(acc) / n;
    g->a_rows = gemm_claim(&offset, (size_t)(rows * g->batches) * sizeof(void *));
    g->c_rows = gemm_claim(&offset, (size_t)rows * sizeof(void *));
    g->add_rows = gemm_claim(&offset, (size_t)rows * sizeof(void *));
    g->bias_row = gemm_claim(&offset, (size_t)n * sizeof(float));
    g->border_rows =
        gemm_claim(&offset, g->row_dim == EXEC_NONE ? 0 : (size_t)(rows * g->batches * g->k) * sizeof(float));
    g->packed_a = gemm_claim(&offset, (size_t)(rows * g->k) * sizeof(float));
    g->packed_b = gemm_claim(
        &offset,
        g->b_form != GEMM_B_PACK ? 0 : (size_t)(g->k * ent_cpu_panels(n) * ENT_CPU_PANEL) * sizeof(float));
    return offset;
}

double exec_nest_flops(const exec_plan *plan, const exec_step *nest) {
    const gemm_data *g = nest->data;
    return 2.0 * (double)exec_elements(&plan->tiles[nest->dst]) * (double)g->k * (double)g->batches;
}

/* ---- operands of one instance ---- */

typedef gemm_work work;

bool gemm_rows_inside(const work *w, const int64_t *moves, int64_t *lo, int64_t *hi) {
    const gemm_data *g = w->g;
    for (uint32_t i = 0; i < 3; i++) {
        lo[i] = 0;
        hi[i] = w->m[i];
    }
    for (uint32_t d = 0; d < g->a.rank; d++) {
        const exec_dim *dim = &g->a.dims[d];
        int64_t start = w->a_start[d] + moves[d], first, end;
        if (d == g->a_k || d == g->row_dim) continue;
        if (dim->axis == EXEC_NONE) {
            if (start < 0 || start >= dim->limit) return false;
            continue;
        }
        uint32_t slot = w->first + dim->axis;
        exec_interval(start, dim->step, dim->limit, w->m[slot], &first, &end);
        if (first > lo[slot]) lo[slot] = first;
        if (end < hi[slot]) hi[slot] = end;
        if (lo[slot] >= hi[slot]) return false;
    }
    return true;
}

int64_t gemm_batch_offset(const exec_access *access, const int64_t *start, const int64_t *moves) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < access->rank; d++) offset += (start[d] + moves[d]) * access->dims[d].stride;
    return offset;
}

static void fill_rows(const float **rows, int64_t count, const float *value) {
    for (int64_t i = 0; i < count; i++) rows[i] = value;
}

/* Row pointers of one batch; rows outside point at zeros. */
static void point_rows(const work *w, int64_t batch, const float **rows) {
    const gemm_data *g = w->g;
    const int64_t *moves = g->a_moves + batch * g->a.rank;
    int64_t lo[3], hi[3];
    if (!gemm_rows_inside(w, moves, lo, hi)) {
        fill_rows(rows, w->rows, g->zeros);
        return;
    }
    const float *base = (const float *)w->a + gemm_batch_offset(&g->a, w->a_start, moves);
    const int64_t step = w->stride[2];
    for (int64_t i = 0; i < w->m[0]; i++)
        for (int64_t j = 0; j < w->m[1]; j++, rows += w->m[2]) {
            if (i < lo[0] || i >= hi[0] || j < lo[1] || j >= hi[1]) {
                fill_rows(rows, w->m[2], g->zeros);
                continue;
            }
            const float *row = base + i * w->stride[0] + j * w->stride[1];
            fill_rows(rows, lo[2], g->zeros);
            for (int64_t k = lo[2]; k < hi[2]; k++) rows[k] = row + k * step;
            fill_rows(rows + hi[2], w->m[2] - hi[2], g->zeros);
        }
}

/* A row whose rounds are not all inside A is put together in scratch. */
static const float *make_row(work *w, const float *row, int64_t start) {
    const gemm_data *g = w->g;
    int64_t first, end;
    exec_interval(start, g->row_step, g->a.dims[g->row_dim].limit, g->row_trips, &first, &end);
    if (first == end) return g->zeros;
    float *made = (float *)(void *)w->border;
    w->border += (size_t)g->k * sizeof(float);
    memset(made, 0, (size_t)g->k * sizeof *made);
    memcpy(made + first * g->row_k, row + first * g->row_k,
           (size_t)((end - first) * g->row_k) * sizeof *made);
    return made;
}

/* The same where rounds of a loop lie side by side. Most rows of the last axis have all rounds inside:
 * positions [f, e). */
static void point_side_by_side(work *w, int64_t batch, const float **rows) {
    const gemm_data *g = w->g;
    const exec_dim *dim = &g->a.dims[g->row_dim];
    const int64_t *moves = g->a_moves + batch * g->a.rank;
    const int64_t start = w->a_start[g->row_dim] + moves[g->row_dim], step = w->stride[2];
    int64_t lo[3], hi[3], f, e, slot = dim->axis == EXEC_NONE ? -1 : (int64_t)w->first + dim->axis;
    if (!gemm_rows_inside(w, moves, lo, hi)) {
        fill_rows(rows, w->rows, g->zeros);
        return;
    }
    const float *base = (const float *)w->a + gemm_batch_offset(&g->a, w->a_start, moves);
    for (int64_t i = 0; i < w->m[0]; i++)
        for (int64_t j = 0; j < w->m[1]; j++, rows += w->m[2]) {
            if (i < lo[0] || i >= hi[0] || j < lo[1] || j >= hi[1]) {
                fill_rows(rows, w->m[2], g->zeros);
                continue;
            }
            const float *row = base + i * w->stride[0] + j * w->stride[1];
            int64_t at = start + (slot == 0   ? dim->step * i
                                  : slot == 1 ? dim->step * j
                                              : 0),
                    along = slot == 2 ? dim->step : 0;
            exec_interval(at, along, dim->limit - (g->row_trips - 1) * g->row_step, w->m[2], &f, &e);
            f = f > lo[2] ? f : lo[2];
            e = e < hi[2] ? e : hi[2];
            for (int64_t k = 0; k < w->m[2]; k++) {
                if (k == f && e > f)
                    for (; k < e; k++) rows[k] = row + k * step;
                if (k < w->m[2])
                    rows[k] =
                        k < lo[2] || k >= hi[2] ? g->zeros : make_row(w, row + k * step, at + along * k);
            }
        }
}

/* A batch of A as packed rows: where k is not contiguous, or not all inside. */
static void pack_a(const work *w, int64_t batch, ent_cpu_gemm *call) {
    const gemm_data *g = w->g;
    const int64_t *moves = g->a_moves + batch * g->a.rank;
    float *room = (float *)(void *)(w->run->scratch + g->packed_a);
    int64_t lo[4], hi[4], extents[4], strides[4], packed[4];
    int64_t k_start = g->a_k == EXEC_NONE ? 0 : w->a_start[g->a_k] + moves[g->a_k];
    bool inside = gemm_rows_inside(w, moves, lo, hi);
    lo[3] = 0;
    hi[3] = g->k;
    if (g->a_k != EXEC_NONE) exec_interval(k_start, 1, g->a.dims[g->a_k].limit, g->k, &lo[3], &hi[3]);
    inside = inside && hi[3] > lo[3];
    bool whole = inside && hi[3] - lo[3] == g->k;
    for (uint32_t i = 0; i < 3; i++) whole = whole && hi[i] - lo[i] == w->m[i];
    if (!whole) memset(room, 0, (size_t)(w->rows * g->k) * sizeof *room);
    packed[3] = 1;
    packed[2] = g->k;
    packed[1] = packed[2] * w->m[2];
    packed[0] = packed[1] * w->m[1];
    for (uint32_t i = 0; i < 3; i++) strides[i] = w->stride[i];
    strides[3] = g->a_k == EXEC_NONE ? 1 : g->a.dims[g->a_k].stride;
    int64_t from = gemm_batch_offset(&g->a, w->a_start, moves), to = 0;
    for (uint32_t i = 0; i < 4; i++) {
        extents[i] = inside ? hi[i] - lo[i] : 0;
        from += inside ? lo[i] * strides[i] : 0;
        to += inside ? lo[i] * packed[i] : 0;
    }
    if (inside)
        exec_copy(w->run->plan->kernels, 4, extents, (const char *)((const float *)w->a + from), strides,
                  (char *)(room + to), packed, 4);
    call->a = room;
    call->a_rows = NULL;
    call->a_stride = g->k;
}

static bool b_inside(const work *w, int64_t batch) {
    const gemm_data *g = w->g;
    const int64_t *moves = g->b_moves + batch * g->b.rank;
    for (uint32_t d = 0; d < g->b.rank; d++) {
        int64_t at = w->b_start[d] + moves[d];
        if (d != g->b_k && d != g->b_n && (at < 0 || at >= g->b.dims[d].limit)) return false;
    }
    return true;
}

int64_t gemm_b_offset(const work *w, int64_t batch) {
    const gemm_data *g = w->g;
    const int64_t *moves = g->b_moves + batch * g->b.rank;
    int64_t offset = 0;
    for (uint32_t d = 0; d < g->b.rank; d++) {
        const exec_dim *dim = &g->b.dims[d];
        int64_t at = w->b_start[d] + moves[d];
        offset += dim->block == 1 ? at * dim->stride : at / dim->block * dim->stride;
    }
    return offset;
}

static const float *b_of(const work *w, int64_t batch) {
    return (const float *)w->b + gemm_b_offset(w, batch);
}

/* B of one batch as the kernel takes it; packed again only when another tile of B was packed last. */
static void set_b(const work *w, int64_t batch, ent_cpu_gemm *call) {
    const gemm_data *g = w->g;
    const float *b = b_of(w, batch);
    call->b = b;
    if (g->b_form == GEMM_B_PANELS) {
        call->b_panel_stride = g->b.dims[g->b_n].stride;
    } else if (g->b_form == GEMM_B_ROWS) {
        call->b_stride = g->b_k == EXEC_NONE ? ENT_CPU_PANEL : g->b.dims[g->b_k].stride;
    } else {
        float *room = (float *)(void *)(w->run->scratch + g->packed_b);
        call->b = room;
        call->b_panel_stride = g->k * ENT_CPU_PANEL;
        if (w->run->packed_b == b && w->run->packed_by == g && w->run->packed_n == call->n) return;
        w->run->plan->kernels->pack_b(b, g->b_k == EXEC_NONE ? 1 : g->b.dims[g->b_k].stride,
                                      g->b.dims[g->b_n].stride, g->k, call->n, room, call->b_panel_stride);
        w->run->packed_b = b;
        w->run->packed_by = g;
        w->run->packed_n = call->n;
    }
}

/* ---- results ---- */

ent_cpu_rows gemm_rows_of(const work *w, uint32_t tile, size_t room) {
    const exec_view *view = &w->run->views[tile];
    int64_t stride[3] = {0};
    ent_cpu_rows rows = {.base = (float *)(void *)view->base};
    for (uint32_t i = 0; i < w->g->m_axes; i++) stride[w->first + i] = view->strides[i];
    bool merged = true;
    int64_t inner = 0, extent = 1;
    for (uint32_t i = 3; i-- > 0;) {
        if (w->m[i] == 1) continue;
        if (extent > 1 && stride[i] != inner * extent) merged = false;
        if (extent == 1) inner = stride[i];
        extent *= w->m[i];
    }
    rows.stride = inner;
    if (merged) return rows;
    float **pointers = (float **)(void *)(w->run->scratch + room);
    rows.rows = pointers;
    for (int64_t i = 0; i < w->m[0]; i++)
        for (int64_t j = 0; j < w->m[1]; j++)
            for (int64_t k = 0; k < w->m[2]; k++)
                *pointers++ = rows.base + i * stride[0] + j * stride[1] + k * stride[2];
    return rows;
}

static const float *bias_of(const work *w) {
    const exec_access *access = &w->run->plan->accesses[w->g->bias];
    int64_t offset = 0, first = 0, end = w->n;
    for (uint32_t d = 0; d < access->rank; d++) {
        const exec_dim *dim = &access->dims[d];
        int64_t start = exec_dim_start(w->run, dim), lo, hi;
        offset += start * dim->stride;
        exec_interval(start, dim->axis == w->g->m_axes ? dim->step : 0, dim->limit, w->n, &lo, &hi);
        if (lo > first) first = lo;
        if (hi < end) end = hi;
    }
    const float *bias = (const float *)w->run->buffers[access->buffer];
    if (first == 0 && end == w->n) return bias + offset;
    float *row = (float *)(void *)(w->run->scratch + w->g->bias_row);
    for (int64_t i = 0; i < w->n; i++)
        row[i] = i >= first && i < end ? bias[offset + i] : (float)w->g->bias_outside;
    return row;
}

static void set_result(const work *w, const exec_step *step, ent_cpu_gemm *call) {
    const gemm_data *g = w->g;
    call->c = gemm_rows_of(w, step->dst, g->c_rows);
    if (g->bias != EXEC_NONE) call->bias = bias_of(w);
    if (g->add != EXEC_NONE) call->add = gemm_rows_of(w, g->add, g->add_rows);
    if (step->accumulates) call->add = call->c;
    call->clip = g->clip;
    call->lo = g->lo;
    call->hi = g->hi;
}

/* ---- calls ---- */

/* All batches in one call: their B must be evenly spaced. False otherwise. */
static bool run_together(work *w, ent_cpu_gemm *call) {
    const gemm_data *g = w->g;
    const float **rows = (const float **)(void *)(w->run->scratch + g->a_rows);
    const float *last = NULL;
    int64_t count = 0;
    if (g->b_form == GEMM_B_PACK && g->batches > 1) return false;
    for (int64_t b = 0; b < g->batches; b++) {
        if (!b_inside(w, b)) continue;
        const float *at = b_of(w, b);
        if (count == 1) call->b_batch_stride = at - last;
        if (count > 1 && at - last != call->b_batch_stride) return false;
        last = at;
        if (count == 0) set_b(w, b, call);
        if (g->row_dim != EXEC_NONE)
            point_side_by_side(w, b, rows + count * w->rows);
        else
            point_rows(w, b, rows + count * w->rows);
        count++;
    }
    call->batch = count;
    call->a_rows = rows;
    call->a_rows_stride = w->rows;
    return true;
}

/* One batch whose rows are evenly spaced needs no pointers. */
static bool point_directly(const work *w, ent_cpu_gemm *call) {
    const gemm_data *g = w->g;
    int64_t lo[3], hi[3], inner = 0, extent = 1;
    if (g->batches != 1 || g->row_dim != EXEC_NONE || !gemm_rows_inside(w, g->a_moves, lo, hi) ||
        !b_inside(w, 0))
        return false;
    for (uint32_t i = 3; i-- > 0;) {
        if (lo[i] != 0 || hi[i] != w->m[i]) return false;
        if (w->m[i] == 1) continue;
        if (extent > 1 && w->stride[i] != inner * extent) return false;
        if (extent == 1) inner = w->stride[i];
        extent *= w->m[i];
    }
    call->batch = 1;
    call->a = (const float *)w->a + gemm_batch_offset(&g->a, w->a_start, g->a_moves);
    call->a_stride = inner;
    set_b(w, 0, call);
    return true;
}

/* One call a batch. False when no batch is inside B. */
static bool run_apart(work *w, ent_cpu_gemm call, bool packs) {
    const gemm_data *g = w->g;
    const float **rows = (const float **)(void *)(w->run->scratch + g->a_rows);
    const bool clip = call.clip;
    int64_t last = -1;
    for (int64_t b = 0; b < g->batches; b++)
        if (b_inside(w, b)) last = b;
    call.batch = 1;
    for (int64_t b = 0; b <= last; b++) {
        if (!b_inside(w, b)) continue;
        call.clip = clip && b == last;
        set_b(w, b, &call);
        call.a_rows = rows;
        call.a_rows_stride = w->rows;
        w->border = w->run->scratch + g->border_rows;
        if (packs)
            pack_a(w, b, &call);
        else if (g->row_dim != EXEC_NONE)
            point_side_by_side(w, b, rows);
        else
            point_rows(w, b, rows);
        w->run->plan->kernels->gemm(&call);
        call.add = call.c;
        call.bias = NULL;
    }
    return last >= 0;
}

static float *row_at(const ent_cpu_rows *rows, int64_t row) {
    return rows->rows ? rows->rows[row] : rows->base + row * rows->stride;
}

/* Columns that no element of B reaches: the start value alone. */
static void finish_without_b(const ent_cpu_gemm *call, int64_t first, int64_t end) {
    for (int64_t r = 0; r < call->m; r++) {
        float *c = row_at(&call->c, r);
        const float *add = call->add.base || call->add.rows ? row_at(&call->add, r) : NULL;
        for (int64_t j = first; j < end; j++) {
            float x = (call->bias ? call->bias[j] : 0) + (add ? add[j] : 0);
            if (call->clip && x < call->lo) x = call->lo;
            if (call->clip && x > call->hi) x = call->hi;
            c[j] = x;
        }
    }
}

void gemm_start(exec_run *run, const exec_step *step, work *w) {
    const gemm_data *g = w->g;
    const exec_tile *acc = &run->plan->tiles[step->dst];
    w->run = run;
    w->first = 3 - g->m_axes;
    w->rows = 1;
    for (uint32_t i = 0; i < 3; i++) {
        bool used = i >= w->first;
        w->m[i] = used ? exec_extent(run, acc, i - w->first) : 1;
        w->stride[i] = used ? g->a.strides[i - w->first] : 0;
        w->rows *= w->m[i];
    }
    w->n = exec_extent(run, acc, g->m_axes);
    for (uint32_t d = 0; d < g->a.rank; d++) w->a_start[d] = exec_dim_start(run, &g->a.dims[d]);
    for (uint32_t d = 0; d < g->b.rank; d++) w->b_start[d] = exec_dim_start(run, &g->b.dims[d]);
    w->a = run->buffers[g->a.buffer];
    w->b = run->buffers[g->b.buffer];
    w->border = run->scratch + g->border_rows;
}

/* True when all of k lies inside A in every batch. */
static bool k_is_inside(const work *w) {
    const gemm_data *g = w->g;
    if (g->a_k == EXEC_NONE) return true;
    int64_t from = w->a_start[g->a_k], room = g->row_dim != EXEC_NONE ? g->row_k : g->k;
    return from + g->a_k_least >= 0 && from + g->a_k_most + room <= g->a.dims[g->a_k].limit;
}

/* One column: each result is the product of two contiguous runs, so that vectors run along k. */
static bool run_column(const work *w, const ent_cpu_gemm *call) {
    const gemm_data *g = w->g;
    bool b_is_run = g->b_form == GEMM_B_ROWS && (g->b_k == EXEC_NONE || g->b.dims[g->b_k].stride == 1);
    bool rests = call->add.base || call->add.rows || call->clip || call->c.rows ||
                 (call->m > 1 && call->c.stride != 1);
    if (call->n != 1 || !b_is_run || rests || call->a_rows || g->k < 8) return false;
    ent_cpu_gemm_dot dot = {.m = 1,
                            .n = call->m,
                            .k = g->k,
                            .a = call->b,
                            .a_stride = 0,
                            .b = call->a,
                            .b_stride = call->a_stride,
                            .c = call->c.base,
                            .c_stride = call->m,
                            .scale = 1,
                            .accumulate = call->bias != NULL};
    for (int64_t r = 0; r < call->m && call->bias; r++) call->c.base[r] = call->bias[0];
    w->run->plan->kernels->gemm_dot(&dot);
    return true;
}

void exec_gemm(exec_run *run, const exec_step *step) {
    work w = {.g = step->data};
    const gemm_data *g = w.g;
    if (!step->accumulates) exec_place(run, step->dst);
    gemm_start(run, step, &w);
    ent_cpu_gemm call = {.m = w.rows, .n = w.n, .k = g->k};
    set_result(&w, step, &call);
    if (g->b_n != EXEC_NONE && g->b.dims[g->b_n].limit - w.b_start[g->b_n] < w.n)
        call.n = g->b.dims[g->b_n].limit - w.b_start[g->b_n];
    bool ran = false;
    if (call.n > 0) {
        if (!g->a_runs || !k_is_inside(&w)) {
            ran = run_apart(&w, call, true);
        } else if (point_directly(&w, &call) || run_together(&w, &call)) {
            ran = call.batch > 0;
            if (ran && !run_column(&w, &call)) run->plan->kernels->gemm(&call);
        } else {
            ran = run_apart(&w, call, false);
        }
    }
    if (!ran || call.n < w.n) finish_without_b(&call, ran ? call.n : 0, w.n);
}
