/* Scales and shifts by channel go into the constant weights and bias of the contraction before or behind
 * them: batch normalisation, and the Mul, Div, Add and Sub that exporters write for it, as chains in any
 * order. Computed in double, stored in the weights' type. What is left of constant batch normalisation
 * becomes Mul and Add. Changes rounding, hence not with --precision strict. */
#include <math.h>

#include "core/ops/ops.h"
#include "core/rewrite/affine.h"

#define MAX_CHAIN 16
/* Weights that others read too are copied up to this size. */
#define SHARED_WEIGHT_BYTES (1u << 20)

typedef struct chain {
    ent_affine map;
    uint32_t nodes[MAX_CHAIN + 1]; /* the anchor and the nodes folded */
    uint32_t count;
    uint32_t end; /* value where the chain ends, away from the anchor */
} chain;

/* The only reader of a value, if it is a node of `graph`. */
static uint32_t only_reader(const ent_rewrite_context *context, uint32_t value, uint32_t graph) {
    uint32_t at = 0, node, index;
    if (!ent_rewrite_single_use(context, value)) return ENT_ID_NONE;
    ent_value_next_use(context->module, value, &at, &node, &index);
    return ent_module_node(context->module, node)->graph == graph ? node : ENT_ID_NONE;
}

static bool may_scale(const ent_rewrite_context *context, const ent_anchor *anchor, const ent_affine *map) {
    uint32_t weights = ent_module_node(context->module, anchor->node)->inputs[1];
    bool may_copy = ent_rewrite_tensor(context, weights)->size_bytes <= SHARED_WEIGHT_BYTES ||
                    ent_rewrite_single_use(context, weights);
    return may_copy && ent_anchor_scales_fit(context, anchor, map);
}

static chain start_chain(const ent_rewrite_context *context, const ent_anchor *anchor, uint32_t end) {
    chain c = {.map = ent_affine_identity(context->scratch, anchor->channels), .count = 1, .end = end};
    c.nodes[0] = anchor->node;
    return c;
}

/* As the type stores it; false for NaN. */
static bool fits(double x, uint32_t dtype) {
    return fabs(x) <= ent_rewrite_largest(dtype);
}

static bool map_fits(const ent_affine *map, uint32_t dtype) {
    for (int64_t c = 0; c < map->channels; c++)
        if (!fits(map->scale[c], dtype) || !fits(map->shift[c], dtype)) return false;
    return true;
}

static uint32_t weight_dtype(const ent_rewrite_context *context, uint32_t anchor) {
    return ent_module_value(context->module, ent_module_node(context->module, anchor)->inputs[1])->dtype;
}

/* ---- behind a contraction ---- */

static chain walk_down(const ent_rewrite_context *context, const ent_anchor *anchor) {
    const ent_node *node = ent_module_node(context->module, anchor->node);
    chain c = start_chain(context, anchor, node->outputs[0]);
    while (c.count <= MAX_CHAIN) {
        uint32_t reader = only_reader(context, c.end, node->graph), data;
        ent_affine next = {.channels = anchor->channels};
        if (reader == ENT_ID_NONE) break;
        const ent_node *user = ent_module_node(context->module, reader);
        if (!ent_affine_read(context, user, anchor->axis, &next, &data) || data != c.end) break;
        ent_affine_append(&c.map, &next);
        c.end = user->outputs[0];
        c.nodes[c.count++] = reader;
    }
    return c;
}

static uint32_t make_vector(ent_rewrite_context *context, uint32_t graph, uint32_t dtype, uint32_t rank,
                            const int64_t *dims, const double *items, int64_t count) {
    uint64_t bytes = (uint64_t)count * ent_dtype_bits((ent_dtype)dtype) / 8;
    void *data = ent_arena_array(context->module->arena, bytes, 1);
    if (!data) return ENT_ID_NONE;
    for (int64_t i = 0; i < count; i++) ent_ops_store_f64(data, dtype, i, items[i]);
    return ent_module_add_constant(context->module, graph, NULL, dtype, rank, dims, data, bytes, true);
}

/* MatMul has no bias: what is left of the shift is one Add. */
static ent_status add_shift(ent_rewrite_context *context, const chain *c, uint32_t dtype, uint32_t before,
                            uint32_t *value) {
    uint32_t graph = ent_module_node(context->module, c->nodes[0])->graph;
    if (!ent_affine_has_shift(&c->map)) return NULL;
    uint32_t inputs[2] = {
        *value, make_vector(context, graph, dtype, 1, &c->map.channels, c->map.shift, c->map.channels)};
    if (inputs[1] == ENT_ID_NONE) return ent_status_out_of_memory();
    return ent_rewrite_add(context, ENT_OP_Add, (ent_attrs){0}, inputs, 2, before, c->nodes + 1, c->count - 1,
                           value);
}

/* The anchor anew with weights and bias (per channel of the result, or NULL). Gemm's beta is in the bias. */
static ent_status add_anchor(ent_rewrite_context *context, uint32_t id, uint32_t x, uint32_t weights,
                             const double *bias, int64_t channels, const chain *c, uint32_t before,
                             uint32_t *out) {
    ent_node node = *ent_module_node(context->module, id);
    uint32_t inputs[3] = {x, weights, ent_rewrite_input(&node, 2)}, count = 2;
    uint32_t dtype = ent_module_value(context->module, weights)->dtype;
    ent_attrs attrs = node.attrs;
    if (bias) {
        inputs[2] = make_vector(context, node.graph, dtype, 1, &channels, bias, channels);
        if (node.op == ENT_OP_Gemm)
            attrs = ent_rewrite_with_attr(context->module, attrs, ent_attr_float("beta", 1));
        if (inputs[2] == ENT_ID_NONE) return ent_status_out_of_memory();
    }
    if (weights == ENT_ID_NONE) return ent_status_out_of_memory();
    if (inputs[2] != ENT_ID_NONE) count = 3;
    return ent_rewrite_add(context, node.op, attrs, inputs, count, before, c->nodes, c->count, out);
}

static void remove_chain(ent_rewrite_context *context, const chain *c) {
    for (uint32_t i = 0; i < c->count; i++) ent_module_remove_node(context->module, c->nodes[i]);
    context->changed = true;
}

static double beta_of(const ent_node *node) {
    return node->op == ENT_OP_Gemm ? ent_attrs_float(node->attrs, "beta", 1) : 1;
}

/* bias * scale + shift; NULL when there was none and none is needed. */
static bool fold_bias(ent_rewrite_context *context, const ent_anchor *anchor, const ent_affine *map,
                      double **out) {
    const ent_node *node = ent_module_node(context->module, anchor->node);
    uint32_t dtype = weight_dtype(context, anchor->node);
    *out = ent_arena_alloc(context->scratch, (size_t)anchor->channels * sizeof **out);
    if (!ent_anchor_bias(context, anchor, *out)) return false;
    for (int64_t c = 0; c < map->channels; c++) {
        (*out)[c] = (*out)[c] * beta_of(node) * map->scale[c] + map->shift[c];
        if (!fits((*out)[c], dtype)) return false;
    }
    if (ent_rewrite_input(node, 2) == ENT_ID_NONE && !ent_affine_has_shift(map)) *out = NULL;
    return true;
}

static ent_status fold_behind(ent_rewrite_context *context, uint32_t id) {
    ent_anchor anchor;
    double *bias = NULL;
    if (!ent_anchor_of_result(context, id, &anchor)) return NULL;
    const ent_node *node = ent_module_node(context->module, id);
    bool matmul = node->op == ENT_OP_MatMul;
    chain c = walk_down(context, &anchor);
    bool scales = ent_affine_has_scale(&c.map);
    if (c.count < (matmul && !scales ? 3u : 2u) || !map_fits(&c.map, weight_dtype(context, id))) return NULL;
    if (scales && !may_scale(context, &anchor, &c.map)) return NULL;
    if (!matmul && !fold_bias(context, &anchor, &c.map, &bias)) return NULL;
    uint32_t x = node->inputs[0], last = c.nodes[c.count - 1], value;
    uint32_t dtype = weight_dtype(context, id);
    ENT_TRY(add_anchor(context, id, x, ent_anchor_scale(context, &anchor, &c.map), bias, anchor.channels, &c,
                       last, &value));
    if (matmul) ENT_TRY(add_shift(context, &c, dtype, last, &value));
    ent_module_replace_value(context->module, c.end, value);
    remove_chain(context, &c);
    return NULL;
}

/* ---- before a contraction ---- */

static bool reads_padding(const ent_node *node) {
    const ent_attr *pads = ent_attrs_find(node->attrs, "pads");
    if (node->op == ENT_OP_Gemm) return false;
    if (node->op != ENT_OP_Conv) return true; /* ConvTranspose: its borders sum fewer elements */
    if (!ent_attrs_string_is(node->attrs, "auto_pad", "NOTSET", "NOTSET"))
        return !ent_attrs_string_is(node->attrs, "auto_pad", "NOTSET", "VALID");
    for (uint32_t i = 0; pads && i < pads->count; i++)
        if (pads->ints[i] != 0) return true;
    return false;
}

static chain walk_up(const ent_rewrite_context *context, const ent_anchor *anchor, bool shifts) {
    const ent_node *node = ent_module_node(context->module, anchor->node);
    chain c = start_chain(context, anchor, node->inputs[0]);
    while (c.count <= MAX_CHAIN && only_reader(context, c.end, node->graph) != ENT_ID_NONE) {
        const ent_node *producer = ent_rewrite_producer(context, c.end);
        ent_affine earlier = {.channels = anchor->channels};
        uint32_t data;
        if (!producer || producer->graph != node->graph ||
            !ent_affine_read(context, producer, anchor->axis, &earlier, &data) ||
            (!shifts && ent_affine_has_shift(&earlier)))
            break;
        ent_affine_append(&earlier, &c.map);
        c.map = earlier;
        c.nodes[c.count++] = ent_module_value(context->module, c.end)->producer;
        c.end = data;
    }
    return c;
}

/* What the shift adds to the bias. */
static bool carry_shift(ent_rewrite_context *context, const ent_anchor *input, const ent_anchor *result,
                        const ent_affine *map, double **out) {
    const ent_node *node = ent_module_node(context->module, input->node);
    double alpha = node->op == ENT_OP_Gemm ? ent_attrs_float(node->attrs, "alpha", 1) : 1;
    double *bias = ent_arena_alloc(context->scratch, (size_t)result->channels * sizeof *bias);
    *out = ent_arena_alloc(context->scratch, (size_t)result->channels * sizeof **out);
    if (!ent_anchor_bias(context, result, bias)) return false;
    ent_anchor_carry(context, input, map, result, *out);
    for (int64_t c = 0; c < result->channels; c++) {
        (*out)[c] = (*out)[c] * alpha + bias[c] * beta_of(node);
        if (!fits((*out)[c], weight_dtype(context, input->node))) return false;
    }
    return true;
}

static ent_status fold_before(ent_rewrite_context *context, uint32_t id) {
    ent_anchor input, result;
    double *bias = NULL;
    if (!ent_anchor_of_input(context, id, &input) || !ent_anchor_of_result(context, id, &result)) return NULL;
    const ent_node *node = ent_module_node(context->module, id);
    chain c = walk_up(context, &input, node->op != ENT_OP_MatMul && !reads_padding(node));
    if (c.count < 2 || !map_fits(&c.map, weight_dtype(context, id))) return NULL;
    if (ent_affine_has_scale(&c.map) && !may_scale(context, &input, &c.map)) return NULL;
    if (ent_affine_has_shift(&c.map) && !carry_shift(context, &input, &result, &c.map, &bias)) return NULL;
    uint32_t old = node->outputs[0], value;
    ENT_TRY(add_anchor(context, id, c.end, ent_anchor_scale(context, &input, &c.map), bias, result.channels,
                       &c, id, &value));
    ent_module_replace_value(context->module, old, value);
    remove_chain(context, &c);
    return NULL;
}

/* ---- batch normalisation by itself ---- */

static ent_status split_batch_norm(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    int64_t dims[ENT_MAX_RANK];
    uint32_t x, graph = node->graph;
    if (node->op != ENT_OP_BatchNormalization) return NULL;
    const ent_value *value = ent_module_value(context->module, node->inputs[0]);
    uint32_t rank = value->rank, dtype = value->dtype;
    if (rank == ENT_RANK_UNKNOWN || rank < 2 || !ent_dim_is_const(value->dims[1])) return NULL;
    ent_affine map = {.channels = value->dims[1]};
    if (!ent_affine_read(context, node, 1, &map, &x) || !map_fits(&map, dtype)) return NULL;
    for (uint32_t i = 0; i + 1 < rank; i++) dims[i] = i ? 1 : map.channels;
    uint32_t inputs[2] = {x, make_vector(context, graph, dtype, rank - 1, dims, map.scale, map.channels)};
    if (inputs[1] == ENT_ID_NONE) return ent_status_out_of_memory();
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Mul, (ent_attrs){0}, inputs, 2, id, &id, 1, &inputs[0]));
    inputs[1] = make_vector(context, graph, dtype, rank - 1, dims, map.shift, map.channels);
    if (inputs[1] == ENT_ID_NONE) return ent_status_out_of_memory();
    return ent_rewrite_become(context, id, ENT_OP_Add, (ent_attrs){0}, inputs, 2);
}

ent_status ent_rewrite_fold_scales(ent_rewrite_context *context) {
    if (context->options->strict) return NULL;
    ENT_TRY(ent_rewrite_each_node(context, fold_behind));
    ENT_TRY(ent_rewrite_each_node(context, fold_before));
    return ent_rewrite_each_node(context, split_batch_norm);
}
