/* Stages "graph" and "infer".
 *
 * graph: a module in text form is parsed, with "# args: sort" its graphs are sorted, then verified and
 * printed. infer: the same, with inference, and then what "# args:" lists, in order: `bind NAME=N`, `shape
 * INPUT=1x3x8` (bind and infer again), `freeze`, `open` (lists the symbols still open), `again` (infers
 * again). */
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph.h"
#include "tests/golden/golden.h"

static ent_status parse(ent_arena *arena, const char *file, ent_str input, ent_module **out) {
    return ent_module_parse(arena, file, ent_arena_strndup(arena, input.data, input.size), out);
}

static ent_status sort_graphs(ent_module *module) {
    for (uint32_t g = 0; g < module->graphs.count; g++) ENT_TRY(ent_graph_sort(module, g));
    return NULL;
}

static ent_status run_graph(ent_arena *arena, const char *args, const char *file, ent_str input,
                            ent_text *out) {
    ent_module *module = NULL;
    ENT_TRY(parse(arena, file, input, &module));
    if (strstr(args, "sort")) ENT_TRY(sort_graphs(module));
    ENT_TRY(ent_module_verify(module, arena));
    ent_text_add(out, "%s", ent_module_print(module, arena));
    return NULL;
}

static ent_status reprint(ent_arena *arena, const char *file, ent_str input, ent_text *out) {
    ent_module *module = NULL;
    ENT_TRY(parse(arena, file, input, &module));
    ent_text_add(out, "%s", ent_module_print(module, arena));
    return NULL;
}

static ent_status set_shape(ent_arena *arena, ent_module *module, const char *assignment) {
    int64_t dims[ENT_MAX_RANK + 1];
    uint32_t rank = 0;
    const char *at = strchr(assignment, '=');
    const char *name = ent_arena_strndup(arena, assignment, at ? (size_t)(at - assignment) : 0);
    while (at && *at && rank <= ENT_MAX_RANK) {
        char *end;
        dims[rank++] = strtoll(at + 1, &end, 10);
        at = end;
    }
    for (uint32_t i = 0; i < ent_module_graph(module, 0)->inputs.count; i++) {
        uint32_t value = ent_module_graph(module, 0)->inputs.items[i];
        if (strcmp(ent_module_value(module, value)->name, name) == 0)
            return ent_module_set_input_shape(module, value, dims, rank, "--shape");
    }
    return ent_status_make(arena, ENT_ERROR_USAGE, "golden.args", "args", "there is no input '%s'", name);
}

static void add_open(ent_arena *arena, const ent_module *module, ent_text *out) {
    const ent_open_symbol *open;
    uint32_t count = ent_module_open_symbols(module, arena, &open);
    for (uint32_t i = 0; i < count; i++)
        ent_text_add(out, "open: %s at axis %u of %s\n", module->symbols.items[open[i].symbol].name,
                     open[i].axis, ent_module_value(module, open[i].value)->name);
}

static ent_status apply(ent_arena *arena, ent_module *module, char *args, ent_text *out) {
    char *rest = NULL;
    for (char *word = strtok_r(args, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *argument =
            strcmp(word, "bind") == 0 || strcmp(word, "shape") == 0 ? strtok_r(NULL, " ", &rest) : NULL;
        if (strcmp(word, "bind") == 0) {
            char *number = strchr(argument, '=');
            *number++ = 0;
            ent_binding binding = {argument, strtoll(number, NULL, 10)};
            ENT_TRY(ent_module_bind(module, &binding, 1));
        }
        if (strcmp(word, "shape") == 0) ENT_TRY(set_shape(arena, module, argument));
        if (argument || strcmp(word, "again") == 0) ENT_TRY(ent_module_infer(module, arena));
        if (strcmp(word, "freeze") == 0) ENT_TRY(ent_module_freeze(module, arena));
        if (strcmp(word, "open") == 0) add_open(arena, module, out);
    }
    return ent_module_verify(module, arena);
}

static ent_status run_infer(ent_arena *arena, const char *args, const char *file, ent_str input,
                            ent_text *out) {
    ent_module *module = NULL;
    ENT_TRY(parse(arena, file, input, &module));
    ENT_TRY(ent_module_verify(module, arena));
    ENT_TRY(ent_module_infer(module, arena));
    ENT_TRY(apply(arena, module, ent_arena_strdup(arena, args), out));
    ent_text_add(out, "%s", ent_module_print(module, arena));
    return NULL;
}

const golden_stage golden_stage_graph = {"graph", run_graph, reprint};
const golden_stage golden_stage_infer = {"infer", run_infer, reprint};
