/* Sizes that stay open: ranges, typical sizes, tables that leave the module. */
#include <check.h>
#include <string.h>

#include "core/graph/graph.h"

static ent_arena *arena;
static ent_module *module;

static void setup(void) {
    static const char text[] = "module \"m\" {\n  symbol n min 1 max 64\n  symbol w min 0\n"
                               "  graph main(%x: f32[n,w]) -> (%y) {\n"
                               "    %y = Concat(%x, %x) {axis = 1}\n  }\n}\n";
    arena = ent_arena_create(0);
    ck_assert_ptr_null(ent_module_parse(arena, "m", text, &module));
    ck_assert_ptr_null(ent_module_infer(module, arena));
}

static void teardown(void) {
    ent_arena_destroy(arena);
}

static const struct {
    const char *symbol;
    int64_t min, max, typical;
    const char *rule;
} ranges[] = {{"w", 8, 640, 320, NULL},
              {"w", 8, 8, 0, NULL},
              {"v", 1, 2, 0, "symbol.unknown"},
              {"w", 9, 8, 0, "symbol.range"},
              {"w", 1, INT64_MAX, 0, "symbol.range"},
              {"w", 1, 8, 9, "symbol.range"},
              {"n", 0, 64, 0, "symbol.range"},
              {"n", 1, 65, 0, "symbol.range"}};

START_TEST(a_range_lies_within_the_symbols_own) {
    ent_status status =
        ent_module_set_range(module, ranges[_i].symbol, ranges[_i].min, ranges[_i].max, ranges[_i].typical);
    if (ranges[_i].rule) {
        ck_assert_ptr_nonnull(status);
        ck_assert_str_eq(status->rule, ranges[_i].rule);
    } else
        ck_assert_ptr_null(status);
}
END_TEST

static ent_dim width(uint32_t value) {
    return ent_module_value(module, value)->dims[1];
}

START_TEST(prices_count_with_typical_sizes) {
    const ent_graph *main_graph = ent_module_graph(module, 0);
    uint32_t x = main_graph->inputs.items[0], y = main_graph->outputs.items[0];
    int64_t dims[ENT_MAX_RANK];
    ck_assert_int_eq(ent_module_typical(module, 7), 7);
    ck_assert_int_eq(ent_module_typical(module, width(x)), 1); /* nobody said */
    ck_assert_ptr_null(ent_module_set_range(module, "w", 8, 640, 320));
    ck_assert_ptr_null(ent_module_set_range(module, "n", 1, 9, 0));
    ent_module_typical_dims(module, y, dims);
    ck_assert_int_eq(dims[0], 5); /* the middle */
    ck_assert_int_eq(dims[1], 640);
    ent_dim negative = ent_module_dim(module, ENT_EXPR_SUB, 2, width(x));
    ck_assert_int_eq(ent_module_typical(module, negative), 0);
    ent_dim huge = ent_module_dim(module, ENT_EXPR_MUL, width(x), INT64_MAX / 8);
    ck_assert_int_eq(ent_module_typical(module, huge), INT64_MAX); /* what no number holds */
}
END_TEST

START_TEST(a_range_from_none_is_a_range) {
    ck_assert_ptr_null(ent_module_set_range(module, "w", 0, 1, 0));
    ck_assert_int_eq(module->symbols.items[1].typical, 1); /* 0 would mean that nobody said */
}
END_TEST

START_TEST(a_table_means_what_the_module_means) {
    const ent_graph *main_graph = ent_module_graph(module, 0);
    ent_size_table table;
    ent_size_table_init(&table, module, arena);
    ck_assert_uint_eq(table.symbols.count, 2);
    ent_size_table_add_value(&table, main_graph->outputs.items[0]);
    uint32_t count = table.exprs.count;
    ent_dim w = ent_size_table_dim(&table, width(main_graph->outputs.items[0]));
    ck_assert_uint_eq(table.exprs.count, count); /* once */
    ent_dim bytes = ent_size_table_combine(&table, ENT_EXPR_MUL, w, 4);
    ck_assert_int_eq(bytes, ent_size_table_combine(&table, ENT_EXPR_MUL, w, 4));
    ck_assert_int_eq(ent_size_table_combine(&table, ENT_EXPR_MUL, 1, w), w);
    ck_assert_int_eq(ent_size_table_combine(&table, ENT_EXPR_CEILDIV, 7, 2), 4);
    const int64_t symbols[] = {3, 10};
    int64_t values[16];
    ck_assert_uint_le(table.exprs.count, 16);
    ck_assert(ent_expr_evaluate(table.exprs.items, table.exprs.count, symbols, 2, values));
    ck_assert_int_eq(ent_dim_value(w, values), 20);
    ck_assert_int_eq(ent_dim_value(bytes, values), 80);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("graph_sizes");
    TCase *test = tcase_create("all");
    tcase_add_checked_fixture(test, setup, teardown);
    tcase_add_loop_test(test, a_range_lies_within_the_symbols_own, 0,
                        (int)(sizeof ranges / sizeof ranges[0]));
    tcase_add_test(test, prices_count_with_typical_sizes);
    tcase_add_test(test, a_range_from_none_is_a_range);
    tcase_add_test(test, a_table_means_what_the_module_means);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
