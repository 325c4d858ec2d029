/* Speed of the CPU plugin's kernels on one core, as shares of the multiply-add peak that is measured in
 * between.
 *
 *   entente_kernel_bench [--json] [--isa NAME] [--rounds N]
 *
 * Each case runs `rounds` times, with a measurement of the peak before and after each. The share is the best
 * rate over the best peak: what else runs on the machine can only slow either down. The median over rounds is
 * printed beside it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels.h"
#include "pool.h"
#include "probe.h"

enum { MAX_ROUNDS = 101 };

static const ent_cpu_kernels *k;

typedef struct bench_case {
    const char *name;
    void (*run)(const struct bench_case *c);
    int64_t image, channels, filters, window,
        stride; /* convolution; for GEMM image = m, channels = k, filters = n */
    float *a, *b, *packed, *c;
    const float **rows;
    double operations;
} bench_case;

/* Time that this thread ran: other programs on the core must not count. */
static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static float *floats(int64_t n) {
    float *p = aligned_alloc(64, ((size_t)n * sizeof *p + 63) / 64 * 64);
    if (!p) exit(EXIT_FAILURE);
    for (int64_t i = 0; i < n; i++) p[i] = (float)(i % 17 - 8) * 0.1f;
    return p;
}

/* Blocks of A are copied next to each other: rows 4 KiB apart would share a few sets of the caches. */
static void run_gemm(const bench_case *c) {
    enum { ROWS = 96, DEPTH = 256 };
    static float block[ROWS * (DEPTH + 16)];
    int64_t m = c->image, n = c->filters, depth = c->channels;
    for (int64_t k0 = 0; k0 < depth; k0 += DEPTH) {
        int64_t k_count = depth - k0 < DEPTH ? depth - k0 : DEPTH;
        for (int64_t m0 = 0; m0 < m; m0 += ROWS) {
            int64_t rows = m - m0 < ROWS ? m - m0 : ROWS;
            k->copy_rows(c->a + m0 * depth + k0, depth * 4, block, (DEPTH + 16) * 4, rows, k_count * 4);
            ent_cpu_gemm g = {.m = rows,
                              .n = n,
                              .k = k_count,
                              .batch = 1,
                              .a = block,
                              .a_stride = DEPTH + 16,
                              .b = c->packed + k0 * ENT_CPU_PANEL,
                              .b_panel_stride = depth * ENT_CPU_PANEL,
                              .c = {.base = c->c + m0 * n, .stride = n}};
            if (k0 > 0) g.add = g.c;
            k->gemm(&g);
        }
    }
}

static void run_gemm_with_packing(const bench_case *c) {
    k->pack_b(c->b, c->filters, 1, c->channels, c->filters, c->packed, c->channels * ENT_CPU_PANEL);
    run_gemm(c);
}

/* 8-bit integers: the operands' floats as bytes, A packed on the way. */
static void run_gemm8(const bench_case *c) {
    enum { ROWS = 48, DEPTH = 1024 };
    static char block[ROWS * DEPTH * sizeof(int16_t)];
    for (int64_t m0 = 0; m0 < c->image; m0 += ROWS) {
        int64_t rows = c->image - m0 < ROWS ? c->image - m0 : ROWS;
        for (int64_t i = 0; i < rows; i++)
            k->pack_a8((const uint8_t *)c->a + (m0 + i) * c->channels, 1, c->channels, false, 128,
                       block + i * c->channels * k->a8_bytes);
        ent_cpu_gemm8 g = {.m = rows,
                           .n = c->filters,
                           .k = c->channels,
                           .a = block,
                           .a_stride = c->channels,
                           .a_zero = 128,
                           .b = (const uint8_t *)c->packed,
                           .b_panel_stride = c->channels * ENT_CPU_PANEL,
                           .b_signed = true,
                           .c = {.base = c->c + m0 * c->filters, .stride = c->filters}};
        k->gemm8(&g);
    }
}

static void run_gemv(const bench_case *c) {
    ent_cpu_gemm g = {.m = 1,
                      .n = c->filters,
                      .k = c->channels,
                      .batch = 1,
                      .a = c->a,
                      .b = c->packed,
                      .b_panel_stride = c->channels * ENT_CPU_PANEL,
                      .c = {.base = c->c}};
    k->gemm(&g);
}

/* Convolution over an image that already has its border: one row of output pixels at a time, one row pointer
 * for each tap and pixel. */
static void run_convolution(const bench_case *c) {
    int64_t side = c->image + c->window - 1, taps = c->window * c->window, pixels = c->image * c->image;
    int64_t tile = pixels < 56 ? pixels : 56;
    for (int64_t p0 = 0; p0 < pixels; p0 += tile) {
        int64_t count = pixels - p0 < tile ? pixels - p0 : tile;
        for (int64_t t = 0; t < taps; t++) {
            for (int64_t i = 0; i < count; i++) {
                int64_t y = (p0 + i) / c->image + t / c->window, x = (p0 + i) % c->image + t % c->window;
                c->rows[t * tile + i] = c->a + (y * side + x) * c->channels;
            }
        }
        ent_cpu_gemm g = {.m = count,
                          .n = c->filters,
                          .k = c->channels,
                          .batch = taps,
                          .a_rows = c->rows,
                          .a_rows_stride = tile,
                          .b = c->packed,
                          .b_batch_stride = c->channels * ENT_CPU_PANEL,
                          .b_panel_stride = taps * c->channels * ENT_CPU_PANEL,
                          .c = {.base = c->c + p0 * c->filters, .stride = c->filters},
                          .clip = true,
                          .lo = 0,
                          .hi = 6};
        k->gemm(&g);
    }
}

/* Three input channels: one batch for each row of the window, its kw * 3 floats being contiguous. */
static void run_first(const bench_case *c) {
    int64_t side = c->image * c->stride + c->window, row = c->window * c->channels;
    for (int64_t y = 0; y < c->image; y++) {
        ent_cpu_gemm g = {.m = c->image,
                          .n = c->filters,
                          .k = row,
                          .batch = c->window,
                          .a = c->a + y * c->stride * side * c->channels,
                          .a_stride = c->stride * c->channels,
                          .a_batch_stride = side * c->channels,
                          .b = c->packed,
                          .b_batch_stride = row * ENT_CPU_PANEL,
                          .b_panel_stride = c->window * row * ENT_CPU_PANEL,
                          .c = {.base = c->c + y * c->image * c->filters, .stride = c->filters}};
        k->gemm(&g);
    }
}

static void run_depthwise(const bench_case *c) {
    int64_t side = c->image + 2;
    const float *in[9], *weights[9];
    for (int64_t y = 0; y < c->image; y++) {
        for (int64_t t = 0; t < 9; t++) {
            in[t] = c->a + ((y + t / 3) * side + t % 3) * c->channels;
            weights[t] = c->b + t * c->channels;
        }
        ent_cpu_window w = {.op = ENT_CPU_WINDOW_DEPTHWISE,
                            .taps = 9,
                            .width = c->image,
                            .channels = c->channels,
                            .in = in,
                            .in_stride = c->channels,
                            .weights = weights,
                            .bias = c->b,
                            .out = c->c + y * c->image * c->channels,
                            .out_stride = c->channels,
                            .clip = true,
                            .hi = 6};
        k->window(&w);
    }
}

static void prepare(bench_case *c) {
    int64_t taps = c->window * c->window, side = c->image * c->stride + c->window;
    int64_t depth = taps * c->channels, pixels = c->image * (c->window ? c->image : 1);
    if (!c->window) taps = 1, depth = c->channels;
    c->a = floats(c->window ? side * side * c->channels : c->image * c->channels);
    c->b = floats(depth * (c->filters ? c->filters : 1));
    c->packed = floats(depth * ent_cpu_panels(c->filters + 1) * ENT_CPU_PANEL);
    c->c = floats(pixels * (c->filters ? c->filters : c->channels));
    c->rows = malloc((size_t)(taps * 64) * sizeof *c->rows);
    if (!c->rows) exit(EXIT_FAILURE);
    if (c->filters) k->pack_b(c->b, c->filters, 1, depth, c->filters, c->packed, depth * ENT_CPU_PANEL);
    c->operations = 2.0 * (double)pixels * (double)depth * (double)(c->filters ? c->filters : 1);
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double peak_gflops(void) {
    int64_t start = now_ns();
    double operations = k->fma_work(150000);
    return operations / (double)(now_ns() - start);
}

typedef struct result {
    double gflops, peak, median_gflops;
} result;

static result measure(bench_case *c, int rounds) {
    double rates[MAX_ROUNDS], peaks[MAX_ROUNDS];
    prepare(c);
    c->run(c);
    for (int i = 0; i < rounds; i++) {
        double before = peak_gflops();
        int64_t start = now_ns(), calls = 0;
        do {
            c->run(c);
            calls++;
        } while (now_ns() - start < 4000000);
        rates[i] = c->operations * (double)calls / (double)(now_ns() - start);
        double after = peak_gflops();
        peaks[i] = before > after ? before : after;
    }
    qsort(rates, (size_t)rounds, sizeof *rates, compare_doubles);
    qsort(peaks, (size_t)rounds, sizeof *peaks, compare_doubles);
    free(c->a), free(c->b), free(c->packed), free(c->c), free(c->rows);
    return (result){rates[rounds - 1], peaks[rounds - 1], rates[rounds / 2]};
}

static bench_case cases[] = {
    {.name = "gemm_f32_1024", .run = run_gemm, .image = 1024, .channels = 1024, .filters = 1024},
    {.name = "gemm_f32_1024_with_packing",
     .run = run_gemm_with_packing,
     .image = 1024,
     .channels = 1024,
     .filters = 1024},
    {.name = "gemm_f32_128x384x384", .run = run_gemm, .image = 128, .channels = 384, .filters = 384},
    {.name = "gemm_u8i8_1024", .run = run_gemm8, .image = 1024, .channels = 1024, .filters = 1024},
    {.name = "gemm_u8i8_128x384x384", .run = run_gemm8, .image = 128, .channels = 384, .filters = 384},
    {.name = "gemv_f32_2048x1000", .run = run_gemv, .image = 1, .channels = 2048, .filters = 1000},
    {.name = "conv_1x1_56x56_64_256",
     .run = run_convolution,
     .image = 56,
     .channels = 64,
     .filters = 256,
     .window = 1,
     .stride = 1},
    {.name = "conv_3x3_56x56_64_64",
     .run = run_convolution,
     .image = 56,
     .channels = 64,
     .filters = 64,
     .window = 3,
     .stride = 1},
    {.name = "conv_3x3_14x14_256_256",
     .run = run_convolution,
     .image = 14,
     .channels = 256,
     .filters = 256,
     .window = 3,
     .stride = 1},
    {.name = "conv_3x3_7x7_512_512",
     .run = run_convolution,
     .image = 7,
     .channels = 512,
     .filters = 512,
     .window = 3,
     .stride = 1},
    {.name = "conv_first_7x7_s2_112x112_3_64",
     .run = run_first,
     .image = 112,
     .channels = 3,
     .filters = 64,
     .window = 7,
     .stride = 2},
    {.name = "depthwise_3x3_56x56_144",
     .run = run_depthwise,
     .image = 56,
     .channels = 144,
     .window = 3,
     .stride = 1},
    {.name = "depthwise_3x3_14x14_576",
     .run = run_depthwise,
     .image = 14,
     .channels = 576,
     .window = 3,
     .stride = 1},
};

static void *allocate(void *context, size_t size, size_t alignment) {
    (void)context;
    return aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

static void release(void *context, void *memory) {
    (void)context;
    free(memory);
}

static void print_probe(bool json) {
    const ent_host host = {.allocate = allocate, .release = release};
    ent_cpu_probe p;
    ent_cpu_pool *pool = ent_cpu_pool_create(2);
    int64_t start = now_ns();
    bool ok = ent_cpu_probe_run(k, pool, &p) && ent_cpu_probe_steps(&host, k, &p);
    double ms = (double)(now_ns() - start) / 1e6;
    ent_cpu_pool_destroy(pool);
    if (!ok) return;
    const struct {
        const char *name;
        double value;
    } facts[] = {{"probe_ms", ms},
                 {"probe_fma_gflops", p.fma_flops / 1e9},
                 {"probe_l1_read_gb_s", p.l1_read_bytes_per_ns},
                 {"probe_l2_read_gb_s", p.l2_read_bytes_per_ns},
                 {"probe_l3_read_gb_s", p.l3_read_bytes_per_ns},
                 {"probe_dram_read_gb_s", p.dram_read_bytes_per_ns},
                 {"probe_fork_join_ns", p.fork_join_ns},
                 {"probe_gemm_share", p.gemm_share},
                 {"probe_gemm8_share", p.gemm8_share},
                 {"probe_depthwise_share", p.depthwise_share},
                 {"probe_add_ns", p.elementwise_cheap_ns},
                 {"probe_tanh_ns", p.elementwise_costly_ns},
                 {"probe_sum_ns", p.reduce_ns},
                 {"probe_softmax_ns", p.softmax_ns},
                 {"probe_copy_gb_s", p.copy_bytes_per_ns},
                 {"probe_launch_ns", p.launch_ns},
                 {"probe_instance_ns", p.instance_ns},
                 {"probe_op_ns", p.op_ns},
                 {"probe_strided_ns", p.strided_ns},
                 {"probe_gather_ns", p.gather_ns},
                 {"probe_gemm_efficiency", p.gemm_efficiency}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        printf(json ? ", \"%s\": %.4g" : "%-34s %10.4g\n", facts[i].name, facts[i].value);
}

int main(int argc, char **argv) {
    bool json = false;
    int rounds = 25;
    const char *cap = NULL, *bad = NULL;
    ent_cpu_isa isa;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc)
            cap = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else
            return fprintf(stderr, "usage: %s [--json] [--isa baseline|avx2|avx512] [--rounds N]\n", argv[0]),
                   1;
    }
    if (rounds < 1 || rounds > MAX_ROUNDS) rounds = 25;
    if (!ent_cpu_isa_choose(cap, &isa, &bad)) return fprintf(stderr, "%s: unknown ISA level\n", bad), 1;
    k = ent_cpu_kernels_get(isa);
    if (json)
        printf("{\"schema\": 1, \"isa\": \"%s\", \"metrics\": {\"rounds\": %d", ent_cpu_isa_name(isa),
               rounds);
    else
        printf("%-34s %10s %10s %10s %8s   (%s)\n", "case", "median", "best", "peak", "share",
               ent_cpu_isa_name(isa));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        result r = measure(&cases[i], rounds);
        if (json)
            printf(", \"%s_gflops\": %.2f, \"%s_share_of_peak\": %.4f", cases[i].name, r.gflops,
                   cases[i].name, r.gflops / r.peak);
        else
            printf("%-34s %10.2f %10.2f %10.2f %8.3f\n", cases[i].name, r.median_gflops, r.gflops, r.peak,
                   r.gflops / r.peak);
    }
    print_probe(json);
    if (json) printf("}}\n");
    return 0;
}
