/* The text reader and everything behind it on damaged text: an error or a sound module, never a crash. The
 * sanitizer build is what makes this bite. */
#include <check.h>
#include <dirent.h>
#include <string.h>

#include "core/graph/graph.h"

/* Whatever parses goes through every stage. */
static void exercise(const char *text) {
    ent_arena *arena = ent_arena_create(0);
    ent_module *module = NULL;
    ent_status status = ent_module_parse(arena, "damaged", text, &module);
    if (status) {
        ck_assert_ptr_nonnull(status->text);
        ent_arena_destroy(arena);
        return;
    }
    ck_assert_ptr_nonnull(ent_module_print(module, arena));
    for (uint32_t g = 0; !status && g < module->graphs.count; g++) status = ent_graph_sort(module, g);
    if (!status) status = ent_module_infer(module, arena);
    if (!status) status = ent_module_verify(module, arena);
    if (!status) status = ent_module_freeze(module, arena);
    if (!status) {
        const char *printed = ent_module_print(module, arena);
        ent_module *again = NULL;
        status = ent_module_parse(arena, "printed", printed, &again);
        if (!status) ck_assert_str_eq(ent_module_print(again, arena), printed);
    }
    ent_arena_destroy(arena);
}

static uint64_t random_state = 1;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

static void damage(const char *original, size_t size) {
    static const char alphabet[] = "%\"{}[]()=,:-*+0129NxfI _@.";
    ent_arena *arena = ent_arena_create(0);
    for (uint32_t round = 0; round < 40; round++) {
        char *copy = ent_arena_strndup(arena, original, size);
        uint32_t at = draw((uint32_t)size), length = draw(12);
        switch (draw(4)) {
        case 0:
            copy[at] = 0;
            break;
        case 1:
            copy[at] = alphabet[draw(sizeof alphabet - 1)];
            break;
        case 2: /* a piece is cut out */
            if (at + length > size) length = (uint32_t)size - at;
            memmove(copy + at, copy + at + length, size - at - length + 1);
            break;
        default:
            for (uint32_t i = 0; i < length && at + i < size; i++) copy[at + i] = copy[draw((uint32_t)size)];
        }
        exercise(copy);
    }
    ent_arena_destroy(arena);
}

static void damage_folder(const char *folder) {
    ent_arena *arena = ent_arena_create(0);
    DIR *entries = opendir(folder);
    uint32_t files = 0;
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry; (entry = readdir(entries));) {
        ent_str text;
        if (!strstr(entry->d_name, ".txt")) continue;
        ck_assert_ptr_null(ent_file_read(arena, ent_arena_format(arena, "%s/%s", folder, entry->d_name),
                                         ENT_ERROR_USAGE, 0, &text));
        const char *end = strstr(text.data, "--- expect");
        ck_assert_ptr_nonnull(end);
        damage(text.data, (size_t)(end - text.data));
        files++;
    }
    closedir(entries);
    ent_arena_destroy(arena);
    ck_assert_uint_gt(files, 20);
}

START_TEST(damaged_graphs) {
    damage_folder("tests/golden/graph");
}
END_TEST

START_TEST(damaged_shapes) {
    damage_folder("tests/golden/infer");
}
END_TEST

START_TEST(every_cut_of_one_text) {
    ent_arena *arena = ent_arena_create(0);
    ent_str text;
    ck_assert_ptr_null(ent_file_read(arena, "tests/golden/graph/forms.txt", ENT_ERROR_USAGE, 0, &text));
    const char *end = strstr(text.data, "--- expect");
    for (size_t size = 0; size < (size_t)(end - text.data); size++)
        exercise(ent_arena_strndup(arena, text.data, size));
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("graph text");
    TCase *tests = tcase_create("text");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, damaged_graphs);
    tcase_add_test(tests, damaged_shapes);
    tcase_add_test(tests, every_cut_of_one_text);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
