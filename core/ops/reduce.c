/* The Reduce family, ArgMax and ArgMin. One walk adds every input element to its accumulator. */
#include "core/ops/internal.h"

#include <math.h>

/* Which axes go, as bits. */
static ent_code reduced_axes(ent_ops_call *call, uint32_t *out_mask, bool *out_none) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t axes[ENT_MAX_RANK];
    uint32_t count;
    ent_code code = ent_ops_input_list(call, 1, axes, ENT_MAX_RANK, &count);
    if (code != ENT_OK) return code;
    *out_mask = 0;
    *out_none = count == 0 && ent_attrs_int(call->attrs, "noop_with_empty_axes", 0) != 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        code = ent_ops_axis(call, axes[i], x->rank, &axis);
        if (code != ENT_OK) return code;
        *out_mask |= 1u << axis;
    }
    if (count == 0 && !*out_none) *out_mask = (1u << x->rank) - 1;
    return ENT_OK;
}

static void drop_axes(const ent_tensor *x, uint32_t mask, bool keep, ent_tensor *out) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (mask >> i & 1) {
            if (keep) out->dims[rank++] = 1;
        } else {
            out->dims[rank++] = x->dims[i];
        }
    }
    out->rank = rank;
}

ent_code ent_ops_dims_reduce(ent_ops_call *call, ent_tensor *outputs) {
    uint32_t mask;
    bool none;
    ent_code code = reduced_axes(call, &mask, &none);
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_input(call, 0)->dtype;
    drop_axes(ent_ops_input(call, 0), mask, ent_attrs_int(call->attrs, "keepdims", 1) != 0, &outputs[0]);
    return ENT_OK;
}

typedef struct reduction {
    uint32_t op;
    const double *x;
    const int64_t *x_i64;
    double *sum;
    double *largest; /* ReduceLogSumExp */
    int64_t *sum_i64;
    bool unsigned_64;
} reduction;

static double start_f64(uint32_t op) {
    if (op == ENT_OP_ReduceProd) return 1;
    return op == ENT_OP_ReduceMax ? -INFINITY : op == ENT_OP_ReduceMin ? INFINITY : 0;
}

static double step_f64(const reduction *r, double sum, double x, int64_t at) {
    switch (r->op) {
    case ENT_OP_ReduceMax:
        return x > sum || isnan(x) ? x : sum;
    case ENT_OP_ReduceMin:
        return x < sum || isnan(x) ? x : sum;
    case ENT_OP_ReduceProd:
        return sum * x;
    case ENT_OP_ReduceL1:
        return sum + fabs(x);
    case ENT_OP_ReduceL2:
    case ENT_OP_ReduceSumSquare:
        return sum + x * x;
    case ENT_OP_ReduceLogSumExp:
        return sum + exp(x - r->largest[at]);
    default:
        return sum + x;
    }
}

static void reduce_run_f64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const reduction *r = context;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = offset[1] + i * stride[1];
        r->sum[at] = step_f64(r, r->sum[at], r->x[offset[0] + i * stride[0]], at);
    }
}

static void largest_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const reduction *r = context;
    for (int64_t i = 0; i < count; i++) {
        double x = r->x[offset[0] + i * stride[0]], *largest = &r->largest[offset[1] + i * stride[1]];
        if (x > *largest || isnan(x)) *largest = x;
    }
}

static int64_t step_i64(const reduction *r, int64_t sum, int64_t x) {
    bool less = r->unsigned_64 ? (uint64_t)x < (uint64_t)sum : x < sum;
    bool more = r->unsigned_64 ? (uint64_t)x > (uint64_t)sum : x > sum;
    uint64_t a = (uint64_t)sum, b = (uint64_t)x;
    switch (r->op) {
    case ENT_OP_ReduceMax:
        return more ? x : sum;
    case ENT_OP_ReduceMin:
        return less ? x : sum;
    case ENT_OP_ReduceProd:
        return (int64_t)(a * b);
    case ENT_OP_ReduceL1:
        return (int64_t)(a + (x < 0 && !r->unsigned_64 ? 0 - b : b));
    case ENT_OP_ReduceSumSquare:
        return (int64_t)(a + b * b);
    default:
        return (int64_t)(a + b);
    }
}

static void reduce_run_i64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const reduction *r = context;
    for (int64_t i = 0; i < count; i++) {
        int64_t *sum = &r->sum_i64[offset[1] + i * stride[1]];
        *sum = step_i64(r, *sum, r->x_i64[offset[0] + i * stride[0]]);
    }
}

/* The least or largest value of an integer dtype. */
static int64_t extreme(uint32_t dtype, bool largest) {
    if (dtype == ENT_DTYPE_BOOL) return largest;
    uint32_t bits = ent_dtype_bits((ent_dtype)dtype);
    if (ent_ops_dtype_in(dtype, ENT_OPS_UNSIGNED)) return largest ? (int64_t)(UINT64_MAX >> (64 - bits)) : 0;
    int64_t top = (int64_t)(UINT64_MAX >> (65 - bits));
    return largest ? top : -top - 1;
}

static ent_code reduce_f64(ent_ops_call *call, const ent_tensor *sums, int64_t count, int64_t each) {
    const ent_tensor *x = ent_ops_input(call, 0);
    reduction r = {.op = call->op, .x = ent_ops_values_f64(call, x)};
    r.sum = ent_ops_scratch(call, count, sizeof(double));
    if (call->op == ENT_OP_ReduceLogSumExp) r.largest = ent_ops_scratch(call, count, sizeof(double));
    if (!r.x || !r.sum || (call->op == ENT_OP_ReduceLogSumExp && !r.largest)) return ENT_CODE_OUT_OF_MEMORY;
    const ent_tensor *operands[2] = {x, sums};
    if (r.largest) {
        for (int64_t i = 0; i < count; i++) r.largest[i] = -INFINITY;
        ent_ops_walk(operands, 2, largest_run, &r);
        for (int64_t i = 0; i < count; i++) r.largest[i] = isinf(r.largest[i]) ? 0 : r.largest[i];
    }
    for (int64_t i = 0; i < count; i++) r.sum[i] = start_f64(call->op);
    ent_ops_walk(operands, 2, reduce_run_f64, &r);
    for (int64_t i = 0; i < count; i++) {
        if (call->op == ENT_OP_ReduceMean) r.sum[i] /= (double)each;
        if (call->op == ENT_OP_ReduceL2) r.sum[i] = sqrt(r.sum[i]);
        if (call->op == ENT_OP_ReduceLogSum) r.sum[i] = log(r.sum[i]);
        if (call->op == ENT_OP_ReduceLogSumExp) r.sum[i] = log(r.sum[i]) + r.largest[i];
    }
    ent_ops_result_f64(ent_ops_output(call, 0), r.sum);
    return ENT_OK;
}

static ent_code reduce_i64(ent_ops_call *call, const ent_tensor *sums, int64_t count, int64_t each) {
    const ent_tensor *x = ent_ops_input(call, 0);
    reduction r = {
        .op = call->op, .x_i64 = ent_ops_values_i64(call, x), .unsigned_64 = x->dtype == ENT_DTYPE_U64};
    r.sum_i64 = ent_ops_scratch(call, count, sizeof(int64_t));
    if (!r.x_i64 || !r.sum_i64) return ENT_CODE_OUT_OF_MEMORY;
    int64_t start = call->op == ENT_OP_ReduceProd ? 1 : 0;
    if (call->op == ENT_OP_ReduceMax) start = extreme(x->dtype, false);
    if (call->op == ENT_OP_ReduceMin) start = extreme(x->dtype, true);
    for (int64_t i = 0; i < count; i++) r.sum_i64[i] = start;
    const ent_tensor *operands[2] = {x, sums};
    ent_ops_walk(operands, 2, reduce_run_i64, &r);
    for (int64_t i = 0; call->op == ENT_OP_ReduceMean && i < count; i++) {
        if (each == 0)
            r.sum_i64[i] = 0;
        else if (r.unsigned_64)
            r.sum_i64[i] = (int64_t)((uint64_t)r.sum_i64[i] / (uint64_t)each);
        else
            r.sum_i64[i] /= each;
    }
    ent_ops_result_i64(ent_ops_output(call, 0), r.sum_i64);
    return ENT_OK;
}

ent_code ent_ops_reduce(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    if (!ent_ops_output(call, 0)) return ENT_OK;
    uint32_t mask;
    bool none;
    ent_code code = reduced_axes(call, &mask, &none);
    if (code != ENT_OK) return code;
    ent_tensor sums = {.dtype = ENT_DTYPE_F64};
    drop_axes(x, mask, true, &sums);
    sums.layout = ent_layout_plain(sums.rank);
    int64_t count = ent_ops_element_count(&sums), each = 1;
    for (uint32_t i = 0; i < x->rank; i++)
        if (mask >> i & 1) each *= x->dims[i];
    bool through_f64 = ent_ops_dtype_in(x->dtype, ENT_OPS_FLOATS) || call->op == ENT_OP_ReduceL2 ||
                       call->op == ENT_OP_ReduceLogSum || call->op == ENT_OP_ReduceLogSumExp;
    return through_f64 ? reduce_f64(call, &sums, count, each) : reduce_i64(call, &sums, count, each);
}

ent_code ent_ops_dims_arg_reduce(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    if (code != ENT_OK) return code;
    if (x->dims[axis] == 0) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u is empty", axis);
    outputs[0].dtype = ENT_DTYPE_I64;
    drop_axes(x, 1u << axis, ent_attrs_int(call->attrs, "keepdims", 1) != 0, &outputs[0]);
    return ENT_OK;
}

ent_code ent_ops_arg_reduce(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    uint32_t axis = 0;
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    int64_t inner = ent_ops_product(x->dims, axis + 1, x->rank), extent = x->dims[axis];
    int64_t outer = ent_ops_product(x->dims, 0, axis);
    bool last = ent_attrs_int(call->attrs, "select_last_index", 0) != 0, smallest = call->op == ENT_OP_ArgMin;
    bool integers = !ent_ops_dtype_in(x->dtype, ENT_OPS_FLOATS);
    const double *values = integers ? NULL : ent_ops_values_f64(call, x);
    int64_t *integer_values = integers ? ent_ops_values_i64(call, x) : NULL;
    int64_t *result = ent_ops_scratch(call, outer * inner, sizeof(int64_t));
    if ((!values && !integer_values) || !result) return ENT_CODE_OUT_OF_MEMORY;
    /* Moving uint64 down by 2^63 keeps its order under signed comparison. */
    for (int64_t i = 0; x->dtype == ENT_DTYPE_U64 && i < outer * extent * inner; i++)
        integer_values[i] ^= INT64_MIN;
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t start = i / inner * extent * inner + i % inner, best = 0;
        for (int64_t j = 1; j < extent; j++) {
            int64_t a = start + j * inner, b = start + best * inner;
            int order =
                integers ? (integer_values[a] > integer_values[b]) - (integer_values[a] < integer_values[b])
                         : (values[a] > values[b]) - (values[a] < values[b]);
            if (smallest) order = -order;
            if (order > 0 || (order == 0 && last)) best = j;
        }
        result[i] = best;
    }
    ent_ops_result_i64(output, result);
    return ENT_OK;
}
