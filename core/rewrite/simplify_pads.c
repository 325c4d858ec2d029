/* Padding in front of a window goes into the window's own pads: zeros before Conv, and before AveragePool
 * where it counts them; before MaxPool what never is the one maximum of a window, -inf and copies of the
 * edge. A Transpose may stand between, as converters of channels-last models write it. */
#include <math.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/rewrite/internal.h"

typedef struct padding {
    int64_t begin[ENT_MAX_RANK], end[ENT_MAX_RANK];
    uint32_t rank;
    bool edge;
    double value;
    uint32_t source;           /* what is padded */
    uint32_t nodes[2];         /* the Pad, the Transpose */
    const ent_node *transpose; /* NULL: none */
} padding;

static bool read_amounts(const ent_rewrite_context *context, const ent_node *pad, padding *out) {
    int64_t pads[2 * ENT_MAX_RANK], axes[ENT_MAX_RANK];
    uint32_t count = 0, axis_count = out->rank, axes_input = ent_rewrite_input(pad, 3);
    for (uint32_t i = 0; i < out->rank; i++) axes[i] = i;
    if (axes_input != ENT_ID_NONE &&
        !ent_value_i64s(context->module, axes_input, axes, ENT_MAX_RANK, &axis_count))
        return false;
    if (!ent_value_i64s(context->module, pad->inputs[1], pads, 2 * ENT_MAX_RANK, &count) ||
        count != 2 * axis_count)
        return false;
    for (uint32_t i = 0; i < axis_count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + out->rank : axes[i];
        if (axis < 0 || axis >= out->rank || pads[i] < 0 || pads[i + axis_count] < 0) return false;
        out->begin[axis] = pads[i];
        out->end[axis] = pads[i + axis_count];
    }
    return true;
}

static bool read_pad(const ent_rewrite_context *context, uint32_t value, padding *out) {
    const ent_node *pad = ent_rewrite_producer(context, value);
    if (!pad || pad->op != ENT_OP_Pad || !ent_rewrite_single_use(context, value)) return false;
    uint32_t fill = ent_rewrite_input(pad, 2);
    out->nodes[0] = ent_module_value(context->module, value)->producer;
    out->source = pad->inputs[0];
    out->rank = ent_module_value(context->module, out->source)->rank;
    out->edge = ent_attrs_string_is(pad->attrs, "mode", "constant", "edge");
    if (out->rank == ENT_RANK_UNKNOWN ||
        (!out->edge && !ent_attrs_string_is(pad->attrs, "mode", "constant", "constant")) ||
        (fill != ENT_ID_NONE && !ent_value_scalar(context->module, fill, &out->value)))
        return false;
    return read_amounts(context, pad, out);
}

/* The Pad before a value, seen through a Transpose: amounts by the axes of the value. */
static bool read_padding(const ent_rewrite_context *context, uint32_t value, padding *out) {
    int64_t perm[ENT_MAX_RANK];
    uint32_t rank = 0;
    const ent_node *node = ent_rewrite_producer(context, value);
    *out = (padding){0};
    if (!node || node->op != ENT_OP_Transpose) return read_pad(context, value, out);
    padding base = {0};
    if (!ent_rewrite_single_use(context, value) || !read_pad(context, node->inputs[0], &base) ||
        !ent_rewrite_permutation(context->module, node, perm, &rank))
        return false;
    *out = base;
    for (uint32_t i = 0; i < rank; i++) {
        out->begin[i] = base.begin[perm[i]];
        out->end[i] = base.end[perm[i]];
    }
    out->transpose = node;
    out->nodes[1] = ent_module_value(context->module, value)->producer;
    return true;
}

/* ---- the windows ---- */

/* A weight that is no number would make one of the zeros. */
static bool weights_finite(const ent_rewrite_context *context, const ent_node *node) {
    const ent_tensor *w = ent_rewrite_float_tensor(context, node->inputs[1]);
    int64_t count = w ? ent_value_elements(context->module, node->inputs[1]) : -1;
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(ent_ops_load_f64(w->data, w->dtype, i))) return false;
    return count >= 0;
}

static bool all_ones(const ent_attr *attr) {
    for (uint32_t i = 0; attr && i < attr->count; i++)
        if (attr->ints[i] != 1) return false;
    return true;
}

/* Every window keeps an element that is no padding, and none is cut off at the end. */
static bool pool_takes(const ent_node *node, const padding *p, const int64_t *pads) {
    const ent_attr *kernel = ent_attrs_find(node->attrs, "kernel_shape");
    uint32_t spatial = p->rank - 2;
    if (!kernel || kernel->count != spatial || ent_attrs_int(node->attrs, "ceil_mode", 0) != 0) return false;
    for (uint32_t i = 0; i < spatial; i++)
        if (pads[i] >= kernel->ints[i] || pads[i + spatial] >= kernel->ints[i]) return false;
    return all_ones(ent_attrs_find(node->attrs, "dilations"));
}

static bool second_unread(const ent_rewrite_context *context, const ent_node *node) {
    uint32_t at = 0, user, index;
    if (node->output_count < 2 || node->outputs[1] == ENT_ID_NONE) return true;
    return !ent_value_is_output(context->module, node->outputs[1]) &&
           !ent_value_next_use(context->module, node->outputs[1], &at, &user, &index);
}

static bool takes(const ent_rewrite_context *context, const ent_node *node, const padding *p,
                  const int64_t *pads, bool has_own) {
    bool zeros = !p->edge && p->value == 0;
    switch (node->op) {
    case ENT_OP_Conv:
        return zeros && weights_finite(context, node);
    case ENT_OP_AveragePool:
        return zeros && pool_takes(node, p, pads) &&
               (!has_own || ent_attrs_int(node->attrs, "count_include_pad", 0) != 0);
    default:
        return (p->edge || p->value == -INFINITY) && pool_takes(node, p, pads) &&
               second_unread(context, node);
    }
}

/* The node's pads with the padding added; false where it makes its own. */
static bool join_pads(const ent_node *node, const padding *p, int64_t *out, bool *out_has_own) {
    const ent_attr *own = ent_attrs_find(node->attrs, "pads");
    uint32_t spatial = p->rank - 2;
    bool valid = ent_attrs_string_is(node->attrs, "auto_pad", "NOTSET", "VALID");
    if (!valid && !ent_attrs_string_is(node->attrs, "auto_pad", "NOTSET", "NOTSET")) return false;
    if (valid || (own && own->count == 0)) own = NULL;
    if (own && own->count != 2 * spatial) return false;
    *out_has_own = false;
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t begin = own ? own->ints[i] : 0, end = own ? own->ints[i + spatial] : 0;
        if (begin < 0 || end < 0) return false;
        *out_has_own |= begin != 0 || end != 0;
        if (!ent_add_i64(begin, p->begin[i + 2], &out[i]) ||
            !ent_add_i64(end, p->end[i + 2], &out[i + spatial]))
            return false;
    }
    return true;
}

static ent_attrs window_attrs(ent_module *module, const ent_node *node, const int64_t *pads, uint32_t count) {
    ent_attrs attrs = ent_rewrite_with_attr(module, node->attrs, ent_attr_ints(module, "pads", pads, count));
    if (ent_attrs_find(attrs, "auto_pad"))
        attrs = ent_rewrite_with_attr(module, attrs, ent_attr_string(module, "auto_pad", "NOTSET"));
    if (node->op == ENT_OP_AveragePool)
        attrs = ent_rewrite_with_attr(module, attrs, ent_attr_int("count_include_pad", 1));
    return attrs;
}

ent_status ent_rewrite_simplify_pads(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    int64_t pads[2 * ENT_MAX_RANK];
    padding p;
    bool has_own = false;
    uint32_t inputs[3], count = node->input_count, from[3] = {id}, from_count = 2, made;
    if (node->op != ENT_OP_Conv && node->op != ENT_OP_AveragePool && node->op != ENT_OP_MaxPool) return NULL;
    if (!read_padding(context, node->inputs[0], &p) || p.rank < 3 || p.begin[0] || p.end[0] || p.begin[1] ||
        p.end[1] || !join_pads(node, &p, pads, &has_own) || !takes(context, node, &p, pads, has_own))
        return NULL;
    memcpy(inputs, node->inputs, count * sizeof *inputs);
    ent_attrs attrs = window_attrs(context->module, node, pads, 2 * (p.rank - 2));
    uint32_t op = node->op;
    inputs[0] = p.source;
    from[1] = p.nodes[0];
    if (p.transpose) {
        from[from_count++] = p.nodes[1];
        ENT_TRY(ent_rewrite_add(context, ENT_OP_Transpose, p.transpose->attrs, &p.source, 1, id, &p.nodes[1],
                                1, &inputs[0]));
    }
    ENT_TRY(ent_rewrite_add(context, op, attrs, inputs, count, id, from, from_count, &made));
    ent_rewrite_forward(context, id, made);
    *out_done = true;
    return NULL;
}
