/* Messages with every record and every field filled from a seed, for the message tests. */
#ifndef MESSAGE_SAMPLE_H
#define MESSAGE_SAMPLE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "abi/ent_message.h"

static inline void *sample_grow(void *ctx, void *old, size_t size) {
    (void)ctx;
    return realloc(old, size);
}

static inline ent_message_writer sample_writer(void) {
    ent_message_writer writer = {.grow = sample_grow};
    return writer;
}

static inline uint64_t sample_next(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/* Small, huge, special and arbitrary bit patterns. */
static inline uint64_t sample_word(uint64_t *state, uint32_t type) {
    static const double special[] = {0.0, -0.0, 1.0, 0.1, 1e308, 5e-324, 1.0 / 0.0, -1.0 / 0.0, 123456.789};
    uint64_t pick = sample_next(state) % 5;
    if (type == ENT_FIELD_TYPE_F64 || type == ENT_FIELD_TYPE_F64S) {
        if (pick < 3) return ent_bits_from_f64(special[sample_next(state) % 9]);
        return sample_next(state); /* any bits: NaN payloads too */
    }
    if (pick == 0) return 0;
    if (pick == 1) return sample_next(state) % 100;
    if (pick == 2) return (uint64_t) - (int64_t)(sample_next(state) % 100);
    if (pick == 3) return (1ull << 53) + sample_next(state) % 3 - 1;
    return sample_next(state);
}

typedef struct sample_field {
    uint64_t word;
    uint64_t items[24];
    char text[24];
    uint32_t count;
} sample_field;

/* The content of one field; the same for writing and checking. */
static inline sample_field sample_content(uint64_t *state, uint32_t type) {
    static const char *const texts[] = {"",
                                        "a",
                                        "conv_1",
                                        "quote \" and \\ back",
                                        "tab\tline\n\x01",
                                        "gr\xc3\xbc\xc3\x9f",
                                        "bad \xff utf",
                                        "exactly8",
                                        "\xf0\x9f\x99\x82"};
    sample_field field = {0};
    field.word = sample_word(state, type);
    field.count = (uint32_t)(sample_next(state) % 24);
    if (type == ENT_FIELD_TYPE_STR) {
        strcpy(field.text, texts[sample_next(state) % 9]);
        field.count = (uint32_t)strlen(field.text);
    }
    if (type == ENT_FIELD_TYPE_BYTES)
        for (uint32_t i = 0; i < field.count; i++) field.text[i] = (char)sample_next(state);
    if (type >= ENT_FIELD_TYPE_I64S)
        for (uint32_t i = 0; i < field.count; i++) field.items[i] = sample_word(state, type);
    return field;
}

static inline void sample_put(ent_message_writer *writer, const ent_message_field_info *info,
                              const sample_field *field) {
    if (info->type < ENT_FIELD_TYPE_STR)
        ent_message_put_u64(writer, info->index, field->word);
    else if (info->type < ENT_FIELD_TYPE_I64S)
        ent_message_put_bytes(writer, info->index, field->text, field->count);
    else
        ent_message_put_u64s(writer, info->index, field->items, field->count);
}

/* One record of every kind, all fields filled, `seed` deciding the content. */
static inline void sample_random(ent_message_writer *writer, uint32_t kind, uint64_t seed) {
    uint32_t count = 0;
    const ent_message_record_info *records = ent_message_records(&count);
    ent_message_begin(writer, kind);
    for (uint32_t r = 0; r < count; r++) {
        ent_message_record_begin(writer, records[r].tag);
        for (uint32_t i = 0; i < ent_message_field_count(&records[r]); i++) {
            const ent_message_field_info *info = ent_message_field_find(&records[r], i);
            sample_field field = sample_content(&seed, info->type);
            sample_put(writer, info, &field);
        }
        ent_message_record_end(writer);
    }
    ck_assert_int_eq(ent_message_end(writer), ENT_OK);
}

static inline void sample_check_field(const ent_message_record *record, const ent_message_field_info *info,
                                      const sample_field *field) {
    if (info->type == ENT_FIELD_TYPE_U64) ck_assert(ent_message_get_u64(record, info->index) == field->word);
    if (info->type == ENT_FIELD_TYPE_I64)
        ck_assert(ent_message_get_i64(record, info->index) == (int64_t)field->word);
    if (info->type == ENT_FIELD_TYPE_F64)
        ck_assert(ent_bits_from_f64(ent_message_get_f64(record, info->index)) == field->word);
    if (info->type < ENT_FIELD_TYPE_STR) return;
    if (info->type < ENT_FIELD_TYPE_I64S) {
        ent_str text = ent_message_get_str(record, info->index);
        ck_assert_uint_eq(text.size, field->count);
        if (text.size) ck_assert_mem_eq(text.data, field->text, text.size);
        return;
    }
    ent_message_array array = ent_message_get_array(record, info->index);
    ck_assert_uint_eq(array.count, field->count);
    for (uint32_t i = 0; i < array.count; i++) ck_assert(ent_message_u64_at(array, i) == field->items[i]);
}

static inline void sample_check(ent_message_reader *reader, uint64_t seed) {
    uint32_t count = 0;
    const ent_message_record_info *records = ent_message_records(&count);
    ent_message_record record;
    for (uint32_t r = 0; r < count; r++) {
        ck_assert(ent_message_next(reader, &record));
        ck_assert_uint_eq(record.tag, records[r].tag);
        ck_assert_uint_eq(record.version, records[r].version);
        ck_assert(record.must_understand == records[r].must_understand);
        for (uint32_t i = 0; i < record.field_count; i++) {
            const ent_message_field_info *info = ent_message_field_find(&records[r], i);
            sample_field field = sample_content(&seed, info->type);
            sample_check_field(&record, info, &field);
        }
    }
    ck_assert(!ent_message_next(reader, &record));
}

/* Reads everything readable; the sum only keeps the reads alive. */
static inline uint64_t sample_read_all(ent_message_reader *reader) {
    ent_message_record record;
    uint64_t sum = 0;
    while (ent_message_next(reader, &record)) {
        for (uint32_t i = 0; i < record.field_count + 2u; i++) {
            ent_str text = ent_message_get_str(&record, i);
            for (size_t k = 0; k < text.size; k++) sum += (uint8_t)text.data[k];
            ent_message_array array = ent_message_get_array(&record, i);
            for (uint32_t k = 0; k < array.count; k++) sum += ent_message_u64_at(array, k);
            ent_layout layout;
            sum += ent_message_get_layout(&record, i, &layout);
        }
    }
    return sum;
}

#endif
