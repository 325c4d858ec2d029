/* ONNX models through the whole compiler for the CPU, under small limits: what one compilation accepts has a
 * plan and kernels. Nothing is written. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return fuzz_mutate_wire(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const devices[] = {"cpu"};
    const char *plugins = getenv("ENTENTE_PLUGIN_PATH");
    entente_compile_request request = {.size = sizeof request,
                                       .model_path = fuzz_file("model.onnx", data, size),
                                       .devices = devices,
                                       .device_count = 1,
                                       .plugin_path = plugins ? plugins : FUZZ_PLUGIN_PATH,
                                       .stop_after = "lower",
                                       .budget_ms = 200,
                                       .threads = 1,
                                       .max_nodes = 2000};
    return fuzz_compile(&request);
}
