/* Resize. Nearest is one index per axis; linear and cubic are separable: each axis is one pass of weighted
 * sums. Formulas: the ONNX schema of Resize 19. Coordinates with given scales are rounded to f32 once, as
 * scales are f32: an exact ratio such as 3 / 0.6 then meets its integer. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

typedef struct resize_axis {
    int64_t in, out;
    double scale; /* out / in as the coordinates see it */
    bool from_size;
    double roi_start, roi_end;
} resize_axis;

typedef struct resize_plan {
    uint32_t rank;
    resize_axis axis[ENT_MAX_RANK];
} resize_plan;

/* Which axes the lists speak of. */
static ent_code listed_axes(ent_ops_call *call, uint32_t *out, uint32_t *out_count) {
    uint32_t rank = ent_ops_input(call, 0)->rank, seen = 0;
    const ent_attr *axes = ent_attrs_find(call->attrs, "axes");
    *out_count = rank;
    for (uint32_t i = 0; i < rank; i++) out[i] = i;
    if (!axes || axes->type != ENT_ATTR_INTS || axes->count == 0) return ENT_OK;
    if (axes->count > rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%u axes for rank %u", axes->count, rank);
    *out_count = axes->count;
    for (uint32_t i = 0; i < axes->count; i++) {
        ent_code code = ent_ops_axis(call, axes->ints[i], rank, &out[i]);
        if (code != ENT_OK) return code;
        if (seen >> out[i] & 1)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u is named twice", out[i]);
        seen |= 1u << out[i];
    }
    return ENT_OK;
}

#define MAX_SIZE 1e12

static ent_code plan_scales(ent_ops_call *call, const ent_tensor *scales, const uint32_t *axes,
                            uint32_t count, resize_plan *plan) {
    if (ent_ops_element_count(scales) != count || !scales->data)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "scales must be %u known values", count);
    for (uint32_t i = 0; i < count; i++) {
        resize_axis *axis = &plan->axis[axes[i]];
        axis->scale = ent_ops_load_f64(scales->data, scales->dtype, i);
        if (!(axis->scale > 0) || axis->scale * (double)axis->in > MAX_SIZE)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "a scale is %g", axis->scale);
        axis->out = (int64_t)floor((double)(float)((double)axis->in * axis->scale));
        axis->from_size = false;
    }
    return ENT_OK;
}

static ent_code plan_sizes(ent_ops_call *call, const uint32_t *axes, uint32_t count, resize_plan *plan) {
    int64_t sizes[ENT_MAX_RANK];
    uint32_t size_count;
    ent_code code = ent_ops_input_list(call, 3, sizes, ENT_MAX_RANK, &size_count);
    if (code != ENT_OK) return code;
    if (size_count != count)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "sizes must be %u values", count);
    bool larger = ent_attrs_string_is(call->attrs, "keep_aspect_ratio_policy", "stretch", "not_larger");
    bool smaller = ent_attrs_string_is(call->attrs, "keep_aspect_ratio_policy", "stretch", "not_smaller");
    double common = larger ? INFINITY : 0;
    for (uint32_t i = 0; i < count; i++) {
        resize_axis *axis = &plan->axis[axes[i]];
        if (sizes[i] < 0 || sizes[i] > (int64_t)1 << 40 || (axis->in == 0 && sizes[i] > 0))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "sizes[%u] is %lld", i,
                                  (long long)sizes[i]);
        axis->out = sizes[i];
        axis->scale = axis->in > 0 ? (double)sizes[i] / (double)axis->in : 1;
        common = larger ? fmin(common, axis->scale) : fmax(common, axis->scale);
    }
    for (uint32_t i = 0; (larger || smaller) && i < count; i++) {
        resize_axis *axis = &plan->axis[axes[i]];
        axis->scale = common;
        axis->from_size = false;
        if (!(common * (double)axis->in <= MAX_SIZE))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "sizes[%u] by the ratio of others is %g",
                                  i, common * (double)axis->in);
        axis->out = (int64_t)floor(common * (double)axis->in + 0.5);
    }
    return ENT_OK;
}

static ent_code resize_resolve(ent_ops_call *call, resize_plan *plan) {
    const ent_tensor *x = ent_ops_input(call, 0), *roi = ent_ops_input(call, 1),
                     *scales = ent_ops_input(call, 2);
    uint32_t axes[ENT_MAX_RANK], count;
    ent_code code = listed_axes(call, axes, &count);
    if (code != ENT_OK) return code;
    *plan = (resize_plan){.rank = x->rank};
    for (uint32_t i = 0; i < x->rank; i++)
        plan->axis[i] = (resize_axis){x->dims[i], x->dims[i], 1, true, 0, 1};
    bool has_scales = scales && ent_ops_element_count(scales) > 0;
    if (has_scales == (ent_ops_input(call, 3) != NULL && ent_ops_element_count(ent_ops_input(call, 3)) > 0))
        return x->rank == 0 ? ENT_OK
                            : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "needs either scales or sizes");
    code = has_scales ? plan_scales(call, scales, axes, count, plan) : plan_sizes(call, axes, count, plan);
    if (code != ENT_OK || !ent_attrs_string_is(call->attrs, "coordinate_transformation_mode", "half_pixel",
                                               "tf_crop_and_resize"))
        return code;
    if (!roi || ent_ops_element_count(roi) != 2 * (int64_t)count || !roi->data)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "roi must be %u known values", 2 * count);
    for (uint32_t i = 0; i < count; i++) {
        plan->axis[axes[i]].roi_start = ent_ops_load_f64(roi->data, roi->dtype, i);
        plan->axis[axes[i]].roi_end = ent_ops_load_f64(roi->data, roi->dtype, i + count);
    }
    return ENT_OK;
}

ent_code ent_ops_dims_resize(ent_ops_call *call, ent_tensor *outputs) {
    resize_plan plan;
    ent_code code = resize_resolve(call, &plan);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    for (uint32_t i = 0; i < plan.rank; i++) outputs[0].dims[i] = plan.axis[i].out;
    return ENT_OK;
}

typedef enum transform {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_CROP_AND_RESIZE,
    TF_HALF_PIXEL_FOR_NN,
    TRANSFORM_COUNT
} transform;

static transform transform_of(ent_attrs attrs) {
    static const char *const names[] = {"half_pixel",          "half_pixel_symmetric", "pytorch_half_pixel",
                                        "align_corners",       "asymmetric",           "tf_crop_and_resize",
                                        "tf_half_pixel_for_nn"};
    for (int i = 0; i < TRANSFORM_COUNT; i++)
        if (ent_attrs_string_is(attrs, "coordinate_transformation_mode", "half_pixel", names[i]))
            return (transform)i;
    return TRANSFORM_COUNT;
}

static double unscale(const resize_axis *axis, double x) {
    if (axis->from_size) return x * (double)axis->in / (double)axis->out;
    return (double)(float)(x / axis->scale);
}

/* Far outside is outside: what a roi says need not fit an integer, or be a number. */
static double bounded(double x) {
    return x > -MAX_SIZE ? fmin(x, MAX_SIZE) : -MAX_SIZE;
}

/* Where output position i lies in the input. */
static double source_of(const resize_axis *axis, transform mode, int64_t i) {
    double x = (double)i, in = (double)axis->in, out = (double)axis->out;
    switch (mode) {
    case HALF_PIXEL_SYMMETRIC: {
        double adjustment = out / (axis->scale * in);
        return in / 2 * (1 - adjustment) + unscale(axis, x + 0.5) - 0.5;
    }
    case PYTORCH_HALF_PIXEL:
        return axis->out > 1 ? unscale(axis, x + 0.5) - 0.5 : 0;
    case ALIGN_CORNERS:
        return axis->out > 1 ? x * (in - 1) / (out - 1) : 0;
    case ASYMMETRIC:
        return unscale(axis, x);
    case TF_HALF_PIXEL_FOR_NN:
        return unscale(axis, x + 0.5);
    case TF_CROP_AND_RESIZE:
        if (axis->out > 1)
            return bounded(axis->roi_start * (in - 1) +
                           x * (axis->roi_end - axis->roi_start) * (in - 1) / (out - 1));
        return bounded(0.5 * (axis->roi_start + axis->roi_end) * (in - 1));
    default:
        return unscale(axis, x + 0.5) - 0.5;
    }
}

static int64_t nearest(ent_attrs attrs, double x) {
    if (ent_attrs_string_is(attrs, "nearest_mode", "round_prefer_floor", "floor")) return (int64_t)floor(x);
    if (ent_attrs_string_is(attrs, "nearest_mode", "round_prefer_floor", "ceil")) return (int64_t)ceil(x);
    if (ent_attrs_string_is(attrs, "nearest_mode", "round_prefer_floor", "round_prefer_ceil"))
        return (int64_t)floor(x + 0.5);
    return (int64_t)ceil(x - 0.5);
}

/* Taps of one output position: weights[k] at input index first + k. */
typedef struct taps {
    int64_t first, count;
    double *weights;
} taps;

static double kernel_value(bool cubic, double a, double x) {
    x = fabs(x);
    if (!cubic) return x < 1 ? 1 - x : 0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

typedef struct filter {
    bool cubic, antialias, exclude_outside, crops;
    double a, extrapolation;
    transform mode;
} filter;

static taps taps_at(const filter *f, const resize_axis *axis, double x, double *weights) {
    double scale = f->antialias && axis->scale < 1 ? axis->scale : 1;
    double whole = floor(x), fraction = x - whole, reach = f->cubic ? 2 : 1, sum = 0;
    int64_t start = (int64_t)floor(-reach / scale) + 1, count = 2 - 2 * start;
    taps t = {(int64_t)whole + start, count, weights};
    for (int64_t k = 0; k < count; k++) {
        weights[k] = kernel_value(f->cubic, f->a, ((double)(start + k) - fraction) * scale);
        int64_t at = t.first + k;
        if (f->exclude_outside && (at < 0 || at >= axis->in)) weights[k] = 0;
        sum += weights[k];
    }
    for (int64_t k = 0; k < count && sum != 0; k++) weights[k] /= sum;
    return t;
}

/* One axis of x (outer x in x inner) to outer x out x inner. Samples beyond the edge repeat it. */
static ent_code filter_axis(ent_ops_call *call, const filter *f, const resize_axis *axis, int64_t outer,
                            int64_t inner, const double *x, double *y) {
    double scale = f->antialias && axis->scale < 1 ? axis->scale : 1;
    int64_t room = 2 * (int64_t)ceil((f->cubic ? 2 : 1) / scale) + 4;
    double *weights = ent_ops_scratch(call, room, sizeof(double));
    if (!weights) return ENT_CODE_OUT_OF_MEMORY;
    memset(y, 0, (size_t)(outer * axis->out * inner) * sizeof(double));
    for (int64_t i = 0; i < axis->out; i++) {
        taps t = taps_at(f, axis, source_of(axis, f->mode, i), weights);
        for (int64_t k = 0; k < t.count; k++) {
            int64_t at = t.first + k < 0 ? 0 : t.first + k >= axis->in ? axis->in - 1 : t.first + k;
            if (weights[k] == 0) continue;
            for (int64_t o = 0; o < outer; o++)
                for (int64_t j = 0; j < inner; j++)
                    y[(o * axis->out + i) * inner + j] += weights[k] * x[(o * axis->in + at) * inner + j];
        }
    }
    return ENT_OK;
}

/* tf_crop_and_resize: an output element whose coordinate is outside on any axis. */
static void extrapolate(const resize_plan *plan, const filter *f, double *y) {
    int64_t before = 1, count = 1;
    for (uint32_t i = 0; i < plan->rank; i++) count *= plan->axis[i].out;
    for (uint32_t i = 0; i < plan->rank; i++) {
        const resize_axis *axis = &plan->axis[i];
        before *= axis->out;
        int64_t inner = count / before;
        for (int64_t j = 0; j < axis->out; j++) {
            double at = source_of(axis, f->mode, j);
            if (at >= 0 && at <= (double)(axis->in - 1)) continue;
            for (int64_t o = 0; o < before / axis->out; o++)
                for (int64_t k = 0; k < inner; k++) y[(o * axis->out + j) * inner + k] = f->extrapolation;
        }
    }
}

static ent_code pick_axis(ent_ops_call *call, const filter *f, const resize_axis *axis, int64_t outer,
                          int64_t inner, const double *x, double *y) {
    for (int64_t i = 0; i < axis->out; i++) {
        int64_t at = nearest(call->attrs, source_of(axis, f->mode, i));
        at = at < 0 ? 0 : at >= axis->in ? axis->in - 1 : at;
        for (int64_t o = 0; o < outer; o++)
            memcpy(y + (o * axis->out + i) * inner, x + (o * axis->in + at) * inner,
                   (size_t)inner * sizeof *y);
    }
    return ENT_OK;
}

ent_code ent_ops_resize(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *output = ent_ops_output(call, 0);
    resize_plan plan;
    if (!output || ent_ops_element_count(output) == 0) return ENT_OK;
    ent_code code = resize_resolve(call, &plan);
    if (code != ENT_OK) return code;
    bool pick = ent_attrs_string_is(call->attrs, "mode", "nearest", "nearest");
    filter f = {.cubic = ent_attrs_string_is(call->attrs, "mode", "nearest", "cubic"),
                .antialias = ent_attrs_int(call->attrs, "antialias", 0) != 0,
                .exclude_outside = ent_attrs_int(call->attrs, "exclude_outside", 0) != 0,
                .a = ent_attrs_float(call->attrs, "cubic_coeff_a", -0.75),
                .extrapolation = ent_attrs_float(call->attrs, "extrapolation_value", 0),
                .mode = transform_of(call->attrs)};
    if (f.mode == TRANSFORM_COUNT ||
        (!pick && !f.cubic && !ent_attrs_string_is(call->attrs, "mode", "nearest", "linear")))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED,
                              "mode or coordinate_transformation_mode is unknown");
    double *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    int64_t outer = 1, inner = ent_ops_element_count(x);
    for (uint32_t i = 0; i < plan.rank; i++) {
        const resize_axis *axis = &plan.axis[i];
        inner /= axis->in;
        if (axis->in != axis->out || axis->scale != 1 || f.mode == TF_CROP_AND_RESIZE) {
            double *next = ent_ops_scratch(call, outer * axis->out * inner, sizeof(double));
            if (!next) return ENT_CODE_OUT_OF_MEMORY;
            code = pick ? pick_axis(call, &f, axis, outer, inner, values, next)
                        : filter_axis(call, &f, axis, outer, inner, values, next);
            if (code != ENT_OK) return code;
            values = next;
        }
        outer *= axis->out;
    }
    if (f.mode == TF_CROP_AND_RESIZE) extrapolate(&plan, &f, values);
    ent_ops_result_f64(output, values);
    return ENT_OK;
}
