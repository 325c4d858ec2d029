/* Running a tile program on memory filled from a rule: shared by the goldens and the unit tests that compare
 * them with loops. */
#ifndef ENT_TILE_CASE_H
#define ENT_TILE_CASE_H

#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/tile/tile.h"

#define TILE_CASE_MAX_BUFFERS 16

typedef struct tile_case {
    const ent_tile_program *program;
    int64_t symbols[8];
    int64_t dims[TILE_CASE_MAX_BUFFERS][ENT_MAX_RANK];
    void *memory[TILE_CASE_MAX_BUFFERS]; /* malloc, exactly as long as the buffer, so that a sanitizer sees
                                            overruns */
} tile_case;

/* The number at row-major logical position `at` of buffer `buffer`: floats are eighths in -1..1, integers
 * 0..6. */
static inline double tile_case_value(uint32_t buffer, int64_t at, bool is_float) {
    uint64_t mix = ((uint64_t)at + 1) * 2654435761u + (uint64_t)buffer * 40503u;
    mix ^= mix >> 13;
    return is_float ? ((double)(mix % 17) - 8.0) / 8.0 : (double)(mix % 7);
}

static inline bool tile_case_is_float(uint32_t dtype) {
    return dtype >= ENT_DTYPE_F32 && dtype <= ENT_DTYPE_F64;
}

static inline int64_t tile_case_elements(const tile_case *c, uint32_t buffer) {
    int64_t count = 1;
    for (uint32_t d = 0; d < c->program->buffers[buffer].rank; d++) count *= c->dims[buffer][d];
    return count;
}

/* Physical offset of a row-major logical position. */
static inline int64_t tile_case_offset(const tile_case *c, uint32_t buffer, int64_t at) {
    const ent_tile_buffer *b = &c->program->buffers[buffer];
    int64_t index[ENT_MAX_RANK] = {0};
    for (uint32_t d = b->rank; d-- > 0;) {
        index[d] = at % c->dims[buffer][d];
        at /= c->dims[buffer][d];
    }
    return ent_layout_offset(&b->layout, c->dims[buffer], index);
}

static inline double tile_case_get(const tile_case *c, uint32_t buffer, int64_t at) {
    return ent_ops_load_f64(c->memory[buffer], c->program->buffers[buffer].dtype,
                            tile_case_offset(c, buffer, at));
}

/* Allocates and fills the buffers for these symbols (outputs with a marker, 99). False when a size does not
 * evaluate. */
static inline bool tile_case_open(tile_case *c, const ent_tile_program *program, const int64_t *symbols) {
    int64_t sizes[64];
    memset(c, 0, sizeof *c);
    c->program = program;
    if (program->symbol_count > 8 || program->expr_count > 64 ||
        program->buffer_count > TILE_CASE_MAX_BUFFERS)
        return false;
    for (uint32_t i = 0; i < program->symbol_count; i++) c->symbols[i] = symbols[i];
    if (!ent_expr_evaluate(program->exprs, program->expr_count, c->symbols, program->symbol_count, sizes))
        return false;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        const ent_tile_buffer *b = &program->buffers[i];
        for (uint32_t d = 0; d < b->rank; d++) c->dims[i][d] = ent_dim_value(b->dims[d], sizes);
        int64_t bytes = ent_layout_bytes(&b->layout, b->dtype, c->dims[i]);
        if (bytes < 0 || bytes > 1 << 24) return false;
        if (b->role == ENT_ROLE_SCRATCH) continue;
        c->memory[i] = calloc(1, bytes ? (size_t)bytes : 1);
        for (int64_t k = 0; k < tile_case_elements(c, i); k++)
            ent_ops_store_f64(
                c->memory[i], b->dtype, tile_case_offset(c, i, k),
                b->role == ENT_ROLE_OUTPUT ? 99.0 : tile_case_value(i, k, tile_case_is_float(b->dtype)));
    }
    return true;
}

static inline void tile_case_close(tile_case *c) {
    for (uint32_t i = 0; i < TILE_CASE_MAX_BUFFERS; i++) free(c->memory[i]);
}

#endif
