/* Words of the text form, shared by print and parse only. */
#ifndef ENT_TILE_INTERNAL_H
#define ENT_TILE_INTERNAL_H

#include "abi/ent_tile.h"

static const char *const ent_tile_role_words[] = {"", "input", "output", "constant", "scratch"};
static const char *const ent_tile_space_words[] = {"", "register", "local", "shared"};
static const char *const ent_tile_reduce_words[] = {"", "reduce_sum", "reduce_max", "reduce_min",
                                                    "reduce_prod"};
/* Between two operands; SYMBOL and CONST stand before their one. */
static const char *const ent_tile_expr_words[] = {"",        "symbol", "+",   "-",   "*",    "floordiv",
                                                  "ceildiv", "mod",    "min", "max", "const"};

#endif
