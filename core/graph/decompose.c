/* Composites written out: the table, the tools for bodies, and the freeze step. */
#include "core/graph/decompose.h"

typedef bool (*decomposition)(ent_body *body);

/* Every line of the operator table; the class says whether there must be a function, which then must link. */
#define NO_DECOMPOSITION(name) NULL
#define ENT_DECOMPOSE_NONE NO_DECOMPOSITION
#define ENT_DECOMPOSE_ELEMENTWISE NO_DECOMPOSITION
#define ENT_DECOMPOSE_CONTRACTION NO_DECOMPOSITION
#define ENT_DECOMPOSE_WINDOW NO_DECOMPOSITION
#define ENT_DECOMPOSE_REDUCTION NO_DECOMPOSITION
#define ENT_DECOMPOSE_MOVEMENT NO_DECOMPOSITION
#define ENT_DECOMPOSE_CONTROL NO_DECOMPOSITION
#define ENT_DECOMPOSE_COMPOSITE(name) ent_decompose_##name
static const decomposition decompositions[ENT_OP_COUNT] = {
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes)                     \
    [id] = ENT_DECOMPOSE_##class_(name),
#include "abi/ent_ops.def"
};

/* ---- tools ---- */

uint32_t ent_body_input(const ent_body *body, uint32_t index) {
    return index < body->node.input_count ? body->node.inputs[index] : ENT_ID_NONE;
}

uint32_t ent_body_output(const ent_body *body, uint32_t index) {
    return index < body->node.output_count ? body->node.outputs[index] : ENT_ID_NONE;
}

uint32_t ent_body_add_list(ent_body *body, uint32_t op, ent_attrs attrs, const uint32_t *inputs,
                           uint32_t count, uint32_t result) {
    if (body->status) return ENT_ID_NONE;
    ent_node_spec spec = {.op = op,
                          .name = body->node.name,
                          .attrs = attrs,
                          .inputs = inputs,
                          .input_count = count,
                          .outputs = result == ENT_ID_NONE ? NULL : &result,
                          .output_count = 1,
                          .origins = body->node.origins,
                          .origin_count = body->node.origin_count};
    uint32_t node = ent_module_add_node(body->module, body->node.graph, &spec, body->node_id);
    body->status = ent_node_infer(body->module, node, body->scratch);
    return ent_module_node(body->module, node)->outputs[0];
}

uint32_t ent_body_add(ent_body *body, uint32_t op, ent_attrs attrs, uint32_t a, uint32_t b, uint32_t c,
                      uint32_t result) {
    uint32_t inputs[3] = {a, b, c};
    return ent_body_add_list(body, op, attrs, inputs,
                             c != ENT_ID_NONE   ? 3
                             : b != ENT_ID_NONE ? 2
                                                : 1,
                             result);
}

uint32_t ent_body_scalar(ent_body *body, uint32_t dtype, double value) {
    return ent_module_add_scalar(body->module, body->node.graph, dtype, value);
}

uint32_t ent_body_i64s(ent_body *body, const int64_t *items, uint32_t count) {
    return ent_module_add_i64s(body->module, body->node.graph, items, count);
}

uint32_t ent_body_cast_to(ent_body *body, uint32_t value, uint32_t dtype, uint32_t result) {
    ent_attr to = ent_attr_int("to", dtype);
    return ent_body_add(body, ENT_OP_Cast, ent_attrs_make(body->module, &to, 1), value, ENT_ID_NONE,
                        ENT_ID_NONE, result);
}

uint32_t ent_body_cast(ent_body *body, uint32_t value, uint32_t dtype) {
    if (body->status || ent_module_value(body->module, value)->dtype == dtype) return value;
    return ent_body_cast_to(body, value, dtype, ENT_ID_NONE);
}

uint32_t ent_body_transpose(ent_body *body, uint32_t value, int64_t a, int64_t b, int64_t c, int64_t d) {
    int64_t order[4] = {a, b, c, d};
    ent_attr perm = ent_attr_ints(body->module, "perm", order, 4);
    return ent_body_add(body, ENT_OP_Transpose, ent_attrs_make(body->module, &perm, 1), value, ENT_ID_NONE,
                        ENT_ID_NONE, ENT_ID_NONE);
}

uint32_t ent_body_permute(ent_body *body, uint32_t value, const int64_t *order, uint32_t rank,
                          uint32_t result) {
    bool moves = result != ENT_ID_NONE;
    for (uint32_t i = 0; i < rank; i++) moves = moves || order[i] != i;
    if (!moves) return value;
    ent_attr perm = ent_attr_ints(body->module, "perm", order, rank);
    return ent_body_add(body, ENT_OP_Transpose, ent_attrs_make(body->module, &perm, 1), value, ENT_ID_NONE,
                        ENT_ID_NONE, result);
}

uint32_t ent_body_reshape_like(ent_body *body, uint32_t value, uint32_t like, uint32_t result) {
    int64_t dims[ENT_MAX_RANK];
    if (body->status) return ENT_ID_NONE;
    const ent_value *target = ent_body_value(body, like);
    uint32_t rank = target->rank, shape;
    for (uint32_t i = 0; i < rank; i++) dims[i] = target->dims[i];
    if (ent_value_static(body->module, like) && ent_value_elements(body->module, like) > 0)
        shape = ent_body_i64s(body, dims, rank);
    else
        shape = ent_body_unary(body, ENT_OP_Shape, like);
    ent_attr zeros = ent_attr_int("allowzero", 1);
    return ent_body_add(body, ENT_OP_Reshape, ent_attrs_make(body->module, &zeros, 1), value, shape,
                        ENT_ID_NONE, result);
}

uint32_t ent_body_slice(ent_body *body, uint32_t value, int64_t axis, int64_t first, int64_t last) {
    uint32_t inputs[4] = {value, ent_body_i64s(body, &first, 1), ENT_ID_NONE, ENT_ID_NONE};
    inputs[2] = ent_body_i64s(body, &last, 1);
    inputs[3] = ent_body_i64s(body, &axis, 1);
    return ent_body_add_list(body, ENT_OP_Slice, ENT_NO_ATTRS, inputs, 4, ENT_ID_NONE);
}

uint32_t ent_body_wide(uint32_t dtype) {
    return dtype == ENT_DTYPE_F16 || dtype == ENT_DTYPE_BF16 ? ENT_DTYPE_F32 : dtype;
}

/* ---- one node ---- */

/* size: table */
static bool takes_integers(uint32_t op) {
    switch (op) {
    case ENT_OP_ArrayFeatureExtractor:
    case ENT_OP_Binarizer:
    case ENT_OP_DequantizeLinear:
    case ENT_OP_QLinearAdd:
    case ENT_OP_QLinearMul:
    case ENT_OP_QLinearSigmoid:
    case ENT_OP_QLinearLeakyRelu:
    case ENT_OP_QLinearSoftmax:
    case ENT_OP_QLinearAveragePool:
    case ENT_OP_QLinearGlobalAveragePool:
    case ENT_OP_MatMulIntegerToFloat:
        return true;
    default:
        return false;
    }
}

/* Bodies are written for float types whose scalars can be made here, and need to know the rank. */
static bool is_ready(const ent_body *body) {
    for (uint32_t i = 0; i < body->node.input_count; i++) {
        if (body->node.inputs[i] == ENT_ID_NONE) continue;
        const ent_value *value = ent_module_value(body->module, body->node.inputs[i]);
        if (value->dtype == ENT_DTYPE_NONE || value->rank == ENT_RANK_UNKNOWN) return false;
    }
    return body->node.input_count > 0 &&
           (ent_dtype_is_float(ent_module_value(body->module, body->node.inputs[0])->dtype) ||
            takes_integers(body->node.op));
}

ent_status ent_node_decompose(ent_module *module, uint32_t node, ent_arena *scratch, bool *out_done) {
    ent_body body = {module, scratch, node, *ent_module_node(module, node), NULL};
    *out_done = false;
    if (body.node.op >= ENT_OP_COUNT || !decompositions[body.node.op] || body.node.dead || !is_ready(&body))
        return NULL;
    if (!decompositions[body.node.op](&body)) return NULL;
    if (body.status) return body.status;
    ent_module_remove_node(module, node);
    *out_done = true;
    return NULL;
}

/* ---- freeze ---- */

/* The body's nodes were added last and in order, so their ids are consecutive. */
static void record_overlay(ent_module *module, const ent_node *composite, uint32_t first) {
    uint32_t count = module->nodes.count - first;
    uint32_t *nodes = ent_arena_alloc(module->arena, count * sizeof *nodes);
    for (uint32_t i = 0; i < count; i++) nodes[i] = first + i;
    ent_overlay overlay = {.op = composite->op,
                           .graph = composite->graph,
                           .name = composite->name,
                           .attrs = composite->attrs,
                           .inputs = composite->inputs,
                           .input_count = composite->input_count,
                           .outputs = composite->outputs,
                           .output_count = composite->output_count,
                           .nodes = nodes,
                           .node_count = count};
    ent_array_push(module->arena, &module->overlays, overlay);
}

static ent_status freeze_node(ent_module *module, uint32_t node, ent_arena *scratch) {
    const ent_node composite = *ent_module_node(module, node);
    const ent_op_info *info = ent_op_info_get(composite.op);
    uint32_t first = module->nodes.count;
    bool done;
    if (!info || info->op_class != ENT_CLASS_COMPOSITE) return NULL;
    ENT_TRY(ent_node_decompose(module, node, scratch, &done));
    if (done)
        record_overlay(module, &composite, first);
    else
        ent_module_add_note(module,
                            "%s '%s' has no decomposition for its attributes or types; it stays one leaf",
                            info->name, composite.name);
    return NULL;
}

ent_status ent_module_freeze(ent_module *module, ent_arena *scratch) {
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, node;
        if (ent_graph_is_dead(module, g)) continue;
        while (ent_graph_next(module, g, &at, &node)) {
            ENT_TRY(ent_arena_check(module->arena, module->name));
            ENT_TRY(freeze_node(module, node, scratch));
        }
    }
    module->frozen = true;
    return NULL;
}
