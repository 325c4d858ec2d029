/* Entente's public compiler API: compile a model file to a bundle, explain a plan, print a stage. Library:
 * libentente.
 *
 * A request is plain data; strings and arrays are borrowed for the call. Every call reports through an
 * entente_compile_result that owns its memory (entente_compile_result_free). One call at a time per request;
 * several requests may run in parallel. */
#ifndef ENTENTE_COMPILER_H
#define ENTENTE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#include "entente.h"

#ifndef ENTENTE_API
#define ENTENTE_API __attribute__((visibility("default")))
#endif

typedef struct entente_named_shape {
    const char *input; /* model input */
    const int64_t *dims;
    size_t rank;
} entente_named_shape;

typedef struct entente_named_number {
    const char *name; /* symbol of --dim */
    int64_t value;
} entente_named_number;

typedef struct entente_named_range {
    const char *name;          /* symbol of --dim: the bundle runs with every size from min to max */
    int64_t min, max, typical; /* typical: what prices are computed for; 0: the middle */
} entente_named_range;

typedef struct entente_named_text {
    const char *name, *value; /* --const INPUT=VALUE */
} entente_named_text;

typedef struct entente_named_tensor {
    const char *input; /* model input, or "#0": the first */
    const entente_tensor *tensor;
} entente_named_tensor;

typedef struct entente_compile_request {
    uint32_t size; /* sizeof(entente_compile_request) */
    const char *model_path;
    const char *output_path;    /* bundle to write atomically; NULL: only plan */
    const char *const *devices; /* --device: exact set; none: every default plugin that is usable */
    size_t device_count;
    const char *prefer;      /* --prefer DEVICE: ties and near-ties (10 %) go to it; may be NULL */
    const char *assign_path; /* --assign FILE; may be NULL */
    const entente_named_shape *shapes;
    size_t shape_count;
    const entente_named_number *dims;
    size_t dim_count;
    const entente_named_text *constants;
    size_t constant_count;
    const char *external_data_root;
    const char *plugin_path; /* NULL: the standard search */
    const char *dump_dir;    /* every stage as text; may be NULL */
    const char *transcript_path;
    const char *precision;  /* "strict" or NULL */
    uint64_t budget_ms;     /* selection: 1000 offers tried count as 1 ms; 0: 3000 */
    uint32_t threads;       /* 0: all */
    const char *stop_after; /* stage name for `print`; may be NULL */
    void (*progress)(void *context, const char *stage, double done); /* may be NULL */
    void *context;
    /* Limits for models from strangers; over one of them the code is 6. 0: the default. */
    uint32_t max_nodes;        /* 1,000,000; functions inlined */
    uint32_t max_nesting;      /* 64 graphs or function calls within one another */
    uint64_t max_file_bytes;   /* 16 GiB */
    uint64_t max_tensor_bytes; /* of one weight or one value in between; 16 GiB */
    uint64_t max_memory_bytes; /* that compiling takes, mapped files aside; 16 GiB */
    uint64_t max_seconds;      /* 600 */
    /* What the model will be run with, as far as known: an input whose value decides a shape (reduction axes,
     * a target shape) is bound to its sample, and the bundle refuses other values of it. */
    const entente_named_tensor *samples;
    size_t sample_count;
    /* Sizes that stay open in the bundle. */
    const entente_named_range *ranges;
    size_t range_count;
} entente_compile_request;

typedef struct entente_compile_result {
    int code;         /* 0, or the exit code (entente.h lists them) */
    const char *rule; /* stable id of what failed; "" when code is 0 */
    const char *place;
    const char *text;
    const char *plan_json;  /* the plan section as explain reads it (schema in docs/plan.md); "" on failure
                               before the plan */
    const char *stage_text; /* text form of stop_after; "" otherwise */
    double compile_ns;
    void *owner;
} entente_compile_result;

/* Never returns NULL members. */
ENTENTE_API void entente_compile(const entente_compile_request *request, entente_compile_result *out);
ENTENTE_API void entente_compile_result_free(entente_compile_result *result);

/* Names of the stages `stop_after` and dump_dir know, in order, NULL-terminated. */
ENTENTE_API const char *const *entente_stages(void);

/* JSON: plugins found and refused (schema in docs/plugins.md), or the declarations of devices. Freed with
 * free_text. */
ENTENTE_API int entente_list_plugins(const char *plugin_path, char **out_json);
ENTENTE_API int entente_list_capabilities(const char *plugin_path, const char *const *devices,
                                          size_t device_count, char **out_json);
ENTENTE_API void entente_free_text(char *text);

/* 1 when the file starts like a bundle, else 0 (also when it cannot be read). */
ENTENTE_API int entente_is_bundle(const char *path);

/* Reads a tensor file: ONNX TensorProto (.pb) or NumPy (.npy, versions 1 to 3, C order, little-endian).
 * out->data is allocated (release it with entente_tensor_free). Returns 0 or an error code; details as in
 * entente_compile_result (free it in either case). */
ENTENTE_API int entente_tensor_read(const char *path, entente_tensor *out, entente_compile_result *details);
ENTENTE_API void entente_tensor_free(entente_tensor *tensor);

#endif
