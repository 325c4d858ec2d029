/* Common subexpressions: nodes of one graph with the same operator, attributes and inputs. Constants are
 * compared by content. */
#include "core/rewrite/internal.h"

#include <string.h>

static void key_attribute(ent_text *key, const ent_attr *attr) {
    ent_text_add(key, "|%.*s:%u:%lld:%a:", (int)attr->name.size, attr->name.data, attr->type,
                 (long long)attr->i, attr->f);
    if (attr->type == ENT_ATTR_STRING) ent_text_add_bytes(key, attr->s.data, attr->s.size);
    for (uint32_t i = 0; attr->type == ENT_ATTR_INTS && i < attr->count; i++)
        ent_text_add(key, ",%lld", (long long)attr->ints[i]);
    for (uint32_t i = 0; attr->type == ENT_ATTR_FLOATS && i < attr->count; i++)
        ent_text_add(key, ",%a", attr->floats[i]);
    if (attr->type == ENT_ATTR_TENSOR) {
        ent_hash128 hash = ent_hash_bytes(attr->tensor->data, attr->tensor->size_bytes);
        ent_text_add(key, "%llx%llx:%u", (unsigned long long)hash.low, (unsigned long long)hash.high,
                     attr->tensor->dtype);
    }
}

static void key_value(const ent_module *module, ent_text *key, uint32_t id) {
    const ent_constant *constant = id == ENT_ID_NONE ? NULL : ent_module_value(module, id)->constant;
    if (!constant) {
        ent_text_add(key, "|%u", id);
        return;
    }
    ent_text_add(key, "|c%llx%llx:%u", (unsigned long long)constant->hash.low,
                 (unsigned long long)constant->hash.high, constant->tensor.dtype);
    for (uint32_t i = 0; i < constant->tensor.rank; i++)
        ent_text_add(key, ",%lld", (long long)constant->tensor.dims[i]);
}

ent_status ent_rewrite_share_equal(ent_rewrite_context *context) {
    ent_map *seen = ent_map_create(context->scratch);
    for (uint32_t g = 0; g < context->module->graphs.count; g++) {
        uint32_t at = 0, id;
        while (ent_graph_next(context->module, g, &at, &id)) {
            const ent_node *node = ent_module_node(context->module, id);
            ENT_TRY(ent_arena_check(context->module->arena, context->module->name));
            if (ent_op_info_get(node->op)->op_class == ENT_CLASS_CONTROL) continue;
            ent_text key;
            ent_text_init(&key, context->scratch);
            ent_text_add(&key, "%u|%u|%u", g, node->op, node->output_count);
            for (uint32_t i = 0; i < node->input_count; i++)
                key_value(context->module, &key, node->inputs[i]);
            for (uint32_t i = 0; i < node->attrs.count; i++) key_attribute(&key, &node->attrs.items[i]);
            uint64_t first = 0;
            if (!ent_map_find(seen, key.data, &first)) {
                ent_map_set(seen, key.data, id);
                continue;
            }
            const ent_node *twin = ent_module_node(context->module, first);
            bool same = true;
            for (uint32_t i = 0; i < node->output_count; i++)
                same &= (node->outputs[i] == ENT_ID_NONE) || (twin->outputs[i] != ENT_ID_NONE);
            for (uint32_t i = 0; same && i < node->output_count; i++)
                if (node->outputs[i] != ENT_ID_NONE)
                    ent_module_replace_value(context->module, node->outputs[i], twin->outputs[i]);
            if (same) ent_module_remove_node(context->module, id);
            context->changed |= same;
        }
    }
    return NULL;
}
