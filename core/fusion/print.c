/* A set of candidates as text, for goldens and for reading. */
#include <string.h>

#include "core/fusion/internal.h"

static void print_layout(const ent_layout *layout, ent_text *out) {
    for (uint32_t i = 0; i < layout->rank; i++) ent_text_add(out, "%u", layout->order[i]);
    for (uint32_t i = 0; i < layout->block_count; i++)
        ent_text_add(out, "/%u:%u", layout->block_axis[i], layout->block_size[i]);
}

static void print_tiles(const ent_tile_program *program, ent_text *out) {
    ent_text_add(out, " grid");
    for (uint32_t g = 0; g < program->grid_count; g++)
        ent_text_add(out, " %lld/%lld", (long long)program->grid[g].extent, (long long)program->grid[g].step);
}

void ent_fusion_print(const ent_module *module, const ent_fusion_set *set, ent_text *out) {
    for (uint32_t i = 0; i < set->items.count; i++) {
        const ent_fusion_candidate *c = &set->items.items[i];
        ent_text_add(out, "%s {", c->kind);
        for (uint32_t n = 0; n < c->node_count; n++)
            ent_text_add(out, " %s", ent_module_node(module, c->nodes[n])->name);
        ent_text_add(out, " }");
        for (uint32_t p = 0; p < c->port_count; p++) {
            ent_text_add(out, " %s%s:",
                         c->ports[p].is_output     ? "-> "
                         : c->ports[p].is_constant ? "const "
                                                   : "",
                         ent_module_value(module, c->ports[p].value)->name);
            print_layout(&c->ports[p].layout, out);
        }
        if (c->program) {
            print_tiles(c->program, out);
            ent_text_add(out, " %.1f us by %s", c->price.time_mid_ns / 1000, c->price.bound_by);
        }
        ent_text_add(out, "\n");
    }
    for (uint32_t i = 0; i < set->refusals.count; i++)
        ent_text_add(out, "refused %s: %s [%s]\n", ent_module_node(module, set->refusals.items[i].node)->name,
                     set->refusals.items[i].text, set->refusals.items[i].reason_id);
}
