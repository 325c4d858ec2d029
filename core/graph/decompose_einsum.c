/* Body of an Einsum of one or two operands: labels that only one operand has are summed first; then both are
 * brought into the order batch, own, shared labels (the right one: batch, shared, own) and multiplied as
 * matrices. Without a shared label that disappears it is an elementwise product. */
#include "core/graph/decompose.h"
#include "core/graph/einsum.h"

typedef struct labels {
    uint8_t item[ENT_MAX_RANK];
    uint32_t count;
} labels;

typedef struct product {
    ent_einsum e;
    uint32_t operands;
    labels batch, own[2], shared; /* all in the order of the result, shared in that of the left operand */
    int64_t extent[ENT_EINSUM_LABELS];
    bool numbers; /* every extent is known */
} product;

static bool has(const uint8_t *list, uint32_t count, uint8_t label) {
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == label) return true;
    return false;
}

static bool in_term(const ent_einsum_term *term, uint8_t label) {
    return has(term->label, term->count, label);
}

static void put(labels *list, uint8_t label) {
    list->item[list->count++] = label;
}

/* Equal extents wherever a label stands: broadcasting of 1 is left to the evaluation. */
static bool read_extents(const ent_body *body, product *p) {
    ent_dim seen[ENT_EINSUM_LABELS];
    bool used[ENT_EINSUM_LABELS] = {false};
    p->numbers = true;
    for (uint32_t i = 0; i < p->operands; i++) {
        const ent_einsum_term *term = &p->e.in[i];
        for (uint32_t k = 0; k < term->count; k++) {
            uint8_t label = term->label[k];
            ent_dim dim = ent_body_value(body, ent_body_input(body, i))->dims[k];
            if (has(term->label, k, label) || (used[label] && seen[label] != dim)) return false;
            used[label] = true;
            seen[label] = dim;
            bool known = ent_module_dim_number(body->module, dim, &p->extent[label]);
            if (known && p->extent[label] == 0) return false;
            p->numbers = p->numbers && known;
        }
    }
    return true;
}

static bool read_product(const ent_body *body, product *p) {
    uint32_t ranks[2];
    p->operands = body->node.input_count;
    if (p->operands > 2) return false;
    for (uint32_t i = 0; i < p->operands; i++) ranks[i] = ent_body_value(body, ent_body_input(body, i))->rank;
    if (ent_einsum_read(body->node.attrs, ranks, p->operands, &p->e) || !read_extents(body, p)) return false;
    for (uint32_t i = 0; i < p->e.out.count; i++) {
        uint8_t label = p->e.out.label[i];
        bool left = in_term(&p->e.in[0], label), right = p->operands == 2 && in_term(&p->e.in[1], label);
        put(left && right ? &p->batch : left ? &p->own[0] : &p->own[1], label);
    }
    for (uint32_t k = 0; p->operands == 2 && k < p->e.in[0].count; k++) {
        uint8_t label = p->e.in[0].label[k];
        if (in_term(&p->e.in[1], label) && !in_term(&p->e.out, label)) put(&p->shared, label);
    }
    bool plain = p->own[0].count == 1 && p->own[1].count == 1 && p->shared.count == 1;
    return p->numbers || plain || p->shared.count == 0;
}

/* The operand with the labels of `first` and then `second`, all others summed away. */
static uint32_t arrange(ent_body *body, const product *p, uint32_t operand, const labels *first,
                        const labels *second, const labels *third) {
    const labels *parts[3] = {first, second, third};
    int64_t axes[ENT_MAX_RANK], order[ENT_MAX_RANK];
    uint32_t count = 0, kept = 0, rank = 0, value = ent_body_input(body, operand);
    uint8_t left[ENT_MAX_RANK];
    const ent_einsum_term *term = &p->e.in[operand];
    for (uint32_t k = 0; k < term->count; k++) {
        bool wanted = false;
        for (int i = 0; i < 3; i++) wanted = wanted || has(parts[i]->item, parts[i]->count, term->label[k]);
        if (wanted)
            left[kept++] = term->label[k];
        else
            axes[count++] = k;
    }
    ent_attr keep = ent_attr_int("keepdims", 0);
    if (count > 0)
        value = ent_body_add(body, ENT_OP_ReduceSum, ent_attrs_make(body->module, &keep, 1), value,
                             ent_body_i64s(body, axes, count), ENT_ID_NONE, ENT_ID_NONE);
    for (int i = 0; i < 3; i++)
        for (uint32_t k = 0; k < parts[i]->count; k++) {
            int64_t at = 0;
            while (left[at] != parts[i]->item[k]) at++;
            order[rank++] = at;
        }
    return ent_body_permute(body, value, order, rank, ENT_ID_NONE);
}

static int64_t size_of(const product *p, const labels *list) {
    int64_t size = 1;
    for (uint32_t i = 0; i < list->count; i++) size *= p->extent[list->item[i]];
    return size;
}

/* batch x a x b with a and b as one axis each. */
static uint32_t as_matrices(ent_body *body, const product *p, uint32_t value, const labels *a,
                            const labels *b) {
    int64_t shape[ENT_MAX_RANK + 2];
    uint32_t rank = p->batch.count;
    if (a->count == 1 && b->count == 1) return value;
    for (uint32_t i = 0; i < rank; i++) shape[i] = 0;
    shape[rank] = size_of(p, a);
    shape[rank + 1] = size_of(p, b);
    return ent_body_binary(body, ENT_OP_Reshape, value, ent_body_i64s(body, shape, rank + 2));
}

/* batch x own 0 x own 1, from which the result's order is taken. */
static uint32_t multiply(ent_body *body, const product *p) {
    uint32_t side[2];
    int64_t shape[ENT_MAX_RANK], axes[ENT_MAX_RANK];
    uint32_t rank = p->batch.count;
    side[0] = arrange(body, p, 0, &p->batch, &p->own[0], &p->shared);
    side[1] = arrange(body, p, 1, &p->batch, &p->shared, &p->own[1]);
    if (p->shared.count == 0) {
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t gap = p->own[1 - i].count, at = rank + (i ? 0 : p->own[0].count);
            for (uint32_t k = 0; k < gap; k++) axes[k] = at + k;
            if (gap > 0)
                side[i] = ent_body_binary(body, ENT_OP_Unsqueeze, side[i], ent_body_i64s(body, axes, gap));
        }
        return ent_body_binary(body, ENT_OP_Mul, side[0], side[1]);
    }
    side[0] = as_matrices(body, p, side[0], &p->own[0], &p->shared);
    side[1] = as_matrices(body, p, side[1], &p->shared, &p->own[1]);
    uint32_t value = ent_body_binary(body, ENT_OP_MatMul, side[0], side[1]);
    if (p->own[0].count == 1 && p->own[1].count == 1) return value;
    for (uint32_t i = 0; i < rank; i++) shape[i] = 0;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t k = 0; k < p->own[i].count; k++) shape[rank++] = p->extent[p->own[i].item[k]];
    return ent_body_binary(body, ENT_OP_Reshape, value, ent_body_i64s(body, shape, rank));
}

bool ent_decompose_Einsum(ent_body *body) {
    static const labels none = {.count = 0};
    product p = {.operands = 0};
    if (!read_product(body, &p)) return false;
    const labels *parts[3] = {&p.batch, &p.own[0], &p.own[1]};
    int64_t order[ENT_MAX_RANK];
    uint32_t value = p.operands == 2 ? multiply(body, &p) : arrange(body, &p, 0, &p.own[0], &none, &none);
    for (uint32_t i = 0; i < p.e.out.count; i++) {
        uint32_t at = 0;
        for (int k = 0; k < 3; k++)
            for (uint32_t j = 0; j < parts[k]->count; j++, at++)
                if (parts[k]->item[j] == p.e.out.label[i]) order[i] = at;
    }
    ent_body_permute(body, value, order, p.e.out.count, ent_body_output(body, 0));
    return true;
}
