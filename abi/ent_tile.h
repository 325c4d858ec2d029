/* Tile IR: a block-level program. One program instance computes one output tile.
 *
 * Meaning (core/ops/tile_interpret.c is its definition in plain C):
 * - The grid is a list of axes; axis g has `extent` elements cut into tiles of `step`; instance variables
 * hold the first element of the instance's tile: v[g] in {0, step, 2*step, ...} < extent. Instances are
 * independent and may run in any order and in parallel; two instances never store to the same element, and an
 * instance loads from an OUTPUT or SCRATCH buffer only elements that it stored itself before (the interpreter
 * reports both).
 * - Tiles are mutable registers with a constant shape, dtype and memory space. Nothing is implied by a space
 * but where the value is meant to stay; it prices and plans, it does not change meaning.
 * - The body is a flat list of operations; LOOP ... END nests. A loop's variable counts begin, begin+step,
 * ... < end.
 * - A load reads a rectangle of a buffer (in logical coordinates; the buffer's layout is the executor's
 * business). Elements outside the buffer, or at or beyond an access bound, give the load's fill value. A
 * store skips them. Arithmetic always covers the whole tile, so that edges need no second program.
 * - f32 arithmetic; an executor may reassociate sums (MMA, REDUCE) and contract multiply-add, nothing else.
 * - A moved tile has its buffer's dtype; MAP copy converts. Tiles are of byte or wider dtypes.
 * - A tile is read only after it was written. A loop that may run no time defines nothing for what follows
 * it. The copies under way are the same at a loop's start and end, and none is left at the program's end.
 * Every integer that depends on sizes is an ent_dim (see ent_expr.h), so one program serves a range of
 * shapes. */
#ifndef ENT_TILE_H
#define ENT_TILE_H

#include "abi/ent_expr.h"
#include "abi/ent_types.h"

#define ENT_TILE_MAX_RANK 4
#define ENT_TILE_MAX_TERMS 6
#define ENT_TILE_MAX_SOURCES 4
#define ENT_TILE_MAX_VARIABLES 64
#define ENT_TILE_MAX_ELEMENTS (1 << 26) /* of one tile */
#define ENT_TILE_NONE 0xffffffffu

typedef enum ent_tile_space {
    ENT_SPACE_REGISTER = 1, /* the matrix or vector unit's own accumulators */
    ENT_SPACE_LOCAL = 2,    /* private on-chip memory: L1, shared memory */
    ENT_SPACE_SHARED = 3    /* next level on chip: L2 */
} ent_tile_space;

typedef enum ent_tile_role {
    ENT_ROLE_INPUT = 1,
    ENT_ROLE_OUTPUT = 2,
    ENT_ROLE_CONSTANT = 3,
    ENT_ROLE_SCRATCH = 4 /* device memory that lives for one dispatch, shared by its instances */
} ent_tile_role;

/* A buffer the program is called with; its index among all buffers is its binding. */
typedef struct ent_tile_buffer {
    uint32_t role;  /* ent_tile_role */
    uint32_t dtype; /* ent_dtype */
    uint32_t rank;
    uint32_t reserved;
    ent_dim dims[ENT_MAX_RANK]; /* logical */
    ent_layout layout;          /* strided */
} ent_tile_buffer;

typedef struct ent_tile_axis {
    ent_dim extent;
    int64_t step;
} ent_tile_axis;

typedef struct ent_tile_value {
    uint32_t dtype; /* ent_dtype */
    uint32_t space; /* ent_tile_space */
    uint32_t rank;  /* 1..ENT_TILE_MAX_RANK */
    uint32_t reserved;
    int64_t shape[ENT_TILE_MAX_RANK];
} ent_tile_value;

/* Variables: 0..grid_count-1 are the instance's, then one per LOOP in program order. */
typedef struct ent_tile_term {
    uint32_t variable;
    uint32_t reserved;
    int64_t coefficient;
} ent_tile_term;

/* Coordinate along one buffer dimension for tile position t:
 *   floor((base + sum(coefficient * variable) + step * t[tile_axis]) / divisor), plus gather[t] if gather is
 * a tile; when divisor > 1 and the sum is not a multiple of it and `exact` is set, the element counts as
 * outside (transposed convolution); without `exact` it rounds down (nearest resize). tile_axis NONE: no tile
 * axis advances here. `bound`: coordinates
 * >= bound count as outside though the buffer may be larger. A negative coordinate is outside. */
typedef struct ent_tile_index {
    int64_t base;
    uint32_t term_count;
    uint32_t tile_axis;
    int64_t step;
    int64_t divisor; /* >= 1 */
    uint32_t exact;
    uint32_t gather; /* tile value (i32 or i64, same rank as the moved tile, size-1 axes broadcast) or NONE */
    ent_dim bound;   /* ENT_TILE_BOUND_ALL: the buffer's extent */
    ent_tile_term terms[ENT_TILE_MAX_TERMS];
} ent_tile_index;
#define ENT_TILE_BOUND_ALL INT64_MIN

/* One entry per buffer dimension. A tile axis that no dimension names is broadcast on load (and must have
 * extent 1 on store). Two dimensions may name the same tile axis (diagonals); one dimension names at most
 * one. */
typedef struct ent_tile_access {
    uint32_t buffer;
    uint32_t rank; /* of the buffer */
    ent_tile_index index[ENT_MAX_RANK];
} ent_tile_access;

typedef enum ent_tile_opcode {
    ENT_TILE_LOAD = 1,   /* dst = buffer[access], outside = f[0] */
    ENT_TILE_STORE = 2,  /* buffer[access] = src[0] */
    ENT_TILE_FILL = 3,   /* dst = f[0] */
    ENT_TILE_MMA = 4,    /* dst[m.., n] += sum_k a[m.., k] * b[k, n]; leading axes of a are all m; dst is f32
                            (i32, whose sums wrap, for 8-bit integers, each less its zero point: f[0] of
                            a, f[1] of b). flag TRANSPOSE_B: b[n, k] */
    ENT_TILE_MAP = 5,    /* dst = map(src...); same rank, size-1 axes of sources broadcast */
    ENT_TILE_REDUCE = 6, /* dst = kind over the axes in axis_mask of src[0]; dst has size 1 there */
    ENT_TILE_LOOP = 7,   /* variable = begin; < end; += step */
    ENT_TILE_END = 8,
    ENT_TILE_COPY = 9,     /* like LOAD but asynchronous: dst may be read only after WAIT */
    ENT_TILE_WAIT = 10,    /* until at most `count` copies are still under way (oldest first) */
    ENT_TILE_RESHAPE = 11, /* dst = src[0], same row-major element order, same element count */
    ENT_TILE_PERMUTE = 12, /* dst axis i = src[0] axis perm[i] */
    ENT_TILE_IOTA =
        13 /* dst = f[0] + variable * step + position along axis_mask's one axis (no variable: NONE) */
} ent_tile_opcode;

/* Elementwise functions; parameters in f[]. Append only. */
typedef enum ent_tile_map {
    ENT_MAP_NONE = 0,
    ENT_MAP_COPY = 1, /* also casts: saturating to nothing, C conversion; bool = (x != 0) */
    ENT_MAP_NEG,
    ENT_MAP_ABS,
    ENT_MAP_SQRT,
    ENT_MAP_RSQRT,
    ENT_MAP_RECIPROCAL,
    ENT_MAP_EXP,
    ENT_MAP_LOG,
    ENT_MAP_TANH,
    ENT_MAP_SIGMOID,
    ENT_MAP_ERF,
    ENT_MAP_RELU,
    ENT_MAP_LEAKY_RELU,   /* f0 alpha */
    ENT_MAP_ELU,          /* f0 alpha */
    ENT_MAP_SELU,         /* f0 alpha, f1 gamma */
    ENT_MAP_HARD_SIGMOID, /* max(0, min(1, f0 x + f1)) */
    ENT_MAP_HARD_SWISH,   /* x * max(0, min(1, x/6 + 0.5)) */
    ENT_MAP_GELU,         /* x/2 (1 + erf(x / sqrt 2)) */
    ENT_MAP_GELU_TANH,
    ENT_MAP_SILU,
    ENT_MAP_MISH,
    ENT_MAP_SOFTPLUS,
    ENT_MAP_SOFTSIGN,
    ENT_MAP_CLIP, /* min(max(x, f0), f1) */
    ENT_MAP_FLOOR,
    ENT_MAP_CEIL,
    ENT_MAP_ROUND /* half to even */,
    ENT_MAP_SIGN,
    ENT_MAP_NOT,
    ENT_MAP_SIN,
    ENT_MAP_COS,
    ENT_MAP_SQUARE,
    ENT_MAP_SCALE_SHIFT, /* x * f0 + f1 */
    ENT_MAP_POW_SCALAR,  /* pow(x, f0) */
    ENT_MAP_ADD,
    ENT_MAP_SUB,
    ENT_MAP_MUL,
    ENT_MAP_DIV,
    ENT_MAP_MAX,
    ENT_MAP_MIN,
    ENT_MAP_POW,
    ENT_MAP_MOD,
    ENT_MAP_PRELU,
    ENT_MAP_EQUAL,
    ENT_MAP_LESS,
    ENT_MAP_LESS_EQUAL,
    ENT_MAP_GREATER,
    ENT_MAP_GREATER_EQUAL,
    ENT_MAP_AND,
    ENT_MAP_OR,
    ENT_MAP_XOR,
    ENT_MAP_FMA,    /* a * b + c */
    ENT_MAP_SELECT, /* a ? b : c */
    ENT_MAP_COUNT
} ent_tile_map;

typedef enum ent_reduce_kind {
    ENT_REDUCE_SUM = 1,
    ENT_REDUCE_MAX = 2,
    ENT_REDUCE_MIN = 3,
    ENT_REDUCE_PROD = 4
} ent_reduce_kind;

typedef enum ent_tile_flag { ENT_TILE_TRANSPOSE_B = 1u } ent_tile_flag;

typedef struct ent_tile_op {
    uint32_t opcode; /* ent_tile_opcode */
    uint32_t kind;   /* ent_tile_map for MAP, ent_reduce_kind for REDUCE */
    uint32_t dst;    /* tile value or NONE */
    uint32_t source_count;
    uint32_t source[ENT_TILE_MAX_SOURCES]; /* tile values */
    uint32_t access;                       /* LOAD, STORE, COPY: index of the access */
    uint32_t flags;
    uint32_t axis_mask; /* REDUCE, IOTA */
    uint32_t variable;  /* LOOP; IOTA: variable added, or NONE */
    ent_dim begin, end; /* LOOP */
    int64_t step;       /* LOOP; IOTA: coefficient of the variable */
    uint32_t count;     /* WAIT */
    uint8_t perm[ENT_TILE_MAX_RANK];
    double f[2];
} ent_tile_op;

/* The whole program. Arrays are borrowed from whoever built or decoded it. */
typedef struct ent_tile_program {
    ent_str name;
    const ent_tile_axis *grid;
    uint32_t grid_count;
    const ent_tile_buffer *buffers;
    uint32_t buffer_count;
    const ent_tile_value *values;
    uint32_t value_count;
    const ent_tile_access *accesses;
    uint32_t access_count;
    const ent_tile_op *ops;
    uint32_t op_count;
    uint32_t variable_count; /* grid axes and loops */
    const ent_expr *exprs;
    uint32_t expr_count;
    const ent_str *symbols;
    uint32_t symbol_count;
} ent_tile_program;

#endif
