/* Protobuf messages as a tree of fields: a change deep inside keeps every length around it right, which
 * random bytes almost never do. */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FIELDS 512
#define MAX_DEPTH 12

typedef struct field {
    size_t begin, payload, end; /* key, value (behind the length), end */
    unsigned wire;
} field;

static uint64_t random_state;

static uint32_t draw(uint32_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % below);
}

static bool read_varint(const uint8_t *data, size_t size, size_t *at, uint64_t *out) {
    *out = 0;
    for (unsigned shift = 0; shift < 64 && *at < size; shift += 7) {
        uint8_t byte = data[(*at)++];
        *out |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static size_t write_varint(uint8_t *out, uint64_t value) {
    size_t size = 0;
    for (; value > 127; value >>= 7) out[size++] = (uint8_t)(value | 128);
    out[size++] = (uint8_t)value;
    return size;
}

/* The number of fields, or 0 when the bytes are no message. */
static size_t split(const uint8_t *data, size_t size, field *out) {
    size_t count = 0;
    for (size_t at = 0; at < size;) {
        uint64_t key, value;
        field f = {.begin = at};
        if (count == MAX_FIELDS || !read_varint(data, size, &at, &key) || key < 8) return 0;
        f.wire = (unsigned)(key & 7);
        f.payload = at;
        if (f.wire == 0 && !read_varint(data, size, &at, &value)) return 0;
        if (f.wire == 1) at += 8;
        if (f.wire == 5) at += 4;
        if (f.wire == 2) {
            if (!read_varint(data, size, &at, &value) || value > size - at) return 0;
            f.payload = at;
            at += value;
        }
        if (f.wire == 3 || f.wire == 4 || f.wire > 5 || at > size) return 0;
        f.end = at;
        out[count++] = f;
    }
    return count;
}

/* Puts `size` bytes in place of [from, to) of a buffer that holds *total; false when there is no room. */
static bool replace(uint8_t *data, size_t *total, size_t max_size, size_t from, size_t to,
                    const uint8_t *bytes, size_t size) {
    if (*total - (to - from) + size > max_size) return false;
    memmove(data + from + size, data + to, *total - to);
    if (size) memcpy(data + from, bytes, size);
    *total = *total - (to - from) + size;
    return true;
}

static uint64_t odd_number(void) {
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       7,
                                       8,
                                       9,
                                       16,
                                       17,
                                       64,
                                       127,
                                       128,
                                       255,
                                       1u << 16,
                                       INT32_MAX,
                                       UINT32_MAX,
                                       INT64_MAX,
                                       (uint64_t)INT64_MIN,
                                       UINT64_MAX,
                                       UINT64_MAX - 1,
                                       UINT64_MAX - 7};
    return draw(4) ? numbers[draw(sizeof numbers / sizeof numbers[0])] : draw(32);
}

static size_t mutate(uint8_t *data, size_t size, size_t max_size, unsigned depth);

/* Changes what a length-delimited field holds, and its length. */
static size_t change_payload(uint8_t *data, size_t size, size_t max_size, const field *f, unsigned depth) {
    size_t inner = f->end - f->payload, room = inner + (max_size - size);
    if (room < 16 || room == inner) return size;
    uint8_t *copy = malloc(room), head[24];
    if (!copy) abort();
    memcpy(copy, data + f->payload, inner);
    size_t changed = mutate(copy, inner, room - 10, depth + 1), key_end = f->begin, total = size;
    uint64_t key = 0;
    read_varint(data, size, &key_end, &key);
    size_t head_size = write_varint(head, key);
    head_size += write_varint(head + head_size, changed);
    if (replace(data, &total, max_size, f->payload, f->end, copy, changed) &&
        !replace(data, &total, max_size, f->begin, f->payload, head, head_size))
        total = size;
    free(copy);
    return total;
}

/* Copies a field of the same message, or swaps two, or drops one. */
static size_t move_field(uint8_t *data, size_t size, size_t max_size, const field *fields, size_t count) {
    const field *a = &fields[draw((uint32_t)count)], *b = &fields[draw((uint32_t)count)];
    size_t bytes = a->end - a->begin, total = size;
    if (draw(3) == 0) {
        replace(data, &total, max_size, a->begin, a->end, NULL, 0);
        return total;
    }
    uint8_t *copy = malloc(bytes + 1);
    if (!copy) abort();
    memcpy(copy, data + a->begin, bytes);
    if (draw(2))
        replace(data, &total, max_size, b->begin, b->begin, copy, bytes);
    else
        replace(data, &total, max_size, b->begin, b->end, copy, bytes);
    free(copy);
    return total;
}

static size_t mutate(uint8_t *data, size_t size, size_t max_size, unsigned depth) {
    field fields[MAX_FIELDS];
    size_t count = depth < MAX_DEPTH ? split(data, size, fields) : 0;
    if (count == 0 || draw(16) == 0) return LLVMFuzzerMutate(data, size, max_size);
    if (draw(6) == 0) return move_field(data, size, max_size, fields, count);
    const field *f = &fields[draw((uint32_t)count)];
    if (f->wire == 2) return change_payload(data, size, max_size, f, depth);
    if (f->wire == 0) {
        uint8_t number[10];
        size_t total = size;
        replace(data, &total, max_size, f->payload, f->end, number, write_varint(number, odd_number()));
        return total;
    }
    data[f->payload + draw((uint32_t)(f->end - f->payload))] ^= (uint8_t)(1u << draw(8));
    return size;
}

size_t fuzz_mutate_wire(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    random_state = seed;
    size_t changed = mutate(data, size, max_size, 0);
    return changed ? changed : 1;
}
