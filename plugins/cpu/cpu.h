/* The CPU plugin's device; shared by its own files only. */
#ifndef ENT_CPU_CPU_H
#define ENT_CPU_CPU_H

#include <pthread.h>

#include "exec.h"
#include "probe.h"

typedef struct cpu_device {
    ent_device head;
    ent_cpu_isa isa;
    int threads;
    const ent_cpu_kernels *kernels;
    /* Runs are serialised: the pool does one region at a time, and all kernels share the threads' scratch. */
    pthread_mutex_t mutex;
    ent_cpu_pool *pool;
    char *scratch;
    size_t scratch_bytes; /* of one thread */
} cpu_device;

/* ---- declare.c ---- */
ent_code cpu_declare(ent_device *device, const ent_call *call, ent_bytes *out_json);

/* ---- cache.c ---- */
/* The probe's figures for this processor, level and thread count: from the cache file, else measured and put
 * there. False when there is no memory to measure in. */
bool cpu_probe_get(cpu_device *device, ent_cpu_probe *out);

/* ---- blob.c ---- */
/* Blob of a tile program: this header, then the program's message. */
typedef struct cpu_blob {
    char magic[8];
    uint32_t version, isa, tier, reserved;
} cpu_blob;
ent_code cpu_compile(ent_device *device, const ent_call *call, uint32_t depth, const uint8_t *request,
                     size_t size, ent_bytes *out_blob);
ent_code cpu_blob_check(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size);
ent_code cpu_blob_requirement(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size,
                              ent_bytes *out_text);
/* Reads and checks a tile blob's header: its level must be one that `highest` includes. */
ent_code cpu_blob_read(const ent_call *call, const uint8_t *blob, size_t size, ent_cpu_isa highest,
                       cpu_blob *out);

/* ---- kernel.c ---- */
ent_code cpu_kernel_load(ent_device *device, const ent_call *call, const uint8_t *blob, size_t size,
                         ent_kernel **out);
void cpu_kernel_unload(ent_kernel *kernel);

#endif
