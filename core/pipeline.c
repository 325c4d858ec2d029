/* The pipeline: a model file becomes a bundle. This list is the whole of it.
 *
 *   import     model file -> graph IR, newest operator meanings                       core/import
 *   bind       --shape, --dim, --const: every symbol becomes a number or a range      core/graph
 *   rewrite    folding, recomposition, movement: device-agnostic                      core/rewrite
 *   freeze     composites become overlays over leaves; the graph changes no more      core/graph
 *   devices    plugins are found, devices opened, declarations read                   core/host,
 * core/capability negotiate  frozen graph x devices -> offers core/negotiate (core/fusion, core/tile) plan
 * offers -> the cheapest cover; awards; re-planned around refusals       core/plan (core/partition) lower
 * plan -> program: every region compiled, memory planned                 core/lower (core/program) save
 * program -> bundle file                                                 core/program */
#include "core/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "core/rewrite/rewrite.h"

#define MAX_BOUND_ELEMENTS 4096 /* of an input that is bound because its value decides a shape */

typedef struct stage {
    const char *name;
    ent_status (*run)(ent_pipeline *pipeline);
    const char *(*print)(ent_pipeline *pipeline);
} stage;

static const char *print_module(ent_pipeline *p) {
    return ent_module_print(p->module, p->arena);
}

static ent_status run_import(ent_pipeline *p) {
    ent_import_options options = ent_pipeline_import_options(p->request);
    ENT_TRY(ent_import_onnx(p->arena, p->request->model_path, &options, &p->module, &p->files));
    const ent_graph *main = ent_module_graph(p->module, 0);
    for (uint32_t i = 0; i < main->outputs.count; i++)
        ent_array_push(p->arena, &p->module->output_names,
                       ent_module_value(p->module, main->outputs.items[i])->name);
    return NULL;
}

/* By name, or by position as "#0" (for test folders, whose files are numbered). */
static uint32_t find_input(const ent_pipeline *p, const char *name) {
    const ent_graph *main = ent_module_graph(p->module, 0);
    for (uint32_t i = 0; i < main->inputs.count; i++)
        if (strcmp(ent_module_value(p->module, main->inputs.items[i])->name, name) == 0)
            return main->inputs.items[i];
    char *end = NULL;
    unsigned long position = name[0] == '#' ? strtoul(name + 1, &end, 10) : main->inputs.count;
    if (end && end != name + 1 && *end == 0 && position < main->inputs.count)
        return main->inputs.items[position];
    return ENT_ID_NONE;
}

static ent_status no_such_input(ent_pipeline *p, const char *flag, const char *name) {
    ent_text text;
    ent_text_init(&text, p->arena);
    const ent_graph *main = ent_module_graph(p->module, 0);
    for (uint32_t i = 0; i < main->inputs.count; i++)
        ent_text_add(&text, "%s%s", i ? ", " : "", ent_module_value(p->module, main->inputs.items[i])->name);
    return ent_status_make(p->arena, ENT_ERROR_USAGE, "bind.input", flag,
                           "the model has no input '%s'; it has: %s", name, text.data ? text.data : "none");
}

static ent_status set_ranges(ent_pipeline *p) {
    for (size_t i = 0; i < p->request->range_count; i++) {
        const entente_named_range *range = &p->request->ranges[i];
        ENT_TRY(ent_module_set_range(p->module, range->name, range->min, range->max, range->typical));
    }
    return NULL;
}

/* What is left open without a range is an error with a command line that would work. */
static ent_status refuse_open_symbols(ent_pipeline *p) {
    const ent_open_symbol *open = NULL;
    uint32_t count = ent_module_open_symbols(p->module, p->scratch, &open), listed = 0;
    ent_text list, fix;
    ent_text_init(&list, p->arena);
    ent_text_init(&fix, p->arena);
    for (uint32_t i = 0; i < count; i++) {
        const ent_symbol *symbol = &p->module->symbols.items[open[i].symbol];
        if (symbol->typical) continue;
        ent_text_add(&list, "%s'%s' (input %s, axis %u)", listed++ ? ", " : "", symbol->name,
                     ent_module_value(p->module, open[i].value)->name, open[i].axis);
        ent_text_add(&fix, " --dim '%s'=1", symbol->name);
    }
    if (listed == 0) return NULL;
    return ent_status_make(
        p->arena, ENT_ERROR_USAGE, "bind.open-symbol", p->request->model_path,
        "these dimensions are open: %s; give sizes, or ranges like 1..64 for a bundle that "
        "takes them all, for example: entente compile %s%s -o model.ent",
        list.data, p->request->model_path, fix.data);
}

/* Inputs whose values decide shapes become what the samples hold; that may lead to more of them. */
static ent_status bind_samples(ent_pipeline *p) {
    const entente_compile_request *r = p->request;
    for (bool bound = r->sample_count > 0; bound;) {
        const uint32_t *wanted = NULL;
        uint32_t count = ent_module_shape_inputs(p->module, p->scratch, MAX_BOUND_ELEMENTS, &wanted);
        bound = false;
        for (size_t i = 0; i < r->sample_count; i++) {
            uint32_t input = find_input(p, r->samples[i].input);
            for (uint32_t k = 0; k < count; k++) {
                if (wanted[k] != input) continue;
                ENT_TRY(ent_pipeline_bind_sample(p, input, &r->samples[i]));
                bound = true;
            }
        }
        if (bound) ENT_TRY(ent_module_infer(p->module, p->scratch));
    }
    return NULL;
}

static ent_status run_bind(ent_pipeline *p) {
    const entente_compile_request *r = p->request;
    ENT_TRY(set_ranges(p));
    for (size_t i = 0; i < r->shape_count; i++) {
        const char *flag = ent_arena_format(p->arena, "--shape %s", r->shapes[i].input);
        uint32_t value = find_input(p, r->shapes[i].input);
        if (value == ENT_ID_NONE) return no_such_input(p, flag, r->shapes[i].input);
        ENT_TRY(ent_module_set_input_shape(p->module, value, r->shapes[i].dims, (uint32_t)r->shapes[i].rank,
                                           flag));
    }
    for (size_t i = 0; i < r->constant_count; i++) {
        const char *flag = ent_arena_format(p->arena, "--const %s", r->constants[i].name);
        uint32_t value = find_input(p, r->constants[i].name);
        if (value == ENT_ID_NONE) return no_such_input(p, flag, r->constants[i].name);
        ENT_TRY(ent_pipeline_set_constant(p, value, r->constants[i].value, flag));
    }
    ent_binding *bindings = ent_arena_alloc(p->scratch, (r->dim_count + 1) * sizeof *bindings);
    for (size_t i = 0; i < r->dim_count; i++) bindings[i] = (ent_binding){r->dims[i].name, r->dims[i].value};
    ENT_TRY(ent_module_bind(p->module, bindings, (uint32_t)r->dim_count));
    ENT_TRY(ent_module_infer(p->module, p->scratch));
    ENT_TRY(bind_samples(p));
    ENT_TRY(refuse_open_symbols(p));
    return ent_pipeline_check_values(p);
}

static ent_status run_rewrite(ent_pipeline *p) {
    ent_rewrite_options options = {.strict =
                                       p->request->precision && strcmp(p->request->precision, "strict") == 0};
    ENT_TRY(ent_rewrite_run(p->module, &options, p->scratch));
    return ent_pipeline_check_values(
        p); /* an If that was folded away brings values whose sizes are known now */
}

/* Dropout in training draws numbers that no seed fixes. */
static ent_status refuse_dropout(ent_pipeline *p, const ent_node *node) {
    double number = 1;
    bool trains = node->input_count > 2 && node->inputs[2] != ENT_ID_NONE;
    trains = trains && !(ent_value_scalar(p->module, node->inputs[2], &number) && number == 0);
    number = 1;
    if (!trains || (node->inputs[1] != ENT_ID_NONE && ent_value_scalar(p->module, node->inputs[1], &number) &&
                    number == 0))
        return NULL;
    return ent_status_make(
        p->arena, ENT_ERROR_UNSUPPORTED, "operator.training",
        ent_arena_format(p->arena, "%s: node '%s' (Dropout)", p->request->model_path, node->name),
        "training_mode is true, or an input that is not bound, and the ratio is not 0: it draws "
        "random numbers; export the model for inference");
}

static ent_status refuse_attention(ent_pipeline *p, const ent_node *node) {
    return ent_status_make(
        p->arena, ENT_ERROR_UNSUPPORTED, "operator.shape",
        ent_arena_format(p->arena, "%s: node '%s' (FlexAttention)", p->request->model_path, node->name),
        "it is written out for float inputs of known shape, and these are not");
}

/* A loop that was neither written out nor runs as a step; the note says why it was not. */
static ent_status refuse_unsettled(ent_pipeline *p) {
    for (uint32_t g = 0; g < p->module->graphs.count; g++) {
        uint32_t at = 0, id;
        while (ent_graph_next(p->module, g, &at, &id)) {
            const ent_node *node = ent_module_node(p->module, id);
            if (node->op == ENT_OP_Dropout) ENT_TRY(refuse_dropout(p, node));
            if (node->op == ENT_OP_FlexAttention) return refuse_attention(p, node);
            if (node->op != ENT_OP_Loop && node->op != ENT_OP_Scan) continue;
            if (ent_module_loop_is_settled(p->module, id)) continue;
            const char *why = "its iterations are known only at run time",
                       *start = ent_arena_format(p->arena, "'%s' (", node->name);
            for (uint32_t i = 0; i < p->module->notes.count; i++)
                if (strncmp(p->module->notes.items[i], start, strlen(start)) == 0)
                    why = p->module->notes.items[i];
            return ent_status_make(
                p->arena, ENT_ERROR_UNSUPPORTED, "loop.open",
                ent_arena_format(p->arena, "%s: node '%s' (%s)", p->request->model_path, node->name,
                                 ent_op_info_get(node->op)->name),
                "a loop is written out, or has no scan outputs and states that keep a static shape: %s", why);
        }
    }
    return NULL;
}

static ent_status run_freeze(ent_pipeline *p) {
    ENT_TRY(refuse_unsettled(p));
    return ent_module_freeze(p->module, p->scratch);
}

static ent_status run_negotiate(ent_pipeline *p) {
    p->session.module = p->module;
    p->session.arena = p->arena;
    p->session.deadline_ns = ent_arena_deadline_ns(p->arena);
    p->session.transcript = p->request->transcript_path ? ent_transcript_create(p->arena) : NULL;
    return ent_negotiate_offers(&p->session);
}

static const char *print_offers(ent_pipeline *p) {
    return ent_negotiate_print(&p->session, p->arena);
}

/* Selects and awards until nothing is refused. Each round withdraws at least one offer, so there are at most
 * as many as offers. */
static ent_status run_plan(ent_pipeline *p) {
    for (;;) {
        ENT_TRY(ent_arena_check(p->arena, ""));
        ENT_TRY(ent_plan_make(&p->session, &p->plan_options, p->arena, &p->plan));
        uint32_t refused = 0;
        ENT_TRY(ent_negotiate_award(&p->session, p->plan.regions, p->plan.region_count, &refused));
        if (refused == 0) break;
    }
    return NULL;
}

static const char *print_plan(ent_pipeline *p) {
    return ent_plan_print(&p->plan, p->arena);
}

/* A plugin whose compile fails loses that offer, and the plan is made anew; with no cover left its failure is
 * the error. */
static ent_status run_lower(ent_pipeline *p) {
    for (;;) {
        ENT_TRY(ent_arena_check(p->arena, ""));
        ENT_TRY(ent_lower_program(&p->plan, p->arena, &p->lowered));
        if (p->lowered.program) {
            p->plan_json = p->lowered.program->plan_json;
            return NULL;
        }
        const char *why = p->lowered.failure;
        uint32_t failed = p->lowered.failed_offer;
        ent_status broken =
            ent_status_make(p->arena, ENT_ERROR_DEVICE, "plugin.compile", p->request->model_path, "%s", why);
        if (failed == ENT_PROGRAM_NONE) return broken;
        p->session.offers.items[failed].withdrawn = ent_arena_format(p->arena, "compile failed: %s", why);
        uint32_t device = p->session.offers.items[failed].device;
        ent_transcript_add_note(p->session.transcript, p->session.devices[device].name, "compile.failed",
                                why);
        ent_status status = run_plan(p);
        if (status) return status->code == ENT_ERROR_UNSUPPORTED ? broken : status;
    }
}

static const char *print_program(ent_pipeline *p) {
    return ent_program_print(p->lowered.program, p->arena);
}

static ent_status run_save(ent_pipeline *p) {
    if (p->request->transcript_path) {
        size_t size = 0;
        const char *text = ent_transcript_text(p->session.transcript, &size);
        ent_file_chunk chunk = {text, size};
        ENT_TRY(ent_file_write_atomic(p->arena, p->request->transcript_path, &chunk, 1));
    }
    if (!p->request->output_path) return NULL;
    return ent_program_save(p->lowered.program, p->arena, p->request->output_path);
}

static const stage stages[] = {
    {"import", run_import, print_module},
    {"bind", run_bind, print_module},
    {"rewrite", run_rewrite, print_module},
    {"freeze", run_freeze, print_module},
    {"devices", ent_pipeline_open_devices, ent_pipeline_print_devices},
    {"negotiate", run_negotiate, print_offers},
    {"plan", run_plan, print_plan},
    {"lower", run_lower, print_program},
    {"save", run_save, NULL},
};
#define STAGE_COUNT (sizeof stages / sizeof stages[0])

const char *const *ent_pipeline_stages(void) {
    static const char *names[STAGE_COUNT + 1];
    for (size_t i = 0; i < STAGE_COUNT; i++) names[i] = stages[i].name;
    return names;
}

static ent_status dump(ent_pipeline *p, size_t index) {
    if (!p->request->dump_dir || !stages[index].print) return NULL;
    const char *text = stages[index].print(p);
    ent_file_chunk chunk = {text, strlen(text)};
    return ent_file_write_atomic(
        p->arena,
        ent_arena_format(p->arena, "%s/%zu-%s.txt", p->request->dump_dir, index, stages[index].name), &chunk,
        1);
}

static ent_status check_stop(const ent_pipeline *p) {
    if (!p->request->stop_after) return NULL;
    ent_text names;
    ent_text_init(&names, p->arena);
    for (size_t i = 0; i < STAGE_COUNT; i++) {
        if (strcmp(stages[i].name, p->request->stop_after) == 0) return NULL;
        ent_text_add(&names, " %s", stages[i].name);
    }
    return ent_status_make(p->arena, ENT_ERROR_USAGE, "stage.unknown", "--stage",
                           "there is no stage '%s'; stages are:%s", p->request->stop_after, names.data);
}

ent_status ent_pipeline_run(ent_pipeline *p) {
    ENT_TRY(check_stop(p));
    for (size_t i = 0; i < STAGE_COUNT; i++) {
        if (p->request->progress)
            p->request->progress(p->request->context, stages[i].name, (double)i / STAGE_COUNT);
        uint64_t start = ent_time_ns();
        ent_arena_mark mark = ent_arena_save(p->scratch);
        ent_status status = stages[i].run(p);
        ent_status over = ent_arena_check(p->arena, "");
        /* Whatever else failed, failed with memory or time run out. */
        if (over && (!status || status->code != ENT_ERROR_LIMIT)) status = over;
        if (status) return ent_pipeline_explain_limit(p, status, stages[i].name);
        ent_arena_restore(p->scratch, mark);
        ent_log(ENT_LOG_INFO, "stage %s: %.1f ms", stages[i].name, (double)(ent_time_ns() - start) / 1e6);
        ENT_TRY(dump(p, i));
        if (p->request->stop_after && strcmp(stages[i].name, p->request->stop_after) == 0) {
            p->stage_text = stages[i].print ? stages[i].print(p) : "";
            return NULL;
        }
    }
    return NULL;
}
