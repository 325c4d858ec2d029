/* Resize before opset 13, and Upsample.
 *
 * Before opset 11 there was one coordinate rule, x / scale, and nearest took the element below when growing
 * and the one above when shrinking. Nearest works axis by axis, so growing axes first and shrinking the
 * others after it is the same thing in two nodes of the newest meaning. */
#include "core/import/internal.h"

static bool is_empty_constant(const ent_module *module, uint32_t value) {
    return value != ENT_ID_NONE && ent_module_value(module, value)->constant &&
           ent_value_elements(module, value) == 0;
}

static void trim_inputs(ent_import_draft *draft) {
    while (draft->input_count > 0 && draft->inputs[draft->input_count - 1] == ENT_ID_NONE)
        draft->input_count--;
}

/* True when some constant scale is above (sign > 0) or below 1, or when the scales are not constant. */
static bool some_scale(ent_import_draft *draft, uint32_t scales, int sign) {
    const ent_constant *constant = ent_module_value(draft->importer->module, scales)->constant;
    if (!constant || constant->tensor.dtype != ENT_DTYPE_F32) return true;
    const float *items = constant->tensor.data;
    int64_t count = ent_value_elements(draft->importer->module, scales);
    for (int64_t i = 0; i < count; i++)
        if (sign > 0 ? items[i] > 1 : items[i] < 1) return true;
    return false;
}

static void put_asymmetric(ent_import_draft *draft, const char *nearest_mode) {
    ent_module *module = draft->importer->module;
    ent_import_attr_take(draft, "nearest_mode", NULL);
    ent_import_attr_take(draft, "coordinate_transformation_mode", NULL);
    ent_import_attr_put(draft, ent_attr_string(module, "coordinate_transformation_mode", "asymmetric"));
    ent_import_attr_put(draft, ent_attr_string(module, "nearest_mode", nearest_mode));
}

/* inputs: x, scales -> x, -, scales of the newest meaning. */
static ent_status from_scales(ent_import_draft *draft) {
    ent_module *module = draft->importer->module;
    uint32_t x = draft->inputs[0], scales = draft->inputs[1];
    ent_attrs attrs = {draft->attrs, draft->attr_count};
    bool nearest = ent_attrs_string_is(attrs, "mode", "nearest", "nearest");
    if (!nearest && !ent_attrs_string_is(attrs, "mode", "nearest", "linear"))
        return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "attribute.value", draft->place,
                               "mode must be nearest or linear before opset 11");
    bool grows = some_scale(draft, scales, 1), shrinks = some_scale(draft, scales, -1);
    draft->op = ENT_OP_Resize;
    if (nearest && grows && shrinks) {
        uint32_t one = ent_module_add_scalar(module, draft->scope->graph, ENT_DTYPE_F32, 1);
        uint32_t pair[] = {scales, one};
        uint32_t larger = ent_import_emit(draft, ENT_OP_Max, NULL, 0, pair, 2);
        scales = ent_import_emit(draft, ENT_OP_Min, NULL, 0, pair, 2);
        uint32_t inputs[] = {x, ENT_ID_NONE, larger};
        put_asymmetric(draft, "floor");
        x = ent_import_emit(draft, ENT_OP_Resize, draft->attrs, draft->attr_count, inputs, 3);
    }
    put_asymmetric(draft, nearest && shrinks ? "ceil" : "floor");
    draft->input_count = 0;
    ent_import_input_set(draft, 0, x);
    ent_import_input_set(draft, 2, scales);
    return NULL;
}

/* tf_half_pixel_for_nn: floor((x + 0.5) / scale), which is half_pixel rounded half up. */
static ent_status from_half_pixel_for_nn(ent_import_draft *draft) {
    ent_module *module = draft->importer->module;
    ent_attrs attrs = {draft->attrs, draft->attr_count};
    if (!ent_attrs_string_is(attrs, "mode", "nearest", "nearest") ||
        !ent_attrs_string_is(attrs, "nearest_mode", "round_prefer_floor", "floor"))
        return ent_status_make(
            draft->importer->arena, ENT_ERROR_UNSUPPORTED, "attribute.value", draft->place,
            "tf_half_pixel_for_nn is supported only with mode nearest and nearest_mode floor");
    ent_import_attr_take(draft, "nearest_mode", NULL);
    ent_import_attr_take(draft, "coordinate_transformation_mode", NULL);
    ent_import_attr_put(draft, ent_attr_string(module, "coordinate_transformation_mode", "half_pixel"));
    ent_import_attr_put(draft, ent_attr_string(module, "nearest_mode", "round_prefer_ceil"));
    return NULL;
}

ent_status ent_import_upgrade_resize(ent_import_draft *draft) {
    ent_module *module = draft->importer->module;
    if (draft->opset < 11) return from_scales(draft);
    ent_attrs attrs = {draft->attrs, draft->attr_count};
    const char *transformation = "coordinate_transformation_mode";
    if (draft->opset < 13 && ent_attrs_string_is(attrs, transformation, "half_pixel", "tf_half_pixel_for_nn"))
        ENT_TRY(from_half_pixel_for_nn(draft));
    attrs = (ent_attrs){draft->attrs, draft->attr_count};
    bool crops = ent_attrs_string_is(attrs, transformation, "half_pixel", "tf_crop_and_resize");
    /* Exporters write empty tensors where the format means an absent input, and roi where nothing reads it.
     */
    if (draft->input_count > 1 && !crops) draft->inputs[1] = ENT_ID_NONE;
    for (uint32_t i = 1; i < draft->input_count; i++)
        if (is_empty_constant(module, draft->inputs[i])) draft->inputs[i] = ENT_ID_NONE;
    trim_inputs(draft);
    return NULL;
}

ent_status ent_import_upgrade_upsample(ent_import_draft *draft) {
    ent_attr scales;
    if (ent_import_attr_take(draft, "scales", &scales)) {
        ent_module *module = draft->importer->module;
        float *items = ent_arena_array(draft->importer->arena, scales.count + 1, sizeof *items);
        if (!items) return ent_status_out_of_memory();
        for (uint32_t i = 0; i < scales.count; i++) items[i] = (float)scales.floats[i];
        int64_t dims[] = {(int64_t)scales.count};
        ent_import_input_set(draft, 1,
                             ent_module_add_constant(module, draft->scope->graph, NULL, ENT_DTYPE_F32, 1,
                                                     dims, items, scales.count * sizeof *items, true));
    }
    return from_scales(draft);
}
