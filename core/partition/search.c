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
 * depend on the order. States that a cheaper one can stand in for are dropped (state.c), and so are those
 * that cannot end below the best price known, by a lower bound that counts conversions too (bound.c). Why not
 * downsets of the graph: they explode on parallel branches; leaf order with few live values does not. */
#include "core/partition/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_SLOT ENT_PARTITION_NO_SLOT
#define MAX_WAITS ENT_PARTITION_MAX_WAITS
#define TOLERANCE 1e-9 /* of a price: sums of the same prices in another order differ by less */

typedef struct packed_state {
    double cost, share, bound; /* bound: of the whole, what is paid included */
    uint32_t parent, offer;
    uint32_t key, key_words;
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
    ent_partition_words keys;
    bucket *buckets;
    ent_partition_state from, to;
    uint32_t waits[MAX_WAITS * 4], wait_count; /* of the offer being claimed */
    bool full;                                 /* a list was full: what was tried is given up */
    uint32_t stuck;
} run;

bool ent_partition_is_claimed(const ent_partition_state *s, uint32_t leaf) {
    if (leaf < s->frontier) return true;
    for (uint32_t i = 0; i < s->ahead_count; i++)
        if (s->ahead[i] == leaf) return true;
    return false;
}

static ent_partition_live *find_live(ent_partition_state *s, uint32_t value) {
    uint32_t low = 0, high = s->live_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->live[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->live_count && s->live[low].value == value ? &s->live[low] : NULL;
}

static ent_partition_live *add_live(ent_partition_state *s, uint32_t value) {
    uint32_t at = s->live_count++;
    for (; at > 0 && s->live[at - 1].value > value; at--) s->live[at] = s->live[at - 1];
    s->live[at] = (ent_partition_live){.value = value, .slot = NO_SLOT};
    return &s->live[at];
}

/* ---- keeping states ---- */

static ent_partition_key key_of(const run *r, const packed_state *p) {
    return (ent_partition_key){r->keys.items + p->key, p->key_words};
}

static void unpack(const run *r, uint32_t state, ent_partition_state *out, uint32_t frontier) {
    const packed_state *p = &r->states.items[state];
    ent_partition_state_unpack(key_of(r, p), out);
    out->cost = p->cost;
    out->share = p->share;
    out->frontier = frontier;
}

static uint32_t hash_slot(const run *r, const bucket *b, const packed_state *p) {
    return (uint32_t)ent_hash_u64(r->keys.items + p->key, p->key_words * 4) & (b->slot_count - 1);
}

static void bucket_rehash(run *r, bucket *b) {
    b->slot_count = b->slot_count ? b->slot_count * 4 : 64;
    b->slots = ent_arena_alloc(r->arena, b->slot_count * sizeof *b->slots);
    for (uint32_t i = 0; i < b->states.count; i++) {
        uint32_t slot = hash_slot(r, b, &r->states.items[b->states.items[i]]);
        while (b->slots[slot]) slot = (slot + 1) & (b->slot_count - 1);
        b->slots[slot] = b->states.items[i] + 1;
    }
}

static void store(run *r, const ent_partition_state *s, uint32_t parent, uint32_t offer) {
    double rest = r->search->unbounded ? 0 : ent_partition_rest(r->index, s);
    packed_state fresh = {s->cost, s->share, s->cost + rest, parent, offer, r->keys.count, 0};
    if (!(fresh.bound < r->search->upper_ns * (1 - TOLERANCE))) return;
    ent_partition_state_pack(r->arena, s, &r->keys);
    fresh.key_words = r->keys.count - fresh.key;
    bucket *b = &r->buckets[s->frontier];
    if (b->states.count * 2 >= b->slot_count) bucket_rehash(r, b);
    uint32_t slot = hash_slot(r, b, &fresh);
    for (; b->slots[slot]; slot = (slot + 1) & (b->slot_count - 1)) {
        packed_state *known = &r->states.items[b->slots[slot] - 1];
        if (known->key_words != fresh.key_words ||
            memcmp(r->keys.items + known->key, r->keys.items + fresh.key, fresh.key_words * 4) != 0)
            continue;
        r->keys.count = fresh.key; /* the key is known: give its room back */
        fresh.key = known->key;
        if (fresh.cost < known->cost) *known = fresh;
        return;
    }
    b->slots[slot] = r->states.count + 1;
    ent_array_push(r->arena, &b->states, r->states.count);
    ent_array_push(r->arena, &r->states, fresh);
    r->search->states++;
}

/* ---- claiming an offer ---- */

/* Adds to an ascending list. */
static bool add_to(run *r, uint32_t *waits, uint32_t *count, uint32_t room, uint32_t value) {
    uint32_t at = 0;
    while (at < *count && waits[at] < value) at++;
    if (at < *count && waits[at] == value) return true;
    if (*count == room) {
        r->full = true;
        return false;
    }
    memmove(waits + at + 1, waits + at, (*count - at) * sizeof *waits);
    waits[at] = value;
    (*count)++;
    return true;
}

static bool take_inputs(run *r, const ent_partition_offer *offer) {
    ent_partition_state *s = &r->to;
    r->wait_count = 0;
    for (uint32_t i = 0; i < offer->input_count; i++) {
        const ent_partition_port *port = &offer->inputs[i];
        ent_partition_live *v = find_live(s, port->value);
        if (!v) v = add_live(s, port->value);
        uint32_t slot = port->label == ENT_PARTITION_NONE
                            ? NO_SLOT
                            : ent_partition_label_slot(r->index, port->value, port->label);
        if (v->slot == NO_SLOT) {
            if (slot != NO_SLOT) v->paid |= UINT64_C(1) << slot;
            if (!add_to(r, r->waits, &r->wait_count, MAX_WAITS, port->value)) return false;
            continue;
        }
        if (slot != NO_SLOT && !(v->paid >> slot & 1)) {
            s->cost += ent_partition_convert_price(r->index, port->value, v->slot, slot);
            v->paid |= UINT64_C(1) << slot;
        }
        for (uint32_t w = 0; w < v->wait_count; w++)
            if (!add_to(r, r->waits, &r->wait_count, MAX_WAITS, v->waits[w])) return false;
    }
    return isfinite(s->cost);
}

/* What waited for `value` now waits for what this offer waits for. */
static bool resolve(run *r, uint32_t value) {
    for (uint32_t i = 0; i < r->to.live_count; i++) {
        ent_partition_live *v = &r->to.live[i];
        uint32_t at = 0;
        while (at < v->wait_count && v->waits[at] != value) at++;
        if (at == v->wait_count) continue;
        memmove(v->waits + at, v->waits + at + 1, (v->wait_count - at - 1) * sizeof *v->waits);
        v->wait_count--;
        for (uint32_t w = 0; w < r->wait_count; w++)
            if (!add_to(r, v->waits, &v->wait_count, MAX_WAITS, r->waits[w])) return false;
    }
    return true;
}

static bool make_outputs(run *r, const ent_partition_offer *offer) {
    ent_partition_state *s = &r->to;
    const ent_partition_problem *p = r->index->problem;
    for (uint32_t i = 0; i < offer->output_count; i++) {
        const ent_partition_port *port = &offer->outputs[i];
        for (uint32_t w = 0; w < r->wait_count; w++)
            if (r->waits[w] == port->value) return false; /* it waits for what it makes: a cycle */
        ent_partition_live *v = find_live(s, port->value);
        if (!v) v = add_live(s, port->value);
        uint32_t slot = ent_partition_label_slot(r->index, port->value, port->label);
        if (p->values[port->value].final_label != ENT_PARTITION_NONE)
            v->paid |= UINT64_C(1) << ent_partition_label_slot(r->index, port->value,
                                                               p->values[port->value].final_label);
        for (uint64_t mask = v->paid; mask; mask &= mask - 1)
            s->cost +=
                ent_partition_convert_price(r->index, port->value, slot, (uint32_t)__builtin_ctzll(mask));
        v->slot = slot;
        v->paid |= UINT64_C(1) << slot;
        v->wait_count = r->wait_count;
        memcpy(v->waits, r->waits, r->wait_count * sizeof *v->waits);
        if (!resolve(r, port->value)) return false;
    }
    return isfinite(s->cost);
}

/* Forgets values that nobody takes any more, and paid forms that nobody wants. */
static void forget(const ent_partition_index *x, ent_partition_state *s) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->live_count; i++) {
        ent_partition_live *v = &s->live[i];
        if (v->slot != NO_SLOT) {
            if (x->last_claim[v->value] <= s->frontier) continue;
            for (uint64_t paid = v->paid; paid; paid &= paid - 1)
                if (x->last_wants[x->label_offsets[v->value] + (uint32_t)__builtin_ctzll(paid)] <=
                    s->frontier)
                    v->paid &= ~(paid & -paid);
        }
        if (kept != i) s->live[kept] = *v;
        kept++;
    }
    s->live_count = kept;
}

static bool claim_leaves(run *r, const ent_partition_offer *offer) {
    ent_partition_state *s = &r->to;
    for (uint32_t i = 0; i < offer->leaf_count; i++) {
        s->share -= r->index->share[offer->leaves[i]];
        if (!add_to(r, s->ahead, &s->ahead_count, ENT_PARTITION_MAX_AHEAD, offer->leaves[i])) return false;
    }
    uint32_t gone = 0;
    while (gone < s->ahead_count && s->ahead[gone] == s->frontier) {
        gone++;
        s->frontier++;
    }
    memmove(s->ahead, s->ahead + gone, (s->ahead_count - gone) * sizeof *s->ahead);
    s->ahead_count -= gone;
    forget(r->index, s);
    return true;
}

static void note_cut(run *r, double bound) {
    r->search->cut = true;
    if (bound < r->search->cut_bound_ns) r->search->cut_bound_ns = bound;
}

static void try_offer(run *r, uint32_t state, uint32_t o) {
    const ent_partition_offer *offer = &r->index->problem->offers[o];
    r->search->work++;
    for (uint32_t i = 0; i < offer->leaf_count; i++)
        if (ent_partition_is_claimed(&r->from, offer->leaves[i])) return;
    r->to.cost = r->from.cost + offer->price_ns;
    r->to.share = r->from.share;
    r->to.frontier = r->from.frontier;
    r->to.ahead_count = r->from.ahead_count;
    r->to.live_count = r->from.live_count;
    memcpy(r->to.ahead, r->from.ahead, r->from.ahead_count * sizeof *r->from.ahead);
    memcpy(r->to.live, r->from.live, r->from.live_count * sizeof *r->from.live);
    r->full = false;
    if (take_inputs(r, offer) && make_outputs(r, offer) && claim_leaves(r, offer))
        store(r, &r->to, state, o);
    else if (r->full)
        note_cut(r, r->states.items[state].bound);
}

/* ---- the sweep ---- */

#define MAX_RIVALS 64u /* of a state: cheaper ones that are tried for dominance */

typedef struct ranked {
    uint64_t group;
    double price;
    uint32_t state;
} ranked;

static int compare_ranked(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (x->price != y->price) return x->price < y->price ? -1 : 1;
    return (x->state > y->state) - (x->state < y->state);
}

/* Drops states that a cheaper one dominates. */
static void drop_dominated(run *r, bucket *b, uint32_t leaf, ranked *list) {
    for (uint32_t i = 0; i < b->states.count; i++) {
        const packed_state *p = &r->states.items[b->states.items[i]];
        list[i] = (ranked){ent_partition_dominance_hash(key_of(r, p)), p->cost, b->states.items[i]};
    }
    qsort(list, b->states.count, sizeof *list, compare_ranked);
    uint32_t kept = 0, first = 0;
    for (uint32_t i = 0; i < b->states.count; i++) {
        const packed_state *p = &r->states.items[list[i].state];
        if (i > 0 && list[i].group != list[i - 1].group) first = kept;
        bool dominated = false;
        for (uint32_t k = first; k < kept && k < first + MAX_RIVALS && !dominated; k++) {
            const packed_state *rival = &r->states.items[b->states.items[k]];
            dominated = ent_partition_dominates(r->index, leaf, key_of(r, rival), key_of(r, p),
                                                p->cost - rival->cost);
        }
        if (!dominated) b->states.items[kept++] = list[i].state;
    }
    b->states.count = kept;
}

/* Keeps the most promising `width` states of a bucket. */
static void trim(run *r, bucket *b, uint32_t width, ranked *list) {
    if (b->states.count <= width) return;
    for (uint32_t i = 0; i < b->states.count; i++)
        list[i] = (ranked){0, r->states.items[b->states.items[i]].bound, b->states.items[i]};
    qsort(list, b->states.count, sizeof *list, compare_ranked);
    note_cut(r, list[width].price);
    b->states.count = width;
    for (uint32_t i = 0; i < width; i++) b->states.items[i] = list[i].state;
}

#define LATE_WIDTH 4u /* states kept at each step once the work is used up */

static bool is_late(const run *r) {
    return r->search->work >= r->search->max_work;
}

static void expand(run *r, uint32_t leaf) {
    bucket *b = &r->buckets[leaf];
    if (b->states.count == 0) return;
    r->stuck = leaf;
    uint32_t width = r->search->width;
    if (is_late(r) && width > LATE_WIDTH) width = LATE_WIDTH;
    ranked *list = ent_arena_alloc(r->arena, b->states.count * sizeof *list);
    drop_dominated(r, b, leaf, list);
    trim(r, b, width, list);
    for (uint32_t i = 0; i < b->states.count; i++) {
        uint32_t state = b->states.items[i];
        if (i >= LATE_WIDTH && is_late(r)) { /* in the midst of a wide step: what is left is given up */
            for (; i < b->states.count; i++) note_cut(r, r->states.items[b->states.items[i]].bound);
            break;
        }
        unpack(r, state, &r->from, leaf);
        for (uint32_t k = r->index->first_offers[leaf]; k < r->index->first_offers[leaf + 1]; k++)
            try_offer(r, state, r->index->offers_by_leaf[k]);
    }
}

static void start(run *r) {
    const ent_partition_problem *p = r->index->problem;
    ent_partition_state *s = &r->to;
    memset(s, 0, offsetof(ent_partition_state, ahead));
    s->live_count = 0;
    s->share = r->index->share_total;
    for (uint32_t v = 0; v < p->value_count; v++) {
        if (p->values[v].producer != ENT_PARTITION_NONE || p->values[v].initial_label == ENT_PARTITION_NONE)
            continue;
        uint32_t slot = ent_partition_label_slot(r->index, v, p->values[v].initial_label);
        ent_partition_live *live = add_live(s, v);
        live->slot = slot;
        live->paid = UINT64_C(1) << slot;
        if (p->values[v].final_label == ENT_PARTITION_NONE) continue;
        uint32_t last = ent_partition_label_slot(r->index, v, p->values[v].final_label);
        s->cost += ent_partition_convert_price(r->index, v, slot, last);
        live->paid |= UINT64_C(1) << last;
    }
    store(r, s, ENT_PARTITION_NONE, ENT_PARTITION_NONE);
}

/* The cheapest complete state: every needed value was made. */
static uint32_t best_end(run *r, uint32_t leaf_count) {
    const bucket *b = &r->buckets[leaf_count];
    uint32_t best = ENT_PARTITION_NONE;
    for (uint32_t i = 0; i < b->states.count; i++) {
        const packed_state *p = &r->states.items[b->states.items[i]];
        unpack(r, b->states.items[i], &r->from, leaf_count);
        bool whole = true;
        for (uint32_t k = 0; k < r->from.live_count; k++) whole &= r->from.live[k].slot != NO_SLOT;
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
    size_t values = (size_t)search->index->problem->value_count + 1;
    r->from.live = ent_arena_alloc(search->arena, values * sizeof *r->from.live);
    r->to.live = ent_arena_alloc(search->arena, values * sizeof *r->to.live);
    r->buckets = ent_arena_alloc(search->arena, ((size_t)leaf_count + 1) * sizeof *r->buckets);
    start(r);
    for (uint32_t leaf = 0; leaf < leaf_count; leaf++) {
        ENT_TRY(ent_arena_check(search->arena, "selection"));
        expand(r, leaf);
    }
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
