/* Every rule of the tile verifier: a small legal program with one thing broken, and the words that must name
 * it. */
#include <check.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/tile/tile.h"

/* A body over fixed declarations: b0 f32[4,3] input, b1 output, b2 i8[4] constant; tiles as named below. */
static const char declarations[] = "tile_program \"p\" {\n"
                                   "grid v0: extent 4 step 2\n"
                                   "buffer b0: input f32[4, 3]\n"
                                   "buffer b1: output f32[4, 3]\n"
                                   "buffer b2: constant i8[4]\n"
                                   "tile t0: f32[2, 3] local\n"
                                   "tile t1: f32[2, 3] local\n"
                                   "tile t2: f32[2, 1] register\n"
                                   "tile t3: f32[3, 2] local\n"
                                   "tile t4: f32[2, 2] register\n"
                                   "tile t5: i32[2, 1] local\n"
                                   "tile t6: bool[2, 3] local\n"
                                   "tile t7: i8[2, 3] local\n"
                                   "tile t8: f16[2, 3] local\n"
                                   "t0 = load b0[v0 + @0, @1] outside 0\n";

static const struct rule {
    const char *body;
    const char *error; /* NULL: legal */
} rules[] = {
    {"store t0 -> b1[v0 + @0, @1]", NULL},
    {"t1 = relu t0 store t1 -> b1[v0 + @0, @1]", NULL},
    {"t1 = relu t3", "op 1 (map): t3 is read before it is written"},
    {"t1 = add t0, t2", "t2 is read before it is written"},
    {"t2 = reduce_sum t0 over 1 t1 = add t0, t2", NULL},
    {"t2 = reduce_sum t0 over 0", "op 1 (reduce): axis 0 of t2 has not the reduced extent"},
    {"t2 = reduce_sum t0 over 3", "axes are not of t0"},
    {"t6 = fill 1 t6 = reduce_sum t6 over 1", "reduces into its own source"},
    {"t3 = fill 0 t4 = fill 0 t4 += mma t0, t3", NULL},
    {"t3 = fill 0 t4 += mma t0, t3", "op 2 (mma): t4 is read before it is written"},
    {"t1 = fill 0 t4 = fill 0 t4 += mma t0, t1", "shapes are not [m.., k] x [k, n] -> [m.., n]"},
    {"t1 = fill 0 t4 = fill 0 t4 += mma t0, t1 transposed", NULL},
    {"t8 = fill 0 t4 = fill 0 t4 += mma t0, t8 transposed", "dtypes f32 x f16 -> f32 are not"},
    {"t4 = fill 0 t4 += mma t4, t4", "accumulates into its own source"},
    {"t6 = less t0, t0", NULL},
    {"t1 = less t0, t0", "op 1 (map): dtypes are not those that less takes"},
    {"t7 = fill 0 t7 = exp t7", "dtypes are not those that exp takes"},
    {"t7 = fill 0 t7 = add t7, t7", NULL},
    {"t7 = fill 0 t1 = add t0, t7", "dtypes are not those that add takes"},
    {"t7 = copy t0", NULL},
    {"t6 = fill 1 t1 = select t6, t0, t0", NULL},
    {"t1 = select t0, t0, t0", "dtypes are not those that select takes"},
    {"t3 = copy t0", "the shape of t0 does not fit t3"},
    {"t3 = reshape t0", NULL},
    {"t4 = reshape t0", "element counts differ"},
    {"t3 = permute t0 (1, 0)", NULL},
    {"t3 = permute t0 (1, 1)", "axis 1 has another extent"},
    {"t4 = fill 0 t4 = permute t4 (0, 1)", "destination is its own source"},
    {"t5 = iota 3 along 0", NULL},
    {"t7 = iota 3 along 0", "dtype is not i32, i64 or f32"},
    {"t5 = iota 3 along 2", "counts along more than one axis, or one that t5 lacks"},
    {"t5 = iota 3 + v7 along 0", "uses v7 outside its loop"},
    {"loop v1 = 0 to 3 step 1 { t1 = load b0[v1, @1] outside 0 }", NULL},
    {"loop v1 = 0 to 3 step 1 { } t1 = load b0[v1, @1] outside 0",
     "op 3 (load): index 0 uses v1 outside its loop"},
    {"loop v1 = 0 to 3 step 0 { }", "step is below 1"},
    {"loop v1 = 0 to 3 step 1 { t1 = fill 0 } t1 = relu t1", NULL},
    {"loop v1 = 3 to 3 step 1 { t1 = fill 0 } t1 = relu t1", "t1 is read before it is written"},
    {"loop v1 = 0 to 3 step 1 { t1 = add t1, t0 }", "t1 is read before it is written"},
    {"loop v1 = 0 to 3 step 1 {", NULL /* replaced below: the closing brace ends the loop */},
    {"t1 = load b2[@0] outside 0", "op 1 (load): buffer 2 is i8, t1 is f32"},
    {"t2 = load b0[v0 + @0, @2] outside 0", "index 1 advances with tile axis 2, t2 has rank 2"},
    {"t1 = load b0[(v0) / 0, @1] outside 0", "access 1, index 0: divisor is below 1"},
    {"t1 = load b0[v9, @1] outside 0", "variable 9 does not exist"},
    {"t1 = load b0[0 gather t0, @1] outside 0", "gathers through no i32 or i64 tile"},
    {"t1 = load b0[0 gather t5, @1] outside 0", "t5 is read before it is written"},
    {"t5 = fill 0 t1 = load b0[0 gather t5, @1] outside 0", NULL},
    {"t5 = fill 0 t3 = load b0[0 gather t5, @1] outside 0",
     "gathers through t5, whose shape does not fit t3"},
    {"t5 = fill 0 store t0 -> b1[0 gather t5, @1]", NULL},
    {"store t0 -> b1[v0, @1]", "no index advances with tile axis 0, which has 2 elements"},
    {"store t0 -> b0[v0 + @0, @1]", "buffer 0 is neither output nor scratch"},
    {"t1 = copy b0[@0, @1] outside 0 wait 0 t1 = relu t1", NULL},
    {"t1 = copy b0[@0, @1] outside 0", "the copy into t1 is never waited for"},
    {"t1 = copy b0[@0, @1] outside 0 wait 1 t1 = relu t1", "t1 is used before a wait for the copy into it"},
    {"t1 = copy b0[@0, @1] outside 0 t1 = fill 0 wait 0", "t1 is written before a wait for the copy into it"},
    {"t0 = copy b0[@0, @1] outside 0 t1 = copy b0[@0, @1] outside 0 wait 1 t0 = relu t0 wait 0", NULL},
    {"loop v1 = 0 to 3 step 1 { t1 = copy b0[@0, @1] outside 0 } wait 0",
     "copies under way differ between the start and the end of the loop at op 1"},
};

START_TEST(body_rules) {
    ent_arena *arena = ent_arena_create(0);
    ent_tile_program *program = NULL;
    const struct rule *rule = &rules[_i];
    const char *text = ent_arena_format(arena, "%s%s\n}\n", declarations, rule->body);
    ent_status status = ent_tile_parse(arena, "rule", text, strlen(text), &program);
    if (strstr(rule->body, "step 1 {") && !strchr(rule->body, '}')) {
        ck_assert_ptr_nonnull(status); /* syntax: the program's own brace is missing */
    } else if (rule->error) {
        ck_assert_msg(status != NULL, "accepted: %s", rule->body);
        ck_assert_str_eq(status->rule, "tile.invalid");
        ck_assert_msg(strstr(status->text, rule->error) != NULL, "%s\n  said: %s\n  not: %s", rule->body,
                      status->text, rule->error);
    } else {
        ck_assert_msg(!status, "%s: %s", rule->body, status ? status->text : "");
    }
    ent_arena_destroy(arena);
}
END_TEST

/* ---- what text cannot say: broken tables ---- */

typedef struct parts {
    ent_tile_program program;
    ent_tile_axis grid[1];
    ent_tile_buffer buffers[3];
    ent_tile_value values[9];
    ent_tile_access accesses[2];
    ent_tile_op ops[2];
    ent_expr exprs[2];
    ent_str symbols[1];
} parts;

static void make_parts(ent_arena *arena, parts *p) {
    ent_tile_program *made = NULL;
    const char *text = ent_arena_format(arena, "%sstore t0 -> b1[v0 + @0, @1]\n}\n", declarations);
    ck_assert_ptr_null(ent_tile_parse(arena, "parts", text, strlen(text), &made));
    memset(p, 0, sizeof *p);
    memcpy(p->grid, made->grid, sizeof p->grid);
    memcpy(p->buffers, made->buffers, sizeof p->buffers);
    memcpy(p->values, made->values, sizeof p->values);
    memcpy(p->accesses, made->accesses, sizeof p->accesses);
    memcpy(p->ops, made->ops, sizeof p->ops);
    p->exprs[0].kind = ENT_EXPR_SYMBOL;
    p->exprs[1] = (ent_expr){ENT_EXPR_ADD, 0, -1, 5};
    p->symbols[0] = (ent_str){"N", 1};
    p->program = *made;
    p->program.grid = p->grid;
    p->program.buffers = p->buffers;
    p->program.values = p->values;
    p->program.accesses = p->accesses;
    p->program.ops = p->ops;
    p->program.exprs = p->exprs;
    p->program.expr_count = 2;
    p->program.symbols = p->symbols;
    p->program.symbol_count = 1;
}

#define BREAK(change, words)                                                                                 \
    do {                                                                                                     \
        parts p;                                                                                             \
        ent_ops_error error;                                                                                 \
        make_parts(arena, &p);                                                                               \
        ck_assert_int_eq(ent_ops_tile_verify(&p.program, &error), ENT_OK);                                   \
        change;                                                                                              \
        ck_assert_msg(ent_ops_tile_verify(&p.program, &error) == ENT_CODE_INVALID_ARGUMENT, "accepted: %s",  \
                      #change);                                                                              \
        ck_assert_msg(strstr(error.text, words) != NULL, "%s said: %s", #change, error.text);                \
    } while (0)

START_TEST(table_rules) {
    ent_arena *arena = ent_arena_create(0);
    BREAK(p.program.variable_count = 2, "2 variables declared, 1 used");
    BREAK(p.program.variable_count = 0, "grid axes first");
    BREAK(p.program.variable_count = 65, "at most 64 variables");
    BREAK(p.grid[0].step = 0, "grid axis 0: step is below 1");
    BREAK(p.grid[0].extent = -3, "grid axis 0: extent names no expression");
    BREAK(p.exprs[1].a = -2, "expression 1: refers to itself or a later one");
    BREAK(p.exprs[1].b = INT64_MIN, "expression 1: refers to itself or a later one");
    BREAK(p.exprs[0].a = 1, "symbol 1 does not exist");
    BREAK(p.exprs[0].kind = 0, "unknown kind 0");
    BREAK(p.exprs[1].kind = 11, "unknown kind 11");
    BREAK(p.buffers[0].role = 0, "buffer 0: unknown role 0");
    BREAK(p.buffers[0].role = 9, "buffer 0: unknown role 9");
    BREAK(p.buffers[1].dtype = ENT_DTYPE_STRING, "dtype string cannot be moved");
    BREAK(p.buffers[1].dtype = ENT_DTYPE_I4, "dtype i4 cannot be moved");
    BREAK(p.buffers[1].dtype = 12345, "cannot be moved");
    BREAK(p.buffers[1].rank = 9, "rank 9 over 8");
    BREAK(p.buffers[1].dims[1] = -9, "size 1 names no expression");
    BREAK(p.buffers[1].layout.order[1] = 0, "layout is not a strided one of rank 2");
    BREAK(p.buffers[1].layout.order[1] = 200, "layout is not a strided one");
    BREAK(p.buffers[1].layout.kind = ENT_LAYOUT_ANY, "layout is not a strided one");
    BREAK(p.buffers[1].layout.block_count = 3, "layout is not a strided one");
    BREAK(p.buffers[1].layout.block_count = 1, "layout is not a strided one");
    BREAK(p.values[2].rank = 0, "tile 2: rank 0 is not 1..4");
    BREAK(p.values[2].rank = 5, "tile 2: rank 5 is not 1..4");
    BREAK(p.values[2].shape[1] = 0, "tile 2: shape is empty");
    BREAK(p.values[2].shape[1] = INT64_MAX, "or over");
    BREAK(p.values[2].space = 4, "unknown space 4");
    BREAK(p.values[2].dtype = ENT_DTYPE_C64, "dtype c64 is not one of a tile");
    BREAK(p.accesses[0].buffer = 3, "access 0: buffer 3 does not exist");
    BREAK(p.accesses[0].rank = 3, "access 0: rank 3, its buffer has 2");
    BREAK(p.accesses[0].index[0].term_count = 7, "more than 6 terms");
    BREAK(p.accesses[0].index[0].exact = 2, "exact is neither 0 nor 1");
    BREAK(p.accesses[0].index[0].tile_axis = 4, "tile axis 4 does not exist");
    BREAK(p.accesses[0].index[0].gather = 9, "gathers through no i32 or i64 tile");
    BREAK(p.accesses[0].index[0].bound = -7, "bound names no expression");
    BREAK(p.ops[0].access = 2, "op 0 (load): access 2 does not exist");
    BREAK(p.ops[0].dst = 9, "op 0 (load): tile 9 does not exist");
    BREAK(p.ops[1].source[0] = ENT_TILE_NONE, "op 1 (store): tile 4294967295 does not exist");
    BREAK(p.ops[1].source_count = 2, "op 1 (store): takes 1 sources, not 2");
    BREAK(p.ops[0].opcode = 0, "op 0 (none): unknown opcode 0");
    BREAK(p.ops[0].opcode = 99, "op 0 (unknown): unknown opcode 99");
    BREAK(p.ops[0].opcode = ENT_TILE_END, "op 0 (end): no loop is open");
    BREAK(p.ops[0].opcode = ENT_TILE_MAP, "op 0 (map): unknown map 0");
    BREAK(p.ops[0].opcode = ENT_TILE_LOOP, "op 0 (loop): variable v4294967295 is not the next one");
    BREAK((p.symbols[0].size = 0, p.program.value_count = 1025), "more than 1024 tiles");
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(same_symbol_twice) {
    ent_tile_program program;
    ent_ops_error error;
    ent_str symbols[2] = {{"N", 1}, {"N", 1}};
    memset(&program, 0, sizeof program);
    ck_assert_int_eq(ent_ops_tile_verify(&program, NULL), ENT_OK);
    program.symbols = symbols;
    program.symbol_count = 2;
    ck_assert_int_eq(ent_ops_tile_verify(&program, &error), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, "symbols 0 and 1 have the same name");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tile_verify");
    TCase *tcase = tcase_create("tile_verify");
    tcase_add_loop_test(tcase, body_rules, 0, (int)(sizeof rules / sizeof rules[0]));
    tcase_add_test(tcase, table_rules);
    tcase_add_test(tcase, same_symbol_twice);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
