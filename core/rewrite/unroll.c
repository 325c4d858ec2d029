/* Loop and Scan written out: where the trip count is known and every condition turns out constant, the body
 * is copied once an iteration. Copies are inferred and folded node by node, so that a value may change its
 * shape from one iteration to the next, and a condition may depend on the iteration number. */
#include "core/rewrite/internal.h"

#include <string.h>

#define MAX_COPIED_NODES 16384u     /* of one loop, its nested bodies included */
#define MAX_MODULE_NODES (1u << 17) /* above those of the model: loops in loops multiply */
#define TOO_LARGE "its iterations would add too many nodes"
#define ENDLESS INT64_MAX

typedef struct loop {
    ent_rewrite_context *context;
    uint32_t node, body;
    uint32_t state_count, scan_count; /* outputs of the node: states, then scans */
    uint32_t first_state;             /* input of the node */
    uint32_t *states;                 /* values, as the last iteration left them */
    uint32_t *arguments, *results;    /* of the body */
    ENT_ARRAY(uint32_t) scans;        /* iteration after iteration, scan_count each */
    uint32_t *map; /* of the body's values to those of the iteration; every copy overwrites what it reads */
    uint32_t map_count;
    uint32_t first_node; /* of those made here */
    int64_t iterations;
    const char *refused;
    uint32_t *replaced; /* as in the context, when this loop is a node of a body that is being copied */
} loop;

static const ent_node *node_of(const loop *l) {
    return ent_module_node(l->context->module, l->node);
}

static uint32_t body_nodes(const loop *l) {
    uint32_t at = 0, node, count = 0;
    while (ent_graph_next(l->context->module, l->body, &at, &node)) count++;
    return count;
}

static bool is_too_large(const loop *l, double iterations) {
    return iterations * (body_nodes(l) + 1.0) > MAX_COPIED_NODES;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id);

/* What a loop in the body makes has no shape before it is written out. */
static bool is_open_loop(const ent_module *module, uint32_t id) {
    const ent_node *node = ent_module_node(module, id);
    bool open = false;
    for (uint32_t i = 0; i < node->output_count; i++)
        open = open || (node->outputs[i] != ENT_ID_NONE &&
                        ent_module_value(module, node->outputs[i])->rank == ENT_RANK_UNKNOWN);
    return open && (node->op == ENT_OP_Loop || node->op == ENT_OP_Scan);
}

/* Later copies read what the node was folded to. */
static ent_status fold_copy(loop *l, uint32_t copy, const uint32_t *originals) {
    uint32_t count = ent_module_node(l->context->module, copy)->output_count;
    uint32_t *replaced = ent_arena_alloc(l->context->scratch, (count + 1) * sizeof *replaced);
    memset(replaced, 0xff, count * sizeof *replaced);
    if (is_open_loop(l->context->module, copy)) {
        l->context->replaced = replaced;
        ENT_TRY(visit(l->context, copy));
    } else {
        ENT_TRY(ent_rewrite_fold_node(l->context, copy, replaced));
    }
    for (uint32_t i = 0; i < count; i++)
        if (replaced[i] != ENT_ID_NONE && originals[i] != ENT_ID_NONE) l->map[originals[i]] = replaced[i];
    return NULL;
}

/* One iteration: from arguments to results. */
static ent_status copy_body(loop *l) {
    ent_module *module = l->context->module;
    const ent_graph body = *ent_module_graph(module, l->body);
    uint32_t at = 0, node, graph = node_of(l)->graph;
    for (uint32_t i = 0; i < body.inputs.count; i++) l->map[body.inputs.items[i]] = l->arguments[i];
    while (ent_graph_next(module, l->body, &at, &node)) {
        ENT_TRY(ent_arena_check(module->arena, module->name));
        uint32_t copy = ent_module_copy_node(module, node, graph, l->node, l->map, l->map_count);
        ENT_TRY(ent_node_infer(module, copy, l->context->scratch));
        ENT_TRY(fold_copy(l, copy, ent_module_node(module, node)->outputs));
    }
    for (uint32_t i = 0; i < body.outputs.count; i++) {
        uint32_t value = body.outputs.items[i];
        l->results[i] = l->map[value] != ENT_ID_NONE ? l->map[value] : value;
    }
    if (module->nodes.count - l->first_node > MAX_COPIED_NODES ||
        module->nodes.count - module->model_nodes.count > MAX_MODULE_NODES)
        l->refused = TOO_LARGE;
    l->context->changed = true;
    return NULL;
}

static void keep_results(loop *l, uint32_t first_result) {
    memcpy(l->states, l->results + first_result, l->state_count * sizeof *l->states);
    for (uint32_t i = 0; i < l->scan_count; i++)
        ent_array_push(l->context->scratch, &l->scans, l->results[first_result + l->state_count + i]);
    l->iterations++;
}

/* ---- results ---- */

static ent_status unsqueezed(loop *l, uint32_t value, int64_t axis, uint32_t *out) {
    uint32_t inputs[2] = {value, ent_module_add_i64s(l->context->module, node_of(l)->graph, &axis, 1)};
    return ent_rewrite_add(l->context, ENT_OP_Unsqueeze, (ent_attrs){0}, inputs, 2, l->node, &l->node, 1,
                           out);
}

/* An empty scan has the shape that an iteration would have given: `sample` is from one that nobody counts. */
static ent_status empty_scan(loop *l, uint32_t sample, int64_t axis, uint32_t *out) {
    ent_module *module = l->context->module;
    const ent_value value = *ent_module_value(module, sample);
    int64_t dims[ENT_MAX_RANK] = {0};
    if (!ent_value_static(module, sample) || value.rank == ENT_MAX_RANK || value.dtype == ENT_DTYPE_NONE) {
        l->refused = "it runs no iteration and the shape of a scan output is not known";
        return NULL;
    }
    for (uint32_t i = 0; i < value.rank; i++) dims[i + (i >= axis)] = value.dims[i];
    *out = ent_module_add_constant(module, node_of(l)->graph, NULL, value.dtype, value.rank + 1, dims, "", 0,
                                   false);
    return NULL;
}

static ent_status joined_scan(loop *l, uint32_t scan, int64_t axis, bool reversed, uint32_t *out) {
    ent_module *module = l->context->module;
    uint32_t count = (uint32_t)l->iterations, sample = l->scans.items[scan];
    uint32_t rank = ent_module_value(module, sample)->rank;
    if (rank == ENT_RANK_UNKNOWN || rank == ENT_MAX_RANK) {
        l->refused = "the rank of a scan output is not known";
        return NULL;
    }
    if (axis < 0) axis += rank + 1;
    if (axis < 0 || axis > rank) {
        l->refused = "the axis of a scan output is out of range";
        return NULL;
    }
    if (count == 0) return empty_scan(l, sample, axis, out);
    uint32_t *parts = ent_arena_alloc(l->context->scratch, count * sizeof *parts);
    for (uint32_t i = 0; i < count; i++)
        ENT_TRY(unsqueezed(l, l->scans.items[i * l->scan_count + scan], axis,
                           &parts[reversed ? count - 1 - i : i]));
    ent_attr attr = ent_attr_int("axis", axis);
    *out = parts[0];
    if (count == 1) return NULL;
    return ent_rewrite_add(l->context, ENT_OP_Concat, ent_attrs_make(module, &attr, 1), parts, count, l->node,
                           &l->node, 1, out);
}

/* A graph's output must be computed in it; what comes straight from outside goes through a node. */
static ent_status replace_output(loop *l, uint32_t output, uint32_t value) {
    ent_module *module = l->context->module;
    uint32_t old = node_of(l)->outputs[output];
    if (old == ENT_ID_NONE) return NULL;
    if (ent_value_is_output(module, old))
        ENT_TRY(ent_rewrite_add(l->context, ENT_OP_Identity, (ent_attrs){0}, &value, 1, l->node, &l->node, 1,
                                &value));
    ent_module_replace_value(module, old, value);
    if (l->replaced) l->replaced[output] = value;
    return NULL;
}

static int64_t listed(const ent_node *node, const char *name, uint32_t index, int64_t missing) {
    const ent_attr *attr = ent_attrs_find(node->attrs, name);
    return attr && attr->type == ENT_ATTR_INTS && index < attr->count ? attr->ints[index] : missing;
}

static ent_status finish(loop *l) {
    uint32_t *scans = ent_arena_alloc(l->context->scratch, (l->scan_count + 1) * sizeof *scans);
    uint32_t outputs = node_of(l)->output_count;
    for (uint32_t i = 0; i < l->scan_count && !l->refused; i++) {
        if (l->state_count + i >= outputs || node_of(l)->outputs[l->state_count + i] == ENT_ID_NONE) continue;
        ENT_TRY(joined_scan(l, i, listed(node_of(l), "scan_output_axes", i, 0),
                            listed(node_of(l), "scan_output_directions", i, 0) != 0, &scans[i]));
    }
    if (l->refused) return NULL;
    for (uint32_t i = 0; i < l->state_count && i < outputs; i++) ENT_TRY(replace_output(l, i, l->states[i]));
    for (uint32_t i = 0; i < l->scan_count && l->state_count + i < outputs; i++)
        ENT_TRY(replace_output(l, l->state_count + i, scans[i]));
    ent_module_remove_node(l->context->module, l->node);
    return NULL;
}

static void map_body(loop *l) {
    ent_module *module = l->context->module;
    ent_graph_lift_constants(module, l->body, node_of(l)->graph);
    l->map_count = module->values.count;
    l->map = ent_arena_alloc(l->context->scratch, (l->map_count + 1) * sizeof *l->map);
    memset(l->map, 0xff, l->map_count * sizeof *l->map);
}

static bool open_loop(loop *l, uint32_t extra_inputs, uint32_t extra_results, uint32_t scan_inputs) {
    ent_module *module = l->context->module;
    const ent_attr *attr = ent_attrs_find(node_of(l)->attrs, "body");
    if (!attr || attr->type != ENT_ATTR_GRAPH) return false;
    l->body = (uint32_t)attr->i;
    const ent_graph *body = ent_module_graph(module, l->body);
    uint32_t inputs = node_of(l)->input_count;
    if (inputs < l->first_state + scan_inputs) return false;
    l->state_count = inputs - l->first_state - scan_inputs;
    if (body->inputs.count != extra_inputs + l->state_count + scan_inputs ||
        body->outputs.count < extra_results + l->state_count)
        return false;
    l->scan_count = body->outputs.count - extra_results - l->state_count;
    l->states = ent_arena_alloc(l->context->scratch, (l->state_count + 1) * sizeof *l->states);
    l->arguments = ent_arena_alloc(l->context->scratch, (body->inputs.count + 1) * sizeof *l->arguments);
    l->results = ent_arena_alloc(l->context->scratch, (body->outputs.count + 1) * sizeof *l->results);
    for (uint32_t i = 0; i < l->state_count; i++) {
        l->states[i] = node_of(l)->inputs[l->first_state + i];
        if (l->states[i] == ENT_ID_NONE) return false;
    }
    map_body(l);
    return true;
}

/* ---- Loop ---- */

static ent_status iterate_loop(loop *l, int64_t number) {
    ent_module *module = l->context->module;
    l->arguments[0] = ent_module_add_scalar(module, node_of(l)->graph, ENT_DTYPE_I64, (double)number);
    l->arguments[1] = ent_module_add_scalar(module, node_of(l)->graph, ENT_DTYPE_BOOL, 1);
    memcpy(l->arguments + 2, l->states, l->state_count * sizeof *l->states);
    return copy_body(l);
}

static bool known_scalar(const loop *l, uint32_t index, double missing, double *out) {
    uint32_t value = ent_rewrite_input(node_of(l), index);
    *out = missing;
    return value == ENT_ID_NONE || ent_value_scalar(l->context->module, value, out);
}

/* With no condition given, what the body says of it does not count. */
static ent_status unroll_loop(loop *l) {
    double trips, condition;
    bool counts = ent_rewrite_input(node_of(l), 1) != ENT_ID_NONE;
    l->first_state = 2;
    if (!known_scalar(l, 0, (double)ENDLESS, &trips)) l->refused = "its trip count is known only at run time";
    if (!known_scalar(l, 1, 1, &condition)) l->refused = "its condition is known only at run time";
    if (!l->refused && !open_loop(l, 2, 1, 0)) l->refused = "its inputs do not fit its body";
    if (!l->refused && !counts && is_too_large(l, trips)) l->refused = TOO_LARGE;
    while (!l->refused && condition != 0 && (double)l->iterations < trips) {
        ENT_TRY(iterate_loop(l, l->iterations));
        keep_results(l, 1);
        if (counts && !ent_value_scalar(l->context->module, l->results[0], &condition))
            l->refused = "a condition in its body is known only at run time";
    }
    if (l->refused || l->iterations || !l->scan_count) return NULL;
    ENT_TRY(iterate_loop(l, 0)); /* for the shapes of empty scans */
    for (uint32_t i = 0; i < l->scan_count; i++)
        ent_array_push(l->context->scratch, &l->scans, l->results[1 + l->state_count + i]);
    return NULL;
}

/* ---- Scan ---- */

typedef struct scan_input {
    uint32_t value;
    int64_t axis;
    bool reversed;
} scan_input;

static bool read_scan_input(const loop *l, uint32_t index, scan_input *out, int64_t *length) {
    const ent_node *node = node_of(l);
    uint32_t value = node->inputs[l->state_count + index];
    if (value == ENT_ID_NONE || !ent_value_static(l->context->module, value)) return false;
    const ent_value *v = ent_module_value(l->context->module, value);
    *out = (scan_input){value, listed(node, "scan_input_axes", index, 0),
                        listed(node, "scan_input_directions", index, 0) != 0};
    if (out->axis < 0) out->axis += v->rank;
    if (out->axis < 0 || out->axis >= v->rank) return false;
    if (*length >= 0 && *length != v->dims[out->axis]) return false;
    *length = v->dims[out->axis];
    return true;
}

static ent_status iterate_scan(loop *l, const scan_input *inputs, uint32_t count, int64_t at,
                               int64_t length) {
    ent_module *module = l->context->module;
    memcpy(l->arguments, l->states, l->state_count * sizeof *l->states);
    for (uint32_t i = 0; i < count; i++) {
        ent_attr axis = ent_attr_int("axis", inputs[i].axis);
        uint32_t index = ent_module_add_scalar(module, node_of(l)->graph, ENT_DTYPE_I64,
                                               (double)(inputs[i].reversed ? length - 1 - at : at));
        uint32_t pair[2] = {inputs[i].value, index};
        ENT_TRY(ent_rewrite_add(l->context, ENT_OP_Gather, ent_attrs_make(module, &axis, 1), pair, 2, l->node,
                                &l->node, 1, &l->arguments[l->state_count + i]));
    }
    return copy_body(l);
}

static ent_status unroll_scan(loop *l) {
    int64_t count = ent_attrs_int(node_of(l)->attrs, "num_scan_inputs", 0), length = -1;
    scan_input *inputs = ent_arena_alloc(l->context->scratch, (node_of(l)->input_count + 1) * sizeof *inputs);
    if (count < 1 || count > node_of(l)->input_count || !open_loop(l, 0, 0, (uint32_t)count))
        l->refused = "its inputs do not fit its body";
    for (uint32_t i = 0; i < count && !l->refused; i++)
        if (!read_scan_input(l, i, &inputs[i], &length))
            l->refused = "the length of its sequences is known only at run time, or differs";
    if (!l->refused && is_too_large(l, (double)length)) l->refused = TOO_LARGE;
    if (!l->refused && length == 0 && l->scan_count) l->refused = "its sequences are empty";
    for (int64_t i = 0; i < length && !l->refused; i++) {
        ENT_TRY(iterate_scan(l, inputs, (uint32_t)count, i, length));
        keep_results(l, 0);
    }
    return NULL;
}

/* A loop that stays runs as a loop if its states keep their shapes: its body is inferred with the shapes that
 * they start with, and inference says whether it gives them back. */
static void settle(ent_rewrite_context *context, uint32_t id) {
    ent_module *module = context->module;
    const ent_node *node = ent_module_node(module, id);
    const ent_attr *attr = ent_attrs_find(node->attrs, "body");
    if (node->op != ENT_OP_Loop || !attr || attr->type != ENT_ATTR_GRAPH) return;
    const ent_graph *body = ent_module_graph(module, (uint32_t)attr->i);
    if (body->inputs.count != node->input_count || body->outputs.count != node->input_count - 1) return;
    for (uint32_t i = 2; i < node->input_count; i++)
        if (node->inputs[i] == ENT_ID_NONE || !ent_value_static(module, node->inputs[i])) return;
    for (uint32_t i = 0; i < node->input_count; i++) {
        ent_value *to = ent_module_value(module, body->inputs.items[i]);
        if (to->rank != ENT_RANK_UNKNOWN) continue;
        to->rank = 0;
        context->changed = true;
        if (i < 2) {
            to->dtype = i == 0 ? ENT_DTYPE_I64 : ENT_DTYPE_BOOL;
            continue;
        }
        const ent_value *from = ent_module_value(module, node->inputs[i]);
        to->dtype = from->dtype;
        to->rank = from->rank;
        memcpy(to->dims, from->dims, sizeof to->dims);
    }
}

ent_status ent_rewrite_copy_body(ent_rewrite_context *context, uint32_t node, uint32_t body,
                                 const uint32_t *arguments, uint32_t *results) {
    ent_module *module = context->module;
    loop l = {.context = context, .node = node, .body = body, .first_node = module->nodes.count};
    uint32_t inputs = ent_module_graph(module, body)->inputs.count;
    l.arguments = ent_arena_copy(context->scratch, arguments, inputs * sizeof *arguments);
    l.results = results;
    map_body(&l);
    return copy_body(&l);
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    uint32_t op = ent_module_node(context->module, id)->op;
    if (op == ENT_OP_FlexAttention) return ent_rewrite_write_attention(context, id);
    if (op != ENT_OP_Loop && op != ENT_OP_Scan) return NULL;
    loop l = {.context = context,
              .node = id,
              .first_node = context->module->nodes.count,
              .replaced = context->replaced};
    context->replaced = NULL;
    bool changed = context->changed;
    ENT_TRY(op == ENT_OP_Loop ? unroll_loop(&l) : unroll_scan(&l));
    if (!l.refused) ENT_TRY(finish(&l));
    if (!l.refused) return NULL;
    for (uint32_t i = l.first_node; i < context->module->nodes.count; i++)
        ent_module_remove_node(context->module, i);
    context->changed = changed;
    settle(context, id);
    ent_module_add_note(context->module, "'%s' (%s) was not written out: %s",
                        ent_module_node(context->module, id)->name, ent_op_info_get(op)->name, l.refused);
    return NULL;
}

ent_status ent_rewrite_unroll(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
