/* Bodies of composite activations. Source of the formulas: the texts and function bodies of the ONNX schemas.
 */
#include "core/graph/decompose.h"

static uint32_t times(ent_body *body, uint32_t value, double factor) {
    uint32_t dtype = ent_body_value(body, value)->dtype;
    return ent_body_binary(body, ENT_OP_Mul, value, ent_body_scalar(body, dtype, factor));
}

uint32_t ent_body_gelu(ent_body *body, uint32_t x, bool tanh, uint32_t result) {
    uint32_t dtype = ent_body_value(body, x)->dtype, inner;
    if (!tanh) {
        inner = ent_body_unary(body, ENT_OP_Erf, times(body, x, 0.70710678118654752440));
    } else {
        uint32_t cube = ent_body_binary(body, ENT_OP_Mul, ent_body_binary(body, ENT_OP_Mul, x, x), x);
        inner = ent_body_binary(body, ENT_OP_Add, x, times(body, cube, 0.044715));
        inner = ent_body_unary(body, ENT_OP_Tanh, times(body, inner, 0.79788456080286535588));
    }
    inner = ent_body_binary(body, ENT_OP_Add, inner, ent_body_scalar(body, dtype, 1.0));
    uint32_t half = times(body, x, 0.5);
    return ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, half, inner, ENT_ID_NONE, result);
}

/* none: x / 2 * (1 + erf(x / sqrt 2)); tanh: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) */
bool ent_decompose_Gelu(ent_body *body) {
    bool exact = ent_attrs_string_is(body->node.attrs, "approximate", "none", "none");
    if (!exact && !ent_attrs_string_is(body->node.attrs, "approximate", "none", "tanh")) return false;
    ent_body_gelu(body, ent_body_input(body, 0), !exact, ent_body_output(body, 0));
    return true;
}

bool ent_decompose_HardSwish(ent_body *body) {
    uint32_t x = ent_body_input(body, 0);
    ent_attr attrs[2] = {ent_attr_float("alpha", 1.0 / 6.0), ent_attr_float("beta", 0.5)};
    uint32_t gate = ent_body_add(body, ENT_OP_HardSigmoid, ent_attrs_make(body->module, attrs, 2), x,
                                 ENT_ID_NONE, ENT_ID_NONE, ENT_ID_NONE);
    ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, x, gate, ENT_ID_NONE, ent_body_output(body, 0));
    return true;
}

bool ent_decompose_Mish(ent_body *body) {
    uint32_t x = ent_body_input(body, 0);
    uint32_t gate = ent_body_unary(body, ENT_OP_Tanh, ent_body_unary(body, ENT_OP_Softplus, x));
    ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, x, gate, ENT_ID_NONE, ent_body_output(body, 0));
    return true;
}

/* x * sigmoid(alpha x) */
uint32_t ent_body_swish(ent_body *body, uint32_t x, double alpha, uint32_t result) {
    uint32_t gate = ent_body_unary(body, ENT_OP_Sigmoid, alpha == 1 ? x : times(body, x, alpha));
    return ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, x, gate, ENT_ID_NONE, result);
}

bool ent_decompose_Swish(ent_body *body) {
    double alpha = ent_attrs_float(body->node.attrs, "alpha", 1);
    ent_body_swish(body, ent_body_input(body, 0), alpha, ent_body_output(body, 0));
    return true;
}
