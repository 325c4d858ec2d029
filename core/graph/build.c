/* Making and editing modules.
 *
 * Uses and node order are linked lists, so that replacing a value costs its uses and inserting a node costs
 * nothing. A use entry is never removed: when a slot gets another value its old entry is stale and walks skip
 * it. */
#include "core/graph/internal.h"

#include <string.h>

/* Outputs pushed to a list directly are seen at once in so many graphs, in the others by the next sort or
 * inference. */
#define MAX_WATCHED_GRAPHS 64u

ent_module *ent_module_create(ent_arena *arena, const char *name) {
    ent_module *module = ent_arena_alloc(arena, sizeof *module);
    module->arena = arena;
    module->name = ent_arena_strdup(arena, name ? name : "");
    struct ent_module_state *state = ent_arena_alloc(arena, sizeof *state);
    module->state = state;
    state->value_names = ent_map_create(arena);
    state->node_names = ent_map_create(arena);
    state->graph_names = ent_map_create(arena);
    state->symbol_names = ent_map_create(arena);
    state->fresh = ent_map_create(arena);
    ent_module_add_graph(module, "main", ENT_ID_NONE);
    return module;
}

/* The stem itself if it is free, else stem.1, stem.2 ... The counter per stem keeps a run of equal names
 * linear. */
const char *ent_module_fresh_name(ent_module *module, ent_map *taken, const char *stem, uint64_t id) {
    const char *name = ent_arena_strdup(module->arena, stem);
    if (stem[0] == 0 || ent_map_find(taken, stem, NULL)) {
        uint64_t next = 1;
        ent_map_find(module->state->fresh, stem, &next);
        do {
            name = ent_arena_format(module->arena, "%s.%llu", stem, (unsigned long long)next++);
        } while (ent_map_find(taken, name, NULL));
        ent_map_set(module->state->fresh, stem, next);
    }
    ent_map_set(taken, name, id);
    return name;
}

uint32_t ent_module_add_graph(ent_module *module, const char *name, uint32_t owner) {
    uint32_t id = module->graphs.count;
    ent_graph graph = {0};
    graph.name =
        ent_module_fresh_name(module, module->state->graph_names, name && name[0] ? name : "graph", id);
    graph.owner = owner;
    ent_array_push(module->arena, &module->graphs, graph);
    ent_order order = {ENT_ID_NONE, ENT_ID_NONE};
    ent_array_push(module->arena, &module->state->graph_order, order);
    ent_array_push(module->arena, &module->state->graph_marks, 0u);
    ent_array_push(module->arena, &module->state->indexed_outputs, 0u);
    return id;
}

uint32_t ent_module_add_symbol(ent_module *module, const char *name, int64_t min, int64_t max) {
    uint32_t id = module->symbols.count;
    ent_symbol symbol = {NULL, min, max, 0};
    symbol.name =
        ent_module_fresh_name(module, module->state->symbol_names, name && name[0] ? name : "dim", id);
    ent_array_push(module->arena, &module->symbols, symbol);
    return id;
}

uint32_t ent_module_add_value(ent_module *module, uint32_t graph, const char *name, uint32_t dtype,
                              uint32_t rank, const ent_dim *dims) {
    uint32_t id = module->values.count;
    ent_value value = {0};
    value.name = ent_module_fresh_name(module, module->state->value_names, name && name[0] ? name : "v", id);
    value.graph = graph;
    value.producer = ENT_ID_NONE;
    value.dtype = dtype;
    value.rank = rank <= ENT_MAX_RANK ? rank : ENT_RANK_UNKNOWN;
    if (value.rank != ENT_RANK_UNKNOWN && rank > 0) memcpy(value.dims, dims, rank * sizeof *dims);
    ent_array_push(module->arena, &module->values, value);
    ent_array_push(module->arena, &module->state->use_heads, 0u);
    ent_array_push(module->arena, &module->state->elements, (ent_elements){0});
    ent_array_push(module->arena, &module->state->wanted, 0);
    return id;
}

uint32_t ent_module_add_constant(ent_module *module, uint32_t graph, const char *name, uint32_t dtype,
                                 uint32_t rank, const int64_t *dims, const void *data, uint64_t size_bytes,
                                 bool borrow) {
    ent_constant *constant = ent_arena_alloc(module->arena, sizeof *constant);
    ent_tensor *tensor = &constant->tensor;
    tensor->dtype = dtype;
    tensor->rank = rank;
    if (rank > 0) memcpy(tensor->dims, dims, rank * sizeof *dims);
    tensor->size_bytes = size_bytes;
    tensor->layout = ent_layout_plain(rank);
    tensor->data = borrow ? (void *)(uintptr_t)data : ent_arena_copy(module->arena, data, size_bytes);
    constant->hash = ent_hash_bytes(data, size_bytes);
    uint32_t id = ent_module_add_value(module, graph, name ? name : "c", dtype, rank, dims);
    module->values.items[id].constant = constant;
    return id;
}

uint32_t ent_module_add_i64s(ent_module *module, uint32_t graph, const int64_t *items, uint32_t count) {
    int64_t dims[1] = {count};
    return ent_module_add_constant(module, graph, NULL, ENT_DTYPE_I64, 1, dims, items, count * sizeof *items,
                                   false);
}

uint32_t ent_module_add_scalar(ent_module *module, uint32_t graph, uint32_t dtype, double value) {
    uint8_t data[16] = {0};
    ent_element_set_f64(data, dtype, 0, value);
    uint64_t size = (ent_dtype_bits(dtype) + 7) / 8;
    return ent_module_add_constant(module, graph, NULL, dtype, 0, NULL, data, size, false);
}

/* ---- uses ---- */

static void add_use(ent_module *module, uint32_t value, uint32_t user, uint32_t slot) {
    struct ent_module_state *state = module->state;
    if (value >= module->values.count) return;
    ent_use use = {user, slot, state->use_heads.items[value]};
    ent_array_push(module->arena, &state->uses, use);
    state->use_heads.items[value] = state->uses.count;
}

bool ent_graph_is_dead(const ent_module *module, uint32_t graph) {
    uint32_t owner = module->graphs.items[graph].owner;
    return owner < module->nodes.count && module->nodes.items[owner].dead;
}

uint32_t *ent_use_slot(const ent_module *module, const ent_use *use, uint32_t value) {
    uint32_t *slot;
    if (use->user & ENT_USE_GRAPH) {
        const ent_graph *graph = &module->graphs.items[use->user & ~ENT_USE_GRAPH];
        if (use->slot >= graph->outputs.count || ent_graph_is_dead(module, use->user & ~ENT_USE_GRAPH))
            return NULL;
        slot = &graph->outputs.items[use->slot];
    } else {
        const ent_node *node = &module->nodes.items[use->user];
        if (node->dead || use->slot >= node->input_count) return NULL;
        slot = (uint32_t *)(uintptr_t)&node->inputs[use->slot];
    }
    return *slot == value ? slot : NULL;
}

void ent_graph_add_input(ent_module *module, uint32_t graph, uint32_t value) {
    ent_array_push(module->arena, &module->graphs.items[graph].inputs, value);
}

void ent_graph_index_outputs(ent_module *module, uint32_t graph) {
    const ent_graph *g = &module->graphs.items[graph];
    uint32_t *indexed = &module->state->indexed_outputs.items[graph];
    for (; *indexed < g->outputs.count; ++*indexed)
        add_use(module, g->outputs.items[*indexed], ENT_USE_GRAPH | graph, *indexed);
}

void ent_graph_add_output(ent_module *module, uint32_t graph, uint32_t value) {
    ent_array_push(module->arena, &module->graphs.items[graph].outputs, value);
    ent_graph_index_outputs(module, graph);
}

void ent_graph_set_output(ent_module *module, uint32_t graph, uint32_t index, uint32_t value) {
    module->graphs.items[graph].outputs.items[index] = value;
    add_use(module, value, ENT_USE_GRAPH | graph, index);
}

void ent_module_replace_value(ent_module *module, uint32_t from, uint32_t to) {
    struct ent_module_state *state = module->state;
    if (from == to) return;
    for (uint32_t g = 0; g < module->graphs.count && g < MAX_WATCHED_GRAPHS; g++)
        ent_graph_index_outputs(module, g);
    uint32_t at = state->use_heads.items[from];
    state->use_heads.items[from] = 0;
    while (at) {
        ent_use *use = &state->uses.items[at - 1];
        uint32_t next = use->next;
        uint32_t *slot = ent_use_slot(module, use, from);
        if (slot) {
            *slot = to;
            use->next = state->use_heads.items[to];
            state->use_heads.items[to] = at;
        }
        at = next;
    }
}

/* ---- nodes ---- */

void ent_graph_order_insert(ent_module *module, uint32_t node, uint32_t before) {
    ent_order *nodes = module->state->node_order.items;
    ent_order *ends = &module->state->graph_order.items[module->nodes.items[node].graph];
    uint32_t previous = before == ENT_ID_NONE ? ends->previous : nodes[before].previous;
    nodes[node] = (ent_order){previous, before};
    if (previous == ENT_ID_NONE)
        ends->next = node;
    else
        nodes[previous].next = node;
    if (before == ENT_ID_NONE)
        ends->previous = node;
    else
        nodes[before].previous = node;
}

void ent_graph_order_clear(ent_module *module, uint32_t graph) {
    module->state->graph_order.items[graph] = (ent_order){ENT_ID_NONE, ENT_ID_NONE};
}

static void adopt_graphs(ent_module *module, uint32_t node, ent_attrs attrs) {
    for (uint32_t i = 0; i < attrs.count; i++) {
        const ent_attr *attr = &attrs.items[i];
        if (attr->type == ENT_ATTR_GRAPH && attr->i >= 0 && attr->i < module->graphs.count)
            module->graphs.items[attr->i].owner = node;
    }
}

static const uint32_t *make_outputs(ent_module *module, uint32_t node, const ent_node_spec *spec,
                                    uint32_t graph) {
    uint32_t *outputs = ent_arena_alloc(module->arena, spec->output_count * sizeof *outputs);
    const char *stem = module->nodes.items[node].name;
    for (uint32_t i = 0; i < spec->output_count; i++) {
        uint32_t value = spec->outputs ? spec->outputs[i] : ENT_ID_NONE;
        if (!spec->outputs)
            value = ent_module_add_value(module, graph, stem, ENT_DTYPE_NONE, ENT_RANK_UNKNOWN, NULL);
        outputs[i] = value;
        if (value == ENT_ID_NONE) continue;
        module->values.items[value].producer = node;
        module->values.items[value].producer_output = i;
    }
    return outputs;
}

uint32_t ent_module_add_node(ent_module *module, uint32_t graph, const ent_node_spec *spec, uint32_t before) {
    uint32_t id = module->nodes.count;
    const ent_op_info *info = ent_op_info_get(spec->op);
    ent_node node = {0};
    const char *stem = spec->name && spec->name[0] ? spec->name : info ? info->name : "node";
    node.name = ent_module_fresh_name(module, module->state->node_names, stem, id);
    node.op = spec->op;
    node.graph = graph;
    node.attrs = spec->attrs;
    node.inputs = ent_arena_copy(module->arena, spec->inputs, spec->input_count * sizeof *spec->inputs);
    node.input_count = spec->input_count;
    node.output_count = spec->output_count;
    node.origins = ent_arena_copy(module->arena, spec->origins, spec->origin_count * sizeof *spec->origins);
    node.origin_count = spec->origin_count;
    ent_array_push(module->arena, &module->nodes, node);
    ent_array_push(module->arena, &module->graphs.items[graph].nodes, id);
    ent_array_push(module->arena, &module->state->node_order, (ent_order){0});
    ent_array_push(module->arena, &module->state->node_marks, 0u);
    module->nodes.items[id].outputs = make_outputs(module, id, spec, graph);
    for (uint32_t i = 0; i < spec->input_count; i++) add_use(module, spec->inputs[i], id, i);
    ent_graph_order_insert(module, id, before);
    adopt_graphs(module, id, spec->attrs);
    return id;
}

void ent_module_set_input(ent_module *module, uint32_t node, uint32_t index, uint32_t value) {
    uint32_t *inputs = (uint32_t *)(uintptr_t)module->nodes.items[node].inputs;
    if (inputs[index] == value) return;
    inputs[index] = value;
    add_use(module, value, node, index);
}

void ent_module_set_attrs(ent_module *module, uint32_t node, ent_attrs attrs) {
    module->nodes.items[node].attrs = attrs;
    adopt_graphs(module, node, attrs);
}

/* Nodes of the bodies die with their control node. A list instead of recursion: nesting is not bounded here.
 */
void ent_module_remove_node(ent_module *module, uint32_t node) {
    ENT_ARRAY(uint32_t) doomed = {0};
    if (module->nodes.items[node].dead) return;
    module->nodes.items[node].dead = true;
    ent_array_push(module->arena, &doomed, node);
    while (doomed.count) {
        ent_attrs attrs = module->nodes.items[doomed.items[--doomed.count]].attrs;
        for (uint32_t i = 0; i < attrs.count; i++) {
            const ent_attr *attr = &attrs.items[i];
            if (attr->type != ENT_ATTR_GRAPH || attr->i < 0 || attr->i >= module->graphs.count) continue;
            uint32_t at = 0, inner;
            while (ent_graph_next(module, (uint32_t)attr->i, &at, &inner)) {
                module->nodes.items[inner].dead = true;
                ent_array_push(module->arena, &doomed, inner);
            }
        }
    }
}

static void move_value(ent_module *module, uint32_t value, uint32_t from, uint32_t to) {
    if (value < module->values.count && module->values.items[value].graph == from)
        module->values.items[value].graph = to;
}

static void move_values_of_node(ent_module *module, const ent_node *node, uint32_t from, uint32_t to) {
    for (uint32_t i = 0; i < node->input_count; i++) move_value(module, node->inputs[i], from, to);
    for (uint32_t i = 0; i < node->output_count; i++) move_value(module, node->outputs[i], from, to);
}

/* The node's own values, and what its bodies, at any depth, capture: a constant may be read there only. */
static void move_values(ent_module *module, uint32_t node, uint32_t from, uint32_t to) {
    ENT_ARRAY(uint32_t) open = {0};
    ent_array_push(module->arena, &open, node);
    while (open.count) {
        const ent_node *n = &module->nodes.items[open.items[--open.count]];
        move_values_of_node(module, n, from, to);
        for (uint32_t i = 0; i < n->attrs.count; i++) {
            const ent_attr *attr = &n->attrs.items[i];
            if (attr->type != ENT_ATTR_GRAPH || attr->i < 0 || attr->i >= module->graphs.count) continue;
            const ent_graph *body = &module->graphs.items[attr->i];
            uint32_t at = 0, inner;
            while (ent_graph_next(module, (uint32_t)attr->i, &at, &inner))
                ent_array_push(module->arena, &open, inner);
            for (uint32_t k = 0; k < body->outputs.count; k++)
                move_value(module, body->outputs.items[k], from, to);
        }
    }
}

void ent_module_inline_graph(ent_module *module, uint32_t node, uint32_t graph) {
    uint32_t outer = module->nodes.items[node].graph, at = 0, inner;
    ENT_ARRAY(uint32_t) moved = {0};
    while (ent_graph_next(module, graph, &at, &inner)) ent_array_push(module->arena, &moved, inner);
    ent_graph_order_clear(module, graph);
    for (uint32_t i = 0; i < moved.count; i++) {
        ent_node *n = &module->nodes.items[moved.items[i]];
        n->graph = outer;
        move_values(module, moved.items[i], graph, outer);
        ent_array_push(module->arena, &module->graphs.items[outer].nodes, moved.items[i]);
        ent_graph_order_insert(module, moved.items[i], node);
    }
    const ent_node *control = &module->nodes.items[node];
    const ent_graph *body = &module->graphs.items[graph];
    for (uint32_t i = 0; i < control->output_count && i < body->outputs.count; i++) {
        move_value(module, body->outputs.items[i], graph, outer);
        if (control->outputs[i] != ENT_ID_NONE)
            ent_module_replace_value(module, control->outputs[i], body->outputs.items[i]);
    }
    ent_module_remove_node(module, node);
}

void ent_module_add_note(ent_module *module, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *note = ent_arena_format_list(module->arena, format, arguments);
    va_end(arguments);
    ent_array_push(module->arena, &module->notes, note);
}
