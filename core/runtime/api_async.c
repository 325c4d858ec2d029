/* entente_run_async: a thread per bundle that asks for it. Plugins whose queues are asynchronous overlap
 * within a run anyway; the thread is for callers who do not want to wait for the run. */
#include "core/runtime/api.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void *work(void *argument) {
    entente_bundle *bundle = argument;
    runtime_worker *w = bundle->worker;
    pthread_mutex_lock(&w->mutex);
    for (;;) {
        while (w->state != WORKER_ASKED && w->state != WORKER_STOP) pthread_cond_wait(&w->changed, &w->mutex);
        if (w->state == WORKER_STOP) break;
        pthread_mutex_unlock(&w->mutex);
        int code = ent_runtime_api_run(bundle, w->inputs, w->outputs, &w->error);
        pthread_mutex_lock(&w->mutex);
        w->code = code;
        w->state = WORKER_DONE;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static bool start_worker(entente_bundle *bundle) {
    pthread_condattr_t attributes;
    runtime_worker *w = calloc(1, sizeof *w);
    if (!w) return false;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    bundle->worker = w;
    if (pthread_create(&w->thread, NULL, work, bundle) == 0) return true;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
    bundle->worker = NULL;
    return false;
}

void ent_runtime_api_stop_worker(entente_bundle *bundle) {
    runtime_worker *w = bundle->worker;
    if (!w) return;
    pthread_mutex_lock(&w->mutex);
    while (w->state == WORKER_ASKED) pthread_cond_wait(&w->changed, &w->mutex);
    w->state = WORKER_STOP;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->mutex);
    free(w);
    bundle->worker = NULL;
}

int entente_run_async(entente_bundle *bundle, const entente_tensor *inputs, size_t input_count,
                      entente_tensor *outputs, size_t output_count, entente_error *error) {
    int code = ent_runtime_api_check_counts(bundle, input_count, output_count, error);
    if (code) return code;
    if (!bundle->worker && !start_worker(bundle))
        return ent_runtime_api_fail(error, ENTENTE_LIMIT, "run.thread", bundle->file.program->name,
                                    "no thread could be started for the run");
    runtime_worker *w = bundle->worker;
    pthread_mutex_lock(&w->mutex);
    bool idle = w->state == WORKER_IDLE;
    if (idle) {
        w->inputs = inputs;
        w->outputs = outputs;
        w->state = WORKER_ASKED;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->mutex);
    return idle ? ENTENTE_OK
                : ent_runtime_api_fail(
                      error, ENTENTE_USAGE, "run.busy", bundle->file.program->name,
                      "a run is under way; wait for it with entente_wait, or load the bundle twice");
}

static struct timespec deadline_after(uint64_t timeout_ns) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t seconds = timeout_ns / 1000000000u, rest = timeout_ns % 1000000000u + (uint64_t)now.tv_nsec;
    if (seconds > 1u << 30) seconds = 1u << 30; /* for ever, within time_t */
    return (struct timespec){now.tv_sec + (time_t)(seconds + rest / 1000000000u), (long)(rest % 1000000000u)};
}

int entente_wait(entente_bundle *bundle, uint64_t timeout_ns, int *out_done, entente_error *error) {
    runtime_worker *w = bundle->worker;
    int code = ENTENTE_OK, waited = 0;
    *out_done = 0;
    if (!w)
        return ent_runtime_api_fail(error, ENTENTE_USAGE, "run.idle", bundle->file.program->name,
                                    "no run was started with entente_run_async");
    struct timespec deadline = deadline_after(timeout_ns);
    pthread_mutex_lock(&w->mutex);
    while (w->state == WORKER_ASKED && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&w->changed, &w->mutex, &deadline);
    bool idle = w->state == WORKER_IDLE;
    if (w->state == WORKER_DONE) {
        *out_done = 1;
        code = w->code;
        if (code && error) *error = w->error;
        w->state = WORKER_IDLE;
    }
    pthread_mutex_unlock(&w->mutex);
    return idle ? ent_runtime_api_fail(error, ENTENTE_USAGE, "run.idle", bundle->file.program->name,
                                       "no run was started with entente_run_async")
                : code;
}
