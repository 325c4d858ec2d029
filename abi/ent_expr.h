/* Size expressions over symbolic dimensions. A dimension is an int64: >= 0 is the size itself, < 0 refers to
 * entry ~dim of an expression table. Programs, tile programs and graphs each own one table; entries refer
 * only to earlier entries, so that evaluation is one pass. */
#ifndef ENT_EXPR_H
#define ENT_EXPR_H

#include "abi/ent_types.h"

typedef int64_t ent_dim;

typedef enum ent_expr_kind {
    ENT_EXPR_SYMBOL = 1, /* a: symbol index */
    ENT_EXPR_ADD = 2,    /* a + b, operands are dims */
    ENT_EXPR_SUB = 3,
    ENT_EXPR_MUL = 4,
    ENT_EXPR_FLOORDIV = 5, /* b > 0 */
    ENT_EXPR_CEILDIV = 6,  /* b > 0 */
    ENT_EXPR_MOD = 7,      /* b > 0; result in 0..b-1 */
    ENT_EXPR_MIN = 8,
    ENT_EXPR_MAX = 9,
    ENT_EXPR_CONST = 10 /* a: a constant, for negative intermediate values */
} ent_expr_kind;

typedef struct ent_expr {
    uint32_t kind; /* ent_expr_kind */
    uint32_t reserved;
    ent_dim a, b;
} ent_expr;

static inline bool ent_dim_is_const(ent_dim dim) {
    return dim >= 0;
}

/* Value of a dim given the values already computed for the table (values[i] for entry i). */
static inline int64_t ent_dim_value(ent_dim dim, const int64_t *values) {
    return dim >= 0 ? dim : values[~dim];
}

static inline int64_t ent_expr_floordiv(int64_t a, int64_t b) {
    int64_t q = a / b;
    return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

/* Evaluates the table in order into values (count entries). Returns false on overflow, a division by zero, a
 * forward reference or a symbol index out of range. */
static inline bool ent_expr_evaluate(const ent_expr *table, size_t count, const int64_t *symbols,
                                     size_t symbol_count, int64_t *values) {
    for (size_t i = 0; i < count; i++) {
        const ent_expr *e = &table[i];
        if (e->kind == ENT_EXPR_SYMBOL) {
            if (e->a < 0 || (uint64_t)e->a >= symbol_count) return false;
            values[i] = symbols[e->a];
            continue;
        }
        if (e->kind == ENT_EXPR_CONST) {
            values[i] = e->a;
            continue;
        }
        if ((e->a < 0 && (uint64_t)~e->a >= i) || (e->b < 0 && (uint64_t)~e->b >= i)) return false;
        int64_t a = ent_dim_value(e->a, values), b = ent_dim_value(e->b, values), r = 0;
        switch (e->kind) {
        case ENT_EXPR_ADD:
            if (__builtin_add_overflow(a, b, &r)) return false;
            break;
        case ENT_EXPR_SUB:
            if (__builtin_sub_overflow(a, b, &r)) return false;
            break;
        case ENT_EXPR_MUL:
            if (__builtin_mul_overflow(a, b, &r)) return false;
            break;
        case ENT_EXPR_FLOORDIV:
        case ENT_EXPR_CEILDIV:
        case ENT_EXPR_MOD:
            if (b <= 0) return false;
            r = ent_expr_floordiv(a, b);
            if (e->kind == ENT_EXPR_CEILDIV && r * b != a) r += 1;
            if (e->kind == ENT_EXPR_MOD) r = a - r * b;
            break;
        case ENT_EXPR_MIN:
            r = a < b ? a : b;
            break;
        case ENT_EXPR_MAX:
            r = a > b ? a : b;
            break;
        default:
            return false;
        }
        values[i] = r;
    }
    return true;
}

#endif
