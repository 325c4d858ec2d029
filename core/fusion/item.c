/* What a group can do with an item: its class, and which inputs it reads as tensors. */
#include "core/fusion/internal.h"

bool fusion_dtype_in_tile(uint32_t dtype) {
    return dtype >= ENT_DTYPE_F32 && dtype <= ENT_DTYPE_BOOL;
}

bool fusion_item_reads(const fusion_item *item, uint32_t input) {
    if (input >= item->input_count || item->inputs[input] == ENT_ID_NONE) return false;
    if (input == 0) return true;
    switch (item->op) {
    case ENT_OP_Reshape:
    case ENT_OP_Unsqueeze:
    case ENT_OP_Squeeze:
    case ENT_OP_Expand:
    case ENT_OP_Dropout:
    case ENT_OP_CastLike:
    case ENT_OP_Slice:
    case ENT_OP_Pad:
    case ENT_OP_Tile:
    case ENT_OP_Split:
    case ENT_OP_Resize:
    case ENT_OP_ReduceSum:
    case ENT_OP_ReduceMean:
    case ENT_OP_ReduceMax:
    case ENT_OP_ReduceMin:
    case ENT_OP_ReduceProd:
    case ENT_OP_ReduceL1:
    case ENT_OP_ReduceL2:
    case ENT_OP_ReduceSumSquare:
    case ENT_OP_ReduceLogSum:
    case ENT_OP_ReduceLogSumExp:
        return false;
    case ENT_OP_MatMulInteger:
    case ENT_OP_ConvInteger:
        return input == 1; /* zero points are numbers in the program */
    default:
        return true;
    }
}

static bool is_reduce(uint32_t op) {
    return op >= ENT_OP_ReduceSum && op <= ENT_OP_ReduceLogSumExp;
}

bool fusion_item_axes(const fusion_context *context, const fusion_item *item, uint32_t *out_mask) {
    const ent_value *x = fusion_value_of(context, item->inputs[0]);
    int64_t axes[ENT_MAX_RANK];
    uint32_t count = 0;
    *out_mask = 0;
    if (item->op == ENT_OP_GlobalAveragePool || item->op == ENT_OP_GlobalMaxPool) {
        for (uint32_t i = 2; i < x->rank; i++) *out_mask |= 1u << i;
        return true;
    }
    if (item->op == ENT_OP_Softmax || item->op == ENT_OP_LogSoftmax ||
        item->op == ENT_OP_LayerNormalization) {
        int64_t axis = ent_attrs_int(item->attrs, "axis", -1);
        if (axis < 0) axis += x->rank;
        if (axis < 0 || axis >= x->rank) return false;
        *out_mask = 1u << axis;
        for (uint32_t i = (uint32_t)axis; i < x->rank && item->op == ENT_OP_LayerNormalization; i++)
            *out_mask |= 1u << i;
        return true;
    }
    if (item->input_count > 1 && item->inputs[1] != ENT_ID_NONE) {
        if (!ent_value_i64s(context->module, item->inputs[1], axes, ENT_MAX_RANK, &count)) return false;
    }
    if (count == 0) {
        if (ent_attrs_int(item->attrs, "noop_with_empty_axes", 0)) return false;
        *out_mask = (1u << x->rank) - 1;
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (axis < 0 || axis >= x->rank) return false;
        *out_mask |= 1u << axis;
    }
    return true;
}

static bool values_fit(const fusion_context *context, const fusion_item *item) {
    for (uint32_t i = 0; i < item->input_count + item->output_count; i++) {
        bool input = i < item->input_count;
        uint32_t value = input ? item->inputs[i] : item->outputs[i - item->input_count];
        if (value == ENT_ID_NONE || (input && !fusion_item_reads(item, i))) continue;
        if (context->layouts->counts[value] == 0 ||
            !fusion_dtype_in_tile(fusion_value_of(context, value)->dtype))
            return false;
        if (ent_value_elements(context->module, value) <= 0) return false;
    }
    return true;
}

static uint32_t extra_outputs(const fusion_item *item) {
    uint32_t count = 0;
    for (uint32_t i = 1; i < item->output_count; i++) count += item->outputs[i] != ENT_ID_NONE;
    return count;
}

static bool float_operand(const fusion_context *context, const fusion_item *item) {
    uint32_t dtype = fusion_value_of(context, item->inputs[0])->dtype;
    return dtype >= ENT_DTYPE_F32 && dtype <= ENT_DTYPE_F64;
}

static uint32_t reduce_class(const fusion_context *context, const fusion_item *item) {
    uint32_t mask = 0, dtype = fusion_value_of(context, item->inputs[0])->dtype;
    if (dtype == ENT_DTYPE_BOOL || !fusion_item_axes(context, item, &mask) || extra_outputs(item))
        return FUSION_UNSUPPORTED;
    bool integers = item->op == ENT_OP_ReduceSum || item->op == ENT_OP_ReduceMax ||
                    item->op == ENT_OP_ReduceMin || item->op == ENT_OP_ReduceProd ||
                    item->op == ENT_OP_ReduceL1 || item->op == ENT_OP_ReduceSumSquare;
    return integers || float_operand(context, item) ? FUSION_REDUCE : FUSION_UNSUPPORTED;
}

uint32_t fusion_item_class(const fusion_context *context, const fusion_item *item) {
    const char *reason = NULL;
    if (item->input_count == 0 || item->inputs[0] == ENT_ID_NONE || item->output_count == 0 ||
        item->outputs[0] == ENT_ID_NONE)
        return FUSION_UNSUPPORTED;
    if (!values_fit(context, item)) return FUSION_UNSUPPORTED;
    switch (item->op) {
    case ENT_OP_Identity:
    case ENT_OP_Transpose:
    case ENT_OP_Unsqueeze:
    case ENT_OP_Squeeze:
    case ENT_OP_Expand:
        return FUSION_RELABEL;
    case ENT_OP_Dropout:
        return extra_outputs(item) ? FUSION_UNSUPPORTED : FUSION_RELABEL;
    case ENT_OP_Reshape:
    case ENT_OP_Flatten:
        return fusion_same_axes(context->module, item->inputs[0], item->outputs[0]) ? FUSION_RELABEL
                                                                                    : FUSION_MOVE;
    case ENT_OP_Softmax:
    case ENT_OP_LogSoftmax:
    case ENT_OP_GlobalAveragePool:
    case ENT_OP_GlobalMaxPool:
    case ENT_OP_LayerNormalization:
        return reduce_class(context, item);
    case ENT_OP_MatMul:
    case ENT_OP_Gemm:
    case ENT_OP_Conv:
    case ENT_OP_ConvTranspose:
    case ENT_OP_MatMulInteger:
    case ENT_OP_ConvInteger:
    case ENT_OP_MaxPool:
    case ENT_OP_AveragePool:
        return FUSION_ANCHOR;
    default:
        break;
    }
    if (is_reduce(item->op)) return reduce_class(context, item);
    if (fusion_emit_supported(context, item, &reason)) return FUSION_ELEMENTWISE;
    const ent_op_info *info = ent_op_info_get(item->op);
    return info && (info->op_class == ENT_CLASS_MOVEMENT || item->op == ENT_OP_Resize) ? FUSION_MOVE
                                                                                       : FUSION_UNSUPPORTED;
}
