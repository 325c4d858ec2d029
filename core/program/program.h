/* What the compiler hands the runtime: functions made of steps over values, the kernels' blobs, constants and
 * a memory plan; and the bundle file that holds it. Sizes are ent_dims over the program's own expression
 * table, so that a new shape needs no compiler. A program lives in the arena it was built or loaded in; it is
 * changed by ent_program_plan_memory alone. */
#ifndef ENT_PROGRAM_H
#define ENT_PROGRAM_H

#include "abi/ent_expr.h"
#include "core/base/base.h"

#define ENT_PROGRAM_NONE 0xffffffffu
/* An offset or frame size that no plan has settled: the runtime places memory when the symbols are known. */
#define ENT_PROGRAM_UNSET INT64_MIN

typedef struct ent_program_device {
    const char *name;       /* as in --device: "cpu", "cpu:avx2", "sim:nhwc16" */
    const char *plugin;     /* manifest name */
    const char *parameters; /* "variant=avx2 threads=2": what to open it with */
} ent_program_device;

/* Stored bytes, in the layout in which steps want them. 64-byte aligned in the bundle. */
typedef struct ent_program_constant {
    ent_hash128 hash;
    uint32_t dtype, rank;
    int64_t dims[ENT_MAX_RANK];
    ent_layout layout;
    const void *data;
    uint64_t size_bytes;
} ent_program_constant;

typedef struct ent_program_kernel {
    uint32_t device;
    uint32_t depth; /* ent_depth */
    uint32_t tier;  /* as the executor said after compile */
    const char *name;
    const char *requirement; /* "cpu isa=avx2", checked at load */
    const void *blob;
    uint64_t blob_bytes;
} ent_program_kernel;

typedef enum ent_program_value_kind {
    ENT_VALUE_INPUT = 1,     /* parameter of the function; in main: bound by the caller */
    ENT_VALUE_OUTPUT = 2,    /* result parameter: storage is the caller's */
    ENT_VALUE_CONSTANT = 3,  /* index: constant */
    ENT_VALUE_TEMPORARY = 4, /* placed in the device's arena */
    ENT_VALUE_ALIAS = 5      /* same storage as value `index` (reshape and other views) */
} ent_program_value_kind;

typedef struct ent_program_value {
    uint32_t kind; /* ent_program_value_kind */
    uint32_t device;
    uint32_t index; /* constant or aliased value; NONE */
    uint32_t dtype, rank;
    const char *name;
    ent_dim dims[ENT_MAX_RANK];
    ent_layout layout;
    ent_dim size_bytes;
    ent_dim offset_bytes; /* TEMPORARY: in its function's frame of `device`, or UNSET; see
                             ent_program_plan_memory */
} ent_program_value;

typedef enum ent_program_step_kind {
    ENT_PROGRAM_DISPATCH = 1, /* kernel over values[] */
    ENT_PROGRAM_COPY = 2,     /* values[0] -> values[1], same layout, other device or storage */
    ENT_PROGRAM_CALL = 3,     /* function[0] with values[] = its inputs then outputs */
    ENT_PROGRAM_BRANCH =
        4, /* condition: bool scalar value, host-readable; function[0] if true else function[1]; each with its
              own argument list: values[0..split) for then, values[split..) for else */
    ENT_PROGRAM_LOOP = 5 /* function[0] = body with values[] = its inputs then outputs: the iteration's number
                            (i64, written by the host), the condition (bool), `split` states, what the body
                            captures; then the next condition and the next states, which are copied over the
                            former after each iteration. Runs while there are trips left and the condition,
                            where it counts, holds; the states are the result. */
} ent_program_step_kind;

typedef struct ent_program_step {
    uint32_t kind;
    uint32_t device;    /* queue it runs on */
    uint32_t kernel;    /* DISPATCH */
    uint32_t condition; /* BRANCH: value; LOOP: values[1], or NONE where it does not count */
    uint32_t trips;     /* LOOP: value of type i64; NONE: no end */
    uint32_t function[2];
    const uint32_t *values;
    uint32_t value_count;
    uint32_t split;  /* BRANCH: arguments of the first; LOOP: states */
    uint32_t region; /* index of the plan region for explain; NONE */
    double predicted_ns;
    const char *name;
    const uint32_t
        *waits; /* earlier steps of this function that must have finished first (other queues only) */
    uint32_t wait_count;
} ent_program_step;

typedef struct ent_program_function {
    const char *name;
    const ent_program_value *values;
    uint32_t value_count;
    const uint32_t *inputs;  /* values of kind INPUT, each once */
    const uint32_t *outputs; /* values of kind OUTPUT; a value of another kind, or named a second time, is
                                copied out at the end */
    uint32_t input_count, output_count;
    const ent_program_step *steps;
    uint32_t step_count;
    const ent_dim *arena_bytes; /* per device: this function's own frame; callees' frames lie behind it. NULL:
                                   not planned yet */
} ent_program_function;

typedef struct ent_program_symbol {
    const char *name;
    int64_t min, max, multiple_of; /* guard */
    uint32_t input, axis;          /* main's input whose dim gives the value; NONE if only derived */
} ent_program_symbol;

/* Main's input must hold exactly the constant's bytes: its value decided something while compiling. */
typedef struct ent_program_guard {
    uint32_t input, constant;
} ent_program_guard;

typedef struct ent_program {
    const char *name;
    const ent_program_symbol *symbols;
    uint32_t symbol_count;
    const ent_expr *exprs;
    uint32_t expr_count;
    const ent_program_device *devices;
    uint32_t device_count;
    const ent_program_constant *constants;
    uint32_t constant_count;
    const ent_program_kernel *kernels;
    uint32_t kernel_count;
    const ent_program_function *functions; /* 0 is main */
    uint32_t function_count;
    const ent_program_guard *guards;
    uint32_t guard_count;
    const char *plan_json; /* for explain; never read by the runtime; "" if absent */
    uint64_t plan_json_bytes;
} ent_program;

/* The value whose storage `value` shares: itself unless it is an ALIAS. The function is verified (no
 * circles). */
static inline uint32_t ent_program_value_root(const ent_program_function *function, uint32_t value) {
    while (function->values[value].kind == ENT_VALUE_ALIAS) value = function->values[value].index;
    return value;
}

/* ---- checks, text form ---- */
/* Every index, size and offset; used after building, parsing and loading a bundle (hostile input). */
ent_status ent_program_verify(const ent_program *program, ent_arena *arena);
const char *ent_program_print(const ent_program *program, ent_arena *arena);
/* Kernels' blobs print as base64-free `blob "text"` when printable, else hex; constants inline when small. */
ent_status ent_program_parse(ent_arena *arena, const char *file, const char *text, ent_program **out);

/* ---- memory plan ---- */
/* One value to place. Values whose step ranges meet get disjoint bytes. */
typedef struct ent_memory_item {
    uint32_t first, last; /* steps, inclusive */
    uint64_t size_bytes;
    uint64_t offset_bytes; /* out */
} ent_memory_item;
typedef struct ent_memory_result {
    uint64_t peak_bytes, lower_bound_bytes; /* bound: largest sum of live sizes at a step */
} ent_memory_result;
/* Portfolio of orders with best fit, then a bounded search; see memory.c. Offsets are multiples of
 * `alignment`, and so are the sizes that peak and bound count. Fails only when memory or the number range
 * ends (code LIMIT). Repeatable: same items, same offsets. */
ent_status ent_memory_place(ent_arena *scratch, ent_memory_item *items, uint32_t count, uint32_t alignment,
                            ent_memory_result *out);
/* Places the TEMPORARY values of every function by lifetime, alignment 64, for every device whose temporaries
 * have static sizes; on others offsets and frames become UNSET and the runtime calls ent_program_place per
 * new shape. The program is verified; its functions are replaced by planned copies in the arena. out_total:
 * summed over the devices that are planned. */
ent_status ent_program_plan_memory(ent_program *program, ent_arena *arena, ent_memory_result *out_total);
/* The same plan for one device with the symbols known, for the runtime: writes offsets into values[function]
 * (copies of the functions' value arrays) and each function's frame into out_frames. out_total: main with
 * everything it calls. expr_values may be NULL when ent_program_is_static. The program is verified. */
ent_status ent_program_place(const ent_program *program, uint32_t device, const int64_t *expr_values,
                             ent_arena *arena, ent_program_value *const *values, uint64_t *out_frames,
                             ent_memory_result *out_total);
/* No temporary on `device` has a size that depends on a symbol. */
bool ent_program_is_static(const ent_program *program, uint32_t device);
/* Lifetimes of a function's temporaries for device `device` (aliases extend their root, outputs live to the
 * end; a value that no step uses has no item); shared by compiler and runtime. out_value_ids[i]: the value of
 * item i. */
ent_status ent_program_lifetimes(const ent_program *program, uint32_t function, uint32_t device,
                                 const int64_t *expr_values, ent_arena *arena, ent_memory_item **out_items,
                                 uint32_t **out_value_ids, uint32_t *out_count);

/* ---- bundle file ---- */
/* Layout in bundle.h: magic, format version, section table, XXH3 per section, 64-byte aligned constants. */
ent_status ent_program_save(const ent_program *program, ent_arena *arena, const char *path);
typedef struct ent_bundle {
    ent_program *program; /* constants and blobs point into the map */
    ent_file_map map;
} ent_bundle;
/* Refuses wrong magic, newer format, bad checksum, truncated or overlapping sections: code MODEL with the
 * rule. */
ent_status ent_bundle_open(ent_arena *arena, const char *path, ent_bundle *out);
void ent_bundle_close(ent_bundle *bundle);
bool ent_bundle_is(const char *path); /* the file starts with the bundle magic */

#endif
