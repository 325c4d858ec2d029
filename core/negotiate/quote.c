/* Quotes: region offers under concrete terms go to the plugin in one message; verdicts come back as firm
 * prices, counters or declines. A counter's requests that are not layout or decomposition are recorded as not
 * granted in this version: those two already stand beside each other as offers of their own. */
#include "core/negotiate/internal.h"

#include <math.h>
#include <string.h>

static bool is_quoted(const ent_offer *offer, uint32_t device) {
    return offer->device == device && offer->kind == ENT_OFFER_REGION && !offer->withdrawn;
}

/* Values and nodes of all quoted offers once, then each region with its ports and the declared price. */
static ent_bytes write_request(ent_negotiate_session *session, uint32_t device, uint32_t *out_count) {
    const ent_module *module = session->module;
    ent_message_writer writer;
    ent_negotiate_writer_init(&writer, session->arena, ENT_MESSAGE_quote_request);
    ent_size_table sizes;
    ent_negotiate_write_all_sizes(&writer, module, session->arena, &sizes);
    uint8_t *values = ent_arena_alloc(session->arena, module->values.count + 1);
    uint8_t *nodes = ent_arena_alloc(session->arena, module->nodes.count + 1);
    *out_count = 0;
    for (uint32_t o = 0; o < session->offers.count; o++) {
        const ent_offer *offer = &session->offers.items[o];
        if (!is_quoted(offer, device)) continue;
        (*out_count)++;
        for (uint32_t i = 0; i < offer->node_count; i++) {
            uint32_t id = offer->nodes[i];
            const ent_node *node = ent_module_node(module, id);
            if (nodes[id]) continue;
            nodes[id] = 1;
            for (uint32_t k = 0; k < node->input_count + node->output_count; k++) {
                uint32_t v = k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count];
                if (v == ENT_ID_NONE || values[v]) continue;
                values[v] = 1;
                ent_negotiate_write_values(&writer, &sizes, &v, 1);
            }
            ent_negotiate_write_node(&writer, module, id);
        }
        for (uint32_t i = 0; i < offer->overlay_count; i++)
            ent_negotiate_write_overlay(&writer, module, offer->overlays[i]);
        ent_negotiate_write_region(&writer, session, offer);
    }
    ent_code code = ent_message_end(&writer);
    return code == ENT_OK ? (ent_bytes){writer.data, writer.size} : (ent_bytes){NULL, 0};
}

static ent_offer *offer_of(ent_negotiate_session *session, uint32_t device, uint64_t id) {
    if (id >= session->offers.count) return NULL;
    ent_offer *offer = &session->offers.items[id];
    return is_quoted(offer, device) ? offer : NULL;
}

static void read_verdict(ent_negotiate_session *session, uint32_t device, const ent_message_record *record) {
    ent_offer *offer = offer_of(session, device, ent_message_get_u64(record, ENT_FIELD_verdict_offer));
    if (!offer) return;
    uint64_t kind = ent_message_get_u64(record, ENT_FIELD_verdict_kind);
    uint64_t tier = ent_message_get_u64(record, ENT_FIELD_verdict_tier);
    offer->quote = ent_message_get_u64(record, ENT_FIELD_verdict_quote);
    if (tier >= ENT_TIER_NATIVE && tier <= ENT_TIER_EMULATED) offer->tier = (uint32_t)tier;
    if (kind == ENT_VERDICT_ACCEPT && offer->quote)
        offer->basis = ENT_BASIS_QUOTE; /* without a price of its own the declared one is firm */
    if (kind == ENT_VERDICT_DECLINE) offer->withdrawn = "declined at quote";
    if (kind == ENT_VERDICT_COUNTER)
        offer->withdrawn = "countered at quote; the request is not granted in this version";
}

static void read_price(ent_negotiate_session *session, uint32_t device, const ent_message_record *record) {
    ent_offer *offer = offer_of(session, device, ent_message_get_u64(record, ENT_FIELD_price_offer));
    double low = ent_message_get_f64(record, ENT_FIELD_price_time_low_ns);
    double mid = ent_message_get_f64(record, ENT_FIELD_price_time_mid_ns);
    double high = ent_message_get_f64(record, ENT_FIELD_price_time_high_ns);
    if (!offer) return;
    if (!isfinite(mid) || mid < 0 || !isfinite(low) || !isfinite(high) || low > mid || high < mid) {
        offer->withdrawn = "its quoted price is not a finite time with low <= mid <= high";
        return;
    }
    uint64_t basis = ent_message_get_u64(record, ENT_FIELD_price_basis);
    offer->time_low_ns = low;
    offer->time_mid_ns = mid;
    offer->time_high_ns = high;
    offer->basis =
        basis >= ENT_BASIS_MEASURED && basis <= ENT_BASIS_GUESS ? (uint32_t)basis : ENT_BASIS_QUOTE;
    offer->scratch_bytes = ent_message_get_u64(record, ENT_FIELD_price_scratch_bytes);
}

static const char *copy_str(ent_arena *arena, ent_str text) {
    return ent_arena_strndup(arena, text.data ? text.data : "", text.size);
}

static void read_reason(ent_negotiate_session *session, uint32_t device, const ent_message_record *record) {
    ent_arena *arena = session->arena;
    uint64_t id = ent_message_get_u64(record, ENT_FIELD_reason_offer);
    const ent_offer *offer = id < session->offers.count ? &session->offers.items[id] : NULL;
    if (!offer || offer->device != device) return;
    int64_t node = ent_message_get_i64(record, ENT_FIELD_reason_node);
    ent_refusal refusal = {0};
    refusal.device = device;
    refusal.node =
        node >= 0 && node < (int64_t)session->module->nodes.count ? (uint32_t)node : offer->nodes[0];
    refusal.pattern = offer->path;
    refusal.reason_id = copy_str(arena, ent_message_get_str(record, ENT_FIELD_reason_id));
    refusal.text = copy_str(arena, ent_message_get_str(record, ENT_FIELD_reason_text));
    ent_negotiate_refuse(session, &refusal);
}

static void read_request(ent_negotiate_session *session, uint32_t device, const ent_message_record *record) {
    static const char *const names[] = {"?", "layout", "decompose", "pad", "split", "dtype", "drop", "tile"};
    uint64_t id = ent_message_get_u64(record, ENT_FIELD_request_offer);
    const ent_offer *offer = id < session->offers.count ? &session->offers.items[id] : NULL;
    if (!offer || offer->device != device) return;
    uint64_t kind = ent_message_get_u64(record, ENT_FIELD_request_kind);
    ent_refusal refusal = {0};
    refusal.device = device;
    refusal.node = offer->nodes[0];
    refusal.pattern = offer->path;
    refusal.reason_id = "request.not-granted";
    refusal.fix = kind < sizeof names / sizeof names[0] ? names[kind] : names[0];
    refusal.text =
        ent_arena_format(session->arena, "asked for %s: %s", refusal.fix,
                         copy_str(session->arena, ent_message_get_str(record, ENT_FIELD_request_text)));
    ent_negotiate_refuse(session, &refusal);
}

ent_status ent_negotiate_quotes(ent_negotiate_session *session, uint32_t device) {
    const ent_negotiate_v1 *api = session->devices[device].host->negotiate;
    if (!api || !api->quote) return NULL;
    uint32_t count = 0;
    ent_bytes request = write_request(session, device, &count);
    if (!request.data) return ent_status_out_of_memory();
    if (count == 0) return NULL;
    ent_message_reader reply;
    if (!ent_negotiate_exchange(session, device, api->quote, "quote", request, &reply)) return NULL;
    ent_message_record record;
    while (ent_message_next(&reply, &record)) {
        switch (record.tag) {
        case ENT_RECORD_verdict:
            read_verdict(session, device, &record);
            break;
        case ENT_RECORD_price:
            read_price(session, device, &record);
            break;
        case ENT_RECORD_reason:
            read_reason(session, device, &record);
            break;
        case ENT_RECORD_request:
            read_request(session, device, &record);
            break;
        default:
            break;
        }
    }
    return NULL;
}
