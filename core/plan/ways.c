/* Ways between two forms of a value: layout changes on a device of the memory, copies between memories. */
#include "core/plan/internal.h"

#include <math.h>
#include <string.h>

/* Where a declaration names no link: a slow one, so that nobody wins by keeping silent. */
#define UNKNOWN_LINK_LATENCY_NS 10000.0
#define UNKNOWN_LINK_GBPS 4.0

static double value_bytes(const ent_plan_builder *b, uint32_t value, const ent_layout *layout) {
    const ent_value *v = ent_module_value(b->session->module, value);
    int64_t dims[ENT_MAX_RANK];
    ent_module_typical_dims(b->session->module, value, dims);
    int64_t bytes = ent_layout_bytes(layout, v->dtype, dims);
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

/* A tile program where the space's device takes one, else a region (Identity) priced by its declared
 * strided-copy cost. */
static ent_plan_convert make_change(ent_plan_builder *b, uint32_t value, uint32_t space,
                                    const ent_layout *from, const ent_layout *to) {
    uint32_t device = b->spaces[space].device;
    ent_plan_convert step = {value, space, space, *from, *to, 0, device, INFINITY, NULL};
    if (device == ENT_ID_NONE) return step;
    const ent_capability *capability = b->session->devices[device].capability;
    ent_fusion_candidate candidate;
    if ((capability->depths & ENT_DEPTH_TILE) &&
        !ent_fusion_make_convert(b->session->module, value, from, to, capability, b->session->arena,
                                 &candidate)) {
        step.program = candidate.program;
        step.price_ns = candidate.price.time_mid_ns;
    } else if (capability->depths & (ENT_DEPTH_REGION | ENT_DEPTH_GRAPH)) {
        double per_byte = capability->tile.copy_strided_ns > 0 ? capability->tile.copy_strided_ns / 4 : 0.5;
        step.price_ns = capability->launch_ns + value_bytes(b, value, from) * per_byte;
    }
    return step;
}

/* Values of one dtype and shape share prices: a program made for each would take longer than the search. */
static uint32_t kind_of(ent_plan_builder *b, uint32_t value) {
    const ent_value *v = ent_module_value(b->session->module, value);
    if (b->kind_value == value + 1) return b->kind;
    ent_text key;
    ent_text_init(&key, b->arena);
    ent_text_add(&key, "%d %u", (int)v->dtype, v->rank);
    for (uint32_t i = 0; i < v->rank && v->rank != ENT_RANK_UNKNOWN; i++)
        ent_text_add(&key, " %lld", (long long)v->dims[i]);
    uint64_t kind = ent_map_count(b->kinds);
    if (!ent_map_find(b->kinds, key.data, &kind)) ent_map_set(b->kinds, key.data, kind);
    b->kind = (uint32_t)kind;
    b->kind_value = value + 1;
    return b->kind;
}

static bool find_price(const ent_map *prices, uint64_t key, double *out) {
    uint64_t bits = 0;
    if (!ent_map_find_u64(prices, key, &bits)) return false;
    memcpy(out, &bits, sizeof bits);
    return true;
}

static void keep_price(ent_map *prices, uint64_t key, double price) {
    uint64_t bits;
    memcpy(&bits, &price, sizeof bits);
    ent_map_set_u64(prices, key, bits);
}

static uint64_t key_of(uint32_t item, uint32_t from, uint32_t to) {
    return (uint64_t)item << 32 | (uint64_t)from << 16 | to;
}

static ent_plan_convert price_change(ent_plan_builder *b, uint32_t value, uint32_t space,
                                     const ent_layout *from, const ent_layout *to) {
    uint64_t key =
        key_of(kind_of(b, value), ent_plan_intern_label(b, space, from), ent_plan_intern_label(b, space, to));
    ent_plan_convert step = {value, space, space, *from, *to, 0, b->spaces[space].device, INFINITY, NULL};
    if (!find_price(b->change_prices, key, &step.price_ns)) {
        step.price_ns = make_change(b, value, space, from, to).price_ns;
        keep_price(b->change_prices, key, step.price_ns);
    }
    return step;
}

typedef ent_plan_convert (*change_function)(ent_plan_builder *b, uint32_t value, uint32_t space,
                                            const ent_layout *from, const ent_layout *to);

static void add_change(ent_plan_builder *b, ent_plan_way *way, uint32_t value, uint32_t space,
                       const ent_layout *from, const ent_layout *to, change_function change) {
    way->steps[way->count++] = change(b, value, space, from, to);
    way->price_ns += way->steps[way->count - 1].price_ns;
}

static ent_plan_way find_steps(ent_plan_builder *b, uint32_t value, const ent_plan_label *from,
                               const ent_plan_label *to, change_function change) {
    ent_plan_way way = {0};
    if (from->space == to->space) {
        add_change(b, &way, value, from->space, &from->layout, &to->layout, change);
        return way;
    }
    if (ent_layout_equal(&from->layout, &to->layout)) {
        add_copy(b, &way, value, &from->layout, from->space, to->space);
        return way;
    }
    ent_plan_way late = {0};
    add_change(b, &way, value, from->space, &from->layout, &to->layout, change);
    add_copy(b, &way, value, &to->layout, from->space, to->space);
    add_copy(b, &late, value, &from->layout, from->space, to->space);
    add_change(b, &late, value, to->space, &from->layout, &to->layout, change);
    return way.price_ns <= late.price_ns ? way : late;
}

double ent_plan_way_price(ent_plan_builder *b, uint32_t value, uint32_t from, uint32_t to) {
    double price = INFINITY;
    uint64_t key = key_of(value, from, to);
    if (find_price(b->way_prices, key, &price)) return price;
    ent_plan_label a = b->labels.items[from], z = b->labels.items[to];
    price = find_steps(b, b->values.items[value], &a, &z, price_change).price_ns;
    keep_price(b->way_prices, key, price);
    return price;
}

ent_plan_way ent_plan_make_way(ent_plan_builder *b, uint32_t value, uint32_t from, uint32_t to) {
    ent_plan_label a = b->labels.items[from], z = b->labels.items[to];
    return find_steps(b, b->values.items[value], &a, &z, make_change);
}
