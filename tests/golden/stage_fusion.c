/* Stage "fusion": the candidates of a graph for a made-up two-core CPU. args: "list", or "program N" for the
 * tile program of candidate N (counted from 0). */
#include <stdlib.h>
#include <string.h>

#include "core/fusion/fusion.h"
#include "tests/golden/golden.h"
#include "tests/unit/fusion_device.h"

static ent_status run(ent_arena *arena, const char *args, const char *file, ent_str input, ent_text *out) {
    ent_module *module = NULL;
    ent_fusion_layouts layouts;
    ent_fusion_set set;
    ENT_TRY(ent_module_parse(arena, file, ent_arena_strndup(arena, input.data, input.size), &module));
    ENT_TRY(ent_module_infer(module, arena));
    ENT_TRY(ent_module_freeze(module, arena));
    ENT_TRY(ent_fusion_find_layouts(module, arena, &layouts));
    ENT_TRY(ent_fusion_make(module, &layouts, fusion_test_capability(), arena, &set));
    if (strncmp(args, "program ", 8) != 0) {
        ent_fusion_print(module, &set, out);
        return NULL;
    }
    unsigned long index = strtoul(args + 8, NULL, 10);
    if (index >= set.items.count || !set.items.items[index].program)
        return ent_status_make(arena, ENT_ERROR_USAGE, "golden.candidate", file,
                               "candidate %lu of %u has no program", index, set.items.count);
    ent_tile_print(set.items.items[index].program, out);
    return NULL;
}

const golden_stage golden_stage_fusion = {"fusion", run, NULL};
