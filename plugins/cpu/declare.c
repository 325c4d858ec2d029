/* The declaration: what the probe measured, as a capability document. */
#include "cpu.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct document {
    char text[8192];
    size_t size;
} document;

__attribute__((format(printf, 2, 3))) static void put(document *d, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int size = vsnprintf(d->text + d->size, sizeof d->text - d->size, format, list);
    va_end(list);
    if (size > 0) d->size += (size_t)size;
    if (d->size >= sizeof d->text) d->size = sizeof d->text - 1; /* our own text: it is far shorter */
}

static double at_least(double x, double least) {
    return x > least ? x : least;
}

/* Sizes that the system does not tell are those of common processors. */
static void put_memory(document *d, const ent_cpu_probe *p, const cpu_device *device) {
    double l1 = at_least(p->l1_read_bytes_per_ns, 8), l2 = at_least(p->l2_read_bytes_per_ns, 4);
    double l3 = at_least(p->l3_read_bytes_per_ns, 2), dram = at_least(p->dram_read_bytes_per_ns, 1);
    long long registers = device->isa == ENT_CPU_ISA_AVX512 ? 2048
                          : device->isa == ENT_CPU_ISA_AVX2 ? 512
                                                            : 256;
    double share =
        device->threads < 4 ? device->threads : 4; /* cores that it takes to fill the memory bus, about */
    put(d, " \"memory\": [\n");
    put(d, "  {\"name\": \"register\", \"scope\": \"unit\", \"bytes\": %lld, \"read_gbps\": %.1f},\n",
        registers, 2 * l1);
    put(d, "  {\"name\": \"l1\", \"scope\": \"unit\", \"bytes\": %lld, \"read_gbps\": %.1f},\n",
        (long long)(p->l1_bytes ? p->l1_bytes : 32768), l1);
    put(d, "  {\"name\": \"l2\", \"scope\": \"unit\", \"bytes\": %lld, \"read_gbps\": %.1f},\n",
        (long long)(p->l2_bytes ? p->l2_bytes : 524288), l2);
    put(d,
        "  {\"name\": \"l3\", \"scope\": \"device\", \"bytes\": %lld, \"read_gbps\": %.1f, \"unit_gbps\": "
        "%.1f},\n",
        (long long)p->l3_kept_bytes, l3 * device->threads, l3);
    put(d,
        "  {\"name\": \"dram\", \"scope\": \"host\", \"bytes\": 1000000000000, \"read_gbps\": %.1f, "
        "\"unit_gbps\": %.1f}],\n",
        dram * share, dram);
}

static void put_matrix_units(document *d, const ent_cpu_probe *p, const cpu_device *device) {
    static const char *const bytes[] = {"u8", "i8"};
    const ent_cpu_kernels *k = device->kernels;
    long long columns = k->gemm_n > ENT_CPU_PANEL ? k->gemm_n : ENT_CPU_PANEL; /* tiles are whole panels */
    put(d,
        " \"matrix_units\": [{\"name\": \"gemm %lldx%lld\", \"dtype_a\": \"f32\", \"dtype_b\": \"f32\", "
        "\"dtype_c\": \"f32\", "
        "\"m\": %lld, \"n\": %lld, \"k\": 1, \"gflops\": %.1f, \"a_indirect\": true, \"b_block\": %d}",
        (long long)k->gemm_m, (long long)k->gemm_n, (long long)k->gemm_m, columns,
        p->fma_flops * p->gemm_share / 1e9, ENT_CPU_PANEL);
    for (uint32_t i = 0; i < 2; i++)
        put(d,
            ",\n  {\"name\": \"gemm8 %s\", \"dtype_a\": \"%s\", \"dtype_b\": \"i8\", \"dtype_c\": \"i32\", "
            "\"m\": 1, \"n\": %d, \"k\": %d, \"gflops\": %.1f, \"a_indirect\": true, \"b_block\": %d}",
            k->gemm8_name, bytes[i], ENT_CPU_PANEL, ENT_CPU_GEMM8_K, p->fma_flops * p->gemm8_share / 1e9,
            ENT_CPU_PANEL);
    put(d, "],\n");
}

static void put_tile(document *d, const ent_cpu_probe *p) {
    static const char *const maps[] = {
        "copy",     "neg",          "abs",        "sqrt",    "rsqrt",         "reciprocal", "exp",
        "log",      "tanh",         "sigmoid",    "erf",     "relu",          "leaky_relu", "elu",
        "selu",     "hard_sigmoid", "hard_swish", "gelu",    "gelu_tanh",     "silu",       "mish",
        "softplus", "softsign",     "clip",       "floor",   "ceil",          "round",      "sign",
        "not",      "sin",          "cos",        "square",  "scale_shift",   "pow_scalar", "add",
        "sub",      "mul",          "div",        "max",     "min",           "pow",        "prelu",
        "equal",    "less",         "less_equal", "greater", "greater_equal", "and",        "or",
        "xor",      "fma",          "select"};
    put(d,
        " \"tile\": {\"launch_ns\": %.0f, \"sync_ns\": %.0f, \"instance_ns\": %.1f, \"op_ns\": %.1f, "
        "\"mma_efficiency\": %.3f,\n",
        p->launch_ns, p->fork_join_ns, p->instance_ns, p->op_ns, p->gemm_efficiency);
    put(d,
        "  \"map_cheap_ns\": %.4f, \"map_divide_ns\": %.4f, \"map_transcendental_ns\": %.4f, \"reduce_ns\": "
        "%.4f,\n",
        p->elementwise_cheap_ns, p->divide_ns, p->elementwise_costly_ns, p->reduce_ns);
    put(d, "  \"copy_strided_ns\": %.4f, \"gather_ns\": %.4f, \"window_gflops\": %.1f,\n", p->strided_ns,
        p->gather_ns, p->fma_flops * p->depthwise_share / 1e9);
    put(d, "  \"maps\": [");
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) put(d, "%s\"%s\"", i ? ", " : "", maps[i]);
    put(d, "]},\n");
}

ent_code cpu_declare(ent_device *device, const ent_call *call, ent_bytes *out_json) {
    cpu_device *d = (cpu_device *)device;
    document text = {.size = 0};
    ent_cpu_probe probe;
    if (!cpu_probe_get(d, &probe))
        return ent_common_fail(call, ENT_CODE_OUT_OF_MEMORY, "out of memory for measuring the processor");
    put(&text, "{\"schema\": 1, \"name\": \"cpu\", \"vendor\": \"Entente\", \"kind\": \"cpu\", \"basis\": "
               "\"measured\",\n");
    put(&text, " \"description\": \"microkernels and vector kernels, %s, %d threads\",\n",
        ent_cpu_isa_name(d->isa), d->threads);
    put(&text,
        " \"units\": %d, \"vector_lanes_f32\": %lld, \"launch_ns\": %.0f, \"depths\": [\"tile\", "
        "\"region\"],\n",
        d->threads, (long long)d->kernels->lanes, probe.launch_ns);
    put_memory(&text, &probe, d);
    put_matrix_units(&text, &probe, d);
    put_tile(&text, &probe);
    put(&text, " \"links\": [{\"to\": \"host\", \"latency_ns\": 0, \"gbps\": %.1f}],\n",
        at_least(probe.dram_read_bytes_per_ns, 1));
    /* core/ops in plain C, for what no tile program says. Not measured: a price at which it wins nothing
     * else. */
    put(&text, " \"patterns\": [{\"name\": \"core-ops\", \"depth\": \"region\", \"tier\": \"generic\", "
               "\"any_op\": true,\n");
    put(&text, "   \"layouts\": [\"plain\", \"channels_last\"], \"cost\": {\"base_ns\": 2000, \"gflops\": "
               "0.3, \"gbps\": 0.3}}]}\n");
    return ent_common_reply(call, text.text, text.size, out_json);
}
