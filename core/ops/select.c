/* Clip and Where: each element is one of the given ones. */
#include "core/ops/internal.h"

#include <string.h>

typedef struct clip_context {
    const ent_tensor *operand[2];
    double low, high;
    int64_t low_i64, high_i64;
    bool has_low, has_high, unsigned_64;
} clip_context;

static void clip_run_f64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const clip_context *c = context;
    const ent_tensor *to = c->operand[0], *from = c->operand[1];
    double x[ENT_OPS_CHUNK];
    for (int64_t done = 0; done < count; done += ENT_OPS_CHUNK) {
        int64_t n = count - done < ENT_OPS_CHUNK ? count - done : ENT_OPS_CHUNK;
        ent_ops_load_run_f64(from->data, from->dtype, offset[1] + done * stride[1], stride[1], n, x);
        for (int64_t i = 0; i < n; i++) {
            x[i] = c->has_low && x[i] < c->low ? c->low : x[i];
            x[i] = c->has_high && x[i] > c->high ? c->high : x[i];
        }
        ent_ops_store_run_f64(to->data, to->dtype, offset[0] + done * stride[0], stride[0], n, x);
    }
}

static bool below(const clip_context *c, int64_t a, int64_t b) {
    return c->unsigned_64 ? (uint64_t)a < (uint64_t)b : a < b;
}

static void clip_run_i64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const clip_context *c = context;
    const ent_tensor *to = c->operand[0], *from = c->operand[1];
    for (int64_t i = 0; i < count; i++) {
        int64_t x = ent_ops_load_i64(from->data, from->dtype, offset[1] + i * stride[1]);
        if (c->has_low && below(c, x, c->low_i64)) x = c->low_i64;
        if (c->has_high && below(c, c->high_i64, x)) x = c->high_i64;
        ent_ops_store_i64(to->data, to->dtype, offset[0] + i * stride[0], x);
    }
}

ent_code ent_ops_clip(ent_ops_call *call) {
    clip_context c = {.operand = {ent_ops_output(call, 0), ent_ops_input(call, 0)}};
    if (!c.operand[0]) return ENT_OK;
    const ent_tensor *low = ent_ops_input(call, 1), *high = ent_ops_input(call, 2);
    if ((low && ent_ops_element_count(low) != 1) || (high && ent_ops_element_count(high) != 1))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "min and max must be scalars");
    c.has_low = low != NULL;
    c.has_high = high != NULL;
    c.unsigned_64 = c.operand[1]->dtype == ENT_DTYPE_U64;
    if (low)
        c.low = ent_ops_load_f64(low->data, low->dtype, 0),
        c.low_i64 = ent_ops_load_i64(low->data, low->dtype, 0);
    if (high)
        c.high = ent_ops_load_f64(high->data, high->dtype, 0),
        c.high_i64 = ent_ops_load_i64(high->data, high->dtype, 0);
    ent_ops_walk(c.operand, 2,
                 ent_ops_dtype_in(c.operand[1]->dtype, ENT_OPS_INTEGERS) ? clip_run_i64 : clip_run_f64, &c);
    return ENT_OK;
}

static void where_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const ent_tensor *const *operand = context;
    uint32_t dtype = operand[0]->dtype, bits = ent_dtype_bits((ent_dtype)dtype);
    const uint8_t *condition = operand[1]->data;
    for (int64_t i = 0; i < count; i++) {
        uint32_t chosen = condition[offset[1] + i * stride[1]] ? 2 : 3;
        int64_t from = offset[chosen] + i * stride[chosen], to = offset[0] + i * stride[0];
        if (bits <= 64)
            ent_ops_code_store(operand[0]->data, dtype, to,
                               ent_ops_code_load(operand[chosen]->data, dtype, from));
        else
            memcpy((uint8_t *)operand[0]->data + to * 16, (const uint8_t *)operand[chosen]->data + from * 16,
                   16);
    }
}

ent_code ent_ops_where(ent_ops_call *call) {
    const ent_tensor *operands[4] = {ent_ops_output(call, 0), ent_ops_input(call, 0), ent_ops_input(call, 1),
                                     ent_ops_input(call, 2)};
    if (!operands[0]) return ENT_OK;
    if (operands[2]->dtype != operands[3]->dtype)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "X and Y have different dtypes");
    ent_ops_walk(operands, 4, where_run, operands);
    return ENT_OK;
}
