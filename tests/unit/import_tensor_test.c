/* TensorProto -> tensor: raw and typed fields of every dtype, packing of sub-byte rows, sizes. */
#include "import_build.h"

static ent_arena *arena;

static void setup(void) {
    arena = ent_arena_create(0);
}

static void teardown(void) {
    ent_arena_destroy(arena);
}

static ent_status read_tensor(const bytes *proto, ent_tensor *out, const char **out_name) {
    char path[64];
    write_temporary(proto, path);
    ent_status status = ent_import_tensor_pb(arena, path, out, out_name);
    unlink(path);
    return status;
}

static ent_tensor read_ok(const bytes *proto) {
    ent_tensor tensor;
    ent_status status = read_tensor(proto, &tensor, NULL);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    return tensor;
}

/* ONNX number, dtype, bits per element: the table of onnx.proto, written down a second time. */
static const struct {
    int onnx;
    ent_dtype dtype;
    uint32_t bits;
} dtypes[] = {{1, ENT_DTYPE_F32, 32},        {2, ENT_DTYPE_U8, 8},          {3, ENT_DTYPE_I8, 8},
              {4, ENT_DTYPE_U16, 16},        {5, ENT_DTYPE_I16, 16},        {6, ENT_DTYPE_I32, 32},
              {7, ENT_DTYPE_I64, 64},        {9, ENT_DTYPE_BOOL, 8},        {10, ENT_DTYPE_F16, 16},
              {11, ENT_DTYPE_F64, 64},       {12, ENT_DTYPE_U32, 32},       {13, ENT_DTYPE_U64, 64},
              {14, ENT_DTYPE_C64, 64},       {15, ENT_DTYPE_C128, 128},     {16, ENT_DTYPE_BF16, 16},
              {17, ENT_DTYPE_F8E4M3FN, 8},   {18, ENT_DTYPE_F8E4M3FNUZ, 8}, {19, ENT_DTYPE_F8E5M2, 8},
              {20, ENT_DTYPE_F8E5M2FNUZ, 8}, {21, ENT_DTYPE_U4, 4},         {22, ENT_DTYPE_I4, 4},
              {23, ENT_DTYPE_F4E2M1, 4},     {24, ENT_DTYPE_F8E8M0, 8},     {25, ENT_DTYPE_U2, 2},
              {26, ENT_DTYPE_I2, 2}};
#define DTYPE_COUNT (int)(sizeof dtypes / sizeof *dtypes)

START_TEST(raw_of_every_dtype) {
    uint8_t raw[8 * 16];
    const int64_t dims[] = {2, 4};
    size_t size = 8 * dtypes[_i].bits / 8;
    for (size_t i = 0; i < size; i++)
        raw[i] = dtypes[_i].dtype == ENT_DTYPE_BOOL ? i & 1 : (uint8_t)(17 * i + 3);
    bytes proto = make_tensor("t", dtypes[_i].onnx, 2, dims, raw, size);
    ent_tensor tensor = read_ok(&proto);
    ck_assert_uint_eq(tensor.dtype, dtypes[_i].dtype);
    ck_assert_uint_eq(tensor.rank, 2);
    ck_assert_uint_eq(tensor.size_bytes, size);
    ck_assert_mem_eq(tensor.data, raw, size);
}
END_TEST

START_TEST(raw_of_wrong_size) {
    const uint8_t raw[200] = {0};
    size_t right = 8 * dtypes[_i].bits / 8;
    for (int delta = -1; delta <= 1; delta += 2) {
        bytes proto =
            make_tensor("t", dtypes[_i].onnx, 2, (const int64_t[]){2, 4}, raw, right + (size_t)delta);
        ent_tensor tensor;
        ent_status status = read_tensor(&proto, &tensor, NULL);
        ck_assert_ptr_nonnull(status);
        ck_assert_str_eq(status->rule, "tensor.size");
        ck_assert_int_eq(status->code, ENT_ERROR_MODEL);
    }
}
END_TEST

/* 3 x 3 four-bit elements lie in 5 bytes in a file and in 3 rows of 2 bytes here. */
START_TEST(odd_rows_of_four_bits) {
    const uint8_t raw[] = {0x21, 0x43, 0x65, 0x87, 0x09}, rows[] = {0x21, 0x03, 0x54, 0x06, 0x87, 0x09};
    bytes proto = make_tensor("t", _i == 0 ? 22 : 21, 2, (const int64_t[]){3, 3}, raw, 5);
    ent_tensor tensor = read_ok(&proto);
    ck_assert_uint_eq(tensor.size_bytes, 6);
    ck_assert_mem_eq(tensor.data, rows, 6);
}
END_TEST

START_TEST(odd_rows_of_two_bits) {
    const uint8_t raw[] = {0xe4, 0x1b, 0x01}, rows[] = {0x24, 0x2f, 0x11}; /* 0 1 2, 3 3 2, 1 0 1 */
    bytes proto = make_tensor("t", 25, 2, (const int64_t[]){3, 3}, raw, 3);
    ent_tensor tensor = read_ok(&proto);
    ck_assert_uint_eq(tensor.size_bytes, 3);
    ck_assert_mem_eq(tensor.data, rows, 3);
}
END_TEST

/* Packed int32_data. */
static void put_int32_data(bytes *proto, size_t count, const int32_t *values) {
    bytes packed = {0};
    for (size_t i = 0; i < count; i++) put_varint(&packed, (uint64_t)(int64_t)values[i]);
    put_bytes(proto, 5, &packed);
}

START_TEST(int32_data_of_small_types) {
    bytes proto = make_tensor("t", 3, 1, (const int64_t[]){3}, NULL, 0);
    put_int32_data(&proto, 3, (const int32_t[]){-128, 0, 127});
    ck_assert_mem_eq(read_ok(&proto).data, ((const int8_t[]){-128, 0, 127}), 3);

    proto = make_tensor("t", 10, 1, (const int64_t[]){2}, NULL, 0);
    put_int32_data(&proto, 2, (const int32_t[]){0x3c00, 0xc000});
    ck_assert_mem_eq(read_ok(&proto).data, ((const uint16_t[]){0x3c00, 0xc000}), 4);

    proto = make_tensor("t", 9, 1, (const int64_t[]){2}, NULL, 0);
    put_int32_data(&proto, 2, (const int32_t[]){1, 0});
    ck_assert_mem_eq(read_ok(&proto).data, ((const uint8_t[]){1, 0}), 2);
}
END_TEST

START_TEST(int32_data_out_of_range) {
    static const struct {
        int onnx;
        int32_t value;
    } cases[] = {{3, 128}, {3, -129}, {2, -1}, {2, 256}, {10, 65536}, {5, 32768}, {9, 2}};
    bytes proto = make_tensor("t", cases[_i].onnx, 1, (const int64_t[]){1}, NULL, 0);
    ent_tensor tensor;
    put_int32_data(&proto, 1, &cases[_i].value);
    ent_status status = read_tensor(&proto, &tensor, NULL);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "tensor.range");
}
END_TEST

START_TEST(wide_typed_fields) {
    bytes proto = make_tensor("t", 7, 1, (const int64_t[]){2}, NULL, 0), packed = {0};
    put_varint(&packed, (uint64_t)((int64_t)1 << 40));
    put_varint(&packed, (uint64_t)-1);
    put_bytes(&proto, 7, &packed);
    ck_assert_mem_eq(read_ok(&proto).data, ((const int64_t[]){(int64_t)1 << 40, -1}), 16);

    proto = make_tensor("t", 12, 1, (const int64_t[]){1}, NULL, 0);
    packed.size = 0;
    put_varint(&packed, 4000000000u);
    put_bytes(&proto, 11, &packed);
    ck_assert_mem_eq(read_ok(&proto).data, ((const uint32_t[]){4000000000u}), 4);

    const float numbers[] = {1.5f, -2};
    proto = make_tensor("t", 1, 1, (const int64_t[]){2}, NULL, 0);
    put_data(&proto, 4, numbers, 8);
    ck_assert_mem_eq(read_ok(&proto).data, numbers, 8);

    const double wide[] = {1e300};
    proto = make_tensor("t", 11, 0, NULL, NULL, 0);
    put_data(&proto, 10, wide, 8);
    ck_assert_mem_eq(read_ok(&proto).data, wide, 8);
}
END_TEST

START_TEST(field_of_another_type) {
    const float numbers[] = {1, 2};
    bytes proto = make_tensor("t", 7, 1, (const int64_t[]){2}, NULL, 0);
    ent_tensor tensor;
    put_data(&proto, 4, numbers, 8);
    ent_status status = read_tensor(&proto, &tensor, NULL);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "tensor.size");
}
END_TEST

START_TEST(empty_tensors) {
    bytes proto = make_tensor("t", 1, 2, (const int64_t[]){0, 5}, _i == 0 ? (const void *)"" : NULL, 0);
    ent_tensor tensor = read_ok(&proto);
    ck_assert_uint_eq(tensor.size_bytes, 0);
    ck_assert_ptr_nonnull(tensor.data);
    ck_assert_int_eq(tensor.dims[1], 5);
}
END_TEST

START_TEST(booleans_become_zero_or_one) {
    const uint8_t raw[] = {0, 1, 2, 255};
    bytes proto = make_tensor("t", 9, 1, (const int64_t[]){4}, raw, 4);
    ck_assert_mem_eq(read_ok(&proto).data, ((const uint8_t[]){0, 1, 1, 1}), 4);
}
END_TEST

START_TEST(name_is_returned) {
    ent_tensor tensor;
    const char *name = NULL;
    bytes proto = make_tensor("some name", 1, 0, NULL, "\0\0\0\0", 4);
    ck_assert_ptr_null(read_tensor(&proto, &tensor, &name));
    ck_assert_str_eq(name, "some name");
}
END_TEST

/* Whatever the alignment in the file, constants of a module are aligned for their type. */
START_TEST(constants_are_aligned) {
    for (size_t pad = 0; pad < 8; pad++) {
        const int64_t numbers[] = {7, -9};
        bytes graph = {0}, node = make_node("Identity", "x", "y");
        bytes weight = make_tensor(
            &"w12345678" [pad], 7, 1, (const int64_t[]) { 2 }, numbers, 16);
        ent_module *module;
        ent_import_files *files;
        put_value(&graph, 11, "x", 1, 1, (const int64_t[]){2});
        put_value(&graph, 12, "y", 1, 1, (const int64_t[]){2});
        put_bytes(&graph, 1, &node);
        put_bytes(&graph, 5, &weight);
        bytes model = make_model(&graph, 17);
        ent_status status = import_bytes(arena, &model, &module, &files);
        ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
        const ent_constant *constant = NULL;
        for (uint32_t i = 0; i < module->values.count; i++)
            if (module->values.items[i].constant) constant = module->values.items[i].constant;
        ck_assert_ptr_nonnull(constant);
        ck_assert_uint_eq((uintptr_t)constant->tensor.data % 8, 0);
        ck_assert_mem_eq(constant->tensor.data, numbers, 16);
        ent_import_files_close(files);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("import_tensor");
    TCase *tests = tcase_create("tensor");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_loop_test(tests, raw_of_every_dtype, 0, DTYPE_COUNT);
    tcase_add_loop_test(tests, raw_of_wrong_size, 0, DTYPE_COUNT);
    tcase_add_loop_test(tests, odd_rows_of_four_bits, 0, 2);
    tcase_add_test(tests, odd_rows_of_two_bits);
    tcase_add_test(tests, int32_data_of_small_types);
    tcase_add_loop_test(tests, int32_data_out_of_range, 0, 7);
    tcase_add_test(tests, wide_typed_fields);
    tcase_add_test(tests, field_of_another_type);
    tcase_add_loop_test(tests, empty_tensors, 0, 2);
    tcase_add_test(tests, booleans_become_zero_or_one);
    tcase_add_test(tests, name_is_returned);
    tcase_add_test(tests, constants_are_aligned);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
