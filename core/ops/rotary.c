/* RotaryEmbedding. Source: the ONNX schema of version 23 and its function body. */
#include "core/ops/internal.h"

typedef struct rotary {
    int64_t batch, heads, length, size, turned; /* `turned` leading elements of a head are rotated */
    bool flat; /* batch x length x (heads * size), else batch x heads x length x size */
} rotary;

static bool cache_fits(const ent_ops_call *call, const rotary *r, uint32_t index) {
    const ent_tensor *cache = ent_ops_input(call, index), *positions = ent_ops_input(call, 3);
    if (positions)
        return positions->rank == 2 && positions->dims[0] == r->batch && positions->dims[1] == r->length &&
               cache->rank == 2 && cache->dims[1] == r->turned / 2;
    return cache->rank == 3 && cache->dims[0] == r->batch && cache->dims[1] == r->length &&
           cache->dims[2] == r->turned / 2;
}

static ent_code rotary_resolve(ent_ops_call *call, rotary *r) {
    const ent_tensor *x = ent_ops_input(call, 0);
    r->flat = x->rank == 3;
    r->heads = r->flat ? ent_attrs_int(call->attrs, "num_heads", 0) : x->rank == 4 ? x->dims[1] : 0;
    if ((x->rank != 3 && x->rank != 4) || r->heads < 1 || (r->flat && x->dims[2] % r->heads != 0))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input does not divide into heads");
    r->batch = x->dims[0];
    r->length = x->dims[r->flat ? 1 : 2];
    r->size = r->flat ? x->dims[2] / r->heads : x->dims[3];
    r->turned = ent_attrs_int(call->attrs, "rotary_embedding_dim", 0);
    if (r->turned == 0) r->turned = r->size;
    if (r->turned < 0 || r->turned > r->size || r->turned % 2 != 0 || !cache_fits(call, r, 1) ||
        !cache_fits(call, r, 2))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the caches, positions and heads do not fit together");
    return ENT_OK;
}

ent_code ent_ops_rotary(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *cos_cache = ent_ops_input(call, 1),
                     *sin_cache = ent_ops_input(call, 2), *positions = ent_ops_input(call, 3);
    rotary r;
    ent_code code = rotary_resolve(call, &r);
    if (code != ENT_OK) return code;
    double *values = ent_ops_values_f64(call, x);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    bool interleaved = ent_attrs_int(call->attrs, "interleaved", 0) != 0;
    int64_t half = r.turned / 2;
    for (int64_t i = 0; i < r.batch * r.heads * r.length; i++) {
        int64_t step =
            r.flat ? i / r.heads : i / (r.heads * r.length) * r.length + i % r.length; /* batch, place */
        int64_t row = positions ? ent_ops_load_i64(positions->data, positions->dtype, step) : step;
        if (positions && (row < 0 || row >= cos_cache->dims[0] || row >= sin_cache->dims[0]))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "position %lld is outside the caches",
                                  (long long)row);
        for (int64_t j = 0; j < half; j++) {
            double *a = values + i * r.size + (interleaved ? 2 * j : j), *b = interleaved ? a + 1 : a + half;
            double c = ent_ops_load_f64(cos_cache->data, cos_cache->dtype, row * half + j);
            double s = ent_ops_load_f64(sin_cache->data, sin_cache->dtype, row * half + j);
            double re = c * *a - s * *b, im = s * *a + c * *b;
            *a = re;
            *b = im;
        }
    }
    ent_ops_result_f64(ent_ops_output(call, 0), values);
    return ENT_OK;
}
