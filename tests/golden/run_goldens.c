/* Runs goldens: run_goldens [--accept] [FILE|FOLDER]..., by default every .txt below tests/golden.
 *
 * A golden is one text file:
 *     # stage: tile
 *     # args: ...            (optional)
 *     input text
 *     --- expect
 *     expected text
 * The whole output is compared. --accept shows the difference and rewrites the expectation; refused when
 * CI=true. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/golden/golden.h"

/* Adding a stage: declare it in golden.h, define it in stage_NAME.c, name it here. */
static const golden_stage *const stages[] = {
    &golden_stage_tile,      &golden_stage_program, &golden_stage_capability,
    &golden_stage_graph,     &golden_stage_infer,   &golden_stage_fusion,
    &golden_stage_negotiate, &golden_stage_plan,    &golden_stage_rewrite,
};

typedef struct golden {
    const golden_stage *stage;
    const char *path;
    const char *file; /* last part of path: expected errors do not depend on where the runner started */
    const char *args;
    ent_str head; /* everything through the "--- expect" line */
    ent_str input;
    ent_str expected;
} golden;

typedef struct tally {
    uint32_t passed, failed;
    bool accept;
} tally;

/* ---- reading ---- */

/* The rest of the first line that starts with `key`, before the input's first other line; "" if none. */
static const char *header_value(ent_arena *arena, ent_str text, const char *key) {
    const char *at = text.data, *end = text.data + text.size;
    size_t key_size = strlen(key);
    while (at < end && *at == '#') {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end) line_end = end;
        if ((size_t)(line_end - at) >= key_size && memcmp(at, key, key_size) == 0) {
            at += key_size;
            while (at < line_end && *at == ' ') at++;
            return ent_arena_strndup(arena, at, (size_t)(line_end - at));
        }
        at = line_end < end ? line_end + 1 : end;
    }
    return "";
}

static bool read_golden(ent_arena *arena, const char *path, golden *out) {
    static const char marker[] = "\n--- expect\n";
    ent_str text;
    ent_status status = ent_file_read(arena, path, ENT_ERROR_USAGE, 1 << 20, &text);
    if (status) {
        printf("%s\n", ent_status_text(arena, status));
        return false;
    }
    const char *split = strstr(text.data, marker);
    const char *name = header_value(arena, text, "# stage:");
    memset(out, 0, sizeof *out);
    out->path = path;
    out->file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    out->args = header_value(arena, text, "# args:");
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        if (strcmp(stages[i]->name, name) == 0) out->stage = stages[i];
    if (!split || !out->stage) {
        printf("%s: no \"--- expect\" line, or no known \"# stage:\" (found \"%s\")\n", path, name);
        return false;
    }
    out->head.data = text.data;
    out->head.size = (size_t)(split - text.data) + sizeof marker - 1;
    out->input.data = text.data;
    out->input.size = (size_t)(split - text.data) + 1;
    out->expected.data = text.data + out->head.size;
    out->expected.size = text.size - out->head.size;
    return true;
}

/* ---- comparing ---- */

static const char *line_end(const char *at, const char *end) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    return newline ? newline + 1 : end;
}

static void show_lines(char sign, const char *at, const char *end) {
    while (at < end) {
        const char *next = line_end(at, end);
        printf("  %c %.*s%s", sign, (int)(next - at), at, next[-1] == '\n' ? "" : "\n");
        at = next;
    }
}

/* The lines between the common start and the common end. */
static void show_difference(ent_str expected, ent_str actual) {
    const char *e = expected.data, *e_end = expected.data + expected.size;
    const char *a = actual.data, *a_end = actual.data + actual.size;
    while (e < e_end && a < a_end) {
        const char *e_next = line_end(e, e_end), *a_next = line_end(a, a_end);
        if (e_next - e != a_next - a || memcmp(e, a, (size_t)(e_next - e)) != 0) break;
        e = e_next;
        a = a_next;
    }
    while (e_end > e && a_end > a && e_end[-1] == a_end[-1]) e_end--, a_end--;
    while (e_end > e && e_end[-1] != '\n' && e_end < expected.data + expected.size) e_end++;
    while (a_end > a && a_end[-1] != '\n' && a_end < actual.data + actual.size) a_end++;
    show_lines('-', e, e_end);
    show_lines('+', a, a_end);
}

static bool same_text(ent_str a, ent_str b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* parse -> print -> parse -> print: the second print must be the first. An input that does not parse is
 * run()'s to judge. */
static bool reprints(ent_arena *arena, const golden *g) {
    ent_text once, twice;
    if (!g->stage->reprint) return true;
    ent_text_init(&once, arena);
    ent_text_init(&twice, arena);
    if (g->stage->reprint(arena, g->file, g->input, &once)) return true;
    ent_str first = {once.data, once.size};
    ent_status status = g->stage->reprint(arena, "its own print", first, &twice);
    ent_str second = {twice.data, twice.size};
    if (!status && same_text(first, second)) return true;
    printf("FAIL %s: printing and parsing again is not the identity: %s\n", g->path,
           status ? ent_status_text(arena, status) : "");
    show_difference(first, second);
    return false;
}

static bool accept_output(ent_arena *arena, const golden *g, ent_str actual) {
    ent_file_chunk chunks[2] = {{g->head.data, g->head.size}, {actual.data, actual.size}};
    ent_status status = ent_file_write_atomic(arena, g->path, chunks, 2);
    printf("%s %s\n", status ? ent_status_text(arena, status) : "accepted", g->path);
    return !status;
}

static bool run_golden(ent_arena *arena, const char *path, bool accept) {
    golden g;
    ent_text out;
    if (!read_golden(arena, path, &g)) return false;
    ent_text_init(&out, arena);
    ent_status status = g.stage->run(arena, g.args, g.file, g.input, &out);
    if (status) ent_text_add(&out, "error: %s\n", ent_status_text(arena, status));
    ent_str actual = {out.data, out.size};
    if (!reprints(arena, &g)) return false;
    if (same_text(actual, g.expected)) return true;
    printf("%s %s\n", accept ? "DIFF" : "FAIL", path);
    show_difference(g.expected, actual);
    return accept && accept_output(arena, &g, actual);
}

/* ---- walking ---- */

static int keep_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static void run_path(const char *path, tally *t) {
    struct stat info;
    struct dirent **entries = NULL;
    if (stat(path, &info) != 0) {
        printf("FAIL %s: does not exist\n", path);
        t->failed++;
        return;
    }
    ent_arena *arena = ent_arena_create(0);
    if (!S_ISDIR(info.st_mode)) {
        bool passed = run_golden(arena, path, t->accept);
        t->passed += passed;
        t->failed += !passed;
        ent_arena_destroy(arena);
        return;
    }
    int count = scandir(path, &entries, keep_visible, alphasort);
    for (int i = 0; i < count; i++) {
        const char *child = ent_arena_format(arena, "%s/%s", path, entries[i]->d_name);
        size_t size = strlen(child);
        bool is_text = size > 4 && strcmp(child + size - 4, ".txt") == 0;
        if (is_text || (stat(child, &info) == 0 && S_ISDIR(info.st_mode))) run_path(child, t);
        free(entries[i]);
    }
    free(entries);
    ent_arena_destroy(arena);
}

int main(int argc, char **argv) {
    tally t = {0, 0, false};
    int paths = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--accept") == 0) t.accept = true;
    const char *ci = getenv("CI");
    if (t.accept && ci && strcmp(ci, "true") == 0) {
        printf(
            "--accept is refused when CI=true: accept on a developer's machine and review the difference\n");
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') continue;
        run_path(argv[i], &t);
        paths++;
    }
    if (paths == 0) run_path("tests/golden", &t);
    printf("%u passed, %u failed\n", t.passed, t.failed);
    return t.failed > 0 || t.passed == 0;
}
