/* Hash map: a dense array of entries in insertion order, and an open-addressed index into it.
 *
 * The index holds entry number + 1 (0: free) and is kept at most half full, so linear probing stays short.
 * Entries are never removed, hence no tombstones. */
#include "core/base/base.h"

#include <string.h>

#define FIRST_SLOTS 16u

typedef struct map_entry {
    uint64_t hash;
    ent_map_entry data;
} map_entry;

struct ent_map {
    ent_arena *arena;
    uint32_t *slots;
    uint32_t slot_count; /* a power of two */
    ENT_ARRAY(map_entry) entries;
};

ent_map *ent_map_create(ent_arena *arena) {
    ent_map *map = ent_arena_alloc(arena, sizeof *map);
    map->arena = arena;
    map->slot_count = FIRST_SLOTS;
    map->slots = ent_arena_alloc(arena, FIRST_SLOTS * sizeof *map->slots);
    return map;
}

static bool entry_matches(const map_entry *entry, uint64_t hash, const char *key, uint64_t key_u64) {
    if (entry->hash != hash) return false;
    if (!key || !entry->data.key) return key == entry->data.key && entry->data.key_u64 == key_u64;
    return strcmp(entry->data.key, key) == 0;
}

/* The slot that holds the key, or the free one where it belongs. */
static uint32_t *find_slot(const ent_map *map, uint64_t hash, const char *key, uint64_t key_u64) {
    uint32_t mask = map->slot_count - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t slot = map->slots[i];
        if (slot == 0 || entry_matches(&map->entries.items[slot - 1], hash, key, key_u64))
            return &map->slots[i];
    }
}

static void grow_slots(ent_map *map) {
    map->slot_count *= 2;
    map->slots = ent_arena_alloc(map->arena, (size_t)map->slot_count * sizeof *map->slots);
    uint32_t mask = map->slot_count - 1;
    for (uint32_t e = 0; e < map->entries.count; e++) {
        uint32_t i = (uint32_t)map->entries.items[e].hash & mask;
        while (map->slots[i]) i = (i + 1) & mask;
        map->slots[i] = e + 1;
    }
}

static void set(ent_map *map, uint64_t hash, const char *key, uint64_t key_u64, uint64_t value) {
    uint32_t *slot = find_slot(map, hash, key, key_u64);
    if (*slot) {
        map->entries.items[*slot - 1].data.value = value;
        return;
    }
    if (map->entries.count >= map->slot_count / 2) {
        grow_slots(map);
        slot = find_slot(map, hash, key, key_u64);
    }
    map_entry entry = {hash, {key ? ent_arena_strdup(map->arena, key) : NULL, key_u64, value}};
    ent_array_push(map->arena, &map->entries, entry);
    *slot = map->entries.count;
}

static bool find(const ent_map *map, uint64_t hash, const char *key, uint64_t key_u64, uint64_t *out_value) {
    uint32_t slot = *find_slot(map, hash, key, key_u64);
    if (slot && out_value) *out_value = map->entries.items[slot - 1].data.value;
    return slot != 0;
}

static uint64_t hash_text(const char *key) {
    return ent_hash_u64(key, strlen(key));
}

void ent_map_set(ent_map *map, const char *key, uint64_t value) {
    set(map, hash_text(key), key, 0, value);
}

bool ent_map_find(const ent_map *map, const char *key, uint64_t *out_value) {
    return find(map, hash_text(key), key, 0, out_value);
}

void ent_map_set_u64(ent_map *map, uint64_t key, uint64_t value) {
    set(map, ent_hash_u64(&key, sizeof key), NULL, key, value);
}

bool ent_map_find_u64(const ent_map *map, uint64_t key, uint64_t *out_value) {
    return find(map, ent_hash_u64(&key, sizeof key), NULL, key, out_value);
}

uint32_t ent_map_count(const ent_map *map) {
    return map->entries.count;
}

ent_map_entry ent_map_at(const ent_map *map, uint32_t index) {
    return map->entries.items[index].data;
}
