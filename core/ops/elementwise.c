/* Elementwise operators: unary, binary, variadic. All walk strides; elements pass through chunks
 * of doubles or int64 on the stack. A double holds the result of any f32, f16 or bf16 sum, product, quotient
 * or root exactly enough that rounding it once more is rounding the true result. */
#include "core/ops/internal.h"

#include <math.h>

typedef struct chunked {
    uint32_t op, map;
    const ent_tensor *operand[3]; /* [0] is the output */
    double f[2];
    uint32_t bits;    /* of an integer element */
    bool unsigned_64; /* int64 values are to be read as uint64 */
    bool flag[2];
} chunked;

/* size: table */
static double unary_f64(const chunked *c, double x) {
    switch (c->op) {
    case ENT_OP_Celu:
        return (x > 0 ? x : 0) + (x < 0 ? c->f[0] * expm1(x / c->f[0]) : 0);
    case ENT_OP_ThresholdedRelu:
        return x > c->f[0] ? x : 0;
    case ENT_OP_Shrink:
        return x < -c->f[0] ? x + c->f[1] : x > c->f[0] ? x - c->f[1] : 0;
    case ENT_OP_Swish:
        return x / (1 + exp(-c->f[0] * x));
    case ENT_OP_IsNaN:
        return isnan(x);
    case ENT_OP_IsInf:
        return isinf(x) && (x > 0 ? c->flag[1] : c->flag[0]);
    case ENT_OP_Tan:
        return tan(x);
    case ENT_OP_Asin:
        return asin(x);
    case ENT_OP_Acos:
        return acos(x);
    case ENT_OP_Atan:
        return atan(x);
    case ENT_OP_Sinh:
        return sinh(x);
    case ENT_OP_Cosh:
        return cosh(x);
    case ENT_OP_Asinh:
        return asinh(x);
    case ENT_OP_Acosh:
        return acosh(x);
    case ENT_OP_Atanh:
        return atanh(x);
    default:
        return ent_ops_map_f64(c->map, c->f, x, 0, 0);
    }
}

/* The bias moves a double, which an int64 far from 0 is too coarse for: without one the value itself stays.
 */
static int64_t shrink_i64(const chunked *c, int64_t x) {
    double value = c->unsigned_64 ? (double)(uint64_t)x : (double)x, moved = unary_f64(c, value);
    int64_t result = 0;
    if (moved == value) return x;
    ent_ops_store_f64(&result, c->unsigned_64 ? ENT_DTYPE_U64 : ENT_DTYPE_I64, 0, moved);
    return result;
}

static int64_t unary_i64(const chunked *c, int64_t x) {
    if (c->op == ENT_OP_BitwiseNot) return ~x;
    if (c->op == ENT_OP_Shrink) return shrink_i64(c, x);
    if (c->unsigned_64 && c->op != ENT_OP_Neg) return c->op == ENT_OP_Sign ? x != 0 : x;
    return ent_ops_map_i64(c->map, c->f, x, 0, 0);
}

/* The Tile IR map with the same meaning, or NONE. */
/* size: table */
static uint32_t map_of(uint32_t op) {
    switch (op) {
    case ENT_OP_Abs:
        return ENT_MAP_ABS;
    case ENT_OP_Neg:
        return ENT_MAP_NEG;
    case ENT_OP_Sqrt:
        return ENT_MAP_SQRT;
    case ENT_OP_Reciprocal:
        return ENT_MAP_RECIPROCAL;
    case ENT_OP_Exp:
        return ENT_MAP_EXP;
    case ENT_OP_Log:
        return ENT_MAP_LOG;
    case ENT_OP_Erf:
        return ENT_MAP_ERF;
    case ENT_OP_Tanh:
        return ENT_MAP_TANH;
    case ENT_OP_Sigmoid:
        return ENT_MAP_SIGMOID;
    case ENT_OP_Relu:
        return ENT_MAP_RELU;
    case ENT_OP_LeakyRelu:
        return ENT_MAP_LEAKY_RELU;
    case ENT_OP_Elu:
        return ENT_MAP_ELU;
    case ENT_OP_Selu:
        return ENT_MAP_SELU;
    case ENT_OP_HardSigmoid:
        return ENT_MAP_HARD_SIGMOID;
    case ENT_OP_HardSwish:
        return ENT_MAP_HARD_SWISH;
    case ENT_OP_Gelu:
        return ENT_MAP_GELU;
    case ENT_OP_Mish:
        return ENT_MAP_MISH;
    case ENT_OP_Softplus:
        return ENT_MAP_SOFTPLUS;
    case ENT_OP_Softsign:
        return ENT_MAP_SOFTSIGN;
    case ENT_OP_Floor:
        return ENT_MAP_FLOOR;
    case ENT_OP_Ceil:
        return ENT_MAP_CEIL;
    case ENT_OP_Round:
        return ENT_MAP_ROUND;
    case ENT_OP_Sign:
        return ENT_MAP_SIGN;
    case ENT_OP_Not:
        return ENT_MAP_NOT;
    case ENT_OP_Sin:
        return ENT_MAP_SIN;
    case ENT_OP_Cos:
        return ENT_MAP_COS;
    case ENT_OP_Add:
    case ENT_OP_Sum:
    case ENT_OP_Mean:
        return ENT_MAP_ADD;
    case ENT_OP_Sub:
        return ENT_MAP_SUB;
    case ENT_OP_Mul:
        return ENT_MAP_MUL;
    case ENT_OP_Div:
        return ENT_MAP_DIV;
    case ENT_OP_Pow:
        return ENT_MAP_POW;
    case ENT_OP_Mod:
        return ENT_MAP_MOD;
    case ENT_OP_PRelu:
        return ENT_MAP_PRELU;
    case ENT_OP_Equal:
        return ENT_MAP_EQUAL;
    case ENT_OP_Less:
        return ENT_MAP_LESS;
    case ENT_OP_LessOrEqual:
        return ENT_MAP_LESS_EQUAL;
    case ENT_OP_Greater:
        return ENT_MAP_GREATER;
    case ENT_OP_GreaterOrEqual:
        return ENT_MAP_GREATER_EQUAL;
    case ENT_OP_And:
        return ENT_MAP_AND;
    case ENT_OP_Or:
        return ENT_MAP_OR;
    case ENT_OP_Xor:
        return ENT_MAP_XOR;
    case ENT_OP_Max:
        return ENT_MAP_MAX;
    case ENT_OP_Min:
        return ENT_MAP_MIN;
    default:
        return ENT_MAP_NONE;
    }
}

static void unary_run_f64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const chunked *c = context;
    const ent_tensor *to = c->operand[0], *from = c->operand[1];
    double x[ENT_OPS_CHUNK];
    for (int64_t done = 0; done < count; done += ENT_OPS_CHUNK) {
        int64_t n = count - done < ENT_OPS_CHUNK ? count - done : ENT_OPS_CHUNK;
        ent_ops_load_run_f64(from->data, from->dtype, offset[1] + done * stride[1], stride[1], n, x);
        if (c->map == ENT_MAP_RELU)
            for (int64_t i = 0; i < n; i++) x[i] = x[i] < 0 ? 0 : x[i];
        else
            for (int64_t i = 0; i < n; i++) x[i] = unary_f64(c, x[i]);
        ent_ops_store_run_f64(to->data, to->dtype, offset[0] + done * stride[0], stride[0], n, x);
    }
}

static void unary_run_i64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const chunked *c = context;
    const ent_tensor *to = c->operand[0], *from = c->operand[1];
    int64_t x[ENT_OPS_CHUNK];
    for (int64_t done = 0; done < count; done += ENT_OPS_CHUNK) {
        int64_t n = count - done < ENT_OPS_CHUNK ? count - done : ENT_OPS_CHUNK;
        ent_ops_load_run_i64(from->data, from->dtype, offset[1] + done * stride[1], stride[1], n, x);
        for (int64_t i = 0; i < n; i++) x[i] = unary_i64(c, x[i]);
        ent_ops_store_run_i64(to->data, to->dtype, offset[0] + done * stride[0], stride[0], n, x);
    }
}

static bool is_integer(uint32_t dtype) {
    return ent_ops_dtype_in(dtype, ENT_OPS_INTEGERS | ENT_OPS_BOOL);
}

static void unary_parameters(const ent_ops_call *call, chunked *c) {
    ent_attrs attrs = call->attrs;
    switch (call->op) {
    case ENT_OP_LeakyRelu:
        c->f[0] = ent_attrs_float(attrs, "alpha", 0.01);
        break;
    case ENT_OP_Selu:
        c->f[0] = ent_attrs_float(attrs, "alpha", 1.67326319217681884765625);
        c->f[1] = ent_attrs_float(attrs, "gamma", 1.05070102214813232421875);
        break;
    case ENT_OP_HardSigmoid:
        c->f[0] = ent_attrs_float(attrs, "alpha", 0.2);
        c->f[1] = ent_attrs_float(attrs, "beta", 0.5);
        break;
    case ENT_OP_Shrink:
        c->f[0] = ent_attrs_float(attrs, "lambd", 0.5);
        c->f[1] = ent_attrs_float(attrs, "bias", 0);
        break;
    case ENT_OP_Gelu:
        if (ent_attrs_string_is(attrs, "approximate", "none", "tanh")) c->map = ENT_MAP_GELU_TANH;
        break;
    default:
        c->f[0] = ent_attrs_float(attrs, "alpha", 1);
        break;
    }
    c->flag[0] = ent_attrs_int(attrs, "detect_negative", 1) != 0;
    c->flag[1] = ent_attrs_int(attrs, "detect_positive", 1) != 0;
}

ent_code ent_ops_unary(ent_ops_call *call) {
    chunked c = {.op = call->op,
                 .map = map_of(call->op),
                 .operand = {ent_ops_output(call, 0), ent_ops_input(call, 0)}};
    if (!c.operand[0]) return ENT_OK;
    c.unsigned_64 = c.operand[1]->dtype == ENT_DTYPE_U64;
    unary_parameters(call, &c);
    ent_ops_walk(c.operand, 2, is_integer(c.operand[1]->dtype) ? unary_run_i64 : unary_run_f64, &c);
    return ENT_OK;
}

static uint64_t integer_power(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

/* Exact while it fits; a negative exponent truncates the true value. */
static int64_t power_i64(int64_t base, int64_t exponent) {
    if (exponent >= 0) return (int64_t)integer_power((uint64_t)base, (uint64_t)exponent);
    if (base == 1) return 1;
    if (base == -1) return exponent & 1 ? -1 : 1;
    return 0;
}

static int64_t shift(const chunked *c, uint64_t value, uint64_t by) {
    if (by >= c->bits) return 0;
    return (int64_t)(c->flag[0] ? value << by : value >> by);
}

/* uint64 where it differs from int64. */
/* size: table */
static int64_t binary_u64(const chunked *c, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (c->op) {
    case ENT_OP_Div:
        return y == 0 ? 0 : (int64_t)(x / y);
    case ENT_OP_Mod:
        return y == 0 ? 0 : (int64_t)(x % y);
    case ENT_OP_Less:
        return x < y;
    case ENT_OP_LessOrEqual:
        return x <= y;
    case ENT_OP_Greater:
        return x > y;
    case ENT_OP_GreaterOrEqual:
        return x >= y;
    case ENT_OP_Max:
        return x > y ? a : b;
    case ENT_OP_Min:
        return x < y ? a : b;
    case ENT_OP_PRelu:
        return a;
    default:
        return ent_ops_map_i64(c->map, c->f, a, b, 0);
    }
}

/* size: table */
static int64_t binary_i64(const chunked *c, int64_t a, int64_t b) {
    switch (c->op) {
    case ENT_OP_BitwiseAnd:
        return a & b;
    case ENT_OP_BitwiseOr:
        return a | b;
    case ENT_OP_BitwiseXor:
        return a ^ b;
    case ENT_OP_BitShift:
        return shift(c, (uint64_t)a, (uint64_t)b);
    case ENT_OP_Pow:
        return power_i64(a, b);
    case ENT_OP_Mod:
        if (!c->flag[0] || c->unsigned_64) break;
        return b == 0 || b == -1 ? 0 : a % b;
    default:
        break;
    }
    return c->unsigned_64 ? binary_u64(c, a, b) : ent_ops_map_i64(c->map, c->f, a, b, 0);
}

static void binary_chunk_f64(const chunked *c, int64_t n, double *x, const double *y) {
    switch (c->map) {
    case ENT_MAP_ADD:
        for (int64_t i = 0; i < n; i++) x[i] += y[i];
        break;
    case ENT_MAP_SUB:
        for (int64_t i = 0; i < n; i++) x[i] -= y[i];
        break;
    case ENT_MAP_MUL:
        for (int64_t i = 0; i < n; i++) x[i] *= y[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) x[i] = ent_ops_map_f64(c->map, c->f, x[i], y[i], 0);
        break;
    }
}

static void binary_run_f64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const chunked *c = context;
    const ent_tensor *to = c->operand[0], *a = c->operand[1], *b = c->operand[2];
    double x[ENT_OPS_CHUNK], y[ENT_OPS_CHUNK];
    for (int64_t done = 0; done < count; done += ENT_OPS_CHUNK) {
        int64_t n = count - done < ENT_OPS_CHUNK ? count - done : ENT_OPS_CHUNK;
        ent_ops_load_run_f64(a->data, a->dtype, offset[1] + done * stride[1], stride[1], n, x);
        ent_ops_load_run_f64(b->data, b->dtype, offset[2] + done * stride[2], stride[2], n, y);
        binary_chunk_f64(c, n, x, y);
        ent_ops_store_run_f64(to->data, to->dtype, offset[0] + done * stride[0], stride[0], n, x);
    }
}

static void binary_run_i64(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const chunked *c = context;
    const ent_tensor *to = c->operand[0], *a = c->operand[1], *b = c->operand[2];
    int64_t x[ENT_OPS_CHUNK], y[ENT_OPS_CHUNK];
    for (int64_t done = 0; done < count; done += ENT_OPS_CHUNK) {
        int64_t n = count - done < ENT_OPS_CHUNK ? count - done : ENT_OPS_CHUNK;
        ent_ops_load_run_i64(a->data, a->dtype, offset[1] + done * stride[1], stride[1], n, x);
        ent_ops_load_run_i64(b->data, b->dtype, offset[2] + done * stride[2], stride[2], n, y);
        for (int64_t i = 0; i < n; i++) x[i] = binary_i64(c, x[i], y[i]);
        ent_ops_store_run_i64(to->data, to->dtype, offset[0] + done * stride[0], stride[0], n, x);
    }
}

static ent_code binary_check(ent_ops_call *call, uint32_t a, uint32_t b) {
    if (call->op == ENT_OP_Pow ? !ent_ops_dtype_in(b, ENT_OPS_NUMBERS) : a != b)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input dtypes %s and %s do not go together",
                              ent_dtype_name((ent_dtype)a), ent_dtype_name((ent_dtype)b));
    if (call->op == ENT_OP_Mod && !is_integer(a) && ent_attrs_int(call->attrs, "fmod", 0) == 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "floating point needs fmod = 1");
    return ENT_OK;
}

ent_code ent_ops_binary(ent_ops_call *call) {
    chunked c = {.op = call->op,
                 .map = map_of(call->op),
                 .operand = {ent_ops_output(call, 0), ent_ops_input(call, 0), ent_ops_input(call, 1)}};
    if (!c.operand[0]) return ENT_OK;
    uint32_t dtype = c.operand[1]->dtype;
    ent_code code = binary_check(call, dtype, c.operand[2]->dtype);
    if (code != ENT_OK) return code;
    c.bits = ent_dtype_bits((ent_dtype)dtype);
    c.unsigned_64 = dtype == ENT_DTYPE_U64;
    c.flag[0] = call->op == ENT_OP_BitShift ? ent_attrs_string_is(call->attrs, "direction", "", "LEFT")
                                            : ent_attrs_int(call->attrs, "fmod", 0) != 0;
    bool integers = is_integer(dtype) && is_integer(c.operand[2]->dtype);
    ent_ops_walk(c.operand, 3, integers ? binary_run_i64 : binary_run_f64, &c);
    return ENT_OK;
}

typedef struct accumulation {
    double *f64;
    int64_t *i64;
    chunked c;
} accumulation;

/* Operand 0 is the row-major accumulator, operand 1 the next input. */
static void accumulate_run(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    accumulation *a = context;
    const ent_tensor *from = a->c.operand[1];
    for (int64_t i = 0; i < count; i++) {
        int64_t to = offset[0] + i * stride[0], at = offset[1] + i * stride[1];
        if (a->f64)
            a->f64[to] = ent_ops_map_f64(a->c.map, a->c.f, a->f64[to],
                                         ent_ops_load_f64(from->data, from->dtype, at), 0);
        else
            a->i64[to] = binary_i64(&a->c, a->i64[to], ent_ops_load_i64(from->data, from->dtype, at));
    }
}

/* What the first input is combined with: it leaves every value as it is. */
static void accumulation_start(accumulation *a, int64_t count, uint32_t dtype) {
    uint32_t map = a->c.map;
    if (a->f64) {
        double start = map == ENT_MAP_MAX ? -INFINITY : map == ENT_MAP_MIN ? INFINITY : -0.0;
        for (int64_t i = 0; i < count; i++) a->f64[i] = start;
        return;
    }
    int64_t start = 0;
    if (map == ENT_MAP_MAX) start = dtype == ENT_DTYPE_U64 ? 0 : INT64_MIN;
    if (map == ENT_MAP_MIN) start = dtype == ENT_DTYPE_U64 ? -1 : INT64_MAX;
    for (int64_t i = 0; i < count; i++) a->i64[i] = start;
}

ent_code ent_ops_variadic(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    int64_t count = ent_ops_element_count(output);
    void *values = ent_ops_scratch(call, count, 8);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    bool integers = is_integer(output->dtype);
    accumulation a = {
        integers ? NULL : values, integers ? values : NULL, {.op = call->op, .map = map_of(call->op)}};
    a.c.unsigned_64 = output->dtype == ENT_DTYPE_U64;
    accumulation_start(&a, count, output->dtype);
    ent_tensor total = *output;
    total.dtype = ENT_DTYPE_F64;
    total.layout = ent_layout_plain(output->rank);
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i]->dtype != output->dtype)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u has another dtype than input 0",
                                  i);
        const ent_tensor *operands[2] = {&total, call->inputs[i]};
        a.c.operand[1] = call->inputs[i];
        ent_ops_walk(operands, 2, accumulate_run, &a);
    }
    if (call->op == ENT_OP_Mean && !integers)
        for (int64_t i = 0; i < count; i++) a.f64[i] /= call->input_count;
    if (integers)
        ent_ops_result_i64(output, a.i64);
    else
        ent_ops_result_f64(output, a.f64);
    return ENT_OK;
}
