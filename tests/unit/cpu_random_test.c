/* Random tile programs: maps, reductions, moves, loops and reordering in any order, on all dtypes. What
 * matters is not what they compute but that every shortcut of the executor (versions, views, direct stores,
 * clipped edges) leaves it unchanged. */
#include "cpu_program.h"

#define NONE ENT_TILE_NONE

typedef struct generator {
    build b;
    int64_t extent[2], tile[2]; /* of the grid and of full tiles */
    uint32_t variable[2];       /* NONE: the tile covers the axis */
    uint32_t depth;
    uint32_t loop[4];
    bool defined[MAX_ITEMS];    /* by value */
    uint32_t inside[MAX_ITEMS]; /* depth at which it was defined */
} generator;

static const uint32_t dtypes[] = {ENT_DTYPE_F32,  ENT_DTYPE_F32, ENT_DTYPE_F32, ENT_DTYPE_I32, ENT_DTYPE_I64,
                                  ENT_DTYPE_BOOL, ENT_DTYPE_F64, ENT_DTYPE_F16, ENT_DTYPE_U8,  ENT_DTYPE_I16};

static uint32_t random_dtype(void) {
    return dtypes[random_in(0, (int64_t)(sizeof dtypes / sizeof dtypes[0]) - 1)];
}

static bool has_room(const generator *g) {
    const ent_tile_program *p = &g->b.program;
    return p->value_count + 8 < MAX_ITEMS && p->access_count + 8 < MAX_ITEMS &&
           p->op_count + 12 < MAX_ITEMS && p->buffer_count < 12;
}

static void define(generator *g, uint32_t tile) {
    if (!g->defined[tile]) g->inside[tile] = g->depth;
    g->defined[tile] = true;
}

/* A tile to write: sometimes one that exists, so that versions come up. */
static uint32_t target(generator *g, uint32_t dtype, bool full0, bool full1) {
    int64_t s0 = full0 ? g->tile[0] : 1, s1 = full1 ? g->tile[1] : 1;
    if (random_in(0, 1))
        for (uint32_t t = 0; t < g->b.program.value_count; t++) {
            const ent_tile_value *v = &g->b.values[t];
            if (v->dtype == dtype && v->rank == 2 && v->shape[0] == s0 && v->shape[1] == s1 &&
                random_in(0, 1))
                return t;
        }
    return build_tile(&g->b, dtype, 2, s0, s1, 0, 0);
}

/* A random defined tile of the dtype (NONE: any) that broadcasts to the full tile. */
static uint32_t pick(const generator *g, uint32_t dtype) {
    uint32_t found = NONE, seen = 0;
    for (uint32_t t = 0; t < g->b.program.value_count; t++) {
        const ent_tile_value *v = &g->b.values[t];
        if (!g->defined[t] || v->rank != 2 || (dtype != NONE && v->dtype != dtype)) continue;
        if (random_u32() % ++seen == 0) found = t;
    }
    return found;
}

static bool spans(const generator *g, uint32_t tile, uint32_t axis) {
    return g->b.values[tile].shape[axis] == g->tile[axis] && g->tile[axis] > 1;
}

/* ---- moves ---- */

static void random_load(generator *g) {
    build *b = &g->b;
    bool full[2] = {random_in(0, 3) > 0, random_in(0, 3) > 0};
    int64_t dims[2];
    for (uint32_t i = 0; i < 2; i++)
        dims[i] = full[i] || random_in(0, 1) ? g->extent[i] + random_in(-2, 2) : 1;
    for (uint32_t i = 0; i < 2; i++)
        if (dims[i] < 1) dims[i] = 1;
    uint32_t dtype = random_dtype(), buffer = build_buffer(b, ENT_ROLE_INPUT, dtype, 2, dims);
    if (random_in(0, 2) == 0) build_order(b, buffer, (const uint8_t[]){1, 0});
    if (random_in(0, 5) == 0) build_block(b, buffer, (uint8_t)random_in(0, 1), 4);
    uint32_t access = build_access(b, buffer), dst = target(g, dtype, full[0], full[1]);
    bool odd = random_in(0, 3) == 0;
    for (uint32_t i = 0; i < 2; i++) {
        int64_t base = odd ? random_in(-2, 2) : 0, step = odd ? random_in(-1, 2) : 1;
        ent_tile_index *x =
            build_index(b, access, i, base, full[i] ? g->variable[i] : NONE, full[i] ? i : NONE, step);
        if (g->depth > 0 && random_in(0, 1)) build_term(b, access, i, g->loop[g->depth - 1], 1);
        if (odd && random_in(0, 2) == 0) {
            x->divisor = random_in(2, 3);
            x->exact = (uint32_t)random_in(0, 1);
        }
        if (odd && random_in(0, 2) == 0) x->bound = random_in(0, dims[i]);
        uint32_t by =
            odd && random_in(0, 1) ? pick(g, random_in(0, 1) ? ENT_DTYPE_I32 : ENT_DTYPE_I64) : NONE;
        if (by == NONE) continue;
        bool fits = by != dst;
        for (uint32_t a = 0; a < 2; a++)
            fits = fits && (b->values[by].shape[a] == 1 || b->values[by].shape[a] == b->values[dst].shape[a]);
        if (fits) x->gather = by;
    }
    build_load(b, dst, access, b->values[dst].dtype == ENT_DTYPE_BOOL ? 1 : (double)random_in(0, 3));
    define(g, dst);
}

static void random_store(generator *g, uint32_t tile) {
    build *b = &g->b;
    uint32_t buffer = build_buffer(b, ENT_ROLE_OUTPUT, b->values[tile].dtype, 2, g->extent);
    if (random_in(0, 2) == 0) build_order(b, buffer, (const uint8_t[]){1, 0});
    if (random_in(0, 5) == 0) build_block(b, buffer, (uint8_t)random_in(0, 1), 4);
    uint32_t access = build_access(b, buffer);
    for (uint32_t i = 0; i < 2; i++) {
        ent_tile_index *x = build_index(b, access, i, 0, g->variable[i], i, 1);
        if (random_in(0, 5) == 0) x->bound = random_in(0, g->extent[i]);
    }
    build_store(b, access, tile);
}

/* ---- arithmetic ---- */

/* Smooth maps only: where a rounding difference could flip a result, there is nothing to compare. */
static void random_map(generator *g) {
    static const uint8_t floats[] = {
        ENT_MAP_NEG,  ENT_MAP_ABS,        ENT_MAP_RELU,     ENT_MAP_CLIP, ENT_MAP_SCALE_SHIFT,
        ENT_MAP_TANH, ENT_MAP_SIGMOID,    ENT_MAP_SOFTSIGN, ENT_MAP_SELU, ENT_MAP_LEAKY_RELU,
        ENT_MAP_GELU, ENT_MAP_HARD_SWISH, ENT_MAP_ADD,      ENT_MAP_SUB,  ENT_MAP_MUL,
        ENT_MAP_MAX,  ENT_MAP_MIN,        ENT_MAP_PRELU,    ENT_MAP_FMA,  ENT_MAP_COPY,
        ENT_MAP_SILU, ENT_MAP_SQUARE};
    static const uint8_t whole[] = {ENT_MAP_NEG,    ENT_MAP_ABS,  ENT_MAP_RELU, ENT_MAP_CLIP,
                                    ENT_MAP_SQUARE, ENT_MAP_ADD,  ENT_MAP_SUB,  ENT_MAP_MUL,
                                    ENT_MAP_DIV,    ENT_MAP_MAX,  ENT_MAP_MIN,  ENT_MAP_MOD,
                                    ENT_MAP_FMA,    ENT_MAP_SIGN, ENT_MAP_COPY, ENT_MAP_PRELU};
    build *b = &g->b;
    uint32_t a = pick(g, NONE);
    if (a == NONE || b->values[a].dtype == ENT_DTYPE_BOOL) return;
    uint32_t dtype = b->values[a].dtype, c = pick(g, dtype), e = pick(g, dtype);
    uint32_t map = dtype <= ENT_DTYPE_F64 ? floats[random_in(0, sizeof floats - 1)]
                                          : whole[random_in(0, sizeof whole - 1)];
    uint32_t sources = ent_ops_map_info_get(map)->sources, used[3] = {a, c, e};
    bool full[2] = {false, false};
    for (uint32_t s = 0; s < sources; s++)
        for (uint32_t i = 0; i < 2; i++) full[i] |= spans(g, used[s], i);
    uint32_t dst = target(g, dtype, full[0], full[1]);
    build_map(b, map, dst, a, c, e,
              map == ENT_MAP_SELU   ? 1.67
              : map == ENT_MAP_CLIP ? -1
                                    : 0.5,
              map == ENT_MAP_CLIP ? 3 : 0.25);
    define(g, dst);
}

static void random_logic(generator *g) {
    static const uint32_t compared[] = {ENT_DTYPE_I32, ENT_DTYPE_I64, ENT_DTYPE_U8, ENT_DTYPE_I16,
                                        ENT_DTYPE_BOOL};
    build *b = &g->b;
    uint32_t dtype = compared[random_in(0, 4)], a = pick(g, dtype), c = pick(g, dtype);
    if (a == NONE) return;
    uint32_t map =
        (uint32_t)random_in(ENT_MAP_EQUAL, dtype == ENT_DTYPE_BOOL ? ENT_MAP_XOR : ENT_MAP_GREATER_EQUAL);
    if (dtype == ENT_DTYPE_BOOL && random_in(0, 2) == 0) map = ENT_MAP_NOT;
    bool two = map != ENT_MAP_NOT;
    uint32_t dst = target(g, ENT_DTYPE_BOOL, spans(g, a, 0) || (two && spans(g, c, 0)),
                          spans(g, a, 1) || (two && spans(g, c, 1)));
    build_map(b, map, dst, a, c, 0, 0, 0);
    define(g, dst);
}

static void random_select(generator *g) {
    build *b = &g->b;
    uint32_t condition = pick(g, ENT_DTYPE_BOOL), a = pick(g, NONE);
    if (condition == NONE || a == NONE) return;
    uint32_t c = pick(g, b->values[a].dtype), used[] = {condition, a, c};
    bool full[2] = {false, false};
    for (uint32_t s = 0; s < 3; s++)
        for (uint32_t i = 0; i < 2; i++) full[i] |= spans(g, used[s], i);
    uint32_t dst = target(g, b->values[a].dtype, full[0], full[1]);
    build_map(b, ENT_MAP_SELECT, dst, condition, a, c, 0, 0);
    define(g, dst);
}

/* Casts that no rounding difference can flip. */
static void random_cast(generator *g) {
    build *b = &g->b;
    uint32_t a = pick(g, NONE), to = random_dtype();
    if (a == NONE || (b->values[a].dtype <= ENT_DTYPE_F64 && to > ENT_DTYPE_F64)) return;
    uint32_t from = b->values[a].dtype;
    bool narrows =
        (from == ENT_DTYPE_F64 && to == ENT_DTYPE_F32) || (from == ENT_DTYPE_F32 && to == ENT_DTYPE_F16);
    if (from <= ENT_DTYPE_F64 && from != to && !narrows)
        return; /* would be compared more finely than it was computed */
    if (to == ENT_DTYPE_F16 && from != ENT_DTYPE_F32 && from != ENT_DTYPE_U8) return;
    uint32_t dst = target(g, to, spans(g, a, 0), spans(g, a, 1));
    build_map(b, ENT_MAP_COPY, dst, a, 0, 0, 0, 0);
    define(g, dst);
}

static void random_reduce(generator *g) {
    build *b = &g->b;
    uint32_t a = pick(g, NONE);
    if (a == NONE || b->values[a].dtype == ENT_DTYPE_BOOL) return;
    uint32_t mask = (uint32_t)random_in(1, 3), kind = (uint32_t)random_in(1, 3);
    uint32_t dst =
        target(g, b->values[a].dtype, spans(g, a, 0) && !(mask & 1), spans(g, a, 1) && !(mask & 2));
    if (dst == a) return;
    build_reduce(b, kind, dst, a, mask);
    define(g, dst);
}

static void random_iota(generator *g) {
    build *b = &g->b;
    static const uint32_t counted[] = {ENT_DTYPE_I32, ENT_DTYPE_I64, ENT_DTYPE_F32};
    uint32_t axis = (uint32_t)random_in(0, 1),
             dst = target(g, counted[random_in(0, 2)], axis == 0, axis == 1);
    ent_tile_op *op = build_op(b, ENT_TILE_IOTA, dst);
    op->f[0] = (double)random_in(-2, 2);
    op->variable = g->depth > 0 ? g->loop[g->depth - 1] : g->variable[axis];
    op->step = 1;
    op->axis_mask = 1u << axis;
    define(g, dst);
}

static void random_fill(generator *g) {
    uint32_t dtype = random_dtype(), dst = target(g, dtype, random_in(0, 1), random_in(0, 1));
    build_fill(&g->b, dst, dtype == ENT_DTYPE_BOOL ? 1 : 2);
    define(g, dst);
}

/* Two permutations, or two reshapes, so that the shape is the old one again. */
static void random_reorder(generator *g) {
    build *b = &g->b;
    uint32_t a = pick(g, NONE);
    if (a == NONE) return;
    const ent_tile_value v = b->values[a];
    uint32_t opcode = random_in(0, 1) ? ENT_TILE_PERMUTE : ENT_TILE_RESHAPE;
    uint32_t other = build_tile(b, v.dtype, 2, v.shape[1], v.shape[0], 0, 0);
    uint32_t back = build_tile(b, v.dtype, 2, v.shape[0], v.shape[1], 0, 0);
    uint32_t steps[2][2] = {{other, a}, {back, other}};
    for (uint32_t i = 0; i < 2; i++) {
        ent_tile_op *op = build_op(b, opcode, steps[i][0]);
        op->source_count = 1;
        op->source[0] = steps[i][1];
        op->perm[0] = 1;
    }
    define(g, back);
}

/* ---- programs ---- */

static void random_item(generator *g) {
    switch (random_in(0, 15)) {
    case 0:
    case 1:
    case 2:
        random_load(g);
        break;
    case 3:
        random_logic(g);
        break;
    case 4:
        random_select(g);
        break;
    case 5:
        random_cast(g);
        break;
    case 6:
        random_reduce(g);
        break;
    case 7:
        random_iota(g);
        break;
    case 8:
        random_fill(g);
        break;
    case 9:
        random_reorder(g);
        break;
    default:
        random_map(g);
        break;
    }
}

static void random_loop(generator *g) {
    uint32_t count = g->b.program.value_count;
    g->loop[g->depth++] = build_loop(&g->b, random_in(0, 1), random_in(1, 4), random_in(1, 2));
    for (int i = 0; i < 4 && has_room(g); i++) random_item(g);
    build_end(&g->b);
    g->depth--;
    /* what first came up within may not have run */
    for (uint32_t t = 0; t < g->b.program.value_count; t++)
        if (t >= count || g->inside[t] > g->depth) g->defined[t] = false;
}

static bool random_program(void) {
    generator g;
    memset(&g, 0, sizeof g);
    build_begin(&g.b);
    for (uint32_t i = 0; i < 2; i++) {
        g.extent[i] = random_in(1, 40);
        g.tile[i] = random_in(0, 2) ? random_in(1, g.extent[i]) : g.extent[i];
        g.variable[i] = build_grid(&g.b, g.extent[i], g.tile[i]);
    }
    for (int i = 0; i < 3; i++) random_load(&g);
    for (int i = 0; i < 14 && has_room(&g); i++) {
        if (random_in(0, 7) == 0)
            random_loop(&g);
        else
            random_item(&g);
        if (random_in(0, 7) > 0) continue;
        uint32_t early = pick(&g, NONE);
        if (early != NONE && g.b.values[early].shape[0] == g.tile[0] &&
            g.b.values[early].shape[1] == g.tile[1])
            random_store(&g, early);
    }
    uint32_t dtype = random_dtype(), last = NONE;
    for (int i = 0; i < 20 && last == NONE; i++) last = pick(&g, i < 5 ? dtype : NONE);
    uint32_t full = build_tile(&g.b, g.b.values[last].dtype, 2, g.tile[0], g.tile[1], 0, 0);
    build_map(&g.b, ENT_MAP_COPY, full, last, 0, 0, 0, 0);
    random_store(&g, full);
    return check_program(&g.b.program, NULL, 0, ENT_TIER_NONE);
}

START_TEST(random_programs_agree) {
    int ran = 0;
    for (int i = 0; i < 1500; i++) {
        random_state = (uint64_t)i * 977 + 5;
        special_every = i % 2 ? 8 : 0;
        ran += random_program();
    }
    ck_assert_int_gt(ran, 1000);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cpu_random");
    TCase *tests = tcase_create("programs");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, random_programs_agree);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
