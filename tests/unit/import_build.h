/* Writes ONNX models byte by byte for the import tests. Field numbers are those of onnx.proto. */
#ifndef IMPORT_BUILD_H
#define IMPORT_BUILD_H

#include "core/import/import.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct bytes {
    uint8_t data[16384];
    size_t size;
} bytes;

static inline void put_varint(bytes *to, uint64_t value) {
    for (; value > 127; value >>= 7) to->data[to->size++] = (uint8_t)(value | 128);
    to->data[to->size++] = (uint8_t)value;
}

static inline void put_number(bytes *to, uint32_t field, int64_t value) {
    put_varint(to, (uint64_t)field << 3);
    put_varint(to, (uint64_t)value);
}

static inline void put_data(bytes *to, uint32_t field, const void *data, size_t size) {
    put_varint(to, (uint64_t)field << 3 | 2);
    put_varint(to, size);
    ck_assert_uint_le(to->size + size, sizeof to->data);
    if (size) memcpy(to->data + to->size, data, size);
    to->size += size;
}

static inline void put_text(bytes *to, uint32_t field, const char *text) {
    put_data(to, field, text, strlen(text));
}

static inline void put_bytes(bytes *to, uint32_t field, const bytes *part) {
    put_data(to, field, part->data, part->size);
}

/* ValueInfoProto with dims given as numbers. */
static inline void put_value(bytes *graph, uint32_t field, const char *name, int dtype, size_t rank,
                             const int64_t *dims) {
    bytes shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (size_t i = 0; i < rank; i++) {
        bytes dim = {0};
        put_number(&dim, 1, dims[i]);
        put_bytes(&shape, 1, &dim);
    }
    put_number(&tensor, 1, dtype);
    put_bytes(&tensor, 2, &shape);
    put_bytes(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_bytes(&value, 2, &type);
    put_bytes(graph, field, &value);
}

/* TensorProto with raw data; extra fields can be added by the caller before it is put somewhere. */
static inline bytes make_tensor(const char *name, int dtype, size_t rank, const int64_t *dims,
                                const void *raw, size_t raw_bytes) {
    bytes tensor = {0};
    for (size_t i = 0; i < rank; i++) put_number(&tensor, 1, dims[i]);
    put_number(&tensor, 2, dtype);
    put_text(&tensor, 8, name);
    if (raw) put_data(&tensor, 9, raw, raw_bytes);
    return tensor;
}

/* NodeProto; inputs and outputs are space separated, "-" is an absent one. */
static inline void put_names(bytes *node, uint32_t field, const char *names) {
    while (*names) {
        size_t size = strcspn(names, " ");
        put_data(node, field, names, size == 1 && names[0] == '-' ? 0 : size);
        names += size;
        names += strspn(names, " ");
    }
}

static inline bytes make_node(const char *op, const char *inputs, const char *outputs) {
    bytes node = {0};
    put_names(&node, 1, inputs);
    put_names(&node, 2, outputs);
    put_text(&node, 4, op);
    return node;
}

static inline bytes *attribute_begin(bytes *attribute, const char *name, int type) {
    attribute->size = 0;
    put_text(attribute, 1, name);
    put_number(attribute, 20, type);
    return attribute;
}

static inline void add_int(bytes *node, const char *name, int64_t value) {
    bytes attribute;
    put_number(attribute_begin(&attribute, name, 2), 3, value);
    put_bytes(node, 5, &attribute);
}

static inline void add_ints(bytes *node, const char *name, size_t count, const int64_t *values) {
    bytes attribute;
    attribute_begin(&attribute, name, 7);
    for (size_t i = 0; i < count; i++) put_number(&attribute, 8, values[i]);
    put_bytes(node, 5, &attribute);
}

static inline void put_float(bytes *to, uint32_t field, float value) {
    put_varint(to, (uint64_t)field << 3 | 5);
    memcpy(to->data + to->size, &value, 4);
    to->size += 4;
}

static inline void add_float(bytes *node, const char *name, float value) {
    bytes attribute;
    put_float(attribute_begin(&attribute, name, 1), 2, value);
    put_bytes(node, 5, &attribute);
}

static inline void add_floats(bytes *node, const char *name, size_t count, const float *values) {
    bytes attribute;
    attribute_begin(&attribute, name, 6);
    for (size_t i = 0; i < count; i++) put_float(&attribute, 7, values[i]);
    put_bytes(node, 5, &attribute);
}

static inline void add_string(bytes *node, const char *name, const char *value) {
    bytes attribute;
    put_text(attribute_begin(&attribute, name, 3), 4, value);
    put_bytes(node, 5, &attribute);
}

static inline bytes make_model(const bytes *graph, int64_t opset) {
    bytes model = {0}, import = {0};
    put_number(&model, 1, 8);
    put_number(&import, 2, opset);
    put_bytes(&model, 8, &import);
    put_bytes(&model, 7, graph);
    return model;
}

/* Writes to a temporary file whose name is left in path (room for 64). */
static inline void write_temporary(const bytes *content, char *path) {
    strcpy(path, "/tmp/entente_import_XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, content->data, content->size), (ssize_t)content->size);
    close(file);
}

static inline ent_status import_bytes(ent_arena *arena, const bytes *model, ent_module **out,
                                      ent_import_files **out_files) {
    char path[64];
    write_temporary(model, path);
    ent_status status = ent_import_onnx(arena, path, NULL, out, out_files);
    unlink(path);
    return status;
}

#endif
