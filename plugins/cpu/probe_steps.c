/* What a step costs beside its arithmetic, measured on the executor itself with programs that do next to
 * nothing. */
#define _GNU_SOURCE
#include "exec.h"
#include "probe.h"

#include <stdlib.h>
#include <string.h>

#include "abi/ent_tile_codec.h"

enum { SAMPLE_NS = 400000, MANY = 512, WIDTH = 16, SIDE = 64, PICKS = 1024, TABLE = 4096 };
enum { GEMM_M = 768, GEMM_TILE = 48, GEMM_N = 64, GEMM_K = 256, MAX_BUFFERS = 3 };

typedef struct sample {
    ent_tile_program program;
    ent_tile_axis grid[1];
    ent_tile_buffer buffers[MAX_BUFFERS];
    ent_tile_value values[6];
    ent_tile_access accesses[MAX_BUFFERS];
    ent_tile_op ops[8];
} sample;

static uint32_t add_buffer(sample *s, uint32_t role, uint32_t dtype, uint32_t rank, int64_t d0, int64_t d1) {
    ent_tile_buffer *buffer = &s->buffers[s->program.buffer_count];
    *buffer = (ent_tile_buffer){role, dtype, rank, 0, {d0, d1}, ent_layout_plain(rank)};
    ent_tile_access *access = &s->accesses[s->program.access_count++];
    *access = (ent_tile_access){.buffer = s->program.buffer_count, .rank = rank};
    for (uint32_t d = 0; d < rank; d++)
        access->index[d] = (ent_tile_index){
            .tile_axis = d, .step = 1, .divisor = 1, .gather = ENT_TILE_NONE, .bound = ENT_TILE_BOUND_ALL};
    return s->program.buffer_count++;
}

static uint32_t add_tile(sample *s, uint32_t dtype, uint32_t rank, int64_t d0, int64_t d1) {
    s->values[s->program.value_count] = (ent_tile_value){dtype, ENT_SPACE_LOCAL, rank, 0, {d0, d1}};
    return s->program.value_count++;
}

static ent_tile_op *add_op(sample *s, uint32_t opcode, uint32_t kind, uint32_t dst, uint32_t a, uint32_t b) {
    ent_tile_op *op = &s->ops[s->program.op_count++];
    *op = (ent_tile_op){
        .opcode = opcode, .kind = kind, .dst = dst, .source = {a, b}, .variable = ENT_TILE_NONE};
    op->source_count = a == ENT_TILE_NONE ? 0 : b == ENT_TILE_NONE ? 1 : 2;
    return op;
}

static void add_load(sample *s, uint32_t tile, uint32_t access) {
    add_op(s, ENT_TILE_LOAD, 0, tile, ENT_TILE_NONE, ENT_TILE_NONE)->access = access;
}

static void add_store(sample *s, uint32_t tile, uint32_t access) {
    add_op(s, ENT_TILE_STORE, 0, ENT_TILE_NONE, tile, ENT_TILE_NONE)->access = access;
}

static void begin(sample *s, int64_t extent, int64_t step) {
    memset(s, 0, sizeof *s);
    s->program = (ent_tile_program){.name = ENT_STR("probe"),
                                    .grid = s->grid,
                                    .grid_count = 1,
                                    .variable_count = 1,
                                    .buffers = s->buffers,
                                    .values = s->values,
                                    .accesses = s->accesses,
                                    .ops = s->ops};
    s->grid[0] = (ent_tile_axis){extent, step};
}

/* The instance's variable moves the first dim of the access. */
static void follow(sample *s, uint32_t access) {
    s->accesses[access].index[0].terms[0] = (ent_tile_term){0, 0, 1};
    s->accesses[access].index[0].term_count = 1;
}

/* A row in, a row out; with `ops`, two sums and two differences between them. */
static void make_rows(sample *s, int64_t rows, bool ops) {
    begin(s, rows, 1);
    uint32_t in = add_buffer(s, ENT_ROLE_INPUT, ENT_DTYPE_F32, 2, MANY, WIDTH);
    uint32_t out = add_buffer(s, ENT_ROLE_OUTPUT, ENT_DTYPE_F32, 2, MANY, WIDTH);
    follow(s, in);
    follow(s, out);
    uint32_t row = add_tile(s, ENT_DTYPE_F32, 2, 1, WIDTH);
    add_load(s, row, in);
    for (int i = 0; i < 2 && ops; i++) {
        uint32_t one = add_tile(s, ENT_DTYPE_F32, 2, 1, 1), next = add_tile(s, ENT_DTYPE_F32, 2, 1, WIDTH);
        add_op(s, ENT_TILE_REDUCE, ENT_REDUCE_SUM, one, row, ENT_TILE_NONE)->axis_mask = 2;
        add_op(s, ENT_TILE_MAP, ENT_MAP_SUB, next, row, one);
        row = next;
    }
    add_store(s, row, out);
}

static void make_transposed(sample *s) {
    begin(s, 1, 1);
    uint32_t in = add_buffer(s, ENT_ROLE_INPUT, ENT_DTYPE_F32, 2, SIDE, SIDE);
    uint32_t out = add_buffer(s, ENT_ROLE_OUTPUT, ENT_DTYPE_F32, 2, SIDE, SIDE);
    s->accesses[in].index[0].tile_axis = 1;
    s->accesses[in].index[1].tile_axis = 0;
    uint32_t tile = add_tile(s, ENT_DTYPE_F32, 2, SIDE, SIDE);
    add_load(s, tile, in);
    add_store(s, tile, out);
}

static void make_gather(sample *s) {
    begin(s, 1, 1);
    uint32_t in = add_buffer(s, ENT_ROLE_INPUT, ENT_DTYPE_F32, 1, TABLE, 0);
    uint32_t out = add_buffer(s, ENT_ROLE_OUTPUT, ENT_DTYPE_F32, 1, PICKS, 0);
    uint32_t places = add_buffer(s, ENT_ROLE_INPUT, ENT_DTYPE_I32, 1, PICKS, 0);
    uint32_t which = add_tile(s, ENT_DTYPE_I32, 1, PICKS, 0), tile = add_tile(s, ENT_DTYPE_F32, 1, PICKS, 0);
    s->accesses[in].index[0].tile_axis = ENT_TILE_NONE;
    s->accesses[in].index[0].step = 0;
    s->accesses[in].index[0].gather = which;
    add_load(s, which, places);
    add_load(s, tile, in);
    add_store(s, tile, out);
}

static void make_gemm(sample *s) {
    begin(s, GEMM_M, GEMM_TILE);
    uint32_t in = add_buffer(s, ENT_ROLE_INPUT, ENT_DTYPE_F32, 2, GEMM_M, GEMM_K);
    uint32_t out = add_buffer(s, ENT_ROLE_OUTPUT, ENT_DTYPE_F32, 2, GEMM_M, GEMM_N);
    uint32_t weights = add_buffer(s, ENT_ROLE_CONSTANT, ENT_DTYPE_F32, 2, GEMM_K, GEMM_N);
    ent_layout *packed = &s->buffers[weights].layout;
    packed->order[0] = 1;
    packed->order[1] = 0;
    packed->block_count = 1;
    packed->block_axis[0] = 1;
    packed->block_size[0] = ENT_CPU_PANEL;
    follow(s, in);
    follow(s, out);
    uint32_t c = add_tile(s, ENT_DTYPE_F32, 2, GEMM_TILE, GEMM_N),
             a = add_tile(s, ENT_DTYPE_F32, 2, GEMM_TILE, GEMM_K);
    uint32_t b = add_tile(s, ENT_DTYPE_F32, 2, GEMM_K, GEMM_N);
    add_op(s, ENT_TILE_FILL, 0, c, ENT_TILE_NONE, ENT_TILE_NONE);
    add_load(s, a, in);
    add_load(s, b, weights);
    add_op(s, ENT_TILE_MMA, 0, c, a, b);
    add_store(s, c, out);
}

static void *grow(void *context, void *old, size_t bytes) {
    (void)context;
    return realloc(old, bytes);
}

typedef struct timed {
    const exec_plan *plan;
    char *scratch;
    void *buffers[MAX_BUFFERS];
} timed;

static void run_plan(void *context) {
    const timed *t = context;
    exec_plan_run(t->plan, NULL, t->scratch, t->buffers);
}

/* ns of one run on one thread; 0 when memory is short. */
static double measure(const ent_host *host, const ent_cpu_kernels *kernels, const sample *s, float *memory) {
    ent_message_writer writer = {.grow = grow};
    exec_plan *plan = NULL;
    timed t = {0};
    double ns = 0;
    for (uint32_t b = 0; b < s->program.buffer_count; b++)
        t.buffers[b] = memory + b * (size_t)GEMM_M * GEMM_K;
    if (ent_tile_program_encode(&s->program, &writer) == ENT_OK &&
        exec_plan_create(host, kernels, writer.data, writer.size, NULL, 0, &plan) == ENT_OK) {
        t.plan = plan;
        t.scratch = aligned_alloc(64, (plan->scratch_bytes + 127) / 64 * 64);
        if (t.scratch) ns = ent_cpu_least_ns(run_plan, &t, CLOCK_THREAD_CPUTIME_ID, SAMPLE_NS);
        free(t.scratch);
    }
    exec_plan_destroy(plan);
    free(writer.data);
    return ns;
}

bool ent_cpu_probe_steps(const ent_host *host, const ent_cpu_kernels *kernels, ent_cpu_probe *probe) {
    size_t floats = (size_t)MAX_BUFFERS * GEMM_M * GEMM_K;
    float *memory = aligned_alloc(64, floats * sizeof *memory);
    if (!memory) return false;
    memset(memory, 0, floats * sizeof *memory); /* as indices: the table's first element */
    sample s;
    make_rows(&s, MANY, false);
    double plain = measure(host, kernels, &s, memory) / MANY;
    make_rows(&s, MANY, true);
    double more = measure(host, kernels, &s, memory) / MANY;
    make_rows(&s, 1, false);
    double one = measure(host, kernels, &s, memory);
    probe->op_ns = (more - plain) / 4 - WIDTH / 2 * (probe->elementwise_cheap_ns + probe->reduce_ns);
    probe->instance_ns = plain - probe->op_ns; /* a load and a store count as half an op each */
    probe->launch_ns = one - plain;
    make_transposed(&s);
    probe->strided_ns = (measure(host, kernels, &s, memory) - one) / (SIDE * SIDE);
    make_gather(&s);
    probe->gather_ns = (measure(host, kernels, &s, memory) - one) / PICKS;
    make_gemm(&s);
    double flops = 2.0 * GEMM_M * GEMM_N * GEMM_K / measure(host, kernels, &s, memory) * 1e9;
    probe->gemm_efficiency = flops / (probe->fma_flops * probe->gemm_share);
    free(memory);
    return plain > 0 && more > 0 && one > 0;
}
