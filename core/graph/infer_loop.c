/* Shape rules: loops. What a loop makes may have another shape in every iteration, so only types are said
 * here; the shapes come with the iterations when the loop is written out. */
#include "core/graph/infer.h"

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

ent_status ent_infer_Loop(ent_infer *infer) {
    uint32_t inputs = infer->node->input_count, states = inputs > 2 ? inputs - 2 : 0;
    const ent_graph *body = body_of(infer);
    if (!body || body->inputs.count != states + 2)
        return ent_infer_fail(infer, "control.inputs", "the body takes %u values, the node gives %u",
                              body ? body->inputs.count : 0, states + 2);
    ent_infer_want(infer, 0);
    ent_infer_want(infer, 1);
    return set_types(infer, 2, states, 1);
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
