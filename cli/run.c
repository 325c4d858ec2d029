/* entente run */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"

static void print_output(const char *name, const entente_tensor *t) {
    printf("%s: %s[", name, entente_dtype_name(t->dtype));
    uint64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        printf("%s%lld", i ? "," : "", (long long)t->dims[i]);
        count *= (uint64_t)t->dims[i];
    }
    printf("]");
    for (uint64_t i = 0; i < count && i < 8 && cli_dtype_bytes(t->dtype); i++)
        printf(" %.6g", cli_load_f64(t, i));
    printf("%s\n", count > 8 ? " ..." : "");
}

static cJSON *output_json(const char *name, const entente_tensor *t) {
    cJSON *out = cJSON_CreateObject(), *dims = NULL, *values = NULL;
    uint64_t count = 1;
    cJSON_AddStringToObject(out, "name", name);
    cJSON_AddStringToObject(out, "dtype", entente_dtype_name(t->dtype));
    dims = cJSON_AddArrayToObject(out, "dims");
    for (uint32_t i = 0; i < t->rank; i++) {
        cJSON_AddItemToArray(dims, cJSON_CreateNumber((double)t->dims[i]));
        count *= (uint64_t)t->dims[i];
    }
    values = cJSON_AddArrayToObject(out, "first_values");
    for (uint64_t i = 0; i < count && i < 8 && cli_dtype_bytes(t->dtype); i++)
        cJSON_AddItemToArray(values, cJSON_CreateNumber(cli_load_f64(t, i)));
    return out;
}

static int save(const cli_options *o, const char *name, const entente_tensor *t) {
    char path[4096];
    if (mkdir(o->output_dir, 0777) != 0 && errno != EEXIST)
        return cli_fail(o, ENTENTE_USAGE, "file.write", o->output_dir, "cannot make the folder: %s",
                        strerror(errno));
    int size = snprintf(path, sizeof path, "%s/%s.npy", o->output_dir, name);
    if (size < 0 || (size_t)size >= sizeof path)
        return cli_fail(o, ENTENTE_USAGE, "file.write", name, "its name is too long for a file");
    for (char *at = path + strlen(o->output_dir) + 1; *at; at++)
        if (*at == '/' || *at == ':') *at = '_';
    int code = cli_write_npy(path, t);
    if (code == ENTENTE_UNSUPPORTED)
        return cli_fail(o, code, "tensor.npy", path, "NumPy files cannot hold type %s",
                        entente_dtype_name(t->dtype));
    if (code) return cli_fail(o, code, "file.write", path, "cannot be written: %s", strerror(errno));
    return 0;
}

static int report(const cli_options *o, const entente_bundle *bundle, const entente_tensor *outputs,
                  size_t count) {
    cJSON *root = o->json ? cJSON_CreateObject() : NULL,
          *list = o->json ? cJSON_AddArrayToObject(root, "outputs") : NULL;
    int code = 0;
    for (size_t i = 0; i < count && !code; i++) {
        entente_port port;
        entente_output(bundle, i, &port);
        if (o->output_dir) code = save(o, port.name, &outputs[i]);
        if (o->json)
            cJSON_AddItemToArray(list, output_json(port.name, &outputs[i]));
        else if (!code)
            print_output(port.name, &outputs[i]);
    }
    if (o->json && !code)
        cli_print_json(root);
    else
        cJSON_Delete(root);
    return code;
}

int cli_run(const cli_options *o) {
    if (o->positional_count != 1)
        return cli_fail(o, ENTENTE_USAGE, "usage.arguments", "run",
                        "wants one MODEL or BUNDLE; see `entente run --help`");
    cli_loaded loaded;
    int code = cli_load(o, o->positionals[0], &loaded);
    if (code) return code;
    entente_tensor inputs[CLI_MAX], outputs[CLI_MAX] = {{0}};
    size_t count = 0, output_count = entente_output_count(loaded.bundle);
    code = cli_collect_inputs(o, loaded.bundle, inputs, CLI_MAX, &count);
    if (!code && output_count > CLI_MAX)
        code = cli_fail(o, ENTENTE_LIMIT, "run.outputs", "run", "over %d outputs", CLI_MAX);
    entente_error error;
    if (!code && entente_run(loaded.bundle, inputs, count, outputs, output_count, &error))
        code = cli_fail_run(o, &error);
    if (!code) code = report(o, loaded.bundle, outputs, output_count);
    for (size_t i = 0; i < count; i++) entente_tensor_free(&inputs[i]);
    cli_unload(&loaded);
    return code;
}
