/* Shape rules: composites whose shape is not that of their first input alone. */
#include "core/graph/infer.h"

static ent_status check_vector(const ent_infer *infer, uint32_t index, ent_dim size) {
    const ent_value *value = ent_infer_input(infer, index);
    if (!value || (value->rank == 1 && !ent_infer_differ(infer, value->dims[0], size))) return NULL;
    return ent_infer_fail(infer, "shape.channels", "input %u %s does not fit the channels of %s", index,
                          ent_infer_text(infer, index), ent_infer_text(infer, 0));
}

static ent_status infer_channel_norm(ent_infer *infer, uint32_t vectors) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim channels = x->rank > 1 ? x->dims[1] : 1;
    if (x->rank == 0) return ent_infer_fail(infer, "shape.rank", "a scalar cannot be normalised");
    for (uint32_t i = 1; i <= vectors; i++) ENT_TRY(check_vector(infer, i, channels));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_BatchNormalization(ent_infer *infer) {
    ENT_TRY(infer_channel_norm(infer, 4));
    for (uint32_t i = 1; i < infer->node->output_count; i++) ent_infer_copy(infer, i, i + 2);
    return NULL;
}

ent_status ent_infer_InstanceNormalization(ent_infer *infer) {
    return infer_channel_norm(infer, 2);
}

/* Mean and inverse deviation keep the leading axes; the normalised ones become 1. */
ent_status ent_infer_LayerNormalization(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    uint32_t axis;
    ent_dim dims[ENT_MAX_RANK], whole[ENT_MAX_RANK];
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), x->rank, &axis));
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = i < axis ? x->dims[i] : 1;
    for (uint32_t input = 1; input < 3; input++) {
        const ent_value *value = ent_infer_input(infer, input);
        uint32_t rank = x->rank;
        for (uint32_t i = 0; i < rank; i++) whole[i] = x->dims[i];
        bool fits = !value || (value->rank <= rank &&
                               ent_infer_broadcast(infer, &rank, whole, value->rank, value->dims));
        for (uint32_t i = 0; fits && i < rank; i++) fits = !ent_infer_differ(infer, whole[i], x->dims[i]);
        if (!fits)
            return ent_infer_fail(infer, "shape.broadcast", "input %u %s does not broadcast to %s", input,
                                  ent_infer_text(infer, input), ent_infer_text(infer, 0));
    }
    int64_t stash = ent_attrs_int(infer->attrs, "stash_type", ENT_DTYPE_F32);
    if (stash <= 0 || stash >= ENT_DTYPE_COUNT || !ent_dtype_is_float((uint32_t)stash))
        return ent_infer_fail(infer, "attribute.dtype", "stash_type %lld is no float type", (long long)stash);
    ent_infer_copy(infer, 0, 0);
    ent_infer_set(infer, 1, (uint32_t)stash, x->rank, dims);
    ent_infer_set(infer, 2, (uint32_t)stash, x->rank, dims);
    return NULL;
}

/* ---- Attention ---- */

typedef struct attention_sizes {
    ent_dim batch, query_heads, key_heads, query_length, key_length, head_size, value_head_size;
} attention_sizes;

static ent_status attention_fail(const ent_infer *infer, const char *what) {
    return ent_infer_fail(infer, "shape.attention", "%s: query %s, key %s, value %s", what,
                          ent_infer_text(infer, 0), ent_infer_text(infer, 1), ent_infer_text(infer, 2));
}

/* 4-D inputs are batch x heads x length x size, 3-D ones batch x length x heads * size. */
static ent_status read_attention(const ent_infer *infer, attention_sizes *out) {
    const ent_value *q = ent_infer_input(infer, 0), *k = ent_infer_input(infer, 1),
                    *v = ent_infer_input(infer, 2);
    int64_t query_heads = ent_attrs_int(infer->attrs, "q_num_heads", 0),
            key_heads = ent_attrs_int(infer->attrs, "kv_num_heads", 0);
    if (q->rank != k->rank || q->rank != v->rank || q->rank < 3 || q->rank > 4)
        return attention_fail(infer, "all three need rank 3 or all rank 4");
    if (q->rank == 3 && (query_heads <= 0 || key_heads <= 0))
        return ent_infer_fail(infer, "attribute.heads", "rank 3 needs q_num_heads and kv_num_heads above 0");
    bool split = q->rank == 3;
    uint32_t last = q->rank - 1;
    out->batch = ent_infer_same(infer, q->dims[0], k->dims[0]);
    out->query_heads = split ? query_heads : q->dims[1];
    out->key_heads = split ? key_heads : k->dims[1];
    out->query_length = q->dims[last - 1];
    out->key_length = ent_infer_same(infer, k->dims[last - 1], v->dims[last - 1]);
    out->head_size = split ? ent_infer_dim(infer, ENT_EXPR_FLOORDIV, q->dims[2], query_heads) : q->dims[3];
    out->value_head_size =
        split ? ent_infer_dim(infer, ENT_EXPR_FLOORDIV, v->dims[2], key_heads) : v->dims[3];
    ent_dim key_size = split ? ent_infer_dim(infer, ENT_EXPR_FLOORDIV, k->dims[2], key_heads) : k->dims[3];
    bool fits = !ent_infer_differ(infer, q->dims[0], k->dims[0]) &&
                !ent_infer_differ(infer, q->dims[0], v->dims[0]) &&
                !ent_infer_differ(infer, k->dims[last - 1], v->dims[last - 1]) &&
                !ent_infer_differ(infer, out->head_size, key_size);
    if (split)
        fits = fits &&
               !ent_infer_differ(infer, ent_infer_dim(infer, ENT_EXPR_MUL, out->head_size, query_heads),
                                 q->dims[2]) &&
               !ent_infer_differ(infer, ent_infer_dim(infer, ENT_EXPR_MUL, out->value_head_size, key_heads),
                                 v->dims[2]);
    int64_t a, b;
    if (ent_module_dim_number(infer->module, out->query_heads, &a) &&
        ent_module_dim_number(infer->module, out->key_heads, &b) && (b == 0 || a % b != 0))
        fits = false;
    return fits ? NULL : attention_fail(infer, "the sizes do not fit together");
}

/* Present key and value are the past ones with the new ones behind them. */
ent_status ent_infer_Attention(ent_infer *infer) {
    const ent_value *q = ent_infer_input(infer, 0), *v = ent_infer_input(infer, 2),
                    *past = ent_infer_input(infer, 4);
    const ent_value *past_value = ent_infer_input(infer, 5);
    attention_sizes s = {0};
    ENT_TRY(read_attention(infer, &s));
    if ((past && past->rank != 4) || (past_value && past_value->rank != 4) || (!past != !past_value))
        return attention_fail(infer, "past key and value come together and have rank 4");
    ent_dim total = past ? ent_infer_dim(infer, ENT_EXPR_ADD, past->dims[2], s.key_length) : s.key_length;
    ent_dim whole[4] = {s.batch, s.query_heads, s.query_length, s.value_head_size};
    ent_dim merged[3] = {s.batch, s.query_length,
                         ent_infer_dim(infer, ENT_EXPR_MUL, s.query_heads, s.value_head_size)};
    ent_dim key[4] = {s.batch, s.key_heads, total, s.head_size},
            value[4] = {s.batch, s.key_heads, total, s.value_head_size};
    ent_dim scores[4] = {s.batch, s.query_heads, s.query_length, total};
    ent_infer_set(infer, 0, q->dtype, q->rank, q->rank == 4 ? whole : merged);
    ent_infer_set(infer, 1, q->dtype, 4, key);
    ent_infer_set(infer, 2, v->dtype, 4, value);
    ent_infer_set(infer, 3, q->dtype, 4, scores);
    const ent_value *mask = ent_infer_input(infer, 3), *lengths = ent_infer_input(infer, 6);
    uint32_t rank = 4;
    if (lengths && (lengths->rank != 1 || ent_infer_differ(infer, lengths->dims[0], s.batch)))
        return attention_fail(infer, "nonpad_kv_seqlen has no entry for each entry of the batch");
    if (mask && mask->rank && !ent_infer_differ(infer, mask->dims[mask->rank - 1], total) &&
        ent_infer_broadcast(infer, &rank, scores, mask->rank, mask->dims))
        return NULL;
    /* From version 24 a mask may cover only the first keys. */
    bool prefix = mask && mask->rank >= 2 && mask->rank <= 4;
    return !mask || prefix ? NULL : attention_fail(infer, "the mask does not broadcast to the scores");
}

/* Bodies keep the shape of the scores; their types come when they are written out. */
ent_status ent_infer_FlexAttention(ent_infer *infer) {
    attention_sizes s = {0};
    if (ent_infer_input(infer, 0)->rank != 4) return attention_fail(infer, "all three need rank 4");
    ENT_TRY(read_attention(infer, &s));
    if (ent_infer_differ(infer, ent_infer_input(infer, 2)->dims[1], s.key_heads))
        return attention_fail(infer, "keys and values differ in heads");
    ent_dim dims[4] = {s.batch, s.query_heads, s.query_length, s.value_head_size};
    ent_infer_set(infer, 0, ent_infer_input(infer, 2)->dtype, 4, dims);
    return NULL;
}
