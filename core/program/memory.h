/* Between the two files of the memory planner. Positions number the items of non-zero size in order of their
 * first step. */
#ifndef ENT_PROGRAM_MEMORY_H
#define ENT_PROGRAM_MEMORY_H

#include "core/program/internal.h"

typedef struct ent_memory_problem {
    uint32_t count;
    const uint32_t *first, *last; /* by position; first is ascending */
    const uint64_t *size;         /* by position, aligned, > 0 */
    const uint32_t *by_last;      /* positions in order of last */
} ent_memory_problem;

/* Places in order of the first step with a free list of holes, near best fit. Always O(n log n), whatever
 * overlaps what. out_offset by position; returns the peak. */
uint64_t ent_memory_sweep(const ent_memory_problem *problem, ent_arena *scratch, uint64_t *out_offset);

#endif
