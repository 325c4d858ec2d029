/* Size expressions: the normal form means the same as plain arithmetic, and equal sizes become equal dims. */
#include <check.h>
#include <stdlib.h>

#include "core/graph/graph.h"

#define SYMBOLS 3u

static ent_arena *arena;
static ent_module *module;
static uint64_t seed;

static void setup(void) {
    arena = ent_arena_create(0);
    module = ent_module_create(arena, "test");
    for (uint32_t i = 0; i < SYMBOLS; i++)
        ent_module_add_symbol(module, i == 0 ? "N" : i == 1 ? "M" : "K", i, INT64_MAX);
}

static void teardown(void) {
    ent_arena_destroy(arena);
}

static uint32_t draw(uint32_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* A random tree, built as a dim and evaluated by plain arithmetic at several points at once. */
typedef struct tree {
    ent_dim dim;
    int64_t at[4];
    bool defined[4];
} tree;

static const int64_t points[4][SYMBOLS] = {{0, 1, 2}, {1, 1, 3}, {7, 4, 2}, {12, 30, 5}};

static int64_t plain(ent_expr_kind kind, int64_t a, int64_t b, bool *defined) {
    if (kind >= ENT_EXPR_FLOORDIV && kind <= ENT_EXPR_MOD && b <= 0) *defined = false;
    if (!*defined) return 0;
    switch (kind) {
    case ENT_EXPR_ADD:
        return a + b;
    case ENT_EXPR_SUB:
        return a - b;
    case ENT_EXPR_MUL:
        return a * b;
    case ENT_EXPR_FLOORDIV:
        return ent_expr_floordiv(a, b);
    case ENT_EXPR_CEILDIV:
        return -ent_expr_floordiv(-a, b);
    case ENT_EXPR_MOD:
        return a - b * ent_expr_floordiv(a, b);
    case ENT_EXPR_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

static tree grow(uint32_t depth) {
    tree t = {0};
    if (depth == 0 || draw(4) == 0) {
        bool symbol = draw(3) != 0;
        uint32_t which = draw(symbol ? SYMBOLS : 6);
        t.dim = symbol ? ent_module_dim_symbol(module, which) : (ent_dim)which;
        for (uint32_t i = 0; i < 4; i++) {
            t.at[i] = symbol ? points[i][which] : which;
            t.defined[i] = true;
        }
        return t;
    }
    static const ent_expr_kind kinds[] = {ENT_EXPR_ADD,     ENT_EXPR_SUB, ENT_EXPR_MUL, ENT_EXPR_FLOORDIV,
                                          ENT_EXPR_CEILDIV, ENT_EXPR_MOD, ENT_EXPR_MIN, ENT_EXPR_MAX};
    ent_expr_kind kind = kinds[draw(8)];
    tree a = grow(depth - 1), b = grow(depth - 1);
    if (kind >= ENT_EXPR_FLOORDIV && kind <= ENT_EXPR_MOD) {
        int64_t by = draw(6) + 1;
        b = (tree){by, {by, by, by, by}, {true, true, true, true}};
    }
    t.dim = ent_module_dim(module, kind, a.dim, b.dim);
    for (uint32_t i = 0; i < 4; i++) {
        t.defined[i] = a.defined[i] && b.defined[i];
        t.at[i] = plain(kind, a.at[i], b.at[i], &t.defined[i]);
    }
    return t;
}

START_TEST(normal_form_keeps_the_value) {
    seed = 20240u + (uint64_t)_i;
    for (uint32_t round = 0; round < 2000; round++) {
        if (module->exprs.count > 4000) {
            teardown();
            setup();
        }
        tree t = grow(4);
        int64_t *values = malloc((module->exprs.count + 1) * sizeof *values);
        for (uint32_t i = 0; i < 4; i++) {
            if (!t.defined[i]) continue;
            bool ok = ent_expr_evaluate(module->exprs.items, module->exprs.count, points[i], SYMBOLS, values);
            ck_assert(ok);
            ck_assert_int_eq(ent_dim_value(t.dim, values), t.at[i]);
        }
        free(values);
    }
}
END_TEST

START_TEST(equal_sizes_are_one_dim) {
    ent_dim n = ent_module_dim_symbol(module, 0), m = ent_module_dim_symbol(module, 1);
    ent_dim nm = ent_module_dim(module, ENT_EXPR_ADD, n, m);
    ck_assert(nm == ent_module_dim(module, ENT_EXPR_ADD, m, n));
    ck_assert(ent_module_dim(module, ENT_EXPR_SUB, nm, m) == n);
    ck_assert(ent_module_dim(module, ENT_EXPR_ADD, n, 0) == n);
    ck_assert(ent_module_dim(module, ENT_EXPR_MUL, n, 1) == n);
    ck_assert(ent_module_dim(module, ENT_EXPR_MUL, n, 0) == 0);
    ent_dim three = ent_module_dim(module, ENT_EXPR_MUL, n, 3);
    ck_assert(ent_module_dim(module, ENT_EXPR_FLOORDIV, three, 3) == n);
    ck_assert(ent_module_dim(module, ENT_EXPR_MOD, three, 3) == 0);
    /* A convolution with stride 1 and "same" padding: (n + 2 - 3) / 1 + 1. */
    ent_dim conv = ent_module_dim(module, ENT_EXPR_SUB, ent_module_dim(module, ENT_EXPR_ADD, n, 2), 3);
    conv = ent_module_dim(module, ENT_EXPR_ADD, ent_module_dim(module, ENT_EXPR_FLOORDIV, conv, 1), 1);
    ck_assert(conv == n);
    /* Halving twice is dividing by four. */
    ent_dim half = ent_module_dim(module, ENT_EXPR_FLOORDIV, n, 2);
    ck_assert(ent_module_dim(module, ENT_EXPR_FLOORDIV, half, 2) ==
              ent_module_dim(module, ENT_EXPR_FLOORDIV, n, 4));
}
END_TEST

START_TEST(bounds_settle_minima) {
    uint32_t wide = ent_module_add_symbol(module, "W", 8, 100);
    ent_dim w = ent_module_dim_symbol(module, wide), n = ent_module_dim_symbol(module, 0);
    ck_assert(ent_module_dim(module, ENT_EXPR_MAX, w, 3) == w);
    ck_assert(ent_module_dim(module, ENT_EXPR_MIN, w, 200) == w);
    ck_assert(ent_module_dim(module, ENT_EXPR_MIN, w, 8) == 8);
    ck_assert(ent_module_dim(module, ENT_EXPR_MAX, n, 0) == n);
    ck_assert(ent_module_dim(module, ENT_EXPR_MIN, n, 1) < 0);
}
END_TEST

START_TEST(growth_is_bounded) {
    /* Every step doubles what the expression would be written out; the table must not follow. */
    ent_dim x = ent_module_dim_symbol(module, 0), m = ent_module_dim_symbol(module, 1);
    for (uint32_t i = 0; i < 200; i++) {
        ent_dim shifted =
            ent_module_dim(module, ENT_EXPR_ADD, ent_module_dim(module, ENT_EXPR_FLOORDIV, x, 3), m);
        x = ent_module_dim(module, ENT_EXPR_MIN, ent_module_dim(module, ENT_EXPR_MUL, x, shifted), shifted);
    }
    ck_assert_uint_lt(module->exprs.count, 4000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("graph dims");
    TCase *tests = tcase_create("dims");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, normal_form_keeps_the_value, 0, 8);
    tcase_add_test(tests, equal_sizes_are_one_dim);
    tcase_add_test(tests, bounds_settle_minima);
    tcase_add_test(tests, growth_is_bounded);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
