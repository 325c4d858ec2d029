/* Transposes move down until they meet and cancel.
 *
 * First, on paper: a value behind a Transpose is its base in another order of axes; a node that can read the
 * bases of its inputs instead (axes.c) passes such an order on to its results; and where a reader cannot, a
 * Transpose has to stand. Values that are linked in this way decide together: they move when that leaves
 * fewer Transposes, or as many that move fewer elements. So their number never grows, and the pass ends.
 * Sub-byte constants are not touched: rows of another length pack differently. */
#include <string.h>

#include "core/rewrite/axes.h"

/* What is planned for a value. */
typedef struct form {
    bool moved;    /* it is `order` of a base */
    bool needed;   /* someone reads it as it stands */
    uint32_t root; /* union-find over values that decide together: 1 + parent, 0 for a root */
    uint32_t base; /* once applied; NONE before */
    ent_axis_order order;
} form;

typedef struct cost {
    int64_t transposes, elements;
} cost;

typedef struct mover {
    ent_rewrite_context *context;
    uint32_t graph;
    ENT_ARRAY(form) forms; /* by value id */
    bool *absorbs;         /* by node id: it reads bases */
    uint32_t node_count;
    cost *before, *after; /* by value id of a group's root */
} mover;

static uint32_t find_root(mover *m, uint32_t value) {
    while (m->forms.items[value].root) {
        uint32_t parent = m->forms.items[value].root - 1;
        if (m->forms.items[parent].root) m->forms.items[value].root = m->forms.items[parent].root;
        value = parent;
    }
    return value;
}

static void join(mover *m, uint32_t a, uint32_t b) {
    a = find_root(m, a);
    b = find_root(m, b);
    if (a != b) m->forms.items[b].root = 1 + a;
}

static bool is_moved(const mover *m, uint32_t value) {
    return value < m->forms.count && m->forms.items[value].moved;
}

/* The orders of a node's inputs; false when none is moved. */
static bool input_orders(mover *m, const ent_node *node, const ent_axis_order ***out) {
    bool any = false;
    *out = ent_arena_alloc(m->context->scratch, (node->input_count + 1) * sizeof **out);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!is_moved(m, node->inputs[i])) continue;
        (*out)[i] = &m->forms.items[node->inputs[i]].order;
        any = true;
    }
    return any;
}

static bool read_order(const mover *m, const ent_node *node, ent_axis_order *out) {
    int64_t perm[ENT_MAX_RANK];
    if (!ent_rewrite_permutation(m->context->module, node, perm, &out->rank)) return false;
    for (uint32_t i = 0; i < out->rank; i++) out->axis[i] = (uint8_t)perm[i];
    return true;
}

/* ---- planning ---- */

static void plan_transpose(mover *m, uint32_t id, const ent_node *node) {
    ent_axis_order order = {0};
    uint32_t x = node->inputs[0], y = node->outputs[0];
    if (y == ENT_ID_NONE || !read_order(m, node, &order)) return;
    if (is_moved(m, x)) order = ent_axis_order_compose(&m->forms.items[x].order, &order);
    m->absorbs[id] = true;
    m->forms.items[y].order = order;
    m->forms.items[y].moved = !ent_axis_order_is_identity(&order);
    if (is_moved(m, x)) join(m, x, y);
}

/* The constants that would have to be written anew can be. */
static bool constants_move(const mover *m, const ent_node *node, uint32_t mask) {
    for (uint32_t i = 0; i < node->input_count && i < 32; i++)
        if ((mask >> i & 1) &&
            ent_dtype_bits((ent_dtype)ent_module_value(m->context->module, node->inputs[i])->dtype) < 8)
            return false;
    return true;
}

static void plan_node(mover *m, uint32_t id) {
    const ent_node *node = ent_module_node(m->context->module, id);
    const ent_axis_order **orders;
    ent_axis_change change;
    uint32_t first = ENT_ID_NONE;
    if (node->op == ENT_OP_Transpose) {
        plan_transpose(m, id, node);
        return;
    }
    if (!input_orders(m, node, &orders) || !ent_axis_change_find(m->context, node, orders, &change) ||
        !constants_move(m, node, change.permuted))
        return;
    m->absorbs[id] = true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (!orders[i]) continue;
        if (first == ENT_ID_NONE) first = node->inputs[i];
        join(m, first, node->inputs[i]);
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ENT_ID_NONE) continue;
        m->forms.items[node->outputs[i]].order = change.result;
        m->forms.items[node->outputs[i]].moved = !ent_axis_order_is_identity(&change.result);
        join(m, first, node->outputs[i]);
    }
}

/* Someone reads the value as it stands: an output, a body, or a node that cannot read bases. */
static bool is_needed(const mover *m, uint32_t value) {
    const ent_module *module = m->context->module;
    uint32_t at = 0, user, index;
    if (ent_value_is_output(module, value)) return true;
    while (ent_value_next_use(module, value, &at, &user, &index))
        if (!m->absorbs[user] || ent_module_node(module, user)->graph != m->graph) return true;
    return false;
}

static void add_cost(cost *c, const mover *m, uint32_t value) {
    int64_t elements = ent_value_elements(m->context->module, value);
    c->transposes++;
    c->elements += elements < 0 ? 0 : elements;
}

static void count_costs(mover *m) {
    const ent_module *module = m->context->module;
    uint32_t at = 0, id;
    while (ent_graph_next(module, m->graph, &at, &id)) {
        const ent_node *node = ent_module_node(module, id);
        for (uint32_t i = 0; m->absorbs[id] && i < node->output_count; i++) {
            uint32_t value = node->outputs[i];
            if (value == ENT_ID_NONE) continue;
            if (node->op == ENT_OP_Transpose) add_cost(&m->before[find_root(m, value)], m, value);
            form *f = &m->forms.items[value];
            f->needed = f->moved && is_needed(m, value);
            if (f->needed) add_cost(&m->after[find_root(m, value)], m, value);
        }
    }
}

static bool is_worth_it(mover *m, uint32_t value) {
    uint32_t root = find_root(m, value);
    const cost *before = &m->before[root], *after = &m->after[root];
    if (after->transposes != before->transposes) return after->transposes < before->transposes;
    return after->elements < before->elements;
}

/* ---- applying ---- */

static form *form_of(mover *m, uint32_t value) {
    static const form none = {.base = ENT_ID_NONE};
    while (m->forms.count <= value) ent_array_push(m->context->scratch, &m->forms, none);
    return &m->forms.items[value];
}

static ent_status add_transpose(mover *m, uint32_t base, const ent_axis_order *order, uint32_t id,
                                uint32_t *out) {
    int64_t perm[ENT_MAX_RANK];
    for (uint32_t i = 0; i < order->rank; i++) perm[i] = order->axis[i];
    ent_attr attr = ent_attr_ints(m->context->module, "perm", perm, order->rank);
    return ent_rewrite_add(m->context, ENT_OP_Transpose, ent_attrs_make(m->context->module, &attr, 1), &base,
                           1, id, &id, 1, out);
}

/* Readers get the base, a Transpose of it, or nothing until they read the base themselves. */
static ent_status settle_output(mover *m, uint32_t id, uint32_t value, uint32_t base) {
    form *f = form_of(m, value);
    f->base = base;
    if (f->moved && !f->needed) return NULL;
    uint32_t result = base;
    if (f->moved) {
        ENT_TRY(add_transpose(m, base, &f->order, id, &result));
        form *made = form_of(m, result);
        *made = *form_of(m, value); /* readers that move find it in place of the old value */
    }
    ent_module_replace_value(m->context->module, value, result);
    return NULL;
}

static ent_status base_inputs(mover *m, const ent_node *node, const ent_axis_change *change,
                              uint32_t **out_inputs, uint32_t *out_count) {
    ent_rewrite_context *context = m->context;
    uint32_t count = node->input_count, graph = node->graph;
    uint32_t *inputs = ent_arena_alloc(context->scratch, (count + ENT_MAX_RANK) * sizeof *inputs);
    memcpy(inputs, node->inputs, count * sizeof *inputs);
    for (uint32_t i = 0; i < count; i++) {
        if (is_moved(m, inputs[i]))
            inputs[i] = form_of(m, inputs[i])->base;
        else if (i < 32 && (change->permuted >> i & 1)) {
            inputs[i] = ent_axis_constant(context, graph, inputs[i], &change->common);
            if (inputs[i] == ENT_ID_NONE) return ent_status_out_of_memory();
        }
    }
    if (change->place == ENT_AXIS_INPUT) {
        while (count <= change->input) inputs[count++] = ENT_ID_NONE;
        inputs[change->input] = ent_module_add_i64s(context->module, graph, change->axes, change->axis_count);
    }
    *out_inputs = inputs;
    *out_count = count;
    return NULL;
}

static ent_status apply_node(mover *m, uint32_t id) {
    ent_module *module = m->context->module;
    ent_node node = *ent_module_node(module, id);
    const ent_axis_order **orders;
    ent_axis_change change;
    uint32_t made;
    input_orders(m, &node, &orders);
    if (!ent_axis_change_find(m->context, &node, orders, &change))
        return ent_status_make(module->arena, ENT_ERROR_INTERNAL, "rewrite.move-transposes", node.name,
                               "the node was planned to move and does not");
    uint32_t *outputs = ent_arena_alloc(m->context->scratch, node.output_count * sizeof *outputs);
    ent_node_spec spec = {.op = node.op, .attrs = node.attrs, .output_count = node.output_count};
    uint32_t *inputs = NULL;
    ENT_TRY(base_inputs(m, &node, &change, &inputs, &spec.input_count));
    spec.inputs = inputs;
    if (change.place == ENT_AXIS_ATTRIBUTE)
        spec.attrs = ent_rewrite_with_attr(module, node.attrs, ent_attr_int("axis", change.axes[0]));
    for (uint32_t i = 0; i < node.output_count; i++)
        outputs[i] =
            node.outputs[i] == ENT_ID_NONE
                ? ENT_ID_NONE
                : ent_module_add_value(module, node.graph, node.name, ENT_DTYPE_NONE, ENT_RANK_UNKNOWN, NULL);
    spec.outputs = outputs;
    ENT_TRY(ent_rewrite_add_node(m->context, &spec, id, &id, 1, &made));
    for (uint32_t i = 0; i < node.output_count; i++)
        if (outputs[i] != ENT_ID_NONE) ENT_TRY(settle_output(m, id, node.outputs[i], outputs[i]));
    ent_module_remove_node(module, id);
    return NULL;
}

static ent_status apply_transpose(mover *m, uint32_t id) {
    const ent_node *node = ent_module_node(m->context->module, id);
    uint32_t x = node->inputs[0], y = node->outputs[0];
    bool composed = is_moved(m, x);
    uint32_t base = composed ? form_of(m, x)->base : x;
    m->context->changed = true;
    if (!composed && form_of(m, y)->moved && form_of(m, y)->needed) { /* it may stay where it is */
        form_of(m, y)->base = base;
        return NULL;
    }
    ENT_TRY(settle_output(m, id, y, base));
    ent_module_remove_node(m->context->module, id);
    return NULL;
}

static ent_status apply(mover *m) {
    const ent_module *module = m->context->module;
    uint32_t at = 0, id;
    while (ent_graph_next(module, m->graph, &at, &id)) {
        if (id >= m->node_count || !m->absorbs[id]) continue;
        const ent_node *node = ent_module_node(module, id);
        if (node->op == ENT_OP_Transpose)
            ENT_TRY(apply_transpose(m, id));
        else
            ENT_TRY(apply_node(m, id));
    }
    return NULL;
}

/* Groups that gain nothing stay as they are. */
static bool keep_gains(mover *m) {
    const ent_module *module = m->context->module;
    uint32_t at = 0, id;
    bool any = false;
    while (ent_graph_next(module, m->graph, &at, &id)) {
        const ent_node *node = ent_module_node(module, id);
        if (!m->absorbs[id]) continue;
        m->absorbs[id] = is_worth_it(m, node->outputs[0]);
        any |= m->absorbs[id];
        for (uint32_t i = 0; i < node->output_count && !m->absorbs[id]; i++)
            if (node->outputs[i] != ENT_ID_NONE) m->forms.items[node->outputs[i]].moved = false;
    }
    return any;
}

static bool has_transpose(const ent_module *module, uint32_t graph) {
    uint32_t at = 0, id;
    while (ent_graph_next(module, graph, &at, &id))
        if (ent_module_node(module, id)->op == ENT_OP_Transpose) return true;
    return false;
}

/* Tables over the whole module, for one graph: most bodies have nothing to move. */
static ent_status move_in_graph(ent_rewrite_context *context, uint32_t graph) {
    uint32_t at = 0, id, values = context->module->values.count;
    mover m = {.context = context, .graph = graph, .node_count = context->module->nodes.count};
    if (!has_transpose(context->module, graph)) return NULL;
    ENT_TRY(ent_arena_check(context->module->arena, context->module->name));
    ent_arena_mark mark = ent_arena_save(context->scratch);
    m.absorbs = ent_arena_alloc(context->scratch, m.node_count * sizeof *m.absorbs);
    m.before = ent_arena_alloc(context->scratch, values * sizeof *m.before);
    m.after = ent_arena_alloc(context->scratch, values * sizeof *m.after);
    if (values) form_of(&m, values - 1);
    while (ent_graph_next(context->module, graph, &at, &id)) plan_node(&m, id);
    count_costs(&m);
    if (keep_gains(&m)) ENT_TRY(apply(&m));
    ent_arena_restore(context->scratch, mark);
    return NULL;
}

/* ---- transposes side by side, and those that move nothing ---- */

/* Transpose of a transpose: one of the base. The first stays for whoever else reads it. */
static ent_status compose(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    const ent_node *before =
        node->op == ENT_OP_Transpose ? ent_rewrite_producer(context, node->inputs[0]) : NULL;
    mover m = {.context = context};
    ent_axis_order first, second;
    if (!before || before->op != ENT_OP_Transpose || node->outputs[0] == ENT_ID_NONE ||
        !read_order(&m, before, &first) || !read_order(&m, node, &second))
        return NULL;
    ent_axis_order order = ent_axis_order_compose(&first, &second);
    uint32_t value = before->inputs[0];
    if (!ent_axis_order_is_identity(&order)) ENT_TRY(add_transpose(&m, value, &order, id, &value));
    ent_rewrite_forward(context, id, value);
    return NULL;
}

/* Only axes of size 1 change places: the elements stay in order. */
static bool keeps_element_order(const ent_module *module, const ent_node *node) {
    int64_t perm[ENT_MAX_RANK], last = -1;
    uint32_t rank = 0;
    if (!ent_value_static(module, node->inputs[0]) || !ent_rewrite_permutation(module, node, perm, &rank))
        return false;
    for (uint32_t i = 0; i < rank; i++) {
        if (ent_module_value(module, node->inputs[0])->dims[perm[i]] == 1) continue;
        if (perm[i] < last) return false;
        last = perm[i];
    }
    return true;
}

static ent_status to_reshape(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    if (node->op != ENT_OP_Transpose || !keeps_element_order(context->module, node)) return NULL;
    return ent_rewrite_become_reshape(context, id, node->inputs[0], &id, 1);
}

ent_status ent_rewrite_move_transposes(ent_rewrite_context *context) {
    ENT_TRY(ent_rewrite_each_node(context, compose));
    uint32_t graphs = context->module->graphs.count;
    for (uint32_t g = 0; g < graphs; g++) ENT_TRY(move_in_graph(context, g));
    /* a reshape stops a transpose that could still move, hence last */
    return context->changed ? NULL : ent_rewrite_each_node(context, to_reshape);
}
