/* MMA on tiles that other operations made: the matrix kernel on strided operands, packed where it wants them
 * so. */
#include "exec.h"

typedef struct multiply_data {
    size_t a_offset, b_offset; /* f32 copies in scratch */
    bool scalar;
} multiply_data;

bool exec_bind_multiply(exec_plan *plan, exec_step *step) {
    multiply_data *data = exec_allocate(&plan->arena, sizeof *data);
    if (!data) return false;
    step->data = data;
    uint32_t a = plan->tiles[step->source[0]].dtype;
    data->scalar = plan->tiles[step->dst].dtype != ENT_DTYPE_F32;
    step->emulated = !data->scalar && a != ENT_DTYPE_F32;
    return !data->scalar;
}

size_t exec_multiply_scratch(exec_plan *plan, exec_step *step, size_t offset) {
    multiply_data *data = step->data;
    const exec_tile *a = &plan->tiles[step->source[0]], *b = &plan->tiles[step->source[1]];
    if (!data || data->scalar) return offset;
    int64_t k = a->shape[a->rank - 1], n = exec_elements(b) / k;
    data->a_offset = offset;
    offset += (size_t)exec_elements(a) * 4 + 64;
    data->b_offset = offset = (offset + 63) & ~(size_t)63;
    offset += (size_t)(k * ent_cpu_panels(n) * ENT_CPU_PANEL) * 4;
    if (b->dtype != ENT_DTYPE_F32) offset += (size_t)exec_elements(b) * 4;
    return (offset + 63) & ~(size_t)63;
}

/* Integer products by the definition, one element after another. */
static void multiply_scalar(exec_run *run, const exec_step *step) {
    const exec_tile *at = &run->plan->tiles[step->source[0]], *bt = &run->plan->tiles[step->source[1]];
    const exec_tile *dt = &run->plan->tiles[step->dst];
    const exec_view *av = &run->views[step->source[0]], *bv = &run->views[step->source[1]];
    int32_t *d = (int32_t *)(void *)run->views[step->dst].base;
    uint32_t rank = dt->rank, b_n = step->op->flags & ENT_TILE_TRANSPOSE_B ? 0 : 1;
    int64_t extents[EXEC_RANK] = {1, 1, 1, 1}, p[EXEC_RANK] = {0}, depth = at->shape[rank - 1];
    for (uint32_t a = 0; a < rank; a++) extents[a] = exec_extent(run, dt, a);
    for (;;) {
        int64_t from = 0, to = 0, sum = 0, column = p[rank - 1] * bv->strides[b_n];
        for (uint32_t a = 0; a < rank; a++) to += dt->strides[a] * p[a];
        for (uint32_t a = 0; a + 1 < rank; a++) from += av->strides[a] * p[a];
        for (int64_t k = 0; k < depth; k++)
            sum += (ent_ops_load_i64(av->base, at->dtype, from + k * av->strides[rank - 1]) -
                    (int64_t)step->op->f[0]) *
                   (ent_ops_load_i64(bv->base, bt->dtype, column + k * bv->strides[1 - b_n]) -
                    (int64_t)step->op->f[1]);
        d[to] = (int32_t)((uint32_t)d[to] + (uint32_t)sum);
        uint32_t a = rank;
        while (a > 0 && ++p[a - 1] == extents[a - 1]) p[--a] = 0;
        if (a == 0) return;
    }
}

/* A as packed f32 rows, in scratch. */
static const float *packed_a(exec_run *run, const exec_step *step, int64_t rows, int64_t depth) {
    const multiply_data *data = step->data;
    const exec_tile *tile = &run->plan->tiles[step->source[0]];
    const exec_view *view = &run->views[step->source[0]];
    char *room = run->scratch + data->a_offset;
    int64_t extents[EXEC_RANK], strides[EXEC_RANK], stride = 1;
    for (uint32_t a = tile->rank; a-- > 0;) {
        extents[a] = exec_extent(run, tile, a);
        strides[a] = stride;
        stride *= extents[a];
    }
    if (tile->dtype == ENT_DTYPE_F32) {
        exec_copy(run->plan->kernels, tile->rank, extents, view->base, view->strides, room, strides, 4);
    } else { /* halves first to the back of the room, then widened front to back */
        char *halves = room + rows * depth * 2;
        exec_copy(run->plan->kernels, tile->rank, extents, view->base, view->strides, halves, strides, 2);
        for (int64_t i = 0; i < rows * depth; i += 256) {
            float block[256];
            int64_t n = rows * depth - i < 256 ? rows * depth - i : 256;
            run->plan->kernels->cast[exec_cpu_type(tile->dtype)][ENT_CPU_F32](halves + i * 2, block, n);
            memcpy(room + i * 4, block, (size_t)n * 4);
        }
    }
    return (const float *)(const void *)room;
}

static void set_b(exec_run *run, const exec_step *step, ent_cpu_gemm *g) {
    const multiply_data *data = step->data;
    const exec_tile *tile = &run->plan->tiles[step->source[1]];
    const exec_view *view = &run->views[step->source[1]];
    uint32_t n_axis = step->op->flags & ENT_TILE_TRANSPOSE_B ? 0 : 1;
    int64_t k_stride = view->strides[1 - n_axis], n_stride = view->strides[n_axis];
    const float *b = (const float *)(const void *)view->base;
    float *room = (float *)(void *)(run->scratch + data->b_offset);
    if (tile->dtype != ENT_DTYPE_F32) {
        float *wide = room + g->k * ent_cpu_panels(tile->shape[n_axis]) * ENT_CPU_PANEL;
        for (int64_t k = 0; k < g->k; k++)
            for (int64_t j = 0; j < g->n; j++)
                run->plan->kernels->cast[exec_cpu_type(tile->dtype)][ENT_CPU_F32](
                    view->base + (k * k_stride + j * n_stride) * 2, wide + k * g->n + j, 1);
        b = wide;
        k_stride = g->n;
        n_stride = 1;
    }
    g->b = b;
    g->b_stride = k_stride;
    if (n_stride == 1 && k_stride > 0) return;
    if (n_stride != 1 && k_stride != 1) { /* pack_b wants one of them contiguous */
        for (int64_t p = 0; p < ent_cpu_panels(g->n); p++)
            for (int64_t k = 0; k < g->k; k++)
                for (int64_t j = 0; j < ENT_CPU_PANEL; j++)
                    room[(p * g->k + k) * ENT_CPU_PANEL + j] =
                        p * ENT_CPU_PANEL + j < g->n ? b[k * k_stride + (p * ENT_CPU_PANEL + j) * n_stride]
                                                     : 0;
    } else {
        run->plan->kernels->pack_b(b, k_stride, n_stride, g->k, g->n, room, g->k * ENT_CPU_PANEL);
    }
    g->b = room;
    g->b_stride = 0;
    g->b_panel_stride = g->k * ENT_CPU_PANEL;
}

void exec_multiply(exec_run *run, const exec_step *step) {
    const multiply_data *data = step->data;
    const exec_tile *at = &run->plan->tiles[step->source[0]], *dt = &run->plan->tiles[step->dst];
    const exec_view *av = &run->views[step->source[0]];
    if (data->scalar) {
        multiply_scalar(run, step);
        return;
    }
    uint32_t rank = dt->rank;
    int64_t inner = rank > 1 ? exec_extent(run, dt, rank - 2) : 1, blocks = 1, position[EXEC_RANK] = {0};
    ent_cpu_gemm g = {
        .m = inner, .n = exec_extent(run, dt, rank - 1), .k = exec_extent(run, at, rank - 1), .batch = 1};
    for (uint32_t a = 0; a + 2 < rank; a++) blocks *= exec_extent(run, dt, a);
    bool plain = at->dtype == ENT_DTYPE_F32 && (av->strides[rank - 1] == 1 || g.k == 1);
    const float *a = plain ? (const float *)(const void *)av->base : packed_a(run, step, blocks * inner, g.k);
    set_b(run, step, &g);
    g.a_stride = !plain ? g.k : rank > 1 && inner > 1 ? av->strides[rank - 2] : 0;
    g.c.stride = rank > 1 ? dt->strides[rank - 2] : 0;
    if (g.c.stride == 0) g.c.stride = g.n;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = plain ? 0 : b * inner * g.k, to = 0;
        for (uint32_t x = 0; x + 2 < rank; x++) {
            from += plain ? av->strides[x] * position[x] : 0;
            to += dt->strides[x] * position[x];
        }
        g.a = a + from;
        g.c.base = (float *)(void *)run->views[step->dst].base + to;
        g.add = g.c;
        run->plan->kernels->gemm(&g);
        for (uint32_t x = rank > 2 ? rank - 2 : 0; x-- > 0;) {
            if (++position[x] < exec_extent(run, dt, x)) break;
            position[x] = 0;
        }
    }
}
