/* The 8-bit matrix kernels against plain code, at each ISA level that this machine can run, with its VNNI or
 * without, and both VNNI forms on a simulation of the instructions. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

void ent_cpu_kernels_fill_avx512_simulated(ent_cpu_kernels *table);
void ent_cpu_gemm8_bind_avx_vnni_simulated(ent_cpu_kernels *table);
void ent_cpu_gemm8_bind_avx512_vnni_simulated(ent_cpu_kernels *table);

enum { SIMULATED = 3, TABLES = ENT_CPU_ISA_COUNT + SIMULATED };
static ent_cpu_kernels simulated[SIMULATED];
static const ent_cpu_kernels *tables[TABLES];
static const ent_cpu_kernels *k; /* the table under test */

static uint32_t seed = 1;

static int64_t random_in(int64_t low, int64_t high) {
    seed = seed * 1664525u + 1013904223u;
    return low + (int64_t)((uint64_t)(seed >> 8) * (uint64_t)(high - low + 1) >> 24);
}

/* Extremes often: sums that saturate somewhere show with them. */
static uint8_t *bytes(int64_t n) {
    static const uint8_t extremes[] = {0, 127, 128, 255};
    uint8_t *p = malloc((size_t)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++)
        p[i] = random_in(0, 1) ? extremes[random_in(0, 3)] : (uint8_t)random_in(0, 255);
    return p;
}

typedef struct product {
    int64_t m, n, k;
    bool a_signed, b_signed, by_rows;
    int32_t a_zero, b_zero;
    int64_t hole; /* a row of A that is not there, or -1 */
} product;

static int32_t number(uint8_t byte, bool is_signed) {
    return is_signed ? (int8_t)byte : byte;
}

static void check_product(const product *t) {
    int64_t padded = (t->k + 3) / 4 * 4, panel = padded * ENT_CPU_PANEL;
    uint8_t *a = bytes(t->m * t->k), *b = bytes(t->k * t->n), *packed = bytes(ent_cpu_panels(t->n) * panel);
    char *rows = malloc((size_t)(t->m * padded * k->a8_bytes));
    int32_t *c = malloc((size_t)(t->m * t->n) * sizeof *c);
    float **c_rows = malloc((size_t)t->m * sizeof *c_rows);
    ent_cpu_pack_b8(b, t->n, 1, t->k, t->n, packed, panel);
    for (int64_t i = 0; i < t->m; i++) {
        k->pack_a8(i == t->hole ? NULL : a + i * t->k, 1, t->k, t->a_signed, t->a_zero,
                   rows + i * padded * k->a8_bytes);
        c_rows[i] = (float *)(void *)(c + i * t->n);
    }
    ent_cpu_gemm8 g = {.m = t->m,
                       .n = t->n,
                       .k = padded,
                       .a = rows,
                       .a_stride = padded,
                       .a_signed = t->a_signed,
                       .b_signed = t->b_signed,
                       .a_zero = t->a_zero,
                       .b_zero = t->b_zero,
                       .b = packed,
                       .b_panel_stride = panel,
                       .c = {.base = (float *)(void *)c, .stride = t->n}};
    if (t->by_rows) g.c = (ent_cpu_rows){.rows = c_rows};
    k->gemm8(&g);
    for (int64_t i = 0; i < t->m; i++)
        for (int64_t j = 0; j < t->n; j++) {
            int32_t want = 0;
            for (int64_t d = 0; d < t->k && i != t->hole; d++)
                want += (number(a[i * t->k + d], t->a_signed) - t->a_zero) *
                        (number(b[d * t->n + j], t->b_signed) - t->b_zero);
            ck_assert_msg(c[i * t->n + j] == want, "%s: %lldx%lldx%lld [%lld][%lld]: got %d, want %d",
                          k->gemm8_name, (long long)t->m, (long long)t->n, (long long)t->k, (long long)i,
                          (long long)j, c[i * t->n + j], want);
        }
    free(a), free(b), free(packed), free(rows), free(c), free(c_rows);
}

START_TEST(products_are_exact) {
    k = tables[_i];
    if (!k) return;
    for (int bits = 0; bits < 32; bits++)
        for (int round = 0; round < 12; round++) {
            product t = {.m = random_in(1, 20), .n = random_in(1, 90), .k = random_in(1, round ? 60 : 700)};
            t.a_signed = bits & 1, t.b_signed = bits & 2, t.by_rows = bits & 4;
            if (bits & 8) t.a_zero = (int32_t)(t.a_signed ? random_in(-128, 127) : random_in(0, 255));
            if (bits & 16) t.b_zero = (int32_t)(t.b_signed ? random_in(-128, 127) : random_in(0, 255));
            t.hole = random_in(-1, t.m - 1);
            check_product(&t);
        }
}
END_TEST

/* All products as large as they can be. */
START_TEST(extremes_do_not_saturate) {
    k = tables[_i];
    if (!k) return;
    enum { K = 64 };
    uint8_t a[K], b[K], packed[K * ENT_CPU_PANEL];
    int16_t row[K];
    int32_t c = 0;
    memset(a, 255, sizeof a);
    memset(b, 128, sizeof b);
    k->pack_a8(a, 1, K, false, 0, row);
    ent_cpu_pack_b8(b, 1, K, K, 1, packed, sizeof packed);
    ent_cpu_gemm8 g = {.m = 1, .n = 1, .k = K, .a = row, .a_stride = K, .b_signed = true, .b = packed};
    g.c.base = (float *)(void *)&c;
    k->gemm8(&g);
    ck_assert_int_eq(c, K * 255 * -128);
    g.b_signed = false;
    k->gemm8(&g);
    ck_assert_int_eq(c, K * 255 * 128);
}
END_TEST

START_TEST(operands_pack_from_any_stride) {
    k = tables[_i];
    if (!k) return;
    for (int round = 0; round < 40; round++) {
        int64_t depth = random_in(1, 70), n = random_in(1, 40), step = random_in(1, 5);
        int64_t padded = (depth + 3) / 4 * 4, panel = padded * ENT_CPU_PANEL;
        uint8_t *b = bytes(depth * n * step), *by_rows = bytes(ent_cpu_panels(n) * panel),
                *by_columns = bytes(ent_cpu_panels(n) * panel);
        uint8_t *turned = malloc((size_t)(depth * n));
        for (int64_t i = 0; i < depth; i++)
            for (int64_t j = 0; j < n; j++) turned[j * depth + i] = b[(i * n + j) * step];
        ent_cpu_pack_b8(b, n * step, step, depth, n, by_rows, panel);
        ent_cpu_pack_b8(turned, 1, depth, depth, n, by_columns, panel);
        ck_assert(memcmp(by_rows, by_columns, (size_t)(ent_cpu_panels(n) * panel)) == 0);
        for (int64_t p = 0; p < ent_cpu_panels(n) * 16; p++)
            for (int64_t d = 0; d < padded; d++)
                ck_assert_int_eq(by_rows[p / 16 * panel + d / 4 * 64 + p % 16 * 4 + d % 4],
                                 p < n && d < depth ? turned[p * depth + d] : 0);
        char *strided = malloc((size_t)(padded * k->a8_bytes)),
             *plain = malloc((size_t)(padded * k->a8_bytes));
        k->pack_a8(b, n * step, depth, round & 1, 7, strided);
        k->pack_a8(turned, 1, depth, round & 1, 7, plain);
        ck_assert(memcmp(strided, plain, (size_t)(padded * k->a8_bytes)) == 0);
        free(b), free(by_rows), free(by_columns), free(turned), free(strided), free(plain);
    }
}
END_TEST

int main(void) {
    for (int i = 0; i < ENT_CPU_ISA_COUNT; i++) tables[i] = ent_cpu_kernels_get((ent_cpu_isa)i);
    if (ent_cpu_isa_detect() >= ENT_CPU_ISA_AVX2) { /* the simulation itself is built for AVX2 */
        for (int i = 0; i < SIMULATED; i++) ent_cpu_kernels_fill_avx512_simulated(&simulated[i]);
        ent_cpu_gemm8_bind_avx_vnni_simulated(&simulated[1]);
        ent_cpu_gemm8_bind_avx512_vnni_simulated(&simulated[2]);
        for (int i = 0; i < SIMULATED; i++) tables[ENT_CPU_ISA_COUNT + i] = &simulated[i];
    }
    Suite *suite = suite_create("cpu integer kernels");
    TCase *cases = tcase_create("all");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, products_are_exact, 0, TABLES);
    tcase_add_loop_test(cases, extremes_do_not_saturate, 0, TABLES);
    tcase_add_loop_test(cases, operands_pack_from_any_stride, 0, TABLES);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
