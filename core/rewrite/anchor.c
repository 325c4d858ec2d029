/* Contractions with constant weights, as fold-scales sees them. */
#include "core/rewrite/affine.h"

#include <math.h>

#include "core/ops/ops.h"

static const ent_tensor *weights_of(const ent_rewrite_context *context, const ent_node *node) {
    bool takes = node->op == ENT_OP_Conv || node->op == ENT_OP_ConvTranspose || node->op == ENT_OP_Gemm ||
                 node->op == ENT_OP_MatMul;
    const ent_tensor *w = takes ? ent_rewrite_float_tensor(context, node->inputs[1]) : NULL;
    return w && w->rank >= 2 && ent_value_elements(context->module, node->inputs[1]) > 0 ? w : NULL;
}

static bool is_transposed(const ent_node *node) {
    return node->op == ENT_OP_Gemm && ent_attrs_int(node->attrs, "transB", 0) != 0;
}

bool ent_anchor_of_result(const ent_rewrite_context *context, uint32_t id, ent_anchor *out) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_tensor *w = weights_of(context, node);
    if (!w || node->outputs[0] == ENT_ID_NONE) return false;
    const ent_value *y = ent_module_value(context->module, node->outputs[0]);
    int64_t group = ent_attrs_int(node->attrs, "group", 1);
    if (y->rank == ENT_RANK_UNKNOWN || y->rank < 2 || group < 1) return false;
    *out = (ent_anchor){id, 1, 0, INT64_MAX, w->dims[0]};
    if (node->op == ENT_OP_Conv || is_transposed(node)) return true;
    if (node->op == ENT_OP_ConvTranspose) {
        *out = (ent_anchor){id, 1, 1, w->dims[0] / group, w->dims[1] * group};
        return w->dims[0] % group == 0 && out->rows > 0;
    }
    if (w->rank != 2) return false;
    *out = (ent_anchor){id, y->rank - 1, 1, INT64_MAX, w->dims[1]};
    return true;
}

bool ent_anchor_of_input(const ent_rewrite_context *context, uint32_t id, ent_anchor *out) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_tensor *w = weights_of(context, node);
    if (!w) return false;
    const ent_value *x = ent_module_value(context->module, node->inputs[0]);
    int64_t group = ent_attrs_int(node->attrs, "group", 1);
    if (x->rank == ENT_RANK_UNKNOWN || x->rank < 2 || group < 1) return false;
    switch (node->op) {
    case ENT_OP_Conv:
        *out = (ent_anchor){id, 1, 1, w->dims[0] / group, w->dims[1] * group};
        return w->dims[0] % group == 0 && out->rows > 0;
    case ENT_OP_ConvTranspose:
        *out = (ent_anchor){id, 1, 0, INT64_MAX, w->dims[0]};
        return true;
    default: {
        uint32_t axis = is_transposed(node) ? 1 : 0;
        *out = (ent_anchor){id, x->rank - 1, axis, INT64_MAX, w->dims[axis]};
        return w->rank == 2 && ent_attrs_int(node->attrs, "transA", 0) == 0;
    }
    }
}

static const ent_tensor *anchor_weights(const ent_rewrite_context *context, const ent_anchor *anchor) {
    const ent_node *node = ent_module_node(context->module, anchor->node);
    return ent_rewrite_tensor(context, node->inputs[1]);
}

/* Elements of one step along the axis, and outside it. */
static void split_dims(const ent_tensor *w, uint32_t axis, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        if (i < axis) *outer *= w->dims[i];
        if (i > axis) *inner *= w->dims[i];
    }
}

static double largest_weight(const ent_tensor *w, int64_t from, int64_t count) {
    double largest = 0;
    for (int64_t i = from; i < from + count; i++) {
        double x = w->dtype == ENT_DTYPE_F32 ? (double)((const float *)w->data)[i]
                                             : ent_ops_load_f64(w->data, w->dtype, i);
        largest = fmax(largest, fabs(x));
    }
    return largest;
}

bool ent_anchor_scales_fit(const ent_rewrite_context *context, const ent_anchor *anchor,
                           const ent_affine *map) {
    const ent_tensor *w = anchor_weights(context, anchor);
    int64_t outer, inner, width = w->dims[anchor->weight_axis];
    double limit = ent_rewrite_largest(w->dtype);
    split_dims(w, anchor->weight_axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < width; k++) {
            double scale = fabs(map->scale[o / anchor->rows * width + k]);
            if (scale > 1 && largest_weight(w, (o * width + k) * inner, inner) > limit / scale) return false;
        }
    return true;
}

uint32_t ent_anchor_scale(ent_rewrite_context *context, const ent_anchor *anchor, const ent_affine *map) {
    const ent_node *node = ent_module_node(context->module, anchor->node);
    const ent_tensor *w = anchor_weights(context, anchor);
    int64_t outer, inner, width = w->dims[anchor->weight_axis];
    if (!ent_affine_has_scale(map)) return node->inputs[1];
    void *data = ent_arena_array(context->module->arena, w->size_bytes, 1);
    if (!data) return ENT_ID_NONE;
    split_dims(w, anchor->weight_axis, &outer, &inner);
    for (int64_t o = 0; o < outer; o++) {
        const double *scale = map->scale + o / anchor->rows * width;
        for (int64_t k = 0; k < width; k++) {
            int64_t at = (o * width + k) * inner;
            if (w->dtype == ENT_DTYPE_F32) { /* the usual type: without a call an element */
                const float *from = (const float *)w->data + at;
                float *to = (float *)data + at;
                for (int64_t i = 0; i < inner; i++) to[i] = (float)(from[i] * scale[k]);
                continue;
            }
            for (int64_t i = at; i < at + inner; i++)
                ent_ops_store_f64(data, w->dtype, i, ent_ops_load_f64(w->data, w->dtype, i) * scale[k]);
        }
    }
    return ent_module_add_constant(context->module, node->graph, NULL, w->dtype, w->rank, w->dims, data,
                                   w->size_bytes, true);
}

void ent_anchor_carry(const ent_rewrite_context *context, const ent_anchor *anchor, const ent_affine *map,
                      const ent_anchor *result, double *out) {
    const ent_tensor *w = anchor_weights(context, anchor);
    int64_t outer, inner, width = w->dims[anchor->weight_axis];
    int64_t result_outer, result_inner, result_width = w->dims[result->weight_axis];
    split_dims(w, anchor->weight_axis, &outer, &inner);
    split_dims(w, result->weight_axis, &result_outer, &result_inner);
    for (int64_t c = 0; c < result->channels; c++) out[c] = 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < width; k++)
            for (int64_t i = 0; i < inner; i++) {
                int64_t at = (o * width + k) * inner + i;
                int64_t to = at / (result_inner * result_width) / result->rows * result_width +
                             at / result_inner % result_width;
                out[to] += ent_ops_load_f64(w->data, w->dtype, at) * map->shift[o / anchor->rows * width + k];
            }
}

bool ent_anchor_bias(const ent_rewrite_context *context, const ent_anchor *result, double *out) {
    const ent_node *node = ent_module_node(context->module, result->node);
    uint32_t input = ent_rewrite_input(node, 2);
    for (int64_t c = 0; c < result->channels; c++) out[c] = 0;
    if (input == ENT_ID_NONE) return true;
    const ent_tensor *bias = ent_rewrite_float_tensor(context, input);
    if (!bias || bias->rank > 2) return false;
    for (uint32_t i = 0; i + 1 < bias->rank; i++)
        if (bias->dims[i] != 1) return false;
    int64_t elements = ent_value_elements(context->module, input);
    if (elements != 1 && elements != result->channels) return false;
    for (int64_t c = 0; c < result->channels; c++)
        out[c] = ent_ops_load_f64(bias->data, bias->dtype, elements == 1 ? 0 : c);
    return true;
}
