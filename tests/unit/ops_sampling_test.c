/* Sampling operators, inverse windows and integer contractions, by hand. */
#include "tests/unit/ops_sample.h"

#define NINE F32(0, 1, 2, 3, 4, 5, 6, 7, 8)

static ent_tensor grid_sample(const char *mode, const char *padding, int64_t align, double x, double y) {
    ent_attr attrs[3] = {sample_string("mode", mode), sample_string("padding_mode", padding),
                         sample_int("align_corners", align)};
    ent_tensor inputs[2] = {sample(ENT_DTYPE_F32, NINE, DIMS(1, 1, 3, 3)),
                            sample(ENT_DTYPE_F32, F32(x, y), DIMS(1, 1, 1, 2))};
    return sample_run(ENT_OP_GridSample, (ent_attrs){attrs, 3}, inputs, 2);
}

START_TEST(grids) {
    sample_expect(grid_sample("linear", "zeros", 1, 0.5, -1), DIMS(1, 1, 1, 1), F32(1.5));
    sample_expect(grid_sample("linear", "zeros", 0, -1, -1), DIMS(1, 1, 1, 1), F32(0));
    sample_expect(grid_sample("linear", "border", 0, -9, 9), DIMS(1, 1, 1, 1), F32(6));
    sample_expect(grid_sample("nearest", "reflection", 1, 1.9, -1), DIMS(1, 1, 1, 1), F32(1));
    sample_expect(grid_sample("cubic", "zeros", 1, 0, 0), DIMS(1, 1, 1, 1), F32(4));
    sample_expect(grid_sample("linear", "zeros", 0, NAN, 0), DIMS(1, 1, 1, 1), F32(0));
    sample_expect(grid_sample("nearest", "zeros", 0, INFINITY, 0), DIMS(1, 1, 1, 1), F32(0));
    ent_attr align = sample_int("align_corners", 1);
    ent_tensor affine[2] = {sample(ENT_DTYPE_F32, F32(1, 0, 0.5, 0, 2, 0), DIMS(1, 2, 3)),
                            sample(ENT_DTYPE_I64, F32(1, 1, 1, 2), DIMS(4))};
    sample_expect(sample_run(ENT_OP_AffineGrid, (ent_attrs){&align, 1}, affine, 2), DIMS(1, 1, 2, 2),
                  F32(-0.5, -2, 1.5, -2));
}
END_TEST

START_TEST(regions) {
    ent_attr shape = sample_ints("pooled_shape", (const int64_t[]){1, 2}, 2);
    ent_tensor pool[2] = {sample(ENT_DTYPE_F32, NINE, DIMS(1, 1, 3, 3)),
                          sample(ENT_DTYPE_F32, F32(0, 0, 1, 2, 2), DIMS(1, 5))};
    sample_expect(sample_run(ENT_OP_MaxRoiPool, (ent_attrs){&shape, 1}, pool, 2), DIMS(1, 1, 1, 2),
                  F32(7, 8));
    ent_tensor wrong[2] = {sample(ENT_DTYPE_F32, NINE, DIMS(1, 1, 3, 3)),
                           sample(ENT_DTYPE_F32, F32(1, 0, 1, 2, 2), DIMS(1, 5))};
    ent_ops_error error;
    ck_assert_int_eq(sample_refusal(ENT_OP_MaxRoiPool, (ent_attrs){&shape, 1}, wrong, 2, &error),
                     ENT_CODE_INVALID_ARGUMENT);
    ent_tensor align[3] = {sample(ENT_DTYPE_F32, NINE, DIMS(1, 1, 3, 3)),
                           sample(ENT_DTYPE_F32, F32(0, 0, 2, 2), DIMS(1, 4)),
                           sample(ENT_DTYPE_I64, F32(0), DIMS(1))};
    sample_expect(sample_run(ENT_OP_RoiAlign, NO_ATTRS, align, 3), DIMS(1, 1, 1, 1), F32(2));
}
END_TEST

START_TEST(windows) {
    ent_attr unpool[2] = {sample_ints("kernel_shape", (const int64_t[]){2}, 1),
                          sample_ints("strides", (const int64_t[]){2}, 1)};
    ent_tensor pooled[2] = {sample(ENT_DTYPE_F32, F32(5, 6), DIMS(1, 1, 2)),
                            sample(ENT_DTYPE_I64, F32(1, 2), DIMS(1, 1, 2))};
    sample_expect(sample_run(ENT_OP_MaxUnpool, (ent_attrs){unpool, 2}, pooled, 2), DIMS(1, 1, 4),
                  F32(0, 5, 6, 0));
    ent_attr lp[3] = {sample_ints("kernel_shape", (const int64_t[]){2}, 1), sample_int("p", 1),
                      sample_ints("pads", (const int64_t[]){1, 0}, 2)};
    ent_tensor line = sample(ENT_DTYPE_F32, F32(-3, 4), DIMS(1, 1, 2));
    sample_expect(sample_run(ENT_OP_LpPool, (ent_attrs){lp, 3}, &line, 1), DIMS(1, 1, 2), F32(3, 7));
    ent_tensor whole = sample(ENT_DTYPE_F32, F32(-3, 4), DIMS(1, 1, 2));
    sample_expect(sample_run(ENT_OP_GlobalLpPool, NO_ATTRS, &whole, 1), DIMS(1, 1, 1), F32(5));
    ent_tensor fold[3] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(1, 2, 2)),
                          sample(ENT_DTYPE_I64, F32(3), DIMS(1)), sample(ENT_DTYPE_I64, F32(2), DIMS(1))};
    sample_expect(sample_run(ENT_OP_Col2Im, NO_ATTRS, fold, 3), DIMS(1, 1, 3), F32(1, 5, 4));
    /* One tap, moved by half an element to the right and masked by a half. */
    ent_tensor deform[5] = {
        sample(ENT_DTYPE_F32, F32(2, 4), DIMS(1, 1, 1, 2)), sample(ENT_DTYPE_F32, F32(1), DIMS(1, 1, 1, 1)),
        sample(ENT_DTYPE_F32, F32(0, 0, 0.5, 0.5), DIMS(1, 2, 1, 2)), sample(ENT_DTYPE_F32, F32(10), DIMS(1)),
        sample(ENT_DTYPE_F32, F32(0.5, 0.5), DIMS(1, 1, 1, 2))};
    sample_expect(sample_run(ENT_OP_DeformConv, NO_ATTRS, deform, 5), DIMS(1, 1, 1, 2), F32(11.5, 11));
}
END_TEST

START_TEST(integers) {
    ent_tensor rows[4] = {sample(ENT_DTYPE_U8, F32(255, 0, 1, 2), DIMS(2, 2)),
                          sample(ENT_DTYPE_I8, F32(-128, 127, 1, 2), DIMS(2, 2)),
                          sample(ENT_DTYPE_U8, F32(0, 1), DIMS(2)),
                          sample(ENT_DTYPE_I8, F32(0, -1), DIMS(2))};
    sample_expect(sample_run(ENT_OP_MatMulInteger, NO_ATTRS, rows, 4), DIMS(2, 2), F32(-32640, 32640, 1, 3));
    ent_attr pads = sample_ints("pads", (const int64_t[]){1, 0}, 2);
    ent_tensor conv[4] = {sample(ENT_DTYPE_U8, F32(3, 5), DIMS(1, 1, 2)),
                          sample(ENT_DTYPE_U8, F32(4, 9), DIMS(1, 1, 2)),
                          sample(ENT_DTYPE_U8, F32(1), NO_DIMS), sample(ENT_DTYPE_U8, F32(4), DIMS(1))};
    /* The padding is a zero of the real numbers: the zero point. */
    sample_expect(sample_run(ENT_OP_ConvInteger, (ent_attrs){&pads, 1}, conv, 4), DIMS(1, 1, 2), F32(10, 20));
#define SCALE(value) sample(ENT_DTYPE_F32, F32(value), NO_DIMS)
    ent_tensor quantized[8] = {sample(ENT_DTYPE_I8, F32(1, 3), DIMS(1, 2)),
                               SCALE(0.5),
                               sample(ENT_DTYPE_I8, F32(0), NO_DIMS),
                               sample(ENT_DTYPE_I8, F32(1, 100, 0, 100), DIMS(2, 2)),
                               SCALE(1),
                               sample(ENT_DTYPE_I8, F32(0), NO_DIMS),
                               SCALE(1),
                               sample(ENT_DTYPE_I8, F32(3), NO_DIMS)};
    /* A half goes to the even neighbour before the zero point is added; 203 saturates. */
    sample_expect(sample_run(ENT_OP_QLinearMatMul, NO_ATTRS, quantized, 8), DIMS(1, 2), F32(3, 127));
    ent_tensor filters[8] = {sample(ENT_DTYPE_U8, F32(2), DIMS(1, 1, 1)),
                             SCALE(1),
                             sample(ENT_DTYPE_U8, F32(0), NO_DIMS),
                             sample(ENT_DTYPE_I8, F32(3, 3), DIMS(2, 1, 1)),
                             sample(ENT_DTYPE_F32, F32(1, 0.25), DIMS(2)),
                             sample(ENT_DTYPE_I8, F32(0, 1), DIMS(2)),
                             SCALE(1),
                             sample(ENT_DTYPE_U8, F32(0), NO_DIMS)};
    sample_expect(sample_run(ENT_OP_QLinearConv, NO_ATTRS, filters, 8), DIMS(1, 2, 1), F32(6, 1));
    ent_tensor nothing = sample(ENT_DTYPE_F32, F32(0, 0), DIMS(2));
    sample_expect(sample_run(ENT_OP_DynamicQuantizeLinear, NO_ATTRS, &nothing, 1), DIMS(2), F32(0, 0));
    ent_tensor ramp = sample(ENT_DTYPE_F32, F32(-1, 0, 1.55), DIMS(3));
    sample_expect(sample_run(ENT_OP_DynamicQuantizeLinear, NO_ATTRS, &ramp, 1), DIMS(3), F32(0, 100, 255));
}
END_TEST

/* Two rows of 18 numbers in blocks of 16; the second block is padded. */
START_TEST(packed_weights) {
    ent_attr attrs[4] = {sample_int("K", 18), sample_int("N", 2), sample_int("block_size", 16),
                         sample_int("bits", 4)};
    double left[18], bytes[32];
    for (int i = 0; i < 18; i++) left[i] = i == 1 || i == 17 ? 1 : 0; /* reads numbers 1 and 17 of each row */
    for (int i = 0; i < 32; i++) bytes[i] = 0;
    bytes[0] = 0x9f, bytes[8] = 0x2f;   /* row 0: 9, 2 */
    bytes[16] = 0x10, bytes[24] = 0xe3; /* row 1: 1, 14 */
    ent_tensor plain[3] = {sample(ENT_DTYPE_F32, left, DIMS(1, 18)),
                           sample(ENT_DTYPE_U8, bytes, DIMS(2, 2, 8)),
                           sample(ENT_DTYPE_F32, F32(1, 10, 100, 0.5), DIMS(4))};
    sample_expect(sample_run(ENT_OP_MatMulNBits, (ent_attrs){attrs, 4}, plain, 3), DIMS(1, 2),
                  F32(1 - 60, -700 + 3));
    ent_tensor shifted[4] = {
        sample(ENT_DTYPE_F32, left, DIMS(1, 18)), sample(ENT_DTYPE_U8, bytes, DIMS(2, 2, 8)),
        sample(ENT_DTYPE_F32, F32(1, 10, 100, 0.5), DIMS(4)), sample(ENT_DTYPE_U8, F32(0x21, 0x40), DIMS(2))};
    sample_expect(sample_run(ENT_OP_MatMulNBits, (ent_attrs){attrs, 4}, shifted, 4), DIMS(1, 2),
                  F32(8, 100 + 5));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_sampling");
    TCase *tests = tcase_create("sampling");
    tcase_add_test(tests, grids);
    tcase_add_test(tests, regions);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, integers);
    tcase_add_test(tests, packed_weights);
    suite_add_tcase(suite, tests);
    return sample_main(suite);
}
