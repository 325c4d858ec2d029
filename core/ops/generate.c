/* Operators whose output comes from dims or a few scalars: Shape, Size, ConstantOfShape, Range, NonZero. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

static int64_t clamp_axis(int64_t axis, uint32_t rank) {
    if (axis < 0) axis += rank;
    return axis < 0 ? 0 : axis > rank ? rank : axis;
}

ent_code ent_ops_dims_shape(ent_ops_call *call, ent_tensor *outputs) {
    uint32_t rank = ent_ops_input(call, 0)->rank;
    int64_t start = clamp_axis(ent_attrs_int(call->attrs, "start", 0), rank);
    int64_t end = clamp_axis(ent_attrs_int(call->attrs, "end", rank), rank);
    outputs[0].dtype = ENT_DTYPE_I64;
    outputs[0].rank = 1;
    outputs[0].dims[0] = end > start ? end - start : 0;
    return ENT_OK;
}

ent_code ent_ops_dims_size(ent_ops_call *call, ent_tensor *outputs) {
    (void)call;
    outputs[0].dtype = ENT_DTYPE_I64;
    outputs[0].rank = 0;
    return ENT_OK;
}

ent_code ent_ops_shape(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t size = ent_ops_element_count(x);
    int64_t start = clamp_axis(ent_attrs_int(call->attrs, "start", 0), x->rank);
    ent_ops_result_i64(y, call->op == ENT_OP_Size ? &size : x->dims + start);
    return ENT_OK;
}

ent_code ent_ops_dims_constant_of_shape(ent_ops_call *call, ent_tensor *outputs) {
    uint32_t rank;
    int64_t shape[ENT_MAX_RANK];
    ent_code code = ent_ops_input_list(call, 0, shape, ENT_MAX_RANK, &rank);
    if (code != ENT_OK) return code;
    const ent_attr *value = ent_attrs_find(call->attrs, "value");
    if (value && (!value->tensor || ent_ops_element_count(value->tensor) != 1 || !value->tensor->data))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "value must be a tensor of one element");
    outputs[0].dtype = value ? value->tensor->dtype : ENT_DTYPE_F32;
    outputs[0].rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "shape[%u] is %lld", i,
                                  (long long)shape[i]);
        outputs[0].dims[i] = shape[i];
    }
    return ENT_OK;
}

ent_code ent_ops_constant_of_shape(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    const ent_attr *value = ent_attrs_find(call->attrs, "value");
    if (!y || ent_ops_element_count(y) == 0) return ENT_OK;
    int64_t size = ent_dtype_bits((ent_dtype)y->dtype) / 8;
    uint8_t element[16] = {0};
    if (value && ent_dtype_bits((ent_dtype)value->tensor->dtype) < 8)
        element[0] = (uint8_t)ent_ops_code_load(value->tensor->data, value->tensor->dtype, 0);
    else if (value)
        memcpy(element, value->tensor->data, (size_t)size);
    for (int64_t i = 0; i < ent_ops_element_count(y); i++)
        memcpy((uint8_t *)y->data + i * size, element, (size_t)size);
    return ENT_OK;
}

/* start, limit and delta, and how many values they give. */
typedef struct range {
    double start, delta;
    int64_t start_i64, delta_i64, count;
    bool integers;
} range;

static ent_code range_resolve(ent_ops_call *call, range *out) {
    const ent_tensor *part[3];
    for (uint32_t i = 0; i < 3; i++) {
        part[i] = ent_ops_input(call, i);
        if (ent_ops_element_count(part[i]) != 1 || !part[i]->data || part[i]->dtype != part[0]->dtype)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "start, limit and delta must be known scalars of one dtype");
    }
    uint32_t dtype = part[0]->dtype;
    *out = (range){.integers = ent_ops_dtype_in(dtype, ENT_OPS_INTEGERS)};
    out->start = ent_ops_load_f64(part[0]->data, dtype, 0);
    out->delta = ent_ops_load_f64(part[2]->data, dtype, 0);
    double limit = ent_ops_load_f64(part[1]->data, dtype, 0), count = ceil((limit - out->start) / out->delta);
    if (out->integers && out->delta != 0) {
        out->start_i64 = ent_ops_load_i64(part[0]->data, dtype, 0);
        out->delta_i64 = ent_ops_load_i64(part[2]->data, dtype, 0);
        int64_t end = ent_ops_load_i64(part[1]->data, dtype, 0);
        bool up = out->delta_i64 > 0;
        uint64_t span =
            up ? (uint64_t)end - (uint64_t)out->start_i64 : (uint64_t)out->start_i64 - (uint64_t)end;
        uint64_t pace = up ? (uint64_t)out->delta_i64 : 0 - (uint64_t)out->delta_i64;
        bool any = up ? end > out->start_i64 : end < out->start_i64;
        count = any ? (double)((span - 1) / pace + 1) : 0;
    }
    if (out->delta == 0 || isnan(count) || count > 1e12)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the range is not finite or too long");
    out->count = count > 0 ? (int64_t)count : 0;
    return ENT_OK;
}

ent_code ent_ops_dims_range(ent_ops_call *call, ent_tensor *outputs) {
    range r;
    ent_code code = range_resolve(call, &r);
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_input(call, 0)->dtype;
    outputs[0].rank = 1;
    outputs[0].dims[0] = r.count;
    return ENT_OK;
}

ent_code ent_ops_range(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    range r;
    if (!y) return ENT_OK;
    ent_code code = range_resolve(call, &r);
    for (int64_t i = 0; i < r.count && code == ENT_OK; i++) {
        if (r.integers)
            ent_ops_store_i64(y->data, y->dtype, i,
                              (int64_t)((uint64_t)r.start_i64 + (uint64_t)i * (uint64_t)r.delta_i64));
        else
            ent_ops_store_f64(y->data, y->dtype, i, r.start + (double)i * r.delta);
    }
    return code;
}

typedef struct nonzero {
    const ent_tensor *x;
    int64_t count;
} nonzero;

static void count_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    nonzero *n = context;
    for (int64_t i = 0; i < count; i++)
        if (ent_ops_load_f64(n->x->data, n->x->dtype, offset[0] + i * stride[0]) != 0) n->count++;
}

/* Counts before the layout is settled, so blocks may still be there. */
ent_code ent_ops_dims_nonzero(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    nonzero n = {x, 0};
    if (!x->data && ent_ops_element_count(x) > 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the values must be known");
    if (x->layout.kind != ENT_LAYOUT_STRIDED || x->layout.block_count > ENT_MAX_BLOCKS ||
        x->layout.rank != x->rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the layout is not strided");
    ent_tensor whole = *x; /* padding is zero and never counts */
    if (x->layout.block_count > 0) {
        whole.rank = 1;
        whole.dims[0] = ent_layout_bytes(&x->layout, (ent_dtype)x->dtype, x->dims) /
                        (ent_dtype_bits((ent_dtype)x->dtype) / 8);
        whole.layout = ent_layout_plain(1);
    }
    n.x = &whole;
    const ent_tensor *operands[1] = {&whole};
    ent_ops_walk(operands, 1, count_run, &n);
    outputs[0].dtype = ENT_DTYPE_I64;
    outputs[0].rank = 2;
    outputs[0].dims[0] = x->rank == 0 ? 1 : x->rank;
    outputs[0].dims[1] = n.count;
    return ENT_OK;
}

/* A scalar counts as a list of one. */
ent_code ent_ops_nonzero(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t *to = y->data, found = y->dims[1], column = 0;
    for (int64_t i = 0; i < ent_ops_element_count(x) && column < found; i++) {
        if (ent_ops_load_f64(x->data, x->dtype, i) == 0) continue;
        int64_t rest = i;
        if (x->rank == 0) to[column] = 0;
        for (uint32_t j = x->rank; j-- > 0; rest /= x->dims[j]) to[j * found + column] = rest % x->dims[j];
        column++;
    }
    return ENT_OK;
}
