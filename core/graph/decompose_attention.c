/* Body of Attention: softmax(softcap(Q * scale . K^T) + mask) . V over heads. Past and present keys, and the
 * scores as an output, stay with the composite. The query alone is scaled: the schema's sqrt(scale) on both
 * sides is the same number. Source: the ONNX schema of Attention (versions 23 to 25). */
#include "core/graph/decompose.h"

#include <math.h>

/* A causal mask up to this size is a constant, a larger or symbolic one is computed. */
#define MAX_MASK_ELEMENTS ((int64_t)1 << 24)

typedef struct attention {
    uint32_t query, key, value; /* batch x heads x length x size */
    uint32_t dtype;
    int64_t query_heads, key_heads, head_size, value_head_size;
    double scale, softcap;
    bool merged; /* inputs of rank 3 */
} attention;

/* Heads and sizes as numbers; false when one of them is symbolic. */
static bool read_sizes(const ent_body *body, attention *a) {
    const ent_module *module = body->module;
    const ent_value *q = ent_module_value(module, a->query), *k = ent_module_value(module, a->key);
    const ent_value *v = ent_module_value(module, a->value);
    a->merged = q->rank == 3;
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank) return false;
    uint32_t last = q->rank - 1;
    if (!ent_module_dim_number(module, q->dims[last], &a->head_size)) return false;
    if (!ent_module_dim_number(module, v->dims[last], &a->value_head_size)) return false;
    a->query_heads = ent_attrs_int(body->node.attrs, "q_num_heads", 0);
    a->key_heads = ent_attrs_int(body->node.attrs, "kv_num_heads", 0);
    if (!a->merged && !ent_module_dim_number(module, q->dims[1], &a->query_heads)) return false;
    if (!a->merged && !ent_module_dim_number(module, k->dims[1], &a->key_heads)) return false;
    if (a->query_heads <= 0 || a->key_heads <= 0 || a->query_heads % a->key_heads != 0) return false;
    if (a->merged) {
        a->head_size /= a->query_heads;
        a->value_head_size /= a->key_heads;
    }
    return a->head_size > 0 && a->value_head_size > 0;
}

/* A mask that covers only the first keys would need padding. */
static bool mask_fits(const ent_body *body, const attention *a) {
    uint32_t id = ent_body_input(body, 3);
    int64_t covered, keys;
    if (id == ENT_ID_NONE) return true;
    const ent_value *mask = ent_module_value(body->module, id), *k = ent_module_value(body->module, a->key);
    if ((mask->dtype != ENT_DTYPE_BOOL && mask->dtype != a->dtype) || mask->rank == 0 || mask->rank > 4)
        return false;
    bool numbers = ent_module_dim_number(body->module, mask->dims[mask->rank - 1], &covered) &&
                   ent_module_dim_number(body->module, k->dims[k->rank - 2], &keys);
    return !numbers || covered == keys;
}

static bool is_supported(const ent_body *body, attention *a) {
    for (uint32_t i = 4; i < 7; i++)
        if (ent_body_input(body, i) != ENT_ID_NONE) return false;
    for (uint32_t i = 1; i < 4; i++)
        if (ent_body_output(body, i) != ENT_ID_NONE) return false;
    a->query = ent_body_input(body, 0);
    a->key = ent_body_input(body, 1);
    a->value = ent_body_input(body, 2);
    a->dtype = ent_module_value(body->module, a->query)->dtype;
    bool same = ent_module_value(body->module, a->key)->dtype == a->dtype &&
                ent_module_value(body->module, a->value)->dtype == a->dtype;
    if (!same || !read_sizes(body, a) || !mask_fits(body, a)) return false;
    int64_t precision = ent_attrs_int(body->node.attrs, "softmax_precision", a->dtype);
    if (precision <= 0 || !ent_dtype_is_float((uint32_t)precision)) return false;
    a->scale = ent_attrs_float(body->node.attrs, "scale", 1.0 / sqrt((double)a->head_size));
    a->softcap = ent_attrs_float(body->node.attrs, "softcap", 0.0);
    return true;
}

/* batch x length x (heads * size) -> batch x heads x length x size */
static uint32_t split_heads(ent_body *body, uint32_t value, int64_t heads) {
    int64_t shape[4] = {0, 0, heads, -1};
    value = ent_body_binary(body, ENT_OP_Reshape, value, ent_body_i64s(body, shape, 4));
    return ent_body_transpose(body, value, 0, 2, 1, 3);
}

/* Each key head serves a run of query heads. */
static uint32_t repeat_heads(ent_body *body, const attention *a, uint32_t value, int64_t size) {
    int64_t axis = 2, times[5] = {1, 1, a->query_heads / a->key_heads, 1, 1},
            shape[4] = {0, a->query_heads, -1, size};
    if (a->query_heads == a->key_heads) return value;
    value = ent_body_binary(body, ENT_OP_Unsqueeze, value, ent_body_i64s(body, &axis, 1));
    value = ent_body_binary(body, ENT_OP_Expand, value, ent_body_i64s(body, times, 5));
    return ent_body_binary(body, ENT_OP_Reshape, value, ent_body_i64s(body, shape, 4));
}

/* True keeps a score, false makes it minus infinity. */
static uint32_t bias_of(ent_body *body, const attention *a, uint32_t kept) {
    uint32_t zero = ent_body_scalar(body, a->dtype, 0.0), never = ent_body_scalar(body, a->dtype, -INFINITY);
    return ent_body_add(body, ENT_OP_Where, ENT_NO_ATTRS, kept, zero, never, ENT_ID_NONE);
}

/* 0, 1, ... up to the length on axis 2 of a rank-4 value. */
static uint32_t positions(ent_body *body, uint32_t value) {
    ent_attr range[2] = {ent_attr_int("start", 2), ent_attr_int("end", 3)};
    uint32_t length = ent_body_add(body, ENT_OP_Shape, ent_attrs_make(body->module, range, 2), value,
                                   ENT_ID_NONE, ENT_ID_NONE, ENT_ID_NONE);
    length = ent_body_unary(body, ENT_OP_Squeeze, length);
    uint32_t start = ent_body_scalar(body, ENT_DTYPE_I64, 0), step = ent_body_scalar(body, ENT_DTYPE_I64, 1);
    return ent_body_add(body, ENT_OP_Range, ENT_NO_ATTRS, start, length, step, ENT_ID_NONE);
}

/* Query i sees keys 0..i. */
static uint32_t causal_bias(ent_body *body, const attention *a) {
    ent_module *module = body->module;
    int64_t dims[2], count, axis = 1;
    bool fixed = ent_module_dim_number(module, ent_module_value(module, a->query)->dims[2], &dims[0]) &&
                 ent_module_dim_number(module, ent_module_value(module, a->key)->dims[2], &dims[1]);
    if (fixed && ent_mul_i64(dims[0], dims[1], &count) && count <= MAX_MASK_ELEMENTS) {
        uint64_t size = (uint64_t)count * (ent_dtype_bits(a->dtype) / 8);
        void *data = ent_arena_alloc(module->arena, size);
        for (int64_t i = 0; i < dims[0]; i++)
            for (int64_t k = i + 1; k < dims[1]; k++)
                ent_element_set_f64(data, a->dtype, (uint64_t)(i * dims[1] + k), -INFINITY);
        return ent_module_add_constant(module, body->node.graph, NULL, a->dtype, 2, dims, data, size, true);
    }
    uint32_t rows = positions(body, a->query), axes = ent_body_i64s(body, &axis, 1);
    rows = ent_body_binary(body, ENT_OP_Unsqueeze, rows, axes);
    return bias_of(body, a, ent_body_binary(body, ENT_OP_GreaterOrEqual, rows, positions(body, a->key)));
}

static uint32_t scores_of(ent_body *body, const attention *a) {
    uint32_t scaled = ent_body_binary(body, ENT_OP_Mul, a->query, ent_body_scalar(body, a->dtype, a->scale));
    uint32_t key = ent_body_transpose(body, repeat_heads(body, a, a->key, a->head_size), 0, 1, 3, 2);
    uint32_t scores = ent_body_binary(body, ENT_OP_MatMul, scaled, key), mask = ent_body_input(body, 3);
    if (a->softcap > 0) {
        uint32_t cap = ent_body_scalar(body, a->dtype, a->softcap);
        scores = ent_body_unary(body, ENT_OP_Tanh, ent_body_binary(body, ENT_OP_Div, scores, cap));
        scores = ent_body_binary(body, ENT_OP_Mul, scores, cap);
    }
    if (mask != ENT_ID_NONE) {
        if (ent_module_value(body->module, mask)->dtype == ENT_DTYPE_BOOL) mask = bias_of(body, a, mask);
        scores = ent_body_binary(body, ENT_OP_Add, scores, mask);
    }
    if (ent_attrs_int(body->node.attrs, "is_causal", 0) != 0 && !body->status)
        scores = ent_body_binary(body, ENT_OP_Add, scores, causal_bias(body, a));
    return scores;
}

bool ent_decompose_Attention(ent_body *body) {
    attention a = {0};
    if (!is_supported(body, &a)) return false;
    uint32_t y = ent_body_output(body, 0);
    if (a.merged) {
        uint32_t key = split_heads(body, a.key, a.key_heads);
        a.value = a.value == a.key ? key : split_heads(body, a.value, a.key_heads);
        a.query = a.query == a.key && a.query_heads == a.key_heads
                      ? key
                      : split_heads(body, a.query, a.query_heads);
        a.key = key;
    }
    if (body->status) return true;
    ent_attr axis = ent_attr_int("axis", -1);
    uint32_t precision = (uint32_t)ent_attrs_int(body->node.attrs, "softmax_precision", a.dtype);
    uint32_t scores = ent_body_cast(body, scores_of(body, &a), precision);
    uint32_t weights = ent_body_add(body, ENT_OP_Softmax, ent_attrs_make(body->module, &axis, 1), scores,
                                    ENT_ID_NONE, ENT_ID_NONE, ENT_ID_NONE);
    weights = ent_body_cast(body, weights, a.dtype);
    uint32_t value = repeat_heads(body, &a, a.value, a.value_head_size);
    uint32_t out = ent_body_add(body, ENT_OP_MatMul, ENT_NO_ATTRS, weights, value, ENT_ID_NONE,
                                a.merged ? ENT_ID_NONE : y);
    if (!a.merged) return true;
    int64_t shape[3] = {0, 0, a.query_heads * a.value_head_size};
    out = ent_body_transpose(body, out, 0, 2, 1, 3);
    ent_body_add(body, ENT_OP_Reshape, ENT_NO_ATTRS, out, ent_body_i64s(body, shape, 3), ENT_ID_NONE, y);
    return true;
}
