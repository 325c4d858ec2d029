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
uint32_t ent_body_add_list(ent_body *body, uint32_t op, ent_attrs attrs, const uint32_t *inputs,
                           uint32_t count, uint32_t result);
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

/* Any permutation of the axes; the value itself when it is the identity. */
uint32_t ent_body_permute(ent_body *body, uint32_t value, const int64_t *order, uint32_t rank,
                          uint32_t result);
/* The value as a tensor of the shape of `like`. */
uint32_t ent_body_reshape_like(ent_body *body, uint32_t value, uint32_t like, uint32_t result);
/* first..last of one axis. */
uint32_t ent_body_slice(ent_body *body, uint32_t value, int64_t axis, int64_t first, int64_t last);
/* The type in which a body computes: f32 for the 16-bit floats, else the type itself. */
uint32_t ent_body_wide(uint32_t dtype);
/* Good until something is added. */
static inline const ent_value *ent_body_value(const ent_body *body, uint32_t value) {
    return ent_module_value(body->module, value);
}

/* decompose_norm.c */
/* Per-channel vector C as C x 1 x 1 ..., so that it meets axis 1 of rank `rank`. */
uint32_t ent_body_along_channels(ent_body *body, uint32_t vector, uint32_t rank);
/* Mean over the axes first..rank-1, kept as 1. */
uint32_t ent_body_mean_from(ent_body *body, uint32_t value, uint32_t first, uint32_t rank, uint32_t result);
typedef struct ent_layer_norm {
    uint32_t x, scale, bias; /* bias NONE: none */
    uint32_t axis, stash;
    double epsilon;
    uint32_t out, out_mean, out_inverse; /* as `result` of ent_body_add */
} ent_layer_norm;
uint32_t ent_body_layer_norm(ent_body *body, const ent_layer_norm *norm);
/* decompose_norm_axes.c: without mean and bias; the result has the scale's type. */
uint32_t ent_body_rms_norm(ent_body *body, const ent_layer_norm *norm);
/* decompose_activation.c */
uint32_t ent_body_gelu(ent_body *body, uint32_t x, bool tanh, uint32_t result);
uint32_t ent_body_swish(ent_body *body, uint32_t x, double alpha, uint32_t result);

/* One per composite: true when it wrote the body, false (nothing written) when it has none for these
 * attributes. */
#define ENT_DECLARE_NONE(name)
#define ENT_DECLARE_ELEMENTWISE(name)
#define ENT_DECLARE_CONTRACTION(name)
#define ENT_DECLARE_WINDOW(name)
#define ENT_DECLARE_REDUCTION(name)
#define ENT_DECLARE_MOVEMENT(name)
#define ENT_DECLARE_CONTROL(name)
#define ENT_DECLARE_COMPOSITE(name) bool ent_decompose_##name(ent_body *body);
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes)                     \
    ENT_DECLARE_##class_(name)
#include "abi/ent_ops.def"

#endif
