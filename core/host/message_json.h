/* Messages (abi/ent_message.h) as JSON text and back, for transcripts. The two are inverse to the byte for
 * every byte string. */
#ifndef ENT_HOST_MESSAGE_JSON_H
#define ENT_HOST_MESSAGE_JSON_H

#include "abi/ent_message.h"
#include "abi/ent_plugin.h"
#include "core/base/base.h"

/* One line without a newline:
 *     {"message":"quote_reply","records":[{"record":"verdict","offer":3,"kind":1},...]}
 * Fields that are zero or empty are left out. Integers beyond 2^53 are decimal strings, nan and infinities
 * are strings, BYTES are hex. "version" and "fields" appear where a record's version or field count is not
 * ours. A record that this form cannot carry (unknown tag, extra fields, text that is no UTF-8, data in
 * another order) is {"record":NAME or "0x..","hex":"..."}; bytes that are no message, or one that this reader
 * must refuse, are {"message":"unreadable","hex":"..."}. Never fails but for memory. The result lies in the
 * arena and ends in NUL. */
ent_status ent_host_message_to_json(ent_arena *arena, const uint8_t *bytes, size_t size, ent_str *out);

/* The inverse. Errors: code MODEL, rule "message.json", place naming record and field. The result lies in the
 * arena. */
ent_status ent_host_message_from_json(ent_arena *arena, const char *text, size_t size, ent_bytes *out);

#endif
