/* Windows of convolutions and pools, from attributes. */
#include "core/fusion/internal.h"

static void read_ints(const fusion_item *item, const char *name, uint32_t count, int64_t missing,
                      int64_t *out) {
    const ent_attr *attr = ent_attrs_find(item->attrs, name);
    for (uint32_t i = 0; i < count; i++) out[i] = attr && i < attr->count ? attr->ints[i] : missing;
}

/* SAME: the output is ceil(in / stride) and padding is split, the odd one at the end (or the beginning for
 * SAME_LOWER). */
static void same_padding(fusion_window *w, bool lower) {
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t total = (w->out[i] - 1) * w->stride[i] + reach - w->in[i];
        if (total < 0) total = 0;
        w->pad[i] = lower ? (total + 1) / 2 : total / 2;
        w->pad_end[i] = total - w->pad[i];
    }
}

/* Transposed: padding follows from the output's size: total = stride (in - 1) + output_padding + reach - out.
 */
static void transposed_padding(const fusion_item *item, fusion_window *w) {
    int64_t extra[FUSION_MAX_SPATIAL];
    bool lower = ent_attrs_string_is(item->attrs, "auto_pad", "NOTSET", "SAME_LOWER");
    bool upper = ent_attrs_string_is(item->attrs, "auto_pad", "NOTSET", "SAME_UPPER");
    bool shaped = ent_attrs_find(item->attrs, "output_shape") != NULL;
    if (!shaped && !lower && !upper) return;
    read_ints(item, "output_padding", w->rank, 0, extra);
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t total = w->stride[i] * (w->in[i] - 1) + extra[i] + reach - w->out[i];
        w->pad[i] = upper ? total / 2 : total - total / 2;
        w->pad_end[i] = total - w->pad[i];
    }
}

bool fusion_window_read(const fusion_context *context, const fusion_item *item, uint32_t weights,
                        bool transposed, fusion_window *out) {
    const ent_value *x = fusion_value_of(context, item->inputs[0]),
                    *y = fusion_value_of(context, item->outputs[0]);
    int64_t pads[2 * FUSION_MAX_SPATIAL];
    if (x->rank < 3 || x->rank - 2 > FUSION_MAX_SPATIAL || y->rank != x->rank) return false;
    out->rank = x->rank - 2;
    read_ints(item, "kernel_shape", out->rank, 1, out->kernel);
    read_ints(item, "strides", out->rank, 1, out->stride);
    read_ints(item, "dilations", out->rank, 1, out->dilation);
    read_ints(item, "pads", 2 * out->rank, 0, pads);
    bool valid = ent_attrs_string_is(item->attrs, "auto_pad", "NOTSET", "VALID");
    for (uint32_t i = 0; i < out->rank; i++) {
        out->in[i] = x->dims[i + 2];
        out->out[i] = y->dims[i + 2];
        if (weights != ENT_ID_NONE) out->kernel[i] = fusion_value_of(context, weights)->dims[i + 2];
        out->pad[i] = valid ? 0 : pads[i];
        out->pad_end[i] = valid ? 0 : pads[i + out->rank];
        if (out->kernel[i] < 1 || out->stride[i] < 1 || out->dilation[i] < 1) return false;
    }
    bool lower = ent_attrs_string_is(item->attrs, "auto_pad", "NOTSET", "SAME_LOWER");
    bool upper = ent_attrs_string_is(item->attrs, "auto_pad", "NOTSET", "SAME_UPPER");
    if (transposed)
        transposed_padding(item, out);
    else if (lower || upper)
        same_padding(out, lower);
    return true;
}
