/* How operators read a value whose axes stand in another order: elementwise operators as they are, others
 * with the axes that they name renamed. */
#include "core/rewrite/axes.h"

#include <string.h>

#include "core/ops/ops.h"

typedef struct mover {
    const ent_rewrite_context *context;
    const ent_node *node;
    const ent_axis_order *const *orders;
    ent_axis_change *out;
} mover;

bool ent_axis_order_is_identity(const ent_axis_order *order) {
    for (uint32_t i = 0; i < order->rank; i++)
        if (order->axis[i] != i) return false;
    return true;
}

ent_axis_order ent_axis_order_compose(const ent_axis_order *first, const ent_axis_order *second) {
    ent_axis_order order = {second->rank, {0}};
    for (uint32_t i = 0; i < second->rank; i++) order.axis[i] = first->axis[second->axis[i]];
    return order;
}

static const ent_value *value_of(const mover *m, uint32_t input) {
    return ent_module_value(m->context->module, m->node->inputs[input]);
}

/* The same order when axes are put in front until there are `rank`. */
static ent_axis_order lift(const ent_axis_order *order, uint32_t rank) {
    ent_axis_order lifted = {rank, {0}};
    uint32_t extra = rank - order->rank;
    for (uint32_t i = 0; i < rank; i++)
        lifted.axis[i] = (uint8_t)(i < extra ? i : extra + order->axis[i - extra]);
    return lifted;
}

/* The order left when the axes of a mask are taken out of the value (bits name the value's axes). */
static ent_axis_order without_axes(const ent_axis_order *order, uint32_t mask) {
    ent_axis_order left = {0, {0}};
    for (uint32_t i = 0; i < order->rank; i++) {
        if (mask >> i & 1) continue;
        uint8_t place = 0;
        for (uint32_t k = 0; k < order->rank; k++) /* kept axes of the base before this one */
            place += !(mask >> k & 1) && order->axis[k] < order->axis[i];
        left.axis[left.rank++] = place;
    }
    return left;
}

/* New axes at the indices of a mask, in value and base alike. */
static ent_axis_order with_axes(const ent_axis_order *order, uint32_t mask, uint32_t rank) {
    uint8_t places[ENT_MAX_RANK];
    ent_axis_order more = {rank, {0}};
    uint32_t old = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (!(mask >> i & 1)) places[old++] = (uint8_t)i;
    for (uint32_t i = 0, k = 0; i < rank; i++)
        more.axis[i] = mask >> i & 1 ? (uint8_t)i : places[order->axis[k++]];
    return more;
}

/* ---- elementwise ---- */

/* Broadcast along every axis that moves. */
static bool is_indifferent(const ent_value *value, const ent_axis_order *order) {
    uint32_t extra = order->rank - value->rank;
    for (uint32_t i = 0; i < order->rank; i++)
        if (order->axis[i] != i && i >= extra && value->dims[i - extra] != 1) return false;
    return true;
}

/* All transposed inputs agree at this rank. */
static bool find_common(const mover *m, uint32_t inputs, uint32_t rank) {
    bool found = false;
    for (uint32_t i = 0; i < inputs; i++) {
        if (!m->orders[i]) continue;
        ent_axis_order order = lift(m->orders[i], rank);
        if (found && memcmp(&order, &m->out->common, sizeof order) != 0) return false;
        m->out->common = order;
        found = true;
    }
    return found;
}

static bool move_elementwise(const mover *m, uint32_t inputs) {
    uint32_t rank = ent_module_value(m->context->module, m->node->outputs[0])->rank;
    if (rank == ENT_RANK_UNKNOWN || inputs > 32) return false;
    for (uint32_t i = 0; i < inputs; i++)
        if (m->node->inputs[i] != ENT_ID_NONE && value_of(m, i)->rank > rank) return false;
    if (!find_common(m, inputs, rank)) return false;
    for (uint32_t i = 0; i < inputs; i++) {
        if (m->orders[i] || m->node->inputs[i] == ENT_ID_NONE) continue;
        if (is_indifferent(value_of(m, i), &m->out->common)) continue;
        if (!value_of(m, i)->constant) return false;
        m->out->permuted |= 1u << i;
    }
    m->out->result = m->out->common;
    return true;
}

/* ---- operators that name axes ---- */

static int64_t from_end(int64_t axis, uint32_t rank) {
    return axis < 0 ? axis + rank : axis;
}

/* Attribute "axis" of input 0. */
static bool move_attribute(const mover *m, int64_t missing, bool drops_axis) {
    const ent_axis_order *order = m->orders[0];
    if (!order) return false;
    int64_t axis = from_end(ent_attrs_int(m->node->attrs, "axis", missing), order->rank);
    if (axis < 0 || axis >= order->rank) return false;
    m->out->place = ENT_AXIS_ATTRIBUTE;
    m->out->axes[0] = order->axis[axis];
    m->out->axis_count = 1;
    m->out->common = *order;
    m->out->result = drops_axis ? without_axes(order, 1u << axis) : *order;
    return true;
}

static bool move_concat(const mover *m) {
    uint32_t rank = ent_module_value(m->context->module, m->node->outputs[0])->rank;
    if (rank == ENT_RANK_UNKNOWN || m->node->input_count > 32) return false;
    if (!find_common(m, m->node->input_count, rank)) return false;
    int64_t axis = from_end(ent_attrs_int(m->node->attrs, "axis", 0), rank);
    if (axis < 0 || axis >= rank) return false;
    for (uint32_t i = 0; i < m->node->input_count; i++) {
        if (m->orders[i]) continue;
        if (!value_of(m, i)->constant) return false;
        m->out->permuted |= 1u << i;
    }
    m->out->place = ENT_AXIS_ATTRIBUTE;
    m->out->axes[0] = m->out->common.axis[axis];
    m->out->axis_count = 1;
    m->out->result = m->out->common;
    return true;
}

/* An index vector takes a slice of the axis, a single index drops it. */
static bool move_gather(const mover *m) {
    uint32_t rank = value_of(m, 1)->rank;
    if (m->orders[1] || rank > 1) return false;
    return move_attribute(m, 0, rank == 0);
}

/* Scale and zero point: one number, or a vector along "axis". */
static bool move_quantize(const mover *m) {
    if (!m->orders[0] || m->orders[1] || ent_attrs_int(m->node->attrs, "block_size", 0) != 0) return false;
    if (value_of(m, 1)->rank == 0) {
        m->out->common = m->out->result = *m->orders[0];
        return true;
    }
    return value_of(m, 1)->rank == 1 && move_attribute(m, 1, false);
}

/* Axes in a constant input; without one, all of `implied` axes in order. mask names the value's axes. */
static bool move_input(const mover *m, uint32_t input, uint32_t implied, uint32_t rank, uint32_t *mask) {
    uint32_t id = ent_rewrite_input(m->node, input), count = implied;
    *mask = 0;
    for (uint32_t i = 0; i < implied; i++) m->out->axes[i] = i;
    if (id != ENT_ID_NONE && !ent_value_i64s(m->context->module, id, m->out->axes, ENT_MAX_RANK, &count))
        return false;
    if (count == 0 || count > ENT_MAX_RANK) return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = from_end(m->out->axes[i], rank);
        if (axis < 0 || axis >= rank) return false;
        m->out->axes[i] = axis;
        *mask |= 1u << axis;
    }
    m->out->place = ENT_AXIS_INPUT;
    m->out->input = input;
    m->out->axis_count = count;
    return true;
}

static void rename_axes(const mover *m) {
    for (uint32_t i = 0; i < m->out->axis_count; i++) m->out->axes[i] = m->orders[0]->axis[m->out->axes[i]];
}

/* Slice and Pad: every axis stays. */
static bool move_ranges(const mover *m, uint32_t input, uint32_t implied) {
    uint32_t mask;
    if (!m->orders[0] || implied > m->orders[0]->rank) return false;
    if (!move_input(m, input, implied, m->orders[0]->rank, &mask)) return false;
    rename_axes(m);
    m->out->common = m->out->result = *m->orders[0];
    return true;
}

static bool move_reduction(const mover *m, bool keeps) {
    uint32_t mask;
    if (!m->orders[0] || !move_input(m, 1, 0, m->orders[0]->rank, &mask)) return false;
    rename_axes(m);
    m->out->common = *m->orders[0];
    m->out->result = keeps ? *m->orders[0] : without_axes(m->orders[0], mask);
    return true;
}

static bool move_unsqueeze(const mover *m) {
    uint32_t mask, rank = ent_module_value(m->context->module, m->node->outputs[0])->rank;
    if (!m->orders[0] || rank == ENT_RANK_UNKNOWN || !move_input(m, 1, 0, rank, &mask)) return false;
    m->out->common = *m->orders[0]; /* new axes stand at the same index in base and value */
    m->out->result = with_axes(m->orders[0], mask, rank);
    return true;
}

/* Elements of the constant list at an input; 0 when not known. */
static uint32_t list_size(const mover *m, uint32_t input) {
    uint32_t id = ent_rewrite_input(m->node, input);
    const ent_tensor *t = ent_rewrite_tensor(m->context, id);
    return t && t->rank == 1 && t->dims[0] <= 2 * ENT_MAX_RANK ? (uint32_t)t->dims[0] : 0;
}

static bool is_unary_composite(uint32_t op) {
    return op == ENT_OP_Gelu || op == ENT_OP_HardSwish || op == ENT_OP_Mish;
}

/* size: table */
static bool find_change(const mover *m) {
    const ent_node *node = m->node;
    uint32_t op = node->op;
    switch (op) {
    case ENT_OP_CastLike: /* the second input gives its type only, whatever its shape */
        return false;
    case ENT_OP_QuantizeLinear:
    case ENT_OP_DequantizeLinear:
        return move_quantize(m);
    case ENT_OP_Softmax:
    case ENT_OP_LogSoftmax:
        return move_attribute(m, -1, false);
    case ENT_OP_ArgMax:
    case ENT_OP_ArgMin:
        return move_attribute(m, 0, ent_attrs_int(node->attrs, "keepdims", 1) == 0);
    case ENT_OP_Split:
        return move_attribute(m, 0, false);
    case ENT_OP_Gather:
        return move_gather(m);
    case ENT_OP_Concat:
        return move_concat(m);
    case ENT_OP_Slice:
        return move_ranges(m, 3, list_size(m, 1));
    case ENT_OP_Pad:
        return move_ranges(m, 3, list_size(m, 1) / 2);
    case ENT_OP_Squeeze:
        return move_reduction(m, false);
    case ENT_OP_Unsqueeze:
        return move_unsqueeze(m);
    default:
        break;
    }
    if (ent_rewrite_is_reduction(op))
        return move_reduction(m, ent_attrs_int(node->attrs, "keepdims", 1) != 0);
    bool elementwise = ent_op_info_get(op)->op_class == ENT_CLASS_ELEMENTWISE || is_unary_composite(op);
    return elementwise && move_elementwise(m, node->input_count);
}

bool ent_axis_change_find(const ent_rewrite_context *context, const ent_node *node,
                          const ent_axis_order *const *orders, ent_axis_change *out) {
    mover m = {context, node, orders, out};
    memset(out, 0, sizeof *out);
    if (node->output_count < 1 || node->outputs[0] == ENT_ID_NONE || node->input_count < 1) return false;
    return find_change(&m);
}

uint32_t ent_axis_constant(ent_rewrite_context *context, uint32_t graph, uint32_t value,
                           const ent_axis_order *order) {
    const ent_tensor *from = ent_rewrite_tensor(context, value);
    ent_tensor source = *from, to;
    uint32_t extra = order->rank - from->rank;
    source.rank = order->rank;
    source.layout = ent_layout_plain(order->rank);
    for (uint32_t i = 0; i < order->rank; i++) {
        source.dims[order->axis[i]] = i < extra ? 1 : from->dims[i - extra];
        source.layout.order[i] = order->axis[i]; /* the same bytes, named by the base's axes */
    }
    to = source;
    to.layout = ent_layout_plain(order->rank);
    to.data = ent_arena_array(context->module->arena, from->size_bytes + 1, 1);
    ent_ops_error error = {0};
    if (!to.data || ent_ops_convert(&source, &to, &error) != ENT_OK) return ENT_ID_NONE;
    return ent_module_add_constant(context->module, graph, NULL, to.dtype, to.rank, to.dims, to.data,
                                   from->size_bytes, true);
}
