/* From bytes to a plan: decoding, sizes, accesses with strides, bindings. */
#include "exec.h"

#include <stdarg.h>
#include <stdio.h>

#define BLOCK_BYTES 4096
/* Coordinates stay far from overflow: hostile coefficients are refused, so that the inner code need not look.
 */
#define COORDINATE_LIMIT 1e15

typedef struct block {
    struct block *next;
    char padding[64 - sizeof(void *)];
} block;

void *exec_allocate(exec_arena *arena, size_t bytes) {
    bytes = (bytes + 63) & ~(size_t)63;
    if (bytes == 0) bytes = 64;
    if (bytes > arena->left) {
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block *b = ent_common_allocate(arena->host, sizeof *b + size);
        if (!b) {
            arena->failed = true;
            return NULL;
        }
        b->next = arena->first;
        arena->first = b;
        arena->at = (char *)(b + 1);
        arena->left = size;
    }
    void *room = arena->at;
    arena->at += bytes;
    arena->left -= bytes;
    return room;
}

static void *allocate_for_decoder(void *context, size_t bytes) {
    return exec_allocate(context, bytes);
}

ent_code exec_refuse(exec_plan *plan, ent_code code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    plan->error.code = code;
    vsnprintf(plan->error.text, sizeof plan->error.text, format, list);
    va_end(list);
    return code;
}

/* ---- accesses ---- */

/* Strides of the logical axes in the physical order; a blocked axis gets the stride of whole blocks. */
static bool set_strides(const ent_tile_buffer *buffer, const int64_t *dims, exec_access *access) {
    int64_t physical[ENT_MAX_RANK + ENT_MAX_BLOCKS], stride = 1;
    const ent_layout *layout = &buffer->layout;
    uint32_t count = ent_layout_physical(layout, dims, physical);
    for (uint32_t d = 0; d < access->rank; d++) access->dims[d].block = 1;
    for (uint32_t i = count; i-- > 0;) {
        if (i >= layout->rank) {
            exec_dim *dim = &access->dims[layout->block_axis[i - layout->rank]];
            if (dim->block != 1) return false;
            dim->block = layout->block_size[i - layout->rank];
            dim->block_stride = stride;
        } else {
            access->dims[layout->order[i]].stride = stride;
        }
        stride *= physical[i];
    }
    return true;
}

static double reach_of(const exec_plan *plan, uint32_t variable) {
    const ent_tile_program *p = &plan->program;
    if (variable < p->grid_count) return (double)ent_dim_value(p->grid[variable].extent, plan->sizes);
    for (uint32_t i = 0; i < p->op_count; i++) {
        const ent_tile_op *op = &p->ops[i];
        if (op->opcode != ENT_TILE_LOOP || op->variable != variable) continue;
        double begin = (double)ent_dim_value(op->begin, plan->sizes),
               end = (double)ent_dim_value(op->end, plan->sizes);
        begin = begin < 0 ? -begin : begin;
        end = end < 0 ? -end : end;
        return begin > end ? begin : end;
    }
    return 0;
}

static double magnitude(int64_t x) {
    return x < 0 ? -(double)x : (double)x;
}

static bool coordinates_fit(const exec_plan *plan, const exec_dim *dim) {
    double reach = magnitude(dim->base) + magnitude(dim->step) * ENT_TILE_MAX_ELEMENTS;
    for (uint32_t t = 0; t < dim->term_count; t++)
        reach += magnitude(dim->terms[t].coefficient) * reach_of(plan, dim->terms[t].variable);
    return reach < COORDINATE_LIMIT;
}

static ent_code set_dims(exec_plan *plan, const ent_tile_access *from, const int64_t *dims,
                         exec_access *access) {
    access->affine = true;
    for (uint32_t d = 0; d < from->rank; d++) {
        const ent_tile_index *x = &from->index[d];
        exec_dim *dim = &access->dims[d];
        dim->base = x->base;
        dim->step = x->tile_axis == EXEC_NONE ? 0 : x->step;
        dim->divisor = x->divisor;
        dim->exact = x->exact;
        dim->axis = x->tile_axis;
        dim->gather = x->gather;
        dim->limit = dims[d];
        if (x->bound != ENT_TILE_BOUND_ALL && ent_dim_value(x->bound, plan->sizes) < dim->limit)
            dim->limit = ent_dim_value(x->bound, plan->sizes);
        for (uint32_t t = 0; t < x->term_count; t++)
            if (x->terms[t].coefficient != 0) dim->terms[dim->term_count++] = x->terms[t];
        if (!coordinates_fit(plan, dim))
            return exec_refuse(plan, ENT_CODE_UNSUPPORTED, "a coordinate may reach beyond %.0e",
                               COORDINATE_LIMIT);
        if (dim->divisor != 1 || dim->gather != EXEC_NONE || dim->block != 1) access->affine = false;
    }
    return ENT_OK;
}

/* Dims that stay at coordinate 0 of an axis with elements cost nothing at run time: they go. */
static void drop_constant_dims(exec_access *access) {
    uint32_t kept = 0;
    for (uint32_t d = 0; d < access->rank; d++) {
        const exec_dim *dim = &access->dims[d];
        if (dim->base == 0 && dim->term_count == 0 && dim->axis == EXEC_NONE && dim->gather == EXEC_NONE &&
            dim->limit > 0)
            continue;
        access->dims[kept++] = *dim;
    }
    access->rank = kept;
    for (uint32_t d = 0; d < kept; d++)
        if (access->dims[d].axis != EXEC_NONE)
            access->strides[access->dims[d].axis] += access->dims[d].step * access->dims[d].stride;
}

static ent_code make_access(exec_plan *plan, uint32_t index, int64_t (*dims)[ENT_MAX_RANK]) {
    const ent_tile_access *from = &plan->program.accesses[index];
    const ent_tile_buffer *buffer = &plan->program.buffers[from->buffer];
    exec_access *access = &plan->accesses[index];
    access->buffer = from->buffer;
    access->rank = from->rank;
    access->element_bytes = ent_dtype_bits((ent_dtype)buffer->dtype) / 8;
    if (!set_strides(buffer, dims[from->buffer], access))
        return exec_refuse(plan, ENT_CODE_UNSUPPORTED, "buffer %u: an axis is blocked twice", from->buffer);
    ent_code code = set_dims(plan, from, dims[from->buffer], access);
    if (code == ENT_OK) drop_constant_dims(access);
    return code;
}

/* ---- buffers and grid ---- */

static ent_code make_buffers(exec_plan *plan, int64_t (*dims)[ENT_MAX_RANK]) {
    const ent_tile_program *p = &plan->program;
    for (uint32_t b = 0; b < p->buffer_count; b++) {
        const ent_tile_buffer *buffer = &p->buffers[b];
        for (uint32_t d = 0; d < buffer->rank; d++) {
            dims[b][d] = ent_dim_value(buffer->dims[d], plan->sizes);
            if (dims[b][d] < 0 || dims[b][d] > INT64_MAX / 131072)
                return exec_refuse(plan, ENT_CODE_INVALID_ARGUMENT, "buffer %u: axis %u has a size of %lld",
                                   b, d, (long long)dims[b][d]);
        }
        int64_t bytes = ent_layout_bytes(&buffer->layout, (ent_dtype)buffer->dtype, dims[b]);
        if (bytes < 0)
            return exec_refuse(plan, ENT_CODE_INVALID_ARGUMENT, "buffer %u: its size overflows", b);
        plan->binding[b] = EXEC_NONE;
        if (buffer->role != ENT_ROLE_SCRATCH) {
            plan->binding[b] = plan->binding_count;
            plan->binding_bytes[plan->binding_count++] = (uint64_t)bytes;
        } else if (!(plan->owned[b] = exec_allocate(&plan->arena, (size_t)bytes))) {
            return exec_refuse(plan, ENT_CODE_OUT_OF_MEMORY, "out of memory for a scratch buffer");
        }
    }
    return ENT_OK;
}

static ent_code make_grid(exec_plan *plan) {
    const ent_tile_program *p = &plan->program;
    plan->instances = 1;
    for (uint32_t g = 0; g < p->grid_count; g++) {
        int64_t extent = ent_dim_value(p->grid[g].extent, plan->sizes), step = p->grid[g].step;
        plan->grid[g] = extent <= 0 ? 0 : (extent - 1) / step + 1;
        if (plan->grid[g] != 0 && plan->instances > INT32_MAX / plan->grid[g])
            return exec_refuse(plan, ENT_CODE_UNSUPPORTED, "more than %d program instances", INT32_MAX);
        plan->instances *= plan->grid[g];
    }
    return ENT_OK;
}

static ent_code set_sizes(exec_plan *plan, const int64_t *symbols, size_t symbol_count) {
    const ent_tile_program *p = &plan->program;
    if (p->symbol_count != symbol_count)
        return exec_refuse(plan, ENT_CODE_INVALID_ARGUMENT,
                           "the program has %u symbols, %zu values were given", p->symbol_count,
                           symbol_count);
    if (!ent_expr_evaluate(p->exprs, p->expr_count, symbols, symbol_count, plan->sizes))
        return exec_refuse(plan, ENT_CODE_INVALID_ARGUMENT, "a size overflows or divides by zero");
    return ENT_OK;
}

static ent_code resolve(exec_plan *plan, const int64_t *symbols, size_t symbol_count) {
    const ent_tile_program *p = &plan->program;
    exec_arena *arena = &plan->arena;
    plan->sizes = exec_allocate(arena, p->expr_count * sizeof *plan->sizes);
    plan->accesses = exec_allocate(arena, p->access_count * sizeof *plan->accesses);
    plan->binding = exec_allocate(arena, p->buffer_count * sizeof *plan->binding);
    plan->binding_bytes = exec_allocate(arena, p->buffer_count * sizeof *plan->binding_bytes);
    plan->owned = exec_allocate(arena, p->buffer_count * sizeof *plan->owned);
    int64_t(*dims)[ENT_MAX_RANK] = exec_allocate(arena, p->buffer_count * sizeof *dims);
    if (arena->failed) return exec_refuse(plan, ENT_CODE_OUT_OF_MEMORY, "out of memory for a plan");
    ent_code code = set_sizes(plan, symbols, symbol_count);
    if (code == ENT_OK) code = make_grid(plan);
    if (code == ENT_OK) code = make_buffers(plan, dims);
    for (uint32_t i = 0; i < p->access_count && code == ENT_OK; i++) code = make_access(plan, i, dims);
    return code;
}

ent_code exec_plan_create(const ent_host *host, const ent_cpu_kernels *kernels, const uint8_t *bytes,
                          size_t size, const int64_t *symbols, size_t symbol_count, exec_plan **out) {
    exec_plan *plan = ent_common_allocate(host, sizeof *plan);
    *out = plan;
    if (!plan) return ENT_CODE_OUT_OF_MEMORY;
    plan->kernels = kernels;
    plan->arena.host = host;
    ent_code code = ent_tile_program_decode(bytes, size, allocate_for_decoder, &plan->arena, &plan->program);
    if (code != ENT_OK) return exec_refuse(plan, code, "the tile program's bytes are damaged");
    code = ent_ops_tile_verify(&plan->program, &plan->error);
    if (code != ENT_OK) return code;
    if (plan->program.symbol_count > 0 && !symbols) return ENT_OK; /* planned at the first run */
    code = resolve(plan, symbols, symbol_count);
    if (code == ENT_OK) code = exec_make_steps(plan);
    if (code == ENT_OK && plan->arena.failed)
        code = exec_refuse(plan, ENT_CODE_OUT_OF_MEMORY, "out of memory for a plan");
    return code;
}

void exec_plan_destroy(exec_plan *plan) {
    if (!plan) return;
    const ent_host *host = plan->arena.host;
    for (block *b = plan->arena.first, *next; b; b = next) {
        next = b->next;
        ent_common_release(host, b);
    }
    ent_common_release(host, plan);
}
