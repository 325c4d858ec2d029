#include "isa.h"

#include <cpuid.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[ENT_CPU_ISA_COUNT] = {"baseline", "avx2", "avx512"};

static uint64_t saved_state(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

ent_cpu_isa ent_cpu_isa_detect(void) {
    const unsigned fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29;
    const unsigned avx2 = 1u << 5, bmi2 = 1u << 8;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return ENT_CPU_ISA_BASELINE;
    unsigned need = fma | osxsave | avx | f16c;
    if ((c & need) != need) return ENT_CPU_ISA_BASELINE;
    uint64_t state = saved_state();
    if ((state & 0x06) != 0x06) return ENT_CPU_ISA_BASELINE; /* xmm, ymm */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return ENT_CPU_ISA_BASELINE;
    if ((b & (avx2 | bmi2)) != (avx2 | bmi2)) return ENT_CPU_ISA_BASELINE;
    if ((state & 0xe0) != 0xe0) return ENT_CPU_ISA_AVX2; /* mask registers, zmm */
    return (b & avx512) == avx512 ? ENT_CPU_ISA_AVX512 : ENT_CPU_ISA_AVX2;
}

bool ent_cpu_isa_has_vnni(ent_cpu_isa isa) {
    unsigned a, b, c, d;
    if (isa == ENT_CPU_ISA_BASELINE || ent_cpu_isa_detect() < isa) return false;
    if (!__get_cpuid_count(7, isa == ENT_CPU_ISA_AVX2, &a, &b, &c, &d)) return false;
    return isa == ENT_CPU_ISA_AVX2 ? a >> 4 & 1 : c >> 11 & 1;
}

const char *ent_cpu_isa_name(ent_cpu_isa isa) {
    return (unsigned)isa < ENT_CPU_ISA_COUNT ? names[isa] : "unknown";
}

bool ent_cpu_isa_parse(const char *name, ent_cpu_isa *out_isa) {
    for (int i = 0; i < ENT_CPU_ISA_COUNT; i++) {
        if (name && strcmp(name, names[i]) == 0) {
            *out_isa = (ent_cpu_isa)i;
            return true;
        }
    }
    return false;
}

bool ent_cpu_isa_choose(const char *cap, ent_cpu_isa *out_isa, const char **out_bad_name) {
    const char *caps[2] = {cap, getenv("ENTENTE_CPU_ISA")};
    ent_cpu_isa isa = ent_cpu_isa_detect();
    for (int i = 0; i < 2; i++) {
        ent_cpu_isa limit;
        if (!caps[i] || !caps[i][0]) continue;
        if (!ent_cpu_isa_parse(caps[i], &limit)) {
            *out_bad_name = caps[i];
            return false;
        }
        if (limit < isa) isa = limit;
    }
    *out_isa = isa;
    return true;
}
