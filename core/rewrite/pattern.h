/* Patterns over the graph, written as text:
 *
 *   pattern   (Operator operand...)      one node; Add and Mul match either order
 *   operand   pattern | name | number    a name stands for one value: the same name, the same value
 *             name=pattern               a value with a name that has to match a pattern
 *   number    a one-element constant within 0.1 % (0 exactly)
 *
 * A match is a set of nodes whose inner results nobody else reads. Inside core/rewrite only. */
#ifndef ENT_REWRITE_PATTERN_H
#define ENT_REWRITE_PATTERN_H

#include "core/rewrite/internal.h"

#define PATTERN_MAX_NODES 24
#define PATTERN_MAX_NAMES 12

typedef struct ent_match {
    uint32_t nodes[PATTERN_MAX_NODES]; /* root first */
    uint32_t node_count;
    char names[PATTERN_MAX_NAMES][16];
    uint32_t values[PATTERN_MAX_NAMES];
    uint32_t name_count;
} ent_match;

bool ent_pattern_match(const ent_rewrite_context *context, const char *pattern, uint32_t root,
                       ent_match *out);
/* Value of a name; NONE if the pattern has none. */
uint32_t ent_match_value(const ent_match *match, const char *name);

#endif
