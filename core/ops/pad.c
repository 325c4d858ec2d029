/* Pad, all modes; negative pads cut. */
#include "core/ops/internal.h"

#include <string.h>

typedef enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_WRAP } pad_mode;

static ent_code read_pads(ent_ops_call *call, int64_t *out_begin, int64_t *out_end) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t pads[2 * ENT_MAX_RANK], axes[ENT_MAX_RANK];
    uint32_t pad_count, axis_count = x->rank;
    ent_code code = ent_ops_input_list(call, 1, pads, 2 * ENT_MAX_RANK, &pad_count);
    for (uint32_t i = 0; i < x->rank; i++) {
        out_begin[i] = out_end[i] = 0;
        axes[i] = i;
    }
    if (code == ENT_OK && ent_ops_input(call, 3))
        code = ent_ops_input_list(call, 3, axes, ENT_MAX_RANK, &axis_count);
    if (code != ENT_OK) return code;
    if (pad_count != 2 * axis_count)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%u pads for %u axes", pad_count, axis_count);
    for (uint32_t i = 0; i < axis_count; i++) {
        uint32_t axis;
        code = ent_ops_axis(call, axes[i], x->rank, &axis);
        if (code != ENT_OK) return code;
        out_begin[axis] = pads[i];
        out_end[axis] = pads[axis_count + i];
        const int64_t limit = (int64_t)1 << 40;
        if (pads[i] > limit || pads[i] < -limit || out_end[axis] > limit || out_end[axis] < -limit)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "a pad of axis %u is out of range", axis);
    }
    return ENT_OK;
}

ent_code ent_ops_dims_pad(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t begin[ENT_MAX_RANK], end[ENT_MAX_RANK];
    ent_code code = read_pads(call, begin, end);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(x, &outputs[0]);
    bool constant = ent_attrs_string_is(call->attrs, "mode", "constant", "constant");
    for (uint32_t i = 0; i < x->rank; i++) {
        outputs[0].dims[i] += begin[i] + end[i];
        if (outputs[0].dims[i] < 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u is cut below 0", i);
        if (x->dims[i] == 0 && outputs[0].dims[i] > 0 && !constant)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u is empty: nothing to repeat", i);
    }
    return ENT_OK;
}

/* Where position i of the output (counted from the input's start) reads; -1: the constant. */
static int64_t source_of(int64_t i, int64_t extent, pad_mode mode) {
    if (i >= 0 && i < extent) return i;
    switch (mode) {
    case PAD_EDGE:
        return i < 0 ? 0 : extent - 1;
    case PAD_WRAP:
        return ((i % extent) + extent) % extent;
    case PAD_REFLECT: {
        if (extent == 1) return 0;
        int64_t period = 2 * (extent - 1), at = ((i % period) + period) % period;
        return at < extent ? at : period - at;
    }
    default:
        return -1;
    }
}

static void fill_row(const uint8_t *row, const int64_t *source, int64_t count, int64_t size,
                     const uint8_t *constant, uint8_t *to) {
    for (int64_t j = 0; j < count; j++) {
        const uint8_t *from = row && source[j] >= 0 ? row + source[j] * size : constant;
        memcpy(to + j * size, from, (size_t)size);
    }
}

static void pad_rows(const ent_tensor *x, const ent_tensor *y, int64_t *const *source,
                     const uint8_t *constant) {
    int64_t size = ent_dtype_bits((ent_dtype)x->dtype) / 8, index[ENT_MAX_RANK] = {0};
    uint32_t last = y->rank - 1;
    uint8_t *to = y->data;
    for (;;) {
        int64_t row = 0;
        for (uint32_t i = 0; i < last; i++) {
            int64_t from = source[i][index[i]];
            if (from < 0 || row < 0)
                row = -1;
            else
                row = row * x->dims[i] + from;
        }
        fill_row(row < 0 ? NULL : (const uint8_t *)x->data + row * x->dims[last] * size, source[last],
                 y->dims[last], size, constant, to);
        to += y->dims[last] * size;
        uint32_t axis = last;
        while (axis-- > 0) {
            if (++index[axis] < y->dims[axis]) break;
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) return;
    }
}

ent_code ent_ops_pad(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0),
                     *value = ent_ops_input(call, 2);
    int64_t begin[ENT_MAX_RANK], end[ENT_MAX_RANK], *source[ENT_MAX_RANK];
    if (!y || ent_ops_element_count(y) == 0) return ENT_OK;
    ent_code code = read_pads(call, begin, end);
    if (code != ENT_OK) return code;
    if (y->rank == 0) return ent_ops_reshape(call);
    pad_mode mode = PAD_CONSTANT;
    if (ent_attrs_string_is(call->attrs, "mode", "constant", "edge"))
        mode = PAD_EDGE;
    else if (ent_attrs_string_is(call->attrs, "mode", "constant", "reflect"))
        mode = PAD_REFLECT;
    else if (ent_attrs_string_is(call->attrs, "mode", "constant", "wrap"))
        mode = PAD_WRAP;
    else if (!ent_attrs_string_is(call->attrs, "mode", "constant", "constant"))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the mode is unknown");
    uint8_t constant[16] = {0};
    if (value && (value->dtype != x->dtype || ent_ops_element_count(value) != 1))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the constant must be one value of the input's dtype");
    if (value) memcpy(constant, value->data, ent_dtype_bits((ent_dtype)x->dtype) / 8);
    for (uint32_t i = 0; i < y->rank; i++) {
        source[i] = ent_ops_scratch(call, y->dims[i], sizeof(int64_t));
        if (!source[i]) return ENT_CODE_OUT_OF_MEMORY;
        for (int64_t j = 0; j < y->dims[i]; j++) source[i][j] = source_of(j - begin[i], x->dims[i], mode);
    }
    pad_rows(x, y, source, constant);
    return ENT_OK;
}
