/* Softmax and LogSoftmax before opset 13 normalise over all axes from `axis` on, not over that axis.
 *
 * While shapes are unknown the node stands as it is, which infers the same shape. Once the rank is known: if
 * only one of those axes is longer than 1, that axis is meant; else the axes are flattened around the node.
 */
#include "core/import/internal.h"

ent_status ent_import_upgrade_softmax(ent_import_draft *draft) {
    ent_attr axis;
    int64_t first = ent_import_attr_take(draft, "axis", &axis) ? axis.i : 1;
    ent_import_attr_put(draft, ent_attr_int("axis", first));
    if (first != -1)
        draft->pending = ENT_IMPORT_PENDING_FLAT_SOFTMAX; /* the last axis alone means the same in both */
    return NULL;
}

/* The one axis that does the work, or -1. */
static int64_t single_axis(const ent_value *input, int64_t first) {
    int64_t found = (int64_t)input->rank - 1;
    uint32_t longer = 0;
    for (int64_t i = first; i < (int64_t)input->rank; i++) {
        if (input->dims[i] == 1) continue;
        found = i;
        longer++;
    }
    return longer <= 1 ? found : -1;
}

static uint32_t add_before(ent_module *module, uint32_t before, uint32_t op, ent_attrs attrs,
                           const uint32_t *inputs, uint32_t input_count) {
    const ent_node *node = ent_module_node(module, before);
    ent_node_spec spec = {.op = op,
                          .name = node->name,
                          .attrs = attrs,
                          .inputs = inputs,
                          .input_count = input_count,
                          .output_count = 1,
                          .origins = node->origins,
                          .origin_count = node->origin_count};
    uint32_t added = ent_module_add_node(module, node->graph, &spec, before);
    return ent_module_node(module, added)->outputs[0];
}

ent_status ent_import_finish_softmax(ent_importer *importer, uint32_t id) {
    ent_module *module = importer->module;
    ent_node *node = ent_module_node(module, id);
    uint32_t input = node->inputs[0], op = node->op;
    const ent_value *value = ent_module_value(module, input);
    bool ranked = value->rank != ENT_RANK_UNKNOWN;
    int64_t axis = ent_attrs_int(node->attrs, "axis", 1), single = -1;
    if (ranked) {
        int64_t rank = (int64_t)value->rank;
        if (axis < 0) axis += rank;
        const char *place = ent_arena_format(importer->scratch, "%s: node '%s'", importer->path, node->name);
        if (axis < 0 || axis > rank || rank == 0)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "attribute.value", place,
                                   "axis is out of range for rank %lld", (long long)rank);
        single = single_axis(value, axis);
    }
    if (single >= 0) {
        ent_attr attr = ent_attr_int("axis", single);
        ent_module_set_attrs(module, id, ent_attrs_make(module, &attr, 1));
        return NULL;
    }
    ent_attr flat = ent_attr_int("axis", axis), last = ent_attr_int("axis", -1);
    uint32_t flattened = add_before(module, id, ENT_OP_Flatten, ent_attrs_make(module, &flat, 1), &input, 1);
    uint32_t shape = add_before(module, id, ENT_OP_Shape, ent_attrs_make(module, NULL, 0), &input, 1);
    uint32_t soft = add_before(module, id, op, ent_attrs_make(module, &last, 1), &flattened, 1);
    /* The old node becomes the reshape, so that its output keeps id and name. */
    uint32_t *inputs = ent_arena_array(importer->arena, 2, sizeof *inputs);
    if (!inputs) return ent_status_out_of_memory();
    inputs[0] = input;
    inputs[1] = ENT_ID_NONE;
    node = ent_module_node(module, id);
    node->op = ENT_OP_Reshape;
    node->attrs = ent_attrs_make(module, NULL, 0);
    node->inputs = inputs;
    node->input_count = 2;
    ent_module_set_input(module, id, 0, soft);
    ent_module_set_input(module, id, 1, shape);
    return NULL;
}
