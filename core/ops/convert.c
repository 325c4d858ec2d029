/* Copies between layouts. A strided layout's offset is a sum of one function per axis; on an axis with blocks
 * that function is linear in the digits of a mixed-radix number whose radices are the blocks. So a conversion
 * is a box of digits, or a few boxes where an extent is no multiple of a block, and each box is one strided
 * copy. */
#include "core/ops/internal.h"

#include <stdio.h>
#include <string.h>

typedef struct conversion {
    const ent_tensor *from, *to;
    int64_t size_bytes;
    uint32_t weight_count[ENT_MAX_RANK];
    int64_t weight[ENT_MAX_RANK]
                  [2 * ENT_MAX_BLOCKS]; /* block products of both layouts, ascending, each divides the next */
} conversion;

static int64_t axis_offset(const ent_tensor *tensor, uint32_t axis, int64_t value) {
    int64_t index[ENT_MAX_RANK] = {0};
    index[axis] = value;
    return ent_ops_offset(tensor, index);
}

static void add_weight(conversion *c, uint32_t axis, int64_t weight) {
    uint32_t place = 0;
    while (place < c->weight_count[axis] && c->weight[axis][place] < weight) place++;
    if (place < c->weight_count[axis] && c->weight[axis][place] == weight) return;
    for (uint32_t i = c->weight_count[axis]; i > place; i--) c->weight[axis][i] = c->weight[axis][i - 1];
    c->weight[axis][place] = weight;
    c->weight_count[axis]++;
}

/* Block products of one layout, innermost first. */
static void add_weights(conversion *c, const ent_layout *layout) {
    int64_t product[ENT_MAX_RANK];
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) product[i] = 1;
    for (uint32_t b = layout->block_count; b-- > 0;) {
        uint32_t axis = layout->block_axis[b];
        product[axis] *= layout->block_size[b];
        if (product[axis] > 1) add_weight(c, axis, product[axis]);
    }
}

/* False when the blocks of the two layouts do not nest, so that digits do not describe both. */
static bool weights_nest(const conversion *c) {
    for (uint32_t axis = 0; axis < c->from->rank; axis++)
        for (uint32_t i = 1; i < c->weight_count[axis]; i++)
            if (c->weight[axis][i] % c->weight[axis][i - 1] != 0) return false;
    return true;
}

/* Adds the digits of `axis` for a range of `extent` whose largest block is weight[top - 1]. */
static uint32_t add_digits(const conversion *c, uint32_t axis, uint32_t top, int64_t extent,
                           ent_ops_copy_axis *axes, uint32_t count) {
    for (uint32_t i = top + 1; i-- > 0;) {
        int64_t weight = i == 0 ? 1 : c->weight[axis][i - 1];
        int64_t span = i == top ? extent : c->weight[axis][i];
        if (span / weight <= 1) continue;
        axes[count].extent = span / weight;
        axes[count].from_stride = axis_offset(c->from, axis, weight);
        axes[count].to_stride = axis_offset(c->to, axis, weight);
        count++;
    }
    return count;
}

/* Splits each axis into ranges that hold whole blocks, and copies every box of ranges. Depth is at most the
 * rank. */
static void convert_box(const conversion *c, uint32_t axis, int64_t from, int64_t to,
                        const ent_ops_copy_axis *axes, uint32_t count) {
    if (axis == c->from->rank) {
        ent_ops_copy_axis own[ENT_OPS_COPY_AXES];
        memcpy(own, axes, count * sizeof *axes);
        int64_t size = c->size_bytes;
        ent_ops_copy((const uint8_t *)c->from->data + from * size, (uint8_t *)c->to->data + to * size, size,
                     own, count);
        return;
    }
    int64_t base = 0, extent = c->from->dims[axis];
    for (uint32_t top = c->weight_count[axis] + 1; top-- > 0 && base < extent;) {
        int64_t weight = top == 0 ? 1 : c->weight[axis][top - 1];
        int64_t span = (extent - base) / weight * weight;
        if (span == 0) continue;
        ent_ops_copy_axis own[ENT_OPS_COPY_AXES];
        memcpy(own, axes, count * sizeof *axes);
        uint32_t own_count = add_digits(c, axis, top, span, own, count);
        convert_box(c, axis + 1, from + axis_offset(c->from, axis, base), to + axis_offset(c->to, axis, base),
                    own, own_count);
        base += span;
    }
}

static void move_element(const ent_tensor *from, int64_t from_index, const ent_tensor *to, int64_t to_index) {
    uint32_t bits = ent_dtype_bits((ent_dtype)from->dtype);
    if (bits <= 64) {
        ent_ops_code_store(to->data, to->dtype, to_index,
                           ent_ops_code_load(from->data, from->dtype, from_index));
    } else {
        int64_t size = bits / 8;
        memcpy((uint8_t *)to->data + to_index * size, (const uint8_t *)from->data + from_index * size,
               (size_t)size);
    }
}

/* Sub-byte elements, and blocks that do not nest. */
static void convert_slowly(const ent_tensor *from, const ent_tensor *to) {
    int64_t index[ENT_MAX_RANK] = {0};
    for (;;) {
        move_element(from, ent_ops_offset(from, index), to, ent_ops_offset(to, index));
        uint32_t axis = from->rank;
        while (axis-- > 0) {
            if (++index[axis] < from->dims[axis]) break;
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) return;
    }
}

static bool has_padding(const ent_tensor *tensor) {
    int64_t physical[ENT_MAX_RANK + ENT_MAX_BLOCKS];
    uint32_t count = ent_layout_physical(&tensor->layout, tensor->dims, physical);
    return ent_ops_product(physical, 0, count) != ent_ops_element_count(tensor) ||
           ent_dtype_bits((ent_dtype)tensor->dtype) < 8;
}

static ent_code refuse(ent_ops_error *error, const char *text) {
    if (error) {
        error->code = ENT_CODE_INVALID_ARGUMENT;
        snprintf(error->text, sizeof error->text, "convert: %s", text);
    }
    return ENT_CODE_INVALID_ARGUMENT;
}

static bool layout_usable(const ent_tensor *tensor) {
    const ent_layout *layout = &tensor->layout;
    if (layout->kind != ENT_LAYOUT_STRIDED || layout->rank != tensor->rank || tensor->rank > ENT_MAX_RANK)
        return false;
    if (layout->block_count > ENT_MAX_BLOCKS) return false;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < layout->rank; i++) {
        if (layout->order[i] >= layout->rank) return false;
        seen |= 1u << layout->order[i];
    }
    for (uint32_t b = 0; b < layout->block_count; b++)
        if (layout->block_axis[b] >= layout->rank || layout->block_size[b] == 0) return false;
    return seen == (1u << layout->rank) - 1;
}

static ent_code check(const ent_tensor *src, const ent_tensor *dst, ent_ops_error *error) {
    if (src->dtype != dst->dtype || src->rank != dst->rank) return refuse(error, "dtype or rank differ");
    if (!layout_usable(src) || !layout_usable(dst))
        return refuse(error, "a layout is not strided or names a bad axis");
    for (uint32_t i = 0; i < src->rank; i++)
        if (src->dims[i] != dst->dims[i] || src->dims[i] < 0) return refuse(error, "dims differ");
    const ent_tensor *both[2] = {src, dst};
    for (int i = 0; i < 2; i++) {
        int64_t bytes = ent_layout_bytes(&both[i]->layout, (ent_dtype)both[i]->dtype, both[i]->dims);
        if (bytes < 0 || (uint64_t)bytes > both[i]->size_bytes || (bytes > 0 && !both[i]->data))
            return refuse(error, "a tensor's memory is smaller than its dims");
    }
    return ent_dtype_bits((ent_dtype)src->dtype) == 0 ? refuse(error, "the dtype has no fixed size") : ENT_OK;
}

ent_code ent_ops_convert(const ent_tensor *src, ent_tensor *dst, ent_ops_error *error) {
    ent_code code = check(src, dst, error);
    if (code != ENT_OK) return code;
    int64_t bytes = ent_layout_bytes(&dst->layout, (ent_dtype)dst->dtype, dst->dims);
    bool alike = ent_layout_equal(&src->layout, &dst->layout);
    if (bytes > 0 && alike && src->layout.block_count == 0) {
        memcpy(dst->data, src->data, (size_t)bytes);
        return ENT_OK;
    }
    if (bytes > 0 && has_padding(dst)) memset(dst->data, 0, (size_t)bytes);
    if (ent_ops_element_count(src) == 0) return ENT_OK;
    conversion c = {.from = src, .to = dst, .size_bytes = ent_dtype_bits((ent_dtype)src->dtype) / 8};
    add_weights(&c, &src->layout);
    add_weights(&c, &dst->layout);
    const ent_ops_copy_axis none[1] = {{1, 1, 1}};
    if (c.size_bytes == 0 || !weights_nest(&c))
        convert_slowly(src, dst);
    else
        convert_box(&c, 0, 0, 0, none, 0);
    return ENT_OK;
}
