/* Random graphs out of what the rewrites look for, as text: patterns with a wrong number now and then, values
 * that others read too, transposes around everything, chains of scales, shifts and bounds around
 * contractions. */
#ifndef REWRITE_RANDOM_H
#define REWRITE_RANDOM_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/graph/graph.h"

#define MAX_VALUES 400
#define MAX_RANK 5

typedef struct shape {
    uint32_t rank;
    int64_t dims[MAX_RANK];
} shape;

typedef struct random_value {
    shape shape;
    bool moved_only; /* no arithmetic has rounded it: it may go where rounding decides */
    bool is_output;
} random_value;

typedef struct generator {
    uint64_t state;
    ent_arena *arena;
    ent_text text, bodies;
    random_value values[MAX_VALUES];
    uint32_t count, constants, bodies_count;
} generator;

/* ---- choices ---- */

static inline uint32_t pick(generator *g, uint32_t count) {
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((g->state >> 33) % count);
}

static inline bool one_in(generator *g, uint32_t count) {
    return pick(g, count) == 0;
}

static inline uint32_t pick_value(generator *g) {
    return one_in(g, 3) ? pick(g, g->count) : g->count - 1;
}

/* Of at least `rank` axes. */
static inline uint32_t pick_ranked(generator *g, uint32_t rank) {
    for (int i = 0; i < 20; i++) {
        uint32_t x = pick_value(g);
        if (g->values[x].shape.rank >= rank) return x;
    }
    return 0;
}

static inline const char *pick_name(generator *g, const char *const *names, uint32_t count) {
    return names[pick(g, count)];
}
#define PICK_NAME(g, ...)                                                                                    \
    pick_name(g, (const char *const[]){__VA_ARGS__},                                                         \
              (uint32_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *)))

/* ---- writing ---- */

static inline const char *dims_text(generator *g, const shape *s) {
    ent_text t;
    ent_text_init(&t, g->arena);
    for (uint32_t i = 0; i < s->rank; i++) ent_text_add(&t, "%s%lld", i ? "," : "", (long long)s->dims[i]);
    return t.data ? t.data : "";
}

static inline const char *list_text(generator *g, const int64_t *items, uint32_t count) {
    ent_text t;
    ent_text_init(&t, g->arena);
    for (uint32_t i = 0; i < count; i++) ent_text_add(&t, "%s%lld", i ? ", " : "", (long long)items[i]);
    return t.data ? t.data : "";
}

/* A node with one result; the operator and its inputs are the format. */
static inline uint32_t add_node(generator *g, shape s, const char *format, ...) {
    char body[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    ent_text_add(&g->text, "%%v%u = %s name \"n%u\"\n", g->count, body, g->count);
    g->values[g->count] = (random_value){s, false, one_in(g, 40)};
    return g->count++;
}

static inline uint32_t add_moved(generator *g, uint32_t from, shape s, const char *body) {
    uint32_t v = add_node(g, s, "%s", body);
    g->values[v].moved_only = g->values[from].moved_only;
    return v;
}

static inline uint32_t add_constant(generator *g, shape s) {
    ent_text_add(&g->text, "%%k%u = constant f32[%s] random %u 0.7\n", g->constants, dims_text(g, &s),
                 pick(g, 1000));
    return g->constants++;
}

/* One element; now and then not quite what was asked for. */
static inline uint32_t add_number(generator *g, double x) {
    const char *rank = one_in(g, 4) ? "1" : "";
    if (one_in(g, 25)) x = x * 1.25 + 0.125;
    ent_text_add(&g->text, "%%k%u = constant f32[%s] {%.9g}\n", g->constants, rank, x);
    return g->constants++;
}

static inline uint32_t add_ints(generator *g, const int64_t *items, uint32_t count) {
    ent_text_add(&g->text, "%%k%u = constant i64[%u] {%s}\n", g->constants, count,
                 list_text(g, items, count));
    return g->constants++;
}

static inline uint32_t add_int(generator *g, int64_t item) {
    return add_ints(g, &item, 1);
}

static inline int64_t count_of(const shape *s) {
    int64_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++) count *= s->dims[i];
    return count;
}

/* ---- pieces: elementwise ---- */

static inline void piece_unary(generator *g) {
    uint32_t x = pick_value(g);
    const char *op = PICK_NAME(g, "Relu", "Tanh", "Abs", "Neg", "Sigmoid", "Softsign", "Identity", "Dropout");
    add_node(g, g->values[x].shape, "%s(%%v%u)", op, x);
}

static inline void piece_bounds(generator *g) {
    uint32_t x = pick_value(g), a = add_number(g, (double)pick(g, 12) / 4 - 1),
             b = add_number(g, 0.25 + pick(g, 3));
    shape s = g->values[x].shape;
    for (uint32_t i = 0, count = 1 + pick(g, 3); i < count; i++) {
        switch (pick(g, 4)) {
        case 0:
            x = add_node(g, s, "Relu(%%v%u)", x);
            break;
        case 1:
            if (s.rank) x = add_node(g, s, "Max(%%v%u, %%k%u)", x, a);
            break;
        case 2:
            if (s.rank) x = add_node(g, s, "Min(%%k%u, %%v%u)", b, x);
            break;
        default:
            ent_text_add(&g->text, "%%k%u = constant f32[] {-0.5}\n", g->constants);
            x = add_node(g, s, one_in(g, 2) ? "Clip(%%v%u, %%k%u)" : "Clip(%%v%u, _, %%k%u)", x,
                         g->constants);
            g->constants++;
        }
    }
}

/* A constant that broadcasts to the shape: a number, a vector along one axis, or with some axes of size 1. */
static inline uint32_t add_factor(generator *g, const shape *s) {
    static const double numbers[] = {0, 1, 1, 2, 0.5, 0.25, -1, 3, 0.7};
    shape k = *s;
    if (s->rank == 0 || one_in(g, 3)) {
        ent_text_add(&g->text, "%%k%u = constant f32[] {%g}\n", g->constants, numbers[pick(g, 9)]);
        return g->constants++;
    }
    uint32_t drop = pick(g, s->rank), axis = pick(g, s->rank);
    bool along_one = one_in(g, 2);
    for (uint32_t i = 0; i < s->rank; i++)
        if (along_one ? i != axis : one_in(g, 3)) k.dims[i] = 1;
    while (drop > 0 && k.rank > 1 && k.dims[0] == 1) {
        memmove(k.dims, k.dims + 1, --k.rank * sizeof *k.dims);
        drop--;
    }
    return add_constant(g, k);
}

static inline void piece_constant(generator *g) {
    uint32_t x = pick_value(g);
    shape s = g->values[x].shape;
    for (uint32_t i = 0, count = 1 + pick(g, 3); i < count; i++) {
        const char *op = PICK_NAME(g, "Add", "Sub", "Mul", "Max", "Min");
        uint32_t k = add_factor(g, &s);
        x = one_in(g, 4) ? add_node(g, s, "%s(%%k%u, %%v%u)", op, k, x)
                         : add_node(g, s, "%s(%%v%u, %%k%u)", op, x, k);
    }
}

static inline void piece_quotient(generator *g) {
    uint32_t x = pick_value(g), k = add_number(g, one_in(g, 2) ? 4 : 3);
    shape s = g->values[x].shape;
    if (s.rank == 0) return;
    add_node(g, s, one_in(g, 3) ? "Pow(%%v%u, %%k%u)" : "Div(%%v%u, %%k%u)", x,
             one_in(g, 3) ? add_number(g, 2) : k);
}

static inline bool same_shape(const shape *a, const shape *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

static inline void piece_binary(generator *g) {
    uint32_t x = pick_value(g), y = pick(g, g->count);
    for (int i = 0; i < 30 && !same_shape(&g->values[x].shape, &g->values[y].shape); i++)
        y = pick(g, g->count);
    if (!same_shape(&g->values[x].shape, &g->values[y].shape)) y = x;
    add_node(g, g->values[x].shape, "%s(%%v%u, %%v%u)", PICK_NAME(g, "Add", "Sub", "Mul", "Max"), x, y);
}

static inline void piece_twin(generator *g) {
    uint32_t x = pick_value(g), k = add_number(g, 0.5), l = add_number(g, 0.5);
    shape s = g->values[x].shape;
    if (s.rank == 0) return;
    uint32_t a = add_node(g, s, "Mul(%%v%u, %%k%u)", x, k), b = add_node(g, s, "Mul(%%v%u, %%k%u)", x, l);
    add_node(g, s, "Add(%%v%u, %%v%u)", a, b);
}

static inline void piece_where(generator *g) {
    uint32_t x = pick_value(g), y = g->values[x].shape.rank ? x : 0;
    shape s = g->values[y].shape;
    int64_t last = s.dims[s.rank - 1], bits[64] = {0};
    bool all = one_in(g, 2);
    if (last > 64) return;
    for (int64_t i = 0; i < last; i++) bits[i] = all || one_in(g, 2);
    ent_text_add(&g->text, "%%k%u = constant bool[%lld] {%s}\n", g->constants, (long long)last,
                 list_text(g, bits, (uint32_t)last));
    uint32_t z = add_node(g, s, "Tanh(%%v%u)", y);
    add_node(g, s, "Where(%%k%u, %%v%u, %%v%u)", g->constants++, y, z);
}

static inline void piece_casts(generator *g) {
    uint32_t x = pick_value(g), middle = g->values[x].moved_only ? 1 + pick(g, 4) : 4;
    shape s = g->values[x].shape;
    ent_text_add(&g->text, "%%c%u = Cast(%%v%u) {to = %u} name \"c%u\"\n", g->count, x, middle, g->count);
    add_node(g, s, "Cast(%%c%u) {to = 1}", g->count);
}

/* Integers wrap and truncate: what holds for floats need not hold for them. */
static inline void piece_integers(generator *g) {
    uint32_t x = pick_ranked(g, 1), id = g->count, steps = 1 + pick(g, 4);
    if (!g->values[x].moved_only) return;
    ent_text_add(&g->text, "%%i%u_0 = Cast(%%v%u) {to = 9} name \"i%u_0\"\n", id, x, id);
    for (uint32_t i = 0; i < steps; i++) {
        const char *op = PICK_NAME(g, "Add", "Sub", "Mul", "Div", "Max", "Min", "Pow");
        ent_text_add(&g->text, "%%k%u = constant i32[1] {%u}\n", g->constants, pick(g, 4));
        ent_text_add(&g->text, "%%i%u_%u = %s(%%i%u_%u, %%k%u) name \"i%u_%u\"\n", id, i + 1, op, id, i,
                     g->constants++, id, i + 1);
    }
    uint32_t y = add_node(g, g->values[x].shape, "Cast(%%i%u_%u) {to = 1}", id, steps);
    g->values[y].moved_only = true;
}

static inline void piece_slopes(generator *g) {
    uint32_t x = pick_ranked(g, 3);
    shape s = g->values[x].shape, slopes = {s.rank - 1, {s.dims[1], 1, 1, 1}}, pooled = s;
    if (one_in(g, 2)) {
        add_node(g, s, "PRelu(%%v%u, %%k%u)", x, add_constant(g, slopes));
        return;
    }
    for (uint32_t i = 2; i < s.rank; i++) pooled.dims[i] = 1;
    add_node(g, pooled, "GlobalAveragePool(%%v%u)", x);
}

/* ---- pieces: movement ---- */

static inline uint32_t transpose(generator *g, uint32_t x, const int64_t *perm) {
    shape from = g->values[x].shape, to = {from.rank, {0}};
    for (uint32_t i = 0; i < from.rank; i++) to.dims[i] = from.dims[perm[i]];
    return add_moved(
        g, x, to,
        ent_arena_format(g->arena, "Transpose(%%v%u) {perm = [%s]}", x, list_text(g, perm, from.rank)));
}

static inline void random_order(generator *g, uint32_t rank, int64_t *perm, int64_t *inverse) {
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
    for (uint32_t i = rank; i > 1; i--) {
        uint32_t k = pick(g, i);
        int64_t moved = perm[k];
        perm[k] = perm[i - 1];
        perm[i - 1] = moved;
    }
    for (uint32_t i = 0; i < rank; i++) inverse[perm[i]] = i;
}

static inline void piece_transpose(generator *g) {
    int64_t perm[MAX_RANK], inverse[MAX_RANK];
    uint32_t x = pick_ranked(g, 2);
    random_order(g, g->values[x].shape.rank, perm, inverse);
    transpose(g, x, perm);
}

/* Transpose, something that a transpose passes, and back. */
static inline void piece_sandwich(generator *g) {
    int64_t perm[MAX_RANK], inverse[MAX_RANK];
    uint32_t x = pick_ranked(g, 2), rank = g->values[x].shape.rank;
    random_order(g, rank, perm, inverse);
    uint32_t y = transpose(g, x, perm);
    shape s = g->values[y].shape;
    for (uint32_t i = 0, count = 1 + pick(g, 3); i < count; i++) {
        switch (pick(g, 4)) {
        case 0:
            y = add_node(g, s, "%s(%%v%u, %%k%u)", PICK_NAME(g, "Mul", "Add"), y, add_factor(g, &s));
            break;
        case 1:
            y = add_node(g, s, "Softmax(%%v%u) {axis = %d}", y,
                         (int)pick(g, rank) - (one_in(g, 2) ? (int)rank : 0));
            break;
        case 2:
            y = add_node(g, s, "Max(%%v%u, %%v%u)", transpose(g, x, perm), y);
            break;
        default:
            y = add_node(g, s, "%s(%%v%u)", PICK_NAME(g, "Relu", "Tanh", "Neg"), y);
        }
    }
    if (!one_in(g, 5)) transpose(g, y, inverse);
}

/* Two values that stand in different orders of the same sizes. */
static inline void piece_orders(generator *g) {
    uint32_t x = pick_ranked(g, 2), rank = g->values[x].shape.rank;
    shape square = {rank, {0}};
    int64_t perm[MAX_RANK], inverse[MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) square.dims[i] = 2;
    uint32_t y = add_node(g, square, "Add(%%one, %%k%u)", add_constant(g, square));
    random_order(g, rank, perm, inverse);
    uint32_t a = transpose(g, y, perm);
    if (one_in(g, 2)) random_order(g, rank, perm, inverse);
    uint32_t b = transpose(g, add_node(g, square, "Tanh(%%v%u)", y), perm);
    uint32_t c = add_node(g, square, "%s(%%v%u, %%v%u)", PICK_NAME(g, "Add", "Mul", "Max"), a, b);
    if (one_in(g, 2)) transpose(g, c, inverse);
}

static inline void piece_reshape(generator *g) {
    uint32_t x = pick_value(g);
    shape s = g->values[x].shape, to = {0, {0}};
    int64_t count = count_of(&s), left = count;
    for (uint32_t i = 0, rank = 1 + pick(g, 3); i + 1 < rank; i++) {
        int64_t factor = 1 + pick(g, 5);
        if (left % factor != 0) factor = 1;
        to.dims[to.rank++] = factor;
        left /= factor;
    }
    to.dims[to.rank++] = left;
    int64_t written[MAX_RANK];
    memcpy(written, to.dims, sizeof written);
    if (one_in(g, 3)) written[to.rank - 1] = -1;
    add_moved(g, x, to,
              ent_arena_format(g->arena, "Reshape(%%v%u, %%k%u)", x, add_ints(g, written, to.rank)));
}

static inline void piece_axes(generator *g) {
    uint32_t x = pick_value(g);
    shape s = g->values[x].shape;
    if (s.rank < MAX_RANK && one_in(g, 2)) {
        uint32_t axis = one_in(g, 2) ? 0 : pick(g, s.rank + 1);
        memmove(s.dims + axis + 1, s.dims + axis, (s.rank - axis) * sizeof *s.dims);
        s.dims[axis] = 1;
        s.rank++;
        add_moved(g, x, s, ent_arena_format(g->arena, "Unsqueeze(%%v%u, %%k%u)", x, add_int(g, axis)));
        return;
    }
    for (uint32_t axis = 0; axis < s.rank; axis++) {
        if (s.dims[axis] != 1) continue;
        memmove(s.dims + axis, s.dims + axis + 1, (--s.rank - axis) * sizeof *s.dims);
        add_moved(g, x, s, ent_arena_format(g->arena, "Squeeze(%%v%u, %%k%u)", x, add_int(g, axis)));
        return;
    }
}

static inline void piece_expand(generator *g) {
    uint32_t y = pick_value(g), op = pick(g, 3);
    shape s = g->values[y].shape, small = s;
    if (s.rank == 0) return;
    small.dims[pick(g, s.rank)] = 1;
    if (small.dims[0] == 1 && small.rank > 1 && one_in(g, 2))
        memmove(small.dims, small.dims + 1, --small.rank * sizeof *s.dims);
    for (uint32_t i = 0; i < small.rank; i++)
        if (one_in(g, 3)) small.dims[i] = 1;
    uint32_t x = add_node(g, small, "Add(%%one, %%k%u)", add_constant(g, small));
    x = add_moved(g, x, s,
                  ent_arena_format(g->arena, "Expand(%%v%u, %%k%u)", x, add_ints(g, s.dims, s.rank)));
    if (op < 2) add_node(g, s, "%s(%%v%u, %%v%u)", op ? "Mul" : "Add", y, x);
}

static inline uint32_t reduce(generator *g, const char *op, uint32_t x, uint32_t axis, bool keep) {
    shape s = g->values[x].shape;
    int64_t written = one_in(g, 2) ? axis : (int64_t)axis - s.rank;
    s.dims[axis] = 1;
    if (!keep) memmove(s.dims + axis, s.dims + axis + 1, (--s.rank - axis) * sizeof *s.dims);
    return add_node(g, s, "%s(%%v%u, %%k%u) {keepdims = %d}", op, x, add_int(g, written), keep);
}

static inline void piece_reduce(generator *g) {
    uint32_t x = pick_ranked(g, 1), axis = pick(g, g->values[x].shape.rank);
    bool keep = one_in(g, 2);
    shape kept = g->values[x].shape;
    double count = (double)kept.dims[axis];
    const char *op = PICK_NAME(g, "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2");
    uint32_t y = reduce(g, op, x, axis, keep);
    kept.dims[axis] = 1;
    if (!keep && one_in(g, 2))
        add_node(g, kept, "Reshape(%%v%u, %%k%u)", y, add_ints(g, kept.dims, kept.rank));
    else if (strcmp(op, "ReduceSum") == 0 && g->values[y].shape.rank)
        add_node(g, g->values[y].shape, "Mul(%%v%u, %%k%u)", y, add_number(g, 1 / count));
}

static inline void piece_concat(generator *g) {
    uint32_t x = pick_ranked(g, 2), y, axis = pick(g, g->values[x].shape.rank);
    shape s = g->values[x].shape, both = s;
    int64_t perm[MAX_RANK], inverse[MAX_RANK];
    if (s.dims[axis] > 6) return;
    both.dims[axis] *= 2;
    random_order(g, s.rank, perm, inverse);
    uint32_t a = transpose(g, x, inverse);
    y = transpose(g, add_node(g, g->values[a].shape, "Tanh(%%v%u)", a), perm);
    if (one_in(g, 3))
        y = add_node(g, both, "Concat(%%v%u, %%k%u) {axis = %u}", y, add_constant(g, s), axis);
    else
        y = add_node(g, both, "Concat(%%v%u, %%v%u) {axis = %u}", x, y, axis);
    if (one_in(g, 2)) transpose(g, y, perm);
}

static inline void piece_split(generator *g) {
    uint32_t x = pick_ranked(g, 1), axis = pick(g, g->values[x].shape.rank);
    shape s = g->values[x].shape, first = s, second = s;
    if (s.dims[axis] < 2) return;
    first.dims[axis] = 1;
    second.dims[axis]--;
    int64_t parts[2] = {1, s.dims[axis] - 1};
    uint32_t k = add_ints(g, parts, 2), moved = g->values[x].moved_only;
    ent_text_add(&g->text, "%%v%u, %%v%u = Split(%%v%u, %%k%u) {axis = %u} name \"n%u\"\n", g->count,
                 g->count + 1, x, k, axis, g->count);
    g->values[g->count++] = (random_value){first, moved, false};
    g->values[g->count++] = (random_value){second, moved, false};
}

static inline void piece_part(generator *g) {
    uint32_t x = pick_ranked(g, 2), axis = pick(g, g->values[x].shape.rank), kind = pick(g, 4);
    shape s = g->values[x].shape;
    int64_t size = s.dims[axis], begin = size > 1 ? pick(g, 2) : 0;
    if (kind == 0) {
        s.dims[axis] = size - begin;
        uint32_t from = add_int(g, begin), to = add_int(g, INT64_MAX), axes = add_int(g, axis);
        add_moved(g, x, s,
                  ent_arena_format(g->arena, "Slice(%%v%u, %%k%u, %%k%u, %%k%u)", x, from, to, axes));
    } else if (kind == 1) {
        uint32_t ends = add_int(g, INT64_MIN + 1), axes = add_int(g, axis), back = add_int(g, -1);
        add_moved(g, x, s,
                  ent_arena_format(g->arena, "Slice(%%v%u, %%k%u, %%k%u, %%k%u, %%k%u)", x, add_int(g, -1),
                                   ends, axes, back));
    } else if (kind == 2) {
        int64_t pads[2 * MAX_RANK] = {0};
        pads[axis] = one_in(g, 3) ? 0 : 1;
        s.dims[axis] += pads[axis];
        add_moved(g, x, s, ent_arena_format(g->arena, "Pad(%%v%u, %%k%u)", x, add_ints(g, pads, 2 * s.rank)));
    } else if (one_in(g, 2)) {
        int64_t items[2] = {size - 1, 0};
        s.dims[axis] = 2;
        add_moved(
            g, x, s,
            ent_arena_format(g->arena, "Gather(%%v%u, %%k%u) {axis = %u}", x, add_ints(g, items, 2), axis));
    } else {
        memmove(s.dims + axis, s.dims + axis + 1, (--s.rank - axis) * sizeof *s.dims);
        ent_text_add(&g->text, "%%k%u = constant i64[] {%lld}\n", g->constants, (long long)(size - 1));
        add_moved(g, x, s,
                  ent_arena_format(g->arena, "Gather(%%v%u, %%k%u) {axis = %u}", x, g->constants++, axis));
    }
}

/* Rows and columns of something larger than what it is made of: an outer product or an expanded column. */
static inline void piece_selection(generator *g) {
    const shape column = {2, {4, 1}}, row = {2, {1, 5}};
    shape s = {2, {4, 5}};
    uint32_t x = add_node(g, column, "Add(%%one, %%k%u)", add_constant(g, column));
    uint32_t y = add_node(g, row, "Sub(%%one, %%k%u)", add_constant(g, row));
    uint32_t z = one_in(g, 3)
                     ? add_node(g, s, "Expand(%%v%u, %%k%u)", x, add_ints(g, s.dims, 2))
                     : add_node(g, s, "%s(%%v%u, %%v%u)", PICK_NAME(g, "MatMul", "Mul", "Max"), x, y);
    if (one_in(g, 2)) z = add_node(g, s, "%s(%%v%u)", PICK_NAME(g, "Tanh", "Neg"), z);
    if (one_in(g, 2)) z = add_node(g, s, "Mul(%%v%u, %%k%u)", z, add_factor(g, &s));
    if (one_in(g, 2)) {
        const int64_t starts[2] = {pick(g, 2), 4}, ends[2] = {INT64_MAX, -5 - (int64_t)pick(g, 2)},
                      axes[2] = {-2, 1}, steps[2] = {1 + pick(g, 2), -2};
        s.dims[0] = (4 - starts[0] + steps[0] - 1) / steps[0];
        s.dims[1] = ends[1] == -5 ? 2 : 3;
        uint32_t from = add_ints(g, starts, 2), to = add_ints(g, ends, 2), along = add_ints(g, axes, 2);
        add_node(g, s, "Slice(%%v%u, %%k%u, %%k%u, %%k%u, %%k%u)", z, from, to, along, add_ints(g, steps, 2));
        return;
    }
    uint32_t axis = pick(g, 2), rank = pick(g, 3);
    shape made = {1 + rank, {s.dims[1 - axis]}};
    for (uint32_t i = 0; i < rank; i++) made.dims[axis + i] = 1 + i;
    if (axis == 0) made.dims[rank] = s.dims[1];
    ent_text_add(&g->text, "%%k%u = constant i64[%s] {%s}\n", g->constants,
                 rank == 2   ? "1,2"
                 : rank == 1 ? "1"
                             : "",
                 rank == 2 ? "1, -4" : "-1");
    add_node(g, made, "Gather(%%v%u, %%k%u) {axis = %d}", z, g->constants++,
             (int)axis - (one_in(g, 2) ? 2 : 0));
}

/* Rounding decides here, so that only moved values may come in. */
static inline void piece_rounding(generator *g) {
    uint32_t x = pick_ranked(g, 2), axis = pick(g, g->values[x].shape.rank);
    shape s = g->values[x].shape, scale = {1, {s.dims[axis]}};
    if (!g->values[x].moved_only) return;
    if (one_in(g, 2)) {
        ent_text_add(&g->text, "%%i%u = ArgMax(%%v%u) {axis = %u, keepdims = 1} name \"i%u\"\n", g->count, x,
                     axis, g->count);
        s.dims[axis] = 1;
    } else {
        ent_text_add(&g->text, "%%k%u = constant f32[%lld] fill 0.0625\n%%k%u = constant i8[%lld] fill 3\n",
                     g->constants, (long long)scale.dims[0], g->constants + 1, (long long)scale.dims[0]);
        ent_text_add(&g->text, "%%i%u = QuantizeLinear(%%v%u, %%k%u, %%k%u) {axis = %u} name \"i%u\"\n",
                     g->count, x, g->constants, g->constants + 1, axis, g->count);
        g->constants += 2;
    }
    int64_t perm[MAX_RANK], inverse[MAX_RANK];
    random_order(g, s.rank, perm, inverse);
    ent_text_add(&g->text, "%%j%u = Transpose(%%i%u) {perm = [%s]} name \"j%u\"\n", g->count, g->count,
                 list_text(g, perm, s.rank), g->count);
    shape t = {s.rank, {0}};
    for (uint32_t i = 0; i < s.rank; i++) t.dims[i] = s.dims[perm[i]];
    add_node(g, t, "Cast(%%j%u) {to = 1}", g->count);
}

/* Shapes computed in the graph, and constants of constants. */
static inline void piece_shape(generator *g) {
    uint32_t x = pick_ranked(g, 1), k = g->constants, id = g->count;
    shape s = g->values[x].shape, flat = {1, {count_of(&s)}};
    g->constants += 2;
    ent_text_add(&g->text, "%%k%u = constant i64[1] {-1}\n%%s%u = Shape(%%v%u) name \"s%u\"\n", k, id, x, id);
    uint32_t y = add_moved(g, x, flat, ent_arena_format(g->arena, "Reshape(%%v%u, %%k%u)", x, k));
    y = add_moved(g, y, s, ent_arena_format(g->arena, "Reshape(%%v%u, %%s%u)", y, id));
    ent_text_add(&g->text, "%%k%u = constant f32[] {0.5}\n%%f%u = Neg(%%k%u) name \"f%u\"\n", k + 1, id,
                 k + 1, id);
    add_node(g, s, "Mul(%%v%u, %%f%u)", y, id);
}

static inline void piece_branch(generator *g) {
    int64_t perm[MAX_RANK] = {0}, inverse[MAX_RANK] = {0};
    uint32_t x = pick_ranked(g, 2), id = g->count, known = g->constants;
    shape s = g->values[x].shape;
    random_order(g, s.rank, perm, inverse);
    uint32_t y = transpose(g, x, perm);
    const char *order = list_text(g, inverse, s.rank);
    ent_text_add(&g->bodies,
                 "graph t%u of \"n%u\"() -> (%%ty%u) {\n%%ta%u = Relu(%%v%u) name \"ta%u\"\n"
                 "%%ty%u = Transpose(%%ta%u) {perm = [%s]} name \"ty%u\"\n}\n",
                 id, y + 1, id, id, y, id, id, id, order, id);
    ent_text_add(&g->bodies,
                 "graph e%u of \"n%u\"() -> (%%ey%u) {\n%%ek%u = constant f32[] {0.5}\n%%ea%u = Add(%%ek%u, "
                 "%%v%u) name "
                 "\"ea%u\"\n%%ey%u = Mul(%%ea%u, %%ek%u) name \"ey%u\"\n}\n",
                 id, y + 1, id, id, id, id, x, id, id, id, id, id);
    if (one_in(g, 3)) ent_text_add(&g->text, "%%k%u = constant bool[] {%u}\n", g->constants++, pick(g, 2));
    const char *condition = g->constants > known ? ent_arena_format(g->arena, "k%u", known) : "flag";
    add_node(g, s, "If(%%%s) {then_branch = graph @t%u, else_branch = graph @e%u}", condition, id, id);
}

#endif
