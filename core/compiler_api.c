/* The public compiler API over the pipeline. */
#include <stdlib.h>
#include <string.h>

#include "core/pipeline.h"

/* Strings of a result must outlive the pipeline's arenas. */
typedef struct result_owner {
    char *texts[5];
} result_owner;

static const char *keep(result_owner *owner, int slot, const char *text) {
    owner->texts[slot] = strdup(text ? text : "");
    return owner->texts[slot] ? owner->texts[slot] : "";
}

static void fill(entente_compile_result *out, const ent_pipeline *p, ent_status status, result_owner *owner) {
    out->code = status ? (int)status->code : 0;
    out->rule = keep(owner, 0, status ? status->rule : "");
    out->place = keep(owner, 1, status ? status->place : "");
    out->text = keep(owner, 2, status ? status->text : "");
    out->plan_json = keep(owner, 3, p->plan_json);
    out->stage_text = keep(owner, 4, p->stage_text);
    out->owner = owner;
}

void ent_compiler_fill_status(entente_compile_result *out, ent_status status) {
    const ent_pipeline nothing = {0};
    result_owner *owner = calloc(1, sizeof *owner);
    if (owner)
        fill(out, &nothing, status, owner);
    else
        *out = (entente_compile_result){ENT_ERROR_LIMIT, "memory", "", "out of memory", "", "", 0, NULL};
}

void entente_compile(const entente_compile_request *asked, entente_compile_result *out) {
    memset(out, 0, sizeof *out);
    uint64_t start = ent_time_ns();
    result_owner *owner = calloc(1, sizeof *owner);
    /* A caller of an older version has a shorter request: the rest reads as zero. */
    entente_compile_request whole = {0}, *request = &whole;
    memcpy(&whole, asked, asked->size && asked->size < sizeof whole ? asked->size : sizeof whole);
    ent_budget budget = ent_pipeline_budget(request, start);
    ent_pipeline p = {.request = request,
                      .arena = ent_arena_create_within(&budget),
                      .scratch = ent_arena_create_within(&budget)};
    ent_status status = p.arena && p.scratch && owner ? NULL : ent_status_out_of_memory();
    if (!status) {
        p.plan_options.prefer = request->prefer;
        p.plan_options.max_work = request->budget_ms * ENT_PARTITION_WORK_PER_MS;
        if (request->assign_path)
            status = ent_plan_read_assignments(p.arena, request->assign_path, &p.plan_options);
        if (!status) status = ent_pipeline_run(&p);
    }
    if (owner)
        fill(out, &p, status, owner);
    else
        *out = (entente_compile_result){ENT_ERROR_LIMIT, "memory", "", "out of memory", "", "", 0, NULL};
    out->compile_ns = (double)(ent_time_ns() - start);
    ent_pipeline_close(&p);
    ent_arena_destroy(p.scratch);
    ent_arena_destroy(p.arena);
}

void entente_compile_result_free(entente_compile_result *result) {
    result_owner *owner = result ? result->owner : NULL;
    if (!owner) return;
    for (int i = 0; i < 5; i++) free(owner->texts[i]);
    free(owner);
    result->owner = NULL;
}

const char *const *entente_stages(void) {
    return ent_pipeline_stages();
}

int entente_is_bundle(const char *path) {
    return ent_bundle_is(path);
}

void entente_free_text(char *text) {
    free(text);
}

static void add_text(ent_text *text, const char *key, const char *value) {
    ent_text_add(text, ",\"%s\":", key);
    if (!value)
        ent_text_add(text, "null");
    else
        ent_text_add_json_string(text, value, strlen(value));
}

/* Everything that can be said of a plugin without using it; loading is tried so that the loader's text is
 * known. */
static void add_plugin(ent_text *text, ent_host_registry *registry, ent_host_plugin *plugin) {
    if (!plugin->refused) (void)ent_host_load(registry, plugin);
    ent_text_add(text, "{\"name\":");
    ent_text_add_json_string(text, plugin->name, strlen(plugin->name));
    add_text(text, "manifest", plugin->manifest_path);
    add_text(text, "path", plugin->library_path);
    ent_text_add(text, ",\"abi\":[%u,%u],\"host_abi\":%u,\"usable\":%s,\"default\":%s", plugin->abi_min,
                 plugin->abi_max, ENT_ABI_VERSION, plugin->refused ? "false" : "true",
                 plugin->is_default ? "true" : "false");
    ent_text_add(text, ",\"depths\":[");
    const char *comma = "";
    for (uint32_t bit = 1; bit <= ENT_DEPTH_TILE; bit <<= 1) {
        if (!(plugin->depths & bit)) continue;
        ent_text_add(text, "%s\"%s\"", comma,
                     bit == ENT_DEPTH_GRAPH    ? "graph"
                     : bit == ENT_DEPTH_REGION ? "region"
                                               : "tile");
        comma = ",";
    }
    ent_text_add(text, "]");
    add_text(text, "rule", plugin->refused_rule);
    add_text(text, "reason", plugin->refused);
    ent_text_add(text, "}");
}

static int give(ent_arena *arena, const ent_text *text, ent_status status, char **out_json) {
    if (!status)
        *out_json = strdup(text->data ? text->data : "");
    else {
        ent_text error;
        ent_text_init(&error, arena);
        ent_text_add(&error, "{\"schema\":1,\"error\":{\"code\":%d", (int)status->code);
        add_text(&error, "rule", status->rule);
        add_text(&error, "place", status->place);
        add_text(&error, "text", status->text);
        ent_text_add(&error, "}}");
        *out_json = strdup(error.data);
    }
    return status ? (int)status->code : 0;
}

int entente_list_plugins(const char *plugin_path, char **out_json) {
    ent_arena *arena = ent_arena_create(0);
    ent_host_options options = {.plugin_path = plugin_path};
    ent_host_registry *registry = NULL;
    ent_text text;
    ent_text_init(&text, arena);
    ent_status status = ent_host_scan(arena, &options, &registry);
    ent_text_add(&text, "{\"schema\":1,\"plugins\":[");
    for (uint32_t i = 0; !status && i < registry->plugins.count; i++) {
        if (i) ent_text_add(&text, ",");
        add_plugin(&text, registry, &registry->plugins.items[i]);
    }
    ent_text_add(&text, "]}");
    int code = give(arena, &text, status, out_json);
    ent_host_close(registry);
    ent_arena_destroy(arena);
    return code;
}

int entente_list_capabilities(const char *plugin_path, const char *const *devices, size_t device_count,
                              char **out_json) {
    entente_compile_request request = {
        .plugin_path = plugin_path, .devices = devices, .device_count = device_count};
    ent_pipeline p = {.request = &request, .arena = ent_arena_create(0), .scratch = ent_arena_create(0)};
    ent_text text;
    ent_text_init(&text, p.arena);
    ent_status status = ent_pipeline_open_devices(&p);
    ent_text_add(&text, "{\"schema\":1,\"devices\":[");
    for (uint32_t i = 0; !status && i < p.session.device_count; i++)
        ent_text_add(&text, "%s%s", i ? "," : "", p.session.devices[i].capability->json);
    ent_text_add(&text, "]}");
    int code = give(p.arena, &text, status, out_json);
    ent_pipeline_close(&p);
    ent_arena_destroy(p.scratch);
    ent_arena_destroy(p.arena);
    return code;
}
