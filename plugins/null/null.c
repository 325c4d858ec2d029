/* The null backend: it opens, declares a device, looks at every graph, and declines all of it with a reason.
 * It compiles against abi/ alone and is the file to copy for a new backend: docs/plugins.md says in which
 * order the rest is added.
 *
 * Everything that the host knows about a plugin hangs on the constant at the end. */
#include "abi/ent_message.h"
#include "abi/ent_plugin.h"

#include <string.h>

/* The plugin's own state, one for each open. The host is all that it needs: memory and the log come from
 * there. */
struct ent_state {
    const ent_host *host;
};

/* One opened device. */
struct ent_device {
    const ent_host *host;
};

/* ---- errors and replies ---- */

/* Says why, and gives the code back. The sentence names the place, the rule and what to do. */
static ent_code fail(const ent_call *call, ent_code code, const char *text) {
    if (call->fail) call->fail(call->context, (ent_str){text, strlen(text)});
    return code;
}

/* Bytes that the host keeps are allocated through the call. */
static ent_code reply(const ent_call *call, const void *data, size_t size, ent_bytes *out) {
    uint8_t *copy = call->allocate(call->context, size + 1);
    if (!copy) return fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a reply");
    memcpy(copy, data, size);
    *out = (ent_bytes){copy, size};
    return ENT_OK;
}

/* ---- devices (required) ---- */

static ent_code list_devices(ent_state *state, const ent_call *call, ent_bytes *out_names) {
    (void)state;
    return reply(call, "null", 4, out_names);
}

static ent_code open_device(ent_state *state, const ent_call *call, const ent_parameter *parameters,
                            size_t count, ent_device **out) {
    for (size_t i = 0; i < count;
         i++) { /* hints may be ignored; anything else that is not known is refused */
        bool is_hint = parameters[i].name.size > 5 && memcmp(parameters[i].name.data, "hint.", 5) == 0;
        if (!is_hint) return fail(call, ENT_CODE_INVALID_ARGUMENT, "null has no variants and no parameters");
    }
    ent_device *device = state->host->allocate(state->host->context, sizeof *device, _Alignof(ent_device));
    if (!device) return fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a device");
    device->host = state->host;
    *out = device;
    return ENT_OK;
}

static void close_device(ent_device *device) {
    if (device) device->host->release(device->host->context, device);
}

/* What the device is, as data. A backend that takes something adds "patterns" here (docs/capability.md). */
static ent_code declare(ent_device *device, const ent_call *call, ent_bytes *out_json) {
    static const char document[] =
        "{\"schema\": 1, \"name\": \"null\", \"vendor\": \"Entente\", \"kind\": \"npu\", \"basis\": "
        "\"assumed\",\n"
        " \"description\": \"declines everything with a reason\",\n"
        " \"units\": 1, \"launch_ns\": 1000, \"depths\": [],\n"
        " \"memory\": [{\"name\": \"dram\", \"scope\": \"device\", \"bytes\": 1000000, \"read_gbps\": 1}],\n"
        " \"links\": [{\"to\": \"host\", \"latency_ns\": 1000, \"gbps\": 1}]}\n";
    (void)device;
    return reply(call, document, sizeof document - 1, out_json);
}

/* ---- negotiation (optional) ---- */

/* A message is written into a fixed buffer here; a backend with longer answers gives the writer a `grow`. */
typedef struct answer {
    ent_message_writer writer;
    uint8_t room[1024];
} answer;

static void begin_answer(answer *a, uint32_t kind) {
    memset(&a->writer, 0, sizeof a->writer);
    a->writer.data = a->room;
    a->writer.capacity = sizeof a->room;
    ent_message_begin(&a->writer, kind);
}

static ent_code end_answer(answer *a, const ent_call *call, ent_bytes *out) {
    ent_code code = ent_message_end(&a->writer);
    return code == ENT_OK ? reply(call, a->room, a->writer.size, out)
                          : fail(call, code, "an answer is too long");
}

/* One reason for the whole graph: node and port -1 mean "all". Bids would be offer, price and port records.
 */
static ent_code survey(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                       ent_bytes *out_reply) {
    (void)device;
    ent_message_reader reader; /* opening checks every byte: what comes in may be hostile */
    ent_code code = ent_message_open(&reader, request, size);
    if (code != ENT_OK) return fail(call, code, "the survey breaks the message form");
    if (reader.kind != ENT_MESSAGE_survey_request)
        return fail(call, ENT_CODE_BAD_MESSAGE, "the survey is a message of another kind");
    answer a;
    begin_answer(&a, ENT_MESSAGE_survey_reply);
    ent_message_record_begin(&a.writer, ENT_RECORD_reason);
    ent_message_put_text(&a.writer, ENT_FIELD_reason_id, "null.declines-all");
    ent_message_put_i64(&a.writer, ENT_FIELD_reason_node, -1);
    ent_message_put_i64(&a.writer, ENT_FIELD_reason_port, -1);
    ent_message_put_text(&a.writer, ENT_FIELD_reason_text,
                         "the null device takes nothing; name another device");
    ent_message_record_end(&a.writer);
    return end_answer(&a, call, out_reply);
}

/* ---- the plugin ---- */

static ent_code open_plugin(const ent_host *host, const ent_call *call, ent_state **out) {
    ent_state *state = host->allocate(host->context, sizeof *state, _Alignof(ent_state));
    if (!state) return fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for the plugin");
    state->host = host;
    *out = state;
    return ENT_OK;
}

static void close_plugin(ent_state *state) {
    if (state) state->host->release(state->host->context, state);
}

static const ent_device_v1 device_interface = {
    {sizeof(ent_device_v1), ENT_STRUCT_DEVICE_V1, NULL}, list_devices, open_device, close_device, declare};
/* No quote and no award: they are asked for offers only, and this device makes none. */
static const ent_negotiate_v1 negotiate_interface = {
    {sizeof(ent_negotiate_v1), ENT_STRUCT_NEGOTIATE_V1, NULL}, survey, NULL, NULL};

/* A backend that takes work adds ENT_INTERFACE_COMPILE and ENT_INTERFACE_RUNTIME. */
static const void *get_interface(uint32_t id, uint32_t version) {
    if (version != 1) return NULL;
    if (id == ENT_INTERFACE_DEVICE) return &device_interface;
    if (id == ENT_INTERFACE_NEGOTIATE) return &negotiate_interface;
    return NULL;
}

const ent_plugin ent_plugin_v1 = {
    .head = {sizeof(ent_plugin), ENT_STRUCT_PLUGIN, NULL},
    .abi_min = 1,
    .abi_max = 1,
    .name = ENT_STR("null"),
    .vendor = ENT_STR("Entente"),
    .version = ENT_STR("1"),
    .depths = ENT_DEPTH_NONE,
    .max_parallel_calls = 1,
    .open = open_plugin,
    .close = close_plugin,
    .get_interface = get_interface,
};
