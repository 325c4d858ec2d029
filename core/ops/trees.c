/* TreeEnsemble: every row of features falls through every tree; the weights of the leaves that it reaches are
 * put together by target. What the attributes say is checked before a row is read. */
#include "core/ops/internal.h"

#include <math.h>

enum { MODE_LEQ, MODE_LT, MODE_GTE, MODE_GT, MODE_EQ, MODE_NEQ, MODE_MEMBER };
enum { AVERAGE, SUM, MIN, MAX };

typedef struct trees {
    int64_t nodes, leaves, targets, features;
    const ent_attr *feature, *yes, *no, *yes_leaf, *no_leaf, *missing, *target, *roots;
    const ent_tensor *modes, *splits, *weights, *members;
    const int64_t *first_member; /* by node */
    int64_t aggregate;
} trees;

static int64_t length(const ent_tensor *tensor) {
    return tensor && tensor->rank == 1 ? tensor->dims[0] : -1;
}

static const ent_attr *ints(ent_ops_call *call, const char *name, int64_t count) {
    const ent_attr *attr = ent_attrs_find(call->attrs, name);
    return attr && attr->type == ENT_ATTR_INTS && (count < 0 || attr->count == count) ? attr : NULL;
}

static const ent_tensor *tensor(ent_ops_call *call, const char *name) {
    const ent_attr *attr = ent_attrs_find(call->attrs, name);
    return attr && attr->type == ENT_ATTR_TENSOR && length(attr->tensor) >= 0 ? attr->tensor : NULL;
}

static int64_t mode_of(const trees *t, int64_t node) {
    return ent_ops_load_i64(t->modes->data, t->modes->dtype, node);
}

static ent_code read_lists(ent_ops_call *call, trees *t) {
    t->modes = tensor(call, "nodes_modes");
    t->splits = tensor(call, "nodes_splits");
    t->weights = tensor(call, "leaf_weights");
    t->members = tensor(call, "membership_values");
    t->nodes = length(t->modes);
    t->leaves = length(t->weights);
    t->feature = ints(call, "nodes_featureids", t->nodes);
    t->yes = ints(call, "nodes_truenodeids", t->nodes);
    t->no = ints(call, "nodes_falsenodeids", t->nodes);
    t->yes_leaf = ints(call, "nodes_trueleafs", t->nodes);
    t->no_leaf = ints(call, "nodes_falseleafs", t->nodes);
    t->missing = ints(call, "nodes_missing_value_tracks_true", -1);
    t->target = ints(call, "leaf_targetids", t->leaves);
    t->roots = ints(call, "tree_roots", -1);
    t->aggregate = ent_attrs_int(call->attrs, "aggregate_function", SUM);
    bool there = t->nodes > 0 && t->leaves > 0 && length(t->splits) == t->nodes && t->feature && t->yes &&
                 t->no && t->yes_leaf && t->no_leaf && t->target && t->roots && t->roots->count > 0 &&
                 t->modes->dtype == ENT_DTYPE_U8;
    if (!there || (t->missing && t->missing->count != 0 && t->missing->count != t->nodes))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "its lists of nodes and leaves differ in length");
    if (t->missing && t->missing->count == 0) t->missing = NULL;
    if (t->aggregate < AVERAGE || t->aggregate > MAX)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "aggregate_function is %lld",
                              (long long)t->aggregate);
    return ent_attrs_int(call->attrs, "post_transform", 0) == 0
               ? ENT_OK
               : ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "a post_transform is not evaluated");
}

/* A child comes behind its parent, or the walk from a root might not end: depth is bounded by a walk of its
 * own in `fall`. */
static ent_code check_lists(ent_ops_call *call, const trees *t) {
    for (int64_t i = 0; i < t->nodes; i++) {
        int64_t yes = t->yes->ints[i], no = t->no->ints[i];
        int64_t yes_end = t->yes_leaf->ints[i] ? t->leaves : t->nodes,
                no_end = t->no_leaf->ints[i] ? t->leaves : t->nodes;
        if (t->feature->ints[i] < 0 || t->feature->ints[i] >= t->features || yes < 0 || yes >= yes_end ||
            no < 0 || no >= no_end || mode_of(t, i) > MODE_MEMBER)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "node %lld points out of range",
                                  (long long)i);
    }
    for (int64_t i = 0; i < t->leaves; i++)
        if (t->target->ints[i] < 0 || t->target->ints[i] >= t->targets)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "leaf %lld has no target", (long long)i);
    for (uint32_t i = 0; i < t->roots->count; i++)
        if (t->roots->ints[i] < 0 || t->roots->ints[i] >= t->nodes)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "root %u is no node", i);
    return ENT_OK;
}

/* Sets end with a NaN, in the order of their nodes. */
static ent_code find_members(ent_ops_call *call, trees *t) {
    int64_t *first = ent_ops_scratch(call, t->nodes, sizeof *first), at = 0, count = length(t->members);
    if (!first) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < t->nodes; i++) {
        if (mode_of(t, i) != MODE_MEMBER) continue;
        first[i] = at;
        while (at < count && !isnan(ent_ops_load_f64(t->members->data, t->members->dtype, at))) at++;
        if (at++ >= count)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "node %lld has no set of members",
                                  (long long)i);
    }
    t->first_member = first;
    return ENT_OK;
}

static bool is_member(const trees *t, int64_t node, double x) {
    for (int64_t i = t->first_member[node];; i++) {
        double member = ent_ops_load_f64(t->members->data, t->members->dtype, i);
        if (isnan(member)) return false;
        if (member == x) return true;
    }
}

static bool goes_yes(const trees *t, int64_t node, double x) {
    if (isnan(x) && t->missing && t->missing->ints[node]) return true;
    double split = ent_ops_load_f64(t->splits->data, t->splits->dtype, node);
    switch (mode_of(t, node)) {
    case MODE_LEQ:
        return x <= split;
    case MODE_LT:
        return x < split;
    case MODE_GTE:
        return x >= split;
    case MODE_GT:
        return x > split;
    case MODE_EQ:
        return x == split;
    case MODE_NEQ:
        return x != split;
    default:
        return is_member(t, node, x);
    }
}

/* The leaf, or -1 when the nodes run in a circle. */
static int64_t fall(const trees *t, int64_t node, const double *row) {
    for (int64_t steps = 0; steps <= t->nodes; steps++) {
        bool yes = goes_yes(t, node, row[t->feature->ints[node]]);
        int64_t next = yes ? t->yes->ints[node] : t->no->ints[node];
        if (yes ? t->yes_leaf->ints[node] : t->no_leaf->ints[node]) return next;
        node = next;
    }
    return -1;
}

static double put_together(const trees *t, double old, double weight) {
    switch (t->aggregate) {
    case MIN:
        return weight < old ? weight : old;
    case MAX:
        return weight > old ? weight : old;
    case AVERAGE:
        return old + weight / t->roots->count;
    default:
        return old + weight;
    }
}

/* Before any leaf: nothing for sums, the largest and smallest number of the type for the others. */
static double start_of(const trees *t, uint32_t dtype) {
    double largest = dtype == ENT_DTYPE_F64   ? 0x1.fffffffffffffp1023
                     : dtype == ENT_DTYPE_F16 ? 65504
                                              : 0x1.fffffep127;
    if (dtype == ENT_DTYPE_BF16) largest = 0x1.fep127;
    return t->aggregate == MIN ? largest : t->aggregate == MAX ? -largest : 0;
}

ent_code ent_ops_dims_trees(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t targets = ent_attrs_int(call->attrs, "n_targets", 0);
    if (x->rank != 2 || targets < 1)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "it wants batch x features and n_targets above 0");
    ent_ops_dims_copy(x, &outputs[0]);
    outputs[0].dims[1] = targets;
    return ENT_OK;
}

ent_code ent_ops_trees(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    trees t = {.targets = y->dims[1], .features = x->dims[1]};
    ent_code code = read_lists(call, &t);
    if (code == ENT_OK) code = check_lists(call, &t);
    if (code == ENT_OK) code = find_members(call, &t);
    if (code != ENT_OK) return code;
    double *rows = ent_ops_values_f64(call, x),
           *result = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *result);
    if (!rows || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < ent_ops_element_count(y); i++) result[i] = start_of(&t, y->dtype);
    for (int64_t i = 0; i < x->dims[0]; i++)
        for (uint32_t k = 0; k < t.roots->count; k++) {
            int64_t leaf = fall(&t, t.roots->ints[k], rows + i * t.features);
            if (leaf < 0) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "its nodes run in a circle");
            double *to = &result[i * t.targets + t.target->ints[leaf]];
            *to = put_together(&t, *to, ent_ops_load_f64(t.weights->data, t.weights->dtype, leaf));
        }
    ent_ops_result_f64(y, result);
    return ENT_OK;
}
