/* Plan -> program. Decides nothing: every region already has its device, layouts and tile program. */
#ifndef ENT_LOWER_H
#define ENT_LOWER_H

#include "core/negotiate/negotiate.h"
#include "core/program/program.h"

/* A conversion between two forms of one value, as a step of its own. */
typedef struct ent_plan_convert {
    uint32_t value;
    uint32_t from_device, to_device; /* device whose memory holds it; NONE: host memory of the caller */
    ent_layout from, to;
    uint32_t before;   /* index into regions; == region_count: at the end */
    uint32_t device;   /* that does the layout change; NONE: plain copy between devices */
    double price_ns;
    const ent_fusion_candidate *program; /* tile program of the layout change, or NULL */
} ent_plan_convert;

typedef struct ent_plan {
    const ent_negotiate_session *session;
    const uint32_t *regions; /* offer indices in execution order, all graphs mixed; each offer names its graph */
    uint32_t region_count;
    const ent_plan_convert *converts;
    uint32_t convert_count;
    double total_ns, bound_ns;
    bool proven;
    uint32_t rounds; /* re-plans after withdrawn offers */
} ent_plan;

/* What compile of one offer gave. */
typedef struct ent_compiled {
    ent_bytes blob;
    const char *requirement;
    uint32_t tier;
    const char *path;
} ent_compiled;

/* Compiles one region through its plugin (tile program or region bytes). */
ent_status ent_lower_compile_offer(const ent_negotiate_session *session, const ent_offer *offer, ent_arena *arena, ent_compiled *out);
/* Compiles everything and builds the program with its memory plan. On a plugin failure sets *out_failed to the offer index (so that
 * the caller withdraws it and re-plans) and returns the status. */
ent_status ent_lower_program(ent_plan *plan, ent_arena *arena, ent_program **out, ent_memory_result *out_memory, uint32_t *out_failed);

#endif
