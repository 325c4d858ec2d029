/* Pieces of random graphs that several nodes make up: composites as exporters write them, and contractions in
 * chains of scales. */
#ifndef REWRITE_RANDOM_PATTERNS_H
#define REWRITE_RANDOM_PATTERNS_H

#include "tests/unit/rewrite_random.h"

static inline uint32_t product(generator *g, uint32_t x, uint32_t y) {
    return one_in(g, 2) ? add_node(g, g->values[x].shape, "Mul(%%v%u, %%v%u)", x, y)
                        : add_node(g, g->values[x].shape, "Mul(%%v%u, %%v%u)", y, x);
}

static inline uint32_t scaled(generator *g, uint32_t x, double factor) {
    shape s = g->values[x].shape;
    if (one_in(g, 3)) return add_node(g, s, "Div(%%v%u, %%k%u)", x, add_number(g, 1 / factor));
    return one_in(g, 2) ? add_node(g, s, "Mul(%%v%u, %%k%u)", x, add_number(g, factor))
                        : add_node(g, s, "Mul(%%k%u, %%v%u)", add_number(g, factor), x);
}

static inline uint32_t shifted(generator *g, uint32_t x, double shift) {
    shape s = g->values[x].shape;
    return one_in(g, 2) ? add_node(g, s, "Add(%%v%u, %%k%u)", x, add_number(g, shift))
                        : add_node(g, s, "Add(%%k%u, %%v%u)", add_number(g, shift), x);
}

static inline uint32_t simple(generator *g, const char *op, uint32_t x) {
    return add_node(g, g->values[x].shape, "%s(%%v%u)", op, x);
}

static inline void piece_gelu(generator *g) {
    uint32_t x = pick_ranked(g, 1), inner;
    if (one_in(g, 2)) {
        inner = simple(g, "Erf", scaled(g, x, 0.7071067811865476));
    } else {
        shape s = g->values[x].shape;
        uint32_t cube = one_in(g, 2) ? add_node(g, s, "Pow(%%v%u, %%k%u)", x, add_number(g, 3))
                                     : product(g, x, add_node(g, s, "Mul(%%v%u, %%v%u)", x, x));
        uint32_t sum = add_node(g, s, "Add(%%v%u, %%v%u)", x, scaled(g, cube, 0.044715));
        inner = simple(g, "Tanh", scaled(g, sum, 0.7978845608028654));
    }
    inner = shifted(g, inner, 1);
    if (one_in(g, 2))
        product(g, scaled(g, x, 0.5), inner);
    else
        scaled(g, product(g, x, inner), 0.5);
}

static inline void piece_hard_swish(generator *g) {
    uint32_t x = pick_ranked(g, 1);
    shape s = g->values[x].shape;
    if (one_in(g, 3)) {
        product(g, x,
                add_node(g, s, "HardSigmoid(%%v%u) {alpha = %s, beta = 0.5}", x,
                         PICK_NAME(g, "0.16666667", "0.16666667", "0.2")));
        return;
    }
    uint32_t three = shifted(g, x, 3);
    ent_text_add(&g->text, "%%k%u = constant f32[] {0}\n%%k%u = constant f32[] {%u}\n", g->constants,
                 g->constants + 1, one_in(g, 8) ? 5 : 6);
    uint32_t gate = add_node(g, s, "Clip(%%v%u, %%k%u, %%k%u)", three, g->constants, g->constants + 1);
    g->constants += 2;
    gate = scaled(g, gate, 1.0 / 6);
    if (!one_in(g, 3)) product(g, x, gate);
}

static inline void piece_softmax(generator *g) {
    uint32_t x = pick_ranked(g, 1), rank = g->values[x].shape.rank, axis = pick(g, rank);
    shape s = g->values[x].shape;
    uint32_t other = one_in(g, 8) ? pick(g, rank) : axis;
    uint32_t top = reduce(g, "ReduceMax", x, axis, true);
    uint32_t e = simple(g, "Exp", add_node(g, s, "Sub(%%v%u, %%v%u)", x, top));
    uint32_t sum = reduce(g, "ReduceSum", e, other, true);
    if (one_in(g, 3))
        product(g, e, simple(g, "Reciprocal", sum));
    else
        add_node(g, s, "Div(%%v%u, %%v%u)", e, sum);
}

static inline uint32_t weigh(generator *g, uint32_t x, const char *op, uint32_t axis) {
    shape s = g->values[x].shape, w = {s.rank - axis, {0}};
    memcpy(w.dims, s.dims + axis, w.rank * sizeof *w.dims);
    if (one_in(g, 10)) w.dims[0] = 1;
    return add_node(g, s, "%s(%%v%u, %%k%u)", op, x, add_constant(g, w));
}

static inline void piece_layer_norm(generator *g) {
    uint32_t x = pick_ranked(g, 2), rank = g->values[x].shape.rank,
             axis = one_in(g, 6) ? pick(g, rank) : rank - 1;
    shape s = g->values[x].shape;
    uint32_t mean = reduce(g, "ReduceMean", x, axis, true),
             centred = add_node(g, s, "Sub(%%v%u, %%v%u)", x, mean), variance;
    bool squares = one_in(g, 3);
    if (squares) {
        uint32_t second = reduce(g, "ReduceMean", add_node(g, s, "Mul(%%v%u, %%v%u)", x, x), axis, true);
        shape r = g->values[second].shape;
        uint32_t first = add_node(g, r, "Mul(%%v%u, %%v%u)", mean, mean);
        variance = simple(g, "Relu", add_node(g, r, "Sub(%%v%u, %%v%u)", second, first));
    } else {
        variance = reduce(g, "ReduceMean", add_node(g, s, "Mul(%%v%u, %%v%u)", centred, centred), axis, true);
    }
    uint32_t deviation = simple(g, "Sqrt", shifted(g, variance, 0.05));
    uint32_t y = one_in(g, 3) ? product(g, centred, simple(g, "Reciprocal", deviation))
                              : add_node(g, s, "Div(%%v%u, %%v%u)", centred, deviation);
    if (one_in(g, 4)) return;
    y = weigh(g, y, "Mul", axis);
    if (!one_in(g, 4)) weigh(g, y, "Add", axis);
}

/* As minilm and vit are exported: a scale behind the scores or on both sides before them, and a mask or none.
 */
static inline void piece_attention(generator *g) {
    static const int64_t heads[4] = {0, 2, 1, 3}, keys[4] = {0, 2, 3, 1}, flip[4] = {0, 1, 3, 2};
    uint32_t queries = 2 + pick(g, 2), size = 2, count = 3;
    shape q = {4, {1, queries, 2, size}}, k = {4, {1, count, 2, size}}, scores = {4, {1, 2, queries, count}};
    uint32_t a = add_node(g, q, "Add(%%one, %%k%u)", add_constant(g, q)),
             b = add_node(g, k, "Sub(%%one, %%k%u)", add_constant(g, k));
    uint32_t v = transpose(g, add_node(g, k, "Mul(%%one, %%k%u)", add_constant(g, k)), heads);
    uint32_t query = transpose(g, a, heads);
    uint32_t key = one_in(g, 2) ? transpose(g, b, keys) : transpose(g, transpose(g, b, heads), flip);
    bool both = one_in(g, 2);
    if (both) query = scaled(g, query, 0.8);
    if (both) key = scaled(g, key, 0.8);
    uint32_t s = add_node(g, scores, "MatMul(%%v%u, %%v%u)", query, key);
    if (!both) s = scaled(g, s, 0.5);
    if (one_in(g, 2)) {
        shape mask = {2, {one_in(g, 2) ? queries : 1, count}};
        s = add_node(g, scores, "Add(%%v%u, %%k%u)", s, add_constant(g, mask));
    }
    s = add_node(g, scores, "Softmax(%%v%u) {axis = %d}", s, one_in(g, 8) ? 2 : -1);
    shape out = {4, {1, 2, queries, size}};
    transpose(g, add_node(g, out, "MatMul(%%v%u, %%v%u)", s, v), heads);
}

/* ---- contractions ---- */

/* Scales and shifts, mostly along `axis`. */
static inline uint32_t add_chain(generator *g, uint32_t x, uint32_t axis) {
    shape s = g->values[x].shape;
    for (uint32_t i = 0, count = pick(g, 4); i < count; i++) {
        shape k = {s.rank - axis, {s.dims[axis], 1, 1, 1, 1}};
        if (one_in(g, 10)) k = (shape){1, {s.dims[s.rank - 1]}};
        const char *op = PICK_NAME(g, "Mul", "Add", "Sub", "Mul");
        x = one_in(g, 5) ? add_node(g, s, "%s(%%k%u, %%v%u)", op, add_constant(g, k), x)
                         : add_node(g, s, "%s(%%v%u, %%k%u)", op, x, add_constant(g, k));
        if (one_in(g, 4)) x = scaled(g, x, 0.75);
    }
    return x;
}

static inline void batch_norm(generator *g, uint32_t x) {
    shape s = g->values[x].shape, c = {1, {s.dims[1]}};
    uint32_t scale = add_constant(g, c), shift = add_constant(g, c), mean = add_constant(g, c);
    ent_text_add(&g->text, "%%k%u = constant f32[%lld] fill 0.6\n", g->constants, (long long)c.dims[0]);
    add_node(g, s, "BatchNormalization(%%v%u, %%k%u, %%k%u, %%k%u, %%k%u)", x, scale, shift, mean,
             g->constants++);
}

static inline void piece_conv(generator *g) {
    uint32_t x = pick_ranked(g, 3), pad = pick(g, 2);
    shape s = g->values[x].shape;
    if (s.rank > 4) return;
    if (one_in(g, 2)) x = add_chain(g, x, 1);
    int64_t channels = s.dims[1], group = channels % 2 == 0 && one_in(g, 2) ? 2 : 1,
            made = 2 * (1 + pick(g, 2));
    bool up = one_in(g, 4);
    shape w = {s.rank, {made, channels / group, 1, 1, 1}}, y = s, b = {1, {made}};
    if (up) w = (shape){s.rank, {channels, made / group, 1, 1, 1}};
    y.dims[1] = made;
    const char *pads = "[0, 0]";
    if (pad)
        pads = s.rank == 3 ? "[1, 1]" : "[1, 1, 1, 1]";
    else if (s.rank == 4)
        pads = "[0, 0, 0, 0]";
    for (uint32_t i = 2; i < s.rank && pad; i++) y.dims[i] += up ? -2 : 2;
    for (uint32_t i = 2; i < s.rank; i++)
        if (y.dims[i] < 1) return;
    uint32_t weights = add_constant(g, w);
    const char *op = up ? "ConvTranspose" : "Conv";
    if (one_in(g, 2))
        x = add_node(g, y, "%s(%%v%u, %%k%u) {group = %d, pads = %s}", op, x, weights, (int)group, pads);
    else
        x = add_node(g, y, "%s(%%v%u, %%k%u, %%k%u) {group = %d, pads = %s}", op, x, weights,
                     add_constant(g, b), (int)group, pads);
    if (one_in(g, 2)) x = add_chain(g, x, 1);
    if (one_in(g, 2)) batch_norm(g, x);
}

/* Padding in front of a window, in either order of axes. */
static inline void piece_pads(generator *g) {
    shape s = {4, {1, 2, 3, 4}}, padded = s, y, w = {4, {2, 2, 2, 2}};
    int64_t pads[8] = {0};
    uint32_t x = add_node(g, s, "Add(%%one, %%k%u)", add_constant(g, s)), weights = add_constant(g, w);
    for (uint32_t i = 2; i < 4; i++) {
        pads[i] = pick(g, 3) / 2;
        pads[i + 4] = pick(g, 5) / 2;
        padded.dims[i] += pads[i] + pads[i + 4];
    }
    const char *mode = PICK_NAME(g, "constant", "constant", "edge");
    if (one_in(g, 3)) {
        static const int64_t last[4] = {0, 2, 3, 1}, first[4] = {0, 3, 1, 2};
        int64_t moved[8] = {0, pads[2], pads[3], 0, 0, pads[6], pads[7], 0};
        shape between = {4, {padded.dims[0], padded.dims[2], padded.dims[3], padded.dims[1]}};
        x = add_node(g, between, "Pad(%%v%u, %%k%u) {mode = \"%s\"}", transpose(g, x, last),
                     add_ints(g, moved, 8), mode);
        x = transpose(g, x, first);
    } else {
        ent_text_add(&g->text, "%%k%u = constant f32[] {%s}\n", g->constants,
                     PICK_NAME(g, "0", "-inf", "0", "0.5"));
        uint32_t fill = g->constants++;
        x = add_node(g, padded, "Pad(%%v%u, %%k%u, %%k%u) {mode = \"%s\"}", x, add_ints(g, pads, 8), fill,
                     mode);
    }
    y = padded;
    y.dims[2] -= 1;
    y.dims[3] -= 1;
    if (one_in(g, 3))
        add_node(g, y, "MaxPool(%%v%u) {kernel_shape = [2, 2]}", x);
    else if (one_in(g, 2))
        add_node(g, y, "AveragePool(%%v%u) {kernel_shape = [2, 2], count_include_pad = %u}", x, pick(g, 2));
    else
        add_node(g, y, "Conv(%%v%u, %%k%u)", x, weights);
}

static inline void piece_matmul(generator *g) {
    uint32_t x = pick_ranked(g, 2);
    shape s = g->values[x].shape, y = s;
    int64_t depth = s.dims[s.rank - 1], made = 1 + pick(g, 4);
    y.dims[s.rank - 1] = made;
    if (depth > 64) return;
    if (one_in(g, 2)) x = add_chain(g, x, s.rank - 1);
    if (s.rank == 2 && one_in(g, 2)) {
        bool flipped = one_in(g, 2);
        shape w = {2, {flipped ? made : depth, flipped ? depth : made}}, b = {1, {one_in(g, 4) ? 1 : made}};
        uint32_t k = add_constant(g, w);
        x = add_node(g, y, "Gemm(%%v%u, %%k%u, %%k%u) {transB = %d, alpha = 0.5, beta = %s}", x, k,
                     add_constant(g, b), flipped, one_in(g, 2) ? "1.0" : "2.0");
    } else {
        shape w = {2, {depth, made}};
        x = add_node(g, y, "MatMul(%%v%u, %%k%u)", x, add_constant(g, w));
    }
    add_chain(g, x, s.rank - 1);
}

/* x as bytes and back. Two scales of which no small multiples meet: nothing is rounded from halfway. */
static inline uint32_t add_bytes(generator *g, shape s, const char *name, uint32_t x, bool is_signed) {
    uint32_t scale = g->constants++, zero = g->constants++;
    ent_text_add(&g->text, "%%k%u = constant f32[] {%s}\n%%k%u = constant %s[] {%d}\n", scale,
                 name[0] == 'v' ? "0.0213771" : "0.0172939", zero, is_signed ? "i8" : "u8",
                 one_in(g, 3) ? 0 : (int)pick(g, 100));
    ent_text_add(&g->text, "%%q%u = QuantizeLinear(%%%s%u, %%k%u, %%k%u) name \"q%u\"\n", zero, name, x,
                 scale, zero, zero);
    return add_node(g, s, "DequantizeLinear(%%q%u, %%k%u, %%k%u)", zero, scale, zero);
}

static inline void piece_bytes(generator *g) {
    uint32_t x = pick_ranked(g, 2);
    shape s = g->values[x].shape, y = s;
    int64_t depth = s.dims[s.rank - 1], made = 1 + pick(g, 4);
    y.dims[s.rank - 1] = made;
    if (depth > 64) return;
    bool flipped = s.rank == 2 && one_in(g, 2);
    shape w = {2, {flipped ? made : depth, flipped ? depth : made}}, b = {1, {made}};
    uint32_t k = add_constant(g, w);
    x = add_bytes(g, s, "v", x, one_in(g, 2));
    k = add_bytes(g, w, "k", k, one_in(g, 2));
    if (flipped)
        add_node(g, y, "Gemm(%%v%u, %%v%u, %%k%u) {transB = 1, alpha = 0.5}", x, k, add_constant(g, b));
    else
        add_node(g, y, "MatMul(%%v%u, %%v%u)", x, k);
}

#endif
