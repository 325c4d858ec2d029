/* The domain in one choice of layouts. Merging neighbours turns most elementwise work into long rows whatever
 * the rank. */
#include <string.h>

#include "core/fusion/internal.h"

void fusion_space_begin(fusion_space *space, fusion_group *group) {
    space->group = group;
    space->axis_count = space->port_count = space->tile_rank = 0;
    memset(space->role, 0, sizeof space->role);
    for (uint32_t d = 0; d < group->dim_count; d++) {
        space->order[d] = (uint8_t)d;
        space->role[d] = group->reduced >> d & 1;
    }
}

fusion_port *fusion_space_port(fusion_space *space, uint32_t value, const ent_layout *layout,
                               bool is_output) {
    const fusion_value *v = fusion_group_find(space->group, value);
    uint8_t axes[ENT_MAX_RANK];
    if (space->port_count == FUSION_MAX_PORTS) return NULL;
    fusion_port *port = &space->ports[space->port_count++];
    port->value = value;
    port->layout = *layout;
    port->is_output = is_output;
    port->raw = false;
    port->axis_count = port->sequence_count = 0;
    uint32_t count = v ? fusion_layout_sequence(space->group->context->module, value, layout, axes) : 0;
    for (uint32_t i = 0; i < count; i++) port->sequence[port->sequence_count++] = v->to_dim[axes[i]];
    return port;
}

void fusion_space_order(fusion_space *space, uint32_t reference, const ent_layout *layout) {
    fusion_group *group = space->group;
    const fusion_value *v = fusion_group_find(group, reference);
    uint8_t axes[ENT_MAX_RANK];
    uint32_t count = fusion_layout_sequence(group->context->module, reference, layout, axes), at = 0,
             seen = 0;
    for (uint32_t i = 0; i < count; i++) seen |= 1u << v->to_dim[axes[i]];
    for (uint32_t d = 0; d < group->dim_count; d++)
        if (!(seen & 1u << d)) space->order[at++] = (uint8_t)d;
    for (uint32_t i = 0; i < count; i++) space->order[at++] = v->to_dim[axes[i]];
}

const ent_layout *fusion_space_layout(const fusion_space *space, uint32_t value) {
    fusion_group *group = space->group;
    fusion_context *context = group->context;
    const fusion_value *v = fusion_group_find(group, value);
    uint32_t rank = fusion_value_of(context, value)->rank, count = 0;
    uint8_t sequence[ENT_MAX_RANK];
    for (uint32_t i = 0; i < group->dim_count; i++)
        for (uint32_t a = 0; a < rank; a++)
            if (v->to_dim[a] == space->order[i]) sequence[count++] = (uint8_t)a;
    const ent_layout *found = fusion_layout_find(context, value, sequence, count);
    if (found) return found;
    if (!fusion_is_constant(context, value)) return &context->layouts->items[value][0];
    ent_layout *made = ent_arena_alloc(context->arena, sizeof *made);
    *made = ent_layout_plain(rank);
    uint32_t at = 0;
    for (uint32_t a = 0; a < rank; a++)
        if (v->to_dim[a] == FUSION_NONE) made->order[at++] = (uint8_t)a;
    for (uint32_t i = 0; i < count; i++) made->order[at++] = sequence[i];
    return made;
}

bool fusion_space_ports(fusion_space *space, bool plain_outputs) {
    fusion_group *group = space->group;
    fusion_context *context = group->context;
    for (uint32_t i = 0; i < group->value_count; i++) {
        const fusion_value *v = &group->values[i];
        if (v->inside || v->uses == 0) continue;
        if (!fusion_space_port(space, v->value, fusion_space_layout(space, v->value), false)) return false;
    }
    for (uint32_t i = 0; i < group->output_count; i++) {
        uint32_t value = group->outputs[i];
        const ent_layout *layout =
            plain_outputs ? &context->layouts->items[value][0] : fusion_space_layout(space, value);
        if (!fusion_space_port(space, value, layout, true)) return false;
    }
    return true;
}

static bool may_merge(const fusion_space *space, uint8_t outer, uint8_t inner) {
    if (space->role[outer] != space->role[inner]) return false;
    for (uint32_t p = 0; p < space->port_count; p++) {
        const fusion_port *port = &space->ports[p];
        uint32_t first = FUSION_NONE, second = FUSION_NONE;
        for (uint32_t i = 0; i < port->sequence_count; i++) {
            if (port->sequence[i] == outer) first = i;
            if (port->sequence[i] == inner) second = i;
        }
        if (first == FUSION_NONE && second == FUSION_NONE) continue;
        if (port->raw || first == FUSION_NONE || second != first + 1) return false;
    }
    return true;
}

void fusion_space_merge(fusion_space *space) {
    fusion_group *group = space->group;
    space->axis_count = 0;
    for (uint32_t i = 0; i < group->dim_count; i++) {
        uint8_t dim = space->order[i];
        fusion_axis *axis = &space->axes[space->axis_count];
        if (i == 0 || !may_merge(space, space->order[i - 1], dim)) {
            memset(axis, 0, sizeof *axis);
            axis->size = 1;
            axis->role = space->role[dim];
            axis->tile = 1;
            axis->recipe.tile_axis = axis->recipe.gather = ENT_TILE_NONE;
            axis->recipe.divisor = 1;
            axis->recipe.bound = ENT_TILE_BOUND_ALL;
            space->axis_count++;
        } else
            axis--;
        axis->dims[axis->dim_count++] = dim;
        axis->size *= group->dims[dim];
        space->axis_of[dim] = (uint8_t)(axis - space->axes);
    }
    for (uint32_t p = 0; p < space->port_count; p++) {
        fusion_port *port = &space->ports[p];
        port->axis_count = 0;
        for (uint32_t i = 0; i < port->sequence_count; i++) {
            uint8_t axis = space->axis_of[port->sequence[i]];
            if (port->axis_count == 0 || port->axes[port->axis_count - 1] != axis)
                port->axes[port->axis_count++] = axis;
        }
    }
}

bool fusion_space_consistent(const fusion_space *space) {
    for (uint32_t p = 0; p < space->port_count; p++)
        for (uint32_t q = 0; q < p; q++)
            if (space->ports[p].value == space->ports[q].value &&
                !fusion_is_constant(space->group->context, space->ports[p].value) &&
                !ent_layout_equal(&space->ports[p].layout, &space->ports[q].layout))
                return false;
    return true;
}

fusion_port *fusion_space_find(fusion_space *space, uint32_t value, bool is_output) {
    for (uint32_t p = 0; p < space->port_count; p++)
        if (space->ports[p].value == value && space->ports[p].is_output == is_output && !space->ports[p].raw)
            return &space->ports[p];
    return NULL;
}
