#include "core/base/base.h"

ent_status ent_status_make(ent_arena *arena, ent_error_code code, const char *rule, const char *place,
                           const char *format, ...) {
    ent_status_data *status = ent_arena_alloc(arena, sizeof *status);
    status->code = code;
    status->rule = rule;
    status->place = ent_arena_strdup(arena, place ? place : "");
    va_list arguments;
    va_start(arguments, format);
    status->text = ent_arena_format_list(arena, format, arguments);
    va_end(arguments);
    return status;
}

ent_status ent_status_out_of_memory(void) {
    static const ent_status_data status = {
        ENT_ERROR_LIMIT, "memory.exhausted", "",
        "not enough memory; use a smaller model or shape, or raise the memory limit"};
    return &status;
}

const char *ent_status_text(ent_arena *arena, ent_status status) {
    if (!status) return "ok";
    const char *separator = status->place[0] ? ": " : "";
    return ent_arena_format(arena, "%s%s%s [%s]", status->place, separator, status->text, status->rule);
}
