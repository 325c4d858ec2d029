#include "core/base/base.h"

#include <check.h>
#include <inttypes.h>

START_TEST(set_find_overwrite) {
    ent_arena *arena = ent_arena_create(0);
    ent_map *map = ent_map_create(arena);
    char key[] = "first";
    uint64_t value = 99;
    ck_assert(!ent_map_find(map, "first", &value));
    ck_assert_uint_eq(value, 99);
    ent_map_set(map, key, 1);
    key[0] = 'X'; /* the map holds its own copy */
    ck_assert(ent_map_find(map, "first", &value));
    ck_assert_uint_eq(value, 1);
    ent_map_set(map, "first", 2);
    ent_map_set(map, "", 3);
    ck_assert(ent_map_find(map, "first", &value));
    ck_assert_uint_eq(value, 2);
    ck_assert(ent_map_find(map, "", &value));
    ck_assert_uint_eq(value, 3);
    ck_assert(ent_map_find(map, "first", NULL));
    ck_assert(!ent_map_find(map, "firs", NULL));
    ck_assert_uint_eq(ent_map_count(map), 2);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(grows_and_keeps_order) {
    enum { COUNT = 50000 };
    ent_arena *arena = ent_arena_create(0);
    ent_map *map = ent_map_create(arena);
    for (uint64_t i = 0; i < COUNT; i++) {
        ent_map_set(map, ent_arena_format(arena, "value_%" PRIu64, i), i);
        ent_map_set_u64(map, i << 32, i + 1);
    }
    ck_assert_uint_eq(ent_map_count(map), 2 * COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        uint64_t value = 0;
        const char *key = ent_arena_format(arena, "value_%" PRIu64, i);
        ck_assert(ent_map_find(map, key, &value) && value == i);
        ck_assert(ent_map_find_u64(map, i << 32, &value) && value == i + 1);
        ck_assert(!ent_map_find_u64(map, (i << 32) + 1, NULL));
        ent_map_entry entry = ent_map_at(map, (uint32_t)(2 * i));
        ck_assert_str_eq(entry.key, key);
        ck_assert_uint_eq(entry.value, i);
        entry = ent_map_at(map, (uint32_t)(2 * i + 1));
        ck_assert_ptr_null(entry.key);
        ck_assert_uint_eq(entry.key_u64, i << 32);
    }
    ck_assert(!ent_map_find(map, "value_50000", NULL));
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(kinds_of_key_differ) {
    ent_arena *arena = ent_arena_create(0);
    ent_map *map = ent_map_create(arena);
    /* The same eight bytes under both kinds of key hash alike. */
    union {
        char text[9];
        uint64_t number;
    } same = {"abcdefgh"};
    ent_map_set(map, same.text, 1);
    ck_assert(!ent_map_find_u64(map, same.number, NULL));
    ent_map_set_u64(map, same.number, 2);
    ck_assert_uint_eq(ent_map_count(map), 2);
    uint64_t value = 0;
    ck_assert(ent_map_find(map, same.text, &value) && value == 1);
    ck_assert(ent_map_find_u64(map, same.number, &value) && value == 2);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(hashes_are_xxh3) {
    /* Published values for empty input: bundles and caches depend on the algorithm staying the same. */
    ck_assert_uint_eq(ent_hash_u64("", 0), 0x2d06800538d394c2u);
    ent_hash128 empty = ent_hash_bytes("", 0);
    ck_assert_uint_eq(empty.high, 0x99aa06d3014798d8u);
    ck_assert_uint_eq(empty.low, 0x6001c324468d497fu);
    char data[1000] = {0};
    ent_hash128 before = ent_hash_bytes(data, sizeof data);
    data[999] = 1;
    ent_hash128 after = ent_hash_bytes(data, sizeof data);
    ck_assert(before.low != after.low && before.high != after.high);
}
END_TEST

START_TEST(checked_arithmetic_and_clock) {
    int64_t out;
    ck_assert(ent_mul_i64(-3, 7, &out) && out == -21);
    ck_assert(ent_mul_i64(INT64_MIN, 1, &out) && out == INT64_MIN);
    ck_assert(!ent_mul_i64(INT64_MIN, -1, &out));
    ck_assert(!ent_mul_i64((int64_t)1 << 32, (int64_t)1 << 31, &out));
    ck_assert(ent_add_i64(INT64_MAX, INT64_MIN, &out) && out == -1);
    ck_assert(!ent_add_i64(INT64_MAX, 1, &out));
    ck_assert(!ent_add_i64(INT64_MIN, -1, &out));
    uint64_t first = ent_time_ns(), last = first;
    for (int i = 0; i < 100000 && last == first; i++) last = ent_time_ns();
    ck_assert_uint_gt(last, first);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base_map");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, set_find_overwrite);
    tcase_add_test(cases, grows_and_keeps_order);
    tcase_add_test(cases, kinds_of_key_differ);
    tcase_add_test(cases, hashes_are_xxh3);
    tcase_add_test(cases, checked_arithmetic_and_clock);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
