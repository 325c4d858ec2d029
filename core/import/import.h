/* ONNX model file -> graph IR. Never trusts the file. Errors have code MODEL (bad or malformed), UNSUPPORTED
 * (an operator, version, attribute or type this project does not know, named) or LIMIT; place is "file: node
 * 'name' (Op)"; rule is a stable id. */
#ifndef ENT_IMPORT_H
#define ENT_IMPORT_H

#include "core/graph/graph.h"

typedef struct ent_import_options {
    const char
        *external_data_root;   /* further allowed root for external data; NULL: only the model's own folder */
    uint64_t max_file_bytes;   /* 0: 16 GiB */
    uint32_t max_nodes;        /* 0: 1,000,000 */
    uint32_t max_nesting;      /* 0: 64 */
    uint64_t max_tensor_bytes; /* of one tensor; 0: 16 GiB */
} ent_import_options;

/* What must stay open while the module lives: the mapped model file and external data (constants point into
 * them). */
typedef struct ent_import_files ent_import_files;
void ent_import_files_close(ent_import_files *files); /* NULL is fine */

/* Reads, checks, upgrades every operator to its newest meaning, resolves names and captures, sorts. Shapes of
 * inputs are taken over (dim_param become symbols, unnamed dims fresh symbols "input.axis"); value_info and
 * shapes of outputs are not, see onnx.c. Infers shapes only where an old definition depends on them (Softmax
 * before opset 13). Every node's origin is its index in module->model_nodes; nodes of an inlined function
 * have the origin of the call. On an error nothing stays open. */
ent_status ent_import_onnx(ent_arena *arena, const char *path, const ent_import_options *options,
                           ent_module **out, ent_import_files **out_files);

/* One TensorProto file (.pb test data) as a tensor in the arena; name may be NULL. */
ent_status ent_import_tensor_pb(ent_arena *arena, const char *path, ent_tensor *out, const char **out_name);

#endif
