/* Declarations of devices. */
#include "core/capability/capability.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    char *text = fuzz_text(data, size);
    ent_capability *capability = NULL;
    ent_status status = ent_capability_parse(arena, "fuzz", text, size, &capability);
    fuzz_check_status(status);
    if (!status) fuzz_accept();
    if (!status) fuzz_check(capability->json != NULL, "a declaration without its document", text);
    free(text);
    ent_arena_destroy(arena);
    return 0;
}
