/* Bodies of ArrayFeatureExtractor and Binarizer. */
#include "core/graph/decompose.h"

/* Columns of the last axis; a vector counts as one row. */
bool ent_decompose_ArrayFeatureExtractor(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), y = ent_body_input(body, 1);
    int64_t flat = -1, front = 0;
    uint32_t rank = ent_body_value(body, x)->rank;
    ent_attr axis = ent_attr_int("axis", -1);
    if (ent_body_value(body, y)->rank != 1)
        y = ent_body_binary(body, ENT_OP_Reshape, y, ent_body_i64s(body, &flat, 1));
    if (rank == 1) x = ent_body_binary(body, ENT_OP_Unsqueeze, x, ent_body_i64s(body, &front, 1));
    ent_body_add(body, ENT_OP_Gather, ent_attrs_make(body->module, &axis, 1), x, y, ENT_ID_NONE,
                 ent_body_output(body, 0));
    return true;
}

bool ent_decompose_Binarizer(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), dtype = ent_body_value(body, x)->dtype;
    uint32_t threshold =
        ent_body_scalar(body, ENT_DTYPE_F32, ent_attrs_float(body->node.attrs, "threshold", 0));
    bool whole = ent_dtype_is_integer((ent_dtype)dtype);
    uint32_t wide = whole ? ent_body_cast(body, x, ENT_DTYPE_F64) : x;
    threshold = ent_body_cast(body, threshold, whole ? ENT_DTYPE_F64 : dtype);
    uint32_t above = ent_body_binary(body, ENT_OP_Greater, wide, threshold);
    ent_body_cast_to(body, above, dtype, ent_body_output(body, 0));
    return true;
}
