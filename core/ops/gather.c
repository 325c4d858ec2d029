/* Gather, GatherElements, GatherND. Indices may be negative; one outside its axis is refused. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

static int64_t element_bytes(const ent_tensor *tensor) {
    return ent_dtype_bits((ent_dtype)tensor->dtype) / 8;
}

ent_code ent_ops_index(ent_ops_call *call, int64_t *index, int64_t extent) {
    if (*index < -extent || *index >= extent)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "index %lld is outside extent %lld",
                              (long long)*index, (long long)extent);
    if (*index < 0) *index += extent;
    return ENT_OK;
}

ent_code ent_ops_dims_gather(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1);
    uint32_t axis, rank = 0;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    if (code != ENT_OK) return code;
    if (x->rank + indices->rank > ENT_MAX_RANK + 1)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the result has rank %u",
                              x->rank + indices->rank - 1);
    outputs[0].dtype = x->dtype;
    for (uint32_t i = 0; i < axis; i++) outputs[0].dims[rank++] = x->dims[i];
    for (uint32_t i = 0; i < indices->rank; i++) outputs[0].dims[rank++] = indices->dims[i];
    for (uint32_t i = axis + 1; i < x->rank; i++) outputs[0].dims[rank++] = x->dims[i];
    outputs[0].rank = rank;
    return ENT_OK;
}

ent_code ent_ops_gather(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1),
                     *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t axis = 0;
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    int64_t outer = ent_ops_product(x->dims, 0, axis), count = ent_ops_element_count(indices),
            extent = x->dims[axis];
    int64_t row = ent_ops_product(x->dims, axis + 1, x->rank) * element_bytes(x);
    int64_t *index = ent_ops_values_i64(call, indices);
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        ent_code code = ent_ops_index(call, &index[i], extent);
        if (code != ENT_OK) return code;
    }
    uint8_t *to = y->data;
    for (int64_t i = 0; row > 0 && i < outer; i++)
        for (int64_t j = 0; j < count; j++, to += row)
            memcpy(to, (const uint8_t *)x->data + (i * extent + index[j]) * row, (size_t)row);
    return ENT_OK;
}

ent_code ent_ops_dims_gather_elements(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    if (code != ENT_OK) return code;
    bool fits = indices->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++) fits = i == axis || indices->dims[i] <= x->dims[i];
    if (!fits)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the indices do not lie within the data's dims");
    ent_ops_dims_copy(indices, &outputs[0]);
    outputs[0].dtype = x->dtype;
    return ENT_OK;
}

ent_code ent_ops_gather_elements(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t axis = 0;
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    int64_t *index = ent_ops_values_i64(call, ent_ops_input(call, 1));
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    int64_t count = ent_ops_element_count(y), size = element_bytes(x), stride[ENT_MAX_RANK];
    ent_ops_strides(x, stride);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, from = 0;
        ent_code code = ent_ops_index(call, &index[i], x->dims[axis]);
        if (code != ENT_OK) return code;
        for (uint32_t j = y->rank; j-- > 0; rest /= y->dims[j])
            from += (j == axis ? index[i] : rest % y->dims[j]) * stride[j];
        memcpy((uint8_t *)y->data + i * size, (const uint8_t *)x->data + from * size, (size_t)size);
    }
    return ENT_OK;
}

ent_code ent_ops_dims_gather_nd(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1);
    int64_t batch = ent_attrs_int(call->attrs, "batch_dims", 0),
            tuple = indices->rank ? indices->dims[indices->rank - 1] : 0;
    if (indices->rank == 0 || batch < 0 || batch >= indices->rank || batch > x->rank || tuple < 1 ||
        batch + tuple > x->rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "%lld batch axes and index tuples of %lld do not fit rank %u", (long long)batch,
                              (long long)tuple, x->rank);
    for (uint32_t i = 0; i < batch; i++)
        if (x->dims[i] != indices->dims[i])
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "batch axis %u differs", i);
    uint32_t first = (uint32_t)(batch + tuple), rank = indices->rank - 1 + x->rank - first;
    if (rank > ENT_MAX_RANK)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the result has rank %u", rank);
    outputs[0].dtype = x->dtype;
    outputs[0].rank = 0;
    for (uint32_t i = 0; i + 1 < indices->rank; i++) outputs[0].dims[outputs[0].rank++] = indices->dims[i];
    for (uint32_t i = first; i < x->rank; i++) outputs[0].dims[outputs[0].rank++] = x->dims[i];
    return ENT_OK;
}

ent_code ent_ops_index_row(ent_ops_call *call, const ent_tensor *x, uint32_t first, int64_t *index,
                           int64_t tuple, int64_t *out) {
    for (int64_t i = 0; i < tuple; i++) {
        ent_code code = ent_ops_index(call, &index[i], x->dims[first + i]);
        if (code != ENT_OK) return code;
        *out = *out * x->dims[first + i] + index[i];
    }
    return ENT_OK;
}

ent_code ent_ops_gather_nd(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1),
                     *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t batch = (uint32_t)ent_attrs_int(call->attrs, "batch_dims", 0);
    int64_t tuple = indices->dims[indices->rank - 1],
            tuples = ent_ops_product(indices->dims, 0, indices->rank - 1);
    int64_t per_batch = ent_ops_product(indices->dims, batch, indices->rank - 1);
    int64_t row = ent_ops_product(x->dims, batch + (uint32_t)tuple, x->rank) * element_bytes(x);
    int64_t *index = ent_ops_values_i64(call, indices);
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < tuples; i++) {
        int64_t at = i / per_batch;
        ent_code code = ent_ops_index_row(call, x, batch, index + i * tuple, tuple, &at);
        if (code != ENT_OK) return code;
        if (row > 0) memcpy((uint8_t *)y->data + i * row, (const uint8_t *)x->data + at * row, (size_t)row);
    }
    return ENT_OK;
}
