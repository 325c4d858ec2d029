/* The core's own candidates for tile-depth devices, as offers. */
#include "core/negotiate/internal.h"

static void add_candidate(ent_negotiate_session *session, uint32_t device,
                          const ent_fusion_candidate *candidate) {
    ent_offer offer = {0};
    offer.id = session->offers.count;
    offer.kind = candidate->is_view ? ENT_OFFER_VIEW : ENT_OFFER_TILE;
    offer.device = device;
    offer.depth = candidate->is_view ? ENT_DEPTH_NONE : ENT_DEPTH_TILE;
    offer.tier = candidate->tier;
    offer.basis = ENT_BASIS_MODEL;
    offer.graph = candidate->graph;
    offer.nodes = candidate->nodes;
    offer.node_count = candidate->node_count;
    offer.overlays = candidate->overlays;
    offer.overlay_count = candidate->overlay_count;
    ent_offer_port *ports = ent_arena_alloc(session->arena, (candidate->port_count + 1) * sizeof *ports);
    for (uint32_t i = 0; i < candidate->port_count; i++) {
        const ent_fusion_port *port = &candidate->ports[i];
        ports[i] = (ent_offer_port){port->value, port->layout, port->is_output, port->is_constant};
        if (port->is_constant && port->value != ENT_ID_NONE)
            offer.weight_bytes += ent_module_value(session->module, port->value)->constant->tensor.size_bytes;
    }
    offer.ports = ports;
    offer.port_count = candidate->port_count;
    offer.time_low_ns = candidate->price.time_low_ns;
    offer.time_mid_ns = candidate->price.time_mid_ns;
    offer.time_high_ns = candidate->price.time_high_ns;
    offer.scratch_bytes = candidate->price.scratch_bytes;
    offer.traffic_bytes = candidate->price.traffic_bytes;
    offer.bound_by = candidate->price.bound_by;
    offer.path = candidate->kind;
    offer.program = candidate->program;
    ent_array_push(session->arena, &session->offers, offer);
}

ent_status ent_negotiate_tiles(ent_negotiate_session *session, uint32_t device) {
    ent_fusion_set set = {0};
    ENT_TRY(ent_fusion_make(session->module, &session->layouts, session->devices[device].capability,
                            session->arena, &set));
    for (uint32_t i = 0; i < set.items.count; i++) add_candidate(session, device, &set.items.items[i]);
    for (uint32_t i = 0; i < set.refusals.count; i++) {
        ent_refusal refusal = {0};
        refusal.device = device;
        refusal.node = set.refusals.items[i].node;
        refusal.pattern = "tile";
        refusal.reason_id = set.refusals.items[i].reason_id;
        refusal.text = set.refusals.items[i].text;
        ent_negotiate_refuse(session, &refusal);
    }
    return NULL;
}
