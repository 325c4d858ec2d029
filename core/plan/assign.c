/* --assign: model node globs -> devices, and what it says when a device declines. */
#include "core/plan/internal.h"

#include <fnmatch.h>
#include <string.h>

ent_status ent_plan_read_assignments(ent_arena *arena, const char *path, ent_plan_options *options) {
    ent_str text;
    ENT_TRY(ent_file_read(arena, path, ENT_ERROR_USAGE, 1 << 26, &text));
    ENT_ARRAY(ent_plan_assignment) list = {0};
    const char *at = text.data, *end = text.data + text.size;
    for (uint32_t line = 1; at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) stop = end;
        char *copy = ent_arena_strndup(arena, at, (size_t)(stop - at)), *save = NULL;
        char *hash = strchr(copy, '#');
        if (hash && (hash == copy || hash[-1] == ' ' || hash[-1] == '\t')) *hash = 0;
        char *glob = strtok_r(copy, " \t\r", &save), *device = glob ? strtok_r(NULL, " \t\r", &save) : NULL;
        const char *place = ent_arena_format(arena, "%s:%u", path, line);
        if (glob && (!device || strtok_r(NULL, " \t\r", &save)))
            return ent_status_make(arena, ENT_ERROR_USAGE, "assign.syntax", place,
                                   "a line is NODE_GLOB DEVICE, separated by blanks; write one of each");
        if (glob) ent_array_push(arena, &list, ((ent_plan_assignment){glob, device, place}));
        at = stop + 1;
    }
    options->assignments = list.items;
    options->assignment_count = list.count;
    return NULL;
}

static bool matches(const ent_module *module, const ent_node *node, const char *glob) {
    if (fnmatch(glob, node->name, 0) == 0) return true;
    for (uint32_t i = 0; i < node->origin_count; i++)
        if (fnmatch(glob, module->model_nodes.items[node->origins[i]], 0) == 0) return true;
    return false;
}

static uint32_t find_device(const ent_plan_builder *b, const char *name) {
    for (uint32_t d = 0; d < b->session->device_count; d++)
        if (strcmp(b->session->devices[d].name, name) == 0) return d;
    return ENT_ID_NONE;
}

ent_status ent_plan_assign(ent_plan_builder *b) {
    b->assigned = ent_arena_alloc(b->arena, (b->leaves.count + 1) * sizeof *b->assigned);
    memset(b->assigned, 0xff, (b->leaves.count + 1) * sizeof *b->assigned);
    for (uint32_t i = 0; i < b->options->assignment_count; i++) {
        const ent_plan_assignment *line = &b->options->assignments[i];
        uint32_t device = find_device(b, line->device);
        if (device == ENT_ID_NONE)
            return ent_status_make(b->arena, ENT_ERROR_USAGE, "assign.device", line->place,
                                   "device '%s' is not in the set; add it to --device", line->device);
        for (uint32_t l = 0; l < b->leaves.count; l++) {
            const ent_node *node = ent_module_node(b->session->module, b->leaves.items[l]);
            if (matches(b->session->module, node, line->glob)) b->assigned[l] = device;
        }
    }
    return NULL;
}

bool ent_plan_admissible(const ent_plan_builder *b, const ent_offer *offer) {
    for (uint32_t i = 0; i < offer->node_count; i++) {
        uint32_t device = b->assigned[b->leaf_of[offer->nodes[i]]];
        if (device != ENT_ID_NONE && offer->device != device && offer->kind != ENT_OFFER_CONTROL)
            return false;
    }
    return true;
}

static void add_reasons(ent_plan_builder *b, ent_text *text, uint32_t node, uint32_t device) {
    const ent_negotiate_session *session = b->session;
    uint32_t shown = 0;
    for (uint32_t i = 0; i < session->refusals.count && shown < 4; i++) {
        const ent_refusal *r = &session->refusals.items[i];
        if ((r->node != node && r->node != ENT_ID_NONE) || (device != ENT_ID_NONE && r->device != device))
            continue;
        ent_text_add(text, "%s%s: %s (%s)", shown++ ? "; " : "", session->devices[r->device].name,
                     r->text ? r->text : "declined", r->reason_id ? r->reason_id : "no reason given");
    }
    for (uint32_t i = 0; i < session->offers.count && shown < 4; i++) {
        const ent_offer *offer = &session->offers.items[i];
        bool takes = false;
        for (uint32_t k = 0; k < offer->node_count; k++) takes |= offer->nodes[k] == node;
        if (!takes || !offer->withdrawn || (device != ENT_ID_NONE && offer->device != device)) continue;
        ent_text_add(text, "%s%s: %s: %s", shown++ ? "; " : "", session->devices[offer->device].name,
                     offer->path, offer->withdrawn);
    }
    if (shown == 0) ent_text_add(text, "no pattern, candidate or bid takes it");
}

/* Whether a plugin that might have taken the leaf broke: then it is no plain "no". */
static bool is_broken(const ent_plan_builder *b, uint32_t device) {
    for (uint32_t i = 0; i < b->session->refusals.count; i++) {
        const ent_refusal *r = &b->session->refusals.items[i];
        bool concerned = device == ENT_ID_NONE || r->device == device;
        if (concerned && r->reason_id && strcmp(r->reason_id, "plugin.broke") == 0) return true;
    }
    return false;
}

ent_status ent_plan_no_cover(ent_plan_builder *b, uint32_t stuck_leaf) {
    uint32_t id = b->leaves.items[stuck_leaf], device = b->assigned[stuck_leaf];
    const ent_node *node = ent_module_node(b->session->module, id);
    ent_text text;
    ent_text_init(&text, b->arena);
    add_reasons(b, &text, id, device);
    const char *place = ent_arena_format(b->arena, "%s: node '%s' (%s)", b->session->module->name, node->name,
                                         ent_op_info_get(node->op)->name);
    ent_error_code code = is_broken(b, device) ? ENT_ERROR_DEVICE : ENT_ERROR_UNSUPPORTED;
    if (device != ENT_ID_NONE)
        return ent_status_make(b->arena, code, "assign.declined", place, "device '%s' declines it: %s",
                               b->session->devices[device].name, text.data);
    return ent_status_make(b->arena, code, "plan.no-cover", place, "no device of the set takes it: %s",
                           text.data);
}
