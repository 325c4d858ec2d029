/* Einsum: its equation and shape rule. Source: the ONNX schema, which follows numpy.einsum. */
#include "core/graph/einsum.h"
#include "core/graph/infer.h"

#include <string.h>

static int label_of(char c) {
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    return c >= 'A' && c <= 'Z' ? c - 'A' : -1; /* capitals first: the order of an implicit result */
}

static bool ends_term(ent_str text, size_t at) {
    return at >= text.size || text.data[at] == ',' || text.data[at] == '-';
}

/* One term. rank: of the operand, or of "..." in a result. */
static const char *read_term(ent_str text, size_t *at, uint32_t rank, bool is_result, ent_einsum_term *out) {
    uint32_t letters = 0, dots = 0;
    for (size_t i = *at; !ends_term(text, i); i++) {
        letters += label_of(text.data[i]) >= 0;
        dots += text.data[i] == '.';
    }
    uint32_t axes = dots == 0 ? 0 : is_result ? rank : rank >= letters ? rank - letters : 0;
    if ((dots != 0 && dots != 3) || letters + axes > ENT_MAX_RANK || (!is_result && letters + axes != rank))
        return "a term does not fit the rank of its operand";
    for (; !ends_term(text, *at); ++*at) {
        char c = text.data[*at];
        int label = label_of(c);
        if (label >= 0) {
            out->label[out->count++] = (uint8_t)label;
        } else if (c == '.') {
            if (text.size - *at < 3 || memcmp(text.data + *at, "...", 3) != 0) return "there is a stray '.'";
            *at += 2;
            for (uint32_t i = 0; i < axes; i++)
                out->label[out->count++] = (uint8_t)(ENT_EINSUM_LABELS - axes + i);
        } else if (c != ' ') {
            return "there is a character that is no label";
        }
    }
    return NULL;
}

/* Without "->": the axes of "...", then every label that occurs once, in alphabetical order. */
static const char *implicit_result(const uint32_t *uses, ent_einsum *out) {
    for (uint32_t k = 0; k < ENT_EINSUM_LABELS; k++) {
        uint32_t label = (k + ENT_EINSUM_LETTERS) % ENT_EINSUM_LABELS;
        if (uses[label] == 0 || (label < ENT_EINSUM_LETTERS && uses[label] != 1)) continue;
        if (out->out.count == ENT_MAX_RANK) return "the result has too many axes";
        out->out.label[out->out.count++] = (uint8_t)label;
    }
    return NULL;
}

static const char *check_result(const uint32_t *uses, const ent_einsum_term *result) {
    bool seen[ENT_EINSUM_LABELS] = {false};
    for (uint32_t i = 0; i < result->count; i++) {
        uint8_t label = result->label[i];
        if (uses[label] == 0 || seen[label]) return "a label of the result is unknown or repeated";
        seen[label] = true;
    }
    return NULL;
}

const char *ent_einsum_read(ent_attrs attrs, const uint32_t *ranks, uint32_t count, ent_einsum *out) {
    const ent_attr *equation = ent_attrs_find(attrs, "equation");
    uint32_t uses[ENT_EINSUM_LABELS] = {0}, wide = 0;
    size_t at = 0;
    *out = (ent_einsum){.out = {.count = 0}};
    if (!equation || equation->type != ENT_ATTR_STRING) return "it is missing";
    if (count > ENT_EINSUM_OPERANDS) return "there are more than 16 operands";
    ent_str text = equation->s;
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && (at >= text.size || text.data[at++] != ','))
            return "there are fewer terms than operands";
        const char *wrong = read_term(text, &at, ranks[i], false, &out->in[i]);
        if (wrong) return wrong;
        for (uint32_t k = 0; k < out->in[i].count; k++) uses[out->in[i].label[k]]++;
    }
    for (uint32_t l = ENT_EINSUM_LETTERS; l < ENT_EINSUM_LABELS; l++) wide += uses[l] != 0;
    if (at >= text.size) return implicit_result(uses, out);
    if (text.size - at < 2 || text.data[at] != '-' || text.data[at + 1] != '>')
        return "there are more terms than operands";
    at += 2;
    const char *wrong = read_term(text, &at, wide, true, &out->out);
    if (!wrong && at < text.size) wrong = "there is more than one result";
    return wrong ? wrong : check_result(uses, &out->out);
}

/* An extent of 1 broadcasts. */
ent_status ent_infer_Einsum(ent_infer *infer) {
    ent_einsum e;
    uint32_t ranks[ENT_EINSUM_OPERANDS], count = infer->node->input_count;
    ent_dim extent[ENT_EINSUM_LABELS], dims[ENT_MAX_RANK];
    for (uint32_t l = 0; l < ENT_EINSUM_LABELS; l++) extent[l] = 1;
    for (uint32_t i = 0; i < count && i < ENT_EINSUM_OPERANDS; i++) {
        if (!ent_infer_input(infer, i)) return ent_infer_fail(infer, "node.arity", "operand %u is absent", i);
        ranks[i] = ent_infer_input(infer, i)->rank;
    }
    const char *wrong = ent_einsum_read(infer->attrs, ranks, count, &e);
    if (wrong) return ent_infer_fail(infer, "attribute.equation", "the equation does not fit: %s", wrong);
    ENT_TRY(ent_infer_same_dtype(infer, 0, count));
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < e.in[i].count; k++) {
            ent_dim *known = &extent[e.in[i].label[k]];
            uint32_t rank = 1;
            if (!ent_infer_broadcast(infer, &rank, known, 1, &ent_infer_input(infer, i)->dims[k]))
                return ent_infer_fail(infer, "shape.broadcast", "a label of the equation has two extents");
        }
    for (uint32_t i = 0; i < e.out.count; i++) dims[i] = extent[e.out.label[i]];
    ent_infer_set(infer, 0, ent_infer_input(infer, 0)->dtype, e.out.count, dims);
    return NULL;
}
