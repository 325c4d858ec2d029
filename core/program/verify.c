/* Every index, size and offset of a program, whoever made it. What passes here cannot make the memory plan,
 * the printer or the runtime read outside an array; sizes that depend on symbols are checked again by the
 * runtime when the symbols are known. */
#include "core/program/internal.h"

#include <string.h>

typedef struct verifier {
    const ent_program *program;
    ent_arena *arena;
    const ent_program_function *function;
    uint32_t function_index;
} verifier;

/* place: "NAME: function 1 'then': value 3" */
static ent_status fail(verifier *v, const char *rule, const char *what, uint32_t index, const char *text) {
    const char *name = v->program->name ? v->program->name : "program";
    const char *place =
        v->function ? ent_arena_format(v->arena, "%s: function %u '%s': %s %u", name, v->function_index,
                                       v->function->name ? v->function->name : "", what, index)
                    : ent_arena_format(v->arena, "%s: %s %u", name, what, index);
    return ent_status_make(v->arena, ENT_ERROR_MODEL, rule, place, "%s", text);
}

static bool dim_ok(const ent_program *program, ent_dim dim) {
    return dim >= 0 || (uint64_t)~dim < program->expr_count;
}

static bool layout_ok(const ent_layout *layout, uint32_t rank) {
    if (layout->rank != rank || rank > ENT_MAX_RANK || layout->block_count > ENT_MAX_BLOCKS) return false;
    if (layout->kind == ENT_LAYOUT_OPAQUE) return true;
    if (layout->kind != ENT_LAYOUT_STRIDED) return false;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (layout->order[i] >= rank || (seen >> layout->order[i] & 1u)) return false;
        seen |= 1u << layout->order[i];
    }
    for (uint32_t i = 0; i < layout->block_count; i++)
        if (layout->block_axis[i] >= rank || layout->block_size[i] == 0) return false;
    return true;
}

static ent_status verify_exprs(verifier *v) {
    const ent_program *p = v->program;
    for (uint32_t i = 0; i < p->expr_count; i++) {
        const ent_expr *e = &p->exprs[i];
        if (e->kind < ENT_EXPR_SYMBOL || e->kind > ENT_EXPR_CONST)
            return fail(v, "program.expr.kind", "expr", i, "unknown kind of expression");
        if (e->kind == ENT_EXPR_CONST) continue;
        if (e->kind == ENT_EXPR_SYMBOL) {
            if (e->a < 0 || (uint64_t)e->a >= p->symbol_count)
                return fail(v, "program.expr.symbol", "expr", i, "names a symbol that does not exist");
            continue;
        }
        if ((e->a < 0 && (uint64_t)~e->a >= i) || (e->b < 0 && (uint64_t)~e->b >= i))
            return fail(v, "program.expr.order", "expr", i,
                        "refers to an expression that does not come before it");
    }
    return NULL;
}

static ent_status verify_symbols(verifier *v) {
    const ent_program *p = v->program;
    const ent_program_function *main_function = &p->functions[0];
    for (uint32_t i = 0; i < p->symbol_count; i++) {
        const ent_program_symbol *s = &p->symbols[i];
        if (!s->name) return fail(v, "program.symbol.name", "symbol", i, "has no name");
        if (s->min < 0 || s->max < s->min || s->multiple_of < 1)
            return fail(v, "program.symbol.range", "symbol", i,
                        "its range needs 0 <= min <= max and multiple >= 1");
        if (s->input == ENT_PROGRAM_NONE) {
            if (s->min != s->max)
                return fail(v, "program.symbol.source", "symbol", i,
                            "no input gives its value and its range is open");
            continue;
        }
        if (s->input >= main_function->input_count)
            return fail(v, "program.symbol.source", "symbol", i,
                        "names an input of main that does not exist");
        const ent_program_value *value = &main_function->values[main_function->inputs[s->input]];
        if (s->axis >= value->rank || value->dims[s->axis] >= 0)
            return fail(v, "program.symbol.source", "symbol", i,
                        "that axis of the input does not carry the symbol");
        const ent_expr *e = &p->exprs[~value->dims[s->axis]];
        if (e->kind != ENT_EXPR_SYMBOL || e->a != (ent_dim)i)
            return fail(v, "program.symbol.source", "symbol", i,
                        "that axis of the input does not carry the symbol");
    }
    return NULL;
}

static ent_status verify_constants(verifier *v) {
    for (uint32_t i = 0; i < v->program->constant_count; i++) {
        const ent_program_constant *c = &v->program->constants[i];
        if (c->dtype == ENT_DTYPE_NONE || c->dtype >= ENT_DTYPE_COUNT || c->rank > ENT_MAX_RANK)
            return fail(v, "program.constant.type", "constant", i, "unknown dtype or too many dimensions");
        if (!layout_ok(&c->layout, c->rank))
            return fail(v, "program.constant.layout", "constant", i, "its layout does not fit its rank");
        for (uint32_t d = 0; d < c->rank; d++)
            if (c->dims[d] < 0)
                return fail(v, "program.constant.shape", "constant", i, "a dimension is negative");
        if (c->layout.kind == ENT_LAYOUT_STRIDED) {
            int64_t bytes = ent_layout_bytes(&c->layout, (ent_dtype)c->dtype, c->dims);
            if (bytes < 0 || (uint64_t)bytes > c->size_bytes)
                return fail(v, "program.constant.size", "constant", i,
                            "has fewer bytes than its shape needs");
        }
        if (c->size_bytes > INT64_MAX || (c->size_bytes > 0 && !c->data))
            return fail(v, "program.constant.size", "constant", i, "has no data");
    }
    return NULL;
}

static ent_status verify_kernels(verifier *v) {
    for (uint32_t i = 0; i < v->program->device_count; i++) {
        const ent_program_device *d = &v->program->devices[i];
        if (!d->name || !d->plugin || !d->parameters)
            return fail(v, "program.device.name", "device", i,
                        "needs a name, a plugin and parameters (may be empty)");
    }
    for (uint32_t i = 0; i < v->program->kernel_count; i++) {
        const ent_program_kernel *k = &v->program->kernels[i];
        if (k->device >= v->program->device_count)
            return fail(v, "program.kernel.device", "kernel", i, "its device does not exist");
        if (k->depth != ENT_DEPTH_GRAPH && k->depth != ENT_DEPTH_REGION && k->depth != ENT_DEPTH_TILE)
            return fail(v, "program.kernel.depth", "kernel", i, "unknown depth");
        if (k->tier > ENT_TIER_EMULATED) return fail(v, "program.kernel.tier", "kernel", i, "unknown tier");
        if (!k->name || !k->requirement || (k->blob_bytes > 0 && !k->blob))
            return fail(v, "program.kernel.blob", "kernel", i,
                        "needs a name, a requirement (may be empty) and a blob");
    }
    return NULL;
}

static ent_status verify_value_size(verifier *v, uint32_t index) {
    const ent_program_value *value = &v->function->values[index];
    const ent_program *p = v->program;
    if (!dim_ok(p, value->size_bytes))
        return fail(v, "program.value.size", "value", index, "its size names no expression");
    bool constant = ent_dim_is_const(value->size_bytes);
    int64_t dims[ENT_MAX_RANK] = {0};
    for (uint32_t d = 0; d < value->rank; d++) {
        if (!dim_ok(p, value->dims[d]))
            return fail(v, "program.value.shape", "value", index, "a dimension names no expression");
        constant = constant && ent_dim_is_const(value->dims[d]);
        dims[d] = value->dims[d];
    }
    if (constant && value->layout.kind == ENT_LAYOUT_STRIDED) {
        int64_t bytes = ent_layout_bytes(&value->layout, (ent_dtype)value->dtype, dims);
        if (bytes < 0 || bytes > value->size_bytes)
            return fail(v, "program.value.size", "value", index, "is smaller than its shape and layout need");
    }
    if (value->kind != ENT_VALUE_TEMPORARY || value->offset_bytes == ENT_PROGRAM_UNSET) return NULL;
    if (!dim_ok(p, value->offset_bytes))
        return fail(v, "program.value.offset", "value", index, "its offset names no expression");
    if (value->offset_bytes >= 0 && value->offset_bytes % 64 != 0)
        return fail(v, "program.value.offset", "value", index, "its offset is no multiple of 64");
    if (!v->function->arena_bytes) return NULL; /* not planned yet */
    ent_dim frame = v->function->arena_bytes[value->device];
    if (frame == ENT_PROGRAM_UNSET)
        return fail(v, "program.value.offset", "value", index, "is placed in a frame without a size");
    if (value->offset_bytes >= 0 && value->size_bytes >= 0 && frame >= 0 &&
        (value->offset_bytes > frame || value->size_bytes > frame - value->offset_bytes))
        return fail(v, "program.value.offset", "value", index, "lies outside its function's frame");
    return NULL;
}

static ent_status verify_constant_value(verifier *v, uint32_t index) {
    const ent_program_value *value = &v->function->values[index];
    if (value->index >= v->program->constant_count)
        return fail(v, "program.value.constant", "value", index, "names a constant that does not exist");
    const ent_program_constant *c = &v->program->constants[value->index];
    bool same = c->dtype == value->dtype && c->rank == value->rank &&
                ent_layout_equal(&c->layout, &value->layout) && value->size_bytes >= 0 &&
                (uint64_t)value->size_bytes <= c->size_bytes;
    for (uint32_t d = 0; same && d < c->rank; d++) same = c->dims[d] == value->dims[d];
    return same ? NULL
                : fail(v, "program.value.constant", "value", index,
                       "differs from its constant in dtype, shape, layout or size");
}

static ent_status verify_alias(verifier *v, uint32_t index) {
    const ent_program_value *value = &v->function->values[index];
    uint32_t root = index;
    for (uint32_t hops = 0; v->function->values[root].kind == ENT_VALUE_ALIAS; hops++) {
        if (hops > v->function->value_count)
            return fail(v, "program.value.alias", "value", index, "its aliases form a circle");
        root = v->function->values[root].index;
        if (root >= v->function->value_count)
            return fail(v, "program.value.alias", "value", index,
                        "is an alias of a value that does not exist");
    }
    const ent_program_value *storage = &v->function->values[root];
    if (storage->device != value->device)
        return fail(v, "program.value.alias", "value", index, "lies on another device than its storage");
    if (storage->size_bytes >= 0 && value->size_bytes > storage->size_bytes)
        return fail(v, "program.value.alias", "value", index, "is larger than the storage it shares");
    return NULL;
}

static ent_status verify_value(verifier *v, uint32_t index) {
    const ent_program_value *value = &v->function->values[index];
    if (value->kind < ENT_VALUE_INPUT || value->kind > ENT_VALUE_ALIAS)
        return fail(v, "program.value.kind", "value", index, "unknown kind of value");
    if (value->device >= v->program->device_count)
        return fail(v, "program.value.device", "value", index, "its device does not exist");
    if (!value->name) return fail(v, "program.value.name", "value", index, "has no name (may be empty)");
    if (value->dtype == ENT_DTYPE_NONE || value->dtype >= ENT_DTYPE_COUNT || value->rank > ENT_MAX_RANK)
        return fail(v, "program.value.type", "value", index, "unknown dtype or too many dimensions");
    if (!layout_ok(&value->layout, value->rank))
        return fail(v, "program.value.layout", "value", index,
                    "its layout is not settled or does not fit its rank");
    ENT_TRY(verify_value_size(v, index));
    if (value->kind == ENT_VALUE_CONSTANT) return verify_constant_value(v, index);
    return NULL;
}

static ent_status verify_parameters(verifier *v) {
    const ent_program_function *f = v->function;
    uint8_t *seen = ent_arena_alloc(v->arena, (size_t)f->value_count + 1);
    for (uint32_t i = 0; i < f->input_count; i++) {
        if (f->inputs[i] >= f->value_count || f->values[f->inputs[i]].kind != ENT_VALUE_INPUT ||
            seen[f->inputs[i]])
            return fail(v, "program.function.inputs", "input", i,
                        "must name a value of kind input, each once");
        seen[f->inputs[i]] = 1;
    }
    for (uint32_t i = 0; i < f->output_count; i++) {
        if (f->outputs[i] >= f->value_count)
            return fail(v, "program.function.outputs", "output", i, "names a value that does not exist");
        seen[f->outputs[i]] = 1;
    }
    for (uint32_t i = 0; i < f->value_count; i++)
        if (!seen[i] && (f->values[i].kind == ENT_VALUE_INPUT || f->values[i].kind == ENT_VALUE_OUTPUT))
            return fail(v, "program.function.parameters", "value", i,
                        "is an input or output that its function does not list");
    return NULL;
}

static uint32_t storage_kind(const ent_program_function *f, uint32_t value) {
    return f->values[ent_program_value_root(f, value)].kind;
}

/* Arguments values[0..count): the callee's inputs, then its outputs. */
static ent_status verify_arguments(verifier *v, uint32_t step, uint32_t callee, const uint32_t *values,
                                   uint32_t count) {
    if (callee >= v->program->function_count)
        return fail(v, "program.step.function", "step", step, "calls a function that does not exist");
    const ent_program_function *f = &v->program->functions[callee];
    if ((uint64_t)f->input_count + f->output_count != count)
        return fail(v, "program.step.arguments", "step", step,
                    "passes another number of arguments than the function takes");
    for (uint32_t i = 0; i < count; i++) {
        bool output = i >= f->input_count;
        uint32_t parameter = output ? f->outputs[i - f->input_count] : f->inputs[i];
        if (parameter >= f->value_count)
            return fail(v, "program.step.arguments", "step", step, "calls a broken function");
        const ent_program_value *want = &f->values[parameter], *have = &v->function->values[values[i]];
        if (want->device != have->device || want->dtype != have->dtype || want->rank != have->rank ||
            !ent_layout_equal(&want->layout, &have->layout) ||
            (want->size_bytes >= 0 && have->size_bytes >= 0 && want->size_bytes != have->size_bytes))
            return fail(v, "program.step.arguments", "step", step,
                        "an argument differs from the parameter in device, dtype, layout or size");
        uint32_t kind = storage_kind(v->function, values[i]);
        if (output && (kind == ENT_VALUE_INPUT || kind == ENT_VALUE_CONSTANT))
            return fail(v, "program.step.arguments", "step", step, "writes to an input or a constant");
    }
    return NULL;
}

static ent_status verify_copy(verifier *v, uint32_t index) {
    const ent_program_step *s = &v->function->steps[index];
    if (s->value_count != 2)
        return fail(v, "program.step.copy", "step", index, "a copy has one source and one destination");
    const ent_program_value *from = &v->function->values[s->values[0]],
                            *to = &v->function->values[s->values[1]];
    uint32_t kind = storage_kind(v->function, s->values[1]);
    if (kind == ENT_VALUE_INPUT || kind == ENT_VALUE_CONSTANT)
        return fail(v, "program.step.copy", "step", index, "copies onto an input or a constant");
    if (from->size_bytes >= 0 && to->size_bytes >= 0 && from->size_bytes != to->size_bytes)
        return fail(v, "program.step.copy", "step", index, "source and destination differ in size");
    if (ent_program_value_root(v->function, s->values[0]) ==
        ent_program_value_root(v->function, s->values[1]))
        return fail(v, "program.step.copy", "step", index, "copies a value onto itself");
    if (s->device != from->device && s->device != to->device)
        return fail(v, "program.step.copy", "step", index, "runs on a device that holds neither side");
    return NULL;
}

static ent_status verify_branch(verifier *v, uint32_t index) {
    const ent_program_step *s = &v->function->steps[index];
    if (s->condition >= v->function->value_count)
        return fail(v, "program.step.condition", "step", index, "its condition does not exist");
    const ent_program_value *condition = &v->function->values[s->condition];
    if (condition->dtype != ENT_DTYPE_BOOL || condition->size_bytes < 1)
        return fail(v, "program.step.condition", "step", index,
                    "its condition is not a bool of one byte or more");
    if (s->split > s->value_count)
        return fail(v, "program.step.split", "step", index, "splits its arguments beyond their end");
    ENT_TRY(verify_arguments(v, index, s->function[0], s->values, s->split));
    return verify_arguments(v, index, s->function[1], s->values + s->split, s->value_count - s->split);
}

/* The host writes the iteration's number and copies next states over states, so both need storage of their
 * own.
 */
static ent_status verify_loop_state(verifier *v, uint32_t index, uint32_t state, uint32_t next) {
    const ent_program_function *f = v->function;
    const ent_program_value *a = &f->values[state], *b = &f->values[next];
    uint32_t kind = storage_kind(f, state);
    if (kind == ENT_VALUE_INPUT || kind == ENT_VALUE_CONSTANT)
        return fail(v, "program.step.loop", "step", index, "its states lie in an input or a constant");
    if (a->dtype != b->dtype || a->device != b->device || !ent_layout_equal(&a->layout, &b->layout) ||
        ent_program_value_root(f, state) == ent_program_value_root(f, next))
        return fail(v, "program.step.loop", "step", index,
                    "a state and the next one differ in dtype, device or layout, or are one value");
    return NULL;
}

static ent_status verify_loop(verifier *v, uint32_t index) {
    const ent_program_step *s = &v->function->steps[index];
    const ent_program_value *values = v->function->values;
    ENT_TRY(verify_arguments(v, index, s->function[0], s->values, s->value_count));
    const ent_program_function *body = &v->program->functions[s->function[0]];
    if (s->split >= body->input_count || body->input_count - s->split < 2 ||
        body->output_count != s->split + 1)
        return fail(v, "program.step.loop", "step", index, "its body does not take and give its states");
    const ent_program_value *number = &values[s->values[0]], *condition = &values[s->values[1]];
    uint32_t kind = storage_kind(v->function, s->values[0]);
    if (number->dtype != ENT_DTYPE_I64 || number->size_bytes != 8 || kind == ENT_VALUE_INPUT ||
        kind == ENT_VALUE_CONSTANT || condition->dtype != ENT_DTYPE_BOOL || condition->size_bytes != 1)
        return fail(v, "program.step.loop", "step", index,
                    "the iteration's number is no i64 of its own, or the condition no bool");
    if (s->condition != ENT_PROGRAM_NONE && s->condition != s->values[1])
        return fail(v, "program.step.condition", "step", index, "its condition is not its second argument");
    if (s->trips != ENT_PROGRAM_NONE &&
        (s->trips >= v->function->value_count || values[s->trips].dtype != ENT_DTYPE_I64 ||
         values[s->trips].size_bytes < 8))
        return fail(v, "program.step.loop", "step", index, "its trip count is no i64");
    for (uint32_t i = 0; i <= s->split; i++)
        ENT_TRY(verify_loop_state(v, index, s->values[1 + i], s->values[body->input_count + i]));
    return NULL;
}

static ent_status verify_step(verifier *v, uint32_t index) {
    const ent_program_step *s = &v->function->steps[index];
    if (s->device >= v->program->device_count)
        return fail(v, "program.step.device", "step", index, "its device does not exist");
    if (!s->name) return fail(v, "program.step.name", "step", index, "has no name (may be empty)");
    for (uint32_t i = 0; i < s->value_count; i++)
        if (s->values[i] >= v->function->value_count)
            return fail(v, "program.step.values", "step", index, "names a value that does not exist");
    for (uint32_t i = 0; i < s->wait_count; i++)
        if (s->waits[i] >= index)
            return fail(v, "program.step.waits", "step", index,
                        "waits for a step that does not come before it");
    switch (s->kind) {
    case ENT_PROGRAM_DISPATCH:
        if (s->kernel >= v->program->kernel_count || v->program->kernels[s->kernel].device != s->device)
            return fail(v, "program.step.kernel", "step", index,
                        "its kernel does not exist or belongs to another device");
        for (uint32_t i = 0; i < s->value_count; i++)
            if (v->function->values[s->values[i]].device != s->device)
                return fail(v, "program.step.values", "step", index,
                            "uses a value of another device; copy it first");
        return NULL;
    case ENT_PROGRAM_COPY:
        return verify_copy(v, index);
    case ENT_PROGRAM_CALL:
        return verify_arguments(v, index, s->function[0], s->values, s->value_count);
    case ENT_PROGRAM_BRANCH:
        return verify_branch(v, index);
    case ENT_PROGRAM_LOOP:
        return verify_loop(v, index);
    default:
        return fail(v, "program.step.kind", "step", index, "unknown kind of step");
    }
}

static ent_status verify_function(verifier *v) {
    const ent_program_function *f = v->function;
    if (!f->name) return fail(v, "program.function.name", "function", v->function_index, "has no name");
    for (uint32_t d = 0; f->arena_bytes && d < v->program->device_count; d++)
        if (f->arena_bytes[d] != ENT_PROGRAM_UNSET && !dim_ok(v->program, f->arena_bytes[d]))
            return fail(v, "program.function.frame", "device", d, "the frame's size names no expression");
    for (uint32_t i = 0; i < f->value_count; i++) ENT_TRY(verify_value(v, i));
    for (uint32_t i = 0; i < f->value_count; i++)
        if (f->values[i].kind == ENT_VALUE_ALIAS) ENT_TRY(verify_alias(v, i));
    ENT_TRY(verify_parameters(v));
    for (uint32_t i = 0; i < f->step_count; i++) ENT_TRY(verify_step(v, i));
    return NULL;
}

static ent_status verify_guards(verifier *v) {
    const ent_program *p = v->program;
    const ent_program_function *main_function = &p->functions[0];
    for (uint32_t i = 0; i < p->guard_count; i++) {
        const ent_program_guard *g = &p->guards[i];
        if (g->input >= main_function->input_count || g->constant >= p->constant_count)
            return fail(v, "program.guard.range", "guard", i,
                        "names an input or a constant that does not exist");
        const ent_program_value *value = &main_function->values[main_function->inputs[g->input]];
        const ent_program_constant *c = &p->constants[g->constant];
        bool same = c->dtype == value->dtype && c->rank == value->rank && value->size_bytes >= 0 &&
                    ent_layout_equal(&c->layout, &value->layout) &&
                    (uint64_t)value->size_bytes <= c->size_bytes;
        for (uint32_t d = 0; same && d < c->rank; d++) same = c->dims[d] == value->dims[d];
        if (!same)
            return fail(v, "program.guard.value", "guard", i,
                        "differs from its input in dtype, shape, layout or size");
    }
    return NULL;
}

/* Depth of the call tree below `function`; fails on recursion. depth[]: 0 unknown, else depth + 1; MAX: being
 * visited. */
static ent_status verify_calls(verifier *v, uint32_t function, uint32_t level, uint32_t *depth) {
    if (depth[function] == UINT32_MAX || level > ENT_PROGRAM_MAX_CALL_DEPTH)
        return fail(v, "program.function.recursion", "function", function,
                    "calls itself, or calls nest too deeply");
    if (depth[function]) return NULL;
    depth[function] = UINT32_MAX;
    const ent_program_function *f = &v->program->functions[function];
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < f->step_count; i++) {
        uint32_t callees[2], count = ent_program_step_callees(&f->steps[i], callees);
        for (uint32_t k = 0; k < count; k++) {
            ENT_TRY(verify_calls(v, callees[k], level + 1, depth));
            if (depth[callees[k]] > deepest) deepest = depth[callees[k]];
        }
    }
    if (deepest >= ENT_PROGRAM_MAX_CALL_DEPTH)
        return fail(v, "program.function.recursion", "function", function, "calls nest too deeply");
    depth[function] = deepest + 1;
    return NULL;
}

ent_status ent_program_verify(const ent_program *program, ent_arena *arena) {
    verifier v = {program, arena, NULL, 0};
    if (!program->name || program->function_count == 0)
        return fail(&v, "program.empty", "function", 0, "a program needs a name and a main function");
    ENT_TRY(verify_exprs(&v));
    ENT_TRY(verify_constants(&v));
    ENT_TRY(verify_kernels(&v));
    for (uint32_t i = 0; i < program->function_count; i++) {
        v.function = &program->functions[i];
        v.function_index = i;
        ENT_TRY(verify_function(&v));
    }
    v.function = NULL;
    ENT_TRY(verify_symbols(&v));
    ENT_TRY(verify_guards(&v));
    uint32_t *depth = ent_arena_array(arena, program->function_count, sizeof *depth);
    if (!depth) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < program->function_count; i++) ENT_TRY(verify_calls(&v, i, 0, depth));
    return NULL;
}
