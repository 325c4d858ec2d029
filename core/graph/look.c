/* Reading a module: iteration, uses, constant contents. */
#include "core/graph/internal.h"

#include <string.h>

bool ent_graph_next(const ent_module *module, uint32_t graph, uint32_t *at, uint32_t *out_node) {
    const ent_order *nodes = module->state->node_order.items;
    uint32_t node = *at == 0 ? module->state->graph_order.items[graph].next : nodes[*at - 1].next;
    while (node != ENT_ID_NONE && module->nodes.items[node].dead) node = nodes[node].next;
    if (node == ENT_ID_NONE) return false;
    *at = node + 1;
    *out_node = node;
    return true;
}

bool ent_value_next_use(const ent_module *module, uint32_t value, uint32_t *at, uint32_t *out_node,
                        uint32_t *out_input) {
    const struct ent_module_state *state = module->state;
    uint32_t next = *at == 0 ? state->use_heads.items[value] : state->uses.items[*at - 1].next;
    while (next) {
        const ent_use *use = &state->uses.items[next - 1];
        if (!(use->user & ENT_USE_GRAPH) && ent_use_slot(module, use, value)) {
            *at = next;
            *out_node = use->user;
            *out_input = use->slot;
            return true;
        }
        next = use->next;
    }
    return false;
}

bool ent_value_is_output(const ent_module *module, uint32_t value) {
    const struct ent_module_state *state = module->state;
    for (uint32_t at = state->use_heads.items[value]; at; at = state->uses.items[at - 1].next) {
        const ent_use *use = &state->uses.items[at - 1];
        if ((use->user & ENT_USE_GRAPH) && ent_use_slot(module, use, value)) return true;
    }
    return false;
}

ent_uses ent_module_uses(const ent_module *module, ent_arena *arena) {
    uint32_t values = module->values.count;
    uint32_t *offsets = ent_arena_alloc(arena, ((size_t)values + 1) * sizeof *offsets);
    uint8_t *is_output = ent_arena_alloc(arena, values);
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        const ent_graph *graph = &module->graphs.items[g];
        for (uint32_t i = 0; i < graph->outputs.count && !ent_graph_is_dead(module, g); i++)
            if (graph->outputs.items[i] < values) is_output[graph->outputs.items[i]] = 1;
    }
    for (uint32_t n = 0; n < module->nodes.count; n++) {
        const ent_node *node = &module->nodes.items[n];
        for (uint32_t i = 0; i < node->input_count && !node->dead; i++)
            if (node->inputs[i] < values) offsets[node->inputs[i] + 1]++;
    }
    for (uint32_t v = 0; v < values; v++) offsets[v + 1] += offsets[v];
    uint32_t *users = ent_arena_alloc(arena, (size_t)offsets[values] * sizeof *users);
    uint32_t *fill = ent_arena_copy(arena, offsets, ((size_t)values + 1) * sizeof *offsets);
    for (uint32_t n = 0; n < module->nodes.count; n++) {
        const ent_node *node = &module->nodes.items[n];
        for (uint32_t i = 0; i < node->input_count && !node->dead; i++)
            if (node->inputs[i] < values) users[fill[node->inputs[i]]++] = n;
    }
    return (ent_uses){offsets, users, is_output};
}

static int64_t tensor_elements(const ent_tensor *tensor) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!ent_mul_i64(count, tensor->dims[i], &count)) return -1;
    return count;
}

/* The constant's tensor if its bytes really hold its elements. */
static const ent_tensor *readable(const ent_module *module, uint32_t value, int64_t *out_count) {
    if (value >= module->values.count || !module->values.items[value].constant) return NULL;
    const ent_tensor *tensor = &module->values.items[value].constant->tensor;
    uint64_t size;
    if (!ent_element_is_numeric(tensor->dtype)) return NULL;
    if (!ent_tensor_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &size) || size > tensor->size_bytes)
        return NULL;
    *out_count = tensor_elements(tensor);
    return *out_count < 0 ? NULL : tensor;
}

bool ent_value_i64s(const ent_module *module, uint32_t value, int64_t *out, uint32_t room,
                    uint32_t *out_count) {
    int64_t count = 0;
    const ent_tensor *tensor = readable(module, value, &count);
    if (!tensor || !ent_dtype_is_integer(tensor->dtype) || count > room) return false;
    for (int64_t i = 0; i < count; i++)
        out[i] = ent_element_get_i64(tensor->data, tensor->dtype, (uint64_t)i);
    *out_count = (uint32_t)count;
    return true;
}

bool ent_value_scalar(const ent_module *module, uint32_t value, double *out) {
    int64_t count = 0;
    const ent_tensor *tensor = readable(module, value, &count);
    if (!tensor || count != 1) return false;
    *out = ent_element_get_f64(tensor->data, tensor->dtype, 0);
    return true;
}

bool ent_value_static(const ent_module *module, uint32_t value) {
    const ent_value *v = ent_module_value(module, value);
    if (v->rank == ENT_RANK_UNKNOWN) return false;
    for (uint32_t i = 0; i < v->rank; i++)
        if (!ent_dim_is_const(v->dims[i])) return false;
    return true;
}

ent_layout ent_value_plain_layout(const ent_module *module, uint32_t value) {
    uint32_t rank = ent_module_value(module, value)->rank;
    return ent_layout_plain(rank == ENT_RANK_UNKNOWN ? 0 : rank);
}

int64_t ent_value_elements(const ent_module *module, uint32_t value) {
    const ent_value *v = ent_module_value(module, value);
    int64_t count = 1;
    if (!ent_value_static(module, value)) return -1;
    for (uint32_t i = 0; i < v->rank; i++)
        if (!ent_mul_i64(count, v->dims[i], &count)) return -1;
    return count;
}

const char *ent_node_place(const ent_module *module, uint32_t node) {
    const ent_node *n = ent_module_node(module, node);
    const ent_op_info *info = ent_op_info_get(n->op);
    return ent_arena_format(module->arena, "%s: node '%s' (%s)", module->name, n->name,
                            info ? info->name : "unknown");
}
