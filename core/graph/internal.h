/* What the files of this folder share: the private state of a module. Nobody outside core/graph includes
 * this. */
#ifndef ENT_GRAPH_INTERNAL_H
#define ENT_GRAPH_INTERNAL_H

#include "core/graph/graph.h"

/* An element of a small integer value that is not known. */
#define ENT_ELEMENT_UNKNOWN INT64_MIN
#define ENT_MAX_ELEMENTS 64u
/* Graphs inside graphs, and operands inside operands of a size expression. */
#define ENT_MAX_NESTING 64u
#define ENT_MAX_EXPR_WEIGHT 512u

/* Known elements of a small integer value (shape arithmetic), as dims; a negative number is a CONST
 * expression. */
typedef struct ent_elements {
    uint32_t count;
    const ent_dim *items;
} ent_elements;

/* One use of a value. Entries may be stale: a walk checks that the slot still holds the value. */
typedef struct ent_use {
    uint32_t user; /* node id, or ENT_USE_GRAPH | graph id for a graph output */
    uint32_t slot;
    uint32_t next; /* 1 + index of the next use, 0: end */
} ent_use;
#define ENT_USE_GRAPH 0x80000000u

typedef struct ent_order {
    uint32_t previous, next; /* node ids or NONE; a graph's entry has the last and the first */
} ent_order;

typedef struct ent_expr_info {
    uint16_t weight; /* operands of the expression written out as a tree */
    bool opaque;     /* too many terms for the normal form: an atom of other expressions */
} ent_expr_info;

struct ent_module_state {
    ent_map *value_names, *node_names, *graph_names, *symbol_names; /* name -> id */
    ent_map *fresh;                                                 /* name stem -> next number to try */
    uint32_t *expr_table; /* open addressing: 1 + expression index */
    uint32_t expr_table_size;
    ENT_ARRAY(ent_expr_info) expr_infos;
    const char *dim_problem; /* "overflow" or "nesting" since the last infer step, else NULL */
    ENT_ARRAY(ent_use) uses;
    ENT_ARRAY(uint32_t) use_heads; /* per value: 1 + index */
    ENT_ARRAY(ent_order) node_order;
    ENT_ARRAY(ent_order) graph_order;
    ENT_ARRAY(uint32_t) indexed_outputs; /* per graph: how many outputs are entered among the uses */
    ENT_ARRAY(uint32_t) node_marks;      /* per node: local index while a graph is sorted */
    ENT_ARRAY(uint32_t) graph_marks;     /* per graph: the last walk that visited it */
    uint32_t walk;
    ENT_ARRAY(ent_elements) elements; /* per value */
    ENT_ARRAY(uint8_t) wanted;        /* per value: a shape rule asked for elements that are not known */
};

/* build.c: slot of a use, NULL when the entry is stale. */
uint32_t *ent_use_slot(const ent_module *module, const ent_use *use, uint32_t value);
bool ent_graph_is_dead(const ent_module *module, uint32_t graph); /* its control node was removed */
/* Enters outputs that were pushed to the list directly among the uses. */
void ent_graph_index_outputs(ent_module *module, uint32_t graph);
/* Puts node into its graph's order before `before`, or last when NONE; it must not be in the order. */
void ent_graph_order_insert(ent_module *module, uint32_t node, uint32_t before);
void ent_graph_order_clear(ent_module *module, uint32_t graph);
const char *ent_module_fresh_name(ent_module *module, ent_map *taken, const char *stem, uint64_t id);

/* dims.c */
ent_dim ent_module_dim_constant(ent_module *module, int64_t value);
bool ent_module_dim_number(const ent_module *module, ent_dim dim, int64_t *out);
/* a / b where that is exact, whatever the symbols are (b not zero). */
bool ent_module_dim_divide(ent_module *module, ent_dim a, ent_dim b, ent_dim *out);
/* Least value that the bounds of the symbols allow; INT64_MIN when not known. */
int64_t ent_module_dim_least(const ent_module *module, ent_dim dim);
int64_t ent_module_dim_most(const ent_module *module, ent_dim dim);
uint32_t ent_module_fresh_symbol(ent_module *module, const char *stem);
void ent_module_print_dim(const ent_module *module, ent_text *text, ent_dim dim);
/* Replaces symbols by what map says (one dim per symbol) in every value and known element. */
void ent_module_substitute(ent_module *module, const ent_dim *map);

/* "[N,3,H + 1]" in the module's arena. */
const char *ent_module_dims_text(const ent_module *module, uint32_t rank, const ent_dim *dims);
void ent_text_add_name(ent_text *text, const char *name); /* as a word if it is one, else quoted */
void ent_text_add_quoted(ent_text *text, const char *data, size_t size);

/* elements.c: element access of plain constant data. */
bool ent_element_is_numeric(uint32_t dtype);
double ent_element_get_f64(const void *data, uint32_t dtype, uint64_t index);
int64_t ent_element_get_i64(const void *data, uint32_t dtype, uint64_t index);
void ent_element_set_f64(void *data, uint32_t dtype, uint64_t index, double value);
void ent_element_set_i64(void *data, uint32_t dtype, uint64_t index, int64_t value);
bool ent_dtype_is_float(uint32_t dtype);
bool ent_dtype_is_integer(uint32_t dtype); /* whole numbers of 8 bits and more, and bool */
/* Bytes of a plain tensor; false on overflow. STRING has none: false. */
bool ent_tensor_size_bytes(uint32_t dtype, uint32_t rank, const int64_t *dims, uint64_t *out);

/* "node 'name' (Op)" in the module's arena. */
const char *ent_node_place(const ent_module *module, uint32_t node);

#endif
