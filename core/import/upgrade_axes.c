/* Attributes that later became inputs: axes, slices, splits, pads. */
#include "core/import/internal.h"

/* True if the list was given and is not empty. */
static bool take_ints_as_input(ent_import_draft *draft, const char *name, uint32_t index) {
    ent_attr attr;
    if (!ent_import_attr_take(draft, name, &attr) || attr.count == 0) return false;
    ent_import_input_set(
        draft, index,
        ent_module_add_i64s(draft->importer->module, draft->scope->graph, attr.ints, attr.count));
    return true;
}

/* An empty or absent list meant all axes, as an absent input does now. */
ent_status ent_import_upgrade_reduce(ent_import_draft *draft) {
    take_ints_as_input(draft, "axes", 1);
    return NULL;
}

ent_status ent_import_upgrade_squeeze(ent_import_draft *draft) {
    if (!take_ints_as_input(draft, "axes", 1) && draft->op == ENT_OP_Unsqueeze)
        ent_import_input_set(draft, 1,
                             ent_module_add_i64s(draft->importer->module, draft->scope->graph, NULL, 0));
    return NULL;
}

ent_status ent_import_upgrade_slice(ent_import_draft *draft) {
    const ent_attr *starts = ent_import_attr(draft, "starts"), *ends = ent_import_attr(draft, "ends");
    const ent_attr *axes = ent_import_attr(draft, "axes");
    if (starts->count != ends->count || (axes && axes->count != 0 && axes->count != starts->count))
        return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "attribute.value", draft->place,
                               "starts, ends and axes differ in length");
    if (starts->count == 0) { /* nothing is cut */
        draft->op = ENT_OP_Identity;
        draft->attr_count = 0;
        return NULL;
    }
    take_ints_as_input(draft, "starts", 1);
    take_ints_as_input(draft, "ends", 2);
    take_ints_as_input(draft, "axes", 3);
    return NULL;
}

/* Opset 18 made the number of equal parts explicit. */
ent_status ent_import_upgrade_split(ent_import_draft *draft) {
    if (draft->opset < 13) take_ints_as_input(draft, "split", 1);
    if (draft->input_count < 2 || draft->inputs[1] == ENT_ID_NONE)
        ent_import_attr_put(draft, ent_attr_int("num_outputs", (int64_t)draft->output_count));
    return NULL;
}

ent_status ent_import_upgrade_pad(ent_import_draft *draft) {
    ent_attr value;
    if (!take_ints_as_input(draft, "pads", 1))
        ent_import_input_set(draft, 1,
                             ent_module_add_i64s(draft->importer->module, draft->scope->graph, NULL, 0));
    if (ent_import_attr_take(draft, "value", &value) && value.f != 0)
        ent_import_input_set(draft, 2, ent_import_scalar_like(draft, value.f, draft->inputs[0]));
    return NULL;
}
