/* The thread pool: every task runs exactly once, results are visible, regions may follow each other at any
 * pace. */
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pool.h"

enum { MAX_TASKS = 3000, MAX_THREADS = 8 };

typedef struct job {
    int runs[MAX_TASKS];
    _Atomic int inside[MAX_THREADS]; /* how many calls hold each thread index: never more than one */
    _Atomic int bad;
    int threads;
} job;

static void count(void *context, int64_t begin, int64_t end, int thread) {
    job *j = context;
    if (thread < 0 || thread >= j->threads || atomic_fetch_add(&j->inside[thread], 1) != 0)
        atomic_store(&j->bad, 1);
    for (int64_t i = begin; i < end; i++) j->runs[i]++;
    atomic_fetch_sub(&j->inside[thread], 1);
}

static void pause_ns(long ns) {
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

START_TEST(each_task_once) {
    static job j;
    memset(&j, 0, sizeof j);
    ent_cpu_pool *pool = ent_cpu_pool_create(_i);
    ck_assert_ptr_nonnull(pool);
    j.threads = ent_cpu_pool_threads(pool);
    ck_assert_int_ge(j.threads, 1);
    ck_assert_int_le(j.threads, _i > 1 ? _i : 1);
    int want[MAX_TASKS] = {0};
    for (int round = 0; round < 2000; round++) {
        int n = round % 7 == 0 ? MAX_TASKS : round % 13;
        ent_cpu_pool_run(pool, n, count, &j);
        for (int i = 0; i < n; i++) want[i]++;
        ck_assert(memcmp(want, j.runs, sizeof want) == 0);
        /* Longer than the spin time now and then, so that workers sleep and must be woken. */
        if (round % 250 == 0) pause_ns(2000000);
    }
    ck_assert_int_eq(atomic_load(&j.bad), 0);
    ent_cpu_pool_destroy(pool);
}
END_TEST

START_TEST(create_and_destroy) {
    ent_cpu_pool_destroy(NULL);
    for (int i = 0; i < 50; i++) {
        ent_cpu_pool *pool = ent_cpu_pool_create(4);
        if (i % 2) pause_ns(200000);
        ent_cpu_pool_destroy(pool);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cpu_pool");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, each_task_once, 0, MAX_THREADS + 1);
    tcase_add_test(cases, create_and_destroy);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
