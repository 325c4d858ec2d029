/* Shape rules: operators that make values from shapes or data (Shape, Range, NonZero ...). */
#include "core/graph/infer.h"

#include <math.h>

static int64_t clamp_index(int64_t at, int64_t rank) {
    if (at < 0) at += rank;
    return at < 0 ? 0 : at > rank ? rank : at;
}

/* Elements: the dims themselves, from start to end. */
ent_status ent_infer_Shape(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_shape *out = &infer->out[0];
    int64_t start = clamp_index(ent_attrs_int(infer->attrs, "start", 0), x->rank);
    int64_t end = clamp_index(ent_attrs_int(infer->attrs, "end", x->rank), x->rank);
    ent_dim count = end > start ? end - start : 0;
    ent_infer_set(infer, 0, ENT_DTYPE_I64, 1, &count);
    out->element_count = (uint32_t)count;
    out->elements = ent_arena_copy(infer->scratch, x->dims + start, (size_t)count * sizeof *x->dims);
    return NULL;
}

ent_status ent_infer_Size(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_dim size = ent_infer_product(infer, x->dims, x->rank);
    ent_infer_set(infer, 0, ENT_DTYPE_I64, 0, NULL);
    infer->out[0].element_count = 1;
    infer->out[0].elements = ent_arena_copy(infer->scratch, &size, sizeof size);
    return NULL;
}

ent_status ent_infer_ConstantOfShape(ent_infer *infer) {
    const ent_attr *value = ent_attrs_find(infer->attrs, "value");
    const ent_value *shape = ent_infer_input(infer, 0);
    uint32_t dtype = value && value->type == ENT_ATTR_TENSOR ? value->tensor->dtype : ENT_DTYPE_F32, rank;
    ent_dim dims[ENT_MAX_ELEMENTS];
    int64_t length;
    infer->out[0].dtype = dtype;
    if (!ent_infer_elements(infer, 0, dims, &rank)) {
        if (shape->rank != 1 || !ent_module_dim_number(infer->module, shape->dims[0], &length)) return NULL;
        ENT_TRY(ent_infer_check_rank(infer, (uint64_t)length));
        rank = (uint32_t)length;
        for (uint32_t i = 0; i < rank; i++) dims[i] = ENT_DIM_UNKNOWN;
    }
    ENT_TRY(ent_infer_check_rank(infer, rank));
    ent_infer_set(infer, 0, dtype, rank, dims);
    return NULL;
}

/* max(ceil((limit - start) / delta), 0) */
static ent_dim range_count(const ent_infer *infer) {
    ent_module *module = infer->module;
    ent_dim bounds[3][ENT_MAX_ELEMENTS];
    int64_t delta;
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t count;
        if (!ent_infer_elements(infer, i, bounds[i], &count) || count != 1) return ENT_DIM_UNKNOWN;
    }
    if (bounds[2][0] == ENT_DIM_UNKNOWN || !ent_module_dim_number(module, bounds[2][0], &delta))
        return ENT_DIM_UNKNOWN;
    if (delta == 0 || delta == INT64_MIN) return ENT_DIM_UNKNOWN;
    uint32_t low = delta > 0 ? 0 : 1;
    ent_dim span = ent_infer_dim(infer, ENT_EXPR_SUB, bounds[1 - low][0], bounds[low][0]);
    span = ent_infer_dim(infer, ENT_EXPR_MAX, span, 0);
    return ent_infer_dim(infer, ENT_EXPR_CEILDIV, span, delta > 0 ? delta : -delta);
}

static bool range_of_constants(const ent_infer *infer, double *out) {
    for (uint32_t i = 0; i < 3; i++)
        if (!ent_value_scalar(infer->module, infer->node->inputs[i], &out[i])) return false;
    return true;
}

ent_status ent_infer_Range(ent_infer *infer) {
    uint32_t dtype = ent_infer_input(infer, 0)->dtype;
    double bounds[3];
    ENT_TRY(ent_infer_same_dtype(infer, 0, 3));
    ent_dim count = ENT_DIM_UNKNOWN;
    for (uint32_t i = 0; i < 3; i++) ent_infer_want(infer, i);
    if (ent_dtype_is_float(dtype) && range_of_constants(infer, bounds)) {
        double steps = ceil((bounds[1] - bounds[0]) / bounds[2]);
        if (!(bounds[2] < 0 || bounds[2] > 0) || !(steps < 9e15))
            return ent_infer_fail(infer, "shape.range", "the range from %g to %g by %g has no end", bounds[0],
                                  bounds[1], bounds[2]);
        count = steps > 0 ? (int64_t)steps : 0;
    } else if (!ent_dtype_is_float(dtype)) {
        count = range_count(infer);
    }
    ent_infer_set(infer, 0, dtype, 1, &count);
    return NULL;
}

ent_status ent_infer_NonZero(ent_infer *infer) {
    ent_dim dims[2] = {ent_infer_input(infer, 0)->rank, ENT_DIM_UNKNOWN};
    ent_infer_set(infer, 0, ENT_DTYPE_I64, 2, dims);
    return NULL;
}
