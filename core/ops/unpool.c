/* MaxUnpool and Col2Im: windows back to what they were taken from. Formulas: the ONNX schemas of MaxUnpool 22
 * and Col2Im 18. */
#include "core/ops/internal.h"

#include <string.h>

static int64_t setting(ent_ops_call *call, const char *name, uint32_t i, uint32_t count, int64_t missing) {
    const ent_attr *list = ent_attrs_find(call->attrs, name);
    return list && list->type == ENT_ATTR_INTS && list->count == count ? list->ints[i] : missing;
}

#define LARGEST_SETTING (1 << 22)

ent_code ent_ops_dims_max_unpool(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1);
    int64_t shape[ENT_MAX_RANK];
    uint32_t count = 0, spatial = x->rank - 2;
    bool fits = x->rank >= 3 && indices->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++) fits = indices->dims[i] == x->dims[i];
    if (!fits) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the indices do not fit the input");
    ent_code code = ent_ops_input_list(call, 2, shape, ENT_MAX_RANK, &count);
    if (code != ENT_OK) return code;
    if (ent_ops_input(call, 2) && count != x->rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "output_shape has %u values", count);
    ent_ops_dims_copy(x, &outputs[0]);
    for (uint32_t i = 0; i < spatial; i++) {
        int64_t kernel = setting(call, "kernel_shape", i, spatial, -1),
                stride = setting(call, "strides", i, spatial, 1);
        int64_t pads =
            setting(call, "pads", i, 2 * spatial, 0) + setting(call, "pads", i + spatial, 2 * spatial, 0);
        if (kernel < 1 || stride < 1 || kernel > LARGEST_SETTING || stride > LARGEST_SETTING || pads < 0 ||
            pads > 2 * LARGEST_SETTING)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "kernel_shape, strides or pads of axis %u",
                                  i);
        outputs[0].dims[i + 2] = count ? shape[i + 2] : (x->dims[i + 2] - 1) * stride + kernel - pads;
        if (outputs[0].dims[i + 2] < 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u would have extent %lld", i + 2,
                                  (long long)outputs[0].dims[i + 2]);
    }
    return ENT_OK;
}

/* Indices count elements of the whole result. */
ent_code ent_ops_max_unpool(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t count = ent_ops_element_count(y), size = ent_dtype_bits((ent_dtype)x->dtype) / 8;
    const int64_t *index = ent_ops_values_i64(call, ent_ops_input(call, 1));
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    memset(y->data, 0, (size_t)(count * size));
    for (int64_t i = 0; i < ent_ops_element_count(x); i++) {
        if (index[i] < 0 || index[i] >= count)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "index %lld is outside %lld elements",
                                  (long long)index[i], (long long)count);
        memcpy((uint8_t *)y->data + index[i] * size, (const uint8_t *)x->data + i * size, (size_t)size);
    }
    return ENT_OK;
}

typedef struct columns {
    uint32_t rank;
    int64_t image[ENT_MAX_RANK], block[ENT_MAX_RANK], stride[ENT_MAX_RANK], dilation[ENT_MAX_RANK],
        pad[ENT_MAX_RANK];
    int64_t steps[ENT_MAX_RANK]; /* window positions along each axis */
    int64_t taps, positions, channels;
} columns;

static ent_code columns_axis(ent_ops_call *call, columns *c, uint32_t i) {
    c->stride[i] = setting(call, "strides", i, c->rank, 1);
    c->dilation[i] = setting(call, "dilations", i, c->rank, 1);
    c->pad[i] = setting(call, "pads", i, 2 * c->rank, 0);
    int64_t end = setting(call, "pads", i + c->rank, 2 * c->rank, 0);
    bool sane = c->stride[i] > 0 && c->dilation[i] > 0 && c->block[i] > 0 && c->pad[i] >= 0 && end >= 0 &&
                c->stride[i] <= LARGEST_SETTING && c->dilation[i] <= LARGEST_SETTING &&
                c->block[i] <= LARGEST_SETTING && c->pad[i] <= LARGEST_SETTING && end <= LARGEST_SETTING &&
                c->image[i] >= 0 && c->image[i] <= (int64_t)1 << 40;
    if (!sane)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "a setting of axis %u is out of range", i);
    int64_t room = c->image[i] + c->pad[i] + end - c->dilation[i] * (c->block[i] - 1) - 1;
    c->steps[i] = room < 0 ? 0 : room / c->stride[i] + 1;
    return ENT_OK;
}

static ent_code columns_resolve(ent_ops_call *call, columns *c) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t block_count;
    *c = (columns){.taps = 1, .positions = 1};
    ent_code code = ent_ops_input_list(call, 1, c->image, ENT_MAX_RANK - 2, &c->rank);
    if (code == ENT_OK) code = ent_ops_input_list(call, 2, c->block, ENT_MAX_RANK - 2, &block_count);
    if (code != ENT_OK) return code;
    if (x->rank != 3 || block_count != c->rank || c->rank == 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the input, the image and the block do not fit");
    for (uint32_t i = 0; i < c->rank; i++) {
        code = columns_axis(call, c, i);
        if (code != ENT_OK) return code;
        bool counts = c->taps <= x->dims[1] && c->positions <= x->dims[2];
        c->taps = counts ? c->taps * c->block[i] : x->dims[1] + 1;
        c->positions = counts ? c->positions * c->steps[i] : x->dims[2] + 1;
    }
    if (x->dims[1] % c->taps != 0 || x->dims[2] != c->positions)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "%lld rows and %lld columns do not fit %lld taps at %lld positions",
                              (long long)x->dims[1], (long long)x->dims[2], (long long)c->taps,
                              (long long)c->positions);
    c->channels = x->dims[1] / c->taps;
    return ENT_OK;
}

ent_code ent_ops_dims_col2im(ent_ops_call *call, ent_tensor *outputs) {
    columns c;
    ent_code code = columns_resolve(call, &c);
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_input(call, 0)->dtype;
    outputs[0].rank = c.rank + 2;
    outputs[0].dims[0] = ent_ops_input(call, 0)->dims[0];
    outputs[0].dims[1] = c.channels;
    memcpy(outputs[0].dims + 2, c.image, c.rank * sizeof *c.image);
    return ENT_OK;
}

/* The image element that a tap of a position lies on; -1 in the padding. */
static int64_t image_index(const columns *c, int64_t tap, int64_t position) {
    int64_t at[ENT_MAX_RANK], index = 0;
    for (uint32_t i = c->rank; i-- > 0; tap /= c->block[i], position /= c->steps[i]) {
        at[i] = position % c->steps[i] * c->stride[i] + tap % c->block[i] * c->dilation[i] - c->pad[i];
        if (at[i] < 0 || at[i] >= c->image[i]) return -1;
    }
    for (uint32_t i = 0; i < c->rank; i++) index = index * c->image[i] + at[i];
    return index;
}

ent_code ent_ops_col2im(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    columns c;
    ent_code code = columns_resolve(call, &c);
    if (code != ENT_OK || !y) return code;
    bool floats = ent_ops_dtype_in(x->dtype, ENT_OPS_FLOATS);
    int64_t plane = ent_ops_product(c.image, 0, c.rank), count = ent_ops_element_count(y);
    const double *values = floats ? ent_ops_values_f64(call, x) : NULL;
    const int64_t *integers = floats ? NULL : ent_ops_values_i64(call, x);
    double *sums = floats ? ent_ops_scratch(call, count, sizeof *sums) : NULL;
    int64_t *totals = floats ? NULL : ent_ops_scratch(call, count, sizeof *totals);
    if (floats ? !values || !sums : !integers || !totals) return ENT_CODE_OUT_OF_MEMORY;
    memset(floats ? (void *)sums : (void *)totals, 0, (size_t)count * 8);
    for (int64_t row = 0; row < x->dims[0] * x->dims[1]; row++)
        for (int64_t p = 0; p < c.positions; p++) {
            int64_t at = image_index(&c, row % c.taps, p), to = row / c.taps * plane + at;
            if (at < 0) continue;
            if (floats)
                sums[to] += values[row * c.positions + p];
            else
                totals[to] = (int64_t)((uint64_t)totals[to] + (uint64_t)integers[row * c.positions + p]);
        }
    if (floats)
        ent_ops_result_f64(y, sums);
    else
        ent_ops_result_i64(y, totals);
    return ENT_OK;
}
