/* The analytical price of a tile program: what the units compute, and what moves between memory levels.
 *
 * Compute is counted per instance. Traffic is counted per buffer access: the part of the buffer that an
 * instance, or a sweep of the innermost grid axes, touches is its footprint; the longest sweep whose
 * footprints fit in a level together is what that level keeps, so everything outside it is fetched again
 * unless the access does not depend on the next axis. */
#include <math.h>
#include <string.h>

#include "core/fusion/internal.h"

#define MAX_LOOPS 16
#define MAX_GRID 16
#define MAX_ACCESSES 64

typedef struct machine {
    double units, l1_bytes, l2_bytes, l3_bytes;
    double l2_gbps, l3_gbps, l3_unit_gbps, dram_gbps, dram_unit_gbps; /* bytes per ns */
} machine;

typedef struct walk {
    const ent_tile_program *program;
    const ent_capability *capability;
    int64_t trips[ENT_TILE_MAX_VARIABLES]; /* values that a variable takes */
    int64_t reach[ENT_TILE_MAX_VARIABLES]; /* last minus first */
    double times;                          /* executions of the current op per instance */
    uint32_t depth;
    uint32_t loop_variable[MAX_LOOPS];
    double compute_ns, flops;
    double instances;
    double filled;                    /* share of the tile elements that are inside the grid's extents */
    uint32_t access_op[MAX_ACCESSES]; /* ops that move data */
    double access_times[MAX_ACCESSES];
    uint32_t access_count;
    bool mma_operand[1024]; /* tiles that feed a matrix multiply */
    bool in_pieces;         /* results are stored as pieces of longer rows, and so computed piece by piece */
    bool has_mma;
} walk;

static const ent_memory_level *level_of(const ent_capability *capability, const char *name) {
    for (uint32_t i = 0; i < capability->level_count; i++)
        if (capability->levels[i].name && strcmp(capability->levels[i].name, name) == 0)
            return &capability->levels[i];
    return NULL;
}

static double positive(double value, double otherwise) {
    return value > 0 ? value : otherwise;
}

static void read_machine(const ent_capability *capability, machine *m) {
    const ent_memory_level *l1 = level_of(capability, "l1"), *l2 = level_of(capability, "l2");
    const ent_memory_level *l3 = level_of(capability, "l3"), *dram = level_of(capability, "dram");
    if (!l1) l1 = level_of(capability, "shared");
    m->units = capability->units ? capability->units : 1;
    m->dram_gbps = positive(dram ? dram->read_gbps : 0, 10);
    m->dram_unit_gbps = positive(dram ? dram->unit_gbps : 0, m->dram_gbps);
    m->l1_bytes = l1 ? (double)l1->bytes : 32768;
    m->l2_bytes = l2 ? (double)l2->bytes : m->l1_bytes;
    m->l3_bytes = l3 ? (double)l3->bytes : m->l2_bytes * m->units;
    m->l2_gbps = positive(l2 ? l2->read_gbps : 0, 4 * m->dram_unit_gbps);
    m->l3_gbps = positive(l3 ? l3->read_gbps : 0, 2 * m->dram_gbps);
    m->l3_unit_gbps = positive(l3 ? l3->unit_gbps : 0, m->l3_gbps);
}

static int64_t constant_dim(ent_dim dim) {
    return dim >= 0 ? dim : 1;
}

static double elements_of(const ent_tile_value *value) {
    double elements = 1;
    for (uint32_t i = 0; i < value->rank; i++) elements *= (double)value->shape[i];
    return elements;
}

/* ---- compute ---- */

static double map_ns(const walk *w, uint32_t map) {
    const ent_tile_cost *cost = &w->capability->tile;
    switch (map) {
    case ENT_MAP_DIV:
    case ENT_MAP_SQRT:
    case ENT_MAP_RSQRT:
    case ENT_MAP_RECIPROCAL:
    case ENT_MAP_SOFTSIGN:
    case ENT_MAP_MOD:
        return cost->map_divide_ns;
    case ENT_MAP_EXP:
    case ENT_MAP_LOG:
    case ENT_MAP_TANH:
    case ENT_MAP_SIGMOID:
    case ENT_MAP_ERF:
    case ENT_MAP_ELU:
    case ENT_MAP_SELU:
    case ENT_MAP_GELU:
    case ENT_MAP_GELU_TANH:
    case ENT_MAP_SILU:
    case ENT_MAP_MISH:
    case ENT_MAP_SOFTPLUS:
    case ENT_MAP_SIN:
    case ENT_MAP_COS:
    case ENT_MAP_POW:
    case ENT_MAP_POW_SCALAR:
        return cost->map_transcendental_ns;
    default:
        return cost->map_cheap_ns;
    }
}

static const ent_matrix_unit *unit_for(const ent_capability *capability, uint32_t dtype) {
    for (uint32_t i = 0; i < capability->matrix_unit_count; i++)
        if (capability->matrix_units[i].dtype_a == dtype) return &capability->matrix_units[i];
    return NULL;
}

static void price_mma(walk *w, const ent_tile_op *op) {
    const ent_tile_value *a = &w->program->values[op->source[0]], *c = &w->program->values[op->dst];
    const ent_matrix_unit *unit = unit_for(w->capability, a->dtype);
    double k = (double)a->shape[a->rank - 1], n = (double)c->shape[c->rank - 1], m = elements_of(c) / n;
    double um = unit && unit->m > 0 ? (double)unit->m : 1, un = unit && unit->n > 0 ? (double)unit->n : 1;
    double gflops = unit ? unit->gflops * positive(w->capability->tile.mma_efficiency, 0.8) : 1;
    double padded = ceil(m * w->filled / um) * um * n;
    /* A panel narrower than the unit costs a narrow panel only down to half the unit. */
    if (n < un) padded = padded / n * fmax(n, un / 2);
    w->flops += 2 * m * n * k * w->times * w->filled;
    w->compute_ns += w->times * (2 * padded * k / gflops + w->capability->tile.op_ns);
    w->has_mma = true;
}

static void price_map(walk *w, const ent_tile_op *op) {
    double elements = elements_of(&w->program->values[op->dst]) * w->filled * w->times;
    const ent_tile_cost *cost = &w->capability->tile;
    double wide = ent_dtype_bits((ent_dtype)w->program->values[op->dst].dtype) / 32.0;
    bool window =
        w->depth > 0 && (op->kind == ENT_MAP_FMA || op->kind == ENT_MAP_MAX || op->kind == ENT_MAP_ADD);
    w->flops += elements * (op->kind == ENT_MAP_FMA ? 2 : 1);
    if (window)
        w->compute_ns += 2 * elements / positive(cost->window_gflops, 8) + 0.25 * cost->op_ns * w->times;
    else
        w->compute_ns += elements * map_ns(w, op->kind) * fmax(wide, 0.5) + cost->op_ns * w->times;
    const ent_tile_value *dst = &w->program->values[op->dst];
    bool folds = op->source_count != 1 || op->kind == ENT_MAP_RELU || op->kind == ENT_MAP_CLIP ||
                 op->kind == ENT_MAP_SCALE_SHIFT; /* done as the product leaves its registers */
    if (w->has_mma && w->in_pieces && !folds)
        w->compute_ns += FUSION_ROW_OPS * cost->op_ns * elements / (double)dst->shape[dst->rank - 1];
}

/* Innermost tile axis above 1 advances the buffer's innermost element by one. */
static bool is_contiguous(const walk *w, const ent_tile_access *access, const ent_tile_value *value,
                          bool *out_gather) {
    const ent_tile_buffer *buffer = &w->program->buffers[access->buffer];
    uint32_t inner = value->rank;
    while (inner > 0 && value->shape[inner - 1] == 1) inner--;
    *out_gather = false;
    for (uint32_t d = 0; d < access->rank; d++) *out_gather |= access->index[d].gather != ENT_TILE_NONE;
    if (inner == 0 || access->rank == 0) return true;
    uint32_t last = buffer->layout.block_count ? buffer->layout.block_axis[buffer->layout.block_count - 1]
                                               : buffer->layout.order[buffer->rank - 1];
    for (uint32_t i = buffer->rank;
         !buffer->layout.block_count && i-- > 1 && constant_dim(buffer->dims[last]) == 1;)
        last = buffer->layout.order[i - 1];
    const ent_tile_index *x = &access->index[last];
    return x->tile_axis == inner - 1 && x->step == 1 && x->divisor == 1;
}

static void price_move(walk *w, const ent_tile_op *op, uint32_t at) {
    const ent_tile_cost *cost = &w->capability->tile;
    uint32_t tile = op->opcode == ENT_TILE_STORE ? op->source[0] : op->dst;
    const ent_tile_access *access = &w->program->accesses[op->access];
    const ent_tile_value *value = &w->program->values[tile];
    double elements = elements_of(value) * w->filled * w->times;
    bool gather = false, contiguous = is_contiguous(w, access, value, &gather);
    if (w->access_count < MAX_ACCESSES) {
        w->access_op[w->access_count] = at;
        w->access_times[w->access_count++] = w->times;
    }
    uint32_t inner = value->rank;
    while (inner > 1 && value->shape[inner - 1] == 1) inner--;
    bool blocked = w->program->buffers[access->buffer].layout.block_count > 0;
    if (gather || !contiguous) {
        double each = gather ? cost->gather_ns : cost->copy_strided_ns;
        w->compute_ns +=
            (gather && contiguous ? elements / (double)value->shape[inner - 1] : elements) * each;
        if (!(blocked && w->mma_operand[tile])) w->compute_ns += cost->op_ns * w->times;
    } else if (!w->mma_operand[tile])
        w->compute_ns += 0.5 * cost->op_ns * w->times;
    /* A dynamic B is packed before use: two cheap passes. */
    if (contiguous && w->mma_operand[tile] && value->rank == 2 && !blocked &&
        w->program->buffers[access->buffer].role != ENT_ROLE_CONSTANT)
        w->compute_ns += elements * 0.25 * cost->map_cheap_ns;
}

static void price_op(walk *w, uint32_t at) {
    const ent_tile_op *op = &w->program->ops[at];
    switch (op->opcode) {
    case ENT_TILE_LOOP: {
        int64_t begin = constant_dim(op->begin), end = constant_dim(op->end);
        int64_t trips = end > begin ? fusion_ceil(end - begin, op->step) : 0;
        w->trips[op->variable] = trips;
        w->reach[op->variable] = trips > 0 ? (trips - 1) * op->step : 0;
        if (w->depth < MAX_LOOPS) w->loop_variable[w->depth] = op->variable;
        w->depth++;
        w->times *= (double)trips;
        break;
    }
    case ENT_TILE_END:
        w->depth--;
        if (w->depth < MAX_LOOPS && w->trips[w->loop_variable[w->depth]] > 0)
            w->times /= (double)w->trips[w->loop_variable[w->depth]];
        break;
    case ENT_TILE_LOAD:
    case ENT_TILE_COPY:
    case ENT_TILE_STORE:
        price_move(w, op, at);
        break;
    case ENT_TILE_MMA:
        price_mma(w, op);
        break;
    case ENT_TILE_MAP:
        price_map(w, op);
        break;
    case ENT_TILE_REDUCE: {
        double elements = elements_of(&w->program->values[op->source[0]]) * w->filled * w->times;
        w->flops += elements;
        w->compute_ns += elements * w->capability->tile.reduce_ns + w->capability->tile.op_ns * w->times;
        break;
    }
    case ENT_TILE_FILL:
    case ENT_TILE_RESHAPE:
    case ENT_TILE_PERMUTE:
    case ENT_TILE_IOTA:
        w->compute_ns += (elements_of(&w->program->values[op->dst]) * 0.5 * w->capability->tile.map_cheap_ns +
                          w->capability->tile.op_ns) *
                         w->times;
        break;
    default:
        break;
    }
}

/* ---- traffic ---- */

/* Bytes of the buffer touched while grid axes >= first_axis and all loops run. */
static double footprint(const walk *w, uint32_t at, uint32_t first_axis) {
    const ent_tile_op *op = &w->program->ops[at];
    const ent_tile_access *access = &w->program->accesses[op->access];
    const ent_tile_value *value = &w->program->values[op->opcode == ENT_TILE_STORE ? op->source[0] : op->dst];
    const ent_tile_buffer *buffer = &w->program->buffers[access->buffer];
    double bytes = ent_dtype_bits((ent_dtype)value->dtype) / 8.0;
    for (uint32_t d = 0; d < access->rank; d++) {
        const ent_tile_index *x = &access->index[d];
        double points = 1, range = 1;
        for (uint32_t t = 0; t < x->term_count; t++) {
            uint32_t v = x->terms[t].variable;
            if (v < w->program->grid_count && v < first_axis) continue;
            points *= (double)w->trips[v];
            range += fabs((double)x->terms[t].coefficient) * (double)w->reach[v];
        }
        if (x->tile_axis != ENT_TILE_NONE) {
            points *= (double)value->shape[x->tile_axis];
            range += (double)x->step * (double)(value->shape[x->tile_axis] - 1);
        }
        if (x->gather != ENT_TILE_NONE) {
            points *= elements_of(&w->program->values[x->gather]);
            range = (double)constant_dim(buffer->dims[d]);
        }
        bytes *= fmax(
            1, fmin(fmin(points, range / (double)x->divisor + 1), (double)constant_dim(buffer->dims[d])));
    }
    return bytes;
}

static bool depends(const walk *w, uint32_t at, uint32_t axis) {
    const ent_tile_access *access = &w->program->accesses[w->program->ops[at].access];
    for (uint32_t d = 0; d < access->rank; d++)
        for (uint32_t t = 0; t < access->index[d].term_count; t++)
            if (access->index[d].terms[t].variable == axis) return true;
    return false;
}

/* Bytes that come from beyond a level of the given size, over the whole grid. only_constants: of constant
 * buffers. */
static double traffic_beyond(const walk *w, double level_bytes, uint32_t *out_first, double *by_access) {
    uint32_t grid = w->program->grid_count, first = grid;
    double total = 0;
    while (first > 0) {
        double together = 0;
        for (uint32_t i = 0; i < w->access_count; i++) together += footprint(w, w->access_op[i], first - 1);
        if (together > level_bytes) break;
        first--;
    }
    *out_first = first;
    for (uint32_t i = 0; i < w->access_count; i++) {
        uint32_t outer = first;
        while (outer > 0 && !depends(w, w->access_op[i], outer - 1)) outer--;
        double bytes = footprint(w, w->access_op[i], first);
        for (uint32_t g = 0; g < outer; g++) bytes *= (double)w->trips[g];
        by_access[i] = bytes;
        total += bytes;
    }
    return total;
}

static double buffer_bytes(const ent_tile_buffer *buffer) {
    double bytes = ent_dtype_bits((ent_dtype)buffer->dtype) / 8.0;
    for (uint32_t i = 0; i < buffer->rank; i++) bytes *= (double)constant_dim(buffer->dims[i]);
    return bytes;
}

/* Activations were written just before and are read from a cache they fit in; weights only if all of the
 * model's fit. */
static double dram_traffic(const walk *w, const machine *m, double constant_bytes) {
    double beyond[MAX_ACCESSES], total = 0;
    uint32_t first = 0;
    traffic_beyond(w, m->l3_bytes * 0.75, &first, beyond);
    for (uint32_t i = 0; i < w->access_count; i++) {
        const ent_tile_op *op = &w->program->ops[w->access_op[i]];
        const ent_tile_buffer *buffer = &w->program->buffers[w->program->accesses[op->access].buffer];
        double size = buffer_bytes(buffer), limit = m->l3_bytes * 0.5;
        bool far = buffer->role == ENT_ROLE_CONSTANT ? constant_bytes > limit : size > limit;
        /* A line that is written is read first, and goes back later. */
        if (far) total += op->opcode == ENT_TILE_STORE ? 2 * beyond[i] : beyond[i];
    }
    return total;
}

static bool stores_pieces(const ent_tile_program *program, const ent_tile_op *op) {
    const ent_tile_access *access = &program->accesses[op->access];
    const ent_tile_buffer *buffer = &program->buffers[access->buffer];
    const ent_tile_value *value = &program->values[op->source[0]];
    uint32_t last = buffer->rank ? buffer->layout.order[buffer->rank - 1] : 0;
    return buffer->rank > 0 && value->rank > 1 && access->index[last].tile_axis == value->rank - 1 &&
           value->shape[value->rank - 1] < constant_dim(buffer->dims[last]);
}

/* Bytes of activations that another unit wrote, and that so come out of its caches: with n units, n - 1 of n.
 */
static double shared_traffic(const walk *w, double units) {
    double bytes = 0;
    for (uint32_t i = 0; i < w->access_count; i++) {
        const ent_tile_op *op = &w->program->ops[w->access_op[i]];
        const ent_tile_buffer *buffer = &w->program->buffers[w->program->accesses[op->access].buffer];
        if (op->opcode != ENT_TILE_STORE && buffer->role == ENT_ROLE_INPUT)
            bytes += footprint(w, w->access_op[i], 0);
    }
    return bytes * (units - 1) / units;
}

static void start(walk *w, const ent_tile_program *program, const ent_capability *capability) {
    memset(w, 0, sizeof *w);
    w->program = program;
    w->capability = capability;
    w->times = w->instances = w->filled = 1;
    for (uint32_t g = 0; g < program->grid_count; g++) {
        int64_t extent = constant_dim(program->grid[g].extent), step = program->grid[g].step;
        w->trips[g] = fusion_ceil(extent, step);
        w->reach[g] = (w->trips[g] - 1) * step;
        w->instances *= (double)w->trips[g];
        w->filled *= w->trips[g] ? (double)extent / (double)(w->trips[g] * step) : 1;
    }
    for (uint32_t i = 0; i < program->op_count; i++) {
        if (program->ops[i].opcode == ENT_TILE_STORE)
            w->in_pieces |= stores_pieces(program, &program->ops[i]);
        if (program->ops[i].opcode != ENT_TILE_MMA) continue;
        for (uint32_t s = 0; s < 2; s++)
            if (program->ops[i].source[s] < 1024) w->mma_operand[program->ops[i].source[s]] = true;
    }
}

ent_status fusion_price(const ent_tile_program *program, const ent_capability *capability,
                        double constant_bytes, ent_fusion_price *out) {
    walk w;
    machine m;
    double beyond[MAX_ACCESSES];
    uint32_t first = 0;
    read_machine(capability, &m);
    start(&w, program, capability);
    for (uint32_t i = 0; i < program->op_count; i++) price_op(&w, i);
    const ent_tile_cost *cost = &capability->tile;
    double workers = fmin(m.units, fmax(1, w.instances));
    double rounds = ceil(w.instances / m.units);
    if (w.instances > 8 * m.units) rounds = w.instances / m.units;
    double compute = rounds * (w.compute_ns + cost->instance_ns);
    double l3_bytes = traffic_beyond(&w, m.l2_bytes * 0.75, &first, beyond) + shared_traffic(&w, m.units);
    double l2_bytes = traffic_beyond(&w, m.l1_bytes * 0.75, &first, beyond);
    double dram_bytes = dram_traffic(&w, &m, constant_bytes);
    double l2_ns = l2_bytes / (m.l2_gbps * workers);
    double l3_ns = l3_bytes / fmin(m.l3_gbps, m.l3_unit_gbps * workers);
    double dram_ns = dram_bytes / fmin(m.dram_gbps, m.dram_unit_gbps * workers);
    double memory = fmax(fmax(l2_ns, l3_ns), dram_ns);
    double fixed = cost->launch_ns + (w.instances > 1 && m.units > 1 ? cost->sync_ns : 0);
    double mid = fixed + fmax(compute, memory) + 0.2 * fmin(compute, memory);
    double rest = mid - fixed;
    out->bound_by = fixed > rest        ? "launch"
                    : compute >= memory ? "compute"
                    : memory == dram_ns ? "dram"
                    : memory == l3_ns   ? "l3"
                                        : "l2";
    out->time_mid_ns = mid;
    out->time_low_ns = mid * 0.6;
    out->time_high_ns = mid * 1.7;
    out->flops = w.flops * w.instances;
    out->traffic_bytes = (uint64_t)dram_bytes;
    out->scratch_bytes = 0;
    for (uint32_t b = 0; b < program->buffer_count; b++)
        if (program->buffers[b].role == ENT_ROLE_SCRATCH)
            out->scratch_bytes += (uint64_t)buffer_bytes(&program->buffers[b]);
    return NULL;
}

ent_status ent_fusion_price_program(const ent_tile_program *program, const ent_capability *capability,
                                    ent_fusion_price *out) {
    double constants = 0;
    for (uint32_t b = 0; b < program->buffer_count; b++)
        if (program->buffers[b].role == ENT_ROLE_CONSTANT) constants += buffer_bytes(&program->buffers[b]);
    return fusion_price(program, capability, constants, out);
}
