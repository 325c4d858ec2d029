/* Writing the body of a composite; shared by the decompose_*.c files. */
#ifndef ENT_GRAPH_DECOMPOSE_H
#define ENT_GRAPH_DECOMPOSE_H

#include "core/graph/internal.h"

/* A body under construction. After an error every call does nothing and status says why. */
typedef struct ent_body {
    ent_module *module;
    ent_arena *scratch;
    uint32_t node_id; /* the composite */
    ent_node node;    /* a copy: the module's array moves */
    ent_status status;
} ent_body;

/* At most one argument of a call may add something: C leaves the order of arguments open, and the result must
 * not depend on the compiler. */
#define ENT_NO_ATTRS ((ent_attrs){0})

uint32_t ent_body_input(const ent_body *body, uint32_t index);  /* value id or NONE */
uint32_t ent_body_output(const ent_body *body, uint32_t index); /* value id or NONE */
/* Adds a node before the composite and infers it. `result` is an existing value that it computes, or NONE for
 * a fresh one; inputs that are NONE are left out at the end. Returns the result. */
uint32_t ent_body_add(ent_body *body, uint32_t op, ent_attrs attrs, uint32_t a, uint32_t b, uint32_t c,
                      uint32_t result);
static inline uint32_t ent_body_unary(ent_body *body, uint32_t op, uint32_t a) {
    return ent_body_add(body, op, ENT_NO_ATTRS, a, ENT_ID_NONE, ENT_ID_NONE, ENT_ID_NONE);
}
static inline uint32_t ent_body_binary(ent_body *body, uint32_t op, uint32_t a, uint32_t b) {
    return ent_body_add(body, op, ENT_NO_ATTRS, a, b, ENT_ID_NONE, ENT_ID_NONE);
}
uint32_t ent_body_scalar(ent_body *body, uint32_t dtype, double value);
uint32_t ent_body_i64s(ent_body *body, const int64_t *items, uint32_t count);
/* The value itself when it has that type already. */
uint32_t ent_body_cast(ent_body *body, uint32_t value, uint32_t dtype);
uint32_t ent_body_cast_to(ent_body *body, uint32_t value, uint32_t dtype, uint32_t result);
uint32_t ent_body_transpose(ent_body *body, uint32_t value, int64_t a, int64_t b, int64_t c, int64_t d);

/* decompose_quantize.c: in f32; scale and zero (can be NONE) of one value, or a vector that meets the last
 * axis. */
uint32_t ent_body_quantize(ent_body *body, uint32_t x, uint32_t scale, uint32_t zero, uint32_t dtype,
                           uint32_t result);
uint32_t ent_body_dequantize(ent_body *body, uint32_t x, uint32_t scale, uint32_t zero);
uint32_t ent_body_dynamic_quantize(ent_body *body, uint32_t x, uint32_t result, uint32_t *scale,
                                   uint32_t *zero);
uint32_t ent_body_centre(ent_body *body, uint32_t x, uint32_t zero); /* x - zero */

/* One per composite: true when it wrote the body, false (nothing written) when it has none for these
 * attributes. */
bool ent_decompose_BatchNormalization(ent_body *body);
bool ent_decompose_InstanceNormalization(ent_body *body);
bool ent_decompose_LayerNormalization(ent_body *body);
bool ent_decompose_Gelu(ent_body *body);
bool ent_decompose_HardSwish(ent_body *body);
bool ent_decompose_Mish(ent_body *body);
bool ent_decompose_Attention(ent_body *body);
bool ent_decompose_QuantizeLinear(ent_body *body);
bool ent_decompose_DequantizeLinear(ent_body *body);
bool ent_decompose_DynamicQuantizeLinear(ent_body *body);
bool ent_decompose_QLinearAdd(ent_body *body);
bool ent_decompose_QLinearMul(ent_body *body);
bool ent_decompose_QLinearSigmoid(ent_body *body);
bool ent_decompose_QLinearLeakyRelu(ent_body *body);
bool ent_decompose_QLinearSoftmax(ent_body *body);
bool ent_decompose_QLinearAveragePool(ent_body *body);
bool ent_decompose_QLinearGlobalAveragePool(ent_body *body);
bool ent_decompose_QLinearConcat(ent_body *body);
bool ent_decompose_MatMulIntegerToFloat(ent_body *body);
bool ent_decompose_DynamicQuantizeMatMul(ent_body *body);

#endif
