/* Einsum: for every index of the result, the sum over all other labels of the product of the operands.
 * Source: the ONNX schema, which follows numpy.einsum; labels are letters, "..." stands for axes that
 * broadcast. */
#include "core/ops/internal.h"

#include <string.h>

#define MAX_OPERANDS 16
#define MAX_LABELS 60
#define ELLIPSIS 52 /* labels from here on are the axes of "...", the last one last */

typedef struct term {
    uint8_t label[ENT_MAX_RANK];
    uint32_t count;
    bool ellipsis;
} term;

typedef struct einsum {
    term in[MAX_OPERANDS], out;
    int64_t extent[MAX_LABELS];
    bool used[MAX_LABELS];
    uint8_t loop[MAX_LABELS]; /* labels of the result, then those that are summed */
    uint32_t loop_count;
} einsum;

static ent_code bad(ent_ops_call *call, const char *what) {
    return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s", what);
}

static int label_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return c >= 'A' && c <= 'Z' ? c - 'A' : -1; /* capitals first: the order of the implicit result */
}

/* One term up to ',' or '-' or the end. rank: of the operand, so that "..." gets its axes; UINT32_MAX: those
 * of the widest operand, of which there are `wide`. */
static ent_code read_term(ent_ops_call *call, ent_str text, size_t *at, uint32_t rank, uint32_t wide,
                          term *out) {
    uint32_t letters = 0, ellipsis = 0;
    for (size_t i = *at; i < text.size && text.data[i] != ',' && text.data[i] != '-'; i++) {
        letters += label_of(text.data[i]) >= 0;
        ellipsis += text.data[i] == '.';
    }
    out->ellipsis = ellipsis == 3;
    uint32_t axes = rank == UINT32_MAX ? wide : rank >= letters ? rank - letters : 0;
    if (ellipsis == 0) axes = 0;
    if ((ellipsis != 0 && ellipsis != 3) || letters + axes > ENT_MAX_RANK ||
        (rank != UINT32_MAX && letters + axes != rank))
        return bad(call, "a term of the equation does not fit the rank of its operand");
    for (; *at < text.size && text.data[*at] != ',' && text.data[*at] != '-'; ++*at) {
        char c = text.data[*at];
        int label = label_of(c);
        if (label >= 0) {
            out->label[out->count++] = (uint8_t)label;
        } else if (c == '.') {
            if (text.size - *at < 3 || memcmp(text.data + *at, "...", 3) != 0)
                return bad(call, "the equation holds a stray '.'");
            *at += 2;
            for (uint32_t i = 0; i < axes; i++) out->label[out->count++] = (uint8_t)(MAX_LABELS - axes + i);
        } else if (c != ' ') {
            return bad(call, "the equation holds a character that is no label");
        }
    }
    return ENT_OK;
}

static ent_code take_extents(ent_ops_call *call, const ent_tensor *tensor, const term *t, einsum *e) {
    for (uint32_t i = 0; i < t->count; i++) {
        uint8_t label = t->label[i];
        int64_t extent = tensor->dims[i], *known = &e->extent[label];
        if (e->used[label] && *known != extent && *known != 1 && extent != 1)
            return bad(call, "a label has two extents");
        if (!e->used[label] || *known == 1) *known = extent;
        e->used[label] = true;
    }
    return ENT_OK;
}

/* Without "->": the axes of "...", then every label that occurs once, in alphabetical order. */
static void implicit_result(einsum *e, uint32_t operands) {
    uint32_t uses[MAX_LABELS] = {0};
    for (uint32_t i = 0; i < operands; i++)
        for (uint32_t j = 0; j < e->in[i].count; j++) uses[e->in[i].label[j]]++;
    for (uint32_t l = ELLIPSIS; l < MAX_LABELS; l++)
        if (uses[l] && e->out.count < ENT_MAX_RANK) e->out.label[e->out.count++] = (uint8_t)l;
    for (uint32_t l = 0; l < ELLIPSIS; l++)
        if (uses[l] == 1 && e->out.count < ENT_MAX_RANK) e->out.label[e->out.count++] = (uint8_t)l;
}

static ent_code order_loops(ent_ops_call *call, einsum *e) {
    bool in_loop[MAX_LABELS] = {false};
    for (uint32_t i = 0; i < e->out.count; i++) {
        uint8_t label = e->out.label[i];
        if (!e->used[label] || in_loop[label])
            return bad(call, "a label of the result is unknown or repeated");
        in_loop[label] = true;
        e->loop[e->loop_count++] = label;
    }
    for (uint32_t l = 0; l < MAX_LABELS; l++)
        if (e->used[l] && !in_loop[l]) e->loop[e->loop_count++] = (uint8_t)l;
    return ENT_OK;
}

static ent_code einsum_resolve(ent_ops_call *call, einsum *e) {
    const ent_attr *equation = ent_attrs_find(call->attrs, "equation");
    *e = (einsum){.loop_count = 0};
    if (!equation || equation->type != ENT_ATTR_STRING) return bad(call, "there is no equation");
    if (call->input_count > MAX_OPERANDS)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "more than %d operands", MAX_OPERANDS);
    ent_str text = equation->s;
    size_t at = 0;
    uint32_t wide = 0;
    for (uint32_t i = 0; i < call->input_count; i++) {
        const ent_tensor *tensor = ent_ops_input(call, i);
        if (tensor->dtype != ent_ops_input(call, 0)->dtype)
            return bad(call, "the operands have different dtypes");
        if (i > 0 && (at >= text.size || text.data[at++] != ','))
            return bad(call, "the equation has fewer terms than there are operands");
        ent_code code = read_term(call, text, &at, tensor->rank, 0, &e->in[i]);
        if (code == ENT_OK) code = take_extents(call, tensor, &e->in[i], e);
        if (code != ENT_OK) return code;
    }
    for (uint32_t l = ELLIPSIS; l < MAX_LABELS; l++) wide += e->used[l];
    if (at >= text.size) {
        implicit_result(e, call->input_count);
        return order_loops(call, e);
    }
    if (text.size - at < 2 || text.data[at] != '-' || text.data[at + 1] != '>')
        return bad(call, "the equation has more terms than there are operands");
    at += 2;
    ent_code code = read_term(call, text, &at, UINT32_MAX, wide, &e->out);
    if (code == ENT_OK && at < text.size) code = bad(call, "the equation has more than one result");
    return code == ENT_OK ? order_loops(call, e) : code;
}

ent_code ent_ops_dims_einsum(ent_ops_call *call, ent_tensor *outputs) {
    einsum e;
    ent_code code = einsum_resolve(call, &e);
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_input(call, 0)->dtype;
    outputs[0].rank = e.out.count;
    for (uint32_t i = 0; i < e.out.count; i++) outputs[0].dims[i] = e.extent[e.out.label[i]];
    return ENT_OK;
}

/* Per operand the stride of each loop; a label that occurs twice walks the diagonal. */
static void fill_strides(const ent_ops_call *call, const einsum *e, int64_t stride[][MAX_LABELS]) {
    for (uint32_t i = 0; i < call->input_count; i++) {
        const ent_tensor *tensor = ent_ops_input(call, i);
        int64_t by_label[MAX_LABELS] = {0}, own = 1;
        for (uint32_t j = tensor->rank; j-- > 0; own *= tensor->dims[j])
            if (tensor->dims[j] != 1) by_label[e->in[i].label[j]] += own;
        for (uint32_t j = 0; j < e->loop_count; j++) stride[i][j] = by_label[e->loop[j]];
    }
}

typedef struct operands {
    const double *f64[MAX_OPERANDS];
    const int64_t *i64[MAX_OPERANDS];
    int64_t stride[MAX_OPERANDS][MAX_LABELS];
} operands;

static ent_code load_operands(ent_ops_call *call, bool integers, operands *o) {
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (integers)
            o->i64[i] = ent_ops_values_i64(call, ent_ops_input(call, i));
        else
            o->f64[i] = ent_ops_values_f64(call, ent_ops_input(call, i));
        if (!o->i64[i] && !o->f64[i]) return ENT_CODE_OUT_OF_MEMORY;
    }
    return ENT_OK;
}

ent_code ent_ops_einsum(ent_ops_call *call) {
    einsum e;
    operands o = {.f64 = {NULL}};
    ent_code code = einsum_resolve(call, &e);
    bool integers = ent_ops_dtype_in(ent_ops_input(call, 0)->dtype, ENT_OPS_INTEGERS);
    if (code == ENT_OK) code = load_operands(call, integers, &o);
    if (code != ENT_OK) return code;
    const ent_tensor *y = ent_ops_output(call, 0);
    int64_t count = ent_ops_element_count(y), inner = 1, at[MAX_OPERANDS] = {0}, index[MAX_LABELS] = {0};
    void *result = ent_ops_scratch(call, count, 8);
    if (!result) return ENT_CODE_OUT_OF_MEMORY;
    memset(result, 0, (size_t)count * 8);
    double *sum_f64 = result;
    uint64_t *sum_i64 = result;
    fill_strides(call, &e, o.stride);
    for (uint32_t i = e.out.count; i < e.loop_count; i++) inner *= e.extent[e.loop[i]];
    for (int64_t step = 0; step < count * inner; step++) {
        double f64 = 1;
        uint64_t i64 = 1;
        for (uint32_t i = 0; i < call->input_count; i++) {
            if (integers)
                i64 *= (uint64_t)o.i64[i][at[i]];
            else
                f64 *= o.f64[i][at[i]];
        }
        if (integers)
            sum_i64[step / inner] += i64;
        else
            sum_f64[step / inner] += f64;
        for (uint32_t l = e.loop_count; l-- > 0;) {
            int64_t extent = e.extent[e.loop[l]];
            bool wraps = ++index[l] == extent;
            for (uint32_t i = 0; i < call->input_count; i++)
                at[i] += wraps ? -o.stride[i][l] * (extent - 1) : o.stride[i][l];
            if (!wraps) break;
            index[l] = 0;
        }
    }
    if (integers)
        ent_ops_result_i64(y, result);
    else
        ent_ops_result_f64(y, result);
    return ENT_OK;
}
