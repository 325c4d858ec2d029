/* TopK and Unique, over keys: an int64 per element that orders as the elements do. */
#include "core/ops/internal.h"

#include <string.h>

static int64_t element_bytes(const ent_tensor *tensor) {
    return ent_dtype_bits((ent_dtype)tensor->dtype) / 8;
}

/* Minus zero equals zero; NaN equals itself and comes last. */
static int64_t key_of_float(double value) {
    int64_t bits;
    if (value != value) return INT64_MAX;
    if (value == 0) return 0;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

static int64_t *keys_of(ent_ops_call *call, const ent_tensor *x) {
    int64_t count = ent_ops_element_count(x);
    if (ent_ops_dtype_in(x->dtype, ENT_OPS_FLOATS)) {
        int64_t *keys = ent_ops_scratch(call, count, sizeof *keys);
        for (int64_t i = 0; keys && i < count; i++)
            keys[i] = key_of_float(ent_ops_load_f64(x->data, x->dtype, i));
        return keys;
    }
    int64_t *keys = ent_ops_values_i64(call, x);
    for (int64_t i = 0; keys && x->dtype == ENT_DTYPE_U64 && i < count; i++) keys[i] ^= INT64_MIN;
    return keys;
}

/* Stable, by merging. */
void ent_ops_sort(int64_t *items, int64_t count, int64_t *room, ent_ops_before before, const void *context) {
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t start = 0; start < count; start += 2 * width) {
            int64_t middle = start + width < count ? start + width : count;
            int64_t end = middle + width < count ? middle + width : count, a = start, b = middle;
            for (int64_t to = start; to < end; to++) {
                bool second = a == middle || (b < end && before(context, items[b], items[a]));
                room[to] = second ? items[b++] : items[a++];
            }
        }
        memcpy(items, room, (size_t)count * sizeof *items);
    }
}

/* ---- TopK ---- */

typedef struct line {
    const int64_t *keys;
    int64_t stride;
    bool largest;
} line;

static bool line_before(const void *context, int64_t a, int64_t b) {
    const line *l = context;
    int64_t x = l->keys[a * l->stride], y = l->keys[b * l->stride];
    return l->largest ? x > y : x < y;
}

ent_code ent_ops_dims_topk(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t k = 0;
    uint32_t axis, count;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    if (code == ENT_OK) code = ent_ops_input_list(call, 1, &k, 1, &count);
    if (code != ENT_OK) return code;
    if (count != 1 || k < 0 || k > x->dims[axis])
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "k is %lld for extent %lld", (long long)k,
                              (long long)x->dims[axis]);
    for (uint32_t i = 0; i < call->output_count; i++) {
        ent_ops_dims_copy(x, &outputs[i]);
        outputs[i].dims[axis] = k;
        if (i == 1) outputs[i].dtype = ENT_DTYPE_I64;
    }
    return ENT_OK;
}

ent_code ent_ops_topk(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0),
                     *places = ent_ops_output(call, 1);
    uint32_t axis = 0, count;
    int64_t k = 0, size = element_bytes(x);
    ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -1), x->rank, &axis);
    ent_ops_input_list(call, 1, &k, 1, &count);
    int64_t extent = x->dims[axis], inner = ent_ops_product(x->dims, axis + 1, x->rank),
            outer = ent_ops_product(x->dims, 0, axis);
    const int64_t *keys = keys_of(call, x);
    int64_t *order = ent_ops_scratch(call, extent, sizeof *order),
            *room = ent_ops_scratch(call, extent, sizeof *room);
    if (!keys || !order || !room) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            line l = {keys + o * extent * inner + i, inner, ent_attrs_int(call->attrs, "largest", 1) != 0};
            for (int64_t j = 0; j < extent; j++) order[j] = j;
            ent_ops_sort(order, extent, room, line_before, &l);
            for (int64_t j = 0; j < k; j++) {
                int64_t to = (o * k + j) * inner + i, from = (o * extent + order[j]) * inner + i;
                if (y)
                    memcpy((uint8_t *)y->data + to * size, (const uint8_t *)x->data + from * size,
                           (size_t)size);
                if (places) ((int64_t *)places->data)[to] = order[j];
            }
        }
    return ENT_OK;
}

/* ---- Unique ---- */

/* The items are slices along an axis, or all elements. */
typedef struct slices {
    const int64_t *keys;
    int64_t outer, count, inner;
} slices;

/* Below, at or above 0 as slice a comes before, equals or comes after b. */
static int slice_compare(const slices *s, int64_t a, int64_t b) {
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            int64_t x = s->keys[(o * s->count + a) * s->inner + i],
                    y = s->keys[(o * s->count + b) * s->inner + i];
            if (x != y) return x < y ? -1 : 1;
        }
    return 0;
}

static bool slice_before(const void *context, int64_t a, int64_t b) {
    return slice_compare(context, a, b) < 0;
}

static bool number_before(const void *context, int64_t a, int64_t b) {
    const int64_t *keys = context;
    return keys[a] < keys[b];
}

typedef struct unique_groups {
    slices items;
    int64_t count;
    int64_t *first, *counts, *inverse; /* of each group its first item and size; of each item its group */
} unique_groups;

static ent_code group(ent_ops_call *call, unique_groups *out) {
    const ent_tensor *x = ent_ops_input(call, 0);
    const ent_attr *along = ent_attrs_find(call->attrs, "axis");
    uint32_t axis = 0;
    *out = (unique_groups){.items = {.outer = 1, .count = ent_ops_element_count(x), .inner = 1}};
    slices *s = &out->items;
    if (along) {
        ent_code code = ent_ops_axis(call, along->i, x->rank, &axis);
        if (code != ENT_OK) return code;
        s->outer = ent_ops_product(x->dims, 0, axis);
        s->count = x->dims[axis];
        s->inner = ent_ops_product(x->dims, axis + 1, x->rank);
    }
    if (!x->data && ent_ops_element_count(x) > 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the values of input 0 must be known");
    s->keys = keys_of(call, x);
    int64_t *order = ent_ops_scratch(call, s->count, sizeof *order),
            *room = ent_ops_scratch(call, s->count, sizeof *room);
    out->first = ent_ops_scratch(call, s->count, sizeof *out->first);
    out->counts = ent_ops_scratch(call, s->count, sizeof *out->counts);
    out->inverse = ent_ops_scratch(call, s->count, sizeof *out->inverse);
    if (!s->keys || !order || !room || !out->first || !out->counts || !out->inverse)
        return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < s->count; i++) order[i] = i;
    ent_ops_sort(order, s->count, room, slice_before, s);
    for (int64_t i = 0; i < s->count; i++) {
        if (i == 0 || slice_compare(s, order[i - 1], order[i]) != 0) {
            out->first[out->count] = order[i];
            out->counts[out->count++] = 0;
        }
        out->counts[out->count - 1]++;
        out->inverse[order[i]] = out->count - 1;
    }
    return ENT_OK;
}

/* sorted = 0: the groups in the order of their first items. */
static ent_code order_by_first(ent_ops_call *call, unique_groups *g) {
    int64_t *order = ent_ops_scratch(call, g->count, sizeof *order),
            *room = ent_ops_scratch(call, g->count, sizeof *room),
            *place = ent_ops_scratch(call, g->count, sizeof *place),
            *first = ent_ops_scratch(call, g->count, sizeof *first);
    if (!order || !room || !place || !first) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < g->count; i++) order[i] = i;
    ent_ops_sort(order, g->count, room, number_before, g->first);
    for (int64_t i = 0; i < g->count; i++) {
        place[order[i]] = i;
        first[i] = g->first[order[i]];
        room[i] = g->counts[order[i]];
    }
    g->first = first;
    g->counts = room;
    for (int64_t i = 0; i < g->items.count; i++) g->inverse[i] = place[g->inverse[i]];
    return ENT_OK;
}

ent_code ent_ops_dims_unique(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    const ent_attr *along = ent_attrs_find(call->attrs, "axis");
    unique_groups g;
    uint32_t axis;
    ent_code code = group(call, &g);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(x, &outputs[0]);
    if (along) {
        ent_ops_axis(call, along->i, x->rank, &axis);
        outputs[0].dims[axis] = g.count;
    } else {
        outputs[0].rank = 1;
        outputs[0].dims[0] = g.count;
    }
    for (uint32_t i = 1; i < call->output_count; i++) {
        outputs[i].dtype = ENT_DTYPE_I64;
        outputs[i].rank = 1;
        outputs[i].dims[0] = i == 2 ? g.items.count : g.count;
    }
    return ENT_OK;
}

ent_code ent_ops_unique(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    unique_groups g;
    ent_code code = group(call, &g);
    if (code == ENT_OK && ent_attrs_int(call->attrs, "sorted", 1) == 0) code = order_by_first(call, &g);
    if (code != ENT_OK) return code;
    int64_t row = g.items.inner * element_bytes(x);
    for (int64_t o = 0; y && row > 0 && o < g.items.outer; o++)
        for (int64_t i = 0; i < g.count; i++)
            memcpy((uint8_t *)y->data + (o * g.count + i) * row,
                   (const uint8_t *)x->data + (o * g.items.count + g.first[i]) * row, (size_t)row);
    const int64_t *lists[] = {g.first, g.inverse, g.counts};
    for (uint32_t i = 0; i < 3; i++)
        if (ent_ops_output(call, i + 1)) ent_ops_result_i64(ent_ops_output(call, i + 1), lists[i]);
    return ENT_OK;
}
