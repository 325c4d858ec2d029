/* A Loop becomes a loop step over cells: the iteration's number, the condition and the states lie in values
 * of the caller, which the body reads; what it makes is copied over them. */
#include "core/lower/internal.h"

/* What the body takes besides its captures, in its order; before any of its regions. */
ent_status ent_lower_loop_inputs(ent_lower_builder *b, uint32_t body) {
    const ent_graph *graph = ent_module_graph(b->module, body);
    uint32_t home = ent_lower_space_device(b, 0), id;
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        uint32_t value = graph->inputs.items[i];
        ent_layout plain = ent_layout_plain(ent_module_value(b->module, value)->rank);
        ENT_TRY(ent_lower_value(b, body, value, home, &plain, &id));
        b->functions[body].values.items[id].kind = ENT_VALUE_INPUT;
        ent_array_push(b->arena, &b->functions[body].inputs, id);
    }
    return NULL;
}

/* A fresh value of the caller's like a parameter of the body. */
static uint32_t like_parameter(ent_lower_builder *b, uint32_t graph, uint32_t body, uint32_t parameter,
                               const char *name) {
    ent_program_value value = b->functions[body].values.items[parameter];
    value.kind = ENT_VALUE_TEMPORARY;
    value.index = ENT_PROGRAM_NONE;
    value.layout = ent_layout_plain(value.rank);
    value.name = name;
    ent_array_push(b->arena, &b->functions[graph].values, value);
    return b->functions[graph].values.count - 1;
}

static void push_copy(ent_lower_builder *b, uint32_t graph, uint32_t from, uint32_t to) {
    uint32_t ids[2] = {from, to};
    ent_program_step copy = ent_lower_make_step(ENT_PROGRAM_COPY, b->functions[graph].values.items[to].device,
                                                ENT_PROGRAM_NONE, ENT_PROGRAM_NONE, 0, "state");
    copy.values = ent_lower_copy_ids(b, ids, 2);
    copy.value_count = 2;
    ent_lower_push_step(b, graph, &copy);
}

/* The states start as copies: in what the node makes, where somebody reads it. */
static ent_status lower_states(ent_lower_builder *b, const ent_node *node, uint32_t body, uint32_t *ids) {
    uint32_t home = ent_lower_space_device(b, 0), from;
    const ent_graph *graph = ent_module_graph(b->module, body);
    for (uint32_t i = 2; i < node->input_count; i++) {
        ent_layout plain = ent_layout_plain(ent_module_value(b->module, node->inputs[i])->rank);
        uint32_t result = i - 2 < node->output_count ? node->outputs[i - 2] : ENT_ID_NONE;
        ENT_TRY(ent_lower_value(b, node->graph, node->inputs[i], home, &plain, &from));
        if (result != ENT_ID_NONE)
            ENT_TRY(ent_lower_value(b, node->graph, result, home, &plain, &ids[i]));
        else
            ids[i] = like_parameter(b, node->graph, body, b->functions[body].inputs.items[i],
                                    ent_module_value(b->module, graph->inputs.items[i])->name);
        push_copy(b, node->graph, from, ids[i]);
    }
    return NULL;
}

static ent_status lower_condition(ent_lower_builder *b, const ent_node *node, uint32_t cell) {
    uint32_t home = ent_lower_space_device(b, 0), value = node->inputs[1], from;
    if (value == ENT_ID_NONE) return NULL; /* the runtime says true */
    ent_layout plain = ent_layout_plain(ent_module_value(b->module, value)->rank);
    ENT_TRY(ent_lower_value(b, node->graph, value, home, &plain, &from));
    push_copy(b, node->graph, from, cell);
    return NULL;
}

ent_status ent_lower_loop(ent_lower_builder *b, const ent_node *node, uint32_t region) {
    uint32_t body = (uint32_t)ent_attrs_find(node->attrs, "body")->i, home = ent_lower_space_device(b, 0);
    ENT_TRY(ent_lower_finish_outputs(b, body));
    ent_lower_function *callee = &b->functions[body];
    uint32_t room = callee->inputs.count + callee->outputs.count, explicit = node->input_count, trips;
    uint32_t *ids = ent_arena_alloc(b->arena, (room + 1) * sizeof *ids), count = explicit;
    ids[0] = like_parameter(b, node->graph, body, callee->inputs.items[0], "iteration");
    ids[1] = like_parameter(b, node->graph, body, callee->inputs.items[1], "condition");
    ENT_TRY(lower_condition(b, node, ids[1]));
    ENT_TRY(lower_states(b, node, body, ids));
    uint32_t *results = ent_arena_alloc(b->arena, (callee->outputs.count + 1) * sizeof *results);
    for (uint32_t i = 0; i < callee->outputs.count; i++)
        results[i] = like_parameter(b, node->graph, body, callee->outputs.items[i], "next");
    ENT_TRY(ent_lower_arguments(b, node, body, results, ids, &count));
    ent_program_step step =
        ent_lower_make_step(ENT_PROGRAM_LOOP, home, ENT_PROGRAM_NONE, region, 0, node->name);
    if (node->inputs[0] != ENT_ID_NONE) {
        ent_layout plain = ent_layout_plain(ent_module_value(b->module, node->inputs[0])->rank);
        ENT_TRY(ent_lower_value(b, node->graph, node->inputs[0], home, &plain, &trips));
        step.trips = trips;
    }
    if (node->inputs[1] != ENT_ID_NONE) step.condition = ids[1];
    step.function[0] = body;
    step.values = ids;
    step.value_count = count;
    step.split = explicit - 2;
    ent_lower_push_step(b, node->graph, &step);
    return NULL;
}
