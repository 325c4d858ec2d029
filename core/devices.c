/* Stage "devices": the set of --device (exact) or every usable default plugin; each is opened and its
 * declaration read. */
#include <string.h>

#include "core/pipeline.h"

static ent_status declare(ent_arena *arena, ent_host_device *device, ent_capability **out) {
    ent_host_call call;
    ent_host_call_init(&call, arena, 0);
    ent_bytes json = {NULL, 0};
    ent_code code = device->device_api->declare(device->device, &call.call, &json);
    ENT_TRY(ent_host_call_status(&call, code, device->name, "declare"));
    const char *place = ent_arena_format(arena, "declaration of device '%s'", device->name);
    return ent_capability_parse(arena, place, (const char *)json.data, json.size, out);
}

static ent_status add_device(ent_pipeline *p, const char *spec) {
    const ent_negotiate_session *s = &p->session;
    for (uint32_t i = 0; i < s->device_count; i++)
        if (strcmp(s->devices[i].name, spec) == 0)
            return NULL; /* a set: naming a device twice changes nothing */
    ent_negotiate_device device = {spec, NULL, NULL};
    char *threads = ent_arena_format(p->arena, "%u", p->request->threads);
    ent_parameter parameter = {ENT_STR("hint.threads"), {threads, strlen(threads)}};
    ENT_TRY(ent_host_device_open(p->registry, p->arena, spec, &parameter, p->request->threads ? 1 : 0,
                                 &device.host));
    ent_status status = declare(p->arena, device.host, &device.capability);
    if (status) {
        ent_host_device_close(device.host);
        return status;
    }
    p->session.devices[p->session.device_count++] = device;
    return NULL;
}

/* A plugin that does not work here is left out with a warning: the others still serve. */
static void add_defaults(ent_pipeline *p) {
    for (uint32_t i = 0; i < p->registry->plugins.count; i++) {
        ent_host_plugin *plugin = &p->registry->plugins.items[i];
        if (!plugin->is_default) continue;
        if (plugin->refused) {
            if (strcmp(plugin->refused_rule, "plugin.shadowed") != 0)
                ent_log(ENT_LOG_WARNING, "plugin left out: %s", plugin->refused);
            continue;
        }
        ent_status status = add_device(p, plugin->name);
        if (status) ent_log(ENT_LOG_WARNING, "device left out: %s", ent_status_text(p->arena, status));
    }
}

ent_status ent_pipeline_open_devices(ent_pipeline *p) {
    const entente_compile_request *r = p->request;
    ent_host_options options = {.plugin_path = r->plugin_path};
    ENT_TRY(ent_host_scan(p->arena, &options, &p->registry));
    size_t room = r->device_count + p->registry->plugins.count + 1;
    p->session.devices = ent_arena_alloc(p->arena, room * sizeof *p->session.devices);
    for (size_t i = 0; i < r->device_count; i++) ENT_TRY(add_device(p, r->devices[i]));
    if (r->device_count == 0) add_defaults(p);
    if (p->session.device_count > 0) return NULL;
    return ent_status_make(p->arena, ENT_ERROR_DEVICE, "device.none", "device set",
                           "no usable device was found; `entente plugins` shows where plugins are searched "
                           "and why some are refused");
}

const char *ent_pipeline_print_devices(ent_pipeline *p) {
    ent_text text;
    ent_text_init(&text, p->arena);
    for (uint32_t i = 0; i < p->session.device_count; i++)
        ent_text_add(&text, "%s\n%s\n", p->session.devices[i].name, p->session.devices[i].capability->json);
    return text.data ? text.data : "";
}

void ent_pipeline_close(ent_pipeline *p) {
    for (uint32_t i = 0; i < p->session.device_count; i++) ent_host_device_close(p->session.devices[i].host);
    p->session.device_count = 0;
    ent_host_close(p->registry);
    p->registry = NULL;
    ent_import_files_close(p->files);
    p->files = NULL;
}
