/* A program's text, opened on the fake device: what the tests of core/runtime start from. */
#ifndef RUNTIME_FIXTURE_H
#define RUNTIME_FIXTURE_H

#include "core/runtime/runtime.h"

#include "tests/unit/runtime_fake.h"

#include <check.h> /* last: it defines fail as a macro */

typedef struct fixture {
    ent_arena *arena;
    ent_host_registry *registry;
    ent_program *program;
    ent_runtime *runtime;
    ent_status status; /* of create */
} fixture;

static inline void open_registry(fixture *f) {
    ent_host_options options = {.plugin_path = "/nonexistent", .no_environment = true};
    *f = (fixture){.arena = ent_arena_create(0)};
    ck_assert_ptr_null(ent_host_scan(f->arena, &options, &f->registry));
    ck_assert_ptr_null(ent_host_add_static(f->registry, &fake_plugin, true));
}

/* Parses, plans and opens; `%D` in the text stands for the device's name. */
static inline void open_text(fixture *f, const char *device, const char *text,
                             const ent_runtime_options *options) {
    open_registry(f);
    ent_text out;
    ent_text_init(&out, f->arena);
    for (const char *at = text; *at; at++) {
        if (at[0] == '%' && at[1] == 'D')
            ent_text_add(&out, "%s", device), at++;
        else
            ent_text_add_bytes(&out, at, 1);
    }
    ent_status status = ent_program_parse(f->arena, "test", out.data, &f->program);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f->arena, status) : "");
    ent_memory_result memory;
    ck_assert_ptr_null(ent_program_plan_memory(f->program, f->arena, &memory));
    f->status = ent_runtime_create(f->arena, f->registry, f->program, options, &f->runtime);
}

static inline void close_fixture(fixture *f) {
    ent_runtime_destroy(f->runtime);
    ck_assert_uint_eq(fake.open_devices, 0);
    ck_assert_uint_eq(fake.kernels, 0);
    ck_assert_uint_eq(fake.created + fake.imported, fake.destroyed);
    ent_host_close(f->registry);
    ent_arena_destroy(f->arena);
    memset(&fake, 0, sizeof fake);
}

static inline void must_open(const fixture *f) {
    ck_assert_msg(!f->status, "%s", f->status ? ent_status_text(f->arena, f->status) : "");
}

static inline void must_run(fixture *f, const ent_tensor *inputs, ent_tensor *outputs) {
    ent_status status = ent_runtime_run(f->runtime, inputs, outputs);
    ck_assert_msg(!status, "%s", status ? ent_status_text(f->arena, status) : "");
}

#endif
