/* The text form of the graph IR: what is read prints, and what was printed reads back the same. */
#include "core/graph/graph.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    char *text = fuzz_text(data, size);
    ent_module *module = NULL, *again = NULL;
    ent_status status = ent_module_parse(arena, "fuzz", text, &module);
    fuzz_check_status(status);
    if (!status) status = ent_module_verify(module, arena);
    fuzz_check_status(status);
    if (!status) {
        fuzz_accept();
        const char *printed = ent_module_print(module, arena);
        status = strstr(printed, " hash ") ? NULL : ent_module_parse(arena, "printed", printed, &again);
        fuzz_check(!status, status ? status->text : "", printed);
        if (again)
            fuzz_check(strcmp(printed, ent_module_print(again, arena)) == 0, "reads back otherwise", printed);
    }
    free(text);
    ent_arena_destroy(arena);
    return 0;
}
