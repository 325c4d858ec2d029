#include "core/base/base.h"

#include <check.h>
#include <string.h>

static bool all_bytes(const void *data, size_t size, unsigned char byte) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != byte) return false;
    return true;
}

START_TEST(allocations_are_aligned_zeroed_and_apart) {
    ent_arena *arena = ent_arena_create(0);
    unsigned char *previous = NULL;
    for (size_t size = 0; size < 3000; size += 7) {
        unsigned char *data = ent_arena_alloc(arena, size);
        ck_assert_uint_eq((uintptr_t)data % 16, 0);
        ck_assert_ptr_ne(data, previous);
        ck_assert(all_bytes(data, size, 0));
        memset(data, 0xff, size);
        previous = data;
    }
    ent_arena_destroy(arena);
    ent_arena_destroy(NULL);
}
END_TEST

START_TEST(reused_memory_is_zero_again) {
    ent_arena *arena = ent_arena_create(0);
    ent_arena_alloc(arena, 40);
    ent_arena_mark mark = ent_arena_save(arena);
    size_t used = ent_arena_used_bytes(arena);
    for (int round = 0; round < 4; round++) {
        /* Enough for several blocks, with other sizes each round so that the pieces shift. */
        for (int i = 0; i < 500; i++) {
            size_t size = 100u + 37u * (unsigned)round + (unsigned)i;
            void *data = ent_arena_alloc(arena, size);
            ck_assert(all_bytes(data, size, 0));
            memset(data, 0xa5, size);
        }
        ent_arena_restore(arena, mark);
        ck_assert_uint_eq(ent_arena_used_bytes(arena), used);
    }
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(big_allocations_obey_marks) {
    ent_arena *arena = ent_arena_create(0);
    const size_t big = (size_t)3 << 20;
    ent_arena_mark empty = ent_arena_save(arena);
    unsigned char *kept = ent_arena_alloc(arena, big);
    ck_assert(all_bytes(kept, big, 0));
    memset(kept, 7, big);
    size_t used = ent_arena_used_bytes(arena);
    ck_assert_uint_ge(used, big);
    ck_assert_uint_le(used, big + 256);
    ent_arena_mark mark = ent_arena_save(arena);
    memset(ent_arena_alloc(arena, big), 1, big);
    char *small = ent_arena_alloc(arena, 10);
    small[0] = 1;
    memset(ent_arena_alloc(arena, big), 2, big);
    ent_arena_restore(arena, mark);
    ck_assert_uint_eq(ent_arena_used_bytes(arena), used);
    ck_assert(all_bytes(kept, big, 7)); /* a sanitizer would also see it freed */
    ent_arena_restore(arena, empty);
    ck_assert_uint_eq(ent_arena_used_bytes(arena), 0);
    ck_assert(all_bytes(ent_arena_alloc(arena, 64), 64, 0));
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(array_refuses_overflow_and_the_limit) {
    ent_arena *arena = ent_arena_create(100000);
    ck_assert_ptr_nonnull(ent_arena_array(arena, 0, 8));
    ck_assert_ptr_nonnull(ent_arena_array(arena, 1000, 8));
    ck_assert(!ent_arena_failed(arena));
    ck_assert_ptr_null(ent_arena_array(arena, SIZE_MAX / 4, 8));
    ck_assert(ent_arena_failed(arena));
    ck_assert_ptr_null(ent_arena_array(arena, 100000, 1));
    ck_assert_ptr_nonnull(ent_arena_array(arena, 80000, 1));
    ck_assert_uint_le(ent_arena_used_bytes(arena), 100000);
    ent_arena_destroy(arena);

    arena = ent_arena_create(0);
    ck_assert_ptr_null(ent_arena_array(arena, (size_t)PTRDIFF_MAX, 1));
    ck_assert(ent_arena_failed(arena));
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(arenas_share_a_budget) {
    ent_budget budget = {.limit_bytes = 1 << 20};
    ent_arena *first = ent_arena_create_within(&budget), *second = ent_arena_create_beside(first);
    ck_assert_ptr_nonnull(ent_arena_array(first, 600, 1024));
    ck_assert_ptr_null(ent_arena_check(first, "here"));
    ck_assert_ptr_null(ent_arena_array(second, 600, 1024));
    ent_status status = ent_arena_check(first, "here");
    ck_assert_int_eq(status->code, ENT_ERROR_LIMIT);
    ck_assert_str_eq(status->rule, "limit.memory");
    ck_assert_str_eq(status->place, "here");
    ent_arena_destroy(first); /* gives back what it held */
    ck_assert_ptr_nonnull(ent_arena_array(second, 600, 1024));
    ent_arena_destroy(second);
    ck_assert_uint_eq(budget.used_bytes, 0);
}
END_TEST

START_TEST(a_deadline_is_an_error_of_its_own) {
    ent_budget budget = {.deadline_ns = ent_time_ns() + 3600 * (uint64_t)1000000000, .seconds = 3600};
    ent_arena *arena = ent_arena_create_within(&budget);
    ck_assert_ptr_null(ent_arena_check(arena, ""));
    budget.deadline_ns = 1;
    ck_assert_str_eq(ent_arena_check(arena, "")->rule, "limit.time");
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(small_pieces_pass_the_limit_and_tell) {
    ent_arena *arena = ent_arena_create(64);
    ent_arena_alloc(arena, 48);
    ck_assert(!ent_arena_failed(arena));
    char *data = ent_arena_alloc(arena, 100);
    data[99] = 1;
    ck_assert(ent_arena_failed(arena));
    ck_assert_ptr_null(ent_arena_array(arena, 1, 1));
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(extend_grows_only_the_newest_and_zeroes) {
    ent_arena *arena = ent_arena_create(0);
    ent_arena_mark mark = ent_arena_save(arena);
    memset(ent_arena_alloc(arena, 1000), 0xff, 1000);
    ent_arena_restore(arena, mark);
    char *data = ent_arena_alloc(arena, 5);
    memset(data, 1, 5);
    ck_assert(ent_arena_extend(arena, data, 5, 500));
    ck_assert(all_bytes(data, 5, 1));
    ck_assert(all_bytes(data + 5, 495, 0));
    ck_assert(!ent_arena_extend(arena, data, 500, (size_t)1 << 30));
    ck_assert(!ent_arena_extend(arena, data, 500, SIZE_MAX));
    ck_assert(!ent_arena_extend(arena, NULL, 0, 16));
    ck_assert(all_bytes(ent_arena_alloc(arena, 16), 16, 0));
    ck_assert(!ent_arena_extend(arena, data, 500, 600));
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(strings) {
    ent_arena *arena = ent_arena_create(0);
    ck_assert_str_eq(ent_arena_strdup(arena, "abc"), "abc");
    ck_assert_str_eq(ent_arena_strndup(arena, "abcdef", 3), "abc");
    ck_assert_str_eq(ent_arena_strndup(arena, "ab", 10), "ab");
    ck_assert_str_eq(ent_arena_strndup(arena, NULL, 0), "");
    ck_assert_str_eq(ent_arena_format(arena, "%s-%d-%0500d", "x", 5, 0) + 3 + 500, "0");
    ck_assert_str_eq(ent_arena_format(arena, "%s", ""), "");
    ck_assert_mem_eq(ent_arena_copy(arena, "a\0b", 3), "a\0b", 3);
    ck_assert_ptr_nonnull(ent_arena_copy(arena, NULL, 0));
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(array_push_keeps_items) {
    ent_arena *arena = ent_arena_create(0);
    ENT_ARRAY(uint32_t) numbers = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        ent_array_push(arena, &numbers, i * 3);
        if (i % 100 == 0) ent_arena_alloc(arena, 1); /* forces moves as well as growth in place */
    }
    ck_assert_uint_eq(numbers.count, 100000);
    ck_assert_uint_ge(numbers.capacity, numbers.count);
    for (uint32_t i = 0; i < numbers.count; i++) ck_assert_uint_eq(numbers.items[i], i * 3);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(statuses) {
    ent_arena *arena = ent_arena_create(0);
    char place[] = "model.onnx";
    ent_status status =
        ent_status_make(arena, ENT_ERROR_MODEL, "model.empty", place, "the file has %d bytes", 0);
    place[0] = 'X';
    ck_assert_int_eq(status->code, ENT_ERROR_MODEL);
    ck_assert_str_eq(ent_status_text(arena, status), "model.onnx: the file has 0 bytes [model.empty]");
    status = ent_status_make(arena, ENT_ERROR_USAGE, "flag.unknown", NULL, "100%% wrong");
    ck_assert_str_eq(ent_status_text(arena, status), "100% wrong [flag.unknown]");
    ck_assert_str_eq(ent_status_text(arena, NULL), "ok");
    ck_assert_int_eq(ent_status_out_of_memory()->code, ENT_ERROR_LIMIT);
    ck_assert_str_eq(ent_status_out_of_memory()->rule, "memory.exhausted");
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base_arena");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, allocations_are_aligned_zeroed_and_apart);
    tcase_add_test(cases, reused_memory_is_zero_again);
    tcase_add_test(cases, big_allocations_obey_marks);
    tcase_add_test(cases, array_refuses_overflow_and_the_limit);
    tcase_add_test(cases, arenas_share_a_budget);
    tcase_add_test(cases, a_deadline_is_an_error_of_its_own);
    tcase_add_test(cases, small_pieces_pass_the_limit_and_tell);
    tcase_add_test(cases, extend_grows_only_the_newest_and_zeroes);
    tcase_add_test(cases, strings);
    tcase_add_test(cases, array_push_keeps_items);
    tcase_add_test(cases, statuses);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
