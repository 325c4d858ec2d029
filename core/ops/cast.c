/* Cast and CastLike. Floats go to integers by truncation, to bool by x != 0; integers wrap. */
#include "core/ops/internal.h"

#include <math.h>

typedef struct cast_context {
    const ent_tensor *operand[2];
    bool saturate;
    char round_mode;
} cast_context;

static void cast_narrow_float(const cast_context *c, int64_t to, double value) {
    uint32_t dtype = c->operand[0]->dtype;
    uint32_t code = dtype == ENT_DTYPE_F8E8M0 ? ent_ops_e8m0_encode(value, c->saturate, c->round_mode)
                                              : ent_ops_float_encode(dtype, value, c->saturate);
    ent_ops_code_store(c->operand[0]->data, dtype, to, code);
}

static void cast_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const cast_context *c = context;
    const ent_tensor *to = c->operand[0], *from = c->operand[1];
    const uint32_t whole =
        ENT_OPS_INTEGERS | ENT_OPS_BOOL | (ENT_OPS_SUB_BYTE & ~ENT_OPS_BIT(ENT_DTYPE_F4E2M1));
    bool narrow = ent_ops_dtype_in(to->dtype, ENT_OPS_FLOAT8);
    bool integers = ent_ops_dtype_in(from->dtype, whole) && from->dtype != ENT_DTYPE_U64;
    if (from->dtype == ENT_DTYPE_U64 && ent_ops_dtype_in(to->dtype, whole)) integers = true;
    for (int64_t i = 0; i < count; i++) {
        int64_t at = offset[1] + i * stride[1], place = offset[0] + i * stride[0];
        if (narrow)
            cast_narrow_float(c, place, ent_ops_load_f64(from->data, from->dtype, at));
        else if (integers)
            ent_ops_store_i64(to->data, to->dtype, place, ent_ops_load_i64(from->data, from->dtype, at));
        else
            ent_ops_store_f64(to->data, to->dtype, place, ent_ops_load_f64(from->data, from->dtype, at));
    }
}

ent_code ent_ops_cast(ent_ops_call *call) {
    cast_context c = {.operand = {ent_ops_output(call, 0), ent_ops_input(call, 0)}};
    if (!c.operand[0]) return ENT_OK;
    c.saturate = ent_attrs_int(call->attrs, "saturate", 1) != 0;
    c.round_mode = ent_attrs_string_is(call->attrs, "round_mode", "up", "down")      ? 'd'
                   : ent_attrs_string_is(call->attrs, "round_mode", "up", "nearest") ? 'n'
                                                                                     : 'u';
    ent_ops_walk(c.operand, 2, cast_run, &c);
    return ENT_OK;
}

ent_code ent_ops_dims_cast(ent_ops_call *call, ent_tensor *outputs) {
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dtype = call->op == ENT_OP_CastLike ? ent_ops_input(call, 1)->dtype
                                                   : ent_ops_attr_dtype(call->attrs, "to", ENT_DTYPE_NONE);
    if (!ent_ops_dtype_in(outputs[0].dtype, ENT_OPS_NUMERIC))
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "no cast to %s",
                              ent_dtype_name((ent_dtype)outputs[0].dtype));
    return ENT_OK;
}
