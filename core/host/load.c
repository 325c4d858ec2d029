/* Opening plugins: library, symbol, ABI, state; then their devices. Nothing of a plugin is called before its
 * ABI is accepted. */
#define _GNU_SOURCE
#include "core/host/internal.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void *host_allocate(void *context, size_t size_bytes, size_t alignment) {
    (void)context;
    void *memory = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    return posix_memalign(&memory, alignment, size_bytes ? size_bytes : 1) == 0 ? memory : NULL;
}

static void host_release(void *context, void *memory) {
    (void)context;
    free(memory);
}

static void host_log(void *context, uint32_t level, ent_str text) {
    (void)context;
    ent_log(level > ENT_LOG_DEBUG ? ENT_LOG_DEBUG : (ent_log_level)level, "plugin: %.*s", (int)text.size,
            text.data);
}

static const ent_host host_table = {
    {sizeof(ent_host), ENT_STRUCT_HOST, NULL}, NULL, host_allocate, host_release, host_log};

static ent_status refused(const ent_host_registry *registry, const ent_host_plugin *plugin) {
    return ent_status_make(registry->arena, ENT_ERROR_DEVICE, plugin->refused_rule,
                           ent_arena_format(registry->arena, "plugin '%s'", plugin->name), "%s",
                           plugin->refused);
}

static const char *open_library(ent_arena *arena, ent_host_plugin *plugin, const char **rule) {
    struct stat info;
    *rule = "plugin.loader";
    if (stat(plugin->library_path, &info) != 0)
        return ent_arena_format(arena, "%s: the manifest %s names a library that is not there",
                                plugin->library_path, plugin->manifest_path);
    if (!S_ISREG(info.st_mode))
        return ent_arena_format(arena, "%s: is not a regular file", plugin->library_path);
    plugin->library = dlopen(plugin->library_path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin->library)
        return ent_arena_format(arena, "%s: the loader says: %s", plugin->library_path, dlerror());
    plugin->plugin = dlsym(plugin->library, "ent_plugin_v1");
    *rule = "plugin.missing-symbol";
    if (!plugin->plugin)
        return ent_arena_format(arena, "%s: has no symbol ent_plugin_v1; it is no Entente plugin",
                                plugin->library_path);
    return NULL;
}

/* Reads only head.size, abi_min and abi_max until they are accepted. */
static const char *check_abi(ent_arena *arena, const ent_host_plugin *plugin, const char **rule) {
    const ent_plugin *table = plugin->plugin;
    const char *path = plugin->library_path ? plugin->library_path : "static";
    *rule = "plugin.abi";
    if (table->head.size < sizeof(ent_plugin))
        return ent_arena_format(
            arena,
            "%s: its table has %u bytes, ABI 1 needs at least %zu; rebuild it with this version's headers",
            path, table->head.size, sizeof(ent_plugin));
    if (table->abi_min > ENT_ABI_VERSION || table->abi_max < ENT_ABI_VERSION)
        return ent_arena_format(arena, "%s: speaks ABI %u to %u, this host speaks %u", path, table->abi_min,
                                table->abi_max, ENT_ABI_VERSION);
    if (table->head.type & ENT_MUST_UNDERSTAND)
        return ent_arena_format(arena, "%s: its table is of a kind (%u) that must be understood, and is not",
                                path, table->head.type & ~ENT_MUST_UNDERSTAND);
    if (!table->open || !table->close || !table->get_interface)
        return ent_arena_format(arena, "%s: open, close and get_interface must be set", path);
    return NULL;
}

static ent_status start_plugin(ent_host_registry *registry, ent_host_plugin *plugin) {
    const char *rule = NULL, *why = check_abi(registry->arena, plugin, &rule);
    if (!why) {
        ent_host_call call;
        ent_host_call_init(&call, registry->arena, 0);
        ent_code code = plugin->plugin->open(&host_table, &call.call, &plugin->state);
        rule = "plugin.open";
        if (code != ENT_OK)
            why = ent_status_text(registry->arena, ent_host_call_status(&call, code, plugin->name, "open"));
    }
    if (!why) {
        plugin->depths = plugin->plugin->depths;
        return NULL;
    }
    if (plugin->library) dlclose(plugin->library);
    plugin->library = NULL;
    plugin->plugin = NULL;
    ent_host_refuse(plugin, rule, why);
    return refused(registry, plugin);
}

ent_status ent_host_load(ent_host_registry *registry, ent_host_plugin *plugin) {
    if (plugin->refused) return refused(registry, plugin);
    if (plugin->state || plugin->plugin) return NULL;
    const char *rule = NULL, *why = open_library(registry->arena, plugin, &rule);
    if (why) {
        if (plugin->library) dlclose(plugin->library);
        plugin->library = NULL;
        ent_host_refuse(plugin, rule, why);
        return refused(registry, plugin);
    }
    return start_plugin(registry, plugin);
}

ent_status ent_host_add_static(ent_host_registry *registry, const ent_plugin *plugin, bool is_default) {
    ent_host_plugin entry = {0};
    entry.name = ent_arena_strndup(registry->arena, plugin->name.data, plugin->name.size);
    entry.manifest_path = "static";
    entry.abi_min = plugin->abi_min;
    entry.abi_max = plugin->abi_max;
    entry.is_default = is_default;
    entry.plugin = plugin;
    ent_array_push(registry->arena, &registry->plugins, entry);
    return start_plugin(registry, &registry->plugins.items[registry->plugins.count - 1]);
}

void ent_host_close(ent_host_registry *registry) {
    if (!registry) return;
    for (uint32_t i = 0; i < registry->plugins.count; i++) {
        ent_host_plugin *plugin = &registry->plugins.items[i];
        if (plugin->plugin) plugin->plugin->close(plugin->state);
        if (plugin->library) dlclose(plugin->library);
        plugin->plugin = NULL;
        plugin->library = NULL;
    }
}
