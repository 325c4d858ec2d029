/* Tile operations of single operators. Constant scalars become parameters of a map where one exists, else a
 * FILL. */
#include <math.h>

#include "core/fusion/internal.h"

typedef struct unary_form {
    uint32_t op, map;
    const char *attr0, *attr1;
    double missing0, missing1;
    bool numbers; /* also on integers */
} unary_form;

static const unary_form unary_forms[] = {
    {ENT_OP_Abs, ENT_MAP_ABS, 0, 0, 0, 0, true},
    {ENT_OP_Neg, ENT_MAP_NEG, 0, 0, 0, 0, true},
    {ENT_OP_Sqrt, ENT_MAP_SQRT, 0, 0, 0, 0, false},
    {ENT_OP_Reciprocal, ENT_MAP_RECIPROCAL, 0, 0, 0, 0, false},
    {ENT_OP_Exp, ENT_MAP_EXP, 0, 0, 0, 0, false},
    {ENT_OP_Log, ENT_MAP_LOG, 0, 0, 0, 0, false},
    {ENT_OP_Erf, ENT_MAP_ERF, 0, 0, 0, 0, false},
    {ENT_OP_Tanh, ENT_MAP_TANH, 0, 0, 0, 0, false},
    {ENT_OP_Sigmoid, ENT_MAP_SIGMOID, 0, 0, 0, 0, false},
    {ENT_OP_Relu, ENT_MAP_RELU, 0, 0, 0, 0, true},
    {ENT_OP_LeakyRelu, ENT_MAP_LEAKY_RELU, "alpha", 0, 0.01, 0, false},
    {ENT_OP_Elu, ENT_MAP_ELU, "alpha", 0, 1, 0, false},
    {ENT_OP_Selu, ENT_MAP_SELU, "alpha", "gamma", 1.67326319217681884765625, 1.05070102214813232421875,
     false},
    {ENT_OP_HardSigmoid, ENT_MAP_HARD_SIGMOID, "alpha", "beta", 0.2, 0.5, false},
    {ENT_OP_Softplus, ENT_MAP_SOFTPLUS, 0, 0, 0, 0, false},
    {ENT_OP_Softsign, ENT_MAP_SOFTSIGN, 0, 0, 0, 0, false},
    {ENT_OP_Floor, ENT_MAP_FLOOR, 0, 0, 0, 0, false},
    {ENT_OP_Ceil, ENT_MAP_CEIL, 0, 0, 0, 0, false},
    {ENT_OP_Round, ENT_MAP_ROUND, 0, 0, 0, 0, false},
    {ENT_OP_Sign, ENT_MAP_SIGN, 0, 0, 0, 0, true},
    {ENT_OP_Sin, ENT_MAP_SIN, 0, 0, 0, 0, false},
    {ENT_OP_Cos, ENT_MAP_COS, 0, 0, 0, 0, false},
    {ENT_OP_HardSwish, ENT_MAP_HARD_SWISH, 0, 0, 0, 0, false},
    {ENT_OP_Mish, ENT_MAP_MISH, 0, 0, 0, 0, false},
};

static const struct binary_form {
    uint32_t op, map;
} binary_forms[] = {
    {ENT_OP_Add, ENT_MAP_ADD},         {ENT_OP_Sub, ENT_MAP_SUB},
    {ENT_OP_Mul, ENT_MAP_MUL},         {ENT_OP_Div, ENT_MAP_DIV},
    {ENT_OP_Pow, ENT_MAP_POW},         {ENT_OP_Mod, ENT_MAP_MOD},
    {ENT_OP_PRelu, ENT_MAP_PRELU},     {ENT_OP_Equal, ENT_MAP_EQUAL},
    {ENT_OP_Less, ENT_MAP_LESS},       {ENT_OP_Max, ENT_MAP_MAX},
    {ENT_OP_Min, ENT_MAP_MIN},         {ENT_OP_LessOrEqual, ENT_MAP_LESS_EQUAL},
    {ENT_OP_Sum, ENT_MAP_ADD},         {ENT_OP_Mean, ENT_MAP_ADD},
    {ENT_OP_Greater, ENT_MAP_GREATER}, {ENT_OP_And, ENT_MAP_AND},
    {ENT_OP_Or, ENT_MAP_OR},           {ENT_OP_GreaterOrEqual, ENT_MAP_GREATER_EQUAL},
    {ENT_OP_Xor, ENT_MAP_XOR},
};

static const unary_form *unary_of(uint32_t op) {
    for (size_t i = 0; i < sizeof unary_forms / sizeof unary_forms[0]; i++)
        if (unary_forms[i].op == op) return &unary_forms[i];
    return NULL;
}

static uint32_t binary_of(uint32_t op) {
    for (size_t i = 0; i < sizeof binary_forms / sizeof binary_forms[0]; i++)
        if (binary_forms[i].op == op) return binary_forms[i].map;
    return ENT_MAP_NONE;
}

static bool is_float(uint32_t dtype) {
    return dtype >= ENT_DTYPE_F32 && dtype <= ENT_DTYPE_F64;
}

static uint32_t dtype_of(const fusion_context *context, uint32_t value) {
    return fusion_value_of(context, value)->dtype;
}

static bool binary_supported(const fusion_context *context, const fusion_item *item) {
    uint32_t dtype = dtype_of(context, item->inputs[0]), map = binary_of(item->op);
    double exponent = 0;
    if (item->op == ENT_OP_Pow) {
        bool scalar = ent_value_scalar(context->module, item->inputs[1], &exponent);
        if (!is_float(dtype)) return scalar && exponent == 2;
        return scalar || dtype_of(context, item->inputs[1]) == dtype;
    }
    if (item->op == ENT_OP_Mean && !is_float(dtype)) return false;
    if (item->op == ENT_OP_Mod && (ent_attrs_int(item->attrs, "fmod", 0) != 0) != is_float(dtype))
        return false;
    const ent_ops_map_info *info = ent_ops_map_info_get(map);
    if (info->map_class == ENT_OPS_MAP_LOGIC) return dtype == ENT_DTYPE_BOOL;
    return info->map_class == ENT_OPS_MAP_COMPARE || dtype != ENT_DTYPE_BOOL;
}

bool fusion_emit_supported(const fusion_context *context, const fusion_item *item, const char **out_reason) {
    uint32_t dtype = dtype_of(context, item->inputs[0]);
    const unary_form *unary = unary_of(item->op);
    *out_reason = "the dtype has no such elementwise map";
    if (unary) return is_float(dtype) || (unary->numbers && dtype != ENT_DTYPE_BOOL);
    if (binary_of(item->op)) return binary_supported(context, item);
    switch (item->op) {
    case ENT_OP_Gelu:
    case ENT_OP_Celu:
    case ENT_OP_ThresholdedRelu:
    case ENT_OP_IsNaN:
    case ENT_OP_Tan:
        return is_float(dtype);
    case ENT_OP_Clip:
        return dtype != ENT_DTYPE_BOOL;
    case ENT_OP_Cast:
    case ENT_OP_CastLike:
    case ENT_OP_Where:
        return true;
    case ENT_OP_Not:
        return dtype == ENT_DTYPE_BOOL;
    default:
        *out_reason = "the operator has no elementwise map";
        return false;
    }
}

/* ---- emission ---- */

static uint32_t group_mask(fusion_body *body, uint32_t value) {
    return fusion_group_find(body->group, value)->mask;
}

static uint32_t result_tile(fusion_body *body, const fusion_item *item) {
    uint32_t out = item->outputs[0];
    return fusion_body_tile(body, dtype_of(body->group->context, out), (uint16_t)group_mask(body, out));
}

/* A tile to write the result to: the operand's own when nobody needs it any more. */
static uint32_t result_over(fusion_body *body, const fusion_item *item, uint32_t operand, uint32_t tile) {
    const fusion_value *from = fusion_group_find(body->group, operand),
                       *to = fusion_group_find(body->group, item->outputs[0]);
    fusion_context *context = body->group->context;
    if (!from || !to || from->mask != to->mask ||
        dtype_of(context, operand) != dtype_of(context, item->outputs[0]) ||
        !body->owned[from - body->group->values])
        return result_tile(body, item);
    return tile;
}

static void emit_scale(fusion_body *body, uint32_t dst, uint32_t src, double scale, double shift) {
    ent_tile_builder_map1(&body->builder, ENT_MAP_SCALE_SHIFT, dst, src, scale, shift);
}

/* x op constant as one map with parameters; false when there is none. `swapped`: the constant is the first
 * operand. */
static bool emit_with_scalar(fusion_body *body, const fusion_item *item, uint32_t operand, double c,
                             bool swapped) {
    uint32_t dtype = dtype_of(body->group->context, operand), map = ENT_MAP_SCALE_SHIFT;
    double f0 = 1, f1 = -0.0;
    int exponent = 0;
    if (item->op == ENT_OP_Pow && !swapped && c == 2)
        map = ENT_MAP_SQUARE;
    else if (!is_float(dtype) || isnan(c))
        return false;
    else if (item->op == ENT_OP_Add || item->op == ENT_OP_Sum)
        f1 = c;
    else if (item->op == ENT_OP_Sub)
        f0 = swapped ? -1 : 1, f1 = swapped ? c : -c;
    else if (item->op == ENT_OP_Mul)
        f0 = c;
    else if (item->op == ENT_OP_Div && swapped && c == 1)
        map = ENT_MAP_RECIPROCAL;
    else if (item->op == ENT_OP_Div && !swapped && c != 0 && isfinite(c) && fabs(frexp(c, &exponent)) == 0.5)
        f0 = 1 / c;
    else if (item->op == ENT_OP_Max)
        map = ENT_MAP_CLIP, f0 = c, f1 = INFINITY;
    else if (item->op == ENT_OP_Min)
        map = ENT_MAP_CLIP, f0 = -INFINITY, f1 = c;
    else if (item->op == ENT_OP_PRelu && !swapped)
        map = ENT_MAP_LEAKY_RELU, f0 = c;
    else if (item->op == ENT_OP_Pow && !swapped)
        map = c == 0.5 ? ENT_MAP_SQRT : ENT_MAP_POW_SCALAR, f0 = c;
    else
        return false;
    uint32_t src = fusion_body_read(body, operand), dst = result_over(body, item, operand, src);
    ent_tile_builder_map1(&body->builder, (ent_tile_map)map, dst, src, f0, f1);
    fusion_body_set(body, item->outputs[0], dst);
    return true;
}

static void emit_variadic(fusion_body *body, const fusion_item *item) {
    uint32_t first = item->inputs[0], sum = fusion_body_read(body, first);
    uint32_t dst = item->input_count == 1 ? sum : result_tile(body, item);
    for (uint32_t i = 1; i < item->input_count; i++) {
        ent_tile_builder_map2(&body->builder, (ent_tile_map)binary_of(item->op), dst, sum,
                              fusion_body_read(body, item->inputs[i]));
        sum = dst;
    }
    if (item->input_count == 1) {
        dst = result_tile(body, item);
        ent_tile_builder_map1(&body->builder, ENT_MAP_COPY, dst, sum, 0, 0);
    }
    if (item->op == ENT_OP_Mean) emit_scale(body, dst, dst, 1.0 / item->input_count, -0.0);
    fusion_body_set(body, item->outputs[0], dst);
}

static void emit_binary(fusion_body *body, const fusion_item *item) {
    const ent_module *module = body->group->context->module;
    double c = 0;
    if (item->input_count != 2 || item->op == ENT_OP_Mean) {
        emit_variadic(body, item);
        return;
    }
    uint32_t a = item->inputs[0], b = item->inputs[1];
    if (ent_value_scalar(module, b, &c) && fusion_group_find(body->group, a) &&
        emit_with_scalar(body, item, a, c, false))
        return;
    if (ent_value_scalar(module, a, &c) && fusion_group_find(body->group, b) &&
        emit_with_scalar(body, item, b, c, true))
        return;
    uint32_t left = fusion_body_read(body, a), right = fusion_body_read(body, b);
    uint32_t dst = result_over(body, item, a, left);
    if (dst != left) {
        /* the other operand may be free; result_over made a fresh tile then, which is only kept if needed */
        const fusion_value *from = fusion_group_find(body->group, b);
        if (from && body->owned[from - body->group->values] &&
            from->mask == group_mask(body, item->outputs[0]) &&
            dtype_of(body->group->context, b) == dtype_of(body->group->context, item->outputs[0])) {
            body->builder.values.count--;
            dst = right;
        }
    }
    ent_tile_builder_map2(&body->builder, (ent_tile_map)binary_of(item->op), dst, left, right);
    fusion_body_set(body, item->outputs[0], dst);
}

static void emit_bound(fusion_body *body, const fusion_item *item, uint32_t input, ent_tile_map map,
                       uint32_t *tile, uint32_t dst) {
    if (!fusion_item_reads(item, input)) return;
    ent_tile_builder_map2(&body->builder, map, dst, *tile, fusion_body_read(body, item->inputs[input]));
    *tile = dst;
}

static void emit_clip(fusion_body *body, const fusion_item *item) {
    const fusion_context *context = body->group->context;
    uint32_t operand = item->inputs[0], src = fusion_body_read(body, operand);
    double low = -INFINITY, high = INFINITY;
    bool known = is_float(dtype_of(context, operand));
    if (fusion_item_reads(item, 1)) known = known && ent_value_scalar(context->module, item->inputs[1], &low);
    if (fusion_item_reads(item, 2))
        known = known && ent_value_scalar(context->module, item->inputs[2], &high);
    uint32_t dst = result_over(body, item, operand, src);
    if (known)
        ent_tile_builder_map1(&body->builder, ENT_MAP_CLIP, dst, src, low, high);
    else {
        uint32_t before = src;
        emit_bound(body, item, 1, ENT_MAP_MAX, &src, dst);
        emit_bound(body, item, 2, ENT_MAP_MIN, &src, dst);
        if (src == before && src != dst) ent_tile_builder_map1(&body->builder, ENT_MAP_COPY, dst, src, 0, 0);
    }
    fusion_body_set(body, item->outputs[0], dst);
}

/* Operators that take two or three maps. */
static void emit_composed(fusion_body *body, const fusion_item *item) {
    const fusion_context *context = body->group->context;
    uint32_t operand = item->inputs[0], src = fusion_body_read(body, operand),
             dtype = dtype_of(context, operand);
    uint16_t mask = (uint16_t)group_mask(body, item->outputs[0]);
    uint32_t dst = fusion_body_tile(body, dtype_of(context, item->outputs[0]), mask);
    double alpha = ent_attrs_float(item->attrs, "alpha", 1);
    ent_tile_builder *b = &body->builder;
    if (item->op == ENT_OP_Celu) {
        emit_scale(body, dst, src, 1 / alpha, -0.0);
        ent_tile_builder_map1(b, ENT_MAP_ELU, dst, dst, 1, 0);
        emit_scale(body, dst, dst, alpha, -0.0);
    } else if (item->op == ENT_OP_ThresholdedRelu) {
        uint32_t bound = fusion_body_tile(body, dtype, 0),
                 above = fusion_body_tile(body, ENT_DTYPE_BOOL, mask);
        uint32_t zero = fusion_body_tile(body, dtype, 0);
        ent_tile_builder_fill(b, bound, alpha);
        ent_tile_builder_fill(b, zero, 0);
        ent_tile_builder_map2(b, ENT_MAP_GREATER, above, src, bound);
        ent_tile_builder_map3(b, ENT_MAP_SELECT, dst, above, src, zero);
    } else if (item->op == ENT_OP_IsNaN) {
        ent_tile_builder_map2(b, ENT_MAP_EQUAL, dst, src, src);
        ent_tile_builder_map1(b, ENT_MAP_NOT, dst, dst, 0, 0);
    } else {
        uint32_t cosine = fusion_body_tile(body, dtype, mask);
        ent_tile_builder_map1(b, ENT_MAP_SIN, dst, src, 0, 0);
        ent_tile_builder_map1(b, ENT_MAP_COS, cosine, src, 0, 0);
        ent_tile_builder_map2(b, ENT_MAP_DIV, dst, dst, cosine);
    }
    fusion_body_set(body, item->outputs[0], dst);
}

static void emit_unary(fusion_body *body, const fusion_item *item, uint32_t map, double f0, double f1) {
    uint32_t operand = item->inputs[0], src = fusion_body_read(body, operand);
    uint32_t dst = result_over(body, item, operand, src);
    ent_tile_builder_map1(&body->builder, (ent_tile_map)map, dst, src, f0, f1);
    fusion_body_set(body, item->outputs[0], dst);
}

void fusion_emit_elementwise(fusion_body *body, const fusion_item *item) {
    const unary_form *unary = unary_of(item->op);
    if (unary) {
        double f0 = unary->attr0 ? ent_attrs_float(item->attrs, unary->attr0, unary->missing0) : 0;
        double f1 = unary->attr1 ? ent_attrs_float(item->attrs, unary->attr1, unary->missing1) : 0;
        emit_unary(body, item, unary->map, f0, f1);
        return;
    }
    if (binary_of(item->op)) {
        emit_binary(body, item);
        return;
    }
    switch (item->op) {
    case ENT_OP_Gelu:
        emit_unary(body, item,
                   ent_attrs_string_is(item->attrs, "approximate", "none", "tanh") ? ENT_MAP_GELU_TANH
                                                                                   : ENT_MAP_GELU,
                   0, 0);
        break;
    case ENT_OP_Cast:
    case ENT_OP_CastLike:
        emit_unary(body, item, ENT_MAP_COPY, 0, 0);
        break;
    case ENT_OP_Not:
        emit_unary(body, item, ENT_MAP_NOT, 0, 0);
        break;
    case ENT_OP_Clip:
        emit_clip(body, item);
        break;
    case ENT_OP_Where: {
        uint32_t c = fusion_body_read(body, item->inputs[0]), x = fusion_body_read(body, item->inputs[1]);
        uint32_t y = fusion_body_read(body, item->inputs[2]), dst = result_tile(body, item);
        ent_tile_builder_map3(&body->builder, ENT_MAP_SELECT, dst, c, x, y);
        fusion_body_set(body, item->outputs[0], dst);
        break;
    }
    default:
        emit_composed(body, item);
        break;
    }
}
