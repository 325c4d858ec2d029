/* What a compilation may use at most. Models come from strangers: every limit has a default, a field of the
 * request, a flag and one message. */
#include <string.h>

#include "core/pipeline.h"

#define GIB ((uint64_t)1 << 30)
#define DEFAULT_MEMORY_BYTES (16 * GIB)
#define DEFAULT_TENSOR_BYTES (16 * GIB)
#define DEFAULT_SECONDS 600

static uint64_t or_default(uint64_t value, uint64_t standard) {
    return value ? value : standard;
}

ent_budget ent_pipeline_budget(const entente_compile_request *r, uint64_t now_ns) {
    uint64_t seconds = or_default(r->max_seconds, DEFAULT_SECONDS);
    bool endless = seconds > (UINT64_MAX - now_ns) / 1000000000u;
    return (ent_budget){.limit_bytes = or_default(r->max_memory_bytes, DEFAULT_MEMORY_BYTES),
                        .deadline_ns = endless ? 0 : now_ns + seconds * 1000000000u,
                        .seconds = seconds};
}

ent_import_options ent_pipeline_import_options(const entente_compile_request *r) {
    return (ent_import_options){.external_data_root = r->external_data_root,
                                .max_file_bytes = r->max_file_bytes,
                                .max_nodes = r->max_nodes,
                                .max_nesting = r->max_nesting,
                                .max_tensor_bytes = or_default(r->max_tensor_bytes, DEFAULT_TENSOR_BYTES)};
}

static const char *place_of(const ent_pipeline *p, const ent_value *value) {
    if (value->producer == ENT_ID_NONE)
        return ent_arena_format(p->arena, "%s: value '%s'", p->request->model_path, value->name);
    const ent_node *node = ent_module_node(p->module, value->producer);
    return ent_arena_format(p->arena, "%s: node '%s' (%s)", p->request->model_path, node->name,
                            ent_op_info_get(node->op)->name);
}

ent_status ent_pipeline_check_values(ent_pipeline *p) {
    const uint64_t most = or_default(p->request->max_tensor_bytes, DEFAULT_TENSOR_BYTES);
    for (uint32_t v = 0; v < p->module->values.count; v++) {
        const ent_value *value = ent_module_value(p->module, v);
        bool gone = value->producer != ENT_ID_NONE && ent_module_node(p->module, value->producer)->dead;
        if (gone || !value->dtype || !ent_value_static(p->module, v)) continue;
        ent_layout plain = ent_layout_plain(value->rank);
        int64_t bytes = ent_layout_bytes(&plain, (ent_dtype)value->dtype, value->dims);
        if (bytes >= 0 && (uint64_t)bytes <= most) continue;
        return ent_status_make(p->arena, ENT_ERROR_LIMIT, "limit.tensor-bytes", place_of(p, value),
                               "the value '%s' has %s%llu bytes, more than the allowed %llu", value->name,
                               bytes < 0 ? "over " : "", (unsigned long long)(bytes < 0 ? INT64_MAX : bytes),
                               (unsigned long long)most);
    }
    return NULL;
}

static const struct {
    const char *rule, *flag;
} flags[] = {{"limit.nodes", "--max-nodes"},
             {"limit.messages", "--max-nodes"},
             {"limit.nesting", "--max-nesting"},
             {"limit.file-bytes", "--max-file-mb"},
             {"limit.tensor-bytes", "--max-tensor-mb"},
             {"limit.memory", "--max-memory-mb"},
             {"limit.time", "--max-seconds"}};

ent_status ent_pipeline_explain_limit(ent_pipeline *p, ent_status status, const char *stage) {
    if (!status || status->code != ENT_ERROR_LIMIT) return status;
    /* A refused allocation says nothing of the place; the budget knows why it was refused. */
    bool exhausted = strcmp(status->rule, "memory.exhausted") == 0;
    if (exhausted && ent_arena_failed(p->arena)) status = ent_arena_check(p->arena, "");
    bool general = strcmp(status->rule, "limit.memory") == 0 || strcmp(status->rule, "limit.time") == 0;
    const char *place =
        general ? ent_arena_format(p->arena, "%s: stage '%s'", p->request->model_path, stage) : status->place;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(flags[i].rule, status->rule) == 0)
            return ent_status_make(p->arena, ENT_ERROR_LIMIT, status->rule, place, "%s; %s raises the limit",
                                   status->text, flags[i].flag);
    return status;
}
