/* The tables section. Every structure is described once; the stream's direction decides whether it is written
 * or read, so that the two cannot differ. Writing works on copies of what is const in the program. */
#include "core/program/bundle.h"

#include <string.h>

static void stream_fail(ent_bundle_stream *s, const char *text) {
    if (!s->failed) s->failed = text;
}

static void put_bytes(ent_bundle_stream *s, const void *data, uint64_t size) {
    if (s->capacity - s->size < size) {
        uint64_t capacity = s->capacity * 2 + size + 4096;
        uint8_t *grown = ent_arena_array(s->arena, capacity, 1);
        if (!grown) {
            stream_fail(s, "out of memory");
            return;
        }
        if (s->size) memcpy(grown, s->data, s->size);
        s->data = grown;
        s->capacity = capacity;
    }
    if (size) memcpy(s->data + s->size, data, size);
    s->size += size;
}

static void transfer_bytes(ent_bundle_stream *s, void *data, uint64_t size) {
    if (s->writing) {
        put_bytes(s, data, size);
        return;
    }
    if (s->failed || s->size - s->at < size) {
        stream_fail(s, "the tables end too early");
        memset(data, 0, size);
        return;
    }
    memcpy(data, s->data + s->at, size);
    s->at += size;
}

static void transfer_u8(ent_bundle_stream *s, uint8_t *value) {
    transfer_bytes(s, value, 1);
}

static void transfer_u32(ent_bundle_stream *s, uint32_t *value) {
    transfer_bytes(s, value, sizeof *value);
}

static void transfer_u64(ent_bundle_stream *s, uint64_t *value) {
    transfer_bytes(s, value, sizeof *value);
}

static void transfer_i64(ent_bundle_stream *s, int64_t *value) {
    transfer_bytes(s, value, sizeof *value);
}

/* Length, bytes, NUL. Read strings point into the section. */
static void transfer_string(ent_bundle_stream *s, const char **text) {
    uint32_t length = s->writing ? (uint32_t)strlen(*text) : 0;
    transfer_u32(s, &length);
    if (s->writing) {
        put_bytes(s, *text, (uint64_t)length + 1);
        return;
    }
    *text = "";
    if (s->failed) return;
    if (s->size - s->at < (uint64_t)length + 1) {
        stream_fail(s, "a string reaches beyond the tables");
        return;
    }
    const char *bytes = (const char *)s->data + s->at;
    if (bytes[length] != 0 || memchr(bytes, 0, length)) {
        stream_fail(s, "a string is not NUL-terminated where it says");
        return;
    }
    *text = bytes;
    s->at += (uint64_t)length + 1;
}

/* A count of things that take at least least_bytes each, and room for them. Returns the array to fill
 * (reading) or a copy of `items` (writing), so that callers may treat it as writable. */
static void *transfer_array(ent_bundle_stream *s, const void *items, uint32_t *count, size_t item_bytes,
                            size_t least_bytes) {
    transfer_u32(s, count);
    if (!s->writing && *count > (s->size - s->at) / least_bytes) {
        stream_fail(s, "a table has more entries than the file has bytes for");
        *count = 0;
    }
    void *room = ent_arena_array(s->arena, (size_t)*count + 1, item_bytes);
    if (!room) {
        stream_fail(s, "out of memory");
        *count = 0;
        return NULL;
    }
    if (s->writing && *count) memcpy(room, items, *count * item_bytes);
    return room;
}

static void transfer_ids(ent_bundle_stream *s, const uint32_t **ids, uint32_t *count) {
    uint32_t *room = transfer_array(s, *ids, count, sizeof *room, sizeof *room);
    if (*count) transfer_bytes(s, room, *count * sizeof *room);
    *ids = room;
}

static void transfer_shape(ent_bundle_stream *s, uint32_t *rank, int64_t *dims) {
    transfer_u32(s, rank);
    if (*rank > ENT_MAX_RANK) {
        stream_fail(s, "a shape has too many dimensions");
        *rank = 0;
    }
    for (uint32_t i = 0; i < *rank; i++) transfer_i64(s, &dims[i]);
}

static void transfer_layout(ent_bundle_stream *s, ent_layout *layout) {
    transfer_u8(s, &layout->kind);
    transfer_u8(s, &layout->rank);
    transfer_u8(s, &layout->block_count);
    if (layout->rank > ENT_MAX_RANK || layout->block_count > ENT_MAX_BLOCKS) {
        stream_fail(s, "a layout has too many axes or blocks");
        *layout = (ent_layout){0};
    }
    transfer_bytes(s, layout->order, layout->rank);
    for (uint32_t i = 0; i < layout->block_count; i++) {
        transfer_u8(s, &layout->block_axis[i]);
        transfer_bytes(s, &layout->block_size[i], sizeof layout->block_size[i]);
    }
    transfer_u64(s, &layout->opaque);
}

/* Bytes of another section: offset there and size. */
static void transfer_place(ent_bundle_stream *s, const uint64_t *written, uint32_t index,
                           const uint8_t *section, uint64_t section_bytes, const void **data,
                           uint64_t *size) {
    uint64_t offset = s->writing ? written[index] : 0;
    transfer_u64(s, &offset);
    transfer_u64(s, size);
    if (s->writing) return;
    *data = NULL;
    if (offset % ENT_BUNDLE_ALIGNMENT != 0 || offset > section_bytes || *size > section_bytes - offset) {
        stream_fail(s, "a constant or a kernel lies outside its section");
        *size = 0;
        return;
    }
    *data = section + offset;
}

static void transfer_constant(ent_bundle_stream *s, ent_program_constant *c, uint32_t index) {
    transfer_u64(s, &c->hash.low);
    transfer_u64(s, &c->hash.high);
    transfer_u32(s, &c->dtype);
    transfer_shape(s, &c->rank, c->dims);
    transfer_layout(s, &c->layout);
    transfer_place(s, s->places->constants, index, s->places->constant_data, s->places->constant_bytes,
                   &c->data, &c->size_bytes);
}

static void transfer_kernel(ent_bundle_stream *s, ent_program_kernel *k, uint32_t index) {
    transfer_u32(s, &k->device);
    transfer_u32(s, &k->depth);
    transfer_u32(s, &k->tier);
    transfer_string(s, &k->name);
    transfer_string(s, &k->requirement);
    transfer_place(s, s->places->blobs, index, s->places->blob_data, s->places->blob_bytes, &k->blob,
                   &k->blob_bytes);
}

static void transfer_value(ent_bundle_stream *s, ent_program_value *v) {
    transfer_u32(s, &v->kind);
    transfer_u32(s, &v->device);
    transfer_u32(s, &v->index);
    transfer_u32(s, &v->dtype);
    transfer_string(s, &v->name);
    transfer_shape(s, &v->rank, v->dims);
    transfer_layout(s, &v->layout);
    transfer_i64(s, &v->size_bytes);
    transfer_i64(s, &v->offset_bytes);
}

static void transfer_step(ent_bundle_stream *s, ent_program_step *step) {
    transfer_u32(s, &step->kind);
    transfer_u32(s, &step->device);
    transfer_u32(s, &step->kernel);
    transfer_u32(s, &step->condition);
    transfer_u32(s, &step->trips);
    transfer_u32(s, &step->function[0]);
    transfer_u32(s, &step->function[1]);
    transfer_ids(s, &step->values, &step->value_count);
    transfer_u32(s, &step->split);
    transfer_u32(s, &step->region);
    transfer_bytes(s, &step->predicted_ns, sizeof step->predicted_ns);
    transfer_string(s, &step->name);
    transfer_ids(s, &step->waits, &step->wait_count);
}

static void transfer_function(ent_bundle_stream *s, ent_program_function *f, uint32_t device_count) {
    transfer_string(s, &f->name);
    ent_program_value *values = transfer_array(s, f->values, &f->value_count, sizeof *values, 40);
    for (uint32_t i = 0; i < f->value_count; i++) transfer_value(s, &values[i]);
    f->values = values;
    transfer_ids(s, &f->inputs, &f->input_count);
    transfer_ids(s, &f->outputs, &f->output_count);
    ent_program_step *steps = transfer_array(s, f->steps, &f->step_count, sizeof *steps, 44);
    for (uint32_t i = 0; i < f->step_count; i++) transfer_step(s, &steps[i]);
    f->steps = steps;
    uint32_t frame_count = f->arena_bytes ? device_count : 0;
    ent_dim *frames = transfer_array(s, f->arena_bytes, &frame_count, sizeof *frames, sizeof *frames);
    for (uint32_t i = 0; i < frame_count; i++) transfer_i64(s, &frames[i]);
    if (frame_count != 0 && frame_count != device_count)
        stream_fail(s, "a function has a frame for some devices only");
    f->arena_bytes = frame_count ? frames : NULL;
}

static void transfer_symbol(ent_bundle_stream *s, ent_program_symbol *symbol) {
    transfer_string(s, &symbol->name);
    transfer_i64(s, &symbol->min);
    transfer_i64(s, &symbol->max);
    transfer_i64(s, &symbol->multiple_of);
    transfer_u32(s, &symbol->input);
    transfer_u32(s, &symbol->axis);
}

static void transfer_expr(ent_bundle_stream *s, ent_expr *e) {
    transfer_u32(s, &e->kind);
    transfer_i64(s, &e->a);
    transfer_i64(s, &e->b);
}

static void transfer_device(ent_bundle_stream *s, ent_program_device *d) {
    transfer_string(s, &d->name);
    transfer_string(s, &d->plugin);
    transfer_string(s, &d->parameters);
}

void ent_bundle_transfer_program(ent_bundle_stream *s, ent_program *p) {
    transfer_string(s, &p->name);
    ent_program_symbol *symbols = transfer_array(s, p->symbols, &p->symbol_count, sizeof *symbols, 37);
    for (uint32_t i = 0; i < p->symbol_count; i++) transfer_symbol(s, &symbols[i]);
    p->symbols = symbols;
    ent_expr *exprs = transfer_array(s, p->exprs, &p->expr_count, sizeof *exprs, 20);
    for (uint32_t i = 0; i < p->expr_count; i++) transfer_expr(s, &exprs[i]);
    p->exprs = exprs;
    ent_program_device *devices = transfer_array(s, p->devices, &p->device_count, sizeof *devices, 15);
    for (uint32_t i = 0; i < p->device_count; i++) transfer_device(s, &devices[i]);
    p->devices = devices;
    ent_program_constant *constants =
        transfer_array(s, p->constants, &p->constant_count, sizeof *constants, 47);
    for (uint32_t i = 0; i < p->constant_count; i++) transfer_constant(s, &constants[i], i);
    p->constants = constants;
    ent_program_kernel *kernels = transfer_array(s, p->kernels, &p->kernel_count, sizeof *kernels, 38);
    for (uint32_t i = 0; i < p->kernel_count; i++) transfer_kernel(s, &kernels[i], i);
    p->kernels = kernels;
    ent_program_function *functions =
        transfer_array(s, p->functions, &p->function_count, sizeof *functions, 25);
    for (uint32_t i = 0; i < p->function_count; i++) transfer_function(s, &functions[i], p->device_count);
    p->functions = functions;
    ent_program_guard *guards = transfer_array(s, p->guards, &p->guard_count, sizeof *guards, 8);
    for (uint32_t i = 0; i < p->guard_count; i++) {
        transfer_u32(s, &guards[i].input);
        transfer_u32(s, &guards[i].constant);
    }
    p->guards = guards;
    if (!s->writing && !s->failed && s->at != s->size) stream_fail(s, "bytes are left behind the tables");
}
