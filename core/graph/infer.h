/* Shape inference: what the rule files share. A rule reads inputs, writes infer->out and returns an error or
 * NULL; the driver checks and stores. Rules run only when the rank of every input that is there is known. */
#ifndef ENT_GRAPH_INFER_H
#define ENT_GRAPH_INFER_H

#include "core/graph/internal.h"

/* A size that depends on data: the driver keeps a declared one or makes a symbol. */
#define ENT_DIM_UNKNOWN ENT_ELEMENT_UNKNOWN

typedef struct ent_shape {
    uint32_t dtype; /* NONE: not known */
    uint32_t rank;  /* starts as ENT_RANK_UNKNOWN */
    ent_dim dims[ENT_MAX_RANK];
    uint32_t element_count;
    ent_dim *elements; /* in scratch; NULL: not known */
} ent_shape;

typedef struct ent_infer {
    ent_module *module;
    ent_arena *scratch;
    uint32_t node_id;
    const ent_node *node;
    ent_attrs attrs;
    ent_shape *out;   /* one per output */
    uint32_t depth;   /* of graphs */
    bool propagating; /* elements are asked for to know more elements, not for a shape */
} ent_infer;

typedef ent_status (*ent_infer_rule)(ent_infer *infer);

/* One rule per operator of the table: a missing one does not link. */
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes)                     \
    ent_status ent_infer_##name(ent_infer *infer);
#include "abi/ent_ops.def"

/* NULL: absent. The pointer is good until a value is added; rules add none. */
const ent_value *ent_infer_input(const ent_infer *infer, uint32_t index);
/* code MODEL at this node. */
ent_status ent_infer_fail(const ent_infer *infer, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "[2,3]" of an input, for messages. */
const char *ent_infer_text(const ent_infer *infer, uint32_t index);

void ent_infer_set(ent_infer *infer, uint32_t output, uint32_t dtype, uint32_t rank, const ent_dim *dims);
void ent_infer_copy(ent_infer *infer, uint32_t output, uint32_t input); /* dtype and shape of an input */
/* Arithmetic in which UNKNOWN stays unknown. */
ent_dim ent_infer_dim(const ent_infer *infer, ent_expr_kind kind, ent_dim a, ent_dim b);
ent_dim ent_infer_product(const ent_infer *infer, const ent_dim *dims, uint32_t count);
/* True when both are numbers and differ: a sure mismatch. */
bool ent_infer_differ(const ent_infer *infer, ent_dim a, ent_dim b);
/* The better known of two dims that must be equal. */
ent_dim ent_infer_same(const ent_infer *infer, ent_dim a, ent_dim b);
/* Adds a shape to the broadcast result in *rank, dims; false on a mismatch. */
bool ent_infer_broadcast(const ent_infer *infer, uint32_t *rank, ent_dim *dims, uint32_t other_rank,
                         const ent_dim *other);
ent_status ent_infer_broadcast_inputs(ent_infer *infer, uint32_t dtype);
/* Every listed input that is there has the dtype of the first one. */
ent_status ent_infer_same_dtype(const ent_infer *infer, uint32_t from, uint32_t to);
/* Error (code LIMIT) when a result would have more axes than ENT_MAX_RANK. */
ent_status ent_infer_check_rank(const ent_infer *infer, uint64_t rank);
/* Resolves a negative axis; error when outside -rank..rank-1. */
ent_status ent_infer_axis(const ent_infer *infer, int64_t axis, uint32_t rank, uint32_t *out);
/* Known elements of a whole-number input (or whole elements of a float one). False: absent or nothing known.
 */
bool ent_infer_elements(const ent_infer *infer, uint32_t index, ent_dim *out, uint32_t *out_count);
/* The same when all are numbers. */
bool ent_infer_numbers(const ent_infer *infer, uint32_t index, int64_t *out, uint32_t *out_count);
/* Notes that the shape depends on the elements of this input; done by ent_infer_elements. */
void ent_infer_want(const ent_infer *infer, uint32_t index);
/* A set of axes as a mask; error on one out of range or twice. */
ent_status ent_infer_axes(const ent_infer *infer, const int64_t *axes, uint32_t count, uint32_t rank,
                          uint32_t *out_mask);
/* An ints attribute of `count` items; `missing` fills in when absent. */
ent_status ent_infer_ints(const ent_infer *infer, const char *name, uint32_t count, int64_t missing,
                          int64_t *out);

/* infer_window.c: strides, dilations and pads of a window over `count` axes, with their defaults. pads: begin
 * and end together. */
typedef struct ent_window {
    int64_t strides[ENT_MAX_RANK], dilations[ENT_MAX_RANK], pads_begin[ENT_MAX_RANK], pads[ENT_MAX_RANK];
    bool same; /* auto_pad SAME_UPPER or SAME_LOWER */
} ent_window;
ent_status ent_infer_window_read(const ent_infer *infer, uint32_t count, ent_window *out);
/* Extent of spatial axis `axis` (0: the first) of the result. */
ent_status ent_infer_window_extent(const ent_infer *infer, const ent_window *window, uint32_t axis,
                                   ent_dim kernel, bool ceil, ent_dim *out);

/* infer_contract.c: the shape rules of MatMul (left operand: input 0) and Conv, of any types. */
ent_status ent_infer_matmul(ent_infer *infer, uint32_t right, uint32_t dtype);
ent_status ent_infer_conv(ent_infer *infer, uint32_t filter, uint32_t bias, uint32_t dtype);

/* propagate.c: known elements of output 0, after its shape rule. */
void ent_infer_propagate(ent_infer *infer);
/* infer_slice.c: the extent that one axis keeps. */
ent_dim ent_infer_slice_extent(const ent_infer *infer, ent_dim dim, ent_dim start, ent_dim end, int64_t step,
                               ent_dim *out_start);

#endif
