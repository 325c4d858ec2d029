/* Selection: the cheapest set of non-overlapping offers that covers every leaf, with layout changes and
 * transfers priced, in an order in which every offer's inputs are ready (so that the contracted graph is
 * acyclic). Knows no graph: leaves, values, labels.
 *
 * A label is a place and a form of a value: (device memory, layout), interned by the caller. */
#ifndef ENT_PARTITION_H
#define ENT_PARTITION_H

#include "core/base/base.h"

#define ENT_PARTITION_NONE 0xffffffffu

/* Offers that a slow machine tries in a millisecond, and the work of a selection that nothing limits. */
#define ENT_PARTITION_WORK_PER_MS UINT64_C(1000)
#define ENT_PARTITION_DEFAULT_WORK (3000 * ENT_PARTITION_WORK_PER_MS)

typedef struct ent_partition_port {
    uint32_t value;
    uint32_t label; /* NONE: takes the value as it is, in whatever label it has (views use `same_as`) */
} ent_partition_port;

typedef struct ent_partition_offer {
    const uint32_t *leaves; /* ascending */
    uint32_t leaf_count;
    const ent_partition_port
        *inputs; /* values from outside (model inputs included; constants are not values here) */
    uint32_t input_count;
    const ent_partition_port *outputs; /* values used outside */
    uint32_t output_count;
    double price_ns; /* already weighted (branch 0.5, loop trip count) */
} ent_partition_offer;

typedef struct ent_partition_value {
    uint32_t producer;      /* leaf, or NONE for an input of the problem */
    uint32_t initial_label; /* inputs: the label they arrive in */
    uint32_t final_label;   /* outputs: the label they must end in; NONE: not an output */
    double weight;          /* of conversions of this value */
} ent_partition_value;

typedef struct ent_partition_problem {
    uint32_t leaf_count; /* leaf i depends only on leaves < i */
    const ent_partition_value *values;
    uint32_t value_count;
    const ent_partition_offer *offers;
    uint32_t offer_count;
    uint32_t label_count;
    /* Price of making `to` from `from` for a value (unweighted ns); INFINITY if impossible; 0 when equal. */
    double (*convert_ns)(void *context, uint32_t value, uint32_t from, uint32_t to);
    void *context;
    /* Offers tried, the measure of work: the same problem gives the same plan on any machine, however busy.
     * 0: ENT_PARTITION_DEFAULT_WORK. Beyond it a narrow beam goes on, and the result may be unproven. */
    uint64_t max_work;
    uint32_t max_states; /* per step; 0: 50,000. Beyond it the beam keeps the cheapest and the result may be
                            unproven */
} ent_partition_problem;

typedef struct ent_partition_convert {
    uint32_t value, from, to;
    uint32_t
        before; /* index into chosen order of the first offer that needs it; == chosen_count: at the end */
    double price_ns; /* weighted */
} ent_partition_convert;

typedef struct ent_partition_result {
    bool feasible;
    uint32_t stuck_leaf;    /* when infeasible: a leaf that no offer (or no ready offer) can cover */
    const uint32_t *chosen; /* offers in execution order */
    uint32_t chosen_count;
    const ent_partition_convert *converts;
    uint32_t convert_count;
    double total_ns;
    double bound_ns; /* proven lower bound; equals total when proven */
    bool proven;
    uint64_t states; /* kept by the search */
    uint64_t work;   /* offers tried */
    uint64_t time_ns;
} ent_partition_result;

ent_status ent_partition_solve(ent_arena *arena, const ent_partition_problem *problem,
                               ent_partition_result *out);

#endif
