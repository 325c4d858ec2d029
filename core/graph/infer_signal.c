/* Shape rules: windows and spectra, Det, running sums. */
#include "core/graph/infer.h"

/* The one number of an input; false when it is not known. */
static bool number_of(const ent_infer *infer, uint32_t index, int64_t *out) {
    int64_t numbers[ENT_MAX_ELEMENTS];
    uint32_t count;
    if (!ent_infer_numbers(infer, index, numbers, &count) || count != 1) return false;
    *out = numbers[0];
    return true;
}

/* The same as a size, which may hold symbols. */
static ent_dim size_of(const ent_infer *infer, uint32_t index) {
    ent_dim items[ENT_MAX_ELEMENTS];
    uint32_t count;
    if (!ent_infer_elements(infer, index, items, &count) || count != 1) return ENT_DIM_UNKNOWN;
    return items[0];
}

static ent_status output_dtype(const ent_infer *infer, uint32_t *out) {
    int64_t dtype = ent_attrs_int(infer->attrs, "output_datatype", ENT_DTYPE_F32);
    *out = (uint32_t)dtype;
    if (dtype > 0 && dtype < ENT_DTYPE_COUNT) return NULL;
    return ent_infer_fail(infer, "attribute.dtype", "output_datatype is %lld, which is no element type",
                          (long long)dtype);
}

static ent_status infer_signal_window(ent_infer *infer) {
    uint32_t dtype;
    ENT_TRY(output_dtype(infer, &dtype));
    ent_dim size = size_of(infer, 0);
    ent_infer_set(infer, 0, dtype, 1, &size);
    return NULL;
}

ent_status ent_infer_HannWindow(ent_infer *infer) {
    return infer_signal_window(infer);
}

ent_status ent_infer_HammingWindow(ent_infer *infer) {
    return infer_signal_window(infer);
}

ent_status ent_infer_BlackmanWindow(ent_infer *infer) {
    return infer_signal_window(infer);
}

/* length / 2 + 1 */
static ent_dim half_of(const ent_infer *infer, ent_dim length) {
    return ent_infer_dim(infer, ENT_EXPR_ADD, ent_infer_dim(infer, ENT_EXPR_FLOORDIV, length, 2), 1);
}

ent_status ent_infer_MelWeightMatrix(ent_infer *infer) {
    uint32_t dtype;
    ENT_TRY(output_dtype(infer, &dtype));
    ent_dim dims[2] = {half_of(infer, size_of(infer, 1)), size_of(infer, 0)};
    ent_infer_set(infer, 0, dtype, 2, dims);
    return NULL;
}

ent_status ent_infer_DFT(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    bool inverse = ent_attrs_int(infer->attrs, "inverse", 0) != 0,
         onesided = ent_attrs_int(infer->attrs, "onesided", 0) != 0;
    ent_dim dims[ENT_MAX_RANK];
    int64_t parts, wanted = -2;
    uint32_t axis = 0;
    bool known = !ent_infer_input(infer, 2) || number_of(infer, 2, &wanted);
    bool fits = x->rank >= 2;
    if (fits && ent_module_dim_number(infer->module, x->dims[x->rank - 1], &parts))
        fits = parts == 1 || parts == 2;
    if (!fits)
        return ent_infer_fail(infer, "shape.complex",
                              "the last axis of %s is not 1 (real) or 2 (complex) long",
                              ent_infer_text(infer, 0));
    if (known) ENT_TRY(ent_infer_axis(infer, wanted, x->rank, &axis));
    if (known && axis + 1 == x->rank)
        return ent_infer_fail(infer, "shape.axis", "the axis is that of the real and imaginary parts");
    for (uint32_t i = 0; i < x->rank; i++) dims[i] = known ? x->dims[i] : ENT_DIM_UNKNOWN;
    if (known) {
        ent_dim length = x->dims[axis];
        if (inverse && onesided)
            length = ent_infer_dim(infer, ENT_EXPR_MUL, ent_infer_dim(infer, ENT_EXPR_SUB, length, 1), 2);
        if (ent_infer_input(infer, 1)) length = size_of(infer, 1);
        dims[axis] = onesided && !inverse ? half_of(infer, length) : length;
    }
    dims[x->rank - 1] = inverse && onesided ? 1 : 2;
    ent_infer_set(infer, 0, x->dtype, x->rank, dims);
    return NULL;
}

/* frames = (signal - length) / step + 1 */
ent_status ent_infer_STFT(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *window = ent_infer_input(infer, 2);
    if (x->rank != 2 && x->rank != 3)
        return ent_infer_fail(infer, "shape.rank", "the signal %s is not batch x length x 1 or 2",
                              ent_infer_text(infer, 0));
    if (window && window->rank != 1)
        return ent_infer_fail(infer, "shape.rank", "the window %s is no vector", ent_infer_text(infer, 2));
    ent_dim length = ent_infer_input(infer, 3) ? size_of(infer, 3)
                     : window                  ? window->dims[0]
                                               : x->dims[1],
            frames = ENT_DIM_UNKNOWN;
    int64_t step;
    if (number_of(infer, 1, &step) && step > 0)
        frames = ent_infer_dim(infer, ENT_EXPR_ADD,
                               ent_infer_dim(infer, ENT_EXPR_FLOORDIV,
                                             ent_infer_dim(infer, ENT_EXPR_SUB, x->dims[1], length), step),
                               1);
    bool onesided = ent_attrs_int(infer->attrs, "onesided", 1) != 0;
    ent_dim dims[4] = {x->dims[0], frames, onesided ? half_of(infer, length) : length, 2};
    ent_infer_set(infer, 0, x->dtype, 4, dims);
    return NULL;
}

ent_status ent_infer_Det(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    if (x->rank < 2 || ent_infer_differ(infer, x->dims[x->rank - 1], x->dims[x->rank - 2]))
        return ent_infer_fail(infer, "shape.square",
                              "the last two axes of %s are not those of square matrices",
                              ent_infer_text(infer, 0));
    ent_infer_set(infer, 0, x->dtype, x->rank - 2, x->dims);
    return NULL;
}

static ent_status infer_cumulate(ent_infer *infer) {
    int64_t wanted;
    uint32_t axis;
    if (number_of(infer, 1, &wanted))
        ENT_TRY(ent_infer_axis(infer, wanted, ent_infer_input(infer, 0)->rank, &axis));
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_CumSum(ent_infer *infer) {
    return infer_cumulate(infer);
}

ent_status ent_infer_CumProd(ent_infer *infer) {
    return infer_cumulate(infer);
}
