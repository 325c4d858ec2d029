/* A contraction with its epilogue as a tile program, in the one form that executors recognise:
 *   acc = FILL or LOAD (bias); LOOPs over taps and k blocks { LOAD a; LOAD b; MMA acc, a, b }; MAPs with
 * LOADs of operands; STORE. */
#include <string.h>

#include "core/fusion/internal.h"

typedef struct emitter {
    fusion_body body;
    fusion_space space;
    fusion_group *group;
    const fusion_contraction *c;
    uint32_t port_a, port_b, port_bias;
    fusion_tiles tiles;
    uint32_t m_axis[2], m_count; /* space axes that become rows of the tile */
    uint32_t n_axis, k_axis;     /* NONE when their extent is 1 */
    uint32_t spatial_variable[FUSION_MAX_SPATIAL], phase_variable[FUSION_MAX_SPATIAL],
        tap_variable[FUSION_MAX_SPATIAL];
    uint32_t spatial_tile_axis[FUSION_MAX_SPATIAL];
    int64_t spatial_size[FUSION_MAX_SPATIAL]; /* positions that the grid covers */
    uint32_t group_variable, n_variable, k_variable;
    uint32_t acc, acc_axis_n;
} emitter;

/* ---- ports ---- */

static void sequence_of(const fusion_context *context, fusion_port *port, const uint8_t *dims) {
    uint8_t axes[ENT_MAX_RANK];
    uint32_t count = fusion_layout_sequence(context->module, port->value, &port->layout, axes);
    port->sequence_count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (dims[axes[i]] != FUSION_NONE) port->sequence[port->sequence_count++] = dims[axes[i]];
}

/* A port with logical dims: windows keep axes of extent 1, packed weights are blocked. */
static void make_raw(const fusion_context *context, fusion_port *port) {
    const ent_value *v = fusion_value_of(context, port->value);
    port->raw = true;
    port->raw_rank = v->rank;
    port->raw_layout = port->layout;
    memcpy(port->raw_dims, v->dims, sizeof port->raw_dims);
}

static bool add_ports(emitter *e, const ent_layout *a, const ent_layout *b) {
    const fusion_contraction *c = e->c;
    const fusion_context *context = e->group->context;
    fusion_port *port = fusion_space_port(&e->space, c->a, a, false);
    if (!port) return false;
    e->port_a = e->space.port_count - 1;
    sequence_of(context, port, c->a_dim);
    for (uint32_t i = 0; c->windowed && i < c->window.rank; i++)
        if (c->spatial_dim[i] != FUSION_NONE) port->sequence[port->sequence_count++] = c->spatial_dim[i];
    if (c->windowed) make_raw(context, port);
    port = fusion_space_port(&e->space, c->b, b, false);
    if (!port) return false;
    e->port_b = e->space.port_count - 1;
    sequence_of(context, port, c->b_dim);
    if (c->windowed || b->block_count) make_raw(context, port);
    if (c->bias == ENT_ID_NONE) return true;
    ent_layout plain = ent_layout_plain(fusion_value_of(context, c->bias)->rank);
    port = fusion_space_port(&e->space, c->bias, &plain, false);
    if (!port) return false;
    e->port_bias = e->space.port_count - 1;
    sequence_of(context, port, c->bias_dim);
    return true;
}

/* ---- grid ---- */

static void add_term(ent_tile_index *index, uint32_t variable, int64_t coefficient) {
    if (variable == ENT_TILE_NONE) return;
    index->terms[index->term_count].variable = variable;
    index->terms[index->term_count++].coefficient = coefficient;
}

static uint32_t spatial_of(const emitter *e, uint32_t axis) {
    for (uint32_t i = 0; e->c->windowed && i < e->c->window.rank; i++)
        if (e->c->spatial_dim[i] != FUSION_NONE && e->space.axis_of[e->c->spatial_dim[i]] == axis) return i;
    return FUSION_NONE;
}

static int64_t rows_of(const emitter *e, uint32_t axis) {
    uint32_t s = spatial_of(e, axis);
    return s == FUSION_NONE ? e->space.axes[axis].size : e->spatial_size[s];
}

/* Rows of the tile are the two innermost row axes; n and k are one axis each. */
static bool find_axes(emitter *e) {
    fusion_space *space = &e->space;
    e->m_count = 0;
    e->n_axis = e->k_axis = FUSION_NONE;
    for (uint32_t i = space->axis_count; i-- > 0;) {
        uint32_t role = space->axes[i].role;
        uint32_t *single = role == FUSION_ROLE_N ? &e->n_axis : role == FUSION_ROLE_K ? &e->k_axis : NULL;
        if (single && *single != FUSION_NONE) return false;
        if (single) *single = i;
        if (role == FUSION_ROLE_M && e->m_count < 2) e->m_axis[e->m_count++] = i;
    }
    if (e->m_count == 2) { /* outer one first */
        uint32_t swap = e->m_axis[0];
        e->m_axis[0] = e->m_axis[1];
        e->m_axis[1] = swap;
    }
    for (uint32_t i = 0; e->c->windowed && i < e->c->window.rank; i++) {
        const fusion_window *w = &e->c->window;
        e->spatial_size[i] = e->c->transposed ? (w->out[i] - 1 + w->pad[i]) / w->stride[i] + 1 : w->out[i];
    }
    return true;
}

/* Sums and bounds are done as the product leaves its registers; other maps come after. */
static int64_t maps_after(const emitter *e) {
    int64_t maps = 0;
    for (uint32_t i = 0; i < e->group->item_count; i++) {
        const fusion_item *item = &e->group->context->items[e->group->items[i]];
        maps += item->item_class == FUSION_ELEMENTWISE && item->op != ENT_OP_Add && item->op != ENT_OP_Relu &&
                item->op != ENT_OP_Clip;
    }
    return maps;
}

static void choose_tiles(emitter *e) {
    const fusion_contraction *c = e->c;
    fusion_shape shape = {.dtype = fusion_value_of(e->group->context, c->a)->dtype,
                          .m1 = 1,
                          .m2 = 1,
                          .n = c->n,
                          .k = c->k,
                          .taps = 1,
                          .others = c->groups,
                          .a_spread = 1,
                          .maps = maps_after(e)};
    if (e->m_count) shape.m2 = rows_of(e, e->m_axis[e->m_count - 1]);
    if (e->m_count == 2) shape.m1 = rows_of(e, e->m_axis[0]);
    if (c->groups > 1) shape.n_within = c->n;
    for (uint32_t a = 0; a < e->space.axis_count; a++) {
        const fusion_axis *axis = &e->space.axes[a];
        bool tile = axis->role == FUSION_ROLE_N || axis->role == FUSION_ROLE_K;
        for (uint32_t i = 0; i < e->m_count; i++) tile |= e->m_axis[i] == a;
        if (!tile) shape.others *= rows_of(e, a);
    }
    for (uint32_t i = 0; c->windowed && i < c->window.rank; i++) {
        const fusion_window *w = &c->window;
        shape.taps *= c->transposed ? fusion_ceil(w->kernel[i], w->stride[i]) : w->kernel[i];
        if (c->transposed)
            shape.others *= w->stride[i];
        else
            shape.a_spread *= (double)w->in[i] / (double)w->out[i];
    }
    fusion_tiles_choose(e->group->context->capability, &shape, &e->tiles);
    if (c->groups > 1) e->tiles.k = c->k; /* a block that overhangs would read the next group's channels */
}

static void cut_rows(emitter *e, uint32_t index, int64_t tile, uint32_t tile_axis) {
    const fusion_contraction *c = e->c;
    fusion_axis *axis = &e->space.axes[index];
    uint32_t s = spatial_of(e, index), variable = ENT_TILE_NONE;
    int64_t size = rows_of(e, index), step = s != FUSION_NONE && c->transposed ? c->window.stride[s] : 1;
    axis->tile = tile;
    axis->recipe.tile_axis = tile_axis;
    axis->recipe.step = tile_axis == ENT_TILE_NONE ? 0 : step;
    if (tile < size) variable = ent_tile_builder_grid(&e->body.builder, size, tile);
    add_term(&axis->recipe, variable, step);
    if (s == FUSION_NONE) return;
    e->spatial_variable[s] = variable;
    e->spatial_tile_axis[s] = tile_axis;
    if (!c->transposed) return;
    axis->recipe.base = -c->window.pad[s];
    add_term(&axis->recipe, e->phase_variable[s], 1);
}

static void cut_columns(emitter *e) {
    const fusion_contraction *c = e->c;
    if (e->n_axis == FUSION_NONE) return;
    fusion_axis *axis = &e->space.axes[e->n_axis];
    axis->tile = e->tiles.n;
    axis->recipe.tile_axis = e->acc_axis_n;
    axis->recipe.step = 1;
    if (e->tiles.n < c->n) e->n_variable = ent_tile_builder_grid(&e->body.builder, c->n, e->tiles.n);
    add_term(&axis->recipe, e->group_variable, c->n);
    add_term(&axis->recipe, e->n_variable, 1);
}

static void cut_grid(emitter *e) {
    const fusion_contraction *c = e->c;
    e->acc_axis_n = e->m_count > 1 ? e->m_count : 1;
    e->space.tile_rank = e->acc_axis_n + 1;
    for (uint32_t i = 0; i < FUSION_MAX_SPATIAL; i++) {
        e->spatial_variable[i] = e->phase_variable[i] = e->tap_variable[i] = e->spatial_tile_axis[i] =
            ENT_TILE_NONE;
    }
    e->group_variable = e->n_variable = e->k_variable = ENT_TILE_NONE;
    if (c->groups > 1) e->group_variable = ent_tile_builder_grid(&e->body.builder, c->groups, 1);
    for (uint32_t i = 0; c->transposed && i < c->window.rank; i++)
        if (c->window.stride[i] > 1)
            e->phase_variable[i] = ent_tile_builder_grid(&e->body.builder, c->window.stride[i], 1);
    for (uint32_t a = 0; a < e->space.axis_count; a++) {
        bool row = false;
        for (uint32_t i = 0; i < e->m_count; i++) row |= e->m_axis[i] == a;
        if (!row && a != e->n_axis && a != e->k_axis) cut_rows(e, a, 1, ENT_TILE_NONE);
    }
    if (!e->tiles.n_fastest) cut_columns(e);
    for (uint32_t i = 0; i < e->m_count; i++)
        cut_rows(e, e->m_axis[i], e->m_count == 2 && i == 0 ? e->tiles.m1 : e->tiles.m2, i);
    if (e->tiles.n_fastest) cut_columns(e);
    if (e->k_axis != FUSION_NONE) e->space.axes[e->k_axis].tile = e->tiles.k;
}

/* ---- accesses of a and b ---- */

static void index_of_k(const emitter *e, ent_tile_index *index, uint32_t tile_axis) {
    add_term(index, e->k_variable, 1);
    index->tile_axis = tile_axis;
    index->step = 1;
}

/* A port described by axes: the recipe of each, with n and k at their places in the operand's tile. */
static ent_tile_access axes_access(emitter *e, const fusion_port *port, uint32_t n_at, uint32_t k_at) {
    ent_tile_access access = fusion_body_access(&e->body, port);
    for (uint32_t i = 0; i < port->axis_count; i++) {
        uint32_t axis = port->axes[i];
        if (axis == e->n_axis) access.index[i].tile_axis = n_at;
        if (axis == e->k_axis) index_of_k(e, &access.index[i], k_at);
    }
    return access;
}

static void spatial_index(const emitter *e, uint32_t s, ent_tile_index *index) {
    const fusion_window *w = &e->c->window;
    bool transposed = e->c->transposed;
    index->base = transposed ? 0 : -w->pad[s];
    add_term(index, e->spatial_variable[s], transposed ? 1 : w->stride[s]);
    add_term(index, e->tap_variable[s], transposed ? -1 : w->dilation[s]);
    index->tile_axis = e->spatial_tile_axis[s];
    index->step = index->tile_axis == ENT_TILE_NONE ? 0 : transposed ? 1 : w->stride[s];
}

static ent_tile_access access_a(emitter *e) {
    const fusion_contraction *c = e->c;
    const fusion_port *port = &e->space.ports[e->port_a];
    if (!port->raw) return axes_access(e, port, e->acc_axis_n, e->acc_axis_n);
    ent_tile_access access = fusion_body_access(&e->body, port);
    for (uint32_t i = 0; i < port->raw_rank; i++) {
        ent_tile_index *index = &access.index[i];
        if (c->a_spatial[i] != FUSION_NONE)
            spatial_index(e, c->a_spatial[i], index);
        else if (c->a_dim[i] == FUSION_NONE) { /* extent 1, or a channel of a group with one channel */
            if (i == c->a_channel) add_term(index, e->group_variable, c->k);
        } else if (c->a_dim[i] == c->k_dim) {
            index_of_k(e, index, e->acc_axis_n);
            if (i == c->a_channel) add_term(index, e->group_variable, c->k);
        } else
            *index = e->space.axes[e->space.axis_of[c->a_dim[i]]].recipe;
    }
    return access;
}

static ent_tile_access access_b(emitter *e) {
    const fusion_contraction *c = e->c;
    const fusion_port *port = &e->space.ports[e->port_b];
    if (!port->raw) return axes_access(e, port, 1, 0);
    ent_tile_access access = fusion_body_access(&e->body, port);
    for (uint32_t i = 0; i < port->raw_rank; i++) {
        ent_tile_index *index = &access.index[i];
        if (c->b_spatial[i] != FUSION_NONE) {
            uint32_t s = c->b_spatial[i];
            add_term(index, e->phase_variable[s], 1);
            add_term(index, e->tap_variable[s], c->transposed ? c->window.stride[s] : 1);
        } else if (c->b_dim[i] == FUSION_NONE) {
            if (i == c->b_channel_n) add_term(index, e->group_variable, c->n);
            if (i == c->b_channel_k) add_term(index, e->group_variable, c->k);
        } else if (c->b_dim[i] == c->k_dim) {
            index_of_k(e, index, 0);
            if (i == c->b_channel_k) add_term(index, e->group_variable, c->k);
        } else if (c->b_dim[i] == c->n_dim) {
            add_term(index, e->n_variable, 1);
            if (i == c->b_channel_n) add_term(index, e->group_variable, c->n);
            index->tile_axis = 1;
            index->step = 1;
        } else
            *index = e->space.axes[e->space.axis_of[c->b_dim[i]]].recipe;
    }
    return access;
}

/* ---- body ---- */

static uint32_t operand_tile(emitter *e, uint32_t dtype, bool is_b) {
    int64_t shape[ENT_TILE_MAX_RANK] = {1, 1, 1, 1};
    int64_t k = e->tiles.k;
    if (is_b) {
        shape[0] = k;
        shape[1] = e->n_axis == FUSION_NONE ? 1 : e->tiles.n;
        return ent_tile_builder_value(&e->body.builder, dtype, ENT_SPACE_LOCAL, 2, shape);
    }
    for (uint32_t i = 0; i < e->m_count; i++) shape[i] = e->space.axes[e->m_axis[i]].tile;
    shape[e->acc_axis_n] = k;
    return ent_tile_builder_value(&e->body.builder, dtype, ENT_SPACE_LOCAL, e->acc_axis_n + 1, shape);
}

/* An Add of a column vector right after the product, as exporters write a bias: it starts the sum instead.
 * NONE if there is none. */
static uint32_t absorbed_bias(emitter *e, uint32_t *out_operand) {
    fusion_group *group = e->group;
    const fusion_context *context = group->context;
    if (e->c->bias != ENT_ID_NONE || group->item_count < 2 || group->items[0] != group->anchor ||
        e->c->n_dim == FUSION_NONE)
        return ENT_ID_NONE;
    const fusion_item *add = &context->items[group->items[1]];
    uint32_t product = context->items[group->anchor].outputs[0];
    if (add->op != ENT_OP_Add || fusion_value_of(context, product)->dtype != ENT_DTYPE_F32)
        return ENT_ID_NONE;
    uint32_t other = add->inputs[0] == product ? add->inputs[1] : add->inputs[0];
    const fusion_value *v = fusion_group_find(group, other);
    bool column = v && !v->inside && v->mask == 1u << e->c->n_dim && other != product;
    if (!column || fusion_group_find(group, product)->uses != 1 || fusion_group_is_output(group, product))
        return ENT_ID_NONE;
    *out_operand = other;
    return group->items[1];
}

static void start_accumulator(emitter *e) {
    const fusion_contraction *c = e->c;
    uint32_t operand = ENT_ID_NONE;
    e->body.absorbed = absorbed_bias(e, &operand);
    if (e->body.absorbed != ENT_ID_NONE) {
        ent_tile_access access = fusion_body_access(&e->body, fusion_space_find(&e->space, operand, false));
        ent_tile_builder_load(&e->body.builder, e->acc, &access, 0);
        return;
    }
    bool load = c->bias != ENT_ID_NONE && c->alpha == 1 && c->beta == 1;
    if (!load) {
        ent_tile_builder_fill(&e->body.builder, e->acc, 0);
        return;
    }
    ent_tile_access access = fusion_body_access(&e->body, &e->space.ports[e->port_bias]);
    ent_tile_builder_load(&e->body.builder, e->acc, &access, 0);
}

static void multiply(emitter *e) {
    const fusion_contraction *c = e->c;
    ent_tile_builder *b = &e->body.builder;
    uint32_t loops = 0, dtype = fusion_value_of(e->group->context, c->a)->dtype;
    for (uint32_t s = 0; c->windowed && s < c->window.rank; s++) {
        int64_t taps =
            c->transposed ? fusion_ceil(c->window.kernel[s], c->window.stride[s]) : c->window.kernel[s];
        if (taps == 1) continue;
        e->tap_variable[s] = ent_tile_builder_loop(b, 0, taps, 1);
        loops++;
    }
    if (e->tiles.k < c->k) {
        e->k_variable = ent_tile_builder_loop(b, 0, c->k, e->tiles.k);
        loops++;
    }
    uint32_t a_tile = operand_tile(e, dtype, false),
             b_tile = operand_tile(e, fusion_value_of(e->group->context, c->b)->dtype, true);
    ent_tile_access access = access_a(e);
    ent_tile_builder_load(b, a_tile, &access, c->a_zero);
    access = access_b(e);
    ent_tile_builder_load(b, b_tile, &access, 0);
    ent_tile_builder_mma_bytes(b, e->acc, a_tile, b_tile, 0, c->a_zero, c->b_zero);
    while (loops-- > 0) ent_tile_builder_end(b);
}

/* Gemm: alpha a b + beta c. */
static void scale_and_add(emitter *e) {
    const fusion_contraction *c = e->c;
    ent_tile_builder *b = &e->body.builder;
    if (c->alpha == 1 && (c->beta == 1 || c->bias == ENT_ID_NONE)) return;
    if (c->alpha != 1) ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, e->acc, e->acc, c->alpha, -0.0);
    if (c->bias == ENT_ID_NONE) return;
    const fusion_port *port = &e->space.ports[e->port_bias];
    uint16_t mask = 0;
    for (uint32_t i = 0; i < port->sequence_count; i++) mask |= (uint16_t)(1u << port->sequence[i]);
    uint32_t tile = fusion_body_tile(&e->body, fusion_value_of(e->group->context, c->bias)->dtype, mask);
    ent_tile_access access = fusion_body_access(&e->body, port);
    ent_tile_builder_load(b, tile, &access, 0);
    if (c->beta != 1) ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, tile, tile, c->beta, -0.0);
    ent_tile_builder_map2(b, ENT_MAP_ADD, e->acc, e->acc, tile);
}

bool fusion_contraction_emit(fusion_group *group, const fusion_contraction *c, const ent_layout *a,
                             const ent_layout *b, const ent_layout *out) {
    emitter e;
    const fusion_item *anchor = &group->context->items[group->anchor];
    e.group = group;
    e.c = c;
    fusion_space_begin(&e.space, group);
    memcpy(e.space.role, c->role, sizeof e.space.role);
    fusion_space_order(&e.space, group->outputs[0], out);
    if (!add_ports(&e, a, b) || !fusion_space_ports(&e.space, false)) return false;
    e.space.ports[e.space.port_count - 1].layout = *out;
    if (!fusion_space_consistent(&e.space)) return false;
    fusion_space_merge(&e.space);
    if (!find_axes(&e)) return false;
    choose_tiles(&e);
    const fusion_item *last = &group->context->items[group->items[group->item_count - 1]];
    fusion_body_begin(&e.body, &e.space, fusion_value_of(group->context, last->outputs[0])->name);
    cut_grid(&e);
    fusion_body_buffers(&e.body);
    uint16_t mask = fusion_group_find(group, anchor->outputs[0])->mask;
    uint32_t dtype = fusion_value_of(group->context, c->a)->dtype;
    bool integers = fusion_is_byte(dtype);
    e.acc = fusion_body_tile(&e.body, integers ? ENT_DTYPE_I32 : ENT_DTYPE_F32, mask);
    start_accumulator(&e);
    multiply(&e);
    scale_and_add(&e);
    uint32_t result = e.acc;
    if (dtype != ENT_DTYPE_F32 && !integers) {
        result = fusion_body_tile(&e.body, dtype, mask);
        ent_tile_builder_map1(&e.body.builder, ENT_MAP_COPY, result, e.acc, 0, 0);
    }
    fusion_body_set(&e.body, anchor->outputs[0], result);
    if (e.body.absorbed != ENT_ID_NONE)
        fusion_body_set(&e.body, group->context->items[e.body.absorbed].outputs[0], result);
    fusion_body_items(&e.body);
    return fusion_body_finish(&e.body, c->kind, ENT_TIER_NATIVE);
}
