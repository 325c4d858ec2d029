/* The reference backend: every operator as core/ops defines it, in plain C, one leaf at a time. Never used
 * unless it is named. */
#include "plugins/common/common.h"

#include <string.h>

static ent_code list_devices(ent_state *state, const ent_call *call, ent_bytes *out_names) {
    (void)state;
    return ent_common_reply(call, "reference", 9, out_names);
}

static ent_code open_device(ent_state *state, const ent_call *call, const ent_parameter *parameters,
                            size_t count, ent_device **out) {
    static const char *const known[] = {NULL};
    ent_code code = ent_common_check_parameters(call, parameters, count, known);
    if (code != ENT_OK) return code;
    ent_device *device = ent_common_allocate(state->host, sizeof *device);
    if (!device) return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory");
    device->host = state->host;
    *out = device;
    return ENT_OK;
}

static void close_device(ent_device *device) {
    if (device) ent_common_release(device->host, device);
}

/* Its memory counts as its own, so that crossings to and from it are real copies. Figures: what core/ops
 * reaches on a plain x86-64. */
static ent_code declare(ent_device *device, const ent_call *call, ent_bytes *out_json) {
    static const char document[] =
        "{\"schema\": 1, \"name\": \"reference\", \"vendor\": \"Entente\", \"kind\": \"cpu\",\n"
        " \"description\": \"operator meanings in plain C, one leaf at a time\", \"basis\": \"assumed\",\n"
        " \"units\": 1, \"launch_ns\": 1000, \"depths\": [\"region\"],\n"
        " \"memory\": [{\"name\": \"dram\", \"scope\": \"device\", \"bytes\": 1000000000000, \"read_gbps\": "
        "5}],\n"
        " \"links\": [{\"to\": \"host\", \"latency_ns\": 500, \"gbps\": 5}],\n"
        " \"patterns\": [{\"name\": \"reference\", \"depth\": \"region\", \"tier\": \"generic\", \"any_op\": "
        "true,\n"
        "                \"layouts\": [\"plain\", \"channels_last\"],\n"
        "                \"cost\": {\"base_ns\": 2000, \"gflops\": 0.5, \"gbps\": 0.5}}]}\n";
    (void)device;
    return ent_common_reply(call, document, sizeof document - 1, out_json);
}

static const ent_device_v1 device_interface = {
    {sizeof(ent_device_v1), ENT_STRUCT_DEVICE_V1, NULL}, list_devices, open_device, close_device, declare};

static const void *get_interface(uint32_t id, uint32_t version) {
    return id == ENT_INTERFACE_DEVICE && version == 1 ? &device_interface
                                                      : ent_common_region_interface(id, version);
}

const ent_plugin ent_plugin_v1 = {{sizeof(ent_plugin), ENT_STRUCT_PLUGIN, NULL},
                                  1,
                                  1,
                                  ENT_STR("reference"),
                                  ENT_STR("Entente"),
                                  ENT_STR("1"),
                                  ENT_DEPTH_REGION,
                                  1,
                                  ent_common_open,
                                  ent_common_close,
                                  get_interface};
