/* A matrix multiply with its loops and loads as one step: what exec_gemm_match.c finds and exec_gemm.c runs.
 */
#ifndef ENT_CPU_EXEC_GEMM_H
#define ENT_CPU_EXEC_GEMM_H

#include "exec.h"

#define GEMM_MAX_LOOPS 6

typedef enum gemm_b_form {
    GEMM_B_PANELS, /* stored in panels of ENT_CPU_PANEL columns */
    GEMM_B_ROWS,   /* columns are contiguous */
    GEMM_B_PACK    /* packed by each thread, once for each tile of B */
} gemm_b_form;

typedef struct gemm_loop {
    uint32_t variable;
    int64_t begin, step, trips;
} gemm_loop;

typedef struct gemm_data {
    exec_access a, b;       /* the plan's, without the terms of merged loops */
    uint32_t m_axes;        /* of the accumulator; the next axis is n */
    uint32_t a_k, b_k, b_n; /* dims of the accesses; NONE where the extent is 1 */
    int64_t k;              /* of one batch */
    gemm_b_form b_form;
    bool a_runs; /* k is contiguous in A */
    /* Products of bytes: both operands packed or in panels, k of each batch up to whole groups of k. */
    bool integer, a_signed, b_signed;
    int32_t a_zero, b_zero;
    int64_t batch_k;
    gemm_loop loops[GEMM_MAX_LOOPS];
    uint32_t loop_count;
    int64_t batches;
    int64_t a_k_least, a_k_most; /* what the loops add to A's k */
    int64_t *a_moves;            /* [batches][a.rank]: what the loops add to A's coordinates */
    int64_t *b_moves;            /* [batches][b.rank] */
    /* A loop whose rounds lie side by side in A and in B (taps of few channels) is part of k. NONE: there is
     * none. */
    uint32_t row_dim;                   /* of A */
    int64_t row_step, row_trips, row_k; /* coordinate step, rounds, elements of one round */
    const float *zeros;
    uint32_t bias; /* access, or NONE */
    double bias_outside;
    uint32_t add; /* tile added before the clip, or NONE */
    bool clip;
    float lo, hi;
    size_t a_rows, c_rows, add_rows, border_rows, packed_a, packed_b, bias_row; /* places in scratch */
} gemm_data;

/* What one instance of a step works on. Pointers to float are addresses of elements: of bytes for integers.
 */
typedef struct gemm_work {
    exec_run *run;
    const gemm_data *g;
    int64_t m[3], rows, n; /* extents of the row axes, the last in m[2]; 1 before the first */
    int64_t stride[3];     /* of A along them */
    uint32_t first;        /* slot of the first row axis */
    int64_t a_start[ENT_MAX_RANK], b_start[ENT_MAX_RANK];
    const void *a, *b; /* buffers */
    char *border;      /* free room for border rows */
} gemm_work;

/* ---- exec_gemm.c ---- */
void gemm_start(exec_run *run, const exec_step *step, gemm_work *w);
/* The positions of each row axis at which a batch's coordinates are inside; false when there are none. */
bool gemm_rows_inside(const gemm_work *w, const int64_t *moves, int64_t *lo, int64_t *hi);
int64_t gemm_batch_offset(const exec_access *access, const int64_t *start, const int64_t *moves);
int64_t gemm_b_offset(const gemm_work *w, int64_t batch); /* in elements */
/* Rows of a tile: one stride where the row axes allow it, else pointers, at `room` in scratch. */
ent_cpu_rows gemm_rows_of(const gemm_work *w, uint32_t tile, size_t room);
size_t gemm_claim(size_t *offset, size_t bytes);
/* ---- exec_gemm_integer.c ---- */
/* Whether the kernel can take operands that lie so; settles b_form and batch_k. After the batches are made.
 */
bool gemm_integer_settle(exec_plan *plan, gemm_data *g);
size_t gemm_integer_scratch(exec_plan *plan, exec_step *nest, size_t offset);

#endif
