/* Entente's public runtime API: load a bundle and run it. Libraries: libentente_runtime (this header alone),
 * or libentente (this and compiler.h). C11 or later; nothing but <stddef.h> and <stdint.h>.
 *
 *     entente_error error;
 *     entente_runtime *runtime;
 *     entente_bundle *bundle;
 *     if (entente_runtime_create(NULL, &runtime, &error)) fail(&error);
 *     if (entente_bundle_load(runtime, "model.ent", &bundle, &error)) fail(&error);
 *     entente_tensor in = {.data = pixels, .size_bytes = sizeof pixels, .dtype = ENTENTE_F32, .rank = 4,
 * .dims = {1, 3, 224, 224}}; entente_tensor out = {0};                       // data NULL: the library
 * provides it if (entente_run(bundle, &in, 1, &out, 1, &error)) fail(&error);
 *     ... out.data, out.dims ... valid until the next run of this bundle
 *     entente_bundle_close(bundle);
 *     entente_runtime_destroy(runtime);
 *
 * Ownership: what a create or load function returns belongs to the caller and goes back through its close or
 * destroy function. Strings and structures that a query returns belong to the bundle and live as long as it,
 * unless said otherwise. Threads: a runtime may be used from any thread. A bundle is one instance: one thread
 * at a time. To run on several threads load the bundle several times; the instances share the mapped weights
 * and nothing else. Errors: every function that can fail returns 0 or an error code, which is also the exit
 * code of the command line. The last argument, which may be NULL, receives the details. Nothing aborts or
 * exits because of a file, a device or an argument; nothing prints, but for warnings on stderr where
 * entente_options.log is NULL. */
#ifndef ENTENTE_ENTENTE_H
#define ENTENTE_ENTENTE_H

#include <stddef.h>
#include <stdint.h>

#ifndef ENTENTE_API
#if defined(__GNUC__)
#define ENTENTE_API __attribute__((visibility("default")))
#else
#define ENTENTE_API
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define ENTENTE_MAX_RANK 8
#define ENTENTE_NONE 0xffffffffu

typedef enum entente_code {
    ENTENTE_OK = 0,
    ENTENTE_USAGE = 1,     /* an argument, an input's shape, a file that cannot be read */
    ENTENTE_BAD_MODEL = 2, /* not a bundle, or a damaged one */
    ENTENTE_UNSUPPORTED =
        3,                /* outside what the bundle was compiled for, such as a dimension beyond its guard */
    ENTENTE_DEVICE = 4,   /* a device or its plugin is missing, refuses or fails */
    ENTENTE_MISMATCH = 5, /* numbers differ; never from this header */
    ENTENTE_LIMIT = 6,    /* out of memory or another limit */
    ENTENTE_INTERNAL = 7
} entente_code;

/* Texts are NUL-terminated and cut to fit. */
typedef struct entente_error {
    int code;        /* entente_code */
    char rule[64];   /* stable id such as "bundle.checksum" */
    char place[256]; /* file, input or device */
    char text[1024]; /* one sentence: what is wrong and what to do */
} entente_error;

/* Element types; the numbers never change. */
typedef enum entente_dtype {
    ENTENTE_F32 = 1,
    ENTENTE_F16 = 2,
    ENTENTE_BF16 = 3,
    ENTENTE_F64 = 4,
    ENTENTE_I8 = 5,
    ENTENTE_U8 = 6,
    ENTENTE_I16 = 7,
    ENTENTE_U16 = 8,
    ENTENTE_I32 = 9,
    ENTENTE_U32 = 10,
    ENTENTE_I64 = 11,
    ENTENTE_U64 = 12,
    ENTENTE_BOOL = 13, /* one byte, 0 or 1 */
    ENTENTE_STRING = 14,
    ENTENTE_I4 = 15,
    ENTENTE_U4 = 16,
    ENTENTE_I2 = 17,
    ENTENTE_U2 = 18,
    ENTENTE_F8E4M3FN = 19,
    ENTENTE_F8E4M3FNUZ = 20,
    ENTENTE_F8E5M2 = 21,
    ENTENTE_F8E5M2FNUZ = 22,
    ENTENTE_F4E2M1 = 23,
    ENTENTE_F8E8M0 = 24,
    ENTENTE_C64 = 25,
    ENTENTE_C128 = 26
} entente_dtype;

/* A tensor in host memory, row-major, sub-byte types packed little-end first. */
typedef struct entente_tensor {
    void *data;
    uint64_t size_bytes;
    uint32_t dtype; /* entente_dtype */
    uint32_t rank;
    int64_t dims[ENTENTE_MAX_RANK];
} entente_tensor;

typedef struct entente_runtime entente_runtime;
typedef struct entente_bundle entente_bundle;

typedef struct entente_options {
    uint32_t size;    /* sizeof(entente_options) */
    uint32_t threads; /* of devices that run on the host; 0: as the bundle says, else all cores */
    const char
        *plugin_path; /* colon separated folders; NULL: $ENTENTE_PLUGIN_PATH, else the installed plugins */
    /* Receives warnings and notes of the library and its plugins, process-wide (the last runtime that sets
     * it); level 0 error .. 3 debug. Called from any thread. NULL: stderr. */
    void (*log)(void *context, int level, const char *text);
    void *log_context;
} entente_options;

/* "0.1.0" */
ENTENTE_API const char *entente_version(void);
/* What is logged, process-wide: 0 errors, 1 warnings too (at first), 2 notes such as the time of each stage,
 * 3 everything. Any thread. */
ENTENTE_API void entente_set_log_level(int level);
/* "f32"; "none" for an unknown number. */
ENTENTE_API const char *entente_dtype_name(uint32_t dtype);

/* Looks for plugins; loads none yet. options may be NULL. A broken plugin is no error here: it matters when a
 * bundle names it. */
ENTENTE_API int entente_runtime_create(const entente_options *options, entente_runtime **out,
                                       entente_error *error);
/* After all its bundles. NULL is fine. */
ENTENTE_API void entente_runtime_destroy(entente_runtime *runtime);

/* Maps the file, checks it, opens the devices it names and loads its kernels there. The file must not change
 * while it is loaded; it may be renamed or removed. Codes: USAGE (cannot be read), BAD_MODEL, DEVICE (a
 * plugin or an instruction set is missing; the text names what is wanted and what is present), LIMIT. */
ENTENTE_API int entente_bundle_load(entente_runtime *runtime, const char *path, entente_bundle **out,
                                    entente_error *error);
/* Waits for a run under way. NULL is fine. */
ENTENTE_API void entente_bundle_close(entente_bundle *bundle);

/* An input or output. dims[i] is -1 where it depends on the inputs' shapes; symbols[i] then names it, or is
 * "" for a computed one. */
typedef struct entente_port {
    const char *name;
    uint32_t dtype;
    uint32_t rank;
    int64_t dims[ENTENTE_MAX_RANK];
    const char *symbols[ENTENTE_MAX_RANK];
} entente_port;

ENTENTE_API size_t entente_input_count(const entente_bundle *bundle);
ENTENTE_API size_t entente_output_count(const entente_bundle *bundle);
/* USAGE when index is out of range. */
ENTENTE_API int entente_input(const entente_bundle *bundle, size_t index, entente_port *out);
ENTENTE_API int entente_output(const entente_bundle *bundle, size_t index, entente_port *out);

/* 1 when the bundle runs with one value of this input only, because it decided a shape or was given with
 * --const; *out is then that value, owned by the bundle. Else 0. */
ENTENTE_API int entente_input_value(const entente_bundle *bundle, size_t index, entente_tensor *out);

/* Runs and waits. Counts must be those of the bundle, in its order.
 * Inputs: all fields set; borrowed for the call. Memory that starts at a multiple of 64 is used without a
 * copy. Outputs: data NULL: the library provides memory (a multiple of 64), valid until the next run or
 * close; else size_bytes is the room at data. On success dtype, rank, dims and size_bytes say what was
 * written. Addresses: a device may stay registered for an aligned address it was given until the next run
 * with another address or close; keep such memory mapped, or use it again. Inputs and outputs must not
 * overlap. On failure outputs hold nothing of meaning and the bundle may be run again. */
ENTENTE_API int entente_run(entente_bundle *bundle, const entente_tensor *inputs, size_t input_count,
                            entente_tensor *outputs, size_t output_count, entente_error *error);
/* The same without waiting: one run at a time per bundle (USAGE otherwise). inputs and outputs, the arrays as
 * well as the data, must stay until entente_wait has returned; until then no other call on this bundle but
 * entente_wait and close. */
ENTENTE_API int entente_run_async(entente_bundle *bundle, const entente_tensor *inputs, size_t input_count,
                                  entente_tensor *outputs, size_t output_count, entente_error *error);
/* Waits at most timeout_ns (UINT64_MAX: for ever). *out_done is 1 when the run has ended; then the return
 * value is the run's code. 0 and *out_done 0 when the time is over. USAGE without a run. */
ENTENTE_API int entente_wait(entente_bundle *bundle, uint64_t timeout_ns, int *out_done,
                             entente_error *error);

/* One step of the last profiled run, in program order. Both times 0: not executed (the other side of a
 * branch). */
typedef struct entente_step {
    const char *function; /* "main", or the body it belongs to */
    const char *name;
    const char *device;
    const char *path; /* what it runs on, such as "gemm 6x16 avx2"; "" for copies */
    const char *tier; /* "native", "tuned", "generic", "emulated"; "none" for copies */
    uint32_t region;  /* of the plan that `explain` shows; ENTENTE_NONE */
    double predicted_ns;
    uint64_t begin_ns, end_ns; /* one clock per device */
} entente_step;

/* From the next run on. */
ENTENTE_API int entente_set_profiling(entente_bundle *bundle, int enabled);
/* Number of steps known; 0 unless the last run was profiled. */
ENTENTE_API size_t entente_step_count(entente_bundle *bundle);
ENTENTE_API int entente_step_at(entente_bundle *bundle, size_t index, entente_step *out);

typedef struct entente_memory {
    uint64_t weights_bytes;           /* mapped from the file, equal ones counted once */
    uint64_t arena_bytes;             /* held for temporaries; 0 before the first run */
    uint64_t arena_lower_bound_bytes; /* least the current shapes need; 0 before the first run if a dimension
                                         is open */
} entente_memory;
ENTENTE_API int entente_memory_used(entente_bundle *bundle, entente_memory *out, entente_error *error);

/* JSON of the plan section, for `explain`; "" if the bundle has none. out_size may be NULL. Not
 * NUL-terminated beyond out_size. */
ENTENTE_API const char *entente_plan_json(const entente_bundle *bundle, size_t *out_size);

#ifdef __cplusplus
}
#endif

#endif
