/* Scan of opset 8 runs over a batch: a Scan over the batch whose body is the Scan over the sequence. */
#include "core/import/internal.h"

/* Values of the outer body: an entry of the batch of each input. */
static uint32_t *add_entries(ent_import_draft *draft, uint32_t graph, uint32_t count) {
    ent_module *module = draft->importer->module;
    uint32_t *entries = ent_arena_array(draft->importer->scratch, count + 1, sizeof *entries);
    for (uint32_t i = 0; entries && i < count; i++) {
        entries[i] = ent_module_add_value(module, graph, NULL, ENT_DTYPE_NONE, ENT_RANK_UNKNOWN, NULL);
        ent_graph_add_input(module, graph, entries[i]);
    }
    return entries;
}

static ent_status add_inner(ent_import_draft *draft, uint32_t graph, const uint32_t *entries, uint32_t count,
                            int64_t scans) {
    ent_module *module = draft->importer->module;
    uint32_t body = ent_module_add_graph(module, "body", ENT_ID_NONE), attr_count = 2;
    ent_attr attrs[3] = {ent_attr_graph("body", body), ent_attr_int("num_scan_inputs", scans)}, directions;
    if (ent_import_attr_take(draft, "directions", &directions))
        attrs[attr_count++] =
            ent_attr_ints(module, "scan_input_directions", directions.ints, directions.count);
    ent_node_spec spec = {.op = ENT_OP_Scan,
                          .name = draft->name,
                          .attrs = ent_attrs_make(module, attrs, attr_count),
                          .inputs = entries,
                          .input_count = count,
                          .output_count = draft->output_count,
                          .origins = &draft->origin,
                          .origin_count = 1};
    uint32_t node = ent_module_add_node(module, graph, &spec, ENT_ID_NONE);
    for (uint32_t i = 0; i < draft->output_count; i++)
        ent_graph_add_output(module, graph, ent_module_node(module, node)->outputs[i]);
    return ent_import_body(draft, &attrs[0]);
}

ent_status ent_import_upgrade_batched_scan(ent_import_draft *draft) {
    ent_module *module = draft->importer->module;
    const ent_attr *scans = ent_import_attr(draft, "num_scan_inputs");
    uint32_t count = draft->input_count ? draft->input_count - 1 : 0;
    if (count == 0 || scans->i < 1 || scans->i > count)
        return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.arity", draft->place,
                               "num_scan_inputs %lld does not fit %u inputs", (long long)scans->i, count);
    if (draft->inputs[0] != ENT_ID_NONE)
        return ent_status_make(draft->importer->arena, ENT_ERROR_UNSUPPORTED, "operator.optional-value",
                               draft->place, "input 0, a length for each sequence, is not supported");
    for (uint32_t i = 1; i <= count; i++)
        if (draft->inputs[i] == ENT_ID_NONE)
            return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.missing-input",
                                   draft->place, "the required input %u is absent", i);
    int64_t inner = scans->i;
    uint32_t graph = ent_module_add_graph(module, "batch", ENT_ID_NONE);
    uint32_t *entries = add_entries(draft, graph, count);
    if (!entries) return ent_status_out_of_memory();
    ENT_TRY(add_inner(draft, graph, entries, count, inner));
    ent_attr attrs[2] = {ent_attr_graph("body", graph), ent_attr_int("num_scan_inputs", count)};
    ent_node_spec spec = {.op = ENT_OP_Scan,
                          .name = draft->name,
                          .attrs = ent_attrs_make(module, attrs, 2),
                          .inputs = draft->inputs + 1,
                          .input_count = count,
                          .outputs = draft->outputs,
                          .output_count = draft->output_count,
                          .origins = &draft->origin,
                          .origin_count = 1};
    ent_module_add_node(module, draft->scope->graph, &spec, ENT_ID_NONE);
    draft->done = true;
    return NULL;
}
