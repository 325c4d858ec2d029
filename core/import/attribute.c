/* Attributes of a node against its form: known, right type, required ones there; references to a function's
 * call. */
#include "core/import/internal.h"

#include <string.h>

/* size: table */
static const ent_import_form forms[] = {
#define ENT_FORM(name, since, min_in, max_in, min_out, max_out, attributes)                                  \
    {#name, since, min_in, max_in, min_out, max_out, attributes},
#include "core/import/forms.def"
};

/* Attributes of definitions before opset 7 that some exporters still write. They ask for nothing: `value` is
 * the only one that is let through where it is not ANY. */
#define ANY INT64_MIN
typedef struct leftover {
    const char *op_type; /* NULL: any */
    const char *name;
    int64_t value;
} leftover;
static const leftover leftovers[] = {
    {NULL, "consumed_inputs", ANY},
    {"BatchNormalization", "spatial", 1},
    {"BatchNormalization", "is_test", ANY},
    {"Dropout", "is_test", ANY},
    {"Dropout", "ratio", ANY},
};

const char *ent_import_op_domain(const ent_op_info *info, size_t *out_size) {
    const char *end = strchr(info->versions, ':');
    *out_size = end ? (size_t)(end - info->versions) : 0;
    return info->versions;
}

/* The version in which an operator of ent_ops.def first appeared. */
static int64_t first_version(const char *versions) {
    int64_t value = 0;
    const char *domain_end = strchr(versions, ':');
    if (domain_end) versions = domain_end + 1;
    for (; *versions >= '0' && *versions <= '9'; versions++) value = value * 10 + (*versions - '0');
    return value;
}

void ent_import_form_of(uint32_t op, ent_import_form *out) {
    const ent_op_info *info = ent_op_info_get(op);
    *out = (ent_import_form){info->name,        (int32_t)first_version(info->versions),
                             info->min_inputs,  info->max_inputs,
                             info->min_outputs, info->max_outputs,
                             info->attributes};
}

bool ent_import_form_find(const char *op_type, int64_t opset, ent_import_form *out) {
    bool has_form = false, found = false;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(forms[i].name, op_type) != 0) continue;
        has_form = true;
        if (forms[i].since > opset) break;
        *out = forms[i];
        found = true;
    }
    if (has_form) return found;
    uint32_t op = ent_op_find(op_type);
    if (op == ENT_OP_NONE) return false;
    ent_import_form_of(op, out);
    return out->since <= opset;
}

/* A list of strings becomes one string, joined by ','. */
#define FORM_STRINGS ((ent_attr_type)(ENT_ATTR_GRAPH + 1))

/* Type of an attribute in a form's list; NONE if it is not there. */
static ent_attr_type type_in_form(const char *attributes, const char *name) {
    static const struct {
        const char *word;
        ent_attr_type type;
    } words[] = {{"int", ENT_ATTR_INT},     {"float", ENT_ATTR_FLOAT},   {"string", ENT_ATTR_STRING},
                 {"ints", ENT_ATTR_INTS},   {"floats", ENT_ATTR_FLOATS}, {"tensor", ENT_ATTR_TENSOR},
                 {"graph", ENT_ATTR_GRAPH}, {"strings", FORM_STRINGS}};
    size_t size = strlen(name);
    for (const char *at = attributes; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t name_size = strcspn(at, ":");
        if (name_size != size || memcmp(at, name, size) != 0) continue;
        const char *word = at + size + 1;
        size_t word_size = strcspn(word, "!= ");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i].word) == word_size && memcmp(words[i].word, word, word_size) == 0)
                return words[i].type;
    }
    return ENT_ATTR_NONE;
}

const Onnx__AttributeProto *ent_import_attribute_resolve(const ent_import_scope *scope,
                                                         const Onnx__AttributeProto *attribute) {
    while (attribute && attribute->ref_attr_name && attribute->ref_attr_name[0]) {
        const ent_import_scope *at = scope;
        while (at && !at->call) at = at->parent;
        if (!at) return NULL;
        const Onnx__AttributeProto *given = NULL;
        for (size_t i = 0; i < at->call->n_attribute; i++)
            if (at->call->attribute[i]->name &&
                strcmp(at->call->attribute[i]->name, attribute->ref_attr_name) == 0)
                given = at->call->attribute[i];
        attribute = given;
        scope = at->call_scope;
    }
    return attribute;
}

/* Files before IR version 4 may leave the type out: then it is what the attribute holds. */
static int32_t type_of(const Onnx__AttributeProto *attribute) {
    if (attribute->has_type && attribute->type != ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return (int32_t)attribute->type;
    if (attribute->has_f) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    if (attribute->has_i) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    if (attribute->has_s) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
    if (attribute->t) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    if (attribute->g) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    if (attribute->n_floats) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    if (attribute->n_ints) return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED;
}

static bool type_matches(const Onnx__AttributeProto *attribute, ent_attr_type type) {
    static const int32_t onnx_types[] = {[ENT_ATTR_INT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
                                         [ENT_ATTR_FLOAT] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
                                         [ENT_ATTR_STRING] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING,
                                         [ENT_ATTR_INTS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
                                         [ENT_ATTR_FLOATS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
                                         [ENT_ATTR_TENSOR] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR,
                                         [ENT_ATTR_GRAPH] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH,
                                         [FORM_STRINGS] = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS};
    int32_t have = type_of(attribute);
    if (have == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__UNDEFINED)
        return !attribute->has_type &&
               (type == ENT_ATTR_INTS || type == ENT_ATTR_FLOATS || type == FORM_STRINGS); /* an empty list */
    if (have != onnx_types[type]) return false;
    if (type == ENT_ATTR_TENSOR) return attribute->t != NULL;
    return type != ENT_ATTR_GRAPH || attribute->g != NULL;
}

/* Attributes that name an element type hold ONNX numbers in a model and ent_dtype numbers in the graph IR. */
static ent_status settle_dtype(ent_import_draft *draft, const char *name, ent_attr *attr) {
    static const char *const names[] = {"to",        "dtype",      "output_dtype",     "output_datatype",
                                        "precision", "stash_type", "softmax_precision"};
    bool names_type = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        names_type = names_type || strcmp(names[i], name) == 0;
    if (!names_type || (attr->i == 0 && strcmp(name, "to") != 0))
        return NULL; /* 0: derived from the inputs */
    bool fits = attr->i > 0 && attr->i <= INT32_MAX;
    ent_dtype dtype = fits ? ent_import_dtype((int32_t)attr->i) : ENT_DTYPE_NONE;
    if (dtype == ENT_DTYPE_NONE)
        return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "attribute.value", draft->place,
                               "attribute '%s' is %lld, which is no known data type", name,
                               (long long)attr->i);
    attr->i = (int64_t)dtype;
    return NULL;
}

static ent_status join_strings(ent_import_draft *draft, const Onnx__AttributeProto *from, const char *name,
                               ent_attr *out) {
    ent_arena *arena = draft->importer->arena;
    const char *text = "";
    for (size_t i = 0; i < from->n_strings; i++) {
        ProtobufCBinaryData item = from->strings[i];
        if (item.len && (memchr(item.data, 0, item.len) || memchr(item.data, ',', item.len)))
            return ent_status_make(arena, ENT_ERROR_MODEL, "attribute.value", draft->place,
                                   "a string of attribute '%s' holds a NUL byte or a comma", name);
        text = ent_arena_format(arena, "%s%s%.*s", text, i ? "," : "", (int)item.len,
                                item.len ? (const char *)item.data : "");
    }
    *out = ent_attr_string(draft->importer->module, name, text);
    return NULL;
}

/* The graph itself is read when the node is added: until then the attribute's tensor field is unused and i is
 * unset. */
static ent_status convert(ent_import_draft *draft, const Onnx__AttributeProto *from, const char *name,
                          ent_attr_type type, ent_attr *out) {
    ent_module *module = draft->importer->module;
    ent_arena *arena = draft->importer->arena;
    if (type == FORM_STRINGS) return join_strings(draft, from, name, out);
    switch (type) {
    case ENT_ATTR_INT:
        *out = ent_attr_int(name, from->i);
        return settle_dtype(draft, name, out);
    case ENT_ATTR_FLOAT:
        *out = ent_attr_float(name, (double)from->f);
        return NULL;
    case ENT_ATTR_INTS:
        *out = ent_attr_ints(module, name, from->ints, (uint32_t)from->n_ints);
        return NULL;
    case ENT_ATTR_STRING: {
        const char *text = ent_arena_strndup(arena, from->s.data ? (const char *)from->s.data : "",
                                             from->s.data ? from->s.len : 0);
        if (from->s.len && memchr(from->s.data, 0, from->s.len))
            return ent_status_make(arena, ENT_ERROR_MODEL, "attribute.embedded-nul", draft->place,
                                   "attribute '%s' contains a NUL byte", name);
        *out = ent_attr_string(module, name, text);
        return NULL;
    }
    case ENT_ATTR_FLOATS: {
        double *floats = ent_arena_array(arena, from->n_floats + 1, sizeof *floats);
        if (!floats) return ent_status_out_of_memory();
        for (size_t i = 0; i < from->n_floats; i++) floats[i] = (double)from->floats[i];
        *out = (ent_attr){.name = {name, strlen(name)},
                          .type = ENT_ATTR_FLOATS,
                          .count = (uint32_t)from->n_floats,
                          .floats = floats};
        return NULL;
    }
    case ENT_ATTR_TENSOR: {
        ent_tensor *tensor = ent_arena_alloc(arena, sizeof *tensor);
        bool borrow = false;
        const char *place = ent_arena_format(arena, "%s, attribute '%s'", draft->place, name);
        ENT_TRY(ent_import_tensor(draft->importer, from->t, place, tensor, &borrow));
        *out = (ent_attr){.name = {name, strlen(name)}, .type = ENT_ATTR_TENSOR, .tensor = tensor};
        return NULL;
    }
    default:
        *out = ent_attr_graph(name, ENT_ID_NONE);
        return NULL;
    }
}

static bool is_leftover(const char *op_type, const char *name, const Onnx__AttributeProto *attribute) {
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++) {
        const leftover *entry = &leftovers[i];
        if (strcmp(entry->name, name) != 0 || (entry->op_type && strcmp(entry->op_type, op_type) != 0))
            continue;
        if (entry->value == ANY || (attribute->has_i && attribute->i == entry->value)) return true;
    }
    return false;
}

static ent_status read_one(ent_import_draft *draft, const ent_import_form *form,
                           const Onnx__AttributeProto *attribute) {
    ent_arena *arena = draft->importer->arena;
    const char *name = attribute->name ? attribute->name : "";
    const Onnx__AttributeProto *from = ent_import_attribute_resolve(draft->scope, attribute);
    if (!from) return NULL; /* an optional attribute of the function that its call left out */
    ent_attr_type type = type_in_form(form->attributes, name);
    if (type == ENT_ATTR_NONE && is_leftover(form->name, name, attribute)) return NULL;
    if (type == ENT_ATTR_NONE && (strcmp(name, "broadcast") == 0 || strcmp(name, "axis") == 0) &&
        form->max_in == 2)
        return ent_status_make(
            arena, ENT_ERROR_MODEL, "attribute.broadcast", draft->place,
            "attribute '%s' belongs to definitions before opset 7; convert the model to a newer opset", name);
    if (type == ENT_ATTR_NONE)
        return ent_status_make(arena, ENT_ERROR_MODEL, "attribute.unknown", draft->place,
                               "attribute '%s' is not one of %s since opset %d", name, form->name,
                               form->since);
    if (!type_matches(from, type))
        return ent_status_make(arena, ENT_ERROR_MODEL, "attribute.type", draft->place,
                               "attribute '%s' has the wrong type", name);
    if (ent_import_attr(draft, name))
        return ent_status_make(arena, ENT_ERROR_MODEL, "attribute.repeated", draft->place,
                               "attribute '%s' is given twice", name);
    if (draft->attr_count == ENT_IMPORT_MAX_ATTRS)
        return ent_status_make(arena, ENT_ERROR_LIMIT, "limit.attributes", draft->place,
                               "a node has more than %d attributes", ENT_IMPORT_MAX_ATTRS);
    name = ent_arena_strdup(arena, name);
    return convert(draft, from, name, type, &draft->attrs[draft->attr_count++]);
}

ent_status ent_import_attributes(ent_import_draft *draft, const ent_import_form *form) {
    for (size_t i = 0; i < draft->proto->n_attribute; i++)
        ENT_TRY(read_one(draft, form, draft->proto->attribute[i]));
    for (const char *at = form->attributes; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t size = strcspn(at, " ");
        if (at[size - 1] != '!') continue;
        const char *name = ent_arena_strndup(draft->importer->arena, at, strcspn(at, ":"));
        if (!ent_import_attr(draft, name))
            return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "attribute.missing", draft->place,
                                   "the required attribute '%s' is missing", name);
    }
    return NULL;
}

ent_attr *ent_import_attr(ent_import_draft *draft, const char *name) {
    for (uint32_t i = 0; i < draft->attr_count; i++)
        if (draft->attrs[i].name.size == strlen(name) &&
            memcmp(draft->attrs[i].name.data, name, strlen(name)) == 0)
            return &draft->attrs[i];
    return NULL;
}

bool ent_import_attr_take(ent_import_draft *draft, const char *name, ent_attr *out) {
    ent_attr *attr = ent_import_attr(draft, name);
    if (!attr) return false;
    if (out) *out = *attr;
    *attr = draft->attrs[--draft->attr_count];
    return true;
}

void ent_import_attr_put(ent_import_draft *draft, ent_attr attr) {
    draft->attrs[draft->attr_count++] = attr;
}
