/* MatMul and Gemm. */
#include "core/ops/internal.h"

#include <string.h>

/* A and B of a MatMul as batches of matrices. */
typedef struct product {
    int64_t m, n, k;
    bool a_vector, b_vector;
    uint32_t batch_rank;
    int64_t batch[ENT_MAX_RANK], a_stride[ENT_MAX_RANK],
        b_stride[ENT_MAX_RANK]; /* strides in elements, 0 = broadcast */
} product;

static void batch_strides(const ent_tensor *tensor, uint32_t batch_rank, int64_t *out) {
    int64_t stride = tensor->rank < 2 ? 0 : tensor->dims[tensor->rank - 1] * tensor->dims[tensor->rank - 2];
    uint32_t own = tensor->rank < 2 ? 0 : tensor->rank - 2;
    for (uint32_t i = 0; i < batch_rank; i++) out[i] = 0;
    for (uint32_t i = own; i-- > 0;) {
        out[batch_rank - own + i] = tensor->dims[i] == 1 ? 0 : stride;
        stride *= tensor->dims[i];
    }
}

static ent_code product_resolve(ent_ops_call *call, product *out) {
    const ent_tensor *a = ent_ops_input(call, 0), *b = ent_ops_input(call, 1);
    if (a->rank == 0 || b->rank == 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "an input is a scalar");
    *out = (product){.a_vector = a->rank == 1, .b_vector = b->rank == 1};
    out->m = out->a_vector ? 1 : a->dims[a->rank - 2];
    out->k = a->dims[a->rank - 1];
    out->n = out->b_vector ? 1 : b->dims[b->rank - 1];
    int64_t b_rows = out->b_vector ? b->dims[0] : b->dims[b->rank - 2];
    if (out->k != b_rows)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "A has %lld columns, B has %lld rows",
                              (long long)out->k, (long long)b_rows);
    uint32_t a_batch = out->a_vector ? 0 : a->rank - 2, b_batch = out->b_vector ? 0 : b->rank - 2;
    out->batch_rank = a_batch > b_batch ? a_batch : b_batch;
    for (uint32_t i = 0; i < out->batch_rank; i++) {
        int64_t x = i + a_batch < out->batch_rank ? 1 : a->dims[i + a_batch - out->batch_rank];
        int64_t y = i + b_batch < out->batch_rank ? 1 : b->dims[i + b_batch - out->batch_rank];
        if (x != y && x != 1 && y != 1)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "batch extents %lld and %lld do not broadcast", (long long)x, (long long)y);
        out->batch[i] = x == 1 ? y : x;
    }
    batch_strides(a, out->batch_rank, out->a_stride);
    batch_strides(b, out->batch_rank, out->b_stride);
    return ENT_OK;
}

ent_code ent_ops_dims_matmul(ent_ops_call *call, ent_tensor *outputs) {
    product p;
    ent_code code = product_resolve(call, &p);
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_input(call, 0)->dtype;
    outputs[0].rank = p.batch_rank;
    memcpy(outputs[0].dims, p.batch, sizeof p.batch);
    if (!p.a_vector) outputs[0].dims[outputs[0].rank++] = p.m;
    if (!p.b_vector) outputs[0].dims[outputs[0].rank++] = p.n;
    return ENT_OK;
}

/* Sums wrap. */
static void multiply_i64(int64_t m, int64_t n, int64_t k, const int64_t *a, int64_t a_row, int64_t a_column,
                         const int64_t *b, int64_t b_row, int64_t b_column, int64_t *c) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < n; j++)
                c[i * n + j] = (int64_t)((uint64_t)c[i * n + j] + (uint64_t)a[i * a_row + p * a_column] *
                                                                      (uint64_t)b[p * b_row + j * b_column]);
}

typedef struct product_data {
    const double *a_f64, *b_f64;
    const int64_t *a_i64, *b_i64;
    double *c_f64, *workspace;
    int64_t *c_i64;
} product_data;

static void multiply_batches(const product *p, const product_data *d) {
    int64_t index[ENT_MAX_RANK] = {0}, a = 0, b = 0, c = 0;
    if (ent_ops_product(p->batch, 0, p->batch_rank) == 0) return;
    for (;;) {
        if (d->c_f64)
            ent_ops_gemm(d->workspace, p->m, p->n, p->k, (ent_ops_matrix){d->a_f64 + a, p->k, 1},
                         (ent_ops_matrix){d->b_f64 + b, p->n, 1}, d->c_f64 + c, p->n);
        else
            multiply_i64(p->m, p->n, p->k, d->a_i64 + a, p->k, 1, d->b_i64 + b, p->n, 1, d->c_i64 + c);
        c += p->m * p->n;
        uint32_t axis = p->batch_rank;
        while (axis-- > 0) {
            a += p->a_stride[axis];
            b += p->b_stride[axis];
            if (++index[axis] < p->batch[axis]) break;
            a -= p->a_stride[axis] * p->batch[axis];
            b -= p->b_stride[axis] * p->batch[axis];
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) return;
    }
}

/* Values of A, B and a zeroed C, as doubles for floats, else as int64. */
static ent_code product_load(ent_ops_call *call, int64_t count, product_data *out) {
    const ent_tensor *a = ent_ops_input(call, 0), *b = ent_ops_input(call, 1);
    if (a->dtype != b->dtype)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "A and B have different dtypes");
    void *c = ent_ops_scratch(call, count, 8);
    if (!c) return ENT_CODE_OUT_OF_MEMORY;
    memset(c, 0, (size_t)count * 8);
    *out = (product_data){0};
    if (ent_ops_dtype_in(a->dtype, ENT_OPS_FLOATS)) {
        out->a_f64 = ent_ops_values_f64(call, a);
        out->b_f64 = ent_ops_values_f64(call, b);
        out->workspace = ent_ops_gemm_workspace(call);
        out->c_f64 = c;
        return out->a_f64 && out->b_f64 && out->workspace ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
    }
    out->a_i64 = ent_ops_values_i64(call, a);
    out->b_i64 = ent_ops_values_i64(call, b);
    out->c_i64 = c;
    return out->a_i64 && out->b_i64 ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
}

ent_code ent_ops_matmul(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    product p;
    product_data d;
    ent_code code = product_resolve(call, &p);
    if (code == ENT_OK) code = product_load(call, ent_ops_element_count(output), &d);
    if (code != ENT_OK) return code;
    multiply_batches(&p, &d);
    if (d.c_f64)
        ent_ops_result_f64(output, d.c_f64);
    else
        ent_ops_result_i64(output, d.c_i64);
    return ENT_OK;
}

ent_code ent_ops_dims_gemm(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *a = ent_ops_input(call, 0), *b = ent_ops_input(call, 1), *c = ent_ops_input(call, 2);
    if (a->rank != 2 || b->rank != 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "A and B must be matrices");
    bool trans_a = ent_attrs_int(call->attrs, "transA", 0) != 0,
         trans_b = ent_attrs_int(call->attrs, "transB", 0) != 0;
    if (a->dims[!trans_a] != b->dims[trans_b])
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "A has %lld columns, B has %lld rows",
                              (long long)a->dims[!trans_a], (long long)b->dims[trans_b]);
    outputs[0].dtype = a->dtype;
    outputs[0].rank = 2;
    outputs[0].dims[0] = a->dims[trans_a];
    outputs[0].dims[1] = b->dims[!trans_b];
    if (c && c->rank > 2) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "C has rank %u", c->rank);
    for (uint32_t i = 0; c && i < c->rank; i++) {
        int64_t extent = c->dims[i];
        if (extent != 1 && extent != outputs[0].dims[i + 2 - c->rank])
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "C does not broadcast to the product");
    }
    return ENT_OK;
}

/* y = alpha * product + beta * C, C broadcast. */
static void gemm_finish(ent_ops_call *call, const ent_tensor *output, const product_data *d) {
    const ent_tensor *c = ent_ops_input(call, 2);
    double alpha = ent_attrs_float(call->attrs, "alpha", 1), beta = ent_attrs_float(call->attrs, "beta", 1);
    int64_t rows = output->dims[0], columns = output->dims[1];
    int64_t c_column = 0, c_row = 0;
    if (c && c->rank >= 1) c_column = c->dims[c->rank - 1] == 1 ? 0 : 1;
    if (c && c->rank == 2) c_row = c->dims[0] == 1 ? 0 : c->dims[1];
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t at = i / columns * c_row + i % columns * c_column;
        if (d->c_f64) {
            d->c_f64[i] *= alpha;
            if (c) d->c_f64[i] += beta * ent_ops_load_f64(c->data, c->dtype, at);
            continue;
        }
        int64_t value = alpha == 1 ? d->c_i64[i] : (int64_t)(alpha * (double)d->c_i64[i]);
        int64_t added = c ? ent_ops_load_i64(c->data, c->dtype, at) : 0;
        if (beta != 1) added = (int64_t)(beta * (double)added);
        d->c_i64[i] = (int64_t)((uint64_t)value + (uint64_t)added);
    }
}

ent_code ent_ops_matrix_gemm(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    product_data d;
    ent_code code = product_load(call, ent_ops_element_count(output), &d);
    if (code != ENT_OK) return code;
    const ent_tensor *a = ent_ops_input(call, 0), *b = ent_ops_input(call, 1);
    bool trans_a = ent_attrs_int(call->attrs, "transA", 0) != 0,
         trans_b = ent_attrs_int(call->attrs, "transB", 0) != 0;
    int64_t a_row = trans_a ? 1 : a->dims[1], a_column = trans_a ? a->dims[1] : 1;
    int64_t b_row = trans_b ? 1 : b->dims[1], b_column = trans_b ? b->dims[1] : 1;
    int64_t m = output->dims[0], n = output->dims[1], k = a->dims[!trans_a];
    if (d.c_f64)
        ent_ops_gemm(d.workspace, m, n, k, (ent_ops_matrix){d.a_f64, a_row, a_column},
                     (ent_ops_matrix){d.b_f64, b_row, b_column}, d.c_f64, n);
    else
        multiply_i64(m, n, k, d.a_i64, a_row, a_column, d.b_i64, b_row, b_column, d.c_i64);
    gemm_finish(call, output, &d);
    if (d.c_f64)
        ent_ops_result_f64(output, d.c_f64);
    else
        ent_ops_result_i64(output, d.c_i64);
    return ENT_OK;
}
