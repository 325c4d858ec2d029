/* RNN, GRU and LSTM over a sequence: layouts, directions, lengths of the sequences. X * W' is one product a
 * direction, each step then adds h * R'. Source: the ONNX schemas of version 22. */
#include "core/ops/recurrent.h"

#include <string.h>

typedef struct recurrent {
    int64_t length, batch, input, hidden, gates;
    uint32_t directions;
    bool reverse;     /* the only direction */
    bool batch_first; /* layout 1 */
    ent_ops_activation activation[6];
} recurrent;

static bool same(const ent_tensor *tensor, uint32_t rank, int64_t a, int64_t b, int64_t c) {
    const int64_t dims[3] = {a, b, c};
    if (!tensor) return true;
    for (uint32_t i = 0; i < rank && tensor->rank == rank; i++)
        if (tensor->dims[i] != dims[i]) return false;
    return tensor->rank == rank;
}

static bool inputs_fit(const ent_ops_call *call, const recurrent *r) {
    int64_t d = r->directions, rows = r->gates * r->hidden;
    bool fits = same(ent_ops_input(call, 1), 3, d, rows, r->input) &&
                same(ent_ops_input(call, 2), 3, d, rows, r->hidden) &&
                same(ent_ops_input(call, 3), 2, d, 2 * rows, 0) &&
                same(ent_ops_input(call, 4), 1, r->batch, 0, 0) &&
                same(ent_ops_input(call, 7), 2, d, 3 * r->hidden, 0);
    for (uint32_t i = 5; i < 7; i++)
        fits = fits && same(ent_ops_input(call, i), 3, r->batch_first ? r->batch : d,
                            r->batch_first ? d : r->batch, r->hidden);
    return fits;
}

static ent_code recurrent_resolve(ent_ops_call *call, recurrent *r) {
    const ent_tensor *x = ent_ops_input(call, 0), *recurrence = ent_ops_input(call, 2);
    if (x->rank != 3 || recurrence->rank != 3)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "X and R need rank 3");
    bool both = ent_attrs_string_is(call->attrs, "direction", "forward", "bidirectional");
    r->reverse = ent_attrs_string_is(call->attrs, "direction", "forward", "reverse");
    if (!both && !r->reverse && !ent_attrs_string_is(call->attrs, "direction", "forward", "forward"))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the direction is unknown");
    r->batch_first = ent_attrs_int(call->attrs, "layout", 0) != 0;
    r->length = x->dims[r->batch_first ? 1 : 0];
    r->batch = x->dims[r->batch_first ? 0 : 1];
    r->input = x->dims[2];
    r->directions = both ? 2 : 1;
    r->gates = call->op == ENT_OP_LSTM ? 4 : call->op == ENT_OP_GRU ? 3 : 1;
    r->hidden = recurrence->dims[2];
    if (!inputs_fit(call, r) || ent_attrs_int(call->attrs, "hidden_size", r->hidden) != r->hidden)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the weights or states do not fit X or hidden_size");
    return ent_ops_activations_read(call, r->directions, r->activation);
}

ent_code ent_ops_dims_recurrent(ent_ops_call *call, ent_tensor *outputs) {
    recurrent r;
    ent_code code = recurrent_resolve(call, &r);
    if (code != ENT_OK) return code;
    int64_t d = r.directions;
    const int64_t sequence[2][4] = {{r.length, d, r.batch, r.hidden}, {r.batch, r.length, d, r.hidden}},
                  state[2][3] = {{d, r.batch, r.hidden}, {r.batch, d, r.hidden}};
    uint32_t dtype = ent_ops_input(call, 0)->dtype;
    ent_ops_dims_set(&outputs[0], dtype, 4, sequence[r.batch_first]);
    for (uint32_t i = 1; i < call->output_count; i++)
        ent_ops_dims_set(&outputs[i], dtype, 3, state[r.batch_first]);
    return ENT_OK;
}

typedef struct recurrent_data {
    const double *x, *w, *r, *bias, *peephole; /* x: length x batch x input */
    const int64_t *lengths;
    double *product, *y, *h, *c; /* length x batch x gates * hidden; y, h, c as layout 0 stores them */
    bool *active;
} recurrent_data;

/* a x b x rest -> b x a x rest */
static double *swap_axes(ent_ops_call *call, const double *from, int64_t a, int64_t b, int64_t rest) {
    double *to = ent_ops_scratch(call, a * b * rest, sizeof *to);
    for (int64_t i = 0; to && i < a; i++)
        for (int64_t j = 0; j < b && rest > 0; j++)
            memcpy(to + (j * a + i) * rest, from + (i * b + j) * rest, (size_t)rest * sizeof *to);
    return to;
}

/* An initial state as directions x batch x hidden; zeros when absent. */
static double *read_state(ent_ops_call *call, const recurrent *r, uint32_t index) {
    const ent_tensor *tensor = ent_ops_input(call, index);
    int64_t count = r->directions * r->batch * r->hidden;
    if (tensor && r->batch_first) {
        double *values = ent_ops_values_f64(call, tensor);
        return values ? swap_axes(call, values, r->batch, r->directions, r->hidden) : NULL;
    }
    if (tensor) return ent_ops_values_f64(call, tensor);
    double *zeros = ent_ops_scratch(call, count, sizeof *zeros);
    for (int64_t i = 0; zeros && i < count; i++) zeros[i] = 0;
    return zeros;
}

static ent_code load(ent_ops_call *call, const recurrent *r, recurrent_data *d) {
    const ent_tensor *bias = ent_ops_input(call, 3), *lengths = ent_ops_input(call, 4),
                     *peep = ent_ops_input(call, 7);
    int64_t outputs = r->length * r->directions * r->batch * r->hidden;
    d->x = ent_ops_values_f64(call, ent_ops_input(call, 0));
    if (d->x && r->batch_first) d->x = swap_axes(call, d->x, r->batch, r->length, r->input);
    d->w = ent_ops_values_f64(call, ent_ops_input(call, 1));
    d->r = ent_ops_values_f64(call, ent_ops_input(call, 2));
    d->bias = bias ? ent_ops_values_f64(call, bias) : NULL;
    d->peephole = peep ? ent_ops_values_f64(call, peep) : NULL;
    d->lengths = lengths ? ent_ops_values_i64(call, lengths) : NULL;
    d->product = ent_ops_scratch(call, r->length * r->batch * r->gates * r->hidden, sizeof(double));
    d->y = ent_ops_scratch(call, outputs, sizeof(double));
    d->h = read_state(call, r, 5);
    d->c = read_state(call, r, 6);
    d->active = ent_ops_scratch(call, r->batch, sizeof *d->active);
    if (!d->x || !d->w || !d->r || (bias && !d->bias) || (peep && !d->peephole) || (lengths && !d->lengths) ||
        !d->product || !d->y || !d->h || !d->c || !d->active)
        return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t b = 0; d->lengths && b < r->batch; b++)
        if (d->lengths[b] < 0 || d->lengths[b] > r->length)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "sequence length %lld is outside 0..%lld",
                                  (long long)d->lengths[b], (long long)r->length);
    for (int64_t i = 0; i < outputs; i++) d->y[i] = 0; /* what lies behind the end of a sequence */
    return ENT_OK;
}

/* A reversed direction starts at the end of the longest sequence; shorter ones join in at theirs. */
static void run_direction(const recurrent *r, const recurrent_data *d, const ent_ops_cell *cell,
                          uint32_t direction, bool reverse) {
    int64_t row = r->gates * r->hidden, states = r->batch * r->hidden;
    for (int64_t i = 0; i < r->length * r->batch * row; i++) d->product[i] = 0;
    ent_ops_gemm(cell->workspace, r->length * r->batch, row, r->input, (ent_ops_matrix){d->x, r->input, 1},
                 (ent_ops_matrix){d->w + direction * row * r->input, 1, r->input}, d->product, row);
    for (int64_t step = 0; step < r->length; step++) {
        int64_t t = reverse ? r->length - 1 - step : step;
        for (int64_t b = 0; b < r->batch; b++) d->active[b] = !d->lengths || t < d->lengths[b];
        ent_ops_cell_step(cell, d->product + t * r->batch * row, row, d->active);
        double *y = d->y + (t * r->directions + direction) * states;
        for (int64_t i = 0; i < states; i++) y[i] = d->active[i / r->hidden] ? cell->h[i] : 0;
    }
}

static ent_code run(ent_ops_call *call, const recurrent *r, const recurrent_data *d) {
    int64_t row = r->gates * r->hidden, states = r->batch * r->hidden;
    uint32_t each = ent_ops_activation_count(call->op);
    ent_ops_cell cell = {.op = call->op,
                         .batch = r->batch,
                         .hidden = r->hidden,
                         .gates = r->gates,
                         .clip = ent_attrs_float(call->attrs, "clip", 0),
                         .linear_before_reset = ent_attrs_int(call->attrs, "linear_before_reset", 0) != 0,
                         .input_forget = ent_attrs_int(call->attrs, "input_forget", 0) != 0,
                         .gate = ent_ops_scratch(call, r->batch * row, sizeof(double)),
                         .reset = ent_ops_scratch(call, states, sizeof(double)),
                         .workspace = ent_ops_gemm_workspace(call)};
    if (!cell.gate || !cell.reset || !cell.workspace) return ENT_CODE_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < r->directions; i++) {
        for (uint32_t k = 0; k < each; k++) cell.activation[k] = r->activation[i * each + k];
        cell.recurrent = d->r + i * row * r->hidden;
        cell.w_bias = d->bias ? d->bias + i * 2 * row : NULL;
        cell.r_bias = d->bias ? d->bias + i * 2 * row + row : NULL;
        cell.peephole = d->peephole ? d->peephole + i * 3 * r->hidden : NULL;
        cell.h = d->h + i * states;
        cell.c = d->c + i * states;
        run_direction(r, d, &cell, i, r->reverse || i == 1);
    }
    return ENT_OK;
}

ent_code ent_ops_recurrent(ent_ops_call *call) {
    recurrent r;
    recurrent_data d;
    ent_code code = recurrent_resolve(call, &r);
    if (code == ENT_OK) code = load(call, &r, &d);
    if (code == ENT_OK) code = run(call, &r, &d);
    if (code != ENT_OK) return code;
    double *y = d.y, *state[2] = {d.h, d.c};
    if (r.batch_first) { /* length x directions x batch x hidden -> batch x length x directions x hidden */
        y = swap_axes(call, d.y, r.length * r.directions, r.batch, r.hidden);
        for (int i = 0; i < 2; i++) state[i] = swap_axes(call, state[i], r.directions, r.batch, r.hidden);
        if (!y || !state[0] || !state[1]) return ENT_CODE_OUT_OF_MEMORY;
    }
    ent_ops_result_f64(ent_ops_output(call, 0), y);
    ent_ops_result_f64(ent_ops_output(call, 1), state[0]);
    ent_ops_result_f64(ent_ops_output(call, 2), state[1]);
    return ENT_OK;
}
