/* Copies between any strides: runs, broadcasts, blocked transposes, and single elements where nothing better
 * fits. */
#include "exec.h"

typedef struct copier {
    const ent_cpu_kernels *kernels;
    uint32_t element_bytes, axes;
    int64_t extents[EXEC_RANK], from[EXEC_RANK], to[EXEC_RANK]; /* innermost first; strides in elements */
} copier;

/* size: table */
static void spread(const char *from, int64_t from_stride, char *to, int64_t to_stride, int64_t n,
                   uint32_t bytes) {
    switch (bytes) {
    case 1:
        for (int64_t i = 0; i < n; i++) to[i * to_stride] = from[i * from_stride];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)(void *)to)[i * to_stride] = ((const uint16_t *)(const void *)from)[i * from_stride];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)(void *)to)[i * to_stride] = ((const uint32_t *)(const void *)from)[i * from_stride];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)(void *)to)[i * to_stride] = ((const uint64_t *)(const void *)from)[i * from_stride];
        break;
    }
}

/* Axes of more than one element, merged where both sides step through two in one go. */
static void gather_axes(copier *c, uint32_t rank, const int64_t *extents, const int64_t *from,
                        const int64_t *to) {
    c->axes = 0;
    for (uint32_t a = rank; a-- > 0;) {
        uint32_t last = c->axes - 1;
        if (extents[a] == 1) continue;
        if (c->axes > 0 && from[a] == c->from[last] * c->extents[last] &&
            to[a] == c->to[last] * c->extents[last]) {
            c->extents[last] *= extents[a];
            continue;
        }
        c->extents[c->axes] = extents[a];
        c->from[c->axes] = from[a];
        c->to[c->axes++] = to[a];
    }
}

static void bring_inside(copier *c, uint32_t axis, uint32_t place) {
    int64_t extent = c->extents[axis], from = c->from[axis], to = c->to[axis];
    c->extents[axis] = c->extents[place];
    c->from[axis] = c->from[place];
    c->to[axis] = c->to[place];
    c->extents[place] = extent;
    c->from[place] = from;
    c->to[place] = to;
}

typedef enum inner_form { INNER_RUN, INNER_TRANSPOSE, INNER_SPREAD } inner_form;

/* Puts the axes that the inner kernel takes first; returns their number. */
static uint32_t choose_inner(copier *c, inner_form *out_form) {
    uint32_t run = EXEC_NONE, in = EXEC_NONE, out = EXEC_NONE;
    for (uint32_t a = 0; a < c->axes; a++) {
        if (c->from[a] == 1 && c->to[a] == 1 && run == EXEC_NONE) run = a;
        if (c->from[a] == 1 && in == EXEC_NONE) in = a;
        if (c->to[a] == 1 && out == EXEC_NONE) out = a;
    }
    *out_form = INNER_RUN;
    if (run != EXEC_NONE) {
        bring_inside(c, run, 0);
        return c->axes > 1 ? 2 : 1;
    }
    *out_form = INNER_TRANSPOSE;
    if (in != EXEC_NONE && out != EXEC_NONE && c->from[out] > 0 && c->to[in] > 0) {
        bring_inside(c, out, 0);
        bring_inside(c, in == 0 ? out : in, 1); /* the swap may have moved it */
        return 2;
    }
    *out_form = INNER_SPREAD;
    if (out != EXEC_NONE) bring_inside(c, out, 0);
    return c->axes > 0 ? 1 : 0;
}

static void copy_inner(const copier *c, inner_form form, uint32_t inner, const char *from, char *to) {
    int64_t bytes = c->element_bytes;
    if (inner == 0) {
        memcpy(to, from, (size_t)bytes);
    } else if (form == INNER_RUN && inner == 1) {
        memcpy(to, from, (size_t)(c->extents[0] * bytes));
    } else if (form == INNER_RUN) {
        c->kernels->copy_rows(from, c->from[1] * bytes, to, c->to[1] * bytes, c->extents[1],
                              c->extents[0] * bytes);
    } else if (form == INNER_TRANSPOSE) {
        c->kernels->transpose(from, c->from[0], to, c->to[1], c->extents[0], c->extents[1], bytes);
    } else {
        spread(from, c->from[0], to, c->to[0], c->extents[0], c->element_bytes);
    }
}

void exec_copy(const ent_cpu_kernels *kernels, uint32_t rank, const int64_t *extents, const char *from,
               const int64_t *from_strides, char *to, const int64_t *to_strides, uint32_t element_bytes) {
    copier c = {.kernels = kernels, .element_bytes = element_bytes};
    inner_form form;
    gather_axes(&c, rank, extents, from_strides, to_strides);
    uint32_t inner = choose_inner(&c, &form);
    for (uint32_t a = c.axes; a < EXEC_RANK; a++) {
        c.extents[a] = 1;
        c.from[a] = c.to[a] = 0;
    }
    int64_t outer[4] = {1, 1, 1, 1}, from_step[4] = {0}, to_step[4] = {0};
    for (uint32_t a = inner; a < c.axes; a++) {
        outer[a - inner] = c.extents[a];
        from_step[a - inner] = c.from[a] * element_bytes;
        to_step[a - inner] = c.to[a] * element_bytes;
    }
    for (int64_t i = 0; i < outer[2]; i++)
        for (int64_t j = 0; j < outer[1]; j++)
            for (int64_t k = 0; k < outer[0]; k++)
                copy_inner(&c, form, inner, from + i * from_step[2] + j * from_step[1] + k * from_step[0],
                           to + i * to_step[2] + j * to_step[1] + k * to_step[0]);
}

uint32_t exec_element(uint32_t dtype, double value, void *out) {
    if (exec_is_float(dtype))
        ent_ops_store_f64(out, dtype, 0, value);
    else if (dtype == ENT_DTYPE_BOOL)
        ent_ops_store_i64(out, dtype, 0, value != 0);
    else
        ent_ops_store_i64(out, dtype, 0,
                          value >= -9223372036854775808.0 && value < 9223372036854775808.0 ? (int64_t)value
                                                                                           : INT64_MIN);
    return ent_dtype_bits((ent_dtype)dtype) / 8;
}

void exec_fill_value(uint32_t rank, const int64_t *extents, char *to, const int64_t *strides, uint32_t dtype,
                     double value) {
    char element[16] = {0};
    static const int64_t still[EXEC_RANK] = {0};
    copier c = {.element_bytes = exec_element(dtype, value, element)};
    gather_axes(&c, rank, extents, still, strides);
    for (uint32_t a = c.axes; a < EXEC_RANK; a++) {
        c.extents[a] = 1;
        c.to[a] = 0;
    }
    int64_t bytes = c.element_bytes;
    for (int64_t i = 0; i < c.extents[3]; i++)
        for (int64_t j = 0; j < c.extents[2]; j++)
            for (int64_t k = 0; k < c.extents[1]; k++)
                spread(element, 0, to + (i * c.to[3] + j * c.to[2] + k * c.to[1]) * bytes, c.to[0],
                       c.extents[0], c.element_bytes);
}
