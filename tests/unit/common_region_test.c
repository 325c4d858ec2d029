/* Regions: numbers, layouts, read-only memory, refusals, and damaged messages that must be refused or run
 * within their buffers (the sanitizer builds look closer). */
#include "tests/unit/common_sample.h"

static const float x_plain[12] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
#define MANY 1000 /* ports: more than any array on the stack holds */

static const float bias[3] = {0.5f, 0, -20};

static ent_code load(ent_bytes message, ent_kernel **out) {
    ent_bytes blob = {NULL, 0};
    ent_code code = ent_common_region_compile(&sample_device, &sample_call, ENT_DEPTH_REGION, message.data,
                                              message.size, &blob);
    if (code != ENT_OK) return code;
    ck_assert(ent_common_is_region_blob(blob.data, blob.size));
    return ent_common_region_kernel_load(&sample_device, &sample_call, blob.data, blob.size, out);
}

static int64_t run_symbols[2];

/* Runs a kernel on one block of memory a binding. */
static ent_code run(ent_kernel *kernel, void *const *memory, const uint64_t *bytes, uint32_t count,
                    const bool *read_only) {
    ent_buffer_ref refs[MANY + 1];
    ent_queue *queue = NULL;
    ent_fence *fence = NULL;
    ck_assert_int_eq(ent_common_queue_create(&sample_device, &sample_call, &queue), ENT_OK);
    ck_assert_int_eq(ent_common_fence_create(&sample_device, &sample_call, 0, &fence), ENT_OK);
    for (uint32_t i = 0; i < count; i++) {
        refs[i] = (ent_buffer_ref){NULL, 0, bytes[i]};
        ck_assert_int_eq(ent_common_buffer_import(&sample_device, &sample_call, memory[i], bytes[i],
                                                  read_only && read_only[i], &refs[i].buffer),
                         ENT_OK);
    }
    ent_step step = {.kind = ENT_STEP_DISPATCH,
                     .binding_count = count,
                     .kernel = kernel,
                     .bindings = refs,
                     .symbols = run_symbols,
                     .symbol_count = 2};
    ent_fence_point point = {fence, 1};
    ent_submit submit = {.head = {sizeof submit, ENT_STRUCT_SUBMIT, NULL},
                         .step_count = 1,
                         .steps = &step,
                         .signals = &point,
                         .signal_count = 1};
    ck_assert_int_eq(ent_common_submit(queue, &sample_call, &submit), ENT_OK);
    ent_code code = ent_common_fence_wait(fence, 1, UINT64_MAX);
    for (uint32_t i = 0; i < count; i++) ent_common_buffer_destroy(refs[i].buffer);
    ent_common_fence_destroy(fence);
    ent_common_queue_destroy(queue);
    return code;
}

static void check_result(const float *y) {
    for (int c = 0; c < 3; c++)
        for (int p = 0; p < 4; p++) {
            float want = x_plain[c * 4 + p] + bias[c];
            ck_assert_float_eq(y[p * 3 + c], want > 0 ? want : 0);
        }
}

START_TEST(a_region_computes_in_both_layouts) {
    for (int last = 0; last < 2; last++) {
        ent_message_writer writer;
        ent_kernel *kernel = NULL;
        ck_assert_int_eq(load(sample_message(&writer, last), &kernel), ENT_OK);
        float x[12], b[3], y[12] = {0};
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < 4; p++) x[last ? p * 3 + c : c * 4 + p] = x_plain[c * 4 + p];
        memcpy(b, bias, sizeof b);
        ent_kernel_info info = {.size = sizeof info};
        ck_assert_int_eq(ent_common_kernel_info(kernel, &info), ENT_OK);
        ck_assert_uint_eq(info.tier, ENT_TIER_GENERIC);
        ck_assert_uint_gt(info.scratch_bytes, 0);
        ck_assert_str_eq(info.path, "core/ops Add ...");
        void *memory[] = {x, b, y};
        const uint64_t bytes[] = {sizeof x, sizeof b, sizeof y};
        ck_assert_int_eq(run(kernel, memory, bytes, 3, NULL), ENT_OK);
        check_result(y);
        ent_common_region_kernel_unload(kernel);
    }
}
END_TEST

/* y = Sum of MANY values, each a port: as wide as a Concat behind a loop may be. */
START_TEST(a_node_may_have_a_thousand_inputs) {
    ent_message_writer w;
    ent_kernel *kernel = NULL;
    const int64_t dims[] = {2}, node = MANY + 1;
    int64_t inputs[MANY];
    float x[MANY][2], y[2] = {0};
    void *memory[MANY + 1];
    uint64_t bytes[MANY + 1];
    ent_common_writer(&w, &sample_call, ENT_MESSAGE_region);
    for (int i = 0; i <= MANY; i++) sample_value(&w, (uint64_t)i, ENT_DTYPE_F32, dims, 1);
    for (int i = 0; i <= MANY; i++) {
        if (i < MANY) inputs[i] = i, x[i][0] = (float)i, x[i][1] = 1;
        memory[i] = i < MANY ? x[i] : y;
        bytes[i] = sizeof y;
    }
    sample_node(&w, (uint64_t)node, ENT_OP_Sum, inputs, MANY, MANY);
    sample_region(&w, 7, &node, 1);
    for (int i = 0; i <= MANY; i++) sample_port(&w, (uint64_t)i, (uint64_t)i, i == MANY, ent_layout_plain(1));
    ck_assert_int_eq(ent_message_end(&w), ENT_OK);
    ck_assert_int_eq(load((ent_bytes){w.data, w.size}, &kernel), ENT_OK);
    ck_assert_int_eq(run(kernel, memory, bytes, MANY + 1, NULL), ENT_OK);
    ck_assert_float_eq(y[0], MANY * (MANY - 1) / 2);
    ck_assert_float_eq(y[1], MANY);
    ent_common_region_kernel_unload(kernel);
}
END_TEST

START_TEST(buffers_that_do_not_fit_are_refused) {
    ent_message_writer writer;
    ent_kernel *kernel = NULL;
    ck_assert_int_eq(load(sample_message(&writer, false), &kernel), ENT_OK);
    float x[12] = {0}, b[3] = {0}, y[12] = {0};
    void *memory[] = {x, b, y};
    uint64_t bytes[] = {sizeof x, sizeof b, sizeof y};
    const bool constant_inputs[] = {true, true, false}, constant_output[] = {false, false, true};
    ck_assert_int_eq(run(kernel, memory, bytes, 3, constant_inputs), ENT_OK);
    ck_assert_int_eq(run(kernel, memory, bytes, 3, constant_output), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_int_eq(run(kernel, memory, bytes, 2, NULL), ENT_CODE_INVALID_ARGUMENT);
    bytes[2] -= 4;
    ck_assert_int_eq(run(kernel, memory, bytes, 3, NULL), ENT_CODE_INVALID_ARGUMENT);
    ent_common_region_kernel_unload(kernel);
}
END_TEST

/* y[n, 6] = Relu(Transpose(x[3, n, 2])) as y [n, 3, 2], with n from the step. */
static ent_bytes open_message(ent_message_writer *w) {
    static const int64_t x[] = {3, -1, 2}, y[] = {-1, 3, 2}, perm[] = {1, 0, 2}, first[] = {1},
                         second[] = {2}, nodes[] = {5, 6};
    ent_common_writer(w, &sample_call, ENT_MESSAGE_region);
    sample_symbol(w, "n", 100);
    sample_expr(w, ENT_EXPR_SYMBOL, 0, 0);
    sample_value(w, 1, ENT_DTYPE_F32, x, 3);
    sample_value(w, 2, ENT_DTYPE_F32, y, 3);
    sample_value(w, 3, ENT_DTYPE_F32, y, 3);
    sample_node(w, 5, ENT_OP_Transpose, first, 1, 2);
    sample_ints(w, 5, "perm", perm, 3);
    sample_node(w, 6, ENT_OP_Relu, second, 1, 3);
    sample_region(w, 7, nodes, 2);
    sample_port(w, 0, 1, false, ent_layout_plain(3));
    sample_port(w, 1, 3, true, ent_layout_plain(3));
    ck_assert_int_eq(ent_message_end(w), ENT_OK);
    return (ent_bytes){w->data, w->size};
}

START_TEST(an_open_region_runs_with_the_sizes_of_each_step) {
    ent_message_writer writer;
    ent_kernel *kernel = NULL;
    ck_assert_int_eq(load(open_message(&writer), &kernel), ENT_OK);
    static const int64_t counts[] = {4, 4, 1, 100, 0, 7};
    for (uint32_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        float x[601], y[601] = {0};
        int64_t n = run_symbols[0] = counts[c];
        for (int64_t i = 0; i < 6 * n; i++) x[i] = (float)(i % 7 - 2);
        void *memory[] = {x, y};
        uint64_t bytes[] = {(uint64_t)n * 24 + 4, (uint64_t)n * 24 + 4};
        ck_assert_int_eq(run(kernel, memory, bytes, 2, NULL), ENT_OK);
        for (int64_t i = 0; i < 6 * n; i++) {
            float from = x[(i / 2 % 3 * n + i / 6) * 2 + i % 2];
            ck_assert_float_eq(y[i], from > 0 ? from : 0);
        }
        bytes[1] = (uint64_t)n * 24 - (n > 0);
        if (n > 0) ck_assert_int_eq(run(kernel, memory, bytes, 2, NULL), ENT_CODE_INVALID_ARGUMENT);
    }
    float x[6] = {0}, y[6];
    void *memory[] = {x, y};
    const uint64_t bytes[] = {sizeof x, sizeof y};
    run_symbols[0] = -1;
    ck_assert_int_eq(run(kernel, memory, bytes, 2, NULL), ENT_CODE_INVALID_ARGUMENT);
    run_symbols[0] = INT64_MAX / 4;
    ck_assert_int_eq(run(kernel, memory, bytes, 2, NULL), ENT_CODE_INVALID_ARGUMENT);
    ent_common_region_kernel_unload(kernel);
}
END_TEST

/* Each builds one fault into a region of y = Relu(x). */
typedef enum fault {
    NO_FAULT,
    OPEN_DIM,
    UNBOUNDED_DIM,
    LATER_SIZE,
    UNKNOWN_SYMBOL,
    UNKNOWN_SIZE,
    UNKNOWN_DTYPE,
    UNKNOWN_RANK,
    VALUE_TWICE,
    UNKNOWN_OP,
    UNKNOWN_VALUE,
    READ_BEFORE,
    MADE_TWICE,
    NO_NODES,
    PORT_ORDER,
    PORT_TWICE,
    PORT_UNKNOWN,
    OPAQUE_PORT,
    HUGE,
    UNSUPPORTED_DTYPE,
    CONTROL,
    FOREIGN_ATTRIBUTE
} fault;

static ent_bytes faulty(ent_message_writer *w, fault f) {
    int64_t dims[] = {2, f == OPEN_DIM || f == UNBOUNDED_DIM ? -1 : f == HUGE ? INT64_MAX / 2 : 3};
    const int64_t in = f == UNKNOWN_VALUE ? 99 : f == READ_BEFORE ? 3 : 1, nodes[] = {5};
    ent_layout opaque = {.kind = ENT_LAYOUT_OPAQUE, .rank = 2, .order = {0, 1}, .opaque = 5};
    uint32_t dtype = f == UNKNOWN_DTYPE ? 200 : f == UNSUPPORTED_DTYPE ? ENT_DTYPE_BOOL : ENT_DTYPE_F32;
    ent_common_writer(w, &sample_call, ENT_MESSAGE_region);
    if (f >= UNBOUNDED_DIM && f <= UNKNOWN_SIZE) sample_symbol(w, "n", INT64_MAX);
    if (f == UNBOUNDED_DIM) sample_expr(w, ENT_EXPR_SYMBOL, 0, 0);
    if (f == LATER_SIZE) sample_expr(w, ENT_EXPR_ADD, -1, 1);
    if (f == UNKNOWN_SYMBOL) sample_expr(w, ENT_EXPR_SYMBOL, 1, 0);
    if (f == UNKNOWN_SIZE) sample_expr(w, 99, 0, 0);
    sample_value(w, 1, dtype, dims, 2);
    sample_value(w, f == VALUE_TWICE ? 1 : 2, dtype, dims, f == UNKNOWN_RANK ? 0 : 2);
    sample_value(w, 3, ENT_DTYPE_F32, dims, 2);
    if (f == FOREIGN_ATTRIBUTE) sample_ints(w, 5, "perm", dims, 2);
    if (f != NO_NODES)
        sample_node(w, 5,
                    f == UNKNOWN_OP ? 60000
                    : f == CONTROL  ? (uint32_t)ENT_OP_If
                                    : ENT_OP_Relu,
                    &in, 1, 2);
    if (f == MADE_TWICE) sample_node(w, 6, ENT_OP_Relu, &in, 1, 2);
    sample_region(w, 7, nodes, 1);
    sample_port(w, f == PORT_ORDER ? 1 : 0, 1, false, f == OPAQUE_PORT ? opaque : ent_layout_plain(2));
    sample_port(w, 1, f == PORT_TWICE ? 1 : f == PORT_UNKNOWN ? 77 : 2, true, ent_layout_plain(2));
    if (ent_message_end(w) != ENT_OK) ck_abort_msg("the message does not build");
    if (f == UNKNOWN_RANK) { /* rank -1 with dims absent: patch the second value's rank field */
        ent_message_reader reader;
        ent_message_record record = {0};
        ck_assert_int_eq(ent_message_open(&reader, w->data, w->size), ENT_OK);
        ck_assert(ent_message_next(&reader, &record) && ent_message_next(&reader, &record));
        ent_bytes_store((uint8_t *)(uintptr_t)record.data + ENT_MESSAGE_RECORD_BYTES +
                            8 * ENT_FIELD_value_rank,
                        8, UINT64_MAX);
    }
    return (ent_bytes){w->data, w->size};
}

static const struct {
    fault fault;
    ent_code code;
    const char *words;
} refusals[] = {
    {OPEN_DIM, ENT_CODE_BAD_MESSAGE, "a size that is not there"},
    {UNBOUNDED_DIM, ENT_CODE_UNSUPPORTED, "only while it runs"},
    {LATER_SIZE, ENT_CODE_BAD_MESSAGE, "uses a later one"},
    {UNKNOWN_SYMBOL, ENT_CODE_BAD_MESSAGE, "a symbol that is not there"},
    {UNKNOWN_SIZE, ENT_CODE_BAD_MESSAGE, "of no known kind"},
    {UNKNOWN_DTYPE, ENT_CODE_BAD_MESSAGE, "no known rank or type"},
    {UNKNOWN_RANK, ENT_CODE_BAD_MESSAGE, "no known rank or type"},
    {VALUE_TWICE, ENT_CODE_BAD_MESSAGE, "occurs twice"},
    {UNKNOWN_OP, ENT_CODE_BAD_MESSAGE, "does not know"},
    {UNKNOWN_VALUE, ENT_CODE_BAD_MESSAGE, "later or not at all"},
    {READ_BEFORE, ENT_CODE_BAD_MESSAGE, "nothing made"},
    {MADE_TWICE, ENT_CODE_BAD_MESSAGE, "made twice"},
    {NO_NODES, ENT_CODE_BAD_MESSAGE, "no nodes"},
    {PORT_ORDER, ENT_CODE_BAD_MESSAGE, "ports must be in order"},
    {PORT_TWICE, ENT_CODE_BAD_MESSAGE, "ports must be in order"},
    {PORT_UNKNOWN, ENT_CODE_BAD_MESSAGE, "ports must be in order"},
    {OPAQUE_PORT, ENT_CODE_UNSUPPORTED, "does not read"},
    {HUGE, ENT_CODE_BAD_MESSAGE, "overflows"},
    {UNSUPPORTED_DTYPE, ENT_CODE_UNSUPPORTED, "Relu on bool has no reference evaluation"},
    {CONTROL, ENT_CODE_UNSUPPORTED, "If on f32 has no reference evaluation"},
    {FOREIGN_ATTRIBUTE, ENT_CODE_BAD_MESSAGE, "does not follow its node"},
};

START_TEST(faulty_regions_are_refused_with_the_rule) {
    ent_message_writer writer;
    ent_kernel *kernel = NULL;
    ck_assert_int_eq(load(faulty(&writer, refusals[_i].fault), &kernel), refusals[_i].code);
    ck_assert_msg(strstr(sample_failure, refusals[_i].words) != NULL, "%s", sample_failure);
    ck_assert_ptr_null(kernel);
}
END_TEST

START_TEST(the_faultless_one_is_not_refused) {
    ent_message_writer writer;
    ent_kernel *kernel = NULL;
    ck_assert_int_eq(load(faulty(&writer, NO_FAULT), &kernel), ENT_OK);
    ent_common_region_kernel_unload(kernel);
}
END_TEST

START_TEST(other_depths_and_other_blobs_are_refused) {
    ent_message_writer writer;
    ent_bytes message = sample_message(&writer, false), blob = {NULL, 0};
    ent_kernel *kernel = NULL;
    ck_assert_int_eq(ent_common_region_compile(&sample_device, &sample_call, ENT_DEPTH_TILE, message.data,
                                               message.size, &blob),
                     ENT_CODE_UNSUPPORTED);
    ck_assert_int_eq(
        ent_common_region_kernel_load(&sample_device, &sample_call, message.data, message.size, &kernel),
        ENT_CODE_BAD_MESSAGE);
    ck_assert_int_eq(
        ent_common_region_kernel_load(&sample_device, &sample_call, (const uint8_t *)"ENTREGN1", 8, &kernel),
        ENT_CODE_BAD_MESSAGE);
    ent_common_region_kernel_unload(NULL);
}
END_TEST

static uint32_t state = 12345;
static uint32_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

/* A damaged region that still loads runs on buffers of exactly the sizes it names. */
static void run_damaged(ent_kernel *kernel) {
    void *memory[8];
    uint64_t bytes[8], total = 0;
    uint32_t count = kernel->binding_count;
    for (uint32_t i = 0; i < count && kernel->binding_bytes; i++) total += kernel->binding_bytes[i];
    run_symbols[0] = run_symbols[1] = 3;
    if (count > 8 || total > (1 << 16) || kernel->scratch_bytes > (1 << 20)) return;
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = kernel->binding_bytes ? kernel->binding_bytes[i] : 4096;
        memory[i] = calloc(1, bytes[i] ? bytes[i] : 1);
    }
    (void)run(kernel, memory, bytes, count, NULL);
    for (uint32_t i = 0; i < count; i++) free(memory[i]);
}

START_TEST(damaged_messages_stay_within_their_memory) {
    uint32_t loaded = 0;
    for (uint32_t round = 0; round < 20000; round++) {
        ent_message_writer writer;
        ent_bytes message = round % 2        ? sample_message(&writer, round % 4 == 1)
                            : round % 4 == 0 ? open_message(&writer)
                                             : faulty(&writer, NO_FAULT);
        uint8_t *copy = malloc(message.size);
        memcpy(copy, message.data, message.size);
        for (uint32_t k = 0; k <= round % 3; k++) {
            uint32_t at = next_random() % (uint32_t)message.size;
            copy[at] = next_random() % 2 ? (uint8_t)(copy[at] ^ (1u << next_random() % 8))
                                         : (uint8_t)(next_random() % 6);
        }
        ent_kernel *kernel = NULL;
        if (load((ent_bytes){copy, message.size}, &kernel) == ENT_OK) {
            loaded++;
            run_damaged(kernel);
            ent_common_region_kernel_unload(kernel);
        }
        free(copy);
        sample_end();
    }
    ck_assert_uint_gt(loaded, 100); /* some damage is harmless: else this tests nothing */
}
END_TEST

int main(void) {
    TCase *test = tcase_create("all");
    tcase_add_test(test, a_region_computes_in_both_layouts);
    tcase_add_test(test, a_node_may_have_a_thousand_inputs);
    tcase_add_test(test, an_open_region_runs_with_the_sizes_of_each_step);
    tcase_add_test(test, buffers_that_do_not_fit_are_refused);
    tcase_add_loop_test(test, faulty_regions_are_refused_with_the_rule, 0,
                        (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(test, the_faultless_one_is_not_refused);
    tcase_add_test(test, other_depths_and_other_blobs_are_refused);
    tcase_add_test(test, damaged_messages_stay_within_their_memory);
    return sample_run("common_region", test);
}
