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
} ent_rewrite_context;

typedef ent_status (*ent_rewrite_pass_function)(ent_rewrite_context *context);

/* Visits live nodes of all graphs; the visitor may edit around its node. */
ent_status ent_rewrite_each_node(ent_rewrite_context *context,
                                 ent_status (*visit)(ent_rewrite_context *context, uint32_t node));

/* The passes, one file each. */
ent_status ent_rewrite_fold_constants(ent_rewrite_context *context);
ent_status ent_rewrite_simplify(ent_rewrite_context *context);
ent_status ent_rewrite_remove_dead(ent_rewrite_context *context);
ent_status ent_rewrite_share_equal(ent_rewrite_context *context);
ent_status ent_rewrite_move_transposes(ent_rewrite_context *context);
ent_status ent_rewrite_merge_reshapes(ent_rewrite_context *context);
ent_status ent_rewrite_fold_scales(ent_rewrite_context *context);
ent_status ent_rewrite_recompose(ent_rewrite_context *context);

/* ---- helpers for passes (help.c) ---- */

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

#endif
