/* Loading: what a library must be, in which words the others are refused, and that nothing of a refused one
 * is called (their functions end the process). */
#define _GNU_SOURCE
#include "tests/unit/host_folder.h"

static host_folder folder;

static void setup(void) {
    host_folder_make(&folder);
}

static void teardown(void) {
    host_folder_remove(&folder);
}

static const struct {
    const char *library, *rule, *words;
} refusals[] = {
    {"broken_no_symbol", "plugin.missing-symbol", "has no symbol ent_plugin_v1"},
    {"broken_too_new", "plugin.abi", "speaks ABI 2 to 3, this host speaks 1"},
    {"broken_too_old", "plugin.abi", "speaks ABI 0 to 0, this host speaks 1"},
    {"broken_small_table", "plugin.abi", "its table has 40 bytes, ABI 1 needs at least"},
    {"broken_no_functions", "plugin.abi", "open, close and get_interface must be set"},
    {"broken_must_understand", "plugin.abi", "must be understood"},
    {"broken_missing_dependency", "plugin.loader", "libentente_absent.so"},
    {"broken_open_fails", "plugin.open", "no such hardware on the bus"},
    {"gone", "plugin.loader", "names a library that is not there"},
};

START_TEST(broken_libraries_are_refused_with_path_and_rule) {
    const char *library = host_folder_library(&folder, refusals[_i].library);
    host_folder_manifest(&folder, "p", library);
    ent_host_registry *registry = host_folder_scan(&folder, NULL);
    ent_host_plugin *plugin = ent_host_find(registry, "p");
    ck_assert_ptr_null(plugin->refused); /* the manifest gives no reason: the library does */
    ent_status status = ent_host_load(registry, plugin);
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, ENT_ERROR_DEVICE);
    ck_assert_str_eq(status->rule, refusals[_i].rule);
    ck_assert_str_eq(plugin->refused_rule, refusals[_i].rule);
    ck_assert_msg(strstr(status->text, refusals[_i].words) != NULL, "%s", status->text);
    bool names_it = strstr(status->text, library) || strcmp(refusals[_i].rule, "plugin.open") == 0;
    ck_assert_msg(names_it, "no path: %s", status->text);
    ck_assert_ptr_null(plugin->library);
    ck_assert_ptr_nonnull(ent_host_load(registry, plugin)); /* and stays refused */
    ent_host_close(registry);
}
END_TEST

static void check_loader(const char *library, const char *words) {
    host_folder_manifest(&folder, "p", library);
    ent_host_registry *registry = host_folder_scan(&folder, NULL);
    ent_status status = ent_host_load(registry, ent_host_find(registry, "p"));
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "plugin.loader");
    ck_assert_msg(strstr(status->text, words) != NULL, "%s", status->text);
    ent_host_close(registry);
}

START_TEST(files_that_are_no_libraries_are_refused) {
    check_loader(host_folder_write(&folder, "text.so",
                                   "I am a text, not a library, and longer than an ELF header is.\n"),
                 "the loader says");
    check_loader(host_folder_write(&folder, "empty.so", ""), "the loader says");
    check_loader(folder.path, "is not a regular file");
    check_loader("/dev/zero", "is not a regular file");
}
END_TEST

/* The good library with another machine's number in its ELF header: e_machine, the two bytes at 18. */
START_TEST(libraries_of_another_machine_are_refused_in_the_loaders_words) {
    ent_str good;
    const char *path = host_folder_library(&folder, "hostile");
    ck_assert_ptr_null(ent_file_read(folder.arena, path, ENT_ERROR_DEVICE, 64 << 20, &good));
    char *bytes = ent_arena_copy(folder.arena, good.data, good.size);
    bytes[18] = (char)0xf3; /* RISC-V */
    bytes[19] = 0;
    ent_file_chunk chunk = {bytes, good.size};
    const char *other = ent_arena_format(folder.arena, "%s/other.so", folder.path);
    ck_assert_ptr_null(ent_file_write_atomic(folder.arena, other, &chunk, 1));
    check_loader(other, "the loader says");
    ent_file_chunk head = {good.data, 40}; /* and one that ends within its header */
    ck_assert_ptr_null(ent_file_write_atomic(folder.arena, other, &head, 1));
    check_loader(other, "the loader says");
}
END_TEST

START_TEST(a_good_plugin_loads_once_and_opens_devices) {
    host_folder_manifest(&folder, "hostile", host_folder_library(&folder, "hostile"));
    host_folder_manifest(&folder, "bad", "/nowhere.so");
    ent_host_registry *registry = host_folder_scan(&folder, NULL);
    ck_assert_ptr_nonnull(
        ent_host_load(registry, ent_host_find(registry, "bad"))); /* the other one still works */
    ent_host_plugin *plugin = ent_host_find(registry, "hostile");
    ck_assert_ptr_null(ent_host_load(registry, plugin));
    const ent_state *state = plugin->state;
    ck_assert_ptr_null(ent_host_load(registry, plugin));
    ck_assert_ptr_eq(plugin->state, state);
    ent_host_device *plain = NULL, *variant = NULL;
    ck_assert_ptr_null(ent_host_device_open(registry, folder.arena, "hostile", NULL, 0, &plain));
    ck_assert_ptr_null(ent_host_device_open(registry, folder.arena, "hostile:good", NULL, 0, &variant));
    ck_assert_str_eq(variant->name, "hostile:good");
    ck_assert_ptr_nonnull(variant->negotiate);
    ck_assert_ptr_nonnull(variant->compile);
    ck_assert_ptr_nonnull(variant->runtime);
    ck_assert_ptr_null(variant->blob); /* not offered */
    ent_host_device_close(plain);
    ent_host_device_close(variant);
    ent_host_device_close(NULL);
    ent_host_close(registry);
    ent_host_close(NULL);
}
END_TEST

START_TEST(devices_that_do_not_open_say_so) {
    host_folder_manifest(&folder, "hostile", host_folder_library(&folder, "hostile"));
    host_folder_manifest(&folder, "empty", host_folder_library(&folder, "broken_no_devices"));
    ent_host_registry *registry = host_folder_scan(&folder, NULL);
    ent_host_device *device = NULL;
    ent_status status = ent_host_device_open(registry, folder.arena, "hostile:dead-open", NULL, 0, &device);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(ent_status_text(folder.arena, status),
                     "device 'hostile:dead-open': open: the plugin gives no text [plugin.internal]");
    status = ent_host_device_open(registry, folder.arena, "empty", NULL, 0, &device);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "plugin.interface");
    status = ent_host_device_open(registry, folder.arena, "nobody:x", NULL, 0, &device);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "device.unknown");
    ck_assert_ptr_null(device);
    ent_host_close(registry);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("host_load");
    TCase *test = tcase_create("all");
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_add_loop_test(test, broken_libraries_are_refused_with_path_and_rule, 0,
                        sizeof refusals / sizeof refusals[0]);
    tcase_add_test(test, files_that_are_no_libraries_are_refused);
    tcase_add_test(test, libraries_of_another_machine_are_refused_in_the_loaders_words);
    tcase_add_test(test, a_good_plugin_loads_once_and_opens_devices);
    tcase_add_test(test, devices_that_do_not_open_say_so);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
