/* Products of dequantized bytes become products of the bytes:
 *   DQ(a) DQ(b) = sa sb (sum (a - za) (b - zb)),
 * the sum in 32-bit integers, exactly, the factor and a bias after it in f32. So do QLinearMatMul and
 * QLinearConv, with the rounding that they mean behind. A zero point of A that is computed leaves
 * MatMulInteger: sum (a - za) (b - zb) = sum a (b - zb) - za sum (b - zb). The first pass, because folding
 * would make floats of constant weights. Depthwise convolutions stay on floats, which hold their short sums
 * exactly. Not when strict: the sum was rounded where it now is exact. */
#include "core/rewrite/internal.h"

#include <string.h>

/* A value that DequantizeLinear makes of bytes, with a constant scale and one constant zero point. */
typedef struct bytes {
    uint32_t value, zero; /* the bytes; the zero point as one number, or NONE */
    const ent_tensor *scale;
    int64_t axis; /* of a list of scales, -1: one scale */
    uint32_t rank;
    int64_t dims[ENT_MAX_RANK];
} bytes;

static bool is_byte(uint32_t dtype) {
    return dtype == ENT_DTYPE_I8 || dtype == ENT_DTYPE_U8;
}

static int64_t count_of(const ent_tensor *tensor) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) count *= tensor->dims[i];
    return count;
}

/* One number for the whole tensor: a scalar constant in *out, NONE for zero. */
static bool one_zero_point(ent_rewrite_context *context, uint32_t graph, uint32_t value, uint32_t *out) {
    *out = ENT_ID_NONE;
    if (value == ENT_ID_NONE) return true;
    const ent_tensor *zero = ent_rewrite_tensor(context, value);
    if (!zero || !is_byte(zero->dtype) || count_of(zero) < 1) return false;
    const uint8_t *items = zero->data;
    for (int64_t i = 1; i < count_of(zero); i++)
        if (items[i] != items[0]) return false;
    if (items[0] != 0)
        *out = ent_module_add_constant(context->module, graph, NULL, zero->dtype, 0, NULL, items, 1, false);
    return true;
}

static bool read_bytes(ent_rewrite_context *context, uint32_t value, bytes *out) {
    const ent_node *node = ent_rewrite_producer(context, value);
    if (!node || node->op != ENT_OP_DequantizeLinear || ent_attrs_int(node->attrs, "block_size", 0) != 0)
        return false;
    const ent_value *q = ent_module_value(context->module, node->inputs[0]),
                    *real = ent_module_value(context->module, value);
    out->value = node->inputs[0];
    out->scale = ent_rewrite_float_tensor(context, node->inputs[1]);
    out->rank = q->rank;
    memcpy(out->dims, q->dims, sizeof out->dims);
    out->axis = -1;
    if (!is_byte(q->dtype) || real->dtype != ENT_DTYPE_F32 || !ent_value_static(context->module, out->value))
        return false;
    if (!out->scale || out->scale->dtype != ENT_DTYPE_F32 || out->scale->rank > 1) return false;
    if (count_of(out->scale) != 1) {
        out->axis = ent_attrs_int(node->attrs, "axis", 1);
        if (out->axis < 0) out->axis += q->rank;
    }
    return one_zero_point(context, node->graph, ent_rewrite_input(node, 2), &out->zero);
}

typedef struct product {
    bytes a, b;
    uint32_t node, graph, bias; /* bias NONE: none */
    uint32_t op;
    int64_t column_axis; /* of b */
    int64_t depth;       /* products in one sum */
    uint32_t trailing;   /* axes of the result behind the columns */
    bool turned;         /* b is n x k */
    bool depthwise;      /* one channel a sum */
    double alpha;
    const ent_tensor *y_scale; /* of a quantized result; NULL: a float */
    double y_zero;
    uint32_t y_dtype;
} product;

#define FLOAT_SUMS (1 << 24) /* integers up to here are exact in f32 */

static bool sums_fit(const product *p) {
    return p->depth > 0 && p->depth <= INT32_MAX / (255 * 255);
}

static bool shape_matmul(const ent_node *node, product *p) {
    (void)node;
    p->op = ENT_OP_MatMulInteger;
    if (p->a.rank < 2 || p->b.rank < 2) return false;
    p->column_axis = p->b.rank - 1;
    p->depth = p->a.dims[p->a.rank - 1];
    return true;
}

static bool shape_gemm(const ent_node *node, product *p) {
    p->op = ENT_OP_MatMulInteger;
    p->bias = ent_rewrite_input(node, 2);
    p->alpha = ent_attrs_float(node->attrs, "alpha", 1);
    p->turned = ent_attrs_int(node->attrs, "transB", 0) != 0;
    p->column_axis = p->turned ? 0 : 1;
    p->depth = p->a.rank == 2 ? p->a.dims[1] : 0;
    return p->b.rank == 2 && ent_attrs_int(node->attrs, "transA", 0) == 0 &&
           (p->bias == ENT_ID_NONE || ent_attrs_float(node->attrs, "beta", 1) == 1);
}

static bool shape_conv(const ent_node *node, product *p) {
    p->op = ENT_OP_ConvInteger;
    p->bias = ent_rewrite_input(node, 2);
    p->column_axis = 0;
    p->depth = 1;
    if (p->b.rank < 3) return false;
    for (uint32_t i = 1; i < p->b.rank; i++) p->depth *= p->b.dims[i] < INT32_MAX ? p->b.dims[i] : INT32_MAX;
    p->trailing = p->b.rank - 2;
    p->depthwise = p->b.dims[1] == 1 && ent_attrs_int(node->attrs, "group", 1) > 1;
    return true;
}

static bool read_product(ent_rewrite_context *context, uint32_t id, product *p) {
    const ent_node *node = ent_module_node(context->module, id);
    bool (*shape)(const ent_node *, product *) = node->op == ENT_OP_MatMul ? shape_matmul
                                                 : node->op == ENT_OP_Gemm ? shape_gemm
                                                 : node->op == ENT_OP_Conv ? shape_conv
                                                                           : NULL;
    *p = (product){.node = id, .graph = node->graph, .bias = ENT_ID_NONE, .alpha = 1};
    if (!shape || !read_bytes(context, node->inputs[0], &p->a) ||
        !read_bytes(context, node->inputs[1], &p->b))
        return false;
    if (!shape(node, p) || !sums_fit(p) || p->a.axis >= 0 || p->depthwise) return false;
    return p->b.axis < 0 || p->b.axis == p->column_axis;
}

/* ---- QLinearMatMul, QLinearConv ---- */

/* An operand of `node` with its scale and zero point, inputs `first` and on. */
static bool read_operand(ent_rewrite_context *context, const ent_node *node, uint32_t first, bytes *out) {
    const ent_value *q = ent_module_value(context->module, node->inputs[first]);
    *out = (bytes){.value = node->inputs[first], .axis = -1, .rank = q->rank};
    memcpy(out->dims, q->dims, sizeof out->dims);
    out->scale = ent_rewrite_float_tensor(context, ent_rewrite_input(node, first + 1));
    return is_byte(q->dtype) && ent_value_static(context->module, out->value) && out->scale &&
           out->scale->dtype == ENT_DTYPE_F32 && out->scale->rank <= 1 &&
           one_zero_point(context, node->graph, ent_rewrite_input(node, first + 2), &out->zero);
}

/* 32-bit sums with the bias in them must not overflow. */
static bool bias_fits(const ent_rewrite_context *context, const product *p) {
    const ent_tensor *bias = ent_rewrite_tensor(context, p->bias);
    if (p->bias == ENT_ID_NONE) return true;
    if (!bias || bias->dtype != ENT_DTYPE_I32) return false;
    int64_t room = INT32_MAX - p->depth * (255 * 255);
    const int32_t *items = bias->data;
    for (int64_t i = 0; i < count_of(bias); i++)
        if (items[i] > room || items[i] < -room) return false;
    return true;
}

static bool read_quantized(ent_rewrite_context *context, uint32_t id, product *p) {
    const ent_node *node = ent_module_node(context->module, id);
    bool convolves = node->op == ENT_OP_QLinearConv;
    double scale;
    *p = (product){.node = id, .graph = node->graph, .bias = ENT_ID_NONE, .alpha = 1};
    if (!convolves && node->op != ENT_OP_QLinearMatMul) return false;
    if (!read_operand(context, node, 0, &p->a) || !read_operand(context, node, 3, &p->b)) return false;
    if (!(convolves ? shape_conv(node, p) : shape_matmul(node, p)) || !sums_fit(p)) return false;
    if (p->depthwise && p->depth > FLOAT_SUMS / (255 * 255)) return false;
    p->bias = convolves ? ent_rewrite_input(node, 8) : ENT_ID_NONE;
    p->y_scale = ent_rewrite_float_tensor(context, ent_rewrite_input(node, 6));
    p->y_dtype = ent_module_value(context->module, node->outputs[0])->dtype;
    if (count_of(p->b.scale) != 1) p->b.axis = p->column_axis;
    return count_of(p->a.scale) == 1 && p->y_scale && p->y_scale->dtype == ENT_DTYPE_F32 &&
           ent_value_scalar(context->module, node->inputs[6], &scale) && is_byte(p->y_dtype) &&
           ent_value_scalar(context->module, node->inputs[7], &p->y_zero) && bias_fits(context, p);
}

/* ---- both ---- */

/* sa * sb * alpha (/ sy), by column where b has a list of scales. */
static uint32_t make_factor(ent_rewrite_context *context, const product *p) {
    int64_t count = count_of(p->b.scale), dims[ENT_MAX_RANK] = {count};
    const float *b = p->b.scale->data;
    float a = *(const float *)p->a.scale->data,
          *factor = ent_arena_array(context->scratch, count, sizeof *factor);
    for (int64_t i = 0; i < count; i++) {
        factor[i] = (float)((double)a * b[i] * p->alpha);
        if (p->y_scale) factor[i] /= *(const float *)p->y_scale->data;
    }
    for (uint32_t i = 1; i <= p->trailing; i++) dims[i] = 1;
    return ent_module_add_constant(context->module, p->graph, NULL, ENT_DTYPE_F32,
                                   p->b.axis < 0 ? 0 : 1 + p->trailing, dims, factor,
                                   (uint64_t)count * sizeof *factor, false);
}

/* Adds a node that stands for the product's; a status that is set stays. */
static uint32_t add(ent_rewrite_context *context, const product *p, uint32_t op, ent_attrs attrs,
                    const uint32_t *inputs, uint32_t count, ent_status *status) {
    uint32_t value = ENT_ID_NONE;
    if (!*status) *status = ent_rewrite_add(context, op, attrs, inputs, count, p->node, &p->node, 1, &value);
    return value;
}

static uint32_t bias_by_channel(ent_rewrite_context *context, const product *p, ent_status *status) {
    int64_t dims[ENT_MAX_RANK] = {p->b.dims[0]};
    for (uint32_t i = 1; i <= p->trailing; i++) dims[i] = 1;
    if (p->trailing == 0) return p->bias;
    uint32_t inputs[2] = {p->bias, ent_module_add_i64s(context->module, p->graph, dims, 1 + p->trailing)};
    return add(context, p, ENT_OP_Reshape, (ent_attrs){0}, inputs, 2, status);
}

/* round(x) + zero point, cut to the range of the result. */
static uint32_t quantize(ent_rewrite_context *context, const product *p, uint32_t x, ent_status *status) {
    ent_module *module = context->module;
    ent_attr to = ent_attr_int("to", p->y_dtype);
    bool is_signed = p->y_dtype == ENT_DTYPE_I8;
    uint32_t inputs[3] = {add(context, p, ENT_OP_Round, (ent_attrs){0}, &x, 1, status)};
    if (p->y_zero != 0) {
        inputs[1] = ent_module_add_scalar(module, p->graph, ENT_DTYPE_F32, p->y_zero);
        inputs[0] = add(context, p, ENT_OP_Add, (ent_attrs){0}, inputs, 2, status);
    }
    inputs[1] = ent_module_add_scalar(module, p->graph, ENT_DTYPE_F32, is_signed ? -128 : 0);
    inputs[2] = ent_module_add_scalar(module, p->graph, ENT_DTYPE_F32, is_signed ? 127 : 255);
    x = add(context, p, ENT_OP_Clip, (ent_attrs){0}, inputs, 3, status);
    return add(context, p, ENT_OP_Cast, ent_attrs_make(module, &to, 1), &x, 1, status);
}

static uint32_t add_bias(ent_rewrite_context *context, const product *p, uint32_t x, ent_status *status) {
    if (p->bias == ENT_ID_NONE) return x;
    uint32_t inputs[2] = {x, bias_by_channel(context, p, status)};
    return add(context, p, ENT_OP_Add, (ent_attrs){0}, inputs, 2, status);
}

static uint32_t centred(ent_rewrite_context *context, const product *p, const bytes *x, ent_status *status) {
    ent_attr to = ent_attr_int("to", ENT_DTYPE_F32);
    ent_attrs cast = ent_attrs_make(context->module, &to, 1);
    double zero = 0;
    uint32_t inputs[2] = {add(context, p, ENT_OP_Cast, cast, &x->value, 1, status)};
    if (x->zero == ENT_ID_NONE || !ent_value_scalar(context->module, x->zero, &zero)) return inputs[0];
    inputs[1] = ent_module_add_scalar(context->module, p->graph, ENT_DTYPE_F32, zero);
    return add(context, p, ENT_OP_Sub, (ent_attrs){0}, inputs, 2, status);
}

/* A window's sums of integers, exactly, on the kernels for windows of floats. */
static uint32_t sum_in_floats(ent_rewrite_context *context, const product *p, ent_status *status) {
    ent_attrs attrs = ent_module_node(context->module, p->node)->attrs;
    ent_attr to = ent_attr_int("to", ENT_DTYPE_I32);
    uint32_t operands[2] = {centred(context, p, &p->a, status)};
    operands[1] = centred(context, p, &p->b, status);
    uint32_t sum = add(context, p, ENT_OP_Conv, attrs, operands, 2, status);
    return add(context, p, ENT_OP_Cast, ent_attrs_make(context->module, &to, 1), &sum, 1, status);
}

static ent_status become_integers(ent_rewrite_context *context, const product *p) {
    ent_module *module = context->module;
    ent_status status = NULL;
    const int64_t swap[2] = {1, 0};
    ent_attrs none = {0},
              attrs = p->op == ENT_OP_ConvInteger ? ent_module_node(module, p->node)->attrs : none;
    ent_attr to = ent_attr_int("to", ENT_DTYPE_F32), perm = ent_attr_ints(module, "perm", swap, 2);
    uint32_t b = p->b.value;
    if (p->turned) b = add(context, p, ENT_OP_Transpose, ent_attrs_make(module, &perm, 1), &b, 1, &status);
    uint32_t operands[4] = {p->a.value, b, p->a.zero, p->b.zero};
    uint32_t count = p->b.zero != ENT_ID_NONE ? 4 : p->a.zero != ENT_ID_NONE ? 3 : 2;
    uint32_t sum = p->depthwise ? sum_in_floats(context, p, &status)
                                : add(context, p, p->op, attrs, operands, count, &status);
    if (p->y_scale) sum = add_bias(context, p, sum, &status);
    sum = add(context, p, ENT_OP_Cast, ent_attrs_make(module, &to, 1), &sum, 1, &status);
    uint32_t scaled[2] = {sum, make_factor(context, p)};
    uint32_t result = add(context, p, ENT_OP_Mul, none, scaled, 2, &status);
    result = p->y_scale ? quantize(context, p, result, &status) : add_bias(context, p, result, &status);
    if (!status) ent_rewrite_forward(context, p->node, result);
    return status;
}

/* ---- MatMulInteger with a zero point that is computed ---- */

/* sum (b - zb) by column, in 32 bits that wrap. */
static uint32_t sum_columns(ent_rewrite_context *context, const ent_node *node, const ent_tensor *b,
                            int32_t zero) {
    int64_t columns = b->dims[1];
    int32_t *sums = ent_arena_array(context->scratch, columns, sizeof *sums);
    memset(sums, 0, (size_t)columns * sizeof *sums);
    for (int64_t i = 0; i < count_of(b); i++) {
        uint8_t byte = ((const uint8_t *)b->data)[i];
        uint32_t term = (uint32_t)((b->dtype == ENT_DTYPE_I8 ? (int8_t)byte : byte) - zero);
        sums[i % columns] = (int32_t)((uint32_t)sums[i % columns] + term);
    }
    return ent_module_add_constant(context->module, node->graph, NULL, ENT_DTYPE_I32, 1, &columns, sums,
                                   (uint64_t)columns * sizeof *sums, false);
}

static ent_status take_out_zero(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    if (node->op != ENT_OP_MatMulInteger) return NULL;
    product p = {.node = id, .graph = node->graph};
    uint32_t zero = ent_rewrite_input(node, 2), b_zero = ent_rewrite_input(node, 3), one;
    const ent_tensor *b = ent_rewrite_tensor(context, ent_rewrite_input(node, 1));
    double number = 0;
    if (zero == ENT_ID_NONE || ent_rewrite_tensor(context, zero)) return NULL;
    if (ent_value_elements(context->module, zero) != 1 || !b || b->rank != 2 || !is_byte(b->dtype) ||
        ent_module_value(context->module, node->inputs[0])->rank < 2 ||
        !one_zero_point(context, node->graph, b_zero, &one))
        return NULL;
    if (one != ENT_ID_NONE) ent_value_scalar(context->module, one, &number);
    ent_attr to = ent_attr_int("to", ENT_DTYPE_I32);
    ent_attrs cast = ent_attrs_make(context->module, &to, 1);
    ent_status status = NULL;
    uint32_t operands[4] = {node->inputs[0], node->inputs[1], ENT_ID_NONE, one},
             factors[2] = {ENT_ID_NONE, sum_columns(context, node, b, (int32_t)number)}, both[2];
    factors[0] = add(context, &p, ENT_OP_Cast, cast, &zero, 1, &status);
    both[1] = add(context, &p, ENT_OP_Mul, (ent_attrs){0}, factors, 2, &status);
    both[0] =
        add(context, &p, ENT_OP_MatMulInteger, (ent_attrs){0}, operands, one != ENT_ID_NONE ? 4 : 2, &status);
    uint32_t result = add(context, &p, ENT_OP_Sub, (ent_attrs){0}, both, 2, &status);
    if (!status) ent_rewrite_forward(context, id, result);
    return status;
}

/* ---- com.microsoft's products with a float result ---- */

/* operands of MatMulInteger, its sum times (a scale * b scale), plus bias (NONE: none). */
static ent_status spell_out(ent_rewrite_context *context, uint32_t id, const uint32_t *operands,
                            uint32_t a_scale, uint32_t b_scale, uint32_t bias) {
    const product p = {.node = id, .graph = ent_module_node(context->module, id)->graph};
    ent_attr to = ent_attr_int("to", ENT_DTYPE_F32);
    ent_attrs none = {0}, cast = ent_attrs_make(context->module, &to, 1);
    ent_status status = NULL;
    uint32_t count = operands[3] != ENT_ID_NONE ? 4 : operands[2] != ENT_ID_NONE ? 3 : 2;
    uint32_t sum = add(context, &p, ENT_OP_MatMulInteger, none, operands, count, &status);
    uint32_t scales[2] = {a_scale, b_scale}, scaled[2], biased[2];
    scaled[0] = add(context, &p, ENT_OP_Cast, cast, &sum, 1, &status);
    scaled[1] = add(context, &p, ENT_OP_Mul, none, scales, 2, &status);
    biased[0] = add(context, &p, ENT_OP_Mul, none, scaled, 2, &status);
    biased[1] = bias;
    uint32_t result =
        bias == ENT_ID_NONE ? biased[0] : add(context, &p, ENT_OP_Add, none, biased, 2, &status);
    if (!status) ent_rewrite_forward(context, id, result);
    return status;
}

static bool is_matrix(const ent_rewrite_context *context, uint32_t value, bool bytes) {
    const ent_value *v = ent_module_value(context->module, value);
    return v->rank != ENT_RANK_UNKNOWN && v->rank >= 2 &&
           (bytes ? is_byte(v->dtype) : v->dtype == ENT_DTYPE_F32);
}

static ent_status spell_out_product(ent_rewrite_context *context, uint32_t id, bool *out_done) {
    const ent_node node = *ent_module_node(context->module, id);
    bool dynamic = node.op == ENT_OP_DynamicQuantizeMatMul;
    *out_done = false;
    if (!dynamic && node.op != ENT_OP_MatMulIntegerToFloat) return NULL;
    if (!is_matrix(context, node.inputs[0], !dynamic) || !is_matrix(context, node.inputs[1], true))
        return NULL;
    if (ent_module_value(context->module, node.outputs[0])->dtype != ENT_DTYPE_F32) return NULL;
    *out_done = true;
    if (!dynamic) {
        uint32_t operands[4] = {node.inputs[0], node.inputs[1], ent_rewrite_input(&node, 4),
                                ent_rewrite_input(&node, 5)};
        return spell_out(context, id, operands, node.inputs[2], node.inputs[3], ent_rewrite_input(&node, 6));
    }
    ent_node_spec spec = {
        .op = ENT_OP_DynamicQuantizeLinear, .inputs = node.inputs, .input_count = 1, .output_count = 3};
    uint32_t quantize;
    ENT_TRY(ent_rewrite_add_node(context, &spec, id, &id, 1, &quantize));
    const uint32_t *made = ent_module_node(context->module, quantize)->outputs;
    uint32_t operands[4] = {made[0], node.inputs[1], made[2], ent_rewrite_input(&node, 3)};
    return spell_out(context, id, operands, made[1], node.inputs[2], ent_rewrite_input(&node, 4));
}

/* What the operator cannot do without is there, and the result is wanted. */
static bool is_whole(const ent_node *node) {
    const ent_op_info *info = ent_op_info_get(node->op);
    if (!info || node->output_count == 0 || node->outputs[0] == ENT_ID_NONE) return false;
    for (int32_t i = 0; i < info->min_inputs; i++)
        if (ent_rewrite_input(node, (uint32_t)i) == ENT_ID_NONE) return false;
    return true;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    product p;
    bool done;
    if (!is_whole(ent_module_node(context->module, id))) return NULL;
    if (read_product(context, id, &p) || read_quantized(context, id, &p)) return become_integers(context, &p);
    ENT_TRY(spell_out_product(context, id, &done));
    return done ? NULL : take_out_zero(context, id);
}

ent_status ent_rewrite_integer_products(ent_rewrite_context *context) {
    return context->options->strict ? NULL : ent_rewrite_each_node(context, visit);
}
