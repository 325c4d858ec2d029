/* Shared by core/fusion only.
 *
 * How candidates are made. Everything but views and data movement is one scheme:
 *   group  items (leaves, or overlays taken whole) over a *domain*: a set of dims with an extent above 1.
 * Every value of a group maps its own dims to domain dims, so that broadcasts, transposes and inserted axes
 * cost nothing. space  the domain in one choice of layouts: dims in the order of memory, neighbours merged
 * where every port allows it. A buffer is described by its merged dims in its own order, so a layout needs no
 * further thought. body   the program: one tile of the space per instance, loads on demand, one map per
 * elementwise step. */
#ifndef ENT_FUSION_INTERNAL_H
#define ENT_FUSION_INTERNAL_H

#include "core/fusion/fusion.h"
#include "core/ops/ops.h"

#define FUSION_NONE 0xffu
#define FUSION_MAX_DIMS 10
#define FUSION_MAX_ITEMS 24
#define FUSION_MAX_VALUES 80
#define FUSION_MAX_OUTPUTS 4
#define FUSION_MAX_PORTS 32

/* What a group does with an item. */
typedef enum fusion_class {
    FUSION_UNSUPPORTED = 0,
    FUSION_ELEMENTWISE,
    FUSION_RELABEL, /* same elements, other axes: Transpose, Unsqueeze, Expand ... */
    FUSION_REDUCE,  /* ends in, or contains, reductions over whole axes */
    FUSION_ANCHOR,  /* starts a group of its own kind: contraction, window */
    FUSION_MOVE     /* data movement programs */
} fusion_class;

/* A leaf, or an overlay taken whole. */
typedef struct fusion_item {
    uint32_t op;
    uint32_t graph;
    ent_attrs attrs;
    const uint32_t *inputs;
    uint32_t input_count;
    const uint32_t *outputs;
    uint32_t output_count;
    const uint32_t *nodes;
    uint32_t node_count;
    uint32_t overlay;  /* NONE for a leaf */
    uint32_t position; /* of its last leaf, in graph order */
    uint32_t item_class;
} fusion_item;

typedef struct fusion_context {
    const ent_module *module;
    const ent_fusion_layouts *layouts;
    const ent_capability *capability;
    ent_arena *arena;
    ent_fusion_set *set;
    ent_uses uses;
    fusion_item *items;
    uint32_t item_count;
    uint32_t *item_of_node; /* the item that stands for a leaf when groups grow */
    uint32_t *leaf_of_node; /* the leaf as an item of its own */
    uint32_t *position;     /* per node */
    uint32_t *member;       /* per node: stamp of the group it is in */
    uint32_t *visited;      /* per node: stamp of a search */
    uint32_t *covered;      /* per node: candidates that cover it */
    uint32_t stamp, visit_stamp;
    const char *reason;    /* why the last refusal was made, for the refusal table */
    double constant_bytes; /* of all weights: whether they stay in a cache between runs */
} fusion_context;

typedef struct fusion_value {
    uint32_t value;
    uint8_t to_dim[ENT_MAX_RANK]; /* domain dim of each own axis; NONE for extent 1 */
    uint16_t mask;                /* domain dims that its tile spans */
    bool inside;
    uint8_t uses; /* reads by the group's items */
} fusion_value;

typedef struct fusion_group {
    fusion_context *context;
    uint32_t graph;
    uint32_t items[FUSION_MAX_ITEMS]; /* ascending by position */
    uint32_t item_count;
    fusion_value values[FUSION_MAX_VALUES];
    uint32_t value_count;
    int64_t dims[FUSION_MAX_DIMS];
    uint32_t dim_count;
    uint16_t reduced; /* domain dims that are reduced: wholly in every tile */
    bool fixed;       /* an anchor set the domain: no new dims, no reductions */
    uint32_t anchor;  /* item that is emitted by the anchor, or NONE */
    uint32_t stamp;
    uint32_t outputs[FUSION_MAX_OUTPUTS]; /* values used outside; see fusion_group_close */
    uint32_t output_count;
    bool only_relabels;
} fusion_group;

/* ---- layouts.c ---- */
/* Axes with extent above 1 in the order of memory, outermost first. Returns their number. */
uint32_t fusion_layout_sequence(const ent_module *module, uint32_t value, const ent_layout *layout,
                                uint8_t *out);
bool fusion_layout_same_bytes(const ent_module *module, uint32_t value, const ent_layout *a,
                              const ent_layout *b);
/* The listed layout of a value that has this order of axes (extent 1 ignored); NULL if none. */
const ent_layout *fusion_layout_find(const fusion_context *context, uint32_t value, const uint8_t *sequence,
                                     uint32_t count);
/* The listed layout of a value that stores like `layout`; its first one if there is none or ranks differ. */
const ent_layout *fusion_layout_like(const fusion_context *context, uint32_t value, const ent_layout *layout);
/* The layout of the output that makes a view (reshape, transpose ...) move nothing, given the input's. */
bool fusion_view_layout(const ent_module *module, const ent_node *node, const ent_layout *from,
                        ent_layout *out);
bool fusion_view_layout_back(const ent_module *module, const ent_node *node, const ent_layout *to,
                             ent_layout *out);
bool fusion_is_view_op(uint32_t op);
void fusion_dims(const ent_module *module, uint32_t value, int64_t *out);
/* Axes with extent above 1 pair up in order (a reshape that only adds or drops axes of extent 1). */
bool fusion_same_axes(const ent_module *module, uint32_t from, uint32_t to);

/* ---- item.c ---- */
uint32_t fusion_item_class(const fusion_context *context, const fusion_item *item);
/* Reads the attribute, or constant input, that lists axes; negative ones are wrapped. False when it is not
 * constant. */
bool fusion_item_axes(const fusion_context *context, const fusion_item *item, uint32_t *out_mask);
bool fusion_dtype_in_tile(uint32_t dtype);
/* Inputs that are read as tensors (not axes, shapes ...). */
bool fusion_item_reads(const fusion_item *item, uint32_t input);

/* ---- group.c ---- */
void fusion_group_begin(fusion_group *group, fusion_context *context, uint32_t graph);
fusion_value *fusion_group_find(fusion_group *group, uint32_t value);
/* Records a value with the mapping given (NULL: all NONE). NULL when full. */
fusion_value *fusion_group_value(fusion_group *group, uint32_t value, const uint8_t *to_dim);
/* Adds an item; false, and the group unchanged, when it does not fit. */
bool fusion_group_add(fusion_group *group, uint32_t item);
/* An anchor item: its values are mapped by the caller. */
void fusion_group_add_anchor(fusion_group *group, uint32_t item);
/* True when adding the item leaves no path from the group out and back. */
bool fusion_group_convex(fusion_group *group, uint32_t item);
/* Finds the values used outside; false when there are more than `limit` or none. */
bool fusion_group_close(fusion_group *group, uint32_t limit);
bool fusion_group_is_output(const fusion_group *group, uint32_t value);
/* The next item to grow by: the first, in graph order, that reads an output of the group and fits. NONE: no
 * further growth. */
uint32_t fusion_group_grow(fusion_group *group);
/* Leaves and overlays of the group as arrays of the arena, ascending. */
void fusion_group_leaves(const fusion_group *group, ent_fusion_candidate *out);

/* ---- space.c ---- */
typedef struct fusion_axis {
    int64_t size;
    uint8_t dims[FUSION_MAX_DIMS]; /* domain dims merged into it, outermost first */
    uint32_t dim_count;
    uint32_t role;
    ent_tile_index recipe; /* coordinate of an element of the instance's tile */
    int64_t tile;          /* extent in the tile; 1 without tile axis */
} fusion_axis;

typedef struct fusion_port {
    uint32_t value;
    ent_layout layout;
    bool is_output;
    uint32_t buffer;               /* in the program */
    uint8_t axes[FUSION_MAX_DIMS]; /* merged axes, outermost first: the buffer's dims */
    uint32_t axis_count;
    uint8_t sequence[FUSION_MAX_DIMS]; /* domain dims in the order of memory */
    uint32_t sequence_count;
    bool raw; /* described by raw_* instead of axes; no merging rules */
    uint32_t raw_rank;
    ent_dim raw_dims[ENT_MAX_RANK];
    ent_layout raw_layout;
} fusion_port;

typedef struct fusion_space {
    fusion_group *group;
    uint8_t order[FUSION_MAX_DIMS]; /* domain dims in memory order, outermost first */
    uint8_t role[FUSION_MAX_DIMS];  /* per domain dim: dims of different roles are not merged */
    fusion_axis axes[FUSION_MAX_DIMS];
    uint32_t axis_count;
    uint8_t axis_of[FUSION_MAX_DIMS];
    fusion_port ports[FUSION_MAX_PORTS];
    uint32_t port_count;
    uint32_t tile_rank;
} fusion_space;

void fusion_space_begin(fusion_space *space, fusion_group *group);
/* Adds a port, described by axes; NULL when there is no room. The pointer holds until the next. */
fusion_port *fusion_space_port(fusion_space *space, uint32_t value, const ent_layout *layout, bool is_output);
/* Chooses the order: that of `reference` under its layout, other dims outside it. */
void fusion_space_order(fusion_space *space, uint32_t reference, const ent_layout *layout);
/* Layout of a port that follows the order, from the value's list; the plain one when none does. */
const ent_layout *fusion_space_layout(const fusion_space *space, uint32_t value);
/* Adds all external operands and outputs of the group as ports that follow the order. plain_outputs: outputs
 * stay plain. */
bool fusion_space_ports(fusion_space *space, bool plain_outputs);
/* Merges and describes the ports by axes. */
void fusion_space_merge(fusion_space *space);
/* No value is wanted in two layouts. */
bool fusion_space_consistent(const fusion_space *space);
fusion_port *fusion_space_find(fusion_space *space, uint32_t value, bool is_output);

/* ---- body.c ---- */
typedef struct fusion_body {
    fusion_space *space;
    fusion_group *group;
    ent_tile_builder builder;
    uint32_t tile_of[FUSION_MAX_VALUES]; /* per group value; NONE: not there yet */
    uint32_t absorbed;                   /* item that the anchor did already, or NONE */
    bool owned[FUSION_MAX_VALUES];       /* the value's tile may be overwritten by its only reader */
} fusion_body;

void fusion_body_begin(fusion_body *body, fusion_space *space, const char *name);
/* Declares the buffers of all ports that are not raw: inputs, constants, outputs, in port order. */
void fusion_body_buffers(fusion_body *body);
ent_tile_access fusion_body_access(fusion_body *body, const fusion_port *port);
/* A constant of one element, which is folded into the operations that read it instead of being a port. */
bool fusion_is_scalar(const fusion_context *context, uint32_t value);
/* A tile of a value: its own extents of the tile, 1 where it has no dim. */
uint32_t fusion_body_tile(fusion_body *body, uint32_t dtype, uint16_t mask);
/* The tile of a value, loaded when it comes from outside. */
uint32_t fusion_body_read(fusion_body *body, uint32_t value);
void fusion_body_set(fusion_body *body, uint32_t value, uint32_t tile);
/* Turns an axis into grid axes and tile axes: `tile` elements of it per instance. tile_axis NONE: tile must
 * be 1. */
void fusion_body_cut(fusion_body *body, uint32_t axis, int64_t tile, uint32_t tile_axis);
/* Emits one item of the group (not the anchor). */
void fusion_body_item(fusion_body *body, uint32_t item);
/* All items but the anchor, then the stores. */
void fusion_body_items(fusion_body *body);
void fusion_body_stores(fusion_body *body);
/* Verifies, prices and appends the candidate to the set. False when the program was refused. */
bool fusion_body_finish(fusion_body *body, const char *kind, uint32_t tier);

/* ---- emit.c: tile operations of single operators ---- */
void fusion_emit_elementwise(fusion_body *body, const fusion_item *item);
void fusion_emit_reduce(fusion_body *body, const fusion_item *item);
/* before, reduction, division by the count, after: what a plain reduction is made of. */
typedef struct fusion_reduce_form {
    uint32_t op, before;
    ent_reduce_kind kind;
    uint32_t after;
    bool mean;
} fusion_reduce_form;
const fusion_reduce_form *fusion_reduce_form_of(uint32_t op); /* NULL: not a plain reduction */
uint32_t fusion_sum_dtype(uint32_t dtype); /* what sums of it run in: f32 for f16 and bf16 */
uint32_t fusion_emit_reduce_part(fusion_body *body, const fusion_item *item);
void fusion_emit_reduce_finish(fusion_body *body, const fusion_item *item, uint32_t tile);
/* True when the operator has an elementwise form for its dtypes; false sets context->reason. */
bool fusion_emit_supported(const fusion_context *context, const fusion_item *item, const char **out_reason);

/* ---- rows.c, contract.c, window.c, move.c, view.c: makers of candidates; each covers items that start there
 * ---- */
void fusion_make_rows(fusion_context *context, uint32_t item);
void fusion_make_solo(fusion_context *context, uint32_t item);
void fusion_make_views(fusion_context *context, uint32_t node);
void fusion_make_contraction(fusion_context *context, uint32_t item);
void fusion_make_window(fusion_context *context, uint32_t item);
void fusion_make_movement(fusion_context *context, uint32_t item);
/* Grows epilogues on an anchor's group and calls `make` for it at each closed prefix. */
void fusion_grow_epilogues(fusion_group *group, void (*make)(fusion_group *group, void *user), void *user);

/* ---- move.c: copies whose coordinates are affine in the dims of a domain ---- */
typedef struct fusion_affine { /* (base + sum of coefficient * dim) / divisor, plus a gathered tile */
    int64_t base, divisor;
    uint32_t count;
    uint8_t dim[3];
    int64_t coefficient[3];
    uint32_t gather; /* tile, or NONE */
} fusion_affine;

typedef struct fusion_mover {
    fusion_group group;
    fusion_space space;
    fusion_body body;
    bool whole[FUSION_MAX_DIMS]; /* not to be a tile axis: the buffer axis has another one */
    fusion_affine out[ENT_MAX_RANK];
    fusion_affine in[ENT_MAX_RANK]; /* of the main input */
    uint32_t port_in, port_out;
    double outside;
} fusion_mover;
void fusion_mover_begin(fusion_mover *mover, fusion_context *context, uint32_t item);
uint8_t fusion_mover_dim(fusion_mover *mover, int64_t size); /* NONE for extent 1 */
fusion_affine fusion_affine_of(uint8_t dim);
/* Axis i of the output is a dim of its own: out[i]. */
void fusion_mover_same_output(fusion_mover *mover);
uint32_t fusion_mover_port(fusion_mover *mover, uint32_t value, const ent_layout *layout, bool is_output);
ent_tile_access fusion_mover_access(fusion_mover *mover, uint32_t port, const fusion_affine *index);
/* Orders dims by the output's layout, declares buffers, cuts. All ports are there. False when the domain has
 * too many dims. */
bool fusion_mover_cut(fusion_mover *mover, const ent_layout *out, const ent_layout *in);
uint32_t fusion_mover_tile(fusion_mover *mover, uint32_t dtype, uint16_t mask);
bool fusion_mover_finish(fusion_mover *mover, uint32_t tile, const char *kind);
/* LOAD in, STORE out, once for each layout of the output. prepare makes gather tiles after the cut; may be
 * NULL. */
void fusion_mover_copy(fusion_mover *mover, void (*prepare)(fusion_mover *mover, const void *user),
                       const void *user);
void fusion_make_resize(fusion_context *context, uint32_t item);
void fusion_make_parts(fusion_context *context, uint32_t item); /* Concat, Split */

/* ---- geometry.c ---- */
#define FUSION_MAX_SPATIAL 3
typedef struct fusion_window {
    uint32_t rank;
    int64_t in[FUSION_MAX_SPATIAL], out[FUSION_MAX_SPATIAL], kernel[FUSION_MAX_SPATIAL],
        stride[FUSION_MAX_SPATIAL];
    int64_t dilation[FUSION_MAX_SPATIAL], pad[FUSION_MAX_SPATIAL], pad_end[FUSION_MAX_SPATIAL];
} fusion_window;
/* kernel extents come from `weights` (its axes 2...), or from kernel_shape when NONE. False for more than 3
 * spatial axes. */
bool fusion_window_read(const fusion_context *context, const fusion_item *item, uint32_t weights,
                        bool transposed, fusion_window *out);

/* ---- tiles.c ---- */
/* A contraction as the tile choice sees it: m1 x m2 rows (m1 1 when rows are one axis), n columns, k x taps
 * to sum. */
typedef struct fusion_shape {
    uint32_t dtype; /* of a */
    int64_t m1, m2, n, k, taps;
    int64_t others;   /* instances that further grid axes multiply */
    int64_t n_within; /* n tiles must divide this (channels of one group); 0: no such rule */
    double a_spread;  /* bytes of A read per row and k element, over 4: below 1 when windows overlap */
    int64_t maps;     /* elementwise ops on the result that run over it again, row by row */
} fusion_shape;
typedef struct fusion_tiles {
    int64_t m1, m2, n, k;
    bool n_fastest; /* order of the grid */
} fusion_tiles;
void fusion_tiles_choose(const ent_capability *capability, const fusion_shape *shape, fusion_tiles *out);
#define FUSION_ROW_OPS 0.25 /* of an op: each further row of a tile that does not lie in one piece */
double fusion_level_bytes(const ent_capability *capability, const char *name, double otherwise);

/* ---- contract_emit.c ---- */
typedef enum fusion_role { FUSION_ROLE_BATCH = 1, FUSION_ROLE_M, FUSION_ROLE_N, FUSION_ROLE_K } fusion_role;

/* out[.., m, n] = sum over k and taps of a * b. Axes of a and b name domain dims, or spatial axes of a
 * window. */
typedef struct fusion_contraction {
    uint32_t a, b, bias; /* values; bias NONE if absent */
    uint8_t a_dim[ENT_MAX_RANK], b_dim[ENT_MAX_RANK], bias_dim[ENT_MAX_RANK]; /* domain dim or NONE */
    uint8_t a_spatial[ENT_MAX_RANK], b_spatial[ENT_MAX_RANK];                 /* spatial axis or NONE */
    uint8_t spatial_dim[FUSION_MAX_SPATIAL]; /* domain dim of the output's axis, NONE for extent 1 */
    uint8_t role[FUSION_MAX_DIMS];
    uint8_t n_dim, k_dim;
    int64_t n, k; /* of one group */
    int64_t groups;
    uint8_t a_channel, b_channel_n, b_channel_k; /* axes that a group index moves along; NONE */
    bool windowed, transposed;
    fusion_window window;
    double alpha, beta;
    double a_zero, b_zero; /* of 8-bit integers, whose sums are i32 */
    const char *kind;
} fusion_contraction;
bool fusion_contraction_emit(fusion_group *group, const fusion_contraction *c, const ent_layout *a,
                             const ent_layout *b, const ent_layout *out);

/* ---- price.c ---- */
ent_status fusion_price(const ent_tile_program *program, const ent_capability *capability,
                        double constant_bytes, ent_fusion_price *out);

/* ---- make.c ---- */
void fusion_push(fusion_context *context, const ent_fusion_candidate *candidate);

static inline const ent_value *fusion_value_of(const fusion_context *context, uint32_t value) {
    return ent_module_value(context->module, value);
}
static inline bool fusion_is_constant(const fusion_context *context, uint32_t value) {
    return ent_module_value(context->module, value)->constant != NULL;
}
static inline bool fusion_is_byte(uint32_t dtype) {
    return dtype == ENT_DTYPE_I8 || dtype == ENT_DTYPE_U8;
}
static inline int64_t fusion_ceil(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

#endif
