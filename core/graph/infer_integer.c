/* Shape rules: contractions of quantized values. */
#include "core/graph/infer.h"

/* A zero point of `index` has the type of what it belongs to. */
static ent_status check_zero_point(const ent_infer *infer, uint32_t index, uint32_t of) {
    const ent_value *zero = ent_infer_input(infer, index), *value = ent_infer_input(infer, of);
    if (!zero || !zero->dtype || !value->dtype || zero->dtype == value->dtype) return NULL;
    return ent_infer_fail(infer, "dtype.same", "the zero point (input %u) is %s, input %u is %s", index,
                          ent_dtype_name((ent_dtype)zero->dtype), of,
                          ent_dtype_name((ent_dtype)value->dtype));
}

ent_status ent_infer_ConvInteger(ent_infer *infer) {
    ENT_TRY(check_zero_point(infer, 2, 0));
    ENT_TRY(check_zero_point(infer, 3, 1));
    return ent_infer_conv(infer, 1, ENT_ID_NONE, ENT_DTYPE_I32);
}

ent_status ent_infer_MatMulInteger(ent_infer *infer) {
    ENT_TRY(check_zero_point(infer, 2, 0));
    ENT_TRY(check_zero_point(infer, 3, 1));
    return ent_infer_matmul(infer, 1, ENT_DTYPE_I32);
}

/* x, scale, zero point; w, scale, zero point; scale and zero point of y: its type is the result's. */
ent_status ent_infer_QLinearConv(ent_infer *infer) {
    ENT_TRY(check_zero_point(infer, 2, 0));
    ENT_TRY(check_zero_point(infer, 5, 3));
    return ent_infer_conv(infer, 3, 8, ent_infer_input(infer, 7)->dtype);
}

ent_status ent_infer_QLinearMatMul(ent_infer *infer) {
    ENT_TRY(check_zero_point(infer, 2, 0));
    ENT_TRY(check_zero_point(infer, 5, 3));
    return ent_infer_matmul(infer, 3, ent_infer_input(infer, 7)->dtype);
}

ent_status ent_infer_DynamicQuantizeLinear(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    ent_infer_set(infer, 0, ENT_DTYPE_U8, x->rank, x->dims);
    ent_infer_set(infer, 1, ENT_DTYPE_F32, 0, NULL);
    ent_infer_set(infer, 2, ENT_DTYPE_U8, 0, NULL);
    return NULL;
}
