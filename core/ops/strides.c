/* Layouts as strides, and one walk over several tensors at once. */
#include "core/ops/internal.h"

/* Elements of a sub-byte row fill whole bytes, so the innermost extent counts rounded up. */
static int64_t padded_row(uint32_t dtype, int64_t extent) {
    uint32_t bits = ent_dtype_bits((ent_dtype)dtype);
    if (bits == 0 || bits >= 8) return extent;
    int64_t per_byte = 8 / (int64_t)bits;
    return (extent + per_byte - 1) / per_byte * per_byte;
}

void ent_ops_strides(const ent_tensor *tensor, int64_t *out_strides) {
    int64_t stride = 1;
    for (uint32_t i = tensor->rank; i-- > 0;) {
        uint32_t axis = tensor->layout.order[i];
        out_strides[axis] = stride;
        int64_t extent = tensor->dims[axis];
        stride *= i + 1 == tensor->rank ? padded_row(tensor->dtype, extent) : extent;
    }
}

int64_t ent_ops_offset(const ent_tensor *tensor, const int64_t *index) {
    const ent_layout *layout = &tensor->layout;
    int64_t physical[ENT_MAX_RANK + ENT_MAX_BLOCKS], coordinate[ENT_MAX_RANK + ENT_MAX_BLOCKS],
        rest[ENT_MAX_RANK];
    uint32_t count = ent_layout_physical(layout, tensor->dims, physical);
    if (count > 0) physical[count - 1] = padded_row(tensor->dtype, physical[count - 1]);
    for (uint32_t i = 0; i < layout->rank; i++) rest[i] = index[i];
    for (uint32_t b = layout->block_count; b-- > 0;) {
        uint32_t axis = layout->block_axis[b];
        coordinate[layout->rank + b] = rest[axis] % layout->block_size[b];
        rest[axis] /= layout->block_size[b];
    }
    for (uint32_t i = 0; i < layout->rank; i++) coordinate[i] = rest[layout->order[i]];
    int64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) offset = offset * physical[i] + coordinate[i];
    return offset;
}

typedef struct walk {
    uint32_t operand_count, rank; /* rank after fusing axes; at least 1 */
    int64_t extent[ENT_MAX_RANK];
    int64_t stride[ENT_OPS_MAX_OPERANDS][ENT_MAX_RANK];
} walk;

/* Axes in the first operand's memory order, so that its writes are sequential. Missing or size-1 axes get
 * stride 0. */
static void walk_fill(walk *w, const ent_tensor *const *operands) {
    const ent_tensor *first = operands[0];
    for (uint32_t o = 0; o < w->operand_count; o++) {
        const ent_tensor *operand = operands[o];
        int64_t strides[ENT_MAX_RANK];
        ent_ops_strides(operand, strides);
        for (uint32_t i = 0; i < first->rank; i++) {
            uint32_t axis = first->layout.order[i];
            w->extent[i] = first->dims[axis];
            int64_t own = (int64_t)axis - ((int64_t)first->rank - (int64_t)operand->rank);
            w->stride[o][i] = own < 0 || operand->dims[own] == 1 ? 0 : strides[own];
        }
    }
    w->rank = first->rank;
    if (w->rank == 0) {
        w->rank = 1;
        w->extent[0] = 1;
        for (uint32_t o = 0; o < w->operand_count; o++) w->stride[o][0] = 0;
    }
}

/* Fuses neighbouring axes that every operand steps through evenly. */
static void walk_fuse(walk *w) {
    uint32_t kept = 0;
    for (uint32_t i = 1; i < w->rank; i++) {
        bool even = true;
        for (uint32_t o = 0; o < w->operand_count; o++)
            if (w->stride[o][kept] != w->stride[o][i] * w->extent[i]) even = false;
        if (w->extent[kept] == 1) even = true;
        if (even)
            w->extent[kept] *= w->extent[i];
        else
            w->extent[++kept] = w->extent[i];
        for (uint32_t o = 0; o < w->operand_count; o++) w->stride[o][kept] = w->stride[o][i];
    }
    w->rank = kept + 1;
}

void ent_ops_walk(const ent_tensor *const *operands, uint32_t operand_count, ent_ops_run run, void *context) {
    walk w = {.operand_count = operand_count};
    walk_fill(&w, operands);
    for (uint32_t i = 0; i < w.rank; i++)
        if (w.extent[i] == 0) return;
    walk_fuse(&w);
    uint32_t inner = w.rank - 1;
    int64_t index[ENT_MAX_RANK] = {0}, offset[ENT_OPS_MAX_OPERANDS] = {0}, stride[ENT_OPS_MAX_OPERANDS];
    for (uint32_t o = 0; o < operand_count; o++) stride[o] = w.stride[o][inner];
    for (;;) {
        run(context, offset, stride, w.extent[inner]);
        uint32_t axis = inner;
        while (axis-- > 0) {
            index[axis]++;
            for (uint32_t o = 0; o < operand_count; o++) offset[o] += w.stride[o][axis];
            if (index[axis] < w.extent[axis]) break;
            for (uint32_t o = 0; o < operand_count; o++) offset[o] -= w.stride[o][axis] * w.extent[axis];
            index[axis] = 0;
        }
        if (axis == UINT32_MAX) return;
    }
}
