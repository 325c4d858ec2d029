/* What is selected need not be computed whole: a Gather or Slice of something that was made larger (a filled
 * or expanded value, an outer product, rows of a MatMul) selects from what it was made of. Only where that
 * reads fewer elements: a selection behind plain arithmetic stays, so that the arithmetic can join what is in
 * front of it. */
#include "core/rewrite/internal.h"

#define NONE ENT_ID_NONE
#define LOOK_BACK 32 /* nodes in a row */

/* Axes are counted from the right: there broadcasting keeps their numbers. */
typedef struct selection {
    uint32_t source, graph;
    uint32_t mask;  /* axes of the source it selects along */
    uint32_t index; /* Gather: the indices, of rank 1; NONE: a Slice */
    int64_t starts[ENT_MAX_RANK], ends[ENT_MAX_RANK], steps[ENT_MAX_RANK]; /* by axis */
} selection;

static int64_t dim_at(const ent_module *module, uint32_t value, uint32_t axis) {
    const ent_value *v = ent_module_value(module, value);
    return axis < v->rank ? v->dims[v->rank - 1 - axis] : 1;
}

/* ---- what passes a selection ---- */

static bool is_pointwise(const ent_node *node) {
    return ent_op_info_get(node->op)->op_class == ENT_CLASS_ELEMENTWISE && node->op != ENT_OP_CastLike &&
           node->op != ENT_OP_PRelu && node->op != ENT_OP_QuantizeLinear &&
           node->op != ENT_OP_DequantizeLinear;
}

/* Axes of input `index` that the axes of `mask` of the result come from; none where one element serves all.
 */
static uint32_t input_mask(const ent_module *module, const ent_node *node, uint32_t index, uint32_t mask) {
    uint32_t value = node->inputs[index], out = 0;
    bool counts = index > 0 && (node->op == ENT_OP_Expand || node->op == ENT_OP_Tile); /* not data */
    if (value == NONE || node->op == ENT_OP_ConstantOfShape || counts) return 0;
    if (node->op == ENT_OP_MatMul) mask &= index == 0 ? ~1u : ~2u; /* these it sums over, or repeats for */
    for (uint32_t axis = 0; axis < ENT_MAX_RANK; axis++)
        if ((mask >> axis & 1) && dim_at(module, value, axis) != 1) out |= 1u << axis;
    return out;
}

/* A Tile repeats nothing along the axes. */
static bool repeats_others(const ent_module *module, const ent_node *node, uint32_t mask) {
    for (uint32_t axis = 0; axis < ENT_MAX_RANK; axis++)
        if ((mask >> axis & 1) &&
            dim_at(module, node->inputs[0], axis) != dim_at(module, node->outputs[0], axis))
            return false;
    return true;
}

static bool passes(const ent_module *module, const ent_node *node, uint32_t mask) {
    if (node->op == ENT_OP_Tile) return repeats_others(module, node, mask);
    return node->op == ENT_OP_ConstantOfShape || node->op == ENT_OP_Expand || node->op == ENT_OP_MatMul ||
           is_pointwise(node);
}

/* The node of the selection's graph that makes the value for nobody else and can make a part of it; or NULL.
 */
static const ent_node *passing_producer(const ent_rewrite_context *context, uint32_t graph, uint32_t value,
                                        uint32_t mask) {
    const ent_module *module = context->module;
    const ent_node *node = ent_rewrite_producer(context, value);
    if (!node || node->graph != graph || node->output_count != 1 || !ent_rewrite_single_use(context, value))
        return NULL;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NONE) continue;
        const ent_value *v = ent_module_value(module, node->inputs[i]);
        if (!ent_value_static(module, node->inputs[i]) || ent_dtype_bits((ent_dtype)v->dtype) < 8 ||
            (node->op == ENT_OP_MatMul && v->rank < 2))
            return NULL;
    }
    return passes(module, node, mask) ? node : NULL;
}

/* Elements of the values that a selection along `mask` would select from, if it moved as far up as it gains.
 */
static int64_t read_elements(const ent_rewrite_context *context, uint32_t graph, uint32_t value,
                             uint32_t mask, uint32_t look_back) {
    int64_t elements = ent_value_elements(context->module, value), sum = 0;
    const ent_node *node = look_back ? passing_producer(context, graph, value, mask) : NULL;
    if (elements < 0 || !node) return elements < 0 ? INT64_MAX : elements;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t part = input_mask(context->module, node, i, mask);
        int64_t read = part ? read_elements(context, graph, node->inputs[i], part, look_back - 1) : 0;
        if (__builtin_add_overflow(sum, read, &sum)) return elements;
    }
    return sum < elements ? sum : elements;
}

/* ---- reading a selection ---- */

static bool read_gather(const ent_rewrite_context *context, const ent_node *node, selection *s) {
    uint32_t rank = ent_module_value(context->module, s->source)->rank;
    int64_t axis = ent_attrs_int(node->attrs, "axis", 0);
    axis = axis < 0 ? axis + rank : axis;
    if (axis < 0 || axis >= rank || !ent_value_static(context->module, node->inputs[1])) return false;
    s->index = node->inputs[1];
    s->mask = 1u << (rank - 1 - (uint32_t)axis);
    return true;
}

static bool read_slice(const ent_rewrite_context *context, const ent_node *node, selection *s) {
    int64_t lists[4][ENT_MAX_RANK]; /* starts, ends, axes, steps */
    uint32_t counts[4], rank = ent_module_value(context->module, s->source)->rank;
    for (uint32_t k = 0; k < 4; k++) {
        uint32_t value = ent_rewrite_input(node, k + 1);
        counts[k] = counts[0];
        for (uint32_t i = 0; value == NONE && i < counts[0]; i++) lists[k][i] = k == 2 ? i : 1;
        if (value != NONE && !ent_value_i64s(context->module, value, lists[k], ENT_MAX_RANK, &counts[k]))
            return false;
        if (counts[k] != counts[0]) return false;
    }
    s->index = NONE;
    s->mask = 0;
    for (uint32_t i = 0; i < counts[0]; i++) {
        int64_t axis = lists[2][i] < 0 ? lists[2][i] + rank : lists[2][i];
        if (axis < 0 || axis >= rank) return false;
        uint32_t right = rank - 1 - (uint32_t)axis;
        if (dim_at(context->module, s->source, right) == 1) {
            if (dim_at(context->module, node->outputs[0], right) != 1) return false;
            continue;
        }
        s->mask |= 1u << right;
        s->starts[right] = lists[0][i];
        s->ends[right] = lists[1][i];
        s->steps[right] = lists[3][i];
    }
    return true;
}

/* The selection, if it takes less than all of something that can be made in part. */
static bool read_selection(const ent_rewrite_context *context, const ent_node *node, selection *s) {
    if ((node->op != ENT_OP_Gather && node->op != ENT_OP_Slice) || node->outputs[0] == NONE) return false;
    *s = (selection){.source = node->inputs[0], .graph = node->graph};
    int64_t before = ent_value_elements(context->module, s->source),
            after = ent_value_elements(context->module, node->outputs[0]);
    if (before < 0 || after < 0 || after >= before) return false;
    bool read = node->op == ENT_OP_Gather ? read_gather(context, node, s) : read_slice(context, node, s);
    if (!read || !s->mask || !passing_producer(context, node->graph, s->source, s->mask)) return false;
    return read_elements(context, s->graph, s->source, s->mask, LOOK_BACK) < before;
}

/* ---- moving ---- */

/* The selection of a value along the axes of `mask`, a new node before `id`. */
static ent_status select_from(ent_rewrite_context *context, const selection *s, uint32_t value, uint32_t mask,
                              uint32_t id, uint32_t *out_value) {
    ent_module *module = context->module;
    uint32_t rank = ent_module_value(module, value)->rank, count = 0;
    int64_t lists[4][ENT_MAX_RANK] = {{0}};
    for (uint32_t right = 0; right < rank; right++) {
        if (!(mask >> right & 1)) continue;
        lists[0][count] = s->starts[right];
        lists[1][count] = s->ends[right];
        lists[2][count] = rank - 1 - right;
        lists[3][count++] = s->steps[right];
    }
    if (s->index != NONE) {
        ent_attr axis = ent_attr_int("axis", lists[2][0]);
        uint32_t inputs[2] = {value, s->index};
        return ent_rewrite_add(context, ENT_OP_Gather, ent_attrs_make(module, &axis, 1), inputs, 2, id, &id,
                               1, out_value);
    }
    uint32_t inputs[5] = {value};
    for (uint32_t k = 0; k < 4; k++) inputs[k + 1] = ent_module_add_i64s(module, s->graph, lists[k], count);
    return ent_rewrite_add(context, ENT_OP_Slice, ent_attrs_make(module, NULL, 0), inputs, 5, id, &id, 1,
                           out_value);
}

/* Indices of another rank: the selection by a vector of them, reshaped. */
static ent_status by_vector(ent_rewrite_context *context, uint32_t *id, selection *s) {
    ent_module *module = context->module;
    int64_t count = ent_value_elements(module, s->index);
    uint32_t inputs[2] = {s->index, ent_module_add_i64s(module, s->graph, &count, 1)}, value;
    ent_attr allow_zero = ent_attr_int("allowzero", 1);
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Reshape, ent_attrs_make(module, &allow_zero, count == 0), inputs,
                            2, *id, id, 1, &s->index));
    ENT_TRY(select_from(context, s, s->source, s->mask, *id, &value));
    ENT_TRY(ent_rewrite_become_reshape(context, *id, value, id, 1));
    *id = ent_module_value(module, value)->producer;
    return NULL;
}

/* Moves the selection `id` before what makes its source, and on from there. */
static ent_status move_up(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    ent_module *module = context->module;
    selection s;
    if (!read_selection(context, ent_module_node(module, id), &s)) return NULL;
    *out_done = true;
    if (s.index != NONE && ent_module_value(module, s.index)->rank != 1) ENT_TRY(by_vector(context, &id, &s));
    const uint32_t from[2] = {ent_module_value(module, s.source)->producer, id};
    const ent_node maker = *ent_module_node(module, from[0]);
    uint32_t *inputs = ent_arena_copy(context->scratch, maker.inputs, maker.input_count * sizeof *inputs),
             value;
    for (uint32_t i = 0; i < maker.input_count; i++) {
        uint32_t mask = input_mask(module, &maker, i, s.mask);
        if (mask) ENT_TRY(select_from(context, &s, inputs[i], mask, id, &inputs[i]));
    }
    if (maker.op == ENT_OP_Expand || maker.op == ENT_OP_ConstantOfShape) {
        const ent_value out = *ent_module_value(module, ent_module_node(module, id)->outputs[0]);
        inputs[maker.op == ENT_OP_Expand ? 1 : 0] = ent_module_add_i64s(module, s.graph, out.dims, out.rank);
    }
    ENT_TRY(ent_rewrite_add(context, maker.op, maker.attrs, inputs, maker.input_count, id, from, 2, &value));
    ent_rewrite_forward(context, id, value);
    ent_module_remove_node(module, from[0]); /* or its inputs had two readers */
    for (uint32_t i = 0; i < maker.input_count; i++)
        if (inputs[i] != maker.inputs[i] && input_mask(module, &maker, i, s.mask))
            ENT_TRY(move_up(context, ent_module_value(module, inputs[i])->producer, out_done));
    return NULL;
}

ent_status ent_rewrite_simplify_selections(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    return move_up(context, id, out_done);
}
