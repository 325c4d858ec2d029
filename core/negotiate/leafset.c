/* Leaf sets and their boundaries; region offers from them. */
#include "core/negotiate/internal.h"

#include <string.h>

typedef struct id_list {
    uint32_t *items;
    uint32_t count;
} id_list;

static bool list_has(const id_list *list, uint32_t id) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->items[i] == id) return true;
    return false;
}

static bool set_has(const uint32_t *nodes, uint32_t count, uint32_t node) {
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i] == node) return true;
    return false;
}

static bool used_outside(const ent_uses *uses, uint32_t value, const uint32_t *nodes, uint32_t count) {
    if (uses->is_output[value]) return true;
    for (uint32_t i = uses->offsets[value]; i < uses->offsets[value + 1]; i++)
        if (!set_has(nodes, count, uses->users[i])) return true;
    return false;
}

void ent_negotiate_boundary(const ent_negotiate_session *session, const ent_uses *uses, uint32_t graph,
                            const uint32_t *nodes, uint32_t node_count, ent_leaf_set *out) {
    const ent_module *module = session->module;
    uint32_t input_room = 0, output_room = 0;
    for (uint32_t i = 0; i < node_count; i++) {
        input_room += ent_module_node(module, nodes[i])->input_count;
        output_room += ent_module_node(module, nodes[i])->output_count;
    }
    id_list inputs = {ent_arena_alloc(session->arena, (input_room + 1) * sizeof(uint32_t)), 0};
    id_list outputs = {ent_arena_alloc(session->arena, (output_room + 1) * sizeof(uint32_t)), 0};
    for (uint32_t i = 0; i < node_count; i++) {
        const ent_node *node = ent_module_node(module, nodes[i]);
        for (uint32_t k = 0; k < node->input_count; k++) {
            uint32_t id = node->inputs[k];
            if (id == ENT_ID_NONE || list_has(&inputs, id)) continue;
            if (set_has(nodes, node_count, ent_module_value(module, id)->producer)) continue;
            inputs.items[inputs.count++] = id;
        }
        for (uint32_t k = 0; k < node->output_count; k++)
            if (node->outputs[k] != ENT_ID_NONE && used_outside(uses, node->outputs[k], nodes, node_count))
                outputs.items[outputs.count++] = node->outputs[k];
    }
    *out = (ent_leaf_set){graph, nodes, node_count, inputs.items, inputs.count, outputs.items, outputs.count};
}

bool ent_negotiate_open_rank(const ent_negotiate_session *session, const ent_leaf_set *set) {
    for (uint32_t i = 0; i < set->input_count + set->output_count; i++) {
        uint32_t id = i < set->input_count ? set->inputs[i] : set->outputs[i - set->input_count];
        if (ent_module_value(session->module, id)->rank == ENT_RANK_UNKNOWN) return true;
    }
    return false;
}

static ent_layout choose_layout(const ent_value *value, const char *layout) {
    if (value->constant || strcmp(layout, "channels_last") != 0) return ent_layout_plain(value->rank);
    return ent_layout_channels_last(value->rank);
}

ent_offer *ent_negotiate_add_region_offer(ent_negotiate_session *session, uint32_t device,
                                          const ent_leaf_set *set, const char *layout) {
    const ent_module *module = session->module;
    ent_offer offer = {0};
    offer.id = session->offers.count;
    offer.kind = ENT_OFFER_REGION;
    offer.device = device;
    offer.depth = ENT_DEPTH_REGION;
    offer.graph = set->graph;
    offer.nodes = set->nodes;
    offer.node_count = set->node_count;
    offer.port_count = set->input_count + set->output_count;
    ent_offer_port *ports = ent_arena_alloc(session->arena, (offer.port_count + 1) * sizeof *ports);
    for (uint32_t i = 0; i < offer.port_count; i++) {
        bool is_output = i >= set->input_count;
        uint32_t id = is_output ? set->outputs[i - set->input_count] : set->inputs[i];
        const ent_value *value = ent_module_value(module, id);
        ports[i] = (ent_offer_port){id, choose_layout(value, layout), is_output, value->constant != NULL};
        if (value->constant) offer.weight_bytes += value->constant->tensor.size_bytes;
    }
    offer.ports = ports;
    ent_array_push(session->arena, &session->offers, offer);
    return &session->offers.items[session->offers.count - 1];
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* A pattern tried with several lengths misses for the same reason each time: once is enough. */
void ent_negotiate_refuse(ent_negotiate_session *session, const ent_refusal *refusal) {
    for (uint32_t i = session->refusals.count, seen = 0; i-- > 0 && seen < 16; seen++) {
        const ent_refusal *r = &session->refusals.items[i];
        if (r->device == refusal->device && r->node == refusal->node && r->pattern == refusal->pattern &&
            r->reason_id == refusal->reason_id && r->wanted == refusal->wanted && r->got == refusal->got &&
            same_text(r->text, refusal->text))
            return;
    }
    ent_array_push(session->arena, &session->refusals, *refusal);
}

/* At typical sizes; 0 where the rank is not known. */
static double elements_of(const ent_module *module, uint32_t id) {
    const ent_value *value = ent_module_value(module, id);
    double elements = value->rank != ENT_RANK_UNKNOWN;
    for (uint32_t i = 0; elements > 0 && i < value->rank; i++)
        elements *= (double)ent_module_typical(module, value->dims[i]);
    return elements;
}

static double value_bytes(const ent_module *module, uint32_t id) {
    return elements_of(module, id) * ent_dtype_bits(ent_module_value(module, id)->dtype) / 8.0;
}

/* Every row of the sequence meets both weights of its direction once. */
static double recurrent_flops(const ent_module *module, const ent_node *node) {
    double elements[3];
    for (uint32_t k = 0; k < 3; k++) elements[k] = elements_of(module, node->inputs[k]);
    const ent_value *x = ent_module_value(module, node->inputs[0]);
    if (elements[0] <= 0 || x->rank != 3) return 0;
    return 2.0 * (elements[0] / (double)ent_module_typical(module, x->dims[2])) * (elements[1] + elements[2]);
}

/* Multiply-adds count as two; other leaves one operation an output element. */
static double node_flops(const ent_module *module, const ent_node *node) {
    double outputs = 0;
    for (uint32_t k = 0; k < node->output_count; k++)
        if (node->outputs[k] != ENT_ID_NONE) outputs += elements_of(module, node->outputs[k]);
    const ent_op_info *info = ent_op_info_get(node->op);
    if (node->op == ENT_OP_RNN || node->op == ENT_OP_GRU || node->op == ENT_OP_LSTM)
        return recurrent_flops(module, node);
    if (info->op_class == ENT_CLASS_CONTRACTION) {
        const ent_value *weight = ent_module_value(module, node->inputs[1]);
        double inner = 1;
        if (node->op == ENT_OP_MatMul || node->op == ENT_OP_MatMulInteger || node->op == ENT_OP_Gemm) {
            const ent_value *left = ent_module_value(module, node->inputs[0]);
            bool transposed = node->op == ENT_OP_Gemm && ent_attrs_int(node->attrs, "transA", 0);
            if (left->rank > 0 && left->rank != ENT_RANK_UNKNOWN)
                inner = (double)ent_module_typical(module, left->dims[transposed ? 0 : left->rank - 1]);
        } else {
            for (uint32_t d = 1; d < weight->rank && weight->rank != ENT_RANK_UNKNOWN; d++)
                inner *= (double)ent_module_typical(module, weight->dims[d]);
        }
        return 2 * outputs * inner;
    }
    return outputs + (info->op_class == ENT_CLASS_REDUCTION ? elements_of(module, node->inputs[0]) : 0);
}

void ent_negotiate_work(const ent_negotiate_session *session, const ent_leaf_set *set, double *out_flops,
                        double *out_bytes) {
    *out_flops = 0;
    *out_bytes = 0;
    for (uint32_t i = 0; i < set->node_count; i++)
        *out_flops += node_flops(session->module, ent_module_node(session->module, set->nodes[i]));
    for (uint32_t i = 0; i < set->input_count; i++)
        *out_bytes += value_bytes(session->module, set->inputs[i]);
    for (uint32_t i = 0; i < set->output_count; i++)
        *out_bytes += value_bytes(session->module, set->outputs[i]);
}
