/* Drives the makers over all leaves and overlays of all graphs, and records why a leaf got nothing. */
#include <stdlib.h>
#include <string.h>

#include "core/fusion/internal.h"

void fusion_push(fusion_context *context, const ent_fusion_candidate *candidate) {
    ent_array_push(context->arena, &context->set->items, *candidate);
    for (uint32_t i = 0; i < candidate->node_count; i++) context->covered[candidate->nodes[i]]++;
}

void fusion_make_views(fusion_context *context, uint32_t node_id) {
    const ent_module *module = context->module;
    const ent_node *node = ent_module_node(module, node_id);
    if (!fusion_is_view_op(node->op) || node->outputs[0] == ENT_ID_NONE || node->inputs[0] == ENT_ID_NONE)
        return;
    uint32_t in = node->inputs[0], out = node->outputs[0];
    for (uint32_t i = 1; i < node->output_count; i++)
        if (node->outputs[i] != ENT_ID_NONE) return;
    for (uint32_t i = 0; i < context->layouts->counts[in]; i++) {
        const ent_layout *from = &context->layouts->items[in][i];
        ent_layout to;
        if (!fusion_view_layout(module, node, from, &to)) continue;
        for (uint32_t o = 0; o < context->layouts->counts[out]; o++) {
            if (!fusion_layout_same_bytes(module, out, &context->layouts->items[out][o], &to)) continue;
            ent_fusion_candidate view;
            memset(&view, 0, sizeof view);
            ent_fusion_port *ports = ent_arena_alloc(context->arena, 2 * sizeof *ports);
            ports[0] = (ent_fusion_port){in, *from, false, fusion_is_constant(context, in)};
            ports[1] = (ent_fusion_port){out, context->layouts->items[out][o], true, false};
            view.graph = node->graph;
            view.nodes = ent_arena_copy(context->arena, &node_id, sizeof node_id);
            view.node_count = 1;
            view.ports = ports;
            view.port_count = 2;
            view.is_view = true;
            view.tier = ENT_TIER_TUNED;
            view.kind = "view";
            view.price.bound_by = "launch";
            fusion_push(context, &view);
        }
    }
}

/* ---- items ---- */

static void make_leaf(fusion_context *context, uint32_t node_id) {
    const ent_node *node = ent_module_node(context->module, node_id);
    fusion_item *item = &context->items[context->item_count];
    *item = (fusion_item){.op = node->op,
                          .graph = node->graph,
                          .attrs = node->attrs,
                          .inputs = node->inputs,
                          .input_count = node->input_count,
                          .outputs = node->outputs,
                          .output_count = node->output_count,
                          .node_count = 1,
                          .overlay = ENT_ID_NONE,
                          .position = context->position[node_id]};
    item->nodes = ent_arena_copy(context->arena, &node_id, sizeof node_id);
    item->item_class = fusion_item_class(context, item);
    context->leaf_of_node[node_id] = context->item_of_node[node_id] = context->item_count++;
}

static int by_size(const void *a, const void *b) {
    const ent_overlay *const *x = a, *const *y = b;
    if ((*x)->node_count != (*y)->node_count) return (*x)->node_count > (*y)->node_count ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

static void make_overlay(fusion_context *context, const ent_overlay *overlay) {
    fusion_item *item = &context->items[context->item_count];
    if (overlay->node_count == 0) return;
    *item = (fusion_item){.op = overlay->op,
                          .graph = overlay->graph,
                          .attrs = overlay->attrs,
                          .inputs = overlay->inputs,
                          .input_count = overlay->input_count,
                          .outputs = overlay->outputs,
                          .output_count = overlay->output_count,
                          .nodes = overlay->nodes,
                          .node_count = overlay->node_count,
                          .overlay = (uint32_t)(overlay - context->module->overlays.items)};
    for (uint32_t i = 0; i < overlay->node_count; i++)
        if (context->position[overlay->nodes[i]] > item->position)
            item->position = context->position[overlay->nodes[i]];
    item->item_class = fusion_item_class(context, item);
    if (item->item_class != FUSION_ELEMENTWISE && item->item_class != FUSION_REDUCE) return;
    for (uint32_t i = 0; i < overlay->node_count; i++) {
        uint32_t now = context->item_of_node[overlay->nodes[i]];
        if (now == ENT_ID_NONE || context->items[now].overlay == ENT_ID_NONE)
            context->item_of_node[overlay->nodes[i]] = context->item_count;
    }
    context->item_count++;
}

static void make_items(fusion_context *context) {
    const ent_module *module = context->module;
    uint32_t position = 0;
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, node = 0;
        while (ent_graph_next(module, g, &at, &node)) context->position[node] = position++;
    }
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, node = 0;
        while (ent_graph_next(module, g, &at, &node)) make_leaf(context, node);
    }
    const ent_overlay **sorted = ent_arena_alloc(context->arena, module->overlays.count * sizeof *sorted);
    for (uint32_t i = 0; i < module->overlays.count; i++) sorted[i] = &module->overlays.items[i];
    if (module->overlays.count > 1) qsort(sorted, module->overlays.count, sizeof *sorted, by_size);
    for (uint32_t i = 0; i < module->overlays.count; i++) make_overlay(context, sorted[i]);
}

/* ---- one leaf ---- */

static bool starts_rows(const fusion_item *item) {
    return item->item_class == FUSION_ELEMENTWISE || item->item_class == FUSION_REDUCE ||
           (item->item_class == FUSION_RELABEL &&
            (item->op == ENT_OP_Transpose || item->op == ENT_OP_Expand));
}

static void make_alone(fusion_context *context, uint32_t item) {
    const fusion_item *it = &context->items[item];
    switch (it->item_class) {
    case FUSION_ELEMENTWISE:
    case FUSION_REDUCE:
    case FUSION_RELABEL:
        fusion_make_solo(context, item);
        break;
    case FUSION_MOVE:
        fusion_make_movement(context, item);
        break;
    case FUSION_ANCHOR:
        if (it->op == ENT_OP_MaxPool || it->op == ENT_OP_AveragePool)
            fusion_make_window(context, item);
        else
            fusion_make_contraction(context, item);
        break;
    default:
        break;
    }
}

static void refuse(fusion_context *context, uint32_t node_id) {
    const ent_node *node = ent_module_node(context->module, node_id);
    const ent_op_info *info = ent_op_info_get(node->op);
    struct ent_fusion_refusal refusal = {node_id, "tile.not-expressible", NULL};
    if (info && info->op_class == ENT_CLASS_CONTROL) return;
    refusal.text = ent_arena_format(
        context->arena, "%s is not expressed in tile programs: %s", info ? info->name : "operator",
        context->reason ? context->reason : "operator, attribute or dtype is not covered");
    ent_array_push(context->arena, &context->set->refusals, refusal);
}

static void make_leaf_candidates(fusion_context *context, uint32_t node) {
    uint32_t leaf = context->leaf_of_node[node], grown = context->item_of_node[node];
    context->reason = NULL;
    fusion_make_views(context, node);
    make_alone(context, leaf);
    if (context->covered[node] == 0) refuse(context, node);
    const fusion_item *item = &context->items[grown];
    if (item->nodes[item->node_count - 1] != node) return; /* an overlay is taken at its last leaf, once */
    if (grown != leaf) fusion_make_solo(context, grown);
    if (starts_rows(item)) fusion_make_rows(context, grown);
}

static bool prepare(fusion_context *context) {
    const ent_module *module = context->module;
    uint32_t nodes = module->nodes.count;
    context->uses = ent_module_uses(module, context->arena);
    context->items =
        ent_arena_array(context->arena, (size_t)nodes + module->overlays.count + 1, sizeof *context->items);
    uint32_t **tables[] = {&context->item_of_node, &context->leaf_of_node, &context->position,
                           &context->member,       &context->visited,      &context->covered};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        *tables[i] = ent_arena_array(context->arena, (size_t)nodes + 1, sizeof **tables[i]);
        if (!*tables[i]) return false;
    }
    if (!context->items) return false;
    memset(context->item_of_node, 0xff, nodes * sizeof *context->item_of_node);
    memset(context->leaf_of_node, 0xff, nodes * sizeof *context->leaf_of_node);
    for (uint32_t v = 0; v < module->values.count; v++)
        if (module->values.items[v].constant)
            context->constant_bytes += (double)module->values.items[v].constant->tensor.size_bytes;
    return true;
}

ent_status ent_fusion_make(const ent_module *module, const ent_fusion_layouts *layouts,
                           const ent_capability *capability, ent_arena *arena, ent_fusion_set *out) {
    fusion_context context;
    memset(&context, 0, sizeof context);
    memset(out, 0, sizeof *out);
    context.module = module;
    context.layouts = layouts;
    context.capability = capability;
    context.arena = arena;
    context.set = out;
    if (!prepare(&context)) return ent_status_out_of_memory();
    make_items(&context);
    for (uint32_t g = 0; g < module->graphs.count; g++) {
        uint32_t at = 0, node = 0;
        while (ent_graph_next(module, g, &at, &node)) {
            ENT_TRY(ent_arena_check(arena, module->name));
            make_leaf_candidates(&context, node);
        }
    }
    return NULL;
}
