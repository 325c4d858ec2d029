/* entente compile, print, caps, plugins: what needs the compiler only. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

static int need_one(const cli_options *o, const char *what) {
    if (o->positional_count == 1) return 0;
    return cli_fail(o, ENTENTE_USAGE, "usage.arguments", o->command, "wants one %s; see `entente %s --help`",
                    what, o->command);
}

int cli_compile(const cli_options *o) {
    int code = need_one(o, "MODEL");
    if (code) return code;
    if (!o->output)
        return cli_fail(o, ENTENTE_USAGE, "usage.output", "compile", "say where to write with -o FILE.ent");
    entente_compile_request request;
    cli_fill_request(o, o->positionals[0], &request);
    request.output_path = o->output;
    entente_compile_result result;
    entente_compile(&request, &result);
    if (request.progress) fprintf(stderr, "\r                     \r");
    code = result.code;
    if (code) {
        cli_fail_compile(o, &result);
    } else {
        struct stat info = {0};
        stat(o->output, &info);
        cJSON *plan = cJSON_Parse(result.plan_json);
        double predicted = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(plan, "predicted_ns"));
        int regions = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(plan, "regions"));
        if (o->json) {
            cJSON *root = cJSON_CreateObject();
            cJSON_AddStringToObject(root, "output", o->output);
            cJSON_AddNumberToObject(root, "bytes", (double)info.st_size);
            cJSON_AddNumberToObject(root, "compile_ms", result.compile_ns / 1e6);
            cJSON_AddItemToObject(root, "plan", plan ? plan : cJSON_CreateNull());
            plan = NULL;
            cli_print_json(root);
        } else {
            printf("%s: %.1f MB, %d regions, predicted %.3f ms, compiled in %.0f ms\n", o->output,
                   (double)info.st_size / 1e6, regions, predicted / 1e6, result.compile_ns / 1e6);
        }
        cJSON_Delete(plan);
    }
    entente_compile_result_free(&result);
    return code;
}

int cli_print(const cli_options *o) {
    int code = need_one(o, "MODEL");
    if (code) return code;
    entente_compile_request request;
    cli_fill_request(o, o->positionals[0], &request);
    request.stop_after = o->stage ? o->stage : "freeze";
    entente_compile_result result;
    entente_compile(&request, &result);
    code = result.code;
    if (code)
        cli_fail_compile(o, &result);
    else if (o->json) {
        cJSON *root = cJSON_CreateObject();
        cJSON_AddStringToObject(root, "stage", request.stop_after);
        cJSON_AddStringToObject(root, "text", result.stage_text);
        cli_print_json(root);
    } else
        fputs(result.stage_text, stdout);
    entente_compile_result_free(&result);
    return code;
}

int cli_plugins(const cli_options *o) {
    char *json = NULL;
    int code = entente_list_plugins(o->plugin_path, &json);
    if (o->json || code) {
        if (json) puts(json);
        entente_free_text(json);
        return code;
    }
    cJSON *root = cJSON_Parse(json);
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(root, "plugins"), *plugin;
    if (cJSON_GetArraySize(list) == 0) printf("no plugins found\n");
    cJSON_ArrayForEach(plugin, list) {
        const cJSON *abi = cJSON_GetObjectItemCaseSensitive(plugin, "abi");
        bool usable = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(plugin, "usable"));
        printf("%-12s %-8s ABI %.0f-%.0f (host %.0f)  %s\n", cli_json_text(plugin, "name"),
               usable ? "usable" : "refused", cJSON_GetNumberValue(cJSON_GetArrayItem(abi, 0)),
               cJSON_GetNumberValue(cJSON_GetArrayItem(abi, 1)), cli_json_number(plugin, "host_abi"),
               cli_json_text(plugin, "manifest"));
        if (!usable)
            printf("             %s [%s]\n", cli_json_text(plugin, "reason"), cli_json_text(plugin, "rule"));
        else if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(plugin, "default")))
            printf("             used only when named in --device\n");
    }
    cJSON_Delete(root);
    entente_free_text(json);
    return 0;
}

static void print_device(const cJSON *device) {
    const cJSON *item;
    printf("%s: %s (%s), %.0f units, figures %s\n", cli_json_text(device, "name"),
           cli_json_text(device, "description"), cli_json_text(device, "kind"),
           cli_json_number(device, "units"), cli_json_text(device, "basis"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(device, "memory")) printf(
        "  memory  %-10s %12.0f bytes %8.1f GB/s per %s\n", cli_json_text(item, "name"),
        cli_json_number(item, "bytes"), cli_json_number(item, "read_gbps"), cli_json_text(item, "scope"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(device, "matrix_units"))
        printf("  matrix  %-24s %.0fx%.0fx%.0f %s, %.1f GFLOP/s\n", cli_json_text(item, "name"),
               cli_json_number(item, "m"), cli_json_number(item, "n"), cli_json_number(item, "k"),
               cli_json_text(item, "dtype_a"), cli_json_number(item, "gflops"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(device, "links"))
        printf("  link    to %s: %.0f ns, %.1f GB/s\n", cli_json_text(item, "to"),
               cli_json_number(item, "latency_ns"), cli_json_number(item, "gbps"));
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(device, "patterns"))
        printf("  pattern %-24s %s, %s\n", cli_json_text(item, "name"), cli_json_text(item, "depth"),
               cli_json_text(item, "tier"));
}

int cli_caps(const cli_options *o) {
    char *json = NULL;
    int code = entente_list_capabilities(o->plugin_path, o->positionals, o->positional_count, &json);
    cJSON *root = cJSON_Parse(json);
    const cJSON *error = cJSON_GetObjectItemCaseSensitive(root, "error"), *device;
    if (o->json)
        puts(json ? json : "");
    else if (error)
        cli_fail(o, code, cli_json_text(error, "rule"), cli_json_text(error, "place"), "%s",
                 cli_json_text(error, "text"));
    else
        cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(root, "devices")) print_device(device);
    cJSON_Delete(root);
    entente_free_text(json);
    return code;
}
