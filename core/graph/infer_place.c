/* Shape rules: operators that place elements of one value in another, or keep some of them. */
#include "core/graph/infer.h"

#include <string.h>

/* The scalar or one-element list that an input holds, when it is a number. */
static bool single_number(const ent_infer *infer, uint32_t index, int64_t *out) {
    int64_t numbers[ENT_MAX_ELEMENTS];
    uint32_t count;
    if (!ent_infer_numbers(infer, index, numbers, &count) || count != 1) return false;
    *out = numbers[0];
    return true;
}

ent_status ent_infer_Trilu(ent_infer *infer) {
    if (ent_infer_input(infer, 0)->rank < 2)
        return ent_infer_fail(infer, "shape.rank", "input %s needs a rank of at least 2",
                              ent_infer_text(infer, 0));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_ScatterElements(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *indices = ent_infer_input(infer, 1),
                    *updates = ent_infer_input(infer, 2);
    uint32_t axis;
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", 0), x->rank, &axis));
    bool fits = indices->rank == x->rank && updates->rank == x->rank;
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = !ent_infer_differ(infer, indices->dims[i], updates->dims[i]);
    if (!fits)
        return ent_infer_fail(infer, "shape.scatter", "indices %s and updates %s do not fit data %s",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 2), ent_infer_text(infer, 0));
    if (x->dtype && updates->dtype && x->dtype != updates->dtype)
        return ent_infer_fail(infer, "dtype.same", "the updates are %s, the data %s",
                              ent_dtype_name((ent_dtype)updates->dtype), ent_dtype_name((ent_dtype)x->dtype));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_TensorScatter(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *update = ent_infer_input(infer, 1);
    uint32_t axis;
    ENT_TRY(ent_infer_same_dtype(infer, 0, 2));
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -2), x->rank, &axis));
    bool fits = update->rank == x->rank && axis > 0;
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = i == axis || !ent_infer_differ(infer, x->dims[i], update->dims[i]);
    if (!fits)
        return ent_infer_fail(infer, "shape.scatter", "update %s does not fit cache %s along axis %u",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 0), axis);
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_TopK(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    uint32_t axis;
    int64_t k, extent;
    ent_dim dims[ENT_MAX_RANK];
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), x->rank, &axis));
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = ENT_DIM_UNKNOWN;
    if (single_number(infer, 1, &k)) {
        if (k < 0 || (ent_module_dim_number(infer->module, x->dims[axis], &extent) && k > extent))
            return ent_infer_fail(infer, "shape.topk", "k is %lld for axis %u of %s", (long long)k, axis,
                                  ent_infer_text(infer, 0));
        dims[axis] = ent_module_dim_constant(infer->module, k);
    }
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    ent_infer_set(infer, 1, ENT_DTYPE_I64, x->rank, dims);
    return NULL;
}

/* How many elements differ depends on the data. */
ent_status ent_infer_Unique(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    const ent_attr *along = ent_attrs_find(infer->attrs, "axis");
    ent_dim dims[ENT_MAX_RANK], list = ENT_DIM_UNKNOWN;
    uint32_t axis = 0;
    if (along) {
        ENT_TRY(ent_infer_axis(infer, along->i, x->rank, &axis));
        memcpy(dims, x->dims, sizeof dims);
        dims[axis] = ENT_DIM_UNKNOWN;
        ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    } else {
        ent_infer_set(infer, 0, x->dtype, 1, &list);
    }
    ent_infer_set(infer, 1, ENT_DTYPE_I64, 1, &list);
    ent_infer_set(infer, 3, ENT_DTYPE_I64, 1, &list);
    list = along ? x->dims[axis] : ent_infer_product(infer, x->dims, x->rank);
    ent_infer_set(infer, 2, ENT_DTYPE_I64, 1, &list);
    return NULL;
}

ent_status ent_infer_Compress(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *condition = ent_infer_input(infer, 1);
    const ent_attr *along = ent_attrs_find(infer->attrs, "axis");
    ent_dim dims[ENT_MAX_RANK] = {ENT_DIM_UNKNOWN};
    if (condition->dtype && condition->dtype != ENT_DTYPE_BOOL)
        return ent_infer_fail(infer, "dtype.condition", "the condition has type %s, not bool",
                              ent_dtype_name((ent_dtype)condition->dtype));
    if (condition->rank != 1)
        return ent_infer_fail(infer, "shape.rank", "the condition has shape %s, not one axis",
                              ent_infer_text(infer, 1));
    if (!along) {
        ent_infer_set(infer, 0, x->dtype, 1, dims);
        return NULL;
    }
    uint32_t axis;
    ENT_TRY(ent_infer_axis(infer, along->i, x->rank, &axis));
    memcpy(dims, x->dims, sizeof dims);
    dims[axis] = ENT_DIM_UNKNOWN;
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

/* The new axis stands at `axis` of the result. */
ent_status ent_infer_OneHot(ent_infer *infer) {
    const ent_value *indices = ent_infer_input(infer, 0), *values = ent_infer_input(infer, 2);
    uint32_t axis, rank = indices->rank + 1;
    ent_dim dims[ENT_MAX_RANK], depth[ENT_MAX_ELEMENTS];
    uint32_t count;
    ENT_TRY(ent_infer_check_rank(infer, rank));
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), rank, &axis));
    if (values->rank != 1 || ent_infer_differ(infer, values->dims[0], 2))
        return ent_infer_fail(infer, "shape.onehot", "values has shape %s, not two elements",
                              ent_infer_text(infer, 2));
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? ENT_DIM_UNKNOWN : indices->dims[i < axis ? i : i - 1];
    if (ent_infer_elements(infer, 1, depth, &count) && count == 1) dims[axis] = depth[0];
    ent_infer_set(infer, 0, values->dtype, rank, dims);
    return NULL;
}

/* Of a list the square matrix. */
ent_status ent_infer_EyeLike(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t dtype = ent_attrs_int(infer->attrs, "dtype", x->dtype);
    if (x->rank < 1 || x->rank > 2)
        return ent_infer_fail(infer, "shape.rank", "input %s needs rank 2", ent_infer_text(infer, 0));
    if (dtype < 0 || dtype >= ENT_DTYPE_COUNT)
        return ent_infer_fail(infer, "attribute.dtype", "attribute 'dtype' is %lld, which is no element type",
                              (long long)dtype);
    ent_dim dims[2] = {x->dims[0], x->dims[x->rank - 1]};
    ent_infer_set(infer, 0, (uint32_t)dtype, 2, dims);
    return NULL;
}

ent_status ent_infer_ReverseSequence(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *lengths = ent_infer_input(infer, 1);
    int64_t batch = ent_attrs_int(infer->attrs, "batch_axis", 1),
            time = ent_attrs_int(infer->attrs, "time_axis", 0);
    bool fits = x->rank >= 2 && batch + time == 1 && batch * time == 0 && lengths->rank == 1;
    if (!fits || ent_infer_differ(infer, x->dims[batch], lengths->dims[0]))
        return ent_infer_fail(
            infer, "shape.sequence", "input %s, lengths %s, batch_axis %lld and time_axis %lld do not fit",
            ent_infer_text(infer, 0), ent_infer_text(infer, 1), (long long)batch, (long long)time);
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_CenterCropPad(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    const ent_attr *listed = ent_attrs_find(infer->attrs, "axes");
    ent_dim dims[ENT_MAX_RANK], sizes[ENT_MAX_ELEMENTS];
    uint32_t axes[ENT_MAX_RANK], count = x->rank, mask, known;
    for (uint32_t i = 0; i < count; i++) axes[i] = i;
    if (listed && listed->type == ENT_ATTR_INTS && listed->count > 0) {
        count = listed->count;
        ENT_TRY(ent_infer_axes(infer, listed->ints, count, x->rank, &mask));
        for (uint32_t i = 0; i < count; i++)
            ENT_TRY(ent_infer_axis(infer, listed->ints[i], x->rank, &axes[i]));
    }
    bool have = ent_infer_elements(infer, 1, sizes, &known);
    if (have && known != count)
        return ent_infer_fail(infer, "shape.crop", "%u sizes were given for %u axes", known, count);
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t i = 0; i < count; i++) dims[axes[i]] = have ? sizes[i] : ENT_DIM_UNKNOWN;
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

ent_status ent_infer_BitCast(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t to = ent_attrs_int(infer->attrs, "to", 0);
    if (to <= 0 || to >= ENT_DTYPE_COUNT)
        return ent_infer_fail(infer, "attribute.dtype", "attribute 'to' is %lld, which is no element type",
                              (long long)to);
    ent_infer_copy(infer, 0, 0);
    infer->out[0].dtype = (uint32_t)to;
    if (x->dtype && ent_dtype_bits(x->dtype) != ent_dtype_bits((ent_dtype)to))
        return ent_infer_fail(infer, "dtype.bits", "%s and %s have different widths",
                              ent_dtype_name((ent_dtype)x->dtype), ent_dtype_name((ent_dtype)to));
    return NULL;
}

/* Boxes N x B x 4 and scores N x C x B; a row of batch, class and box index for each box that stays. */
ent_status ent_infer_NonMaxSuppression(ent_infer *infer) {
    const ent_value *boxes = ent_infer_input(infer, 0), *scores = ent_infer_input(infer, 1);
    bool fits = boxes->rank == 3 && scores->rank == 3 &&
                !ent_infer_differ(infer, boxes->dims[0], scores->dims[0]) &&
                !ent_infer_differ(infer, boxes->dims[1], scores->dims[2]) &&
                !ent_infer_differ(infer, boxes->dims[2], 4);
    if (!fits)
        return ent_infer_fail(infer, "shape.boxes", "boxes %s and scores %s do not fit",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    ent_dim dims[2] = {ENT_DIM_UNKNOWN, 3};
    ent_infer_set(infer, 0, ENT_DTYPE_I64, 2, dims);
    return NULL;
}
