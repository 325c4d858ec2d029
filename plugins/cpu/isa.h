/* ISA levels of the CPU plugin: what the machine offers, and names for them. */
#ifndef ENT_CPU_ISA_H
#define ENT_CPU_ISA_H

#include <stdbool.h>

/* Ordered: a higher value includes all lower ones. */
typedef enum ent_cpu_isa {
    ENT_CPU_ISA_BASELINE, /* x86-64: SSE2 */
    ENT_CPU_ISA_AVX2,     /* AVX2, FMA, F16C, BMI2 */
    ENT_CPU_ISA_AVX512,   /* AVX-512 F, BW, DQ, VL */
    ENT_CPU_ISA_COUNT
} ent_cpu_isa;

/* The highest level that the processor and the operating system (saved registers, by XGETBV) support. */
ent_cpu_isa ent_cpu_isa_detect(void);

/* Whether the machine has VNNI in the vectors of this level: AVX-VNNI or AVX512-VNNI. A part of no level,
 * since neither includes the other. */
bool ent_cpu_isa_has_vnni(ent_cpu_isa isa);

/* "baseline", "avx2" or "avx512". Static lifetime. */
const char *ent_cpu_isa_name(ent_cpu_isa isa);

/* Reads a level's name. False if the name is unknown; *out_isa is then unchanged. */
bool ent_cpu_isa_parse(const char *name, ent_cpu_isa *out_isa);

/* The level to use: the detected one, capped by `cap` (a name, or NULL) and by the environment variable
 * ENTENTE_CPU_ISA (ignored if unset or empty). A cap above the machine's level has no effect. False if a name
 * is unknown: *out_bad_name is then that name. */
bool ent_cpu_isa_choose(const char *cap, ent_cpu_isa *out_isa, const char **out_bad_name);

#endif
