/* Values of shape arithmetic: which elements of small whole-number results are known, as dims. It covers what
 * exporters do with the result of Shape; anything else leaves the result unknown, which is always right.
 * Float values take part as long as they hold whole numbers (sizes times a scale). */
#include "core/graph/infer.h"

#include <string.h>

/* An input with known elements and a shape of numbers. */
typedef struct operand {
    uint32_t rank;
    int64_t dims[ENT_MAX_RANK];
    uint32_t count;
    ent_dim items[ENT_MAX_ELEMENTS];
} operand;

/* False unless rank and all dims are numbers with at most ENT_MAX_ELEMENTS elements. */
static bool small_shape(const ent_module *module, uint32_t rank, const ent_dim *dims, int64_t *out_dims,
                        uint32_t *out_count) {
    int64_t count = 1;
    if (rank == ENT_RANK_UNKNOWN) return false;
    for (uint32_t i = 0; i < rank; i++)
        if (!ent_module_dim_number(module, dims[i], &out_dims[i]) || !ent_mul_i64(count, out_dims[i], &count))
            return false;
    *out_count = (uint32_t)count;
    return count >= 0 && count <= ENT_MAX_ELEMENTS;
}

static bool read_operand(const ent_infer *infer, uint32_t index, operand *out) {
    const ent_value *value = ent_infer_input(infer, index);
    uint32_t count;
    if (!value || !ent_infer_elements(infer, index, out->items, &out->count)) return false;
    out->rank = value->rank;
    return small_shape(infer->module, value->rank, value->dims, out->dims, &count) && count == out->count;
}

/* Flat index into a broadcast operand of the element that result element `at` reads. */
static uint32_t broadcast_index(const operand *in, uint32_t at, uint32_t rank, const int64_t *dims) {
    uint32_t index = 0, stride = 1;
    for (uint32_t i = 0; i < in->rank && i < rank; i++) {
        uint32_t axis = in->rank - 1 - i, coordinate = (uint32_t)(at % dims[rank - 1 - i]);
        at /= (uint32_t)dims[rank - 1 - i];
        if (in->dims[axis] != 1) index += coordinate * stride;
        stride *= (uint32_t)in->dims[axis];
    }
    return index;
}

/* ---- arithmetic on elements ---- */

static ent_dim divide(const ent_infer *infer, ent_dim a, ent_dim b, bool is_float) {
    ent_module *module = infer->module;
    int64_t x, y;
    ent_dim exact;
    if (b == 0) return ENT_ELEMENT_UNKNOWN;
    if (ent_module_dim_divide(module, a, b, &exact)) return exact;
    if (is_float) return ENT_ELEMENT_UNKNOWN;
    if (ent_module_dim_number(module, a, &x) && ent_module_dim_number(module, b, &y))
        return y == -1 ? ENT_ELEMENT_UNKNOWN : ent_module_dim_constant(module, x / y);
    if (ent_module_dim_least(module, a) < 0 || ent_module_dim_least(module, b) <= 0)
        return ENT_ELEMENT_UNKNOWN;
    return ent_infer_dim(infer, ENT_EXPR_FLOORDIV, a, b);
}

static ent_dim modulo(const ent_infer *infer, ent_dim a, ent_dim b) {
    if (ent_module_dim_least(infer->module, a) < 0 || ent_module_dim_least(infer->module, b) <= 0)
        return ENT_ELEMENT_UNKNOWN;
    return ent_infer_dim(infer, ENT_EXPR_MOD, a, b);
}

/* A comparison holds for all sizes, for none, or is unknown. */
static ent_dim compare(const ent_infer *infer, uint32_t op, ent_dim a, ent_dim b) {
    ent_dim difference = ent_infer_dim(infer, ENT_EXPR_SUB, a, b);
    int64_t least = ent_module_dim_least(infer->module, difference),
            most = ent_module_dim_most(infer->module, difference);
    switch (op) {
    case ENT_OP_Equal:
        return least == 0 && most == 0 ? 1 : least > 0 || most < 0 ? 0 : ENT_ELEMENT_UNKNOWN;
    case ENT_OP_Less:
        return most < 0 ? 1 : least >= 0 ? 0 : ENT_ELEMENT_UNKNOWN;
    case ENT_OP_LessOrEqual:
        return most <= 0 ? 1 : least > 0 ? 0 : ENT_ELEMENT_UNKNOWN;
    case ENT_OP_Greater:
        return least > 0 ? 1 : most <= 0 ? 0 : ENT_ELEMENT_UNKNOWN;
    default:
        return least >= 0 ? 1 : most < 0 ? 0 : ENT_ELEMENT_UNKNOWN;
    }
}

static ent_dim binary(const ent_infer *infer, uint32_t op, ent_dim a, ent_dim b) {
    if (a == ENT_ELEMENT_UNKNOWN || b == ENT_ELEMENT_UNKNOWN) return ENT_ELEMENT_UNKNOWN;
    switch (op) {
    case ENT_OP_Sum:
    case ENT_OP_ReduceSum:
    case ENT_OP_Add:
        return ent_infer_dim(infer, ENT_EXPR_ADD, a, b);
    case ENT_OP_Sub:
        return ent_infer_dim(infer, ENT_EXPR_SUB, a, b);
    case ENT_OP_ReduceProd:
    case ENT_OP_Mul:
        return ent_infer_dim(infer, ENT_EXPR_MUL, a, b);
    case ENT_OP_Div:
        return divide(infer, a, b, ent_dtype_is_float(infer->out[0].dtype));
    case ENT_OP_Mod:
        return modulo(infer, a, b);
    case ENT_OP_ReduceMax:
    case ENT_OP_Max:
        return ent_infer_dim(infer, ENT_EXPR_MAX, a, b);
    case ENT_OP_ReduceMin:
    case ENT_OP_Min:
        return ent_infer_dim(infer, ENT_EXPR_MIN, a, b);
    case ENT_OP_And:
        return a > 0 && b > 0;
    case ENT_OP_Or:
        return a > 0 || b > 0;
    default:
        return compare(infer, op, a, b);
    }
}

static ent_dim unary(const ent_infer *infer, uint32_t op, ent_dim a) {
    ent_module *module = infer->module;
    int64_t number;
    bool known = ent_module_dim_number(module, a, &number);
    if (a == ENT_ELEMENT_UNKNOWN) return a;
    switch (op) {
    case ENT_OP_Neg:
        return ent_infer_dim(infer, ENT_EXPR_SUB, 0, a);
    case ENT_OP_Not:
        return known ? number == 0 : ENT_ELEMENT_UNKNOWN;
    case ENT_OP_Cast:
    case ENT_OP_CastLike:
        /* Whole numbers stay what they are in these types; f32 holds them up to 2^24, above any real size. */
        switch (infer->out[0].dtype) {
        case ENT_DTYPE_BOOL:
            return known ? number != 0 : ENT_ELEMENT_UNKNOWN;
        case ENT_DTYPE_I32:
            return known && number != (int32_t)number ? ENT_ELEMENT_UNKNOWN : a;
        case ENT_DTYPE_F32:
            return known && (number > 1 << 24 || number < -(1 << 24)) ? ENT_ELEMENT_UNKNOWN : a;
        case ENT_DTYPE_I64:
        case ENT_DTYPE_F64:
            return a;
        default:
            return ENT_ELEMENT_UNKNOWN;
        }
    default:
        return a;
    }
}

/* ---- operators ---- */

static bool map_unary(const ent_infer *infer, uint32_t count, ent_dim *out) {
    operand x;
    if (!read_operand(infer, 0, &x) || x.count != count) return false;
    for (uint32_t i = 0; i < count; i++) out[i] = unary(infer, infer->node->op, x.items[i]);
    return true;
}

static bool map_binary(const ent_infer *infer, uint32_t count, uint32_t rank, const int64_t *dims,
                       ent_dim *out) {
    operand a, b;
    if (infer->node->input_count != 2 || !read_operand(infer, 0, &a) || !read_operand(infer, 1, &b))
        return false;
    for (uint32_t i = 0; i < count; i++)
        out[i] = binary(infer, infer->node->op, a.items[broadcast_index(&a, i, rank, dims)],
                        b.items[broadcast_index(&b, i, rank, dims)]);
    return true;
}

static bool map_where(const ent_infer *infer, uint32_t count, uint32_t rank, const int64_t *dims,
                      ent_dim *out) {
    operand condition, a, b;
    if (!read_operand(infer, 0, &condition) || !read_operand(infer, 1, &a) || !read_operand(infer, 2, &b))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        ent_dim chosen = condition.items[broadcast_index(&condition, i, rank, dims)];
        ent_dim x = a.items[broadcast_index(&a, i, rank, dims)],
                y = b.items[broadcast_index(&b, i, rank, dims)];
        if (chosen == ENT_ELEMENT_UNKNOWN)
            out[i] = x == y ? x : ENT_ELEMENT_UNKNOWN;
        else
            out[i] = chosen ? x : y;
    }
    return true;
}

static bool map_expand(const ent_infer *infer, uint32_t count, uint32_t rank, const int64_t *dims,
                       ent_dim *out) {
    operand x;
    if (!read_operand(infer, 0, &x)) return false;
    for (uint32_t i = 0; i < count; i++) out[i] = x.items[broadcast_index(&x, i, rank, dims)];
    return true;
}

/* All axes of the input at once. */
static bool map_reduce(const ent_infer *infer, uint32_t count, ent_dim *out) {
    operand x;
    if (count != 1 || !read_operand(infer, 0, &x) || x.count == 0) return false;
    out[0] = x.items[0];
    for (uint32_t i = 1; i < x.count; i++) out[0] = binary(infer, infer->node->op, out[0], x.items[i]);
    return true;
}

static bool map_gather(const ent_infer *infer, uint32_t count, ent_dim *out) {
    operand x, indices;
    if (!read_operand(infer, 0, &x) || !read_operand(infer, 1, &indices) || x.rank != 1 ||
        indices.count != count)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t at;
        out[i] = ENT_ELEMENT_UNKNOWN;
        if (!ent_module_dim_number(infer->module, indices.items[i], &at)) continue;
        if (at < 0) at += x.count;
        if (at >= 0 && at < x.count) out[i] = x.items[at];
    }
    return true;
}

static bool map_concat(const ent_infer *infer, uint32_t count, ent_dim *out) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < infer->node->input_count; i++) {
        const ent_value *value = ent_infer_input(infer, i);
        operand x;
        int64_t length;
        if (!value || value->rank != 1 || !ent_module_dim_number(infer->module, value->dims[0], &length))
            return false;
        bool known = read_operand(infer, i, &x);
        for (int64_t k = 0; k < length && at < count; k++)
            out[at++] = known ? x.items[k] : ENT_ELEMENT_UNKNOWN;
    }
    return at == count;
}

static bool map_slice(const ent_infer *infer, uint32_t count, ent_dim *out) {
    operand x;
    ent_dim starts[ENT_MAX_ELEMENTS], ends[ENT_MAX_ELEMENTS];
    int64_t steps[ENT_MAX_ELEMENTS] = {1}, start;
    uint32_t n;
    if (!read_operand(infer, 0, &x) || x.rank != 1) return false;
    if (!ent_infer_elements(infer, 1, starts, &n) || n != 1 || !ent_infer_elements(infer, 2, ends, &n) ||
        n != 1)
        return false;
    if (ent_infer_input(infer, 4) && (!ent_infer_numbers(infer, 4, steps, &n) || n != 1 || steps[0] == 0))
        return false;
    ent_dim first;
    ent_infer_slice_extent(infer, x.count, starts[0], ends[0], steps[0], &first);
    if (!ent_module_dim_number(infer->module, first, &start)) return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = start + (int64_t)i * steps[0];
        out[i] = at >= 0 && at < x.count ? x.items[at] : ENT_ELEMENT_UNKNOWN;
    }
    return true;
}

static bool map_fill(const ent_infer *infer, uint32_t count, ent_dim *out) {
    const ent_attr *attr = ent_attrs_find(infer->attrs, "value");
    int64_t number = 0;
    if (attr && attr->type == ENT_ATTR_TENSOR) {
        if (!ent_dtype_is_integer(attr->tensor->dtype) ||
            attr->tensor->size_bytes < ent_dtype_bits(attr->tensor->dtype) / 8)
            return false;
        number = ent_element_get_i64(attr->tensor->data, attr->tensor->dtype, 0);
    }
    if (number == INT64_MIN) return false;
    for (uint32_t i = 0; i < count; i++) out[i] = ent_module_dim_constant(infer->module, number);
    return true;
}

static bool map_range(const ent_infer *infer, uint32_t count, ent_dim *out) {
    operand start, delta;
    if (!read_operand(infer, 0, &start) || !read_operand(infer, 2, &delta)) return false;
    for (uint32_t i = 0; i < count; i++)
        out[i] = ent_infer_dim(infer, ENT_EXPR_ADD, start.items[0],
                               ent_infer_dim(infer, ENT_EXPR_MUL, delta.items[0], i));
    return true;
}

/* Split of a vector: every output gets its part. */
static void map_split(ent_infer *infer) {
    operand x;
    uint32_t at = 0;
    if (!read_operand(infer, 0, &x) || x.rank != 1) return;
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        ent_shape *out = &infer->out[i];
        int64_t length;
        if (out->rank != 1 || !ent_module_dim_number(infer->module, out->dims[0], &length)) return;
        if (length < 0 || length > x.count - at) return;
        out->element_count = (uint32_t)length;
        out->elements = ent_arena_copy(infer->scratch, x.items + at, (size_t)length * sizeof *x.items);
        at += (uint32_t)length;
    }
}

/* size: table */
static bool evaluate(const ent_infer *infer, uint32_t count, uint32_t rank, const int64_t *dims,
                     ent_dim *out) {
    switch (infer->node->op) {
    case ENT_OP_Identity:
    case ENT_OP_Dropout:
    case ENT_OP_Cast:
    case ENT_OP_CastLike:
    case ENT_OP_Reshape:
    case ENT_OP_Flatten:
    case ENT_OP_Squeeze:
    case ENT_OP_Unsqueeze:
    case ENT_OP_Floor:
    case ENT_OP_Ceil:
    case ENT_OP_Round:
    case ENT_OP_Neg:
    case ENT_OP_Not:
        return map_unary(infer, count, out);
    case ENT_OP_Add:
    case ENT_OP_Sub:
    case ENT_OP_Mul:
    case ENT_OP_Div:
    case ENT_OP_Mod:
    case ENT_OP_Max:
    case ENT_OP_Min:
    case ENT_OP_Sum:
    case ENT_OP_And:
    case ENT_OP_Or:
    case ENT_OP_Equal:
    case ENT_OP_Less:
    case ENT_OP_LessOrEqual:
    case ENT_OP_Greater:
    case ENT_OP_GreaterOrEqual:
        return map_binary(infer, count, rank, dims, out);
    case ENT_OP_Where:
        return map_where(infer, count, rank, dims, out);
    case ENT_OP_Expand:
        return map_expand(infer, count, rank, dims, out);
    case ENT_OP_ReduceProd:
    case ENT_OP_ReduceSum:
    case ENT_OP_ReduceMax:
    case ENT_OP_ReduceMin:
        return map_reduce(infer, count, out);
    case ENT_OP_Gather:
        return map_gather(infer, count, out);
    case ENT_OP_Concat:
        return map_concat(infer, count, out);
    case ENT_OP_Slice:
        return map_slice(infer, count, out);
    case ENT_OP_ConstantOfShape:
        return map_fill(infer, count, out);
    case ENT_OP_Range:
        return map_range(infer, count, out);
    default:
        return false;
    }
}

void ent_infer_propagate(ent_infer *infer) {
    int64_t dims[ENT_MAX_RANK];
    ent_dim items[ENT_MAX_ELEMENTS];
    uint32_t count;
    if (infer->node->op == ENT_OP_Split) map_split(infer);
    if (infer->node->output_count == 0) return;
    ent_shape *out = &infer->out[0];
    bool whole = out->dtype == ENT_DTYPE_I64 || out->dtype == ENT_DTYPE_I32 || out->dtype == ENT_DTYPE_BOOL ||
                 out->dtype == ENT_DTYPE_F32 || out->dtype == ENT_DTYPE_F64;
    if (out->elements || !whole || !small_shape(infer->module, out->rank, out->dims, dims, &count)) return;
    /* Arithmetic on data that only looks like sizes may overflow; that is no error of the shapes. */
    const char *problem = infer->module->state->dim_problem;
    bool known = evaluate(infer, count, out->rank, dims, items);
    if (known && infer->module->state->dim_problem == problem) {
        out->element_count = count;
        out->elements = ent_arena_copy(infer->scratch, items, count * sizeof *items);
    }
    infer->module->state->dim_problem = problem;
}
