/* Graph IR: SSA values and nodes of one module, with nested graphs for control flow.
 *
 * Ids index the module's arrays and never change while a module lives; removed nodes stay as dead entries, so
 * that every stage may keep side tables by id. Values are module-wide: a nested graph reads outer values
 * directly (captures). Shapes and axes are logical, in ONNX order. Operators have their newest ai.onnx
 * meaning. Every layout is "any" until offers fix it. A module and all it points to live in its arena; one
 * thread at a time. */
#ifndef ENT_GRAPH_H
#define ENT_GRAPH_H

#include "abi/ent_expr.h"
#include "abi/ent_ops.h"
#include "core/base/base.h"

#define ENT_ID_NONE 0xffffffffu
#define ENT_RANK_UNKNOWN 0xffu

typedef struct ent_symbol {
    const char *name;
    int64_t min, max; /* max INT64_MAX: open */
    int64_t typical;  /* what prices are computed for; 0: nobody said */
} ent_symbol;

/* Constant data. `data` is borrowed: mapped model file, or the module's arena. Identity is (hash, dtype,
 * dims). */
typedef struct ent_constant {
    ent_hash128 hash;
    ent_tensor tensor;  /* plain layout */
    const char *recipe; /* how the text form made it, such as "random 1 0.02", so that it prints that way;
                           NULL: none */
} ent_constant;

typedef struct ent_value {
    const char *name;  /* unique in the module; the model's own name where it has one */
    uint32_t graph;    /* where it is defined */
    uint32_t producer; /* node id, or NONE for inputs and constants */
    uint32_t producer_output;
    uint32_t dtype; /* ent_dtype; NONE until inferred */
    uint32_t rank;  /* ENT_RANK_UNKNOWN until inferred */
    ent_dim dims[ENT_MAX_RANK];
    const ent_constant *constant; /* NULL unless constant */
} ent_value;

typedef struct ent_node {
    uint32_t op; /* ent_op */
    uint32_t graph;
    const char *name; /* unique in the module */
    ent_attrs attrs;
    const uint32_t *inputs; /* value ids; NONE: absent optional input */
    uint32_t input_count;
    const uint32_t *outputs; /* value ids; NONE: output not wanted */
    uint32_t output_count;
    const uint32_t *origins; /* model node indices (module->model_nodes) this came from, ascending */
    uint32_t origin_count;
    bool dead;
} ent_node;

typedef struct ent_graph {
    const char *name;
    uint32_t owner; /* control node, NONE for the main graph */
    ENT_ARRAY(uint32_t) inputs;
    ENT_ARRAY(uint32_t) outputs;
    ENT_ARRAY(uint32_t)
    nodes; /* every node ever added; their order is that of ent_graph_next, not of this list */
} ent_graph;

/* A composite seen whole: its members are leaves (live, non-composite nodes) of one graph that together
 * compute it. Made by the freeze step; overlays do not overlap except when one contains the other. */
typedef struct ent_overlay {
    uint32_t op;
    uint32_t graph;
    const char *name;
    ent_attrs attrs;
    const uint32_t *inputs;
    uint32_t input_count;
    const uint32_t *outputs;
    uint32_t output_count;
    const uint32_t *nodes; /* ascending in graph order */
    uint32_t node_count;
} ent_overlay;

/* An input of main that was replaced by a constant: the program is right for that value only, and checks it.
 */
typedef struct ent_bound_input {
    uint32_t input, constant; /* values */
} ent_bound_input;

typedef struct ent_module {
    ent_arena *arena;
    const char *name; /* model path or name, for messages */
    ENT_ARRAY(ent_symbol) symbols;
    ENT_ARRAY(ent_expr) exprs;
    ENT_ARRAY(ent_value) values;
    ENT_ARRAY(ent_node) nodes;
    ENT_ARRAY(ent_graph) graphs; /* 0 is main */
    ENT_ARRAY(ent_overlay) overlays;
    ENT_ARRAY(const char *) model_nodes; /* names of the model's nodes, "" replaced by op#index */
    ENT_ARRAY(const char *)
    output_names; /* of main's outputs as the model calls them; rewrites change values, not these */
    ENT_ARRAY(ent_bound_input) bound_inputs;
    ENT_ARRAY(const char *) notes; /* what a pass declined to do and why, for explain */
    bool frozen;
    struct ent_module_state
        *state; /* private to core/graph: names, shared expressions, use lists, node order */
} ent_module;

/* ---- building ---- */
ent_module *ent_module_create(ent_arena *arena, const char *name);
/* owner may be NONE at first: adding a control node makes it the owner of the graphs its attributes name. */
uint32_t ent_module_add_graph(ent_module *module, const char *name, uint32_t owner);
void ent_graph_add_input(ent_module *module, uint32_t graph, uint32_t value);
void ent_graph_add_output(ent_module *module, uint32_t graph, uint32_t value);
void ent_graph_set_output(ent_module *module, uint32_t graph, uint32_t index, uint32_t value);
uint32_t ent_module_add_symbol(ent_module *module, const char *name, int64_t min, int64_t max);
/* Dim of a symbol (an expression entry is shared by equal expressions). Folds constants and simple
 * identities. */
ent_dim ent_module_dim_symbol(ent_module *module, uint32_t symbol);
ent_dim ent_module_dim(ent_module *module, ent_expr_kind kind, ent_dim a, ent_dim b);
/* name NULL or taken: a fresh unique one is made from it. */
uint32_t ent_module_add_value(ent_module *module, uint32_t graph, const char *name, uint32_t dtype,
                              uint32_t rank, const ent_dim *dims);
/* data is borrowed if borrow, else copied. The hash is computed here. */
uint32_t ent_module_add_constant(ent_module *module, uint32_t graph, const char *name, uint32_t dtype,
                                 uint32_t rank, const int64_t *dims, const void *data, uint64_t size_bytes,
                                 bool borrow);
/* i64 vector (rank 1) and f32/any scalar helpers for rewrites. */
uint32_t ent_module_add_i64s(ent_module *module, uint32_t graph, const int64_t *items, uint32_t count);
uint32_t ent_module_add_scalar(ent_module *module, uint32_t graph, uint32_t dtype, double value);

typedef struct ent_node_spec {
    uint32_t op;
    const char *name;
    ent_attrs attrs;
    const uint32_t *inputs;
    uint32_t input_count;
    const uint32_t *outputs; /* existing values, or NULL: output_count fresh ones are made */
    uint32_t output_count;
    const uint32_t *origins;
    uint32_t origin_count;
} ent_node_spec;
/* Copies the spec's arrays; appends before `before` (node id) or at the end when NONE. Returns the node id.
 */
uint32_t ent_module_add_node(ent_module *module, uint32_t graph, const ent_node_spec *spec, uint32_t before);
void ent_module_set_input(ent_module *module, uint32_t node, uint32_t index, uint32_t value);
void ent_module_set_attrs(ent_module *module, uint32_t node, ent_attrs attrs);
/* Every use of `from` (inputs of nodes in all graphs, graph outputs) becomes `to`, in time proportional to
 * the uses. Overlays are not touched. */
void ent_module_replace_value(ent_module *module, uint32_t from, uint32_t to);
/* The bodies of a control node die with it. */
void ent_module_remove_node(ent_module *module, uint32_t node);
/* Puts the nodes of `graph`, a body of control node `node`, before that node, replaces the node's outputs by
 * the body's and removes the node (an If whose condition is known). */
void ent_module_inline_graph(ent_module *module, uint32_t node, uint32_t graph);
/* A copy of `node` in `graph`, before `before`: inputs through map (by value, NONE: itself), outputs fresh
 * and entered into it; bodies are copied with it. Nothing is inferred. */
uint32_t ent_module_copy_node(ent_module *module, uint32_t node, uint32_t graph, uint32_t before,
                              uint32_t *map, uint32_t map_count);
/* Constants of a body become those of a graph around it. */
void ent_graph_lift_constants(ent_module *module, uint32_t graph, uint32_t outer);
void ent_module_add_note(ent_module *module, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Attribute makers (data copied into the module's arena). */
ent_attr ent_attr_int(const char *name, int64_t value);
ent_attr ent_attr_float(const char *name, double value);
ent_attr ent_attr_string(ent_module *module, const char *name, const char *value);
ent_attr ent_attr_ints(ent_module *module, const char *name, const int64_t *values, uint32_t count);
ent_attr ent_attr_graph(const char *name, uint32_t graph);
ent_attrs ent_attrs_make(ent_module *module, const ent_attr *items, uint32_t count);

/* ---- looking ---- */
#define ent_module_value(module, id) (&(module)->values.items[id])
#define ent_module_node(module, id) (&(module)->nodes.items[id])
#define ent_module_graph(module, id) (&(module)->graphs.items[id])
/* Iterates live nodes of a graph in order: uint32_t at = 0, node; while (ent_graph_next(m, g, &at, &node))
 * ... The body may remove nodes, add some before the current one (not visited) or after it (visited). */
bool ent_graph_next(const ent_module *module, uint32_t graph, uint32_t *at, uint32_t *out_node);
/* Uses of every value: a snapshot; rebuild after edits. Users are live nodes; graph outputs are counted
 * apart. */
typedef struct ent_uses {
    const uint32_t *offsets;  /* per value, into users; values.count + 1 entries */
    const uint32_t *users;    /* node ids */
    const uint8_t *is_output; /* per value: an output of some graph */
} ent_uses;
ent_uses ent_module_uses(const ent_module *module, ent_arena *arena);
static inline uint32_t ent_uses_count(const ent_uses *uses, uint32_t value) {
    return uses->offsets[value + 1] - uses->offsets[value];
}
/* Uses that are always up to date: uint32_t at = 0, node, index; while (ent_value_next_use(m, v, &at, &node,
 * &index)) ... visits live nodes, once for each input that reads the value; edits of that value's uses end
 * the loop's validity. */
bool ent_value_next_use(const ent_module *module, uint32_t value, uint32_t *at, uint32_t *out_node,
                        uint32_t *out_input);
bool ent_value_is_output(const ent_module *module, uint32_t value); /* of some graph */
/* Constant contents; false unless constant of an integer (resp. float) type with at most `room` elements. */
bool ent_value_i64s(const ent_module *module, uint32_t value, int64_t *out, uint32_t room,
                    uint32_t *out_count);
bool ent_value_scalar(const ent_module *module, uint32_t value,
                      double *out);                                   /* one element, any numeric dtype */
bool ent_value_static(const ent_module *module, uint32_t value);      /* rank known, all dims constant */
int64_t ent_value_elements(const ent_module *module, uint32_t value); /* -1 unless static (or overflow) */
/* Row-major. A value of unknown rank has no form: no device takes it, and the one of rank 0 stands in until
 * that is said with its node's name. */
ent_layout ent_value_plain_layout(const ent_module *module, uint32_t value);
/* Topological check and sort of one graph's node list (importers may deliver unsorted lists). Fails on a
 * cycle, naming a node in it. */
ent_status ent_graph_sort(ent_module *module, uint32_t graph);

/* ---- text form, verifier, inference ---- */
/* Constants over 128 bytes print as `fill`, as the `random` they came from, or as a hash. core/graph/parse.h
 * has the syntax. */
const char *ent_module_print(const ent_module *module, ent_arena *arena);
/* Reads what print writes. Constants printed as a hash cannot be read back; goldens use `constant f32[2,3]
 * {1, 2, ...}`, `constant f32[8,8] fill 0.5` or `constant f32[64] random SEED STD` (a stated generator). */
ent_status ent_module_parse(ent_arena *arena, const char *file, const char *text, ent_module **out);
ent_status ent_module_verify(const ent_module *module, ent_arena *arena);
/* Infers dtypes and shapes of all graphs in order; errors (code MODEL) name node and rule. Existing dims of
 * values are checked for conflict; a fresh symbol is made for a data-dependent dim. Where the rank of an
 * input is unknown (branches that disagree, a Reshape to a shape of unknown length) the outputs of the node
 * stay as they are; the verifier refuses that once frozen. Attributes that name an element type (to,
 * output_dtype, stash_type, softmax_precision) hold ent_dtype numbers. */
ent_status ent_module_infer(ent_module *module, ent_arena *scratch);
/* Infers one node (used by rewrites after they add nodes). */
ent_status ent_node_infer(ent_module *module, uint32_t node, ent_arena *scratch);
/* Binds symbols to numbers everywhere: a name list. Unknown names are code USAGE. */
typedef struct ent_binding {
    const char *symbol;
    int64_t value;
} ent_binding;
ent_status ent_module_bind(ent_module *module, const ent_binding *bindings, uint32_t count);
/* Keeps a symbol open, between min and max; prices are computed for `typical` (0: the middle of the range, at
 * least 1). code USAGE for unknown names and empty ranges. */
ent_status ent_module_set_range(ent_module *module, const char *symbol, int64_t min, int64_t max,
                                int64_t typical);
/* The size that prices count with: of a symbol its typical one. Never negative; what no number holds is
 * INT64_MAX. */
int64_t ent_module_typical(const ent_module *module, ent_dim dim);
/* The same for every axis of a value of known rank. */
void ent_module_typical_dims(const ent_module *module, uint32_t value, int64_t *out);

/* Size expressions of a module as a table of their own, as messages and programs carry them: only what is
 * used, operands first. */
typedef struct ent_size_table {
    const ent_module *module;
    ent_arena *arena;
    ENT_ARRAY(uint32_t) symbols; /* module symbols: the open ones of main's inputs first */
    ENT_ARRAY(ent_expr) exprs;   /* operands are dims of this table, symbols its symbols */
    ent_map *known;              /* module expression -> expression here */
} ent_size_table;
void ent_size_table_init(ent_size_table *table, const ent_module *module, ent_arena *arena);
/* The dim of this table that stands for a dim of the module. */
ent_dim ent_size_table_dim(ent_size_table *table, ent_dim dim);
/* The dim for `a kind b` of dims of the table; b above 0 where it divides. */
ent_dim ent_size_table_combine(ent_size_table *table, ent_expr_kind kind, ent_dim a, ent_dim b);
void ent_size_table_add_value(ent_size_table *table, uint32_t value);

/* Sets a graph input's dims (for --shape); symbols that stood there are bound in the whole module. place is
 * the flag. */
ent_status ent_module_set_input_shape(ent_module *module, uint32_t value, const int64_t *dims, uint32_t rank,
                                      const char *place);
/* A Loop that may end, without scan outputs, whose states keep one static shape: it can run as a step of a
 * program. */
bool ent_module_loop_is_settled(const ent_module *module, uint32_t node);
/* Symbols that still occur in main's inputs, with input and axis of the first occurrence. */
typedef struct ent_open_symbol {
    uint32_t symbol, value, axis;
} ent_open_symbol;
uint32_t ent_module_open_symbols(const ent_module *module, ent_arena *arena, const ent_open_symbol **out);

/* Inputs of main whose values decide a shape or a rank that the last ent_module_infer left open: those from
 * which a shape rule's missing elements are computed, where all of them have at most max_elements. */
uint32_t ent_module_shape_inputs(const ent_module *module, ent_arena *arena, int64_t max_elements,
                                 const uint32_t **out);

/* ---- decomposition (composites carry their own) ---- */
/* Replaces a composite node by primitive nodes computing the same outputs; origins are inherited. Returns
 * false when the operator has no decomposition for these attributes. Added nodes are inferred. */
ent_status ent_node_decompose(ent_module *module, uint32_t node, ent_arena *scratch, bool *out_done);
/* Decomposes every composite into leaves and records the overlays; then module->frozen. Softmax stays a leaf.
 */
ent_status ent_module_freeze(ent_module *module, ent_arena *scratch);

#endif
