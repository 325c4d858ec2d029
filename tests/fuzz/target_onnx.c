/* ONNX models through the pipeline up to the frozen graph, under small limits. */
#include "tests/fuzz/fuzz.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    return fuzz_mutate_wire(data, size, max_size, seed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    entente_compile_request request = {.size = sizeof request,
                                       .model_path = fuzz_file("model.onnx", data, size),
                                       .stop_after = "freeze",
                                       .max_nodes = 5000};
    return fuzz_compile(&request);
}
