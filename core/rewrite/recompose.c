/* What exporters write for a composite becomes the composite. Rules are data: pattern, result, and a
 * condition where the pattern cannot say it. The composite's own decomposition brings the pieces back for
 * whoever wants pieces. */
#include <math.h>
#include <string.h>

#include "core/rewrite/pattern.h"

/* Fills inputs and attributes of the result; false: the match does not mean the composite. */
typedef bool (*rule_condition)(ent_rewrite_context *context, const ent_match *match, uint32_t *inputs,
                               uint32_t *input_count, ent_attr *attrs, uint32_t *attr_count);

typedef struct rule {
    const char *name;
    const char *pattern;
    uint32_t op;
    rule_condition condition; /* NULL: one input x, no attributes */
} rule;

static bool gelu_tanh(ent_rewrite_context *context, const ent_match *match, uint32_t *inputs,
                      uint32_t *input_count, ent_attr *attrs, uint32_t *attr_count) {
    inputs[0] = ent_match_value(match, "x");
    *input_count = 1;
    attrs[(*attr_count)++] = ent_attr_string(context->module, "approximate", "tanh");
    return true;
}

/* x * HardSigmoid(x) is HardSwish for alpha 1/6 and beta 1/2 only. */
static bool hard_sigmoid_is_plain(ent_rewrite_context *context, const ent_match *match, uint32_t *inputs,
                                  uint32_t *input_count, ent_attr *attrs, uint32_t *attr_count) {
    (void)attrs;
    (void)attr_count;
    const ent_node *node = ent_module_node(context->module, match->nodes[1]);
    inputs[0] = ent_match_value(match, "x");
    *input_count = 1;
    return fabs(ent_attrs_float(node->attrs, "alpha", 0.2) - 1.0 / 6) < 1e-5 &&
           ent_attrs_float(node->attrs, "beta", 0.5) == 0.5;
}

/* Both means run over the last axis and keep it; scale and bias are vectors of its size. */
static bool means_over_last_axis(const ent_rewrite_context *context, const ent_match *match, uint32_t rank) {
    for (uint32_t i = 0; i < match->node_count; i++) {
        const ent_node *node = ent_module_node(context->module, match->nodes[i]);
        int64_t axis = 0;
        uint32_t count = 0;
        if (node->op != ENT_OP_ReduceMean) continue;
        if (ent_attrs_int(node->attrs, "keepdims", 1) != 1 || node->input_count < 2 ||
            node->inputs[1] == ENT_ID_NONE)
            return false;
        if (!ent_value_i64s(context->module, node->inputs[1], &axis, 1, &count) || count != 1) return false;
        if (axis != -1 && axis != (int64_t)rank - 1) return false;
    }
    return true;
}

static bool is_vector_of(const ent_module *module, uint32_t value, ent_dim size) {
    const ent_value *v = ent_module_value(module, value);
    return v->rank == 1 && v->dims[0] == size;
}

static bool layer_norm(ent_rewrite_context *context, const ent_match *match, uint32_t *inputs,
                       uint32_t *input_count, ent_attr *attrs, uint32_t *attr_count) {
    const ent_module *module = context->module;
    uint32_t x = ent_match_value(match, "x"), w = ent_match_value(match, "w"),
             b = ent_match_value(match, "b");
    const ent_value *value = ent_module_value(module, x);
    double epsilon;
    if (value->rank == ENT_RANK_UNKNOWN || value->rank < 1 || value->dtype != ENT_DTYPE_F32) return false;
    ent_dim size = value->dims[value->rank - 1];
    if (!ent_value_scalar(module, ent_match_value(match, "e"), &epsilon) ||
        !means_over_last_axis(context, match, value->rank))
        return false;
    if (!is_vector_of(module, w, size) || (b != ENT_ID_NONE && !is_vector_of(module, b, size))) return false;
    inputs[0] = x;
    inputs[1] = w;
    inputs[2] = b;
    *input_count = b == ENT_ID_NONE ? 2 : 3;
    attrs[(*attr_count)++] = ent_attr_int("axis", -1);
    attrs[(*attr_count)++] = ent_attr_float("epsilon", epsilon);
    return true;
}

/* K as attention wants it, [batch, heads, keys, size]: the transpose before the first MatMul is (0, 1, 3, 2),
 * or holds one more permutation that is split off. */
static bool untransposed_keys(ent_rewrite_context *context, const ent_match *match, uint32_t *out) {
    uint32_t k = ent_match_value(match, "k"), id = ENT_ID_NONE;
    for (uint32_t i = 0; i < match->node_count; i++)
        if (ent_module_node(context->module, match->nodes[i])->op == ENT_OP_Transpose) id = match->nodes[i];
    const ent_attr *perm =
        id == ENT_ID_NONE ? NULL : ent_attrs_find(ent_module_node(context->module, id)->attrs, "perm");
    if (!perm || perm->count != 4) return false;
    int64_t rest[4] = {perm->ints[0], perm->ints[1], perm->ints[3], perm->ints[2]};
    *out = k;
    if (rest[0] == 0 && rest[1] == 1 && rest[2] == 2 && rest[3] == 3) return true;
    ent_attr attr = ent_attr_ints(context->module, "perm", rest, 4);
    return ent_rewrite_add(context, ENT_OP_Transpose, ent_attrs_make(context->module, &attr, 1), &k, 1, id,
                           &id, 1, out) == NULL;
}

static bool softmax_over_last(const ent_rewrite_context *context, const ent_match *match) {
    for (uint32_t i = 0; i < match->node_count; i++) {
        const ent_node *node = ent_module_node(context->module, match->nodes[i]);
        int64_t axis = ent_attrs_int(node->attrs, "axis", -1);
        if (node->op == ENT_OP_Softmax && axis != -1 && axis != 3) return false;
    }
    return true;
}

static bool is_rank4_f32(const ent_module *module, uint32_t value) {
    return value != ENT_ID_NONE && ent_module_value(module, value)->rank == 4 &&
           ent_module_value(module, value)->dtype == ENT_DTYPE_F32;
}

static bool attention(ent_rewrite_context *context, const ent_match *match, uint32_t *inputs,
                      uint32_t *input_count, ent_attr *attrs, uint32_t *attr_count) {
    const ent_module *module = context->module;
    uint32_t q = ent_match_value(match, "q"), v = ent_match_value(match, "v"),
             mask = ent_match_value(match, "m");
    double scale = 1, other;
    uint32_t s = ent_match_value(match, "s"), d = ent_match_value(match, "d"),
             a = ent_match_value(match, "a"), b = ent_match_value(match, "b");
    if (!is_rank4_f32(module, q) || !is_rank4_f32(module, v) ||
        !is_rank4_f32(module, ent_match_value(match, "k")))
        return false;
    if (mask != ENT_ID_NONE && !is_rank4_f32(module, mask)) return false;
    if (s != ENT_ID_NONE && !ent_value_scalar(module, s, &scale)) return false;
    if (d != ENT_ID_NONE && (!ent_value_scalar(module, d, &other) || other == 0)) return false;
    if (d != ENT_ID_NONE) scale = 1 / other;
    if (a != ENT_ID_NONE) {
        double left, right;
        if (!ent_value_scalar(module, a, &left) || !ent_value_scalar(module, b, &right)) return false;
        scale = left * right;
    }
    if (scale <= 0 || !softmax_over_last(context, match) || !untransposed_keys(context, match, &inputs[1]))
        return false;
    inputs[0] = q;
    inputs[2] = v;
    inputs[3] = mask;
    *input_count = mask == ENT_ID_NONE ? 3 : 4;
    attrs[(*attr_count)++] = ent_attr_float("scale", scale);
    return true;
}

#define ERF_DIV "(Add (Erf (Div x 1.41421356)) 1)"
#define ERF_MUL "(Add (Erf (Mul x 0.70710678)) 1)"
#define CUBE_MUL "(Mul (Mul (Mul x 0.044715) x) x)"
#define CUBE_POW "(Mul (Pow x 3) 0.044715)"
#define CUBE_RIGHT "(Mul (Mul x (Mul x x)) 0.044715)"
#define TANH(cube) "(Add (Tanh (Mul (Add x " cube ") 0.79788456)) 1)"
#define SIX "(Clip (Add x 3) 0 6)"
#define NORM "(Div c=(Sub x (ReduceMean x)) (Sqrt (Add (ReduceMean (Pow c 2)) e)))"
#define NORM_MUL "(Div c=(Sub x (ReduceMean x)) (Sqrt (Add (ReduceMean (Mul c c)) e)))"

static const rule rules[] = {
    {"gelu", "(Mul (Mul x " ERF_DIV ") 0.5)", ENT_OP_Gelu, NULL},
    {"gelu", "(Mul (Mul x 0.5) " ERF_DIV ")", ENT_OP_Gelu, NULL},
    {"gelu", "(Mul x (Mul " ERF_DIV " 0.5))", ENT_OP_Gelu, NULL},
    {"gelu", "(Mul (Mul x " ERF_MUL ") 0.5)", ENT_OP_Gelu, NULL},
    {"gelu", "(Mul (Mul x 0.5) " ERF_MUL ")", ENT_OP_Gelu, NULL},
    {"gelu", "(Mul x (Mul " ERF_MUL " 0.5))", ENT_OP_Gelu, NULL},
    {"gelu-tanh", "(Mul x (Mul " TANH(CUBE_MUL) " 0.5))", ENT_OP_Gelu, gelu_tanh},
    {"gelu-tanh", "(Mul (Mul x 0.5) " TANH(CUBE_MUL) ")", ENT_OP_Gelu, gelu_tanh},
    {"gelu-tanh", "(Mul x (Mul " TANH(CUBE_POW) " 0.5))", ENT_OP_Gelu, gelu_tanh},
    {"gelu-tanh", "(Mul (Mul x 0.5) " TANH(CUBE_POW) ")", ENT_OP_Gelu, gelu_tanh},
    {"gelu-tanh", "(Mul (Mul x 0.5) " TANH(CUBE_RIGHT) ")", ENT_OP_Gelu, gelu_tanh},
    {"hard-swish", "(Div (Mul x " SIX ") 6)", ENT_OP_HardSwish, NULL},
    {"hard-swish", "(Mul x (Div " SIX " 6))", ENT_OP_HardSwish, NULL},
    {"hard-swish", "(Mul (Mul x " SIX ") 0.16666667)", ENT_OP_HardSwish, NULL},
    {"hard-swish", "(Mul x (Mul " SIX " 0.16666667))", ENT_OP_HardSwish, NULL},
    {"hard-swish", "(Mul x (HardSigmoid x))", ENT_OP_HardSwish, hard_sigmoid_is_plain},
    {"layer-norm", "(Add (Mul " NORM " w) b)", ENT_OP_LayerNormalization, layer_norm},
    {"layer-norm", "(Add (Mul " NORM_MUL " w) b)", ENT_OP_LayerNormalization, layer_norm},
    {"attention", "(MatMul (Softmax (Add (Div (MatMul q (Transpose k)) d) m)) v)", ENT_OP_Attention,
     attention},
    {"attention", "(MatMul (Softmax (Add (Mul (MatMul q (Transpose k)) s) m)) v)", ENT_OP_Attention,
     attention},
    {"attention", "(MatMul (Softmax (Div (MatMul q (Transpose k)) d)) v)", ENT_OP_Attention, attention},
    {"attention", "(MatMul (Softmax (Mul (MatMul q (Transpose k)) s)) v)", ENT_OP_Attention, attention},
    {"attention", "(MatMul (Softmax (MatMul (Mul q a) (Mul (Transpose k) b))) v)", ENT_OP_Attention,
     attention},
    {"attention", "(MatMul (Softmax (MatMul (Mul q s) (Transpose k))) v)", ENT_OP_Attention, attention},
};

static ent_status apply(ent_rewrite_context *context, const rule *r, uint32_t id, bool *out_done) {
    ent_match match;
    uint32_t inputs[8] = {ENT_ID_NONE}, input_count = 1, attr_count = 0, value;
    ent_attr attrs[4];
    if (!ent_pattern_match(context, r->pattern, id, &match)) return NULL;
    inputs[0] = ent_match_value(&match, "x");
    if (r->condition && !r->condition(context, &match, inputs, &input_count, attrs, &attr_count)) return NULL;
    ENT_TRY(ent_rewrite_add(context, r->op, ent_attrs_make(context->module, attrs, attr_count), inputs,
                            input_count, id, match.nodes, match.node_count, &value));
    ent_rewrite_forward(context, id, value);
    *out_done = true;
    return NULL;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    bool done = false;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !done; i++)
        ENT_TRY(apply(context, &rules[i], id, &done));
    return NULL;
}

ent_status ent_rewrite_recompose(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
