/* Every candidate of random graphs computes what its leaves mean. Shapes are large enough that tiles have
 * edges. */
#include "tests/unit/fusion_check.h"

#define MAX_VALUES 24

typedef struct generator {
    uint64_t state;
    ent_text text;
    uint32_t count, constants;
    int64_t dims[MAX_VALUES][4]; /* [1, c, h, w] of value v0, v1 ... */
} generator;

static int64_t pick(generator *g, int64_t low, int64_t high) {
    return low + (int64_t)((fusion_random(&g->state) + 1) / 2 * 0.999999 * (double)(high - low + 1));
}

static uint32_t add(generator *g, int64_t c, int64_t h, int64_t w) {
    int64_t dims[4] = {1, c, h, w};
    memcpy(g->dims[g->count], dims, sizeof dims);
    return g->count++;
}

static void add_conv(generator *g, uint32_t x, bool depthwise) {
    int64_t *d = g->dims[x], k = pick(g, 0, 1) ? 1 : 3, s = pick(g, 1, 2),
            n = depthwise ? d[1] : pick(g, 1, 40), id = g->constants++;
    if (depthwise) k = 3;
    ent_text_add(&g->text,
                 "%%w%lld = constant f32[%lld,%lld,%lld,%lld] random %lld 0.2\n%%b%lld = constant f32[%lld] "
                 "random 9 0.2\n",
                 (long long)id, (long long)n, (long long)(depthwise ? 1 : d[1]), (long long)k, (long long)k,
                 (long long)id, (long long)id, (long long)n);
    ent_text_add(&g->text,
                 "%%v%u = Conv(%%v%u, %%w%lld, %%b%lld) {pads = [%lld, %lld, %lld, %lld], strides = [%lld, "
                 "%lld], group = %lld}"
                 " name \"n%u\"\n",
                 g->count, x, (long long)id, (long long)id, (long long)(k / 2), (long long)(k / 2),
                 (long long)(k / 2), (long long)(k / 2), (long long)s, (long long)s,
                 (long long)(depthwise ? d[1] : 1), g->count);
    add(g, n, (d[2] - 1) / s + 1, (d[3] - 1) / s + 1);
}

static void add_simple(generator *g, uint32_t x) {
    static const char *const unary[] = {"Relu", "Sigmoid", "HardSwish", "Tanh", "Softplus", "Gelu", "Abs"};
    int64_t *d = g->dims[x];
    ent_text_add(&g->text, "%%v%u = %s(%%v%u) name \"n%u\"\n", g->count, unary[pick(g, 0, 6)], x, g->count);
    add(g, d[1], d[2], d[3]);
}

static void add_binary(generator *g, uint32_t x, uint32_t y) {
    static const char *const binary[] = {"Add", "Sub", "Max", "Mul"};
    int64_t *a = g->dims[x], *b = g->dims[y], out[4] = {1, 1, 1, 1};
    for (int i = 0; i < 4; i++) {
        if (a[i] != b[i] && a[i] != 1 && b[i] != 1) {
            add_simple(g, x);
            return;
        }
        out[i] = a[i] > b[i] ? a[i] : b[i];
    }
    ent_text_add(&g->text, "%%v%u = %s(%%v%u, %%v%u) name \"n%u\"\n", g->count, binary[pick(g, 0, 3)], x, y,
                 g->count);
    add(g, out[1], out[2], out[3]);
}

static void add_channel_vector(generator *g, uint32_t x) {
    int64_t *d = g->dims[x], id = g->constants++;
    ent_text_add(
        &g->text,
        "%%w%lld = constant f32[%lld,1,1] random %lld 1.0\n%%v%u = Mul(%%v%u, %%w%lld) name \"n%u\"\n",
        (long long)id, (long long)d[1], (long long)id, g->count, x, (long long)id, g->count);
    add(g, d[1], d[2], d[3]);
}

static void add_reduction(generator *g, uint32_t x) {
    int64_t *d = g->dims[x], kind = pick(g, 0, 3), id = g->constants++, axis = pick(g, 1, 3);
    if (kind == 0)
        ent_text_add(&g->text, "%%v%u = GlobalAveragePool(%%v%u) name \"n%u\"\n", g->count, x, g->count);
    else if (kind == 1)
        ent_text_add(&g->text, "%%v%u = Softmax(%%v%u) {axis = %lld} name \"n%u\"\n", g->count, x,
                     (long long)axis, g->count);
    else
        ent_text_add(&g->text, "%%w%lld = constant i64[1] {%lld}\n%%v%u = %s(%%v%u, %%w%lld) name \"n%u\"\n",
                     (long long)id, (long long)axis, g->count, kind == 2 ? "ReduceMean" : "ReduceMax", x,
                     (long long)id, g->count);
    if (kind == 0)
        add(g, d[1], 1, 1);
    else if (kind == 1)
        add(g, d[1], d[2], d[3]);
    else
        add(g, axis == 1 ? 1 : d[1], axis == 2 ? 1 : d[2], axis == 3 ? 1 : d[3]);
}

static void add_movement(generator *g, uint32_t x, uint32_t y) {
    static const int perms[][3] = {{2, 3, 1}, {3, 1, 2}, {1, 3, 2}, {3, 2, 1}};
    int64_t *d = g->dims[x], *e = g->dims[y];
    if (pick(g, 0, 1) && d[2] == e[2] && d[3] == e[3]) {
        ent_text_add(&g->text, "%%v%u = Concat(%%v%u, %%v%u) {axis = 1} name \"n%u\"\n", g->count, x, y,
                     g->count);
        add(g, d[1] + e[1], d[2], d[3]);
        return;
    }
    const int *p = perms[pick(g, 0, 3)];
    ent_text_add(&g->text, "%%v%u = Transpose(%%v%u) {perm = [0, %d, %d, %d]} name \"n%u\"\n", g->count, x,
                 p[0], p[1], p[2], g->count);
    add(g, d[p[0]], d[p[1]], d[p[2]]);
}

static void add_window(generator *g, uint32_t x) {
    int64_t *d = g->dims[x];
    bool max = pick(g, 0, 1);
    ent_text_add(
        &g->text,
        "%%v%u = %s(%%v%u) {kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]} name \"n%u\"\n",
        g->count, max ? "MaxPool" : "AveragePool", x, g->count);
    add(g, d[1], (d[2] - 1) / 2 + 1, d[3]);
}

static void add_matmul(generator *g, uint32_t x) {
    int64_t *d = g->dims[x], n = pick(g, 1, 50), id = g->constants++;
    ent_text_add(
        &g->text,
        "%%w%lld = constant f32[%lld,%lld] random %lld 0.2\n%%v%u = MatMul(%%v%u, %%w%lld) name \"n%u\"\n",
        (long long)id, (long long)d[3], (long long)n, (long long)id, g->count, x, (long long)id, g->count);
    add(g, d[1], d[2], n);
}

static void generate(generator *g, uint32_t nodes) {
    int64_t h = pick(g, 1, 30), w = pick(g, 1, 30), c = pick(g, 1, 40);
    ent_text_add(&g->text, "graph main(%%v0: f32[1,%lld,%lld,%lld]) -> (%%v%u) {\n", (long long)c,
                 (long long)h, (long long)w, nodes);
    add(g, c, h, w);
    while (g->count <= nodes) {
        uint32_t x = (uint32_t)pick(g, g->count > 3 ? g->count - 3 : 0, g->count - 1),
                 y = (uint32_t)pick(g, 0, g->count - 1);
        switch (pick(g, 0, 11)) {
        case 0:
            add_conv(g, x, false);
            break;
        case 1:
            add_conv(g, x, g->dims[x][1] > 1);
            break;
        case 2:
            add_channel_vector(g, x);
            break;
        case 3:
            add_reduction(g, x);
            break;
        case 4:
            add_movement(g, x, y);
            break;
        case 5:
            add_window(g, x);
            break;
        case 6:
            add_matmul(g, x);
            break;
        case 7:
        case 8:
            add_simple(g, x);
            break;
        default:
            add_binary(g, x, y);
            break;
        }
    }
    ent_text_add(&g->text, "}");
}

START_TEST(random_graphs) {
    ent_arena *arena = ent_arena_create(0);
    generator g = {.state = (uint64_t)_i * 977 + 5};
    ent_text_init(&g.text, arena);
    generate(&g, 8);
    fusion_check_all(g.text.data, 0, NULL);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("fusion random");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, random_graphs, 0, 60);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
