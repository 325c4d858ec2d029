/* Regions as blobs and kernels. */
#include "plugins/common/common.h"

#include <stdio.h>
#include <string.h>

static const char region_magic[8] = {'E', 'N', 'T', 'R', 'E', 'G', 'N', '1'};

typedef struct region_kernel {
    ent_kernel head;
    ent_common_region *region;
    void *scratch;
    uint64_t *binding_bytes;
    uint8_t *binding_writes;
    int64_t *symbols; /* what it is sized for; meaningful once sized */
    bool sized;
} region_kernel;

ent_code ent_common_region_blob(const ent_call *call, const uint8_t *request, size_t size,
                                ent_bytes *out_blob) {
    uint8_t *blob = call->allocate(call->context, sizeof region_magic + size);
    if (!blob)
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a blob of %zu bytes", size);
    memcpy(blob, region_magic, sizeof region_magic);
    memcpy(blob + sizeof region_magic, request, size);
    *out_blob = (ent_bytes){blob, sizeof region_magic + size};
    return ENT_OK;
}

bool ent_common_is_region_blob(const uint8_t *blob, size_t size) {
    return size > sizeof region_magic && memcmp(blob, region_magic, sizeof region_magic) == 0;
}

/* Not zeroed: every intermediate is written before it is read, and untouched pages cost nothing. */
static ent_code reserve(region_kernel *k) {
    const ent_host *host = k->head.host;
    ent_common_release(host, k->scratch);
    k->scratch = host->allocate(host->context, k->region->scratch_bytes + 64, 64);
    k->head.scratch_bytes = k->region->scratch_bytes;
    for (uint32_t i = 0; i < k->region->port_count; i++)
        k->binding_bytes[i] = k->region->values[k->region->ports[i]].tensor.size_bytes;
    return k->scratch ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
}

/* Sizes depend on symbols: new ones when these differ from the last. */
static ent_code size_for(region_kernel *k, const ent_step *step) {
    uint32_t count = k->region->sizes.symbol_count;
    if (step->symbol_count < count) return ENT_CODE_INVALID_ARGUMENT;
    if (!k->sized || memcmp(k->symbols, step->symbols, count * sizeof *k->symbols) != 0) {
        k->sized = false;
        ent_code code = ent_common_region_resize(k->region, step->symbols, step->symbol_count);
        if (code == ENT_OK) code = reserve(k);
        if (code != ENT_OK) {
            ent_common_log_failure(k->head.host, k->head.path,
                                   code == ENT_CODE_OUT_OF_MEMORY ? "out of memory for these sizes"
                                                                  : "these sizes do not exist");
            return code;
        }
        memcpy(k->symbols, step->symbols, count * sizeof *k->symbols);
        k->sized = true;
    }
    bool fits = ent_common_bindings_fit(step, k->binding_bytes, k->region->port_count);
    return fits ? ENT_OK : ENT_CODE_INVALID_ARGUMENT;
}

static ent_code run_region(ent_kernel *kernel, void *const *addresses, const ent_step *step) {
    region_kernel *k = (region_kernel *)kernel;
    ent_ops_error error = {0};
    if (k->region->sizes.symbol_count > 0) {
        ent_code code = size_for(k, step);
        if (code != ENT_OK) return code;
    }
    ent_code code = ent_common_region_run(k->region, addresses, k->scratch, &error);
    if (code != ENT_OK) ent_common_log_failure(k->head.host, k->head.path, error.text);
    return code;
}

ent_code ent_common_region_kernel_load(ent_device *device, const ent_call *call, const uint8_t *blob,
                                       size_t size, ent_kernel **out) {
    if (!ent_common_is_region_blob(blob, size))
        return ent_common_fail(call, ENT_CODE_BAD_MESSAGE, "the blob is no region of this plugin");
    const ent_host *host = device->host;
    region_kernel *k = ent_common_allocate(host, sizeof *k);
    if (!k) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a kernel");
    k->head.host = host;
    ent_code code = ent_common_region_create(host, call, blob + sizeof region_magic,
                                             size - sizeof region_magic, &k->region);
    if (code != ENT_OK) {
        ent_common_release(host, k);
        return code;
    }
    k->head.run = run_region;
    k->head.tier = ENT_TIER_GENERIC;
    k->head.binding_count = k->region->port_count;
    snprintf(k->head.path, sizeof k->head.path, "core/ops %s%s",
             ent_op_info_get(k->region->nodes[0].op)->name, k->region->node_count > 1 ? " ..." : "");
    k->binding_bytes = ent_common_allocate(host, (k->region->port_count + 1) * sizeof *k->binding_bytes);
    k->binding_writes = ent_common_allocate(host, k->region->port_count + 1);
    k->symbols = ent_common_allocate(host, (k->region->sizes.symbol_count + 1) * sizeof *k->symbols);
    bool open = k->region->sizes.symbol_count > 0;
    if (!k->symbols || !k->binding_bytes || !k->binding_writes || (!open && reserve(k) != ENT_OK)) {
        ent_common_region_kernel_unload(&k->head);
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a kernel's intermediates");
    }
    for (uint32_t i = 0; i < k->region->port_count; i++)
        k->binding_writes[i] = k->region->values[k->region->ports[i]].written;
    k->head.binding_bytes = open ? NULL : k->binding_bytes;
    k->head.binding_writes = k->binding_writes;
    *out = &k->head;
    return ENT_OK;
}

void ent_common_region_kernel_unload(ent_kernel *kernel) {
    region_kernel *k = (region_kernel *)kernel;
    if (!k) return;
    ent_common_region_destroy(k->region);
    ent_common_release(k->head.host, k->scratch);
    ent_common_release(k->head.host, k->binding_bytes);
    ent_common_release(k->head.host, k->binding_writes);
    ent_common_release(k->head.host, k->symbols);
    ent_common_release(k->head.host, k);
}

ent_code ent_common_region_compile(ent_device *device, const ent_call *call, uint32_t depth,
                                   const uint8_t *request, size_t size, ent_bytes *out_blob) {
    if (depth != ENT_DEPTH_REGION)
        return ent_common_fail(call, ENT_CODE_UNSUPPORTED, "this device takes regions only");
    ent_common_region *region = NULL;
    ent_code code = ent_common_region_create(device->host, call, request, size, &region);
    if (code != ENT_OK) return code;
    ent_common_region_destroy(region);
    return ent_common_region_blob(call, request, size, out_blob);
}

static const ent_negotiate_v1 negotiate_interface = {
    {sizeof(ent_negotiate_v1), ENT_STRUCT_NEGOTIATE_V1, NULL}, NULL, ent_common_quote, ent_common_award};
static const ent_compile_v1 compile_interface = {{sizeof(ent_compile_v1), ENT_STRUCT_COMPILE_V1, NULL},
                                                 ent_common_region_compile};
static const ent_runtime_v1 runtime_interface =
    ENT_COMMON_RUNTIME(ent_common_region_kernel_load, ent_common_region_kernel_unload);

const void *ent_common_region_interface(uint32_t id, uint32_t version) {
    if (version != 1) return NULL;
    switch (id) {
    case ENT_INTERFACE_NEGOTIATE:
        return &negotiate_interface;
    case ENT_INTERFACE_COMPILE:
        return &compile_interface;
    case ENT_INTERFACE_RUNTIME:
        return &runtime_interface;
    default:
        return NULL;
    }
}
