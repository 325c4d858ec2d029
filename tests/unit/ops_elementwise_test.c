/* Elementwise operators: values, broadcasting, integer rules, layouts. */
#include "tests/unit/ops_sample.h"

static void unary(uint32_t op, ent_attrs attrs, uint32_t dtype, double x, double y) {
    ent_tensor in = sample(dtype, &x, DIMS(1));
    sample_expect(sample_run(op, attrs, &in, 1), DIMS(1), &y);
}

static void binary(uint32_t op, ent_attrs attrs, uint32_t dtype, double a, double b, double y) {
    ent_tensor in[2] = {sample(dtype, &a, DIMS(1)), sample(dtype, &b, NO_DIMS)};
    sample_expect(sample_run(op, attrs, in, 2), DIMS(1), &y);
}

START_TEST(unary_values) {
    const uint32_t f = ENT_DTYPE_F32;
    unary(ENT_OP_Relu, NO_ATTRS, f, NAN, NAN);
    unary(ENT_OP_LeakyRelu, NO_ATTRS, f, -2, -0.02);
    unary(ENT_OP_HardSigmoid, NO_ATTRS, f, 1, 0.7);
    unary(ENT_OP_HardSwish, NO_ATTRS, f, 1, 2.0 / 3);
    unary(ENT_OP_Gelu, NO_ATTRS, f, 1, 0.841344746);
    unary(ENT_OP_Celu, NO_ATTRS, f, -1, expm1(-1));
    unary(ENT_OP_ThresholdedRelu, NO_ATTRS, f, 1, 0);
    unary(ENT_OP_Round, NO_ATTRS, f, 2.5, 2);
    unary(ENT_OP_Round, NO_ATTRS, f, -1.5, -2);
    unary(ENT_OP_Softplus, NO_ATTRS, f, 1000, 1000);
    unary(ENT_OP_Sign, NO_ATTRS, ENT_DTYPE_U64, 9e18, 1);
    unary(ENT_OP_Abs, NO_ATTRS, ENT_DTYPE_I8, -128, -128); /* wraps */
    unary(ENT_OP_BitwiseNot, NO_ATTRS, ENT_DTYPE_U8, 1, 254);
    unary(ENT_OP_IsNaN, NO_ATTRS, ENT_DTYPE_F16, NAN, 1);
    ent_attr negative = sample_int("detect_positive", 0), tanh_form = sample_string("approximate", "tanh");
    unary(ENT_OP_IsInf, (ent_attrs){&negative, 1}, f, INFINITY, 0);
    unary(ENT_OP_IsInf, (ent_attrs){&negative, 1}, f, -INFINITY, 1);
    unary(ENT_OP_Gelu, (ent_attrs){&tanh_form, 1}, f, 1, 0.841191991);
}
END_TEST

START_TEST(binary_values) {
    ent_attr fmod_form = sample_int("fmod", 1), left = sample_string("direction", "LEFT");
    binary(ENT_OP_Div, NO_ATTRS, ENT_DTYPE_I32, -7, 2, -3);
    binary(ENT_OP_Div, NO_ATTRS, ENT_DTYPE_I32, INT32_MIN, -1, INT32_MIN);
    binary(ENT_OP_Mod, NO_ATTRS, ENT_DTYPE_I32, -7, 3, 2);
    binary(ENT_OP_Mod, (ent_attrs){&fmod_form, 1}, ENT_DTYPE_I32, -7, 3, -1);
    binary(ENT_OP_Mod, (ent_attrs){&fmod_form, 1}, ENT_DTYPE_F32, -4.3, 2.1, -0.1000002);
    binary(ENT_OP_Pow, NO_ATTRS, ENT_DTYPE_I32, -3, 3, -27);
    binary(ENT_OP_Pow, NO_ATTRS, ENT_DTYPE_F32, 2, -1, 0.5);
    binary(ENT_OP_Add, NO_ATTRS, ENT_DTYPE_U8, 250, 10, 4);
    binary(ENT_OP_Less, NO_ATTRS, ENT_DTYPE_U64, 1, 0x1p63, 1);
    binary(ENT_OP_Max, NO_ATTRS, ENT_DTYPE_F32, NAN, 1, NAN);
    binary(ENT_OP_Min, NO_ATTRS, ENT_DTYPE_F32, 1, NAN, NAN);
    binary(ENT_OP_Max, NO_ATTRS, ENT_DTYPE_U64, 1, 0x1p63, 0x1p63);
    binary(ENT_OP_Mean, NO_ATTRS, ENT_DTYPE_F16, 1, 2, 1.5);
    binary(ENT_OP_BitShift, (ent_attrs){&left, 1}, ENT_DTYPE_U8, 129, 1, 2);
    binary(ENT_OP_BitShift, (ent_attrs){&left, 1}, ENT_DTYPE_U8, 1, 9, 0);
    binary(ENT_OP_Xor, NO_ATTRS, ENT_DTYPE_BOOL, 1, 1, 0);
    binary(ENT_OP_PRelu, NO_ATTRS, ENT_DTYPE_F32, -2, 3, -6);
}
END_TEST

START_TEST(broadcasts_both_ways) {
    ent_tensor in[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(3, 1)),
                        sample(ENT_DTYPE_F32, F32(10, 20), DIMS(2))};
    sample_expect(sample_run(ENT_OP_Add, NO_ATTRS, in, 2), DIMS(3, 2), F32(11, 21, 12, 22, 13, 23));
    ent_tensor empty[2] = {sample(ENT_DTYPE_F32, NULL, DIMS(0, 2)), sample(ENT_DTYPE_F32, F32(1), DIMS(1))};
    sample_expect(sample_run(ENT_OP_Mul, NO_ATTRS, empty, 2), DIMS(0, 2), NULL);
}
END_TEST

START_TEST(layouts_may_differ) {
    double values[24], sums[24];
    for (int i = 0; i < 24; i++) values[i] = i, sums[i] = 2 * i;
    ent_tensor plain = sample(ENT_DTYPE_F32, values, DIMS(1, 3, 2, 4));
    ent_layout blocked = ent_layout_plain(4);
    blocked.block_count = 1;
    blocked.block_axis[0] = 1;
    blocked.block_size[0] = 8;
    ent_tensor in[2] = {sample_in(&plain, ent_layout_channels_last(4)), sample_in(&plain, blocked)};
    sample_expect(sample_run(ENT_OP_Add, NO_ATTRS, in, 2), DIMS(1, 3, 2, 4), sums);
    free(plain.data);
}
END_TEST

START_TEST(clip_where_cast) {
    ent_tensor clip[3] = {
        sample(ENT_DTYPE_F32, F32(-5, 0, 5), DIMS(3)), {0}, sample(ENT_DTYPE_F32, F32(2), NO_DIMS)};
    sample_expect(sample_run(ENT_OP_Clip, NO_ATTRS, clip, 3), DIMS(3), F32(-5, 0, 2));
    ent_tensor where[3] = {sample(ENT_DTYPE_BOOL, F32(1, 0), DIMS(2)), sample(ENT_DTYPE_I64, F32(7), NO_DIMS),
                           sample(ENT_DTYPE_I64, F32(1, 2), DIMS(2, 1))};
    sample_expect(sample_run(ENT_OP_Where, NO_ATTRS, where, 3), DIMS(2, 2), F32(7, 1, 7, 2));
    ent_attr to_i8 = sample_int("to", ENT_DTYPE_I8), to_bool = sample_int("to", ENT_DTYPE_BOOL);
    unary(ENT_OP_Cast, (ent_attrs){&to_i8, 1}, ENT_DTYPE_F32, -3.7, -3);
    unary(ENT_OP_Cast, (ent_attrs){&to_i8, 1}, ENT_DTYPE_I32, 200, -56);
    unary(ENT_OP_Cast, (ent_attrs){&to_bool, 1}, ENT_DTYPE_F32, NAN, 1);
}
END_TEST

START_TEST(refusals) {
    ent_ops_error error;
    ent_tensor shapes[2] = {sample(ENT_DTYPE_F32, F32(1, 2), DIMS(2)),
                            sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(3))};
    ck_assert_int_eq(sample_refusal(ENT_OP_Add, NO_ATTRS, shapes, 2, &error), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "Add: extents 3 and 2 do not broadcast");
    ent_tensor dtypes[2] = {sample(ENT_DTYPE_F32, F32(1), DIMS(1)), sample(ENT_DTYPE_I32, F32(1), DIMS(1))};
    ck_assert_int_eq(sample_refusal(ENT_OP_Add, NO_ATTRS, dtypes, 2, &error), ENT_CODE_INVALID_ARGUMENT);
    ent_tensor integer = sample(ENT_DTYPE_I32, F32(1), DIMS(1));
    ck_assert_int_eq(sample_refusal(ENT_OP_Exp, NO_ATTRS, &integer, 1, &error), ENT_CODE_UNSUPPORTED);
    ent_tensor flag = sample(ENT_DTYPE_BOOL, F32(1), DIMS(1));
    ck_assert_int_eq(sample_refusal(ENT_OP_If, NO_ATTRS, &flag, 1, &error), ENT_CODE_UNSUPPORTED);
    ck_assert(!ent_ops_supported(ENT_OP_If, ENT_DTYPE_BOOL) && ent_ops_supported(ENT_OP_Exp, ENT_DTYPE_BF16));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops elementwise");
    TCase *all = tcase_create("all");
    tcase_add_test(all, unary_values);
    tcase_add_test(all, binary_values);
    tcase_add_test(all, broadcasts_both_ways);
    tcase_add_test(all, layouts_may_differ);
    tcase_add_test(all, clip_where_cast);
    tcase_add_test(all, refusals);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
