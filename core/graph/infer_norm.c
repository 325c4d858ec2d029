/* Shape rules: normalisations and losses. */
#include "core/graph/infer.h"

static ent_status float_attr(const ent_infer *infer, const char *name) {
    int64_t dtype = ent_attrs_int(infer->attrs, name, ENT_DTYPE_F32);
    if (dtype > 0 && dtype < ENT_DTYPE_COUNT && ent_dtype_is_float((uint32_t)dtype)) return NULL;
    return ent_infer_fail(infer, "attribute.dtype", "%s %lld is no float type", name, (long long)dtype);
}

/* The result has the scale's type. */
ent_status ent_infer_RMSNormalization(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *scale = ent_infer_input(infer, 1);
    uint32_t axis, rank = x->rank;
    ent_dim whole[ENT_MAX_RANK];
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), x->rank, &axis));
    ENT_TRY(float_attr(infer, "stash_type"));
    for (uint32_t i = 0; i < rank; i++) whole[i] = x->dims[i];
    bool fits = scale->rank <= rank && ent_infer_broadcast(infer, &rank, whole, scale->rank, scale->dims);
    for (uint32_t i = 0; fits && i < rank; i++) fits = !ent_infer_differ(infer, whole[i], x->dims[i]);
    if (!fits)
        return ent_infer_fail(infer, "shape.broadcast", "the scale %s does not broadcast to %s",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 0));
    ent_infer_set(infer, 0, scale->dtype, x->rank, x->dims);
    return NULL;
}

ent_status ent_infer_GroupNormalization(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t groups = ent_attrs_int(infer->attrs, "num_groups", 0), channels;
    ENT_TRY(float_attr(infer, "stash_type"));
    bool fits = x->rank >= 2 && groups > 0;
    if (fits && ent_module_dim_number(infer->module, x->dims[1], &channels)) fits = channels % groups == 0;
    for (uint32_t i = 1; fits && i < 3; i++) {
        const ent_value *vector = ent_infer_input(infer, i);
        fits = vector->rank == 1 && !ent_infer_differ(infer, vector->dims[0], x->dims[1]);
    }
    if (!fits)
        return ent_infer_fail(
            infer, "shape.channels",
            "the channels of %s do not divide into %lld groups, or scale %s and bias %s do not fit",
            ent_infer_text(infer, 0), (long long)groups, ent_infer_text(infer, 1), ent_infer_text(infer, 2));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_MeanVarianceNormalization(ent_infer *infer) {
    static const int64_t common[3] = {0, 2, 3};
    const ent_attr *attr = ent_attrs_find(infer->attrs, "axes");
    uint32_t mask;
    ENT_TRY(ent_infer_axes(infer, attr ? attr->ints : common, attr ? attr->count : 3,
                           ent_infer_input(infer, 0)->rank, &mask));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

static ent_status keep_with_axis(ent_infer *infer) {
    uint32_t axis;
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), ent_infer_input(infer, 0)->rank,
                           &axis));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_LpNormalization(ent_infer *infer) {
    int64_t p = ent_attrs_int(infer->attrs, "p", 2);
    if (p != 1 && p != 2)
        return ent_infer_fail(infer, "attribute.value", "p is %lld, not 1 or 2", (long long)p);
    return keep_with_axis(infer);
}

ent_status ent_infer_Hardmax(ent_infer *infer) {
    return keep_with_axis(infer);
}

ent_status ent_infer_LRN(ent_infer *infer) {
    if (ent_infer_input(infer, 0)->rank < 2)
        return ent_infer_fail(infer, "shape.rank", "the input %s has no channels", ent_infer_text(infer, 0));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

static ent_status infer_loss(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *target = ent_infer_input(infer, 1),
                    *weight = ent_infer_input(infer, 2);
    bool fits =
        x->rank >= 2 && target->rank + 1 == x->rank && !ent_infer_differ(infer, target->dims[0], x->dims[0]);
    for (uint32_t i = 2; fits && i < x->rank; i++)
        fits = !ent_infer_differ(infer, target->dims[i - 1], x->dims[i]);
    if (fits && weight) fits = weight->rank == 1 && !ent_infer_differ(infer, weight->dims[0], x->dims[1]);
    if (!fits)
        return ent_infer_fail(infer, "shape.loss", "scores %s, targets %s and weights %s do not fit together",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1), ent_infer_text(infer, 2));
    bool none = ent_attrs_string_is(infer->attrs, "reduction", "mean", "none");
    if (!none && !ent_attrs_string_is(infer->attrs, "reduction", "mean", "mean") &&
        !ent_attrs_string_is(infer->attrs, "reduction", "mean", "sum"))
        return ent_infer_fail(infer, "attribute.value", "the reduction is not none, mean or sum");
    ent_infer_set(infer, 0, x->dtype, none ? target->rank : 0, target->dims);
    ent_infer_copy(infer, 1, 0);
    return NULL;
}

ent_status ent_infer_NegativeLogLikelihoodLoss(ent_infer *infer) {
    return infer_loss(infer);
}

ent_status ent_infer_SoftmaxCrossEntropyLoss(ent_infer *infer) {
    return infer_loss(infer);
}
