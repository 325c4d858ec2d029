/* Softmax and LogSoftmax along one axis. */
#include "core/ops/internal.h"

#include <math.h>

static void softmax_row(double *x, int64_t count, int64_t stride, bool logarithm) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) largest = x[i * stride] > largest ? x[i * stride] : largest;
    for (int64_t i = 0; i < count; i++) sum += exp(x[i * stride] - largest);
    double log_sum = log(sum);
    for (int64_t i = 0; i < count; i++) {
        double shifted = x[i * stride] - largest;
        x[i * stride] = logarithm ? shifted - log_sum : exp(shifted) / sum;
    }
}

ent_code ent_ops_softmax(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    double *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    uint32_t axis = 0;
    if (x->rank > 0) {
        ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
        if (code != ENT_OK) return code;
    }
    int64_t inner = x->rank > 0 ? ent_ops_product(x->dims, axis + 1, x->rank) : 1;
    int64_t extent = x->rank > 0 ? x->dims[axis] : 1, outer = ent_ops_product(x->dims, 0, axis);
    for (int64_t i = 0; i < outer * inner; i++)
        softmax_row(values + i / inner * extent * inner + i % inner, extent, inner,
                    call->op == ENT_OP_LogSoftmax);
    ent_ops_result_f64(output, values);
    return ENT_OK;
}
