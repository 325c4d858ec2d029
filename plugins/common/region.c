/* Region messages -> something that runs through core/ops.
 *
 * Decoding is two passes over the records: the first counts, the second fills arrays of one block chain. Ids
 * of the sender become indices. Nodes come in an order in which inputs are ready (senders write them so; it
 * is checked). Intermediates get offsets by first fit over their lifetimes, so that a run allocates nothing.
 */
#include "plugins/common/common.h"

#include <string.h>

#define NONE UINT32_MAX
#define MAX_ITEMS (1u << 20)

/* Everything of a region is released together: blocks are chained. */
typedef struct chain {
    struct chain *next;
} chain;

static void *take(ent_common_region *region, size_t size_bytes) {
    chain *block = ent_common_allocate(region->host, sizeof(chain) + 64 + size_bytes);
    if (!block) return NULL;
    block->next = region->block;
    region->block = block;
    return (uint8_t *)block + 64;
}

void ent_common_region_destroy(ent_common_region *region) {
    if (!region) return;
    const ent_host *host = region->host;
    ent_common_sizes_release(&region->sizes);
    for (chain *block = region->block; block;) {
        chain *next = block->next;
        ent_common_release(host, block);
        block = next;
    }
    ent_common_release(host, region);
}

typedef struct decoder {
    const ent_host *host;
    const ent_call *call;
    ent_common_region *region;
    uint32_t *node_ids;   /* per node: sender's id */
    uint32_t *attr_count; /* per node */
    ent_attr **attrs;     /* per node, filled as they come */
    uint32_t values, nodes, ports, attributes;
} decoder;

static ent_code bad(const decoder *d, const char *what) {
    return ent_common_fail(d->call, ENT_CODE_BAD_MESSAGE, "region message: %s", what);
}

static ent_code count_records(decoder *d, ent_message_reader *reader) {
    ent_message_record record;
    while (ent_message_next(reader, &record)) {
        d->values += record.tag == ENT_RECORD_value;
        d->nodes += record.tag == ENT_RECORD_node;
        d->ports += record.tag == ENT_RECORD_port;
        d->attributes += record.tag == ENT_RECORD_attribute;
    }
    ent_message_rewind(reader);
    if (d->nodes == 0 || d->values > MAX_ITEMS || d->nodes > MAX_ITEMS || d->ports > MAX_ITEMS)
        return bad(d, "no nodes, or too much");
    ent_common_region *r = d->region;
    r->values = take(r, d->values * sizeof *r->values + 1);
    r->nodes = take(r, d->nodes * sizeof *r->nodes + 1);
    r->ports = take(r, d->ports * sizeof *r->ports + 1);
    d->node_ids = take(r, d->nodes * sizeof *d->node_ids + 1);
    d->attr_count = take(r, d->nodes * sizeof *d->attr_count + 1);
    d->attrs = take(r, d->nodes * sizeof *d->attrs + 1);
    bool whole = r->values && r->nodes && r->ports && d->node_ids && d->attr_count && d->attrs;
    return whole ? ENT_OK : ent_common_fail(d->call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a region");
}

static uint32_t find_value(const ent_common_region *r, uint64_t id) {
    for (uint32_t i = 0; i < r->value_count; i++)
        if (r->values[i].id == id) return i;
    return NONE;
}

static ent_code read_value(decoder *d, const ent_message_record *record) {
    ent_common_value *v = &d->region->values[d->region->value_count];
    int64_t rank = ent_message_get_i64(record, ENT_FIELD_value_rank);
    v->id = ent_message_get_u64(record, ENT_FIELD_value_id);
    v->tensor.dtype = (uint32_t)ent_message_get_u64(record, ENT_FIELD_value_dtype);
    v->port = NONE;
    if (rank < 0 || rank > ENT_MAX_RANK || ent_dtype_bits(v->tensor.dtype) == 0)
        return bad(d, "a value has no known rank or type");
    if (ent_message_get_i64s(record, ENT_FIELD_value_dims, v->dims, ENT_MAX_RANK) != (uint32_t)rank)
        return bad(d, "a value's dims do not fit its rank");
    const ent_common_sizes *sizes = &d->region->sizes;
    for (int64_t i = 0; i < rank; i++) {
        if (v->dims[i] >= 0) continue;
        if ((uint64_t)~v->dims[i] >= sizes->expr_count) return bad(d, "a dim names a size that is not there");
        if (sizes->unbounded[~v->dims[i]])
            return ent_common_fail(d->call, ENT_CODE_UNSUPPORTED, "a dimension is known only while it runs");
    }
    v->tensor.rank = (uint32_t)rank;
    v->tensor.layout = ent_layout_plain((uint32_t)rank);
    if (find_value(d->region, v->id) != NONE) return bad(d, "a value id occurs twice");
    d->region->value_count++;
    return ENT_OK;
}

static const uint32_t *read_ids(decoder *d, const ent_message_record *record, uint32_t field,
                                uint32_t *out_count) {
    ent_message_array array = ent_message_get_array(record, field);
    uint32_t *ids = take(d->region, (array.count + 1) * sizeof *ids);
    if (!ids) return NULL;
    for (uint32_t i = 0; i < array.count; i++) {
        int64_t id = ent_message_i64_at(array, i);
        ids[i] = id < 0 ? NONE : find_value(d->region, (uint64_t)id);
        if (id >= 0 && ids[i] == NONE) return NULL;
    }
    *out_count = array.count;
    return ids;
}

static ent_code read_node(decoder *d, const ent_message_record *record) {
    ent_common_node *node = &d->region->nodes[d->region->node_count];
    node->op = (uint32_t)ent_message_get_u64(record, ENT_FIELD_node_op);
    if (!ent_op_info_get(node->op)) return bad(d, "a node has an operator that this version does not know");
    node->inputs = read_ids(d, record, ENT_FIELD_node_inputs, &node->input_count);
    node->outputs = read_ids(d, record, ENT_FIELD_node_outputs, &node->output_count);
    if (!node->inputs || !node->outputs) return bad(d, "a node names a value that comes later or not at all");
    d->node_ids[d->region->node_count++] = (uint32_t)ent_message_get_u64(record, ENT_FIELD_node_id);
    return ENT_OK;
}

static const int64_t *copy_i64s(decoder *d, const ent_message_record *record, uint32_t field,
                                uint32_t *out_count) {
    ent_message_array array = ent_message_get_array(record, field);
    int64_t *items = take(d->region, (array.count + 1) * sizeof *items);
    for (uint32_t i = 0; items && i < array.count; i++) items[i] = ent_message_i64_at(array, i);
    *out_count = array.count;
    return items;
}

static ent_str copy_str(decoder *d, ent_str text) {
    char *data = take(d->region, text.size + 1);
    if (data && text.size) memcpy(data, text.data, text.size);
    return (ent_str){data, data ? text.size : 0};
}

static bool read_tensor(decoder *d, const ent_message_record *record, ent_attr *attr) {
    ent_tensor *tensor = take(d->region, sizeof *tensor);
    if (!tensor) return false;
    tensor->dtype = (uint32_t)ent_message_get_u64(record, ENT_FIELD_attribute_tensor_dtype);
    tensor->rank = ent_message_get_i64s(record, ENT_FIELD_attribute_tensor_dims, tensor->dims, ENT_MAX_RANK);
    if (tensor->rank > ENT_MAX_RANK) return false;
    tensor->layout = ent_layout_plain(tensor->rank);
    ent_str bytes = copy_str(d, ent_message_get_str(record, ENT_FIELD_attribute_tensor_bytes));
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] < 0) return false;
    tensor->data = (void *)(uintptr_t)bytes.data;
    tensor->size_bytes = bytes.size;
    attr->tensor = tensor;
    return tensor->data &&
           ent_layout_bytes(&tensor->layout, tensor->dtype, tensor->dims) == (int64_t)bytes.size;
}

/* Attributes follow their node; those of overlays (owner_kind 1) say nothing about leaves. */
static ent_code read_attribute(decoder *d, const ent_message_record *record) {
    if (ent_message_get_u64(record, ENT_FIELD_attribute_owner_kind) != 0) return ENT_OK;
    uint64_t owner = ent_message_get_u64(record, ENT_FIELD_attribute_node);
    uint32_t last = d->region->node_count - 1;
    if (d->region->node_count == 0 || d->node_ids[last] != owner)
        return bad(d, "an attribute does not follow its node");
    if (!d->attrs[last]) d->attrs[last] = take(d->region, (d->attributes + 1) * sizeof **d->attrs);
    if (!d->attrs[last] || d->attr_count[last] >= d->attributes) return bad(d, "too many attributes");
    ent_attr *attr = &d->attrs[last][d->attr_count[last]++];
    attr->name = copy_str(d, ent_message_get_str(record, ENT_FIELD_attribute_name));
    attr->type = (uint32_t)ent_message_get_u64(record, ENT_FIELD_attribute_type);
    attr->i = ent_message_get_i64(record, ENT_FIELD_attribute_i);
    attr->f = ent_message_get_f64(record, ENT_FIELD_attribute_f);
    attr->s = copy_str(d, ent_message_get_str(record, ENT_FIELD_attribute_s));
    if (attr->type == ENT_ATTR_INTS)
        attr->ints = copy_i64s(d, record, ENT_FIELD_attribute_ints, &attr->count);
    if (attr->type == ENT_ATTR_FLOATS) /* the same eight bytes an element */
        attr->floats =
            (const double *)(const void *)copy_i64s(d, record, ENT_FIELD_attribute_floats, &attr->count);
    if (attr->type == ENT_ATTR_TENSOR && !read_tensor(d, record, attr))
        return bad(d, "a tensor attribute does not fit its dims");
    d->region->nodes[last].attrs = (ent_attrs){d->attrs[last], d->attr_count[last]};
    return ENT_OK;
}

static ent_code read_port(decoder *d, const ent_message_record *record) {
    uint64_t index = ent_message_get_u64(record, ENT_FIELD_port_index);
    uint32_t value = find_value(d->region, ent_message_get_u64(record, ENT_FIELD_port_value));
    if (index != d->region->port_count || value == NONE || d->region->values[value].port != NONE)
        return bad(d, "ports must be in order, each of another value");
    ent_common_value *v = &d->region->values[value];
    ent_layout layout;
    if (!ent_message_get_layout(record, ENT_FIELD_port_layout, &layout))
        return bad(d, "a port's layout is none");
    if (layout.kind == ENT_LAYOUT_OPAQUE ||
        (layout.kind == ENT_LAYOUT_STRIDED && layout.rank != v->tensor.rank))
        return ent_common_fail(d->call, ENT_CODE_UNSUPPORTED,
                               "port %llu has a layout that this plugin does not read",
                               (unsigned long long)index);
    if (layout.kind == ENT_LAYOUT_STRIDED) v->tensor.layout = layout;
    v->port = (uint32_t)index;
    d->region->ports[d->region->port_count++] = value;
    return ENT_OK;
}

static ent_code read_records(decoder *d, ent_message_reader *reader) {
    ent_message_record record;
    ent_code code = ENT_OK;
    while (code == ENT_OK && ent_message_next(reader, &record)) {
        switch (record.tag) {
        case ENT_RECORD_value:
            code = read_value(d, &record);
            break;
        case ENT_RECORD_node:
            code = read_node(d, &record);
            break;
        case ENT_RECORD_attribute:
            code = read_attribute(d, &record);
            break;
        case ENT_RECORD_port:
            code = read_port(d, &record);
            break;
        default:
            break;
        }
    }
    return code;
}

/* ---- checks and placement ---- */

static ent_code check_order(decoder *d) {
    ent_common_region *r = d->region;
    for (uint32_t i = 0; i < r->value_count; i++) r->values[i].first = r->values[i].last = NONE;
    for (uint32_t n = 0; n < r->node_count; n++) {
        const ent_common_node *node = &r->nodes[n];
        for (uint32_t k = 0; k < node->input_count; k++) {
            uint32_t v = node->inputs[k];
            if (v == NONE) continue;
            if (r->values[v].first == NONE && r->values[v].port == NONE)
                return bad(d, "a node reads a value that nothing made");
            r->values[v].last = n;
        }
        for (uint32_t k = 0; k < node->output_count; k++) {
            uint32_t v = node->outputs[k];
            if (v == NONE) continue;
            if (r->values[v].first != NONE) return bad(d, "a value is made twice");
            r->values[v].first = n;
            if (r->values[v].last == NONE) r->values[v].last = n;
            r->values[v].written = true;
        }
        uint32_t dtype = node->input_count && node->inputs[0] != NONE
                             ? r->values[node->inputs[0]].tensor.dtype
                             : ENT_DTYPE_F32;
        if (!ent_ops_supported(node->op, dtype))
            return ent_common_fail(d->call, ENT_CODE_UNSUPPORTED, "%s on %s has no reference evaluation",
                                   ent_op_info_get(node->op)->name, ent_dtype_name(dtype));
    }
    return ENT_OK;
}

/* First fit by start: an intermediate goes to the lowest offset that no overlapping one takes. */
static void place(ent_common_region *r, uint32_t index) {
    ent_common_value *v = &r->values[index];
    uint64_t at = 0, size = (v->tensor.size_bytes + 63) & ~UINT64_C(63);
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < r->value_count; i++) {
            const ent_common_value *o = &r->values[i];
            if (i == index || o->port != NONE || o->offset == UINT64_MAX || o->first == NONE) continue;
            if (o->last < v->first || o->first > v->last) continue;
            uint64_t end = o->offset + ((o->tensor.size_bytes + 63) & ~UINT64_C(63));
            if (o->offset < at + size && at < end) {
                at = end;
                moved = true;
            }
        }
    }
    v->offset = at;
    if (at + size > r->scratch_bytes) r->scratch_bytes = at + size;
}

static ent_code make_room(decoder *d) {
    ent_common_region *r = d->region;
    uint32_t inputs = 1, outputs = 1;
    for (uint32_t n = 0; n < r->node_count; n++) {
        inputs = r->nodes[n].input_count > inputs ? r->nodes[n].input_count : inputs;
        outputs = r->nodes[n].output_count > outputs ? r->nodes[n].output_count : outputs;
    }
    r->inputs = take(r, inputs * sizeof *r->inputs);
    r->outputs = take(r, outputs * sizeof *r->outputs);
    if (!r->inputs || !r->outputs)
        return ent_common_fail(d->call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a region");
    return ENT_OK;
}

/* False when the size does not exist. */
static bool size_value(const ent_common_region *r, ent_common_value *v) {
    ent_tensor *out = &v->tensor;
    for (uint32_t i = 0; i < v->tensor.rank; i++) {
        out->dims[i] = ent_dim_value(v->dims[i], r->sizes.values);
        if (out->dims[i] < 0) return false;
    }
    int64_t bytes = ent_layout_bytes(&out->layout, out->dtype, out->dims);
    out->size_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
    return bytes >= 0;
}

ent_code ent_common_region_resize(ent_common_region *r, const int64_t *symbols, uint32_t symbol_count) {
    if (symbol_count < r->sizes.symbol_count ||
        !ent_expr_evaluate(r->sizes.exprs, r->sizes.expr_count, symbols, symbol_count, r->sizes.values))
        return ENT_CODE_INVALID_ARGUMENT;
    r->scratch_bytes = 0;
    for (uint32_t i = 0; i < r->value_count; i++) {
        if (!size_value(r, &r->values[i])) return ENT_CODE_INVALID_ARGUMENT;
        r->values[i].offset = UINT64_MAX;
    }
    for (uint32_t i = 0; i < r->value_count; i++)
        if (r->values[i].port == NONE && r->values[i].first != NONE) place(r, i);
    return ENT_OK;
}

ent_code ent_common_region_create(const ent_host *host, const ent_call *call, const uint8_t *bytes,
                                  size_t size, ent_common_region **out) {
    ent_message_reader reader;
    ent_code code = ent_message_open(&reader, bytes, size);
    if (code != ENT_OK) return ent_common_fail(call, code, "the region message breaks the message form");
    ent_common_region *region = ent_common_allocate(host, sizeof *region);
    if (!region) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a region");
    region->host = host;
    decoder d = {.host = host, .call = call, .region = region};
    code = ent_common_sizes_read(host, call, &reader, &region->sizes);
    if (code == ENT_OK) code = count_records(&d, &reader);
    if (code == ENT_OK) code = read_records(&d, &reader);
    if (code == ENT_OK) code = check_order(&d);
    if (code == ENT_OK && region->sizes.symbol_count == 0 &&
        ent_common_region_resize(region, NULL, 0) != ENT_OK)
        code = bad(&d, "a value's size overflows");
    if (code == ENT_OK) code = make_room(&d);
    if (code == ENT_OK)
        *out = region;
    else
        ent_common_region_destroy(region);
    return code;
}

ent_code ent_common_region_run(ent_common_region *region, void *const *addresses, void *scratch,
                               ent_ops_error *error) {
    for (uint32_t i = 0; i < region->value_count; i++) {
        ent_common_value *v = &region->values[i];
        v->tensor.data = v->port != NONE           ? addresses[v->port]
                         : v->offset == UINT64_MAX ? NULL
                                                   : (uint8_t *)scratch + v->offset;
    }
    for (uint32_t n = 0; n < region->node_count; n++) {
        const ent_common_node *node = &region->nodes[n];
        for (uint32_t k = 0; k < node->input_count; k++)
            region->inputs[k] = node->inputs[k] == NONE ? NULL : &region->values[node->inputs[k]].tensor;
        for (uint32_t k = 0; k < node->output_count; k++)
            region->outputs[k] = node->outputs[k] == NONE ? NULL : &region->values[node->outputs[k]].tensor;
        ent_code code =
            ent_ops_evaluate(node->op, node->attrs, region->inputs, node->input_count, region->outputs,
                             node->output_count, ent_ops_memory_default(), error);
        if (code != ENT_OK) return code;
    }
    return ENT_OK;
}
