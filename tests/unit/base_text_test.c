#include "core/base/base.h"

#include <check.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static ent_arena *arena;

static void setup(void) {
    arena = ent_arena_create(0);
}

static void teardown(void) {
    ent_arena_destroy(arena);
}

static const char *number(double value, bool is_float) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_text_add_number(&text, value, is_float);
    return text.data;
}

static const char *json(const char *data, size_t size) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_text_add_json_string(&text, data, size);
    ck_assert_uint_eq(strlen(text.data), text.size);
    return text.data;
}

START_TEST(text_grows) {
    ent_text text;
    ent_text_init(&text, arena);
    ck_assert_str_eq(text.data, "");
    for (int i = 0; i < 2000; i++) {
        ent_text_add(&text, "%04d,", i);
        if (i % 64 == 0) ent_arena_alloc(arena, 1); /* forces a move at the next growth */
    }
    ck_assert_uint_eq(text.size, 10000);
    ck_assert_uint_eq(strlen(text.data), 10000);
    for (int i = 0; i < 2000; i++) ck_assert_int_eq(atoi(text.data + i * 5), i);
    ent_text_add_bytes(&text, "a\0b", 3);
    ck_assert_mem_eq(text.data + 10000, "a\0b\0", 4);
    ent_text_add(&text, "%5000s", "x");
    ck_assert_uint_eq(text.size, 15003);
    ck_assert_str_eq(text.data + 15002, "x");
}
END_TEST

START_TEST(numbers_are_short) {
    ck_assert_str_eq(number(0.1, false), "0.1");
    ck_assert_str_eq(number(1.0 / 3, false), "0.3333333333333333");
    ck_assert_str_eq(number(0.1 + 0.2, false), "0.30000000000000004");
    ck_assert_str_eq(number(3, false), "3");
    ck_assert_str_eq(number(-0.0, false), "-0");
    ck_assert_str_eq(number(1e21, false), "1e+21");
    ck_assert_str_eq(number(5e-324, false), "5e-324");
    ck_assert_str_eq(number(DBL_MAX, false), "1.7976931348623157e+308");
    ck_assert_str_eq(number(0.1f, true), "0.1");
    ck_assert_str_eq(number(0.1f, false), "0.10000000149011612");
    ck_assert_str_eq(number(16777216, true), "16777216");
    ck_assert_str_eq(number((double)FLT_MAX, true), "3.4028235e+38");
    ck_assert_str_eq(number(1e-45, true), "1e-45");
    ck_assert_str_eq(number(NAN, false), "nan");
    ck_assert_str_eq(number(-NAN, true), "nan");
    ck_assert_str_eq(number(INFINITY, false), "inf");
    ck_assert_str_eq(number(-INFINITY, true), "-inf");
}
END_TEST

START_TEST(numbers_come_back) {
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ent_arena_mark mark = ent_arena_save(arena);
        double wide, back;
        float narrow;
        uint32_t bits = (uint32_t)state;
        memcpy(&wide, &state, sizeof wide);
        memcpy(&narrow, &bits, sizeof narrow);
        if (isfinite(wide)) {
            back = strtod(number(wide, false), NULL);
            ck_assert_mem_eq(&back, &wide, sizeof wide);
        }
        if (isfinite(narrow)) {
            float narrow_back = strtof(number((double)narrow, true), NULL);
            ck_assert_mem_eq(&narrow_back, &narrow, sizeof narrow);
        }
        ent_arena_restore(arena, mark);
    }
}
END_TEST

START_TEST(json_escapes) {
    ck_assert_str_eq(json("", 0), "\"\"");
    ck_assert_str_eq(json("a\"b\\c/", 6), "\"a\\\"b\\\\c/\"");
    ck_assert_str_eq(json("\n\t\r\b\f", 5), "\"\\n\\t\\r\\b\\f\"");
    ck_assert_str_eq(json("\0\x1f\x7f", 3), "\"\\u0000\\u001f\x7f\"");
    ck_assert_str_eq(json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9),
                     "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}
END_TEST

#define BAD "\xef\xbf\xbd"

START_TEST(json_replaces_invalid_utf8) {
    ck_assert_str_eq(json("a\xff"
                          "b",
                          3),
                     "\"a" BAD "b\"");
    ck_assert_str_eq(json("\xc0\x80", 2), "\"" BAD BAD "\"");                 /* overlong NUL */
    ck_assert_str_eq(json("\xe0\x9f\xbf", 3), "\"" BAD BAD BAD "\"");         /* overlong */
    ck_assert_str_eq(json("\xed\xa0\x80", 3), "\"" BAD BAD BAD "\"");         /* surrogate */
    ck_assert_str_eq(json("\xf4\x90\x80\x80", 4), "\"" BAD BAD BAD BAD "\""); /* past the end of Unicode */
    ck_assert_str_eq(json("\xe2\x82", 2), "\"" BAD BAD "\"");                 /* cut */
    ck_assert_str_eq(json("\xe2\"", 2), "\"" BAD "\\\"\"");
    ck_assert_str_eq(json("\xed\x9f\xbf\xf4\x8f\xbf\xbf", 7), "\"\xed\x9f\xbf\xf4\x8f\xbf\xbf\"");
}
END_TEST

/* Makes a locale with a decimal comma in `folder` and enters it, since a bare system has none. libc's own
 * localedef needs no installed locale for that; it exits with 1 over the categories that are not given. */
static bool enter_comma_locale(const char *folder) {
    const char *source = ent_arena_format(arena, "%s/comma.src", folder);
    FILE *file = fopen(source, "w");
    ck_assert_ptr_nonnull(file);
    fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n", file);
    fclose(file);
    int ignored = system(ent_arena_format(arena, "localedef -c --no-archive -i %s %s/comma >%s/log 2>&1",
                                          source, folder, folder));
    (void)ignored;
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_NUMERIC, "comma") != NULL;
}

START_TEST(numbers_ignore_the_locale) {
    char folder[] = "/tmp/entente_base_text_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    if (enter_comma_locale(folder)) {
        ck_assert_str_eq(ent_arena_format(arena, "%g", 1.5), "1,5"); /* the locale does what it is for */
        ck_assert_str_eq(number(-2.5e-10, false), "-2.5e-10");
        ck_assert_str_eq(number(0.1f, true), "0.1");
        ent_scan scan;
        double value;
        ent_scan_init(&scan, arena, "t", "1.5", 3);
        ck_assert_ptr_null(ent_scan_number(&scan, &value));
        ck_assert_double_eq(value, 1.5);
        setlocale(LC_NUMERIC, "C");
    } else {
        fputs("numbers_ignore_the_locale: skipped, localedef made no locale here\n", stderr);
    }
    unsetenv("LOCPATH");
    ck_assert_int_eq(system(ent_arena_format(arena, "rm -r %s", folder)), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base_text");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, text_grows);
    tcase_add_test(cases, numbers_are_short);
    tcase_add_test(cases, numbers_come_back);
    tcase_add_test(cases, json_escapes);
    tcase_add_test(cases, json_replaces_invalid_utf8);
    tcase_add_test(cases, numbers_ignore_the_locale);
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
