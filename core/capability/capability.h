/* A device's declaration: one JSON document (capability-db schema 1), parsed and validated once. The same
 * document comes from a plugin's `declare` and from a file in capability-db/. docs/capability.md explains
 * every field; capability-db/schema.json is the JSON Schema. Units: bytes, nanoseconds, GB/s = bytes per ns,
 * GFLOP/s = flops per ns. All strings live in the arena. */
#ifndef ENT_CAPABILITY_H
#define ENT_CAPABILITY_H

#include "abi/ent_ops.h"
#include "abi/ent_types.h"
#include "core/base/base.h"

typedef struct ent_memory_level {
    const char *name; /* "register", "l1", "l2", "l3", "dram", "shared" ... innermost first */
    const char
        *scope; /* "unit": each compute unit has one; "device": shared by all; "host": shared with the host */
    uint64_t bytes;
    double read_gbps, write_gbps; /* one unit alone for scope unit; all together for scope device (per-unit
                                     cap: unit_gbps) */
    double unit_gbps;             /* what one unit can draw from a device-scope level; 0: read_gbps */
} ent_memory_level;

/* A block multiply-accumulate the device can do: m x n += m x k * k x n. CPU microkernels are declared as
 * such. */
typedef struct ent_matrix_unit {
    uint32_t dtype_a, dtype_b, dtype_c;
    int64_t m, n, k;
    double gflops;    /* of one compute unit, sustained from L1 */
    bool a_indirect;  /* rows of A may lie anywhere (no copy for convolution) */
    uint32_t b_block; /* width of the packed panels B is wanted in (layout inner block on n); 0: plain */
    const char *name;
} ent_matrix_unit;

typedef struct ent_link {
    const char *to; /* "host" or a device name */
    double latency_ns, gbps;
} ent_link;

/* Cost of a whole-region fast path: base + flops / gflops + bytes / gbps. */
typedef struct ent_cost_model {
    double base_ns, gflops, gbps;
} ent_cost_model;

typedef enum ent_constraint_kind {
    ENT_CONSTRAINT_DTYPE = 1,    /* port dtype in names */
    ENT_CONSTRAINT_RANK = 2,     /* port rank in [min, max] */
    ENT_CONSTRAINT_DIM = 3,      /* port dim `axis`: multiple_of, min, max (0 / -1: free) */
    ENT_CONSTRAINT_ATTR = 4,     /* integer attribute `attr` (or each of ints) in [min, max] */
    ENT_CONSTRAINT_ATTR_IS = 5,  /* string attribute equals one of names */
    ENT_CONSTRAINT_CONSTANT = 6, /* port must be a constant */
    ENT_CONSTRAINT_ELEMENTS = 7  /* element count of the port in [min, max] */
} ent_constraint_kind;

typedef struct ent_constraint {
    uint32_t kind;
    const char *id; /* stable id, used as the reason's id: "channels.multiple-of-16" */
    uint32_t node;  /* pattern node index */
    bool is_output;
    uint32_t port;
    int64_t axis;
    int64_t multiple_of, min, max;
    const char *attr;
    const char *const *names;
    uint32_t name_count;
    const char *fix; /* request kind that would satisfy it: "layout", "decompose", "pad", ...; NULL: none */
} ent_constraint;

/* DAG pattern. Node 0 is the anchor; each later node consumes the output of an earlier one through any input;
 * `repeat_max` > 1 takes a chain of that many. Matches never include a node whose intermediate result is used
 * outside. */
typedef struct ent_pattern_node {
    const uint32_t *ops; /* any of these; empty: by class */
    uint32_t op_count;
    uint32_t op_class; /* ent_op_class; used when op_count is 0 */
    uint32_t from;     /* earlier node it consumes; ignored for node 0 */
    uint32_t repeat_min, repeat_max;
} ent_pattern_node;

typedef struct ent_pattern {
    const char *name;
    uint32_t depth; /* ent_depth */
    uint32_t tier;
    bool any_op; /* matches every single leaf (generic paths) */
    const ent_pattern_node *nodes;
    uint32_t node_count;
    const uint32_t *composites; /* matches overlays of these operators whole */
    uint32_t composite_count;
    const ent_constraint *constraints;
    uint32_t constraint_count;
    const char *const
        *layouts; /* acceptable port layouts: "plain", "channels_last"; one choice for all ports */
    uint32_t layout_count;
    ent_cost_model cost;
} ent_pattern;

/* Calibrated factors of the core's analytical tile price. */
typedef struct ent_tile_cost {
    double launch_ns;             /* one dispatch */
    double sync_ns;               /* fork and join over all units */
    double instance_ns;           /* one program instance */
    double op_ns;                 /* one tile operation of an instance */
    double mma_efficiency;        /* share of the matrix unit's gflops reached in a loop */
    double map_cheap_ns;          /* per element from L1, one unit: add, mul, clip ... */
    double map_divide_ns;         /* div, sqrt, reciprocal */
    double map_transcendental_ns; /* exp, tanh, erf, gelu ... */
    double reduce_ns;             /* per element */
    double copy_strided_ns;       /* per element, transposing copies */
    double gather_ns;             /* per element, gathered or broken runs */
    double window_gflops;         /* multiply-add of depthwise windows, one unit */
} ent_tile_cost;

typedef struct ent_capability {
    const char *name, *vendor, *kind; /* kind: cpu, gpu, npu */
    const char *description;
    uint32_t units; /* compute units that run instances in parallel */
    uint32_t vector_lanes_f32;
    double launch_ns;
    uint32_t depths; /* set of ent_depth */
    const ent_memory_level *levels;
    uint32_t level_count;
    const ent_matrix_unit *matrix_units;
    uint32_t matrix_unit_count;
    const ent_link *links;
    uint32_t link_count;
    const ent_pattern *patterns;
    uint32_t pattern_count;
    ent_tile_cost tile;
    const uint32_t *tile_maps; /* ent_map functions the tile executor has vector kernels for */
    uint32_t tile_map_count;
    const char *basis; /* "measured", "declared", "assumed": where the figures come from */
    const char *json;  /* the document */
} ent_capability;

/* Errors: code DEVICE, place "file: /pointer/to/field", rule "capability.*". Unknown fields are refused
 * unless they start with "x-". */
ent_status ent_capability_parse(ent_arena *arena, const char *place, const char *json, size_t size,
                                ent_capability **out);
const ent_memory_level *ent_capability_level(const ent_capability *capability, const char *name);
bool ent_capability_has_map(const ent_capability *capability, uint32_t map);

#endif
