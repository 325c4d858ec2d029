/* RNN, GRU and LSTM: what recurrent.c (shapes, directions, steps) and recurrent_cell.c (one step) share. */
#ifndef ENT_OPS_RECURRENT_H
#define ENT_OPS_RECURRENT_H

#include "core/ops/internal.h"

#define ENT_OPS_GATES 4

typedef struct ent_ops_activation {
    uint32_t kind; /* index in the list of recurrent_cell.c */
    double alpha, beta;
} ent_ops_activation;

/* One direction at one step. Gates lie side by side in a row of gates * hidden. */
typedef struct ent_ops_cell {
    uint32_t op;
    int64_t batch, hidden, gates;
    ent_ops_activation activation[3];
    double clip; /* of what goes into an activation; 0: none */
    bool linear_before_reset, input_forget;
    const double *recurrent;                  /* gates * hidden x hidden */
    const double *w_bias, *r_bias, *peephole; /* NULL: none */
    double *h, *c;                            /* batch x hidden: the state */
    double *gate, *reset;                     /* batch x gates * hidden; batch x hidden: scratch */
    double *workspace;
} ent_ops_cell;

/* Number of activation functions a direction has. */
uint32_t ent_ops_activation_count(uint32_t op);
/* Those of all directions, with their parameters. */
ent_code ent_ops_activations_read(ent_ops_call *call, uint32_t directions, ent_ops_activation *out);
/* One step of the rows b for which active[b]; others keep their state. x: X * W' of this step, batch rows
 * `row_stride` apart. */
void ent_ops_cell_step(const ent_ops_cell *cell, const double *x, int64_t row_stride, const bool *active);

#endif
