/* Relu, Clip, and Max and Min with a number are all bounds from below and above: a chain of them is one Clip,
 * from 0 upwards it is Relu, and without bounds it is nothing. All of them pass NaN on. */
#include <math.h>

#include "core/rewrite/internal.h"

typedef struct bounds {
    double low, high;
    uint32_t source; /* the value that is bounded */
} bounds;

static bool read_bound(const ent_rewrite_context *context, uint32_t value, double missing, double *out) {
    *out = missing;
    if (value == ENT_ID_NONE) return true;
    return ent_value_scalar(context->module, value, out) && !isnan(*out);
}

/* Max or Min of one value and one number. */
static bool read_extreme(const ent_rewrite_context *context, const ent_node *node, bounds *out) {
    double *bound = node->op == ENT_OP_Max ? &out->low : &out->high;
    if (node->input_count != 2) return false;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t number = node->inputs[1 - i];
        out->source = node->inputs[i];
        if (ent_value_scalar(context->module, number, bound) && !isnan(*bound))
            return !ent_rewrite_tensor(context, out->source) &&
                   ent_rewrite_same_shape(context->module, out->source, node->outputs[0]);
    }
    return false;
}

static bool read_bounds(const ent_rewrite_context *context, const ent_node *node, bounds *out) {
    if (!node || node->outputs[0] == ENT_ID_NONE) return false;
    uint32_t dtype = ent_module_value(context->module, node->outputs[0])->dtype;
    *out = (bounds){-INFINITY, INFINITY, node->inputs[0]};
    if (dtype != ENT_DTYPE_F32 && dtype != ENT_DTYPE_F64 && dtype != ENT_DTYPE_F16 && dtype != ENT_DTYPE_BF16)
        return false;
    switch (node->op) {
    case ENT_OP_Relu:
        out->low = 0;
        return true;
    case ENT_OP_Clip:
        return read_bound(context, ent_rewrite_input(node, 1), -INFINITY, &out->low) &&
               read_bound(context, ent_rewrite_input(node, 2), INFINITY, &out->high) && out->low <= out->high;
    case ENT_OP_Max:
    case ENT_OP_Min:
        return read_extreme(context, node, out);
    default:
        return false;
    }
}

static double clamp(double x, double low, double high) {
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* The node already is the one form of its bounds. */
static bool is_canonical(const ent_node *node, const bounds *b) {
    if (b->low == 0 && b->high == INFINITY) return node->op == ENT_OP_Relu;
    bool has_low = ent_rewrite_input(node, 1) != ENT_ID_NONE;
    bool has_high = ent_rewrite_input(node, 2) != ENT_ID_NONE;
    return node->op == ENT_OP_Clip && has_low == (b->low != -INFINITY) && has_high == (b->high != INFINITY);
}

static ent_status write_bounds(ent_rewrite_context *context, uint32_t id, const bounds *b,
                               const uint32_t *from, uint32_t from_count) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t dtype = ent_module_value(context->module, node->outputs[0])->dtype, graph = node->graph, made;
    uint32_t inputs[3] = {b->source, ENT_ID_NONE, ENT_ID_NONE}, count = 1;
    bool is_relu = b->low == 0 && b->high == INFINITY;
    if (!is_relu && b->low != -INFINITY) {
        inputs[1] = ent_module_add_scalar(context->module, graph, dtype, b->low);
        count = 2;
    }
    if (b->high != INFINITY) {
        inputs[2] = ent_module_add_scalar(context->module, graph, dtype, b->high);
        count = 3;
    }
    ENT_TRY(ent_rewrite_add(context, is_relu ? ENT_OP_Relu : ENT_OP_Clip, (ent_attrs){0}, inputs, count, id,
                            from, from_count, &made));
    ent_rewrite_forward(context, id, made);
    return NULL;
}

ent_status ent_rewrite_simplify_bounds(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t from[2] = {id, id}, from_count = 1;
    bounds outer, inner;
    if (!read_bounds(context, node, &outer)) return NULL;
    if (read_bounds(context, ent_rewrite_producer(context, outer.source), &inner)) {
        from[from_count++] = ent_module_value(context->module, outer.source)->producer;
        outer = (bounds){clamp(inner.low, outer.low, outer.high), clamp(inner.high, outer.low, outer.high),
                         inner.source};
    }
    if (outer.low == -INFINITY && outer.high == INFINITY) {
        ent_rewrite_forward(context, id, outer.source);
        *out_done = true;
        return NULL;
    }
    if (from_count == 1 && is_canonical(node, &outer)) return NULL;
    *out_done = true;
    return write_bounds(context, id, &outer, from, from_count);
}
