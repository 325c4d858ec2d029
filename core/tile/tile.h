/* Tile IR in the compiler: building, checking, printing and parsing tile programs. The IR itself is
 * abi/ent_tile.h; its meaning and its rules live in core/ops (vendors have them too). Uses base, core/ops and
 * abi.
 *
 * Everything is allocated from the arena given and lives as long as it; programs are never changed after they
 * are made, so any thread may read them. */
#ifndef ENT_TILE_TILE_H
#define ENT_TILE_TILE_H

#include "abi/ent_message.h"
#include "abi/ent_tile.h"
#include "core/base/base.h"

/* NULL when the program keeps every rule, else code INTERNAL, rule "tile.invalid", place the program's name,
 * text naming the op and the rule broken. */
ent_status ent_tile_verify(const ent_tile_program *program, ent_arena *arena);

/* ---- text form (see core/tile/README.md for the syntax) ---- */

/* Appends the text of a verified program; it parses back to the same program. */
void ent_tile_print(const ent_tile_program *program, ent_text *out);
/* Parses one program and verifies it. Errors: code MODEL, place "file:line", rule "text.syntax" or
 * "tile.invalid". */
ent_status ent_tile_parse(ent_arena *arena, const char *file, const char *text, size_t size,
                          ent_tile_program **out);
/* The same at a cursor that may go on afterwards; does not verify. */
ent_status ent_tile_parse_at(ent_scan *scan, ent_tile_program **out);

/* ---- byte form (abi/ent_tile_codec.h) over an arena ---- */

ent_status ent_tile_encode(const ent_tile_program *program, ent_arena *arena, ent_str *out);
/* Decodes and verifies. Code MODEL, rule "tile.bytes" or "tile.invalid". */
ent_status ent_tile_decode(ent_arena *arena, const void *bytes, size_t size, ent_tile_program **out);

/* ---- builder ---- */

/* Collects a program. Order of calls: symbols and expressions, grid axes, then buffers, tiles and operations
 * in any order. Misuse that the verifier would see (wrong ids, shapes, order) is reported by
 * ent_tile_builder_finish. */
typedef struct ent_tile_builder {
    ent_arena *arena;
    ent_str name;
    ENT_ARRAY(ent_tile_axis) grid;
    ENT_ARRAY(ent_tile_buffer) buffers;
    ENT_ARRAY(ent_tile_value) values;
    ENT_ARRAY(ent_tile_access) accesses;
    ENT_ARRAY(ent_tile_op) ops;
    ENT_ARRAY(ent_expr) exprs;
    ENT_ARRAY(ent_str) symbols;
    uint32_t variable_count;
} ent_tile_builder;

void ent_tile_builder_init(ent_tile_builder *builder, ent_arena *arena, const char *name);
/* Copies a whole table, so that dims of its owner mean the same here. Before any other expression. */
void ent_tile_builder_set_exprs(ent_tile_builder *builder, const ent_expr *exprs, uint32_t expr_count,
                                const ent_str *symbols, uint32_t symbol_count);
/* The dim of a symbol, made on first use. */
ent_dim ent_tile_builder_symbol(ent_tile_builder *builder, const char *name);
/* A dim for `a kind b`; constants fold, equal expressions are shared. */
ent_dim ent_tile_builder_expr(ent_tile_builder *builder, uint32_t kind, ent_dim a, ent_dim b);

/* Each returns the id that later calls take: variable, buffer, tile. */
uint32_t ent_tile_builder_grid(ent_tile_builder *builder, ent_dim extent, int64_t step);
uint32_t ent_tile_builder_buffer(ent_tile_builder *builder, ent_tile_role role, uint32_t dtype, uint32_t rank,
                                 const ent_dim *dims, const ent_layout *layout);
uint32_t ent_tile_builder_value(ent_tile_builder *builder, uint32_t dtype, ent_tile_space space,
                                uint32_t rank, const int64_t *shape);
/* Tiles of rank 2 and 4, f32, the common case. */
uint32_t ent_tile_builder_value2(ent_tile_builder *builder, ent_tile_space space, int64_t d0, int64_t d1);
uint32_t ent_tile_builder_value4(ent_tile_builder *builder, ent_tile_space space, int64_t d0, int64_t d1,
                                 int64_t d2, int64_t d3);

/* An access to element 0 along every dimension of the buffer: refine each index, then pass it to load, store
 * or copy. */
ent_tile_access ent_tile_builder_access(const ent_tile_builder *builder, uint32_t buffer);
/* access.index[dim] = base + variable + step * (position along tile_axis). variable or tile_axis may be
 * ENT_TILE_NONE. Further terms: ent_tile_access_term. */
void ent_tile_access_set(ent_tile_access *access, uint32_t dim, int64_t base, uint32_t variable,
                         uint32_t tile_axis, int64_t step);
/* access.index[dim] += coefficient * variable. More than ENT_TILE_MAX_TERMS make finish fail. */
void ent_tile_access_term(ent_tile_access *access, uint32_t dim, uint32_t variable, int64_t coefficient);

void ent_tile_builder_load(ent_tile_builder *builder, uint32_t dst, const ent_tile_access *access,
                           double outside);
void ent_tile_builder_copy(ent_tile_builder *builder, uint32_t dst, const ent_tile_access *access,
                           double outside);
void ent_tile_builder_wait(ent_tile_builder *builder, uint32_t count);
void ent_tile_builder_store(ent_tile_builder *builder, const ent_tile_access *access, uint32_t src);
void ent_tile_builder_fill(ent_tile_builder *builder, uint32_t dst, double value);
/* flags: 0 or ENT_TILE_TRANSPOSE_B */
void ent_tile_builder_mma(ent_tile_builder *builder, uint32_t dst, uint32_t a, uint32_t b, uint32_t flags);
/* Of 8-bit integers. */
void ent_tile_builder_mma_bytes(ent_tile_builder *builder, uint32_t dst, uint32_t a, uint32_t b,
                                uint32_t flags, double a_zero, double b_zero);
void ent_tile_builder_map1(ent_tile_builder *builder, ent_tile_map map, uint32_t dst, uint32_t a, double f0,
                           double f1);
void ent_tile_builder_map2(ent_tile_builder *builder, ent_tile_map map, uint32_t dst, uint32_t a, uint32_t b);
void ent_tile_builder_map3(ent_tile_builder *builder, ent_tile_map map, uint32_t dst, uint32_t a, uint32_t b,
                           uint32_t c);
void ent_tile_builder_reduce(ent_tile_builder *builder, ent_reduce_kind kind, uint32_t dst, uint32_t src,
                             uint32_t axis_mask);
/* Returns the loop's variable. */
uint32_t ent_tile_builder_loop(ent_tile_builder *builder, ent_dim begin, ent_dim end, int64_t step);
void ent_tile_builder_end(ent_tile_builder *builder);
void ent_tile_builder_reshape(ent_tile_builder *builder, uint32_t dst, uint32_t src);
void ent_tile_builder_permute(ent_tile_builder *builder, uint32_t dst, uint32_t src, const uint8_t *perm);
/* dst = base + coefficient * variable + position along `axis`; variable may be ENT_TILE_NONE. */
void ent_tile_builder_iota(ent_tile_builder *builder, uint32_t dst, int64_t base, uint32_t variable,
                           int64_t coefficient, uint32_t axis);

/* The program as collected, unverified. */
ent_tile_program *ent_tile_builder_program(ent_tile_builder *builder);
/* Verifies and gives the program, whose arrays lie in the arena. The builder is done afterwards. */
ent_status ent_tile_builder_finish(ent_tile_builder *builder, ent_tile_program **out);

#endif
