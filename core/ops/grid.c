/* GridSample and AffineGrid, of any number of spatial axes. Each axis gives a few taps (an input index and a
 * weight); a sample is the sum over their products. Formulas: the ONNX schemas of GridSample 22 and
 * AffineGrid 20; reflection as in PyTorch's grid_sample. */
#include "core/ops/internal.h"

#include <math.h>

typedef enum padding { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION } padding;
typedef enum interpolation { NEAREST, LINEAR, CUBIC } interpolation;

typedef struct sampler {
    const ent_tensor *x;
    uint32_t spatial;
    padding padding;
    interpolation mode;
    bool align, single_precision;
} sampler;

#define MAX_TAPS 4
typedef struct axis_taps {
    uint32_t count;
    int64_t at[MAX_TAPS]; /* -1: beyond the edge, reads as 0 */
    double weight[MAX_TAPS];
} axis_taps;

ent_code ent_ops_dims_grid_sample(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *grid = ent_ops_input(call, 1);
    if (x->rank < 3 || grid->rank != x->rank || grid->dims[0] != x->dims[0] ||
        grid->dims[x->rank - 1] != x->rank - 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the grid does not fit the input");
    ent_ops_dims_copy(x, &outputs[0]);
    for (uint32_t i = 2; i < x->rank; i++) outputs[0].dims[i] = grid->dims[i - 1];
    return ENT_OK;
}

static double reflect(double x, double low, double high) {
    double range = high - low;
    if (!(range > 0)) return low < 0 ? 0 : low;
    if (x >= low && x <= high) return x;
    double beyond = x < low ? low - x : x - high, turns = floor(beyond / range),
           rest = beyond - turns * range;
    bool even = fmod(turns, 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

/* From [-1, 1] to input indices, in the precision of the grid. */
static double denormalize(const sampler *s, double n, int64_t extent) {
    if (!s->single_precision)
        return s->align ? (n + 1) / 2 * (double)(extent - 1) : ((n + 1) * (double)extent - 1) / 2;
    float f = (float)n, length = (float)extent;
    return s->align ? (double)((f + 1) / 2 * (length - 1)) : (double)(((f + 1) * length - 1) / 2);
}

static int64_t tap_index(const sampler *s, int64_t at, int64_t extent) {
    if (at >= 0 && at < extent) return at;
    if (s->padding == PAD_ZEROS) return -1;
    if (s->padding == PAD_BORDER) return at < 0 ? 0 : extent - 1;
    double low = s->align ? 0 : -0.5, high = (double)extent - (s->align ? 1 : 0.5);
    int64_t inside = (int64_t)reflect((double)at, low, high);
    return inside < 0 ? 0 : inside >= extent ? extent - 1 : inside;
}

/* Cubic convolution with a = -0.75. */
static void cubic_weights(double t, double *out) {
    const double a = -0.75;
    out[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    out[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    out[2] = ((a + 2) * (1 - t) - (a + 3)) * (1 - t) * (1 - t) + 1;
    out[3] = ((a * (2 - t) - 5 * a) * (2 - t) + 8 * a) * (2 - t) - 4 * a;
}

static axis_taps taps_of(const sampler *s, double n, int64_t extent) {
    const double far = 1e9;
    double low = s->align ? 0 : -0.5, high = (double)extent - (s->align ? 1 : 0.5);
    double x = denormalize(s, n, extent);
    if (s->mode == NEAREST) x = nearbyint(x);
    if (x < low || x > high) {
        if (s->padding == PAD_BORDER) x = x < 0 ? 0 : x > (double)(extent - 1) ? (double)(extent - 1) : x;
        if (s->padding == PAD_REFLECTION) x = reflect(x, low, high);
    }
    if (!(x > -far)) x = -far; /* NaN too: far outside */
    if (x > far) x = far;
    double whole = floor(x);
    axis_taps taps = {.count = s->mode == NEAREST ? 1 : s->mode == LINEAR ? 2 : 4, .weight = {1}};
    if (s->mode == LINEAR) taps.weight[0] = 1 - (x - whole), taps.weight[1] = x - whole;
    if (s->mode == CUBIC) cubic_weights(x - whole, taps.weight);
    int64_t first = (int64_t)(s->mode == NEAREST ? trunc(x) : whole) - (s->mode == CUBIC ? 1 : 0);
    for (uint32_t i = 0; i < taps.count; i++) taps.at[i] = tap_index(s, first + i, extent);
    return taps;
}

/* The sum over the taps of the axes from `axis` on. */
static double sample(const sampler *s, const double *plane, const axis_taps *taps, uint32_t axis,
                     int64_t base) {
    double sum = 0;
    for (uint32_t i = 0; i < taps[axis].count; i++) {
        if (taps[axis].at[i] < 0) continue;
        int64_t at = base * s->x->dims[axis + 2] + taps[axis].at[i];
        sum += taps[axis].weight[i] *
               (axis + 1 == s->spatial ? plane[at] : sample(s, plane, taps, axis + 1, at));
    }
    return sum;
}

static ent_code read_modes(ent_ops_call *call, sampler *s) {
    static const char *const modes[] = {"nearest", "linear", "cubic"}, *const pads[] = {"zeros", "border",
                                                                                        "reflection"};
    uint32_t mode = 0, pad = 0;
    while (mode < 3 && !ent_attrs_string_is(call->attrs, "mode", "linear", modes[mode])) mode++;
    while (pad < 3 && !ent_attrs_string_is(call->attrs, "padding_mode", "zeros", pads[pad])) pad++;
    if (mode == 3 || pad == 3)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "mode or padding_mode is unknown");
    s->mode = (interpolation)mode;
    s->padding = (padding)pad;
    return ENT_OK;
}

ent_code ent_ops_grid_sample(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *grid = ent_ops_input(call, 1),
                     *y = ent_ops_output(call, 0);
    sampler s = {.x = x,
                 .spatial = x->rank - 2,
                 .align = ent_attrs_int(call->attrs, "align_corners", 0) != 0,
                 .single_precision = grid->dtype != ENT_DTYPE_F64};
    ent_code code = read_modes(call, &s);
    if (code != ENT_OK || !y) return code;
    int64_t plane = ent_ops_product(x->dims, 2, x->rank), points = ent_ops_product(y->dims, 2, y->rank);
    const double *values = ent_ops_values_f64(call, x), *places = ent_ops_values_f64(call, grid);
    double *result = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *result);
    if (!values || !places || !result) return ENT_CODE_OUT_OF_MEMORY;
    if (plane == 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has no element to sample");
    for (int64_t i = 0; i < x->dims[0] * points; i++) {
        axis_taps taps[ENT_MAX_RANK];
        /* The grid's last axis names the spatial axes from the innermost one on. */
        for (uint32_t k = 0; k < s.spatial; k++)
            taps[k] = taps_of(&s, places[i * s.spatial + s.spatial - 1 - k], x->dims[k + 2]);
        for (int64_t c = 0; c < x->dims[1]; c++) {
            int64_t image = i / points * x->dims[1] + c;
            result[image * points + i % points] = sample(&s, values + image * plane, taps, 0, 0);
        }
    }
    ent_ops_result_f64(y, result);
    return ENT_OK;
}

ent_code ent_ops_dims_affine_grid(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *theta = ent_ops_input(call, 0);
    int64_t size[ENT_MAX_RANK];
    uint32_t count;
    ent_code code = ent_ops_input_list(call, 1, size, ENT_MAX_RANK, &count);
    if (code != ENT_OK) return code;
    if ((count != 4 && count != 5) || theta->rank != 3 || theta->dims[0] != size[0] ||
        theta->dims[1] != count - 2 || theta->dims[2] != count - 1)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "theta and size do not fit");
    outputs[0].dtype = theta->dtype;
    outputs[0].rank = count;
    outputs[0].dims[0] = size[0];
    for (uint32_t i = 2; i < count; i++) {
        if (size[i] < 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "size %u is %lld", i, (long long)size[i]);
        outputs[0].dims[i - 1] = size[i];
    }
    outputs[0].dims[count - 1] = count - 2;
    return ENT_OK;
}

ent_code ent_ops_affine_grid(ent_ops_call *call) {
    const ent_tensor *theta = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t spatial = y->rank - 2;
    bool align = ent_attrs_int(call->attrs, "align_corners", 0) != 0;
    int64_t points = ent_ops_product(y->dims, 1, y->rank - 1);
    const double *t = ent_ops_values_f64(call, theta);
    double *result = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *result);
    if (!t || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < y->dims[0] * points; i++) {
        double place[4]; /* x, y (, z), 1 */
        int64_t rest = i % points;
        for (uint32_t k = 0; k < spatial; k++) {
            int64_t extent = y->dims[spatial - k], at = rest % extent;
            rest /= extent;
            if (align)
                place[k] = extent > 1 ? -1 + 2 * (double)at / (double)(extent - 1) : -1;
            else
                place[k] = (2 * (double)at + 1) / (double)extent - 1;
        }
        place[spatial] = 1;
        const double *matrix = t + i / points * spatial * (spatial + 1);
        for (uint32_t row = 0; row < spatial; row++) {
            double sum = 0;
            for (uint32_t k = 0; k <= spatial; k++) sum += matrix[row * (spatial + 1) + k] * place[k];
            result[i * spatial + row] = sum;
        }
    }
    ent_ops_result_f64(y, result);
    return ENT_OK;
}
