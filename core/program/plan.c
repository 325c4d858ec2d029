/* Lifetimes of temporaries and the memory plan of a whole program.
 *
 * A frame is what one function needs on one device. Frames of callees lie behind the caller's, so that they
 * can be planned apart from each other and a branch costs the larger of its two sides. The lower bound knows
 * nothing of frames: at each call it adds what the callee needs at least to what is alive there. */
#include "core/program/internal.h"

#include <string.h>

#define FRAME_ALIGNMENT 64u

static void touch(ent_memory_item *items, const ent_program_function *f, uint32_t value, uint32_t step,
                  uint8_t *touched) {
    uint32_t root = ent_program_value_root(f, value);
    if (!touched[root]) items[root].first = step;
    touched[root] = 1;
    items[root].last = step;
}

ent_status ent_program_lifetimes(const ent_program *program, uint32_t function, uint32_t device,
                                 const int64_t *expr_values, ent_arena *arena, ent_memory_item **out_items,
                                 uint32_t **out_value_ids, uint32_t *out_count) {
    const ent_program_function *f = &program->functions[function];
    ent_memory_item *items = ent_arena_array(arena, (size_t)f->value_count + 1, sizeof *items);
    uint32_t *ids = ent_arena_array(arena, (size_t)f->value_count + 1, sizeof *ids);
    uint8_t *touched = ent_arena_array(arena, (size_t)f->value_count + 1, 1);
    if (!items || !ids || !touched) return ent_status_out_of_memory();
    for (uint32_t s = 0; s < f->step_count; s++) {
        const ent_program_step *step = &f->steps[s];
        for (uint32_t i = 0; i < step->value_count; i++) touch(items, f, step->values[i], s, touched);
        if (step->kind == ENT_PROGRAM_BRANCH) touch(items, f, step->condition, s, touched);
        if (step->kind == ENT_PROGRAM_LOOP && step->trips != ENT_PROGRAM_NONE)
            touch(items, f, step->trips, s, touched);
    }
    /* A result that is not in the caller's storage is copied there after the last step. */
    for (uint32_t i = 0; i < f->output_count && f->step_count; i++)
        touch(items, f, f->outputs[i], f->step_count - 1, touched);
    uint32_t count = 0;
    for (uint32_t v = 0; v < f->value_count; v++) {
        const ent_program_value *value = &f->values[v];
        if (!touched[v] || value->kind != ENT_VALUE_TEMPORARY || value->device != device) continue;
        int64_t size = ent_dim_is_const(value->size_bytes) || expr_values
                           ? ent_dim_value(value->size_bytes, expr_values)
                           : -1;
        if (size < 0)
            return ent_status_make(arena, ENT_ERROR_MODEL, "program.value.size",
                                   ent_arena_format(arena, "%s: function '%s': value %u '%s'", program->name,
                                                    f->name, v, value->name),
                                   "its size is negative for these dimensions");
        items[count] = (ent_memory_item){items[v].first, items[v].last, (uint64_t)size, 0};
        ids[count++] = v;
    }
    *out_items = items;
    *out_value_ids = ids;
    *out_count = count;
    return NULL;
}

static void order_from(const ent_program *program, uint32_t function, uint8_t *seen, uint32_t *order,
                       uint32_t *count) {
    if (seen[function]) return;
    seen[function] = 1;
    for (uint32_t s = 0; s < program->functions[function].step_count; s++) {
        uint32_t callees[2],
            callee_count = ent_program_step_callees(&program->functions[function].steps[s], callees);
        for (uint32_t k = 0; k < callee_count; k++) order_from(program, callees[k], seen, order, count);
    }
    order[(*count)++] = function;
}

uint32_t *ent_program_callee_order(const ent_program *program, ent_arena *arena) {
    uint32_t *order = ent_arena_array(arena, program->function_count, sizeof *order), count = 0;
    uint8_t *seen = ent_arena_array(arena, program->function_count, 1);
    if (!order || !seen) return NULL;
    for (uint32_t i = 0; i < program->function_count; i++) order_from(program, i, seen, order, &count);
    return order;
}

/* What is alive at each step, by a difference array; sizes as the placement rounds them. */
static uint64_t *live_bytes(ent_arena *scratch, const ent_memory_item *items, uint32_t count,
                            uint32_t step_count) {
    uint64_t *live = ent_arena_array(scratch, (size_t)step_count + 2, sizeof *live);
    if (!live) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t size = ent_program_align(items[i].size_bytes, FRAME_ALIGNMENT);
        live[items[i].first] += size;
        live[items[i].last + 1] -= size;
    }
    for (uint32_t s = 1; s < step_count; s++) live[s] += live[s - 1];
    return live;
}

/* Totals of one function with everything it calls, from its own frame and its callees' totals. */
static ent_status total_of(const ent_program *program, uint32_t function, uint64_t frame,
                           const uint64_t *live, ent_memory_result *totals, ent_arena *arena) {
    const ent_program_function *f = &program->functions[function];
    uint64_t behind = 0, bound = 0;
    for (uint32_t s = 0; s < f->step_count; s++) {
        uint32_t callees[2], count = ent_program_step_callees(&f->steps[s], callees);
        uint64_t inner_bound = 0;
        for (uint32_t k = 0; k < count; k++) {
            const ent_memory_result *inner = &totals[callees[k]];
            if (inner->peak_bytes > behind) behind = inner->peak_bytes;
            if (inner->lower_bound_bytes > inner_bound) inner_bound = inner->lower_bound_bytes;
        }
        if (live[s] + inner_bound > bound) bound = live[s] + inner_bound;
    }
    if (frame > INT64_MAX / 2 || behind > INT64_MAX / 2 - frame)
        return ent_status_make(arena, ENT_ERROR_LIMIT, "memory.size", program->name,
                               "nested frames need more than 2^62 bytes");
    totals[function] = (ent_memory_result){frame + behind, bound};
    return NULL;
}

static ent_status place_function(const ent_program *program, uint32_t function, uint32_t device,
                                 const int64_t *expr_values, ent_arena *scratch, ent_program_value *values,
                                 uint64_t *out_frame, uint64_t **out_live) {
    ent_memory_item *items = NULL;
    uint32_t *ids = NULL, count = 0;
    ent_memory_result result;
    ENT_TRY(ent_program_lifetimes(program, function, device, expr_values, scratch, &items, &ids, &count));
    ENT_TRY(ent_memory_place(scratch, items, count, FRAME_ALIGNMENT, &result));
    for (uint32_t i = 0; i < count; i++) values[ids[i]].offset_bytes = (ent_dim)items[i].offset_bytes;
    *out_frame = result.peak_bytes;
    *out_live = live_bytes(scratch, items, count, program->functions[function].step_count);
    return *out_live ? NULL : ent_status_out_of_memory();
}

ent_status ent_program_place(const ent_program *program, uint32_t device, const int64_t *expr_values,
                             ent_arena *arena, ent_program_value *const *values, uint64_t *out_frames,
                             ent_memory_result *out_total) {
    ent_memory_result *totals = ent_arena_array(arena, program->function_count, sizeof *totals);
    uint32_t *order = ent_program_callee_order(program, arena);
    if (!totals || !order) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < program->function_count; i++) {
        uint32_t f = order[i];
        uint64_t *live = NULL;
        ENT_TRY(place_function(program, f, device, expr_values, arena, values[f], &out_frames[f], &live));
        ENT_TRY(total_of(program, f, out_frames[f], live, totals, arena));
    }
    *out_total = totals[0];
    return NULL;
}

bool ent_program_is_static(const ent_program *program, uint32_t device) {
    for (uint32_t i = 0; i < program->function_count; i++)
        for (uint32_t v = 0; v < program->functions[i].value_count; v++) {
            const ent_program_value *value = &program->functions[i].values[v];
            if (value->kind == ENT_VALUE_TEMPORARY && value->device == device && value->size_bytes < 0)
                return false;
        }
    return true;
}

/* The program's functions and values, copied so that the plan can write into them. */
static ent_status open_for_writing(ent_program *program, ent_arena *arena, ent_program_value ***out_values,
                                   ent_dim ***out_frames) {
    uint32_t count = program->function_count, devices = program->device_count;
    ent_program_function *functions = ent_arena_array(arena, count, sizeof *functions);
    ent_program_value **values = ent_arena_array(arena, count, sizeof *values);
    ent_dim **frames = ent_arena_array(arena, count, sizeof *frames);
    if (!functions || !values || !frames) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < count; i++) {
        functions[i] = program->functions[i];
        values[i] = ent_arena_array(arena, (size_t)functions[i].value_count + 1, sizeof **values);
        frames[i] = ent_arena_array(arena, (size_t)devices + 1, sizeof **frames);
        if (!values[i] || !frames[i]) return ent_status_out_of_memory();
        if (functions[i].value_count)
            memcpy(values[i], functions[i].values, functions[i].value_count * sizeof **values);
        for (uint32_t v = 0; v < functions[i].value_count; v++) values[i][v].offset_bytes = ENT_PROGRAM_UNSET;
        functions[i].values = values[i];
        functions[i].arena_bytes = frames[i];
    }
    program->functions = functions;
    *out_values = values;
    *out_frames = frames;
    return NULL;
}

ent_status ent_program_plan_memory(ent_program *program, ent_arena *arena, ent_memory_result *out_total) {
    ent_program_value **values = NULL;
    ent_dim **frames = NULL;
    ENT_TRY(open_for_writing(program, arena, &values, &frames));
    ent_memory_result total = {0, 0};
    uint64_t *sizes = ent_arena_array(arena, program->function_count, sizeof *sizes);
    if (!sizes) return ent_status_out_of_memory();
    for (uint32_t d = 0; d < program->device_count; d++) {
        bool is_static = ent_program_is_static(program, d);
        ent_memory_result result = {0, 0};
        ent_arena_mark mark = ent_arena_save(arena);
        if (is_static) {
            ent_status status = ent_program_place(program, d, NULL, arena, values, sizes, &result);
            if (status) return status;
        }
        ent_arena_restore(arena, mark);
        for (uint32_t i = 0; i < program->function_count; i++)
            frames[i][d] = is_static ? (ent_dim)sizes[i] : ENT_PROGRAM_UNSET;
        total.peak_bytes += result.peak_bytes;
        total.lower_bound_bytes += result.lower_bound_bytes;
    }
    *out_total = total;
    return NULL;
}
