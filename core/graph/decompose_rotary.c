/* Body of RotaryEmbedding: pairs of a head's elements turn by the angle of their place.
 * Source: the function body of the ONNX schema, version 23. */
#include "core/graph/decompose.h"

typedef struct rotary {
    uint32_t x, rank, wide; /* wide: the type it computes in */
    int64_t size, turned;
    bool interleaved;
} rotary;

static bool read_rotary(const ent_body *body, rotary *r) {
    const ent_value *x = ent_body_value(body, ent_body_input(body, 0));
    int64_t heads = ent_attrs_int(body->node.attrs, "num_heads", 0);
    r->x = ent_body_input(body, 0);
    r->rank = x->rank;
    r->wide = ent_body_wide(x->dtype);
    r->interleaved = ent_attrs_int(body->node.attrs, "interleaved", 0) != 0;
    if ((x->rank != 3 && x->rank != 4) ||
        !ent_module_dim_number(body->module, x->dims[x->rank - 1], &r->size))
        return false;
    if (x->rank == 3 && (heads <= 0 || r->size % heads != 0)) return false;
    if (x->rank == 3) r->size /= heads;
    r->turned = ent_attrs_int(body->node.attrs, "rotary_embedding_dim", 0);
    if (r->turned == 0) r->turned = r->size;
    return r->turned > 0 && r->turned <= r->size && r->turned % 2 == 0 &&
           ent_value_elements(body->module, r->x) != 0;
}

/* The cache's rows at the given places, with an axis for the heads. */
static uint32_t angles(ent_body *body, const rotary *r, uint32_t index) {
    uint32_t cache = ent_body_input(body, index), positions = ent_body_input(body, 3);
    int64_t heads_axis = r->rank == 4 ? 1 : 2;
    if (positions != ENT_ID_NONE) cache = ent_body_binary(body, ENT_OP_Gather, cache, positions);
    cache = ent_body_cast(body, cache, r->wide);
    return ent_body_binary(body, ENT_OP_Unsqueeze, cache, ent_body_i64s(body, &heads_axis, 1));
}

/* The two elements of every pair. */
static void split_pairs(ent_body *body, const rotary *r, uint32_t x, uint32_t out[2]) {
    int64_t half = r->turned / 2, shape[5] = {0, 0, 0, half, 2}, last = 4;
    uint32_t pairs = ENT_ID_NONE;
    if (r->interleaved) {
        if (r->turned < r->size) x = ent_body_slice(body, x, 3, 0, r->turned);
        pairs = ent_body_binary(body, ENT_OP_Reshape, x, ent_body_i64s(body, shape, 5));
    }
    for (int64_t i = 0; i < 2; i++) {
        if (!r->interleaved) {
            out[i] = ent_body_slice(body, x, 3, i * half, (i + 1) * half);
            continue;
        }
        out[i] = ent_body_slice(body, pairs, 4, i, i + 1);
        out[i] = ent_body_binary(body, ENT_OP_Squeeze, out[i], ent_body_i64s(body, &last, 1));
    }
}

static uint32_t concat(ent_body *body, int64_t axis, uint32_t a, uint32_t b) {
    ent_attr attr = ent_attr_int("axis", axis);
    return ent_body_add(body, ENT_OP_Concat, ent_attrs_make(body->module, &attr, 1), a, b, ENT_ID_NONE,
                        ENT_ID_NONE);
}

static uint32_t join_pairs(ent_body *body, const rotary *r, const uint32_t part[2]) {
    int64_t shape[4] = {0, 0, 0, r->turned}, last = 4;
    uint32_t wide[2];
    if (!r->interleaved) return concat(body, 3, part[0], part[1]);
    for (int i = 0; i < 2; i++)
        wide[i] = ent_body_binary(body, ENT_OP_Unsqueeze, part[i], ent_body_i64s(body, &last, 1));
    uint32_t pairs = concat(body, 4, wide[0], wide[1]);
    return ent_body_binary(body, ENT_OP_Reshape, pairs, ent_body_i64s(body, shape, 4));
}

/* a * x + sign * b * y */
static uint32_t combine(ent_body *body, uint32_t op, uint32_t a, uint32_t x, uint32_t b, uint32_t y) {
    uint32_t first = ent_body_binary(body, ENT_OP_Mul, a, x),
             second = ent_body_binary(body, ENT_OP_Mul, b, y);
    return ent_body_binary(body, op, first, second);
}

bool ent_decompose_RotaryEmbedding(ent_body *body) {
    rotary r;
    if (!read_rotary(body, &r)) return false;
    int64_t heads[4] = {0, 0, ent_attrs_int(body->node.attrs, "num_heads", 0), r.size};
    uint32_t x = ent_body_cast(body, r.x, r.wide), pair[2], turned[2];
    if (r.rank == 3) x = ent_body_binary(body, ENT_OP_Reshape, x, ent_body_i64s(body, heads, 4));
    uint32_t c = angles(body, &r, 1), s = angles(body, &r, 2);
    split_pairs(body, &r, x, pair);
    turned[0] = combine(body, ENT_OP_Sub, c, pair[0], s, pair[1]);
    turned[1] = combine(body, ENT_OP_Add, s, pair[0], c, pair[1]);
    uint32_t y = join_pairs(body, &r, turned);
    if (r.turned < r.size) y = concat(body, 3, y, ent_body_slice(body, x, 3, r.turned, r.size));
    if (r.rank == 3) y = ent_body_reshape_like(body, y, r.x, ENT_ID_NONE);
    uint32_t dtype = body->status ? ENT_DTYPE_NONE : ent_body_value(body, r.x)->dtype;
    if (dtype == r.wide)
        ent_body_add(body, ENT_OP_Identity, ENT_NO_ATTRS, y, ENT_ID_NONE, ENT_ID_NONE,
                     ent_body_output(body, 0));
    else
        ent_body_cast_to(body, y, dtype, ent_body_output(body, 0));
    return true;
}
