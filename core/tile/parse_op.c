/* Text -> operations of a tile program, and the accesses they move along. */
#include <string.h>

#include "core/ops/ops.h"
#include "core/tile/internal.h"

/* ---- accesses ---- */

static ent_status negate(ent_tile_parser *p, bool negative, int64_t *value) {
    if (!negative) return NULL;
    if (*value == INT64_MIN) return ent_scan_error(p->scan, "the number does not fit");
    *value = -*value;
    return NULL;
}

/* One summand: a number, [number*]vN or [number*]@A. */
static ent_status parse_summand(ent_tile_parser *p, bool negative, ent_tile_index *x) {
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
        ENT_TRY(ent_tile_parse_u32(p, &x->tile_axis));
        x->step = factor;
        return NULL;
    }
    ENT_TRY(ent_tile_parse_id(p, 'v', &id));
    if (x->term_count == ENT_TILE_MAX_TERMS)
        return ent_scan_error(p->scan, "more than %d terms", ENT_TILE_MAX_TERMS);
    x->terms[x->term_count].variable = id;
    x->terms[x->term_count++].coefficient = factor;
    return NULL;
}

static ent_status parse_sum(ent_tile_parser *p, ent_tile_index *x) {
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

static ent_status parse_index(ent_tile_parser *p, ent_tile_index *x) {
    if (ent_scan_accept(p->scan, "(")) {
        ENT_TRY(parse_sum(p, x));
        ENT_TRY(ent_scan_expect(p->scan, ")"));
        ENT_TRY(ent_scan_expect(p->scan, "/"));
        ENT_TRY(ent_scan_int(p->scan, &x->divisor));
        x->exact = ent_scan_accept(p->scan, "exact");
    } else {
        ENT_TRY(parse_sum(p, x));
    }
    if (ent_scan_accept(p->scan, "gather")) ENT_TRY(ent_tile_parse_id(p, 't', &x->gather));
    if (ent_scan_accept(p->scan, "bound")) ENT_TRY(ent_tile_parse_dim(p, &x->bound));
    return NULL;
}

static ent_status parse_access(ent_tile_parser *p, ent_tile_access *out) {
    uint32_t buffer = 0;
    ENT_TRY(ent_tile_parse_id(p, 'b', &buffer));
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

static ent_status parse_load(ent_tile_parser *p, uint32_t dst, bool asynchronous) {
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

ent_status ent_tile_parse_store(ent_tile_parser *p) {
    ent_tile_access access;
    uint32_t src = 0;
    ENT_TRY(ent_tile_parse_id(p, 't', &src));
    ENT_TRY(ent_scan_expect(p->scan, "->"));
    ENT_TRY(parse_access(p, &access));
    ent_tile_builder_store(&p->b, &access, src);
    return NULL;
}

static ent_status parse_mma(ent_tile_parser *p, uint32_t dst) {
    uint32_t a = 0, b = 0;
    ENT_TRY(ent_scan_expect(p->scan, "mma"));
    ENT_TRY(ent_tile_parse_id(p, 't', &a));
    ENT_TRY(ent_scan_expect(p->scan, ","));
    ENT_TRY(ent_tile_parse_id(p, 't', &b));
    double a_zero = 0, b_zero = 0;
    uint32_t flags = ent_scan_accept(p->scan, "transposed") ? ENT_TILE_TRANSPOSE_B : 0;
    if (ent_scan_accept(p->scan, "zeros")) {
        ENT_TRY(ent_scan_number(p->scan, &a_zero));
        ENT_TRY(ent_scan_expect(p->scan, ","));
        ENT_TRY(ent_scan_number(p->scan, &b_zero));
    }
    ent_tile_builder_mma_bytes(&p->b, dst, a, b, flags, a_zero, b_zero);
    return NULL;
}

static ent_status parse_iota(ent_tile_parser *p, uint32_t dst) {
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
        ENT_TRY(ent_tile_parse_u32(p, &axis));
        if (axis >= ENT_TILE_MAX_RANK) return ent_scan_error(p->scan, "axis %u does not exist", axis);
    }
    ent_tile_builder_iota(&p->b, dst, 0, variable, coefficient, axis);
    p->b.ops.items[p->b.ops.count - 1].f[0] = base;
    return NULL;
}

static ent_status parse_reduce(ent_tile_parser *p, uint32_t dst, uint32_t kind) {
    uint32_t src = 0, axis = 0, mask = 0;
    ENT_TRY(ent_tile_parse_id(p, 't', &src));
    ENT_TRY(ent_scan_expect(p->scan, "over"));
    do {
        ENT_TRY(ent_tile_parse_u32(p, &axis));
        if (axis >= ENT_TILE_MAX_RANK) return ent_scan_error(p->scan, "axis %u does not exist", axis);
        mask |= 1u << axis;
    } while (ent_scan_accept(p->scan, ","));
    ent_tile_builder_reduce(&p->b, kind, dst, src, mask);
    return NULL;
}

static ent_status parse_permute(ent_tile_parser *p, uint32_t dst) {
    uint32_t src = 0, axis = 0, count = 0;
    uint8_t perm[ENT_TILE_MAX_RANK] = {0};
    ENT_TRY(ent_tile_parse_id(p, 't', &src));
    ENT_TRY(ent_scan_expect(p->scan, "("));
    do {
        ENT_TRY(ent_tile_parse_u32(p, &axis));
        if (count == ENT_TILE_MAX_RANK || axis >= ENT_TILE_MAX_RANK)
            return ent_scan_error(p->scan, "axes are not a permutation");
        perm[count++] = (uint8_t)axis;
    } while (ent_scan_accept(p->scan, ","));
    if (dst >= p->b.values.count || count != p->b.values.items[dst].rank)
        return ent_scan_error(p->scan, "%u axes for t%u", count, dst);
    ent_tile_builder_permute(&p->b, dst, src, perm);
    return ent_scan_expect(p->scan, ")");
}

static ent_status parse_map(ent_tile_parser *p, uint32_t dst, uint32_t map) {
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
        ENT_TRY(ent_tile_parse_id(p, 't', &source[i]));
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
static ent_status parse_assignment(ent_tile_parser *p, uint32_t dst) {
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
        ENT_TRY(ent_tile_parse_id(p, 't', &src));
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

ent_status ent_tile_parse_loop(ent_tile_parser *p) {
    uint32_t variable = 0;
    ent_dim begin = 0, end = 0;
    int64_t step = 0;
    ENT_TRY(ent_tile_parse_id(p, 'v', &variable));
    if (variable != p->b.variable_count)
        return ent_scan_error(p->scan, "v%u is declared where v%u comes next", variable, p->b.variable_count);
    ENT_TRY(ent_scan_expect(p->scan, "="));
    ENT_TRY(ent_tile_parse_dim(p, &begin));
    ENT_TRY(ent_scan_expect(p->scan, "to"));
    ENT_TRY(ent_tile_parse_dim(p, &end));
    ENT_TRY(ent_scan_expect(p->scan, "step"));
    ENT_TRY(ent_scan_int(p->scan, &step));
    ENT_TRY(ent_scan_expect(p->scan, "{"));
    ent_tile_builder_loop(&p->b, begin, end, step);
    return NULL;
}

ent_status ent_tile_parse_wait(ent_tile_parser *p) {
    uint32_t count = 0;
    ENT_TRY(ent_tile_parse_u32(p, &count));
    ent_tile_builder_wait(&p->b, count);
    return NULL;
}

ent_status ent_tile_parse_tile_op(ent_tile_parser *p) {
    uint32_t dst = 0;
    ENT_TRY(ent_tile_parse_id(p, 't', &dst));
    if (dst >= p->b.values.count) return ent_scan_error(p->scan, "t%u is not declared", dst);
    if (ent_scan_accept(p->scan, "+=")) return parse_mma(p, dst);
    ENT_TRY(ent_scan_expect(p->scan, "="));
    return parse_assignment(p, dst);
}
