/* The builder: appends to arrays; all checking is the verifier's. */
#include <string.h>

#include "core/tile/tile.h"

void ent_tile_builder_init(ent_tile_builder *builder, ent_arena *arena, const char *name) {
    memset(builder, 0, sizeof *builder);
    builder->arena = arena;
    builder->name.data = ent_arena_strdup(arena, name);
    builder->name.size = strlen(name);
}

void ent_tile_builder_set_exprs(ent_tile_builder *builder, const ent_expr *exprs, uint32_t expr_count,
                                const ent_str *symbols, uint32_t symbol_count) {
    for (uint32_t i = 0; i < expr_count; i++) ent_array_push(builder->arena, &builder->exprs, exprs[i]);
    for (uint32_t i = 0; i < symbol_count; i++) {
        ent_str copy = {ent_arena_strndup(builder->arena, symbols[i].data, symbols[i].size), symbols[i].size};
        ent_array_push(builder->arena, &builder->symbols, copy);
    }
}

static ent_dim share_expr(ent_tile_builder *builder, ent_expr expr) {
    for (uint32_t i = 0; i < builder->exprs.count; i++) {
        const ent_expr *other = &builder->exprs.items[i];
        if (other->kind == expr.kind && other->a == expr.a && other->b == expr.b) return ~(ent_dim)i;
    }
    ent_array_push(builder->arena, &builder->exprs, expr);
    return ~(ent_dim)(builder->exprs.count - 1);
}

ent_dim ent_tile_builder_symbol(ent_tile_builder *builder, const char *name) {
    uint32_t index = 0;
    size_t size = strlen(name);
    while (index < builder->symbols.count && (builder->symbols.items[index].size != size ||
                                              memcmp(builder->symbols.items[index].data, name, size) != 0))
        index++;
    if (index == builder->symbols.count) {
        ent_str symbol = {ent_arena_strdup(builder->arena, name), size};
        ent_array_push(builder->arena, &builder->symbols, symbol);
    }
    ent_expr expr = {ENT_EXPR_SYMBOL, 0, index, 0};
    return share_expr(builder, expr);
}

ent_dim ent_tile_builder_expr(ent_tile_builder *builder, uint32_t kind, ent_dim a, ent_dim b) {
    ent_expr expr = {kind, 0, a, b};
    int64_t value = 0;
    if (kind != ENT_EXPR_SYMBOL && ent_dim_is_const(a) && ent_dim_is_const(b) &&
        ent_expr_evaluate(&expr, 1, NULL, 0, &value)) {
        if (value >= 0) return value;
        ent_expr constant = {ENT_EXPR_CONST, 0, value, 0};
        return share_expr(builder, constant);
    }
    return share_expr(builder, expr);
}

uint32_t ent_tile_builder_grid(ent_tile_builder *builder, ent_dim extent, int64_t step) {
    ent_tile_axis axis = {extent, step};
    ent_array_push(builder->arena, &builder->grid, axis);
    return builder->variable_count++;
}

uint32_t ent_tile_builder_buffer(ent_tile_builder *builder, ent_tile_role role, uint32_t dtype, uint32_t rank,
                                 const ent_dim *dims, const ent_layout *layout) {
    ent_tile_buffer buffer = {.role = role, .dtype = dtype, .rank = rank, .layout = *layout};
    for (uint32_t i = 0; i < rank && i < ENT_MAX_RANK; i++) buffer.dims[i] = dims[i];
    ent_array_push(builder->arena, &builder->buffers, buffer);
    return builder->buffers.count - 1;
}

uint32_t ent_tile_builder_value(ent_tile_builder *builder, uint32_t dtype, ent_tile_space space,
                                uint32_t rank, const int64_t *shape) {
    ent_tile_value value = {.dtype = dtype, .space = space, .rank = rank};
    for (uint32_t i = 0; i < rank && i < ENT_TILE_MAX_RANK; i++) value.shape[i] = shape[i];
    ent_array_push(builder->arena, &builder->values, value);
    return builder->values.count - 1;
}

uint32_t ent_tile_builder_value2(ent_tile_builder *builder, ent_tile_space space, int64_t d0, int64_t d1) {
    int64_t shape[2] = {d0, d1};
    return ent_tile_builder_value(builder, ENT_DTYPE_F32, space, 2, shape);
}

uint32_t ent_tile_builder_value4(ent_tile_builder *builder, ent_tile_space space, int64_t d0, int64_t d1,
                                 int64_t d2, int64_t d3) {
    int64_t shape[4] = {d0, d1, d2, d3};
    return ent_tile_builder_value(builder, ENT_DTYPE_F32, space, 4, shape);
}

ent_tile_access ent_tile_builder_access(const ent_tile_builder *builder, uint32_t buffer) {
    ent_tile_access access;
    memset(&access, 0, sizeof access);
    access.buffer = buffer;
    access.rank = buffer < builder->buffers.count ? builder->buffers.items[buffer].rank : 0;
    for (uint32_t d = 0; d < access.rank && d < ENT_MAX_RANK; d++) {
        access.index[d].tile_axis = ENT_TILE_NONE;
        access.index[d].gather = ENT_TILE_NONE;
        access.index[d].divisor = 1;
        access.index[d].bound = ENT_TILE_BOUND_ALL;
    }
    return access;
}

void ent_tile_access_set(ent_tile_access *access, uint32_t dim, int64_t base, uint32_t variable,
                         uint32_t tile_axis, int64_t step) {
    ent_tile_index *index = &access->index[dim];
    index->base = base;
    index->term_count = 0;
    index->tile_axis = tile_axis;
    index->step = tile_axis == ENT_TILE_NONE ? 0 : step;
    if (variable != ENT_TILE_NONE) ent_tile_access_term(access, dim, variable, 1);
}

void ent_tile_access_term(ent_tile_access *access, uint32_t dim, uint32_t variable, int64_t coefficient) {
    ent_tile_index *index = &access->index[dim];
    if (index->term_count < ENT_TILE_MAX_TERMS) {
        index->terms[index->term_count].variable = variable;
        index->terms[index->term_count].coefficient = coefficient;
    }
    index->term_count++; /* one too many is the verifier's to report */
}

/* ---- operations ---- */

static ent_tile_op make_op(ent_tile_opcode opcode, uint32_t dst) {
    ent_tile_op op;
    memset(&op, 0, sizeof op);
    op.opcode = opcode;
    op.dst = dst;
    op.access = ENT_TILE_NONE;
    op.variable = ENT_TILE_NONE;
    return op;
}

static void push_op(ent_tile_builder *builder, ent_tile_op op) {
    ent_array_push(builder->arena, &builder->ops, op);
}

static uint32_t push_access(ent_tile_builder *builder, const ent_tile_access *access) {
    ent_array_push(builder->arena, &builder->accesses, *access);
    return builder->accesses.count - 1;
}

static void push_load(ent_tile_builder *builder, ent_tile_opcode opcode, uint32_t dst,
                      const ent_tile_access *access, double outside) {
    ent_tile_op op = make_op(opcode, dst);
    op.access = push_access(builder, access);
    op.f[0] = outside;
    push_op(builder, op);
}

void ent_tile_builder_load(ent_tile_builder *builder, uint32_t dst, const ent_tile_access *access,
                           double outside) {
    push_load(builder, ENT_TILE_LOAD, dst, access, outside);
}

void ent_tile_builder_copy(ent_tile_builder *builder, uint32_t dst, const ent_tile_access *access,
                           double outside) {
    push_load(builder, ENT_TILE_COPY, dst, access, outside);
}

void ent_tile_builder_wait(ent_tile_builder *builder, uint32_t count) {
    ent_tile_op op = make_op(ENT_TILE_WAIT, ENT_TILE_NONE);
    op.count = count;
    push_op(builder, op);
}

void ent_tile_builder_store(ent_tile_builder *builder, const ent_tile_access *access, uint32_t src) {
    ent_tile_op op = make_op(ENT_TILE_STORE, ENT_TILE_NONE);
    op.source_count = 1;
    op.source[0] = src;
    op.access = push_access(builder, access);
    push_op(builder, op);
}

void ent_tile_builder_fill(ent_tile_builder *builder, uint32_t dst, double value) {
    ent_tile_op op = make_op(ENT_TILE_FILL, dst);
    op.f[0] = value;
    push_op(builder, op);
}

void ent_tile_builder_mma(ent_tile_builder *builder, uint32_t dst, uint32_t a, uint32_t b, uint32_t flags) {
    ent_tile_builder_mma_bytes(builder, dst, a, b, flags, 0, 0);
}

void ent_tile_builder_mma_bytes(ent_tile_builder *builder, uint32_t dst, uint32_t a, uint32_t b,
                                uint32_t flags, double a_zero, double b_zero) {
    ent_tile_op op = make_op(ENT_TILE_MMA, dst);
    op.source_count = 2;
    op.source[0] = a;
    op.source[1] = b;
    op.flags = flags;
    op.f[0] = a_zero;
    op.f[1] = b_zero;
    push_op(builder, op);
}

void ent_tile_builder_map1(ent_tile_builder *builder, ent_tile_map map, uint32_t dst, uint32_t a, double f0,
                           double f1) {
    ent_tile_op op = make_op(ENT_TILE_MAP, dst);
    op.kind = map;
    op.source_count = 1;
    op.source[0] = a;
    op.f[0] = f0;
    op.f[1] = f1;
    push_op(builder, op);
}

void ent_tile_builder_map2(ent_tile_builder *builder, ent_tile_map map, uint32_t dst, uint32_t a,
                           uint32_t b) {
    ent_tile_op op = make_op(ENT_TILE_MAP, dst);
    op.kind = map;
    op.source_count = 2;
    op.source[0] = a;
    op.source[1] = b;
    push_op(builder, op);
}

void ent_tile_builder_map3(ent_tile_builder *builder, ent_tile_map map, uint32_t dst, uint32_t a, uint32_t b,
                           uint32_t c) {
    ent_tile_op op = make_op(ENT_TILE_MAP, dst);
    op.kind = map;
    op.source_count = 3;
    op.source[0] = a;
    op.source[1] = b;
    op.source[2] = c;
    push_op(builder, op);
}

void ent_tile_builder_reduce(ent_tile_builder *builder, ent_reduce_kind kind, uint32_t dst, uint32_t src,
                             uint32_t axis_mask) {
    ent_tile_op op = make_op(ENT_TILE_REDUCE, dst);
    op.kind = kind;
    op.source_count = 1;
    op.source[0] = src;
    op.axis_mask = axis_mask;
    push_op(builder, op);
}

uint32_t ent_tile_builder_loop(ent_tile_builder *builder, ent_dim begin, ent_dim end, int64_t step) {
    ent_tile_op op = make_op(ENT_TILE_LOOP, ENT_TILE_NONE);
    op.variable = builder->variable_count++;
    op.begin = begin;
    op.end = end;
    op.step = step;
    push_op(builder, op);
    return op.variable;
}

void ent_tile_builder_end(ent_tile_builder *builder) {
    push_op(builder, make_op(ENT_TILE_END, ENT_TILE_NONE));
}

void ent_tile_builder_reshape(ent_tile_builder *builder, uint32_t dst, uint32_t src) {
    ent_tile_op op = make_op(ENT_TILE_RESHAPE, dst);
    op.source_count = 1;
    op.source[0] = src;
    push_op(builder, op);
}

void ent_tile_builder_permute(ent_tile_builder *builder, uint32_t dst, uint32_t src, const uint8_t *perm) {
    ent_tile_op op = make_op(ENT_TILE_PERMUTE, dst);
    op.source_count = 1;
    op.source[0] = src;
    uint32_t rank = dst < builder->values.count ? builder->values.items[dst].rank : 0;
    for (uint32_t i = 0; i < rank && i < ENT_TILE_MAX_RANK; i++) op.perm[i] = perm[i];
    push_op(builder, op);
}

void ent_tile_builder_iota(ent_tile_builder *builder, uint32_t dst, int64_t base, uint32_t variable,
                           int64_t coefficient, uint32_t axis) {
    ent_tile_op op = make_op(ENT_TILE_IOTA, dst);
    op.f[0] = (double)base;
    op.variable = variable;
    op.step = variable == ENT_TILE_NONE ? 0 : coefficient;
    op.axis_mask = axis < 32 ? 1u << axis : 0;
    push_op(builder, op);
}

ent_tile_program *ent_tile_builder_program(ent_tile_builder *builder) {
    ent_tile_program *program = ent_arena_alloc(builder->arena, sizeof *program);
    program->name = builder->name;
    program->grid = builder->grid.items;
    program->grid_count = builder->grid.count;
    program->buffers = builder->buffers.items;
    program->buffer_count = builder->buffers.count;
    program->values = builder->values.items;
    program->value_count = builder->values.count;
    program->accesses = builder->accesses.items;
    program->access_count = builder->accesses.count;
    program->ops = builder->ops.items;
    program->op_count = builder->ops.count;
    program->variable_count = builder->variable_count;
    program->exprs = builder->exprs.items;
    program->expr_count = builder->exprs.count;
    program->symbols = builder->symbols.items;
    program->symbol_count = builder->symbols.count;
    return program;
}

ent_status ent_tile_builder_finish(ent_tile_builder *builder, ent_tile_program **out) {
    *out = ent_tile_builder_program(builder);
    return ent_tile_verify(*out, builder->arena);
}
