/* ent_runtime_v1 over host memory. A submission whose waits have passed runs inside submit; others go to the
 * queue's thread, which is made when it is first needed. */
#include "plugins/common/common.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* ---- buffers ---- */

struct ent_buffer {
    const ent_host *host;
    uint8_t *memory;
    uint64_t size_bytes;
    bool owned, read_only;
};

static ent_code make_buffer(ent_device *device, const ent_call *call, void *memory, uint64_t size_bytes,
                            bool read_only, ent_buffer **out) {
    ent_buffer *buffer = ent_common_allocate(device->host, sizeof *buffer);
    if (!buffer) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    buffer->host = device->host;
    buffer->owned = memory == NULL;
    buffer->memory =
        memory ? memory : device->host->allocate(device->host->context, size_bytes ? size_bytes : 1, 64);
    buffer->size_bytes = size_bytes;
    buffer->read_only = read_only;
    if (!buffer->memory) {
        ent_common_release(device->host, buffer);
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a buffer of %llu bytes",
                               (unsigned long long)size_bytes);
    }
    *out = buffer;
    return ENT_OK;
}

ent_code ent_common_buffer_create(ent_device *device, const ent_call *call, uint64_t size_bytes,
                                  ent_buffer **out) {
    return make_buffer(device, call, NULL, size_bytes, false, out);
}

ent_code ent_common_buffer_import(ent_device *device, const ent_call *call, void *memory, uint64_t size_bytes,
                                  bool read_only, ent_buffer **out) {
    if (!memory) return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT, "memory to import is NULL");
    return make_buffer(device, call, memory, size_bytes, read_only, out);
}

void ent_common_buffer_destroy(ent_buffer *buffer) {
    if (!buffer) return;
    if (buffer->owned) ent_common_release(buffer->host, buffer->memory);
    ent_common_release(buffer->host, buffer);
}

void *ent_common_buffer_map(ent_buffer *buffer) {
    return buffer->memory;
}

static bool in_buffer(const ent_buffer *buffer, uint64_t offset, uint64_t size) {
    return offset <= buffer->size_bytes && size <= buffer->size_bytes - offset;
}

ent_code ent_common_buffer_read(ent_buffer *buffer, uint64_t offset_bytes, void *out, uint64_t size_bytes) {
    if (!in_buffer(buffer, offset_bytes, size_bytes)) return ENT_CODE_INVALID_ARGUMENT;
    memcpy(out, buffer->memory + offset_bytes, size_bytes);
    return ENT_OK;
}

ent_code ent_common_buffer_write(ent_buffer *buffer, uint64_t offset_bytes, const void *data,
                                 uint64_t size_bytes) {
    if (buffer->read_only || !in_buffer(buffer, offset_bytes, size_bytes)) return ENT_CODE_INVALID_ARGUMENT;
    memcpy(buffer->memory + offset_bytes, data, size_bytes);
    return ENT_OK;
}

/* ---- fences ---- */

struct ent_fence {
    const ent_host *host;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t value;
    ent_code failure; /* sticky */
};

ent_code ent_common_fence_create(ent_device *device, const ent_call *call, uint64_t initial,
                                 ent_fence **out) {
    ent_fence *fence = ent_common_allocate(device->host, sizeof *fence);
    if (!fence) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    fence->host = device->host;
    fence->value = initial;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&fence->mutex, NULL);
    pthread_cond_init(&fence->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = fence;
    return ENT_OK;
}

void ent_common_fence_destroy(ent_fence *fence) {
    if (!fence) return;
    pthread_cond_destroy(&fence->changed);
    pthread_mutex_destroy(&fence->mutex);
    ent_common_release(fence->host, fence);
}

static void fence_set(ent_fence *fence, uint64_t value, ent_code failure) {
    pthread_mutex_lock(&fence->mutex);
    if (value > fence->value) fence->value = value;
    if (failure != ENT_OK && fence->failure == ENT_OK) fence->failure = failure;
    pthread_cond_broadcast(&fence->changed);
    pthread_mutex_unlock(&fence->mutex);
}

ent_code ent_common_fence_signal(ent_fence *fence, uint64_t value) {
    fence_set(fence, value, ENT_OK);
    return ENT_OK;
}

ent_code ent_common_fence_wait(ent_fence *fence, uint64_t value, uint64_t timeout_ns) {
    uint64_t now = ent_common_now_ns(), end = timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
    if (end / 1000000000u > 4000000000u) end = UINT64_C(4000000000) * 1000000000u;
    struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    ent_code code = ENT_OK;
    pthread_mutex_lock(&fence->mutex);
    while (fence->value < value && fence->failure == ENT_OK && code == ENT_OK)
        if (pthread_cond_timedwait(&fence->changed, &fence->mutex, &until) != 0 && fence->value < value &&
            fence->failure == ENT_OK && ent_common_now_ns() >= end)
            code = ENT_CODE_TIMEOUT;
    if (fence->failure != ENT_OK) code = fence->failure;
    pthread_mutex_unlock(&fence->mutex);
    return code;
}

uint64_t ent_common_fence_value(ent_fence *fence) {
    pthread_mutex_lock(&fence->mutex);
    uint64_t value = fence->value;
    pthread_mutex_unlock(&fence->mutex);
    return value;
}

/* True when the point is reached, or will never be (failure is then set). */
static bool fence_passed(const ent_fence_point *point, ent_code *failure) {
    pthread_mutex_lock(&point->fence->mutex);
    bool passed = point->fence->value >= point->value || point->fence->failure != ENT_OK;
    if (point->fence->failure != ENT_OK) *failure = point->fence->failure;
    pthread_mutex_unlock(&point->fence->mutex);
    return passed;
}

/* ---- queues ---- */

/* A submission kept for later: one block with copies of everything that submit borrowed. */
typedef struct pending {
    struct pending *next;
    ent_submit submit;
} pending;

struct ent_queue {
    const ent_host *host;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, stop;
    pending *first, *last;
    bool busy;
};

#define FEW_BINDINGS 64 /* these need no allocation */

static ent_code run_copy(const ent_step *step) {
    const ent_buffer_ref *from = &step->bindings[0], *to = &step->bindings[1];
    if (step->binding_count != 2 || from->size_bytes != to->size_bytes || to->buffer->read_only)
        return ENT_CODE_INVALID_ARGUMENT;
    if (!in_buffer(from->buffer, from->offset_bytes, from->size_bytes) ||
        !in_buffer(to->buffer, to->offset_bytes, to->size_bytes))
        return ENT_CODE_INVALID_ARGUMENT;
    memmove(to->buffer->memory + to->offset_bytes, from->buffer->memory + from->offset_bytes,
            from->size_bytes);
    return ENT_OK;
}

/* addresses: room for as many as the kernel has bindings. */
static ent_code run_kernel(const ent_step *step, void **addresses) {
    ent_kernel *kernel = step->kernel;
    for (uint32_t i = 0; i < step->binding_count; i++) {
        const ent_buffer_ref *ref = &step->bindings[i];
        if (!in_buffer(ref->buffer, ref->offset_bytes, ref->size_bytes)) return ENT_CODE_INVALID_ARGUMENT;
        if (kernel->binding_bytes && ref->size_bytes < kernel->binding_bytes[i])
            return ENT_CODE_INVALID_ARGUMENT;
        if (kernel->binding_writes && kernel->binding_writes[i] && ref->buffer->read_only)
            return ENT_CODE_INVALID_ARGUMENT;
        addresses[i] = ref->buffer->memory + ref->offset_bytes;
    }
    return kernel->run(kernel, addresses, step);
}

static ent_code run_dispatch(const ent_step *step) {
    void *few[FEW_BINDINGS];
    const ent_kernel *kernel = step->kernel;
    if (!kernel || step->binding_count != kernel->binding_count) return ENT_CODE_INVALID_ARGUMENT;
    if (step->binding_count <= FEW_BINDINGS) return run_kernel(step, few);
    void **many = ent_common_allocate(kernel->host, step->binding_count * sizeof *many);
    if (!many) return ENT_CODE_OUT_OF_MEMORY;
    ent_code code = run_kernel(step, many);
    ent_common_release(kernel->host, many);
    return code;
}

static void run_submit(const ent_submit *submit, ent_code failure) {
    for (uint32_t i = 0; i < submit->step_count && failure == ENT_OK; i++) {
        const ent_step *step = &submit->steps[i];
        if (step->timestamps) step->timestamps[0] = ent_common_now_ns();
        failure = step->kind == ENT_STEP_COPY ? run_copy(step) : run_dispatch(step);
        if (step->timestamps) step->timestamps[1] = ent_common_now_ns();
    }
    for (uint32_t i = 0; i < submit->signal_count; i++)
        fence_set(submit->signals[i].fence, failure == ENT_OK ? submit->signals[i].value : 0, failure);
}

static void *queue_main(void *argument) {
    ent_queue *queue = argument;
    pthread_mutex_lock(&queue->mutex);
    for (;;) {
        while (!queue->first && !queue->stop) pthread_cond_wait(&queue->changed, &queue->mutex);
        if (!queue->first) break;
        pending *item = queue->first;
        queue->first = item->next;
        if (!queue->first) queue->last = NULL;
        queue->busy = true;
        pthread_mutex_unlock(&queue->mutex);
        ent_code failure = ENT_OK;
        for (uint32_t i = 0; i < item->submit.wait_count && failure == ENT_OK; i++)
            failure =
                ent_common_fence_wait(item->submit.waits[i].fence, item->submit.waits[i].value, UINT64_MAX);
        run_submit(&item->submit, failure);
        ent_common_release(queue->host, item);
        pthread_mutex_lock(&queue->mutex);
        queue->busy = false;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    return NULL;
}

ent_code ent_common_queue_create(ent_device *device, const ent_call *call, ent_queue **out) {
    ent_queue *queue = ent_common_allocate(device->host, sizeof *queue);
    if (!queue) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    queue->host = device->host;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_cond_init(&queue->changed, NULL);
    *out = queue;
    return ENT_OK;
}

void ent_common_queue_destroy(ent_queue *queue) {
    if (!queue) return;
    pthread_mutex_lock(&queue->mutex);
    queue->stop = true;
    pthread_cond_broadcast(&queue->changed);
    bool has_thread = queue->has_thread;
    pthread_mutex_unlock(&queue->mutex);
    if (has_thread) pthread_join(queue->thread, NULL);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    ent_common_release(queue->host, queue);
}

/* Room for a deep copy; steps' bindings and symbols lie behind the steps. */
static size_t pending_bytes(const ent_submit *submit) {
    size_t size = sizeof(pending) +
                  (submit->wait_count + (size_t)submit->signal_count) * sizeof(ent_fence_point) +
                  submit->step_count * sizeof(ent_step);
    for (uint32_t i = 0; i < submit->step_count; i++)
        size += submit->steps[i].binding_count * sizeof(ent_buffer_ref) +
                submit->steps[i].symbol_count * sizeof(int64_t);
    return size;
}

static const void *put(uint8_t **at, const void *data, size_t size) {
    void *place = *at;
    if (size) memcpy(place, data, size);
    *at += size;
    return place;
}

static pending *copy_submit(ent_queue *queue, const ent_submit *submit) {
    pending *item = ent_common_allocate(queue->host, pending_bytes(submit));
    if (!item) return NULL;
    uint8_t *at = (uint8_t *)(item + 1);
    item->submit = *submit;
    item->submit.waits = put(&at, submit->waits, submit->wait_count * sizeof *submit->waits);
    item->submit.signals = put(&at, submit->signals, submit->signal_count * sizeof *submit->signals);
    ent_step *steps = (ent_step *)(uintptr_t)put(&at, submit->steps, submit->step_count * sizeof *steps);
    for (uint32_t i = 0; i < submit->step_count; i++) {
        steps[i].bindings = put(&at, steps[i].bindings, steps[i].binding_count * sizeof *steps[i].bindings);
        steps[i].symbols = put(&at, steps[i].symbols, steps[i].symbol_count * sizeof *steps[i].symbols);
    }
    item->submit.steps = steps;
    return item;
}

static ent_code enqueue(ent_queue *queue, const ent_call *call, const ent_submit *submit) {
    pending *item = copy_submit(queue, submit);
    if (!item) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a queued submission");
    pthread_mutex_lock(&queue->mutex);
    if (!queue->has_thread) queue->has_thread = pthread_create(&queue->thread, NULL, queue_main, queue) == 0;
    bool running = queue->has_thread;
    if (running) {
        if (queue->last)
            queue->last->next = item;
        else
            queue->first = item;
        queue->last = item;
        pthread_cond_broadcast(&queue->changed);
    }
    pthread_mutex_unlock(&queue->mutex);
    if (running) return ENT_OK;
    ent_common_release(queue->host, item);
    return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "no thread for the queue");
}

ent_code ent_common_submit(ent_queue *queue, const ent_call *call, const ent_submit *submit) {
    if (submit->head.type & ENT_MUST_UNDERSTAND) return ENT_CODE_UNSUPPORTED;
    bool ready = true;
    ent_code failure = ENT_OK;
    for (uint32_t i = 0; i < submit->wait_count && ready; i++)
        ready = fence_passed(&submit->waits[i], &failure);
    pthread_mutex_lock(&queue->mutex);
    bool idle = !queue->first && !queue->busy;
    pthread_mutex_unlock(&queue->mutex);
    if (!ready || !idle) return enqueue(queue, call, submit);
    run_submit(submit, failure);
    return ENT_OK;
}

ent_code ent_common_kernel_info(ent_kernel *kernel, ent_kernel_info *out) {
    ent_kernel_info info = {.tier = kernel->tier, .scratch_bytes = kernel->scratch_bytes};
    memcpy(info.path, kernel->path, sizeof info.path);
    uint32_t size = out->size < sizeof info ? out->size : (uint32_t)sizeof info;
    info.size = out->size;
    memcpy(out, &info, size);
    return ENT_OK;
}
