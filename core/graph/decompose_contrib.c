/* Bodies of com.microsoft operators. Source:
 * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md (MIT) */
#include "core/graph/decompose.h"

#include <string.h>

/* batch: the first axis goes behind the other batch axes; then the last two may be exchanged. */
static uint32_t transposed(ent_body *body, uint32_t value, bool batch, bool last) {
    uint32_t rank = ent_body_value(body, value)->rank;
    int64_t order[ENT_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) order[i] = i;
    for (uint32_t i = 0; batch && i + 2 < rank; i++) order[i] = i + 1;
    if (batch) order[rank - 2] = 0;
    int64_t kept = order[rank - 1];
    if (last) order[rank - 1] = order[rank - 2];
    if (last) order[rank - 2] = kept;
    return ent_body_permute(body, value, order, rank, ENT_ID_NONE);
}

bool ent_decompose_FusedMatMul(ent_body *body) {
    ent_attrs attrs = body->node.attrs;
    uint32_t a = ent_body_input(body, 0), b = ent_body_input(body, 1), result = ent_body_output(body, 0);
    double alpha = ent_attrs_float(attrs, "alpha", 1);
    if (ent_body_value(body, a)->rank < 2 || ent_body_value(body, b)->rank < 2) return false;
    a = transposed(body, a, ent_attrs_int(attrs, "transBatchA", 0) != 0,
                   ent_attrs_int(attrs, "transA", 0) != 0);
    b = transposed(body, b, ent_attrs_int(attrs, "transBatchB", 0) != 0,
                   ent_attrs_int(attrs, "transB", 0) != 0);
    uint32_t product =
        ent_body_add(body, ENT_OP_MatMul, ENT_NO_ATTRS, a, b, ENT_ID_NONE, alpha == 1 ? result : ENT_ID_NONE);
    if (alpha == 1 || body->status) return true;
    uint32_t factor = ent_body_scalar(body, ent_body_value(body, product)->dtype, alpha);
    ent_body_add(body, ENT_OP_Mul, ENT_NO_ATTRS, product, factor, ENT_ID_NONE, result);
    return true;
}

bool ent_decompose_BiasGelu(ent_body *body) {
    uint32_t sum = ent_body_binary(body, ENT_OP_Add, ent_body_input(body, 0), ent_body_input(body, 1));
    if (!body->status) ent_body_gelu(body, sum, false, ent_body_output(body, 0));
    return true;
}

bool ent_decompose_FastGelu(ent_body *body) {
    uint32_t x = ent_body_input(body, 0), bias = ent_body_input(body, 1);
    if (bias != ENT_ID_NONE) x = ent_body_binary(body, ENT_OP_Add, x, bias);
    if (!body->status) ent_body_gelu(body, x, true, ent_body_output(body, 0));
    return true;
}

bool ent_decompose_QuickGelu(ent_body *body) {
    double alpha = ent_attrs_float(body->node.attrs, "alpha", 1.702);
    ent_body_swish(body, ent_body_input(body, 0), alpha, ent_body_output(body, 0));
    return true;
}

/* input + skip (+ bias), in f32 for the 16-bit types; what output 3 wants. */
static uint32_t sum_of(ent_body *body, uint32_t bias) {
    uint32_t x = ent_body_input(body, 0), dtype = ent_body_value(body, x)->dtype, wide = ent_body_wide(dtype);
    uint32_t whole = ent_body_output(body, 3), skip = ent_body_cast(body, ent_body_input(body, 1), wide);
    x = ent_body_cast(body, x, wide);
    bool direct = wide == dtype;
    uint32_t sum = ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, x, skip, ENT_ID_NONE,
                                direct && bias == ENT_ID_NONE ? whole : ENT_ID_NONE);
    if (bias != ENT_ID_NONE)
        sum = ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, sum, ent_body_cast(body, bias, wide), ENT_ID_NONE,
                           direct ? whole : ENT_ID_NONE);
    if (!direct && whole != ENT_ID_NONE) ent_body_cast_to(body, sum, dtype, whole);
    return sum;
}

/* The norm of a wide value, brought to the type of the node's result. */
static bool finish_skip(ent_body *body, ent_layer_norm *n, bool centred) {
    uint32_t result = ent_body_output(body, 0), dtype = ent_body_value(body, ent_body_input(body, 0))->dtype;
    uint32_t wide = ent_body_wide(dtype);
    n->axis = ent_body_value(body, ent_body_input(body, 0))->rank - 1;
    n->stash = wide;
    n->epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-12);
    n->out = wide == dtype ? result : ENT_ID_NONE;
    n->scale = ent_body_cast(body, ent_body_input(body, 2), wide);
    uint32_t y = centred ? ent_body_layer_norm(body, n) : ent_body_rms_norm(body, n);
    if (wide != dtype && result != ENT_ID_NONE) ent_body_cast_to(body, y, dtype, result);
    return true;
}

/* Mean and inverse deviation are f32: an f64 body would give them another type. */
static bool is_ready(const ent_body *body) {
    const ent_value *x = ent_body_value(body, ent_body_input(body, 0));
    return x->rank > 0 && x->dtype != ENT_DTYPE_F64;
}

bool ent_decompose_SkipLayerNormalization(ent_body *body) {
    if (!is_ready(body)) return false;
    uint32_t sum = sum_of(body, ent_body_input(body, 4));
    if (body->status) return true;
    ent_layer_norm n = {.x = sum,
                        .bias = ent_body_input(body, 3),
                        .out_mean = ent_body_output(body, 1),
                        .out_inverse = ent_body_output(body, 2)};
    return finish_skip(body, &n, true);
}

/* The mean is no part of it, so that nobody may read output 1. */
bool ent_decompose_SkipSimplifiedLayerNormalization(ent_body *body) {
    if (!is_ready(body) || ent_body_output(body, 1) != ENT_ID_NONE) return false;
    uint32_t sum = sum_of(body, ent_body_input(body, 3));
    if (body->status) return true;
    ent_layer_norm n = {
        .x = sum, .bias = ENT_ID_NONE, .out_mean = ENT_ID_NONE, .out_inverse = ent_body_output(body, 2)};
    return finish_skip(body, &n, false);
}

bool ent_decompose_SimplifiedLayerNormalization(ent_body *body) {
    uint32_t rank = ent_body_value(body, ent_body_input(body, 0))->rank;
    int64_t axis = ent_attrs_int(body->node.attrs, "axis", -1),
            stash = ent_attrs_int(body->node.attrs, "stash_type", ENT_DTYPE_F32);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || stash <= 0 || !ent_dtype_is_float((uint32_t)stash)) return false;
    ent_layer_norm n = {.x = ent_body_input(body, 0),
                        .scale = ent_body_input(body, 1),
                        .axis = (uint32_t)axis,
                        .stash = (uint32_t)stash,
                        .epsilon = ent_attrs_float(body->node.attrs, "epsilon", 1e-5),
                        .out = ent_body_output(body, 0),
                        .out_inverse = ent_body_output(body, 1)};
    ent_body_rms_norm(body, &n);
    return true;
}

/* ---- an operator with an activation behind it ---- */

/* Parameters of the activation, in order. */
typedef struct activation {
    uint32_t op; /* NONE: no activation */
    double parameter[2];
    uint32_t count;
} activation;

static bool read_activation(const ent_body *body, activation *out) {
    static const struct {
        const char *name;
        uint32_t op, parameters;
    } known[] = {{"", ENT_OP_NONE, 0},
                 {"Relu", ENT_OP_Relu, 0},
                 {"Tanh", ENT_OP_Tanh, 0},
                 {"Sigmoid", ENT_OP_Sigmoid, 0},
                 {"LeakyRelu", ENT_OP_LeakyRelu, 1},
                 {"Clip", ENT_OP_Clip, 2},
                 {"HardSigmoid", ENT_OP_HardSigmoid, 2}};
    const ent_attr *list = ent_attrs_find(body->node.attrs, "activation_params");
    out->parameter[0] = ent_attrs_float(body->node.attrs, "activation_alpha", 0);
    out->parameter[1] = ent_attrs_float(body->node.attrs, "activation_beta", 0);
    uint32_t given = ent_attrs_find(body->node.attrs, "activation_beta")    ? 2
                     : ent_attrs_find(body->node.attrs, "activation_alpha") ? 1
                                                                            : 0;
    if (list && list->type != ENT_ATTR_FLOATS) return false;
    if (list) given = list->count;
    for (uint32_t i = 0; list && i < given && i < 2; i++) out->parameter[i] = list->floats[i];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (ent_attrs_string_is(body->node.attrs, "activation", "", known[i].name)) {
            out->op = known[i].op;
            out->count = known[i].parameters;
            return given >= out->count;
        }
    return false;
}

static void add_activation(ent_body *body, const activation *a, uint32_t x, uint32_t result) {
    static const char *const names[2] = {"alpha", "beta"};
    ent_attr attrs[2];
    if (body->status) return;
    if (a->op == ENT_OP_Clip) {
        uint32_t dtype = ent_body_value(body, x)->dtype,
                 least = ent_body_scalar(body, dtype, a->parameter[0]);
        ent_body_add(body, a->op, ENT_NO_ATTRS, x, least, ent_body_scalar(body, dtype, a->parameter[1]),
                     result);
        return;
    }
    for (uint32_t i = 0; i < a->count; i++) attrs[i] = ent_attr_float(names[i], a->parameter[i]);
    ent_body_add(body, a->op, ent_attrs_make(body->module, attrs, a->count), x, ENT_ID_NONE, ENT_ID_NONE,
                 result);
}

/* The node's attributes without those of the activation. */
static ent_attrs without_activation(const ent_body *body) {
    ent_attr kept[16];
    uint32_t count = 0;
    for (uint32_t i = 0; i < body->node.attrs.count && count < 16; i++) {
        const ent_attr *attr = &body->node.attrs.items[i];
        if (attr->name.size < 10 || memcmp(attr->name.data, "activation", 10) != 0) kept[count++] = *attr;
    }
    return ent_attrs_make(body->module, kept, count);
}

static bool with_activation(ent_body *body, uint32_t op, uint32_t sum) {
    activation a;
    uint32_t result = ent_body_output(body, 0);
    if (!read_activation(body, &a)) return false;
    bool last = a.op == ENT_OP_NONE;
    uint32_t x =
        ent_body_add(body, op, without_activation(body), ent_body_input(body, 0), ent_body_input(body, 1),
                     ent_body_input(body, 2), last && sum == ENT_ID_NONE ? result : ENT_ID_NONE);
    if (sum != ENT_ID_NONE)
        x = ent_body_add(body, ENT_OP_Add, ENT_NO_ATTRS, x, sum, ENT_ID_NONE, last ? result : ENT_ID_NONE);
    if (!last) add_activation(body, &a, x, result);
    return true;
}

bool ent_decompose_FusedGemm(ent_body *body) {
    return with_activation(body, ENT_OP_Gemm, ENT_ID_NONE);
}

bool ent_decompose_FusedConv(ent_body *body) {
    return with_activation(body, ENT_OP_Conv, ent_body_input(body, 3));
}
