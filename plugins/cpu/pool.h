/* A fork-join thread pool for short parallel regions.
 *
 * Workers spin for a bounded time after a region and then sleep, so that back-to-back regions cost about a
 * microsecond and an idle pool costs nothing. Where the processors are contended (a worker finds itself
 * descheduled while spinning) the spin time shrinks by itself. A worker that wakes too late is not waited
 * for: the region ends when its tasks have. */
#ifndef ENT_CPU_POOL_H
#define ENT_CPU_POOL_H

#include <stdint.h>

typedef struct ent_cpu_pool ent_cpu_pool;

/* Runs tasks [begin, end). `thread` is below the pool's thread count, 0 being the caller; no two calls of one
 * region run at the same time with the same value, so it can index scratch memory. */
typedef void (*ent_cpu_task_fn)(void *context, int64_t begin, int64_t end, int thread);

/* A pool of `threads` (at least 1, the caller counted). With 1 no thread is started. If the system refuses
 * threads, the pool has fewer. NULL when out of memory. */
ent_cpu_pool *ent_cpu_pool_create(int threads);

/* Stops and joins the workers. NULL is allowed. No region may be running. */
void ent_cpu_pool_destroy(ent_cpu_pool *pool);

int ent_cpu_pool_threads(const ent_cpu_pool *pool);

/* Runs tasks 0 .. n_tasks-1, in chunks that the threads claim as they go, and returns when all are done;
 * everything the tasks wrote is then visible. One region at a time for a pool; not from inside a task.
 * n_tasks below 2^31. */
void ent_cpu_pool_run(ent_cpu_pool *pool, int64_t n_tasks, ent_cpu_task_fn run, void *context);

#endif
