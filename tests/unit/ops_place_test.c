/* Placing, picking and sorting: what the node cases of the standard leave out. */
#include "tests/unit/ops_sample.h"

#define SIX sample(ENT_DTYPE_F32, F32(1, 2, 3, 4, 5, 6), DIMS(2, 3))
#define I64S(...) sample(ENT_DTYPE_I64, F32(__VA_ARGS__), DIMS(sizeof(F32(__VA_ARGS__)) / sizeof(double)))

START_TEST(triangles) {
    ent_attr lower = sample_int("upper", 0);
    ent_tensor far[2] = {SIX, sample(ENT_DTYPE_I64, F32(-9e18), NO_DIMS)};
    sample_expect(sample_run(ENT_OP_Trilu, (ent_attrs){&lower, 1}, far, 2), DIMS(2, 3),
                  F32(0, 0, 0, 0, 0, 0));
    ent_tensor high[2] = {SIX, sample(ENT_DTYPE_I64, F32(9e18), NO_DIMS)};
    sample_expect(sample_run(ENT_OP_Trilu, NO_ATTRS, high, 2), DIMS(2, 3), F32(0, 0, 0, 0, 0, 0));
    ent_tensor plain = SIX;
    sample_expect(sample_run(ENT_OP_Trilu, NO_ATTRS, &plain, 1), DIMS(2, 3), F32(1, 2, 3, 0, 5, 6));
}
END_TEST

START_TEST(scatters) {
    ent_attr mul[2] = {sample_string("reduction", "mul"), sample_int("axis", 1)};
    ent_tensor twice[3] = {sample(ENT_DTYPE_U8, F32(1, 2, 3, 4, 5, 6), DIMS(2, 3)),
                           sample(ENT_DTYPE_I32, F32(2, -1), DIMS(1, 2)),
                           sample(ENT_DTYPE_U8, F32(10, 20), DIMS(1, 2))};
    sample_expect(sample_run(ENT_OP_ScatterElements, (ent_attrs){mul, 2}, twice, 3), DIMS(2, 3),
                  F32(1, 2, 600 % 256, 4, 5, 6));
    ent_tensor outside[3] = {SIX, sample(ENT_DTYPE_I64, F32(2), DIMS(1, 1)),
                             sample(ENT_DTYPE_F32, F32(0), DIMS(1, 1))};
    ent_ops_error error;
    ck_assert_int_eq(sample_refusal(ENT_OP_ScatterElements, NO_ATTRS, outside, 3, &error),
                     ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "ScatterElements: index 2 is outside extent 2");
    ent_attr odd = sample_string("reduction", "xor");
    ent_tensor unknown[3] = {SIX, sample(ENT_DTYPE_I64, F32(1), DIMS(1, 1)),
                             sample(ENT_DTYPE_F32, F32(0), DIMS(1, 1))};
    ck_assert_int_eq(sample_refusal(ENT_OP_ScatterElements, (ent_attrs){&odd, 1}, unknown, 3, &error),
                     ENT_CODE_UNSUPPORTED);
    ent_attr cache[2] = {sample_string("mode", "circular"), sample_int("axis", 1)};
    ent_tensor ring[3] = {SIX, sample(ENT_DTYPE_F32, F32(7, 8, 9, 10), DIMS(2, 2)), I64S(2, -1)};
    sample_expect(sample_run(ENT_OP_TensorScatter, (ent_attrs){cache, 2}, ring, 3), DIMS(2, 3),
                  F32(8, 2, 7, 10, 5, 9));
    ent_tensor full[3] = {SIX, sample(ENT_DTYPE_F32, F32(7, 8, 9, 10), DIMS(2, 2)), I64S(0, 2)};
    ck_assert_int_eq(sample_refusal(ENT_OP_TensorScatter, (ent_attrs){&cache[1], 1}, full, 3, &error),
                     ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

START_TEST(sorts) {
    ent_attr axis = sample_int("axis", 0);
    ent_tensor top[2] = {sample(ENT_DTYPE_F16, F32(1, NAN, -INFINITY, 4, 0, 4), DIMS(3, 2)), I64S(2)};
    sample_expect(sample_run(ENT_OP_TopK, (ent_attrs){&axis, 1}, top, 2), DIMS(2, 2), F32(1, NAN, 0, 4));
    ent_tensor large[2] = {sample(ENT_DTYPE_U64, F32(1, 1.8e19, 5), DIMS(3)), I64S(1)};
    sample_expect(sample_run(ENT_OP_TopK, NO_ATTRS, large, 2), DIMS(1), F32(1.8e19));
    ent_tensor many[2] = {SIX, I64S(4)};
    ent_ops_error error;
    ck_assert_int_eq(sample_refusal(ENT_OP_TopK, NO_ATTRS, many, 2, &error), ENT_CODE_INVALID_ARGUMENT);
    ent_attr along = sample_int("axis", -1);
    ent_tensor columns = sample(ENT_DTYPE_I32, F32(2, 1, 2, 1, 0, 1), DIMS(2, 3));
    sample_expect(sample_run(ENT_OP_Unique, (ent_attrs){&along, 1}, &columns, 1), DIMS(2, 2),
                  F32(1, 2, 0, 1));
    ent_tensor zeros = sample(ENT_DTYPE_F32, F32(0, -0.0, NAN, NAN, -1), DIMS(5));
    sample_expect(sample_run(ENT_OP_Unique, NO_ATTRS, &zeros, 1), DIMS(3), F32(-1, 0, NAN));
    ent_tensor none = sample(ENT_DTYPE_F32, NULL, DIMS(0, 3));
    sample_expect(sample_run(ENT_OP_Unique, NO_ATTRS, &none, 1), DIMS(0), NULL);
}
END_TEST

/* All four results, in the order of the first occurrence. */
START_TEST(unique_lists) {
    ent_attr unsorted = sample_int("sorted", 0);
    ent_tensor x = I64S(5, 3, 5, 9, 3), results[4];
    const ent_tensor *input = &x;
    ent_ops_error error;
    ent_tensor *outputs[4];
    const double expected[4][5] = {{5, 3, 9}, {0, 1, 3}, {0, 1, 0, 2, 1}, {2, 2, 1}};
    ck_assert_int_eq(
        ent_ops_output_dims(ENT_OP_Unique, (ent_attrs){&unsorted, 1}, &input, 1, results, 4, &error), ENT_OK);
    for (int i = 0; i < 4; i++) {
        results[i] = sample_empty(results[i].dtype, results[i].dims, results[i].rank,
                                  ent_layout_plain(results[i].rank));
        outputs[i] = &results[i];
    }
    ck_assert_int_eq(
        ent_ops_evaluate(ENT_OP_Unique, (ent_attrs){&unsorted, 1}, &input, 1, outputs, 4, NULL, &error),
        ENT_OK);
    for (int i = 0; i < 4; i++) sample_expect(results[i], DIMS(i == 2 ? 5 : 3), expected[i]);
    free(x.data);
}
END_TEST

START_TEST(picks) {
    ent_attr axis = sample_int("axis", 1);
    ent_tensor some[2] = {SIX, sample(ENT_DTYPE_BOOL, F32(0, 1), DIMS(2))};
    sample_expect(sample_run(ENT_OP_Compress, (ent_attrs){&axis, 1}, some, 2), DIMS(2, 1), F32(2, 5));
    ent_tensor packed[2] = {sample(ENT_DTYPE_U8, F32(1, 0), DIMS(2)),
                            sample(ENT_DTYPE_BOOL, F32(0, 0), DIMS(2))};
    sample_expect(sample_run(ENT_OP_Compress, NO_ATTRS, packed, 2), DIMS(0), NULL);
    ent_tensor hot[3] = {sample(ENT_DTYPE_F32, F32(1, -1, 7), DIMS(3)),
                         sample(ENT_DTYPE_F32, F32(3), NO_DIMS), sample(ENT_DTYPE_I8, F32(-2, 9), DIMS(2))};
    sample_expect(sample_run(ENT_OP_OneHot, NO_ATTRS, hot, 3), DIMS(3, 3),
                  F32(-2, 9, -2, -2, -2, 9, -2, -2, -2));
    ent_attr eye[2] = {sample_int("k", -1), sample_int("dtype", ENT_DTYPE_BOOL)};
    ent_tensor like = SIX;
    sample_expect(sample_run(ENT_OP_EyeLike, (ent_attrs){eye, 2}, &like, 1), DIMS(2, 3),
                  F32(0, 0, 0, 1, 0, 0));
    ent_attr time[2] = {sample_int("batch_axis", 0), sample_int("time_axis", 1)};
    ent_tensor turned[2] = {SIX, I64S(2, 0)};
    sample_expect(sample_run(ENT_OP_ReverseSequence, (ent_attrs){time, 2}, turned, 2), DIMS(2, 3),
                  F32(2, 1, 3, 4, 5, 6));
    ent_tensor centred[2] = {SIX, I64S(5, 2)};
    sample_expect(sample_run(ENT_OP_CenterCropPad, NO_ATTRS, centred, 2), DIMS(5, 2),
                  F32(0, 0, 1, 2, 4, 5, 0, 0, 0, 0));
    ent_attr to = sample_int("to", ENT_DTYPE_U32);
    ent_tensor bits = sample(ENT_DTYPE_F32, F32(1, -0.0), DIMS(2));
    sample_expect(sample_run(ENT_OP_BitCast, (ent_attrs){&to, 1}, &bits, 1), DIMS(2),
                  F32(0x3f800000, 0x80000000u));
}
END_TEST

START_TEST(suppression) {
    ent_tensor boxes[5] = {
        sample(ENT_DTYPE_F32, F32(0, 0, 1, 1, 0, 0, 1, 0.5, 1, 1, 0, 0, 5, 5, 6, 6), DIMS(1, 4, 4)),
        sample(ENT_DTYPE_F32, F32(0.5, 0.9, 0.5, 0.1), DIMS(1, 1, 4)), I64S(9),
        sample(ENT_DTYPE_F32, F32(0.5), DIMS(1)), sample(ENT_DTYPE_F32, F32(0.1), DIMS(1))};
    /* Box 2 is box 0 turned round: equal, so the later one goes. An overlap of exactly one half stays. */
    sample_expect(sample_run(ENT_OP_NonMaxSuppression, NO_ATTRS, boxes, 5), DIMS(2, 3),
                  F32(0, 0, 1, 0, 0, 0));
    ent_tensor nothing[2] = {sample(ENT_DTYPE_F32, F32(0, 0, 1, 1), DIMS(1, 1, 4)),
                             sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1))};
    sample_expect(sample_run(ENT_OP_NonMaxSuppression, NO_ATTRS, nothing, 2), DIMS(0, 3), NULL);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_place");
    TCase *tests = tcase_create("place");
    tcase_add_test(tests, triangles);
    tcase_add_test(tests, scatters);
    tcase_add_test(tests, sorts);
    tcase_add_test(tests, unique_lists);
    tcase_add_test(tests, picks);
    tcase_add_test(tests, suppression);
    suite_add_tcase(suite, tests);
    return sample_main(suite);
}
