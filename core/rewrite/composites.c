/* Conditions and results of the rules in recompose.c. */
#include <math.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/rewrite/recompose.h"

static void add_attr(ent_composite *out, ent_attr attr) {
    out->attrs[out->attr_count++] = attr;
}

static uint32_t root_value(const ent_rewrite_context *context, const ent_match *match) {
    return ent_module_node(context->module, match->nodes[0])->outputs[0];
}

bool ent_composite_of_x(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    out->inputs[0] = ent_match_value(match, "x");
    out->input_count = 1;
    return ent_rewrite_same_shape(context->module, out->inputs[0], root_value(context, match));
}

bool ent_composite_gelu_tanh(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    add_attr(out, ent_attr_string(context->module, "approximate", "tanh"));
    return ent_composite_of_x(context, match, out);
}

/* clip(x + 3, 0, 6) / 6 */
bool ent_composite_hard_sigmoid(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    add_attr(out, ent_attr_float("alpha", 1.0 / 6));
    add_attr(out, ent_attr_float("beta", 0.5));
    return ent_composite_of_x(context, match, out);
}

/* x * HardSigmoid(x) is HardSwish for alpha 1/6 and beta 1/2 only. */
bool ent_composite_hard_swish_gate(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    const ent_node *gate = ent_rewrite_producer(context, ent_match_value(match, "g"));
    return fabs(ent_attrs_float(gate->attrs, "alpha", 0.2) - 1.0 / 6) < 1e-6 &&
           ent_attrs_float(gate->attrs, "beta", 0.5) == 0.5 && ent_composite_of_x(context, match, out);
}

/* ---- reductions ---- */

/* Every reduction in the match runs over the same axes (a mask), and its result meets x as one number for
 * them: it keeps them, or all axes it leaves have size 1. */
static bool read_common_axes(const ent_rewrite_context *context, const ent_match *match, uint32_t x,
                             uint32_t *out_mask) {
    const ent_value *value = ent_module_value(context->module, x);
    bool found = false;
    if (value->rank == ENT_RANK_UNKNOWN) return false;
    for (uint32_t i = 0; i < match->node_count; i++) {
        const ent_node *node = ent_module_node(context->module, match->nodes[i]);
        uint32_t mask = 0;
        if (!ent_rewrite_is_reduction(node->op)) continue;
        if (!ent_rewrite_reduced_axes(context->module, node, &mask) || (found && mask != *out_mask))
            return false;
        *out_mask = mask;
        found = true;
        for (uint32_t k = 0; k < value->rank && ent_attrs_int(node->attrs, "keepdims", 1) == 0; k++)
            if (!(mask >> k & 1) && value->dims[k] != 1) return false;
    }
    return found;
}

bool ent_composite_softmax(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    uint32_t mask = 0, axis = 0;
    if (!ent_composite_of_x(context, match, out) ||
        !read_common_axes(context, match, out->inputs[0], &mask) || (mask & (mask - 1)) != 0)
        return false;
    while (mask >> axis != 1) axis++;
    add_attr(out, ent_attr_int("axis", axis));
    return true;
}

/* ---- layer normalisation ---- */

/* A value that, without ones in front, has the dims of x from `axis` on: as the operator wants it. */
static uint32_t normal_parameter(ent_rewrite_context *context, uint32_t graph, uint32_t value, uint32_t x,
                                 uint32_t axis) {
    const ent_module *module = context->module;
    const ent_value *v = ent_module_value(module, value), *whole = ent_module_value(module, x);
    uint32_t rank = whole->rank - axis;
    if (v->rank == ENT_RANK_UNKNOWN || v->rank < rank || v->dtype != whole->dtype) return ENT_ID_NONE;
    for (uint32_t i = 0; i < v->rank; i++)
        if (v->dims[i] != (i < v->rank - rank ? 1 : whole->dims[axis + i - (v->rank - rank)]))
            return ENT_ID_NONE;
    if (v->rank == rank) return value;
    const ent_tensor *t = ent_rewrite_float_tensor(context, value);
    if (!t) return ENT_ID_NONE;
    return ent_module_add_constant(context->module, graph, NULL, t->dtype, rank, t->dims + (v->rank - rank),
                                   t->data, t->size_bytes, true);
}

static uint32_t make_ones(ent_rewrite_context *context, uint32_t graph, uint32_t x, uint32_t axis) {
    const ent_value *value = ent_module_value(context->module, x);
    int64_t dims[ENT_MAX_RANK], count = 1;
    uint32_t rank = value->rank - axis, dtype = value->dtype;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = value->dims[axis + i];
        if (!ent_dim_is_const(dims[i]) || !ent_mul_i64(count, dims[i], &count)) return ENT_ID_NONE;
    }
    uint64_t bytes = (uint64_t)count * ent_dtype_bits((ent_dtype)dtype) / 8;
    void *data = ent_arena_array(context->module->arena, bytes, 1);
    if (!data) return ENT_ID_NONE;
    for (int64_t i = 0; i < count; i++) ent_ops_store_f64(data, dtype, i, 1);
    return ent_module_add_constant(context->module, graph, NULL, dtype, rank, dims, data, bytes, true);
}

/* The mask is a run of axes up to the last. */
static bool first_of_last_axes(uint32_t mask, uint32_t rank, uint32_t *out) {
    *out = 0;
    while (*out < rank && !(mask >> *out & 1)) ++*out;
    return *out < rank && mask == ((1u << rank) - 1) >> *out << *out;
}

bool ent_composite_layer_norm(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    uint32_t x = ent_match_value(match, "x"), w = ent_match_value(match, "w"),
             b = ent_match_value(match, "b");
    uint32_t graph = ent_module_node(context->module, match->nodes[0])->graph, mask = 0, axis = 0;
    const ent_value *value = ent_module_value(context->module, x);
    uint32_t rank = value->rank, dtype = value->dtype;
    double epsilon = ent_match_number(match, "e", 0);
    if (!ent_rewrite_same_shape(context->module, x, root_value(context, match)) ||
        !read_common_axes(context, match, x, &mask) || !first_of_last_axes(mask, rank, &axis) ||
        !(epsilon > 0 && epsilon < 0.1))
        return false;
    out->inputs[0] = x;
    out->inputs[1] =
        w == ENT_ID_NONE ? make_ones(context, graph, x, axis) : normal_parameter(context, graph, w, x, axis);
    out->input_count = 2;
    if (b != ENT_ID_NONE) out->inputs[out->input_count++] = normal_parameter(context, graph, b, x, axis);
    add_attr(out, ent_attr_int("axis", (int64_t)axis - rank));
    add_attr(out, ent_attr_float("epsilon", epsilon));
    if (dtype != ENT_DTYPE_F32) add_attr(out, ent_attr_int("stash_type", dtype));
    for (uint32_t i = 1; i < out->input_count; i++)
        if (out->inputs[i] == ENT_ID_NONE) return false;
    return true;
}

/* ---- attention ---- */

typedef struct keys {
    uint32_t value;
    int64_t perm[4]; /* the second operand of the first MatMul is this transpose of `value` */
    bool transposed;
    double scale;
    uint32_t last_transpose;
} keys;

/* Multiplication by a number of a value that nobody else reads. */
static bool peel_scale(const ent_rewrite_context *context, uint32_t *value, double *scale) {
    const ent_node *node = ent_rewrite_producer(context, *value);
    double number;
    if (!node || node->op != ENT_OP_Mul || !ent_rewrite_single_use(context, *value) ||
        !ent_rewrite_float_tensor(context, node->inputs[1]) ||
        !ent_value_scalar(context->module, node->inputs[1], &number) ||
        !ent_rewrite_same_shape(context->module, node->inputs[0], *value))
        return false;
    *value = node->inputs[0];
    *scale *= number;
    return true;
}

static bool peel_transpose(const ent_rewrite_context *context, keys *k) {
    const ent_node *node = ent_rewrite_producer(context, k->value);
    int64_t perm[ENT_MAX_RANK], joined[4];
    uint32_t rank = 0;
    if (!node || node->op != ENT_OP_Transpose || k->transposed ||
        !ent_rewrite_permutation(context->module, node, perm, &rank) || rank != 4)
        return false;
    for (uint32_t i = 0; i < 4; i++) joined[i] = perm[k->perm[i]];
    memcpy(k->perm, joined, sizeof joined);
    k->last_transpose = ent_module_value(context->module, k->value)->producer;
    k->value = node->inputs[0];
    k->transposed = true;
    return true;
}

/* Rank 4, and as many batches and heads (numbers) as q: the operator itself does not broadcast. */
static bool is_operand(const ent_module *module, uint32_t q, uint32_t value) {
    const ent_value *a = ent_module_value(module, q), *b = ent_module_value(module, value);
    return a->rank == 4 && b->rank == 4 && a->dtype == b->dtype && a->dims[0] == b->dims[0] &&
           a->dims[1] == b->dims[1] && ent_dim_is_const(a->dims[1]);
}

static bool softmax_over_keys(const ent_rewrite_context *context, const ent_match *match) {
    const ent_node *node = ent_rewrite_producer(context, ent_match_value(match, "p"));
    int64_t axis = ent_attrs_int(node->attrs, "axis", -1);
    return axis == -1 || axis == 3;
}

/* Added to the scores, not enlarging them. */
static bool mask_fits(const ent_rewrite_context *context, const ent_match *match, uint32_t q) {
    const ent_module *module = context->module;
    uint32_t mask = ent_match_value(match, "m"), scores = ent_match_value(match, "s");
    if (mask == ENT_ID_NONE) return true;
    const ent_value *m = ent_module_value(module, mask), *s = ent_module_value(module, scores);
    return m->rank >= 2 && m->rank <= 4 && m->dtype == ent_module_value(module, q)->dtype &&
           m->dims[m->rank - 1] == s->dims[3] &&
           ent_rewrite_same_shape(module, ent_match_value(match, "a"), scores);
}

/* K as attention wants it: batch, heads, keys, size. */
static bool untransposed_keys(ent_rewrite_context *context, const ent_match *match, const keys *k,
                              uint32_t *out) {
    int64_t perm[4] = {k->perm[0], k->perm[1], k->perm[3], k->perm[2]};
    uint32_t root = match->nodes[0];
    *out = k->value;
    if (perm[0] == 0 && perm[1] == 1 && perm[2] == 2 && perm[3] == 3) return true;
    ent_attr attr = ent_attr_ints(context->module, "perm", perm, 4);
    return ent_rewrite_add(context, ENT_OP_Transpose, ent_attrs_make(context->module, &attr, 1), &k->value, 1,
                           root, &k->last_transpose, 1, out) == NULL;
}

bool ent_composite_attention(ent_rewrite_context *context, ent_match *match, ent_composite *out) {
    const ent_module *module = context->module;
    uint32_t q = ent_match_value(match, "q"), v = ent_match_value(match, "v");
    keys k = {.value = ent_match_value(match, "k"), .perm = {0, 1, 2, 3}, .scale = 1};
    double scale = ent_match_number(match, "scale", 1);
    if (ent_module_value(module, q)->rank != 4 || ent_module_value(module, k.value)->rank != 4) return false;
    while (peel_scale(context, &q, &scale)) {
    }
    for (bool peeled = true; peeled;) {
        bool scaled = peel_scale(context, &k.value, &k.scale);
        peeled = peel_transpose(context, &k) || scaled;
    }
    scale *= k.scale;
    const ent_value *scores = ent_module_value(module, ent_match_value(match, "s"));
    if (!k.transposed || !is_operand(module, q, ent_match_value(match, "k")) || !is_operand(module, q, v) ||
        scores->rank != 4 || !(scale > 0) || !isfinite(scale) || !softmax_over_keys(context, match) ||
        !mask_fits(context, match, q))
        return false;
    if (!untransposed_keys(context, match, &k, &out->inputs[1])) return false;
    out->inputs[0] = q;
    out->inputs[2] = v;
    out->inputs[3] = ent_match_value(match, "m");
    out->input_count = out->inputs[3] == ENT_ID_NONE ? 3 : 4;
    add_attr(out, ent_attr_float("scale", scale));
    return true;
}
