/* Search paths and the registry of plugins found. */
#define _GNU_SOURCE
#include "core/host/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#ifndef ENT_PLUGIN_INSTALL_FOLDER
#define ENT_PLUGIN_INSTALL_FOLDER "/usr/local/lib/entente/plugins"
#endif

/* lib/entente/plugins beside the library (or program) that this code is linked into; works in build and
 * install trees. */
static const char *own_folder(ent_arena *arena) {
    static const char anchor = 0; /* an object of this library: its address tells where the library lies */
    Dl_info info;
    if (!dladdr(&anchor, &info) || !info.dli_fname) return NULL;
    char *real = realpath(info.dli_fname, NULL);
    if (!real) return NULL;
    char *slash = strrchr(real, '/');
    if (slash) *slash = 0;
    char *up = strrchr(real, '/');
    const char *inside = ent_arena_format(arena, "%s/entente/plugins", real);
    const char *beside =
        up ? ent_arena_format(arena, "%.*s/lib/entente/plugins", (int)(up - real), real) : NULL;
    free(real);
    return beside ? ent_arena_format(arena, "%s:%s", inside, beside) : inside;
}

static const char *search_path(ent_arena *arena, const ent_host_options *options) {
    if (options && options->plugin_path) return options->plugin_path;
    const char *environment = getenv("ENTENTE_PLUGIN_PATH");
    bool trusted = getauxval(AT_SECURE) == 0 && !(options && options->no_environment);
    if (environment && environment[0] && trusted) return environment;
    const char *own = own_folder(arena);
    return own ? ent_arena_format(arena, "%s:%s", own, ENT_PLUGIN_INSTALL_FOLDER) : ENT_PLUGIN_INSTALL_FOLDER;
}

static int is_manifest(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return entry->d_name[0] != '.' && size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0;
}

static void scan_folder(ent_host_registry *registry, const char *folder, ent_map *seen_folders) {
    char *real = realpath(folder, NULL);
    bool fresh = real && !ent_map_find(seen_folders, real, NULL);
    if (fresh) ent_map_set(seen_folders, real, 1);
    free(real);
    if (!fresh) return;
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_manifest, alphasort);
    for (int i = 0; i < count; i++) {
        ent_host_plugin plugin;
        ent_host_read_manifest(
            registry->arena, ent_arena_format(registry->arena, "%s/%s", folder, entries[i]->d_name), &plugin);
        free(entries[i]);
        ent_host_plugin *first = ent_host_find(registry, plugin.name);
        if (first)
            ent_host_refuse(&plugin, "plugin.shadowed",
                            ent_arena_format(registry->arena,
                                             "%s: another plugin of this name comes first: %s",
                                             plugin.manifest_path, first->manifest_path));
        ent_array_push(registry->arena, &registry->plugins, plugin);
    }
    free(entries);
}

ent_status ent_host_scan(ent_arena *arena, const ent_host_options *options, ent_host_registry **out) {
    ent_host_registry *registry = ent_arena_alloc(arena, sizeof *registry);
    registry->arena = arena;
    ent_map *seen = ent_map_create(arena);
    char *path = ent_arena_strdup(arena, search_path(arena, options)), *save = NULL;
    for (char *folder = strtok_r(path, ":", &save); folder; folder = strtok_r(NULL, ":", &save))
        scan_folder(registry, folder, seen);
    *out = registry;
    return NULL;
}

ent_host_plugin *ent_host_find(ent_host_registry *registry, const char *name) {
    for (uint32_t i = 0; i < registry->plugins.count; i++) {
        const ent_host_plugin *plugin = &registry->plugins.items[i];
        bool shadowed = plugin->refused_rule && strcmp(plugin->refused_rule, "plugin.shadowed") == 0;
        if (!shadowed && strcmp(plugin->name, name) == 0) return &registry->plugins.items[i];
    }
    return NULL;
}
