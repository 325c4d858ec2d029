/* NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: minus the (logarithm of the softmax of the) score of
 * the target class, weighted, then averaged by the weights or summed. Source: the ONNX schemas, version 13.
 */
#include "core/ops/internal.h"

#include <math.h>

ent_code ent_ops_dims_loss(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0), *target = ent_ops_input(call, 1),
                     *weight = ent_ops_input(call, 2);
    bool fits = x->rank >= 2 && target->rank + 1 == x->rank && target->dims[0] == x->dims[0];
    for (uint32_t i = 2; fits && i < x->rank; i++) fits = target->dims[i - 1] == x->dims[i];
    if (fits && weight) fits = weight->rank == 1 && weight->dims[0] == x->dims[1];
    if (!fits)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "scores, targets and weights do not fit together");
    outputs[0].dtype = x->dtype;
    outputs[0].rank = 0;
    if (ent_attrs_string_is(call->attrs, "reduction", "mean", "none")) {
        ent_ops_dims_copy(target, &outputs[0]);
        outputs[0].dtype = x->dtype;
    }
    if (call->output_count > 1) ent_ops_dims_copy(x, &outputs[1]);
    return ENT_OK;
}

static void log_softmax(double *x, int64_t batch, int64_t classes, int64_t plane) {
    for (int64_t i = 0; i < batch * plane; i++) {
        double *row = x + i / plane * classes * plane + i % plane, largest = -INFINITY, sum = 0;
        for (int64_t c = 0; c < classes; c++) largest = row[c * plane] > largest ? row[c * plane] : largest;
        for (int64_t c = 0; c < classes; c++) sum += exp(row[c * plane] - largest);
        for (int64_t c = 0; c < classes; c++) row[c * plane] -= largest + log(sum);
    }
}

/* Ignored targets weigh nothing, and may name no class. */
static ent_code weigh(ent_ops_call *call, const double *x, int64_t plane, double *loss, double *out_weights) {
    const ent_tensor *scores = ent_ops_input(call, 0), *target = ent_ops_input(call, 1),
                     *weight = ent_ops_input(call, 2);
    const ent_attr *ignore = ent_attrs_find(call->attrs, "ignore_index");
    int64_t classes = scores->dims[1];
    *out_weights = 0;
    for (int64_t i = 0; i < ent_ops_element_count(target); i++) {
        int64_t class = ent_ops_load_i64(target->data, target->dtype, i);
        loss[i] = 0;
        if (ignore && class == ignore->i) continue;
        if (class < 0 || class >= classes)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "target %lld is not one of %lld classes",
                                  (long long)class, (long long)classes);
        double w = weight ? ent_ops_load_f64(weight->data, weight->dtype, class) : 1;
        loss[i] = -x[(i / plane * classes + class) * plane + i % plane] * w;
        *out_weights += w;
    }
    return ENT_OK;
}

ent_code ent_ops_loss(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *target = ent_ops_input(call, 1);
    int64_t plane = ent_ops_product(x->dims, 2, x->rank), count = ent_ops_element_count(target);
    bool none = ent_attrs_string_is(call->attrs, "reduction", "mean", "none"),
         mean = ent_attrs_string_is(call->attrs, "reduction", "mean", "mean");
    if (!none && !mean && !ent_attrs_string_is(call->attrs, "reduction", "mean", "sum"))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the reduction is not none, mean or sum");
    double weights, total = 0, *values = ent_ops_values_f64(call, x),
                    *loss = ent_ops_scratch(call, count, sizeof(double));
    if (!values || !loss) return ENT_CODE_OUT_OF_MEMORY;
    if (call->op == ENT_OP_SoftmaxCrossEntropyLoss) {
        log_softmax(values, x->dims[0], x->dims[1], plane);
        ent_ops_result_f64(ent_ops_output(call, 1), values);
    }
    ent_code code = weigh(call, values, plane, loss, &weights);
    if (code != ENT_OK) return code;
    for (int64_t i = 0; i < count; i++) total += loss[i];
    if (mean) total /= weights;
    ent_ops_result_f64(ent_ops_output(call, 0), none ? loss : &total);
    return ENT_OK;
}
