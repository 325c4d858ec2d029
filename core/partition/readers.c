/* Readers of values. A problem says which offers take a value, not which of their leaves is the reason; it
 * shows in that no offer has the leaf without taking the value or making it. */
#include "core/partition/internal.h"

#include <string.h>

typedef struct finder {
    ent_arena *arena;
    const ent_partition_index *index;
    uint32_t *takes, *makes; /* per leaf: offers with it that take the value; that make it */
    ENT_ARRAY(ent_partition_reader) readers;
} finder;

static bool makes(const ent_partition_problem *p, const ent_partition_offer *offer, uint32_t value) {
    return p->values[value].producer != ENT_PARTITION_NONE &&
           ent_partition_offer_has(offer, p->values[value].producer);
}

/* The form in which an offer takes (first port) or makes (last port: it overrides) a value; NO_SLOT: not. */
static uint32_t port_slot(const ent_partition_index *index, const ent_partition_port *ports, uint32_t count,
                          uint32_t value, bool last) {
    uint32_t found = ENT_PARTITION_NO_SLOT;
    for (uint32_t i = 0; i < count; i++) {
        if (ports[i].value != value || (found != ENT_PARTITION_NO_SLOT && !last)) continue;
        found = ports[i].label == ENT_PARTITION_NONE ? ent_partition_slot_count(index, value)
                                                     : ent_partition_label_slot(index, value, ports[i].label);
    }
    return found;
}

static void find_links(finder *f, ent_partition_reader *reader) {
    const ent_partition_index *x = f->index;
    const ent_partition_problem *p = x->problem;
    uint32_t from = p->values[reader->value].producer;
    uint32_t first = 0, end = 0, first_made = 0, end_made = 0;
    if (reader->leaf != ENT_PARTITION_NONE)
        first = x->first_offers[reader->leaf], end = x->first_offers[reader->leaf + 1];
    if (from != ENT_PARTITION_NONE) first_made = x->first_offers[from], end_made = x->first_offers[from + 1];
    ent_partition_link *takers = ent_arena_alloc(f->arena, ((size_t)(end - first) + 1) * sizeof *takers);
    ent_partition_link *makers =
        ent_arena_alloc(f->arena, ((size_t)(end_made - first_made) + 1) * sizeof *makers);
    for (uint32_t k = first; k < end; k++) {
        const ent_partition_offer *offer = &p->offers[x->offers_by_leaf[k]];
        uint32_t slot = port_slot(x, offer->inputs, offer->input_count, reader->value, false);
        if (slot != ENT_PARTITION_NO_SLOT && !makes(p, offer, reader->value))
            takers[reader->taker_count++] = (ent_partition_link){x->offers_by_leaf[k], slot};
    }
    for (uint32_t k = first_made; k < end_made; k++) {
        const ent_partition_offer *offer = &p->offers[x->offers_by_leaf[k]];
        uint32_t slot = port_slot(x, offer->outputs, offer->output_count, reader->value, true);
        if (slot != ENT_PARTITION_NO_SLOT && !ent_partition_offer_has(offer, reader->leaf))
            makers[reader->maker_count++] = (ent_partition_link){x->offers_by_leaf[k], slot};
    }
    reader->takers = takers;
    reader->makers = makers;
}

static void add_reader(finder *f, uint32_t value, uint32_t leaf) {
    size_t slots = ent_partition_slot_count(f->index, value);
    ent_partition_reader reader = {.value = value, .leaf = leaf};
    find_links(f, &reader);
    reader.take = ent_arena_alloc(f->arena, (slots + 1) * sizeof *reader.take);
    reader.make = ent_arena_alloc(f->arena, (slots + 1) * sizeof *reader.make);
    ent_array_push(f->arena, &f->readers, reader);
}

static void count_leaves(finder *f, uint32_t value, uint32_t offer, uint32_t by) {
    const ent_partition_problem *p = f->index->problem;
    const ent_partition_offer *o = &p->offers[offer];
    for (uint32_t i = 0; i < o->leaf_count; i++)
        if (makes(p, o, value))
            f->makes[o->leaves[i]] += by;
        else
            f->takes[o->leaves[i]] += by;
}

static void count_offers(finder *f, uint32_t value, uint32_t by) {
    const ent_partition_index *x = f->index;
    uint32_t from = x->problem->values[value].producer;
    for (uint32_t k = x->first_takers[value]; k < x->first_takers[value + 1]; k++)
        if (!makes(x->problem, &x->problem->offers[x->takers[k]], value))
            count_leaves(f, value, x->takers[k], by);
    if (from == ENT_PARTITION_NONE) return;
    for (uint32_t k = x->first_offers[from]; k < x->first_offers[from + 1]; k++)
        count_leaves(f, value, x->offers_by_leaf[k], by);
}

/* One of the readers found is the reason why the offer takes the value, in one form. */
static bool is_explained(const finder *f, uint32_t first_reader, const ent_partition_offer *offer,
                         uint32_t value) {
    uint32_t ports = 0;
    for (uint32_t i = 0; i < offer->input_count; i++) ports += offer->inputs[i].value == value;
    if (ports != 1) return false;
    for (uint32_t r = first_reader; r < f->readers.count; r++)
        if (ent_partition_offer_has(offer, f->readers.items[r].leaf)) return true;
    return false;
}

/* Returns whether the readers explain all offers that take the value. */
static bool find_readers(finder *f, uint32_t value) {
    const ent_partition_index *x = f->index;
    const ent_partition_problem *p = x->problem;
    uint32_t first = f->readers.count, low = p->leaf_count, high = 0;
    for (uint32_t k = x->first_takers[value]; k < x->first_takers[value + 1]; k++) {
        const ent_partition_offer *offer = &p->offers[x->takers[k]];
        if (offer->leaves[0] < low) low = offer->leaves[0];
        if (offer->leaves[offer->leaf_count - 1] >= high) high = offer->leaves[offer->leaf_count - 1] + 1;
    }
    count_offers(f, value, 1);
    for (uint32_t leaf = low; leaf < high; leaf++)
        if (f->takes[leaf] > 0 &&
            f->takes[leaf] + f->makes[leaf] == x->first_offers[leaf + 1] - x->first_offers[leaf])
            add_reader(f, value, leaf);
    count_offers(f, value, (uint32_t)-1);
    for (uint32_t k = x->first_takers[value]; k < x->first_takers[value + 1]; k++)
        if (!is_explained(f, first, &p->offers[x->takers[k]], value)) return false;
    return true;
}

void ent_partition_readers_make(ent_arena *arena, ent_partition_index *index) {
    const ent_partition_problem *p = index->problem;
    finder f = {arena,
                index,
                ent_arena_alloc(arena, ((size_t)p->leaf_count + 1) * sizeof(uint32_t)),
                ent_arena_alloc(arena, ((size_t)p->leaf_count + 1) * sizeof(uint32_t)),
                {0}};
    uint32_t *first = ent_arena_alloc(arena, ((size_t)p->value_count + 1) * sizeof *first);
    uint8_t *known = ent_arena_alloc(arena, (size_t)p->value_count + 1);
    for (uint32_t v = 0; v < p->value_count; v++) {
        first[v] = f.readers.count;
        known[v] = find_readers(&f, v);
        bool exists =
            p->values[v].producer != ENT_PARTITION_NONE || p->values[v].initial_label != ENT_PARTITION_NONE;
        if (exists && p->values[v].final_label != ENT_PARTITION_NONE) add_reader(&f, v, ENT_PARTITION_NONE);
    }
    first[p->value_count] = f.readers.count;
    index->readers = f.readers.items;
    index->first_readers = first;
    index->readers_known = known;
}
