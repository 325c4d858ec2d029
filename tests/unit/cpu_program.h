/* Tile programs put together by hand, and a check that the executor computes what the interpreter does. */
#ifndef CPU_PROGRAM_H
#define CPU_PROGRAM_H

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

#define MAX_ITEMS 64

typedef struct build {
    ent_tile_program program;
    ent_tile_axis grid[8];
    ent_tile_buffer buffers[16];
    ent_tile_value values[MAX_ITEMS];
    ent_tile_access accesses[MAX_ITEMS];
    ent_tile_op ops[MAX_ITEMS];
    ent_expr exprs[4];
    ent_str symbols[4];
} build;

static uint64_t random_state = 1;
static inline uint32_t random_u32(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}
static inline int64_t random_in(int64_t low, int64_t high) {
    return low + (int64_t)(random_u32() % (uint32_t)(high - low + 1));
}

static inline void build_begin(build *b) {
    memset(b, 0, sizeof *b);
    b->program.name = (ent_str)ENT_STR("test");
    b->program.grid = b->grid;
    b->program.buffers = b->buffers;
    b->program.values = b->values;
    b->program.accesses = b->accesses;
    b->program.ops = b->ops;
    b->program.exprs = b->exprs;
    b->program.symbols = b->symbols;
}

/* Grid axes first; each returns an id. */
static inline uint32_t build_grid(build *b, int64_t extent, int64_t step) {
    b->grid[b->program.grid_count++] = (ent_tile_axis){extent, step};
    return b->program.variable_count++;
}

static inline uint32_t build_buffer(build *b, uint32_t role, uint32_t dtype, uint32_t rank,
                                    const int64_t *dims) {
    ent_tile_buffer *buffer = &b->buffers[b->program.buffer_count];
    buffer->role = role;
    buffer->dtype = dtype;
    buffer->rank = rank;
    for (uint32_t i = 0; i < rank; i++) buffer->dims[i] = dims[i];
    buffer->layout = ent_layout_plain(rank);
    return b->program.buffer_count++;
}

static inline void build_order(build *b, uint32_t buffer, const uint8_t *order) {
    memcpy(b->buffers[buffer].layout.order, order, b->buffers[buffer].rank);
}

static inline void build_block(build *b, uint32_t buffer, uint8_t axis, uint16_t size) {
    b->buffers[buffer].layout.block_count = 1;
    b->buffers[buffer].layout.block_axis[0] = axis;
    b->buffers[buffer].layout.block_size[0] = size;
}

static inline uint32_t build_tile(build *b, uint32_t dtype, uint32_t rank, int64_t d0, int64_t d1, int64_t d2,
                                  int64_t d3) {
    ent_tile_value *v = &b->values[b->program.value_count];
    *v = (ent_tile_value){dtype, ENT_SPACE_LOCAL, rank, 0, {d0, d1, d2, d3}};
    for (uint32_t i = rank; i < 4; i++) v->shape[i] = 0;
    return b->program.value_count++;
}

static inline uint32_t build_access(build *b, uint32_t buffer) {
    ent_tile_access *access = &b->accesses[b->program.access_count];
    access->buffer = buffer;
    access->rank = b->buffers[buffer].rank;
    for (uint32_t d = 0; d < access->rank; d++)
        access->index[d] = (ent_tile_index){
            .tile_axis = ENT_TILE_NONE, .divisor = 1, .gather = ENT_TILE_NONE, .bound = ENT_TILE_BOUND_ALL};
    return b->program.access_count++;
}

/* index[dim] = base + variable + step * position along axis. */
static inline ent_tile_index *build_index(build *b, uint32_t access, uint32_t dim, int64_t base,
                                          uint32_t variable, uint32_t axis, int64_t step) {
    ent_tile_index *x = &b->accesses[access].index[dim];
    x->base = base;
    x->tile_axis = axis;
    x->step = axis == ENT_TILE_NONE ? 0 : step;
    if (variable != ENT_TILE_NONE) x->terms[x->term_count++] = (ent_tile_term){variable, 0, 1};
    return x;
}

static inline void build_term(build *b, uint32_t access, uint32_t dim, uint32_t variable,
                              int64_t coefficient) {
    ent_tile_index *x = &b->accesses[access].index[dim];
    x->terms[x->term_count++] = (ent_tile_term){variable, 0, coefficient};
}

static inline ent_tile_op *build_op(build *b, uint32_t opcode, uint32_t dst) {
    ent_tile_op *op = &b->ops[b->program.op_count++];
    ck_assert_uint_lt(b->program.op_count, MAX_ITEMS);
    op->opcode = opcode;
    op->dst = dst;
    return op;
}

static inline void build_load(build *b, uint32_t dst, uint32_t access, double outside) {
    ent_tile_op *op = build_op(b, ENT_TILE_LOAD, dst);
    op->access = access;
    op->f[0] = outside;
}

static inline void build_store(build *b, uint32_t access, uint32_t source) {
    ent_tile_op *op = build_op(b, ENT_TILE_STORE, ENT_TILE_NONE);
    op->access = access;
    op->source[op->source_count++] = source;
}

static inline void build_fill(build *b, uint32_t dst, double value) {
    build_op(b, ENT_TILE_FILL, dst)->f[0] = value;
}

static inline void build_map(build *b, uint32_t map, uint32_t dst, uint32_t a, uint32_t c, uint32_t e,
                             double f0, double f1) {
    ent_tile_op *op = build_op(b, ENT_TILE_MAP, dst);
    op->kind = map;
    op->source_count = ent_ops_map_info_get(map)->sources;
    op->source[0] = a;
    op->source[1] = op->source_count > 1 ? c : 0;
    op->source[2] = op->source_count > 2 ? e : 0;
    op->f[0] = f0;
    op->f[1] = f1;
}

static inline void build_mma(build *b, uint32_t dst, uint32_t a, uint32_t c, uint32_t flags) {
    ent_tile_op *op = build_op(b, ENT_TILE_MMA, dst);
    op->source_count = 2;
    op->source[0] = a;
    op->source[1] = c;
    op->flags = flags;
}

static inline void build_reduce(build *b, uint32_t kind, uint32_t dst, uint32_t source, uint32_t mask) {
    ent_tile_op *op = build_op(b, ENT_TILE_REDUCE, dst);
    op->kind = kind;
    op->source_count = 1;
    op->source[0] = source;
    op->axis_mask = mask;
}

static inline uint32_t build_loop(build *b, int64_t begin, int64_t end, int64_t step) {
    ent_tile_op *op = build_op(b, ENT_TILE_LOOP, ENT_TILE_NONE);
    op->begin = begin;
    op->end = end;
    op->step = step;
    op->variable = b->program.variable_count++;
    return op->variable;
}

static inline void build_end(build *b) {
    build_op(b, ENT_TILE_END, ENT_TILE_NONE);
}

/* ---- host ---- */

static void *host_allocate(void *context, size_t size, size_t alignment) {
    (void)context;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment + alignment);
}
static void host_release(void *context, void *memory) {
    (void)context;
    free(memory);
}
static const ent_host test_host = {
    {sizeof(ent_host), ENT_STRUCT_HOST, NULL}, NULL, host_allocate, host_release, NULL};

static void *message_grow(void *context, void *old, size_t size) {
    (void)context;
    return realloc(old, size);
}

/* The program's bytes; free them with free(). */
static inline void *build_bytes(const ent_tile_program *program, size_t *out_size) {
    ent_message_writer writer;
    memset(&writer, 0, sizeof writer);
    writer.grow = message_grow;
    ck_assert_int_eq(ent_tile_program_encode(program, &writer), ENT_OK);
    *out_size = writer.size;
    return writer.data;
}

/* ---- comparison ---- */

#define GUARD 64 /* elements behind each buffer that nobody may write */

typedef struct memory {
    void *data[16];
    size_t bytes[16];
} memory;

static inline int64_t buffer_bytes(const ent_tile_buffer *buffer, const int64_t *sizes) {
    int64_t dims[ENT_MAX_RANK];
    for (uint32_t d = 0; d < buffer->rank; d++) dims[d] = ent_dim_value(buffer->dims[d], sizes);
    return ent_layout_bytes(&buffer->layout, (ent_dtype)buffer->dtype, dims);
}

/* One in so many elements of float inputs is a special value; 0: none is. */
static int64_t special_every;

static inline double random_element(uint32_t dtype, uint32_t role) {
    static const double specials[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-40, -1e-40};
    /* What a special constant does at the border is open: the interpreter multiplies it by the zero outside,
     * the executor leaves such taps out. */
    if (dtype <= ENT_DTYPE_F64 && role == ENT_ROLE_INPUT && special_every > 0 &&
        random_in(1, special_every) == 1)
        return specials[random_in(0, sizeof specials / sizeof specials[0] - 1)];
    if (dtype == ENT_DTYPE_BOOL) return (double)random_in(0, 1);
    if (dtype > ENT_DTYPE_F64) return (double)random_in(dtype == ENT_DTYPE_U8 ? 0 : -9, 9);
    return (double)random_in(-1000, 1000) / 500;
}

/* Inputs random, block padding zero as layouts demand; outputs full of a mark. */
static inline void fill_memory(const ent_tile_program *p, const int64_t *sizes, memory *m) {
    for (uint32_t b = 0; b < p->buffer_count; b++) {
        const ent_tile_buffer *buffer = &p->buffers[b];
        m->bytes[b] = (size_t)buffer_bytes(buffer, sizes);
        m->data[b] = aligned_alloc(64, (m->bytes[b] + GUARD + 63) / 64 * 64);
        memset(m->data[b], 0x5a, m->bytes[b] + GUARD);
        if (buffer->role == ENT_ROLE_OUTPUT || buffer->role == ENT_ROLE_SCRATCH) continue;
        memset(m->data[b], 0, m->bytes[b]);
        int64_t dims[ENT_MAX_RANK], at[ENT_MAX_RANK] = {0};
        bool more = true;
        for (uint32_t d = 0; d < buffer->rank; d++) {
            dims[d] = ent_dim_value(buffer->dims[d], sizes);
            more = more && dims[d] > 0;
        }
        while (more) {
            int64_t offset = ent_layout_offset(&buffer->layout, dims, at);
            double x = random_element(buffer->dtype, buffer->role);
            if (buffer->dtype > ENT_DTYPE_F64)
                ent_ops_store_i64(m->data[b], buffer->dtype, offset, (int64_t)x);
            else
                ent_ops_store_f64(m->data[b], buffer->dtype, offset, x);
            uint32_t d = buffer->rank;
            while (d > 0 && ++at[d - 1] == dims[d - 1]) at[--d] = 0;
            more = d > 0;
        }
    }
}

static inline void copy_memory(const ent_tile_program *p, const memory *from, memory *to) {
    for (uint32_t b = 0; b < p->buffer_count; b++) {
        to->bytes[b] = from->bytes[b];
        to->data[b] = aligned_alloc(64, (from->bytes[b] + GUARD + 63) / 64 * 64);
        memcpy(to->data[b], from->data[b], from->bytes[b] + GUARD);
    }
}

static inline void free_memory(const ent_tile_program *p, memory *m) {
    for (uint32_t b = 0; b < p->buffer_count; b++) free(m->data[b]);
}

static inline double tolerance_of(uint32_t dtype) {
    return dtype == ENT_DTYPE_F16    ? 4e-3
           : dtype == ENT_DTYPE_BF16 ? 3e-2
           : dtype == ENT_DTYPE_F64  ? 1e-12
                                     : 2e-5;
}

/* Element by element; floats may differ by rounding, scaled by the largest magnitude around. */
static inline void compare_memory(const ent_tile_program *p, const memory *want, const memory *got,
                                  const char *what) {
    for (uint32_t b = 0; b < p->buffer_count; b++) {
        const ent_tile_buffer *buffer = &p->buffers[b];
        uint32_t bytes = ent_dtype_bits((ent_dtype)buffer->dtype) / 8;
        int64_t count = (int64_t)(want->bytes[b] / bytes);
        bool floats = buffer->dtype <= ENT_DTYPE_F64;
        double scale = 1;
        if (buffer->role == ENT_ROLE_SCRATCH) continue;
        ck_assert_msg(
            memcmp((char *)want->data[b] + want->bytes[b], (char *)got->data[b] + want->bytes[b], GUARD) == 0,
            "%s: wrote behind buffer %u", what, b);
        for (int64_t i = 0; i < count && floats; i++) {
            double x = fabs(ent_ops_load_f64(want->data[b], buffer->dtype, i));
            if (isfinite(x) && x > scale && x < 1e12) scale = x;
        }
        for (int64_t i = 0; i < count; i++) {
            if (memcmp((char *)want->data[b] + i * bytes, (char *)got->data[b] + i * bytes, bytes) == 0)
                continue;
            ck_assert_msg(floats, "%s: buffer %u element %lld differs", what, b, (long long)i);
            double x = ent_ops_load_f64(want->data[b], buffer->dtype, i),
                   y = ent_ops_load_f64(got->data[b], buffer->dtype, i);
            if ((isnan(x) && isnan(y)) || x == y) continue;
            ck_assert_msg(fabs(x - y) <= tolerance_of(buffer->dtype) * scale,
                          "%s: buffer %u element %lld is %g, not %g", what, b, (long long)i, y, x);
        }
    }
}

/* Runs a prepared plan on a copy of the buffers and compares. */
static inline void run_and_compare(const exec_plan *plan, int threads, const memory *start,
                                   const memory *want) {
    memory got;
    char what[96];
    ent_cpu_pool *pool = ent_cpu_pool_create(threads);
    int64_t some[1] = {0};
    (void)some;
    char *scratch = aligned_alloc(64, plan->scratch_bytes * (size_t)threads + 64);
    memset(scratch, 0xff,
           plan->scratch_bytes * (size_t)threads + 64); /* NaN: nothing may be read before it is written */
    copy_memory(&plan->program, start, &got);
    exec_plan_run(plan, pool, scratch, got.data);
    snprintf(what, sizeof what, "%s, %s, %d threads", plan->path, ent_cpu_isa_name(plan->kernels->isa),
             threads);
    compare_memory(&plan->program, want, &got, what);
    free_memory(&plan->program, &got);
    free(scratch);
    ent_cpu_pool_destroy(pool);
}

/* True when the interpreter ran it (random programs may break its rules). `tier`: expected, or ENT_TIER_NONE.
 */
static inline bool check_program(const ent_tile_program *program, const int64_t *symbols, size_t symbol_count,
                                 uint32_t tier) {
    ent_ops_error error;
    memory start, want;
    size_t size = 0;
    int64_t sizes[8] = {0};
    ent_code code = ent_ops_tile_verify(program, &error);
    ck_assert_msg(code == ENT_OK || tier == ENT_TIER_NONE, "%s", error.text);
    if (code != ENT_OK) return false;
    ck_assert(ent_expr_evaluate(program->exprs, program->expr_count, symbols, symbol_count, sizes));
    fill_memory(program, sizes, &start);
    copy_memory(program, &start, &want);
    code = ent_ops_tile_interpret(program, want.data, symbols, NULL, &error);
    ck_assert_msg(code == ENT_OK || tier == ENT_TIER_NONE, "%s", error.text);
    void *bytes = build_bytes(program, &size);
    for (int isa = 0; isa < ENT_CPU_ISA_COUNT && code == ENT_OK; isa++) {
        const ent_cpu_kernels *kernels = ent_cpu_kernels_get((ent_cpu_isa)isa);
        if (!kernels) continue;
        exec_plan *plan = NULL;
        ck_assert_int_eq(exec_plan_create(&test_host, kernels, bytes, size, symbols, symbol_count, &plan),
                         ENT_OK);
        if (tier != ENT_TIER_NONE)
            ck_assert_msg(plan->tier == tier, "tier %u (%s), not %u", plan->tier, plan->path, tier);
        plan->work_ns = 1e9; /* threads also for little work */
        run_and_compare(plan, 1, &start, &want);
        run_and_compare(plan, 2, &start, &want);
        exec_plan_destroy(plan);
    }
    free(bytes);
    free_memory(program, &start);
    free_memory(program, &want);
    return code == ENT_OK;
}

#endif
