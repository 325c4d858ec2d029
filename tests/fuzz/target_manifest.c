/* Plugin manifests, up to the refusal or the loading of a library that does not exist. */
#include "core/host/internal.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    ent_host_plugin plugin;
    ent_host_read_manifest(arena, fuzz_file("plugin.json", data, size), &plugin);
    if (plugin.refused)
        fuzz_check(plugin.refused_rule && plugin.refused[0], "a refusal without a rule", plugin.refused);
    else
        fuzz_accept();
    if (!plugin.refused)
        fuzz_check(plugin.library_path && plugin.library_path[0] && plugin.name[0],
                   "a plugin without a library", "");
    ent_arena_destroy(arena);
    return 0;
}
