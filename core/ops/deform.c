/* DeformConv, two spatial axes: a convolution whose taps are moved by offsets and read between elements;
 * beyond the edge they read 0. Formula: the ONNX schema of DeformConv 22 (Deformable ConvNets v2,
 * arXiv:1811.11168). */
#include "core/ops/internal.h"

#include <math.h>

typedef struct deformation {
    ent_ops_window window;
    int64_t batch, channels, filters, groups, offset_groups;
    const double *x, *weights, *offset, *mask; /* mask can be NULL */
} deformation;

static ent_code resolve(ent_ops_call *call, deformation *d) {
    const ent_tensor *x = ent_ops_input(call, 0), *w = ent_ops_input(call, 1),
                     *offset = ent_ops_input(call, 2), *bias = ent_ops_input(call, 3),
                     *mask = ent_ops_input(call, 4);
    if (x->rank != 4)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED,
                              "the input has rank %u; only two spatial axes are done", x->rank);
    *d = (deformation){.batch = x->dims[0],
                       .channels = x->dims[1],
                       .filters = w->rank == 4 ? w->dims[0] : -1,
                       .groups = ent_attrs_int(call->attrs, "group", 1),
                       .offset_groups = ent_attrs_int(call->attrs, "offset_group", 1)};
    bool fits = w->rank == 4 && d->groups > 0 && d->offset_groups > 0 && d->channels % d->groups == 0 &&
                d->channels % d->offset_groups == 0 && d->filters % d->groups == 0 &&
                w->dims[1] == d->channels / d->groups &&
                (!bias || (bias->rank == 1 && bias->dims[0] == d->filters));
    if (!fits)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the input, the weights and the groups do not fit");
    ent_code code = ent_ops_window_resolve(call, x, w->dims + 2, false, &d->window);
    if (code != ENT_OK) return code;
    const ent_tensor *moved[2] = {offset, mask};
    for (int i = 0; i < 2 && fits; i++)
        fits =
            !moved[i] || (moved[i]->rank == 4 && moved[i]->dims[0] == d->batch &&
                          moved[i]->dims[1] == d->offset_groups * d->window.kernel_count * (i == 0 ? 2 : 1) &&
                          moved[i]->dims[2] == d->window.out[0] && moved[i]->dims[3] == d->window.out[1]);
    return fits ? ENT_OK : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "offset or mask does not fit");
}

ent_code ent_ops_dims_deform_conv(ent_ops_call *call, ent_tensor *outputs) {
    deformation d;
    ent_code code = resolve(call, &d);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dims[1] = d.filters;
    outputs[0].dims[2] = d.window.out[0];
    outputs[0].dims[3] = d.window.out[1];
    return ENT_OK;
}

static double element(const ent_ops_window *w, const double *plane, double y, double x) {
    if (!(y >= 0) || !(x >= 0) || y >= (double)w->in[0] || x >= (double)w->in[1]) return 0;
    return plane[(int64_t)y * w->in[1] + (int64_t)x];
}

static double between(const ent_ops_window *w, const double *plane, double y, double x) {
    if (!(y > -1) || !(x > -1) || y >= (double)w->in[0] || x >= (double)w->in[1]) return 0;
    double y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;
    return (1 - fy) * ((1 - fx) * element(w, plane, y0, x0) + fx * element(w, plane, y0, x0 + 1)) +
           fy * ((1 - fx) * element(w, plane, y0 + 1, x0) + fx * element(w, plane, y0 + 1, x0 + 1));
}

/* What the tap of a channel reads at an output position. */
static double tap_value(const deformation *d, int64_t n, int64_t channel, int64_t tap, int64_t position) {
    const ent_ops_window *w = &d->window;
    int64_t group = channel / (d->channels / d->offset_groups);
    int64_t row = (n * d->offset_groups + group) * w->kernel_count + tap, size = w->out_count;
    double y =
        (double)(position / w->out[1] * w->stride[0] - w->pad_begin[0] + tap / w->kernel[1] * w->dilation[0]);
    double x =
        (double)(position % w->out[1] * w->stride[1] - w->pad_begin[1] + tap % w->kernel[1] * w->dilation[1]);
    y += d->offset[2 * row * size + position];
    x += d->offset[(2 * row + 1) * size + position];
    double value = between(w, d->x + (n * d->channels + channel) * w->in_count, y, x);
    return d->mask ? value * d->mask[row * size + position] : value;
}

ent_code ent_ops_deform_conv(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0), *bias = ent_ops_input(call, 3),
                     *mask = ent_ops_input(call, 4);
    deformation d;
    ent_code code = resolve(call, &d);
    if (code != ENT_OK || !y) return code;
    const ent_ops_window *w = &d.window;
    int64_t depth = d.channels / d.groups * w->kernel_count, group_filters = d.filters / d.groups;
    d.x = ent_ops_values_f64(call, ent_ops_input(call, 0));
    d.weights = ent_ops_values_f64(call, ent_ops_input(call, 1));
    d.offset = ent_ops_values_f64(call, ent_ops_input(call, 2));
    d.mask = mask ? ent_ops_values_f64(call, mask) : NULL;
    double *column = ent_ops_scratch(call, depth, sizeof *column),
           *result = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *result);
    if (!d.x || !d.weights || !d.offset || (mask && !d.mask) || !column || !result)
        return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < d.batch * d.groups; i++)
        for (int64_t p = 0; p < w->out_count; p++) {
            int64_t n = i / d.groups, group = i % d.groups;
            for (int64_t k = 0; k < depth; k++)
                column[k] = tap_value(&d, n, group * (d.channels / d.groups) + k / w->kernel_count,
                                      k % w->kernel_count, p);
            for (int64_t m = group * group_filters; m < (group + 1) * group_filters; m++) {
                double sum = bias ? ent_ops_load_f64(bias->data, bias->dtype, m) : 0;
                for (int64_t k = 0; k < depth; k++) sum += d.weights[m * depth + k] * column[k];
                result[(n * d.filters + m) * w->out_count + p] = sum;
            }
        }
    ent_ops_result_f64(y, result);
    return ENT_OK;
}
