/* entente explain: the plan, and with --measure what each step took. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define MEASURED_RUNS 15

typedef struct explain {
    cli_loaded loaded;
    cJSON *plan;
    size_t step_count;
    double *times; /* step_count x MEASURED_RUNS */
} explain;

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int profile(const cli_options *o, explain *e) {
    entente_tensor inputs[CLI_MAX], outputs[CLI_MAX];
    size_t count = 0, output_count = entente_output_count(e->loaded.bundle);
    if (output_count > CLI_MAX)
        return cli_fail(o, ENTENTE_LIMIT, "run.outputs", "explain", "over %d outputs", CLI_MAX);
    int code = cli_collect_inputs(o, e->loaded.bundle, inputs, CLI_MAX, &count);
    entente_set_profiling(e->loaded.bundle, 1);
    for (int run = -2; run < (o->measure ? MEASURED_RUNS : -1) && !code; run++) {
        entente_error error;
        memset(outputs, 0, sizeof outputs);
        if (entente_run(e->loaded.bundle, inputs, count, outputs, output_count, &error))
            code = cli_fail_run(o, &error);
        if (run < 0 || code) continue;
        if (!e->times) {
            e->step_count = entente_step_count(e->loaded.bundle);
            e->times = calloc(e->step_count * MEASURED_RUNS + 1, sizeof *e->times);
            if (!e->times) code = cli_fail(o, ENTENTE_LIMIT, "memory", "explain", "out of memory");
        }
        for (size_t i = 0; i < e->step_count && !code; i++) {
            entente_step step;
            entente_step_at(e->loaded.bundle, i, &step);
            e->times[i * MEASURED_RUNS + (size_t)run] = (double)(step.end_ns - step.begin_ns);
        }
    }
    for (size_t i = 0; i < count; i++) entente_tensor_free(&inputs[i]);
    for (size_t i = 0; i < e->step_count; i++)
        qsort(e->times + i * MEASURED_RUNS, MEASURED_RUNS, sizeof(double), compare_doubles);
    return code;
}

static cJSON *region_of(const explain *e, uint32_t index) {
    cJSON *regions = cJSON_GetObjectItemCaseSensitive(e->plan, "regions");
    return index == ENTENTE_NONE ? NULL : cJSON_GetArrayItem(regions, (int)index);
}

static cJSON *step_json(const explain *e, size_t index) {
    entente_step step;
    entente_step_at(e->loaded.bundle, index, &step);
    cJSON *out = cJSON_CreateObject(), *region = region_of(e, step.region);
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(region, "nodes");
    const cJSON *control = cJSON_GetObjectItemCaseSensitive(region, "kind");
    bool is_control = cJSON_IsString(control) && strcmp(control->valuestring, "control") == 0;
    cJSON_AddStringToObject(out, "function", step.function);
    cJSON_AddNumberToObject(out, "index", (double)index);
    cJSON_AddStringToObject(out, "kind",
                            is_control                       ? "branch"
                            : strcmp(step.tier, "none") == 0 ? "copy"
                                                             : "dispatch");
    cJSON_AddStringToObject(out, "name", step.name);
    cJSON_AddStringToObject(out, "device", step.device);
    cJSON_AddStringToObject(out, "path", step.path);
    cJSON_AddStringToObject(out, "tier", step.tier);
    if (step.region != ENTENTE_NONE) cJSON_AddNumberToObject(out, "region", step.region);
    cJSON_AddNumberToObject(out, "predicted_ns", step.predicted_ns);
    if (e->times)
        cJSON_AddNumberToObject(out, "measured_ns", e->times[index * MEASURED_RUNS + MEASURED_RUNS / 2]);
    cJSON_AddItemToObject(out, "nodes", nodes ? cJSON_Duplicate(nodes, 1) : cJSON_CreateArray());
    return out;
}

static void add_node(cJSON *list, const char *name, const char *device, const char *depth, const char *tier,
                     const char *reason, int region) {
    cJSON *node = cJSON_CreateObject();
    cJSON_AddStringToObject(node, "name", name);
    cJSON_AddStringToObject(node, "device", device);
    cJSON_AddStringToObject(node, "depth", depth);
    cJSON_AddStringToObject(node, "tier", tier);
    cJSON_AddStringToObject(node, "reason", reason);
    if (region >= 0) cJSON_AddNumberToObject(node, "region", region);
    cJSON_AddItemToArray(list, node);
}

/* Every node of the model: where it runs, or that it was computed while compiling. */
static cJSON *nodes_json(const explain *e) {
    cJSON *list = cJSON_CreateArray();
    const cJSON *region, *name;
    int index = 0;
    cJSON_ArrayForEach(region, cJSON_GetObjectItemCaseSensitive(e->plan, "regions")) {
        cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(region, "nodes"))
            add_node(list, name->valuestring, cli_json_text(region, "device"), cli_json_text(region, "depth"),
                     cli_json_text(region, "tier"), cli_json_text(region, "reason"), index);
        index++;
    }
    cJSON_ArrayForEach(name, cJSON_GetObjectItemCaseSensitive(e->plan, "folded"))
        add_node(list, name->valuestring, "host", "none", "native",
                 "computed or removed while compiling: nothing runs", -1);
    return list;
}

static void print_text(const explain *e) {
    const cJSON *region, *item;
    printf("predicted %.3f ms, ", cli_json_number(e->plan, "predicted_ns") / 1e6);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(e->plan, "proven")))
        printf("proven least for these offers\n\n");
    else
        printf("unproven (budget ended): the least is not below %.3f ms\n\n",
               cli_json_number(e->plan, "bound_ns") / 1e6);
    printf("%-4s %-12s %-8s %-8s %-12s %12s %12s  %s\n", "#", "device", "kind", "tier", "path",
           "predicted us", e->times ? "measured us" : "", "nodes");
    cJSON_ArrayForEach(region, cJSON_GetObjectItemCaseSensitive(e->plan, "regions")) {
        int index = (int)cli_json_number(region, "index");
        double measured = -1;
        for (size_t s = 0; s < e->step_count; s++) {
            entente_step step;
            entente_step_at(e->loaded.bundle, s, &step);
            if (step.region == (uint32_t)index) measured = e->times[s * MEASURED_RUNS + MEASURED_RUNS / 2];
        }
        printf("%-4d %-12s %-8s %-8s %-12s %12.1f ", index, cli_json_text(region, "device"),
               cli_json_text(region, "kind"), cli_json_text(region, "tier"), cli_json_text(region, "path"),
               cli_json_number(region, "predicted_ns") / 1e3);
        if (measured >= 0)
            printf("%12.1f  ", measured / 1e3);
        else
            printf("%12s  ", "");
        int shown = 0;
        cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(region, "nodes")) if (shown++ < 3)
            printf("%s ", item->valuestring);
        printf("%s\n     %s\n", shown > 3 ? "..." : "", cli_json_text(region, "reason"));
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(e->plan, "converts"))
        printf("convert %s: %s in %s -> %s in %s, %.1f us\n", cli_json_text(item, "value"),
               cli_json_text(item, "from"), cli_json_text(item, "from_memory"), cli_json_text(item, "to"),
               cli_json_text(item, "to_memory"), cli_json_number(item, "predicted_ns") / 1e3);
    printf("%d nodes computed or removed while compiling\n",
           cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(e->plan, "folded")));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(e->plan, "notes"))
        printf("note: %s\n", item->valuestring);
}

static void print_json(explain *e) {
    cJSON *root = cJSON_CreateObject(), *steps = cJSON_CreateArray();
    for (size_t i = 0; i < e->step_count; i++) cJSON_AddItemToArray(steps, step_json(e, i));
    cJSON_AddItemToObject(root, "nodes", nodes_json(e));
    cJSON_AddItemToObject(root, "steps", steps);
    cJSON_AddItemToObject(root, "plan", e->plan);
    e->plan = NULL;
    cli_print_json(root);
}

int cli_explain(const cli_options *o) {
    if (o->positional_count != 1)
        return cli_fail(o, ENTENTE_USAGE, "usage.arguments", "explain", "wants one MODEL or BUNDLE");
    explain e = {0};
    int code = cli_load(o, o->positionals[0], &e.loaded);
    if (code) return code;
    size_t size = 0;
    const char *text = entente_plan_json(e.loaded.bundle, &size);
    e.plan = cJSON_ParseWithLength(text, size);
    if (!e.plan)
        code = cli_fail(o, ENTENTE_UNSUPPORTED, "explain.no-plan", o->positionals[0],
                        "the bundle carries no plan section");
    if (!code && o->measure) code = profile(o, &e);
    if (!code && o->json)
        print_json(&e);
    else if (!code)
        print_text(&e);
    cJSON_Delete(e.plan);
    free(e.times);
    cli_unload(&e.loaded);
    return code;
}
