/* Reading nodes as y = x * scale[c] + shift[c]. */
#include "core/rewrite/affine.h"

#include <math.h>

#include "core/ops/ops.h"

ent_affine ent_affine_identity(ent_arena *arena, int64_t channels) {
    ent_affine map = {channels, NULL, NULL};
    map.scale = ent_arena_alloc(arena, (size_t)channels * sizeof *map.scale);
    map.shift = ent_arena_alloc(arena, (size_t)channels * sizeof *map.shift);
    for (int64_t c = 0; c < channels; c++) map.scale[c] = 1;
    return map;
}

bool ent_affine_has_scale(const ent_affine *map) {
    for (int64_t c = 0; c < map->channels; c++)
        if (map->scale[c] != 1) return true;
    return false;
}

bool ent_affine_has_shift(const ent_affine *map) {
    for (int64_t c = 0; c < map->channels; c++)
        if (map->shift[c] != 0) return true;
    return false;
}

void ent_affine_append(ent_affine *map, const ent_affine *next) {
    for (int64_t c = 0; c < map->channels; c++) {
        map->shift[c] = map->shift[c] * next->scale[c] + next->shift[c];
        map->scale[c] *= next->scale[c];
    }
}

/* A constant that differs along one axis of a value of `rank` at most. */
static bool read_channels(const ent_rewrite_context *context, uint32_t value, uint32_t rank, uint32_t axis,
                          int64_t channels, double *out) {
    const ent_tensor *t = ent_rewrite_float_tensor(context, value);
    int64_t elements = t ? ent_value_elements(context->module, value) : -1;
    if (!t || t->rank > rank || (elements != 1 && elements != channels)) return false;
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] != 1 && i + (rank - t->rank) != axis) return false;
    for (int64_t c = 0; c < channels; c++) {
        out[c] = ent_ops_load_f64(t->data, t->dtype, elements == 1 ? 0 : c);
        if (!isfinite(out[c])) return false;
    }
    return true;
}

static bool read_batch_norm(const ent_rewrite_context *context, const ent_node *node, uint32_t axis,
                            ent_affine *out) {
    double epsilon = ent_attrs_float(node->attrs, "epsilon", 1e-5);
    double *p[4];
    if (axis != 1 || ent_attrs_int(node->attrs, "training_mode", 0) || node->input_count < 5) return false;
    for (uint32_t i = 0; i < 4; i++) {
        p[i] = ent_arena_alloc(context->scratch, (size_t)out->channels * sizeof *p[i]);
        if (!read_channels(context, node->inputs[i + 1], 1, 0, out->channels, p[i])) return false;
    }
    for (int64_t c = 0; c < out->channels; c++) {
        out->scale[c] = p[0][c] / sqrt(p[3][c] + epsilon);
        out->shift[c] = p[1][c] - p[2][c] * out->scale[c];
    }
    return true;
}

/* x op k, k op x */
static bool read_arithmetic(const ent_rewrite_context *context, const ent_node *node, uint32_t data_input,
                            uint32_t rank, uint32_t axis, ent_affine *out) {
    double *k = out->shift, sign = 1;
    if (data_input == 1 && node->op == ENT_OP_Div) return false;
    if (!read_channels(context, node->inputs[1 - data_input], rank, axis, out->channels, k)) return false;
    for (int64_t c = 0; c < out->channels; c++) {
        switch (node->op) {
        case ENT_OP_Mul:
        case ENT_OP_Div:
            out->scale[c] = node->op == ENT_OP_Mul ? k[c] : 1 / k[c];
            out->shift[c] = 0;
            break;
        case ENT_OP_Sub:
            sign = data_input == 0 ? -1 : 1;
            out->scale[c] = data_input == 0 ? 1 : -1;
            out->shift[c] = sign * k[c];
            break;
        default:
            out->scale[c] = 1; /* Add: the shift is there */
        }
    }
    return true;
}

static bool is_arithmetic(uint32_t op) {
    return op == ENT_OP_Mul || op == ENT_OP_Div || op == ENT_OP_Add || op == ENT_OP_Sub;
}

bool ent_affine_read(const ent_rewrite_context *context, const ent_node *node, uint32_t axis, ent_affine *out,
                     uint32_t *out_data) {
    const ent_module *module = context->module;
    bool norm = node->op == ENT_OP_BatchNormalization;
    if (!norm && !is_arithmetic(node->op)) return false;
    uint32_t data_input = !norm && ent_rewrite_tensor(context, node->inputs[0]) ? 1 : 0;
    uint32_t x = node->inputs[data_input], rank = ent_module_value(module, x)->rank;
    if (node->outputs[0] == ENT_ID_NONE || ent_rewrite_tensor(context, x) ||
        !ent_rewrite_same_shape(module, x, node->outputs[0]))
        return false;
    *out = ent_affine_identity(context->scratch, out->channels);
    *out_data = x;
    bool good = norm ? read_batch_norm(context, node, axis, out)
                     : read_arithmetic(context, node, data_input, rank, axis, out);
    for (int64_t c = 0; good && c < out->channels; c++)
        good = isfinite(out->scale[c]) && isfinite(out->shift[c]);
    return good;
}
