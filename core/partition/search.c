/* Dynamic programming over a moving frontier of leaves.
 *
 * A state is a set of claimed leaves (all below the frontier, some ahead of it) and, for each value that
 * still matters, the form it was made in, the forms it has been paid for, and what it waits for. The next
 * step always claims the lowest unclaimed leaf with one of the offers that contain it. Two states with the
 * same description differ only in cost, so the cheaper one stands for both: that is exact. An offer may be
 * claimed before a value it needs is made (conv + add whose other branch comes later in order): the value is
 * then "needed", and whatever the offer makes waits for it. An offer that would make a value it waits for
 * itself closes a cycle through other offers and is refused; hence the contracted graph is acyclic. A
 * conversion is always from the form in which the value was made, once for each form wanted: costs do not
 * depend on the order. Why not downsets of the graph: they explode on parallel branches; leaf order with few
 * live values does not. */
#include "core/partition/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_SLOT 0xffu
#define MAX_WAITS 12u
#define MAX_LIVE 512u
#define MAX_AHEAD 256u

typedef struct live_value {
    uint32_t value;
    uint32_t slot; /* label in which it was made; NO_SLOT: only needed so far */
    uint64_t paid; /* labels it exists in, or (not made yet) is needed in */
    uint32_t wait_count;
    uint32_t waits[MAX_WAITS]; /* values not made yet that it depends on, ascending */
} live_value;

/* A state unpacked for work. */
typedef struct work_state {
    double cost, rest; /* rest: lower bound of the unclaimed leaves */
    uint32_t frontier;
    uint32_t ahead_count;
    uint32_t ahead[MAX_AHEAD]; /* claimed leaves beyond the frontier, ascending */
    uint32_t live_count;
    live_value live[MAX_LIVE]; /* ascending by value */
} work_state;

typedef struct packed_state {
    double cost, rest;
    uint32_t parent, offer;
    uint32_t key, key_words;
    uint32_t next; /* in its hash chain */
    uint32_t frontier;
} packed_state;

typedef struct bucket {
    ENT_ARRAY(uint32_t) states;
    uint32_t *slots; /* hash of key -> state + 1 */
    uint32_t slot_count;
} bucket;

typedef struct run {
    ent_partition_search *search;
    const ent_partition_index *index;
    ent_arena *arena;
    ENT_ARRAY(packed_state) states;
    ENT_ARRAY(uint32_t) keys;
    bucket *buckets;
    work_state from, to;
    uint32_t waits[MAX_WAITS * 4], wait_count; /* of the offer being claimed */
    uint32_t stuck;
} run;

static bool is_claimed(const work_state *s, uint32_t leaf) {
    if (leaf < s->frontier) return true;
    for (uint32_t i = 0; i < s->ahead_count; i++)
        if (s->ahead[i] == leaf) return true;
    return false;
}

static live_value *find_live(work_state *s, uint32_t value) {
    for (uint32_t i = 0; i < s->live_count; i++)
        if (s->live[i].value == value) return &s->live[i];
    return NULL;
}

static live_value *add_live(work_state *s, uint32_t value) {
    if (s->live_count == MAX_LIVE) return NULL;
    uint32_t at = s->live_count++;
    for (; at > 0 && s->live[at - 1].value > value; at--) s->live[at] = s->live[at - 1];
    s->live[at] = (live_value){.value = value, .slot = NO_SLOT};
    return &s->live[at];
}

/* ---- packing ---- */

static void push_word(run *r, uint32_t word) {
    ent_array_push(r->arena, &r->keys, word);
}

static void pack_key(run *r, const work_state *s, packed_state *out) {
    out->key = r->keys.count;
    push_word(r, s->ahead_count);
    for (uint32_t i = 0; i < s->ahead_count; i++) push_word(r, s->ahead[i]);
    for (uint32_t i = 0; i < s->live_count; i++) {
        const live_value *v = &s->live[i];
        push_word(r, v->value);
        push_word(r, v->slot | v->wait_count << 8);
        push_word(r, (uint32_t)v->paid);
        push_word(r, (uint32_t)(v->paid >> 32));
        for (uint32_t w = 0; w < v->wait_count; w++) push_word(r, v->waits[w]);
    }
    out->key_words = r->keys.count - out->key;
}

static void unpack(const run *r, const packed_state *p, work_state *s) {
    const uint32_t *key = r->keys.items + p->key, *end = key + p->key_words;
    s->cost = p->cost;
    s->rest = p->rest;
    s->frontier = p->frontier;
    s->ahead_count = *key++;
    memcpy(s->ahead, key, s->ahead_count * sizeof *key);
    key += s->ahead_count;
    s->live_count = 0;
    while (key < end) {
        live_value *v = &s->live[s->live_count++];
        v->value = key[0];
        v->slot = key[1] & 0xff;
        v->wait_count = key[1] >> 8;
        v->paid = key[2] | (uint64_t)key[3] << 32;
        memcpy(v->waits, key + 4, v->wait_count * sizeof *key);
        key += 4 + v->wait_count;
    }
}

static void bucket_rehash(run *r, bucket *b) {
    b->slot_count = b->slot_count ? b->slot_count * 4 : 64;
    b->slots = ent_arena_alloc(r->arena, b->slot_count * sizeof *b->slots);
    for (uint32_t i = 0; i < b->states.count; i++) {
        packed_state *p = &r->states.items[b->states.items[i]];
        uint32_t slot =
            (uint32_t)ent_hash_u64(r->keys.items + p->key, p->key_words * 4) & (b->slot_count - 1);
        while (b->slots[slot]) slot = (slot + 1) & (b->slot_count - 1);
        b->slots[slot] = b->states.items[i] + 1;
    }
}

static void store(run *r, const work_state *s, uint32_t parent, uint32_t offer) {
    packed_state fresh = {
        .cost = s->cost, .rest = s->rest, .parent = parent, .offer = offer, .frontier = s->frontier};
    pack_key(r, s, &fresh);
    bucket *b = &r->buckets[s->frontier];
    if (b->states.count * 2 >= b->slot_count) bucket_rehash(r, b);
    uint32_t slot =
        (uint32_t)ent_hash_u64(r->keys.items + fresh.key, fresh.key_words * 4) & (b->slot_count - 1);
    for (; b->slots[slot]; slot = (slot + 1) & (b->slot_count - 1)) {
        packed_state *known = &r->states.items[b->slots[slot] - 1];
        if (known->key_words != fresh.key_words ||
            memcmp(r->keys.items + known->key, r->keys.items + fresh.key, fresh.key_words * 4) != 0)
            continue;
        r->keys.count = fresh.key; /* the key is known: give its room back */
        if (fresh.cost >= known->cost) return;
        known->cost = fresh.cost;
        known->parent = parent;
        known->offer = offer;
        return;
    }
    b->slots[slot] = r->states.count + 1;
    ent_array_push(r->arena, &b->states, r->states.count);
    ent_array_push(r->arena, &r->states, fresh);
    r->search->states++;
}

/* ---- claiming an offer ---- */

static double convert(const run *r, uint32_t value, uint32_t from_slot, uint32_t to_slot) {
    const ent_partition_problem *p = r->index->problem;
    const uint32_t *labels = r->index->labels + r->index->label_offsets[value];
    if (from_slot == to_slot) return 0;
    return p->values[value].weight * p->convert_ns(p->context, value, labels[from_slot], labels[to_slot]);
}

static bool add_wait(uint32_t *waits, uint32_t *count, uint32_t room, uint32_t value) {
    uint32_t at = 0;
    while (at < *count && waits[at] < value) at++;
    if (at < *count && waits[at] == value) return true;
    if (*count == room) return false;
    memmove(waits + at + 1, waits + at, (*count - at) * sizeof *waits);
    waits[at] = value;
    (*count)++;
    return true;
}

static bool take_inputs(run *r, const ent_partition_offer *offer) {
    work_state *s = &r->to;
    r->wait_count = 0;
    for (uint32_t i = 0; i < offer->input_count; i++) {
        const ent_partition_port *port = &offer->inputs[i];
        live_value *v = find_live(s, port->value);
        if (!v) v = add_live(s, port->value);
        if (!v) return false;
        uint32_t slot = port->label == ENT_PARTITION_NONE
                            ? NO_SLOT
                            : ent_partition_label_slot(r->index, port->value, port->label);
        if (v->slot == NO_SLOT) {
            if (slot != NO_SLOT) v->paid |= UINT64_C(1) << slot;
            if (!add_wait(r->waits, &r->wait_count, MAX_WAITS, port->value)) return false;
            continue;
        }
        if (slot != NO_SLOT && !(v->paid >> slot & 1)) {
            s->cost += convert(r, port->value, v->slot, slot);
            v->paid |= UINT64_C(1) << slot;
        }
        for (uint32_t w = 0; w < v->wait_count; w++)
            if (!add_wait(r->waits, &r->wait_count, MAX_WAITS, v->waits[w])) return false;
    }
    return isfinite(s->cost);
}

/* What waited for `value` now waits for what this offer waits for. */
static bool resolve(run *r, uint32_t value) {
    for (uint32_t i = 0; i < r->to.live_count; i++) {
        live_value *v = &r->to.live[i];
        uint32_t at = 0;
        while (at < v->wait_count && v->waits[at] != value) at++;
        if (at == v->wait_count) continue;
        memmove(v->waits + at, v->waits + at + 1, (v->wait_count - at - 1) * sizeof *v->waits);
        v->wait_count--;
        for (uint32_t w = 0; w < r->wait_count; w++)
            if (!add_wait(v->waits, &v->wait_count, MAX_WAITS, r->waits[w])) return false;
    }
    return true;
}

static bool make_outputs(run *r, const ent_partition_offer *offer) {
    work_state *s = &r->to;
    const ent_partition_problem *p = r->index->problem;
    for (uint32_t i = 0; i < offer->output_count; i++) {
        const ent_partition_port *port = &offer->outputs[i];
        for (uint32_t w = 0; w < r->wait_count; w++)
            if (r->waits[w] == port->value) return false; /* it waits for what it makes: a cycle */
        live_value *v = find_live(s, port->value);
        if (!v) v = add_live(s, port->value);
        if (!v) return false;
        uint32_t slot = ent_partition_label_slot(r->index, port->value, port->label);
        if (p->values[port->value].final_label != ENT_PARTITION_NONE)
            v->paid |= UINT64_C(1) << ent_partition_label_slot(r->index, port->value,
                                                               p->values[port->value].final_label);
        for (uint64_t mask = v->paid; mask; mask &= mask - 1)
            s->cost += convert(r, port->value, slot, (uint32_t)__builtin_ctzll(mask));
        v->slot = slot;
        v->paid |= UINT64_C(1) << slot;
        v->wait_count = r->wait_count;
        memcpy(v->waits, r->waits, r->wait_count * sizeof *v->waits);
        if (!resolve(r, port->value)) return false;
    }
    return isfinite(s->cost);
}

static bool still_used(const run *r, const work_state *s, uint32_t value) {
    if (r->index->last_use[value] <= s->frontier) return false;
    for (uint32_t i = r->index->use_offsets[value]; i < r->index->use_offsets[value + 1]; i++)
        if (!is_claimed(s, r->index->uses[i])) return true;
    return false;
}

static bool claim_leaves(run *r, const ent_partition_offer *offer) {
    work_state *s = &r->to;
    for (uint32_t i = 0; i < offer->leaf_count; i++) {
        s->rest -= r->index->share[offer->leaves[i]];
        if (!add_wait(s->ahead, &s->ahead_count, MAX_AHEAD, offer->leaves[i])) return false;
    }
    uint32_t gone = 0;
    while (gone < s->ahead_count && s->ahead[gone] == s->frontier) {
        gone++;
        s->frontier++;
    }
    memmove(s->ahead, s->ahead + gone, (s->ahead_count - gone) * sizeof *s->ahead);
    s->ahead_count -= gone;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->live_count; i++)
        if (s->live[i].slot == NO_SLOT || still_used(r, s, s->live[i].value)) s->live[kept++] = s->live[i];
    s->live_count = kept;
    return true;
}

static void note_cut(run *r, double bound) {
    r->search->cut = true;
    if (bound < r->search->cut_bound_ns) r->search->cut_bound_ns = bound;
}

static void try_offer(run *r, uint32_t state, uint32_t o) {
    const ent_partition_offer *offer = &r->index->problem->offers[o];
    for (uint32_t i = 0; i < offer->leaf_count; i++)
        if (is_claimed(&r->from, offer->leaves[i])) return;
    r->to.cost = r->from.cost + offer->price_ns;
    r->to.rest = r->from.rest;
    r->to.frontier = r->from.frontier;
    r->to.ahead_count = r->from.ahead_count;
    r->to.live_count = r->from.live_count;
    memcpy(r->to.ahead, r->from.ahead, r->from.ahead_count * sizeof *r->from.ahead);
    memcpy(r->to.live, r->from.live, r->from.live_count * sizeof *r->from.live);
    if (!take_inputs(r, offer) || !make_outputs(r, offer) || !claim_leaves(r, offer)) return;
    if (r->to.cost + r->to.rest > r->search->upper_ns * (1 + 1e-9)) return;
    store(r, &r->to, state, o);
}

/* ---- the sweep ---- */

typedef struct ranked {
    double bound;
    uint32_t state;
} ranked;

static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->bound != y->bound) return x->bound < y->bound ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

/* Keeps the cheapest `width` states of a bucket. */
static void trim(run *r, bucket *b, uint32_t width) {
    if (b->states.count <= width) return;
    ranked *list = ent_arena_alloc(r->arena, b->states.count * sizeof *list);
    for (uint32_t i = 0; i < b->states.count; i++) {
        const packed_state *p = &r->states.items[b->states.items[i]];
        list[i] = (ranked){p->cost + p->rest, b->states.items[i]};
    }
    qsort(list, b->states.count, sizeof *list, compare_ranked);
    note_cut(r, list[width].bound);
    b->states.count = width;
    for (uint32_t i = 0; i < width; i++) b->states.items[i] = list[i].state;
}

#define LATE_WIDTH 16u /* states kept at each step once the time is over */

static bool is_late(const run *r) {
    return r->search->deadline_ns && ent_time_ns() > r->search->deadline_ns;
}

static void expand(run *r, uint32_t leaf) {
    bucket *b = &r->buckets[leaf];
    uint32_t width = r->search->width;
    if (is_late(r) && width > LATE_WIDTH) width = LATE_WIDTH;
    trim(r, b, width);
    for (uint32_t i = 0; i < b->states.count; i++) {
        uint32_t state = b->states.items[i];
        if (i % 64 == LATE_WIDTH && is_late(r)) { /* in the midst of a wide step: what is left is given up */
            for (; i < b->states.count; i++)
                note_cut(r,
                         r->states.items[b->states.items[i]].cost + r->states.items[b->states.items[i]].rest);
            break;
        }
        unpack(r, &r->states.items[state], &r->from);
        for (uint32_t k = r->index->first_offers[leaf]; k < r->index->first_offers[leaf + 1]; k++)
            try_offer(r, state, r->index->offers_by_leaf[k]);
    }
    if (b->states.count > 0 && leaf > r->stuck) r->stuck = leaf;
}

static void start(run *r) {
    const ent_partition_problem *p = r->index->problem;
    work_state *s = &r->to;
    memset(s, 0, offsetof(work_state, ahead));
    s->live_count = 0;
    s->rest = r->index->share_total;
    for (uint32_t v = 0; v < p->value_count; v++) {
        if (p->values[v].producer != ENT_PARTITION_NONE || p->values[v].initial_label == ENT_PARTITION_NONE)
            continue;
        uint32_t slot = ent_partition_label_slot(r->index, v, p->values[v].initial_label);
        live_value *live = add_live(s, v);
        if (!live) continue;
        live->slot = slot;
        live->paid = UINT64_C(1) << slot;
        if (p->values[v].final_label == ENT_PARTITION_NONE) continue;
        uint32_t last = ent_partition_label_slot(r->index, v, p->values[v].final_label);
        s->cost += convert(r, v, slot, last);
        live->paid |= UINT64_C(1) << last;
    }
    store(r, s, ENT_PARTITION_NONE, ENT_PARTITION_NONE);
}

/* The cheapest complete state: every needed value was made. */
static uint32_t best_end(const run *r, uint32_t leaf_count) {
    const bucket *b = &r->buckets[leaf_count];
    uint32_t best = ENT_PARTITION_NONE;
    for (uint32_t i = 0; i < b->states.count; i++) {
        const packed_state *p = &r->states.items[b->states.items[i]];
        work_state *s = ent_arena_alloc(r->arena, sizeof *s);
        unpack(r, p, s);
        bool whole = true;
        for (uint32_t k = 0; k < s->live_count; k++) whole &= s->live[k].slot != NO_SLOT;
        if (whole && (best == ENT_PARTITION_NONE || p->cost < r->states.items[best].cost))
            best = b->states.items[i];
    }
    return best;
}

ent_status ent_partition_search_run(ent_partition_search *search, const uint32_t **out_offers,
                                    uint32_t *out_count, double *out_cost, uint32_t *out_stuck) {
    uint32_t leaf_count = search->index->problem->leaf_count;
    run *r = ent_arena_alloc(search->arena, sizeof *r);
    r->search = search;
    r->index = search->index;
    r->arena = search->arena;
    r->buckets = ent_arena_alloc(search->arena, ((size_t)leaf_count + 1) * sizeof *r->buckets);
    start(r);
    for (uint32_t leaf = 0; leaf < leaf_count; leaf++) expand(r, leaf);
    uint32_t state = best_end(r, leaf_count), count = 0;
    *out_stuck = r->stuck;
    *out_count = 0;
    *out_cost = INFINITY;
    if (state == ENT_PARTITION_NONE) return NULL;
    *out_cost = r->states.items[state].cost;
    uint32_t *offers = ent_arena_alloc(search->arena, ((size_t)leaf_count + 1) * sizeof *offers);
    for (; r->states.items[state].parent != ENT_PARTITION_NONE; state = r->states.items[state].parent)
        offers[count++] = r->states.items[state].offer;
    for (uint32_t i = 0; i < count / 2; i++) {
        uint32_t swap = offers[i];
        offers[i] = offers[count - 1 - i];
        offers[count - 1 - i] = swap;
    }
    *out_offers = offers;
    *out_count = count;
    return NULL;
}
