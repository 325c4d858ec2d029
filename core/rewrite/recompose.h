/* What a recognised pattern becomes. Inside core/rewrite only. */
#ifndef ENT_REWRITE_RECOMPOSE_H
#define ENT_REWRITE_RECOMPOSE_H

#include "core/rewrite/pattern.h"

/* Inputs and attributes of the composite. */
typedef struct ent_composite {
    uint32_t inputs[6];
    uint32_t input_count;
    ent_attr attrs[4];
    uint32_t attr_count;
} ent_composite;

/* What the pattern cannot say: false when the match does not mean the composite. May add nodes before the
 * root only once nothing can fail any more. `out` starts zeroed. */
typedef bool (*ent_composite_build)(ent_rewrite_context *context, ent_match *match, ent_composite *out);

bool ent_composite_of_x(ent_rewrite_context *context, ent_match *match, ent_composite *out);
bool ent_composite_gelu_tanh(ent_rewrite_context *context, ent_match *match, ent_composite *out);
bool ent_composite_hard_sigmoid(ent_rewrite_context *context, ent_match *match, ent_composite *out);
bool ent_composite_hard_swish_gate(ent_rewrite_context *context, ent_match *match, ent_composite *out);
bool ent_composite_softmax(ent_rewrite_context *context, ent_match *match, ent_composite *out);
bool ent_composite_layer_norm(ent_rewrite_context *context, ent_match *match, ent_composite *out);
bool ent_composite_attention(ent_rewrite_context *context, ent_match *match, ent_composite *out);

#endif
