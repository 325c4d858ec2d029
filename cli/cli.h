/* The command line: flags in, public API out. No logic of its own beyond files, text and exit codes. */
#ifndef ENT_CLI_H
#define ENT_CLI_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "include/entente/compiler.h"
#include "include/entente/entente.h"

#define CLI_MAX 256

typedef struct cli_pair {
    const char *name, *value;
} cli_pair;

/* All options of all commands; each command says which it takes. */
typedef struct cli_options {
    const char *command;
    const char *positionals[CLI_MAX];
    size_t positional_count;
    const char *output, *output_dir, *stage;
    cli_pair inputs[CLI_MAX];
    size_t input_count;
    const char *devices[CLI_MAX];
    size_t device_count;
    entente_named_shape shapes[CLI_MAX];
    size_t shape_count;
    entente_named_number dims[CLI_MAX];
    size_t dim_count;
    entente_named_range ranges[CLI_MAX];
    size_t range_count;
    entente_named_text constants[CLI_MAX];
    size_t constant_count;
    const char *prefer, *assign, *precision, *external_data_root, *transcript, *dump_dir, *plugin_path;
    uint64_t budget_ms, seed;
    uint32_t threads, iterations;
    uint64_t max_nodes, max_nesting, max_file_bytes, max_tensor_bytes, max_memory_bytes,
        max_seconds;   /* 0: default */
    double rtol, atol; /* negative: the default of the output's type */
    bool json, measure, verbose, serve;
    int verbosity;
} cli_options;

/* Parses everything after the command; complains on stderr and returns an exit code, or 0. */
int cli_parse(int argc, char **argv, cli_options *out);
void cli_print_help(FILE *to, const char *command);

/* Prints an error (stderr, and JSON on stdout with --json) and returns its code. */
int cli_fail(const cli_options *options, int code, const char *rule, const char *place, const char *format,
             ...) __attribute__((format(printf, 5, 6)));
/* Place, text and rule of the newest error; "" before the first. Valid until the next. */
const char *cli_last_error(void);
int cli_fail_compile(const cli_options *options, const entente_compile_result *result);
int cli_fail_run(const cli_options *options, const entente_error *error);
/* Prints a JSON object with "schema":1 and takes it. */
void cli_print_json(cJSON *object);
/* A member of a document that may lack it or hold another type: "" and 0 then. */
const char *cli_json_text(const cJSON *object, const char *key);
double cli_json_number(const cJSON *object, const char *key);

/* ---- models and bundles ---- */

void cli_fill_request(const cli_options *options, const char *model, entente_compile_request *out);
/* A loaded bundle: from a bundle file, or from a model compiled into a temporary one. */
typedef struct cli_loaded {
    entente_runtime *runtime;
    entente_bundle *bundle;
    double compile_ns; /* 0 for a bundle file */
    bool was_bundle;
} cli_loaded;
int cli_load(const cli_options *options, const char *path, cli_loaded *out);
/* Compiles for one set of input tensors (their shapes become --shape unless given). */
int cli_load_for(const cli_options *options, const char *path, const char *const *names,
                 const entente_tensor *tensors, size_t count, cli_loaded *out);
void cli_unload(cli_loaded *loaded);

/* ---- tensors ---- */

int cli_write_npy(const char *path, const entente_tensor *tensor);
size_t cli_dtype_bytes(uint32_t dtype); /* 0 for types without whole bytes */
/* Seeded values for an input that was not given: normal floats, small positive integers, true. */
int cli_make_input(const cli_options *options, const entente_port *port, uint64_t seed, entente_tensor *out);
/* Inputs of a loaded bundle in order: from --input, else made from the seed. Free each with
 * entente_tensor_free. */
int cli_collect_inputs(const cli_options *options, const entente_bundle *bundle, entente_tensor *out,
                       size_t room, size_t *out_count);
double cli_load_f64(const entente_tensor *tensor, uint64_t index);

/* ---- commands ---- */
int cli_compile(const cli_options *options);
int cli_run(const cli_options *options);
int cli_check(const cli_options *options);
int cli_bench(const cli_options *options);
int cli_explain(const cli_options *options);
int cli_caps(const cli_options *options);
int cli_plugins(const cli_options *options);
int cli_print(const cli_options *options);

#endif
