/* Words of the text form, by number; shared by print.c and parse.c so that they cannot drift apart. */
#include "core/program/internal.h"

#include <string.h>

const char *const ent_program_expr_names[] = {"",        "symbol", "add", "sub", "mul",   "floordiv",
                                              "ceildiv", "mod",    "min", "max", "const", NULL};
const char *const ent_program_depth_names[] = {"", "graph", "region", "", "tile", NULL};
const char *const ent_program_tier_names[] = {"none", "native", "tuned", "generic", "emulated", NULL};
const char *const ent_program_value_names[] = {"", "input", "output", "constant", "temporary", "alias", NULL};
const char *const ent_program_step_names[] = {"", "dispatch", "copy", "call", "branch", "loop", NULL};

uint32_t ent_program_name_index(const char *const *names, const char *word) {
    for (uint32_t i = 0; word && *word && names[i]; i++)
        if (strcmp(names[i], word) == 0) return i;
    return ENT_PROGRAM_NONE;
}
