/* Transpose, Concat, Split, Slice, Expand, Tile, DepthToSpace, SpaceToDepth: each is one strided copy, or one
 * per operand. */
#include "core/ops/internal.h"

static int64_t element_bytes(const ent_tensor *tensor) {
    return ent_dtype_bits((ent_dtype)tensor->dtype) / 8;
}

static ent_code permutation(ent_ops_call *call, uint32_t *out) {
    const ent_tensor *x = ent_ops_input(call, 0);
    const ent_attr *perm = ent_attrs_find(call->attrs, "perm");
    uint32_t seen = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        out[i] = x->rank - 1 - i;
        if (!perm) continue;
        if (perm->type != ENT_ATTR_INTS || perm->count != x->rank || perm->ints[i] < 0 ||
            perm->ints[i] >= x->rank || (seen >> perm->ints[i] & 1))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "perm is no permutation of %u axes",
                                  x->rank);
        seen |= 1u << perm->ints[i];
        out[i] = (uint32_t)perm->ints[i];
    }
    return ENT_OK;
}

ent_code ent_ops_dims_transpose(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t perm[ENT_MAX_RANK];
    ent_code code = permutation(call, perm);
    if (code != ENT_OK) return code;
    outputs[0].dtype = x->dtype;
    outputs[0].rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++) outputs[0].dims[i] = x->dims[perm[i]];
    return ENT_OK;
}

ent_code ent_ops_transpose(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t perm[ENT_MAX_RANK];
    int64_t from[ENT_MAX_RANK], to[ENT_MAX_RANK];
    ent_code code = permutation(call, perm);
    if (code != ENT_OK) return code;
    ent_ops_copy_axis axes[ENT_OPS_COPY_AXES];
    ent_ops_strides(x, from);
    ent_ops_strides(y, to);
    for (uint32_t i = 0; i < x->rank; i++) axes[i] = (ent_ops_copy_axis){y->dims[i], from[perm[i]], to[i]};
    ent_ops_copy(x->data, y->data, element_bytes(x), axes, x->rank);
    return ENT_OK;
}

ent_code ent_ops_dims_concat(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", INT64_MIN), x->rank, &axis);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(x, &outputs[0]);
    for (uint32_t i = 1; i < call->input_count; i++) {
        const ent_tensor *next = call->inputs[i];
        bool fits = next->rank == x->rank && next->dtype == x->dtype;
        for (uint32_t j = 0; fits && j < x->rank; j++) fits = j == axis || next->dims[j] == x->dims[j];
        if (!fits)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "input %u differs from input 0 beyond axis %u", i, axis);
        outputs[0].dims[axis] += next->dims[axis];
    }
    return ENT_OK;
}

/* Copies a part that is whole but for one axis, where it covers [start, start + part's extent). */
static void copy_part(const ent_tensor *whole, const ent_tensor *part, uint32_t axis, int64_t start,
                      bool into_whole) {
    int64_t inner = ent_ops_product(whole->dims, axis + 1, whole->rank), size = element_bytes(whole);
    int64_t whole_row = whole->dims[axis] * inner, part_row = part->dims[axis] * inner;
    ent_ops_copy_axis axes[2] = {{ent_ops_product(whole->dims, 0, axis), into_whole ? part_row : whole_row,
                                  into_whole ? whole_row : part_row},
                                 {part_row, 1, 1}};
    if (part_row == 0 || axes[0].extent == 0) return;
    uint8_t *place = (uint8_t *)whole->data + start * inner * size;
    if (into_whole)
        ent_ops_copy(part->data, place, size, axes, 2);
    else
        ent_ops_copy(place, part->data, size, axes, 2);
}

ent_code ent_ops_concat(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", INT64_MIN), y->rank, &axis);
    int64_t start = 0;
    for (uint32_t i = 0; i < call->input_count && code == ENT_OK; i++) {
        copy_part(y, call->inputs[i], axis, start, true);
        start += call->inputs[i]->dims[axis];
    }
    return code;
}

ent_code ent_ops_dims_split(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *sizes = ent_ops_input(call, 1);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    if (code != ENT_OK) return code;
    int64_t extent = x->dims[axis], parts = ent_attrs_int(call->attrs, "num_outputs", call->output_count),
            total = 0;
    if (parts < 1 || parts < (int64_t)call->output_count)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "num_outputs is %lld", (long long)parts);
    if (sizes && (ent_ops_element_count(sizes) != (int64_t)call->output_count || !sizes->data))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the split must have known sizes for %u outputs", call->output_count);
    for (uint32_t i = 0; i < call->output_count; i++) {
        int64_t each = extent / parts + (extent % parts != 0), rest = extent - total;
        int64_t part = sizes ? ent_ops_load_i64(sizes->data, sizes->dtype, i) : each < rest ? each : rest;
        if (part < 0 || part > rest)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the split sizes do not fit extent %lld",
                                  (long long)extent);
        ent_ops_dims_copy(x, &outputs[i]);
        outputs[i].dims[axis] = part;
        total += part;
    }
    if (sizes && total != extent)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the split sizes sum to %lld, not %lld",
                              (long long)total, (long long)extent);
    return ENT_OK;
}

ent_code ent_ops_split(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    uint32_t axis = 0;
    ent_tensor *dims = ent_ops_scratch(call, call->output_count, sizeof *dims);
    if (!dims) return ENT_CODE_OUT_OF_MEMORY;
    ent_code code = ent_ops_dims_split(call, dims);
    if (code == ENT_OK) code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, &axis);
    int64_t start = 0;
    for (uint32_t i = 0; i < call->output_count && code == ENT_OK; i++) {
        if (call->outputs[i]) copy_part(x, call->outputs[i], axis, start, false);
        start += dims[i].dims[axis];
    }
    return code;
}

typedef struct slicing {
    int64_t start[ENT_MAX_RANK], step[ENT_MAX_RANK], count[ENT_MAX_RANK];
} slicing;

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
    return value < low ? low : value > high ? high : value;
}

static void slice_axis(slicing *s, uint32_t axis, int64_t extent, int64_t start, int64_t end, int64_t step) {
    if (start < 0) start += extent;
    if (end < 0) end += extent;
    if (step < -INT64_MAX) step = -INT64_MAX;
    start = step > 0 ? clamp(start, 0, extent) : clamp(start, -1, extent - 1);
    end = step > 0 ? clamp(end, 0, extent) : clamp(end, -1, extent - 1);
    int64_t span = step > 0 ? end - start : start - end, pace = step > 0 ? step : -step;
    s->start[axis] = start;
    s->step[axis] = step;
    s->count[axis] = span > 0 ? (span - 1) / pace + 1 : 0;
}

static ent_code slice_resolve(ent_ops_call *call, slicing *out) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t lists[4][ENT_MAX_RANK]; /* starts, ends, axes, steps */
    uint32_t counts[4], seen = 0;
    for (uint32_t i = 0; i < 4; i++) {
        ent_code code = ent_ops_input_list(call, i + 1, lists[i], ENT_MAX_RANK, &counts[i]);
        if (code != ENT_OK) return code;
        if (i > 0 && counts[i] != counts[0] && ent_ops_input(call, i + 1))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "starts, ends, axes and steps differ in length");
    }
    for (uint32_t i = 0; i < x->rank; i++) slice_axis(out, i, x->dims[i], 0, x->dims[i], 1);
    for (uint32_t i = 0; i < counts[0]; i++) {
        uint32_t axis;
        int64_t step = ent_ops_input(call, 4) ? lists[3][i] : 1;
        ent_code code = ent_ops_axis(call, ent_ops_input(call, 3) ? lists[2][i] : (int64_t)i, x->rank, &axis);
        if (code != ENT_OK) return code;
        if (step == 0 || (seen >> axis & 1))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "axis %u has step 0 or is named twice",
                                  axis);
        seen |= 1u << axis;
        slice_axis(out, axis, x->dims[axis], lists[0][i], lists[1][i], step);
    }
    return ENT_OK;
}

ent_code ent_ops_dims_slice(ent_ops_call *call, ent_tensor *outputs) {
    slicing s;
    ent_code code = slice_resolve(call, &s);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    for (uint32_t i = 0; i < outputs[0].rank; i++) outputs[0].dims[i] = s.count[i];
    return ENT_OK;
}

ent_code ent_ops_slice(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    slicing s;
    if (!y || ent_ops_element_count(y) == 0) return ENT_OK;
    ent_code code = slice_resolve(call, &s);
    if (code != ENT_OK) return code;
    int64_t from[ENT_MAX_RANK], to[ENT_MAX_RANK], start = 0;
    ent_ops_copy_axis axes[ENT_OPS_COPY_AXES];
    ent_ops_strides(x, from);
    ent_ops_strides(y, to);
    for (uint32_t i = 0; i < x->rank; i++) {
        start += s.start[i] * from[i];
        axes[i] = (ent_ops_copy_axis){s.count[i], s.count[i] > 1 ? s.step[i] * from[i] : 0, to[i]};
    }
    ent_ops_copy((const uint8_t *)x->data + start * element_bytes(x), y->data, element_bytes(x), axes,
                 x->rank);
    return ENT_OK;
}

ent_code ent_ops_dims_expand(ent_ops_call *call, ent_tensor *outputs) {
    int64_t shape[ENT_MAX_RANK];
    uint32_t rank;
    ent_code code = ent_ops_input_list(call, 1, shape, ENT_MAX_RANK, &rank);
    if (code != ENT_OK) return code;
    for (uint32_t i = 0; i < rank; i++)
        if (shape[i] < 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "shape[%u] is %lld", i,
                                  (long long)shape[i]);
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    return ent_ops_dims_merge(call, shape, rank, &outputs[0]);
}

ent_code ent_ops_expand(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t from[ENT_MAX_RANK], to[ENT_MAX_RANK];
    ent_ops_copy_axis axes[ENT_OPS_COPY_AXES];
    ent_ops_strides(x, from);
    ent_ops_strides(y, to);
    for (uint32_t i = 0; i < y->rank; i++) {
        uint32_t added = y->rank - x->rank;
        bool repeated = i < added || x->dims[i - added] == 1;
        axes[i] = (ent_ops_copy_axis){y->dims[i], repeated ? 0 : from[i - added], to[i]};
    }
    ent_ops_copy(x->data, y->data, element_bytes(x), axes, y->rank);
    return ENT_OK;
}

ent_code ent_ops_dims_tile(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t repeats[ENT_MAX_RANK];
    uint32_t count;
    ent_code code = ent_ops_input_list(call, 1, repeats, ENT_MAX_RANK, &count);
    if (code != ENT_OK) return code;
    if (count != x->rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%u repeats for rank %u", count, x->rank);
    ent_ops_dims_copy(x, &outputs[0]);
    for (uint32_t i = 0; i < count; i++) {
        if (repeats[i] < 0 || (x->dims[i] > 0 && repeats[i] > INT64_MAX / x->dims[i]))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "repeats[%u] is %lld", i,
                                  (long long)repeats[i]);
        outputs[0].dims[i] *= repeats[i];
    }
    return ENT_OK;
}

ent_code ent_ops_tile(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y || ent_ops_element_count(y) == 0) return ENT_OK;
    int64_t from[ENT_MAX_RANK], to[ENT_MAX_RANK];
    ent_ops_copy_axis axes[ENT_OPS_COPY_AXES];
    ent_ops_strides(x, from);
    ent_ops_strides(y, to);
    for (uint32_t i = 0; i < x->rank; i++) {
        axes[2 * i] = (ent_ops_copy_axis){y->dims[i] / x->dims[i], 0, to[i] * x->dims[i]};
        axes[2 * i + 1] = (ent_ops_copy_axis){x->dims[i], from[i], to[i]};
    }
    ent_ops_copy(x->data, y->data, element_bytes(x), axes, 2 * x->rank);
    return ENT_OK;
}

ent_code ent_ops_dims_depth_space(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t block = ent_attrs_int(call->attrs, "blocksize", 0);
    bool to_space = call->op == ENT_OP_DepthToSpace;
    if (x->rank != 4 || block < 1 || block > INT32_MAX)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "needs rank 4 and a block size of at least 1");
    ent_ops_dims_copy(x, &outputs[0]);
    if (to_space ? x->dims[1] % (block * block) != 0 : x->dims[2] % block != 0 || x->dims[3] % block != 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the input does not divide into blocks of %lld", (long long)block);
    outputs[0].dims[1] = to_space ? x->dims[1] / (block * block) : x->dims[1] * block * block;
    for (uint32_t i = 2; i < 4; i++) outputs[0].dims[i] = to_space ? x->dims[i] * block : x->dims[i] / block;
    return ENT_OK;
}

ent_code ent_ops_depth_space(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t block = ent_attrs_int(call->attrs, "blocksize", 1);
    bool to_space = call->op == ENT_OP_DepthToSpace;
    bool depth_first = ent_attrs_string_is(call->attrs, "mode", "DCR", "DCR");
    const ent_tensor *deep = to_space ? x : y, *wide = to_space ? y : x;
    int64_t d[ENT_MAX_RANK], w[ENT_MAX_RANK], channels = wide->dims[1];
    ent_ops_strides(deep, d);
    ent_ops_strides(wide, w);
    /* Axes n, channel, h, row in block, w, column in block; strides in the deep and the wide tensor. */
    int64_t extent[6] = {deep->dims[0], channels, deep->dims[2], block, deep->dims[3], block};
    int64_t deep_stride[6] = {d[0], depth_first ? d[1] : d[1] * block * block,
                              d[2], depth_first ? d[1] * channels * block : d[1] * block,
                              d[3], depth_first ? d[1] * channels : d[1]};
    int64_t wide_stride[6] = {w[0], w[1], w[2] * block, w[2], w[3] * block, w[3]};
    ent_ops_copy_axis axes[6];
    for (int i = 0; i < 6; i++)
        axes[i] = to_space ? (ent_ops_copy_axis){extent[i], deep_stride[i], wide_stride[i]}
                           : (ent_ops_copy_axis){extent[i], wide_stride[i], deep_stride[i]};
    ent_ops_copy(x->data, y->data, element_bytes(x), axes, 6);
    return ENT_OK;
}
