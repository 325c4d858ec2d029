#include "tests/unit/runtime_fixture.h"

/* y = 2 x, compiled for n = 3,5 */
static const char text[] =
    "program \"bound\"\n"
    "device \"fake\" plugin \"fake\" parameters \"\"\n"
    "constant i64 [2] bytes 16 hex x03000000000000000500000000000000\n"
    "kernel \"k\" device 0 depth region tier generic requirement \"\" blob \"scale 2\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [4] bytes 16\n"
    "  value %1 \"n\" input device 0 i64 [2] bytes 16\n"
    "  value %2 \"y\" output device 0 f32 [4] bytes 16\n"
    "  step dispatch \"s\" device 0 kernel 0 values %0 %2\n"
    "  inputs %0 %1\n"
    "  outputs %2\n"
    "end\n"
    "guard input 1 constant 0\n";

START_TEST(a_bound_input_takes_its_value_only) {
    fixture f;
    open_text(&f, "fake", text, NULL);
    must_open(&f);
    float x[4] = {1, 2, 3, 4};
    int64_t n[2] = {3, 5};
    ent_tensor inputs[2] = {
        {.data = x, .size_bytes = 16, .dtype = ENT_DTYPE_F32, .rank = 1, .dims = {4}},
        {.data = n, .size_bytes = 16, .dtype = ENT_DTYPE_I64, .rank = 1, .dims = {2}},
    };
    ent_tensor output = {0};
    for (int round = 0; round < 2; round++) {
        n[1] = 5;
        ck_assert_ptr_null(ent_runtime_run(f.runtime, inputs, &output));
        ck_assert_float_eq(((float *)output.data)[3], 8);
        n[1] = -7;
        ent_status status = ent_runtime_run(f.runtime, inputs, &output);
        ck_assert_ptr_nonnull(status);
        ck_assert_int_eq(status->code, ENT_ERROR_UNSUPPORTED);
        ck_assert_str_eq(status->rule, "runtime.guard");
        ck_assert_str_eq(status->place, "input 'n'");
        ck_assert_ptr_nonnull(strstr(status->text, "element 1 is -7; this bundle was compiled for 5 there"));
    }
    close_fixture(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runtime_guard");
    TCase *tests = tcase_create("guard");
    tcase_add_test(tests, a_bound_input_takes_its_value_only);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
