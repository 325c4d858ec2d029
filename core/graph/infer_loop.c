/* Shape rules: loops. What a loop makes may have another shape in every iteration, so only types are said
 * here; the shapes come with the iterations when the loop is written out. */
#include "core/graph/infer.h"

static bool same_static(const ent_module *module, uint32_t a, uint32_t b) {
    const ent_value *x = ent_module_value(module, a), *y = ent_module_value(module, b);
    bool same = ent_value_static(module, a) && x->rank == y->rank && x->dtype == y->dtype;
    for (uint32_t i = 0; same && i < x->rank; i++) same = x->dims[i] == y->dims[i];
    return same;
}

bool ent_module_loop_is_settled(const ent_module *module, uint32_t id) {
    const ent_node *node = ent_module_node(module, id);
    const ent_attr *attr = ent_attrs_find(node->attrs, "body");
    if (node->op != ENT_OP_Loop || !attr || attr->type != ENT_ATTR_GRAPH) return false;
    const ent_graph *body = ent_module_graph(module, (uint32_t)attr->i);
    if (node->input_count < 2 || body->inputs.count != node->input_count ||
        body->outputs.count != node->input_count - 1)
        return false;
    if (node->inputs[0] == ENT_ID_NONE && node->inputs[1] == ENT_ID_NONE) return false; /* it never ends */
    const ent_value *condition = ent_module_value(module, body->outputs.items[0]);
    if (condition->dtype != ENT_DTYPE_BOOL || condition->rank != 0) return false;
    for (uint32_t i = 2; i < node->input_count; i++)
        if (node->inputs[i] == ENT_ID_NONE || !same_static(module, node->inputs[i], body->inputs.items[i]) ||
            !same_static(module, node->inputs[i], body->outputs.items[i - 1]))
            return false;
    return true;
}

static const ent_graph *body_of(const ent_infer *infer) {
    const ent_attr *attr = ent_attrs_find(infer->attrs, "body");
    return attr && attr->type == ENT_ATTR_GRAPH ? ent_module_graph(infer->module, (uint32_t)attr->i) : NULL;
}

/* States keep the type they start with; scans have the body's. */
static ent_status set_types(ent_infer *infer, uint32_t first_input, uint32_t states, uint32_t first_result) {
    const ent_graph *body = body_of(infer);
    if (!body || body->outputs.count < first_result + states ||
        infer->node->output_count > body->outputs.count - first_result)
        return ent_infer_fail(infer, "control.outputs", "the outputs of the node and of its body do not fit");
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        const ent_value *from = i < states ? ent_infer_input(infer, first_input + i) : NULL;
        if (!from) from = ent_module_value(infer->module, body->outputs.items[first_result + i]);
        infer->out[i].dtype = from->dtype;
    }
    return NULL;
}

/* Where every state keeps the shape it starts with, that is the result's too. */
static void set_settled_shapes(ent_infer *infer, uint32_t states) {
    const ent_graph *body = body_of(infer);
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        const ent_value *start = i < states ? ent_infer_input(infer, 2 + i) : NULL;
        if (!start || !ent_module_loop_is_settled(infer->module, infer->node_id) ||
            body->outputs.count != states + 1)
            return;
    }
    for (uint32_t i = 0; i < infer->node->output_count; i++) ent_infer_copy(infer, i, 2 + i);
}

ent_status ent_infer_Loop(ent_infer *infer) {
    uint32_t inputs = infer->node->input_count, states = inputs > 2 ? inputs - 2 : 0;
    const ent_graph *body = body_of(infer);
    if (!body || body->inputs.count != states + 2)
        return ent_infer_fail(infer, "control.inputs", "the body takes %u values, the node gives %u",
                              body ? body->inputs.count : 0, states + 2);
    ent_infer_want(infer, 0);
    ent_infer_want(infer, 1);
    ENT_TRY(set_types(infer, 2, states, 1));
    set_settled_shapes(infer, states);
    return NULL;
}

ent_status ent_infer_Scan(ent_infer *infer) {
    int64_t scans = ent_attrs_int(infer->attrs, "num_scan_inputs", 0);
    uint32_t inputs = infer->node->input_count;
    const ent_graph *body = body_of(infer);
    if (!body || scans < 1 || scans > inputs || body->inputs.count != inputs)
        return ent_infer_fail(infer, "control.inputs", "the body takes %u values, the node gives %u",
                              body ? body->inputs.count : 0, inputs);
    return set_types(infer, 0, inputs - (uint32_t)scans, 0);
}
