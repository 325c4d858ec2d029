#include "core/base/base.h"

#include <stdatomic.h>
#include <string.h>

#define LINE_BYTES 4096

static atomic_int log_level = ENT_LOG_WARNING;
static _Atomic(const ent_log_sink *) log_sink;

void ent_log_set_sink(const ent_log_sink *sink) {
    atomic_store(&log_sink, sink);
}

void ent_log_clear_sink(const ent_log_sink *sink) {
    const ent_log_sink *expected = sink;
    atomic_compare_exchange_strong(&log_sink, &expected, NULL);
}

void ent_log_set_level(ent_log_level level) {
    atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
}

bool ent_log_enabled(ent_log_level level) {
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

void ent_log(ent_log_level level, const char *format, ...) {
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (!ent_log_enabled(level)) return;
    char line[LINE_BYTES];
    int prefix = snprintf(line, sizeof line, "entente: %s: ", names[level]);
    size_t size = (size_t)prefix;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + size, sizeof line - size - 1, format, arguments);
    va_end(arguments);
    if (length < 0) return;
    if ((size_t)length < sizeof line - size - 1) {
        size += (size_t)length;
    } else {
        size = sizeof line - 2;
        memcpy(line + size - 3, "...", 3);
    }
    /* Names come from files: a line break in one must not forge a second line, nor an escape drive the
     * terminal. */
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f) line[i] = ' ';
    const ent_log_sink *sink = atomic_load(&log_sink);
    if (sink) {
        line[size] = '\0';
        sink->write(sink->context, (int)level, line + prefix);
        return;
    }
    line[size++] = '\n';
    fwrite(line, 1, size, stderr); /* one call, so that lines of several threads do not mix */
}
