/* Shared inside core/partition only. */
#ifndef ENT_PARTITION_INTERNAL_H
#define ENT_PARTITION_INTERNAL_H

#include "core/partition/partition.h"

/* What the search needs of a problem, indexed. */
typedef struct ent_partition_index {
    const ent_partition_problem *problem;
    const uint32_t *first_offers;   /* per leaf: offsets into offers_by_leaf; leaf_count + 1 entries */
    const uint32_t *offers_by_leaf; /* offers containing the leaf, ascending */
    const double *share;            /* per leaf: its part of a lower bound of any cover, see bound.c */
    const uint32_t
        *last_use; /* per value: highest leaf that any offer consumes it for; 0 with no_use set: none */
    const uint32_t *use_offsets; /* per value: consuming leaves (over all offers), for liveness */
    const uint32_t *uses;
    const uint32_t *label_offsets; /* per value: its labels, so that a set is a 64-bit mask */
    const uint32_t *labels;
    double share_total;
} ent_partition_index;

ent_status ent_partition_index_make(ent_arena *arena, const ent_partition_problem *problem,
                                    ent_partition_index *out);
/* Fills share and share_total (bound.c). */
void ent_partition_bound_make(ent_arena *arena, ent_partition_index *index);
/* Position of a label among the value's own; NONE never happens for labels of ports. */
uint32_t ent_partition_label_slot(const ent_partition_index *index, uint32_t value, uint32_t label);

/* A search with at most `width` states kept at each step. */
typedef struct ent_partition_search {
    const ent_partition_index *index;
    ent_arena *arena;
    uint32_t width;
    double upper_ns;      /* states that cannot beat it are dropped; INFINITY: none known */
    uint64_t deadline_ns; /* monotonic; 0: none */
    bool cut;             /* a state was dropped for width or time: the result is unproven */
    double cut_bound_ns;  /* least cost + bound among the dropped */
    uint64_t states;
} ent_partition_search;

/* Chosen offers in the order in which they were claimed; count 0 and *out_cost INFINITY when nothing covers
 * the leaves. *out_stuck: the furthest leaf at which every path ended. */
ent_status ent_partition_search_run(ent_partition_search *search, const uint32_t **out_offers,
                                    uint32_t *out_count, double *out_cost, uint32_t *out_stuck);

#endif
