#include "core/base/base.h"

#include <stdlib.h>
#include <string.h>

void *ent_array_grow(ent_arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t item_bytes) {
    uint32_t wanted = *capacity ? *capacity : 4;
    if (*capacity) wanted = *capacity > UINT32_MAX / 2 ? UINT32_MAX : *capacity * 2;
    size_t size;
    if (wanted == *capacity || __builtin_mul_overflow(item_bytes, (size_t)wanted, &size)) {
        fprintf(stderr, "entente: error: out of memory: an array has %u items and cannot grow\n",
                (unsigned)count);
        abort();
    }
    if (!ent_arena_extend(arena, items, item_bytes * *capacity, size)) {
        void *grown = ent_arena_alloc(arena, size);
        if (count) memcpy(grown, items, item_bytes * count);
        items = grown;
    }
    *capacity = wanted;
    return items;
}
