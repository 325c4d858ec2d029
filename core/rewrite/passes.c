/* The passes in order, and their runner. The list is run until nothing changes (at most MAX_ROUNDS times). */
#include "core/rewrite/internal.h"

#include <string.h>

#define MAX_ROUNDS 12

typedef struct pass {
    const char *name;
    ent_rewrite_pass_function run;
} pass;

static const pass passes[] = {
    {"integer-products",
     ent_rewrite_integer_products}, /* before constant weights become floats; not when strict */
    {"fold-constants", ent_rewrite_fold_constants}, /* constants, known shapes, known branches */
    {"unroll", ent_rewrite_unroll},                 /* Loop and Scan with few, known iterations */
    {"simplify",
     ent_rewrite_simplify}, /* nodes that change nothing; one-input forms of many-input operators */
    {"remove-dead", ent_rewrite_remove_dead},
    {"share-equal", ent_rewrite_share_equal},
    {"merge-reshapes", ent_rewrite_merge_reshapes}, /* chains of Reshape, Squeeze, Unsqueeze, Flatten */
    {"move-transposes",
     ent_rewrite_move_transposes},        /* down through elementwise operators until they meet and cancel */
    {"recompose", ent_rewrite_recompose}, /* gelu, hard-swish, softmax, layer norm, attention */
    {"fold-scales",
     ent_rewrite_fold_scales}, /* batch norm and channel constants into weights; after recompose, whose
                                  patterns have constants of their own; not when strict */
};
#define PASS_COUNT (sizeof passes / sizeof passes[0])

const char *const *ent_rewrite_pass_names(void) {
    static const char *names[PASS_COUNT + 1];
    for (size_t i = 0; i < PASS_COUNT; i++) names[i] = passes[i].name;
    return names;
}

static ent_status run_pass(ent_module *module, const pass *p, const ent_rewrite_options *options,
                           ent_arena *scratch, uint64_t *grown_bytes, bool *changed) {
    ent_arena_mark mark = ent_arena_save(scratch);
    ent_rewrite_context context = {module, options, scratch, false, grown_bytes, NULL};
    ent_status status = p->run(&context);
    if (!status && context.changed) {
        status = ent_module_verify(module, scratch);
        if (status) /* our own bug: say which pass */
            status = ent_status_make(module->arena, ENT_ERROR_INTERNAL, "rewrite.broke", p->name, "%s",
                                     ent_status_text(module->arena, status));
    }
    if (!status && options->after_pass)
        options->after_pass(options->context, p->name, context.changed, module);
    ent_arena_restore(scratch, mark);
    *changed = context.changed;
    return status;
}

ent_status ent_rewrite_pass(ent_module *module, const char *name, const ent_rewrite_options *options,
                            ent_arena *scratch, bool *out_changed) {
    uint64_t grown_bytes = 0;
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (strcmp(passes[i].name, name) == 0)
            return run_pass(module, &passes[i], options, scratch, &grown_bytes, out_changed);
    return ent_status_make(module->arena, ENT_ERROR_USAGE, "rewrite.unknown-pass", name,
                           "there is no such pass");
}

ent_status ent_rewrite_run(ent_module *module, const ent_rewrite_options *options, ent_arena *scratch) {
    uint32_t notes = module->notes.count;
    uint64_t grown_bytes = 0;
    ENT_TRY(ent_module_infer(module, scratch));
    for (int round = 0; round < MAX_ROUNDS; round++) {
        bool any = false;
        module->notes.count = notes; /* what is declined is declined in every round: the last one tells */
        for (size_t i = 0; i < PASS_COUNT; i++) {
            bool changed = false;
            ENT_TRY(run_pass(module, &passes[i], options, scratch, &grown_bytes, &changed));
            any |= changed;
            if (options->stop_after && strcmp(options->stop_after, passes[i].name) == 0) return NULL;
        }
        if (!any) break;
        ENT_TRY(ent_module_infer(module, scratch));
    }
    return NULL;
}
