/* The forms of a tile program: built, printed and parsed, encoded and decoded; hostile text and bytes. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "abi/ent_tile_codec.h"
#include "core/ops/ops.h"
#include "core/tile/tile.h"
#include "tests/unit/message_sample.h"

static const char *print(ent_arena *arena, const ent_tile_program *program) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_tile_print(program, &text);
    return text.data;
}

static ent_tile_program *parse(ent_arena *arena, const char *text) {
    ent_tile_program *program = NULL;
    ent_status status = ent_tile_parse(arena, "text", text, strlen(text), &program);
    ck_assert_msg(!status, "%s\n%s", ent_status_text(arena, status), text);
    return program;
}

static void check_bytes_equal(ent_str a, ent_str b) {
    ck_assert_uint_eq(a.size, b.size);
    ck_assert_mem_eq(a.data, b.data, a.size);
}

/* A matmul of any M by 64 by 32 through the builder, with every kind of helper. */
static ent_tile_program *build(ent_arena *arena) {
    ent_tile_builder b;
    ent_tile_program *program = NULL;
    ent_tile_builder_init(&b, arena, "built \"by\" hand");
    ent_dim m = ent_tile_builder_symbol(&b, "batch size");
    ent_dim half = ent_tile_builder_expr(&b, ENT_EXPR_CEILDIV, m, 2);
    ck_assert_int_eq(ent_tile_builder_expr(&b, ENT_EXPR_CEILDIV, m, 2), half);
    ck_assert_int_eq(ent_tile_builder_expr(&b, ENT_EXPR_MUL, 6, 7), 42);
    ent_dim minus = ent_tile_builder_expr(&b, ENT_EXPR_SUB, 6, 7);
    ck_assert(!ent_dim_is_const(minus));
    ent_dim a_dims[2] = {m, 64}, b_dims[2] = {64, 32}, c_dims[3] = {1, m, 32};
    ent_layout plain = ent_layout_plain(2), last = ent_layout_channels_last(3);
    last.block_count = 2;
    last.block_axis[0] = 1;
    last.block_size[0] = 4;
    last.block_axis[1] = 2;
    last.block_size[1] = 16;
    uint32_t row = ent_tile_builder_grid(&b, m, 8), column = ent_tile_builder_grid(&b, 32, 16);
    uint32_t in = ent_tile_builder_buffer(&b, ENT_ROLE_INPUT, ENT_DTYPE_F32, 2, a_dims, &plain);
    uint32_t weights = ent_tile_builder_buffer(&b, ENT_ROLE_CONSTANT, ENT_DTYPE_F32, 2, b_dims, &plain);
    uint32_t out = ent_tile_builder_buffer(&b, ENT_ROLE_OUTPUT, ENT_DTYPE_F32, 3, c_dims, &last);
    uint32_t sum = ent_tile_builder_value2(&b, ENT_SPACE_REGISTER, 8, 16);
    uint32_t ta = ent_tile_builder_value2(&b, ENT_SPACE_LOCAL, 8, 4),
             tb = ent_tile_builder_value2(&b, ENT_SPACE_SHARED, 4, 16);
    uint32_t four = ent_tile_builder_value4(&b, ENT_SPACE_LOCAL, 2, 4, 1, 16);
    ent_tile_builder_fill(&b, sum, 0.1);
    uint32_t k = ent_tile_builder_loop(&b, 0, 64, 4);
    ent_tile_access at = ent_tile_builder_access(&b, in);
    ent_tile_access_set(&at, 0, 0, row, 0, 1);
    ent_tile_access_set(&at, 1, -3, k, 1, 1);
    ent_tile_access_term(&at, 1, column, -2);
    at.index[1].bound = half;
    ent_tile_builder_load(&b, ta, &at, -1.0 / 0.0);
    at = ent_tile_builder_access(&b, weights);
    ent_tile_access_set(&at, 0, 0, k, 0, 1);
    ent_tile_access_set(&at, 1, 0, column, 1, 1);
    ent_tile_builder_copy(&b, tb, &at, 0);
    ent_tile_builder_wait(&b, 0);
    ent_tile_builder_mma(&b, sum, ta, tb, 0);
    ent_tile_builder_end(&b);
    ent_tile_builder_map1(&b, ENT_MAP_CLIP, sum, sum, 0, 6);
    ent_tile_builder_map2(&b, ENT_MAP_ADD, sum, sum, sum);
    ent_tile_builder_map3(&b, ENT_MAP_FMA, sum, sum, sum, sum);
    ent_tile_builder_reshape(&b, four, sum);
    at = ent_tile_builder_access(&b, out);
    ent_tile_access_set(&at, 1, 0, row, 0, 1);
    ent_tile_access_set(&at, 2, 0, column, 1, 1);
    ent_tile_builder_store(&b, &at, sum);
    ent_status status = ent_tile_builder_finish(&b, &program);
    ck_assert_msg(!status, "%s", ent_status_text(arena, status));
    return program;
}

START_TEST(built_program_prints_and_parses) {
    static const char expected[] = "tile_program \"built \\\"by\\\" hand\" {\n"
                                   "  symbol \"batch size\"\n"
                                   "  expr e0 = symbol \"batch size\"\n"
                                   "  expr e1 = e0 ceildiv 2\n"
                                   "  expr e2 = const -1\n"
                                   "  grid v0: extent e0 step 8\n"
                                   "  grid v1: extent 32 step 16\n"
                                   "  buffer b0: input f32[e0, 64]\n"
                                   "  buffer b1: constant f32[64, 32]\n"
                                   "  buffer b2: output f32[1, e0, 32] order(0, 2, 1) block(1:4, 2:16)\n"
                                   "  tile t0: f32[8, 16] register\n"
                                   "  tile t1: f32[8, 4] local\n"
                                   "  tile t2: f32[4, 16] shared\n"
                                   "  tile t3: f32[2, 4, 1, 16] local\n"
                                   "  t0 = fill 0.1\n"
                                   "  loop v2 = 0 to 64 step 4 {\n"
                                   "    t1 = load b0[v0 + @0, v2 - 2*v1 + @1 - 3 bound e1] outside -inf\n"
                                   "    t2 = copy b1[v2 + @0, v1 + @1] outside 0\n"
                                   "    wait 0\n"
                                   "    t0 += mma t1, t2\n"
                                   "  }\n"
                                   "  t0 = clip(0, 6) t0\n"
                                   "  t0 = add t0, t0\n"
                                   "  t0 = fma t0, t0, t0\n"
                                   "  t3 = reshape t0\n"
                                   "  store t0 -> b2[0, v0 + @0, v1 + @1]\n"
                                   "}\n";
    ent_arena *arena = ent_arena_create(0);
    ent_tile_program *program = build(arena);
    ck_assert_str_eq(print(arena, program), expected);
    ent_tile_program *parsed = parse(arena, expected);
    ck_assert_str_eq(print(arena, parsed), expected);
    /* Not only the text: the programs' bytes are the same. */
    ent_str a, b;
    ck_assert_ptr_null(ent_tile_encode(program, arena, &a));
    ck_assert_ptr_null(ent_tile_encode(parsed, arena, &b));
    check_bytes_equal(a, b);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(builder_reports_misuse) {
    ent_arena *arena = ent_arena_create(0);
    ent_tile_builder b;
    ent_tile_program *program = NULL;
    ent_tile_builder_init(&b, arena, "misuse");
    ent_tile_builder_map2(&b, ENT_MAP_ADD, 0, 1, 2);
    ent_status status = ent_tile_builder_finish(&b, &program);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "tile.invalid");
    ck_assert_str_eq(status->place, "tile program misuse");
    ck_assert_str_eq(status->text, "op 0 (map): tile 1 does not exist");
    ent_arena_destroy(arena);
}
END_TEST

/* Index terms at the edges of int64, every dtype, odd spacing. */
START_TEST(odd_indices_round_trip) {
    static const char *const indices[] = {"0",
                                          "-9223372036854775808",
                                          "9223372036854775807",
                                          "v0",
                                          "-v0",
                                          "0*v0",
                                          "-9223372036854775808*v0",
                                          "v0 + -9223372036854775808*v0",
                                          "v0 + -9223372036854775808",
                                          "@0",
                                          "-@0",
                                          "-2*@0",
                                          "0*@0 + 5",
                                          "v0 - v0 + 3*v0 - @0 - 7",
                                          "(v0) / 1 exact",
                                          "(-v0 + 2*@0 - 1) / 9223372036854775807",
                                          "(0) / 3 exact gather t1 bound e0",
                                          "v0 gather t1",
                                          "5 bound 0"};
    for (size_t i = 0; i < sizeof indices / sizeof indices[0]; i++) {
        ent_arena *arena = ent_arena_create(0);
        const char *text =
            ent_arena_format(arena,
                             "tile_program \"\" {\n  symbol N.x\n  expr e0 = symbol N.x\n"
                             "  grid v0: extent 4 step 2\n  buffer b0: input f32[4]\n"
                             "  tile t0: f32[2] local\n  tile t1: i64[2] local\n  t1 = fill 0\n"
                             "  t0 = load b0[%s] outside nan\n}\n",
                             indices[i]);
        ck_assert_str_eq(print(arena, parse(arena, text)), text);
        ent_arena_destroy(arena);
    }
}
END_TEST

START_TEST(bad_text_is_refused_with_its_line) {
    static const char *const bad[] = {
        "",
        "tile_program",
        "tile_program \"x\" {",
        "tile_program \"x\" { } }",
        "tile_program \"x\" {\n buffer b1: input f32[4] }",
        "tile_program \"x\" {\n buffer b0: input f33[4] }",
        "tile_program \"x\" {\n buffer b0: input f32[1,1,1,1,1,1,1,1,1] }",
        "tile_program \"x\" {\n buffer b0: input f32[-4] }",
        "tile_program \"x\" {\n buffer b0: input f32[4] order(1) }",
        "tile_program \"x\" {\n buffer b0: input f32[4] block(0:0) }",
        "tile_program \"x\" {\n tile t0: f32[1,1,1,1,1] local }",
        "tile_program \"x\" {\n t0 = fill 0 }",
        "tile_program \"x\" {\n tile t0: f32[1] local\n t99999999999999999999 = fill 0 }",
        "tile_program \"x\" {\n tile t0: f32[1] local\n t0 = load b0[0] outside 0 }",
        "tile_program \"x\" {\n buffer b0: input f32[4] tile t0: f32[1] local\n t0 = load b0[@0 + @0] "
        "outside 0 }",
        "tile_program \"x\" {\n buffer b0: input f32[4] tile t0: f32[1] local\n t0 = load "
        "b0[9223372036854775807 + 1] outside 0 }",
        "tile_program \"x\" {\n buffer b0: input f32[4] tile t0: f32[1] local\n t0 = load "
        "b0[v0+v0+v0+v0+v0+v0+v0] outside 0 }",
        "tile_program \"x\" {\n expr e0 = symbol N }",
        "tile_program \"x\" {\n expr e0 = 1 xor 2 }",
        "tile_program \"x\" {\n loop v1 = 0 to 3 step 1 { } }",
        "tile_program \"x\" {\n loop v0 = 0 to 3 step 1 { }\n grid v1: extent 1 step 1 }",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ent_arena *arena = ent_arena_create(0);
        ent_tile_program *program = NULL;
        ent_status status = ent_tile_parse(arena, "bad", bad[i], strlen(bad[i]), &program);
        ck_assert_msg(status != NULL, "accepted: %s", bad[i]);
        ck_assert_str_eq(status->rule, "text.syntax");
        ck_assert_msg(strncmp(status->place, "bad:", 4) == 0, "%s", status->place);
        ent_arena_destroy(arena);
    }
}
END_TEST

/* ---- bytes ---- */

static void *allocate(void *context, size_t size) {
    return ent_arena_array(context, size, 1);
}

static uint32_t pick(uint64_t *state) {
    uint64_t r = sample_next(state);
    return r % 5 == 0 ? ENT_TILE_NONE : (uint32_t)(r >> 32) >> (r % 30);
}

static void random_access(uint64_t *s, ent_tile_access *a) {
    a->buffer = pick(s);
    a->rank = (uint32_t)(sample_next(s) % (ENT_MAX_RANK + 1));
    for (uint32_t d = 0; d < a->rank; d++) {
        ent_tile_index *x = &a->index[d];
        x->base = (int64_t)sample_next(s);
        x->term_count = (uint32_t)(sample_next(s) % (ENT_TILE_MAX_TERMS + 1));
        x->tile_axis = pick(s);
        x->step = (int64_t)sample_next(s);
        x->divisor = (int64_t)sample_next(s);
        x->exact = pick(s);
        x->gather = pick(s);
        x->bound = sample_next(s) % 2 ? ENT_TILE_BOUND_ALL : (int64_t)sample_next(s);
        for (uint32_t t = 0; t < x->term_count; t++)
            x->terms[t] = (ent_tile_term){pick(s), 0, (int64_t)sample_next(s)};
    }
}

static void random_op(uint64_t *s, ent_tile_op *op) {
    op->opcode = pick(s);
    op->kind = pick(s);
    op->dst = pick(s);
    op->source_count = (uint32_t)(sample_next(s) % (ENT_TILE_MAX_SOURCES + 1));
    for (uint32_t i = 0; i < op->source_count; i++) op->source[i] = pick(s);
    op->access = pick(s);
    op->flags = pick(s);
    op->axis_mask = pick(s);
    op->variable = pick(s);
    op->begin = (int64_t)sample_next(s);
    op->end = (int64_t)sample_next(s);
    op->step = (int64_t)sample_next(s);
    op->count = pick(s);
    for (uint32_t i = 0; i < ENT_TILE_MAX_RANK; i++) op->perm[i] = (uint8_t)sample_next(s);
    op->f[0] = ent_bits_to_f64(sample_next(s));
    op->f[1] = -0.0;
}

/* A program whose every field is arbitrary: legal or not, its bytes must carry it. */
static ent_tile_program random_program(ent_arena *arena, uint64_t *s) {
    ent_tile_program p;
    memset(&p, 0, sizeof p);
    p.grid_count = p.buffer_count = p.value_count = p.access_count = p.op_count = 3;
    p.expr_count = p.symbol_count = 2;
    p.variable_count = pick(s);
    p.name = (ent_str){"random", sample_next(s) % 7};
    ent_tile_axis *grid = ent_arena_array(arena, 3, sizeof *grid);
    ent_tile_buffer *buffers = ent_arena_array(arena, 3, sizeof *buffers);
    ent_tile_value *values = ent_arena_array(arena, 3, sizeof *values);
    ent_tile_access *accesses = ent_arena_array(arena, 3, sizeof *accesses);
    ent_tile_op *ops = ent_arena_array(arena, 3, sizeof *ops);
    ent_expr *exprs = ent_arena_array(arena, 2, sizeof *exprs);
    ent_str *symbols = ent_arena_array(arena, 2, sizeof *symbols);
    for (uint32_t i = 0; i < 3; i++) {
        grid[i] = (ent_tile_axis){(int64_t)sample_next(s), (int64_t)sample_next(s)};
        buffers[i].role = pick(s);
        buffers[i].dtype = pick(s);
        buffers[i].rank = (uint32_t)(sample_next(s) % (ENT_MAX_RANK + 1));
        for (uint32_t d = 0; d < buffers[i].rank; d++) buffers[i].dims[d] = (int64_t)sample_next(s);
        buffers[i].layout = ent_layout_channels_last(buffers[i].rank);
        values[i].dtype = pick(s);
        values[i].space = pick(s);
        values[i].rank = (uint32_t)(sample_next(s) % (ENT_TILE_MAX_RANK + 1));
        for (uint32_t d = 0; d < values[i].rank; d++) values[i].shape[d] = (int64_t)sample_next(s);
        random_access(s, &accesses[i]);
        random_op(s, &ops[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        exprs[i] = (ent_expr){pick(s), 0, (int64_t)sample_next(s), (int64_t)sample_next(s)};
        symbols[i] = (ent_str){"symbol", sample_next(s) % 7};
    }
    p.grid = grid;
    p.buffers = buffers;
    p.values = values;
    p.accesses = accesses;
    p.ops = ops;
    p.exprs = exprs;
    p.symbols = symbols;
    return p;
}

/* Field by field: the arrays hold no pointers and were zeroed, so bytes compare. */
static void check_same_program(const ent_tile_program *a, const ent_tile_program *b) {
    ck_assert_uint_eq(a->variable_count, b->variable_count);
    ck_assert_uint_eq(a->name.size, b->name.size);
    ck_assert_uint_eq(a->grid_count, b->grid_count);
    ck_assert_uint_eq(a->buffer_count, b->buffer_count);
    ck_assert_uint_eq(a->value_count, b->value_count);
    ck_assert_uint_eq(a->access_count, b->access_count);
    ck_assert_uint_eq(a->op_count, b->op_count);
    ck_assert_uint_eq(a->expr_count, b->expr_count);
    ck_assert_uint_eq(a->symbol_count, b->symbol_count);
    ck_assert_mem_eq(a->grid, b->grid, a->grid_count * sizeof *a->grid);
    ck_assert_mem_eq(a->buffers, b->buffers, a->buffer_count * sizeof *a->buffers);
    ck_assert_mem_eq(a->values, b->values, a->value_count * sizeof *a->values);
    ck_assert_mem_eq(a->accesses, b->accesses, a->access_count * sizeof *a->accesses);
    ck_assert_mem_eq(a->ops, b->ops, a->op_count * sizeof *a->ops);
    ck_assert_mem_eq(a->exprs, b->exprs, a->expr_count * sizeof *a->exprs);
    for (uint32_t i = 0; i < a->symbol_count; i++) ck_assert_uint_eq(a->symbols[i].size, b->symbols[i].size);
}

START_TEST(bytes_are_inverse) {
    uint64_t state = 11;
    for (int round = 0; round < 300; round++) {
        ent_arena *arena = ent_arena_create(0);
        ent_tile_program program = random_program(arena, &state), decoded;
        ent_str bytes, again;
        ck_assert_ptr_null(ent_tile_encode(&program, arena, &bytes));
        ck_assert_int_eq(ent_tile_program_decode(bytes.data, bytes.size, allocate, arena, &decoded), ENT_OK);
        check_same_program(&program, &decoded);
        ck_assert_ptr_null(ent_tile_encode(&decoded, arena, &again));
        check_bytes_equal(bytes, again);
        ent_arena_destroy(arena);
    }
}
END_TEST

/* Damaged bytes: decoded or refused, verified or refused, printed if legal; never a stray access (the
 * sanitizer's to say). */
START_TEST(hostile_bytes) {
    ent_arena *outer = ent_arena_create(0);
    ent_str bytes;
    uint64_t state = 5;
    uint32_t legal = 0, refused = 0;
    ck_assert_ptr_null(ent_tile_encode(build(outer), outer, &bytes));
    for (int round = 0; round < 4000; round++) {
        ent_arena *arena = ent_arena_create(0);
        ent_tile_program *program = NULL;
        size_t size = round % 16 == 0 ? sample_next(&state) % bytes.size : bytes.size;
        uint8_t *damaged = malloc(size ? size : 1);
        memcpy(damaged, bytes.data, size);
        for (uint64_t i = 1 + sample_next(&state) % 3; size > 0 && i > 0; i--)
            damaged[sample_next(&state) % size] ^= (uint8_t)(1u << sample_next(&state) % 8);
        ent_status status = ent_tile_decode(arena, damaged, size, &program);
        free(damaged);
        if (status)
            refused++;
        else
            legal++, parse(arena, print(arena, program));
        ent_arena_destroy(arena);
    }
    ck_assert_uint_gt(legal, 0);
    ck_assert_uint_gt(refused, 0);
    ent_arena_destroy(outer);
}
END_TEST

/* Damaged text: parsed or refused. */
START_TEST(hostile_text) {
    ent_arena *outer = ent_arena_create(0);
    const char *text = print(outer, build(outer));
    size_t size = strlen(text);
    uint64_t state = 6;
    for (int round = 0; round < 4000; round++) {
        ent_arena *arena = ent_arena_create(0);
        ent_tile_program *program = NULL;
        char *damaged = malloc(size);
        memcpy(damaged, text, size);
        for (uint64_t i = 1 + sample_next(&state) % 3; i > 0; i--)
            damaged[sample_next(&state) % size] = text[sample_next(&state) % size];
        size_t cut = round % 8 == 0 ? sample_next(&state) % size : size;
        if (!ent_tile_parse(arena, "damaged", damaged, cut, &program)) print(arena, program);
        free(damaged);
        ent_arena_destroy(arena);
    }
    ent_arena_destroy(outer);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tile_forms");
    TCase *tcase = tcase_create("tile_forms");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, built_program_prints_and_parses);
    tcase_add_test(tcase, builder_reports_misuse);
    tcase_add_test(tcase, odd_indices_round_trip);
    tcase_add_test(tcase, bad_text_is_refused_with_its_line);
    tcase_add_test(tcase, bytes_are_inverse);
    tcase_add_test(tcase, hostile_bytes);
    tcase_add_test(tcase, hostile_text);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
