/* Topological order of one graph's nodes (Kahn's algorithm; ready nodes keep their old order, so the result
 * is deterministic). A control node also depends on what its bodies capture. */
#include "core/graph/internal.h"

#include <string.h>

typedef struct sorter {
    ent_module *module;
    uint32_t graph;
    uint32_t *nodes; /* live nodes, old order */
    uint32_t count;
    ENT_ARRAY(uint32_t) from; /* edges by local index */
    ENT_ARRAY(uint32_t) to;
    ENT_ARRAY(uint32_t) pending; /* bodies still to walk */
} sorter;

static void add_edge(sorter *s, uint32_t value, uint32_t consumer) {
    const ent_module *module = s->module;
    if (value >= module->values.count) return;
    uint32_t producer = module->values.items[value].producer;
    if (producer >= module->nodes.count) return;
    const ent_node *node = &module->nodes.items[producer];
    if (node->graph != s->graph || node->dead) return;
    ent_array_push(module->arena, &s->from, module->state->node_marks.items[producer]);
    ent_array_push(module->arena, &s->to, consumer);
}

static void push_bodies(sorter *s, const ent_node *node) {
    struct ent_module_state *state = s->module->state;
    for (uint32_t i = 0; i < node->attrs.count; i++) {
        const ent_attr *attr = &node->attrs.items[i];
        if (attr->type != ENT_ATTR_GRAPH || attr->i < 0 || attr->i >= s->module->graphs.count) continue;
        if (state->graph_marks.items[attr->i] == state->walk) continue;
        state->graph_marks.items[attr->i] = state->walk;
        ent_array_push(s->module->arena, &s->pending, (uint32_t)attr->i);
    }
}

static void add_edges(sorter *s, uint32_t consumer) {
    const ent_module *module = s->module;
    const ent_node *node = &module->nodes.items[s->nodes[consumer]];
    for (uint32_t i = 0; i < node->input_count; i++) add_edge(s, node->inputs[i], consumer);
    push_bodies(s, node);
    while (s->pending.count) {
        uint32_t body = s->pending.items[--s->pending.count], at = 0, inner;
        const ent_graph *graph = &module->graphs.items[body];
        for (uint32_t i = 0; i < graph->outputs.count; i++) add_edge(s, graph->outputs.items[i], consumer);
        while (ent_graph_next(module, body, &at, &inner)) {
            const ent_node *n = &module->nodes.items[inner];
            for (uint32_t i = 0; i < n->input_count; i++) add_edge(s, n->inputs[i], consumer);
            push_bodies(s, n);
        }
    }
}

static void collect(sorter *s) {
    uint32_t at = 0, node, room = s->module->graphs.items[s->graph].nodes.count;
    s->nodes = ent_arena_alloc(s->module->arena, room * sizeof *s->nodes);
    while (ent_graph_next(s->module, s->graph, &at, &node)) {
        s->module->state->node_marks.items[node] = s->count;
        s->nodes[s->count++] = node;
    }
    s->module->state->walk++;
    for (uint32_t i = 0; i < s->count; i++) add_edges(s, i);
}

static bool is_sorted(const sorter *s) {
    for (uint32_t i = 0; i < s->from.count; i++)
        if (s->from.items[i] >= s->to.items[i]) return false;
    return true;
}

/* Local indices in a new order; the number of those that could be ordered. waiting is left above 0 for the
 * rest. */
static uint32_t order(const sorter *s, uint32_t *sorted, uint32_t *waiting) {
    ent_arena *arena = s->module->arena;
    uint32_t *starts = ent_arena_alloc(arena, ((size_t)s->count + 1) * sizeof *starts);
    uint32_t *consumers = ent_arena_alloc(arena, s->from.count * sizeof *consumers);
    for (uint32_t i = 0; i < s->from.count; i++) {
        starts[s->from.items[i] + 1]++;
        waiting[s->to.items[i]]++;
    }
    for (uint32_t i = 0; i < s->count; i++) starts[i + 1] += starts[i];
    uint32_t *fill = ent_arena_copy(arena, starts, ((size_t)s->count + 1) * sizeof *starts);
    for (uint32_t i = 0; i < s->from.count; i++) consumers[fill[s->from.items[i]]++] = s->to.items[i];
    uint32_t done = 0, ready = 0;
    for (uint32_t i = 0; i < s->count; i++)
        if (waiting[i] == 0) sorted[ready++] = i;
    while (done < ready) {
        uint32_t at = sorted[done++];
        for (uint32_t i = starts[at]; i < starts[at + 1]; i++)
            if (--waiting[consumers[i]] == 0) sorted[ready++] = consumers[i];
    }
    return done;
}

/* A node on a cycle: from any unordered node, walking to unordered producers must come back; after count
 * steps it has. */
static uint32_t find_cycle(const sorter *s, const uint32_t *waiting) {
    uint32_t *producer = ent_arena_alloc(s->module->arena, s->count * sizeof *producer);
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->from.count; i++)
        if (waiting[s->from.items[i]]) producer[s->to.items[i]] = s->from.items[i];
    while (!waiting[at]) at++;
    for (uint32_t i = 0; i < s->count; i++) at = producer[at];
    return s->nodes[at];
}

static void store(ent_module *module, uint32_t graph, const uint32_t *nodes, uint32_t count) {
    ent_graph *g = &module->graphs.items[graph];
    ent_graph_order_clear(module, graph);
    for (uint32_t i = 0; i < count; i++) {
        ent_graph_order_insert(module, nodes[i], ENT_ID_NONE);
        g->nodes.items[i] = nodes[i];
    }
    g->nodes.count = count;
}

ent_status ent_graph_sort(ent_module *module, uint32_t graph) {
    ent_graph_index_outputs(module, graph);
    ent_arena_mark mark = ent_arena_save(module->arena);
    sorter s = {.module = module, .graph = graph};
    collect(&s);
    uint32_t cycle = ENT_ID_NONE;
    if (!is_sorted(&s)) {
        uint32_t *sorted = ent_arena_alloc(module->arena, s.count * sizeof *sorted);
        uint32_t *waiting = ent_arena_alloc(module->arena, s.count * sizeof *waiting);
        if (order(&s, sorted, waiting) < s.count) {
            cycle = find_cycle(&s, waiting);
        } else {
            for (uint32_t i = 0; i < s.count; i++) sorted[i] = s.nodes[sorted[i]];
            store(module, graph, sorted, s.count);
        }
    }
    ent_arena_restore(module->arena, mark);
    if (cycle == ENT_ID_NONE) return NULL;
    return ent_status_make(
        module->arena, ENT_ERROR_MODEL, "graph.cycle", ent_node_place(module, cycle),
        "the node depends on its own output through graph '%s'; a model graph must be acyclic",
        module->graphs.items[graph].name);
}
