/* entente: the command line. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/base.h"

typedef struct command {
    const char *name;
    int (*run)(const cli_options *options);
    const char *arguments;
    const char *summary;
    const char *help;
} command;

static const char compile_options[] =
    "Where and how:\n"
    "  --device SET          devices that may be used, e.g. cpu or cpu,sim:nhwc16; exact: nothing outside it "
    "runs\n"
    "                        (default: every usable plugin whose manifest does not say \"default\": false)\n"
    "  --prefer DEVICE       its prices count 10 % less\n"
    "  --assign FILE         lines NODE_GLOB DEVICE; the last match of a node counts\n"
    "  --precision strict    no rewrite that changes rounding\n"
    "  --threads N           threads of host devices\n"
    "  --budget-ms N         work of the selection, in ms of a slow machine (default 3000)\n"
    "Sizes:\n"
    "  --shape INPUT=1x3x48x320   --dim NAME=N|LEAST..MOST   --const INPUT=VALUE\n"
    "  (run, check and bench fix small inputs whose values decide shapes to what they are given; -v says "
    "which)\n"
    "Files:\n"
    "  --external-data-root D  a further folder that external data may lie in\n"
    "  --plugin-path P         folders with plugin manifests, colon separated (instead of "
    "$ENTENTE_PLUGIN_PATH)\n"
    "  --transcript F          write the negotiation as JSON lines\n"
    "  --dump-dir D            write every stage as text\n"
    "Limits, for models from strangers; beyond one of them the exit code is 6:\n"
    "  --max-nodes N           nodes, functions inlined (default 1000000)\n"
    "  --max-nesting N         graphs or function calls within one another (default 64)\n"
    "  --max-file-mb N         of the model file (default 16384)\n"
    "  --max-tensor-mb N       of one weight or value (default 16384)\n"
    "  --max-memory-mb N       that compiling takes (default 16384)\n"
    "  --max-seconds N         that compiling takes (default 600)\n"
    "Output: --json, -v (repeat for more), -h\n";

static const command commands[] = {
    {"compile", cli_compile, "MODEL -o FILE.ent", "compile a model to a bundle",
     "Imports an ONNX model, negotiates with the devices, plans, tiles, compiles, and writes one file.\n"
     "  entente compile resnet50.onnx -o resnet50.ent\n"
     "  entente compile rec.onnx --shape x=1x3x48x320 -o rec.ent\n"},
    {"run", cli_run, "MODEL|BUNDLE [--input NAME=F.npy|F.pb]...", "run a model or bundle",
     "Runs once and prints the outputs' types, shapes and first values. Inputs not given are made from "
     "--seed.\n"
     "  --output-dir D        write each output as D/NAME.npy\n"
     "  --seed N              of made inputs (default 0)\n"},
    {"check", cli_check, "CASE_DIR...", "run ONNX test-case folders and compare",
     "A case is a folder with model.onnx and test_data_set_N/{input,output}_M.pb. Skipped means refused.\n"
     "  --rtol R --atol A     instead of the defaults (f32, f64: 1e-3 and 1e-5; f16: 2e-3 both; bf16: 1e-2 "
     "both; rest exact)\n"},
    {"bench", cli_bench, "MODEL|BUNDLE", "measure latency and memory",
     "  --iterations N        timed runs (default: as many as fit in a second, at least 10)\n"
     "  --serve               read a number of iterations a line from stdin, answer one JSON line each\n"},
    {"explain", cli_explain, "MODEL|BUNDLE", "show where each node runs, why, and at what price",
     "  --measure             run it and show measured beside predicted time\n"},
    {"caps", cli_caps, "[DEVICE]...", "what devices declare", ""},
    {"plugins", cli_plugins, "", "plugins found and refused, and why", ""},
    {"print", cli_print, "MODEL", "print a stage of the compilation as text",
     "  --stage S             import, bind, rewrite, freeze, devices, negotiate, plan, lower (default "
     "freeze)\n"},
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static void print_overview(FILE *to) {
    fprintf(to,
            "entente %s: compiles neural networks for many devices by negotiation\n\nUsage: entente COMMAND "
            "[ARGUMENTS] [OPTIONS]\n\n",
            entente_version());
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-8s %-44s %s\n", commands[i].name, commands[i].arguments, commands[i].summary);
    fprintf(to, "\n`entente COMMAND --help` teaches one command. Data goes to stdout, messages to stderr; "
                "--json works everywhere.\n"
                "Exit codes: 0 ok, 1 usage, 2 bad model, 3 unsupported, 4 device or plugin, 5 numbers "
                "differ, 6 resource limit, 7 internal.\n");
}

void cli_print_help(FILE *to, const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, name) == 0)
            fprintf(to, "Usage: entente %s %s [OPTIONS]\n\n%s%c%s.\n%s\n%s", name, commands[i].arguments, "",
                    commands[i].summary[0] - 32, commands[i].summary + 1, commands[i].help, compile_options);
}

static char last_error[2400];

const char *cli_last_error(void) {
    return last_error;
}

int cli_fail(const cli_options *options, int code, const char *rule, const char *place, const char *format,
             ...) {
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (options->json) {
        cJSON *root = cJSON_CreateObject(), *error = cJSON_AddObjectToObject(root, "error");
        cJSON_AddNumberToObject(error, "code", code);
        cJSON_AddStringToObject(error, "rule", rule);
        cJSON_AddStringToObject(error, "place", place);
        cJSON_AddStringToObject(error, "text", text);
        cli_print_json(root);
    }
    snprintf(last_error, sizeof last_error, "%s: %s [%s]", place, text, rule);
    ent_log(ENT_LOG_ERROR, "%s: %s [%s]", place, text, rule);
    return code;
}

int cli_fail_compile(const cli_options *options, const entente_compile_result *result) {
    return cli_fail(options, result->code, result->rule, result->place, "%s", result->text);
}

int cli_fail_run(const cli_options *options, const entente_error *error) {
    return cli_fail(options, error->code, error->rule, error->place, "%s", error->text);
}

void cli_print_json(cJSON *object) {
    cJSON *schema = cJSON_CreateNumber(1);
    if (!cJSON_GetObjectItemCaseSensitive(object, "schema"))
        cJSON_InsertItemInArray(object, 0, schema), schema->string = strdup("schema");
    else
        cJSON_Delete(schema);
    char *text = cJSON_PrintUnformatted(object);
    if (text) puts(text);
    free(text);
    cJSON_Delete(object);
}

const char *cli_json_text(const cJSON *object, const char *key) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text ? text : "";
}

double cli_json_number(const cJSON *object, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_overview(argc < 2 ? stderr : stdout);
        return argc < 2 ? ENTENTE_USAGE : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("entente %s\n", entente_version());
        return 0;
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, argv[1]) != 0) continue;
        static cli_options parsed; /* it and the texts it points at live as long as the process */
        parsed.command = argv[1];
        int code = cli_parse(argc - 1, argv + 1, &parsed);
        if (code == 0) {
            entente_set_log_level(ENT_LOG_WARNING + parsed.verbosity);
            code = commands[i].run(&parsed);
        }
        if (fflush(stdout) != 0 && code == 0) code = ENTENTE_USAGE;
        return code < 0 ? 0 : code;
    }
    cli_options none = {.command = argv[1]};
    return cli_fail(&none, ENTENTE_USAGE, "usage.command", argv[1],
                    "there is no such command; `entente --help` lists them");
}
