/* The byte form of tile programs, as a plugin or a bundle hands it over: what decodes encodes again, and
 * prints. */
#include "core/tile/tile.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    char *copy = fuzz_text(data, size);
    ent_tile_program *program = NULL, *again = NULL;
    ent_status status = ent_tile_decode(arena, copy, size, &program);
    fuzz_check_status(status);
    if (!status) {
        fuzz_accept();
        ent_str bytes, twice;
        ent_text text;
        ent_text_init(&text, arena);
        ent_tile_print(program, &text);
        fuzz_check(!ent_tile_encode(program, arena, &bytes), "does not encode", text.data);
        fuzz_check(!ent_tile_decode(arena, bytes.data, bytes.size, &again), "does not decode again",
                   text.data);
        fuzz_check(!ent_tile_encode(again, arena, &twice), "does not encode again", text.data);
        fuzz_check(bytes.size == twice.size && memcmp(bytes.data, twice.data, bytes.size) == 0,
                   "encodes otherwise", text.data);
    }
    free(copy);
    ent_arena_destroy(arena);
    return 0;
}
