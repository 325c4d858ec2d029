/* Requests, and models or bundles made ready to run. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static double now_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A line on a terminal, for whatever takes longer than a second. */
static void show_progress(void *context, const char *stage, double done) {
    const double *start = context;
    if (now_seconds() - *start > 1) fprintf(stderr, "\r%3.0f %% %-12s", done * 100, stage);
}

static double progress_start;

void cli_fill_request(const cli_options *o, const char *model, entente_compile_request *out) {
    memset(out, 0, sizeof *out);
    out->size = sizeof *out;
    out->model_path = model;
    out->devices = o->devices;
    out->device_count = o->device_count;
    out->prefer = o->prefer;
    out->assign_path = o->assign;
    out->shapes = o->shapes;
    out->shape_count = o->shape_count;
    out->dims = o->dims;
    out->dim_count = o->dim_count;
    out->ranges = o->ranges;
    out->range_count = o->range_count;
    out->constants = o->constants;
    out->constant_count = o->constant_count;
    out->external_data_root = o->external_data_root;
    out->plugin_path = o->plugin_path;
    out->dump_dir = o->dump_dir;
    out->transcript_path = o->transcript;
    out->precision = o->precision;
    out->budget_ms = o->budget_ms;
    out->threads = o->threads;
    out->max_nodes = (uint32_t)o->max_nodes;
    out->max_nesting = (uint32_t)o->max_nesting;
    out->max_file_bytes = o->max_file_bytes;
    out->max_tensor_bytes = o->max_tensor_bytes;
    out->max_memory_bytes = o->max_memory_bytes;
    out->max_seconds = o->max_seconds;
    progress_start = now_seconds();
    if (isatty(2) && !o->json) {
        out->progress = show_progress;
        out->context = &progress_start;
    }
}

static int open_bundle(const cli_options *o, const char *path, cli_loaded *out) {
    entente_options options = {.size = sizeof options, .threads = o->threads, .plugin_path = o->plugin_path};
    entente_error error;
    if (entente_runtime_create(&options, &out->runtime, &error)) return cli_fail_run(o, &error);
    if (entente_bundle_load(out->runtime, path, &out->bundle, &error)) {
        entente_runtime_destroy(out->runtime);
        out->runtime = NULL;
        return cli_fail_run(o, &error);
    }
    return 0;
}

/* Compiles to a file of a fresh private folder, loads it, and removes both: the mapping keeps the contents.
 */
static int compile_and_open(const cli_options *o, entente_compile_request *request, cli_loaded *out) {
    const char *base = getenv("TMPDIR");
    char folder[512], path[600];
    snprintf(folder, sizeof folder, "%s/entente-XXXXXX", base && base[0] ? base : "/tmp");
    if (!mkdtemp(folder))
        return cli_fail(o, ENTENTE_LIMIT, "file.write", folder,
                        "no temporary folder can be made here; set TMPDIR");
    snprintf(path, sizeof path, "%s/model.ent", folder);
    request->output_path = path;
    entente_compile_result result;
    entente_compile(request, &result);
    if (request->progress) fprintf(stderr, "\r                     \r");
    out->compile_ns = result.compile_ns;
    int code = result.code ? cli_fail_compile(o, &result) : open_bundle(o, path, out);
    entente_compile_result_free(&result);
    unlink(path);
    rmdir(folder);
    return code;
}

int cli_load_for(const cli_options *o, const char *path, const char *const *names,
                 const entente_tensor *tensors, size_t count, cli_loaded *out) {
    memset(out, 0, sizeof *out);
    out->was_bundle = entente_is_bundle(path);
    if (out->was_bundle) return open_bundle(o, path, out);
    entente_compile_request request;
    cli_fill_request(o, path, &request);
    entente_named_shape shapes[2 * CLI_MAX];
    entente_named_tensor samples[CLI_MAX];
    request.samples = samples;
    for (size_t i = 0; i < o->shape_count; i++) shapes[request.shape_count = i] = o->shapes[i];
    request.shape_count = o->shape_count;
    for (size_t i = 0; i < count && i < CLI_MAX; i++) {
        bool given = false;
        for (size_t k = 0; k < o->shape_count; k++) given |= strcmp(o->shapes[k].input, names[i]) == 0;
        for (size_t k = 0; k < o->constant_count; k++) given |= strcmp(o->constants[k].name, names[i]) == 0;
        if (!given) samples[request.sample_count++] = (entente_named_tensor){names[i], &tensors[i]};
        if (!given)
            shapes[request.shape_count++] = (entente_named_shape){names[i], tensors[i].dims, tensors[i].rank};
    }
    request.shapes = shapes;
    return compile_and_open(o, &request, out);
}

int cli_load(const cli_options *o, const char *path, cli_loaded *out) {
    entente_tensor tensors[CLI_MAX];
    const char *names[CLI_MAX];
    size_t count = 0;
    int code = 0;
    for (; count < o->input_count && !entente_is_bundle(path); count++) {
        entente_compile_result details;
        names[count] = o->inputs[count].name;
        code = entente_tensor_read(o->inputs[count].value, &tensors[count], &details);
        if (code) cli_fail_compile(o, &details);
        entente_compile_result_free(&details);
        if (code) break;
    }
    memset(out, 0, sizeof *out);
    if (!code) code = cli_load_for(o, path, names, tensors, count, out);
    for (size_t i = 0; i < count; i++) entente_tensor_free(&tensors[i]);
    return code;
}

void cli_unload(cli_loaded *loaded) {
    entente_bundle_close(loaded->bundle);
    entente_runtime_destroy(loaded->runtime);
    memset(loaded, 0, sizeof *loaded);
}
