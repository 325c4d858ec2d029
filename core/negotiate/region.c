/* Frozen graph and offers -> message records: what a plugin sees of the graph. */
#include "core/negotiate/internal.h"

#include <string.h>

typedef struct grow_room {
    ent_arena *arena;
    size_t size;
} grow_room;

static void *grow_in_arena(void *context, void *old, size_t size_bytes) {
    grow_room *room = context;
    void *fresh = ent_arena_array(room->arena, size_bytes, 1);
    if (fresh && old) memcpy(fresh, old, room->size);
    room->size = size_bytes;
    return fresh;
}

void ent_negotiate_writer_init(ent_message_writer *writer, ent_arena *arena, uint32_t kind) {
    grow_room *room = ent_arena_alloc(arena, sizeof *room);
    room->arena = arena;
    memset(writer, 0, sizeof *writer);
    writer->grow = grow_in_arena;
    writer->ctx = room;
    ent_message_begin(writer, kind);
}

/* Dims of later values name these entries. */
void ent_negotiate_write_sizes(ent_message_writer *writer, const ent_size_table *sizes) {
    if (sizes->exprs.count == 0) return;
    for (uint32_t i = 0; i < sizes->symbols.count; i++) {
        const ent_symbol *symbol = &sizes->module->symbols.items[sizes->symbols.items[i]];
        ent_message_record_begin(writer, ENT_RECORD_symbol);
        ent_message_put_text(writer, ENT_FIELD_symbol_name, symbol->name);
        ent_message_put_i64(writer, ENT_FIELD_symbol_min, symbol->min);
        ent_message_put_i64(writer, ENT_FIELD_symbol_max, symbol->max);
        ent_message_record_end(writer);
    }
    for (uint32_t i = 0; i < sizes->exprs.count; i++) {
        ent_message_record_begin(writer, ENT_RECORD_expr);
        ent_message_put_u64(writer, ENT_FIELD_expr_kind, sizes->exprs.items[i].kind);
        ent_message_put_i64(writer, ENT_FIELD_expr_a, sizes->exprs.items[i].a);
        ent_message_put_i64(writer, ENT_FIELD_expr_b, sizes->exprs.items[i].b);
        ent_message_record_end(writer);
    }
}

void ent_negotiate_write_all_sizes(ent_message_writer *writer, const ent_module *module, ent_arena *arena,
                                   ent_size_table *out) {
    ent_size_table_init(out, module, arena);
    for (uint32_t v = 0; v < module->values.count; v++) ent_size_table_add_value(out, v);
    ent_negotiate_write_sizes(writer, out);
}

static void write_value(ent_message_writer *writer, ent_size_table *sizes, uint32_t id) {
    const ent_value *value = ent_module_value(sizes->module, id);
    int64_t dims[ENT_MAX_RANK];
    ent_message_record_begin(writer, ENT_RECORD_value);
    ent_message_put_u64(writer, ENT_FIELD_value_id, id);
    ent_message_put_text(writer, ENT_FIELD_value_name, value->name);
    ent_message_put_u64(writer, ENT_FIELD_value_dtype, value->dtype);
    bool known = value->rank != ENT_RANK_UNKNOWN;
    ent_message_put_i64(writer, ENT_FIELD_value_rank, known ? (int64_t)value->rank : -1);
    for (uint32_t i = 0; known && i < value->rank; i++) dims[i] = ent_size_table_dim(sizes, value->dims[i]);
    ent_message_put_i64s(writer, ENT_FIELD_value_dims, dims, known ? value->rank : 0);
    ent_message_put_u64(writer, ENT_FIELD_value_graph, value->graph);
    if (value->constant) {
        ent_message_put_u64(writer, ENT_FIELD_value_constant_hash_low, value->constant->hash.low);
        ent_message_put_u64(writer, ENT_FIELD_value_constant_hash_high, value->constant->hash.high);
        ent_message_put_u64(writer, ENT_FIELD_value_constant_bytes, value->constant->tensor.size_bytes);
    }
    ent_message_record_end(writer);
}

void ent_negotiate_write_values(ent_message_writer *writer, ent_size_table *sizes, const uint32_t *values,
                                uint32_t count) {
    for (uint32_t i = 0; i < count; i++) write_value(writer, sizes, values[i]);
}

static void write_attribute(ent_message_writer *writer, uint32_t owner, uint32_t owner_kind,
                            const ent_attr *attr) {
    ent_message_record_begin(writer, ENT_RECORD_attribute);
    ent_message_put_u64(writer, ENT_FIELD_attribute_node, owner);
    ent_message_put_u64(writer, ENT_FIELD_attribute_owner_kind, owner_kind);
    ent_message_put_str(writer, ENT_FIELD_attribute_name, attr->name);
    ent_message_put_u64(writer, ENT_FIELD_attribute_type, attr->type);
    ent_message_put_i64(writer, ENT_FIELD_attribute_i, attr->i);
    ent_message_put_f64(writer, ENT_FIELD_attribute_f, attr->f);
    if (attr->type == ENT_ATTR_STRING) ent_message_put_str(writer, ENT_FIELD_attribute_s, attr->s);
    if (attr->type == ENT_ATTR_INTS)
        ent_message_put_i64s(writer, ENT_FIELD_attribute_ints, attr->ints, attr->count);
    if (attr->type == ENT_ATTR_FLOATS)
        ent_message_put_f64s(writer, ENT_FIELD_attribute_floats, attr->floats, attr->count);
    if (attr->type == ENT_ATTR_TENSOR && attr->tensor) {
        ent_message_put_u64(writer, ENT_FIELD_attribute_tensor_dtype, attr->tensor->dtype);
        ent_message_put_i64s(writer, ENT_FIELD_attribute_tensor_dims, attr->tensor->dims, attr->tensor->rank);
        ent_message_put_bytes(writer, ENT_FIELD_attribute_tensor_bytes, attr->tensor->data,
                              attr->tensor->size_bytes);
    }
    ent_message_record_end(writer);
}

void ent_negotiate_write_node(ent_message_writer *writer, const ent_module *module, uint32_t id) {
    const ent_node *node = ent_module_node(module, id);
    ent_message_record_begin(writer, ENT_RECORD_node);
    ent_message_put_u64(writer, ENT_FIELD_node_id, id);
    ent_message_put_u64(writer, ENT_FIELD_node_op, node->op);
    ent_message_put_text(writer, ENT_FIELD_node_name, node->name);
    ent_message_put_u64(writer, ENT_FIELD_node_graph, node->graph);
    ent_message_put_u32s(writer, ENT_FIELD_node_inputs, node->inputs, node->input_count);
    ent_message_put_u32s(writer, ENT_FIELD_node_outputs, node->outputs, node->output_count);
    ent_message_put_u32s(writer, ENT_FIELD_node_origins, node->origins, node->origin_count);
    ent_message_record_end(writer);
    for (uint32_t i = 0; i < node->attrs.count; i++) write_attribute(writer, id, 0, &node->attrs.items[i]);
}

void ent_negotiate_write_overlay(ent_message_writer *writer, const ent_module *module, uint32_t id) {
    const ent_overlay *overlay = &module->overlays.items[id];
    ent_message_record_begin(writer, ENT_RECORD_overlay);
    ent_message_put_u64(writer, ENT_FIELD_overlay_id, id);
    ent_message_put_u64(writer, ENT_FIELD_overlay_op, overlay->op);
    ent_message_put_text(writer, ENT_FIELD_overlay_name, overlay->name);
    ent_message_put_u64(writer, ENT_FIELD_overlay_graph, overlay->graph);
    ent_message_put_u32s(writer, ENT_FIELD_overlay_inputs, overlay->inputs, overlay->input_count);
    ent_message_put_u32s(writer, ENT_FIELD_overlay_outputs, overlay->outputs, overlay->output_count);
    ent_message_put_u32s(writer, ENT_FIELD_overlay_nodes, overlay->nodes, overlay->node_count);
    ent_message_record_end(writer);
    for (uint32_t i = 0; i < overlay->attrs.count; i++)
        write_attribute(writer, id, 1, &overlay->attrs.items[i]);
}

static void write_ports(ent_message_writer *writer, const ent_module *module, const ent_offer *offer) {
    for (uint32_t i = 0; i < offer->port_count; i++) {
        const ent_offer_port *port = &offer->ports[i];
        ent_message_record_begin(writer, ENT_RECORD_port);
        ent_message_put_u64(writer, ENT_FIELD_port_owner, offer->id);
        ent_message_put_u64(writer, ENT_FIELD_port_owner_kind, 1);
        ent_message_put_u64(writer, ENT_FIELD_port_index, i);
        ent_message_put_u64(writer, ENT_FIELD_port_direction, port->is_output ? 1 : 0);
        ent_message_put_u64(writer, ENT_FIELD_port_value, port->value);
        ent_message_put_layout(writer, ENT_FIELD_port_layout, &port->layout);
        ent_message_put_u64(writer, ENT_FIELD_port_dtype, ent_module_value(module, port->value)->dtype);
        ent_message_record_end(writer);
    }
}

/* Writes the offer's region record and its ports; values and nodes come before (write_offer_body). */
void ent_negotiate_write_region(ent_message_writer *writer, const ent_negotiate_session *session,
                                const ent_offer *offer) {
    uint32_t input_count = 0, output_count = 0;
    uint32_t *inputs = ent_arena_array(session->arena, offer->port_count + 1, sizeof *inputs);
    uint32_t *outputs = ent_arena_array(session->arena, offer->port_count + 1, sizeof *outputs);
    if (!inputs || !outputs) {
        writer->failed = true;
        return;
    }
    for (uint32_t i = 0; i < offer->port_count; i++)
        if (offer->ports[i].is_output)
            outputs[output_count++] = offer->ports[i].value;
        else
            inputs[input_count++] = offer->ports[i].value;
    ent_message_record_begin(writer, ENT_RECORD_region);
    ent_message_put_u64(writer, ENT_FIELD_region_graph, offer->graph);
    ent_message_put_u32s(writer, ENT_FIELD_region_nodes, offer->nodes, offer->node_count);
    ent_message_put_u32s(writer, ENT_FIELD_region_inputs, inputs, input_count);
    ent_message_put_u32s(writer, ENT_FIELD_region_outputs, outputs, output_count);
    ent_message_put_u32s(writer, ENT_FIELD_region_overlays, offer->overlays, offer->overlay_count);
    ent_message_put_u64(writer, ENT_FIELD_region_id, offer->id);
    ent_message_put_u64(writer, ENT_FIELD_region_offer, offer->id);
    ent_message_record_end(writer);
    write_ports(writer, session->module, offer);
}

/* Every value that the offer's leaves touch, once, in order of first use. */
static uint32_t touched_values(const ent_negotiate_session *session, const ent_offer *offer, ent_arena *arena,
                               uint32_t **out) {
    const ent_module *module = session->module;
    ent_map *seen = ent_map_create(arena);
    ENT_ARRAY(uint32_t) list = {0};
    for (uint32_t i = 0; i < offer->node_count; i++) {
        const ent_node *node = ent_module_node(module, offer->nodes[i]);
        for (uint32_t k = 0; k < node->input_count + node->output_count; k++) {
            uint32_t id = k < node->input_count ? node->inputs[k] : node->outputs[k - node->input_count];
            if (id == ENT_ID_NONE || ent_map_find_u64(seen, id, NULL)) continue;
            ent_map_set_u64(seen, id, 1);
            ent_array_push(arena, &list, id);
        }
    }
    *out = list.items;
    return list.count;
}

ent_status ent_negotiate_region(const ent_negotiate_session *session, const ent_offer *offer,
                                ent_arena *arena, ent_bytes *out) {
    ent_message_writer writer;
    ent_negotiate_writer_init(&writer, arena, ENT_MESSAGE_region);
    uint32_t *values = NULL;
    uint32_t count = touched_values(session, offer, arena, &values);
    ent_size_table sizes;
    ent_size_table_init(&sizes, session->module, arena);
    for (uint32_t i = 0; i < count; i++) ent_size_table_add_value(&sizes, values[i]);
    ent_negotiate_write_sizes(&writer, &sizes);
    ent_negotiate_write_values(&writer, &sizes, values, count);
    for (uint32_t i = 0; i < offer->node_count; i++)
        ent_negotiate_write_node(&writer, session->module, offer->nodes[i]);
    for (uint32_t i = 0; i < offer->overlay_count; i++)
        ent_negotiate_write_overlay(&writer, session->module, offer->overlays[i]);
    ent_negotiate_write_region(&writer, session, offer);
    if (ent_message_end(&writer) != ENT_OK) return ent_status_out_of_memory();
    out->data = writer.data;
    out->size = writer.size;
    return NULL;
}
