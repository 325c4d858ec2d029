/* The stages of a compilation and what they share. */
#ifndef ENT_PIPELINE_H
#define ENT_PIPELINE_H

#include "core/import/import.h"
#include "core/lower/lower.h"
#include "include/entente/compiler.h"

typedef struct ent_pipeline {
    const entente_compile_request *request;
    ent_arena *arena;   /* the module's: everything made here lives in it */
    ent_arena *scratch; /* emptied between stages */
    ent_module *module;
    ent_import_files *files;
    ent_host_registry *registry;
    ent_negotiate_session session;
    ent_plan_options plan_options;
    ent_plan plan;
    const char *plan_json;
    ent_lower_result lowered;
    const char *stage_text; /* text of the stage that was asked for */
} ent_pipeline;

/* Runs the stages in order up to the request's stop_after. */
ent_status ent_pipeline_run(ent_pipeline *pipeline);
/* Closes devices, plugins and files; arenas are the caller's. */
void ent_pipeline_close(ent_pipeline *pipeline);
const char *const *ent_pipeline_stages(void);

/* A result that holds only a status (NULL: success), for the public API's smaller calls. */
void ent_compiler_fill_status(entente_compile_result *out, ent_status status);

/* limits.c: what the request allows, 0 meaning the default. */
ent_budget ent_pipeline_budget(const entente_compile_request *request, uint64_t now_ns);
ent_import_options ent_pipeline_import_options(const entente_compile_request *request);
ent_status ent_pipeline_check_values(ent_pipeline *pipeline); /* that no value is too big */
/* Adds to a status of code LIMIT the stage and the flag that raises the limit. */
ent_status ent_pipeline_explain_limit(ent_pipeline *pipeline, ent_status status, const char *stage);

/* Stages with files of their own. */
ent_status ent_pipeline_open_devices(ent_pipeline *pipeline);   /* devices.c */
const char *ent_pipeline_print_devices(ent_pipeline *pipeline); /* the declarations, one after another */
ent_status ent_pipeline_set_constant(ent_pipeline *pipeline, uint32_t input, const char *text,
                                     const char *place); /* bind_constant.c */
ent_status ent_pipeline_bind_sample(ent_pipeline *pipeline, uint32_t input,
                                    const entente_named_tensor *sample);

#endif
