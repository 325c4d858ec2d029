/* Shape rules: slices and gathers. */
#include "core/graph/infer.h"

#include <string.h>

/* Beyond this a bound means "to the end". */
#define FAR ((int64_t)1 << 31)

/* A slice bound inside `dim`: negative ones count from the end, then it is clamped to low..dim + high.
 * Unknown when a symbolic bound may be negative. */
static ent_dim clamp_bound(const ent_infer *infer, ent_dim bound, ent_dim dim, int64_t low, int64_t high) {
    ent_module *module = infer->module;
    int64_t number;
    if (bound == ENT_DIM_UNKNOWN || dim == ENT_DIM_UNKNOWN) return ENT_DIM_UNKNOWN;
    bool known = ent_module_dim_number(module, bound, &number);
    ent_dim least = ent_module_dim_constant(module, low);
    ent_dim most = ent_infer_dim(infer, ENT_EXPR_ADD, dim, ent_module_dim_constant(module, high));
    if (known && number >= FAR) return most;
    if (known && number <= -FAR) return least;
    if (known && number < 0)
        bound = ent_infer_dim(infer, ENT_EXPR_ADD, dim, bound);
    else if (!known && ent_module_dim_least(module, bound) < 0)
        return ENT_DIM_UNKNOWN;
    bound = ent_infer_dim(infer, ENT_EXPR_MIN, bound, most);
    return ent_infer_dim(infer, ENT_EXPR_MAX, bound, least);
}

ent_dim ent_infer_slice_extent(const ent_infer *infer, ent_dim dim, ent_dim start, ent_dim end, int64_t step,
                               ent_dim *out_start) {
    bool forward = step > 0;
    start = clamp_bound(infer, start, dim, 0, forward ? 0 : -1);
    end = clamp_bound(infer, end, dim, forward ? 0 : -1, forward ? 0 : -1);
    *out_start = start;
    ent_dim span = forward ? ent_infer_dim(infer, ENT_EXPR_SUB, end, start)
                           : ent_infer_dim(infer, ENT_EXPR_SUB, start, end);
    span = ent_infer_dim(infer, ENT_EXPR_MAX, span, 0);
    return ent_infer_dim(infer, ENT_EXPR_CEILDIV, span, forward ? step : -step);
}

/* Axes and steps of a Slice, with their defaults; false when they depend on data. */
static bool slice_axes(const ent_infer *infer, uint32_t count, int64_t *axes, int64_t *steps) {
    uint32_t axis_count = count, step_count = count;
    for (uint32_t i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (ent_infer_input(infer, 3) && !ent_infer_numbers(infer, 3, axes, &axis_count)) return false;
    if (ent_infer_input(infer, 4) && !ent_infer_numbers(infer, 4, steps, &step_count)) return false;
    return axis_count == count && step_count == count;
}

/* Starts or ends: `count` of them, unknown where not known. */
static bool slice_bounds(const ent_infer *infer, uint32_t index, ent_dim *out, uint32_t *out_count) {
    const ent_value *value = ent_infer_input(infer, index);
    int64_t length;
    if (ent_infer_elements(infer, index, out, out_count)) return true;
    if (value->rank != 1 || !ent_module_dim_number(infer->module, value->dims[0], &length) ||
        length > ENT_MAX_RANK)
        return false;
    *out_count = (uint32_t)length;
    for (int64_t i = 0; i < length; i++) out[i] = ENT_DIM_UNKNOWN;
    return true;
}

ent_status ent_infer_Slice(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim starts[ENT_MAX_ELEMENTS], ends[ENT_MAX_ELEMENTS], dims[ENT_MAX_RANK], start;
    int64_t axes[ENT_MAX_ELEMENTS], steps[ENT_MAX_ELEMENTS];
    uint32_t count = 0, end_count = 0, mask;
    bool known = slice_bounds(infer, 1, starts, &count) && slice_bounds(infer, 2, ends, &end_count);
    if (!known || !slice_axes(infer, count, axes, steps)) {
        for (uint32_t i = 0; i < x->rank; i++) dims[i] = ENT_DIM_UNKNOWN;
        ent_infer_set(infer, 0, x->dtype, x->rank, dims);
        return NULL;
    }
    if (count != end_count)
        return ent_infer_fail(infer, "shape.slice", "%u starts and %u ends were given", count, end_count);
    ENT_TRY(ent_infer_axes(infer, axes, count, x->rank, &mask));
    memcpy(dims, x->dims, sizeof dims);
    for (uint32_t i = 0; i < count; i++) {
        ent_dim *dim = &dims[axes[i] < 0 ? axes[i] + x->rank : axes[i]];
        if (steps[i] == 0) return ent_infer_fail(infer, "shape.slice", "a step is 0");
        *dim = ent_infer_slice_extent(infer, *dim, starts[i], ends[i], steps[i], &start);
    }
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

/* ---- gathers ---- */

ent_status ent_infer_Gather(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *indices = ent_infer_input(infer, 1);
    ent_dim dims[ENT_MAX_RANK];
    uint32_t axis, rank = 0;
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", 0), x->rank, &axis));
    ENT_TRY(ent_infer_check_rank(infer, (uint64_t)x->rank - 1 + indices->rank));
    for (uint32_t i = 0; i < axis; i++) dims[rank++] = x->dims[i];
    for (uint32_t i = 0; i < indices->rank; i++) dims[rank++] = indices->dims[i];
    for (uint32_t i = axis + 1; i < x->rank; i++) dims[rank++] = x->dims[i];
    ent_infer_set(infer, 0, x->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_GatherElements(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *indices = ent_infer_input(infer, 1);
    uint32_t axis;
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", 0), x->rank, &axis));
    if (x->rank != indices->rank)
        return ent_infer_fail(infer, "shape.gather", "input %s and indices %s differ in rank",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    ent_infer_set(infer, 0, x->dtype, indices->rank, indices->dims);
    return NULL;
}

ent_status ent_infer_GatherND(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *indices = ent_infer_input(infer, 1);
    int64_t batch = ent_attrs_int(infer->attrs, "batch_dims", 0), depth;
    ent_dim dims[ENT_MAX_RANK];
    if (indices->rank == 0 || x->rank == 0 || batch < 0 || batch >= indices->rank || batch >= x->rank)
        return ent_infer_fail(infer, "shape.gather", "input %s, indices %s and batch_dims %lld do not fit",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1), (long long)batch);
    infer->out[0].dtype = x->dtype;
    if (!ent_module_dim_number(infer->module, indices->dims[indices->rank - 1], &depth)) return NULL;
    if (depth < 1 || depth > x->rank - batch)
        return ent_infer_fail(infer, "shape.gather", "the last axis of indices %s is too long for input %s",
                              ent_infer_text(infer, 1), ent_infer_text(infer, 0));
    uint32_t from = (uint32_t)(batch + depth), rank = indices->rank - 1;
    ENT_TRY(ent_infer_check_rank(infer, (uint64_t)rank + x->rank - from));
    memcpy(dims, indices->dims, rank * sizeof *dims);
    for (uint32_t i = from; i < x->rank; i++) dims[rank++] = x->dims[i];
    ent_infer_set(infer, 0, x->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_ScatterND(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *indices = ent_infer_input(infer, 1),
                    *updates = ent_infer_input(infer, 2);
    int64_t depth;
    if (x->rank == 0 || indices->rank == 0)
        return ent_infer_fail(infer, "shape.scatter", "input %s and indices %s need a rank of at least 1",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 1));
    ent_infer_copy(infer, 0, 0);
    if (!ent_module_dim_number(infer->module, indices->dims[indices->rank - 1], &depth)) return NULL;
    bool fits =
        depth >= 0 && depth <= x->rank && updates->rank == indices->rank - 1 + x->rank - (uint32_t)depth;
    for (uint32_t i = 0; fits && i < updates->rank; i++) {
        bool outer = i + 1 < indices->rank;
        ent_dim wanted = outer ? indices->dims[i] : x->dims[(uint32_t)depth + i + 1 - indices->rank];
        fits = !ent_infer_differ(infer, updates->dims[i], wanted);
    }
    return fits
               ? NULL
               : ent_infer_fail(infer, "shape.scatter", "input %s, indices %s and updates %s do not fit",
                                ent_infer_text(infer, 0), ent_infer_text(infer, 1), ent_infer_text(infer, 2));
}
