/* Message <-> JSON. The table in ent_message.def drives both ways. Whether a record survives the way through
 * JSON is not argued but tried: what was written is read back, and where the bytes differ the record becomes
 * hex. */
#include "core/host/message_json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_LIMIT (INT64_C(1) << 53)

/* ---- to JSON ---- */

static void add_hex(ent_text *out, const uint8_t *data, size_t size) {
    static const char digits[] = "0123456789abcdef";
    ent_text_add(out, "\"");
    for (size_t i = 0; i < size; i++) {
        char pair[2] = {digits[data[i] >> 4], digits[data[i] & 15]};
        ent_text_add_bytes(out, pair, 2);
    }
    ent_text_add(out, "\"");
}

static void add_word(ent_text *out, uint32_t type, uint64_t word) {
    if (type == ENT_FIELD_TYPE_F64 || type == ENT_FIELD_TYPE_F64S) {
        double value = ent_bits_to_f64(word);
        bool finite = value - value == 0;
        if (!finite) ent_text_add(out, "\"");
        ent_text_add_number(out, value, false);
        if (!finite) ent_text_add(out, "\"");
    } else if (type == ENT_FIELD_TYPE_I64 || type == ENT_FIELD_TYPE_I64S) {
        int64_t value = (int64_t)word;
        const char *quote = value > EXACT_LIMIT || value < -EXACT_LIMIT ? "\"" : "";
        ent_text_add(out, "%s%" PRId64 "%s", quote, value, quote);
    } else {
        const char *quote = word > (uint64_t)EXACT_LIMIT ? "\"" : "";
        ent_text_add(out, "%s%" PRIu64 "%s", quote, word, quote);
    }
}

static void add_field(ent_text *out, const ent_message_record *record, const ent_message_field_info *field) {
    ent_text_add(out, ",\"%s\":", field->name);
    if (field->type < ENT_FIELD_TYPE_STR) {
        add_word(out, field->type, ent_message_get_u64(record, field->index));
    } else if (field->type < ENT_FIELD_TYPE_I64S) {
        ent_str text = ent_message_get_str(record, field->index);
        if (field->type == ENT_FIELD_TYPE_STR)
            ent_text_add_json_string(out, text.data, text.size);
        else
            add_hex(out, (const uint8_t *)text.data, text.size);
    } else {
        ent_message_array array = ent_message_get_array(record, field->index);
        ent_text_add(out, "[");
        for (uint32_t i = 0; i < array.count; i++) {
            if (i > 0) ent_text_add(out, ",");
            add_word(out, field->type, ent_message_u64_at(array, i));
        }
        ent_text_add(out, "]");
    }
}

static void add_readable(ent_text *out, const ent_message_record *record,
                         const ent_message_record_info *info) {
    ent_text_add(out, "{\"record\":\"%s\"", info->name);
    if (record->version != info->version) ent_text_add(out, ",\"version\":%u", record->version);
    if (record->field_count != ent_message_field_count(info))
        ent_text_add(out, ",\"fields\":%u", record->field_count);
    for (uint32_t i = 0; i < record->field_count; i++) {
        const ent_message_field_info *field = ent_message_field_find(info, i);
        if (field && ent_message_slot(record, i) != 0) add_field(out, record, field);
    }
    ent_text_add(out, "}");
}

static void add_raw(ent_text *out, const ent_message_record *record, const ent_message_record_info *info) {
    if (info)
        ent_text_add(out, "{\"record\":\"%s\",\"hex\":", info->name);
    else
        ent_text_add(out, "{\"record\":\"0x%" PRIx32 "\",\"hex\":", record->tag);
    add_hex(out, record->data, (size_t)record->size);
    ent_text_add(out, "}");
}

static ent_status write_record(ent_arena *arena, ent_message_writer *writer, const cJSON *object,
                               uint32_t index);

/* Reads the record's JSON back and compares it with the bytes it came from. */
static bool survives(ent_arena *arena, const ent_message_record *record, const char *json, size_t size) {
    ent_arena_mark mark = ent_arena_save(arena);
    ent_arena_growth growth = {arena, 0};
    ent_message_writer writer = {.grow = ent_arena_grow, .ctx = &growth};
    cJSON *object = cJSON_ParseWithLength(json, size);
    ent_message_begin(&writer, ENT_MESSAGE_NONE);
    bool same = object && !write_record(arena, &writer, object, 0) && ent_message_end(&writer) == ENT_OK &&
                writer.size == ENT_MESSAGE_HEADER_BYTES + record->size &&
                memcmp(writer.data + ENT_MESSAGE_HEADER_BYTES, record->data, (size_t)record->size) == 0;
    cJSON_Delete(object);
    ent_arena_restore(arena, mark);
    return same;
}

static void add_record(ent_arena *arena, ent_text *out, ent_text *scratch, const ent_message_record *record) {
    const ent_message_record_info *info = ent_message_record_find(record->tag);
    if (!info) {
        add_raw(out, record, NULL);
        return;
    }
    scratch->size = 0;
    add_readable(scratch, record, info);
    if (survives(arena, record, scratch->data, scratch->size))
        ent_text_add_bytes(out, scratch->data, scratch->size);
    else
        add_raw(out, record, info);
}

ent_status ent_host_message_to_json(ent_arena *arena, const uint8_t *bytes, size_t size, ent_str *out) {
    ent_text text, scratch;
    ent_message_reader reader;
    ent_message_record record;
    ent_text_init(&text, arena);
    ent_text_init(&scratch, arena);
    if (ent_message_open(&reader, bytes, size) != ENT_OK) {
        ent_text_add(&text, "{\"message\":\"unreadable\",\"hex\":");
        add_hex(&text, bytes, size);
        ent_text_add(&text, "}");
    } else {
        const char *kind = ent_message_kind_name(reader.kind);
        const char *comma = "";
        if (kind)
            ent_text_add(&text, "{\"message\":\"%s\",\"records\":[", kind);
        else
            ent_text_add(&text, "{\"message\":%" PRIu32 ",\"records\":[", reader.kind);
        while (ent_message_next(&reader, &record)) {
            ent_text_add(&text, "%s", comma);
            add_record(arena, &text, &scratch, &record);
            comma = ",";
        }
        ent_text_add(&text, "]}");
    }
    out->data = text.data;
    out->size = text.size;
    return ent_arena_failed(arena) ? ent_status_out_of_memory() : NULL;
}

/* ---- from JSON ---- */

static ent_status json_error(ent_arena *arena, uint32_t record, const char *field, const char *text) {
    const char *place = ent_arena_format(arena, "message record %u, %s", record, field);
    return ent_status_make(arena, ENT_ERROR_MODEL, "message.json", place,
                           "%s; restore this line of the transcript", text);
}

static const cJSON *member(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool parse_f64(const cJSON *item, uint64_t *out) {
    double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
    if (cJSON_IsString(item)) {
        if (strcmp(item->valuestring, "nan") == 0)
            value = (double)__builtin_nanf("");
        else if (strcmp(item->valuestring, "inf") == 0)
            value = __builtin_inf();
        else if (strcmp(item->valuestring, "-inf") == 0)
            value = -__builtin_inf();
        else
            return false;
    } else if (!cJSON_IsNumber(item)) {
        return false;
    }
    *out = ent_bits_from_f64(value);
    return true;
}

static bool parse_integer(const cJSON *item, bool is_signed, uint64_t *out) {
    if (cJSON_IsNumber(item)) {
        double value = item->valuedouble;
        if (!(value >= (is_signed ? -(double)EXACT_LIMIT : 0.0) && value <= (double)EXACT_LIMIT))
            return false;
        *out = (uint64_t)(int64_t)value;
        return (double)(int64_t)value == value;
    }
    if (!cJSON_IsString(item)) return false;
    const char *digits = item->valuestring + (is_signed && item->valuestring[0] == '-');
    if (*digits < '0' || *digits > '9') return false;
    char *end = NULL;
    errno = 0;
    if (is_signed)
        *out = (uint64_t)strtoll(item->valuestring, &end, 10);
    else
        *out = strtoull(item->valuestring, &end, 10);
    return errno == 0 && *end == 0;
}

static bool parse_word(const cJSON *item, uint32_t type, uint64_t *out) {
    if (type == ENT_FIELD_TYPE_F64 || type == ENT_FIELD_TYPE_F64S) return parse_f64(item, out);
    return parse_integer(item, type == ENT_FIELD_TYPE_I64 || type == ENT_FIELD_TYPE_I64S, out);
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL when the item is no hex string. */
static uint8_t *parse_hex(ent_arena *arena, const cJSON *item, size_t *out_size) {
    if (!cJSON_IsString(item) || strlen(item->valuestring) % 2 != 0) return NULL;
    *out_size = strlen(item->valuestring) / 2;
    uint8_t *data = ent_arena_array(arena, *out_size, 1);
    for (size_t i = 0; data && i < *out_size; i++) {
        int high = hex_digit(item->valuestring[2 * i]), low = hex_digit(item->valuestring[2 * i + 1]);
        if (high < 0 || low < 0) return NULL;
        data[i] = (uint8_t)(high * 16 + low);
    }
    return data;
}

static bool write_array(ent_arena *arena, ent_message_writer *writer, const ent_message_field_info *field,
                        const cJSON *item) {
    size_t count = 0;
    const cJSON *element;
    if (!cJSON_IsArray(item)) return false;
    cJSON_ArrayForEach(element, item) count++;
    uint64_t *words = ent_arena_array(arena, count, sizeof *words);
    if (!words) return false;
    count = 0;
    cJSON_ArrayForEach(element, item) if (!parse_word(element, field->type, &words[count++])) return false;
    ent_message_put_u64s(writer, field->index, words, count);
    return true;
}

static bool write_field(ent_arena *arena, ent_message_writer *writer, const ent_message_field_info *field,
                        const cJSON *item) {
    uint64_t word = 0;
    size_t size = 0;
    switch (field->type) {
    case ENT_FIELD_TYPE_STR:
        if (!cJSON_IsString(item)) return false;
        ent_message_put_text(writer, field->index, item->valuestring);
        return true;
    case ENT_FIELD_TYPE_BYTES: {
        const uint8_t *data = parse_hex(arena, item, &size);
        if (!data) return false;
        ent_message_put_bytes(writer, field->index, data, size);
        return true;
    }
    case ENT_FIELD_TYPE_I64S:
    case ENT_FIELD_TYPE_U64S:
    case ENT_FIELD_TYPE_F64S:
        return write_array(arena, writer, field, item);
    default:
        if (!parse_word(item, field->type, &word)) return false;
        ent_message_put_u64(writer, field->index, word);
        return true;
    }
}

/* A record given as hex: appended as it is, if it is one record. */
static ent_status write_raw(ent_arena *arena, ent_message_writer *writer, const cJSON *hex, uint32_t index) {
    size_t size = 0;
    ent_message_record record;
    const uint8_t *data = parse_hex(arena, hex, &size);
    if (!data || !ent_message_record_read(data, size, 0, &record) || record.size != size)
        return json_error(arena, index, "hex", "these are not the bytes of one record");
    uint8_t *room = ent_message_extend(writer, size);
    if (!room) return ent_status_out_of_memory();
    memcpy(room, data, size);
    writer->record_count++;
    return NULL;
}

/* An optional small number of the record's head. */
static bool head_number(const cJSON *object, const char *name, uint32_t limit, uint32_t *value) {
    uint64_t word = 0;
    const cJSON *item = member(object, name);
    if (!item) return true;
    if (!parse_integer(item, false, &word) || word > limit) return false;
    *value = (uint32_t)word;
    return true;
}

static const ent_message_record_info *find_record(const char *name) {
    uint32_t count = 0;
    const ent_message_record_info *records = ent_message_records(&count);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(records[i].name, name) == 0) return &records[i];
    return NULL;
}

/* Members that no field answers to are typing errors of whoever edited the line. */
static const char *stray_member(const cJSON *object, const ent_message_record_info *info,
                                uint32_t field_count) {
    const cJSON *item;
    cJSON_ArrayForEach(item, object) {
        bool known = strcmp(item->string, "record") == 0 || strcmp(item->string, "version") == 0 ||
                     strcmp(item->string, "fields") == 0;
        for (uint32_t i = 0; !known && i < field_count; i++)
            known = strcmp(item->string, ent_message_field_find(info, i)->name) == 0;
        if (!known) return item->string;
    }
    return NULL;
}

static ent_status write_record(ent_arena *arena, ent_message_writer *writer, const cJSON *object,
                               uint32_t index) {
    const cJSON *name = member(object, "record");
    if (!cJSON_IsString(name)) return json_error(arena, index, "record", "the record has no name");
    if (member(object, "hex")) return write_raw(arena, writer, member(object, "hex"), index);
    const ent_message_record_info *info = find_record(name->valuestring);
    if (!info) return json_error(arena, index, name->valuestring, "there is no record of this name");
    uint32_t version = info->version, fields = ent_message_field_count(info);
    if (!head_number(object, "version", UINT16_MAX, &version) ||
        !head_number(object, "fields", fields, &fields))
        return json_error(arena, index, name->valuestring, "version or fields is out of range");
    const char *stray = stray_member(object, info, fields);
    if (stray) return json_error(arena, index, stray, "the record has no such field");
    ent_message_record_begin_as(writer, info->tag | (info->must_understand ? ENT_MESSAGE_MUST_UNDERSTAND : 0),
                                (uint16_t)version, (uint16_t)fields);
    for (uint32_t i = 0; i < fields; i++) {
        const ent_message_field_info *field = ent_message_field_find(info, i);
        const cJSON *item = member(object, field->name);
        if (item && !write_field(arena, writer, field, item))
            return json_error(arena, index, field->name, "the value has another type or does not fit");
    }
    ent_message_record_end(writer);
    return NULL;
}

static bool find_kind(const cJSON *item, uint32_t *out) {
    uint64_t word = 0;
    if (cJSON_IsNumber(item)) {
        if (!parse_integer(item, false, &word) || word > UINT32_MAX) return false;
        *out = (uint32_t)word;
        return true;
    }
    for (uint32_t kind = 1; cJSON_IsString(item) && ent_message_kind_name(kind); kind++)
        if (strcmp(ent_message_kind_name(kind), item->valuestring) == 0) {
            *out = kind;
            return true;
        }
    return false;
}

static ent_status write_message(ent_arena *arena, const cJSON *root, ent_bytes *out) {
    const cJSON *kind = member(root, "message"), *records = member(root, "records"), *record;
    uint32_t number = 0, index = 0;
    size_t size = 0;
    if (cJSON_IsString(kind) && strcmp(kind->valuestring, "unreadable") == 0) {
        out->data = parse_hex(arena, member(root, "hex"), &size);
        out->size = size;
        return out->data ? NULL : json_error(arena, 0, "hex", "these are not bytes in hex");
    }
    if (!find_kind(kind, &number)) return json_error(arena, 0, "message", "there is no message of this kind");
    if (!cJSON_IsArray(records)) return json_error(arena, 0, "records", "the message has no list of records");
    ent_arena_growth growth = {arena, 0};
    ent_message_writer writer = {.grow = ent_arena_grow, .ctx = &growth};
    ent_message_begin(&writer, number);
    cJSON_ArrayForEach(record, records) ENT_TRY(write_record(arena, &writer, record, index++));
    if (ent_message_end(&writer) != ENT_OK) return ent_status_out_of_memory();
    out->data = writer.data;
    out->size = writer.size;
    return NULL;
}

ent_status ent_host_message_from_json(ent_arena *arena, const char *text, size_t size, ent_bytes *out) {
    cJSON *root = cJSON_ParseWithLength(text, size);
    if (!cJSON_IsObject(root)) {
        cJSON_Delete(root);
        return json_error(arena, 0, "the whole line", "this is no JSON object");
    }
    ent_status status = write_message(arena, root, out);
    cJSON_Delete(root);
    return status;
}
