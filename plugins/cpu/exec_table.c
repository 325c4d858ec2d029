/* Moves whose addresses are not linear in the tile's position: gathers, divisors, blocks.
 *
 * The offset of an element is a sum over tile axes. An axis is linear, or has a table of offsets that is made
 * once for all rows of the tile. A row is moved by segments of its innermost axis: runs, what lies outside,
 * and the rest element by element. Dims gathered through several axes (GatherND) have no sum: their rows get
 * a table each. */
#include "exec.h"

#define OUTSIDE INT64_MIN
#define MAX_SEGMENTS 16
#define SHORTEST_RUN 12 /* elements; below, picking them is as quick */

typedef enum segment_kind { LINEAR, NOWHERE, PICKED } segment_kind;

typedef struct segment {
    segment_kind kind;
    int64_t begin, end;
    int64_t first, step; /* LINEAR: offsets; PICKED, NOWHERE: unused */
} segment;

typedef struct axis_map {
    int64_t *table;       /* offset of each position, or OUTSIDE; NULL: linear. Then 1 if none is OUTSIDE */
    int64_t step, lo, hi; /* linear: step * position within [lo, hi) */
    int64_t count;        /* of the table */
    bool fixed;           /* the table is the same for every instance */
} axis_map;

typedef struct mover {
    const exec_run *run;
    const exec_access *access;
    const exec_tile *tile;
    const uint32_t *gathers; /* tile of each dim, or NONE */
    const char *fill;        /* NULL: a store */
    char *buffer;
    int64_t bytes, extents[EXEC_RANK], strides[EXEC_RANK]; /* of the tile */
    axis_map axes[EXEC_RANK];
    int64_t constant; /* of dims that no axis moves; OUTSIDE: all is */
    uint32_t inner;   /* the innermost axis of more than one element */
    uint32_t rest[ENT_MAX_RANK], rest_count;
    int64_t *row; /* table of the row at hand, where there are such dims */
    segment segments[MAX_SEGMENTS];
    uint32_t segment_count;
} mover;

/* ---- offsets ---- */

/* Adds a dim's offset at one coordinate; false outside. */
static bool add_coordinate(const exec_dim *dim, int64_t sum, int64_t gathered, int64_t *offset) {
    if (dim->exact && sum % dim->divisor != 0) return false;
    int64_t at = dim->divisor == 1 ? sum : ent_expr_floordiv(sum, dim->divisor);
    if (__builtin_add_overflow(at, gathered, &at) || at < 0 || at >= dim->limit) return false;
    *offset += dim->block == 1 ? at * dim->stride
                               : at / dim->block * dim->stride + at % dim->block * dim->block_stride;
    return true;
}

/* Positions start, start + step, ... without a division for each. True when all are inside. */
static bool add_strided(const exec_dim *dim, int64_t start, int64_t step, int64_t n, int64_t *offsets) {
    const exec_dim d = *dim; /* its own copy: what is written to offsets cannot change it */
    int64_t at = ent_expr_floordiv(start, d.divisor), left = start - at * d.divisor;
    int64_t whole = ent_expr_floordiv(step, d.divisor), part = step - whole * d.divisor;
    int64_t last = ent_expr_floordiv(start + step * (n - 1), d.divisor);
    bool plain = d.block == 1 && !d.exact && at >= 0 && at < d.limit && last >= 0 && last < d.limit;
    for (int64_t i = 0; i < n; i++) {
        if (plain)
            offsets[i] = offsets[i] == OUTSIDE ? OUTSIDE : offsets[i] + at * d.stride;
        else if (at < 0 || at >= d.limit || (d.exact && left != 0))
            offsets[i] = OUTSIDE;
        else if (offsets[i] != OUTSIDE)
            offsets[i] +=
                d.block == 1 ? at * d.stride : at / d.block * d.stride + at % d.block * d.block_stride;
        at += whole;
        left += part;
        bool over = left >= d.divisor;
        left -= over ? d.divisor : 0;
        at += over;
    }
    return plain;
}

/* A gathered dim along one axis: index[i * index_step] is added to the coordinate. */
typedef struct indices {
    const char *base;
    int64_t step;
    bool wide; /* 64 bits, not 32 */
} indices;

static inline int64_t index_at(const indices *index, bool wide, int64_t i) {
    return wide ? ((const int64_t *)(const void *)index->base)[i * index->step]
                : ((const int32_t *)(const void *)index->base)[i * index->step];
}

static inline bool add_gathered_as(const exec_dim *dim, int64_t start, int64_t step, const indices *index,
                                   bool wide, int64_t n, int64_t *offsets) {
    const exec_dim d = *dim;
    const indices from = *index;
    bool plain = d.divisor == 1 && d.block == 1, any = false;
    for (int64_t i = 0; i < n; i++, start += step) {
        int64_t gathered = index_at(&from, wide, i), at;
        if (offsets[i] == OUTSIDE) continue;
        if (plain) { /* without a branch */
            bool outside = __builtin_add_overflow(start, gathered, &at) | ((uint64_t)at >= (uint64_t)d.limit);
            int64_t sum = (int64_t)((uint64_t)offsets[i] + (uint64_t)at * (uint64_t)d.stride);
            offsets[i] = outside ? OUTSIDE : sum;
            any |= outside;
        } else if (!add_coordinate(&d, start, gathered, &offsets[i])) {
            offsets[i] = OUTSIDE;
            any = true;
        }
    }
    return !any;
}

/* True when all of them are inside. */
static bool add_gathered(const exec_dim *dim, int64_t start, int64_t step, const indices *index, int64_t n,
                         int64_t *offsets) {
    return index->wide ? add_gathered_as(dim, start, step, index, true, n, offsets)
                       : add_gathered_as(dim, start, step, index, false, n, offsets);
}

/* The indices along `axis` from a position on. */
static indices indices_along(const mover *m, uint32_t gather, const int64_t *position, uint32_t axis) {
    const exec_tile *tile = &m->run->plan->tiles[gather];
    const exec_view *view = &m->run->views[gather];
    int64_t at = 0;
    for (uint32_t a = 0; a < tile->rank; a++)
        if (tile->shape[a] > 1 && a != axis) at += view->strides[a] * position[a];
    bool moves = axis < tile->rank && tile->shape[axis] > 1;
    return (indices){view->base + at * tile->element_bytes, moves ? view->strides[axis] : 0,
                     tile->dtype != ENT_DTYPE_I32};
}

/* ---- axes ---- */

/* The one tile axis that a dim depends on; EXEC_RANK: none; NONE: several. */
static uint32_t axis_of(const mover *m, const exec_dim *dim, uint32_t gather) {
    uint32_t axis = dim->axis == EXEC_NONE ? EXEC_RANK : dim->axis;
    for (uint32_t a = 0; gather != EXEC_NONE && a < m->tile->rank; a++) {
        if (m->run->plan->tiles[gather].shape[a] == 1 || a == axis) continue;
        if (axis != EXEC_RANK) return EXEC_NONE;
        axis = a;
    }
    return axis;
}

static void add_constant(mover *m, const exec_dim *dim, uint32_t gather, int64_t start) {
    const int64_t position[EXEC_RANK] = {0};
    int64_t gathered = 0;
    if (gather != EXEC_NONE) {
        indices index = indices_along(m, gather, position, EXEC_RANK);
        gathered = index_at(&index, index.wide, 0);
    }
    if (m->constant != OUTSIDE && !add_coordinate(dim, start, gathered, &m->constant)) m->constant = OUTSIDE;
}

static void add_linear(mover *m, const exec_dim *dim, axis_map *axis, int64_t start) {
    int64_t lo, hi;
    exec_interval(start, dim->step, dim->limit, m->extents[dim->axis], &lo, &hi);
    axis->lo = lo > axis->lo ? lo : axis->lo;
    axis->hi = hi < axis->hi ? hi : axis->hi;
    axis->step += dim->step * dim->stride;
    if (m->constant != OUTSIDE) m->constant += start * dim->stride;
}

static void add_to_table(const mover *m, const exec_dim *dim, uint32_t gather, uint32_t a, int64_t start) {
    const int64_t position[EXEC_RANK] = {0};
    const axis_map *axis = &m->axes[a];
    int64_t step = dim->axis == a ? dim->step : 0;
    bool inside;
    if (gather == EXEC_NONE) {
        inside = add_strided(dim, start, step, axis->count, axis->table);
    } else {
        indices index = indices_along(m, gather, position, a);
        inside = add_gathered(dim, start, step, &index, axis->count, axis->table);
    }
    axis->table[axis->count] &= inside;
}

static void add_dim(mover *m, const exec_dim *dim, uint32_t gather, uint32_t axis, bool made) {
    int64_t start = exec_dim_start(m->run, dim);
    if (axis == EXEC_NONE)
        m->rest[m->rest_count++] = (uint32_t)(dim - m->access->dims);
    else if (axis == EXEC_RANK)
        add_constant(m, dim, gather, start);
    else if (!m->axes[axis].table)
        add_linear(m, dim, &m->axes[axis], start);
    else if (!(m->axes[axis].fixed && made))
        add_to_table(m, dim, gather, axis, start);
}

/* Which axes need a table, and which tables no variable moves. */
static void find_tables(mover *m, uint32_t *axis_of_dim, int64_t *room) {
    for (uint32_t a = 0; a < m->tile->rank; a++)
        m->axes[a] = (axis_map){.hi = m->extents[a], .fixed = true, .count = m->tile->shape[a]};
    for (uint32_t d = 0; d < m->access->rank; d++) {
        const exec_dim *dim = &m->access->dims[d];
        uint32_t axis = axis_of_dim[d] = axis_of(m, dim, m->gathers[d]);
        if (axis >= EXEC_RANK) continue;
        if (m->gathers[d] != EXEC_NONE || dim->divisor != 1 || dim->block != 1) m->axes[axis].table = room;
        if (m->gathers[d] != EXEC_NONE || dim->term_count) m->axes[axis].fixed = false;
    }
}

/* made: the tables that are fixed are in place. */
static void make_axes(mover *m, int64_t *room, bool made) {
    uint32_t axis_of_dim[ENT_MAX_RANK];
    find_tables(m, axis_of_dim, room);
    for (uint32_t a = 0; a < m->tile->rank; a++) {
        axis_map *axis = &m->axes[a];
        if (axis->table) {
            axis->table = room;
            if (!axis->fixed) axis->count = m->extents[a];
            if (!axis->fixed || !made) {
                memset(axis->table, 0, (size_t)axis->count * sizeof *room);
                axis->table[axis->count] = 1;
            }
        }
        room += m->tile->shape[a] + 1;
    }
    m->row = room;
    for (uint32_t d = 0; d < m->access->rank; d++)
        add_dim(m, &m->access->dims[d], m->gathers[d], axis_of_dim[d], made);
}

static int64_t offset_on(const axis_map *axis, int64_t position) {
    if (axis->table) return axis->table[position];
    return position < axis->lo || position >= axis->hi ? OUTSIDE : axis->step * position;
}

static int64_t plus(int64_t a, int64_t b) {
    return a == OUTSIDE || b == OUTSIDE ? OUTSIDE : a + b;
}

size_t exec_move_scratch(exec_plan *plan, exec_step *step, size_t offset) {
    const exec_tile *tile = &plan->tiles[step->kind == EXEC_LOAD ? step->dst : step->source[0]];
    int64_t longest = 0;
    if (plan->accesses[step->access].affine) return offset;
    step->data_offset = offset;
    for (uint32_t a = 0; a < tile->rank; a++) {
        offset += (size_t)(tile->shape[a] + 1) * sizeof(int64_t);
        longest = tile->shape[a] > longest ? tile->shape[a] : longest;
    }
    return (offset + (size_t)longest * sizeof(int64_t) + 63) & ~(size_t)63;
}

/* ---- segments of the innermost axis ---- */

static void add_segment(mover *m, segment_kind kind, int64_t begin, int64_t end, int64_t first,
                        int64_t step) {
    if (begin < end) m->segments[m->segment_count++] = (segment){kind, begin, end, first, step};
}

/* Position `at` goes on from position `from`, or both lie outside. */
static bool follows(const int64_t *table, int64_t from, int64_t at) {
    return table[from] == OUTSIDE ? table[at] == OUTSIDE : table[at] == table[from] + (at - from);
}

/* Looks for runs at every SHORTEST_RUN-th position only, and from there in both directions: a run of twice
 * that is never missed, and a table without runs costs little. */
static void find_runs(mover *m, const int64_t *table, int64_t n) {
    int64_t look = n < SHORTEST_RUN ? n : SHORTEST_RUN, settled = 0;
    for (int64_t i = 0; i + look <= n && m->segment_count + 3 < MAX_SEGMENTS;) {
        int64_t begin = i, end = i + 1;
        if (follows(table, i, i + look - 1))
            while (end < n && follows(table, i, end)) end++;
        while (end - i >= look && begin > settled && follows(table, begin - 1, i)) begin--;
        if (end - i >= look) {
            add_segment(m, PICKED, settled, begin, 0, 0);
            add_segment(m, table[i] == OUTSIDE ? NOWHERE : LINEAR, begin, end, table[begin], 1);
            settled = i = end;
        } else {
            i += look;
        }
    }
    add_segment(m, PICKED, settled, n, 0, 0);
}

static void make_segments(mover *m) {
    const axis_map *axis = &m->axes[m->inner];
    int64_t n = m->extents[m->inner];
    m->segment_count = 0;
    if (axis->table) {
        find_runs(m, axis->table, n);
        return;
    }
    add_segment(m, NOWHERE, 0, axis->hi > axis->lo ? axis->lo : n, 0, 0);
    add_segment(m, LINEAR, axis->lo, axis->hi, axis->step * axis->lo, axis->step);
    add_segment(m, NOWHERE, axis->hi > axis->lo ? axis->hi : n, n, 0, 0);
}

/* ---- rows ---- */

#define PICK(type)                                                                                           \
    for (int64_t i = 0; i < n && inside; i++)                                                                \
        ((type *)(void *)row)[i * stride] = ((const type *)(const void *)from)[at[i]];                       \
    for (int64_t i = 0; i < n && !inside; i++)                                                               \
    ((type *)(void *)row)[i * stride] =                                                                      \
        *(at[i] != OUTSIDE ? (const type *)(const void *)from + at[i] : (const type *)(const void *)m->fill)
#define PUT(type)                                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                          \
        if (at[i] != OUTSIDE) ((type *)(void *)from)[at[i]] = ((const type *)(const void *)row)[i * stride]

/* Element by element; `from` is the place of offset 0. inside: all are. */
/* size: table */
static void pick(const mover *m, char *from, const int64_t *at, bool inside, int64_t n, char *row,
                 int64_t stride) {
    if (m->fill) switch (m->bytes) {
        case 1:
            PICK(uint8_t);
            return;
        case 2:
            PICK(uint16_t);
            return;
        case 4:
            PICK(uint32_t);
            return;
        default:
            PICK(uint64_t);
            return;
        }
    switch (m->bytes) {
    case 1:
        PUT(uint8_t);
        return;
    case 2:
        PUT(uint16_t);
        return;
    case 4:
        PUT(uint32_t);
        return;
    default:
        PUT(uint64_t);
        return;
    }
}

static void copy_run(const mover *m, int64_t n, const char *from, int64_t from_stride, char *to,
                     int64_t to_stride) {
    if (from_stride == 1 && to_stride == 1)
        memcpy(to, from, (size_t)(n * m->bytes));
    else
        exec_copy(m->run->plan->kernels, 1, &n, from, &from_stride, to, &to_stride, (uint32_t)m->bytes);
}

static void move_segment(const mover *m, const segment *s, int64_t outer, char *row) {
    int64_t n = s->end - s->begin, stride = m->strides[m->inner];
    row += s->begin * stride * m->bytes;
    if (s->kind == NOWHERE || outer == OUTSIDE) {
        if (m->fill) copy_run(m, n, m->fill, 0, row, stride);
    } else if (s->kind == PICKED) {
        const axis_map *axis = &m->axes[m->inner];
        pick(m, m->buffer + outer * m->bytes, axis->table + s->begin, axis->table[axis->count] != 0, n, row,
             stride);
    } else {
        char *at = m->buffer + (outer + s->first) * m->bytes;
        if (m->fill)
            copy_run(m, n, at, s->step, row, stride);
        else
            copy_run(m, n, row, stride, at, s->step);
    }
}

/* A row of its own offsets: those of the axis, and the dims gathered through several axes. */
static void move_gathered_row(const mover *m, const int64_t *position, int64_t outer, char *row) {
    int64_t n = m->extents[m->inner];
    for (int64_t i = 0; i < n; i++) m->row[i] = offset_on(&m->axes[m->inner], i);
    for (uint32_t r = 0; r < m->rest_count; r++) {
        const exec_dim *dim = &m->access->dims[m->rest[r]];
        int64_t start = exec_dim_start(m->run, dim), step = dim->axis == m->inner ? dim->step : 0;
        if (dim->axis != EXEC_NONE && dim->axis != m->inner) start += dim->step * position[dim->axis];
        indices index = indices_along(m, m->gathers[m->rest[r]], position, m->inner);
        add_gathered(dim, start, step, &index, n, m->row);
    }
    pick(m, m->buffer + outer * m->bytes, m->row, false, n, row, m->strides[m->inner]);
}

static void move_row(const mover *m, const int64_t *position, int64_t outer, char *row) {
    if (outer != OUTSIDE && m->rest_count) {
        move_gathered_row(m, position, outer, row);
        return;
    }
    for (uint32_t s = 0; s < m->segment_count; s++) move_segment(m, &m->segments[s], outer, row);
}

/* Whole rows, found by a table without gaps. */
static bool gathers_rows(const mover *m) {
    if (m->inner == 0 || m->rest_count || !m->fill || m->segment_count != 1 || m->strides[m->inner] != 1)
        return false;
    const segment *s = &m->segments[0];
    const axis_map *axis = &m->axes[m->inner - 1];
    return s->kind == LINEAR && s->step == 1 && axis->table && axis->table[axis->count];
}

/* The rows along the axis before the innermost; position is at its first. A row from where the one before
 * came from is copied from that: enlarging an image repeats rows. */
static void move_rows(const mover *m, int64_t *position, int64_t outer, char *row, bool whole) {
    const axis_map *axis = &m->axes[m->inner - 1];
    int64_t n = m->extents[m->inner - 1], stride = m->strides[m->inner - 1] * m->bytes, before = OUTSIDE;
    if (whole && outer != OUTSIDE) {
        m->run->plan->kernels->gather_rows(m->buffer + (outer + m->segments[0].first) * m->bytes, m->bytes,
                                           axis->table, n, row, stride, m->extents[m->inner] * m->bytes);
        return;
    }
    bool repeats = m->fill && !m->rest_count && m->strides[m->inner] == 1;
    for (int64_t i = 0; i < n; i++, row += stride) {
        int64_t at = plus(outer, offset_on(axis, i));
        position[m->inner - 1] = i;
        if (repeats && i > 0 && at == before)
            memcpy(row, row - stride, (size_t)(m->extents[m->inner] * m->bytes));
        else
            move_row(m, position, at, row);
        before = at;
    }
    position[m->inner - 1] = 0;
}

static void move_all(mover *m, char *base) {
    int64_t position[EXEC_RANK] = {0};
    if (m->inner == 0) {
        move_row(m, position, m->constant, base);
        return;
    }
    bool whole = gathers_rows(m);
    uint32_t outer_axes = m->inner - 1;
    for (;;) {
        int64_t outer = m->constant, at = 0;
        for (uint32_t a = 0; a < outer_axes; a++) {
            outer = plus(outer, offset_on(&m->axes[a], position[a]));
            at += m->strides[a] * position[a];
        }
        move_rows(m, position, outer, base + at * m->bytes, whole);
        uint32_t a = outer_axes;
        while (a > 0 && ++position[a - 1] == m->extents[a - 1]) position[--a] = 0;
        if (a == 0) return;
    }
}

void exec_move_by_table(exec_run *run, const exec_step *step, uint32_t index, const uint32_t *gathers,
                        const char *fill) {
    const exec_tile *tile = &run->plan->tiles[index];
    const exec_access *access = &run->plan->accesses[step->access];
    uint32_t gather_of[ENT_MAX_RANK];
    mover m = {.run = run,
               .access = access,
               .tile = tile,
               .gathers = gather_of,
               .fill = fill,
               .buffer = run->buffers[access->buffer],
               .bytes = tile->element_bytes,
               .inner = tile->rank - 1};
    for (uint32_t d = 0; d < access->rank; d++)
        gather_of[d] = access->dims[d].gather == EXEC_NONE ? EXEC_NONE : *gathers++;
    for (uint32_t a = 0; a < tile->rank; a++) {
        m.extents[a] = exec_extent(run, tile, a);
        m.strides[a] = run->views[index].strides[a];
    }
    size_t number = (size_t)(step - run->plan->steps);
    uint64_t bit = number < 64 ? (uint64_t)1 << number : 0;
    make_axes(&m, (int64_t *)(void *)(run->scratch + (size_t)step->data_offset), run->tables_made & bit);
    run->tables_made |= bit;
    while (m.inner > 0 && m.extents[m.inner] == 1) { /* axes of one element */
        m.constant = plus(m.constant, offset_on(&m.axes[m.inner], 0));
        m.inner--;
    }
    make_segments(&m);
    move_all(&m, run->views[index].base);
}
