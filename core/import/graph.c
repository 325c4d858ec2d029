/* One graph: inputs, initializers and all node outputs are declared first, so that the order of nodes in the
 * file, and captures of values that come later, do not matter; then nodes are added and sorted. */
#include "core/import/internal.h"

#include <string.h>

bool ent_import_find(const ent_import_scope *scope, const char *name, uint32_t *out_value) {
    uint64_t value = 0;
    for (; scope; scope = scope->parent)
        if (ent_map_find(scope->names, name, &value)) {
            *out_value = (uint32_t)value;
            return true;
        }
    return false;
}

/* ---- which names anybody reads ---- */

static void collect_graph(ent_importer *importer, const Onnx__GraphProto *graph);

static void collect_nodes(ent_importer *importer, Onnx__NodeProto **nodes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < nodes[i]->n_input; k++)
            ent_map_set(importer->used_names, nodes[i]->input[k], 1);
        for (size_t k = 0; k < nodes[i]->n_attribute; k++)
            if (nodes[i]->attribute[k]->g) collect_graph(importer, nodes[i]->attribute[k]->g);
    }
}

static void collect_graph(ent_importer *importer, const Onnx__GraphProto *graph) {
    collect_nodes(importer, graph->node, graph->n_node);
    for (size_t i = 0; i < graph->n_output; i++)
        if (graph->output[i]->name) ent_map_set(importer->used_names, graph->output[i]->name, 1);
}

void ent_import_collect_uses(ent_importer *importer) {
    importer->used_names = ent_map_create(importer->scratch);
    collect_graph(importer, importer->model->graph);
    for (size_t i = 0; i < importer->model->n_functions; i++) {
        const Onnx__FunctionProto *function = importer->model->functions[i];
        collect_nodes(importer, function->node, function->n_node);
        for (size_t k = 0; k < function->n_output; k++)
            ent_map_set(importer->used_names, function->output[k], 1);
    }
}

/* ---- declaring ---- */

static ent_status define(ent_importer *importer, ent_import_scope *scope, const char *name, uint32_t value,
                         const char *place) {
    if (ent_map_find(scope->names, name, NULL))
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "graph.duplicate-value", place,
                               "'%s' is defined twice in one graph; names of values must be unique", name);
    ent_map_set(scope->names, name, value);
    return NULL;
}

/* What exporters write for "any size": two such dimensions need not be equal. */
static bool is_wildcard(const char *name) {
    return name[0] == 0 || strcmp(name, "?") == 0 || strcmp(name, "*") == 0 || strcmp(name, "-1") == 0;
}

static ent_status read_dim(ent_importer *importer, const Onnx__TensorShapeProto__Dimension *dim,
                           const char *input, size_t axis, ent_dim *out) {
    const char *name = NULL;
    uint64_t known = 0;
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        *out = dim->dim_value;
        if (*out >= 0) return NULL;
        if (*out != -1) /* several exporters write -1 for "any" */
            return ent_status_make(
                importer->arena, ENT_ERROR_MODEL, "shape.negative-dim",
                ent_arena_format(importer->scratch, "%s: input '%s'", importer->path, input),
                "dimension %zu is %lld", axis, (long long)dim->dim_value);
    } else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
               !is_wildcard(dim->dim_param)) {
        name = dim->dim_param;
    }
    if (!name) name = ent_arena_format(importer->scratch, "%s.%zu", input, axis);
    if (ent_map_find(importer->symbols, name, &known)) {
        *out = (ent_dim)known;
        return NULL;
    }
    uint32_t symbol = ent_module_add_symbol(importer->module, name, 0, INT64_MAX);
    *out = ent_module_dim_symbol(importer->module, symbol);
    ent_map_set(importer->symbols, name, (uint64_t)*out);
    return NULL;
}

/* dtype NONE where the model says nothing. */
static ent_status read_type(ent_importer *importer, const Onnx__ValueInfoProto *info, const char *place,
                            uint32_t *out_dtype, const Onnx__TensorShapeProto **out_shape) {
    *out_dtype = ENT_DTYPE_NONE;
    *out_shape = NULL;
    if (!info->type || info->type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) return NULL;
    if (info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return ent_status_make(
            importer->arena, ENT_ERROR_UNSUPPORTED, "type.not-tensor", place,
            "its type is a sequence, map, optional or sparse tensor; only dense tensors are supported");
    const Onnx__TypeProto__Tensor *tensor = info->type->tensor_type;
    *out_dtype = (uint32_t)ent_import_dtype(tensor->elem_type);
    *out_shape = tensor->shape;
    if (*out_dtype == ENT_DTYPE_NONE && tensor->elem_type != 0)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.dtype", place,
                               "data type %d is not known", tensor->elem_type);
    if (*out_dtype == ENT_DTYPE_STRING)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.string", place,
                               "string tensors are not supported");
    return NULL;
}

static ent_status add_input(ent_importer *importer, const Onnx__ValueInfoProto *info,
                            ent_import_scope *scope) {
    uint32_t dtype = 0;
    const Onnx__TensorShapeProto *shape = NULL;
    ent_dim dims[ENT_MAX_RANK] = {0};
    const char *place = ent_arena_format(importer->scratch, "%s: input '%s'", importer->path, info->name);
    ENT_TRY(read_type(importer, info, place, &dtype, &shape));
    if (dtype == ENT_DTYPE_NONE && scope->parent == NULL)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "input.no-type", place,
                               "the input has no element type");
    if (scope->parent) shape = NULL; /* of a loop's body: it may differ from one iteration to the next */
    if (shape && shape->n_dim > ENT_MAX_RANK)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.rank", place,
                               "rank %zu is above the supported %d", shape->n_dim, ENT_MAX_RANK);
    for (size_t i = 0; shape && i < shape->n_dim; i++)
        ENT_TRY(read_dim(importer, shape->dim[i], info->name, i, &dims[i]));
    uint32_t value = ent_module_add_value(importer->module, scope->graph, info->name, dtype,
                                          shape ? (uint32_t)shape->n_dim : ENT_RANK_UNKNOWN, dims);
    ent_graph_add_input(importer->module, scope->graph, value);
    return define(importer, scope, info->name, value, place);
}

/* Before IR version 4 every initializer is listed as an input too; later that makes it the input's default.
 * Both are constants here, but they must agree. */
static ent_status check_initialized_input(ent_importer *importer, const Onnx__ValueInfoProto *info,
                                          const Onnx__TensorProto *tensor) {
    uint32_t dtype = 0;
    const Onnx__TensorShapeProto *shape = NULL;
    const char *place = ent_arena_format(importer->scratch, "%s: input '%s'", importer->path, info->name);
    ENT_TRY(read_type(importer, info, place, &dtype, &shape));
    bool agrees = dtype == ENT_DTYPE_NONE || dtype == (uint32_t)ent_import_dtype(tensor->data_type);
    if (shape && shape->n_dim != tensor->n_dims) agrees = false;
    for (size_t i = 0; agrees && shape && i < shape->n_dim; i++)
        if (shape->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            shape->dim[i]->dim_value >= 0)
            agrees = shape->dim[i]->dim_value == tensor->dims[i];
    if (!agrees)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "initializer.type", place,
                               "its declared type and that of its initializer differ");
    if (importer->model->ir_version >= 4)
        ent_module_add_note(importer->module, "input '%s' has a default value, which is taken as constant",
                            info->name);
    return NULL;
}

static ent_status declare_inputs(ent_importer *importer, const Onnx__GraphProto *proto,
                                 ent_import_scope *scope) {
    ent_map *initialized = ent_map_create(importer->scratch);
    for (size_t i = 0; i < proto->n_initializer; i++)
        if (proto->initializer[i]->name) ent_map_set(initialized, proto->initializer[i]->name, i);
    for (size_t i = 0; i < proto->n_input; i++) {
        uint64_t index = 0;
        const Onnx__ValueInfoProto *info = proto->input[i];
        if (!info->name || !info->name[0])
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "input.no-name", importer->path,
                                   "input %zu has no name", i);
        if (ent_map_find(initialized, info->name, &index))
            ENT_TRY(check_initialized_input(importer, info, proto->initializer[index]));
        else
            ENT_TRY(add_input(importer, info, scope));
    }
    return NULL;
}

static ent_status declare_initializers(ent_importer *importer, const Onnx__GraphProto *proto,
                                       ent_import_scope *scope) {
    for (size_t i = 0; i < proto->n_initializer; i++) {
        const Onnx__TensorProto *from = proto->initializer[i];
        const char *name = from->name ? from->name : "";
        const char *place = ent_arena_format(importer->scratch, "%s: initializer '%s'", importer->path, name);
        ent_tensor tensor;
        bool borrow = false;
        if (!name[0])
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "initializer.no-name", place,
                                   "number %zu has no name", i);
        ENT_TRY(ent_import_tensor(importer, from, place, &tensor, &borrow));
        uint32_t value =
            ent_module_add_constant(importer->module, scope->graph, name, tensor.dtype, tensor.rank,
                                    tensor.dims, tensor.data, tensor.size_bytes, borrow);
        ENT_TRY(define(importer, scope, name, value, place));
    }
    if (proto->n_sparse_initializer == 0) return NULL;
    const Onnx__TensorProto *values = proto->sparse_initializer[0]->values;
    return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "initializer.sparse",
                           ent_arena_format(importer->scratch, "%s: initializer '%s'", importer->path,
                                            values && values->name ? values->name : ""),
                           "sparse initializers are not supported; make them dense");
}

/* Outputs whose number is part of the node's meaning are kept even if nobody reads them. */
static bool keeps_outputs(const ent_importer *importer, const Onnx__NodeProto *proto) {
    const Onnx__FunctionProto *function = NULL;
    if (!ent_import_is_onnx_domain(proto->domain) || ent_import_function_find(importer, proto, &function))
        return true;
    return strcmp(proto->op_type, "Split") == 0 || strcmp(proto->op_type, "If") == 0 ||
           strcmp(proto->op_type, "Loop") == 0 || strcmp(proto->op_type, "Scan") == 0;
}

static ent_status declare_outputs(ent_importer *importer, const Onnx__NodeProto *proto,
                                  ent_import_scope *scope) {
    bool keep = keeps_outputs(importer, proto);
    for (size_t i = 0; i < proto->n_output; i++) {
        const char *name = proto->output[i];
        uint32_t value = ENT_ID_NONE;
        if (!name[0]) continue;
        if (i == 0 || keep || ent_map_find(importer->used_names, name, NULL))
            value = ent_module_add_value(importer->module, scope->graph, name, ENT_DTYPE_NONE,
                                         ENT_RANK_UNKNOWN, NULL);
        ENT_TRY(define(importer, scope, name, value, ent_import_node_place(importer, proto)));
    }
    return NULL;
}

static uint32_t add_model_node(ent_importer *importer, const Onnx__NodeProto *proto) {
    ent_module *module = importer->module;
    uint32_t index = module->model_nodes.count;
    const char *name = proto->name && proto->name[0]
                           ? ent_arena_strdup(importer->arena, proto->name)
                           : ent_arena_format(importer->arena, "%s#%u", proto->op_type, index);
    ent_array_push(importer->arena, &module->model_nodes, name);
    return index;
}

ent_status ent_import_declare_nodes(ent_importer *importer, Onnx__NodeProto **nodes, size_t count,
                                    ent_import_scope *scope, uint32_t *origins) {
    for (size_t i = 0; i < count; i++) {
        const Onnx__NodeProto *proto = nodes[i];
        const Onnx__FunctionProto *function = NULL;
        if (!proto->op_type || !proto->op_type[0])
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "operator.no-type",
                                   ent_import_node_place(importer, proto), "the node names no operator");
        ENT_TRY(ent_import_count_node(importer, ent_import_node_place(importer, proto)));
        origins[i] = scope->origin != ENT_ID_NONE ? scope->origin : add_model_node(importer, proto);
        bool constant = strcmp(proto->op_type, "Constant") == 0 && ent_import_is_onnx_domain(proto->domain);
        if (constant && !ent_import_function_find(importer, proto, &function)) {
            uint32_t value = ENT_ID_NONE;
            ENT_TRY(ent_import_constant_node(importer, proto, scope, &value));
            ENT_TRY(define(importer, scope, proto->output[0], value, ent_import_node_place(importer, proto)));
        } else {
            ENT_TRY(declare_outputs(importer, proto, scope));
        }
    }
    return NULL;
}

/* ---- outputs ---- */

/* A branch that hands an outer value through needs a value of its own. */
static uint32_t pass_through(ent_importer *importer, const ent_import_scope *scope, const char *name,
                             uint32_t value) {
    uint32_t origin = scope->control_origin;
    uint32_t output =
        ent_module_add_value(importer->module, scope->graph, name, ENT_DTYPE_NONE, ENT_RANK_UNKNOWN, NULL);
    ent_node_spec spec = {.op = ENT_OP_Identity,
                          .inputs = &value,
                          .input_count = 1,
                          .outputs = &output,
                          .output_count = 1,
                          .origins = &origin,
                          .origin_count = origin == ENT_ID_NONE ? 0 : 1};
    ent_module_add_node(importer->module, scope->graph, &spec, ENT_ID_NONE);
    return output;
}

static ent_status add_outputs(ent_importer *importer, const Onnx__GraphProto *proto,
                              const ent_import_scope *scope) {
    if (proto->n_output == 0)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "graph.no-outputs", importer->path,
                               "graph '%s' has no outputs", proto->name ? proto->name : "");
    for (size_t i = 0; i < proto->n_output; i++) {
        uint32_t value = ENT_ID_NONE, dtype = ENT_DTYPE_NONE;
        const Onnx__TensorShapeProto *shape = NULL;
        const char *name = proto->output[i]->name ? proto->output[i]->name : "";
        const char *place = ent_arena_format(importer->scratch, "%s: output '%s'", importer->path, name);
        if (!name[0] || !ent_import_find(scope, name, &value) || value == ENT_ID_NONE)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "graph.undefined-output", place,
                                   "the graph's output is not defined by any node, input or initializer");
        ENT_TRY(read_type(importer, proto->output[i], place, &dtype, &shape));
        if (ent_module_value(importer->module, value)->graph != scope->graph)
            value = pass_through(importer, scope, name, value);
        if (ent_module_value(importer->module, value)->dtype == ENT_DTYPE_NONE)
            ent_module_value(importer->module, value)->dtype = dtype;
        ent_graph_add_output(importer->module, scope->graph, value);
    }
    return NULL;
}

ent_status ent_import_graph(ent_importer *importer, const Onnx__GraphProto *proto, ent_import_scope *scope) {
    uint32_t *origins = ent_arena_array(importer->scratch, proto->n_node + 1, sizeof *origins);
    if (!origins) return ent_status_out_of_memory();
    ENT_TRY(declare_inputs(importer, proto, scope));
    ENT_TRY(declare_initializers(importer, proto, scope));
    ENT_TRY(ent_import_declare_nodes(importer, proto->node, proto->n_node, scope, origins));
    for (size_t i = 0; i < proto->n_node; i++)
        ENT_TRY(ent_import_node(importer, proto->node[i], scope, origins[i]));
    ENT_TRY(add_outputs(importer, proto, scope));
    return ent_graph_sort(importer->module, scope->graph);
}
