/* Element access: rounding, saturation, special values and packing of every dtype. */
#include "tests/unit/ops_sample.h"

static double through(uint32_t dtype, double value) {
    uint8_t memory[16] = {0};
    ent_ops_store_f64(memory, dtype, 1, value);
    return ent_ops_load_f64(memory, dtype, 1);
}

START_TEST(halves_round_to_even) {
    ck_assert_double_eq(through(ENT_DTYPE_F16, 1 + 0x1p-11), 1);              /* tie, down to even */
    ck_assert_double_eq(through(ENT_DTYPE_F16, 1 + 3 * 0x1p-11), 1 + 0x1p-9); /* tie, up to even */
    ck_assert_double_eq(through(ENT_DTYPE_F16, 1 + 0x1p-11 + 0x1p-40), 1 + 0x1p-10);
    ck_assert_double_eq(through(ENT_DTYPE_F16, 0x1p-24), 0x1p-24); /* least subnormal */
    ck_assert_double_eq(through(ENT_DTYPE_F16, 0x1p-25), 0);
    ck_assert_double_eq(through(ENT_DTYPE_F16, 65504), 65504);
    ck_assert(isinf(through(ENT_DTYPE_F16, 65520)));
    ck_assert_double_eq(through(ENT_DTYPE_BF16, 1 + 0x1p-8), 1);
    ck_assert_double_eq(through(ENT_DTYPE_BF16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
    ck_assert(isnan(through(ENT_DTYPE_BF16, NAN)) && isnan(through(ENT_DTYPE_F16, NAN)));
}
END_TEST

START_TEST(every_half_survives) {
    for (uint32_t code = 0; code < 0x10000; code++) {
        uint16_t half = (uint16_t)code, back;
        for (uint32_t dtype = ENT_DTYPE_F16; dtype <= ENT_DTYPE_BF16; dtype++) {
            double value = ent_ops_load_f64(&half, dtype, 0);
            ent_ops_store_f64(&back, dtype, 0, value);
            if (!isnan(value)) ck_assert_uint_eq(back, half);
        }
    }
}
END_TEST

START_TEST(narrow_floats_saturate) {
    ck_assert_double_eq(through(ENT_DTYPE_F8E4M3FN, 1e9), 448);
    ck_assert_double_eq(through(ENT_DTYPE_F8E4M3FNUZ, -1e9), -240);
    ck_assert_double_eq(through(ENT_DTYPE_F8E5M2, INFINITY), 57344);
    ck_assert_double_eq(through(ENT_DTYPE_F8E5M2FNUZ, 1e9), 57344);
    ck_assert_double_eq(through(ENT_DTYPE_F4E2M1, 5), 4); /* tie between 4 and 6, to even */
    ck_assert_double_eq(through(ENT_DTYPE_F4E2M1, -100), -6);
    ck_assert(isnan(through(ENT_DTYPE_F8E4M3FN, NAN)));
    ck_assert(!signbit(through(ENT_DTYPE_F8E4M3FNUZ, -0.0)));
    ck_assert_double_eq(through(ENT_DTYPE_F8E8M0, 8), 8);
    ck_assert_double_eq(through(ENT_DTYPE_F8E8M0, 9), 16);
}
END_TEST

START_TEST(sub_bytes_pack_low_first) {
    uint8_t memory[2] = {0};
    ent_ops_store_i64(memory, ENT_DTYPE_I4, 0, -8);
    ent_ops_store_i64(memory, ENT_DTYPE_I4, 1, 7);
    ent_ops_store_i64(memory, ENT_DTYPE_U2, 4, 1);
    ent_ops_store_i64(memory, ENT_DTYPE_U2, 6, 3);
    ck_assert_uint_eq(memory[0], 0x78);
    ck_assert_uint_eq(memory[1], 0x31);
    ck_assert_int_eq(ent_ops_load_i64(memory, ENT_DTYPE_I4, 0), -8);
    ck_assert_int_eq(ent_ops_load_i64(memory, ENT_DTYPE_I2, 6), -1);
}
END_TEST

START_TEST(integers_truncate_and_wrap) {
    ck_assert_double_eq(through(ENT_DTYPE_I32, -2.9), -2);
    ck_assert_double_eq(through(ENT_DTYPE_U8, 260), 4);
    ck_assert_double_eq(through(ENT_DTYPE_U64, 0x1p63), 0x1p63);
    ck_assert_double_eq(through(ENT_DTYPE_BOOL, 0.25), 1);
    ck_assert_double_eq(through(ENT_DTYPE_I64, NAN), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops access");
    TCase *all = tcase_create("all");
    tcase_add_test(all, halves_round_to_even);
    tcase_add_test(all, every_half_survives);
    tcase_add_test(all, narrow_floats_saturate);
    tcase_add_test(all, sub_bytes_pack_low_first);
    tcase_add_test(all, integers_truncate_and_wrap);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
