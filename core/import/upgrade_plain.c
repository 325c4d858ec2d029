/* Upgrades that need neither shapes nor several nodes: Clip, Range, Dropout, BatchNormalization, TopK,
 * GridSample, RoiAlign. */
#include "core/import/internal.h"

#include <float.h>

/* The defaults were the limits of f32, which cut off only the infinities; that is kept. */
ent_status ent_import_upgrade_clip(ent_import_draft *draft) {
    ent_attr low, high;
    bool has_low = ent_import_attr_take(draft, "min", &low),
         has_high = ent_import_attr_take(draft, "max", &high);
    bool open_low = !has_low || low.f <= -(double)FLT_MAX, open_high = !has_high || high.f >= (double)FLT_MAX;
    if (!open_low) ent_import_input_set(draft, 1, ent_import_scalar_like(draft, low.f, draft->inputs[0]));
    if (!open_high) ent_import_input_set(draft, 2, ent_import_scalar_like(draft, high.f, draft->inputs[0]));
    return NULL;
}

/* stash_type 1 says that 16-bit floats are counted up in f32, which is how they are evaluated here. */
ent_status ent_import_upgrade_range(ent_import_draft *draft) {
    ent_attr type;
    if (ent_import_attr_take(draft, "stash_type", &type) && type.i != 1)
        return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "attribute.value", draft->place,
                               "stash_type %lld is not supported, only 1 is", (long long)type.i);
    return NULL;
}

/* All true, in the shape of the input. */
static void emit_mask(ent_import_draft *draft) {
    ent_importer *importer = draft->importer;
    uint8_t *data = ent_arena_alloc(importer->arena, 1);
    ent_tensor *one = ent_arena_alloc(importer->arena, sizeof *one);
    *data = 1;
    *one = (ent_tensor){.data = data,
                        .size_bytes = 1,
                        .dtype = ENT_DTYPE_BOOL,
                        .rank = 1,
                        .dims = {1},
                        .layout = ent_layout_plain(1)};
    ent_attr value = {.name = {"value", 5}, .type = ENT_ATTR_TENSOR, .tensor = one};
    uint32_t shape = ent_import_emit(draft, ENT_OP_Shape, NULL, 0, draft->inputs, 1);
    ent_node_spec spec = {.op = ENT_OP_ConstantOfShape,
                          .name = draft->name,
                          .attrs = ent_attrs_make(importer->module, &value, 1),
                          .inputs = &shape,
                          .input_count = 1,
                          .outputs = &draft->outputs[1],
                          .output_count = 1,
                          .origins = &draft->origin,
                          .origin_count = 1};
    ent_module_add_node(importer->module, draft->scope->graph, &spec, ENT_ID_NONE);
}

static ent_status training(const ent_import_draft *draft, const char *what) {
    return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "operator.training", draft->place,
                           "%s; export the model for inference", what);
}

/* In inference it hands its input through. Where training_mode is not known yet, or draws no numbers because
 * the ratio is 0, it stays a node. */
ent_status ent_import_upgrade_dropout(ent_import_draft *draft) {
    const ent_module *module = draft->importer->module;
    if (draft->input_count == 3 && draft->inputs[2] != ENT_ID_NONE) {
        double mode = 0, ratio = 0.5;
        bool known = ent_value_scalar(module, draft->inputs[2], &mode);
        if (known && mode != 0 &&
            (draft->inputs[1] == ENT_ID_NONE || ent_value_scalar(module, draft->inputs[1], &ratio)) &&
            ratio != 0)
            return training(draft, "training_mode is true and the ratio is not 0");
        if (!known || mode != 0) return NULL;
    }
    if (draft->output_count == 2 && draft->outputs[1] != ENT_ID_NONE) {
        if (draft->opset < 10) return training(draft, "the mask of Dropout before opset 10 is read");
        emit_mask(draft);
    }
    draft->op = ENT_OP_Identity;
    draft->attr_count = 0;
    draft->input_count = 1;
    draft->output_count = 1;
    return NULL;
}

ent_status ent_import_upgrade_batch_norm(ent_import_draft *draft) {
    ent_attr spatial;
    const ent_attr *mode = ent_import_attr(draft, "training_mode");
    bool trains = mode && mode->i != 0;
    for (uint32_t i = 1; i < draft->output_count && !trains; i++)
        if (draft->outputs[i] != ENT_ID_NONE)
            return training(draft, "the statistics that only training computes are read");
    if (!trains) draft->output_count = 1;
    if (ent_import_attr_take(draft, "spatial", &spatial) && spatial.i != 1)
        return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "attribute.value", draft->place,
                               "spatial %lld is not supported, only 1 is", (long long)spatial.i);
    return NULL;
}

ent_status ent_import_upgrade_topk(ent_import_draft *draft) {
    ent_attr k;
    if (!ent_import_attr_take(draft, "k", &k)) return NULL;
    ent_import_input_set(draft, 1,
                         ent_module_add_i64s(draft->importer->module, draft->scope->graph, &k.i, 1));
    return NULL;
}

/* The modes lost their prefix when volumes came in. */
ent_status ent_import_upgrade_grid_sample(ent_import_draft *draft) {
    ent_module *module = draft->importer->module;
    ent_attr mode;
    if (!ent_import_attr_take(draft, "mode", &mode)) return NULL;
    ent_attrs given = {&mode, 1};
    if (ent_attrs_string_is(given, "mode", "", "bilinear")) mode = ent_attr_string(module, "mode", "linear");
    if (ent_attrs_string_is(given, "mode", "", "bicubic")) mode = ent_attr_string(module, "mode", "cubic");
    ent_import_attr_put(draft, mode);
    return NULL;
}

/* Before opset 16 boxes were not moved by half a pixel. */
ent_status ent_import_upgrade_roi_align(ent_import_draft *draft) {
    ent_import_attr_put(draft, ent_attr_string(draft->importer->module, "coordinate_transformation_mode",
                                               "output_half_pixel"));
    return NULL;
}
