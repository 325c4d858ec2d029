/* Old meanings of GroupNormalization and DFT, and the seeds of random nodes. */
#include "core/import/internal.h"

/* Before opset 21 scale and bias had an entry a group, not a channel: each is repeated for the group's
 * channels. */
static uint32_t repeat_groups(ent_import_draft *draft, uint32_t vector, int64_t groups) {
    ent_module *module = draft->importer->module;
    uint32_t graph = draft->scope->graph;
    ent_attr range[2] = {ent_attr_int("start", 1), ent_attr_int("end", 2)};
    int64_t one = 1, all = -1;
    uint32_t operands[2] = {ent_import_emit(draft, ENT_OP_Shape, range, 2, &draft->inputs[0], 1),
                            ent_module_add_i64s(module, graph, &groups, 1)};
    uint32_t dims[2] = {operands[1], ent_import_emit(draft, ENT_OP_Div, NULL, 0, operands, 2)};
    ent_attr axis = ent_attr_int("axis", 0);
    uint32_t column[2] = {vector, ent_module_add_i64s(module, graph, &one, 1)};
    uint32_t expand[2] = {ent_import_emit(draft, ENT_OP_Unsqueeze, NULL, 0, column, 2), ENT_ID_NONE};
    expand[1] = ent_import_emit(draft, ENT_OP_Concat, &axis, 1, dims, 2);
    uint32_t flat[2] = {ent_import_emit(draft, ENT_OP_Expand, NULL, 0, expand, 2),
                        ent_module_add_i64s(module, graph, &all, 1)};
    return ent_import_emit(draft, ENT_OP_Reshape, NULL, 0, flat, 2);
}

ent_status ent_import_upgrade_group_norm(ent_import_draft *draft) {
    const ent_attr *groups = ent_import_attr(draft, "num_groups");
    for (uint32_t i = 1; i < 3; i++) draft->inputs[i] = repeat_groups(draft, draft->inputs[i], groups->i);
    return NULL;
}

/* The axis was an attribute, by default the one after the batch. */
ent_status ent_import_upgrade_dft(ent_import_draft *draft) {
    ent_attr attr = ent_attr_int("axis", 1);
    ent_import_attr_take(draft, "axis", &attr);
    uint32_t axis =
        ent_module_add_scalar(draft->importer->module, draft->scope->graph, ENT_DTYPE_I64, (double)attr.i);
    ent_import_input_set(draft, 2, axis);
    return NULL;
}

/* Nodes without a seed draw different numbers, which two equal nodes of the graph would not. */
ent_status ent_import_upgrade_random(ent_import_draft *draft) {
    uint32_t graph = draft->scope->graph;
    if (ent_import_attr(draft, "seed")) return NULL;
    double seed = (double)draft->importer->module->nodes.count + (double)graph / 65536;
    ent_import_attr_put(draft, ent_attr_float("seed", seed));
    return NULL;
}
