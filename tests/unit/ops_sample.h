/* Short ways to say tensors, attributes and one evaluation, for the tests of core/ops. */
#ifndef ENT_TEST_OPS_SAMPLE_H
#define ENT_TEST_OPS_SAMPLE_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"

#define DIMS(...)                                                                                            \
    ((const int64_t[]){__VA_ARGS__}), (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define NO_DIMS NULL, 0
#define F32(...) ((const double[]){__VA_ARGS__})
#define NO_ATTRS ((ent_attrs){NULL, 0})

static inline ent_tensor sample_empty(uint32_t dtype, const int64_t *dims, uint32_t rank, ent_layout layout) {
    ent_tensor tensor = {.dtype = dtype, .rank = rank, .layout = layout};
    for (uint32_t i = 0; i < rank; i++) tensor.dims[i] = dims[i];
    int64_t bytes = ent_layout_bytes(&layout, (ent_dtype)dtype, dims);
    if (bytes < 0 || bytes > INT32_MAX) abort(); /* samples are small */
    tensor.size_bytes = (uint64_t)bytes;
    tensor.data = malloc(tensor.size_bytes ? tensor.size_bytes : 1);
    memset(tensor.data, 0x5a, tensor.size_bytes);
    return tensor;
}

/* Row-major; dtypes of whole bytes. */
static inline ent_tensor sample(uint32_t dtype, const double *values, const int64_t *dims, uint32_t rank) {
    ent_tensor tensor = sample_empty(dtype, dims, rank, ent_layout_plain(rank));
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= dims[i];
    for (int64_t i = 0; i < count; i++) ent_ops_store_f64(tensor.data, dtype, i, values[i]);
    return tensor;
}

static inline ent_tensor sample_in(const ent_tensor *tensor, ent_layout layout) {
    ent_tensor copy = sample_empty(tensor->dtype, tensor->dims, tensor->rank, layout);
    ent_ops_error error = {0};
    ck_assert_msg(ent_ops_convert(tensor, &copy, &error) == ENT_OK, "%s", error.text);
    return copy;
}

static inline ent_attr sample_int(const char *name, int64_t value) {
    return (ent_attr){.name = {name, strlen(name)}, .type = ENT_ATTR_INT, .i = value};
}
static inline ent_attr sample_float(const char *name, double value) {
    return (ent_attr){.name = {name, strlen(name)}, .type = ENT_ATTR_FLOAT, .f = value};
}
static inline ent_attr sample_string(const char *name, const char *value) {
    return (ent_attr){.name = {name, strlen(name)}, .type = ENT_ATTR_STRING, .s = {value, strlen(value)}};
}
static inline ent_attr sample_ints(const char *name, const int64_t *values, uint32_t count) {
    return (ent_attr){.name = {name, strlen(name)}, .type = ENT_ATTR_INTS, .count = count, .ints = values};
}

/* Evaluates with one output of the dims that the operator's own rule gives. inputs are freed. Fails the test
 * on refusal. */
static inline ent_tensor sample_run(uint32_t op, ent_attrs attrs, ent_tensor *inputs, uint32_t count) {
    const ent_tensor *pointers[12];
    for (uint32_t i = 0; i < count; i++) pointers[i] = inputs[i].dtype == ENT_DTYPE_NONE ? NULL : &inputs[i];
    ent_ops_error error = {0};
    ent_tensor dims = {0};
    ck_assert_msg(ent_ops_output_dims(op, attrs, pointers, count, &dims, 1, &error) == ENT_OK, "%s",
                  error.text);
    ent_tensor output = sample_empty(dims.dtype, dims.dims, dims.rank, ent_layout_plain(dims.rank));
    ent_tensor *outputs[1] = {&output};
    ck_assert_msg(ent_ops_evaluate(op, attrs, pointers, count, outputs, 1, NULL, &error) == ENT_OK, "%s",
                  error.text);
    for (uint32_t i = 0; i < count; i++) free(inputs[i].data);
    return output;
}

/* The refusal of a call: its code, with the text left in error. */
static inline ent_code sample_refusal(uint32_t op, ent_attrs attrs, ent_tensor *inputs, uint32_t count,
                                      ent_ops_error *error) {
    const ent_tensor *pointers[12];
    for (uint32_t i = 0; i < count; i++) pointers[i] = inputs[i].dtype == ENT_DTYPE_NONE ? NULL : &inputs[i];
    ent_tensor dims = {0};
    ent_code code = ent_ops_output_dims(op, attrs, pointers, count, &dims, 1, error);
    if (code == ENT_OK) {
        ent_tensor output = sample_empty(dims.dtype, dims.dims, dims.rank, ent_layout_plain(dims.rank));
        ent_tensor *outputs[1] = {&output};
        code = ent_ops_evaluate(op, attrs, pointers, count, outputs, 1, NULL, error);
        free(output.data);
    }
    for (uint32_t i = 0; i < count; i++) free(inputs[i].data);
    return code;
}

/* Row-major; NaN equals NaN. Frees the tensor. */
static inline void sample_expect(ent_tensor tensor, const int64_t *dims, uint32_t rank,
                                 const double *values) {
    ck_assert_uint_eq(tensor.rank, rank);
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        ck_assert_int_eq(tensor.dims[i], dims[i]);
        count *= dims[i];
    }
    for (int64_t i = 0; i < count; i++) {
        double got = ent_ops_load_f64(tensor.data, tensor.dtype, i);
        bool same = (isnan(got) && isnan(values[i])) || got == values[i] ||
                    fabs(got - values[i]) <= 1e-6 * (1 + fabs(values[i]));
        ck_assert_msg(same, "element %lld is %.9g, not %.9g", (long long)i, got, values[i]);
    }
    free(tensor.data);
}

static inline int sample_main(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
