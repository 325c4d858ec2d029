/* Between api.c and api_async.c. */
#ifndef ENT_RUNTIME_API_H
#define ENT_RUNTIME_API_H

#include <pthread.h>

#include "core/runtime/runtime.h"
#include "entente/entente.h"

struct entente_runtime {
    ent_arena *arena;
    ent_host_registry *registry;
    pthread_mutex_t mutex; /* registry and plugins */
    uint32_t threads;
    ent_log_sink sink;
};

/* The thread behind entente_run_async; made on first use. */
typedef struct runtime_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const entente_tensor *inputs;
    entente_tensor *outputs;
    enum { WORKER_IDLE, WORKER_ASKED, WORKER_DONE, WORKER_STOP } state;
    int code;
    entente_error error;
} runtime_worker;

struct entente_bundle {
    entente_runtime *owner;
    ent_arena *arena;
    ent_bundle file;
    ent_runtime *runtime;
    ent_tensor *inputs, *outputs;
    const ent_runtime_timing *timings;
    uint32_t timing_count;
    runtime_worker *worker;
};

int ent_runtime_api_fail(entente_error *error, int code, const char *rule, const char *place,
                         const char *text);
int ent_runtime_api_status(entente_error *error, ent_status status);
int ent_runtime_api_check_counts(const entente_bundle *bundle, size_t input_count, size_t output_count,
                                 entente_error *error);
int ent_runtime_api_run(entente_bundle *bundle, const entente_tensor *inputs, entente_tensor *outputs,
                        entente_error *error);
void ent_runtime_api_stop_worker(entente_bundle *bundle);

#endif
