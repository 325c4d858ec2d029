/* Solving: a narrow beam for a first solution, then the exact search below its price; execution order and
 * conversions of the winner. */
#include "core/partition/internal.h"

#include <math.h>
#include <string.h>

#define FIRST_WIDTH 24u

static bool offer_is_ready(const ent_partition_problem *p, const ent_partition_offer *offer,
                           const uint8_t *made) {
    for (uint32_t i = 0; i < offer->input_count; i++)
        if (!made[offer->inputs[i].value] && p->values[offer->inputs[i].value].producer != ENT_PARTITION_NONE)
            return false;
    return true;
}

/* Claim order is by lowest leaf; an offer whose inputs come later moves behind them. The search refused
 * cycles, so this ends. */
static uint32_t *execution_order(ent_arena *arena, const ent_partition_problem *p, const uint32_t *claimed,
                                 uint32_t count) {
    uint8_t *made = ent_arena_alloc(arena, (size_t)p->value_count + 1),
            *done = ent_arena_alloc(arena, (size_t)count + 1);
    uint32_t *order = ent_arena_alloc(arena, ((size_t)count + 1) * sizeof *order), placed = 0;
    uint32_t first = 0;
    while (placed < count) {
        uint32_t before = placed;
        for (uint32_t i = first; i < count; i++) {
            const ent_partition_offer *offer = &p->offers[claimed[i]];
            if (done[i] || !offer_is_ready(p, offer, made)) continue;
            done[i] = 1;
            order[placed++] = claimed[i];
            for (uint32_t k = 0; k < offer->output_count; k++) made[offer->outputs[k].value] = 1;
            while (first < count && done[first]) first++;
            break;
        }
        if (placed == before) return NULL;
    }
    return order;
}

typedef struct forms {
    uint32_t *made; /* per value: label it was made in */
    uint64_t *paid; /* slots */
    ent_partition_convert *converts;
    uint32_t count, room;
    double price;
} forms;

static void want(ent_arena *arena, const ent_partition_index *index, forms *f, uint32_t value, uint32_t label,
                 uint32_t before) {
    const ent_partition_problem *p = index->problem;
    if (label == ENT_PARTITION_NONE) return;
    uint64_t bit = UINT64_C(1) << ent_partition_label_slot(index, value, label);
    if (f->paid[value] & bit) return;
    f->paid[value] |= bit;
    double price = p->values[value].weight * p->convert_ns(p->context, value, f->made[value], label);
    ent_partition_convert c = {value, f->made[value], label, before, price};
    if (f->count == f->room)
        f->converts = ent_array_grow(arena, f->converts, f->count, &f->room, sizeof *f->converts);
    f->converts[f->count++] = c;
    f->price += price;
}

static void made_in(const ent_partition_index *index, forms *f, uint32_t value, uint32_t label) {
    f->made[value] = label;
    f->paid[value] = UINT64_C(1) << ent_partition_label_slot(index, value, label);
}

static void list_converts(ent_arena *arena, const ent_partition_index *index, ent_partition_result *out) {
    const ent_partition_problem *p = index->problem;
    forms f = {ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof(uint32_t)),
               ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof(uint64_t)),
               NULL,
               0,
               0,
               0};
    for (uint32_t v = 0; v < p->value_count; v++)
        if (p->values[v].producer == ENT_PARTITION_NONE && p->values[v].initial_label != ENT_PARTITION_NONE)
            made_in(index, &f, v, p->values[v].initial_label);
    double price = 0;
    for (uint32_t i = 0; i < out->chosen_count; i++) {
        const ent_partition_offer *offer = &p->offers[out->chosen[i]];
        price += offer->price_ns;
        for (uint32_t k = 0; k < offer->input_count; k++)
            want(arena, index, &f, offer->inputs[k].value, offer->inputs[k].label, i);
        for (uint32_t k = 0; k < offer->output_count; k++)
            made_in(index, &f, offer->outputs[k].value, offer->outputs[k].label);
    }
    for (uint32_t v = 0; v < p->value_count; v++)
        if (p->values[v].final_label != ENT_PARTITION_NONE && f.paid[v])
            want(arena, index, &f, v, p->values[v].final_label, out->chosen_count);
    out->converts = f.converts;
    out->convert_count = f.count;
    out->total_ns = price + f.price;
}

/* A leaf that no offer contains is why nothing covers it; otherwise the furthest place the search came to. */
static uint32_t find_stuck(const ent_partition_index *index, uint32_t furthest) {
    for (uint32_t i = 0; i < index->problem->leaf_count; i++)
        if (index->first_offers[i] == index->first_offers[i + 1]) return i;
    return furthest;
}

static ent_status search(ent_arena *arena, const ent_partition_index *index, uint64_t deadline_ns,
                         ent_partition_result *out, const uint32_t **out_offers, uint32_t *out_count) {
    const ent_partition_problem *p = index->problem;
    ent_partition_search first = {index, arena, FIRST_WIDTH, INFINITY, deadline_ns, false, INFINITY, 0};
    double cost = INFINITY;
    ENT_TRY(ent_partition_search_run(&first, out_offers, out_count, &cost, &out->stuck_leaf));
    out->states = first.states;
    out->proven = !first.cut;
    out->bound_ns = first.cut ? fmin(first.cut_bound_ns, cost) : cost;
    if (!first.cut) return NULL;
    ent_partition_search exact = {
        index, arena, p->max_states ? p->max_states : 50000, cost, deadline_ns, false, INFINITY, 0};
    const uint32_t *offers = NULL;
    uint32_t count = 0, stuck = 0;
    double better = INFINITY;
    ENT_TRY(ent_partition_search_run(&exact, &offers, &count, &better, &stuck));
    out->states += exact.states;
    if (better <= cost) {
        *out_offers = offers;
        *out_count = count;
        cost = better;
    }
    if (!isfinite(cost)) out->stuck_leaf = stuck;
    out->proven = !exact.cut;
    out->bound_ns = exact.cut ? fmin(exact.cut_bound_ns, cost) : cost;
    return NULL;
}

ent_status ent_partition_solve(ent_arena *arena, const ent_partition_problem *problem,
                               ent_partition_result *out) {
    uint64_t start = ent_time_ns();
    uint64_t deadline = start + (problem->budget_ns ? problem->budget_ns : UINT64_C(3000000000));
    memset(out, 0, sizeof *out);
    ent_arena *scratch = ent_arena_create(0);
    if (!scratch) return ent_status_out_of_memory();
    ent_partition_index index;
    const uint32_t *claimed = NULL;
    uint32_t count = 0;
    ent_status status = ent_partition_index_make(scratch, problem, &index);
    if (!status) status = search(scratch, &index, deadline, out, &claimed, &count);
    if (!status && claimed) {
        uint32_t *order = execution_order(arena, problem, claimed, count);
        out->feasible = order != NULL;
        out->chosen = order;
        out->chosen_count = count;
        if (order) list_converts(arena, &index, out);
        if (out->proven) out->bound_ns = out->total_ns;
    } else if (!status) {
        out->feasible = problem->leaf_count == 0;
        out->stuck_leaf = find_stuck(&index, out->stuck_leaf);
    }
    out->time_ns = ent_time_ns() - start;
    if (status)
        status = ent_status_make(arena, status->code, status->rule, status->place, "%s", status->text);
    ent_arena_destroy(scratch);
    return status;
}
