/* Stage "rewrite": a module in text form is inferred, then what "# args:" lists happens in order: a pass by
 * name, `all` (the runner with every pass), `strict` (for what follows), `growth N` (bytes a fold may add),
 * `stop PASS` (for `all`), `trace` (names passes that changed something), `freeze`. */
#include <stdlib.h>
#include <string.h>

#include "core/rewrite/rewrite.h"
#include "tests/golden/golden.h"

static void trace(void *context, const char *pass, bool changed, const ent_module *module) {
    (void)module;
    if (changed) ent_text_add(context, "changed: %s\n", pass);
}

static ent_status apply_word(ent_arena *scratch, ent_module *module, const char *word, char **rest,
                             ent_rewrite_options *options, ent_text *out) {
    bool changed = false;
    if (strcmp(word, "strict") == 0)
        options->strict = true;
    else if (strcmp(word, "growth") == 0)
        options->fold_growth_bytes = strtoull(strtok_r(NULL, " ", rest), NULL, 10);
    else if (strcmp(word, "stop") == 0)
        options->stop_after = strtok_r(NULL, " ", rest);
    else if (strcmp(word, "trace") == 0) {
        options->after_pass = trace;
        options->context = out;
    } else if (strcmp(word, "all") == 0)
        return ent_rewrite_run(module, options, scratch);
    else if (strcmp(word, "freeze") == 0)
        return ent_module_freeze(module, scratch);
    else
        return ent_rewrite_pass(module, word, options, scratch, &changed);
    return NULL;
}

static ent_status apply_words(ent_arena *arena, const char *args, ent_module *module, ent_text *out) {
    ent_rewrite_options options = {0};
    ent_status status = NULL;
    char *rest = NULL, *words = ent_arena_strdup(arena, args);
    ent_arena *scratch =
        ent_arena_create(0); /* the runner winds it back, so that the module cannot live there */
    for (char *word = strtok_r(words, " ", &rest); word && !status; word = strtok_r(NULL, " ", &rest))
        status = apply_word(scratch, module, word, &rest, &options, out);
    ent_arena_destroy(scratch);
    return status;
}

static ent_status run_rewrite(ent_arena *arena, const char *args, const char *file, ent_str input,
                              ent_text *out) {
    ent_module *module = NULL;
    ENT_TRY(ent_module_parse(arena, file, ent_arena_strndup(arena, input.data, input.size), &module));
    ENT_TRY(ent_module_infer(module, arena));
    ENT_TRY(apply_words(arena, args, module, out));
    ENT_TRY(ent_module_verify(module, arena));
    ent_text_add(out, "%s", ent_module_print(module, arena));
    return NULL;
}

static ent_status reprint(ent_arena *arena, const char *file, ent_str input, ent_text *out) {
    ent_module *module = NULL;
    ENT_TRY(ent_module_parse(arena, file, ent_arena_strndup(arena, input.data, input.size), &module));
    ent_text_add(out, "%s", ent_module_print(module, arena));
    return NULL;
}

const golden_stage golden_stage_rewrite = {"rewrite", run_rewrite, reprint};
