/* Award: chosen offers are confirmed with their plugins; a refusal withdraws the offer, so that the caller
 * re-plans. */
#include "core/negotiate/internal.h"

static void write_awards(ent_message_writer *writer, ent_negotiate_session *session, uint32_t device,
                         const uint32_t *offers, uint32_t count, uint32_t *out_written) {
    *out_written = 0;
    for (uint32_t i = 0; i < count; i++) {
        const ent_offer *offer = &session->offers.items[offers[i]];
        if (offer->device != device || (offer->kind != ENT_OFFER_REGION && offer->kind != ENT_OFFER_TILE))
            continue;
        (*out_written)++;
        ent_message_record_begin(writer, ENT_RECORD_award);
        ent_message_put_u64(writer, ENT_FIELD_award_offer, offer->id);
        ent_message_put_u64(writer, ENT_FIELD_award_quote, offer->quote);
        ent_message_record_end(writer);
    }
}

static uint32_t read_answers(ent_negotiate_session *session, uint32_t device, ent_message_reader *reply) {
    uint32_t refused = 0;
    ent_message_record record;
    while (ent_message_next(reply, &record)) {
        if (record.tag != ENT_RECORD_award_answer) continue;
        uint64_t id = ent_message_get_u64(&record, ENT_FIELD_award_answer_offer);
        if (id >= session->offers.count || session->offers.items[id].device != device) continue;
        if (ent_message_get_u64(&record, ENT_FIELD_award_answer_accepted)) continue;
        session->offers.items[id].withdrawn = "refused at award";
        refused++;
    }
    ent_message_rewind(reply);
    while (ent_message_next(reply, &record)) {
        if (record.tag != ENT_RECORD_reason) continue;
        uint64_t id = ent_message_get_u64(&record, ENT_FIELD_reason_offer);
        ent_str text = ent_message_get_str(&record, ENT_FIELD_reason_text);
        if (id >= session->offers.count || session->offers.items[id].device != device || !text.data) continue;
        if (session->offers.items[id].withdrawn)
            session->offers.items[id].withdrawn =
                ent_arena_format(session->arena, "refused at award: %.*s", (int)text.size, text.data);
    }
    return refused;
}

ent_status ent_negotiate_award(ent_negotiate_session *session, const uint32_t *offers, uint32_t count,
                               uint32_t *out_refused) {
    *out_refused = 0;
    for (uint32_t d = 0; d < session->device_count; d++) {
        const ent_negotiate_v1 *api = session->devices[d].host->negotiate;
        if (!api || !api->award) continue;
        ent_message_writer writer;
        ent_negotiate_writer_init(&writer, session->arena, ENT_MESSAGE_award_request);
        uint32_t written = 0;
        write_awards(&writer, session, d, offers, count, &written);
        if (ent_message_end(&writer) != ENT_OK) return ent_status_out_of_memory();
        if (written == 0) continue;
        ent_message_reader reply;
        ent_bytes request = {writer.data, writer.size};
        if (ent_negotiate_exchange(session, d, api->award, "award", request, &reply))
            *out_refused += read_answers(session, d, &reply);
        else
            *out_refused += written;
    }
    return NULL;
}
