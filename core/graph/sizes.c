/* Sizes that stay open: their ranges, the numbers that prices count with, and tables that leave the module.
 */
#include "core/graph/internal.h"

#include <string.h>

/* ---- ranges ---- */

ent_status ent_module_set_range(ent_module *module, const char *symbol, int64_t min, int64_t max,
                                int64_t typical) {
    uint64_t id;
    if (!ent_map_find(module->state->symbol_names, symbol, &id))
        return ent_status_make(module->arena, ENT_ERROR_USAGE, "symbol.unknown", module->name,
                               "the model has no symbolic size '%s'", symbol);
    ent_symbol *s = &module->symbols.items[id];
    if (min < s->min || max > s->max || min > max || max == INT64_MAX)
        return ent_status_make(module->arena, ENT_ERROR_USAGE, "symbol.range", module->name,
                               "the range %lld..%lld of '%s' is empty, or leaves %lld..%lld", (long long)min,
                               (long long)max, s->name, (long long)s->min, (long long)s->max);
    if (typical != 0 && (typical < min || typical > max))
        return ent_status_make(module->arena, ENT_ERROR_USAGE, "symbol.range", module->name,
                               "the typical size %lld of '%s' is outside its range %lld..%lld",
                               (long long)typical, s->name, (long long)min, (long long)max);
    s->min = min;
    s->max = max;
    s->typical = typical ? typical : min + (max - min) / 2;
    if (s->typical == 0)
        s->typical = 1; /* the range is given, even if it is 0..1: work of one is the least price */
    return NULL;
}

/* ---- typical sizes ---- */

static bool typical_of(const ent_module *module, ent_dim dim, int64_t *out) {
    *out = dim;
    if (dim >= 0) return true;
    const ent_expr *e = &module->exprs.items[~dim];
    if (e->kind == ENT_EXPR_SYMBOL) {
        const ent_symbol *symbol = &module->symbols.items[e->a];
        *out = symbol->typical ? symbol->typical : symbol->min > 1 ? symbol->min : 1;
        return true;
    }
    if (e->kind == ENT_EXPR_CONST) {
        *out = e->a;
        return true;
    }
    int64_t a, b;
    if (!typical_of(module, e->a, &a) || !typical_of(module, e->b, &b)) return false;
    ent_expr known[3] = {{ENT_EXPR_CONST, 0, a, 0}, {ENT_EXPR_CONST, 0, b, 0}, {e->kind, 0, ~0, ~1}};
    int64_t values[3];
    if (!ent_expr_evaluate(known, 3, NULL, 0, values)) return false;
    *out = values[2];
    return true;
}

/* The weight limit of expressions bounds the recursion and the work. */
int64_t ent_module_typical(const ent_module *module, ent_dim dim) {
    int64_t size;
    if (!typical_of(module, dim, &size)) return INT64_MAX;
    return size < 0 ? 0 : size;
}

void ent_module_typical_dims(const ent_module *module, uint32_t value, int64_t *out) {
    const ent_value *v = ent_module_value(module, value);
    for (uint32_t i = 0; v->rank != ENT_RANK_UNKNOWN && i < v->rank; i++)
        out[i] = ent_module_typical(module, v->dims[i]);
}

/* ---- tables ---- */

void ent_size_table_init(ent_size_table *table, const ent_module *module, ent_arena *arena) {
    memset(table, 0, sizeof *table);
    table->module = module;
    table->arena = arena;
    table->known = ent_map_create(arena);
    const ent_open_symbol *open = NULL;
    uint32_t count = ent_module_open_symbols(module, arena, &open);
    for (uint32_t i = 0; i < count; i++) ent_array_push(arena, &table->symbols, open[i].symbol);
}

static int64_t symbol_of(ent_size_table *table, uint32_t symbol) {
    for (uint32_t i = 0; i < table->symbols.count; i++)
        if (table->symbols.items[i] == symbol) return i;
    ent_array_push(table->arena, &table->symbols, symbol);
    return table->symbols.count - 1;
}

ent_dim ent_size_table_dim(ent_size_table *table, ent_dim dim) {
    uint64_t at;
    if (dim >= 0) return dim;
    if (ent_map_find_u64(table->known, (uint64_t)~dim, &at)) return ~(ent_dim)at;
    ent_expr e = table->module->exprs.items[~dim];
    if (e.kind == ENT_EXPR_SYMBOL) {
        e.a = symbol_of(table, (uint32_t)e.a);
    } else if (e.kind != ENT_EXPR_CONST) {
        e.a = ent_size_table_dim(table, e.a);
        e.b = ent_size_table_dim(table, e.b);
    }
    ent_array_push(table->arena, &table->exprs, e);
    ent_map_set_u64(table->known, (uint64_t)~dim, table->exprs.count - 1);
    return ~(ent_dim)(table->exprs.count - 1);
}

ent_dim ent_size_table_combine(ent_size_table *table, ent_expr_kind kind, ent_dim a, ent_dim b) {
    ent_expr e = {kind, 0, a, b}, *items = table->exprs.items;
    int64_t number;
    bool neutral = b == 1 && (kind == ENT_EXPR_MUL || kind == ENT_EXPR_CEILDIV);
    if (neutral) return a;
    if (kind == ENT_EXPR_MUL && a == 1) return b;
    if (a >= 0 && b >= 0 && ent_expr_evaluate(&e, 1, NULL, 0, &number) && number >= 0) return number;
    for (uint32_t i = table->exprs.count; i-- > 0;)
        if (items[i].kind == e.kind && items[i].a == a && items[i].b == b) return ~(ent_dim)i;
    ent_array_push(table->arena, &table->exprs, e);
    return ~(ent_dim)(table->exprs.count - 1);
}

void ent_size_table_add_value(ent_size_table *table, uint32_t value) {
    const ent_value *v = ent_module_value(table->module, value);
    for (uint32_t i = 0; v->rank != ENT_RANK_UNKNOWN && i < v->rank; i++)
        ent_size_table_dim(table, v->dims[i]);
}
