/* Patterns over the graph, written as text:
 *
 *   pattern   (Operator operand...)   one node; inputs beyond the operands are free
 *             (* operand...)          a product of any association and order: Mul, Div, Reciprocal, Neg, and
 * Pow with exponent 2 or 3 are multiplied out
 *             (+ operand...)          a sum of any association and order: Add, and Sub of a number
 *             (/ operand)             in a product: division by the operand
 *   operand   pattern | name | number | #name | ?name
 *             name                    one value: the same name, the same value
 *             name=pattern            a value with a name that has to match a pattern
 *             number                  a one-element constant that equals it as well as its type can tell; in
 *                                     products and sums all numbers together
 *             #name                   any one-element constant: the name stands for the number
 *             ?name                   the same in a product or sum, where it may be missing
 *
 * What a product or sum is made of is opened up only where one reader has it. A match is a set of nodes whose
 * inner results nobody else reads. Inside core/rewrite only. */
#ifndef ENT_REWRITE_PATTERN_H
#define ENT_REWRITE_PATTERN_H

#include "core/rewrite/internal.h"

#define ENT_PATTERN_MAX_NODES 48
#define ENT_PATTERN_MAX_NAMES 12
#define ENT_PATTERN_MAX_OPERANDS 8

typedef struct ent_pattern ent_pattern;
/* Asserts that the text is well formed: patterns are ours. Lives in the arena. */
const ent_pattern *ent_pattern_parse(ent_arena *arena, const char *text);

typedef struct ent_match_name {
    const char *name;
    uint32_t value; /* NONE when the name stands for a number */
    double number;
} ent_match_name;

typedef struct ent_match {
    uint32_t nodes[ENT_PATTERN_MAX_NODES]; /* root first */
    uint32_t node_count;
    ent_match_name names[ENT_PATTERN_MAX_NAMES];
    uint32_t name_count;
} ent_match;

bool ent_pattern_match(const ent_rewrite_context *context, const ent_pattern *pattern, uint32_t root,
                       ent_match *out);
/* Value of a name; NONE if the pattern has none. */
uint32_t ent_match_value(const ent_match *match, const char *name);
/* Number of a name; `missing` if the pattern has none. */
double ent_match_number(const ent_match *match, const char *name, double missing);

#endif
