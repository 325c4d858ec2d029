/* Names, origins, symbols, captures, functions and limits: what a model says becomes what the module says. */
#include "import_build.h"

static ent_arena *arena;
static ent_module *module;
static ent_import_files *files;

static void setup(void) {
    arena = ent_arena_create(0);
    module = NULL;
    files = NULL;
}

static void teardown(void) {
    ent_import_files_close(files);
    ent_arena_destroy(arena);
}

static void import_ok(const bytes *model) {
    ent_status status = import_bytes(arena, model, &module, &files);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    status = ent_module_verify(module, arena);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    status = ent_module_infer(module, arena);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
}

static const int64_t four[] = {4};

static bytes begin_graph(void) {
    bytes graph = {0};
    put_value(&graph, 11, "x", 1, 1, four);
    put_value(&graph, 12, "y", 1, 1, four);
    return graph;
}

static const ent_node *node_at(uint32_t graph, uint32_t index) {
    uint32_t at = 0, node = ENT_ID_NONE;
    for (uint32_t i = 0; i <= index; i++) ck_assert(ent_graph_next(module, graph, &at, &node));
    return ent_module_node(module, node);
}

static uint32_t live_nodes(uint32_t graph) {
    uint32_t at = 0, node, count = 0;
    while (ent_graph_next(module, graph, &at, &node)) count++;
    return count;
}

START_TEST(unsorted_nodes_are_sorted) {
    bytes graph = begin_graph(), late = make_node("Relu", "a", "y"), early = make_node("Neg", "x", "a");
    put_bytes(&graph, 1, &late);
    put_bytes(&graph, 1, &early);
    bytes model = make_model(&graph, 17);
    import_ok(&model);
    ck_assert_uint_eq(node_at(0, 0)->op, ENT_OP_Neg);
    ck_assert_uint_eq(node_at(0, 0)->origins[0], 1); /* the file's order */
    ck_assert_uint_eq(node_at(0, 1)->op, ENT_OP_Relu);
    ck_assert_str_eq(module->model_nodes.items[0], "Relu#0");
}
END_TEST

static void put_symbolic_input(bytes *graph, const char *first, bool second_has_value) {
    bytes shape = {0}, tensor = {0}, type = {0}, value = {0}, named = {0}, unnamed = {0};
    put_text(&named, 2, first);
    if (second_has_value) put_number(&unnamed, 1, -1);
    put_bytes(&shape, 1, &named);
    put_bytes(&shape, 1, &unnamed);
    put_number(&tensor, 1, 1);
    put_bytes(&tensor, 2, &shape);
    put_bytes(&type, 1, &tensor);
    put_text(&value, 1, "x");
    put_bytes(&value, 2, &type);
    put_bytes(graph, 11, &value);
}

START_TEST(dims_become_symbols) {
    bytes graph = {0}, node = make_node("Relu", "x", "y");
    put_symbolic_input(&graph, "batch", _i == 1);
    put_value(&graph, 12, "y", 1, 0, NULL);
    put_bytes(&graph, 1, &node);
    bytes model = make_model(&graph, 17);
    import_ok(&model);
    ck_assert_uint_eq(module->symbols.count, 2);
    ck_assert_str_eq(module->symbols.items[0].name, "batch");
    ck_assert_str_eq(module->symbols.items[1].name, "x.1");
    ck_assert_uint_eq(ent_module_value(module, ent_module_graph(module, 0)->outputs.items[0])->rank, 2);
}
END_TEST

static bytes make_branch(const bytes *node, const char *output) {
    bytes graph = {0};
    put_bytes(&graph, 1, node);
    put_text(&graph, 2, "branch");
    put_value(&graph, 12, output, 1, 1, four);
    return graph;
}

static void add_graph(bytes *node, const char *name, const bytes *graph) {
    bytes attribute;
    put_bytes(attribute_begin(&attribute, name, 5), 6, graph);
    put_bytes(node, 5, &attribute);
}

/* y = c ? Neg(late) : Relu(late), where the branches' results have the same names and late comes after the
 * If. */
static bytes make_if_model(const char *inner_then) {
    bytes graph = begin_graph(), condition = make_tensor("c", 9, 0, NULL, "\1", 1);
    bytes negate = make_node("Neg", inner_then, "o"), relu = make_node("Relu", "late", "o"),
          late = make_node("Exp", "x", "late");
    bytes then_branch = make_branch(&negate, "o"), else_branch = make_branch(&relu, "o"),
          branch = make_node("If", "c", "y");
    add_graph(&branch, "then_branch", &then_branch);
    add_graph(&branch, "else_branch", &else_branch);
    put_bytes(&graph, 1, &branch);
    put_bytes(&graph, 1, &late);
    put_bytes(&graph, 5, &condition);
    return make_model(&graph, 17);
}

START_TEST(branches_capture_outer_values) {
    bytes model = make_if_model("late");
    import_ok(&model);
    ck_assert_uint_eq(module->graphs.count, 3);
    ck_assert_uint_eq(node_at(0, 0)->op, ENT_OP_Exp);
    ck_assert_uint_eq(node_at(0, 1)->op, ENT_OP_If);
    uint32_t captured = node_at(0, 0)->outputs[0];
    const ent_attr *attr = ent_attrs_find(node_at(0, 1)->attrs, "then_branch");
    ck_assert_ptr_nonnull(attr);
    uint32_t then_graph = (uint32_t)attr->i;
    ck_assert_uint_eq(node_at(then_graph, 0)->inputs[0], captured);
    ck_assert_uint_eq(module->model_nodes.count, 4);
    bool seen[4] = {false};
    for (uint32_t i = 0; i < module->nodes.count; i++) {
        ck_assert_uint_eq(module->nodes.items[i].origin_count, 1);
        ck_assert(!seen[module->nodes.items[i].origins[0]]);
        seen[module->nodes.items[i].origins[0]] = true;
    }
}
END_TEST

/* The inner definition of a name hides the outer one inside its graph only. */
START_TEST(inner_names_shadow) {
    bytes graph = begin_graph(), condition = make_tensor("c", 9, 0, NULL, "\1", 1), inner = {0};
    bytes shadow = make_node("Neg", "x", "a"), use = make_node("Relu", "a", "o"),
          outer = make_node("Exp", "x", "a");
    bytes plain = make_node("Identity", "a", "p"), branch = make_node("If", "c", "y");
    put_bytes(&inner, 1, &shadow);
    put_bytes(&inner, 1, &use);
    put_value(&inner, 12, "o", 1, 1, four);
    bytes other = make_branch(&plain, "p");
    add_graph(&branch, "then_branch", &inner);
    add_graph(&branch, "else_branch", &other);
    put_bytes(&graph, 1, &outer);
    put_bytes(&graph, 1, &branch);
    put_bytes(&graph, 5, &condition);
    bytes model = make_model(&graph, 17);
    import_ok(&model);
    const ent_attr *then_branch = ent_attrs_find(node_at(0, 1)->attrs, "then_branch");
    const ent_attr *else_branch = ent_attrs_find(node_at(0, 1)->attrs, "else_branch");
    ck_assert_uint_eq(node_at((uint32_t)then_branch->i, 1)->inputs[0],
                      node_at((uint32_t)then_branch->i, 0)->outputs[0]);
    ck_assert_uint_eq(node_at((uint32_t)else_branch->i, 0)->inputs[0], node_at(0, 0)->outputs[0]);
}
END_TEST

/* A function with an attribute that its body refers to: LeakyRelu(alpha = @slope). */
static bytes make_function_model(bool give_slope) {
    bytes graph = begin_graph(), call = make_node("Leaky", "x", "y"), body = make_node("LeakyRelu", "a", "b");
    bytes function = {0}, opset = {0}, attribute;
    attribute_begin(&attribute, "alpha", 1);
    put_text(&attribute, 21, "slope");
    put_bytes(&body, 5, &attribute);
    put_text(&function, 1, "Leaky");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    put_text(&function, 6, "slope");
    put_bytes(&function, 7, &body);
    put_number(&opset, 2, 17);
    put_bytes(&function, 9, &opset);
    put_text(&function, 10, "my");
    put_text(&call, 7, "my");
    if (give_slope) add_float(&call, "slope", 0.25f);
    put_bytes(&graph, 1, &call);
    bytes model = make_model(&graph, 17);
    put_bytes(&model, 25, &function);
    return model;
}

START_TEST(functions_are_inlined) {
    bytes model = make_function_model(_i == 0);
    import_ok(&model);
    ck_assert_uint_eq(live_nodes(0), 2); /* the body and a copy to the call's output */
    ck_assert_uint_eq(node_at(0, 0)->op, ENT_OP_LeakyRelu);
    ck_assert_uint_eq(node_at(0, 0)->origins[0], 0);
    ck_assert_uint_eq(module->model_nodes.count, 1);
    const ent_attr *alpha = ent_attrs_find(node_at(0, 0)->attrs, "alpha");
    if (_i == 0)
        ck_assert_double_eq(alpha->f, 0.25);
    else
        ck_assert_ptr_null(alpha);
}
END_TEST

START_TEST(element_types_are_ours) {
    static const struct {
        int64_t onnx;
        ent_dtype dtype;
    } cases[] = {{10, ENT_DTYPE_F16}, {16, ENT_DTYPE_BF16}, {7, ENT_DTYPE_I64}, {17, ENT_DTYPE_F8E4M3FN}};
    bytes graph = {0}, node = make_node("Cast", "x", "y");
    put_value(&graph, 11, "x", 1, 1, four);
    put_value(&graph, 12, "y", (int)cases[_i].onnx, 1, four);
    add_int(&node, "to", cases[_i].onnx);
    put_bytes(&graph, 1, &node);
    bytes model = make_model(&graph, 19);
    import_ok(&model);
    ck_assert_uint_eq(ent_module_value(module, node_at(0, 0)->outputs[0])->dtype, cases[_i].dtype);
}
END_TEST

START_TEST(unread_outputs_are_absent) {
    bytes graph = {0}, node = make_node("MaxPool", "x", "y unread");
    put_value(&graph, 11, "x", 1, 4, (const int64_t[]){1, 1, 4, 4});
    put_value(&graph, 12, "y", 1, 0, NULL);
    add_ints(&node, "kernel_shape", 2, (const int64_t[]){2, 2});
    put_bytes(&graph, 1, &node);
    bytes model = make_model(&graph, 17);
    import_ok(&model);
    ck_assert_uint_eq(node_at(0, 0)->outputs[1], ENT_ID_NONE);
}
END_TEST

static ent_status import_limited(const bytes *model, const ent_import_options *options) {
    char path[64];
    write_temporary(model, path);
    ent_status status = ent_import_onnx(arena, path, options, &module, &files);
    unlink(path);
    return status;
}

START_TEST(limits_are_kept) {
    bytes model = make_if_model("late");
    const ent_import_options tight[] = {{.max_file_bytes = 10}, {.max_nodes = 3}, {.max_nesting = 1}};
    static const char *const rules[] = {"limit.file-bytes", "limit.nodes", NULL};
    ent_status status = import_limited(&model, &tight[_i]);
    if (!rules[_i]) {
        ck_assert_ptr_null(status);
        return;
    }
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, ENT_ERROR_LIMIT);
    ck_assert_str_eq(status->rule, rules[_i]);
}
END_TEST

START_TEST(errors_name_file_and_node) {
    bytes graph = begin_graph(), node = make_node("NoSuchThing", "x", "y");
    put_text(&node, 3, "my node");
    put_bytes(&graph, 1, &node);
    bytes model = make_model(&graph, 17);
    ent_status status = import_bytes(arena, &model, &module, &files);
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(status->code, ENT_ERROR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(status->place, "/tmp/entente_import_"));
    ck_assert_ptr_nonnull(strstr(status->place, ": node 'my node' (NoSuchThing)"));
    ck_assert_ptr_nonnull(strstr(status->text, "NoSuchThing"));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("import_model");
    TCase *tests = tcase_create("model");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, unsorted_nodes_are_sorted);
    tcase_add_loop_test(tests, dims_become_symbols, 0, 2);
    tcase_add_test(tests, branches_capture_outer_values);
    tcase_add_test(tests, inner_names_shadow);
    tcase_add_loop_test(tests, functions_are_inlined, 0, 2);
    tcase_add_loop_test(tests, element_types_are_ours, 0, 4);
    tcase_add_test(tests, unread_outputs_are_absent);
    tcase_add_loop_test(tests, limits_are_kept, 0, 3);
    tcase_add_test(tests, errors_name_file_and_node);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
