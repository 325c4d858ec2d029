/* Tile IR executed literally: one instance after another, one operation after another, one element after
 * another. Sums are kept in double (int64 for integers) within one operation and rounded to the tile's dtype
 * at its end. Instances may run in any order elsewhere, so what would depend on the order is an error here:
 * every stored element remembers its instance. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/ops/tile_internal.h"

#define MAX_DEPTH 16

typedef struct machine {
    const ent_tile_program *program;
    const ent_ops_memory *memory;
    ent_ops_error *error;
    int64_t *sizes;       /* value of each expression */
    int64_t *buffer_dims; /* ENT_MAX_RANK a buffer */
    void **buffers;
    bool *owned; /* scratch buffers allocated here */
    void **tiles;
    uint32_t *ends;     /* LOOP op -> its END */
    uint32_t **writers; /* for output and scratch: 1 + the instance that stored an element, 0: none did */
    uint32_t instance;  /* 1 for the first */
    ent_code code;      /* of the run: not ENT_OK stops it */
    int64_t variables[ENT_TILE_MAX_VARIABLES];
} machine;

static ent_code fail(machine *m, ent_code code, const char *text) {
    m->error->code = code;
    snprintf(m->error->text, sizeof m->error->text, "%s", text);
    return code;
}

static void *take(machine *m, size_t count, size_t size_bytes) {
    if (size_bytes != 0 && count > (SIZE_MAX / 2) / size_bytes) return NULL;
    size_t bytes = count * size_bytes > 0 ? count * size_bytes : 1;
    void *memory = m->memory->allocate(m->memory->context, bytes);
    if (memory) memset(memory, 0, bytes);
    return memory;
}

static void drop(machine *m, void *memory) {
    if (memory) m->memory->release(m->memory->context, memory);
}

/* ---- elements ---- */

/* A value on its way between two elements: through double or int64, by dtype. */
typedef struct scalar {
    bool is_float;
    double f;
    int64_t i;
} scalar;

static scalar get(const void *data, uint32_t dtype, int64_t at) {
    scalar s = {ent_ops_dtype_is_float(dtype), 0, 0};
    if (s.is_float)
        s.f = ent_ops_load_f64(data, dtype, at);
    else
        s.i = ent_ops_load_i64(data, dtype, at);
    return s;
}

/* C leaves the conversion of what does not fit undefined; this is what x86 does. */
static int64_t to_i64(double x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;
}

static void put(void *data, uint32_t dtype, int64_t at, scalar s) {
    if (dtype == ENT_DTYPE_BOOL)
        ent_ops_store_i64(data, dtype, at, s.is_float ? s.f != 0 : s.i != 0);
    else if (ent_ops_dtype_is_float(dtype))
        ent_ops_store_f64(data, dtype, at, s.is_float ? s.f : (double)s.i);
    else
        ent_ops_store_i64(data, dtype, at, s.is_float ? to_i64(s.f) : s.i);
}

static scalar scalar_f64(double value) {
    scalar s = {true, value, 0};
    return s;
}

/* Steps a row-major position; false after the last one. */
static bool advance(const ent_tile_value *value, int64_t *position) {
    for (uint32_t a = value->rank; a-- > 0;) {
        if (++position[a] < value->shape[a]) return true;
        position[a] = 0;
    }
    return false;
}

/* Element of a tile at a position of a tile it broadcasts to. */
static int64_t broadcast_offset(const ent_tile_value *value, const int64_t *position) {
    int64_t offset = 0;
    for (uint32_t a = 0; a < value->rank; a++)
        offset = offset * value->shape[a] + (value->shape[a] == 1 ? 0 : position[a]);
    return offset;
}

/* ---- moves ---- */

/* The coordinate of one buffer dimension; false when the element counts as outside. */
static bool coordinate(const machine *m, const ent_tile_index *x, int64_t extent, const int64_t *position,
                       int64_t *out) {
    int64_t sum = x->base, product = 0;
    for (uint32_t t = 0; t < x->term_count; t++)
        if (__builtin_mul_overflow(x->terms[t].coefficient, m->variables[x->terms[t].variable], &product) ||
            __builtin_add_overflow(sum, product, &sum))
            return false;
    if (x->tile_axis != ENT_TILE_NONE && (__builtin_mul_overflow(x->step, position[x->tile_axis], &product) ||
                                          __builtin_add_overflow(sum, product, &sum)))
        return false;
    if (x->exact && sum % x->divisor != 0) return false;
    int64_t at = ent_expr_floordiv(sum, x->divisor);
    if (x->gather != ENT_TILE_NONE) {
        const ent_tile_value *value = &m->program->values[x->gather];
        int64_t moved =
            ent_ops_load_i64(m->tiles[x->gather], value->dtype, broadcast_offset(value, position));
        if (__builtin_add_overflow(at, moved, &at)) return false;
    }
    *out = at;
    if (x->bound != ENT_TILE_BOUND_ALL && at >= ent_dim_value(x->bound, m->sizes)) return false;
    return at >= 0 && at < extent;
}

/* Element offset in the buffer for a tile position; -1: outside. */
static int64_t buffer_offset(const machine *m, const ent_tile_access *access, const int64_t *position) {
    const int64_t *dims = &m->buffer_dims[(size_t)access->buffer * ENT_MAX_RANK];
    int64_t index[ENT_MAX_RANK] = {0};
    for (uint32_t d = 0; d < access->rank; d++)
        if (!coordinate(m, &access->index[d], dims[d], position, &index[d])) return -1;
    return ent_layout_offset(&m->program->buffers[access->buffer].layout, dims, index);
}

/* Remembers the first fault of the run. */
static void fault(machine *m, uint32_t buffer, int64_t element, const char *what) {
    if (m->code != ENT_OK) return;
    m->code = ENT_CODE_INVALID_ARGUMENT;
    m->error->code = m->code;
    snprintf(m->error->text, sizeof m->error->text, "element %lld of buffer %u %s", (long long)element,
             buffer, what);
}

/* An element that instances write may be read only by the one that wrote it. */
static void check_read(machine *m, uint32_t buffer, int64_t element) {
    if (!m->writers[buffer] || m->writers[buffer][element] == m->instance) return;
    fault(m, buffer, element,
          m->writers[buffer][element] == 0 ? "is loaded before it is stored"
                                           : "is loaded by another instance than stored it");
}

static void check_write(machine *m, uint32_t buffer, int64_t element) {
    uint32_t *writer = &m->writers[buffer][element];
    if (*writer != 0 && *writer != m->instance) fault(m, buffer, element, "is stored by two instances");
    *writer = m->instance;
}

static void run_load(machine *m, const ent_tile_op *op) {
    const ent_tile_access *access = &m->program->accesses[op->access];
    const ent_tile_value *value = &m->program->values[op->dst];
    int64_t position[ENT_TILE_MAX_RANK] = {0}, at = 0;
    do {
        int64_t from = buffer_offset(m, access, position);
        if (from >= 0) check_read(m, access->buffer, from);
        put(m->tiles[op->dst], value->dtype, at++,
            from < 0 ? scalar_f64(op->f[0]) : get(m->buffers[access->buffer], value->dtype, from));
    } while (advance(value, position));
}

static void run_store(machine *m, const ent_tile_op *op) {
    const ent_tile_access *access = &m->program->accesses[op->access];
    const ent_tile_value *value = &m->program->values[op->source[0]];
    int64_t position[ENT_TILE_MAX_RANK] = {0}, at = 0;
    do {
        int64_t to = buffer_offset(m, access, position);
        if (to >= 0) {
            check_write(m, access->buffer, to);
            put(m->buffers[access->buffer], value->dtype, to, get(m->tiles[op->source[0]], value->dtype, at));
        }
        at++;
    } while (advance(value, position));
}

/* ---- arithmetic ---- */

static void run_fill(machine *m, const ent_tile_op *op) {
    const ent_tile_value *value = &m->program->values[op->dst];
    for (int64_t i = 0; i < ent_ops_tile_elements(value); i++)
        put(m->tiles[op->dst], value->dtype, i, scalar_f64(op->f[0]));
}

static void run_mma(machine *m, const ent_tile_op *op) {
    const ent_tile_value *av = &m->program->values[op->source[0]], *bv = &m->program->values[op->source[1]];
    const ent_tile_value *dv = &m->program->values[op->dst];
    const void *a = m->tiles[op->source[0]], *b = m->tiles[op->source[1]];
    void *dst = m->tiles[op->dst];
    bool transposed = (op->flags & ENT_TILE_TRANSPOSE_B) != 0;
    int64_t depth = av->shape[av->rank - 1], columns = dv->shape[dv->rank - 1];
    int64_t rows = ent_ops_tile_elements(dv) / columns;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            scalar sum = get(dst, dv->dtype, r * columns + c);
            for (int64_t k = 0; k < depth; k++) {
                int64_t b_at = transposed ? c * depth + k : k * columns + c;
                if (sum.is_float)
                    sum.f +=
                        ent_ops_load_f64(a, av->dtype, r * depth + k) * ent_ops_load_f64(b, bv->dtype, b_at);
                else
                    sum.i += (ent_ops_load_i64(a, av->dtype, r * depth + k) - (int64_t)op->f[0]) *
                             (ent_ops_load_i64(b, bv->dtype, b_at) - (int64_t)op->f[1]);
            }
            put(dst, dv->dtype, r * columns + c, sum);
        }
}

static void run_map(machine *m, const ent_tile_op *op) {
    const ent_tile_value *dv = &m->program->values[op->dst];
    int64_t position[ENT_TILE_MAX_RANK] = {0}, at = 0;
    do {
        scalar s[3] = {{false, 0, 0}, {false, 0, 0}, {false, 0, 0}};
        for (uint32_t i = 0; i < op->source_count && i < 3; i++) {
            const ent_tile_value *sv = &m->program->values[op->source[i]];
            s[i] = get(m->tiles[op->source[i]], sv->dtype, broadcast_offset(sv, position));
        }
        scalar r = s[0];
        if (op->kind == ENT_MAP_SELECT) {
            r = s[0].i != 0 ? s[1] : s[2];
        } else if (op->kind != ENT_MAP_COPY) {
            if (r.is_float)
                r.f = ent_ops_map_f64(op->kind, op->f, s[0].f, s[1].f, s[2].f);
            else
                r.i = ent_ops_map_i64(op->kind, op->f, s[0].i, s[1].i, s[2].i);
        }
        put(m->tiles[op->dst], dv->dtype, at++, r);
    } while (advance(dv, position));
}

static scalar reduce_step(uint32_t kind, scalar a, scalar b) {
    static const uint32_t map[] = {0, ENT_MAP_ADD, ENT_MAP_MAX, ENT_MAP_MIN, ENT_MAP_MUL};
    if (a.is_float)
        a.f = ent_ops_map_f64(map[kind], NULL, a.f, b.f, 0);
    else
        a.i = ent_ops_map_i64(map[kind], NULL, a.i, b.i, 0);
    return a;
}

static void run_reduce(machine *m, const ent_tile_op *op) {
    const ent_tile_value *sv = &m->program->values[op->source[0]], *dv = &m->program->values[op->dst];
    ent_tile_value inner = *sv; /* the part of the source that one result element covers */
    for (uint32_t a = 0; a < sv->rank; a++)
        if (!(op->axis_mask & 1u << a)) inner.shape[a] = 1;
    int64_t outer_position[ENT_TILE_MAX_RANK] = {0}, at = 0;
    do {
        int64_t position[ENT_TILE_MAX_RANK] = {0}, both[ENT_TILE_MAX_RANK] = {0};
        scalar result = {false, 0, 0};
        bool first = true;
        do {
            for (uint32_t a = 0; a < sv->rank; a++) both[a] = outer_position[a] + position[a];
            scalar s = get(m->tiles[op->source[0]], sv->dtype, broadcast_offset(sv, both));
            result = first ? s : reduce_step(op->kind, result, s);
            first = false;
        } while (advance(&inner, position));
        put(m->tiles[op->dst], dv->dtype, at++, result);
    } while (advance(dv, outer_position));
}

static void run_reshape(machine *m, const ent_tile_op *op) {
    const ent_tile_value *value = &m->program->values[op->dst];
    memcpy(m->tiles[op->dst], m->tiles[op->source[0]],
           (size_t)ent_ops_tile_elements(value) * (ent_dtype_bits(value->dtype) / 8));
}

static void run_permute(machine *m, const ent_tile_op *op) {
    const ent_tile_value *sv = &m->program->values[op->source[0]], *dv = &m->program->values[op->dst];
    int64_t position[ENT_TILE_MAX_RANK] = {0}, source[ENT_TILE_MAX_RANK] = {0}, at = 0;
    do {
        for (uint32_t a = 0; a < dv->rank; a++) source[op->perm[a]] = position[a];
        put(m->tiles[op->dst], dv->dtype, at++,
            get(m->tiles[op->source[0]], sv->dtype, broadcast_offset(sv, source)));
    } while (advance(dv, position));
}

static void run_iota(machine *m, const ent_tile_op *op) {
    const ent_tile_value *dv = &m->program->values[op->dst];
    int64_t position[ENT_TILE_MAX_RANK] = {0}, at = 0;
    uint64_t start = (uint64_t)to_i64(op->f[0]);
    if (op->variable != ENT_TILE_NONE) start += (uint64_t)op->step * (uint64_t)m->variables[op->variable];
    do {
        scalar s = {false, 0, (int64_t)start};
        for (uint32_t a = 0; a < dv->rank; a++)
            if (op->axis_mask & 1u << a) s.i = (int64_t)(start + (uint64_t)position[a]);
        put(m->tiles[op->dst], dv->dtype, at++, s);
    } while (advance(dv, position));
}

/* ---- control ---- */

static void run_op(machine *m, const ent_tile_op *op) {
    switch (op->opcode) {
    case ENT_TILE_LOAD:
    case ENT_TILE_COPY:
        run_load(m, op);
        break; /* the verifier saw that nobody looks before the wait */
    case ENT_TILE_STORE:
        run_store(m, op);
        break;
    case ENT_TILE_FILL:
        run_fill(m, op);
        break;
    case ENT_TILE_MMA:
        run_mma(m, op);
        break;
    case ENT_TILE_MAP:
        run_map(m, op);
        break;
    case ENT_TILE_REDUCE:
        run_reduce(m, op);
        break;
    case ENT_TILE_RESHAPE:
        run_reshape(m, op);
        break;
    case ENT_TILE_PERMUTE:
        run_permute(m, op);
        break;
    case ENT_TILE_IOTA:
        run_iota(m, op);
        break;
    default:
        break;
    }
}

static void run_instance(machine *m) {
    uint32_t loops[MAX_DEPTH], depth = 0;
    for (uint32_t at = 0; at < m->program->op_count; at++) {
        const ent_tile_op *op = &m->program->ops[at];
        if (op->opcode == ENT_TILE_LOOP) {
            m->variables[op->variable] = ent_dim_value(op->begin, m->sizes);
            if (m->variables[op->variable] < ent_dim_value(op->end, m->sizes))
                loops[depth++] = at;
            else
                at = m->ends[at];
        } else if (op->opcode == ENT_TILE_END) {
            const ent_tile_op *loop = &m->program->ops[loops[depth - 1]];
            int64_t *variable = &m->variables[loop->variable];
            bool more = !__builtin_add_overflow(*variable, loop->step, variable) &&
                        *variable < ent_dim_value(loop->end, m->sizes);
            if (more)
                at = loops[depth - 1];
            else
                depth--;
        } else {
            run_op(m, op);
        }
    }
}

/* Next instance, last grid axis fastest; false after the last. */
static bool next_instance(machine *m) {
    for (uint32_t g = m->program->grid_count; g-- > 0;) {
        int64_t extent = ent_dim_value(m->program->grid[g].extent, m->sizes);
        if (!__builtin_add_overflow(m->variables[g], m->program->grid[g].step, &m->variables[g]) &&
            m->variables[g] < extent)
            return true;
        m->variables[g] = 0;
    }
    return false;
}

static void run_grid(machine *m) {
    for (uint32_t g = 0; g < m->program->grid_count; g++)
        if (ent_dim_value(m->program->grid[g].extent, m->sizes) <= 0) return;
    do {
        m->instance++;
        run_instance(m);
    } while (m->code == ENT_OK && next_instance(m));
}

/* ---- set-up ---- */

static void match_loops(machine *m) {
    uint32_t open[MAX_DEPTH], depth = 0;
    for (uint32_t i = 0; i < m->program->op_count; i++) {
        if (m->program->ops[i].opcode == ENT_TILE_LOOP) open[depth++] = i;
        if (m->program->ops[i].opcode == ENT_TILE_END) m->ends[open[--depth]] = i;
    }
}

static ent_code set_up_buffer(machine *m, uint32_t index, void *given) {
    const ent_tile_buffer *buffer = &m->program->buffers[index];
    int64_t *dims = &m->buffer_dims[(size_t)index * ENT_MAX_RANK];
    for (uint32_t d = 0; d < buffer->rank; d++) {
        dims[d] = ent_dim_value(buffer->dims[d], m->sizes);
        if (dims[d] < 0 || dims[d] > INT64_MAX / 131072)
            return fail(m, ENT_CODE_INVALID_ARGUMENT,
                        "a buffer's size is negative or too large for these symbols");
    }
    int64_t bytes = ent_layout_bytes(&buffer->layout, buffer->dtype, dims);
    if (bytes < 0) return fail(m, ENT_CODE_INVALID_ARGUMENT, "a buffer's size overflows");
    m->buffers[index] = given;
    if (bytes == 0) return ENT_OK;
    if (buffer->role == ENT_ROLE_OUTPUT || buffer->role == ENT_ROLE_SCRATCH) {
        m->writers[index] = take(m, (size_t)bytes / (ent_dtype_bits(buffer->dtype) / 8), sizeof **m->writers);
        if (!m->writers[index]) return fail(m, ENT_CODE_OUT_OF_MEMORY, "no memory to watch a buffer");
    }
    if (given) return ENT_OK;
    if (buffer->role != ENT_ROLE_SCRATCH) return fail(m, ENT_CODE_INVALID_ARGUMENT, "a buffer has no memory");
    m->buffers[index] = take(m, (size_t)bytes, 1);
    m->owned[index] = true;
    return m->buffers[index] ? ENT_OK : fail(m, ENT_CODE_OUT_OF_MEMORY, "no memory for a scratch buffer");
}

static ent_code set_up(machine *m, void *const *buffers, const int64_t *symbols) {
    const ent_tile_program *p = m->program;
    m->sizes = take(m, p->expr_count, sizeof *m->sizes);
    m->buffer_dims = take(m, p->buffer_count, ENT_MAX_RANK * sizeof *m->buffer_dims);
    m->buffers = take(m, p->buffer_count, sizeof *m->buffers);
    m->owned = take(m, p->buffer_count, sizeof *m->owned);
    m->writers = take(m, p->buffer_count, sizeof *m->writers);
    m->tiles = take(m, p->value_count, sizeof *m->tiles);
    m->ends = take(m, p->op_count, sizeof *m->ends);
    if (!m->sizes || !m->buffer_dims || !m->buffers || !m->owned || !m->writers || !m->tiles || !m->ends)
        return fail(m, ENT_CODE_OUT_OF_MEMORY, "no memory for the tables of a tile program");
    if (!ent_expr_evaluate(p->exprs, p->expr_count, symbols, p->symbol_count, m->sizes))
        return fail(m, ENT_CODE_INVALID_ARGUMENT,
                    "a size expression overflows or divides by zero for these symbols");
    match_loops(m);
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        ent_code code = set_up_buffer(m, i, buffers[i]);
        if (code != ENT_OK) return code;
    }
    for (uint32_t i = 0; i < p->value_count; i++) {
        m->tiles[i] =
            take(m, (size_t)ent_ops_tile_elements(&p->values[i]), ent_dtype_bits(p->values[i].dtype) / 8);
        if (!m->tiles[i]) return fail(m, ENT_CODE_OUT_OF_MEMORY, "no memory for a tile");
    }
    return ENT_OK;
}

static void tear_down(machine *m) {
    for (uint32_t i = 0; m->tiles && i < m->program->value_count; i++) drop(m, m->tiles[i]);
    for (uint32_t i = 0; m->owned && m->buffers && i < m->program->buffer_count; i++)
        if (m->owned[i]) drop(m, m->buffers[i]);
    for (uint32_t i = 0; m->writers && i < m->program->buffer_count; i++) drop(m, m->writers[i]);
    drop(m, m->writers);
    drop(m, m->ends);
    drop(m, m->tiles);
    drop(m, m->owned);
    drop(m, m->buffers);
    drop(m, m->buffer_dims);
    drop(m, m->sizes);
}

ent_code ent_ops_tile_interpret(const ent_tile_program *program, void *const *buffers, const int64_t *symbols,
                                const ent_ops_memory *memory, ent_ops_error *error) {
    ent_ops_error ignored;
    machine m;
    memset(&m, 0, sizeof m);
    m.program = program;
    m.memory = memory ? memory : ent_ops_memory_default();
    m.error = error ? error : &ignored;
    ent_code code = ent_ops_tile_verify(program, m.error);
    if (code != ENT_OK) return code;
    code = set_up(&m, buffers, symbols);
    if (code == ENT_OK) run_grid(&m);
    tear_down(&m);
    return code == ENT_OK ? m.code : code;
}
