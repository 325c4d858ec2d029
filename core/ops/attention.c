/* Attention: softmax(softcap(Q K' scale) + bias) V by heads, with grouped heads, a mask and a key/value
 * cache. Order of steps and the upper-left causal triangle behind the cached part: the ONNX schema of
 * Attention 24 and its reference. */
#include "core/ops/internal.h"

#include <math.h>
#include <string.h>

typedef struct attention {
    bool flat; /* 3-D inputs: batch, sequence, heads * size */
    int64_t batch, q_heads, kv_heads, q_length, kv_length, past_length, total_length, size, v_size;
    const double *q, *k, *v;          /* batch, head, sequence, size; k and v with the past in front */
    const ent_tensor *mask, *lengths; /* lengths: keys of each batch entry that count */
    double scale, softcap;
    bool causal;
    int64_t mode;
} attention;

static ent_code read_geometry(ent_ops_call *call, attention *a) {
    const ent_tensor *q = ent_ops_input(call, 0), *k = ent_ops_input(call, 1), *v = ent_ops_input(call, 2);
    if (q->rank != k->rank || q->rank != v->rank || (q->rank != 3 && q->rank != 4))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "Q, K and V must all have rank 3 or all rank 4");
    a->flat = q->rank == 3;
    a->batch = q->dims[0];
    a->q_heads = a->flat ? ent_attrs_int(call->attrs, "q_num_heads", 0) : q->dims[1];
    a->kv_heads = a->flat ? ent_attrs_int(call->attrs, "kv_num_heads", 0) : k->dims[1];
    if (a->q_heads < 1 || a->kv_heads < 1 || a->q_heads % a->kv_heads != 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "%lld query heads do not divide among %lld key heads", (long long)a->q_heads,
                              (long long)a->kv_heads);
    uint32_t last = q->rank - 1;
    int64_t q_split = a->flat ? a->q_heads : 1, kv_split = a->flat ? a->kv_heads : 1;
    if (q->dims[last] % q_split != 0 || k->dims[last] % kv_split != 0 || v->dims[last] % kv_split != 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "a hidden size does not divide into its heads");
    a->q_length = q->dims[last - 1];
    a->kv_length = k->dims[last - 1];
    a->size = q->dims[last] / q_split;
    a->v_size = v->dims[last] / kv_split;
    bool fits = k->dims[0] == a->batch && v->dims[0] == a->batch && v->dims[last - 1] == a->kv_length &&
                k->dims[last] / kv_split == a->size && (a->flat || v->dims[1] == a->kv_heads);
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "Q, K and V have dims that do not fit");
}

static ent_code read_past(ent_ops_call *call, attention *a) {
    const ent_tensor *past[2] = {ent_ops_input(call, 4), ent_ops_input(call, 5)};
    if (!past[0] != !past[1])
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "past key and past value go together");
    a->past_length = past[0] && past[0]->rank == 4 ? past[0]->dims[2] : 0;
    for (int i = 0; i < 2 && past[0]; i++) {
        const ent_tensor *p = past[i];
        if (p->rank != 4 || p->dims[0] != a->batch || p->dims[1] != a->kv_heads ||
            p->dims[2] != a->past_length || p->dims[3] != (i ? a->v_size : a->size))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the past %s does not fit",
                                  i ? "value" : "key");
    }
    a->total_length = a->past_length + a->kv_length;
    return ENT_OK;
}

static ent_code attention_resolve(ent_ops_call *call, attention *a) {
    *a = (attention){.mask = ent_ops_input(call, 3), .lengths = ent_ops_input(call, 6)};
    ent_code code = read_geometry(call, a);
    if (code == ENT_OK) code = read_past(call, a);
    if (code != ENT_OK) return code;
    a->scale = ent_attrs_float(call->attrs, "scale", 1 / sqrt((double)a->size));
    a->softcap = ent_attrs_float(call->attrs, "softcap", 0);
    a->causal = ent_attrs_int(call->attrs, "is_causal", 0) != 0;
    a->mode = ent_attrs_int(call->attrs, "qk_matmul_output_mode", 0);
    const ent_tensor *mask = a->mask, *lengths = a->lengths;
    if (lengths && (lengths->dtype != ENT_DTYPE_I64 || lengths->rank != 1 || lengths->dims[0] != a->batch))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "nonpad_kv_seqlen must have an entry a batch entry");
    if (!mask) return ENT_OK;
    int64_t full[4] = {a->batch, a->q_heads, a->q_length, a->total_length};
    bool fits =
        mask->rank >= 1 && mask->rank <= 4 && ent_ops_dtype_in(mask->dtype, ENT_OPS_FLOATS | ENT_OPS_BOOL);
    for (uint32_t i = 0; fits && i < mask->rank; i++) {
        int64_t extent = mask->dims[i], want = full[4 - mask->rank + i];
        fits = extent == want || extent == 1 || (i + 1 == mask->rank && extent < want);
    }
    return fits
               ? ENT_OK
               : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the mask does not broadcast to the scores");
}

static void set_dims(ent_tensor *tensor, uint32_t dtype, int64_t a, int64_t b, int64_t c, int64_t d) {
    tensor->dtype = dtype;
    tensor->rank = 4;
    tensor->dims[0] = a;
    tensor->dims[1] = b;
    tensor->dims[2] = c;
    tensor->dims[3] = d;
}

ent_code ent_ops_dims_attention(ent_ops_call *call, ent_tensor *outputs) {
    attention a;
    ent_code code = attention_resolve(call, &a);
    if (code != ENT_OK) return code;
    uint32_t dtype = ent_ops_input(call, 0)->dtype;
    set_dims(&outputs[0], dtype, a.batch, a.q_heads, a.q_length, a.v_size);
    if (a.flat) {
        outputs[0].rank = 3;
        outputs[0].dims[1] = a.q_length;
        outputs[0].dims[2] = a.q_heads * a.v_size;
    }
    if (call->output_count > 1)
        set_dims(&outputs[1], ent_ops_input(call, 1)->dtype, a.batch, a.kv_heads, a.total_length, a.size);
    if (call->output_count > 2)
        set_dims(&outputs[2], ent_ops_input(call, 2)->dtype, a.batch, a.kv_heads, a.total_length, a.v_size);
    if (call->output_count > 3) set_dims(&outputs[3], dtype, a.batch, a.q_heads, a.q_length, a.total_length);
    return ENT_OK;
}

/* batch, head, past + sequence, size from an input of rank 3 or 4 and its past. */
static double *heads_of(ent_ops_call *call, const attention *a, const ent_tensor *x, const ent_tensor *past,
                        int64_t heads, int64_t length, int64_t size) {
    int64_t before = past ? a->past_length : 0, total = before + length;
    double *from = ent_ops_values_f64(call, x), *old = past ? ent_ops_values_f64(call, past) : NULL;
    double *to = ent_ops_scratch(call, a->batch * heads * total * size, sizeof(double));
    if (!from || !to || (past && !old)) return NULL;
    for (int64_t i = 0; i < a->batch * heads; i++) {
        double *head = to + i * total * size;
        if (before * size > 0) memcpy(head, old + i * before * size, (size_t)(before * size) * sizeof *to);
        for (int64_t j = 0; j < length && size > 0; j++) {
            int64_t row = a->flat ? (i / heads * length + j) * heads + i % heads : i * length + j;
            memcpy(head + (before + j) * size, from + row * size, (size_t)size * sizeof *to);
        }
    }
    return to;
}

/* What is added to one score. */
static double bias_at(const attention *a, int64_t batch, int64_t head, int64_t row, int64_t column) {
    double bias = a->causal && column > row + a->past_length ? -INFINITY : 0;
    if (a->lengths && column >= ent_ops_load_i64(a->lengths->data, ENT_DTYPE_I64, batch)) return -INFINITY;
    if (!a->mask) return bias;
    int64_t index[4] = {batch, head, row, column}, at = 0;
    const ent_tensor *mask = a->mask;
    for (uint32_t i = 0; i < mask->rank; i++) {
        int64_t extent = mask->dims[i], own = index[4 - mask->rank + i];
        if (own >= extent && i + 1 == mask->rank && (extent != 1 || a->total_length == 1)) return -INFINITY;
        at = at * extent + (extent == 1 ? 0 : own);
    }
    double value = ent_ops_load_f64(mask->data, mask->dtype, at);
    if (mask->dtype == ENT_DTYPE_BOOL) return value != 0 ? bias : -INFINITY;
    return bias + value;
}

static void softmax(double *x, int64_t count) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < count; i++) sum += x[i] = exp(x[i] - largest);
    for (int64_t i = 0; i < count; i++) x[i] /= sum;
}

/* The probabilities of one head, in place of its raw scores; seen gets the scores at the step that mode
 * names. */
static void finish_scores(const attention *a, int64_t batch, int64_t head, double *scores, double *seen) {
    size_t bytes = (size_t)(a->q_length * a->total_length) * sizeof *scores;
    int64_t count = a->q_length * a->total_length;
    if (seen && a->mode == 0) memcpy(seen, scores, bytes);
    for (int64_t i = 0; a->softcap > 0 && i < count; i++)
        scores[i] = a->softcap * tanh(scores[i] / a->softcap);
    if (seen && a->mode == 1) memcpy(seen, scores, bytes);
    for (int64_t i = 0; i < count; i++)
        scores[i] += bias_at(a, batch, head, i / a->total_length, i % a->total_length);
    if (seen && a->mode == 2) memcpy(seen, scores, bytes);
    for (int64_t i = 0; i < a->q_length; i++) softmax(scores + i * a->total_length, a->total_length);
    if (seen && a->mode == 3) memcpy(seen, scores, bytes);
}

static ent_code attend(ent_ops_call *call, const attention *a, double *y, double *seen) {
    int64_t count = a->q_length * a->total_length, group = a->q_heads / a->kv_heads;
    double *scores = ent_ops_scratch(call, count, sizeof(double)), *workspace = ent_ops_gemm_workspace(call);
    if (!scores || !workspace) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < a->batch * a->q_heads; i++) {
        int64_t batch = i / a->q_heads, head = i % a->q_heads, kv = batch * a->kv_heads + head / group;
        const double *q = a->q + i * a->q_length * a->size, *k = a->k + kv * a->total_length * a->size;
        const double *v = a->v + kv * a->total_length * a->v_size;
        for (int64_t j = 0; j < count; j++) scores[j] = 0;
        ent_ops_gemm(workspace, a->q_length, a->total_length, a->size, (ent_ops_matrix){q, a->size, 1},
                     (ent_ops_matrix){k, 1, a->size}, scores, a->total_length);
        for (int64_t j = 0; j < count; j++) scores[j] *= a->scale;
        finish_scores(a, batch, head, scores, seen ? seen + i * count : NULL);
        int64_t row = a->flat ? a->q_heads * a->v_size : a->v_size;
        double *to = y + (a->flat ? batch * a->q_length * row + head * a->v_size : i * a->q_length * row);
        ent_ops_gemm(workspace, a->q_length, a->v_size, a->total_length,
                     (ent_ops_matrix){scores, a->total_length, 1}, (ent_ops_matrix){v, a->v_size, 1}, to,
                     row);
    }
    return ENT_OK;
}

ent_code ent_ops_attention(ent_ops_call *call) {
    attention a;
    ent_code code = attention_resolve(call, &a);
    if (code != ENT_OK) return code;
    int64_t y_count = a.batch * a.q_heads * a.q_length * a.v_size;
    const ent_tensor *seen_output = ent_ops_output(call, 3);
    double *k =
        heads_of(call, &a, ent_ops_input(call, 1), ent_ops_input(call, 4), a.kv_heads, a.kv_length, a.size);
    double *v =
        heads_of(call, &a, ent_ops_input(call, 2), ent_ops_input(call, 5), a.kv_heads, a.kv_length, a.v_size);
    double *y = ent_ops_scratch(call, y_count, sizeof(double)), *seen = NULL;
    a.q = heads_of(call, &a, ent_ops_input(call, 0), NULL, a.q_heads, a.q_length, a.size);
    if (seen_output) seen = ent_ops_scratch(call, ent_ops_element_count(seen_output), sizeof(double));
    if (!a.q || !k || !v || !y || (seen_output && !seen)) return ENT_CODE_OUT_OF_MEMORY;
    a.k = k;
    a.v = v;
    for (int64_t i = 0; i < y_count; i++) y[i] = 0;
    code = attend(call, &a, y, seen);
    if (code != ENT_OK) return code;
    ent_ops_result_f64(ent_ops_output(call, 0), y);
    ent_ops_result_f64(ent_ops_output(call, 1), k);
    ent_ops_result_f64(ent_ops_output(call, 2), v);
    ent_ops_result_f64(seen_output, seen);
    return ENT_OK;
}
