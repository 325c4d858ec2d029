/* Tensor files for the public API: ONNX TensorProto and NumPy arrays.
 * NumPy's format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include <stdlib.h>
#include <string.h>

#include "core/pipeline.h"

typedef struct npy_type {
    const char *descr;
    uint32_t dtype;
} npy_type;

static const npy_type npy_types[] = {{"<f4", ENT_DTYPE_F32}, {"<f2", ENT_DTYPE_F16},  {"<f8", ENT_DTYPE_F64},
                                     {"|i1", ENT_DTYPE_I8},  {"|u1", ENT_DTYPE_U8},   {"<i2", ENT_DTYPE_I16},
                                     {"<u2", ENT_DTYPE_U16}, {"<i4", ENT_DTYPE_I32},  {"<u4", ENT_DTYPE_U32},
                                     {"<i8", ENT_DTYPE_I64}, {"<u8", ENT_DTYPE_U64},  {"|b1", ENT_DTYPE_BOOL},
                                     {"<c8", ENT_DTYPE_C64}, {"<c16", ENT_DTYPE_C128}};

static ent_status bad_npy(ent_arena *arena, const char *path, const char *what) {
    return ent_status_make(arena, ENT_ERROR_USAGE, "tensor.npy", path, "%s", what);
}

/* The value behind 'key': in the header's dictionary. */
static const char *find_key(const char *header, const char *key) {
    const char *at = strstr(header, key);
    if (!at) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

static bool read_shape(const char *at, ent_tensor *out) {
    if (!at || *at != '(') return false;
    for (at++; *at && *at != ')';) {
        char *end = NULL;
        long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || out->rank == ENT_MAX_RANK) return false;
        out->dims[out->rank++] = dim;
        at = end;
        while (*at == ',' || *at == ' ' || *at == 'L') at++;
    }
    return *at == ')';
}

static ent_status read_header(ent_arena *arena, const char *path, const char *header, ent_tensor *out) {
    const char *descr = find_key(header, "'descr'"), *order = find_key(header, "'fortran_order'");
    for (size_t i = 0; descr && i < sizeof npy_types / sizeof npy_types[0]; i++) {
        size_t size = strlen(npy_types[i].descr);
        if (descr[0] == '\'' && strncmp(descr + 1, npy_types[i].descr, size) == 0 && descr[1 + size] == '\'')
            out->dtype = npy_types[i].dtype;
    }
    if (out->dtype == ENT_DTYPE_NONE)
        return bad_npy(arena, path, "its element type is not a little-endian number or bool");
    if (!order || strncmp(order, "False", 5) != 0)
        return bad_npy(arena, path, "is in Fortran order; save it with numpy.ascontiguousarray");
    if (!read_shape(find_key(header, "'shape'"), out))
        return bad_npy(arena, path, "its shape cannot be read, or has over 8 dimensions");
    return NULL;
}

static ent_status read_npy(ent_arena *arena, const char *path, ent_tensor *out) {
    ent_str text;
    ENT_TRY(ent_file_read(arena, path, ENT_ERROR_USAGE, 0, &text));
    const uint8_t *data = (const uint8_t *)text.data;
    if (text.size < 12 || memcmp(data, "\x93NUMPY", 6) != 0)
        return bad_npy(arena, path, "is not a NumPy file");
    size_t length = data[6] == 1 ? 2 : 4, size = 0;
    for (size_t i = 0; i < length; i++) size |= (size_t)data[8 + i] << (8 * i);
    if (8 + length + size > text.size) return bad_npy(arena, path, "is cut short in its header");
    ENT_TRY(read_header(arena, path, ent_arena_strndup(arena, text.data + 8 + length, size), out));
    out->layout = ent_layout_plain(out->rank);
    int64_t bytes = ent_layout_bytes(&out->layout, out->dtype, out->dims);
    size_t start = 8 + length + size;
    if (bytes < 0 || (uint64_t)bytes != text.size - start)
        return bad_npy(arena, path, "holds another number of bytes than its shape says");
    out->data = (void *)(uintptr_t)(text.data + start);
    out->size_bytes = (uint64_t)bytes;
    return NULL;
}

static ent_status copy_out(const ent_tensor *from, entente_tensor *out) {
    size_t room = (from->size_bytes + 127) / 64 * 64; /* aligned so that a run takes it without a copy */
    out->data = aligned_alloc(64, room);
    if (!out->data) return ent_status_out_of_memory();
    if (from->size_bytes) memcpy(out->data, from->data, from->size_bytes);
    out->size_bytes = from->size_bytes;
    out->dtype = from->dtype;
    out->rank = from->rank;
    memcpy(out->dims, from->dims, sizeof out->dims);
    return NULL;
}

int entente_tensor_read(const char *path, entente_tensor *out, entente_compile_result *details) {
    memset(out, 0, sizeof *out);
    ent_arena *arena = ent_arena_create(0);
    ent_tensor tensor = {0};
    size_t size = strlen(path);
    bool is_npy = size > 4 && strcmp(path + size - 4, ".npy") == 0;
    ent_status status = arena ? NULL : ent_status_out_of_memory();
    if (!status)
        status = is_npy ? read_npy(arena, path, &tensor) : ent_import_tensor_pb(arena, path, &tensor, NULL);
    if (status && status->code == ENT_ERROR_MODEL) /* a bad input file is no fault of the model */
        status = ent_status_make(arena, ENT_ERROR_USAGE, status->rule, status->place, "%s", status->text);
    if (!status) status = copy_out(&tensor, out);
    ent_compiler_fill_status(details, status);
    ent_arena_destroy(arena);
    return details->code;
}

void entente_tensor_free(entente_tensor *tensor) {
    if (tensor) free(tensor->data);
    if (tensor) tensor->data = NULL;
}
