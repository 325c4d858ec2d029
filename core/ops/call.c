/* Errors, scratch memory and values of one evaluation. */
#include "core/ops/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SCRATCH_ALIGNMENT 64

typedef struct ent_ops_scratch_block {
    struct ent_ops_scratch_block *next;
} scratch_block;

static void *default_allocate(void *context, size_t size_bytes) {
    (void)context;
    return malloc(size_bytes);
}

static void default_release(void *context, void *memory) {
    (void)context;
    free(memory);
}

const ent_ops_memory *ent_ops_memory_default(void) {
    static const ent_ops_memory memory = {default_allocate, default_release, NULL};
    return &memory;
}

ent_code ent_ops_refuse(ent_ops_call *call, ent_code code, const char *format, ...) {
    if (!call->error) return code;
    const ent_op_info *info = ent_op_info_get(call->op);
    call->error->code = code;
    int used = snprintf(call->error->text, sizeof call->error->text, "%s: ", info ? info->name : "operator");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->error->text + used, sizeof call->error->text - (size_t)used, format, arguments);
    va_end(arguments);
    return code;
}

void *ent_ops_scratch(ent_ops_call *call, int64_t count, int64_t size_bytes) {
    const int64_t limit = (int64_t)1 << 46;
    if (count < 0 || size_bytes <= 0 || count > limit / size_bytes) {
        ent_ops_refuse(call, ENT_CODE_OUT_OF_MEMORY, "scratch of %lld elements overflows", (long long)count);
        return NULL;
    }
    size_t total = (size_t)(count * size_bytes) + sizeof(scratch_block) + SCRATCH_ALIGNMENT;
    scratch_block *block = call->memory->allocate(call->memory->context, total);
    if (!block) {
        ent_ops_refuse(call, ENT_CODE_OUT_OF_MEMORY, "no memory for %zu bytes of scratch", total);
        return NULL;
    }
    block->next = call->blocks;
    call->blocks = block;
    uintptr_t start = (uintptr_t)(block + 1);
    return (void *)((start + SCRATCH_ALIGNMENT - 1) & ~(uintptr_t)(SCRATCH_ALIGNMENT - 1));
}

void ent_ops_scratch_release(ent_ops_call *call) {
    while (call->blocks) {
        scratch_block *block = call->blocks;
        call->blocks = block->next;
        call->memory->release(call->memory->context, block);
    }
}

const ent_tensor *ent_ops_input(const ent_ops_call *call, uint32_t index) {
    return index < call->input_count ? call->inputs[index] : NULL;
}

ent_tensor *ent_ops_output(const ent_ops_call *call, uint32_t index) {
    return call->outputs && index < call->output_count ? call->outputs[index] : NULL;
}

int64_t ent_ops_product(const int64_t *dims, uint32_t from, uint32_t to) {
    uint64_t product = 1; /* wraps only beside an extent of 0: see ent_ops_check_extents */
    for (uint32_t i = from; i < to; i++) product *= (uint64_t)dims[i];
    return (int64_t)product;
}

int64_t ent_ops_element_count(const ent_tensor *tensor) {
    return ent_ops_product(tensor->dims, 0, tensor->rank);
}

/* The walk's first operand is a stand-in in row-major order, so that elements arrive in that order. */
typedef struct gather_context {
    const ent_tensor *tensor;
    double *f64;
    int64_t *i64;
} gather_context;

static void gather_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    gather_context *g = context;
    if (g->f64)
        ent_ops_load_run_f64(g->tensor->data, g->tensor->dtype, offset[1], stride[1], count,
                             g->f64 + offset[0]);
    else
        ent_ops_load_run_i64(g->tensor->data, g->tensor->dtype, offset[1], stride[1], count,
                             g->i64 + offset[0]);
}

static ent_tensor row_major(const ent_tensor *tensor, uint32_t dtype) {
    ent_tensor plain = *tensor;
    plain.dtype = dtype;
    plain.layout = ent_layout_plain(tensor->rank);
    return plain;
}

double *ent_ops_values_f64(ent_ops_call *call, const ent_tensor *tensor) {
    double *values = ent_ops_scratch(call, ent_ops_element_count(tensor), sizeof(double));
    if (!values) return NULL;
    ent_tensor plain = row_major(tensor, ENT_DTYPE_F64);
    gather_context context = {tensor, values, NULL};
    const ent_tensor *operands[2] = {&plain, tensor};
    ent_ops_walk(operands, 2, gather_run, &context);
    return values;
}

int64_t *ent_ops_values_i64(ent_ops_call *call, const ent_tensor *tensor) {
    int64_t *values = ent_ops_scratch(call, ent_ops_element_count(tensor), sizeof(int64_t));
    if (!values) return NULL;
    ent_tensor plain = row_major(tensor, ENT_DTYPE_I64);
    gather_context context = {tensor, NULL, values};
    const ent_tensor *operands[2] = {&plain, tensor};
    ent_ops_walk(operands, 2, gather_run, &context);
    return values;
}

typedef struct result_context {
    const ent_tensor *tensor;
    const double *f64;
    const int64_t *i64;
} result_context;

static void result_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    result_context *r = context;
    if (r->f64)
        ent_ops_store_run_f64(r->tensor->data, r->tensor->dtype, offset[1], stride[1], count,
                              r->f64 + offset[0]);
    else
        ent_ops_store_run_i64(r->tensor->data, r->tensor->dtype, offset[1], stride[1], count,
                              r->i64 + offset[0]);
}

void ent_ops_result_f64(const ent_tensor *output, const double *values) {
    if (!output) return;
    ent_tensor plain = row_major(output, ENT_DTYPE_F64);
    result_context context = {output, values, NULL};
    const ent_tensor *operands[2] = {&plain, output};
    ent_ops_walk(operands, 2, result_run, &context);
}

void ent_ops_result_i64(const ent_tensor *output, const int64_t *values) {
    if (!output) return;
    ent_tensor plain = row_major(output, ENT_DTYPE_I64);
    result_context context = {output, NULL, values};
    const ent_tensor *operands[2] = {&plain, output};
    ent_ops_walk(operands, 2, result_run, &context);
}

ent_code ent_ops_input_list(ent_ops_call *call, uint32_t index, int64_t *out, uint32_t limit,
                            uint32_t *out_count) {
    *out_count = 0;
    const ent_tensor *tensor = ent_ops_input(call, index);
    if (!tensor) return ENT_OK;
    int64_t count = ent_ops_element_count(tensor);
    if (tensor->rank > 1 || count > (int64_t)limit)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u must be a list of at most %u values",
                              index, limit);
    if (count > 0 && !tensor->data)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the values of input %u must be known", index);
    ent_ops_load_run_i64(tensor->data, tensor->dtype, 0, 1, count, out);
    *out_count = (uint32_t)count;
    return ENT_OK;
}

ent_code ent_ops_axis(ent_ops_call *call, int64_t axis, uint32_t rank, uint32_t *out_axis) {
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %lld is outside rank %u",
                              (long long)axis, rank);
    *out_axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    return ENT_OK;
}

void ent_ops_dims_copy(const ent_tensor *from, ent_tensor *to) {
    to->dtype = from->dtype;
    to->rank = from->rank;
    for (uint32_t i = 0; i < from->rank; i++) to->dims[i] = from->dims[i];
}

uint32_t ent_ops_attr_dtype(ent_attrs attrs, const char *name, uint32_t missing) {
    int64_t value = ent_attrs_int(attrs, name, ENT_DTYPE_NONE);
    if (value == ENT_DTYPE_NONE) return missing;
    return value > 0 && value < ENT_DTYPE_COUNT ? (uint32_t)value : ENT_DTYPE_NONE;
}
