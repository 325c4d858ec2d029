/* Shared inside core/lower only. */
#ifndef ENT_LOWER_INTERNAL_H
#define ENT_LOWER_INTERNAL_H

#include "core/lower/lower.h"

/* One form of a module value inside one function. */
typedef struct ent_lower_form {
    uint32_t value;  /* module value */
    uint32_t device; /* program device */
    ent_layout layout;
    uint32_t id; /* program value */
} ent_lower_form;

typedef struct ent_lower_function {
    uint32_t graph;
    ENT_ARRAY(ent_program_value) values;
    ENT_ARRAY(ent_lower_form) forms;
    ENT_ARRAY(uint32_t) inputs;
    ENT_ARRAY(uint32_t)
    captures; /* index into forms: which outer form each input stands for (nested functions) */
    ENT_ARRAY(uint32_t) outputs;
    ENT_ARRAY(ent_program_step) steps;
    ent_map *form_index; /* module value -> first form + chain by linear search */
} ent_lower_function;

typedef struct ent_lower_builder {
    const ent_plan *plan;
    const ent_module *module;
    ent_arena *arena;
    uint32_t *device_index; /* session device -> program device, NONE until used */
    uint32_t home;          /* session device whose memory stands for the host's */
    ENT_ARRAY(ent_program_device) devices;
    ENT_ARRAY(ent_program_constant) constants;
    ENT_ARRAY(ent_program_kernel) kernels;
    ent_size_table sizes; /* the program's symbols and expressions */
    ent_map *kernel_of;   /* hash of (device, request) -> kernel */
    ENT_ARRAY(ent_program_guard) guards;
    ENT_ARRAY(ent_lower_form) constant_forms; /* module value + layout -> program constant */
    ent_lower_function *functions;            /* per graph */
    uint32_t failed_offer;
    const char *failure;
} ent_lower_builder;

uint32_t ent_lower_device(ent_lower_builder *b, uint32_t session_device);
uint32_t ent_lower_space_device(ent_lower_builder *b, uint32_t space);

/* Steps (program.c). */
const uint32_t *ent_lower_copy_ids(ent_lower_builder *b, const uint32_t *ids, uint32_t count);
ent_program_step ent_lower_make_step(uint32_t kind, uint32_t device, uint32_t kernel, uint32_t region,
                                     double predicted_ns, const char *name);
void ent_lower_push_step(ent_lower_builder *b, uint32_t graph, ent_program_step *step);
ent_status ent_lower_arguments(ent_lower_builder *b, const ent_node *node, uint32_t body,
                               const uint32_t *results, uint32_t *ids, uint32_t *count);
ent_status ent_lower_finish_outputs(ent_lower_builder *b, uint32_t graph);
/* Loops (loop.c). */
ent_status ent_lower_loop_inputs(ent_lower_builder *b, uint32_t body);
ent_status ent_lower_loop(ent_lower_builder *b, const ent_node *node, uint32_t region);

/* Kernels: NONE in *out_kernel when the plugin failed (b->failure says why). */
ent_status ent_lower_offer_kernel(ent_lower_builder *b, const ent_offer *offer, uint32_t *out_kernel);
ent_status ent_lower_convert_kernel(ent_lower_builder *b, const ent_plan_convert *convert,
                                    uint32_t *out_kernel);

/* The program constant that holds a module constant in a layout. */
ent_status ent_lower_constant(ent_lower_builder *b, uint32_t value, const ent_layout *layout,
                              uint32_t *out_constant);

/* The program value of a form in a graph's function; makes temporaries, constants, and parameters for
 * captured values. */
ent_status ent_lower_value(ent_lower_builder *b, uint32_t graph, uint32_t value, uint32_t device,
                           const ent_layout *layout, uint32_t *out_id);
/* Gives an existing program value a second form (a view, or the same memory under another space). */
void ent_lower_add_form(ent_lower_builder *b, uint32_t graph, uint32_t value, uint32_t device,
                        const ent_layout *layout, uint32_t id);
/* A value that shares storage with `of`, in the shape of `value`. */
uint32_t ent_lower_add_alias(ent_lower_builder *b, uint32_t graph, uint32_t value, const ent_layout *layout,
                             uint32_t of);

#endif
