#include "core/base/base.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static ent_arena *arena;
static ent_scan scan;
static char *exact; /* a copy without room behind it, so that a sanitizer sees any read past the end */

static void setup(void) {
    arena = ent_arena_create(0);
    exact = NULL;
}

static void teardown(void) {
    free(exact);
    ent_arena_destroy(arena);
}

static void start(const char *text) {
    size_t size = strlen(text);
    free(exact);
    exact = malloc(size ? size : 1);
    memcpy(exact, text, size);
    ent_scan_init(&scan, arena, "t.ent", exact, size);
}

static void check_error(ent_status status, const char *expected) {
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, ENT_ERROR_MODEL);
    ck_assert_str_eq(ent_status_text(arena, status), expected);
}

START_TEST(skips_space_and_comments) {
    start("  # one\n\t#two\r\n\n  node # tail");
    ck_assert(!ent_scan_done(&scan));
    ck_assert_uint_eq(scan.line, 4);
    ck_assert_str_eq(ent_scan_word(&scan), "node");
    ck_assert(ent_scan_done(&scan));
    start("#\n#\nx");
    ck_assert_str_eq(ent_scan_word(&scan), "x");
    ck_assert_uint_eq(scan.line, 3);
    start("");
    ck_assert(ent_scan_done(&scan));
    ent_scan_init(&scan, arena, "t.ent", NULL, 0);
    ck_assert(ent_scan_done(&scan));
}
END_TEST

START_TEST(tokens) {
    start("nodes = v12 -> %x 2x3 node");
    ck_assert(!ent_scan_accept(&scan, "node"));
    ck_assert(ent_scan_accept(&scan, "nodes"));
    ck_assert(!ent_scan_accept(&scan, "->"));
    ck_assert(ent_scan_accept(&scan, "="));
    ck_assert(ent_scan_accept(&scan, "v"));
    int64_t value;
    ck_assert_ptr_null(ent_scan_int(&scan, &value));
    ck_assert_int_eq(value, 12);
    ck_assert_ptr_null(ent_scan_expect(&scan, "->"));
    ck_assert(ent_scan_accept(&scan, "%"));
    ck_assert_str_eq(ent_scan_word(&scan), "x");
    ck_assert_ptr_null(ent_scan_int(&scan, &value));
    ck_assert(ent_scan_accept(&scan, "x"));
    ck_assert_ptr_null(ent_scan_int(&scan, &value));
    ck_assert_int_eq(value, 3);
    ck_assert(!ent_scan_accept(&scan, "node_longer_than_the_text"));
    ck_assert(ent_scan_accept(&scan, "node"));
    ck_assert(!ent_scan_accept(&scan, "x"));
}
END_TEST

START_TEST(words) {
    start("_a.b-9 9x");
    ck_assert_str_eq(ent_scan_word(&scan), "_a.b");
    ck_assert_ptr_null(ent_scan_word(&scan));
    ck_assert(ent_scan_accept(&scan, "-9"));
    ck_assert_ptr_null(ent_scan_word(&scan));
}
END_TEST

START_TEST(strings) {
    ent_str out;
    start(" \"a\\n\\t\\r\\\"\\\\\\x00\\xfFz\" \"\"");
    ck_assert_ptr_null(ent_scan_string(&scan, &out));
    ck_assert_uint_eq(out.size, 9);
    ck_assert_mem_eq(out.data, "a\n\t\r\"\\\0\xffz", 10); /* with the NUL behind */
    ck_assert_ptr_null(ent_scan_string(&scan, &out));
    ck_assert_uint_eq(out.size, 0);
    ck_assert(ent_scan_done(&scan));
}
END_TEST

START_TEST(broken_strings) {
    static const char *const unclosed[] = {"\n\"abc", "\n\"abc\n\"", "\n\"abc\\\"", "\n\"abc\\", "\n\""};
    static const char *const bad_escape[] = {"\"\\q\"", "\"\\x1\"", "\"\\xg0\"", "\"\\x\""};
    ent_str out;
    for (size_t i = 0; i < sizeof unclosed / sizeof *unclosed; i++) {
        start(unclosed[i]);
        check_error(
            ent_scan_string(&scan, &out),
            "t.ent:2: the string has no closing quote on its line; write a line break as \\n [text.syntax]");
    }
    for (size_t i = 0; i < sizeof bad_escape / sizeof *bad_escape; i++) {
        start(bad_escape[i]);
        ent_status status = ent_scan_string(&scan, &out);
        ck_assert_ptr_nonnull(status);
        ck_assert_ptr_nonnull(strstr(status->text, "unknown escape"));
    }
    start("abc");
    check_error(ent_scan_string(&scan, &out),
                "t.ent:1: expected a string in double quotes, found \"abc\" [text.syntax]");
}
END_TEST

START_TEST(integers) {
    int64_t out;
    start("0 -1 +7 9223372036854775807 -9223372036854775808 9223372036854775808");
    static const int64_t expected[] = {0, -1, 7, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_ptr_null(ent_scan_int(&scan, &out));
        ck_assert_int_eq(out, expected[i]);
    }
    check_error(ent_scan_int(&scan, &out), "t.ent:1: the integer does not fit in 64 bits [text.syntax]");
    start("-9223372036854775809");
    ck_assert_ptr_nonnull(ent_scan_int(&scan, &out));
    start("\n-x");
    check_error(ent_scan_int(&scan, &out), "t.ent:2: expected an integer, found \"-x\" [text.syntax]");
    start("0x3");
    ck_assert_ptr_null(ent_scan_int(&scan, &out));
    ck_assert(ent_scan_accept(&scan, "x"));
}
END_TEST

START_TEST(numbers) {
    double out;
    start("1.5, -2e-3 inf -inf nan .5 7 1e400 2x3");
    ck_assert_ptr_null(ent_scan_number(&scan, &out));
    ck_assert_double_eq(out, 1.5);
    ck_assert(ent_scan_accept(&scan, ","));
    static const double expected[] = {-2e-3, INFINITY, -INFINITY, NAN, 0.5, 7, INFINITY, 2};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_ptr_null(ent_scan_number(&scan, &out));
        ck_assert(isnan(expected[i]) ? isnan(out) : out == expected[i]);
    }
    ck_assert(ent_scan_accept(&scan, "x"));
    start("1-2");
    ck_assert_ptr_null(ent_scan_number(&scan, &out));
    ck_assert_double_eq(out, 1);
    ck_assert_ptr_null(ent_scan_number(&scan, &out));
    ck_assert_double_eq(out, -2);
    start("abc");
    check_error(ent_scan_number(&scan, &out), "t.ent:1: expected a number, found \"abc\" [text.syntax]");
    start("");
    check_error(ent_scan_number(&scan, &out),
                "t.ent:1: expected a number, found the end of the text [text.syntax]");
    char *digits = ent_arena_alloc(arena, 5001);
    memset(digits, '1', 5000);
    start(digits);
    ck_assert_ptr_nonnull(ent_scan_number(&scan, &out));
}
END_TEST

START_TEST(printed_numbers_scan_back) {
    static const double values[] = {0.1, -1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789012345678.0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ent_text text;
        double out;
        ent_text_init(&text, arena);
        ent_text_add_number(&text, values[i], false);
        start(text.data);
        ck_assert_ptr_null(ent_scan_number(&scan, &out));
        ck_assert(out == values[i]);
        ck_assert(ent_scan_done(&scan));
    }
}
END_TEST

START_TEST(errors_name_line_and_what_is_there) {
    start("a\n\n# c\n  ] tail");
    ck_assert_str_eq(ent_scan_word(&scan), "a");
    check_error(ent_scan_expect(&scan, "["), "t.ent:4: expected \"[\", found \"]\" [text.syntax]");
    ck_assert(ent_scan_accept(&scan, "]")); /* the cursor did not move past it */
    check_error(ent_scan_error(&scan, "unknown %s", "thing"), "t.ent:4: unknown thing [text.syntax]");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base_scan");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, skips_space_and_comments);
    tcase_add_test(cases, tokens);
    tcase_add_test(cases, words);
    tcase_add_test(cases, strings);
    tcase_add_test(cases, broken_strings);
    tcase_add_test(cases, integers);
    tcase_add_test(cases, numbers);
    tcase_add_test(cases, printed_numbers_scan_back);
    tcase_add_test(cases, errors_name_line_and_what_is_there);
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
