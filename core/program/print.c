/* The text form of a program. parse.c reads it back; docs are the goldens in tests/golden/program.
 *
 *   program "name"
 *   symbol n min 1 max 64 multiple 1 input 0 axis 1
 *   expr e1 = mul e0 4
 *   device "cpu" plugin "cpu" parameters "threads=1"
 *   constant f32 [2] bytes 8 hex 0000803f00000040
 *   kernel "add" device 0 depth region tier generic requirement "" blob "add"
 *   function "main"
 *     value %0 "x" input device 0 f32 [e0,4] bytes e2
 *     value %1 "t" temporary device 0 f32 [e0,4] bytes e2 at 64
 *     step dispatch "s" device 0 kernel 0 values %0 %1
 *     inputs %0
 *     outputs %1
 *     frame 0 bytes 128
 *   end
 *   guard input 1 constant 0
 *   plan "{}"
 */
#include "core/program/internal.h"

#include <inttypes.h>
#include <string.h>

static void add_string(ent_text *text, const char *data, size_t size) {
    ent_text_add(text, "\"");
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '"' || c == '\\')
            ent_text_add(text, "\\%c", c);
        else if (c == '\n')
            ent_text_add(text, "\\n");
        else if (c < 0x20 || c == 0x7f)
            ent_text_add(text, "\\x%02x", c);
        else
            ent_text_add_bytes(text, (const char *)&data[i], 1);
    }
    ent_text_add(text, "\"");
}

static void add_name(ent_text *text, const char *name) {
    add_string(text, name, strlen(name));
}

static void add_hex(ent_text *text, const void *data, uint64_t size) {
    /* A word may not start with a digit, hence the x. */
    ent_text_add(text, " hex x");
    for (uint64_t i = 0; i < size; i++) ent_text_add(text, "%02x", ((const uint8_t *)data)[i]);
}

static void add_dim(ent_text *text, ent_dim dim) {
    if (dim >= 0)
        ent_text_add(text, "%" PRId64, dim);
    else
        ent_text_add(text, "e%" PRId64, ~dim);
}

static void add_dims(ent_text *text, const ent_dim *dims, uint32_t rank) {
    ent_text_add(text, " [");
    for (uint32_t i = 0; i < rank; i++) {
        if (i) ent_text_add(text, ",");
        add_dim(text, dims[i]);
    }
    ent_text_add(text, "]");
}

/* Nothing for the plain layout. */
static void add_layout(ent_text *text, const ent_layout *layout, uint32_t rank) {
    ent_layout plain = ent_layout_plain(rank);
    if (ent_layout_equal(layout, &plain)) return;
    if (layout->kind != ENT_LAYOUT_STRIDED) {
        ent_text_add(text, " opaque %" PRIu64, layout->opaque);
        return;
    }
    ent_text_add(text, " order");
    for (uint32_t i = 0; i < layout->rank; i++) ent_text_add(text, " %u", layout->order[i]);
    for (uint32_t i = 0; i < layout->block_count; i++)
        ent_text_add(text, " block %u %u", layout->block_axis[i], layout->block_size[i]);
}

static void add_expr(ent_text *text, uint32_t index, const ent_expr *e) {
    ent_text_add(text, "expr e%u = %s ", index, ent_program_expr_names[e->kind]);
    if (e->kind == ENT_EXPR_SYMBOL || e->kind == ENT_EXPR_CONST) {
        ent_text_add(text, "%" PRId64 "\n", e->a);
        return;
    }
    add_dim(text, e->a);
    ent_text_add(text, " ");
    add_dim(text, e->b);
    ent_text_add(text, "\n");
}

static void add_constant(ent_text *text, const ent_program_constant *c) {
    ent_text_add(text, "constant %s", ent_dtype_name((ent_dtype)c->dtype));
    add_dims(text, c->dims, c->rank);
    add_layout(text, &c->layout, c->rank);
    ent_text_add(text, " bytes %" PRIu64 " hash %" PRId64 " %" PRId64, c->size_bytes, (int64_t)c->hash.low,
                 (int64_t)c->hash.high);
    if (c->size_bytes <= ENT_PROGRAM_INLINE_BYTES)
        add_hex(text, c->data, c->size_bytes);
    else
        ent_text_add(text, " elided");
    ent_text_add(text, "\n");
}

static bool is_printable(const void *data, uint64_t size) {
    const unsigned char *bytes = data;
    for (uint64_t i = 0; i < size; i++)
        if ((bytes[i] < 0x20 || bytes[i] > 0x7e) && bytes[i] != '\n') return false;
    return true;
}

static void add_kernel(ent_text *text, const ent_program_kernel *k) {
    ent_text_add(text, "kernel ");
    add_name(text, k->name);
    ent_text_add(text, " device %u depth %s tier %s requirement ", k->device,
                 ent_program_depth_names[k->depth], ent_program_tier_names[k->tier]);
    add_name(text, k->requirement);
    if (is_printable(k->blob, k->blob_bytes)) {
        ent_text_add(text, " blob ");
        add_string(text, k->blob, k->blob_bytes);
    } else {
        add_hex(text, k->blob, k->blob_bytes);
    }
    ent_text_add(text, "\n");
}

static void add_value(ent_text *text, const ent_program_function *f, uint32_t index) {
    const ent_program_value *v = &f->values[index];
    ent_text_add(text, "  value %%%u ", index);
    add_name(text, v->name);
    ent_text_add(text, " %s", ent_program_value_names[v->kind]);
    if (v->kind == ENT_VALUE_CONSTANT) ent_text_add(text, " %u", v->index);
    if (v->kind == ENT_VALUE_ALIAS) ent_text_add(text, " %%%u", v->index);
    ent_text_add(text, " device %u %s", v->device, ent_dtype_name((ent_dtype)v->dtype));
    add_dims(text, v->dims, v->rank);
    add_layout(text, &v->layout, v->rank);
    ent_text_add(text, " bytes ");
    add_dim(text, v->size_bytes);
    if (v->kind == ENT_VALUE_TEMPORARY && v->offset_bytes != ENT_PROGRAM_UNSET) {
        ent_text_add(text, " at ");
        add_dim(text, v->offset_bytes);
    }
    ent_text_add(text, "\n");
}

static void add_ids(ent_text *text, const char *word, const char *prefix, const uint32_t *ids,
                    uint32_t count) {
    ent_text_add(text, " %s", word);
    for (uint32_t i = 0; i < count; i++) ent_text_add(text, " %s%u", prefix, ids[i]);
}

static void add_step(ent_text *text, const ent_program_step *s) {
    ent_text_add(text, "  step %s ", ent_program_step_names[s->kind]);
    add_name(text, s->name);
    ent_text_add(text, " device %u", s->device);
    switch (s->kind) {
    case ENT_PROGRAM_DISPATCH:
        ent_text_add(text, " kernel %u", s->kernel);
        break;
    case ENT_PROGRAM_CALL:
        ent_text_add(text, " function %u", s->function[0]);
        break;
    case ENT_PROGRAM_BRANCH:
        ent_text_add(text, " condition %%%u", s->condition);
        break;
    case ENT_PROGRAM_LOOP:
        ent_text_add(text, " function %u", s->function[0]);
        if (s->trips != ENT_PROGRAM_NONE) ent_text_add(text, " trips %%%u", s->trips);
        if (s->condition != ENT_PROGRAM_NONE) ent_text_add(text, " condition %%%u", s->condition);
        ent_text_add(text, " states %u", s->split);
        break;
    default:
        break;
    }
    if (s->kind == ENT_PROGRAM_BRANCH) {
        ent_text_add(text, " then %u", s->function[0]);
        add_ids(text, "values", "%", s->values, s->split);
        ent_text_add(text, " else %u", s->function[1]);
        add_ids(text, "values", "%", s->values + s->split, s->value_count - s->split);
    } else {
        add_ids(text, "values", "%", s->values, s->value_count);
    }
    if (s->wait_count) add_ids(text, "waits", "", s->waits, s->wait_count);
    if (s->region != ENT_PROGRAM_NONE) ent_text_add(text, " region %u", s->region);
    if (s->predicted_ns != 0) {
        ent_text_add(text, " predicted ");
        ent_text_add_number(text, s->predicted_ns, false);
    }
    ent_text_add(text, "\n");
}

static void add_function(ent_text *text, const ent_program *program, const ent_program_function *f) {
    ent_text_add(text, "function ");
    add_name(text, f->name);
    ent_text_add(text, "\n");
    for (uint32_t i = 0; i < f->value_count; i++) add_value(text, f, i);
    for (uint32_t i = 0; i < f->step_count; i++) add_step(text, &f->steps[i]);
    ent_text_add(text, " ");
    add_ids(text, "inputs", "%", f->inputs, f->input_count);
    ent_text_add(text, "\n ");
    add_ids(text, "outputs", "%", f->outputs, f->output_count);
    ent_text_add(text, "\n");
    for (uint32_t d = 0; f->arena_bytes && d < program->device_count; d++) {
        if (f->arena_bytes[d] == ENT_PROGRAM_UNSET) continue;
        ent_text_add(text, "  frame %u bytes ", d);
        add_dim(text, f->arena_bytes[d]);
        ent_text_add(text, "\n");
    }
    ent_text_add(text, "end\n");
}

const char *ent_program_print(const ent_program *program, ent_arena *arena) {
    ent_text text;
    ent_text_init(&text, arena);
    ent_text_add(&text, "program ");
    add_name(&text, program->name);
    ent_text_add(&text, "\n");
    for (uint32_t i = 0; i < program->symbol_count; i++) {
        const ent_program_symbol *s = &program->symbols[i];
        ent_text_add(&text, "symbol ");
        add_name(&text, s->name);
        ent_text_add(&text, " min %" PRId64 " max %" PRId64 " multiple %" PRId64, s->min, s->max,
                     s->multiple_of);
        if (s->input != ENT_PROGRAM_NONE) ent_text_add(&text, " input %u axis %u", s->input, s->axis);
        ent_text_add(&text, "\n");
    }
    for (uint32_t i = 0; i < program->expr_count; i++) add_expr(&text, i, &program->exprs[i]);
    for (uint32_t i = 0; i < program->device_count; i++) {
        const ent_program_device *d = &program->devices[i];
        ent_text_add(&text, "device ");
        add_name(&text, d->name);
        ent_text_add(&text, " plugin ");
        add_name(&text, d->plugin);
        ent_text_add(&text, " parameters ");
        add_name(&text, d->parameters);
        ent_text_add(&text, "\n");
    }
    for (uint32_t i = 0; i < program->constant_count; i++) add_constant(&text, &program->constants[i]);
    for (uint32_t i = 0; i < program->kernel_count; i++) add_kernel(&text, &program->kernels[i]);
    for (uint32_t i = 0; i < program->function_count; i++)
        add_function(&text, program, &program->functions[i]);
    for (uint32_t i = 0; i < program->guard_count; i++)
        ent_text_add(&text, "guard input %u constant %u\n", program->guards[i].input,
                     program->guards[i].constant);
    if (program->plan_json_bytes) {
        ent_text_add(&text, "plan ");
        add_string(&text, program->plan_json, program->plan_json_bytes);
        ent_text_add(&text, "\n");
    }
    return text.data;
}
