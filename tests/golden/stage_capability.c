/* Stage "capability": documents, each after a line "document NAME [parser-only]", are read; the expectation
 * is what was read, or the error. parser-only marks faults that a JSON Schema cannot express:
 * tests/tools/capability_schema.py reads the same files and holds the schema against the reader. */
#include <inttypes.h>
#include <string.h>

#include "core/capability/capability.h"
#include "tests/golden/golden.h"

static void print_constraint(ent_text *out, const ent_constraint *c) {
    ent_text_add(out, "    constraint %s kind %u node %u %s %u axis %" PRId64, c->id, c->kind, c->node,
                 c->is_output ? "output" : "input", c->port, c->axis);
    ent_text_add(out, " multiple %" PRId64 " min %" PRId64 " max %" PRId64, c->multiple_of, c->min, c->max);
    if (c->attr) ent_text_add(out, " attribute %s", c->attr);
    for (uint32_t i = 0; i < c->name_count; i++) ent_text_add(out, "%s%s", i ? "," : " names ", c->names[i]);
    ent_text_add(out, "%s%s\n", c->fix ? " fix " : "", c->fix ? c->fix : "");
}

static void print_pattern(ent_text *out, const ent_pattern *p) {
    ent_text_add(out, "  pattern %s depth %u tier %u%s base %g gflops %g gbps %g\n", p->name, p->depth,
                 p->tier, p->any_op ? " any_op" : "", p->cost.base_ns, p->cost.gflops, p->cost.gbps);
    for (uint32_t i = 0; i < p->layout_count; i++) ent_text_add(out, "    layout %s\n", p->layouts[i]);
    for (uint32_t i = 0; i < p->composite_count; i++)
        ent_text_add(out, "    composite %s\n", ent_op_info_get(p->composites[i])->name);
    for (uint32_t i = 0; i < p->node_count; i++) {
        const ent_pattern_node *node = &p->nodes[i];
        ent_text_add(out, "    node class %u from %u repeat %u to %u", node->op_class, node->from,
                     node->repeat_min, node->repeat_max);
        for (uint32_t k = 0; k < node->op_count; k++)
            ent_text_add(out, " %s", ent_op_info_get(node->ops[k])->name);
        ent_text_add(out, "\n");
    }
    for (uint32_t i = 0; i < p->constraint_count; i++) print_constraint(out, &p->constraints[i]);
}

static void print_tile(ent_text *out, const ent_capability *c) {
    const ent_tile_cost *t = &c->tile;
    ent_text_add(out, "  tile %g %g %g %g %g %g %g %g %g %g %g %g maps", t->launch_ns, t->sync_ns,
                 t->instance_ns, t->op_ns, t->mma_efficiency, t->map_cheap_ns, t->map_divide_ns,
                 t->map_transcendental_ns, t->reduce_ns, t->copy_strided_ns, t->gather_ns, t->window_gflops);
    for (uint32_t i = 0; i < c->tile_map_count; i++) ent_text_add(out, " %u", c->tile_maps[i]);
    ent_text_add(out, "\n");
}

static void print_capability(ent_text *out, const ent_capability *c) {
    ent_text_add(out, "  %s by '%s' kind %s basis %s units %u lanes %u launch %g depths %u: %s\n", c->name,
                 c->vendor, c->kind, c->basis, c->units, c->vector_lanes_f32, c->launch_ns, c->depths,
                 c->description);
    for (uint32_t i = 0; i < c->level_count; i++) {
        const ent_memory_level *l = &c->levels[i];
        ent_text_add(out, "  memory %s scope %s bytes %" PRIu64 " read %g write %g unit %g\n", l->name,
                     l->scope, l->bytes, l->read_gbps, l->write_gbps, l->unit_gbps);
    }
    for (uint32_t i = 0; i < c->matrix_unit_count; i++) {
        const ent_matrix_unit *m = &c->matrix_units[i];
        ent_text_add(
            out, "  matrix %s %s x %s -> %s %" PRId64 "x%" PRId64 "x%" PRId64 " gflops %g%s block %u\n",
            m->name, ent_dtype_name(m->dtype_a), ent_dtype_name(m->dtype_b), ent_dtype_name(m->dtype_c), m->m,
            m->n, m->k, m->gflops, m->a_indirect ? " indirect" : "", m->b_block);
    }
    for (uint32_t i = 0; i < c->link_count; i++)
        ent_text_add(out, "  link %s latency %g gbps %g\n", c->links[i].to, c->links[i].latency_ns,
                     c->links[i].gbps);
    for (uint32_t i = 0; i < c->pattern_count; i++) print_pattern(out, &c->patterns[i]);
    print_tile(out, c);
}

/* The next document and its name; false at the end. */
static bool next_document(ent_arena *arena, const char **at, const char **out_name, ent_str *out_json) {
    static const char head[] = "\ndocument ";
    const char *start = strstr(*at, head);
    if (!start) return false;
    start += sizeof head - 1;
    const char *line_end = strchr(start, '\n');
    if (!line_end) return false;
    *out_name = ent_arena_strndup(arena, start, strcspn(start, " \n"));
    const char *end = strstr(line_end, head);
    *out_json = (ent_str){line_end + 1, end ? (size_t)(end - line_end) : strlen(line_end + 1)};
    *at = end ? end : line_end + strlen(line_end);
    return true;
}

static ent_status run(ent_arena *arena, const char *args, const char *file, ent_str input, ent_text *out) {
    (void)args;
    (void)file;
    const char *at = ent_arena_strndup(arena, input.data, input.size), *name = NULL;
    ent_str json;
    while (next_document(arena, &at, &name, &json)) {
        ent_capability *capability = NULL;
        ent_status status = ent_capability_parse(arena, name, json.data, json.size, &capability);
        ent_text_add(out, "%s\n", status ? ent_status_text(arena, status) : name);
        if (!status) print_capability(out, capability);
    }
    return NULL;
}

const golden_stage golden_stage_capability = {"capability", run, NULL};
