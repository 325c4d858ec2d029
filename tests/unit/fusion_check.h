/* Runs every candidate of a graph and holds it against the operators' meaning, leaf by leaf. */
#ifndef FUSION_CHECK_H
#define FUSION_CHECK_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fusion/fusion.h"
#include "core/ops/ops.h"
#include "tests/unit/fusion_device.h"

typedef struct fusion_case {
    ent_arena *arena;
    ent_module *module;
    ent_fusion_layouts layouts;
    ent_fusion_set set;
    ent_tensor *values; /* per value, plain, evaluated */
} fusion_case;

static inline double fusion_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 33) / (double)(1u << 31) * 2 - 1;
}

static inline void fusion_tensor_make(const fusion_case *c, uint32_t value, ent_tensor *out) {
    const ent_value *v = ent_module_value(c->module, value);
    memset(out, 0, sizeof *out);
    out->dtype = v->dtype;
    out->rank = v->rank;
    for (uint32_t i = 0; i < v->rank; i++) out->dims[i] = v->dims[i];
    out->layout = ent_layout_plain(v->rank);
    out->size_bytes = (uint64_t)ent_layout_bytes(&out->layout, (ent_dtype)out->dtype, out->dims);
    out->data = ent_arena_alloc(c->arena, out->size_bytes + 8);
}

static inline void fusion_fill(ent_tensor *tensor, uint64_t *state, int64_t limit) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) count *= tensor->dims[i];
    for (int64_t i = 0; i < count; i++) {
        double x = fusion_random(state);
        if (tensor->dtype <= ENT_DTYPE_F64)
            ent_ops_store_f64(tensor->data, tensor->dtype, i, x);
        else if (tensor->dtype == ENT_DTYPE_BOOL)
            ent_ops_store_i64(tensor->data, tensor->dtype, i, x > 0);
        else
            ent_ops_store_i64(tensor->data, tensor->dtype, i, (int64_t)(x * (double)limit));
    }
}

static inline void fusion_evaluate(fusion_case *c, uint64_t seed, int64_t integer_limit) {
    const ent_module *m = c->module;
    uint32_t at = 0, node = 0;
    c->values = ent_arena_alloc(c->arena, m->values.count * sizeof *c->values);
    for (uint32_t v = 0; v < m->values.count; v++) {
        if (m->values.items[v].constant)
            c->values[v] = m->values.items[v].constant->tensor;
        else if (m->values.items[v].producer == ENT_ID_NONE) {
            fusion_tensor_make(c, v, &c->values[v]);
            fusion_fill(&c->values[v], &seed, integer_limit);
        } else if (m->values.items[v].dtype != ENT_DTYPE_NONE)
            fusion_tensor_make(c, v, &c->values[v]);
    }
    uint32_t graph = 0;
    while (graph < m->graphs.count) {
        if (!ent_graph_next(m, graph, &at, &node)) {
            graph++;
            at = 0;
            continue;
        }
        const ent_node *n = ent_module_node(m, node);
        const ent_tensor *inputs[16] = {0};
        ent_tensor *outputs[16] = {0};
        ent_ops_error error = {0};
        if (ent_op_info_get(n->op)->op_class == ENT_CLASS_CONTROL)
            continue; /* its outputs stay 0, which is as good as any */
        for (uint32_t i = 0; i < n->input_count; i++)
            inputs[i] = n->inputs[i] == ENT_ID_NONE ? NULL : &c->values[n->inputs[i]];
        for (uint32_t i = 0; i < n->output_count; i++)
            outputs[i] = n->outputs[i] == ENT_ID_NONE ? NULL : &c->values[n->outputs[i]];
        ent_code code = ent_ops_evaluate(n->op, n->attrs, inputs, n->input_count, outputs, n->output_count,
                                         ent_ops_memory_default(), &error);
        ck_assert_msg(code == ENT_OK, "%s: %s", n->name, error.text);
    }
}

/* A copy of a value in a layout. */
static inline ent_tensor fusion_stored(const fusion_case *c, uint32_t value, const ent_layout *layout,
                                       bool fill) {
    ent_tensor stored = c->values[value];
    ent_ops_error error = {0};
    stored.layout = *layout;
    stored.size_bytes = (uint64_t)ent_layout_bytes(layout, (ent_dtype)stored.dtype, stored.dims);
    stored.data = malloc(stored.size_bytes + 1);
    memset(stored.data, 0xff, stored.size_bytes);
    if (fill) ck_assert_msg(ent_ops_convert(&c->values[value], &stored, &error) == ENT_OK, "%s", error.text);
    return stored;
}

static inline void fusion_compare(const fusion_case *c, uint32_t value, const ent_tensor *stored,
                                  const char *kind) {
    ent_tensor plain;
    ent_ops_error error = {0};
    const ent_tensor *want = &c->values[value];
    int64_t count = 1;
    fusion_tensor_make(c, value, &plain);
    ck_assert_msg(ent_ops_convert(stored, &plain, &error) == ENT_OK, "%s", error.text);
    for (uint32_t i = 0; i < plain.rank; i++) count *= plain.dims[i];
    for (int64_t i = 0; i < count; i++) {
        double a = ent_ops_load_f64(plain.data, plain.dtype, i),
               b = ent_ops_load_f64(want->data, want->dtype, i);
        double slack = want->dtype == ENT_DTYPE_F16 || want->dtype == ENT_DTYPE_BF16 ? 0.03 : 2e-5;
        bool same = (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= slack * (1 + fabs(b));
        ck_assert_msg(same, "%s candidate, value %s, element %lld of %lld: %.9g, not %.9g", kind,
                      ent_module_value(c->module, value)->name, (long long)i, (long long)count, a, b);
    }
}

static inline void fusion_run_candidate(const fusion_case *c, const ent_fusion_candidate *candidate) {
    ent_tensor stored[64];
    void *memory[64];
    ent_ops_error error = {0};
    ck_assert_uint_le(candidate->port_count, 64);
    for (uint32_t p = 0; p < candidate->port_count; p++) {
        const ent_fusion_port *port = &candidate->ports[p];
        stored[p] = fusion_stored(c, port->value, &port->layout, !port->is_output);
        memory[p] = stored[p].data;
    }
    if (candidate->is_view) {
        ck_assert_uint_eq(stored[0].size_bytes, stored[1].size_bytes);
        memcpy(stored[1].data, stored[0].data, stored[0].size_bytes);
    } else {
        ck_assert_uint_eq(candidate->program->buffer_count, candidate->port_count);
        ck_assert_uint_ge(candidate->port_count, 1);
        ent_code code = ent_ops_tile_interpret(candidate->program, memory, NULL, NULL, &error);
        if (code != ENT_OK) {
            ent_text text;
            ent_text_init(&text, c->arena);
            ent_tile_print(candidate->program, &text);
            ck_abort_msg("%s: %s\n%s", candidate->kind, error.text, text.data);
        }
        ck_assert(candidate->price.time_low_ns > 0 && candidate->price.time_mid_ns < 1e12);
        ck_assert(candidate->price.time_low_ns <= candidate->price.time_mid_ns);
        ck_assert(candidate->price.time_mid_ns <= candidate->price.time_high_ns);
    }
    for (uint32_t p = 0; p < candidate->port_count; p++)
        if (candidate->ports[p].is_output)
            fusion_compare(c, candidate->ports[p].value, &stored[p], candidate->kind);
    for (uint32_t p = 0; p < candidate->port_count; p++) free(stored[p].data);
}

static inline void fusion_case_make(fusion_case *c, ent_module *module, ent_arena *arena) {
    memset(c, 0, sizeof *c);
    c->arena = arena;
    c->module = module;
    ent_status status = ent_fusion_find_layouts(module, arena, &c->layouts);
    if (!status) status = ent_fusion_make(module, &c->layouts, fusion_test_capability(), arena, &c->set);
    ck_assert_msg(!status, "%s", ent_status_text(arena, status));
}

/* Parses, infers and freezes the body of a graph. */
static inline ent_module *fusion_module(ent_arena *arena, const char *body) {
    ent_module *module = NULL;
    const char *text = ent_arena_format(arena, "module \"m\" {\n%s\n}\n", body);
    ent_status status = ent_module_parse(arena, "test", text, &module);
    if (!status) status = ent_module_infer(module, arena);
    if (!status) status = ent_module_freeze(module, arena);
    if (!status) status = ent_module_infer(module, arena);
    ck_assert_msg(!status, "%s", ent_status_text(arena, status));
    return module;
}

/* Makes and runs all candidates. Returns their number; every leaf must be covered unless `uncovered` allows
 * some. */
static inline uint32_t fusion_check_all(const char *body, uint32_t uncovered, const char *wanted_kind) {
    ent_arena *arena = ent_arena_create(0);
    fusion_case c;
    uint32_t kinds = 0;
    fusion_case_make(&c, fusion_module(arena, body), arena);
    fusion_evaluate(&c, 7, 5);
    ent_text text;
    ent_text_init(&text, arena);
    ent_fusion_print(c.module, &c.set, &text);
    if (getenv("FUSION_PRINT")) printf("%s\n", text.data);
    ck_assert_msg(c.set.refusals.count == uncovered, "%.1500s",
                  text.data + (text.size > 1500 ? text.size - 1500 : 0));
    for (uint32_t i = 0; i < c.set.items.count; i++) {
        fusion_run_candidate(&c, &c.set.items.items[i]);
        kinds += wanted_kind && strcmp(c.set.items.items[i].kind, wanted_kind) == 0;
    }
    ck_assert_msg(!wanted_kind || kinds > 0, "no %s candidate in\n%.1500s", wanted_kind, text.data);
    uint32_t count = c.set.items.count;
    ent_arena_destroy(arena);
    return count;
}

#endif
