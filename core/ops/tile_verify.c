/* The rules of Tile IR. The first pass checks tables (ids, ranks, sizes), the second walks the body and
 * keeps, for every tile, whether it was written and whether a copy into it is under way. A loop may run no
 * time, so the state after END is the state before LOOP unless the bounds are constants that say otherwise.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/ops/tile_internal.h"

#define MAX_VALUES 1024
#define MAX_COPIES 64
#define MAX_SYMBOLS 1024
#define MAX_DEPTH 16

typedef struct verify_state {
    uint8_t defined[MAX_VALUES];
    uint32_t pending[MAX_COPIES]; /* tiles, oldest copy first */
    uint32_t pending_count;
} verify_state;

typedef struct verifier {
    const ent_tile_program *program;
    ent_ops_error *error;
    uint32_t op; /* index of the op under check */
    verify_state state;
    verify_state at_loop[MAX_DEPTH];
    uint32_t loop_op[MAX_DEPTH];
    uint32_t depth;
    uint32_t next_variable;
    uint8_t in_scope[ENT_TILE_MAX_VARIABLES];
} verifier;

static const char *const opcode_names[] = {"none", "load", "store", "fill", "mma",     "map",     "reduce",
                                           "loop", "end",  "copy",  "wait", "reshape", "permute", "iota"};

const char *ent_ops_tile_opcode_name(uint32_t opcode) {
    return opcode < sizeof opcode_names / sizeof opcode_names[0] ? opcode_names[opcode] : "unknown";
}

__attribute__((format(printf, 2, 3))) static bool table_error(ent_ops_error *error, const char *format, ...) {
    va_list list;
    va_start(list, format);
    error->code = ENT_CODE_INVALID_ARGUMENT;
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return false;
}

__attribute__((format(printf, 2, 3))) static bool op_error(verifier *v, const char *format, ...) {
    char text[200];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return table_error(v->error, "op %u (%s): %s", v->op,
                       ent_ops_tile_opcode_name(v->program->ops[v->op].opcode), text);
}

/* ---- tables ---- */

static bool dim_valid(const ent_tile_program *p, ent_dim dim) {
    return dim >= 0 || (uint64_t)~dim < p->expr_count;
}

static bool check_symbols(const ent_tile_program *p, ent_ops_error *error) {
    for (uint32_t i = 0; i < p->symbol_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (p->symbols[i].size == p->symbols[k].size &&
                (p->symbols[i].size == 0 ||
                 memcmp(p->symbols[i].data, p->symbols[k].data, p->symbols[i].size) == 0))
                return table_error(error, "symbols %u and %u have the same name", k, i);
    return true;
}

static bool check_exprs(const ent_tile_program *p, ent_ops_error *error) {
    for (uint32_t i = 0; i < p->expr_count; i++) {
        const ent_expr *e = &p->exprs[i];
        if (e->kind < ENT_EXPR_SYMBOL || e->kind > ENT_EXPR_CONST)
            return table_error(error, "expression %u: unknown kind %u", i, e->kind);
        if (e->kind == ENT_EXPR_CONST) continue;
        if (e->kind == ENT_EXPR_SYMBOL) {
            if (e->a < 0 || (uint64_t)e->a >= p->symbol_count)
                return table_error(error, "expression %u: symbol %lld does not exist", i, (long long)e->a);
            continue;
        }
        if ((e->a < 0 && (uint64_t)~e->a >= i) || (e->b < 0 && (uint64_t)~e->b >= i))
            return table_error(error, "expression %u: refers to itself or a later one", i);
    }
    return true;
}

static bool dtype_in_tile(uint32_t dtype) {
    return dtype > ENT_DTYPE_NONE && dtype < ENT_DTYPE_C64 && ent_dtype_bits(dtype) >= 8;
}

static bool check_layout(const ent_layout *layout, uint32_t rank) {
    uint32_t seen = 0;
    if (layout->kind != ENT_LAYOUT_STRIDED || layout->rank != rank || layout->block_count > ENT_MAX_BLOCKS)
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (layout->order[i] >= rank) return false;
        seen |= 1u << layout->order[i];
    }
    for (uint32_t i = 0; i < layout->block_count; i++)
        if (layout->block_axis[i] >= rank || layout->block_size[i] == 0) return false;
    return seen == (1u << rank) - 1;
}

static bool check_buffers(const ent_tile_program *p, ent_ops_error *error) {
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const ent_tile_buffer *b = &p->buffers[i];
        if (b->role < ENT_ROLE_INPUT || b->role > ENT_ROLE_SCRATCH)
            return table_error(error, "buffer %u: unknown role %u", i, b->role);
        if (!dtype_in_tile(b->dtype))
            return table_error(error, "buffer %u: dtype %s cannot be moved to a tile", i,
                               ent_dtype_name(b->dtype));
        if (b->rank > ENT_MAX_RANK)
            return table_error(error, "buffer %u: rank %u over %d", i, b->rank, ENT_MAX_RANK);
        for (uint32_t d = 0; d < b->rank; d++)
            if (!dim_valid(p, b->dims[d]))
                return table_error(error, "buffer %u: size %u names no expression", i, d);
        if (!check_layout(&b->layout, b->rank))
            return table_error(error, "buffer %u: layout is not a strided one of rank %u", i, b->rank);
    }
    return true;
}

static bool check_values(const ent_tile_program *p, ent_ops_error *error) {
    if (p->value_count > MAX_VALUES) return table_error(error, "more than %d tiles", MAX_VALUES);
    for (uint32_t i = 0; i < p->value_count; i++) {
        const ent_tile_value *t = &p->values[i];
        if (!dtype_in_tile(t->dtype))
            return table_error(error, "tile %u: dtype %s is not one of a tile", i, ent_dtype_name(t->dtype));
        if (t->space < ENT_SPACE_REGISTER || t->space > ENT_SPACE_SHARED)
            return table_error(error, "tile %u: unknown space %u", i, t->space);
        if (t->rank < 1 || t->rank > ENT_TILE_MAX_RANK)
            return table_error(error, "tile %u: rank %u is not 1..%d", i, t->rank, ENT_TILE_MAX_RANK);
        int64_t elements = 1;
        for (uint32_t d = 0; d < t->rank; d++) {
            if (t->shape[d] < 1 || t->shape[d] > ENT_TILE_MAX_ELEMENTS / elements)
                return table_error(error, "tile %u: shape is empty or over %d elements", i,
                                   ENT_TILE_MAX_ELEMENTS);
            elements *= t->shape[d];
        }
    }
    return true;
}

static bool check_index(const ent_tile_program *p, const ent_tile_index *x, uint32_t access, uint32_t dim,
                        ent_ops_error *error) {
    if (x->term_count > ENT_TILE_MAX_TERMS)
        return table_error(error, "access %u, index %u: more than %d terms", access, dim, ENT_TILE_MAX_TERMS);
    for (uint32_t t = 0; t < x->term_count; t++)
        if (x->terms[t].variable >= p->variable_count)
            return table_error(error, "access %u, index %u: variable %u does not exist", access, dim,
                               x->terms[t].variable);
    if (x->divisor < 1) return table_error(error, "access %u, index %u: divisor is below 1", access, dim);
    if (x->exact > 1) return table_error(error, "access %u, index %u: exact is neither 0 nor 1", access, dim);
    if (x->tile_axis != ENT_TILE_NONE && x->tile_axis >= ENT_TILE_MAX_RANK)
        return table_error(error, "access %u, index %u: tile axis %u does not exist", access, dim,
                           x->tile_axis);
    if (x->gather != ENT_TILE_NONE &&
        (x->gather >= p->value_count ||
         (p->values[x->gather].dtype != ENT_DTYPE_I32 && p->values[x->gather].dtype != ENT_DTYPE_I64)))
        return table_error(error, "access %u, index %u: gathers through no i32 or i64 tile", access, dim);
    if (x->bound != ENT_TILE_BOUND_ALL && !dim_valid(p, x->bound))
        return table_error(error, "access %u, index %u: bound names no expression", access, dim);
    return true;
}

static bool check_accesses(const ent_tile_program *p, ent_ops_error *error) {
    for (uint32_t i = 0; i < p->access_count; i++) {
        const ent_tile_access *a = &p->accesses[i];
        if (a->buffer >= p->buffer_count)
            return table_error(error, "access %u: buffer %u does not exist", i, a->buffer);
        if (a->rank != p->buffers[a->buffer].rank)
            return table_error(error, "access %u: rank %u, its buffer has %u", i, a->rank,
                               p->buffers[a->buffer].rank);
        for (uint32_t d = 0; d < a->rank; d++)
            if (!check_index(p, &a->index[d], i, d, error)) return false;
    }
    return true;
}

static bool check_tables(const ent_tile_program *p, ent_ops_error *error) {
    if (p->variable_count > ENT_TILE_MAX_VARIABLES || p->grid_count > p->variable_count)
        return table_error(error, "%u variables and %u grid axes: at most %d variables, grid axes first",
                           p->variable_count, p->grid_count, ENT_TILE_MAX_VARIABLES);
    if (p->symbol_count > MAX_SYMBOLS) return table_error(error, "more than %d symbols", MAX_SYMBOLS);
    if (!check_symbols(p, error) || !check_exprs(p, error)) return false;
    for (uint32_t i = 0; i < p->grid_count; i++) {
        if (!dim_valid(p, p->grid[i].extent))
            return table_error(error, "grid axis %u: extent names no expression", i);
        if (p->grid[i].step < 1) return table_error(error, "grid axis %u: step is below 1", i);
    }
    return check_buffers(p, error) && check_values(p, error) && check_accesses(p, error);
}

/* ---- body ---- */

static bool is_pending(const verifier *v, uint32_t tile) {
    for (uint32_t i = 0; i < v->state.pending_count; i++)
        if (v->state.pending[i] == tile) return true;
    return false;
}

static bool read_tile(verifier *v, uint32_t tile) {
    if (tile >= v->program->value_count) return op_error(v, "tile %u does not exist", tile);
    if (is_pending(v, tile)) return op_error(v, "t%u is used before a wait for the copy into it", tile);
    if (!v->state.defined[tile]) return op_error(v, "t%u is read before it is written", tile);
    return true;
}

static bool write_tile(verifier *v, uint32_t tile) {
    if (tile >= v->program->value_count) return op_error(v, "tile %u does not exist", tile);
    if (is_pending(v, tile)) return op_error(v, "t%u is written before a wait for the copy into it", tile);
    v->state.defined[tile] = 1;
    return true;
}

/* True when `from` has the rank of `to` and each extent is the same or 1. */
static bool broadcasts(const ent_tile_value *from, const ent_tile_value *to) {
    if (from->rank != to->rank) return false;
    for (uint32_t i = 0; i < from->rank; i++)
        if (from->shape[i] != to->shape[i] && from->shape[i] != 1) return false;
    return true;
}

/* The indices of a move with respect to the moved tile. out_named: tile axes that some dimension advances. */
static bool check_move(verifier *v, const ent_tile_op *op, uint32_t tile, uint32_t *out_named) {
    const ent_tile_program *p = v->program;
    if (op->access >= p->access_count) return op_error(v, "access %u does not exist", op->access);
    if (tile >= p->value_count) return op_error(v, "tile %u does not exist", tile);
    const ent_tile_access *access = &p->accesses[op->access];
    const ent_tile_value *value = &p->values[tile];
    if (p->buffers[access->buffer].dtype != value->dtype)
        return op_error(v, "buffer %u is %s, t%u is %s", access->buffer,
                        ent_dtype_name(p->buffers[access->buffer].dtype), tile, ent_dtype_name(value->dtype));
    *out_named = 0;
    for (uint32_t d = 0; d < access->rank; d++) {
        const ent_tile_index *x = &access->index[d];
        if (x->tile_axis != ENT_TILE_NONE) {
            if (x->tile_axis >= value->rank)
                return op_error(v, "index %u advances with tile axis %u, t%u has rank %u", d, x->tile_axis,
                                tile, value->rank);
            *out_named |= 1u << x->tile_axis;
        }
        for (uint32_t t = 0; t < x->term_count; t++)
            if (!v->in_scope[x->terms[t].variable])
                return op_error(v, "index %u uses v%u outside its loop", d, x->terms[t].variable);
        if (x->gather == ENT_TILE_NONE) continue;
        if (!read_tile(v, x->gather)) return false;
        if (!broadcasts(&p->values[x->gather], value))
            return op_error(v, "index %u gathers through t%u, whose shape does not fit t%u", d, x->gather,
                            tile);
        for (uint32_t a = 0; a < value->rank; a++)
            if (p->values[x->gather].shape[a] > 1) *out_named |= 1u << a;
    }
    return true;
}

static bool check_load(verifier *v, const ent_tile_op *op) {
    uint32_t named = 0;
    if (!check_move(v, op, op->dst, &named)) return false;
    if (op->opcode == ENT_TILE_LOAD) return write_tile(v, op->dst);
    if (!write_tile(v, op->dst)) return false;
    if (v->state.pending_count == MAX_COPIES) return op_error(v, "more than %d copies under way", MAX_COPIES);
    v->state.defined[op->dst] = 0;
    v->state.pending[v->state.pending_count++] = op->dst;
    return true;
}

static bool check_store(verifier *v, const ent_tile_op *op) {
    uint32_t named = 0;
    if (!read_tile(v, op->source[0]) || !check_move(v, op, op->source[0], &named)) return false;
    const ent_tile_program *p = v->program;
    uint32_t buffer = p->accesses[op->access].buffer, role = p->buffers[buffer].role;
    if (role != ENT_ROLE_OUTPUT && role != ENT_ROLE_SCRATCH)
        return op_error(v, "buffer %u is neither output nor scratch", buffer);
    const ent_tile_value *value = &p->values[op->source[0]];
    for (uint32_t a = 0; a < value->rank; a++)
        if (value->shape[a] != 1 && !(named & 1u << a))
            return op_error(v, "no index advances with tile axis %u, which has %lld elements", a,
                            (long long)value->shape[a]);
    return true;
}

static bool is_compute_float(uint32_t dtype) {
    return dtype == ENT_DTYPE_F32 || dtype == ENT_DTYPE_F16 || dtype == ENT_DTYPE_BF16;
}

static bool zero_point_legal(uint32_t dtype, double zero) {
    double low = dtype == ENT_DTYPE_I8 ? -128 : 0, high = dtype == ENT_DTYPE_I8   ? 127
                                                          : dtype == ENT_DTYPE_U8 ? 255
                                                                                  : 0;
    return zero >= low && zero <= high && zero == (double)(int32_t)zero;
}

static bool check_mma(verifier *v, const ent_tile_op *op) {
    if (!read_tile(v, op->source[0]) || !read_tile(v, op->source[1]) || !read_tile(v, op->dst)) return false;
    const ent_tile_value *a = &v->program->values[op->source[0]], *b = &v->program->values[op->source[1]];
    const ent_tile_value *dst = &v->program->values[op->dst];
    if (op->dst == op->source[0] || op->dst == op->source[1])
        return op_error(v, "accumulates into its own source");
    if (op->flags & ~(uint32_t)ENT_TILE_TRANSPOSE_B) return op_error(v, "unknown flags %u", op->flags);
    bool floats = is_compute_float(a->dtype) && a->dtype == b->dtype && dst->dtype == ENT_DTYPE_F32;
    bool bytes = (a->dtype == ENT_DTYPE_I8 || a->dtype == ENT_DTYPE_U8) &&
                 (b->dtype == ENT_DTYPE_I8 || b->dtype == ENT_DTYPE_U8) && dst->dtype == ENT_DTYPE_I32;
    if (!floats && !bytes)
        return op_error(
            v, "dtypes %s x %s -> %s are not f32, f16 or bf16 pairs to f32, nor 8-bit integers to i32",
            ent_dtype_name(a->dtype), ent_dtype_name(b->dtype), ent_dtype_name(dst->dtype));
    if (!zero_point_legal(a->dtype, op->f[0]) || !zero_point_legal(b->dtype, op->f[1]))
        return op_error(v, "a zero point is no number of its operand's 8-bit type");
    uint32_t k_axis = op->flags & ENT_TILE_TRANSPOSE_B ? 1 : 0;
    if (b->rank != 2 || a->rank != dst->rank)
        return op_error(v, "ranks are not [m.., k] x [k, n] -> [m.., n]");
    if (b->shape[k_axis] != a->shape[a->rank - 1] || b->shape[1 - k_axis] != dst->shape[dst->rank - 1])
        return op_error(v, "shapes are not [m.., k] x [k, n] -> [m.., n]");
    for (uint32_t i = 0; i + 1 < a->rank; i++)
        if (a->shape[i] != dst->shape[i]) return op_error(v, "leading axis %u of a and dst differ", i);
    return true;
}

static bool map_dtypes_legal(const ent_ops_map_info *info, const ent_tile_program *p, const ent_tile_op *op) {
    uint32_t dst = p->values[op->dst].dtype, first = p->values[op->source[0]].dtype;
    uint32_t from = info->map_class == ENT_OPS_MAP_SELECT ? 1 : 0;
    if (info->map_class == ENT_OPS_MAP_CAST) return true;
    for (uint32_t i = from + 1; i < info->sources; i++)
        if (p->values[op->source[i]].dtype != p->values[op->source[from]].dtype) return false;
    switch (info->map_class) {
    case ENT_OPS_MAP_FLOAT:
        return first == dst && ent_ops_dtype_is_float(dst);
    case ENT_OPS_MAP_NUMBER:
        return first == dst && dst != ENT_DTYPE_BOOL;
    case ENT_OPS_MAP_COMPARE:
        return dst == ENT_DTYPE_BOOL;
    case ENT_OPS_MAP_LOGIC:
        return first == ENT_DTYPE_BOOL && dst == ENT_DTYPE_BOOL;
    default:
        return first == ENT_DTYPE_BOOL && p->values[op->source[1]].dtype == dst;
    }
}

static bool check_map(verifier *v, const ent_tile_op *op) {
    const ent_ops_map_info *info = ent_ops_map_info_get(op->kind);
    if (!info) return op_error(v, "unknown map %u", op->kind);
    if (op->source_count != info->sources)
        return op_error(v, "%s takes %u sources, not %u", info->name, info->sources, op->source_count);
    for (uint32_t i = 0; i < op->source_count; i++)
        if (!read_tile(v, op->source[i])) return false;
    if (!write_tile(v, op->dst)) return false;
    for (uint32_t i = 0; i < op->source_count; i++)
        if (!broadcasts(&v->program->values[op->source[i]], &v->program->values[op->dst]))
            return op_error(v, "the shape of t%u does not fit t%u", op->source[i], op->dst);
    if (!map_dtypes_legal(info, v->program, op))
        return op_error(v, "dtypes are not those that %s takes", info->name);
    return true;
}

static bool check_reduce(verifier *v, const ent_tile_op *op) {
    if (op->kind < ENT_REDUCE_SUM || op->kind > ENT_REDUCE_PROD)
        return op_error(v, "unknown reduction %u", op->kind);
    if (!read_tile(v, op->source[0]) || !write_tile(v, op->dst)) return false;
    const ent_tile_value *src = &v->program->values[op->source[0]], *dst = &v->program->values[op->dst];
    if (op->dst == op->source[0]) return op_error(v, "reduces into its own source");
    if (src->dtype != dst->dtype || src->dtype == ENT_DTYPE_BOOL)
        return op_error(v, "dtypes differ or are bool");
    if (src->rank != dst->rank) return op_error(v, "ranks differ");
    if (op->axis_mask == 0 || op->axis_mask >> src->rank)
        return op_error(v, "axes are not of t%u", op->source[0]);
    for (uint32_t i = 0; i < src->rank; i++)
        if (dst->shape[i] != (op->axis_mask & 1u << i ? 1 : src->shape[i]))
            return op_error(v, "axis %u of t%u has not the reduced extent", i, op->dst);
    return true;
}

static bool check_reorder(verifier *v, const ent_tile_op *op) {
    if (!read_tile(v, op->source[0]) || !write_tile(v, op->dst)) return false;
    const ent_tile_value *src = &v->program->values[op->source[0]], *dst = &v->program->values[op->dst];
    if (op->dst == op->source[0]) return op_error(v, "destination is its own source");
    if (src->dtype != dst->dtype) return op_error(v, "dtypes differ");
    if (op->opcode == ENT_TILE_RESHAPE) {
        if (ent_ops_tile_elements(src) != ent_ops_tile_elements(dst))
            return op_error(v, "element counts differ");
        return true;
    }
    uint32_t seen = 0;
    if (src->rank != dst->rank) return op_error(v, "ranks differ");
    for (uint32_t i = 0; i < dst->rank; i++) {
        if (op->perm[i] >= src->rank) return op_error(v, "axis %u does not exist", op->perm[i]);
        seen |= 1u << op->perm[i];
        if (dst->shape[i] != src->shape[op->perm[i]]) return op_error(v, "axis %u has another extent", i);
    }
    return seen == (1u << dst->rank) - 1 || op_error(v, "axes are no permutation");
}

static bool check_iota(verifier *v, const ent_tile_op *op) {
    if (!write_tile(v, op->dst)) return false;
    const ent_tile_value *dst = &v->program->values[op->dst];
    if (dst->dtype != ENT_DTYPE_I32 && dst->dtype != ENT_DTYPE_I64 && dst->dtype != ENT_DTYPE_F32)
        return op_error(v, "dtype is not i32, i64 or f32");
    if (op->axis_mask >> dst->rank || (op->axis_mask & (op->axis_mask - 1)))
        return op_error(v, "counts along more than one axis, or one that t%u lacks", op->dst);
    if (op->variable == ENT_TILE_NONE) return true;
    if (op->variable >= v->program->variable_count || !v->in_scope[op->variable])
        return op_error(v, "uses v%u outside its loop", op->variable);
    return true;
}

static bool check_loop(verifier *v, const ent_tile_op *op) {
    if (v->depth == MAX_DEPTH) return op_error(v, "loops nest deeper than %d", MAX_DEPTH);
    if (op->variable != v->next_variable || op->variable >= v->program->variable_count)
        return op_error(v, "variable v%u is not the next one, v%u, of %u", op->variable, v->next_variable,
                        v->program->variable_count);
    if (!dim_valid(v->program, op->begin) || !dim_valid(v->program, op->end))
        return op_error(v, "begin or end names no expression");
    if (op->step < 1) return op_error(v, "step is below 1");
    v->at_loop[v->depth] = v->state;
    v->loop_op[v->depth++] = v->op;
    v->in_scope[v->next_variable++] = 1;
    return true;
}

static bool check_end(verifier *v) {
    if (v->depth == 0) return op_error(v, "no loop is open");
    verify_state *before = &v->at_loop[--v->depth];
    const ent_tile_op *loop = &v->program->ops[v->loop_op[v->depth]];
    v->in_scope[loop->variable] = 0;
    if (before->pending_count != v->state.pending_count ||
        memcmp(before->pending, v->state.pending, before->pending_count * sizeof before->pending[0]) != 0)
        return op_error(v, "copies under way differ between the start and the end of the loop at op %u",
                        v->loop_op[v->depth]);
    bool runs = ent_dim_is_const(loop->begin) && ent_dim_is_const(loop->end) && loop->begin < loop->end;
    if (!runs) v->state = *before;
    return true;
}

static bool check_wait(verifier *v, const ent_tile_op *op) {
    uint32_t done = v->state.pending_count > op->count ? v->state.pending_count - op->count : 0;
    for (uint32_t i = 0; i < done; i++) v->state.defined[v->state.pending[i]] = 1;
    for (uint32_t i = done; i < v->state.pending_count; i++) v->state.pending[i - done] = v->state.pending[i];
    v->state.pending_count -= done;
    return true;
}

static bool check_op(verifier *v, const ent_tile_op *op) {
    static const uint8_t sources[] = {0, 0, 1, 0, 2, 0, 1, 0, 0, 0, 0, 1, 1, 0};
    if (op->opcode < ENT_TILE_LOAD || op->opcode > ENT_TILE_IOTA)
        return op_error(v, "unknown opcode %u", op->opcode);
    if (op->opcode != ENT_TILE_MAP && op->source_count != sources[op->opcode])
        return op_error(v, "takes %u sources, not %u", sources[op->opcode], op->source_count);
    switch (op->opcode) {
    case ENT_TILE_LOAD:
    case ENT_TILE_COPY:
        return check_load(v, op);
    case ENT_TILE_STORE:
        return check_store(v, op);
    case ENT_TILE_FILL:
        return write_tile(v, op->dst);
    case ENT_TILE_MMA:
        return check_mma(v, op);
    case ENT_TILE_MAP:
        return check_map(v, op);
    case ENT_TILE_REDUCE:
        return check_reduce(v, op);
    case ENT_TILE_LOOP:
        return check_loop(v, op);
    case ENT_TILE_END:
        return check_end(v);
    case ENT_TILE_WAIT:
        return check_wait(v, op);
    case ENT_TILE_RESHAPE:
    case ENT_TILE_PERMUTE:
        return check_reorder(v, op);
    default:
        return check_iota(v, op);
    }
}

static bool check_body(verifier *v) {
    const ent_tile_program *p = v->program;
    for (uint32_t i = 0; i < p->grid_count; i++) v->in_scope[i] = 1;
    v->next_variable = p->grid_count;
    for (v->op = 0; v->op < p->op_count; v->op++)
        if (!check_op(v, &p->ops[v->op])) return false;
    if (v->depth > 0) return table_error(v->error, "the loop at op %u has no end", v->loop_op[v->depth - 1]);
    if (v->next_variable != p->variable_count)
        return table_error(v->error, "%u variables declared, %u used", p->variable_count, v->next_variable);
    if (v->state.pending_count > 0)
        return table_error(v->error, "the copy into t%u is never waited for", v->state.pending[0]);
    return true;
}

ent_code ent_ops_tile_verify(const ent_tile_program *program, ent_ops_error *error) {
    ent_ops_error ignored;
    verifier v;
    memset(&v, 0, sizeof v);
    v.program = program;
    v.error = error ? error : &ignored;
    v.error->code = ENT_OK;
    v.error->text[0] = 0;
    if (check_tables(program, v.error)) check_body(&v);
    return v.error->code;
}
