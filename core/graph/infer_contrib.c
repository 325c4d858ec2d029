/* Shape rules of com.microsoft operators. */
#include "core/graph/infer.h"

/* batch: the first axis goes behind the other batch axes; then the last two may be exchanged. */
static ent_value transposed(const ent_value *value, bool batch, bool last) {
    ent_value out = *value;
    uint32_t rank = value->rank;
    if (rank < 2) return out;
    for (uint32_t i = 0; batch && i + 2 < rank; i++) out.dims[i] = value->dims[i + 1];
    if (batch) out.dims[rank - 2] = value->dims[0];
    if (!last) return out;
    ent_dim kept = out.dims[rank - 1];
    out.dims[rank - 1] = out.dims[rank - 2];
    out.dims[rank - 2] = kept;
    return out;
}

ent_status ent_infer_FusedMatMul(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    ent_value a = transposed(ent_infer_input(infer, 0), ent_attrs_int(infer->attrs, "transBatchA", 0) != 0,
                             ent_attrs_int(infer->attrs, "transA", 0) != 0);
    ent_value b = transposed(ent_infer_input(infer, 1), ent_attrs_int(infer->attrs, "transBatchB", 0) != 0,
                             ent_attrs_int(infer->attrs, "transB", 0) != 0);
    if (a.rank < 2 || b.rank < 2 || ent_infer_differ(infer, a.dims[a.rank - 1], b.dims[b.rank - 2]))
        return ent_infer_fail(infer, "shape.contract", "%s and %s are no matrices that can be multiplied",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    uint32_t rank = a.rank - 2;
    ent_dim dims[ENT_MAX_RANK + 2];
    for (uint32_t i = 0; i < rank; i++) dims[i] = a.dims[i];
    if (!ent_infer_broadcast(infer, &rank, dims, b.rank - 2, b.dims))
        return ent_infer_fail(infer, "shape.broadcast", "the batch sizes of %s and %s differ",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    dims[rank++] = a.dims[a.rank - 2];
    dims[rank++] = b.dims[b.rank - 1];
    ent_infer_set(infer, 0, a.dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_BiasGelu(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    return ent_infer_broadcast_inputs(infer, ent_infer_input(infer, 0)->dtype);
}

ent_status ent_infer_FastGelu(ent_infer *infer) {
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    return ent_infer_broadcast_inputs(infer, ent_infer_input(infer, 0)->dtype);
}

ent_status ent_infer_QuickGelu(ent_infer *infer) {
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

static ent_status check_vectors(const ent_infer *infer, uint32_t from) {
    const ent_value *x = ent_infer_input(infer, 0);
    for (uint32_t i = from; i < infer->node->input_count; i++) {
        const ent_value *vector = ent_infer_input(infer, i);
        if (!vector || (vector->rank == 1 && x->rank > 0 &&
                        !ent_infer_differ(infer, vector->dims[0], x->dims[x->rank - 1])))
            continue;
        return ent_infer_fail(infer, "shape.broadcast", "input %u %s is no vector along the last axis of %s",
                              i, ent_infer_text(infer, i), ent_infer_text(infer, 0));
    }
    return NULL;
}

/* Results: the norm; mean and inverse deviation in f32; the sum that was normalised. */
static ent_status infer_skip(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim dims[ENT_MAX_RANK];
    ENT_TRY(check_vectors(infer, 2));
    ENT_TRY(ent_infer_broadcast_inputs(infer, x->dtype));
    bool grew = infer->out[0].rank != x->rank;
    for (uint32_t i = 0; !grew && i < x->rank; i++)
        grew = ent_infer_differ(infer, infer->out[0].dims[i], x->dims[i]);
    if (grew)
        return ent_infer_fail(infer, "shape.broadcast", "skip %s does not broadcast to %s",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 0));
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = i + 1 < x->rank ? x->dims[i] : 1;
    ent_infer_copy(infer, 0, 0);
    ent_infer_set(infer, 1, ENT_DTYPE_F32, x->rank, dims);
    ent_infer_set(infer, 2, ENT_DTYPE_F32, x->rank, dims);
    ent_infer_copy(infer, 3, 0);
    return NULL;
}

ent_status ent_infer_SkipLayerNormalization(ent_infer *infer) {
    return infer_skip(infer);
}

ent_status ent_infer_SkipSimplifiedLayerNormalization(ent_infer *infer) {
    return infer_skip(infer);
}

ent_status ent_infer_SimplifiedLayerNormalization(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim dims[ENT_MAX_RANK];
    uint32_t axis;
    ENT_TRY(ent_infer_RMSNormalization(infer));
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), x->rank, &axis));
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = i < axis ? x->dims[i] : 1;
    ent_infer_set(infer, 1, (uint32_t)ent_attrs_int(infer->attrs, "stash_type", ENT_DTYPE_F32), x->rank,
                  dims);
    return NULL;
}

ent_status ent_infer_FusedGemm(ent_infer *infer) {
    return ent_infer_Gemm(infer);
}

/* Input 3 is added to the result. */
ent_status ent_infer_FusedConv(ent_infer *infer) {
    const ent_value *sum = ent_infer_input(infer, 3);
    ENT_TRY(ent_infer_Conv(infer));
    bool fits = !sum || sum->rank == infer->out[0].rank;
    for (uint32_t i = 0; fits && sum && i < sum->rank; i++)
        fits = !ent_infer_differ(infer, sum->dims[i], infer->out[0].dims[i]);
    return fits ? NULL
                : ent_infer_fail(infer, "shape.same", "input 3 %s does not have the shape of the result",
                                 ent_infer_text(infer, 3));
}
