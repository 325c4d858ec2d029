/* Symbols and size expressions of a message. */
#include "plugins/common/common.h"

#define MAX_EXPRS (1u << 16)

static bool is_earlier(ent_dim dim, uint32_t at) {
    return dim >= 0 || (uint64_t)~dim < at;
}

static ent_code read_expr(ent_common_sizes *sizes, const ent_call *call, const ent_message_record *record,
                          const bool *unbounded_symbols) {
    uint32_t at = sizes->expr_count;
    uint64_t kind = ent_message_get_u64(record, ENT_FIELD_expr_kind);
    ent_expr *e = &sizes->exprs[at];
    *e = (ent_expr){(uint32_t)kind, 0, ent_message_get_i64(record, ENT_FIELD_expr_a),
                    ent_message_get_i64(record, ENT_FIELD_expr_b)};
    bool *unbounded = &sizes->unbounded[at];
    if (kind == ENT_EXPR_SYMBOL) {
        if (e->a < 0 || (uint64_t)e->a >= sizes->symbol_count)
            return ent_common_fail(call, ENT_CODE_BAD_MESSAGE, "a size names a symbol that is not there");
        *unbounded = unbounded_symbols[e->a];
    } else if (kind != ENT_EXPR_CONST) {
        if (kind < ENT_EXPR_SYMBOL || kind > ENT_EXPR_CONST || !is_earlier(e->a, at) || !is_earlier(e->b, at))
            return ent_common_fail(call, ENT_CODE_BAD_MESSAGE,
                                   "a size is of no known kind, or uses a later one");
        *unbounded = (e->a < 0 && sizes->unbounded[~e->a]) || (e->b < 0 && sizes->unbounded[~e->b]);
    }
    sizes->expr_count++;
    return ENT_OK;
}

ent_code ent_common_sizes_read(const ent_host *host, const ent_call *call, ent_message_reader *reader,
                               ent_common_sizes *out) {
    ent_message_record record;
    uint32_t symbols = 0, exprs = 0;
    *out = (ent_common_sizes){.host = host};
    ent_message_rewind(reader);
    while (ent_message_next(reader, &record)) {
        symbols += record.tag == ENT_RECORD_symbol;
        exprs += record.tag == ENT_RECORD_expr;
    }
    ent_message_rewind(reader);
    if (symbols > MAX_EXPRS || exprs > MAX_EXPRS)
        return ent_common_fail(call, ENT_CODE_UNSUPPORTED, "more than %u size expressions", MAX_EXPRS);
    out->exprs = ent_common_allocate(host, exprs * (sizeof *out->exprs + sizeof *out->values) + 1);
    out->unbounded = ent_common_allocate(host, (size_t)exprs + symbols + 1);
    if (!out->exprs || !out->unbounded)
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for size expressions");
    out->values = (int64_t *)(out->exprs + exprs);
    bool *unbounded_symbols = out->unbounded + exprs;
    while (ent_message_next(reader, &record)) {
        if (record.tag == ENT_RECORD_symbol)
            unbounded_symbols[out->symbol_count++] =
                ent_message_get_i64(&record, ENT_FIELD_symbol_max) == INT64_MAX;
        if (record.tag != ENT_RECORD_expr) continue;
        ent_code code = read_expr(out, call, &record, unbounded_symbols);
        if (code != ENT_OK) return code;
    }
    ent_message_rewind(reader);
    return ENT_OK;
}

void ent_common_sizes_release(ent_common_sizes *sizes) {
    if (!sizes->host) return;
    ent_common_release(sizes->host, sizes->exprs);
    ent_common_release(sizes->host, sizes->unbounded);
    *sizes = (ent_common_sizes){0};
}
