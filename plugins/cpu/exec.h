/* The tile executor, shared by its own files only (exec_*.c).
 *
 * Loading turns a tile program into a plan: a list of steps that each do much work at once. Whole loop nests
 * around a matrix multiply or a window become one step; elementwise operations that a kernel can do at its
 * end are folded into it. A run computes, for each instance, how much of its tiles lies inside the outputs,
 * then does the steps.
 *
 * Words
 * - tile: one version of a tile value of the program. Each whole overwrite makes a version, so that a version
 * is written by one step (many within loops) and can live in an input or output buffer instead of scratch.
 * - view: where a tile is right now: base address and strides.
 * - class: tile axes that always have the same extent. A class that only ever ends at the edge of outputs is
 * *clipped*: an instance at the edge computes only what will be stored.
 * - access: the coordinates of a move, with the layout's strides. Affine: an address is linear in the tile's
 * position. */
#ifndef ENT_CPU_EXEC_H
#define ENT_CPU_EXEC_H

#include <string.h>

#include "abi/ent_tile.h"
#include "abi/ent_tile_codec.h"
#include "kernels/kernels.h"
#include "plugins/common/common.h"
#include "pool.h"

#define EXEC_NONE ENT_TILE_NONE
#define EXEC_RANK ENT_TILE_MAX_RANK
#define EXEC_MAX_OPERANDS 4 /* of one nest: a destination and three sources */

typedef struct exec_plan exec_plan;
typedef struct exec_step exec_step;

/* One coordinate of an access: floor((base + terms + step * t) / divisor) + gathered, inside when in [0,
 * limit). */
typedef struct exec_dim {
    int64_t base, step, divisor, limit;
    int64_t stride;              /* elements per coordinate; per block if block > 1 */
    int64_t block, block_stride; /* elements per coordinate within a block; block 1: none */
    uint32_t axis;               /* of the tile, or NONE */
    uint32_t gather;             /* tile, or NONE */
    uint32_t exact, term_count;
    ent_tile_term terms[ENT_TILE_MAX_TERMS];
} exec_dim;

typedef struct exec_access {
    uint32_t buffer, rank, element_bytes;
    bool affine;
    int64_t strides[EXEC_RANK]; /* elements per position along each tile axis; affine only */
    exec_dim dims[ENT_MAX_RANK];
} exec_access;

typedef struct exec_tile {
    uint32_t dtype, rank, element_bytes, source; /* source: the program's value */
    int64_t shape[EXEC_RANK];
    int64_t strides[EXEC_RANK]; /* in scratch */
    uint16_t axis_class[EXEC_RANK];
    size_t offset; /* in scratch */
    uint32_t writers, readers;
    bool viewable;   /* a load may leave it in its buffer */
    uint32_t direct; /* access of the store that it is written straight to, or NONE */
} exec_tile;

typedef struct exec_view {
    char *base;
    const int64_t *strides; /* elements */
} exec_view;

/* The state of one thread in a run. */
typedef struct exec_run {
    const exec_plan *plan;
    void *const *buffers;
    char *scratch;
    exec_view *views; /* one a tile */
    int64_t *extents; /* one a class */
    const void *packed_b,
        *packed_by; /* what the pack area of which matrix step holds; NULL: nothing of use */
    int64_t packed_n;
    uint64_t tables_made; /* by step: tables that are the same for every instance are in its scratch */
    int64_t variables[ENT_TILE_MAX_VARIABLES];
} exec_run;

typedef void (*exec_step_fn)(exec_run *run, const exec_step *step);

typedef enum exec_kind {
    EXEC_NOTHING, /* folded into another step */
    EXEC_LOAD,
    EXEC_STORE,
    EXEC_FILL,
    EXEC_MULTIPLY, /* MMA on tiles */
    EXEC_MAP,
    EXEC_REDUCE,
    EXEC_LOOP,
    EXEC_END,
    EXEC_RESHAPE,
    EXEC_PERMUTE,
    EXEC_IOTA,
    EXEC_GEMM,       /* loops around an MMA with its loads */
    EXEC_WINDOW,     /* loops around a window's map with its loads */
    EXEC_SOFTMAX,    /* rows */
    EXEC_LAYER_NORM, /* rows */
} exec_kind;

struct exec_step {
    exec_kind kind;
    exec_step_fn run;
    const ent_tile_op *op;
    uint32_t dst; /* tile or NONE */
    uint32_t source_count;
    uint32_t source[2 + ENT_MAX_RANK]; /* tiles; of moves: what is stored, then the gathers */
    uint32_t access;
    uint32_t depth;     /* loops around it */
    uint32_t jump;      /* LOOP: its END; END: its LOOP */
    bool accumulates;   /* reads dst as well */
    bool vector;        /* runs on kernels of the ISA level */
    bool emulated;      /* through another dtype */
    int64_t begin, end; /* LOOP */
    size_t data_offset; /* of its own place in scratch */
    void *data;         /* the kind's own */
};

/* A class ends where the last of these stores ends. */
typedef struct exec_clip {
    uint32_t axis_class, access, axis;
} exec_clip;

/* Blocks of memory that live as long as the plan. */
typedef struct exec_arena {
    const ent_host *host;
    void *first;
    char *at;
    size_t left;
    bool failed;
} exec_arena;

struct exec_plan {
    const ent_cpu_kernels *kernels;
    ent_tile_program program;
    exec_arena arena;
    int64_t *sizes; /* values of the program's expressions */
    ent_ops_error error;
    exec_access *accesses;
    exec_tile *tiles;
    uint32_t tile_count;
    exec_step *steps;
    uint32_t step_count;
    exec_clip *clips;
    uint32_t clip_count;
    int64_t *extents; /* of each class, unclipped */
    uint32_t class_count;
    int64_t grid[ENT_TILE_MAX_VARIABLES]; /* instances along each grid axis */
    int64_t instances;
    uint32_t *binding; /* buffer -> binding, NONE for scratch buffers */
    uint64_t *binding_bytes;
    uint32_t binding_count;
    char **owned;         /* scratch buffers */
    size_t scratch_bytes; /* of one thread */
    double work_ns;       /* of all instances on one thread, roughly */
    uint32_t tier;
    char path[64];
};

/* ---- exec_load.c: from bytes to a plan ---- */
void *exec_allocate(exec_arena *arena, size_t bytes); /* zeroed; NULL sets failed */
/* Decodes, verifies and plans for these symbol values (NULL: all zero is not tried, there are none). On
 * failure the code and plan->error tell why. The plan is freed by the caller either way. */
ent_code exec_plan_create(const ent_host *host, const ent_cpu_kernels *kernels, const uint8_t *bytes,
                          size_t size, const int64_t *symbols, size_t symbol_count, exec_plan **out);
void exec_plan_destroy(exec_plan *plan);
ent_code exec_refuse(exec_plan *plan, ent_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- exec_plan.c ---- */
ent_code exec_make_steps(exec_plan *plan);
/* ---- exec_versions.c, exec_classes.c, exec_fold.c, exec_rows.c: passes over the steps ---- */
ent_code exec_make_tiles(exec_plan *plan);
void exec_settle_places(
    exec_plan *plan); /* which tiles are views of inputs, or written straight to outputs */
ent_code exec_make_classes(exec_plan *plan);
void exec_fold_steps(exec_plan *plan);
void exec_find_rows(exec_plan *plan);
void exec_settle_tier(exec_plan *plan);
void exec_softmax(exec_run *run, const exec_step *step);
void exec_layer_norm(exec_run *run, const exec_step *step);
uint32_t exec_rows_mask(const exec_step *step); /* axes that make a row */

/* ---- exec_run.c ---- */
/* Runs all instances (pool NULL: on the caller alone). scratch has pool threads * plan->scratch_bytes.
 * buffers: one address a buffer of the program. */
void exec_plan_run(const exec_plan *plan, ent_cpu_pool *pool, char *scratch, void *const *buffers);

/* ---- exec_access.c: places of tiles ---- */
/* The first coordinate of a dim, without the tile's part. */
int64_t exec_dim_start(const exec_run *run, const exec_dim *dim);
/* Positions t in [0, extent) whose coordinate start + step * t lies in [0, limit). Empty: lo == hi. */
void exec_interval(int64_t start, int64_t step, int64_t limit, int64_t extent, int64_t *lo, int64_t *hi);
/* The rectangle of an affine access that lies inside; returns the element offset of position 0. */
int64_t exec_rectangle(const exec_run *run, const exec_access *access, const exec_tile *tile, int64_t *lo,
                       int64_t *hi);
/* Puts the tile where its step will write it: straight into the output when that holds all of it, else
 * scratch. */
void exec_place(exec_run *run, uint32_t tile);
void exec_place_scratch(exec_run *run, uint32_t tile);

/* ---- exec_move.c ---- */
void exec_load(exec_run *run, const exec_step *step);
void exec_store(exec_run *run, const exec_step *step);
void exec_fill(exec_run *run, const exec_step *step);
void exec_reshape(exec_run *run, const exec_step *step);
void exec_permute(exec_run *run, const exec_step *step);
void exec_iota(exec_run *run, const exec_step *step);
/* exec_table.c: a load or store whose addresses are not linear in the tile's position. gathers: tiles of the
 * dims that gather, in order. fill: bytes of an element outside; NULL: a store. */
void exec_move_by_table(exec_run *run, const exec_step *step, uint32_t tile, const uint32_t *gathers,
                        const char *fill);
/* Copies between any strides (elements), up to EXEC_RANK axes. */
void exec_copy(const ent_cpu_kernels *kernels, uint32_t rank, const int64_t *extents, const char *from,
               const int64_t *from_strides, char *to, const int64_t *to_strides, uint32_t element_bytes);
void exec_fill_value(uint32_t rank, const int64_t *extents, char *to, const int64_t *strides, uint32_t dtype,
                     double value);
/* The bytes of a number as an element; returns its size. */
uint32_t exec_element(uint32_t dtype, double value, void *out);

/* ---- exec_map.c, exec_row.c, exec_reduce.c, exec_gemm.c, exec_window.c ---- */
bool exec_bind_map(exec_plan *plan, exec_step *step);
void exec_map(exec_run *run, const exec_step *step);
bool exec_bind_reduce(exec_plan *plan, exec_step *step);
void exec_reduce(exec_run *run, const exec_step *step);
bool exec_bind_multiply(exec_plan *plan, exec_step *step);
void exec_multiply(exec_run *run, const exec_step *step);
/* Recognises a nest that starts at op `at`: fills the step and returns the number of ops it stands for; 0:
 * none. */
uint32_t exec_match_gemm(exec_plan *plan, uint32_t at, exec_step *step);
uint32_t exec_match_window(exec_plan *plan, uint32_t at, exec_step *step);
void exec_gemm(exec_run *run, const exec_step *step);
void exec_gemm_integer(exec_run *run, const exec_step *step); /* into i32 */
void exec_window(exec_run *run, const exec_step *step);
/* Folds the map at `step` into the nest if its kernel can do it last. */
bool exec_gemm_fold(exec_plan *plan, exec_step *nest, const exec_step *step);
bool exec_window_fold(exec_plan *plan, exec_step *nest, const exec_step *step);
size_t exec_gemm_scratch(exec_plan *plan, exec_step *nest,
                         size_t offset); /* claims scratch; returns the new end */
size_t exec_window_scratch(exec_plan *plan, exec_step *nest, size_t offset);
size_t exec_multiply_scratch(exec_plan *plan, exec_step *step, size_t offset);
size_t exec_move_scratch(exec_plan *plan, exec_step *step, size_t offset);
double exec_nest_flops(const exec_plan *plan, const exec_step *nest);
int64_t exec_window_taps(const exec_step *nest);

/* ---- helpers ---- */

/* Operands walked together: an inner run of n elements (steps 0 or 1) inside up to three outer axes (byte
 * strides). */
typedef struct exec_nest {
    int64_t n;
    int64_t inner[EXEC_MAX_OPERANDS];
    int64_t extents[EXEC_RANK];
    int64_t strides[EXEC_MAX_OPERANDS][EXEC_RANK];
} exec_nest;

/* views: of the operands, which may be broadcast (their extent is 1 where the tile's is not). */
void exec_nest_make(exec_nest *nest, const exec_run *run, const uint32_t *tiles, uint32_t count);

static inline int64_t exec_extent(const exec_run *run, const exec_tile *tile, uint32_t axis) {
    return run->extents[tile->axis_class[axis]];
}

/* size: table */
static inline uint32_t exec_cpu_type(uint32_t dtype) {
    switch (dtype) {
    case ENT_DTYPE_F32:
        return ENT_CPU_F32;
    case ENT_DTYPE_F64:
        return ENT_CPU_F64;
    case ENT_DTYPE_I32:
        return ENT_CPU_I32;
    case ENT_DTYPE_I64:
        return ENT_CPU_I64;
    case ENT_DTYPE_U8:
        return ENT_CPU_U8;
    case ENT_DTYPE_I8:
        return ENT_CPU_I8;
    case ENT_DTYPE_BOOL:
        return ENT_CPU_BOOL;
    case ENT_DTYPE_F16:
        return ENT_CPU_F16;
    case ENT_DTYPE_BF16:
        return ENT_CPU_BF16;
    default:
        return ENT_CPU_TYPE_COUNT;
    }
}

static inline bool exec_is_float(uint32_t dtype) {
    return (dtype >= ENT_DTYPE_F32 && dtype <= ENT_DTYPE_F64) ||
           (dtype >= ENT_DTYPE_F8E4M3FN && dtype <= ENT_DTYPE_F8E8M0);
}

static inline int64_t exec_elements(const exec_tile *tile) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tile->rank; i++) count *= tile->shape[i];
    return count;
}

#endif
