/* What the two halves of the text reader share. The text form:
 *
 *   module "name" {
 *     frozen
 *     symbol N min 1 max 64
 *     model_node "conv1"
 *     note "text"
 *     graph main(%x: f32[N,3], %flag: bool[]) -> (%y) {
 *       %w = constant f32[3,2] {1, 2, 3, 4, 5, 6}
 *       %y: f32[N,2] = MatMul(%x, %w) {alpha = 1.0, pads = [1, 1], mode = "same"} origins [0, 1] name "node"
 *       %z = If(%flag) {then_branch = graph @yes, else_branch = graph @no} name "choice"
 *     }
 *     graph yes of "choice"() -> (%t) { ... }
 *     overlay (%y) = Gelu(%x) {approximate = "none"} in main nodes ["a", "b"] name "gelu"
 *   }
 *
 * A name that is no word is quoted: %"conv1/out:0". `_` stands for an absent input or output. A value of
 * unknown shape is
 * `%y: f32`, one of unknown type has no type, `none[3]` has a shape only. Sizes: N, 2*N + 1, floordiv(N, 2),
 * ceildiv, mod, min, max. Constants: {elements}, bytes "hex" for types without numbers here, fill NUMBER,
 * random SEED STD, hash HEX (printed only). Attributes: 1 is an int, 1.0 a float (32-bit; 0.1d keeps 64
 * bits), "text", [1, 2], [1.0, 2.0], `floats []`, tensor f32[2] {1, 2}, graph @name. `random` draws element i
 * from splitmix64 started at SEED: uniform with deviation STD. */
#ifndef ENT_GRAPH_PARSE_H
#define ENT_GRAPH_PARSE_H

#include "core/graph/internal.h"

/* A name that is resolved when the whole module was read. */
typedef struct ent_parse_fixup {
    const char *name;
    uint32_t owner; /* node or graph id */
    uint32_t slot;
    uint32_t line;
} ent_parse_fixup;
typedef ENT_ARRAY(ent_parse_fixup) ent_parse_fixups;

typedef struct ent_parser {
    ent_scan scan;
    ent_module *module;
    ent_parse_fixups inputs;  /* node inputs */
    ent_parse_fixups outputs; /* graph outputs */
    ent_parse_fixups graphs;  /* graph attributes: node, attribute index */
    ent_parse_fixups owners;  /* graph ... of "node" */
    uint32_t depth;
} ent_parser;

/* A word or a quoted string, as NUL-terminated text. */
ent_status ent_parse_name(ent_parser *parser, const char **out);
ent_status ent_parse_type(ent_parser *parser, uint32_t *out_dtype, uint32_t *out_rank, ent_dim *out_dims);
/* The rest of a constant after its type. recipe is set for random. */
ent_status ent_parse_tensor(ent_parser *parser, ent_tensor *out, const char **out_recipe);
/* {name = value, ...} if it is there. Graph attributes of node `node` (the next id) are left to fixups. */
ent_status ent_parse_attrs(ent_parser *parser, uint32_t node, ent_attrs *out);

#endif
