/* The core's own fusion and tiling on behalf of tile-depth devices: frozen graph -> candidates, each one
 * fusion group in one choice of boundary layouts, tiled and priced from the device's declaration. Nothing
 * later changes a candidate: lowering only hands its tile program to the plugin. */
#ifndef ENT_FUSION_H
#define ENT_FUSION_H

#include "abi/ent_tile.h"
#include "core/capability/capability.h"
#include "core/graph/graph.h"
#include "core/tile/tile.h"

/* Layouts worth considering for each value: the plain one first, channels-last where a convolution or window
 * touches the value, and the permutations that make a transpose next to it free. At most
 * ENT_FUSION_MAX_LAYOUTS. */
#define ENT_FUSION_MAX_LAYOUTS 4
typedef struct ent_fusion_layouts {
    const ent_layout (*items)[ENT_FUSION_MAX_LAYOUTS]; /* per value */
    const uint8_t *counts;
} ent_fusion_layouts;
ent_status ent_fusion_find_layouts(const ent_module *module, ent_arena *arena, ent_fusion_layouts *out);

/* A binding of the tile program, in the program's buffer order: inputs, constants, outputs. The program's
 * buffer may describe the bytes with other dims than the value has (axes of extent 1 dropped, neighbours
 * merged): the bytes are those of the value in `layout`. A value may be bound twice, then in one layout
 * unless it is constant. Where several layouts store the same bytes (axes of extent 1), ports name the first
 * of the value's list. */
typedef struct ent_fusion_port {
    uint32_t value; /* module value; NONE for scratch */
    ent_layout layout;
    bool is_output;
    bool is_constant; /* the value is a constant: the compiler stores it in `layout` in the bundle */
} ent_fusion_port;

typedef struct ent_fusion_price {
    double time_low_ns, time_mid_ns, time_high_ns;
    double flops;
    uint64_t traffic_bytes; /* last level (DRAM) */
    uint64_t scratch_bytes;
    const char *bound_by; /* "compute", "l2", "dram", "launch": what the roofline says, for explain */
} ent_fusion_price;

typedef struct ent_fusion_candidate {
    uint32_t graph;
    const uint32_t *nodes; /* leaves, ascending by graph order */
    uint32_t node_count;
    const uint32_t *overlays; /* composites taken whole */
    uint32_t overlay_count;
    const ent_fusion_port *ports;
    uint32_t port_count;
    const ent_tile_program *program; /* NULL for a view */
    bool is_view; /* outputs are the input's bytes: no step runs. ports[0] input, ports[1] output */
    ent_fusion_price price;
    uint32_t tier;    /* expected: NATIVE if the work is on a declared matrix unit, else TUNED */
    const char *kind; /* "matmul", "conv", "depthwise", "rows", "pool", "copy", "view" ... */
} ent_fusion_candidate;

typedef struct ent_fusion_set {
    ENT_ARRAY(ent_fusion_candidate) items;
    /* Leaves for which no candidate could be made, with the reason (dtype, operator, rank ...); for reasons
     * in explain. */
    ENT_ARRAY(struct ent_fusion_refusal {
        uint32_t node;
        const char *reason_id;
        const char *text;
    })
    refusals;
} ent_fusion_set;

/* All candidates of all graphs of a frozen, fully static module for one device. Deterministic. */
ent_status ent_fusion_make(const ent_module *module, const ent_fusion_layouts *layouts,
                           const ent_capability *capability, ent_arena *arena, ent_fusion_set *out);

/* One line a candidate: kind, leaves, ports with layouts (order of axes, then blocks), grid and price; then
 * the refusals. */
void ent_fusion_print(const ent_module *module, const ent_fusion_set *set, ent_text *out);

/* A tile program that copies one value between two layouts (the priced convert step). Code UNSUPPORTED, rule
 * "convert.layout", for opaque layouts, blocked ones that need padding, and sub-byte dtypes: core/ops
 * converts those. */
ent_status ent_fusion_make_convert(const ent_module *module, uint32_t value, const ent_layout *from,
                                   const ent_layout *to, const ent_capability *capability, ent_arena *arena,
                                   ent_fusion_candidate *out);

/* Price of any tile program on a device (exposed for tests and for calibration). */
ent_status ent_fusion_price_program(const ent_tile_program *program, const ent_capability *capability,
                                    ent_fusion_price *out);

#endif
