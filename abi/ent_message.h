/* The flat byte form of every message between the core and a plugin: one encoding for calls, transcripts and
 * child processes.
 *
 * Little-endian, 8-aligned, no pointers. A message is a header and records one after another:
 *   header  32 bytes  u32 magic 'ENTM', u16 version 1, u16 header_size 32, u64 total_bytes, u32 kind, u32
 * record_count, u64 reserved 0 record  16 bytes  u32 tag (bit 31: must understand), u16 version, u16
 * field_count, u64 size_bytes (whole record, a multiple of 8); then field_count slots of 8 bytes; then the
 * data that slots refer to slot              u64, i64, f64, or a reference {u32 offset from the record's
 * start (multiple of 8), u32 count}; count is bytes for STR and BYTES, elements for I64S, U64S, F64S; count 0
 * is empty whatever the offset A field beyond field_count reads as zero or empty, so old and new sides
 * understand each other. Records with an unknown tag are skipped, or refuse the message when bit 31 is set.
 * Bytes are hostile: ent_message_open checks everything once, and every accessor checks its own reference
 * again. The base pointer needs no alignment; the host's byte order does not matter.
 *
 * What records exist and what their fields mean: ent_message.def. All functions are static inline; none
 * allocates but through the writer's grow callback; any thread may use its own reader or writer. */
#ifndef ENT_MESSAGE_H
#define ENT_MESSAGE_H

#include "abi/ent_types.h"

#define ENT_MESSAGE_MAGIC 0x4d544e45u /* "ENTM" */
#define ENT_MESSAGE_VERSION 1u
#define ENT_MESSAGE_HEADER_BYTES 32u
#define ENT_MESSAGE_RECORD_BYTES 16u
#define ENT_MESSAGE_MUST_UNDERSTAND 0x80000000u

/* ENT_MESSAGE_survey_request ... */
typedef enum ent_message_kind {
    ENT_MESSAGE_NONE = 0,
#define ENT_MESSAGE(kind, name) ENT_MESSAGE_##name = kind,
#include "abi/ent_message.def"
} ent_message_kind;

/* ENT_RECORD_symbol ...: tags, without bit 31 */
typedef enum ent_message_tag {
    ENT_RECORD_NONE = 0,
#define ENT_RECORD(tag, name, version, must_understand) ENT_RECORD_##name = tag,
#include "abi/ent_message.def"
} ent_message_tag;

/* ENT_FIELD_symbol_name ...: indices within the record */
typedef enum ent_message_field {
#define ENT_FIELD(record, index, name, type) ENT_FIELD_##record##_##name = index,
#include "abi/ent_message.def"
} ent_message_field;

typedef enum ent_field_type {
    ENT_FIELD_TYPE_U64 = 1,
    ENT_FIELD_TYPE_I64 = 2,
    ENT_FIELD_TYPE_F64 = 3,
    ENT_FIELD_TYPE_STR = 4,
    ENT_FIELD_TYPE_BYTES = 5,
    ENT_FIELD_TYPE_I64S = 6,
    ENT_FIELD_TYPE_U64S = 7,
    ENT_FIELD_TYPE_F64S = 8
} ent_field_type;

/* verdict.kind */
typedef enum ent_verdict_kind {
    ENT_VERDICT_ACCEPT = 1,
    ENT_VERDICT_COUNTER = 2,
    ENT_VERDICT_DECLINE = 3
} ent_verdict_kind;

/* request.kind: the closed vocabulary of rewrites that a counter may ask for. Append only. */
typedef enum ent_request_kind {
    ENT_REQUEST_LAYOUT = 1,    /* node, port: stored in `layout` */
    ENT_REQUEST_DECOMPOSE = 2, /* node: replace by its table decomposition */
    ENT_REQUEST_PAD = 3,       /* node, port, axis: extent up to a multiple of `value` */
    ENT_REQUEST_SPLIT = 4,     /* node, axis: in pieces of at most `value` */
    ENT_REQUEST_DTYPE = 5,     /* node, port: stored as dtype `value`; lossy, needs the user's policy */
    ENT_REQUEST_DROP = 6,      /* the region without `node` */
    ENT_REQUEST_TILE = 7       /* axis: tile step `value` */
} ent_request_kind;

/* ---- the record table ---- */

typedef struct ent_message_field_info {
    uint32_t tag;
    uint32_t index;
    uint32_t type; /* ent_field_type */
    const char *name;
} ent_message_field_info;

typedef struct ent_message_record_info {
    uint32_t tag;
    uint32_t version;
    bool must_understand;
    uint32_t first_field; /* in the field table */
    const char *name;
} ent_message_record_info;

/* Flat position of each record's first field: records emit FIRST and step back by one, so that the next
 * enumerator (the first field's) takes the same number. */
enum ent_message_positions {
#define ENT_RECORD(tag, name, version, must_understand)                                                      \
    ENT_MESSAGE_FIRST_##name, ENT_MESSAGE_BACK_##name = ENT_MESSAGE_FIRST_##name - 1,
#define ENT_FIELD(record, index, name, type) ENT_MESSAGE_POSITION_##record##_##name,
#include "abi/ent_message.def"
    ENT_MESSAGE_FIELD_TOTAL
};

/* All fields in order; out_count is their number. */
static inline const ent_message_field_info *ent_message_fields(uint32_t *out_count) {
    static const ent_message_field_info table[] = {
#define ENT_FIELD(record, index, name, type) {ENT_RECORD_##record, index, ENT_FIELD_TYPE_##type, #name},
#include "abi/ent_message.def"
    };
    *out_count = (uint32_t)ENT_MESSAGE_FIELD_TOTAL;
    return table;
}

/* All records in order. */
static inline const ent_message_record_info *ent_message_records(uint32_t *out_count) {
    static const ent_message_record_info table[] = {
#define ENT_RECORD(tag, name, version, must_understand)                                                      \
    {ENT_RECORD_##name, version, must_understand != 0, (uint32_t)ENT_MESSAGE_FIRST_##name, #name},
#include "abi/ent_message.def"
    };
    *out_count = (uint32_t)(sizeof table / sizeof table[0]);
    return table;
}

/* NULL for an unknown tag (bit 31 is ignored). */
static inline const ent_message_record_info *ent_message_record_find(uint32_t tag) {
    uint32_t count = 0;
    const ent_message_record_info *table = ent_message_records(&count);
    tag &= ~ENT_MESSAGE_MUST_UNDERSTAND;
    for (uint32_t i = 0; i < count; i++)
        if (table[i].tag == tag) return &table[i];
    return NULL;
}

/* Field `index` of a record; NULL if our table has none. */
static inline const ent_message_field_info *ent_message_field_find(const ent_message_record_info *record,
                                                                   uint32_t index) {
    uint32_t count = 0;
    const ent_message_field_info *table = ent_message_fields(&count);
    if (index >= count - record->first_field || table[record->first_field + index].tag != record->tag)
        return NULL;
    return &table[record->first_field + index];
}

static inline uint32_t ent_message_field_count(const ent_message_record_info *record) {
    uint32_t count = 0;
    while (ent_message_field_find(record, count)) count++;
    return count;
}

/* Text name of a message kind; NULL if unknown. */
static inline const char *ent_message_kind_name(uint32_t kind) {
    switch (kind) {
#define ENT_MESSAGE(kind_, name)                                                                             \
    case kind_:                                                                                              \
        return #name;
#include "abi/ent_message.def"
    default:
        return NULL;
    }
}

/* ---- bytes ---- */

static inline uint64_t ent_bytes_load(const uint8_t *at, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; i++) value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static inline void ent_bytes_store(uint8_t *at, uint32_t size, uint64_t value) {
    for (uint32_t i = 0; i < size; i++) at[i] = (uint8_t)(value >> (8 * i));
}

static inline double ent_bits_to_f64(uint64_t bits) {
    union {
        uint64_t u;
        double d;
    } both = {bits};
    return both.d;
}

static inline uint64_t ent_bits_from_f64(double value) {
    union {
        double d;
        uint64_t u;
    } both = {value};
    return both.u;
}

static inline uint64_t ent_message_field_width(uint32_t type) {
    return type == ENT_FIELD_TYPE_STR || type == ENT_FIELD_TYPE_BYTES ? 1 : 8;
}

/* ---- reading ---- */

/* A checked message. Borrows the bytes; strings and arrays read from it point into them. */
typedef struct ent_message_reader {
    const uint8_t *data;
    size_t size;
    uint32_t kind;
    uint32_t record_count;
    size_t at; /* of the next record */
} ent_message_reader;

typedef struct ent_message_record {
    const uint8_t *data;
    uint64_t size;
    uint32_t tag; /* without bit 31 */
    bool must_understand;
    uint16_t version;
    uint16_t field_count;
} ent_message_record;

/* Elements of an array field; read them with the _at functions. */
typedef struct ent_message_array {
    const uint8_t *data;
    uint32_t count;
} ent_message_array;

/* Splits off the record at `at`. False when its head or size does not fit. */
static inline bool ent_message_record_read(const uint8_t *data, size_t size, size_t at,
                                           ent_message_record *out) {
    if (at > size || size - at < ENT_MESSAGE_RECORD_BYTES) return false;
    const uint8_t *p = data + at;
    uint32_t tag = (uint32_t)ent_bytes_load(p, 4);
    out->data = p;
    out->tag = tag & ~ENT_MESSAGE_MUST_UNDERSTAND;
    out->must_understand = (tag & ENT_MESSAGE_MUST_UNDERSTAND) != 0;
    out->version = (uint16_t)ent_bytes_load(p + 4, 2);
    out->field_count = (uint16_t)ent_bytes_load(p + 6, 2);
    out->size = ent_bytes_load(p + 8, 8);
    return out->size % 8 == 0 && out->size <= size - at &&
           out->size >= ENT_MESSAGE_RECORD_BYTES + 8u * (uint64_t)out->field_count;
}

/* The 8 bytes of a slot; 0 beyond field_count. */
static inline uint64_t ent_message_slot(const ent_message_record *record, uint32_t field) {
    if (field >= record->field_count) return 0;
    return ent_bytes_load(record->data + ENT_MESSAGE_RECORD_BYTES + 8u * (size_t)field, 8);
}

/* Resolves a reference of elements of `width` bytes. False when it leaves the record's data or is misaligned.
 */
static inline bool ent_message_reference(const ent_message_record *record, uint32_t field, uint64_t width,
                                         ent_message_array *out) {
    uint64_t slot = ent_message_slot(record, field);
    uint64_t offset = slot & 0xffffffffu, count = slot >> 32;
    out->data = NULL;
    out->count = 0;
    if (count == 0) return true;
    if (offset % 8 != 0 || offset < ENT_MESSAGE_RECORD_BYTES + 8u * (uint64_t)record->field_count)
        return false;
    if (offset > record->size || count * width > record->size - offset)
        return false; /* count < 2^32, width <= 8 */
    out->data = record->data + offset;
    out->count = (uint32_t)count;
    return true;
}

static inline bool ent_message_record_check(const ent_message_record *record,
                                            const ent_message_record_info *info) {
    for (uint32_t i = 0; i < record->field_count; i++) {
        const ent_message_field_info *field = ent_message_field_find(info, i);
        ent_message_array array;
        if (!field) break; /* newer fields than ours: nobody reads them */
        if (field->type < ENT_FIELD_TYPE_STR) continue;
        if (!ent_message_reference(record, i, ent_message_field_width(field->type), &array)) return false;
    }
    return true;
}

/* Checks the whole message: header, sizes, every known record's references.
 * ENT_CODE_BAD_MESSAGE: the bytes break the form. ENT_CODE_UNSUPPORTED: form version, or an unknown
 * must-understand record. */
static inline ent_code ent_message_open(ent_message_reader *out, const void *bytes, size_t size) {
    const uint8_t *data = (const uint8_t *)bytes;
    ent_message_reader empty = {NULL, 0, 0, 0, 0};
    *out = empty;
    if (!data || size < ENT_MESSAGE_HEADER_BYTES) return ENT_CODE_BAD_MESSAGE;
    if (ent_bytes_load(data, 4) != ENT_MESSAGE_MAGIC) return ENT_CODE_BAD_MESSAGE;
    if (ent_bytes_load(data + 4, 2) != ENT_MESSAGE_VERSION) return ENT_CODE_UNSUPPORTED;
    if (ent_bytes_load(data + 6, 2) != ENT_MESSAGE_HEADER_BYTES) return ENT_CODE_BAD_MESSAGE;
    if (ent_bytes_load(data + 8, 8) != size || ent_bytes_load(data + 24, 8) != 0) return ENT_CODE_BAD_MESSAGE;
    uint32_t count = (uint32_t)ent_bytes_load(data + 20, 4);
    size_t at = ENT_MESSAGE_HEADER_BYTES;
    bool unknown = false;
    for (uint32_t i = 0; i < count; i++) {
        ent_message_record record;
        if (!ent_message_record_read(data, size, at, &record)) return ENT_CODE_BAD_MESSAGE;
        const ent_message_record_info *info = ent_message_record_find(record.tag);
        if (info && !ent_message_record_check(&record, info)) return ENT_CODE_BAD_MESSAGE;
        if (!info && record.must_understand) unknown = true;
        at += (size_t)record.size;
    }
    if (at != size) return ENT_CODE_BAD_MESSAGE;
    if (unknown) return ENT_CODE_UNSUPPORTED;
    out->data = data;
    out->size = size;
    out->kind = (uint32_t)ent_bytes_load(data + 16, 4);
    out->record_count = count;
    out->at = ENT_MESSAGE_HEADER_BYTES;
    return ENT_OK;
}

/* The next record, known or not (switch on record.tag; ignore tags that you do not know). False at the end.
 */
static inline bool ent_message_next(ent_message_reader *reader, ent_message_record *out) {
    if (reader->at >= reader->size) return false;
    if (!ent_message_record_read(reader->data, reader->size, reader->at, out)) return false;
    reader->at += (size_t)out->size;
    return true;
}

/* Back to the first record. */
static inline void ent_message_rewind(ent_message_reader *reader) {
    reader->at = ENT_MESSAGE_HEADER_BYTES;
}

static inline uint64_t ent_message_get_u64(const ent_message_record *record, uint32_t field) {
    return ent_message_slot(record, field);
}
static inline int64_t ent_message_get_i64(const ent_message_record *record, uint32_t field) {
    return (int64_t)ent_message_slot(record, field);
}
static inline double ent_message_get_f64(const ent_message_record *record, uint32_t field) {
    return ent_bits_to_f64(ent_message_slot(record, field));
}
/* STR or BYTES; not NUL-terminated; empty when absent or out of range. */
static inline ent_str ent_message_get_str(const ent_message_record *record, uint32_t field) {
    ent_message_array array;
    ent_message_reference(record, field, 1, &array);
    ent_str text = {(const char *)array.data, array.count};
    return text;
}
/* I64S, U64S or F64S; empty when absent or out of range. */
static inline ent_message_array ent_message_get_array(const ent_message_record *record, uint32_t field) {
    ent_message_array array;
    ent_message_reference(record, field, 8, &array);
    return array;
}
static inline uint64_t ent_message_u64_at(ent_message_array array, uint32_t index) {
    return index < array.count ? ent_bytes_load(array.data + 8u * (size_t)index, 8) : 0;
}
static inline int64_t ent_message_i64_at(ent_message_array array, uint32_t index) {
    return (int64_t)ent_message_u64_at(array, index);
}
static inline double ent_message_f64_at(ent_message_array array, uint32_t index) {
    return ent_bits_to_f64(ent_message_u64_at(array, index));
}
/* Copies at most `capacity` elements; returns how many the field has. */
static inline uint32_t ent_message_get_i64s(const ent_message_record *record, uint32_t field, int64_t *out,
                                            uint32_t capacity) {
    ent_message_array array = ent_message_get_array(record, field);
    for (uint32_t i = 0; i < array.count && i < capacity; i++) out[i] = ent_message_i64_at(array, i);
    return array.count;
}

/* ---- writing ---- */

/* Fill in grow and ctx (or data and capacity for a fixed buffer) and zero the rest; then begin, records, end.
 * Fields of a record are put in ascending order; those left out are zero. Any misuse or failed growth sets
 * `failed`, and everything after is ignored: check it once, at ent_message_end. */
typedef struct ent_message_writer {
    uint8_t *data; /* owned by whoever owns ctx */
    size_t size, capacity;
    void *(*grow)(void *ctx, void *old, size_t size_bytes); /* like realloc; NULL: the buffer is fixed */
    void *ctx;
    bool failed;
    bool in_record;
    uint16_t field_count;
    uint32_t next_field;
    uint32_t record_count;
    size_t record_at;
} ent_message_writer;

/* Appends `size` zero bytes. NULL when out of memory. */
static inline uint8_t *ent_message_extend(ent_message_writer *writer, size_t size) {
    if (writer->failed) return NULL;
    if (size > writer->capacity - writer->size) {
        size_t capacity = writer->capacity < 256 ? 512 : writer->capacity * 2;
        if (size > SIZE_MAX / 4 || writer->size > SIZE_MAX / 4)
            capacity = 0;
        else if (capacity < writer->size + size)
            capacity = writer->size + size;
        void *data = writer->grow && capacity ? writer->grow(writer->ctx, writer->data, capacity) : NULL;
        if (!data) {
            writer->failed = true;
            return NULL;
        }
        writer->data = (uint8_t *)data;
        writer->capacity = capacity;
    }
    uint8_t *at = writer->data + writer->size;
    for (size_t i = 0; i < size; i++) at[i] = 0;
    writer->size += size;
    return at;
}

/* Starts a message; what was in the buffer is overwritten. */
static inline void ent_message_begin(ent_message_writer *writer, uint32_t kind) {
    writer->size = 0;
    writer->failed = false;
    writer->in_record = false;
    writer->record_count = 0;
    uint8_t *header = ent_message_extend(writer, ENT_MESSAGE_HEADER_BYTES);
    if (!header) return;
    ent_bytes_store(header, 4, ENT_MESSAGE_MAGIC);
    ent_bytes_store(header + 4, 2, ENT_MESSAGE_VERSION);
    ent_bytes_store(header + 6, 2, ENT_MESSAGE_HEADER_BYTES);
    ent_bytes_store(header + 16, 4, kind);
}

/* Starts a record as given: for readers' tests and for passing unknown records on. tag may carry bit 31. */
static inline void ent_message_record_begin_as(ent_message_writer *writer, uint32_t tag, uint16_t version,
                                               uint16_t field_count) {
    if (writer->in_record) writer->failed = true;
    writer->record_at = writer->size;
    uint8_t *head = ent_message_extend(writer, ENT_MESSAGE_RECORD_BYTES + 8u * (size_t)field_count);
    if (!head) return;
    ent_bytes_store(head, 4, tag);
    ent_bytes_store(head + 4, 2, version);
    ent_bytes_store(head + 6, 2, field_count);
    writer->in_record = true;
    writer->field_count = field_count;
    writer->next_field = 0;
}

/* Starts a record of the table (ENT_RECORD_...), with its version, flag and all its fields. */
static inline void ent_message_record_begin(ent_message_writer *writer, uint32_t tag) {
    const ent_message_record_info *info = ent_message_record_find(tag);
    if (!info) {
        writer->failed = true;
        return;
    }
    ent_message_record_begin_as(writer, info->tag | (info->must_understand ? ENT_MESSAGE_MUST_UNDERSTAND : 0),
                                (uint16_t)info->version, (uint16_t)ent_message_field_count(info));
}

static inline void ent_message_record_end(ent_message_writer *writer) {
    if (!writer->in_record) writer->failed = true;
    if (writer->failed) return;
    ent_bytes_store(writer->data + writer->record_at + 8, 8, writer->size - writer->record_at);
    writer->in_record = false;
    writer->record_count++;
}

static inline void ent_message_put_u64(ent_message_writer *writer, uint32_t field, uint64_t value) {
    if (!writer->in_record || field < writer->next_field || field >= writer->field_count)
        writer->failed = true;
    if (writer->failed) return;
    ent_bytes_store(writer->data + writer->record_at + ENT_MESSAGE_RECORD_BYTES + 8u * (size_t)field, 8,
                    value);
    writer->next_field = field + 1;
}
static inline void ent_message_put_i64(ent_message_writer *writer, uint32_t field, int64_t value) {
    ent_message_put_u64(writer, field, (uint64_t)value);
}
static inline void ent_message_put_f64(ent_message_writer *writer, uint32_t field, double value) {
    ent_message_put_u64(writer, field, ent_bits_from_f64(value));
}

/* Sets the reference and returns zeroed room for count * width bytes (NULL when empty or failed). */
static inline uint8_t *ent_message_put_room(ent_message_writer *writer, uint32_t field, size_t count,
                                            size_t width) {
    size_t offset = writer->size - writer->record_at;
    if (count > UINT32_MAX || (count > 0 && offset > UINT32_MAX)) writer->failed = true;
    ent_message_put_u64(writer, field, count ? (uint64_t)offset | (uint64_t)count << 32 : 0);
    if (writer->failed || count == 0) return NULL;
    if (count > SIZE_MAX / 16) {
        writer->failed = true;
        return NULL;
    }
    return ent_message_extend(writer, (count * width + 7) / 8 * 8);
}
/* STR or BYTES. data may be NULL when size is 0. */
static inline void ent_message_put_bytes(ent_message_writer *writer, uint32_t field, const void *data,
                                         size_t size) {
    uint8_t *room = ent_message_put_room(writer, field, size, 1);
    for (size_t i = 0; room && i < size; i++) room[i] = ((const uint8_t *)data)[i];
}
static inline void ent_message_put_str(ent_message_writer *writer, uint32_t field, ent_str text) {
    ent_message_put_bytes(writer, field, text.data, text.size);
}
/* NUL-terminated text; NULL is empty. */
static inline void ent_message_put_text(ent_message_writer *writer, uint32_t field, const char *text) {
    size_t size = 0;
    while (text && text[size]) size++;
    ent_message_put_bytes(writer, field, text, size);
}
static inline void ent_message_put_i64s(ent_message_writer *writer, uint32_t field, const int64_t *items,
                                        size_t count) {
    uint8_t *room = ent_message_put_room(writer, field, count, 8);
    for (size_t i = 0; room && i < count; i++) ent_bytes_store(room + 8 * i, 8, (uint64_t)items[i]);
}
/* The same from 32-bit ids; UINT32_MAX becomes -1 (absent). */
static inline void ent_message_put_u32s(ent_message_writer *writer, uint32_t field, const uint32_t *items,
                                        size_t count) {
    uint8_t *room = ent_message_put_room(writer, field, count, 8);
    for (size_t i = 0; room && i < count; i++)
        ent_bytes_store(room + 8 * i, 8, items[i] == UINT32_MAX ? UINT64_MAX : items[i]);
}
static inline void ent_message_put_u64s(ent_message_writer *writer, uint32_t field, const uint64_t *items,
                                        size_t count) {
    uint8_t *room = ent_message_put_room(writer, field, count, 8);
    for (size_t i = 0; room && i < count; i++) ent_bytes_store(room + 8 * i, 8, items[i]);
}
static inline void ent_message_put_f64s(ent_message_writer *writer, uint32_t field, const double *items,
                                        size_t count) {
    uint8_t *room = ent_message_put_room(writer, field, count, 8);
    for (size_t i = 0; room && i < count; i++) ent_bytes_store(room + 8 * i, 8, ent_bits_from_f64(items[i]));
}

/* Completes the header. The message is writer->data, writer->size. */
static inline ent_code ent_message_end(ent_message_writer *writer) {
    if (writer->in_record) writer->failed = true;
    if (writer->failed) return ENT_CODE_OUT_OF_MEMORY;
    ent_bytes_store(writer->data + 8, 8, writer->size);
    ent_bytes_store(writer->data + 20, 4, writer->record_count);
    return ENT_OK;
}

/* ---- layouts inside messages ---- */

/* I64S: kind, rank, block_count, opaque, order[rank], then (axis, size) a block. */
static inline void ent_message_put_layout(ent_message_writer *writer, uint32_t field,
                                          const ent_layout *layout) {
    int64_t items[4 + ENT_MAX_RANK + 2 * ENT_MAX_BLOCKS] = {layout->kind, layout->rank, layout->block_count,
                                                            (int64_t)layout->opaque};
    if (layout->rank > ENT_MAX_RANK || layout->block_count > ENT_MAX_BLOCKS) {
        writer->failed = true;
        return;
    }
    uint32_t count = 4;
    for (uint32_t i = 0; i < layout->rank; i++) items[count++] = layout->order[i];
    for (uint32_t i = 0; i < layout->block_count; i++) {
        items[count++] = layout->block_axis[i];
        items[count++] = layout->block_size[i];
    }
    ent_message_put_i64s(writer, field, items, count);
}

/* An empty field is layout ANY of rank 0. False when the numbers are no layout (bad kind, rank, permutation
 * or block). */
static inline bool ent_message_get_layout(const ent_message_record *record, uint32_t field, ent_layout *out) {
    int64_t items[4 + ENT_MAX_RANK + 2 * ENT_MAX_BLOCKS] = {0};
    const uint32_t capacity = (uint32_t)(sizeof items / sizeof items[0]);
    ent_layout layout = {0, 0, 0, 0, {0}, {0}, {0}, 0};
    uint32_t count = ent_message_get_i64s(record, field, items, capacity);
    *out = layout;
    if (count == 0) return true;
    if (count < 4 || items[0] < 0 || items[0] > ENT_LAYOUT_OPAQUE || items[1] < 0 ||
        items[1] > ENT_MAX_RANK || items[2] < 0 || items[2] > ENT_MAX_BLOCKS ||
        (int64_t)count != 4 + items[1] + 2 * items[2])
        return false;
    layout.kind = (uint8_t)items[0];
    layout.rank = (uint8_t)items[1];
    layout.block_count = (uint8_t)items[2];
    layout.opaque = (uint64_t)items[3];
    uint32_t seen = 0;
    for (uint32_t i = 0; i < layout.rank; i++) {
        int64_t axis = items[4 + i];
        if (axis < 0 || axis >= layout.rank) return false;
        seen |= 1u << axis;
        layout.order[i] = (uint8_t)axis;
    }
    if (layout.kind == ENT_LAYOUT_STRIDED && seen != (1u << layout.rank) - 1) return false;
    for (uint32_t i = 0; i < layout.block_count; i++) {
        int64_t axis = items[4 + layout.rank + 2 * i], block = items[5 + layout.rank + 2 * i];
        if (axis < 0 || axis >= layout.rank || block < 1 || block > UINT16_MAX) return false;
        layout.block_axis[i] = (uint8_t)axis;
        layout.block_size[i] = (uint16_t)block;
    }
    *out = layout;
    return true;
}

#endif
