/* DFT and STFT. A length is halved while it is even, the rest is the defining sum.
 * Source: the ONNX schemas, versions 20 and 17; numpy.fft for what a one-sided inverse means. */
#include "core/ops/internal.h"

#include <math.h>

#define PI 3.14159265358979323846

typedef struct complex_f64 {
    double re, im;
} complex_f64;

static complex_f64 add_product(complex_f64 a, complex_f64 x, complex_f64 y) {
    return (complex_f64){a.re + x.re * y.re - x.im * y.im, a.im + x.re * y.im + x.im * y.re};
}

/* out[k] = sum of x[j * stride] * turn[j * k * pace mod n * pace]; `turn` holds the n * pace roots of unity.
 */
static void transform(const complex_f64 *x, int64_t stride, int64_t n, const complex_f64 *turn, int64_t pace,
                      complex_f64 *out) {
    if (n % 2 != 0) {
        for (int64_t k = 0; k < n; k++) {
            complex_f64 sum = {0, 0};
            for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n)
                sum = add_product(sum, x[j * stride], turn[at * pace]);
            out[k] = sum;
        }
        return;
    }
    int64_t half = n / 2;
    transform(x, stride * 2, half, turn, pace * 2, out);
    transform(x + stride, stride * 2, half, turn, pace * 2, out + half);
    for (int64_t k = 0; k < half; k++) {
        complex_f64 even = out[k], odd = add_product((complex_f64){0, 0}, out[k + half], turn[k * pace]);
        out[k] = (complex_f64){even.re + odd.re, even.im + odd.im};
        out[k + half] = (complex_f64){even.re - odd.re, even.im - odd.im};
    }
}

typedef struct spectrum {
    int64_t length;
    complex_f64 *turn, *in, *out;
} spectrum;

static ent_code spectrum_prepare(ent_ops_call *call, int64_t length, bool inverse, spectrum *out) {
    out->length = length;
    out->turn = ent_ops_scratch(call, length, sizeof *out->turn);
    out->in = ent_ops_scratch(call, length, sizeof *out->in);
    out->out = ent_ops_scratch(call, length, sizeof *out->out);
    if (!out->turn || !out->in || !out->out) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < length; i++) {
        double angle = (inverse ? 2 : -2) * PI * (double)i / (double)length;
        out->turn[i] = (complex_f64){cos(angle), sin(angle)};
    }
    return ENT_OK;
}

/* A scalar input that must be known; `missing` when absent. */
static ent_code read_scalar(ent_ops_call *call, uint32_t index, int64_t missing, int64_t *out) {
    const ent_tensor *tensor = ent_ops_input(call, index);
    *out = missing;
    if (!tensor) return ENT_OK;
    if (ent_ops_element_count(tensor) != 1 || !tensor->data)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "input %u must be one known number", index);
    *out = ent_ops_load_i64(tensor->data, tensor->dtype, 0);
    return ENT_OK;
}

#define MAX_LENGTH ((int64_t)1 << 30)

typedef struct dft {
    uint32_t axis;
    int64_t length;
    bool inverse, onesided;
} dft;

static ent_code dft_resolve(ent_ops_call *call, dft *d) {
    const ent_tensor *x = ent_ops_input(call, 0);
    int64_t axis;
    d->inverse = ent_attrs_int(call->attrs, "inverse", 0) != 0;
    d->onesided = ent_attrs_int(call->attrs, "onesided", 0) != 0;
    if (x->rank < 2 || (x->dims[x->rank - 1] != 1 && x->dims[x->rank - 1] != 2))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the last axis is not 1 (real) or 2 (complex) long");
    ent_code code = read_scalar(call, 2, -2, &axis);
    if (code == ENT_OK) code = ent_ops_axis(call, axis, x->rank, &d->axis);
    if (code != ENT_OK) return code;
    if (d->axis + 1 == x->rank)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "the axis is that of the real and imaginary parts");
    int64_t extent = x->dims[d->axis];
    code = read_scalar(call, 1, d->inverse && d->onesided ? 2 * (extent - 1) : extent, &d->length);
    if (code == ENT_OK && (d->length < 1 || d->length > MAX_LENGTH))
        code = ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the length %lld is out of range",
                              (long long)d->length);
    return code;
}

ent_code ent_ops_dims_dft(ent_ops_call *call, ent_tensor *outputs) {
    dft d;
    ent_code code = dft_resolve(call, &d);
    if (code != ENT_OK) return code;
    ent_ops_dims_copy(ent_ops_input(call, 0), &outputs[0]);
    outputs[0].dims[d.axis] = d.onesided && !d.inverse ? d.length / 2 + 1 : d.length;
    outputs[0].dims[outputs[0].rank - 1] = d.inverse && d.onesided ? 1 : 2;
    return ENT_OK;
}

/* A one-sided inverse knows the other half by symmetry; the imaginary parts of its ends do not count. */
static void mirror(complex_f64 *x, int64_t length) {
    x[0].im = 0;
    if (length % 2 == 0) x[length / 2].im = 0;
    for (int64_t i = length / 2 + 1; i < length; i++)
        x[i] = (complex_f64){x[length - i].re, -x[length - i].im};
}

ent_code ent_ops_dft(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0);
    ent_tensor *y = ent_ops_output(call, 0);
    dft d;
    spectrum s;
    ent_code code = dft_resolve(call, &d);
    if (code == ENT_OK) code = spectrum_prepare(call, d.length, d.inverse, &s);
    if (code != ENT_OK) return code;
    double *from = ent_ops_values_f64(call, x),
           *to = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *to);
    if (!from || !to) return ENT_CODE_OUT_OF_MEMORY;
    int64_t parts = x->dims[x->rank - 1], parts_out = y->dims[y->rank - 1], extent = x->dims[d.axis],
            kept = y->dims[d.axis], inner = ent_ops_product(x->dims, d.axis + 1, x->rank - 1),
            outer = ent_ops_product(x->dims, 0, d.axis);
    int64_t read = d.inverse && d.onesided ? d.length / 2 + 1 : d.length;
    if (read > extent) read = extent;
    double factor = d.inverse ? 1 / (double)d.length : 1;
    for (int64_t i = 0; i < outer * inner; i++) {
        for (int64_t j = 0; j < d.length; j++) {
            int64_t at = ((i / inner * extent + j) * inner + i % inner) * parts;
            s.in[j] = j < read ? (complex_f64){from[at], parts == 2 ? from[at + 1] : 0} : (complex_f64){0, 0};
        }
        if (d.inverse && d.onesided) mirror(s.in, d.length);
        transform(s.in, 1, d.length, s.turn, 1, s.out);
        for (int64_t j = 0; j < kept; j++) {
            int64_t at = ((i / inner * kept + j) * inner + i % inner) * parts_out;
            to[at] = s.out[j].re * factor;
            if (parts_out == 2) to[at + 1] = s.out[j].im * factor;
        }
    }
    ent_ops_result_f64(y, to);
    return ENT_OK;
}

typedef struct stft {
    int64_t step, length, frames, bins, parts, signal;
} stft;

/* The signal is batch x length, batch x length x 1 or batch x length x 2. */
static ent_code stft_resolve(ent_ops_call *call, stft *s) {
    const ent_tensor *x = ent_ops_input(call, 0), *window = ent_ops_input(call, 2);
    if ((x->rank != 2 && x->rank != 3) || (x->rank == 3 && x->dims[2] != 1 && x->dims[2] != 2))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the signal is not batch x length x 1 or 2");
    s->parts = x->rank == 3 ? x->dims[2] : 1;
    s->signal = x->dims[1];
    ent_code code = read_scalar(call, 1, 0, &s->step);
    int64_t missing = window && window->rank == 1 ? window->dims[0] : s->signal;
    if (code == ENT_OK) code = read_scalar(call, 3, missing, &s->length);
    if (code != ENT_OK) return code;
    if (s->step < 1 || s->length < 1 || s->length > MAX_LENGTH || s->length > s->signal)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "frames of %lld by steps of %lld do not fit",
                              (long long)s->length, (long long)s->step);
    if (window && (window->rank != 1 || window->dims[0] != s->length))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the window is not as long as a frame");
    s->frames = (s->signal - s->length) / s->step + 1;
    s->bins = ent_attrs_int(call->attrs, "onesided", 1) != 0 ? s->length / 2 + 1 : s->length;
    return ENT_OK;
}

ent_code ent_ops_dims_stft(ent_ops_call *call, ent_tensor *outputs) {
    stft s;
    ent_code code = stft_resolve(call, &s);
    if (code != ENT_OK) return code;
    outputs[0].dtype = ent_ops_input(call, 0)->dtype;
    outputs[0].rank = 4;
    outputs[0].dims[0] = ent_ops_input(call, 0)->dims[0];
    outputs[0].dims[1] = s.frames;
    outputs[0].dims[2] = s.bins;
    outputs[0].dims[3] = 2;
    return ENT_OK;
}

ent_code ent_ops_stft(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *window = ent_ops_input(call, 2),
                     *y = ent_ops_output(call, 0);
    stft s;
    spectrum work;
    ent_code code = stft_resolve(call, &s);
    if (code == ENT_OK) code = spectrum_prepare(call, s.length, false, &work);
    if (code != ENT_OK) return code;
    double *from = ent_ops_values_f64(call, x),
           *to = ent_ops_scratch(call, ent_ops_element_count(y), sizeof *to),
           *weights = window ? ent_ops_values_f64(call, window) : NULL;
    if (!from || !to || (window && !weights)) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < x->dims[0] * s.frames; i++) {
        const double *frame = from + (i / s.frames * s.signal + i % s.frames * s.step) * s.parts;
        for (int64_t j = 0; j < s.length; j++) {
            double weight = weights ? weights[j] : 1;
            work.in[j] = (complex_f64){frame[j * s.parts] * weight,
                                       s.parts == 2 ? frame[j * s.parts + 1] * weight : 0};
        }
        transform(work.in, 1, s.length, work.turn, 1, work.out);
        for (int64_t j = 0; j < s.bins; j++) {
            to[(i * s.bins + j) * 2] = work.out[j].re;
            to[(i * s.bins + j) * 2 + 1] = work.out[j].im;
        }
    }
    ent_ops_result_f64(y, to);
    return ENT_OK;
}
