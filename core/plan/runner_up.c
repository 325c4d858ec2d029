/* Runner-up of each region: the cheapest other cover of the same leaves between the same boundary labels. */
#include "core/plan/internal.h"

#include <math.h>
#include <string.h>

#define RUNNER_UP_WORK (50 * ENT_PARTITION_WORK_PER_MS)

typedef struct local_problem {
    ent_plan_builder *b;
    uint32_t *values; /* local value -> partition value */
} local_problem;

static double local_price(void *context, uint32_t value, uint32_t from, uint32_t to) {
    local_problem *local = context;
    return from == to ? 0 : ent_plan_way_price(local->b, local->values[value], from, to);
}

static uint32_t index_in(const uint32_t *items, uint32_t count, uint32_t id) {
    for (uint32_t i = 0; i < count; i++)
        if (items[i] == id) return i;
    return ENT_PARTITION_NONE;
}

static uint32_t local_value(local_problem *local, uint32_t *count, uint32_t value) {
    uint32_t found = index_in(local->values, *count, value);
    if (found != ENT_PARTITION_NONE) return found;
    local->values[*count] = value;
    return (*count)++;
}

static const ent_partition_port *local_ports(local_problem *local, uint32_t *value_count,
                                             const ent_partition_port *ports, uint32_t count) {
    ent_partition_port *out = ent_arena_alloc(local->b->arena, (count + 1) * sizeof *out);
    for (uint32_t i = 0; i < count; i++)
        out[i] = (ent_partition_port){local_value(local, value_count, ports[i].value), ports[i].label};
    return out;
}

/* Offers that lie inside the chosen one's leaves, but for the chosen one. candidates: offers by first leaf.
 */
static uint32_t local_offers(local_problem *local, const ent_partition_offer *chosen, uint32_t chosen_index,
                             const uint32_t *candidates, uint32_t candidate_count, ent_partition_offer *out,
                             uint32_t *origin, uint32_t *value_count) {
    const ent_partition_problem *problem = &local->b->problem;
    uint32_t count = 0;
    for (uint32_t c = 0; c < candidate_count; c++) {
        const ent_partition_offer *offer = &problem->offers[candidates[c]];
        if (candidates[c] == chosen_index || offer->leaf_count > chosen->leaf_count) continue;
        uint32_t *leaves = ent_arena_alloc(local->b->arena, (offer->leaf_count + 1) * sizeof *leaves);
        bool inside = true;
        for (uint32_t i = 0; i < offer->leaf_count && inside; i++) {
            leaves[i] = index_in(chosen->leaves, chosen->leaf_count, offer->leaves[i]);
            inside = leaves[i] != ENT_PARTITION_NONE;
        }
        if (!inside) continue;
        out[count] = *offer;
        out[count].leaves = leaves;
        out[count].inputs = local_ports(local, value_count, offer->inputs, offer->input_count);
        out[count].outputs = local_ports(local, value_count, offer->outputs, offer->output_count);
        origin[count++] = candidates[c];
    }
    return count;
}

static uint32_t port_label(const ent_partition_port *ports, uint32_t count, uint32_t value) {
    for (uint32_t i = 0; i < count; i++)
        if (ports[i].value == value) return ports[i].label;
    return ENT_PARTITION_NONE;
}

static void describe(ent_plan_builder *b, const ent_partition_result *result, const uint32_t *origin,
                     ent_plan_runner_up *out) {
    ent_text devices, paths;
    ent_text_init(&devices, b->arena);
    ent_text_init(&paths, b->arena);
    for (uint32_t i = 0; i < result->chosen_count; i++) {
        const ent_offer *offer = &b->session->offers.items[b->offer_of[origin[result->chosen[i]]]];
        const char *name = offer->device == ENT_ID_NONE ? "host" : b->session->devices[offer->device].name;
        if (!devices.data || !strstr(devices.data, name))
            ent_text_add(&devices, "%s%s", devices.size ? " + " : "", name);
        if (i < 6) ent_text_add(&paths, "%s%s", i ? " + " : "", offer->path);
    }
    if (result->chosen_count > 6) ent_text_add(&paths, " + %u more", result->chosen_count - 6);
    *out = (ent_plan_runner_up){true, result->total_ns, devices.data ? devices.data : "",
                                paths.data ? paths.data : ""};
}

static void find_one(ent_plan_builder *b, uint32_t chosen_index, const uint32_t *candidates,
                     uint32_t candidate_count, ent_plan_runner_up *out) {
    const ent_partition_offer *chosen = &b->problem.offers[chosen_index];
    uint32_t room = chosen->input_count + chosen->output_count;
    for (uint32_t i = 0; i < candidate_count; i++)
        room += b->problem.offers[candidates[i]].input_count + b->problem.offers[candidates[i]].output_count;
    local_problem local = {b, ent_arena_alloc(b->arena, (room + 1) * sizeof(uint32_t))};
    ent_partition_offer *offers = ent_arena_alloc(b->arena, (candidate_count + 1) * sizeof *offers);
    uint32_t *origin = ent_arena_alloc(b->arena, (candidate_count + 1) * sizeof *origin);
    uint32_t value_count = 0;
    local_ports(&local, &value_count, chosen->outputs, chosen->output_count);
    uint32_t count =
        local_offers(&local, chosen, chosen_index, candidates, candidate_count, offers, origin, &value_count);
    if (count == 0) return;
    ent_partition_value *values = ent_arena_alloc(b->arena, (value_count + 1) * sizeof *values);
    for (uint32_t i = 0; i < value_count; i++) {
        const ent_partition_value *global = &b->problem.values[local.values[i]];
        uint32_t leaf = global->producer == ENT_PARTITION_NONE
                            ? ENT_PARTITION_NONE
                            : index_in(chosen->leaves, chosen->leaf_count, global->producer);
        values[i] = (ent_partition_value){leaf, ENT_PARTITION_NONE, ENT_PARTITION_NONE, global->weight};
        if (leaf == ENT_PARTITION_NONE)
            values[i].initial_label = port_label(chosen->inputs, chosen->input_count, local.values[i]);
        else
            values[i].final_label = port_label(chosen->outputs, chosen->output_count, local.values[i]);
        if (leaf == ENT_PARTITION_NONE && values[i].initial_label == ENT_PARTITION_NONE)
            return; /* another boundary */
    }
    ent_partition_problem problem = {chosen->leaf_count, values,      value_count, offers,         count,
                                     b->labels.count,    local_price, &local,      RUNNER_UP_WORK, 20000};
    ent_partition_result result = {0};
    if (ent_partition_solve(b->arena, &problem, &result) || !result.feasible) return;
    describe(b, &result, origin, out);
}

void ent_plan_find_runners_up(ent_plan_builder *b, const ent_partition_result *result, ent_plan *plan) {
    ent_plan_runner_up *list = ent_arena_alloc(b->arena, (result->chosen_count + 1) * sizeof *list);
    uint32_t *region_of = ent_arena_alloc(b->arena, (b->leaves.count + 1) * sizeof *region_of);
    uint32_t *counts = ent_arena_alloc(b->arena, (result->chosen_count + 2) * sizeof *counts);
    for (uint32_t r = 0; r < result->chosen_count; r++) {
        const ent_partition_offer *offer = &b->problem.offers[result->chosen[r]];
        for (uint32_t i = 0; i < offer->leaf_count; i++) region_of[offer->leaves[i]] = r;
    }
    for (uint32_t o = 0; o < b->problem.offer_count; o++)
        counts[region_of[b->problem.offers[o].leaves[0]] + 1]++;
    for (uint32_t r = 0; r < result->chosen_count; r++) counts[r + 1] += counts[r];
    uint32_t *sorted = ent_arena_alloc(b->arena, (b->problem.offer_count + 1) * sizeof *sorted);
    uint32_t *fill = ent_arena_copy(b->arena, counts, (result->chosen_count + 2) * sizeof *fill);
    for (uint32_t o = 0; o < b->problem.offer_count; o++)
        sorted[fill[region_of[b->problem.offers[o].leaves[0]]]++] = o;
    for (uint32_t r = 0; r < result->chosen_count; r++)
        find_one(b, result->chosen[r], sorted + counts[r], counts[r + 1] - counts[r], &list[r]);
    plan->runners_up = list;
}
