/* Between the files that write and read bundles: the file's layout and the one description of its tables.
 *
 * File, little-endian:
 *   header   64 bytes  magic "ENTENTE\x1a", u32 format version, u32 section count, u64 file bytes, u64
 * checksum of header (with this field zero) and section table, 32 bytes zero table    32 bytes a section: u32
 * kind, u32 zero, u64 offset, u64 size, u64 XXH3-64 of the section sections in the order of
 * ent_bundle_section, each from the next multiple of 64 (CONSTANTS: of 4096); gaps are zero, the last one
 *            ends the file. So every byte of the file is covered by a checksum or known to be zero.
 * TABLES is a stream of counts, numbers and NUL-terminated strings (ent_bundle_transfer_program); constants
 * and blobs are (offset, size) in their sections, each 64-byte aligned there. PLAN is the JSON for explain.
 */
#ifndef ENT_PROGRAM_BUNDLE_H
#define ENT_PROGRAM_BUNDLE_H

#include "core/program/internal.h"

#define ENT_BUNDLE_MAGIC "ENTENTE\x1a"
#define ENT_BUNDLE_FORMAT 2u /* 2: guards on values of inputs, loops */
#define ENT_BUNDLE_HEADER_BYTES 64u
#define ENT_BUNDLE_ENTRY_BYTES 32u
#define ENT_BUNDLE_ALIGNMENT 64u
#define ENT_BUNDLE_PAGE 4096u

typedef enum ent_bundle_section {
    ENT_BUNDLE_TABLES = 0,
    ENT_BUNDLE_BLOBS = 1,
    ENT_BUNDLE_PLAN = 2,
    ENT_BUNDLE_CONSTANTS = 3,
    ENT_BUNDLE_SECTIONS = 4
} ent_bundle_section;

static inline uint64_t ent_bundle_section_alignment(uint32_t section) {
    return section == ENT_BUNDLE_CONSTANTS ? ENT_BUNDLE_PAGE : ENT_BUNDLE_ALIGNMENT;
}

/* Where constants and blobs lie. Writing: by index, filled by the caller. Reading: sections in the map. */
typedef struct ent_bundle_places {
    const uint64_t *constants, *blobs;        /* writing: offsets in their sections */
    const uint8_t *constant_data, *blob_data; /* reading */
    uint64_t constant_bytes, blob_bytes;
} ent_bundle_places;

/* One stream in either direction, so that the description of the tables exists once. Reading checks every
 * count against the bytes that are left before it allocates; a failure is sticky and later values are zero.
 */
typedef struct ent_bundle_stream {
    ent_arena *arena;
    bool writing;
    uint8_t *data; /* writing: grows; reading: the section */
    uint64_t size, capacity, at;
    const char *failed; /* what was wrong, NULL while all is well */
    const ent_bundle_places *places;
} ent_bundle_stream;

void ent_bundle_transfer_program(ent_bundle_stream *stream, ent_program *program);

#endif
