/* The text form of tile programs: what is read prints and reads back the same, and its byte form decodes to
 * the same. */
#include "core/tile/tile.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static const char *print(const ent_tile_program *program, ent_arena *arena) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_tile_print(program, &text);
    return text.data;
}

static void check_forms(const ent_tile_program *program, ent_arena *arena) {
    const char *printed = print(program, arena);
    ent_tile_program *again = NULL;
    ent_status status = ent_tile_parse(arena, "printed", printed, strlen(printed), &again);
    fuzz_check(!status, status ? status->text : "", printed);
    fuzz_check(strcmp(printed, print(again, arena)) == 0, "reads back otherwise", printed);
    ent_str bytes;
    fuzz_check(!ent_tile_encode(program, arena, &bytes), "does not encode", printed);
    status = ent_tile_decode(arena, bytes.data, bytes.size, &again);
    fuzz_check(!status, status ? status->text : "", printed);
    fuzz_check(strcmp(printed, print(again, arena)) == 0, "decodes otherwise", printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    char *text = fuzz_text(data, size);
    ent_tile_program *program = NULL;
    ent_status status = ent_tile_parse(arena, "fuzz", text, size, &program);
    fuzz_check_status(status);
    if (!status) fuzz_accept();
    if (!status) check_forms(program, arena);
    free(text);
    ent_arena_destroy(arena);
    return 0;
}
