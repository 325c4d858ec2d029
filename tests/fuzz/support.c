#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[256];
static char path[512];

static void remove_folder(void) {
    unlink(path);
    rmdir(folder);
}

static void make_folder(void) {
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/entente_fuzz_XXXXXX", root ? root : "/tmp");
    if (!mkdtemp(folder)) abort();
    atexit(remove_folder);
}

const char *fuzz_file(const char *name, const uint8_t *data, size_t size) {
    if (!folder[0]) make_folder();
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    fuzz_check(file != NULL, "cannot write", path);
    if (size) fuzz_check(fwrite(data, 1, size, file) == size, "cannot write", path);
    fclose(file);
    return path;
}

char *fuzz_text(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    if (!text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    return text;
}

static bool accepted;

void fuzz_accept(void) {
    accepted = true;
}

bool fuzz_accepted(void) {
    return accepted;
}

void fuzz_check(bool condition, const char *what, const char *detail) {
    if (condition) return;
    fprintf(stderr, "fuzz check failed: %s\n%s\n", what, detail ? detail : "");
    abort();
}

void fuzz_check_status(ent_status status) {
    if (!status) return;
    fuzz_check(status->code > ENT_ERROR_NONE && status->code < ENT_ERROR_INTERNAL, "code of a refusal",
               status->text);
    fuzz_check(status->rule && strchr(status->rule, '.'), "rule of a refusal", status->text);
    fuzz_check(status->text && status->text[0], "text of a refusal", status->rule);
}
