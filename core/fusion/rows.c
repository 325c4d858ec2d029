/* Groups of elementwise items, relabels and reductions: one tile of rows per instance. */
#include <math.h>
#include <string.h>

#include "core/fusion/internal.h"

#define MAX_TILE_ELEMENTS (1 << 20) /* of one tile; beyond it a reduction must loop */
#define LOOP_ELEMENTS 8192          /* reduced extents above this are worth a loop */
#define MIN_LOOP_COLUMNS 64         /* columns beside a reduced axis: a few cache lines */
#define MAX_LOOP_COLUMNS 256
#define LOOP_ROWS 8 /* shorter blocks cost more in steps than wide rows save */

/* The value whose layout sets the order of the domain: the one with most dims, inputs before outputs. */
static uint32_t reference_of(fusion_group *group) {
    uint32_t best = ENT_ID_NONE, best_bits = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < group->value_count; i++) {
            const fusion_value *v = &group->values[i];
            if (pass == 0 && (v->inside || v->uses == 0 || fusion_is_constant(group->context, v->value)))
                continue;
            if (pass == 1 && !v->inside) continue;
            uint32_t bits = 1;
            for (uint32_t a = 0; a < fusion_value_of(group->context, v->value)->rank; a++)
                bits += v->to_dim[a] != FUSION_NONE;
            if (bits > best_bits) {
                best = v->value;
                best_bits = bits;
            }
        }
    }
    return best;
}

/* The plain reduction that can run as a loop over blocks: the only reduction, whose results keep no reduced
 * dim. */
static uint32_t loopable(const fusion_group *group) {
    uint32_t found = ENT_ID_NONE;
    for (uint32_t i = 0; i < group->item_count; i++) {
        const fusion_item *item = &group->context->items[group->items[i]];
        if (item->item_class != FUSION_REDUCE) continue;
        if (found != ENT_ID_NONE || !fusion_reduce_form_of(item->op)) return ENT_ID_NONE;
        found = group->items[i];
    }
    for (uint32_t i = 0; i < group->output_count; i++) {
        const fusion_value *v = fusion_group_find((fusion_group *)group, group->outputs[i]);
        for (uint32_t a = 0; a < ENT_MAX_RANK; a++)
            if (v->to_dim[a] != FUSION_NONE && group->reduced >> v->to_dim[a] & 1) return ENT_ID_NONE;
    }
    /* no reader of a value with reduced dims may come after the reduction */
    bool after = false;
    for (uint32_t i = 0; i < group->item_count && found != ENT_ID_NONE; i++) {
        const fusion_item *item = &group->context->items[group->items[i]];
        for (uint32_t k = 0; k < item->input_count && after; k++) {
            const fusion_value *v = fusion_group_find((fusion_group *)group, item->inputs[k]);
            if (v && v->mask & group->reduced) return ENT_ID_NONE;
        }
        after |= group->items[i] == found;
    }
    return found;
}

typedef struct cut {
    int64_t tile[FUSION_MAX_DIMS];
    uint32_t loop_axis; /* reduced axis that is looped over, or NONE */
} cut;

static int64_t even_tile(int64_t size, int64_t room, int64_t grain) {
    if (room >= size) return size;
    if (room < 1) room = 1;
    int64_t tile = fusion_ceil(size, fusion_ceil(size, room));
    if (room >= grain) tile = fusion_ceil(tile, grain) * grain;
    return tile < size ? tile : size;
}

static int64_t divisor_below(int64_t size, int64_t limit) {
    for (int64_t tile = limit < size ? limit : size; tile > 1; tile--)
        if (size % tile == 0) return tile;
    return 1;
}

static bool has_axis(const fusion_port *port, uint32_t axis) {
    for (uint32_t i = 0; i < port->axis_count; i++)
        if (port->axes[i] == axis) return true;
    return false;
}

/* Some port runs along this axis: it is innermost there, in the whole domain's order or against it. */
static bool needs_broad(const fusion_space *space, uint32_t axis) {
    for (uint32_t p = 0; p < space->port_count; p++) {
        const fusion_port *port = &space->ports[p];
        if (port->axis_count && port->axes[port->axis_count - 1] == axis &&
            has_axis(port, space->axis_count - 1))
            return true;
    }
    return false;
}

/* Elements of one tile, so that a few of them stay in L1 together and both units get work. */
static int64_t tile_budget(const fusion_space *space) {
    const fusion_context *context = space->group->context;
    double total = 1, l1 = fusion_level_bytes(context->capability, "l1", 32768);
    double units = context->capability->units ? context->capability->units : 1;
    for (uint32_t a = 0; a < space->axis_count; a++) total *= (double)space->axes[a].size;
    double budget = l1 / 4 / 4;
    if (total <= 2 * budget) return (int64_t)(2 * budget);
    if (total / units < budget) budget = total / units;
    return (int64_t)budget;
}

/* Whole rows where they are short, since those lie in one piece; a share of them for each unit otherwise. */
static int64_t loop_columns(const fusion_space *space, int64_t size) {
    int64_t units = space->group->context->capability->units,
            columns = fusion_ceil(size, units > 0 ? units : 1);
    if (columns > MAX_LOOP_COLUMNS) columns = MAX_LOOP_COLUMNS;
    if (columns < MIN_LOOP_COLUMNS) columns = MIN_LOOP_COLUMNS;
    return columns < size ? columns : size;
}

/* A whole reduction that leaves too few columns for a cache line, or is too long, goes in blocks of its
 * outermost axis. */
static void choose_loop(const fusion_space *space, int64_t budget, int64_t *used, cut *out) {
    uint32_t axis = FUSION_NONE, last = space->axis_count - 1;
    for (uint32_t a = space->axis_count; a-- > 0;)
        if (space->axes[a].role) axis = a;
    if (axis == FUSION_NONE) return;
    bool rows = space->axes[last].role;
    int64_t columns = rows ? 1 : loop_columns(space, space->axes[last].size);
    if (*used * columns <= (rows ? LOOP_ELEMENTS : budget)) return;
    int64_t inner = *used / space->axes[axis].size,
            room = (rows ? 4096 : budget / columns) / (inner < 1 ? 1 : inner);
    int64_t block = divisor_below(space->axes[axis].size, room < 1 ? 1 : room);
    if (*used <= LOOP_ELEMENTS && block * inner < LOOP_ROWS) return;
    out->loop_axis = axis;
    out->tile[axis] = block;
    *used = inner * block;
}

/* Tile extents: reduced axes whole, then the innermost axis of every port to a useful width, then outwards.
 */
static bool choose_cut(const fusion_space *space, uint32_t loop_item, cut *out) {
    int64_t budget = tile_budget(space), used = 1;
    uint32_t tile_axes = 0;
    out->loop_axis = FUSION_NONE;
    for (uint32_t a = 0; a < space->axis_count; a++) {
        out->tile[a] = space->axes[a].role ? space->axes[a].size : 1;
        used *= out->tile[a];
        if (used > (1ll << 40)) return false;
    }
    if (loop_item != ENT_ID_NONE) choose_loop(space, budget, &used, out);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t a = space->axis_count; a-- > 0;) {
            if (space->axes[a].role || (pass == 0 && !needs_broad(space, a))) continue;
            int64_t others = used / out->tile[a], room = budget / (others < 1 ? 1 : others);
            if (pass == 0 && a + 1 < space->axis_count) room = room < 32 ? room : 32;
            if (pass == 0 && a + 1 == space->axis_count && space->axis_count > 1) {
                /* leave room for the axis that another port has innermost */
                bool alone = true;
                for (uint32_t b = 0; b + 1 < space->axis_count; b++)
                    alone &= !needs_broad(space, b) || space->axes[b].role;
                if (!alone && room > budget / 32) room = budget / 32 > 32 ? budget / 32 : 32;
            }
            int64_t tile = even_tile(space->axes[a].size, room, a + 1 == space->axis_count ? 16 : 1);
            if (tile < out->tile[a]) continue;
            used = others * tile;
            out->tile[a] = tile;
            if (pass == 1 && tile < space->axes[a].size) break;
        }
    }
    for (uint32_t a = 0; a < space->axis_count; a++) tile_axes += out->tile[a] > 1 || space->axes[a].role;
    return used <= MAX_TILE_ELEMENTS && tile_axes <= ENT_TILE_MAX_RANK;
}

/* Every output must span the axes that different instances share out. */
static bool outputs_span(const fusion_space *space, const cut *cut) {
    const fusion_group *group = space->group;
    for (uint32_t p = 0; p < space->port_count; p++) {
        if (!space->ports[p].is_output) continue;
        for (uint32_t a = 0; a < space->axis_count; a++) {
            bool spans = false;
            for (uint32_t i = 0; i < space->ports[p].axis_count; i++) spans |= space->ports[p].axes[i] == a;
            if (!spans && !space->axes[a].role && cut->tile[a] < space->axes[a].size) return false;
        }
    }
    return group->output_count > 0;
}

static double reduce_identity(ent_reduce_kind kind) {
    return kind == ENT_REDUCE_MAX    ? -INFINITY
           : kind == ENT_REDUCE_MIN  ? INFINITY
           : kind == ENT_REDUCE_PROD ? 1
                                     : 0;
}

/* FILL acc; LOOP { prologue; part = reduce; acc = acc op part }; finish; epilogue. */
static void emit_looped(fusion_body *body, uint32_t loop_item, uint32_t axis_index, int64_t block) {
    fusion_group *group = body->group;
    const fusion_item *reduce = &group->context->items[loop_item];
    const fusion_reduce_form *form = fusion_reduce_form_of(reduce->op);
    fusion_axis *axis = &body->space->axes[axis_index];
    const fusion_value *out = fusion_group_find(group, reduce->outputs[0]);
    uint32_t dtype = fusion_sum_dtype(fusion_value_of(group->context, out->value)->dtype), at = 0;
    uint32_t total = fusion_body_tile(body, dtype, out->mask);
    double identity = reduce_identity(form->kind);
    if (isinf(identity) && dtype > ENT_DTYPE_F64) identity = identity < 0 ? -2147483648.0 : 2147483647.0;
    ent_tile_builder_fill(&body->builder, total, identity);
    axis->recipe.terms[axis->recipe.term_count].variable =
        ent_tile_builder_loop(&body->builder, 0, axis->size, block);
    axis->recipe.terms[axis->recipe.term_count++].coefficient = 1;
    for (; group->items[at] != loop_item; at++) fusion_body_item(body, group->items[at]);
    uint32_t part = fusion_emit_reduce_part(body, reduce);
    static const ent_tile_map combine[] = {ENT_MAP_NONE, ENT_MAP_ADD, ENT_MAP_MAX, ENT_MAP_MIN, ENT_MAP_MUL};
    ent_tile_builder_map2(&body->builder, combine[form->kind], total, total, part);
    ent_tile_builder_end(&body->builder);
    fusion_emit_reduce_finish(body, reduce, total);
    for (at++; at < group->item_count; at++) fusion_body_item(body, group->items[at]);
    fusion_body_stores(body);
}

static void cut_axes(fusion_body *body, const cut *cut) {
    fusion_space *space = body->space;
    uint32_t tile_axis = 0;
    for (uint32_t a = 0; a < space->axis_count; a++) {
        bool named = cut->tile[a] > 1 || space->axes[a].role;
        if (a == cut->loop_axis) { /* the loop advances it, not the grid */
            space->axes[a].tile = cut->tile[a];
            space->axes[a].recipe.tile_axis = tile_axis++;
            space->axes[a].recipe.step = 1;
        } else
            fusion_body_cut(body, a, cut->tile[a], named ? tile_axis++ : ENT_TILE_NONE);
    }
    space->tile_rank = tile_axis;
}

static const char *kind_of(const fusion_group *group) {
    return group->only_relabels ? "copy" : group->reduced ? "rows" : "elementwise";
}

static bool build(fusion_group *group, fusion_space *space) {
    fusion_body body;
    cut cut;
    uint32_t loop_item = group->reduced ? loopable(group) : ENT_ID_NONE;
    fusion_space_merge(space);
    if (!choose_cut(space, loop_item, &cut)) {
        group->context->reason = "a row does not fit in a tile";
        return false;
    }
    if (!outputs_span(space, &cut)) {
        group->context->reason = "an output would be stored more than once";
        return false;
    }
    const fusion_item *last = &group->context->items[group->items[group->item_count - 1]];
    fusion_body_begin(&body, space, fusion_value_of(group->context, last->outputs[0])->name);
    cut_axes(&body, &cut);
    fusion_body_buffers(&body);
    if (cut.loop_axis != FUSION_NONE)
        emit_looped(&body, loop_item, cut.loop_axis, cut.tile[cut.loop_axis]);
    else
        fusion_body_items(&body);
    return fusion_body_finish(&body, kind_of(group), ENT_TIER_TUNED);
}

static bool moves_nothing(const fusion_space *space) {
    const fusion_port *first = &space->ports[0];
    for (uint32_t p = 1; p < space->port_count; p++)
        if (space->ports[p].sequence_count != first->sequence_count ||
            memcmp(space->ports[p].sequence, first->sequence, first->sequence_count) != 0)
            return false;
    return true;
}

static uint64_t ports_hash(const fusion_space *space) {
    uint64_t hash = 1469598103934665603u;
    for (uint32_t p = 0; p < space->port_count; p++)
        for (uint32_t i = 0; i < space->ports[p].layout.rank; i++)
            hash = (hash ^ (space->ports[p].layout.order[i] + 1u)) * 1099511628211u;
    return hash;
}

static bool has_transpose(const fusion_group *group) {
    for (uint32_t i = 0; i < group->item_count; i++)
        if (group->context->items[group->items[i]].op == ENT_OP_Transpose) return true;
    return false;
}

/* One candidate for each choice of layouts that differs. */
static void build_variants(fusion_group *group) {
    fusion_context *context = group->context;
    uint32_t reference = reference_of(group), made = 0;
    uint64_t seen[2 * ENT_FUSION_MAX_LAYOUTS];
    if (reference == ENT_ID_NONE || !fusion_group_close(group, FUSION_MAX_OUTPUTS)) return;
    uint32_t variants = has_transpose(group) ? 2 : 1;
    uint32_t layouts = context->layouts->counts[reference];
    for (uint32_t i = 0; i < layouts * variants; i++) {
        fusion_space space;
        fusion_space_begin(&space, group);
        fusion_space_order(&space, reference, &context->layouts->items[reference][i % layouts]);
        if (!fusion_space_ports(&space, i >= layouts)) return;
        uint64_t hash = ports_hash(&space);
        uint32_t known = 0;
        while (known < made && seen[known] != hash) known++;
        if (known < made || (group->only_relabels && moves_nothing(&space) && i > 0)) continue;
        seen[made++] = hash;
        build(group, &space);
    }
}

void fusion_make_solo(fusion_context *context, uint32_t item) {
    fusion_group group;
    fusion_group_begin(&group, context, context->items[item].graph);
    context->reason = "its axes do not fit one domain";
    if (fusion_group_add(&group, item)) build_variants(&group);
}

void fusion_make_rows(fusion_context *context, uint32_t item) {
    fusion_group group;
    fusion_group_begin(&group, context, context->items[item].graph);
    if (!fusion_group_add(&group, item)) return;
    bool last_emitted = true;
    while (fusion_group_grow(&group) != ENT_ID_NONE) {
        last_emitted = false;
        if (group.only_relabels || !fusion_group_close(&group, FUSION_MAX_OUTPUTS)) continue;
        uint32_t n = group.item_count;
        bool wanted = n <= 4 || (group.output_count == 1 && (n == 6 || n % 4 == 0));
        if (!wanted) continue;
        build_variants(&group);
        last_emitted = true;
    }
    if (!last_emitted && !group.only_relabels && fusion_group_close(&group, FUSION_MAX_OUTPUTS))
        build_variants(&group);
}
