/* The register-blocked core of the batch-reduce matrix multiply; included by gemm.c only. */
#ifndef ENT_CPU_KERNELS_GEMM_MICRO_H
#define ENT_CPU_KERNELS_GEMM_MICRO_H

#include "kernels.h"
#include "vec.h"

/* Register blocks: accumulators fill the register file but for the B vectors and one or two of A. */
#if VF_REGISTERS == 32
#define GEMM_ACCUMULATORS 24
#define GEMM_ROWS 6
#define GEMM_VECTORS 4
#elif ENT_ISA_LEVEL == 1
#define GEMM_ACCUMULATORS 12
#define GEMM_ROWS 6
#define GEMM_VECTORS 2
#else
#define GEMM_ACCUMULATORS 8
#define GEMM_ROWS 4
#define GEMM_VECTORS 2
#endif
#define GEMM_MAX_VECTORS 8

/* How B is read. */
enum { B_PACKED, B_PLAIN, B_PLAIN_TAIL, B_KINDS };

/* One register block: rows row0.., columns column0.. (n of them) and the slice [k0, k0 + k) of batches
 * [batch0, batch1). `first` and `last` say whether this is the first or last slice of the reduction. */
typedef struct gemm_block {
    const ent_cpu_gemm *g;
    const float *b; /* first element of the block in batch 0, k = k0 */
    int64_t row0, column0, n;
    int64_t k0, k, batch0, batch1;
    bool first, last;
} gemm_block;

typedef void (*gemm_block_fn)(const gemm_block *block);

ENT_INLINE float *row_of(const ent_cpu_rows *rows, int64_t row) {
    return rows->rows ? rows->rows[row] : rows->base + row * rows->stride;
}

ENT_INLINE const float *a_row_of(const ent_cpu_gemm *g, int64_t batch, int64_t row) {
    if (g->a_rows) return g->a_rows[batch * g->a_rows_stride + row];
    return g->a + batch * g->a_batch_stride + row * g->a_stride;
}

/* Adds, clips and stores the vector of accumulators `x` at (row, column0 + at), of which `left` lanes are
 * real. */
ENT_INLINE void finish_vector(const gemm_block *block, int64_t row, int64_t at, int64_t left, vf x) {
    const ent_cpu_gemm *g = block->g;
    vt t = vt_first(left < VF_LANES ? left : VF_LANES);
    at += block->column0;
    float *c = row_of(&g->c, row) + at;
    if (!block->first)
        x = vf_add(x, vf_load_first(c, t));
    else if (g->add.base || g->add.rows)
        x = vf_add(x, vf_load_first(row_of(&g->add, row) + at, t));
    if (block->last) {
        if (g->bias) x = vf_add(x, vf_load_first(g->bias + at, t));
        if (g->clip) x = vf_clip(x, vf_set1(g->lo), vf_set1(g->hi));
    }
    vf_store_first(c, t, x);
}

/* Blocks with a ragged right edge: through memory, so that one copy of the code serves all shapes. */
static __attribute__((noinline, unused)) void finish_ragged(const gemm_block *block, int rows, int vectors,
                                                            const float *acc) {
    for (int i = 0; i < rows; i++) {
        for (int v = 0; v < vectors && v * VF_LANES < block->n; v++) {
            vf x = vf_load(acc + (i * vectors + v) * VF_LANES);
            finish_vector(block, block->row0 + i, (int64_t)v * VF_LANES, block->n - v * VF_LANES, x);
        }
    }
}

#define EACH_ROW_AND_VECTOR(statement)                                                                       \
    ENT_UNROLL                                                                                               \
    for (int i = 0; i < rows; i++) {                                                                         \
        ENT_UNROLL                                                                                           \
        for (int v = 0; v < vectors; v++) {                                                                  \
            statement;                                                                                       \
        }                                                                                                    \
    }

/* Blocks that are whole. `add` comes with the first slice, since it may be C itself; bias and clip with the
 * last. */
ENT_INLINE void finish_whole(const gemm_block *block, vf acc[GEMM_ROWS][GEMM_MAX_VECTORS], const int rows,
                             const int vectors) {
    const ent_cpu_gemm *g = block->g;
    float *c[GEMM_ROWS];
    ENT_UNROLL
    for (int i = 0; i < rows; i++) c[i] = row_of(&g->c, block->row0 + i) + block->column0;
    if (!block->first) {
        EACH_ROW_AND_VECTOR(acc[i][v] = vf_add(acc[i][v], vf_load(c[i] + v * VF_LANES)))
    } else if (g->add.base || g->add.rows) {
        ENT_UNROLL
        for (int i = 0; i < rows; i++) {
            const float *add = row_of(&g->add, block->row0 + i) + block->column0;
            ENT_UNROLL
            for (int v = 0; v < vectors; v++) acc[i][v] = vf_add(acc[i][v], vf_load(add + v * VF_LANES));
        }
    }
    if (block->last) {
        if (g->bias) {
            const float *bias = g->bias + block->column0;
            EACH_ROW_AND_VECTOR(acc[i][v] = vf_add(acc[i][v], vf_load(bias + v * VF_LANES)))
        }
        if (g->clip) {
            vf lo = vf_set1(g->lo), hi = vf_set1(g->hi);
            EACH_ROW_AND_VECTOR(acc[i][v] = vf_clip(acc[i][v], lo, hi))
        }
    }
    EACH_ROW_AND_VECTOR(vf_store(c[i] + v * VF_LANES, acc[i][v]))
}

/* One step of k: the B vectors once, each A element broadcast to all of them. */
ENT_INLINE void gemm_step(vf acc[GEMM_ROWS][GEMM_MAX_VECTORS], const float *const *a, int64_t k,
                          const float *b, int64_t panel_stride, vt tail, const int rows, const int vectors,
                          const int kind) {
    vf bv[GEMM_MAX_VECTORS];
    ENT_UNROLL
    for (int v = 0; v < vectors; v++) {
        const float *p = b + v * VF_LANES / ENT_CPU_PANEL * panel_stride + v * VF_LANES % ENT_CPU_PANEL;
        bv[v] = kind == B_PLAIN_TAIL && v == vectors - 1 ? vf_load_first(p, tail) : vf_load(p);
    }
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        vf x = vf_set1(a[i][k]);
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) vf_accumulate(&acc[i][v], x, bv[v]);
    }
}

/* rows, vectors and kind are constants in every instance, so that all loops but that over k are unrolled and
 * acc stays in registers. */
ENT_INLINE void gemm_micro(const gemm_block *block, const int rows, const int vectors, const int kind) {
    const ent_cpu_gemm *g = block->g;
    const int64_t step = kind == B_PACKED ? ENT_CPU_PANEL : g->b_stride;
    const int64_t panel_stride = kind == B_PACKED ? g->b_panel_stride : ENT_CPU_PANEL;
    const int64_t k_count = block->k;
    vt tail = vt_first(kind == B_PLAIN_TAIL ? block->n - (vectors - 1) * VF_LANES : VF_LANES);
    vf acc[GEMM_ROWS][GEMM_MAX_VECTORS];
    ENT_UNROLL
    for (int i = 0; i < rows; i++) {
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) acc[i][v] = vf_zero();
    }
    /* C is needed when the loop is over; by then it has come from wherever it was. */
    ENT_UNROLL
    for (int i = 0; i < rows; i++) __builtin_prefetch(row_of(&g->c, block->row0 + i) + block->column0, 1, 3);
    for (int64_t batch = block->batch0; batch < block->batch1; batch++) {
        const float *b = block->b + batch * g->b_batch_stride;
        const float *a[GEMM_ROWS];
        int64_t k = 0;
        ENT_UNROLL
        for (int i = 0; i < rows; i++) a[i] = a_row_of(g, batch, block->row0 + i) + block->k0;
        /* Fewer instructions for each multiply-add leave slots to the other hardware thread of the core. */
        if (kind == B_PACKED && ENT_ISA_LEVEL > 0 && vectors * VF_LANES <= ENT_CPU_PANEL) {
            ENT_NO_UNROLL
            for (; k + 4 <= k_count; k += 4, b += 4 * step) {
                ENT_UNROLL
                for (int u = 0; u < 4; u++)
                    gemm_step(acc, a, k + u, b + u * step, panel_stride, tail, rows, vectors, kind);
            }
        }
        ENT_NO_UNROLL
        for (; k < k_count; k++, b += step) gemm_step(acc, a, k, b, panel_stride, tail, rows, vectors, kind);
    }
    if (block->n >= vectors * VF_LANES) {
        finish_whole(block, acc, rows, vectors);
    } else {
        float spilled[GEMM_ROWS * GEMM_MAX_VECTORS * VF_LANES];
        EACH_ROW_AND_VECTOR(vf_store(spilled + (i * vectors + v) * VF_LANES, acc[i][v]))
        finish_ragged(block, rows, vectors, spilled);
    }
}

#endif
