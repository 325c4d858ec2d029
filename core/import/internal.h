/* What the files of this folder share. Not for others: they include import.h. */
#ifndef ENT_IMPORT_INTERNAL_H
#define ENT_IMPORT_INTERNAL_H

#include "core/import/import.h"

#include <onnx/onnx.pb-c.h>

#define ENT_IMPORT_MAX_ATTRS 32
#define ENT_IMPORT_MIN_OPSET 1
#define ENT_IMPORT_FULL_OPSET 7 /* below: only operators that did not change until then */
#define ENT_IMPORT_MAX_OPSET 27
#define ENT_IMPORT_MIN_IR 3
#define ENT_IMPORT_MAX_IR 13

/* ---- wire.c: the file's bytes, before protobuf-c sees them ---- */

/* Unknown fields that wire.c puts into a TensorProto in place of raw_data: where the bytes lie in the file.
 */
#define ENT_IMPORT_RAW_OFFSET_FIELD 530000001u
#define ENT_IMPORT_RAW_SIZE_FIELD 530000002u

typedef struct ent_import_wire_limits {
    uint32_t max_nodes;
    uint32_t max_nesting; /* graphs within graphs */
} ent_import_wire_limits;

/* Checks the whole file against the schema of `descriptor` and makes a copy in `scratch` without raw_data,
 * which stays in the file. Errors live in `arena`. Depth and counts are limited here, because protobuf-c
 * recurses and allocates without limit. */
ent_status ent_import_wire_read(ent_arena *arena, ent_arena *scratch, const char *path, ent_str bytes,
                                const ProtobufCMessageDescriptor *descriptor, ent_import_wire_limits limits,
                                ent_str *out);
/* The same, then parsed. The message lives in `scratch`; it is never freed by itself. */
ent_status ent_import_wire_parse(ent_arena *arena, ent_arena *scratch, const char *path, ent_str bytes,
                                 const ProtobufCMessageDescriptor *descriptor, ent_import_wire_limits limits,
                                 ProtobufCMessage **out);

/* ---- state of one import ---- */

typedef struct ent_import_mapped {
    uint64_t device, inode;
    ent_file_map map;
} ent_import_mapped;

struct ent_import_files {
    ENT_ARRAY(ent_import_mapped) maps; /* 0 is the model file */
};

/* What can only be settled when shapes and dtypes are known. */
typedef enum ent_import_pending_kind {
    ENT_IMPORT_PENDING_FLAT_SOFTMAX = 1, /* node is a (Log)Softmax with the meaning before opset 13 */
    ENT_IMPORT_PENDING_CAST_LIKE = 2     /* node casts an f32 constant to the dtype of its second input */
} ent_import_pending_kind;
typedef struct ent_import_pending {
    uint32_t kind;
    uint32_t node;
} ent_import_pending;

typedef struct ent_importer {
    ent_arena *arena;   /* the module's */
    ent_arena *scratch; /* freed when the import ends */
    ent_module *module;
    const char *path;
    ent_import_options options; /* limits filled in */
    ent_import_files *files;
    bool copy_data; /* constants may not point into files */
    const Onnx__ModelProto *model;
    ent_map *symbols;    /* dim_param -> ent_dim */
    ent_map *functions;  /* "domain\nname" -> index in model->functions */
    ent_map *used_names; /* every name that some node, function or graph reads */
    ENT_ARRAY(ent_import_pending) pending;
    uint32_t node_count; /* with those of inlined functions */
    uint32_t inline_depth;
} ent_importer;

/* Which operator set a part of the model speaks: 0 if ai.onnx is not imported. */
typedef struct ent_import_opsets {
    int64_t onnx;
    Onnx__OperatorSetIdProto **items;
    size_t count;
} ent_import_opsets;

typedef struct ent_import_scope {
    const struct ent_import_scope *parent; /* NULL for the main graph and for a function's body */
    ent_map *names;                        /* name -> value id; ENT_ID_NONE: defined, but nobody reads it */
    uint32_t graph;
    const ent_import_opsets *opsets;
    const Onnx__NodeProto *call;               /* the node whose function this is, or NULL */
    const struct ent_import_scope *call_scope; /* where that node stands */
    uint32_t origin;                           /* model node of that call, or ENT_ID_NONE */
    uint32_t control_origin; /* model node of the control node around this graph, or ENT_ID_NONE */
    const char *prefix;      /* for node names: "" or "call/" */
} ent_import_scope;

/* A node on its way from the model's form to the newest one. */
typedef struct ent_import_draft {
    ent_importer *importer;
    const ent_import_scope *scope;
    const Onnx__NodeProto *proto;
    const char *place; /* "file: node 'name' (Op)" */
    const char *name;
    uint32_t op;   /* ent_op; NONE for Constant and Upsample */
    int64_t opset; /* the model's, of ai.onnx; of another domain's operator: 1 */
    uint32_t origin;
    ent_attr attrs[ENT_IMPORT_MAX_ATTRS];
    uint32_t attr_count;
    uint32_t *inputs; /* room for three more than the node has */
    uint32_t input_count;
    uint32_t *outputs;
    uint32_t output_count;
    uint32_t pending; /* ent_import_pending_kind to record with the node, 0: none */
    bool done;        /* an upgrade has emitted everything itself */
    ent_status (*expand)(
        struct ent_import_draft *draft); /* of an operator that other nodes replace; or NULL */
} ent_import_draft;

/* ---- graph.c ---- */
/* Fills the graph of `scope` from proto. */
ent_status ent_import_graph(ent_importer *importer, const Onnx__GraphProto *proto, ent_import_scope *scope);
bool ent_import_find(const ent_import_scope *scope, const char *name, uint32_t *out_value);
/* Declares the outputs of nodes, and makes Constant nodes constants. origins: model node of each. */
ent_status ent_import_declare_nodes(ent_importer *importer, Onnx__NodeProto **nodes, size_t count,
                                    ent_import_scope *scope, uint32_t *origins);
void ent_import_collect_uses(ent_importer *importer);

/* ---- node.c ---- */
/* Adds the node, upgraded, to its graph; a call of a model function is inlined. */
ent_status ent_import_node(ent_importer *importer, const Onnx__NodeProto *proto,
                           const ent_import_scope *scope, uint32_t origin);
/* Fills the graph of a graph attribute of the draft's node from the model's. */
ent_status ent_import_body(const ent_import_draft *draft, const ent_attr *attr);
const char *ent_import_node_place(ent_importer *importer, const Onnx__NodeProto *proto);
bool ent_import_is_onnx_domain(const char *domain);
ent_status ent_import_count_node(ent_importer *importer, const char *place);

/* ---- function.c ---- */
bool ent_import_function_find(const ent_importer *importer, const Onnx__NodeProto *proto,
                              const Onnx__FunctionProto **out);
ent_status ent_import_functions_index(ent_importer *importer);
ent_status ent_import_function_inline(ent_importer *importer, const Onnx__FunctionProto *function,
                                      const Onnx__NodeProto *call, const ent_import_scope *scope,
                                      uint32_t origin);

/* ---- attribute.c ---- */
typedef struct ent_import_form {
    const char *name;
    int32_t since, min_in, max_in, min_out, max_out;
    const char *attributes;
} ent_import_form;
/* The form of an operator of ai.onnx in an opset: from forms.def, else from ent_ops.def. False when there is
 * none yet. */
bool ent_import_form_find(const char *op_type, int64_t opset, ent_import_form *out);
/* The form that ent_ops.def gives. */
void ent_import_form_of(uint32_t op, ent_import_form *out);
/* Domain of an operator of ent_ops.def: the first *out_size characters; none: ai.onnx. */
const char *ent_import_op_domain(const ent_op_info *info, size_t *out_size);
/* Reads the node's attributes against the form; graphs of control nodes are imported by the caller. */
ent_status ent_import_attributes(ent_import_draft *draft, const ent_import_form *form);
/* Attributes of the draft by name: NULL, or take it out of the draft. */
ent_attr *ent_import_attr(ent_import_draft *draft, const char *name);
bool ent_import_attr_take(ent_import_draft *draft, const char *name, ent_attr *out);
void ent_import_attr_put(ent_import_draft *draft, ent_attr attr);
/* The node's attribute that is meant by `attribute`, which may refer to one of the function's call; NULL: not
 * given. */
const Onnx__AttributeProto *ent_import_attribute_resolve(const ent_import_scope *scope,
                                                         const Onnx__AttributeProto *attribute);

/* ---- constant.c ---- */
ent_status ent_import_constant_node(ent_importer *importer, const Onnx__NodeProto *proto,
                                    ent_import_scope *scope, uint32_t *out_value);

/* ---- tensor.c, external.c ---- */
ent_dtype ent_import_dtype(int32_t onnx_type); /* NONE if unknown */
/* place names what holds the tensor. Data may point into a mapped file (*out_borrow), else it is in the
 * arena. */
ent_status ent_import_tensor(ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                             ent_tensor *out, bool *out_borrow);
ent_status ent_import_external(ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                               uint64_t size_bytes, const uint8_t **out_data);

/* ---- upgrade*.c ---- */
ent_status ent_import_upgrade(ent_import_draft *draft);
ent_status ent_import_upgrade_finish(ent_importer *importer);
/* Adds a node before the draft's own, in its graph and with its origin; returns its first output. */
uint32_t ent_import_emit(ent_import_draft *draft, uint32_t op, const ent_attr *attrs, uint32_t attr_count,
                         const uint32_t *inputs, uint32_t input_count);
/* The same into an existing value. */
uint32_t ent_import_emit_to(ent_import_draft *draft, uint32_t op, const ent_attr *attrs, uint32_t attr_count,
                            const uint32_t *inputs, uint32_t input_count, uint32_t output);
/* A constant scalar of the dtype of value `like`. */
uint32_t ent_import_scalar_like(ent_import_draft *draft, double value, uint32_t like);
/* Sets an input, filling the gap with absent ones. */
void ent_import_input_set(ent_import_draft *draft, uint32_t index, uint32_t value);
ent_status ent_import_upgrade_reduce(ent_import_draft *draft);
ent_status ent_import_upgrade_squeeze(ent_import_draft *draft);
ent_status ent_import_upgrade_slice(ent_import_draft *draft);
ent_status ent_import_upgrade_split(ent_import_draft *draft);
ent_status ent_import_upgrade_pad(ent_import_draft *draft);
ent_status ent_import_upgrade_clip(ent_import_draft *draft);
ent_status ent_import_upgrade_dropout(ent_import_draft *draft);
ent_status ent_import_upgrade_batch_norm(ent_import_draft *draft);
ent_status ent_import_upgrade_group_norm(ent_import_draft *draft);
ent_status ent_import_upgrade_dft(ent_import_draft *draft);
ent_status ent_import_upgrade_random(ent_import_draft *draft);
ent_status ent_import_upgrade_batched_scan(ent_import_draft *draft);
ent_status ent_import_expand_adagrad(ent_import_draft *draft);
ent_status ent_import_expand_adam(ent_import_draft *draft);
ent_status ent_import_expand_momentum(ent_import_draft *draft);
ent_status ent_import_upgrade_range(ent_import_draft *draft);
ent_status ent_import_upgrade_softmax(ent_import_draft *draft);
ent_status ent_import_upgrade_resize(ent_import_draft *draft);
ent_status ent_import_upgrade_upsample(ent_import_draft *draft);
ent_status ent_import_upgrade_topk(ent_import_draft *draft);
ent_status ent_import_upgrade_grid_sample(ent_import_draft *draft);
ent_status ent_import_upgrade_roi_align(ent_import_draft *draft);
ent_status ent_import_finish_softmax(ent_importer *importer, uint32_t node);

#endif
