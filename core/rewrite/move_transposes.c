/* Transposes move down through elementwise nodes until they meet and cancel (simplify composes them).
 *
 * A node moves when at least one input is a Transpose, every other data input is one with the same
 * permutation, a constant that can be permuted now, or a single element; the node is then applied to the
 * untransposed values and one Transpose follows it. A transposed input that others read too would leave its
 * Transpose alive, so that only inputs whose transposes all disappear count: the number of transposes never
 * grows. */
#include <string.h>

#include "core/ops/ops.h"
#include "core/rewrite/internal.h"

static const ent_attr *permutation_of(const ent_rewrite_context *context, uint32_t value) {
    const ent_node *node = ent_rewrite_producer(context, value);
    return node && node->op == ENT_OP_Transpose ? ent_attrs_find(node->attrs, "perm") : NULL;
}

static bool same_permutation(const ent_attr *a, const ent_attr *b) {
    return a && b && a->count == b->count && memcmp(a->ints, b->ints, a->count * sizeof *a->ints) == 0;
}

/* Inputs that carry data element by element; the bounds of Clip are scalars anyway. */
static bool moves(const ent_rewrite_context *context, const ent_node *node) {
    const ent_op_info *info = ent_op_info_get(node->op);
    (void)context;
    return info->op_class == ENT_CLASS_ELEMENTWISE && node->output_count == 1 &&
           node->op != ENT_OP_QuantizeLinear && node->op != ENT_OP_DequantizeLinear &&
           node->op != ENT_OP_PRelu && node->op != ENT_OP_CastLike;
}

static const ent_attr *common_permutation(const ent_rewrite_context *context, const ent_node *node) {
    const ent_attr *perm = NULL;
    uint32_t transposed = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t v = node->inputs[i];
        if (v == ENT_ID_NONE) continue;
        const ent_attr *here = permutation_of(context, v);
        if (!here) {
            const ent_value *value = ent_module_value(context->module, v);
            bool single = ent_value_elements(context->module, v) == 1;
            if (!single && !value->constant) return NULL;
            continue;
        }
        if (perm && !same_permutation(perm, here)) return NULL;
        if (!ent_rewrite_single_use(context, v)) return NULL;
        perm = here;
        transposed++;
    }
    const ent_value *out = ent_module_value(context->module, node->outputs[0]);
    return transposed > 0 && perm->count == out->rank ? perm : NULL;
}

/* A constant as the untransposed node has to see it: dims padded with ones in front, then permuted back. */
static uint32_t permute_constant(ent_rewrite_context *context, uint32_t graph, uint32_t value,
                                 const ent_attr *perm) {
    const ent_tensor *from = &ent_module_value(context->module, value)->constant->tensor;
    ent_tensor view = *from, to;
    uint32_t rank = perm->count;
    for (uint32_t i = 0; i < rank; i++)
        view.dims[i] = i < rank - from->rank ? 1 : from->dims[i - (rank - from->rank)];
    view.rank = rank;
    view.layout = ent_layout_plain(rank);
    to = view;
    for (uint32_t i = 0; i < rank; i++) {
        to.dims[perm->ints[i]] = view.dims[i];
        view.layout.order[i] = (uint8_t)perm->ints[i]; /* the same bytes, seen with the untransposed axes */
    }
    ent_tensor source = to;
    source.data = from->data;
    source.layout = view.layout;
    to.layout = ent_layout_plain(rank);
    to.data = ent_arena_array(context->module->arena, from->size_bytes + 64, 1);
    ent_ops_error error = {0};
    if (!to.data || ent_ops_convert(&source, &to, &error) != ENT_OK) return ENT_ID_NONE;
    return ent_module_add_constant(context->module, graph, NULL, to.dtype, rank, to.dims, to.data,
                                   from->size_bytes, true);
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    if (!moves(context, node)) return NULL;
    const ent_attr *perm = common_permutation(context, node);
    if (!perm) return NULL;
    uint32_t count = node->input_count, graph = node->graph, value, moved;
    uint32_t *inputs = ent_arena_copy(context->scratch, node->inputs, (count + 1) * sizeof *inputs);
    uint32_t *from = ent_arena_alloc(context->scratch, (count + 1) * sizeof *from), from_count = 1;
    from[0] = id;
    for (uint32_t i = 0; i < count; i++) {
        if (inputs[i] == ENT_ID_NONE) continue;
        if (permutation_of(context, inputs[i])) {
            from[from_count++] = ent_module_value(context->module, inputs[i])->producer;
            inputs[i] = ent_rewrite_producer(context, inputs[i])->inputs[0];
        } else if (ent_value_elements(context->module, inputs[i]) != 1) {
            inputs[i] = permute_constant(context, graph, inputs[i], perm);
            if (inputs[i] == ENT_ID_NONE) return NULL;
        }
    }
    ent_attr attr = ent_attr_ints(context->module, "perm", perm->ints, perm->count);
    node = ent_module_node(context->module, id);
    ENT_TRY(ent_rewrite_add(context, node->op, node->attrs, inputs, count, id, from, 1, &value));
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Transpose, ent_attrs_make(context->module, &attr, 1), &value, 1,
                            id, from + 1, from_count - 1, &moved));
    ent_rewrite_forward(context, id, moved);
    return NULL;
}

ent_status ent_rewrite_move_transposes(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
