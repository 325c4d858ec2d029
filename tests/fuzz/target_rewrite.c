/* Graphs as text through inference, all rewrites and freezing: the verifier must hold after each. */
#include "core/graph/graph.h"
#include "core/rewrite/rewrite.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

/* Only such graphs come to freezing in the pipeline. */
static bool all_known(const ent_module *module) {
    for (uint32_t v = 0; v < module->values.count; v++)
        if (!module->values.items[v].dtype || module->values.items[v].rank == ENT_RANK_UNKNOWN) return false;
    return true;
}

static ent_status run(const char *text, ent_arena *arena, ent_arena *scratch) {
    ent_module *module = NULL;
    ent_rewrite_options options = {.strict = false};
    ENT_TRY(ent_module_parse(arena, "fuzz", text, &module));
    if (module->frozen) return NULL;
    for (uint32_t g = 0; g < module->graphs.count; g++) ENT_TRY(ent_graph_sort(module, g));
    ENT_TRY(ent_module_verify(module, scratch));
    ENT_TRY(ent_rewrite_run(module, &options, scratch));
    ent_status status = ent_module_verify(module, scratch);
    fuzz_check(!status, "the rewrites broke it", status ? status->text : "");
    if (!all_known(module)) return NULL;
    ENT_TRY(ent_module_freeze(module, scratch));
    status = ent_module_verify(module, scratch);
    fuzz_check(!status, "freezing broke it", status ? status->text : "");
    ent_module_print(module, arena);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_budget budget = {.limit_bytes = FUZZ_MEMORY_BYTES,
                         .seconds = FUZZ_SECONDS - 2,
                         .deadline_ns = ent_time_ns() + (FUZZ_SECONDS - 2) * (uint64_t)1000000000};
    ent_arena *arena = ent_arena_create_within(&budget), *scratch = ent_arena_create_within(&budget);
    char *text = fuzz_text(data, size);
    ent_status status = run(text, arena, scratch);
    fuzz_check_status(status);
    if (!status) fuzz_accept();
    free(text);
    ent_arena_destroy(scratch);
    ent_arena_destroy(arena);
    return 0;
}
