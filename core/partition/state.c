/* States as words, and when one makes another pointless.
 *
 * Two states with the same claimed leaves and the same pending needs differ in the forms of their live values
 * alone. Whatever completes `b` completes `a` too, at an additional price of at most what the forms still
 * wanted cost `a` more than `b`: at most one form for each reader left, the dearest differences if there are
 * more forms than readers. If `b` is dearer by that much, it is dropped (dominance in the sense of Ibaraki,
 * The power of dominance relations in branch-and-bound algorithms, 1977). So few states of a claimed set
 * remain, however many forms its values could have. */
#include "core/partition/internal.h"

#include <string.h>

#define HEAD_WORDS 4u /* of a live value: value, slot and number of waits, paid (two words) */

void ent_partition_state_pack(ent_arena *arena, const ent_partition_state *s, ent_partition_words *words) {
    ent_array_push(arena, words, s->ahead_count);
    for (uint32_t i = 0; i < s->ahead_count; i++) ent_array_push(arena, words, s->ahead[i]);
    for (uint32_t i = 0; i < s->live_count; i++) {
        const ent_partition_live *v = &s->live[i];
        uint32_t head[HEAD_WORDS] = {v->value, v->slot | v->wait_count << 8, (uint32_t)v->paid,
                                     (uint32_t)(v->paid >> 32)};
        for (uint32_t w = 0; w < HEAD_WORDS; w++) ent_array_push(arena, words, head[w]);
        for (uint32_t w = 0; w < v->wait_count; w++) ent_array_push(arena, words, v->waits[w]);
    }
}

void ent_partition_state_unpack(ent_partition_key key, ent_partition_state *s) {
    const uint32_t *at = key.words, *end = key.words + key.count;
    s->ahead_count = *at++;
    memcpy(s->ahead, at, s->ahead_count * sizeof *at);
    at += s->ahead_count;
    s->live_count = 0;
    while (at < end) {
        ent_partition_live *v = &s->live[s->live_count++];
        v->value = at[0];
        v->slot = at[1] & 0xff;
        v->wait_count = at[1] >> 8;
        v->paid = at[2] | (uint64_t)at[3] << 32;
        memcpy(v->waits, at + HEAD_WORDS, v->wait_count * sizeof *at);
        at += HEAD_WORDS + v->wait_count;
    }
}

static bool is_made(const uint32_t *live) {
    return (live[1] & 0xff) != ENT_PARTITION_NO_SLOT;
}

uint64_t ent_partition_dominance_hash(ent_partition_key key) {
    const uint32_t *at = key.words + key.words[0] + 1, *end = key.words + key.count;
    uint64_t hash = ent_hash_u64(key.words, (key.words[0] + 1) * sizeof *at);
    while (at < end) {
        uint32_t waits = at[1] >> 8;
        uint64_t all[5] = {hash, at[0], is_made(at), is_made(at) ? 0 : at[2] | (uint64_t)at[3] << 32,
                           ent_hash_u64(at + HEAD_WORDS, waits * sizeof *at)};
        hash = ent_hash_u64(all, sizeof all);
        at += HEAD_WORDS + waits;
    }
    return hash;
}

/* Readers of a value that are still to be claimed: no more forms of it can be wanted. */
static uint32_t readers_left(const ent_partition_index *x, uint32_t frontier, ent_partition_key key,
                             uint32_t value) {
    if (!x->readers_known[value]) return ENT_PARTITION_MAX_FORMS;
    uint32_t left = 0;
    for (uint32_t r = x->first_readers[value]; r < x->first_readers[value + 1]; r++) {
        uint32_t leaf = x->readers[r].leaf;
        bool open = leaf != ENT_PARTITION_NONE && leaf >= frontier;
        for (uint32_t i = 1; i <= key.words[0] && open; i++) open = key.words[i] != leaf;
        left += open;
    }
    return left;
}

/* What the forms still wanted of a value cost more from `a` than from `b`. */
static double dearer(const ent_partition_index *x, uint32_t frontier, ent_partition_key key,
                     const uint32_t *a, const uint32_t *b) {
    uint32_t value = a[0], slots = ent_partition_slot_count(x, value), count = 0;
    uint32_t left = readers_left(x, frontier, key, value);
    uint64_t paid_a = a[2] | (uint64_t)a[3] << 32, paid_b = b[2] | (uint64_t)b[3] << 32;
    double most[ENT_PARTITION_MAX_FORMS], sum = 0;
    for (uint32_t to = 0; to < slots; to++) {
        if (x->last_wants[x->label_offsets[value] + to] <= frontier || (paid_a >> to & 1)) continue;
        double from_a = ent_partition_convert_price(x, value, a[1] & 0xff, to);
        double from_b = paid_b >> to & 1 ? 0 : ent_partition_convert_price(x, value, b[1] & 0xff, to);
        if (from_a <= from_b) continue;
        uint32_t at = count++;
        for (; at > 0 && most[at - 1] < from_a - from_b; at--) most[at] = most[at - 1];
        most[at] = from_a - from_b;
    }
    for (uint32_t i = 0; i < count && i < left; i++) sum += most[i];
    return sum;
}

bool ent_partition_dominates(const ent_partition_index *index, uint32_t frontier, ent_partition_key a,
                             ent_partition_key b, double room_ns) {
    uint32_t ahead = a.words[0] + 1;
    if (a.count != b.count || memcmp(a.words, b.words, ahead * sizeof *a.words) != 0) return false;
    for (uint32_t at = ahead; at < a.count;) {
        const uint32_t *x = a.words + at, *y = b.words + at;
        uint32_t waits = x[1] >> 8;
        bool same = x[0] == y[0] && is_made(x) == is_made(y) && waits == y[1] >> 8 &&
                    memcmp(x + HEAD_WORDS, y + HEAD_WORDS, waits * sizeof *x) == 0;
        if (!same || (!is_made(x) && (x[2] != y[2] || x[3] != y[3]))) return false;
        if (is_made(x) && memcmp(x, y, HEAD_WORDS * sizeof *x) != 0)
            room_ns -= dearer(index, frontier, a, x, y);
        if (room_ns < 0) return false;
        at += HEAD_WORDS + waits;
    }
    return true;
}
