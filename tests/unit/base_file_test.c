#include "core/base/base.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static ent_arena *arena;
static char folder[64];

static void setup(void) {
    arena = ent_arena_create(0);
    strcpy(folder, "/tmp/entente_base_file_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static const char *path_of(const char *name) {
    return ent_arena_format(arena, "%s/%s", folder, name);
}

/* Number of entries in the folder, hidden ones too. */
static int count_entries(bool remove_them) {
    int count = 0;
    DIR *listing = opendir(folder);
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (remove_them) remove(path_of(entry->d_name));
        count++;
    }
    closedir(listing);
    return count;
}

static void teardown(void) {
    count_entries(true);
    rmdir(folder);
    ent_arena_destroy(arena);
}

static ent_status write_text(const char *name, const char *text) {
    ent_file_chunk chunk = {text, strlen(text)};
    return ent_file_write_atomic(arena, path_of(name), &chunk, 1);
}

static void check_content(const char *name, const char *expected) {
    ent_str content;
    ck_assert_ptr_null(ent_file_read(arena, path_of(name), ENT_ERROR_MODEL, 0, &content));
    ck_assert_uint_eq(content.size, strlen(expected));
    ck_assert_str_eq(content.data, expected);
}

static void check_rule(ent_status status, ent_error_code code, const char *rule) {
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, code);
    ck_assert_str_eq(status->rule, rule);
}

START_TEST(write_then_read_and_map) {
    ent_file_chunk chunks[] = {{"head", 4}, {NULL, 0}, {"\0tail", 5}};
    ck_assert_ptr_null(ent_file_write_atomic(arena, path_of("a"), chunks, 3));
    ent_str content;
    ck_assert_ptr_null(ent_file_read(arena, path_of("a"), ENT_ERROR_MODEL, 9, &content));
    ck_assert_uint_eq(content.size, 9);
    ck_assert_mem_eq(content.data, "head\0tail\0", 10);
    ent_file_map map;
    ck_assert_ptr_null(ent_file_map_open(arena, path_of("a"), ENT_ERROR_MODEL, &map));
    ck_assert_uint_eq(map.size_bytes, 9);
    ck_assert_mem_eq(map.data, "head\0tail", 9);
    ent_file_map_close(&map);
    ck_assert_ptr_null(map.data);
    ent_file_map_close(&map);
    ck_assert_int_eq(count_entries(false), 1);
}
END_TEST

START_TEST(new_files_obey_the_umask) {
    mode_t old = umask(027);
    ck_assert_ptr_null(write_text("a", "x"));
    umask(old);
    struct stat info;
    ck_assert_int_eq(stat(path_of("a"), &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0640);
}
END_TEST

START_TEST(empty_files) {
    ck_assert_ptr_null(ent_file_write_atomic(arena, path_of("a"), NULL, 0));
    check_content("a", "");
    ent_file_map map = {(const uint8_t *)"x", 1};
    ck_assert_ptr_null(ent_file_map_open(arena, path_of("a"), ENT_ERROR_MODEL, &map));
    ck_assert_ptr_null(map.data);
    ck_assert_uint_eq(map.size_bytes, 0);
}
END_TEST

START_TEST(files_without_a_size_are_read_whole) {
    ent_str content;
    ck_assert_ptr_null(ent_file_read(arena, "/proc/self/smaps", ENT_ERROR_MODEL, 0, &content));
    ck_assert_uint_gt(content.size, 4096);
    ck_assert_uint_eq(strlen(content.data), content.size);
    check_rule(ent_file_read(arena, "/proc/self/smaps", ENT_ERROR_MODEL, 100, &content), ENT_ERROR_LIMIT,
               "file.too-large");
}
END_TEST

START_TEST(reading_refuses) {
    ent_str content;
    ent_file_map map;
    ent_status status = ent_file_read(arena, path_of("none"), ENT_ERROR_USAGE, 0, &content);
    check_rule(status, ENT_ERROR_USAGE, "file.open");
    ck_assert_str_eq(status->place, path_of("none"));
    check_rule(ent_file_map_open(arena, path_of("none"), ENT_ERROR_MODEL, &map), ENT_ERROR_MODEL,
               "file.open");
    check_rule(ent_file_read(arena, folder, ENT_ERROR_MODEL, 0, &content), ENT_ERROR_MODEL,
               "file.not-regular");
    check_rule(ent_file_map_open(arena, "/dev/zero", ENT_ERROR_MODEL, &map), ENT_ERROR_MODEL,
               "file.not-regular");
    /* A FIFO without a writer must be refused, not waited for. */
    ck_assert_int_eq(mkfifo(path_of("fifo"), 0600), 0);
    check_rule(ent_file_read(arena, path_of("fifo"), ENT_ERROR_MODEL, 0, &content), ENT_ERROR_MODEL,
               "file.not-regular");
    ck_assert_ptr_null(write_text("a", "12345"));
    check_rule(ent_file_read(arena, path_of("a"), ENT_ERROR_MODEL, 4, &content), ENT_ERROR_LIMIT,
               "file.too-large");
    ck_assert_int_eq(truncate(path_of("a"), (off_t)1 << 40), 0); /* sparse */
    check_rule(ent_file_read(arena, path_of("a"), ENT_ERROR_MODEL, 0, &content), ENT_ERROR_LIMIT,
               "file.too-large");
    ent_arena *small = ent_arena_create(4096);
    ck_assert_int_eq(truncate(path_of("a"), 1 << 20), 0);
    check_rule(ent_file_read(small, path_of("a"), ENT_ERROR_MODEL, 0, &content), ENT_ERROR_LIMIT,
               "memory.exhausted");
    ent_arena_destroy(small);
}
END_TEST

START_TEST(failed_write_leaves_nothing) {
    ck_assert_ptr_null(write_text("a", "old"));
    size_t size = 1 << 20;
    ent_file_chunk chunks[] = {{"new", 3}, {ent_arena_alloc(arena, size), size}};
    struct rlimit old, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 65536;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ent_status replaced = ent_file_write_atomic(arena, path_of("a"), chunks, 2);
    ent_status created = ent_file_write_atomic(arena, path_of("b"), chunks, 2);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, handler);
    check_rule(replaced, ENT_ERROR_LIMIT, "file.write");
    check_rule(created, ENT_ERROR_LIMIT, "file.write");
    check_content("a", "old");
    ck_assert_int_eq(count_entries(false), 1);
}
END_TEST

START_TEST(writing_refuses) {
    check_rule(write_text("none/a", "x"), ENT_ERROR_USAGE, "file.write");
    check_rule(write_text("", "x"), ENT_ERROR_USAGE, "file.not-regular"); /* the folder itself */
    ent_file_chunk chunk = {"x", 1};
    check_rule(ent_file_write_atomic(arena, "", &chunk, 1), ENT_ERROR_USAGE, "file.write");
    check_rule(ent_file_write_atomic(arena, "/dev/null", &chunk, 1), ENT_ERROR_USAGE, "file.not-regular");
    struct stat info;
    ck_assert_int_eq(stat("/dev/null", &info), 0);
    ck_assert(S_ISCHR(info.st_mode));
    check_rule(write_text("a/", "x"), ENT_ERROR_USAGE, "file.write");
    ck_assert_int_eq(count_entries(false), 0);
}
END_TEST

START_TEST(links_are_followed) {
    ck_assert_ptr_null(write_text("a", "old"));
    ck_assert_int_eq(symlink("a", path_of("link")), 0);
    ck_assert_ptr_null(write_text("link", "new"));
    check_content("a", "new");
    struct stat info;
    ck_assert_int_eq(lstat(path_of("link"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(symlink("gone", path_of("dangling")), 0);
    check_rule(write_text("dangling", "x"), ENT_ERROR_USAGE, "file.write");
    ck_assert_int_eq(count_entries(false), 3);
}
END_TEST

/* What ent_log prints for a name, with stderr sent to a file meanwhile. */
static const char *logged(ent_log_level level, const char *name) {
    fflush(stderr);
    int saved = dup(2), descriptor = open(path_of("log"), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    dup2(descriptor, 2);
    ent_log(level, "<%s>", name);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    close(descriptor);
    ent_str content;
    ck_assert_ptr_null(ent_file_read(arena, path_of("log"), ENT_ERROR_MODEL, 0, &content));
    return content.data;
}

START_TEST(log_lines) {
    ent_log_set_level(ENT_LOG_INFO);
    ck_assert(ent_log_enabled(ENT_LOG_ERROR) && ent_log_enabled(ENT_LOG_INFO) &&
              !ent_log_enabled(ENT_LOG_DEBUG));
    ck_assert_str_eq(logged(ENT_LOG_DEBUG, "x"), "");
    ck_assert_str_eq(logged(ENT_LOG_INFO, "x"), "entente: info: <x>\n");
    ck_assert_str_eq(logged(ENT_LOG_ERROR, "a\nb\x1b[31m"), "entente: error: <a b [31m>\n");
    char *name = ent_arena_alloc(arena, 10001);
    memset(name, 'n', 10000);
    const char *line = logged(ENT_LOG_WARNING, name);
    ck_assert_str_eq(line + strlen(line) - 5, "n...\n");
    /* Around the cut no byte is lost without the dots. */
    for (size_t size = 4000; size < 4200; size++) {
        name[size] = '\0';
        line = logged(ENT_LOG_WARNING, name);
        const char *last = line + strlen(line) - 4;
        ck_assert(strcmp(last, "...\n") == 0 || strcmp(last, "nn>\n") == 0);
        name[size] = 'n';
    }
    ent_log_set_level(ENT_LOG_WARNING);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("base_file");
    TCase *cases = tcase_create("all");
    tcase_add_test(cases, write_then_read_and_map);
    tcase_add_test(cases, new_files_obey_the_umask);
    tcase_add_test(cases, empty_files);
    tcase_add_test(cases, files_without_a_size_are_read_whole);
    tcase_add_test(cases, reading_refuses);
    tcase_add_test(cases, failed_write_leaves_nothing);
    tcase_add_test(cases, writing_refuses);
    tcase_add_test(cases, links_are_followed);
    tcase_add_test(cases, log_lines);
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
