/* Manifests and search paths: what is refused before any library is opened, in which words, and which folder
 * wins. */
#define _GNU_SOURCE
#include "tests/unit/host_folder.h"

static host_folder folder;

static void setup(void) {
    host_folder_make(&folder);
}

static void teardown(void) {
    host_folder_remove(&folder);
    unsetenv("ENTENTE_PLUGIN_PATH");
}

/* The one plugin of a folder with this manifest. */
static const ent_host_plugin *scan_one(const char *manifest) {
    host_folder_write(&folder, "p.json", manifest);
    ent_host_registry *registry = host_folder_scan(&folder, NULL);
    ck_assert_uint_eq(registry->plugins.count, 1);
    return &registry->plugins.items[0];
}

START_TEST(a_whole_manifest_is_read) {
    const ent_host_plugin *plugin =
        scan_one("{\"manifest\": 1, \"name\": \"np\", \"library\": \"lib.so\", \"abi\": [1, 4], "
                 "\"architecture\": \"any\", "
                 "\"depths\": [\"graph\", \"tile\"], \"default\": false, \"vendor\": \"V\"}");
    ck_assert_ptr_null(plugin->refused);
    ck_assert_str_eq(plugin->name, "np");
    ck_assert_str_eq(plugin->library_path, ent_arena_format(folder.arena, "%s/lib.so", folder.path));
    ck_assert_uint_eq(plugin->abi_min, 1);
    ck_assert_uint_eq(plugin->abi_max, 4);
    ck_assert_uint_eq(plugin->depths, ENT_DEPTH_GRAPH | ENT_DEPTH_TILE);
    ck_assert(!plugin->is_default);
    ck_assert_ptr_null(plugin->plugin);
}
END_TEST

START_TEST(a_plugin_is_default_unless_it_says_no) {
    const ent_host_plugin *plugin = scan_one(
        "{\"manifest\": 1, \"name\": \"np\", \"library\": \"/a/lib.so\", \"abi\": [1, 1], \"depths\": []}");
    ck_assert_ptr_null(plugin->refused);
    ck_assert(plugin->is_default);
    ck_assert_str_eq(plugin->library_path, "/a/lib.so");
}
END_TEST

static const struct {
    const char *manifest, *rule, *words;
} refusals[] = {
    {"", "plugin.manifest", "is not a JSON object"},
    {"[1]", "plugin.manifest", "is not a JSON object"},
    {"{\"manifest\": 1", "plugin.manifest", "is not a JSON object"},
    {"{\"manifest\": 1}", "plugin.manifest", "a manifest needs \"name\""},
    {"{\"manifest\": 2, \"name\": \"p\", \"library\": \"l\", \"abi\": [1, 1], \"depths\": []}",
     "plugin.manifest", "manifest version 2"},
    {"{\"name\": \"p\", \"library\": \"l\", \"abi\": [1, 1], \"depths\": []}", "plugin.manifest",
     "manifest version"},
    {"{\"manifest\": 1, \"name\": \"a:b\", \"library\": \"l\", \"abi\": [1, 1], \"depths\": []}",
     "plugin.manifest", "no colon"},
    {"{\"manifest\": 1, \"name\": \"p\", \"library\": \"l\", \"abi\": 1, \"depths\": []}", "plugin.manifest",
     "\"abi\""},
    {"{\"manifest\": 1, \"name\": \"p\", \"library\": \"l\", \"abi\": [2, 1], \"depths\": []}",
     "plugin.manifest", "\"abi\""},
    {"{\"manifest\": 1, \"name\": \"p\", \"library\": \"l\", \"abi\": [1, 1e300], \"depths\": []}",
     "plugin.manifest", "\"abi\""},
    {"{\"manifest\": 1, \"name\": \"p\", \"library\": \"l\", \"abi\": [1, 1], \"depths\": [\"deep\"]}",
     "plugin.manifest", "\"depths\""},
    {"{\"manifest\": 1, \"name\": \"p\", \"library\": \"l\", \"abi\": [7, 9], \"depths\": []}", "plugin.abi",
     "speaks ABI 7 to 9, this host speaks 1"},
    {"{\"manifest\": 1, \"name\": \"p\", \"library\": \"l\", \"abi\": [1, 1], \"architecture\": \"pdp11\", "
     "\"depths\": []}",
     "plugin.architecture", "built for pdp11, this machine is "},
};

START_TEST(bad_manifests_are_refused_with_path_and_rule) {
    const ent_host_plugin *plugin = scan_one(refusals[_i].manifest);
    ck_assert_msg(plugin->refused != NULL, "%s", refusals[_i].manifest);
    ck_assert_str_eq(plugin->refused_rule, refusals[_i].rule);
    ck_assert_msg(strstr(plugin->refused, refusals[_i].words) != NULL, "%s", plugin->refused);
    ck_assert_msg(strstr(plugin->refused, folder.path) != NULL, "no path: %s", plugin->refused);
    ck_assert_str_eq(plugin->name, "p"); /* the manifest's name, or the file's where that cannot be read */
}
END_TEST

START_TEST(only_manifest_files_count) {
    host_folder_manifest(&folder, "good", "l.so");
    host_folder_write(&folder, ".hidden.json", "{");
    host_folder_write(&folder, "notes.txt", "{");
    ck_assert_int_eq(mkdir(ent_arena_format(folder.arena, "%s/dir.json", folder.path), 0700), 0);
    ent_host_registry *registry = host_folder_scan(&folder, NULL);
    ck_assert_uint_eq(registry->plugins.count, 2);
    ck_assert_str_eq(registry->plugins.items[0].name, "dir");
    ck_assert_str_eq(registry->plugins.items[0].refused_rule, "plugin.manifest");
    ck_assert_ptr_null(registry->plugins.items[1].refused);
}
END_TEST

/* Two subfolders with a plugin of one name each. */
static const char *two_folders(void) {
    const char *first = ent_arena_format(folder.arena, "%s/a", folder.path),
               *second = ent_arena_format(folder.arena, "%s/b", folder.path);
    mkdir(first, 0700);
    mkdir(second, 0700);
    for (const char *file = "ab"; *file; file++)
        host_folder_write(&folder, ent_arena_format(folder.arena, "%c/twin.json", *file),
                          ent_arena_format(folder.arena,
                                           "{\"manifest\": 1, \"name\": \"twin\", \"library\": \"%c.so\", "
                                           "\"abi\": [1, 1], \"depths\": []}",
                                           *file));
    return ent_arena_format(folder.arena, "%s:%s/../a:/nowhere/at/all:%s", first, second, second);
}

START_TEST(the_first_folder_wins_and_the_second_is_listed) {
    ent_host_registry *registry = host_folder_scan(&folder, two_folders());
    ck_assert_uint_eq(registry->plugins.count, 2); /* a folder named twice is read once */
    ck_assert_ptr_null(registry->plugins.items[0].refused);
    ck_assert_str_eq(registry->plugins.items[1].refused_rule, "plugin.shadowed");
    ck_assert_ptr_nonnull(strstr(registry->plugins.items[1].refused, "/a/twin.json"));
    ck_assert_ptr_nonnull(strstr(ent_host_find(registry, "twin")->library_path, "/a/a.so"));
    ck_assert_ptr_null(ent_host_find(registry, "nobody"));
}
END_TEST

START_TEST(the_environment_replaces_the_standard_folders) {
    host_folder_manifest(&folder, "mine", "l.so");
    setenv("ENTENTE_PLUGIN_PATH", folder.path, 1);
    ent_host_registry *registry = NULL;
    ck_assert_ptr_null(ent_host_scan(folder.arena, NULL, &registry));
    ck_assert_uint_eq(registry->plugins.count, 1);
    ent_host_options closed = {.no_environment = true}; /* as under AT_SECURE */
    ck_assert_ptr_null(ent_host_scan(folder.arena, &closed, &registry));
    ck_assert_ptr_null(ent_host_find(registry, "mine"));
    ent_host_options given = {.plugin_path = "/nowhere"};
    ck_assert_ptr_null(ent_host_scan(folder.arena, &given, &registry));
    ck_assert_uint_eq(registry->plugins.count, 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("host_scan");
    TCase *test = tcase_create("all");
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_add_test(test, a_whole_manifest_is_read);
    tcase_add_test(test, a_plugin_is_default_unless_it_says_no);
    tcase_add_loop_test(test, bad_manifests_are_refused_with_path_and_rule, 0,
                        sizeof refusals / sizeof refusals[0]);
    tcase_add_test(test, only_manifest_files_count);
    tcase_add_test(test, the_first_folder_wins_and_the_second_is_listed);
    tcase_add_test(test, the_environment_replaces_the_standard_folders);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
