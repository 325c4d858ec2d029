/* The CPU backend: plugin table, devices and their parameters. */
#define _GNU_SOURCE
#include "cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_THREADS 256

static ent_code list_devices(ent_state *state, const ent_call *call, ent_bytes *out_names) {
    (void)state;
    return ent_common_reply(call, "cpu", 3, out_names);
}

/* The variant asked for must be there; without one, the best that ENTENTE_CPU_ISA allows. */
static ent_code choose_isa(const ent_call *call, const ent_parameter *variant, ent_cpu_isa *out) {
    const char *bad = NULL;
    char name[32];
    if (!ent_cpu_isa_choose(NULL, out, &bad))
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT,
                               "ENTENTE_CPU_ISA is '%s'; use baseline, avx2 or avx512", bad);
    if (!variant || variant->value.size == 0) return ENT_OK;
    ent_cpu_isa wanted = ENT_CPU_ISA_BASELINE, offered = *out;
    snprintf(name, sizeof name, "%.*s", (int)(variant->value.size < 31 ? variant->value.size : 31),
             variant->value.data);
    if (!ent_cpu_isa_parse(name, &wanted))
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT,
                               "cpu has no variant '%s'; use baseline, avx2 or avx512", name);
    if (wanted > offered)
        return ent_common_fail(call, ENT_CODE_ISA_MISSING, "cpu:%s was asked for, but %s offers %s", name,
                               ent_cpu_isa_detect() >= wanted ? "ENTENTE_CPU_ISA" : "this processor",
                               ent_cpu_isa_name(offered));
    *out = wanted;
    return ENT_OK;
}

static ent_code choose_threads(const ent_call *call, const ent_parameter *parameters, size_t count,
                               int *out) {
    const ent_parameter *given = ent_common_parameter(parameters, count, "threads");
    cpu_set_t set;
    char text[16] = {0}, *end = NULL;
    if (!given) given = ent_common_parameter(parameters, count, "hint.threads");
    *out = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    if (*out > MAX_THREADS) *out = MAX_THREADS;
    if (!given) return ENT_OK;
    if (given->value.size < sizeof text) memcpy(text, given->value.data, given->value.size);
    long threads = strtol(text, &end, 10);
    if (end == text || *end != 0 || threads < 1 || threads > MAX_THREADS)
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT, "threads is '%.*s'; use 1 to %d",
                               (int)given->value.size, given->value.data, MAX_THREADS);
    *out = (int)threads;
    return ENT_OK;
}

static void close_device(ent_device *device) {
    cpu_device *d = (cpu_device *)device;
    if (!d) return;
    ent_cpu_pool_destroy(d->pool);
    pthread_mutex_destroy(&d->mutex);
    ent_common_release(d->head.host, d->scratch);
    ent_common_release(d->head.host, d);
}

static ent_code open_device(ent_state *state, const ent_call *call, const ent_parameter *parameters,
                            size_t count, ent_device **out) {
    static const char *const known[] = {"variant", "threads", NULL};
    ent_cpu_isa isa = ENT_CPU_ISA_BASELINE;
    int threads = 1;
    ent_code code = ent_common_check_parameters(call, parameters, count, known);
    if (code == ENT_OK) code = choose_isa(call, ent_common_parameter(parameters, count, "variant"), &isa);
    if (code == ENT_OK) code = choose_threads(call, parameters, count, &threads);
    if (code != ENT_OK) return code;
    cpu_device *device = ent_common_allocate(state->host, sizeof *device);
    if (!device) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a device");
    device->head.host = state->host;
    device->isa = isa;
    device->kernels = ent_cpu_kernels_get(isa);
    pthread_mutex_init(&device->mutex, NULL);
    device->pool = ent_cpu_pool_create(threads);
    if (!device->pool) {
        close_device(&device->head);
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for %d threads", threads);
    }
    device->threads = ent_cpu_pool_threads(device->pool);
    *out = &device->head;
    return ENT_OK;
}

static const ent_device_v1 device_interface = {{sizeof(ent_device_v1), ENT_STRUCT_DEVICE_V1, NULL},
                                               list_devices,
                                               open_device,
                                               close_device,
                                               cpu_declare};
/* Regions are quoted as core/ops can run them. Tile programs are the core's own offers, never quoted, and
 * nothing that was offered is taken back: no award. */
static const ent_negotiate_v1 negotiate_interface = {
    {sizeof(ent_negotiate_v1), ENT_STRUCT_NEGOTIATE_V1, NULL}, NULL, ent_common_quote, NULL};
static const ent_compile_v1 compile_interface = {{sizeof(ent_compile_v1), ENT_STRUCT_COMPILE_V1, NULL},
                                                 cpu_compile};
static const ent_blob_v1 blob_interface = {
    {sizeof(ent_blob_v1), ENT_STRUCT_BLOB_V1, NULL}, cpu_blob_check, cpu_blob_requirement};
static const ent_runtime_v1 runtime_interface = ENT_COMMON_RUNTIME(cpu_kernel_load, cpu_kernel_unload);

static const void *get_interface(uint32_t id, uint32_t version) {
    if (version != 1) return NULL;
    switch (id) {
    case ENT_INTERFACE_DEVICE:
        return &device_interface;
    case ENT_INTERFACE_NEGOTIATE:
        return &negotiate_interface;
    case ENT_INTERFACE_COMPILE:
        return &compile_interface;
    case ENT_INTERFACE_BLOB:
        return &blob_interface;
    case ENT_INTERFACE_RUNTIME:
        return &runtime_interface;
    default:
        return NULL;
    }
}

const ent_plugin ent_plugin_v1 = {{sizeof(ent_plugin), ENT_STRUCT_PLUGIN, NULL},
                                  1,
                                  1,
                                  ENT_STR("cpu"),
                                  ENT_STR("Entente"),
                                  ENT_STR("1"),
                                  ENT_DEPTH_TILE | ENT_DEPTH_REGION,
                                  4,
                                  ent_common_open,
                                  ent_common_close,
                                  get_interface};
