/* Loaded tile programs: a plan, planned anew when the symbols change. */
#include "cpu.h"

#define MAX_BUFFERS 256

typedef struct cpu_kernel {
    ent_kernel head;
    cpu_device *device;
    const ent_cpu_kernels *kernels;
    exec_plan *plan;
    const uint8_t *bytes; /* of the program, in the blob */
    size_t size;
    int64_t *symbols; /* the plan's; meaningful once planned */
    uint32_t symbol_count;
    bool planned;
    uint8_t *writes;
} cpu_kernel;

/* Room in every thread's scratch. The device is locked, or the kernel is being loaded. */
static ent_code reserve(cpu_device *device, size_t bytes) {
    if (bytes <= device->scratch_bytes) return ENT_OK;
    const ent_host *host = device->head.host;
    char *scratch = host->allocate(host->context, bytes * (size_t)device->threads, 64);
    if (!scratch) return ENT_CODE_OUT_OF_MEMORY;
    ent_common_release(host, device->scratch);
    device->scratch = scratch;
    device->scratch_bytes = bytes;
    return ENT_OK;
}

/* Sizes depend on symbols: a new plan for these values. */
static ent_code plan_for(cpu_kernel *k, const ent_step *step) {
    exec_plan *plan = NULL;
    if (step->symbol_count != k->symbol_count) return ENT_CODE_INVALID_ARGUMENT;
    if (k->planned && memcmp(k->symbols, step->symbols, k->symbol_count * sizeof *k->symbols) == 0)
        return ENT_OK;
    ent_code code = exec_plan_create(k->head.host, k->kernels, k->bytes, k->size, step->symbols,
                                     step->symbol_count, &plan);
    if (code == ENT_OK) code = reserve(k->device, plan->scratch_bytes);
    if (code != ENT_OK) {
        ent_common_log_failure(k->head.host, "cpu", plan ? plan->error.text : "out of memory for a plan");
        exec_plan_destroy(plan);
        return code;
    }
    exec_plan_destroy(k->plan);
    k->plan = plan;
    k->planned = true;
    memcpy(k->symbols, step->symbols, k->symbol_count * sizeof *k->symbols);
    return ENT_OK;
}

static ent_code run_kernel(ent_kernel *kernel, void *const *addresses, const ent_step *step) {
    cpu_kernel *k = (cpu_kernel *)kernel;
    cpu_device *device = k->device;
    void *buffers[MAX_BUFFERS];
    ent_code code = ENT_OK;
    pthread_mutex_lock(&device->mutex);
    if (k->symbol_count > 0) code = plan_for(k, step);
    if (code == ENT_OK && k->symbol_count > 0 &&
        !ent_common_bindings_fit(step, k->plan->binding_bytes, k->plan->binding_count))
        code = ENT_CODE_INVALID_ARGUMENT;
    if (code == ENT_OK) {
        const exec_plan *plan = k->plan;
        for (uint32_t b = 0; b < plan->program.buffer_count; b++)
            buffers[b] = plan->binding[b] == EXEC_NONE ? plan->owned[b] : addresses[plan->binding[b]];
        exec_plan_run(plan, device->pool, device->scratch, buffers);
    }
    pthread_mutex_unlock(&device->mutex);
    return code;
}

/* What the runtime's checks need: bindings, least sizes, which are written. */
static ent_code set_head(cpu_kernel *k, const ent_call *call) {
    const ent_tile_program *p = &k->plan->program;
    if (p->buffer_count > MAX_BUFFERS)
        return ent_common_fail(call, ENT_CODE_UNSUPPORTED, "the program has %u buffers; at most %d",
                               p->buffer_count, MAX_BUFFERS);
    k->writes = ent_common_allocate(k->head.host, p->buffer_count + 1);
    k->symbols = ent_common_allocate(k->head.host, (p->symbol_count + 1) * sizeof *k->symbols);
    if (!k->writes || !k->symbols)
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a kernel");
    for (uint32_t b = 0; b < p->buffer_count; b++)
        if (p->buffers[b].role != ENT_ROLE_SCRATCH)
            k->writes[k->head.binding_count++] = p->buffers[b].role == ENT_ROLE_OUTPUT;
    k->head.binding_writes = k->writes;
    k->head.binding_bytes = p->symbol_count == 0 ? k->plan->binding_bytes : NULL;
    k->head.scratch_bytes = k->plan->scratch_bytes * (size_t)k->device->threads;
    k->head.tier = k->plan->tier ? k->plan->tier : ENT_TIER_TUNED;
    k->symbol_count = p->symbol_count;
    memcpy(k->head.path, k->plan->path, sizeof k->head.path);
    return ENT_OK;
}

static ent_code load(cpu_kernel *k, const ent_call *call) {
    ent_code code = exec_plan_create(k->head.host, k->kernels, k->bytes, k->size, NULL, 0, &k->plan);
    if (code != ENT_OK)
        return ent_common_fail(call, code, "%s", k->plan ? k->plan->error.text : "out of memory for a plan");
    code = set_head(k, call);
    if (code != ENT_OK) return code;
    pthread_mutex_lock(&k->device->mutex);
    code = reserve(k->device, k->plan->scratch_bytes);
    pthread_mutex_unlock(&k->device->mutex);
    if (code != ENT_OK)
        ent_common_fail(call, code, "out of memory for %zu bytes of scratch a thread",
                        k->plan->scratch_bytes);
    return code;
}

ent_code cpu_kernel_load(ent_device *device, const ent_call *call, const uint8_t *blob, size_t size,
                         ent_kernel **out) {
    cpu_device *d = (cpu_device *)device;
    cpu_blob head;
    if (ent_common_is_region_blob(blob, size))
        return ent_common_region_kernel_load(device, call, blob, size, out);
    ent_code code = cpu_blob_read(call, blob, size, d->isa, &head);
    if (code != ENT_OK) return code;
    cpu_kernel *k = ent_common_allocate(device->host, sizeof *k);
    if (!k) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a kernel");
    k->head.host = device->host;
    k->head.run = run_kernel;
    k->device = d;
    k->kernels = ent_cpu_kernels_get((ent_cpu_isa)head.isa); /* as compiled, whatever else the machine has */
    k->bytes = blob + sizeof head;
    k->size = size - sizeof head;
    code = load(k, call);
    if (code != ENT_OK) {
        cpu_kernel_unload(&k->head);
        return code;
    }
    *out = &k->head;
    return ENT_OK;
}

void cpu_kernel_unload(ent_kernel *kernel) {
    if (!kernel) return;
    if (kernel->run != run_kernel) {
        ent_common_region_kernel_unload(kernel);
        return;
    }
    cpu_kernel *k = (cpu_kernel *)kernel;
    exec_plan_destroy(k->plan);
    ent_common_release(k->head.host, k->writes);
    ent_common_release(k->head.host, k->symbols);
    ent_common_release(k->head.host, k);
}
