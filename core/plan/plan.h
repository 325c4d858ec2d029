/* Offers -> plan: labels, prices of layout changes and transfers, user wishes (--assign, --prefer), the
 * selection, and the plan as data for explain. */
#ifndef ENT_PLAN_H
#define ENT_PLAN_H

#include "core/negotiate/negotiate.h"
#include "core/partition/partition.h"

/* One step that changes the form or place of a value. A change of both is two converts in a row. */
typedef struct ent_plan_convert {
    uint32_t value;
    uint32_t from_space, to_space; /* index into ent_plan.spaces */
    ent_layout from, to;
    uint32_t before; /* region (index into regions) in front of which it runs, already in the value's own
                        graph; == region_count: at the end of that graph */
    uint32_t device; /* does the layout change; NONE: plain copy between spaces */
    double price_ns;
    const ent_tile_program *program; /* of a layout change on a tile-depth device; else NULL */
} ent_plan_convert;

/* A memory that values live in: 0 is the host's (with the devices that share it), the others belong to one
 * device each. */
typedef struct ent_plan_space {
    uint32_t device; /* a device of the space; NONE for host memory that no device shares */
} ent_plan_space;

/* The next best way to do a chosen region's leaves, boundary conversions included. */
typedef struct ent_plan_runner_up {
    bool exists;
    double price_ns;     /* all of it */
    const char *devices; /* "sim:nhwc16" or "cpu + reference" */
    const char *paths;
} ent_plan_runner_up;

typedef struct ent_plan {
    ent_negotiate_session *session;
    const ent_plan_space *spaces;
    uint32_t space_count;
    const uint32_t *device_space; /* per session device */
    const uint32_t *regions; /* offer indices in execution order, all graphs; each offer names its graph */
    const double *region_weight;          /* of its graph: branches 0.5 */
    const ent_plan_runner_up *runners_up; /* per region */
    uint32_t region_count;
    const ent_plan_convert *converts;
    uint32_t convert_count;
    double total_ns, bound_ns; /* weighted */
    bool proven;
    uint64_t work;   /* offers tried by the selection */
    uint32_t rounds; /* selections made: 1 + re-plans after withdrawn offers */
} ent_plan;

/* One line of --assign: model node glob (or leaf name) -> device. The last line that matches counts. */
typedef struct ent_plan_assignment {
    const char *glob;
    const char *device;
    const char *place; /* file:line */
} ent_plan_assignment;

typedef struct ent_plan_options {
    const ent_plan_assignment *assignments;
    uint32_t assignment_count;
    const char *prefer; /* device whose prices count 10 % less; NULL */
    uint64_t max_work;  /* of the selection: offers tried; 0: the default */
} ent_plan_options;

/* Reads an assignment file: "GLOB DEVICE" a line, # comments. */
ent_status ent_plan_read_assignments(ent_arena *arena, const char *path, ent_plan_options *options);

/* Selects. UNSUPPORTED, naming node and reasons, when no cover exists (or an assigned device declines). */
ent_status ent_plan_make(ent_negotiate_session *session, const ent_plan_options *options, ent_arena *arena,
                         ent_plan *out);

/* The plan section of a bundle and of `explain --json` (docs/plan.md). */
const char *ent_plan_json(const ent_plan *plan, ent_arena *arena);
/* The plan as text, for goldens and dumps. */
const char *ent_plan_print(const ent_plan *plan, ent_arena *arena);

#endif
