/* Bodies of RNN, GRU and LSTM: the sequence written out, X * W' as one product for all steps, h * R' added in
 * each. Long sequences, lengths by row, peepholes and other activations stay one leaf. Source of the
 * formulas: the ONNX schemas of version 22. */
#include "core/graph/decompose.h"

#include <string.h>

#define MAX_STEPS 32 /* of all directions: a body is a handful of nodes a step */

typedef struct recurrence {
    ent_body *body;
    int64_t length, batch, input, hidden, gates;
    uint32_t directions;
    bool reverse; /* the only direction */
    /* of the direction at hand: */
    uint32_t h, c;                    /* states, batch x hidden; NONE: zeros */
    uint32_t weights, w_bias, r_bias; /* R; biases NONE: none */
    uint32_t product;                 /* X * W' + bias, steps * batch rows */
} recurrence;

static bool text_is(const ent_attr *attr, const char *wanted, size_t size) {
    return attr->s.size == size && memcmp(attr->s.data, wanted, size) == 0;
}

/* The activations that the schema means when none are given. */
static bool usual_activations(const ent_body *body) {
    static const char *const usual[3][2] = {{"Tanh", "Tanh,Tanh"},
                                            {"Sigmoid,Tanh", "Sigmoid,Tanh,Sigmoid,Tanh"},
                                            {"Sigmoid,Tanh,Tanh", "Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh"}};
    const ent_attr *attr = ent_attrs_find(body->node.attrs, "activations");
    uint32_t row = body->node.op == ENT_OP_LSTM ? 2 : body->node.op == ENT_OP_GRU ? 1 : 0;
    bool both = ent_attrs_string_is(body->node.attrs, "direction", "forward", "bidirectional");
    return !attr || attr->s.size == 0 || text_is(attr, usual[row][both], strlen(usual[row][both]));
}

static bool all_sized(const ent_body *body) {
    for (uint32_t i = 0; i < body->node.input_count; i++) {
        uint32_t value = body->node.inputs[i];
        if (value != ENT_ID_NONE && ent_value_elements(body->module, value) <= 0) return false;
    }
    return true;
}

static bool read(ent_body *body, recurrence *r) {
    const ent_attrs attrs = body->node.attrs;
    const ent_value *x = ent_body_value(body, ent_body_input(body, 0)),
                    *w = ent_body_value(body, ent_body_input(body, 2));
    memset(r, 0, sizeof *r);
    if (x->dtype != ENT_DTYPE_F32 || !all_sized(body) || !usual_activations(body)) return false;
    if (ent_body_input(body, 4) != ENT_ID_NONE || ent_body_input(body, 7) != ENT_ID_NONE ||
        ent_attrs_find(attrs, "clip") || ent_attrs_int(attrs, "layout", 0) != 0 ||
        ent_attrs_int(attrs, "input_forget", 0) != 0)
        return false;
    r->body = body;
    r->length = x->dims[0];
    r->batch = x->dims[1];
    r->input = x->dims[2];
    r->hidden = w->dims[2];
    r->gates = body->node.op == ENT_OP_LSTM ? 4 : body->node.op == ENT_OP_GRU ? 3 : 1;
    r->directions = ent_attrs_string_is(attrs, "direction", "forward", "bidirectional") ? 2 : 1;
    r->reverse = ent_attrs_string_is(attrs, "direction", "forward", "reverse");
    return r->length * r->directions <= MAX_STEPS;
}

/* Rows first..last of the leading axis, as `rank` dims. A constant needs no node for that. */
static uint32_t rows(ent_body *body, uint32_t value, int64_t first, int64_t last, const int64_t *dims,
                     uint32_t rank) {
    if (body->status || value == ENT_ID_NONE) return ENT_ID_NONE;
    const ent_value *v = ent_body_value(body, value);
    if (v->constant) {
        uint64_t row_bytes = v->constant->tensor.size_bytes / (uint64_t)v->dims[0];
        const char *data = (const char *)v->constant->tensor.data + row_bytes * (uint64_t)first;
        return ent_module_add_constant(body->module, body->node.graph, NULL, v->dtype, rank, dims, data,
                                       row_bytes * (uint64_t)(last - first), true);
    }
    if (last - first < v->dims[0]) value = ent_body_slice(body, value, 0, first, last);
    return ent_body_binary(body, ENT_OP_Reshape, value, ent_body_i64s(body, dims, rank));
}

/* What the gates first..last have of a matrix or vector of rows by gate. */
static uint32_t gate_rows(const recurrence *r, uint32_t value, int64_t first, int64_t last, uint32_t rank) {
    const int64_t dims[2] = {(last - first) * r->hidden, r->hidden};
    return rows(r->body, value, first * r->hidden, last * r->hidden, dims, rank);
}

/* W * X' of the schema: rows of weights are gates. */
static uint32_t product(const recurrence *r, uint32_t x, uint32_t weights, uint32_t add) {
    ent_attr transposed = ent_attr_int("transB", 1);
    return ent_body_add(r->body, ENT_OP_Gemm, ent_attrs_make(r->body->module, &transposed, 1), x, weights,
                        add, ENT_ID_NONE);
}

static uint32_t sum(const recurrence *r, uint32_t a, uint32_t b) {
    return a == ENT_ID_NONE ? b : b == ENT_ID_NONE ? a : ent_body_binary(r->body, ENT_OP_Add, a, b);
}

/* Both biases of all gates. */
static uint32_t sum_biases(const recurrence *r) {
    ent_body *body = r->body;
    if (body->status || r->w_bias == ENT_ID_NONE) return ENT_ID_NONE;
    const ent_value *w = ent_body_value(body, r->w_bias), *h = ent_body_value(body, r->r_bias);
    if (!w->constant || !h->constant) return sum(r, r->w_bias, r->r_bias);
    const float *a = w->constant->tensor.data, *b = h->constant->tensor.data;
    float *both = ent_arena_alloc(body->module->arena, w->constant->tensor.size_bytes);
    for (int64_t i = 0; i < w->dims[0]; i++) both[i] = a[i] + b[i];
    return ent_module_add_constant(body->module, body->node.graph, NULL, ENT_DTYPE_F32, 1, w->dims, both,
                                   w->constant->tensor.size_bytes, true);
}

static uint32_t gate(const recurrence *r, uint32_t gates, int64_t first, int64_t last) {
    return ent_body_slice(r->body, gates, 1, first * r->hidden, last * r->hidden);
}

static bool resets_late(const recurrence *r) {
    return r->body->node.op == ENT_OP_GRU &&
           ent_attrs_int(r->body->node.attrs, "linear_before_reset", 0) != 0;
}

static void begin_direction(recurrence *r, int64_t d) {
    ent_body *body = r->body;
    const int64_t gates = r->gates * r->hidden, w[2] = {gates, r->input}, h[2] = {gates, r->hidden},
                  state[2] = {r->batch, r->hidden}, bias[2] = {2, gates}, flat[2] = {-1, r->input};
    uint32_t weights = rows(body, ent_body_input(body, 1), d, d + 1, w, 2);
    r->weights = rows(body, ent_body_input(body, 2), d, d + 1, h, 2);
    uint32_t biases = rows(body, ent_body_input(body, 3), d, d + 1, bias, 2);
    r->w_bias = rows(body, biases, 0, 1, &gates, 1);
    r->r_bias = rows(body, biases, 1, 2, &gates, 1);
    r->h = rows(body, ent_body_input(body, 5), d, d + 1, state, 2);
    r->c = rows(body, ent_body_input(body, 6), d, d + 1, state, 2);
    uint32_t add = resets_late(r) ? r->w_bias : sum_biases(r); /* a late reset takes the biases apart */
    uint32_t shape = ent_body_i64s(body, flat, 2);
    uint32_t x = ent_body_binary(body, ENT_OP_Reshape, ent_body_input(body, 0), shape);
    r->product = product(r, x, weights, add);
}

static void rnn_step(recurrence *r, uint32_t x) {
    uint32_t in = r->h == ENT_ID_NONE ? x : product(r, r->h, r->weights, x);
    r->h = ent_body_unary(r->body, ENT_OP_Tanh, in);
}

/* Gates i, o, f, c. */
static void lstm_step(recurrence *r, uint32_t x) {
    ent_body *body = r->body;
    uint32_t in = r->h == ENT_ID_NONE ? x : product(r, r->h, r->weights, x);
    uint32_t three = ent_body_unary(body, ENT_OP_Sigmoid, gate(r, in, 0, 3));
    uint32_t cell = ent_body_unary(body, ENT_OP_Tanh, gate(r, in, 3, 4));
    uint32_t added = ent_body_binary(body, ENT_OP_Mul, gate(r, three, 0, 1), cell);
    if (r->c == ENT_ID_NONE)
        r->c = added;
    else
        r->c = ent_body_binary(body, ENT_OP_Add, added,
                               ent_body_binary(body, ENT_OP_Mul, gate(r, three, 2, 3), r->c));
    uint32_t shown = ent_body_unary(body, ENT_OP_Tanh, r->c);
    r->h = ent_body_binary(body, ENT_OP_Mul, gate(r, three, 1, 2), shown);
}

/* Gates z, r, h. What the last one has of the past: reset * (h R' + bias), or (reset * h) R'. */
static uint32_t gru_past(const recurrence *r, uint32_t reset) {
    bool late = resets_late(r);
    uint32_t past = late ? gate_rows(r, r->r_bias, 2, 3, 1) : ENT_ID_NONE;
    if (r->h != ENT_ID_NONE) {
        uint32_t h = late ? r->h : ent_body_binary(r->body, ENT_OP_Mul, reset, r->h);
        past = product(r, h, gate_rows(r, r->weights, 2, 3, 2), past);
    }
    return late && past != ENT_ID_NONE ? ent_body_binary(r->body, ENT_OP_Mul, reset, past) : past;
}

static void gru_step(recurrence *r, uint32_t x) {
    ent_body *body = r->body;
    uint32_t in = gate(r, x, 0, 2);
    if (r->h != ENT_ID_NONE) in = product(r, r->h, gate_rows(r, r->weights, 0, 2, 2), in);
    if (resets_late(r)) in = sum(r, in, gate_rows(r, r->r_bias, 0, 2, 1));
    uint32_t two = ent_body_unary(body, ENT_OP_Sigmoid, in), z = gate(r, two, 0, 1);
    uint32_t past = gru_past(r, gate(r, two, 1, 2));
    uint32_t now = ent_body_unary(body, ENT_OP_Tanh, sum(r, gate(r, x, 2, 3), past));
    if (r->h == ENT_ID_NONE) {
        uint32_t kept = ent_body_binary(body, ENT_OP_Mul, z, now);
        r->h = ent_body_binary(body, ENT_OP_Sub, now, kept);
        return;
    }
    uint32_t change = ent_body_binary(body, ENT_OP_Sub, r->h, now);
    r->h = ent_body_binary(body, ENT_OP_Add, now, ent_body_binary(body, ENT_OP_Mul, z, change));
}

static void run_direction(recurrence *r, bool reverse, uint32_t *out_steps) {
    for (int64_t step = 0; step < r->length; step++) {
        int64_t t = reverse ? r->length - 1 - step : step;
        uint32_t x = r->product;
        if (r->length > 1) x = ent_body_slice(r->body, x, 0, t * r->batch, (t + 1) * r->batch);
        if (r->body->node.op == ENT_OP_LSTM)
            lstm_step(r, x);
        else if (r->body->node.op == ENT_OP_GRU)
            gru_step(r, x);
        else
            rnn_step(r, x);
        out_steps[t * r->directions] = r->h;
    }
}

/* The parts, each batch x hidden, one after another in the shape of `output`. */
static void join(const recurrence *r, const uint32_t *parts, uint32_t count, uint32_t output) {
    ent_attr axis = ent_attr_int("axis", 0);
    if (output == ENT_ID_NONE) return;
    uint32_t joined = parts[0];
    ent_attrs attrs = ent_attrs_make(r->body->module, &axis, 1);
    if (count > 1) joined = ent_body_add_list(r->body, ENT_OP_Concat, attrs, parts, count, ENT_ID_NONE);
    ent_body_reshape_like(r->body, joined, output, output);
}

static bool write_out(ent_body *body) {
    recurrence r;
    uint32_t steps[MAX_STEPS], h[2], c[2];
    if (!read(body, &r)) return false;
    for (uint32_t d = 0; d < r.directions; d++) {
        begin_direction(&r, d);
        run_direction(&r, d == 1 || r.reverse, steps + d);
        h[d] = r.h;
        c[d] = r.c;
    }
    join(&r, steps, (uint32_t)r.length * r.directions, ent_body_output(body, 0));
    join(&r, h, r.directions, ent_body_output(body, 1));
    if (body->node.op == ENT_OP_LSTM) join(&r, c, r.directions, ent_body_output(body, 2));
    return true;
}

bool ent_decompose_RNN(ent_body *body) {
    return write_out(body);
}

bool ent_decompose_GRU(ent_body *body) {
    return write_out(body);
}

bool ent_decompose_LSTM(ent_body *body) {
    return write_out(body);
}
