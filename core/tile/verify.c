/* The verifier of core/ops as a status. */
#include "core/ops/ops.h"
#include "core/tile/tile.h"

ent_status ent_tile_verify(const ent_tile_program *program, ent_arena *arena) {
    ent_ops_error error;
    if (ent_ops_tile_verify(program, &error) == ENT_OK) return NULL;
    const char *place =
        ent_arena_format(arena, "tile program %.*s", (int)program->name.size, program->name.data);
    return ent_status_make(arena, ENT_ERROR_INTERNAL, "tile.invalid", place, "%s", error.text);
}
