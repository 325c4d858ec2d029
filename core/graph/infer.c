/* Shape inference, the driver: runs each node's rule, checks what it says against what is declared, stores
 * it.
 *
 * What a rule derives wins over a declaration, except where both are numbers and differ (an error) and where
 * the size depends on data (the declaration stays, or a symbol is made). So inference may run again after
 * rewrites and gives the same. */
#include "core/graph/infer.h"

#include <string.h>

static const ent_infer_rule rules[ENT_OP_COUNT] = {
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes)                     \
    [id] = ent_infer_##name,
#include "abi/ent_ops.def"
};

/* ---- storing ---- */

static ent_status check_extent(const ent_infer *infer, const ent_value *value, const ent_shape *shape) {
    uint32_t bits = ent_dtype_bits(shape->dtype);
    int64_t bytes = bits > 8 ? bits / 8 : 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t number;
        if (!ent_module_dim_number(infer->module, shape->dims[i], &number)) continue;
        if (number < 0)
            return ent_infer_fail(infer, "shape.negative", "output '%s' would have shape %s", value->name,
                                  ent_module_dims_text(infer->module, shape->rank, shape->dims));
        /* An empty axis does not excuse the others: strides are products too. */
        if (number > 0 && !ent_mul_i64(bytes, number, &bytes))
            return ent_infer_fail(infer, "shape.overflow",
                                  "output '%s' of shape %s has more bytes than can be counted", value->name,
                                  ent_module_dims_text(infer->module, shape->rank, shape->dims));
    }
    return NULL;
}

static ent_status conflict(const ent_infer *infer, uint32_t id, const ent_shape *shape) {
    const ent_value *value = ent_module_value(infer->module, id);
    return ent_infer_fail(infer, "shape.conflict", "output '%s' is declared %s, inference gives %s",
                          value->name, ent_module_dims_text(infer->module, value->rank, value->dims),
                          ent_module_dims_text(infer->module, shape->rank, shape->dims));
}

static ent_status store_shape(const ent_infer *infer, uint32_t id, ent_shape *shape) {
    ent_value *value = ent_module_value(infer->module, id);
    bool declared = value->rank != ENT_RANK_UNKNOWN;
    if (shape->rank == ENT_RANK_UNKNOWN) return NULL;
    if (declared && value->rank != shape->rank) return conflict(infer, id, shape);
    for (uint32_t i = 0; i < shape->rank; i++) {
        ent_dim *dim = &shape->dims[i];
        if (declared && *dim == ENT_DIM_UNKNOWN) *dim = value->dims[i];
        if (declared && ent_infer_differ(infer, *dim, value->dims[i])) return conflict(infer, id, shape);
        if (*dim == ENT_DIM_UNKNOWN) {
            const char *stem = ent_arena_format(infer->module->arena, "%s.%u", value->name, i);
            *dim = ent_module_dim_symbol(infer->module, ent_module_fresh_symbol(infer->module, stem));
        }
    }
    ENT_TRY(check_extent(infer, value, shape));
    value->rank = shape->rank;
    memcpy(value->dims, shape->dims, sizeof value->dims);
    return NULL;
}

static ent_status store(const ent_infer *infer, uint32_t index) {
    ent_shape *shape = &infer->out[index];
    uint32_t id = infer->node->outputs[index];
    if (id == ENT_ID_NONE) return NULL;
    ent_value *value = ent_module_value(infer->module, id);
    if (value->dtype && shape->dtype && value->dtype != shape->dtype)
        return ent_infer_fail(infer, "dtype.conflict", "output '%s' is declared %s, inference gives %s",
                              value->name, ent_dtype_name((ent_dtype)value->dtype),
                              ent_dtype_name((ent_dtype)shape->dtype));
    if (shape->dtype) value->dtype = shape->dtype;
    ENT_TRY(store_shape(infer, id, shape));
    ent_elements *elements = &infer->module->state->elements.items[id];
    if (!shape->elements) {
        *elements = (ent_elements){0};
        return NULL;
    }
    bool same = elements->items && elements->count == shape->element_count &&
                memcmp(elements->items, shape->elements, elements->count * sizeof *shape->elements) == 0;
    if (!same)
        *elements = (ent_elements){shape->element_count,
                                   ent_arena_copy(infer->module->arena, shape->elements,
                                                  shape->element_count * sizeof *shape->elements)};
    return NULL;
}

static ent_status check_problem(const ent_infer *infer) {
    const char *problem = infer->module->state->dim_problem;
    if (!problem) return NULL;
    infer->module->state->dim_problem = NULL;
    if (strcmp(problem, "overflow") == 0)
        return ent_infer_fail(infer, "shape.overflow", "a size of an output does not fit in 64 bits");
    return ent_status_make(
        infer->module->arena, ENT_ERROR_LIMIT, "shape.nesting", ent_node_place(infer->module, infer->node_id),
        "a size of an output has more than %u operands; bind the symbolic sizes first", ENT_MAX_EXPR_WEIGHT);
}

/* ---- nodes and graphs ---- */

static ent_status infer_node(ent_module *module, uint32_t node, ent_arena *scratch, uint32_t depth);

static ent_status infer_graph(ent_module *module, uint32_t graph, ent_arena *scratch, uint32_t depth) {
    uint32_t at = 0, node;
    ent_graph_index_outputs(module, graph);
    while (ent_graph_next(module, graph, &at, &node)) {
        ENT_TRY(ent_arena_check(module->arena, module->name));
        ENT_TRY(infer_node(module, node, scratch, depth));
    }
    return NULL;
}

static bool inputs_ranked(const ent_infer *infer) {
    for (uint32_t i = 0; i < infer->node->input_count; i++) {
        const ent_value *value = ent_infer_input(infer, i);
        if (value && value->rank == ENT_RANK_UNKNOWN) return false;
    }
    return true;
}

/* Rules index inputs and outputs by the table's arity. */
static ent_status check_arity(const ent_infer *infer, const ent_op_info *info) {
    const ent_node *node = infer->node;
    bool fits = (int64_t)node->input_count >= info->min_inputs &&
                (int64_t)node->output_count >= info->min_outputs &&
                (info->max_inputs < 0 || (int64_t)node->input_count <= info->max_inputs) &&
                (info->max_outputs < 0 || (int64_t)node->output_count <= info->max_outputs);
    for (int32_t i = 0; fits && i < info->min_inputs; i++) fits = node->inputs[i] != ENT_ID_NONE;
    return fits ? NULL
                : ent_infer_fail(infer, "node.arity",
                                 "the number of inputs or outputs does not fit the operator");
}

/* A size that the rule could not tell depends on what the inputs hold; for If, on its condition. */
static void want_data(const ent_infer *infer) {
    bool open = false;
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        const ent_shape *shape = &infer->out[i];
        open |= shape->rank == ENT_RANK_UNKNOWN;
        for (uint32_t k = 0; !open && k < shape->rank; k++) open = shape->dims[k] == ENT_DIM_UNKNOWN;
    }
    uint32_t count = infer->node->op == ENT_OP_If ? 1 : infer->node->input_count;
    if (infer->node->op == ENT_OP_Loop || infer->node->op == ENT_OP_Scan) return;
    for (uint32_t i = 0; open && i < count; i++) ent_infer_want(infer, i);
}

static ent_status run_rule(ent_infer *infer) {
    const ent_op_info *info = ent_op_info_get(infer->node->op);
    if (!info || !info->name) return ent_infer_fail(infer, "node.operator", "the operator is unknown");
    ENT_TRY(check_arity(infer, info));
    if (!inputs_ranked(infer)) return NULL;
    infer->module->state->dim_problem = NULL;
    ENT_TRY(rules[infer->node->op](infer));
    want_data(infer);
    infer->propagating = true;
    ent_infer_propagate(infer);
    infer->propagating = false;
    ENT_TRY(check_problem(infer));
    for (uint32_t i = 0; i < infer->node->output_count; i++) ENT_TRY(store(infer, i));
    return NULL;
}

/* NULL: the condition of the If is not known. */
static const char *branch_taken(const ent_infer *infer) {
    int64_t condition[ENT_MAX_ELEMENTS];
    uint32_t count;
    if (infer->node->op != ENT_OP_If || infer->node->input_count == 0 ||
        !ent_infer_numbers(infer, 0, condition, &count) || count != 1)
        return NULL;
    return condition[0] ? "then_branch" : "else_branch";
}

/* A branch for another rank than the model has need not make sense: only if it runs is its error one. */
static ent_status infer_body(const ent_infer *infer, const ent_attr *attr) {
    const char *taken = branch_taken(infer);
    ent_status status = infer_graph(infer->module, (uint32_t)attr->i, infer->scratch, infer->depth + 1);
    bool runs =
        !taken || (attr->name.size == strlen(taken) && memcmp(attr->name.data, taken, attr->name.size) == 0);
    return status && status->code == ENT_ERROR_MODEL && !runs ? NULL : status;
}

static ent_status infer_node(ent_module *module, uint32_t node, ent_arena *scratch, uint32_t depth) {
    ent_node *n = ent_module_node(module, node);
    ent_infer infer = {module, scratch, node, n, n->attrs, NULL, depth, false};
    for (uint32_t i = 0; i < n->attrs.count; i++) {
        const ent_attr *attr = &n->attrs.items[i];
        if (attr->type != ENT_ATTR_GRAPH) continue;
        if (depth >= ENT_MAX_NESTING)
            return ent_infer_fail(&infer, "graph.nesting", "graphs are nested deeper than %u",
                                  ENT_MAX_NESTING);
        if (attr->i <= 0 || attr->i >= module->graphs.count)
            return ent_infer_fail(&infer, "graph.owner", "a body is missing");
        ENT_TRY(infer_body(&infer, attr));
    }
    ent_arena_mark mark = ent_arena_save(scratch);
    infer.out = ent_arena_alloc(scratch, n->output_count * sizeof *infer.out);
    for (uint32_t i = 0; i < n->output_count; i++) infer.out[i].rank = ENT_RANK_UNKNOWN;
    ent_status status = run_rule(&infer);
    if (scratch != module->arena) ent_arena_restore(scratch, mark);
    return status;
}

ent_status ent_node_infer(ent_module *module, uint32_t node, ent_arena *scratch) {
    return infer_node(module, node, scratch, 0);
}

/* Constants and inputs of all graphs are checked like outputs are. */
static ent_status check_declared(const ent_module *module) {
    for (uint32_t v = 0; v < module->values.count; v++) {
        const ent_value *value = ent_module_value(module, v);
        uint32_t bits = ent_dtype_bits(value->dtype);
        int64_t bytes = bits > 8 ? bits / 8 : 1, number;
        if (value->producer != ENT_ID_NONE || value->rank == ENT_RANK_UNKNOWN) continue;
        for (uint32_t i = 0; i < value->rank; i++) {
            if (!ent_module_dim_number(module, value->dims[i], &number) || number == 0) continue;
            if (number < 0 || !ent_mul_i64(bytes, number, &bytes))
                return ent_status_make(module->arena, ENT_ERROR_MODEL, "shape.overflow", module->name,
                                       "value '%s' of shape %s has more bytes than can be counted",
                                       value->name, ent_module_dims_text(module, value->rank, value->dims));
        }
    }
    return NULL;
}

ent_status ent_module_infer(ent_module *module, ent_arena *scratch) {
    ENT_TRY(check_declared(module));
    memset(module->state->wanted.items, 0, module->state->wanted.count);
    return infer_graph(module, 0, scratch, 0);
}

/* ---- control ---- */

static const ent_graph *branch(const ent_infer *infer, const char *name, uint32_t *out) {
    const ent_attr *attr = ent_attrs_find(infer->attrs, name);
    if (!attr || attr->type != ENT_ATTR_GRAPH) return NULL;
    *out = (uint32_t)attr->i;
    return ent_module_graph(infer->module, (uint32_t)attr->i);
}

/* Sizes on which the branches agree stay; others depend on the condition. */
static void join(const ent_infer *infer, uint32_t a, uint32_t b, ent_shape *out) {
    const ent_module *module = infer->module;
    const ent_value *x = ent_module_value(module, a), *y = ent_module_value(module, b);
    out->dtype = x->dtype;
    if (x->rank == ENT_RANK_UNKNOWN || x->rank != y->rank) return;
    out->rank = x->rank;
    for (uint32_t i = 0; i < x->rank; i++)
        out->dims[i] = x->dims[i] == y->dims[i] ? x->dims[i] : ENT_DIM_UNKNOWN;
    ent_elements p = module->state->elements.items[a], q = module->state->elements.items[b];
    if (!p.items || !q.items || p.count != q.count ||
        memcmp(p.items, q.items, p.count * sizeof *p.items) != 0)
        return;
    out->element_count = p.count;
    out->elements = ent_arena_copy(infer->scratch, p.items, p.count * sizeof *p.items);
}

ent_status ent_infer_If(ent_infer *infer) {
    uint32_t a = 0, b = 0;
    const ent_graph *yes = branch(infer, "then_branch", &a), *no = branch(infer, "else_branch", &b);
    if (!yes || !no) return ent_infer_fail(infer, "control.branch", "If needs then_branch and else_branch");
    if (infer->node->output_count > yes->outputs.count || yes->outputs.count != no->outputs.count)
        return ent_infer_fail(infer, "control.outputs", "the branches have %u and %u outputs, the node %u",
                              yes->outputs.count, no->outputs.count, infer->node->output_count);
    const ent_value *condition = ent_infer_input(infer, 0);
    if (condition->dtype && condition->dtype != ENT_DTYPE_BOOL)
        return ent_infer_fail(infer, "dtype.condition", "the condition has type %s, not bool",
                              ent_dtype_name((ent_dtype)condition->dtype));
    const char *taken = branch_taken(infer);
    if (taken && strcmp(taken, "then_branch") == 0) no = yes;
    if (taken && strcmp(taken, "else_branch") == 0) yes = no;
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        uint32_t x = yes->outputs.items[i], y = no->outputs.items[i];
        uint32_t p = ent_module_value(infer->module, x)->dtype, q = ent_module_value(infer->module, y)->dtype;
        if (p && q && p != q)
            return ent_infer_fail(infer, "dtype.same", "output %u has types %s and %s in the branches", i,
                                  ent_dtype_name((ent_dtype)p), ent_dtype_name((ent_dtype)q));
        join(infer, x, y, &infer->out[i]);
    }
    return NULL;
}
