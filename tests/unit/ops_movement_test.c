/* Movement, reductions, normalisation, attention and quantisation. */
#include "tests/unit/ops_sample.h"

static ent_tensor list(const double *values, int64_t count) {
    return sample(ENT_DTYPE_I64, values, (const int64_t[]){count}, 1);
}
#define LIST(...) list(F32(__VA_ARGS__), (int64_t)(sizeof(F32(__VA_ARGS__)) / sizeof(double)))
#define SIX sample(ENT_DTYPE_F32, F32(1, 2, 3, 4, 5, 6), DIMS(2, 3))

START_TEST(slice_corners) {
    ent_tensor back[5] = {SIX, LIST(-1), LIST(-9e18), LIST(1), LIST(-2)};
    sample_expect(sample_run(ENT_OP_Slice, NO_ATTRS, back, 5), DIMS(2, 2), F32(3, 1, 6, 4));
    ent_tensor empty[4] = {SIX, LIST(5), LIST(9e18), LIST(-1)};
    sample_expect(sample_run(ENT_OP_Slice, NO_ATTRS, empty, 4), DIMS(2, 0), NULL);
}
END_TEST

START_TEST(reshapes) {
    ent_tensor zero[2] = {SIX, LIST(0, -1, 1)};
    sample_expect(sample_run(ENT_OP_Reshape, NO_ATTRS, zero, 2), DIMS(2, 3, 1), F32(1, 2, 3, 4, 5, 6));
    ent_attr allow = sample_int("allowzero", 1);
    ent_tensor none[2] = {sample(ENT_DTYPE_F32, NULL, DIMS(0, 3)), LIST(3, 0)};
    sample_expect(sample_run(ENT_OP_Reshape, (ent_attrs){&allow, 1}, none, 2), DIMS(3, 0), NULL);
    ent_tensor unsqueeze[2] = {SIX, LIST(-1, 0)};
    sample_expect(sample_run(ENT_OP_Unsqueeze, NO_ATTRS, unsqueeze, 2), DIMS(1, 2, 3, 1),
                  F32(1, 2, 3, 4, 5, 6));
    ent_ops_error error;
    ent_tensor wrong[2] = {SIX, LIST(4, -1)};
    ck_assert_int_eq(sample_refusal(ENT_OP_Reshape, NO_ATTRS, wrong, 2, &error), ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

START_TEST(moves) {
    ent_tensor turned = SIX;
    sample_expect(sample_run(ENT_OP_Transpose, NO_ATTRS, &turned, 1), DIMS(3, 2), F32(1, 4, 2, 5, 3, 6));
    ent_attr axis = sample_int("axis", -1);
    ent_tensor joined[3] = {SIX, sample(ENT_DTYPE_F32, NULL, DIMS(2, 0)),
                            sample(ENT_DTYPE_F32, F32(7, 8), DIMS(2, 1))};
    sample_expect(sample_run(ENT_OP_Concat, (ent_attrs){&axis, 1}, joined, 3), DIMS(2, 4),
                  F32(1, 2, 3, 7, 4, 5, 6, 8));
    ent_tensor tiled[2] = {SIX, LIST(1, 2)};
    sample_expect(sample_run(ENT_OP_Tile, NO_ATTRS, tiled, 2), DIMS(2, 6),
                  F32(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
    ent_tensor expanded[2] = {sample(ENT_DTYPE_F32, F32(1, 2), DIMS(2, 1)), LIST(2, 1, 2)};
    sample_expect(sample_run(ENT_OP_Expand, NO_ATTRS, expanded, 2), DIMS(2, 2, 2),
                  F32(1, 1, 2, 2, 1, 1, 2, 2));
    ent_attr reflect = sample_string("mode", "reflect");
    ent_tensor padded[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(3)), LIST(2, -1)};
    sample_expect(sample_run(ENT_OP_Pad, (ent_attrs){&reflect, 1}, padded, 2), DIMS(4), F32(3, 2, 1, 2));
    ent_tensor range[3] = {sample(ENT_DTYPE_I32, F32(5), NO_DIMS), sample(ENT_DTYPE_I32, F32(0), NO_DIMS),
                           sample(ENT_DTYPE_I32, F32(-2), NO_DIMS)};
    sample_expect(sample_run(ENT_OP_Range, NO_ATTRS, range, 3), DIMS(3), F32(5, 3, 1));
    ent_tensor zeros = sample(ENT_DTYPE_F32, F32(0, 0), DIMS(2));
    sample_expect(sample_run(ENT_OP_NonZero, NO_ATTRS, &zeros, 1), DIMS(1, 0), NULL);
}
END_TEST

START_TEST(gathers) {
    ent_attr axis = sample_int("axis", 1);
    ent_tensor gather[2] = {SIX, sample(ENT_DTYPE_I32, F32(-1, 0), DIMS(2))};
    sample_expect(sample_run(ENT_OP_Gather, (ent_attrs){&axis, 1}, gather, 2), DIMS(2, 2), F32(3, 1, 6, 4));
    ent_tensor elements[2] = {SIX, sample(ENT_DTYPE_I64, F32(0, -1), DIMS(2, 1))};
    sample_expect(sample_run(ENT_OP_GatherElements, (ent_attrs){&axis, 1}, elements, 2), DIMS(2, 1),
                  F32(1, 6));
    ent_tensor tuples[2] = {SIX, sample(ENT_DTYPE_I64, F32(1, 2, 0, 0), DIMS(2, 2))};
    sample_expect(sample_run(ENT_OP_GatherND, NO_ATTRS, tuples, 2), DIMS(2), F32(6, 1));
    ent_attr add = sample_string("reduction", "add");
    ent_tensor scatter[3] = {SIX, sample(ENT_DTYPE_I64, F32(1, 1), DIMS(2, 1)),
                             sample(ENT_DTYPE_F32, F32(1, 1, 1, 2, 2, 2), DIMS(2, 3))};
    sample_expect(sample_run(ENT_OP_ScatterND, (ent_attrs){&add, 1}, scatter, 3), DIMS(2, 3),
                  F32(1, 2, 3, 7, 8, 9));
    ent_ops_error error;
    ent_tensor outside[2] = {SIX, sample(ENT_DTYPE_I64, F32(2), DIMS(1))};
    ck_assert_int_eq(sample_refusal(ENT_OP_Gather, NO_ATTRS, outside, 2, &error), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "Gather: index 2 is outside extent 2");
}
END_TEST

START_TEST(reductions) {
    ent_attr flat = sample_int("keepdims", 0), noop = sample_int("noop_with_empty_axes", 1);
    ent_tensor rows[2] = {SIX, LIST(-1)};
    sample_expect(sample_run(ENT_OP_ReduceMean, (ent_attrs){&flat, 1}, rows, 2), DIMS(2), F32(2, 5));
    ent_tensor all = SIX;
    sample_expect(sample_run(ENT_OP_ReduceSum, NO_ATTRS, &all, 1), DIMS(1, 1), F32(21));
    ent_tensor none = SIX;
    sample_expect(sample_run(ENT_OP_ReduceSumSquare, (ent_attrs){&noop, 1}, &none, 1), DIMS(2, 3),
                  F32(1, 4, 9, 16, 25, 36));
    ent_tensor large[2] = {sample(ENT_DTYPE_F32, F32(1000, 1000), DIMS(2)), LIST(0)};
    sample_expect(sample_run(ENT_OP_ReduceLogSumExp, (ent_attrs){&flat, 1}, large, 2), NO_DIMS,
                  F32(1000 + log(2)));
    ent_tensor empty[2] = {sample(ENT_DTYPE_I8, NULL, DIMS(0, 1)), LIST(0)};
    sample_expect(sample_run(ENT_OP_ReduceMax, (ent_attrs){&flat, 1}, empty, 2), DIMS(1), F32(-128));
    ent_attr last[2] = {sample_int("axis", 1), sample_int("select_last_index", 1)};
    ent_tensor ties = sample(ENT_DTYPE_I32, F32(3, 1, 3), DIMS(1, 3));
    sample_expect(sample_run(ENT_OP_ArgMax, (ent_attrs){last, 2}, &ties, 1), DIMS(1, 1), F32(2));
    ent_tensor equal = sample(ENT_DTYPE_F16, F32(9, 9), DIMS(1, 2));
    sample_expect(sample_run(ENT_OP_Softmax, NO_ATTRS, &equal, 1), DIMS(1, 2), F32(0.5, 0.5));
}
END_TEST

START_TEST(normalisations) {
    ent_attr epsilon = sample_float("epsilon", 0);
    ent_tensor layer[3] = {sample(ENT_DTYPE_F32, F32(1, 3, 2, 6), DIMS(2, 2)),
                           sample(ENT_DTYPE_F32, F32(1, 2), DIMS(2)),
                           sample(ENT_DTYPE_F32, F32(0, 1), DIMS(2))};
    sample_expect(sample_run(ENT_OP_LayerNormalization, (ent_attrs){&epsilon, 1}, layer, 3), DIMS(2, 2),
                  F32(-1, 3, -1, 3));
    ent_tensor batch[5] = {
        sample(ENT_DTYPE_F32, F32(1, 2), DIMS(1, 2)), sample(ENT_DTYPE_F32, F32(2, 2), DIMS(2)),
        sample(ENT_DTYPE_F32, F32(1, 1), DIMS(2)), sample(ENT_DTYPE_F32, F32(0, 1), DIMS(2)),
        sample(ENT_DTYPE_F32, F32(4, 1), DIMS(2))};
    sample_expect(sample_run(ENT_OP_BatchNormalization, (ent_attrs){&epsilon, 1}, batch, 5), DIMS(1, 2),
                  F32(2, 3));
}
END_TEST

START_TEST(attention_is_causal) {
    /* Equal keys give equal weights: row i averages the first i + 1 values. */
    ent_attr causal = sample_int("is_causal", 1);
    ent_tensor in[3] = {sample(ENT_DTYPE_F32, F32(1, 1, 1), DIMS(1, 1, 3, 1)),
                        sample(ENT_DTYPE_F32, F32(2, 2, 2), DIMS(1, 1, 3, 1)),
                        sample(ENT_DTYPE_F32, F32(1, 3, 8), DIMS(1, 1, 3, 1))};
    sample_expect(sample_run(ENT_OP_Attention, (ent_attrs){&causal, 1}, in, 3), DIMS(1, 1, 3, 1),
                  F32(1, 2, 4));
    ent_tensor masked[4] = {sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1, 1)),
                            sample(ENT_DTYPE_F32, F32(2, 2, 2), DIMS(1, 1, 3, 1)),
                            sample(ENT_DTYPE_F32, F32(1, 3, 8), DIMS(1, 1, 3, 1)),
                            sample(ENT_DTYPE_BOOL, F32(1, 0, 1), DIMS(1, 3))};
    sample_expect(sample_run(ENT_OP_Attention, NO_ATTRS, masked, 4), DIMS(1, 1, 1, 1), F32(4.5));
}
END_TEST

START_TEST(quantisation) {
    ent_tensor in[3] = {sample(ENT_DTYPE_F32, F32(1, 3, 5, 400, -400), DIMS(5)),
                        sample(ENT_DTYPE_F32, F32(2), NO_DIMS), sample(ENT_DTYPE_I8, F32(1), NO_DIMS)};
    /* Halves go to even: 0.5 to 0, 1.5 to 2, 2.5 to 2. */
    sample_expect(sample_run(ENT_OP_QuantizeLinear, NO_ATTRS, in, 3), DIMS(5), F32(1, 3, 3, 127, -128));
    ent_attr block[2] = {sample_int("axis", 0), sample_int("block_size", 2)};
    ent_tensor back[2] = {sample(ENT_DTYPE_U8, F32(1, 2, 3), DIMS(3)),
                          sample(ENT_DTYPE_F32, F32(10, 100), DIMS(2))};
    sample_expect(sample_run(ENT_OP_DequantizeLinear, (ent_attrs){block, 2}, back, 2), DIMS(3),
                  F32(10, 20, 300));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops movement");
    TCase *all = tcase_create("all");
    tcase_add_test(all, slice_corners);
    tcase_add_test(all, reshapes);
    tcase_add_test(all, moves);
    tcase_add_test(all, gathers);
    tcase_add_test(all, reductions);
    tcase_add_test(all, normalisations);
    tcase_add_test(all, attention_is_causal);
    tcase_add_test(all, quantisation);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
