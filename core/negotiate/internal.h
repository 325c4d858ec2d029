/* Shared inside core/negotiate only. */
#ifndef ENT_NEGOTIATE_INTERNAL_H
#define ENT_NEGOTIATE_INTERNAL_H

#include "abi/ent_message.h"
#include "core/negotiate/negotiate.h"

/* A set of leaves with its boundary, before layouts are chosen. */
typedef struct ent_leaf_set {
    uint32_t graph;
    const uint32_t *nodes;
    uint32_t node_count;
    const uint32_t *inputs; /* values from outside, constants included, in first-use order */
    uint32_t input_count;
    const uint32_t *outputs; /* values used outside, in definition order */
    uint32_t output_count;
} ent_leaf_set;

/* Boundary of nodes (ascending in graph order). */
void ent_negotiate_boundary(const ent_negotiate_session *session, const ent_uses *uses, uint32_t graph,
                            const uint32_t *nodes, uint32_t node_count, ent_leaf_set *out);
/* True when the rank of a boundary value is not known: such a leaf set can't be offered, since a port needs a
 * layout. */
bool ent_negotiate_open_rank(const ent_negotiate_session *session, const ent_leaf_set *set);
/* Appends an offer with ports of one layout choice ("plain" or "channels_last"); returns it for further
 * filling. */
ent_offer *ent_negotiate_add_region_offer(ent_negotiate_session *session, uint32_t device,
                                          const ent_leaf_set *set, const char *layout);
void ent_negotiate_refuse(ent_negotiate_session *session, const ent_refusal *refusal);
/* Total multiply-adds * 2 and boundary bytes of a leaf set, for declared cost models. */
void ent_negotiate_work(const ent_negotiate_session *session, const ent_leaf_set *set, double *out_flops,
                        double *out_bytes);

/* Whether all constraints hold for the matched nodes; failures are recorded as refusals of `leaf`. nodes[i]
 * is what matched pattern node i (first of a repeat; a composite stands as a node of its own), NULL if
 * nothing did. */
bool ent_negotiate_check_constraints(ent_negotiate_session *session, uint32_t device,
                                     const ent_pattern *pattern, const ent_node *const *nodes, uint32_t leaf);

/* One source of offers each. */
ent_status ent_negotiate_match(ent_negotiate_session *session, const ent_uses *uses, uint32_t device);
ent_status ent_negotiate_tiles(ent_negotiate_session *session, uint32_t device);
ent_status ent_negotiate_survey(ent_negotiate_session *session, const ent_uses *uses, uint32_t device);
ent_status ent_negotiate_quotes(ent_negotiate_session *session, uint32_t device);
void ent_negotiate_control(ent_negotiate_session *session);

/* Message building over the session's arena. */
void ent_negotiate_write_values(ent_message_writer *writer, ent_size_table *sizes, const uint32_t *values,
                                uint32_t count);
/* The sizes of all values of the module. */
void ent_negotiate_write_all_sizes(ent_message_writer *writer, const ent_module *module, ent_arena *arena,
                                   ent_size_table *out);
void ent_negotiate_write_node(ent_message_writer *writer, const ent_module *module, uint32_t node);
void ent_negotiate_write_overlay(ent_message_writer *writer, const ent_module *module, uint32_t overlay);
void ent_negotiate_write_region(ent_message_writer *writer, const ent_negotiate_session *session,
                                const ent_offer *offer);

/* A plugin call of the negotiation: records both messages, turns a failure into a refusal of every offer of
 * the device. */
typedef ent_code (*ent_negotiate_verb)(ent_device *device, const ent_call *call, const uint8_t *request,
                                       size_t size, ent_bytes *out_reply);
bool ent_negotiate_exchange(ent_negotiate_session *session, uint32_t device, ent_negotiate_verb verb,
                            const char *verb_name, ent_bytes request, ent_message_reader *out_reply);

#endif
