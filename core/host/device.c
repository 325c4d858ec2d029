/* Devices of plugins, and call contexts. */
#include "core/host/internal.h"

#include <stdlib.h>
#include <string.h>

static const void *get(const ent_host_plugin *plugin, uint32_t id) {
    const ent_head *table = plugin->plugin->get_interface(id, 1);
    return table && table->size >= sizeof *table && !(table->type & ENT_MUST_UNDERSTAND) ? table : NULL;
}

/* A table shorter than ours is copied into a zeroed one: functions that it lacks read as "not offered". */
static const void *widen(ent_arena *arena, const void *table, size_t size_bytes) {
    if (!table || ((const ent_head *)table)->size >= size_bytes) return table;
    void *copy = ent_arena_alloc(arena, size_bytes);
    memcpy(copy, table, ((const ent_head *)table)->size);
    return copy;
}

static ent_status open_device(ent_arena *arena, ent_host_device *device, const ent_parameter *parameters,
                              size_t count) {
    ent_host_call call;
    ent_host_call_init(&call, arena, 0);
    ent_code code =
        device->device_api->open(device->plugin->state, &call.call, parameters, count, &device->device);
    return ent_host_call_status(&call, code, device->name, "open");
}

ent_status ent_host_device_open(ent_host_registry *registry, ent_arena *arena, const char *spec,
                                const ent_parameter *extra, size_t extra_count, ent_host_device **out) {
    const char *colon = strchr(spec, ':');
    const char *name = colon ? ent_arena_strndup(arena, spec, (size_t)(colon - spec)) : spec;
    ent_host_plugin *plugin = ent_host_find(registry, name);
    if (!plugin)
        return ent_status_make(
            arena, ENT_ERROR_DEVICE, "device.unknown", ent_arena_format(arena, "device '%s'", spec),
            "no plugin '%s' was found; `entente plugins` lists those found and where they are searched",
            name);
    ENT_TRY(ent_host_load(registry, plugin));
    ent_host_device *device = ent_arena_alloc(arena, sizeof *device);
    device->name = ent_arena_strdup(arena, spec);
    device->plugin = plugin;
    device->device_api = widen(arena, get(plugin, ENT_INTERFACE_DEVICE), sizeof(ent_device_v1));
    device->negotiate = widen(arena, get(plugin, ENT_INTERFACE_NEGOTIATE), sizeof(ent_negotiate_v1));
    device->compile = widen(arena, get(plugin, ENT_INTERFACE_COMPILE), sizeof(ent_compile_v1));
    device->blob = widen(arena, get(plugin, ENT_INTERFACE_BLOB), sizeof(ent_blob_v1));
    device->runtime = widen(arena, get(plugin, ENT_INTERFACE_RUNTIME), sizeof(ent_runtime_v1));
    if (!device->device_api || !device->device_api->open || !device->device_api->close ||
        !device->device_api->declare)
        return ent_status_make(arena, ENT_ERROR_DEVICE, "plugin.interface",
                               ent_arena_format(arena, "plugin '%s'", name),
                               "it lacks the device interface (open, close, declare)");
    ent_parameter *parameters = ent_arena_alloc(arena, (extra_count + 1) * sizeof *parameters);
    size_t count = 0;
    if (colon) parameters[count++] = (ent_parameter){ENT_STR("variant"), {colon + 1, strlen(colon + 1)}};
    for (size_t i = 0; i < extra_count; i++) parameters[count++] = extra[i];
    ENT_TRY(open_device(arena, device, parameters, count));
    *out = device;
    return NULL;
}

void ent_host_device_close(ent_host_device *device) {
    if (device && device->device) device->device_api->close(device->device);
    if (device) device->device = NULL;
}

/* ---- calls ---- */

static void *call_allocate(void *context, size_t size_bytes) {
    return ent_arena_array(((ent_host_call *)context)->arena, size_bytes ? size_bytes : 1, 1);
}

static void call_fail(void *context, ent_str text) {
    ent_host_call *call = context;
    call->failure = ent_arena_strndup(call->arena, text.data, text.size);
}

static bool call_constant(void *context, uint64_t low, uint64_t high, ent_bytes *out) {
    ent_host_call *call = context;
    return call->constant && call->constant(call->user, low, high, out);
}

static bool call_cancelled(void *context) {
    ent_host_call *call = context;
    return call->cancelled && call->cancelled(call->user);
}

void ent_host_call_init(ent_host_call *call, ent_arena *arena, uint64_t deadline_ns) {
    memset(call, 0, sizeof *call);
    call->arena = arena;
    call->call.head = (ent_head){sizeof(ent_call), ENT_STRUCT_CALL, NULL};
    call->call.context = call;
    call->call.deadline_ns = deadline_ns;
    call->call.cancelled = call_cancelled;
    call->call.allocate = call_allocate;
    call->call.fail = call_fail;
    call->call.constant = call_constant;
}

ent_status ent_host_call_status(const ent_host_call *call, ent_code code, const char *device,
                                const char *verb) {
    static const char *const rules[ENT_CODE_COUNT] = {
        "plugin.ok",          "plugin.invalid-argument", "plugin.bad-message",
        "plugin.unsupported", "plugin.out-of-memory",    "plugin.deadline",
        "plugin.cancelled",   "plugin.quote-broken",     "plugin.device-lost",
        "plugin.timeout",     "plugin.isa-missing",      "plugin.internal"};
    if (code == ENT_OK) return NULL;
    const char *rule = (uint32_t)code < ENT_CODE_COUNT ? rules[code] : "plugin.unknown-code";
    ent_error_code kind = ENT_ERROR_DEVICE;
    if (code == ENT_CODE_UNSUPPORTED) kind = ENT_ERROR_UNSUPPORTED;
    if (code == ENT_CODE_OUT_OF_MEMORY) kind = ENT_ERROR_LIMIT;
    return ent_status_make(call->arena, kind, rule,
                           ent_arena_format(call->arena, "device '%s': %s", device, verb), "%s",
                           call->failure ? call->failure : "the plugin gives no text");
}
