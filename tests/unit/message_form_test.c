/* The flat message form: what is written is read back, old and new sides understand each other, hostile bytes
 * are refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "abi/ent_message.h"
#include "tests/unit/message_sample.h"

START_TEST(table_is_consistent) {
    uint32_t record_count = 0, field_count = 0, seen = 0;
    const ent_message_record_info *records = ent_message_records(&record_count);
    const ent_message_field_info *fields = ent_message_fields(&field_count);
    for (uint32_t r = 0; r < record_count; r++) {
        uint32_t count = ent_message_field_count(&records[r]);
        ck_assert_uint_gt(count, 0);
        ck_assert_uint_eq(records[r].first_field, seen);
        for (uint32_t i = 0; i < count; i++, seen++) {
            ck_assert_uint_eq(fields[seen].tag, records[r].tag);
            ck_assert_uint_eq(fields[seen].index, i);
        }
        for (uint32_t k = 0; k < r; k++) ck_assert_uint_ne(records[k].tag, records[r].tag);
    }
    ck_assert_uint_eq(seen, field_count);
    ck_assert_int_eq(ENT_FIELD_price_joules, 9);
    ck_assert_str_eq(ent_message_kind_name(ENT_MESSAGE_quote_reply), "quote_reply");
    ck_assert_ptr_null(ent_message_kind_name(99));
}
END_TEST

START_TEST(every_field_reads_back) {
    for (uint64_t seed = 1; seed < 40; seed++) {
        ent_message_writer writer = sample_writer();
        sample_random(&writer, ENT_MESSAGE_quote_reply, seed);
        /* A copy at an odd address, exactly as long as the message, so that a sanitizer sees every stray
         * read. */
        uint8_t *copy = malloc(writer.size + 1);
        memcpy(copy + 1, writer.data, writer.size);
        ent_message_reader reader;
        ck_assert_int_eq(ent_message_open(&reader, copy + 1, writer.size), ENT_OK);
        ck_assert_uint_eq(reader.kind, ENT_MESSAGE_quote_reply);
        sample_check(&reader, seed);
        free(copy);
        free(writer.data);
    }
}
END_TEST

START_TEST(known_bytes) {
    /* The form itself, byte by byte: a change of it must fail here. */
    static const uint8_t expected[] = {
        'E',    'N', 'T', 'M', 1,   0,   32,  0,   80,  0,   0,   0,   0,   0,   0, 0,    5, 0, 0, 0,
        1,      0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   0,   32,  0,   0, 0x80, 1, 0, 2, 0,
        40 + 8, 0,   0,   0,   0,   0,   0,   0,   32,  0,   0,   0,   10,  0,   0, 0,    7, 0, 0, 0,
        0,      0,   0,   0,   'c', 'p', 'u', ':', 'a', 'v', 'x', '2', '+', 'x', 0, 0,    0, 0, 0, 0};
    ent_message_writer writer = sample_writer();
    ent_message_begin(&writer, ENT_MESSAGE_award_request);
    ent_message_record_begin(&writer, ENT_RECORD_device);
    ent_message_put_text(&writer, ENT_FIELD_device_name, "cpu:avx2+x");
    ent_message_put_u64(&writer, ENT_FIELD_device_id, 7);
    ent_message_record_end(&writer);
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    ck_assert_uint_eq(writer.size, sizeof expected);
    ck_assert_mem_eq(writer.data, expected, sizeof expected);
    free(writer.data);
}
END_TEST

START_TEST(old_and_new_sides) {
    ent_message_writer writer = sample_writer();
    ent_message_begin(&writer, ENT_MESSAGE_award_request);
    ent_message_record_begin_as(&writer, ENT_RECORD_award | ENT_MESSAGE_MUST_UNDERSTAND, 1,
                                1); /* an older side */
    ent_message_put_u64(&writer, 0, 5);
    ent_message_record_end(&writer);
    ent_message_record_begin_as(&writer, 0x1234, 3, 1); /* optional and unknown */
    ent_message_put_u64(&writer, 0, UINT64_MAX);
    ent_message_record_end(&writer);
    ent_message_record_begin_as(&writer, ENT_RECORD_award | ENT_MESSAGE_MUST_UNDERSTAND, 2,
                                4); /* a newer side */
    ent_message_put_u64(&writer, 0, 6);
    ent_message_put_u64(&writer, 1, 60);
    ent_message_put_text(&writer, 3, "new");
    ent_message_record_end(&writer);
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    ent_message_reader reader;
    ent_message_record record;
    ck_assert_int_eq(ent_message_open(&reader, writer.data, writer.size), ENT_OK);
    ck_assert(ent_message_next(&reader, &record));
    ck_assert_uint_eq(ent_message_get_u64(&record, ENT_FIELD_award_offer), 5);
    ck_assert_uint_eq(ent_message_get_u64(&record, ENT_FIELD_award_quote), 0);
    ck_assert_uint_eq(ent_message_get_str(&record, 9).size, 0);
    ck_assert(ent_message_next(&reader, &record));
    ck_assert_uint_eq(record.tag, 0x1234);
    ck_assert(ent_message_next(&reader, &record));
    ck_assert_uint_eq(ent_message_get_u64(&record, ENT_FIELD_award_quote), 60);
    ck_assert(!ent_message_next(&reader, &record));
    /* The unknown record turns must-understand: refused, and not as broken bytes. */
    size_t second = ENT_MESSAGE_HEADER_BYTES + 24;
    writer.data[second + 3] = 0x80;
    ck_assert_int_eq(ent_message_open(&reader, writer.data, writer.size), ENT_CODE_UNSUPPORTED);
    free(writer.data);
}
END_TEST

START_TEST(writer_refuses_misuse) {
    ent_message_writer writer = sample_writer();
    ent_message_begin(&writer, 1);
    ent_message_record_begin(&writer, ENT_RECORD_award);
    ent_message_put_u64(&writer, 1, 1);
    ent_message_put_u64(&writer, 0, 1); /* descending */
    ent_message_record_end(&writer);
    ck_assert_int_ne(ent_message_end(&writer), ENT_OK);
    ent_message_begin(&writer, 1);
    ent_message_record_begin(&writer, ENT_RECORD_award);
    ent_message_put_u64(&writer, 2, 1); /* beyond */
    ck_assert(writer.failed);
    ent_message_begin(&writer, 1);
    ent_message_record_begin(&writer, 0x999); /* not in the table */
    ck_assert(writer.failed);
    free(writer.data);
    uint8_t small[40];
    ent_message_writer fixed = {.data = small, .capacity = sizeof small};
    ent_message_begin(&fixed, 1);
    ck_assert(!fixed.failed);
    ent_message_record_begin(&fixed, ENT_RECORD_award);
    ck_assert(fixed.failed);
    ck_assert_int_eq(ent_message_end(&fixed), ENT_CODE_OUT_OF_MEMORY);
}
END_TEST

START_TEST(layouts_round_trip) {
    ent_layout layouts[4] = {ent_layout_plain(4),
                             ent_layout_channels_last(4),
                             {0, 0, 0, 0, {0}, {0}, {0}, 0},
                             {ENT_LAYOUT_OPAQUE, 3, 0, 0, {0}, {0}, {0}, UINT64_MAX}};
    layouts[1].block_count = 1;
    layouts[1].block_axis[0] = 1;
    layouts[1].block_size[0] = 16;
    for (int i = 0; i < 4; i++) {
        ent_message_writer writer = sample_writer();
        ent_message_begin(&writer, 1);
        ent_message_record_begin(&writer, ENT_RECORD_value);
        ent_message_put_layout(&writer, ENT_FIELD_value_layout, &layouts[i]);
        ent_message_record_end(&writer);
        ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
        ent_message_reader reader;
        ent_message_record record;
        ent_layout back;
        ck_assert_int_eq(ent_message_open(&reader, writer.data, writer.size), ENT_OK);
        ck_assert(ent_message_next(&reader, &record));
        ck_assert(ent_message_get_layout(&record, ENT_FIELD_value_layout, &back));
        ck_assert(ent_layout_equal(&layouts[i], &back));
        writer.data[writer.size - 8] = 9; /* last order entry, block size, or opaque's kind word */
        if (i == 0) {
            ck_assert(!ent_message_get_layout(&record, ENT_FIELD_value_layout, &back));
        }
        free(writer.data);
    }
}
END_TEST

/* Opens damaged bytes and, when they pass, reads every field: an out-of-bounds read is the sanitizer's to
 * report. */
static bool survives(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    ent_message_reader reader;
    ent_code code = ent_message_open(&reader, copy, size);
    ck_assert(code == ENT_OK || code == ENT_CODE_BAD_MESSAGE || code == ENT_CODE_UNSUPPORTED);
    if (code == ENT_OK) sample_read_all(&reader);
    free(copy);
    return code == ENT_OK;
}

START_TEST(hostile_bytes) {
    ent_message_writer writer = sample_writer();
    sample_random(&writer, ENT_MESSAGE_survey_reply, 7);
    ck_assert(survives(writer.data, writer.size));
    for (size_t size = 0; size < writer.size; size += size < 512 ? 1 : 37)
        ck_assert(!survives(writer.data, size));
    uint64_t random = 99;
    for (size_t bit = 0; bit < writer.size * 8; bit += bit < 8192 ? 1 : 13) {
        writer.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        survives(writer.data, writer.size);
        writer.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (int round = 0; round < 3000; round++) {
        uint8_t old[4];
        size_t at[4];
        for (int i = 0; i < 4; i++) {
            at[i] = sample_next(&random) % writer.size;
            old[i] = writer.data[at[i]];
            writer.data[at[i]] = (uint8_t)sample_next(&random);
        }
        survives(writer.data, writer.size);
        for (int i = 4; i-- > 0;) writer.data[at[i]] = old[i];
    }
    ck_assert(survives(writer.data, writer.size));
    free(writer.data);
}
END_TEST

START_TEST(references_out_of_range) {
    ent_message_writer writer = sample_writer();
    ent_message_begin(&writer, 1);
    ent_message_record_begin(&writer, ENT_RECORD_offer);
    int64_t nodes[2] = {1, 2};
    ent_message_put_i64s(&writer, ENT_FIELD_offer_nodes, nodes, 2);
    ent_message_record_end(&writer);
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    uint8_t *slot =
        writer.data + ENT_MESSAGE_HEADER_BYTES + ENT_MESSAGE_RECORD_BYTES + 8 * ENT_FIELD_offer_nodes;
    uint64_t good = ent_bytes_load(slot, 8), offset = good & 0xffffffffu;
    const uint64_t bad[] = {offset | 3ull << 32,          offset | 0xffffffffull << 32,
                            (offset + 4) | 1ull << 32,    16 | 1ull << 32,
                            (offset + 16) | 1ull << 32,   0xfffffff8u | 1ull << 32,
                            offset | 0x20000000ull << 32, 0 | 1ull << 32};
    ent_message_reader reader;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ent_bytes_store(slot, 8, bad[i]);
        ck_assert_int_eq(ent_message_open(&reader, writer.data, writer.size), ENT_CODE_BAD_MESSAGE);
    }
    ent_bytes_store(slot, 8, good);
    ck_assert_int_eq(ent_message_open(&reader, writer.data, writer.size), ENT_OK);
    free(writer.data);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("message_form");
    TCase *tcase = tcase_create("message_form");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, table_is_consistent);
    tcase_add_test(tcase, every_field_reads_back);
    tcase_add_test(tcase, known_bytes);
    tcase_add_test(tcase, old_and_new_sides);
    tcase_add_test(tcase, writer_refuses_misuse);
    tcase_add_test(tcase, layouts_round_trip);
    tcase_add_test(tcase, hostile_bytes);
    tcase_add_test(tcase, references_out_of_range);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
