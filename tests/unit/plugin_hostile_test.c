/* A plugin that breaks in any call of the pipeline: one clear message and the right code, no crash and no
 * partial file, and the other devices still do the work. */
#define _GNU_SOURCE
#include "tests/unit/host_folder.h"

#include "entente/compiler.h"

#define MODEL ENT_TEST_SOURCE_DIR "/models/digits/digits.onnx"

static host_folder folder;
static char plugin_path[512], output[128], transcript[128];

static void setup(void) {
    host_folder_make(&folder);
    host_folder_manifest(&folder, "hostile", host_folder_library(&folder, "hostile"));
    snprintf(plugin_path, sizeof plugin_path, "%s:%s", folder.path, getenv("ENTENTE_PLUGIN_PATH"));
    snprintf(output, sizeof output, "%s/out.ent", folder.path);
    snprintf(transcript, sizeof transcript, "%s/out.jsonl", folder.path);
}

static void teardown(void) {
    host_folder_remove(&folder);
}

static entente_compile_result compile(const char *first, const char *second) {
    const char *devices[] = {first, second};
    entente_compile_request request = {.size = sizeof request,
                                       .model_path = MODEL,
                                       .output_path = output,
                                       .devices = devices,
                                       .device_count = second ? 2 : 1,
                                       .plugin_path = plugin_path,
                                       .transcript_path = transcript};
    entente_compile_result result;
    entente_compile(&request, &result);
    return result;
}

static const char *transcript_text(void) {
    ent_str text;
    ck_assert_ptr_null(ent_file_read(folder.arena, transcript, ENT_ERROR_DEVICE, 64 << 20, &text));
    return ent_arena_strndup(folder.arena, text.data, text.size);
}

START_TEST(a_good_one_wins_by_price) {
    entente_compile_result result = compile("hostile:good", "reference");
    ck_assert_msg(result.code == 0, "%s", result.text);
    ck_assert_ptr_nonnull(strstr(result.plan_json, "\"hostile:good\""));
    entente_compile_result_free(&result);
    ck_assert_int_eq(access(output, R_OK), 0);
}
END_TEST

/* Faults of the negotiation and of compilation: alone the command fails, beside reference all goes there. */
static const struct {
    const char *device;
    int code;           /* alone */
    const char *words;  /* in the message, alone */
    const char *record; /* in the transcript, beside reference */
} faults[] = {
    {"hostile:dead-survey", 4, "the survey crashed", "the survey crashed"},
    {"hostile:noise-survey", 4, "break the message form", "break the message form"},
    {"hostile:null-survey", 4, "break the message form", "break the message form"},
    {"hostile:dead-quote", 4, "the quote crashed", "the quote crashed"},
    {"hostile:noise-quote", 4, "break the message form", "break the message form"},
    {"hostile:nan-quote", 3, "not a finite time", "-inf"},
    {"hostile:counters", 3, "countered at quote", "channels to 16"},
    {"hostile:dead-award", 4, "the award crashed", "the award crashed"},
    {"hostile:noise-award", 4, "break the message form", "break the message form"},
    {"hostile:refuse-award", 3, "the memory is gone", "the memory is gone"},
    {"hostile:dead-compile", 4, "the registers ran out", "the registers ran out"},
    {"hostile:null-compile", 4, "gives no text", "gives no text"},
    {"hostile:noise-compile", 4, "is no region of this plugin", "is no region of this plugin"},
};

START_TEST(a_broken_device_alone_is_one_message_and_no_file) {
    entente_compile_result result = compile(faults[_i].device, NULL);
    ck_assert_msg(strstr(result.text, faults[_i].words) != NULL, "%s: %s", faults[_i].device, result.text);
    ck_assert_msg(result.code == faults[_i].code, "%s: exit %d: %s", faults[_i].device, result.code,
                  result.text);
    ck_assert_msg(result.rule[0] && result.place[0], "%s: %s %s", faults[_i].device, result.rule,
                  result.place);
    ck_assert_int_ne(access(output, F_OK), 0);
    entente_compile_result_free(&result);
}
END_TEST

START_TEST(beside_a_broken_device_the_others_work) {
    entente_compile_result result = compile(faults[_i].device, "reference");
    ck_assert_msg(result.code == 0, "%s: %s", faults[_i].device, result.text);
    ck_assert_msg(strstr(transcript_text(), faults[_i].record) != NULL, "%s: the transcript does not say why",
                  faults[_i].device);
    ck_assert_int_eq(access(output, R_OK), 0);
    entente_compile_result_free(&result);
}
END_TEST

/* Faults before any offer: a named device that does not open or declare fails the command. */
static const struct {
    const char *device, *words;
} early[] = {
    {"hostile:dead-open", "open: the plugin gives no text"},
    {"hostile:dead-declare", "fell off the bus"},
    {"hostile:null-declare", "is not JSON"},
    {"hostile:not-json", "is not JSON"},
    {"hostile:no-kind", "/kind: is required"},
};

START_TEST(a_device_that_does_not_declare_fails_the_command) {
    entente_compile_result result = compile("reference", early[_i].device);
    const char *all = ent_arena_format(folder.arena, "%s: %s", result.place, result.text);
    ck_assert_msg(result.code == 4, "exit %d: %s", result.code, all);
    ck_assert_msg(strstr(all, early[_i].words) != NULL, "%s", all);
    ck_assert_int_ne(access(output, F_OK), 0);
    entente_compile_result_free(&result);
}
END_TEST

START_TEST(mad_bids_are_refused_each_with_a_reason) {
    const char *devices[] = {"hostile:mad-bids", "reference"};
    entente_compile_request request = {.size = sizeof request,
                                       .model_path = MODEL,
                                       .devices = devices,
                                       .device_count = 2,
                                       .plugin_path = plugin_path,
                                       .stop_after = "negotiate"};
    static const char *const reasons[] = {"unknown leaf", "a leaf twice", "no leaves", "not convex",
                                          "carries no price"};
    entente_compile_result result;
    entente_compile(&request, &result);
    ck_assert_msg(result.code == 0, "%s", result.text);
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        ck_assert_msg(strstr(result.stage_text, reasons[i]) != NULL, "no '%s' in:\n%s", reasons[i],
                      result.stage_text);
    entente_compile_result_free(&result);
}
END_TEST

START_TEST(the_transcript_is_the_same_each_time) {
    entente_compile_result first = compile("hostile:counters", "reference");
    const char *once = transcript_text();
    entente_compile_result second = compile("hostile:counters", "reference");
    ck_assert_str_eq(once, transcript_text());
    entente_compile_result_free(&first);
    entente_compile_result_free(&second);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("plugin_hostile");
    TCase *test = tcase_create("all");
    int count = (int)(sizeof faults / sizeof faults[0]);
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_set_timeout(test, 60);
    tcase_add_test(test, a_good_one_wins_by_price);
    tcase_add_loop_test(test, a_broken_device_alone_is_one_message_and_no_file, 0, count);
    tcase_add_loop_test(test, beside_a_broken_device_the_others_work, 0, count);
    tcase_add_loop_test(test, a_device_that_does_not_declare_fails_the_command, 0,
                        (int)(sizeof early / sizeof early[0]));
    tcase_add_test(test, mad_bids_are_refused_each_with_a_reason);
    tcase_add_test(test, the_transcript_is_the_same_each_time);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
