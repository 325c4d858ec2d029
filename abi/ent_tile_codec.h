/* Tile programs as message bytes (ent_message.h, kind tile_program) and back; each way is the other's
 * inverse.
 *
 * Record order: tile_program, symbols, exprs, tile_axis (grid), tile_buffer, tile_value, tile_access each
 * followed by its tile_index records, tile_op. Decoding checks that the bytes fit the C structs, not that the
 * program is legal: hand the result to ent_ops_tile_verify. Static inline, no library. */
#ifndef ENT_TILE_CODEC_H
#define ENT_TILE_CODEC_H

#include "abi/ent_message.h"
#include "abi/ent_tile.h"

/* ---- encoding ---- */

static inline void ent_tile_encode_tables(ent_message_writer *w, const ent_tile_program *p) {
    for (uint32_t i = 0; i < p->symbol_count; i++) {
        ent_message_record_begin(w, ENT_RECORD_symbol);
        ent_message_put_str(w, ENT_FIELD_symbol_name, p->symbols[i]);
        ent_message_record_end(w);
    }
    for (uint32_t i = 0; i < p->expr_count; i++) {
        ent_message_record_begin(w, ENT_RECORD_expr);
        ent_message_put_u64(w, ENT_FIELD_expr_kind, p->exprs[i].kind);
        ent_message_put_i64(w, ENT_FIELD_expr_a, p->exprs[i].a);
        ent_message_put_i64(w, ENT_FIELD_expr_b, p->exprs[i].b);
        ent_message_record_end(w);
    }
    for (uint32_t i = 0; i < p->grid_count; i++) {
        ent_message_record_begin(w, ENT_RECORD_tile_axis);
        ent_message_put_i64(w, ENT_FIELD_tile_axis_extent, p->grid[i].extent);
        ent_message_put_i64(w, ENT_FIELD_tile_axis_step, p->grid[i].step);
        ent_message_record_end(w);
    }
    for (uint32_t i = 0; i < p->buffer_count; i++) {
        const ent_tile_buffer *b = &p->buffers[i];
        ent_message_record_begin(w, ENT_RECORD_tile_buffer);
        ent_message_put_u64(w, ENT_FIELD_tile_buffer_role, b->role);
        ent_message_put_u64(w, ENT_FIELD_tile_buffer_dtype, b->dtype);
        ent_message_put_i64s(w, ENT_FIELD_tile_buffer_dims, b->dims, b->rank <= ENT_MAX_RANK ? b->rank : 0);
        ent_message_put_layout(w, ENT_FIELD_tile_buffer_layout, &b->layout);
        ent_message_record_end(w);
        if (b->rank > ENT_MAX_RANK) w->failed = true;
    }
    for (uint32_t i = 0; i < p->value_count; i++) {
        const ent_tile_value *t = &p->values[i];
        ent_message_record_begin(w, ENT_RECORD_tile_value);
        ent_message_put_u64(w, ENT_FIELD_tile_value_dtype, t->dtype);
        ent_message_put_u64(w, ENT_FIELD_tile_value_space, t->space);
        ent_message_put_i64s(w, ENT_FIELD_tile_value_shape, t->shape,
                             t->rank <= ENT_TILE_MAX_RANK ? t->rank : 0);
        ent_message_record_end(w);
        if (t->rank > ENT_TILE_MAX_RANK) w->failed = true;
    }
}

static inline void ent_tile_encode_index(ent_message_writer *w, const ent_tile_index *x) {
    int64_t terms[2 * ENT_TILE_MAX_TERMS];
    if (x->term_count > ENT_TILE_MAX_TERMS) {
        w->failed = true;
        return;
    }
    for (uint32_t t = 0; t < x->term_count; t++) {
        terms[2 * t] = x->terms[t].variable;
        terms[2 * t + 1] = x->terms[t].coefficient;
    }
    ent_message_record_begin(w, ENT_RECORD_tile_index);
    ent_message_put_i64(w, ENT_FIELD_tile_index_base, x->base);
    ent_message_put_u64(w, ENT_FIELD_tile_index_tile_axis, x->tile_axis);
    ent_message_put_i64(w, ENT_FIELD_tile_index_step, x->step);
    ent_message_put_i64(w, ENT_FIELD_tile_index_divisor, x->divisor);
    ent_message_put_u64(w, ENT_FIELD_tile_index_exact, x->exact);
    ent_message_put_u64(w, ENT_FIELD_tile_index_gather, x->gather);
    ent_message_put_i64(w, ENT_FIELD_tile_index_bound, x->bound);
    ent_message_put_i64s(w, ENT_FIELD_tile_index_terms, terms, 2 * (size_t)x->term_count);
    ent_message_record_end(w);
}

static inline void ent_tile_encode_op(ent_message_writer *w, const ent_tile_op *op) {
    int64_t sources[ENT_TILE_MAX_SOURCES];
    uint64_t perm = 0;
    if (op->source_count > ENT_TILE_MAX_SOURCES) {
        w->failed = true;
        return;
    }
    for (uint32_t i = 0; i < op->source_count; i++) sources[i] = op->source[i];
    for (uint32_t i = 0; i < ENT_TILE_MAX_RANK; i++) perm |= (uint64_t)op->perm[i] << (8 * i);
    ent_message_record_begin(w, ENT_RECORD_tile_op);
    ent_message_put_u64(w, ENT_FIELD_tile_op_opcode, op->opcode);
    ent_message_put_u64(w, ENT_FIELD_tile_op_kind, op->kind);
    ent_message_put_u64(w, ENT_FIELD_tile_op_dst, op->dst);
    ent_message_put_i64s(w, ENT_FIELD_tile_op_sources, sources, op->source_count);
    ent_message_put_u64(w, ENT_FIELD_tile_op_access, op->access);
    ent_message_put_u64(w, ENT_FIELD_tile_op_flags, op->flags);
    ent_message_put_u64(w, ENT_FIELD_tile_op_axis_mask, op->axis_mask);
    ent_message_put_u64(w, ENT_FIELD_tile_op_variable, op->variable);
    ent_message_put_i64(w, ENT_FIELD_tile_op_begin, op->begin);
    ent_message_put_i64(w, ENT_FIELD_tile_op_end, op->end);
    ent_message_put_i64(w, ENT_FIELD_tile_op_step, op->step);
    ent_message_put_u64(w, ENT_FIELD_tile_op_count, op->count);
    ent_message_put_u64(w, ENT_FIELD_tile_op_perm, perm);
    ent_message_put_f64(w, ENT_FIELD_tile_op_f0, op->f[0]);
    ent_message_put_f64(w, ENT_FIELD_tile_op_f1, op->f[1]);
    ent_message_record_end(w);
}

/* Writes the whole message; the bytes are writer->data, writer->size. Fails when a count exceeds its array in
 * the structs, or memory runs out. */
static inline ent_code ent_tile_program_encode(const ent_tile_program *program, ent_message_writer *writer) {
    ent_message_begin(writer, ENT_MESSAGE_tile_program);
    ent_message_record_begin(writer, ENT_RECORD_tile_program);
    ent_message_put_str(writer, ENT_FIELD_tile_program_name, program->name);
    ent_message_put_u64(writer, ENT_FIELD_tile_program_variable_count, program->variable_count);
    ent_message_record_end(writer);
    ent_tile_encode_tables(writer, program);
    for (uint32_t i = 0; i < program->access_count; i++) {
        const ent_tile_access *access = &program->accesses[i];
        ent_message_record_begin(writer, ENT_RECORD_tile_access);
        ent_message_put_u64(writer, ENT_FIELD_tile_access_buffer, access->buffer);
        ent_message_put_u64(writer, ENT_FIELD_tile_access_rank, access->rank);
        ent_message_record_end(writer);
        if (access->rank > ENT_MAX_RANK) writer->failed = true;
        for (uint32_t d = 0; d < access->rank && d < ENT_MAX_RANK; d++)
            ent_tile_encode_index(writer, &access->index[d]);
    }
    for (uint32_t i = 0; i < program->op_count; i++) ent_tile_encode_op(writer, &program->ops[i]);
    return ent_message_end(writer);
}

/* ---- decoding ---- */

/* A u32 field; false when the stored number is larger. */
static inline bool ent_tile_decode_u32(const ent_message_record *r, uint32_t field, uint32_t *out) {
    uint64_t value = ent_message_get_u64(r, field);
    *out = (uint32_t)value;
    return value <= UINT32_MAX;
}

static inline bool ent_tile_decode_buffer(const ent_message_record *r, ent_tile_buffer *out) {
    out->rank = ent_message_get_i64s(r, ENT_FIELD_tile_buffer_dims, out->dims, ENT_MAX_RANK);
    return out->rank <= ENT_MAX_RANK && ent_tile_decode_u32(r, ENT_FIELD_tile_buffer_role, &out->role) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_buffer_dtype, &out->dtype) &&
           ent_message_get_layout(r, ENT_FIELD_tile_buffer_layout, &out->layout);
}

static inline bool ent_tile_decode_value(const ent_message_record *r, ent_tile_value *out) {
    out->rank = ent_message_get_i64s(r, ENT_FIELD_tile_value_shape, out->shape, ENT_TILE_MAX_RANK);
    return out->rank <= ENT_TILE_MAX_RANK &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_value_dtype, &out->dtype) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_value_space, &out->space);
}

static inline bool ent_tile_decode_index(const ent_message_record *r, ent_tile_index *out) {
    int64_t terms[2 * ENT_TILE_MAX_TERMS];
    uint32_t count = ent_message_get_i64s(r, ENT_FIELD_tile_index_terms, terms, 2 * ENT_TILE_MAX_TERMS);
    if (count > 2 * ENT_TILE_MAX_TERMS || count % 2 != 0) return false;
    out->term_count = count / 2;
    for (uint32_t t = 0; t < out->term_count; t++) {
        if (terms[2 * t] < 0 || terms[2 * t] > (int64_t)UINT32_MAX) return false;
        out->terms[t].variable = (uint32_t)terms[2 * t];
        out->terms[t].coefficient = terms[2 * t + 1];
    }
    out->base = ent_message_get_i64(r, ENT_FIELD_tile_index_base);
    out->step = ent_message_get_i64(r, ENT_FIELD_tile_index_step);
    out->divisor = ent_message_get_i64(r, ENT_FIELD_tile_index_divisor);
    out->bound = ent_message_get_i64(r, ENT_FIELD_tile_index_bound);
    return ent_tile_decode_u32(r, ENT_FIELD_tile_index_tile_axis, &out->tile_axis) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_index_exact, &out->exact) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_index_gather, &out->gather);
}

static inline bool ent_tile_decode_op(const ent_message_record *r, ent_tile_op *out) {
    int64_t sources[ENT_TILE_MAX_SOURCES];
    out->source_count = ent_message_get_i64s(r, ENT_FIELD_tile_op_sources, sources, ENT_TILE_MAX_SOURCES);
    if (out->source_count > ENT_TILE_MAX_SOURCES) return false;
    for (uint32_t i = 0; i < out->source_count; i++) {
        if (sources[i] < 0 || sources[i] > (int64_t)UINT32_MAX) return false;
        out->source[i] = (uint32_t)sources[i];
    }
    uint64_t perm = ent_message_get_u64(r, ENT_FIELD_tile_op_perm);
    if (perm >> (8 * ENT_TILE_MAX_RANK) != 0) return false;
    for (uint32_t i = 0; i < ENT_TILE_MAX_RANK; i++) out->perm[i] = (uint8_t)(perm >> (8 * i));
    out->begin = ent_message_get_i64(r, ENT_FIELD_tile_op_begin);
    out->end = ent_message_get_i64(r, ENT_FIELD_tile_op_end);
    out->step = ent_message_get_i64(r, ENT_FIELD_tile_op_step);
    out->f[0] = ent_message_get_f64(r, ENT_FIELD_tile_op_f0);
    out->f[1] = ent_message_get_f64(r, ENT_FIELD_tile_op_f1);
    return ent_tile_decode_u32(r, ENT_FIELD_tile_op_opcode, &out->opcode) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_kind, &out->kind) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_dst, &out->dst) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_access, &out->access) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_flags, &out->flags) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_axis_mask, &out->axis_mask) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_variable, &out->variable) &&
           ent_tile_decode_u32(r, ENT_FIELD_tile_op_count, &out->count);
}

/* Destination arrays while decoding: what the program's const pointers point at. */
typedef struct ent_tile_decoder {
    ent_tile_program *program;
    ent_tile_axis *grid;
    ent_tile_buffer *buffers;
    ent_tile_value *values;
    ent_tile_access *accesses;
    ent_tile_op *ops;
    ent_expr *exprs;
    ent_str *symbols;
    uint32_t indices_due;   /* of the newest access */
    uint32_t program_count; /* tile_program records seen */
} ent_tile_decoder;

/* Counts first, so that each array is allocated once. */
static inline void ent_tile_decode_count(ent_message_reader *reader, ent_tile_program *p) {
    ent_message_record r;
    while (ent_message_next(reader, &r)) {
        switch (r.tag) {
        case ENT_RECORD_symbol:
            p->symbol_count++;
            break;
        case ENT_RECORD_expr:
            p->expr_count++;
            break;
        case ENT_RECORD_tile_axis:
            p->grid_count++;
            break;
        case ENT_RECORD_tile_buffer:
            p->buffer_count++;
            break;
        case ENT_RECORD_tile_value:
            p->value_count++;
            break;
        case ENT_RECORD_tile_access:
            p->access_count++;
            break;
        case ENT_RECORD_tile_op:
            p->op_count++;
            break;
        default:
            break;
        }
    }
    ent_message_rewind(reader);
}

/* `size` zero bytes, or NULL. */
static inline void *ent_tile_decode_room(void *(*allocate)(void *, size_t), void *context, size_t count,
                                         size_t size) {
    uint8_t *room = (uint8_t *)allocate(context, count > 0 ? count * size : 1);
    for (size_t i = 0; room && i < count * size; i++) room[i] = 0;
    return room;
}

static inline bool ent_tile_decode_record(ent_tile_decoder *d, const ent_message_record *r) {
    ent_tile_program *p = d->program;
    if (d->indices_due > 0 && r->tag != ENT_RECORD_tile_index) return false;
    switch (r->tag) {
    case ENT_RECORD_tile_program:
        p->name = ent_message_get_str(r, ENT_FIELD_tile_program_name);
        return d->program_count++ == 0 &&
               ent_tile_decode_u32(r, ENT_FIELD_tile_program_variable_count, &p->variable_count);
    case ENT_RECORD_symbol:
        d->symbols[p->symbol_count++] = ent_message_get_str(r, ENT_FIELD_symbol_name);
        return true;
    case ENT_RECORD_expr: {
        ent_expr *e = &d->exprs[p->expr_count++];
        e->a = ent_message_get_i64(r, ENT_FIELD_expr_a);
        e->b = ent_message_get_i64(r, ENT_FIELD_expr_b);
        return ent_tile_decode_u32(r, ENT_FIELD_expr_kind, &e->kind);
    }
    case ENT_RECORD_tile_axis:
        d->grid[p->grid_count].extent = ent_message_get_i64(r, ENT_FIELD_tile_axis_extent);
        d->grid[p->grid_count++].step = ent_message_get_i64(r, ENT_FIELD_tile_axis_step);
        return true;
    case ENT_RECORD_tile_buffer:
        return ent_tile_decode_buffer(r, &d->buffers[p->buffer_count++]);
    case ENT_RECORD_tile_value:
        return ent_tile_decode_value(r, &d->values[p->value_count++]);
    case ENT_RECORD_tile_access: {
        ent_tile_access *access = &d->accesses[p->access_count++];
        if (!ent_tile_decode_u32(r, ENT_FIELD_tile_access_buffer, &access->buffer) ||
            !ent_tile_decode_u32(r, ENT_FIELD_tile_access_rank, &access->rank))
            return false;
        d->indices_due = access->rank;
        return access->rank <= ENT_MAX_RANK;
    }
    case ENT_RECORD_tile_index: {
        if (d->indices_due == 0) return false;
        ent_tile_access *access = &d->accesses[p->access_count - 1];
        return ent_tile_decode_index(r, &access->index[access->rank - d->indices_due--]);
    }
    case ENT_RECORD_tile_op:
        return ent_tile_decode_op(r, &d->ops[p->op_count++]);
    default:
        return true;
    }
}

/* Fills *out; its arrays come from allocate(context, bytes) (at most seven calls; freeing them is the
 * caller's, an arena is best), its texts point into the bytes. ENT_CODE_BAD_MESSAGE, ENT_CODE_UNSUPPORTED or
 * ENT_CODE_OUT_OF_MEMORY otherwise. The result is not verified. */
static inline ent_code ent_tile_program_decode(const void *bytes, size_t size,
                                               void *(*allocate)(void *context, size_t bytes), void *context,
                                               ent_tile_program *out) {
    ent_tile_program empty = {{NULL, 0}, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, 0, NULL, 0, NULL, 0};
    ent_message_reader reader;
    ent_message_record record;
    ent_code code = ent_message_open(&reader, bytes, size);
    *out = empty;
    if (code != ENT_OK) return code;
    if (reader.kind != ENT_MESSAGE_tile_program) return ENT_CODE_BAD_MESSAGE;
    ent_tile_program total = empty;
    ent_tile_decode_count(&reader, &total);
    ent_tile_decoder d = {out, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0};
    d.grid = (ent_tile_axis *)ent_tile_decode_room(allocate, context, total.grid_count, sizeof *d.grid);
    d.buffers =
        (ent_tile_buffer *)ent_tile_decode_room(allocate, context, total.buffer_count, sizeof *d.buffers);
    d.values = (ent_tile_value *)ent_tile_decode_room(allocate, context, total.value_count, sizeof *d.values);
    d.accesses =
        (ent_tile_access *)ent_tile_decode_room(allocate, context, total.access_count, sizeof *d.accesses);
    d.ops = (ent_tile_op *)ent_tile_decode_room(allocate, context, total.op_count, sizeof *d.ops);
    d.exprs = (ent_expr *)ent_tile_decode_room(allocate, context, total.expr_count, sizeof *d.exprs);
    d.symbols = (ent_str *)ent_tile_decode_room(allocate, context, total.symbol_count, sizeof *d.symbols);
    out->grid = d.grid;
    out->buffers = d.buffers;
    out->values = d.values;
    out->accesses = d.accesses;
    out->ops = d.ops;
    out->exprs = d.exprs;
    out->symbols = d.symbols;
    if (!d.grid || !d.buffers || !d.values || !d.accesses || !d.ops || !d.exprs || !d.symbols)
        return ENT_CODE_OUT_OF_MEMORY;
    while (ent_message_next(&reader, &record))
        if (!ent_tile_decode_record(&d, &record)) return ENT_CODE_BAD_MESSAGE;
    return d.indices_due == 0 && d.program_count == 1 ? ENT_OK : ENT_CODE_BAD_MESSAGE;
}

#endif
