/* The plan as JSON: what `explain` shows and the bundle keeps. docs/plan.md describes the fields. */
#include "core/plan/internal.h"

#include <string.h>

static const char *const tier_names[] = {"none", "native", "tuned", "generic", "emulated"};
static const char *const basis_names[] = {"none", "measured", "quote", "model", "guess"};
static const char *const kind_names[] = {"none", "view", "tile", "region", "control"};

static const char *depth_name(uint32_t depth) {
    switch (depth) {
    case ENT_DEPTH_GRAPH:
        return "graph";
    case ENT_DEPTH_REGION:
        return "region";
    case ENT_DEPTH_TILE:
        return "tile";
    default:
        return "none";
    }
}

static void add_string(ent_text *text, const char *key, const char *value) {
    ent_text_add(text, "\"%s\":", key);
    if (!value)
        ent_text_add(text, "null");
    else
        ent_text_add_json_string(text, value, strlen(value));
}

static void add_number(ent_text *text, const char *key, double value) {
    ent_text_add(text, ",\"%s\":", key);
    ent_text_add_number(text, (double)(int64_t)(value * 10 + 0.5) / 10, false);
}

static const char *device_name(const ent_negotiate_session *session, uint32_t device) {
    return device == ENT_ID_NONE ? "host" : session->devices[device].name;
}

/* Model nodes behind a leaf, or the leaf's own name when a rewrite made it from none. */
static void add_node_names(const ent_module *module, const ent_offer *offer, ent_text *text) {
    ent_map *seen = ent_map_create(text->arena);
    bool first = true;
    ent_text_add(text, ",\"nodes\":[");
    for (uint32_t i = 0; i < offer->node_count; i++) {
        const ent_node *node = ent_module_node(module, offer->nodes[i]);
        for (uint32_t k = 0; k < node->origin_count || (k == 0 && node->origin_count == 0); k++) {
            const char *name = node->origin_count ? module->model_nodes.items[node->origins[k]] : node->name;
            if (ent_map_find(seen, name, NULL)) continue;
            ent_map_set(seen, name, 1);
            if (!first) ent_text_add(text, ",");
            ent_text_add_json_string(text, name, strlen(name));
            first = false;
        }
    }
    ent_text_add(text, "],\"leaves\":[");
    for (uint32_t i = 0; i < offer->node_count; i++) {
        const ent_node *node = ent_module_node(module, offer->nodes[i]);
        ent_text_add(text, "%s{", i ? "," : "");
        add_string(text, "name", node->name);
        ent_text_add(text, ",");
        add_string(text, "op", ent_op_info_get(node->op)->name);
        ent_text_add(text, "}");
    }
    ent_text_add(text, "]");
}

static const char *layout_text(ent_arena *arena, const ent_layout *layout) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_layout plain = ent_layout_plain(layout->rank), last = ent_layout_channels_last(layout->rank);
    if (ent_layout_equal(layout, &plain)) return "plain";
    if (ent_layout_equal(layout, &last)) return "channels_last";
    ent_text_add(&text, "order(");
    for (uint32_t i = 0; i < layout->rank; i++) ent_text_add(&text, "%s%u", i ? "," : "", layout->order[i]);
    ent_text_add(&text, ")");
    for (uint32_t i = 0; i < layout->block_count; i++)
        ent_text_add(&text, " block(%u:%u)", layout->block_axis[i], layout->block_size[i]);
    return text.data;
}

static void add_ports(const ent_module *module, const ent_offer *offer, ent_text *text) {
    bool first = true;
    ent_text_add(text, ",\"ports\":[");
    for (uint32_t i = 0; i < offer->port_count; i++) {
        const ent_offer_port *port = &offer->ports[i];
        if (port->value == ENT_ID_NONE) continue;
        ent_text_add(text, "%s{", first ? "" : ",");
        first = false;
        add_string(text, "value", ent_module_value(module, port->value)->name);
        ent_text_add(text, ",\"direction\":\"%s\",",
                     port->is_output     ? "output"
                     : port->is_constant ? "constant"
                                         : "input");
        add_string(text, "layout", layout_text(text->arena, &port->layout));
        ent_text_add(text, "}");
    }
    ent_text_add(text, "]");
}

/* One sentence: why here. */
static const char *region_reason(const ent_plan *plan, uint32_t index, const ent_offer *offer) {
    ent_arena *arena = plan->session->arena;
    const ent_plan_runner_up *next = &plan->runners_up[index];
    if (offer->kind == ENT_OFFER_CONTROL)
        return "control known only at run time: the host branches or loops, bodies are placed like any graph";
    const char *how =
        offer->kind == ENT_OFFER_VIEW
            ? "the same bytes under another shape: nothing runs"
            : ent_arena_format(arena, "predicted %.1f us, limited by %s", offer->time_mid_ns / 1000,
                               offer->bound_by ? offer->bound_by : "the vendor's quote");
    if (!next->exists) return ent_arena_format(arena, "%s; nothing else covers these leaves", how);
    return ent_arena_format(arena, "%s; next best %s (%s) at %.1f us", how, next->devices, next->paths,
                            next->price_ns / 1000);
}

static void add_region(const ent_plan *plan, uint32_t index, ent_text *text) {
    const ent_negotiate_session *session = plan->session;
    const ent_offer *offer = &session->offers.items[plan->regions[index]];
    const ent_plan_runner_up *next = &plan->runners_up[index];
    ent_text_add(text, "%s{\"index\":%u,", index ? "," : "", index);
    add_string(text, "graph", ent_module_graph(session->module, offer->graph)->name);
    ent_text_add(text, ",");
    add_string(text, "device", device_name(session, offer->device));
    ent_text_add(text, ",\"kind\":\"%s\",\"depth\":\"%s\",\"tier\":\"%s\",", kind_names[offer->kind],
                 depth_name(offer->depth), tier_names[offer->tier]);
    add_string(text, "path", offer->path);
    add_number(text, "predicted_ns", offer->time_mid_ns);
    add_number(text, "low_ns", offer->time_low_ns);
    add_number(text, "high_ns", offer->time_high_ns);
    add_number(text, "weight", plan->region_weight[index]);
    ent_text_add(text, ",\"basis\":\"%s\",", basis_names[offer->basis]);
    add_string(text, "bound_by", offer->bound_by);
    ent_text_add(text, ",");
    add_string(text, "request", offer->request);
    ent_text_add(text, ",");
    add_string(text, "reason", region_reason(plan, index, offer));
    ent_text_add(text, ",\"runner_up\":");
    if (next->exists) {
        ent_text_add(text, "{");
        add_string(text, "devices", next->devices);
        ent_text_add(text, ",");
        add_string(text, "paths", next->paths);
        add_number(text, "price_ns", next->price_ns);
        ent_text_add(text, "}");
    } else {
        ent_text_add(text, "null");
    }
    add_node_names(session->module, offer, text);
    add_ports(session->module, offer, text);
    ent_text_add(text, "}");
}

static void add_converts(const ent_plan *plan, ent_text *text) {
    ent_text_add(text, ",\"converts\":[");
    for (uint32_t i = 0; i < plan->convert_count; i++) {
        const ent_plan_convert *c = &plan->converts[i];
        ent_text_add(text, "%s{", i ? "," : "");
        add_string(text, "value", ent_module_value(plan->session->module, c->value)->name);
        ent_text_add(text, ",");
        add_string(text, "from_memory", device_name(plan->session, plan->spaces[c->from_space].device));
        ent_text_add(text, ",");
        add_string(text, "to_memory", device_name(plan->session, plan->spaces[c->to_space].device));
        ent_text_add(text, ",");
        add_string(text, "from", layout_text(text->arena, &c->from));
        ent_text_add(text, ",");
        add_string(text, "to", layout_text(text->arena, &c->to));
        ent_text_add(text, ",\"before_region\":%u", c->before);
        add_number(text, "predicted_ns", c->price_ns);
        ent_text_add(text, "}");
    }
    ent_text_add(text, "]");
}

/* Refusals of leaves by device and reason, counted: 1,000 equal lines become one. */
static void add_refusals(const ent_plan *plan, ent_text *text) {
    const ent_negotiate_session *session = plan->session;
    bool first = true;
    ent_text_add(text, ",\"refusals\":[");
    for (uint32_t i = 0; i < session->refusals.count; i++) {
        const ent_refusal *r = &session->refusals.items[i];
        ent_text_add(text, "%s{", first ? "" : ",");
        first = false;
        add_string(text, "device", device_name(session, r->device));
        ent_text_add(text, ",");
        add_string(text, "node",
                   r->node == ENT_ID_NONE ? NULL : ent_module_node(session->module, r->node)->name);
        ent_text_add(text, ",");
        add_string(text, "pattern", r->pattern);
        ent_text_add(text, ",");
        add_string(text, "reason", r->reason_id);
        ent_text_add(text, ",");
        add_string(text, "text", r->text);
        ent_text_add(text, ",");
        add_string(text, "fix", r->fix);
        ent_text_add(text, "}");
    }
    for (uint32_t i = 0; i < session->offers.count; i++) {
        const ent_offer *offer = &session->offers.items[i];
        if (!offer->withdrawn) continue;
        ent_text_add(text, "%s{", first ? "" : ",");
        first = false;
        add_string(text, "device", device_name(session, offer->device));
        ent_text_add(text, ",");
        add_string(text, "node", ent_module_node(session->module, offer->nodes[0])->name);
        ent_text_add(text, ",");
        add_string(text, "pattern", offer->path);
        ent_text_add(text, ",\"reason\":\"offer.withdrawn\",");
        add_string(text, "text", offer->withdrawn);
        ent_text_add(text, ",\"fix\":null}");
    }
    ent_text_add(text, "]");
}

static void add_nodes_gone(const ent_module *module, const ent_plan *plan, ent_text *text) {
    uint8_t *placed = ent_arena_alloc(text->arena, module->model_nodes.count + 1);
    for (uint32_t r = 0; r < plan->region_count; r++) {
        const ent_offer *offer = &plan->session->offers.items[plan->regions[r]];
        for (uint32_t i = 0; i < offer->node_count; i++) {
            const ent_node *node = ent_module_node(module, offer->nodes[i]);
            for (uint32_t k = 0; k < node->origin_count; k++) placed[node->origins[k]] = 1;
        }
    }
    bool first = true;
    ent_text_add(text, ",\"folded\":[");
    for (uint32_t i = 0; i < module->model_nodes.count; i++) {
        if (placed[i]) continue;
        if (!first) ent_text_add(text, ",");
        first = false;
        ent_text_add_json_string(text, module->model_nodes.items[i], strlen(module->model_nodes.items[i]));
    }
    ent_text_add(text, "],\"notes\":[");
    for (uint32_t i = 0; i < module->notes.count; i++) {
        if (i) ent_text_add(text, ",");
        ent_text_add_json_string(text, module->notes.items[i], strlen(module->notes.items[i]));
    }
    ent_text_add(text, "]");
}

const char *ent_plan_json(const ent_plan *plan, ent_arena *arena) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_text_add(&text, "{\"schema\":1,");
    add_string(&text, "model", plan->session->module->name);
    ent_text_add(&text, ",\"devices\":[");
    for (uint32_t d = 0; d < plan->session->device_count; d++) {
        ent_text_add(&text, "%s{", d ? "," : "");
        add_string(&text, "name", plan->session->devices[d].name);
        ent_text_add(&text, ",");
        add_string(&text, "basis", plan->session->devices[d].capability->basis);
        ent_text_add(&text, "}");
    }
    ent_text_add(&text, "],\"proven\":%s,\"rounds\":%u,\"work\":%llu", plan->proven ? "true" : "false",
                 plan->rounds, (unsigned long long)plan->work);
    add_number(&text, "predicted_ns", plan->total_ns);
    add_number(&text, "bound_ns", plan->bound_ns);
    ent_text_add(&text, ",\"regions\":[");
    for (uint32_t r = 0; r < plan->region_count; r++) add_region(plan, r, &text);
    ent_text_add(&text, "]");
    add_converts(plan, &text);
    add_nodes_gone(plan->session->module, plan, &text);
    add_refusals(plan, &text);
    ent_text_add(&text, "}");
    return text.data;
}

const char *ent_plan_print(const ent_plan *plan, ent_arena *arena) {
    const ent_negotiate_session *session = plan->session;
    ent_text text;
    ent_text_init(&text, arena);
    ent_text_add(&text, "plan %.1f ns %s\n", plan->total_ns, plan->proven ? "proven" : "unproven");
    for (uint32_t r = 0; r < plan->region_count; r++) {
        for (uint32_t i = 0; i < plan->convert_count; i++) {
            const ent_plan_convert *c = &plan->converts[i];
            if (c->before != r) continue;
            ent_text_add(&text, "  convert %%%s %s@%u -> %s@%u %.1f ns\n",
                         ent_module_value(session->module, c->value)->name, layout_text(arena, &c->from),
                         c->from_space, layout_text(arena, &c->to), c->to_space, c->price_ns);
        }
        const ent_offer *offer = &session->offers.items[plan->regions[r]];
        ent_text_add(&text, "  region %u %s %s %s %s %.1f ns:", r, device_name(session, offer->device),
                     kind_names[offer->kind], offer->path, tier_names[offer->tier], offer->time_mid_ns);
        for (uint32_t i = 0; i < offer->node_count; i++)
            ent_text_add(&text, " %s", ent_module_node(session->module, offer->nodes[i])->name);
        ent_text_add(&text, "\n");
    }
    for (uint32_t i = 0; i < plan->convert_count; i++)
        if (plan->converts[i].before == plan->region_count)
            ent_text_add(&text, "  convert %%%s at the end %.1f ns\n",
                         ent_module_value(session->module, plan->converts[i].value)->name,
                         plan->converts[i].price_ns);
    return text.data;
}
