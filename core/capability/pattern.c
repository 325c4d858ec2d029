/* Fast-path patterns and their constraints. */
#include "core/capability/reader.h"

#include <string.h>

static const uint32_t *read_ops(ent_reader *reader, const char *field, uint32_t *out_count) {
    uint32_t count = 0;
    const char *const *names = ent_reader_texts(reader, field, &count);
    uint32_t *ops = ent_arena_alloc(reader->arena, (count + 1) * sizeof *ops);
    for (uint32_t i = 0; i < count; i++) {
        ops[i] = ent_op_find(names[i]);
        if (ops[i] == ENT_OP_NONE)
            ent_reader_fail(reader, field, "capability.op", "'%s' is no operator of abi/ent_ops.def",
                            names[i]);
    }
    *out_count = count;
    return ops;
}

static uint32_t read_class(ent_reader *reader, const char *field) {
    static const char *const names[] = {"elementwise", "contraction", "window", "reduction", "movement"};
    uint32_t index = ent_reader_word(reader, field, false, names, 5);
    return index < 5 ? index + 1 : ENT_CLASS_NONE;
}

static void read_node(ent_reader *reader, uint32_t index, ent_pattern_node *out) {
    out->ops = read_ops(reader, "ops", &out->op_count);
    out->op_class = read_class(reader, "class");
    uint32_t before = index ? index - 1 : 0;
    out->from = (uint32_t)ent_reader_int(reader, "from", false, before, 0, 15);
    if (!reader->status && out->from != before)
        ent_reader_fail(reader, "from", "capability.pattern",
                        "must be %u, the node before: this version matches chains only", before);
    out->repeat_min = (uint32_t)ent_reader_int(reader, "repeat_min", false, 1, index ? 0 : 1, 16);
    out->repeat_max = (uint32_t)ent_reader_int(reader, "repeat_max", false,
                                               out->repeat_min > 1 ? out->repeat_min : 1, 1, 16);
    if (!reader->status && (out->op_count == 0) == (out->op_class == ENT_CLASS_NONE))
        ent_reader_fail(reader, "ops", "capability.pattern", "a pattern node names either ops or a class");
    if (!reader->status && out->repeat_max < out->repeat_min)
        ent_reader_fail(reader, "repeat_max", "capability.range", "must not be below repeat_min");
}

static uint32_t read_kind(ent_reader *reader) {
    static const char *const names[] = {"dtype",        "rank",     "dim",     "attribute",
                                        "attribute_is", "constant", "elements"};
    uint32_t index = ent_reader_word(reader, "kind", true, names, 7);
    return index < 7 ? index + 1 : 0;
}

/* The request that would satisfy a constraint; the closed vocabulary of ent_request_kind. */
static const char *read_fix(ent_reader *reader) {
    static const char *const names[] = {"layout", "decompose", "pad", "split", "dtype", "drop", "tile"};
    uint32_t index = ent_reader_word(reader, "fix", false, names, 7);
    return index < 7 ? names[index] : NULL;
}

static void check_names(ent_reader *reader, const ent_constraint *c) {
    bool wants_names = c->kind == ENT_CONSTRAINT_DTYPE || c->kind == ENT_CONSTRAINT_ATTR_IS;
    bool wants_attribute = c->kind == ENT_CONSTRAINT_ATTR || c->kind == ENT_CONSTRAINT_ATTR_IS;
    if (wants_names && c->name_count == 0)
        ent_reader_fail(reader, "names", "capability.missing", "is required for this kind");
    if (wants_attribute && !c->attr)
        ent_reader_fail(reader, "attribute", "capability.missing", "is required for this kind");
    for (uint32_t i = 0; c->kind == ENT_CONSTRAINT_DTYPE && i < c->name_count; i++) {
        bool known = false;
        for (uint32_t d = 1; d < ENT_DTYPE_COUNT; d++)
            known |= strcmp(ent_dtype_name((ent_dtype)d), c->names[i]) == 0;
        if (!known) ent_reader_fail(reader, "names", "capability.dtype", "'%s' is no dtype", c->names[i]);
    }
}

static void read_constraint(ent_reader *reader, uint32_t node_count, ent_constraint *out) {
    out->id = ent_reader_text(reader, "id", true, "");
    out->kind = read_kind(reader);
    out->node = (uint32_t)ent_reader_int(reader, "node", false, 0, 0, node_count ? node_count - 1 : 0);
    out->is_output = ent_reader_bool(reader, "output", false);
    out->port = (uint32_t)ent_reader_int(reader, "port", false, 0, 0, 1000);
    out->axis = ent_reader_int(reader, "axis", false, 0, -ENT_MAX_RANK, ENT_MAX_RANK - 1);
    out->multiple_of = ent_reader_int(reader, "multiple_of", false, 0, 0, INT32_MAX);
    out->min = ent_reader_int(reader, "min", false, 0, INT32_MIN, INT64_C(1) << 52);
    out->max = ent_reader_int(reader, "max", false, -1, -1, INT64_C(1) << 52);
    out->attr = ent_reader_text(reader, "attribute", false, NULL);
    out->names = ent_reader_texts(reader, "names", &out->name_count);
    out->fix = read_fix(reader);
    if (!reader->status && out->max >= 0 && out->max < out->min)
        ent_reader_fail(reader, "max", "capability.range", "must not be below min");
    check_names(reader, out);
}

static void read_layouts(ent_reader *reader, ent_pattern *out) {
    out->layouts = ent_reader_texts(reader, "layouts", &out->layout_count);
    for (uint32_t i = 0; i < out->layout_count; i++)
        if (strcmp(out->layouts[i], "plain") != 0 && strcmp(out->layouts[i], "channels_last") != 0)
            ent_reader_fail(reader, "layouts", "capability.layout", "'%s' is neither plain nor channels_last",
                            out->layouts[i]);
}

static void read_cost(ent_reader *reader, ent_pattern *out) {
    const cJSON *object = ent_reader_object(reader, "cost", true);
    if (!object) return;
    ent_reader cost;
    ent_reader_open(&cost, reader->arena, reader->document,
                    ent_arena_format(reader->arena, "%s/cost", reader->pointer), object);
    out->cost.base_ns = ent_reader_number(&cost, "base_ns", true, 0, 0, 1e15);
    out->cost.gflops = ent_reader_number(&cost, "gflops", false, 0, 0, 1e9);
    out->cost.gbps = ent_reader_number(&cost, "gbps", false, 0, 0, 1e9);
    ent_status status = ent_reader_finish(&cost);
    if (status && !reader->status) reader->status = status;
}

static const ent_pattern_node *read_nodes(ent_reader *reader, uint32_t *out_count) {
    const cJSON *array = ent_reader_array(reader, "nodes", false, false), *item;
    size_t room = array ? (size_t)cJSON_GetArraySize(array) + 1 : 1;
    ent_pattern_node *list = ent_arena_alloc(reader->arena, room * sizeof *list);
    uint32_t count = 0;
    if (array) cJSON_ArrayForEach(item, array) {
            ent_reader child;
            ent_reader_item(reader, "nodes", count, item, &child);
            read_node(&child, count, &list[count]);
            if (ent_reader_finish(&child) && !reader->status) reader->status = child.status;
            count++;
        }
    *out_count = count;
    return list;
}

static const ent_constraint *read_constraints(ent_reader *reader, uint32_t node_count, uint32_t *out_count) {
    const cJSON *array = ent_reader_array(reader, "constraints", false, false), *item;
    size_t room = array ? (size_t)cJSON_GetArraySize(array) + 1 : 1;
    ent_constraint *list = ent_arena_alloc(reader->arena, room * sizeof *list);
    uint32_t count = 0;
    if (array) cJSON_ArrayForEach(item, array) {
            ent_reader child;
            ent_reader_item(reader, "constraints", count, item, &child);
            read_constraint(&child, node_count, &list[count++]);
            if (ent_reader_finish(&child) && !reader->status) reader->status = child.status;
        }
    *out_count = count;
    return list;
}

/* Tile depth is no depth of patterns: there the core makes the offers itself. */
void ent_capability_read_pattern(ent_reader *reader, ent_pattern *out) {
    static const char *const depths[] = {"graph", "region"}, *const tiers[] = {"native", "tuned", "generic",
                                                                               "emulated"};
    out->name = ent_reader_text(reader, "name", true, "");
    out->depth = ent_reader_word(reader, "depth", true, depths, 2) == 0 ? ENT_DEPTH_GRAPH : ENT_DEPTH_REGION;
    out->tier = ENT_TIER_NATIVE + ent_reader_word(reader, "tier", true, tiers, 4);
    out->any_op = ent_reader_bool(reader, "any_op", false);
    out->composites = read_ops(reader, "composites", &out->composite_count);
    out->nodes = read_nodes(reader, &out->node_count);
    out->constraints = read_constraints(reader, out->node_count, &out->constraint_count);
    read_layouts(reader, out);
    read_cost(reader, out);
    uint32_t kinds = out->any_op + (out->node_count > 0) + (out->composite_count > 0);
    if (!reader->status && kinds != 1)
        ent_reader_fail(reader, "nodes", "capability.pattern",
                        "a pattern has exactly one of nodes, composites and any_op");
    if (!reader->status && out->node_count > 16)
        ent_reader_fail(reader, "nodes", "capability.pattern", "at most 16 nodes");
}
