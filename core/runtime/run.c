/* Walks the actions of a plan. A static program in the steady state does nothing else: no allocation, no
 * lookup. */
#include "core/runtime/internal.h"

#include <stdlib.h>
#include <string.h>

/* After a failure the fence carries the error for good: a fresh one lets the next run try again. */
static void reset_fences(ent_runtime *rt) {
    for (uint32_t i = 0; i < rt->program->device_count; i++) {
        runtime_device *d = &rt->devices[i];
        ent_fence *fence = NULL;
        if (d->submitted > d->waited) d->api->fence_wait(d->fence, d->submitted, UINT64_MAX);
        if (d->api->fence_create(d->host->device, &rt->call.call, 0, &fence) != ENT_OK || !fence) continue;
        d->api->fence_destroy(d->fence);
        d->fence = fence;
        d->submitted = d->waited = 0;
    }
}

static ent_status wait_for(ent_runtime *rt, uint32_t device) {
    runtime_device *d = &rt->devices[device];
    if (d->waited == d->submitted) return NULL;
    ent_code code = d->api->fence_wait(d->fence, d->submitted, UINT64_MAX);
    if (code != ENT_OK) return ent_runtime_device_status(rt, device, code, "run");
    d->waited = d->submitted;
    return NULL;
}

static ent_status submit(ent_runtime *rt, const runtime_plan *plan, const action *a) {
    runtime_device *d = &rt->devices[a->device];
    ent_fence_point before = {d->fence, d->submitted}, after = {d->fence, d->submitted + 1};
    ent_submit message = {.head = {sizeof message, ENT_STRUCT_SUBMIT, NULL},
                          .waits = &before,
                          .wait_count = d->submitted > d->waited,
                          .steps = plan->steps + a->first,
                          .step_count = a->count,
                          .signals = &after,
                          .signal_count = 1};
    ent_code code = d->api->submit(d->queue, &rt->call.call, &message);
    if (code != ENT_OK) return ent_runtime_device_status(rt, a->device, code, "submit");
    d->submitted++;
    return NULL;
}

/* Between two devices, through the address of one side where there is one, else through memory of our own. */
static ent_status copy_between(ent_runtime *rt, runtime_plan *plan, const action *a) {
    const ent_buffer_ref *from = &plan->bindings[a->first], *to = &plan->bindings[a->first + 1];
    const ent_runtime_v1 *source = rt->devices[a->device].api, *target = rt->devices[a->other_device].api;
    uint64_t begin = rt->profiling ? ent_time_ns() : 0;
    ENT_TRY(wait_for(rt, a->device));
    ENT_TRY(wait_for(rt, a->other_device));
    uint8_t *mapped_target = from->size_bytes && target->buffer_map ? target->buffer_map(to->buffer) : NULL;
    uint8_t *mapped_source = from->size_bytes && source->buffer_map ? source->buffer_map(from->buffer) : NULL;
    ent_status status;
    if (mapped_target) {
        status = ent_runtime_read(rt, a->device, from, mapped_target + to->offset_bytes, from->size_bytes);
    } else if (mapped_source) {
        status =
            ent_runtime_write(rt, a->other_device, to, mapped_source + from->offset_bytes, from->size_bytes);
    } else {
        void *between = malloc(from->size_bytes + 1);
        if (!between) return ent_status_out_of_memory();
        status = ent_runtime_read(rt, a->device, from, between, from->size_bytes);
        if (!status) status = ent_runtime_write(rt, a->other_device, to, between, from->size_bytes);
        free(between);
    }
    if (rt->profiling && a->record != ENT_PROGRAM_NONE) {
        plan->timestamps[2 * a->record] = begin;
        plan->timestamps[2 * a->record + 1] = ent_time_ns();
    }
    return status;
}

static ent_status read_condition(ent_runtime *rt, const runtime_plan *plan, const action *a, bool *out) {
    uint8_t byte = 0;
    ENT_TRY(wait_for(rt, a->device));
    ENT_TRY(ent_runtime_read(rt, a->device, &plan->bindings[a->first], &byte, 1));
    *out = byte != 0;
    return NULL;
}

static ent_status begin_loop(ent_runtime *rt, const runtime_plan *plan, const action *a) {
    loop_counter *counter = &plan->counters[a->record];
    *counter = (loop_counter){0, INT64_MAX};
    if (a->count == 0) return NULL;
    ENT_TRY(wait_for(rt, a->device));
    return ent_runtime_read(rt, a->device, &plan->bindings[a->first], &counter->end, sizeof counter->end);
}

static ent_status iterate(ent_runtime *rt, const runtime_plan *plan, const action *a, bool *out) {
    loop_counter *counter = &plan->counters[a->record];
    uint8_t condition = 1;
    ENT_TRY(wait_for(rt, a->device));
    if (a->count > 1)
        ENT_TRY(ent_runtime_read(rt, a->device, &plan->bindings[a->first + 1], &condition, 1));
    else if (counter->at == 0)
        ENT_TRY(ent_runtime_write(rt, a->device, &plan->bindings[a->first + 1], &condition, 1));
    *out = condition != 0 && counter->at < counter->end;
    if (!*out) return NULL;
    int64_t number = counter->at++;
    return ent_runtime_write(rt, a->device, &plan->bindings[a->first], &number, sizeof number);
}

static ent_status walk(ent_runtime *rt, runtime_plan *plan) {
    for (uint32_t i = 0; i < plan->action_count;) {
        const action *a = &plan->actions[i++];
        bool taken = true;
        switch (a->kind) {
        case ACTION_SUBMIT:
            ENT_TRY(submit(rt, plan, a));
            break;
        case ACTION_COPY:
            ENT_TRY(copy_between(rt, plan, a));
            break;
        case ACTION_WAIT:
            ENT_TRY(wait_for(rt, a->device));
            break;
        case ACTION_JUMP:
            i = a->target;
            break;
        case ACTION_BRANCH:
            ENT_TRY(read_condition(rt, plan, a, &taken));
            if (!taken) i = a->target;
            break;
        case ACTION_LOOP:
            ENT_TRY(begin_loop(rt, plan, a));
            break;
        case ACTION_ITERATE:
            ENT_TRY(iterate(rt, plan, a, &taken));
            if (!taken) i = a->target;
            break;
        }
    }
    for (uint32_t d = 0; d < rt->program->device_count; d++) ENT_TRY(wait_for(rt, d));
    return NULL;
}

/* Steps carry the address of their timestamps only while profiling is on. */
static void attach_timestamps(const ent_runtime *rt, runtime_plan *plan) {
    if (plan->step_count == 0) return;
    for (uint32_t i = 0; i < plan->step_count; i++)
        plan->steps[i].timestamps = rt->profiling && plan->step_records[i] != ENT_PROGRAM_NONE
                                        ? &plan->timestamps[2 * (size_t)plan->step_records[i]]
                                        : NULL;
}

static ent_status run(ent_runtime *rt, const ent_tensor *inputs, ent_tensor *outputs) {
    runtime_plan *plan = NULL;
    ENT_TRY(ent_runtime_choose_plan(rt, inputs, &plan));
    ENT_TRY(ent_runtime_bind(rt, plan, inputs, outputs));
    ENT_TRY(ent_runtime_check_guards(rt, inputs));
    if (plan->profiled != rt->profiling) {
        attach_timestamps(rt, plan);
        plan->profiled = rt->profiling;
    }
    if (rt->profiling) memset(plan->timestamps, 0, 2 * (size_t)plan->record_count * sizeof *plan->timestamps);
    rt->current = plan;
    ent_status status = walk(rt, plan);
    if (!status) return ent_runtime_return_outputs(rt, plan, outputs);
    reset_fences(rt);
    return status;
}

ent_status ent_runtime_run(ent_runtime *rt, const ent_tensor *inputs, ent_tensor *outputs) {
    ent_arena_restore(rt->errors, rt->errors_start);
    rt->call.failure = NULL;
    return run(rt, inputs, outputs);
}

void ent_runtime_set_profiling(ent_runtime *rt, bool enabled) {
    rt->profiling = enabled;
}

static ent_runtime_timing make_timing(const ent_runtime *rt, const runtime_plan *plan, uint32_t index) {
    const ent_program *p = rt->program;
    const record *r = &plan->records[index];
    const ent_program_step *step = &p->functions[r->function].steps[r->step];
    ent_runtime_timing t = {.function = p->functions[r->function].name,
                            .name = step->name,
                            .device = p->devices[step->device].name,
                            .region = step->region,
                            .path = "",
                            .predicted_ns = step->predicted_ns,
                            .begin_ns = plan->timestamps[2 * (size_t)index],
                            .end_ns = plan->timestamps[2 * (size_t)index + 1]};
    if (step->kind == ENT_PROGRAM_DISPATCH) {
        t.tier = rt->kernel_infos[step->kernel].tier;
        t.path = rt->kernel_infos[step->kernel].path;
    }
    return t;
}

const ent_runtime_timing *ent_runtime_timings(ent_runtime *rt, uint32_t *out_count) {
    const runtime_plan *plan = rt->current;
    *out_count = 0;
    if (!plan || !plan->profiled || plan->record_count == 0) return NULL;
    if (rt->timing_capacity < plan->record_count) {
        ent_runtime_timing *room = realloc(rt->timings, plan->record_count * sizeof *room);
        if (!room) return NULL;
        rt->timings = room;
        rt->timing_capacity = plan->record_count;
    }
    for (uint32_t i = 0; i < plan->record_count; i++) rt->timings[i] = make_timing(rt, plan, i);
    *out_count = plan->record_count;
    return rt->timings;
}

static uint64_t weights_bytes(const ent_program *p, ent_arena *scratch) {
    ent_map *seen = ent_map_create(scratch);
    uint64_t total = 0;
    for (uint32_t i = 0; i < p->constant_count; i++) {
        uint64_t key = (uint64_t)(uintptr_t)p->constants[i].data, known = 0;
        if (p->constants[i].size_bytes == 0 ||
            (ent_map_find_u64(seen, key, &known) && known >= p->constants[i].size_bytes))
            continue;
        total += p->constants[i].size_bytes - known;
        ent_map_set_u64(seen, key, p->constants[i].size_bytes);
    }
    return total;
}

/* The bound is not in the bundle: it costs a placement, so only who asks pays. */
static ent_status lower_bound(const ent_runtime *rt, const runtime_plan *plan, ent_arena *scratch,
                              uint64_t *out) {
    const ent_program *p = rt->program;
    ent_program_value **values = ent_arena_array(scratch, p->function_count, sizeof(ent_program_value *));
    uint64_t *frames = ent_arena_array(scratch, p->function_count, sizeof *frames);
    if (!values || !frames) return ent_status_out_of_memory();
    for (uint32_t f = 0; f < p->function_count; f++) {
        values[f] = ent_arena_array(scratch, (size_t)p->functions[f].value_count + 1, sizeof **values);
        if (!values[f]) return ent_status_out_of_memory();
    }
    for (uint32_t d = 0; d < p->device_count; d++) {
        ent_memory_result total;
        ENT_TRY(ent_program_place(p, d, plan->exprs, scratch, values, frames, &total));
        *out += total.lower_bound_bytes;
    }
    return NULL;
}

ent_status ent_runtime_memory_used(ent_runtime *rt, ent_runtime_memory *out) {
    const runtime_plan *plan = rt->current ? rt->current : rt->plans[0];
    ent_arena_restore(rt->errors, rt->errors_start);
    *out = (ent_runtime_memory){.weights_bytes = weights_bytes(rt->program, rt->errors)};
    for (uint32_t d = 0; d < rt->program->device_count; d++) out->arena_bytes += rt->devices[d].arena_bytes;
    return plan ? lower_bound(rt, plan, rt->errors, &out->arena_lower_bound_bytes) : NULL;
}
