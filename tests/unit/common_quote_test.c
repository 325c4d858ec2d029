/* Quotes and awards: one verdict for each region, a true reason for each decline, the same bytes each time,
 * and damaged requests that are refused or answered. */
#include "tests/unit/common_sample.h"

typedef struct verdict {
    uint64_t offer, kind, quote;
    ent_str reason, text;
    int64_t node;
} verdict;

static uint32_t read_verdicts(ent_bytes reply, verdict *out, uint32_t room) {
    ent_message_reader reader;
    ent_message_record record;
    uint32_t count = 0;
    ck_assert_int_eq(ent_message_open(&reader, reply.data, reply.size), ENT_OK);
    ck_assert_uint_eq(reader.kind, ENT_MESSAGE_quote_reply);
    while (ent_message_next(&reader, &record)) {
        if (record.tag == ENT_RECORD_verdict) {
            ck_assert_uint_lt(count, room);
            out[count++] = (verdict){.offer = ent_message_get_u64(&record, ENT_FIELD_verdict_offer),
                                     .kind = ent_message_get_u64(&record, ENT_FIELD_verdict_kind),
                                     .quote = ent_message_get_u64(&record, ENT_FIELD_verdict_quote)};
        }
        if (record.tag == ENT_RECORD_reason) {
            ck_assert_uint_gt(count, 0);
            ck_assert_uint_eq(ent_message_get_u64(&record, ENT_FIELD_reason_offer), out[count - 1].offer);
            out[count - 1].reason = ent_message_get_str(&record, ENT_FIELD_reason_id);
            out[count - 1].text = ent_message_get_str(&record, ENT_FIELD_reason_text);
            out[count - 1].node = ent_message_get_i64(&record, ENT_FIELD_reason_node);
        }
    }
    return count;
}

/* Regions over one body: 0 fine, 1 open dim, 2 operator on a wrong type, 3 control, 4 opaque port, 5 unknown
 * node, 6 string, 7 unknown rank, 8 without nodes, 9 fine, 10 a dim within a range. */
static ent_bytes request(ent_message_writer *w) {
    static const int64_t open[] = {2, -1}, ranged[] = {2, -2}, closed[] = {2, 3}, from_open[] = {30},
                         from_bool[] = {31}, to_string[] = {10}, from_unknown[] = {33}, from_ranged[] = {34};
    static const int64_t nodes[] = {20, 21, 22, 40, 41, 42, 99, 43, 44, 45};
    ent_layout opaque = {.kind = ENT_LAYOUT_OPAQUE, .rank = 4, .order = {0, 1, 2, 3}, .opaque = 9};
    ent_common_writer(w, &sample_call, ENT_MESSAGE_quote_request);
    sample_symbol(w, "count", INT64_MAX);
    sample_symbol(w, "n", 64);
    sample_expr(w, ENT_EXPR_SYMBOL, 0, 0);
    sample_expr(w, ENT_EXPR_SYMBOL, 1, 0);
    sample_body(w);
    sample_value(w, 30, ENT_DTYPE_F32, open, 2);
    sample_value(w, 31, ENT_DTYPE_BOOL, closed, 2);
    sample_value(w, 32, ENT_DTYPE_STRING, closed, 2);
    sample_value(w, 34, ENT_DTYPE_F32, ranged, 2);
    sample_node(w, 45, ENT_OP_Relu, from_ranged, 1, 34);
    ent_message_record_begin(w, ENT_RECORD_value);
    ent_message_put_u64(w, ENT_FIELD_value_id, 33);
    ent_message_put_u64(w, ENT_FIELD_value_dtype, ENT_DTYPE_F32);
    ent_message_put_i64(w, ENT_FIELD_value_rank, -1);
    ent_message_record_end(w);
    sample_node(w, 40, ENT_OP_Relu, from_open, 1, 30);
    sample_node(w, 41, ENT_OP_Relu, from_bool, 1, 31);
    sample_node(w, 42, ENT_OP_If, from_bool, 1, 10);
    sample_node(w, 43, ENT_OP_Cast, to_string, 1, 32);
    sample_node(w, 44, ENT_OP_Relu, from_unknown, 1, 33);
    for (uint64_t offer = 0; offer < 11; offer++) {
        static const struct {
            uint32_t first, count;
        } parts[] = {{0, 3}, {3, 1}, {4, 1}, {5, 1}, {0, 1}, {6, 1}, {7, 1}, {8, 1}, {0, 0}, {1, 1}, {9, 1}};
        sample_region(w, offer, nodes + parts[offer].first, parts[offer].count);
        sample_port(w, 0, 10, false, offer == 4 ? opaque : ent_layout_plain(4));
    }
    ck_assert_int_eq(ent_message_end(w), ENT_OK);
    return (ent_bytes){w->data, w->size};
}

static bool is(ent_str text, const char *word) {
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

START_TEST(each_region_gets_a_verdict_and_each_decline_its_reason) {
    static const struct {
        const char *reason;
        int64_t node;
    } wanted[] = {{NULL, 0},
                  {"dims.open", 40},
                  {"node.unsupported", 41},
                  {"node.unsupported", 42},
                  {"layout.unknown", -1},
                  {"message.node", 99},
                  {"dtype.unsupported", 43},
                  {"rank.unknown", 44},
                  {"message.region", -1},
                  {NULL, 0},
                  {NULL, 0}};
    ent_message_writer writer;
    ent_bytes ask = request(&writer), reply = {NULL, 0}, again = {NULL, 0};
    verdict verdicts[11];
    ck_assert_int_eq(ent_common_quote(&sample_device, &sample_call, ask.data, ask.size, &reply), ENT_OK);
    ck_assert_uint_eq(read_verdicts(reply, verdicts, 11), 11);
    for (uint32_t i = 0; i < 11; i++) {
        ck_assert_uint_eq(verdicts[i].offer, i);
        ck_assert_uint_eq(verdicts[i].kind, wanted[i].reason ? ENT_VERDICT_DECLINE : ENT_VERDICT_ACCEPT);
        ck_assert((verdicts[i].quote != 0) == !wanted[i].reason);
        if (!wanted[i].reason) continue;
        ck_assert_msg(is(verdicts[i].reason, wanted[i].reason), "offer %u: %.*s", i,
                      (int)verdicts[i].reason.size, verdicts[i].reason.data);
        ck_assert_int_eq(verdicts[i].node, wanted[i].node);
        ck_assert_uint_gt(verdicts[i].text.size, 10);
    }
    ck_assert_int_eq(ent_common_quote(&sample_device, &sample_call, ask.data, ask.size, &again), ENT_OK);
    ck_assert_uint_eq(again.size, reply.size);
    ck_assert_mem_eq(again.data, reply.data, reply.size);
}
END_TEST

START_TEST(awards_follow_quotes) {
    ent_message_writer writer;
    ent_bytes ask = request(&writer), reply = {NULL, 0}, answer = {NULL, 0};
    verdict verdicts[11];
    ck_assert_int_eq(ent_common_quote(&sample_device, &sample_call, ask.data, ask.size, &reply), ENT_OK);
    read_verdicts(reply, verdicts, 11);
    ent_common_writer(&writer, &sample_call, ENT_MESSAGE_award_request);
    for (uint64_t i = 0; i < 2; i++) { /* offer 0 as quoted, offer 1 with a quote that was never given */
        ent_message_record_begin(&writer, ENT_RECORD_award);
        ent_message_put_u64(&writer, ENT_FIELD_award_offer, i);
        ent_message_put_u64(&writer, ENT_FIELD_award_quote, i ? 77 : verdicts[0].quote);
        ent_message_record_end(&writer);
    }
    ck_assert_int_eq(ent_message_end(&writer), ENT_OK);
    ck_assert_int_eq(ent_common_award(&sample_device, &sample_call, writer.data, writer.size, &answer),
                     ENT_OK);
    ent_message_reader reader;
    ent_message_record record;
    uint32_t accepted = 0, refused = 0, reasons = 0;
    ck_assert_int_eq(ent_message_open(&reader, answer.data, answer.size), ENT_OK);
    while (ent_message_next(&reader, &record)) {
        if (record.tag == ENT_RECORD_award_answer) {
            uint64_t yes = ent_message_get_u64(&record, ENT_FIELD_award_answer_accepted);
            ck_assert_uint_eq(ent_message_get_u64(&record, ENT_FIELD_award_answer_offer), yes ? 0 : 1);
            accepted += yes == 1;
            refused += yes == 0;
        }
        reasons += record.tag == ENT_RECORD_reason;
    }
    ck_assert_uint_eq(accepted, 1);
    ck_assert_uint_eq(refused, 1);
    ck_assert_uint_eq(reasons, 1);
}
END_TEST

START_TEST(other_messages_are_refused) {
    ent_message_writer writer;
    ent_bytes region = sample_message(&writer, false), reply = {NULL, 0};
    ck_assert_int_eq(ent_common_quote(&sample_device, &sample_call, region.data, region.size, &reply),
                     ENT_CODE_BAD_MESSAGE);
    ck_assert_int_eq(ent_common_award(&sample_device, &sample_call, region.data, region.size, &reply),
                     ENT_CODE_BAD_MESSAGE);
    ck_assert_int_eq(ent_common_quote(&sample_device, &sample_call, (const uint8_t *)"x", 1, &reply),
                     ENT_CODE_BAD_MESSAGE);
    ck_assert_ptr_null(reply.data);
    ck_assert_msg(strstr(sample_failure, "message form") != NULL, "%s", sample_failure);
}
END_TEST

START_TEST(damaged_requests_are_refused_or_answered) {
    uint32_t state = 99, answered = 0;
    for (uint32_t round = 0; round < 5000; round++) {
        ent_message_writer writer;
        ent_bytes ask = request(&writer), reply = {NULL, 0};
        uint8_t *copy = malloc(ask.size);
        memcpy(copy, ask.data, ask.size);
        for (uint32_t k = 0; k <= round % 4; k++) {
            state = state * 1664525u + 1013904223u;
            copy[(state >> 8) % ask.size] ^= (uint8_t)(1u << (state >> 4) % 8);
        }
        if (ent_common_quote(&sample_device, &sample_call, copy, ask.size, &reply) == ENT_OK) {
            verdict verdicts[32];
            ck_assert_uint_le(read_verdicts(reply, verdicts, 32), 32);
            answered++;
        }
        free(copy);
        sample_end();
    }
    ck_assert_uint_gt(answered, 100);
}
END_TEST

int main(void) {
    TCase *test = tcase_create("all");
    tcase_add_test(test, each_region_gets_a_verdict_and_each_decline_its_reason);
    tcase_add_test(test, awards_follow_quotes);
    tcase_add_test(test, other_messages_are_refused);
    tcase_add_test(test, damaged_requests_are_refused_or_answered);
    return sample_run("common_quote", test);
}
