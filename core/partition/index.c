/* Indexes over a partition problem, and its checks. */
#include "core/partition/internal.h"

#include <math.h>
#include <string.h>

/* Counting sort of (key, item) pairs into offsets and items. */
typedef struct lists {
    uint32_t *offsets;
    uint32_t *items;
} lists;

static lists lists_make(ent_arena *arena, uint32_t keys) {
    lists l = {ent_arena_alloc(arena, ((size_t)keys + 2) * sizeof(uint32_t)), NULL};
    return l;
}

static void lists_close(ent_arena *arena, lists *l, uint32_t keys) {
    for (uint32_t k = 0; k < keys; k++) l->offsets[k + 1] += l->offsets[k];
    l->items = ent_arena_alloc(arena, ((size_t)l->offsets[keys] + 1) * sizeof(uint32_t));
}

static ent_status check_offer(ent_arena *arena, const ent_partition_problem *p, uint32_t o) {
    const ent_partition_offer *offer = &p->offers[o];
    bool good = offer->leaf_count > 0 && isfinite(offer->price_ns) && offer->price_ns >= 0;
    for (uint32_t i = 0; i < offer->leaf_count && good; i++)
        good = offer->leaves[i] < p->leaf_count && (i == 0 || offer->leaves[i] > offer->leaves[i - 1]);
    for (uint32_t i = 0; i < offer->input_count && good; i++) good = offer->inputs[i].value < p->value_count;
    for (uint32_t i = 0; i < offer->output_count && good; i++)
        good = offer->outputs[i].value < p->value_count && offer->outputs[i].label < p->label_count;
    if (good) return NULL;
    return ent_status_make(
        arena, ENT_ERROR_INTERNAL, "partition.problem", ent_arena_format(arena, "offer %u", o),
        "an offer needs ascending leaves, known values, labelled outputs and a finite price");
}

static void index_leaves(ent_arena *arena, const ent_partition_problem *p, ent_partition_index *out) {
    lists l = lists_make(arena, p->leaf_count);
    for (uint32_t o = 0; o < p->offer_count; o++)
        for (uint32_t i = 0; i < p->offers[o].leaf_count; i++) l.offsets[p->offers[o].leaves[i] + 1]++;
    lists_close(arena, &l, p->leaf_count);
    uint32_t *fill = ent_arena_copy(arena, l.offsets, ((size_t)p->leaf_count + 1) * sizeof *fill);
    for (uint32_t o = 0; o < p->offer_count; o++)
        for (uint32_t i = 0; i < p->offers[o].leaf_count; i++) l.items[fill[p->offers[o].leaves[i]]++] = o;
    out->first_offers = l.offsets;
    out->offers_by_leaf = l.items;
}

static void add_label(uint32_t *items, uint32_t *count, uint32_t label) {
    for (uint32_t i = 0; i < *count; i++)
        if (items[i] == label) return;
    items[(*count)++] = label;
}

/* Labels of each value in ascending order of first appearance. */
static ent_status index_labels(ent_arena *arena, const ent_partition_problem *p, ent_partition_index *out) {
    lists ports = lists_make(arena, p->value_count);
    for (uint32_t v = 0; v < p->value_count; v++) ports.offsets[v + 1] = 2;
    for (uint32_t o = 0; o < p->offer_count; o++) {
        for (uint32_t i = 0; i < p->offers[o].input_count; i++)
            ports.offsets[p->offers[o].inputs[i].value + 1]++;
        for (uint32_t i = 0; i < p->offers[o].output_count; i++)
            ports.offsets[p->offers[o].outputs[i].value + 1]++;
    }
    lists_close(arena, &ports, p->value_count);
    uint32_t *counts = ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof *counts);
    for (uint32_t v = 0; v < p->value_count; v++) {
        if (p->values[v].initial_label != ENT_PARTITION_NONE)
            add_label(ports.items + ports.offsets[v], &counts[v], p->values[v].initial_label);
        if (p->values[v].final_label != ENT_PARTITION_NONE)
            add_label(ports.items + ports.offsets[v], &counts[v], p->values[v].final_label);
    }
    for (uint32_t o = 0; o < p->offer_count; o++)
        for (uint32_t i = 0; i < p->offers[o].input_count + p->offers[o].output_count; i++) {
            const ent_partition_offer *offer = &p->offers[o];
            const ent_partition_port *port =
                i < offer->input_count ? &offer->inputs[i] : &offer->outputs[i - offer->input_count];
            if (port->label != ENT_PARTITION_NONE)
                add_label(ports.items + ports.offsets[port->value], &counts[port->value], port->label);
        }
    uint32_t *offsets = ent_arena_alloc(arena, ((size_t)p->value_count + 2) * sizeof *offsets), total = 0;
    for (uint32_t v = 0; v < p->value_count; v++) {
        if (counts[v] > ENT_PARTITION_MAX_FORMS)
            return ent_status_make(arena, ENT_ERROR_LIMIT, "partition.labels",
                                   ent_arena_format(arena, "value %u", v), "more than 64 forms of one value");
        memmove(ports.items + total, ports.items + ports.offsets[v], counts[v] * sizeof(uint32_t));
        offsets[v] = total;
        total += counts[v];
    }
    offsets[p->value_count] = total;
    out->label_offsets = offsets;
    out->labels = ports.items;
    return NULL;
}

/* Who takes each value, and until which leaf. An offer is claimed at its first leaf, so a form that only
 * offers with earlier first leaves want is of no use any more. */
static void index_takers(ent_arena *arena, const ent_partition_problem *p, ent_partition_index *out) {
    lists l = lists_make(arena, p->value_count);
    uint32_t *seen = ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof *seen);
    uint32_t *last = ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof *last);
    uint32_t *wants =
        ent_arena_alloc(arena, ((size_t)out->label_offsets[p->value_count] + 1) * sizeof *wants);
    for (uint32_t o = 0; o < p->offer_count; o++)
        for (uint32_t i = 0; i < p->offers[o].input_count; i++) {
            uint32_t value = p->offers[o].inputs[i].value, end = p->offers[o].leaves[0] + 1;
            if (seen[value] != o + 1) l.offsets[value + 1]++;
            seen[value] = o + 1;
            if (last[value] < end) last[value] = end;
            if (p->offers[o].inputs[i].label == ENT_PARTITION_NONE) continue;
            uint32_t *want = &wants[out->label_offsets[value] +
                                    ent_partition_label_slot(out, value, p->offers[o].inputs[i].label)];
            if (*want < end) *want = end;
        }
    lists_close(arena, &l, p->value_count);
    uint32_t *fill = ent_arena_copy(arena, l.offsets, ((size_t)p->value_count + 1) * sizeof *fill);
    memset(seen, 0, ((size_t)p->value_count + 1) * sizeof *seen);
    for (uint32_t o = 0; o < p->offer_count; o++)
        for (uint32_t i = 0; i < p->offers[o].input_count; i++) {
            uint32_t value = p->offers[o].inputs[i].value;
            if (seen[value] != o + 1) l.items[fill[value]++] = o;
            seen[value] = o + 1;
        }
    out->first_takers = l.offsets;
    out->takers = l.items;
    out->last_claim = last;
    out->last_wants = wants;
}

static void index_converts(ent_arena *arena, const ent_partition_problem *p, ent_partition_index *out) {
    uint32_t *offsets = ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof *offsets), total = 0;
    for (uint32_t v = 0; v < p->value_count; v++) {
        offsets[v] = total;
        total += ent_partition_slot_count(out, v) * ent_partition_slot_count(out, v);
    }
    out->converts = ent_arena_alloc(arena, ((size_t)total + 1) * sizeof *out->converts);
    for (uint32_t i = 0; i < total; i++) out->converts[i] = -1;
    out->convert_offsets = offsets;
}

ent_status ent_partition_index_make(ent_arena *arena, const ent_partition_problem *problem,
                                    ent_partition_index *out) {
    memset(out, 0, sizeof *out);
    out->problem = problem;
    for (uint32_t o = 0; o < problem->offer_count; o++) ENT_TRY(check_offer(arena, problem, o));
    index_leaves(arena, problem, out);
    ENT_TRY(index_labels(arena, problem, out));
    index_takers(arena, problem, out);
    index_converts(arena, problem, out);
    ent_partition_readers_make(arena, out);
    ent_partition_bound_make(arena, out);
    return NULL;
}

uint32_t ent_partition_label_slot(const ent_partition_index *index, uint32_t value, uint32_t label) {
    for (uint32_t i = index->label_offsets[value]; i < index->label_offsets[value + 1]; i++)
        if (index->labels[i] == label) return i - index->label_offsets[value];
    return ENT_PARTITION_NONE;
}

uint32_t ent_partition_slot_count(const ent_partition_index *index, uint32_t value) {
    return index->label_offsets[value + 1] - index->label_offsets[value];
}

double ent_partition_convert_price(const ent_partition_index *index, uint32_t value, uint32_t from_slot,
                                   uint32_t to_slot) {
    const ent_partition_problem *p = index->problem;
    if (from_slot == to_slot) return 0;
    double *price = &index->converts[index->convert_offsets[value] +
                                     from_slot * ent_partition_slot_count(index, value) + to_slot];
    const uint32_t *labels = index->labels + index->label_offsets[value];
    if (*price < 0)
        *price =
            p->values[value].weight * p->convert_ns(p->context, value, labels[from_slot], labels[to_slot]);
    return *price;
}

bool ent_partition_offer_has(const ent_partition_offer *offer, uint32_t leaf) {
    for (uint32_t i = 0; i < offer->leaf_count; i++)
        if (offer->leaves[i] == leaf) return true;
    return false;
}
