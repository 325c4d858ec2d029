/* Matching patterns: recursive descent over the text, with both orders tried for commutative operators. */
#include "core/rewrite/pattern.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct matcher {
    const ent_rewrite_context *context;
    ent_match *match;
} matcher;

static const char *skip_blanks(const char *at) {
    while (*at == ' ') at++;
    return at;
}

/* Past one operand. */
static const char *skip_operand(const char *at) {
    int depth = 0;
    at = skip_blanks(at);
    do {
        if (*at == '(') depth++;
        if (*at == ')') depth--;
        if (*at) at++;
    } while (*at && (depth > 0 || (*at != ' ' && *at != ')')));
    return at;
}

static uint32_t read_word(const char *at, char *out, uint32_t room) {
    uint32_t size = 0;
    while (isalnum((unsigned char)at[size]) || at[size] == '_') size++;
    uint32_t kept = size < room - 1 ? size : room - 1;
    memcpy(out, at, kept);
    out[kept] = 0;
    return size;
}

static bool match_node(matcher *m, const char *at, uint32_t value);

static bool bind_name(matcher *m, const char *name, uint32_t value) {
    for (uint32_t i = 0; i < m->match->name_count; i++)
        if (strcmp(m->match->names[i], name) == 0) return m->match->values[i] == value;
    if (m->match->name_count == PATTERN_MAX_NAMES) return false;
    strcpy(m->match->names[m->match->name_count], name);
    m->match->values[m->match->name_count++] = value;
    return true;
}

static bool match_number(const matcher *m, const char *at, uint32_t value) {
    double wanted = strtod(at, NULL), found;
    if (value == ENT_ID_NONE || !ent_value_scalar(m->context->module, value, &found)) return false;
    return wanted == 0 ? found == 0 : fabs(found - wanted) <= 1e-3 * fabs(wanted);
}

static bool match_operand(matcher *m, const char *at, uint32_t value) {
    char name[16];
    at = skip_blanks(at);
    if (value == ENT_ID_NONE) return false;
    if (*at == '(') return match_node(m, at, value);
    if (isdigit((unsigned char)*at) || *at == '-' || *at == '.') return match_number(m, at, value);
    uint32_t size = read_word(at, name, sizeof name);
    uint32_t known = m->match->name_count;
    if (!bind_name(m, name, value)) return false;
    if (at[size] != '=') return true;
    /* a second use of a named pattern needs no second match */
    return known == m->match->name_count || match_node(m, at + size + 1, value);
}

static bool match_operands(matcher *m, const char *at, const ent_node *node, bool swapped) {
    for (uint32_t i = 0; *(at = skip_blanks(at)) != ')'; i++, at = skip_operand(at)) {
        uint32_t index = swapped ? 1 - i : i;
        if (index >= node->input_count || !match_operand(m, at, node->inputs[index])) return false;
    }
    return true;
}

static bool match_node(matcher *m, const char *at, uint32_t value) {
    char op[32];
    const ent_node *node = ent_rewrite_producer(m->context, value);
    at += 1 + read_word(at + 1, op, sizeof op);
    if (!node || strcmp(ent_op_info_get(node->op)->name, op) != 0 ||
        m->match->node_count == PATTERN_MAX_NODES)
        return false;
    ent_match before = *m->match;
    m->match->nodes[m->match->node_count++] = ent_module_value(m->context->module, value)->producer;
    if (match_operands(m, at, node, false)) return true;
    if (node->op != ENT_OP_Add && node->op != ENT_OP_Mul) return false;
    *m->match = before;
    m->match->nodes[m->match->node_count++] = ent_module_value(m->context->module, value)->producer;
    return match_operands(m, at, node, true);
}

static bool contains(const ent_match *match, uint32_t node) {
    for (uint32_t i = 0; i < match->node_count; i++)
        if (match->nodes[i] == node) return true;
    return false;
}

/* Inner results are read by nodes of the match only. */
static bool is_closed(const ent_rewrite_context *context, const ent_match *match) {
    for (uint32_t i = 1; i < match->node_count; i++) {
        const ent_node *node = ent_module_node(context->module, match->nodes[i]);
        for (uint32_t k = 0; k < node->output_count; k++) {
            uint32_t at = 0, user, index, value = node->outputs[k];
            if (value == ENT_ID_NONE || match->nodes[i] == match->nodes[0]) continue;
            if (ent_value_is_output(context->module, value)) return false;
            while (ent_value_next_use(context->module, value, &at, &user, &index))
                if (!contains(match, user)) return false;
        }
    }
    return true;
}

bool ent_pattern_match(const ent_rewrite_context *context, const char *pattern, uint32_t root,
                       ent_match *out) {
    matcher m = {context, out};
    memset(out, 0, sizeof *out);
    const ent_node *node = ent_module_node(context->module, root);
    if (node->output_count != 1 || node->outputs[0] == ENT_ID_NONE) return false;
    return match_node(&m, pattern, node->outputs[0]) && is_closed(context, out);
}

uint32_t ent_match_value(const ent_match *match, const char *name) {
    for (uint32_t i = 0; i < match->name_count; i++)
        if (strcmp(match->names[i], name) == 0) return match->values[i];
    return ENT_ID_NONE;
}
