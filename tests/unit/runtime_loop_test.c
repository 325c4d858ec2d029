#include "tests/unit/runtime_fixture.h"

static const char text[] =
    "program \"loop\"\n"
    "device \"%D\" plugin \"fake\" parameters \"\"\n"
    "kernel \"double\" device 0 depth region tier generic requirement \"\" blob \"scale 2\"\n"
    "kernel \"small\" device 0 depth region tier generic requirement \"\" blob \"below 100\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [4] bytes 16\n"
    "  value %1 \"m\" input device 0 i64 [] bytes 8\n"
    "  value %2 \"go\" input device 0 bool [] bytes 1\n"
    "  value %3 \"iteration\" temporary device 0 i64 [] bytes 8\n"
    "  value %4 \"condition\" temporary device 0 bool [] bytes 1\n"
    "  value %5 \"y\" output device 0 f32 [4] bytes 16\n"
    "  value %6 \"next\" temporary device 0 bool [] bytes 1\n"
    "  value %7 \"next\" temporary device 0 f32 [4] bytes 16\n"
    "  step copy \"state\" device 0 values %2 %4\n"
    "  step copy \"state\" device 0 values %0 %5\n"
    "  step loop \"loop\" device 0 function 1 trips %1 condition %4 states 1 values %3 %4 %5 %6 %7 "
    "region 0\n"
    "  inputs %0 %1 %2\n"
    "  outputs %5\n"
    "end\n"
    "function \"body\"\n"
    "  value %0 \"i\" input device 0 i64 [] bytes 8\n"
    "  value %1 \"c\" input device 0 bool [] bytes 1\n"
    "  value %2 \"a\" input device 0 f32 [4] bytes 16\n"
    "  value %3 \"k\" output device 0 bool [] bytes 1\n"
    "  value %4 \"b\" output device 0 f32 [4] bytes 16\n"
    "  step dispatch \"s\" device 0 kernel 0 values %2 %4\n"
    "  step dispatch \"t\" device 0 kernel 1 values %4 %3\n"
    "  inputs %0 %1 %2\n"
    "  outputs %3 %4\n"
    "end\n";

static const char *const variants[] = {"fake", "fake:far", "fake:lazy"};
enum { VARIANTS = 3 };

START_TEST(a_loop_ends_by_count_or_condition) {
    fixture f;
    open_text(&f, variants[_i], text, NULL);
    must_open(&f);
    float x[4] = {1, 2, 3, 4};
    int64_t trips = 0;
    uint8_t go = 1;
    ent_tensor inputs[3] = {
        {.data = x, .size_bytes = 16, .dtype = ENT_DTYPE_F32, .rank = 1, .dims = {4}},
        {.data = &trips, .size_bytes = 8, .dtype = ENT_DTYPE_I64},
        {.data = &go, .size_bytes = 1, .dtype = ENT_DTYPE_BOOL},
    };
    /* x[0] doubles to 128: the body then says no. */
    const struct {
        int64_t trips;
        uint8_t go;
        float first;
    } cases[] = {{0, 1, 1}, {3, 1, 8}, {3, 0, 1}, {INT64_MAX, 1, 128}, {-1, 1, 1}, {7, 1, 128}, {1, 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ent_tensor output = {0};
        trips = cases[i].trips, go = cases[i].go;
        ck_assert_ptr_null(ent_runtime_run(f.runtime, inputs, &output));
        ck_assert_float_eq(((float *)output.data)[0], cases[i].first);
        ck_assert_float_eq(((float *)output.data)[3], 4 * cases[i].first);
    }
    close_fixture(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runtime_loop");
    TCase *tests = tcase_create("loop");
    tcase_add_loop_test(tests, a_loop_ends_by_count_or_condition, 0, VARIANTS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
