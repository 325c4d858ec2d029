/* One step of RNN, GRU and LSTM, and their activation functions. Source: the equations of the ONNX schemas.
 */
#include "core/ops/recurrent.h"

#include <math.h>
#include <string.h>

/* In the order of the schema's list. uses: 1 alpha, 2 beta. */
static const struct {
    const char *name;
    uint32_t uses;
    double alpha, beta;
} kinds[] = {{"Relu", 0, 0, 0},         {"Tanh", 0, 0, 0},
             {"Sigmoid", 0, 0, 0},      {"Affine", 3, 1, 0},
             {"LeakyRelu", 1, 0.01, 0}, {"ThresholdedRelu", 1, 1, 0},
             {"ScaledTanh", 3, 1, 1},   {"HardSigmoid", 3, 0.2, 0.5},
             {"Elu", 1, 1, 0},          {"Softsign", 0, 0, 0},
             {"Softplus", 0, 0, 0}};

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* size: table */
static double activate(const ent_ops_activation *f, double x) {
    double line = f->alpha * x + f->beta;
    switch (f->kind) {
    case 0:
        return x > 0 ? x : x < 0 ? 0 : x;
    case 1:
        return tanh(x);
    case 2:
        return sigmoid(x);
    case 3:
        return line;
    case 4:
        return x < 0 ? f->alpha * x : x;
    case 5:
        return x >= f->alpha ? x : 0;
    case 6:
        return f->alpha * tanh(f->beta * x);
    case 7:
        return line < 0 ? 0 : line > 1 ? 1 : line;
    case 8:
        return x < 0 ? f->alpha * expm1(x) : x;
    case 9:
        return x / (1 + fabs(x));
    default:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
}

uint32_t ent_ops_activation_count(uint32_t op) {
    return op == ENT_OP_LSTM ? 3 : op == ENT_OP_GRU ? 2 : 1;
}

static bool same_name(const char *text, size_t size, const char *name) {
    for (size_t i = 0; i < size; i++) {
        char a = text[i], b = name[i]; /* names count without regard to case */
        if (b == 0) return false;
        if ((a >= 'A' && a <= 'Z' ? a + 32 : a) != (b >= 'A' && b <= 'Z' ? b + 32 : b)) return false;
    }
    return name[size] == 0;
}

static ent_code read_names(ent_ops_call *call, uint32_t count, ent_ops_activation *out) {
    static const uint32_t common[3][3] = {{1, 0, 0}, {2, 1, 0}, {2, 1, 1}};
    const ent_attr *attr = ent_attrs_find(call->attrs, "activations");
    uint32_t each = ent_ops_activation_count(call->op), found = 0;
    for (uint32_t i = 0; i < count; i++) out[i].kind = common[each - 1][i % each];
    if (!attr || attr->s.size == 0) return ENT_OK;
    for (size_t at = 0; at <= attr->s.size && found < count; found++) {
        size_t size = 0;
        while (at + size < attr->s.size && attr->s.data[at + size] != ',') size++;
        uint32_t kind = 0, known = sizeof kinds / sizeof *kinds;
        while (kind < known && !same_name(attr->s.data + at, size, kinds[kind].name)) kind++;
        if (kind == known)
            return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the activation '%.*s' is unknown", (int)size,
                                  attr->s.data + at);
        out[found].kind = kind;
        at += size + 1;
        if (at > attr->s.size && found + 1 < count) found = count;
    }
    return found == count
               ? ENT_OK
               : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "activations has not %u entries", count);
}

/* A list has one number for each activation that takes one, in order, or one for every activation. */
static ent_code read_parameters(ent_ops_call *call, const char *name, uint32_t bit, uint32_t count,
                                ent_ops_activation *f) {
    const ent_attr *attr = ent_attrs_find(call->attrs, name);
    uint32_t users = 0, next = 0;
    for (uint32_t i = 0; i < count; i++) {
        double missing = bit == 1 ? kinds[f[i].kind].alpha : kinds[f[i].kind].beta;
        *(bit == 1 ? &f[i].alpha : &f[i].beta) = missing;
        users += (kinds[f[i].kind].uses & bit) != 0;
    }
    if (!attr || attr->type != ENT_ATTR_FLOATS || attr->count == 0) return ENT_OK;
    if (attr->count > count)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s has more than %u entries", name, count);
    bool by_place = attr->count == count && users != count;
    for (uint32_t i = 0; i < count; i++) {
        if (!(kinds[f[i].kind].uses & bit)) continue;
        uint32_t at = by_place ? i : next++;
        if (at < attr->count) *(bit == 1 ? &f[i].alpha : &f[i].beta) = attr->floats[at];
    }
    return ENT_OK;
}

ent_code ent_ops_activations_read(ent_ops_call *call, uint32_t directions, ent_ops_activation *out) {
    uint32_t count = directions * ent_ops_activation_count(call->op);
    ent_code code = read_names(call, count, out);
    if (code == ENT_OK) code = read_parameters(call, "activation_alpha", 1, count, out);
    if (code == ENT_OK) code = read_parameters(call, "activation_beta", 2, count, out);
    return code;
}

static double clipped(const ent_ops_cell *cell, double x) {
    if (cell->clip > 0 && x > cell->clip) return cell->clip;
    return cell->clip > 0 && x < -cell->clip ? -cell->clip : x;
}

static double apply(const ent_ops_cell *cell, uint32_t which, double x) {
    return activate(&cell->activation[which], clipped(cell, x));
}

/* gate = bias + h * R' for the gates from..to, without X's part. */
static void recur(const ent_ops_cell *cell, const double *h, int64_t from, int64_t to) {
    int64_t row = cell->gates * cell->hidden, first = from * cell->hidden, count = (to - from) * cell->hidden;
    for (int64_t b = 0; b < cell->batch; b++)
        for (int64_t i = first; i < first + count; i++)
            cell->gate[b * row + i] = cell->r_bias ? cell->r_bias[i] : 0;
    ent_ops_gemm(cell->workspace, cell->batch, count, cell->hidden, (ent_ops_matrix){h, cell->hidden, 1},
                 (ent_ops_matrix){cell->recurrent + first * cell->hidden, 1, cell->hidden},
                 cell->gate + first, row);
}

static double bias_at(const double *bias, int64_t i) {
    return bias ? bias[i] : 0;
}

static void rnn_step(const ent_ops_cell *cell, const double *x, int64_t row_stride, const bool *active) {
    int64_t n = cell->hidden;
    recur(cell, cell->h, 0, 1);
    for (int64_t b = 0; b < cell->batch; b++)
        for (int64_t i = 0; i < n && active[b]; i++)
            cell->h[b * n + i] =
                apply(cell, 0, x[b * row_stride + i] + bias_at(cell->w_bias, i) + cell->gate[b * n + i]);
}

/* Gates z, r, h. */
static void gru_step(const ent_ops_cell *cell, const double *x, int64_t row_stride, const bool *active) {
    int64_t n = cell->hidden, row = 3 * n;
    recur(cell, cell->h, 0, cell->linear_before_reset ? 3 : 2);
    for (int64_t b = 0; b < cell->batch; b++)
        for (int64_t i = 0; i < 2 * n; i++) {
            double *gate = &cell->gate[b * row + i];
            *gate = apply(cell, 0, x[b * row_stride + i] + bias_at(cell->w_bias, i) + *gate);
            if (i >= n) cell->reset[b * n + i - n] = *gate * cell->h[b * n + i - n];
        }
    if (!cell->linear_before_reset) recur(cell, cell->reset, 2, 3);
    for (int64_t b = 0; b < cell->batch; b++)
        for (int64_t i = 0; i < n && active[b]; i++) {
            const double *gate = cell->gate + b * row;
            double past = gate[2 * n + i] * (cell->linear_before_reset ? gate[n + i] : 1);
            double now =
                apply(cell, 1, x[b * row_stride + 2 * n + i] + bias_at(cell->w_bias, 2 * n + i) + past);
            cell->h[b * n + i] = (1 - gate[i]) * now + gate[i] * cell->h[b * n + i];
        }
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void lstm_step(const ent_ops_cell *cell, const double *x, int64_t row_stride, const bool *active) {
    int64_t n = cell->hidden, row = 4 * n;
    const double *peep = cell->peephole;
    recur(cell, cell->h, 0, 4);
    for (int64_t b = 0; b < cell->batch; b++)
        for (int64_t i = 0; i < n && active[b]; i++) {
            double in[4], *c = &cell->c[b * n + i];
            for (int64_t g = 0; g < 4; g++)
                in[g] = x[b * row_stride + g * n + i] + bias_at(cell->w_bias, g * n + i) +
                        cell->gate[b * row + g * n + i];
            double input = apply(cell, 0, in[0] + (peep ? peep[i] * *c : 0));
            double forget =
                cell->input_forget ? 1 - input : apply(cell, 0, in[2] + (peep ? peep[2 * n + i] * *c : 0));
            *c = forget * *c + input * apply(cell, 1, in[3]);
            double output = apply(cell, 0, in[1] + (peep ? peep[n + i] * *c : 0));
            cell->h[b * n + i] = output * activate(&cell->activation[2], *c);
        }
}

void ent_ops_cell_step(const ent_ops_cell *cell, const double *x, int64_t row_stride, const bool *active) {
    if (cell->op == ENT_OP_LSTM)
        lstm_step(cell, x, row_stride, active);
    else if (cell->op == ENT_OP_GRU)
        gru_step(cell, x, row_stride, active);
    else
        rnn_step(cell, x, row_stride, active);
}
