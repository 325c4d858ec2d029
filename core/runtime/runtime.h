/* Runs programs: opens their devices through plugins, loads kernels, places memory, submits steps. Links
 * without the compiler.
 *
 * A runtime holds one program ready to run. It is used by one thread at a time; several runtimes of one
 * program may run at the same time, each with devices and arenas of its own. Errors live in the runtime and
 * are valid until its next call. */
#ifndef ENT_RUNTIME_H
#define ENT_RUNTIME_H

#include "core/host/host.h"
#include "core/program/program.h"

typedef struct ent_runtime ent_runtime;

typedef struct ent_runtime_options {
    uint32_t threads; /* passed to every device as "threads", in place of what the program says; 0: as the
                         program says */
} ent_runtime_options;

/* What a step took. Times are of one monotonic clock per device; both 0 when the step was not executed (other
 * branch). */
typedef struct ent_runtime_timing {
    const char *function, *name, *device;
    uint32_t region;  /* of the plan, or ENT_PROGRAM_NONE */
    uint32_t tier;    /* as the loaded kernel says; NONE for copies */
    const char *path; /* what the kernel runs on, such as "gemm 6x16 avx2"; "" for copies */
    double predicted_ns;
    uint64_t begin_ns, end_ns;
} ent_runtime_timing;

typedef struct ent_runtime_memory {
    uint64_t weights_bytes;           /* constants, equal ones counted once */
    uint64_t arena_bytes;             /* held for temporaries, over all devices */
    uint64_t arena_lower_bound_bytes; /* least that the current shapes need; 0 before the first run of a
                                         program with symbols */
} ent_runtime_memory;

/* Opens every device the program names, checks and loads its kernels; of a program without symbols prepares
 * everything. `registry` and `program` are borrowed. Errors lie in `arena`. A device that cannot be opened,
 * or a kernel it refuses: code DEVICE. */
ent_status ent_runtime_create(ent_arena *arena, ent_host_registry *registry, const ent_program *program,
                              const ent_runtime_options *options, ent_runtime **out);
void ent_runtime_destroy(ent_runtime *runtime); /* NULL is fine */

/* Runs main and waits. inputs and outputs are in main's order, in host memory. Memory that is 64-byte aligned
 * is used in place where the device can; the runtime may keep using that address until the next run or
 * destroy. outputs[i]: dtype, rank and dims are filled in; data NULL: the runtime provides memory, valid
 * until the next run; else size_bytes is the room there, and becomes the size. Wrong dtype, rank, shape or
 * size: code USAGE. A shape outside a symbol's guard: code UNSUPPORTED, naming the symbol. */
ent_status ent_runtime_run(ent_runtime *runtime, const ent_tensor *inputs, ent_tensor *outputs);

/* Begin and end times per step from the next run on; costs a little. */
void ent_runtime_set_profiling(ent_runtime *runtime, bool enabled);
/* Steps of the last run in program order, calls expanded. In the runtime's memory, until its next call. */
const ent_runtime_timing *ent_runtime_timings(ent_runtime *runtime, uint32_t *out_count);
ent_status ent_runtime_memory_used(ent_runtime *runtime, ent_runtime_memory *out);

#endif
