/* Which dims of a contraction are rows, columns and sums, for each operator, and in which layouts it is
 * offered. */
#include <string.h>

#include "core/fusion/internal.h"

static uint8_t add_dim(fusion_group *group, fusion_contraction *c, int64_t size, fusion_role role) {
    if (size == 1 || group->dim_count == FUSION_MAX_DIMS) return FUSION_NONE;
    group->dims[group->dim_count] = size;
    c->role[group->dim_count] = (uint8_t)role;
    return (uint8_t)group->dim_count++;
}

static void clear(fusion_contraction *c) {
    memset(c, 0, sizeof *c);
    c->bias = ENT_ID_NONE;
    memset(c->a_dim, FUSION_NONE, sizeof c->a_dim);
    memset(c->b_dim, FUSION_NONE, sizeof c->b_dim);
    memset(c->bias_dim, FUSION_NONE, sizeof c->bias_dim);
    memset(c->a_spatial, FUSION_NONE, sizeof c->a_spatial);
    memset(c->b_spatial, FUSION_NONE, sizeof c->b_spatial);
    memset(c->spatial_dim, FUSION_NONE, sizeof c->spatial_dim);
    c->n_dim = c->k_dim = c->a_channel = c->b_channel_n = c->b_channel_k = FUSION_NONE;
    c->groups = 1;
    c->alpha = c->beta = 1;
}

static bool set_output(fusion_group *group, uint32_t item, const uint8_t *to_dim) {
    fusion_value *out = fusion_group_value(group, group->context->items[item].outputs[0], to_dim);
    if (!out) return false;
    out->inside = true;
    fusion_group_add_anchor(group, item);
    return true;
}

static bool set_matmul(fusion_group *group, uint32_t item, fusion_contraction *c) {
    const fusion_context *context = group->context;
    const fusion_item *it = &context->items[item];
    const ent_value *a = fusion_value_of(context, it->inputs[0]),
                    *b = fusion_value_of(context, it->inputs[1]);
    const ent_value *y = fusion_value_of(context, it->outputs[0]);
    uint8_t to_dim[ENT_MAX_RANK];
    uint32_t columns = b->rank > 1, rows = a->rank > 1, batch = y->rank - columns - rows;
    c->a = it->inputs[0];
    c->b = it->inputs[1];
    c->kind = "matmul";
    for (uint32_t j = 0; j < batch; j++) {
        int32_t i = (int32_t)(a->rank - 2) - (int32_t)(batch - j),
                k = (int32_t)(b->rank - 2) - (int32_t)(batch - j);
        bool in_a = a->rank > 2 && i >= 0 && a->dims[i] > 1, in_b = b->rank > 2 && k >= 0 && b->dims[k] > 1;
        to_dim[j] = add_dim(group, c, y->dims[j], in_b ? FUSION_ROLE_BATCH : FUSION_ROLE_M);
        if (in_a) c->a_dim[i] = to_dim[j];
        if (in_b) c->b_dim[k] = to_dim[j];
    }
    if (rows) c->a_dim[a->rank - 2] = to_dim[batch] = add_dim(group, c, y->dims[batch], FUSION_ROLE_M);
    c->n = columns ? b->dims[b->rank - 1] : 1;
    c->k = a->dims[a->rank - 1];
    c->n_dim = add_dim(group, c, c->n, FUSION_ROLE_N);
    if (columns) c->b_dim[b->rank - 1] = to_dim[batch + rows] = c->n_dim;
    c->k_dim = add_dim(group, c, c->k, FUSION_ROLE_K);
    c->a_dim[a->rank - 1] = c->k_dim;
    c->b_dim[b->rank > 1 ? b->rank - 2 : 0] = c->k_dim;
    return set_output(group, item, to_dim);
}

static bool set_gemm(fusion_group *group, uint32_t item, fusion_contraction *c) {
    const fusion_context *context = group->context;
    const fusion_item *it = &context->items[item];
    const ent_value *y = fusion_value_of(context, it->outputs[0]),
                    *a = fusion_value_of(context, it->inputs[0]);
    uint32_t a_row = ent_attrs_int(it->attrs, "transA", 0) != 0,
             b_row = ent_attrs_int(it->attrs, "transB", 0) != 0;
    uint8_t to_dim[ENT_MAX_RANK];
    if (a->rank != 2 || y->rank != 2) return false;
    c->a = it->inputs[0];
    c->b = it->inputs[1];
    c->kind = "matmul";
    c->alpha = ent_attrs_float(it->attrs, "alpha", 1);
    c->beta = ent_attrs_float(it->attrs, "beta", 1);
    c->n = y->dims[1];
    c->k = a->dims[1 - a_row];
    c->a_dim[a_row] = to_dim[0] = add_dim(group, c, y->dims[0], FUSION_ROLE_M);
    c->n_dim = to_dim[1] = add_dim(group, c, c->n, FUSION_ROLE_N);
    c->k_dim = add_dim(group, c, c->k, FUSION_ROLE_K);
    c->a_dim[1 - a_row] = c->k_dim;
    c->b_dim[b_row] = c->k_dim;
    c->b_dim[1 - b_row] = c->n_dim;
    if (fusion_item_reads(it, 2) && c->beta != 0) {
        c->bias = it->inputs[2];
        const ent_value *bias = fusion_value_of(context, c->bias);
        for (uint32_t i = 0; i < bias->rank; i++) {
            uint32_t axis = 2 - bias->rank + i;
            if (bias->dims[i] > 1) c->bias_dim[i] = to_dim[axis];
        }
    }
    return set_output(group, item, to_dim);
}

static bool is_pointwise(const fusion_window *w) {
    for (uint32_t i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->pad[i] != 0 || w->in[i] != w->out[i]) return false;
    return true;
}

static bool transposed_legal(const fusion_window *w) {
    for (uint32_t i = 0; i < w->rank; i++)
        if (w->dilation[i] != 1 || w->out[i] == 1 || w->pad[i] < 0) return false;
    return true;
}

static bool set_conv(fusion_group *group, uint32_t item, fusion_contraction *c) {
    fusion_context *context = group->context;
    const fusion_item *it = &context->items[item];
    const ent_value *y = fusion_value_of(context, it->outputs[0]),
                    *x = fusion_value_of(context, it->inputs[0]);
    uint8_t to_dim[ENT_MAX_RANK];
    c->transposed = it->op == ENT_OP_ConvTranspose;
    c->a = it->inputs[0];
    c->b = it->inputs[1];
    c->kind = c->transposed ? "conv-transpose" : "conv";
    if (it->op != ENT_OP_ConvInteger && fusion_item_reads(it, 2)) c->bias = it->inputs[2];
    if (!fusion_window_read(context, it, c->b, c->transposed, &c->window)) return false;
    c->groups = ent_attrs_int(it->attrs, "group", 1);
    if (c->groups < 1 || (c->transposed && !transposed_legal(&c->window))) return false;
    c->n = y->dims[1] / c->groups;
    c->k = x->dims[1] / c->groups;
    c->windowed = c->groups > 1 || c->transposed || !is_pointwise(&c->window);
    c->a_dim[0] = to_dim[0] = add_dim(group, c, y->dims[0], FUSION_ROLE_M);
    to_dim[1] = add_dim(group, c, y->dims[1], FUSION_ROLE_N);
    for (uint32_t i = 0; i < c->window.rank; i++) {
        c->spatial_dim[i] = to_dim[i + 2] = add_dim(group, c, y->dims[i + 2], FUSION_ROLE_M);
        if (c->windowed) {
            c->a_spatial[i + 2] = c->b_spatial[i + 2] = (uint8_t)i;
        } else
            c->a_dim[i + 2] = to_dim[i + 2];
    }
    c->k_dim = add_dim(group, c, c->k, FUSION_ROLE_K);
    c->n_dim = c->n == 1 && c->groups > 1 ? FUSION_NONE : to_dim[1];
    c->a_dim[1] = c->k_dim;
    uint32_t n_axis = c->transposed ? 1 : 0;
    c->b_dim[n_axis] = c->n_dim;
    c->b_dim[1 - n_axis] = c->k_dim;
    if (c->bias != ENT_ID_NONE && y->dims[1] > 1) c->bias_dim[0] = to_dim[1];
    if (c->groups > 1) {
        c->a_channel = 1;
        if (c->transposed)
            c->b_channel_k = 0;
        else
            c->b_channel_n = 0;
    }
    return set_output(group, item, to_dim);
}

/* ---- layouts ---- */

/* The unit for a's dtype; halves run on that for f32. NULL: none. */
static const ent_matrix_unit *unit_of(const fusion_context *context, uint32_t dtype) {
    if (!fusion_is_byte(dtype)) dtype = ENT_DTYPE_F32;
    for (uint32_t i = 0; i < context->capability->matrix_unit_count; i++)
        if (context->capability->matrix_units[i].dtype_a == dtype)
            return &context->capability->matrix_units[i];
    return NULL;
}

/* Constant B: columns outermost in blocks of the unit's panel width, then taps, then k: every panel is read
 * in one run. Where a group's channels are no whole number of panels: columns innermost, not blocked. Bytes:
 * as many of k side by side in a panel as the unit multiplies at once. */
static ent_layout packed_layout(const fusion_context *context, const fusion_contraction *c) {
    const ent_value *b = fusion_value_of(context, c->b);
    const ent_matrix_unit *unit = unit_of(context, fusion_value_of(context, c->a)->dtype);
    uint32_t rank = b->rank, at = 0, block = unit ? unit->b_block : 0, n_axis = FUSION_NONE,
             k_axis = FUSION_NONE;
    ent_layout layout = ent_layout_plain(rank);
    for (uint32_t i = 0; i < rank; i++) {
        if (c->b_dim[i] != FUSION_NONE && c->b_dim[i] == c->n_dim) n_axis = i;
        if (c->b_dim[i] != FUSION_NONE && c->b_dim[i] == c->k_dim) k_axis = i;
    }
    bool blocked = block > 1 && n_axis != FUSION_NONE && (c->groups == 1 || c->n % block == 0);
    bool batched[ENT_MAX_RANK] = {false};
    for (uint32_t i = 0; i < rank; i++) {
        batched[i] = i != n_axis && i != k_axis && c->b_spatial[i] == FUSION_NONE;
        if (batched[i]) layout.order[at++] = (uint8_t)i;
    }
    if (blocked) layout.order[at++] = (uint8_t)n_axis;
    for (uint32_t i = 0; i < rank; i++)
        if (!batched[i] && i != n_axis && i != k_axis) layout.order[at++] = (uint8_t)i;
    if (k_axis != FUSION_NONE) layout.order[at++] = (uint8_t)k_axis;
    if (!blocked && n_axis != FUSION_NONE) layout.order[at++] = (uint8_t)n_axis;
    if (blocked) {
        layout.block_count = 1;
        layout.block_axis[0] = (uint8_t)n_axis;
        layout.block_size[0] = (uint16_t)block;
        if (unit->k > 1 && k_axis != FUSION_NONE) {
            layout.block_count = 2;
            layout.block_axis[1] = (uint8_t)k_axis;
            layout.block_size[1] = (uint16_t)unit->k;
        }
    }
    return layout;
}

static uint8_t innermost_dim(const fusion_context *context, uint32_t value, const ent_layout *layout,
                             const uint8_t *dims) {
    uint8_t axes[ENT_MAX_RANK];
    uint32_t count = fusion_layout_sequence(context->module, value, layout, axes);
    return count ? dims[axes[count - 1]] : FUSION_NONE;
}

/* Layouts of A: those whose rows are contiguous; the first one if there is none. */
static uint32_t layouts_of_a(const fusion_context *context, const fusion_contraction *c,
                             const ent_layout **out) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < context->layouts->counts[c->a]; i++) {
        const ent_layout *layout = &context->layouts->items[c->a][i];
        uint8_t inner = innermost_dim(context, c->a, layout, c->a_dim);
        bool channels = c->k_dim != FUSION_NONE ? inner == c->k_dim : true;
        if (channels) out[count++] = layout;
    }
    if (count == 0) out[count++] = &context->layouts->items[c->a][0];
    return count;
}

static uint32_t layouts_of_b(const fusion_context *context, const fusion_contraction *c, ent_layout *packed,
                             const ent_layout **out) {
    uint32_t count = 0;
    if (fusion_is_constant(context, c->b)) {
        *packed = packed_layout(context, c);
        out[0] = packed;
        return 1;
    }
    for (uint32_t i = 0; i < context->layouts->counts[c->b]; i++) {
        const ent_layout *layout = &context->layouts->items[c->b][i];
        uint8_t inner = innermost_dim(context, c->b, layout, c->b_dim);
        if (c->windowed || inner == c->n_dim || inner == c->k_dim || inner == FUSION_NONE)
            out[count++] = layout;
    }
    if (count == 0) out[count++] = &context->layouts->items[c->b][0];
    return count;
}

#define MAX_VARIANTS 12

static void make_variants(fusion_group *group, void *user) {
    const fusion_contraction *c = user;
    fusion_context *context = group->context;
    const ent_layout *a[ENT_FUSION_MAX_LAYOUTS], *b[ENT_FUSION_MAX_LAYOUTS];
    ent_layout packed;
    uint32_t out = group->outputs[0], a_count = layouts_of_a(context, c, a),
             b_count = layouts_of_b(context, c, &packed, b);
    uint32_t out_count = context->layouts->counts[out], made = 0;
    const fusion_value *v = fusion_group_find(group, out);
    for (uint32_t o = 0; o < out_count; o++) {
        const ent_layout *layout = &context->layouts->items[out][o];
        uint8_t inner = innermost_dim(context, out, layout, v->to_dim);
        if (o > 0 && inner != c->n_dim && c->n > 1) continue;
        for (uint32_t i = 0; i < a_count * b_count && made < MAX_VARIANTS; i++, made++)
            fusion_contraction_emit(group, c, a[i % a_count], b[i / a_count], layout);
    }
}

void fusion_grow_epilogues(fusion_group *group, void (*make)(fusion_group *group, void *user), void *user) {
    if (fusion_group_close(group, 1)) make(group, user);
    for (uint32_t emitted = 0; emitted < 8 && fusion_group_grow(group) != ENT_ID_NONE;) {
        if (!fusion_group_close(group, 1)) continue;
        make(group, user);
        emitted++;
    }
}

static bool is_integer_product(uint32_t op) {
    return op == ENT_OP_MatMulInteger || op == ENT_OP_ConvInteger;
}

/* An absent zero point is 0; a list counts when all its numbers are equal. */
static bool zero_point(const fusion_context *context, const fusion_item *item, uint32_t input, double *out) {
    *out = 0;
    if (input >= item->input_count || item->inputs[input] == ENT_ID_NONE) return true;
    const ent_value *v = fusion_value_of(context, item->inputs[input]);
    int64_t count = ent_value_elements(context->module, item->inputs[input]);
    if (!v->constant || count < 1) return false;
    *out = ent_ops_load_f64(v->constant->tensor.data, v->dtype, 0);
    for (int64_t i = 1; i < count; i++)
        if (ent_ops_load_f64(v->constant->tensor.data, v->dtype, i) != *out) return false;
    return true;
}

/* Sums of i32 may wrap, as the operators' do: any order gives the same. */
static bool integers_fit(const fusion_context *context, const fusion_item *item, fusion_contraction *c) {
    uint32_t a = fusion_value_of(context, item->inputs[0])->dtype,
             b = fusion_value_of(context, item->inputs[1])->dtype;
    return fusion_is_byte(a) && fusion_is_byte(b) && unit_of(context, a) &&
           zero_point(context, item, 2, &c->a_zero) && zero_point(context, item, 3, &c->b_zero);
}

static bool dtypes_fit(const fusion_context *context, const fusion_item *item) {
    uint32_t dtype = fusion_value_of(context, item->inputs[0])->dtype;
    if (dtype != ENT_DTYPE_F32 && dtype != ENT_DTYPE_F16 && dtype != ENT_DTYPE_BF16) return false;
    for (uint32_t i = 1; i < item->input_count; i++)
        if (fusion_item_reads(item, i) && fusion_value_of(context, item->inputs[i])->dtype != dtype)
            return false;
    return true;
}

static bool is_depthwise(const fusion_context *context, const fusion_item *item) {
    if (item->op != ENT_OP_Conv) return false;
    int64_t groups = ent_attrs_int(item->attrs, "group", 1);
    const ent_value *w = fusion_value_of(context, item->inputs[1]);
    return groups > 1 && w->dims[1] == 1 && w->dims[0] == groups;
}

void fusion_make_contraction(fusion_context *context, uint32_t item) {
    const fusion_item *it = &context->items[item];
    fusion_contraction c;
    fusion_group group;
    if (is_depthwise(context, it)) {
        fusion_make_window(context, item);
        return;
    }
    clear(&c);
    context->reason = is_integer_product(it->op)
                          ? "its zero points are not one constant an operand, or no unit takes bytes"
                          : "its dtype is none that matrix units take";
    if (is_integer_product(it->op) ? !integers_fit(context, it, &c) : !dtypes_fit(context, it)) return;
    context->reason = "its shape or attributes do not fit a contraction";
    fusion_group_begin(&group, context, it->graph);
    bool matrices = it->op == ENT_OP_MatMul || it->op == ENT_OP_MatMulInteger;
    bool fits = matrices                ? set_matmul(&group, item, &c)
                : it->op == ENT_OP_Gemm ? set_gemm(&group, item, &c)
                                        : set_conv(&group, item, &c);
    if (fits) fusion_grow_epilogues(&group, make_variants, &c);
}
