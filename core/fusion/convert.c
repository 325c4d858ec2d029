/* One value from one layout to another, as a tile program: the priced convert step of a plan. */
#include <string.h>

#include "core/fusion/internal.h"

#define EDGE 32 /* least extent of the two fast axes in a tile: whole cache lines on both sides */

static uint32_t inner_axis(const ent_value *v, const ent_layout *layout) {
    for (uint32_t i = layout->block_count; i-- > 0;) return layout->block_axis[i];
    for (uint32_t i = layout->rank; i-- > 0;)
        if (v->dims[layout->order[i]] != 1) return layout->order[i];
    return 0;
}

/* Axes may merge only where both layouts keep them as neighbours; blocks never merge. */
static bool neighbours(const ent_layout *layout, uint8_t outer, uint8_t inner, const ent_value *v) {
    for (uint32_t i = 0; i < layout->block_count; i++)
        if (layout->block_axis[i] == outer || layout->block_axis[i] == inner) return false;
    uint32_t at = 0;
    while (layout->order[at] != outer) at++;
    for (at++; at < layout->rank && v->dims[layout->order[at]] == 1;) at++;
    return at < layout->rank && layout->order[at] == inner;
}

typedef struct merged {
    int64_t size[ENT_MAX_RANK];
    uint8_t axis[ENT_MAX_RANK]; /* first logical axis of each, in the order of `to` */
    uint8_t of[ENT_MAX_RANK];   /* logical axis -> merged one */
    uint32_t count;
} merged;

static void merge(const ent_value *v, const ent_layout *from, const ent_layout *to, merged *out) {
    uint8_t last = 0;
    out->count = 0;
    for (uint32_t i = 0; i < to->rank; i++) {
        uint8_t axis = to->order[i];
        if (v->dims[axis] == 1) continue;
        if (out->count && neighbours(from, last, axis, v) && neighbours(to, last, axis, v))
            out->size[out->count - 1] *= v->dims[axis];
        else {
            out->axis[out->count] = axis;
            out->size[out->count++] = v->dims[axis];
        }
        out->of[axis] = (uint8_t)(out->count - 1);
        last = axis;
    }
}

/* The layout over merged axes that stores the same bytes. */
static ent_layout merged_layout(const ent_value *v, const ent_layout *layout, const merged *m) {
    ent_layout out = ent_layout_plain(m->count ? m->count : 1);
    uint32_t at = 0, seen = 0;
    for (uint32_t i = 0; i < layout->rank; i++) {
        uint8_t axis = layout->order[i];
        if (v->dims[axis] == 1 || seen >> m->of[axis] & 1) continue;
        seen |= 1u << m->of[axis];
        out.order[at++] = m->of[axis];
    }
    out.block_count = layout->block_count;
    for (uint32_t i = 0; i < layout->block_count; i++) {
        out.block_axis[i] = m->of[layout->block_axis[i]];
        out.block_size[i] = layout->block_size[i];
    }
    return out;
}

/* Padding of blocks must be zero, which a store of the value's own elements does not see to. */
static bool blocks_padded(const ent_value *v, const ent_layout *layout) {
    for (uint32_t i = 0; i < layout->block_count; i++)
        if (v->dims[layout->block_axis[i]] == 1 ||
            v->dims[layout->block_axis[i]] % layout->block_size[i] != 0)
            return true;
    return layout->block_count > 1;
}

static void cut(const merged *m, uint32_t from_inner, const ent_capability *capability, int64_t *tile) {
    int64_t budget = (int64_t)fusion_level_bytes(capability, "l1", 32768) / 16, used = 1;
    uint32_t named = 0;
    for (uint32_t a = m->count; a-- > 0;) {
        int64_t room = budget / used;
        bool other = from_inner != m->count - 1;
        if (a == m->count - 1 && other && room > 2 * EDGE) room = 2 * EDGE;
        if (a == from_inner && room < EDGE) room = EDGE;
        tile[a] = m->size[a] < room ? m->size[a] : room;
        if (tile[a] < 1 || named >= ENT_TILE_MAX_RANK ||
            (named == ENT_TILE_MAX_RANK - 1 && other && a > from_inner))
            tile[a] = 1;
        used *= tile[a];
        named += tile[a] > 1;
    }
}

static void emit_copy(ent_tile_builder *b, uint32_t dtype, const merged *m, const int64_t *tile,
                      const ent_layout *from, const ent_layout *to) {
    ent_dim dims[ENT_MAX_RANK] = {1};
    int64_t shape[ENT_TILE_MAX_RANK] = {1, 1, 1, 1};
    uint32_t variable[ENT_MAX_RANK], axis[ENT_MAX_RANK], rank = 0;
    for (uint32_t a = 0; a < m->count; a++) {
        dims[a] = m->size[a];
        variable[a] = tile[a] < m->size[a] ? ent_tile_builder_grid(b, m->size[a], tile[a]) : ENT_TILE_NONE;
        axis[a] = tile[a] > 1 ? rank : ENT_TILE_NONE;
        if (tile[a] > 1) shape[rank++] = tile[a];
    }
    uint32_t buffer_rank = m->count ? m->count : 1;
    uint32_t in = ent_tile_builder_buffer(b, ENT_ROLE_INPUT, dtype, buffer_rank, dims, from);
    uint32_t out = ent_tile_builder_buffer(b, ENT_ROLE_OUTPUT, dtype, buffer_rank, dims, to);
    ent_tile_access load = ent_tile_builder_access(b, in), store = ent_tile_builder_access(b, out);
    for (uint32_t a = 0; a < m->count; a++) {
        ent_tile_access_set(&load, a, 0, variable[a], axis[a], 1);
        ent_tile_access_set(&store, a, 0, variable[a], axis[a], 1);
    }
    uint32_t value = ent_tile_builder_value(b, dtype, ENT_SPACE_LOCAL, rank ? rank : 1, shape);
    ent_tile_builder_load(b, value, &load, 0);
    ent_tile_builder_store(b, &store, value);
}

ent_status ent_fusion_make_convert(const ent_module *module, uint32_t value, const ent_layout *from,
                                   const ent_layout *to, const ent_capability *capability, ent_arena *arena,
                                   ent_fusion_candidate *out) {
    const ent_value *v = ent_module_value(module, value);
    int64_t tile[ENT_MAX_RANK];
    ent_tile_builder builder;
    ent_tile_program *program = NULL;
    merged m;
    if (!ent_value_static(module, value) || from->kind != ENT_LAYOUT_STRIDED ||
        to->kind != ENT_LAYOUT_STRIDED || from->rank != v->rank || to->rank != v->rank ||
        !fusion_dtype_in_tile(v->dtype) || blocks_padded(v, from) || blocks_padded(v, to))
        return ent_status_make(arena, ENT_ERROR_UNSUPPORTED, "convert.layout", v->name,
                               "no tile program converts between these layouts; use core/ops");
    merge(v, from, to, &m);
    ent_layout in = merged_layout(v, from, &m), result = merged_layout(v, to, &m);
    cut(&m, m.count ? m.of[inner_axis(v, from)] : 0, capability, tile);
    ent_tile_builder_init(&builder, arena, ent_arena_format(arena, "convert %s", v->name));
    emit_copy(&builder, v->dtype, &m, tile, &in, &result);
    ENT_TRY(ent_tile_builder_finish(&builder, &program));
    memset(out, 0, sizeof *out);
    ent_fusion_port *ports = ent_arena_alloc(arena, 2 * sizeof *ports);
    ports[0] = (ent_fusion_port){value, *from, false, false};
    ports[1] = (ent_fusion_port){value, *to, true, false};
    out->graph = v->graph;
    out->ports = ports;
    out->port_count = 2;
    out->program = program;
    out->tier = ENT_TIER_TUNED;
    out->kind = "convert";
    return ent_fusion_price_program(program, capability, &out->price);
}
