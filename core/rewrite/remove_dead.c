/* Nodes whose results nobody reads. Backwards over each graph, so that chains go in one sweep. */
#include "core/rewrite/internal.h"

static bool is_used(const ent_rewrite_context *context, const ent_node *node) {
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t value = node->outputs[i], at = 0, user, index;
        if (value == ENT_ID_NONE) continue;
        if (ent_value_is_output(context->module, value) ||
            ent_value_next_use(context->module, value, &at, &user, &index))
            return true;
    }
    return false;
}

ent_status ent_rewrite_remove_dead(ent_rewrite_context *context) {
    for (uint32_t g = context->module->graphs.count; g-- > 0;) {
        ENT_ARRAY(uint32_t) order = {0};
        uint32_t at = 0, id;
        while (ent_graph_next(context->module, g, &at, &id)) ent_array_push(context->scratch, &order, id);
        for (uint32_t i = order.count; i-- > 0;) {
            if (is_used(context, ent_module_node(context->module, order.items[i]))) continue;
            ent_module_remove_node(context->module, order.items[i]);
            context->changed = true;
        }
    }
    return NULL;
}
