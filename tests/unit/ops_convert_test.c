/* Layout conversion: every pair of a set of layouts moves every element to where ent_layout_offset says,
 * padding is zero. */
#include "tests/unit/ops_sample.h"

#define LAYOUTS 7

static ent_layout blocked(ent_layout layout, uint8_t axis, uint16_t size) {
    layout.block_axis[layout.block_count] = axis;
    layout.block_size[layout.block_count++] = size;
    return layout;
}

static ent_layout layout_at(int which) {
    ent_layout plain = ent_layout_plain(4), last = ent_layout_channels_last(4),
               reversed = ent_layout_plain(4);
    for (uint8_t i = 0; i < 4; i++) reversed.order[i] = (uint8_t)(3 - i);
    switch (which) {
    case 0:
        return plain;
    case 1:
        return last;
    case 2:
        return reversed;
    case 3:
        return blocked(plain, 1, 8);
    case 4:
        return blocked(last, 0, 16);
    case 5:
        return blocked(blocked(plain, 0, 4), 0, 3); /* nested on one axis: no multiple of 8 or 16 */
    default:
        return blocked(blocked(plain, 0, 16), 1, 4);
    }
}

/* Bytes of one element at a logical index, by the definition in abi/ent_types.h. */
static const uint8_t *element(const ent_tensor *tensor, const int64_t *index) {
    size_t size = ent_dtype_bits((ent_dtype)tensor->dtype) / 8;
    return (const uint8_t *)tensor->data +
           (size_t)ent_layout_offset(&tensor->layout, tensor->dims, index) * size;
}

static void check_pair(uint32_t dtype, const int64_t *dims, int a, int b) {
    ent_tensor plain = sample_empty(dtype, dims, 4, ent_layout_plain(4));
    for (uint64_t i = 0; i < plain.size_bytes; i++) ((uint8_t *)plain.data)[i] = (uint8_t)(1 + i * 7 % 255);
    ent_tensor from = sample_in(&plain, layout_at(a)), to = sample_in(&from, layout_at(b));
    size_t size = ent_dtype_bits((ent_dtype)dtype) / 8;
    uint64_t sum_plain = 0, sum_to = 0;
    int64_t i[4];
    for (i[0] = 0; i[0] < dims[0]; i[0]++)
        for (i[1] = 0; i[1] < dims[1]; i[1]++)
            for (i[2] = 0; i[2] < dims[2]; i[2]++)
                for (i[3] = 0; i[3] < dims[3]; i[3]++)
                    ck_assert(memcmp(element(&plain, i), element(&to, i), size) == 0);
    for (uint64_t k = 0; k < plain.size_bytes; k++) sum_plain += ((uint8_t *)plain.data)[k];
    for (uint64_t k = 0; k < to.size_bytes; k++) sum_to += ((uint8_t *)to.data)[k];
    ck_assert_uint_eq(sum_plain, sum_to); /* all elements are there, so the rest is zero */
    free(plain.data);
    free(from.data);
    free(to.data);
}

START_TEST(all_pairs) {
    const uint32_t dtypes[] = {ENT_DTYPE_U8, ENT_DTYPE_F16, ENT_DTYPE_F32, ENT_DTYPE_F64, ENT_DTYPE_C128};
    const int64_t dims[3][4] = {{3, 5, 2, 7}, {33, 20, 3, 3}, {16, 16, 1, 1}};
    for (int d = 0; d < 3; d++)
        for (int a = 0; a < LAYOUTS; a++)
            for (int b = 0; b < LAYOUTS; b++) check_pair(dtypes[(a + b + d) % 5], dims[d], a, b);
}
END_TEST

START_TEST(large_transpose_tiles) {
    const int64_t dims[4] = {2, 67, 33, 19};
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) check_pair(ENT_DTYPE_F32, dims, a, b);
}
END_TEST

START_TEST(sub_byte_rows) {
    ent_tensor plain = sample_empty(ENT_DTYPE_U4, DIMS(2, 3), ent_layout_plain(2));
    memcpy(plain.data, (const uint8_t[]){0x21, 0x03, 0x54, 0x06}, 4); /* 1 2 3, 4 5 6 */
    ent_layout turned = ent_layout_plain(2);
    turned.order[0] = 1;
    turned.order[1] = 0;
    ent_tensor other = sample_in(&plain, turned);
    ck_assert_uint_eq(other.size_bytes, 3);
    ck_assert(memcmp(other.data, (const uint8_t[]){0x41, 0x52, 0x63}, 3) == 0);
    free(plain.data);
    free(other.data);
}
END_TEST

START_TEST(refusals) {
    ent_tensor a = sample_empty(ENT_DTYPE_F32, DIMS(2, 3), ent_layout_plain(2));
    ent_tensor b = a;
    ent_ops_error error = {0};
    b.dims[1] = 2;
    ck_assert_int_eq(ent_ops_convert(&a, &b, &error), ENT_CODE_INVALID_ARGUMENT);
    b = a;
    b.size_bytes = 8;
    ck_assert_int_eq(ent_ops_convert(&a, &b, &error), ENT_CODE_INVALID_ARGUMENT);
    b = a;
    b.layout.order[1] = 0;
    ck_assert_int_eq(ent_ops_convert(&a, &b, &error), ENT_CODE_INVALID_ARGUMENT);
    b.layout.kind = ENT_LAYOUT_OPAQUE;
    ck_assert_int_eq(ent_ops_convert(&a, &b, &error), ENT_CODE_INVALID_ARGUMENT);
    free(a.data);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops convert");
    TCase *all = tcase_create("all");
    tcase_add_test(all, all_pairs);
    tcase_add_test(all, large_transpose_tiles);
    tcase_add_test(all, sub_byte_rows);
    tcase_add_test(all, refusals);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
