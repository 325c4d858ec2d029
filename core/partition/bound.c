/* Lower bound: the dual of selection's linear relaxation, by block coordinate ascent.
 *
 * Any cover takes every leaf once, and a leaf that reads a value takes it in the form its offer wants, made
 * from the form in which the value's offer left it. Relaxed, that is a linear program; in its dual every leaf
 * has a share, every reader a price for each form it takes (`take`) and for each form the value may be made
 * in
 * (`make`), such that
 *   - an offer's price, less its leaves' shares and its readers' take prices, plus the make prices of the
 *     readers it serves, is not negative: its slack;
 *   - make <= take + a part of the conversion's price, the parts of all readers together being no more than
 *     the price, since a conversion is paid once.
 * Then no cover costs less than the shares and the make prices of the model's inputs together, and for a
 * state of the search the same sum over what is unclaimed bounds what is still to pay.
 *
 * A sweep from the last leaf to the first moves slack from takers to makers (for a chain that is the exact
 * cost to the end), one in the other direction turns it into shares and moves the rest on; each raises the
 * bound or leaves it. The last sweep is backward, so that a state sees what its forms will cost. Conversion
 * prices are shared out as in Erlenkotter's dual ascent for facility location (1978), the sweeps are those of
 * TRW-S (Kolmogorov 2006). A round takes O(sum over readers of offers + forms^2). */
#include <math.h>

#include "core/partition/internal.h"

#define MAX_ROUNDS 10u
#define LEAST_GAIN 1e-5 /* of the bound: a round that brings less is the last */

typedef struct groups {
    const uint32_t *offsets, *items;
} groups;

typedef struct ascent {
    const ent_partition_index *index;
    double *slack; /* per offer; INFINITY: no solution contains it */
    double *spent; /* per conversion: what its readers use of its price together */
    groups of_leaf, of_maker;
} ascent;

static double used_part(const ent_partition_reader *r, uint32_t from, uint32_t to) {
    double part = r->make[from] - r->take[to];
    return isfinite(part) && part > 0 ? part : 0;
}

/* Adds (1) or removes (-1) what a reader uses of the conversions' prices. */
static void count_spent(ascent *a, const ent_partition_reader *r, double sign) {
    uint32_t slots = ent_partition_slot_count(a->index, r->value);
    double *spent = a->spent + a->index->convert_offsets[r->value];
    for (uint32_t from = 0; from < slots; from++)
        for (uint32_t to = 0; to < slots; to++)
            if (from != to) spent[from * slots + to] += sign * used_part(r, from, to);
}

/* What is left of a conversion's price for a reader whose own use is not counted at the moment. */
static double spare(const ascent *a, uint32_t value, uint32_t from, uint32_t to) {
    uint32_t slots = ent_partition_slot_count(a->index, value);
    if (to == slots || from == to) return 0;
    double left = ent_partition_convert_price(a->index, value, from, to) -
                  a->spent[a->index->convert_offsets[value] + from * slots + to];
    return left > 0 ? left : 0;
}

static void least_slacks(const ascent *a, const ent_partition_link *links, uint32_t count, uint32_t slots,
                         double *out) {
    for (uint32_t s = 0; s <= slots; s++) out[s] = INFINITY;
    for (uint32_t i = 0; i < count; i++)
        out[links[i].slot] = fmin(out[links[i].slot], a->slack[links[i].offer]);
}

static void change_slacks(ascent *a, const ent_partition_link *links, uint32_t count, const double *by) {
    for (uint32_t i = 0; i < count; i++)
        if (by[links[i].slot] != 0 && isfinite(a->slack[links[i].offer]))
            a->slack[links[i].offer] += by[links[i].slot];
}

/* Make prices from take prices: the cheapest way on. */
static void set_make(ascent *a, ent_partition_reader *r) {
    uint32_t slots = ent_partition_slot_count(a->index, r->value);
    double by[ENT_PARTITION_MAX_FORMS + 1] = {0};
    for (uint32_t from = 0; from < slots; from++) {
        double least = INFINITY;
        for (uint32_t to = 0; to <= slots; to++)
            if (isfinite(r->take[to])) least = fmin(least, spare(a, r->value, from, to) + r->take[to]);
        by[from] = isfinite(r->make[from]) ? least - r->make[from] : 0;
        r->make[from] = least;
    }
    change_slacks(a, r->makers, r->maker_count, by);
}

/* Lowers take prices as far as make prices of at least `floors` allow. */
static void lower_take(ascent *a, ent_partition_reader *r, const double *floors) {
    uint32_t slots = ent_partition_slot_count(a->index, r->value);
    double by[ENT_PARTITION_MAX_FORMS + 1] = {0};
    for (uint32_t to = 0; to <= slots; to++) {
        double least = -INFINITY;
        for (uint32_t from = 0; from < slots; from++)
            if (isfinite(floors[from])) least = fmax(least, floors[from] - spare(a, r->value, from, to));
        if (!isfinite(r->take[to]) || !isfinite(least) || least >= r->take[to]) continue;
        by[to] = r->take[to] - least;
        r->take[to] = least;
    }
    change_slacks(a, r->takers, r->taker_count, by);
}

/* Moves a part of the takers' slack to the makers. */
static void push_back(ascent *a, ent_partition_reader *r, double part) {
    uint32_t slots = ent_partition_slot_count(a->index, r->value);
    double least[ENT_PARTITION_MAX_FORMS + 1], by[ENT_PARTITION_MAX_FORMS + 1] = {0};
    count_spent(a, r, -1);
    least_slacks(a, r->takers, r->taker_count, slots, least);
    for (uint32_t s = 0; s <= slots; s++) {
        by[s] = isfinite(least[s]) ? -least[s] * part : 0;
        r->take[s] = isfinite(least[s]) ? r->take[s] - by[s] : INFINITY;
    }
    change_slacks(a, r->takers, r->taker_count, by);
    set_make(a, r);
    lower_take(a, r, r->make);
    count_spent(a, r, 1);
}

/* Moves a part of the makers' slack to the takers. */
static void push_on(ascent *a, ent_partition_reader *r, double part) {
    if (r->leaf == ENT_PARTITION_NONE || r->maker_count == 0) return;
    uint32_t slots = ent_partition_slot_count(a->index, r->value);
    double floors[ENT_PARTITION_MAX_FORMS + 1];
    count_spent(a, r, -1);
    least_slacks(a, r->makers, r->maker_count, slots, floors);
    for (uint32_t s = 0; s < slots; s++)
        floors[s] = isfinite(r->make[s]) ? r->make[s] - floors[s] * part : -INFINITY;
    lower_take(a, r, floors);
    set_make(a, r);
    count_spent(a, r, 1);
}

static void raise_share(ascent *a, uint32_t leaf) {
    const ent_partition_index *x = a->index;
    double least = INFINITY;
    for (uint32_t k = x->first_offers[leaf]; k < x->first_offers[leaf + 1]; k++)
        least = fmin(least, a->slack[x->offers_by_leaf[k]]);
    if (!isfinite(least)) return;
    x->share[leaf] += least;
    for (uint32_t k = x->first_offers[leaf]; k < x->first_offers[leaf + 1]; k++)
        a->slack[x->offers_by_leaf[k]] -= least;
}

static void sweep_back(ascent *a) {
    for (uint32_t leaf = a->index->problem->leaf_count; leaf-- > 0;) {
        uint32_t end = a->of_leaf.offsets[leaf + 1];
        for (uint32_t i = a->of_leaf.offsets[leaf]; i < end; i++)
            push_back(a, &a->index->readers[a->of_leaf.items[i]], 1.0 / (end - i));
    }
}

static void sweep_on(ascent *a) {
    for (uint32_t leaf = 0; leaf < a->index->problem->leaf_count; leaf++) {
        raise_share(a, leaf);
        uint32_t end = a->of_maker.offsets[leaf + 1];
        for (uint32_t i = a->of_maker.offsets[leaf]; i < end; i++)
            push_on(a, &a->index->readers[a->of_maker.items[i]], 1.0 / (end - i));
    }
}

/* Bound of any solution: all shares, and what the inputs' forms cost their readers. */
static double total(const ent_partition_index *x) {
    const ent_partition_problem *p = x->problem;
    double sum = 0;
    for (uint32_t leaf = 0; leaf < p->leaf_count; leaf++) sum += x->share[leaf];
    for (uint32_t v = 0; v < p->value_count; v++) {
        if (p->values[v].producer != ENT_PARTITION_NONE || p->values[v].initial_label == ENT_PARTITION_NONE)
            continue;
        uint32_t slot = ent_partition_label_slot(x, v, p->values[v].initial_label);
        for (uint32_t r = x->first_readers[v]; r < x->first_readers[v + 1]; r++)
            sum += x->readers[r].make[slot];
    }
    return sum;
}

/* Readers by their leaf, or by the leaf that makes their value. */
static groups group(ent_arena *arena, const ent_partition_index *x, bool by_maker) {
    const ent_partition_problem *p = x->problem;
    uint32_t count = x->first_readers[p->value_count];
    uint32_t *offsets = ent_arena_alloc(arena, ((size_t)p->leaf_count + 2) * sizeof *offsets);
    uint32_t *items = ent_arena_alloc(arena, ((size_t)count + 1) * sizeof *items);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t r = 0; r < count; r++) {
            uint32_t leaf = by_maker ? p->values[x->readers[r].value].producer : x->readers[r].leaf;
            if (leaf == ENT_PARTITION_NONE) continue;
            if (pass == 0)
                offsets[leaf + 2]++;
            else
                items[offsets[leaf + 1]++] = r;
        }
        if (pass == 0)
            for (uint32_t leaf = 0; leaf < p->leaf_count; leaf++) offsets[leaf + 1] += offsets[leaf];
    }
    return (groups){offsets, items};
}

/* The final form of an output is its only price: what is left of the conversion comes first. */
static void start_finals(ascent *a) {
    const ent_partition_index *x = a->index;
    for (uint32_t i = 0; i < x->first_readers[x->problem->value_count]; i++) {
        ent_partition_reader *r = &x->readers[i];
        if (r->leaf != ENT_PARTITION_NONE) continue;
        for (uint32_t s = 0; s <= ent_partition_slot_count(x, r->value); s++) r->take[s] = INFINITY;
        r->take[ent_partition_label_slot(x, r->value, x->problem->values[r->value].final_label)] = 0;
        set_make(a, r);
        count_spent(a, r, 1);
    }
}

void ent_partition_bound_make(ent_arena *arena, ent_partition_index *index) {
    const ent_partition_problem *p = index->problem;
    uint32_t last = p->value_count > 0 ? p->value_count - 1 : 0;
    size_t converts = index->convert_offsets[last];
    if (p->value_count > 0)
        converts += (size_t)ent_partition_slot_count(index, last) * ent_partition_slot_count(index, last);
    ascent a = {index, ent_arena_alloc(arena, ((size_t)p->offer_count + 1) * sizeof(double)),
                ent_arena_alloc(arena, (converts + 1) * sizeof(double)), group(arena, index, false),
                group(arena, index, true)};
    index->share = ent_arena_alloc(arena, ((size_t)p->leaf_count + 1) * sizeof(double));
    for (uint32_t o = 0; o < p->offer_count; o++) a.slack[o] = p->offers[o].price_ns;
    start_finals(&a);
    double before = -INFINITY, now = 0;
    for (uint32_t round = 0; round < MAX_ROUNDS && now - before > LEAST_GAIN * now; round++) {
        before = round ? now : -INFINITY;
        sweep_back(&a);
        sweep_on(&a);
        now = total(index);
    }
    sweep_back(&a);
    for (uint32_t leaf = 0; leaf < p->leaf_count; leaf++) {
        raise_share(&a, leaf);
        index->share_total += index->share[leaf];
    }
    index->bound_ns = total(index);
}

/* A made value costs its unclaimed readers what its form says, or less where a form is paid already. A value
 * that was taken before it is made counts against the bound: its maker's slack expects the take price. */
static double rest_of_value(const ent_partition_index *x, const ent_partition_state *s,
                            const ent_partition_live *v) {
    double sum = 0;
    uint32_t slots = ent_partition_slot_count(x, v->value);
    bool made = v->slot != ENT_PARTITION_NO_SLOT;
    for (uint32_t i = x->first_readers[v->value]; i < x->first_readers[v->value + 1]; i++) {
        const ent_partition_reader *r = &x->readers[i];
        if (r->leaf == ENT_PARTITION_NONE || ent_partition_is_claimed(s, r->leaf) == made) continue;
        double price = made ? r->make[v->slot] : r->take[slots];
        for (uint64_t paid = v->paid; paid; paid &= paid - 1) {
            double take = r->take[__builtin_ctzll(paid)];
            price = made ? fmin(price, take) : isfinite(price) ? fmax(price, take) : take;
        }
        if (made)
            sum += price;
        else if (isfinite(price))
            sum -= price;
    }
    return sum;
}

double ent_partition_rest(const ent_partition_index *index, const ent_partition_state *s) {
    double sum = s->share;
    for (uint32_t i = 0; i < s->live_count; i++) sum += rest_of_value(index, s, &s->live[i]);
    return sum;
}
