/* Models through the compiler under small limits, for the targets that differ in how far. */
#include "tests/fuzz/fuzz.h"

int fuzz_compile(entente_compile_request *request) {
    entente_compile_result result;
    request->max_nesting = 32;
    request->max_tensor_bytes = FUZZ_MEMORY_BYTES / 4;
    request->max_memory_bytes = FUZZ_MEMORY_BYTES;
    request->max_seconds = FUZZ_SECONDS - 2;
    entente_compile(request, &result);
    fuzz_check(result.code != ENT_ERROR_INTERNAL, "our own bug", result.text);
    fuzz_check(result.code == 0 || (result.rule[0] && result.text[0]), "a refusal without its rule",
               result.text);
    if (result.code == 0) fuzz_accept();
    entente_compile_result_free(&result);
    return 0;
}
