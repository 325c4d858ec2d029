/* Groups: which items fit together, and how their values' axes meet in one domain. */
#include <stdlib.h>
#include <string.h>

#include "core/fusion/internal.h"

void fusion_group_begin(fusion_group *group, fusion_context *context, uint32_t graph) {
    group->context = context;
    group->graph = graph;
    group->item_count = group->value_count = group->dim_count = group->output_count = 0;
    group->reduced = 0;
    group->fixed = false;
    group->anchor = ENT_ID_NONE;
    group->stamp = ++context->stamp;
    group->only_relabels = true;
}

fusion_value *fusion_group_find(fusion_group *group, uint32_t value) {
    for (uint32_t i = 0; i < group->value_count; i++)
        if (group->values[i].value == value) return &group->values[i];
    return NULL;
}

fusion_value *fusion_group_value(fusion_group *group, uint32_t value, const uint8_t *to_dim) {
    if (group->value_count == FUSION_MAX_VALUES) return NULL;
    fusion_value *v = &group->values[group->value_count++];
    v->value = value;
    v->mask = 0;
    v->inside = false;
    v->uses = 0;
    memset(v->to_dim, FUSION_NONE, sizeof v->to_dim);
    uint32_t rank = fusion_value_of(group->context, value)->rank;
    for (uint32_t i = 0; to_dim && i < rank; i++) {
        v->to_dim[i] = to_dim[i];
        if (to_dim[i] != FUSION_NONE) v->mask |= (uint16_t)(1u << to_dim[i]);
    }
    return v;
}

static uint8_t new_dim(fusion_group *group, int64_t size) {
    if (group->fixed || group->reduced || group->dim_count == FUSION_MAX_DIMS) return FUSION_NONE;
    group->dims[group->dim_count] = size;
    return (uint8_t)group->dim_count++;
}

/* An operand that is not known yet: each axis above 1 gets a dim of its own. */
static fusion_value *enter(fusion_group *group, uint32_t value) {
    fusion_value *known = fusion_group_find(group, value);
    uint8_t to_dim[ENT_MAX_RANK];
    if (known) return known;
    const ent_value *v = fusion_value_of(group->context, value);
    for (uint32_t i = 0; i < v->rank; i++) {
        to_dim[i] = v->dims[i] == 1 ? FUSION_NONE : new_dim(group, v->dims[i]);
        if (v->dims[i] != 1 && to_dim[i] == FUSION_NONE) return NULL;
    }
    return fusion_group_value(group, value, to_dim);
}

static bool distinct(const uint8_t *to_dim, uint32_t rank) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (to_dim[i] == FUSION_NONE) continue;
        if (seen & 1u << to_dim[i]) return false;
        seen |= 1u << to_dim[i];
    }
    return true;
}

/* Dim of axis j (of `rank`) of a broadcast result, taken from an operand that is known. 0xfe: operands
 * disagree. */
static uint8_t dim_from_operand(fusion_group *group, uint32_t operand, uint32_t j, uint32_t rank,
                                uint8_t dim) {
    const fusion_value *v = fusion_group_find(group, operand);
    uint32_t own = fusion_value_of(group->context, operand)->rank;
    if (!v || j + own < rank) return dim;
    uint8_t got = v->to_dim[j + own - rank];
    if (got == FUSION_NONE || got == dim) return dim;
    return dim == FUSION_NONE ? got : 0xfe;
}

/* Numpy broadcasting: settles the result's axes, then those of operands that were not known. */
static bool map_broadcast(fusion_group *group, const fusion_item *item, uint8_t *to_dim, uint16_t *mask) {
    fusion_context *context = group->context;
    const ent_value *out = fusion_value_of(context, item->outputs[0]);
    for (uint32_t j = 0; j < out->rank; j++) {
        to_dim[j] = FUSION_NONE;
        if (out->dims[j] == 1) continue;
        for (uint32_t i = 0; i < item->input_count && to_dim[j] != 0xfe; i++)
            if (fusion_item_reads(item, i))
                to_dim[j] = dim_from_operand(group, item->inputs[i], j, out->rank, to_dim[j]);
        if (to_dim[j] == FUSION_NONE) to_dim[j] = new_dim(group, out->dims[j]);
        if (to_dim[j] == FUSION_NONE || to_dim[j] == 0xfe) return false;
    }
    if (!distinct(to_dim, out->rank)) return false;
    *mask = 0;
    for (uint32_t i = 0; i < item->input_count; i++) {
        uint32_t input = item->inputs[i];
        if (!fusion_item_reads(item, i) || fusion_is_scalar(context, input)) continue;
        fusion_value *v = fusion_group_find(group, input);
        const ent_value *x = fusion_value_of(context, input);
        uint8_t own[ENT_MAX_RANK];
        for (uint32_t k = 0; k < x->rank; k++)
            own[k] = x->dims[k] == 1 ? FUSION_NONE : to_dim[out->rank - x->rank + k];
        if (!v) v = fusion_group_value(group, input, own);
        if (!v || memcmp(v->to_dim, own, x->rank) != 0) return false;
        *mask |= v->mask;
    }
    return true;
}

static bool map_relabel(fusion_group *group, const fusion_item *item, uint8_t *to_dim, uint16_t *mask) {
    fusion_context *context = group->context;
    const ent_value *x = fusion_value_of(context, item->inputs[0]),
                    *y = fusion_value_of(context, item->outputs[0]);
    if (item->op == ENT_OP_Expand) return map_broadcast(group, item, to_dim, mask);
    const fusion_value *from = enter(group, item->inputs[0]);
    if (!from) return false;
    *mask = from->mask;
    if (item->op == ENT_OP_Transpose) {
        const ent_attr *perm = ent_attrs_find(item->attrs, "perm");
        for (uint32_t i = 0; i < x->rank; i++) {
            int64_t axis = perm && perm->count == x->rank ? perm->ints[i] : (int64_t)(x->rank - 1 - i);
            to_dim[i] = from->to_dim[axis < 0 ? axis + x->rank : axis];
        }
        return true;
    }
    for (uint32_t j = 0, i = 0; j < y->rank; j++) {
        to_dim[j] = FUSION_NONE;
        if (y->dims[j] == 1) continue;
        while (i < x->rank && x->dims[i] == 1) i++;
        if (i == x->rank) return false;
        to_dim[j] = from->to_dim[i++];
    }
    return true;
}

static bool map_reduce(fusion_group *group, const fusion_item *item, uint8_t *to_dim, uint16_t *mask) {
    fusion_context *context = group->context;
    uint32_t axes = 0, count = 0;
    const ent_value *x = fusion_value_of(context, item->inputs[0]),
                    *y = fusion_value_of(context, item->outputs[0]);
    const fusion_value *from = group->fixed ? NULL : enter(group, item->inputs[0]);
    uint16_t dims = 0;
    if (!from || !fusion_item_axes(context, item, &axes)) return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (axes & 1u << i && from->to_dim[i] != FUSION_NONE) dims |= (uint16_t)(1u << from->to_dim[i]);
    if ((from->mask & dims) != dims) return false;
    uint16_t input_mask = from->mask;
    memset(to_dim, FUSION_NONE, ENT_MAX_RANK);
    bool whole =
        item->op == ENT_OP_Softmax || item->op == ENT_OP_LogSoftmax || item->op == ENT_OP_LayerNormalization;
    if (whole)
        memcpy(to_dim, from->to_dim, ENT_MAX_RANK);
    else {
        bool keeps = y->rank == x->rank;
        for (uint32_t i = 0; i < x->rank; i++) {
            bool gone = axes & 1u << i;
            if (gone && !keeps) continue;
            to_dim[count++] = gone ? FUSION_NONE : from->to_dim[i];
        }
    }
    *mask = whole ? input_mask : (uint16_t)(input_mask & ~dims);
    for (uint32_t i = 1; whole && i < item->input_count;
         i++) { /* scale and bias of a layer norm end where x ends */
        uint32_t input = item->inputs[i];
        if (!fusion_item_reads(item, i) || fusion_is_scalar(context, input)) continue;
        const ent_value *w = fusion_value_of(context, input);
        uint8_t own[ENT_MAX_RANK];
        for (uint32_t k = 0; k < w->rank; k++)
            own[k] = w->dims[k] == 1 ? FUSION_NONE : to_dim[x->rank - w->rank + k];
        fusion_value *v = fusion_group_find(group, input);
        if (!v) v = fusion_group_value(group, input, own);
        if (!v || memcmp(v->to_dim, own, w->rank) != 0) return false;
    }
    group->reduced |= dims;
    return true;
}

static void insert_item(fusion_group *group, uint32_t item) {
    const fusion_item *items = group->context->items;
    uint32_t at = group->item_count++;
    while (at > 0 && items[group->items[at - 1]].position > items[item].position) {
        group->items[at] = group->items[at - 1];
        at--;
    }
    group->items[at] = item;
    for (uint32_t i = 0; i < items[item].node_count; i++)
        group->context->member[items[item].nodes[i]] = group->stamp;
}

bool fusion_group_add(fusion_group *group, uint32_t item) {
    const fusion_item *it = &group->context->items[item];
    uint8_t to_dim[ENT_MAX_RANK];
    uint16_t mask = 0, reduced = group->reduced;
    uint32_t values = group->value_count, dims = group->dim_count;
    if (group->item_count == FUSION_MAX_ITEMS || values + it->input_count + 1 > FUSION_MAX_VALUES)
        return false;
    bool fits = it->item_class == FUSION_ELEMENTWISE ? map_broadcast(group, it, to_dim, &mask)
                : it->item_class == FUSION_RELABEL   ? map_relabel(group, it, to_dim, &mask)
                : it->item_class == FUSION_REDUCE    ? map_reduce(group, it, to_dim, &mask)
                                                     : false;
    fusion_value *out = fits ? fusion_group_find(group, it->outputs[0]) : NULL;
    if (fits && !out)
        out = fusion_group_value(group, it->outputs[0], to_dim);
    else if (out && (out->inside ||
                     memcmp(out->to_dim, to_dim, fusion_value_of(group->context, out->value)->rank) != 0))
        out = NULL;
    if (!fits || !out) {
        group->value_count = values;
        group->dim_count = dims;
        group->reduced = reduced;
        return false;
    }
    out->inside = true;
    out->mask = mask;
    for (uint32_t i = 0; i < it->input_count; i++) {
        fusion_value *v = fusion_item_reads(it, i) ? fusion_group_find(group, it->inputs[i]) : NULL;
        if (v) v->uses++;
    }
    if (it->item_class != FUSION_RELABEL || it->op == ENT_OP_Expand) group->only_relabels = false;
    insert_item(group, item);
    return true;
}

void fusion_group_add_anchor(fusion_group *group, uint32_t item) {
    group->anchor = item;
    group->fixed = true;
    group->only_relabels = false;
    insert_item(group, item);
}

/* Depth-first over producers from `node`; true when a member is reached. Nothing before the first member can
 * read it. */
static bool reaches(fusion_group *group, uint32_t node, uint32_t first, uint32_t depth) {
    fusion_context *context = group->context;
    const ent_node *n = ent_module_node(context->module, node);
    if (context->member[node] == group->stamp) return true;
    if (n->graph != group->graph || context->position[node] < first ||
        context->visited[node] == context->visit_stamp)
        return false;
    context->visited[node] = context->visit_stamp;
    if (depth > 512) return true;
    for (uint32_t i = 0; i < n->input_count; i++) {
        if (n->inputs[i] == ENT_ID_NONE) continue;
        uint32_t producer = fusion_value_of(context, n->inputs[i])->producer;
        if (producer != ENT_ID_NONE && reaches(group, producer, first, depth + 1)) return true;
    }
    const ent_op_info *info = ent_op_info_get(n->op);
    return info && info->op_class == ENT_CLASS_CONTROL; /* its bodies may read anything */
}

bool fusion_group_convex(fusion_group *group, uint32_t item) {
    fusion_context *context = group->context;
    const fusion_item *it = &context->items[item];
    uint32_t first = ENT_ID_NONE;
    for (uint32_t i = 0; i < group->item_count; i++) {
        uint32_t position = context->position[context->items[group->items[i]].nodes[0]];
        if (position < first) first = position;
    }
    context->visit_stamp++;
    for (uint32_t i = 0; i < it->input_count; i++) {
        if (it->inputs[i] == ENT_ID_NONE) continue;
        uint32_t producer = fusion_value_of(context, it->inputs[i])->producer;
        if (producer == ENT_ID_NONE || context->member[producer] == group->stamp) continue;
        if (reaches(group, producer, first, 0)) return false;
    }
    return true;
}

static bool used_outside(const fusion_group *group, uint32_t value) {
    const fusion_context *context = group->context;
    if (context->uses.is_output[value] || ent_uses_count(&context->uses, value) == 0)
        return true; /* nobody's, but it must go somewhere */
    for (uint32_t u = context->uses.offsets[value]; u < context->uses.offsets[value + 1]; u++)
        if (context->member[context->uses.users[u]] != group->stamp) return true;
    return false;
}

bool fusion_group_close(fusion_group *group, uint32_t limit) {
    group->output_count = 0;
    for (uint32_t i = 0; i < group->value_count; i++) {
        const fusion_value *v = &group->values[i];
        if (!v->inside || !used_outside(group, v->value)) continue;
        if (group->output_count == limit) return false;
        group->outputs[group->output_count++] = v->value;
    }
    return group->output_count > 0;
}

uint32_t fusion_group_grow(fusion_group *group) {
    fusion_context *context = group->context;
    uint32_t tried[16], tried_count = 0;
    for (;;) {
        uint32_t best = ENT_ID_NONE;
        for (uint32_t i = 0; i < group->value_count; i++) {
            const fusion_value *v = &group->values[i];
            if (!v->inside) continue;
            for (uint32_t u = context->uses.offsets[v->value]; u < context->uses.offsets[v->value + 1]; u++) {
                uint32_t node = context->uses.users[u];
                if (context->member[node] == group->stamp) continue;
                if (ent_module_node(context->module, node)->graph != group->graph) continue;
                uint32_t item = context->item_of_node[node], known = 0;
                while (known < tried_count && tried[known] != item) known++;
                if (item == ENT_ID_NONE || known < tried_count) continue;
                if (best == ENT_ID_NONE || context->items[item].position < context->items[best].position)
                    best = item;
            }
        }
        if (best == ENT_ID_NONE || tried_count == sizeof tried / sizeof tried[0]) return ENT_ID_NONE;
        uint32_t kind = context->items[best].item_class;
        bool usable =
            kind == FUSION_ELEMENTWISE || kind == FUSION_RELABEL || (kind == FUSION_REDUCE && !group->fixed);
        if (usable && fusion_group_convex(group, best) && fusion_group_add(group, best)) return best;
        tried[tried_count++] = best;
    }
}

static int by_id(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void fusion_group_leaves(const fusion_group *group, ent_fusion_candidate *out) {
    fusion_context *context = group->context;
    uint32_t nodes = 0, overlays = 0;
    for (uint32_t i = 0; i < group->item_count; i++) {
        nodes += context->items[group->items[i]].node_count;
        overlays += context->items[group->items[i]].overlay != ENT_ID_NONE;
    }
    uint32_t *list = ent_arena_alloc(context->arena, nodes * sizeof *list);
    uint32_t *whole = ent_arena_alloc(context->arena, overlays * sizeof *whole);
    nodes = overlays = 0;
    for (uint32_t i = 0; i < group->item_count; i++) {
        const fusion_item *item = &context->items[group->items[i]];
        for (uint32_t k = 0; k < item->node_count; k++) list[nodes++] = item->nodes[k];
        if (item->overlay != ENT_ID_NONE) whole[overlays++] = item->overlay;
    }
    /* ascending by graph order: few, and nearly sorted */
    for (uint32_t i = 1; i < nodes; i++)
        for (uint32_t k = i; k > 0 && context->position[list[k - 1]] > context->position[list[k]]; k--) {
            uint32_t swap = list[k];
            list[k] = list[k - 1];
            list[k - 1] = swap;
        }
    if (overlays > 1) qsort(whole, overlays, sizeof *whole, by_id);
    out->graph = group->graph;
    out->nodes = list;
    out->node_count = nodes;
    out->overlays = whole;
    out->overlay_count = overlays;
}
