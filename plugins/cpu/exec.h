/* The tile executor: tile programs run by microkernels and vector kernels. Inside plugins/cpu only.
 *
 * A program is prepared once (exec_load.c): every operation becomes a step with its access resolved to strides, and loop nests that the
 * microkernels do whole become one step each: matrix multiply (exec_gemm.c) and windows (exec_window.c). The rest runs operation by
 * operation on tiles in a thread's scratch, innermost runs through vector kernels. A run allocates nothing. */
#ifndef ENT_CPU_EXEC_H
#define ENT_CPU_EXEC_H

#include "abi/ent_tile.h"
#include "kernels/kernels.h"
#include "plugins/common/common.h"
#include "pool.h"

#define EXEC_MAX_LOOPS 8

/* Scratch memory of the device's threads, shared by its kernels: one of them runs at a time. */
typedef struct exec_scratch {
    const ent_host *host;
    uint8_t **blocks; /* one a thread */
    uint64_t size_bytes;
    int threads;
} exec_scratch;
ent_code exec_scratch_reserve(exec_scratch *scratch, uint64_t size_bytes);

/* A buffer dimension's coordinate -> element offset. */
typedef struct exec_dim {
    int64_t stride;                /* unblocked */
    int64_t block, block_stride;   /* block > 1: offset = c / block * stride + c % block * block_stride */
    int64_t extent;                /* bound: min of the buffer's and the access's */
} exec_dim;

typedef struct exec_access {
    const ent_tile_access *source;
    uint32_t element_bytes;
    exec_dim dims[ENT_MAX_RANK];
    bool has_gather, has_divisor, has_block;
} exec_access;

typedef enum exec_kind {
    EXEC_LOAD,
    EXEC_STORE,
    EXEC_FILL,
    EXEC_MAP,
    EXEC_REDUCE,
    EXEC_LOOP,
    EXEC_END,
    EXEC_RESHAPE,
    EXEC_PERMUTE,
    EXEC_IOTA,
    EXEC_MMA,    /* unrecognised: scalar */
    EXEC_GEMM,   /* whole loop nest */
    EXEC_WINDOW, /* whole loop nest */
    EXEC_SOFTMAX,
    EXEC_LAYER_NORM
} exec_kind;

/* A loop nest around one MMA. Loops over k blocks are gone: the kernel blocks k itself. */
typedef struct exec_gemm_step {
    const ent_tile_op *loops[EXEC_MAX_LOOPS];
    int64_t trips[EXEC_MAX_LOOPS];
    uint32_t loop_count;
    uint32_t load_a, load_b;    /* accesses */
    uint32_t acc, tile_a, tile_b;
    uint32_t init_access;       /* bias access, NONE: zeros or the acc tile */
    bool init_is_tile;          /* accumulates into what the acc tile holds */
    bool transpose_b;
    int64_t batch, k, k_start;  /* k_start: element where the k range begins */
    bool pack_a, im2col, pack_b;
    bool clip;
    float lo, hi;
    uint32_t add_access;        /* residual that is added before the clip, NONE */
    uint32_t store_access;      /* result goes straight to the buffer, NONE: to the acc tile */
    uint64_t rows_offset, zero_offset, pack_a_offset, pack_b_offset, c_rows_offset, add_rows_offset; /* in scratch */
} exec_gemm_step;

typedef struct exec_window_step {
    const ent_tile_op *loops[EXEC_MAX_LOOPS];
    int64_t trips[EXEC_MAX_LOOPS];
    uint32_t loop_count;
    ent_cpu_window_op op;
    uint32_t acc;
    uint32_t load_x, load_w; /* accesses; load_w NONE for pools */
    uint32_t init_access;    /* bias, NONE */
    bool clip;
    float lo, hi;
    float scale;
    int64_t taps;
    uint32_t store_access;
    uint64_t taps_offset;
} exec_window_step;

typedef struct exec_step {
    exec_kind kind;
    const ent_tile_op *op;
    uint32_t jump;   /* LOOP: step after its END; END: its LOOP */
    uint32_t access; /* LOAD, STORE */
    bool in_place;   /* LOAD: nothing else writes the tile, so that a plain view serves; MAP: writes straight to the store's buffer */
    uint32_t store;  /* MAP with in_place: the access */
    int8_t type;     /* MAP: ent_cpu_type of the sources, -1: scalar code */
    exec_gemm_step *gemm;
    exec_window_step *window;
} exec_step;

typedef struct exec_kernel {
    ent_kernel head;
    const ent_cpu_kernels *kernels;
    ent_cpu_pool *pool;
    exec_scratch *scratch;
    ent_tile_program program;
    void *memory; /* chain of what decoding allocated */
    exec_access *accesses;
    exec_step *steps;
    uint32_t step_count;
    uint64_t *tile_offsets; /* of each tile in scratch */
    uint64_t scratch_bytes; /* of one thread */
    uint64_t *shared_sizes; /* SCRATCH buffers of the program: bytes */
    void **shared;          /* their memory */
    int64_t instances;
    int64_t grid_counts[8];
    bool parallel;
    uint64_t *binding_bytes;
} exec_kernel;

/* Where a tile is at the moment: its scratch, or a view of a buffer. Strides in elements. */
typedef struct exec_tile {
    uint8_t *data;
    int64_t strides[ENT_TILE_MAX_RANK];
} exec_tile;

/* One instance on one thread. */
typedef struct exec_run {
    exec_kernel *kernel;
    void *const *buffers; /* in the program's order */
    uint8_t *scratch;
    exec_tile *tiles;     /* in scratch */
    int64_t variables[ENT_TILE_MAX_TERMS * 4];
} exec_run;

/* exec_load.c */
ent_code exec_kernel_load(ent_device *device, const ent_cpu_kernels *kernels, ent_cpu_pool *pool, exec_scratch *scratch,
                          const ent_call *call, const uint8_t *bytes, size_t size, ent_kernel **out);
void exec_kernel_unload(ent_kernel *kernel);
/* exec_match.c: replaces what is recognised in kernel->steps; adds scratch needs. */
ent_code exec_match(exec_kernel *kernel, const ent_call *call);
uint64_t exec_reserve(exec_kernel *kernel, uint64_t bytes); /* offset of fresh scratch */
void *exec_take(exec_kernel *kernel, size_t bytes);         /* zeroed memory that lives with the kernel */

/* exec_access.c */
/* Coordinate of dimension d for tile position 0 (before any divisor). */
int64_t exec_coordinate(const exec_run *run, const ent_tile_index *index);
void exec_load_tile(exec_run *run, const exec_step *step);
void exec_store_tile(exec_run *run, const exec_step *step);
/* Rectangle [lo, hi) of tile positions inside the buffer, element offset of position 0, and stride per tile axis, for accesses
 * without gather, divisor or block on a moving dimension. False where a dimension without axis is outside. */
bool exec_affine(const exec_run *run, const exec_access *access, uint32_t rank, const int64_t *shape, int64_t *lo, int64_t *hi,
                 int64_t *offset, int64_t *strides);
/* exec_map.c, exec_reduce.c */
void exec_map(exec_run *run, const exec_step *step);
void exec_reduce(exec_run *run, const exec_step *step);
int8_t exec_map_type(const exec_kernel *kernel, const ent_tile_op *op);
bool exec_reduce_is_vector(const exec_kernel *kernel, const ent_tile_op *op);
/* exec_gemm.c, exec_window.c */
void exec_gemm(exec_run *run, const exec_gemm_step *step);
void exec_window(exec_run *run, const exec_window_step *step);
/* exec_move.c */
void exec_reshape(exec_run *run, const exec_step *step);
void exec_permute(exec_run *run, const exec_step *step);
void exec_iota(exec_run *run, const exec_step *step);
void exec_fill(exec_run *run, const exec_step *step);
void exec_mma_scalar(exec_run *run, const exec_step *step);
/* exec_run.c */
ent_code exec_run_kernel(ent_kernel *kernel, void *const *addresses, const ent_step *step);

static inline const ent_tile_value *exec_value(const exec_kernel *kernel, uint32_t tile) { return &kernel->program.values[tile]; }
static inline int64_t exec_elements(const ent_tile_value *value) {
    int64_t count = 1;
    for (uint32_t i = 0; i < value->rank; i++) count *= value->shape[i];
    return count;
}
/* Row-major strides. */
static inline void exec_plain_strides(const ent_tile_value *value, int64_t *out) {
    int64_t stride = 1;
    for (uint32_t i = value->rank; i-- > 0; stride *= value->shape[i]) out[i] = stride;
}

#endif
