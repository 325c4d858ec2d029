/* Shape rules: recurrent operators, rotary embedding, linear attention, causal convolution. */
#include "core/graph/infer.h"

static ent_status bad_shapes(const ent_infer *infer, const char *what) {
    return ent_infer_fail(infer, "shape.sequence", "%s: inputs %s, %s, %s", what, ent_infer_text(infer, 0),
                          ent_infer_text(infer, 1), ent_infer_text(infer, 2));
}

/* X: length x batch x input, with layout 1 batch x length x input; R: directions x gates * hidden x hidden.
 */
static ent_status infer_recurrent(ent_infer *infer, int64_t gates) {
    const ent_value *x = ent_infer_input(infer, 0), *w = ent_infer_input(infer, 1),
                    *r = ent_infer_input(infer, 2);
    if (x->rank != 3 || w->rank != 3 || r->rank != 3) return bad_shapes(infer, "X, W and R need rank 3");
    int64_t directions = ent_attrs_string_is(infer->attrs, "direction", "forward", "bidirectional") ? 2 : 1;
    int64_t stated = ent_attrs_int(infer->attrs, "hidden_size", 0);
    ent_dim hidden = r->dims[2], rows = ent_infer_dim(infer, ENT_EXPR_MUL, hidden, gates);
    bool fits = !ent_infer_differ(infer, w->dims[0], directions) &&
                !ent_infer_differ(infer, r->dims[0], directions) &&
                !ent_infer_differ(infer, w->dims[1], rows) && !ent_infer_differ(infer, r->dims[1], rows) &&
                !ent_infer_differ(infer, w->dims[2], x->dims[2]) &&
                (stated <= 0 || !ent_infer_differ(infer, stated, hidden));
    if (!fits) return bad_shapes(infer, "W and R do not fit X, the direction or hidden_size");
    bool batch_first = ent_attrs_int(infer->attrs, "layout", 0) != 0;
    ent_dim length = x->dims[batch_first], batch = x->dims[!batch_first];
    ent_dim sequence[2][4] = {{length, directions, batch, hidden}, {batch, length, directions, hidden}},
            state[2][3] = {{directions, batch, hidden}, {batch, directions, hidden}};
    ent_infer_set(infer, 0, x->dtype, 4, sequence[batch_first]);
    ent_infer_set(infer, 1, x->dtype, 3, state[batch_first]);
    ent_infer_set(infer, 2, x->dtype, 3, state[batch_first]);
    return NULL;
}

ent_status ent_infer_RNN(ent_infer *infer) {
    return infer_recurrent(infer, 1);
}

ent_status ent_infer_GRU(ent_infer *infer) {
    return infer_recurrent(infer, 3);
}

ent_status ent_infer_LSTM(ent_infer *infer) {
    return infer_recurrent(infer, 4);
}

ent_status ent_infer_RotaryEmbedding(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *positions = ent_infer_input(infer, 3);
    int64_t heads = ent_attrs_int(infer->attrs, "num_heads", 0);
    uint32_t cache_rank = positions ? 2 : 3;
    bool fits = (x->rank == 4 || (x->rank == 3 && heads > 0)) && (!positions || positions->rank == 2);
    for (uint32_t i = 1; fits && i < 3; i++) fits = ent_infer_input(infer, i)->rank == cache_rank;
    if (!fits)
        return bad_shapes(infer,
                          "the ranks of input, caches and positions do not fit, or num_heads is missing");
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_LinearAttention(ent_infer *infer) {
    const ent_value *q = ent_infer_input(infer, 0), *k = ent_infer_input(infer, 1),
                    *v = ent_infer_input(infer, 2), *past = ent_infer_input(infer, 3);
    int64_t heads = ent_attrs_int(infer->attrs, "q_num_heads", 0),
            kv_heads = ent_attrs_int(infer->attrs, "kv_num_heads", 0);
    if (heads <= 0 || kv_heads <= 0 || heads % kv_heads != 0)
        return ent_infer_fail(infer, "attribute.heads", "%lld query heads do not divide among %lld key heads",
                              (long long)heads, (long long)kv_heads);
    if (q->rank != 3 || k->rank != 3 || v->rank != 3 || (past && past->rank != 4))
        return bad_shapes(infer, "query, key and value need rank 3, the state rank 4");
    ent_dim size = ent_infer_dim(infer, ENT_EXPR_FLOORDIV, q->dims[2], heads),
            v_size = ent_infer_dim(infer, ENT_EXPR_FLOORDIV, v->dims[2], kv_heads);
    ent_dim out[3] = {q->dims[0], q->dims[1], ent_infer_dim(infer, ENT_EXPR_MUL, v_size, heads)};
    ent_dim state[4] = {q->dims[0], kv_heads, size, v_size};
    ent_infer_set(infer, 0, q->dtype, 3, out);
    ent_infer_set(infer, 1, past ? past->dtype : q->dtype, 4, state);
    return NULL;
}

ent_status ent_infer_CausalConvWithState(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *w = ent_infer_input(infer, 1);
    if (x->rank != 3 || w->rank != 3 || ent_infer_differ(infer, w->dims[0], x->dims[1]) ||
        ent_infer_differ(infer, w->dims[1], 1))
        return bad_shapes(infer, "input and weight need rank 3 and the same channels");
    ent_dim state[3] = {x->dims[0], x->dims[1], ent_infer_dim(infer, ENT_EXPR_SUB, w->dims[2], 1)};
    ent_infer_copy(infer, 0, 0);
    ent_infer_set(infer, 1, x->dtype, 3, state);
    return NULL;
}
