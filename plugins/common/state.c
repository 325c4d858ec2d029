/* Plugin state, memory, errors, parameters, replies. */
#include "plugins/common/common.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

void *ent_common_allocate(const ent_host *host, size_t size_bytes) {
    void *memory = host->allocate(host->context, size_bytes ? size_bytes : 1, 64);
    if (memory) memset(memory, 0, size_bytes);
    return memory;
}

void ent_common_release(const ent_host *host, void *memory) {
    if (memory) host->release(host->context, memory);
}

ent_code ent_common_open(const ent_host *host, const ent_call *call, ent_state **out) {
    ent_state *state = ent_common_allocate(host, sizeof *state);
    if (!state) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    state->host = host;
    *out = state;
    return ENT_OK;
}

void ent_common_close(ent_state *state) {
    if (state) ent_common_release(state->host, state);
}

ent_code ent_common_fail(const ent_call *call, ent_code code, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (size < 0) size = 0;
    if ((size_t)size >= sizeof text) size = sizeof text - 1;
    if (call && call->fail) call->fail(call->context, (ent_str){text, (size_t)size});
    return code;
}

void ent_common_log_failure(const ent_host *host, const char *who, const char *why) {
    char line[320];
    int size = snprintf(line, sizeof line, "%s: %s", who, why);
    if (size > 0 && host->log)
        host->log(host->context, 0,
                  (ent_str){line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1});
}

bool ent_common_bindings_fit(const ent_step *step, const uint64_t *bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (step->bindings[i].size_bytes < bytes[i]) return false;
    return true;
}

ent_code ent_common_reply(const ent_call *call, const void *data, size_t size, ent_bytes *out) {
    uint8_t *copy = call->allocate(call->context, size ? size : 1);
    if (!copy)
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a reply of %zu bytes", size);
    if (size) memcpy(copy, data, size);
    *out = (ent_bytes){copy, size};
    return ENT_OK;
}

static bool str_is(ent_str text, const char *word) {
    return strlen(word) == text.size && memcmp(text.data, word, text.size) == 0;
}

const ent_parameter *ent_common_parameter(const ent_parameter *parameters, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (str_is(parameters[i].name, name)) return &parameters[i];
    return NULL;
}

ent_code ent_common_check_parameters(const ent_call *call, const ent_parameter *parameters, size_t count,
                                     const char *const *known) {
    for (size_t i = 0; i < count; i++) {
        bool good = parameters[i].name.size > 5 && memcmp(parameters[i].name.data, "hint.", 5) == 0;
        for (size_t k = 0; known[k] && !good; k++) good = str_is(parameters[i].name, known[k]);
        if (!good)
            return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT,
                                   "this device has no parameter '%.*s' (value '%.*s')",
                                   (int)parameters[i].name.size, parameters[i].name.data,
                                   (int)parameters[i].value.size, parameters[i].value.data);
    }
    return ENT_OK;
}

/* Call memory cannot be resized: each growth is a fresh block, the writer's old bytes are copied. ctx is the
 * call; the old size is not known here, so blocks carry it in front. */
static void *grow(void *context, void *old, size_t size_bytes) {
    const ent_call *call = context;
    size_t *block = call->allocate(call->context, size_bytes + 2 * sizeof(size_t));
    if (!block) return NULL;
    block[0] = size_bytes;
    if (old) memcpy(block + 2, old, ((size_t *)old)[-2]);
    return block + 2;
}

void ent_common_writer(ent_message_writer *writer, const ent_call *call, uint32_t kind) {
    memset(writer, 0, sizeof *writer);
    writer->grow = grow;
    writer->ctx = (void *)(uintptr_t)call;
    ent_message_begin(writer, kind);
}

uint64_t ent_common_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
