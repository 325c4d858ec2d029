/* Quotes and awards of plugins that run any region core/ops can evaluate.
 *
 * The values and nodes of a request stand once, in front of the regions that name them. They are sorted by
 * id, so that each region is a few binary searches. */
#include "plugins/common/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    uint64_t id;
    ent_message_record record; /* borrows the request's bytes */
} entry;

typedef struct table {
    entry *items;
    size_t count;
} table;

typedef struct quoter {
    const ent_host *host;
    const ent_call *call;
    table values, nodes;
    ent_common_sizes sizes;
    ent_message_writer *writer;
    uint64_t offer;        /* of the region being read */
    bool open;             /* there is one */
    const char *reason_id; /* of its first refusal; NULL so far */
    int64_t node, port;
    char text[192];
} quoter;

static int compare_entries(const void *a, const void *b) {
    uint64_t x = ((const entry *)a)->id, y = ((const entry *)b)->id;
    return (x > y) - (x < y);
}

static const ent_message_record *find(const table *where, uint64_t id) {
    entry key = {.id = id};
    const entry *found =
        where->count ? bsearch(&key, where->items, where->count, sizeof key, compare_entries) : NULL;
    return found ? &found->record : NULL;
}

/* Every record of a tag, by the id in its field 0. */
static bool collect(const quoter *q, ent_message_reader *reader, uint32_t tag, table *out) {
    ent_message_record record;
    size_t count = 0;
    ent_message_rewind(reader);
    while (ent_message_next(reader, &record)) count += record.tag == tag;
    out->items = ent_common_allocate(q->host, (count + 1) * sizeof *out->items);
    if (!out->items) return false;
    ent_message_rewind(reader);
    while (ent_message_next(reader, &record))
        if (record.tag == tag) out->items[out->count++] = (entry){ent_message_get_u64(&record, 0), record};
    qsort(out->items, out->count, sizeof *out->items, compare_entries);
    ent_message_rewind(reader);
    return true;
}

/* ---- one region ---- */

static void refuse(quoter *q, const char *reason_id, int64_t node, int64_t port, const char *text) {
    if (q->reason_id) return;
    q->reason_id = reason_id;
    q->node = node;
    q->port = port;
    snprintf(q->text, sizeof q->text, "%s", text);
}

static void check_value(quoter *q, int64_t node, uint64_t id) {
    const ent_message_record *value = find(&q->values, id);
    if (!value) {
        refuse(q, "message.value", node, -1, "the node names a value that the request does not hold");
        return;
    }
    uint64_t dtype = ent_message_get_u64(value, ENT_FIELD_value_dtype);
    int64_t rank = ent_message_get_i64(value, ENT_FIELD_value_rank);
    ent_message_array dims = ent_message_get_array(value, ENT_FIELD_value_dims);
    if (dtype >= ENT_DTYPE_COUNT || ent_dtype_bits((ent_dtype)dtype) == 0)
        refuse(q, "dtype.unsupported", node, -1, "core/ops holds no elements of this type");
    if (rank < 0 || rank > ENT_MAX_RANK || dims.count != (uint64_t)rank) {
        refuse(q, "rank.unknown", node, -1, "a value's rank is not known, or above 8");
        return;
    }
    for (uint32_t i = 0; i < dims.count; i++) {
        int64_t dim = ent_message_i64_at(dims, i);
        if (dim >= 0) continue;
        if ((uint64_t)~dim >= q->sizes.expr_count)
            refuse(q, "message.value", node, -1, "a dimension names a size that the request does not hold");
        else if (q->sizes.unbounded[~dim])
            refuse(q, "dims.open", node, -1, "a dimension is known only at run time");
    }
}

static uint64_t input_dtype(const quoter *q, ent_message_array inputs) {
    const ent_message_record *value =
        ent_message_i64_at(inputs, 0) >= 0 ? find(&q->values, ent_message_u64_at(inputs, 0)) : NULL;
    return inputs.count && value ? ent_message_get_u64(value, ENT_FIELD_value_dtype) : ENT_DTYPE_F32;
}

static void check_node(quoter *q, int64_t id) {
    const ent_message_record *node = id < 0 ? NULL : find(&q->nodes, (uint64_t)id);
    if (!node) {
        refuse(q, "message.node", id, -1, "the region names a node that the request does not hold");
        return;
    }
    uint64_t op = ent_message_get_u64(node, ENT_FIELD_node_op);
    ent_message_array inputs = ent_message_get_array(node, ENT_FIELD_node_inputs);
    ent_message_array outputs = ent_message_get_array(node, ENT_FIELD_node_outputs);
    uint64_t dtype = input_dtype(q, inputs);
    const ent_op_info *info = op < ENT_OP_COUNT ? ent_op_info_get((uint32_t)op) : NULL;
    if (!info || dtype >= ENT_DTYPE_COUNT || !ent_ops_supported((uint32_t)op, (uint32_t)dtype)) {
        char text[128];
        snprintf(text, sizeof text, "%s on %s has no evaluation in core/ops",
                 info ? info->name : "the operator",
                 ent_dtype_name(dtype < ENT_DTYPE_COUNT ? (ent_dtype)dtype : ENT_DTYPE_NONE));
        refuse(q, "node.unsupported", id, -1, text);
    }
    for (uint32_t i = 0; i < inputs.count && !q->reason_id; i++)
        if (ent_message_i64_at(inputs, i) >= 0) check_value(q, id, ent_message_u64_at(inputs, i));
    for (uint32_t i = 0; i < outputs.count && !q->reason_id; i++)
        if (ent_message_i64_at(outputs, i) >= 0) check_value(q, id, ent_message_u64_at(outputs, i));
}

static void check_port(quoter *q, const ent_message_record *record) {
    ent_layout layout;
    int64_t index = ent_message_get_i64(record, ENT_FIELD_port_index);
    if (!ent_message_get_layout(record, ENT_FIELD_port_layout, &layout) || layout.kind == ENT_LAYOUT_OPAQUE)
        refuse(q, "layout.unknown", -1, index, "the port's layout is none that this plugin reads");
}

static void begin_region(quoter *q, const ent_message_record *record) {
    ent_message_array nodes = ent_message_get_array(record, ENT_FIELD_region_nodes);
    q->open = true;
    q->offer = ent_message_get_u64(record, ENT_FIELD_region_offer);
    q->reason_id = NULL;
    if (nodes.count == 0) refuse(q, "message.region", -1, -1, "the region has no nodes");
    for (uint32_t i = 0; i < nodes.count && !q->reason_id; i++) check_node(q, ent_message_i64_at(nodes, i));
}

/* The quote's id follows from the offer, so that the same request gives the same bytes and award needs no
 * memory. */
static uint64_t quote_id(uint64_t offer) {
    return offer + 1;
}

static void end_region(quoter *q) {
    if (!q->open) return;
    q->open = false;
    ent_message_record_begin(q->writer, ENT_RECORD_verdict);
    ent_message_put_u64(q->writer, ENT_FIELD_verdict_offer, q->offer);
    ent_message_put_u64(q->writer, ENT_FIELD_verdict_kind,
                        q->reason_id ? ENT_VERDICT_DECLINE : ENT_VERDICT_ACCEPT);
    if (!q->reason_id) ent_message_put_u64(q->writer, ENT_FIELD_verdict_quote, quote_id(q->offer));
    ent_message_record_end(q->writer);
    if (!q->reason_id) return;
    ent_message_record_begin(q->writer, ENT_RECORD_reason);
    ent_message_put_u64(q->writer, ENT_FIELD_reason_offer, q->offer);
    ent_message_put_text(q->writer, ENT_FIELD_reason_id, q->reason_id);
    ent_message_put_i64(q->writer, ENT_FIELD_reason_node, q->node);
    ent_message_put_i64(q->writer, ENT_FIELD_reason_port, q->port);
    ent_message_put_text(q->writer, ENT_FIELD_reason_text, q->text);
    ent_message_record_end(q->writer);
}

/* ---- messages ---- */

static ent_code open_request(const ent_call *call, const uint8_t *request, size_t size, uint32_t kind,
                             ent_message_reader *out) {
    ent_code code = ent_message_open(out, request, size);
    if (code != ENT_OK) return ent_common_fail(call, code, "the request breaks the message form");
    if (out->kind != kind)
        return ent_common_fail(call, ENT_CODE_BAD_MESSAGE, "the request is a message of kind %u, not %u",
                               out->kind, kind);
    return ENT_OK;
}

static ent_code give(ent_message_writer *writer, const ent_call *call, ent_bytes *out) {
    ent_code code = ent_message_end(writer);
    if (code != ENT_OK) return ent_common_fail(call, code, "out of memory for a reply");
    *out = (ent_bytes){writer->data, writer->size};
    return ENT_OK;
}

ent_code ent_common_quote(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                          ent_bytes *out_reply) {
    ent_message_reader reader;
    ent_message_record record;
    ent_message_writer writer;
    ent_code code = open_request(call, request, size, ENT_MESSAGE_quote_request, &reader);
    if (code != ENT_OK) return code;
    quoter q = {.host = device->host, .call = call, .writer = &writer};
    ent_common_writer(&writer, call, ENT_MESSAGE_quote_reply);
    code = ent_common_sizes_read(q.host, call, &reader, &q.sizes);
    if (code == ENT_OK && (!collect(&q, &reader, ENT_RECORD_value, &q.values) ||
                           !collect(&q, &reader, ENT_RECORD_node, &q.nodes)))
        code = ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a quote");
    while (code == ENT_OK && ent_message_next(&reader, &record)) {
        if (record.tag == ENT_RECORD_region) {
            end_region(&q);
            begin_region(&q, &record);
        }
        if (record.tag == ENT_RECORD_port && q.open) check_port(&q, &record);
    }
    if (code == ENT_OK) {
        end_region(&q);
        code = give(&writer, call, out_reply);
    }
    ent_common_sizes_release(&q.sizes);
    ent_common_release(q.host, q.values.items);
    ent_common_release(q.host, q.nodes.items);
    return code;
}

ent_code ent_common_award(ent_device *device, const ent_call *call, const uint8_t *request, size_t size,
                          ent_bytes *out_reply) {
    (void)device;
    ent_message_reader reader;
    ent_message_record record;
    ent_message_writer writer;
    ent_code code = open_request(call, request, size, ENT_MESSAGE_award_request, &reader);
    if (code != ENT_OK) return code;
    ent_common_writer(&writer, call, ENT_MESSAGE_award_reply);
    while (ent_message_next(&reader, &record)) {
        if (record.tag != ENT_RECORD_award) continue;
        uint64_t offer = ent_message_get_u64(&record, ENT_FIELD_award_offer);
        bool known = ent_message_get_u64(&record, ENT_FIELD_award_quote) == quote_id(offer);
        ent_message_record_begin(&writer, ENT_RECORD_award_answer);
        ent_message_put_u64(&writer, ENT_FIELD_award_answer_offer, offer);
        ent_message_put_u64(&writer, ENT_FIELD_award_answer_accepted, known);
        ent_message_record_end(&writer);
        if (known) continue;
        ent_message_record_begin(&writer, ENT_RECORD_reason);
        ent_message_put_u64(&writer, ENT_FIELD_reason_offer, offer);
        ent_message_put_text(&writer, ENT_FIELD_reason_id, "quote.unknown");
        ent_message_put_i64(&writer, ENT_FIELD_reason_node, -1);
        ent_message_put_i64(&writer, ENT_FIELD_reason_port, -1);
        ent_message_put_text(&writer, ENT_FIELD_reason_text, "the award names a quote that was never given");
        ent_message_record_end(&writer);
    }
    return give(&writer, call, out_reply);
}
