/* Constant and shape folding: a node whose inputs are all constants, or that only asks for a known shape,
 * becomes a constant; an If with a known condition becomes its branch. A fold that would grow the model
 * beyond the budget is declined and noted: Tile, Expand and ConstantOfShape can turn 200 bytes into
 * gigabytes. So is one that would take minutes: a fold cannot be interrupted. */
#include "core/rewrite/internal.h"

#include <string.h>

#include "core/ops/ops.h"

#define DEFAULT_GROWTH_BYTES (1u << 20)
#define FOLDS_GROWTH 16u /* times what one fold may grow, for all of them */
#define MAX_STEPS 2e9    /* a few seconds of plain C */
#define MAX_SCRATCH_BYTES ((size_t)256 << 20)

static bool all_constant(const ent_rewrite_context *context, const ent_node *node) {
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ENT_ID_NONE && !ent_module_value(context->module, node->inputs[i])->constant)
            return false;
    return true;
}

/* Bytes that the result adds, less those of inputs that nobody else reads. Counts what is granted. */
static bool within_budget(ent_rewrite_context *context, const ent_node *node, uint64_t output_bytes) {
    uint64_t budget =
        context->options->fold_growth_bytes ? context->options->fold_growth_bytes : DEFAULT_GROWTH_BYTES;
    uint64_t freed = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ENT_ID_NONE && ent_rewrite_single_use(context, node->inputs[i]))
            freed += ent_module_value(context->module, node->inputs[i])->constant->tensor.size_bytes;
    uint64_t growth = output_bytes > freed ? output_bytes - freed : 0;
    if (growth > budget || growth > FOLDS_GROWTH * budget - *context->grown_bytes) return false;
    *context->grown_bytes += growth;
    return true;
}

static double elements_of(const ent_tensor *tensor) {
    double count = tensor ? 1 : 0;
    for (uint32_t i = 0; tensor && i < tensor->rank; i++) count *= (double)tensor->dims[i];
    return count;
}

/* Steps of the evaluation, from above: for each element of the result what one could read for it. */
static double steps(const ent_node *node, const ent_tensor *const *inputs, const ent_tensor *outputs) {
    const ent_op_class kind = ent_op_info_get(node->op)->op_class;
    double each = 1, largest = 1;
    for (uint32_t i = 0; i < node->input_count; i++) {
        double count = elements_of(inputs[i]);
        largest = count > largest ? count : largest;
    }
    if (kind == ENT_CLASS_CONTRACTION || kind == ENT_CLASS_COMPOSITE)
        for (uint32_t i = 0; i < node->input_count && i < 3; i++)
            for (uint32_t a = 0; inputs[i] && a < inputs[i]->rank; a++)
                each = (double)inputs[i]->dims[a] > each ? (double)inputs[i]->dims[a] : each;
    if (kind == ENT_CLASS_WINDOW && node->input_count > 1 && inputs[1] && inputs[1]->rank > 2)
        each = elements_of(inputs[1]); /* the weights; more than one output channel needs fewer */
    const ent_attr *window = ent_attrs_find(node->attrs, "kernel_shape");
    double area = 1;
    for (uint32_t i = 0; window && i < window->count; i++) area *= (double)window->ints[i];
    each = kind == ENT_CLASS_WINDOW && area > each ? area : each;
    return elements_of(&outputs[0]) * each + largest;
}

static void replace_by_constant(ent_rewrite_context *context, uint32_t node, uint32_t output,
                                const ent_tensor *tensor) {
    const ent_node *n = ent_module_node(context->module, node);
    uint32_t value = n->outputs[output];
    uint32_t constant = ent_module_add_constant(context->module, n->graph, NULL, tensor->dtype, tensor->rank,
                                                tensor->dims, tensor->data, tensor->size_bytes, true);
    ent_module_replace_value(context->module, value, constant);
    if (context->replaced) context->replaced[output] = constant;
    context->changed = true;
}

static bool prepare_outputs(const ent_node *node, const ent_tensor *const *inputs, ent_tensor *outputs,
                            uint64_t *out_bytes) {
    ent_ops_error error = {0};
    if (ent_ops_output_dims(node->op, node->attrs, inputs, node->input_count, outputs, node->output_count,
                            &error) != ENT_OK)
        return false;
    *out_bytes = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[i].layout = ent_layout_plain(outputs[i].rank);
        int64_t bytes = ent_layout_bytes(&outputs[i].layout, outputs[i].dtype, outputs[i].dims);
        if (bytes < 0 || outputs[i].dtype == ENT_DTYPE_STRING) return false;
        outputs[i].size_bytes = (uint64_t)bytes;
        *out_bytes += (uint64_t)bytes;
    }
    return true;
}

/* What the evaluation of an operator needs besides its results counts as memory of the compilation. A fold
 * that does not fit is declined: the model may still compile. */
static void *take_scratch(void *context, size_t size_bytes) {
    ent_arena *scratch = context;
    bool fits = size_bytes <= MAX_SCRATCH_BYTES && size_bytes <= ent_arena_left_bytes(scratch);
    return fits ? ent_arena_array(scratch, size_bytes, 1) : NULL;
}

static void keep_scratch(void *context, void *memory) { /* until the visit of the node ends */
    (void)context;
    (void)memory;
}

static ent_status evaluate(ent_rewrite_context *context, uint32_t id, const ent_tensor *const *inputs,
                           ent_tensor *outputs) {
    const ent_node *node = ent_module_node(context->module, id);
    ent_tensor **wanted = ent_arena_alloc(context->scratch, (node->output_count + 1) * sizeof *wanted);
    for (uint32_t i = 0; i < node->output_count; i++) {
        outputs[i].data = ent_arena_array(context->module->arena, outputs[i].size_bytes + 64, 1);
        if (!outputs[i].data) return ent_status_out_of_memory();
        wanted[i] = node->outputs[i] == ENT_ID_NONE ? NULL : &outputs[i];
    }
    ent_ops_error error = {0};
    const ent_ops_memory memory = {take_scratch, keep_scratch, context->scratch};
    if (ent_ops_evaluate(node->op, node->attrs, inputs, node->input_count, wanted, node->output_count,
                         &memory, &error) != ENT_OK) {
        ent_module_add_note(context->module, "'%s' was not folded: %s", node->name, error.text);
        return NULL;
    }
    uint32_t output_count = node->output_count;
    for (uint32_t i = 0; i < output_count; i++)
        if (wanted[i]) replace_by_constant(context, id, i, &outputs[i]);
    ent_module_remove_node(context->module, id);
    return NULL;
}

static ent_status fold_node(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    uint32_t dtype = ENT_DTYPE_F32;
    if (node->input_count && node->inputs[0] != ENT_ID_NONE)
        dtype = ent_module_value(context->module, node->inputs[0])->dtype;
    if (!all_constant(context, node) || !ent_ops_supported(node->op, dtype)) return NULL;
    const ent_tensor **inputs = ent_arena_alloc(context->scratch, (node->input_count + 1) * sizeof *inputs);
    ent_tensor *outputs = ent_arena_alloc(context->scratch, (node->output_count + 1) * sizeof *outputs);
    for (uint32_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] == ENT_ID_NONE
                        ? NULL
                        : &ent_module_value(context->module, node->inputs[i])->constant->tensor;
    uint64_t bytes = 0;
    if (!prepare_outputs(node, inputs, outputs, &bytes)) return NULL;
    double work = steps(node, inputs, outputs);
    if (work <= MAX_STEPS && within_budget(context, node, bytes))
        return evaluate(context, id, inputs, outputs);
    if (work > MAX_STEPS)
        ent_module_add_note(context->module, "'%s' (%s) was not folded: it would take %.2g steps", node->name,
                            ent_op_info_get(node->op)->name, work);
    else
        ent_module_add_note(context->module,
                            "'%s' (%s) was not folded: its result of %llu bytes is over the growth budget",
                            node->name, ent_op_info_get(node->op)->name, (unsigned long long)bytes);
    return NULL;
}

/* Shape and Size of a static value are constants whatever the value holds. */
static bool fold_shape(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    if (node->op != ENT_OP_Shape && node->op != ENT_OP_Size) return false;
    if (!ent_value_static(context->module, node->inputs[0])) return false;
    const ent_value *value = ent_module_value(context->module, node->inputs[0]);
    int64_t dims[ENT_MAX_RANK], rank = value->rank;
    memcpy(dims, value->dims, sizeof dims);
    uint32_t constant;
    if (node->op == ENT_OP_Size) {
        int64_t elements = ent_value_elements(context->module, node->inputs[0]);
        if (elements < 0) return false;
        constant = ent_module_add_constant(context->module, node->graph, NULL, ENT_DTYPE_I64, 0, NULL,
                                           &elements, sizeof elements, false);
    } else {
        int64_t start = ent_attrs_int(node->attrs, "start", 0), end = ent_attrs_int(node->attrs, "end", rank);
        start = start < 0 ? start + rank : start;
        end = end < 0 ? end + rank : end;
        start = start < 0 ? 0 : start > rank ? rank : start;
        end = end < start ? start : end > rank ? rank : end;
        constant = ent_module_add_i64s(context->module, node->graph, dims + start, (uint32_t)(end - start));
    }
    if (context->replaced) context->replaced[0] = constant;
    ent_rewrite_forward(context, id, constant);
    return true;
}

static bool fold_branch(ent_rewrite_context *context, uint32_t id) {
    const ent_node *node = ent_module_node(context->module, id);
    double condition = 0;
    if (node->op != ENT_OP_If || !ent_value_scalar(context->module, node->inputs[0], &condition))
        return false;
    const ent_attr *branch = ent_attrs_find(node->attrs, condition != 0 ? "then_branch" : "else_branch");
    const ent_graph *body = ent_module_graph(context->module, (uint32_t)branch->i);
    for (uint32_t i = 0; context->replaced && i < node->output_count; i++)
        context->replaced[i] = body->outputs.items[i];
    ent_module_inline_graph(context->module, id, (uint32_t)branch->i);
    context->changed = true;
    return true;
}

static ent_status visit(ent_rewrite_context *context, uint32_t id) {
    if (fold_shape(context, id) || fold_branch(context, id)) return NULL;
    return fold_node(context, id);
}

ent_status ent_rewrite_fold_node(ent_rewrite_context *context, uint32_t node, uint32_t *out_replaced) {
    context->replaced = out_replaced;
    ent_status status = visit(context, node);
    context->replaced = NULL;
    return status;
}

ent_status ent_rewrite_fold_constants(ent_rewrite_context *context) {
    return ent_rewrite_each_node(context, visit);
}
