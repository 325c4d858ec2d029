/* Device-agnostic rewrites: graph -> graph, in place, through one pass runner that verifies after each pass
 * that changed something, can print after any pass, and stops where asked. Order and what each pass does:
 * passes.c, the one list. */
#ifndef ENT_REWRITE_H
#define ENT_REWRITE_H

#include "core/graph/graph.h"

typedef struct ent_rewrite_options {
    bool strict; /* --precision strict: no rewrite that reassociates or contracts floating point (batch-norm
                    folding, scale folding); recomposition stays, it changes no arithmetic */
    uint64_t fold_growth_bytes; /* a fold may grow the model by at most this much, all folds together by 16
                                   times as much; 0: 1 MiB */
    const char *stop_after;     /* pass name, NULL: all */
    void (*after_pass)(void *context, const char *pass, bool changed,
                       const ent_module *module); /* may be NULL */
    void *context;
} ent_rewrite_options;

/* Runs all passes to a fixed point (bounded rounds), inferring shapes first. scratch is restored between
 * passes. */
ent_status ent_rewrite_run(ent_module *module, const ent_rewrite_options *options, ent_arena *scratch);
/* Names in order, NULL-terminated. */
const char *const *ent_rewrite_pass_names(void);
/* One pass by name, for goldens: code USAGE when unknown. */
ent_status ent_rewrite_pass(ent_module *module, const char *name, const ent_rewrite_options *options,
                            ent_arena *scratch, bool *out_changed);

#endif
