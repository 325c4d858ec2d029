/* Helpers of the shape rules. */
#include "core/graph/infer.h"

#include <math.h>
#include <string.h>

const ent_value *ent_infer_input(const ent_infer *infer, uint32_t index) {
    if (index >= infer->node->input_count || infer->node->inputs[index] == ENT_ID_NONE) return NULL;
    return ent_module_value(infer->module, infer->node->inputs[index]);
}

ent_status ent_infer_fail(const ent_infer *infer, const char *rule, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = ent_arena_format_list(infer->module->arena, format, arguments);
    va_end(arguments);
    return ent_status_make(infer->module->arena, ENT_ERROR_MODEL, rule,
                           ent_node_place(infer->module, infer->node_id), "%s", text);
}

const char *ent_infer_text(const ent_infer *infer, uint32_t index) {
    const ent_value *value = ent_infer_input(infer, index);
    return value ? ent_module_dims_text(infer->module, value->rank, value->dims) : "absent";
}

void ent_infer_set(ent_infer *infer, uint32_t output, uint32_t dtype, uint32_t rank, const ent_dim *dims) {
    if (output >= infer->node->output_count) return;
    ent_shape *out = &infer->out[output];
    out->dtype = dtype;
    out->rank = rank;
    if (rank != ENT_RANK_UNKNOWN && rank > 0) memcpy(out->dims, dims, rank * sizeof *dims);
}

void ent_infer_copy(ent_infer *infer, uint32_t output, uint32_t input) {
    const ent_value *value = ent_infer_input(infer, input);
    ent_infer_set(infer, output, value->dtype, value->rank, value->dims);
}

ent_dim ent_infer_dim(const ent_infer *infer, ent_expr_kind kind, ent_dim a, ent_dim b) {
    if (a == ENT_DIM_UNKNOWN || b == ENT_DIM_UNKNOWN) return ENT_DIM_UNKNOWN;
    return ent_module_dim(infer->module, kind, a, b);
}

ent_dim ent_infer_product(const ent_infer *infer, const ent_dim *dims, uint32_t count) {
    ent_dim product = 1;
    for (uint32_t i = 0; i < count; i++) product = ent_infer_dim(infer, ENT_EXPR_MUL, product, dims[i]);
    return product;
}

bool ent_infer_differ(const ent_infer *infer, ent_dim a, ent_dim b) {
    int64_t x, y;
    return ent_module_dim_number(infer->module, a, &x) && ent_module_dim_number(infer->module, b, &y) &&
           x != y;
}

ent_dim ent_infer_same(const ent_infer *infer, ent_dim a, ent_dim b) {
    int64_t number;
    if (a == ENT_DIM_UNKNOWN) return b;
    return b != ENT_DIM_UNKNOWN && ent_module_dim_number(infer->module, b, &number) ? b : a;
}

/* Of two unequal symbolic sizes one must be 1 where the model runs at all, so the larger one is the result
 * (an extent of 0 against 1 excepted, where it is rounded up to 1 and the run reports it). */
static bool broadcast_dim(const ent_infer *infer, ent_dim a, ent_dim b, ent_dim *out) {
    int64_t x, y;
    bool known_a = ent_module_dim_number(infer->module, a, &x),
         known_b = ent_module_dim_number(infer->module, b, &y);
    if (a == b || (known_b && y == 1))
        *out = a;
    else if (known_a && x == 1)
        *out = b;
    else if (known_a && known_b)
        return false;
    else if (known_a || known_b)
        *out = known_a ? a : b;
    else
        *out = ent_infer_dim(infer, ENT_EXPR_MAX, a, b);
    return true;
}

bool ent_infer_broadcast(const ent_infer *infer, uint32_t *rank, ent_dim *dims, uint32_t other_rank,
                         const ent_dim *other) {
    ent_dim result[ENT_MAX_RANK];
    uint32_t total = *rank > other_rank ? *rank : other_rank;
    for (uint32_t i = 0; i < total; i++) {
        ent_dim a = i + *rank >= total ? dims[i + *rank - total] : 1;
        ent_dim b = i + other_rank >= total ? other[i + other_rank - total] : 1;
        if (!broadcast_dim(infer, a, b, &result[i])) return false;
    }
    memcpy(dims, result, total * sizeof *dims);
    *rank = total;
    return true;
}

ent_status ent_infer_broadcast_inputs(ent_infer *infer, uint32_t dtype) {
    ent_dim dims[ENT_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < infer->node->input_count; i++) {
        const ent_value *value = ent_infer_input(infer, i);
        if (!value) continue;
        if (!ent_infer_broadcast(infer, &rank, dims, value->rank, value->dims))
            return ent_infer_fail(infer, "shape.broadcast", "shapes %s and %s cannot be broadcast together",
                                  ent_module_dims_text(infer->module, rank, dims), ent_infer_text(infer, i));
    }
    ent_infer_set(infer, 0, dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_same_dtype(const ent_infer *infer, uint32_t from, uint32_t to) {
    const ent_value *first = ent_infer_input(infer, from);
    for (uint32_t i = from + 1; i < to; i++) {
        const ent_value *value = ent_infer_input(infer, i);
        if (!first || !value || !first->dtype || !value->dtype || value->dtype == first->dtype) continue;
        return ent_infer_fail(
            infer, "dtype.same", "inputs %u and %u have types %s and %s; they must be the same", from, i,
            ent_dtype_name((ent_dtype)first->dtype), ent_dtype_name((ent_dtype)value->dtype));
    }
    return NULL;
}

ent_status ent_infer_check_rank(const ent_infer *infer, uint64_t rank) {
    if (rank <= ENT_MAX_RANK) return NULL;
    return ent_status_make(
        infer->module->arena, ENT_ERROR_LIMIT, "shape.rank", ent_node_place(infer->module, infer->node_id),
        "the output would have rank %llu; at most %d is supported", (unsigned long long)rank, ENT_MAX_RANK);
}

ent_status ent_infer_axis(const ent_infer *infer, int64_t axis, uint32_t rank, uint32_t *out) {
    int64_t resolved = axis < 0 ? axis + rank : axis;
    *out = 0;
    if (resolved < 0 || resolved >= rank)
        return ent_infer_fail(infer, "shape.axis", "axis %lld is outside rank %u", (long long)axis, rank);
    *out = (uint32_t)resolved;
    return NULL;
}

static bool constant_elements(const ent_infer *infer, const ent_value *value, ent_dim *out,
                              uint32_t *out_count) {
    if (!value->constant || !ent_element_is_numeric(value->dtype)) return false;
    const ent_tensor *tensor = &value->constant->tensor;
    uint64_t size, width = ent_dtype_bits(tensor->dtype) / 8;
    if (!ent_tensor_size_bytes(tensor->dtype, tensor->rank, tensor->dims, &size)) return false;
    if (size != tensor->size_bytes || size > ENT_MAX_ELEMENTS * width) return false;
    *out_count = (uint32_t)(size / width);
    for (uint32_t i = 0; i < *out_count; i++) {
        double number = ent_element_get_f64(tensor->data, tensor->dtype, i);
        bool whole = number == floor(number) && fabs(number) < 9.0e15;
        int64_t integer = ent_dtype_is_float(tensor->dtype)
                              ? (whole ? (int64_t)number : 0)
                              : ent_element_get_i64(tensor->data, tensor->dtype, i);
        /* The least number is the mark of the unknown; one more means the same to every rule. */
        if (integer == INT64_MIN) integer++;
        if (ent_dtype_is_float(tensor->dtype) && !whole)
            out[i] = ENT_ELEMENT_UNKNOWN;
        else
            out[i] = ent_module_dim_constant(infer->module, integer);
    }
    return true;
}

bool ent_infer_elements(const ent_infer *infer, uint32_t index, ent_dim *out, uint32_t *out_count) {
    const ent_value *value = ent_infer_input(infer, index);
    if (!value) return false;
    if (value->constant) return constant_elements(infer, value, out, out_count);
    ent_elements known = infer->module->state->elements.items[infer->node->inputs[index]];
    ent_infer_want(infer, index);
    if (!known.items) return false;
    memcpy(out, known.items, known.count * sizeof *out);
    *out_count = known.count;
    return true;
}

bool ent_infer_numbers(const ent_infer *infer, uint32_t index, int64_t *out, uint32_t *out_count) {
    if (!ent_infer_elements(infer, index, out, out_count)) return false;
    for (uint32_t i = 0; i < *out_count; i++)
        if (!ent_module_dim_number(infer->module, out[i], &out[i])) return false;
    return true;
}

ent_status ent_infer_axes(const ent_infer *infer, const int64_t *axes, uint32_t count, uint32_t rank,
                          uint32_t *out_mask) {
    *out_mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis = 0;
        ENT_TRY(ent_infer_axis(infer, axes[i], rank, &axis));
        if (*out_mask & 1u << axis)
            return ent_infer_fail(infer, "shape.axis", "axis %u is listed twice", axis);
        *out_mask |= 1u << axis;
    }
    return NULL;
}

ent_status ent_infer_ints(const ent_infer *infer, const char *name, uint32_t count, int64_t missing,
                          int64_t *out) {
    const ent_attr *attr = ent_attrs_find(infer->attrs, name);
    for (uint32_t i = 0; i < count; i++) out[i] = missing;
    if (!attr || attr->type != ENT_ATTR_INTS || attr->count == 0) return NULL;
    if (attr->count != count)
        return ent_infer_fail(infer, "attribute.count", "attribute '%s' has %u numbers, %u are needed", name,
                              attr->count, count);
    memcpy(out, attr->ints, count * sizeof *out);
    return NULL;
}
