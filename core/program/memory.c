/* Offline memory placement: a portfolio of orders, each placed by best fit, then a bounded improvement
 * search.
 *
 * No single order is good everywhere: largest first packs wide networks, longest first long skip connections,
 * most contended first the peak itself. Each order places one item after another into the smallest gap that
 * the items already placed and alive at the same time leave. Those are found in a segment tree over the items
 * by first step that holds the last step of what is placed, so an item costs O(conflicts * log n), not O(n).
 * Dense problems could still be quadratic: each order has a budget of conflicts and is given up beyond it;
 * the sweep (memory_sweep.c) comes first and always finishes. An order is also given up as soon as it reaches
 * the best peak so far. The search ends at the lower bound, which is reached on nearly every real network.
 * Related: Pisarchyk and Lee, "Efficient memory management for deep neural net inference" (2020); MiniMalloc
 * (2023). */
#include "core/program/memory.h"

#include <stdlib.h>
#include <string.h>

#define ORDER_BUDGET ((uint64_t)3 << 20)  /* conflicts an order may look at */
#define SEARCH_BUDGET ((uint64_t)2 << 20) /* the same for the whole improvement search */
#define SEARCH_ROUNDS 400u
#define FAILED UINT64_MAX

typedef struct span {
    uint64_t begin, end;
} span;

/* Sort record: descending by key, ties by first step, then by position. */
typedef struct ranked {
    uint64_t key;
    uint32_t position;
} ranked;

typedef struct placer {
    ent_memory_problem problem;
    uint32_t leaves; /* power of two */
    uint32_t *tree;  /* max of last + 1 over the placed items below; 0: none */
    span *conflicts;
    uint64_t *offset, *best_offset;
    uint32_t *order, *best_order;
    uint64_t best_peak, bound;
    uint64_t budget;
} placer;

static int compare_ranked(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->key != b->key) return a->key < b->key ? 1 : -1;
    return (a->position > b->position) - (a->position < b->position);
}

static int compare_span(const void *left, const void *right) {
    const span *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Number of positions whose first step is <= step. */
static uint32_t started_by(const ent_memory_problem *problem, uint32_t step) {
    uint32_t low = 0, high = problem->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (problem->first[middle] <= step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Collects the placed items alive together with item `i`; returns their number. Walks the tree from the left,
 * skipping subtrees in which everything ended before. */
static uint32_t find_conflicts(placer *p, uint32_t i) {
    const ent_memory_problem *problem = &p->problem;
    uint32_t limit = started_by(problem, problem->last[i]), first = problem->first[i], count = 0;
    uint32_t stack[64], depth = 0;
    stack[depth++] = 1;
    while (depth) {
        uint32_t node = stack[--depth];
        if (p->tree[node] <= first) continue;
        if (node >= p->leaves) {
            uint32_t at = node - p->leaves;
            if (at < limit) p->conflicts[count++] = (span){p->offset[at], p->offset[at] + problem->size[at]};
            continue;
        }
        uint32_t shift = (uint32_t)__builtin_clz(node) - (uint32_t)__builtin_clz(p->leaves);
        uint32_t leftmost = (node << shift) - p->leaves;
        if (leftmost >= limit) continue;
        stack[depth++] = 2 * node + 1;
        stack[depth++] = 2 * node;
    }
    return count;
}

static void mark_placed(placer *p, uint32_t i) {
    uint32_t end = p->problem.last[i] + 1;
    for (uint32_t node = p->leaves + i; node; node /= 2) {
        if (p->tree[node] >= end) break;
        p->tree[node] = end;
    }
}

static uint64_t best_fit(span *spans, uint32_t count, uint64_t size) {
    qsort(spans, count, sizeof *spans, compare_span);
    uint64_t cursor = 0, best = FAILED, best_gap = FAILED;
    for (uint32_t i = 0; i < count; i++) {
        if (spans[i].begin > cursor) {
            uint64_t gap = spans[i].begin - cursor;
            if (gap >= size && gap < best_gap) best = cursor, best_gap = gap;
        }
        if (spans[i].end > cursor) cursor = spans[i].end;
    }
    return best != FAILED ? best : cursor;
}

/* Places all items in p->order into p->offset. FAILED when the budget ends or the peak would be above
 * `limit`. */
static uint64_t place_order(placer *p, uint64_t limit) {
    memset(p->tree, 0, (size_t)p->leaves * 2 * sizeof *p->tree);
    uint64_t peak = 0;
    for (uint32_t k = 0; k < p->problem.count; k++) {
        uint32_t i = p->order[k];
        uint32_t count = find_conflicts(p, i);
        if (p->budget < (uint64_t)count + 1) return FAILED;
        p->budget -= (uint64_t)count + 1;
        p->offset[i] = best_fit(p->conflicts, count, p->problem.size[i]);
        uint64_t end = p->offset[i] + p->problem.size[i];
        if (end > limit) return FAILED;
        if (end > peak) peak = end;
        mark_placed(p, i);
    }
    return peak;
}

static void keep_best(placer *p, uint64_t peak) {
    p->best_peak = peak;
    memcpy(p->best_offset, p->offset, p->problem.count * sizeof *p->offset);
    memcpy(p->best_order, p->order, p->problem.count * sizeof *p->order);
}

static uint64_t lower_bound(const ent_memory_problem *problem) {
    uint64_t live = 0, most = 0;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        for (; problem->last[problem->by_last[ended]] < problem->first[i]; ended++)
            live -= problem->size[problem->by_last[ended]];
        live += problem->size[i];
        if (live > most) most = live;
    }
    return most;
}

/* Per position the largest sum of live sizes while it lives. The sum peaks where an item starts, so positions
 * stand for steps: a range maximum over [own position, last that starts while it lives], in the tree that the
 * placement does not need yet. */
static void contention(const placer *p, uint64_t *tree, uint64_t *out) {
    const ent_memory_problem *problem = &p->problem;
    uint64_t live = 0;
    uint32_t ended = 0;
    for (uint32_t i = 0; i < problem->count; i++) {
        for (; problem->last[problem->by_last[ended]] < problem->first[i]; ended++)
            live -= problem->size[problem->by_last[ended]];
        live += problem->size[i];
        tree[p->leaves + i] = live;
    }
    for (uint32_t node = p->leaves - 1; node; node--)
        tree[node] = tree[2 * node] > tree[2 * node + 1] ? tree[2 * node] : tree[2 * node + 1];
    for (uint32_t i = 0; i < problem->count; i++) {
        uint64_t most = 0;
        uint32_t low = p->leaves + i, high = p->leaves + started_by(problem, problem->last[i]);
        for (; low < high; low /= 2, high /= 2) {
            if (low & 1u) most = tree[low] > most ? tree[low] : most, low++;
            if (high & 1u) high--, most = tree[high] > most ? tree[high] : most;
        }
        out[i] = most;
    }
}

typedef enum order_kind {
    ORDER_SIZE,
    ORDER_CONFLICT,
    ORDER_AREA,
    ORDER_DURATION,
    ORDER_START,
    ORDER_COUNT
} order_kind;

static void make_order(placer *p, order_kind kind, const uint64_t *contended, ranked *scratch) {
    const ent_memory_problem *problem = &p->problem;
    for (uint32_t i = 0; i < problem->count; i++) {
        uint64_t duration = (uint64_t)problem->last[i] - problem->first[i] + 1, key = 0;
        switch (kind) {
        case ORDER_SIZE:
            key = problem->size[i];
            break;
        case ORDER_CONFLICT:
            key = contended[i];
            break;
        case ORDER_AREA:
            if (__builtin_mul_overflow(problem->size[i], duration, &key)) key = UINT64_MAX;
            break;
        case ORDER_DURATION:
            key = duration;
            break;
        default:
            break;
        }
        scratch[i] = (ranked){key, i};
    }
    qsort(scratch, problem->count, sizeof *scratch, compare_ranked);
    for (uint32_t i = 0; i < problem->count; i++) p->order[i] = scratch[i].position;
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A position in best_order of some item that touches the peak. */
static uint32_t pick_top_item(const placer *p, uint64_t *state) {
    uint32_t chosen = 0, seen = 0;
    for (uint32_t k = 0; k < p->problem.count; k++) {
        uint32_t i = p->best_order[k];
        if (p->best_offset[i] + p->problem.size[i] == p->best_peak && next_random(state) % ++seen == 0)
            chosen = k;
    }
    return chosen;
}

/* Moves an item that causes the peak to an earlier turn, keeps what is not worse. */
static void improve(placer *p) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    p->budget = SEARCH_BUDGET;
    for (uint32_t round = 0; round < SEARCH_ROUNDS && p->best_peak > p->bound && p->budget > p->problem.count;
         round++) {
        uint32_t from = pick_top_item(p, &state);
        uint32_t to = from ? (uint32_t)(next_random(&state) % from)
                           : (uint32_t)(next_random(&state) % p->problem.count);
        uint32_t moved = p->best_order[from];
        memcpy(p->order, p->best_order, p->problem.count * sizeof *p->order);
        if (to < from)
            memmove(p->order + to + 1, p->order + to, (from - to) * sizeof *p->order);
        else
            memmove(p->order + from, p->order + from + 1, (to - from) * sizeof *p->order);
        p->order[to] = moved;
        uint64_t peak = place_order(p, p->best_peak);
        if (peak != FAILED) keep_best(p, peak);
    }
}

static bool allocate(placer *p, ent_arena *scratch) {
    size_t count = p->problem.count;
    for (p->leaves = 1; p->leaves < count; p->leaves *= 2) continue;
    p->tree = ent_arena_array(scratch, (size_t)p->leaves * 2, sizeof *p->tree);
    p->conflicts = ent_arena_array(scratch, count, sizeof *p->conflicts);
    p->offset = ent_arena_array(scratch, count, sizeof *p->offset);
    p->best_offset = ent_arena_array(scratch, count, sizeof *p->best_offset);
    p->order = ent_arena_array(scratch, count, sizeof *p->order);
    p->best_order = ent_arena_array(scratch, count, sizeof *p->best_order);
    return p->tree && p->conflicts && p->offset && p->best_offset && p->order && p->best_order;
}

static ent_status search(placer *p, ent_arena *scratch) {
    if (!allocate(p, scratch)) return ent_status_out_of_memory();
    ranked *sorting = ent_arena_array(scratch, p->problem.count, sizeof *sorting);
    uint64_t *contended = ent_arena_array(scratch, p->problem.count, sizeof *contended);
    uint64_t *sums = ent_arena_array(scratch, (size_t)p->leaves * 2, sizeof *sums);
    if (!sorting || !contended || !sums) return ent_status_out_of_memory();
    p->bound = lower_bound(&p->problem);
    make_order(p, ORDER_START, contended, sorting);
    uint64_t peak = ent_memory_sweep(&p->problem, scratch, p->offset);
    if (peak == FAILED) return ent_status_out_of_memory();
    keep_best(p, peak);
    if (p->best_peak > p->bound) contention(p, sums, contended);
    for (order_kind kind = ORDER_SIZE; kind < ORDER_COUNT && p->best_peak > p->bound; kind++) {
        make_order(p, kind, contended, sorting);
        p->budget = ORDER_BUDGET;
        peak = place_order(p, p->best_peak - 1);
        if (peak != FAILED) keep_best(p, peak);
    }
    if (p->best_peak > p->bound) improve(p);
    return NULL;
}

/* Copies the items of non-zero size into the problem's arrays; out_items[position] is the caller's index. */
static ent_status pose(ent_arena *scratch, const ent_memory_item *items, uint32_t count, uint32_t alignment,
                       ent_memory_problem *out, uint32_t **out_items) {
    ranked *sorting = ent_arena_array(scratch, (size_t)count + 1, sizeof *sorting);
    uint32_t *first = ent_arena_array(scratch, (size_t)count + 1, sizeof *first);
    uint32_t *last = ent_arena_array(scratch, (size_t)count + 1, sizeof *last);
    uint32_t *by_last = ent_arena_array(scratch, (size_t)count + 1, sizeof *by_last);
    uint64_t *size = ent_arena_array(scratch, (size_t)count + 1, sizeof *size), total = 0;
    uint32_t *ids = ent_arena_array(scratch, (size_t)count + 1, sizeof *ids), n = 0;
    if (!sorting || !first || !last || !by_last || !size || !ids) return ent_status_out_of_memory();
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].size_bytes == 0) continue;
        uint64_t aligned = 0;
        if (__builtin_add_overflow(items[i].size_bytes, (uint64_t)alignment - 1, &aligned) ||
            __builtin_add_overflow(total, aligned, &total) || total > INT64_MAX / 2)
            return ent_status_make(scratch, ENT_ERROR_LIMIT, "memory.size", "memory plan",
                                   "the values together need more than 2^62 bytes; use smaller shapes");
        sorting[n++] = (ranked){UINT64_MAX - items[i].first, i};
    }
    qsort(sorting, n, sizeof *sorting, compare_ranked);
    for (uint32_t k = 0; k < n; k++) {
        const ent_memory_item *item = &items[sorting[k].position];
        ids[k] = sorting[k].position;
        first[k] = item->first, last[k] = item->last;
        size[k] = ent_program_align(item->size_bytes, alignment);
    }
    for (uint32_t k = 0; k < n; k++) sorting[k] = (ranked){UINT64_MAX - last[k], k};
    qsort(sorting, n, sizeof *sorting, compare_ranked);
    for (uint32_t k = 0; k < n; k++) by_last[k] = sorting[k].position;
    *out = (ent_memory_problem){n, first, last, size, by_last};
    *out_items = ids;
    return NULL;
}

ent_status ent_memory_place(ent_arena *scratch, ent_memory_item *items, uint32_t count, uint32_t alignment,
                            ent_memory_result *out) {
    placer p = {0};
    uint32_t *ids = NULL;
    *out = (ent_memory_result){0, 0};
    ENT_TRY(pose(scratch, items, count, alignment ? alignment : 1, &p.problem, &ids));
    for (uint32_t i = 0; i < count; i++) items[i].offset_bytes = 0;
    if (p.problem.count == 0) return NULL;
    ENT_TRY(search(&p, scratch));
    for (uint32_t k = 0; k < p.problem.count; k++) items[ids[k]].offset_bytes = p.best_offset[k];
    *out = (ent_memory_result){p.best_peak, p.bound};
    return NULL;
}
