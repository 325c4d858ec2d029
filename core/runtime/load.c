/* From a program to open devices with loaded kernels, and back. */
#include "core/runtime/internal.h"

#include <stdlib.h>
#include <string.h>

const ent_call *ent_runtime_call(ent_runtime *rt) {
    rt->call.failure = NULL;
    return &rt->call.call;
}

ent_status ent_runtime_device_status(ent_runtime *rt, uint32_t device, ent_code code, const char *verb) {
    return ent_host_call_status(&rt->call, code, rt->program->devices[device].name, verb);
}

static bool find_constant(void *user, uint64_t low, uint64_t high, ent_bytes *out) {
    const ent_program *program = ((ent_runtime *)user)->program;
    for (uint32_t i = 0; i < program->constant_count; i++) {
        const ent_program_constant *c = &program->constants[i];
        if (c->hash.low != low || c->hash.high != high) continue;
        *out = (ent_bytes){c->data, c->size_bytes};
        return true;
    }
    return false;
}

/* "variant=avx2 threads=2" into parameters. A variant that the device's name carries already is left out. */
static size_t parse_parameters(ent_runtime *rt, const ent_program_device *device, uint32_t threads,
                               ent_parameter *out, size_t room) {
    size_t count = 0;
    bool has_variant = strchr(device->name, ':') != NULL;
    for (const char *at = device->parameters; *at && count + 1 < room;) {
        size_t length = strcspn(at, " ");
        const char *equals = memchr(at, '=', length);
        if (equals) {
            ent_parameter p = {{at, (size_t)(equals - at)}, {equals + 1, length - (size_t)(equals - at) - 1}};
            bool is_variant = p.name.size == 7 && memcmp(p.name.data, "variant", 7) == 0;
            bool is_threads = p.name.size == 7 && memcmp(p.name.data, "threads", 7) == 0;
            if (!(is_variant && has_variant) && !(is_threads && threads)) out[count++] = p;
        }
        at += length;
        at += strspn(at, " ");
    }
    if (threads) {
        const char *number = ent_arena_format(rt->arena, "%u", threads);
        out[count++] = (ent_parameter){ENT_STR("threads"), {number, strlen(number)}};
    }
    return count;
}

static bool has_runtime(const ent_runtime_v1 *api) {
    return api && api->buffer_create && api->buffer_destroy && api->queue_create && api->queue_destroy &&
           api->fence_create && api->fence_destroy && api->fence_wait && api->kernel_load &&
           api->kernel_unload && api->submit && (api->buffer_map || (api->buffer_read && api->buffer_write));
}

static ent_status open_device(ent_runtime *rt, uint32_t index, uint32_t threads) {
    const ent_program_device *device = &rt->program->devices[index];
    runtime_device *d = &rt->devices[index];
    ent_parameter parameters[32];
    size_t count = parse_parameters(rt, device, threads, parameters, 32);
    ent_status status =
        ent_host_device_open(rt->registry, rt->arena, device->name, parameters, count, &d->host);
    /* A device without threads of its own may refuse the parameter that only we added. */
    if (status && threads && !strcmp(status->rule, "plugin.invalid-argument"))
        status = ent_host_device_open(rt->registry, rt->arena, device->name, parameters, count - 1, &d->host);
    if (status) return status;
    d->api = d->host->runtime;
    if (!has_runtime(d->api))
        return ent_status_make(
            rt->errors, ENT_ERROR_DEVICE, "plugin.interface",
            ent_arena_format(rt->errors, "device '%s'", device->name),
            "its plugin lacks the runtime interface, so it can be planned for but not run");
    ENT_TRY(ent_runtime_device_status(
        rt, index, d->api->queue_create(d->host->device, ent_runtime_call(rt), &d->queue), "create a queue"));
    ENT_TRY(ent_runtime_device_status(
        rt, index, d->api->fence_create(d->host->device, ent_runtime_call(rt), 0, &d->fence),
        "create a fence"));
    d->constants = ent_arena_array(rt->arena, (size_t)rt->program->constant_count + 1, sizeof(ent_buffer *));
    d->copies = ent_map_create(rt->arena);
    return d->constants ? NULL : ent_status_out_of_memory();
}

/* The blob check comes before the load, so that a missing instruction set is named before any of its code
 * could run. */
static ent_status load_kernel(ent_runtime *rt, uint32_t index) {
    const ent_program_kernel *k = &rt->program->kernels[index];
    runtime_device *d = &rt->devices[k->device];
    ent_code code = ENT_OK;
    if (d->host->blob && d->host->blob->check)
        code = d->host->blob->check(d->host->plugin->state, ent_runtime_call(rt), k->blob, k->blob_bytes);
    if (code == ENT_OK)
        code = d->api->kernel_load(d->host->device, ent_runtime_call(rt), k->blob, k->blob_bytes,
                                   &rt->kernels[index]);
    if (code != ENT_OK)
        return ent_status_make(rt->errors,
                               code == ENT_CODE_OUT_OF_MEMORY ? ENT_ERROR_LIMIT : ENT_ERROR_DEVICE,
                               code == ENT_CODE_ISA_MISSING ? "runtime.isa" : "runtime.kernel",
                               ent_arena_format(rt->errors, "device '%s': kernel '%s'",
                                                rt->program->devices[k->device].name, k->name),
                               "it needs %s and was refused: %s; compile the model for this machine",
                               k->requirement[0] ? k->requirement : "what its plugin says",
                               rt->call.failure ? rt->call.failure : "the plugin gives no text");
    ent_kernel_info *info = &rt->kernel_infos[index];
    *info = (ent_kernel_info){.size = sizeof *info, .tier = k->tier};
    if (d->api->kernel_info) {
        ent_kernel_info said = *info;
        if (d->api->kernel_info(rt->kernels[index], &said) == ENT_OK) *info = said;
        info->path[sizeof info->path - 1] = 0;
    }
    return NULL;
}

/* Copied once per device and content when the device cannot use the mapped bytes in place. */
static ent_status copy_constant(ent_runtime *rt, uint32_t device, uint32_t constant, ent_buffer **out) {
    runtime_device *d = &rt->devices[device];
    const ent_program_constant *c = &rt->program->constants[constant];
    uint64_t same = 0;
    if (ent_map_find_u64(d->copies, (uint64_t)(uintptr_t)c->data, &same) &&
        rt->program->constants[same].size_bytes == c->size_bytes) {
        *out = d->constants[same];
        return NULL;
    }
    ENT_TRY(ent_runtime_device_status(rt, device,
                                      d->api->buffer_create(d->host->device, ent_runtime_call(rt),
                                                            c->size_bytes ? c->size_bytes : 1,
                                                            &d->constants[constant]),
                                      "create a buffer for weights"));
    ent_buffer_ref ref = {d->constants[constant], 0, c->size_bytes};
    ENT_TRY(ent_runtime_write(rt, device, &ref, c->data, c->size_bytes));
    ent_map_set_u64(d->copies, (uint64_t)(uintptr_t)c->data, constant);
    *out = d->constants[constant];
    return NULL;
}

ent_status ent_runtime_constant(ent_runtime *rt, uint32_t device, uint32_t constant, ent_buffer **out) {
    runtime_device *d = &rt->devices[device];
    const ent_program_constant *c = &rt->program->constants[constant];
    *out = d->constants[constant];
    if (*out) return NULL;
    bool aligned = (uintptr_t)c->data % ENT_RUNTIME_ALIGNMENT == 0 && c->size_bytes > 0;
    /* Imported read-only: the address loses its const, the bytes are never written. */
    if (aligned && d->api->buffer_import &&
        d->api->buffer_import(d->host->device, ent_runtime_call(rt), (void *)(uintptr_t)c->data,
                              c->size_bytes, true, &d->constants[constant]) == ENT_OK) {
        *out = d->constants[constant];
        return NULL;
    }
    d->constants[constant] = NULL;
    return copy_constant(rt, device, constant, out);
}

static ent_status make_ports(ent_runtime *rt) {
    const ent_program_function *f = runtime_main(rt);
    rt->inputs = ent_arena_array(rt->arena, (size_t)f->input_count + 1, sizeof *rt->inputs);
    rt->outputs = ent_arena_array(rt->arena, (size_t)f->output_count + 1, sizeof *rt->outputs);
    if (!rt->inputs || !rt->outputs) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < f->input_count; i++)
        rt->inputs[i] = (runtime_port){.value = f->inputs[i], .device = f->values[f->inputs[i]].device};
    for (uint32_t i = 0; i < f->output_count; i++)
        rt->outputs[i] = (runtime_port){.value = f->outputs[i], .device = f->values[f->outputs[i]].device};
    rt->slot_count = f->input_count + f->output_count + rt->program->device_count;
    return NULL;
}

static ent_status load(ent_runtime *rt, const ent_runtime_options *options) {
    const ent_program *p = rt->program;
    rt->devices = ent_arena_array(rt->arena, (size_t)p->device_count + 1, sizeof *rt->devices);
    rt->kernels = ent_arena_array(rt->arena, (size_t)p->kernel_count + 1, sizeof(ent_kernel *));
    rt->kernel_infos = ent_arena_array(rt->arena, (size_t)p->kernel_count + 1, sizeof *rt->kernel_infos);
    if (!rt->devices || !rt->kernels || !rt->kernel_infos) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < p->device_count; i++)
        ENT_TRY(open_device(rt, i, options ? options->threads : 0));
    for (uint32_t i = 0; i < p->kernel_count; i++) ENT_TRY(load_kernel(rt, i));
    ENT_TRY(make_ports(rt));
    return p->symbol_count ? NULL : ent_runtime_prepare_static(rt);
}

ent_status ent_runtime_create(ent_arena *arena, ent_host_registry *registry, const ent_program *program,
                              const ent_runtime_options *options, ent_runtime **out) {
    *out = NULL;
    ENT_TRY(ent_program_verify(program, arena));
    ent_runtime *rt = calloc(1, sizeof *rt);
    if (!rt) return ent_status_out_of_memory();
    rt->arena = ent_arena_create(0);
    rt->errors = ent_arena_create(0);
    if (!rt->arena || !rt->errors) {
        ent_runtime_destroy(rt);
        return ent_status_out_of_memory();
    }
    rt->errors_start = ent_arena_save(rt->errors);
    rt->program = program;
    rt->registry = registry;
    ent_host_call_init(&rt->call, rt->errors, 0);
    rt->call.constant = find_constant;
    rt->call.user = rt;
    ent_status status = load(rt, options);
    if (status) {
        status = ent_status_make(arena, status->code, ent_arena_strdup(arena, status->rule),
                                 ent_arena_strdup(arena, status->place), "%s", status->text);
        ent_runtime_destroy(rt);
        return status;
    }
    *out = rt;
    return NULL;
}

static void close_device(ent_runtime *rt, runtime_device *d) {
    if (d->api) {
        for (uint32_t i = 0; d->constants && i < rt->program->constant_count; i++)
            if (d->constants[i]) d->api->buffer_destroy(d->constants[i]);
        if (d->arena) d->api->buffer_destroy(d->arena);
        if (d->fence) d->api->fence_destroy(d->fence);
    }
    ent_host_device_close(d->host);
}

void ent_runtime_destroy(ent_runtime *rt) {
    if (!rt) return;
    const ent_program *p = rt->program;
    /* Queues first: destroying one waits for its work. */
    for (uint32_t i = 0; rt->devices && i < p->device_count; i++)
        if (rt->devices[i].queue) rt->devices[i].api->queue_destroy(rt->devices[i].queue);
    for (uint32_t i = 0; rt->inputs && rt->outputs && i < runtime_main(rt)->input_count; i++)
        ent_runtime_port_finish(rt, &rt->inputs[i]);
    for (uint32_t i = 0; rt->inputs && rt->outputs && i < runtime_main(rt)->output_count; i++)
        ent_runtime_port_finish(rt, &rt->outputs[i]);
    for (uint32_t i = 0; rt->kernels && i < p->kernel_count; i++)
        if (rt->kernels[i]) rt->devices[p->kernels[i].device].api->kernel_unload(rt->kernels[i]);
    for (uint32_t i = 0; rt->devices && i < p->device_count; i++) close_device(rt, &rt->devices[i]);
    for (uint32_t i = 0; i < ENT_RUNTIME_PLANS; i++) ent_runtime_plan_destroy(rt->plans[i]);
    free(rt->timings);
    ent_arena_destroy(rt->arena);
    ent_arena_destroy(rt->errors);
    free(rt);
}
