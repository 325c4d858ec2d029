/* Concat and Split: rows of different lengths side by side. In the order of memory the axes before the joined
 * one are rows, the joined one and those after it are one run; each part is one LOAD and one STORE per block,
 * bounded so that tails do not reach into the neighbour. */
#include <string.h>

#include "core/fusion/internal.h"

typedef struct part_list {
    const uint32_t *values;
    uint32_t count;
    uint32_t whole; /* the joined value */
    uint32_t axis;
    bool is_concat;
} part_list;

static int64_t run_of(const ent_value *v, const ent_layout *layout, uint32_t from) {
    int64_t run = 1;
    for (uint32_t i = from; i < layout->rank; i++) run *= v->dims[layout->order[i]];
    return run;
}

/* Position of the joined axis in the layout, after which everything is one run. */
static uint32_t position_of(const ent_layout *layout, uint32_t axis) {
    uint32_t at = 0;
    while (layout->order[at] != axis) at++;
    return at;
}

static bool add_port(fusion_space *space, uint32_t value, const ent_layout *layout, bool is_output,
                     int64_t rows, int64_t run) {
    fusion_port *port = fusion_space_port(space, value, layout, is_output);
    if (!port) return false;
    port->raw = true;
    port->raw_rank = 2;
    port->raw_dims[0] = rows;
    port->raw_dims[1] = run;
    port->raw_layout = ent_layout_plain(2);
    return true;
}

/* One LOAD and STORE: `at` is where the part begins in the run of the whole. */
static void emit_part(fusion_body *body, const part_list *list, uint32_t part_port, uint32_t whole_port,
                      int64_t at, int64_t run, int64_t rows, int64_t tile_rows, int64_t tile_run) {
    fusion_space *space = body->space;
    ent_tile_builder *b = &body->builder;
    uint32_t variable_rows =
        tile_rows < rows ? 0 : ENT_TILE_NONE; /* grid axes: rows, then run, where they are cut */
    uint32_t variable_run =
        b->grid.count == (variable_rows == 0 ? 2u : 1u) ? b->grid.count - 1 : ENT_TILE_NONE;
    uint32_t dtype = fusion_value_of(body->group->context, list->whole)->dtype;
    int64_t shape[ENT_TILE_MAX_RANK] = {tile_rows, tile_run < run ? tile_run : run, 1, 1};
    uint32_t tile = ent_tile_builder_value(b, dtype, ENT_SPACE_LOCAL, 2, shape);
    ent_tile_access part = ent_tile_builder_access(b, space->ports[part_port].buffer);
    ent_tile_access whole = ent_tile_builder_access(b, space->ports[whole_port].buffer);
    ent_tile_access_set(&part, 0, 0, variable_rows, 0, 1);
    ent_tile_access_set(&part, 1, 0, variable_run, 1, 1);
    ent_tile_access_set(&whole, 0, 0, variable_rows, 0, 1);
    ent_tile_access_set(&whole, 1, at, variable_run, 1, 1);
    whole.index[1].bound = at + run;
    ent_tile_builder_load(b, tile, list->is_concat ? &part : &whole, 0);
    ent_tile_builder_store(b, list->is_concat ? &whole : &part, tile);
}

static void build(fusion_group *group, const part_list *list, const ent_layout *layout) {
    fusion_context *context = group->context;
    const ent_value *whole = fusion_value_of(context, list->whole);
    uint32_t position = position_of(layout, list->axis), whole_port = 0, first = list->is_concat ? 0 : 1;
    int64_t rows = run_of(whole, layout, 0) / run_of(whole, layout, position), longest = 1, at = 0;
    fusion_space space;
    fusion_body body;
    fusion_space_begin(&space, group);
    if (!list->is_concat) add_port(&space, list->whole, layout, false, rows, run_of(whole, layout, position));
    for (uint32_t i = 0; i < list->count; i++) {
        const ent_value *part = fusion_value_of(context, list->values[i]);
        const ent_layout *own = fusion_layout_like(context, list->values[i], layout);
        ent_layout stored = *own;
        if (!fusion_layout_same_bytes(context->module, list->values[i], own, layout)) {
            if (!fusion_is_constant(context, list->values[i])) return;
            stored = *layout;
        }
        int64_t run = run_of(part, layout, position);
        if (run > longest) longest = run;
        if (!add_port(&space, list->values[i], &stored, !list->is_concat, rows, run)) return;
    }
    if (list->is_concat) {
        whole_port = space.port_count;
        if (!add_port(&space, list->whole, layout, true, rows, run_of(whole, layout, position))) return;
    }
    int64_t budget = (int64_t)fusion_level_bytes(context->capability, "l1", 32768) / 16;
    int64_t total = rows * run_of(whole, layout, position);
    if (total <= 4 * budget) budget = total > 0 ? total : 1;
    int64_t tile_run = longest < budget ? longest : budget,
            tile_rows = budget / tile_run < rows ? budget / tile_run : rows;
    fusion_body_begin(&body, &space,
                      fusion_value_of(context, list->is_concat ? list->whole : list->values[0])->name);
    if (tile_rows < rows) ent_tile_builder_grid(&body.builder, rows, tile_rows);
    if (tile_run < longest) ent_tile_builder_grid(&body.builder, longest, tile_run);
    fusion_body_buffers(&body);
    for (uint32_t i = 0; i < list->count; i++) {
        int64_t run = run_of(fusion_value_of(context, list->values[i]), layout, position);
        emit_part(&body, list, first + i, whole_port, at, run, rows, tile_rows, tile_run);
        at += run;
    }
    fusion_body_finish(&body, list->is_concat ? "concat" : "split", ENT_TIER_TUNED);
}

void fusion_make_parts(fusion_context *context, uint32_t item) {
    const fusion_item *it = &context->items[item];
    part_list list = {.is_concat = it->op == ENT_OP_Concat};
    fusion_group group;
    list.whole = list.is_concat ? it->outputs[0] : it->inputs[0];
    list.values = list.is_concat ? it->inputs : it->outputs;
    list.count = list.is_concat ? it->input_count : it->output_count;
    int64_t rank = fusion_value_of(context, list.whole)->rank, axis = ent_attrs_int(it->attrs, "axis", 0);
    list.axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    context->reason = "it has too many parts, or an output that nobody wants";
    for (uint32_t i = 0; i < list.count; i++)
        if (list.values[i] == ENT_ID_NONE || context->layouts->counts[list.values[i]] == 0) return;
    if (list.axis >= rank || list.count + 1 > FUSION_MAX_PORTS) return;
    fusion_group_begin(&group, context, it->graph);
    fusion_group_add_anchor(&group, item);
    for (uint32_t i = 0; i < context->layouts->counts[list.whole]; i++)
        build(&group, &list, &context->layouts->items[list.whole][i]);
}
