/* The golden tile programs against plain loops that know nothing of tiles: one function an output element. */
#include <check.h>
#include <math.h>

#include "tests/golden/tile_case.h"

#ifndef ENT_TEST_SOURCE_DIR
#define ENT_TEST_SOURCE_DIR "."
#endif

/* What element `at` (row-major, logical) of the output must be. */
typedef double (*reference)(const tile_case *c, int64_t at);

static double get(const tile_case *c, uint32_t buffer, int64_t at) {
    return tile_case_get(c, buffer, at);
}

static ent_tile_program *load(ent_arena *arena, const char *name) {
    ent_str text;
    ent_tile_program *program = NULL;
    const char *path = ent_arena_format(arena, "%s/tests/golden/tile/%s.txt", ENT_TEST_SOURCE_DIR, name);
    ent_status status = ent_file_read(arena, path, ENT_ERROR_USAGE, 0, &text);
    ck_assert_msg(!status, "%s", ent_status_text(arena, status));
    const char *end = strstr(text.data, "\n--- expect");
    ck_assert_ptr_nonnull(end);
    status = ent_tile_parse(arena, path, text.data, (size_t)(end - text.data), &program);
    ck_assert_msg(!status, "%s", ent_status_text(arena, status));
    return program;
}

static void check_program(const char *name, const int64_t *symbols, uint32_t output, reference expected) {
    ent_arena *arena = ent_arena_create(0);
    ent_tile_program *program = load(arena, name);
    tile_case c;
    ent_ops_error error;
    ck_assert(tile_case_open(&c, program, symbols));
    ck_assert_msg(ent_ops_tile_interpret(program, c.memory, c.symbols, NULL, &error) == ENT_OK, "%s",
                  error.text);
    ck_assert_int_gt(tile_case_elements(&c, output), 0);
    for (int64_t i = 0; i < tile_case_elements(&c, output); i++) {
        double got = get(&c, output, i), want = expected(&c, i);
        ck_assert_msg(fabs(got - want) <= 1e-5 * (1 + fabs(want)), "%s element %lld: %.9g, loops say %.9g",
                      name, (long long)i, got, want);
    }
    tile_case_close(&c);
    ent_arena_destroy(arena);
}

/* a[rows, depth] b[depth, columns] at one element. */
static double dot(const tile_case *c, uint32_t a, uint32_t b, int64_t row, int64_t column, int64_t depth,
                  int64_t columns) {
    double sum = 0;
    for (int64_t k = 0; k < depth; k++) sum += get(c, a, row * depth + k) * get(c, b, k * columns + column);
    return sum;
}

static double matmul(const tile_case *c, int64_t at) {
    return dot(c, 0, 1, at / 7, at % 7, 6, 7);
}

static double double_buffer(const tile_case *c, int64_t at) {
    return dot(c, 0, 1, at / 3, at % 3, 7, 3);
}

static double matmul_matmul(const tile_case *c, int64_t at) {
    double sum = 0;
    for (int64_t k = 0; k < 5; k++) sum += fmax(0, dot(c, 0, 1, at / 4, k, 3, 5)) * get(c, 2, k * 4 + at % 4);
    return sum;
}

/* x[1, channels, height, width], zero outside. */
static double pixel(const tile_case *c, uint32_t buffer, int64_t channel, int64_t row, int64_t column) {
    int64_t height = c->dims[buffer][2], width = c->dims[buffer][3];
    if (row < 0 || row >= height || column < 0 || column >= width) return 0;
    return get(c, buffer, (channel * height + row) * width + column);
}

static double conv(const tile_case *c, int64_t at) {
    int64_t channel = at / 9, row = at / 3 % 3, column = at % 3;
    double sum = get(c, 2, channel);
    for (int64_t i = 0; i < 3; i++)
        for (int64_t y = 0; y < 3; y++)
            for (int64_t x = 0; x < 3; x++)
                sum += pixel(c, 0, i, 2 * row + y - 1, 2 * column + x - 1) *
                       get(c, 1, ((channel * 3 + i) * 3 + y) * 3 + x);
    return fmax(0, sum);
}

static double max_pool(const tile_case *c, int64_t at) {
    int64_t channel = at / 9, row = at / 3 % 3, column = at % 3;
    double best = -INFINITY;
    for (int64_t y = 2 * row - 1; y < 2 * row + 2; y++)
        for (int64_t x = 2 * column - 1; x < 2 * column + 2; x++)
            if (y >= 0 && y < 5 && x >= 0 && x < 5) best = fmax(best, pixel(c, 0, channel, y, x));
    return best;
}

static double softmax(const tile_case *c, int64_t at) {
    double sum = 0;
    for (int64_t k = 0; k < 5; k++) sum += exp(get(c, 0, at / 5 * 5 + k));
    return exp(get(c, 0, at)) / sum;
}

static double layer_norm(const tile_case *c, int64_t at) {
    double mean = 0, variance = 0;
    for (int64_t k = 0; k < 6; k++) mean += get(c, 0, at / 6 * 6 + k) / 6;
    for (int64_t k = 0; k < 6; k++) variance += pow(get(c, 0, at / 6 * 6 + k) - mean, 2) / 6;
    return (get(c, 0, at) - mean) / sqrt(variance + 1e-5) * get(c, 1, at % 6) + get(c, 2, at % 6);
}

static double attention(const tile_case *c, int64_t at) {
    int64_t head = at / 12, query = at / 3 % 4, column = at % 3;
    double sum = 0, weighted = 0;
    for (int64_t key = 0; key < 5; key++) {
        double score = 0;
        for (int64_t k = 0; k < 3; k++)
            score += get(c, 0, (head * 4 + query) * 3 + k) * get(c, 1, (head * 5 + key) * 3 + k);
        double weight = exp(score / sqrt(3.0));
        sum += weight;
        weighted += weight * get(c, 2, (head * 5 + key) * 3 + column);
    }
    return weighted / sum;
}

static double clip6(double x) {
    return fmin(fmax(x, 0), 6);
}

/* The expanded image of the bottleneck; its padding is zero after the activation. */
static double expanded(const tile_case *c, int64_t channel, int64_t row, int64_t column) {
    double sum = get(c, 2, channel);
    if (row < 0 || row >= 5 || column < 0 || column >= 5) return 0;
    for (int64_t i = 0; i < 4; i++) sum += pixel(c, 0, i, row, column) * get(c, 1, channel * 4 + i);
    return clip6(sum);
}

static double bottleneck(const tile_case *c, int64_t at) {
    int64_t output = at / 25, row = at / 5 % 5, column = at % 5;
    double sum = 0;
    for (int64_t channel = 0; channel < 6; channel++) {
        double depthwise = 0;
        for (int64_t y = 0; y < 3; y++)
            for (int64_t x = 0; x < 3; x++)
                depthwise +=
                    expanded(c, channel, row + y - 1, column + x - 1) * get(c, 3, (channel * 3 + y) * 3 + x);
        sum += clip6(depthwise) * get(c, 4, output * 6 + channel);
    }
    return sum;
}

/* Scatter form: every input element adds to the outputs it reaches. */
static double transposed_conv(const tile_case *c, int64_t at) {
    int64_t output = at / 25, row = at / 5 % 5, column = at % 5;
    double sum = 0;
    for (int64_t i = 0; i < 2; i++)
        for (int64_t y = 0; y < 3; y++)
            for (int64_t x = 0; x < 3; x++)
                for (int64_t ky = 0; ky < 3; ky++)
                    for (int64_t kx = 0; kx < 3; kx++)
                        if (2 * y + ky - 1 == row && 2 * x + kx - 1 == column)
                            sum += pixel(c, 0, i, y, x) * get(c, 1, ((i * 3 + output) * 3 + ky) * 3 + kx);
    return sum;
}

static double nearest(const tile_case *c, int64_t at) {
    int64_t row = at / 7 / 2, column = at % 7 / 2;
    return column < 3 ? get(c, 0, row * 4 + column) : -9;
}

static double gather_rows(const tile_case *c, int64_t at) {
    int64_t row = (int64_t)get(c, 1, at / 3);
    return row < 5 ? get(c, 0, row * 3 + at % 3) : -1;
}

static double gather_positions(const tile_case *c, int64_t at) {
    return 100 + (double)(at / 4 * 40 + at % 4) + get(c, 1, at);
}

static double gram(const tile_case *c, int64_t at) {
    double sum = 0;
    for (int64_t n = 0; n < c->symbols[0]; n++) sum += get(c, 0, n * 3 + at / 3) * get(c, 0, n * 3 + at % 3);
    return sum;
}

static double half(const tile_case *c, int64_t at) {
    (void)at;
    ck_assert_int_eq(c->dims[2][1], (2 * c->symbols[0] + 3) / 4);
    return 0.5;
}

static double reordered(const tile_case *c, int64_t at) {
    double value = get(c, 0, at % 3 * 2 + at / 3) * 8; /* [2,3] as [3,2], transposed */
    return trunc(value);
}

static double int8(const tile_case *c, int64_t at) {
    double sum = -100;
    for (int64_t k = 0; k < 3; k++) sum += get(c, 0, at / 2 * 3 + k) * get(c, 1, at % 2 * 3 + k);
    return sum;
}

static const struct entry {
    const char *name;
    uint32_t output;
    reference expected;
} entries[] = {
    {"matmul", 2, matmul},
    {"double_buffer", 2, double_buffer},
    {"matmul_matmul", 3, matmul_matmul},
    {"conv_stride_padding", 3, conv},
    {"max_pool", 1, max_pool},
    {"softmax", 1, softmax},
    {"layer_norm", 3, layer_norm},
    {"attention_online_softmax", 3, attention},
    {"pointwise_depthwise_pointwise", 5, bottleneck},
    {"transposed_conv", 2, transposed_conv},
    {"nearest_resize", 1, nearest},
    {"gather", 2, gather_rows},
    {"gather", 3, gather_positions},
    {"reshape_permute", 1, reordered},
    {"int8_mma", 2, int8},
};

START_TEST(program_agrees_with_loops) {
    check_program(entries[_i].name, NULL, entries[_i].output, entries[_i].expected);
}
END_TEST

START_TEST(open_symbol_at_three_sizes) {
    for (int64_t n = 1; n <= 7; n += 3) {
        check_program("open_symbol", &n, 1, gram);
        check_program("open_symbol", &n, 2, half);
    }
}
END_TEST

/* Sizes only the run knows can be wrong: a status, not a crash. */
START_TEST(bad_sizes_are_refused) {
    ent_arena *arena = ent_arena_create(0);
    ent_tile_program *program = load(arena, "open_symbol");
    void *memory[3] = {NULL, NULL, NULL};
    ent_ops_error error;
    const int64_t bad[] = {INT64_MAX, -5, INT64_MIN, INT64_MAX / 2};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ent_ops_tile_interpret(program, memory, &bad[i], NULL, &error),
                         ENT_CODE_INVALID_ARGUMENT);
    int64_t good = 4;
    ck_assert_int_eq(ent_ops_tile_interpret(program, memory, &good, NULL, &error), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "a buffer has no memory");
    ent_arena_destroy(arena);
}
END_TEST

typedef struct counter {
    int live, left;
} counter;

static void *counted_allocate(void *context, size_t size) {
    counter *c = context;
    if (c->left-- <= 0) return NULL;
    c->live++;
    return malloc(size);
}

static void counted_release(void *context, void *memory) {
    counter *c = context;
    c->live--;
    free(memory);
}

START_TEST(memory_failure_leaks_nothing) {
    ent_arena *arena = ent_arena_create(0);
    ent_tile_program *program = load(arena, "pointwise_depthwise_pointwise");
    tile_case c;
    ent_ops_error error;
    ent_code code = ENT_CODE_OUT_OF_MEMORY;
    ck_assert(tile_case_open(&c, program, NULL));
    for (int left = 0; code != ENT_OK; left++) {
        counter count = {0, left};
        ent_ops_memory memory = {counted_allocate, counted_release, &count};
        code = ent_ops_tile_interpret(program, c.memory, NULL, &memory, &error);
        ck_assert(code == ENT_OK || code == ENT_CODE_OUT_OF_MEMORY);
        ck_assert_int_eq(count.live, 0);
        ck_assert_int_lt(left, 100);
    }
    tile_case_close(&c);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tile_programs");
    TCase *tcase = tcase_create("tile_programs");
    tcase_add_loop_test(tcase, program_agrees_with_loops, 0, (int)(sizeof entries / sizeof entries[0]));
    tcase_add_test(tcase, open_symbol_at_three_sizes);
    tcase_add_test(tcase, bad_sizes_are_refused);
    tcase_add_test(tcase, memory_failure_leaks_nothing);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
