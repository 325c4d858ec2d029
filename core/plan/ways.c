/* Ways between two forms of a value: layout changes on a device of the memory, copies between memories. */
#include "core/plan/internal.h"

#include <math.h>
#include <string.h>

/* Where a declaration names no link: a slow one, so that nobody wins by keeping silent. */
#define UNKNOWN_LINK_LATENCY_NS 10000.0
#define UNKNOWN_LINK_GBPS 4.0

static double value_bytes(const ent_plan_builder *b, uint32_t value, const ent_layout *layout) {
    const ent_value *v = ent_module_value(b->session->module, value);
    int64_t bytes = ent_layout_bytes(layout, v->dtype, v->dims);
    return bytes < 0 ? INFINITY : (double)bytes;
}

static double link_ns(const ent_plan_builder *b, uint32_t space, double bytes) {
    if (space == 0) return 0;
    const ent_capability *capability = b->session->devices[b->spaces[space].device].capability;
    for (uint32_t i = 0; i < capability->link_count; i++)
        if (strcmp(capability->links[i].to, "host") == 0)
            return capability->links[i].latency_ns +
                   (capability->links[i].gbps > 0 ? bytes / capability->links[i].gbps : 0);
    return UNKNOWN_LINK_LATENCY_NS + bytes / UNKNOWN_LINK_GBPS;
}

static void add_copy(const ent_plan_builder *b, ent_plan_way *way, uint32_t value, const ent_layout *layout,
                     uint32_t from, uint32_t to) {
    double bytes = value_bytes(b, value, layout);
    ent_plan_convert step = {value, from, to, *layout, *layout, 0, ENT_ID_NONE, 0, NULL};
    step.price_ns = link_ns(b, from, bytes) + link_ns(b, to, bytes); /* between devices: through the host */
    way->steps[way->count++] = step;
    way->price_ns += step.price_ns;
}

/* A layout change on the space's device: a tile program where it takes one, else a region (Identity) priced
 * by its declared strided-copy cost. */
static void add_layout_change(ent_plan_builder *b, ent_plan_way *way, uint32_t value, uint32_t space,
                              const ent_layout *from, const ent_layout *to) {
    uint32_t device = b->spaces[space].device;
    ent_plan_convert step = {value, space, space, *from, *to, 0, device, INFINITY, NULL};
    if (device != ENT_ID_NONE) {
        const ent_capability *capability = b->session->devices[device].capability;
        ent_fusion_candidate candidate;
        if ((capability->depths & ENT_DEPTH_TILE) &&
            !ent_fusion_make_convert(b->session->module, value, from, to, capability, b->session->arena,
                                     &candidate)) {
            step.program = candidate.program;
            step.price_ns = candidate.price.time_mid_ns;
        } else if (capability->depths & (ENT_DEPTH_REGION | ENT_DEPTH_GRAPH)) {
            double per_byte =
                capability->tile.copy_strided_ns > 0 ? capability->tile.copy_strided_ns / 4 : 0.5;
            step.price_ns = capability->launch_ns + value_bytes(b, value, from) * per_byte;
        }
    }
    way->steps[way->count++] = step;
    way->price_ns += step.price_ns;
}

static ent_plan_way make_way(ent_plan_builder *b, uint32_t value, const ent_plan_label *from,
                             const ent_plan_label *to) {
    ent_plan_way way = {0};
    if (from->space == to->space) {
        add_layout_change(b, &way, value, from->space, &from->layout, &to->layout);
        return way;
    }
    if (ent_layout_equal(&from->layout, &to->layout)) {
        add_copy(b, &way, value, &from->layout, from->space, to->space);
        return way;
    }
    ent_plan_way late = {0};
    add_layout_change(b, &way, value, from->space, &from->layout, &to->layout);
    add_copy(b, &way, value, &to->layout, from->space, to->space);
    add_copy(b, &late, value, &from->layout, from->space, to->space);
    add_layout_change(b, &late, value, to->space, &from->layout, &to->layout);
    return way.price_ns <= late.price_ns ? way : late;
}

const ent_plan_way *ent_plan_find_way(ent_plan_builder *b, uint32_t value, uint32_t from, uint32_t to) {
    uint64_t key = ((uint64_t)value << 32) | ((uint64_t)from << 16) | to, index = 0;
    if (!ent_map_find_u64(b->ways, key, &index)) {
        ent_plan_label a = b->labels.items[from], z = b->labels.items[to];
        ent_plan_way way = make_way(b, b->values.items[value], &a, &z);
        index = b->way_items.count;
        ent_array_push(b->arena, &b->way_items, way);
        ent_map_set_u64(b->ways, key, index);
    }
    return &b->way_items.items[index];
}
