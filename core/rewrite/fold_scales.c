/* y = x * s[c] + t[c] after a convolution or Gemm with constant weights goes into weights and bias: batch
 * normalisation, and the Mul, Div, Add and Sub by channel constants that exporters write for it. Computed in
 * double, stored in the weight's type. Changes rounding, hence not with --precision strict. */
#include <math.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/rewrite/internal.h"

typedef struct channel_map {
    double *scale, *shift; /* per output channel */
    int64_t channels;
} channel_map;

/* The channel axis of the anchor's output, and of its weight; false when the anchor is not taken. */
static bool anchor_axes(const ent_rewrite_context *context, const ent_node *node, uint32_t *out_axis,
                        uint32_t *weight_axis) {
    bool single = ent_attrs_int(node->attrs, "group", 1) == 1;
    const ent_value *out = ent_module_value(context->module, node->outputs[0]);
    if (out->rank == ENT_RANK_UNKNOWN || out->rank < 2) return false;
    *out_axis = 1;
    switch (node->op) {
    case ENT_OP_Conv:
        *weight_axis = 0;
        return true;
    case ENT_OP_ConvTranspose:
        *weight_axis = 1;
        return single;
    case ENT_OP_Gemm:
        *weight_axis = ent_attrs_int(node->attrs, "transB", 0) ? 0 : 1;
        return ent_attrs_float(node->attrs, "alpha", 1) == 1 && ent_attrs_float(node->attrs, "beta", 1) == 1;
    default:
        return false;
    }
}

static bool is_float_constant(const ent_rewrite_context *context, uint32_t value) {
    if (value == ENT_ID_NONE) return false;
    const ent_value *v = ent_module_value(context->module, value);
    return v->constant && (v->dtype == ENT_DTYPE_F32 || v->dtype == ENT_DTYPE_F64 ||
                           v->dtype == ENT_DTYPE_F16 || v->dtype == ENT_DTYPE_BF16);
}

/* The anchor that makes `value`, if it may be changed. */
static const ent_node *find_anchor(const ent_rewrite_context *context, uint32_t value, uint32_t *out_axis,
                                   uint32_t *weight_axis) {
    const ent_node *node = ent_rewrite_producer(context, value);
    if (!node || !anchor_axes(context, node, out_axis, weight_axis) ||
        !ent_rewrite_single_use(context, value))
        return NULL;
    if (!is_float_constant(context, node->inputs[1])) return NULL;
    bool has_bias = node->input_count > 2 && node->inputs[2] != ENT_ID_NONE;
    if (has_bias && !is_float_constant(context, node->inputs[2])) return NULL;
    const ent_value *weight = ent_module_value(context->module, node->inputs[1]);
    int64_t channels = weight->dims[*weight_axis];
    return !has_bias || ent_value_elements(context->module, node->inputs[2]) == channels ? node : NULL;
}

/* A constant that differs along the channel axis only. */
static bool read_channel_constant(const ent_rewrite_context *context, uint32_t value, uint32_t out_rank,
                                  uint32_t axis, int64_t channels, double *out) {
    if (!is_float_constant(context, value)) return false;
    const ent_tensor *t = &ent_module_value(context->module, value)->constant->tensor;
    int64_t elements = 1;
    for (uint32_t i = 0; i < t->rank; i++) {
        elements *= t->dims[i];
        if (t->dims[i] != 1 && i + (out_rank - t->rank) != axis) return false;
    }
    if (t->rank > out_rank || (elements != 1 && elements != channels)) return false;
    for (int64_t c = 0; c < channels; c++)
        out[c] = ent_ops_load_f64(t->data, t->dtype, elements == 1 ? 0 : c);
    return true;
}

static bool read_batch_norm(const ent_rewrite_context *context, const ent_node *node, channel_map *m) {
    double epsilon = ent_attrs_float(node->attrs, "epsilon", 1e-5);
    if (ent_attrs_int(node->attrs, "training_mode", 0) || node->input_count < 5) return false;
    for (uint32_t i = 1; i < 5; i++)
        if (!is_float_constant(context, node->inputs[i]) ||
            ent_value_elements(context->module, node->inputs[i]) != m->channels)
            return false;
    for (int64_t c = 0; c < m->channels; c++) {
        double p[4];
        for (uint32_t i = 0; i < 4; i++) {
            const ent_tensor *t = &ent_module_value(context->module, node->inputs[i + 1])->constant->tensor;
            p[i] = ent_ops_load_f64(t->data, t->dtype, c);
        }
        m->scale[c] = p[0] / sqrt(p[3] + epsilon);
        m->shift[c] = p[1] - p[2] * m->scale[c];
    }
    return true;
}

static bool read_arithmetic(const ent_rewrite_context *context, const ent_node *node, uint32_t data_input,
                            uint32_t rank, uint32_t axis, channel_map *m) {
    double *k = ent_arena_alloc(context->scratch, ((size_t)m->channels + 1) * sizeof *k);
    bool right = data_input == 0; /* x op k */
    if (!read_channel_constant(context, node->inputs[1 - data_input], rank, axis, m->channels, k))
        return false;
    if (node->op == ENT_OP_Div && !right) return false;
    for (int64_t c = 0; c < m->channels; c++) {
        m->scale[c] = node->op == ENT_OP_Mul             ? k[c]
                      : node->op == ENT_OP_Div           ? 1 / k[c]
                      : node->op == ENT_OP_Sub && !right ? -1
                                                         : 1;
        m->shift[c] = node->op == ENT_OP_Add ? k[c] : node->op == ENT_OP_Sub ? (right ? -k[c] : k[c]) : 0;
        if (!isfinite(m->scale[c]) || !isfinite(m->shift[c])) return false;
    }
    return true;
}

static uint32_t scaled_weight(ent_rewrite_context *context, const ent_node *anchor, uint32_t axis,
                              const channel_map *m) {
    const ent_tensor *w = &ent_module_value(context->module, anchor->inputs[1])->constant->tensor;
    void *data = ent_arena_array(context->module->arena, w->size_bytes + 64, 1);
    if (!data) return ENT_ID_NONE;
    int64_t inner = 1, elements = 1;
    for (uint32_t i = 0; i < w->rank; i++) {
        elements *= w->dims[i];
        if (i > axis) inner *= w->dims[i];
    }
    if (w->dtype == ENT_DTYPE_F32) { /* the usual type: without a call an element */
        const float *from = w->data;
        float *to = data;
        for (int64_t at = 0; at < elements; at += inner) {
            double scale = m->scale[at / inner % m->channels];
            for (int64_t i = at; i < at + inner; i++) to[i] = (float)(from[i] * scale);
        }
    } else {
        for (int64_t i = 0; i < elements; i++)
            ent_ops_store_f64(data, w->dtype, i,
                              ent_ops_load_f64(w->data, w->dtype, i) * m->scale[i / inner % m->channels]);
    }
    return ent_module_add_constant(context->module, anchor->graph, NULL, w->dtype, w->rank, w->dims, data,
                                   w->size_bytes, true);
}

static uint32_t scaled_bias(ent_rewrite_context *context, const ent_node *anchor, const channel_map *m) {
    const ent_value *weight = ent_module_value(context->module, anchor->inputs[1]);
    uint32_t dtype = weight->dtype, bits = ent_dtype_bits(dtype);
    void *data = ent_arena_array(context->module->arena, (size_t)m->channels + 8, bits / 8);
    if (!data) return ENT_ID_NONE;
    bool has_bias = anchor->input_count > 2 && anchor->inputs[2] != ENT_ID_NONE;
    const ent_tensor *bias =
        has_bias ? &ent_module_value(context->module, anchor->inputs[2])->constant->tensor : NULL;
    for (int64_t c = 0; c < m->channels; c++) {
        double before = bias ? ent_ops_load_f64(bias->data, bias->dtype, c) : 0;
        ent_ops_store_f64(data, dtype, c, before * m->scale[c] + m->shift[c]);
    }
    return ent_module_add_constant(context->module, anchor->graph, NULL, dtype, 1, &m->channels, data,
                                   (uint64_t)m->channels * bits / 8, true);
}

static ent_status fold(ent_rewrite_context *context, uint32_t id, uint32_t data_input) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t out_axis = 0, weight_axis = 0;
    const ent_node *anchor = find_anchor(context, node->inputs[data_input], &out_axis, &weight_axis);
    if (!anchor) return NULL;
    channel_map m = {.channels = ent_module_value(context->module, anchor->inputs[1])->dims[weight_axis]};
    uint32_t rank = ent_module_value(context->module, node->outputs[0])->rank;
    if (rank != ent_module_value(context->module, node->inputs[data_input])->rank || m.channels < 1)
        return NULL;
    m.scale = ent_arena_alloc(context->scratch, (size_t)m.channels * sizeof *m.scale);
    m.shift = ent_arena_alloc(context->scratch, (size_t)m.channels * sizeof *m.shift);
    bool good = node->op == ENT_OP_BatchNormalization
                    ? read_batch_norm(context, node, &m)
                    : read_arithmetic(context, node, data_input, rank, out_axis, &m);
    if (!good) return NULL;
    uint32_t from[2] = {ent_module_value(context->module, node->inputs[data_input])->producer, id}, value;
    uint32_t inputs[3] = {anchor->inputs[0], scaled_weight(context, anchor, weight_axis, &m), ENT_ID_NONE};
    anchor = ent_module_node(context->module, from[0]);
    inputs[2] = scaled_bias(context, anchor, &m);
    if (inputs[1] == ENT_ID_NONE || inputs[2] == ENT_ID_NONE) return ent_status_out_of_memory();
    ENT_TRY(ent_rewrite_add(context, anchor->op, anchor->attrs, inputs, 3, id, from, 2, &value));
    ent_rewrite_forward(context, id, value);
    return NULL;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    if (node->op == ENT_OP_BatchNormalization) return fold(context, id, 0);
    if (node->op != ENT_OP_Mul && node->op != ENT_OP_Add && node->op != ENT_OP_Sub && node->op != ENT_OP_Div)
        return NULL;
    for (uint32_t i = 0; i < 2; i++)
        if (ent_rewrite_producer(context, node->inputs[i]) && is_float_constant(context, node->inputs[1 - i]))
            return fold(context, id, i);
    return NULL;
}

ent_status ent_rewrite_fold_scales(ent_rewrite_context *context) {
    return context->options->strict ? NULL : ent_rewrite_each_node(context, visit);
}
