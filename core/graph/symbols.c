/* Symbols: fresh ones, binding to numbers, those still open, and how a dim reads in text. */
#include "core/graph/internal.h"

#include <string.h>

uint32_t ent_module_fresh_symbol(ent_module *module, const char *stem) {
    return ent_module_add_symbol(module, stem, 0, INT64_MAX);
}

/* ---- text ---- */

static bool is_plain_word(const char *name) {
    if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || *name == '_')) return false;
    while (*++name)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
              (*name >= '0' && *name <= '9') || *name == '_' || *name == '.'))
            return false;
    return true;
}

void ent_text_add_name(ent_text *text, const char *name) {
    if (is_plain_word(name))
        ent_text_add(text, "%s", name);
    else
        ent_text_add_quoted(text, name, strlen(name));
}

/* Bytes outside printable ASCII as \xNN, so that any name reads back to the byte. */
void ent_text_add_quoted(ent_text *text, const char *data, size_t size) {
    ent_text_add_bytes(text, "\"", 1);
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (c == '"' || c == '\\')
            ent_text_add(text, "\\%c", c);
        else if (c < 32 || c > 126)
            ent_text_add(text, "\\x%02x", c);
        else
            ent_text_add_bytes(text, &data[i], 1);
    }
    ent_text_add_bytes(text, "\"", 1);
}

static const char *function_name(uint32_t kind) {
    switch (kind) {
    case ENT_EXPR_FLOORDIV:
        return "floordiv";
    case ENT_EXPR_CEILDIV:
        return "ceildiv";
    case ENT_EXPR_MOD:
        return "mod";
    case ENT_EXPR_MIN:
        return "min";
    default:
        return "max";
    }
}

/* level 0: a sum may stand here; 1: a product; 2: only an atom. */
static void add_dim(const ent_module *module, ent_text *text, ent_dim dim, int level) {
    int64_t number;
    if (dim == ENT_ELEMENT_UNKNOWN) {
        ent_text_add(text, "?");
        return;
    }
    if (ent_module_dim_number(module, dim, &number)) {
        ent_text_add(text, "%lld", (long long)number);
        return;
    }
    const ent_expr *e = &module->exprs.items[~dim];
    if (e->kind == ENT_EXPR_SYMBOL) {
        ent_text_add_name(text, module->symbols.items[e->a].name);
        return;
    }
    bool sum = e->kind == ENT_EXPR_ADD || e->kind == ENT_EXPR_SUB, product = e->kind == ENT_EXPR_MUL;
    if (!sum && !product) {
        ent_text_add(text, "%s(", function_name(e->kind));
        add_dim(module, text, e->a, 0);
        ent_text_add(text, ", ");
        add_dim(module, text, e->b, 0);
        ent_text_add(text, ")");
        return;
    }
    bool braces = level > (sum ? 0 : 1);
    if (braces) ent_text_add(text, "(");
    add_dim(module, text, e->a, sum ? 0 : 1);
    ent_text_add(text, "%s", sum ? (e->kind == ENT_EXPR_ADD ? " + " : " - ") : "*");
    add_dim(module, text, e->b, sum ? 1 : 2);
    if (braces) ent_text_add(text, ")");
}

void ent_module_print_dim(const ent_module *module, ent_text *text, ent_dim dim) {
    add_dim(module, text, dim, 0);
}

const char *ent_module_dims_text(const ent_module *module, uint32_t rank, const ent_dim *dims) {
    ent_text text;
    ent_text_init(&text, module->arena);
    if (rank == ENT_RANK_UNKNOWN) return "[any rank]";
    ent_text_add(&text, "[");
    for (uint32_t i = 0; i < rank; i++) {
        if (i) ent_text_add(&text, ",");
        ent_module_print_dim(module, &text, dims[i]);
    }
    ent_text_add(&text, "]");
    return text.data;
}

/* ---- binding ---- */

static ent_dim substituted(const ent_dim *dims, ent_dim dim) {
    return dim >= 0 || dim == ENT_ELEMENT_UNKNOWN ? dim : dims[~dim];
}

void ent_module_substitute(ent_module *module, const ent_dim *map) {
    uint32_t count = module->exprs.count;
    ent_dim *dims = ent_arena_alloc(module->arena, count * sizeof *dims);
    for (uint32_t i = 0; i < count; i++) {
        ent_expr e = module->exprs.items[i];
        if (e.kind == ENT_EXPR_SYMBOL)
            dims[i] = map[e.a];
        else if (e.kind == ENT_EXPR_CONST)
            dims[i] = ~(ent_dim)i;
        else
            dims[i] =
                ent_module_dim(module, (ent_expr_kind)e.kind, substituted(dims, e.a), substituted(dims, e.b));
    }
    for (uint32_t v = 0; v < module->values.count; v++) {
        ent_value *value = &module->values.items[v];
        for (uint32_t i = 0; value->rank != ENT_RANK_UNKNOWN && i < value->rank; i++)
            value->dims[i] = substituted(dims, value->dims[i]);
        ent_elements *elements = &module->state->elements.items[v];
        ent_dim *items = (ent_dim *)(uintptr_t)elements->items;
        for (uint32_t i = 0; i < elements->count; i++) items[i] = substituted(dims, items[i]);
    }
}

/* A symbol bound to a number keeps its entry but occurs nowhere; entries of the table that nobody uses may no
 * longer have a value, which is no error of the model. */
static ent_status bind(ent_module *module, const ent_dim *map) {
    const char *before = module->state->dim_problem;
    ent_module_substitute(module, map);
    module->state->dim_problem = before;
    for (uint32_t v = 0; v < module->values.count; v++) {
        const ent_value *value = &module->values.items[v];
        int64_t number;
        for (uint32_t i = 0; value->rank != ENT_RANK_UNKNOWN && i < value->rank; i++)
            if (ent_module_dim_number(module, value->dims[i], &number) && number < 0)
                return ent_status_make(module->arena, ENT_ERROR_USAGE, "shape.negative", module->name,
                                       "with these sizes value '%s' has shape %s; choose larger ones",
                                       value->name, ent_module_dims_text(module, value->rank, value->dims));
    }
    return NULL;
}

static ent_dim *identity_map(ent_module *module) {
    ent_dim *map = ent_arena_alloc(module->arena, module->symbols.count * sizeof *map);
    for (uint32_t i = 0; i < module->symbols.count; i++) map[i] = ent_module_dim_symbol(module, i);
    return map;
}

static ent_status check_range(const ent_module *module, const char *place, uint32_t symbol, int64_t value) {
    const ent_symbol *s = &module->symbols.items[symbol];
    if (value >= s->min && value <= s->max) return NULL;
    return ent_status_make(module->arena, ENT_ERROR_USAGE, "symbol.range", place,
                           "size %lld of '%s' is outside %lld..%lld", (long long)value, s->name,
                           (long long)s->min, (long long)s->max);
}

ent_status ent_module_bind(ent_module *module, const ent_binding *bindings, uint32_t count) {
    ent_dim *map = identity_map(module);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t symbol;
        if (!ent_map_find(module->state->symbol_names, bindings[i].symbol, &symbol))
            return ent_status_make(module->arena, ENT_ERROR_USAGE, "symbol.unknown", module->name,
                                   "the model has no symbolic size '%s'", bindings[i].symbol);
        ENT_TRY(check_range(module, module->name, (uint32_t)symbol, bindings[i].value));
        if (map[symbol] >= 0 && map[symbol] != bindings[i].value)
            return ent_status_make(module->arena, ENT_ERROR_USAGE, "symbol.twice", module->name,
                                   "'%s' is bound to both %lld and %lld", bindings[i].symbol,
                                   (long long)map[symbol], (long long)bindings[i].value);
        map[symbol] = bindings[i].value;
    }
    return bind(module, map);
}

ent_status ent_module_set_input_shape(ent_module *module, uint32_t value, const int64_t *dims, uint32_t rank,
                                      const char *place) {
    ent_value *v = ent_module_value(module, value);
    if (v->rank == ENT_RANK_UNKNOWN) {
        if (rank > ENT_MAX_RANK)
            return ent_status_make(module->arena, ENT_ERROR_USAGE, "shape.rank", place, "rank %u is over %u",
                                   rank, ENT_MAX_RANK);
        v->rank = rank;
        memcpy(v->dims, dims, rank * sizeof *dims);
        return NULL;
    }
    if (v->rank != rank)
        return ent_status_make(module->arena, ENT_ERROR_USAGE, "shape.rank", place,
                               "input '%s' has shape %s, %u sizes were given", v->name,
                               ent_module_dims_text(module, v->rank, v->dims), rank);
    ent_dim *map = identity_map(module);
    for (uint32_t i = 0; i < rank; i++) {
        ent_dim dim = v->dims[i];
        const ent_expr *e = dim < 0 ? &module->exprs.items[~dim] : NULL;
        if (dim == dims[i]) continue;
        if (e && e->kind == ENT_EXPR_SYMBOL) {
            ENT_TRY(check_range(module, place, (uint32_t)e->a, dims[i]));
            if (map[e->a] < 0) map[e->a] = dims[i];
            if (map[e->a] == dims[i]) continue;
        }
        return ent_status_make(module->arena, ENT_ERROR_USAGE, "shape.conflict", place,
                               "axis %u of input '%s' cannot be %lld: its shape is %s", i, v->name,
                               (long long)dims[i], ent_module_dims_text(module, v->rank, v->dims));
    }
    return bind(module, map);
}

/* ---- open symbols ---- */

typedef struct open_search {
    const ent_module *module;
    ent_arena *arena;
    uint8_t *seen;
    ENT_ARRAY(ent_open_symbol) found;
} open_search;

static void search_dim(open_search *search, ent_dim dim, uint32_t value, uint32_t axis) {
    if (dim >= 0 || dim == ENT_ELEMENT_UNKNOWN) return;
    const ent_expr *e = &search->module->exprs.items[~dim];
    if (e->kind == ENT_EXPR_CONST) return;
    if (e->kind != ENT_EXPR_SYMBOL) {
        search_dim(search, e->a, value, axis);
        search_dim(search, e->b, value, axis);
        return;
    }
    if (search->seen[e->a]) return;
    search->seen[e->a] = 1;
    ent_open_symbol found = {(uint32_t)e->a, value, axis};
    ent_array_push(search->arena, &search->found, found);
}

uint32_t ent_module_open_symbols(const ent_module *module, ent_arena *arena, const ent_open_symbol **out) {
    open_search search = {module, arena, ent_arena_alloc(arena, module->symbols.count), {0}};
    const ent_graph *graph = ent_module_graph(module, 0);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        uint32_t value = graph->inputs.items[i];
        const ent_value *v = ent_module_value(module, value);
        for (uint32_t axis = 0; v->rank != ENT_RANK_UNKNOWN && axis < v->rank; axis++)
            search_dim(&search, v->dims[axis], value, axis);
    }
    *out = search.found.items;
    return search.found.count;
}
