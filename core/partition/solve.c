/* Solving: beams of growing width until nothing cheaper can be left; execution order and conversions of the
 * winner. */
#include "core/partition/internal.h"

#include <math.h>
#include <string.h>

#define FIRST_WIDTH 4u
#define WIDER 16u /* from beam to beam */
#define DEFAULT_STATES 50000u
#define STUCK_WIDTH 64u
#define TOLERANCE 1e-9 /* of a price, see search.c */

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

/* A leaf that no offer contains is why nothing covers it; otherwise the furthest place that a search comes to
 * which takes no notice of what is hopeless. */
static ent_status find_stuck(ent_arena *arena, const ent_partition_index *index, uint32_t *out) {
    const uint32_t *offers;
    uint32_t count;
    double cost;
    for (*out = 0; *out < index->problem->leaf_count; (*out)++)
        if (index->first_offers[*out] == index->first_offers[*out + 1]) return NULL;
    ent_partition_search blind = {.index = index,
                                  .arena = arena,
                                  .width = STUCK_WIDTH,
                                  .unbounded = true,
                                  .upper_ns = INFINITY,
                                  .max_work = UINT64_MAX};
    return ent_partition_search_run(&blind, &offers, &count, &cost, out);
}

/* Wider and wider beams, each below the price of the one before. The bound is mostly so close that a narrow
 * one finds the least price and the next one nothing below it. */
static ent_status search(ent_arena *arena, const ent_partition_index *index, ent_partition_result *out,
                         const uint32_t **out_offers, uint32_t *out_count) {
    const ent_partition_problem *p = index->problem;
    const uint32_t last = p->max_states ? p->max_states : DEFAULT_STATES;
    double cost = INFINITY;
    out->bound_ns = index->bound_ns;
    for (uint64_t width = FIRST_WIDTH; !out->proven; width *= WIDER) {
        ent_partition_search s = {.index = index,
                                  .arena = arena,
                                  .width = width < last ? (uint32_t)width : last,
                                  .upper_ns = cost,
                                  .work = out->work,
                                  .max_work = p->max_work ? p->max_work : ENT_PARTITION_DEFAULT_WORK,
                                  .cut_bound_ns = INFINITY};
        const uint32_t *offers = NULL;
        uint32_t count = 0, stuck = 0;
        double better = INFINITY;
        ENT_TRY(ent_partition_search_run(&s, &offers, &count, &better, &stuck));
        out->states += s.states;
        out->work = s.work;
        if (better < cost) {
            *out_offers = offers;
            *out_count = count;
            cost = better;
        }
        out->bound_ns = fmin(fmax(out->bound_ns, s.cut_bound_ns), cost);
        out->proven = !s.cut || out->bound_ns >= cost * (1 - TOLERANCE);
        if (width >= last || s.work >= s.max_work) break;
    }
    return NULL;
}

ent_status ent_partition_solve(ent_arena *arena, const ent_partition_problem *problem,
                               ent_partition_result *out) {
    uint64_t start = ent_time_ns();
    memset(out, 0, sizeof *out);
    ent_arena *scratch = ent_arena_create_beside(arena);
    if (!scratch) return ent_status_out_of_memory();
    ent_partition_index index;
    const uint32_t *claimed = NULL;
    uint32_t count = 0;
    ent_status status = ent_partition_index_make(scratch, problem, &index);
    if (!status) status = search(scratch, &index, out, &claimed, &count);
    if (!status && claimed) {
        uint32_t *order = execution_order(arena, problem, claimed, count);
        out->feasible = order != NULL;
        out->chosen = order;
        out->chosen_count = count;
        if (order) list_converts(arena, &index, out);
        if (out->proven) out->bound_ns = out->total_ns;
    } else if (!status) {
        out->feasible = problem->leaf_count == 0;
        status = find_stuck(scratch, &index, &out->stuck_leaf);
    }
    out->time_ns = ent_time_ns() - start;
    if (status)
        status = ent_status_make(arena, status->code, status->rule, status->place, "%s", status->text);
    ent_arena_destroy(scratch);
    return status;
}
