/* The node x device x reason table, as text for goldens and dumps. */
#include "core/negotiate/internal.h"

static const char *node_name(const ent_negotiate_session *session, uint32_t node) {
    return node == ENT_ID_NONE ? "-" : ent_module_node(session->module, node)->name;
}

static const char *device_name(const ent_negotiate_session *session, uint32_t device) {
    return device == ENT_ID_NONE ? "host" : session->devices[device].name;
}

static void print_offer(const ent_negotiate_session *session, const ent_offer *offer, ent_text *text) {
    static const char *const kinds[] = {"?", "view", "tile", "region", "control"};
    static const char *const tiers[] = {"-", "native", "tuned", "generic", "emulated"};
    ent_text_add(text, "offer %u %s %s %s %s ", offer->id, device_name(session, offer->device),
                 kinds[offer->kind], offer->path, tiers[offer->tier]);
    ent_text_add(text, "%.0f ns nodes", offer->time_mid_ns);
    for (uint32_t i = 0; i < offer->node_count; i++)
        ent_text_add(text, " %s", node_name(session, offer->nodes[i]));
    for (uint32_t i = 0; i < offer->port_count; i++) {
        const ent_offer_port *port = &offer->ports[i];
        if (port->value == ENT_ID_NONE || port->is_constant) continue;
        ent_text_add(text, " %s%%%s(", port->is_output ? "->" : "",
                     ent_module_value(session->module, port->value)->name);
        for (uint32_t k = 0; k < port->layout.rank; k++)
            ent_text_add(text, "%s%u", k ? "," : "", port->layout.order[k]);
        ent_text_add(text, ")");
    }
    if (offer->request) ent_text_add(text, " granted %s", offer->request);
    if (offer->withdrawn) ent_text_add(text, " withdrawn: %s", offer->withdrawn);
    ent_text_add(text, "\n");
}

const char *ent_negotiate_print(const ent_negotiate_session *session, ent_arena *arena) {
    ent_text text;
    ent_text_init(&text, arena);
    for (uint32_t i = 0; i < session->offers.count; i++)
        print_offer(session, &session->offers.items[i], &text);
    for (uint32_t i = 0; i < session->refusals.count; i++) {
        const ent_refusal *r = &session->refusals.items[i];
        ent_text_add(&text, "refusal %s %s %s %s: %s%s%s\n", device_name(session, r->device),
                     node_name(session, r->node), r->pattern, r->reason_id, r->text ? r->text : "",
                     r->fix ? "; fix: " : "", r->fix ? r->fix : "");
    }
    return text.data ? text.data : "";
}
