/* A host, a call and small region messages for tests of plugins/common. */
#ifndef ENT_TEST_COMMON_SAMPLE_H
#define ENT_TEST_COMMON_SAMPLE_H

#include "plugins/common/common.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks that a plugin holds now. Atomic: queues release on their own thread. */
static _Atomic int sample_blocks;
static char sample_failure[512];

/* What a call's bytes lie in until sample_end. */
typedef struct sample_block {
    struct sample_block *next;
    size_t guard;
} sample_block;
static sample_block *sample_call_blocks;

static void *sample_allocate(void *context, size_t size_bytes, size_t alignment) {
    (void)context;
    void *memory = NULL;
    if (size_bytes > (size_t)1 << 30) return NULL; /* as a machine does; sanitizers end the process instead */
    if (posix_memalign(&memory, alignment < 16 ? 16 : alignment, size_bytes) != 0) return NULL;
    sample_blocks++;
    return memory;
}

static void sample_release(void *context, void *memory) {
    (void)context;
    if (memory) sample_blocks--;
    free(memory);
}

static void sample_log(void *context, uint32_t level, ent_str text) {
    (void)context;
    (void)level;
    (void)text;
}

static void *sample_call_allocate(void *context, size_t size_bytes) {
    (void)context;
    sample_block *block = malloc(sizeof *block + size_bytes);
    block->next = sample_call_blocks;
    sample_call_blocks = block;
    return block + 1;
}

static void sample_fail(void *context, ent_str text) {
    (void)context;
    snprintf(sample_failure, sizeof sample_failure, "%.*s", (int)text.size, text.data);
}

static const ent_host sample_host = {
    {sizeof(ent_host), ENT_STRUCT_HOST, NULL}, NULL, sample_allocate, sample_release, sample_log};
static const ent_call sample_call = {
    .head = {sizeof(ent_call), ENT_STRUCT_CALL, NULL}, .allocate = sample_call_allocate, .fail = sample_fail};
static ent_device sample_device = {&sample_host};

static inline void sample_begin(void) {
    sample_failure[0] = 0;
}

/* Frees the calls' bytes; a plugin part that kept memory fails the test. */
static inline void sample_end(void) {
    while (sample_call_blocks) {
        sample_block *next = sample_call_blocks->next;
        free(sample_call_blocks);
        sample_call_blocks = next;
    }
    ck_assert_int_eq(sample_blocks, 0);
}

/* ---- messages ---- */

static inline void sample_value(ent_message_writer *w, uint64_t id, uint32_t dtype, const int64_t *dims,
                                uint32_t rank) {
    ent_message_record_begin(w, ENT_RECORD_value);
    ent_message_put_u64(w, ENT_FIELD_value_id, id);
    ent_message_put_u64(w, ENT_FIELD_value_dtype, dtype);
    ent_message_put_i64(w, ENT_FIELD_value_rank, rank);
    ent_message_put_i64s(w, ENT_FIELD_value_dims, dims, rank);
    ent_message_record_end(w);
}

static inline void sample_symbol(ent_message_writer *w, const char *name, int64_t most) {
    ent_message_record_begin(w, ENT_RECORD_symbol);
    ent_message_put_text(w, ENT_FIELD_symbol_name, name);
    ent_message_put_i64(w, ENT_FIELD_symbol_min, 0);
    ent_message_put_i64(w, ENT_FIELD_symbol_max, most);
    ent_message_record_end(w);
}

static inline void sample_expr(ent_message_writer *w, uint32_t kind, int64_t a, int64_t b) {
    ent_message_record_begin(w, ENT_RECORD_expr);
    ent_message_put_u64(w, ENT_FIELD_expr_kind, kind);
    ent_message_put_i64(w, ENT_FIELD_expr_a, a);
    ent_message_put_i64(w, ENT_FIELD_expr_b, b);
    ent_message_record_end(w);
}

static inline void sample_node(ent_message_writer *w, uint64_t id, uint32_t op, const int64_t *inputs,
                               size_t input_count, int64_t output) {
    ent_message_record_begin(w, ENT_RECORD_node);
    ent_message_put_u64(w, ENT_FIELD_node_id, id);
    ent_message_put_u64(w, ENT_FIELD_node_op, op);
    ent_message_put_i64s(w, ENT_FIELD_node_inputs, inputs, input_count);
    ent_message_put_i64s(w, ENT_FIELD_node_outputs, &output, 1);
    ent_message_record_end(w);
}

static inline void sample_region(ent_message_writer *w, uint64_t offer, const int64_t *nodes, size_t count) {
    ent_message_record_begin(w, ENT_RECORD_region);
    ent_message_put_i64s(w, ENT_FIELD_region_nodes, nodes, count);
    ent_message_put_u64(w, ENT_FIELD_region_id, offer);
    ent_message_put_u64(w, ENT_FIELD_region_offer, offer);
    ent_message_record_end(w);
}

static inline void sample_port(ent_message_writer *w, uint64_t index, uint64_t value, bool is_output,
                               ent_layout layout) {
    ent_message_record_begin(w, ENT_RECORD_port);
    ent_message_put_u64(w, ENT_FIELD_port_owner_kind, 1);
    ent_message_put_u64(w, ENT_FIELD_port_index, index);
    ent_message_put_u64(w, ENT_FIELD_port_direction, is_output);
    ent_message_put_u64(w, ENT_FIELD_port_value, value);
    ent_message_put_layout(w, ENT_FIELD_port_layout, &layout);
    ent_message_record_end(w);
}

static inline void sample_ints(ent_message_writer *w, uint64_t node, const char *name, const int64_t *items,
                               size_t count) {
    ent_message_record_begin(w, ENT_RECORD_attribute);
    ent_message_put_u64(w, ENT_FIELD_attribute_node, node);
    ent_message_put_text(w, ENT_FIELD_attribute_name, name);
    ent_message_put_u64(w, ENT_FIELD_attribute_type, ENT_ATTR_INTS);
    ent_message_put_i64s(w, ENT_FIELD_attribute_ints, items, count);
    ent_message_record_end(w);
}

/* Values and nodes of y = Transpose(Relu(x + b)): x 10 [1,3,2,2], b 11 [1,3,1,1], y 14 [1,2,2,3]. Nodes 20,
 * 21, 22. */
static inline void sample_body(ent_message_writer *w) {
    static const int64_t x[] = {1, 3, 2, 2}, b[] = {1, 3, 1, 1}, y[] = {1, 2, 2, 3}, perm[] = {0, 2, 3, 1};
    static const int64_t add[] = {10, 11}, relu[] = {12}, transpose[] = {13};
    sample_value(w, 10, ENT_DTYPE_F32, x, 4);
    sample_value(w, 11, ENT_DTYPE_F32, b, 4);
    sample_value(w, 12, ENT_DTYPE_F32, x, 4);
    sample_value(w, 13, ENT_DTYPE_F32, x, 4);
    sample_value(w, 14, ENT_DTYPE_F32, y, 4);
    sample_node(w, 20, ENT_OP_Add, add, 2, 12);
    sample_node(w, 21, ENT_OP_Relu, relu, 1, 13);
    sample_node(w, 22, ENT_OP_Transpose, transpose, 1, 14);
    sample_ints(w, 22, "perm", perm, 4);
}

/* The whole region; x may be stored channels-last. */
static inline ent_bytes sample_message(ent_message_writer *w, bool channels_last) {
    static const int64_t nodes[] = {20, 21, 22};
    ent_common_writer(w, &sample_call, ENT_MESSAGE_region);
    sample_body(w);
    sample_region(w, 7, nodes, 3);
    sample_port(w, 0, 10, false, channels_last ? ent_layout_channels_last(4) : ent_layout_plain(4));
    sample_port(w, 1, 11, false, ent_layout_plain(4));
    sample_port(w, 2, 14, true, ent_layout_plain(4));
    ck_assert_int_eq(ent_message_end(w), ENT_OK);
    return (ent_bytes){w->data, w->size};
}

static inline int sample_run(const char *name, TCase *test) {
    Suite *suite = suite_create(name);
    tcase_add_checked_fixture(test, sample_begin, sample_end);
    tcase_set_timeout(test, 120);
    suite_add_tcase(suite, test);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}

#endif
