/* Runs files through a fuzz target once, without libFuzzer: replay FOLDER|FILE... Each file runs in a child,
 * so that its peak memory and its time are its own. Last line: N passed, N failed. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACCEPTED 10 /* exit status of a child */

static unsigned passed, failed, accepted;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)data, (void)max_size;
    return size;
}

static void run_child(const char *path) {
    ent_arena *arena = ent_arena_create(0);
    ent_str bytes;
    ent_log_set_level(ENT_LOG_ERROR);
    ent_status status = ent_file_read(arena, path, ENT_ERROR_USAGE, 0, &bytes);
    fuzz_check(!status, "cannot read", path);
    LLVMFuzzerTestOneInput((const uint8_t *)bytes.data, bytes.size);
    ent_arena_destroy(arena);
    exit(fuzz_accepted() ? ACCEPTED : 0);
}

static const char *judge(int status, uint64_t nanoseconds, const struct rusage *usage) {
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != ACCEPTED)) return "crashed";
    /* Ten times the time, for machines that do other things meanwhile. */
    if (nanoseconds > (uint64_t)FUZZ_SECONDS * 10000000000u) return "took too long";
#if !defined(__SANITIZE_ADDRESS__) /* its shadow and quarantine count, too */
    if ((size_t)usage->ru_maxrss * 1024 > FUZZ_MEMORY_BYTES + ((size_t)64 << 20))
        return "took too much memory";
#else
    (void)usage;
#endif
    return NULL;
}

static void run_file(const char *path) {
    struct rusage usage;
    int status = 0;
    uint64_t start = ent_time_ns();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_child(path);
    if (child < 0 || wait4(child, &status, 0, &usage) != child) abort();
    const char *wrong = judge(status, ent_time_ns() - start, &usage);
    accepted += WIFEXITED(status) && WEXITSTATUS(status) == ACCEPTED;
    if (wrong) printf("FAILED: %s %s\n", path, wrong);
    if (wrong)
        failed++;
    else
        passed++;
}

static void run_path(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) return; /* a target without crashes has no such folder */
    if (!S_ISDIR(info.st_mode)) {
        run_file(path);
        return;
    }
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char inner[1024];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') run_path(inner);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) run_path(argv[i]);
    if (passed && !accepted) {
        printf("FAILED: every file is refused; the corpus is of an old format\n");
        failed++;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed || !passed;
}
