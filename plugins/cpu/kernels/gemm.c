/* Batch-reduce matrix multiply over register blocks.
 *
 * Order: slices of k (so that the B slice of one column block stays in L1), then column blocks, then row
 * blocks. A slice's partial sums go to C; with k slices of 256 that costs about 1 % and saves reading B from
 * L2 for every row block. Rows are spread evenly over the row blocks: 7 rows are 4 + 3, not 6 + 1, since a
 * block of one row cannot hide the latency of multiply-add. Fetching the next B slice ahead by hand was
 * measured and did not pay. */
#include "gemm_micro.h"
#include "kernels_isa.h"

#define MICRO(rows, vectors, kind, name)                                                                     \
    static void name(const gemm_block *block) {                                                              \
        gemm_micro(block, rows, vectors, kind);                                                              \
    }
#define MICRO_KINDS(rows, vectors)                                                                           \
    MICRO(rows, vectors, B_PACKED, packed_##rows##_##vectors)                                                \
    MICRO(rows, vectors, B_PLAIN, plain_##rows##_##vectors)                                                  \
    MICRO(rows, vectors, B_PLAIN_TAIL, tail_##rows##_##vectors)

MICRO_KINDS(1, 1)
MICRO_KINDS(2, 1)
MICRO_KINDS(3, 1)
MICRO_KINDS(4, 1)
MICRO_KINDS(1, 2)
MICRO_KINDS(2, 2)
MICRO_KINDS(3, 2)
MICRO_KINDS(4, 2)
MICRO_KINDS(1, 4)
MICRO_KINDS(2, 4)
MICRO_KINDS(1, 8)
#if GEMM_ROWS >= 6
MICRO_KINDS(5, 1)
MICRO_KINDS(6, 1)
MICRO_KINDS(5, 2)
MICRO_KINDS(6, 2)
#endif
#if GEMM_ACCUMULATORS >= 24
MICRO_KINDS(3, 4)
MICRO_KINDS(4, 4)
MICRO_KINDS(5, 4)
MICRO_KINDS(6, 4)
MICRO_KINDS(2, 8)
#endif

/* blocks[kind][rows - 1][log2 vectors]; NULL where the accumulators would not fit. */
#if GEMM_ACCUMULATORS >= 24
#define TABLE(kind)                                                                                          \
    {                                                                                                        \
        {kind##_1_1, kind##_1_2, kind##_1_4, kind##_1_8}, {kind##_2_1, kind##_2_2, kind##_2_4, kind##_2_8},  \
            {kind##_3_1, kind##_3_2, kind##_3_4, NULL}, {kind##_4_1, kind##_4_2, kind##_4_4, NULL},          \
            {kind##_5_1, kind##_5_2, kind##_5_4, NULL}, {                                                    \
            kind##_6_1, kind##_6_2, kind##_6_4, NULL                                                         \
        }                                                                                                    \
    }
#elif GEMM_ROWS == 6
#define TABLE(kind)                                                                                          \
    {                                                                                                        \
        {kind##_1_1, kind##_1_2, kind##_1_4, kind##_1_8}, {kind##_2_1, kind##_2_2, kind##_2_4, NULL},        \
            {kind##_3_1, kind##_3_2, NULL, NULL}, {kind##_4_1, kind##_4_2, NULL, NULL},                      \
            {kind##_5_1, kind##_5_2, NULL, NULL}, {                                                          \
            kind##_6_1, kind##_6_2, NULL, NULL                                                               \
        }                                                                                                    \
    }
#else
#define TABLE(kind)                                                                                          \
    {                                                                                                        \
        {kind##_1_1, kind##_1_2, kind##_1_4, kind##_1_8}, {kind##_2_1, kind##_2_2, kind##_2_4, NULL},        \
            {kind##_3_1, kind##_3_2, NULL, NULL}, {                                                          \
            kind##_4_1, kind##_4_2, NULL, NULL                                                               \
        }                                                                                                    \
    }
#endif

static const gemm_block_fn blocks[B_KINDS][GEMM_ROWS][4] = {TABLE(packed), TABLE(plain), TABLE(tail)};

/* Floats of k in one slice: a B slice of the widest usual block is 16 KiB (levels 0, 1) or 32 KiB. */
#if VF_REGISTERS == 32
#define SLICE 128
#else
#define SLICE 256
#endif

typedef struct shape {
    int kind, log_vectors;
    int64_t columns;
} shape;

/* The widest block for `left` columns. Packed: no wider than the panels that exist. Plain: whole blocks
 * first, then one block whose last vector is masked. */
static shape choose(int kind, int64_t rows, int64_t left) {
    int64_t room =
        kind == B_PACKED ? ent_cpu_panels(left) * ENT_CPU_PANEL : (left + VF_LANES - 1) / VF_LANES * VF_LANES;
    for (int log = 3; log > 0; log--) {
        int64_t width = (int64_t)VF_LANES << log;
        if (!blocks[kind][rows - 1][log] || width > room) continue;
        if (kind == B_PACKED && left <= width / 2) continue;
        if (kind == B_PLAIN && width > left) return (shape){B_PLAIN_TAIL, log, left};
        return (shape){kind, log, width < left ? width : left};
    }
    if (kind == B_PLAIN && left < VF_LANES) kind = B_PLAIN_TAIL;
    return (shape){kind, 0, left < VF_LANES ? left : VF_LANES};
}

static void run_slice(gemm_block *block) {
    const ent_cpu_gemm *g = block->g;
    int kind = g->b_stride == 0 ? B_PACKED : B_PLAIN;
    int64_t row_blocks = (g->m + GEMM_ROWS - 1) / GEMM_ROWS;
    int64_t rows_low = g->m / row_blocks, high_blocks = g->m % row_blocks;
    int64_t step = kind == B_PACKED ? ENT_CPU_PANEL : g->b_stride;
    for (int64_t column = 0; column < g->n; column += block->n) {
        shape s = choose(kind, rows_low + (high_blocks > 0), g->n - column);
        int64_t panel = column / ENT_CPU_PANEL * g->b_panel_stride + column % ENT_CPU_PANEL;
        block->b = g->b + (kind == B_PACKED ? panel : column) + block->k0 * step;
        block->column0 = column;
        block->n = s.columns;
        block->row0 = 0;
        for (int64_t i = 0; i < row_blocks; i++) {
            int64_t rows = rows_low + (i < high_blocks);
            blocks[s.kind][rows - 1][s.log_vectors](block);
            block->row0 += rows;
        }
    }
}

void ENT_ISA(ent_cpu_gemm_run)(const ent_cpu_gemm *g) {
    gemm_block block = {.g = g, .k = g->k, .batch1 = g->batch, .first = true, .last = true};
    if (g->m <= GEMM_ROWS || g->k * g->batch <= SLICE + SLICE / 2) {
        run_slice(&block);
        return;
    }
    int64_t slices = (g->k + SLICE - 1) / SLICE;
    int64_t together = slices > 1 ? 1 : SLICE / g->k;
    for (int64_t batch = 0; batch < g->batch; batch += together) {
        block.batch0 = batch;
        block.batch1 = batch + together < g->batch ? batch + together : g->batch;
        for (int64_t i = 0; i < slices; i++) {
            block.k0 = g->k * i / slices;
            block.k = g->k * (i + 1) / slices - block.k0;
            block.first = batch == 0 && i == 0;
            block.last = block.batch1 == g->batch && i == slices - 1;
            run_slice(&block);
        }
    }
}
