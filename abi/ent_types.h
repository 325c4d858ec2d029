/* Basic types shared by the core and every backend plugin: dtypes, dimensions, layouts, tensors, strings,
 * codes.
 *
 * Stable: values are only appended. All integers are fixed width; nothing here depends on a library. */
#ifndef ENT_TYPES_H
#define ENT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENT_MAX_RANK 8
#define ENT_MAX_BLOCKS 2

/* Element types. Numbers are frozen; sub-byte types are packed little-end first, each row of the last
 * physical axis padded to a byte. */
typedef enum ent_dtype {
    ENT_DTYPE_NONE = 0,
    ENT_DTYPE_F32 = 1,
    ENT_DTYPE_F16 = 2,
    ENT_DTYPE_BF16 = 3,
    ENT_DTYPE_F64 = 4,
    ENT_DTYPE_I8 = 5,
    ENT_DTYPE_U8 = 6,
    ENT_DTYPE_I16 = 7,
    ENT_DTYPE_U16 = 8,
    ENT_DTYPE_I32 = 9,
    ENT_DTYPE_U32 = 10,
    ENT_DTYPE_I64 = 11,
    ENT_DTYPE_U64 = 12,
    ENT_DTYPE_BOOL = 13, /* one byte, 0 or 1 */
    ENT_DTYPE_STRING = 14,
    ENT_DTYPE_I4 = 15,
    ENT_DTYPE_U4 = 16,
    ENT_DTYPE_I2 = 17,
    ENT_DTYPE_U2 = 18,
    ENT_DTYPE_F8E4M3FN = 19,
    ENT_DTYPE_F8E4M3FNUZ = 20,
    ENT_DTYPE_F8E5M2 = 21,
    ENT_DTYPE_F8E5M2FNUZ = 22,
    ENT_DTYPE_F4E2M1 = 23,
    ENT_DTYPE_F8E8M0 = 24,
    ENT_DTYPE_C64 = 25,
    ENT_DTYPE_C128 = 26,
    ENT_DTYPE_COUNT = 27
} ent_dtype;

/* Bits of one element; 0 for NONE and STRING. */
static inline uint32_t ent_dtype_bits(ent_dtype dtype) {
    static const uint8_t bits[ENT_DTYPE_COUNT] = {0, 32, 16, 16, 64, 8, 8, 16, 16, 32, 32, 64, 64, 8,
                                                  0, 4,  4,  2,  2,  8, 8, 8,  8,  4,  8,  64, 128};
    return (uint32_t)dtype < ENT_DTYPE_COUNT ? bits[dtype] : 0;
}

/* Lower-case text name as used in text forms, JSON and declarations ("f32"); "none" if unknown. */
static inline const char *ent_dtype_name(ent_dtype dtype) {
    static const char *const names[ENT_DTYPE_COUNT] = {
        "none", "f32",      "f16",        "bf16",   "f64",        "i8",     "u8",     "i16", "u16",
        "i32",  "u32",      "i64",        "u64",    "bool",       "string", "i4",     "u4",  "i2",
        "u2",   "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1", "f8e8m0", "c64", "c128"};
    return (uint32_t)dtype < ENT_DTYPE_COUNT ? names[dtype] : "none";
}

/* Return codes of every ABI function. "No" is an answer inside a message, never a code. */
typedef enum ent_code {
    ENT_OK = 0,
    ENT_CODE_INVALID_ARGUMENT = 1,
    ENT_CODE_BAD_MESSAGE = 2, /* bytes that break the message form */
    ENT_CODE_UNSUPPORTED = 3, /* the plugin cannot do it at all */
    ENT_CODE_OUT_OF_MEMORY = 4,
    ENT_CODE_DEADLINE = 5, /* partial results are valid */
    ENT_CODE_CANCELLED = 6,
    ENT_CODE_QUOTE_BROKEN = 7, /* compile cannot keep what was quoted */
    ENT_CODE_DEVICE_LOST = 8,  /* sticky */
    ENT_CODE_TIMEOUT = 9,      /* a fence wait ran out of time */
    ENT_CODE_ISA_MISSING = 10, /* a blob needs an instruction set that this machine lacks */
    ENT_CODE_INTERNAL = 11,
    ENT_CODE_COUNT = 12
} ent_code;

/* How a result is reached, best first. The executor settles it, not a claim.
 * native: runs on a declared matrix unit. tuned: microkernel or vector kernel of the selected ISA level.
 * generic: scalar code, or anything in core/ops. emulated: stands in for a dtype or operation the device
 * lacks. */
typedef enum ent_tier {
    ENT_TIER_NONE = 0,
    ENT_TIER_NATIVE = 1,
    ENT_TIER_TUNED = 2,
    ENT_TIER_GENERIC = 3,
    ENT_TIER_EMULATED = 4
} ent_tier;

/* Where the number behind a price comes from, best first. */
typedef enum ent_basis {
    ENT_BASIS_NONE = 0,
    ENT_BASIS_MEASURED = 1,
    ENT_BASIS_QUOTE = 2,
    ENT_BASIS_MODEL = 3,
    ENT_BASIS_GUESS = 4
} ent_basis;

/* Depth of entry, as a bit so that sets can be declared. */
typedef enum ent_depth {
    ENT_DEPTH_NONE = 0,
    ENT_DEPTH_GRAPH = 1,
    ENT_DEPTH_REGION = 2,
    ENT_DEPTH_TILE = 4
} ent_depth;

/* UTF-8 text, not NUL-terminated; valid as long as what it was read from. */
typedef struct ent_str {
    const char *data;
    size_t size;
} ent_str;

/* How a tensor is stored. Shapes are always logical; the layout only orders memory.
 * Physical axes, outermost first: logical axis order[0], order[1], ... order[rank-1], each divided by the
 * product of its blocks (rounded up), then the blocks in order, innermost last. A blocked axis is padded to a
 * multiple of its block with zeros. kind ANY: not settled yet (frozen graph). OPAQUE: only plugin `opaque`
 * knows. */
typedef enum ent_layout_kind {
    ENT_LAYOUT_ANY = 0,
    ENT_LAYOUT_STRIDED = 1,
    ENT_LAYOUT_OPAQUE = 2
} ent_layout_kind;

typedef struct ent_layout {
    uint8_t kind; /* ent_layout_kind */
    uint8_t rank;
    uint8_t block_count;
    uint8_t reserved;
    uint8_t order[ENT_MAX_RANK];        /* physical position -> logical axis */
    uint8_t block_axis[ENT_MAX_BLOCKS]; /* logical axis */
    uint16_t block_size[ENT_MAX_BLOCKS];
    uint64_t opaque; /* plugin's own id when kind is OPAQUE, else 0 */
} ent_layout;

/* A tensor in host memory. `data` is borrowed. dims are logical and known. */
typedef struct ent_tensor {
    void *data;
    uint64_t size_bytes;
    uint32_t dtype; /* ent_dtype */
    uint32_t rank;
    int64_t dims[ENT_MAX_RANK];
    ent_layout layout;
} ent_tensor;

/* Row-major layout of a rank. */
static inline ent_layout ent_layout_plain(uint32_t rank) {
    ent_layout layout = {ENT_LAYOUT_STRIDED, (uint8_t)rank, 0, 0, {0}, {0}, {0}, 0};
    for (uint32_t i = 0; i < rank && i < ENT_MAX_RANK; i++) layout.order[i] = (uint8_t)i;
    return layout;
}

/* Channels last: axis 1 stored innermost ("NHWC" for rank 4). rank < 3 gives the plain layout. */
static inline ent_layout ent_layout_channels_last(uint32_t rank) {
    ent_layout layout = ent_layout_plain(rank);
    if (rank < 3) return layout;
    for (uint32_t i = 1; i + 1 < rank; i++) layout.order[i] = (uint8_t)(i + 1);
    layout.order[rank - 1] = 1;
    return layout;
}

static inline bool ent_layout_equal(const ent_layout *a, const ent_layout *b) {
    if (a->kind != b->kind || a->rank != b->rank || a->block_count != b->block_count ||
        a->opaque != b->opaque)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->order[i] != b->order[i]) return false;
    for (uint32_t i = 0; i < a->block_count; i++)
        if (a->block_axis[i] != b->block_axis[i] || a->block_size[i] != b->block_size[i]) return false;
    return true;
}

/* Physical extents of a strided layout, outermost first: rank + block_count entries into out (room for
 * ENT_MAX_RANK + ENT_MAX_BLOCKS). Returns their number; dims are logical. */
static inline uint32_t ent_layout_physical(const ent_layout *layout, const int64_t *dims, int64_t *out) {
    for (uint32_t i = 0; i < layout->rank; i++) {
        int64_t extent = dims[layout->order[i]];
        int64_t block = 1;
        for (uint32_t b = 0; b < layout->block_count; b++)
            if (layout->block_axis[b] == layout->order[i]) block *= layout->block_size[b];
        out[i] = extent / block + (extent % block != 0); /* without overflow for any extent */
    }
    for (uint32_t b = 0; b < layout->block_count; b++) out[layout->rank + b] = layout->block_size[b];
    return (uint32_t)layout->rank + layout->block_count;
}

/* Element offset of a logical index in a strided layout. O(rank); for reference code, not for inner loops. */
static inline int64_t ent_layout_offset(const ent_layout *layout, const int64_t *dims, const int64_t *index) {
    int64_t physical[ENT_MAX_RANK + ENT_MAX_BLOCKS];
    int64_t coordinate[ENT_MAX_RANK + ENT_MAX_BLOCKS];
    uint32_t count = ent_layout_physical(layout, dims, physical);
    int64_t rest[ENT_MAX_RANK];
    for (uint32_t i = 0; i < layout->rank; i++) rest[i] = index[i];
    for (uint32_t b = layout->block_count; b-- > 0;) {
        uint32_t axis = layout->block_axis[b];
        coordinate[layout->rank + b] = rest[axis] % layout->block_size[b];
        rest[axis] /= layout->block_size[b];
    }
    for (uint32_t i = 0; i < layout->rank; i++) coordinate[i] = rest[layout->order[i]];
    int64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) offset = offset * physical[i] + coordinate[i];
    return offset;
}

/* Bytes that a tensor takes in a strided layout (sub-byte rows padded to a byte). Returns -1 on overflow. */
static inline int64_t ent_layout_bytes(const ent_layout *layout, ent_dtype dtype, const int64_t *dims) {
    int64_t physical[ENT_MAX_RANK + ENT_MAX_BLOCKS];
    uint32_t count = ent_layout_physical(layout, dims, physical);
    int64_t row_bits = (int64_t)ent_dtype_bits(dtype);
    const int64_t limit = INT64_MAX / 16;
    if (count > 0) {
        if (physical[count - 1] != 0 && row_bits > limit / physical[count - 1]) return -1;
        row_bits *= physical[count - 1];
    }
    int64_t bytes = (row_bits + 7) / 8;
    for (uint32_t i = 0; i + 1 < count; i++) {
        if (physical[i] != 0 && bytes > limit / physical[i]) return -1;
        bytes *= physical[i];
    }
    return bytes;
}

#endif
