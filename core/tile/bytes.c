/* The byte form over an arena. */
#include <string.h>

#include "abi/ent_tile_codec.h"
#include "core/ops/ops.h"
#include "core/tile/tile.h"

static void *allocate_in_arena(void *context, size_t size_bytes) {
    return ent_arena_array(context, size_bytes, 1);
}

ent_status ent_tile_encode(const ent_tile_program *program, ent_arena *arena, ent_str *out) {
    ent_arena_growth growth = {arena, 0};
    ent_message_writer writer = {.grow = ent_arena_grow, .ctx = &growth};
    if (ent_tile_program_encode(program, &writer) != ENT_OK) return ent_status_out_of_memory();
    out->data = (const char *)writer.data;
    out->size = writer.size;
    return NULL;
}

ent_status ent_tile_decode(ent_arena *arena, const void *bytes, size_t size, ent_tile_program **out) {
    ent_tile_program *program = ent_arena_alloc(arena, sizeof *program);
    const uint8_t *copy =
        ent_arena_copy(arena, bytes, size); /* the program's texts outlive the caller's bytes */
    ent_code code = ent_tile_program_decode(copy, size, allocate_in_arena, arena, program);
    if (code == ENT_CODE_OUT_OF_MEMORY) return ent_status_out_of_memory();
    if (code != ENT_OK)
        return ent_status_make(arena, ENT_ERROR_MODEL, "tile.bytes", "tile program bytes", "%s",
                               code == ENT_CODE_UNSUPPORTED
                                   ? "the bytes need a newer reader; rebuild this program"
                                   : "the bytes break the message form; rebuild the file they are from");
    ent_ops_error error;
    *out = program;
    if (ent_ops_tile_verify(program, &error) == ENT_OK) return NULL;
    return ent_status_make(arena, ENT_ERROR_MODEL, "tile.invalid", "tile program bytes", "%s", error.text);
}
