#include "core/base/base.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

ent_hash128 ent_hash_bytes(const void *data, size_t size) {
    XXH128_hash_t hash = XXH3_128bits(data, size);
    return (ent_hash128){hash.low64, hash.high64};
}

uint64_t ent_hash_u64(const void *data, size_t size) {
    return XXH3_64bits(data, size);
}
