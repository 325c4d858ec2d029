/* Shared inside core/plan only. */
#ifndef ENT_PLAN_INTERNAL_H
#define ENT_PLAN_INTERNAL_H

#include "core/plan/plan.h"

/* A label of the partition: a memory and a layout. */
typedef struct ent_plan_label {
    uint32_t space;
    ent_layout layout;
} ent_plan_label;

/* A priced way between two labels of one value: up to two converts. */
typedef struct ent_plan_way {
    uint32_t count;
    ent_plan_convert steps[2];
    double price_ns;
} ent_plan_way;

typedef struct ent_plan_builder {
    ent_negotiate_session *session;
    const ent_plan_options *options;
    ent_arena *arena;
    ent_plan_space *spaces;
    uint32_t space_count;
    uint32_t *device_space;
    ENT_ARRAY(ent_plan_label) labels;
    ENT_ARRAY(uint32_t) leaves; /* leaf index -> node id, topological over all graphs */
    uint32_t *leaf_of;          /* node id -> leaf index, NONE */
    double *graph_weight;
    ENT_ARRAY(uint32_t) values; /* partition value -> module value */
    uint32_t *value_of;         /* module value -> partition value, NONE */
    ent_partition_problem problem;
    const uint32_t *offer_of;  /* partition offer -> session offer */
    uint32_t *assigned;        /* leaf index -> device, NONE */
    ent_map *way_prices;       /* (value, from, to) -> bits of the price */
    ent_map *change_prices;    /* (kind, from, to) -> bits of the price of a layout change */
    ent_map *kinds;            /* dtype and shape -> kind: values of one kind share prices */
    uint32_t kind, kind_value; /* of the value asked for last; module value + 1 */
} ent_plan_builder;

uint32_t ent_plan_intern_label(ent_plan_builder *b, uint32_t space, const ent_layout *layout);
/* Price of making one form of a partition value from another; INFINITY when there is no way. */
double ent_plan_way_price(ent_plan_builder *b, uint32_t value, uint32_t from, uint32_t to);
/* The steps of the way, with their programs. */
ent_plan_way ent_plan_make_way(ent_plan_builder *b, uint32_t value, uint32_t from, uint32_t to);
ent_status ent_plan_build_problem(ent_plan_builder *b);
/* Sets assigned devices of the leaves; fails when an assigned device is not in the set. */
ent_status ent_plan_assign(ent_plan_builder *b);
bool ent_plan_admissible(const ent_plan_builder *b, const ent_offer *offer);
/* Runner-up of each region of a solved problem. */
void ent_plan_find_runners_up(ent_plan_builder *b, const ent_partition_result *result, ent_plan *plan);
ent_status ent_plan_no_cover(ent_plan_builder *b, uint32_t stuck_leaf);

#endif
