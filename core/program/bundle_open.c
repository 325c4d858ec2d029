/* Opens a bundle (layout in bundle.h) from a read-only map. Nothing of the file is believed before its
 * checksum, and nothing that the checksum covers is believed before ent_program_verify: a checksum only finds
 * accidents. */
#include "core/program/bundle.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct section {
    uint64_t offset, size, checksum;
} section;

static ent_status refuse(ent_arena *arena, const char *path, const char *rule, const char *text) {
    return ent_status_make(arena, ENT_ERROR_MODEL, rule, path, "%s", text);
}

static uint32_t get_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t get_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static ent_status check_header(ent_arena *arena, const char *path, const ent_file_map *map) {
    const uint64_t table_end = ENT_BUNDLE_HEADER_BYTES + ENT_BUNDLE_SECTIONS * ENT_BUNDLE_ENTRY_BYTES;
    const uint8_t *data = map->data;
    if (map->size_bytes < 8 || memcmp(data, ENT_BUNDLE_MAGIC, 8) != 0)
        return refuse(arena, path, "bundle.magic", "is no Entente bundle; compile a model to make one");
    if (map->size_bytes < ENT_BUNDLE_HEADER_BYTES)
        return refuse(arena, path, "bundle.truncated", "ends within its header; copy or compile it again");
    if (get_u32(data + 8) != ENT_BUNDLE_FORMAT)
        return ent_status_make(arena, ENT_ERROR_MODEL, "bundle.version", path,
                               "has format version %u; this runtime reads version %u, so compile the model "
                               "again with this version",
                               get_u32(data + 8), ENT_BUNDLE_FORMAT);
    if (map->size_bytes < table_end || get_u64(data + 16) != map->size_bytes)
        return ent_status_make(arena, ENT_ERROR_MODEL, "bundle.truncated", path,
                               "has %llu bytes and should have %llu; copy or compile it again",
                               (unsigned long long)map->size_bytes, (unsigned long long)get_u64(data + 16));
    uint8_t header[ENT_BUNDLE_HEADER_BYTES + ENT_BUNDLE_SECTIONS * ENT_BUNDLE_ENTRY_BYTES];
    memcpy(header, data, sizeof header);
    memset(header + 24, 0, 8);
    if (ent_hash_u64(header, sizeof header) != get_u64(data + 24) ||
        get_u32(data + 12) != ENT_BUNDLE_SECTIONS)
        return refuse(arena, path, "bundle.checksum", "its header is damaged; copy or compile it again");
    return NULL;
}

/* Sections in order, at the first aligned place behind the one before, with zeros between them, up to the end
 * of the file. */
static ent_status read_sections(ent_arena *arena, const char *path, const ent_file_map *map, section *out) {
    static const char *const names[ENT_BUNDLE_SECTIONS] = {"tables", "kernels", "plan", "constants"};
    uint64_t at = ENT_BUNDLE_HEADER_BYTES + ENT_BUNDLE_SECTIONS * ENT_BUNDLE_ENTRY_BYTES;
    for (uint32_t i = 0; i < ENT_BUNDLE_SECTIONS; i++) {
        const uint8_t *entry = map->data + ENT_BUNDLE_HEADER_BYTES + i * ENT_BUNDLE_ENTRY_BYTES;
        out[i] = (section){get_u64(entry + 8), get_u64(entry + 16), get_u64(entry + 24)};
        uint64_t begin = ent_program_align(at, ent_bundle_section_alignment(i));
        if (get_u32(entry) != i || get_u32(entry + 4) != 0 || out[i].offset != begin ||
            begin > map->size_bytes || out[i].size > map->size_bytes - begin)
            return refuse(arena, path, "bundle.sections",
                          "its sections overlap or leave the file; compile the model again");
        for (; at < begin; at++)
            if (map->data[at] != 0)
                return refuse(arena, path, "bundle.checksum",
                              "has bytes between its sections; copy or compile it again");
        if (ent_hash_u64(map->data + begin, out[i].size) != out[i].checksum)
            return ent_status_make(
                arena, ENT_ERROR_MODEL, "bundle.checksum", path,
                "the section '%s' does not match its checksum; copy or compile the bundle again", names[i]);
        at = begin + out[i].size;
    }
    if (at != map->size_bytes)
        return refuse(arena, path, "bundle.sections",
                      "has bytes behind its last section; compile the model again");
    return NULL;
}

static ent_status read_program(ent_arena *arena, const char *path, const ent_file_map *map,
                               const section *sections, ent_program **out) {
    const section *constants = &sections[ENT_BUNDLE_CONSTANTS], *blobs = &sections[ENT_BUNDLE_BLOBS];
    const section *tables = &sections[ENT_BUNDLE_TABLES], *plan = &sections[ENT_BUNDLE_PLAN];
    ent_bundle_places places = {.constant_data = map->data + constants->offset,
                                .constant_bytes = constants->size,
                                .blob_data = map->data + blobs->offset,
                                .blob_bytes = blobs->size};
    /* Reading never writes through data. */
    ent_bundle_stream stream = {.arena = arena,
                                .data = (uint8_t *)(uintptr_t)(map->data + tables->offset),
                                .size = tables->size,
                                .places = &places};
    ent_program *program = ent_arena_alloc(arena, sizeof *program);
    ent_bundle_transfer_program(&stream, program);
    if (stream.failed) return refuse(arena, path, "bundle.tables", stream.failed);
    program->plan_json = plan->size ? (const char *)map->data + plan->offset : "";
    program->plan_json_bytes = plan->size;
    ent_status status = ent_program_verify(program, arena);
    if (status)
        return ent_status_make(arena, status->code, status->rule,
                               ent_arena_format(arena, "%s: %s", path, status->place), "%s", status->text);
    *out = program;
    return NULL;
}

ent_status ent_bundle_open(ent_arena *arena, const char *path, ent_bundle *out) {
    *out = (ent_bundle){0};
    ENT_TRY(ent_file_map_open(arena, path, ENT_ERROR_MODEL, &out->map));
    section sections[ENT_BUNDLE_SECTIONS];
    ent_status status = check_header(arena, path, &out->map);
    if (!status) status = read_sections(arena, path, &out->map, sections);
    if (!status) status = read_program(arena, path, &out->map, sections, &out->program);
    if (status) ent_bundle_close(out);
    return status;
}

void ent_bundle_close(ent_bundle *bundle) {
    if (!bundle) return;
    ent_file_map_close(&bundle->map);
    bundle->program = NULL;
}

bool ent_bundle_is(const char *path) {
    char magic[8];
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return false;
    bool is = read(descriptor, magic, sizeof magic) == (ssize_t)sizeof magic &&
              memcmp(magic, ENT_BUNDLE_MAGIC, sizeof magic) == 0;
    close(descriptor);
    return is;
}
