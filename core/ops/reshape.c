/* Operators that keep the row-major order of elements and only name new dims. */
#include "core/ops/internal.h"

#include <string.h>

ent_code ent_ops_reshape(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t bytes = output ? ent_layout_bytes(&output->layout, (ent_dtype)output->dtype, output->dims) : 0;
    if (bytes > 0) memcpy(output->data, x->data, (size_t)bytes);
    return ENT_OK;
}

ent_code ent_ops_dims_reshape(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t shape[ENT_MAX_RANK], known = 1;
    uint32_t rank, open = UINT32_MAX;
    ent_code code = ent_ops_input_list(call, 1, shape, ENT_MAX_RANK, &rank);
    if (code != ENT_OK) return code;
    bool allow_zero = ent_attrs_int(call->attrs, "allowzero", 0) != 0;
    const int64_t limit = (int64_t)1 << 48;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] == 0 && !allow_zero) {
            if (i >= x->rank)
                return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                      "shape[%u] is 0 but the input has rank %u", i, x->rank);
            shape[i] = x->dims[i];
        }
        if (shape[i] < -1 || (shape[i] == -1 && open != UINT32_MAX) || shape[i] > limit)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "shape[%u] is %lld", i,
                                  (long long)shape[i]);
        if (shape[i] == -1)
            open = i;
        else if (shape[i] != 0 && known > limit / shape[i])
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the shape's product overflows");
        else
            known *= shape[i];
    }
    int64_t count = ent_ops_element_count(x);
    if (open != UINT32_MAX) {
        if (known == 0 || count % known != 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "%lld elements do not fill a multiple of %lld", (long long)count,
                                  (long long)known);
        shape[open] = count / known;
        known = count;
    }
    if (known != count)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%lld elements cannot take a shape of %lld",
                              (long long)count, (long long)known);
    outputs[0].dtype = x->dtype;
    outputs[0].rank = rank;
    for (uint32_t i = 0; i < rank; i++) outputs[0].dims[i] = shape[i];
    return ENT_OK;
}

ent_code ent_ops_dims_flatten(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t axis = ent_attrs_int(call->attrs, "axis", 1);
    if (axis < -(int64_t)x->rank || axis > (int64_t)x->rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %lld is outside rank %u",
                              (long long)axis, x->rank);
    uint32_t split = (uint32_t)(axis < 0 ? axis + x->rank : axis);
    outputs[0].dtype = x->dtype;
    outputs[0].rank = 2;
    outputs[0].dims[0] = ent_ops_product(x->dims, 0, split);
    outputs[0].dims[1] = ent_ops_product(x->dims, split, x->rank);
    return ENT_OK;
}

/* The axes of input 1 as bits of a tensor of `rank`. */
static ent_code axis_mask(ent_ops_call *call, uint32_t rank, uint32_t *out_mask) {
    int64_t axes[ENT_MAX_RANK];
    uint32_t count;
    ent_code code = ent_ops_input_list(call, 1, axes, ENT_MAX_RANK, &count);
    *out_mask = 0;
    for (uint32_t i = 0; i < count && code == ENT_OK; i++) {
        uint32_t axis;
        code = ent_ops_axis(call, axes[i], rank, &axis);
        if (code != ENT_OK) break;
        if (*out_mask >> axis & 1)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u is named twice", axis);
        *out_mask |= 1u << axis;
    }
    return code;
}

ent_code ent_ops_dims_squeeze(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t mask;
    ent_code code = axis_mask(call, x->rank, &mask);
    if (code != ENT_OK) return code;
    if (!ent_ops_input(call, 1))
        for (uint32_t i = 0; i < x->rank; i++)
            if (x->dims[i] == 1) mask |= 1u << i;
    outputs[0].dtype = x->dtype;
    outputs[0].rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1))
            outputs[0].dims[outputs[0].rank++] = x->dims[i];
        else if (x->dims[i] != 1)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u has extent %lld, not 1", i,
                                  (long long)x->dims[i]);
    }
    return ENT_OK;
}

ent_code ent_ops_dims_unsqueeze(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *axes = ent_ops_input(call, 1);
    int64_t rank = (int64_t)x->rank + ent_ops_element_count(axes);
    if (rank > ENT_MAX_RANK)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the result has rank %lld", (long long)rank);
    uint32_t mask, from = 0;
    ent_code code = axis_mask(call, (uint32_t)rank, &mask);
    if (code != ENT_OK) return code;
    outputs[0].dtype = x->dtype;
    outputs[0].rank = (uint32_t)rank;
    for (uint32_t i = 0; i < rank; i++) outputs[0].dims[i] = mask >> i & 1 ? 1 : x->dims[from++];
    return ENT_OK;
}

ent_code ent_ops_dims_dropout(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *training = ent_ops_input(call, 2), *ratio = ent_ops_input(call, 1);
    if ((training && ent_ops_element_count(training) != 1) || (ratio && ent_ops_element_count(ratio) != 1))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "ratio and training_mode must be scalars");
    bool drops = training && training->data && ent_ops_load_i64(training->data, training->dtype, 0) != 0;
    if (drops && (!ratio || !ratio->data || ent_ops_load_f64(ratio->data, ratio->dtype, 0) != 0))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "training mode draws random numbers");
    for (uint32_t i = 0; i < call->output_count; i++) ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[i]);
    if (call->output_count > 1) outputs[1].dtype = ENT_DTYPE_BOOL;
    return ENT_OK;
}

/* Inference: everything is kept. */
ent_code ent_ops_dropout(ent_ops_call *call) {
    ent_tensor *mask = ent_ops_output(call, 1);
    if (mask && ent_ops_element_count(mask) > 0) memset(mask->data, 1, (size_t)ent_ops_element_count(mask));
    return ent_ops_reshape(call);
}
