/* Words of the text form, and what the two halves of the parser share. */
#ifndef ENT_TILE_INTERNAL_H
#define ENT_TILE_INTERNAL_H

#include "core/tile/tile.h"

static const char *const ent_tile_role_words[] = {"", "input", "output", "constant", "scratch"};
static const char *const ent_tile_space_words[] = {"", "register", "local", "shared"};
static const char *const ent_tile_reduce_words[] = {"", "reduce_sum", "reduce_max", "reduce_min",
                                                    "reduce_prod"};
/* Between two operands; SYMBOL and CONST stand before their one. */
static const char *const ent_tile_expr_words[] = {"",        "symbol", "+",   "-",   "*",    "floordiv",
                                                  "ceildiv", "mod",    "min", "max", "const"};

typedef struct ent_tile_parser {
    ent_scan *scan;
    ent_tile_builder b;
} ent_tile_parser;

/* A letter and a number, such as t12. */
ent_status ent_tile_parse_id(ent_tile_parser *p, char prefix, uint32_t *out);
ent_status ent_tile_parse_u32(ent_tile_parser *p, uint32_t *out);
/* A number >= 0, or an expression such as e0. */
ent_status ent_tile_parse_dim(ent_tile_parser *p, ent_dim *out);

/* Operations: each appends to the builder. store, loop and wait start after their word, tile_op at "tN". */
ent_status ent_tile_parse_store(ent_tile_parser *p);
ent_status ent_tile_parse_loop(ent_tile_parser *p);
ent_status ent_tile_parse_wait(ent_tile_parser *p);
ent_status ent_tile_parse_tile_op(ent_tile_parser *p);

#endif
