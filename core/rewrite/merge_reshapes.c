/* Chains of Reshape, Squeeze, Unsqueeze and Flatten with a known result become one Reshape to a constant
 * shape. */
#include <string.h>

#include "core/rewrite/internal.h"

static bool is_reshape(const ent_node *node) {
    return node && (node->op == ENT_OP_Reshape || node->op == ENT_OP_Squeeze ||
                    node->op == ENT_OP_Unsqueeze || node->op == ENT_OP_Flatten);
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    if (!is_reshape(node) || !ent_value_static(context->module, node->outputs[0])) return NULL;
    const ent_node *before = ent_rewrite_producer(context, node->inputs[0]);
    if (!is_reshape(before) || before->graph != node->graph) return NULL;
    const ent_value out = *ent_module_value(context->module, node->outputs[0]);
    uint32_t from[2] = {ent_module_value(context->module, node->inputs[0])->producer, id}, value;
    uint32_t inputs[2] = {before->inputs[0],
                          ent_module_add_i64s(context->module, node->graph, out.dims, out.rank)};
    ent_attr allow_zero = ent_attr_int("allowzero", 1); /* a dim of 0 is meant as such */
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Reshape, ent_attrs_make(context->module, &allow_zero, 1), inputs,
                            2, id, from, 2, &value));
    ent_rewrite_forward(context, id, value);
    return NULL;
}

ent_status ent_rewrite_merge_reshapes(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
