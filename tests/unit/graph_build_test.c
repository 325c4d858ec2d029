/* Building and editing modules: uses, order, names, removal, and that none of it is quadratic. */
#include <check.h>
#include <string.h>

#include "core/graph/graph.h"

static ent_arena *arena;
static ent_module *module;
static uint32_t input;

static void setup(void) {
    int64_t dims[2] = {2, 3};
    arena = ent_arena_create(0);
    module = ent_module_create(arena, "test");
    input = ent_module_add_value(module, 0, "x", ENT_DTYPE_F32, 2, dims);
    ent_graph_add_input(module, 0, input);
}

static void teardown(void) {
    ent_arena_destroy(arena);
}

static uint32_t add_unary(uint32_t op, uint32_t value, uint32_t graph, uint32_t before) {
    ent_node_spec spec = {.op = op, .inputs = &value, .input_count = 1, .output_count = 1};
    return ent_module_add_node(module, graph, &spec, before);
}

static uint32_t result(uint32_t node) {
    return ent_module_node(module, node)->outputs[0];
}

static uint32_t count_uses(uint32_t value) {
    uint32_t at = 0, node, slot, count = 0;
    while (ent_value_next_use(module, value, &at, &node, &slot)) count++;
    return count;
}

static void check_sound(void) {
    ent_status status = ent_module_verify(module, arena);
    ck_assert_msg(status == NULL, "%s", status ? ent_status_text(arena, status) : "");
}

START_TEST(names_are_unique) {
    uint32_t a = ent_module_add_value(module, 0, "x", 0, ENT_RANK_UNKNOWN, NULL);
    uint32_t b = ent_module_add_value(module, 0, "x", 0, ENT_RANK_UNKNOWN, NULL);
    uint32_t c = ent_module_add_value(module, 0, NULL, 0, ENT_RANK_UNKNOWN, NULL);
    ck_assert_str_eq(ent_module_value(module, input)->name, "x");
    ck_assert_str_ne(ent_module_value(module, a)->name, "x");
    ck_assert_str_ne(ent_module_value(module, a)->name, ent_module_value(module, b)->name);
    ck_assert_ptr_nonnull(ent_module_value(module, c)->name);
}
END_TEST

START_TEST(replacing_a_value_moves_every_use) {
    uint32_t a = add_unary(ENT_OP_Relu, input, 0, ENT_ID_NONE),
             b = add_unary(ENT_OP_Neg, result(a), 0, ENT_ID_NONE);
    uint32_t pair[2] = {result(a), result(a)};
    ent_node_spec add = {.op = ENT_OP_Add, .inputs = pair, .input_count = 2, .output_count = 1};
    uint32_t c = ent_module_add_node(module, 0, &add, ENT_ID_NONE);
    ent_graph_add_output(module, 0, result(a));
    ent_graph_add_output(module, 0, result(c));
    /* What importers do: an output pushed to the list directly. */
    ent_array_push(arena, &ent_module_graph(module, 0)->outputs, result(a));
    ck_assert_uint_eq(count_uses(result(a)), 3);
    ent_module_replace_value(module, result(a), input);
    ck_assert_uint_eq(count_uses(result(a)), 0);
    ck_assert_uint_eq(count_uses(input), 4);
    ck_assert(!ent_value_is_output(module, result(a)));
    ck_assert(ent_value_is_output(module, input));
    ck_assert_uint_eq(ent_module_node(module, b)->inputs[0], input);
    ck_assert_uint_eq(ent_module_graph(module, 0)->outputs.items[2], input);
    ent_module_remove_node(module, a);
    ck_assert_uint_eq(count_uses(input), 3);
    check_sound();
    ent_uses uses = ent_module_uses(module, arena);
    ck_assert_uint_eq(ent_uses_count(&uses, input), 3);
    ck_assert_uint_eq(uses.is_output[input], 1);
    ck_assert_uint_eq(uses.is_output[result(a)], 0);
}
END_TEST

START_TEST(a_slot_set_twice_is_one_use) {
    uint32_t a = add_unary(ENT_OP_Relu, input, 0, ENT_ID_NONE),
             b = add_unary(ENT_OP_Neg, input, 0, ENT_ID_NONE);
    ent_module_set_input(module, b, 0, result(a));
    ck_assert_uint_eq(count_uses(result(a)), 1);
    ck_assert_uint_eq(count_uses(input), 1);
    ent_module_replace_value(module, result(a), input);
    ck_assert_uint_eq(ent_module_node(module, b)->inputs[0], input);
}
END_TEST

START_TEST(order_follows_insertion) {
    uint32_t b = add_unary(ENT_OP_Neg, input, 0, ENT_ID_NONE);
    uint32_t d = add_unary(ENT_OP_Neg, input, 0, ENT_ID_NONE);
    uint32_t c = add_unary(ENT_OP_Relu, input, 0, d), a = add_unary(ENT_OP_Relu, input, 0, b);
    uint32_t want[4] = {a, b, c, d}, at = 0, node, i = 0;
    while (ent_graph_next(module, 0, &at, &node)) ck_assert_uint_eq(node, want[i++]);
    ck_assert_uint_eq(i, 4);
    /* While walking: what is added before the current node is not visited, what is added after it is. */
    at = 0;
    i = 0;
    while (ent_graph_next(module, 0, &at, &node)) {
        i++;
        if (node == c) add_unary(ENT_OP_Abs, input, 0, c);
        if (node == c) add_unary(ENT_OP_Abs, input, 0, d);
        if (node == b) ent_module_remove_node(module, b);
    }
    ck_assert_uint_eq(i, 5);
    check_sound();
}
END_TEST

static uint32_t add_branch(void) {
    int64_t none[1] = {0};
    uint32_t condition = ent_module_add_value(module, 0, "flag", ENT_DTYPE_BOOL, 0, none);
    uint32_t yes = ent_module_add_graph(module, "yes", ENT_ID_NONE),
             no = ent_module_add_graph(module, "no", ENT_ID_NONE);
    ent_graph_add_input(module, 0, condition);
    float data[1] = {2.0f};
    int64_t dims[1] = {1};
    uint32_t two =
        ent_module_add_constant(module, yes, "two", ENT_DTYPE_F32, 1, dims, data, sizeof data, false);
    uint32_t pair[2] = {input, two};
    ent_node_spec mul = {.op = ENT_OP_Mul, .inputs = pair, .input_count = 2, .output_count = 1};
    ent_graph_add_output(module, yes, result(ent_module_add_node(module, yes, &mul, ENT_ID_NONE)));
    ent_graph_add_output(module, no, result(add_unary(ENT_OP_Neg, input, no, ENT_ID_NONE)));
    ent_attr attrs[2] = {ent_attr_graph("then_branch", yes), ent_attr_graph("else_branch", no)};
    ent_node_spec spec = {.op = ENT_OP_If, .inputs = &condition, .input_count = 1, .output_count = 1};
    spec.attrs = ent_attrs_make(module, attrs, 2);
    uint32_t node = ent_module_add_node(module, 0, &spec, ENT_ID_NONE);
    ent_graph_add_output(module, 0, result(node));
    return node;
}

START_TEST(bodies_belong_to_their_node) {
    uint32_t node = add_branch();
    check_sound();
    ck_assert_uint_eq(ent_module_graph(module, 1)->owner, node);
    ck_assert_uint_eq(count_uses(input), 2);
    ent_graph_set_output(module, 0, 0, input);
    ent_module_remove_node(module, node);
    ck_assert_uint_eq(count_uses(input), 0);
    check_sound();
    ck_assert_ptr_null(strstr(ent_module_print(module, arena), "graph yes"));
}
END_TEST

START_TEST(a_known_branch_is_inlined) {
    uint32_t node = add_branch(), at = 0, inner = ENT_ID_NONE, count = 0;
    ent_module_inline_graph(module, node, 1);
    check_sound();
    while (ent_graph_next(module, 0, &at, &inner)) count++;
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(ent_module_node(module, inner)->op, ENT_OP_Mul);
    ck_assert_uint_eq(ent_module_graph(module, 0)->outputs.items[0], result(inner));
    ck_assert_ptr_null(ent_module_infer(module, arena));
    ck_assert_uint_eq(ent_module_value(module, result(inner))->rank, 2);
}
END_TEST

/* The inner branch's constant stands in the outer branch, which does not read it itself. */
START_TEST(inlining_takes_along_what_bodies_capture) {
    uint32_t condition = ent_module_add_value(module, 0, "condition", ENT_DTYPE_BOOL, 0, NULL);
    ent_graph_add_input(module, 0, condition);
    uint32_t graphs[4];
    for (uint32_t i = 0; i < 4; i++) graphs[i] = ent_module_add_graph(module, NULL, ENT_ID_NONE);
    uint32_t captured = ent_module_add_scalar(module, graphs[0], ENT_DTYPE_F32, 2),
             pair[2] = {input, captured};
    ent_node_spec mul = {.op = ENT_OP_Mul, .inputs = pair, .input_count = 2, .output_count = 1};
    ent_graph_add_output(module, graphs[2],
                         result(ent_module_add_node(module, graphs[2], &mul, ENT_ID_NONE)));
    ent_graph_add_output(module, graphs[3], captured);
    uint32_t outer = ENT_ID_NONE;
    for (uint32_t level = 2; level-- > 0;) {
        ent_attr attrs[2] = {ent_attr_graph("then_branch", graphs[2 * level]),
                             ent_attr_graph("else_branch", graphs[2 * level + 1])};
        ent_node_spec spec = {.op = ENT_OP_If, .inputs = &condition, .input_count = 1, .output_count = 1};
        spec.attrs = ent_attrs_make(module, attrs, 2);
        outer = ent_module_add_node(module, level ? graphs[0] : 0, &spec, ENT_ID_NONE);
        ent_graph_add_output(module, level ? graphs[0] : 0, result(outer));
    }
    ent_graph_add_output(module, graphs[1], input);
    check_sound();
    ent_module_inline_graph(module, outer, graphs[0]);
    check_sound();
    ck_assert_uint_eq(ent_module_value(module, captured)->graph, 0);
}
END_TEST

START_TEST(constants_read_back) {
    int64_t items[3] = {1, -2, INT64_MAX}, out[3], dims[2] = {1, 3};
    uint32_t count, vector = ent_module_add_i64s(module, 0, items, 3);
    ck_assert(ent_value_i64s(module, vector, out, 3, &count));
    ck_assert_uint_eq(count, 3);
    ck_assert(memcmp(items, out, sizeof items) == 0);
    ck_assert(!ent_value_i64s(module, vector, out, 2, &count));
    ck_assert(!ent_value_i64s(module, input, out, 3, &count));
    static const uint32_t dtypes[] = {ENT_DTYPE_F32, ENT_DTYPE_F16, ENT_DTYPE_BF16,
                                      ENT_DTYPE_F64, ENT_DTYPE_I8,  ENT_DTYPE_I64};
    for (uint32_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        double value;
        ck_assert(ent_value_scalar(module, ent_module_add_scalar(module, 0, dtypes[i], -3.0), &value));
        ck_assert(value == -3.0);
    }
    /* A constant whose bytes are fewer than its shape needs is never read. */
    uint32_t shorted = ent_module_add_constant(module, 0, "short", ENT_DTYPE_I64, 2, dims, items, 16, false);
    ck_assert(!ent_value_i64s(module, shorted, out, 3, &count));
    ent_status status = ent_module_verify(module, arena);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "value.sound");
}
END_TEST

START_TEST(half_precision_rounds_to_even) {
    static const struct {
        double in, f16, bf16;
    } cases[] = {{1.0, 1.0, 1.0},
                 {1.00048828125, 1.0, 1.0},         /* halfway in f16: to even */
                 {1.00146484375, 1.001953125, 1.0}, /* halfway, the other way */
                 {65504.0, 65504.0, 65536.0},
                 {65520.0, 1.0 / 0.0, 65536.0}, /* halfway to what f16 does not have */
                 {5.9604644775390625e-08, 5.9604644775390625e-08, 5.9604644775390625e-08},
                 {2.98023223876953125e-08, 0.0, 2.98023223876953125e-08},
                 {-0.1, -0.0999755859375, -0.10009765625}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value;
        ck_assert(
            ent_value_scalar(module, ent_module_add_scalar(module, 0, ENT_DTYPE_F16, cases[i].in), &value));
        ck_assert_msg(value == cases[i].f16, "%g as f16 is %.17g", cases[i].in, value);
        ck_assert(
            ent_value_scalar(module, ent_module_add_scalar(module, 0, ENT_DTYPE_BF16, cases[i].in), &value));
        ck_assert_msg(value == cases[i].bf16, "%g as bf16 is %.17g", cases[i].in, value);
    }
}
END_TEST

/* A chain of 100,000 nodes, delivered backwards, sorted, inferred, with every identity replaced and a node
 * put before each. */
START_TEST(large_graphs_take_linear_work) {
    enum { COUNT = 100000 };
    uint64_t start = ent_time_ns();
    uint32_t *values = ent_arena_alloc(arena, (COUNT + 1) * sizeof *values), first = module->nodes.count;
    values[0] = input;
    for (uint32_t i = 1; i <= COUNT; i++)
        values[i] = ent_module_add_value(module, 0, "v", 0, ENT_RANK_UNKNOWN, NULL);
    for (uint32_t i = COUNT; i > 0; i--) {
        ent_node_spec spec = {.op = i % 2 ? ENT_OP_Identity : ENT_OP_Neg,
                              .inputs = &values[i - 1],
                              .input_count = 1,
                              .outputs = &values[i],
                              .output_count = 1};
        ent_module_add_node(module, 0, &spec, ENT_ID_NONE);
    }
    ent_graph_add_output(module, 0, values[COUNT]);
    ck_assert_ptr_nonnull(ent_module_verify(module, arena));
    ck_assert_ptr_null(ent_graph_sort(module, 0));
    check_sound();
    ck_assert_ptr_null(ent_module_infer(module, arena));
    ck_assert_uint_eq(ent_module_value(module, values[COUNT])->rank, 2);
    uint32_t at = 0, node, live = 0;
    while (ent_graph_next(module, 0, &at, &node)) {
        const ent_node *n = ent_module_node(module, node);
        if (n->op != ENT_OP_Identity) {
            add_unary(ENT_OP_Abs, n->inputs[0], 0, node);
            continue;
        }
        ent_module_replace_value(module, n->outputs[0], n->inputs[0]);
        ent_module_remove_node(module, node);
    }
    check_sound();
    at = 0;
    while (ent_graph_next(module, 0, &at, &node)) live++;
    ck_assert_uint_eq(live, COUNT);
    ck_assert_uint_eq(first, 0);
    /* Quadratic work would take minutes; a sanitizer build on a busy machine takes well under this. */
    ck_assert_uint_lt(ent_time_ns() - start, 60ull * 1000000000ull);
}
END_TEST

START_TEST(deep_nesting_is_refused) {
    uint32_t graph = 0, outer = ENT_ID_NONE;
    int64_t none[1] = {0};
    uint32_t condition = ent_module_add_value(module, 0, "flag", ENT_DTYPE_BOOL, 0, none);
    ent_graph_add_input(module, 0, condition);
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t yes = ent_module_add_graph(module, "yes", ENT_ID_NONE),
                 no = ent_module_add_graph(module, "no", ENT_ID_NONE);
        ent_attr attrs[2] = {ent_attr_graph("then_branch", yes), ent_attr_graph("else_branch", no)};
        ent_node_spec spec = {.op = ENT_OP_If, .inputs = &condition, .input_count = 1, .output_count = 1};
        spec.attrs = ent_attrs_make(module, attrs, 2);
        uint32_t node = ent_module_add_node(module, graph, &spec, ENT_ID_NONE);
        ent_graph_add_output(module, graph, result(node));
        ent_graph_add_output(module, no, input);
        if (i == 0) outer = node;
        graph = yes;
    }
    ent_graph_add_output(module, graph, input);
    ent_status status = ent_module_verify(module, arena);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "graph.nesting");
    status = ent_module_infer(module, arena);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "graph.nesting");
    ck_assert_ptr_null(ent_graph_sort(module, 0));
    ent_module_remove_node(module, outer);
    ck_assert_uint_eq(module->nodes.items[module->nodes.count - 1].dead, 1);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("graph build");
    TCase *tests = tcase_create("build");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, names_are_unique);
    tcase_add_test(tests, replacing_a_value_moves_every_use);
    tcase_add_test(tests, a_slot_set_twice_is_one_use);
    tcase_add_test(tests, order_follows_insertion);
    tcase_add_test(tests, bodies_belong_to_their_node);
    tcase_add_test(tests, a_known_branch_is_inlined);
    tcase_add_test(tests, inlining_takes_along_what_bodies_capture);
    tcase_add_test(tests, constants_read_back);
    tcase_add_test(tests, half_precision_rounds_to_even);
    tcase_add_test(tests, large_graphs_take_linear_work);
    tcase_add_test(tests, deep_nesting_is_refused);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
