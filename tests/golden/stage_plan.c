/* Stages "negotiate" and "plan": devices that exist only as declarations, and a graph.
 *
 *     device NAME
 *     { capability document }
 *     end
 *     ... more devices ...
 *     module "m" { ... }
 *
 * The module is inferred and frozen. negotiate prints the offers and the reason table; plan prints regions
 * and converts, and with "# args: json" the plan's JSON. "# args: assign GLOB DEVICE ..." assigns, "prefer
 * DEVICE" prefers. No plugin is involved: this is what planning for hardware that is not here rests on. */
#include <string.h>

#include "core/plan/plan.h"
#include "tests/golden/golden.h"

static ent_status read_device(ent_arena *arena, const char **at, ent_negotiate_device *out) {
    const char *name = *at + strlen("device "), *stop = strchr(name, '\n');
    const char *json = stop ? stop + 1 : name, *end = strstr(json, "\nend\n");
    if (!stop || !end)
        return ent_status_make(arena, ENT_ERROR_USAGE, "golden.device", "input",
                               "a device ends with a line 'end'");
    ent_host_device *host = ent_arena_alloc(arena, sizeof *host);
    out->name = host->name = ent_arena_strndup(arena, name, (size_t)(stop - name));
    out->host = host;
    *at = end + strlen("\nend\n");
    return ent_capability_parse(arena, out->name, json, (size_t)(end - json), &out->capability);
}

static ent_status open_session(ent_arena *arena, const char *file, ent_str input,
                               ent_negotiate_session *out) {
    const char *at = ent_arena_strndup(arena, input.data, input.size);
    memset(out, 0, sizeof *out);
    out->arena = arena;
    out->devices = ent_arena_alloc(arena, 16 * sizeof *out->devices);
    while (*at == '#' || *at == ' ' || *at == '\n')
        at += *at == '#' ? strcspn(at, "\n") : 1; /* the golden's own header */
    for (; strncmp(at, "device ", 7) == 0 && out->device_count < 16; at += strspn(at, "\n"))
        ENT_TRY(read_device(arena, &at, &out->devices[out->device_count++]));
    ent_module *module = NULL;
    ENT_TRY(ent_module_parse(arena, file, at, &module));
    ENT_TRY(ent_module_infer(module, arena));
    ENT_TRY(ent_module_freeze(module, arena));
    out->module = module;
    return ent_negotiate_offers(out);
}

static ent_status run_negotiate(ent_arena *arena, const char *args, const char *file, ent_str input,
                                ent_text *out) {
    (void)args;
    ent_negotiate_session session;
    ENT_TRY(open_session(arena, file, input, &session));
    ent_text_add(out, "%s", ent_negotiate_print(&session, arena));
    return NULL;
}

static void read_options(ent_arena *arena, const char *args, ent_plan_options *options,
                         ent_plan_assignment *assignments) {
    char *rest = NULL, *copy = ent_arena_strdup(arena, args);
    options->assignments = assignments;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "prefer") == 0) options->prefer = strtok_r(NULL, " ", &rest);
        if (strcmp(word, "assign") != 0 || options->assignment_count == 16) continue;
        const char *glob = strtok_r(NULL, " ", &rest), *device = strtok_r(NULL, " ", &rest);
        assignments[options->assignment_count++] = (ent_plan_assignment){glob, device, "args"};
    }
}

static ent_status run_plan(ent_arena *arena, const char *args, const char *file, ent_str input,
                           ent_text *out) {
    ent_negotiate_session session;
    ent_plan_options options = {0};
    ent_plan_assignment assignments[16];
    ent_plan plan = {0};
    ENT_TRY(open_session(arena, file, input, &session));
    read_options(arena, args, &options, assignments);
    ENT_TRY(ent_plan_make(&session, &options, arena, &plan));
    ent_text_add(out, "%s",
                 strstr(args, "json") ? ent_plan_json(&plan, arena) : ent_plan_print(&plan, arena));
    if (strstr(args, "json")) ent_text_add(out, "\n");
    return NULL;
}

const golden_stage golden_stage_negotiate = {"negotiate", run_negotiate, NULL};
const golden_stage golden_stage_plan = {"plan", run_plan, NULL};
