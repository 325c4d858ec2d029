/* Arena: a stack of blocks with bump allocation.
 *
 * Fresh blocks come from calloc, whose pages the system already zeroed, so zeroing costs nothing the first
 * time. A block remembers how far it was ever used; only what lies below that line is cleared, and only when
 * it is handed out again. Allocations too big for a block get their own; their records lie in the blocks, so
 * that a mark orders both.
 *
 * Every arena counts against a budget: its own, or one that it shares with others. */
#include "core/base/base.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ENT_ARENA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ENT_ARENA_POISON 1
#endif
#endif
#ifdef ENT_ARENA_POISON
#include <sanitizer/asan_interface.h>
#define poison(data, size) ASAN_POISON_MEMORY_REGION((data), (size))
#define unpoison(data, size) ASAN_UNPOISON_MEMORY_REGION((data), (size))
#else
#define poison(data, size) ((void)(data), (void)(size))
#define unpoison(data, size) ((void)(data), (void)(size))
#endif

#define ALIGNMENT ((size_t)16)
#define FIRST_BLOCK_BYTES ((size_t)16 << 10)
#define LAST_BLOCK_BYTES ((size_t)1 << 20)

typedef struct arena_block {
    struct arena_block *previous;
    size_t capacity;
    size_t used;
    size_t dirty; /* bytes from here on were never handed out and are zero */
    size_t depth; /* 1 for the first block */
    _Alignas(16) unsigned char data[];
} arena_block;

/* Record of an allocation of its own, itself allocated in a block. */
typedef struct arena_big {
    struct arena_big *previous;
    void *data;
    size_t size;
    size_t depth;  /* of the block that holds this record */
    size_t offset; /* of this record in that block */
} arena_big;

struct ent_arena {
    arena_block *top;
    arena_block *spare; /* restored blocks, kept for the next use */
    arena_big *big;
    size_t next_block_bytes;
    size_t used_bytes;
    ent_budget *budget;
    ent_budget own;
};

ent_arena *ent_arena_create_within(ent_budget *budget) {
    ent_arena *arena = calloc(1, sizeof *arena);
    if (!arena) return NULL;
    arena->next_block_bytes = FIRST_BLOCK_BYTES;
    arena->budget = budget;
    return arena;
}

ent_arena *ent_arena_create(size_t limit_bytes) {
    ent_arena *arena = ent_arena_create_within(NULL);
    if (!arena) return NULL;
    arena->own.limit_bytes = limit_bytes;
    arena->budget = &arena->own;
    return arena;
}

ent_arena *ent_arena_create_beside(const ent_arena *arena) {
    return arena->budget == &arena->own ? ent_arena_create(0) : ent_arena_create_within(arena->budget);
}

static void add_use(ent_arena *arena, size_t bytes) {
    arena->used_bytes += bytes;
    arena->budget->used_bytes += bytes;
}

static void drop_use(ent_arena *arena, size_t bytes) {
    arena->used_bytes -= bytes;
    arena->budget->used_bytes -= bytes;
}

static void free_blocks(arena_block *block) {
    while (block) {
        arena_block *previous = block->previous;
        unpoison(block->data, block->capacity);
        free(block);
        block = previous;
    }
}

void ent_arena_destroy(ent_arena *arena) {
    if (!arena) return;
    drop_use(arena, arena->used_bytes);
    while (arena->big) {
        free(arena->big->data);
        arena->big = arena->big->previous;
    }
    free_blocks(arena->top);
    free_blocks(arena->spare);
    free(arena);
}

/* size rounded up to the alignment; 0 if that overflows. An empty request takes room too, so that pointers
 * differ. */
static size_t round_size(size_t size) {
    if (size == 0) return ALIGNMENT;
    if (size > (size_t)PTRDIFF_MAX - ALIGNMENT) return 0;
    return (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

static arena_block *take_spare(ent_arena *arena, size_t rounded) {
    arena_block **link = &arena->spare;
    while (*link && (*link)->capacity < rounded) link = &(*link)->previous;
    arena_block *block = *link;
    if (block) *link = block->previous;
    return block;
}

static bool add_block(ent_arena *arena, size_t rounded) {
    arena_block *block = take_spare(arena, rounded);
    if (!block) {
        size_t capacity = arena->next_block_bytes;
        block = calloc(1, sizeof *block + capacity);
        if (!block) return false;
        block->capacity = capacity;
        poison(block->data, capacity);
        if (arena->next_block_bytes < LAST_BLOCK_BYTES) arena->next_block_bytes *= 2;
    }
    block->previous = arena->top;
    block->depth = arena->top ? arena->top->depth + 1 : 1;
    arena->top = block;
    return true;
}

/* Hands out the next bytes of the top block, which has room for them. */
static void *take(ent_arena *arena, size_t size, size_t rounded) {
    arena_block *block = arena->top;
    unsigned char *data = block->data + block->used;
    unpoison(data, size);
    if (block->used < block->dirty) {
        size_t dirty = block->dirty - block->used;
        memset(data, 0, dirty < size ? dirty : size);
    }
    block->used += rounded;
    /* The rounding bytes count as dirty from here on, so extend clears them too. */
    if (block->dirty < block->used) block->dirty = block->used;
    add_use(arena, rounded);
    return data;
}

static bool has_room(const ent_arena *arena, size_t rounded) {
    return arena->top && arena->top->capacity - arena->top->used >= rounded;
}

static void *allocate_big(ent_arena *arena, size_t size, size_t rounded) {
    size_t record_size = round_size(sizeof(arena_big));
    if (!has_room(arena, record_size) && !add_block(arena, record_size)) return NULL;
    void *data = calloc(1, rounded);
    if (!data) return NULL;
    size_t offset = arena->top->used;
    arena_big *record = take(arena, sizeof *record, record_size);
    *record = (arena_big){arena->big, data, rounded, arena->top->depth, offset};
    arena->big = record;
    add_use(arena, rounded);
    poison((unsigned char *)data + size, rounded - size);
    return data;
}

/* NULL when the machine has no memory left or the size is absurd. */
static void *allocate(ent_arena *arena, size_t size) {
    size_t rounded = round_size(size);
    if (rounded == 0) return NULL;
    if (!has_room(arena, rounded)) {
        /* A quarter bounds what the rest of a block can waste. */
        if (rounded > arena->next_block_bytes / 4) return allocate_big(arena, size, rounded);
        if (!add_block(arena, rounded)) return NULL;
    }
    return take(arena, size, rounded);
}

size_t ent_arena_left_bytes(const ent_arena *arena) {
    const ent_budget *budget = arena->budget;
    if (budget->limit_bytes == 0) return SIZE_MAX;
    return budget->used_bytes < budget->limit_bytes ? budget->limit_bytes - budget->used_bytes : 0;
}

static bool within_limit(const ent_arena *arena, size_t size) {
    return size <= ent_arena_left_bytes(arena);
}

void *ent_arena_alloc(ent_arena *arena, size_t size_bytes) {
    if (!within_limit(arena, size_bytes)) arena->budget->failed = true;
    void *data = allocate(arena, size_bytes);
    if (!data) {
        fprintf(stderr,
                "entente: error: out of memory: %zu more bytes were needed, %zu are in use by this arena\n",
                size_bytes, arena->used_bytes);
        abort();
    }
    return data;
}

void *ent_arena_array(ent_arena *arena, size_t count, size_t size_bytes) {
    size_t total;
    void *data = NULL;
    if (!__builtin_mul_overflow(count, size_bytes, &total) && within_limit(arena, total))
        data = allocate(arena, total);
    if (!data) arena->budget->failed = true;
    return data;
}

bool ent_arena_extend(ent_arena *arena, void *data, size_t old_bytes, size_t new_bytes) {
    arena_block *block = arena->top;
    size_t old_rounded = round_size(old_bytes);
    size_t new_rounded = round_size(new_bytes);
    if (!data || !block || new_bytes < old_bytes || !new_rounded || old_rounded > block->used) return false;
    if ((unsigned char *)data != block->data + block->used - old_rounded) return false;
    size_t start = block->used - old_rounded;
    if (block->capacity - start < new_rounded || !within_limit(arena, new_rounded - old_rounded))
        return false;
    unpoison((unsigned char *)data + old_bytes, new_bytes - old_bytes);
    size_t clean_from = start + old_bytes;
    size_t clean_to = start + new_bytes < block->dirty ? start + new_bytes : block->dirty;
    if (clean_to > clean_from) memset(block->data + clean_from, 0, clean_to - clean_from);
    block->used = start + new_rounded;
    if (block->dirty < block->used) block->dirty = block->used;
    add_use(arena, new_rounded - old_rounded);
    return true;
}

void *ent_arena_copy(ent_arena *arena, const void *data, size_t size_bytes) {
    void *copy = ent_arena_alloc(arena, size_bytes);
    if (size_bytes) memcpy(copy, data, size_bytes);
    return copy;
}

void *ent_arena_grow(void *context, void *old, size_t size_bytes) {
    ent_arena_growth *growth = context;
    void *fresh = ent_arena_array(growth->arena, size_bytes, 1);
    if (fresh && old) memcpy(fresh, old, growth->size);
    growth->size = size_bytes;
    return fresh;
}

char *ent_arena_strdup(ent_arena *arena, const char *text) {
    return ent_arena_copy(arena, text, strlen(text) + 1);
}

char *ent_arena_strndup(ent_arena *arena, const char *text, size_t size) {
    size_t length = size ? strnlen(text, size) : 0;
    char *copy = ent_arena_alloc(arena, length + 1);
    if (length) memcpy(copy, text, length);
    return copy;
}

char *ent_arena_format_list(ent_arena *arena, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) return ent_arena_strdup(arena, format);
    char *text = ent_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, arguments);
    return text;
}

char *ent_arena_format(ent_arena *arena, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = ent_arena_format_list(arena, format, arguments);
    va_end(arguments);
    return text;
}

ent_arena_mark ent_arena_save(const ent_arena *arena) {
    return (ent_arena_mark){arena->top, arena->top ? arena->top->used : 0};
}

void ent_arena_restore(ent_arena *arena, ent_arena_mark mark) {
    arena_block *target = mark.block;
    size_t depth = target ? target->depth : 0;
    while (arena->big &&
           (arena->big->depth > depth || (arena->big->depth == depth && arena->big->offset >= mark.used))) {
        drop_use(arena, arena->big->size);
        free(arena->big->data);
        arena->big = arena->big->previous;
    }
    while (arena->top && arena->top != target) {
        arena_block *block = arena->top;
        arena->top = block->previous;
        drop_use(arena, block->used);
        block->used = 0;
        poison(block->data, block->capacity);
        block->previous = arena->spare;
        arena->spare = block;
    }
    if (!target) return;
    drop_use(arena, target->used - mark.used);
    target->used = mark.used;
    poison(target->data + mark.used, target->capacity - mark.used);
}

size_t ent_arena_used_bytes(const ent_arena *arena) {
    return arena->used_bytes;
}

bool ent_arena_failed(const ent_arena *arena) {
    return arena->budget->failed;
}

uint64_t ent_arena_deadline_ns(const ent_arena *arena) {
    return arena->budget->deadline_ns;
}

ent_status ent_arena_check(ent_arena *arena, const char *place) {
    const ent_budget *budget = arena->budget;
    if (budget->failed)
        return ent_status_make(arena, ENT_ERROR_LIMIT, "limit.memory", place,
                               "more than the allowed %llu MiB of memory would be needed",
                               (unsigned long long)(budget->limit_bytes >> 20));
    if (budget->deadline_ns && ent_time_ns() > budget->deadline_ns)
        return ent_status_make(arena, ENT_ERROR_LIMIT, "limit.time", place,
                               "it takes longer than the allowed %llu s",
                               (unsigned long long)budget->seconds);
    return NULL;
}
