/* Operator ids, classes and attributes: the C view of ent_ops.def. */
#ifndef ENT_OPS_H
#define ENT_OPS_H

#include "abi/ent_types.h"

typedef enum ent_op {
    ENT_OP_NONE = 0,
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes) ENT_OP_##name = id,
#include "abi/ent_ops.def"
    ENT_OP_COUNT
} ent_op;

typedef enum ent_op_class {
    ENT_CLASS_NONE = 0, /* of no family: only patterns that name it or take any operator match it */
    ENT_CLASS_ELEMENTWISE = 1,
    ENT_CLASS_CONTRACTION = 2,
    ENT_CLASS_WINDOW = 3,
    ENT_CLASS_REDUCTION = 4,
    ENT_CLASS_MOVEMENT = 5,
    ENT_CLASS_CONTROL = 6,
    ENT_CLASS_COMPOSITE = 7
} ent_op_class;

/* One line of the table. */
typedef struct ent_op_info {
    uint32_t id;
    const char *name;
    const char *versions;
    uint32_t op_class; /* ent_op_class */
    int32_t min_inputs, max_inputs;
    int32_t min_outputs, max_outputs;
    const char *attributes;
} ent_op_info;

/* NULL for an id outside the table. */
static inline const ent_op_info *ent_op_info_get(uint32_t op) {
    static const ent_op_info table[ENT_OP_COUNT] = {
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes)                     \
    [id] = {id, #name, versions, ENT_CLASS_##class_, min_in, max_in, min_out, max_out, attributes},
#include "abi/ent_ops.def"
    };
    return op > 0 && op < ENT_OP_COUNT ? &table[op] : NULL;
}

/* The operator of a name, whatever its domain: names are unique in the table. ENT_OP_NONE if there is none.
 */
static inline uint32_t ent_op_find(const char *name) {
    for (uint32_t op = 1; op < ENT_OP_COUNT; op++) {
        const char *a = ent_op_info_get(op)->name, *b = name;
        if (!a) continue; /* the ids have gaps */
        while (*a && *a == *b) a++, b++;
        if (*a == *b) return op;
    }
    return ENT_OP_NONE;
}

typedef enum ent_attr_type {
    ENT_ATTR_NONE = 0,
    ENT_ATTR_INT = 1,
    ENT_ATTR_FLOAT = 2,
    ENT_ATTR_STRING = 3,
    ENT_ATTR_INTS = 4,
    ENT_ATTR_FLOATS = 5,
    ENT_ATTR_TENSOR = 6,
    ENT_ATTR_GRAPH = 7 /* i: graph id in the module */
} ent_attr_type;

/* A named attribute value. Pointers are borrowed from the owner of the node. */
typedef struct ent_attr {
    ent_str name;
    uint32_t type;  /* ent_attr_type */
    uint32_t count; /* of ints or floats */
    int64_t i;
    double f;
    ent_str s;
    const int64_t *ints;
    const double *floats;
    const ent_tensor *tensor;
} ent_attr;

/* Attributes of one node, unordered, names unique. */
typedef struct ent_attrs {
    const ent_attr *items;
    uint32_t count;
} ent_attrs;

/* NULL if the attribute is absent. name is NUL-terminated. */
static inline const ent_attr *ent_attrs_find(ent_attrs attrs, const char *name) {
    for (uint32_t i = 0; i < attrs.count; i++) {
        ent_str s = attrs.items[i].name;
        size_t k = 0;
        while (k < s.size && name[k] != 0 && name[k] == s.data[k]) k++;
        if (k == s.size && name[k] == 0) return &attrs.items[i];
    }
    return NULL;
}
static inline int64_t ent_attrs_int(ent_attrs attrs, const char *name, int64_t missing) {
    const ent_attr *attr = ent_attrs_find(attrs, name);
    return attr && attr->type == ENT_ATTR_INT ? attr->i : missing;
}
static inline double ent_attrs_float(ent_attrs attrs, const char *name, double missing) {
    const ent_attr *attr = ent_attrs_find(attrs, name);
    return attr && attr->type == ENT_ATTR_FLOAT ? attr->f : missing;
}
/* True when the string attribute (or `missing`, when absent) equals text. */
static inline bool ent_attrs_string_is(ent_attrs attrs, const char *name, const char *missing,
                                       const char *text) {
    const ent_attr *attr = ent_attrs_find(attrs, name);
    ent_str s = {missing, 0};
    while (missing && missing[s.size]) s.size++;
    if (attr && attr->type == ENT_ATTR_STRING) s = attr->s;
    size_t k = 0;
    while (k < s.size && text[k] != 0 && text[k] == s.data[k]) k++;
    return k == s.size && text[k] == 0;
}

#endif
