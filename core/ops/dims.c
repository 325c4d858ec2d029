/* ent_ops_output_dims, and the rules that several families share. */
#include "core/ops/internal.h"

#include <string.h>

void ent_ops_dims_set(ent_tensor *output, uint32_t dtype, uint32_t rank, const int64_t *dims) {
    output->dtype = dtype;
    output->rank = rank;
    for (uint32_t i = 0; i < rank; i++) output->dims[i] = dims[i];
}

ent_code ent_ops_dims_same(ent_ops_call *call, ent_tensor *outputs) {
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    return ENT_OK;
}

ent_code ent_ops_dims_bool(ent_ops_call *call, ent_tensor *outputs) {
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dtype = ENT_DTYPE_BOOL;
    return ENT_OK;
}

ent_code ent_ops_dims_merge(ent_ops_call *call, const int64_t *dims, uint32_t rank, ent_tensor *output) {
    uint32_t merged = rank > output->rank ? rank : output->rank;
    int64_t result[ENT_MAX_RANK];
    for (uint32_t i = 0; i < merged; i++) {
        int64_t a = i + rank < merged ? 1 : dims[i + rank - merged];
        int64_t b = i + output->rank < merged ? 1 : output->dims[i + output->rank - merged];
        if (a != b && a != 1 && b != 1)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "extents %lld and %lld do not broadcast",
                                  (long long)a, (long long)b);
        result[i] = a == 1 ? b : a;
    }
    output->rank = merged;
    for (uint32_t i = 0; i < merged; i++) output->dims[i] = result[i];
    return ENT_OK;
}

ent_code ent_ops_dims_broadcast(ent_ops_call *call, ent_tensor *outputs) {
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    for (uint32_t i = 1; i < call->input_count; i++) {
        ent_code code = ent_ops_dims_merge(call, call->inputs[i]->dims, call->inputs[i]->rank, &outputs[0]);
        if (code != ENT_OK) return code;
    }
    return ENT_OK;
}

ent_code ent_ops_dims_compare(ent_ops_call *call, ent_tensor *outputs) {
    ent_code code = ent_ops_dims_broadcast(call, outputs);
    outputs[0].dtype = ENT_DTYPE_BOOL;
    return code;
}

ent_code ent_ops_dims_where(ent_ops_call *call, ent_tensor *outputs) {
    ent_code code = ent_ops_dims_broadcast(call, outputs);
    outputs[0].dtype = ent_ops_input(call, 1)->dtype;
    return code;
}

bool ent_ops_check_extents(const ent_tensor *tensor) {
    if (tensor->rank > ENT_MAX_RANK) return false;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] < 0 || tensor->dims[i] > (int64_t)1 << 40) return false;
    ent_layout plain = ent_layout_plain(tensor->rank);
    return ent_layout_bytes(&plain, (ent_dtype)tensor->dtype, tensor->dims) >= 0;
}

/* Arity, dtype, rank and layout of the arguments, before any rule reads them. */
ent_code ent_ops_check_inputs(ent_ops_call *call, const ent_ops_binding **out) {
    const ent_op_info *info = ent_op_info_get(call->op);
    const ent_ops_binding *binding = ent_ops_binding_get(call->op);
    *out = binding;
    if (!info || !binding || !binding->evaluate)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "operator %u has no meaning on tensors alone",
                              call->op);
    if (call->input_count < (uint32_t)info->min_inputs ||
        (info->max_inputs >= 0 && call->input_count > (uint32_t)info->max_inputs))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "takes %d to %d inputs, not %u",
                              info->min_inputs, info->max_inputs, call->input_count);
    if (call->output_count < 1 ||
        (info->max_outputs >= 0 && call->output_count > (uint32_t)info->max_outputs))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "gives 1 to %d outputs, not %u",
                              info->max_outputs, call->output_count);
    for (uint32_t i = 0; i < call->input_count; i++) {
        const ent_tensor *input = call->inputs[i];
        if (!input) {
            if (i < (uint32_t)info->min_inputs || info->max_inputs < 0)
                return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u is missing", i);
            continue;
        }
        if (!ent_ops_check_extents(input))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u has impossible dims", i);
        ent_layout plain = ent_layout_plain(input->rank);
        int64_t bytes = ent_layout_bytes(&plain, (ent_dtype)input->dtype, input->dims);
        if (input->data && (uint64_t)bytes > input->size_bytes)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "input %u has less memory than its dims need", i);
    }
    if (call->input_count > 0 && !ent_ops_dtype_in(call->inputs[0]->dtype, binding->dtypes))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "input 0 cannot be %s",
                              ent_dtype_name((ent_dtype)call->inputs[0]->dtype));
    return ENT_OK;
}

ent_code ent_ops_output_dims(uint32_t op, ent_attrs attrs, const ent_tensor *const *inputs,
                             uint32_t input_count, ent_tensor *outputs, uint32_t output_count,
                             ent_ops_error *error) {
    ent_ops_call call = {.op = op,
                         .attrs = attrs,
                         .inputs = inputs,
                         .input_count = input_count,
                         .output_count = output_count,
                         .memory = ent_ops_memory_default(),
                         .error = error};
    const ent_ops_binding *binding;
    ent_code code = ent_ops_check_inputs(&call, &binding);
    if (code == ENT_OK) code = binding->dims(&call, outputs);
    ent_ops_scratch_release(&call);
    if (code != ENT_OK) return code;
    for (uint32_t i = 0; i < output_count; i++) {
        if (!ent_ops_check_extents(&outputs[i]))
            return ent_ops_refuse(&call, ENT_CODE_INVALID_ARGUMENT, "output %u would be too large to address",
                                  i);
    }
    return ENT_OK;
}
