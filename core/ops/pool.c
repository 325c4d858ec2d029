/* MaxPool, AveragePool, LpPool and the global pools. */
#include "core/ops/internal.h"

#include <math.h>

ent_code ent_ops_dims_pool(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    ent_ops_window w;
    ent_code code = ent_ops_window_resolve(call, x, NULL, false, &w);
    if (code != ENT_OK) return code;
    for (uint32_t i = 0; i < call->output_count; i++) {
        ent_ops_dims_copy(x, &outputs[i]);
        for (uint32_t j = 0; j < w.rank; j++) outputs[i].dims[j + 2] = w.out[j];
        if (i == 1) outputs[i].dtype = ENT_DTYPE_I64;
    }
    return ENT_OK;
}

/* The part of one window that lies inside the input: a box. */
typedef struct box {
    int64_t begin[ENT_OPS_MAX_SPATIAL]; /* first input coordinate */
    int64_t count[ENT_OPS_MAX_SPATIAL]; /* taps inside */
    int64_t padded_count;               /* taps inside the padded input */
    int64_t inside_count;
} box;

static box box_at(const ent_ops_window *w, const int64_t *position) {
    box b = {.padded_count = 1, .inside_count = 1};
    for (uint32_t i = 0; i < w->rank; i++) {
        int64_t start = position[i] * w->stride[i] - w->pad_begin[i], step = w->dilation[i];
        int64_t skipped = start < 0 ? (-start + step - 1) / step : 0;
        int64_t end = w->in[i] > start ? (w->in[i] - start + step - 1) / step : 0;
        int64_t padded = (w->in[i] + w->pad_end[i] - start + step - 1) / step;
        if (end > w->kernel[i]) end = w->kernel[i];
        if (padded > w->kernel[i]) padded = w->kernel[i];
        b.begin[i] = start + skipped * step;
        b.count[i] = end > skipped ? end - skipped : 0;
        b.inside_count *= b.count[i];
        b.padded_count *= padded > 0 ? padded : 0;
    }
    return b;
}

typedef struct pooled {
    double sum, best;
    int64_t best_index; /* flat in the plane, -1: none */
} pooled;

/* power: the sum is of |x| to that power, unless it is 0. */
static pooled pool_box(const ent_ops_window *w, const double *plane, const box *b, double power) {
    pooled p = {0, -INFINITY, -1};
    if (b->inside_count == 0) return p;
    int64_t tap[ENT_OPS_MAX_SPATIAL] = {0};
    uint32_t last = w->rank - 1;
    for (;;) {
        int64_t at = 0;
        for (uint32_t i = 0; i < w->rank; i++) at = at * w->in[i] + b->begin[i] + tap[i] * w->dilation[i];
        for (int64_t j = 0; j < b->count[last]; j++, at += w->dilation[last]) {
            double value = plane[at];
            p.sum += power > 0 ? pow(fabs(value), power) : value;
            if (p.best_index < 0 || value > p.best || (isnan(value) && !isnan(p.best)))
                p.best = value, p.best_index = at;
        }
        uint32_t axis = last;
        while (axis-- > 0) {
            if (++tap[axis] < b->count[axis]) break;
            tap[axis] = 0;
        }
        if (axis == UINT32_MAX) return p;
    }
}

/* Row-major place of a plane's element counted in column-major order. */
static int64_t column_major(const ent_ops_window *w, int64_t flat) {
    int64_t coordinate[ENT_OPS_MAX_SPATIAL], result = 0;
    for (uint32_t i = w->rank; i-- > 0;) {
        coordinate[i] = flat % w->in[i];
        flat /= w->in[i];
    }
    for (uint32_t i = w->rank; i-- > 0;) result = result * w->in[i] + coordinate[i];
    return result;
}

/* Calls visit for every output element of every plane. */
typedef struct pooling {
    ent_ops_window window;
    const double *x;
    double *values;
    int64_t *indices; /* can be NULL */
    int64_t planes;
    bool average, include_padding, column_major;
    double power;   /* of LpPool; 0: another pool */
    double nothing; /* a maximum over no element */
} pooling;

static void pool_planes(const pooling *p) {
    const ent_ops_window *w = &p->window;
    for (int64_t i = 0; i < w->out_count; i++) {
        int64_t position[ENT_OPS_MAX_SPATIAL], rest = i;
        for (uint32_t j = w->rank; j-- > 0; rest /= w->out[j]) position[j] = rest % w->out[j];
        box b = box_at(w, position);
        for (int64_t plane = 0; plane < p->planes; plane++) {
            pooled result = pool_box(w, p->x + plane * w->in_count, &b, p->power);
            int64_t to = plane * w->out_count + i,
                    divisor = p->include_padding ? b.padded_count : b.inside_count;
            if (p->power > 0)
                p->values[to] = pow(result.sum, 1 / p->power);
            else if (p->average)
                p->values[to] = divisor > 0 ? result.sum / (double)divisor : 0;
            else
                p->values[to] = result.best_index < 0 ? p->nothing : result.best;
            if (!p->indices) continue;
            int64_t at = result.best_index;
            if (p->column_major && at >= 0) at = column_major(w, at);
            p->indices[to] = at < 0 ? -1 : plane * w->in_count + at;
        }
    }
}

static ent_code pool(ent_ops_call *call, bool average, double power) {
    ent_tensor *output = ent_ops_output(call, 0), *indices = ent_ops_output(call, 1);
    const ent_tensor *x = ent_ops_input(call, 0);
    pooling p = {.planes = x->dims[0] * x->dims[1], .average = average, .power = power};
    ent_code code = ent_ops_window_resolve(call, x, NULL, false, &p.window);
    if (code != ENT_OK) return code;
    p.include_padding = ent_attrs_int(call->attrs, "count_include_pad", 0) != 0;
    p.column_major = ent_attrs_int(call->attrs, "storage_order", 0) != 0;
    p.nothing = x->dtype == ENT_DTYPE_I8 ? INT8_MIN : x->dtype == ENT_DTYPE_U8 ? 0 : -INFINITY;
    int64_t count = p.planes * p.window.out_count;
    p.x = ent_ops_values_f64(call, x);
    p.values = ent_ops_scratch(call, count, sizeof(double));
    if (indices) p.indices = ent_ops_scratch(call, count, sizeof(int64_t));
    if (!p.x || !p.values || (indices && !p.indices)) return ENT_CODE_OUT_OF_MEMORY;
    pool_planes(&p);
    ent_ops_result_f64(output, p.values);
    if (indices) ent_ops_result_i64(indices, p.indices);
    return ENT_OK;
}

ent_code ent_ops_max_pool(ent_ops_call *call) {
    return pool(call, false, 0);
}

ent_code ent_ops_average_pool(ent_ops_call *call) {
    return pool(call, true, 0);
}

/* A power below 1 is no norm. */
static ent_code norm_power(ent_ops_call *call, double *out) {
    int64_t power = ent_attrs_int(call->attrs, "p", 2);
    *out = (double)power;
    return power >= 1 ? ENT_OK
                      : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "p is %lld", (long long)power);
}

ent_code ent_ops_lp_pool(ent_ops_call *call) {
    double power;
    ent_code code = norm_power(call, &power);
    return code == ENT_OK ? pool(call, false, power) : code;
}

ent_code ent_ops_dims_global_pool(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    if (x->rank < 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has rank %u, below 2", x->rank);
    ent_ops_dims_copy(x, &outputs[0]);
    for (uint32_t i = 2; i < x->rank; i++) outputs[0].dims[i] = 1;
    return ENT_OK;
}

ent_code ent_ops_global_pool(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    const ent_tensor *x = ent_ops_input(call, 0);
    double power = 0;
    ent_code code = call->op == ENT_OP_GlobalLpPool ? norm_power(call, &power) : ENT_OK;
    if (code != ENT_OK || !output) return code;
    int64_t planes = x->dims[0] * x->dims[1], size = ent_ops_product(x->dims, 2, x->rank);
    const double *values = ent_ops_values_f64(call, x);
    double *result = ent_ops_scratch(call, planes, sizeof(double));
    if (!values || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < planes; i++) {
        double sum = 0, best = -INFINITY;
        for (int64_t j = 0; j < size; j++) {
            double value = values[i * size + j];
            sum += power > 0 ? pow(fabs(value), power) : value;
            if (value > best || isnan(value)) best = value;
        }
        result[i] = power > 0                              ? pow(sum, 1 / power)
                    : call->op == ENT_OP_GlobalAveragePool ? sum / (double)size
                                                           : best;
    }
    ent_ops_result_f64(output, result);
    return ENT_OK;
}
