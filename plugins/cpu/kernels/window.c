/* Depthwise convolution and pooling, channels last: several pixels at a time with the sums in registers, so
 * that a weight vector and a tap pointer are loaded once for all of them. */
#include "vec.h"
#include "kernels_isa.h"

#include <math.h>

#define PIXELS 6

/* `pixels`, `vectors`, `op` are constants in each instance; `tail` masks the last vector when it is not
 * whole. */
ENT_INLINE void block(const ent_cpu_window *w, int64_t pixel, int64_t channel, int64_t last_lanes,
                      const int pixels, const int vectors, const int op, const bool ragged) {
    vf acc[PIXELS][2];
    vt t = vt_first(last_lanes);
    ENT_UNROLL
    for (int v = 0; v < vectors; v++) {
        vf start = vf_zero();
        const float *bias = w->bias ? w->bias + channel + v * VF_LANES : NULL;
        if (op == ENT_CPU_WINDOW_DEPTHWISE && bias) start = ragged ? vf_load_first(bias, t) : vf_load(bias);
        if (op == ENT_CPU_WINDOW_MAX) start = vf_set1(-INFINITY);
        ENT_UNROLL
        for (int p = 0; p < pixels; p++) acc[p][v] = start;
    }
    const int64_t offset = pixel * w->in_stride + channel, stride = w->in_stride;
    ENT_NO_UNROLL
    for (int64_t tap = 0; tap < w->taps; tap++) {
        /* Two opaque bases, each with its next two pixels in reach of an addressing mode; otherwise the
         * compiler keeps an offset for each pixel and runs out of registers. */
        const float *in[2];
        in[0] = w->in[tap] + offset;
        in[1] = in[0] + 3 * stride;
        __asm__("" : "+r"(in[0]), "+r"(in[1]));
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) {
            vf weight = vf_zero();
            if (op == ENT_CPU_WINDOW_DEPTHWISE) {
                const float *p = w->weights[tap] + channel + v * VF_LANES;
                weight = ragged ? vf_load_first(p, t) : vf_load(p);
            }
            ENT_UNROLL
            for (int p = 0; p < pixels; p++) {
                const float *x = in[p / 3] + p % 3 * stride + v * VF_LANES;
                vf value = ragged ? vf_load_first(x, t) : vf_load(x);
                if (op == ENT_CPU_WINDOW_DEPTHWISE)
                    acc[p][v] = vf_fma(value, weight, acc[p][v]);
                else if (op == ENT_CPU_WINDOW_MAX)
                    acc[p][v] = vf_max_nan(acc[p][v], value);
                else
                    acc[p][v] = vf_add(acc[p][v], value);
            }
        }
    }
    /* Copies, since the stores below could otherwise change *w as far as the compiler knows. */
    const bool clip = w->clip;
    const int64_t out_stride = w->out_stride;
    float *out = w->out + pixel * out_stride + channel;
    vf lo = vf_set1(w->lo), hi = vf_set1(w->hi), scale = vf_set1(w->scale);
    ENT_UNROLL
    for (int p = 0; p < pixels; p++) {
        ENT_UNROLL
        for (int v = 0; v < vectors; v++) {
            float *y = out + p * out_stride + v * VF_LANES;
            vf x = acc[p][v];
            if (op == ENT_CPU_WINDOW_SUM) x = vf_mul(x, scale);
            if (clip) x = vf_clip(x, lo, hi);
            if (ragged)
                vf_store_first(y, t, x);
            else
                vf_store(y, x);
        }
    }
}

/* One group of pixels over all channels. */
ENT_INLINE void group(const ent_cpu_window *w, int64_t pixel, const int pixels, const int op) {
    int64_t c = 0;
    for (; c + 2 * VF_LANES <= w->channels; c += 2 * VF_LANES)
        block(w, pixel, c, VF_LANES, pixels, 2, op, false);
    for (; c + VF_LANES <= w->channels; c += VF_LANES) block(w, pixel, c, VF_LANES, pixels, 1, op, false);
    if (c < w->channels) block(w, pixel, c, w->channels - c, pixels, 1, op, true);
}

#define RUN(name, op)                                                                                        \
    static void name(const ent_cpu_window *w) {                                                              \
        int64_t pixel = 0;                                                                                   \
        for (; pixel + PIXELS <= w->width; pixel += PIXELS) group(w, pixel, PIXELS, op);                     \
        for (; pixel + 3 <= w->width; pixel += 3) group(w, pixel, 3, op);                                    \
        for (; pixel < w->width; pixel++) group(w, pixel, 1, op);                                            \
    }

RUN(run_depthwise, ENT_CPU_WINDOW_DEPTHWISE)
RUN(run_max, ENT_CPU_WINDOW_MAX)
RUN(run_sum, ENT_CPU_WINDOW_SUM)

void ENT_ISA(ent_cpu_window_run)(const ent_cpu_window *w) {
    if (w->op == ENT_CPU_WINDOW_DEPTHWISE)
        run_depthwise(w);
    else if (w->op == ENT_CPU_WINDOW_MAX)
        run_max(w);
    else
        run_sum(w);
}
