/* Size expressions read as polynomials; used by dims.c and bounds.c only. */
#ifndef ENT_GRAPH_POLYNOMIAL_H
#define ENT_GRAPH_POLYNOMIAL_H

#include "core/graph/internal.h"

#define ENT_MAX_TERMS 16u
#define ENT_MAX_FACTORS 8u

/* factor times the product of atoms, which ascend; no atoms: the constant. */
typedef struct ent_monomial {
    int64_t factor;
    uint32_t count;
    ent_dim atoms[ENT_MAX_FACTORS];
} ent_monomial;

/* A sum of monomials, ordered, no factor zero; the constant comes last. */
typedef struct ent_polynomial {
    uint32_t count;
    ent_monomial terms[ENT_MAX_TERMS];
} ent_polynomial;

/* False: does not fit. */
bool ent_polynomial_read(const ent_module *module, ent_dim dim, ent_polynomial *out);
ent_dim ent_polynomial_write(ent_module *module, const ent_polynomial *polynomial);
bool ent_polynomial_add_term(const ent_module *module, ent_polynomial *polynomial, const ent_monomial *term);
int ent_monomial_compare(const ent_module *module, const ent_monomial *x, const ent_monomial *y);

/* Bounds that follow from those of the symbols; INT64_MIN and INT64_MAX mean none. */
typedef struct ent_range {
    int64_t least, most;
} ent_range;
ent_range ent_polynomial_range(const ent_module *module, const ent_polynomial *polynomial);

#endif
