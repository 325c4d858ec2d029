/* Declared constraints: which one failed, by how much, and what would fix it. */
#include "core/negotiate/internal.h"

#include <string.h>

typedef struct check {
    ent_negotiate_session *session;
    const ent_constraint *constraint;
    const ent_node *node;
    const ent_value *port; /* NULL: the port does not exist */
    int64_t wanted, got;
    const char *text; /* set on failure */
} check;

static bool name_in(const ent_constraint *constraint, const char *name, size_t size) {
    for (uint32_t i = 0; i < constraint->name_count; i++)
        if (strlen(constraint->names[i]) == size && memcmp(constraint->names[i], name, size) == 0)
            return true;
    return false;
}

static const char *name_list(ent_arena *arena, const ent_constraint *constraint) {
    ent_text text;
    ent_text_init(&text, arena);
    for (uint32_t i = 0; i < constraint->name_count; i++)
        ent_text_add(&text, "%s%s", i ? " or " : "", constraint->names[i]);
    return text.data ? text.data : "";
}

static bool fail(check *c, int64_t wanted, int64_t got, const char *text) {
    c->wanted = wanted;
    c->got = got;
    c->text = text;
    return false;
}

/* A number against [min, max] and a multiple; 0 multiple and -1 max are free. */
static bool check_number(check *c, const char *what, int64_t got) {
    const ent_constraint *k = c->constraint;
    ent_arena *arena = c->session->arena;
    if (k->multiple_of > 1 && got % k->multiple_of != 0)
        return fail(c, k->multiple_of, got,
                    ent_arena_format(arena, "%s is %lld, not a multiple of %lld (%lld short)", what,
                                     (long long)got, (long long)k->multiple_of,
                                     (long long)(k->multiple_of - got % k->multiple_of)));
    if (got < k->min)
        return fail(c, k->min, got,
                    ent_arena_format(arena, "%s is %lld, below %lld by %lld", what, (long long)got,
                                     (long long)k->min, (long long)(k->min - got)));
    if (k->max >= 0 && got > k->max)
        return fail(c, k->max, got,
                    ent_arena_format(arena, "%s is %lld, above %lld by %lld", what, (long long)got,
                                     (long long)k->max, (long long)(got - k->max)));
    return true;
}

static bool check_attribute(check *c) {
    const ent_constraint *k = c->constraint;
    const ent_attr *attr = ent_attrs_find(c->node->attrs, k->attr);
    if (!attr)
        return true; /* the default is in force; patterns that mind state it in `min`/`max` over present
                        values */
    if (k->kind == ENT_CONSTRAINT_ATTR_IS) {
        if (attr->type == ENT_ATTR_STRING && name_in(k, attr->s.data, attr->s.size)) return true;
        return fail(c, 0, 0,
                    ent_arena_format(c->session->arena, "attribute %s is %.*s, not %s", k->attr,
                                     (int)attr->s.size, attr->s.data ? attr->s.data : "",
                                     name_list(c->session->arena, k)));
    }
    const char *what = ent_arena_format(c->session->arena, "attribute %s", k->attr);
    if (attr->type == ENT_ATTR_INT) return check_number(c, what, attr->i);
    for (uint32_t i = 0; attr->type == ENT_ATTR_INTS && i < attr->count; i++)
        if (!check_number(c, what, attr->ints[i])) return false;
    return true;
}

static bool check_dim(check *c) {
    const ent_constraint *k = c->constraint;
    int64_t axis = k->axis < 0 ? k->axis + (int64_t)c->port->rank : k->axis;
    if (c->port->rank == ENT_RANK_UNKNOWN || axis < 0 || axis >= (int64_t)c->port->rank)
        return fail(c, k->axis, c->port->rank,
                    ent_arena_format(c->session->arena, "%s has rank %u, no axis %lld", c->port->name,
                                     c->port->rank, (long long)k->axis));
    const char *what = ent_arena_format(c->session->arena, "dim %lld of %s", (long long)axis, c->port->name);
    if (c->port->dims[axis] < 0)
        return fail(c, 0, -1, ent_arena_format(c->session->arena, "%s is open", what));
    return check_number(c, what, c->port->dims[axis]);
}

static bool check_port(check *c) {
    const ent_constraint *k = c->constraint;
    if (!c->port) return true; /* an absent optional input breaks nothing */
    switch (k->kind) {
    case ENT_CONSTRAINT_DTYPE: {
        const char *name = ent_dtype_name(c->port->dtype);
        if (name_in(k, name, strlen(name))) return true;
        return fail(c, 0, c->port->dtype,
                    ent_arena_format(c->session->arena, "%s is %s, not %s", c->port->name, name,
                                     name_list(c->session->arena, k)));
    }
    case ENT_CONSTRAINT_RANK:
        return check_number(c, ent_arena_format(c->session->arena, "rank of %s", c->port->name),
                            c->port->rank);
    case ENT_CONSTRAINT_DIM:
        return check_dim(c);
    case ENT_CONSTRAINT_CONSTANT:
        if (c->port->constant) return true;
        return fail(c, 1, 0, ent_arena_format(c->session->arena, "%s is not a constant", c->port->name));
    case ENT_CONSTRAINT_ELEMENTS: {
        int64_t elements = 1;
        const char *what = ent_arena_format(c->session->arena, "element count of %s", c->port->name);
        for (uint32_t d = 0; d < c->port->rank && c->port->rank != ENT_RANK_UNKNOWN; d++) {
            if (c->port->dims[d] < 0)
                return fail(c, 0, -1, ent_arena_format(c->session->arena, "%s is open", what));
            elements *= c->port->dims[d];
        }
        return check_number(c, what, elements);
    }
    default:
        return true;
    }
}

static bool check_one(check *c, const ent_node *const *nodes) {
    const ent_constraint *k = c->constraint;
    const ent_module *module = c->session->module;
    c->node = nodes[k->node];
    if (!c->node) return true;
    if (k->kind == ENT_CONSTRAINT_ATTR || k->kind == ENT_CONSTRAINT_ATTR_IS) return check_attribute(c);
    uint32_t count = k->is_output ? c->node->output_count : c->node->input_count;
    uint32_t value = ENT_ID_NONE;
    if (k->port < count) value = k->is_output ? c->node->outputs[k->port] : c->node->inputs[k->port];
    c->port = value == ENT_ID_NONE ? NULL : ent_module_value(module, value);
    return check_port(c);
}

bool ent_negotiate_check_constraints(ent_negotiate_session *session, uint32_t device,
                                     const ent_pattern *pattern, const ent_node *const *nodes,
                                     uint32_t leaf) {
    bool good = true;
    for (uint32_t i = 0; i < pattern->constraint_count; i++) {
        check c = {session, &pattern->constraints[i], NULL, NULL, 0, 0, NULL};
        if (check_one(&c, nodes)) continue;
        good = false;
        ent_refusal refusal = {
            device, leaf, pattern->name, c.constraint->id, c.text, c.wanted, c.got, c.constraint->fix, false};
        ent_negotiate_refuse(session, &refusal);
    }
    return good;
}
