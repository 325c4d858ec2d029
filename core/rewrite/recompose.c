/* What exporters write for a composite becomes the composite. Rules are data: a pattern, its result, and a
 * function for what a pattern cannot say. The composite's own decomposition brings pieces back for whoever
 * wants pieces; it computes the same function, though not always in the same order, so that strict precision
 * keeps to rules that do not change the arithmetic at all. */
#include "core/rewrite/recompose.h"

typedef struct rule {
    const char *name;
    const char *pattern;
    uint32_t op;
    bool exact; /* the same arithmetic */
    ent_composite_build build;
} rule;

#define CENTRED "c=(Sub x (ReduceMean x))"
#define INVERSE "(/ (Sqrt (+ #e (ReduceMean (* c c)))))"
/* The variance as E[x^2] - E[x]^2, which Relu keeps from falling below 0. */
#define SHIFTED "(Sub x m=(ReduceMean x))"
#define SQUARES "(Sub (ReduceMean (* x x)) (* m m))"
#define INVERSE_RELU "(/ (Sqrt (+ #e (Relu " SQUARES "))))"
#define INVERSE_BARE "(/ (Sqrt (+ #e " SQUARES ")))"
#define SIX "(Clip (+ x 3) 0 6)"

/* Larger patterns of a kind first: the first one that matches is taken. Patterns see what simplify leaves:
 * numbers to the right, no division by numbers, no squares as powers, Max with 0 as Relu. */
static const rule rules[] = {
    {"gelu", "(* x 0.5 (+ 1 (Erf (* x 0.7071067811865476))))", ENT_OP_Gelu, false, ent_composite_of_x},
    {"gelu-spread", "(* x (+ 0.5 (* 0.5 (Erf (* x 0.7071067811865476)))))", ENT_OP_Gelu, false,
     ent_composite_of_x},
    {"gelu-tanh", "(* x 0.5 (+ 1 (Tanh (* 0.7978845608028654 (+ x (* 0.044715 x x x))))))", ENT_OP_Gelu,
     false, ent_composite_gelu_tanh},
    {"gelu-tanh-factored", "(* x 0.5 (+ 1 (Tanh (* x 0.7978845608028654 (+ 1 (* 0.044715 x x))))))",
     ENT_OP_Gelu, false, ent_composite_gelu_tanh},
    {"hard-swish", "(* x 0.16666666666666667 " SIX ")", ENT_OP_HardSwish, false, ent_composite_of_x},
    {"hard-swish-gate", "(* x g=(HardSigmoid x))", ENT_OP_HardSwish, true, ent_composite_hard_swish_gate},
    {"hard-sigmoid", "(* 0.16666666666666667 " SIX ")", ENT_OP_HardSigmoid, false,
     ent_composite_hard_sigmoid},
    {"softmax", "(Div e=(Exp (Sub x (ReduceMax x))) (ReduceSum e))", ENT_OP_Softmax, true,
     ent_composite_softmax},
    {"softmax-product", "(* e=(Exp (Sub x (ReduceMax x))) (/ (ReduceSum e)))", ENT_OP_Softmax, false,
     ent_composite_softmax},
    {"layer-norm", "(+ b (* w " CENTRED " " INVERSE "))", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"layer-norm-scale", "(* w " CENTRED " " INVERSE ")", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"layer-norm-plain", "(* " CENTRED " " INVERSE ")", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"layer-norm-squares", "(+ b (* w " SHIFTED " " INVERSE_RELU "))", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"layer-norm-squares-bare", "(+ b (* w " SHIFTED " " INVERSE_BARE "))", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"layer-norm-squares-scale", "(* w " SHIFTED " " INVERSE_RELU ")", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"layer-norm-squares-plain", "(* " SHIFTED " " INVERSE_RELU ")", ENT_OP_LayerNormalization, false,
     ent_composite_layer_norm},
    {"attention-mask", "(MatMul p=(Softmax a=(+ m (* ?scale s=(MatMul q k)))) v)", ENT_OP_Attention, false,
     ent_composite_attention},
    {"attention", "(MatMul p=(Softmax (* ?scale s=(MatMul q k))) v)", ENT_OP_Attention, false,
     ent_composite_attention},
};
#define RULE_COUNT (sizeof rules / sizeof rules[0])

static ent_status apply(ent_rewrite_context *context, const rule *r, const ent_pattern *pattern, uint32_t id,
                        bool *out_done) {
    ent_match match;
    ent_composite made = {0};
    uint32_t value;
    if (!ent_pattern_match(context, pattern, id, &match) || !r->build(context, &match, &made)) return NULL;
    ENT_TRY(ent_rewrite_add(context, r->op, ent_attrs_make(context->module, made.attrs, made.attr_count),
                            made.inputs, made.input_count, id, match.nodes, match.node_count, &value));
    for (uint32_t i = 1; i < match.node_count; i++) ent_module_remove_node(context->module, match.nodes[i]);
    ent_rewrite_forward(context, id, value);
    *out_done = true;
    return NULL;
}

/* From the end, so that the largest pattern meets its nodes first. */
static ent_status recompose_graph(ent_rewrite_context *context, uint32_t graph,
                                  const ent_pattern *const *patterns) {
    ENT_ARRAY(uint32_t) order = {0};
    uint32_t at = 0, id;
    while (ent_graph_next(context->module, graph, &at, &id)) ent_array_push(context->scratch, &order, id);
    for (uint32_t i = order.count; i-- > 0;) {
        bool done = false;
        ENT_TRY(ent_arena_check(context->module->arena, context->module->name));
        if (ent_module_node(context->module, order.items[i])->dead) continue;
        for (size_t k = 0; k < RULE_COUNT && !done; k++)
            if (patterns[k]) ENT_TRY(apply(context, &rules[k], patterns[k], order.items[i], &done));
    }
    return NULL;
}

ent_status ent_rewrite_recompose(ent_rewrite_context *context) {
    const ent_pattern *patterns[RULE_COUNT] = {0};
    uint32_t graphs = context->module->graphs.count;
    for (size_t i = 0; i < RULE_COUNT; i++)
        if (rules[i].exact || !context->options->strict)
            patterns[i] = ent_pattern_parse(context->scratch, rules[i].pattern);
    for (uint32_t g = 0; g < graphs; g++) ENT_TRY(recompose_graph(context, g, patterns));
    return NULL;
}
