/* Declared patterns against the frozen graph: single leaves, composites whole, and chains from an anchor. A
 * pattern that matches but breaks a constraint is a near miss: a refusal with the reason and the fix. */
#include "core/negotiate/internal.h"

#include <math.h>
#include <string.h>

#define MAX_CHAIN 16u

typedef struct matcher {
    ent_negotiate_session *session;
    const ent_uses *uses;
    uint32_t device;
    const ent_pattern *pattern;
    uint32_t nodes[MAX_CHAIN]; /* leaves so far, in order */
    uint32_t node_count;
    const ent_node *matched[MAX_CHAIN]; /* per pattern node: first leaf, NULL */
    uint32_t overlay;                   /* taken whole, NONE */
} matcher;

static const ent_module *module_of(const matcher *m) {
    return m->session->module;
}

static void set_price(matcher *m, ent_offer *offer, const ent_leaf_set *set) {
    const ent_cost_model *cost = &m->pattern->cost;
    double flops = 0, bytes = 0;
    ent_negotiate_work(m->session, set, &flops, &bytes);
    double compute = cost->gflops > 0 ? flops / cost->gflops : 0,
           memory = cost->gbps > 0 ? bytes / cost->gbps : 0;
    double time = cost->base_ns + fmax(compute, memory);
    offer->time_mid_ns = time;
    offer->time_low_ns = time * 0.5;
    offer->time_high_ns = time * 2;
    offer->traffic_bytes = (uint64_t)bytes;
    offer->basis = ENT_BASIS_MODEL;
    offer->bound_by = compute >= memory ? (compute > cost->base_ns ? "compute" : "launch") : "memory";
}

/* True when a layout choice stores a port otherwise than row-major, i.e. the device asked for a layout
 * change. */
static bool layout_is_request(const ent_offer *offer) {
    for (uint32_t i = 0; i < offer->port_count; i++) {
        ent_layout plain = ent_layout_plain(offer->ports[i].layout.rank);
        if (!ent_layout_equal(&plain, &offer->ports[i].layout)) return true;
    }
    return false;
}

/* One offer for each acceptable layout of the boundary. */
static void add_offers(matcher *m, const ent_leaf_set *set) {
    ent_negotiate_session *session = m->session;
    static const char *const plain_only[] = {"plain"};
    const char *const *layouts = m->pattern->layout_count ? m->pattern->layouts : plain_only;
    uint32_t count = m->pattern->layout_count ? m->pattern->layout_count : 1;
    for (uint32_t i = 0; i < count; i++) {
        ent_offer *offer = ent_negotiate_add_region_offer(session, m->device, set, layouts[i]);
        bool asked = layout_is_request(offer);
        if (i > 0 &&
            !asked) { /* the same terms as an earlier choice: no data port has a rank the layout changes */
            session->offers.count--;
            continue;
        }
        offer->tier = m->pattern->tier;
        offer->depth = m->pattern->depth;
        offer->path = m->pattern->name;
        if (asked) offer->request = ent_arena_format(session->arena, "layout: %s", layouts[i]);
        if (m->overlay != ENT_ID_NONE) {
            offer->overlays = ent_arena_copy(session->arena, &m->overlay, sizeof m->overlay);
            offer->overlay_count = 1;
        }
        set_price(m, offer, set);
    }
}

/* A port needs a layout, and a layout a rank. */
static bool ranks_known(matcher *m, const ent_leaf_set *set) {
    if (!ent_negotiate_open_rank(m->session, set)) return true;
    ent_refusal refusal = {.device = m->device,
                           .node = set->nodes[0],
                           .pattern = m->pattern->name,
                           .reason_id = "rank.unknown",
                           .text = "the rank of an input or output is known only at run time"};
    ent_negotiate_refuse(m->session, &refusal);
    return false;
}

static void emit(matcher *m) {
    ent_negotiate_session *session = m->session;
    if (!ent_negotiate_check_constraints(session, m->device, m->pattern, m->matched, m->nodes[0])) return;
    ent_leaf_set set;
    const uint32_t *nodes = ent_arena_copy(session->arena, m->nodes, m->node_count * sizeof *nodes);
    uint32_t graph = ent_module_node(module_of(m), nodes[0])->graph;
    ent_negotiate_boundary(session, m->uses, graph, nodes, m->node_count, &set);
    if (ranks_known(m, &set)) add_offers(m, &set);
}

static bool node_fits(const matcher *m, const ent_pattern_node *want, uint32_t id) {
    const ent_node *node = ent_module_node(module_of(m), id);
    const ent_op_info *info = ent_op_info_get(node->op);
    if (info->op_class == ENT_CLASS_CONTROL) return false;
    if (want->op_count == 0) return info->op_class == want->op_class;
    for (uint32_t i = 0; i < want->op_count; i++)
        if (want->ops[i] == node->op) return true;
    return false;
}

/* The one consumer of a leaf's only output; NONE when the value is used elsewhere too. */
static uint32_t sole_consumer(const matcher *m, uint32_t id) {
    const ent_node *node = ent_module_node(module_of(m), id);
    if (node->output_count != 1 || node->outputs[0] == ENT_ID_NONE) return ENT_ID_NONE;
    uint32_t value = node->outputs[0];
    if (m->uses->is_output[value] || ent_uses_count(m->uses, value) != 1) return ENT_ID_NONE;
    uint32_t user = m->uses->users[m->uses->offsets[value]];
    return ent_module_node(module_of(m), user)->graph == node->graph ? user : ENT_ID_NONE;
}

/* Extends the chain by pattern node `index`; every allowed repeat count gives an offer at the end of the
 * pattern. */
static void extend(matcher *m, uint32_t index) {
    if (index == m->pattern->node_count) {
        emit(m);
        return;
    }
    const ent_pattern_node *want = &m->pattern->nodes[index];
    uint32_t start = m->node_count;
    for (uint32_t taken = 0;; taken++) {
        if (taken >= want->repeat_min) {
            uint32_t keep = m->node_count;
            extend(m, index + 1);
            m->node_count = keep;
        }
        if (taken == want->repeat_max || m->node_count == MAX_CHAIN) break;
        uint32_t next = sole_consumer(m, m->nodes[m->node_count - 1]);
        if (next == ENT_ID_NONE || !node_fits(m, want, next)) break;
        if (taken == 0) m->matched[index] = ent_module_node(module_of(m), next);
        m->nodes[m->node_count++] = next;
    }
    m->node_count = start;
    m->matched[index] = NULL;
}

static void match_leaf(matcher *m, uint32_t id) {
    memset(m->matched, 0, sizeof m->matched);
    m->matched[0] = ent_module_node(module_of(m), id);
    m->nodes[0] = id;
    m->node_count = 1;
    m->overlay = ENT_ID_NONE;
    if (m->pattern->any_op) {
        const ent_op_info *info = ent_op_info_get(ent_module_node(module_of(m), id)->op);
        if (info->op_class != ENT_CLASS_CONTROL) emit(m);
        return;
    }
    if (m->pattern->node_count == 0 || m->pattern->node_count > MAX_CHAIN) return;
    if (node_fits(m, &m->pattern->nodes[0], id)) extend(m, 1);
}

/* A composite taken whole; constraints see its own ports and attributes as pattern node 0. */
static void match_overlay(matcher *m, uint32_t id) {
    const ent_overlay *overlay = &module_of(m)->overlays.items[id];
    bool wanted = false;
    for (uint32_t i = 0; i < m->pattern->composite_count; i++)
        wanted |= m->pattern->composites[i] == overlay->op;
    if (!wanted || overlay->node_count == 0) return;
    ent_node whole = {.op = overlay->op,
                      .graph = overlay->graph,
                      .name = overlay->name,
                      .attrs = overlay->attrs,
                      .inputs = overlay->inputs,
                      .input_count = overlay->input_count,
                      .outputs = overlay->outputs,
                      .output_count = overlay->output_count};
    memset(m->matched, 0, sizeof m->matched);
    m->matched[0] = &whole;
    m->overlay = id;
    if (ent_negotiate_check_constraints(m->session, m->device, m->pattern, m->matched, overlay->nodes[0])) {
        ent_leaf_set set;
        ent_negotiate_boundary(m->session, m->uses, overlay->graph, overlay->nodes, overlay->node_count,
                               &set);
        if (ranks_known(m, &set)) add_offers(m, &set);
    }
    m->overlay = ENT_ID_NONE;
}

ent_status ent_negotiate_match(ent_negotiate_session *session, const ent_uses *uses, uint32_t device) {
    const ent_capability *capability = session->devices[device].capability;
    for (uint32_t p = 0; p < capability->pattern_count; p++) {
        matcher m = {session, uses, device, &capability->patterns[p], {0}, 0, {NULL}, ENT_ID_NONE};
        for (uint32_t o = 0; m.pattern->composite_count && o < session->module->overlays.count; o++)
            match_overlay(&m, o);
        for (uint32_t g = 0; g < session->module->graphs.count; g++) {
            uint32_t at = 0, id;
            while (ent_graph_next(session->module, g, &at, &id)) {
                ENT_TRY(ent_arena_check(session->arena, session->module->name));
                match_leaf(&m, id);
            }
        }
    }
    return NULL;
}
