/* Messages between core and plugins: every accessor on hostile bytes, and the JSON of transcripts, which must
 * give the same bytes back. */
#include "core/host/message_json.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static uint64_t sink;

static void read_field(const ent_message_record *record, const ent_message_field_info *field) {
    ent_str text = ent_message_get_str(record, field->index);
    ent_message_array array;
    for (size_t i = 0; i < text.size; i++) sink += (uint8_t)text.data[i];
    if (field->type >= ENT_FIELD_TYPE_I64S && ent_message_reference(record, field->index, 8, &array))
        for (uint64_t i = 0; i < (uint64_t)array.count * 8; i++) sink += array.data[i];
    sink += ent_message_get_u64(record, field->index);
}

static void read_all(const uint8_t *data, size_t size) {
    ent_message_reader reader;
    ent_message_record record;
    if (ent_message_open(&reader, data, size) != ENT_OK) return;
    while (ent_message_next(&reader, &record)) {
        const ent_message_record_info *info = ent_message_record_find(record.tag);
        for (uint32_t i = 0; info && i < ent_message_field_count(info); i++)
            read_field(&record, ent_message_field_find(info, i));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    uint8_t *copy = (uint8_t *)fuzz_text(data, size);
    ent_str json;
    ent_bytes back;
    read_all(copy, size);
    ent_status status = ent_host_message_to_json(arena, copy, size, &json);
    fuzz_check(!status || status->code == ENT_ERROR_LIMIT, "has no JSON", status ? status->text : "");
    if (!status) status = ent_host_message_from_json(arena, json.data, json.size, &back);
    fuzz_check(!status || status->code == ENT_ERROR_LIMIT, "its JSON is refused", status ? status->text : "");
    if (!status)
        fuzz_check(back.size == size && (!size || memcmp(back.data, copy, size) == 0), "comes back otherwise",
                   json.data);
    status = ent_host_message_from_json(arena, (const char *)copy, size, &back);
    fuzz_check_status(status);
    if (!status) fuzz_accept();
    if (!status) read_all(back.data, back.size);
    free(copy);
    ent_arena_destroy(arena);
    return 0;
}
