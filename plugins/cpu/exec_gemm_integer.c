/* Matrix multiply steps of 8-bit integers. A is packed for each instance, all its batches (taps of a
 * convolution) side by side in one row, so that the kernel sees one product; what lies outside A is its zero
 * point, which adds nothing. B lies in panels already, or is packed as A is. */
#include "exec_gemm.h"

static int64_t whole_groups(int64_t k) {
    return (k + ENT_CPU_GEMM8_K - 1) / ENT_CPU_GEMM8_K * ENT_CPU_GEMM8_K;
}

/* B as the kernel wants it: batches after one another in each panel. */
static bool in_panels(const gemm_data *g) {
    const exec_dim *n = g->b_n == EXEC_NONE ? NULL : &g->b.dims[g->b_n],
                   *k = g->b_k == EXEC_NONE ? NULL : &g->b.dims[g->b_k];
    if (!n || !k || n->block != ENT_CPU_PANEL || n->block_stride != ENT_CPU_GEMM8_K) return false;
    if (k->block != ENT_CPU_GEMM8_K || k->block_stride != 1 || k->stride != ENT_CPU_PANEL * ENT_CPU_GEMM8_K)
        return false;
    for (int64_t b = 0; b < g->batches; b++) {
        int64_t offset = 0;
        for (uint32_t d = 0; d < g->b.rank; d++) {
            int64_t move = g->b_moves[b * g->b.rank + d];
            if (move != 0 && (d == g->b_n || d == g->b_k)) return false;
            offset += move * g->b.dims[d].stride;
        }
        if (offset != b * g->batch_k * ENT_CPU_PANEL) return false;
    }
    return true;
}

bool gemm_integer_settle(exec_plan *plan, gemm_data *g) {
    (void)plan;
    g->batch_k = whole_groups(g->k);
    g->b_form = in_panels(g) ? GEMM_B_PANELS : GEMM_B_PACK;
    for (uint32_t d = 0; d < g->b.rank && g->b_form == GEMM_B_PACK; d++)
        if (g->b.dims[d].block != 1) return false;
    return true;
}

size_t gemm_integer_scratch(exec_plan *plan, exec_step *nest, size_t offset) {
    gemm_data *g = nest->data;
    const exec_tile *acc = &plan->tiles[nest->dst];
    int64_t n = acc->shape[g->m_axes], rows = exec_elements(acc) / n, depth = g->batches * g->batch_k;
    g->c_rows = gemm_claim(&offset, (size_t)rows * sizeof(void *));
    g->packed_a = gemm_claim(&offset, (size_t)(rows * depth * plan->kernels->a8_bytes));
    g->packed_b = gemm_claim(
        &offset, g->b_form == GEMM_B_PACK ? (size_t)(ent_cpu_panels(n) * ENT_CPU_PANEL * depth) : 0);
    return offset;
}

/* One batch of all rows. */
static void pack_rows(const gemm_work *w, int64_t batch, char *to) {
    const gemm_data *g = w->g;
    const ent_cpu_kernels *kernels = w->run->plan->kernels;
    const int64_t *moves = g->a_moves + batch * g->a.rank;
    const int64_t k_step = g->a_k == EXEC_NONE ? 1 : g->a.dims[g->a_k].stride;
    int64_t lo[3], hi[3], row_bytes = g->batches * g->batch_k * kernels->a8_bytes;
    bool any = gemm_rows_inside(w, moves, lo, hi);
    const uint8_t *base = (const uint8_t *)w->a + (any ? gemm_batch_offset(&g->a, w->a_start, moves) : 0);
    for (int64_t i = 0; i < w->m[0]; i++)
        for (int64_t j = 0; j < w->m[1]; j++)
            for (int64_t k = 0; k < w->m[2]; k++, to += row_bytes) {
                bool inside =
                    any && i >= lo[0] && i < hi[0] && j >= lo[1] && j < hi[1] && k >= lo[2] && k < hi[2];
                const uint8_t *row = base + i * w->stride[0] + j * w->stride[1] + k * w->stride[2];
                kernels->pack_a8(inside ? row : NULL, k_step, g->k, g->a_signed, g->a_zero, to);
            }
}

/* B of all batches in panels; packed again only when another tile of B was packed last. */
static void set_b(const gemm_work *w, ent_cpu_gemm8 *call) {
    const gemm_data *g = w->g;
    const uint8_t *b = w->b;
    exec_run *run = w->run;
    call->b = b + gemm_b_offset(w, 0);
    if (g->b_form == GEMM_B_PANELS) {
        call->b_panel_stride = g->b.dims[g->b_n].stride;
        return;
    }
    const void *first = call->b;
    uint8_t *room = (uint8_t *)(run->scratch + g->packed_b);
    call->b = room;
    call->b_panel_stride = call->k * ENT_CPU_PANEL;
    if (run->packed_b == first && run->packed_by == g && run->packed_n == call->n) return;
    for (int64_t i = 0; i < g->batches; i++)
        ent_cpu_pack_b8(b + gemm_b_offset(w, i), g->b_k == EXEC_NONE ? 1 : g->b.dims[g->b_k].stride,
                        g->b_n == EXEC_NONE ? 1 : g->b.dims[g->b_n].stride, g->k, call->n,
                        room + i * g->batch_k * ENT_CPU_PANEL, call->b_panel_stride);
    run->packed_b = first;
    run->packed_by = g;
    run->packed_n = call->n;
}

void exec_gemm_integer(exec_run *run, const exec_step *step) {
    gemm_work w = {.g = step->data};
    const gemm_data *g = w.g;
    exec_place(run, step->dst);
    gemm_start(run, step, &w);
    char *rows = run->scratch + g->packed_a;
    ent_cpu_gemm8 call = {.m = w.rows,
                          .n = w.n,
                          .k = g->batches * g->batch_k,
                          .a = rows,
                          .a_stride = g->batches * g->batch_k,
                          .a_signed = g->a_signed,
                          .b_signed = g->b_signed,
                          .a_zero = g->a_zero,
                          .b_zero = g->b_zero,
                          .c = gemm_rows_of(&w, step->dst, g->c_rows)};
    if (g->b_n != EXEC_NONE && g->b.dims[g->b_n].limit - w.b_start[g->b_n] < w.n)
        call.n = g->b.dims[g->b_n].limit - w.b_start[g->b_n]; /* what lies beyond is never stored */
    for (int64_t b = 0; b < g->batches; b++)
        pack_rows(&w, b, rows + b * g->batch_k * run->plan->kernels->a8_bytes);
    set_b(&w, &call);
    run->plan->kernels->gemm8(&call);
}
