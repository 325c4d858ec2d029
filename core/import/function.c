/* Functions that a model brings along: every call is replaced by the function's nodes. */
#include "core/import/internal.h"

#include <string.h>

static const char *key_of(ent_importer *importer, const char *domain, const char *name) {
    if (!domain || ent_import_is_onnx_domain(domain)) domain = "";
    return ent_arena_format(importer->scratch, "%s\n%s", domain, name ? name : "");
}

static bool find_index(const ent_importer *importer, const Onnx__NodeProto *proto, uint64_t *out) {
    if (importer->model == NULL || importer->model->n_functions == 0) return false;
    return ent_map_find(importer->functions,
                        key_of((ent_importer *)(uintptr_t)importer, proto->domain, proto->op_type), out);
}

bool ent_import_function_find(const ent_importer *importer, const Onnx__NodeProto *proto,
                              const Onnx__FunctionProto **out) {
    uint64_t index = 0;
    if (!find_index(importer, proto, &index)) return false;
    *out = importer->model->functions[index];
    return true;
}

/* ---- how many nodes inlining makes, before any is made ---- */

typedef struct sizes {
    const ent_importer *importer;
    uint64_t *nodes; /* by function, the call counted; 0: not counted yet */
    uint32_t depth;
} sizes;

static uint64_t count_nodes(sizes *s, Onnx__NodeProto **nodes, size_t count);

/* What calls itself counts little here: inlining refuses it by its depth. */
static uint64_t count_call(sizes *s, const Onnx__NodeProto *node) {
    uint64_t index = 0;
    if (!find_index(s->importer, node, &index)) return 1;
    const Onnx__FunctionProto *function = s->importer->model->functions[index];
    uint64_t *known = &s->nodes[index];
    if (*known == 0 && s->depth < s->importer->options.max_nesting) {
        *known = 1;
        s->depth++;
        *known = count_nodes(s, function->node, function->n_node) + 1;
        s->depth--;
    }
    return *known ? *known : 1;
}

static uint64_t count_nodes(sizes *s, Onnx__NodeProto **nodes, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += count_call(s, nodes[i]);
        for (size_t k = 0; k < nodes[i]->n_attribute; k++) {
            const Onnx__GraphProto *body = nodes[i]->attribute[k]->g;
            if (body) sum += count_nodes(s, body->node, body->n_node);
        }
        if (sum > UINT32_MAX) return UINT32_MAX;
    }
    return sum;
}

static ent_status check_inlined(ent_importer *importer) {
    sizes s = {.importer = importer,
               .nodes =
                   ent_arena_array(importer->scratch, importer->model->n_functions + 1, sizeof *s.nodes)};
    if (!s.nodes) return ent_status_out_of_memory();
    const Onnx__GraphProto *graph = importer->model->graph;
    if (count_nodes(&s, graph->node, graph->n_node) <= importer->options.max_nodes) return NULL;
    return ent_status_make(importer->arena, ENT_ERROR_LIMIT, "limit.nodes", importer->path,
                           "the model has more than %u nodes after its functions are inlined",
                           importer->options.max_nodes);
}

ent_status ent_import_functions_index(ent_importer *importer) {
    importer->functions = ent_map_create(importer->scratch);
    for (size_t i = 0; i < importer->model->n_functions; i++) {
        const Onnx__FunctionProto *function = importer->model->functions[i];
        const char *key = key_of(importer, function->domain, function->name);
        uint64_t other = 0;
        if (ent_map_find(importer->functions, key, &other))
            return ent_status_make(
                importer->arena, ENT_ERROR_UNSUPPORTED, "function.overload", importer->path,
                "function '%s' of domain '%s' is defined twice; overloads are not supported",
                function->name ? function->name : "", function->domain ? function->domain : "");
        ent_map_set(importer->functions, key, i);
    }
    return importer->model->n_functions ? check_inlined(importer) : NULL;
}

static ent_status bind_inputs(ent_importer *importer, const Onnx__FunctionProto *function,
                              const Onnx__NodeProto *call, const ent_import_scope *scope, const char *place,
                              ent_import_scope *inner) {
    if (call->n_input > function->n_input || call->n_output > function->n_output)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "function.arity", place,
                               "the call has %zu inputs and %zu outputs, the function %zu and %zu",
                               call->n_input, call->n_output, function->n_input, function->n_output);
    for (size_t i = 0; i < function->n_input; i++) {
        uint32_t value = ENT_ID_NONE;
        const char *name = i < call->n_input ? call->input[i] : "";
        if (name[0] && !ent_import_find(scope, name, &value))
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "graph.undefined-value", place,
                                   "input '%s' is not defined", name);
        ent_map_set(inner->names, function->input[i], value);
    }
    return NULL;
}

/* Output values of the call exist already; the body's own values are copied into them. */
static ent_status bind_outputs(ent_importer *importer, const Onnx__FunctionProto *function,
                               const Onnx__NodeProto *call, const ent_import_scope *scope, const char *place,
                               const ent_import_scope *inner, uint32_t origin) {
    for (size_t i = 0; i < call->n_output; i++) {
        uint32_t from = ENT_ID_NONE, to = ENT_ID_NONE;
        if (!call->output[i][0] || !ent_import_find(scope, call->output[i], &to) || to == ENT_ID_NONE)
            continue;
        if (!ent_import_find(inner, function->output[i], &from) || from == ENT_ID_NONE)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "function.undefined-output", place,
                                   "the function's output '%s' is not defined in it", function->output[i]);
        ent_node_spec spec = {.op = ENT_OP_Identity,
                              .inputs = &from,
                              .input_count = 1,
                              .outputs = &to,
                              .output_count = 1,
                              .origins = &origin,
                              .origin_count = 1};
        ent_module_add_node(importer->module, scope->graph, &spec, ENT_ID_NONE);
    }
    return NULL;
}

static ent_status read_opsets(ent_importer *importer, const Onnx__FunctionProto *function, const char *place,
                              ent_import_opsets *out) {
    out->items = function->opset_import;
    out->count = function->n_opset_import;
    for (size_t i = 0; i < out->count; i++)
        if (ent_import_is_onnx_domain(out->items[i]->domain)) out->onnx = out->items[i]->version;
    if (out->onnx && (out->onnx < ENT_IMPORT_MIN_OPSET || out->onnx > ENT_IMPORT_MAX_OPSET))
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "opset.version", place,
                               "the function imports opset %lld of ai.onnx; supported are %d to %d",
                               (long long)out->onnx, ENT_IMPORT_MIN_OPSET, ENT_IMPORT_MAX_OPSET);
    return NULL;
}

ent_status ent_import_function_inline(ent_importer *importer, const Onnx__FunctionProto *function,
                                      const Onnx__NodeProto *call, const ent_import_scope *scope,
                                      uint32_t origin) {
    const char *place = ent_import_node_place(importer, call);
    if (importer->inline_depth >= importer->options.max_nesting)
        return ent_status_make(importer->arena, ENT_ERROR_LIMIT, "limit.nesting", place,
                               "functions call each other more than %u deep, or in a circle",
                               importer->options.max_nesting);
    ent_import_opsets opsets = {0};
    ENT_TRY(read_opsets(importer, function, place, &opsets));
    ent_import_scope inner = {.names = ent_map_create(importer->scratch),
                              .graph = scope->graph,
                              .opsets = &opsets,
                              .call = call,
                              .call_scope = scope,
                              .origin = origin,
                              .control_origin = scope->control_origin};
    inner.prefix = ent_arena_format(importer->scratch, "%s%s/", scope->prefix,
                                    call->name && call->name[0] ? call->name : call->op_type);
    ENT_TRY(bind_inputs(importer, function, call, scope, place, &inner));
    uint32_t *origins = ent_arena_array(importer->scratch, function->n_node + 1, sizeof *origins);
    if (!origins) return ent_status_out_of_memory();
    importer->inline_depth++;
    ENT_TRY(ent_import_declare_nodes(importer, function->node, function->n_node, &inner, origins));
    for (size_t i = 0; i < function->n_node; i++)
        ENT_TRY(ent_import_node(importer, function->node[i], &inner, origins[i]));
    importer->inline_depth--;
    return bind_outputs(importer, function, call, scope, place, &inner, origin);
}
