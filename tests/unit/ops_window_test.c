/* Matrix products, convolutions, pools and Resize: closed forms, and a comparison with the defining sums. */
#include "tests/unit/ops_sample.h"

START_TEST(matmul_forms) {
    ent_tensor vectors[2] = {sample(ENT_DTYPE_F32, F32(1, 2), DIMS(2)),
                             sample(ENT_DTYPE_F32, F32(3, 4), DIMS(2))};
    sample_expect(sample_run(ENT_OP_MatMul, NO_ATTRS, vectors, 2), NO_DIMS, F32(11));
    ent_tensor batched[2] = {sample(ENT_DTYPE_I32, F32(1, 2, 3, 4), DIMS(2, 1, 1, 2)),
                             sample(ENT_DTYPE_I32, F32(1, 2, 3, 4), DIMS(2, 2, 1))};
    sample_expect(sample_run(ENT_OP_MatMul, NO_ATTRS, batched, 2), DIMS(2, 2, 1, 1), F32(5, 11, 11, 25));
    ent_tensor no_depth[2] = {sample(ENT_DTYPE_F32, NULL, DIMS(2, 0)),
                              sample(ENT_DTYPE_F32, NULL, DIMS(0, 1))};
    sample_expect(sample_run(ENT_OP_MatMul, NO_ATTRS, no_depth, 2), DIMS(2, 1), F32(0, 0));
    ent_attr attrs[3] = {sample_int("transA", 1), sample_float("alpha", 2), sample_float("beta", 0.5)};
    ent_tensor gemm[3] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(2, 2)),
                          sample(ENT_DTYPE_F32, F32(1, 1), DIMS(2, 1)),
                          sample(ENT_DTYPE_F32, F32(2, 4), DIMS(2, 1))};
    sample_expect(sample_run(ENT_OP_Gemm, (ent_attrs){attrs, 3}, gemm, 3), DIMS(2, 1), F32(9, 14));
}
END_TEST

#define CHANNELS 6
#define OUT 8
#define SIDE 7
static double x_at(const double *x, int c, int i, int j) {
    return i < 0 || j < 0 || i >= SIDE || j >= SIDE ? 0 : x[(c * SIDE + i) * SIDE + j];
}

/* The defining sum, for every group count and layout. */
START_TEST(conv_is_its_definition) {
    const int groups = 1 << _i; /* 1, 2 */
    const int64_t pads[4] = {1, 2, 0, 1}, strides[2] = {2, 1}, dilations[2] = {1, 2};
    const int height = (SIDE + 1 + 0 - 3) / 2 + 1, width = (SIDE + 2 + 1 - 3) / 1 + 1, in = CHANNELS / groups;
    double x[CHANNELS * SIDE * SIDE], w[OUT * CHANNELS * 3 * 2], bias[OUT], y[OUT * SIDE * SIDE];
    for (int i = 0; i < CHANNELS * SIDE * SIDE; i++) x[i] = (i * 37 % 19) - 9;
    for (int i = 0; i < OUT * in * 6; i++) w[i] = (i * 11 % 7) - 3;
    for (int i = 0; i < OUT; i++) bias[i] = i;
    for (int m = 0; m < OUT; m++)
        for (int i = 0; i < height; i++)
            for (int j = 0; j < width; j++) {
                double sum = bias[m];
                for (int c = 0; c < in; c++)
                    for (int k = 0; k < 6; k++)
                        sum += w[(m * in + c) * 6 + k] *
                               x_at(x, m / (OUT / groups) * in + c, i * 2 - 1 + k / 2, j - 2 + k % 2 * 2);
                y[(m * height + i) * width + j] = sum;
            }
    ent_attr attrs[4] = {sample_ints("pads", pads, 4), sample_ints("strides", strides, 2),
                         sample_ints("dilations", dilations, 2), sample_int("group", groups)};
    for (int layout = 0; layout < 2; layout++) {
        ent_tensor plain = sample(ENT_DTYPE_F32, x, DIMS(1, CHANNELS, SIDE, SIDE));
        ent_tensor in_tensors[3] = {
            sample_in(&plain, layout ? ent_layout_channels_last(4) : ent_layout_plain(4)),
            sample(ENT_DTYPE_F32, w, DIMS(OUT, in, 3, 2)), sample(ENT_DTYPE_F32, bias, DIMS(OUT))};
        sample_expect(sample_run(ENT_OP_Conv, (ent_attrs){attrs, 4}, in_tensors, 3),
                      DIMS(1, OUT, height, width), y);
        free(plain.data);
    }
}
END_TEST

START_TEST(conv_same_padding) {
    ent_attr upper[2] = {sample_string("auto_pad", "SAME_UPPER"),
                         sample_ints("strides", (const int64_t[]){1}, 1)};
    ent_tensor in[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(1, 1, 3)),
                        sample(ENT_DTYPE_F32, F32(1, 10), DIMS(1, 1, 2))};
    sample_expect(sample_run(ENT_OP_Conv, (ent_attrs){upper, 2}, in, 2), DIMS(1, 1, 3), F32(21, 32, 3));
    ent_attr lower = sample_string("auto_pad", "SAME_LOWER");
    ent_tensor again[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(1, 1, 3)),
                           sample(ENT_DTYPE_F32, F32(1, 10), DIMS(1, 1, 2))};
    sample_expect(sample_run(ENT_OP_Conv, (ent_attrs){&lower, 1}, again, 2), DIMS(1, 1, 3), F32(10, 21, 32));
}
END_TEST

START_TEST(conv_transpose_shapes) {
    const int64_t two[1] = {2}, five[1] = {5};
    ent_attr attrs[2] = {sample_ints("strides", two, 1), sample_ints("output_shape", five, 1)};
    ent_tensor in[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(1, 1, 3)),
                        sample(ENT_DTYPE_F32, F32(1, 1, 1), DIMS(1, 1, 3))};
    /* Whole: 1 1 3 2 5 3 3; two too many, one goes at each end. */
    sample_expect(sample_run(ENT_OP_ConvTranspose, (ent_attrs){attrs, 2}, in, 2), DIMS(1, 1, 5),
                  F32(1, 3, 2, 5, 3));
    ent_attr same[2] = {sample_ints("strides", two, 1), sample_string("auto_pad", "SAME_UPPER")};
    ent_tensor again[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(1, 1, 3)),
                           sample(ENT_DTYPE_F32, F32(1, 1, 1), DIMS(1, 1, 3))};
    sample_expect(sample_run(ENT_OP_ConvTranspose, (ent_attrs){same, 2}, again, 2), DIMS(1, 1, 6),
                  F32(1, 1, 3, 2, 5, 3));
}
END_TEST

START_TEST(average_pool_divisors) {
    const int64_t three[1] = {3}, two[1] = {2}, pads[2] = {1, 1};
    ent_attr attrs[5] = {sample_ints("kernel_shape", three, 1), sample_ints("strides", two, 1),
                         sample_ints("pads", pads, 2), sample_int("ceil_mode", 1),
                         sample_int("count_include_pad", 0)};
    ent_tensor excluded = sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(1, 1, 4));
    /* Windows start at -1, 1, 3; the last sees one element. */
    sample_expect(sample_run(ENT_OP_AveragePool, (ent_attrs){attrs, 5}, &excluded, 1), DIMS(1, 1, 3),
                  F32(1.5, 3, 4));
    attrs[4].i = 1;
    ent_tensor included = sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(1, 1, 4));
    /* The last window is cut at the padded extent: two taps. */
    sample_expect(sample_run(ENT_OP_AveragePool, (ent_attrs){attrs, 5}, &included, 1), DIMS(1, 1, 3),
                  F32(1, 3, 2));
    const int64_t one[1] = {1};
    ent_attr tail[4] = {sample_ints("kernel_shape", one, 1), sample_ints("strides", two, 1),
                        sample_ints("pads", (const int64_t[]){0, 1}, 2), sample_int("ceil_mode", 1)};
    ent_tensor dropped = sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(1, 1, 4));
    sample_expect(sample_run(ENT_OP_AveragePool, (ent_attrs){tail, 4}, &dropped, 1), DIMS(1, 1, 2),
                  F32(1, 3));
}
END_TEST

START_TEST(max_pool_indices) {
    const int64_t kernel[2] = {2, 2};
    ent_attr attrs[2] = {sample_ints("kernel_shape", kernel, 2), sample_int("storage_order", 1)};
    ent_tensor x = sample(ENT_DTYPE_F32, F32(1, 5, 2, 3, 4, 6), DIMS(1, 1, 2, 3));
    ent_tensor y = sample_empty(ENT_DTYPE_F32, DIMS(1, 1, 1, 2), ent_layout_plain(4));
    ent_tensor at = sample_empty(ENT_DTYPE_I64, DIMS(1, 1, 1, 2), ent_layout_plain(4));
    const ent_tensor *inputs[1] = {&x};
    ent_tensor *outputs[2] = {&y, &at};
    ent_ops_error error;
    ck_assert_int_eq(
        ent_ops_evaluate(ENT_OP_MaxPool, (ent_attrs){attrs, 2}, inputs, 1, outputs, 2, NULL, &error), ENT_OK);
    sample_expect(y, DIMS(1, 1, 1, 2), F32(5, 6));
    sample_expect(at, DIMS(1, 1, 1, 2), F32(2, 5)); /* column-major */
    free(x.data);
}
END_TEST

static void resize(const char *mode, const char *transform, double scale, int64_t out,
                   const double *expected) {
    ent_attr attrs[2] = {sample_string("mode", mode),
                         sample_string("coordinate_transformation_mode", transform)};
    ent_tensor in[3] = {
        sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(4)), {0}, sample(ENT_DTYPE_F32, &scale, DIMS(1))};
    sample_expect(sample_run(ENT_OP_Resize, (ent_attrs){attrs, 2}, in, 3), DIMS(out), expected);
}

START_TEST(resize_modes) {
    resize("nearest", "half_pixel", 2, 8, F32(1, 1, 2, 2, 3, 3, 4, 4));
    resize("nearest", "asymmetric", 1.5, 6, F32(1, 2, 2, 3, 4, 4));
    resize("linear", "half_pixel", 2, 8, F32(1, 1.25, 1.75, 2.25, 2.75, 3.25, 3.75, 4));
    resize("linear", "align_corners", 1.75, 7, F32(1, 1.5, 2, 2.5, 3, 3.5, 4));
    resize("linear", "asymmetric", 0.5, 2, F32(1, 3));
    resize("linear", "pytorch_half_pixel", 0.25, 1, F32(1));
    resize("cubic", "align_corners", 1.75, 7, F32(1, 1.40625, 2, 2.5, 3, 3.59375, 4));
}
END_TEST

/* Numbers of a file that no integer holds: outside the input, or refused. */
START_TEST(resize_far_outside) {
    ent_attr attrs[4] = {sample_string("coordinate_transformation_mode", "tf_crop_and_resize"),
                         sample_float("extrapolation_value", 9), sample_string("mode", "linear"),
                         sample_string("keep_aspect_ratio_policy", "not_smaller")};
    for (int i = 0; i < 2; i++) {
        ent_tensor in[3] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(4)),
                            sample(ENT_DTYPE_F32, i ? F32(NAN, NAN) : F32(0, 3e38), DIMS(2)),
                            sample(ENT_DTYPE_F32, F32(0.75), DIMS(1))};
        sample_expect(sample_run(ENT_OP_Resize, (ent_attrs){attrs, 3}, in, 3), DIMS(3),
                      i ? F32(9, 9, 9) : F32(1, 9, 9));
    }
    ent_ops_error error;
    ent_tensor ratio[4] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4, 5, 6, 7, 8), DIMS(1, 8)),
                           {0},
                           {0},
                           sample(ENT_DTYPE_I64, F32(0x1p40, 1), DIMS(2))};
    ck_assert_int_eq(sample_refusal(ENT_OP_Resize, (ent_attrs){attrs + 3, 1}, ratio, 4, &error),
                     ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "Resize: sizes[0] by the ratio of others is 1.09951e+12");
}
END_TEST

START_TEST(refusals) {
    ent_ops_error error;
    ent_tensor channels[2] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(1, 2, 2)),
                              sample(ENT_DTYPE_F32, F32(1, 2, 3), DIMS(1, 3, 1))};
    ck_assert_int_eq(sample_refusal(ENT_OP_Conv, NO_ATTRS, channels, 2, &error), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "Conv: the weights take 3 channels, the input has 2 in 1 groups");
    ent_tensor small[2] = {sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1)),
                           sample(ENT_DTYPE_F32, F32(1, 2), DIMS(1, 1, 2))};
    ck_assert_int_eq(sample_refusal(ENT_OP_Conv, NO_ATTRS, small, 2, &error), ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops window");
    TCase *all = tcase_create("all");
    tcase_add_test(all, matmul_forms);
    tcase_add_loop_test(all, conv_is_its_definition, 0, 2);
    tcase_add_test(all, conv_same_padding);
    tcase_add_test(all, conv_transpose_shapes);
    tcase_add_test(all, average_pool_divisors);
    tcase_add_test(all, max_pool_indices);
    tcase_add_test(all, resize_modes);
    tcase_add_test(all, resize_far_outside);
    tcase_add_test(all, refusals);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
