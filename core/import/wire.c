/* Checks and copies the file's protobuf bytes before protobuf-c parses them.
 *
 * One generic walk over the descriptors that protobuf-c generated: wire types, lengths, depth, counts, and
 * NUL bytes inside names, which C strings would cut short unseen. The copy leaves out unknown fields and
 * every raw_data, in whose place it notes offset and size in the file. Parsing the file itself would copy all
 * weights a second time, and would recurse as deep as the file says. Lengths in the copy are five-byte
 * varints, so that they can be filled in afterwards. */
#include "core/import/internal.h"

#include <string.h>

#define MAX_COPY_BYTES ((uint64_t)1 << 31)
#define LENGTH_BYTES 5

typedef struct walk {
    ent_arena *arena;   /* of messages */
    ent_arena *scratch; /* of the copy */
    const char *path;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t at;
    uint8_t *copy;
    uint64_t copy_size, copy_capacity;
    uint32_t depth, max_depth;
    uint64_t nodes, max_nodes;
    uint64_t messages, max_messages;
} walk;

typedef struct field_head {
    uint64_t start; /* of the tag */
    uint32_t id, wire_type;
    const ProtobufCFieldDescriptor *field; /* NULL: unknown */
} field_head;

static ent_status fail(const walk *w, const char *rule, const char *what,
                       const ProtobufCMessageDescriptor *in) {
    return ent_status_make(w->arena, ENT_ERROR_MODEL, rule, w->path,
                           "%s at byte %llu, inside %s; the file is damaged or is not ONNX", what,
                           (unsigned long long)w->at, in->short_name);
}

static ent_status room(walk *w, uint64_t more) {
    if (w->copy_size + more <= w->copy_capacity) return NULL;
    uint64_t capacity = w->copy_capacity ? w->copy_capacity : 4096;
    while (capacity < w->copy_size + more) capacity *= 2;
    if (more > MAX_COPY_BYTES || capacity > MAX_COPY_BYTES)
        return ent_status_make(
            w->arena, ENT_ERROR_LIMIT, "limit.structure-bytes", w->path,
            "the model without its raw weights is over 2 GiB; store weights as raw or external data");
    uint8_t *copy = ent_arena_array(w->scratch, capacity, 1);
    if (!copy) return ent_status_out_of_memory();
    if (w->copy_size) memcpy(copy, w->copy, w->copy_size);
    w->copy = copy;
    w->copy_capacity = capacity;
    return NULL;
}

static ent_status put_bytes(walk *w, uint64_t from, uint64_t to) {
    ENT_TRY(room(w, to - from));
    memcpy(w->copy + w->copy_size, w->bytes + from, to - from);
    w->copy_size += to - from;
    return NULL;
}

static ent_status put_fixed64_field(walk *w, uint32_t id, uint64_t value) {
    ENT_TRY(room(w, 16));
    uint64_t tag = ((uint64_t)id << 3) | PROTOBUF_C_WIRE_TYPE_64BIT;
    while (tag >= 128) {
        w->copy[w->copy_size++] = (uint8_t)(tag | 128);
        tag >>= 7;
    }
    w->copy[w->copy_size++] = (uint8_t)tag;
    for (uint32_t i = 0; i < 8; i++) w->copy[w->copy_size++] = (uint8_t)(value >> (8 * i));
    return NULL;
}

static bool read_varint(walk *w, uint64_t end, uint64_t *out) {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 70 && w->at < end; shift += 7) {
        uint8_t byte = w->bytes[w->at++];
        if (shift < 64) value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *out = value;
            return true;
        }
    }
    return false;
}

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *in, uint32_t id) {
    for (unsigned i = 0; i < in->n_fields; i++)
        if (in->fields[i].id == id) return &in->fields[i];
    return NULL;
}

static bool wire_type_fits(const ProtobufCFieldDescriptor *field, uint32_t wire_type) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        return wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    default:
        break;
    }
    if (wire_type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) return field->label == PROTOBUF_C_LABEL_REPEATED;
    switch (field->type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return wire_type == PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return wire_type == PROTOBUF_C_WIRE_TYPE_64BIT;
    default:
        return wire_type == PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

/* Reads a tag; length-prefixed fields leave `at` behind the length and the payload's end in *out_end, others
 * behind the value. */
static ent_status read_field(walk *w, uint64_t end, const ProtobufCMessageDescriptor *in, field_head *out,
                             uint64_t *out_end) {
    uint64_t tag = 0, length = 0;
    out->start = w->at;
    if (!read_varint(w, end, &tag)) return fail(w, "file.truncated", "a field tag is cut off", in);
    if (tag >> 3 == 0 || tag >> 3 >= 1u << 29)
        return fail(w, "file.not-onnx", "a field number is out of range", in);
    out->id = (uint32_t)(tag >> 3);
    out->wire_type = (uint32_t)(tag & 7);
    out->field = find_field(in, out->id);
    switch (out->wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        if (!read_varint(w, end, &length)) return fail(w, "file.truncated", "a number is cut off", in);
        length = 0;
        break;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        length = 8;
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        length = 4;
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        if (!read_varint(w, end, &length)) return fail(w, "file.truncated", "a length is cut off", in);
        break;
    default:
        return fail(w, "file.not-onnx", "an unknown wire type stands", in);
    }
    if (length > end - w->at)
        return fail(w, "file.truncated", "a field runs past the end of what holds it", in);
    *out_end = w->at + length;
    if (out->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED) w->at = *out_end;
    if (out->field && !wire_type_fits(out->field, out->wire_type))
        return fail(w, "file.not-onnx", "a field has the wrong wire type", in);
    return NULL;
}

/* Bytes that continue a sequence begun by `lead`; -1 if none begins so. */
static int continuation_bytes(uint8_t lead) {
    if (lead < 0x80) return 0;
    if (lead >= 0xc2 && lead <= 0xdf) return 1;
    if (lead >= 0xe0 && lead <= 0xef) return 2;
    return lead >= 0xf0 && lead <= 0xf4 ? 3 : -1;
}

/* Overlong forms and surrogates show in the first two bytes. */
static bool is_utf8(const uint8_t *text, uint64_t size) {
    for (uint64_t i = 0; i < size;) {
        uint8_t lead = text[i++];
        int more = continuation_bytes(lead);
        if (more < 0 || (uint64_t)more > size - i) return false;
        uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        for (; more > 0; more--, i++) {
            if (text[i] < low || text[i] > high) return false;
            low = 0x80;
            high = 0xbf;
        }
    }
    return true;
}

/* Names become C strings and parts of messages; free text about the model is not looked at. */
static ent_status check_string(const walk *w, const ProtobufCMessageDescriptor *in, const field_head *head,
                               uint64_t end, bool in_tensor) {
    const uint8_t *text = w->bytes + w->at;
    uint64_t size = end - w->at;
    bool entry = in == &onnx__string_string_entry_proto__descriptor;
    if (size == 0 || strcmp(head->field->name, "doc_string") == 0) return NULL;
    if (in == &onnx__model_proto__descriptor || (entry && !in_tensor)) return NULL;
    if (!is_utf8(text, size)) return fail(w, "file.not-utf8", "a name is not valid UTF-8", in);
    if (!memchr(text, 0, size)) return NULL;
    if (!entry) return fail(w, "file.embedded-nul", "a name contains a NUL byte", in);
    return ent_status_make(
        w->arena, ENT_ERROR_MODEL, "external-data.embedded-nul", w->path,
        "an external data entry ('%.*s' up to a NUL) at byte %llu contains a NUL byte; it is "
        "refused because it could name another file than it shows",
        (int)strnlen((const char *)text, 200), (const char *)text, (unsigned long long)w->at);
}

static ent_status count_message(walk *w, const ProtobufCMessageDescriptor *in) {
    if (++w->messages > w->max_messages)
        return ent_status_make(w->arena, ENT_ERROR_LIMIT, "limit.messages", w->path,
                               "the file holds more than %llu records", (unsigned long long)w->max_messages);
    if (in == &onnx__node_proto__descriptor && ++w->nodes > w->max_nodes)
        return ent_status_make(w->arena, ENT_ERROR_LIMIT, "limit.nodes", w->path,
                               "the model has more than %llu nodes", (unsigned long long)w->max_nodes);
    if (w->depth > w->max_depth)
        return ent_status_make(w->arena, ENT_ERROR_LIMIT, "limit.nesting", w->path,
                               "graphs or types are nested more than %u records deep", w->max_depth);
    return NULL;
}

static ent_status walk_message(walk *w, const ProtobufCMessageDescriptor *in, uint64_t end, bool in_tensor);

static ent_status walk_field(walk *w, const ProtobufCMessageDescriptor *in, uint64_t end, bool in_tensor) {
    field_head head = {0};
    uint64_t payload_end = 0;
    ENT_TRY(read_field(w, end, in, &head, &payload_end));
    if (!head.field) {
        w->at = payload_end > w->at ? payload_end : w->at;
        return NULL;
    }
    if (head.field->type == PROTOBUF_C_TYPE_STRING)
        ENT_TRY(check_string(w, in, &head, payload_end, in_tensor));
    if (in == &onnx__tensor_proto__descriptor && strcmp(head.field->name, "raw_data") == 0) {
        ENT_TRY(put_fixed64_field(w, ENT_IMPORT_RAW_OFFSET_FIELD, w->at));
        ENT_TRY(put_fixed64_field(w, ENT_IMPORT_RAW_SIZE_FIELD, payload_end - w->at));
    } else if (head.field->type == PROTOBUF_C_TYPE_MESSAGE) {
        uint64_t tag = ((uint64_t)head.id << 3) | PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
        ENT_TRY(room(w, 5 + LENGTH_BYTES)); /* a tag takes at most five bytes */
        uint64_t length_at = w->copy_size;
        while (tag >= 128) {
            w->copy[length_at++] = (uint8_t)(tag | 128);
            tag >>= 7;
        }
        w->copy[length_at++] = (uint8_t)tag;
        w->copy_size = length_at + LENGTH_BYTES;
        ENT_TRY(walk_message(w, head.field->descriptor, payload_end,
                             in_tensor || in == &onnx__tensor_proto__descriptor));
        uint64_t length = w->copy_size - length_at - LENGTH_BYTES;
        for (uint32_t i = 0; i < LENGTH_BYTES; i++, length >>= 7)
            w->copy[length_at + i] = (uint8_t)((length & 127) | (i + 1 < LENGTH_BYTES ? 128 : 0));
    } else {
        ENT_TRY(put_bytes(w, head.start, payload_end > w->at ? payload_end : w->at));
    }
    w->at = payload_end > w->at ? payload_end : w->at;
    return NULL;
}

static ent_status walk_message(walk *w, const ProtobufCMessageDescriptor *in, uint64_t end, bool in_tensor) {
    w->depth++;
    ENT_TRY(count_message(w, in));
    while (w->at < end) ENT_TRY(walk_field(w, in, end, in_tensor));
    w->depth--;
    return NULL;
}

ent_status ent_import_wire_read(ent_arena *arena, ent_arena *scratch, const char *path, ent_str bytes,
                                const ProtobufCMessageDescriptor *descriptor, ent_import_wire_limits limits,
                                ent_str *out) {
    walk w = {.arena = arena,
              .scratch = scratch,
              .path = path,
              .bytes = (const uint8_t *)bytes.data,
              .size = bytes.size};
    w.max_nodes = limits.max_nodes;
    w.max_messages = (uint64_t)limits.max_nodes * 64;
    w.max_depth =
        limits.max_nesting * 3 + 8; /* a nested graph is three records down: node, attribute, graph */
    if (bytes.size == 0)
        return ent_status_make(arena, ENT_ERROR_MODEL, "file.empty", path,
                               "the file is empty; expected an ONNX model");
    ENT_TRY(walk_message(&w, descriptor, bytes.size, false));
    *out = (ent_str){(const char *)w.copy, w.copy_size};
    return NULL;
}

static void *allocate(void *data, size_t size) {
    return ent_arena_array(data, size ? size : 1, 1);
}

static void release(void *data, void *pointer) {
    (void)data;
    (void)pointer;
}

ent_status ent_import_wire_parse(ent_arena *arena, ent_arena *scratch, const char *path, ent_str bytes,
                                 const ProtobufCMessageDescriptor *descriptor, ent_import_wire_limits limits,
                                 ProtobufCMessage **out) {
    ent_str copy = {0};
    ENT_TRY(ent_import_wire_read(arena, scratch, path, bytes, descriptor, limits, &copy));
    ProtobufCAllocator allocator = {allocate, release, scratch};
    *out = protobuf_c_message_unpack(descriptor, &allocator, copy.size, (const uint8_t *)copy.data);
    if (*out) return NULL;
    return ent_status_make(arena, ENT_ERROR_MODEL, "file.not-onnx", path,
                           "the file is not an ONNX %s: its records do not decode", descriptor->short_name);
}
