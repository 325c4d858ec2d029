/* Which inputs of the model decide shapes by their values. Shape rules note the values whose elements they
 * asked for in vain (reduction axes, a target shape, pads), and where a size stays open the inputs of the
 * node (NonZero); from those a walk over producers leads to the inputs they are computed from. */
#include "core/graph/infer.h"

#include <string.h>

void ent_infer_want(const ent_infer *infer, uint32_t index) {
    const ent_value *value = ent_infer_input(infer, index);
    if (!value || value->constant || infer->propagating) return;
    uint32_t id = infer->node->inputs[index];
    ent_elements known = infer->module->state->elements.items[id];
    bool whole = known.items != NULL;
    for (uint32_t i = 0; i < known.count; i++) whole = whole && known.items[i] != ENT_ELEMENT_UNKNOWN;
    if (!whole) infer->module->state->wanted.items[id] = 1;
}

typedef struct search {
    const ent_module *module;
    ent_arena *arena;
    int64_t max_elements;
    uint8_t *seen;   /* per value, in the walk from one wanted value */
    uint8_t *chosen; /* per value */
    ENT_ARRAY(uint32_t) stack;
    ENT_ARRAY(uint32_t) inputs;
    bool small;
} search;

static void reach(search *s, uint32_t value) {
    if (value == ENT_ID_NONE || s->seen[value] || ent_module_value(s->module, value)->constant) return;
    s->seen[value] = 1;
    ent_array_push(s->arena, &s->stack, value);
}

/* A body computes from what it captures, too. */
static void reach_node(search *s, const ent_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++) reach(s, node->inputs[i]);
    for (uint32_t i = 0; i < node->attrs.count; i++) {
        const ent_attr *attr = &node->attrs.items[i];
        if (attr->type != ENT_ATTR_GRAPH) continue;
        const ent_graph *body = ent_module_graph(s->module, (uint32_t)attr->i);
        for (uint32_t k = 0; k < body->outputs.count; k++) reach(s, body->outputs.items[k]);
    }
}

static void walk(search *s) {
    while (s->stack.count) {
        uint32_t value = s->stack.items[--s->stack.count];
        const ent_value *v = ent_module_value(s->module, value);
        if (v->producer != ENT_ID_NONE) {
            reach_node(s, ent_module_node(s->module, v->producer));
            continue;
        }
        if (v->graph != 0) continue; /* what a control node hands its body is reached through the node */
        int64_t elements = ent_value_elements(s->module, value);
        uint32_t bits = ent_dtype_bits(v->dtype);
        s->small = s->small && elements >= 0 && elements <= s->max_elements && bits >= 8 && bits <= 64;
        ent_array_push(s->arena, &s->inputs, value);
    }
}

uint32_t ent_module_shape_inputs(const ent_module *module, ent_arena *arena, int64_t max_elements,
                                 const uint32_t **out) {
    uint32_t values = module->values.count;
    search s = {module, arena, max_elements, NULL, NULL, {0}, {0}, true};
    ENT_ARRAY(uint32_t) found = {0};
    s.seen = ent_arena_alloc(arena, (size_t)values + 1);
    s.chosen = ent_arena_alloc(arena, (size_t)values + 1);
    for (uint32_t v = 0; v < values; v++) {
        if (!module->state->wanted.items[v]) continue;
        memset(s.seen, 0, values);
        s.inputs.count = 0;
        s.small = true;
        reach(&s, v);
        walk(&s);
        for (uint32_t i = 0; s.small && i < s.inputs.count; i++) {
            if (s.chosen[s.inputs.items[i]]) continue;
            s.chosen[s.inputs.items[i]] = 1;
            ent_array_push(arena, &found, s.inputs.items[i]);
        }
    }
    *out = found.items;
    return found.count;
}
