/* Plan -> program: regions in execution order become steps of their graph's function. */
#include "core/lower/internal.h"

#include <string.h>

const uint32_t *ent_lower_copy_ids(ent_lower_builder *b, const uint32_t *ids, uint32_t count) {
    return ent_arena_copy(b->arena, ids, count * sizeof *ids);
}

/* Queues of different devices are kept in order: a step waits for the one before it when that ran elsewhere.
 */
void ent_lower_push_step(ent_lower_builder *b, uint32_t graph, ent_program_step *step) {
    ent_lower_function *f = &b->functions[graph];
    if (f->steps.count > 0 && f->steps.items[f->steps.count - 1].device != step->device) {
        uint32_t before = f->steps.count - 1;
        step->waits = ent_lower_copy_ids(b, &before, 1);
        step->wait_count = 1;
    }
    ent_array_push(b->arena, &f->steps, *step);
}

ent_program_step ent_lower_make_step(uint32_t kind, uint32_t device, uint32_t kernel, uint32_t region,
                                     double predicted_ns, const char *name) {
    ent_program_step step = {0};
    step.kind = kind;
    step.device = device;
    step.kernel = kernel;
    step.condition = step.trips = ENT_PROGRAM_NONE;
    step.function[0] = step.function[1] = ENT_PROGRAM_NONE;
    step.region = region;
    step.predicted_ns = predicted_ns;
    step.name = name;
    return step;
}

static ent_status lower_convert(ent_lower_builder *b, const ent_plan_convert *c) {
    uint32_t graph = ent_module_value(b->module, c->value)->graph, ids[2];
    uint32_t from = ent_lower_space_device(b, c->from_space), to = ent_lower_space_device(b, c->to_space);
    ENT_TRY(ent_lower_value(b, graph, c->value, from, &c->from, &ids[0]));
    if (from == to && ent_layout_equal(&c->from, &c->to))
        return NULL; /* the host's memory stands in the device's */
    ENT_TRY(ent_lower_value(b, graph, c->value, to, &c->to, &ids[1]));
    uint32_t kernel = ENT_PROGRAM_NONE, device = from;
    if (c->device != ENT_ID_NONE) {
        ENT_TRY(ent_lower_convert_kernel(b, c, &kernel));
        if (b->failure) return NULL;
        device = ent_lower_device(b, c->device);
    }
    ent_program_step step =
        ent_lower_make_step(kernel == ENT_PROGRAM_NONE ? ENT_PROGRAM_COPY : ENT_PROGRAM_DISPATCH, device,
                            kernel, ENT_PROGRAM_NONE, c->price_ns, "convert");
    step.values = ent_lower_copy_ids(b, ids, 2);
    step.value_count = 2;
    ent_lower_push_step(b, graph, &step);
    return NULL;
}

static ent_status lower_view(ent_lower_builder *b, const ent_offer *offer) {
    const ent_offer_port *in = NULL, *out = NULL;
    for (uint32_t i = 0; i < offer->port_count; i++)
        if (offer->ports[i].is_output)
            out = &offer->ports[i];
        else if (!in)
            in = &offer->ports[i];
    uint32_t device = ent_lower_device(b, offer->device), source;
    ENT_TRY(ent_lower_value(b, offer->graph, in->value, device, &in->layout, &source));
    uint32_t alias = ent_lower_add_alias(b, offer->graph, out->value, &out->layout, source);
    ent_lower_add_form(b, offer->graph, out->value, device, &out->layout, alias);
    return NULL;
}

static ent_status lower_dispatch(ent_lower_builder *b, ent_offer *offer, uint32_t region) {
    uint32_t kernel;
    ENT_TRY(ent_lower_offer_kernel(b, offer, &kernel));
    if (b->failure) {
        b->failed_offer = offer->id;
        return NULL;
    }
    offer->tier = b->kernels.items[kernel].tier; /* what the executor says, not what was claimed */
    uint32_t device = ent_lower_device(b, offer->device), count = 0;
    uint32_t *ids = ent_arena_alloc(b->arena, (offer->port_count + 1) * sizeof *ids);
    for (uint32_t i = 0; i < offer->port_count; i++) {
        const ent_offer_port *port = &offer->ports[i];
        if (port->value == ENT_ID_NONE) continue; /* scratch of the tile program: the executor's own */
        ENT_TRY(ent_lower_value(b, offer->graph, port->value, device, &port->layout, &ids[count++]));
    }
    ent_program_step step =
        ent_lower_make_step(ENT_PROGRAM_DISPATCH, device, kernel, region, offer->time_mid_ns, offer->path);
    step.values = ids;
    step.value_count = count;
    ent_lower_push_step(b, offer->graph, &step);
    return NULL;
}

/* Arguments of one body: the caller's forms of what it captured, then the caller's results. */
ent_status ent_lower_arguments(ent_lower_builder *b, const ent_node *node, uint32_t body,
                               const uint32_t *results, uint32_t *ids, uint32_t *count) {
    ent_lower_function *callee = &b->functions[body];
    for (uint32_t i = 0; i < callee->captures.count; i++) {
        ent_lower_form form = callee->forms.items[callee->captures.items[i]];
        ENT_TRY(ent_lower_value(b, node->graph, form.value, form.device, &form.layout, &ids[(*count)++]));
    }
    for (uint32_t i = 0; i < callee->outputs.count; i++) ids[(*count)++] = results[i];
    return NULL;
}

/* Results of a body in the form that control nodes give: plain, in the host's memory. */
ent_status ent_lower_finish_outputs(ent_lower_builder *b, uint32_t graph) {
    ent_lower_function *f = &b->functions[graph];
    const ent_graph *g = ent_module_graph(b->module, graph);
    for (uint32_t i = 0; i < g->outputs.count; i++) {
        uint32_t value = g->outputs.items[i], id;
        ent_layout plain = ent_layout_plain(ent_module_value(b->module, value)->rank);
        ENT_TRY(ent_lower_value(b, graph, value, ent_lower_space_device(b, 0), &plain, &id));
        bool repeated = false;
        for (uint32_t k = 0; k < f->outputs.count; k++) repeated |= f->outputs.items[k] == id;
        if (f->values.items[id].kind == ENT_VALUE_TEMPORARY) f->values.items[id].kind = ENT_VALUE_OUTPUT;
        const char *name =
            graph == 0 && i < b->module->output_names.count ? b->module->output_names.items[i] : NULL;
        bool renames = name && strcmp(name, f->values.items[id].name) != 0;
        if (repeated || (renames && f->values.items[id].kind != ENT_VALUE_OUTPUT))
            id = ent_lower_add_alias(b, graph, value, &plain, id);
        if (renames) f->values.items[id].name = name;
        ent_array_push(b->arena, &f->outputs, id);
    }
    return NULL;
}

static ent_status lower_control(ent_lower_builder *b, const ent_offer *offer, uint32_t region) {
    const ent_node *node = ent_module_node(b->module, offer->nodes[0]);
    if (node->op == ENT_OP_Loop) return ent_lower_loop(b, node, region);
    const ent_attr *then_attr = ent_attrs_find(node->attrs, "then_branch"),
                   *else_attr = ent_attrs_find(node->attrs, "else_branch");
    uint32_t bodies[2] = {(uint32_t)then_attr->i, (uint32_t)else_attr->i},
             home = ent_lower_space_device(b, 0);
    uint32_t *results = ent_arena_alloc(b->arena, (node->output_count + 1) * sizeof *results);
    for (uint32_t i = 0; i < node->output_count; i++) {
        ent_layout plain = ent_layout_plain(ent_module_value(b->module, node->outputs[i])->rank);
        ENT_TRY(ent_lower_value(b, node->graph, node->outputs[i], home, &plain, &results[i]));
    }
    uint32_t room = 2 * node->output_count + 1;
    for (uint32_t k = 0; k < 2; k++) {
        ENT_TRY(ent_lower_finish_outputs(b, bodies[k]));
        room += b->functions[bodies[k]].captures.count;
    }
    uint32_t *ids = ent_arena_alloc(b->arena, room * sizeof *ids), count = 0, condition;
    ENT_TRY(ent_lower_arguments(b, node, bodies[0], results, ids, &count));
    uint32_t split = count;
    ENT_TRY(ent_lower_arguments(b, node, bodies[1], results, ids, &count));
    ent_layout plain = ent_layout_plain(ent_module_value(b->module, node->inputs[0])->rank);
    ENT_TRY(ent_lower_value(b, node->graph, node->inputs[0], home, &plain, &condition));
    ent_program_step step =
        ent_lower_make_step(ENT_PROGRAM_BRANCH, home, ENT_PROGRAM_NONE, region, 0, node->name);
    step.condition = condition;
    step.function[0] = bodies[0];
    step.function[1] = bodies[1];
    step.values = ids;
    step.value_count = count;
    step.split = split;
    ent_lower_push_step(b, node->graph, &step);
    return NULL;
}

static ent_status lower_region(ent_lower_builder *b, uint32_t region) {
    const ent_plan *plan = b->plan;
    for (uint32_t i = 0; i < plan->convert_count && !b->failure; i++)
        if (plan->converts[i].before == region) ENT_TRY(lower_convert(b, &plan->converts[i]));
    if (b->failure || region == plan->region_count) return NULL;
    ent_offer *offer = &plan->session->offers.items[plan->regions[region]];
    if (offer->kind == ENT_OFFER_VIEW) return lower_view(b, offer);
    if (offer->kind == ENT_OFFER_CONTROL) return lower_control(b, offer, region);
    return lower_dispatch(b, offer, region);
}

static ent_status lower_main_inputs(ent_lower_builder *b) {
    const ent_graph *main = ent_module_graph(b->module, 0);
    uint32_t home = ent_lower_space_device(b, 0);
    for (uint32_t i = 0; i < main->inputs.count; i++) {
        uint32_t value = main->inputs.items[i], id;
        if (ent_module_value(b->module, value)->constant) continue;
        ent_layout plain = ent_layout_plain(ent_module_value(b->module, value)->rank);
        ENT_TRY(ent_lower_value(b, 0, value, home, &plain, &id));
        b->functions[0].values.items[id].kind = ENT_VALUE_INPUT;
        ent_array_push(b->arena, &b->functions[0].inputs, id);
        for (uint32_t k = 0; k < b->module->bound_inputs.count; k++) {
            if (b->module->bound_inputs.items[k].input != value) continue;
            ent_program_guard guard = {b->functions[0].inputs.count - 1, 0};
            ENT_TRY(
                ent_lower_constant(b, b->module->bound_inputs.items[k].constant, &plain, &guard.constant));
            ent_array_push(b->arena, &b->guards, guard);
        }
    }
    return NULL;
}

/* Each symbol is read from the first input axis that is nothing but it. */
static void add_symbols(ent_lower_builder *b, ent_program *program) {
    const ent_lower_function *f = &b->functions[0];
    uint32_t count = b->sizes.symbols.count;
    ent_program_symbol *symbols = ent_arena_alloc(b->arena, (count + 1) * sizeof *symbols);
    for (uint32_t s = 0; s < count; s++) {
        const ent_symbol *symbol = &b->module->symbols.items[b->sizes.symbols.items[s]];
        symbols[s] = (ent_program_symbol){symbol->name, symbol->min, symbol->max, 1, ENT_PROGRAM_NONE, 0};
        for (uint32_t i = f->inputs.count; i-- > 0;) {
            const ent_program_value *input = &f->values.items[f->inputs.items[i]];
            for (uint32_t axis = input->rank; axis-- > 0;) {
                const ent_expr *e = input->dims[axis] < 0 ? &b->sizes.exprs.items[~input->dims[axis]] : NULL;
                if (!e || e->kind != ENT_EXPR_SYMBOL || e->a != (int64_t)s) continue;
                symbols[s].input = i;
                symbols[s].axis = axis;
            }
        }
    }
    program->symbols = symbols;
    program->symbol_count = count;
    program->exprs = b->sizes.exprs.items;
    program->expr_count = b->sizes.exprs.count;
}

static ent_program *assemble(ent_lower_builder *b) {
    ent_program *program = ent_arena_alloc(b->arena, sizeof *program);
    add_symbols(b, program);
    uint32_t graphs = b->module->graphs.count;
    ent_program_function *functions = ent_arena_alloc(b->arena, (graphs + 1) * sizeof *functions);
    for (uint32_t g = 0; g < graphs; g++) {
        ent_lower_function *f = &b->functions[g];
        functions[g] = (ent_program_function){ent_module_graph(b->module, g)->name,
                                              f->values.items,
                                              f->values.count,
                                              f->inputs.items,
                                              f->outputs.items,
                                              f->inputs.count,
                                              f->outputs.count,
                                              f->steps.items,
                                              f->steps.count,
                                              NULL};
        ent_dim *frames = ent_arena_alloc(b->arena, (b->devices.count + 1) * sizeof *frames);
        functions[g].arena_bytes = frames;
    }
    program->name = b->module->name;
    program->devices = b->devices.items;
    program->device_count = b->devices.count;
    program->constants = b->constants.items;
    program->constant_count = b->constants.count;
    program->kernels = b->kernels.items;
    program->kernel_count = b->kernels.count;
    program->functions = functions;
    program->function_count = graphs;
    program->guards = b->guards.items;
    program->guard_count = b->guards.count;
    program->plan_json = ent_plan_json(b->plan, b->arena);
    program->plan_json_bytes = strlen(program->plan_json);
    return program;
}

static ent_lower_builder *make_builder(const ent_plan *plan, ent_arena *arena) {
    ent_lower_builder *b = ent_arena_alloc(arena, sizeof *b);
    b->plan = plan;
    b->module = plan->session->module;
    b->arena = arena;
    b->failed_offer = ENT_PROGRAM_NONE;
    ent_size_table_init(&b->sizes, b->module, arena);
    b->kernel_of = ent_map_create(arena);
    b->device_index = ent_arena_alloc(arena, (plan->session->device_count + 1) * sizeof *b->device_index);
    memset(b->device_index, 0xff, (plan->session->device_count + 1) * sizeof *b->device_index);
    b->functions = ent_arena_alloc(arena, (b->module->graphs.count + 1) * sizeof *b->functions);
    for (uint32_t g = 0; g < b->module->graphs.count; g++) {
        b->functions[g].graph = g;
        b->functions[g].form_index = ent_map_create(arena);
    }
    return b;
}

ent_status ent_lower_program(const ent_plan *plan, ent_arena *arena, ent_lower_result *out) {
    ent_lower_builder *b = make_builder(plan, arena);
    *out = (ent_lower_result){NULL, {0, 0}, ENT_PROGRAM_NONE, NULL};
    ENT_TRY(lower_main_inputs(b));
    for (uint32_t g = 1; g < b->module->graphs.count; g++) {
        uint32_t owner = ent_module_graph(b->module, g)->owner;
        bool live = owner != ENT_ID_NONE && !ent_module_node(b->module, owner)->dead;
        if (live && ent_module_node(b->module, owner)->op == ENT_OP_Loop)
            ENT_TRY(ent_lower_loop_inputs(b, g));
    }
    for (uint32_t r = 0; r <= plan->region_count && !b->failure; r++) {
        ENT_TRY(ent_arena_check(b->arena, b->module->name));
        ENT_TRY(lower_region(b, r));
    }
    if (b->failure) {
        out->failed_offer = b->failed_offer;
        out->failure = b->failure;
        return NULL;
    }
    ENT_TRY(ent_lower_finish_outputs(b, 0));
    out->program = assemble(b);
    ENT_TRY(ent_program_plan_memory(out->program, arena, &out->memory));
    return ent_program_verify(out->program, arena);
}
