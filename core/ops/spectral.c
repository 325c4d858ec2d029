/* Windows and the mel filter bank: made from a few numbers.
 * Source: the ONNX schemas, version 17, and the reference evaluator of onnx for the mel bank. */
#include "core/ops/internal.h"

#include <math.h>

#define PI 3.14159265358979323846

static ent_code read_number(ent_ops_call *call, uint32_t index, double *out) {
    const ent_tensor *tensor = ent_ops_input(call, index);
    if (ent_ops_element_count(tensor) != 1 || !tensor->data)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u must be one known number", index);
    *out = ent_ops_load_f64(tensor->data, tensor->dtype, 0);
    return ENT_OK;
}

static ent_code check_size(ent_ops_call *call, double size, const char *what) {
    return size >= 0 && size <= 1e9
               ? ENT_OK
               : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s is %g, out of range", what, size);
}

ent_code ent_ops_dims_signal_window(ent_ops_call *call, ent_tensor *outputs) {
    double size;
    ent_code code = read_number(call, 0, &size);
    if (code == ENT_OK) code = check_size(call, size, "the size");
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "output_datatype", ENT_DTYPE_F32);
    outputs[0].rank = 1;
    outputs[0].dims[0] = (int64_t)size;
    return ENT_OK;
}

static double window_at(uint32_t op, double turn) {
    switch (op) {
    case ENT_OP_HannWindow:
        return 0.5 - 0.5 * cos(turn);
    case ENT_OP_HammingWindow:
        return 25.0 / 46.0 - 21.0 / 46.0 * cos(turn);
    default:
        return 0.42 - 0.5 * cos(turn) + 0.08 * cos(2 * turn);
    }
}

ent_code ent_ops_signal_window(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    int64_t size = y->dims[0], length = ent_attrs_int(call->attrs, "periodic", 1) != 0 ? size : size - 1;
    double *values = ent_ops_scratch(call, size, sizeof *values);
    if (!values) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < size; i++)
        values[i] = window_at(call->op, length > 0 ? 2 * PI * (double)i / (double)length : 0);
    ent_ops_result_f64(y, values);
    return ENT_OK;
}

ent_code ent_ops_dims_mel_matrix(ent_ops_call *call, ent_tensor *outputs) {
    double bins, length;
    ent_code code = read_number(call, 0, &bins);
    if (code == ENT_OK) code = read_number(call, 1, &length);
    if (code == ENT_OK) code = check_size(call, bins, "num_mel_bins");
    if (code == ENT_OK) code = check_size(call, length, "dft_length");
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_attr_dtype(call->attrs, "output_datatype", ENT_DTYPE_F32);
    outputs[0].rank = 2;
    outputs[0].dims[0] = (int64_t)length / 2 + 1;
    outputs[0].dims[1] = (int64_t)bins;
    return ENT_OK;
}

/* A triangle over the spectrogram bins from left to right, with its top at centre. */
static void put_triangle(double *column, int64_t rows, int64_t columns, int64_t left, int64_t centre,
                         int64_t right) {
    if (left == centre && centre >= 0 && centre < rows) column[centre * columns] = 1;
    for (int64_t j = left < 0 ? 0 : left; j <= centre && j < rows && left != centre; j++)
        column[j * columns] = (double)(j - left) / (double)(centre - left);
    for (int64_t j = centre < 0 ? 0 : centre; j < right && j < rows; j++)
        column[j * columns] = (double)(right - j) / (double)(right - centre);
}

ent_code ent_ops_mel_matrix(ent_ops_call *call) {
    const ent_tensor *y = ent_ops_output(call, 0);
    double number[5];
    for (uint32_t i = 0; i < 5; i++) {
        ent_code code = read_number(call, i, &number[i]);
        if (code != ENT_OK) return code;
    }
    int64_t rows = y->dims[0], columns = y->dims[1];
    double *values = ent_ops_scratch(call, rows * columns, sizeof *values),
           low = 2595 * log10(1 + number[3] / 700), high = 2595 * log10(1 + number[4] / 700),
           step = (high - low) / (double)(columns + 2);
    int64_t *edge = ent_ops_scratch(call, columns + 2, sizeof *edge);
    if (!values || !edge) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < columns + 2; i++) {
        double hertz = 700 * (pow(10, ((double)i * step + low) / 2595) - 1);
        double bin = floor((number[1] + 1) * hertz / number[2]);
        if (!(bin >= -1e9 && bin <= 1e9))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the frequencies are out of range");
        edge[i] = (int64_t)bin;
    }
    for (int64_t i = 0; i < rows * columns; i++) values[i] = 0;
    for (int64_t i = 0; i < columns; i++)
        put_triangle(values + i, rows, columns, edge[i], edge[i + 1], edge[i + 2]);
    ent_ops_result_f64(y, values);
    return ENT_OK;
}
