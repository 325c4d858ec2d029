/* Transcript: one JSON object a line, in the order of the calls. Holds no times of day and no addresses, so
 * that the same negotiation gives the same bytes. */
#include "core/host/internal.h"
#include "core/host/message_json.h"

#include <string.h>

struct ent_transcript {
    ent_arena *arena;
    ent_text text;
    uint32_t count;
};

ent_transcript *ent_transcript_create(ent_arena *arena) {
    ent_transcript *transcript = ent_arena_alloc(arena, sizeof *transcript);
    transcript->arena = arena;
    ent_text_init(&transcript->text, arena);
    return transcript;
}

static void begin_line(ent_transcript *transcript, const char *device) {
    ent_text_add(&transcript->text, "{\"line\":%u,\"device\":", transcript->count++);
    ent_text_add_json_string(&transcript->text, device, strlen(device));
    ent_text_add(&transcript->text, ",");
}

void ent_transcript_add(ent_transcript *transcript, const char *device, const uint8_t *message, size_t size) {
    ent_str json;
    if (!transcript || ent_host_message_to_json(transcript->arena, message, size, &json) || json.size < 1)
        return;
    begin_line(transcript, device);
    ent_text_add_bytes(&transcript->text, json.data + 1,
                       json.size - 1); /* its fields join the line's object */
    ent_text_add(&transcript->text, "\n");
}

void ent_transcript_add_note(ent_transcript *transcript, const char *device, const char *kind,
                             const char *text) {
    if (!transcript) return;
    begin_line(transcript, device);
    ent_text_add(&transcript->text, "\"note\":");
    ent_text_add_json_string(&transcript->text, kind, strlen(kind));
    ent_text_add(&transcript->text, ",\"text\":");
    ent_text_add_json_string(&transcript->text, text, strlen(text));
    ent_text_add(&transcript->text, "}\n");
}

const char *ent_transcript_text(const ent_transcript *transcript, size_t *out_size) {
    *out_size = transcript ? transcript->text.size : 0;
    return transcript && transcript->text.data ? transcript->text.data : "";
}
