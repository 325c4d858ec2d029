/* Shape rules: sliding windows, pooling and resampling. */
#include "core/graph/infer.h"

#include <math.h>
#include <string.h>

/* Bounds the products below, far above any real model. */
#define MAX_WINDOW ((int64_t)1 << 31)

static ent_status check_window(const ent_infer *infer, const ent_window *window, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        bool ok = window->strides[i] > 0 && window->strides[i] < MAX_WINDOW && window->dilations[i] > 0 &&
                  window->dilations[i] < MAX_WINDOW && window->pads_begin[i] > -MAX_WINDOW &&
                  window->pads_begin[i] < MAX_WINDOW && window->pads[i] > -2 * MAX_WINDOW &&
                  window->pads[i] < 2 * MAX_WINDOW;
        if (!ok)
            return ent_infer_fail(infer, "attribute.window",
                                  "strides, dilations or pads of axis %u are out of range", i);
    }
    return NULL;
}

ent_status ent_infer_window_read(const ent_infer *infer, uint32_t count, ent_window *out) {
    int64_t pads[2 * ENT_MAX_RANK];
    ENT_TRY(ent_infer_ints(infer, "strides", count, 1, out->strides));
    ENT_TRY(ent_infer_ints(infer, "dilations", count, 1, out->dilations));
    ENT_TRY(ent_infer_ints(infer, "pads", 2 * count, 0, pads));
    out->same = ent_attrs_string_is(infer->attrs, "auto_pad", "NOTSET", "SAME_UPPER") ||
                ent_attrs_string_is(infer->attrs, "auto_pad", "NOTSET", "SAME_LOWER");
    bool valid = ent_attrs_string_is(infer->attrs, "auto_pad", "NOTSET", "VALID");
    if (!out->same && !valid && !ent_attrs_string_is(infer->attrs, "auto_pad", "NOTSET", "NOTSET"))
        return ent_infer_fail(infer, "attribute.auto_pad",
                              "auto_pad is none of NOTSET, VALID, SAME_UPPER, SAME_LOWER");
    for (uint32_t i = 0; i < count; i++) {
        bool in_range = pads[i] > -MAX_WINDOW && pads[i] < MAX_WINDOW && pads[i + count] > -MAX_WINDOW &&
                        pads[i + count] < MAX_WINDOW;
        if (!in_range)
            return ent_infer_fail(infer, "attribute.window", "pads of axis %u are out of range", i);
        out->pads_begin[i] = valid ? 0 : pads[i];
        out->pads[i] = valid ? 0 : pads[i] + pads[i + count];
    }
    return check_window(infer, out, count);
}

/* NOTSET and VALID: floor((in + pads - (dilation * (kernel - 1) + 1)) / stride) + 1. With ceil_mode rounded
 * up, except that a window must start inside the input or its left padding, ceil((in + pad_begin) / stride)
 * of them do. SAME: ceil(in / stride). Source: the ONNX schemas of Conv, MaxPool and AveragePool. */
ent_status ent_infer_window_extent(const ent_infer *infer, const ent_window *window, uint32_t axis,
                                   ent_dim kernel, bool ceil, ent_dim *out) {
    ent_module *module = infer->module;
    ent_dim in = ent_infer_input(infer, 0)->dims[axis + 2], stride = window->strides[axis];
    int64_t number;
    if (window->same) {
        *out = ent_infer_dim(infer, ENT_EXPR_CEILDIV, in, stride);
        return NULL;
    }
    ent_dim span = ent_infer_dim(infer, ENT_EXPR_SUB, kernel, 1);
    span = ent_infer_dim(infer, ENT_EXPR_MUL, span, window->dilations[axis]);
    ent_dim room =
        ent_infer_dim(infer, ENT_EXPR_ADD, in, ent_module_dim_constant(module, window->pads[axis]));
    room = ent_infer_dim(infer, ENT_EXPR_SUB, ent_infer_dim(infer, ENT_EXPR_SUB, room, span), 1);
    if (ent_module_dim_number(module, room, &number) && number < 0)
        return ent_infer_fail(infer, "shape.window",
                              "the window does not fit axis %u of input %s with its padding", axis + 2,
                              ent_infer_text(infer, 0));
    *out = ent_infer_dim(infer, ceil ? ENT_EXPR_CEILDIV : ENT_EXPR_FLOORDIV, room, stride);
    *out = ent_infer_dim(infer, ENT_EXPR_ADD, *out, 1);
    if (!ceil) return NULL;
    ent_dim starts =
        ent_infer_dim(infer, ENT_EXPR_ADD, in, ent_module_dim_constant(module, window->pads_begin[axis]));
    *out = ent_infer_dim(infer, ENT_EXPR_MIN, *out, ent_infer_dim(infer, ENT_EXPR_CEILDIV, starts, stride));
    return NULL;
}

static ent_status infer_pool(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    const ent_attr *kernel = ent_attrs_find(infer->attrs, "kernel_shape");
    ent_dim dims[ENT_MAX_RANK] = {0};
    ent_window window;
    if (x->rank < 3)
        return ent_infer_fail(infer, "shape.rank", "input %s needs a rank of at least 3",
                              ent_infer_text(infer, 0));
    uint32_t count = x->rank - 2;
    if (!kernel || kernel->type != ENT_ATTR_INTS || kernel->count != count)
        return ent_infer_fail(infer, "attribute.kernel_shape", "kernel_shape must have %u numbers", count);
    ENT_TRY(ent_infer_window_read(infer, count, &window));
    memcpy(dims, x->dims, 2 * sizeof *dims);
    bool ceil = ent_attrs_int(infer->attrs, "ceil_mode", 0) != 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kernel->ints[i] <= 0 || kernel->ints[i] >= MAX_WINDOW)
            return ent_infer_fail(infer, "attribute.kernel_shape", "kernel_shape of axis %u is out of range",
                                  i);
        ENT_TRY(ent_infer_window_extent(infer, &window, i, kernel->ints[i], ceil, &dims[i + 2]));
    }
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    ent_infer_set(infer, 1, ENT_DTYPE_I64, x->rank, dims);
    return NULL;
}

ent_status ent_infer_MaxPool(ent_infer *infer) {
    return infer_pool(infer);
}

ent_status ent_infer_AveragePool(ent_infer *infer) {
    return infer_pool(infer);
}

ent_status ent_infer_LpPool(ent_infer *infer) {
    return infer_pool(infer);
}

static ent_status infer_global_pool(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim dims[ENT_MAX_RANK];
    if (x->rank < 2)
        return ent_infer_fail(infer, "shape.rank", "input %s needs a rank of at least 2",
                              ent_infer_text(infer, 0));
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = i < 2 ? x->dims[i] : 1;
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

ent_status ent_infer_GlobalAveragePool(ent_infer *infer) {
    return infer_global_pool(infer);
}

ent_status ent_infer_GlobalMaxPool(ent_infer *infer) {
    return infer_global_pool(infer);
}

ent_status ent_infer_GlobalLpPool(ent_infer *infer) {
    return infer_global_pool(infer);
}

/* ---- Resize ---- */

/* Axes that scales or sizes speak of, in their order. */
static ent_status resize_axes(const ent_infer *infer, uint32_t rank, uint32_t *axes, uint32_t *out_count) {
    const ent_attr *attr = ent_attrs_find(infer->attrs, "axes");
    uint32_t mask;
    *out_count = rank;
    for (uint32_t i = 0; i < rank; i++) axes[i] = i;
    if (!attr || attr->type != ENT_ATTR_INTS || attr->count == 0) return NULL;
    ENT_TRY(ent_infer_axes(infer, attr->ints, attr->count, rank, &mask));
    *out_count = attr->count;
    for (uint32_t i = 0; i < attr->count; i++) ENT_TRY(ent_infer_axis(infer, attr->ints[i], rank, &axes[i]));
    return NULL;
}

/* floor(in * scale) in f32, as the operator defines; symbolic sizes need a scale that is a whole number or
 * one over it. */
static ent_dim scaled(const ent_infer *infer, ent_dim dim, double scale) {
    int64_t number;
    double inverse = 1.0 / scale;
    if (!(scale > 0) || scale > 1e9 || inverse > 1e9) return ENT_DIM_UNKNOWN;
    if (scale == 1.0) return dim;
    if (ent_module_dim_number(infer->module, dim, &number)) {
        double size = floor((double)((float)number * (float)scale));
        return size < 9e15 ? ent_module_dim_constant(infer->module, (int64_t)size) : ENT_DIM_UNKNOWN;
    }
    if (scale == floor(scale)) return ent_infer_dim(infer, ENT_EXPR_MUL, dim, (int64_t)scale);
    if (inverse == floor(inverse)) return ent_infer_dim(infer, ENT_EXPR_FLOORDIV, dim, (int64_t)inverse);
    return ENT_DIM_UNKNOWN;
}

static ent_status resize_by_scales(ent_infer *infer, const uint32_t *axes, uint32_t count, ent_dim *dims) {
    const ent_value *scales = ent_infer_input(infer, 2);
    const ent_tensor *tensor = scales->constant ? &scales->constant->tensor : NULL;
    uint64_t width = ent_dtype_bits(scales->dtype) / 8;
    ent_infer_want(infer, 2);
    if (!tensor || !ent_dtype_is_float(tensor->dtype) || tensor->rank != 1 ||
        tensor->size_bytes != width * (uint64_t)tensor->dims[0]) {
        for (uint32_t i = 0; i < count; i++) dims[axes[i]] = ENT_DIM_UNKNOWN;
        return NULL;
    }
    if (tensor->dims[0] != count)
        return ent_infer_fail(infer, "shape.resize", "scales %s do not fit %u axes", ent_infer_text(infer, 2),
                              count);
    for (uint32_t i = 0; i < count; i++)
        dims[axes[i]] = scaled(infer, dims[axes[i]], ent_element_get_f64(tensor->data, tensor->dtype, i));
    return NULL;
}

/* keep_aspect_ratio_policy: one scale for all listed axes, the least or the greatest of sizes / in; each size
 * is round(scale * in), halves up. */
static void resize_keeping_ratio(const ent_infer *infer, const uint32_t *axes, uint32_t count,
                                 const ent_dim *sizes, ent_dim *dims) {
    bool larger =
        ent_attrs_string_is(infer->attrs, "keep_aspect_ratio_policy", "stretch", "not_larger") == false;
    double scale = 0;
    bool known = true;
    for (uint32_t i = 0; i < count; i++) {
        int64_t size, in;
        known = known && ent_module_dim_number(infer->module, sizes[i], &size) &&
                ent_module_dim_number(infer->module, dims[axes[i]], &in) && in > 0;
        if (!known) break;
        double ratio = (double)((float)size / (float)in);
        if (i == 0 || (larger ? ratio > scale : ratio < scale)) scale = ratio;
    }
    for (uint32_t i = 0; i < count; i++) {
        ent_dim *dim = &dims[axes[i]];
        double size = known ? floor((double)((float)scale * (float)*dim) + 0.5) : -1.0;
        *dim = size >= 0 && size < 9e15 ? (int64_t)size : ENT_DIM_UNKNOWN;
    }
}

ent_status ent_infer_Resize(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *scales = ent_infer_input(infer, 2),
                    *target = ent_infer_input(infer, 3);
    ent_dim dims[ENT_MAX_RANK], sizes[ENT_MAX_ELEMENTS];
    uint32_t axes[ENT_MAX_RANK], count, size_count;
    memcpy(dims, x->dims, sizeof dims);
    ENT_TRY(resize_axes(infer, x->rank, axes, &count));
    if (scales && scales->rank == 1 && scales->dims[0] == 0) scales = NULL;
    if (scales) {
        ENT_TRY(resize_by_scales(infer, axes, count, dims));
    } else if (!target) {
        return ent_infer_fail(infer, "shape.resize", "Resize needs scales or sizes");
    } else if (!ent_infer_elements(infer, 3, sizes, &size_count)) {
        for (uint32_t i = 0; i < count; i++) dims[axes[i]] = ENT_DIM_UNKNOWN;
    } else if (size_count != count) {
        return ent_infer_fail(infer, "shape.resize", "sizes %s do not fit %u axes", ent_infer_text(infer, 3),
                              count);
    } else if (ent_attrs_string_is(infer->attrs, "keep_aspect_ratio_policy", "stretch", "stretch")) {
        for (uint32_t i = 0; i < count; i++) dims[axes[i]] = sizes[i];
    } else {
        resize_keeping_ratio(infer, axes, count, sizes, dims);
    }
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}
