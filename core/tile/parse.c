/* Text -> tile program: a recursive descent over ent_scan that feeds the builder. Ids must come in order (b0,
 * b1, ...), so that text and arrays agree. */
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/tile/internal.h"
#include "core/tile/tile.h"

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

ent_status ent_tile_parse_id(ent_tile_parser *p, char prefix, uint32_t *out) {
    ent_scan before = *p->scan;
    if (split_id(ent_scan_word(p->scan), prefix, out)) return NULL;
    *p->scan = before;
    return ent_scan_error(p->scan, "expected %c and a number, such as %c0", prefix, prefix);
}

/* An id that is declared here and must be the next one. */
static ent_status parse_new_id(ent_tile_parser *p, char prefix, uint32_t next) {
    uint32_t id = 0;
    ENT_TRY(ent_tile_parse_id(p, prefix, &id));
    return id == next
               ? NULL
               : ent_scan_error(p->scan, "%c%u is declared where %c%u comes next", prefix, id, prefix, next);
}

ent_status ent_tile_parse_u32(ent_tile_parser *p, uint32_t *out) {
    int64_t value = 0;
    ENT_TRY(ent_scan_int(p->scan, &value));
    if (value < 0 || value >= ENT_TILE_NONE)
        return ent_scan_error(p->scan, "%lld is out of range", (long long)value);
    *out = (uint32_t)value;
    return NULL;
}

ent_status ent_tile_parse_dim(ent_tile_parser *p, ent_dim *out) {
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

static ent_status parse_name(ent_tile_parser *p, ent_str *out) {
    ent_scan_skip(p->scan);
    if (p->scan->at < p->scan->end && *p->scan->at == '"') return ent_scan_string(p->scan, out);
    const char *word = ent_scan_word(p->scan);
    if (!word) return ent_scan_error(p->scan, "expected a name");
    out->data = word;
    out->size = strlen(word);
    return NULL;
}

/* Position of the word that comes next in a list; 0 and an error if it is none of them. */
static ent_status parse_choice(ent_tile_parser *p, const char *const *words, uint32_t count, const char *what,
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

static ent_status parse_dtype(ent_tile_parser *p, uint32_t *out) {
    const char *word = ent_scan_word(p->scan);
    for (uint32_t i = 1; word && i < ENT_DTYPE_COUNT; i++) {
        if (strcmp(word, ent_dtype_name(i)) != 0) continue;
        *out = i;
        return NULL;
    }
    return ent_scan_error(p->scan, "expected a dtype such as f32");
}

/* ---- declarations ---- */

static ent_status parse_expr_operands(ent_tile_parser *p, ent_expr *e) {
    ENT_TRY(ent_tile_parse_dim(p, &e->a));
    for (uint32_t kind = ENT_EXPR_ADD; kind <= ENT_EXPR_MAX; kind++) {
        if (!ent_scan_accept(p->scan, ent_tile_expr_words[kind])) continue;
        e->kind = kind;
        return ent_tile_parse_dim(p, &e->b);
    }
    return ent_scan_error(p->scan, "expected one of + - * floordiv ceildiv mod min max");
}

static ent_status parse_expr(ent_tile_parser *p) {
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

static ent_status parse_grid(ent_tile_parser *p) {
    ent_dim extent = 0;
    int64_t step = 0;
    ENT_TRY(parse_new_id(p, 'v', p->b.grid.count));
    ENT_TRY(ent_scan_expect(p->scan, ":"));
    ENT_TRY(ent_scan_expect(p->scan, "extent"));
    ENT_TRY(ent_tile_parse_dim(p, &extent));
    ENT_TRY(ent_scan_expect(p->scan, "step"));
    ENT_TRY(ent_scan_int(p->scan, &step));
    ent_tile_builder_grid(&p->b, extent, step);
    return NULL;
}

static ent_status parse_layout(ent_tile_parser *p, uint32_t rank, ent_layout *out) {
    uint32_t value = 0;
    *out = ent_layout_plain(rank);
    if (ent_scan_accept(p->scan, "order")) {
        for (uint32_t i = 0; i < rank; i++) {
            ENT_TRY(ent_scan_expect(p->scan, i ? "," : "("));
            ENT_TRY(ent_tile_parse_u32(p, &value));
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
        ENT_TRY(ent_tile_parse_u32(p, &value));
        if (value >= rank) return ent_scan_error(p->scan, "axis %u is not below the rank, %u", value, rank);
        out->block_axis[out->block_count] = (uint8_t)value;
        ENT_TRY(ent_scan_expect(p->scan, ":"));
        ENT_TRY(ent_tile_parse_u32(p, &value));
        if (value < 1 || value > UINT16_MAX)
            return ent_scan_error(p->scan, "block size %u is not 1..65535", value);
        out->block_size[out->block_count++] = (uint16_t)value;
    } while (ent_scan_accept(p->scan, ","));
    return ent_scan_expect(p->scan, ")");
}

static ent_status parse_buffer(ent_tile_parser *p) {
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
            ENT_TRY(ent_tile_parse_dim(p, &dims[rank++]));
        } while (ent_scan_accept(p->scan, ","));
        ENT_TRY(ent_scan_expect(p->scan, "]"));
    }
    ENT_TRY(parse_layout(p, rank, &layout));
    ent_tile_builder_buffer(&p->b, role, dtype, rank, dims, &layout);
    return NULL;
}

static ent_status parse_tile(ent_tile_parser *p) {
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

/* ---- the whole ---- */

static ent_status parse_symbol(ent_tile_parser *p) {
    ent_str name;
    ENT_TRY(parse_name(p, &name));
    ent_array_push(p->b.arena, &p->b.symbols, name);
    return NULL;
}

/* Everything up to the program's closing brace. Declarations may stand anywhere before their first use. */
static ent_status parse_body(ent_tile_parser *p) {
    uint32_t depth = 0;
    for (;;) {
        if (ent_scan_accept(p->scan, "}")) {
            if (depth == 0) return NULL;
            depth--;
            ent_tile_builder_end(&p->b);
        } else if (ent_scan_accept(p->scan, "loop")) {
            ENT_TRY(ent_tile_parse_loop(p));
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
            ENT_TRY(ent_tile_parse_store(p));
        } else if (ent_scan_accept(p->scan, "wait")) {
            ENT_TRY(ent_tile_parse_wait(p));
        } else {
            ENT_TRY(ent_tile_parse_tile_op(p));
        }
    }
}

ent_status ent_tile_parse_at(ent_scan *scan, ent_tile_program **out) {
    ent_tile_parser p = {.scan = scan};
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
