/* What the files of this folder share; nobody else includes it. */
#ifndef ENT_PROGRAM_INTERNAL_H
#define ENT_PROGRAM_INTERNAL_H

#include "core/program/program.h"

/* A program calls at most this deep, so that recursion over calls is bounded. */
#define ENT_PROGRAM_MAX_CALL_DEPTH 64u

/* Constants up to this size are part of the text form. */
#define ENT_PROGRAM_INLINE_BYTES 256u

/* Words of the text form, by number, NULL at the end. */
extern const char *const ent_program_expr_names[],
    *const ent_program_depth_names[], *const ent_program_tier_names[], *const ent_program_value_names[],
                                                                           *const ent_program_step_names[];
/* NONE if `word` is NULL or no name. */
uint32_t ent_program_name_index(const char *const *names, const char *word);

/* Callees of a step, at most two; returns their number. */
static inline uint32_t ent_program_step_callees(const ent_program_step *step, uint32_t out[2]) {
    if (step->kind == ENT_PROGRAM_CALL || step->kind == ENT_PROGRAM_LOOP) {
        out[0] = step->function[0];
        return 1;
    }
    if (step->kind != ENT_PROGRAM_BRANCH) return 0;
    out[0] = step->function[0];
    out[1] = step->function[1];
    return 2;
}

/* Function indices, callees before callers; function_count entries of the arena. The program is verified (no
 * cycles). */
uint32_t *ent_program_callee_order(const ent_program *program, ent_arena *arena);

static inline uint64_t ent_program_align(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) / alignment * alignment;
}

#endif
