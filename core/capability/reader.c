/* Checked reading of JSON objects. */
#include "core/capability/reader.h"

#include <math.h>
#include <string.h>

void ent_reader_open(ent_reader *reader, ent_arena *arena, const char *document, const char *pointer,
                     const cJSON *object) {
    memset(reader, 0, sizeof *reader);
    reader->arena = arena;
    reader->document = document;
    reader->pointer = pointer;
    reader->object = object;
    if (!cJSON_IsObject(object)) ent_reader_fail(reader, NULL, "capability.type", "must be an object");
}

void ent_reader_item(const ent_reader *parent, const char *field, uint32_t index, const cJSON *item,
                     ent_reader *out) {
    ent_reader_open(out, parent->arena, parent->document,
                    ent_arena_format(parent->arena, "%s/%s/%u", parent->pointer, field, index), item);
}

void ent_reader_fail(ent_reader *reader, const char *field, const char *rule, const char *format, ...) {
    if (reader->status) return;
    va_list list;
    va_start(list, format);
    const char *text = ent_arena_format_list(reader->arena, format, list);
    va_end(list);
    const char *place = ent_arena_format(reader->arena, "%s: %s%s%s", reader->document, reader->pointer,
                                         field || !reader->pointer[0] ? "/" : "", field ? field : "");
    reader->status = ent_status_make(reader->arena, ENT_ERROR_DEVICE, rule, place, "%s", text);
}

static const cJSON *fetch(ent_reader *reader, const char *field, bool required) {
    if (reader->status) return NULL;
    if (reader->known_count < sizeof reader->known / sizeof reader->known[0])
        reader->known[reader->known_count++] = field;
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(reader->object, field);
    if (!item && required) ent_reader_fail(reader, field, "capability.missing", "is required");
    return item;
}

ent_status ent_reader_finish(ent_reader *reader) {
    if (reader->status) return reader->status;
    for (const cJSON *item = reader->object->child; item; item = item->next) {
        if (cJSON_GetObjectItemCaseSensitive(reader->object, item->string) != item)
            ent_reader_fail(reader, item->string, "capability.duplicate", "stands twice in this object");
        bool known = strncmp(item->string, "x-", 2) == 0 || item->string[0] == '$';
        for (uint32_t i = 0; i < reader->known_count && !known; i++)
            known = strcmp(reader->known[i], item->string) == 0;
        if (!known)
            ent_reader_fail(reader, item->string, "capability.unknown-field",
                            "is not a field of schema 1; prefix it with x- to keep it as a remark");
    }
    return reader->status;
}

const char *ent_reader_text(ent_reader *reader, const char *field, bool required, const char *missing) {
    const cJSON *item = fetch(reader, field, required);
    if (!item) return missing;
    if (!cJSON_IsString(item)) {
        ent_reader_fail(reader, field, "capability.type", "must be a string");
        return missing;
    }
    if (required && !item->valuestring[0])
        ent_reader_fail(reader, field, "capability.missing", "must not be empty");
    return ent_arena_strdup(reader->arena, item->valuestring);
}

uint32_t ent_reader_word(ent_reader *reader, const char *field, bool required, const char *const *words,
                         uint32_t count) {
    const char *text = ent_reader_text(reader, field, required, NULL);
    if (!text || reader->status) return count;
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0) return i;
    ent_text list;
    ent_text_init(&list, reader->arena);
    for (uint32_t i = 0; i < count; i++) ent_text_add(&list, "%s%s", i ? ", " : "", words[i]);
    ent_reader_fail(reader, field, "capability.word", "'%s' is none of: %s", text, list.data);
    return count;
}

double ent_reader_number(ent_reader *reader, const char *field, bool required, double missing, double min,
                         double max) {
    const cJSON *item = fetch(reader, field, required);
    if (!item) return missing;
    double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    if (!isfinite(value) || value < min || value > max) {
        ent_reader_fail(reader, field, "capability.range", "must be a number from %.12g to %.12g", min, max);
        return missing;
    }
    return value;
}

int64_t ent_reader_int(ent_reader *reader, const char *field, bool required, int64_t missing, int64_t min,
                       int64_t max) {
    double value = ent_reader_number(reader, field, required, (double)missing, (double)min, (double)max);
    if (!reader->status && value != floor(value))
        ent_reader_fail(reader, field, "capability.range", "must be a whole number");
    return (int64_t)value;
}

bool ent_reader_bool(ent_reader *reader, const char *field, bool missing) {
    const cJSON *item = fetch(reader, field, false);
    if (!item) return missing;
    if (!cJSON_IsBool(item)) ent_reader_fail(reader, field, "capability.type", "must be true or false");
    return cJSON_IsTrue(item);
}

const cJSON *ent_reader_array(ent_reader *reader, const char *field, bool required, bool strings) {
    const cJSON *item = fetch(reader, field, required), *element;
    if (!item) return NULL;
    bool good = cJSON_IsArray(item);
    if (good)
        cJSON_ArrayForEach(element, item) good &= strings ? cJSON_IsString(element) : cJSON_IsObject(element);
    if (good) return item;
    ent_reader_fail(reader, field, "capability.type", "must be an array of %s",
                    strings ? "strings" : "objects");
    return NULL;
}

const cJSON *ent_reader_object(ent_reader *reader, const char *field, bool required) {
    const cJSON *item = fetch(reader, field, required);
    if (!item || cJSON_IsObject(item)) return item;
    ent_reader_fail(reader, field, "capability.type", "must be an object");
    return NULL;
}

const char *const *ent_reader_texts(ent_reader *reader, const char *field, uint32_t *out_count) {
    const cJSON *array = ent_reader_array(reader, field, false, true), *item;
    uint32_t count = 0;
    const char **out =
        ent_arena_alloc(reader->arena, (array ? (size_t)cJSON_GetArraySize(array) + 1 : 1) * sizeof *out);
    if (array)
        cJSON_ArrayForEach(item, array) out[count++] = ent_arena_strdup(reader->arena, item->valuestring);
    *out_count = count;
    return out;
}
