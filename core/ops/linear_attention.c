/* LinearAttention and CausalConvWithState: recurrences with a state that comes in and goes out.
 * Source: the ONNX schemas of version 27 and the reference evaluator of onnx. */
#include "core/ops/internal.h"

#include <math.h>

typedef struct linear {
    int64_t batch, length, q_heads, kv_heads, size, v_size;
    bool gated, delta, wide_decay, wide_beta; /* wide: a decay per element of the key, a beta per head */
} linear;

static bool same3(const ent_tensor *tensor, int64_t a, int64_t b, int64_t c) {
    return tensor->rank == 3 && tensor->dims[0] == a && tensor->dims[1] == b && tensor->dims[2] == c;
}

static ent_code read_gates(ent_ops_call *call, linear *l) {
    const ent_tensor *decay = ent_ops_input(call, 4), *beta = ent_ops_input(call, 5);
    const char *rule = "update_rule", *missing = "gated_delta";
    bool both = ent_attrs_string_is(call->attrs, rule, missing, "gated_delta");
    l->gated = both || ent_attrs_string_is(call->attrs, rule, missing, "gated");
    l->delta = both || ent_attrs_string_is(call->attrs, rule, missing, "delta");
    if (!l->gated && !l->delta && !ent_attrs_string_is(call->attrs, rule, missing, "linear"))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the update rule is unknown");
    if (l->gated != (decay != NULL) || l->delta != (beta != NULL))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "decay or beta does not go with the update rule");
    /* With one element a key both readings of the decay are the same. */
    l->wide_decay = decay && decay->rank == 3 && decay->dims[2] != l->kv_heads;
    l->wide_beta = beta && beta->rank == 3 && beta->dims[2] == l->kv_heads;
    bool fits =
        (!decay || same3(decay, l->batch, l->length, l->wide_decay ? l->kv_heads * l->size : l->kv_heads)) &&
        (!beta || same3(beta, l->batch, l->length, l->wide_beta ? l->kv_heads : 1));
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "decay or beta has dims that do not fit");
}

static ent_code linear_resolve(ent_ops_call *call, linear *l) {
    const ent_tensor *q = ent_ops_input(call, 0), *k = ent_ops_input(call, 1), *v = ent_ops_input(call, 2),
                     *past = ent_ops_input(call, 3);
    l->q_heads = ent_attrs_int(call->attrs, "q_num_heads", 0);
    l->kv_heads = ent_attrs_int(call->attrs, "kv_num_heads", 0);
    bool fits = l->q_heads > 0 && l->kv_heads > 0 && l->q_heads % l->kv_heads == 0 && q->rank == 3 &&
                v->rank == 3 && q->dims[2] % l->q_heads == 0 && v->dims[2] % l->kv_heads == 0;
    if (fits) {
        l->batch = q->dims[0];
        l->length = q->dims[1];
        l->size = q->dims[2] / l->q_heads;
        l->v_size = v->dims[2] / l->kv_heads;
        fits = same3(k, l->batch, l->length, l->kv_heads * l->size) &&
               same3(v, l->batch, l->length, v->dims[2]) &&
               (!past || (past->rank == 4 && past->dims[0] == l->batch && past->dims[1] == l->kv_heads &&
                          past->dims[2] == l->size && past->dims[3] == l->v_size));
    }
    if (!fits)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "query, key, value and state do not fit together in these heads");
    return read_gates(call, l);
}

ent_code ent_ops_dims_linear_attention(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *q = ent_ops_input(call, 0), *past = ent_ops_input(call, 3);
    linear l;
    ent_code code = linear_resolve(call, &l);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(q, &outputs[0]);
    outputs[0].dims[2] = l.q_heads * l.v_size;
    if (call->output_count < 2) return ENT_OK;
    const int64_t state[4] = {l.batch, l.kv_heads, l.size, l.v_size};
    ent_ops_dims_set(&outputs[1], past ? past->dtype : q->dtype, 4, state);
    return ENT_OK;
}

typedef struct linear_data {
    const double *q, *k, *v, *decay, *beta;
    double *state, *correction, *y, scale;
} linear_data;

/* One key/value head at one place: the state moves on, then its query heads read it. */
static void advance(const linear *l, const linear_data *d, int64_t batch, int64_t t, int64_t head) {
    int64_t place = batch * l->length + t, group = l->q_heads / l->kv_heads;
    double *state = d->state + (batch * l->kv_heads + head) * l->size * l->v_size, *write = d->correction;
    const double *k = d->k + (place * l->kv_heads + head) * l->size,
                 *v = d->v + (place * l->kv_heads + head) * l->v_size;
    for (int64_t i = 0; l->gated && i < l->size * l->v_size; i++)
        state[i] *= exp(l->wide_decay ? d->decay[(place * l->kv_heads + head) * l->size + i / l->v_size]
                                      : d->decay[place * l->kv_heads + head]);
    for (int64_t m = 0; m < l->v_size; m++) {
        write[m] = v[m];
        for (int64_t i = 0; l->delta && i < l->size; i++) write[m] -= state[i * l->v_size + m] * k[i];
        if (l->delta) write[m] *= l->wide_beta ? d->beta[place * l->kv_heads + head] : d->beta[place];
    }
    for (int64_t i = 0; i < l->size * l->v_size; i++) state[i] += k[i / l->v_size] * write[i % l->v_size];
    for (int64_t h = head * group; h < (head + 1) * group; h++) {
        const double *q = d->q + (place * l->q_heads + h) * l->size;
        double *y = d->y + (place * l->q_heads + h) * l->v_size;
        for (int64_t m = 0; m < l->v_size; m++) {
            y[m] = 0;
            for (int64_t i = 0; i < l->size; i++) y[m] += q[i] * state[i * l->v_size + m];
            y[m] *= d->scale;
        }
    }
}

ent_code ent_ops_linear_attention(ent_ops_call *call) {
    const ent_tensor *past = ent_ops_input(call, 3), *decay = ent_ops_input(call, 4),
                     *beta = ent_ops_input(call, 5);
    linear l;
    ent_code code = linear_resolve(call, &l);
    if (code != ENT_OK) return code;
    int64_t states = l.batch * l.kv_heads * l.size * l.v_size;
    linear_data d = {.q = ent_ops_values_f64(call, ent_ops_input(call, 0)),
                     .k = ent_ops_values_f64(call, ent_ops_input(call, 1)),
                     .v = ent_ops_values_f64(call, ent_ops_input(call, 2)),
                     .decay = decay ? ent_ops_values_f64(call, decay) : NULL,
                     .beta = beta ? ent_ops_values_f64(call, beta) : NULL,
                     .state = past ? ent_ops_values_f64(call, past)
                                   : ent_ops_scratch(call, states, sizeof(double)),
                     .correction = ent_ops_scratch(call, l.v_size, sizeof(double)),
                     .y = ent_ops_scratch(call, l.batch * l.length * l.q_heads * l.v_size, sizeof(double)),
                     .scale = ent_attrs_float(call->attrs, "scale", 0)};
    if (!d.q || !d.k || !d.v || (decay && !d.decay) || (beta && !d.beta) || !d.state || !d.correction || !d.y)
        return ENT_CODE_OUT_OF_MEMORY;
    if (d.scale == 0) d.scale = 1 / sqrt((double)l.size);
    for (int64_t i = 0; !past && i < states; i++) d.state[i] = 0;
    for (int64_t b = 0; b < l.batch; b++)
        for (int64_t t = 0; t < l.length; t++)
            for (int64_t h = 0; h < l.kv_heads; h++) advance(&l, &d, b, t, h);
    ent_ops_result_f64(ent_ops_output(call, 0), d.y);
    ent_ops_result_f64(ent_ops_output(call, 1), d.state);
    return ENT_OK;
}

/* ---- CausalConvWithState ---- */

ent_code ent_ops_dims_causal_conv(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *w = ent_ops_input(call, 1), *bias = ent_ops_input(call, 2),
                     *past = ent_ops_input(call, 3);
    bool fits = x->rank == 3 && w->rank == 3 && w->dims[0] == x->dims[1] && w->dims[1] == 1 &&
                w->dims[2] >= 1 && (!bias || (bias->rank == 1 && bias->dims[0] == x->dims[1])) &&
                (!past || same3(past, x->dims[0], x->dims[1], w->dims[2] - 1));
    if (!fits)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "input, weight, bias and state do not fit together");
    if (!ent_attrs_string_is(call->attrs, "activation", "none", "none") &&
        !ent_attrs_string_is(call->attrs, "activation", "none", "silu") &&
        !ent_attrs_string_is(call->attrs, "activation", "none", "swish"))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the activation is not none, silu or swish");
    ent_ops_dims_copy(x, &outputs[0]);
    if (call->output_count < 2) return ENT_OK;
    ent_ops_dims_copy(x, &outputs[1]);
    outputs[1].dims[2] = w->dims[2] - 1;
    return ENT_OK;
}

ent_code ent_ops_causal_conv(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *w = ent_ops_input(call, 1), *bias = ent_ops_input(call, 2),
                     *past = ent_ops_input(call, 3);
    int64_t rows = x->dims[0] * x->dims[1], channels = x->dims[1], length = x->dims[2], taps = w->dims[2];
    int64_t whole = length + taps - 1;
    double *line = ent_ops_scratch(call, whole, sizeof(double)), *values = ent_ops_values_f64(call, x),
           *weights = ent_ops_values_f64(call, w),
           *state = ent_ops_scratch(call, rows * (taps - 1), sizeof(double)),
           *before = past ? ent_ops_values_f64(call, past) : NULL;
    if (!line || !values || !weights || !state || (past && !before)) return ENT_CODE_OUT_OF_MEMORY;
    bool silu = !ent_attrs_string_is(call->attrs, "activation", "none", "none");
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < taps - 1; i++) line[i] = before ? before[r * (taps - 1) + i] : 0;
        for (int64_t i = 0; i < length; i++) line[taps - 1 + i] = values[r * length + i];
        for (int64_t i = 0; i < length; i++) {
            double sum = bias ? ent_ops_load_f64(bias->data, bias->dtype, r % channels) : 0;
            for (int64_t k = 0; k < taps; k++) sum += line[i + k] * weights[r % channels * taps + k];
            values[r * length + i] = silu ? sum / (1 + exp(-sum)) : sum;
        }
        for (int64_t i = 0; i < taps - 1; i++) state[r * (taps - 1) + i] = line[whole - (taps - 1) + i];
    }
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    ent_ops_result_f64(ent_ops_output(call, 1), state);
    return ENT_OK;
}
