/* Shape rules: contractions. */
#include "core/graph/infer.h"

#include <string.h>

static ent_status contract_mismatch(const ent_infer *infer, uint32_t right, const char *what) {
    return ent_infer_fail(infer, "shape.contract", "%s of %s and %s differ", what, ent_infer_text(infer, 0),
                          ent_infer_text(infer, right));
}

/* numpy.matmul: a vector on the left is a row, on the right a column, and its axis is dropped again. */
ent_status ent_infer_matmul(ent_infer *infer, uint32_t right, uint32_t dtype) {
    const ent_value *a = ent_infer_input(infer, 0), *b = ent_infer_input(infer, right);
    ent_dim dims[ENT_MAX_RANK + 2];
    if (a->rank == 0 || b->rank == 0)
        return ent_infer_fail(infer, "shape.rank", "MatMul takes no scalars; shapes are %s and %s",
                              ent_infer_text(infer, 0), ent_infer_text(infer, right));
    ent_dim inner = b->rank == 1 ? b->dims[0] : b->dims[b->rank - 2];
    if (ent_infer_differ(infer, a->dims[a->rank - 1], inner))
        return contract_mismatch(infer, right, "the inner sizes");
    uint32_t rank = a->rank > 2 ? a->rank - 2 : 0;
    memcpy(dims, a->dims, rank * sizeof *dims);
    if (!ent_infer_broadcast(infer, &rank, dims, b->rank > 2 ? b->rank - 2 : 0, b->dims))
        return contract_mismatch(infer, right, "the batch sizes");
    if (a->rank > 1) dims[rank++] = a->dims[a->rank - 2];
    if (b->rank > 1) dims[rank++] = b->dims[b->rank - 1];
    ent_infer_set(infer, 0, dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_MatMul(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    return ent_infer_matmul(infer, 1, ent_infer_input(infer, 0)->dtype);
}

ent_status ent_infer_Gemm(ent_infer *infer) {
    const ent_value *a = ent_infer_input(infer, 0), *b = ent_infer_input(infer, 1),
                    *c = ent_infer_input(infer, 2);
    ENT_TRY(ent_infer_same_dtype(infer, 0, 3));
    if (a->rank != 2 || b->rank != 2)
        return ent_infer_fail(infer, "shape.rank", "Gemm takes matrices; shapes are %s and %s",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    bool across_a = ent_attrs_int(infer->attrs, "transA", 0) != 0,
         across_b = ent_attrs_int(infer->attrs, "transB", 0) != 0;
    ent_dim dims[ENT_MAX_RANK] = {a->dims[across_a ? 1 : 0], b->dims[across_b ? 0 : 1]};
    if (ent_infer_differ(infer, a->dims[across_a ? 0 : 1], b->dims[across_b ? 1 : 0]))
        return contract_mismatch(infer, 1, "the inner sizes");
    ent_infer_set(infer, 0, a->dtype, 2, dims);
    uint32_t rank = 2;
    if (!c) return NULL;
    bool fits = c->rank <= 2 && ent_infer_broadcast(infer, &rank, dims, c->rank, c->dims) &&
                !ent_infer_differ(infer, dims[0], infer->out[0].dims[0]) &&
                !ent_infer_differ(infer, dims[1], infer->out[0].dims[1]);
    return fits ? NULL
                : ent_infer_fail(infer, "shape.broadcast", "C %s does not broadcast to %s",
                                 ent_infer_text(infer, 2),
                                 ent_module_dims_text(infer->module, 2, infer->out[0].dims));
}

/* ---- convolution ---- */

/* Ranks, groups, channels and bias; filters M x C/group x k... or, transposed, C x M/group x k... */
static ent_status check_convolution(ent_infer *infer, uint32_t filter, uint32_t bias_input, bool transposed,
                                    ent_dim *out_channels) {
    const ent_value *x = ent_infer_input(infer, 0), *w = ent_infer_input(infer, filter),
                    *bias = ent_infer_input(infer, bias_input);
    int64_t group = ent_attrs_int(infer->attrs, "group", 1), filters;
    if (x->rank < 3 || w->rank != x->rank)
        return ent_infer_fail(infer, "shape.rank", "input %s and filter %s need the same rank of at least 3",
                              ent_infer_text(infer, 0), ent_infer_text(infer, filter));
    if (group <= 0) return ent_infer_fail(infer, "attribute.group", "group is %lld", (long long)group);
    ent_dim wide = ent_infer_dim(infer, ENT_EXPR_MUL, w->dims[1], group);
    bool fits = !ent_infer_differ(infer, x->dims[1], transposed ? w->dims[0] : wide);
    if (ent_module_dim_number(infer->module, w->dims[0], &filters) && filters % group != 0) fits = false;
    if (!fits)
        return ent_infer_fail(infer, "shape.channels", "input %s and filter %s do not fit with group %lld",
                              ent_infer_text(infer, 0), ent_infer_text(infer, filter), (long long)group);
    *out_channels = transposed ? wide : w->dims[0];
    if (bias && (bias->rank != 1 || ent_infer_differ(infer, bias->dims[0], *out_channels)))
        return ent_infer_fail(infer, "shape.bias", "bias %s does not fit filter %s",
                              ent_infer_text(infer, bias_input), ent_infer_text(infer, filter));
    const ent_attr *kernel = ent_attrs_find(infer->attrs, "kernel_shape");
    for (uint32_t i = 0; kernel && kernel->count && i < x->rank - 2; i++)
        if (kernel->count != x->rank - 2 || ent_infer_differ(infer, kernel->ints[i], w->dims[i + 2]))
            return ent_infer_fail(infer, "attribute.kernel_shape",
                                  "kernel_shape does not agree with filter %s",
                                  ent_infer_text(infer, filter));
    return NULL;
}

ent_status ent_infer_conv(ent_infer *infer, uint32_t filter, uint32_t bias, uint32_t dtype) {
    const ent_value *x = ent_infer_input(infer, 0), *w = ent_infer_input(infer, filter);
    ent_dim dims[ENT_MAX_RANK] = {x->dims[0]};
    ent_window window;
    ENT_TRY(check_convolution(infer, filter, bias, false, &dims[1]));
    ENT_TRY(ent_infer_window_read(infer, x->rank - 2, &window));
    for (uint32_t i = 0; i < x->rank - 2; i++)
        ENT_TRY(ent_infer_window_extent(infer, &window, i, w->dims[i + 2], false, &dims[i + 2]));
    ent_infer_set(infer, 0, dtype, x->rank, dims);
    return NULL;
}

ent_status ent_infer_Conv(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 3));
    return ent_infer_conv(infer, 1, 2, ent_infer_input(infer, 0)->dtype);
}

/* stride * (in - 1) + output_padding + dilation * (kernel - 1) + 1 - pads; SAME gives in * stride. */
static ent_dim transposed_extent(const ent_infer *infer, const ent_window *window, uint32_t axis, ent_dim in,
                                 ent_dim kernel, int64_t output_padding) {
    if (window->same) return ent_infer_dim(infer, ENT_EXPR_MUL, in, window->strides[axis]);
    ent_dim span = ent_infer_dim(infer, ENT_EXPR_SUB, kernel, 1);
    span = ent_infer_dim(infer, ENT_EXPR_MUL, span, window->dilations[axis]);
    ent_dim steps = ent_infer_dim(infer, ENT_EXPR_SUB, in, 1);
    steps = ent_infer_dim(infer, ENT_EXPR_MUL, steps, window->strides[axis]);
    ent_dim extent = ent_infer_dim(infer, ENT_EXPR_ADD, steps, span);
    extent =
        ent_infer_dim(infer, ENT_EXPR_ADD, extent, ent_module_dim_constant(infer->module, output_padding));
    extent = ent_infer_dim(infer, ENT_EXPR_ADD, extent, 1);
    return ent_infer_dim(infer, ENT_EXPR_SUB, extent,
                         ent_module_dim_constant(infer->module, window->pads[axis]));
}

ent_status ent_infer_ConvTranspose(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *w = ent_infer_input(infer, 1);
    ent_dim dims[ENT_MAX_RANK] = {x->dims[0]};
    int64_t padding[ENT_MAX_RANK], shape[ENT_MAX_RANK];
    ent_window window;
    ENT_TRY(ent_infer_same_dtype(infer, 0, 3));
    ENT_TRY(check_convolution(infer, 1, 2, true, &dims[1]));
    uint32_t count = x->rank - 2;
    ENT_TRY(ent_infer_window_read(infer, count, &window));
    ENT_TRY(ent_infer_ints(infer, "output_padding", count, 0, padding));
    const ent_attr *asked = ent_attrs_find(infer->attrs, "output_shape");
    bool given = asked && asked->type == ENT_ATTR_INTS && asked->count > 0;
    if (given) ENT_TRY(ent_infer_ints(infer, "output_shape", count, 0, shape));
    for (uint32_t i = 0; i < count; i++)
        dims[i + 2] = given
                          ? ent_module_dim_constant(infer->module, shape[i])
                          : transposed_extent(infer, &window, i, x->dims[i + 2], w->dims[i + 2], padding[i]);
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}
