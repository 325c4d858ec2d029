/* Helpers that passes share. */
#include "core/rewrite/internal.h"

#include <stdlib.h>
#include <string.h>

ent_status ent_rewrite_each_node(ent_rewrite_context *context,
                                 ent_status (*visit)(ent_rewrite_context *context, uint32_t node)) {
    uint32_t graphs = context->module->graphs.count;
    for (uint32_t g = 0; g < graphs; g++) {
        uint32_t at = 0, node;
        while (ent_graph_next(context->module, g, &at, &node)) ENT_TRY(visit(context, node));
    }
    return NULL;
}

const ent_node *ent_rewrite_producer(const ent_rewrite_context *context, uint32_t value) {
    if (value == ENT_ID_NONE) return NULL;
    uint32_t node = ent_module_value(context->module, value)->producer;
    return node == ENT_ID_NONE ? NULL : ent_module_node(context->module, node);
}

bool ent_rewrite_single_use(const ent_rewrite_context *context, uint32_t value) {
    uint32_t at = 0, node, index;
    if (ent_value_is_output(context->module, value)) return false;
    if (!ent_value_next_use(context->module, value, &at, &node, &index)) return false;
    return !ent_value_next_use(context->module, value, &at, &node, &index);
}

void ent_rewrite_forward(ent_rewrite_context *context, uint32_t node, uint32_t value) {
    ent_module_replace_value(context->module, ent_module_node(context->module, node)->outputs[0], value);
    ent_module_remove_node(context->module, node);
    context->changed = true;
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

ent_status ent_rewrite_add(ent_rewrite_context *context, uint32_t op, ent_attrs attrs, const uint32_t *inputs,
                           uint32_t input_count, uint32_t before, const uint32_t *from, uint32_t from_count,
                           uint32_t *out_value) {
    uint32_t room = 0, count = 0;
    for (uint32_t i = 0; i < from_count; i++) room += ent_module_node(context->module, from[i])->origin_count;
    uint32_t *origins = ent_arena_alloc(context->scratch, (room + 1) * sizeof *origins);
    for (uint32_t i = 0; i < from_count; i++) {
        const ent_node *node = ent_module_node(context->module, from[i]);
        memcpy(origins + count, node->origins, node->origin_count * sizeof *origins);
        count += node->origin_count;
    }
    qsort(origins, count, sizeof *origins, compare_u32);
    uint32_t unique = 0;
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || origins[i] != origins[i - 1]) origins[unique++] = origins[i];
    ent_node_spec spec = {.op = op,
                          .name = ent_module_node(context->module, from[0])->name,
                          .attrs = attrs,
                          .inputs = inputs,
                          .input_count = input_count,
                          .output_count = 1,
                          .origins = origins,
                          .origin_count = unique};
    uint32_t graph = ent_module_node(context->module, before)->graph;
    uint32_t node = ent_module_add_node(context->module, graph, &spec, before);
    ENT_TRY(ent_node_infer(context->module, node, context->scratch));
    *out_value = ent_module_node(context->module, node)->outputs[0];
    context->changed = true;
    return NULL;
}
