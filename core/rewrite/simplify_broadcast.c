/* An input that an operator broadcasts anyway need not be expanded first, nor given axes of size 1 in front:
 * the operator reads what stands before the Expand or Reshape. Axes of size 1 in front move down through
 * arithmetic with numbers, to where they can go. */
#include <string.h>

#include "core/rewrite/internal.h"

/* numpy broadcasting over all inputs, and nothing else decides the shape of the result. */
static bool broadcasts(const ent_node *node) {
    return node->op >= ENT_OP_Add && node->op <= ENT_OP_Where && node->op != ENT_OP_PRelu &&
           node->output_count == 1;
}

/* Dim of `value` at an axis counted from the right; 1 beyond its rank. */
static ent_dim dim_from_right(const ent_module *module, uint32_t value, uint32_t axis) {
    const ent_value *v = ent_module_value(module, value);
    return axis < v->rank ? v->dims[v->rank - 1 - axis] : 1;
}

/* The result keeps its shape when input `index` is `source` instead. */
static bool keeps_result(const ent_module *module, const ent_node *node, uint32_t index, uint32_t source) {
    const ent_value *out = ent_module_value(module, node->outputs[0]);
    uint32_t rank = 0;
    if (out->rank == ENT_RANK_UNKNOWN) return false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const ent_value *v = ent_module_value(module, i == index ? source : node->inputs[i]);
        if (v->rank == ENT_RANK_UNKNOWN) return false;
        if (v->rank > rank) rank = v->rank;
    }
    if (rank != out->rank) return false;
    for (uint32_t axis = 0; axis < rank; axis++) {
        ent_dim wanted = dim_from_right(module, node->outputs[0], axis);
        bool found = wanted == 1;
        for (uint32_t i = 0; i < node->input_count && !found; i++)
            found = dim_from_right(module, i == index ? source : node->inputs[i], axis) == wanted;
        if (!found) return false;
    }
    return true;
}

/* A reshape that only puts ones in front. */
static bool adds_leading_ones(const ent_module *module, uint32_t from, uint32_t to) {
    const ent_value *a = ent_module_value(module, from), *b = ent_module_value(module, to);
    if (a->rank == ENT_RANK_UNKNOWN || b->rank == ENT_RANK_UNKNOWN || a->rank >= b->rank) return false;
    for (uint32_t i = 0; i < b->rank; i++)
        if (dim_from_right(module, to, i) != dim_from_right(module, from, i)) return false;
    return true;
}

static uint32_t source_of(const ent_rewrite_context *context, uint32_t value) {
    const ent_node *node = ent_rewrite_producer(context, value);
    if (!node || node->input_count < 1) return ENT_ID_NONE;
    if (node->op == ENT_OP_Expand) return node->inputs[0];
    bool reshapes = node->op == ENT_OP_Reshape || node->op == ENT_OP_Unsqueeze;
    return reshapes && adds_leading_ones(context->module, node->inputs[0], value) ? node->inputs[0]
                                                                                  : ENT_ID_NONE;
}

/* The one input that is no number of at most `rank` axes; NONE when there are others. */
static uint32_t only_data_input(const ent_rewrite_context *context, const ent_node *node,
                                uint32_t *out_index) {
    uint32_t found = ENT_ID_NONE;
    double number;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i];
        if (value == ENT_ID_NONE || ent_value_scalar(context->module, value, &number)) continue;
        if (found != ENT_ID_NONE) return ENT_ID_NONE;
        found = value;
        *out_index = i;
    }
    return found;
}

static bool takes_reshape(const ent_node *node) {
    return ent_op_info_get(node->op)->op_class == ENT_CLASS_ELEMENTWISE && node->output_count == 1 &&
           node->outputs[0] != ENT_ID_NONE && node->op != ENT_OP_CastLike && node->op != ENT_OP_PRelu &&
           node->op != ENT_OP_QuantizeLinear && node->op != ENT_OP_DequantizeLinear;
}

/* f(Reshape(x)) becomes Reshape(f(x)) where the Reshape only puts ones in front. */
static ent_status sink_ones(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t index = 0, count = node->input_count, value;
    if (!takes_reshape(node) || !ent_value_static(context->module, node->outputs[0])) return NULL;
    uint32_t data = only_data_input(context, node, &index);
    uint32_t source = data == ENT_ID_NONE ? ENT_ID_NONE : source_of(context, data);
    const ent_node *reshape = ent_rewrite_producer(context, data);
    if (source == ENT_ID_NONE || reshape->op == ENT_OP_Expand || !ent_rewrite_single_use(context, data))
        return NULL;
    uint32_t *inputs = ent_arena_copy(context->scratch, node->inputs, count * sizeof *inputs);
    for (uint32_t i = 0; i < count; i++)
        if (i != index && inputs[i] != ENT_ID_NONE &&
            ent_module_value(context->module, inputs[i])->rank >
                ent_module_value(context->module, source)->rank)
            return NULL;
    inputs[index] = source;
    ENT_TRY(ent_rewrite_add(context, node->op, node->attrs, inputs, count, id, &id, 1, &value));
    *out_done = true;
    return ent_rewrite_become_reshape(context, id, value, &ent_module_value(context->module, data)->producer,
                                      1);
}

ent_status ent_rewrite_simplify_broadcast(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    if (!broadcasts(node) || node->outputs[0] == ENT_ID_NONE) return sink_ones(context, id, out_done);
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t source = node->inputs[i] == ENT_ID_NONE ? ENT_ID_NONE : source_of(context, node->inputs[i]);
        if (source == ENT_ID_NONE || !keeps_result(context->module, node, i, source)) continue;
        ent_module_set_input(context->module, id, i, source);
        context->changed = true;
    }
    return sink_ones(context, id, out_done);
}
