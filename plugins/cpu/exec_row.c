/* Rows of elementwise maps. What no kernel does in one go is composed from kernels in blocks that stay in L1;
 * what is left is scalar code by the definition in core/ops. */
#include "exec_row.h"

#define BLOCK 256 /* elements of a composed step */

static void spread(char *dst, int64_t n, uint32_t bytes) {
    if (bytes == 4) {
        uint32_t *to = (uint32_t *)(void *)dst;
        for (int64_t i = 1; i < n; i++) to[i] = to[0];
        return;
    }
    for (int64_t i = 1; i < n; i++) memcpy(dst + i * bytes, dst, bytes);
}

static void row_unary(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                      int64_t n) {
    m->unary((const float *)(const void *)src[0], (float *)(void *)dst, steps[0] ? n : 1, m->a, m->b);
    if (!steps[0]) spread(dst, n, 4);
}

static void row_copy(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                     int64_t n) {
    memmove(dst, src[0], (size_t)((steps[0] ? n : 1) * m->result_bytes));
    if (!steps[0]) spread(dst, n, m->result_bytes);
}

static void row_cast(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                     int64_t n) {
    m->cast(src[0], dst, steps[0] ? n : 1);
    if (!steps[0]) spread(dst, n, m->result_bytes);
}

static void row_binary(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                       int64_t n) {
    m->binary(src[m->swap], steps[m->swap], src[!m->swap], steps[!m->swap], dst, n);
}

static void row_fma(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                    int64_t n) {
    m->kernels->multiply_add((const float *)(const void *)src[0], steps[0],
                             (const float *)(const void *)src[1], steps[1],
                             (const float *)(const void *)src[2], steps[2], (float *)(void *)dst, n);
}

static void row_select(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                       int64_t n) {
    m->kernels->select((const uint8_t *)src[0], steps[0], src[1], steps[1], src[2], steps[2], dst, n,
                       m->result_bytes);
}

/* size: table */
static void row_scalar(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                       int64_t n) {
    bool floats = exec_is_float(m->dtype);
    for (int64_t i = 0; i < n; i++) {
        double x[3] = {0};
        int64_t k[3] = {0};
        for (uint32_t s = 0; s < m->sources; s++) {
            if (floats && !(m->map == ENT_MAP_SELECT && s == 0))
                x[s] = ent_ops_load_f64(src[s], m->dtype, i * steps[s]);
            else
                k[s] = ent_ops_load_i64(
                    src[s], m->map == ENT_MAP_SELECT && s == 0 ? ENT_DTYPE_BOOL : m->dtype, i * steps[s]);
        }
        if (m->map == ENT_MAP_COPY) {
            if (exec_is_float(m->result))
                ent_ops_store_f64(dst, m->result, i, floats ? x[0] : (double)k[0]);
            else if (!floats)
                ent_ops_store_i64(dst, m->result, i, m->result == ENT_DTYPE_BOOL ? k[0] != 0 : k[0]);
            else
                exec_element(m->result, x[0], dst + i * m->result_bytes);
            continue;
        }
        if (m->map == ENT_MAP_SELECT) x[0] = (double)k[0];
        double result = floats ? ent_ops_map_f64(m->map, m->f, x[0], x[1], x[2]) : 0;
        int64_t whole = floats ? (int64_t)(exec_is_float(m->result) ? 0 : result)
                               : ent_ops_map_i64(m->map, m->f, k[0], k[1], k[2]);
        if (exec_is_float(m->result))
            ent_ops_store_f64(dst, m->result, i, result);
        else
            ent_ops_store_i64(dst, m->result, i, whole);
    }
}

/* ---- composed rows ---- */

typedef void (*block_fn)(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                         int64_t n);

static void in_blocks(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                      int64_t n, block_fn run) {
    const char *at[3] = {src[0], m->sources > 1 ? src[1] : NULL, m->sources > 2 ? src[2] : NULL};
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t count = n - i < BLOCK ? n - i : BLOCK;
        run(m, dst + i * m->result_bytes, at, steps, count);
        for (uint32_t s = 0; s < m->sources; s++) {
            uint32_t bytes = m->map == ENT_MAP_SELECT && s == 0 ? 1 : m->source_bytes;
            at[s] += steps[s] * count * bytes;
        }
    }
}

static void block_selu(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                       int64_t n) {
    float *y = (float *)(void *)dst;
    m->kernels->unary[ENT_CPU_ELU]((const float *)(const void *)src[0], y, steps[0] ? n : 1, m->a, 0);
    if (!steps[0]) spread(dst, n, 4);
    m->kernels->unary[ENT_CPU_SCALE_SHIFT](y, y, n, m->b, -0.0f);
}

static void block_softsign(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                           int64_t n) {
    float below[BLOCK];
    const float *x = (const float *)(const void *)src[0];
    m->kernels->unary[ENT_CPU_ABS](x, below, steps[0] ? n : 1, 0, 0);
    m->kernels->unary[ENT_CPU_SCALE_SHIFT](below, below, steps[0] ? n : 1, 1, 1);
    m->kernels->binary[ENT_CPU_DIV][ENT_CPU_F32](x, steps[0], below, steps[0], dst, n);
}

static void block_prelu(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                        int64_t n) {
    float scaled[BLOCK];
    uint8_t below[BLOCK];
    const float zero = 0;
    m->kernels->binary[ENT_CPU_MUL][ENT_CPU_F32](src[0], steps[0], src[1], steps[1], scaled, n);
    m->kernels->compare[ENT_CPU_LESS][ENT_CPU_F32](src[0], steps[0], &zero, 0, below, n);
    m->kernels->select(below, 1, scaled, 1, src[0], steps[0], dst, n, 4);
}

static void block_not(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                      int64_t n) {
    const uint8_t zero = 0;
    m->kernels->compare[ENT_CPU_EQUAL][ENT_CPU_U8](src[0], steps[0], &zero, 0, dst, n);
}

static void block_xor(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                      int64_t n) {
    const uint8_t zero = 0;
    uint8_t same[BLOCK];
    m->kernels->compare[ENT_CPU_EQUAL][ENT_CPU_U8](src[0], steps[0], src[1], steps[1], same, n);
    m->kernels->compare[ENT_CPU_EQUAL][ENT_CPU_U8](same, 1, &zero, 0, dst, n);
}

/* Integers (and f64): neg, abs, relu, square, clip from two-operand kernels. */
static void block_whole(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                        int64_t n) {
    char constant[2][8] = {{0}, {0}}, other[BLOCK * 8];
    const ent_cpu_kernels *k = m->kernels;
    exec_element(m->dtype, m->map == ENT_MAP_CLIP ? m->f[0] : 0, constant[0]);
    exec_element(m->dtype, m->map == ENT_MAP_CLIP ? m->f[1] : 0, constant[1]);
    switch (m->map) {
    case ENT_MAP_NEG:
        k->binary[ENT_CPU_SUB][m->type](constant[0], 0, src[0], steps[0], dst, n);
        break;
    case ENT_MAP_ABS:
        k->binary[ENT_CPU_SUB][m->type](constant[0], 0, src[0], steps[0], other, n);
        k->binary[ENT_CPU_MAX][m->type](src[0], steps[0], other, 1, dst, n);
        break;
    case ENT_MAP_RELU:
        k->binary[ENT_CPU_MAX][m->type](src[0], steps[0], constant[0], 0, dst, n);
        break;
    case ENT_MAP_SQUARE:
        k->binary[ENT_CPU_MUL][m->type](src[0], steps[0], src[0], steps[0], dst, n);
        break;
    default:
        k->binary[ENT_CPU_MAX][m->type](src[0], steps[0], constant[0], 0, other, n);
        k->binary[ENT_CPU_MIN][m->type](other, 1, constant[1], 0, dst, n);
        break;
    }
}

static void block_integer_fma(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                              int64_t n) {
    char product[BLOCK * 8];
    m->kernels->binary[ENT_CPU_MUL][m->type](src[0], steps[0], src[1], steps[1], product, n);
    m->kernels->binary[ENT_CPU_ADD][m->type](product, 1, src[2], steps[2], dst, n);
}

/* f16 and bf16: widen, compute in f32, narrow. */
static void block_half(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                       int64_t n) {
    float wide[3][BLOCK], result[BLOCK];
    const char *at[3] = {NULL, NULL, NULL};
    for (uint32_t s = 0; s < m->sources; s++) {
        m->kernels->cast[m->type][ENT_CPU_F32](src[s], wide[s], steps[s] ? n : 1);
        at[s] = (const char *)wide[s];
    }
    if (m->map == ENT_MAP_COPY) {
        m->kernels->cast[ENT_CPU_F32][exec_cpu_type(m->result)](wide[0], dst, steps[0] ? n : 1);
        if (!steps[0]) spread(dst, n, m->result_bytes);
    } else if (m->result != m->dtype) {
        m->inner->row(m->inner, dst, at, steps, n);
    } else {
        m->inner->row(m->inner, (char *)result, at, steps, n);
        m->kernels->cast[ENT_CPU_F32][m->type](result, dst, n);
    }
}

/* A cast to f16 or bf16 from what has no cast of its own. */
static void block_narrow(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,
                         int64_t n) {
    float wide[BLOCK];
    m->kernels->cast[m->type][ENT_CPU_F32](src[0], wide, steps[0] ? n : 1);
    m->kernels->cast[ENT_CPU_F32][exec_cpu_type(m->result)](wide, dst, steps[0] ? n : 1);
    if (!steps[0]) spread(dst, n, m->result_bytes);
}

#define ROW(name)                                                                                            \
    static void row_##name(const exec_map_data *m, char *dst, const char *const *src, const int64_t *steps,  \
                           int64_t n) {                                                                      \
        in_blocks(m, dst, src, steps, n, block_##name);                                                      \
    }
ROW(selu)
ROW(softsign)
ROW(prelu)
ROW(not )
ROW(xor)
ROW(whole)
ROW(integer_fma)
ROW(half)
ROW(narrow)

/* ---- choice ---- */

static const uint8_t unary_of[ENT_MAP_COUNT] = {
    [ENT_MAP_NEG] = ENT_CPU_NEG + 1,
    [ENT_MAP_ABS] = ENT_CPU_ABS + 1,
    [ENT_MAP_SQRT] = ENT_CPU_SQRT + 1,
    [ENT_MAP_RSQRT] = ENT_CPU_RSQRT + 1,
    [ENT_MAP_RECIPROCAL] = ENT_CPU_RECIPROCAL + 1,
    [ENT_MAP_EXP] = ENT_CPU_EXP + 1,
    [ENT_MAP_LOG] = ENT_CPU_LOG + 1,
    [ENT_MAP_TANH] = ENT_CPU_TANH + 1,
    [ENT_MAP_SIGMOID] = ENT_CPU_SIGMOID + 1,
    [ENT_MAP_ERF] = ENT_CPU_ERF + 1,
    [ENT_MAP_RELU] = ENT_CPU_RELU + 1,
    [ENT_MAP_LEAKY_RELU] = ENT_CPU_LEAKY_RELU + 1,
    [ENT_MAP_ELU] = ENT_CPU_ELU + 1,
    [ENT_MAP_HARD_SIGMOID] = ENT_CPU_HARD_SIGMOID + 1,
    [ENT_MAP_HARD_SWISH] = ENT_CPU_HARD_SWISH + 1,
    [ENT_MAP_GELU] = ENT_CPU_GELU + 1,
    [ENT_MAP_GELU_TANH] = ENT_CPU_GELU_TANH + 1,
    [ENT_MAP_SILU] = ENT_CPU_SILU + 1,
    [ENT_MAP_MISH] = ENT_CPU_MISH + 1,
    [ENT_MAP_SOFTPLUS] = ENT_CPU_SOFTPLUS + 1,
    [ENT_MAP_CLIP] = ENT_CPU_CLIP + 1,
    [ENT_MAP_FLOOR] = ENT_CPU_FLOOR + 1,
    [ENT_MAP_CEIL] = ENT_CPU_CEIL + 1,
    [ENT_MAP_ROUND] = ENT_CPU_ROUND + 1,
    [ENT_MAP_SIGN] = ENT_CPU_SIGN + 1,
    [ENT_MAP_SIN] = ENT_CPU_SIN + 1,
    [ENT_MAP_COS] = ENT_CPU_COS + 1,
    [ENT_MAP_SQUARE] = ENT_CPU_SQUARE + 1,
    [ENT_MAP_SCALE_SHIFT] = ENT_CPU_SCALE_SHIFT + 1,
    [ENT_MAP_POW_SCALAR] = ENT_CPU_POWER + 1,
};

static const uint8_t binary_of[ENT_MAP_COUNT] = {
    [ENT_MAP_ADD] = ENT_CPU_ADD + 1, [ENT_MAP_SUB] = ENT_CPU_SUB + 1, [ENT_MAP_MUL] = ENT_CPU_MUL + 1,
    [ENT_MAP_DIV] = ENT_CPU_DIV + 1, [ENT_MAP_MAX] = ENT_CPU_MAX + 1, [ENT_MAP_MIN] = ENT_CPU_MIN + 1,
    [ENT_MAP_POW] = ENT_CPU_POW + 1,
};

static bool bind_compare(exec_map_data *m) {
    static const uint8_t compare_of[] = {ENT_CPU_EQUAL, ENT_CPU_LESS, ENT_CPU_LESS_EQUAL, ENT_CPU_LESS,
                                         ENT_CPU_LESS_EQUAL};
    if (m->map < ENT_MAP_EQUAL || m->map > ENT_MAP_GREATER_EQUAL || m->type == ENT_CPU_TYPE_COUNT)
        return false;
    m->binary = m->kernels->compare[compare_of[m->map - ENT_MAP_EQUAL]][m->type];
    m->swap = m->map == ENT_MAP_GREATER || m->map == ENT_MAP_GREATER_EQUAL;
    m->row = row_binary;
    return m->binary != NULL;
}

static bool bind_logic(exec_map_data *m) {
    if (m->map == ENT_MAP_NOT)
        m->row = row_not;
    else if (m->map == ENT_MAP_XOR)
        m->row = row_xor;
    else if (m->map == ENT_MAP_AND || m->map == ENT_MAP_OR) {
        m->binary = m->kernels->binary[m->map == ENT_MAP_AND ? ENT_CPU_MIN : ENT_CPU_MAX][ENT_CPU_BOOL];
        m->row = row_binary;
    } else
        return false;
    return true;
}

static bool bind_cast(exec_map_data *m) {
    uint32_t to = exec_cpu_type(m->result);
    m->row = row_copy;
    if (m->dtype == m->result && m->dtype != ENT_DTYPE_BOOL) return true;
    if (m->type == ENT_CPU_TYPE_COUNT || to == ENT_CPU_TYPE_COUNT) return false;
    m->cast = m->kernels->cast[m->type][to];
    m->row = m->cast ? row_cast : m->type == ENT_CPU_F16 || m->type == ENT_CPU_BF16 ? row_half : row_narrow;
    return true;
}

static bool bind_float(exec_map_data *m) {
    if (unary_of[m->map]) {
        m->unary = m->kernels->unary[unary_of[m->map] - 1];
        m->row = row_unary;
    } else if (m->map == ENT_MAP_SELU)
        m->row = row_selu;
    else if (m->map == ENT_MAP_SOFTSIGN)
        m->row = row_softsign;
    else if (m->map == ENT_MAP_PRELU)
        m->row = row_prelu;
    else if (m->map == ENT_MAP_FMA)
        m->row = row_fma;
    else
        return false;
    return true;
}

/* Bounds of a clip as elements; false when they do not fit the type. */
static bool fit_bounds(exec_map_data *m) {
    static const double least[ENT_CPU_TYPE_COUNT] = {
        [ENT_CPU_I32] = -2147483648.0, [ENT_CPU_I64] = -1e9, [ENT_CPU_I8] = -128};
    static const double most[ENT_CPU_TYPE_COUNT] = {
        [ENT_CPU_I32] = 2147483647.0, [ENT_CPU_I64] = 1e9, [ENT_CPU_U8] = 255, [ENT_CPU_I8] = 127};
    bool open = m->type == ENT_CPU_I64; /* doubles do not hold its ends */
    if (m->f[0] > m->f[1] || m->f[0] > most[m->type] || m->f[1] < least[m->type]) return false;
    if (open && (m->f[0] < least[m->type] || m->f[1] > most[m->type])) return false;
    if (m->f[0] < least[m->type]) m->f[0] = least[m->type];
    if (m->f[1] > most[m->type]) m->f[1] = most[m->type];
    return true;
}

static bool bind_typed(exec_map_data *m) {
    bool whole = m->map == ENT_MAP_NEG || m->map == ENT_MAP_ABS || m->map == ENT_MAP_RELU ||
                 m->map == ENT_MAP_SQUARE || m->map == ENT_MAP_CLIP;
    if (m->type == ENT_CPU_BOOL) return false;
    if (binary_of[m->map]) {
        m->binary = m->kernels->binary[binary_of[m->map] - 1][m->type];
        m->row = row_binary;
        return m->binary != NULL;
    }
    if (m->type == ENT_CPU_F32) return bind_float(m);
    if (m->type == ENT_CPU_F64 && m->map != ENT_MAP_SQUARE) return false;
    if (whole && !(m->type == ENT_CPU_U8 && (m->map == ENT_MAP_NEG || m->map == ENT_MAP_ABS)) &&
        (m->map != ENT_MAP_CLIP || fit_bounds(m))) {
        m->row = row_whole;
        return true;
    }
    if (m->map == ENT_MAP_FMA && m->type != ENT_CPU_F64) {
        m->row = row_integer_fma;
        return true;
    }
    return false;
}

static bool bind_plain(exec_map_data *m) {
    if (m->map == ENT_MAP_COPY) return bind_cast(m);
    if (m->map == ENT_MAP_SELECT) {
        m->row = row_select;
        return m->result_bytes <= 8;
    }
    if (bind_compare(m) || bind_logic(m)) return true;
    return m->type != ENT_CPU_TYPE_COUNT && bind_typed(m);
}

bool exec_row_bind(const ent_cpu_kernels *kernels, exec_map_data *m, exec_map_data *room,
                   bool *out_emulated) {
    m->kernels = kernels;
    m->type = exec_cpu_type(m->dtype);
    m->source_bytes = ent_dtype_bits((ent_dtype)m->dtype) / 8;
    m->result_bytes = ent_dtype_bits((ent_dtype)m->result) / 8;
    m->a = (float)m->f[0];
    m->b = (float)m->f[1];
    bool half = m->type == ENT_CPU_F16 || m->type == ENT_CPU_BF16;
    bool vector = false;
    *out_emulated = half && m->map != ENT_MAP_COPY && m->map != ENT_MAP_SELECT;
    if (*out_emulated) {
        *room = *m;
        room->dtype = ENT_DTYPE_F32;
        if (room->result == m->dtype) room->result = ENT_DTYPE_F32;
        vector = exec_row_bind(kernels, room, NULL, &half);
        m->inner = room;
        m->row = row_half;
    } else {
        vector = bind_plain(m);
        if (!vector) m->row = row_scalar;
    }
    return vector;
}
