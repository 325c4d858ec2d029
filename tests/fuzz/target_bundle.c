/* Bundles: mapped, checked, printed, and made ready to run on the reference device; not run. The mutator
 * makes checksums and section places right again, as somebody with bad intent would. */
#include "core/program/bundle.h"
#include "core/runtime/runtime.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define HEAD (ENT_BUNDLE_HEADER_BYTES + ENT_BUNDLE_SECTIONS * ENT_BUNDLE_ENTRY_BYTES)

static uint64_t get(const uint8_t *at, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

static void put(uint8_t *at, unsigned bytes, uint64_t value) {
    memcpy(at, &value, bytes);
}

/* Where section i lies now; false when it is not within the file. */
static bool find(const uint8_t *data, size_t size, uint32_t i, const uint8_t **out, size_t *out_size) {
    const uint8_t *entry = data + ENT_BUNDLE_HEADER_BYTES + (size_t)i * ENT_BUNDLE_ENTRY_BYTES;
    uint64_t offset = get(entry + 8, 8), bytes = get(entry + 16, 8);
    if (offset > size || bytes > size - offset) return false;
    *out = data + offset;
    *out_size = bytes;
    return true;
}

/* A whole bundle of four sections; 0 when it is over max_size. */
static size_t assemble(uint8_t *out, size_t max_size, uint8_t *const *sections, const size_t *sizes) {
    uint64_t at = HEAD;
    memset(out, 0, max_size);
    for (uint32_t i = 0; i < ENT_BUNDLE_SECTIONS; i++) {
        at = ent_program_align(at, ent_bundle_section_alignment(i));
        if (at > max_size || sizes[i] > max_size - at) return 0;
        uint8_t *entry = out + ENT_BUNDLE_HEADER_BYTES + (size_t)i * ENT_BUNDLE_ENTRY_BYTES;
        if (sizes[i]) memcpy(out + at, sections[i], sizes[i]);
        put(entry, 4, i);
        put(entry + 8, 8, at);
        put(entry + 16, 8, sizes[i]);
        put(entry + 24, 8, ent_hash_u64(out + at, sizes[i]));
        at += sizes[i];
    }
    memcpy(out, ENT_BUNDLE_MAGIC, 8);
    put(out + 8, 4, ENT_BUNDLE_FORMAT);
    put(out + 12, 4, ENT_BUNDLE_SECTIONS);
    put(out + 16, 8, at);
    put(out + 24, 8, ent_hash_u64(out, HEAD));
    return at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint8_t *sections[ENT_BUNDLE_SECTIONS] = {0};
    size_t sizes[ENT_BUNDLE_SECTIONS] = {0}, changed = 0;
    bool whole = size >= HEAD && seed % 32 != 0;
    for (uint32_t i = 0; whole && i < ENT_BUNDLE_SECTIONS; i++) {
        const uint8_t *from = NULL;
        whole = find(data, size, i, &from, &sizes[i]);
        sections[i] = whole ? malloc(sizes[i] + 4096) : NULL;
        if (sections[i] && sizes[i]) memcpy(sections[i], from, sizes[i]);
        whole = whole && sections[i];
    }
    uint32_t chosen = seed % 8 == 0 ? ENT_BUNDLE_BLOBS : ENT_BUNDLE_TABLES;
    if (whole) sizes[chosen] = LLVMFuzzerMutate(sections[chosen], sizes[chosen], sizes[chosen] + 4096);
    if (whole) changed = assemble(data, max_size, sections, sizes);
    for (uint32_t i = 0; i < ENT_BUNDLE_SECTIONS; i++) free(sections[i]);
    return changed ? changed : LLVMFuzzerMutate(data, size, max_size);
}

static void prepare(ent_arena *arena, const ent_program *program) {
    ent_host_registry *registry = NULL;
    ent_runtime *runtime = NULL;
    ent_host_options nowhere = {.plugin_path = "/nonexistent", .no_environment = true};
    ent_runtime_options options = {.threads = 1};
    fuzz_check_status(ent_host_scan(arena, &nowhere, &registry));
    fuzz_check_status(ent_host_add_static(registry, &ent_plugin_v1, true));
    ent_status status = ent_runtime_create(arena, registry, program, &options, &runtime);
    fuzz_check_status(status);
    if (!status) fuzz_accept();
    ent_runtime_destroy(runtime);
    ent_host_close(registry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ent_arena *arena = ent_arena_create(FUZZ_MEMORY_BYTES);
    ent_bundle bundle;
    ent_status status = ent_bundle_open(arena, fuzz_file("model.ent", data, size), &bundle);
    fuzz_check_status(status);
    if (!status) {
        ent_program_print(bundle.program, arena);
        prepare(arena, bundle.program);
        ent_bundle_close(&bundle);
    }
    ent_arena_destroy(arena);
    return 0;
}
