/* Loads and stores that go through tables of offsets (exec_table.c) against the interpreter: indices that
 * run, stand, turn round, jump and lie outside, on every axis and through two, beside divisors, blocks, and
 * steps. */
#include "cpu_program.h"

#define NONE ENT_TILE_NONE
#define AXES 3

typedef enum pattern { RUNS, REFLECTS, REPEATS, JUMPS, REVERSES, PATTERN_COUNT } pattern;

static const uint32_t dtypes[] = {ENT_DTYPE_F32, ENT_DTYPE_F64, ENT_DTYPE_I16, ENT_DTYPE_U8, ENT_DTYPE_I64};

typedef struct moved {
    build b;
    int64_t extent[AXES], tile[AXES];
    uint32_t variable[AXES];
} moved;

static uint32_t filled(moved *m, uint32_t dtype, double value) {
    uint32_t tile = build_tile(&m->b, dtype, AXES, 1, 1, 1, 0);
    build_fill(&m->b, tile, value);
    return tile;
}

/* Places along `axis`, a tile of that axis alone; JUMPS also through a second one. */
static uint32_t indices(moved *m, pattern p, uint32_t axis) {
    build *b = &m->b;
    uint32_t dtype = random_in(0, 1) ? ENT_DTYPE_I32 : ENT_DTYPE_I64;
    int64_t shape[4] = {1, 1, 1, 0};
    shape[axis] = m->tile[axis];
    if (p == JUMPS) {
        int64_t dims[AXES] = {1, 1, 1};
        uint32_t other = random_in(0, 2) ? axis : (uint32_t)random_in(0, AXES - 1);
        dims[axis] = m->extent[axis];
        dims[other] = m->extent[other];
        shape[other] = m->tile[other];
        uint32_t buffer = build_buffer(b, ENT_ROLE_INPUT, dtype, AXES, dims),
                 access = build_access(b, buffer);
        for (uint32_t a = 0; a < AXES; a++)
            if (dims[a] > 1) build_index(b, access, a, 0, m->variable[a], a, 1);
        uint32_t tile = build_tile(b, dtype, AXES, shape[0], shape[1], shape[2], 0);
        build_load(b, tile, access, 0);
        return tile;
    }
    uint32_t tile = build_tile(b, dtype, AXES, shape[0], shape[1], shape[2], 0);
    ent_tile_op *op = build_op(b, ENT_TILE_IOTA, tile);
    op->variable = m->variable[axis];
    op->step = 1;
    op->axis_mask = 1u << axis;
    op->f[0] = p == RUNS ? (double)random_in(-2, 2) : 0;
    if (p == RUNS) return tile;
    uint32_t made = build_tile(b, dtype, AXES, shape[0], shape[1], shape[2], 0);
    if (p == REPEATS) {
        build_map(b, ENT_MAP_DIV, made, tile, filled(m, dtype, (double)random_in(2, 3)), 0, 0, 0);
        return made;
    }
    uint32_t turn =
        filled(m, dtype, (double)(p == REVERSES ? m->extent[axis] - 1 : random_in(0, m->extent[axis])));
    build_map(b, ENT_MAP_SUB, made, turn, tile, 0, 0, 0);
    if (p == REFLECTS) build_map(b, ENT_MAP_ABS, made, made, 0, 0, 0, 0);
    return made;
}

static void begin(moved *m) {
    memset(m, 0, sizeof *m);
    build_begin(&m->b);
    for (uint32_t a = 0; a < AXES; a++) {
        m->extent[a] = a == AXES - 1 ? random_in(1, 70) : random_in(1, 6);
        m->tile[a] = random_in(0, 2) ? m->extent[a] : random_in(1, m->extent[a]);
        m->variable[a] = build_grid(&m->b, m->extent[a], m->tile[a]);
    }
}

static void arrange(moved *m, uint32_t buffer) {
    static const uint8_t orders[][AXES] = {{0, 1, 2}, {0, 1, 2}, {2, 0, 1}, {0, 2, 1}};
    build_order(&m->b, buffer, orders[random_in(0, 3)]);
    if (random_in(0, 3) == 0) build_block(&m->b, buffer, (uint8_t)random_in(0, AXES - 1), 4);
}

/* Every dim is gathered, divided, stepped or plain; what it reads may lie outside. */
static uint32_t load(moved *m, uint32_t dtype) {
    build *b = &m->b;
    int64_t dims[AXES];
    uint32_t gathers[AXES];
    for (uint32_t a = 0; a < AXES; a++) {
        dims[a] = m->extent[a] + random_in(-1, 2);
        if (dims[a] < 1) dims[a] = 1;
        gathers[a] = random_in(0, 1) ? NONE : indices(m, (pattern)random_in(0, PATTERN_COUNT - 1), a);
    }
    uint32_t buffer = build_buffer(b, ENT_ROLE_INPUT, dtype, AXES, dims);
    arrange(m, buffer);
    uint32_t access = build_access(b, buffer);
    for (uint32_t a = 0; a < AXES; a++) {
        if (gathers[a] != NONE) {
            b->accesses[access].index[a].gather = gathers[a];
            continue;
        }
        ent_tile_index *x = build_index(b, access, a, random_in(-1, 1), m->variable[a], a,
                                        random_in(0, 3) ? 1 : random_in(-1, 2));
        if (random_in(0, 2)) continue;
        x->divisor = random_in(2, 3);
        x->exact = random_in(0, 3) == 0;
    }
    uint32_t tile = build_tile(b, dtype, AXES, m->tile[0], m->tile[1], m->tile[2], 0);
    build_load(b, tile, access, (double)random_in(0, 3));
    return tile;
}

/* Somewhere of its own for each element: plain, or backwards by indices. */
static void store(moved *m, uint32_t tile, uint32_t dtype) {
    build *b = &m->b;
    uint32_t gathers[AXES];
    for (uint32_t a = 0; a < AXES; a++) gathers[a] = random_in(0, 2) ? NONE : indices(m, REVERSES, a);
    uint32_t buffer = build_buffer(b, ENT_ROLE_OUTPUT, dtype, AXES, m->extent);
    arrange(m, buffer);
    uint32_t access = build_access(b, buffer);
    for (uint32_t a = 0; a < AXES; a++)
        if (gathers[a] == NONE)
            build_index(b, access, a, 0, m->variable[a], a, 1);
        else
            b->accesses[access].index[a].gather = gathers[a];
    build_store(b, access, tile);
}

START_TEST(moves_agree) {
    int ran = 0;
    for (int i = 0; i < 1500; i++) {
        moved m;
        random_state = (uint64_t)i * 991 + 7;
        uint32_t dtype = dtypes[i % (int)(sizeof dtypes / sizeof *dtypes)];
        begin(&m);
        store(&m, load(&m, dtype), dtype);
        ran += check_program(&m.b.program, NULL, 0, ENT_TIER_NONE);
    }
    ck_assert_int_gt(ran, 1000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cpu_table");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 300);
    tcase_add_test(all, moves_agree);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
