/* Stage "program": a program in text form gets its memory plan. The expectation is the planned program and
 * the plan's figures. */
#include <inttypes.h>

#include "core/program/program.h"
#include "tests/golden/golden.h"

static ent_status run(ent_arena *arena, const char *args, const char *file, ent_str input, ent_text *out) {
    ent_program *program = NULL;
    ent_memory_result memory;
    (void)args;
    ENT_TRY(ent_program_parse(arena, file, ent_arena_strndup(arena, input.data, input.size), &program));
    ENT_TRY(ent_program_plan_memory(program, arena, &memory));
    ENT_TRY(ent_program_verify(program, arena));
    ent_text_add(out, "%s", ent_program_print(program, arena));
    ent_text_add(out, "# peak %" PRIu64 " bound %" PRIu64 "\n", memory.peak_bytes, memory.lower_bound_bytes);
    return NULL;
}

static ent_status reprint(ent_arena *arena, const char *file, ent_str input, ent_text *out) {
    ent_program *program = NULL;
    ENT_TRY(ent_program_parse(arena, file, ent_arena_strndup(arena, input.data, input.size), &program));
    ent_text_add(out, "%s", ent_program_print(program, arena));
    return NULL;
}

const golden_stage golden_stage_program = {"program", run, reprint};
