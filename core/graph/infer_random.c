/* Shape rules: random numbers. */
#include "core/graph/infer.h"

static ent_status read_dtype(const ent_infer *infer, const char *name, uint32_t missing, uint32_t *out) {
    int64_t dtype = ent_attrs_int(infer->attrs, name, 0);
    *out = dtype ? (uint32_t)dtype : missing;
    if (dtype >= 0 && dtype < ENT_DTYPE_COUNT) return NULL;
    return ent_infer_fail(infer, "attribute.dtype", "attribute '%s' is %lld, which is no element type", name,
                          (long long)dtype);
}

static ent_status infer_like(ent_infer *infer) {
    uint32_t dtype;
    ENT_TRY(read_dtype(infer, "dtype", ent_infer_input(infer, 0)->dtype, &dtype));
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = dtype;
    return NULL;
}

ent_status ent_infer_Bernoulli(ent_infer *infer) {
    return infer_like(infer);
}

ent_status ent_infer_RandomNormalLike(ent_infer *infer) {
    return infer_like(infer);
}

ent_status ent_infer_RandomUniformLike(ent_infer *infer) {
    return infer_like(infer);
}

static ent_status infer_random(ent_infer *infer) {
    const ent_attr *shape = ent_attrs_find(infer->attrs, "shape");
    ent_dim dims[ENT_MAX_RANK];
    uint32_t dtype;
    ENT_TRY(read_dtype(infer, "dtype", ENT_DTYPE_F32, &dtype));
    if (!shape || shape->type != ENT_ATTR_INTS)
        return ent_infer_fail(infer, "attribute.missing", "the attribute 'shape' is missing");
    ENT_TRY(ent_infer_check_rank(infer, shape->count));
    for (uint32_t i = 0; i < shape->count; i++)
        dims[i] = ent_module_dim_constant(infer->module, shape->ints[i]);
    ent_infer_set(infer, 0, dtype, shape->count, dims);
    return NULL;
}

ent_status ent_infer_RandomNormal(ent_infer *infer) {
    return infer_random(infer);
}

ent_status ent_infer_RandomUniform(ent_infer *infer) {
    return infer_random(infer);
}

ent_status ent_infer_Multinomial(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    uint32_t dtype;
    ENT_TRY(read_dtype(infer, "dtype", ENT_DTYPE_I32, &dtype));
    if (x->rank != 2)
        return ent_infer_fail(infer, "shape.rank", "the input %s is not batch x classes",
                              ent_infer_text(infer, 0));
    ent_dim dims[2] = {x->dims[0],
                       ent_module_dim_constant(infer->module, ent_attrs_int(infer->attrs, "sample_size", 1))};
    ent_infer_set(infer, 0, dtype, 2, dims);
    return NULL;
}
