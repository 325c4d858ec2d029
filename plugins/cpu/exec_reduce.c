/* Reductions: rows for axes that lie in one run, columns for the others. */
#include "exec.h"

typedef struct reduce_data {
    uint32_t kind, dtype; /* ent_reduce_kind */
    float (*row)(const float *x, int64_t n);
    void (*columns)(const float *x, int64_t stride, int64_t rows, float *accumulator, int64_t n);
} reduce_data;

bool exec_bind_reduce(exec_plan *plan, exec_step *step) {
    static const uint8_t kinds[] = {0, ENT_CPU_REDUCE_SUM, ENT_CPU_REDUCE_MAX, ENT_CPU_REDUCE_MIN};
    reduce_data *data = exec_allocate(&plan->arena, sizeof *data);
    if (!data) return false;
    step->data = data;
    data->kind = step->op->kind;
    data->dtype = plan->tiles[step->dst].dtype;
    if (data->dtype != ENT_DTYPE_F32 || data->kind == ENT_REDUCE_PROD) return false;
    data->row = plan->kernels->reduce[kinds[data->kind]];
    data->columns = plan->kernels->reduce_columns[kinds[data->kind]];
    return true;
}

/* Axes of the source, reduced ones apart from kept ones, outermost first; strides in elements. */
typedef struct walk {
    uint32_t kept, reduced;
    int64_t kept_extent[EXEC_RANK], kept_from[EXEC_RANK], kept_to[EXEC_RANK];
    int64_t reduced_extent[EXEC_RANK], reduced_from[EXEC_RANK];
} walk;

static void make_walk(const exec_run *run, const exec_step *step, walk *w) {
    const exec_tile *from = &run->plan->tiles[step->source[0]];
    const int64_t *source = run->views[step->source[0]].strides, *target = run->views[step->dst].strides;
    w->kept = w->reduced = 0;
    for (uint32_t a = 0; a < from->rank; a++) {
        int64_t extent = exec_extent(run, from, a);
        uint32_t k = w->kept, r = w->reduced;
        if (extent == 1) continue;
        if (step->op->axis_mask >> a & 1) {
            if (r > 0 && w->reduced_from[r - 1] == source[a] * extent) {
                w->reduced_extent[r - 1] *= extent;
                w->reduced_from[r - 1] = source[a];
                continue;
            }
            w->reduced_extent[r] = extent;
            w->reduced_from[w->reduced++] = source[a];
        } else {
            if (k > 0 && w->kept_from[k - 1] == source[a] * extent &&
                w->kept_to[k - 1] == target[a] * extent) {
                w->kept_extent[k - 1] *= extent;
                w->kept_from[k - 1] = source[a];
                w->kept_to[k - 1] = target[a];
                continue;
            }
            w->kept_extent[k] = extent;
            w->kept_from[k] = source[a];
            w->kept_to[w->kept++] = target[a];
        }
    }
}

/* Steps a position over axes [0, count); false after the last. */
static bool next(uint32_t count, const int64_t *extents, const int64_t *strides, int64_t *position,
                 int64_t *offset) {
    for (uint32_t a = count; a-- > 0;) {
        *offset += strides[a];
        if (++position[a] < extents[a]) return true;
        *offset -= strides[a] * extents[a];
        position[a] = 0;
    }
    return false;
}

static bool next_kept(const walk *w, uint32_t count, int64_t *position, int64_t *from, int64_t *to) {
    for (uint32_t a = count; a-- > 0;) {
        *from += w->kept_from[a];
        *to += w->kept_to[a];
        if (++position[a] < w->kept_extent[a]) return true;
        *from -= w->kept_from[a] * w->kept_extent[a];
        *to -= w->kept_to[a] * w->kept_extent[a];
        position[a] = 0;
    }
    return false;
}

static float combine(uint32_t kind, float a, float b) {
    if (kind == ENT_REDUCE_SUM) return a + b;
    return (float)ent_ops_map_f64(kind == ENT_REDUCE_MAX ? ENT_MAP_MAX : ENT_MAP_MIN, NULL, a, b, 0);
}

/* The innermost reduced axis is a run. */
static void reduce_rows(const reduce_data *d, const walk *w, const float *from, float *to) {
    int64_t kept[EXEC_RANK] = {0}, source = 0, target = 0;
    int64_t n = w->reduced_extent[w->reduced - 1];
    do {
        int64_t position[EXEC_RANK] = {0}, inner = source;
        float result = d->row(from + inner, n);
        while (next(w->reduced - 1, w->reduced_extent, w->reduced_from, position, &inner))
            result = combine(d->kind, result, d->row(from + inner, n));
        to[target] = result;
    } while (next_kept(w, w->kept, kept, &source, &target));
}

/* The innermost kept axis is a run on both sides. */
static void reduce_columns(const reduce_data *d, const walk *w, const float *from, float *to) {
    int64_t kept[EXEC_RANK] = {0}, source = 0, target = 0;
    int64_t n = w->kept_extent[w->kept - 1], rows = 1, stride = 0;
    if (w->reduced > 0) {
        rows = w->reduced_extent[w->reduced - 1];
        stride = w->reduced_from[w->reduced - 1];
    }
    do {
        int64_t position[EXEC_RANK] = {0}, inner = source;
        memcpy(to + target, from + inner, (size_t)n * sizeof *to);
        d->columns(from + inner + stride, stride, rows - 1, to + target, n);
        while (w->reduced > 1 && next(w->reduced - 1, w->reduced_extent, w->reduced_from, position, &inner))
            d->columns(from + inner, stride, rows, to + target, n);
    } while (next_kept(w, w->kept - 1, kept, &source, &target));
}

static void reduce_scalar(const reduce_data *d, const walk *w, const char *from, char *to) {
    static const uint32_t maps[] = {0, ENT_MAP_ADD, ENT_MAP_MAX, ENT_MAP_MIN, ENT_MAP_MUL};
    int64_t kept[EXEC_RANK] = {0}, source = 0, target = 0;
    bool floats = exec_is_float(d->dtype);
    do {
        int64_t position[EXEC_RANK] = {0}, inner = source, whole = 0;
        double result = 0;
        if (floats)
            result = ent_ops_load_f64(from, d->dtype, inner);
        else
            whole = ent_ops_load_i64(from, d->dtype, inner);
        while (next(w->reduced, w->reduced_extent, w->reduced_from, position, &inner)) {
            if (floats)
                result =
                    ent_ops_map_f64(maps[d->kind], NULL, result, ent_ops_load_f64(from, d->dtype, inner), 0);
            else
                whole =
                    ent_ops_map_i64(maps[d->kind], NULL, whole, ent_ops_load_i64(from, d->dtype, inner), 0);
        }
        if (floats)
            ent_ops_store_f64(to, d->dtype, target, result);
        else
            ent_ops_store_i64(to, d->dtype, target, whole);
    } while (next_kept(w, w->kept, kept, &source, &target));
}

void exec_reduce(exec_run *run, const exec_step *step) {
    const reduce_data *d = step->data;
    walk w;
    exec_place(run, step->dst);
    make_walk(run, step, &w);
    const char *from = run->views[step->source[0]].base;
    char *to = run->views[step->dst].base;
    bool rows = w.reduced > 0 && w.reduced_from[w.reduced - 1] == 1;
    bool columns = w.kept > 0 && w.kept_from[w.kept - 1] == 1 && w.kept_to[w.kept - 1] == 1;
    if (d->row && rows)
        reduce_rows(d, &w, (const float *)(const void *)from, (float *)(void *)to);
    else if (d->row && columns)
        reduce_columns(d, &w, (const float *)(const void *)from, (float *)(void *)to);
    else
        reduce_scalar(d, &w, from, to);
}
