#include "core/program/program.h"

#include <check.h>
#include <stdlib.h>

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 11) % limit;
}

static bool meet(const ent_memory_item *a, const ent_memory_item *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Every pair that lives at one time is apart, offsets are aligned, and the peak is what the items reach. */
static void check_placement(const ent_memory_item *items, uint32_t count, uint32_t alignment,
                            ent_memory_result result) {
    uint64_t peak = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = items[i].offset_bytes + items[i].size_bytes;
        ck_assert_uint_eq(items[i].offset_bytes % alignment, 0);
        if (items[i].size_bytes && (end + alignment - 1) / alignment * alignment > peak)
            peak = (end + alignment - 1) / alignment * alignment;
        for (uint32_t k = 0; k < i; k++)
            if (meet(&items[i], &items[k]) && items[i].size_bytes && items[k].size_bytes)
                ck_assert_msg(end <= items[k].offset_bytes ||
                                  items[k].offset_bytes + items[k].size_bytes <= items[i].offset_bytes,
                              "items %u and %u overlap", i, k);
    }
    ck_assert_uint_eq(peak, result.peak_bytes);
    ck_assert_uint_ge(result.peak_bytes, result.lower_bound_bytes);
}

static ent_memory_result place(ent_memory_item *items, uint32_t count, uint32_t alignment) {
    ent_arena *arena = ent_arena_create(0);
    ent_memory_result result;
    ck_assert_ptr_null(ent_memory_place(arena, items, count, alignment, &result));
    ent_arena_destroy(arena);
    return result;
}

START_TEST(places_random_problems) {
    for (uint32_t round = 0; round < 300; round++) {
        ent_memory_item items[120];
        uint32_t count = 1 + random_below(120), steps = 1 + random_below(60);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t first = random_below(steps), length = random_below(10);
            items[i] = (ent_memory_item){first, first + length, random_below(8) ? random_below(5000) : 0, 77};
        }
        uint32_t alignment = 1u << random_below(8);
        check_placement(items, count, alignment, place(items, count, alignment));
    }
}
END_TEST

START_TEST(the_bound_is_the_largest_sum_alive) {
    ent_memory_item items[] = {{0, 2, 100, 0}, {1, 3, 50, 0}, {3, 4, 200, 0}, {4, 4, 0, 0}};
    ent_memory_result result = place(items, 4, 1);
    ck_assert_uint_eq(result.lower_bound_bytes, 250);
    ck_assert_uint_eq(result.peak_bytes, 250);
    ent_memory_result none = place(items, 0, 64);
    ck_assert_uint_eq(none.peak_bytes, 0);
}
END_TEST

/* Smallest peak of all orders with lowest fit, which contains an optimal placement. */
static uint64_t brute_force(ent_memory_item *items, uint32_t count, uint32_t placed, uint32_t used,
                            uint64_t best) {
    if (placed == count) {
        uint64_t peak = 0;
        for (uint32_t i = 0; i < count; i++)
            if (items[i].offset_bytes + items[i].size_bytes > peak)
                peak = items[i].offset_bytes + items[i].size_bytes;
        return peak < best ? peak : best;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (used >> i & 1u) continue;
        uint64_t offset = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (uint32_t k = 0; k < count; k++)
                if ((used >> k & 1u) && meet(&items[i], &items[k]) &&
                    offset < items[k].offset_bytes + items[k].size_bytes &&
                    items[k].offset_bytes < offset + items[i].size_bytes)
                    offset = items[k].offset_bytes + items[k].size_bytes, moved = true;
        }
        items[i].offset_bytes = offset;
        best = brute_force(items, count, placed + 1, used | 1u << i, best);
    }
    return best;
}

START_TEST(small_problems_are_solved_to_the_optimum) {
    uint32_t optimal = 0, rounds = 60;
    for (uint32_t round = 0; round < rounds; round++) {
        ent_memory_item items[7], copy[7];
        for (uint32_t i = 0; i < 7; i++) {
            uint32_t first = random_below(6);
            items[i] = (ent_memory_item){first, first + random_below(4), 1 + random_below(9), 0};
            copy[i] = items[i];
        }
        uint64_t best = brute_force(copy, 7, 0, 0, UINT64_MAX);
        ent_memory_result result = place(items, 7, 1);
        ck_assert_uint_le(best, result.peak_bytes);
        optimal += best == result.peak_bytes;
    }
    ck_assert_uint_ge(optimal, rounds - 1);
}
END_TEST

START_TEST(same_items_same_offsets) {
    ent_memory_item items[200], again[200];
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t first = random_below(50);
        items[i] = again[i] = (ent_memory_item){first, first + random_below(20), 1 + random_below(100000), 0};
    }
    place(items, 200, 64);
    place(again, 200, 64);
    for (uint32_t i = 0; i < 200; i++) ck_assert_uint_eq(items[i].offset_bytes, again[i].offset_bytes);
}
END_TEST

/* 100k items: a chain with skips as networks have, and one in which a tenth of all live at once. */
static double place_many(uint32_t longest, double allowed_over_bound) {
    enum { COUNT = 100000 };
    ent_memory_item *items = calloc(COUNT, sizeof *items);
    ck_assert_ptr_nonnull(items);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t length = random_below(20) ? 1 + random_below(3) : random_below(longest);
        items[i] = (ent_memory_item){i, i + length, 64u * (1 + random_below(4000)), 0};
    }
    uint64_t begin = ent_time_ns();
    ent_memory_result result = place(items, COUNT, 64);
    double seconds = (double)(ent_time_ns() - begin) * 1e-9;
    ck_assert_uint_ge(result.peak_bytes, result.lower_bound_bytes);
    ck_assert_msg((double)result.peak_bytes <= allowed_over_bound * (double)result.lower_bound_bytes,
                  "peak %llu bound %llu", (unsigned long long)result.peak_bytes,
                  (unsigned long long)result.lower_bound_bytes);
    free(items);
    return seconds;
}

START_TEST(many_items_take_seconds_at_most) {
    double chain = place_many(200, 1.4), dense = place_many(40000, 1.4);
    printf("100k items: chain %.2f s, dense %.2f s\n", chain, dense);
    ck_assert_double_lt(chain, 20);
    ck_assert_double_lt(dense, 20);
}
END_TEST

START_TEST(sizes_beyond_the_number_range_are_refused) {
    ent_arena *arena = ent_arena_create(0);
    ent_memory_item items[] = {{0, 1, UINT64_MAX - 3, 0}, {0, 1, (uint64_t)1 << 62, 0}};
    ent_memory_result result;
    ent_status status = ent_memory_place(arena, items, 1, 64, &result);
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, ENT_ERROR_LIMIT);
    status = ent_memory_place(arena, items + 1, 1, 64, &result);
    ck_assert_ptr_nonnull(status);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("program_memory");
    TCase *tests = tcase_create("memory");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, places_random_problems);
    tcase_add_test(tests, the_bound_is_the_largest_sum_alive);
    tcase_add_test(tests, small_problems_are_solved_to_the_optimum);
    tcase_add_test(tests, same_items_same_offsets);
    tcase_add_test(tests, many_items_take_seconds_at_most);
    tcase_add_test(tests, sizes_beyond_the_number_range_are_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
