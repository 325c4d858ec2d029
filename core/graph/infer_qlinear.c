/* Shape rules: quantized operators of com.microsoft. */
#include "core/graph/infer.h"

#include <string.h>

static ent_status check_scale(const ent_infer *infer, uint32_t index) {
    const ent_value *scale = ent_infer_input(infer, index);
    if (!scale) return ent_infer_fail(infer, "node.arity", "the scale (input %u) is missing", index);
    if (scale->rank == 0 || (scale->rank == 1 && !ent_infer_differ(infer, scale->dims[0], 1))) return NULL;
    return ent_infer_fail(infer, "shape.quantize", "the scale (input %u) has shape %s, not one element",
                          index, ent_infer_text(infer, index));
}

/* One axis is normalised or pooled over at a time, channels before the window. */
static ent_status refuse(const ent_infer *infer, const char *text) {
    return ent_status_make(infer->module->arena, ENT_ERROR_UNSUPPORTED, "attribute.value",
                           ent_node_place(infer->module, infer->node_id), "%s", text);
}

static ent_status infer_binary(ent_infer *infer) {
    const ent_value *a = ent_infer_input(infer, 0), *b = ent_infer_input(infer, 3);
    ent_dim dims[ENT_MAX_RANK];
    uint32_t rank = a->rank;
    ENT_TRY(check_scale(infer, 1));
    ENT_TRY(check_scale(infer, 4));
    ENT_TRY(check_scale(infer, 6));
    if (!b) return ent_infer_fail(infer, "node.arity", "B is missing");
    if (a->dtype && b->dtype && a->dtype != b->dtype)
        return ent_infer_fail(infer, "dtype.same", "A is %s, B is %s", ent_dtype_name((ent_dtype)a->dtype),
                              ent_dtype_name((ent_dtype)b->dtype));
    memcpy(dims, a->dims, sizeof dims);
    if (!ent_infer_broadcast(infer, &rank, dims, b->rank, b->dims))
        return ent_infer_fail(infer, "shape.broadcast", "shapes %s and %s cannot be broadcast together",
                              ent_infer_text(infer, 0), ent_infer_text(infer, 3));
    ent_infer_set(infer, 0, a->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_QLinearAdd(ent_infer *infer) {
    return infer_binary(infer);
}

ent_status ent_infer_QLinearMul(ent_infer *infer) {
    return infer_binary(infer);
}

static ent_status infer_unary(ent_infer *infer) {
    ENT_TRY(check_scale(infer, 1));
    ENT_TRY(check_scale(infer, 3));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_QLinearSigmoid(ent_infer *infer) {
    return infer_unary(infer);
}

ent_status ent_infer_QLinearLeakyRelu(ent_infer *infer) {
    return infer_unary(infer);
}

ent_status ent_infer_QLinearSoftmax(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    uint32_t axis;
    ENT_TRY(ent_infer_axis(infer, ent_attrs_int(infer->attrs, "axis", -1), x->rank, &axis));
    if (ent_attrs_int(infer->attrs, "opset", 13) < 13 && axis + 1 != x->rank)
        return refuse(infer, "the softmax over several axes of an opset below 13 is not supported");
    return infer_unary(infer);
}

ent_status ent_infer_QLinearAveragePool(ent_infer *infer) {
    ENT_TRY(check_scale(infer, 1));
    ENT_TRY(check_scale(infer, 3));
    if (ent_attrs_int(infer->attrs, "channels_last", 0) != 0)
        return refuse(infer, "channels_last is not supported");
    return ent_infer_AveragePool(infer);
}

ent_status ent_infer_QLinearGlobalAveragePool(ent_infer *infer) {
    ENT_TRY(check_scale(infer, 1));
    ENT_TRY(check_scale(infer, 3));
    if (ent_attrs_int(infer->attrs, "channels_last", 0) != 0)
        return refuse(infer, "channels_last is not supported");
    return ent_infer_GlobalAveragePool(infer);
}

/* Scale and zero point of the result, then value, scale and zero point of each operand. */
ent_status ent_infer_QLinearConcat(ent_infer *infer) {
    uint32_t count = infer->node->input_count, axis;
    const ent_value *first = ent_infer_input(infer, 2);
    const ent_attr *attr = ent_attrs_find(infer->attrs, "axis");
    ent_dim dims[ENT_MAX_RANK];
    if (!attr || count % 3 != 2)
        return ent_infer_fail(infer, "node.arity", "QLinearConcat needs an axis and triples");
    ENT_TRY(check_scale(infer, 0));
    ENT_TRY(ent_infer_axis(infer, attr->i, first->rank, &axis));
    memcpy(dims, first->dims, sizeof dims);
    for (uint32_t i = 2; i < count; i += 3) {
        const ent_value *x = ent_infer_input(infer, i);
        bool fits = x && x->rank == first->rank && x->dtype == first->dtype &&
                    ent_infer_input(infer, i + 1) && ent_infer_input(infer, i + 2);
        for (uint32_t k = 0; fits && k < first->rank; k++)
            fits = k == axis || !ent_infer_differ(infer, dims[k], x->dims[k]);
        if (!fits)
            return ent_infer_fail(infer, "shape.concat", "input %u %s does not fit along axis %u", i,
                                  ent_infer_text(infer, i), axis);
        ENT_TRY(check_scale(infer, i + 1));
        if (i > 2) dims[axis] = ent_infer_dim(infer, ENT_EXPR_ADD, dims[axis], x->dims[axis]);
    }
    ent_infer_set(infer, 0, first->dtype, first->rank, dims);
    return NULL;
}

/* Scales and zero points of A for all, of B for all or one a column. */
static ent_status check_columns(const ent_infer *infer, uint32_t index) {
    const ent_value *b = ent_infer_input(infer, 1), *shared = ent_infer_input(infer, index);
    if (!shared || shared->rank == 0) return NULL;
    if (shared->rank == 1 &&
        (shared->dims[0] == 1 || !ent_infer_differ(infer, shared->dims[0], b->dims[b->rank - 1])))
        return NULL;
    return ent_infer_fail(infer, "shape.quantize", "input %u %s does not fit the columns of B %s", index,
                          ent_infer_text(infer, index), ent_infer_text(infer, 1));
}

ent_status ent_infer_MatMulIntegerToFloat(ent_infer *infer) {
    ENT_TRY(ent_infer_matmul(infer, 1, ent_infer_input(infer, 2)->dtype));
    ENT_TRY(check_scale(infer, 2));
    ENT_TRY(check_scale(infer, 4));
    ENT_TRY(check_columns(infer, 3));
    ENT_TRY(check_columns(infer, 5));
    return check_columns(infer, 6);
}

ent_status ent_infer_DynamicQuantizeMatMul(ent_infer *infer) {
    ENT_TRY(ent_infer_matmul(infer, 1, ENT_DTYPE_F32));
    ENT_TRY(check_columns(infer, 2));
    ENT_TRY(check_columns(infer, 3));
    return check_columns(infer, 4);
}

/* A ... x K by the N rows of B, each in blocks of block_size numbers of `bits` bits. */
ent_status ent_infer_MatMulNBits(ent_infer *infer) {
    const ent_value *a = ent_infer_input(infer, 0), *b = ent_infer_input(infer, 1);
    int64_t k = ent_attrs_int(infer->attrs, "K", 0), n = ent_attrs_int(infer->attrs, "N", 0),
            bits = ent_attrs_int(infer->attrs, "bits", 4),
            block = ent_attrs_int(infer->attrs, "block_size", 0);
    ent_dim dims[ENT_MAX_RANK];
    if (k <= 0 || n <= 0 || block < 16 || block > 1 << 20 || (block & (block - 1)) != 0 || k > INT32_MAX ||
        n > INT32_MAX)
        return ent_infer_fail(infer, "attribute.value", "K, N or block_size is out of range");
    if (bits != 2 && bits != 4 && bits != 8) return refuse(infer, "bits is none of 2, 4 and 8");
    if (ent_infer_input(infer, 4)) return refuse(infer, "g_idx is not supported");
    bool fits = a->rank >= 1 && b->rank == 3 && !ent_infer_differ(infer, a->dims[a->rank - 1], k) &&
                !ent_infer_differ(infer, b->dims[0], n) &&
                !ent_infer_differ(infer, b->dims[1], (k + block - 1) / block) &&
                !ent_infer_differ(infer, b->dims[2], block * bits / 8);
    if (!fits)
        return ent_infer_fail(
            infer, "shape.contract", "A %s and B %s do not fit K %lld, N %lld and blocks of %lld",
            ent_infer_text(infer, 0), ent_infer_text(infer, 1), (long long)k, (long long)n, (long long)block);
    memcpy(dims, a->dims, sizeof dims);
    dims[a->rank - 1] = n;
    ent_infer_set(infer, 0, a->dtype, a->rank, dims);
    return NULL;
}
