/* What the files of this folder share.
 *
 * A program is flattened per set of shapes into a `plan`: arrays of ABI steps with their bindings, and a list
 * of actions (submit a range of steps, copy through the host, branch). Whatever can change between runs of
 * one shape is a slot: caller's inputs and outputs, and the arenas. Bindings that refer to a slot are patched
 * only when the slot's buffer has changed, so a run with the same memory does nothing but walk the actions.
 */
#ifndef ENT_RUNTIME_INTERNAL_H
#define ENT_RUNTIME_INTERNAL_H

#include "core/runtime/runtime.h"

#define ENT_RUNTIME_PLANS 8u /* shapes that are kept prepared */
#define ENT_RUNTIME_ALIGNMENT 64u
#define ENT_RUNTIME_MAX_STEPS (1u << 22) /* after expanding calls */
#define ENT_RUNTIME_MAX_CALLS (1u << 16)

typedef struct runtime_device {
    ent_host_device *host;
    const ent_runtime_v1 *api;
    ent_queue *queue;
    ent_fence *fence;
    uint64_t submitted, waited; /* fence values: last asked for, last known to have passed */
    ent_buffer *arena;
    uint64_t arena_bytes;
    ent_buffer **constants; /* by program constant; NULL until a step uses it */
    ent_map *copies; /* data pointer of a copied constant -> index of the constant that holds the buffer */
} runtime_device;

/* One input or output of main. */
typedef struct runtime_port {
    uint32_t value, device;
    ent_buffer *imported; /* over `memory` */
    void *memory;
    uint64_t memory_bytes;
    ent_buffer *staging;
    uint64_t staging_bytes;
    bool import_refused; /* last refusal was for this address */
    void *owned;         /* outputs: memory that the runtime provides */
    uint64_t owned_bytes;
} runtime_port;

typedef enum action_kind {
    ACTION_SUBMIT,
    ACTION_COPY,
    ACTION_WAIT,
    ACTION_BRANCH,
    ACTION_JUMP,
    ACTION_LOOP,   /* starts counting */
    ACTION_ITERATE /* goes on, or leaves */
} action_kind;

typedef struct action {
    uint32_t kind;
    uint32_t device;       /* SUBMIT, WAIT: queue; COPY: source; BRANCH: holds the condition */
    uint32_t other_device; /* COPY: destination */
    uint32_t first, count; /* SUBMIT: steps; COPY, BRANCH: first binding; LOOP: trip count, if any; ITERATE:
                              the number's binding, then the condition's, if it counts */
    uint32_t target; /* BRANCH: where the else side starts; JUMP: where to go; ITERATE: behind the loop */
    uint32_t record; /* COPY; LOOP, ITERATE: counter */
} action;

typedef struct loop_counter {
    int64_t at, end;
} loop_counter;

typedef struct record {
    uint32_t function, step;
} record;

/* A main output that is not written in place: copied out at the end. */
typedef struct final_copy {
    uint32_t binding, device, output;
} final_copy;

typedef struct runtime_plan {
    ent_arena *arena;
    uint64_t last_used;
    int64_t *input_dims; /* all inputs' dims one after another: the key */
    int64_t *symbols, *exprs;
    uint64_t *input_bytes, *output_bytes;
    int64_t (*output_dims)[ENT_MAX_RANK];
    ent_step *steps;
    uint32_t *step_records; /* by step */
    uint32_t step_count;
    ent_buffer_ref *bindings;
    action *actions;
    uint32_t action_count;
    record *records;
    uint32_t record_count;
    uint64_t *timestamps; /* two a record */
    bool profiled;        /* steps point to them */
    final_copy *finals;
    uint32_t final_count;
    loop_counter *counters;
    uint32_t counter_count;
    uint32_t *patch_first; /* by slot, slot_count + 1 entries, into patches */
    uint32_t *patches;     /* bindings */
    ent_buffer **bound;    /* by slot: what the bindings hold */
    uint64_t *arena_bytes; /* by device */
} runtime_plan;

struct ent_runtime {
    ent_arena *arena;  /* as long as the runtime */
    ent_arena *errors; /* emptied by every call */
    ent_arena_mark errors_start;
    const ent_program *program;
    ent_host_registry *registry;
    ent_host_call call;
    runtime_device *devices;
    ent_kernel **kernels;
    ent_kernel_info *kernel_infos;
    runtime_port *inputs, *outputs;
    uint32_t slot_count; /* inputs, outputs, then an arena a device */
    bool profiling;
    runtime_plan *plans[ENT_RUNTIME_PLANS];
    runtime_plan *current; /* of the last run */
    uint64_t clock;
    ent_runtime_timing *timings;
    uint32_t timing_capacity;
};

static inline const ent_program_function *runtime_main(const ent_runtime *rt) {
    return &rt->program->functions[0];
}

static inline uint32_t runtime_arena_slot(const ent_runtime *rt, uint32_t device) {
    return runtime_main(rt)->input_count + runtime_main(rt)->output_count + device;
}

/* load.c: a code of the ABI as a status of rt->errors; NULL for ENT_OK. */
ent_status ent_runtime_device_status(ent_runtime *rt, uint32_t device, ent_code code, const char *verb);
/* The call context for the next ABI call, without an old failure text. */
const ent_call *ent_runtime_call(ent_runtime *rt);
/* Buffer of a constant on a device, imported or copied on first use. */
ent_status ent_runtime_constant(ent_runtime *rt, uint32_t device, uint32_t constant, ent_buffer **out);

/* shapes.c: checks dtypes, ranks and dims, finds the plan of these shapes or prepares it. */
ent_status ent_runtime_choose_plan(ent_runtime *rt, const ent_tensor *inputs, runtime_plan **out);
/* guards.c: every bound input holds the value it was bound to. */
ent_status ent_runtime_check_guards(ent_runtime *rt, const ent_tensor *inputs);
ent_status ent_runtime_prepare_static(ent_runtime *rt);
void ent_runtime_plan_destroy(runtime_plan *plan);

/* prepare.c: flattens the program for evaluated symbols and expressions; plan->arena, symbols and exprs are
 * set. */
ent_status ent_runtime_prepare(ent_runtime *rt, runtime_plan *plan);

/* bind.c: caller's memory to buffers, arenas large enough, patches; and results back. */
ent_status ent_runtime_bind(ent_runtime *rt, runtime_plan *plan, const ent_tensor *inputs,
                            ent_tensor *outputs);
ent_status ent_runtime_return_outputs(ent_runtime *rt, runtime_plan *plan, ent_tensor *outputs);
void ent_runtime_port_finish(ent_runtime *rt, runtime_port *port);
/* Bytes between buffers and host memory, through the address where there is one. */
ent_status ent_runtime_read(ent_runtime *rt, uint32_t device, const ent_buffer_ref *ref, void *out,
                            uint64_t size_bytes);
ent_status ent_runtime_write(ent_runtime *rt, uint32_t device, const ent_buffer_ref *ref, const void *data,
                             uint64_t size_bytes);

#endif
