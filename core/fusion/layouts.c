/* Which layouts are worth considering for each value, and when a reshape or transpose between two layouts
 * moves nothing. Layouts spread from where they matter (convolutions, transposes) through operators that keep
 * axes, in both directions. */
#include <string.h>

#include "core/fusion/internal.h"

void fusion_dims(const ent_module *module, uint32_t value, int64_t *out) {
    const ent_value *v = ent_module_value(module, value);
    for (uint32_t i = 0; i < v->rank && i < ENT_MAX_RANK; i++) out[i] = v->dims[i];
}

uint32_t fusion_layout_sequence(const ent_module *module, uint32_t value, const ent_layout *layout,
                                uint8_t *out) {
    const ent_value *v = ent_module_value(module, value);
    uint32_t count = 0;
    for (uint32_t i = 0; i < layout->rank; i++)
        if (v->dims[layout->order[i]] != 1) out[count++] = layout->order[i];
    return count;
}

bool fusion_layout_same_bytes(const ent_module *module, uint32_t value, const ent_layout *a,
                              const ent_layout *b) {
    uint8_t first[ENT_MAX_RANK], second[ENT_MAX_RANK];
    if (a->block_count || b->block_count) return ent_layout_equal(a, b);
    uint32_t n = fusion_layout_sequence(module, value, a, first);
    return n == fusion_layout_sequence(module, value, b, second) && memcmp(first, second, n) == 0;
}

const ent_layout *fusion_layout_find(const fusion_context *context, uint32_t value, const uint8_t *sequence,
                                     uint32_t count) {
    for (uint32_t i = 0; i < context->layouts->counts[value]; i++) {
        uint8_t own[ENT_MAX_RANK];
        const ent_layout *layout = &context->layouts->items[value][i];
        if (fusion_layout_sequence(context->module, value, layout, own) == count &&
            memcmp(own, sequence, count) == 0)
            return layout;
    }
    return NULL;
}

const ent_layout *fusion_layout_like(const fusion_context *context, uint32_t value,
                                     const ent_layout *layout) {
    for (uint32_t i = 0;
         i < context->layouts->counts[value] && fusion_value_of(context, value)->rank == layout->rank; i++)
        if (fusion_layout_same_bytes(context->module, value, &context->layouts->items[value][i], layout))
            return &context->layouts->items[value][i];
    return &context->layouts->items[value][0];
}

/* ---- views ---- */

bool fusion_is_view_op(uint32_t op) {
    return op == ENT_OP_Reshape || op == ENT_OP_Flatten || op == ENT_OP_Squeeze || op == ENT_OP_Unsqueeze ||
           op == ENT_OP_Identity || op == ENT_OP_Transpose || op == ENT_OP_Dropout;
}

bool fusion_same_axes(const ent_module *module, uint32_t from, uint32_t to) {
    const ent_value *a = ent_module_value(module, from), *b = ent_module_value(module, to);
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a->rank && a->dims[i] == 1) i++;
        while (j < b->rank && b->dims[j] == 1) j++;
        if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
        if (a->dims[i++] != b->dims[j++]) return false;
    }
}

/* Common factors of two shapes: atom t belongs to axis from[t] of one and to[t] of the other. */
typedef struct atoms {
    uint8_t from[2 * ENT_MAX_RANK], to[2 * ENT_MAX_RANK];
    uint32_t count;
} atoms;

static bool find_atoms(const ent_value *a, const ent_value *b, atoms *out) {
    uint32_t i = 0, j = 0;
    int64_t left = 0, right = 0;
    out->count = 0;
    for (;;) {
        while (left <= 1 && i < a->rank) left = a->dims[i++];
        while (right <= 1 && j < b->rank) right = b->dims[j++];
        if (left <= 1 || right <= 1) return left <= 1 && right <= 1;
        int64_t atom = left < right ? left : right;
        if (left % atom != 0 || right % atom != 0) return false;
        out->from[out->count] = (uint8_t)(i - 1);
        out->to[out->count++] = (uint8_t)(j - 1);
        left /= atom;
        right /= atom;
    }
}

/* Order of the axes of the other shape when memory holds the atoms in the order of `from`; axes of extent 1
 * come first. */
static bool carry_order(const atoms *atoms, const ent_layout *from, const ent_value *to, ent_layout *out) {
    *out = ent_layout_plain(to->rank);
    uint32_t count = 0;
    uint8_t first_atom[ENT_MAX_RANK] = {0}, size[ENT_MAX_RANK] = {0};
    for (uint32_t t = atoms->count; t-- > 0;) {
        first_atom[atoms->to[t]] = (uint8_t)t;
        size[atoms->to[t]]++;
    }
    for (uint32_t a = 0; a < to->rank; a++)
        if (size[a] == 0) out->order[count++] = (uint8_t)a;
    uint32_t expect = 0, left = 0;
    for (uint32_t i = 0; i < from->rank; i++) {
        for (uint32_t t = 0; t < atoms->count; t++) {
            if (atoms->from[t] != from->order[i]) continue;
            if (left == 0) {
                if (first_atom[atoms->to[t]] != t) return false;
                out->order[count++] = atoms->to[t];
                left = size[atoms->to[t]];
                expect = t;
            }
            if (t != expect) return false;
            expect++;
            left--;
        }
    }
    return left == 0;
}

static bool reshape_layout(const ent_module *module, uint32_t from, const ent_layout *layout, uint32_t to,
                           ent_layout *out) {
    const ent_value *a = ent_module_value(module, from), *b = ent_module_value(module, to);
    ent_layout plain = ent_layout_plain(a->rank);
    if (fusion_layout_same_bytes(module, from, layout, &plain)) {
        *out = ent_layout_plain(b->rank);
        return true;
    }
    atoms atoms;
    return find_atoms(a, b, &atoms) && carry_order(&atoms, layout, b, out);
}

static void permutation(const ent_node *node, uint32_t rank, uint8_t *out) {
    const ent_attr *perm = ent_attrs_find(node->attrs, "perm");
    for (uint32_t i = 0; i < rank; i++) {
        int64_t axis = perm && perm->count == rank ? perm->ints[i] : (int64_t)(rank - 1 - i);
        out[i] = (uint8_t)(axis < 0 ? axis + rank : axis);
    }
}

bool fusion_view_layout(const ent_module *module, const ent_node *node, const ent_layout *from,
                        ent_layout *out) {
    uint32_t in = node->inputs[0], to = node->outputs[0], rank = from->rank;
    if (from->kind != ENT_LAYOUT_STRIDED || from->block_count) return false;
    if (node->op != ENT_OP_Transpose) return reshape_layout(module, in, from, to, out);
    uint8_t perm[ENT_MAX_RANK], inverse[ENT_MAX_RANK] = {0};
    permutation(node, rank, perm);
    for (uint32_t i = 0; i < rank; i++) inverse[perm[i]] = (uint8_t)i;
    *out = ent_layout_plain(rank);
    for (uint32_t i = 0; i < rank; i++) out->order[i] = inverse[from->order[i]];
    return true;
}

bool fusion_view_layout_back(const ent_module *module, const ent_node *node, const ent_layout *to,
                             ent_layout *out) {
    uint32_t in = node->inputs[0], from = node->outputs[0], rank = to->rank;
    if (to->kind != ENT_LAYOUT_STRIDED || to->block_count) return false;
    if (node->op != ENT_OP_Transpose) return reshape_layout(module, from, to, in, out);
    uint8_t perm[ENT_MAX_RANK];
    permutation(node, rank, perm);
    *out = ent_layout_plain(rank);
    for (uint32_t i = 0; i < rank; i++) out->order[i] = perm[to->order[i]];
    return true;
}

/* ---- spreading ---- */

typedef struct spread {
    const ent_module *module;
    ent_layout (*items)[ENT_FUSION_MAX_LAYOUTS];
    uint8_t *counts;
    bool changed;
} spread;

static void add_layout(spread *s, uint32_t value, const ent_layout *layout) {
    uint8_t count = s->counts[value];
    if (count == 0 || count == ENT_FUSION_MAX_LAYOUTS || ent_module_value(s->module, value)->constant) return;
    for (uint32_t i = 0; i < count; i++)
        if (fusion_layout_same_bytes(s->module, value, &s->items[value][i], layout)) return;
    s->items[value][count] = *layout;
    s->counts[value]++;
    s->changed = true;
}

static void add_channels_last(spread *s, uint32_t value) {
    uint32_t rank = ent_module_value(s->module, value)->rank;
    if (rank < 3 || rank == ENT_RANK_UNKNOWN) return;
    ent_layout layout = ent_layout_channels_last(rank);
    add_layout(s, value, &layout);
}

static bool wants_channels_last(uint32_t op) {
    return op == ENT_OP_Conv || op == ENT_OP_ConvInteger || op == ENT_OP_ConvTranspose ||
           op == ENT_OP_MaxPool || op == ENT_OP_AveragePool || op == ENT_OP_Resize ||
           op == ENT_OP_GlobalAveragePool || op == ENT_OP_GlobalMaxPool;
}

static bool keeps_axes(uint32_t op) {
    const ent_op_info *info = ent_op_info_get(op);
    return info &&
           (info->op_class == ENT_CLASS_ELEMENTWISE || op == ENT_OP_Concat || op == ENT_OP_Slice ||
            op == ENT_OP_Pad || op == ENT_OP_Split || op == ENT_OP_Softmax || op == ENT_OP_ReduceMean);
}

static void share(spread *s, uint32_t from, uint32_t to, bool all) {
    const ent_value *a = ent_module_value(s->module, from), *b = ent_module_value(s->module, to);
    if (a->rank != b->rank || a->rank < 2 || s->counts[from] == 0) return;
    ent_layout channels_last = ent_layout_channels_last(a->rank);
    for (uint32_t i = 1; i < s->counts[from]; i++)
        if (all || ent_layout_equal(&s->items[from][i], &channels_last))
            add_layout(s, to, &s->items[from][i]);
}

static void visit(spread *s, const ent_node *node) {
    if (node->input_count == 0 || node->inputs[0] >= s->module->values.count) return;
    const ent_op_info *info = ent_op_info_get(node->op);
    if (fusion_is_view_op(node->op) && node->outputs[0] < s->module->values.count) {
        uint32_t in = node->inputs[0], out = node->outputs[0];
        ent_layout layout;
        if (s->counts[in] == 0 || s->counts[out] == 0) return;
        for (uint32_t i = 0; i < s->counts[in]; i++)
            if (fusion_view_layout(s->module, node, &s->items[in][i], &layout)) add_layout(s, out, &layout);
        for (uint32_t i = 0; i < s->counts[out]; i++)
            if (fusion_view_layout_back(s->module, node, &s->items[out][i], &layout))
                add_layout(s, in, &layout);
        return;
    }
    if (!keeps_axes(node->op)) return;
    bool all = info->op_class == ENT_CLASS_ELEMENTWISE;
    for (uint32_t o = 0; o < node->output_count; o++) {
        if (node->outputs[o] >= s->module->values.count) continue;
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] >= s->module->values.count) continue;
            share(s, node->inputs[i], node->outputs[o], all);
            share(s, node->outputs[o], node->inputs[i], all);
        }
    }
}

ent_status ent_fusion_find_layouts(const ent_module *module, ent_arena *arena, ent_fusion_layouts *out) {
    uint32_t values = module->values.count;
    spread s = {module, ent_arena_array(arena, values, sizeof *s.items), ent_arena_array(arena, values, 1),
                false};
    if (!s.items || !s.counts) return ent_status_out_of_memory();
    for (uint32_t v = 0; v < values; v++) {
        if (!ent_value_static(module, v) || module->values.items[v].rank > ENT_MAX_RANK) continue;
        s.items[v][0] = ent_layout_plain(module->values.items[v].rank);
        s.counts[v] = 1;
    }
    for (uint32_t n = 0; n < module->nodes.count; n++) {
        const ent_node *node = &module->nodes.items[n];
        if (node->dead || !wants_channels_last(node->op) || node->inputs[0] >= values) continue;
        add_channels_last(&s, node->inputs[0]);
        if (node->outputs[0] < values) add_channels_last(&s, node->outputs[0]);
    }
    /* A layout that spreads over long chains needs a pass for each change of direction; lists only grow and
     * are short. */
    for (uint32_t pass = 0; pass < 6; pass++) {
        s.changed = false;
        for (uint32_t g = 0; g < module->graphs.count; g++) {
            uint32_t at = 0, node = 0;
            while (ent_graph_next(module, g, &at, &node)) visit(&s, &module->nodes.items[node]);
        }
        if (!s.changed) break;
    }
    out->items = (const ent_layout(*)[ENT_FUSION_MAX_LAYOUTS])s.items;
    out->counts = s.counts;
    return NULL;
}
