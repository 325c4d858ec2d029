/* include/entente/entente.h on top of runtime.h. */
#include "core/runtime/api.h"

#include <stdlib.h>
#include <string.h>

#ifndef ENTENTE_VERSION
#define ENTENTE_VERSION "0.1.0"
#endif

_Static_assert(ENTENTE_F32 == (int)ENT_DTYPE_F32 && ENTENTE_C128 == (int)ENT_DTYPE_C128,
               "public dtypes are the ABI's");
_Static_assert(ENTENTE_MAX_RANK == ENT_MAX_RANK, "public rank is the ABI's");
_Static_assert(ENTENTE_INTERNAL == (int)ENT_ERROR_INTERNAL, "public codes are the core's");

int ent_runtime_api_fail(entente_error *error, int code, const char *rule, const char *place,
                         const char *text) {
    if (error) {
        error->code = code;
        snprintf(error->rule, sizeof error->rule, "%s", rule);
        snprintf(error->place, sizeof error->place, "%s", place);
        snprintf(error->text, sizeof error->text, "%s", text);
    }
    return code;
}

int ent_runtime_api_status(entente_error *error, ent_status status) {
    if (!status) return ENTENTE_OK;
    return ent_runtime_api_fail(error, (int)status->code, status->rule, status->place, status->text);
}

static int out_of_memory(entente_error *error) {
    return ent_runtime_api_status(error, ent_status_out_of_memory());
}

void entente_set_log_level(int level) {
    ent_log_set_level(level < ENT_LOG_ERROR   ? ENT_LOG_ERROR
                      : level > ENT_LOG_DEBUG ? ENT_LOG_DEBUG
                                              : (ent_log_level)level);
}

const char *entente_version(void) {
    return ENTENTE_VERSION;
}

const char *entente_dtype_name(uint32_t dtype) {
    return ent_dtype_name((ent_dtype)dtype);
}

int entente_runtime_create(const entente_options *options, entente_runtime **out, entente_error *error) {
    entente_options own = {0};
    if (options) memcpy(&own, options, options->size < sizeof own ? options->size : sizeof own);
    *out = NULL;
    entente_runtime *runtime = calloc(1, sizeof *runtime);
    if (!runtime) return out_of_memory(error);
    runtime->arena = ent_arena_create(0);
    runtime->threads = own.threads;
    if (!runtime->arena || pthread_mutex_init(&runtime->mutex, NULL) != 0) {
        ent_arena_destroy(runtime->arena);
        free(runtime);
        return out_of_memory(error);
    }
    runtime->sink = (ent_log_sink){own.log, own.log_context};
    if (own.log) ent_log_set_sink(&runtime->sink);
    ent_host_options host = {.plugin_path = own.plugin_path};
    int code = ent_runtime_api_status(error, ent_host_scan(runtime->arena, &host, &runtime->registry));
    if (code)
        entente_runtime_destroy(runtime);
    else
        *out = runtime;
    return code;
}

void entente_runtime_destroy(entente_runtime *runtime) {
    if (!runtime) return;
    ent_host_close(runtime->registry);
    ent_log_clear_sink(&runtime->sink);
    pthread_mutex_destroy(&runtime->mutex);
    ent_arena_destroy(runtime->arena);
    free(runtime);
}

/* Plugins are loaded and devices opened under the lock: the registry is shared by all bundles. */
static ent_status load(entente_bundle *bundle, const char *path) {
    ENT_TRY(ent_bundle_open(bundle->arena, path, &bundle->file));
    ent_runtime_options options = {.threads = bundle->owner->threads};
    pthread_mutex_lock(&bundle->owner->mutex);
    ent_status status = ent_runtime_create(bundle->arena, bundle->owner->registry, bundle->file.program,
                                           &options, &bundle->runtime);
    pthread_mutex_unlock(&bundle->owner->mutex);
    ENT_TRY(status);
    const ent_program_function *f = &bundle->file.program->functions[0];
    bundle->inputs = ent_arena_array(bundle->arena, (size_t)f->input_count + 1, sizeof *bundle->inputs);
    bundle->outputs = ent_arena_array(bundle->arena, (size_t)f->output_count + 1, sizeof *bundle->outputs);
    return bundle->inputs && bundle->outputs ? NULL : ent_status_out_of_memory();
}

int entente_bundle_load(entente_runtime *runtime, const char *path, entente_bundle **out,
                        entente_error *error) {
    *out = NULL;
    entente_bundle *bundle = calloc(1, sizeof *bundle);
    if (!bundle) return out_of_memory(error);
    bundle->owner = runtime;
    bundle->arena = ent_arena_create(0);
    if (!bundle->arena) {
        free(bundle);
        return out_of_memory(error);
    }
    int code = ent_runtime_api_status(error, load(bundle, path));
    if (code)
        entente_bundle_close(bundle);
    else
        *out = bundle;
    return code;
}

void entente_bundle_close(entente_bundle *bundle) {
    if (!bundle) return;
    ent_runtime_api_stop_worker(bundle);
    pthread_mutex_lock(&bundle->owner->mutex);
    ent_runtime_destroy(bundle->runtime);
    pthread_mutex_unlock(&bundle->owner->mutex);
    ent_bundle_close(&bundle->file);
    ent_arena_destroy(bundle->arena);
    free(bundle);
}

/* ---- ports ---- */

static void describe(const ent_program *program, uint32_t value, entente_port *out) {
    const ent_program_value *v = &program->functions[0].values[value];
    memset(out, 0, sizeof *out);
    out->name = v->name;
    out->dtype = v->dtype;
    out->rank = v->rank;
    for (uint32_t d = 0; d < v->rank; d++) {
        out->symbols[d] = "";
        out->dims[d] = v->dims[d] >= 0 ? v->dims[d] : -1;
        if (v->dims[d] >= 0) continue;
        const ent_expr *e = &program->exprs[~v->dims[d]];
        if (e->kind == ENT_EXPR_SYMBOL) out->symbols[d] = program->symbols[e->a].name;
    }
}

size_t entente_input_count(const entente_bundle *bundle) {
    return bundle->file.program->functions[0].input_count;
}

size_t entente_output_count(const entente_bundle *bundle) {
    return bundle->file.program->functions[0].output_count;
}

int entente_input(const entente_bundle *bundle, size_t index, entente_port *out) {
    if (index >= entente_input_count(bundle)) return ENTENTE_USAGE;
    describe(bundle->file.program, bundle->file.program->functions[0].inputs[index], out);
    return ENTENTE_OK;
}

int entente_output(const entente_bundle *bundle, size_t index, entente_port *out) {
    if (index >= entente_output_count(bundle)) return ENTENTE_USAGE;
    describe(bundle->file.program, bundle->file.program->functions[0].outputs[index], out);
    return ENTENTE_OK;
}

int entente_input_value(const entente_bundle *bundle, size_t index, entente_tensor *out) {
    const ent_program *p = bundle->file.program;
    for (uint32_t i = 0; i < p->guard_count; i++) {
        if (p->guards[i].input != index) continue;
        const ent_program_constant *c = &p->constants[p->guards[i].constant];
        *out = (entente_tensor){(void *)(uintptr_t)c->data, c->size_bytes, c->dtype, c->rank, {0}};
        for (uint32_t d = 0; d < c->rank; d++) out->dims[d] = c->dims[d];
        return 1;
    }
    return 0;
}

/* ---- running ---- */

int ent_runtime_api_check_counts(const entente_bundle *bundle, size_t input_count, size_t output_count,
                                 entente_error *error) {
    if (input_count == entente_input_count(bundle) && output_count == entente_output_count(bundle))
        return ENTENTE_OK;
    char text[160];
    snprintf(text, sizeof text, "the bundle has %zu inputs and %zu outputs; %zu and %zu were given",
             entente_input_count(bundle), entente_output_count(bundle), input_count, output_count);
    return ent_runtime_api_fail(error, ENTENTE_USAGE, "run.counts", bundle->file.program->name, text);
}

static ent_tensor to_core(const entente_tensor *tensor) {
    ent_tensor t = {
        .data = tensor->data, .size_bytes = tensor->size_bytes, .dtype = tensor->dtype, .rank = tensor->rank};
    memcpy(t.dims, tensor->dims, sizeof t.dims);
    return t;
}

int ent_runtime_api_run(entente_bundle *bundle, const entente_tensor *inputs, entente_tensor *outputs,
                        entente_error *error) {
    size_t input_count = entente_input_count(bundle), output_count = entente_output_count(bundle);
    bundle->timings = NULL;
    for (size_t i = 0; i < input_count; i++) bundle->inputs[i] = to_core(&inputs[i]);
    for (size_t i = 0; i < output_count; i++) bundle->outputs[i] = to_core(&outputs[i]);
    ent_status status = ent_runtime_run(bundle->runtime, bundle->inputs, bundle->outputs);
    if (status) return ent_runtime_api_status(error, status);
    for (size_t i = 0; i < output_count; i++) {
        const ent_tensor *t = &bundle->outputs[i];
        outputs[i] = (entente_tensor){t->data, t->size_bytes, t->dtype, t->rank, {0}};
        memcpy(outputs[i].dims, t->dims, sizeof outputs[i].dims);
    }
    return ENTENTE_OK;
}

int entente_run(entente_bundle *bundle, const entente_tensor *inputs, size_t input_count,
                entente_tensor *outputs, size_t output_count, entente_error *error) {
    int code = ent_runtime_api_check_counts(bundle, input_count, output_count, error);
    return code ? code : ent_runtime_api_run(bundle, inputs, outputs, error);
}

/* ---- figures ---- */

int entente_set_profiling(entente_bundle *bundle, int enabled) {
    ent_runtime_set_profiling(bundle->runtime, enabled != 0);
    return ENTENTE_OK;
}

size_t entente_step_count(entente_bundle *bundle) {
    bundle->timings = ent_runtime_timings(bundle->runtime, &bundle->timing_count);
    return bundle->timing_count;
}

int entente_step_at(entente_bundle *bundle, size_t index, entente_step *out) {
    static const char *const tiers[] = {"none", "native", "tuned", "generic", "emulated"};
    if (index == 0 || !bundle->timings) entente_step_count(bundle);
    if (index >= bundle->timing_count) return ENTENTE_USAGE;
    const ent_runtime_timing *t = &bundle->timings[index];
    *out = (entente_step){
        t->function, t->name,         t->device,   t->path,  t->tier < 5 ? tiers[t->tier] : "none",
        t->region,   t->predicted_ns, t->begin_ns, t->end_ns};
    return ENTENTE_OK;
}

int entente_memory_used(entente_bundle *bundle, entente_memory *out, entente_error *error) {
    ent_runtime_memory memory;
    int code = ent_runtime_api_status(error, ent_runtime_memory_used(bundle->runtime, &memory));
    if (!code)
        *out = (entente_memory){memory.weights_bytes, memory.arena_bytes, memory.arena_lower_bound_bytes};
    return code;
}

const char *entente_plan_json(const entente_bundle *bundle, size_t *out_size) {
    if (out_size) *out_size = bundle->file.program->plan_json_bytes;
    return bundle->file.program->plan_json;
}
