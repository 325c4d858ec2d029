/* Text form, read: types, sizes, constant data and attributes. */
#include "core/graph/parse.h"

#include <string.h>

#define MAX_TEXT_CONSTANT_BYTES ((uint64_t)1 << 30)

ent_status ent_parse_name(ent_parser *parser, const char **out) {
    ent_str text;
    *out = ent_scan_word(&parser->scan);
    if (*out) return NULL;
    ENT_TRY(ent_scan_string(&parser->scan, &text));
    *out = text.data;
    return NULL;
}

/* ---- sizes ---- */

static ent_status parse_sum(ent_parser *parser, ent_dim *out);

static ent_status parse_call(ent_parser *parser, const char *name, ent_dim *out) {
    static const struct {
        const char *name;
        ent_expr_kind kind;
    } functions[] = {{"floordiv", ENT_EXPR_FLOORDIV},
                     {"ceildiv", ENT_EXPR_CEILDIV},
                     {"mod", ENT_EXPR_MOD},
                     {"min", ENT_EXPR_MIN},
                     {"max", ENT_EXPR_MAX}};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        ent_dim a, b;
        if (strcmp(functions[i].name, name) != 0) continue;
        ENT_TRY(parse_sum(parser, &a));
        ENT_TRY(ent_scan_expect(&parser->scan, ","));
        ENT_TRY(parse_sum(parser, &b));
        *out = ent_module_dim(parser->module, functions[i].kind, a, b);
        return ent_scan_expect(&parser->scan, ")");
    }
    return ent_scan_error(&parser->scan,
                          "there is no size function '%s'; use floordiv, ceildiv, mod, min or max", name);
}

static ent_status parse_atom(ent_parser *parser, ent_dim *out) {
    ent_scan *scan = &parser->scan;
    const char *name;
    uint64_t symbol;
    if (ent_scan_accept(scan, "(")) {
        ENT_TRY(parse_sum(parser, out));
        return ent_scan_expect(scan, ")");
    }
    ent_scan_skip(scan);
    if (scan->at < scan->end && (*scan->at == '-' || (*scan->at >= '0' && *scan->at <= '9'))) {
        int64_t number;
        ENT_TRY(ent_scan_int(scan, &number));
        *out = ent_module_dim_constant(parser->module, number);
        return NULL;
    }
    ENT_TRY(ent_parse_name(parser, &name));
    if (ent_scan_accept(scan, "(")) return parse_call(parser, name, out);
    if (!ent_map_find(parser->module->state->symbol_names, name, &symbol))
        return ent_scan_error(scan, "symbol '%s' is not declared", name);
    *out = ent_module_dim_symbol(parser->module, (uint32_t)symbol);
    return NULL;
}

static ent_status parse_product(ent_parser *parser, ent_dim *out) {
    ENT_TRY(parse_atom(parser, out));
    while (ent_scan_accept(&parser->scan, "*")) {
        ent_dim factor;
        ENT_TRY(parse_atom(parser, &factor));
        *out = ent_module_dim(parser->module, ENT_EXPR_MUL, *out, factor);
    }
    return NULL;
}

static ent_status parse_sum(ent_parser *parser, ent_dim *out) {
    ent_scan *scan = &parser->scan;
    if (++parser->depth > ENT_MAX_NESTING)
        return ent_scan_error(scan, "a size is nested deeper than %u", ENT_MAX_NESTING);
    ENT_TRY(parse_product(parser, out));
    for (;;) {
        ent_dim term;
        bool plus = ent_scan_accept(scan, "+");
        if (!plus && !ent_scan_accept(scan, "-")) break;
        ENT_TRY(parse_product(parser, &term));
        *out = ent_module_dim(parser->module, plus ? ENT_EXPR_ADD : ENT_EXPR_SUB, *out, term);
    }
    parser->depth--;
    if (parser->module->state->dim_problem)
        return ent_scan_error(scan, "a size is too large or too complex (%s)",
                              parser->module->state->dim_problem);
    return NULL;
}

ent_status ent_parse_type(ent_parser *parser, uint32_t *out_dtype, uint32_t *out_rank, ent_dim *out_dims) {
    ent_scan *scan = &parser->scan;
    const char *word = ent_scan_word(scan);
    uint32_t dtype = 0;
    while (word && dtype < ENT_DTYPE_COUNT && strcmp(word, ent_dtype_name((ent_dtype)dtype)) != 0) dtype++;
    if (!word || dtype == ENT_DTYPE_COUNT)
        return ent_scan_error(scan, "expected an element type such as f32");
    *out_dtype = dtype;
    *out_rank = ENT_RANK_UNKNOWN;
    if (!ent_scan_accept(scan, "[")) return NULL;
    *out_rank = 0;
    if (ent_scan_accept(scan, "]")) return NULL;
    do {
        if (*out_rank == ENT_MAX_RANK) return ent_scan_error(scan, "more than %d axes", ENT_MAX_RANK);
        ENT_TRY(parse_sum(parser, &out_dims[*out_rank]));
        int64_t number;
        if (ent_module_dim_number(parser->module, out_dims[*out_rank], &number) && number < 0)
            return ent_scan_error(scan, "a size is negative");
        ++*out_rank;
    } while (ent_scan_accept(scan, ","));
    return ent_scan_expect(scan, "]");
}

/* ---- constant data ---- */

static bool next_is_float(ent_scan *scan) {
    ent_scan_skip(scan);
    for (const char *at = scan->at; at < scan->end && !strchr(",]}) \t\r\n", *at); at++)
        if (strchr(".eEin", *at)) return true;
    return false;
}

static ent_status parse_element(ent_parser *parser, ent_tensor *tensor, uint64_t index) {
    ent_scan *scan = &parser->scan;
    int64_t whole;
    double number;
    if (ent_dtype_is_float(tensor->dtype) || next_is_float(scan)) {
        ENT_TRY(ent_scan_number(scan, &number));
        ent_element_set_f64(tensor->data, tensor->dtype, index, number);
        return NULL;
    }
    /* Only u64 has numbers past int64; their digits are read as a double's are not, by hand. */
    if (tensor->dtype == ENT_DTYPE_U64) {
        uint64_t value = 0;
        const char *start = (ent_scan_skip(scan), scan->at);
        for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++)
            if (__builtin_mul_overflow(value, 10u, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*scan->at - '0'), &value))
                return ent_scan_error(scan, "the number does not fit u64");
        if (scan->at == start) return ent_scan_error(scan, "expected a number");
        whole = (int64_t)value;
    } else {
        ENT_TRY(ent_scan_int(scan, &whole));
    }
    ent_element_set_i64(tensor->data, tensor->dtype, index, whole);
    if (ent_element_get_i64(tensor->data, tensor->dtype, index) != whole)
        return ent_scan_error(scan, "%lld does not fit %s", (long long)whole,
                              ent_dtype_name((ent_dtype)tensor->dtype));
    return NULL;
}

static ent_status parse_elements(ent_parser *parser, ent_tensor *tensor, uint64_t count) {
    ent_scan *scan = &parser->scan;
    for (uint64_t i = 0; i < count; i++) {
        if (i) ENT_TRY(ent_scan_expect(scan, ","));
        ENT_TRY(parse_element(parser, tensor, i));
    }
    return ent_scan_expect(scan, "}");
}

static ent_status parse_hex(ent_parser *parser, ent_tensor *tensor) {
    ent_str text;
    ENT_TRY(ent_scan_string(&parser->scan, &text));
    if (text.size != tensor->size_bytes * 2)
        return ent_scan_error(&parser->scan, "%llu bytes are needed", (unsigned long long)tensor->size_bytes);
    for (size_t i = 0; i < text.size; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = text.data[i] ? strchr(digits, text.data[i]) : NULL;
        if (!digit) return ent_scan_error(&parser->scan, "'%c' is no lower-case hex digit", text.data[i]);
        uint8_t *byte = (uint8_t *)tensor->data + i / 2;
        *byte = (uint8_t)(*byte << 4 | (digit - digits));
    }
    return NULL;
}

static uint64_t splitmix64(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static ent_status parse_random(ent_parser *parser, ent_tensor *tensor, uint64_t count,
                               const char **out_recipe) {
    ent_text recipe;
    int64_t seed;
    double deviation;
    ENT_TRY(ent_scan_int(&parser->scan, &seed));
    ENT_TRY(ent_scan_number(&parser->scan, &deviation));
    uint64_t state = (uint64_t)seed;
    for (uint64_t i = 0; i < count; i++) {
        double unit = (double)(splitmix64(&state) >> 11) * 0x1p-53;
        ent_element_set_f64(tensor->data, tensor->dtype, i,
                            deviation * 1.7320508075688772 * (2.0 * unit - 1.0));
    }
    ent_text_init(&recipe, parser->module->arena);
    ent_text_add(&recipe, "random %lld ", (long long)seed);
    ent_text_add_number(&recipe, deviation, false);
    *out_recipe = recipe.data;
    return NULL;
}

ent_status ent_parse_tensor(ent_parser *parser, ent_tensor *out, const char **out_recipe) {
    ent_scan *scan = &parser->scan;
    *out_recipe = NULL;
    if (out->rank == ENT_RANK_UNKNOWN) return ent_scan_error(scan, "constant data needs a shape");
    for (uint32_t i = 0; i < out->rank; i++)
        if (!ent_dim_is_const(out->dims[i]))
            return ent_scan_error(scan, "constant data needs a shape of numbers");
    if (ent_scan_accept(scan, "hash"))
        return ent_scan_error(
            scan, "a constant that was printed as a hash cannot be read back; its data is not in the text");
    if (!ent_tensor_size_bytes(out->dtype, out->rank, out->dims, &out->size_bytes) ||
        out->size_bytes > MAX_TEXT_CONSTANT_BYTES)
        return ent_scan_error(scan, "constant data of this type and shape is too large for the text form");
    out->layout = ent_layout_plain(out->rank);
    out->data = ent_arena_array(parser->module->arena, out->size_bytes, 1);
    if (!out->data) return ent_status_out_of_memory();
    if (ent_scan_accept(scan, "bytes")) return parse_hex(parser, out);
    if (!ent_element_is_numeric(out->dtype))
        return ent_scan_error(scan, "elements of this type are written as bytes \"hex\"");
    uint64_t count = out->size_bytes / (ent_dtype_bits(out->dtype) / 8);
    if (ent_scan_accept(scan, "{")) return parse_elements(parser, out, count);
    if (ent_scan_accept(scan, "random")) return parse_random(parser, out, count, out_recipe);
    ENT_TRY(ent_scan_expect(scan, "fill"));
    ent_tensor one = *out;
    uint64_t element[2] = {0};
    one.data = element;
    ENT_TRY(parse_element(parser, &one, 0));
    uint64_t width = ent_dtype_bits(out->dtype) / 8;
    for (uint64_t i = 0; i < count; i++) memcpy((char *)out->data + i * width, element, width);
    return NULL;
}

/* ---- attributes ---- */

static ent_status parse_double(ent_parser *parser, double *out) {
    ENT_TRY(ent_scan_number(&parser->scan, out));
    if (parser->scan.at < parser->scan.end && *parser->scan.at == 'd')
        parser->scan.at++;
    else
        *out = (float)*out;
    return NULL;
}

static ent_status parse_list(ent_parser *parser, ent_attr *attr, bool is_floats) {
    ent_scan *scan = &parser->scan;
    ENT_ARRAY(int64_t) ints = {0};
    ENT_ARRAY(double) floats = {0};
    attr->type = is_floats || next_is_float(scan) ? ENT_ATTR_FLOATS : ENT_ATTR_INTS;
    if (!ent_scan_accept(scan, "]")) {
        do {
            int64_t whole;
            double number;
            if (attr->type == ENT_ATTR_INTS) {
                ENT_TRY(ent_scan_int(scan, &whole));
                ent_array_push(parser->module->arena, &ints, whole);
            } else {
                ENT_TRY(parse_double(parser, &number));
                ent_array_push(parser->module->arena, &floats, number);
            }
        } while (ent_scan_accept(scan, ","));
        ENT_TRY(ent_scan_expect(scan, "]"));
    }
    attr->ints = ints.items;
    attr->floats = floats.items;
    attr->count = attr->type == ENT_ATTR_INTS ? ints.count : floats.count;
    return NULL;
}

static ent_status parse_attr_tensor(ent_parser *parser, ent_attr *attr) {
    const char *recipe;
    ent_tensor *tensor = ent_arena_alloc(parser->module->arena, sizeof *tensor);
    attr->type = ENT_ATTR_TENSOR;
    attr->tensor = tensor;
    ENT_TRY(ent_parse_type(parser, &tensor->dtype, &tensor->rank, tensor->dims));
    return ent_parse_tensor(parser, tensor, &recipe);
}

static ent_status parse_attr_graph(ent_parser *parser, ent_attr *attr, uint32_t node, uint32_t index) {
    ent_parse_fixup fixup = {NULL, node, index, parser->scan.line};
    attr->type = ENT_ATTR_GRAPH;
    attr->i = -1;
    ENT_TRY(ent_scan_expect(&parser->scan, "@"));
    ENT_TRY(ent_parse_name(parser, &fixup.name));
    ent_array_push(parser->module->arena, &parser->graphs, fixup);
    return NULL;
}

static ent_status parse_attr(ent_parser *parser, ent_attr *attr, uint32_t node, uint32_t index) {
    ent_scan *scan = &parser->scan;
    const char *name;
    ENT_TRY(ent_parse_name(parser, &name));
    attr->name = (ent_str){name, strlen(name)};
    ENT_TRY(ent_scan_expect(scan, "="));
    if (ent_scan_accept(scan, "tensor")) return parse_attr_tensor(parser, attr);
    if (ent_scan_accept(scan, "graph")) return parse_attr_graph(parser, attr, node, index);
    bool is_floats = ent_scan_accept(scan, "floats");
    if (ent_scan_accept(scan, "[")) return parse_list(parser, attr, is_floats);
    ent_scan_skip(scan);
    if (scan->at < scan->end && *scan->at == '"') {
        attr->type = ENT_ATTR_STRING;
        return ent_scan_string(scan, &attr->s);
    }
    attr->type = next_is_float(scan) ? ENT_ATTR_FLOAT : ENT_ATTR_INT;
    return attr->type == ENT_ATTR_INT ? ent_scan_int(scan, &attr->i) : parse_double(parser, &attr->f);
}

ent_status ent_parse_attrs(ent_parser *parser, uint32_t node, ent_attrs *out) {
    ENT_ARRAY(ent_attr) attrs = {0};
    *out = (ent_attrs){0};
    if (!ent_scan_accept(&parser->scan, "{")) return NULL;
    do {
        ent_attr attr = {0};
        ENT_TRY(parse_attr(parser, &attr, node, attrs.count));
        ent_array_push(parser->module->arena, &attrs, attr);
    } while (ent_scan_accept(&parser->scan, ","));
    *out = (ent_attrs){attrs.items, attrs.count};
    return ent_scan_expect(&parser->scan, "}");
}
