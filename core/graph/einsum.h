/* The equation of an Einsum, read against its operands; infer_einsum.c and decompose_einsum.c use it. */
#ifndef ENT_GRAPH_EINSUM_H
#define ENT_GRAPH_EINSUM_H

#include "core/graph/internal.h"

#define ENT_EINSUM_OPERANDS 16
#define ENT_EINSUM_LETTERS 52
#define ENT_EINSUM_LABELS 60 /* letters, then the axes of "...", the last one last */

typedef struct ent_einsum_term {
    uint8_t label[ENT_MAX_RANK]; /* one per axis */
    uint32_t count;
} ent_einsum_term;

typedef struct ent_einsum {
    ent_einsum_term in[ENT_EINSUM_OPERANDS], out;
} ent_einsum;

/* ranks: of the operands. NULL, or what is wrong with the equation. */
const char *ent_einsum_read(ent_attrs attrs, const uint32_t *ranks, uint32_t count, ent_einsum *out);

#endif
