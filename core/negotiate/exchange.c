/* Calls into a plugin during the negotiation: recorded, checked, and contained when they break. */
#include "core/negotiate/internal.h"

typedef struct constant_lookup {
    const ent_module *module;
} constant_lookup;

static bool find_constant(void *user, uint64_t low, uint64_t high, ent_bytes *out) {
    const ent_module *module = ((constant_lookup *)user)->module;
    for (uint32_t i = 0; i < module->values.count; i++) {
        const ent_constant *constant = module->values.items[i].constant;
        if (!constant || constant->hash.low != low || constant->hash.high != high) continue;
        out->data = constant->tensor.data;
        out->size = constant->tensor.size_bytes;
        return true;
    }
    return false;
}

/* A device whose plugin broke gives no offers: each one it has is withdrawn, so that the others go on. */
static void withdraw_all(ent_negotiate_session *session, uint32_t device, const char *why) {
    for (uint32_t i = 0; i < session->offers.count; i++) {
        ent_offer *offer = &session->offers.items[i];
        if (offer->device != device || offer->kind == ENT_OFFER_VIEW) continue;
        offer->withdrawn = why;
    }
    ent_refusal refusal = {device, ENT_ID_NONE, "plugin", "plugin.broke", why, 0, 0, NULL, false};
    ent_negotiate_refuse(session, &refusal);
    ent_transcript_add_note(session->transcript, session->devices[device].name, "plugin.broke", why);
}

bool ent_negotiate_exchange(ent_negotiate_session *session, uint32_t device, ent_negotiate_verb verb,
                            const char *verb_name, ent_bytes request, ent_message_reader *out_reply) {
    const ent_negotiate_device *d = &session->devices[device];
    constant_lookup lookup = {session->module};
    ent_host_call call;
    ent_host_call_init(&call, session->arena, session->deadline_ns);
    call.constant = find_constant;
    call.user = &lookup;
    ent_transcript_add(session->transcript, d->name, request.data, request.size);
    ent_bytes reply = {NULL, 0};
    ent_code code = verb(d->host->device, &call.call, request.data, request.size, &reply);
    if (code != ENT_OK && code != ENT_CODE_DEADLINE) {
        ent_status status = ent_host_call_status(&call, code, d->name, verb_name);
        withdraw_all(session, device, ent_status_text(session->arena, status));
        return false;
    }
    ent_code form = ent_message_open(out_reply, reply.data, reply.size);
    if (form != ENT_OK) {
        withdraw_all(session, device,
                     ent_arena_format(session->arena,
                                      "%s of device '%s' answered %zu bytes that break the message form",
                                      verb_name, d->name, reply.size));
        return false;
    }
    ent_transcript_add(session->transcript, d->name, reply.data, reply.size);
    return true;
}
