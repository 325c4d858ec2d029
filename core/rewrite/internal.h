/* Shared inside core/rewrite only. */
#ifndef ENT_REWRITE_INTERNAL_H
#define ENT_REWRITE_INTERNAL_H

#include "core/rewrite/rewrite.h"

/* What a pass gets. `changed` is set by whoever edits. */
typedef struct ent_rewrite_context {
    ent_module *module;
    const ent_rewrite_options *options;
    ent_arena *scratch;
    bool changed;
    uint64_t *grown_bytes; /* by all folds of this run */
    uint32_t
        *replaced; /* by output of the node that is being folded: the value that took its place; or NULL */
} ent_rewrite_context;

typedef ent_status (*ent_rewrite_pass_function)(ent_rewrite_context *context);

/* Visits live nodes of all graphs; the visitor may edit around its node. Scratch memory lasts for one visit.
 */
ent_status ent_rewrite_each_node(ent_rewrite_context *context,
                                 ent_status (*visit)(ent_rewrite_context *context, uint32_t node));

/* The passes, one file each. */
ent_status ent_rewrite_integer_products(ent_rewrite_context *context);
ent_status ent_rewrite_fold_constants(ent_rewrite_context *context);
ent_status ent_rewrite_unroll(ent_rewrite_context *context);
/* Folds one node if it can be; out_replaced[i], unless left alone, is the value that took output i's place.
 */
ent_status ent_rewrite_fold_node(ent_rewrite_context *context, uint32_t node, uint32_t *out_replaced);
/* Copies a body before `node`, inferred and folded one by one: from arguments to results, one for each of its
 * outputs. */
ent_status ent_rewrite_copy_body(ent_rewrite_context *context, uint32_t node, uint32_t body,
                                 const uint32_t *arguments, uint32_t *results);
ent_status ent_rewrite_write_attention(ent_rewrite_context *context, uint32_t node);
ent_status ent_rewrite_simplify(ent_rewrite_context *context);
ent_status ent_rewrite_remove_dead(ent_rewrite_context *context);
ent_status ent_rewrite_share_equal(ent_rewrite_context *context);
ent_status ent_rewrite_move_transposes(ent_rewrite_context *context);
ent_status ent_rewrite_merge_reshapes(ent_rewrite_context *context);
ent_status ent_rewrite_fold_scales(ent_rewrite_context *context);
ent_status ent_rewrite_recompose(ent_rewrite_context *context);

/* ---- helpers for passes (help.c) ---- */

/* Input `index`, or NONE when the node has none there. */
uint32_t ent_rewrite_input(const ent_node *node, uint32_t index);
/* Plain data of a constant, or NULL. NONE is allowed. */
const ent_tensor *ent_rewrite_tensor(const ent_rewrite_context *context, uint32_t value);
/* A constant of f32, f64, f16 or bf16, or NULL. */
const ent_tensor *ent_rewrite_float_tensor(const ent_rewrite_context *context, uint32_t value);
/* The largest finite number of f32, f64, f16 or bf16. */
double ent_rewrite_largest(uint32_t dtype);
/* Both ranks known, the same dims and the same type. */
bool ent_rewrite_same_shape(const ent_module *module, uint32_t a, uint32_t b);
/* A constant with one element that equals `wanted`. */
bool ent_rewrite_is_number(const ent_rewrite_context *context, uint32_t value, double wanted);
/* perm of a Transpose (the default, written out, too); false when the rank is not known. */
bool ent_rewrite_permutation(const ent_module *module, const ent_node *node, int64_t *out_perm,
                             uint32_t *out_rank);
/* Axes of a Reduce node as a mask; false unless they are constant and named. */
bool ent_rewrite_reduced_axes(const ent_module *module, const ent_node *node, uint32_t *out_mask);
/* Reduces over axes given as input 1. */
bool ent_rewrite_is_reduction(uint32_t op);
/* The attributes with one of them replaced or added. */
ent_attrs ent_rewrite_with_attr(ent_module *module, ent_attrs attrs, ent_attr attr);

/* The node that makes a value, or NULL. */
const ent_node *ent_rewrite_producer(const ent_rewrite_context *context, uint32_t value);
/* The value has exactly one use, by a node, and is no graph output. */
bool ent_rewrite_single_use(const ent_rewrite_context *context, uint32_t value);
/* Replaces all uses of a node's first output by a value and removes the node. */
void ent_rewrite_forward(ent_rewrite_context *context, uint32_t node, uint32_t value);
/* Adds a node before `before` with the origins of `from` (one or two nodes), infers it and gives its first
 * output. */
ent_status ent_rewrite_add(ent_rewrite_context *context, uint32_t op, ent_attrs attrs, const uint32_t *inputs,
                           uint32_t input_count, uint32_t before, const uint32_t *from, uint32_t from_count,
                           uint32_t *out_value);
/* The same for a node with several outputs: gives the node. */
ent_status ent_rewrite_add_node(ent_rewrite_context *context, const ent_node_spec *shape, uint32_t before,
                                const uint32_t *from, uint32_t from_count, uint32_t *out_node);
/* Node `id` becomes `op` on `inputs`: ent_rewrite_add, then ent_rewrite_forward. */
ent_status ent_rewrite_become(ent_rewrite_context *context, uint32_t id, uint32_t op, ent_attrs attrs,
                              const uint32_t *inputs, uint32_t input_count);
/* Node `id` becomes a Reshape of `value` to the shape of the node's result, which is static; origins of
 * `from` too. */
ent_status ent_rewrite_become_reshape(ent_rewrite_context *context, uint32_t id, uint32_t value,
                                      const uint32_t *from, uint32_t from_count);

/* ---- rules of simplify that live in files of their own ---- */

/* A rule edits at its node and says so; the node may be gone then. */
typedef ent_status (*ent_rewrite_rule)(ent_rewrite_context *context, uint32_t node, bool *out_done);
ent_status ent_rewrite_simplify_arithmetic(ent_rewrite_context *context, uint32_t node, bool *out_done);
ent_status ent_rewrite_simplify_bounds(ent_rewrite_context *context, uint32_t node, bool *out_done);
ent_status ent_rewrite_simplify_broadcast(ent_rewrite_context *context, uint32_t node, bool *out_done);
ent_status ent_rewrite_simplify_pads(ent_rewrite_context *context, uint32_t node, bool *out_done);
ent_status ent_rewrite_simplify_selections(ent_rewrite_context *context, uint32_t node, bool *out_done);
ent_status ent_rewrite_simplify_reduction(ent_rewrite_context *context, uint32_t node, bool *out_done);

#endif
