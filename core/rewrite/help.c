/* Helpers that passes share. */
#include "core/rewrite/internal.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

ent_status ent_rewrite_each_node(ent_rewrite_context *context,
                                 ent_status (*visit)(ent_rewrite_context *context, uint32_t node)) {
    uint32_t graphs = context->module->graphs.count;
    for (uint32_t g = 0; g < graphs; g++) {
        uint32_t at = 0, node;
        while (ent_graph_next(context->module, g, &at, &node)) {
            ENT_TRY(ent_arena_check(context->module->arena, context->module->name));
            ent_arena_mark mark = ent_arena_save(context->scratch);
            ENT_TRY(visit(context, node));
            ent_arena_restore(context->scratch, mark);
        }
    }
    return NULL;
}

const ent_node *ent_rewrite_producer(const ent_rewrite_context *context, uint32_t value) {
    if (value == ENT_ID_NONE) return NULL;
    uint32_t node = ent_module_value(context->module, value)->producer;
    return node == ENT_ID_NONE ? NULL : ent_module_node(context->module, node);
}

bool ent_rewrite_single_use(const ent_rewrite_context *context, uint32_t value) {
    uint32_t at = 0, node, index;
    if (ent_value_is_output(context->module, value)) return false;
    if (!ent_value_next_use(context->module, value, &at, &node, &index)) return false;
    return !ent_value_next_use(context->module, value, &at, &node, &index);
}

void ent_rewrite_forward(ent_rewrite_context *context, uint32_t node, uint32_t value) {
    ent_module_replace_value(context->module, ent_module_node(context->module, node)->outputs[0], value);
    ent_module_remove_node(context->module, node);
    context->changed = true;
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Origins of all `from` nodes, ascending, each once. */
static uint32_t join_origins(const ent_rewrite_context *context, const uint32_t *from, uint32_t from_count,
                             const uint32_t **out) {
    uint32_t room = 0, count = 0, unique = 0;
    for (uint32_t i = 0; i < from_count; i++) room += ent_module_node(context->module, from[i])->origin_count;
    uint32_t *origins = ent_arena_alloc(context->scratch, (room + 1) * sizeof *origins);
    for (uint32_t i = 0; i < from_count; i++) {
        const ent_node *node = ent_module_node(context->module, from[i]);
        memcpy(origins + count, node->origins, node->origin_count * sizeof *origins);
        count += node->origin_count;
    }
    qsort(origins, count, sizeof *origins, compare_u32);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || origins[i] != origins[i - 1]) origins[unique++] = origins[i];
    *out = origins;
    return unique;
}

ent_status ent_rewrite_add_node(ent_rewrite_context *context, const ent_node_spec *shape, uint32_t before,
                                const uint32_t *from, uint32_t from_count, uint32_t *out_node) {
    ent_node_spec spec = *shape;
    spec.name = ent_module_node(context->module, from[0])->name;
    spec.origin_count = join_origins(context, from, from_count, &spec.origins);
    uint32_t graph = ent_module_node(context->module, before)->graph;
    *out_node = ent_module_add_node(context->module, graph, &spec, before);
    context->changed = true;
    return ent_node_infer(context->module, *out_node, context->scratch);
}

ent_status ent_rewrite_add(ent_rewrite_context *context, uint32_t op, ent_attrs attrs, const uint32_t *inputs,
                           uint32_t input_count, uint32_t before, const uint32_t *from, uint32_t from_count,
                           uint32_t *out_value) {
    ent_node_spec spec = {
        .op = op, .attrs = attrs, .inputs = inputs, .input_count = input_count, .output_count = 1};
    uint32_t node;
    ENT_TRY(ent_rewrite_add_node(context, &spec, before, from, from_count, &node));
    *out_value = ent_module_node(context->module, node)->outputs[0];
    return NULL;
}

ent_status ent_rewrite_become(ent_rewrite_context *context, uint32_t id, uint32_t op, ent_attrs attrs,
                              const uint32_t *inputs, uint32_t input_count) {
    uint32_t value;
    ENT_TRY(ent_rewrite_add(context, op, attrs, inputs, input_count, id, &id, 1, &value));
    ent_rewrite_forward(context, id, value);
    return NULL;
}

ent_status ent_rewrite_become_reshape(ent_rewrite_context *context, uint32_t id, uint32_t value,
                                      const uint32_t *from, uint32_t from_count) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_value out = *ent_module_value(context->module, node->outputs[0]);
    ent_attr allow_zero = ent_attr_int("allowzero", 1); /* a dim of 0 is meant as such */
    bool has_zero = false;
    for (uint32_t i = 0; i < out.rank; i++) has_zero |= out.dims[i] == 0;
    uint32_t inputs[2] = {value, ent_module_add_i64s(context->module, node->graph, out.dims, out.rank)}, made;
    ent_attrs attrs = ent_attrs_make(context->module, &allow_zero, has_zero ? 1 : 0);
    ENT_TRY(ent_rewrite_add(context, ENT_OP_Reshape, attrs, inputs, 2, id, from, from_count, &made));
    ent_rewrite_forward(context, id, made);
    return NULL;
}

/* ---- looking ---- */

uint32_t ent_rewrite_input(const ent_node *node, uint32_t index) {
    return index < node->input_count ? node->inputs[index] : ENT_ID_NONE;
}

const ent_tensor *ent_rewrite_tensor(const ent_rewrite_context *context, uint32_t value) {
    if (value == ENT_ID_NONE) return NULL;
    const ent_constant *constant = ent_module_value(context->module, value)->constant;
    return constant ? &constant->tensor : NULL;
}

const ent_tensor *ent_rewrite_float_tensor(const ent_rewrite_context *context, uint32_t value) {
    const ent_tensor *t = ent_rewrite_tensor(context, value);
    bool is_float = t && (t->dtype == ENT_DTYPE_F32 || t->dtype == ENT_DTYPE_F64 ||
                          t->dtype == ENT_DTYPE_F16 || t->dtype == ENT_DTYPE_BF16);
    return is_float ? t : NULL;
}

double ent_rewrite_largest(uint32_t dtype) {
    switch (dtype) {
    case ENT_DTYPE_F64:
        return DBL_MAX;
    case ENT_DTYPE_F16:
        return 65504;
    case ENT_DTYPE_BF16:
        return 0x1.fep127;
    default:
        return FLT_MAX;
    }
}

bool ent_rewrite_same_shape(const ent_module *module, uint32_t a, uint32_t b) {
    const ent_value *x = ent_module_value(module, a), *y = ent_module_value(module, b);
    if (x->rank == ENT_RANK_UNKNOWN || x->rank != y->rank || x->dtype != y->dtype) return false;
    return x->rank == 0 || memcmp(x->dims, y->dims, x->rank * sizeof *x->dims) == 0;
}

bool ent_rewrite_is_number(const ent_rewrite_context *context, uint32_t value, double wanted) {
    double scalar;
    return value != ENT_ID_NONE && ent_value_scalar(context->module, value, &scalar) && scalar == wanted;
}

bool ent_rewrite_permutation(const ent_module *module, const ent_node *node, int64_t *out_perm,
                             uint32_t *out_rank) {
    const ent_attr *perm = ent_attrs_find(node->attrs, "perm");
    uint32_t rank = ent_module_value(module, node->inputs[0])->rank;
    if (rank == ENT_RANK_UNKNOWN || (perm && perm->count != rank)) return false;
    for (uint32_t i = 0; i < rank; i++) out_perm[i] = perm ? perm->ints[i] : (int64_t)(rank - 1 - i);
    *out_rank = rank;
    return true;
}

bool ent_rewrite_is_reduction(uint32_t op) {
    return op >= ENT_OP_ReduceSum && op <= ENT_OP_ReduceLogSumExp;
}

bool ent_rewrite_reduced_axes(const ent_module *module, const ent_node *node, uint32_t *out_mask) {
    int64_t axes[ENT_MAX_RANK];
    uint32_t count = 0, rank = ent_module_value(module, node->inputs[0])->rank;
    uint32_t input = ent_rewrite_input(node, 1);
    if (input == ENT_ID_NONE || rank == ENT_RANK_UNKNOWN ||
        !ent_value_i64s(module, input, axes, ENT_MAX_RANK, &count) || count == 0)
        return false;
    *out_mask = 0;
    for (uint32_t i = 0; i < count; i++) *out_mask |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    return true;
}

ent_attrs ent_rewrite_with_attr(ent_module *module, ent_attrs attrs, ent_attr attr) {
    ent_attr items[32];
    uint32_t count = 0;
    for (uint32_t i = 0; i < attrs.count && count < 31; i++) {
        ent_str name = attrs.items[i].name;
        bool same = name.size == attr.name.size && memcmp(name.data, attr.name.data, name.size) == 0;
        if (!same) items[count++] = attrs.items[i];
    }
    items[count++] = attr;
    return ent_attrs_make(module, items, count);
}
