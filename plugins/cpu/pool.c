/* One 64-bit word, the ticket, holds the region's number (high half) and its next unclaimed task (low half).
 * Claiming is a compare-and-swap on it, so a worker that slept through its region cannot claim from a later
 * one with stale fields: the number differs, or the tasks are gone. The fields (function, context, count) are
 * rewritten only after every task of the old region is done and the ticket is closed; they are stored with
 * release and read with acquire, so who reads a new field also finds the ticket closed. A successful claim
 * thus proves that the fields belong to it. */
#define _GNU_SOURCE
#include "pool.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_MAX_NS = 50000,  /* longer than the serial part between two regions of a running network */
    SPIN_MIN_NS = 1000,   /* what a wake-up costs anyway */
    PAUSES_PER_LOOK = 16, /* between two reads of the clock */
};

/* How long one thread spins. `switches` counts how often the kernel took the processor from it. */
typedef struct spinner {
    int64_t budget_ns, most_ns;
    long switches;
} spinner;

typedef struct worker {
    ent_cpu_pool *pool;
    int index;
    pthread_t thread;
} worker;

struct ent_cpu_pool {
    int threads;
    int64_t spin_ns; /* the most that a thread of this pool spins */
    worker *workers;
    _Alignas(64) _Atomic uint64_t ticket;
    _Atomic(ent_cpu_task_fn) run;
    _Atomic(void *) context;
    _Atomic uint32_t n_tasks;
    _Atomic uint32_t chunk;
    _Atomic bool stop;
    _Alignas(64) _Atomic uint32_t done; /* tasks finished in this region; the caller may sleep on it */
    _Atomic uint32_t caller_sleeps;
    _Alignas(64) _Atomic uint32_t region; /* the region's number; workers sleep on it */
    _Atomic uint32_t sleepers;
    spinner caller; /* used by the caller of a region alone */
};

static void futex_wait(_Atomic uint32_t *word, uint32_t expected) {
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count) {
    syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static spinner spinner_start(const ent_cpu_pool *pool) {
    return (spinner){.budget_ns = pool->spin_ns, .most_ns = pool->spin_ns};
}

/* Spinning takes processor time from whoever should end it, once threads outnumber processors: then spin
 * less. */
static void spinner_adapt(spinner *s) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) return;
    if (usage.ru_nivcsw > s->switches) s->budget_ns /= 2;
    if (s->budget_ns < SPIN_MIN_NS) s->budget_ns = SPIN_MIN_NS;
    s->switches = usage.ru_nivcsw;
}

/* Spins until *word differs from `old` or the time is over. True if the word changed. */
static bool spin_while(_Atomic uint32_t *word, uint32_t old, spinner *s) {
    int64_t start = now_ns();
    do {
        for (int i = 0; i < PAUSES_PER_LOOK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != old) {
                if (s->budget_ns < s->most_ns) s->budget_ns += s->budget_ns / 32;
                return true;
            }
            _mm_pause();
        }
    } while (now_ns() - start < s->budget_ns);
    spinner_adapt(s);
    return false;
}

/* Claims and runs chunks of the region until none is left. */
static void take_part(ent_cpu_pool *pool, uint32_t region, int thread) {
    ent_cpu_task_fn run = atomic_load_explicit(&pool->run, memory_order_acquire);
    void *context = atomic_load_explicit(&pool->context, memory_order_acquire);
    uint32_t n_tasks = atomic_load_explicit(&pool->n_tasks, memory_order_acquire);
    uint32_t chunk = atomic_load_explicit(&pool->chunk, memory_order_acquire);
    uint32_t finished = 0;
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    for (;;) {
        uint32_t next = (uint32_t)ticket;
        if (ticket >> 32 != region || next >= n_tasks) break;
        uint32_t end = n_tasks - next < chunk ? n_tasks : next + chunk;
        uint64_t claimed = (uint64_t)region << 32 | end;
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, claimed, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        run(context, next, end, thread);
        finished += end - next;
        ticket = claimed;
        if (end < n_tasks) ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
    if (finished == 0) return;
    uint32_t done = atomic_fetch_add_explicit(&pool->done, finished, memory_order_seq_cst) + finished;
    if (done == n_tasks && thread != 0 && atomic_load_explicit(&pool->caller_sleeps, memory_order_seq_cst))
        futex_wake(&pool->done, 1);
}

static void *work(void *argument) {
    worker *self = argument;
    ent_cpu_pool *pool = self->pool;
    spinner spin = spinner_start(pool);
    uint32_t seen = 0;
    for (;;) {
        if (!spin_while(&pool->region, seen, &spin)) {
            atomic_fetch_add_explicit(&pool->sleepers, 1, memory_order_seq_cst);
            while (atomic_load_explicit(&pool->region, memory_order_seq_cst) == seen)
                futex_wait(&pool->region, seen);
            atomic_fetch_sub_explicit(&pool->sleepers, 1, memory_order_seq_cst);
        }
        seen = atomic_load_explicit(&pool->region, memory_order_acquire);
        if (atomic_load_explicit(&pool->stop, memory_order_acquire)) return NULL;
        take_part(pool, seen, self->index);
    }
}

ent_cpu_pool *ent_cpu_pool_create(int threads) {
    ent_cpu_pool *pool = aligned_alloc(64, sizeof *pool);
    if (!pool) return NULL;
    *pool = (ent_cpu_pool){.threads = 1};
    if (threads <= 1) return pool;
    cpu_set_t set;
    bool crowded = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < threads;
    pool->spin_ns = crowded ? SPIN_MIN_NS : SPIN_MAX_NS;
    pool->caller = spinner_start(pool);
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    if (!pool->workers) {
        free(pool);
        return NULL;
    }
    for (int i = 1; i < threads; i++) {
        worker *w = &pool->workers[i];
        w->pool = pool;
        w->index = i;
        if (pthread_create(&w->thread, NULL, work, w) != 0) break;
        pool->threads = i + 1;
    }
    return pool;
}

/* Publishes the next region's number and wakes up to `wanted` sleeping workers. */
static void announce(ent_cpu_pool *pool, uint32_t region, int64_t wanted) {
    atomic_store_explicit(&pool->region, region, memory_order_seq_cst);
    uint32_t sleepers = atomic_load_explicit(&pool->sleepers, memory_order_seq_cst);
    if (sleepers > 0) futex_wake(&pool->region, wanted < (int64_t)sleepers ? (int)wanted : (int)sleepers);
}

void ent_cpu_pool_destroy(ent_cpu_pool *pool) {
    if (!pool) return;
    atomic_store_explicit(&pool->stop, true, memory_order_release);
    announce(pool, atomic_load_explicit(&pool->region, memory_order_relaxed) + 1, pool->threads);
    for (int i = 1; i < pool->threads; i++) pthread_join(pool->workers[i].thread, NULL);
    free(pool->workers);
    free(pool);
}

int ent_cpu_pool_threads(const ent_cpu_pool *pool) {
    return pool->threads;
}

static void wait_until_done(ent_cpu_pool *pool, uint32_t n_tasks) {
    for (;;) {
        uint32_t done = atomic_load_explicit(&pool->done, memory_order_acquire);
        if (done == n_tasks) return;
        if (spin_while(&pool->done, done, &pool->caller)) continue;
        atomic_store_explicit(&pool->caller_sleeps, 1, memory_order_seq_cst);
        while ((done = atomic_load_explicit(&pool->done, memory_order_seq_cst)) != n_tasks)
            futex_wait(&pool->done, done);
        atomic_store_explicit(&pool->caller_sleeps, 0, memory_order_relaxed);
        return;
    }
}

void ent_cpu_pool_run(ent_cpu_pool *pool, int64_t n_tasks, ent_cpu_task_fn run, void *context) {
    if (n_tasks <= 0) return;
    if (pool->threads == 1 || n_tasks == 1) {
        run(context, 0, n_tasks, 0);
        return;
    }
    int64_t chunk = n_tasks / (pool->threads * 8);
    uint32_t region = atomic_load_explicit(&pool->region, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool->ticket, (uint64_t)region << 32 | UINT32_MAX,
                          memory_order_release); /* closed */
    atomic_store_explicit(&pool->run, run, memory_order_release);
    atomic_store_explicit(&pool->context, context, memory_order_release);
    atomic_store_explicit(&pool->n_tasks, (uint32_t)n_tasks, memory_order_release);
    atomic_store_explicit(&pool->chunk, (uint32_t)(chunk > 1 ? chunk : 1), memory_order_release);
    atomic_store_explicit(&pool->done, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->ticket, (uint64_t)region << 32, memory_order_release);
    announce(pool, region, n_tasks - 1);
    take_part(pool, region, 0);
    wait_until_done(pool, (uint32_t)n_tasks);
}
