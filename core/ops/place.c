/* Operators that keep, move or mark elements by position: Trilu, Compress, OneHot, EyeLike, ReverseSequence,
 * CenterCropPad, BitCast. */
#include "core/ops/internal.h"

#include <string.h>

static int64_t element_bytes(const ent_tensor *tensor) {
    return ent_dtype_bits((ent_dtype)tensor->dtype) / 8;
}

static ent_code single(ent_ops_call *call, uint32_t index, int64_t *out) {
    const ent_tensor *tensor = ent_ops_input(call, index);
    if (ent_ops_element_count(tensor) != 1 || !tensor->data)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u must be one known value", index);
    *out = ent_ops_load_i64(tensor->data, tensor->dtype, 0);
    return ENT_OK;
}

/* Row i keeps columns from i + k on (upper) or up to i + k. */
ent_code ent_ops_trilu(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    bool upper = ent_attrs_int(call->attrs, "upper", 1) != 0;
    int64_t k = 0;
    ent_code code = ent_ops_input(call, 1) ? single(call, 1, &k) : ENT_OK;
    if (x->rank < 2) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has rank %u", x->rank);
    if (code != ENT_OK || !y) return code;
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1], size = element_bytes(x);
    int64_t lines = ent_ops_product(x->dims, 0, x->rank - 1);
    k = k > columns ? columns : k < -rows ? -rows : k;
    memset(y->data, 0, (size_t)(lines * columns * size));
    for (int64_t i = 0; i < lines; i++) {
        int64_t edge = i % rows + k + (upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        int64_t from = upper ? edge : 0, to = upper ? columns : edge, at = (i * columns + from) * size;
        memcpy((uint8_t *)y->data + at, (const uint8_t *)x->data + at, (size_t)((to - from) * size));
    }
    return ENT_OK;
}

/* Slices whose condition is true; the condition may be shorter than the axis. */
static ent_code compress_shape(ent_ops_call *call, int64_t *outer, int64_t *extent, int64_t *inner,
                               int64_t *kept) {
    const ent_tensor *x = ent_ops_input(call, 0), *condition = ent_ops_input(call, 1);
    const ent_attr *along = ent_attrs_find(call->attrs, "axis");
    uint32_t axis = 0;
    *outer = *inner = 1;
    *extent = ent_ops_element_count(x);
    if (along) {
        ent_code code = ent_ops_axis(call, along->i, x->rank, &axis);
        if (code != ENT_OK) return code;
        *outer = ent_ops_product(x->dims, 0, axis);
        *extent = x->dims[axis];
        *inner = ent_ops_product(x->dims, axis + 1, x->rank);
    }
    if (condition->rank != 1 || condition->dtype != ENT_DTYPE_BOOL ||
        (condition->dims[0] > 0 && !condition->data))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the condition must be a known list of bool");
    *kept = 0;
    for (int64_t i = 0; i < condition->dims[0] && i < *extent; i++)
        *kept += ((const uint8_t *)condition->data)[i] != 0;
    return ENT_OK;
}

ent_code ent_ops_dims_compress(ent_ops_call *call, ent_tensor *outputs) {
    const ent_attr *along = ent_attrs_find(call->attrs, "axis");
    int64_t outer, extent, inner, kept;
    uint32_t axis = 0;
    ent_code code = compress_shape(call, &outer, &extent, &inner, &kept);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    if (along)
        ent_ops_axis(call, along->i, outputs[0].rank, &axis);
    else
        outputs[0].rank = 1;
    outputs[0].dims[axis] = kept;
    return ENT_OK;
}

ent_code ent_ops_compress(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *condition = ent_ops_input(call, 1),
                     *y = ent_ops_output(call, 0);
    int64_t outer, extent, inner, kept;
    ent_code code = compress_shape(call, &outer, &extent, &inner, &kept);
    if (code != ENT_OK || !y) return code;
    int64_t row = inner * element_bytes(x), limit = condition->dims[0] < extent ? condition->dims[0] : extent;
    uint8_t *to = y->data;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < limit; i++) {
            if (!((const uint8_t *)condition->data)[i]) continue;
            memcpy(to, (const uint8_t *)x->data + (o * extent + i) * row, (size_t)row);
            to += row;
        }
    return ENT_OK;
}

ent_code ent_ops_dims_one_hot(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *indices = ent_ops_input(call, 0), *values = ent_ops_input(call, 2);
    int64_t depth = 0;
    uint32_t axis;
    if (indices->rank >= ENT_MAX_RANK)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the result has rank %u", indices->rank + 1);
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), indices->rank + 1, &axis);
    if (code == ENT_OK) code = single(call, 1, &depth);
    if (code != ENT_OK) return code;
    if (depth < 0 || values->rank != 1 || values->dims[0] != 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "depth is %lld, or values are not two",
                              (long long)depth);
    outputs[0].dtype = values->dtype;
    outputs[0].rank = indices->rank + 1;
    for (uint32_t i = 0; i < outputs[0].rank; i++)
        outputs[0].dims[i] = i == axis ? depth : indices->dims[i < axis ? i : i - 1];
    return ENT_OK;
}

ent_code ent_ops_one_hot(ent_ops_call *call) {
    const ent_tensor *indices = ent_ops_input(call, 0), *values = ent_ops_input(call, 2),
                     *y = ent_ops_output(call, 0);
    uint32_t axis = 0;
    if (!y) return ENT_OK;
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), y->rank, &axis);
    int64_t depth = y->dims[axis], inner = ent_ops_product(y->dims, axis + 1, y->rank),
            size = element_bytes(y);
    int64_t *index = ent_ops_values_i64(call, indices), count = ent_ops_element_count(indices);
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    const uint8_t *off = values->data, *on = off + size;
    for (int64_t i = 0; i < count * depth; i++) memcpy((uint8_t *)y->data + i * size, off, (size_t)size);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = index[i] < 0 ? index[i] + depth : index[i];
        if (at < 0 || at >= depth) continue;
        memcpy((uint8_t *)y->data + ((i / inner * depth + at) * inner + i % inner) * size, on, (size_t)size);
    }
    return ENT_OK;
}

ent_code ent_ops_dims_eye_like(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    if (x->rank < 1 || x->rank > 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has rank %u, not 2", x->rank);
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "dtype", x->dtype);
    outputs[0].rank = 2;
    outputs[0].dims[0] = x->dims[0];
    outputs[0].dims[1] = x->dims[x->rank - 1];
    if (!ent_ops_dtype_in(outputs[0].dtype, ENT_OPS_NUMBERS | ENT_OPS_BOOL))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "no identity matrix of %s",
                              ent_dtype_name((ent_dtype)outputs[0].dtype));
    return ENT_OK;
}

ent_code ent_ops_eye_like(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t k = ent_attrs_int(call->attrs, "k", 0), rows = y->dims[0], columns = y->dims[1], stride[2];
    ent_ops_strides(y, stride);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            ent_ops_store_i64(y->data, y->dtype, i * stride[0] + j * stride[1], j - i == k);
    return ENT_OK;
}

ent_code ent_ops_reverse_sequence(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *lengths = ent_ops_input(call, 1),
                     *y = ent_ops_output(call, 0);
    int64_t batch = ent_attrs_int(call->attrs, "batch_axis", 1),
            time = ent_attrs_int(call->attrs, "time_axis", 0);
    if (x->rank < 2 || batch + time != 1 || batch * time != 0 || lengths->rank != 1 ||
        lengths->dims[0] != x->dims[batch])
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the axes or the lengths do not fit the input");
    if (!y) return ENT_OK;
    int64_t row = ent_ops_product(x->dims, 2, x->rank) * element_bytes(x);
    for (int64_t b = 0; b < x->dims[batch]; b++) {
        int64_t length = ent_ops_load_i64(lengths->data, lengths->dtype, b);
        if (length < 0 || length > x->dims[time])
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "length %lld of a sequence of %lld",
                                  (long long)length, (long long)x->dims[time]);
        for (int64_t t = 0; t < x->dims[time]; t++) {
            int64_t from = t < length ? length - 1 - t : t;
            int64_t to_row = batch == 0 ? b * x->dims[1] + t : t * x->dims[1] + b;
            int64_t from_row = batch == 0 ? b * x->dims[1] + from : from * x->dims[1] + b;
            memcpy((uint8_t *)y->data + to_row * row, (const uint8_t *)x->data + from_row * row, (size_t)row);
        }
    }
    return ENT_OK;
}

ent_code ent_ops_dims_center_crop_pad(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    const ent_attr *listed = ent_attrs_find(call->attrs, "axes");
    int64_t sizes[ENT_MAX_RANK];
    uint32_t count, axis;
    bool some = listed && listed->type == ENT_ATTR_INTS && listed->count > 0;
    ent_code code = ent_ops_input_list(call, 1, sizes, ENT_MAX_RANK, &count);
    if (code != ENT_OK) return code;
    if (count != (some ? listed->count : x->rank))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%u sizes do not fit the axes", count);
    ent_ops_dims_copy(x, &outputs[0]);
    for (uint32_t i = 0; i < count; i++) {
        code = ent_ops_axis(call, some ? listed->ints[i] : i, x->rank, &axis);
        if (code != ENT_OK) return code;
        if (sizes[i] < 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "size %u is %lld", i, (long long)sizes[i]);
        outputs[0].dims[axis] = sizes[i];
    }
    return ENT_OK;
}

/* An odd rest goes to the end, of what is cut and of what is added. */
ent_code ent_ops_center_crop_pad(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t from_stride[ENT_MAX_RANK], to_stride[ENT_MAX_RANK], from = 0, to = 0, size = element_bytes(x);
    ent_ops_copy_axis axes[ENT_OPS_COPY_AXES];
    ent_ops_strides(x, from_stride);
    ent_ops_strides(y, to_stride);
    for (uint32_t i = 0; i < x->rank; i++) {
        int64_t in = x->dims[i], out = y->dims[i];
        if (in > out) from += (in - out) / 2 * from_stride[i];
        if (out > in) to += (out - in) / 2 * to_stride[i];
        axes[i] = (ent_ops_copy_axis){in < out ? in : out, from_stride[i], to_stride[i]};
    }
    memset(y->data, 0, (size_t)(ent_ops_element_count(y) * size));
    if (ent_ops_element_count(x) == 0) return ENT_OK;
    ent_ops_copy((const uint8_t *)x->data + from * size, (uint8_t *)y->data + to * size, size, axes, x->rank);
    return ENT_OK;
}

ent_code ent_ops_dims_bit_cast(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    ent_ops_dims_copy(x, &outputs[0]);
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "to", ENT_DTYPE_NONE);
    if (!ent_ops_dtype_in(outputs[0].dtype, ENT_OPS_STORED) ||
        ent_dtype_bits((ent_dtype)outputs[0].dtype) != ent_dtype_bits((ent_dtype)x->dtype))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s cannot be read as %s",
                              ent_dtype_name((ent_dtype)x->dtype),
                              ent_dtype_name((ent_dtype)outputs[0].dtype));
    return ENT_OK;
}

ent_code ent_ops_bit_cast(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t bytes = ent_layout_bytes(&y->layout, (ent_dtype)y->dtype, y->dims);
    if (bytes > 0) memcpy(y->data, x->data, (size_t)bytes);
    return ENT_OK;
}
