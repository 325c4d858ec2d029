/* Reductions inside a group, over the tile axes that hold the reduced dims. */
#include <math.h>

#include "core/fusion/internal.h"

static uint16_t reduced_dims(fusion_body *body, const fusion_item *item) {
    uint32_t axes = 0;
    uint16_t dims = 0;
    const fusion_value *v = fusion_group_find(body->group, item->inputs[0]);
    fusion_item_axes(body->group->context, item, &axes);
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++)
        if (axes & 1u << i && v->to_dim[i] != FUSION_NONE) dims |= (uint16_t)(1u << v->to_dim[i]);
    return dims;
}

static double reduced_count(const fusion_body *body, uint16_t dims) {
    double count = 1;
    for (uint32_t d = 0; d < body->group->dim_count; d++)
        if (dims >> d & 1) count *= (double)body->group->dims[d];
    return count;
}

/* dst = kind over dims; a copy when every reduced axis has one element. */
static void emit_over(fusion_body *body, ent_reduce_kind kind, uint32_t dst, uint32_t src, uint16_t dims) {
    uint32_t mask = 0;
    for (uint32_t d = 0; d < body->group->dim_count; d++)
        if (dims >> d & 1) mask |= 1u << body->space->axes[body->space->axis_of[d]].recipe.tile_axis;
    if (mask)
        ent_tile_builder_reduce(&body->builder, kind, dst, src, mask);
    else
        ent_tile_builder_map1(&body->builder, ENT_MAP_COPY, dst, src, 0, 0);
}

const fusion_reduce_form *fusion_reduce_form_of(uint32_t op) {
    static const fusion_reduce_form forms[] = {
        {ENT_OP_ReduceSum, ENT_MAP_NONE, ENT_REDUCE_SUM, ENT_MAP_NONE, false},
        {ENT_OP_ReduceMean, ENT_MAP_NONE, ENT_REDUCE_SUM, ENT_MAP_NONE, true},
        {ENT_OP_ReduceMax, ENT_MAP_NONE, ENT_REDUCE_MAX, ENT_MAP_NONE, false},
        {ENT_OP_ReduceMin, ENT_MAP_NONE, ENT_REDUCE_MIN, ENT_MAP_NONE, false},
        {ENT_OP_ReduceProd, ENT_MAP_NONE, ENT_REDUCE_PROD, ENT_MAP_NONE, false},
        {ENT_OP_ReduceL1, ENT_MAP_ABS, ENT_REDUCE_SUM, ENT_MAP_NONE, false},
        {ENT_OP_ReduceL2, ENT_MAP_SQUARE, ENT_REDUCE_SUM, ENT_MAP_SQRT, false},
        {ENT_OP_ReduceSumSquare, ENT_MAP_SQUARE, ENT_REDUCE_SUM, ENT_MAP_NONE, false},
        {ENT_OP_ReduceLogSum, ENT_MAP_NONE, ENT_REDUCE_SUM, ENT_MAP_LOG, false},
        {ENT_OP_GlobalAveragePool, ENT_MAP_NONE, ENT_REDUCE_SUM, ENT_MAP_NONE, true},
        {ENT_OP_GlobalMaxPool, ENT_MAP_NONE, ENT_REDUCE_MAX, ENT_MAP_NONE, false},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].op == op) return &forms[i];
    return NULL;
}

uint32_t fusion_sum_dtype(uint32_t dtype) {
    return dtype == ENT_DTYPE_F16 || dtype == ENT_DTYPE_BF16 ? ENT_DTYPE_F32 : dtype;
}

/* What several passes read: the tile itself, or its f32 copy where the dtype has too little range and
 * precision for sums and squares. out_owned: the pass may write to it. */
static uint32_t read_wide(fusion_body *body, const fusion_value *v, uint32_t *out_dtype, bool *out_owned) {
    uint32_t dtype = fusion_value_of(body->group->context, v->value)->dtype,
             src = fusion_body_read(body, v->value);
    *out_dtype = fusion_sum_dtype(dtype);
    *out_owned = *out_dtype != dtype || body->owned[v - body->group->values];
    if (*out_dtype == dtype) return src;
    uint32_t wide = fusion_body_tile(body, *out_dtype, v->mask);
    ent_tile_builder_map1(&body->builder, ENT_MAP_COPY, wide, src, 0, 0);
    return wide;
}

/* The result in the dtype of the item's output. */
static uint32_t narrowed(fusion_body *body, const fusion_item *item, uint32_t tile, uint16_t dims) {
    uint32_t dtype = fusion_value_of(body->group->context, item->outputs[0])->dtype;
    if (fusion_sum_dtype(dtype) == dtype) return tile;
    uint32_t narrow = fusion_body_tile(body, dtype, dims);
    ent_tile_builder_map1(&body->builder, ENT_MAP_COPY, narrow, tile, 0, 0);
    return narrow;
}

void fusion_emit_reduce_finish(fusion_body *body, const fusion_item *item, uint32_t tile) {
    const fusion_reduce_form *form = fusion_reduce_form_of(item->op);
    ent_tile_builder *b = &body->builder;
    if (form->mean)
        ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, tile, tile,
                              1 / reduced_count(body, reduced_dims(body, item)), -0.0);
    if (form->after) ent_tile_builder_map1(b, (ent_tile_map)form->after, tile, tile, 0, 0);
    uint16_t kept = fusion_group_find(body->group, item->outputs[0])->mask;
    fusion_body_set(body, item->outputs[0], narrowed(body, item, tile, kept));
}

uint32_t fusion_emit_reduce_part(fusion_body *body, const fusion_item *item) {
    const fusion_reduce_form *form = fusion_reduce_form_of(item->op);
    const fusion_value *v = fusion_group_find(body->group, item->inputs[0]);
    bool owned = false;
    uint32_t dtype = 0, src = read_wide(body, v, &dtype, &owned);
    uint16_t dims = reduced_dims(body, item);
    if (form->before) {
        uint32_t mapped = owned ? src : fusion_body_tile(body, dtype, v->mask);
        ent_tile_builder_map1(&body->builder, (ent_tile_map)form->before, mapped, src, 0, 0);
        src = mapped;
    }
    uint32_t dst = fusion_body_tile(body, dtype, (uint16_t)(v->mask & ~dims));
    emit_over(body, form->kind, dst, src, dims);
    return dst;
}

/* Softmax as every numerically safe implementation writes it: exp(x - max) / sum. */
static void emit_softmax(fusion_body *body, const fusion_item *item) {
    const fusion_value *v = fusion_group_find(body->group, item->inputs[0]);
    bool owned = false;
    uint32_t dtype = 0, src = read_wide(body, v, &dtype, &owned);
    uint16_t dims = reduced_dims(body, item), rest = (uint16_t)(v->mask & ~dims);
    ent_tile_builder *b = &body->builder;
    uint32_t max = fusion_body_tile(body, dtype, rest), sum = fusion_body_tile(body, dtype, rest);
    bool log = item->op == ENT_OP_LogSoftmax;
    uint32_t shifted = owned ? src : fusion_body_tile(body, dtype, v->mask);
    emit_over(body, ENT_REDUCE_MAX, max, src, dims);
    ent_tile_builder_map2(b, ENT_MAP_SUB, shifted, src, max);
    uint32_t power = log ? fusion_body_tile(body, dtype, v->mask) : shifted;
    ent_tile_builder_map1(b, ENT_MAP_EXP, power, shifted, 0, 0);
    emit_over(body, ENT_REDUCE_SUM, sum, power, dims);
    if (log) ent_tile_builder_map1(b, ENT_MAP_LOG, sum, sum, 0, 0);
    ent_tile_builder_map2(b, log ? ENT_MAP_SUB : ENT_MAP_DIV, shifted, shifted, sum);
    fusion_body_set(body, item->outputs[0], narrowed(body, item, shifted, v->mask));
}

static void emit_log_sum_exp(fusion_body *body, const fusion_item *item) {
    const fusion_value *v = fusion_group_find(body->group, item->inputs[0]);
    bool owned = false;
    uint32_t dtype = 0, src = read_wide(body, v, &dtype, &owned);
    uint16_t dims = reduced_dims(body, item), rest = (uint16_t)(v->mask & ~dims);
    ent_tile_builder *b = &body->builder;
    uint32_t max = fusion_body_tile(body, dtype, rest), sum = fusion_body_tile(body, dtype, rest);
    uint32_t shifted = owned ? src : fusion_body_tile(body, dtype, v->mask);
    emit_over(body, ENT_REDUCE_MAX, max, src, dims);
    ent_tile_builder_map2(b, ENT_MAP_SUB, shifted, src, max);
    ent_tile_builder_map1(b, ENT_MAP_EXP, shifted, shifted, 0, 0);
    emit_over(body, ENT_REDUCE_SUM, sum, shifted, dims);
    ent_tile_builder_map1(b, ENT_MAP_LOG, sum, sum, 0, 0);
    ent_tile_builder_map2(b, ENT_MAP_ADD, sum, sum, max);
    fusion_body_set(body, item->outputs[0], narrowed(body, item, sum, rest));
}

/* (x - mean) / sqrt(variance + epsilon) * scale + bias, variance in a second pass over the tile. */
static void emit_layer_norm(fusion_body *body, const fusion_item *item) {
    const fusion_value *v = fusion_group_find(body->group, item->inputs[0]);
    bool owned = false;
    uint32_t dtype = 0, src = read_wide(body, v, &dtype, &owned);
    uint16_t dims = reduced_dims(body, item), rest = (uint16_t)(v->mask & ~dims);
    double share = 1 / reduced_count(body, dims), epsilon = ent_attrs_float(item->attrs, "epsilon", 1e-5);
    ent_tile_builder *b = &body->builder;
    uint32_t mean = fusion_body_tile(body, dtype, rest), variance = fusion_body_tile(body, dtype, rest);
    uint32_t centred = owned ? src : fusion_body_tile(body, dtype, v->mask);
    uint32_t square = fusion_body_tile(body, dtype, v->mask);
    emit_over(body, ENT_REDUCE_SUM, mean, src, dims);
    ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, mean, mean, share, -0.0);
    ent_tile_builder_map2(b, ENT_MAP_SUB, centred, src, mean);
    ent_tile_builder_map1(b, ENT_MAP_SQUARE, square, centred, 0, 0);
    emit_over(body, ENT_REDUCE_SUM, variance, square, dims);
    ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, variance, variance, share, epsilon);
    ent_tile_builder_map1(b, ENT_MAP_RSQRT, variance, variance, 0, 0);
    ent_tile_builder_map2(b, ENT_MAP_MUL, centred, centred, variance);
    centred = narrowed(body, item, centred, v->mask);
    for (uint32_t i = 1; i < item->input_count; i++)
        if (item->inputs[i] != ENT_ID_NONE)
            ent_tile_builder_map2(b, i == 1 ? ENT_MAP_MUL : ENT_MAP_ADD, centred, centred,
                                  fusion_body_read(body, item->inputs[i]));
    fusion_body_set(body, item->outputs[0], centred);
}

void fusion_emit_reduce(fusion_body *body, const fusion_item *item) {
    switch (item->op) {
    case ENT_OP_Softmax:
    case ENT_OP_LogSoftmax:
        emit_softmax(body, item);
        break;
    case ENT_OP_ReduceLogSumExp:
        emit_log_sum_exp(body, item);
        break;
    case ENT_OP_LayerNormalization:
        emit_layer_norm(body, item);
        break;
    default:
        fusion_emit_reduce_finish(body, item, fusion_emit_reduce_part(body, item));
        break;
    }
}
