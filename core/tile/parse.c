/* Text -> tile program: a recursive descent over ent_scan that feeds the builder. Ids must come in order (b0,
 * b1, ...), so that text and arrays agree. */
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/tile/internal.h"
#include "core/tile/tile.h"

typedef struct parser {
    ent_scan *scan;
    ent_tile_builder b;
} parser;

/* ---- small pieces ---- */

/* A word such as "t12": prefix and decimal digits. */
static bool split_id(const char *word, char prefix, uint32_t *out) {
    if (!word || word[0] != prefix || word[1] == 0) return false;
    uint64_t value = 0;
    for (const char *c = word + 1; *c; c++) {
        if (*c < '0' || *c > '9') return false;
        value = value * 10 + (uint64_t)(*c - '0');
        if (value >= ENT_TILE_NONE) return false;
    }
    *out = (uint32_t)value;
    return true;
}

static ent_status parse_id(parser *p, char prefix, uint32_t *out) {
    ent_scan before = *p->scan;
    if (split_id(ent_scan_word(p->scan), prefix, out)) return NULL;
    *p->scan = before;
    return ent_scan_error(p->scan, "expected %c and a number, such as %c0", prefix, prefix);
}

/* An id that is declared here and must be the next one. */
static ent_status parse_new_id(parser *p, char prefix, uint32_t next) {
    uint32_t id = 0;
    ENT_TRY(parse_id(p, prefix, &id));
    return id == next
               ? NULL
               : ent_scan_error(p->scan, "%c%u is declared where %c%u comes next", prefix, id, prefix, next);
}

static ent_status parse_u32(parser *p, uint32_t *out) {
    int64_t value = 0;
    ENT_TRY(ent_scan_int(p->scan, &value));
    if (value < 0 || value >= ENT_TILE_NONE)
        return ent_scan_error(p->scan, "%lld is out of range", (long long)value);
    *out = (uint32_t)value;
    return NULL;
}

static ent_status parse_dim(parser *p, ent_dim *out) {
    ent_scan before = *p->scan;
    uint32_t id = 0;
    if (split_id(ent_scan_word(p->scan), 'e', &id)) {
        *out = ~(ent_dim)id;
        return NULL;
    }
    *p->scan = before;
    ENT_TRY(ent_scan_int(p->scan, out));
    return *out >= 0 ? NULL : ent_scan_error(p->scan, "a size is a number >= 0 or an expression such as e0");
}

static ent_status parse_name(parser *p, ent_str *out) {
    ent_scan_skip(p->scan);
    if (p->scan->at < p->scan->end && *p->scan->at == '"') return ent_scan_string(p->scan, out);
    const char *word = ent_scan_word(p->scan);
    if (!word) return ent_scan_error(p->scan, "expected a name");
    out->data = word;
    out->size = strlen(word);
    return NULL;
}

/* Position of the word that comes next in a list; 0 and an error if it is none of them. */
static ent_status parse_choice(parser *p, const char *const *words, uint32_t count, const char *what,
                               uint32_t *out) {
    ent_scan before = *p->scan;
    const char *word = ent_scan_word(p->scan);
    for (uint32_t i = 1; word && i < count; i++) {
        if (strcmp(word, words[i]) != 0) continue;
        *out = i;
        return NULL;
    }
    *p->scan = before;
    return ent_scan_error(p->scan, "expected %s", what);
}

static ent_status parse_dtype(parser *p, uint32_t *out) {
    const char *word = ent_scan_word(p->scan);
    for (uint32_t i = 1; word && i < ENT_DTYPE_COUNT; i++) {
        if (strcmp(word, ent_dtype_name(i)) != 0) continue;
        *out = i;
        return NULL;
    }
    return ent_scan_error(p->scan, "expected a dtype such as f32");
}

/* ---- declarations ---- */

static ent_status parse_expr_operands(parser *p, ent_expr *e) {
    ENT_TRY(parse_dim(p, &e->a));
    for (uint32_t kind = ENT_EXPR_ADD; kind <= ENT_EXPR_MAX; kind++) {
        if (!ent_scan_accept(p->scan, ent_tile_expr_words[kind])) continue;
        e->kind = kind;
        return parse_dim(p, &e->b);
    }
    return ent_scan_error(p->scan, "expected one of + - * floordiv ceildiv mod min max");
}

static ent_status parse_expr(parser *p) {
    ent_expr e = {0, 0, 0, 0};
    ENT_TRY(parse_new_id(p, 'e', p->b.exprs.count));
    ENT_TRY(ent_scan_expect(p->scan, "="));
    if (ent_scan_accept(p->scan, "symbol")) {
        ent_str name;
        ENT_TRY(parse_name(p, &name));
        e.kind = ENT_EXPR_SYMBOL;
        while (e.a < p->b.symbols.count && (p->b.symbols.items[e.a].size != name.size ||
                                            memcmp(p->b.symbols.items[e.a].data, name.data, name.size) != 0))
            e.a++;
        if (e.a == p->b.symbols.count) return ent_scan_error(p->scan, "symbol %s is not declared", name.data);
    } else if (ent_scan_accept(p->scan, "const")) {
        e.kind = ENT_EXPR_CONST;
        ENT_TRY(ent_scan_int(p->scan, &e.a));
    } else {
        ENT_TRY(parse_expr_operands(p, &e));
    }
    ent_array_push(p->b.arena, &p->b.exprs, e);
    return NULL;
}

static ent_status parse_grid(parser *p) {
    ent_dim extent = 0;
    int64_t step = 0;
    ENT_TRY(parse_new_id(p, 'v', p->b.grid.count));
    ENT_TRY(ent_scan_expect(p->scan, ":"));
    ENT_TRY(ent_scan_expect(p->scan, "extent"));
    ENT_TRY(parse_dim(p, &extent));
    ENT_TRY(ent_scan_expect(p->scan, "step"));
    ENT_TRY(ent_scan_int(p->scan, &step));
    ent_tile_builder_grid(&p->b, extent, step);
    return NULL;
}

static ent_status parse_layout(parser *p, uint32_t rank, ent_layout *out) {
    uint32_t value = 0;
    *out = ent_layout_plain(rank);
    if (ent_scan_accept(p->scan, "order")) {
        for (uint32_t i = 0; i < rank; i++) {
            ENT_TRY(ent_scan_expect(p->scan, i ? "," : "("));
            ENT_TRY(parse_u32(p, &value));
            if (value >= rank)
                return ent_scan_error(p->scan, "axis %u is not below the rank, %u", value, rank);
            out->order[i] = (uint8_t)value;
        }
        ENT_TRY(ent_scan_expect(p->scan, ")"));
    }
    if (!ent_scan_accept(p->scan, "block")) return NULL;
    ENT_TRY(ent_scan_expect(p->scan, "("));
    do {
        if (out->block_count == ENT_MAX_BLOCKS)
            return ent_scan_error(p->scan, "more than %d blocks", ENT_MAX_BLOCKS);
        ENT_TRY(parse_u32(p, &value));
        if (value >= rank) return ent_scan_error(p->scan, "axis %u is not below the rank, %u", value, rank);
        out->block_axis[out->block_count] = (uint8_t)value;
        ENT_TRY(ent_scan_expect(p->scan, ":"));
        ENT_TRY(parse_u32(p, &value));
        if (value < 1 || value > UINT16_MAX)
            return ent_scan_error(p->scan, "block size %u is not 1..65535", value);
        out->block_size[out->block_count++] = (uint16_t)value;
    } while (ent_scan_accept(p->scan, ","));
    return ent_scan_expect(p->scan, ")");
}

static ent_status parse_buffer(parser *p) {
    uint32_t role = 0, dtype = 0, rank = 0;
    ent_dim dims[ENT_MAX_RANK];
    ent_layout layout;
    ENT_TRY(parse_new_id(p, 'b', p->b.buffers.count));
    ENT_TRY(ent_scan_expect(p->scan, ":"));
    ENT_TRY(parse_choice(p, ent_tile_role_words, 5, "input, output, constant or scratch", &role));
    ENT_TRY(parse_dtype(p, &dtype));
    ENT_TRY(ent_scan_expect(p->scan, "["));
    if (!ent_scan_accept(p->scan, "]")) {
        do {
            if (rank == ENT_MAX_RANK) return ent_scan_error(p->scan, "more than %d dimensions", ENT_MAX_RANK);
            ENT_TRY(parse_dim(p, &dims[rank++]));
        } while (ent_scan_accept(p->scan, ","));
        ENT_TRY(ent_scan_expect(p->scan, "]"));
    }
    ENT_TRY(parse_layout(p, rank, &layout));
    ent_tile_builder_buffer(&p->b, role, dtype, rank, dims, &layout);
    return NULL;
}

static ent_status parse_tile(parser *p) {
    uint32_t space = 0, dtype = 0, rank = 0;
    int64_t shape[ENT_TILE_MAX_RANK];
    ENT_TRY(parse_new_id(p, 't', p->b.values.count));
    ENT_TRY(ent_scan_expect(p->scan, ":"));
    ENT_TRY(parse_dtype(p, &dtype));
    ENT_TRY(ent_scan_expect(p->scan, "["));
    do {
        if (rank == ENT_TILE_MAX_RANK) return ent_scan_error(p->scan, "more than %d axes", ENT_TILE_MAX_RANK);
        ENT_TRY(ent_scan_int(p->scan, &shape[rank++]));
    } while (ent_scan_accept(p->scan, ","));
    ENT_TRY(ent_scan_expect(p->scan, "]"));
    ENT_TRY(parse_choice(p, ent_tile_space_words, 4, "register, local or shared", &space));
    ent_tile_builder_value(&p->b, dtype, space, rank, shape);
    return NULL;
}

/* ---- accesses ---- */

static ent_status negate(parser *p, bool negative, int64_t *value) {
    if (!negative) return NULL;
    if (*value == INT64_MIN) return ent_scan_error(p->scan, "the number does not fit");
    *value = -*value;
    return NULL;
}

/* One summand: a number, [number*]vN or [number*]@A. */
static ent_status parse_summand(parser *p, bool negative, ent_tile_index *x) {
    int64_t factor = 1;
    uint32_t id = 0;
    ent_scan_skip(p->scan);
    char c = p->scan->at < p->scan->end ? *p->scan->at : 0;
    if (c != 'v' && c != '@') {
        ENT_TRY(ent_scan_int(p->scan, &factor));
        ENT_TRY(negate(p, negative, &factor));
        if (!ent_scan_accept(p->scan, "*"))
            return ent_add_i64(x->base, factor, &x->base)
                       ? NULL
                       : ent_scan_error(p->scan, "the number does not fit");
    } else if (negative) {
        factor = -1;
    }
    if (ent_scan_accept(p->scan, "@")) {
        if (x->tile_axis != ENT_TILE_NONE) return ent_scan_error(p->scan, "a second tile axis in one index");
        ENT_TRY(parse_u32(p, &x->tile_axis));
        x->step = factor;
        return NULL;
    }
    ENT_TRY(parse_id(p, 'v', &id));
    if (x->term_count == ENT_TILE_MAX_TERMS)
        return ent_scan_error(p->scan, "more than %d terms", ENT_TILE_MAX_TERMS);
    x->terms[x->term_count].variable = id;
    x->terms[x->term_count++].coefficient = factor;
    return NULL;
}

static ent_status parse_sum(parser *p, ent_tile_index *x) {
    ent_scan before = *p->scan;
    bool negative = ent_scan_accept(p->scan, "-");
    ent_scan_skip(p->scan);
    if (negative && p->scan->at < p->scan->end && *p->scan->at >= '0' && *p->scan->at <= '9') {
        *p->scan = before; /* let the number take its own sign, so that the least one can be read */
        negative = false;
    }
    for (;;) {
        ENT_TRY(parse_summand(p, negative, x));
        if (ent_scan_accept(p->scan, "+"))
            negative = false;
        else if (ent_scan_accept(p->scan, "-"))
            negative = true;
        else
            return NULL;
    }
}

static ent_status parse_index(parser *p, ent_tile_index *x) {
    if (ent_scan_accept(p->scan, "(")) {
        ENT_TRY(parse_sum(p, x));
        ENT_TRY(ent_scan_expect(p->scan, ")"));
        ENT_TRY(ent_scan_expect(p->scan, "/"));
        ENT_TRY(ent_scan_int(p->scan, &x->divisor));
        x->exact = ent_scan_accept(p->scan, "exact");
    } else {
        ENT_TRY(parse_sum(p, x));
    }
    if (ent_scan_accept(p->scan, "gather")) ENT_TRY(parse_id(p, 't', &x->gather));
    if (ent_scan_accept(p->scan, "bound")) ENT_TRY(parse_dim(p, &x->bound));
    return NULL;
}

static ent_status parse_access(parser *p, ent_tile_access *out) {
    uint32_t buffer = 0;
    ENT_TRY(parse_id(p, 'b', &buffer));
    if (buffer >= p->b.buffers.count) return ent_scan_error(p->scan, "b%u is not declared", buffer);
    *out = ent_tile_builder_access(&p->b, buffer);
    ENT_TRY(ent_scan_expect(p->scan, "["));
    for (uint32_t d = 0; d < out->rank; d++) {
        if (d > 0) ENT_TRY(ent_scan_expect(p->scan, ","));
        ENT_TRY(parse_index(p, &out->index[d]));
    }
    return ent_scan_expect(p->scan, "]");
}

/* ---- operations ---- */

static ent_status parse_load(parser *p, uint32_t dst, bool asynchronous) {
    ent_tile_access access;
    double outside = 0;
    ENT_TRY(parse_access(p, &access));
    ENT_TRY(ent_scan_expect(p->scan, "outside"));
    ENT_TRY(ent_scan_number(p->scan, &outside));
    if (asynchronous)
        ent_tile_builder_copy(&p->b, dst, &access, outside);
    else
        ent_tile_builder_load(&p->b, dst, &access, outside);
    return NULL;
}

static ent_status parse_store(parser *p) {
    ent_tile_access access;
    uint32_t src = 0;
    ENT_TRY(parse_id(p, 't', &src));
    ENT_TRY(ent_scan_expect(p->scan, "->"));
    ENT_TRY(parse_access(p, &access));
    ent_tile_builder_store(&p->b, &access, src);
    return NULL;
}

static ent_status parse_mma(parser *p, uint32_t dst) {
    uint32_t a = 0, b = 0;
    ENT_TRY(ent_scan_expect(p->scan, "mma"));
    ENT_TRY(parse_id(p, 't', &a));
    ENT_TRY(ent_scan_expect(p->scan, ","));
    ENT_TRY(parse_id(p, 't', &b));
    ent_tile_builder_mma(&p->b, dst, a, b, ent_scan_accept(p->scan, "transposed") ? ENT_TILE_TRANSPOSE_B : 0);
    return NULL;
}

static ent_status parse_iota(parser *p, uint32_t dst) {
    double base = 0;
    int64_t coefficient = 0;
    uint32_t variable = ENT_TILE_NONE, axis = 32;
    ENT_TRY(ent_scan_number(p->scan, &base));
    bool minus = ent_scan_accept(p->scan, "-");
    if (minus || ent_scan_accept(p->scan, "+")) {
        ent_tile_index sum = {.tile_axis = ENT_TILE_NONE};
        ENT_TRY(parse_summand(p, minus, &sum));
        if (sum.term_count != 1) return ent_scan_error(p->scan, "expected a variable such as 2*v0");
        variable = sum.terms[0].variable;
        coefficient = sum.terms[0].coefficient;
    }
    if (ent_scan_accept(p->scan, "along")) {
        ENT_TRY(parse_u32(p, &axis));
        if (axis >= ENT_TILE_MAX_RANK) return ent_scan_error(p->scan, "axis %u does not exist", axis);
    }
    ent_tile_builder_iota(&p->b, dst, 0, variable, coefficient, axis);
    p->b.ops.items[p->b.ops.count - 1].f[0] = base;
    return NULL;
}

static ent_status parse_reduce(parser *p, uint32_t dst, uint32_t kind) {
    uint32_t src = 0, axis = 0, mask = 0;
    ENT_TRY(parse_id(p, 't', &src));
    ENT_TRY(ent_scan_expect(p->scan, "over"));
    do {
        ENT_TRY(parse_u32(p, &axis));
        if (axis >= ENT_TILE_MAX_RANK) return ent_scan_error(p->scan, "axis %u does not exist", axis);
        mask |= 1u << axis;
    } while (ent_scan_accept(p->scan, ","));
    ent_tile_builder_reduce(&p->b, kind, dst, src, mask);
    return NULL;
}

static ent_status parse_permute(parser *p, uint32_t dst) {
    uint32_t src = 0, axis = 0, count = 0;
    uint8_t perm[ENT_TILE_MAX_RANK] = {0};
    ENT_TRY(parse_id(p, 't', &src));
    ENT_TRY(ent_scan_expect(p->scan, "("));
    do {
        ENT_TRY(parse_u32(p, &axis));
        if (count == ENT_TILE_MAX_RANK || axis >= ENT_TILE_MAX_RANK)
            return ent_scan_error(p->scan, "axes are not a permutation");
        perm[count++] = (uint8_t)axis;
    } while (ent_scan_accept(p->scan, ","));
    if (dst >= p->b.values.count || count != p->b.values.items[dst].rank)
        return ent_scan_error(p->scan, "%u axes for t%u", count, dst);
    ent_tile_builder_permute(&p->b, dst, src, perm);
    return ent_scan_expect(p->scan, ")");
}

static ent_status parse_map(parser *p, uint32_t dst, uint32_t map) {
    const ent_ops_map_info *info = ent_ops_map_info_get(map);
    uint32_t source[3] = {0, 0, 0};
    double f[2] = {0, 0};
    for (uint32_t i = 0; i < info->parameters; i++) {
        ENT_TRY(ent_scan_expect(p->scan, i ? "," : "("));
        ENT_TRY(ent_scan_number(p->scan, &f[i]));
        if (i + 1 == info->parameters) ENT_TRY(ent_scan_expect(p->scan, ")"));
    }
    for (uint32_t i = 0; i < info->sources; i++) {
        if (i > 0) ENT_TRY(ent_scan_expect(p->scan, ","));
        ENT_TRY(parse_id(p, 't', &source[i]));
    }
    if (info->sources == 1)
        ent_tile_builder_map1(&p->b, map, dst, source[0], f[0], f[1]);
    else if (info->sources == 2)
        ent_tile_builder_map2(&p->b, map, dst, source[0], source[1]);
    else
        ent_tile_builder_map3(&p->b, map, dst, source[0], source[1], source[2]);
    return NULL;
}

/* What follows "tN =". */
static ent_status parse_assignment(parser *p, uint32_t dst) {
    ent_scan before = *p->scan;
    const char *word = ent_scan_word(p->scan);
    uint32_t src = 0;
    double value = 0;
    if (!word) return ent_scan_error(p->scan, "expected an operation");
    if (strcmp(word, "load") == 0) return parse_load(p, dst, false);
    /* An asynchronous copy reads a buffer; the map of the same name reads a tile. */
    ent_scan_skip(p->scan);
    if (strcmp(word, "copy") == 0 && p->scan->at < p->scan->end && *p->scan->at == 'b')
        return parse_load(p, dst, true);
    if (strcmp(word, "iota") == 0) return parse_iota(p, dst);
    if (strcmp(word, "permute") == 0) return parse_permute(p, dst);
    if (strcmp(word, "fill") == 0) {
        ENT_TRY(ent_scan_number(p->scan, &value));
        ent_tile_builder_fill(&p->b, dst, value);
        return NULL;
    }
    if (strcmp(word, "reshape") == 0) {
        ENT_TRY(parse_id(p, 't', &src));
        ent_tile_builder_reshape(&p->b, dst, src);
        return NULL;
    }
    for (uint32_t kind = ENT_REDUCE_SUM; kind <= ENT_REDUCE_PROD; kind++)
        if (strcmp(word, ent_tile_reduce_words[kind]) == 0) return parse_reduce(p, dst, kind);
    for (uint32_t map = 1; map < ENT_MAP_COUNT; map++)
        if (strcmp(word, ent_ops_map_info_get(map)->name) == 0) return parse_map(p, dst, map);
    *p->scan = before;
    return ent_scan_error(p->scan, "unknown operation %s", word);
}

static ent_status parse_loop(parser *p) {
    uint32_t variable = 0;
    ent_dim begin = 0, end = 0;
    int64_t step = 0;
    ENT_TRY(parse_id(p, 'v', &variable));
    if (variable != p->b.variable_count)
        return ent_scan_error(p->scan, "v%u is declared where v%u comes next", variable, p->b.variable_count);
    ENT_TRY(ent_scan_expect(p->scan, "="));
    ENT_TRY(parse_dim(p, &begin));
    ENT_TRY(ent_scan_expect(p->scan, "to"));
    ENT_TRY(parse_dim(p, &end));
    ENT_TRY(ent_scan_expect(p->scan, "step"));
    ENT_TRY(ent_scan_int(p->scan, &step));
    ENT_TRY(ent_scan_expect(p->scan, "{"));
    ent_tile_builder_loop(&p->b, begin, end, step);
    return NULL;
}

static ent_status parse_wait(parser *p) {
    uint32_t count = 0;
    ENT_TRY(parse_u32(p, &count));
    ent_tile_builder_wait(&p->b, count);
    return NULL;
}

static ent_status parse_tile_op(parser *p) {
    uint32_t dst = 0;
    ENT_TRY(parse_id(p, 't', &dst));
    if (dst >= p->b.values.count) return ent_scan_error(p->scan, "t%u is not declared", dst);
    if (ent_scan_accept(p->scan, "+=")) return parse_mma(p, dst);
    ENT_TRY(ent_scan_expect(p->scan, "="));
    return parse_assignment(p, dst);
}

static ent_status parse_symbol(parser *p) {
    ent_str name;
    ENT_TRY(parse_name(p, &name));
    ent_array_push(p->b.arena, &p->b.symbols, name);
    return NULL;
}

/* Everything up to the program's closing brace. Declarations may stand anywhere before their first use. */
static ent_status parse_body(parser *p) {
    uint32_t depth = 0;
    for (;;) {
        if (ent_scan_accept(p->scan, "}")) {
            if (depth == 0) return NULL;
            depth--;
            ent_tile_builder_end(&p->b);
        } else if (ent_scan_accept(p->scan, "loop")) {
            ENT_TRY(parse_loop(p));
            depth++;
        } else if (ent_scan_accept(p->scan, "symbol")) {
            ENT_TRY(parse_symbol(p));
        } else if (ent_scan_accept(p->scan, "expr")) {
            ENT_TRY(parse_expr(p));
        } else if (ent_scan_accept(p->scan, "grid")) {
            if (p->b.variable_count != p->b.grid.count)
                return ent_scan_error(p->scan, "a grid axis after a loop");
            ENT_TRY(parse_grid(p));
        } else if (ent_scan_accept(p->scan, "buffer")) {
            ENT_TRY(parse_buffer(p));
        } else if (ent_scan_accept(p->scan, "tile")) {
            ENT_TRY(parse_tile(p));
        } else if (ent_scan_accept(p->scan, "store")) {
            ENT_TRY(parse_store(p));
        } else if (ent_scan_accept(p->scan, "wait")) {
            ENT_TRY(parse_wait(p));
        } else {
            ENT_TRY(parse_tile_op(p));
        }
    }
}

ent_status ent_tile_parse_at(ent_scan *scan, ent_tile_program **out) {
    parser p = {.scan = scan};
    ent_str name;
    ENT_TRY(ent_scan_expect(scan, "tile_program"));
    ENT_TRY(ent_scan_string(scan, &name));
    ENT_TRY(ent_scan_expect(scan, "{"));
    ent_tile_builder_init(&p.b, scan->arena, "");
    p.b.name = name;
    ENT_TRY(parse_body(&p));
    *out = ent_tile_builder_program(&p.b);
    return NULL;
}

ent_status ent_tile_parse(ent_arena *arena, const char *file, const char *text, size_t size,
                          ent_tile_program **out) {
    ent_scan scan;
    ent_ops_error error;
    ent_scan_init(&scan, arena, file, text, size);
    ENT_TRY(ent_tile_parse_at(&scan, out));
    if (!ent_scan_done(&scan)) return ent_scan_error(&scan, "text after the end of the program");
    if (ent_ops_tile_verify(*out, &error) == ENT_OK) return NULL;
    return ent_status_make(arena, ENT_ERROR_MODEL, "tile.invalid", file, "%s", error.text);
}
