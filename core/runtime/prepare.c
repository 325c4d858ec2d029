/* Flattens a program for one set of shapes: calls are expanded in place, branches become jumps over both
 * expansions, and steps are gathered into one submission per device for as long as nothing has to wait for
 * the host.
 *
 * What orders steps: within a device its queue is in order. Devices share nothing but through copies, which
 * run on the host between a wait for both sides; so do branches, for the condition. A dispatch that names a
 * step of another queue in its waits ends that queue's batch and waits for it too. */
#include "core/runtime/internal.h"

#include <string.h>

typedef struct storage {
    ent_buffer *buffer; /* NULL: comes from the slot */
    uint32_t slot;      /* NONE: fixed buffer */
    uint64_t offset_bytes, size_bytes;
} storage;

typedef ENT_ARRAY(uint32_t) step_list;

typedef struct builder {
    ent_runtime *rt;
    runtime_plan *plan;
    ent_arena *scratch;
    ent_program_value **values; /* by function: as planned for these shapes; NULL entry: the program's own */
    uint64_t *frames;           /* function * device_count + device */
    ENT_ARRAY(ent_step) steps;  /* in order of emission; bindings are indices until the end */
    ENT_ARRAY(uint32_t) step_bindings, step_records;
    ENT_ARRAY(ent_buffer_ref) bindings;
    ENT_ARRAY(uint32_t) slots; /* by binding */
    ENT_ARRAY(action) actions;
    ENT_ARRAY(record) records;
    ENT_ARRAY(uint32_t) order; /* emitted steps in order of submission */
    ENT_ARRAY(final_copy) finals;
    step_list *pending;  /* by device: emitted, not yet in a submission */
    uint64_t *peak;      /* by device */
    uint32_t expansions; /* of functions so far: empty functions make no steps, yet may call each other 2^64
                            times */
} builder;

/* One expansion of a function. */
typedef struct frame {
    uint32_t function;
    const ent_program_value *values;
    storage *storages; /* by value */
    uint64_t *base;    /* by device: where its frame starts */
} frame;

static ent_status broken(builder *b, const frame *f, uint32_t value, const char *text) {
    const ent_program_function *function = &b->rt->program->functions[f->function];
    return ent_status_make(b->rt->errors, ENT_ERROR_MODEL, "program.value.size",
                           ent_arena_format(b->rt->errors, "%s: function '%s': value %u '%s'",
                                            b->rt->program->name, function->name, value,
                                            function->values[value].name),
                           "%s", text);
}

static int64_t evaluate(const builder *b, ent_dim dim) {
    return ent_dim_value(dim, b->plan->exprs);
}

/* ---- memory: frames of these shapes ---- */

static bool has_frames(const ent_program *p, uint32_t device) {
    for (uint32_t f = 0; f < p->function_count; f++)
        if (!p->functions[f].arena_bytes || p->functions[f].arena_bytes[device] == ENT_PROGRAM_UNSET)
            return false;
    return true;
}

static ent_status copy_values(builder *b) {
    const ent_program *p = b->rt->program;
    for (uint32_t f = 0; f < p->function_count; f++) {
        b->values[f] =
            ent_arena_array(b->scratch, (size_t)p->functions[f].value_count + 1, sizeof **b->values);
        if (!b->values[f]) return ent_status_out_of_memory();
        if (p->functions[f].value_count)
            memcpy(b->values[f], p->functions[f].values, p->functions[f].value_count * sizeof **b->values);
    }
    return NULL;
}

static ent_status place_memory(builder *b) {
    const ent_program *p = b->rt->program;
    uint64_t *frames = ent_arena_array(b->scratch, p->function_count, sizeof *frames);
    if (!frames) return ent_status_out_of_memory();
    for (uint32_t d = 0; d < p->device_count; d++) {
        if (has_frames(p, d)) {
            for (uint32_t f = 0; f < p->function_count; f++) {
                int64_t bytes = evaluate(b, p->functions[f].arena_bytes[d]);
                if (bytes < 0)
                    return ent_status_make(b->rt->errors, ENT_ERROR_MODEL, "program.function.frame", p->name,
                                           "a frame has a negative size");
                b->frames[f * p->device_count + d] = (uint64_t)bytes;
            }
            continue;
        }
        ent_memory_result total;
        if (!b->values[0]) ENT_TRY(copy_values(b));
        ENT_TRY(ent_program_place(p, d, b->plan->exprs, b->scratch, b->values, frames, &total));
        for (uint32_t f = 0; f < p->function_count; f++) b->frames[f * p->device_count + d] = frames[f];
    }
    return NULL;
}

/* ---- storage of values ---- */

static ent_status check_size(builder *b, const frame *f, uint32_t index, uint64_t *out_bytes) {
    const ent_program_value *v = &f->values[index];
    int64_t dims[ENT_MAX_RANK] = {0}, size = evaluate(b, v->size_bytes);
    for (uint32_t d = 0; d < v->rank; d++) {
        dims[d] = evaluate(b, v->dims[d]);
        if (dims[d] < 0) return broken(b, f, index, "a dimension is negative for these shapes");
    }
    int64_t least =
        v->layout.kind == ENT_LAYOUT_STRIDED ? ent_layout_bytes(&v->layout, (ent_dtype)v->dtype, dims) : 0;
    if (size < 0 || least < 0 || least > size)
        return broken(b, f, index, "its size is too small for these shapes");
    *out_bytes = (uint64_t)size;
    return NULL;
}

static ent_status place_temporary(builder *b, const frame *f, uint32_t index, storage *out) {
    const ent_program_value *v = &f->values[index];
    uint64_t bytes = b->frames[f->function * b->rt->program->device_count + v->device];
    out->slot = runtime_arena_slot(b->rt, v->device);
    if (v->offset_bytes == ENT_PROGRAM_UNSET) return NULL; /* no step uses it: step_binding checks */
    int64_t offset = evaluate(b, v->offset_bytes);
    if (offset < 0 || offset % ENT_RUNTIME_ALIGNMENT != 0 || (uint64_t)offset > bytes ||
        out->size_bytes > bytes - (uint64_t)offset)
        return broken(b, f, index, "lies outside its function's frame for these shapes");
    out->offset_bytes = f->base[v->device] + (uint64_t)offset;
    return NULL;
}

/* Inputs and outputs have their storage from the arguments. */
static ent_status place_value(builder *b, const frame *f, uint32_t index) {
    const ent_program_value *v = &f->values[index];
    storage *s = &f->storages[index];
    uint64_t bytes = 0;
    ENT_TRY(check_size(b, f, index, &bytes));
    if (v->kind == ENT_VALUE_INPUT || v->kind == ENT_VALUE_OUTPUT)
        return s->size_bytes == bytes
                   ? NULL
                   : broken(b, f, index, "an argument has another size than the parameter for these shapes");
    if (v->kind == ENT_VALUE_ALIAS) return NULL; /* after all roots */
    *s = (storage){NULL, ENT_PROGRAM_NONE, 0, bytes};
    if (v->kind == ENT_VALUE_CONSTANT) return NULL; /* its buffer is made on first use */
    return place_temporary(b, f, index, s);
}

static ent_status place_alias(builder *b, const frame *f, uint32_t index) {
    uint64_t bytes = 0;
    ENT_TRY(check_size(b, f, index, &bytes));
    storage root = f->storages[ent_program_value_root(&b->rt->program->functions[f->function], index)];
    if (bytes > root.size_bytes)
        return broken(b, f, index, "is larger than the storage it shares for these shapes");
    root.size_bytes = bytes;
    f->storages[index] = root;
    return NULL;
}

static ent_status place_values(builder *b, const frame *f) {
    const ent_program_function *function = &b->rt->program->functions[f->function];
    for (uint32_t v = 0; v < function->value_count; v++) ENT_TRY(place_value(b, f, v));
    for (uint32_t v = 0; v < function->value_count; v++)
        if (f->values[v].kind == ENT_VALUE_ALIAS) ENT_TRY(place_alias(b, f, v));
    return NULL;
}

/* Storage of a value that a step uses. */
static ent_status use(builder *b, const frame *f, uint32_t value, storage *out) {
    const ent_program_function *function = &b->rt->program->functions[f->function];
    uint32_t root = ent_program_value_root(function, value);
    const ent_program_value *v = &f->values[root];
    *out = f->storages[value];
    if (v->kind == ENT_VALUE_TEMPORARY && v->offset_bytes == ENT_PROGRAM_UNSET)
        return broken(b, f, root, "is used but has no place in the frame");
    if (v->kind == ENT_VALUE_CONSTANT) return ent_runtime_constant(b->rt, v->device, v->index, &out->buffer);
    return NULL;
}

/* ---- emission ---- */

static uint32_t bind_storage(builder *b, const storage *s) {
    ent_buffer_ref ref = {s->buffer, s->offset_bytes, s->size_bytes};
    ent_array_push(b->plan->arena, &b->bindings, ref);
    ent_array_push(b->scratch, &b->slots, s->slot);
    return b->bindings.count - 1;
}

static uint32_t add_record(builder *b, uint32_t function, uint32_t step) {
    record r = {function, step};
    ent_array_push(b->plan->arena, &b->records, r);
    return b->records.count - 1;
}

static void flush(builder *b, uint32_t device) {
    step_list *pending = &b->pending[device];
    if (pending->count == 0) return;
    action submit = {
        .kind = ACTION_SUBMIT, .device = device, .first = b->order.count, .count = pending->count};
    for (uint32_t i = 0; i < pending->count; i++) ent_array_push(b->scratch, &b->order, pending->items[i]);
    pending->count = 0;
    ent_array_push(b->plan->arena, &b->actions, submit);
}

static void flush_all(builder *b) {
    for (uint32_t d = 0; d < b->rt->program->device_count; d++) flush(b, d);
}

static ent_status emit_step(builder *b, uint32_t device, ent_step step, uint32_t first_binding,
                            uint32_t recorded) {
    if (b->steps.count >= ENT_RUNTIME_MAX_STEPS)
        return ent_status_make(b->rt->errors, ENT_ERROR_LIMIT, "runtime.steps", b->rt->program->name,
                               "more than %u steps after expanding calls", ENT_RUNTIME_MAX_STEPS);
    ent_array_push(b->scratch, &b->pending[device], b->steps.count);
    ent_array_push(b->scratch, &b->steps, step);
    ent_array_push(b->scratch, &b->step_bindings, first_binding);
    ent_array_push(b->scratch, &b->step_records, recorded);
    return NULL;
}

static ent_status emit_copy(builder *b, uint32_t from_device, const storage *from, uint32_t to_device,
                            const storage *to, uint32_t recorded) {
    if (from->size_bytes != to->size_bytes)
        return ent_status_make(b->rt->errors, ENT_ERROR_MODEL, "program.step.copy", b->rt->program->name,
                               "source and destination of a copy differ in size for these shapes");
    uint32_t first = bind_storage(b, from);
    bind_storage(b, to);
    if (from_device == to_device) {
        ent_step step = {.kind = ENT_STEP_COPY, .binding_count = 2};
        return emit_step(b, from_device, step, first, recorded);
    }
    flush(b, from_device);
    flush(b, to_device);
    action copy = {.kind = ACTION_COPY,
                   .device = from_device,
                   .other_device = to_device,
                   .first = first,
                   .count = 2,
                   .record = recorded};
    ent_array_push(b->plan->arena, &b->actions, copy);
    return NULL;
}

static void emit_waits(builder *b, const ent_program_function *function, const ent_program_step *step) {
    for (uint32_t i = 0; i < step->wait_count; i++) {
        const ent_program_step *other = &function->steps[step->waits[i]];
        if (other->kind != ENT_PROGRAM_DISPATCH || other->device == step->device) continue;
        flush(b, other->device);
        flush(b, step->device);
        action wait = {.kind = ACTION_WAIT, .device = other->device};
        ent_array_push(b->plan->arena, &b->actions, wait);
    }
}

static ent_status emit_dispatch(builder *b, const frame *f, uint32_t index) {
    const ent_program_function *function = &b->rt->program->functions[f->function];
    const ent_program_step *step = &function->steps[index];
    uint32_t first = b->bindings.count;
    emit_waits(b, function, step);
    for (uint32_t i = 0; i < step->value_count; i++) {
        storage s;
        ENT_TRY(use(b, f, step->values[i], &s));
        bind_storage(b, &s);
    }
    ent_step abi = {.kind = ENT_STEP_DISPATCH,
                    .binding_count = step->value_count,
                    .kernel = b->rt->kernels[step->kernel],
                    .symbols = b->plan->symbols,
                    .symbol_count = b->rt->program->symbol_count};
    return emit_step(b, step->device, abi, first, add_record(b, f->function, index));
}

static ent_status emit_copy_step(builder *b, const frame *f, uint32_t index) {
    const ent_program_step *step = &b->rt->program->functions[f->function].steps[index];
    storage from, to;
    ENT_TRY(use(b, f, step->values[0], &from));
    ENT_TRY(use(b, f, step->values[1], &to));
    return emit_copy(b, f->values[step->values[0]].device, &from, f->values[step->values[1]].device, &to,
                     add_record(b, f->function, index));
}

static ent_status expand(builder *b, const frame *caller, uint32_t function, const storage *arguments);

static ent_status expand_call(builder *b, const frame *f, uint32_t callee, const uint32_t *values,
                              uint32_t count) {
    storage *arguments = ent_arena_array(b->scratch, (size_t)count + 1, sizeof *arguments);
    if (!arguments) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < count; i++) ENT_TRY(use(b, f, values[i], &arguments[i]));
    return expand(b, f, callee, arguments);
}

static ent_status expand_branch(builder *b, const frame *f, uint32_t index) {
    const ent_program_step *step = &b->rt->program->functions[f->function].steps[index];
    storage condition;
    ENT_TRY(use(b, f, step->condition, &condition));
    flush_all(b);
    uint32_t branch = b->actions.count;
    action a = {.kind = ACTION_BRANCH,
                .device = f->values[step->condition].device,
                .first = bind_storage(b, &condition),
                .count = 1};
    ent_array_push(b->plan->arena, &b->actions, a);
    ENT_TRY(expand_call(b, f, step->function[0], step->values, step->split));
    flush_all(b);
    uint32_t jump = b->actions.count;
    action over = {.kind = ACTION_JUMP};
    ent_array_push(b->plan->arena, &b->actions, over);
    b->actions.items[branch].target = b->actions.count;
    ENT_TRY(
        expand_call(b, f, step->function[1], step->values + step->split, step->value_count - step->split));
    flush_all(b);
    b->actions.items[jump].target = b->actions.count;
    return NULL;
}

/* The body once, between a test and a jump back to it. */
static ent_status expand_loop(builder *b, const frame *f, uint32_t index) {
    const ent_program_step *step = &b->rt->program->functions[f->function].steps[index];
    uint32_t inputs = b->rt->program->functions[step->function[0]].input_count, test;
    storage number, condition, trips;
    ENT_TRY(use(b, f, step->values[0], &number));
    ENT_TRY(use(b, f, step->values[1], &condition));
    flush_all(b);
    action begin = {
        .kind = ACTION_LOOP, .device = f->values[step->values[0]].device, .record = b->plan->counter_count++};
    if (step->trips != ENT_PROGRAM_NONE) {
        ENT_TRY(use(b, f, step->trips, &trips));
        begin.device = f->values[step->trips].device;
        begin.first = bind_storage(b, &trips);
        begin.count = 1;
    }
    ent_array_push(b->plan->arena, &b->actions, begin);
    action iterate = {.kind = ACTION_ITERATE,
                      .device = f->values[step->values[0]].device,
                      .first = bind_storage(b, &number),
                      .count = step->condition != ENT_PROGRAM_NONE ? 2 : 1,
                      .record = begin.record};
    bind_storage(b, &condition);
    test = b->actions.count;
    ent_array_push(b->plan->arena, &b->actions, iterate);
    ENT_TRY(expand_call(b, f, step->function[0], step->values, step->value_count));
    for (uint32_t i = 0; i <= step->split; i++) {
        storage from, to;
        ENT_TRY(use(b, f, step->values[inputs + i], &from));
        ENT_TRY(use(b, f, step->values[1 + i], &to));
        ENT_TRY(emit_copy(b, f->values[step->values[inputs + i]].device, &from,
                          f->values[step->values[1 + i]].device, &to, ENT_PROGRAM_NONE));
    }
    flush_all(b);
    action back = {.kind = ACTION_JUMP, .target = test};
    ent_array_push(b->plan->arena, &b->actions, back);
    b->actions.items[test].target = b->actions.count;
    return NULL;
}

static ent_status expand_steps(builder *b, const frame *f) {
    const ent_program_function *function = &b->rt->program->functions[f->function];
    for (uint32_t i = 0; i < function->step_count; i++) {
        const ent_program_step *step = &function->steps[i];
        switch (step->kind) {
        case ENT_PROGRAM_DISPATCH:
            ENT_TRY(emit_dispatch(b, f, i));
            break;
        case ENT_PROGRAM_COPY:
            ENT_TRY(emit_copy_step(b, f, i));
            break;
        case ENT_PROGRAM_CALL:
            ENT_TRY(expand_call(b, f, step->function[0], step->values, step->value_count));
            break;
        case ENT_PROGRAM_BRANCH:
            ENT_TRY(expand_branch(b, f, i));
            break;
        case ENT_PROGRAM_LOOP:
            ENT_TRY(expand_loop(b, f, i));
            break;
        default: /* verified */
            break;
        }
    }
    return NULL;
}

/* True if output `index` of the function is written in place: of kind OUTPUT and listed here for the first
 * time. */
static bool in_place(const ent_program_function *function, uint32_t index) {
    if (function->values[function->outputs[index]].kind != ENT_VALUE_OUTPUT) return false;
    for (uint32_t i = 0; i < index; i++)
        if (function->outputs[i] == function->outputs[index]) return false;
    return true;
}

/* Outputs that are other values get them at the end: from device storage to the argument, or for main to the
 * caller. */
static ent_status copy_outputs(builder *b, const frame *f, const storage *arguments, bool is_main) {
    const ent_program_function *function = &b->rt->program->functions[f->function];
    for (uint32_t i = 0; i < function->output_count; i++) {
        storage from;
        if (in_place(function, i)) continue;
        uint32_t value = function->outputs[i], device = f->values[value].device;
        ENT_TRY(use(b, f, value, &from));
        if (is_main) {
            final_copy copy = {bind_storage(b, &from), device, i};
            ent_array_push(b->plan->arena, &b->finals, copy);
            continue;
        }
        ENT_TRY(emit_copy(b, device, &from, device, &arguments[function->input_count + i], ENT_PROGRAM_NONE));
    }
    return NULL;
}

static uint64_t align_frame(uint64_t bytes) {
    return (bytes + ENT_RUNTIME_ALIGNMENT - 1) / ENT_RUNTIME_ALIGNMENT * ENT_RUNTIME_ALIGNMENT;
}

static ent_status open_frame(builder *b, const frame *caller, frame *f) {
    const ent_program *p = b->rt->program;
    for (uint32_t d = 0; d < p->device_count; d++) {
        uint64_t behind = caller ? b->frames[caller->function * p->device_count + d] : 0;
        f->base[d] = (caller ? caller->base[d] : 0) + align_frame(behind);
        uint64_t end = f->base[d] + b->frames[f->function * p->device_count + d];
        if (f->base[d] > INT64_MAX / 2 || end > INT64_MAX / 2)
            return ent_status_make(b->rt->errors, ENT_ERROR_LIMIT, "memory.size", p->name,
                                   "the frames need more than 2^62 bytes");
        if (end > b->peak[d]) b->peak[d] = end;
    }
    return NULL;
}

static ent_status expand(builder *b, const frame *caller, uint32_t index, const storage *arguments) {
    const ent_program *p = b->rt->program;
    const ent_program_function *function = &p->functions[index];
    frame f = {.function = index, .values = b->values[index] ? b->values[index] : function->values};
    f.storages = ent_arena_array(b->scratch, (size_t)function->value_count + 1, sizeof *f.storages);
    f.base = ent_arena_array(b->scratch, (size_t)p->device_count + 1, sizeof *f.base);
    if (!f.storages || !f.base) return ent_status_out_of_memory();
    if (++b->expansions > ENT_RUNTIME_MAX_CALLS)
        return ent_status_make(b->rt->errors, ENT_ERROR_LIMIT, "runtime.steps", p->name,
                               "more than %u calls after expanding them", ENT_RUNTIME_MAX_CALLS);
    for (uint32_t i = 0; i < function->input_count; i++) f.storages[function->inputs[i]] = arguments[i];
    for (uint32_t i = 0; i < function->output_count; i++)
        if (in_place(function, i)) f.storages[function->outputs[i]] = arguments[function->input_count + i];
    ENT_TRY(open_frame(b, caller, &f));
    ENT_TRY(place_values(b, &f));
    ENT_TRY(expand_steps(b, &f));
    return copy_outputs(b, &f, arguments, caller == NULL);
}

/* ---- main and the finished plan ---- */

/* Main's parameters are slots. */
static ent_status main_arguments(builder *b, storage **out) {
    const ent_program_function *f = runtime_main(b->rt);
    runtime_plan *plan = b->plan;
    uint32_t count = f->input_count + f->output_count;
    storage *arguments = ent_arena_array(b->scratch, (size_t)count + 1, sizeof *arguments);
    plan->input_bytes = ent_arena_array(plan->arena, (size_t)f->input_count + 1, sizeof *plan->input_bytes);
    plan->output_bytes =
        ent_arena_array(plan->arena, (size_t)f->output_count + 1, sizeof *plan->output_bytes);
    plan->output_dims = ent_arena_array(plan->arena, (size_t)f->output_count + 1, sizeof *plan->output_dims);
    if (!arguments || !plan->input_bytes || !plan->output_bytes || !plan->output_dims)
        return ent_status_out_of_memory();
    for (uint32_t i = 0; i < count; i++) {
        bool output = i >= f->input_count;
        const ent_program_value *v = &f->values[output ? f->outputs[i - f->input_count] : f->inputs[i]];
        uint64_t bytes = (uint64_t)evaluate(b, v->size_bytes);
        arguments[i] = (storage){NULL, i, 0, bytes};
        if (!output)
            plan->input_bytes[i] = bytes;
        else
            plan->output_bytes[i - f->input_count] = bytes;
        for (uint32_t d = 0; output && d < v->rank; d++)
            plan->output_dims[i - f->input_count][d] = evaluate(b, v->dims[d]);
    }
    *out = arguments;
    return NULL;
}

/* Bindings by slot, by counting. */
static ent_status list_patches(builder *b) {
    runtime_plan *plan = b->plan;
    uint32_t slots = b->rt->slot_count;
    plan->patch_first = ent_arena_array(plan->arena, (size_t)slots + 2, sizeof *plan->patch_first);
    plan->patches = ent_arena_array(plan->arena, (size_t)b->slots.count + 1, sizeof *plan->patches);
    plan->bound = ent_arena_array(plan->arena, (size_t)slots + 1, sizeof(ent_buffer *));
    if (!plan->patch_first || !plan->patches || !plan->bound) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < b->slots.count; i++)
        if (b->slots.items[i] != ENT_PROGRAM_NONE) plan->patch_first[b->slots.items[i] + 2]++;
    for (uint32_t s = 2; s < slots + 2; s++) plan->patch_first[s] += plan->patch_first[s - 1];
    for (uint32_t i = 0; i < b->slots.count; i++)
        if (b->slots.items[i] != ENT_PROGRAM_NONE)
            plan->patches[plan->patch_first[b->slots.items[i] + 1]++] = i;
    return NULL;
}

static ent_status finish(builder *b) {
    runtime_plan *plan = b->plan;
    uint32_t count = b->order.count;
    plan->steps = ent_arena_array(plan->arena, (size_t)count + 1, sizeof *plan->steps);
    plan->step_records = ent_arena_array(plan->arena, (size_t)count + 1, sizeof *plan->step_records);
    plan->timestamps =
        ent_arena_array(plan->arena, ((size_t)b->records.count + 1) * 2, sizeof *plan->timestamps);
    if (!plan->steps || !plan->step_records || !plan->timestamps) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t emitted = b->order.items[i];
        plan->steps[i] = b->steps.items[emitted];
        plan->steps[i].bindings = b->bindings.items + b->step_bindings.items[emitted];
        plan->step_records[i] = b->step_records.items[emitted];
    }
    plan->step_count = count;
    plan->bindings = b->bindings.items;
    plan->actions = b->actions.items, plan->action_count = b->actions.count;
    plan->records = b->records.items, plan->record_count = b->records.count;
    plan->finals = b->finals.items, plan->final_count = b->finals.count;
    plan->counters = ent_arena_array(plan->arena, (size_t)plan->counter_count + 1, sizeof *plan->counters);
    if (!plan->counters) return ent_status_out_of_memory();
    return list_patches(b);
}

static ent_status build(builder *b) {
    const ent_program *p = b->rt->program;
    storage *arguments = NULL;
    b->values = ent_arena_array(b->scratch, p->function_count, sizeof(ent_program_value *));
    b->frames =
        ent_arena_array(b->scratch, ((size_t)p->device_count + 1) * p->function_count, sizeof *b->frames);
    b->pending = ent_arena_array(b->scratch, (size_t)p->device_count + 1, sizeof *b->pending);
    b->peak = b->plan->arena_bytes =
        ent_arena_array(b->plan->arena, (size_t)p->device_count + 1, sizeof *b->peak);
    if (!b->values || !b->frames || !b->pending || !b->peak) return ent_status_out_of_memory();
    ENT_TRY(place_memory(b));
    ENT_TRY(main_arguments(b, &arguments));
    ENT_TRY(expand(b, NULL, 0, arguments));
    flush_all(b);
    return finish(b);
}

ent_status ent_runtime_prepare(ent_runtime *rt, runtime_plan *plan) {
    builder b = {.rt = rt, .plan = plan, .scratch = ent_arena_create(0)};
    if (!b.scratch) return ent_status_out_of_memory();
    ent_status status = build(&b);
    if (status)
        status = ent_status_make(rt->errors, status->code, ent_arena_strdup(rt->errors, status->rule),
                                 ent_arena_strdup(rt->errors, status->place), "%s", status->text);
    ent_arena_destroy(b.scratch);
    return status;
}
