/* Tensors of the command line: made inputs, collected inputs, NumPy files out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "abi/ent_types.h"
#include "cli/cli.h"

size_t cli_dtype_bytes(uint32_t dtype) {
    return ent_dtype_bits((ent_dtype)dtype) / 8;
}

static double half_to_double(uint16_t bits) {
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent == 0    ? ldexp(mantissa, -24)
                   : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                    : ldexp(mantissa + 1024, exponent - 25);
    return bits >> 15 ? -value : value;
}

double cli_load_f64(const entente_tensor *t, uint64_t i) {
    const void *data = t->data;
    switch (t->dtype) {
    case ENTENTE_F32:
        return ((const float *)data)[i];
    case ENTENTE_F64:
        return ((const double *)data)[i];
    case ENTENTE_F16:
        return half_to_double(((const uint16_t *)data)[i]);
    case ENTENTE_BF16: {
        uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    case ENTENTE_I8:
        return ((const int8_t *)data)[i];
    case ENTENTE_U8:
    case ENTENTE_BOOL:
        return ((const uint8_t *)data)[i];
    case ENTENTE_I16:
        return ((const int16_t *)data)[i];
    case ENTENTE_U16:
        return ((const uint16_t *)data)[i];
    case ENTENTE_I32:
        return ((const int32_t *)data)[i];
    case ENTENTE_U32:
        return ((const uint32_t *)data)[i];
    case ENTENTE_I64:
        return (double)((const int64_t *)data)[i];
    case ENTENTE_U64:
        return (double)((const uint64_t *)data)[i];
    default:
        return NAN;
    }
}

static const char *npy_descr(uint32_t dtype) {
    static const char *const names[] = {
        [ENTENTE_F32] = "<f4",  [ENTENTE_F16] = "<f2",   [ENTENTE_F64] = "<f8", [ENTENTE_I8] = "|i1",
        [ENTENTE_U8] = "|u1",   [ENTENTE_I16] = "<i2",   [ENTENTE_U16] = "<u2", [ENTENTE_I32] = "<i4",
        [ENTENTE_U32] = "<u4",  [ENTENTE_I64] = "<i8",   [ENTENTE_U64] = "<u8", [ENTENTE_BOOL] = "|b1",
        [ENTENTE_BF16] = "<u2", [ENTENTE_C128] = "<c16", [ENTENTE_C64] = "<c8"};
    return dtype < sizeof names / sizeof names[0] ? names[dtype] : NULL;
}

/* NumPy has no bfloat16: its bits are written as uint16. */
int cli_write_npy(const char *path, const entente_tensor *t) {
    char header[512] = "", shape[256] = "";
    for (uint32_t i = 0; i < t->rank; i++) {
        size_t used = strlen(shape);
        snprintf(shape + used, sizeof shape - used, "%lld,", (long long)t->dims[i]);
    }
    if (!npy_descr(t->dtype)) return ENTENTE_UNSUPPORTED;
    int size = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                        npy_descr(t->dtype), shape);
    int padded = (size + 10 + 1 + 63) / 64 * 64 - 10;
    memset(header + size, ' ', (size_t)(padded - size));
    header[padded - 1] = '\n';
    const unsigned char lead[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(padded & 255), (unsigned char)(padded >> 8)};
    FILE *file = fopen(path, "wb");
    if (!file) return ENTENTE_USAGE;
    bool good = fwrite(lead, 1, 10, file) == 10 &&
                fwrite(header, 1, (size_t)padded, file) == (size_t)padded &&
                (t->size_bytes == 0 || fwrite(t->data, 1, t->size_bytes, file) == t->size_bytes);
    return fclose(file) == 0 && good ? 0 : ENTENTE_USAGE;
}

/* splitmix64: http://prng.di.unimi.it/splitmix64.c (public domain) */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double next_normal(uint64_t *state) {
    double u = ((double)(next_random(state) >> 11) + 1) / 9007199254740993.0,
           v = (double)(next_random(state) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static bool fill(entente_tensor *t, uint64_t count, uint64_t seed) {
    uint64_t state = seed;
    for (uint64_t i = 0; i < count; i++) {
        switch (t->dtype) {
        case ENTENTE_F32:
            ((float *)t->data)[i] = (float)next_normal(&state);
            break;
        case ENTENTE_F64:
            ((double *)t->data)[i] = next_normal(&state);
            break;
        case ENTENTE_F16:
            ((uint16_t *)t->data)[i] = (uint16_t)(0x3000 + (next_random(&state) & 0x87ff));
            break;
        case ENTENTE_BF16:
            ((uint16_t *)t->data)[i] = (uint16_t)(0x3e00 + (next_random(&state) & 0x81ff));
            break;
        case ENTENTE_I64:
            ((int64_t *)t->data)[i] = 1 + (int64_t)(next_random(&state) % 100);
            break;
        case ENTENTE_U64:
            ((uint64_t *)t->data)[i] = 1 + next_random(&state) % 100;
            break;
        case ENTENTE_I32:
        case ENTENTE_U32:
            ((uint32_t *)t->data)[i] = 1 + (uint32_t)(next_random(&state) % 100);
            break;
        case ENTENTE_I16:
        case ENTENTE_U16:
            ((uint16_t *)t->data)[i] = 1 + (uint16_t)(next_random(&state) % 100);
            break;
        case ENTENTE_I8:
        case ENTENTE_U8:
            ((uint8_t *)t->data)[i] = 1 + (uint8_t)(next_random(&state) % 100);
            break;
        case ENTENTE_BOOL:
            ((uint8_t *)t->data)[i] = 1;
            break;
        default:
            return false;
        }
    }
    return true;
}

int cli_make_input(const cli_options *o, const entente_port *port, uint64_t seed, entente_tensor *out) {
    memset(out, 0, sizeof *out);
    out->dtype = port->dtype;
    out->rank = port->rank;
    uint64_t count = 1;
    for (uint32_t i = 0; i < port->rank; i++) {
        if (port->dims[i] < 0)
            return cli_fail(o, ENTENTE_USAGE, "run.open-dimension", port->name,
                            "dimension %u is open; give the input with --input", i);
        out->dims[i] = port->dims[i];
        count *= (uint64_t)port->dims[i];
    }
    out->size_bytes = count * cli_dtype_bytes(port->dtype);
    out->data = aligned_alloc(64, (out->size_bytes + 127) / 64 * 64);
    if (!out->data) return cli_fail(o, ENTENTE_LIMIT, "memory", port->name, "out of memory for an input");
    if (fill(out, count, seed)) return 0;
    entente_tensor_free(out);
    return cli_fail(o, ENTENTE_UNSUPPORTED, "run.make-input", port->name,
                    "values of type %s cannot be made; give the input with --input",
                    entente_dtype_name(port->dtype));
}

static int check_names(const cli_options *o, const entente_bundle *bundle) {
    for (size_t i = 0; i < o->input_count; i++) {
        bool known = false;
        for (size_t k = 0; k < entente_input_count(bundle) && !known; k++) {
            entente_port port;
            known = entente_input(bundle, k, &port) == 0 && strcmp(port.name, o->inputs[i].name) == 0;
        }
        if (!known)
            return cli_fail(o, ENTENTE_USAGE, "run.input-name", o->inputs[i].name,
                            "there is no input of this name");
    }
    return 0;
}

static int collect_one(const cli_options *o, const entente_bundle *bundle, size_t index,
                       const entente_port *port, entente_tensor *out) {
    uint64_t seed = o->seed * 1000003 + index;
    for (size_t k = 0; k < o->input_count; k++) {
        if (strcmp(o->inputs[k].name, port->name) != 0) continue;
        entente_compile_result details;
        int code = entente_tensor_read(o->inputs[k].value, out, &details);
        if (code) cli_fail_compile(o, &details);
        entente_compile_result_free(&details);
        return code;
    }
    entente_tensor only;
    int code = cli_make_input(o, port, seed, out);
    if (code || !entente_input_value(bundle, index, &only) || only.size_bytes == 0) return code;
    memcpy(out->data, only.data, only.size_bytes);
    return 0;
}

int cli_collect_inputs(const cli_options *o, const entente_bundle *bundle, entente_tensor *out, size_t room,
                       size_t *out_count) {
    *out_count = 0;
    int code = check_names(o, bundle);
    for (size_t i = 0; i < entente_input_count(bundle) && !code; i++) {
        entente_port port;
        if (i == room) return cli_fail(o, ENTENTE_LIMIT, "run.inputs", "inputs", "over %zu inputs", room);
        code = entente_input(bundle, i, &port);
        if (!code) code = collect_one(o, bundle, i, &port, &out[i]);
        if (!code) (*out_count)++;
    }
    return code;
}
