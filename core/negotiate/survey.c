/* Survey: the plugin sees the whole frozen graph and may bid for regions that no static pattern describes.
 * Bids are checked before they become offers: known live leaves of one graph, convex, with the boundary that
 * the core computes itself. */
#include "core/negotiate/internal.h"

#include <math.h>
#include <stdlib.h>

static ent_bytes write_request(ent_negotiate_session *session) {
    const ent_module *module = session->module;
    ent_message_writer writer;
    ent_negotiate_writer_init(&writer, session->arena, ENT_MESSAGE_survey_request);
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        const ent_graph *graph = ent_module_graph(module, g);
        ent_message_record_begin(&writer, ENT_RECORD_graph);
        ent_message_put_u64(&writer, ENT_FIELD_graph_id, g);
        ent_message_put_text(&writer, ENT_FIELD_graph_name, graph->name);
        ent_message_put_u32s(&writer, ENT_FIELD_graph_inputs, graph->inputs.items, graph->inputs.count);
        ent_message_put_u32s(&writer, ENT_FIELD_graph_outputs, graph->outputs.items, graph->outputs.count);
        ent_message_record_end(&writer);
    }
    ent_size_table sizes;
    ent_negotiate_write_all_sizes(&writer, module, session->arena, &sizes);
    for (uint32_t v = 0; v < module->values.count; v++) ent_negotiate_write_values(&writer, &sizes, &v, 1);
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, id;
        while (ent_graph_next(module, g, &at, &id)) ent_negotiate_write_node(&writer, module, id);
    }
    for (uint32_t o = 0; o < module->overlays.count; o++) ent_negotiate_write_overlay(&writer, module, o);
    ent_code code = ent_message_end(&writer);
    return code == ENT_OK ? (ent_bytes){writer.data, writer.size} : (ent_bytes){NULL, 0};
}

/* Convex: no path leaves the set and comes back. Walks each outside user forward within the graph's order;
 * positions bound it. */
static bool is_convex(const ent_negotiate_session *session, const ent_uses *uses, const uint8_t *in_set,
                      const ent_leaf_set *set) {
    const ent_module *module = session->module;
    uint8_t *reached = ent_arena_alloc(session->arena, module->nodes.count + 1);
    uint32_t *stack = ent_arena_alloc(session->arena, (module->nodes.count + 1) * sizeof *stack);
    uint32_t top = 0;
    for (uint32_t i = 0; i < set->node_count; i++) stack[top++] = set->nodes[i];
    while (top > 0) {
        const ent_node *node = ent_module_node(module, stack[--top]);
        bool outside = !in_set[stack[top]];
        for (uint32_t k = 0; k < node->output_count; k++) {
            uint32_t value = node->outputs[k];
            if (value == ENT_ID_NONE) continue;
            for (uint32_t u = uses->offsets[value]; u < uses->offsets[value + 1]; u++) {
                uint32_t user = uses->users[u];
                if (in_set[user] && outside) return false;
                if (in_set[user] || reached[user]) continue;
                reached[user] = 1;
                stack[top++] = user;
            }
        }
    }
    return true;
}

/* Graph position in the high half, node id in the low. */
static int compare_places(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Leaves of a bid, or NULL with the reason. */
static const char *read_leaves(ent_negotiate_session *session, const ent_message_record *record,
                               const uint32_t *position, uint32_t **out_nodes, uint32_t *out_count) {
    const ent_module *module = session->module;
    ent_message_array nodes = ent_message_get_array(record, ENT_FIELD_offer_nodes);
    if (nodes.count == 0 || nodes.count > module->nodes.count)
        return "it names no leaves, or more than there are";
    uint64_t *places = ent_arena_alloc(session->arena, nodes.count * sizeof *places);
    uint32_t graph = ENT_ID_NONE;
    for (uint32_t i = 0; i < nodes.count; i++) {
        int64_t id = ent_message_i64_at(nodes, i);
        if (id < 0 || id >= (int64_t)module->nodes.count || ent_module_node(module, id)->dead)
            return "it names an unknown leaf";
        if (graph == ENT_ID_NONE) graph = ent_module_node(module, id)->graph;
        if (ent_module_node(module, id)->graph != graph) return "its leaves lie in different graphs";
        if (ent_op_info_get(ent_module_node(module, id)->op)->op_class == ENT_CLASS_CONTROL)
            return "it takes a control node";
        places[i] = (uint64_t)position[id] << 32 | (uint64_t)id;
    }
    qsort(places, nodes.count, sizeof *places, compare_places);
    uint32_t *list = ent_arena_alloc(session->arena, nodes.count * sizeof *list);
    for (uint32_t i = 0; i < nodes.count; i++) {
        if (i > 0 && places[i] == places[i - 1]) return "it names a leaf twice";
        list[i] = (uint32_t)places[i];
    }
    *out_nodes = list;
    *out_count = nodes.count;
    return NULL;
}

static const char *read_bid(ent_negotiate_session *session, const ent_uses *uses, uint32_t device,
                            const uint32_t *position, const ent_message_record *record, ent_offer **out) {
    uint32_t *nodes = NULL, count = 0;
    const char *why = read_leaves(session, record, position, &nodes, &count);
    if (why) return why;
    ent_leaf_set set;
    ent_negotiate_boundary(session, uses, ent_module_node(session->module, nodes[0])->graph, nodes, count,
                           &set);
    if (ent_negotiate_open_rank(session, &set))
        return "the rank of one of its ports is known only at run time";
    uint8_t *in_set = ent_arena_alloc(session->arena, session->module->nodes.count + 1);
    for (uint32_t i = 0; i < count; i++) in_set[nodes[i]] = 1;
    if (!is_convex(session, uses, in_set, &set))
        return "its leaves are not convex: a path leaves the region and comes back";
    ent_offer *offer = ent_negotiate_add_region_offer(session, device, &set, "plain");
    uint64_t tier = ent_message_get_u64(record, ENT_FIELD_offer_tier);
    uint64_t depth = ent_message_get_u64(record, ENT_FIELD_offer_depth);
    ent_str pattern = ent_message_get_str(record, ENT_FIELD_offer_pattern);
    offer->tier = tier >= ENT_TIER_NATIVE && tier <= ENT_TIER_EMULATED ? (uint32_t)tier : ENT_TIER_GENERIC;
    offer->depth = depth == ENT_DEPTH_GRAPH ? ENT_DEPTH_GRAPH : ENT_DEPTH_REGION;
    offer->path = pattern.size ? ent_arena_strndup(session->arena, pattern.data, pattern.size) : "survey";
    offer->quote = ent_message_get_u64(record, ENT_FIELD_offer_quote);
    offer->basis = ENT_BASIS_GUESS;
    offer->bound_by = "vendor";
    offer->withdrawn = "the bid carries no price";
    *out = offer;
    return NULL;
}

/* A bid's price follows it in the reply; the first one that fits the plugin's id counts. */
static void read_price(ent_offer *offer, const ent_message_record *record) {
    double low = ent_message_get_f64(record, ENT_FIELD_price_time_low_ns);
    double mid = ent_message_get_f64(record, ENT_FIELD_price_time_mid_ns);
    double high = ent_message_get_f64(record, ENT_FIELD_price_time_high_ns);
    if (!isfinite(low) || !isfinite(mid) || !isfinite(high) || low < 0 || low > mid || high < mid) return;
    offer->time_low_ns = low;
    offer->time_mid_ns = mid;
    offer->time_high_ns = high;
    offer->basis = ENT_BASIS_QUOTE;
    offer->withdrawn = NULL;
}

static uint32_t *node_positions(const ent_negotiate_session *session) {
    uint32_t *position =
        ent_arena_alloc(session->arena, (session->module->nodes.count + 1) * sizeof *position);
    uint32_t next = 0;
    for (uint32_t g = 0; g < session->module->graphs.count; g++) {
        uint32_t at = 0, id;
        while (ent_graph_next(session->module, g, &at, &id)) position[id] = next++;
    }
    return position;
}

ent_status ent_negotiate_survey(ent_negotiate_session *session, const ent_uses *uses, uint32_t device) {
    const ent_negotiate_v1 *api = session->devices[device].host->negotiate;
    if (!api || !api->survey) return NULL;
    ent_bytes request = write_request(session);
    if (!request.data) return ent_status_out_of_memory();
    ent_message_reader reply;
    if (!ent_negotiate_exchange(session, device, api->survey, "survey", request, &reply)) return NULL;
    const uint32_t *position = node_positions(session);
    ent_map *bids = ent_map_create(session->arena); /* plugin's id -> offer index */
    ent_message_record record;
    while (ent_message_next(&reply, &record)) {
        if (record.tag == ENT_RECORD_offer) {
            ent_offer *offer = NULL;
            const char *why = read_bid(session, uses, device, position, &record, &offer);
            if (offer) ent_map_set_u64(bids, ent_message_get_u64(&record, ENT_FIELD_offer_id), offer->id);
            ent_refusal refusal = {device, ENT_ID_NONE, "survey", "bid.refused", why, 0, 0, NULL, false};
            if (why) ent_negotiate_refuse(session, &refusal);
        }
        uint64_t index = 0;
        if (record.tag == ENT_RECORD_price &&
            ent_map_find_u64(bids, ent_message_get_u64(&record, ENT_FIELD_price_offer), &index))
            read_price(&session->offers.items[index], &record);
        if (record.tag == ENT_RECORD_reason) {
            ent_refusal refusal = {device, ENT_ID_NONE, "survey", "", "", 0, 0, NULL, false};
            ent_str id = ent_message_get_str(&record, ENT_FIELD_reason_id),
                    text = ent_message_get_str(&record, ENT_FIELD_reason_text);
            int64_t node = ent_message_get_i64(&record, ENT_FIELD_reason_node);
            if (node >= 0 && node < (int64_t)session->module->nodes.count) refusal.node = (uint32_t)node;
            refusal.reason_id = ent_arena_strndup(session->arena, id.data ? id.data : "", id.size);
            refusal.text = ent_arena_strndup(session->arena, text.data ? text.data : "", text.size);
            ent_negotiate_refuse(session, &refusal);
        }
    }
    return NULL;
}
