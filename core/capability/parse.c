/* Capability documents (schema 1) -> ent_capability. */
#include "core/capability/reader.h"

#include <string.h>

#include "abi/ent_tile.h"

/* Tile functions by the names that declarations use: lower case, underscores. */
static const char *const map_names[ENT_MAP_COUNT] = {[ENT_MAP_COPY] = "copy",
                                                     [ENT_MAP_NEG] = "neg",
                                                     [ENT_MAP_ABS] = "abs",
                                                     [ENT_MAP_SQRT] = "sqrt",
                                                     [ENT_MAP_RSQRT] = "rsqrt",
                                                     [ENT_MAP_RECIPROCAL] = "reciprocal",
                                                     [ENT_MAP_EXP] = "exp",
                                                     [ENT_MAP_LOG] = "log",
                                                     [ENT_MAP_TANH] = "tanh",
                                                     [ENT_MAP_SIGMOID] = "sigmoid",
                                                     [ENT_MAP_ERF] = "erf",
                                                     [ENT_MAP_RELU] = "relu",
                                                     [ENT_MAP_LEAKY_RELU] = "leaky_relu",
                                                     [ENT_MAP_ELU] = "elu",
                                                     [ENT_MAP_SELU] = "selu",
                                                     [ENT_MAP_HARD_SIGMOID] = "hard_sigmoid",
                                                     [ENT_MAP_HARD_SWISH] = "hard_swish",
                                                     [ENT_MAP_GELU] = "gelu",
                                                     [ENT_MAP_GELU_TANH] = "gelu_tanh",
                                                     [ENT_MAP_SILU] = "silu",
                                                     [ENT_MAP_MISH] = "mish",
                                                     [ENT_MAP_SOFTPLUS] = "softplus",
                                                     [ENT_MAP_SOFTSIGN] = "softsign",
                                                     [ENT_MAP_CLIP] = "clip",
                                                     [ENT_MAP_FLOOR] = "floor",
                                                     [ENT_MAP_CEIL] = "ceil",
                                                     [ENT_MAP_ROUND] = "round",
                                                     [ENT_MAP_SIGN] = "sign",
                                                     [ENT_MAP_NOT] = "not",
                                                     [ENT_MAP_SIN] = "sin",
                                                     [ENT_MAP_COS] = "cos",
                                                     [ENT_MAP_SQUARE] = "square",
                                                     [ENT_MAP_SCALE_SHIFT] = "scale_shift",
                                                     [ENT_MAP_POW_SCALAR] = "pow_scalar",
                                                     [ENT_MAP_ADD] = "add",
                                                     [ENT_MAP_SUB] = "sub",
                                                     [ENT_MAP_MUL] = "mul",
                                                     [ENT_MAP_DIV] = "div",
                                                     [ENT_MAP_MAX] = "max",
                                                     [ENT_MAP_MIN] = "min",
                                                     [ENT_MAP_POW] = "pow",
                                                     [ENT_MAP_MOD] = "mod",
                                                     [ENT_MAP_PRELU] = "prelu",
                                                     [ENT_MAP_EQUAL] = "equal",
                                                     [ENT_MAP_LESS] = "less",
                                                     [ENT_MAP_LESS_EQUAL] = "less_equal",
                                                     [ENT_MAP_GREATER] = "greater",
                                                     [ENT_MAP_GREATER_EQUAL] = "greater_equal",
                                                     [ENT_MAP_AND] = "and",
                                                     [ENT_MAP_OR] = "or",
                                                     [ENT_MAP_XOR] = "xor",
                                                     [ENT_MAP_FMA] = "fma",
                                                     [ENT_MAP_SELECT] = "select"};

typedef void (*read_item)(ent_reader *reader, void *out);

/* Reads an array of objects of `size` bytes each. */
static void *read_list(ent_reader *reader, const char *field, bool required, size_t size, read_item read,
                       uint32_t *out_count) {
    const cJSON *array = ent_reader_array(reader, field, required, false), *item;
    char *list = ent_arena_alloc(reader->arena, (array ? (size_t)cJSON_GetArraySize(array) + 1 : 1) * size);
    uint32_t count = 0;
    if (array) cJSON_ArrayForEach(item, array) {
            ent_reader child;
            ent_reader_item(reader, field, count, item, &child);
            read(&child, list + count * size);
            if (ent_reader_finish(&child) && !reader->status) reader->status = child.status;
            count++;
        }
    *out_count = count;
    return list;
}

static void read_level(ent_reader *reader, void *out) {
    static const char *const scopes[] = {"unit", "device", "host"};
    ent_memory_level *level = out;
    level->name = ent_reader_text(reader, "name", true, "");
    uint32_t scope = ent_reader_word(reader, "scope", true, scopes, 3);
    level->scope = scope < 3 ? scopes[scope] : "";
    level->bytes = (uint64_t)ent_reader_number(reader, "bytes", true, 0, 0, 1e16);
    level->read_gbps = ent_reader_number(reader, "read_gbps", true, 0, 1e-3, 1e9);
    level->write_gbps = ent_reader_number(reader, "write_gbps", false, level->read_gbps, 1e-3, 1e9);
    level->unit_gbps = ent_reader_number(reader, "unit_gbps", false, 0, 0, 1e9);
}

static uint32_t read_dtype(ent_reader *reader, const char *field) {
    const char *name = ent_reader_text(reader, field, true, "");
    for (uint32_t d = 1; d < ENT_DTYPE_COUNT; d++)
        if (strcmp(ent_dtype_name((ent_dtype)d), name) == 0) return d;
    ent_reader_fail(reader, field, "capability.dtype", "'%s' is no dtype", name);
    return ENT_DTYPE_NONE;
}

static void read_matrix_unit(ent_reader *reader, void *out) {
    ent_matrix_unit *unit = out;
    unit->name = ent_reader_text(reader, "name", true, "");
    unit->dtype_a = read_dtype(reader, "dtype_a");
    unit->dtype_b = read_dtype(reader, "dtype_b");
    unit->dtype_c = read_dtype(reader, "dtype_c");
    unit->m = ent_reader_int(reader, "m", true, 1, 1, 4096);
    unit->n = ent_reader_int(reader, "n", true, 1, 1, 4096);
    unit->k = ent_reader_int(reader, "k", true, 1, 1, 4096);
    unit->gflops = ent_reader_number(reader, "gflops", true, 1, 1e-3, 1e9);
    unit->a_indirect = ent_reader_bool(reader, "a_indirect", false);
    unit->b_block = (uint32_t)ent_reader_int(reader, "b_block", false, 0, 0, 4096);
}

static void read_link(ent_reader *reader, void *out) {
    ent_link *link = out;
    link->to = ent_reader_text(reader, "to", true, "");
    link->latency_ns = ent_reader_number(reader, "latency_ns", true, 0, 0, 1e12);
    link->gbps = ent_reader_number(reader, "gbps", false, 0, 0, 1e9);
}

static void read_pattern_item(ent_reader *reader, void *out) {
    ent_capability_read_pattern(reader, out);
}

static void read_tile(ent_reader *parent, ent_capability *out) {
    const cJSON *object = ent_reader_object(parent, "tile", (out->depths & ENT_DEPTH_TILE) != 0);
    if (!object) return;
    ent_reader reader;
    ent_reader_open(&reader, parent->arena, parent->document,
                    ent_arena_format(parent->arena, "%s/tile", parent->pointer), object);
    struct {
        const char *name;
        double *value;
    } fields[] = {{"launch_ns", &out->tile.launch_ns},
                  {"sync_ns", &out->tile.sync_ns},
                  {"instance_ns", &out->tile.instance_ns},
                  {"op_ns", &out->tile.op_ns},
                  {"mma_efficiency", &out->tile.mma_efficiency},
                  {"map_cheap_ns", &out->tile.map_cheap_ns},
                  {"map_divide_ns", &out->tile.map_divide_ns},
                  {"map_transcendental_ns", &out->tile.map_transcendental_ns},
                  {"reduce_ns", &out->tile.reduce_ns},
                  {"copy_strided_ns", &out->tile.copy_strided_ns},
                  {"gather_ns", &out->tile.gather_ns},
                  {"window_gflops", &out->tile.window_gflops}};
    bool is_tile_device =
        (out->depths & ENT_DEPTH_TILE) != 0; /* others give what prices their layout changes */
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i].value = ent_reader_number(&reader, fields[i].name, is_tile_device, 0, 0, 1e9);
    uint32_t count = 0;
    const char *const *names = ent_reader_texts(&reader, "maps", &count);
    uint32_t *maps = ent_arena_alloc(parent->arena, (count + 1) * sizeof *maps);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t m = 1; m < ENT_MAP_COUNT; m++)
            if (map_names[m] && strcmp(map_names[m], names[i]) == 0) maps[i] = m;
        if (!maps[i])
            ent_reader_fail(&reader, "maps", "capability.map", "'%s' is no tile function", names[i]);
    }
    out->tile_maps = maps;
    out->tile_map_count = count;
    if (ent_reader_finish(&reader) && !parent->status) parent->status = reader.status;
}

static uint32_t read_depths(ent_reader *reader) {
    uint32_t count = 0, set = 0;
    const char *const *names = ent_reader_texts(reader, "depths", &count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], "graph") == 0)
            set |= ENT_DEPTH_GRAPH;
        else if (strcmp(names[i], "region") == 0)
            set |= ENT_DEPTH_REGION;
        else if (strcmp(names[i], "tile") == 0)
            set |= ENT_DEPTH_TILE;
        else
            ent_reader_fail(reader, "depths", "capability.word", "'%s' is none of graph, region, tile",
                            names[i]);
    }
    return set;
}

/* One of a few words, or the word that stands for "absent". */
static const char *choose(ent_reader *reader, const char *field, bool required, const char *const *words,
                          uint32_t count, const char *missing) {
    uint32_t index = ent_reader_word(reader, field, required, words, count);
    return index < count ? words[index] : missing;
}

/* What only the whole document shows. */
static void check_document(ent_reader *reader, const ent_capability *out) {
    if (reader->status) return;
    if (out->level_count == 0)
        ent_reader_fail(reader, "memory", "capability.missing", "needs at least one level");
    for (uint32_t i = 0; i < out->pattern_count; i++)
        if (!(out->depths & out->patterns[i].depth))
            ent_reader_fail(reader, ent_arena_format(reader->arena, "patterns/%u/depth", i),
                            "capability.depth", "is not among the device's depths");
}

static void read_document(ent_reader *reader, ent_capability *out) {
    int64_t schema = ent_reader_int(reader, "schema", true, 0, 0, INT32_MAX);
    if (!reader->status && schema != 1)
        ent_reader_fail(reader, "schema", "capability.schema", "is %lld; this version reads schema 1",
                        (long long)schema);
    out->name = ent_reader_text(reader, "name", true, "");
    out->vendor = ent_reader_text(reader, "vendor", false, "");
    static const char *const kinds[] = {"cpu", "gpu", "npu", "other"}, *const bases[] = {
                                                                           "measured", "declared", "assumed"};
    out->kind = choose(reader, "kind", true, kinds, 4, "");
    out->description = ent_reader_text(reader, "description", false, "");
    out->basis = choose(reader, "basis", false, bases, 3, "declared");
    ent_reader_text(reader, "source", false, NULL);
    ent_reader_text(reader, "date", false, NULL);
    out->units = (uint32_t)ent_reader_int(reader, "units", true, 1, 1, 1 << 20);
    out->vector_lanes_f32 = (uint32_t)ent_reader_int(reader, "vector_lanes_f32", false, 1, 1, 4096);
    out->launch_ns = ent_reader_number(reader, "launch_ns", true, 0, 0, 1e12);
    out->depths = read_depths(reader);
    out->levels = read_list(reader, "memory", true, sizeof(ent_memory_level), read_level, &out->level_count);
    out->matrix_units = read_list(reader, "matrix_units", false, sizeof(ent_matrix_unit), read_matrix_unit,
                                  &out->matrix_unit_count);
    out->links = read_list(reader, "links", false, sizeof(ent_link), read_link, &out->link_count);
    out->patterns =
        read_list(reader, "patterns", false, sizeof(ent_pattern), read_pattern_item, &out->pattern_count);
    read_tile(reader, out);
    check_document(reader, out);
}

ent_status ent_capability_parse(ent_arena *arena, const char *place, const char *json, size_t size,
                                ent_capability **out) {
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithLengthOpts(json ? json : "", json ? size : 0, &end, false);
    bool whole = root != NULL;
    for (; whole && end < json + size; end++) {
        whole = *end == ' ' || *end == '\n' || *end == '\r' || *end == '\t';
        if (!whole) break;
    }
    if (!whole) {
        cJSON_Delete(root);
        uint32_t line = 1;
        for (const char *at = json; at && at < end; at++) line += *at == '\n';
        return ent_status_make(arena, ENT_ERROR_DEVICE, "capability.json",
                               ent_arena_format(arena, "%s:%u", place, line), "is not JSON from here on");
    }
    ent_capability *capability = ent_arena_alloc(arena, sizeof *capability);
    ent_reader reader;
    ent_reader_open(&reader, arena, place, "", root);
    read_document(&reader, capability);
    capability->json = ent_arena_strndup(arena, json, size);
    ent_status status = ent_reader_finish(&reader);
    cJSON_Delete(root);
    if (status) return status;
    *out = capability;
    return NULL;
}

const ent_memory_level *ent_capability_level(const ent_capability *capability, const char *name) {
    for (uint32_t i = 0; i < capability->level_count; i++)
        if (strcmp(capability->levels[i].name, name) == 0) return &capability->levels[i];
    return NULL;
}

bool ent_capability_has_map(const ent_capability *capability, uint32_t map) {
    for (uint32_t i = 0; i < capability->tile_map_count; i++)
        if (capability->tile_maps[i] == map) return true;
    return false;
}
