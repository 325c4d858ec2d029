/* Stage "tile": a tile program run by the interpreter on seeded buffers. The expectation lists every output,
 * in logical order. args: symbol values, "N=3"; several runs are separated by "|". */
#include <inttypes.h>
#include <string.h>

#include "tests/golden/golden.h"
#include "tests/golden/tile_case.h"

static ent_status parse_symbols(ent_scan *scan, const ent_tile_program *program, int64_t *symbols) {
    uint32_t given = 0;
    for (uint32_t i = 0; i < program->symbol_count; i++) {
        const char *name = ent_scan_word(scan);
        if (!name)
            return ent_scan_error(scan, "a value for each of the %u symbols is needed",
                                  program->symbol_count);
        uint32_t at = 0;
        while (at < program->symbol_count &&
               (strlen(name) != program->symbols[at].size ||
                memcmp(name, program->symbols[at].data, program->symbols[at].size) != 0))
            at++;
        if (at == program->symbol_count) return ent_scan_error(scan, "no symbol %s", name);
        ENT_TRY(ent_scan_expect(scan, "="));
        ENT_TRY(ent_scan_int(scan, &symbols[at]));
        given++;
    }
    return given == program->symbol_count ? NULL : ent_scan_error(scan, "too few symbols");
}

static void print_buffer(const tile_case *c, uint32_t buffer, ent_text *out) {
    const ent_tile_buffer *b = &c->program->buffers[buffer];
    int64_t columns = b->rank > 0 ? c->dims[buffer][b->rank - 1] : 1;
    ent_text_add(out, "b%u %s[", buffer, ent_dtype_name(b->dtype));
    for (uint32_t d = 0; d < b->rank; d++) ent_text_add(out, "%s%" PRId64, d ? ", " : "", c->dims[buffer][d]);
    ent_text_add(out, "]\n");
    for (int64_t i = 0; i < tile_case_elements(c, buffer); i++) {
        double value = tile_case_get(c, buffer, i);
        ent_text_add(out, " %.5g%s", value == 0 ? 0.0 : value, (i + 1) % columns == 0 ? "\n" : "");
    }
}

static ent_status run_once(ent_arena *arena, const ent_tile_program *program, const int64_t *symbols,
                           const char *file, ent_text *out) {
    tile_case c;
    ent_ops_error error;
    if (!tile_case_open(&c, program, symbols))
        return ent_status_make(arena, ENT_ERROR_USAGE, "golden.sizes", file,
                               "the sizes do not evaluate or are too large");
    ent_code code = ent_ops_tile_interpret(program, c.memory, c.symbols, NULL, &error);
    for (uint32_t i = 0; code == ENT_OK && i < program->buffer_count; i++)
        if (program->buffers[i].role == ENT_ROLE_OUTPUT) print_buffer(&c, i, out);
    tile_case_close(&c);
    return code == ENT_OK ? NULL
                          : ent_status_make(arena, ENT_ERROR_INTERNAL, "tile.run", file, "%s", error.text);
}

static ent_status run(ent_arena *arena, const char *args, const char *file, ent_str input, ent_text *out) {
    ent_tile_program *program;
    ent_scan scan;
    int64_t symbols[8] = {0};
    ENT_TRY(ent_tile_parse(arena, file, input.data, input.size, &program));
    ent_scan_init(&scan, arena, "args", args, strlen(args));
    do {
        ENT_TRY(parse_symbols(&scan, program, symbols));
        for (uint32_t i = 0; i < program->symbol_count && i < 8; i++)
            ent_text_add(out, "%.*s=%" PRId64 "\n", (int)program->symbols[i].size, program->symbols[i].data,
                         symbols[i]);
        ENT_TRY(run_once(arena, program, symbols, file, out));
    } while (ent_scan_accept(&scan, "|"));
    return ent_scan_done(&scan) ? NULL : ent_scan_error(&scan, "expected | or the end");
}

/* Through the byte form too: what is printed was encoded and decoded before. */
static ent_status reprint(ent_arena *arena, const char *file, ent_str input, ent_text *out) {
    ent_tile_program *program, *decoded;
    ent_str bytes;
    ENT_TRY(ent_tile_parse(arena, file, input.data, input.size, &program));
    ENT_TRY(ent_tile_encode(program, arena, &bytes));
    ENT_TRY(ent_tile_decode(arena, bytes.data, bytes.size, &decoded));
    ent_tile_print(decoded, out);
    return NULL;
}

const golden_stage golden_stage_tile = {"tile", run, reprint};
