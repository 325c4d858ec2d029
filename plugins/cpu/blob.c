/* Compiling: a checked tile program with the ISA level it was planned for; or a region for core/ops. */
#include "cpu.h"

#include <stdio.h>

static const char blob_magic[8] = {'E', 'N', 'T', 'C', 'P', 'U', 'T', '1'};
#define BLOB_VERSION 1u

static ent_code fail_with(const ent_call *call, ent_code code, const exec_plan *plan) {
    return ent_common_fail(call, code, "%s",
                           plan && plan->error.text[0] ? plan->error.text : "out of memory for a plan");
}

static ent_code compile_tile(cpu_device *device, const ent_call *call, const uint8_t *request, size_t size,
                             ent_bytes *out_blob) {
    exec_plan *plan = NULL;
    ent_code code = exec_plan_create(device->head.host, device->kernels, request, size, NULL, 0, &plan);
    cpu_blob head = {.version = BLOB_VERSION, .isa = (uint32_t)device->isa};
    if (code == ENT_OK)
        head.tier = plan->tier;
    else
        fail_with(call, code, plan);
    exec_plan_destroy(plan);
    if (code != ENT_OK) return code;
    uint8_t *blob = call->allocate(call->context, sizeof head + size);
    if (!blob)
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for a blob of %zu bytes", size);
    memcpy(head.magic, blob_magic, sizeof head.magic);
    memcpy(blob, &head, sizeof head);
    memcpy(blob + sizeof head, request, size);
    *out_blob = (ent_bytes){blob, sizeof head + size};
    return ENT_OK;
}

ent_code cpu_compile(ent_device *device, const ent_call *call, uint32_t depth, const uint8_t *request,
                     size_t size, ent_bytes *out_blob) {
    if (depth == ENT_DEPTH_TILE) return compile_tile((cpu_device *)device, call, request, size, out_blob);
    return ent_common_region_compile(device, call, depth, request, size, out_blob);
}

ent_code cpu_blob_read(const ent_call *call, const uint8_t *blob, size_t size, ent_cpu_isa highest,
                       cpu_blob *out) {
    if (size < sizeof *out)
        return ent_common_fail(call, ENT_CODE_BAD_MESSAGE, "the blob is too short for its header");
    memcpy(out, blob, sizeof *out);
    if (memcmp(out->magic, blob_magic, sizeof out->magic) != 0)
        return ent_common_fail(call, ENT_CODE_BAD_MESSAGE, "the blob is none of the CPU plugin");
    if (out->version != BLOB_VERSION)
        return ent_common_fail(call, ENT_CODE_UNSUPPORTED, "the blob has version %u, this plugin reads %u",
                               out->version, BLOB_VERSION);
    if (out->isa >= ENT_CPU_ISA_COUNT)
        return ent_common_fail(call, ENT_CODE_BAD_MESSAGE, "the blob names no known ISA level (%u)",
                               out->isa);
    if (out->isa > (uint32_t)highest)
        return ent_common_fail(call, ENT_CODE_ISA_MISSING, "compiled for %s, this machine offers %s",
                               ent_cpu_isa_name((ent_cpu_isa)out->isa), ent_cpu_isa_name(highest));
    return ENT_OK;
}

ent_code cpu_blob_check(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size) {
    ent_cpu_isa highest = ENT_CPU_ISA_BASELINE;
    const char *bad = NULL;
    cpu_blob head;
    (void)state;
    if (ent_common_is_region_blob(blob, size)) return ENT_OK;
    if (!ent_cpu_isa_choose(NULL, &highest, &bad))
        return ent_common_fail(call, ENT_CODE_INVALID_ARGUMENT,
                               "ENTENTE_CPU_ISA is '%s'; use baseline, avx2 or avx512", bad);
    return cpu_blob_read(call, blob, size, highest, &head);
}

ent_code cpu_blob_requirement(ent_state *state, const ent_call *call, const uint8_t *blob, size_t size,
                              ent_bytes *out_text) {
    char text[64] = "cpu";
    cpu_blob head;
    (void)state;
    if (!ent_common_is_region_blob(blob, size)) {
        ent_code code = cpu_blob_read(call, blob, size, ENT_CPU_ISA_AVX512, &head);
        if (code != ENT_OK) return code;
        snprintf(text, sizeof text, "cpu isa=%s", ent_cpu_isa_name((ent_cpu_isa)head.isa));
    }
    return ent_common_reply(call, text, strlen(text), out_text);
}
