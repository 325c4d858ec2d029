/* Shared inside core/partition only. */
#ifndef ENT_PARTITION_INTERNAL_H
#define ENT_PARTITION_INTERNAL_H

#include "core/partition/partition.h"

#define ENT_PARTITION_NO_SLOT 0xffu
#define ENT_PARTITION_MAX_FORMS 64u /* of one value: sets of them are 64-bit masks */
#define ENT_PARTITION_MAX_WAITS 12u
#define ENT_PARTITION_MAX_AHEAD 256u

/* An offer that takes or makes a value, and the form in which it does; `slot` is the form's place among the
 * value's own labels, or their number for "as it is". */
typedef struct ent_partition_link {
    uint32_t offer, slot;
} ent_partition_link;

/* A leaf that reads a value: every offer that contains it takes the value, unless it also makes it. The final
 * form of an output counts as a reader without a leaf. Prices are the lower bound's, see bound.c. */
typedef struct ent_partition_reader {
    uint32_t value, leaf;
    const ent_partition_link *takers, *makers; /* makers: those that leave the leaf to others */
    uint32_t taker_count, maker_count;
    double *take; /* per slot and "as it is": what taking the value in this form still costs the reader */
    double *make; /* per slot: the same where the value is made in this form, conversion included */
} ent_partition_reader;

/* What the search needs of a problem, indexed. A slot is a label's place among its value's own. */
typedef struct ent_partition_index {
    const ent_partition_problem *problem;
    const uint32_t *first_offers;   /* per leaf: offsets into offers_by_leaf; leaf_count + 1 entries */
    const uint32_t *offers_by_leaf; /* offers containing the leaf, ascending */
    const uint32_t *label_offsets;  /* per value: its labels */
    const uint32_t *labels;
    const uint32_t *first_takers; /* per value: offsets into takers: offers that take it, ascending */
    const uint32_t *takers;
    const uint32_t *last_claim; /* per value: 1 + highest first leaf of an offer that takes it; 0: none. The
                                   search claims offers by their first leaf: then nobody takes it any more */
    const uint32_t *last_wants; /* the same per (value, slot), by label_offsets */
    double *converts;           /* per value a matrix of slots: weighted prices; negative: not asked yet */
    const uint32_t *convert_offsets;
    ent_partition_reader *readers; /* by value, then leaf */
    const uint32_t *first_readers; /* per value */
    const uint8_t *readers_known;  /* per value: they explain all offers that take it, in one form each */
    double *share;                 /* per leaf: its part of the lower bound, see bound.c */
    double share_total, bound_ns;  /* all shares; the bound of any solution */
} ent_partition_index;

ent_status ent_partition_index_make(ent_arena *arena, const ent_partition_problem *problem,
                                    ent_partition_index *out);
/* Fills readers, first_readers and readers_known (readers.c); after the lists of offers and labels. */
void ent_partition_readers_make(ent_arena *arena, ent_partition_index *index);
/* Fills the readers' prices, share, share_total and bound_ns (bound.c). */
void ent_partition_bound_make(ent_arena *arena, ent_partition_index *index);
/* Position of a label among the value's own; NONE never happens for labels of ports. */
uint32_t ent_partition_label_slot(const ent_partition_index *index, uint32_t value, uint32_t label);
uint32_t ent_partition_slot_count(const ent_partition_index *index, uint32_t value);
/* Weighted price of making one form of a value from another. */
double ent_partition_convert_price(const ent_partition_index *index, uint32_t value, uint32_t from_slot,
                                   uint32_t to_slot);
bool ent_partition_offer_has(const ent_partition_offer *offer, uint32_t leaf);

/* A value that matters to leaves still unclaimed. */
typedef struct ent_partition_live {
    uint32_t value;
    uint32_t slot; /* label in which it was made; NO_SLOT: only needed so far */
    uint64_t paid; /* labels it exists in, or (not made yet) is needed in */
    uint32_t wait_count;
    uint32_t waits[ENT_PARTITION_MAX_WAITS]; /* values not made yet that it depends on, ascending */
} ent_partition_live;

/* A state of the search, unpacked for work. */
typedef struct ent_partition_state {
    double cost;
    double share; /* of the unclaimed leaves */
    uint32_t frontier;
    uint32_t ahead_count;
    uint32_t ahead[ENT_PARTITION_MAX_AHEAD]; /* claimed leaves beyond the frontier, ascending */
    uint32_t live_count;
    ent_partition_live *live; /* ascending by value; room for all values of the problem */
} ent_partition_state;

bool ent_partition_is_claimed(const ent_partition_state *s, uint32_t leaf);
/* Lower bound of what a state has still to pay; INFINITY: nothing completes it (bound.c). */
double ent_partition_rest(const ent_partition_index *index, const ent_partition_state *s);

/* A state as words: claimed leaves ahead, then live values. Equal words: the same to whatever follows
 * (state.c). */
typedef struct ent_partition_key {
    const uint32_t *words;
    uint32_t count;
} ent_partition_key;

typedef ENT_ARRAY(uint32_t) ent_partition_words;

/* Appends the words of a state; unpack fills all but cost, share and frontier. */
void ent_partition_state_pack(ent_arena *arena, const ent_partition_state *s, ent_partition_words *words);
void ent_partition_state_unpack(ent_partition_key key, ent_partition_state *s);
/* Of two states at a frontier, `b` the dearer by `room_ns`: whether for every completion of `b` there is one
 * of `a` that ends no dearer. */
bool ent_partition_dominates(const ent_partition_index *index, uint32_t frontier, ent_partition_key a,
                             ent_partition_key b, double room_ns);
/* Hash of what two states have to share before one can dominate the other. */
uint64_t ent_partition_dominance_hash(ent_partition_key key);

/* A search with at most `width` states kept at each step. */
typedef struct ent_partition_search {
    const ent_partition_index *index;
    ent_arena *arena;
    uint32_t width;
    bool unbounded;      /* ignores the lower bound, to find where a problem without a solution is stuck */
    double upper_ns;     /* only what is cheaper counts; INFINITY: nothing known */
    uint64_t work;       /* offers tried */
    uint64_t max_work;   /* beyond it the search goes on in a narrow beam */
    bool cut;            /* a state was dropped for width, work or room: the result is unproven */
    double cut_bound_ns; /* least cost + bound among the dropped */
    uint64_t states;
} ent_partition_search;

/* Chosen offers in the order in which they were claimed; count 0 and *out_cost INFINITY when nothing cheaper
 * than upper_ns covers the leaves. *out_stuck: the furthest leaf at which every path ended. */
ent_status ent_partition_search_run(ent_partition_search *search, const uint32_t **out_offers,
                                    uint32_t *out_count, double *out_cost, uint32_t *out_stuck);

#endif
