/* Every record that ships is read without complaint, says what its file name says, and damaged records are
 * refused or read, never a crash (the sanitizer builds look closer). */
#include "core/capability/capability.h"

#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static const char *const folders[] = {"capability-db", "plugins/sim/profiles"};
static ent_arena *arena;

static void setup(void) {
    arena = ent_arena_create(0);
}

static void teardown(void) {
    ent_arena_destroy(arena);
}

static int is_record(const struct dirent *entry) {
    size_t size = strlen(entry->d_name);
    return size > 5 && strcmp(entry->d_name + size - 5, ".json") == 0 &&
           strcmp(entry->d_name, "schema.json") != 0;
}

typedef void (*visit)(const char *path, const char *stem, ent_str text);

static uint32_t each_record(visit do_it) {
    uint32_t total = 0;
    for (size_t f = 0; f < sizeof folders / sizeof folders[0]; f++) {
        struct dirent **entries = NULL;
        const char *folder = ent_arena_format(arena, "%s/%s", ENT_TEST_SOURCE_DIR, folders[f]);
        int count = scandir(folder, &entries, is_record, alphasort);
        ck_assert_msg(count >= 0, "%s cannot be listed", folder);
        for (int i = 0; i < count; i++) {
            const char *path = ent_arena_format(arena, "%s/%s", folder, entries[i]->d_name);
            ent_str text;
            ck_assert_ptr_null(ent_file_read(arena, path, ENT_ERROR_DEVICE, 1 << 20, &text));
            do_it(path, ent_arena_strndup(arena, entries[i]->d_name, strlen(entries[i]->d_name) - 5), text);
            free(entries[i]);
            total++;
        }
        free(entries);
    }
    return total;
}

static void read_record(const char *path, const char *stem, ent_str text) {
    ent_capability *capability = NULL;
    ent_status status = ent_capability_parse(arena, path, text.data, text.size, &capability);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    ck_assert_str_eq(capability->name, stem);
    ck_assert_uint_eq(strlen(capability->json), text.size);
    ck_assert_msg(strstr(capability->json, "\"source\"") != NULL,
                  "%s: a record says where its figures come from", path);
    bool linked = false;
    for (uint32_t i = 0; i < capability->link_count; i++)
        linked |= strcmp(capability->links[i].to, "host") == 0;
    ck_assert_msg(linked, "%s: without a link to host every copy is priced as unknown", path);
}

START_TEST(every_record_is_read) {
    ck_assert_uint_ge(each_record(read_record), 2);
}
END_TEST

/* A small generator, so that a failure can be repeated. */
static uint32_t state = 1;
static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void damage_record(const char *path, const char *stem, ent_str text) {
    (void)stem;
    for (uint32_t round = 0; round < 300; round++) {
        ent_arena_mark mark = ent_arena_save(arena);
        size_t size = round % 3 == 0 ? next_random() % text.size : text.size;
        char *copy = malloc(size + 1); /* no byte behind the end but this guard that is no JSON */
        memcpy(copy, text.data, size);
        copy[size] = '~';
        for (uint32_t k = 0; k < round % 4 && size; k++)
            copy[next_random() % size] = "{}[]\",:0-e\\\0x"[next_random() % 13];
        ent_capability *capability = NULL;
        ent_status status = ent_capability_parse(arena, path, copy, size, &capability);
        if (status)
            ck_assert_int_eq(status->code, ENT_ERROR_DEVICE);
        else
            ck_assert_ptr_nonnull(capability);
        free(copy);
        ent_arena_restore(arena, mark);
    }
}

START_TEST(damaged_records_are_no_crash) {
    ck_assert_uint_ge(each_record(damage_record), 2);
}
END_TEST

START_TEST(levels_and_maps_are_found_by_name) {
    const char json[] =
        "{\"schema\":1,\"name\":\"d\",\"kind\":\"cpu\",\"units\":1,\"launch_ns\":0,"
        "\"memory\":[{\"name\":\"l1\",\"scope\":\"unit\",\"bytes\":1,\"read_gbps\":1},"
        "{\"name\":\"l2\",\"scope\":\"unit\",\"bytes\":2,\"read_gbps\":1}],\"tile\":{\"maps\":[\"copy\"]}}";
    ent_capability *capability = NULL;
    ck_assert_ptr_null(ent_capability_parse(arena, "d", json, sizeof json - 1, &capability));
    ck_assert_uint_eq(ent_capability_level(capability, "l2")->bytes, 2);
    ck_assert_ptr_null(ent_capability_level(capability, "l3"));
    ck_assert(ent_capability_has_map(capability, 1));
    ck_assert(!ent_capability_has_map(capability, 2));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("capability_records");
    TCase *test = tcase_create("all");
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_set_timeout(test, 120);
    tcase_add_test(test, every_record_is_read);
    tcase_add_test(test, damaged_records_are_no_crash);
    tcase_add_test(test, levels_and_maps_are_found_by_name);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
