/* Tile program -> text. */
#include <ctype.h>
#include <inttypes.h>

#include "core/ops/ops.h"
#include "core/tile/internal.h"
#include "core/tile/tile.h"

static void print_dim(ent_text *out, ent_dim dim) {
    if (dim >= 0)
        ent_text_add(out, "%" PRId64, dim);
    else
        ent_text_add(out, "e%" PRId64, ~dim);
}

static bool is_word(ent_str text) {
    if (text.size == 0 || isdigit((unsigned char)text.data[0])) return false;
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 128 || (!isalnum(c) && c != '_' && !(c == '.' && i > 0))) return false;
    }
    return true;
}

/* Quoted with the escapes that ent_scan_string reads. */
static void print_string(ent_text *out, ent_str text) {
    ent_text_add(out, "\"");
    for (size_t i = 0; i < text.size; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c == '"' || c == '\\')
            ent_text_add(out, "\\%c", c);
        else if (c < 32 || c >= 127)
            ent_text_add(out, "\\x%02x", c);
        else
            ent_text_add(out, "%c", c);
    }
    ent_text_add(out, "\"");
}

static void print_name(ent_text *out, ent_str name) {
    if (is_word(name))
        ent_text_add(out, "%.*s", (int)name.size, name.data);
    else
        print_string(out, name);
}

static void print_expr(ent_text *out, const ent_tile_program *p, uint32_t at) {
    const ent_expr *e = &p->exprs[at];
    ent_text_add(out, "  expr e%u = ", at);
    if (e->kind == ENT_EXPR_SYMBOL) {
        ent_text_add(out, "symbol ");
        print_name(out, p->symbols[e->a]);
    } else if (e->kind == ENT_EXPR_CONST) {
        ent_text_add(out, "const %" PRId64, e->a);
    } else {
        print_dim(out, e->a);
        ent_text_add(out, " %s ", ent_tile_expr_words[e->kind]);
        print_dim(out, e->b);
    }
    ent_text_add(out, "\n");
}

static void print_layout(ent_text *out, const ent_layout *layout) {
    ent_layout plain = ent_layout_plain(layout->rank);
    plain.block_count = layout->block_count;
    for (uint32_t i = 0; i < layout->block_count; i++) {
        plain.block_axis[i] = layout->block_axis[i];
        plain.block_size[i] = layout->block_size[i];
    }
    if (!ent_layout_equal(layout, &plain))
        for (uint32_t i = 0; i < layout->rank; i++)
            ent_text_add(out, "%s%u%s", i ? ", " : " order(", layout->order[i],
                         i + 1 == layout->rank ? ")" : "");
    for (uint32_t i = 0; i < layout->block_count; i++)
        ent_text_add(out, "%s%u:%u%s", i ? ", " : " block(", layout->block_axis[i], layout->block_size[i],
                     i + 1 == layout->block_count ? ")" : "");
}

static void print_declarations(ent_text *out, const ent_tile_program *p) {
    for (uint32_t i = 0; i < p->symbol_count; i++) {
        ent_text_add(out, "  symbol ");
        print_name(out, p->symbols[i]);
        ent_text_add(out, "\n");
    }
    for (uint32_t i = 0; i < p->expr_count; i++) print_expr(out, p, i);
    for (uint32_t i = 0; i < p->grid_count; i++) {
        ent_text_add(out, "  grid v%u: extent ", i);
        print_dim(out, p->grid[i].extent);
        ent_text_add(out, " step %" PRId64 "\n", p->grid[i].step);
    }
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const ent_tile_buffer *b = &p->buffers[i];
        ent_text_add(out, "  buffer b%u: %s %s[", i, ent_tile_role_words[b->role], ent_dtype_name(b->dtype));
        for (uint32_t d = 0; d < b->rank; d++) {
            if (d > 0) ent_text_add(out, ", ");
            print_dim(out, b->dims[d]);
        }
        ent_text_add(out, "]");
        print_layout(out, &b->layout);
        ent_text_add(out, "\n");
    }
    for (uint32_t i = 0; i < p->value_count; i++) {
        const ent_tile_value *t = &p->values[i];
        ent_text_add(out, "  tile t%u: %s[", i, ent_dtype_name(t->dtype));
        for (uint32_t d = 0; d < t->rank; d++) ent_text_add(out, "%s%" PRId64, d ? ", " : "", t->shape[d]);
        ent_text_add(out, "] %s\n", ent_tile_space_words[t->space]);
    }
}

/* " + 3", " - 3", or at the start "3", "-3". The most negative number has no positive twin and keeps its
 * sign. */
static void print_signed(ent_text *out, bool first, int64_t value) {
    if (first)
        ent_text_add(out, "%" PRId64, value);
    else if (value < 0 && value != INT64_MIN)
        ent_text_add(out, " - %" PRId64, -value);
    else
        ent_text_add(out, " + %" PRId64, value);
}

/* "coefficient*name", without the coefficient when it is 1 or -1. */
static void print_product(ent_text *out, bool first, int64_t coefficient, const char *name, uint32_t id) {
    if (coefficient == 1 || coefficient == -1) {
        ent_text_add(out, "%s%s%u", coefficient < 0 ? (first ? "-" : " - ") : (first ? "" : " + "), name, id);
        return;
    }
    print_signed(out, first, coefficient);
    ent_text_add(out, "*%s%u", name, id);
}

static void print_index(ent_text *out, const ent_tile_index *x) {
    bool divided = x->divisor != 1 || x->exact, first = true;
    if (divided) ent_text_add(out, "(");
    for (uint32_t t = 0; t < x->term_count; t++, first = false)
        print_product(out, first, x->terms[t].coefficient, "v", x->terms[t].variable);
    if (x->tile_axis != ENT_TILE_NONE) {
        print_product(out, first, x->step, "@", x->tile_axis);
        first = false;
    }
    if (x->base != 0 || first) print_signed(out, first, x->base);
    if (divided) ent_text_add(out, ") / %" PRId64 "%s", x->divisor, x->exact ? " exact" : "");
    if (x->gather != ENT_TILE_NONE) ent_text_add(out, " gather t%u", x->gather);
    if (x->bound == ENT_TILE_BOUND_ALL) return;
    ent_text_add(out, " bound ");
    print_dim(out, x->bound);
}

static void print_access(ent_text *out, const ent_tile_access *access) {
    ent_text_add(out, "b%u[", access->buffer);
    for (uint32_t d = 0; d < access->rank; d++) {
        if (d > 0) ent_text_add(out, ", ");
        print_index(out, &access->index[d]);
    }
    ent_text_add(out, "]");
}

static void print_map(ent_text *out, const ent_tile_op *op) {
    const ent_ops_map_info *info = ent_ops_map_info_get(op->kind);
    ent_text_add(out, "t%u = %s", op->dst, info->name);
    for (uint32_t i = 0; i < info->parameters; i++) {
        ent_text_add(out, i ? ", " : "(");
        ent_text_add_number(out, op->f[i], false);
        if (i + 1 == info->parameters) ent_text_add(out, ")");
    }
    for (uint32_t i = 0; i < op->source_count; i++) ent_text_add(out, "%s t%u", i ? "," : "", op->source[i]);
}

static void print_loop(ent_text *out, const ent_tile_op *op) {
    ent_text_add(out, "loop v%u = ", op->variable);
    print_dim(out, op->begin);
    ent_text_add(out, " to ");
    print_dim(out, op->end);
    ent_text_add(out, " step %" PRId64 " {", op->step);
}

static void print_iota(ent_text *out, const ent_tile_op *op) {
    ent_text_add(out, "t%u = iota ", op->dst);
    ent_text_add_number(out, op->f[0], false);
    if (op->variable != ENT_TILE_NONE) print_product(out, false, op->step, "v", op->variable);
    for (uint32_t a = 0; a < ENT_TILE_MAX_RANK; a++)
        if (op->axis_mask & 1u << a) ent_text_add(out, " along %u", a);
}

static void print_axes(ent_text *out, const ent_tile_op *op) {
    const char *before = " over ";
    for (uint32_t a = 0; a < ENT_TILE_MAX_RANK; a++) {
        if (!(op->axis_mask & 1u << a)) continue;
        ent_text_add(out, "%s%u", before, a);
        before = ", ";
    }
}

/* size: table */
static void print_op(ent_text *out, const ent_tile_program *p, const ent_tile_op *op) {
    switch (op->opcode) {
    case ENT_TILE_LOAD:
    case ENT_TILE_COPY:
        ent_text_add(out, "t%u = %s ", op->dst, ent_ops_tile_opcode_name(op->opcode));
        print_access(out, &p->accesses[op->access]);
        ent_text_add(out, " outside ");
        ent_text_add_number(out, op->f[0], false);
        break;
    case ENT_TILE_STORE:
        ent_text_add(out, "store t%u -> ", op->source[0]);
        print_access(out, &p->accesses[op->access]);
        break;
    case ENT_TILE_FILL:
        ent_text_add(out, "t%u = fill ", op->dst);
        ent_text_add_number(out, op->f[0], false);
        break;
    case ENT_TILE_MMA:
        ent_text_add(out, "t%u += mma t%u, t%u%s", op->dst, op->source[0], op->source[1],
                     op->flags & ENT_TILE_TRANSPOSE_B ? " transposed" : "");
        if (op->f[0] != 0 || op->f[1] != 0) {
            ent_text_add(out, " zeros ");
            ent_text_add_number(out, op->f[0], false);
            ent_text_add(out, ", ");
            ent_text_add_number(out, op->f[1], false);
        }
        break;
    case ENT_TILE_MAP:
        print_map(out, op);
        break;
    case ENT_TILE_REDUCE:
        ent_text_add(out, "t%u = %s t%u", op->dst, ent_tile_reduce_words[op->kind], op->source[0]);
        print_axes(out, op);
        break;
    case ENT_TILE_LOOP:
        print_loop(out, op);
        break;
    case ENT_TILE_END:
        ent_text_add(out, "}");
        break;
    case ENT_TILE_WAIT:
        ent_text_add(out, "wait %u", op->count);
        break;
    case ENT_TILE_RESHAPE:
        ent_text_add(out, "t%u = reshape t%u", op->dst, op->source[0]);
        break;
    case ENT_TILE_PERMUTE:
        ent_text_add(out, "t%u = permute t%u (", op->dst, op->source[0]);
        for (uint32_t a = 0; a < p->values[op->dst].rank; a++)
            ent_text_add(out, "%s%u", a ? ", " : "", op->perm[a]);
        ent_text_add(out, ")");
        break;
    case ENT_TILE_IOTA:
        print_iota(out, op);
        break;
    default:
        break;
    }
}

void ent_tile_print(const ent_tile_program *program, ent_text *out) {
    uint32_t depth = 1;
    ent_text_add(out, "tile_program ");
    print_string(out, program->name);
    ent_text_add(out, " {\n");
    print_declarations(out, program);
    for (uint32_t i = 0; i < program->op_count; i++) {
        const ent_tile_op *op = &program->ops[i];
        if (op->opcode == ENT_TILE_END) depth--;
        for (uint32_t k = 0; k < depth; k++) ent_text_add(out, "  ");
        if (op->opcode == ENT_TILE_LOOP) depth++;
        print_op(out, program, op);
        ent_text_add(out, "\n");
    }
    ent_text_add(out, "}\n");
}
