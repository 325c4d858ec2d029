/* Measures what the price model needs to know about the machine: one core, under half a second. */
#ifndef ENT_CPU_PROBE_H
#define ENT_CPU_PROBE_H

#include <stdint.h>
#include <time.h>

#include "abi/ent_plugin.h"
#include "kernels/kernels.h"
#include "pool.h"

/* All rates are of one core at the probed ISA level. 0 where something could not be found out. */
typedef struct ent_cpu_probe {
    ent_cpu_isa isa;
    int32_t processors;         /* usable by this process */
    int64_t l1_bytes, l2_bytes; /* data caches of one core */
    int64_t l3_bytes;           /* shared by l3_processors processors */
    int32_t l3_processors;
    double fma_flops; /* floating-point operations a second, f32, multiply-add counted as two */
    double l1_read_bytes_per_ns, l2_read_bytes_per_ns, l3_read_bytes_per_ns, dram_read_bytes_per_ns;
    double fork_join_ns;          /* what a region costs beyond its tasks, one a thread, back to back */
    double gemm_share;            /* of fma_flops: packed, 64 x 256 x 64, all in L2 */
    double gemm8_share;           /* of fma_flops: the same product of 8-bit integers, A packed each time */
    double depthwise_share;       /* of fma_flops: 3 x 3, 64 channels, in L1 */
    int64_t l3_kept_bytes;        /* largest working set still read at about the speed of L3 */
    double elementwise_cheap_ns;  /* an element of a sum of two tensors in L1 */
    double divide_ns;             /* an element of a quotient in L1 */
    double elementwise_costly_ns; /* an element of tanh in L1 */
    double copy_bytes_per_ns;     /* copy_rows within L2: bytes copied, counted once */
    double reduce_ns;             /* an element of a sum in L1 */
    double softmax_ns;            /* an element of a 256-wide softmax row */
    /* By ent_cpu_probe_steps, of the executor: */
    double launch_ns;       /* a program's start */
    double instance_ns;     /* an instance beyond its ops */
    double op_ns;           /* an op beyond its elements */
    double strided_ns;      /* an element of a transposing copy in L1 */
    double gather_ns;       /* an element fetched by index */
    double gemm_efficiency; /* of gemm_share: with rows from L2 or L3, tile by tile */
} ent_cpu_probe;

/* Fills *out_probe. `pool` is used for fork_join_ns and may be NULL (then 0). False when out of memory. The
 * caller caches the result; it depends on the processor, the ISA level and the thread count. */
bool ent_cpu_probe_run(const ent_cpu_kernels *kernels, ent_cpu_pool *pool, ent_cpu_probe *out_probe);

/* The least time of one call in ns by the clock, over some rounds that together take about 2 * sample_ns:
 * other work on the machine only ever adds time. The clock of a thread's time is a system call, so it is read
 * once for many calls. */
double ent_cpu_least_ns(void (*run)(void *context), void *context, clockid_t clock, double sample_ns);

/* The executor's own costs, after ent_cpu_probe_run. False when out of memory. */
bool ent_cpu_probe_steps(const ent_host *host, const ent_cpu_kernels *kernels, ent_cpu_probe *probe);

#endif
