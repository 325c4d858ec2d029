/* Frozen graph x devices -> offers. Declares, surveys, matches declared patterns (with near misses), adds the
 * core's own tile-depth candidates, quotes, and after selection awards. An offer is the one currency of the
 * partition. */
#ifndef ENT_NEGOTIATE_H
#define ENT_NEGOTIATE_H

#include "abi/ent_message.h"
#include "core/capability/capability.h"
#include "core/fusion/fusion.h"
#include "core/graph/graph.h"
#include "core/host/host.h"

/* A device that takes part. */
typedef struct ent_negotiate_device {
    const char *name; /* spec */
    ent_host_device *host;
    ent_capability *capability;
} ent_negotiate_device;

typedef enum ent_offer_kind {
    ENT_OFFER_VIEW = 1, /* nothing runs */
    ENT_OFFER_TILE = 2, /* tile program, candidate */
    ENT_OFFER_REGION =
        3, /* region or graph depth: the plugin compiles the leaves (or the replacement body) */
    ENT_OFFER_CONTROL = 4 /* an If that nobody takes whole: a branch step of the program, run by the host */
} ent_offer_kind;

typedef struct ent_offer_port {
    uint32_t value;
    ent_layout layout;
    bool is_output;
    bool is_constant;
} ent_offer_port;

typedef struct ent_offer {
    uint32_t id;
    uint32_t kind;
    uint32_t device; /* index into the session's devices; NONE for CONTROL */
    uint32_t depth;  /* ent_depth; NONE for views and control */
    uint32_t tier, basis;
    uint32_t graph;
    const uint32_t *nodes;
    uint32_t node_count;
    const uint32_t *overlays;
    uint32_t overlay_count;
    const ent_offer_port *ports; /* inputs, constants, outputs: the order in which the kernel is bound */
    uint32_t port_count;
    double time_low_ns, time_mid_ns, time_high_ns;
    uint64_t scratch_bytes, weight_bytes, traffic_bytes;
    const char *path;     /* pattern name or candidate kind */
    const char *bound_by; /* what limits it, for explain */
    const char *request;  /* the granted request behind it ("layout: channels_last", "decompose: Gelu"), NULL
                             if none */
    uint64_t quote;       /* plugin's quote id; 0: none */
    const ent_tile_program *program; /* TILE */
    const char *withdrawn;           /* set when refused at award or compile: the reason */
} ent_offer;

/* Why a device does not take a leaf (or a pattern around it): one line of the node x device x reason table.
 */
typedef struct ent_refusal {
    uint32_t device;
    uint32_t node;
    const char *pattern;
    const char *reason_id;
    const char *text; /* "channels 24 is not a multiple of 16 (8 short)" */
    int64_t wanted, got;
    const char *fix; /* request that would fix it; NULL */
    bool granted;    /* the fix was applied as an offer of its own */
} ent_refusal;

typedef struct ent_negotiate_session {
    const ent_module *module;
    ent_arena *arena;
    ent_negotiate_device *devices;
    uint32_t device_count;
    ent_fusion_layouts layouts;
    ENT_ARRAY(ent_offer) offers;
    ENT_ARRAY(ent_refusal) refusals;
    ent_transcript *transcript;
    uint64_t deadline_ns;
} ent_negotiate_session;

/* Makes all offers. A plugin that breaks (bad bytes, error code) loses its offers with a refusal per leaf;
 * the others go on. */
ent_status ent_negotiate_offers(ent_negotiate_session *session);
/* Confirms chosen offers with their plugins; sets `withdrawn` on refused ones. out_refused counts them. */
ent_status ent_negotiate_award(ent_negotiate_session *session, const uint32_t *offers, uint32_t count,
                               uint32_t *out_refused);
/* Region message of an offer, as given to quote and compile: its leaves, attributes, overlays, ports and
 * layouts. */
ent_status ent_negotiate_region(const ent_negotiate_session *session, const ent_offer *offer,
                                ent_arena *arena, ent_bytes *out);
/* A message writer that grows in an arena, with a message of `kind` begun. */
void ent_negotiate_writer_init(ent_message_writer *writer, ent_arena *arena, uint32_t kind);
/* Symbols and expressions, before the values that use them. */
void ent_negotiate_write_sizes(ent_message_writer *writer, const ent_size_table *sizes);
/* Node x device x reason table as text (golden). */
const char *ent_negotiate_print(const ent_negotiate_session *session, ent_arena *arena);

#endif
