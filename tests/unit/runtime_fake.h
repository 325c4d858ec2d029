/* A plugin of the tests' own, linked into them: devices on host memory whose kernels interpret a line of
 * text.
 *
 * Blobs: "add" a b -> c; "scale K" a -> b; "greater K" and "below K" a -> bool; "fill" -> a, all elements the
 * first symbol; "nop"; "fail" fails when it runs; "isa X" is refused by the blob check, "refused" by
 * kernel_load. Elements are f32. Variants: "" runs inside submit and lets everybody at its memory; "far" has
 * memory that only read and write reach and imports nothing; "lazy" runs when somebody waits for the fence.
 * Parameter "threads" is known to "" only. */
#ifndef RUNTIME_FAKE_H
#define RUNTIME_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/ent_plugin.h"

typedef struct fake_counts {
    uint32_t created, imported, destroyed, kernels, submits, steps, open_devices;
    const void *last_import;
    char threads[16];
} fake_counts;
static fake_counts fake;

struct ent_state {
    int unused;
};
struct ent_device {
    char variant[16];
};
struct ent_buffer {
    uint8_t *memory;
    uint64_t size_bytes;
    bool owned, visible, read_only;
};
struct ent_kernel {
    char text[64];
};
typedef struct fake_job {
    ent_step *steps;
    uint32_t count;
    ent_fence *fence;
    uint64_t value;
    struct fake_job *next;
} fake_job;
struct ent_fence {
    uint64_t value;
    ent_code error;
    fake_job *jobs; /* lazy: not done yet, oldest first */
};
struct ent_queue {
    ent_device *device;
};

static ent_code fake_fail(const ent_call *call, ent_code code, const char *text) {
    if (call && call->fail) call->fail(call->context, (ent_str){text, strlen(text)});
    return code;
}

static ent_code fake_open(const ent_host *host, const ent_call *call, ent_state **out) {
    static ent_state state;
    (void)host, (void)call;
    *out = &state;
    return ENT_OK;
}

static void fake_close(ent_state *state) {
    (void)state;
}

static ent_code fake_list(ent_state *state, const ent_call *call, ent_bytes *out) {
    (void)state, (void)call;
    *out = (ent_bytes){(const uint8_t *)"fake", 4};
    return ENT_OK;
}

static ent_code fake_device_open(ent_state *state, const ent_call *call, const ent_parameter *parameters,
                                 size_t count, ent_device **out) {
    ent_device *device = calloc(1, sizeof *device);
    const char *failure = NULL;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        const ent_parameter *p = &parameters[i];
        if (p->name.size == 7 && !memcmp(p->name.data, "variant", 7))
            snprintf(device->variant, sizeof device->variant, "%.*s", (int)p->value.size, p->value.data);
    }
    for (size_t i = 0; i < count; i++) {
        const ent_parameter *p = &parameters[i];
        bool is_threads = p->name.size == 7 && !memcmp(p->name.data, "threads", 7);
        if (is_threads)
            snprintf(fake.threads, sizeof fake.threads, "%.*s", (int)p->value.size, p->value.data);
        if (is_threads && device->variant[0]) failure = "unknown parameter threads";
    }
    if (failure || !strcmp(device->variant, "absent")) {
        free(device);
        return fake_fail(call, ENT_CODE_INVALID_ARGUMENT, failure ? failure : "there is no such device here");
    }
    fake.open_devices++;
    *out = device;
    return ENT_OK;
}

static void fake_device_close(ent_device *device) {
    if (device) fake.open_devices--;
    free(device);
}

static ent_code fake_declare(ent_device *device, const ent_call *call, ent_bytes *out) {
    (void)device, (void)call;
    *out = (ent_bytes){(const uint8_t *)"{}", 2};
    return ENT_OK;
}

static ent_code fake_check(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size) {
    (void)state;
    if (size > 4 && !memcmp(blob, "isa ", 4))
        return fake_fail(call, ENT_CODE_ISA_MISSING, "wants wide, this machine has narrow");
    return ENT_OK;
}

static ent_buffer *fake_buffer(uint8_t *memory, uint64_t size, bool owned, bool visible) {
    ent_buffer *buffer = calloc(1, sizeof *buffer);
    buffer->memory = owned ? aligned_alloc(64, (size + 64) / 64 * 64) : memory;
    buffer->size_bytes = size;
    buffer->owned = owned;
    buffer->visible = visible;
    if (owned) memset(buffer->memory, 0xee, size);
    return buffer;
}

static bool fake_is(const ent_device *device, const char *variant) {
    return strcmp(device->variant, variant) == 0;
}

static ent_code fake_create(ent_device *device, const ent_call *call, uint64_t size, ent_buffer **out) {
    (void)call;
    fake.created++;
    *out = fake_buffer(NULL, size, true, !fake_is(device, "far"));
    return ENT_OK;
}

static ent_code fake_import(ent_device *device, const ent_call *call, void *memory, uint64_t size,
                            bool read_only, ent_buffer **out) {
    if (fake_is(device, "far")) return fake_fail(call, ENT_CODE_UNSUPPORTED, "this memory is elsewhere");
    fake.imported++;
    fake.last_import = memory;
    *out = fake_buffer(memory, size, false, true);
    (*out)->read_only = read_only;
    return ENT_OK;
}

static void fake_destroy(ent_buffer *buffer) {
    fake.destroyed++;
    if (buffer->owned) free(buffer->memory);
    free(buffer);
}

static void *fake_map(ent_buffer *buffer) {
    return buffer->visible ? buffer->memory : NULL;
}

static ent_code fake_read(ent_buffer *buffer, uint64_t offset, void *out, uint64_t size) {
    if (offset > buffer->size_bytes || size > buffer->size_bytes - offset) return ENT_CODE_INVALID_ARGUMENT;
    memcpy(out, buffer->memory + offset, size);
    return ENT_OK;
}

static ent_code fake_write(ent_buffer *buffer, uint64_t offset, const void *data, uint64_t size) {
    if (buffer->read_only || offset > buffer->size_bytes || size > buffer->size_bytes - offset)
        return ENT_CODE_INVALID_ARGUMENT;
    memcpy(buffer->memory + offset, data, size);
    return ENT_OK;
}

static ent_code fake_queue_create(ent_device *device, const ent_call *call, ent_queue **out) {
    (void)call;
    *out = calloc(1, sizeof **out);
    (*out)->device = device;
    return ENT_OK;
}

static void fake_queue_destroy(ent_queue *queue) {
    free(queue);
}

static ent_code fake_fence_create(ent_device *device, const ent_call *call, uint64_t initial,
                                  ent_fence **out) {
    (void)device, (void)call;
    *out = calloc(1, sizeof **out);
    (*out)->value = initial;
    return ENT_OK;
}

static void fake_fence_destroy(ent_fence *fence) {
    free(fence);
}

static ent_code fake_fence_signal(ent_fence *fence, uint64_t value) {
    fence->value = value;
    return ENT_OK;
}

static uint64_t fake_fence_value(ent_fence *fence) {
    return fence->value;
}

static void *fake_at(const ent_buffer_ref *ref) {
    if (!ref->buffer || ref->offset_bytes > ref->buffer->size_bytes ||
        ref->size_bytes > ref->buffer->size_bytes - ref->offset_bytes) {
        fprintf(stderr, "fake plugin: a binding lies outside its buffer\n");
        abort();
    }
    return ref->buffer->memory + ref->offset_bytes;
}

static ent_code fake_dispatch(const ent_step *s) {
    const char *text = s->kernel->text;
    const ent_buffer_ref *b = s->bindings;
    if (!strcmp(text, "nop")) return ENT_OK;
    if (!strcmp(text, "fail")) return ENT_CODE_INTERNAL;
    if (b[s->binding_count - 1].buffer->read_only) abort();
    if (!strcmp(text, "add"))
        for (uint64_t i = 0; i < b[2].size_bytes / 4; i++)
            ((float *)fake_at(&b[2]))[i] = ((float *)fake_at(&b[0]))[i] + ((float *)fake_at(&b[1]))[i];
    if (!strncmp(text, "scale ", 6))
        for (uint64_t i = 0; i < b[1].size_bytes / 4; i++)
            ((float *)fake_at(&b[1]))[i] = ((float *)fake_at(&b[0]))[i] * (float)atof(text + 6);
    if (!strncmp(text, "greater ", 8))
        *(uint8_t *)fake_at(&b[1]) = ((float *)fake_at(&b[0]))[0] > (float)atof(text + 8);
    if (!strncmp(text, "below ", 6))
        *(uint8_t *)fake_at(&b[1]) = ((float *)fake_at(&b[0]))[0] < (float)atof(text + 6);
    if (!strcmp(text, "fill"))
        for (uint64_t i = 0; i < b[0].size_bytes / 4; i++)
            ((float *)fake_at(&b[0]))[i] = (float)s->symbols[0];
    return ENT_OK;
}

static ent_code fake_run(const ent_step *steps, uint32_t count) {
    static uint64_t clock = 1000;
    for (uint32_t i = 0; i < count; i++) {
        const ent_step *s = &steps[i];
        if (s->timestamps) s->timestamps[0] = clock++;
        fake.steps++;
        if (s->kind == ENT_STEP_COPY) {
            if (s->bindings[0].size_bytes != s->bindings[1].size_bytes || s->bindings[1].buffer->read_only)
                abort();
            memcpy(fake_at(&s->bindings[1]), fake_at(&s->bindings[0]), s->bindings[0].size_bytes);
        } else {
            ent_code code = fake_dispatch(s);
            if (code != ENT_OK) return code;
        }
        if (s->timestamps) s->timestamps[1] = clock++;
    }
    return ENT_OK;
}

static void fake_drain(ent_fence *fence) {
    while (fence->jobs) {
        fake_job *job = fence->jobs;
        ent_code code = fake_run(job->steps, job->count);
        if (code != ENT_OK) fence->error = code;
        fence->value = job->value;
        fence->jobs = job->next;
        for (uint32_t i = 0; i < job->count; i++) free((void *)(uintptr_t)job->steps[i].bindings);
        free(job->steps);
        free(job);
    }
}

static ent_code fake_fence_wait(ent_fence *fence, uint64_t value, uint64_t timeout) {
    (void)timeout;
    fake_drain(fence);
    if (fence->error) return fence->error;
    if (fence->value < value) abort(); /* would wait for ever */
    return ENT_OK;
}

static void fake_defer(const ent_submit *submit) {
    fake_job *job = calloc(1, sizeof *job), **link = &submit->signals[0].fence->jobs;
    job->steps = calloc(submit->step_count, sizeof *job->steps);
    job->count = submit->step_count;
    job->value = submit->signals[0].value;
    for (uint32_t i = 0; i < job->count; i++) {
        ent_buffer_ref *bindings = calloc(submit->steps[i].binding_count + 1, sizeof *bindings);
        memcpy(bindings, submit->steps[i].bindings, submit->steps[i].binding_count * sizeof *bindings);
        job->steps[i] = submit->steps[i];
        job->steps[i].bindings = bindings;
    }
    while (*link) link = &(*link)->next;
    *link = job;
}

static ent_code fake_submit(ent_queue *queue, const ent_call *call, const ent_submit *submit) {
    (void)call;
    fake.submits++;
    if (fake_is(queue->device, "lazy")) {
        fake_defer(submit);
        return ENT_OK;
    }
    for (uint32_t i = 0; i < submit->wait_count; i++)
        if (submit->waits[i].fence->value < submit->waits[i].value) abort();
    ent_code code = fake_run(submit->steps, submit->step_count);
    for (uint32_t i = 0; i < submit->signal_count; i++) {
        submit->signals[i].fence->value = submit->signals[i].value;
        if (code != ENT_OK) submit->signals[i].fence->error = code;
    }
    return ENT_OK;
}

static ent_code fake_kernel_load(ent_device *device, const ent_call *call, const uint8_t *blob, size_t size,
                                 ent_kernel **out) {
    (void)device;
    if (size == 7 && !memcmp(blob, "refused", 7))
        return fake_fail(call, ENT_CODE_UNSUPPORTED, "this blob is of another kind");
    fake.kernels++;
    *out = calloc(1, sizeof **out);
    snprintf((*out)->text, sizeof(*out)->text, "%.*s", (int)size, (const char *)blob);
    return ENT_OK;
}

static void fake_kernel_unload(ent_kernel *kernel) {
    fake.kernels--;
    free(kernel);
}

static ent_code fake_kernel_info(ent_kernel *kernel, ent_kernel_info *out) {
    out->tier = ENT_TIER_EMULATED;
    snprintf(out->path, sizeof out->path, "fake %.50s", kernel->text);
    return ENT_OK;
}

static const ent_device_v1 fake_device_table = {{sizeof fake_device_table, ENT_STRUCT_DEVICE_V1, NULL},
                                                fake_list,
                                                fake_device_open,
                                                fake_device_close,
                                                fake_declare};
static const ent_blob_v1 fake_blob_table = {
    {sizeof fake_blob_table, ENT_STRUCT_BLOB_V1, NULL}, fake_check, NULL};
static const ent_runtime_v1 fake_runtime_table = {{sizeof fake_runtime_table, ENT_STRUCT_RUNTIME_V1, NULL},
                                                  fake_create,
                                                  fake_import,
                                                  fake_destroy,
                                                  fake_map,
                                                  fake_read,
                                                  fake_write,
                                                  fake_queue_create,
                                                  fake_queue_destroy,
                                                  fake_fence_create,
                                                  fake_fence_destroy,
                                                  fake_fence_signal,
                                                  fake_fence_wait,
                                                  fake_fence_value,
                                                  fake_kernel_load,
                                                  fake_kernel_unload,
                                                  fake_kernel_info,
                                                  fake_submit};

static const void *fake_get_interface(uint32_t id, uint32_t version) {
    if (version != 1) return NULL;
    if (id == ENT_INTERFACE_DEVICE) return &fake_device_table;
    if (id == ENT_INTERFACE_BLOB) return &fake_blob_table;
    return id == ENT_INTERFACE_RUNTIME ? &fake_runtime_table : NULL;
}

static const ent_plugin fake_plugin = {{sizeof fake_plugin, ENT_STRUCT_PLUGIN, NULL},
                                       1,
                                       1,
                                       ENT_STR("fake"),
                                       ENT_STR("tests"),
                                       ENT_STR("1"),
                                       ENT_DEPTH_REGION,
                                       1,
                                       fake_open,
                                       fake_close,
                                       fake_get_interface};

#endif
