/* Det: determinants of square matrices, by elimination with the largest pivot. */
#include "core/ops/internal.h"

#include <math.h>

ent_code ent_ops_dims_det(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the last two axes are not those of square matrices");
    ent_ops_dims_copy(x, &outputs[0]);
    outputs[0].rank = x->rank - 2;
    return ENT_OK;
}

static double determinant(double *a, int64_t n) {
    double product = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[pivot * n + k])) pivot = i;
        if (a[pivot * n + k] == 0) return 0;
        if (pivot != k) product = -product;
        for (int64_t j = k; j < n && pivot != k; j++) {
            double swap = a[k * n + j];
            a[k * n + j] = a[pivot * n + j];
            a[pivot * n + j] = swap;
        }
        product *= a[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= factor * a[k * n + j];
        }
    }
    return product;
}

ent_code ent_ops_det(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    int64_t n = x->dims[x->rank - 1], count = ent_ops_element_count(y);
    double *values = ent_ops_values_f64(call, x), *result = ent_ops_scratch(call, count, sizeof *result);
    if (!values || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++) result[i] = determinant(values + i * n * n, n);
    ent_ops_result_f64(y, result);
    return ENT_OK;
}
