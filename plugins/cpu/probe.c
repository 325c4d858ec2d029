#define _GNU_SOURCE
#include "probe.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_FLOATS = 24 << 20 >> 2, ROUNDS = 8, SAMPLE_NS = 1500000 };

typedef struct bench {
    const ent_cpu_kernels *kernels;
    ent_cpu_pool *pool;
    float *memory;
    int64_t n;
} bench;

/* CLOCK_THREAD_CPUTIME_ID leaves out the time that other programs took from this core. */
static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double time_calls(void (*run)(void *context), void *context, int64_t calls, clockid_t clock) {
    int64_t start = now_ns(clock);
    for (int64_t i = 0; i < calls; i++) run(context);
    return (double)(now_ns(clock) - start);
}

double ent_cpu_least_ns(void (*run)(void *context), void *context, clockid_t clock, double sample_ns) {
    double least = 1e30;
    int64_t calls = 1;
    run(context);
    while (calls < 1 << 20 && time_calls(run, context, calls, clock) < sample_ns / 4) calls *= 2;
    for (int round = 0; round < ROUNDS; round++) {
        double each = time_calls(run, context, calls, clock) / (double)calls;
        if (each < least) least = each;
    }
    return least;
}

static double least_ns(bench *b, void (*run)(void *context)) {
    return ent_cpu_least_ns(run, b, CLOCK_THREAD_CPUTIME_ID, SAMPLE_NS);
}

static void run_fma(void *context) {
    bench *b = context;
    b->kernels->fma_work(20000);
}

static void run_read(void *context) {
    bench *b = context;
    volatile float sink = b->kernels->read_work(b->memory, b->n);
    (void)sink;
}

static void run_add(void *context) {
    bench *b = context;
    b->kernels->binary[ENT_CPU_ADD][ENT_CPU_F32](b->memory, 1, b->memory + 2048, 1, b->memory + 4096, 2048);
}

static void run_divide(void *context) {
    bench *b = context;
    b->kernels->binary[ENT_CPU_DIV][ENT_CPU_F32](b->memory, 1, b->memory + 2048, 1, b->memory + 4096, 2048);
}

static void run_tanh(void *context) {
    bench *b = context;
    b->kernels->unary[ENT_CPU_TANH](b->memory, b->memory + 2048, 2048, 0, 0);
}

static void run_sum(void *context) {
    bench *b = context;
    volatile float sink = b->kernels->reduce[ENT_CPU_REDUCE_SUM](b->memory, 2048);
    (void)sink;
}

static void run_softmax(void *context) {
    bench *b = context;
    b->kernels->softmax_row(b->memory, b->memory + 2048, 256, 1.0f);
}

static void run_copy(void *context) {
    bench *b = context;
    b->kernels->copy_rows(b->memory, 1024, b->memory + 65536, 2048, 64, 1024);
}

static void run_gemm(void *context) {
    bench *b = context;
    float *a = b->memory, *packed = a + 64 * 256, *c = packed + 64 * 256;
    ent_cpu_gemm g = {.m = 64,
                      .n = 64,
                      .k = 256,
                      .batch = 1,
                      .a = a,
                      .a_stride = 256,
                      .b = packed,
                      .b_panel_stride = 256 * ENT_CPU_PANEL,
                      .c = {.base = c, .stride = 64}};
    b->kernels->gemm(&g);
}

static void run_gemm8(void *context) {
    bench *b = context;
    char *bytes = (char *)b->memory, *packed = bytes + 64 * 256, *a = packed + 64 * 256;
    for (int64_t i = 0; i < 64; i++)
        b->kernels->pack_a8((uint8_t *)bytes + i * 256, 1, 256, false, 128,
                            a + i * 256 * b->kernels->a8_bytes);
    ent_cpu_gemm8 g = {.m = 64,
                       .n = 64,
                       .k = 256,
                       .a = a,
                       .a_stride = 256,
                       .a_zero = 128,
                       .b = (uint8_t *)packed,
                       .b_panel_stride = 256 * ENT_CPU_PANEL,
                       .b_signed = true,
                       .c = {.base = b->memory + 16384, .stride = 64}};
    b->kernels->gemm8(&g);
}

static void run_depthwise(void *context) {
    bench *b = context;
    const float *in[9], *weights[9];
    for (int i = 0; i < 9; i++) {
        in[i] = b->memory + (i / 3 * 32 + i % 3) * 64;
        weights[i] = b->memory + 16384 + i * 64;
    }
    ent_cpu_window w = {.op = ENT_CPU_WINDOW_DEPTHWISE,
                        .taps = 9,
                        .width = 24,
                        .channels = 64,
                        .in = in,
                        .in_stride = 64,
                        .weights = weights,
                        .out = b->memory + 20480,
                        .out_stride = 64};
    b->kernels->window(&w);
}

enum { TASK_NS = 4000 };

static void wait_a_while(void *context, int64_t begin, int64_t end, int thread) {
    (void)context;
    (void)thread;
    for (int64_t i = begin; i < end; i++) {
        int64_t start = now_ns(CLOCK_MONOTONIC);
        while (now_ns(CLOCK_MONOTONIC) - start < TASK_NS) continue;
    }
}

/* A task for each thread, long enough that every thread gets one: empty tasks would all be done by the
 * caller. */
static void run_region(void *context) {
    bench *b = context;
    ent_cpu_pool_run(b->pool, ent_cpu_pool_threads(b->pool), wait_a_while, NULL);
}

/* If the tasks ran one after the other, another program had the second processor: sleep a little and look
 * again. If it never leaves, the figure says nothing about this machine beyond that bound. */
static double fork_join_ns(bench *b) {
    double least = 1e30;
    for (int attempt = 0; attempt < 10; attempt++) {
        double each = ent_cpu_least_ns(run_region, b, CLOCK_MONOTONIC, SAMPLE_NS) - TASK_NS;
        if (each < least) least = each;
        if (least < TASK_NS / 2) break;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return least < TASK_NS / 2 ? least : TASK_NS / 2;
}

static bool read_line(const char *directory, const char *file, char *line, int size) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(line, size, f) != NULL;
    fclose(f);
    return ok;
}

/* Counts processors in a list such as "0-3,8". */
static int32_t count_list(const char *list) {
    int32_t count = 0;
    while (*list >= '0' && *list <= '9') {
        char *end;
        long first = strtol(list, &end, 10), last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        count += (int32_t)(last - first + 1);
        list = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void find_caches(ent_cpu_probe *probe) {
    for (int i = 0; i < 8; i++) {
        char directory[128], type[64], line[256];
        snprintf(directory, sizeof directory, "/sys/devices/system/cpu/cpu0/cache/index%d", i);
        if (!read_line(directory, "type", type, sizeof type) || strncmp(type, "Instruction", 11) == 0)
            continue;
        if (!read_line(directory, "level", line, sizeof line)) continue;
        int level = atoi(line);
        if (!read_line(directory, "size", line, sizeof line)) continue;
        char *unit;
        int64_t bytes = strtol(line, &unit, 10) * (*unit == 'K' ? 1024 : *unit == 'M' ? 1 << 20 : 1);
        if (level == 1) probe->l1_bytes = bytes;
        if (level == 2) probe->l2_bytes = bytes;
        if (level != 3) continue;
        probe->l3_bytes = bytes;
        if (read_line(directory, "shared_cpu_list", line, sizeof line))
            probe->l3_processors = count_list(line);
    }
}

/* Bytes per ns when reading `bytes` again and again; the working set is half the level, to leave room for the
 * rest. */
static double read_rate(bench *b, int64_t bytes) {
    if (bytes > (int64_t)ARENA_FLOATS * 4) bytes = (int64_t)ARENA_FLOATS * 4;
    b->n = bytes / 4;
    return (double)bytes / least_ns(b, run_read);
}

/* A level shared with other processors, or with other guests of the host, keeps less than its size. */
static int64_t kept_bytes(bench *b, const ent_cpu_probe *p) {
    int64_t kept = p->l2_bytes ? p->l2_bytes * 4 : 2 << 20, most = p->l3_bytes ? p->l3_bytes : kept;
    while (kept * 2 <= most && kept * 2 <= (int64_t)ARENA_FLOATS * 4 &&
           read_rate(b, kept * 2) > 0.7 * p->l3_read_bytes_per_ns)
        kept *= 2;
    return kept;
}

/* One pass over memory that was flushed from the caches. */
static double dram_rate(bench *b) {
    double best = 0;
    b->n = 4 << 20 >> 2;
    for (int i = 0; i < ROUNDS; i++) {
        for (int64_t at = 0; at < b->n; at += 16) __builtin_ia32_clflush(b->memory + at);
        __builtin_ia32_mfence();
        int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        run_read(b);
        double rate = (double)b->n * 4 / (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - start);
        if (rate > best) best = rate;
    }
    return best;
}

bool ent_cpu_probe_run(const ent_cpu_kernels *kernels, ent_cpu_pool *pool, ent_cpu_probe *out_probe) {
    bench b = {.kernels = kernels, .pool = pool};
    b.memory = aligned_alloc(4096, (size_t)ARENA_FLOATS * 4);
    if (!b.memory) return false;
    for (int64_t i = 0; i < ARENA_FLOATS; i++) b.memory[i] = (float)(i % 64) * 0.01f;
    ent_cpu_probe p = {.isa = kernels->isa};
    cpu_set_t set;
    p.processors = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    find_caches(&p);
    p.fma_flops = kernels->fma_work(20000) / least_ns(&b, run_fma) * 1e9;
    p.l1_read_bytes_per_ns = read_rate(&b, (p.l1_bytes ? p.l1_bytes : 32 << 10) / 2);
    p.l2_read_bytes_per_ns = read_rate(&b, (p.l2_bytes ? p.l2_bytes : 256 << 10) / 2);
    p.l3_read_bytes_per_ns = read_rate(&b, p.l2_bytes ? p.l2_bytes * 4 : 2 << 20);
    p.dram_read_bytes_per_ns = dram_rate(&b);
    p.l3_kept_bytes = kept_bytes(&b, &p);
    p.elementwise_cheap_ns = least_ns(&b, run_add) / 2048;
    p.divide_ns = least_ns(&b, run_divide) / 2048;
    p.elementwise_costly_ns = least_ns(&b, run_tanh) / 2048;
    p.reduce_ns = least_ns(&b, run_sum) / 2048;
    p.softmax_ns = least_ns(&b, run_softmax) / 256;
    p.copy_bytes_per_ns = 65536 / least_ns(&b, run_copy);
    double again = kernels->fma_work(20000) / least_ns(&b, run_fma) * 1e9;
    if (again > p.fma_flops) p.fma_flops = again;
    p.gemm_share = 2.0 * 64 * 64 * 256 / least_ns(&b, run_gemm) * 1e9 / p.fma_flops;
    p.gemm8_share = 2.0 * 64 * 64 * 256 / least_ns(&b, run_gemm8) * 1e9 / p.fma_flops;
    p.depthwise_share = 2.0 * 9 * 24 * 64 / least_ns(&b, run_depthwise) * 1e9 / p.fma_flops;
    if (pool) p.fork_join_ns = fork_join_ns(&b);
    free(b.memory);
    *out_probe = p;
    return true;
}
