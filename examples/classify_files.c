/* What are these files? Reads files, runs a magika bundle over their bytes and prints each file's type and
 * the model's score.
 *
 *     classify_files magika.ent LABELS [FILE|FOLDER]...
 *
 * LABELS names the model's outputs, one a line: examples/magika_labels.txt. Folders are walked (hidden
 * entries are left out, links are not followed); without a path, the current folder. An application of
 * Entente needs no more than this: <entente/entente.h> and libentente_runtime. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "entente/entente.h"

/* The model's input: the first and the last KEPT bytes of a file, without the white space around them, padded
 * with PADDING. They are looked for in the first and the last BLOCK bytes. So does the magika package (1.0.3,
 * _extract_features_from_seekable). */
enum { KEPT = 1024, BLOCK = 4096, PADDING = 256, TOO_FEW = 8, MAX_LABELS = 1024 };

typedef struct classifier {
    entente_bundle *bundle;
    char *labels[MAX_LABELS];
    size_t label_count;
    size_t files, failed;
} classifier;

/* ---- bytes of a file ---- */

typedef struct contents {
    unsigned char head[BLOCK], tail[BLOCK];
    size_t size; /* of each block: the smaller of BLOCK and the file */
} contents;

static int read_contents(const char *path, long long file_size, contents *out) {
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    out->size = file_size < BLOCK ? (size_t)file_size : BLOCK;
    int ok = fread(out->head, 1, out->size, file) == out->size &&
             fseeko(file, (off_t)(file_size - (long long)out->size), SEEK_SET) == 0 &&
             fread(out->tail, 1, out->size, file) == out->size;
    fclose(file);
    if (!ok && errno == 0) errno = EIO;
    return ok ? 0 : -1;
}

/* White space as Python's bytes.strip() sees it. */
static int is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Fills the model's 2 * KEPT numbers. Returns how many bytes the head has after stripping. */
static size_t make_input(const contents *c, int32_t *out) {
    size_t begin = 0, end = c->size;
    while (begin < c->size && is_space(c->head[begin])) begin++;
    while (end > 0 && is_space(c->tail[end - 1])) end--;
    size_t head_count = c->size - begin < KEPT ? c->size - begin : KEPT;
    size_t tail_count = end < KEPT ? end : KEPT;
    for (size_t i = 0; i < KEPT; i++) {
        out[i] = i < head_count ? c->head[begin + i] : PADDING;
        out[2 * KEPT - 1 - i] = i < tail_count ? c->tail[end - 1 - i] : PADDING;
    }
    return head_count;
}

/* ASCII is enough for the few bytes that the model is not asked about. */
static const char *type_of_few_bytes(const contents *c) {
    for (size_t i = 0; i < c->size; i++)
        if (c->head[i] >= 0x80) return "unknown";
    return "txt";
}

/* ---- the model ---- */

static void print_row(const char *path, const char *type, double score) {
    if (score < 0)
        printf("%-52s %-16s     -\n", path, type);
    else
        printf("%-52s %-16s %5.1f %%\n", path, type, 100 * score);
}

static int classify(classifier *self, const char *path, const int32_t *input) {
    entente_error error;
    entente_tensor in = {.data = (void *)(uintptr_t)input,
                         .size_bytes = 2 * KEPT * sizeof *input,
                         .dtype = ENTENTE_I32,
                         .rank = 2,
                         .dims = {1, 2 * KEPT}};
    entente_tensor out = {0};
    int code = entente_run(self->bundle, &in, 1, &out, 1, &error);
    if (code) {
        fprintf(stderr, "classify_files: %s: %s: %s\n", path, error.place, error.text);
        return code;
    }
    const float *scores = out.data;
    size_t count = out.size_bytes / sizeof *scores, best = 0;
    for (size_t i = 1; i < count; i++)
        if (scores[i] > scores[best]) best = i;
    print_row(path, best < self->label_count ? self->labels[best] : "?", scores[best]);
    return 0;
}

static void classify_file(classifier *self, const char *path, long long size) {
    static contents c;
    static _Alignas(64) int32_t input[2 * KEPT]; /* aligned: the runtime reads it in place */
    self->files++;
    errno = 0;
    if (size == 0) {
        print_row(path, "empty", -1);
    } else if (read_contents(path, size, &c)) {
        fprintf(stderr, "classify_files: %s: %s\n", path, strerror(errno));
        self->failed++;
    } else if (make_input(&c, input) < TOO_FEW) {
        print_row(path, type_of_few_bytes(&c), -1);
    } else if (classify(self, path, input)) {
        self->failed++;
    }
}

/* ---- files and folders ---- */

static int keep_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void classify_path(classifier *self, const char *path, int depth) {
    struct stat info;
    if (lstat(path, &info) != 0) {
        fprintf(stderr, "classify_files: %s: %s\n", path, strerror(errno));
        self->failed++;
        return;
    }
    if (S_ISREG(info.st_mode)) classify_file(self, path, (long long)info.st_size);
    if (!S_ISDIR(info.st_mode) || depth > 64) return;
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, keep_visible, alphasort);
    for (int i = 0; i < count; i++) {
        char child[4096];
        int in_here = strcmp(path, ".") == 0;
        int length = snprintf(child, sizeof child, "%s%s%s", in_here ? "" : path, in_here ? "" : "/",
                              entries[i]->d_name);
        if (length < (int)sizeof child) classify_path(self, child, depth + 1);
        free(entries[i]);
    }
    free(entries);
}

/* One label a line; # starts a comment. */
static int read_labels(classifier *self, const char *path) {
    char line[256];
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "classify_files: %s: %s\n", path, strerror(errno));
        return ENTENTE_USAGE;
    }
    while (self->label_count < MAX_LABELS && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\r\n")] = 0;
        if (line[0] && line[0] != '#') self->labels[self->label_count++] = strdup(line);
    }
    fclose(file);
    return 0;
}

/* The bundle must be one for int32 [1, 2048] with a row of f32 scores. */
static int check_ports(const entente_bundle *bundle) {
    entente_port in, out;
    if (entente_input_count(bundle) == 1 && entente_output_count(bundle) == 1 &&
        !entente_input(bundle, 0, &in) && !entente_output(bundle, 0, &out) && in.dtype == ENTENTE_I32 &&
        in.rank == 2 && in.dims[1] == 2 * KEPT && out.dtype == ENTENTE_F32)
        return 0;
    fprintf(stderr,
            "classify_files: this is not the magika model: it must take int32 [1, %d] and give f32 scores\n",
            2 * KEPT);
    return ENTENTE_BAD_MODEL;
}

static int run(classifier *self, entente_runtime *runtime, const char *bundle, char **paths) {
    static char here[] = ".";
    static char *const here_only[] = {here, NULL};
    entente_error error;
    int code = entente_bundle_load(runtime, bundle, &self->bundle, &error);
    if (code) {
        fprintf(stderr, "classify_files: %s: %s\n", error.place, error.text);
        return code;
    }
    code = check_ports(self->bundle);
    for (char *const *path = *paths ? paths : here_only; !code && *path; path++)
        classify_path(self, *path, 0);
    entente_bundle_close(self->bundle);
    if (code) return code;
    fprintf(stderr, "%zu files, %zu not read\n", self->files, self->failed);
    return self->failed ? ENTENTE_USAGE : 0;
}

int main(int argc, char **argv) {
    static classifier self;
    entente_runtime *runtime;
    entente_error error;
    if (argc < 3 || argv[1][0] == '-') {
        fprintf(stderr, "usage: classify_files magika.ent LABELS [FILE|FOLDER]...\n");
        return ENTENTE_USAGE;
    }
    int code = read_labels(&self, argv[2]);
    if (code) return code;
    code = entente_runtime_create(NULL, &runtime, &error);
    if (code) {
        fprintf(stderr, "classify_files: %s: %s\n", error.place, error.text);
    } else {
        code = run(&self, runtime, argv[1], argv + 3);
        entente_runtime_destroy(runtime);
    }
    for (size_t i = 0; i < self.label_count; i++) free(self.labels[i]);
    return code;
}
