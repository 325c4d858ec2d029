/* Copies of nodes and of whole bodies, for loops that are written out. */
#include "core/graph/internal.h"

static uint32_t mapped(const uint32_t *map, uint32_t count, uint32_t value) {
    return value < count && map[value] != ENT_ID_NONE ? map[value] : value;
}

typedef struct copier {
    ent_module *module;
    uint32_t *map;
    uint32_t count; /* of map: values made since are outside */
} copier;

static uint32_t copy_node(copier *c, uint32_t node, uint32_t graph, uint32_t before);

/* The copy's constants are its own: a graph sees those of graphs around it only. */
static void copy_constants(copier *c, uint32_t from, uint32_t to) {
    for (uint32_t v = 0; v < c->count; v++) {
        const ent_value value = *ent_module_value(c->module, v);
        if (value.graph != from || !value.constant) continue;
        const ent_tensor *t = &value.constant->tensor;
        c->map[v] = ent_module_add_constant(c->module, to, value.name, t->dtype, t->rank, t->dims, t->data,
                                            t->size_bytes, true);
    }
}

static uint32_t copy_graph(copier *c, uint32_t from) {
    const ent_graph body = *ent_module_graph(c->module, from);
    uint32_t to = ent_module_add_graph(c->module, body.name, ENT_ID_NONE), at = 0, node;
    for (uint32_t i = 0; i < body.inputs.count; i++) {
        const ent_value value = *ent_module_value(c->module, body.inputs.items[i]);
        uint32_t copy = ent_module_add_value(c->module, to, value.name, value.dtype, value.rank, value.dims);
        c->map[body.inputs.items[i]] = copy;
        ent_graph_add_input(c->module, to, copy);
    }
    copy_constants(c, from, to);
    while (ent_graph_next(c->module, from, &at, &node)) copy_node(c, node, to, ENT_ID_NONE);
    for (uint32_t i = 0; i < body.outputs.count; i++)
        ent_graph_add_output(c->module, to, mapped(c->map, c->count, body.outputs.items[i]));
    return to;
}

static uint32_t copy_node(copier *c, uint32_t id, uint32_t graph, uint32_t before) {
    ent_module *module = c->module;
    const ent_node node = *ent_module_node(module, id);
    uint32_t *inputs = ent_arena_alloc(module->arena, (node.input_count + 1) * sizeof *inputs),
             *outputs = ent_arena_alloc(module->arena, (node.output_count + 1) * sizeof *outputs);
    ent_attr *attrs = ent_arena_alloc(module->arena, (node.attrs.count + 1) * sizeof *attrs);
    for (uint32_t i = 0; i < node.input_count; i++)
        inputs[i] = node.inputs[i] == ENT_ID_NONE ? ENT_ID_NONE : mapped(c->map, c->count, node.inputs[i]);
    for (uint32_t i = 0; i < node.attrs.count; i++) {
        attrs[i] = node.attrs.items[i];
        if (attrs[i].type == ENT_ATTR_GRAPH) attrs[i].i = copy_graph(c, (uint32_t)attrs[i].i);
    }
    for (uint32_t i = 0; i < node.output_count; i++) {
        outputs[i] = ENT_ID_NONE;
        if (node.outputs[i] == ENT_ID_NONE) continue;
        const ent_value value = *ent_module_value(module, node.outputs[i]);
        outputs[i] = ent_module_add_value(module, graph, value.name, value.dtype, ENT_RANK_UNKNOWN, NULL);
        c->map[node.outputs[i]] = outputs[i];
    }
    ent_node_spec spec = {.op = node.op,
                          .name = node.name,
                          .attrs = {attrs, node.attrs.count},
                          .inputs = inputs,
                          .input_count = node.input_count,
                          .outputs = outputs,
                          .output_count = node.output_count,
                          .origins = node.origins,
                          .origin_count = node.origin_count};
    return ent_module_add_node(module, graph, &spec, before);
}

uint32_t ent_module_copy_node(ent_module *module, uint32_t node, uint32_t graph, uint32_t before,
                              uint32_t *map, uint32_t map_count) {
    copier c = {module, map, map_count};
    return copy_node(&c, node, graph, before);
}

void ent_graph_lift_constants(ent_module *module, uint32_t graph, uint32_t outer) {
    for (uint32_t v = 0; v < module->values.count; v++) {
        ent_value *value = ent_module_value(module, v);
        if (value->graph == graph && value->constant) value->graph = outer;
    }
}
