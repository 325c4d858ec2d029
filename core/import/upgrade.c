/* Old meaning -> newest meaning, one function an operator, bound by this table. `below`: the first opset
 * whose meaning is already the newest; a node of an opset below it goes through the function. Whatever is not
 * listed never changed its meaning since opset 7, only the types it takes. */
#include "core/import/internal.h"

#include <string.h>

typedef struct upgrade {
    uint32_t op;
    int64_t below;
    ent_status (*apply)(ent_import_draft *draft);
} upgrade;

#define EVERY_OPSET (ENT_IMPORT_MAX_OPSET + 1)

/* size: table */
static const upgrade upgrades[] = {
    {ENT_OP_Clip, 11, ent_import_upgrade_clip},
    {ENT_OP_ReduceSum, 13, ent_import_upgrade_reduce},
    {ENT_OP_ReduceMean, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceMax, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceMin, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceProd, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceL1, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceL2, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceSumSquare, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceLogSum, 18, ent_import_upgrade_reduce},
    {ENT_OP_ReduceLogSumExp, 18, ent_import_upgrade_reduce},
    {ENT_OP_Softmax, 13, ent_import_upgrade_softmax},
    {ENT_OP_LogSoftmax, 13, ent_import_upgrade_softmax},
    {ENT_OP_Squeeze, 13, ent_import_upgrade_squeeze},
    {ENT_OP_Unsqueeze, 13, ent_import_upgrade_squeeze},
    {ENT_OP_Slice, 10, ent_import_upgrade_slice},
    {ENT_OP_Split, 18, ent_import_upgrade_split},
    {ENT_OP_Pad, 11, ent_import_upgrade_pad},
    {ENT_OP_Resize, EVERY_OPSET, ent_import_upgrade_resize},
    {ENT_OP_NONE, 10, ent_import_upgrade_upsample},
    {ENT_OP_TopK, 10, ent_import_upgrade_topk},
    {ENT_OP_GridSample, 20, ent_import_upgrade_grid_sample},
    {ENT_OP_RoiAlign, 16, ent_import_upgrade_roi_align},
    {ENT_OP_Range, EVERY_OPSET, ent_import_upgrade_range},
    {ENT_OP_Scan, 9, ent_import_upgrade_batched_scan},
    {ENT_OP_Dropout, EVERY_OPSET, ent_import_upgrade_dropout},
    {ENT_OP_BatchNormalization, EVERY_OPSET, ent_import_upgrade_batch_norm},
    {ENT_OP_GroupNormalization, 21, ent_import_upgrade_group_norm},
    {ENT_OP_Hardmax, 13, ent_import_upgrade_softmax},
    {ENT_OP_DFT, 20, ent_import_upgrade_dft},
    {ENT_OP_Bernoulli, EVERY_OPSET, ent_import_upgrade_random},
    {ENT_OP_RandomNormal, EVERY_OPSET, ent_import_upgrade_random},
    {ENT_OP_RandomNormalLike, EVERY_OPSET, ent_import_upgrade_random},
    {ENT_OP_RandomUniform, EVERY_OPSET, ent_import_upgrade_random},
    {ENT_OP_RandomUniformLike, EVERY_OPSET, ent_import_upgrade_random},
    {ENT_OP_Multinomial, EVERY_OPSET, ent_import_upgrade_random},
};

ent_status ent_import_upgrade(ent_import_draft *draft) {
    if (draft->expand) return draft->expand(draft);
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        if (upgrades[i].op == draft->op && draft->opset < upgrades[i].below) return upgrades[i].apply(draft);
    return NULL;
}

uint32_t ent_import_emit_to(ent_import_draft *draft, uint32_t op, const ent_attr *attrs, uint32_t attr_count,
                            const uint32_t *inputs, uint32_t input_count, uint32_t output) {
    ent_module *module = draft->importer->module;
    ent_node_spec spec = {.op = op,
                          .name = draft->name,
                          .attrs = ent_attrs_make(module, attrs, attr_count),
                          .inputs = inputs,
                          .input_count = input_count,
                          .outputs = output == ENT_ID_NONE ? NULL : &output,
                          .output_count = 1,
                          .origins = &draft->origin,
                          .origin_count = 1};
    uint32_t node = ent_module_add_node(module, draft->scope->graph, &spec, ENT_ID_NONE);
    return ent_module_node(module, node)->outputs[0];
}

uint32_t ent_import_emit(ent_import_draft *draft, uint32_t op, const ent_attr *attrs, uint32_t attr_count,
                         const uint32_t *inputs, uint32_t input_count) {
    return ent_import_emit_to(draft, op, attrs, attr_count, inputs, input_count, ENT_ID_NONE);
}

void ent_import_input_set(ent_import_draft *draft, uint32_t index, uint32_t value) {
    while (draft->input_count <= index) draft->inputs[draft->input_count++] = ENT_ID_NONE;
    draft->inputs[index] = value;
}

uint32_t ent_import_scalar_like(ent_import_draft *draft, double value, uint32_t like) {
    ent_module *module = draft->importer->module;
    uint32_t dtype = ent_module_value(module, like)->dtype;
    if (dtype != ENT_DTYPE_NONE) return ent_module_add_scalar(module, draft->scope->graph, dtype, value);
    uint32_t inputs[] = {ent_module_add_scalar(module, draft->scope->graph, ENT_DTYPE_F32, value), like};
    uint32_t output = ent_import_emit(draft, ENT_OP_CastLike, NULL, 0, inputs, 2);
    ent_import_pending pending = {ENT_IMPORT_PENDING_CAST_LIKE, ent_module_value(module, output)->producer};
    ent_array_push(draft->importer->scratch, &draft->importer->pending, pending);
    return output;
}

static void finish_cast_like(ent_importer *importer, uint32_t id) {
    ent_module *module = importer->module;
    const ent_node *node = ent_module_node(module, id);
    uint32_t dtype = ent_module_value(module, node->inputs[1])->dtype, from = node->outputs[0];
    double value = 0;
    if (dtype == ENT_DTYPE_NONE || !ent_value_scalar(module, node->inputs[0], &value)) return;
    uint32_t to = ent_module_add_scalar(module, node->graph, dtype, value);
    ent_module_remove_node(module, id);
    ent_module_replace_value(module, from, to);
}

/* The module is consistent at this point; where an old definition depends on shapes or dtypes, they are
 * inferred now. */
ent_status ent_import_upgrade_finish(ent_importer *importer) {
    if (importer->pending.count == 0) return NULL;
    ENT_TRY(ent_module_infer(importer->module, importer->scratch));
    for (uint32_t i = 0; i < importer->pending.count; i++) {
        const ent_import_pending *pending = &importer->pending.items[i];
        if (pending->kind == ENT_IMPORT_PENDING_CAST_LIKE) finish_cast_like(importer, pending->node);
        if (pending->kind == ENT_IMPORT_PENDING_FLAT_SOFTMAX)
            ENT_TRY(ent_import_finish_softmax(importer, pending->node));
    }
    return NULL;
}
