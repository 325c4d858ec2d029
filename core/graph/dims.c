/* Size expressions in a normal form, so that equal sizes are the same dim.
 *
 * A dim is read as a polynomial: whole coefficients times products of atoms (symbols, quotients, remainders,
 * minima, maxima), plus a constant. Sums and products are done on polynomials and written back in one fixed
 * order; quotients by a constant c keep only the part of the numerator that is below c, (c*A + B) / c = A + B
 * / c, and nested ones merge, (x / a + k) / b = (x + a*k) / (a*b). Expressions that outgrow the form are kept
 * as they are and become atoms. */
#include "core/graph/polynomial.h"

#include <string.h>

/* ---- the shared table ---- */

static uint64_t expr_hash(uint32_t kind, ent_dim a, ent_dim b) {
    uint64_t h = (uint64_t)a * 0x9e3779b97f4a7c15u ^ (uint64_t)b * 0xc2b2ae3d27d4eb4fu ^ kind;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return h ^ (h >> 32);
}

static void table_grow(ent_module *module) {
    struct ent_module_state *state = module->state;
    uint32_t size = state->expr_table_size ? state->expr_table_size * 2 : 256;
    state->expr_table = ent_arena_alloc(module->arena, size * sizeof *state->expr_table);
    state->expr_table_size = size;
    for (uint32_t i = 0; i < module->exprs.count; i++) {
        const ent_expr *e = &module->exprs.items[i];
        uint64_t at = expr_hash(e->kind, e->a, e->b);
        while (state->expr_table[at & (size - 1)]) at++;
        state->expr_table[at & (size - 1)] = i + 1;
    }
}

static uint32_t weight_of(const ent_module *module, ent_dim dim) {
    return dim < 0 ? module->state->expr_infos.items[~dim].weight : 1;
}

static ent_dim intern(ent_module *module, uint32_t kind, ent_dim a, ent_dim b, bool opaque) {
    struct ent_module_state *state = module->state;
    if ((module->exprs.count + 1) * 2 > state->expr_table_size) table_grow(module);
    uint64_t at = expr_hash(kind, a, b);
    uint32_t mask = state->expr_table_size - 1, found;
    for (; (found = state->expr_table[at & mask]) != 0; at++) {
        const ent_expr *e = &module->exprs.items[found - 1];
        if (e->kind == kind && e->a == a && e->b == b) return ~(ent_dim)(found - 1);
    }
    bool leaf = kind == ENT_EXPR_SYMBOL || kind == ENT_EXPR_CONST;
    uint32_t weight = leaf ? 1 : 1 + weight_of(module, a) + weight_of(module, b);
    if (weight > ENT_MAX_EXPR_WEIGHT) {
        state->dim_problem = "nesting";
        return 0;
    }
    ent_expr expr = {kind, 0, a, b};
    ent_expr_info info = {(uint16_t)weight, opaque};
    state->expr_table[at & mask] = module->exprs.count + 1;
    ent_array_push(module->arena, &module->exprs, expr);
    ent_array_push(module->arena, &state->expr_infos, info);
    return ~(ent_dim)(module->exprs.count - 1);
}

ent_dim ent_module_dim_symbol(ent_module *module, uint32_t symbol) {
    return intern(module, ENT_EXPR_SYMBOL, symbol, 0, false);
}

ent_dim ent_module_dim_constant(ent_module *module, int64_t value) {
    return value >= 0 ? value : intern(module, ENT_EXPR_CONST, value, 0, false);
}

bool ent_module_dim_number(const ent_module *module, ent_dim dim, int64_t *out) {
    if (dim == ENT_ELEMENT_UNKNOWN) return false;
    *out = dim;
    if (dim >= 0) return true;
    const ent_expr *e = &module->exprs.items[~dim];
    *out = e->a;
    return e->kind == ENT_EXPR_CONST;
}

/* A total order that does not depend on when an expression was made, so that printed text is the same after
 * parsing. */
static int compare_dims(const ent_module *module, ent_dim x, ent_dim y) {
    if (x == y) return 0;
    if (x >= 0 || y >= 0) return x >= 0 && y >= 0 ? (x < y ? -1 : 1) : (x >= 0 ? 1 : -1);
    const ent_expr *a = &module->exprs.items[~x], *b = &module->exprs.items[~y];
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    if (a->kind == ENT_EXPR_SYMBOL || a->kind == ENT_EXPR_CONST) return a->a < b->a ? -1 : 1;
    int order = compare_dims(module, a->a, b->a);
    return order ? order : compare_dims(module, a->b, b->b);
}

/* ---- polynomials ---- */

int ent_monomial_compare(const ent_module *module, const ent_monomial *x, const ent_monomial *y) {
    for (uint32_t i = 0; i < x->count && i < y->count; i++) {
        int order = compare_dims(module, x->atoms[i], y->atoms[i]);
        if (order) return order;
    }
    return x->count == y->count ? 0 : x->count > y->count ? -1 : 1;
}

bool ent_polynomial_add_term(const ent_module *module, ent_polynomial *p, const ent_monomial *term) {
    uint32_t at = 0;
    if (term->factor == 0) return true;
    if (term->factor == INT64_MIN) return false;
    for (; at < p->count; at++) {
        int order = ent_monomial_compare(module, &p->terms[at], term);
        if (order == 0) {
            if (!ent_add_i64(p->terms[at].factor, term->factor, &p->terms[at].factor)) return false;
            if (p->terms[at].factor != 0) return p->terms[at].factor != INT64_MIN;
            memmove(&p->terms[at], &p->terms[at + 1], (p->count - at - 1) * sizeof *term);
            p->count--;
            return true;
        }
        if (order > 0) break;
    }
    if (p->count == ENT_MAX_TERMS) return false;
    memmove(&p->terms[at + 1], &p->terms[at], (p->count - at) * sizeof *term);
    p->terms[at] = *term;
    p->count++;
    return true;
}

static bool add_scaled(const ent_module *module, ent_polynomial *p, const ent_polynomial *q, int64_t scale) {
    for (uint32_t i = 0; i < q->count; i++) {
        ent_monomial term = q->terms[i];
        if (!ent_mul_i64(term.factor, scale, &term.factor) || !ent_polynomial_add_term(module, p, &term))
            return false;
    }
    return true;
}

static bool multiply_terms(const ent_module *module, const ent_monomial *x, const ent_monomial *y,
                           ent_monomial *out) {
    ent_monomial r = {0};
    uint32_t i = 0, k = 0;
    if (x->count + y->count > ENT_MAX_FACTORS || !ent_mul_i64(x->factor, y->factor, &r.factor)) return false;
    while (i < x->count || k < y->count) {
        bool left = k == y->count || (i < x->count && compare_dims(module, x->atoms[i], y->atoms[k]) <= 0);
        r.atoms[r.count++] = left ? x->atoms[i++] : y->atoms[k++];
    }
    *out = r;
    return true;
}

static bool multiply(const ent_module *module, const ent_polynomial *x, const ent_polynomial *y,
                     ent_polynomial *out) {
    out->count = 0;
    for (uint32_t i = 0; i < x->count; i++)
        for (uint32_t k = 0; k < y->count; k++) {
            ent_monomial term;
            if (!multiply_terms(module, &x->terms[i], &y->terms[k], &term)) return false;
            if (!ent_polynomial_add_term(module, out, &term)) return false;
        }
    return true;
}

/* Reads a dim as a polynomial. Recursion is bounded: only canonical sums and products are entered, and those
 * are small. */
bool ent_polynomial_read(const ent_module *module, ent_dim dim, ent_polynomial *out) {
    ent_monomial term = {.factor = 1};
    int64_t number;
    out->count = 0;
    if (ent_module_dim_number(module, dim, &number)) {
        term.factor = number;
        return ent_polynomial_add_term(module, out, &term);
    }
    const ent_expr *e = &module->exprs.items[~dim];
    bool sum = e->kind == ENT_EXPR_ADD || e->kind == ENT_EXPR_SUB;
    if (module->state->expr_infos.items[~dim].opaque || !(sum || e->kind == ENT_EXPR_MUL)) {
        term.atoms[term.count++] = dim;
        return ent_polynomial_add_term(module, out, &term);
    }
    ent_polynomial a, b;
    if (!ent_polynomial_read(module, e->a, &a) || !ent_polynomial_read(module, e->b, &b)) return false;
    if (!sum) return multiply(module, &a, &b, out);
    *out = a;
    return add_scaled(module, out, &b, e->kind == ENT_EXPR_ADD ? 1 : -1);
}

static ent_dim write_term(ent_module *module, const ent_monomial *term) {
    ent_dim dim = term->atoms[0];
    for (uint32_t i = 1; i < term->count; i++) dim = intern(module, ENT_EXPR_MUL, dim, term->atoms[i], false);
    int64_t size = term->factor < 0 ? -term->factor : term->factor;
    return size == 1 ? dim : intern(module, ENT_EXPR_MUL, dim, size, false);
}

/* Positive terms first, then negative ones, then the constant. */
ent_dim ent_polynomial_write(ent_module *module, const ent_polynomial *p) {
    int64_t constant = 0;
    bool started = false;
    ent_dim dim = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const ent_monomial *term = &p->terms[i];
        if (term->count == 0) constant = term->factor;
        if (term->count == 0 || term->factor < 0) continue;
        ent_dim written = write_term(module, term);
        dim = started ? intern(module, ENT_EXPR_ADD, dim, written, false) : written;
        started = true;
    }
    bool constant_first = !started;
    if (constant_first) dim = ent_module_dim_constant(module, constant);
    for (uint32_t i = 0; i < p->count; i++) {
        const ent_monomial *term = &p->terms[i];
        if (term->count && term->factor < 0)
            dim = intern(module, ENT_EXPR_SUB, dim, write_term(module, term), false);
    }
    if (constant_first || constant == 0) return dim;
    uint32_t kind = constant > 0 ? ENT_EXPR_ADD : ENT_EXPR_SUB;
    return intern(module, kind, dim, constant > 0 ? constant : -constant, false);
}

/* ---- the operations ---- */

static bool constant_of(const ent_polynomial *p, int64_t *out) {
    *out = p->count ? p->terms[0].factor : 0;
    return p->count == 0 || (p->count == 1 && p->terms[0].count == 0);
}

static bool divide_terms(const ent_monomial *x, const ent_monomial *y, ent_monomial *out) {
    ent_monomial r = {0};
    uint32_t k = 0;
    if (x->factor % y->factor != 0) return false;
    r.factor = x->factor / y->factor;
    for (uint32_t i = 0; i < x->count; i++) {
        if (k < y->count && x->atoms[i] == y->atoms[k])
            k++;
        else
            r.atoms[r.count++] = x->atoms[i];
    }
    *out = r;
    return k == y->count;
}

/* Long division, leading term by leading term; true only when nothing is left. */
static bool divide_exact(const ent_module *module, ent_polynomial a, const ent_polynomial *b,
                         ent_polynomial *out) {
    out->count = 0;
    for (uint32_t steps = 0; a.count && steps < 2 * ENT_MAX_TERMS; steps++) {
        ent_monomial quotient, back;
        if (!divide_terms(&a.terms[0], &b->terms[0], &quotient)) return false;
        if (!ent_polynomial_add_term(module, out, &quotient)) return false;
        for (uint32_t i = 0; i < b->count; i++) {
            if (!multiply_terms(module, &quotient, &b->terms[i], &back)) return false;
            back.factor = -back.factor;
            if (!ent_polynomial_add_term(module, &a, &back)) return false;
        }
    }
    return a.count == 0;
}

bool ent_module_dim_divide(ent_module *module, ent_dim a, ent_dim b, ent_dim *out) {
    ent_polynomial p, q, r;
    if (!ent_polynomial_read(module, a, &p) || !ent_polynomial_read(module, b, &q) || q.count == 0)
        return false;
    if (!divide_exact(module, p, &q, &r)) return false;
    *out = ent_polynomial_write(module, &r);
    return true;
}

/* p = by * whole + rest with coefficients of rest in 0..by-1. */
static bool split(const ent_module *module, const ent_polynomial *p, int64_t by, ent_polynomial *whole,
                  ent_polynomial *rest) {
    whole->count = rest->count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        ent_monomial term = p->terms[i];
        int64_t quotient = ent_expr_floordiv(term.factor, by);
        term.factor -= quotient * by;
        if (!ent_polynomial_add_term(module, rest, &term)) return false;
        term.factor = quotient;
        if (!ent_polynomial_add_term(module, whole, &term)) return false;
    }
    return true;
}

/* x when p is (x / by) + k, as (x + k*by) / by. */
static bool single_quotient(const ent_module *module, const ent_polynomial *p, ent_polynomial *out,
                            int64_t *out_by) {
    const ent_monomial *first = &p->terms[0];
    if (p->count < 1 || p->count > 2 || first->count != 1 || first->factor != 1) return false;
    if (p->count == 2 && p->terms[1].count != 0) return false;
    const ent_expr *e = &module->exprs.items[~first->atoms[0]];
    ent_monomial constant = {.factor = p->count == 2 ? p->terms[1].factor : 0};
    *out_by = e->b;
    return e->kind == ENT_EXPR_FLOORDIV && e->b > 0 && ent_polynomial_read(module, e->a, out) &&
           ent_mul_i64(constant.factor, e->b, &constant.factor) &&
           ent_polynomial_add_term(module, out, &constant);
}

/* rest / by where rest is one quotient x / a (+ k): the numerator x + a*k and the divisor a*by. */
static bool merge_quotients(const ent_module *module, const ent_polynomial *rest, int64_t by,
                            ent_polynomial *out, int64_t *out_by) {
    int64_t inner;
    return single_quotient(module, rest, out, &inner) && ent_mul_i64(by, inner, out_by);
}

static bool floordiv(ent_module *module, ent_polynomial p, int64_t by, ent_dim *out) {
    ent_polynomial whole, rest, inner;
    int64_t number, inner_by;
    if (by <= 0 || !split(module, &p, by, &whole, &rest)) return false;
    ent_polynomial sum = whole;
    while (merge_quotients(module, &rest, by, &inner, &inner_by)) {
        by = inner_by;
        if (!split(module, &inner, by, &whole, &rest) || !add_scaled(module, &sum, &whole, 1)) return false;
    }
    ent_monomial atom = {.factor = 1, .count = 1};
    if (!constant_of(&rest, &number)) {
        atom.atoms[0] = intern(module, ENT_EXPR_FLOORDIV, ent_polynomial_write(module, &rest), by, false);
        if (atom.atoms[0] >= 0 || !ent_polynomial_add_term(module, &sum, &atom)) return false;
    }
    *out = ent_polynomial_write(module, &sum);
    return true;
}

static bool modulo(ent_module *module, const ent_polynomial *p, int64_t by, ent_dim *out) {
    ent_polynomial whole, rest;
    if (by <= 0 || !split(module, p, by, &whole, &rest)) return false;
    *out = ent_polynomial_write(module, &rest);
    if (*out < 0) *out = intern(module, ENT_EXPR_MOD, *out, by, false);
    return true;
}

/* Quotients by the same number compare as their numerators do. */
static bool numerators(const ent_module *module, const ent_polynomial *p, const ent_polynomial *q,
                       ent_polynomial *out_difference) {
    ent_polynomial x;
    int64_t by, other;
    return single_quotient(module, p, out_difference, &by) && single_quotient(module, q, &x, &other) &&
           by == other && add_scaled(module, out_difference, &x, -1);
}

/* The smaller (or larger) of two when bounds settle it. */
static bool pick(const ent_module *module, ent_dim a, ent_dim b, const ent_polynomial *difference,
                 bool smaller, ent_dim *out) {
    ent_range range = ent_polynomial_range(module, difference);
    if (range.least >= 0)
        *out = smaller ? b : a;
    else if (range.most <= 0)
        *out = smaller ? a : b;
    else
        return false;
    return true;
}

/* False when the result does not fit the normal form (or int64). */
static bool canonical(ent_module *module, uint32_t kind, ent_dim a, ent_dim b, ent_dim *out) {
    ent_polynomial p, q, r;
    int64_t by;
    if (!ent_polynomial_read(module, a, &p) || !ent_polynomial_read(module, b, &q)) return false;
    switch (kind) {
    case ENT_EXPR_ADD:
    case ENT_EXPR_SUB:
        r = p;
        if (!add_scaled(module, &r, &q, kind == ENT_EXPR_ADD ? 1 : -1)) return false;
        break;
    case ENT_EXPR_MUL:
        if (!multiply(module, &p, &q, &r)) return false;
        break;
    case ENT_EXPR_CEILDIV: {
        ent_monomial up = {.factor = -1};
        if (q.count && divide_exact(module, p, &q, &r)) break;
        if (!add_scaled(module, &p, &q, 1) || !ent_polynomial_add_term(module, &p, &up)) return false;
        return constant_of(&q, &by) && floordiv(module, p, by, out);
    }
    case ENT_EXPR_FLOORDIV:
        if (q.count && divide_exact(module, p, &q, &r)) break;
        return constant_of(&q, &by) && floordiv(module, p, by, out);
    case ENT_EXPR_MOD:
        return constant_of(&q, &by) && modulo(module, &p, by, out);
    case ENT_EXPR_MIN:
    case ENT_EXPR_MAX:
        r = p;
        if (numerators(module, &p, &q, &r) && pick(module, a, b, &r, kind == ENT_EXPR_MIN, out)) return true;
        r = p;
        return add_scaled(module, &r, &q, -1) && pick(module, a, b, &r, kind == ENT_EXPR_MIN, out);
    default:
        return false;
    }
    *out = ent_polynomial_write(module, &r);
    return true;
}

ent_dim ent_module_dim(ent_module *module, ent_expr_kind kind, ent_dim a, ent_dim b) {
    ent_dim out;
    int64_t x, y;
    if (kind == ENT_EXPR_SYMBOL) return ent_module_dim_symbol(module, (uint32_t)a);
    if (kind == ENT_EXPR_CONST) return ent_module_dim_constant(module, a);
    if (canonical(module, kind, a, b, &out)) return out;
    /* Two numbers always fold unless the result does not exist. */
    if (ent_module_dim_number(module, a, &x) && ent_module_dim_number(module, b, &y)) {
        module->state->dim_problem = "overflow";
        return 0;
    }
    bool commutes =
        kind == ENT_EXPR_ADD || kind == ENT_EXPR_MUL || kind == ENT_EXPR_MIN || kind == ENT_EXPR_MAX;
    if (commutes && compare_dims(module, a, b) > 0) {
        out = a;
        a = b;
        b = out;
    }
    bool opaque = kind == ENT_EXPR_ADD || kind == ENT_EXPR_SUB || kind == ENT_EXPR_MUL;
    return intern(module, kind, a, b, opaque);
}
