/* Shape rules: operators that sample at computed positions, and the inverses of windows. */
#include "core/graph/infer.h"

#include <string.h>

ent_status ent_infer_GridSample(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *grid = ent_infer_input(infer, 1);
    ent_dim dims[ENT_MAX_RANK] = {0};
    bool fits = x->rank >= 3 && grid->rank == x->rank &&
                !ent_infer_differ(infer, x->dims[0], grid->dims[0]) &&
                !ent_infer_differ(infer, grid->dims[x->rank - 1], x->rank - 2);
    if (!fits)
        return ent_infer_fail(infer, "shape.grid", "grid %s does not fit input %s", ent_infer_text(infer, 1),
                              ent_infer_text(infer, 0));
    memcpy(dims, x->dims, 2 * sizeof *dims);
    for (uint32_t i = 2; i < x->rank; i++) dims[i] = grid->dims[i - 1];
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

/* theta N x r x (r + 1) and size N, C, spatial... give N x spatial... x r. */
ent_status ent_infer_AffineGrid(ent_infer *infer) {
    const ent_value *theta = ent_infer_input(infer, 0);
    int64_t spatial = 0;
    ent_dim size[ENT_MAX_ELEMENTS], dims[5];
    uint32_t count;
    bool ranked = theta->rank == 3 && ent_module_dim_number(infer->module, theta->dims[1], &spatial);
    if (theta->rank != 3 || (ranked && spatial != 2 && spatial != 3))
        return ent_infer_fail(infer, "shape.grid", "theta %s is none of N x 2 x 3 and N x 3 x 4",
                              ent_infer_text(infer, 0));
    infer->out[0].dtype = theta->dtype;
    bool known = ent_infer_elements(infer, 1, size, &count);
    if (known && !ranked) spatial = (int64_t)count - 2;
    if (!known && !ranked) return NULL;
    if (known && (count != spatial + 2 || (spatial != 2 && spatial != 3) ||
                  ent_infer_differ(infer, size[0], theta->dims[0])))
        return ent_infer_fail(infer, "shape.grid", "a size of %u numbers does not fit theta %s", count,
                              ent_infer_text(infer, 0));
    dims[0] = theta->dims[0];
    for (int64_t i = 0; i < spatial; i++) dims[i + 1] = known ? size[i + 2] : ENT_DIM_UNKNOWN;
    dims[spatial + 1] = spatial;
    ent_infer_set(infer, 0, theta->dtype, (uint32_t)spatial + 2, dims);
    return NULL;
}

static ent_status check_rois(const ent_infer *infer, int64_t columns) {
    const ent_value *x = ent_infer_input(infer, 0), *rois = ent_infer_input(infer, 1);
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    if (x->rank != 4 || rois->rank != 2 || ent_infer_differ(infer, rois->dims[1], columns))
        return ent_infer_fail(infer, "shape.rois", "input %s and rois %s do not fit",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    return NULL;
}

ent_status ent_infer_RoiAlign(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *rois = ent_infer_input(infer, 1),
                    *batch = ent_infer_input(infer, 2);
    int64_t height = ent_attrs_int(infer->attrs, "output_height", 1),
            width = ent_attrs_int(infer->attrs, "output_width", 1);
    ENT_TRY(check_rois(infer, 4));
    if (batch->rank != 1 || ent_infer_differ(infer, batch->dims[0], rois->dims[0]))
        return ent_infer_fail(infer, "shape.rois", "batch_indices %s do not fit rois %s",
                              ent_infer_text(infer, 2), ent_infer_text(infer, 1));
    ent_dim dims[4] = {rois->dims[0], x->dims[1], ent_module_dim_constant(infer->module, height),
                       ent_module_dim_constant(infer->module, width)};
    ent_infer_set(infer, 0, x->dtype, 4, dims);
    return NULL;
}

ent_status ent_infer_MaxRoiPool(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *rois = ent_infer_input(infer, 1);
    int64_t pooled[2];
    ENT_TRY(check_rois(infer, 5));
    ENT_TRY(ent_infer_ints(infer, "pooled_shape", 2, -1, pooled));
    ent_dim dims[4] = {rois->dims[0], x->dims[1], ent_module_dim_constant(infer->module, pooled[0]),
                       ent_module_dim_constant(infer->module, pooled[1])};
    ent_infer_set(infer, 0, x->dtype, 4, dims);
    return NULL;
}

/* (in - 1) * stride + kernel - pads, unless output_shape says. */
ent_status ent_infer_MaxUnpool(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *indices = ent_infer_input(infer, 1);
    int64_t kernel[ENT_MAX_RANK];
    ent_dim dims[ENT_MAX_RANK], asked[ENT_MAX_ELEMENTS];
    ent_window window;
    uint32_t count;
    bool fits = x->rank >= 3 && indices->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = !ent_infer_differ(infer, x->dims[i], indices->dims[i]);
    if (!fits)
        return ent_infer_fail(infer, "shape.unpool", "input %s and indices %s do not fit",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    uint32_t spatial = x->rank - 2;
    ENT_TRY(ent_infer_window_read(infer, spatial, &window));
    ENT_TRY(ent_infer_ints(infer, "kernel_shape", spatial, 1, kernel));
    memcpy(dims, x->dims, sizeof dims);
    bool given = ent_infer_input(infer, 2) != NULL,
         known = given && ent_infer_elements(infer, 2, asked, &count);
    if (known && count != x->rank)
        return ent_infer_fail(infer, "shape.unpool", "output_shape has %u numbers for rank %u", count,
                              x->rank);
    for (uint32_t i = 0; i < spatial; i++) {
        ent_dim *dim = &dims[i + 2];
        *dim = ent_infer_dim(infer, ENT_EXPR_SUB, *dim, 1);
        *dim = ent_infer_dim(infer, ENT_EXPR_MUL, *dim, window.strides[i]);
        int64_t rest = kernel[i] - window.pads[i];
        *dim = ent_infer_dim(infer, ENT_EXPR_ADD, *dim, ent_module_dim_constant(infer->module, rest));
        if (given) *dim = known ? asked[i + 2] : ENT_DIM_UNKNOWN;
    }
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

/* N x (C * block) x positions back to N x C x image. */
ent_status ent_infer_Col2Im(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *image = ent_infer_input(infer, 1);
    ent_dim sizes[ENT_MAX_ELEMENTS], block[ENT_MAX_ELEMENTS], dims[ENT_MAX_RANK];
    uint32_t count = 0, block_count = 0;
    int64_t length;
    infer->out[0].dtype = x->dtype;
    if (x->rank != 3)
        return ent_infer_fail(infer, "shape.rank", "input %s needs rank 3", ent_infer_text(infer, 0));
    bool have = ent_infer_elements(infer, 1, sizes, &count),
         have_block = ent_infer_elements(infer, 2, block, &block_count);
    if (!have) {
        if (image->rank != 1 || !ent_module_dim_number(infer->module, image->dims[0], &length)) return NULL;
        count = length > 0 && length < ENT_MAX_RANK ? (uint32_t)length : ENT_MAX_RANK;
    }
    ENT_TRY(ent_infer_check_rank(infer, (uint64_t)count + 2));
    if (have_block && block_count != count)
        return ent_infer_fail(infer, "shape.block", "a block of %u axes does not fit an image of %u",
                              block_count, count);
    ent_dim taps = have_block ? ent_infer_product(infer, block, block_count) : ENT_DIM_UNKNOWN;
    dims[0] = x->dims[0];
    dims[1] = ent_infer_dim(infer, ENT_EXPR_FLOORDIV, x->dims[1], taps);
    for (uint32_t i = 0; i < count; i++) dims[i + 2] = have ? sizes[i] : ENT_DIM_UNKNOWN;
    ent_infer_set(infer, 0, x->dtype, count + 2, dims);
    return NULL;
}

/* As Conv; offset is N x (offset_group * taps * spatial) x out..., mask the same with one value a tap. */
ent_status ent_infer_DeformConv(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *w = ent_infer_input(infer, 1);
    int64_t groups = ent_attrs_int(infer->attrs, "offset_group", 1);
    ENT_TRY(ent_infer_conv(infer, 1, 3, x->dtype));
    if (groups < 1)
        return ent_infer_fail(infer, "attribute.group", "offset_group is %lld", (long long)groups);
    ent_dim taps = ent_infer_product(infer, w->dims + 2, w->rank - 2);
    taps = ent_infer_dim(infer, ENT_EXPR_MUL, taps, groups);
    ent_dim offsets = ent_infer_dim(infer, ENT_EXPR_MUL, taps, x->rank - 2);
    for (uint32_t i = 2; i < 5; i += 2) {
        const ent_value *value = ent_infer_input(infer, i);
        if (!value) continue;
        bool fits = value->rank == x->rank && !ent_infer_differ(infer, value->dims[0], x->dims[0]) &&
                    !ent_infer_differ(infer, value->dims[1], i == 2 ? offsets : taps);
        for (uint32_t k = 2; fits && k < x->rank; k++)
            fits = !ent_infer_differ(infer, value->dims[k], infer->out[0].dims[k]);
        if (!fits)
            return ent_infer_fail(infer, "shape.offset", "input %u %s does not fit the output and the filter",
                                  i, ent_infer_text(infer, i));
    }
    return NULL;
}
