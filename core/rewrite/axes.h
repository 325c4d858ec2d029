/* How operators read a value whose axes stand in another order. Inside core/rewrite only. */
#ifndef ENT_REWRITE_AXES_H
#define ENT_REWRITE_AXES_H

#include "core/rewrite/internal.h"

/* A transposed value: its axis i is axis `axis[i]` of the base. */
typedef struct ent_axis_order {
    uint32_t rank;
    uint8_t axis[ENT_MAX_RANK];
} ent_axis_order;

typedef enum ent_axis_place { ENT_AXIS_NOWHERE, ENT_AXIS_ATTRIBUTE, ENT_AXIS_INPUT } ent_axis_place;

/* What a node becomes when it reads the bases of its transposed inputs. */
typedef struct ent_axis_change {
    ent_axis_place place; /* where it names axes; attribute "axis" has one */
    uint32_t input;       /* with ENT_AXIS_INPUT: which one; it may be absent now */
    int64_t axes[ENT_MAX_RANK];
    uint32_t axis_count;
    ent_axis_order common; /* of the data inputs, at the rank of the result or of input 0 */
    ent_axis_order result; /* every output is so transposed */
    uint32_t permuted;     /* mask of inputs: constants whose own axes have to be put in base order */
} ent_axis_change;

/* orders[i]: NULL where input i is not transposed. False when the node cannot read the bases instead. */
bool ent_axis_change_find(const ent_rewrite_context *context, const ent_node *node,
                          const ent_axis_order *const *orders, ent_axis_change *out);
bool ent_axis_order_is_identity(const ent_axis_order *order);
/* `second` applied to a value that is `first` of its base. */
ent_axis_order ent_axis_order_compose(const ent_axis_order *first, const ent_axis_order *second);
/* A constant of the result's axes, written anew in the base's order; NONE when memory runs out. */
uint32_t ent_axis_constant(ent_rewrite_context *context, uint32_t graph, uint32_t value,
                           const ent_axis_order *order);

#endif
