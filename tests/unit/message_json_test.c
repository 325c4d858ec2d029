/* Messages through JSON and back: inverse to the byte, for every kind, every record and field, and for bytes
 * of any sort. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/message_json.h"
#include "tests/unit/message_sample.h"

/* bytes -> JSON -> bytes must be the identity, and JSON -> bytes -> JSON too. Returns the JSON. */
static const char *check_inverse(ent_arena *arena, const uint8_t *bytes, size_t size) {
    ent_str json, again;
    ent_bytes back;
    ck_assert_ptr_null(ent_host_message_to_json(arena, bytes, size, &json));
    ck_assert_ptr_null(memchr(json.data, '\n', json.size));
    ent_status status = ent_host_message_from_json(arena, json.data, json.size, &back);
    ck_assert_msg(!status, "%s\n%s", ent_status_text(arena, status), json.data);
    ck_assert_msg(back.size == size && (size == 0 || memcmp(back.data, bytes, size) == 0),
                  "bytes differ after %s", json.data);
    ck_assert_ptr_null(ent_host_message_to_json(arena, back.data, back.size, &again));
    ck_assert_str_eq(json.data, again.data);
    return json.data;
}

static uint32_t count_of(const char *text, const char *part) {
    uint32_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) count++;
    return count;
}

START_TEST(every_kind_record_and_field) {
    uint32_t records = 0, as_hex = 0; /* NaN payloads and bad UTF-8 need hex; most records must not */
    for (uint32_t kind = 0; kind < 12; kind++)
        for (uint64_t seed = 1; seed < 12; seed++) {
            ent_arena *arena = ent_arena_create(0);
            ent_message_writer writer = sample_writer();
            sample_random(&writer, kind, seed * 1000 + kind);
            const char *json = check_inverse(arena, writer.data, writer.size);
            if (ent_message_kind_name(kind)) ck_assert_ptr_nonnull(strstr(json, ent_message_kind_name(kind)));
            records += count_of(json, "{\"record\":");
            as_hex += count_of(json, "\"hex\":");
            free(writer.data);
            ent_arena_destroy(arena);
        }
    ck_assert_uint_gt(as_hex, 0);
    ck_assert_uint_lt(as_hex * 2, records);
}
END_TEST

START_TEST(readable_form) {
    ent_arena *arena = ent_arena_create(0);
    ent_message_writer writer = sample_writer();
    ent_message_begin(&writer, ENT_MESSAGE_quote_reply);
    ent_message_record_begin(&writer, ENT_RECORD_price);
    ent_message_put_u64(&writer, ENT_FIELD_price_offer, 3);
    ent_message_put_f64(&writer, ENT_FIELD_price_time_mid_ns, 0.1);
    ent_message_put_f64(&writer, ENT_FIELD_price_time_high_ns, 1.0 / 0.0);
    ent_message_put_u64(&writer, ENT_FIELD_price_weight_bytes, (1ull << 53) + 1);
    ent_message_record_end(&writer);
    ent_message_record_begin(&writer, ENT_RECORD_reason);
    ent_message_put_text(&writer, ENT_FIELD_reason_id, "layout");
    ent_message_put_i64(&writer, ENT_FIELD_reason_node, -1);
    ent_message_put_text(&writer, ENT_FIELD_reason_text, "a \"b\"");
    ent_message_record_end(&writer);
    ent_message_record_begin(&writer, ENT_RECORD_offer);
    int64_t nodes[3] = {4, -5, INT64_MIN};
    ent_message_put_i64s(&writer, ENT_FIELD_offer_nodes, nodes, 3);
    ent_message_record_end(&writer);
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    ck_assert_str_eq(check_inverse(arena, writer.data, writer.size),
                     "{\"message\":\"quote_reply\",\"records\":["
                     "{\"record\":\"price\",\"offer\":3,\"time_mid_ns\":0.1,\"time_high_ns\":\"inf\","
                     "\"weight_bytes\":\"9007199254740993\"},"
                     "{\"record\":\"reason\",\"id\":\"layout\",\"node\":-1,\"text\":\"a \\\"b\\\"\"},"
                     "{\"record\":\"offer\",\"nodes\":[4,-5,\"-9223372036854775808\"]}]}");
    free(writer.data);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(other_versions_and_unknown_records) {
    ent_arena *arena = ent_arena_create(0);
    ent_message_writer writer = sample_writer();
    ent_message_begin(&writer, 77);
    ent_message_record_begin_as(&writer, ENT_RECORD_award | ENT_MESSAGE_MUST_UNDERSTAND, 1, 1); /* older */
    ent_message_put_u64(&writer, 0, 5);
    ent_message_record_end(&writer);
    ent_message_record_begin_as(&writer, ENT_RECORD_award | ENT_MESSAGE_MUST_UNDERSTAND, 2, 3); /* newer */
    ent_message_put_u64(&writer, 2, 5);
    ent_message_record_end(&writer);
    ent_message_record_begin_as(&writer, 0x7777, 1, 1);
    ent_message_put_text(&writer, 0, "unknown");
    ent_message_record_end(&writer);
    ent_message_record_begin_as(&writer, ENT_RECORD_device, 1, 2); /* its must-understand bit is gone */
    ent_message_record_end(&writer);
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    const char *json = check_inverse(arena, writer.data, writer.size);
    ck_assert_ptr_nonnull(strstr(json, "{\"message\":77,"));
    ck_assert_ptr_nonnull(strstr(json, "{\"record\":\"award\",\"fields\":1,\"offer\":5}"));
    ck_assert_ptr_nonnull(strstr(json, "{\"record\":\"award\",\"hex\":"));
    ck_assert_ptr_nonnull(strstr(json, "{\"record\":\"0x7777\",\"hex\":"));
    ck_assert_ptr_nonnull(strstr(json, "{\"record\":\"device\",\"hex\":"));
    free(writer.data);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(any_bytes) {
    ent_message_writer writer = sample_writer();
    sample_random(&writer, ENT_MESSAGE_region, 3);
    uint64_t random = 5;
    for (int round = 0; round < 400; round++) {
        ent_arena *arena = ent_arena_create(0);
        size_t size = round % 3 == 0 ? sample_next(&random) % writer.size : writer.size;
        uint8_t *damaged = malloc(size ? size : 1);
        memcpy(damaged, writer.data, size);
        for (uint64_t i = sample_next(&random) % 4; size > 0 && i > 0; i--)
            damaged[sample_next(&random) % size] ^= (uint8_t)(1u << sample_next(&random) % 8);
        check_inverse(arena, damaged, size);
        free(damaged);
        ent_arena_destroy(arena);
    }
    free(writer.data);
}
END_TEST

START_TEST(bad_json_is_refused) {
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"message\":\"nonsense\",\"records\":[]}",
        "{\"message\":\"region\"}",
        "{\"message\":\"unreadable\",\"hex\":\"0\"}",
        "{\"message\":\"unreadable\",\"hex\":\"0g\"}",
        "{\"message\":\"region\",\"records\":[3]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"nonsense\"}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"ofer\":3}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"offer\":-3}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"offer\":3.5}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"offer\":\"99999999999999999999\"}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"offer\":[1]}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"fields\":9}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"award\",\"fields\":1,\"quote\":9}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"offer\",\"nodes\":[1,\"x\"]}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"offer\",\"pattern\":3}]}",
        "{\"message\":\"region\",\"records\":[{\"record\":\"0x7777\",\"hex\":\"00112233\"}]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ent_arena *arena = ent_arena_create(0);
        ent_bytes out;
        ent_status status = ent_host_message_from_json(arena, bad[i], strlen(bad[i]), &out);
        ck_assert_msg(status != NULL, "accepted %s", bad[i]);
        ck_assert_str_eq(status->rule, "message.json");
        ent_arena_destroy(arena);
    }
}
END_TEST

START_TEST(field_names_do_not_collide) {
    uint32_t count = 0;
    const ent_message_field_info *fields = ent_message_fields(&count);
    static const char *const taken[] = {"record", "version", "fields", "hex"};
    for (uint32_t i = 0; i < count; i++)
        for (size_t k = 0; k < 4; k++) ck_assert_str_ne(fields[i].name, taken[k]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("message_json");
    TCase *tcase = tcase_create("message_json");
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, every_kind_record_and_field);
    tcase_add_test(tcase, readable_form);
    tcase_add_test(tcase, other_versions_and_unknown_records);
    tcase_add_test(tcase, any_bytes);
    tcase_add_test(tcase, bad_json_is_refused);
    tcase_add_test(tcase, field_names_do_not_collide);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
