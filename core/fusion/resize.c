/* Resize. Nearest is an integer quotient of the position wherever that stays inside; else, as for linear, the
 * source position is computed in the program and gathered. Coordinates: the ONNX schema of Resize 19. */
#include <math.h>
#include <string.h>

#include "core/fusion/internal.h"

/* source = (numerator * position + offset) / denominator, exactly. */
typedef struct resize_axis {
    int64_t in, out;
    int64_t numerator, offset, denominator;
    bool resized, clipped;
    uint32_t lower, upper, weight; /* tiles of linear */
} resize_axis;

typedef struct resize_plan {
    resize_axis axis[ENT_MAX_RANK];
    uint32_t rank;
    bool linear;
} resize_plan;

static bool mode_is(const fusion_item *item, const char *name, const char *missing, const char *text) {
    return ent_attrs_string_is(item->attrs, name, missing, text);
}

/* Given scales must be out / in; sizes always are. */
static bool scales_are_ratios(const fusion_context *context, const fusion_item *item) {
    const ent_value *x = fusion_value_of(context, item->inputs[0]),
                    *y = fusion_value_of(context, item->outputs[0]);
    const ent_attr *axes = ent_attrs_find(item->attrs, "axes");
    if (!mode_is(item, "keep_aspect_ratio_policy", "stretch", "stretch")) return false;
    if (item->input_count < 3 || item->inputs[2] == ENT_ID_NONE) return true;
    const ent_value *scales = fusion_value_of(context, item->inputs[2]);
    if (ent_value_elements(context->module, item->inputs[2]) == 0) return true;
    if (!scales->constant || scales->dtype != ENT_DTYPE_F32) return false;
    for (int64_t i = 0; i < scales->dims[0]; i++) {
        int64_t axis = axes && i < axes->count ? axes->ints[i] : i;
        if (axis < 0) axis += x->rank;
        if (axis < 0 || axis >= x->rank) return false;
        double scale = ent_ops_load_f64(scales->constant->tensor.data, ENT_DTYPE_F32, i);
        if (fabs(scale * (double)x->dims[axis] - (double)y->dims[axis]) > 1e-6 * (double)y->dims[axis])
            return false;
    }
    return true;
}

static bool set_ratio(const fusion_item *item, resize_axis *axis) {
    const char *name = "coordinate_transformation_mode", *missing = "half_pixel";
    bool half =
        mode_is(item, name, missing, "half_pixel") || mode_is(item, name, missing, "half_pixel_symmetric");
    if (mode_is(item, name, missing, "pytorch_half_pixel")) {
        half = axis->out > 1;
        if (!half) axis->numerator = 0, axis->denominator = 1;
    } else if (mode_is(item, name, missing, "align_corners")) {
        axis->numerator = axis->out > 1 ? axis->in - 1 : 0;
        axis->denominator = axis->out > 1 ? axis->out - 1 : 1;
    } else if (mode_is(item, name, missing, "asymmetric")) {
        axis->numerator = axis->in;
        axis->denominator = axis->out;
    } else if (!half)
        return false;
    if (half) { /* (position + 1/2) in / out - 1/2 */
        axis->numerator = 2 * axis->in;
        axis->offset = axis->in - axis->out;
        axis->denominator = 2 * axis->out;
    }
    return true;
}

/* Turns the exact source position into the floor of another fraction: the nearest one. */
static void round_nearest(const fusion_item *item, resize_axis *axis) {
    const char *name = "nearest_mode", *missing = "round_prefer_floor";
    if (mode_is(item, name, missing, "ceil"))
        axis->offset += axis->denominator - 1;
    else if (!mode_is(item, name, missing, "floor")) {
        bool down = mode_is(item, name, missing, "round_prefer_floor");
        axis->numerator *= 2;
        axis->offset = 2 * axis->offset + axis->denominator - (down ? 1 : 0);
        axis->denominator *= 2; /* floor(x + 1/2), or ceil(x - 1/2) = floor(x + 1/2 - 1/(2 d)) */
    }
    int64_t last = axis->numerator * (axis->out - 1) + axis->offset;
    axis->clipped = axis->offset < 0 || last / axis->denominator > axis->in - 1;
}

static bool read_plan(const fusion_context *context, const fusion_item *item, resize_plan *plan) {
    const ent_value *x = fusion_value_of(context, item->inputs[0]),
                    *y = fusion_value_of(context, item->outputs[0]);
    memset(plan, 0, sizeof *plan);
    plan->linear = mode_is(item, "mode", "nearest", "linear");
    plan->rank = x->rank;
    if (!plan->linear && !mode_is(item, "mode", "nearest", "nearest")) return false;
    if (ent_attrs_int(item->attrs, "antialias", 0) || !scales_are_ratios(context, item)) return false;
    if (plan->linear && (x->dtype != ENT_DTYPE_F32 || ent_attrs_int(item->attrs, "exclude_outside", 0)))
        return false;
    for (uint32_t i = 0; i < x->rank; i++) {
        resize_axis *axis = &plan->axis[i];
        axis->in = x->dims[i];
        axis->out = y->dims[i];
        axis->denominator = 1;
        axis->numerator = 1;
        axis->resized = axis->in != axis->out;
        if (!axis->resized) continue;
        if (!set_ratio(item, axis)) return false;
        if (!plan->linear) round_nearest(item, axis);
    }
    return true;
}

static uint32_t position_tile(fusion_mover *m, uint32_t dtype, uint8_t dim) {
    uint32_t tile = fusion_mover_tile(m, dtype, dim == FUSION_NONE ? 0 : (uint16_t)(1u << dim));
    const ent_tile_index *recipe = dim == FUSION_NONE ? NULL : &m->space.axes[m->space.axis_of[dim]].recipe;
    ent_tile_builder_iota(&m->body.builder, tile, 0,
                          recipe && recipe->term_count ? recipe->terms[0].variable : ENT_TILE_NONE, 1,
                          !recipe || recipe->tile_axis == ENT_TILE_NONE ? 32 : recipe->tile_axis);
    return tile;
}

/* clip((numerator * position + offset) / denominator) on integers: truncation is right, as what it rounds up
 * is below 0. */
static uint32_t nearest_tile(fusion_mover *m, const resize_axis *axis, uint8_t dim) {
    ent_tile_builder *b = &m->body.builder;
    uint32_t tile = position_tile(m, ENT_DTYPE_I64, dim);
    const int64_t numbers[] = {axis->numerator, axis->offset, axis->denominator};
    static const ent_tile_map maps[] = {ENT_MAP_MUL, ENT_MAP_ADD, ENT_MAP_DIV};
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t number = fusion_mover_tile(m, ENT_DTYPE_I64, 0);
        ent_tile_builder_fill(b, number, (double)numbers[i]);
        ent_tile_builder_map2(b, maps[i], tile, tile, number);
    }
    ent_tile_builder_map1(b, ENT_MAP_CLIP, tile, tile, 0, (double)(axis->in - 1));
    return tile;
}

static void linear_tiles(fusion_mover *m, resize_axis *axis, uint8_t dim) {
    ent_tile_builder *b = &m->body.builder;
    uint16_t mask = dim == FUSION_NONE ? 0 : (uint16_t)(1u << dim);
    uint32_t at = position_tile(m, ENT_DTYPE_F32, dim), low = fusion_mover_tile(m, ENT_DTYPE_F32, mask);
    double scale = (double)axis->numerator / (double)axis->denominator,
           shift = (double)axis->offset / (double)axis->denominator;
    double last = (double)(axis->in - 1);
    axis->lower = fusion_mover_tile(m, ENT_DTYPE_I32, mask);
    axis->upper = fusion_mover_tile(m, ENT_DTYPE_I32, mask);
    axis->weight = at;
    ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, at, at, scale, shift);
    ent_tile_builder_map1(b, ENT_MAP_CLIP, at, at, 0, last);
    ent_tile_builder_map1(b, ENT_MAP_FLOOR, low, at, 0, 0);
    ent_tile_builder_map2(b, ENT_MAP_SUB, at, at, low);
    ent_tile_builder_map1(b, ENT_MAP_COPY, axis->lower, low, 0, 0);
    ent_tile_builder_map1(b, ENT_MAP_SCALE_SHIFT, low, low, 1, 1);
    ent_tile_builder_map1(b, ENT_MAP_CLIP, low, low, 0, last);
    ent_tile_builder_map1(b, ENT_MAP_COPY, axis->upper, low, 0, 0);
}

static void prepare_nearest(fusion_mover *m, const void *user) {
    const resize_plan *plan = user;
    for (uint32_t i = 0; i < plan->rank; i++) {
        const resize_axis *axis = &plan->axis[i];
        if (!axis->resized || !axis->clipped) continue;
        m->in[i] = fusion_affine_of(FUSION_NONE);
        m->in[i].gather = nearest_tile(m, axis, m->out[i].count ? m->out[i].dim[0] : FUSION_NONE);
    }
}

static uint16_t all_dims(const fusion_mover *m) {
    return (uint16_t)((1u << m->group.dim_count) - 1);
}

/* The value interpolated along axes >= from, the others being settled in m->in: a + weight (b - a). */
static uint32_t interpolate(fusion_mover *m, const resize_plan *plan, uint32_t from) {
    ent_tile_builder *b = &m->body.builder;
    while (from < plan->rank && !plan->axis[from].resized) from++;
    uint32_t tile = ENT_TILE_NONE;
    if (from == plan->rank) {
        tile = fusion_mover_tile(m, ENT_DTYPE_F32, all_dims(m));
        ent_tile_access access = fusion_mover_access(m, m->port_in, m->in);
        ent_tile_builder_load(b, tile, &access, 0);
        return tile;
    }
    const resize_axis *axis = &plan->axis[from];
    m->in[from] = fusion_affine_of(FUSION_NONE);
    m->in[from].gather = axis->lower;
    tile = interpolate(m, plan, from + 1);
    m->in[from].gather = axis->upper;
    uint32_t upper = interpolate(m, plan, from + 1);
    ent_tile_builder_map2(b, ENT_MAP_SUB, upper, upper, tile);
    ent_tile_builder_map3(b, ENT_MAP_FMA, tile, upper, axis->weight, tile);
    return tile;
}

static void make_linear(fusion_mover *m, resize_plan *plan) {
    fusion_context *context = m->group.context;
    const fusion_item *item = &context->items[m->group.anchor];
    uint32_t out = item->outputs[0], in = item->inputs[0];
    for (uint32_t o = 0; o < context->layouts->counts[out]; o++) {
        const ent_layout *layout = &context->layouts->items[out][o],
                         *from = fusion_layout_like(context, in, layout);
        fusion_space_begin(&m->space, &m->group);
        m->port_in = fusion_mover_port(m, in, from, false);
        m->port_out = fusion_mover_port(m, out, layout, true);
        for (uint32_t i = 0; i < plan->rank; i++) m->in[i] = m->out[i];
        if (!fusion_mover_cut(m, layout, from)) return;
        for (uint32_t i = 0; i < plan->rank; i++)
            if (plan->axis[i].resized)
                linear_tiles(m, &plan->axis[i], m->out[i].count ? m->out[i].dim[0] : FUSION_NONE);
        fusion_mover_finish(m, interpolate(m, plan, 0), "resize");
    }
}

void fusion_make_resize(fusion_context *context, uint32_t item) {
    const fusion_item *it = &context->items[item];
    resize_plan plan;
    fusion_mover m;
    context->reason = "it is cubic, antialiased, cropped, or its scales are not out / in";
    if (!read_plan(context, it, &plan)) return;
    fusion_mover_begin(&m, context, item);
    fusion_mover_same_output(&m);
    if (plan.linear) {
        make_linear(&m, &plan);
        return;
    }
    for (uint32_t i = 0; i < plan.rank; i++) {
        m.in[i] = m.out[i];
        if (!plan.axis[i].resized) continue;
        m.in[i].base = plan.axis[i].offset;
        m.in[i].coefficient[0] = plan.axis[i].numerator;
        m.in[i].divisor = plan.axis[i].denominator;
    }
    fusion_mover_copy(&m, prepare_nearest, &plan);
}
