/* Regions and converts -> kernels, through the plugins' compile. Equal requests share one kernel. */
#include "core/lower/internal.h"

#include <string.h>

#include "abi/ent_message.h"

static bool find_constant(void *user, uint64_t low, uint64_t high, ent_bytes *out) {
    const ent_module *module = user;
    for (uint32_t i = 0; i < module->values.count; i++) {
        const ent_constant *constant = module->values.items[i].constant;
        if (!constant || constant->hash.low != low || constant->hash.high != high) continue;
        *out = (ent_bytes){constant->tensor.data, constant->tensor.size_bytes};
        return true;
    }
    return false;
}

static void fail(ent_lower_builder *b, const ent_host_call *call, ent_code code, const char *device,
                 const char *verb) {
    b->failure = ent_status_text(b->arena, ent_host_call_status(call, code, device, verb));
}

/* The executor settles the tier: it is asked of the loaded kernel. Devices that cannot run here keep the
 * offer's claim. */
static bool ask_tier(ent_lower_builder *b, const ent_negotiate_device *device, ent_bytes blob,
                     uint32_t *tier) {
    const ent_runtime_v1 *runtime = device->host->runtime;
    if (!runtime || !runtime->kernel_load || !runtime->kernel_info) return true;
    ent_host_call call;
    ent_host_call_init(&call, b->arena, 0);
    ent_kernel *kernel = NULL;
    ent_code code = runtime->kernel_load(device->host->device, &call.call, blob.data, blob.size, &kernel);
    if (code != ENT_OK) {
        fail(b, &call, code, device->name, "kernel_load");
        return false;
    }
    ent_kernel_info info = {.size = sizeof info};
    if (runtime->kernel_info(kernel, &info) == ENT_OK && info.tier >= ENT_TIER_NATIVE &&
        info.tier <= ENT_TIER_EMULATED)
        *tier = info.tier;
    runtime->kernel_unload(kernel);
    return true;
}

static const char *ask_requirement(ent_lower_builder *b, const ent_negotiate_device *device, ent_bytes blob) {
    const ent_blob_v1 *api = device->host->blob;
    if (!api || !api->requirement) return "";
    ent_host_call call;
    ent_host_call_init(&call, b->arena, 0);
    ent_bytes text = {NULL, 0};
    if (api->requirement(device->host->plugin->state, &call.call, blob.data, blob.size, &text) != ENT_OK)
        return "";
    return ent_arena_strndup(b->arena, (const char *)text.data, text.size);
}

static void compile(ent_lower_builder *b, uint32_t session_device, uint32_t depth, uint32_t tier,
                    const char *name, ent_bytes request, uint32_t *out_kernel) {
    const ent_negotiate_device *device = &b->plan->session->devices[session_device];
    ent_hash128 hash = ent_hash_bytes(request.data, request.size);
    uint64_t known = 0, key = hash.low ^ (hash.high * 31 + session_device);
    *out_kernel = ENT_PROGRAM_NONE;
    if (ent_map_find_u64(b->kernel_of, key, &known)) {
        *out_kernel = (uint32_t)known;
        return;
    }
    if (!device->host->compile || !device->host->compile->compile) {
        b->failure = ent_arena_format(b->arena, "device '%s' offers no compile interface", device->name);
        return;
    }
    ent_host_call call;
    ent_host_call_init(&call, b->arena, b->plan->session->deadline_ns);
    call.constant = find_constant;
    call.user = (void *)b->module;
    ent_bytes blob = {NULL, 0};
    ent_code code = device->host->compile->compile(device->host->device, &call.call, depth, request.data,
                                                   request.size, &blob);
    if (code != ENT_OK || !blob.data) {
        fail(b, &call, code == ENT_OK ? ENT_CODE_INTERNAL : code, device->name, "compile");
        return;
    }
    if (!ask_tier(b, device, blob, &tier)) return;
    ent_program_kernel kernel = {ent_lower_device(b, session_device), depth,     tier,     name,
                                 ask_requirement(b, device, blob),    blob.data, blob.size};
    *out_kernel = b->kernels.count;
    ent_array_push(b->arena, &b->kernels, kernel);
    ent_map_set_u64(b->kernel_of, key, *out_kernel);
}

static ent_status encode(ent_lower_builder *b, const ent_tile_program *program, ent_bytes *out) {
    ent_str bytes;
    ENT_TRY(ent_tile_encode(program, b->arena, &bytes));
    *out = (ent_bytes){(const uint8_t *)bytes.data, bytes.size};
    return NULL;
}

ent_status ent_lower_offer_kernel(ent_lower_builder *b, const ent_offer *offer, uint32_t *out_kernel) {
    ent_bytes request;
    if (offer->kind == ENT_OFFER_TILE)
        ENT_TRY(encode(b, offer->program, &request));
    else
        ENT_TRY(ent_negotiate_region(b->plan->session, offer, b->arena, &request));
    compile(b, offer->device, offer->depth, offer->tier, offer->path, request, out_kernel);
    return NULL;
}

/* A region of one Identity whose two ports differ in layout: how a device without tile programs changes a
 * layout. */
static ent_status identity_region(ent_lower_builder *b, const ent_plan_convert *convert, ent_bytes *out) {
    const uint32_t node = 0, ids[2] = {0, 1};
    const ent_value *value = ent_module_value(b->module, convert->value);
    ent_message_writer writer;
    ent_size_table sizes;
    int64_t dims[ENT_MAX_RANK];
    ent_negotiate_writer_init(&writer, b->arena, ENT_MESSAGE_region);
    ent_size_table_init(&sizes, b->module, b->arena);
    for (uint32_t i = 0; i < value->rank; i++) dims[i] = ent_size_table_dim(&sizes, value->dims[i]);
    ent_negotiate_write_sizes(&writer, &sizes);
    for (uint32_t i = 0; i < 2; i++) {
        ent_message_record_begin(&writer, ENT_RECORD_value);
        ent_message_put_u64(&writer, ENT_FIELD_value_id, i);
        ent_message_put_u64(&writer, ENT_FIELD_value_dtype, value->dtype);
        ent_message_put_i64(&writer, ENT_FIELD_value_rank, value->rank);
        ent_message_put_i64s(&writer, ENT_FIELD_value_dims, dims, value->rank);
        ent_message_record_end(&writer);
    }
    ent_message_record_begin(&writer, ENT_RECORD_node);
    ent_message_put_u64(&writer, ENT_FIELD_node_id, node);
    ent_message_put_u64(&writer, ENT_FIELD_node_op, ENT_OP_Identity);
    ent_message_put_u32s(&writer, ENT_FIELD_node_inputs, &ids[0], 1);
    ent_message_put_u32s(&writer, ENT_FIELD_node_outputs, &ids[1], 1);
    ent_message_record_end(&writer);
    ent_message_record_begin(&writer, ENT_RECORD_region);
    ent_message_put_u32s(&writer, ENT_FIELD_region_nodes, &node, 1);
    ent_message_put_u32s(&writer, ENT_FIELD_region_inputs, &ids[0], 1);
    ent_message_put_u32s(&writer, ENT_FIELD_region_outputs, &ids[1], 1);
    ent_message_record_end(&writer);
    for (uint32_t i = 0; i < 2; i++) {
        ent_message_record_begin(&writer, ENT_RECORD_port);
        ent_message_put_u64(&writer, ENT_FIELD_port_owner_kind, 1);
        ent_message_put_u64(&writer, ENT_FIELD_port_index, i);
        ent_message_put_u64(&writer, ENT_FIELD_port_direction, i);
        ent_message_put_u64(&writer, ENT_FIELD_port_value, i);
        ent_message_put_layout(&writer, ENT_FIELD_port_layout, i ? &convert->to : &convert->from);
        ent_message_put_u64(&writer, ENT_FIELD_port_dtype, value->dtype);
        ent_message_record_end(&writer);
    }
    if (ent_message_end(&writer) != ENT_OK) return ent_status_out_of_memory();
    *out = (ent_bytes){writer.data, writer.size};
    return NULL;
}

ent_status ent_lower_convert_kernel(ent_lower_builder *b, const ent_plan_convert *convert,
                                    uint32_t *out_kernel) {
    ent_bytes request;
    if (convert->program)
        ENT_TRY(encode(b, convert->program, &request));
    else
        ENT_TRY(identity_region(b, convert, &request));
    compile(b, convert->device, convert->program ? ENT_DEPTH_TILE : ENT_DEPTH_REGION,
            convert->program ? ENT_TIER_TUNED : ENT_TIER_GENERIC, "convert", request, out_kernel);
    return NULL;
}
