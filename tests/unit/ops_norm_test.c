/* Normalisations, losses and activations by closed forms. */
#include "tests/unit/ops_sample.h"

START_TEST(rms_takes_the_type_of_its_scale) {
    ent_attr bounded[2] = {sample_int("axis", 1), sample_float("epsilon", 1)};
    ent_tensor in[2] = {sample(ENT_DTYPE_F32, F32(3, 4, 0, 0, 1, 1), DIMS(3, 2)),
                        sample(ENT_DTYPE_F16, F32(1, 2), DIMS(2))};
    ent_tensor y = sample_run(ENT_OP_RMSNormalization, (ent_attrs){bounded, 2}, in, 2);
    ck_assert_uint_eq(y.dtype, ENT_DTYPE_F16);
    /* squares' means 12.5, 0, 1, plus 1 */
    double a = ent_ops_load_f64(y.data, y.dtype, 0), b = ent_ops_load_f64(y.data, y.dtype, 5);
    ck_assert(fabs(a - 3 / sqrt(13.5)) < 1e-3 && fabs(b - 2 / sqrt(2)) < 2e-3);
    free(y.data);
}
END_TEST

/* Two channels; the running mean goes half the way. */
START_TEST(batch_norm_trains_on_its_batch) {
    ent_attr attrs[3] = {sample_int("training_mode", 1), sample_float("epsilon", 0),
                         sample_float("momentum", 0.5)};
    ent_tensor in[5] = {sample(ENT_DTYPE_F32, F32(1, 10, 3, 30), DIMS(2, 2)),
                        sample(ENT_DTYPE_F32, F32(1, 2), DIMS(2)), sample(ENT_DTYPE_F32, F32(0, 5), DIMS(2)),
                        sample(ENT_DTYPE_F32, F32(8, 0), DIMS(2)), sample(ENT_DTYPE_F32, F32(9, 9), DIMS(2))};
    sample_expect(sample_run(ENT_OP_BatchNormalization, (ent_attrs){attrs, 3}, in, 5), DIMS(2, 2),
                  F32(-1, 3, 1, 7));
}
END_TEST

START_TEST(group_norm_has_a_scale_per_channel) {
    ent_attr attrs[2] = {sample_int("num_groups", 2), sample_float("epsilon", 0)};
    ent_tensor in[3] = {sample(ENT_DTYPE_F32, F32(1, 3, 2, 6), DIMS(1, 4, 1)),
                        sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(4)),
                        sample(ENT_DTYPE_F32, F32(0, 0, 10, 10), DIMS(4))};
    sample_expect(sample_run(ENT_OP_GroupNormalization, (ent_attrs){attrs, 2}, in, 3), DIMS(1, 4, 1),
                  F32(-1, 2, 7, 14));
}
END_TEST

START_TEST(mean_variance_over_any_axes) {
    const int64_t axes[1] = {0};
    ent_attr attr = sample_ints("axes", axes, 1);
    ent_tensor x = sample(ENT_DTYPE_F64, F32(1, 5, 3, 9), DIMS(2, 2));
    sample_expect(sample_run(ENT_OP_MeanVarianceNormalization, (ent_attrs){&attr, 1}, &x, 1), DIMS(2, 2),
                  F32(-1, -1, 1, 1));
}
END_TEST

START_TEST(lp_leaves_zeros) {
    for (int64_t p = 1; p <= 2; p++) {
        ent_attr attrs[2] = {sample_int("axis", 0), sample_int("p", p)};
        ent_tensor x = sample(ENT_DTYPE_F32, F32(3, 0, -4, 0), DIMS(2, 2));
        double norm = p == 1 ? 7 : 5;
        sample_expect(sample_run(ENT_OP_LpNormalization, (ent_attrs){attrs, 2}, &x, 1), DIMS(2, 2),
                      F32(3 / norm, 0, -4 / norm, 0));
    }
    ent_attr three = sample_int("p", 3);
    ent_tensor x = sample(ENT_DTYPE_F32, F32(1), DIMS(1));
    ent_ops_error error;
    ck_assert_int_eq(sample_refusal(ENT_OP_LpNormalization, (ent_attrs){&three, 1}, &x, 1, &error),
                     ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

/* An even size reaches one further up than down. */
START_TEST(lrn_sees_its_neighbours) {
    ent_attr attrs[4] = {sample_int("size", 2), sample_float("alpha", 2), sample_float("beta", 1),
                         sample_float("bias", 1)};
    ent_tensor x = sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(1, 3, 1));
    sample_expect(sample_run(ENT_OP_LRN, (ent_attrs){attrs, 4}, &x, 1), DIMS(1, 3, 1),
                  F32(1 / 6.0, 2 / 14.0, 3 / 10.0));
}
END_TEST

START_TEST(hardmax_takes_the_first) {
    ent_attr axis = sample_int("axis", 0);
    ent_tensor x = sample(ENT_DTYPE_BF16, F32(1, 5, 1, 2), DIMS(2, 2));
    sample_expect(sample_run(ENT_OP_Hardmax, (ent_attrs){&axis, 1}, &x, 1), DIMS(2, 2), F32(1, 1, 0, 0));
}
END_TEST

static void loss(const char *reduction, bool ignore, const int64_t *dims, uint32_t rank,
                 const double *expected) {
    ent_attr attrs[2] = {sample_string("reduction", reduction), sample_int("ignore_index", -7)};
    ent_tensor in[3] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4, 5, 6), DIMS(3, 2)),
                        sample(ENT_DTYPE_I64, F32(0, ignore ? -7 : 1, 1), DIMS(3)),
                        sample(ENT_DTYPE_F32, F32(2, 3), DIMS(2))};
    sample_expect(sample_run(ENT_OP_NegativeLogLikelihoodLoss, (ent_attrs){attrs, ignore ? 2 : 1}, in, 3),
                  dims, rank, expected);
}

START_TEST(losses_are_weighted_and_may_ignore) {
    loss("none", false, DIMS(3), F32(-2, -12, -18));
    loss("none", true, DIMS(3), F32(-2, 0, -18));
    loss("sum", true, NO_DIMS, F32(-20));
    loss("mean", true, NO_DIMS, F32(-4));
    loss("mean", false, NO_DIMS, F32(-4));
    ent_tensor in[2] = {sample(ENT_DTYPE_F32, F32(0, 0, 0, 0), DIMS(2, 2)),
                        sample(ENT_DTYPE_I32, F32(0, 1), DIMS(2))};
    sample_expect(sample_run(ENT_OP_SoftmaxCrossEntropyLoss, NO_ATTRS, in, 2), NO_DIMS, F32(log(2)));
}
END_TEST

START_TEST(a_target_outside_the_classes_is_refused) {
    ent_ops_error error;
    ent_tensor in[2] = {sample(ENT_DTYPE_F32, F32(1, 2), DIMS(1, 2)), sample(ENT_DTYPE_I64, F32(2), DIMS(1))};
    ck_assert_int_eq(sample_refusal(ENT_OP_NegativeLogLikelihoodLoss, NO_ATTRS, in, 2, &error),
                     ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "NegativeLogLikelihoodLoss: target 2 is not one of 2 classes");
}
END_TEST

START_TEST(shrink_and_swish) {
    ent_attr attrs[2] = {sample_float("lambd", 1), sample_float("bias", 0.5)};
    ent_tensor x = sample(ENT_DTYPE_F32, F32(-3, -1, 0, 1, 3), DIMS(5));
    sample_expect(sample_run(ENT_OP_Shrink, (ent_attrs){attrs, 2}, &x, 1), DIMS(5), F32(-2.5, 0, 0, 0, 2.5));
    ent_tensor bytes = sample(ENT_DTYPE_U8, F32(0, 1, 3, 255), DIMS(4));
    sample_expect(sample_run(ENT_OP_Shrink, (ent_attrs){attrs, 2}, &bytes, 1), DIMS(4), F32(0, 0, 2, 254));
    ent_attr alpha = sample_float("alpha", 2);
    ent_tensor z = sample(ENT_DTYPE_F32, F32(-1, 0, 1), DIMS(3));
    sample_expect(sample_run(ENT_OP_Swish, (ent_attrs){&alpha, 1}, &z, 1), DIMS(3),
                  F32(-1 / (1 + exp(2)), 0, 1 / (1 + exp(-2))));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops norm");
    TCase *all = tcase_create("all");
    tcase_add_test(all, rms_takes_the_type_of_its_scale);
    tcase_add_test(all, batch_norm_trains_on_its_batch);
    tcase_add_test(all, group_norm_has_a_scale_per_channel);
    tcase_add_test(all, mean_variance_over_any_axes);
    tcase_add_test(all, lp_leaves_zeros);
    tcase_add_test(all, lrn_sees_its_neighbours);
    tcase_add_test(all, hardmax_takes_the_first);
    tcase_add_test(all, losses_are_weighted_and_may_ignore);
    tcase_add_test(all, a_target_outside_the_classes_is_refused);
    tcase_add_test(all, shrink_and_swish);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
