/* Every old definition becomes the newest one: which nodes, which attributes, which constant inputs. */
#include "import_fixture.h"

static void setup(void) {
    begin_graph((const int64_t[]){1, 2, 3, 4});
}

static const ent_node *last_node(void) {
    uint32_t at = 0, node, last = ENT_ID_NONE;
    while (ent_graph_next(f.module, 0, &at, &node)) last = node;
    ck_assert_uint_ne(last, ENT_ID_NONE);
    return ent_module_node(f.module, last);
}

static void import_ok(const bytes *node, int64_t opset, const char *expected) {
    ent_status status = import_node(node, opset);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f.arena, status) : "");
    status = ent_module_verify(f.module, f.arena);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f.arena, status) : "");
    ck_assert_str_eq(operators(), expected);
    ck_assert_str_eq(ent_module_value(f.module, last_node()->outputs[0])->name, "y");
    ck_assert_uint_eq(last_node()->origin_count, 1);
    ck_assert_uint_eq(last_node()->origins[0], 0);
}

static void expect_rule(const bytes *node, int64_t opset, ent_error_code code, const char *rule) {
    ent_status status = import_node(node, opset);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, rule);
    ck_assert_int_eq(status->code, code);
}

static void expect_ints(uint32_t input, uint32_t count, const int64_t *expected) {
    int64_t values[8];
    uint32_t have = 0;
    ck_assert_uint_gt(last_node()->input_count, input);
    ck_assert(ent_value_i64s(f.module, last_node()->inputs[input], values, 8, &have));
    ck_assert_uint_eq(have, count);
    for (uint32_t i = 0; i < count; i++) ck_assert_int_eq(values[i], expected[i]);
}

static void expect_scalar(uint32_t input, double expected, uint32_t dtype) {
    double value = 0;
    uint32_t id = last_node()->inputs[input];
    ck_assert(ent_value_scalar(f.module, id, &value));
    ck_assert_double_eq(value, expected);
    ck_assert_uint_eq(ent_module_value(f.module, id)->dtype, dtype);
}

START_TEST(reduce_axes) {
    static const char *const ops[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                      "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                      "ReduceLogSum", "ReduceLogSumExp"};
    bytes node = make_node(ops[_i], "x", "y");
    add_ints(&node, "axes", 2, (const int64_t[]){1, -1});
    add_int(&node, "keepdims", 0);
    import_ok(&node, 11, ops[_i]);
    expect_ints(1, 2, (const int64_t[]){1, -1});
    ck_assert_ptr_null(ent_attrs_find(last_node()->attrs, "axes"));
    ck_assert_int_eq(ent_attrs_int(last_node()->attrs, "keepdims", 1), 0);
}
END_TEST

START_TEST(reduce_without_axes) {
    bytes node = make_node("ReduceMean", "x", "y");
    import_ok(&node, 17, "ReduceMean");
    ck_assert_uint_eq(last_node()->input_count, 1);
}
END_TEST

START_TEST(reduce_newest_has_no_axes_attribute) {
    bytes node = make_node("ReduceMean", "x", "y");
    add_ints(&node, "axes", 1, (const int64_t[]){1});
    expect_rule(&node, 18, ENT_ERROR_MODEL, "attribute.unknown");
}
END_TEST

START_TEST(squeeze_axes) {
    bytes node = make_node("Squeeze", "x", "y");
    add_ints(&node, "axes", 1, (const int64_t[]){0});
    import_ok(&node, 11, "Squeeze");
    expect_ints(1, 1, (const int64_t[]){0});
}
END_TEST

START_TEST(unsqueeze_axes) {
    bytes node = make_node("Unsqueeze", "x", "y");
    add_ints(&node, "axes", 2, (const int64_t[]){0, 3});
    import_ok(&node, 9, "Unsqueeze");
    expect_ints(1, 2, (const int64_t[]){0, 3});
}
END_TEST

START_TEST(slice_attributes) {
    bytes node = make_node("Slice", "x", "y");
    add_ints(&node, "starts", 2, (const int64_t[]){0, 1});
    add_ints(&node, "ends", 2, (const int64_t[]){INT64_MAX, -1});
    add_ints(&node, "axes", 2, (const int64_t[]){2, 3});
    import_ok(&node, 9, "Slice");
    expect_ints(1, 2, (const int64_t[]){0, 1});
    expect_ints(2, 2, (const int64_t[]){INT64_MAX, -1});
    expect_ints(3, 2, (const int64_t[]){2, 3});
}
END_TEST

START_TEST(slice_lengths_differ) {
    bytes node = make_node("Slice", "x", "y");
    add_ints(&node, "starts", 2, (const int64_t[]){0, 1});
    add_ints(&node, "ends", 1, (const int64_t[]){1});
    expect_rule(&node, 9, ENT_ERROR_MODEL, "attribute.value");
}
END_TEST

START_TEST(split_attribute) {
    bytes node = make_node("Split", "x", "y z");
    add_int(&node, "axis", 3);
    add_ints(&node, "split", 2, (const int64_t[]){1, 3});
    import_ok(&node, 11, "Split");
    expect_ints(1, 2, (const int64_t[]){1, 3});
    ck_assert_ptr_null(ent_attrs_find(last_node()->attrs, "num_outputs"));
}
END_TEST

START_TEST(split_equal_parts) {
    bytes node = make_node("Split", "x", "y z");
    add_int(&node, "axis", 3);
    import_ok(&node, 13, "Split");
    ck_assert_int_eq(ent_attrs_int(last_node()->attrs, "num_outputs", 0), 2);
}
END_TEST

START_TEST(pad_attributes) {
    bytes node = make_node("Pad", "x", "y");
    add_ints(&node, "pads", 8, (const int64_t[]){0, 0, 1, 1, 0, 0, 2, 2});
    add_float(&node, "value", 1.5f);
    import_ok(&node, 10, "Pad");
    expect_ints(1, 8, (const int64_t[]){0, 0, 1, 1, 0, 0, 2, 2});
    expect_scalar(2, 1.5, ENT_DTYPE_F32);
}
END_TEST

START_TEST(clip_attributes) {
    bytes node = make_node("Clip", "x", "y");
    add_float(&node, "min", 0);
    add_float(&node, "max", 6);
    import_ok(&node, 9, "Clip");
    expect_scalar(1, 0, ENT_DTYPE_F32);
    expect_scalar(2, 6, ENT_DTYPE_F32);
}
END_TEST

START_TEST(clip_one_side) {
    bytes node = make_node("Clip", "x", "y");
    add_float(&node, "max", 6);
    import_ok(&node, 9, "Clip");
    ck_assert_uint_eq(last_node()->inputs[1], ENT_ID_NONE);
    expect_scalar(2, 6, ENT_DTYPE_F32);
}
END_TEST

/* The dtype of the clipped value is known only by inference here. */
START_TEST(clip_of_inferred_half) {
    bytes cast = make_node("Cast", "x", "h"), clip = make_node("Clip", "h", "y");
    add_int(&cast, "to", 10);
    add_float(&clip, "min", 0.5f);
    memset(&f.graph, 0, sizeof f.graph);
    put_value(&f.graph, 11, "x", 1, 1, (const int64_t[]){4});
    put_value(&f.graph, 12, "y", 10, 1, (const int64_t[]){4});
    put_bytes(&f.graph, 1, &cast);
    ent_status status = import_node(&clip, 9);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f.arena, status) : "");
    ck_assert_str_eq(operators(), "Cast Clip");
    expect_scalar(1, 0.5, ENT_DTYPE_F16);
}
END_TEST

START_TEST(softmax_default_flattens) {
    bytes node = make_node("Softmax", "x", "y");
    import_ok(&node, 11, "Flatten Shape Softmax Reshape");
}
END_TEST

START_TEST(log_softmax_flattens) {
    bytes node = make_node("LogSoftmax", "x", "y");
    add_int(&node, "axis", -2);
    import_ok(&node, 12, "Flatten Shape LogSoftmax Reshape");
    uint32_t at = 0, first;
    ck_assert(ent_graph_next(f.module, 0, &at, &first));
    ck_assert_int_eq(ent_attrs_int(ent_module_node(f.module, first)->attrs, "axis", 99), 2);
}
END_TEST

START_TEST(softmax_last_axis_stays) {
    bytes node = make_node("Softmax", "x", "y");
    add_int(&node, "axis", _i == 0 ? 3 : -1);
    import_ok(&node, 12, "Softmax");
    int64_t axis = ent_attrs_int(last_node()->attrs, "axis", -1);
    ck_assert(axis == 3 || axis == -1);
}
END_TEST

/* Over 2 x 1 x 1 the one long axis does the work. */
START_TEST(softmax_over_ones_stays) {
    bytes node = make_node("Softmax", "x", "y");
    memset(&f.graph, 0, sizeof f.graph);
    put_value(&f.graph, 11, "x", 1, 4, (const int64_t[]){5, 2, 1, 1});
    put_value(&f.graph, 12, "y", 1, 0, NULL);
    import_ok(&node, 11, "Softmax");
    ck_assert_int_eq(ent_attrs_int(last_node()->attrs, "axis", -1), 1);
}
END_TEST

START_TEST(softmax_newest_default) {
    bytes node = make_node("Softmax", "x", "y");
    import_ok(&node, 13, "Softmax");
    ck_assert_int_eq(ent_attrs_int(last_node()->attrs, "axis", -1), -1);
}
END_TEST

static void upsample_with(const float *scales, const char *expected) {
    bytes node = make_node("Upsample", "x", "y");
    add_floats(&node, "scales", 4, scales);
    import_ok(&node, 8, expected);
    ck_assert(ent_attrs_string_is(last_node()->attrs, "coordinate_transformation_mode", "half_pixel",
                                  "asymmetric"));
    ck_assert_uint_eq(last_node()->inputs[1], ENT_ID_NONE);
}

START_TEST(upsample_grows) {
    upsample_with((const float[]){1, 1, 2, 3}, "Resize");
    ck_assert(ent_attrs_string_is(last_node()->attrs, "nearest_mode", "", "floor"));
}
END_TEST

START_TEST(upsample_grows_and_shrinks) {
    upsample_with((const float[]){1, 1, 2, 0.5f}, "Max Min Resize Resize");
    ck_assert(ent_attrs_string_is(last_node()->attrs, "nearest_mode", "", "ceil"));
}
END_TEST

START_TEST(resize_10_shrinks) {
    const float scales[] = {1, 1, 0.5f, 0.5f};
    bytes node = make_node("Resize", "x s", "y"),
          tensor = make_tensor("s", 1, 1, (const int64_t[]){4}, scales, 16);
    put_bytes(&f.graph, 5, &tensor);
    import_ok(&node, 10, "Resize");
    ck_assert(ent_attrs_string_is(last_node()->attrs, "nearest_mode", "", "ceil"));
    ck_assert_uint_eq(last_node()->input_count, 3);
}
END_TEST

START_TEST(resize_11_empty_tensors) {
    const float scales[] = {1, 1, 2, 2};
    bytes node = make_node("Resize", "x r s", "y"),
          tensor = make_tensor("s", 1, 1, (const int64_t[]){4}, scales, 16);
    bytes empty = make_tensor("r", 1, 1, (const int64_t[]){0}, "", 0);
    put_bytes(&f.graph, 5, &tensor);
    put_bytes(&f.graph, 5, &empty);
    import_ok(&node, 11, "Resize");
    ck_assert_uint_eq(last_node()->input_count, 3);
    ck_assert_uint_eq(last_node()->inputs[1], ENT_ID_NONE);
    ck_assert_ptr_null(ent_attrs_find(last_node()->attrs, "coordinate_transformation_mode"));
}
END_TEST

START_TEST(resize_11_half_pixel_for_nn) {
    const float scales[] = {1, 1, 2, 2};
    bytes node = make_node("Resize", "x - s", "y"),
          tensor = make_tensor("s", 1, 1, (const int64_t[]){4}, scales, 16);
    put_bytes(&f.graph, 5, &tensor);
    add_string(&node, "coordinate_transformation_mode", "tf_half_pixel_for_nn");
    add_string(&node, "nearest_mode", "floor");
    import_ok(&node, 11, "Resize");
    ck_assert(ent_attrs_string_is(last_node()->attrs, "coordinate_transformation_mode", "", "half_pixel"));
    ck_assert(ent_attrs_string_is(last_node()->attrs, "nearest_mode", "", "round_prefer_ceil"));
}
END_TEST

START_TEST(scatter_has_another_name) {
    put_value(&f.graph, 11, "i", 7, 4, (const int64_t[]){1, 1, 1, 1});
    put_value(&f.graph, 11, "u", 1, 4, (const int64_t[]){1, 1, 1, 1});
    bytes node = make_node("Scatter", "x i u", "y");
    if (_i)
        expect_rule(&node, 11, ENT_ERROR_MODEL, "operator.version");
    else
        import_ok(&node, 10, "ScatterElements");
}
END_TEST

START_TEST(top_k_attribute) {
    bytes node = make_node("TopK", "x", "y z");
    add_int(&node, "k", 2);
    import_ok(&node, 9, "TopK");
    expect_ints(1, 1, (const int64_t[]){2});
}
END_TEST

START_TEST(grid_sample_modes) {
    static const char *const names[][2] = {
        {"bilinear", "linear"}, {"bicubic", "cubic"}, {"nearest", "nearest"}};
    put_value(&f.graph, 11, "g", 1, 4, (const int64_t[]){1, 5, 6, 2});
    bytes node = make_node("GridSample", "x g", "y");
    add_string(&node, "mode", names[_i][0]);
    import_ok(&node, 16, "GridSample");
    ck_assert(ent_attrs_string_is(last_node()->attrs, "mode", "", names[_i][1]));
}
END_TEST

START_TEST(roi_align_without_half_pixel) {
    put_value(&f.graph, 11, "r", 1, 2, (const int64_t[]){5, 4});
    put_value(&f.graph, 11, "b", 7, 1, (const int64_t[]){5});
    bytes node = make_node("RoiAlign", "x r b", "y");
    import_ok(&node, 10, "RoiAlign");
    ck_assert(
        ent_attrs_string_is(last_node()->attrs, "coordinate_transformation_mode", "", "output_half_pixel"));
}
END_TEST

/* An operator of another domain; _i 1: one that nobody knows. */
START_TEST(other_domain) {
    put_value(&f.graph, 11, "s", 1, 0, NULL);
    bytes node = make_node(_i ? "NoSuch" : "QuantizeLinear", "x s", "y");
    put_text(&node, 7, "com.microsoft");
    if (_i)
        expect_rule(&node, 13, ENT_ERROR_UNSUPPORTED, "operator.domain");
    else
        import_ok(&node, 13, "QuantizeLinear");
}
END_TEST

START_TEST(eye_like_type) {
    put_value(&f.graph, 11, "m", 1, 2, (const int64_t[]){3, 3});
    bytes node = make_node("EyeLike", "m", "y");
    add_int(&node, "dtype", 11); /* ONNX: double */
    import_ok(&node, 9, "EyeLike");
    ck_assert_int_eq(ent_attrs_int(last_node()->attrs, "dtype", 0), ENT_DTYPE_F64);
}
END_TEST

START_TEST(dropout_is_identity) {
    bytes node = make_node("Dropout", "x", "y m");
    add_float(&node, "ratio", 0.3f);
    import_ok(&node, _i == 0 ? 7 : 11, "Identity");
    ck_assert_uint_eq(last_node()->output_count, 1);
    ck_assert_uint_eq(last_node()->attrs.count, 0);
}
END_TEST

static void put_batch_norm_statistics(void) {
    static const char *const names[] = {"s", "b", "m", "v"};
    const float ones[] = {1, 1};
    for (size_t i = 0; i < 4; i++) {
        bytes tensor = make_tensor(names[i], 1, 1, (const int64_t[]){2}, ones, 8);
        put_bytes(&f.graph, 5, &tensor);
    }
}

START_TEST(batch_norm_training_outputs_unread) {
    bytes node = make_node("BatchNormalization", "x s b m v", "y o1 o2 o3 o4");
    put_batch_norm_statistics();
    add_int(&node, "spatial", 1);
    import_ok(&node, _i == 0 ? 7 : 9, "BatchNormalization");
    ck_assert_uint_eq(last_node()->output_count, 1);
    ck_assert_ptr_null(ent_attrs_find(last_node()->attrs, "spatial"));
}
END_TEST

START_TEST(batch_norm_training) {
    bytes node = make_node("BatchNormalization", "x s b m v", "y o1");
    put_batch_norm_statistics();
    put_value(&f.graph, 12, "o1", 1, 0, NULL);
    expect_rule(&node, 9, ENT_ERROR_UNSUPPORTED, "operator.training");
}
END_TEST

START_TEST(batch_norm_not_spatial) {
    bytes node = make_node("BatchNormalization", "x s b m v", "y");
    put_batch_norm_statistics();
    add_int(&node, "spatial", 0);
    expect_rule(&node, 7, ENT_ERROR_UNSUPPORTED, "attribute.value");
}
END_TEST

START_TEST(constant_forms) {
    bytes node = make_node("Constant", "", "k"), add = make_node("Reshape", "x k", "y");
    add_ints(&node, "value_ints", 2, (const int64_t[]){2, 12});
    put_bytes(&f.graph, 1, &node);
    ent_status status = import_node(&add, 12);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f.arena, status) : "");
    ck_assert_str_eq(operators(), "Reshape");
    ck_assert_uint_eq(last_node()->origins[0], 1); /* the constant is model node 0 */
    expect_ints(1, 2, (const int64_t[]){2, 12});
}
END_TEST

int main(void) {
    Suite *suite = suite_create("import_upgrade");
    TCase *tests = tcase_create("upgrade");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, reduce_axes, 0, 10);
    tcase_add_test(tests, reduce_without_axes);
    tcase_add_test(tests, reduce_newest_has_no_axes_attribute);
    tcase_add_test(tests, squeeze_axes);
    tcase_add_test(tests, unsqueeze_axes);
    tcase_add_test(tests, slice_attributes);
    tcase_add_test(tests, slice_lengths_differ);
    tcase_add_test(tests, split_attribute);
    tcase_add_test(tests, split_equal_parts);
    tcase_add_test(tests, pad_attributes);
    tcase_add_test(tests, clip_attributes);
    tcase_add_test(tests, clip_one_side);
    tcase_add_test(tests, clip_of_inferred_half);
    tcase_add_test(tests, softmax_default_flattens);
    tcase_add_test(tests, log_softmax_flattens);
    tcase_add_loop_test(tests, softmax_last_axis_stays, 0, 2);
    tcase_add_test(tests, softmax_over_ones_stays);
    tcase_add_test(tests, softmax_newest_default);
    tcase_add_test(tests, upsample_grows);
    tcase_add_test(tests, upsample_grows_and_shrinks);
    tcase_add_test(tests, resize_10_shrinks);
    tcase_add_test(tests, resize_11_empty_tensors);
    tcase_add_test(tests, resize_11_half_pixel_for_nn);
    tcase_add_loop_test(tests, scatter_has_another_name, 0, 2);
    tcase_add_test(tests, top_k_attribute);
    tcase_add_loop_test(tests, grid_sample_modes, 0, 3);
    tcase_add_test(tests, roi_align_without_half_pixel);
    tcase_add_loop_test(tests, other_domain, 0, 2);
    tcase_add_test(tests, eye_like_type);
    tcase_add_loop_test(tests, dropout_is_identity, 0, 2);
    tcase_add_loop_test(tests, batch_norm_training_outputs_unread, 0, 2);
    tcase_add_test(tests, batch_norm_training);
    tcase_add_test(tests, batch_norm_not_spatial);
    tcase_add_test(tests, constant_forms);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
