/* Memory of a run: the caller's as buffers where that is possible, staging where not, arenas large enough;
 * and the bindings that refer to them. */
#include "core/runtime/internal.h"

#include <stdlib.h>
#include <string.h>

ent_status ent_runtime_read(ent_runtime *rt, uint32_t device, const ent_buffer_ref *ref, void *out,
                            uint64_t size_bytes) {
    const ent_runtime_v1 *api = rt->devices[device].api;
    if (size_bytes == 0) return NULL;
    const uint8_t *mapped = api->buffer_map ? api->buffer_map(ref->buffer) : NULL;
    if (mapped) {
        memcpy(out, mapped + ref->offset_bytes, size_bytes);
        return NULL;
    }
    ent_runtime_call(rt);
    ent_code code = api->buffer_read ? api->buffer_read(ref->buffer, ref->offset_bytes, out, size_bytes)
                                     : ENT_CODE_UNSUPPORTED;
    return ent_runtime_device_status(rt, device, code, "read a buffer");
}

ent_status ent_runtime_write(ent_runtime *rt, uint32_t device, const ent_buffer_ref *ref, const void *data,
                             uint64_t size_bytes) {
    const ent_runtime_v1 *api = rt->devices[device].api;
    if (size_bytes == 0) return NULL;
    uint8_t *mapped = api->buffer_map ? api->buffer_map(ref->buffer) : NULL;
    if (mapped) {
        memcpy(mapped + ref->offset_bytes, data, size_bytes);
        return NULL;
    }
    ent_runtime_call(rt);
    ent_code code = api->buffer_write ? api->buffer_write(ref->buffer, ref->offset_bytes, data, size_bytes)
                                      : ENT_CODE_UNSUPPORTED;
    return ent_runtime_device_status(rt, device, code, "write a buffer");
}

static void drop(ent_runtime *rt, uint32_t device, ent_buffer **buffer) {
    if (*buffer) rt->devices[device].api->buffer_destroy(*buffer);
    *buffer = NULL;
}

void ent_runtime_port_finish(ent_runtime *rt, runtime_port *port) {
    drop(rt, port->device, &port->imported);
    drop(rt, port->device, &port->staging);
    free(port->owned);
    port->owned = NULL;
}

/* Imports `memory` unless it is imported already or was refused before. */
static bool import(ent_runtime *rt, runtime_port *port, void *memory, uint64_t bytes, bool read_only) {
    runtime_device *d = &rt->devices[port->device];
    bool same = port->memory == memory && port->memory_bytes == bytes;
    if (same && port->imported) return true;
    if (same && port->import_refused) return false;
    drop(rt, port->device, &port->imported);
    port->memory = memory;
    port->memory_bytes = bytes;
    bool possible = bytes > 0 && (uintptr_t)memory % ENT_RUNTIME_ALIGNMENT == 0 && d->api->buffer_import;
    if (possible && d->api->buffer_import(d->host->device, ent_runtime_call(rt), memory, bytes, read_only,
                                          &port->imported) != ENT_OK)
        port->imported = NULL;
    port->import_refused = !port->imported;
    return port->imported != NULL;
}

static ent_status need_staging(ent_runtime *rt, runtime_port *port, uint64_t bytes) {
    runtime_device *d = &rt->devices[port->device];
    if (port->staging && port->staging_bytes >= bytes) return NULL;
    drop(rt, port->device, &port->staging);
    port->staging_bytes = bytes ? bytes : 1;
    ent_code code =
        d->api->buffer_create(d->host->device, ent_runtime_call(rt), port->staging_bytes, &port->staging);
    if (code != ENT_OK) port->staging = NULL;
    return ent_runtime_device_status(rt, port->device, code, "create a buffer");
}

static void patch(runtime_plan *plan, uint32_t slot, ent_buffer *buffer) {
    if (plan->bound[slot] == buffer) return;
    plan->bound[slot] = buffer;
    for (uint32_t i = plan->patch_first[slot]; i < plan->patch_first[slot + 1]; i++)
        plan->bindings[plan->patches[i]].buffer = buffer;
}

static ent_status bind_input(ent_runtime *rt, runtime_plan *plan, uint32_t index, const ent_tensor *tensor) {
    runtime_port *port = &rt->inputs[index];
    uint64_t bytes = plan->input_bytes[index];
    if (tensor->size_bytes < bytes || (bytes > 0 && !tensor->data))
        return ent_status_make(
            rt->errors, ENT_ERROR_USAGE, "input.size",
            ent_arena_format(rt->errors, "input '%s'", runtime_main(rt)->values[port->value].name),
            "has %llu bytes; its shape needs %llu", (unsigned long long)tensor->size_bytes,
            (unsigned long long)bytes);
    if (import(rt, port, tensor->data, bytes, true)) {
        patch(plan, index, port->imported);
        return NULL;
    }
    ENT_TRY(need_staging(rt, port, bytes));
    patch(plan, index, port->staging);
    ent_buffer_ref ref = {port->staging, 0, bytes};
    return ent_runtime_write(rt, port->device, &ref, tensor->data, bytes);
}

/* Gives the tensor memory of the runtime's when the caller has none. */
static ent_status provide_memory(ent_runtime *rt, runtime_port *port, ent_tensor *tensor, uint64_t bytes) {
    if (tensor->data) return NULL;
    if (!port->owned || port->owned_bytes < bytes) {
        uint64_t room = (bytes + ENT_RUNTIME_ALIGNMENT) / ENT_RUNTIME_ALIGNMENT * ENT_RUNTIME_ALIGNMENT;
        drop(rt, port->device, &port->imported); /* it may lie over the memory that goes */
        port->memory = NULL;
        free(port->owned);
        port->owned = aligned_alloc(ENT_RUNTIME_ALIGNMENT, room);
        port->owned_bytes = port->owned ? room : 0;
        if (!port->owned) return ent_status_out_of_memory();
    }
    tensor->data = port->owned;
    tensor->size_bytes = bytes;
    return NULL;
}

static ent_status bind_output(ent_runtime *rt, runtime_plan *plan, uint32_t index, ent_tensor *tensor) {
    runtime_port *port = &rt->outputs[index];
    const ent_program_value *value = &runtime_main(rt)->values[port->value];
    uint64_t bytes = plan->output_bytes[index];
    uint32_t slot = runtime_main(rt)->input_count + index;
    ENT_TRY(provide_memory(rt, port, tensor, bytes));
    if (tensor->size_bytes < bytes)
        return ent_status_make(rt->errors, ENT_ERROR_USAGE, "output.size",
                               ent_arena_format(rt->errors, "output '%s'", value->name),
                               "there is room for %llu bytes; %llu are needed",
                               (unsigned long long)tensor->size_bytes, (unsigned long long)bytes);
    tensor->size_bytes = bytes;
    tensor->dtype = value->dtype;
    tensor->rank = value->rank;
    tensor->layout = value->layout;
    memcpy(tensor->dims, plan->output_dims[index], value->rank * sizeof tensor->dims[0]);
    if (plan->patch_first[slot] == plan->patch_first[slot + 1]) return NULL; /* copied out at the end */
    if (import(rt, port, tensor->data, bytes, false)) {
        patch(plan, slot, port->imported);
        return NULL;
    }
    ENT_TRY(need_staging(rt, port, bytes));
    patch(plan, slot, port->staging);
    return NULL;
}

/* An arena only grows. Nothing runs now, so the old one can go; other plans are patched when they run next.
 */
static ent_status bind_arena(ent_runtime *rt, runtime_plan *plan, uint32_t device) {
    runtime_device *d = &rt->devices[device];
    uint32_t slot = runtime_arena_slot(rt, device);
    if (plan->patch_first[slot] == plan->patch_first[slot + 1]) return NULL;
    /* Temporaries may all be empty; kernels still get a buffer. */
    uint64_t bytes = plan->arena_bytes[device] ? plan->arena_bytes[device] : ENT_RUNTIME_ALIGNMENT;
    if (d->arena_bytes < bytes) {
        drop(rt, device, &d->arena);
        d->arena_bytes = 0;
        ent_code code = d->api->buffer_create(d->host->device, ent_runtime_call(rt), bytes, &d->arena);
        if (code != ENT_OK) d->arena = NULL;
        ENT_TRY(ent_runtime_device_status(rt, device, code, "create the arena for temporaries"));
        d->arena_bytes = bytes;
    }
    patch(plan, slot, d->arena);
    return NULL;
}

ent_status ent_runtime_bind(ent_runtime *rt, runtime_plan *plan, const ent_tensor *inputs,
                            ent_tensor *outputs) {
    const ent_program_function *f = runtime_main(rt);
    for (uint32_t d = 0; d < rt->program->device_count; d++) ENT_TRY(bind_arena(rt, plan, d));
    for (uint32_t i = 0; i < f->input_count; i++) ENT_TRY(bind_input(rt, plan, i, &inputs[i]));
    for (uint32_t i = 0; i < f->output_count; i++) ENT_TRY(bind_output(rt, plan, i, &outputs[i]));
    return NULL;
}

ent_status ent_runtime_return_outputs(ent_runtime *rt, runtime_plan *plan, ent_tensor *outputs) {
    const ent_program_function *f = runtime_main(rt);
    for (uint32_t i = 0; i < f->output_count; i++) {
        runtime_port *port = &rt->outputs[i];
        uint32_t slot = f->input_count + i;
        if (plan->patch_first[slot] == plan->patch_first[slot + 1] || plan->bound[slot] != port->staging)
            continue;
        ent_buffer_ref ref = {port->staging, 0, plan->output_bytes[i]};
        ENT_TRY(ent_runtime_read(rt, port->device, &ref, outputs[i].data, plan->output_bytes[i]));
    }
    for (uint32_t i = 0; i < plan->final_count; i++) {
        const final_copy *final = &plan->finals[i];
        ENT_TRY(ent_runtime_read(rt, final->device, &plan->bindings[final->binding],
                                 outputs[final->output].data, plan->output_bytes[final->output]));
    }
    return NULL;
}
