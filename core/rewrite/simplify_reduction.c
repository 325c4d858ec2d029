/* Reductions: over axes of size 1 they only change the shape; a sum that is divided by the count is a mean.
 */
#include <math.h>

#include "core/rewrite/internal.h"

static bool gives_its_element(uint32_t op) {
    return op == ENT_OP_ReduceSum || op == ENT_OP_ReduceMean || op == ENT_OP_ReduceMax ||
           op == ENT_OP_ReduceMin || op == ENT_OP_ReduceProd || op == ENT_OP_GlobalAveragePool ||
           op == ENT_OP_GlobalMaxPool;
}

static ent_status drop_reduction(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t x = node->inputs[0], y = node->outputs[0];
    int64_t elements = ent_value_elements(context->module, x);
    if (elements < 1 || elements != ent_value_elements(context->module, y)) return NULL;
    *out_done = true;
    if (!ent_rewrite_same_shape(context->module, x, y))
        return ent_rewrite_become_reshape(context, id, x, &id, 1);
    ent_rewrite_forward(context, id, x);
    return NULL;
}

/* Elements that go into one result; 0 when not known. */
static int64_t reduced_count(const ent_module *module, const ent_node *node) {
    uint32_t mask = 0;
    int64_t count = 1;
    const ent_value *x = ent_module_value(module, node->inputs[0]);
    if (!ent_value_static(module, node->inputs[0]) || !ent_rewrite_reduced_axes(module, node, &mask))
        return 0;
    for (uint32_t i = 0; i < x->rank; i++)
        if (mask >> i & 1) count *= x->dims[i];
    return count;
}

/* Exact when the count is a power of two: both then round the sum once. */
static ent_status sum_to_mean(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_node *sum = ent_rewrite_producer(context, node->inputs[0]);
    double factor;
    if (!sum || sum->op != ENT_OP_ReduceSum || !ent_rewrite_single_use(context, node->inputs[0]) ||
        !ent_value_scalar(context->module, node->inputs[1], &factor) ||
        !ent_rewrite_float_tensor(context, node->inputs[1]) ||
        !ent_rewrite_same_shape(context->module, node->inputs[0], node->outputs[0]))
        return NULL;
    int64_t count = reduced_count(context->module, sum);
    bool exact = count > 0 && (count & (count - 1)) == 0 && factor * (double)count == 1;
    bool near = count > 0 && fabs(factor * (double)count - 1) < 1e-6;
    if (!exact && (!near || context->options->strict)) return NULL;
    uint32_t from[2] = {ent_module_value(context->module, node->inputs[0])->producer, id}, made;
    ENT_TRY(ent_rewrite_add(context, ENT_OP_ReduceMean, sum->attrs, sum->inputs, sum->input_count, id, from,
                            2, &made));
    ent_rewrite_forward(context, id, made);
    *out_done = true;
    return NULL;
}

ent_status ent_rewrite_simplify_reduction(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    uint32_t op = ent_module_node(context->module, id)->op;
    if (gives_its_element(op)) return drop_reduction(context, id, out_done);
    return op == ENT_OP_Mul ? sum_to_mean(context, id, out_done) : NULL;
}
