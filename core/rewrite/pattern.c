/* Patterns: text to tree, and matching by recursive descent with a saved match to go back to. */
#include "core/rewrite/pattern.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum pattern_kind {
    PATTERN_ANY, /* a name by itself */
    PATTERN_NUMBER,
    PATTERN_CAPTURE,
    PATTERN_NODE,
    PATTERN_PRODUCT,
    PATTERN_SUM,
    PATTERN_RECIPROCAL
} pattern_kind;

struct ent_pattern {
    pattern_kind kind;
    const char *name; /* NULL: none */
    uint32_t op;
    double number;
    bool optional;
    const ent_pattern *operands[ENT_PATTERN_MAX_OPERANDS];
    uint32_t operand_count;
};

/* ---- reading ---- */

static void skip_blanks(const char **at) {
    while (**at == ' ') ++*at;
}

static const char *read_word(ent_arena *arena, const char **at) {
    size_t size = 0;
    while (isalnum((unsigned char)(*at)[size]) || (*at)[size] == '_') size++;
    const char *word = ent_arena_strndup(arena, *at, size);
    *at += size;
    return word;
}

static ent_pattern *read_operand(ent_arena *arena, const char **at);

static ent_pattern *read_pattern(ent_arena *arena, const char **at) {
    ent_pattern *p = ent_arena_alloc(arena, sizeof *p);
    ++*at; /* ( */
    switch (**at) {
    case '*':
        p->kind = PATTERN_PRODUCT;
        break;
    case '+':
        p->kind = PATTERN_SUM;
        break;
    case '/':
        p->kind = PATTERN_RECIPROCAL;
        break;
    default:
        p->kind = PATTERN_NODE;
        p->op = ent_op_find(read_word(arena, at));
        assert(p->op != ENT_OP_NONE);
    }
    if (p->kind != PATTERN_NODE) ++*at;
    for (skip_blanks(at); **at != ')'; skip_blanks(at)) {
        assert(**at && p->operand_count < ENT_PATTERN_MAX_OPERANDS);
        p->operands[p->operand_count++] = read_operand(arena, at);
    }
    ++*at; /* ) */
    return p;
}

static ent_pattern *read_operand(ent_arena *arena, const char **at) {
    ent_pattern *p = ent_arena_alloc(arena, sizeof *p);
    skip_blanks(at);
    if (**at == '(') return read_pattern(arena, at);
    if (isdigit((unsigned char)**at) || **at == '-') {
        char *end;
        p->kind = PATTERN_NUMBER;
        p->number = strtod(*at, &end);
        *at = end;
        return p;
    }
    if (**at == '#' || **at == '?') {
        p->kind = PATTERN_CAPTURE;
        p->optional = *(*at)++ == '?';
        p->name = read_word(arena, at);
        return p;
    }
    p->name = read_word(arena, at);
    assert(p->name[0]);
    if (**at != '=') return p;
    ++*at;
    const char *name = p->name;
    p = read_pattern(arena, at);
    p->name = name;
    return p;
}

const ent_pattern *ent_pattern_parse(ent_arena *arena, const char *text) {
    return read_operand(arena, &text);
}

/* ---- names ---- */

typedef struct matcher {
    const ent_rewrite_context *context;
    ent_match *match;
} matcher;

static ent_match_name *find_name(const matcher *m, const char *name) {
    for (uint32_t i = 0; i < m->match->name_count; i++)
        if (strcmp(m->match->names[i].name, name) == 0) return &m->match->names[i];
    return NULL;
}

static bool bind_name(const matcher *m, const char *name, uint32_t value, double number) {
    const ent_match_name *known = find_name(m, name);
    if (known) return known->value == value && known->number == number;
    if (m->match->name_count == ENT_PATTERN_MAX_NAMES) return false;
    m->match->names[m->match->name_count++] = (ent_match_name){name, value, number};
    return true;
}

static bool add_match_node(const matcher *m, uint32_t value) {
    uint32_t node = ent_module_value(m->context->module, value)->producer;
    for (uint32_t i = 0; i < m->match->node_count; i++)
        if (m->match->nodes[i] == node) return true;
    if (m->match->node_count == ENT_PATTERN_MAX_NODES) return false;
    m->match->nodes[m->match->node_count++] = node;
    return true;
}

/* ---- products and sums ---- */

typedef struct term {
    uint32_t value;
    bool reciprocal;
} term;

typedef struct terms {
    term items[ENT_PATTERN_MAX_OPERANDS];
    uint32_t count;
    double number; /* all numbers together */
    double slack;  /* how far the elements' type may be off, relative */
} terms;

static double slack_of(const ent_module *module, uint32_t value) {
    switch (ent_module_value(module, value)->dtype) {
    case ENT_DTYPE_F16:
        return 0x1p-9;
    case ENT_DTYPE_BF16:
        return 0x1p-7;
    default:
        return 1e-5; /* exporters write some constants with six digits */
    }
}

/* One element, of any rank that the result has anyway. */
static bool read_number(const matcher *m, uint32_t value, double *out) {
    return value != ENT_ID_NONE && ent_rewrite_float_tensor(m->context, value) &&
           ent_value_scalar(m->context->module, value, out);
}

static bool add_term(terms *t, uint32_t value, bool reciprocal) {
    if (t->count == ENT_PATTERN_MAX_OPERANDS) return false;
    t->items[t->count++] = (term){value, reciprocal};
    return true;
}

static bool open_product(const matcher *m, uint32_t value, bool root, terms *t);

static bool open_division(const matcher *m, const ent_node *node, terms *t) {
    double number;
    if (node->op == ENT_OP_Reciprocal) return add_term(t, node->inputs[0], true);
    if (!open_product(m, node->inputs[0], false, t)) return false;
    if (!read_number(m, node->inputs[1], &number)) return add_term(t, node->inputs[1], true);
    t->number /= number;
    return true;
}

static bool open_power(const matcher *m, uint32_t value, const ent_node *node, terms *t) {
    double power;
    bool whole = read_number(m, node->inputs[1], &power) && (power == 2 || power == 3);
    if (!whole) return add_term(t, value, false);
    if (!add_match_node(m, value)) return false;
    for (int i = 0; i < (int)power; i++)
        if (!add_term(t, node->inputs[0], false)) return false;
    return true;
}

static bool open_product(const matcher *m, uint32_t value, bool root, terms *t) {
    const ent_node *node = ent_rewrite_producer(m->context, value);
    double number;
    if (read_number(m, value, &number)) {
        t->number *= number;
        return true;
    }
    if (!node || !(root || ent_rewrite_single_use(m->context, value))) return add_term(t, value, false);
    switch (node->op) {
    case ENT_OP_Mul:
        return add_match_node(m, value) && open_product(m, node->inputs[0], false, t) &&
               open_product(m, node->inputs[1], false, t);
    case ENT_OP_Div:
    case ENT_OP_Reciprocal:
        return add_match_node(m, value) && open_division(m, node, t);
    case ENT_OP_Pow:
        return open_power(m, value, node, t);
    case ENT_OP_Neg:
        t->number = -t->number;
        return add_match_node(m, value) && open_product(m, node->inputs[0], false, t);
    default:
        return add_term(t, value, false);
    }
}

static bool open_sum(const matcher *m, uint32_t value, bool root, terms *t) {
    const ent_node *node = ent_rewrite_producer(m->context, value);
    double number;
    if (read_number(m, value, &number)) {
        t->number += number;
        return true;
    }
    if (!node || !(root || ent_rewrite_single_use(m->context, value))) return add_term(t, value, false);
    if (node->op == ENT_OP_Add)
        return add_match_node(m, value) && open_sum(m, node->inputs[0], false, t) &&
               open_sum(m, node->inputs[1], false, t);
    if (node->op != ENT_OP_Sub || !read_number(m, node->inputs[1], &number)) return add_term(t, value, false);
    t->number -= number;
    return add_match_node(m, value) && open_sum(m, node->inputs[0], false, t);
}

static bool is_near(double found, double wanted, double slack) {
    return fabs(found - wanted) <= slack * fabs(wanted);
}

/* The numbers of the pattern against those of the graph. */
static bool match_numbers(const matcher *m, const ent_pattern *p, const terms *t) {
    bool product = p->kind == PATTERN_PRODUCT, takes_all = false, optional = false;
    double identity = product ? 1 : 0, wanted = identity;
    const char *name = NULL;
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const ent_pattern *o = p->operands[i];
        if (o->kind == PATTERN_NUMBER) wanted = product ? wanted * o->number : wanted + o->number;
        if (o->kind != PATTERN_CAPTURE) continue;
        takes_all = true;
        optional = o->optional;
        name = o->name;
    }
    if (!takes_all) return wanted == identity ? t->number == identity : is_near(t->number, wanted, t->slack);
    return (optional || t->number != identity) && bind_name(m, name, ENT_ID_NONE, t->number);
}

static bool match_value(const matcher *m, const ent_pattern *p, uint32_t value);

static bool match_term(const matcher *m, const ent_pattern *p, const term *t) {
    if ((p->kind == PATTERN_RECIPROCAL) != t->reciprocal) return false;
    return match_value(m, t->reciprocal ? p->operands[0] : p, t->value);
}

/* Every operand one term, in any order. */
static bool assign(const matcher *m, const ent_pattern *const *operands, uint32_t count, const terms *t,
                   uint32_t used) {
    if (count == 0) return true;
    for (uint32_t i = 0; i < t->count; i++) {
        ent_match before = *m->match;
        if (used >> i & 1) continue;
        if (match_term(m, operands[0], &t->items[i]) && assign(m, operands + 1, count - 1, t, used | 1u << i))
            return true;
        *m->match = before;
    }
    return false;
}

/* Operands with a shape of their own come first: they say what the bare names stand for. */
static bool match_terms(const matcher *m, const ent_pattern *p, uint32_t value) {
    terms t = {.number = p->kind == PATTERN_PRODUCT ? 1 : 0, .slack = slack_of(m->context->module, value)};
    const ent_pattern *ordered[ENT_PATTERN_MAX_OPERANDS];
    uint32_t count = 0;
    bool opened =
        p->kind == PATTERN_PRODUCT ? open_product(m, value, true, &t) : open_sum(m, value, true, &t);
    for (int bare = 0; bare < 2; bare++)
        for (uint32_t i = 0; i < p->operand_count; i++) {
            pattern_kind kind = p->operands[i]->kind;
            if (kind == PATTERN_NUMBER || kind == PATTERN_CAPTURE) continue;
            if ((kind == PATTERN_ANY) == bare) ordered[count++] = p->operands[i];
        }
    return opened && count == t.count && match_numbers(m, p, &t) && assign(m, ordered, count, &t, 0);
}

static bool match_node(const matcher *m, const ent_pattern *p, uint32_t value) {
    const ent_node *node = ent_rewrite_producer(m->context, value);
    if (!node || node->op != p->op || node->input_count < p->operand_count || !add_match_node(m, value))
        return false;
    for (uint32_t i = 0; i < p->operand_count; i++)
        if (!match_value(m, p->operands[i], node->inputs[i])) return false;
    return true;
}

static bool match_value(const matcher *m, const ent_pattern *p, uint32_t value) {
    double number;
    if (value == ENT_ID_NONE) return false;
    switch (p->kind) {
    case PATTERN_NUMBER:
        return read_number(m, value, &number) &&
               is_near(number, p->number, slack_of(m->context->module, value));
    case PATTERN_CAPTURE:
        return read_number(m, value, &number) && bind_name(m, p->name, ENT_ID_NONE, number);
    case PATTERN_ANY:
        return bind_name(m, p->name, value, 0);
    default:
        break;
    }
    if (p->name) { /* a second use of a named pattern needs no second match */
        bool known = find_name(m, p->name) != NULL;
        if (!bind_name(m, p->name, value, 0)) return false;
        if (known) return true;
    }
    return p->kind == PATTERN_NODE ? match_node(m, p, value) : match_terms(m, p, value);
}

/* ---- the whole ---- */

static bool contains(const ent_match *match, uint32_t node) {
    for (uint32_t i = 0; i < match->node_count; i++)
        if (match->nodes[i] == node) return true;
    return false;
}

/* Inner results are read by nodes of the match only, and all nodes stand in one graph. */
static bool is_closed(const ent_rewrite_context *context, const ent_match *match) {
    uint32_t graph = ent_module_node(context->module, match->nodes[0])->graph;
    for (uint32_t i = 1; i < match->node_count; i++) {
        const ent_node *node = ent_module_node(context->module, match->nodes[i]);
        if (node->graph != graph) return false;
        for (uint32_t k = 0; k < node->output_count; k++) {
            uint32_t at = 0, user, index, value = node->outputs[k];
            if (value == ENT_ID_NONE) continue;
            if (ent_value_is_output(context->module, value)) return false;
            while (ent_value_next_use(context->module, value, &at, &user, &index))
                if (!contains(match, user)) return false;
        }
    }
    return true;
}

bool ent_pattern_match(const ent_rewrite_context *context, const ent_pattern *pattern, uint32_t root,
                       ent_match *out) {
    matcher m = {context, out};
    const ent_node *node = ent_module_node(context->module, root);
    out->node_count = out->name_count = 0;
    if (node->output_count != 1 || node->outputs[0] == ENT_ID_NONE) return false;
    if (!match_value(&m, pattern, node->outputs[0]) || out->node_count == 0 || out->nodes[0] != root)
        return false;
    return is_closed(context, out);
}

static const ent_match_name *look_up(const ent_match *match, const char *name) {
    for (uint32_t i = 0; i < match->name_count; i++)
        if (strcmp(match->names[i].name, name) == 0) return &match->names[i];
    return NULL;
}

uint32_t ent_match_value(const ent_match *match, const char *name) {
    const ent_match_name *found = look_up(match, name);
    return found ? found->value : ENT_ID_NONE;
}

double ent_match_number(const ent_match *match, const char *name, double missing) {
    const ent_match_name *found = look_up(match, name);
    return found ? found->number : missing;
}
