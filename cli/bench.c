/* entente bench: compile, first run, median, p90, minimum, memory, predicted. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A field of /proc/self/status in bytes. */
static double status_bytes(const char *key) {
    char line[256];
    double kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) kib = strtod(line + strlen(key) + 1, NULL);
    if (file) fclose(file);
    return kib * 1024;
}

typedef struct bench {
    cli_loaded loaded;
    entente_tensor inputs[CLI_MAX], outputs[CLI_MAX];
    size_t input_count, output_count;
} bench;

static int run_once(const cli_options *o, bench *b, double *out_ns) {
    entente_error error;
    memset(b->outputs, 0, sizeof b->outputs[0] * b->output_count);
    double start = now_ns();
    int code = entente_run(b->loaded.bundle, b->inputs, b->input_count, b->outputs, b->output_count, &error);
    *out_ns = now_ns() - start;
    return code ? cli_fail_run(o, &error) : 0;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Runs `count` times (0: for about a second, at least 10) and gives sorted times. */
static int measure(const cli_options *o, bench *b, uint32_t count, double **out_times, uint32_t *out_count) {
    uint32_t room = count ? count : 100000, done = 0;
    double *times = malloc(room * sizeof *times), end = now_ns() + 1e9;
    int code = times ? 0 : cli_fail(o, ENTENTE_LIMIT, "memory", "bench", "out of memory");
    for (; !code && done < room && (count || done < 10 || now_ns() < end); done++)
        code = run_once(o, b, &times[done]);
    if (!code) qsort(times, done, sizeof *times, compare_doubles);
    *out_times = times;
    *out_count = done;
    return code;
}

static double predicted_ns(const bench *b) {
    size_t size = 0;
    const char *text = entente_plan_json(b->loaded.bundle, &size);
    cJSON *plan = cJSON_ParseWithLength(text, size);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(plan, "predicted_ns");
    double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
    cJSON_Delete(plan);
    return value;
}

static cJSON *timing_json(const double *times, uint32_t count) {
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "iterations", count);
    cJSON_AddNumberToObject(root, "median_ns", times[count / 2]);
    cJSON_AddNumberToObject(root, "p90_ns", times[(uint32_t)((double)(count - 1) * 0.9)]);
    cJSON_AddNumberToObject(root, "min_ns", times[0]);
    return root;
}

/* One JSON line for each line with a number of iterations: lets another program interleave runs with its own.
 */
static int serve(const cli_options *o, bench *b) {
    char line[64];
    int code = 0;
    while (!code && fgets(line, sizeof line, stdin)) {
        double *times = NULL;
        uint32_t count = 0;
        code = measure(o, b, (uint32_t)strtoul(line, NULL, 10), &times, &count);
        if (!code && count) cli_print_json(timing_json(times, count));
        fflush(stdout);
        free(times);
    }
    return code;
}

static int report(const cli_options *o, bench *b, double first_ns, double empty_rss) {
    double *times = NULL;
    uint32_t count = 0;
    int code = measure(o, b, o->iterations, &times, &count);
    entente_memory memory = {0};
    entente_error error;
    if (!code && entente_memory_used(b->loaded.bundle, &memory, &error)) code = cli_fail_run(o, &error);
    if (!code) {
        cJSON *root = timing_json(times, count);
        double rss = status_bytes("VmRSS:"), peak = status_bytes("VmHWM:");
        cJSON_AddNumberToObject(root, "compile_ns", b->loaded.compile_ns);
        cJSON_AddNumberToObject(root, "first_run_ns", first_ns);
        cJSON_AddNumberToObject(root, "predicted_ns", predicted_ns(b));
        cJSON_AddNumberToObject(root, "peak_rss_bytes", peak);
        cJSON_AddNumberToObject(root, "rss_bytes", rss);
        cJSON_AddNumberToObject(root, "empty_rss_bytes", empty_rss);
        cJSON_AddNumberToObject(root, "weights_bytes", (double)memory.weights_bytes);
        cJSON_AddNumberToObject(root, "arena_bytes", (double)memory.arena_bytes);
        cJSON_AddNumberToObject(root, "arena_lower_bound_bytes", (double)memory.arena_lower_bound_bytes);
        if (!o->json) {
            printf("compile    %10.1f ms\nfirst run  %10.3f ms\nmedian     %10.3f ms (%u runs)\np90        "
                   "%10.3f ms\nminimum    %10.3f ms\n"
                   "predicted  %10.3f ms\nmemory     %10.1f MB peak, %.1f MB weights, %.1f MB arenas (lower "
                   "bound %.1f MB)\n",
                   b->loaded.compile_ns / 1e6, first_ns / 1e6, times[count / 2] / 1e6, count,
                   times[(uint32_t)((double)(count - 1) * 0.9)] / 1e6, times[0] / 1e6, predicted_ns(b) / 1e6,
                   peak / 1e6, (double)memory.weights_bytes / 1e6, (double)memory.arena_bytes / 1e6,
                   (double)memory.arena_lower_bound_bytes / 1e6);
            cJSON_Delete(root);
        } else
            cli_print_json(root);
    }
    free(times);
    return code;
}

int cli_bench(const cli_options *o) {
    if (o->positional_count != 1)
        return cli_fail(o, ENTENTE_USAGE, "usage.arguments", "bench", "wants one MODEL or BUNDLE");
    double empty_rss = status_bytes("VmRSS:"), first_ns = 0;
    bench *b = calloc(1, sizeof *b);
    if (!b) return cli_fail(o, ENTENTE_LIMIT, "memory", "bench", "out of memory");
    int code = cli_load(o, o->positionals[0], &b->loaded);
    if (!code) code = cli_collect_inputs(o, b->loaded.bundle, b->inputs, CLI_MAX, &b->input_count);
    if (!code) b->output_count = entente_output_count(b->loaded.bundle);
    if (!code && b->output_count > CLI_MAX)
        code = cli_fail(o, ENTENTE_LIMIT, "run.outputs", "bench", "over %d outputs", CLI_MAX);
    if (!code) code = run_once(o, b, &first_ns);
    if (!code) code = o->serve ? serve(o, b) : report(o, b, first_ns, empty_rss);
    for (size_t i = 0; i < b->input_count; i++) entente_tensor_free(&b->inputs[i]);
    cli_unload(&b->loaded);
    free(b);
    return code;
}
