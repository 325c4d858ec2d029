/* CumSum and CumProd. Floats accumulate in double, integers wrap. */
#include "core/ops/internal.h"

typedef struct running {
    bool product, exclusive, reverse;
} running;

static void run_f64(const running *r, double *x, int64_t count, int64_t stride) {
    double total = r->product ? 1 : 0;
    for (int64_t i = 0; i < count; i++) {
        double *at = x + (r->reverse ? count - 1 - i : i) * stride, before = total;
        total = r->product ? total * *at : total + *at;
        *at = r->exclusive ? before : total;
    }
}

static void run_i64(const running *r, int64_t *x, int64_t count, int64_t stride) {
    uint64_t total = r->product ? 1 : 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t *at = x + (r->reverse ? count - 1 - i : i) * stride;
        uint64_t before = total, value = (uint64_t)*at;
        total = r->product ? total * value : total + value;
        *at = (int64_t)(r->exclusive ? before : total);
    }
}

ent_code ent_ops_cumulate(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t wanted[1];
    uint32_t count, axis;
    ent_code code = ent_ops_input_list(call, 1, wanted, 1, &count);
    if (code == ENT_OK && count != 1)
        code = ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the axis is not one number");
    if (code == ENT_OK) code = ent_ops_axis(call, wanted[0], x->rank, &axis);
    if (code != ENT_OK) return code;
    running r = {call->op == ENT_OP_CumProd, ent_attrs_int(call->attrs, "exclusive", 0) != 0,
                 ent_attrs_int(call->attrs, "reverse", 0) != 0};
    bool integers = ent_ops_dtype_in(x->dtype, ENT_OPS_INTEGERS);
    double *f64 = integers ? NULL : ent_ops_values_f64(call, x);
    int64_t *i64 = integers ? ent_ops_values_i64(call, x) : NULL;
    if (!f64 && !i64) return ENT_CODE_OUT_OF_MEMORY;
    int64_t inner = ent_ops_product(x->dims, axis + 1, x->rank), outer = ent_ops_product(x->dims, 0, axis);
    for (int64_t i = 0; i < outer * inner; i++) {
        int64_t at = i / inner * x->dims[axis] * inner + i % inner;
        if (integers)
            run_i64(&r, i64 + at, x->dims[axis], inner);
        else
            run_f64(&r, f64 + at, x->dims[axis], inner);
    }
    if (integers)
        ent_ops_result_i64(ent_ops_output(call, 0), i64);
    else
        ent_ops_result_f64(ent_ops_output(call, 0), f64);
    return ENT_OK;
}
