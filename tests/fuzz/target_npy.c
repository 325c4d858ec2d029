/* NumPy files. */
#include "include/entente/compiler.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    entente_tensor tensor;
    entente_compile_result details = {0};
    int code = entente_tensor_read(fuzz_file("x.npy", data, size), &tensor, &details);
    fuzz_check(code == 0 || (details.rule[0] && details.text[0]), "a refusal without its rule", details.text);
    if (code == 0) fuzz_accept();
    if (code == 0) fuzz_check(tensor.data && tensor.size_bytes <= size, "more data than the file has", "");
    entente_tensor_free(&tensor);
    entente_compile_result_free(&details);
    return 0;
}
