/* Conv and ConvTranspose as matrix products over unfolded windows, in blocks of output positions so that the
 * unfolded block stays small. */
#include "core/ops/internal.h"

#include <string.h>

#define BLOCK_ELEMENTS (256 * 1024)
#define FEW_ROWS 4 /* with fewer rows than this a matrix product wastes more than it saves (depthwise) */

typedef struct convolution {
    ent_ops_window window;
    int64_t batch, channels, groups, group_in, group_out; /* channels of one group */
    const double *x, *weights;
    double *y, *workspace, *columns;
    int64_t block; /* positions of one unfolded block */
} convolution;

static void unravel(const int64_t *extent, uint32_t rank, int64_t flat, int64_t *out) {
    for (uint32_t i = rank; i-- > 0;) {
        out[i] = flat % extent[i];
        flat /= extent[i];
    }
}

/* Calls for each row (last axis) of positions [start, start + count): the input index of its first element
 * under one tap. */
typedef struct tap_row {
    int64_t first, step, low, high; /* element j of the row reads first + j * step for j in [low, high) */
    int64_t begin, length;          /* within the block */
} tap_row;

/* The row that starts at flat position `flat` and is at most `limit` long. */
static tap_row tap_row_at(const ent_ops_window *w, const int64_t *tap, const int64_t *extent, int64_t flat,
                          int64_t limit) {
    int64_t position[ENT_OPS_MAX_SPATIAL];
    uint32_t last = w->rank - 1;
    unravel(extent, w->rank, flat, position);
    tap_row row = {.length = extent[last] - position[last] < limit ? extent[last] - position[last] : limit};
    bool inside = true;
    int64_t base = 0;
    for (uint32_t i = 0; i < last; i++) {
        int64_t at = position[i] * w->stride[i] + tap[i] * w->dilation[i] - w->pad_begin[i];
        if (at < 0 || at >= w->in[i]) inside = false;
        base = (base + at) * w->in[i + 1];
    }
    int64_t start = position[last] * w->stride[last] + tap[last] * w->dilation[last] - w->pad_begin[last];
    row.step = w->stride[last];
    row.first = base + start;
    row.low = start < 0 ? (-start + row.step - 1) / row.step : 0;
    row.high = start < w->in[last] ? (w->in[last] - start + row.step - 1) / row.step : 0;
    if (row.high > row.length) row.high = row.length;
    if (!inside || row.low > row.high) row.low = row.high = 0;
    return row;
}

/* One row of the unfolded matrix: what one tap of one channel reads at each position. */
static void unfold(const ent_ops_window *w, const double *channel, int64_t tap_index, int64_t start,
                   int64_t count, double *out) {
    int64_t tap[ENT_OPS_MAX_SPATIAL];
    unravel(w->kernel, w->rank, tap_index, tap);
    for (int64_t done = 0; done < count;) {
        tap_row row = tap_row_at(w, tap, w->out, start + done, count - done);
        double *to = out + done;
        for (int64_t j = 0; j < row.low; j++) to[j] = 0;
        if (row.step == 1 && row.high > row.low)
            memcpy(to + row.low, channel + row.first + row.low, (size_t)(row.high - row.low) * sizeof *to);
        else
            for (int64_t j = row.low; j < row.high; j++) to[j] = channel[row.first + j * row.step];
        for (int64_t j = row.high; j < row.length; j++) to[j] = 0;
        done += row.length;
    }
}

static void conv_block(const convolution *c, const double *x, const double *weights, double *y, int64_t start,
                       int64_t count) {
    const ent_ops_window *w = &c->window;
    int64_t depth = c->group_in * w->kernel_count;
    if (c->group_out < FEW_ROWS) {
        for (int64_t k = 0; k < depth; k++) {
            unfold(w, x + k / w->kernel_count * w->in_count, k % w->kernel_count, start, count, c->columns);
            for (int64_t m = 0; m < c->group_out; m++) {
                double factor = weights[m * depth + k], *to = y + m * w->out_count + start;
                for (int64_t j = 0; j < count; j++) to[j] += factor * c->columns[j];
            }
        }
        return;
    }
    for (int64_t k = 0; k < depth; k++)
        unfold(w, x + k / w->kernel_count * w->in_count, k % w->kernel_count, start, count,
               c->columns + k * count);
    ent_ops_gemm(c->workspace, c->group_out, count, depth, (ent_ops_matrix){weights, depth, 1},
                 (ent_ops_matrix){c->columns, count, 1}, y + start, w->out_count);
}

static ent_code convolution_resolve(ent_ops_call *call, bool transposed, convolution *c) {
    const ent_tensor *x = ent_ops_input(call, 0), *weights = ent_ops_input(call, 1),
                     *bias = ent_ops_input(call, 2);
    if (weights->rank != x->rank || x->rank < 3)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the input has rank %u, the weights %u",
                              x->rank, weights->rank);
    *c = (convolution){
        .batch = x->dims[0], .channels = x->dims[1], .groups = ent_attrs_int(call->attrs, "group", 1)};
    int64_t grouped = transposed ? x->dims[1] : weights->dims[0];
    if (c->groups < 1 || grouped % c->groups != 0 || x->dims[1] % c->groups != 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "channels do not divide into %lld groups",
                              (long long)c->groups);
    c->group_in = x->dims[1] / c->groups;
    c->group_out = transposed ? weights->dims[1] : weights->dims[0] / c->groups;
    if (transposed ? weights->dims[0] != x->dims[1] : weights->dims[1] != c->group_in)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the weights take %lld channels, the input has %lld in %lld groups",
                              (long long)weights->dims[!transposed], (long long)x->dims[1],
                              (long long)c->groups);
    if (bias && (bias->rank != 1 || bias->dims[0] != c->group_out * c->groups))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the bias must have one value per output channel");
    return ent_ops_window_resolve(call, x, weights->dims + 2, transposed, &c->window);
}

static void conv_dims(const ent_tensor *x, const convolution *c, ent_tensor *output) {
    output->dtype = x->dtype;
    output->rank = x->rank;
    output->dims[0] = c->batch;
    output->dims[1] = c->group_out * c->groups;
    for (uint32_t i = 0; i < c->window.rank; i++) output->dims[i + 2] = c->window.out[i];
}

ent_code ent_ops_dims_conv(ent_ops_call *call, ent_tensor *outputs) {
    convolution c;
    ent_code code = convolution_resolve(call, false, &c);
    if (code == ENT_OK) conv_dims(ent_ops_input(call, 0), &c, &outputs[0]);
    return code;
}

ent_code ent_ops_dims_conv_transpose(ent_ops_call *call, ent_tensor *outputs) {
    convolution c;
    ent_code code = convolution_resolve(call, true, &c);
    if (code == ENT_OK) conv_dims(ent_ops_input(call, 0), &c, &outputs[0]);
    return code;
}

/* Loads the inputs and fills y with the bias. `rows` and `positions` are the unfolded matrix's extents. */
static ent_code convolution_load(ent_ops_call *call, convolution *c, int64_t rows, int64_t positions) {
    const ent_tensor *output = ent_ops_output(call, 0), *bias = ent_ops_input(call, 2);
    c->block = BLOCK_ELEMENTS / (rows > 0 ? rows : 1);
    if (c->block < 16) c->block = 16;
    if (c->block > positions) c->block = positions;
    int64_t count = ent_ops_element_count(output), plane = c->window.out_count;
    c->x = ent_ops_values_f64(call, ent_ops_input(call, 0));
    c->weights = ent_ops_values_f64(call, ent_ops_input(call, 1));
    c->y = ent_ops_scratch(call, count, sizeof(double));
    c->workspace = ent_ops_gemm_workspace(call);
    c->columns = ent_ops_scratch(call, rows * c->block, sizeof(double));
    if (!c->x || !c->weights || !c->y || !c->workspace || !c->columns) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; plane > 0 && i < count / plane; i++) {
        double start = bias ? ent_ops_load_f64(bias->data, bias->dtype, i % (c->group_out * c->groups)) : 0;
        for (int64_t j = 0; j < plane; j++) c->y[i * plane + j] = start;
    }
    return ENT_OK;
}

static bool is_pointwise(const ent_ops_window *w) {
    for (uint32_t i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad_begin[i] != 0 || w->pad_end[i] != 0)
            return false;
    return true;
}

ent_code ent_ops_conv(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    convolution c;
    ent_code code = convolution_resolve(call, false, &c);
    const ent_ops_window *w = &c.window;
    if (code == ENT_OK) code = convolution_load(call, &c, c.group_in * w->kernel_count, w->out_count);
    if (code != ENT_OK) return code;
    int64_t depth = c.group_in * w->kernel_count;
    for (int64_t i = 0; i < c.batch * c.groups; i++) {
        const double *x = c.x + i * c.group_in * w->in_count;
        const double *weights = c.weights + i % c.groups * c.group_out * depth;
        double *y = c.y + i * c.group_out * w->out_count;
        if (is_pointwise(w)) {
            ent_ops_gemm(c.workspace, c.group_out, w->out_count, depth, (ent_ops_matrix){weights, depth, 1},
                         (ent_ops_matrix){x, w->in_count, 1}, y, w->out_count);
            continue;
        }
        for (int64_t start = 0; start < w->out_count; start += c.block)
            conv_block(&c, x, weights, y, start,
                       w->out_count - start < c.block ? w->out_count - start : c.block);
    }
    ent_ops_result_f64(output, c.y);
    return ENT_OK;
}

/* Adds one row of the unfolded matrix to the places its tap writes. The window runs the other way round: its
 * `in` is our output. */
static void fold(const ent_ops_window *mirrored, double *channel, int64_t tap_index, int64_t start,
                 int64_t count, const double *row) {
    int64_t tap[ENT_OPS_MAX_SPATIAL];
    unravel(mirrored->kernel, mirrored->rank, tap_index, tap);
    for (int64_t done = 0; done < count;) {
        tap_row r = tap_row_at(mirrored, tap, mirrored->out, start + done, count - done);
        for (int64_t j = r.low; j < r.high; j++) channel[r.first + j * r.step] += row[done + j];
        done += r.length;
    }
}

static void conv_transpose_block(const convolution *c, const ent_ops_window *mirrored, const double *x,
                                 const double *weights, double *y, int64_t start, int64_t count) {
    const ent_ops_window *w = &c->window;
    int64_t rows = c->group_out * w->kernel_count;
    memset(c->columns, 0, (size_t)(rows * count) * sizeof(double));
    ent_ops_gemm(c->workspace, rows, count, c->group_in, (ent_ops_matrix){weights, 1, rows},
                 (ent_ops_matrix){x + start, w->in_count, 1}, c->columns, count);
    for (int64_t k = 0; k < rows; k++)
        fold(mirrored, y + k / w->kernel_count * w->out_count, k % w->kernel_count, start, count,
             c->columns + k * count);
}

ent_code ent_ops_conv_transpose(ent_ops_call *call) {
    ent_tensor *output = ent_ops_output(call, 0);
    if (!output) return ENT_OK;
    convolution c;
    ent_code code = convolution_resolve(call, true, &c);
    const ent_ops_window *w = &c.window;
    if (code == ENT_OK) code = convolution_load(call, &c, c.group_out * w->kernel_count, w->in_count);
    if (code != ENT_OK) return code;
    ent_ops_window mirrored = *w;
    memcpy(mirrored.in, w->out, sizeof mirrored.in);
    memcpy(mirrored.out, w->in, sizeof mirrored.out);
    for (int64_t i = 0; i < c.batch * c.groups; i++) {
        const double *x = c.x + i * c.group_in * w->in_count;
        const double *weights = c.weights + i % c.groups * c.group_in * c.group_out * w->kernel_count;
        double *y = c.y + i * c.group_out * w->out_count;
        for (int64_t start = 0; start < w->in_count; start += c.block)
            conv_transpose_block(&c, &mirrored, x, weights, y, start,
                                 w->in_count - start < c.block ? w->in_count - start : c.block);
    }
    ent_ops_result_f64(output, c.y);
    return ENT_OK;
}
