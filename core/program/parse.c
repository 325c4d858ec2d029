/* Reads the text form (see print.c). One function a line kind; the result is verified before it is returned.
 */
#include "core/program/internal.h"

#include <string.h>

typedef struct parser {
    ent_scan scan;
    ent_arena *arena;
    ENT_ARRAY(ent_program_symbol) symbols;
    ENT_ARRAY(ent_expr) exprs;
    ENT_ARRAY(ent_program_device) devices;
    ENT_ARRAY(ent_program_constant) constants;
    ENT_ARRAY(ent_program_kernel) kernels;
    ENT_ARRAY(ent_program_function) functions;
    ENT_ARRAY(ent_program_guard) guards;
} parser;

typedef ENT_ARRAY(uint32_t) id_array;

static ent_status parse_u32(parser *p, uint32_t *out) {
    int64_t value = 0;
    ENT_TRY(ent_scan_int(&p->scan, &value));
    if (value < 0 || value >= (int64_t)ENT_PROGRAM_NONE)
        return ent_scan_error(&p->scan, "a number from 0 to 4294967294 belongs here");
    *out = (uint32_t)value;
    return NULL;
}

/* `word` and a number. */
static ent_status parse_field(parser *p, const char *word, uint32_t *out) {
    ENT_TRY(ent_scan_expect(&p->scan, word));
    return parse_u32(p, out);
}

static ent_status parse_int_field(parser *p, const char *word, int64_t *out) {
    ENT_TRY(ent_scan_expect(&p->scan, word));
    return ent_scan_int(&p->scan, out);
}

static ent_status parse_string(parser *p, const char **out) {
    ent_str text;
    ENT_TRY(ent_scan_string(&p->scan, &text));
    if (memchr(text.data, 0, text.size)) return ent_scan_error(&p->scan, "a name holds no \\x00");
    *out = ent_arena_strndup(p->arena, text.data, text.size);
    return NULL;
}

static ent_status parse_name_of(parser *p, const char *const *names, const char *what, uint32_t *out) {
    const char *word = ent_scan_word(&p->scan);
    *out = ent_program_name_index(names, word);
    if (*out == ENT_PROGRAM_NONE) return ent_scan_error(&p->scan, "'%s' is no %s", word ? word : "", what);
    return NULL;
}

static ent_status parse_dtype(parser *p, uint32_t *out) {
    const char *word = ent_scan_word(&p->scan);
    for (uint32_t i = 1; word && i < ENT_DTYPE_COUNT; i++)
        if (strcmp(word, ent_dtype_name((ent_dtype)i)) == 0) {
            *out = i;
            return NULL;
        }
    return ent_scan_error(&p->scan, "'%s' is no dtype", word ? word : "");
}

/* "12" or "e3"; the e and its number are one word. */
static ent_status parse_dim(parser *p, ent_dim *out) {
    const char *word = ent_scan_word(&p->scan);
    if (!word) return ent_scan_int(&p->scan, out);
    ent_scan digits;
    int64_t index = -1;
    ent_scan_init(&digits, p->arena, p->scan.file, word + 1, strlen(word) - 1);
    if (word[0] != 'e' || ent_scan_int(&digits, &index) || index < 0 || !ent_scan_done(&digits))
        return ent_scan_error(&p->scan, "'%s' is neither a number nor an expression such as e0", word);
    *out = ~index;
    return NULL;
}

static ent_status parse_dims(parser *p, ent_dim *dims, uint32_t *out_rank) {
    ENT_TRY(ent_scan_expect(&p->scan, "["));
    *out_rank = 0;
    while (!ent_scan_accept(&p->scan, "]")) {
        if (*out_rank && !ent_scan_accept(&p->scan, ","))
            return ent_scan_error(&p->scan, "a comma or ] belongs here");
        if (*out_rank == ENT_MAX_RANK)
            return ent_scan_error(&p->scan, "a shape has at most %d dimensions", ENT_MAX_RANK);
        ENT_TRY(parse_dim(p, &dims[(*out_rank)++]));
    }
    return NULL;
}

static ent_status parse_layout(parser *p, uint32_t rank, ent_layout *out) {
    *out = ent_layout_plain(rank);
    int64_t number = 0;
    if (ent_scan_accept(&p->scan, "opaque")) {
        *out = (ent_layout){.kind = ENT_LAYOUT_OPAQUE, .rank = (uint8_t)rank};
        ENT_TRY(ent_scan_int(&p->scan, &number));
        out->opaque = (uint64_t)number;
        return NULL;
    }
    if (!ent_scan_accept(&p->scan, "order")) return NULL;
    for (uint32_t i = 0; i < rank; i++) {
        ENT_TRY(ent_scan_int(&p->scan, &number));
        if (number < 0 || number > 255)
            return ent_scan_error(&p->scan, "no axis has number %lld", (long long)number);
        out->order[i] = (uint8_t)number;
    }
    while (ent_scan_accept(&p->scan, "block")) {
        uint32_t axis = 0, size = 0;
        if (out->block_count == ENT_MAX_BLOCKS)
            return ent_scan_error(&p->scan, "a layout has at most %d blocks", ENT_MAX_BLOCKS);
        ENT_TRY(parse_u32(p, &axis));
        ENT_TRY(parse_u32(p, &size));
        if (axis > 255 || size > 65535) return ent_scan_error(&p->scan, "that block does not fit");
        out->block_axis[out->block_count] = (uint8_t)axis;
        out->block_size[out->block_count++] = (uint16_t)size;
    }
    return NULL;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* After the word hex: an x and the digits, one word. */
static ent_status parse_hex(parser *p, const void **out_data, uint64_t *out_bytes) {
    const char *word = ent_scan_word(&p->scan);
    size_t length = word ? strlen(word) : 0;
    if (length == 0 || word[0] != 'x' || length % 2 == 0)
        return ent_scan_error(&p->scan, "an x and pairs of hex digits belong here");
    *out_bytes = (length - 1) / 2;
    uint8_t *bytes = ent_arena_array(p->arena, *out_bytes + 1, 1);
    if (!bytes) return ent_status_out_of_memory();
    for (uint64_t i = 0; i < *out_bytes; i++) {
        int high = hex_value(word[1 + 2 * i]), low = hex_value(word[2 + 2 * i]);
        if (high < 0 || low < 0) return ent_scan_error(&p->scan, "hex digits are 0-9 and a-f");
        bytes[i] = (uint8_t)(high * 16 + low);
    }
    *out_data = bytes;
    return NULL;
}

static ent_status parse_symbol(parser *p) {
    ent_program_symbol s = {.input = ENT_PROGRAM_NONE, .axis = ENT_PROGRAM_NONE};
    ENT_TRY(parse_string(p, &s.name));
    ENT_TRY(parse_int_field(p, "min", &s.min));
    ENT_TRY(parse_int_field(p, "max", &s.max));
    ENT_TRY(parse_int_field(p, "multiple", &s.multiple_of));
    if (ent_scan_accept(&p->scan, "input")) {
        ENT_TRY(parse_u32(p, &s.input));
        ENT_TRY(parse_field(p, "axis", &s.axis));
    }
    ent_array_push(p->arena, &p->symbols, s);
    return NULL;
}

static ent_status parse_expr(parser *p) {
    ent_expr e = {0};
    ent_dim self = 0;
    ENT_TRY(parse_dim(p, &self));
    if (self >= 0 || ~self != (int64_t)p->exprs.count)
        return ent_scan_error(&p->scan, "expressions are numbered in order: e%u is next", p->exprs.count);
    ENT_TRY(ent_scan_expect(&p->scan, "="));
    ENT_TRY(parse_name_of(p, ent_program_expr_names, "kind of expression", &e.kind));
    if (e.kind == ENT_EXPR_SYMBOL || e.kind == ENT_EXPR_CONST) {
        ENT_TRY(ent_scan_int(&p->scan, &e.a));
    } else {
        ENT_TRY(parse_dim(p, &e.a));
        ENT_TRY(parse_dim(p, &e.b));
    }
    ent_array_push(p->arena, &p->exprs, e);
    return NULL;
}

static ent_status parse_device(parser *p) {
    ent_program_device d = {0};
    ENT_TRY(parse_string(p, &d.name));
    ENT_TRY(ent_scan_expect(&p->scan, "plugin"));
    ENT_TRY(parse_string(p, &d.plugin));
    ENT_TRY(ent_scan_expect(&p->scan, "parameters"));
    ENT_TRY(parse_string(p, &d.parameters));
    ent_array_push(p->arena, &p->devices, d);
    return NULL;
}

static ent_status parse_constant(parser *p) {
    ent_program_constant c = {0};
    int64_t size = 0, low = 0, high = 0;
    ENT_TRY(parse_dtype(p, &c.dtype));
    ENT_TRY(parse_dims(p, c.dims, &c.rank));
    ENT_TRY(parse_layout(p, c.rank, &c.layout));
    ENT_TRY(parse_int_field(p, "bytes", &size));
    bool has_hash = ent_scan_accept(&p->scan, "hash");
    if (has_hash) {
        ENT_TRY(ent_scan_int(&p->scan, &low));
        ENT_TRY(ent_scan_int(&p->scan, &high));
    }
    if (ent_scan_accept(&p->scan, "elided"))
        return ent_scan_error(&p->scan,
                              "this constant's bytes are not in the text; only programs with constants up to "
                              "%u bytes can be read back",
                              ENT_PROGRAM_INLINE_BYTES);
    ENT_TRY(ent_scan_expect(&p->scan, "hex"));
    ENT_TRY(parse_hex(p, &c.data, &c.size_bytes));
    if (size < 0 || (uint64_t)size != c.size_bytes)
        return ent_scan_error(&p->scan, "the constant announces %lld bytes and has %llu", (long long)size,
                              (unsigned long long)c.size_bytes);
    c.hash = has_hash ? (ent_hash128){(uint64_t)low, (uint64_t)high} : ent_hash_bytes(c.data, c.size_bytes);
    ent_array_push(p->arena, &p->constants, c);
    return NULL;
}

static ent_status parse_kernel(parser *p) {
    ent_program_kernel k = {0};
    ENT_TRY(parse_string(p, &k.name));
    ENT_TRY(parse_field(p, "device", &k.device));
    ENT_TRY(ent_scan_expect(&p->scan, "depth"));
    ENT_TRY(parse_name_of(p, ent_program_depth_names, "depth", &k.depth));
    ENT_TRY(ent_scan_expect(&p->scan, "tier"));
    ENT_TRY(parse_name_of(p, ent_program_tier_names, "tier", &k.tier));
    ENT_TRY(ent_scan_expect(&p->scan, "requirement"));
    ENT_TRY(parse_string(p, &k.requirement));
    if (ent_scan_accept(&p->scan, "hex")) {
        ENT_TRY(parse_hex(p, &k.blob, &k.blob_bytes));
    } else {
        ent_str text;
        ENT_TRY(ent_scan_expect(&p->scan, "blob"));
        ENT_TRY(ent_scan_string(&p->scan, &text));
        k.blob = text.data;
        k.blob_bytes = text.size;
    }
    ent_array_push(p->arena, &p->kernels, k);
    return NULL;
}

/* %1 %2 ..., or plain numbers with prefix NULL, as many as there are. */
static ent_status parse_ids(parser *p, const char *prefix, id_array *out) {
    for (;;) {
        ent_scan_skip(&p->scan);
        bool more = prefix ? ent_scan_accept(&p->scan, prefix)
                           : p->scan.at < p->scan.end && *p->scan.at >= '0' && *p->scan.at <= '9';
        if (!more) return NULL;
        uint32_t id = 0;
        ENT_TRY(parse_u32(p, &id));
        ent_array_push(p->arena, out, id);
    }
}

static ent_status parse_value(parser *p, uint32_t index, ent_program_value *v) {
    uint32_t self = 0;
    *v = (ent_program_value){.index = ENT_PROGRAM_NONE, .offset_bytes = ENT_PROGRAM_UNSET};
    ENT_TRY(parse_field(p, "%", &self));
    if (self != index) return ent_scan_error(&p->scan, "values are numbered in order: %%%u is next", index);
    ENT_TRY(parse_string(p, &v->name));
    ENT_TRY(parse_name_of(p, ent_program_value_names, "kind of value", &v->kind));
    if (v->kind == ENT_VALUE_CONSTANT) ENT_TRY(parse_u32(p, &v->index));
    if (v->kind == ENT_VALUE_ALIAS) ENT_TRY(parse_field(p, "%", &v->index));
    ENT_TRY(parse_field(p, "device", &v->device));
    ENT_TRY(parse_dtype(p, &v->dtype));
    ENT_TRY(parse_dims(p, v->dims, &v->rank));
    ENT_TRY(parse_layout(p, v->rank, &v->layout));
    ENT_TRY(ent_scan_expect(&p->scan, "bytes"));
    ENT_TRY(parse_dim(p, &v->size_bytes));
    if (ent_scan_accept(&p->scan, "at")) ENT_TRY(parse_dim(p, &v->offset_bytes));
    return NULL;
}

static ent_status parse_step_values(parser *p, ent_program_step *s) {
    id_array values = {0};
    if (s->kind == ENT_PROGRAM_BRANCH) {
        ENT_TRY(ent_scan_expect(&p->scan, "condition"));
        ENT_TRY(parse_field(p, "%", &s->condition));
        ENT_TRY(parse_field(p, "then", &s->function[0]));
        ENT_TRY(ent_scan_expect(&p->scan, "values"));
        ENT_TRY(parse_ids(p, "%", &values));
        s->split = values.count;
        ENT_TRY(parse_field(p, "else", &s->function[1]));
    }
    if (s->kind == ENT_PROGRAM_DISPATCH) ENT_TRY(parse_field(p, "kernel", &s->kernel));
    if (s->kind == ENT_PROGRAM_CALL) ENT_TRY(parse_field(p, "function", &s->function[0]));
    if (s->kind == ENT_PROGRAM_LOOP) {
        ENT_TRY(parse_field(p, "function", &s->function[0]));
        if (ent_scan_accept(&p->scan, "trips")) ENT_TRY(parse_field(p, "%", &s->trips));
        if (ent_scan_accept(&p->scan, "condition")) ENT_TRY(parse_field(p, "%", &s->condition));
        ENT_TRY(parse_field(p, "states", &s->split));
    }
    ENT_TRY(ent_scan_expect(&p->scan, "values"));
    ENT_TRY(parse_ids(p, "%", &values));
    s->values = values.items;
    s->value_count = values.count;
    return NULL;
}

static ent_status parse_step(parser *p, ent_program_step *s) {
    *s = (ent_program_step){.kernel = ENT_PROGRAM_NONE,
                            .condition = ENT_PROGRAM_NONE,
                            .trips = ENT_PROGRAM_NONE,
                            .region = ENT_PROGRAM_NONE,
                            .function = {ENT_PROGRAM_NONE, ENT_PROGRAM_NONE}};
    ENT_TRY(parse_name_of(p, ent_program_step_names, "kind of step", &s->kind));
    ENT_TRY(parse_string(p, &s->name));
    ENT_TRY(parse_field(p, "device", &s->device));
    ENT_TRY(parse_step_values(p, s));
    if (ent_scan_accept(&p->scan, "waits")) {
        id_array waits = {0};
        ENT_TRY(parse_ids(p, NULL, &waits));
        s->waits = waits.items;
        s->wait_count = waits.count;
    }
    if (ent_scan_accept(&p->scan, "region")) ENT_TRY(parse_u32(p, &s->region));
    if (ent_scan_accept(&p->scan, "predicted")) ENT_TRY(ent_scan_number(&p->scan, &s->predicted_ns));
    return NULL;
}

static ent_status parse_frame(parser *p, ent_dim *frames) {
    uint32_t device = 0;
    ENT_TRY(parse_u32(p, &device));
    if (device >= p->devices.count) return ent_scan_error(&p->scan, "device %u does not exist", device);
    ENT_TRY(ent_scan_expect(&p->scan, "bytes"));
    return parse_dim(p, &frames[device]);
}

static ent_status parse_function(parser *p) {
    ENT_ARRAY(ent_program_value) values = {0};
    ENT_ARRAY(ent_program_step) steps = {0};
    id_array inputs = {0}, outputs = {0};
    ent_program_function f = {0};
    bool planned = false;
    ent_dim *frames = ent_arena_array(p->arena, (size_t)p->devices.count + 1, sizeof *frames);
    if (!frames) return ent_status_out_of_memory();
    for (uint32_t d = 0; d < p->devices.count; d++) frames[d] = ENT_PROGRAM_UNSET;
    ENT_TRY(parse_string(p, &f.name));
    while (!ent_scan_accept(&p->scan, "end")) {
        if (ent_scan_accept(&p->scan, "value")) {
            ent_program_value v;
            ENT_TRY(parse_value(p, values.count, &v));
            ent_array_push(p->arena, &values, v);
        } else if (ent_scan_accept(&p->scan, "step")) {
            ent_program_step s;
            ENT_TRY(parse_step(p, &s));
            ent_array_push(p->arena, &steps, s);
        } else if (ent_scan_accept(&p->scan, "inputs")) {
            ENT_TRY(parse_ids(p, "%", &inputs));
        } else if (ent_scan_accept(&p->scan, "outputs")) {
            ENT_TRY(parse_ids(p, "%", &outputs));
        } else if (ent_scan_accept(&p->scan, "frame")) {
            ENT_TRY(parse_frame(p, frames));
            planned = true;
        } else {
            return ent_scan_error(&p->scan, "value, step, inputs, outputs, frame or end belongs here");
        }
    }
    f.values = values.items, f.value_count = values.count;
    f.steps = steps.items, f.step_count = steps.count;
    f.inputs = inputs.items, f.input_count = inputs.count;
    f.outputs = outputs.items, f.output_count = outputs.count;
    f.arena_bytes = planned ? frames : NULL;
    ent_array_push(p->arena, &p->functions, f);
    return NULL;
}

static ent_status parse_guard(parser *p) {
    ent_program_guard g = {0};
    ENT_TRY(parse_field(p, "input", &g.input));
    ENT_TRY(parse_field(p, "constant", &g.constant));
    ent_array_push(p->arena, &p->guards, g);
    return NULL;
}

static ent_status parse_plan(parser *p, ent_program *program) {
    ent_str text;
    ENT_TRY(ent_scan_string(&p->scan, &text));
    program->plan_json = ent_arena_strndup(p->arena, text.data, text.size);
    program->plan_json_bytes = text.size;
    return NULL;
}

static ent_status parse_lines(parser *p, ent_program *program) {
    static const struct {
        const char *word;
        ent_status (*parse)(parser *);
    } lines[] = {{"symbol", parse_symbol},     {"expr", parse_expr},     {"device", parse_device},
                 {"constant", parse_constant}, {"kernel", parse_kernel}, {"function", parse_function},
                 {"guard", parse_guard}};
    ENT_TRY(ent_scan_expect(&p->scan, "program"));
    ENT_TRY(parse_string(p, &program->name));
    while (!ent_scan_done(&p->scan)) {
        if (ent_scan_accept(&p->scan, "plan")) {
            ENT_TRY(parse_plan(p, program));
            continue;
        }
        uint32_t i = 0;
        while (i < sizeof lines / sizeof lines[0] && !ent_scan_accept(&p->scan, lines[i].word)) i++;
        if (i == sizeof lines / sizeof lines[0])
            return ent_scan_error(
                &p->scan, "symbol, expr, device, constant, kernel, function, guard or plan belongs here");
        ENT_TRY(lines[i].parse(p));
    }
    return NULL;
}

ent_status ent_program_parse(ent_arena *arena, const char *file, const char *text, ent_program **out) {
    parser p = {.arena = arena};
    ent_program *program = ent_arena_alloc(arena, sizeof *program);
    program->plan_json = "";
    ent_scan_init(&p.scan, arena, file, text, strlen(text));
    ENT_TRY(parse_lines(&p, program));
    program->symbols = p.symbols.items, program->symbol_count = p.symbols.count;
    program->exprs = p.exprs.items, program->expr_count = p.exprs.count;
    program->devices = p.devices.items, program->device_count = p.devices.count;
    program->constants = p.constants.items, program->constant_count = p.constants.count;
    program->kernels = p.kernels.items, program->kernel_count = p.kernels.count;
    program->functions = p.functions.items, program->function_count = p.functions.count;
    program->guards = p.guards.items, program->guard_count = p.guards.count;
    ENT_TRY(ent_program_verify(program, arena));
    *out = program;
    return NULL;
}
