/* Random graphs mean the same before and after all rewrites. Counts what fired, so that a generator that no
 * longer reaches a rule fails too. ENT_REWRITE_SEED=N runs that one graph and prints it. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "core/ops/ops.h"
#include "core/rewrite/rewrite.h"
#include "tests/unit/rewrite_random_patterns.h"

#define GRAPHS 2000
#define MAX_PASSES 16

/* ---- making ---- */

typedef void (*piece)(generator *g);
static const piece pieces[] = {
    piece_unary,  piece_bounds,    piece_constant,   piece_quotient, piece_binary,     piece_twin,
    piece_where,  piece_casts,     piece_expand,     piece_reduce,   piece_concat,     piece_split,
    piece_part,   piece_rounding,  piece_shape,      piece_branch,   piece_reshape,    piece_axes,
    piece_gelu,   piece_softmax,   piece_hard_swish, piece_conv,     piece_conv,       piece_matmul,
    piece_matmul, piece_transpose, piece_sandwich,   piece_sandwich, piece_layer_norm, piece_attention,
    piece_bytes,  piece_integers,  piece_slopes,     piece_orders,   piece_pads,       piece_selection,
};

static bool is_read(const generator *g, uint32_t value) {
    char name[24];
    size_t size = (size_t)snprintf(name, sizeof name, "%%v%u", value);
    const ent_text *texts[2] = {&g->text, &g->bodies};
    for (int i = 0; i < 2; i++)
        for (const char *at = texts[i]->data; at && (at = strstr(at, name)); at += size)
            if (strchr(",)", at[size]) && at > texts[i]->data && at[-1] != '\n') return true;
    return false;
}

/* Two inputs that share a shape and one that does not; the first axis may be a symbol. */
static void add_inputs(generator *g, bool symbolic) {
    shape s = {4, {2, 1 + pick(g, 4), 1 + pick(g, 4), 1 + pick(g, 4)}},
          t = {2 + pick(g, 2), {2, 1 + pick(g, 5), 3}};
    const shape inputs[3] = {s, s, t};
    for (uint32_t i = 0; i < 3; i++) {
        const char *dims = dims_text(g, &inputs[i]);
        ent_text_add(&g->text, "%%v%u: f32[%s%s], ", i, symbolic ? "N" : "2", dims + 1);
        g->values[g->count++] = (random_value){inputs[i], true, false};
    }
    ent_text_add(&g->text, "%%one: f32[], %%flag: bool[]");
}

static const char *make_text(ent_arena *arena, uint64_t seed) {
    generator *g = ent_arena_alloc(arena, sizeof *g);
    ent_text whole, inputs;
    g->arena = arena;
    g->state = seed * 0x9e3779b97f4a7c15u + 1;
    ent_text_init(&whole, arena);
    ent_text_init(&g->text, arena);
    ent_text_init(&g->bodies, arena);
    bool symbolic = one_in(g, 4);
    add_inputs(g, symbolic);
    inputs = g->text;
    ent_text_init(&g->text, arena);
    for (uint32_t i = 0, count = 3 + pick(g, 8); i < count && g->count < MAX_VALUES - 40; i++)
        pieces[pick(g, sizeof pieces / sizeof pieces[0])](g);
    ent_text_add(&whole, "module \"seed %llu\" {\n%s  graph main(%s) -> (", (unsigned long long)seed,
                 symbolic ? "  symbol N min 1\n" : "", inputs.data);
    const char *comma = "";
    for (uint32_t i = 3; i < g->count; i++) {
        if (!g->values[i].is_output && (i + 1 < g->count) && (is_read(g, i) || one_in(g, 30))) continue;
        ent_text_add(&whole, "%s%%v%u", comma, i);
        comma = ", ";
    }
    if (!comma[0]) ent_text_add(&whole, "%%v0");
    ent_text_add(&whole, ") {\n%s}\n%s}\n", g->text.data ? g->text.data : "",
                 g->bodies.data ? g->bodies.data : "");
    return whole.data;
}

/* ---- meaning ---- */

typedef struct evaluation {
    ent_arena *arena;
    const ent_module *module;
    ent_tensor **values;
} evaluation;

static ent_tensor *make_tensor(ent_arena *arena, const ent_tensor *like) {
    ent_tensor *t = ent_arena_copy(arena, like, sizeof *like);
    t->layout = ent_layout_plain(t->rank);
    t->size_bytes = (uint64_t)ent_layout_bytes(&t->layout, (ent_dtype)t->dtype, t->dims);
    t->data = ent_arena_alloc(arena, t->size_bytes + 8);
    return t;
}

static int64_t count_elements(const ent_tensor *t) {
    int64_t count = 1;
    for (uint32_t i = 0; i < t->rank; i++) count *= t->dims[i];
    return count;
}

static void evaluate_graph(evaluation *e, uint32_t graph);

static void evaluate_branch(evaluation *e, const ent_node *node) {
    bool taken = ent_ops_load_i64(e->values[node->inputs[0]]->data, ENT_DTYPE_BOOL, 0) != 0;
    uint32_t body = (uint32_t)ent_attrs_find(node->attrs, taken ? "then_branch" : "else_branch")->i;
    evaluate_graph(e, body);
    for (uint32_t i = 0; i < node->output_count; i++)
        e->values[node->outputs[i]] = e->values[ent_module_graph(e->module, body)->outputs.items[i]];
}

static void evaluate_node(evaluation *e, const ent_node *node) {
    const ent_tensor *inputs[8] = {0};
    ent_tensor *outputs[8] = {0}, shapes[8] = {0};
    ent_ops_error error = {0};
    ck_assert_uint_le(node->input_count, 8);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ENT_ID_NONE) inputs[i] = e->values[node->inputs[i]];
    ent_code code = ent_ops_output_dims(node->op, node->attrs, inputs, node->input_count, shapes,
                                        node->output_count, &error);
    ck_assert_msg(code == ENT_OK, "%s: %s: %s", e->module->name, node->name, error.text);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != ENT_ID_NONE)
            e->values[node->outputs[i]] = outputs[i] = make_tensor(e->arena, &shapes[i]);
    code = ent_ops_evaluate(node->op, node->attrs, inputs, node->input_count, outputs, node->output_count,
                            ent_ops_memory_default(), &error);
    ck_assert_msg(code == ENT_OK, "%s: %s: %s", e->module->name, node->name, error.text);
}

static void evaluate_graph(evaluation *e, uint32_t graph) {
    uint32_t at = 0, node;
    while (ent_graph_next(e->module, graph, &at, &node)) {
        const ent_node *n = ent_module_node(e->module, node);
        if (n->op == ENT_OP_If)
            evaluate_branch(e, n);
        else
            evaluate_node(e, n);
    }
}

/* Inputs are the same for a seed; a symbol is 2. */
static ent_tensor **evaluate(ent_arena *arena, const ent_module *module, uint64_t seed, bool special) {
    evaluation e = {arena, module, ent_arena_alloc(arena, module->values.count * sizeof(ent_tensor *))};
    generator random = {.state = seed + 99};
    for (uint32_t v = 0; v < module->values.count; v++)
        if (module->values.items[v].constant)
            e.values[v] = (ent_tensor *)(uintptr_t)&module->values.items[v].constant->tensor;
    const ent_graph *main_graph = ent_module_graph(module, 0);
    for (uint32_t i = 0; i < main_graph->inputs.count; i++) {
        const ent_value *value = ent_module_value(module, main_graph->inputs.items[i]);
        ent_tensor like = {.dtype = value->dtype, .rank = value->rank};
        for (uint32_t k = 0; k < value->rank; k++)
            like.dims[k] = ent_dim_is_const(value->dims[k]) ? value->dims[k] : 2;
        ent_tensor *t = e.values[main_graph->inputs.items[i]] = make_tensor(arena, &like);
        for (int64_t k = 0; k < count_elements(t); k++) {
            double x = pick(&random, 4001) / 1000.0 - 2;
            if (special && value->rank && one_in(&random, 6))
                x = (const double[]){NAN, INFINITY, -INFINITY, 0, -0.0}[pick(&random, 5)];
            if (t->dtype == ENT_DTYPE_BOOL)
                ent_ops_store_i64(t->data, t->dtype, k, x > 0);
            else
                ent_ops_store_f64(t->data, t->dtype, k, value->rank ? x : 1);
        }
    }
    evaluate_graph(&e, 0);
    return e.values;
}

/* The text of the first difference, or NULL. */
static const char *difference(ent_arena *arena, const ent_tensor *a, const ent_tensor *b, double tolerance) {
    double largest = 1;
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) != 0)
        return "another type or shape";
    for (int64_t i = 0; i < count_elements(a); i++) {
        double x = fabs(ent_ops_load_f64(a->data, a->dtype, i));
        if (isfinite(x) && x > largest) largest = x;
    }
    for (int64_t i = 0; i < count_elements(a); i++) {
        double x = ent_ops_load_f64(a->data, a->dtype, i), y = ent_ops_load_f64(b->data, b->dtype, i);
        double slack = a->dtype == ENT_DTYPE_F32 ? tolerance * largest : 0;
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= slack) continue;
        return ent_arena_format(arena, "element %lld is %.9g, was %.9g", (long long)i, y, x);
    }
    return NULL;
}

/* ---- counting ---- */

typedef struct tally {
    uint32_t graphs, refused;
    uint32_t passes[MAX_PASSES]; /* in how many graphs a pass changed something */
    uint32_t
        gone[ENT_OP_COUNT]; /* in how many graphs there are fewer of an operator, overlays counted as such */
    uint32_t made[ENT_OP_COUNT]; /* more */
} tally;

typedef struct trace_of_one {
    bool changed[MAX_PASSES];
} trace_of_one;

static void trace(void *context, const char *pass, bool changed, const ent_module *module) {
    const char *const *names = ent_rewrite_pass_names();
    trace_of_one *one = context;
    (void)module;
    for (uint32_t i = 0; names[i]; i++)
        if (strcmp(names[i], pass) == 0) one->changed[i] |= changed;
}

static void count_operators(const ent_module *module, uint32_t *counts) {
    memset(counts, 0, ENT_OP_COUNT * sizeof *counts);
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, node;
        while (ent_graph_next(module, g, &at, &node)) counts[ent_module_node(module, node)->op]++;
    }
}

static void add_to(tally *t, const trace_of_one *one, const uint32_t *before, const uint32_t *after) {
    for (uint32_t i = 0; i < MAX_PASSES; i++) t->passes[i] += one->changed[i];
    for (uint32_t op = 0; op < ENT_OP_COUNT; op++) {
        t->gone[op] += after[op] < before[op];
        t->made[op] += after[op] > before[op];
    }
}

/* ---- the test ---- */

static void run_one(uint64_t seed, bool strict, bool show, tally *t) {
    ent_arena *arena = ent_arena_create(0), *scratch = ent_arena_create(0);
    const char *text = make_text(arena, seed);
    ent_module *before = NULL, *after = NULL;
    uint32_t operators[2][ENT_OP_COUNT];
    trace_of_one one = {0};
    ent_rewrite_options options = {.strict = strict, .after_pass = trace, .context = &one};
    if (show) printf("%s", text);
    ent_status status = ent_module_parse(arena, "random", text, &before);
    ck_assert_msg(!status, "%s\n%s", status ? ent_status_text(arena, status) : "", text);
    ck_assert_ptr_null(ent_module_parse(arena, "random", text, &after));
    t->graphs++;
    status = ent_module_infer(before, scratch);
    if (status) { /* a constant shape where the symbol would have to be known */
        if (show) printf("%s\n", ent_status_text(arena, status));
        ck_assert_msg(strstr(text, "symbol N"), "%s\n%s", ent_status_text(arena, status), text);
        t->refused++;
    } else {
        status = ent_rewrite_run(after, &options, scratch);
        ck_assert_msg(!status, "%s\n%s", status ? ent_status_text(arena, status) : "", text);
        count_operators(before, operators[0]);
        count_operators(after, operators[1]);
        status = ent_module_freeze(after, scratch);
        ck_assert_msg(!status, "%s\n%s", status ? ent_status_text(arena, status) : "", text);
        ck_assert_ptr_null(ent_module_verify(after, scratch));
        if (show) printf("%s", ent_module_print(after, arena));
        ent_tensor **a = evaluate(arena, before, seed, strict), **b = evaluate(arena, after, seed, strict);
        for (uint32_t i = 0; i < ent_module_graph(before, 0)->outputs.count; i++) {
            uint32_t old = ent_module_graph(before, 0)->outputs.items[i],
                     new = ent_module_graph(after, 0)->outputs.items[i];
            const char *wrong = difference(arena, a[old], b[new], strict ? 2e-5 : 1e-4);
            ck_assert_msg(!wrong, "seed %llu, %s precision, output %u (%s): %s\n%s", (unsigned long long)seed,
                          strict ? "strict" : "usual", i, ent_module_value(before, old)->name, wrong, text);
        }
        add_to(t, &one, operators[0], operators[1]);
    }
    ent_arena_destroy(arena);
    ent_arena_destroy(scratch);
}

static void run_many(bool strict, tally *t) {
    const char *seed = getenv("ENT_REWRITE_SEED");
    if (seed) run_one(strtoull(seed, NULL, 10), strict, true, t);
    for (uint64_t i = 1; i <= GRAPHS && !seed; i++) run_one(i, strict, false, t);
}

/* In how many of the graphs something has to happen: about half of what did when this was written. */
typedef struct wanted_pass {
    const char *name;
    uint32_t usual, strict;
} wanted_pass;
static const wanted_pass wanted_passes[] = {
    {"integer-products", 100, 0}, {"fold-constants", 200, 200},  {"unroll", 0, 0},
    {"simplify", 900, 900},       {"remove-dead", 500, 500},     {"share-equal", 250, 250},
    {"merge-reshapes", 300, 300}, {"move-transposes", 450, 450}, {"recompose", 400, 100},
    {"fold-scales", 400, 0},
};

typedef struct wanted_operator {
    uint32_t op;
    bool made; /* else gone */
    uint32_t usual, strict;
} wanted_operator;
static const wanted_operator wanted_operators[] = {
    {ENT_OP_Gelu, true, 80, 0},
    {ENT_OP_HardSwish, true, 70, 30},
    {ENT_OP_HardSigmoid, true, 20, 0},
    {ENT_OP_Softmax, true, 70, 50},
    {ENT_OP_LayerNormalization, true, 60, 0},
    {ENT_OP_Attention, true, 100, 0},
    {ENT_OP_ReduceMean, true, 12, 8},
    {ENT_OP_BatchNormalization, false, 120, 0},
    {ENT_OP_Transpose, false, 500, 500},
    {ENT_OP_Max, false, 90, 90},
    {ENT_OP_Cast, false, 120, 120},
    {ENT_OP_Pow, false, 35, 15},
    {ENT_OP_Expand, false, 80, 80},
    {ENT_OP_Pad, false, 60, 60},
    {ENT_OP_Slice, false, 20, 20},
    {ENT_OP_Slice, true, 25, 25},
    {ENT_OP_Where, false, 90, 90},
    {ENT_OP_If, false, 50, 50},
    {ENT_OP_Shape, false, 100, 100},
    {ENT_OP_Dropout, false, 20, 20},
    {ENT_OP_Reshape, false, 120, 120},
};

static void check_tally(const tally *t, bool strict) {
    const char *const *names = ent_rewrite_pass_names();
    if (t->graphs < GRAPHS) return;
    for (uint32_t i = 0; names[i]; i++) {
        ck_assert_uint_lt(i, sizeof wanted_passes / sizeof *wanted_passes);
        const wanted_pass *p = &wanted_passes[i];
        uint32_t wanted = strict ? p->strict : p->usual;
        ck_assert_str_eq(p->name, names[i]);
        ck_assert_msg(t->passes[i] >= wanted, "%s changed %u graphs only", names[i], t->passes[i]);
        ck_assert_msg(wanted > 0 || t->passes[i] == 0, "%s is not for strict precision", names[i]);
    }
    for (uint32_t i = 0; i < sizeof wanted_operators / sizeof *wanted_operators; i++) {
        const wanted_operator *o = &wanted_operators[i];
        uint32_t seen = o->made ? t->made[o->op] : t->gone[o->op], wanted = strict ? o->strict : o->usual;
        const char *name = ent_op_info_get(o->op)->name;
        ck_assert_msg(seen >= wanted, "%u graphs with %s %s, not %u", seen, o->made ? "more" : "fewer", name,
                      wanted);
    }
    ck_assert_uint_lt(t->refused, GRAPHS / 10);
}

START_TEST(usual_precision) {
    tally t = {0};
    run_many(false, &t);
    check_tally(&t, false);
}
END_TEST

START_TEST(strict_precision) {
    tally t = {0};
    run_many(true, &t);
    check_tally(&t, true);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rewrite random");
    TCase *tests = tcase_create("meaning");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, usual_precision);
    tcase_add_test(tests, strict_precision);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
