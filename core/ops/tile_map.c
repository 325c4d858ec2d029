/* The elementwise functions of Tile IR on doubles and on 64-bit integers. */
#include <math.h>

#include "core/ops/ops.h"

static const ent_ops_map_info map_table[ENT_MAP_COUNT] = {
    [ENT_MAP_COPY] = {"copy", 1, ENT_OPS_MAP_CAST, 0},
    [ENT_MAP_NEG] = {"neg", 1, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_ABS] = {"abs", 1, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_SQRT] = {"sqrt", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_RSQRT] = {"rsqrt", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_RECIPROCAL] = {"reciprocal", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_EXP] = {"exp", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_LOG] = {"log", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_TANH] = {"tanh", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_SIGMOID] = {"sigmoid", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_ERF] = {"erf", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_RELU] = {"relu", 1, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_LEAKY_RELU] = {"leaky_relu", 1, ENT_OPS_MAP_FLOAT, 1},
    [ENT_MAP_ELU] = {"elu", 1, ENT_OPS_MAP_FLOAT, 1},
    [ENT_MAP_SELU] = {"selu", 1, ENT_OPS_MAP_FLOAT, 2},
    [ENT_MAP_HARD_SIGMOID] = {"hard_sigmoid", 1, ENT_OPS_MAP_FLOAT, 2},
    [ENT_MAP_HARD_SWISH] = {"hard_swish", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_GELU] = {"gelu", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_GELU_TANH] = {"gelu_tanh", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_SILU] = {"silu", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_MISH] = {"mish", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_SOFTPLUS] = {"softplus", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_SOFTSIGN] = {"softsign", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_CLIP] = {"clip", 1, ENT_OPS_MAP_NUMBER, 2},
    [ENT_MAP_FLOOR] = {"floor", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_CEIL] = {"ceil", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_ROUND] = {"round", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_SIGN] = {"sign", 1, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_NOT] = {"not", 1, ENT_OPS_MAP_LOGIC, 0},
    [ENT_MAP_SIN] = {"sin", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_COS] = {"cos", 1, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_SQUARE] = {"square", 1, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_SCALE_SHIFT] = {"scale_shift", 1, ENT_OPS_MAP_FLOAT, 2},
    [ENT_MAP_POW_SCALAR] = {"pow_scalar", 1, ENT_OPS_MAP_FLOAT, 1},
    [ENT_MAP_ADD] = {"add", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_SUB] = {"sub", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_MUL] = {"mul", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_DIV] = {"div", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_MAX] = {"max", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_MIN] = {"min", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_POW] = {"pow", 2, ENT_OPS_MAP_FLOAT, 0},
    [ENT_MAP_MOD] = {"mod", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_PRELU] = {"prelu", 2, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_EQUAL] = {"equal", 2, ENT_OPS_MAP_COMPARE, 0},
    [ENT_MAP_LESS] = {"less", 2, ENT_OPS_MAP_COMPARE, 0},
    [ENT_MAP_LESS_EQUAL] = {"less_equal", 2, ENT_OPS_MAP_COMPARE, 0},
    [ENT_MAP_GREATER] = {"greater", 2, ENT_OPS_MAP_COMPARE, 0},
    [ENT_MAP_GREATER_EQUAL] = {"greater_equal", 2, ENT_OPS_MAP_COMPARE, 0},
    [ENT_MAP_AND] = {"and", 2, ENT_OPS_MAP_LOGIC, 0},
    [ENT_MAP_OR] = {"or", 2, ENT_OPS_MAP_LOGIC, 0},
    [ENT_MAP_XOR] = {"xor", 2, ENT_OPS_MAP_LOGIC, 0},
    [ENT_MAP_FMA] = {"fma", 3, ENT_OPS_MAP_NUMBER, 0},
    [ENT_MAP_SELECT] = {"select", 3, ENT_OPS_MAP_SELECT, 0},
};

const ent_ops_map_info *ent_ops_map_info_get(uint32_t map) {
    return map > ENT_MAP_NONE && map < ENT_MAP_COUNT ? &map_table[map] : NULL;
}

static double maximum(double a, double b) {
    return isnan(a) || a > b ? a : b;
}

static double minimum(double a, double b) {
    return isnan(a) || a < b ? a : b;
}

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* exp(x) overflows long before x + log(1 + exp(-x)) does. */
static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double gelu_tanh(double x) {
    const double scale = 0.7978845608028654; /* sqrt(2 / pi) */
    return 0.5 * x * (1.0 + tanh(scale * (x + 0.044715 * x * x * x)));
}

static double sign(double x) {
    return x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x;
}

/* size: table */
static double map_one(uint32_t map, const double *f, double x) {
    switch (map) {
    case ENT_MAP_COPY:
        return x;
    case ENT_MAP_NEG:
        return -x;
    case ENT_MAP_ABS:
        return fabs(x);
    case ENT_MAP_SQRT:
        return sqrt(x);
    case ENT_MAP_RSQRT:
        return 1.0 / sqrt(x);
    case ENT_MAP_RECIPROCAL:
        return 1.0 / x;
    case ENT_MAP_EXP:
        return exp(x);
    case ENT_MAP_LOG:
        return log(x);
    case ENT_MAP_TANH:
        return tanh(x);
    case ENT_MAP_SIGMOID:
        return sigmoid(x);
    case ENT_MAP_ERF:
        return erf(x);
    case ENT_MAP_RELU:
        return x < 0 ? 0.0 : x;
    case ENT_MAP_LEAKY_RELU:
        return x < 0 ? f[0] * x : x;
    case ENT_MAP_ELU:
        return x < 0 ? f[0] * expm1(x) : x;
    case ENT_MAP_SELU:
        return f[1] * (x < 0 ? f[0] * expm1(x) : x);
    case ENT_MAP_HARD_SIGMOID:
        return minimum(maximum(f[0] * x + f[1], 0.0), 1.0);
    case ENT_MAP_HARD_SWISH:
        return x * minimum(maximum(x / 6.0 + 0.5, 0.0), 1.0);
    case ENT_MAP_GELU:
        return 0.5 * x * (1.0 + erf(x * 0.7071067811865476));
    case ENT_MAP_GELU_TANH:
        return gelu_tanh(x);
    case ENT_MAP_SILU:
        return x * sigmoid(x);
    case ENT_MAP_MISH:
        return x * tanh(softplus(x));
    case ENT_MAP_SOFTPLUS:
        return softplus(x);
    case ENT_MAP_SOFTSIGN:
        return x / (1.0 + fabs(x));
    case ENT_MAP_CLIP:
        return minimum(maximum(x, f[0]), f[1]);
    case ENT_MAP_FLOOR:
        return floor(x);
    case ENT_MAP_CEIL:
        return ceil(x);
    case ENT_MAP_ROUND:
        return rint(x);
    case ENT_MAP_SIGN:
        return sign(x);
    case ENT_MAP_NOT:
        return x == 0;
    case ENT_MAP_SIN:
        return sin(x);
    case ENT_MAP_COS:
        return cos(x);
    case ENT_MAP_SQUARE:
        return x * x;
    case ENT_MAP_SCALE_SHIFT:
        return x * f[0] + f[1];
    case ENT_MAP_POW_SCALAR:
        return pow(x, f[0]);
    default:
        return 0;
    }
}

/* size: table */
double ent_ops_map_f64(uint32_t map, const double *f, double a, double b, double c) {
    switch (map) {
    case ENT_MAP_ADD:
        return a + b;
    case ENT_MAP_SUB:
        return a - b;
    case ENT_MAP_MUL:
        return a * b;
    case ENT_MAP_DIV:
        return a / b;
    case ENT_MAP_MAX:
        return maximum(a, b);
    case ENT_MAP_MIN:
        return minimum(a, b);
    case ENT_MAP_POW:
        return pow(a, b);
    case ENT_MAP_MOD:
        return fmod(a, b);
    case ENT_MAP_PRELU:
        return a < 0 ? a * b : a;
    case ENT_MAP_EQUAL:
        return a == b;
    case ENT_MAP_LESS:
        return a < b;
    case ENT_MAP_LESS_EQUAL:
        return a <= b;
    case ENT_MAP_GREATER:
        return a > b;
    case ENT_MAP_GREATER_EQUAL:
        return a >= b;
    case ENT_MAP_AND:
        return a != 0 && b != 0;
    case ENT_MAP_OR:
        return a != 0 || b != 0;
    case ENT_MAP_XOR:
        return (a != 0) != (b != 0);
    case ENT_MAP_FMA:
        return a * b + c;
    case ENT_MAP_SELECT:
        return a != 0 ? b : c;
    default:
        return map_one(map, f, a);
    }
}

static int64_t wrap_add(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t wrap_mul(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t wrap_neg(int64_t a) {
    return (int64_t)(0 - (uint64_t)a);
}

static int64_t divide(int64_t a, int64_t b) {
    if (b == 0) return 0;
    return b == -1 ? wrap_neg(a) : a / b;
}

static int64_t modulo(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t clip(int64_t x, const double *f) {
    if ((double)x < f[0]) x = f[0] < 9.2e18 ? (int64_t)f[0] : INT64_MAX;
    if ((double)x > f[1]) x = f[1] > -9.2e18 ? (int64_t)f[1] : INT64_MIN;
    return x;
}

/* size: table */
int64_t ent_ops_map_i64(uint32_t map, const double *f, int64_t a, int64_t b, int64_t c) {
    switch (map) {
    case ENT_MAP_COPY:
        return a;
    case ENT_MAP_NEG:
        return wrap_neg(a);
    case ENT_MAP_ABS:
        return a < 0 ? wrap_neg(a) : a;
    case ENT_MAP_RELU:
        return a < 0 ? 0 : a;
    case ENT_MAP_CLIP:
        return clip(a, f);
    case ENT_MAP_SIGN:
        return (a > 0) - (a < 0);
    case ENT_MAP_NOT:
        return a == 0;
    case ENT_MAP_SQUARE:
        return wrap_mul(a, a);
    case ENT_MAP_ADD:
        return wrap_add(a, b);
    case ENT_MAP_SUB:
        return wrap_add(a, wrap_neg(b));
    case ENT_MAP_MUL:
        return wrap_mul(a, b);
    case ENT_MAP_DIV:
        return divide(a, b);
    case ENT_MAP_MAX:
        return a > b ? a : b;
    case ENT_MAP_MIN:
        return a < b ? a : b;
    case ENT_MAP_MOD:
        return modulo(a, b);
    case ENT_MAP_PRELU:
        return a < 0 ? wrap_mul(a, b) : a;
    case ENT_MAP_EQUAL:
        return a == b;
    case ENT_MAP_LESS:
        return a < b;
    case ENT_MAP_LESS_EQUAL:
        return a <= b;
    case ENT_MAP_GREATER:
        return a > b;
    case ENT_MAP_GREATER_EQUAL:
        return a >= b;
    case ENT_MAP_AND:
        return a != 0 && b != 0;
    case ENT_MAP_OR:
        return a != 0 || b != 0;
    case ENT_MAP_XOR:
        return (a != 0) != (b != 0);
    case ENT_MAP_FMA:
        return wrap_add(wrap_mul(a, b), c);
    case ENT_MAP_SELECT:
        return a != 0 ? b : c;
    default:
        return 0;
    }
}
