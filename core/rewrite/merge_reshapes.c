/* Reshape, Squeeze, Unsqueeze and Flatten with a known result become one Reshape to a constant shape, chains
 * of them too. A Reshape after a reduction that puts the reduced axes back makes the reduction keep them. */
#include <string.h>

#include "core/rewrite/internal.h"

static bool is_reshape(const ent_node *node) {
    return node && (node->op == ENT_OP_Reshape || node->op == ENT_OP_Squeeze ||
                    node->op == ENT_OP_Unsqueeze || node->op == ENT_OP_Flatten);
}

/* A Reshape whose shape input holds the result's dims as they are. */
static bool is_plain(const ent_rewrite_context *context, const ent_node *node) {
    const ent_value *out = ent_module_value(context->module, node->outputs[0]);
    int64_t dims[ENT_MAX_RANK];
    uint32_t count = 0;
    return node->op == ENT_OP_Reshape &&
           ent_value_i64s(context->module, node->inputs[1], dims, ENT_MAX_RANK, &count) &&
           count == out->rank && memcmp(dims, out->dims, count * sizeof *dims) == 0;
}

/* A reduction that drops its axes, whose result nobody else reads, and `dims` is its shape with them kept. */
static bool restores_axes(const ent_rewrite_context *context, const ent_node *reduction, uint32_t value) {
    uint32_t mask = 0;
    if (!reduction || !ent_rewrite_is_reduction(reduction->op) ||
        ent_attrs_int(reduction->attrs, "keepdims", 1) != 0 ||
        !ent_rewrite_reduced_axes(context->module, reduction, &mask))
        return false;
    const ent_value *x = ent_module_value(context->module, reduction->inputs[0]);
    const ent_value *out = ent_module_value(context->module, value);
    if (x->rank != out->rank) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (out->dims[i] != (mask >> i & 1 ? 1 : x->dims[i])) return false;
    return true;
}

static ent_status keep_axes(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_node *reduction = ent_rewrite_producer(context, node->inputs[0]);
    if (!restores_axes(context, reduction, node->outputs[0]) ||
        !ent_rewrite_single_use(context, node->inputs[0]))
        return NULL;
    ent_attrs attrs = ent_rewrite_with_attr(context->module, reduction->attrs, ent_attr_int("keepdims", 1));
    uint32_t from[2] = {ent_module_value(context->module, node->inputs[0])->producer, id}, made;
    ENT_TRY(ent_rewrite_add(context, reduction->op, attrs, reduction->inputs, reduction->input_count, id,
                            from, 2, &made));
    ent_rewrite_forward(context, id, made);
    *out_done = true;
    return NULL;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    bool done = false;
    if (!is_reshape(node) || !ent_value_static(context->module, node->outputs[0])) return NULL;
    ENT_TRY(keep_axes(context, id, &done));
    if (done) return NULL;
    uint32_t from[2] = {id, ent_module_value(context->module, node->inputs[0])->producer};
    const ent_node *before = ent_rewrite_producer(context, node->inputs[0]);
    bool chain = is_reshape(before) && before->graph == node->graph;
    if (!chain && is_plain(context, node)) return NULL;
    return ent_rewrite_become_reshape(context, id, chain ? before->inputs[0] : node->inputs[0], from,
                                      chain ? 2 : 1);
}

ent_status ent_rewrite_merge_reshapes(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
