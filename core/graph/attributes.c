/* Attribute makers. */
#include "core/graph/internal.h"

#include <string.h>

static ent_str name_of(const char *name) {
    return (ent_str){name, strlen(name)};
}

ent_attr ent_attr_int(const char *name, int64_t value) {
    return (ent_attr){.name = name_of(name), .type = ENT_ATTR_INT, .i = value};
}

ent_attr ent_attr_float(const char *name, double value) {
    return (ent_attr){.name = name_of(name), .type = ENT_ATTR_FLOAT, .f = value};
}

ent_attr ent_attr_string(ent_module *module, const char *name, const char *value) {
    ent_str text = {ent_arena_strdup(module->arena, value), strlen(value)};
    return (ent_attr){.name = name_of(name), .type = ENT_ATTR_STRING, .s = text};
}

ent_attr ent_attr_ints(ent_module *module, const char *name, const int64_t *values, uint32_t count) {
    const int64_t *copy = ent_arena_copy(module->arena, values, count * sizeof *values);
    return (ent_attr){.name = name_of(name), .type = ENT_ATTR_INTS, .count = count, .ints = copy};
}

ent_attr ent_attr_graph(const char *name, uint32_t graph) {
    return (ent_attr){.name = name_of(name), .type = ENT_ATTR_GRAPH, .i = graph};
}

/* Names may be the caller's: they are copied too. */
ent_attrs ent_attrs_make(ent_module *module, const ent_attr *items, uint32_t count) {
    ent_attr *copy = ent_arena_copy(module->arena, items, count * sizeof *items);
    for (uint32_t i = 0; i < count; i++)
        copy[i].name.data = ent_arena_strndup(module->arena, items[i].name.data, items[i].name.size);
    return (ent_attrs){copy, count};
}
