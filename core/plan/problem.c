/* The partition problem of a session: leaves over all graphs in one order, values, labels, admissible offers.
 */
#include "core/plan/internal.h"

#include <math.h>
#include <string.h>

uint32_t ent_plan_intern_label(ent_plan_builder *b, uint32_t space, const ent_layout *layout) {
    for (uint32_t i = 0; i < b->labels.count; i++)
        if (b->labels.items[i].space == space && ent_layout_equal(&b->labels.items[i].layout, layout))
            return i;
    ent_plan_label label = {space, *layout};
    ent_array_push(b->arena, &b->labels, label);
    return b->labels.count - 1;
}

#define ASSUMED_TRIPS 10 /* of a loop whose trip count is known only at run time */

static double offer_weight(const ent_plan_builder *b, const ent_offer *offer) {
    return b->graph_weight[offer->graph];
}

/* Bodies come before their control node, which then only needs their outputs. */
static void add_leaves(ent_plan_builder *b, uint32_t graph, double weight) {
    const ent_module *module = b->session->module;
    b->graph_weight[graph] = weight;
    uint32_t at = 0, id;
    while (ent_graph_next(module, graph, &at, &id)) {
        const ent_node *node = ent_module_node(module, id);
        for (uint32_t a = 0; a < node->attrs.count; a++)
            if (node->attrs.items[a].type == ENT_ATTR_GRAPH)
                add_leaves(b, (uint32_t)node->attrs.items[a].i,
                           weight * (node->op == ENT_OP_Loop ? ASSUMED_TRIPS : 0.5));
        b->leaf_of[id] = b->leaves.count;
        ent_array_push(b->arena, &b->leaves, id);
    }
}

static uint32_t add_value(ent_plan_builder *b, uint32_t id) {
    if (b->value_of[id] == ENT_PARTITION_NONE) {
        b->value_of[id] = b->values.count;
        ent_array_push(b->arena, &b->values, id);
    }
    return b->value_of[id];
}

/* The partition sees data only: constants are stored in whatever form each region wants. */
static bool is_data_port(const ent_module *module, const ent_offer_port *port) {
    return port->value != ENT_ID_NONE && !port->is_constant &&
           !ent_module_value(module, port->value)->constant;
}

static void add_ports(ent_plan_builder *b, const ent_offer *offer, ent_partition_offer *out) {
    ent_partition_port *ports = ent_arena_alloc(b->arena, (2 * offer->port_count + 1) * sizeof *ports);
    ent_partition_port *outputs = ports + offer->port_count;
    uint32_t space = offer->device == ENT_ID_NONE ? 0 : b->device_space[offer->device];
    for (uint32_t i = 0; i < offer->port_count; i++) {
        const ent_offer_port *port = &offer->ports[i];
        if (!is_data_port(b->session->module, port)) continue;
        ent_partition_port p = {add_value(b, port->value), ent_plan_intern_label(b, space, &port->layout)};
        if (port->is_output)
            outputs[out->output_count++] = p;
        else
            ports[out->input_count++] = p;
    }
    out->inputs = ports;
    out->outputs = outputs;
}

static void add_offer(ent_plan_builder *b, const ent_offer *offer, ent_partition_offer *out) {
    uint32_t *leaves = ent_arena_alloc(b->arena, (offer->node_count + 1) * sizeof *leaves);
    for (uint32_t i = 0; i < offer->node_count; i++) {
        uint32_t leaf = b->leaf_of[offer->nodes[i]], k = i;
        for (; k > 0 && leaves[k - 1] > leaf; k--) leaves[k] = leaves[k - 1];
        leaves[k] = leaf;
    }
    memset(out, 0, sizeof *out);
    out->leaves = leaves;
    out->leaf_count = offer->node_count;
    out->price_ns = offer->time_mid_ns * offer_weight(b, offer);
    const char *device = offer->device == ENT_ID_NONE ? NULL : b->session->devices[offer->device].name;
    if (b->options->prefer && device && strcmp(device, b->options->prefer) == 0) out->price_ns *= 0.9;
    add_ports(b, offer, out);
}

static ent_status add_offers(ent_plan_builder *b) {
    uint32_t room = b->session->offers.count + 1, count = 0;
    ent_partition_offer *offers = ent_arena_array(b->arena, room, sizeof *offers);
    uint32_t *offer_of = ent_arena_array(b->arena, room, sizeof *offer_of);
    if (!offers || !offer_of) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < b->session->offers.count; i++) {
        const ent_offer *offer = &b->session->offers.items[i];
        if (offer->withdrawn || !ent_plan_admissible(b, offer)) continue;
        add_offer(b, offer, &offers[count]);
        offer_of[count++] = i;
    }
    b->problem.offers = offers;
    b->problem.offer_count = count;
    b->offer_of = offer_of;
    return NULL;
}

static uint32_t plain_label(ent_plan_builder *b, uint32_t value) {
    ent_layout plain = ent_value_plain_layout(b->session->module, value);
    return ent_plan_intern_label(b, 0, &plain);
}

/* Nothing else refuses these: an input has no node, and a control node is taken whatever its outputs are. */
static ent_status check_rank(const ent_plan_builder *b, const ent_value *value) {
    const ent_module *module = b->session->module;
    if (value->rank != ENT_RANK_UNKNOWN) return NULL;
    if (value->producer == ENT_ID_NONE)
        return ent_status_make(b->arena, ENT_ERROR_UNSUPPORTED, "plan.rank", module->name,
                               "the rank of input '%s' is not known; give its shape with --shape",
                               value->name);
    const ent_node *node = ent_module_node(module, value->producer);
    const ent_op_info *info = ent_op_info_get(node->op);
    if (info->op_class != ENT_CLASS_CONTROL) return NULL;
    return ent_status_make(
        b->arena, ENT_ERROR_UNSUPPORTED, "plan.rank",
        ent_arena_format(b->arena, "%s: node '%s' (%s)", module->name, node->name, info->name),
        "the rank of its output '%s' depends on what runs; let all ways give the same", value->name);
}

static ent_status add_values(ent_plan_builder *b) {
    const ent_module *module = b->session->module;
    const ent_graph *main = ent_module_graph(module, 0);
    for (uint32_t i = 0; i < main->inputs.count; i++) {
        ENT_TRY(check_rank(b, ent_module_value(module, main->inputs.items[i])));
        if (!ent_module_value(module, main->inputs.items[i])->constant) add_value(b, main->inputs.items[i]);
    }
    for (uint32_t i = 0; i < main->outputs.count; i++)
        if (!ent_module_value(module, main->outputs.items[i])->constant) add_value(b, main->outputs.items[i]);
    ent_partition_value *values = ent_arena_array(b->arena, b->values.count + 1, sizeof *values);
    if (!values) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < b->values.count; i++) {
        const ent_value *value = ent_module_value(module, b->values.items[i]);
        uint32_t label = plain_label(b, b->values.items[i]);
        ENT_TRY(check_rank(b, value));
        bool made = value->producer != ENT_ID_NONE;
        values[i] = (ent_partition_value){made ? b->leaf_of[value->producer] : ENT_PARTITION_NONE,
                                          made ? ENT_PARTITION_NONE : label, ENT_PARTITION_NONE,
                                          b->graph_weight[value->graph]};
    }
    for (uint32_t i = 0; i < main->outputs.count; i++) {
        uint32_t v = b->value_of[main->outputs.items[i]];
        if (v == ENT_PARTITION_NONE) continue;
        values[v].final_label = plain_label(b, main->outputs.items[i]);
    }
    b->problem.values = values;
    b->problem.value_count = b->values.count;
    return NULL;
}

static double price_way(void *context, uint32_t value, uint32_t from, uint32_t to) {
    return from == to ? 0 : ent_plan_way_price(context, value, from, to);
}

/* Host memory is space 0; a device that shares it (a link to "host" without latency) lives there too. */
static void find_spaces(ent_plan_builder *b) {
    b->spaces = ent_arena_alloc(b->arena, (b->session->device_count + 1) * sizeof *b->spaces);
    b->device_space = ent_arena_alloc(b->arena, (b->session->device_count + 1) * sizeof *b->device_space);
    b->spaces[0].device = ENT_ID_NONE;
    b->space_count = 1;
    for (uint32_t d = 0; d < b->session->device_count; d++) {
        const ent_capability *capability = b->session->devices[d].capability;
        bool shared = false;
        for (uint32_t i = 0; i < capability->link_count; i++)
            shared |= strcmp(capability->links[i].to, "host") == 0 && capability->links[i].latency_ns == 0;
        if (shared) {
            bool better = b->spaces[0].device == ENT_ID_NONE || (capability->depths & ENT_DEPTH_TILE);
            if (better) b->spaces[0].device = d;
            b->device_space[d] = 0;
        } else {
            b->spaces[b->space_count].device = d;
            b->device_space[d] = b->space_count++;
        }
    }
}

ent_status ent_plan_build_problem(ent_plan_builder *b) {
    const ent_module *module = b->session->module;
    b->leaf_of = ent_arena_alloc(b->arena, (module->nodes.count + 1) * sizeof *b->leaf_of);
    b->value_of = ent_arena_alloc(b->arena, (module->values.count + 1) * sizeof *b->value_of);
    b->graph_weight = ent_arena_alloc(b->arena, (module->graphs.count + 1) * sizeof *b->graph_weight);
    memset(b->leaf_of, 0xff, (module->nodes.count + 1) * sizeof *b->leaf_of);
    memset(b->value_of, 0xff, (module->values.count + 1) * sizeof *b->value_of);
    b->way_prices = ent_map_create(b->arena);
    b->change_prices = ent_map_create(b->arena);
    b->kinds = ent_map_create(b->arena);
    find_spaces(b);
    add_leaves(b, 0, 1);
    ENT_TRY(ent_plan_assign(b));
    ENT_TRY(add_offers(b));
    ENT_TRY(add_values(b));
    b->problem.leaf_count = b->leaves.count;
    b->problem.label_count = b->labels.count;
    b->problem.convert_ns = price_way;
    b->problem.context = b;
    b->problem.max_work = b->options->max_work;
    return NULL;
}
