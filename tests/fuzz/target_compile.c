/* ONNX models through the whole compiler for the CPU, under small limits: what one compilation accepts has a
 * plan and kernels. Nothing is written. */
#include "include/entente/compiler.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return fuzz_mutate_wire(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const devices[] = {"cpu"};
    const char *plugins = getenv("ENTENTE_PLUGIN_PATH");
    entente_compile_result result;
    entente_compile_request request = {.size = sizeof request,
                                       .model_path = fuzz_file("model.onnx", data, size),
                                       .devices = devices,
                                       .device_count = 1,
                                       .plugin_path = plugins ? plugins : FUZZ_PLUGIN_PATH,
                                       .stop_after = "lower",
                                       .budget_ms = 200,
                                       .threads = 1,
                                       .max_nodes = 2000,
                                       .max_nesting = 32,
                                       .max_tensor_bytes = FUZZ_MEMORY_BYTES / 4,
                                       .max_memory_bytes = FUZZ_MEMORY_BYTES,
                                       .max_seconds = FUZZ_SECONDS - 2};
    entente_compile(&request, &result);
    fuzz_check(result.code != ENT_ERROR_INTERNAL, "our own bug", result.text);
    fuzz_check(result.code == 0 || (result.rule[0] && result.text[0]), "a refusal without its rule",
               result.text);
    entente_compile_result_free(&result);
    return 0;
}
