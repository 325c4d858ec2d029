/* One node: operator and version looked up, checked against its form, upgraded, added; its graphs after it.
 */
#include "core/import/internal.h"

#include <stdlib.h>
#include <string.h>

bool ent_import_is_onnx_domain(const char *domain) {
    return !domain || !domain[0] || strcmp(domain, "ai.onnx") == 0;
}

const char *ent_import_node_place(ent_importer *importer, const Onnx__NodeProto *proto) {
    const char *op_type = proto->op_type ? proto->op_type : "";
    if (proto->name && proto->name[0])
        return ent_arena_format(importer->scratch, "%s: node '%s' (%s)", importer->path, proto->name,
                                op_type);
    const char *output = proto->n_output ? proto->output[0] : "";
    return ent_arena_format(importer->scratch, "%s: unnamed node (%s) with output '%s'", importer->path,
                            op_type, output);
}

ent_status ent_import_count_node(ent_importer *importer, const char *place) {
    if (++importer->node_count <= importer->options.max_nodes)
        return ent_arena_check(importer->arena, importer->path);
    return ent_status_make(importer->arena, ENT_ERROR_LIMIT, "limit.nodes", place,
                           "the model has more than %u nodes after its functions are inlined",
                           importer->options.max_nodes);
}

/* Operators of other domains that mean what one of another name or domain means. ONNX Runtime also writes its
 * own simplified normalisation into ai.onnx. */
static const struct {
    const char *domain, *op_type;
    uint32_t op;
} aliases[] = {
    {"com.microsoft", "Gelu", ENT_OP_Gelu},
    {"", "SimplifiedLayerNormalization", ENT_OP_SimplifiedLayerNormalization},
    {"com.microsoft", "QuantizeLinear", ENT_OP_QuantizeLinear},
    {"com.microsoft", "DequantizeLinear", ENT_OP_DequantizeLinear},
};

/* domain "": ai.onnx */
static uint32_t find_op(const char *domain, const char *op_type) {
    uint32_t op = ent_op_find(op_type);
    if (op != ENT_OP_NONE) {
        size_t size;
        const char *own = ent_import_op_domain(ent_op_info_get(op), &size);
        if (strlen(domain) == size && memcmp(domain, own, size) == 0) return op;
    }
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(aliases[i].domain, domain) == 0 && strcmp(aliases[i].op_type, op_type) == 0)
            return aliases[i].op;
    return ENT_OP_NONE;
}

/* Operators of other domains that other nodes replace. Gradient needs the graph of the derivative. */
static ent_status refuse_gradient(ent_import_draft *draft) {
    return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "operator.training", draft->place,
                           "'Gradient' is a training operator; export the model for inference");
}

static const struct {
    const char *domain, *op_type;
    ent_status (*expand)(ent_import_draft *draft);
} expanded[] = {
    {"ai.onnx.preview.training", "Adagrad", ent_import_expand_adagrad},
    {"ai.onnx.preview.training", "Adam", ent_import_expand_adam},
    {"ai.onnx.preview.training", "Momentum", ent_import_expand_momentum},
    {"ai.onnx.preview.training", "Gradient", refuse_gradient},
};

/* The opset of the node's own domain; 1 where the model does not say. */
static int64_t other_opset(const ent_import_draft *draft) {
    const ent_import_opsets *opsets = draft->scope->opsets;
    for (size_t i = 0; i < opsets->count; i++)
        if (opsets->items[i]->domain && strcmp(opsets->items[i]->domain, draft->proto->domain) == 0)
            return opsets->items[i]->version;
    return 1;
}

static ent_status find_other_domain(ent_import_draft *draft, ent_import_form *out) {
    const char *domain = draft->proto->domain, *op_type = draft->proto->op_type ? draft->proto->op_type : "";
    draft->op = find_op(domain, op_type);
    draft->opset = other_opset(draft);
    for (size_t i = 0; i < sizeof expanded / sizeof *expanded; i++)
        if (strcmp(expanded[i].domain, domain) == 0 && strcmp(expanded[i].op_type, op_type) == 0)
            draft->expand = expanded[i].expand;
    if (draft->expand && ent_import_form_find(op_type, draft->opset, out)) return NULL;
    if (draft->op != ENT_OP_NONE && strncmp(domain, "ai.onnx.", 8) == 0 &&
        ent_import_form_find(op_type, draft->opset, out))
        return NULL;
    if (draft->op != ENT_OP_NONE) {
        ent_import_form_of(draft->op, out);
        return NULL;
    }
    return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "operator.domain", draft->place,
                           "operator '%s' of domain '%s' is not known; only ai.onnx, some operators of "
                           "ai.onnx.ml and com.microsoft and the model's own functions are",
                           op_type, domain);
}

/* Operators that a later one replaced. */
typedef struct replaced_op {
    const char *name;
    uint32_t op; /* NONE: the upgrade says */
    int64_t removed;
} replaced_op;

static const replaced_op *find_replaced(const char *op_type) {
    static const replaced_op replaced[] = {{"Upsample", ENT_OP_NONE, 10},
                                           {"Scatter", ENT_OP_ScatterElements, 11}};
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (strcmp(replaced[i].name, op_type) == 0) return &replaced[i];
    return NULL;
}

static int64_t newest_version(const char *versions, int64_t opset) {
    int64_t newest = 0;
    for (const char *at = versions; *at; at += strcspn(at, ","), at += *at == ',') {
        int64_t version = strtoll(at, NULL, 10);
        if (version <= opset && version > newest) newest = version;
    }
    return newest;
}

/* What was defined before opset 7 and is still the same then is read as of opset 7; the rest is refused. */
static ent_status lift_old_opset(ent_import_draft *draft, const char *op_type) {
    if (draft->opset >= ENT_IMPORT_FULL_OPSET) return NULL;
    const char *versions = draft->op == ENT_OP_NONE ? "" : ent_op_info_get(draft->op)->versions;
    int64_t then = newest_version(versions, draft->opset);
    if (then == 0 || then != newest_version(versions, ENT_IMPORT_FULL_OPSET))
        return ent_status_make(
            draft->importer->arena, ENT_ERROR_UNSUPPORTED, "opset.version", draft->place,
            "'%s' of opset %lld means something else than from opset %d on; convert the model", op_type,
            (long long)draft->opset, ENT_IMPORT_FULL_OPSET);
    draft->opset = ENT_IMPORT_FULL_OPSET;
    return NULL;
}

static ent_status find_form(ent_import_draft *draft, ent_import_form *out) {
    const Onnx__NodeProto *proto = draft->proto;
    ent_arena *arena = draft->importer->arena;
    const char *op_type = proto->op_type ? proto->op_type : "";
    if (!ent_import_is_onnx_domain(proto->domain)) return find_other_domain(draft, out);
    if (draft->opset == 0)
        return ent_status_make(arena, ENT_ERROR_MODEL, "opset.missing", draft->place,
                               "the node is of ai.onnx, but the model imports no opset of it");
    const replaced_op *replaced = find_replaced(op_type);
    draft->op = replaced ? replaced->op : find_op("", op_type);
    if (draft->op == ENT_OP_NONE && !replaced)
        return ent_status_make(arena, ENT_ERROR_UNSUPPORTED, "operator.unknown", draft->place,
                               "operator '%s' of ai.onnx (opset %lld) is not supported", op_type,
                               (long long)draft->opset);
    ENT_TRY(lift_old_opset(draft, op_type));
    if (replaced && draft->opset >= replaced->removed)
        return ent_status_make(arena, ENT_ERROR_MODEL, "operator.version", draft->place,
                               "%s was removed in opset %lld, but the model imports opset %lld", op_type,
                               (long long)replaced->removed, (long long)draft->opset);
    if (!ent_import_form_find(op_type, draft->opset, out))
        return ent_status_make(arena, ENT_ERROR_MODEL, "operator.version", draft->place,
                               "%s does not exist yet in opset %lld, which the model imports", op_type,
                               (long long)draft->opset);
    return NULL;
}

static ent_status arity_error(const ent_import_draft *draft, const char *what, size_t have, int32_t min,
                              int32_t max) {
    const char *more = max < 0 ? " or more" : "";
    if (max < 0) max = min;
    return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.arity", draft->place,
                           "%zu %s given, expected %d to %d%s", have, what, min, max, more);
}

static ent_status resolve_values(ent_import_draft *draft, const ent_import_form *form) {
    const Onnx__NodeProto *proto = draft->proto;
    size_t inputs = proto->n_input, outputs = proto->n_output;
    while (inputs > 0 && !proto->input[inputs - 1][0]) inputs--;
    while (outputs > 0 && !proto->output[outputs - 1][0]) outputs--;
    /* Resize of opset 11 counts roi as required; exporters leave it empty where the mode does not read it. */
    size_t needed = form->min_in > 0 ? (size_t)form->min_in : 0;
    if (draft->op == ENT_OP_Resize && inputs > 0) needed = 1;
    if (inputs < needed || (form->max_in >= 0 && inputs > (size_t)form->max_in))
        return arity_error(draft, "inputs are", inputs, form->min_in, form->max_in);
    if (outputs < (size_t)form->min_out || (form->max_out >= 0 && outputs > (size_t)form->max_out))
        return arity_error(draft, "outputs are", outputs, form->min_out, form->max_out);
    draft->inputs = ent_arena_array(draft->importer->scratch, inputs + 3, sizeof *draft->inputs);
    draft->outputs = ent_arena_array(draft->importer->scratch, outputs + 1, sizeof *draft->outputs);
    if (!draft->inputs || !draft->outputs) return ent_status_out_of_memory();
    for (size_t i = 0; i < inputs; i++) {
        uint32_t value = ENT_ID_NONE;
        const char *name = proto->input[i];
        if (name[0] && !ent_import_find(draft->scope, name, &value))
            return ent_status_make(
                draft->importer->arena, ENT_ERROR_MODEL, "graph.undefined-value", draft->place,
                "input '%s' is not defined by any node, input or initializer in sight", name);
        if (value == ENT_ID_NONE && i < needed)
            return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.missing-input",
                                   draft->place, "the required input %zu is absent", i);
        draft->inputs[draft->input_count++] = value;
    }
    for (size_t i = 0; i < outputs; i++) {
        uint32_t value = ENT_ID_NONE;
        if (proto->output[i][0]) ent_import_find(draft->scope, proto->output[i], &value);
        draft->outputs[draft->output_count++] = value;
    }
    return NULL;
}

static ent_status check_newest_arity(const ent_import_draft *draft) {
    const ent_op_info *info = ent_op_info_get(draft->op);
    if ((info->max_inputs >= 0 && draft->input_count > (uint32_t)info->max_inputs) ||
        (info->max_outputs >= 0 && draft->output_count > (uint32_t)info->max_outputs))
        return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "operator.optional-value",
                               draft->place, "input or output number %d is not supported for this operator",
                               (info->max_inputs >= 0 && draft->input_count > (uint32_t)info->max_inputs
                                    ? info->max_inputs
                                    : info->max_outputs) +
                                   1);
    return NULL;
}

static const Onnx__AttributeProto *graph_attribute(const ent_import_draft *draft, ent_str name) {
    for (size_t i = 0; i < draft->proto->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = draft->proto->attribute[i];
        if (attribute->name && strlen(attribute->name) == name.size &&
            memcmp(attribute->name, name.data, name.size) == 0)
            return ent_import_attribute_resolve(draft->scope, attribute);
    }
    return NULL;
}

ent_status ent_import_body(const ent_import_draft *draft, const ent_attr *attr) {
    ent_importer *importer = draft->importer;
    const Onnx__AttributeProto *attribute = graph_attribute(draft, attr->name);
    ent_import_scope scope = *draft->scope;
    scope.parent = draft->scope;
    scope.names = ent_map_create(importer->scratch);
    scope.graph = (uint32_t)attr->i;
    scope.call = NULL;
    scope.control_origin = draft->origin;
    if (attribute->g->n_input != 0 && draft->op == ENT_OP_If)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "graph.inputs", draft->place,
                               "a branch of If has inputs");
    if (attribute->g->n_output != draft->proto->n_output && draft->op == ENT_OP_If)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "graph.output-count", draft->place,
                               "the branch '%.*s' has %zu outputs, the node %zu", (int)attr->name.size,
                               attr->name.data, attribute->g->n_output, draft->proto->n_output);
    return ent_import_graph(importer, attribute->g, &scope);
}

static ent_status add_node(ent_import_draft *draft) {
    ent_importer *importer = draft->importer;
    for (uint32_t i = 0; i < draft->attr_count; i++) {
        if (draft->attrs[i].type != ENT_ATTR_GRAPH) continue;
        const Onnx__AttributeProto *attribute = graph_attribute(draft, draft->attrs[i].name);
        const char *name =
            attribute->g->name && attribute->g->name[0]
                ? attribute->g->name
                : ent_arena_strndup(importer->scratch, draft->attrs[i].name.data, draft->attrs[i].name.size);
        draft->attrs[i].i = ent_module_add_graph(importer->module, name, ENT_ID_NONE);
    }
    ent_node_spec spec = {.op = draft->op,
                          .name = draft->name,
                          .attrs = ent_attrs_make(importer->module, draft->attrs, draft->attr_count),
                          .inputs = draft->inputs,
                          .input_count = draft->input_count,
                          .outputs = draft->outputs,
                          .output_count = draft->output_count,
                          .origins = &draft->origin,
                          .origin_count = 1};
    uint32_t node = ent_module_add_node(importer->module, draft->scope->graph, &spec, ENT_ID_NONE);
    if (draft->pending) {
        ent_import_pending pending = {draft->pending, node};
        ent_array_push(importer->scratch, &importer->pending, pending);
    }
    for (uint32_t i = 0; i < draft->attr_count; i++)
        if (draft->attrs[i].type == ENT_ATTR_GRAPH) ENT_TRY(ent_import_body(draft, &draft->attrs[i]));
    return NULL;
}

static const char *node_name(ent_importer *importer, const ent_import_scope *scope,
                             const Onnx__NodeProto *proto, uint32_t origin) {
    if (proto->name && proto->name[0])
        return ent_arena_format(importer->scratch, "%s%s", scope->prefix, proto->name);
    if (scope->prefix[0]) return ent_arena_format(importer->scratch, "%s%s", scope->prefix, proto->op_type);
    return importer->module->model_nodes.items[origin];
}

ent_status ent_import_node(ent_importer *importer, const Onnx__NodeProto *proto,
                           const ent_import_scope *scope, uint32_t origin) {
    const Onnx__FunctionProto *function = NULL;
    if (ent_import_function_find(importer, proto, &function))
        return ent_import_function_inline(importer, function, proto, scope, origin);
    if (proto->op_type && strcmp(proto->op_type, "Constant") == 0 && ent_import_is_onnx_domain(proto->domain))
        return NULL;
    ent_import_draft draft = {.importer = importer,
                              .scope = scope,
                              .proto = proto,
                              .place = ent_import_node_place(importer, proto),
                              .opset = scope->opsets->onnx,
                              .origin = origin};
    ent_import_form form;
    ENT_TRY(find_form(&draft, &form));
    draft.name = node_name(importer, scope, proto, origin);
    ENT_TRY(resolve_values(&draft, &form));
    ENT_TRY(ent_import_attributes(&draft, &form));
    ENT_TRY(ent_import_upgrade(&draft));
    if (draft.done) return NULL;
    ENT_TRY(check_newest_arity(&draft));
    return add_node(&draft);
}
