/* Data movement as copies whose coordinates are affine in a domain: slices, tiles, padding, gathers, depth to
 * space. */
#include <string.h>

#include "core/fusion/internal.h"

void fusion_mover_begin(fusion_mover *m, fusion_context *context, uint32_t item) {
    memset(m, 0, sizeof *m);
    fusion_group_begin(&m->group, context, context->items[item].graph);
    fusion_group_add_anchor(&m->group, item);
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) m->out[i] = m->in[i] = fusion_affine_of(FUSION_NONE);
}

uint8_t fusion_mover_dim(fusion_mover *m, int64_t size) {
    if (size == 1 || m->group.dim_count == FUSION_MAX_DIMS) return FUSION_NONE;
    m->group.dims[m->group.dim_count] = size;
    return (uint8_t)m->group.dim_count++;
}

fusion_affine fusion_affine_of(uint8_t dim) {
    fusion_affine index = {.divisor = 1, .gather = ENT_TILE_NONE};
    if (dim == FUSION_NONE) return index;
    index.count = 1;
    index.dim[0] = dim;
    index.coefficient[0] = 1;
    return index;
}

void fusion_mover_same_output(fusion_mover *m) {
    const ent_value *y =
        fusion_value_of(m->group.context, m->group.context->items[m->group.anchor].outputs[0]);
    for (uint32_t i = 0; i < y->rank; i++) m->out[i] = fusion_affine_of(fusion_mover_dim(m, y->dims[i]));
}

uint32_t fusion_mover_port(fusion_mover *m, uint32_t value, const ent_layout *layout, bool is_output) {
    const ent_value *v = fusion_value_of(m->group.context, value);
    fusion_port *port = fusion_space_port(&m->space, value, layout, is_output);
    if (!port) return FUSION_MAX_PORTS;
    port->raw = true;
    port->raw_rank = v->rank ? v->rank : 1;
    port->raw_layout = v->rank ? *layout : ent_layout_plain(1);
    memcpy(port->raw_dims, v->dims, sizeof port->raw_dims);
    if (v->rank == 0) port->raw_dims[0] = 1;
    port->sequence_count = 0;
    for (uint32_t d = 0; d < m->group.dim_count; d++)
        port->sequence[port->sequence_count++] = (uint8_t)d; /* nothing merges */
    return m->space.port_count - 1;
}

ent_tile_access fusion_mover_access(fusion_mover *m, uint32_t at, const fusion_affine *index) {
    const fusion_port *port = &m->space.ports[at];
    ent_tile_access access = ent_tile_builder_access(&m->body.builder, port->buffer);
    for (uint32_t i = 0; i < port->raw_rank; i++) {
        ent_tile_index *x = &access.index[i];
        x->base = index[i].base;
        x->divisor = index[i].divisor;
        x->gather = index[i].gather;
        for (uint32_t t = 0; t < index[i].count; t++) {
            const ent_tile_index *recipe = &m->space.axes[m->space.axis_of[index[i].dim[t]]].recipe;
            if (recipe->term_count) {
                x->terms[x->term_count].variable = recipe->terms[0].variable;
                x->terms[x->term_count++].coefficient = index[i].coefficient[t];
            }
            if (recipe->tile_axis == ENT_TILE_NONE) continue;
            x->tile_axis = recipe->tile_axis;
            x->step = index[i].coefficient[t];
        }
    }
    return access;
}

static void order_dims(fusion_mover *m, const ent_layout *out) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < out->rank; i++) {
        const fusion_affine *index = &m->out[out->order[i]];
        for (uint32_t t = 0; t < index->count; t++) m->space.order[at++] = index->dim[t];
    }
}

bool fusion_mover_cut(fusion_mover *m, const ent_layout *out, const ent_layout *in) {
    fusion_space *space = &m->space;
    int64_t tile[FUSION_MAX_DIMS], used = 1, total = 1;
    uint32_t named = 0, inner = FUSION_NONE;
    int64_t budget = (int64_t)fusion_level_bytes(m->group.context->capability, "l1", 32768) / 16;
    order_dims(m, out);
    fusion_space_merge(space);
    for (uint32_t d = 0; d < m->group.dim_count; d++) total *= m->group.dims[d];
    if (total <= 2 * budget) budget = total;
    for (uint32_t i = in ? in->rank : 0;
         i-- > 0 && inner == FUSION_NONE;) /* the axis that the input has innermost */
        if (m->in[in->order[i]].count) inner = m->in[in->order[i]].dim[m->in[in->order[i]].count - 1];
    for (uint32_t a = space->axis_count; a-- > 0;) {
        uint32_t dim = space->axes[a].dims[0];
        int64_t size = space->axes[a].size, room = budget / used;
        bool broad = dim == inner && a + 1 != space->axis_count;
        if (a + 1 == space->axis_count && inner != FUSION_NONE && dim != inner && room > 64) room = 64;
        if (broad && room < 32) room = 32;
        tile[a] = m->whole[dim] ||
                          (named == ENT_TILE_MAX_RANK - 1 && !broad && inner != FUSION_NONE && dim > inner) ||
                          named == ENT_TILE_MAX_RANK
                      ? 1
                  : room >= size ? size
                                 : room;
        if (tile[a] < 1) tile[a] = 1;
        used *= tile[a];
        named += tile[a] > 1;
    }
    const fusion_item *item = &m->group.context->items[m->group.anchor];
    fusion_body_begin(&m->body, space, fusion_value_of(m->group.context, item->outputs[0])->name);
    space->tile_rank = 0;
    for (uint32_t a = 0; a < space->axis_count; a++)
        fusion_body_cut(&m->body, a, tile[a], tile[a] > 1 ? space->tile_rank++ : ENT_TILE_NONE);
    fusion_body_buffers(&m->body);
    return true;
}

uint32_t fusion_mover_tile(fusion_mover *m, uint32_t dtype, uint16_t mask) {
    return fusion_body_tile(&m->body, dtype, mask);
}

bool fusion_mover_finish(fusion_mover *m, uint32_t tile, const char *kind) {
    ent_tile_access access = fusion_mover_access(m, m->port_out, m->out);
    ent_tile_builder_store(&m->body.builder, &access, tile);
    return fusion_body_finish(&m->body, kind, ENT_TIER_TUNED);
}

static uint16_t mask_of(const fusion_mover *m) {
    return (uint16_t)((1u << m->group.dim_count) - 1);
}

void fusion_mover_copy(fusion_mover *m, void (*prepare)(fusion_mover *mover, const void *user),
                       const void *user) {
    fusion_context *context = m->group.context;
    const fusion_item *item = &context->items[m->group.anchor];
    uint32_t out = item->outputs[0], in = item->inputs[0], dtype = fusion_value_of(context, out)->dtype;
    for (uint32_t o = 0; o < context->layouts->counts[out]; o++) {
        const ent_layout *layout = &context->layouts->items[out][o],
                         *from = fusion_layout_like(context, in, layout);
        fusion_space_begin(&m->space, &m->group);
        m->port_in = fusion_mover_port(m, in, from, false);
        if (item->op == ENT_OP_Gather ||
            item->op == ENT_OP_GatherElements) /* always the port after the input */
            fusion_mover_port(m, item->inputs[1], &context->layouts->items[item->inputs[1]][0], false);
        m->port_out = fusion_mover_port(m, out, layout, true);
        if (!fusion_mover_cut(m, layout, from)) return;
        if (prepare) prepare(m, user);
        uint32_t tile = fusion_mover_tile(m, dtype, mask_of(m));
        ent_tile_access access = fusion_mover_access(m, m->port_in, m->in);
        ent_tile_builder_load(&m->body.builder, tile, &access, m->outside);
        fusion_mover_finish(m, tile, "copy");
    }
}

/* ---- operators ---- */

static bool slice_lists(const fusion_context *context, const fusion_item *item, int64_t *start, int64_t *step,
                        bool *sliced) {
    int64_t starts[ENT_MAX_RANK], axes[ENT_MAX_RANK], steps[ENT_MAX_RANK];
    const ent_value *x = fusion_value_of(context, item->inputs[0]);
    uint32_t count = 0, axis_count = 0, step_count = 0;
    if (!ent_value_i64s(context->module, item->inputs[1], starts, ENT_MAX_RANK, &count)) return false;
    for (uint32_t i = 0; i < count; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (item->input_count > 3 && item->inputs[3] != ENT_ID_NONE &&
        (!ent_value_i64s(context->module, item->inputs[3], axes, ENT_MAX_RANK, &axis_count) ||
         axis_count != count))
        return false;
    if (item->input_count > 4 && item->inputs[4] != ENT_ID_NONE &&
        (!ent_value_i64s(context->module, item->inputs[4], steps, ENT_MAX_RANK, &step_count) ||
         step_count != count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + x->rank : axes[i];
        if (axis < 0 || axis >= x->rank || steps[i] == 0) return false;
        int64_t size = x->dims[axis], from = starts[i] < 0 ? starts[i] + size : starts[i];
        int64_t last = steps[i] < 0 ? size - 1 : size;
        start[axis] = from < 0 ? 0 : from > last ? last : from;
        step[axis] = steps[i];
        sliced[axis] = true;
    }
    return true;
}

static void make_slice(fusion_context *context, uint32_t item) {
    fusion_mover m;
    int64_t start[ENT_MAX_RANK] = {0}, step[ENT_MAX_RANK];
    bool sliced[ENT_MAX_RANK] = {false};
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) step[i] = 1;
    context->reason = "its starts, axes or steps are not constant";
    if (!slice_lists(context, &context->items[item], start, step, sliced)) return;
    fusion_mover_begin(&m, context, item);
    fusion_mover_same_output(&m);
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) {
        m.in[i] = m.out[i];
        m.in[i].base = start[i];
        m.in[i].coefficient[0] = step[i];
    }
    fusion_mover_copy(&m, NULL, NULL);
}

static void make_tile(fusion_context *context, uint32_t item) {
    fusion_mover m;
    const ent_value *x = fusion_value_of(context, context->items[item].inputs[0]);
    const ent_value *y = fusion_value_of(context, context->items[item].outputs[0]);
    fusion_mover_begin(&m, context, item);
    for (uint32_t i = 0; i < y->rank; i++) {
        int64_t repeats = y->dims[i] / x->dims[i];
        uint8_t outer = fusion_mover_dim(&m, repeats), inner = fusion_mover_dim(&m, x->dims[i]);
        m.in[i] = fusion_affine_of(inner);
        m.out[i] = fusion_affine_of(outer);
        if (outer == FUSION_NONE)
            m.out[i] = m.in[i];
        else if (inner != FUSION_NONE) {
            m.out[i].coefficient[0] = x->dims[i];
            m.out[i].dim[1] = inner;
            m.out[i].coefficient[1] = 1;
            m.out[i].count = 2;
            m.whole[outer] = true;
        }
    }
    if (m.group.dim_count < FUSION_MAX_DIMS) fusion_mover_copy(&m, NULL, NULL);
}

/* Depth to space: out (c, h b + i, w b + j) = in (channel of (i, j, c), h, w); space to depth is the inverse.
 */
static void make_depth_space(fusion_context *context, uint32_t item) {
    fusion_mover m;
    const fusion_item *it = &context->items[item];
    bool to_space = it->op == ENT_OP_DepthToSpace, crd = ent_attrs_string_is(it->attrs, "mode", "DCR", "CRD");
    int64_t block = ent_attrs_int(it->attrs, "blocksize", 1);
    const ent_value *deep = fusion_value_of(context, to_space ? it->inputs[0] : it->outputs[0]);
    if (deep->rank != 4 || block < 1) return;
    fusion_mover_begin(&m, context, item);
    int64_t channels = deep->dims[1] / (block * block);
    uint8_t n = fusion_mover_dim(&m, deep->dims[0]), c = fusion_mover_dim(&m, channels),
            h = fusion_mover_dim(&m, deep->dims[2]);
    uint8_t i = fusion_mover_dim(&m, block), w = fusion_mover_dim(&m, deep->dims[3]),
            j = fusion_mover_dim(&m, block);
    fusion_affine *depth = to_space ? m.in : m.out, *space = to_space ? m.out : m.in;
    const struct term {
        uint32_t side, axis;
        uint8_t dim;
        int64_t coefficient;
    } terms[] = {{0, 0, n, 1},
                 {0, 1, i, crd ? block : block * channels},
                 {0, 1, j, crd ? 1 : channels},
                 {0, 1, c, crd ? block * block : 1},
                 {0, 2, h, 1},
                 {0, 3, w, 1},
                 {1, 0, n, 1},
                 {1, 1, c, 1},
                 {1, 2, h, block},
                 {1, 2, i, 1},
                 {1, 3, w, block},
                 {1, 3, j, 1}};
    for (size_t t = 0; t < sizeof terms / sizeof terms[0]; t++) {
        fusion_affine *index = &(terms[t].side ? space : depth)[terms[t].axis];
        if (terms[t].dim == FUSION_NONE) continue;
        index->dim[index->count] = terms[t].dim;
        index->coefficient[index->count++] = terms[t].coefficient;
    }
    if (i != FUSION_NONE) m.whole[i] = m.whole[j] = true;
    fusion_mover_copy(&m, NULL, NULL);
}

/* ---- padding ---- */

typedef struct pad_plan {
    int64_t before[ENT_MAX_RANK], size[ENT_MAX_RANK];
    bool needs[ENT_MAX_RANK];
    bool edge, wrap;
} pad_plan;

/* Coordinates of edge, reflect and wrap padding, in f32, which holds every integer below 2^24. */
static void prepare_pad(fusion_mover *m, const void *user) {
    const pad_plan *plan = user;
    ent_tile_builder *b = &m->body.builder;
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) {
        if (!plan->needs[i]) continue;
        uint8_t dim = m->out[i].dim[0];
        const ent_tile_index *recipe = &m->space.axes[m->space.axis_of[dim]].recipe;
        uint16_t mask = (uint16_t)(1u << dim);
        uint32_t at = fusion_mover_tile(m, ENT_DTYPE_F32, mask),
                 index = fusion_mover_tile(m, ENT_DTYPE_I32, mask);
        double last = (double)(plan->size[i] - 1);
        ent_tile_builder_iota(b, at, -plan->before[i],
                              recipe->term_count ? recipe->terms[0].variable : ENT_TILE_NONE, 1,
                              recipe->tile_axis == ENT_TILE_NONE ? 32 : recipe->tile_axis);
        if (plan->edge)
            ent_tile_builder_map1(b, ENT_MAP_CLIP, at, at, 0, last);
        else { /* reflect: last - | last - |at| | */
            ent_tile_builder_map1(b, ENT_MAP_ABS, at, at, 0, 0);
            ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, at, at, -1, last);
            ent_tile_builder_map1(b, ENT_MAP_ABS, at, at, 0, 0);
            ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, at, at, -1, last);
            ent_tile_builder_map1(b, ENT_MAP_CLIP, at, at, 0, last); /* beyond the output's own end */
        }
        ent_tile_builder_map1(b, ENT_MAP_COPY, index, at, 0, 0);
        m->in[i] = fusion_affine_of(FUSION_NONE);
        m->in[i].gather = index;
    }
}

static void make_pad(fusion_context *context, uint32_t item) {
    const fusion_item *it = &context->items[item];
    const ent_value *x = fusion_value_of(context, it->inputs[0]),
                    *y = fusion_value_of(context, it->outputs[0]);
    int64_t pads[2 * ENT_MAX_RANK], axes[ENT_MAX_RANK];
    uint32_t count = 0, axis_count = x->rank;
    pad_plan plan = {.edge = ent_attrs_string_is(it->attrs, "mode", "constant", "edge")};
    bool constant = ent_attrs_string_is(it->attrs, "mode", "constant", "constant");
    fusion_mover m;
    context->reason = "its pads are not constant, or its mode is wrap";
    for (uint32_t i = 0; i < x->rank; i++) axes[i] = i;
    if (!constant && !plan.edge && !ent_attrs_string_is(it->attrs, "mode", "constant", "reflect")) return;
    if (!ent_value_i64s(context->module, it->inputs[1], pads, 2 * ENT_MAX_RANK, &count)) return;
    if (it->input_count > 3 && it->inputs[3] != ENT_ID_NONE &&
        !ent_value_i64s(context->module, it->inputs[3], axes, ENT_MAX_RANK, &axis_count))
        return;
    if (count != 2 * axis_count) return;
    fusion_mover_begin(&m, context, item);
    if (it->input_count > 2 && it->inputs[2] != ENT_ID_NONE &&
        !ent_value_scalar(context->module, it->inputs[2], &m.outside))
        return;
    fusion_mover_same_output(&m);
    for (uint32_t i = 0; i < y->rank; i++) m.in[i] = m.out[i];
    for (uint32_t i = 0; i < axis_count; i++) {
        uint32_t axis = (uint32_t)(axes[i] < 0 ? axes[i] + x->rank : axes[i]);
        if (axis >= x->rank) return;
        m.in[axis].base = -pads[i];
        if (constant) continue;
        bool small = pads[i] < x->dims[axis] && pads[i + axis_count] < x->dims[axis];
        if (!plan.edge && !small) return;
        plan.before[axis] = pads[i];
        plan.size[axis] = x->dims[axis];
        plan.needs[axis] = pads[i] > 0 || pads[i + axis_count] > 0;
    }
    fusion_mover_copy(&m, constant ? NULL : prepare_pad, &plan);
}

/* ---- gathers ---- */

typedef struct gather_plan {
    uint32_t axis;
    int64_t size;
    bool may_be_negative;
    fusion_affine index[ENT_MAX_RANK]; /* of the indices */
} gather_plan;

static void prepare_gather(fusion_mover *m, const void *user) {
    const gather_plan *plan = user;
    ent_tile_builder *b = &m->body.builder;
    const fusion_port *port = &m->space.ports[m->port_in + 1];
    uint32_t dtype = fusion_value_of(m->group.context, port->value)->dtype;
    uint16_t mask = 0;
    for (uint32_t i = 0; i < port->raw_rank; i++)
        if (plan->index[i].count) mask |= (uint16_t)(1u << plan->index[i].dim[0]);
    uint32_t index = fusion_mover_tile(m, dtype, mask);
    ent_tile_access access = fusion_mover_access(m, m->port_in + 1, plan->index);
    ent_tile_builder_load(b, index, &access, 0);
    if (plan->may_be_negative) {
        uint32_t zero = fusion_mover_tile(m, dtype, 0), size = fusion_mover_tile(m, dtype, 0);
        uint32_t below = fusion_mover_tile(m, ENT_DTYPE_BOOL, mask),
                 wrapped = fusion_mover_tile(m, dtype, mask);
        ent_tile_builder_fill(b, zero, 0);
        ent_tile_builder_fill(b, size, (double)plan->size);
        ent_tile_builder_map2(b, ENT_MAP_LESS, below, index, zero);
        ent_tile_builder_map2(b, ENT_MAP_ADD, wrapped, index, size);
        ent_tile_builder_map3(b, ENT_MAP_SELECT, wrapped, below, wrapped, index);
        index = wrapped;
    }
    m->in[plan->axis] = fusion_affine_of(FUSION_NONE);
    m->in[plan->axis].gather = index;
}

static bool may_be_negative(const fusion_context *context, uint32_t value) {
    int64_t few[64];
    uint32_t count = 0;
    if (!ent_value_i64s(context->module, value, few, 64, &count)) return true;
    for (uint32_t i = 0; i < count; i++)
        if (few[i] < 0) return true;
    return false;
}

static void make_gather(fusion_context *context, uint32_t item) {
    const fusion_item *it = &context->items[item];
    const ent_value *x = fusion_value_of(context, it->inputs[0]),
                    *at = fusion_value_of(context, it->inputs[1]);
    int64_t axis = ent_attrs_int(it->attrs, "axis", 0);
    gather_plan plan;
    fusion_mover m;
    if (axis < 0) axis += x->rank;
    context->reason = "its indices are neither i32 nor i64";
    if (axis < 0 || axis >= x->rank || (at->dtype != ENT_DTYPE_I32 && at->dtype != ENT_DTYPE_I64)) return;
    fusion_mover_begin(&m, context, item);
    fusion_mover_same_output(&m);
    plan.axis = (uint32_t)axis;
    plan.size = x->dims[axis];
    plan.may_be_negative = may_be_negative(context, it->inputs[1]);
    for (uint32_t i = 0; i < ENT_MAX_RANK; i++) plan.index[i] = fusion_affine_of(FUSION_NONE);
    bool elements = it->op == ENT_OP_GatherElements;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (elements)
            m.in[i] = plan.index[i] = m.out[i];
        else
            m.in[i] = m.out[i > (uint32_t)axis ? i + at->rank - 1 : i];
    }
    for (uint32_t i = 0; i < at->rank && !elements; i++) plan.index[i] = m.out[axis + i];
    fusion_mover_copy(&m, prepare_gather, &plan);
}

void fusion_make_movement(fusion_context *context, uint32_t item) {
    context->reason = NULL;
    switch (context->items[item].op) {
    case ENT_OP_Slice:
        make_slice(context, item);
        break;
    case ENT_OP_Tile:
        make_tile(context, item);
        break;
    case ENT_OP_DepthToSpace:
    case ENT_OP_SpaceToDepth:
        make_depth_space(context, item);
        break;
    case ENT_OP_Pad:
        make_pad(context, item);
        break;
    case ENT_OP_Gather:
    case ENT_OP_GatherElements:
        make_gather(context, item);
        break;
    case ENT_OP_Resize:
        fusion_make_resize(context, item);
        break;
    case ENT_OP_Concat:
    case ENT_OP_Split:
        fusion_make_parts(context, item);
        break;
    default:
        break;
    }
}
