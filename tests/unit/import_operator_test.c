/* Operators of other domains, lists of strings, and old definitions of signal and group operators. */
#include "import_fixture.h"

static void setup(void) {
    begin_graph((const int64_t[]){1, 6, 3, 2});
}

static void put_constant(const char *name, size_t rank, const int64_t *dims) {
    float values[64] = {0};
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    bytes tensor = make_tensor(name, 1, rank, dims, values, count * 4);
    put_bytes(&f.graph, 5, &tensor);
}

static ent_status import_with(bytes *node, const char *domain, int64_t opset) {
    put_text(node, 7, domain);
    return import_node(node, opset);
}

static void expect_operators(bytes *node, const char *domain, int64_t opset, const char *expected) {
    ent_status status = import_with(node, domain, opset);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f.arena, status) : "");
    ck_assert_str_eq(operators(), expected);
}

static void expect_rule(bytes *node, const char *domain, int64_t opset, const char *rule) {
    ent_status status = import_with(node, domain, opset);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, rule);
}

static const ent_node *node_of(uint32_t op) {
    uint32_t at = 0, id;
    while (ent_graph_next(f.module, 0, &at, &id))
        if (ent_module_node(f.module, id)->op == op) return ent_module_node(f.module, id);
    ck_abort_msg("no %s", ent_op_info_get(op)->name);
}

START_TEST(known_in_another_domain) {
    bytes node = make_node("QuickGelu", "x", "y");
    expect_operators(&node, "com.microsoft", 17, "QuickGelu");
}
END_TEST

START_TEST(same_name_and_meaning_before_its_opset) {
    bytes node = make_node("Gelu", "x", "y");
    expect_operators(&node, "com.microsoft", 17, "Gelu");
}
END_TEST

START_TEST(runtime_operator_in_the_main_domain) {
    bytes node = make_node("SimplifiedLayerNormalization", "x s", "y");
    put_constant("s", 1, (const int64_t[]){2});
    expect_operators(&node, "", 17, "SimplifiedLayerNormalization");
}
END_TEST

START_TEST(other_domains_do_not_leak) {
    bytes node = make_node("QuickGelu", "x", "y");
    expect_rule(&node, "", 17, "operator.unknown");
}
END_TEST

START_TEST(main_operators_are_not_in_other_domains) {
    bytes node = make_node("Relu", "x", "y");
    expect_rule(&node, "com.microsoft", 17, "operator.domain");
}
END_TEST

START_TEST(training_is_named) {
    bytes node = make_node("Gradient", "x", "y");
    expect_rule(&node, "ai.onnx.preview.training", 17, "operator.training");
}
END_TEST

START_TEST(steps_of_optimisers_are_arithmetic) {
    put_constant("r", 0, NULL);
    put_constant("t", 0, NULL);
    bytes node = make_node("Momentum", "r t x x x", "y");
    add_float(&node, "alpha", 0.5f);
    add_float(&node, "beta", 1);
    add_float(&node, "norm_coefficient", 0);
    add_string(&node, "mode", "nesterov");
    ck_assert_ptr_null(import_with(&node, "ai.onnx.preview.training", 1));
    ck_assert_uint_gt(f.module->nodes.count, 5);
}
END_TEST

START_TEST(tensors_of_a_step_come_in_groups) {
    put_constant("r", 0, NULL);
    bytes node = make_node("Adam", "r r x x x", "y");
    expect_rule(&node, "ai.onnx.preview.training", 1, "operator.arity");
}
END_TEST

START_TEST(a_step_writes_no_more_than_it_has) {
    put_constant("r", 0, NULL);
    bytes node = make_node("Adagrad", "r r x x x", "y z w");
    expect_rule(&node, "ai.onnx.preview.training", 1, "operator.arity");
}
END_TEST

/* AttributeProto: strings are field 9, type 8. */
static void add_strings(bytes *node, const char *name, size_t count, const char *const *values) {
    bytes attribute;
    attribute_begin(&attribute, name, 8);
    for (size_t i = 0; i < count; i++) put_text(&attribute, 9, values[i]);
    put_bytes(node, 5, &attribute);
}

static bytes make_rnn(size_t count, const char *const *activations) {
    bytes node = make_node("RNN", "s w r", "y");
    put_value(&f.graph, 11, "s", 1, 3, (const int64_t[]){5, 1, 3});
    put_constant("w", 3, (const int64_t[]){2, 4, 3});
    put_constant("r", 3, (const int64_t[]){2, 4, 4});
    add_string(&node, "direction", "bidirectional");
    add_strings(&node, "activations", count, activations);
    return node;
}

START_TEST(strings_are_joined) {
    static const char *const names[] = {"Tanh", "Relu"};
    bytes node = make_rnn(2, names);
    expect_operators(&node, "", 14, "RNN");
    ck_assert(ent_attrs_string_is(node_of(ENT_OP_RNN)->attrs, "activations", "", "Tanh,Relu"));
}
END_TEST

START_TEST(a_comma_in_a_string_is_refused) {
    static const char *const names[] = {"Tanh,Relu"};
    bytes node = make_rnn(1, names);
    expect_rule(&node, "", 14, "attribute.value");
}
END_TEST

START_TEST(group_norm_18_repeats_its_groups) {
    bytes node = make_node("GroupNormalization", "x s b", "y");
    put_constant("s", 1, (const int64_t[]){3});
    put_constant("b", 1, (const int64_t[]){3});
    add_int(&node, "num_groups", 3);
    expect_operators(&node, "", 18,
                     "Shape Div Unsqueeze Concat Expand Reshape Shape Div Unsqueeze Concat Expand Reshape "
                     "GroupNormalization");
    ck_assert_ptr_null(ent_module_infer(f.module, f.arena));
    const ent_value *scale = ent_module_value(f.module, node_of(ENT_OP_GroupNormalization)->inputs[1]);
    ck_assert_uint_eq(scale->rank, 1);
    ck_assert_int_eq(scale->dims[0], 6);
}
END_TEST

START_TEST(group_norm_21_stays) {
    bytes node = make_node("GroupNormalization", "x s b", "y");
    put_constant("s", 1, (const int64_t[]){6});
    put_constant("b", 1, (const int64_t[]){6});
    add_int(&node, "num_groups", 3);
    expect_operators(&node, "", 21, "GroupNormalization");
}
END_TEST

START_TEST(dft_17_has_its_axis_as_an_attribute) {
    bytes node = make_node("DFT", "x", "y");
    int64_t axis[1];
    uint32_t count;
    if (_i) add_int(&node, "axis", 2);
    expect_operators(&node, "", 17, "DFT");
    const ent_node *dft = node_of(ENT_OP_DFT);
    ck_assert_uint_eq(dft->input_count, 3);
    ck_assert_uint_eq(dft->inputs[1], ENT_ID_NONE);
    ck_assert(ent_value_i64s(f.module, dft->inputs[2], axis, 1, &count));
    ck_assert_int_eq(axis[0], _i ? 2 : 1);
}
END_TEST

START_TEST(hardmax_12_flattens) {
    bytes node = make_node("Hardmax", "x", "y");
    expect_operators(&node, "", 12, "Flatten Shape Hardmax Reshape");
}
END_TEST

START_TEST(random_nodes_get_seeds) {
    bytes first = make_node("RandomNormalLike", "x", "a"), second = make_node("RandomNormalLike", "x", "b");
    bytes sum = make_node("Add", "a b", "y");
    put_bytes(&f.graph, 1, &first);
    put_bytes(&f.graph, 1, &second);
    expect_operators(&sum, "", 17, "RandomNormalLike RandomNormalLike Add");
    double seed[2];
    for (int i = 0; i < 2; i++)
        seed[i] = ent_attrs_float(
            ent_module_node(f.module, ent_module_value(f.module, node_of(ENT_OP_Add)->inputs[i])->producer)
                ->attrs,
            "seed", -1);
    ck_assert(seed[0] >= 0 && seed[1] >= 0 && seed[0] != seed[1]);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("import_operator");
    TCase *tests = tcase_create("operators");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, known_in_another_domain);
    tcase_add_test(tests, same_name_and_meaning_before_its_opset);
    tcase_add_test(tests, runtime_operator_in_the_main_domain);
    tcase_add_test(tests, other_domains_do_not_leak);
    tcase_add_test(tests, main_operators_are_not_in_other_domains);
    tcase_add_test(tests, training_is_named);
    tcase_add_test(tests, steps_of_optimisers_are_arithmetic);
    tcase_add_test(tests, tensors_of_a_step_come_in_groups);
    tcase_add_test(tests, a_step_writes_no_more_than_it_has);
    tcase_add_test(tests, strings_are_joined);
    tcase_add_test(tests, a_comma_in_a_string_is_refused);
    tcase_add_test(tests, group_norm_18_repeats_its_groups);
    tcase_add_test(tests, group_norm_21_stays);
    tcase_add_loop_test(tests, dft_17_has_its_axis_as_an_attribute, 0, 2);
    tcase_add_test(tests, hardmax_12_flattens);
    tcase_add_test(tests, random_nodes_get_seeds);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
