/* Bodies of com.microsoft's quantized operators: dequantize, the plain operator in f32, quantize. Products
 * whose result is a float run on whole numbers in f32. Source of the formulas: ONNX Runtime,
 * docs/ContribOperators.md. */
#include "core/graph/decompose.h"

static const ent_value *value_of(const ent_body *body, uint32_t value) {
    return ent_module_value(body->module, value);
}

/* One number: a scalar, or a list of one element that meets any rank but 0. */
static bool is_single(const ent_body *body, uint32_t value, bool needed) {
    if (value == ENT_ID_NONE) return !needed;
    const ent_value *v = value_of(body, value);
    bool ranked =
        v->rank == 0 || (v->rank == 1 && v->dims[0] == 1 && value_of(body, body->node.inputs[0])->rank > 0);
    return ranked && (v->dtype == ENT_DTYPE_F32 || v->dtype == ENT_DTYPE_U8 || v->dtype == ENT_DTYPE_I8);
}

static bool all_single(const ent_body *body, uint32_t scale, uint32_t zero) {
    return is_single(body, ent_body_input(body, scale), true) &&
           is_single(body, ent_body_input(body, zero), false);
}

static uint32_t operand(ent_body *body, uint32_t index) {
    uint32_t x = ent_body_input(body, index), scale = ent_body_input(body, index + 1),
             zero = ent_body_input(body, index + 2);
    return ent_body_dequantize(body, x, scale, zero);
}

static bool finish(ent_body *body, uint32_t y, uint32_t scale) {
    uint32_t output = ent_body_output(body, 0), dtype = value_of(body, output)->dtype;
    ent_body_quantize(body, y, ent_body_input(body, scale), ent_body_input(body, scale + 1), dtype, output);
    return true;
}

static bool binary(ent_body *body, uint32_t op) {
    if (!all_single(body, 1, 2) || !all_single(body, 4, 5) || !all_single(body, 6, 7)) return false;
    uint32_t a = operand(body, 0), b = operand(body, 3);
    return finish(body, ent_body_binary(body, op, a, b), 6);
}

bool ent_decompose_QLinearAdd(ent_body *body) {
    return binary(body, ENT_OP_Add);
}

bool ent_decompose_QLinearMul(ent_body *body) {
    return binary(body, ENT_OP_Mul);
}

/* The attributes that the plain operator does not have change nothing there: the shape rule refused them. */
static bool unary(ent_body *body, uint32_t op) {
    static const char *const own[] = {"channels_last", "opset"};
    ent_attr kept[16];
    uint32_t count = 0;
    if (!all_single(body, 1, 2) || !all_single(body, 3, 4) || body->node.attrs.count > 16) return false;
    for (uint32_t i = 0; i < body->node.attrs.count; i++) {
        ent_attrs one = {&body->node.attrs.items[i], 1};
        if (!ent_attrs_find(one, own[0]) && !ent_attrs_find(one, own[1]))
            kept[count++] = body->node.attrs.items[i];
    }
    ent_attrs attrs = ent_attrs_make(body->module, kept, count);
    uint32_t x = operand(body, 0), none = ENT_ID_NONE;
    return finish(body, ent_body_add(body, op, attrs, x, none, none, none), 3);
}

bool ent_decompose_QLinearSigmoid(ent_body *body) {
    return unary(body, ENT_OP_Sigmoid);
}

bool ent_decompose_QLinearLeakyRelu(ent_body *body) {
    return unary(body, ENT_OP_LeakyRelu);
}

bool ent_decompose_QLinearSoftmax(ent_body *body) {
    return unary(body, ENT_OP_Softmax);
}

bool ent_decompose_QLinearAveragePool(ent_body *body) {
    return unary(body, ENT_OP_AveragePool);
}

bool ent_decompose_QLinearGlobalAveragePool(ent_body *body) {
    return unary(body, ENT_OP_GlobalAveragePool);
}

/* Joined two by two: a body's node has at most three inputs. */
bool ent_decompose_QLinearConcat(ent_body *body) {
    if (!all_single(body, 0, 1)) return false;
    for (uint32_t i = 2; i < body->node.input_count; i += 3)
        if (!all_single(body, i + 1, i + 2)) return false;
    ent_attr axis = ent_attr_int("axis", ent_attrs_int(body->node.attrs, "axis", 0));
    ent_attrs attrs = ent_attrs_make(body->module, &axis, 1);
    uint32_t joined = operand(body, 2), none = ENT_ID_NONE;
    for (uint32_t i = 5; i < body->node.input_count; i += 3) {
        uint32_t next = operand(body, i);
        joined = ent_body_add(body, ENT_OP_Concat, attrs, joined, next, none, none);
    }
    return finish(body, joined, 0);
}

/* y = left * right * (left scale * right scale) + bias; NONE: absent. */
static void product(ent_body *body, uint32_t left, uint32_t left_scale, uint32_t right_scale,
                    uint32_t right_zero, uint32_t bias) {
    uint32_t none = ENT_ID_NONE, output = ent_body_output(body, 0);
    uint32_t right = ent_body_centre(body, ent_body_input(body, 1), right_zero);
    uint32_t sum = ent_body_binary(body, ENT_OP_MatMul, left, right);
    uint32_t factor = ent_body_binary(body, ENT_OP_Mul, left_scale, right_scale);
    sum = ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, sum, factor, none, bias == none ? output : none);
    if (bias != none) ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, sum, bias, none, output);
}

static bool is_matrix_product(const ent_body *body) {
    const ent_value *a = value_of(body, ent_body_input(body, 0)),
                    *b = value_of(body, ent_body_input(body, 1));
    return a->rank >= 2 && b->rank >= 2 && value_of(body, ent_body_output(body, 0))->dtype == ENT_DTYPE_F32 &&
           (b->dtype == ENT_DTYPE_U8 || b->dtype == ENT_DTYPE_I8);
}

bool ent_decompose_MatMulIntegerToFloat(ent_body *body) {
    if (!is_matrix_product(body) || !all_single(body, 2, 4)) return false;
    uint32_t left = ent_body_centre(body, ent_body_input(body, 0), ent_body_input(body, 4));
    product(body, left, ent_body_input(body, 2), ent_body_input(body, 3), ent_body_input(body, 5),
            ent_body_input(body, 6));
    return true;
}

/* A is quantized as DynamicQuantizeLinear does. */
bool ent_decompose_DynamicQuantizeMatMul(ent_body *body) {
    uint32_t none = ENT_ID_NONE, scale = none, zero = none;
    if (!is_matrix_product(body)) return false;
    uint32_t quantized = ent_body_dynamic_quantize(body, ent_body_input(body, 0), none, &scale, &zero);
    uint32_t left = ent_body_cast(body, quantized, ENT_DTYPE_F32),
             shift = ent_body_cast(body, zero, ENT_DTYPE_F32);
    left = ent_body_binary(body, ENT_OP_Sub, left, shift);
    product(body, left, scale, ent_body_input(body, 2), ent_body_input(body, 3), ent_body_input(body, 4));
    return true;
}
