/* Plugin manifests: JSON files that say what a library is before it is opened.
 *
 *   { "manifest": 1, "name": "cpu", "library": "libentente_cpu.so", "abi": [1, 1], "architecture": "x86_64",
 *     "depths": ["tile", "region"], "default": true, "vendor": "...", "description": "..." }
 *
 * `library` is a path relative to the manifest's folder (or absolute). Unknown fields are left alone, so that
 * later manifests stay readable; a field of the wrong type refuses the plugin. */
#include "core/host/internal.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <sys/utsname.h>

void ent_host_refuse(ent_host_plugin *plugin, const char *rule, const char *text) {
    if (plugin->refused) return;
    plugin->refused = text;
    plugin->refused_rule = rule;
}

static const char *text_field(ent_arena *arena, const cJSON *root, const char *key) {
    const cJSON *field = cJSON_GetObjectItemCaseSensitive(root, key);
    return cJSON_IsString(field) ? ent_arena_strdup(arena, field->valuestring) : NULL;
}

static const char *folder_of(ent_arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? ent_arena_strndup(arena, path, (size_t)(slash - path)) : ".";
}

static bool read_abi(const cJSON *root, ent_host_plugin *out) {
    const cJSON *abi = cJSON_GetObjectItemCaseSensitive(root, "abi");
    if (!cJSON_IsArray(abi) || cJSON_GetArraySize(abi) != 2) return false;
    const cJSON *low = cJSON_GetArrayItem(abi, 0), *high = cJSON_GetArrayItem(abi, 1);
    if (!cJSON_IsNumber(low) || !cJSON_IsNumber(high) || low->valuedouble < 1 ||
        high->valuedouble < low->valuedouble || high->valuedouble > 1e6)
        return false;
    out->abi_min = (uint32_t)low->valuedouble;
    out->abi_max = (uint32_t)high->valuedouble;
    return true;
}

static bool read_depths(const cJSON *root, ent_host_plugin *out) {
    const cJSON *depths = cJSON_GetObjectItemCaseSensitive(root, "depths"), *item;
    if (!cJSON_IsArray(depths)) return false;
    cJSON_ArrayForEach(item, depths) {
        if (!cJSON_IsString(item)) return false;
        if (strcmp(item->valuestring, "graph") == 0)
            out->depths |= ENT_DEPTH_GRAPH;
        else if (strcmp(item->valuestring, "region") == 0)
            out->depths |= ENT_DEPTH_REGION;
        else if (strcmp(item->valuestring, "tile") == 0)
            out->depths |= ENT_DEPTH_TILE;
        else
            return false;
    }
    return true;
}

static void check_machine(ent_arena *arena, ent_host_plugin *out) {
    struct utsname machine;
    const char *here = uname(&machine) == 0 ? machine.machine : "unknown";
    if (out->abi_min > ENT_ABI_VERSION || out->abi_max < ENT_ABI_VERSION)
        ent_host_refuse(
            out, "plugin.abi",
            ent_arena_format(arena, "%s: speaks ABI %u to %u, this host speaks %u; use a plugin built for it",
                             out->manifest_path, out->abi_min, out->abi_max, ENT_ABI_VERSION));
    if (out->architecture && strcmp(out->architecture, "any") != 0 && strcmp(out->architecture, here) != 0)
        ent_host_refuse(out, "plugin.architecture",
                        ent_arena_format(arena, "%s: built for %s, this machine is %s", out->manifest_path,
                                         out->architecture, ent_arena_strdup(arena, here)));
}

static void read_fields(ent_arena *arena, const cJSON *root, ent_host_plugin *out) {
    const char *name = text_field(arena, root, "name"), *library = text_field(arena, root, "library");
    bool named = name && name[0] && !strchr(name, ':');
    if (named) out->name = name; /* else the file's */
    out->architecture = text_field(arena, root, "architecture");
    const cJSON *is_default = cJSON_GetObjectItemCaseSensitive(root, "default");
    out->is_default = !cJSON_IsFalse(is_default);
    bool whole = named && library && library[0] && read_abi(root, out) && read_depths(root, out);
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "manifest");
    if (!cJSON_IsNumber(version) || version->valuedouble != 1) {
        ent_host_refuse(
            out, "plugin.manifest",
            ent_arena_format(arena,
                             "%s: manifest version %g is not known, this host reads \"manifest\": 1; see "
                             "docs/plugins.md",
                             out->manifest_path, cJSON_IsNumber(version) ? version->valuedouble : 0));
        return;
    }
    if (!whole) {
        ent_host_refuse(out, "plugin.manifest",
                        ent_arena_format(arena,
                                         "%s: a manifest needs \"name\" (no colon), \"library\", \"abi\": "
                                         "[min, max] and \"depths\" of "
                                         "graph, region, tile; see docs/plugins.md",
                                         out->manifest_path));
        return;
    }
    out->library_path = library[0] == '/'
                            ? library
                            : ent_arena_format(arena, "%s/%s", folder_of(arena, out->manifest_path), library);
    check_machine(arena, out);
}

void ent_host_read_manifest(ent_arena *arena, const char *path, ent_host_plugin *out) {
    memset(out, 0, sizeof *out);
    out->manifest_path = path;
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    out->name = ent_arena_strndup(arena, base, strlen(base) - (strlen(base) > 5 ? 5 : 0));
    ent_str text;
    ent_status status = ent_file_read(arena, path, ENT_ERROR_DEVICE, 1 << 20, &text);
    if (status) {
        ent_host_refuse(out, "plugin.manifest", ent_status_text(arena, status));
        return;
    }
    cJSON *root = cJSON_ParseWithLength(text.data, text.size);
    if (!cJSON_IsObject(root))
        ent_host_refuse(out, "plugin.manifest", ent_arena_format(arena, "%s: is not a JSON object", path));
    else
        read_fields(arena, root, out);
    cJSON_Delete(root);
}
