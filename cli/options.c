/* Option parsing. One table for all commands: a letter set says which commands take an option. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

typedef enum option_id {
    OPTION_OUTPUT = 'o',
    OPTION_VERBOSE = 'v',
    OPTION_HELP = 'h',
    OPTION_INPUT = 256,
    OPTION_OUTPUT_DIR,
    OPTION_SEED,
    OPTION_RTOL,
    OPTION_ATOL,
    OPTION_DEVICE,
    OPTION_PREFER,
    OPTION_ASSIGN,
    OPTION_SHAPE,
    OPTION_DIM,
    OPTION_CONST,
    OPTION_THREADS,
    OPTION_BUDGET,
    OPTION_PRECISION,
    OPTION_EXTERNAL,
    OPTION_TRANSCRIPT,
    OPTION_DUMP,
    OPTION_PLUGINS,
    OPTION_JSON,
    OPTION_MEASURE,
    OPTION_STAGE,
    OPTION_ITERATIONS,
    OPTION_SERVE,
    OPTION_MAX_NODES,
    OPTION_MAX_NESTING,
    OPTION_MAX_FILE,
    OPTION_MAX_TENSOR,
    OPTION_MAX_MEMORY,
    OPTION_MAX_SECONDS
} option_id;

static const struct option long_options[] = {{"output", required_argument, NULL, OPTION_OUTPUT},
                                             {"verbose", no_argument, NULL, OPTION_VERBOSE},
                                             {"help", no_argument, NULL, OPTION_HELP},
                                             {"input", required_argument, NULL, OPTION_INPUT},
                                             {"output-dir", required_argument, NULL, OPTION_OUTPUT_DIR},
                                             {"seed", required_argument, NULL, OPTION_SEED},
                                             {"rtol", required_argument, NULL, OPTION_RTOL},
                                             {"atol", required_argument, NULL, OPTION_ATOL},
                                             {"device", required_argument, NULL, OPTION_DEVICE},
                                             {"prefer", required_argument, NULL, OPTION_PREFER},
                                             {"assign", required_argument, NULL, OPTION_ASSIGN},
                                             {"shape", required_argument, NULL, OPTION_SHAPE},
                                             {"dim", required_argument, NULL, OPTION_DIM},
                                             {"const", required_argument, NULL, OPTION_CONST},
                                             {"threads", required_argument, NULL, OPTION_THREADS},
                                             {"budget-ms", required_argument, NULL, OPTION_BUDGET},
                                             {"precision", required_argument, NULL, OPTION_PRECISION},
                                             {"external-data-root", required_argument, NULL, OPTION_EXTERNAL},
                                             {"transcript", required_argument, NULL, OPTION_TRANSCRIPT},
                                             {"dump-dir", required_argument, NULL, OPTION_DUMP},
                                             {"plugin-path", required_argument, NULL, OPTION_PLUGINS},
                                             {"json", no_argument, NULL, OPTION_JSON},
                                             {"measure", no_argument, NULL, OPTION_MEASURE},
                                             {"stage", required_argument, NULL, OPTION_STAGE},
                                             {"iterations", required_argument, NULL, OPTION_ITERATIONS},
                                             {"serve", no_argument, NULL, OPTION_SERVE},
                                             {"max-nodes", required_argument, NULL, OPTION_MAX_NODES},
                                             {"max-nesting", required_argument, NULL, OPTION_MAX_NESTING},
                                             {"max-file-mb", required_argument, NULL, OPTION_MAX_FILE},
                                             {"max-tensor-mb", required_argument, NULL, OPTION_MAX_TENSOR},
                                             {"max-memory-mb", required_argument, NULL, OPTION_MAX_MEMORY},
                                             {"max-seconds", required_argument, NULL, OPTION_MAX_SECONDS},
                                             {NULL, 0, NULL, 0}};

static int bad(const cli_options *o, const char *flag, const char *value, const char *wanted) {
    return cli_fail(o, ENTENTE_USAGE, "usage.value", flag, "'%s' is not %s; see `entente %s --help`", value,
                    wanted, o->command);
}

static bool parse_u64(const char *text, uint64_t max, uint64_t *out) {
    char *end = NULL;
    errno = 0;
    if (*text < '0' || *text > '9') return false;
    unsigned long long value = strtoull(text, &end, 10);
    *out = value;
    return errno == 0 && *end == 0 && value <= max;
}

static bool parse_double(const char *text, double *out) {
    char *end = NULL;
    *out = strtod(text, &end);
    return end != text && *end == 0 && *out >= 0;
}

/* NAME=VALUE at the last '=' before the value when the name may hold one; names of inputs rarely do. */
static bool split(const char *text, const char **name, const char **value) {
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text) return false;
    *name = strndup(text, (size_t)(equals - text));
    *value = equals + 1;
    return *name != NULL;
}

static bool parse_shape(const char *text, entente_named_shape *out) {
    const char *value = NULL;
    if (!split(text, &out->input, &value)) return false;
    int64_t *dims = calloc(ENTENTE_MAX_RANK, sizeof *dims);
    out->dims = dims;
    while (dims && *value) {
        char *end = NULL;
        long long dim = strtoll(value, &end, 10);
        if (end == value || dim < 0 || out->rank == ENTENTE_MAX_RANK) return false;
        dims[out->rank++] = dim;
        if (*end != 0 && (*end != 'x' || end[1] == 0)) return false;
        value = *end ? end + 1 : end;
    }
    return dims != NULL;
}

/* The whole number at the start of the text; what follows it goes to out_rest. */
static bool take_size(const char *text, int64_t *out, const char **out_rest) {
    char *end = NULL;
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    *out_rest = end;
    return errno == 0;
}

/* NAME=NUMBER, NAME=LEAST..MOST or NAME=LEAST..MOST:TYPICAL. */
static int take_dim(cli_options *o, const char *value) {
    entente_named_range range = {0};
    const char *text = NULL, *rest = NULL;
    bool good = split(value, &range.name, &text) && take_size(text, &range.min, &rest);
    bool is_range = good && strncmp(rest, "..", 2) == 0;
    if (is_range) good = take_size(rest + 2, &range.max, &rest);
    if (good && is_range && *rest == ':') good = take_size(rest + 1, &range.typical, &rest);
    if (!good || *rest != 0 || o->dim_count == CLI_MAX || o->range_count == CLI_MAX)
        return bad(o, "--dim", value, "NAME=NUMBER, NAME=LEAST..MOST or NAME=LEAST..MOST:TYPICAL");
    if (is_range)
        o->ranges[o->range_count++] = range;
    else
        o->dims[o->dim_count++] = (entente_named_number){range.name, range.min};
    return 0;
}

static bool add_devices(cli_options *o, const char *text) {
    char *copy = strdup(text), *save = NULL;
    for (char *name = copy ? strtok_r(copy, ",", &save) : NULL; name; name = strtok_r(NULL, ",", &save)) {
        if (o->device_count == CLI_MAX) return false;
        o->devices[o->device_count++] = name;
    }
    return o->device_count > 0;
}

/* size: option switch */
static int take_number(cli_options *o, int id, const char *value) {
    uint64_t number = 0;
    switch (id) {
    case OPTION_SEED:
        return parse_u64(value, UINT64_MAX, &o->seed) ? 0 : bad(o, "--seed", value, "a whole number");
    case OPTION_BUDGET:
        return parse_u64(value, 86400000, &o->budget_ms) ? 0 : bad(o, "--budget-ms", value, "milliseconds");
    case OPTION_THREADS:
        if (!parse_u64(value, 4096, &number) || number == 0)
            return bad(o, "--threads", value, "a number from 1 to 4096");
        o->threads = (uint32_t)number;
        return 0;
    case OPTION_ITERATIONS:
        if (!parse_u64(value, 100000000, &number) || number == 0)
            return bad(o, "--iterations", value, "a positive number");
        o->iterations = (uint32_t)number;
        return 0;
    case OPTION_RTOL:
        return parse_double(value, &o->rtol) ? 0 : bad(o, "--rtol", value, "a number from 0");
    case OPTION_ATOL:
        return parse_double(value, &o->atol) ? 0 : bad(o, "--atol", value, "a number from 0");
    case OPTION_DIM:
        return take_dim(o, value);
    default:
        return -1;
    }
}

/* size: option switch */
static int take_text(cli_options *o, int id, const char *value) {
    switch (id) {
    case OPTION_OUTPUT:
        o->output = value;
        return 0;
    case OPTION_OUTPUT_DIR:
        o->output_dir = value;
        return 0;
    case OPTION_PREFER:
        o->prefer = value;
        return 0;
    case OPTION_ASSIGN:
        o->assign = value;
        return 0;
    case OPTION_EXTERNAL:
        o->external_data_root = value;
        return 0;
    case OPTION_TRANSCRIPT:
        o->transcript = value;
        return 0;
    case OPTION_DUMP:
        o->dump_dir = value;
        return 0;
    case OPTION_PLUGINS:
        o->plugin_path = value;
        return 0;
    case OPTION_STAGE:
        o->stage = value;
        return 0;
    case OPTION_PRECISION:
        o->precision = value;
        return strcmp(value, "strict") == 0 ? 0 : bad(o, "--precision", value, "'strict'");
    case OPTION_DEVICE:
        return add_devices(o, value) ? 0
                                     : bad(o, "--device", value, "a list of devices such as cpu,reference");
    case OPTION_INPUT:
        if (o->input_count == CLI_MAX ||
            !split(value, &o->inputs[o->input_count].name, &o->inputs[o->input_count].value))
            return bad(o, "--input", value, "NAME=FILE.npy or NAME=FILE.pb");
        o->input_count++;
        return 0;
    case OPTION_SHAPE:
        if (o->shape_count == CLI_MAX || !parse_shape(value, &o->shapes[o->shape_count]))
            return bad(o, "--shape", value, "INPUT=1x3x224x224");
        o->shape_count++;
        return 0;
    case OPTION_CONST:
        if (o->constant_count == CLI_MAX ||
            !split(value, &o->constants[o->constant_count].name, &o->constants[o->constant_count].value))
            return bad(o, "--const", value, "INPUT=VALUE");
        o->constant_count++;
        return 0;
    default:
        return -1;
    }
}

/* A limit in units of 2^shift, at least one: 0 would mean the default. */
static int take_limit(cli_options *o, int id, const char *value) {
    const struct {
        int id;
        const char *flag;
        uint64_t *out;
        uint64_t most;
        unsigned shift;
    } limits[] = {{OPTION_MAX_NODES, "--max-nodes", &o->max_nodes, UINT32_MAX, 0},
                  {OPTION_MAX_NESTING, "--max-nesting", &o->max_nesting, 1000, 0},
                  {OPTION_MAX_FILE, "--max-file-mb", &o->max_file_bytes, INT64_MAX >> 20, 20},
                  {OPTION_MAX_TENSOR, "--max-tensor-mb", &o->max_tensor_bytes, INT64_MAX >> 20, 20},
                  {OPTION_MAX_MEMORY, "--max-memory-mb", &o->max_memory_bytes, INT64_MAX >> 20, 20},
                  {OPTION_MAX_SECONDS, "--max-seconds", &o->max_seconds, UINT32_MAX, 0}};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t number = 0;
        if (limits[i].id != id) continue;
        if (!parse_u64(value, limits[i].most, &number) || number == 0)
            return bad(o, limits[i].flag, value, "a whole number from 1 that is not absurd");
        *limits[i].out = number << limits[i].shift;
        return 0;
    }
    return -1;
}

int cli_parse(int argc, char **argv, cli_options *out) {
    int id;
    out->rtol = out->atol = -1;
    optind = 0;
    opterr = 0;
    while ((id = getopt_long(argc, argv, "o:vh", long_options, NULL)) != -1) {
        if (id == '?')
            return cli_fail(out, ENTENTE_USAGE, "usage.option", argv[optind - 1],
                            "there is no such option, or it lacks its value; see `entente %s --help`",
                            out->command);
        if (id == OPTION_HELP) {
            cli_print_help(stdout, out->command);
            return -1;
        }
        if (id == OPTION_VERBOSE)
            out->verbosity++;
        else if (id == OPTION_JSON)
            out->json = true;
        else if (id == OPTION_MEASURE)
            out->measure = true;
        else if (id == OPTION_SERVE)
            out->serve = true;
        else {
            int code = take_number(out, id, optarg);
            if (code < 0) code = take_text(out, id, optarg);
            if (code < 0) code = take_limit(out, id, optarg);
            if (code) return code;
        }
    }
    for (; optind < argc; optind++) {
        if (out->positional_count == CLI_MAX)
            return cli_fail(out, ENTENTE_USAGE, "usage.arguments", out->command, "over %d arguments",
                            CLI_MAX);
        out->positionals[out->positional_count++] = argv[optind];
    }
    return 0;
}
