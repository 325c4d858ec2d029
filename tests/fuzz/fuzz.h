/* Fuzz targets: tests/fuzz/target_NAME.c defines LLVMFuzzerTestOneInput, and a custom mutator where random
 * bytes would not get behind a format's own checks. With clang and -DENTENTE_FUZZ=ON it becomes
 * build/fuzz/tests/fuzz_NAME, which
 * `./dev fuzz` runs; in every build replay.c runs the files of corpus/NAME and crashes/NAME through it once,
 * as an ordinary test.
 *
 * A target fails by abort, by a sanitizer, by a leak, by more than FUZZ_SECONDS for one input or by more
 * memory than FUZZ_MEMORY_BYTES (+ what the process has anyway). */
#ifndef ENT_TESTS_FUZZ_H
#define ENT_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/base.h"
#include "include/entente/compiler.h"

#define FUZZ_SECONDS 5
#define FUZZ_MEMORY_BYTES ((size_t)256 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
/* libFuzzer's own, for use in custom mutators; replay.c has one that changes nothing. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Writes the bytes to NAME in a folder of this process and returns its path, valid until the next call. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t size);
/* A copy that ends in NUL, from malloc, so that a sanitizer sees a read past its end. */
char *fuzz_text(const uint8_t *data, size_t size);
/* Aborts with the text when `condition` is false. */
void fuzz_check(bool condition, const char *what, const char *detail);
/* Says that the input passed all that its reader demands. replay.c wants one such file in every corpus: one
 * that all readers refuse, since a format has changed, reaches nothing behind the first check. */
void fuzz_accept(void);
bool fuzz_accepted(void);
/* Checks that a refusal has a code, a rule, a place and a text. NULL is fine. */
void fuzz_check_status(ent_status status);

/* compile.c: compiles with the limits of a fuzz run in place of the request's (nodes aside), and checks that
 * a refusal is one. Returns 0. */
int fuzz_compile(entente_compile_request *request);

/* mutate_wire.c: changes one field of a protobuf message at a random depth and repairs the lengths around it.
 */
size_t fuzz_mutate_wire(uint8_t *data, size_t size, size_t max_size, unsigned seed);

#endif
