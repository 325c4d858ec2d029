/* The public API over a bundle file. The fake plugin is put into the registry behind the API's back, as a
 * plugin file would be. */
#include "core/runtime/api.h"

#include <unistd.h>

#include "tests/unit/runtime_fake.h"

#include <check.h> /* last: it defines fail as a macro */

static const char text[] = "program \"api\"\n"
                           "symbol \"n\" min 1 max 16 multiple 1 input 0 axis 0\n"
                           "expr e0 = symbol 0\n"
                           "expr e1 = mul e0 16\n"
                           "expr e2 = add e0 e0\n"
                           "device \"fake\" plugin \"fake\" parameters \"\"\n"
                           "constant f32 [4] bytes 16 hex x0000803f000000400000404000008040\n"
                           "kernel \"add\" device 0 depth region tier generic requirement \"\" blob \"add\"\n"
                           "function \"main\"\n"
                           "  value %0 \"x\" input device 0 f32 [e0,4] bytes e1\n"
                           "  value %1 \"y\" output device 0 f32 [e0,4] bytes e1\n"
                           "  value %2 \"t\" temporary device 0 f32 [e0,4] bytes e1\n"
                           "  value %3 \"w\" constant 0 device 0 f32 [4] bytes 16\n"
                           "  value %4 \"z\" output device 0 f32 [e2,2] bytes e1\n"
                           "  value %5 \"w2\" output device 0 f32 [4] bytes 16\n"
                           "  step dispatch \"sum\" device 0 kernel 0 values %0 %0 %2 region 3 predicted 42\n"
                           "  step copy \"out\" device 0 values %2 %1\n"
                           "  step copy \"out2\" device 0 values %2 %4\n"
                           "  step dispatch \"weights\" device 0 kernel 0 values %3 %3 %5\n"
                           "  inputs %0\n"
                           "  outputs %1 %4 %5\n"
                           "end\n"
                           "plan \"{}\"\n";

static char path[128];

static entente_runtime *open_runtime(void) {
    entente_runtime *runtime;
    entente_error error;
    entente_options options = {.size = sizeof options, .plugin_path = "/nonexistent"};
    ck_assert_int_eq(entente_runtime_create(&options, &runtime, &error), 0);
    ck_assert_ptr_null(ent_host_add_static(runtime->registry, &fake_plugin, true));
    memset(&fake, 0, sizeof fake);
    return runtime;
}

static void write_bundle(void) {
    ent_arena *arena = ent_arena_create(0);
    ent_program *program;
    ent_status status = ent_program_parse(arena, "test", text, &program);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    ent_memory_result memory;
    ck_assert_ptr_null(ent_program_plan_memory(program, arena, &memory));
    ck_assert_ptr_null(ent_program_save(program, arena, path));
    ent_arena_destroy(arena);
}

static entente_bundle *open_bundle(entente_runtime *runtime) {
    entente_bundle *bundle;
    entente_error error;
    int code = entente_bundle_load(runtime, path, &bundle, &error);
    ck_assert_msg(code == 0, "%s", code ? error.text : "");
    return bundle;
}

static void check_result(const float *x, int64_t n, const entente_tensor *out) {
    ck_assert_int_eq(out[0].dims[0], n);
    ck_assert_int_eq(out[1].dims[0], 2 * n);
    for (int64_t i = 0; i < n * 4; i++) ck_assert_float_eq(((float *)out[0].data)[i], 2 * x[i]);
    for (int64_t i = 0; i < n * 4; i++) ck_assert_float_eq(((float *)out[1].data)[i], 2 * x[i]);
    for (int i = 0; i < 4; i++) ck_assert_float_eq(((float *)out[2].data)[i], (float)(2 * (i + 1)));
}

START_TEST(describes_and_runs) {
    entente_runtime *runtime = open_runtime();
    entente_bundle *bundle = open_bundle(runtime);
    entente_port port;
    ck_assert_uint_eq(entente_input_count(bundle), 1);
    ck_assert_uint_eq(entente_output_count(bundle), 3);
    ck_assert_int_eq(entente_input(bundle, 0, &port), 0);
    ck_assert_str_eq(port.name, "x");
    ck_assert_int_eq(port.dims[0], -1);
    ck_assert_int_eq(port.dims[1], 4);
    ck_assert_str_eq(port.symbols[0], "n");
    ck_assert_int_eq(entente_output(bundle, 1, &port), 0);
    ck_assert_int_eq(port.dims[0], -1);
    ck_assert_str_eq(port.symbols[0], "");
    ck_assert_int_eq(entente_input(bundle, 1, &port), ENTENTE_USAGE);
    /* The weights are used where the file is mapped. */
    const void *weights = bundle->file.program->constants[0].data;
    _Alignas(64) float x[64];
    for (int64_t n = 1; n <= 16; n += 5) {
        for (int64_t i = 0; i < n * 4; i++) x[i] = (float)(i * n);
        entente_tensor in = {x, (uint64_t)n * 16, ENTENTE_F32, 2, {n, 4}}, out[3] = {{0}};
        ck_assert_int_eq(entente_run(bundle, &in, 1, out, 3, NULL), 0);
        check_result(x, n, out);
        if (n == 1) ck_assert_ptr_eq(fake.last_import, out[2].data);
    }
    ck_assert(weights >= (const void *)bundle->file.map.data);
    entente_memory memory;
    ck_assert_int_eq(entente_memory_used(bundle, &memory, NULL), 0);
    ck_assert_uint_eq(memory.weights_bytes, 16);
    ck_assert_uint_eq(memory.arena_bytes, 256);
    entente_bundle_close(bundle);
    entente_runtime_destroy(runtime);
    ck_assert_uint_eq(fake.created + fake.imported, fake.destroyed);
    ck_assert_uint_eq(fake.created, 4); /* the arena, each time it had to grow: 64, 128, 192, 256 bytes */
}
END_TEST

START_TEST(errors_have_code_rule_place_and_text) {
    entente_runtime *runtime = open_runtime();
    entente_bundle *bundle = open_bundle(runtime), *other;
    entente_error error;
    float x[4 * 17] = {0};
    entente_tensor in = {x, sizeof x, ENTENTE_F32, 2, {17, 4}}, out[3] = {{0}};
    ck_assert_int_eq(entente_run(bundle, &in, 1, out, 3, &error), ENTENTE_UNSUPPORTED);
    ck_assert_int_eq(error.code, ENTENTE_UNSUPPORTED);
    ck_assert_str_eq(error.rule, "runtime.guard");
    ck_assert_ptr_nonnull(strstr(error.text, "'n'"));
    ck_assert_int_eq(entente_run(bundle, &in, 1, out, 2, &error), ENTENTE_USAGE);
    ck_assert_str_eq(error.rule, "run.counts");
    in.dims[0] = 16;
    ck_assert_int_eq(entente_run(bundle, &in, 1, out, 3, &error), 0);
    ck_assert_int_eq(entente_bundle_load(runtime, "/no/such/file.ent", &other, &error), ENTENTE_BAD_MODEL);
    ck_assert_ptr_null(other);
    ck_assert_ptr_nonnull(strstr(error.place, "/no/such/file.ent"));
    entente_bundle_close(bundle);
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_int_eq(entente_bundle_load(runtime, path, &other, &error), ENTENTE_BAD_MODEL);
    ck_assert_str_eq(error.rule, "bundle.truncated");
    write_bundle();
    entente_runtime_destroy(runtime);
    runtime = NULL;
    entente_options options = {.size = sizeof options, .plugin_path = "/nonexistent"};
    ck_assert_int_eq(entente_runtime_create(&options, &runtime, &error), 0);
    ck_assert_int_eq(entente_bundle_load(runtime, path, &other, &error), ENTENTE_DEVICE); /* no plugin */
    ck_assert_ptr_nonnull(strstr(error.text, "fake"));
    entente_runtime_destroy(runtime);
    entente_runtime_destroy(NULL);
    entente_bundle_close(NULL);
}
END_TEST

START_TEST(asynchronous_runs_are_waited_for) {
    entente_runtime *runtime = open_runtime();
    entente_bundle *bundle = open_bundle(runtime);
    entente_error error;
    int done = 7;
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    entente_tensor in = {x, sizeof x, ENTENTE_F32, 2, {2, 4}}, out[3] = {{0}};
    ck_assert_int_eq(entente_wait(bundle, 0, &done, &error), ENTENTE_USAGE);
    ck_assert_str_eq(error.rule, "run.idle");
    for (int round = 0; round < 50; round++) {
        memset(out, 0, sizeof out);
        ck_assert_int_eq(entente_run_async(bundle, &in, 1, out, 3, &error), 0);
        ck_assert_int_eq(entente_run_async(bundle, &in, 1, out, 3, &error), ENTENTE_USAGE);
        do ck_assert_int_eq(entente_wait(bundle, round % 2 ? UINT64_MAX : 1000, &done, &error), 0);
        while (!done);
        check_result(x, 2, out);
    }
    in.dims[0] = 99;
    ck_assert_int_eq(entente_run_async(bundle, &in, 1, out, 3, &error), 0);
    ck_assert_int_eq(entente_wait(bundle, UINT64_MAX, &done, &error), ENTENTE_UNSUPPORTED);
    ck_assert_int_eq(done, 1);
    ck_assert_str_eq(error.rule, "runtime.guard");
    in.dims[0] = 2;
    ck_assert_int_eq(entente_run_async(bundle, &in, 1, out, 3, &error), 0);
    entente_bundle_close(bundle); /* waits for it */
    entente_runtime_destroy(runtime);
}
END_TEST

static void *run_alone(void *argument) {
    entente_bundle *bundle = open_bundle(argument);
    float x[4] = {1, 2, 3, 4};
    for (int round = 0; round < 20; round++) {
        entente_tensor in = {x, sizeof x, ENTENTE_F32, 2, {1, 4}}, out[3] = {{0}};
        ck_assert_int_eq(entente_run(bundle, &in, 1, out, 3, NULL), 0);
        check_result(x, 1, out);
    }
    entente_bundle_close(bundle);
    return NULL;
}

START_TEST(instances_run_side_by_side) {
    entente_runtime *runtime = open_runtime();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_alone, runtime), 0);
    for (int i = 0; i < 4; i++) ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    entente_runtime_destroy(runtime);
}
END_TEST

START_TEST(steps_have_times) {
    entente_runtime *runtime = open_runtime();
    entente_bundle *bundle = open_bundle(runtime);
    entente_step step;
    float x[4] = {0};
    entente_tensor in = {x, sizeof x, ENTENTE_F32, 2, {1, 4}}, out[3] = {{0}};
    ck_assert_uint_eq(entente_step_count(bundle), 0);
    ck_assert_int_eq(entente_step_at(bundle, 0, &step), ENTENTE_USAGE);
    entente_set_profiling(bundle, 1);
    ck_assert_int_eq(entente_run(bundle, &in, 1, out, 3, NULL), 0);
    ck_assert_uint_eq(entente_step_count(bundle), 4);
    ck_assert_int_eq(entente_step_at(bundle, 0, &step), 0);
    ck_assert_str_eq(step.name, "sum");
    ck_assert_str_eq(step.tier, "emulated");
    ck_assert_uint_eq(step.region, 3);
    ck_assert_double_eq(step.predicted_ns, 42);
    ck_assert_uint_gt(step.end_ns, step.begin_ns);
    ck_assert_int_eq(entente_step_at(bundle, 1, &step), 0);
    ck_assert_str_eq(step.tier, "none");
    size_t size;
    ck_assert_int_eq(memcmp(entente_plan_json(bundle, &size), "{}", 2), 0);
    ck_assert_uint_eq(size, 2);
    entente_bundle_close(bundle);
    entente_runtime_destroy(runtime);
}
END_TEST

int main(void) {
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/entente-api-test-%d.ent", folder, (int)getpid());
    Suite *suite = suite_create("runtime_api");
    TCase *tests = tcase_create("api");
    tcase_add_checked_fixture(tests, write_bundle, NULL);
    tcase_add_test(tests, describes_and_runs);
    tcase_add_test(tests, errors_have_code_rule_place_and_text);
    tcase_add_test(tests, asynchronous_runs_are_waited_for);
    tcase_add_test(tests, instances_run_side_by_side);
    tcase_add_test(tests, steps_have_times);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed != 0;
}
