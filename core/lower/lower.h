/* Plan -> program. Decides nothing: every region already has its device, layouts and tile program. */
#ifndef ENT_LOWER_H
#define ENT_LOWER_H

#include "core/plan/plan.h"
#include "core/program/program.h"

typedef struct ent_lower_result {
    ent_program *program;
    ent_memory_result memory;
    uint32_t failed_offer; /* NONE, or the offer whose compile failed: withdraw it and plan again */
    const char *failure;   /* why, when failed_offer is set */
} ent_lower_result;

/* Compiles every region through its plugin and builds the program with its memory plan. A plugin's failure is
 * no error status: it is reported in failed_offer. Each placed offer's tier becomes what the executor says of
 * its kernel; the plan's JSON with these tiers goes into the program. */
ent_status ent_lower_program(const ent_plan *plan, ent_arena *arena, ent_lower_result *out);

#endif
