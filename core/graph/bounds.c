/* Bounds of size expressions by interval arithmetic. */
#include "core/graph/polynomial.h"

static const ent_range anything = {INT64_MIN, INT64_MAX};

static int64_t add_saturated(int64_t a, int64_t b, int64_t infinite) {
    int64_t sum;
    if (a == infinite || b == infinite) return infinite;
    if (__builtin_add_overflow(a, b, &sum)) return infinite;
    return sum;
}

static ent_range add(ent_range a, ent_range b) {
    return (ent_range){add_saturated(a.least, b.least, INT64_MIN), add_saturated(a.most, b.most, INT64_MAX)};
}

static ent_range negate(ent_range a) {
    return (ent_range){a.most == INT64_MAX ? INT64_MIN : -a.most,
                       a.least == INT64_MIN ? INT64_MAX : -a.least};
}

/* Of non-negative ranges; anything else is not bounded here. */
static ent_range multiply(ent_range a, ent_range b) {
    ent_range r;
    if (a.least < 0 || b.least < 0) return anything;
    if (!ent_mul_i64(a.least, b.least, &r.least)) r.least = 0;
    if (a.most == INT64_MAX || b.most == INT64_MAX || !ent_mul_i64(a.most, b.most, &r.most))
        r.most = INT64_MAX;
    return r;
}

static ent_range divide(ent_range a, ent_range b) {
    if (b.least <= 0) return anything;
    if (b.least != b.most) return a.least >= 0 ? (ent_range){0, a.most} : anything;
    return (ent_range){a.least == INT64_MIN ? INT64_MIN : ent_expr_floordiv(a.least, b.least),
                       a.most == INT64_MAX ? INT64_MAX : ent_expr_floordiv(a.most, b.least)};
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The weight limit of expressions bounds the recursion and the work. */
static ent_range range_of(const ent_module *module, ent_dim dim) {
    if (dim >= 0) return (ent_range){dim, dim};
    const ent_expr *e = &module->exprs.items[~dim];
    if (e->kind == ENT_EXPR_CONST) return (ent_range){e->a, e->a};
    if (e->kind == ENT_EXPR_SYMBOL) {
        const ent_symbol *symbol = &module->symbols.items[e->a];
        return (ent_range){symbol->min, symbol->max};
    }
    ent_range a = range_of(module, e->a), b = range_of(module, e->b);
    switch (e->kind) {
    case ENT_EXPR_ADD:
        return add(a, b);
    case ENT_EXPR_SUB:
        return add(a, negate(b));
    case ENT_EXPR_MUL:
        return multiply(a, b);
    case ENT_EXPR_FLOORDIV:
        return divide(a, b);
    case ENT_EXPR_CEILDIV:
        return a.least >= 0 && b.least > 0 ? (ent_range){0, a.most} : anything;
    case ENT_EXPR_MOD:
        return b.least > 0 ? (ent_range){0, b.most == INT64_MAX ? INT64_MAX : b.most - 1} : anything;
    case ENT_EXPR_MIN:
        return (ent_range){smaller(a.least, b.least), smaller(a.most, b.most)};
    case ENT_EXPR_MAX:
        return (ent_range){larger(a.least, b.least), larger(a.most, b.most)};
    default:
        return anything;
    }
}

ent_range ent_polynomial_range(const ent_module *module, const ent_polynomial *p) {
    ent_range sum = {0, 0};
    for (uint32_t i = 0; i < p->count; i++) {
        const ent_monomial *term = &p->terms[i];
        int64_t size = term->factor < 0 ? -term->factor : term->factor;
        ent_range product = {size, size};
        for (uint32_t k = 0; k < term->count; k++) {
            ent_range atom = range_of(module, term->atoms[k]);
            product = product.least == 1 && product.most == 1 ? atom : multiply(product, atom);
        }
        sum = add(sum, term->factor < 0 ? negate(product) : product);
    }
    return sum;
}

int64_t ent_module_dim_least(const ent_module *module, ent_dim dim) {
    ent_polynomial p;
    return ent_polynomial_read(module, dim, &p) ? ent_polynomial_range(module, &p).least
                                                : range_of(module, dim).least;
}

int64_t ent_module_dim_most(const ent_module *module, ent_dim dim) {
    ent_polynomial p;
    return ent_polynomial_read(module, dim, &p) ? ent_polynomial_range(module, &p).most
                                                : range_of(module, dim).most;
}
