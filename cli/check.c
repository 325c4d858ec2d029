/* entente check: ONNX test-case folders. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

typedef struct tally {
    int passed, failed, skipped;
    int worst; /* exit code */
} tally;

/* 5 beats all, then 7 > 4 > 6 > 2 > 3. */
static int rank_of(int code) {
    static const int ranks[] = {0, 1, 3, 2, 5, 7, 4, 6};
    return code >= 0 && code <= 7 ? ranks[code] : 6;
}

static void note(tally *t, int code) {
    if (rank_of(code) > rank_of(t->worst)) t->worst = code;
}

typedef struct tolerance {
    double relative, absolute;
} tolerance;

static tolerance tolerance_of(const cli_options *o, uint32_t dtype) {
    tolerance t = {0, 0};
    if (dtype == ENTENTE_F32 || dtype == ENTENTE_F64) t = (tolerance){1e-3, 1e-5};
    if (dtype == ENTENTE_F16) t = (tolerance){2e-3, 2e-3};
    if (dtype == ENTENTE_BF16) t = (tolerance){1e-2, 1e-2};
    if (t.relative > 0 && o->rtol >= 0) t.relative = o->rtol;
    if (t.relative > 0 && o->atol >= 0) t.absolute = o->atol;
    return t;
}

/* Empty string when equal within the tolerance; else what differs. */
static void compare(const cli_options *o, const entente_tensor *got, const entente_tensor *want, char *why,
                    size_t room) {
    why[0] = 0;
    uint64_t count = 1;
    if (got->dtype != want->dtype || got->rank != want->rank) {
        snprintf(why, room, "type or rank differ: %s rank %u, want %s rank %u",
                 entente_dtype_name(got->dtype), got->rank, entente_dtype_name(want->dtype), want->rank);
        return;
    }
    for (uint32_t i = 0; i < want->rank; i++) {
        if (got->dims[i] != want->dims[i])
            snprintf(why, room, "dimension %u is %lld, want %lld", i, (long long)got->dims[i],
                     (long long)want->dims[i]);
        count *= (uint64_t)want->dims[i];
    }
    tolerance t = tolerance_of(o, want->dtype);
    if (why[0]) return;
    if (t.relative == 0) {
        if (want->size_bytes && memcmp(got->data, want->data, want->size_bytes) != 0) {
            uint64_t at = 0;
            size_t size = cli_dtype_bytes(want->dtype);
            while (size && memcmp((char *)got->data + at * size, (char *)want->data + at * size, size) == 0)
                at++;
            snprintf(why, room, "element %llu is %.9g, want %.9g exactly", (unsigned long long)at,
                     cli_load_f64(got, at), cli_load_f64(want, at));
        }
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        double a = cli_load_f64(got, i), b = cli_load_f64(want, i);
        if ((isnan(a) && isnan(b)) || a == b || fabs(a - b) <= t.absolute + t.relative * fabs(b)) continue;
        snprintf(why, room, "element %llu is %.9g, want %.9g", (unsigned long long)i, a, b);
        return;
    }
}

static int read_numbered(const char *folder, const char *kind, entente_tensor *out, size_t *count, char *why,
                         size_t room) {
    for (*count = 0; *count < CLI_MAX; (*count)++) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, kind, *count);
        if (stat(path, &info) != 0) return 0;
        entente_compile_result details;
        int code = entente_tensor_read(path, &out[*count], &details);
        if (code) snprintf(why, room, "%.1000s: %.1000s [%s]", details.place, details.text, details.rule);
        entente_compile_result_free(&details);
        if (code) return code;
    }
    return 0;
}

static int run_case(const cli_options *o, const char *model, const entente_tensor *inputs, size_t input_count,
                    const entente_tensor *wanted, size_t wanted_count, char *why, size_t room) {
    const char *names[CLI_MAX];
    static char positions[CLI_MAX][24];
    for (size_t i = 0; i < input_count; i++) {
        snprintf(positions[i], sizeof positions[i], "#%zu", i);
        names[i] = positions[i];
    }
    cli_options quiet = *o;
    quiet.json = false;
    cli_loaded loaded;
    int code = cli_load_for(&quiet, model, names, inputs, input_count, &loaded);
    if (code) {
        snprintf(why, room, "%s", cli_last_error());
        return code;
    }
    entente_tensor outputs[CLI_MAX] = {{0}};
    entente_error error;
    size_t output_count = entente_output_count(loaded.bundle);
    if (output_count > CLI_MAX || output_count < wanted_count) {
        snprintf(why, room, "has %zu outputs, the case %zu", output_count, wanted_count);
        code = ENTENTE_MISMATCH;
    } else if ((code = entente_run(loaded.bundle, inputs, input_count, outputs, output_count, &error)) != 0) {
        snprintf(why, room, "%.200s: %.300s", error.place, error.text);
    }
    for (size_t i = 0; i < wanted_count && !code; i++) {
        char what[256];
        compare(o, &outputs[i], &wanted[i], what, sizeof what);
        if (what[0]) {
            snprintf(why, room, "output %zu: %s", i, what);
            code = ENTENTE_MISMATCH;
        }
    }
    cli_unload(&loaded);
    return code;
}

/* Files of sequences and optionals are no tensors: then it is the model that is not supported. */
static int explain_data(const cli_options *o, const char *model, int code, char *why, size_t room) {
    cli_options quiet = *o;
    quiet.json = false;
    cli_loaded loaded;
    int refused = cli_load_for(&quiet, model, NULL, NULL, 0, &loaded);
    if (!refused) cli_unload(&loaded);
    if (refused) snprintf(why, room, "%s", cli_last_error());
    return refused ? refused : code;
}

static void check_set(const cli_options *o, const char *folder, const char *set, tally *t) {
    char model[4096], data[4096], why[2400] = "";
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    snprintf(data, sizeof data, "%s/%s", folder, set);
    entente_tensor inputs[CLI_MAX] = {{0}}, wanted[CLI_MAX] = {{0}};
    size_t input_count = 0, wanted_count = 0;
    int code = read_numbered(data, "input", inputs, &input_count, why, sizeof why);
    if (!code) code = read_numbered(data, "output", wanted, &wanted_count, why, sizeof why);
    if (code)
        code = explain_data(o, model, code, why, sizeof why);
    else
        code = run_case(o, model, inputs, input_count, wanted, wanted_count, why, sizeof why);
    for (size_t i = 0; i < input_count; i++) entente_tensor_free(&inputs[i]);
    for (size_t i = 0; i < wanted_count; i++) entente_tensor_free(&wanted[i]);
    note(t, code);
    bool refused = code == ENTENTE_UNSUPPORTED || code == ENTENTE_BAD_MODEL || code == ENTENTE_LIMIT;
    *(code == 0 ? &t->passed : refused ? &t->skipped : &t->failed) += 1;
    const char *word = code == 0 ? "passed" : refused ? "skipped" : "failed";
    if (o->json) {
        cJSON *line = cJSON_CreateObject();
        cJSON_AddStringToObject(line, "case", folder);
        cJSON_AddStringToObject(line, "set", set);
        cJSON_AddStringToObject(line, "result", word);
        cJSON_AddNumberToObject(line, "code", code);
        cJSON_AddStringToObject(line, "text", why);
        cli_print_json(line);
    } else if (code != 0 || o->verbosity > 0) {
        printf("%s %s/%s %s\n", word, folder, set, why);
    }
}

static int is_set(const struct dirent *entry) {
    return strncmp(entry->d_name, "test_data_set_", 14) == 0;
}

static int check_folder(const cli_options *o, const char *folder, tally *t) {
    struct dirent **sets = NULL;
    int count = scandir(folder, &sets, is_set, alphasort);
    if (count <= 0) {
        free(sets);
        return cli_fail(o, ENTENTE_USAGE, "check.folder", folder, "holds no test_data_set_N folder");
    }
    for (int i = 0; i < count; i++) {
        check_set(o, folder, sets[i]->d_name, t);
        free(sets[i]);
    }
    free(sets);
    return 0;
}

int cli_check(const cli_options *o) {
    if (o->positional_count == 0)
        return cli_fail(o, ENTENTE_USAGE, "usage.arguments", "check", "wants one or more CASE_DIR");
    tally t = {0};
    for (size_t i = 0; i < o->positional_count; i++) {
        int code = check_folder(o, o->positionals[i], &t);
        if (code) return code;
    }
    printf("%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped);
    return t.worst;
}
