/* Steps of optimisers, which are plain arithmetic: Adagrad, Adam and Momentum over any number of tensors at
 * once. Inputs are the learning rate R, the step count T, and groups of tensors: values, gradients, states.
 * Source of the formulas: the schemas of ai.onnx.preview.training. */
#include "core/import/internal.h"

typedef struct step {
    ent_import_draft *draft;
    uint32_t count; /* tensors of a group */
    uint32_t at;    /* the one at hand */
    uint32_t like;  /* it: scalars have its type */
} step;

static uint32_t binary(const step *s, uint32_t op, uint32_t a, uint32_t b) {
    uint32_t inputs[2] = {a, b};
    return ent_import_emit(s->draft, op, NULL, 0, inputs, 2);
}

static uint32_t scalar(const step *s, double value) {
    return ent_import_scalar_like(s->draft, value, s->like);
}

static uint32_t scaled(const step *s, double factor, uint32_t value) {
    return binary(s, ENT_OP_Mul, scalar(s, factor), value);
}

static uint32_t root(const step *s, uint32_t value) {
    return ent_import_emit(s->draft, ENT_OP_Sqrt, NULL, 0, &value, 1);
}

static double number(const step *s, const char *name, double missing) {
    const ent_attr *attr = ent_import_attr(s->draft, name);
    return attr ? attr->f : missing;
}

/* Tensor of a group; 0 holds the values, 1 the gradients. */
static uint32_t tensor(const step *s, uint32_t group) {
    return s->draft->inputs[2 + group * s->count + s->at];
}

/* Input 0 or 1 in the type of the values. */
static uint32_t cast(const step *s, uint32_t input) {
    return binary(s, ENT_OP_CastLike, s->draft->inputs[input], s->like);
}

static void put(const step *s, uint32_t group, uint32_t value) {
    uint32_t index = group * s->count + s->at;
    if (index < s->draft->output_count && s->draft->outputs[index] != ENT_ID_NONE)
        ent_import_emit_to(s->draft, ENT_OP_Identity, NULL, 0, &value, 1, s->draft->outputs[index]);
}

/* With the gradient of a penalty on the values' norm. */
static uint32_t gradient(const step *s) {
    return binary(s, ENT_OP_Add, scaled(s, number(s, "norm_coefficient", 0), tensor(s, 0)), tensor(s, 1));
}

/* T > 0 ? later : first */
static uint32_t after_first(const step *s, uint32_t later, uint32_t first) {
    uint32_t zero =
        ent_module_add_scalar(s->draft->importer->module, s->draft->scope->graph, ENT_DTYPE_I64, 0);
    uint32_t inputs[3] = {binary(s, ENT_OP_Greater, s->draft->inputs[1], zero), later, first};
    return ent_import_emit(s->draft, ENT_OP_Where, NULL, 0, inputs, 3);
}

static void adagrad(const step *s) {
    uint32_t decay = scaled(s, number(s, "decay_factor", 0), cast(s, 1));
    uint32_t rate = binary(s, ENT_OP_Div, cast(s, 0), binary(s, ENT_OP_Add, scalar(s, 1), decay));
    uint32_t g = gradient(s), squares = binary(s, ENT_OP_Add, tensor(s, 2), binary(s, ENT_OP_Mul, g, g));
    uint32_t width = binary(s, ENT_OP_Add, root(s, squares), scalar(s, number(s, "epsilon", 1e-6)));
    uint32_t move = binary(s, ENT_OP_Div, binary(s, ENT_OP_Mul, rate, g), width);
    put(s, 0, binary(s, ENT_OP_Sub, tensor(s, 0), move));
    put(s, 1, squares);
}

/* 1 - base^T */
static uint32_t correction(const step *s, double base) {
    return binary(s, ENT_OP_Sub, scalar(s, 1), binary(s, ENT_OP_Pow, scalar(s, base), cast(s, 1)));
}

static void adam(const step *s) {
    double alpha = number(s, "alpha", 0.9), beta = number(s, "beta", 0.999);
    uint32_t g = gradient(s), rate = cast(s, 0);
    uint32_t mean = binary(s, ENT_OP_Add, scaled(s, alpha, tensor(s, 2)), scaled(s, 1 - alpha, g));
    uint32_t squares = scaled(s, 1 - beta, binary(s, ENT_OP_Mul, g, g));
    squares = binary(s, ENT_OP_Add, scaled(s, beta, tensor(s, 3)), squares);
    uint32_t width = binary(s, ENT_OP_Add, root(s, squares), scalar(s, number(s, "epsilon", 1e-6)));
    uint32_t corrected = binary(s, ENT_OP_Mul, rate, root(s, correction(s, beta)));
    corrected = binary(s, ENT_OP_Div, corrected, correction(s, alpha));
    uint32_t move = binary(s, ENT_OP_Mul, after_first(s, corrected, rate), mean);
    uint32_t x = binary(s, ENT_OP_Sub, tensor(s, 0), binary(s, ENT_OP_Div, move, width));
    put(s, 0, scaled(s, 1 - number(s, "norm_coefficient_post", 0), x));
    put(s, 1, mean);
    put(s, 2, squares);
}

static void momentum(const step *s) {
    const ent_attr *mode = ent_import_attr(s->draft, "mode");
    ent_attrs attrs = {mode, 1};
    uint32_t g = gradient(s), beta = after_first(s, scalar(s, number(s, "beta", 0)), scalar(s, 1));
    uint32_t speed =
        binary(s, ENT_OP_Add, scaled(s, number(s, "alpha", 0), tensor(s, 2)), binary(s, ENT_OP_Mul, beta, g));
    uint32_t direction = speed;
    if (ent_attrs_string_is(attrs, "mode", "", "nesterov"))
        direction = binary(s, ENT_OP_Add, g, scaled(s, number(s, "alpha", 0), speed));
    put(s, 0, binary(s, ENT_OP_Sub, tensor(s, 0), binary(s, ENT_OP_Mul, cast(s, 0), direction)));
    put(s, 1, speed);
}

static ent_status each(ent_import_draft *draft, uint32_t groups, void (*one)(const step *)) {
    uint32_t given = draft->input_count - 2;
    step s = {.draft = draft, .count = given / groups};
    if (given == 0 || given % groups != 0)
        return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.arity", draft->place,
                               "%u tensors behind R and T do not make groups of %u", given, groups);
    for (uint32_t i = 0; i < given; i++)
        if (draft->inputs[2 + i] == ENT_ID_NONE)
            return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.missing-input",
                                   draft->place, "the required input %u is absent", 2 + i);
    if (draft->output_count > (groups - 1) * s.count)
        return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "operator.arity", draft->place,
                               "%u outputs are given, expected at most %u", draft->output_count,
                               (groups - 1) * s.count);
    for (s.at = 0; s.at < s.count; s.at++) {
        s.like = tensor(&s, 0);
        one(&s);
    }
    draft->done = true;
    return NULL;
}

ent_status ent_import_expand_adagrad(ent_import_draft *draft) {
    return each(draft, 3, adagrad);
}

ent_status ent_import_expand_adam(ent_import_draft *draft) {
    return each(draft, 4, adam);
}

ent_status ent_import_expand_momentum(ent_import_draft *draft) {
    const ent_attr *mode = ent_import_attr(draft, "mode");
    ent_attrs attrs = {mode, 1};
    if (!ent_attrs_string_is(attrs, "mode", "", "nesterov") &&
        !ent_attrs_string_is(attrs, "mode", "", "standard"))
        return ent_status_make(draft->importer->arena, ENT_ERROR_MODEL, "attribute.value", draft->place,
                               "mode is neither 'standard' nor 'nesterov'");
    return each(draft, 3, momentum);
}
