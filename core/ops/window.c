/* Geometry of sliding windows: auto_pad, ceil_mode, output_shape. Formulas: the ONNX schemas of Conv,
 * ConvTranspose, MaxPool and AveragePool. */
#include "core/ops/internal.h"

/* Of strides, dilations, kernels and pads: products with an extent then fit 64 bits. */
#define LARGEST_SETTING (1 << 22)

static int64_t list_value(const ent_attr *list, uint32_t i, int64_t missing) {
    return list && i < list->count ? list->ints[i] : missing;
}

static ent_code check_list(ent_ops_call *call, const char *name, uint32_t count, int64_t least) {
    const ent_attr *list = ent_attrs_find(call->attrs, name);
    if (!list || (list->type == ENT_ATTR_INTS && list->count == 0)) return ENT_OK;
    if (list->type != ENT_ATTR_INTS || list->count != count)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s must have %u values", name, count);
    for (uint32_t i = 0; i < count; i++)
        if (list->ints[i] < least || list->ints[i] > LARGEST_SETTING)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s has the value %lld", name,
                                  (long long)list->ints[i]);
    return ENT_OK;
}

static ent_code read_lists(ent_ops_call *call, const ent_tensor *x, const int64_t *kernel,
                           ent_ops_window *w) {
    ent_code code = check_list(call, "kernel_shape", w->rank, 1);
    if (code == ENT_OK) code = check_list(call, "strides", w->rank, 1);
    if (code == ENT_OK) code = check_list(call, "dilations", w->rank, 1);
    if (code == ENT_OK) code = check_list(call, "pads", 2 * w->rank, 0);
    if (code == ENT_OK) code = check_list(call, "output_padding", w->rank, 0);
    if (code == ENT_OK) code = check_list(call, "output_shape", w->rank, 0);
    if (code != ENT_OK) return code;
    const ent_attr *shape = ent_attrs_find(call->attrs, "kernel_shape"),
                   *pads = ent_attrs_find(call->attrs, "pads");
    if (!kernel && (!shape || shape->count == 0))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "kernel_shape is missing");
    for (uint32_t i = 0; i < w->rank; i++) {
        w->in[i] = x->dims[i + 2];
        w->kernel[i] = kernel ? kernel[i] : shape->ints[i];
        if (list_value(shape, i, w->kernel[i]) != w->kernel[i])
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "kernel_shape differs from the weights");
        w->stride[i] = list_value(ent_attrs_find(call->attrs, "strides"), i, 1);
        w->dilation[i] = list_value(ent_attrs_find(call->attrs, "dilations"), i, 1);
        w->pad_begin[i] = list_value(pads, i, 0);
        w->pad_end[i] = list_value(pads, i + w->rank, 0);
    }
    return ENT_OK;
}

static int64_t spread(const ent_ops_window *w, uint32_t i) {
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

static void resolve_forward(ent_ops_call *call, ent_ops_window *w, uint32_t i, bool same, bool lower,
                            bool valid) {
    int64_t extent = spread(w, i), stride = w->stride[i];
    if (valid) w->pad_begin[i] = w->pad_end[i] = 0;
    if (same) {
        w->out[i] = (w->in[i] + stride - 1) / stride;
        int64_t total = (w->out[i] - 1) * stride + extent - w->in[i];
        if (total < 0) total = 0;
        w->pad_begin[i] = lower ? total - total / 2 : total / 2;
        w->pad_end[i] = total - w->pad_begin[i];
        return;
    }
    int64_t room = w->in[i] + w->pad_begin[i] + w->pad_end[i] - extent;
    bool ceil_mode = !valid && ent_attrs_int(call->attrs, "ceil_mode", 0) != 0;
    if (room < 0) {
        w->out[i] = 0;
        return;
    }
    w->out[i] = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    /* A last window that begins beyond the input sees nothing but padding. */
    if (ceil_mode && (w->out[i] - 1) * stride >= w->in[i] + w->pad_begin[i]) w->out[i]--;
}

static void resolve_transposed(ent_ops_call *call, ent_ops_window *w, uint32_t i, bool same, bool upper,
                               bool valid) {
    const ent_attr *shape = ent_attrs_find(call->attrs, "output_shape");
    int64_t extra = list_value(ent_attrs_find(call->attrs, "output_padding"), i, 0);
    int64_t full = w->stride[i] * (w->in[i] - 1) + extra + spread(w, i);
    bool fixed = shape && shape->count > 0;
    if (valid) w->pad_begin[i] = w->pad_end[i] = 0;
    if (!fixed && !same) {
        w->out[i] = full - w->pad_begin[i] - w->pad_end[i];
        return;
    }
    w->out[i] = fixed ? shape->ints[i] : w->in[i] * w->stride[i];
    int64_t total = full - w->out[i] > 0 ? full - w->out[i] : 0;
    w->pad_begin[i] = upper ? total / 2 : total - total / 2;
    w->pad_end[i] = total - w->pad_begin[i];
}

ent_code ent_ops_window_resolve(ent_ops_call *call, const ent_tensor *x, const int64_t *kernel,
                                bool transposed, ent_ops_window *out) {
    if (x->rank < 3)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has rank %u, below 3", x->rank);
    *out = (ent_ops_window){.rank = x->rank - 2, .kernel_count = 1, .in_count = 1, .out_count = 1};
    ent_code code = read_lists(call, x, kernel, out);
    if (code != ENT_OK) return code;
    bool upper = ent_attrs_string_is(call->attrs, "auto_pad", "NOTSET", "SAME_UPPER");
    bool lower = ent_attrs_string_is(call->attrs, "auto_pad", "NOTSET", "SAME_LOWER");
    bool valid = ent_attrs_string_is(call->attrs, "auto_pad", "NOTSET", "VALID");
    for (uint32_t i = 0; i < out->rank; i++) {
        if (transposed)
            resolve_transposed(call, out, i, upper || lower, upper, valid);
        else
            resolve_forward(call, out, i, upper || lower, lower, valid);
        if (out->out[i] < 0 || (out->out[i] == 0 && out->in[i] != 0))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "spatial axis %u: input %lld with its padding is too small for the kernel",
                                  i, (long long)out->in[i]);
        out->kernel_count *= out->kernel[i];
        out->in_count *= out->in[i];
        out->out_count *= out->out[i];
    }
    return ENT_OK;
}
