/* The tile executor against the interpreter, on every form that fusion emits and at every ISA level of the
 * machine. */
#include "cpu_program.h"

#define F32 ENT_DTYPE_F32
#define NONE ENT_TILE_NONE

/* ---- contractions ---- */

/* Maps behind a contraction: 0 none, 1 relu, 2 add a tensor then clip, 3 gelu, 4 times a column vector, 5 x *
 * sigmoid(x), 6 add to itself a row vector. Stores last. */
static void add_epilogue(build *b, uint32_t acc, uint32_t out, uint32_t m_axes, const int64_t *tile,
                         const uint32_t *variables, int form) {
    const int64_t *t = tile;
    uint32_t rank = m_axes + 1, other = 0, access;
    bool rows = form == 6, columns = form == 4;
    if (form == 2 || rows || columns) {
        const ent_tile_buffer *like = &b->buffers[out];
        int64_t dims[4] = {1, 1, 1, 1}, shape[4] = {1, 1, 1, 1};
        for (uint32_t i = 0; i < rank; i++) {
            bool kept = form == 2 || (rows && i + 1 == rank) || (columns && i + 1 < rank);
            dims[i] = kept ? like->dims[i] : 1;
            shape[i] = kept ? t[i] : 1;
        }
        uint32_t buffer = build_buffer(b, ENT_ROLE_INPUT, F32, rank, dims);
        access = build_access(b, buffer);
        for (uint32_t i = 0; i < rank; i++)
            if (dims[i] > 1 || shape[i] > 1) build_index(b, access, i, 0, variables[i], i, 1);
        other = build_tile(b, F32, rank, shape[0], shape[1], shape[2], shape[3]);
        build_load(b, other, access, 0);
    }
    uint32_t second = form == 5 ? build_tile(b, F32, rank, t[0], t[1], rank > 2 ? t[2] : 0, 0) : 0;
    switch (form) {
    case 1:
        build_map(b, ENT_MAP_RELU, acc, acc, 0, 0, 0, 0);
        break;
    case 2:
        build_map(b, ENT_MAP_ADD, acc, acc, other, 0, 0, 0);
        build_map(b, ENT_MAP_CLIP, acc, acc, 0, 0, 0, 6);
        break;
    case 3:
        build_map(b, ENT_MAP_GELU, acc, acc, 0, 0, 0, 0);
        break;
    case 4:
        build_map(b, ENT_MAP_MUL, acc, acc, other, 0, 0, 0);
        break;
    case 5:
        build_map(b, ENT_MAP_SIGMOID, second, acc, 0, 0, 0, 0);
        build_map(b, ENT_MAP_MUL, second, acc, second, 0, 0, 0);
        acc = second;
        break;
    case 6:
        build_map(b, ENT_MAP_ADD, acc, acc, other, 0, 0, 0);
        break;
    default:
        break;
    }
    access = build_access(b, out);
    for (uint32_t i = 0; i < rank; i++) build_index(b, access, i, 0, variables[i], i, 1);
    build_store(b, access, acc);
}

typedef struct matmul {
    int64_t m, n, k, tm, tn, tk;
    int b_form; /* 0 panels of 16, 1 rows, 2 columns */
    int a_form; /* 0 rows, 1 columns */
    int start;  /* 0 FILL 0, 1 bias row, 2 bias of every element, 3 FILL 2 */
    int epilogue;
    bool flag; /* TRANSPOSE_B */
} matmul;

static void check_matmul(const matmul *c, uint32_t tier) {
    build b;
    build_begin(&b);
    const uint8_t swapped[] = {1, 0};
    uint32_t vm = build_grid(&b, c->m, c->tm), vn = build_grid(&b, c->n, c->tn);
    uint32_t a = build_buffer(&b, ENT_ROLE_INPUT, F32, 2, (int64_t[]){c->m, c->k});
    uint32_t w = build_buffer(&b, ENT_ROLE_CONSTANT, F32, 2, (int64_t[]){c->k, c->n});
    uint32_t out = build_buffer(&b, ENT_ROLE_OUTPUT, F32, 2, (int64_t[]){c->m, c->n});
    if (c->a_form == 1) build_order(&b, a, swapped);
    if (c->b_form != 1) build_order(&b, w, swapped);
    if (c->b_form == 0) build_block(&b, w, 1, 16);
    uint32_t acc = build_tile(&b, F32, 2, c->tm, c->tn, 0, 0),
             ta = build_tile(&b, F32, 2, c->tm, c->tk, 0, 0);
    uint32_t tb =
        c->flag ? build_tile(&b, F32, 2, c->tn, c->tk, 0, 0) : build_tile(&b, F32, 2, c->tk, c->tn, 0, 0);
    if (c->start == 1 || c->start == 2) {
        uint32_t bias =
            build_buffer(&b, ENT_ROLE_CONSTANT, F32, 2, (int64_t[]){c->start == 2 ? c->m : 1, c->n});
        uint32_t access = build_access(&b, bias);
        if (c->start == 2) build_index(&b, access, 0, 0, vm, 0, 1);
        build_index(&b, access, 1, 0, vn, 1, 1);
        build_load(&b, acc, access, 0);
    } else
        build_fill(&b, acc, c->start == 3 ? 2 : 0);
    uint32_t vk = c->tk < c->k ? build_loop(&b, 0, c->k, c->tk) : NONE, access = build_access(&b, a);
    build_index(&b, access, 0, 0, vm, 0, 1);
    build_index(&b, access, 1, 0, vk, 1, 1);
    build_load(&b, ta, access, 0);
    access = build_access(&b, w);
    build_index(&b, access, 0, 0, vk, c->flag ? 1 : 0, 1);
    build_index(&b, access, 1, 0, vn, c->flag ? 0 : 1, 1);
    build_load(&b, tb, access, 0);
    build_mma(&b, acc, ta, tb, c->flag ? ENT_TILE_TRANSPOSE_B : 0);
    if (vk != NONE) build_end(&b);
    add_epilogue(&b, acc, out, 1, (int64_t[]){c->tm, c->tn}, (uint32_t[]){vm, vn}, c->epilogue);
    ck_assert(check_program(&b.program, NULL, 0, tier));
}

START_TEST(matmuls_agree) {
    for (int i = 0; i < 300; i++) {
        special_every = i % 3 ? 0 : 200;
        matmul c = {.m = random_in(1, 40), .n = random_in(1, 70), .k = random_in(1, 60)};
        c.b_form = (int)random_in(0, 2);
        c.tm = random_in(1, c.m + 2);
        c.tn = c.b_form == 0 ? 16 * random_in(1, 3) : random_in(1, c.n + 3);
        c.tk = random_in(1, 3) == 1 ? random_in(1, c.k) : c.k;
        c.a_form = random_in(0, 3) == 0;
        c.start = (int)random_in(0, 3);
        c.epilogue = (int)random_in(0, 6);
        c.flag = random_in(0, 3) == 0;
        check_matmul(&c, ENT_TIER_NONE);
    }
    special_every = 0;
}
END_TEST

typedef struct byte_product {
    int64_t m, n, k, tm, tn, tk, taps;
    uint32_t a_dtype, b_dtype;
    double a_zero, b_zero;
    int b_form; /* 0 panels of 16 x 4, 1 rows, 2 columns */
    bool a_columns;
} byte_product;

/* out[m, n] = sum over taps and k of (a[m + tap - 1, k] - za) * (b[tap, k, n] - zb), converted to floats. */
static void check_bytes(const byte_product *c, uint32_t tier) {
    build b;
    build_begin(&b);
    uint32_t vm = build_grid(&b, c->m, c->tm), vn = build_grid(&b, c->n, c->tn);
    uint32_t a = build_buffer(&b, ENT_ROLE_INPUT, c->a_dtype, 2, (int64_t[]){c->m, c->k});
    uint32_t w = build_buffer(&b, ENT_ROLE_CONSTANT, c->b_dtype, 3, (int64_t[]){c->taps, c->k, c->n});
    uint32_t out = build_buffer(&b, ENT_ROLE_OUTPUT, F32, 2, (int64_t[]){c->m, c->n});
    if (c->a_columns) build_order(&b, a, (const uint8_t[]){1, 0});
    if (c->b_form == 0) {
        build_order(&b, w, (const uint8_t[]){2, 0, 1});
        build_block(&b, w, 2, 16);
        b.buffers[w].layout.block_count = 2;
        b.buffers[w].layout.block_axis[1] = 1;
        b.buffers[w].layout.block_size[1] = 4;
    } else if (c->b_form == 2)
        build_order(&b, w, (const uint8_t[]){0, 2, 1});
    uint32_t sum = build_tile(&b, ENT_DTYPE_I32, 2, c->tm, c->tn, 0, 0),
             to = build_tile(&b, F32, 2, c->tm, c->tn, 0, 0),
             ta = build_tile(&b, c->a_dtype, 2, c->tm, c->tk, 0, 0),
             tb = build_tile(&b, c->b_dtype, 2, c->tk, c->tn, 0, 0);
    build_fill(&b, sum, 0);
    uint32_t tap = build_loop(&b, 0, c->taps, 1), vk = c->tk < c->k ? build_loop(&b, 0, c->k, c->tk) : NONE;
    uint32_t access = build_access(&b, a);
    build_index(&b, access, 0, -(c->taps / 2), vm, 0, 1);
    build_term(&b, access, 0, tap, 1);
    build_index(&b, access, 1, 0, vk, 1, 1);
    build_load(&b, ta, access, c->a_zero);
    access = build_access(&b, w);
    build_index(&b, access, 0, 0, tap, NONE, 0);
    build_index(&b, access, 1, 0, vk, 0, 1);
    build_index(&b, access, 2, 0, vn, 1, 1);
    build_load(&b, tb, access, 0);
    build_mma(&b, sum, ta, tb, 0);
    b.ops[b.program.op_count - 1].f[0] = c->a_zero;
    b.ops[b.program.op_count - 1].f[1] = c->b_zero;
    if (vk != NONE) build_end(&b);
    build_end(&b);
    build_map(&b, ENT_MAP_COPY, to, sum, NONE, NONE, 0, 0);
    add_epilogue(&b, to, out, 1, (int64_t[]){c->tm, c->tn}, (uint32_t[]){vm, vn}, 0);
    ck_assert(check_program(&b.program, NULL, 0, tier));
}

START_TEST(products_of_bytes_agree) {
    static const uint32_t dtypes[] = {ENT_DTYPE_U8, ENT_DTYPE_I8};
    for (int i = 0; i < 200; i++) {
        byte_product c = {
            .m = random_in(1, 40), .n = random_in(1, 70), .k = random_in(1, 60), .taps = random_in(1, 3)};
        c.a_dtype = dtypes[random_in(0, 1)], c.b_dtype = dtypes[random_in(0, 1)];
        c.a_zero = (double)random_in(0, 127), c.b_zero = random_in(0, 1) ? (double)random_in(0, 127) : 0;
        c.b_form = (int)random_in(0, 2);
        c.tm = random_in(1, c.m + 2);
        c.tn = c.b_form == 0 ? 16 * random_in(1, 3) : random_in(1, c.n + 3);
        c.tk = c.b_form != 0 && random_in(1, 3) == 1 ? random_in(1, c.k) : c.k;
        c.a_columns = random_in(0, 3) == 0;
        check_bytes(&c, ENT_TIER_NONE);
    }
    byte_product c = {
        .m = 60, .n = 64, .k = 100, .tm = 30, .tn = 32, .tk = 100, .taps = 3, .a_dtype = ENT_DTYPE_U8};
    c.b_dtype = ENT_DTYPE_I8;
    c.a_zero = 128;
    check_bytes(&c, ENT_TIER_NATIVE);
}
END_TEST

START_TEST(long_sums_agree) {
    for (int b_form = 0; b_form < 3; b_form++) {
        matmul c = {.m = 13,
                    .n = 50,
                    .k = 700,
                    .tm = 6,
                    .tn = 32,
                    .tk = 96,
                    .b_form = b_form,
                    .start = 1,
                    .epilogue = 2};
        check_matmul(&c, ENT_TIER_NATIVE);
    }
}
END_TEST

/* Channels-last convolution: rows of the tile are th x tw output pixels. */
typedef struct conv {
    int64_t h, w, c, n, kh, kw, stride, dilation, pad, th, tw, tn, tk, groups;
    int start, epilogue;
    bool transposed; /* taps walk backwards, as the phases of a transposed convolution do */
} conv;

static void check_conv(const conv *c, uint32_t tier) {
    build b;
    build_begin(&b);
    int64_t oh = (c->h + 2 * c->pad - (c->kh - 1) * c->dilation - 1) / c->stride + 1;
    int64_t ow = (c->w + 2 * c->pad - (c->kw - 1) * c->dilation - 1) / c->stride + 1;
    if (oh < 1 || ow < 1) return;
    int64_t all_n = c->n * c->groups, all_c = c->c * c->groups;
    uint32_t vg = c->groups > 1 ? build_grid(&b, c->groups, 1) : NONE, vh = build_grid(&b, oh, c->th),
             vw = build_grid(&b, ow, c->tw);
    uint32_t vn = build_grid(&b, c->n, c->tn);
    uint32_t x = build_buffer(&b, ENT_ROLE_INPUT, F32, 4, (int64_t[]){1, all_c, c->h, c->w});
    uint32_t w = build_buffer(&b, ENT_ROLE_CONSTANT, F32, 4, (int64_t[]){all_n, c->c, c->kh, c->kw});
    uint32_t out = build_buffer(&b, ENT_ROLE_OUTPUT, F32, 3, (int64_t[]){oh, ow, all_n});
    build_order(&b, x, (const uint8_t[]){0, 2, 3, 1});
    build_order(&b, w, (const uint8_t[]){0, 2, 3, 1});
    if (c->groups == 1 || c->n % 16 == 0) build_block(&b, w, 0, 16);
    uint32_t acc = build_tile(&b, F32, 3, c->th, c->tw, c->tn, 0),
             ta = build_tile(&b, F32, 3, c->th, c->tw, c->tk, 0);
    uint32_t tb = build_tile(&b, F32, 2, c->tk, c->tn, 0, 0), access;
    if (c->start) {
        uint32_t bias = build_buffer(&b, ENT_ROLE_CONSTANT, F32, 1, (int64_t[]){all_n});
        access = build_access(&b, bias);
        build_index(&b, access, 0, 0, vn, 2, 1);
        if (vg != NONE) build_term(&b, access, 0, vg, c->n);
        build_load(&b, acc, access, 0);
    } else
        build_fill(&b, acc, 0);
    uint32_t lh = c->kh > 1 ? build_loop(&b, 0, c->kh, 1) : NONE,
             lw = c->kw > 1 ? build_loop(&b, 0, c->kw, 1) : NONE;
    uint32_t lk = c->tk < c->c ? build_loop(&b, 0, c->c, c->tk) : NONE;
    access = build_access(&b, x);
    build_index(&b, access, 1, 0, lk, 2, 1);
    if (vg != NONE) build_term(&b, access, 1, vg, c->c);
    build_index(&b, access, 2, c->transposed ? 1 : -c->pad, NONE, 0, c->stride);
    build_index(&b, access, 3, c->transposed ? 1 : -c->pad, NONE, 1, c->stride);
    build_term(&b, access, 2, vh, c->stride);
    build_term(&b, access, 3, vw, c->stride);
    if (lh != NONE) build_term(&b, access, 2, lh, c->transposed ? -1 : c->dilation);
    if (lw != NONE) build_term(&b, access, 3, lw, c->transposed ? -1 : c->dilation);
    build_load(&b, ta, access, 0);
    access = build_access(&b, w);
    build_index(&b, access, 0, 0, vn, 1, 1);
    if (vg != NONE) build_term(&b, access, 0, vg, c->n);
    build_index(&b, access, 1, 0, lk, 0, 1);
    if (lh != NONE) build_index(&b, access, 2, 0, lh, NONE, 0);
    if (lw != NONE)
        build_index(&b, access, 3, c->transposed ? 1 : 0, lw, NONE, 0); /* the last tap is outside */
    build_load(&b, tb, access, 0);
    build_mma(&b, acc, ta, tb, 0);
    for (int i = (lh != NONE) + (lw != NONE) + (lk != NONE); i > 0; i--) build_end(&b);
    if (c->groups > 1) {
        access = build_access(&b, out);
        build_index(&b, access, 0, 0, vh, 0, 1);
        build_index(&b, access, 1, 0, vw, 1, 1);
        build_index(&b, access, 2, 0, vn, 2, 1);
        build_term(&b, access, 2, vg, c->n);
        build_store(&b, access, acc);
    } else
        add_epilogue(&b, acc, out, 2, (int64_t[]){c->th, c->tw, c->tn}, (uint32_t[]){vh, vw, vn},
                     c->epilogue);
    ck_assert(check_program(&b.program, NULL, 0, tier));
}

START_TEST(convolutions_agree) {
    for (int i = 0; i < 250; i++) {
        conv c = {.h = random_in(1, 9), .w = random_in(1, 12), .c = random_in(1, 20), .n = random_in(1, 36)};
        c.kh = random_in(1, 3);
        c.kw = random_in(1, 4);
        c.stride = random_in(1, 2);
        c.dilation = random_in(1, 2);
        c.pad = random_in(0, 2);
        c.th = random_in(1, 4);
        c.tw = random_in(1, 9);
        c.tn = 16 * random_in(1, 2);
        c.tk = random_in(0, 2) ? c.c : random_in(1, c.c);
        c.groups = random_in(0, 4) ? 1 : random_in(2, 3);
        if (c.groups > 1) {
            c.tk = c.c;
            c.n = random_in(0, 1) ? 16 : random_in(1, 7);
            c.tn = c.n;
        }
        c.start = (int)random_in(0, 1);
        c.epilogue = (int)random_in(0, 6);
        c.transposed = random_in(0, 5) == 0;
        check_conv(&c, ENT_TIER_NONE);
    }
}
END_TEST

START_TEST(convolutions_are_native) {
    conv first = {.h = 16,
                  .w = 16,
                  .c = 3,
                  .n = 32,
                  .kh = 7,
                  .kw = 7,
                  .stride = 2,
                  .dilation = 1,
                  .pad = 3,
                  .th = 2,
                  .tw = 8,
                  .tn = 32,
                  .tk = 3,
                  .groups = 1,
                  .start = 1,
                  .epilogue = 1};
    conv inner = {.h = 8,
                  .w = 8,
                  .c = 32,
                  .n = 32,
                  .kh = 3,
                  .kw = 3,
                  .stride = 1,
                  .dilation = 1,
                  .pad = 1,
                  .th = 3,
                  .tw = 8,
                  .tn = 32,
                  .tk = 16,
                  .groups = 1,
                  .start = 1,
                  .epilogue = 2};
    conv transposed = inner;
    transposed.transposed = true;
    check_conv(&first, ENT_TIER_NATIVE);
    check_conv(&inner, ENT_TIER_NATIVE);
    check_conv(&transposed, ENT_TIER_NATIVE);
}
END_TEST

/* Multiplies of tiles that other operations made: softmax(a b) c with rows of b gathered. */
START_TEST(chained_multiplies_agree) {
    for (int i = 0; i < 60; i++) {
        build b;
        build_begin(&b);
        int64_t m = random_in(1, 20), k = random_in(1, 20), n = random_in(2, 30), e = random_in(1, 20),
                tm = random_in(1, 7);
        bool flag = random_in(0, 1);
        uint32_t vm = build_grid(&b, m, tm);
        uint32_t a = build_buffer(&b, ENT_ROLE_INPUT, F32, 2, (int64_t[]){m, k});
        uint32_t w = build_buffer(&b, ENT_ROLE_INPUT, F32, 2, (int64_t[]){flag ? n : k, flag ? k : n});
        uint32_t v = build_buffer(&b, ENT_ROLE_INPUT, F32, 2, (int64_t[]){n, e});
        uint32_t out = build_buffer(&b, ENT_ROLE_OUTPUT, F32, 2, (int64_t[]){m, e}), access;
        uint32_t ta = build_tile(&b, F32, 2, tm, k, 0, 0),
                 tw = build_tile(&b, F32, 2, flag ? n : k, flag ? k : n, 0, 0);
        uint32_t tv = build_tile(&b, F32, 2, n, e, 0, 0), s = build_tile(&b, F32, 2, tm, n, 0, 0);
        uint32_t max = build_tile(&b, F32, 2, tm, 1, 0, 0), acc = build_tile(&b, F32, 2, tm, e, 0, 0);
        access = build_access(&b, a);
        build_index(&b, access, 0, 0, vm, 0, 1);
        build_index(&b, access, 1, 0, NONE, 1, 1);
        build_load(&b, ta, access, 0);
        access = build_access(&b, w);
        build_index(&b, access, 0, 0, NONE, 0, 1);
        build_index(&b, access, 1, 0, NONE, 1, 1);
        build_load(&b, tw, access, 0);
        access = build_access(&b, v);
        build_index(&b, access, 0, 0, NONE, 0, 1);
        build_index(&b, access, 1, 0, NONE, 1, 1);
        build_load(&b, tv, access, 0);
        build_map(&b, ENT_MAP_SCALE_SHIFT, ta, ta, 0, 0, 0.5, 0);
        build_fill(&b, s, 0);
        build_mma(&b, s, ta, tw, flag ? ENT_TILE_TRANSPOSE_B : 0);
        build_reduce(&b, ENT_REDUCE_MAX, max, s, 2);
        build_map(&b, ENT_MAP_SUB, s, s, max, 0, 0, 0);
        build_map(&b, ENT_MAP_EXP, s, s, 0, 0, 0, 0);
        build_fill(&b, acc, 0);
        build_mma(&b, acc, s, tv, 0);
        access = build_access(&b, out);
        build_index(&b, access, 0, 0, vm, 0, 1);
        build_index(&b, access, 1, 0, NONE, 1, 1);
        build_store(&b, access, acc);
        ck_assert(check_program(&b.program, NULL, 0, ENT_TIER_NONE));
    }
}
END_TEST

/* ---- windows ---- */

typedef struct window {
    int64_t h, w, c, kh, kw, stride, dilation, pad, th, tw, tc;
    int op; /* 0 depthwise, 1 depthwise with bias, 2 max, 3 average over what is inside, 4 average */
    bool plain, relu;
} window;

static void check_window(const window *c, uint32_t tier) {
    build b;
    build_begin(&b);
    int64_t oh = (c->h + 2 * c->pad - (c->kh - 1) * c->dilation - 1) / c->stride + 1;
    int64_t ow = (c->w + 2 * c->pad - (c->kw - 1) * c->dilation - 1) / c->stride + 1;
    if (oh < 1 || ow < 1) return;
    uint32_t vh = build_grid(&b, oh, c->th), vw = build_grid(&b, ow, c->tw), vc = build_grid(&b, c->c, c->tc);
    uint32_t x = build_buffer(&b, ENT_ROLE_INPUT, F32, 3, (int64_t[]){c->h, c->w, c->c});
    uint32_t w = build_buffer(&b, ENT_ROLE_CONSTANT, F32, 3, (int64_t[]){c->kh, c->kw, c->c});
    uint32_t bias = build_buffer(&b, ENT_ROLE_CONSTANT, F32, 1, (int64_t[]){c->c});
    uint32_t out = build_buffer(&b, ENT_ROLE_OUTPUT, F32, 3, (int64_t[]){oh, ow, c->c}), access;
    if (c->plain) build_order(&b, x, (const uint8_t[]){2, 0, 1});
    uint32_t acc = build_tile(&b, F32, 3, c->th, c->tw, c->tc, 0),
             tx = build_tile(&b, F32, 3, c->th, c->tw, c->tc, 0);
    uint32_t tw = build_tile(&b, F32, 3, 1, 1, c->tc, 0);
    double outside = c->op == 2 ? -INFINITY : 0;
    if (c->op == 1) {
        access = build_access(&b, bias);
        build_index(&b, access, 0, 0, vc, 2, 1);
        build_load(&b, acc, access, 0);
    } else
        build_fill(&b, acc, outside);
    uint32_t lh = build_loop(&b, 0, c->kh, 1), lw = build_loop(&b, 0, c->kw, 1);
    access = build_access(&b, x);
    build_index(&b, access, 0, -c->pad, NONE, 0, c->stride);
    build_index(&b, access, 1, -c->pad, NONE, 1, c->stride);
    build_index(&b, access, 2, 0, vc, 2, 1);
    build_term(&b, access, 0, vh, c->stride);
    build_term(&b, access, 1, vw, c->stride);
    build_term(&b, access, 0, lh, c->dilation);
    build_term(&b, access, 1, lw, c->dilation);
    build_load(&b, tx, access, outside);
    if (c->op < 2) {
        access = build_access(&b, w);
        build_index(&b, access, 0, 0, lh, NONE, 0);
        build_index(&b, access, 1, 0, lw, NONE, 0);
        build_index(&b, access, 2, 0, vc, 2, 1);
        build_load(&b, tw, access, 0);
        build_map(&b, ENT_MAP_FMA, acc, tx, tw, acc, 0, 0);
    } else
        build_map(&b, c->op == 2 ? ENT_MAP_MAX : ENT_MAP_ADD, acc, acc, tx, 0, 0, 0);
    build_end(&b);
    build_end(&b);
    if (c->op == 4) build_map(&b, ENT_MAP_SCALE_SHIFT, acc, acc, 0, 0, 1.0 / (double)(c->kh * c->kw), -0.0);
    if (c->op == 3) {
        uint32_t count = build_tile(&b, F32, 3, c->th, 1, 1, 0);
        ent_tile_op *op = build_op(&b, ENT_TILE_IOTA, count);
        op->f[0] = 1;
        op->variable = vh;
        op->step = 1;
        op->axis_mask = 1;
        build_map(&b, ENT_MAP_DIV, acc, acc, count, 0, 0, 0);
    }
    if (c->relu) build_map(&b, ENT_MAP_RELU, acc, acc, 0, 0, 0, 0);
    access = build_access(&b, out);
    build_index(&b, access, 0, 0, vh, 0, 1);
    build_index(&b, access, 1, 0, vw, 1, 1);
    build_index(&b, access, 2, 0, vc, 2, 1);
    build_store(&b, access, acc);
    ck_assert(check_program(&b.program, NULL, 0, tier));
}

START_TEST(windows_agree) {
    for (int i = 0; i < 250; i++) {
        special_every = i % 2 ? 30 : 0;
        window c = {.h = random_in(1, 9), .w = random_in(1, 14), .c = random_in(1, 40)};
        c.kh = random_in(1, 3);
        c.kw = random_in(1, 4);
        c.stride = random_in(1, 2);
        c.dilation = random_in(1, 2);
        c.pad = random_in(0, 2);
        c.th = random_in(1, 4);
        c.tw = random_in(1, 12);
        c.tc = random_in(1, 32);
        c.op = (int)random_in(0, 4);
        c.plain = random_in(0, 3) == 0;
        c.relu = random_in(0, 1);
        check_window(&c, ENT_TIER_NONE);
    }
    special_every = 0;
    window c = {.h = 12,
                .w = 12,
                .c = 32,
                .kh = 3,
                .kw = 3,
                .stride = 1,
                .dilation = 1,
                .pad = 1,
                .th = 4,
                .tw = 12,
                .tc = 32};
    for (c.op = 0; c.op <= 4; c.op++) check_window(&c, ENT_TIER_TUNED);
}
END_TEST

/* ---- rows ---- */

static uint32_t load_all(build *b, uint32_t role, uint32_t rank, const int64_t *dims, const int64_t *tile,
                         const uint32_t *variables) {
    uint32_t buffer = build_buffer(b, role, F32, rank, dims), access = build_access(b, buffer);
    for (uint32_t i = 0; i < rank; i++)
        if (tile[i] > 1 || dims[i] > 1) build_index(b, access, i, 0, variables[i], i, 1);
    uint32_t t = build_tile(b, F32, rank, tile[0], rank > 1 ? tile[1] : 0, rank > 2 ? tile[2] : 0, 0);
    build_load(b, t, access, 0);
    return t;
}

static void store_all(build *b, uint32_t rank, const int64_t *dims, const uint32_t *variables, uint32_t t) {
    uint32_t buffer = build_buffer(b, ENT_ROLE_OUTPUT, F32, rank, dims), access = build_access(b, buffer);
    for (uint32_t i = 0; i < rank; i++) build_index(b, access, i, 0, variables[i], i, 1);
    build_store(b, access, t);
}

static void check_softmax(int64_t rows, int64_t n, int64_t tr, bool in_place, bool masked, uint32_t tier) {
    build b;
    build_begin(&b);
    uint32_t v[] = {build_grid(&b, rows, tr), NONE};
    int64_t dims[] = {rows, n}, tile[] = {tr, n};
    uint32_t x = load_all(&b, ENT_ROLE_INPUT, 2, dims, tile, v), max = build_tile(&b, F32, 2, tr, 1, 0, 0);
    uint32_t sum = build_tile(&b, F32, 2, tr, 1, 0, 0),
             shifted = in_place ? x : build_tile(&b, F32, 2, tr, n, 0, 0);
    if (masked) {
        uint32_t mask = load_all(&b, ENT_ROLE_INPUT, 2, (int64_t[]){1, n}, (int64_t[]){1, n}, v);
        build_map(&b, ENT_MAP_ADD, x, x, mask, 0, 0, 0);
    }
    build_reduce(&b, ENT_REDUCE_MAX, max, x, 2);
    build_map(&b, ENT_MAP_SUB, shifted, x, max, 0, 0, 0);
    build_map(&b, ENT_MAP_EXP, shifted, shifted, 0, 0, 0, 0);
    build_reduce(&b, ENT_REDUCE_SUM, sum, shifted, 2);
    build_map(&b, ENT_MAP_DIV, shifted, shifted, sum, 0, 0, 0);
    store_all(&b, 2, dims, v, shifted);
    ck_assert(check_program(&b.program, NULL, 0, tier));
}

static void check_layer_norm(int64_t rows, int64_t n, int64_t tr, bool in_place, bool affine, uint32_t tier) {
    build b;
    build_begin(&b);
    uint32_t v[] = {build_grid(&b, rows, tr), NONE};
    int64_t dims[] = {rows, n}, tile[] = {tr, n}, row[] = {1, n};
    uint32_t x = load_all(&b, ENT_ROLE_INPUT, 2, dims, tile, v), mean = build_tile(&b, F32, 2, tr, 1, 0, 0);
    uint32_t variance = build_tile(&b, F32, 2, tr, 1, 0, 0), square = build_tile(&b, F32, 2, tr, n, 0, 0);
    uint32_t centred = in_place ? x : build_tile(&b, F32, 2, tr, n, 0, 0);
    build_reduce(&b, ENT_REDUCE_SUM, mean, x, 2);
    build_map(&b, ENT_MAP_SCALE_SHIFT, mean, mean, 0, 0, 1.0 / (double)n, -0.0);
    build_map(&b, ENT_MAP_SUB, centred, x, mean, 0, 0, 0);
    build_map(&b, ENT_MAP_SQUARE, square, centred, 0, 0, 0, 0);
    build_reduce(&b, ENT_REDUCE_SUM, variance, square, 2);
    build_map(&b, ENT_MAP_SCALE_SHIFT, variance, variance, 0, 0, 1.0 / (double)n, 1e-3);
    build_map(&b, ENT_MAP_RSQRT, variance, variance, 0, 0, 0, 0);
    build_map(&b, ENT_MAP_MUL, centred, centred, variance, 0, 0, 0);
    if (affine) {
        uint32_t scale = load_all(&b, ENT_ROLE_CONSTANT, 2, row, row, v);
        build_map(&b, ENT_MAP_MUL, centred, centred, scale, 0, 0, 0);
        uint32_t bias = load_all(&b, ENT_ROLE_CONSTANT, 2, row, row, v);
        build_map(&b, ENT_MAP_ADD, centred, centred, bias, 0, 0, 0);
    }
    store_all(&b, 2, dims, v, centred);
    ck_assert(check_program(&b.program, NULL, 0, tier));
}

START_TEST(rows_agree) {
    for (int i = 0; i < 60; i++) {
        special_every = i % 3 ? 0 : 60;
        int64_t rows = random_in(1, 20), n = random_in(2, 70), tr = random_in(1, 6);
        check_softmax(rows, n, tr, i & 1, i & 2, ENT_TIER_TUNED);
        check_layer_norm(rows, n, tr, i & 1, i & 2, ENT_TIER_TUNED);
    }
    special_every = 0;
}
END_TEST

/* ---- symbols ---- */

/* out[i] = relu(x[i]) for i < N, N known when it runs. */
START_TEST(symbols_agree) {
    for (int64_t n = 0; n < 70; n += 23) {
        build b;
        build_begin(&b);
        b.symbols[b.program.symbol_count++] = (ent_str)ENT_STR("N");
        b.exprs[b.program.expr_count++] = (ent_expr){ENT_EXPR_SYMBOL, 0, 0, 0};
        uint32_t v[] = {build_grid(&b, ~0, 16)};
        int64_t dims[] = {~0}, tile[] = {16};
        uint32_t x = load_all(&b, ENT_ROLE_INPUT, 1, dims, tile, v);
        b.accesses[0].index[0].tile_axis = 0; /* load_all left the open axis alone */
        b.accesses[0].index[0].step = 1;
        if (b.accesses[0].index[0].term_count == 0) build_term(&b, 0, 0, v[0], 1);
        build_map(&b, ENT_MAP_RELU, x, x, 0, 0, 0, 0);
        store_all(&b, 1, dims, v, x);
        ck_assert(check_program(&b.program, &n, 1, ENT_TIER_TUNED));
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cpu_executor");
    TCase *tests = tcase_create("forms");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, matmuls_agree);
    tcase_add_test(tests, products_of_bytes_agree);
    tcase_add_test(tests, long_sums_agree);
    tcase_add_test(tests, convolutions_agree);
    tcase_add_test(tests, convolutions_are_native);
    tcase_add_test(tests, chained_multiplies_agree);
    tcase_add_test(tests, windows_agree);
    tcase_add_test(tests, rows_agree);
    tcase_add_test(tests, symbols_agree);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
