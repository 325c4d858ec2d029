/* Lower bound: a number for each leaf such that the numbers of no offer's leaves add up to more than its
 * price.
 *
 * Any cover takes every leaf once, so it costs at least their sum: these are the dual variables of the
 * set-partition problem's linear relaxation, and for a state the sum over unclaimed leaves bounds what is
 * still to pay (conversions are left at 0). Price divided by leaf count would do, but says next to nothing
 * where one heavy leaf is offered together with many light ones. Dual ascent instead: leaf by leaf, the
 * number is raised until some offer is tight; heavy leaves first, so that they get their price and the light
 * ones what fusing them adds. */
#include <math.h>
#include <stdlib.h>

#include "core/partition/internal.h"

typedef struct ranked_leaf {
    double weight;
    uint32_t leaf;
} ranked_leaf;

static int heavier_first(const void *a, const void *b) {
    const ranked_leaf *x = a, *y = b;
    if (x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
    return (x->leaf > y->leaf) - (x->leaf < y->leaf);
}

typedef struct ascent {
    const ent_partition_index *index;
    double *share, *slack; /* per leaf; per offer: price minus its leaves' numbers */
} ascent;

static double least_slack(const ascent *a, uint32_t leaf) {
    double least = INFINITY;
    for (uint32_t k = a->index->first_offers[leaf]; k < a->index->first_offers[leaf + 1]; k++)
        least = fmin(least, a->slack[a->index->offers_by_leaf[k]]);
    return least;
}

static void change(ascent *a, uint32_t leaf, double by) {
    a->share[leaf] += by;
    for (uint32_t k = a->index->first_offers[leaf]; k < a->index->first_offers[leaf + 1]; k++)
        a->slack[a->index->offers_by_leaf[k]] -= by;
}

static void raise_all(ascent *a, const ranked_leaf *order, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint32_t leaf = order[i].leaf;
        double least = least_slack(a, leaf);
        if (isfinite(least) && least > 0) change(a, leaf, least);
    }
}

void ent_partition_bound_make(ent_arena *arena, ent_partition_index *index) {
    const ent_partition_problem *p = index->problem;
    ascent a = {index, ent_arena_alloc(arena, ((size_t)p->leaf_count + 1) * sizeof(double)),
                ent_arena_alloc(arena, ((size_t)p->offer_count + 1) * sizeof(double))};
    ranked_leaf *order = ent_arena_alloc(arena, ((size_t)p->leaf_count + 1) * sizeof *order);
    for (uint32_t o = 0; o < p->offer_count; o++) a.slack[o] = p->offers[o].price_ns;
    for (uint32_t i = 0; i < p->leaf_count; i++) order[i] = (ranked_leaf){least_slack(&a, i), i};
    qsort(order, p->leaf_count, sizeof *order, heavier_first);
    raise_all(&a, order, p->leaf_count);
    for (uint32_t i = 0; i < p->leaf_count; i++) index->share_total += a.share[i];
    index->share = a.share;
}
