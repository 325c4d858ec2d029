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

#endif
