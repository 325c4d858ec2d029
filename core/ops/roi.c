/* RoiAlign and MaxRoiPool. Formulas: the ONNX schema of RoiAlign 22 (and Mask R-CNN, arXiv:1703.06870); Fast
 * R-CNN (arXiv:1504.08083) for MaxRoiPool. */
#include "core/ops/internal.h"

#include <math.h>

#define MOST_SAMPLES 4096 /* along one axis of one bin: beyond it a box is no box */

typedef struct regions {
    const ent_tensor *x, *y;
    const double *values, *rois;
    double *result, scale;
    int64_t height, width, rows, columns; /* of the input, of the output */
} regions;

static ent_code dims_of(ent_ops_call *call, int64_t roi_columns, int64_t rows, int64_t columns,
                        ent_tensor *output) {
    const ent_tensor *x = ent_ops_input(call, 0), *rois = ent_ops_input(call, 1);
    if (x->rank != 4 || rois->rank != 2 || rois->dims[1] != roi_columns || rois->dtype != x->dtype ||
        rows < 0 || columns < 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the input, the rois and the output size do not fit");
    output->dtype = x->dtype;
    output->rank = 4;
    output->dims[0] = rois->dims[0];
    output->dims[1] = x->dims[1];
    output->dims[2] = rows;
    output->dims[3] = columns;
    return ENT_OK;
}

ent_code ent_ops_dims_roi_align(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *rois = ent_ops_input(call, 1), *batch = ent_ops_input(call, 2);
    if (batch->rank != 1 || batch->dims[0] != rois->dims[0])
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "batch_indices do not fit the rois");
    return dims_of(call, 4, ent_attrs_int(call->attrs, "output_height", 1),
                   ent_attrs_int(call->attrs, "output_width", 1), &outputs[0]);
}

ent_code ent_ops_dims_max_roi_pool(ent_ops_call *call, ent_tensor *outputs) {
    const ent_attr *pooled = ent_attrs_find(call->attrs, "pooled_shape");
    if (!pooled || pooled->type != ENT_ATTR_INTS || pooled->count != 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "pooled_shape must have 2 values");
    return dims_of(call, 5, pooled->ints[0], pooled->ints[1], &outputs[0]);
}

static ent_code load(ent_ops_call *call, regions *r) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    *r = (regions){.x = x,
                   .y = y,
                   .scale = ent_attrs_float(call->attrs, "spatial_scale", 1),
                   .height = x->dims[2],
                   .width = x->dims[3],
                   .rows = y->dims[2],
                   .columns = y->dims[3]};
    r->values = ent_ops_values_f64(call, x);
    r->rois = ent_ops_values_f64(call, ent_ops_input(call, 1));
    r->result = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *r->result);
    return r->values && r->rois && r->result ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
}

/* Where a bin lies and how many samples it takes along each axis. */
typedef struct bins {
    double y0, x0, height, width;
    int64_t y_samples, x_samples;
} bins;

static ent_code bins_of(ent_ops_call *call, const regions *r, const double *roi, bins *out) {
    bool half =
        ent_attrs_string_is(call->attrs, "coordinate_transformation_mode", "half_pixel", "half_pixel");
    int64_t ratio = ent_attrs_int(call->attrs, "sampling_ratio", 0);
    double offset = half ? 0.5 : 0;
    out->x0 = roi[0] * r->scale - offset;
    out->y0 = roi[1] * r->scale - offset;
    double width = roi[2] * r->scale - offset - out->x0, height = roi[3] * r->scale - offset - out->y0;
    if (!half) {
        width = width > 1 ? width : 1;
        height = height > 1 ? height : 1;
    }
    out->height = height / (double)r->rows;
    out->width = width / (double)r->columns;
    double rows = ratio > 0 ? (double)ratio : ceil(out->height),
           columns = ratio > 0 ? (double)ratio : ceil(out->width);
    if (!(rows <= MOST_SAMPLES) || !(columns <= MOST_SAMPLES))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "a region of %g by %g is too large", height,
                              width);
    out->y_samples = rows > 0 ? (int64_t)rows : 0;
    out->x_samples = columns > 0 ? (int64_t)columns : 0;
    return ENT_OK;
}

/* The two neighbours of a coordinate that is inside, and the weight of the second. */
static void neighbours(double at, int64_t extent, int64_t *low, int64_t *high, double *weight) {
    at = at > 0 ? at : 0;
    *low = (int64_t)at;
    *high = *low + 1;
    *weight = at - (double)*low;
    if (*low < extent - 1) return;
    *low = *high = extent - 1;
    *weight = 0;
}

/* The average of the samples, or the greatest weighted corner: `max` takes it before the corners are added
 * up. */
static double align_bin(const regions *r, const bins *b, const double *plane, int64_t row, int64_t column,
                        bool max) {
    double sum = 0, best = 0;
    bool any = false;
    for (int64_t i = 0; i < b->y_samples; i++)
        for (int64_t j = 0; j < b->x_samples; j++) {
            double y = b->y0 + (double)row * b->height + ((double)i + 0.5) * b->height / (double)b->y_samples;
            double x =
                b->x0 + (double)column * b->width + ((double)j + 0.5) * b->width / (double)b->x_samples;
            double corner[4] = {0, 0, 0, 0};
            if (y >= -1 && y <= (double)r->height && x >= -1 && x <= (double)r->width) {
                int64_t y0, y1, x0, x1;
                double fy, fx;
                neighbours(y, r->height, &y0, &y1, &fy);
                neighbours(x, r->width, &x0, &x1, &fx);
                corner[0] = (1 - fy) * (1 - fx) * plane[y0 * r->width + x0];
                corner[1] = (1 - fy) * fx * plane[y0 * r->width + x1];
                corner[2] = fy * (1 - fx) * plane[y1 * r->width + x0];
                corner[3] = fy * fx * plane[y1 * r->width + x1];
            }
            for (int k = 0; k < 4; k++) {
                sum += corner[k];
                best = !any || corner[k] > best ? corner[k] : best;
                any = true;
            }
        }
    int64_t count = b->y_samples * b->x_samples;
    return max ? best : sum / (double)(count > 1 ? count : 1);
}

ent_code ent_ops_roi_align(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    regions r;
    bool max = ent_attrs_string_is(call->attrs, "mode", "avg", "max");
    if (!max && !ent_attrs_string_is(call->attrs, "mode", "avg", "avg"))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the mode is unknown");
    ent_code code = load(call, &r);
    int64_t *batch = ent_ops_values_i64(call, ent_ops_input(call, 2));
    if (code != ENT_OK || !batch) return ENT_CODE_OUT_OF_MEMORY;
    int64_t channels = r.x->dims[1], bin_count = r.rows * r.columns;
    if (r.height * r.width == 0) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input is empty");
    for (int64_t n = 0; n < r.y->dims[0]; n++) {
        bins b = {0};
        code = ent_ops_index(call, &batch[n], r.x->dims[0]);
        if (code == ENT_OK) code = bins_of(call, &r, r.rois + n * 4, &b);
        if (code != ENT_OK) return code;
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < bin_count; i++)
                r.result[(n * channels + c) * bin_count + i] =
                    align_bin(&r, &b, r.values + (batch[n] * channels + c) * r.height * r.width,
                              i / r.columns, i % r.columns, max);
    }
    ent_ops_result_f64(r.y, r.result);
    return ENT_OK;
}

/* Bin `index` of `count` over a span that starts at `start`, clipped to the input. */
static void pool_range(double start, double span, int64_t index, int64_t count, int64_t extent, int64_t *low,
                       int64_t *high) {
    double size = span / (double)count, top = (double)extent;
    double from = floor((double)index * size) + start, to = ceil((double)(index + 1) * size) + start;
    *low = (int64_t)(from > 0 ? from < top ? from : top : 0);
    *high = (int64_t)(to > 0 ? to < top ? to : top : 0);
}

static double pool_bin(const regions *r, const double *roi, const double *plane, int64_t row,
                       int64_t column) {
    double x0 = round(roi[1] * r->scale), y0 = round(roi[2] * r->scale), x1 = round(roi[3] * r->scale),
           y1 = round(roi[4] * r->scale);
    int64_t top, bottom, left, right;
    pool_range(y0, y1 - y0 + 1 > 1 ? y1 - y0 + 1 : 1, row, r->rows, r->height, &top, &bottom);
    pool_range(x0, x1 - x0 + 1 > 1 ? x1 - x0 + 1 : 1, column, r->columns, r->width, &left, &right);
    if (bottom <= top || right <= left) return 0;
    double best = -INFINITY;
    for (int64_t i = top; i < bottom; i++)
        for (int64_t j = left; j < right; j++) {
            double value = plane[i * r->width + j];
            if (value > best || isnan(value)) best = value;
        }
    return best;
}

ent_code ent_ops_max_roi_pool(ent_ops_call *call) {
    if (!ent_ops_output(call, 0)) return ENT_OK;
    regions r;
    ent_code code = load(call, &r);
    if (code != ENT_OK) return code;
    int64_t channels = r.x->dims[1], bin_count = r.rows * r.columns;
    for (int64_t n = 0; n < r.y->dims[0]; n++) {
        const double *roi = r.rois + n * 5;
        int64_t batch = roi[0] >= 0 && roi[0] < (double)r.x->dims[0] ? (int64_t)roi[0] : -1;
        for (int k = 0; k < 5; k++)
            if (!isfinite(roi[k]) || batch < 0)
                return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "region %lld is not in the input",
                                      (long long)n);
        for (int64_t c = 0; c < channels; c++)
            for (int64_t i = 0; i < bin_count; i++)
                r.result[(n * channels + c) * bin_count + i] =
                    pool_bin(&r, roi, r.values + (batch * channels + c) * r.height * r.width, i / r.columns,
                             i % r.columns);
    }
    ent_ops_result_f64(r.y, r.result);
    return ENT_OK;
}
