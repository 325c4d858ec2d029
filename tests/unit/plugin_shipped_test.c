/* The plugins that ship for comparison and for copying, through the host as any plugin: reference, sim, null.
 */
#define _GNU_SOURCE
#include "tests/unit/host_folder.h"

#include "abi/ent_message.h"
#include "core/capability/capability.h"

static host_folder folder;
static ent_host_registry *registry;

static void setup(void) {
    host_folder_make(&folder);
    ck_assert_ptr_null(
        ent_host_scan(folder.arena, NULL, &registry)); /* ENTENTE_PLUGIN_PATH: the build's plugins */
}

static void teardown(void) {
    ent_host_close(registry);
    host_folder_remove(&folder);
}

static ent_status open_device(const char *spec, const char *parameter, const char *value,
                              ent_host_device **out) {
    ent_parameter extra = {{parameter, parameter ? strlen(parameter) : 0},
                           {value, value ? strlen(value) : 0}};
    return ent_host_device_open(registry, folder.arena, spec, &extra, parameter ? 1 : 0, out);
}

static ent_capability *declaration(ent_host_device *device) {
    ent_host_call call;
    ent_bytes json = {NULL, 0};
    ent_capability *capability = NULL;
    ent_host_call_init(&call, folder.arena, 0);
    ck_assert_int_eq(device->device_api->declare(device->device, &call.call, &json), ENT_OK);
    ent_status status =
        ent_capability_parse(folder.arena, device->name, (const char *)json.data, json.size, &capability);
    ck_assert_msg(!status, "%s", status ? ent_status_text(folder.arena, status) : "");
    return capability;
}

static const char *names_of(ent_host_device *device) {
    ent_host_call call;
    ent_bytes names = {NULL, 0};
    ent_host_call_init(&call, folder.arena, 0);
    ck_assert_int_eq(device->device_api->list(device->plugin->state, &call.call, &names), ENT_OK);
    return ent_arena_strndup(folder.arena, (const char *)names.data, names.size);
}

START_TEST(none_of_them_takes_part_unasked) {
    static const char *const names[] = {"reference", "sim", "null"};
    for (int i = 0; i < 3; i++) {
        ent_host_plugin *plugin = ent_host_find(registry, names[i]);
        ck_assert_ptr_nonnull(plugin);
        ck_assert_ptr_null(ent_host_load(registry, plugin));
        ck_assert(!plugin->is_default);
    }
}
END_TEST

START_TEST(sim_declares_its_profile_word_for_word) {
    static const char *const specs[] = {"sim:nhwc16", "sim:attn"};
    for (int i = 0; i < 2; i++) {
        ent_host_device *device = NULL;
        ck_assert_ptr_null(open_device(specs[i], NULL, NULL, &device));
        ent_capability *capability = declaration(device);
        ck_assert_str_eq(capability->name, specs[i] + 4);
        ent_str file;
        const char *path = ent_arena_format(folder.arena, "%s/plugins/sim/profiles/%s.json",
                                            ENT_TEST_SOURCE_DIR, specs[i] + 4);
        ck_assert_ptr_null(ent_file_read(folder.arena, path, ENT_ERROR_DEVICE, 1 << 20, &file));
        ck_assert_uint_eq(strlen(capability->json), file.size);
        ck_assert_mem_eq(capability->json, file.data, file.size);
        ck_assert_str_eq(names_of(device), "sim:attn\nsim:nhwc16");
        ent_host_device_close(device);
    }
}
END_TEST

START_TEST(sim_takes_any_profile_by_path) {
    const char *path = host_folder_write(&folder, "mine.json",
                                         "{\"schema\":1,\"name\":\"mine\",\"kind\":\"npu\",\"units\":1,"
                                         "\"launch_ns\":1,\"memory\":[{\"name\":\"m\","
                                         "\"scope\":\"device\",\"bytes\":1,\"read_gbps\":1}]}");
    ent_host_device *device = NULL;
    ck_assert_ptr_null(open_device("sim", "profile", path, &device));
    ck_assert_str_eq(declaration(device)->name, "mine");
    ent_host_device_close(device);
}
END_TEST

static const struct {
    const char *spec, *parameter, *value, *words;
} refusals[] = {
    {"sim", NULL, NULL, "either a variant"},
    {"sim:attn", "profile", "/tmp/x.json", "either a variant"},
    {"sim:nobody", NULL, NULL, "write sim:NAME with one of: attn nhwc16"},
    {"sim:", NULL, NULL, "write sim:NAME with one of"},
    {"sim:../sim/attn", NULL, NULL, "write sim:NAME with one of"},
    {"sim:ATTN", NULL, NULL, "write sim:NAME with one of"},
    {"sim", "profile", "/nowhere/x.json", "/nowhere/x.json: cannot be opened"},
    {"sim", "profile", "/tmp", "cannot be read"},
    {"sim", "speed", "11", "no parameter 'speed'"},
    {"sim", "profile", "/dev/zero", "less than 1048576 bytes"},
    {"reference:fast", NULL, NULL, "no parameter 'variant'"},
    {"null:void", NULL, NULL, "no variants"},
};

START_TEST(what_cannot_be_opened_is_named) {
    ent_host_device *device = NULL;
    ent_status status = open_device(refusals[_i].spec, refusals[_i].parameter, refusals[_i].value, &device);
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, ENT_ERROR_DEVICE);
    ck_assert_msg(strstr(status->text, refusals[_i].words) != NULL, "%s", status->text);
    ck_assert_ptr_null(device);
}
END_TEST

START_TEST(hints_are_no_errors) {
    static const char *const specs[] = {"reference", "sim:attn", "null"};
    for (int i = 0; i < 3; i++) {
        ent_host_device *device = NULL;
        ck_assert_ptr_null(open_device(specs[i], "hint.threads", "2", &device));
        ck_assert_ptr_nonnull(declaration(device));
        ent_host_device_close(device);
    }
}
END_TEST

START_TEST(null_declines_a_survey_with_a_reason) {
    ent_host_device *device = NULL;
    uint8_t room[256];
    ent_message_writer writer = {.data = room, .capacity = sizeof room};
    ck_assert_ptr_null(open_device("null", NULL, NULL, &device));
    ck_assert_uint_eq(declaration(device)->pattern_count, 0);
    ck_assert_ptr_null(device->compile);
    ck_assert_ptr_null(device->runtime);
    ent_host_call call;
    ent_host_call_init(&call, folder.arena, 0);
    ent_bytes reply = {NULL, 0};
    ent_message_begin(&writer, ENT_MESSAGE_survey_request);
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    ck_assert_int_eq(device->negotiate->survey(device->device, &call.call, writer.data, writer.size, &reply),
                     ENT_OK);
    ent_message_reader reader;
    ent_message_record record;
    ck_assert_int_eq(ent_message_open(&reader, reply.data, reply.size), ENT_OK);
    ck_assert_uint_eq(reader.kind, ENT_MESSAGE_survey_reply);
    ck_assert_uint_eq(reader.record_count, 1);
    ck_assert(ent_message_next(&reader, &record) && record.tag == ENT_RECORD_reason);
    ck_assert_int_eq(ent_message_get_i64(&record, ENT_FIELD_reason_node), -1);
    ck_assert_uint_gt(ent_message_get_str(&record, ENT_FIELD_reason_text).size, 10);
    ck_assert_int_eq(
        device->negotiate->survey(device->device, &call.call, writer.data, writer.size - 1, &reply),
        ENT_CODE_BAD_MESSAGE);
    ent_host_device_close(device);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("plugin_shipped");
    TCase *test = tcase_create("all");
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_add_test(test, none_of_them_takes_part_unasked);
    tcase_add_test(test, sim_declares_its_profile_word_for_word);
    tcase_add_test(test, sim_takes_any_profile_by_path);
    tcase_add_loop_test(test, what_cannot_be_opened_is_named, 0, (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(test, hints_are_no_errors);
    tcase_add_test(test, null_declines_a_survey_with_a_reason);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
