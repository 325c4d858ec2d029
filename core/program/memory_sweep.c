/* The planner's guaranteed order: items in order of their first step, into a heap with a free list.
 *
 * Blocks tile the heap in a list by address. Free blocks also hang in bins by size, four bins an octave; a
 * request looks at a few blocks of its own bin and else takes the first block of the next non-empty bin, so
 * each step is O(bins). A sorted list of holes would fit a little better and turn quadratic when many small
 * values live at once. */
#include "core/program/memory.h"

#define BINS 256u
#define BIN_TRIES 8u
#define NIL 0xffffffffu

typedef struct block {
    uint64_t offset, size;
    uint32_t before, after;         /* by address */
    uint32_t bin_before, bin_after; /* in its bin, when free */
    bool is_free;
} block;

typedef struct heap {
    block *blocks;
    uint32_t block_count, first_unused; /* recycled blocks, chained by `after` */
    uint32_t last;                      /* block with the highest address */
    uint32_t bins[BINS];
    uint64_t end;
} heap;

static uint32_t bin_of(uint64_t size) {
    uint32_t log = 63u - (uint32_t)__builtin_clzll(size);
    uint32_t quarter = log >= 2 ? (uint32_t)(size >> (log - 2)) & 3u : 0;
    return log * 4 + quarter;
}

static void bin_insert(heap *h, uint32_t b) {
    uint32_t bin = bin_of(h->blocks[b].size);
    h->blocks[b].is_free = true;
    h->blocks[b].bin_before = NIL;
    h->blocks[b].bin_after = h->bins[bin];
    if (h->bins[bin] != NIL) h->blocks[h->bins[bin]].bin_before = b;
    h->bins[bin] = b;
}

static void bin_remove(heap *h, uint32_t b) {
    block *it = &h->blocks[b];
    if (it->bin_before != NIL)
        h->blocks[it->bin_before].bin_after = it->bin_after;
    else
        h->bins[bin_of(it->size)] = it->bin_after;
    if (it->bin_after != NIL) h->blocks[it->bin_after].bin_before = it->bin_before;
    it->is_free = false;
}

static uint32_t block_make(heap *h, uint64_t offset, uint64_t size, uint32_t before, uint32_t after) {
    uint32_t b = h->first_unused;
    if (b != NIL)
        h->first_unused = h->blocks[b].after;
    else
        b = h->block_count++;
    h->blocks[b] = (block){offset, size, before, after, NIL, NIL, false};
    if (before != NIL) h->blocks[before].after = b;
    if (after != NIL)
        h->blocks[after].before = b;
    else
        h->last = b;
    return b;
}

static void block_drop(heap *h, uint32_t b) {
    uint32_t before = h->blocks[b].before, after = h->blocks[b].after;
    if (before != NIL) h->blocks[before].after = after;
    if (after != NIL)
        h->blocks[after].before = before;
    else
        h->last = before;
    h->blocks[b].after = h->first_unused;
    h->first_unused = b;
}

static uint32_t find_hole(const heap *h, uint64_t size) {
    uint32_t bin = bin_of(size), best = NIL, tries = 0;
    for (uint32_t b = h->bins[bin]; b != NIL && tries < BIN_TRIES; b = h->blocks[b].bin_after, tries++)
        if (h->blocks[b].size >= size && (best == NIL || h->blocks[b].size < h->blocks[best].size)) best = b;
    for (bin++; best == NIL && bin < BINS; bin++) best = h->bins[bin];
    return best;
}

static uint32_t heap_take(heap *h, uint64_t size) {
    uint32_t b = find_hole(h, size);
    if (b == NIL) {
        /* Grow the heap; a hole at its end becomes the start of the new block. */
        if (h->last != NIL && h->blocks[h->last].is_free) {
            bin_remove(h, h->last);
            h->blocks[h->last].size = size;
            h->end = h->blocks[h->last].offset + size;
            return h->last;
        }
        b = block_make(h, h->end, size, h->last, NIL);
        h->end += size;
        return b;
    }
    bin_remove(h, b);
    uint64_t rest = h->blocks[b].size - size;
    if (rest) {
        h->blocks[b].size = size;
        bin_insert(h, block_make(h, h->blocks[b].offset + size, rest, b, h->blocks[b].after));
    }
    return b;
}

static void heap_give(heap *h, uint32_t b) {
    uint32_t after = h->blocks[b].after, before = h->blocks[b].before;
    if (after != NIL && h->blocks[after].is_free) {
        bin_remove(h, after);
        h->blocks[b].size += h->blocks[after].size;
        block_drop(h, after);
    }
    if (before != NIL && h->blocks[before].is_free) {
        bin_remove(h, before);
        h->blocks[before].size += h->blocks[b].size;
        block_drop(h, b);
        b = before;
    }
    bin_insert(h, b);
}

uint64_t ent_memory_sweep(const ent_memory_problem *problem, ent_arena *scratch, uint64_t *out_offset) {
    heap h = {.first_unused = NIL, .last = NIL};
    /* Each item adds at most its own block and the rest of a split one. */
    h.blocks = ent_arena_array(scratch, (size_t)problem->count * 2 + 1, sizeof *h.blocks);
    uint32_t *held = ent_arena_array(scratch, (size_t)problem->count + 1, sizeof *held);
    if (!h.blocks || !held) return UINT64_MAX;
    for (uint32_t i = 0; i < BINS; i++) h.bins[i] = NIL;
    uint32_t freed = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        for (; problem->last[problem->by_last[freed]] < problem->first[i]; freed++)
            heap_give(&h, held[problem->by_last[freed]]);
        held[i] = heap_take(&h, problem->size[i]);
        out_offset[i] = h.blocks[held[i]].offset;
    }
    return h.end;
}
