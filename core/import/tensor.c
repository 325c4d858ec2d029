/* TensorProto -> plain tensor.
 *
 * Little-endian raw bytes in the file are used where they lie, if they are aligned for their type; else they
 * are copied. Sub-byte elements are packed over the whole tensor in a file and by rows here, so rows of odd
 * length are repacked. */
#include "core/import/internal.h"

#include <string.h>
#include <sys/mman.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "tensor bytes in models are little-endian; add a swap here");

ent_dtype ent_import_dtype(int32_t onnx_type) {
    static const uint8_t map[] = {
        ENT_DTYPE_NONE,       ENT_DTYPE_F32,  ENT_DTYPE_U8,       ENT_DTYPE_I8,         ENT_DTYPE_U16,
        ENT_DTYPE_I16,        ENT_DTYPE_I32,  ENT_DTYPE_I64,      ENT_DTYPE_STRING,     ENT_DTYPE_BOOL,
        ENT_DTYPE_F16,        ENT_DTYPE_F64,  ENT_DTYPE_U32,      ENT_DTYPE_U64,        ENT_DTYPE_C64,
        ENT_DTYPE_C128,       ENT_DTYPE_BF16, ENT_DTYPE_F8E4M3FN, ENT_DTYPE_F8E4M3FNUZ, ENT_DTYPE_F8E5M2,
        ENT_DTYPE_F8E5M2FNUZ, ENT_DTYPE_U4,   ENT_DTYPE_I4,       ENT_DTYPE_F4E2M1,     ENT_DTYPE_F8E8M0,
        ENT_DTYPE_U2,         ENT_DTYPE_I2};
    return onnx_type > 0 && (size_t)onnx_type < sizeof map ? (ent_dtype)map[onnx_type] : ENT_DTYPE_NONE;
}

typedef struct source {
    const uint8_t *raw; /* NULL: in typed fields */
    uint64_t raw_bytes;
    bool has_raw;
    bool external;
} source;

static uint64_t alignment(uint32_t dtype) {
    uint32_t bits = ent_dtype_bits((ent_dtype)dtype);
    if (dtype == ENT_DTYPE_C64 || dtype == ENT_DTYPE_C128) bits /= 2;
    return bits < 8 ? 1 : bits / 8;
}

/* wire.c noted where raw_data lies in the mapped file 0; it has checked the bounds. */
static source find_raw(const ent_importer *importer, const Onnx__TensorProto *proto) {
    source result = {0};
    uint64_t offset = 0;
    for (unsigned i = 0; i < proto->base.n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &proto->base.unknown_fields[i];
        uint64_t value = 0;
        if (field->len != sizeof value) continue;
        memcpy(&value, field->data, sizeof value);
        if (field->tag == ENT_IMPORT_RAW_OFFSET_FIELD) offset = value;
        if (field->tag == ENT_IMPORT_RAW_SIZE_FIELD) {
            result.raw_bytes = value;
            result.has_raw = true;
        }
    }
    if (result.has_raw) result.raw = importer->files->maps.items[0].map.data + offset;
    return result;
}

static ent_status read_dims(const ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                            ent_tensor *out, uint64_t *out_count) {
    if (proto->n_dims > ENT_MAX_RANK)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.rank", place,
                               "rank %zu is above the supported %d", proto->n_dims, ENT_MAX_RANK);
    int64_t count = 1;
    bool overflow = false;
    out->rank = (uint32_t)proto->n_dims;
    out->layout = ent_layout_plain(out->rank);
    for (size_t i = 0; i < proto->n_dims; i++) {
        int64_t dim = proto->dims[i];
        if (dim < 0)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "tensor.negative-dim", place,
                                   "dimension %zu is %lld", i, (long long)dim);
        out->dims[i] = dim;
        overflow = overflow || !ent_mul_i64(count, dim, &count);
    }
    int64_t bytes = overflow ? -1 : ent_layout_bytes(&out->layout, (ent_dtype)out->dtype, out->dims);
    if (bytes < 0)
        return ent_status_make(
            importer->arena, ENT_ERROR_MODEL, "tensor.overflow", place,
            "the product of the dimensions, or the size in bytes, does not fit in 63 bits");
    if ((uint64_t)bytes > importer->options.max_tensor_bytes)
        return ent_status_make(importer->arena, ENT_ERROR_LIMIT, "limit.tensor-bytes", place,
                               "the tensor has %lld bytes, more than the allowed %llu", (long long)bytes,
                               (unsigned long long)importer->options.max_tensor_bytes);
    out->size_bytes = (uint64_t)bytes;
    *out_count = (uint64_t)count;
    return NULL;
}

static ent_status wrong_size(const ent_importer *importer, const char *place, uint64_t have, const char *unit,
                             uint64_t need) {
    return ent_status_make(importer->arena, ENT_ERROR_MODEL, "tensor.size", place,
                           "the data has %llu %s, but dtype and dimensions need %llu",
                           (unsigned long long)have, unit, (unsigned long long)need);
}

static bool range_of_int32_data(uint32_t dtype, int32_t *low, int32_t *high) {
    *low = 0;
    switch (dtype) {
    case ENT_DTYPE_I32:
        *low = INT32_MIN, *high = INT32_MAX;
        return true;
    case ENT_DTYPE_I16:
        *low = INT16_MIN, *high = INT16_MAX;
        return true;
    case ENT_DTYPE_U16:
    case ENT_DTYPE_F16:
    case ENT_DTYPE_BF16:
        *high = UINT16_MAX;
        return true;
    case ENT_DTYPE_I8:
    case ENT_DTYPE_I4:
    case ENT_DTYPE_I2:
        *low = INT8_MIN, *high = dtype == ENT_DTYPE_I8 ? INT8_MAX : UINT8_MAX;
        return true;
    case ENT_DTYPE_BOOL:
        *high = 1;
        return true;
    case ENT_DTYPE_U8:
    case ENT_DTYPE_U4:
    case ENT_DTYPE_U2:
    case ENT_DTYPE_F4E2M1:
    case ENT_DTYPE_F8E4M3FN:
    case ENT_DTYPE_F8E4M3FNUZ:
    case ENT_DTYPE_F8E5M2:
    case ENT_DTYPE_F8E5M2FNUZ:
    case ENT_DTYPE_F8E8M0:
        *high = UINT8_MAX;
        return true;
    default:
        return false;
    }
}

/* Asked for only when the entries are there: dimensions alone cost a file nothing. */
static uint8_t *room_for(const ent_importer *importer, uint64_t flat_bytes, uint8_t **out) {
    return *out = ent_arena_array(importer->arena, flat_bytes ? flat_bytes : 1, 1);
}

/* int32_data holds one element, or one packed byte, an entry. */
static ent_status read_int32_data(const ent_importer *importer, const Onnx__TensorProto *proto,
                                  const char *place, uint32_t dtype, uint64_t flat_bytes,
                                  uint8_t **out_data) {
    int32_t low = 0, high = 0;
    uint64_t size = alignment(dtype);
    if (!range_of_int32_data(dtype, &low, &high))
        return wrong_size(importer, place, 0, "elements in the field for its dtype", flat_bytes / size);
    if (proto->n_int32_data != flat_bytes / size)
        return wrong_size(importer, place, proto->n_int32_data, "entries", flat_bytes / size);
    uint8_t *out = room_for(importer, flat_bytes, out_data);
    if (!out) return ent_status_out_of_memory();
    for (size_t i = 0; i < proto->n_int32_data; i++) {
        int32_t value = proto->int32_data[i];
        if (value < low || value > high)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "tensor.range", place,
                                   "entry %zu is %d, outside %d..%d of %s", i, value, low, high,
                                   ent_dtype_name((ent_dtype)dtype));
        memcpy(out + i * size, &value, size); /* little-endian: the low bytes */
    }
    return NULL;
}

static ent_status read_typed(const ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                             uint32_t dtype, uint64_t flat_bytes, uint8_t **out_data) {
    const void *items = NULL;
    size_t count = 0;
    size_t size = 0;
    switch (dtype) {
    case ENT_DTYPE_F32:
    case ENT_DTYPE_C64:
        items = proto->float_data, count = proto->n_float_data, size = 4;
        break;
    case ENT_DTYPE_F64:
    case ENT_DTYPE_C128:
        items = proto->double_data, count = proto->n_double_data, size = 8;
        break;
    case ENT_DTYPE_I64:
        items = proto->int64_data, count = proto->n_int64_data, size = 8;
        break;
    case ENT_DTYPE_U64:
        items = proto->uint64_data, count = proto->n_uint64_data, size = 8;
        break;
    case ENT_DTYPE_U32:
        break;
    default:
        return read_int32_data(importer, proto, place, dtype, flat_bytes, out_data);
    }
    if (dtype != ENT_DTYPE_U32) {
        if (count != flat_bytes / size)
            return wrong_size(importer, place, count, "entries", flat_bytes / size);
        uint8_t *out = room_for(importer, flat_bytes, out_data);
        if (!out) return ent_status_out_of_memory();
        if (flat_bytes) memcpy(out, items, flat_bytes);
        return NULL;
    }
    if (proto->n_uint64_data != flat_bytes / 4)
        return wrong_size(importer, place, proto->n_uint64_data, "entries", flat_bytes / 4);
    uint8_t *out = room_for(importer, flat_bytes, out_data);
    if (!out) return ent_status_out_of_memory();
    for (size_t i = 0; i < proto->n_uint64_data; i++) {
        if (proto->uint64_data[i] > UINT32_MAX)
            return ent_status_make(importer->arena, ENT_ERROR_MODEL, "tensor.range", place,
                                   "entry %zu does not fit in 32 bits", i);
        uint32_t value = (uint32_t)proto->uint64_data[i];
        memcpy(out + i * 4, &value, 4);
    }
    return NULL;
}

/* Flat packing -> rows padded to a byte. */
static void repack_rows(const uint8_t *flat, uint8_t *out, uint64_t rows, uint64_t columns, uint32_t bits) {
    uint64_t per_byte = 8 / bits, row_bytes = (columns + per_byte - 1) / per_byte;
    uint32_t mask = (1u << bits) - 1;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t column = 0; column < columns; column++) {
            uint64_t from = row * columns + column;
            uint32_t item = (flat[from / per_byte] >> (from % per_byte * bits)) & mask;
            out[row * row_bytes + column / per_byte] |= (uint8_t)(item << (column % per_byte * bits));
        }
}

/* Large pages of the model file that were copied need not stay resident. */
static void drop_pages(const uint8_t *data, uint64_t size) {
    const uint64_t page = 4096;
    uint64_t first = ((uint64_t)(uintptr_t)data + page - 1) / page * page,
             last = (uint64_t)(uintptr_t)(data + size) / page * page;
    if (last > first && last - first >= 64 * page)
        madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED);
}

static ent_status settle(const ent_importer *importer, const source *from, uint64_t flat_bytes,
                         uint64_t count, ent_tensor *out, bool *out_borrow) {
    uint32_t bits = ent_dtype_bits((ent_dtype)out->dtype);
    bool strange_bool = false;
    if (out->dtype == ENT_DTYPE_BOOL)
        for (uint64_t i = 0; i < flat_bytes && !strange_bool; i++) strange_bool = from->raw[i] > 1;
    bool aligned = (uintptr_t)from->raw % alignment(out->dtype) == 0;
    *out_borrow = true;
    if (out->size_bytes == flat_bytes && aligned && !strange_bool && !importer->copy_data) {
        out->data = (void *)(uintptr_t)from->raw;
        return NULL;
    }
    uint8_t *copy = ent_arena_array(importer->arena, out->size_bytes ? out->size_bytes : 1, 1);
    if (!copy) return ent_status_out_of_memory();
    out->data = copy;
    if (out->size_bytes != flat_bytes || (bits < 8 && out->rank > 0)) {
        uint64_t columns = (uint64_t)out->dims[out->rank - 1];
        memset(copy, 0, out->size_bytes);
        if (columns) repack_rows(from->raw, copy, count / columns, columns, bits);
        return NULL;
    }
    if (flat_bytes) memcpy(copy, from->raw, flat_bytes);
    if (strange_bool)
        for (uint64_t i = 0; i < flat_bytes; i++) copy[i] = copy[i] != 0;
    drop_pages(from->raw, flat_bytes);
    return NULL;
}

static ent_status check_kind(const ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                             uint32_t dtype) {
    if (dtype == ENT_DTYPE_NONE)
        return ent_status_make(
            importer->arena, proto->data_type == 0 ? ENT_ERROR_MODEL : ENT_ERROR_UNSUPPORTED, "tensor.dtype",
            place, "data type %d is %s", proto->data_type, proto->data_type == 0 ? "missing" : "not known");
    if (dtype == ENT_DTYPE_STRING)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.string", place,
                               "string tensors are not supported");
    if (proto->segment)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.segment", place,
                               "segmented tensors are not supported");
    return NULL;
}

ent_status ent_import_tensor(ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                             ent_tensor *out, bool *out_borrow) {
    *out = (ent_tensor){.dtype = (uint32_t)ent_import_dtype(proto->data_type)};
    uint64_t count = 0;
    ENT_TRY(check_kind(importer, proto, place, out->dtype));
    ENT_TRY(read_dims(importer, proto, place, out, &count));
    uint32_t bits = ent_dtype_bits((ent_dtype)out->dtype);
    uint64_t flat_bytes = bits < 8 ? count / (8 / bits) + (count % (8 / bits) != 0) : count * (bits / 8);
    source from = find_raw(importer, proto);
    size_t typed = proto->n_float_data + proto->n_int32_data + proto->n_int64_data + proto->n_double_data +
                   proto->n_uint64_data + proto->n_string_data;
    from.external =
        proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    if ((from.external && (from.raw_bytes || typed)) || (from.raw_bytes && typed))
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "tensor.several-data", place,
                               "the tensor has its data in two forms");
    if (from.external) {
        ENT_TRY(ent_import_external(importer, proto, place, flat_bytes, &from.raw));
    } else if (typed || !from.has_raw) {
        uint8_t *flat = (uint8_t *)"";
        if (typed || count) ENT_TRY(read_typed(importer, proto, place, out->dtype, flat_bytes, &flat));
        from.raw = flat;
    } else if (from.raw_bytes != flat_bytes) {
        return wrong_size(importer, place, from.raw_bytes, "bytes", flat_bytes);
    }
    return settle(importer, &from, flat_bytes, count, out, out_borrow);
}
