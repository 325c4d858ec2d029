/* Spectra, windows, Einsum, Det and running sums. */
#include "tests/unit/ops_sample.h"

#define PI 3.14159265358979323846

/* The defining sum, for lengths that halve and lengths that do not; too long a signal is cut, a short one
 * padded. */
START_TEST(dft_is_its_definition) {
    static const int64_t lengths[] = {1, 7, 8, 12, 5};
    int64_t n = lengths[_i], taken = n < 7 ? n : 7;
    double x[14], y[24];
    for (int i = 0; i < 14; i++) x[i] = (i * 37 % 19) - 9;
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;
        for (int64_t j = 0; j < taken; j++) {
            double angle = -2 * PI * (double)(j * k) / (double)n;
            re += x[2 * j] * cos(angle) - x[2 * j + 1] * sin(angle);
            im += x[2 * j] * sin(angle) + x[2 * j + 1] * cos(angle);
        }
        y[2 * k] = re;
        y[2 * k + 1] = im;
    }
    double length = (double)n;
    ent_tensor in[2] = {sample(ENT_DTYPE_F64, x, DIMS(1, 7, 2)), sample(ENT_DTYPE_I64, &length, NO_DIMS)};
    sample_expect(sample_run(ENT_OP_DFT, NO_ATTRS, in, 2), DIMS(1, n, 2), y);
}
END_TEST

START_TEST(dft_one_sided_there_and_back) {
    ent_attr onesided[2] = {sample_int("onesided", 1), sample_int("inverse", 1)};
    const double x[6] = {1, 4, -2, 0, 3, 7};
    ent_tensor signal = sample(ENT_DTYPE_F32, x, DIMS(1, 6, 1));
    ent_tensor half = sample_run(ENT_OP_DFT, (ent_attrs){onesided, 1}, &signal, 1);
    ck_assert_int_eq(half.dims[1], 4);
    sample_expect(sample_run(ENT_OP_DFT, (ent_attrs){onesided, 2}, &half, 1), DIMS(1, 6, 1), x);
}
END_TEST

START_TEST(stft_takes_frames) {
    ent_tensor in[3] = {sample(ENT_DTYPE_F32, F32(1, 2, 3, 4, 5), DIMS(1, 5, 1)),
                        sample(ENT_DTYPE_I64, F32(2), NO_DIMS), sample(ENT_DTYPE_F32, F32(1, 10), DIMS(2))};
    sample_expect(sample_run(ENT_OP_STFT, NO_ATTRS, in, 3), DIMS(1, 2, 2, 2),
                  F32(21, 0, -19, 0, 43, 0, -37, 0));
}
END_TEST

START_TEST(windows) {
    ent_attr symmetric[2] = {sample_int("periodic", 0), sample_int("output_datatype", ENT_DTYPE_F64)};
    ent_tensor size = sample(ENT_DTYPE_I32, F32(4), NO_DIMS);
    sample_expect(sample_run(ENT_OP_HannWindow, NO_ATTRS, &size, 1), DIMS(4), F32(0, 0.5, 1, 0.5));
    size = sample(ENT_DTYPE_I64, F32(5), NO_DIMS);
    sample_expect(sample_run(ENT_OP_HannWindow, (ent_attrs){symmetric, 2}, &size, 1), DIMS(5),
                  F32(0, 0.5, 1, 0.5, 0));
    size = sample(ENT_DTYPE_I64, F32(2), NO_DIMS);
    sample_expect(sample_run(ENT_OP_HammingWindow, NO_ATTRS, &size, 1), DIMS(2), F32(4 / 46.0, 1));
    size = sample(ENT_DTYPE_I64, F32(4), NO_DIMS);
    sample_expect(sample_run(ENT_OP_BlackmanWindow, NO_ATTRS, &size, 1), DIMS(4), F32(0, 0.34, 1, 0.34));
    size = sample(ENT_DTYPE_I64, F32(1), NO_DIMS);
    sample_expect(sample_run(ENT_OP_HannWindow, (ent_attrs){symmetric, 2}, &size, 1), DIMS(1), F32(0));
}
END_TEST

/* Edges at bins 0, 2, 3 and 5 (8192 Hz, 16 points, 0 to 4000 Hz, 2 triangles). */
START_TEST(mel_triangles) {
    ent_tensor in[5] = {sample(ENT_DTYPE_I32, F32(2), NO_DIMS), sample(ENT_DTYPE_I32, F32(16), NO_DIMS),
                        sample(ENT_DTYPE_I32, F32(8192), NO_DIMS), sample(ENT_DTYPE_F32, F32(0), NO_DIMS),
                        sample(ENT_DTYPE_F32, F32(4000), NO_DIMS)};
    double step = 2595 * log10(1 + 4000 / 700.0) / 4, edge[4];
    for (int i = 0; i < 4; i++) edge[i] = floor(17 * 700 * (pow(10, i * step / 2595) - 1) / 8192);
    ent_tensor y = sample_run(ENT_OP_MelWeightMatrix, NO_ATTRS, in, 5);
    ck_assert_int_eq(y.dims[0], 9);
    ck_assert_int_eq(y.dims[1], 2);
    for (int column = 0; column < 2; column++)
        for (int row = 0; row < 9; row++) {
            double left = edge[column], top = edge[column + 1], right = edge[column + 2], want = 0;
            if (row >= left && row < top) want = (row - left) / (top - left);
            if (row >= top && row < right) want = (right - row) / (right - top);
            double got = ent_ops_load_f64(y.data, y.dtype, row * 2 + column);
            ck_assert_msg(fabs(got - want) < 1e-6, "%d %d: %g, not %g", row, column, got, want);
        }
    free(y.data);
}
END_TEST

static void einsum(const char *equation, ent_tensor *in, uint32_t count, const int64_t *dims, uint32_t rank,
                   const double *expected) {
    ent_attr attr = sample_string("equation", equation);
    sample_expect(sample_run(ENT_OP_Einsum, (ent_attrs){&attr, 1}, in, count), dims, rank, expected);
}

START_TEST(einsum_forms) {
#define MATRIX sample(ENT_DTYPE_F32, F32(1, 2, 3, 4), DIMS(2, 2))
    ent_tensor one[1] = {MATRIX};
    einsum("ij->ji", one, 1, DIMS(2, 2), F32(1, 3, 2, 4));
    one[0] = MATRIX;
    einsum("ii", one, 1, NO_DIMS, F32(5));
    one[0] = MATRIX;
    einsum(" ii -> i ", one, 1, DIMS(2), F32(1, 4));
    ent_tensor two[2] = {MATRIX, MATRIX};
    einsum("ij,jk", two, 2, DIMS(2, 2), F32(7, 10, 15, 22));
    ent_tensor dots[2] = {sample(ENT_DTYPE_I32, F32(1, 2, 3, 4), DIMS(2, 1, 2)),
                          sample(ENT_DTYPE_I32, F32(1, 10), DIMS(2))};
    einsum("...i,i->...", dots, 2, DIMS(2, 1), F32(21, 43));
    ent_tensor three[3] = {MATRIX, MATRIX, sample(ENT_DTYPE_F32, F32(1, 10), DIMS(2))};
    einsum("ab,bc,c->a", three, 3, DIMS(2), F32(107, 235));
    ent_tensor wrong[1] = {MATRIX};
    ent_attr attr = sample_string("equation", "ijk->i");
    ent_ops_error error;
    ck_assert_int_eq(sample_refusal(ENT_OP_Einsum, (ent_attrs){&attr, 1}, wrong, 1, &error),
                     ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

START_TEST(determinants) {
    ent_tensor x = sample(ENT_DTYPE_F32, F32(0, 2, 3, 4, 1, 2, 2, 4), DIMS(2, 2, 2));
    sample_expect(sample_run(ENT_OP_Det, NO_ATTRS, &x, 1), DIMS(2), F32(-6, 0));
}
END_TEST

START_TEST(running_sums) {
    ent_attr attrs[2] = {sample_int("exclusive", 1), sample_int("reverse", 1)};
    for (uint32_t count = 0; count < 3; count++) {
        static const double sums[3][3] = {{1, 3, 6}, {0, 1, 3}, {5, 3, 0}};
        static const double products[3][3] = {{1, 2, 6}, {1, 1, 2}, {6, 3, 1}};
        ent_tensor in[2] = {sample(ENT_DTYPE_F16, F32(1, 2, 3), DIMS(1, 3)),
                            sample(ENT_DTYPE_I64, F32(-1), NO_DIMS)};
        sample_expect(sample_run(ENT_OP_CumSum, (ent_attrs){attrs, count}, in, 2), DIMS(1, 3), sums[count]);
        ent_tensor whole[2] = {sample(ENT_DTYPE_I32, F32(1, 2, 3), DIMS(3, 1)),
                               sample(ENT_DTYPE_I32, F32(0), DIMS(1))};
        sample_expect(sample_run(ENT_OP_CumProd, (ent_attrs){attrs, count}, whole, 2), DIMS(3, 1),
                      products[count]);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops signal");
    TCase *all = tcase_create("all");
    tcase_add_loop_test(all, dft_is_its_definition, 0, 5);
    tcase_add_test(all, dft_one_sided_there_and_back);
    tcase_add_test(all, stft_takes_frames);
    tcase_add_test(all, windows);
    tcase_add_test(all, mel_triangles);
    tcase_add_test(all, einsum_forms);
    tcase_add_test(all, determinants);
    tcase_add_test(all, running_sums);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
