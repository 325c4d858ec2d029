/* Program values: one a form (device, layout) of a module value in a function; constants in the layouts that
 * regions want. */
#include "core/lower/internal.h"

#include <string.h>

#include "core/ops/ops.h"

uint32_t ent_lower_device(ent_lower_builder *b, uint32_t session_device) {
    if (b->device_index[session_device] != ENT_PROGRAM_NONE) return b->device_index[session_device];
    const ent_negotiate_device *device = &b->plan->session->devices[session_device];
    const char *colon = strchr(device->name, ':');
    ent_program_device entry = {device->name, device->host->plugin->name,
                                colon ? ent_arena_format(b->arena, "variant=%s", colon + 1) : ""};
    b->device_index[session_device] = b->devices.count;
    ent_array_push(b->arena, &b->devices, entry);
    return b->device_index[session_device];
}

uint32_t ent_lower_space_device(ent_lower_builder *b, uint32_t space) {
    uint32_t device = b->plan->spaces[space].device;
    return ent_lower_device(b, device == ENT_ID_NONE ? b->home : device);
}

static ent_lower_form *find_form(ent_lower_function *f, uint32_t value, uint32_t device,
                                 const ent_layout *layout) {
    uint64_t at = 0;
    if (!ent_map_find_u64(f->form_index, value, &at)) return NULL;
    for (uint32_t i = (uint32_t)at; i < f->forms.count; i++) {
        ent_lower_form *form = &f->forms.items[i];
        if (form->value == value && form->device == device && ent_layout_equal(&form->layout, layout))
            return form;
    }
    return NULL;
}

void ent_lower_add_form(ent_lower_builder *b, uint32_t graph, uint32_t value, uint32_t device,
                        const ent_layout *layout, uint32_t id) {
    ent_lower_function *f = &b->functions[graph];
    if (!ent_map_find_u64(f->form_index, value, NULL)) ent_map_set_u64(f->form_index, value, f->forms.count);
    ent_lower_form form = {value, device, *layout, id};
    ent_array_push(b->arena, &f->forms, form);
}

/* ent_layout_bytes for dims that are expressions. Elements smaller than a byte are padded row by row. */
static ent_dim size_of(ent_lower_builder *b, const ent_value *v, const ent_layout *layout) {
    ent_size_table *sizes = &b->sizes;
    ent_dim bytes = 1;
    bool is_static = true;
    for (uint32_t i = 0; i < v->rank; i++) is_static &= v->dims[i] >= 0;
    if (is_static) return ent_layout_bytes(layout, v->dtype, v->dims);
    for (uint32_t i = 0; i < layout->rank; i++) {
        int64_t block = 1;
        for (uint32_t k = 0; k < layout->block_count; k++)
            if (layout->block_axis[k] == layout->order[i]) block *= layout->block_size[k];
        ent_dim extent = ent_size_table_combine(sizes, ENT_EXPR_CEILDIV,
                                                ent_size_table_dim(sizes, v->dims[layout->order[i]]), block);
        if (i + 1 == layout->rank && layout->block_count == 0) {
            extent = ent_size_table_combine(sizes, ENT_EXPR_MUL, extent, ent_dtype_bits(v->dtype));
            extent = ent_size_table_combine(sizes, ENT_EXPR_CEILDIV, extent, 8);
        }
        bytes = ent_size_table_combine(sizes, ENT_EXPR_MUL, bytes, extent);
    }
    int64_t blocks = ent_dtype_bits(v->dtype) / 8;
    for (uint32_t k = 0; k < layout->block_count; k++) blocks *= layout->block_size[k];
    return layout->block_count ? ent_size_table_combine(sizes, ENT_EXPR_MUL, bytes, blocks) : bytes;
}

static uint32_t add_value(ent_lower_builder *b, uint32_t graph, uint32_t value, uint32_t kind,
                          uint32_t device, const ent_layout *layout, uint32_t index) {
    const ent_value *v = ent_module_value(b->module, value);
    ent_program_value p = {0};
    p.kind = kind;
    p.device = device;
    p.index = index;
    p.dtype = v->dtype;
    p.rank = v->rank;
    p.name = v->name;
    for (uint32_t i = 0; i < v->rank && i < ENT_MAX_RANK; i++)
        p.dims[i] = ent_size_table_dim(&b->sizes, v->dims[i]);
    p.layout = *layout;
    p.size_bytes = size_of(b, v, layout);
    ent_array_push(b->arena, &b->functions[graph].values, p);
    return b->functions[graph].values.count - 1;
}

uint32_t ent_lower_add_alias(ent_lower_builder *b, uint32_t graph, uint32_t value, const ent_layout *layout,
                             uint32_t of) {
    return add_value(b, graph, value, ENT_VALUE_ALIAS, b->functions[graph].values.items[of].device, layout,
                     of);
}

ent_status ent_lower_constant(ent_lower_builder *b, uint32_t value, const ent_layout *layout,
                              uint32_t *out_constant) {
    for (uint32_t i = 0; i < b->constant_forms.count; i++) {
        const ent_lower_form *form = &b->constant_forms.items[i];
        if (form->value == value && ent_layout_equal(&form->layout, layout)) {
            *out_constant = form->id;
            return NULL;
        }
    }
    const ent_constant *constant = ent_module_value(b->module, value)->constant;
    ent_tensor stored = constant->tensor;
    ent_layout plain = ent_layout_plain(stored.rank);
    int64_t bytes = ent_layout_bytes(layout, stored.dtype, stored.dims);
    stored.layout = *layout;
    stored.size_bytes = bytes < 0 ? 0 : (uint64_t)bytes;
    if (!ent_layout_equal(layout, &plain)) {
        ent_ops_error error = {0};
        stored.data = ent_arena_array(b->arena, stored.size_bytes + 64, 1);
        if (!stored.data) return ent_status_out_of_memory();
        if (ent_ops_convert(&constant->tensor, &stored, &error) != ENT_OK)
            return ent_status_make(b->arena, ENT_ERROR_INTERNAL, "lower.constant",
                                   ent_module_value(b->module, value)->name,
                                   "its layout cannot be changed: %s", error.text);
    }
    ent_program_constant entry = {constant->hash, stored.dtype, stored.rank,      {0},
                                  *layout,        stored.data,  stored.size_bytes};
    memcpy(entry.dims, stored.dims, sizeof entry.dims);
    *out_constant = b->constants.count;
    ent_array_push(b->arena, &b->constants, entry);
    ent_lower_form form = {value, 0, *layout, *out_constant};
    ent_array_push(b->arena, &b->constant_forms, form);
    return NULL;
}

static bool is_inside(const ent_module *module, uint32_t graph, uint32_t outer) {
    while (graph != outer) {
        uint32_t owner = ent_module_graph(module, graph)->owner;
        if (owner == ENT_ID_NONE) return false;
        graph = ent_module_node(module, owner)->graph;
    }
    return true;
}

ent_status ent_lower_value(ent_lower_builder *b, uint32_t graph, uint32_t value, uint32_t device,
                           const ent_layout *layout, uint32_t *out_id) {
    ent_lower_function *f = &b->functions[graph];
    ent_lower_form *known = find_form(f, value, device, layout);
    if (known) {
        *out_id = known->id;
        return NULL;
    }
    const ent_value *v = ent_module_value(b->module, value);
    uint32_t kind = ENT_VALUE_TEMPORARY, index = ENT_PROGRAM_NONE;
    if (v->constant) {
        kind = ENT_VALUE_CONSTANT;
        ENT_TRY(ent_lower_constant(b, value, layout, &index));
    } else if (v->graph != graph && is_inside(b->module, graph, v->graph)) {
        kind = ENT_VALUE_INPUT;
    }
    *out_id = add_value(b, graph, value, kind, device, layout, index);
    ent_lower_add_form(b, graph, value, device, layout, *out_id);
    if (kind == ENT_VALUE_INPUT) {
        ent_array_push(b->arena, &f->inputs, *out_id);
        ent_array_push(b->arena, &f->captures, f->forms.count - 1);
    }
    return NULL;
}
