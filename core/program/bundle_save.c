/* Writes a bundle (layout in bundle.h): one pass over the bytes to find equal constants, one to checksum and
 * write. */
#include "core/program/bundle.h"

#include <string.h>
#include <xxhash.h>

/* Bytes of one section, in pieces that are padded to 64. */
typedef struct pool {
    ENT_ARRAY(ent_file_chunk) chunks;
    uint64_t size;
    ent_map *known; /* content and size -> offset */
} pool;

typedef struct writer {
    ent_arena *arena;
    ENT_ARRAY(ent_file_chunk) chunks;
    uint64_t at;
} writer;

static const uint8_t zeros[ENT_BUNDLE_PAGE];

/* Equal bytes are stored once. What dtype or layout they have does not matter to the file: that stands in the
 * tables. */
static uint64_t pool_add(ent_arena *arena, pool *p, const void *data, uint64_t size) {
    if (size == 0) return 0;
    ent_hash128 hash = ent_hash_bytes(data, size);
    const char *key = ent_arena_format(arena, "%016llx%016llx%llx", (unsigned long long)hash.high,
                                       (unsigned long long)hash.low, (unsigned long long)size);
    uint64_t offset = p->size;
    if (ent_map_find(p->known, key, &offset)) return offset;
    ent_map_set(p->known, key, offset);
    ent_file_chunk chunk = {data, size};
    ent_array_push(arena, &p->chunks, chunk);
    uint64_t padding = ent_program_align(size, ENT_BUNDLE_ALIGNMENT) - size;
    if (padding) {
        ent_file_chunk gap = {zeros, padding};
        ent_array_push(arena, &p->chunks, gap);
    }
    p->size += size + padding;
    return offset;
}

static bool pool_checksum(const pool *p, uint64_t *out) {
    XXH3_state_t *state = XXH3_createState();
    if (!state) return false;
    XXH3_64bits_reset(state);
    for (uint32_t i = 0; i < p->chunks.count; i++)
        XXH3_64bits_update(state, p->chunks.items[i].data, p->chunks.items[i].size_bytes);
    *out = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return true;
}

static void emit(writer *w, const void *data, uint64_t size) {
    if (size == 0) return;
    ent_file_chunk chunk = {data, size};
    ent_array_push(w->arena, &w->chunks, chunk);
    w->at += size;
}

static void put_u32(uint8_t *at, uint32_t value) {
    memcpy(at, &value, sizeof value);
}

static void put_u64(uint8_t *at, uint64_t value) {
    memcpy(at, &value, sizeof value);
}

/* Header and table for sections of these sizes and checksums. */
static uint8_t *make_header(ent_arena *arena, const pool *sections, uint64_t *out_size,
                            uint64_t *out_offsets) {
    *out_size = ENT_BUNDLE_HEADER_BYTES + ENT_BUNDLE_SECTIONS * ENT_BUNDLE_ENTRY_BYTES;
    uint8_t *header = ent_arena_alloc(arena, *out_size);
    uint64_t at = *out_size;
    for (uint32_t i = 0; i < ENT_BUNDLE_SECTIONS; i++) {
        uint8_t *entry = header + ENT_BUNDLE_HEADER_BYTES + i * ENT_BUNDLE_ENTRY_BYTES;
        uint64_t checksum = 0;
        if (!pool_checksum(&sections[i], &checksum)) return NULL;
        at = out_offsets[i] = ent_program_align(at, ent_bundle_section_alignment(i));
        put_u32(entry, i);
        put_u64(entry + 8, at);
        put_u64(entry + 16, sections[i].size);
        put_u64(entry + 24, checksum);
        at += sections[i].size;
    }
    memcpy(header, ENT_BUNDLE_MAGIC, 8);
    put_u32(header + 8, ENT_BUNDLE_FORMAT);
    put_u32(header + 12, ENT_BUNDLE_SECTIONS);
    put_u64(header + 16, at);
    put_u64(header + 24, ent_hash_u64(header, *out_size));
    return header;
}

static void add_whole(ent_arena *arena, pool *section, const void *data, uint64_t size) {
    ent_file_chunk chunk = {data, size};
    if (size) ent_array_push(arena, &section->chunks, chunk);
    section->size = size;
}

static ent_status fill_sections(const ent_program *program, ent_arena *arena, pool *sections) {
    pool *constants = &sections[ENT_BUNDLE_CONSTANTS], *blobs = &sections[ENT_BUNDLE_BLOBS];
    uint64_t *constant_offsets =
        ent_arena_array(arena, (size_t)program->constant_count + 1, sizeof *constant_offsets);
    uint64_t *blob_offsets = ent_arena_array(arena, (size_t)program->kernel_count + 1, sizeof *blob_offsets);
    if (!constant_offsets || !blob_offsets) return ent_status_out_of_memory();
    constants->known = ent_map_create(arena);
    blobs->known = ent_map_create(arena);
    for (uint32_t i = 0; i < program->constant_count; i++)
        constant_offsets[i] =
            pool_add(arena, constants, program->constants[i].data, program->constants[i].size_bytes);
    for (uint32_t i = 0; i < program->kernel_count; i++)
        blob_offsets[i] = pool_add(arena, blobs, program->kernels[i].blob, program->kernels[i].blob_bytes);
    ent_bundle_places places = {.constants = constant_offsets, .blobs = blob_offsets};
    ent_bundle_stream stream = {.arena = arena, .writing = true, .places = &places};
    ent_program copy = *program;
    ent_bundle_transfer_program(&stream, &copy);
    if (stream.failed) return ent_status_out_of_memory();
    add_whole(arena, &sections[ENT_BUNDLE_TABLES], stream.data, stream.size);
    add_whole(arena, &sections[ENT_BUNDLE_PLAN], program->plan_json, program->plan_json_bytes);
    return NULL;
}

ent_status ent_program_save(const ent_program *program, ent_arena *arena, const char *path) {
    pool sections[ENT_BUNDLE_SECTIONS] = {0};
    ENT_TRY(ent_program_verify(program, arena));
    ENT_TRY(fill_sections(program, arena, sections));
    uint64_t header_bytes = 0, offsets[ENT_BUNDLE_SECTIONS];
    const uint8_t *header = make_header(arena, sections, &header_bytes, offsets);
    if (!header) return ent_status_out_of_memory();
    writer w = {.arena = arena};
    emit(&w, header, header_bytes);
    for (uint32_t i = 0; i < ENT_BUNDLE_SECTIONS; i++) {
        emit(&w, zeros, offsets[i] - w.at);
        for (uint32_t k = 0; k < sections[i].chunks.count; k++)
            emit(&w, sections[i].chunks.items[k].data, sections[i].chunks.items[k].size_bytes);
    }
    return ent_file_write_atomic(arena, path, w.chunks.items, w.chunks.count);
}
