/* Shape rules: reductions. */
#include "core/graph/infer.h"

/* mask: the axes to reduce. */
static void reduced(ent_infer *infer, uint32_t dtype, uint32_t mask) {
    const ent_value *x = ent_infer_input(infer, 0);
    bool keep = ent_attrs_int(infer->attrs, "keepdims", 1) != 0;
    ent_dim dims[ENT_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (!(mask & 1u << i))
            dims[rank++] = x->dims[i];
        else if (keep)
            dims[rank++] = 1;
    }
    ent_infer_set(infer, 0, dtype, rank, dims);
}

static ent_status infer_reduction(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *axes = ent_infer_input(infer, 1);
    int64_t numbers[ENT_MAX_ELEMENTS];
    uint32_t count = 0, mask = 0;
    if (axes && !ent_infer_numbers(infer, 1, numbers, &count)) {
        ent_dim unknown[ENT_MAX_RANK];
        for (uint32_t i = 0; i < x->rank; i++) unknown[i] = ENT_DIM_UNKNOWN;
        bool keep = ent_attrs_int(infer->attrs, "keepdims", 1) != 0;
        ent_infer_set(infer, 0, x->dtype, keep ? x->rank : ENT_RANK_UNKNOWN, unknown);
        return NULL;
    }
    ENT_TRY(ent_infer_axes(infer, numbers, count, x->rank, &mask));
    if (count == 0 && ent_attrs_int(infer->attrs, "noop_with_empty_axes", 0) == 0) mask = 0xffffffffu;
    if (count == 0 && mask == 0)
        ent_infer_copy(infer, 0, 0);
    else
        reduced(infer, x->dtype, mask);
    return NULL;
}

#define REDUCTION(op)                                                                                        \
    ent_status ent_infer_##op(ent_infer *infer) {                                                            \
        return infer_reduction(infer);                                                                       \
    }
REDUCTION(ReduceSum)
REDUCTION(ReduceMean)
REDUCTION(ReduceMax)
REDUCTION(ReduceMin)
REDUCTION(ReduceProd)
REDUCTION(ReduceL1)
REDUCTION(ReduceL2)
REDUCTION(ReduceSumSquare)
REDUCTION(ReduceLogSum)
REDUCTION(ReduceLogSumExp)

static ent_status infer_arg(ent_infer *infer) {
    uint32_t axis;
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", 0), ent_infer_input(infer, 0)->rank,
                           &axis));
    reduced(infer, ENT_DTYPE_I64, 1u << axis);
    return NULL;
}

ent_status ent_infer_ArgMax(ent_infer *infer) {
    return infer_arg(infer);
}

ent_status ent_infer_ArgMin(ent_infer *infer) {
    return infer_arg(infer);
}

static ent_status infer_softmax(ent_infer *infer) {
    uint32_t axis, rank = ent_infer_input(infer, 0)->rank;
    if (rank > 0) ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), rank, &axis));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_Softmax(ent_infer *infer) {
    return infer_softmax(infer);
}

ent_status ent_infer_LogSoftmax(ent_infer *infer) {
    return infer_softmax(infer);
}
