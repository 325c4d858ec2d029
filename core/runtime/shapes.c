/* Shapes of a run: checks inputs, reads the symbols from them, keeps a few prepared plans. */
#include "core/runtime/internal.h"

#include <inttypes.h>
#include <string.h>

static const char *input_place(ent_runtime *rt, uint32_t input) {
    return ent_arena_format(rt->errors, "input '%s'", runtime_main(rt)->values[rt->inputs[input].value].name);
}

static ent_status check_type(ent_runtime *rt, uint32_t index, const ent_tensor *tensor) {
    const ent_program_value *value = &runtime_main(rt)->values[rt->inputs[index].value];
    if (tensor->dtype != value->dtype)
        return ent_status_make(rt->errors, ENT_ERROR_USAGE, "input.dtype", input_place(rt, index),
                               "has dtype %s; the model wants %s", ent_dtype_name((ent_dtype)tensor->dtype),
                               ent_dtype_name((ent_dtype)value->dtype));
    if (tensor->rank != value->rank)
        return ent_status_make(rt->errors, ENT_ERROR_USAGE, "input.rank", input_place(rt, index),
                               "has %u dimensions; the model wants %u", tensor->rank, value->rank);
    ent_layout plain = ent_layout_plain(value->rank);
    const ent_layout *layout = tensor->layout.kind == ENT_LAYOUT_ANY ? &plain : &tensor->layout;
    if (!ent_layout_equal(layout, &value->layout))
        return ent_status_make(rt->errors, ENT_ERROR_USAGE, "input.layout", input_place(rt, index),
                               "is stored in another layout than the program takes");
    return NULL;
}

static ent_status read_symbols(ent_runtime *rt, const ent_tensor *inputs, int64_t *symbols) {
    for (uint32_t i = 0; i < rt->program->symbol_count; i++) {
        const ent_program_symbol *s = &rt->program->symbols[i];
        symbols[i] = s->input == ENT_PROGRAM_NONE ? s->min : inputs[s->input].dims[s->axis];
        if (symbols[i] >= s->min && symbols[i] <= s->max && symbols[i] % s->multiple_of == 0) continue;
        char range[96];
        if (s->max == INT64_MAX)
            snprintf(range, sizeof range, "at least %" PRId64, s->min);
        else
            snprintf(range, sizeof range, "%" PRId64 " to %" PRId64, s->min, s->max);
        return ent_status_make(
            rt->errors, ENT_ERROR_UNSUPPORTED, "runtime.guard",
            ent_arena_format(rt->errors, "%s, axis %u", input_place(rt, s->input), s->axis),
            "the dimension '%s' is %" PRId64 "; this bundle is for %s in steps of %" PRId64
            ", so compile the model for this shape",
            s->name, symbols[i], range, s->multiple_of);
    }
    return NULL;
}

/* Every input has exactly the dims that its symbols say. */
static ent_status check_dims(ent_runtime *rt, const ent_tensor *inputs, const int64_t *exprs) {
    for (uint32_t i = 0; i < runtime_main(rt)->input_count; i++) {
        const ent_program_value *value = &runtime_main(rt)->values[rt->inputs[i].value];
        for (uint32_t d = 0; d < value->rank; d++) {
            int64_t want = ent_dim_value(value->dims[d], exprs);
            if (inputs[i].dims[d] != want)
                return ent_status_make(rt->errors, ENT_ERROR_USAGE, "input.shape", input_place(rt, i),
                                       "dimension %u is %" PRId64 " and must be %" PRId64, d,
                                       inputs[i].dims[d], want);
        }
    }
    return NULL;
}

static bool same_dims(const ent_runtime *rt, const runtime_plan *plan, const ent_tensor *inputs) {
    const int64_t *key = plan->input_dims;
    for (uint32_t i = 0; i < runtime_main(rt)->input_count; i++)
        for (uint32_t d = 0; d < inputs[i].rank; d++)
            if (inputs[i].dims[d] != *key++) return false;
    return true;
}

void ent_runtime_plan_destroy(runtime_plan *plan) {
    if (plan) ent_arena_destroy(plan->arena); /* the plan lies in it */
}

static runtime_plan *plan_create(ent_runtime *rt) {
    ent_arena *arena = ent_arena_create(0);
    if (!arena) return NULL;
    runtime_plan *plan = ent_arena_alloc(arena, sizeof *plan);
    plan->arena = arena;
    plan->symbols = ent_arena_array(arena, (size_t)rt->program->symbol_count + 1, sizeof *plan->symbols);
    plan->exprs = ent_arena_array(arena, (size_t)rt->program->expr_count + 1, sizeof *plan->exprs);
    plan->input_dims = ent_arena_array(arena, ((size_t)runtime_main(rt)->input_count + 1) * ENT_MAX_RANK,
                                       sizeof *plan->input_dims);
    if (plan->symbols && plan->exprs && plan->input_dims) return plan;
    ent_arena_destroy(arena);
    return NULL;
}

/* The least recently used plan gives way. */
static void keep_plan(ent_runtime *rt, runtime_plan *plan) {
    uint32_t place = 0;
    for (uint32_t i = 0; i < ENT_RUNTIME_PLANS; i++) {
        if (!rt->plans[i]) {
            place = i;
            break;
        }
        if (rt->plans[i]->last_used < rt->plans[place]->last_used) place = i;
    }
    if (rt->current == rt->plans[place]) rt->current = NULL;
    ent_runtime_plan_destroy(rt->plans[place]);
    rt->plans[place] = plan;
}

static ent_status fill_plan(ent_runtime *rt, runtime_plan *plan, const ent_tensor *inputs) {
    const ent_program *p = rt->program;
    ENT_TRY(read_symbols(rt, inputs, plan->symbols));
    if (!ent_expr_evaluate(p->exprs, p->expr_count, plan->symbols, p->symbol_count, plan->exprs))
        return ent_status_make(rt->errors, ENT_ERROR_LIMIT, "runtime.sizes", p->name,
                               "the sizes for these shapes leave the 64-bit range");
    if (inputs) ENT_TRY(check_dims(rt, inputs, plan->exprs));
    int64_t *key = plan->input_dims;
    for (uint32_t i = 0; i < runtime_main(rt)->input_count; i++) {
        const ent_program_value *value = &runtime_main(rt)->values[rt->inputs[i].value];
        for (uint32_t d = 0; d < value->rank; d++) *key++ = ent_dim_value(value->dims[d], plan->exprs);
    }
    return ent_runtime_prepare(rt, plan);
}

static ent_status add_plan(ent_runtime *rt, const ent_tensor *inputs, runtime_plan **out) {
    runtime_plan *plan = plan_create(rt);
    if (!plan) return ent_status_out_of_memory();
    ent_status status = fill_plan(rt, plan, inputs);
    if (status) {
        /* The status may lie in the plan's arena. */
        status = ent_status_make(rt->errors, status->code, ent_arena_strdup(rt->errors, status->rule),
                                 ent_arena_strdup(rt->errors, status->place), "%s", status->text);
        ent_runtime_plan_destroy(plan);
        return status;
    }
    keep_plan(rt, plan);
    *out = plan;
    return NULL;
}

ent_status ent_runtime_prepare_static(ent_runtime *rt) {
    runtime_plan *plan;
    return add_plan(rt, NULL, &plan);
}

ent_status ent_runtime_choose_plan(ent_runtime *rt, const ent_tensor *inputs, runtime_plan **out) {
    for (uint32_t i = 0; i < runtime_main(rt)->input_count; i++) ENT_TRY(check_type(rt, i, &inputs[i]));
    *out = rt->current && same_dims(rt, rt->current, inputs) ? rt->current : NULL;
    for (uint32_t i = 0; !*out && i < ENT_RUNTIME_PLANS; i++)
        if (rt->plans[i] && same_dims(rt, rt->plans[i], inputs)) *out = rt->plans[i];
    if (!*out && rt->program->symbol_count == 0) return check_dims(rt, inputs, rt->plans[0]->exprs);
    if (!*out) ENT_TRY(add_plan(rt, inputs, out));
    (*out)->last_used = ++rt->clock;
    return NULL;
}
