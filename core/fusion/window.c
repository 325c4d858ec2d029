/* Depthwise convolutions and pools: one tile of output pixels and channels, a loop over the taps. */
#include <math.h>
#include <string.h>

#include "core/fusion/internal.h"

typedef struct window_group {
    fusion_window window;
    uint32_t x, weights, bias; /* NONE where absent */
    uint8_t batch_dim, channel_dim, spatial_dim[FUSION_MAX_SPATIAL];
    uint32_t op;
    bool include_pad;
    const char *kind;
} window_group;

typedef struct emitter {
    fusion_body body;
    fusion_space space;
    const window_group *g;
    uint32_t port_x, port_w, port_bias;
    uint32_t tap[FUSION_MAX_SPATIAL];
} emitter;

static uint8_t add_dim(fusion_group *group, int64_t size) {
    if (size == 1 || group->dim_count == FUSION_MAX_DIMS) return FUSION_NONE;
    group->dims[group->dim_count] = size;
    return (uint8_t)group->dim_count++;
}

static bool set_window(fusion_group *group, uint32_t item, window_group *g) {
    fusion_context *context = group->context;
    const fusion_item *it = &context->items[item];
    const ent_value *y = fusion_value_of(context, it->outputs[0]);
    uint8_t to_dim[ENT_MAX_RANK];
    for (uint32_t i = 1; i < it->output_count; i++)
        if (it->outputs[i] != ENT_ID_NONE) return false;
    g->op = it->op;
    g->x = it->inputs[0];
    g->weights = it->op == ENT_OP_Conv ? it->inputs[1] : ENT_ID_NONE;
    g->bias = it->op == ENT_OP_Conv && fusion_item_reads(it, 2) ? it->inputs[2] : ENT_ID_NONE;
    g->kind = it->op == ENT_OP_Conv ? "depthwise" : "pool";
    g->include_pad = ent_attrs_int(it->attrs, "count_include_pad", 0) != 0;
    if (!fusion_window_read(context, it, g->weights, false, &g->window)) return false;
    for (uint32_t i = 0; i < g->window.rank && it->op == ENT_OP_AveragePool; i++)
        if (g->window.dilation[i] != 1) return false;
    g->batch_dim = to_dim[0] = add_dim(group, y->dims[0]);
    g->channel_dim = to_dim[1] = add_dim(group, y->dims[1]);
    for (uint32_t i = 0; i < g->window.rank; i++)
        g->spatial_dim[i] = to_dim[i + 2] = add_dim(group, y->dims[i + 2]);
    fusion_value *out = fusion_group_value(group, it->outputs[0], to_dim);
    if (!out) return false;
    out->inside = true;
    fusion_group_add_anchor(group, item);
    return true;
}

static void raw(const fusion_context *context, fusion_port *port) {
    const ent_value *v = fusion_value_of(context, port->value);
    port->raw = true;
    port->raw_rank = v->rank;
    port->raw_layout = port->layout;
    memcpy(port->raw_dims, v->dims, sizeof port->raw_dims);
    port->sequence_count = 0;
}

static bool add_ports(emitter *e, const ent_layout *out) {
    const window_group *g = e->g;
    const fusion_context *context = e->space.group->context;
    fusion_port *port = fusion_space_port(&e->space, g->x, fusion_layout_like(context, g->x, out), false);
    if (!port) return false;
    e->port_x = e->space.port_count - 1;
    raw(context, port);
    if (g->batch_dim != FUSION_NONE) port->sequence[port->sequence_count++] = g->batch_dim;
    if (g->channel_dim != FUSION_NONE) port->sequence[port->sequence_count++] = g->channel_dim;
    for (uint32_t i = 0; i < g->window.rank; i++)
        if (g->spatial_dim[i] != FUSION_NONE) port->sequence[port->sequence_count++] = g->spatial_dim[i];
    if (g->weights != ENT_ID_NONE) {
        uint32_t rank = g->window.rank + 2;
        ent_layout layout = ent_layout_plain(rank);
        for (uint32_t i = 0; i < rank && fusion_is_constant(context, g->weights); i++)
            layout.order[i] = (uint8_t)(i + 1 < rank ? i + 1 : 0); /* channels innermost */
        port = fusion_space_port(&e->space, g->weights, &layout, false);
        if (!port) return false;
        e->port_w = e->space.port_count - 1;
        raw(context, port);
    }
    if (g->bias == ENT_ID_NONE) return true;
    ent_layout plain = ent_layout_plain(1);
    port = fusion_space_port(&e->space, g->bias, &plain, false);
    if (!port) return false;
    e->port_bias = e->space.port_count - 1;
    port->sequence_count = 0;
    if (g->channel_dim != FUSION_NONE) port->sequence[port->sequence_count++] = g->channel_dim;
    return true;
}

static int64_t even(int64_t size, int64_t room, int64_t grain) {
    if (room >= size) return size;
    int64_t tile = fusion_ceil(size, fusion_ceil(size, room < 1 ? 1 : room));
    tile = fusion_ceil(tile, grain) * grain;
    return tile < size ? tile : size;
}

/* Innermost axes first: channels up to a few cache lines, then whole rows of pixels while the tile stays
 * small. */
static void cut_axes(emitter *e) {
    fusion_space *space = &e->space;
    const fusion_group *group = space->group;
    const ent_capability *capability = group->context->capability;
    int64_t tile[FUSION_MAX_DIMS], used = 1, total = 1;
    int64_t budget = (int64_t)fusion_level_bytes(capability, "l1", 32768) / 8;
    for (uint32_t a = 0; a < space->axis_count; a++) total *= space->axes[a].size;
    if (capability->units > 1 && total / capability->units / 2 < budget)
        budget = total / capability->units / 2 + 1;
    if (budget < 256) budget = 256;
    uint32_t named = 0;
    for (uint32_t a = space->axis_count; a-- > 0;) {
        bool channel = space->axes[a].dims[0] == e->g->channel_dim,
             batch = space->axes[a].dims[0] == e->g->batch_dim;
        int64_t room = budget / used;
        if (channel && room > 128) room = 128;
        tile[a] = batch || named == 3
                      ? 1
                      : even(space->axes[a].size, room, channel && a + 1 == space->axis_count ? 16 : 1);
        named += tile[a] > 1;
        used *= tile[a];
    }
    space->tile_rank = 0;
    for (uint32_t a = 0; a < space->axis_count; a++)
        fusion_body_cut(&e->body, a, tile[a], tile[a] > 1 ? space->tile_rank++ : ENT_TILE_NONE);
}

static ent_tile_access access_x(emitter *e) {
    const window_group *g = e->g;
    const fusion_space *space = &e->space;
    ent_tile_access access = fusion_body_access(&e->body, &space->ports[e->port_x]);
    if (g->batch_dim != FUSION_NONE) access.index[0] = space->axes[space->axis_of[g->batch_dim]].recipe;
    if (g->channel_dim != FUSION_NONE) access.index[1] = space->axes[space->axis_of[g->channel_dim]].recipe;
    for (uint32_t i = 0; i < g->window.rank; i++) {
        ent_tile_index *index = &access.index[i + 2];
        if (g->spatial_dim[i] != FUSION_NONE) {
            *index = space->axes[space->axis_of[g->spatial_dim[i]]].recipe;
            for (uint32_t t = 0; t < index->term_count; t++)
                index->terms[t].coefficient *= g->window.stride[i];
            index->step *= g->window.stride[i];
        }
        index->base = -g->window.pad[i];
        if (e->tap[i] == ENT_TILE_NONE) continue;
        index->terms[index->term_count].variable = e->tap[i];
        index->terms[index->term_count++].coefficient = g->window.dilation[i];
    }
    return access;
}

static ent_tile_access access_w(emitter *e) {
    const window_group *g = e->g;
    ent_tile_access access = fusion_body_access(&e->body, &e->space.ports[e->port_w]);
    if (g->channel_dim != FUSION_NONE)
        access.index[0] = e->space.axes[e->space.axis_of[g->channel_dim]].recipe;
    for (uint32_t i = 0; i < g->window.rank; i++) {
        if (e->tap[i] == ENT_TILE_NONE) continue;
        access.index[i + 2].terms[0].variable = e->tap[i];
        access.index[i + 2].terms[0].coefficient = 1;
        access.index[i + 2].term_count = 1;
    }
    return access;
}

static double lowest(uint32_t dtype) {
    switch (dtype) {
    case ENT_DTYPE_I8:
        return -128;
    case ENT_DTYPE_I16:
        return -32768;
    case ENT_DTYPE_I32:
        return -2147483648.0;
    case ENT_DTYPE_I64:
        return -9223372036854775808.0;
    case ENT_DTYPE_U8:
    case ENT_DTYPE_U16:
    case ENT_DTYPE_U32:
    case ENT_DTYPE_U64:
        return 0;
    default:
        return -INFINITY;
    }
}

/* Valid taps along one axis depend on the position when a window overhangs. */
static bool overhangs(const window_group *g, uint32_t i) {
    const fusion_window *w = &g->window;
    int64_t last = (w->out[i] - 1) * w->stride[i] - w->pad[i] + w->kernel[i];
    return g->include_pad ? last > w->in[i] + w->pad_end[i] : w->pad[i] > 0 || last > w->in[i];
}

/* taps = min(start + kernel, end) - max(start, 0) along one axis, as a tile over that axis. */
static uint32_t count_taps(emitter *e, uint32_t i) {
    const window_group *g = e->g;
    const fusion_window *w = &g->window;
    ent_tile_builder *b = &e->body.builder;
    uint8_t dim = g->spatial_dim[i];
    uint16_t mask = dim == FUSION_NONE ? 0 : (uint16_t)(1u << dim);
    uint32_t first = fusion_body_tile(&e->body, ENT_DTYPE_F32, mask),
             end = fusion_body_tile(&e->body, ENT_DTYPE_F32, mask);
    uint32_t variable = ENT_TILE_NONE, axis = 32;
    double limit = (double)(g->include_pad ? w->in[i] + w->pad_end[i] : w->in[i]);
    if (dim != FUSION_NONE) {
        const ent_tile_index *recipe = &e->space.axes[e->space.axis_of[dim]].recipe;
        if (recipe->term_count) variable = recipe->terms[0].variable;
        if (recipe->tile_axis != ENT_TILE_NONE) axis = recipe->tile_axis;
    }
    ent_tile_builder_iota(b, first, 0, variable, 1, axis);
    ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, first, first, (double)w->stride[i], (double)-w->pad[i]);
    ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, end, first, 1, (double)w->kernel[i]);
    ent_tile_builder_map1(b, ENT_MAP_CLIP, end, end, -INFINITY, limit);
    if (!g->include_pad) ent_tile_builder_map1(b, ENT_MAP_CLIP, first, first, 0, INFINITY);
    ent_tile_builder_map2(b, ENT_MAP_SUB, end, end, first);
    return end;
}

static void divide_by_taps(emitter *e, uint32_t acc) {
    ent_tile_builder *b = &e->body.builder;
    double constant = 1;
    for (uint32_t i = 0; i < e->g->window.rank; i++) {
        if (!overhangs(e->g, i))
            constant *= (double)e->g->window.kernel[i];
        else
            ent_tile_builder_map2(b, ENT_MAP_DIV, acc, acc, count_taps(e, i));
    }
    if (constant != 1) ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, acc, acc, 1 / constant, -0.0);
}

/* A tile of the buffer's dtype is loaded; sums of half-precision numbers see its f32 copy. */
static uint32_t load_wide(emitter *e, const ent_tile_access *access, uint32_t dtype, uint16_t mask,
                          double outside) {
    uint32_t tile = fusion_body_tile(&e->body, dtype, mask), sum_dtype = fusion_sum_dtype(dtype);
    ent_tile_builder_load(&e->body.builder, tile, access, outside);
    if (sum_dtype == dtype) return tile;
    uint32_t wide = fusion_body_tile(&e->body, sum_dtype, mask);
    ent_tile_builder_map1(&e->body.builder, ENT_MAP_COPY, wide, tile, 0, 0);
    return wide;
}

static uint32_t emit_window(emitter *e, uint16_t mask) {
    const window_group *g = e->g;
    ent_tile_builder *b = &e->body.builder;
    uint32_t dtype = fusion_value_of(e->space.group->context, g->x)->dtype, loops = 0;
    uint32_t acc = fusion_body_tile(&e->body, fusion_sum_dtype(dtype), mask);
    uint16_t channels = g->channel_dim == FUSION_NONE ? 0 : (uint16_t)(1u << g->channel_dim);
    double outside = g->op == ENT_OP_MaxPool ? lowest(dtype) : 0;
    if (g->bias != ENT_ID_NONE) {
        ent_tile_access access = fusion_body_access(&e->body, &e->space.ports[e->port_bias]);
        if (fusion_sum_dtype(dtype) == dtype)
            ent_tile_builder_load(b, acc, &access, 0);
        else
            ent_tile_builder_map1(b, ENT_MAP_COPY, acc, load_wide(e, &access, dtype, channels, 0), 0, 0);
    } else
        ent_tile_builder_fill(b, acc, outside);
    for (uint32_t i = 0; i < FUSION_MAX_SPATIAL; i++) e->tap[i] = ENT_TILE_NONE;
    for (uint32_t i = 0; i < g->window.rank; i++) {
        if (g->window.kernel[i] == 1) continue;
        e->tap[i] = ent_tile_builder_loop(b, 0, g->window.kernel[i], 1);
        loops++;
    }
    ent_tile_access access = access_x(e);
    uint32_t x = load_wide(e, &access, dtype, mask, outside);
    if (g->weights != ENT_ID_NONE) {
        access = access_w(e);
        uint32_t w = load_wide(e, &access, dtype, channels, 0);
        ent_tile_builder_map3(b, ENT_MAP_FMA, acc, x, w, acc);
    } else
        ent_tile_builder_map2(b, g->op == ENT_OP_MaxPool ? ENT_MAP_MAX : ENT_MAP_ADD, acc, acc, x);
    while (loops-- > 0) ent_tile_builder_end(b);
    if (g->op == ENT_OP_AveragePool) divide_by_taps(e, acc);
    if (fusion_sum_dtype(dtype) == dtype) return acc;
    uint32_t narrow = fusion_body_tile(&e->body, dtype, mask);
    ent_tile_builder_map1(b, ENT_MAP_COPY, narrow, acc, 0, 0);
    return narrow;
}

static void make_variants(fusion_group *group, void *user) {
    const fusion_context *context = group->context;
    uint32_t out = group->outputs[0], anchor_out = context->items[group->anchor].outputs[0];
    uint32_t rank = fusion_value_of(context, anchor_out)->rank;
    bool kept = fusion_value_of(context, out)->rank == rank;
    for (uint32_t o = 0; o < context->layouts->counts[out]; o++) {
        emitter e;
        const ent_layout *layout = &context->layouts->items[out][o];
        ent_layout own = kept ? *layout : ent_layout_channels_last(rank);
        e.g = user;
        fusion_space_begin(&e.space, group);
        fusion_space_order(&e.space, out, layout);
        if (!add_ports(&e, &own) || !fusion_space_ports(&e.space, false)) return;
        e.space.ports[e.space.port_count - 1].layout = *layout;
        if (!fusion_space_consistent(&e.space)) continue;
        fusion_space_merge(&e.space);
        const fusion_item *last = &context->items[group->items[group->item_count - 1]];
        fusion_body_begin(&e.body, &e.space, fusion_value_of(context, last->outputs[0])->name);
        cut_axes(&e);
        fusion_body_buffers(&e.body);
        uint32_t acc = emit_window(&e, fusion_group_find(group, anchor_out)->mask);
        fusion_body_set(&e.body, anchor_out, acc);
        fusion_body_items(&e.body);
        fusion_body_finish(&e.body, e.g->kind, ENT_TIER_TUNED);
    }
}

void fusion_make_window(fusion_context *context, uint32_t item) {
    window_group g;
    fusion_group group;
    uint32_t dtype = fusion_value_of(context, context->items[item].inputs[0])->dtype;
    context->reason = "its window has more than three axes, an index output, or dilated averages";
    if (dtype == ENT_DTYPE_BOOL || (dtype > ENT_DTYPE_F64 && context->items[item].op != ENT_OP_MaxPool))
        return;
    fusion_group_begin(&group, context, context->items[item].graph);
    if (set_window(&group, item, &g)) fusion_grow_epilogues(&group, make_variants, &g);
}
