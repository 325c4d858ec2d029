/* Selection: builds the problem, solves it, and turns the result into a plan. */
#include "core/plan/internal.h"

#include <math.h>
#include <string.h>

/* The region of `graph` in front of which something for region `at` (of a graph inside it) has to run. */
static uint32_t region_in_graph(const ent_plan_builder *b, const ent_plan *plan,
                                const uint32_t *region_of_node, uint32_t at, uint32_t graph) {
    const ent_module *module = b->session->module;
    if (at >= plan->region_count) return at;
    uint32_t inner = b->session->offers.items[plan->regions[at]].graph;
    while (inner != graph) {
        uint32_t owner = ent_module_graph(module, inner)->owner;
        if (owner == ENT_ID_NONE) return at;
        at = region_of_node[owner];
        inner = ent_module_node(module, owner)->graph;
    }
    return at;
}

static void add_converts(ent_plan_builder *b, const ent_partition_result *result, ent_plan *plan) {
    const ent_module *module = b->session->module;
    uint32_t *region_of_node = ent_arena_alloc(b->arena, (module->nodes.count + 1) * sizeof *region_of_node);
    for (uint32_t r = 0; r < plan->region_count; r++) {
        const ent_offer *offer = &b->session->offers.items[plan->regions[r]];
        for (uint32_t i = 0; i < offer->node_count; i++) region_of_node[offer->nodes[i]] = r;
    }
    ent_plan_convert *converts =
        ent_arena_alloc(b->arena, (2 * result->convert_count + 1) * sizeof *converts);
    uint32_t count = 0;
    for (uint32_t i = 0; i < result->convert_count; i++) {
        const ent_partition_convert *c = &result->converts[i];
        ent_plan_way way = ent_plan_make_way(b, c->value, c->from, c->to);
        uint32_t graph = ent_module_value(module, b->values.items[c->value])->graph;
        for (uint32_t s = 0; s < way.count; s++) {
            converts[count] = way.steps[s];
            converts[count++].before = region_in_graph(b, plan, region_of_node, c->before, graph);
        }
    }
    plan->converts = converts;
    plan->convert_count = count;
}

static void fill_plan(ent_plan_builder *b, const ent_partition_result *result, ent_plan *plan) {
    uint32_t *regions = ent_arena_alloc(b->arena, (result->chosen_count + 1) * sizeof *regions);
    double *weights = ent_arena_alloc(b->arena, (result->chosen_count + 1) * sizeof *weights);
    for (uint32_t i = 0; i < result->chosen_count; i++) {
        regions[i] = b->offer_of[result->chosen[i]];
        weights[i] = b->graph_weight[b->session->offers.items[regions[i]].graph];
    }
    plan->session = b->session;
    plan->spaces = b->spaces;
    plan->space_count = b->space_count;
    plan->device_space = b->device_space;
    plan->regions = regions;
    plan->region_weight = weights;
    plan->region_count = result->chosen_count;
    plan->total_ns = result->total_ns;
    plan->bound_ns = result->bound_ns;
    plan->proven = result->proven;
    plan->work = result->work;
    plan->rounds++;
    add_converts(b, result, plan);
    ent_plan_find_runners_up(b, result, plan);
}

ent_status ent_plan_make(ent_negotiate_session *session, const ent_plan_options *options, ent_arena *arena,
                         ent_plan *out) {
    ent_plan_builder *b = ent_arena_alloc(arena, sizeof *b);
    b->session = session;
    b->options = options;
    b->arena = arena;
    ENT_TRY(ent_plan_build_problem(b));
    ent_partition_result result = {0};
    ENT_TRY(ent_partition_solve(arena, &b->problem, &result));
    if (!result.feasible) return ent_plan_no_cover(b, result.stuck_leaf);
    if (!isfinite(result.total_ns))
        return ent_status_make(arena, ENT_ERROR_UNSUPPORTED, "plan.no-way", session->module->name,
                               "no device of the set can change a layout that the plan needs; add a device "
                               "with tile or region depth");
    fill_plan(b, &result, out);
    return NULL;
}
