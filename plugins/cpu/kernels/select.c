#include "kernels.h"

#include <pthread.h>

void ent_cpu_kernels_fill_baseline(ent_cpu_kernels *table);
void ent_cpu_kernels_fill_avx2(ent_cpu_kernels *table);
void ent_cpu_kernels_fill_avx512(ent_cpu_kernels *table);
void ent_cpu_gemm8_bind_avx_vnni(ent_cpu_kernels *table);
void ent_cpu_gemm8_bind_avx512_vnni(ent_cpu_kernels *table);

static ent_cpu_kernels tables[ENT_CPU_ISA_COUNT];
static ent_cpu_isa highest;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Code of a level must not run, not even to fill a table, on a machine below that level. */
static void fill_all(void) {
    highest = ent_cpu_isa_detect();
    ent_cpu_kernels_fill_baseline(&tables[ENT_CPU_ISA_BASELINE]);
    if (highest >= ENT_CPU_ISA_AVX2) ent_cpu_kernels_fill_avx2(&tables[ENT_CPU_ISA_AVX2]);
    if (highest >= ENT_CPU_ISA_AVX512) ent_cpu_kernels_fill_avx512(&tables[ENT_CPU_ISA_AVX512]);
    if (ent_cpu_isa_has_vnni(ENT_CPU_ISA_AVX2)) ent_cpu_gemm8_bind_avx_vnni(&tables[ENT_CPU_ISA_AVX2]);
    if (ent_cpu_isa_has_vnni(ENT_CPU_ISA_AVX512)) ent_cpu_gemm8_bind_avx512_vnni(&tables[ENT_CPU_ISA_AVX512]);
}

const ent_cpu_kernels *ent_cpu_kernels_get(ent_cpu_isa isa) {
    pthread_once(&once, fill_all);
    return (unsigned)isa < ENT_CPU_ISA_COUNT && isa <= highest ? &tables[isa] : NULL;
}
