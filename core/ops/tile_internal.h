/* Shared by the tile verifier and interpreter only. */
#ifndef ENT_OPS_TILE_INTERNAL_H
#define ENT_OPS_TILE_INTERNAL_H

#include "core/ops/ops.h"

/* Dtypes that compute through doubles; the others go through int64. */
static inline bool ent_ops_dtype_is_float(uint32_t dtype) {
    return (dtype >= ENT_DTYPE_F32 && dtype <= ENT_DTYPE_F64) ||
           (dtype >= ENT_DTYPE_F8E4M3FN && dtype <= ENT_DTYPE_F8E8M0);
}

static inline int64_t ent_ops_tile_elements(const ent_tile_value *value) {
    int64_t elements = 1;
    for (uint32_t i = 0; i < value->rank; i++) elements *= value->shape[i];
    return elements;
}

#endif
