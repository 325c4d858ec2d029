/* A plugin that behaves or misbehaves by the device's variant: "good", "dead-survey" ... (the table at the
 * end). Apart from its fault each device takes every leaf at depth region through core/ops, cheaper than the
 * reference. */
#include "plugins/common/common.h"

#include <stdio.h>
#include <string.h>

typedef struct hostile_device {
    ent_device head;
    char fault[32];
} hostile_device;

static bool has(const ent_device *device, const char *fault) {
    return strcmp(((const hostile_device *)device)->fault, fault) == 0;
}

static ent_code list_devices(ent_state *state, const ent_call *call, ent_bytes *out_names) {
    (void)state;
    return ent_common_reply(call, "hostile:good", 12, out_names);
}

static ent_code open_device(ent_state *state, const ent_call *call, const ent_parameter *parameters,
                            size_t count, ent_device **out) {
    const ent_parameter *variant = ent_common_parameter(parameters, count, "variant");
    if (variant && variant->value.size == 9 && memcmp(variant->value.data, "dead-open", 9) == 0)
        return ENT_CODE_INTERNAL; /* and says nothing */
    hostile_device *device = ent_common_allocate(state->host, sizeof *device);
    if (!device) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    device->head.host = state->host;
    if (variant)
        snprintf(device->fault, sizeof device->fault, "%.*s", (int)variant->value.size, variant->value.data);
    *out = &device->head;
    return ENT_OK;
}

static void close_device(ent_device *device) {
    if (device) ent_common_release(device->host, device);
}

static ent_code declare(ent_device *device, const ent_call *call, ent_bytes *out_json) {
    static const char document[] =
        "{\"schema\": 1, \"name\": \"hostile\", \"kind\": \"other\", \"units\": 1, \"launch_ns\": 1, "
        "\"depths\": [\"region\"],\n"
        " \"memory\": [{\"name\": \"m\", \"scope\": \"device\", \"bytes\": 1000, \"read_gbps\": 1}],\n"
        " \"links\": [{\"to\": \"host\", \"latency_ns\": 1, \"gbps\": 100}],\n"
        " \"patterns\": [{\"name\": \"any\", \"depth\": \"region\", \"tier\": \"native\", \"any_op\": true,\n"
        "                \"cost\": {\"base_ns\": 1}}]}\n";
    if (has(device, "dead-declare"))
        return ent_common_fail(call, ENT_CODE_DEVICE_LOST, "the device fell off the bus");
    if (has(device, "null-declare")) return ENT_OK; /* and gives nothing */
    if (has(device, "not-json")) return ent_common_reply(call, "{oops", 5, out_json);
    if (has(device, "no-kind"))
        return ent_common_reply(call, "{\"schema\": 1, \"name\": \"x\"}", 26, out_json);
    return ent_common_reply(call, document, sizeof document - 1, out_json);
}

/* ---- negotiation ---- */

static ent_code noise(const ent_call *call, ent_bytes *out) {
    uint8_t bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + 11);
    return ent_common_reply(call, bytes, sizeof bytes, out);
}

static ent_code finish(ent_message_writer *writer, ent_bytes *out) {
    ent_code code = ent_message_end(writer);
    *out = (ent_bytes){writer->data, writer->size};
    return code;
}

static void put_offer(ent_message_writer *writer, uint64_t id, const int64_t *nodes, size_t count) {
    ent_message_record_begin(writer, ENT_RECORD_offer);
    ent_message_put_u64(writer, ENT_FIELD_offer_id, id);
    ent_message_put_i64s(writer, ENT_FIELD_offer_nodes, nodes, count);
    ent_message_put_u64(writer, ENT_FIELD_offer_depth, 77);
    ent_message_put_u64(writer, ENT_FIELD_offer_tier, 99);
    ent_message_record_end(writer);
}

/* Bids for leaves that are not there, twice the same, nothing, everything; prices that are no times. */
static ent_code mad_bids(const ent_call *call, ent_bytes *out) {
    static const int64_t absent[] = {1 << 30}, negative[] = {-5}, twice[] = {0, 0}, gap[] = {0, 2},
                         one[] = {0};
    ent_message_writer writer;
    ent_common_writer(&writer, call, ENT_MESSAGE_survey_reply);
    put_offer(&writer, 1, absent, 1);
    put_offer(&writer, 2, negative, 1);
    put_offer(&writer, 3, twice, 2);
    put_offer(&writer, 4, one, 0);
    put_offer(&writer, 5, gap, 2);
    put_offer(&writer, 6, one, 1);
    ent_message_record_begin(&writer, ENT_RECORD_price);
    ent_message_put_u64(&writer, ENT_FIELD_price_offer, 6);
    ent_message_put_f64(&writer, ENT_FIELD_price_time_low_ns, -1e308);
    ent_message_put_f64(&writer, ENT_FIELD_price_time_mid_ns, -1);
    ent_message_record_end(&writer);
    return finish(&writer, out);
}

static ent_code survey(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                       ent_bytes *out_reply) {
    (void)request;
    (void)size;
    if (has(device, "dead-survey")) return ent_common_fail(call, ENT_CODE_INTERNAL, "the survey crashed");
    if (has(device, "noise-survey")) return noise(call, out_reply);
    if (has(device, "null-survey")) return ENT_OK;
    if (has(device, "mad-bids")) return mad_bids(call, out_reply);
    ent_message_writer writer;
    ent_common_writer(&writer, call, ENT_MESSAGE_survey_reply);
    return finish(&writer, out_reply);
}

static void put_verdict(ent_message_writer *writer, uint64_t offer, uint64_t kind) {
    ent_message_record_begin(writer, ENT_RECORD_verdict);
    ent_message_put_u64(writer, ENT_FIELD_verdict_offer, offer);
    ent_message_put_u64(writer, ENT_FIELD_verdict_kind, kind);
    ent_message_record_end(writer);
}

/* One answer for each region asked about: a price that is no time, or a verdict of unknown kind with
 * counters. */
static ent_code mad_quotes(const ent_device *device, const ent_call *call, const uint8_t *request,
                           size_t size, ent_bytes *out) {
    ent_message_reader reader;
    ent_message_record record;
    ent_message_writer writer;
    ent_code code = ent_message_open(&reader, request, size);
    if (code != ENT_OK) return code;
    ent_common_writer(&writer, call, ENT_MESSAGE_quote_reply);
    while (ent_message_next(&reader, &record)) {
        if (record.tag != ENT_RECORD_region) continue;
        uint64_t offer = ent_message_get_u64(&record, ENT_FIELD_region_offer);
        if (has(device, "counters")) {
            put_verdict(&writer, offer, ENT_VERDICT_COUNTER);
            ent_message_record_begin(&writer, ENT_RECORD_request);
            ent_message_put_u64(&writer, ENT_FIELD_request_offer, offer);
            ent_message_put_u64(&writer, ENT_FIELD_request_kind, ENT_REQUEST_PAD);
            ent_message_put_text(&writer, ENT_FIELD_request_text, "channels to 16");
            ent_message_record_end(&writer);
            continue;
        }
        put_verdict(&writer, offer, ENT_VERDICT_ACCEPT);
        ent_message_record_begin(&writer, ENT_RECORD_price);
        ent_message_put_u64(&writer, ENT_FIELD_price_offer, offer);
        ent_message_put_f64(&writer, ENT_FIELD_price_time_low_ns, -__builtin_inf());
        ent_message_put_f64(&writer, ENT_FIELD_price_time_mid_ns, (double)__builtin_nanf(""));
        ent_message_record_end(&writer);
    }
    put_verdict(&writer, UINT64_MAX, ENT_VERDICT_ACCEPT); /* of an offer that nobody made */
    return finish(&writer, out);
}

static ent_code quote(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                      ent_bytes *out_reply) {
    if (has(device, "dead-quote")) return ent_common_fail(call, ENT_CODE_INTERNAL, "the quote crashed");
    if (has(device, "noise-quote")) return noise(call, out_reply);
    if (has(device, "nan-quote") || has(device, "counters"))
        return mad_quotes(device, call, request, size, out_reply);
    return ent_common_quote(device, call, request, size, out_reply);
}

/* Refuses every award with a sentence. */
static ent_code refuse_awards(const ent_call *call, const uint8_t *request, size_t size, ent_bytes *out) {
    ent_message_reader reader;
    ent_message_record record;
    ent_message_writer writer;
    ent_code code = ent_message_open(&reader, request, size);
    if (code != ENT_OK) return code;
    ent_common_writer(&writer, call, ENT_MESSAGE_award_reply);
    while (ent_message_next(&reader, &record)) {
        if (record.tag != ENT_RECORD_award) continue;
        uint64_t offer = ent_message_get_u64(&record, ENT_FIELD_award_offer);
        ent_message_record_begin(&writer, ENT_RECORD_award_answer);
        ent_message_put_u64(&writer, ENT_FIELD_award_answer_offer, offer);
        ent_message_record_end(&writer);
        ent_message_record_begin(&writer, ENT_RECORD_reason);
        ent_message_put_u64(&writer, ENT_FIELD_reason_offer, offer);
        ent_message_put_text(&writer, ENT_FIELD_reason_text, "the memory is gone");
        ent_message_record_end(&writer);
    }
    return finish(&writer, out);
}

static ent_code award(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                      ent_bytes *out_reply) {
    if (has(device, "dead-award")) return ent_common_fail(call, ENT_CODE_INTERNAL, "the award crashed");
    if (has(device, "noise-award")) return noise(call, out_reply);
    if (has(device, "refuse-award")) return refuse_awards(call, request, size, out_reply);
    return ent_common_award(device, call, request, size, out_reply);
}

/* ---- compilation and kernels ---- */

static ent_code compile(ent_device *device, const ent_call *call, uint32_t depth, const uint8_t *request,
                        size_t size, ent_bytes *out_blob) {
    if (has(device, "dead-compile"))
        return ent_common_fail(call, ENT_CODE_QUOTE_BROKEN, "the registers ran out");
    if (has(device, "null-compile")) return ENT_OK;
    if (has(device, "noise-compile")) return noise(call, out_blob);
    return ent_common_region_compile(device, call, depth, request, size, out_blob);
}

static const ent_device_v1 device_interface = {
    {sizeof(ent_device_v1), ENT_STRUCT_DEVICE_V1, NULL}, list_devices, open_device, close_device, declare};
static const ent_negotiate_v1 negotiate_interface = {
    {sizeof(ent_negotiate_v1), ENT_STRUCT_NEGOTIATE_V1, NULL}, survey, quote, award};
static const ent_compile_v1 compile_interface = {{sizeof(ent_compile_v1), ENT_STRUCT_COMPILE_V1, NULL},
                                                 compile};

static const void *get_interface(uint32_t id, uint32_t version) {
    if (version != 1) return NULL;
    switch (id) {
    case ENT_INTERFACE_DEVICE:
        return &device_interface;
    case ENT_INTERFACE_NEGOTIATE:
        return &negotiate_interface;
    case ENT_INTERFACE_COMPILE:
        return &compile_interface;
    case ENT_INTERFACE_RUNTIME:
        return ent_common_region_interface(id, version);
    default:
        return NULL;
    }
}

const ent_plugin ent_plugin_v1 = {{sizeof(ent_plugin), ENT_STRUCT_PLUGIN, NULL},
                                  1,
                                  1,
                                  ENT_STR("hostile"),
                                  ENT_STR("Tests"),
                                  ENT_STR("1"),
                                  ENT_DEPTH_REGION,
                                  1,
                                  ent_common_open,
                                  ent_common_close,
                                  get_interface};
