/* All sources of offers in order; control nodes that nobody takes. */
#include "core/negotiate/internal.h"

static ent_offer_port control_port(const ent_module *module, uint32_t value, bool is_output) {
    return (ent_offer_port){value, ent_value_plain_layout(module, value), is_output,
                            ent_module_value(module, value)->constant != NULL};
}

/* Body outputs come in and the control node's outputs go out in plain host form: the branch step's bodies
 * write them there. */
static void add_control(ent_negotiate_session *session, uint32_t id) {
    const ent_module *module = session->module;
    const ent_node *node = ent_module_node(module, id);
    uint32_t room = node->input_count + node->output_count;
    for (uint32_t a = 0; a < node->attrs.count; a++)
        if (node->attrs.items[a].type == ENT_ATTR_GRAPH)
            room += ent_module_graph(module, node->attrs.items[a].i)->outputs.count;
    ent_offer_port *ports = ent_arena_alloc(session->arena, (room + 1) * sizeof *ports);
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != ENT_ID_NONE) ports[count++] = control_port(module, node->inputs[i], false);
    }
    for (uint32_t a = 0; a < node->attrs.count; a++) {
        if (node->attrs.items[a].type != ENT_ATTR_GRAPH) continue;
        const ent_graph *body = ent_module_graph(module, node->attrs.items[a].i);
        for (uint32_t i = 0; i < body->outputs.count; i++)
            ports[count++] = control_port(module, body->outputs.items[i], false);
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ENT_ID_NONE) ports[count++] = control_port(module, node->outputs[i], true);
    ent_offer offer = {0};
    offer.id = session->offers.count;
    offer.kind = ENT_OFFER_CONTROL;
    offer.device = ENT_ID_NONE;
    offer.tier = ENT_TIER_TUNED;
    offer.basis = ENT_BASIS_MODEL;
    offer.graph = node->graph;
    offer.nodes = ent_arena_copy(session->arena, &id, sizeof id);
    offer.node_count = 1;
    offer.ports = ports;
    offer.port_count = count;
    offer.path = node->op == ENT_OP_If ? "branch" : "loop";
    offer.bound_by = "launch";
    ent_array_push(session->arena, &session->offers, offer);
}

void ent_negotiate_control(ent_negotiate_session *session) {
    for (uint32_t g = 0; g < session->module->graphs.count; g++) {
        uint32_t at = 0, id;
        while (ent_graph_next(session->module, g, &at, &id))
            if (ent_op_info_get(ent_module_node(session->module, id)->op)->op_class == ENT_CLASS_CONTROL)
                add_control(session, id);
    }
}

/* "Why not there?" has an answer for every leaf: where a device has neither an offer nor a reason, nothing
 * that it declares names the operator. */
static ent_status note_silent(ent_negotiate_session *session, uint32_t device) {
    const ent_module *module = session->module;
    uint8_t *answered = ent_arena_array(session->arena, (size_t)module->nodes.count + 1, 1);
    if (!answered) return ent_status_out_of_memory();
    for (uint32_t o = 0; o < session->offers.count; o++) {
        const ent_offer *offer = &session->offers.items[o];
        for (uint32_t i = 0; offer->device == device && i < offer->node_count; i++)
            answered[offer->nodes[i]] = 1;
    }
    for (uint32_t r = 0; r < session->refusals.count; r++)
        if (session->refusals.items[r].device == device &&
            session->refusals.items[r].node < module->nodes.count)
            answered[session->refusals.items[r].node] = 1;
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, id;
        while (ent_graph_next(module, g, &at, &id)) {
            const ent_op_info *info = ent_op_info_get(ent_module_node(module, id)->op);
            if (answered[id] || info->op_class == ENT_CLASS_CONTROL) continue;
            ent_refusal refusal = {.device = device, .node = id, .pattern = "", .reason_id = "pattern.none"};
            refusal.text = ent_arena_format(session->arena,
                                            "no pattern that the device declares takes %s here", info->name);
            ent_negotiate_refuse(session, &refusal);
        }
    }
    return NULL;
}

ent_status ent_negotiate_offers(ent_negotiate_session *session) {
    ENT_TRY(ent_fusion_find_layouts(session->module, session->arena, &session->layouts));
    ent_uses uses = ent_module_uses(session->module, session->arena);
    for (uint32_t d = 0; d < session->device_count; d++) {
        if (session->devices[d].capability->depths & ENT_DEPTH_TILE) ENT_TRY(ent_negotiate_tiles(session, d));
        ENT_TRY(ent_negotiate_match(session, &uses, d));
        ENT_TRY(ent_negotiate_survey(session, &uses, d));
        ENT_TRY(ent_negotiate_quotes(session, d));
        ENT_TRY(note_silent(session, d));
    }
    ent_negotiate_control(session);
    return NULL;
}
