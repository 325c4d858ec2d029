/* y = x * scale[c] + shift[c]: nodes that are that, and contractions that take it in. Inside core/rewrite
 * only. */
#ifndef ENT_REWRITE_AFFINE_H
#define ENT_REWRITE_AFFINE_H

#include "core/rewrite/internal.h"

typedef struct ent_affine {
    int64_t channels;
    double *scale, *shift; /* per channel */
} ent_affine;

ent_affine ent_affine_identity(ent_arena *arena, int64_t channels);
bool ent_affine_has_scale(const ent_affine *map);
bool ent_affine_has_shift(const ent_affine *map);
/* `map`, then `next`, into `map`. */
void ent_affine_append(ent_affine *map, const ent_affine *next);

/* Reads a node as such a map along `axis` of its result: BatchNormalization with constant statistics, and
 * Mul, Div, Add and Sub with a constant that differs along that axis only. out_data is x, which has the shape
 * of the result. out->channels is given; scale and shift are made in scratch. */
bool ent_affine_read(const ent_rewrite_context *context, const ent_node *node, uint32_t axis, ent_affine *out,
                     uint32_t *out_data);

/* A Conv, ConvTranspose, Gemm or MatMul with constant float weights, seen from one side. The channel of
 * weight element (outer, k, inner), k along weight_axis, is outer / rows * dims[weight_axis] + k. */
typedef struct ent_anchor {
    uint32_t node;
    uint32_t axis;        /* of the result, or of input 0 */
    uint32_t weight_axis; /* of input 1 */
    int64_t rows;
    int64_t channels;
} ent_anchor;
/* Channels of the result; of input 0. */
bool ent_anchor_of_result(const ent_rewrite_context *context, uint32_t node, ent_anchor *out);
bool ent_anchor_of_input(const ent_rewrite_context *context, uint32_t node, ent_anchor *out);
/* Every scaled weight is a number of the weights' type: infinite ones come of products that were finite. */
bool ent_anchor_scales_fit(const ent_rewrite_context *context, const ent_anchor *anchor,
                           const ent_affine *map);
/* The weights with every element multiplied by its channel's scale: a new constant, the old one when all
 * scales are 1; NONE when memory runs out. */
uint32_t ent_anchor_scale(ent_rewrite_context *context, const ent_anchor *anchor, const ent_affine *map);
/* Sum over channels of weight * shift, per channel of the result (anchor is of the input): what a shift
 * before the anchor adds to its result where no padding is read. */
void ent_anchor_carry(const ent_rewrite_context *context, const ent_anchor *anchor, const ent_affine *map,
                      const ent_anchor *result, double *out);
/* The bias per channel of the result, zeros when absent; false when there is one that is no constant vector.
 */
bool ent_anchor_bias(const ent_rewrite_context *context, const ent_anchor *result, double *out);

#endif
