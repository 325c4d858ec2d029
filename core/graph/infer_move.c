/* Shape rules: movement that keeps all elements (reshape, transpose, concatenation ...) or repeats them. */
#include "core/graph/infer.h"

#include <string.h>

static void set_unknown(ent_infer *infer, uint32_t dtype, uint32_t rank) {
    ent_dim dims[ENT_MAX_RANK];
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) dims[i] = ENT_DIM_UNKNOWN;
    ent_infer_set(infer, 0, dtype, rank, dims);
}

/* Number of elements of a vector input, when that is a number. */
static bool vector_length(const ent_infer *infer, uint32_t index, int64_t *out) {
    const ent_value *value = ent_infer_input(infer, index);
    return value && value->rank == 1 && ent_module_dim_number(infer->module, value->dims[0], out);
}

/* An output whose shape is a vector input of which only the length may be known. */
static ent_status shape_of_unknown(ent_infer *infer, uint32_t index, uint32_t dtype) {
    int64_t length;
    infer->out[0].dtype = dtype;
    if (!vector_length(infer, index, &length)) return NULL;
    ENT_TRY(ent_infer_check_rank(infer, (uint64_t)length));
    set_unknown(infer, dtype, (uint32_t)length);
    return NULL;
}

/* ---- Reshape ---- */

static ent_status reshape_error(const ent_infer *infer, uint32_t rank, const ent_dim *dims) {
    return ent_infer_fail(infer, "shape.reshape", "%s cannot be reshaped to %s", ent_infer_text(infer, 0),
                          ent_module_dims_text(infer->module, rank, dims));
}

/* The one open size, from the number of elements. Sizes that were copied from the same place are left out of
 * the division, so that symbols cancel even where a product would not. */
static ent_status fill_open(const ent_infer *infer, uint32_t rank, ent_dim *dims, uint32_t open, bool sure) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim total = ent_infer_product(infer, x->dims, x->rank), others = 1;
    int64_t a, b;
    for (uint32_t i = 0; i < rank; i++)
        if (i != open) others = ent_infer_dim(infer, ENT_EXPR_MUL, others, dims[i]);
    dims[open] = ENT_DIM_UNKNOWN;
    if (total == ENT_DIM_UNKNOWN || others == ENT_DIM_UNKNOWN) return NULL;
    if (others != 0 && ent_module_dim_divide(infer->module, total, others, &dims[open])) return NULL;
    bool numbers =
        ent_module_dim_number(infer->module, total, &a) && ent_module_dim_number(infer->module, others, &b);
    if (numbers && sure) {
        if (others == 0 && total == 0)
            dims[open] = 0;
        else
            return reshape_error(infer, rank, dims);
    }
    if (!numbers && sure) dims[open] = ent_infer_dim(infer, ENT_EXPR_FLOORDIV, total, others);
    return NULL;
}

static ent_status check_count(const ent_infer *infer, uint32_t rank, const ent_dim *dims) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim before = ent_infer_product(infer, x->dims, x->rank), after = ent_infer_product(infer, dims, rank);
    return ent_infer_differ(infer, before, after) ? reshape_error(infer, rank, dims) : NULL;
}

ent_status ent_infer_Reshape(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim dims[ENT_MAX_ELEMENTS];
    uint32_t rank, open = ENT_ID_NONE, unknown = 0, minus = 0, last_unknown = 0;
    if (!ent_infer_elements(infer, 1, dims, &rank)) return shape_of_unknown(infer, 1, x->dtype);
    ENT_TRY(ent_infer_check_rank(infer, rank));
    bool copy_zero = ent_attrs_int(infer->attrs, "allowzero", 0) == 0;
    for (uint32_t i = 0; i < rank; i++) {
        int64_t number;
        if (dims[i] == ENT_DIM_UNKNOWN) {
            unknown++;
            last_unknown = i;
        } else if (ent_module_dim_number(infer->module, dims[i], &number) && number < 0) {
            if (number != -1 || minus++) return reshape_error(infer, rank, dims);
            open = i;
        } else if (dims[i] == 0 && copy_zero) {
            if (i >= x->rank) return reshape_error(infer, rank, dims);
            dims[i] = x->dims[i];
        }
    }
    if (minus && unknown)
        dims[open] = ENT_DIM_UNKNOWN;
    else if (minus)
        ENT_TRY(fill_open(infer, rank, dims, open, true));
    else if (unknown == 1)
        ENT_TRY(fill_open(infer, rank, dims, last_unknown, false));
    else if (!unknown)
        ENT_TRY(check_count(infer, rank, dims));
    ent_infer_set(infer, 0, x->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_Flatten(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t axis = ent_attrs_int(infer->attrs, "axis", 1);
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank)
        return ent_infer_fail(infer, "shape.axis", "axis %lld is outside input %s", (long long)axis,
                              ent_infer_text(infer, 0));
    ent_dim dims[2];
    dims[0] = ent_infer_product(infer, x->dims, (uint32_t)axis);
    dims[1] = ent_infer_product(infer, x->dims + axis, x->rank - (uint32_t)axis);
    ent_infer_set(infer, 0, x->dtype, 2, dims);
    return NULL;
}

ent_status ent_infer_Squeeze(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *axes = ent_infer_input(infer, 1);
    int64_t numbers[ENT_MAX_ELEMENTS];
    uint32_t count = 0, mask = 0, rank = 0;
    ent_dim dims[ENT_MAX_RANK];
    if (axes && !ent_infer_numbers(infer, 1, numbers, &count)) {
        infer->out[0].dtype = x->dtype;
        return NULL;
    }
    ENT_TRY(ent_infer_axes(infer, numbers, count, x->rank, &mask));
    for (uint32_t i = 0; i < x->rank; i++) {
        bool listed = axes ? (mask & 1u << i) != 0 : x->dims[i] == 1;
        if (listed && ent_infer_differ(infer, x->dims[i], 1))
            return ent_infer_fail(infer, "shape.squeeze", "axis %u of %s is not 1", i,
                                  ent_infer_text(infer, 0));
        if (!listed) dims[rank++] = x->dims[i];
    }
    ent_infer_set(infer, 0, x->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_Unsqueeze(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t numbers[ENT_MAX_ELEMENTS], length;
    uint32_t count, mask, from = 0;
    ent_dim dims[ENT_MAX_RANK];
    if (!ent_infer_numbers(infer, 1, numbers, &count)) {
        infer->out[0].dtype = x->dtype;
        if (!vector_length(infer, 1, &length) || length < 0) return NULL;
        ENT_TRY(ent_infer_check_rank(infer, (uint64_t)length + x->rank));
        set_unknown(infer, x->dtype, x->rank + (uint32_t)length);
        return NULL;
    }
    ENT_TRY(ent_infer_check_rank(infer, (uint64_t)count + x->rank));
    uint32_t rank = x->rank + count;
    ENT_TRY(ent_infer_axes(infer, numbers, count, rank, &mask));
    for (uint32_t i = 0; i < rank; i++) dims[i] = mask & 1u << i ? 1 : x->dims[from++];
    ent_infer_set(infer, 0, x->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_Transpose(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    const ent_attr *perm = ent_attrs_find(infer->attrs, "perm");
    int64_t order[ENT_MAX_RANK];
    ent_dim dims[ENT_MAX_RANK];
    uint32_t mask;
    for (uint32_t i = 0; i < x->rank; i++) order[i] = x->rank - 1 - i;
    if (perm) ENT_TRY(ent_infer_ints(infer, "perm", x->rank, -1, order));
    ENT_TRY(ent_infer_axes(infer, order, x->rank, x->rank, &mask));
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = x->dims[order[i] < 0 ? order[i] + x->rank : order[i]];
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

ent_status ent_infer_Concat(ent_infer *infer) {
    const ent_value *first = ent_infer_input(infer, 0);
    const ent_attr *attr = ent_attrs_find(infer->attrs, "axis");
    ent_dim dims[ENT_MAX_RANK];
    uint32_t axis;
    if (!attr) return ent_infer_fail(infer, "attribute.axis", "Concat needs the attribute 'axis'");
    ENT_TRY(ent_infer_same_dtype(infer, 0, infer->node->input_count));
    ENT_TRY(ent_infer_axis(infer, attr->i, first->rank, &axis));
    memcpy(dims, first->dims, sizeof dims);
    for (uint32_t i = 1; i < infer->node->input_count; i++) {
        const ent_value *x = ent_infer_input(infer, i);
        bool fits = x && x->rank == first->rank;
        for (uint32_t k = 0; fits && k < first->rank; k++) {
            if (k == axis) continue;
            fits = !ent_infer_differ(infer, dims[k], x->dims[k]);
            dims[k] = ent_infer_same(infer, dims[k], x->dims[k]);
        }
        if (!fits)
            return ent_infer_fail(infer, "shape.concat",
                                  "input 0 %s and input %u %s do not fit along axis %u",
                                  ent_infer_text(infer, 0), i, ent_infer_text(infer, i), axis);
        dims[axis] = ent_infer_dim(infer, ENT_EXPR_ADD, dims[axis], x->dims[axis]);
    }
    ent_infer_set(infer, 0, first->dtype, first->rank, dims);
    return NULL;
}

/* ---- Split ---- */

static ent_status split_by_sizes(ent_infer *infer, uint32_t axis) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim sizes[ENT_MAX_ELEMENTS], dims[ENT_MAX_RANK], sum = 0;
    uint32_t count = infer->node->output_count, known;
    memcpy(dims, x->dims, sizeof dims);
    bool have = ent_infer_elements(infer, 1, sizes, &known);
    if (have && known != count)
        return ent_infer_fail(infer, "shape.split", "%u sizes were given for %u outputs", known, count);
    for (uint32_t i = 0; have && i < count; i++) sum = ent_infer_dim(infer, ENT_EXPR_ADD, sum, sizes[i]);
    if (have && ent_infer_differ(infer, sum, x->dims[axis]))
        return ent_infer_fail(infer, "shape.split", "the sizes do not add up to axis %u of %s", axis,
                              ent_infer_text(infer, 0));
    for (uint32_t i = 0; i < count; i++) {
        dims[axis] = have ? sizes[i] : ENT_DIM_UNKNOWN;
        ent_infer_set(infer, i, x->dtype, x->rank, dims);
    }
    return NULL;
}

/* Equal parts, rounded up; the last one takes what is left. */
ent_status ent_infer_Split(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    uint32_t axis, count = infer->node->output_count;
    ent_dim dims[ENT_MAX_RANK];
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", 0), x->rank, &axis));
    if (ent_infer_input(infer, 1)) return split_by_sizes(infer, axis);
    if (ent_attrs_int(infer->attrs, "num_outputs", count) != count)
        return ent_infer_fail(infer, "shape.split", "num_outputs is not the number of outputs, %u", count);
    memcpy(dims, x->dims, sizeof dims);
    ent_dim part = ent_infer_dim(infer, ENT_EXPR_CEILDIV, x->dims[axis], count);
    ent_dim before = ent_infer_dim(infer, ENT_EXPR_MUL, part, count - 1);
    for (uint32_t i = 0; i < count; i++) {
        dims[axis] = i + 1 < count ? part : ent_infer_dim(infer, ENT_EXPR_SUB, x->dims[axis], before);
        ent_infer_set(infer, i, x->dtype, x->rank, dims);
    }
    return NULL;
}

/* ---- repetition and padding ---- */

ent_status ent_infer_Expand(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim dims[ENT_MAX_ELEMENTS];
    uint32_t count, rank = x->rank;
    ent_dim result[ENT_MAX_RANK];
    int64_t length;
    if (!ent_infer_elements(infer, 1, dims, &count)) {
        infer->out[0].dtype = x->dtype;
        if (!vector_length(infer, 1, &length)) return NULL;
        ENT_TRY(ent_infer_check_rank(infer, (uint64_t)length));
        set_unknown(infer, x->dtype, length > x->rank ? (uint32_t)length : x->rank);
        return NULL;
    }
    ENT_TRY(ent_infer_check_rank(infer, count));
    memcpy(result, x->dims, sizeof result);
    if (!ent_infer_broadcast(infer, &rank, result, count, dims))
        return ent_infer_fail(infer, "shape.broadcast", "%s cannot be expanded to %s",
                              ent_infer_text(infer, 0), ent_module_dims_text(infer->module, count, dims));
    ent_infer_set(infer, 0, x->dtype, rank, result);
    return NULL;
}

ent_status ent_infer_Tile(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim repeats[ENT_MAX_ELEMENTS];
    uint32_t count;
    if (!ent_infer_elements(infer, 1, repeats, &count)) {
        set_unknown(infer, x->dtype, x->rank);
        return NULL;
    }
    if (count != x->rank)
        return ent_infer_fail(infer, "shape.tile", "%u repeats were given for input %s", count,
                              ent_infer_text(infer, 0));
    for (uint32_t i = 0; i < count; i++)
        repeats[i] = ent_infer_dim(infer, ENT_EXPR_MUL, x->dims[i], repeats[i]);
    ent_infer_set(infer, 0, x->dtype, x->rank, repeats);
    return NULL;
}

ent_status ent_infer_Pad(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim pads[ENT_MAX_ELEMENTS], dims[ENT_MAX_RANK];
    int64_t axes[ENT_MAX_ELEMENTS];
    uint32_t count, axis_count = x->rank, mask;
    for (uint32_t i = 0; i < x->rank; i++) axes[i] = i;
    bool known = ent_infer_elements(infer, 1, pads, &count);
    if (ent_infer_input(infer, 3)) known = known && ent_infer_numbers(infer, 3, axes, &axis_count);
    if (!known) {
        set_unknown(infer, x->dtype, x->rank);
        return NULL;
    }
    ENT_TRY(ent_infer_axes(infer, axes, axis_count, x->rank, &mask));
    if (count != 2 * axis_count)
        return ent_infer_fail(infer, "shape.pad", "%u pads were given for %u axes of %s", count, axis_count,
                              ent_infer_text(infer, 0));
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t i = 0; i < axis_count; i++) {
        ent_dim *dim = &dims[axes[i] < 0 ? axes[i] + x->rank : axes[i]];
        *dim = ent_infer_dim(infer, ENT_EXPR_ADD, *dim,
                             ent_infer_dim(infer, ENT_EXPR_ADD, pads[i], pads[i + axis_count]));
    }
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

/* ---- blocks of space and depth ---- */

static ent_status check_blocks(ent_infer *infer, int64_t *out) {
    int64_t block = ent_attrs_int(infer->attrs, "blocksize", 0);
    *out = block;
    if (ent_infer_input(infer, 0)->rank != 4 || block <= 0 || block > 1 << 20)
        return ent_infer_fail(infer, "shape.blocks",
                              "input %s needs rank 4 and a blocksize above 0, not %lld",
                              ent_infer_text(infer, 0), (long long)block);
    return NULL;
}

static ent_status divided(ent_infer *infer, ent_dim dim, int64_t by, ent_dim *out) {
    int64_t number;
    if (ent_module_dim_number(infer->module, dim, &number) && number % by != 0)
        return ent_infer_fail(infer, "shape.blocks", "a size of input %s is no multiple of %lld",
                              ent_infer_text(infer, 0), (long long)by);
    *out = ent_infer_dim(infer, ENT_EXPR_FLOORDIV, dim, by);
    return NULL;
}

ent_status ent_infer_DepthToSpace(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t block;
    ENT_TRY(check_blocks(infer, &block));
    ent_dim dims[4] = {x->dims[0], 0, 0, 0};
    for (uint32_t i = 2; i < 4; i++) dims[i] = ent_infer_dim(infer, ENT_EXPR_MUL, x->dims[i], block);
    ENT_TRY(divided(infer, x->dims[1], block * block, &dims[1]));
    ent_infer_set(infer, 0, x->dtype, 4, dims);
    return NULL;
}

ent_status ent_infer_SpaceToDepth(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t block;
    ENT_TRY(check_blocks(infer, &block));
    ent_dim dims[4] = {x->dims[0], ent_infer_dim(infer, ENT_EXPR_MUL, x->dims[1], block * block), 0, 0};
    ENT_TRY(divided(infer, x->dims[2], block, &dims[2]));
    ENT_TRY(divided(infer, x->dims[3], block, &dims[3]));
    ent_infer_set(infer, 0, x->dtype, 4, dims);
    return NULL;
}
