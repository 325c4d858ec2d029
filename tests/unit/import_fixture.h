/* A model of one node, from `x` to `y`, and what it is imported as. */
#ifndef IMPORT_FIXTURE_H
#define IMPORT_FIXTURE_H

#include "import_build.h"

typedef struct fixture {
    ent_arena *arena;
    ent_module *module;
    ent_import_files *files;
    bytes graph;
} fixture;

static fixture f;

static inline void begin_graph(const int64_t *dims) {
    memset(&f, 0, sizeof f);
    f.arena = ent_arena_create(0);
    put_value(&f.graph, 11, "x", 1, 4, dims);
    put_value(&f.graph, 12, "y", 1, 0, NULL);
}

static inline void teardown(void) {
    ent_import_files_close(f.files);
    ent_arena_destroy(f.arena);
}

/* The node is the graph's; opset: of the main domain. */
static inline ent_status import_node(const bytes *node, int64_t opset) {
    put_bytes(&f.graph, 1, node);
    bytes model = make_model(&f.graph, opset);
    return import_bytes(f.arena, &model, &f.module, &f.files);
}

/* Operators of the main graph in order, separated by spaces. */
static inline const char *operators(void) {
    ent_text text;
    uint32_t at = 0, node;
    ent_text_init(&text, f.arena);
    while (ent_graph_next(f.module, 0, &at, &node))
        ent_text_add(&text, "%s%s", text.size ? " " : "",
                     ent_op_info_get(ent_module_node(f.module, node)->op)->name);
    return text.data;
}

#endif
