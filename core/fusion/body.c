/* Emission of a group as a tile program: loads on demand, items in graph order, stores last. */
#include <math.h>
#include <string.h>

#include "core/fusion/internal.h"

bool fusion_is_scalar(const fusion_context *context, uint32_t value) {
    double number = 0;
    if (!ent_value_scalar(context->module, value, &number)) return false;
    uint32_t dtype = fusion_value_of(context, value)->dtype;
    return fusion_dtype_in_tile(dtype) && (dtype <= ENT_DTYPE_F64 || fabs(number) < 9007199254740992.0);
}

void fusion_body_begin(fusion_body *body, fusion_space *space, const char *name) {
    body->space = space;
    body->group = space->group;
    body->absorbed = ENT_ID_NONE;
    memset(body->tile_of, 0xff, sizeof body->tile_of);
    memset(body->owned, 0, sizeof body->owned);
    ent_tile_builder_init(&body->builder, space->group->context->arena, name);
}

static uint32_t role_of(const fusion_body *body, const fusion_port *port) {
    if (port->is_output) return ENT_ROLE_OUTPUT;
    return fusion_is_constant(body->group->context, port->value) ? ENT_ROLE_CONSTANT : ENT_ROLE_INPUT;
}

static void declare(fusion_body *body, fusion_port *port, uint32_t role) {
    ent_dim dims[ENT_MAX_RANK] = {1};
    uint32_t rank = port->axis_count ? port->axis_count : 1;
    ent_layout layout = ent_layout_plain(rank);
    for (uint32_t i = 0; i < port->axis_count; i++) dims[i] = body->space->axes[port->axes[i]].size;
    if (port->raw) {
        rank = port->raw_rank;
        layout = port->raw_layout;
        memcpy(dims, port->raw_dims, sizeof dims);
    }
    port->buffer = ent_tile_builder_buffer(&body->builder, (ent_tile_role)role,
                                           fusion_value_of(body->group->context, port->value)->dtype, rank,
                                           dims, &layout);
}

void fusion_body_buffers(fusion_body *body) {
    static const uint32_t roles[] = {ENT_ROLE_INPUT, ENT_ROLE_CONSTANT, ENT_ROLE_OUTPUT};
    for (uint32_t r = 0; r < 3; r++)
        for (uint32_t p = 0; p < body->space->port_count; p++)
            if (role_of(body, &body->space->ports[p]) == roles[r])
                declare(body, &body->space->ports[p], roles[r]);
}

ent_tile_access fusion_body_access(fusion_body *body, const fusion_port *port) {
    ent_tile_access access = ent_tile_builder_access(&body->builder, port->buffer);
    for (uint32_t i = 0; i < port->axis_count && !port->raw; i++)
        access.index[i] = body->space->axes[port->axes[i]].recipe;
    return access;
}

uint32_t fusion_body_tile(fusion_body *body, uint32_t dtype, uint16_t mask) {
    const fusion_space *space = body->space;
    int64_t shape[ENT_TILE_MAX_RANK] = {1, 1, 1, 1};
    for (uint32_t a = 0; a < space->axis_count; a++) {
        const fusion_axis *axis = &space->axes[a];
        if (axis->recipe.tile_axis != ENT_TILE_NONE && mask >> axis->dims[0] & 1)
            shape[axis->recipe.tile_axis] = axis->tile;
    }
    return ent_tile_builder_value(&body->builder, dtype, ENT_SPACE_LOCAL,
                                  space->tile_rank ? space->tile_rank : 1, shape);
}

void fusion_body_cut(fusion_body *body, uint32_t index, int64_t tile, uint32_t tile_axis) {
    fusion_axis *axis = &body->space->axes[index];
    axis->tile = tile;
    axis->recipe.tile_axis = tile_axis;
    axis->recipe.step = tile_axis == ENT_TILE_NONE ? 0 : 1;
    if (tile >= axis->size) return;
    axis->recipe.terms[axis->recipe.term_count].variable =
        ent_tile_builder_grid(&body->builder, axis->size, tile);
    axis->recipe.terms[axis->recipe.term_count++].coefficient = 1;
}

bool fusion_group_is_output(const fusion_group *group, uint32_t value) {
    for (uint32_t i = 0; i < group->output_count; i++)
        if (group->outputs[i] == value) return true;
    return false;
}

void fusion_body_set(fusion_body *body, uint32_t value, uint32_t tile) {
    const fusion_value *v = fusion_group_find(body->group, value);
    uint32_t at = (uint32_t)(v - body->group->values);
    body->tile_of[at] = tile;
    body->owned[at] = v->uses == 1 && !fusion_group_is_output(body->group, value);
}

uint32_t fusion_body_read(fusion_body *body, uint32_t value) {
    fusion_context *context = body->group->context;
    const fusion_value *v = fusion_group_find(body->group, value);
    uint32_t dtype = fusion_value_of(context, value)->dtype;
    double number = 0;
    if (v && body->tile_of[v - body->group->values] != ENT_TILE_NONE)
        return body->tile_of[v - body->group->values];
    if (!v) {
        uint32_t tile = fusion_body_tile(body, dtype, 0);
        ent_value_scalar(context->module, value, &number);
        ent_tile_builder_fill(&body->builder, tile, number);
        return tile;
    }
    uint32_t tile = fusion_body_tile(body, dtype, v->mask);
    ent_tile_access access = fusion_body_access(body, fusion_space_find(body->space, value, false));
    ent_tile_builder_load(&body->builder, tile, &access, 0);
    fusion_body_set(body, value, tile);
    return tile;
}

static void relabel(fusion_body *body, const fusion_item *item) {
    uint32_t tile = fusion_body_read(body, item->inputs[0]);
    const fusion_value *from = fusion_group_find(body->group, item->inputs[0]);
    fusion_body_set(body, item->outputs[0], tile);
    const fusion_value *to = fusion_group_find(body->group, item->outputs[0]);
    if (!from || !body->owned[from - body->group->values]) body->owned[to - body->group->values] = false;
}

void fusion_body_item(fusion_body *body, uint32_t index) {
    const fusion_item *item = &body->group->context->items[index];
    if (item->item_class == FUSION_ELEMENTWISE)
        fusion_emit_elementwise(body, item);
    else if (item->item_class == FUSION_RELABEL)
        relabel(body, item);
    else if (item->item_class == FUSION_REDUCE)
        fusion_emit_reduce(body, item);
}

void fusion_body_items(fusion_body *body) {
    for (uint32_t i = 0; i < body->group->item_count; i++)
        if (body->group->items[i] != body->group->anchor && body->group->items[i] != body->absorbed)
            fusion_body_item(body, body->group->items[i]);
    fusion_body_stores(body);
}

void fusion_body_stores(fusion_body *body) {
    fusion_group *group = body->group;
    for (uint32_t i = 0; i < group->output_count; i++) {
        const fusion_value *v = fusion_group_find(group, group->outputs[i]);
        const ent_value *value = fusion_value_of(group->context, v->value);
        uint32_t tile = fusion_body_read(body, v->value);
        uint16_t whole = 0;
        for (uint32_t a = 0; a < value->rank; a++)
            if (v->to_dim[a] != FUSION_NONE) whole |= (uint16_t)(1u << v->to_dim[a]);
        if (whole != v->mask) {
            uint32_t full = fusion_body_tile(body, value->dtype, whole);
            ent_tile_builder_map1(&body->builder, ENT_MAP_COPY, full, tile, 0, 0);
            tile = full;
        }
        ent_tile_access access = fusion_body_access(body, fusion_space_find(body->space, v->value, true));
        ent_tile_builder_store(&body->builder, &access, tile);
    }
}

bool fusion_body_finish(fusion_body *body, const char *kind, uint32_t tier) {
    fusion_context *context = body->group->context;
    const fusion_space *space = body->space;
    ent_tile_program *program = NULL;
    ent_status status = ent_tile_builder_finish(&body->builder, &program);
    if (status) {
        context->reason = status->text;
        return false;
    }
    ent_fusion_candidate candidate;
    memset(&candidate, 0, sizeof candidate);
    fusion_group_leaves(body->group, &candidate);
    ent_fusion_port *ports = ent_arena_alloc(context->arena, space->port_count * sizeof *ports);
    for (uint32_t p = 0; p < space->port_count; p++) {
        const fusion_port *port = &space->ports[p];
        ports[port->buffer] = (ent_fusion_port){port->value, port->layout, port->is_output,
                                                fusion_is_constant(context, port->value)};
    }
    candidate.ports = ports;
    candidate.port_count = space->port_count;
    candidate.program = program;
    candidate.tier = tier;
    candidate.kind = kind;
    status = fusion_price(program, context->capability, context->constant_bytes, &candidate.price);
    if (status) return false;
    fusion_push(context, &candidate);
    return true;
}
