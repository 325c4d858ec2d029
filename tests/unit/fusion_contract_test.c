/* Contractions and windows with epilogues against the operators' meaning. */
#include "tests/unit/fusion_check.h"

static void check(const char *body, const char *kind) {
    fusion_check_all(body, 0, kind);
}

START_TEST(matmul_shapes) {
    check("graph main(%x: f32[40,70]) -> (%a) {\n%w = constant f32[70,50] random 1 0.1\n%a = MatMul(%x, %w) "
          "name \"a\" }",
          "matmul");
    check("graph main(%x: f32[1,300]) -> (%a) {\n%w = constant f32[300,90] random 1 0.1\n%a = MatMul(%x, %w) "
          "name \"a\" }",
          "matmul");
    check("graph main(%x: f32[2,3,7,9], %y: f32[3,9,5]) -> (%a) {\n%a = MatMul(%x, %y) name \"a\" }",
          "matmul");
    check("graph main(%x: f32[2,3,7,9]) -> (%a) {\n%w = constant f32[9,17] random 1 0.1\n%a = MatMul(%x, %w) "
          "name \"a\" }",
          "matmul");
    check(
        "graph main(%x: f32[4,9], %v: f32[9], %u: f32[4]) -> (%a, %b, %c) {\n%a = MatMul(%x, %v) name \"a\"\n"
        "%b = MatMul(%u, %x) name \"b\"\n%c = MatMul(%v, %v) name \"c\" }",
        "matmul");
    check("graph main(%x: f32[6,1], %y: f32[1,8]) -> (%a) {\n%a = MatMul(%x, %y) name \"a\" }", "matmul");
}
END_TEST

START_TEST(integer_products) {
    check("graph main(%x: u8[2,40,37], %y: i8[37,20]) -> (%a, %b) {\n%w = constant i8[37,50] random 1 100\n"
          "%z = constant u8[] {133}\n%n = constant i8[50] fill -5\n%a = MatMulInteger(%x, %w, %z, %n) name "
          "\"a\"\n"
          "%b = MatMulInteger(%x, %y, %z) name \"b\" }",
          "matmul");
    check("graph main(%x: u8[2,20,9,7]) -> (%q) {\n%w = constant i8[24,20,3,3] random 1 100\n%z = constant "
          "u8[] "
          "{7}\n%a = ConvInteger(%x, %w, %z) {pads = [1, 0, 1, 2], strides = [2, 1]} name \"a\"\n%f = "
          "Cast(%a) {to = "
          "1} name \"f\"\n%s = constant f32[24,1,1] random 2 0.001\n%m = Mul(%f, %s) name \"m\"\n%r = "
          "Round(%m) name "
          "\"r\"\n%l = constant f32[] {0}\n%h = constant f32[] {255}\n%c = Clip(%r, %l, %h) name \"c\"\n%q = "
          "Cast(%c) "
          "{to = 7} name \"q\" }",
          "conv");
    check("graph main(%x: i8[1,32,9]) -> (%a) {\n%w = constant u8[32,16,3] random 1 100\n%a = "
          "ConvInteger(%x, %w) "
          "{group = 2, pads = [1, 1]} name \"a\" }",
          "conv");
}
END_TEST

START_TEST(matmul_epilogues) {
    check("graph main(%x: f32[1,50,40], %r: f32[1,50,33]) -> (%d) {\n%w = constant f32[40,33] random 1 0.1\n"
          "%b = constant f32[33] random 2 1.0\n%m = MatMul(%x, %w) name \"m\"\n%a = Add(%b, %m) name \"a\"\n"
          "%g = Gelu(%a) name \"g\"\n%s = Sigmoid(%g) name \"s\"\n%p = Mul(%g, %s) name \"p\"\n%d = Add(%p, "
          "%r) name \"d\" }",
          "matmul");
}
END_TEST

START_TEST(gemm_forms) {
    check("graph main(%x: f32[5,30]) -> (%a) {\n%w = constant f32[20,30] random 1 0.1\n%b = constant f32[20] "
          "random 2 0.1\n"
          "%g = Gemm(%x, %w, %b) {transB = 1} name \"g\"\n%a = Relu(%g) name \"a\" }",
          "matmul");
    check("graph main(%x: f32[30,5], %c: f32[5,1]) -> (%a) {\n%w = constant f32[30,20] random 1 0.1\n"
          "%a = Gemm(%x, %w, %c) {transA = 1, alpha = 0.5, beta = 2.0} name \"g\" }",
          "matmul");
    check(
        "graph main(%x: f32[7,5], %c: f32[7,9], %w: f32[5,9]) -> (%a) {\n%a = Gemm(%x, %w, %c) name \"g\" }",
        "matmul");
}
END_TEST

START_TEST(attention_heads) {
    check(
        "graph main(%x: f32[1,10,48]) -> (%o) {\n%s = constant i64[4] {1, 10, 4, 12}\n%t = constant i64[3] "
        "{1, 10, 48}\n"
        "%k = constant f32[] {0.2886751}\n%wq = constant f32[48,48] random 1 0.1\n%wk = constant f32[48,48] "
        "random 2 0.1\n"
        "%wv = constant f32[48,48] random 3 0.1\n%wo = constant f32[48,48] random 4 0.1\n"
        "%q = MatMul(%x, %wq) name \"q\"\n%q4 = Reshape(%q, %s) name \"q4\"\n%qt = Transpose(%q4) {perm = "
        "[0, 2, 1, 3]} name \"qt\"\n"
        "%k0 = MatMul(%x, %wk) name \"k\"\n%k4 = Reshape(%k0, %s) name \"k4\"\n%kt = Transpose(%k4) {perm = "
        "[0, 2, 3, 1]} name \"kt\"\n"
        "%v = MatMul(%x, %wv) name \"v\"\n%v4 = Reshape(%v, %s) name \"v4\"\n%vt = Transpose(%v4) {perm = "
        "[0, 2, 1, 3]} name \"vt\"\n"
        "%qk = MatMul(%qt, %kt) name \"qk\"\n%sc = Mul(%qk, %k) name \"sc\"\n%sm = Softmax(%sc) name \"sm\"\n"
        "%av = MatMul(%sm, %vt) name \"av\"\n%at = Transpose(%av) {perm = [0, 2, 1, 3]} name \"at\"\n"
        "%ar = Reshape(%at, %t) name \"ar\"\n%o = MatMul(%ar, %wo) name \"o\" }",
        "matmul");
}
END_TEST

START_TEST(convolutions) {
    check("graph main(%x: f32[1,3,17,19]) -> (%a) {\n%w = constant f32[20,3,3,3] random 1 0.2\n%b = constant "
          "f32[20] random 2 0.2\n"
          "%c = Conv(%x, %w, %b) {pads = [1, 1, 1, 1], strides = [2, 2]} name \"c\"\n%a = Relu(%c) name "
          "\"a\" }",
          "conv");
    check(
        "graph main(%x: f32[2,6,9,8], %r: f32[2,5,9,8]) -> (%a) {\n%w = constant f32[5,6,1,1] random 1 0.2\n"
        "%b = constant f32[5] random 2 0.2\n%c = Conv(%x, %w, %b) name \"c\"\n%s = Add(%c, %r) name "
        "\"s\"\n%a = Relu(%s) name \"a\" }",
        "conv");
    check("graph main(%x: f32[1,4,9,9]) -> (%c) {\n%w = constant f32[7,4,1,1] random 1 0.2\n"
          "%c = Conv(%x, %w) {strides = [2, 2]} name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,4,12,11]) -> (%c) {\n%w = constant f32[7,4,3,2] random 1 0.2\n"
          "%c = Conv(%x, %w) {dilations = [2, 3], auto_pad = \"SAME_LOWER\"} name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,4,21]) -> (%c) {\n%w = constant f32[7,4,5] random 1 0.2\n"
          "%c = Conv(%x, %w) {pads = [2, 2], strides = [3]} name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,2,5,6,4]) -> (%c) {\n%w = constant f32[3,2,3,2,3] random 1 0.2\n"
          "%c = Conv(%x, %w) {pads = [1, 0, 1, 1, 0, 1]} name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,4,6,6], %w: f32[3,4,3,3]) -> (%c) {\n%c = Conv(%x, %w) {pads = [1, 1, 1, 1]} "
          "name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,5,3,3]) -> (%c) {\n%w = constant f32[4,5,3,3] random 1 0.2\n%c = Conv(%x, "
          "%w) name \"c\" }",
          "conv");
}
END_TEST

START_TEST(grouped_convolutions) {
    check("graph main(%x: f32[1,8,7,7]) -> (%c) {\n%w = constant f32[12,4,3,3] random 1 0.2\n%b = constant "
          "f32[12] random 2 0.2\n"
          "%c = Conv(%x, %w, %b) {group = 2, pads = [1, 1, 1, 1]} name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,4,7,7]) -> (%c) {\n%w = constant f32[64,2,1,1] random 1 0.2\n"
          "%c = Conv(%x, %w) {group = 2} name \"c\" }",
          "conv");
    check("graph main(%x: f32[1,4,7,7]) -> (%c) {\n%w = constant f32[8,1,3,3] random 1 0.2\n"
          "%c = Conv(%x, %w) {group = 4} name \"c\" }",
          "conv");
}
END_TEST

START_TEST(transposed_convolutions) {
    check("graph main(%x: f32[1,6,5,7]) -> (%a) {\n%w = constant f32[6,4,2,2] random 1 0.2\n%b = constant "
          "f32[4] random 2 0.2\n"
          "%c = ConvTranspose(%x, %w, %b) {strides = [2, 2]} name \"c\"\n%a = Relu(%c) name \"a\" }",
          "conv-transpose");
    check("graph main(%x: f32[1,3,5,4]) -> (%c) {\n%w = constant f32[3,5,4,3] random 1 0.2\n"
          "%c = ConvTranspose(%x, %w) {strides = [2, 3], pads = [1, 1, 1, 0], output_padding = [1, 0]} name "
          "\"c\" }",
          "conv-transpose");
    check("graph main(%x: f32[1,4,6,5]) -> (%c) {\n%w = constant f32[4,3,3,3] random 1 0.2\n"
          "%c = ConvTranspose(%x, %w) {group = 2} name \"c\" }",
          "conv-transpose");
}
END_TEST

START_TEST(depthwise) {
    check("graph main(%x: f32[1,40,9,13]) -> (%a) {\n%w = constant f32[40,1,3,3] random 1 0.2\n%b = constant "
          "f32[40] random 2 0.2\n"
          "%six = constant f32[] {0.4}\n%zero = constant f32[] {0}\n"
          "%c = Conv(%x, %w, %b) {group = 40, pads = [1, 1, 1, 1], strides = [2, 1]} name \"c\"\n"
          "%a = Clip(%c, %zero, %six) name \"a\" }",
          "depthwise");
    check("graph main(%x: f32[2,5,9], %w: f32[5,1,3]) -> (%c) {\n%c = Conv(%x, %w) {group = 5, dilations = "
          "[2]} name \"c\" }",
          "depthwise");
}
END_TEST

START_TEST(pools) {
    check("graph main(%x: f32[1,20,15,14]) -> (%m, %a, %b, %c, %d) {\n"
          "%m = MaxPool(%x) {kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} name \"m\"\n"
          "%a = AveragePool(%x) {kernel_shape = [3, 2], strides = [2, 2], pads = [1, 1, 1, 0]} name \"a\"\n"
          "%b = AveragePool(%x) {kernel_shape = [3, 2], strides = [2, 2], pads = [1, 1, 1, 0], "
          "count_include_pad = 1} name \"b\"\n"
          "%c = AveragePool(%x) {kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1} name \"c\"\n"
          "%d = MaxPool(%x) {kernel_shape = [2, 3], strides = [3, 2], ceil_mode = 1, dilations = [2, 1]} "
          "name \"d\" }",
          "pool");
    check("graph main(%x: f32[1,7,33]) -> (%a) {\n%a = AveragePool(%x) {kernel_shape = [4], strides = [3], "
          "pads = [1, 2], "
          "count_include_pad = 1, ceil_mode = 1} name \"a\" }",
          "pool");
}
END_TEST

START_TEST(residual_reads_the_input_again) {
    check("graph main(%x: f32[1,8,10,10]) -> (%a, %p) {\n%w = constant f32[8,8,3,3] random 1 0.2\n"
          "%c = Conv(%x, %w) {pads = [1, 1, 1, 1]} name \"c\"\n%s = Add(%c, %x) name \"s\"\n%a = Relu(%s) "
          "name \"a\"\n"
          "%p = GlobalAveragePool(%a) name \"p\" }",
          "conv");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("fusion contractions");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, matmul_shapes);
    tcase_add_test(tests, matmul_epilogues);
    tcase_add_test(tests, integer_products);
    tcase_add_test(tests, gemm_forms);
    tcase_add_test(tests, attention_heads);
    tcase_add_test(tests, convolutions);
    tcase_add_test(tests, grouped_convolutions);
    tcase_add_test(tests, transposed_convolutions);
    tcase_add_test(tests, depthwise);
    tcase_add_test(tests, pools);
    tcase_add_test(tests, residual_reads_the_input_again);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
