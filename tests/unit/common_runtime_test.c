/* Host-memory runtime: buffers, fences that are waited on from other threads, submissions that must wait,
 * failures that stick, and two queues that pass work to and fro. Run under the thread sanitizer too. */
#include "tests/unit/common_sample.h"

#include <pthread.h>
#include <unistd.h>

/* A kernel that adds 1 to its one binding. */
static ent_code add_one(ent_kernel *kernel, void *const *addresses, const ent_step *step) {
    (void)kernel;
    if (step->symbol_count == 1 && step->symbols[0] < 0) return ENT_CODE_INTERNAL;
    ++*(int64_t *)addresses[0];
    return ENT_OK;
}
static const uint64_t eight = 8;
static ent_kernel kernel = {&sample_host, add_one, ENT_TIER_TUNED, 1, 0, &eight, "add one", NULL};

static ent_buffer *make_buffer(uint64_t size) {
    ent_buffer *buffer = NULL;
    ck_assert_int_eq(ent_common_buffer_create(&sample_device, &sample_call, size, &buffer), ENT_OK);
    return buffer;
}
static ent_queue *make_queue(void) {
    ent_queue *queue = NULL;
    ck_assert_int_eq(ent_common_queue_create(&sample_device, &sample_call, &queue), ENT_OK);
    return queue;
}
static ent_fence *make_fence(uint64_t value) {
    ent_fence *fence = NULL;
    ck_assert_int_eq(ent_common_fence_create(&sample_device, &sample_call, value, &fence), ENT_OK);
    return fence;
}

/* One dispatch that waits for one point and signals another; either may be absent. */
static ent_code dispatch(ent_queue *queue, ent_buffer *buffer, ent_fence *wait, uint64_t wait_value,
                         ent_fence *signal, uint64_t signal_value, int64_t symbol) {
    ent_buffer_ref ref = {buffer, 0, 8};
    uint64_t stamps[2] = {0, 0};
    ent_step step = {.kind = ENT_STEP_DISPATCH,
                     .binding_count = 1,
                     .kernel = &kernel,
                     .bindings = &ref,
                     .symbols = &symbol,
                     .symbol_count = 1,
                     .timestamps = wait ? NULL : stamps};
    ent_fence_point waits = {wait, wait_value}, signals = {signal, signal_value};
    ent_submit submit = {.head = {sizeof submit, ENT_STRUCT_SUBMIT, NULL},
                         .waits = &waits,
                         .wait_count = wait != NULL,
                         .step_count = 1,
                         .steps = &step,
                         .signals = &signals,
                         .signal_count = signal != NULL};
    ent_code code = ent_common_submit(queue, &sample_call, &submit);
    if (!wait) ck_assert(stamps[0] != 0 && stamps[1] >= stamps[0]);
    return code;
}

START_TEST(buffers_check_their_bounds) {
    ent_buffer *buffer = make_buffer(16), *imported = NULL;
    char text[16] = "0123456789abcde", back[16];
    ck_assert_int_eq(ent_common_buffer_write(buffer, 0, text, 16), ENT_OK);
    ck_assert_int_eq(ent_common_buffer_read(buffer, 4, back, 8), ENT_OK);
    ck_assert_mem_eq(back, "456789ab", 8);
    ck_assert_int_eq(ent_common_buffer_write(buffer, 9, text, 8), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_int_eq(ent_common_buffer_read(buffer, UINT64_MAX, back, 2), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_mem_eq(ent_common_buffer_map(buffer), text, 16);
    ck_assert_int_eq(ent_common_buffer_import(&sample_device, &sample_call, text, 16, true, &imported),
                     ENT_OK);
    ck_assert_int_eq(ent_common_buffer_write(imported, 0, back, 1), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_ptr_eq(ent_common_buffer_map(imported), text);
    ent_common_buffer_destroy(imported);
    ck_assert_int_eq(ent_common_buffer_import(&sample_device, &sample_call, NULL, 16, true, &imported),
                     ENT_CODE_INVALID_ARGUMENT);
    ent_common_buffer_destroy(buffer);
    ent_common_buffer_destroy(NULL);
}
END_TEST

START_TEST(copies_need_equal_sizes_and_writable_targets) {
    ent_queue *queue = make_queue();
    ent_buffer *from = make_buffer(16), *to = make_buffer(16), *constant = NULL;
    char text[16] = "constant memory";
    ck_assert_int_eq(ent_common_buffer_import(&sample_device, &sample_call, text, 16, true, &constant),
                     ENT_OK);
    ck_assert_int_eq(ent_common_buffer_write(from, 0, "the new contents", 16), ENT_OK);
    struct {
        ent_buffer_ref refs[2];
        ent_code code;
    } cases[] = {{{{from, 0, 16}, {to, 0, 16}}, ENT_OK},
                 {{{from, 0, 8}, {to, 0, 16}}, ENT_CODE_INVALID_ARGUMENT},
                 {{{from, 8, 16}, {to, 0, 16}}, ENT_CODE_INVALID_ARGUMENT},
                 {{{from, 0, 16}, {to, 1, 16}}, ENT_CODE_INVALID_ARGUMENT},
                 {{{from, 0, 16}, {constant, 0, 16}}, ENT_CODE_INVALID_ARGUMENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ent_fence *done = make_fence(0);
        ent_step step = {.kind = ENT_STEP_COPY, .binding_count = 2, .bindings = cases[i].refs};
        ent_fence_point point = {done, 1};
        ent_submit submit = {.head = {sizeof submit, ENT_STRUCT_SUBMIT, NULL},
                             .step_count = 1,
                             .steps = &step,
                             .signals = &point,
                             .signal_count = 1};
        ck_assert_int_eq(ent_common_submit(queue, &sample_call, &submit), ENT_OK);
        ck_assert_int_eq(ent_common_fence_wait(done, 1, UINT64_MAX), cases[i].code);
        ent_common_fence_destroy(done);
    }
    ck_assert_mem_eq(ent_common_buffer_map(to), "the new contents", 16);
    ck_assert_mem_eq(text, "constant memory", 16);
    ent_common_buffer_destroy(from);
    ent_common_buffer_destroy(to);
    ent_common_buffer_destroy(constant);
    ent_common_queue_destroy(queue);
}
END_TEST

START_TEST(fences_time_out_and_only_grow) {
    ent_fence *fence = make_fence(3);
    ck_assert_uint_eq(ent_common_fence_value(fence), 3);
    ck_assert_int_eq(ent_common_fence_wait(fence, 3, 0), ENT_OK);
    ck_assert_int_eq(ent_common_fence_wait(fence, 4, 0), ENT_CODE_TIMEOUT);
    uint64_t start = ent_common_now_ns();
    ck_assert_int_eq(ent_common_fence_wait(fence, 4, 20000000), ENT_CODE_TIMEOUT);
    ck_assert_uint_ge(ent_common_now_ns() - start, 20000000);
    ent_common_fence_signal(fence, 9);
    ent_common_fence_signal(fence, 5);
    ck_assert_uint_eq(ent_common_fence_value(fence), 9);
    ent_common_fence_destroy(fence);
    ent_common_fence_destroy(NULL);
}
END_TEST

START_TEST(submit_does_not_block_and_work_waits_for_its_fence) {
    ent_queue *queue = make_queue();
    ent_buffer *buffer = make_buffer(8);
    ent_fence *gate = make_fence(0), *done = make_fence(0);
    *(int64_t *)ent_common_buffer_map(buffer) = 40;
    ck_assert_int_eq(dispatch(queue, buffer, gate, 1, done, 1, 0), ENT_OK);
    ck_assert_int_eq(dispatch(queue, buffer, gate, 0, done, 2, 0), ENT_OK); /* ready, but behind the first */
    ck_assert_int_eq(ent_common_fence_wait(done, 1, 20000000), ENT_CODE_TIMEOUT);
    ent_common_fence_signal(gate, 1);
    ck_assert_int_eq(ent_common_fence_wait(done, 2, UINT64_MAX), ENT_OK);
    ck_assert_int_eq(*(int64_t *)ent_common_buffer_map(buffer), 42);
    ent_common_queue_destroy(queue);
    ent_common_buffer_destroy(buffer);
    ent_common_fence_destroy(gate);
    ent_common_fence_destroy(done);
}
END_TEST

START_TEST(a_failed_step_reaches_everyone_who_waits) {
    ent_queue *queue = make_queue(), *other = make_queue();
    ent_buffer *buffer = make_buffer(8);
    ent_fence *first = make_fence(0), *second = make_fence(0);
    *(int64_t *)ent_common_buffer_map(buffer) = 0;
    ck_assert_int_eq(dispatch(other, buffer, first, 1, second, 1, 0), ENT_OK);
    ck_assert_int_eq(dispatch(queue, buffer, NULL, 0, first, 1, -1), ENT_OK);
    ck_assert_int_eq(ent_common_fence_wait(first, 1, UINT64_MAX), ENT_CODE_INTERNAL);
    ck_assert_int_eq(ent_common_fence_wait(second, 1, UINT64_MAX), ENT_CODE_INTERNAL);
    ck_assert_uint_eq(ent_common_fence_value(second), 0);
    ent_common_queue_destroy(other);
    ck_assert_int_eq(*(int64_t *)ent_common_buffer_map(buffer), 0); /* the second kernel did not run */
    ent_common_queue_destroy(queue);
    ent_common_buffer_destroy(buffer);
    ent_common_fence_destroy(first);
    ent_common_fence_destroy(second);
}
END_TEST

START_TEST(queues_end_after_their_work) {
    ent_queue *queue = make_queue();
    ent_buffer *buffer = make_buffer(8);
    ent_fence *gate = make_fence(0);
    *(int64_t *)ent_common_buffer_map(buffer) = 0;
    for (int i = 0; i < 50; i++) ck_assert_int_eq(dispatch(queue, buffer, gate, 1, NULL, 0, 0), ENT_OK);
    ent_common_fence_signal(gate, 1);
    ent_common_queue_destroy(queue);
    ck_assert_int_eq(*(int64_t *)ent_common_buffer_map(buffer), 50);
    ent_common_buffer_destroy(buffer);
    ent_common_fence_destroy(gate);
}
END_TEST

/* Two threads, each with a queue of its own, take turns on one buffer: whoever gets the order wrong loses an
 * increment. */
#define TURNS 500
typedef struct player {
    ent_buffer *buffer;
    ent_fence *turn;
    uint64_t first;
} player;

static void *play(void *argument) {
    player *p = argument;
    ent_queue *queue = make_queue();
    for (uint64_t i = p->first; i < TURNS; i += 2) dispatch(queue, p->buffer, p->turn, i, p->turn, i + 1, 0);
    ent_common_queue_destroy(queue);
    return NULL;
}

START_TEST(two_queues_take_turns) {
    ent_buffer *buffer = make_buffer(8);
    ent_fence *turn = make_fence(0);
    *(int64_t *)ent_common_buffer_map(buffer) = 0;
    player players[2] = {{buffer, turn, 0}, {buffer, turn, 1}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, play, &players[i]), 0);
    ck_assert_int_eq(ent_common_fence_wait(turn, TURNS, UINT64_MAX), ENT_OK);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    ck_assert_int_eq(*(int64_t *)ent_common_buffer_map(buffer), TURNS);
    ent_common_buffer_destroy(buffer);
    ent_common_fence_destroy(turn);
}
END_TEST

START_TEST(kernel_info_fits_the_room_of_an_older_caller) {
    ent_kernel_info info;
    memset(&info, 0x55, sizeof info);
    info.size = 8;
    ck_assert_int_eq(ent_common_kernel_info(&kernel, &info), ENT_OK);
    ck_assert_uint_eq(info.size, 8);
    ck_assert_uint_eq(info.tier, ENT_TIER_TUNED);
    ck_assert_uint_eq(info.scratch_bytes, 0x5555555555555555u);
    info.size = sizeof info;
    ck_assert_int_eq(ent_common_kernel_info(&kernel, &info), ENT_OK);
    ck_assert_str_eq(info.path, "add one");
}
END_TEST

START_TEST(parameters_are_known_hints_or_errors) {
    static const char *const known[] = {"variant", NULL};
    ent_parameter p[] = {{ENT_STR("hint.threads"), ENT_STR("2")},
                         {ENT_STR("variant"), ENT_STR("fast")},
                         {ENT_STR("speed"), ENT_STR("9")}};
    ck_assert_int_eq(ent_common_check_parameters(&sample_call, p, 2, known), ENT_OK);
    ck_assert_int_eq(ent_common_check_parameters(&sample_call, p, 3, known), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(sample_failure, "this device has no parameter 'speed' (value '9')");
    ck_assert_ptr_eq(ent_common_parameter(p, 3, "variant"), &p[1]);
    ck_assert_ptr_null(ent_common_parameter(p, 3, "vari"));
}
END_TEST

int main(void) {
    TCase *test = tcase_create("all");
    tcase_add_test(test, buffers_check_their_bounds);
    tcase_add_test(test, copies_need_equal_sizes_and_writable_targets);
    tcase_add_test(test, fences_time_out_and_only_grow);
    tcase_add_test(test, submit_does_not_block_and_work_waits_for_its_fence);
    tcase_add_test(test, a_failed_step_reaches_everyone_who_waits);
    tcase_add_test(test, queues_end_after_their_work);
    tcase_add_test(test, two_queues_take_turns);
    tcase_add_test(test, kernel_info_fits_the_room_of_an_older_caller);
    tcase_add_test(test, parameters_are_known_hints_or_errors);
    return sample_run("common_runtime", test);
}
