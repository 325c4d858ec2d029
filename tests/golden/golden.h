/* What a stage gives to the golden runner. A stage is one entry here and one file stage_NAME.c that defines
 * it. */
#ifndef ENT_GOLDEN_H
#define ENT_GOLDEN_H

#include "core/base/base.h"

typedef struct golden_stage {
    const char *name; /* the golden's "# stage: NAME" and its folder tests/golden/NAME */
    /* input -> the text that must equal the golden's expectation. args is what "# args:" says, or "". A
     * status becomes the text "error: ..." so that refusals have goldens too. */
    ent_status (*run)(ent_arena *arena, const char *args, const char *file, ent_str input, ent_text *out);
    /* input parsed and printed; the runner proves that doing it again changes nothing. NULL: the input has no
     * text form. */
    ent_status (*reprint)(ent_arena *arena, const char *file, ent_str input, ent_text *out);
} golden_stage;

extern const golden_stage golden_stage_tile;
extern const golden_stage golden_stage_program;
extern const golden_stage golden_stage_capability;
extern const golden_stage golden_stage_graph;
extern const golden_stage golden_stage_infer;
extern const golden_stage golden_stage_rewrite;
extern const golden_stage golden_stage_fusion;
extern const golden_stage golden_stage_negotiate;
extern const golden_stage golden_stage_plan;

#endif
