/* Elementwise groups, reductions and views against the operators' meaning. */
#include "tests/unit/fusion_check.h"

static void check(const char *body, const char *kind) {
    fusion_check_all(body, 0, kind);
}

START_TEST(elementwise_chain) {
    check("graph main(%x: f32[1,5,6,7], %y: f32[1,5,6,7]) -> (%d) {\n"
          "%c = constant f32[] {3}\n%a = Add(%x, %y) name \"a\"\n%b = Sigmoid(%a) name \"b\"\n"
          "%e = Mul(%a, %b) name \"c\"\n%d = Div(%e, %c) name \"d\" }",
          "elementwise");
}
END_TEST

START_TEST(constants_become_parameters) {
    check("graph main(%x: f32[3,50]) -> (%h, %g) {\n"
          "%two = constant f32[] {2}\n%lo = constant f32[] {-0.5}\n%hi = constant f32[] {0.5}\n"
          "%a = Mul(%x, %two) name \"a\"\n%b = Sub(%lo, %a) name \"b\"\n%c = Max(%b, %lo) name \"c\"\n"
          "%d = Clip(%c, %lo, %hi) name \"d\"\n%e = Div(%d, %two) name \"e\"\n%f = Pow(%e, %two) name \"f\"\n"
          "%h = Min(%f, %hi) name \"h\"\n%g = PRelu(%b, %lo) name \"g\" }",
          "elementwise");
}
END_TEST

START_TEST(broadcasts) {
    check("graph main(%x: f32[2,5,6,7], %s: f32[2,5,1,1], %r: f32[7], %q: f32[6,1]) -> (%d) {\n"
          "%w = constant f32[5,1,1] random 3 1.0\n%h = HardSigmoid(%s) name \"h\"\n%a = Mul(%x, %h) name "
          "\"a\"\n"
          "%b = Add(%a, %w) name \"b\"\n%c = Sub(%b, %r) name \"c\"\n%d = Add(%c, %q) name \"d\" }",
          "elementwise");
}
END_TEST

START_TEST(other_dtypes) {
    check("graph main(%x: i64[4,33], %y: i64[33], %f: f32[4,33]) -> (%o, %k, %z) {\n"
          "%c = constant i64[] {3}\n%zero = constant f32[] {0}\n%a = Mul(%x, %y) name \"a\"\n%b = Add(%a, "
          "%c) name \"b\"\n"
          "%e = Less(%b, %y) name \"e\"\n%o = Where(%e, %f, %zero) name \"o\"\n%g = Cast(%b) {to = 1} name "
          "\"g\"\n"
          "%h = Add(%g, %f) name \"h\"\n%n = Not(%e) name \"n\"\n%k = And(%n, %e) name \"k\"\n%z = Neg(%h) "
          "name \"z\" }",
          "elementwise");
}
END_TEST

/* Values whose squares and sums are beyond the range of f16, and whose results are not. */
START_TEST(half_sums_are_f32) {
    check("graph main(%x: f16[3,500]) -> (%m, %s, %l, %p) {\n"
          "%big = constant f16[] {2000}\n%w = constant f16[500] random 3 1.0\n%axes = constant i64[1] {1}\n"
          "%a = Mul(%x, %big) name \"a\"\n%m = ReduceMean(%a, %axes) {keepdims = 1} name \"m\"\n"
          "%l2 = ReduceL2(%a, %axes) {keepdims = 1} name \"l2\"\n%l = Log(%l2) name \"l\"\n"
          "%s = Softmax(%a) {axis = -1} name \"s\"\n%n = LayerNormalization(%a, %w, %w) {axis = -1} name "
          "\"n\"\n"
          "%p = Relu(%n) name \"p\" }",
          "rows");
    check("graph main(%x: f16[1,4,100,100]) -> (%g) {\n%big = constant f16[] {200}\n"
          "%a = Exp(%x) name \"a\"\n%b = Mul(%a, %big) name \"b\"\n%g = GlobalAveragePool(%b) name \"g\" }",
          "rows");
    check("graph main(%x: bf16[1,8,40,40]) -> (%y) {\n%a = AveragePool(%x) {kernel_shape = [30, 30]} name "
          "\"a\"\n"
          "%y = Abs(%a) name \"y\" }",
          "pool");
}
END_TEST

START_TEST(unary_operators) {
    check("graph main(%x: f32[70]) -> (%o) {\n"
          "%a = Tanh(%x) name \"a\"\n%b = Exp(%a) name \"b\"\n%c = Sqrt(%b) name \"c\"\n%d = Log(%c) name "
          "\"d\"\n"
          "%e = LeakyRelu(%d) {alpha = 0.3} name \"e\"\n%f = Elu(%e) name \"f\"\n%g = Celu(%f) {alpha = 0.7} "
          "name \"g\"\n"
          "%h = ThresholdedRelu(%g) {alpha = 0.1} name \"h\"\n%i = Softplus(%h) name \"i\"\n%j = Erf(%i) "
          "name \"j\"\n"
          "%k = IsNaN(%j) name \"k\"\n%l = Cast(%k) {to = 1} name \"l\"\n%m = Selu(%l) name \"m\"\n%n = "
          "Tan(%m) name \"n\"\n"
          "%o = Mean(%n, %x, %a) name \"o\" }",
          "elementwise");
}
END_TEST

START_TEST(softmax_with_scale_and_mask) {
    check("graph main(%x: f32[2,3,9,37], %m: f32[2,1,1,37]) -> (%s) {\n"
          "%c = constant f32[] {0.125}\n%a = Mul(%x, %c) name \"a\"\n%b = Add(%a, %m) name \"b\"\n%s = "
          "Softmax(%b) name \"s\" }",
          "rows");
    check("graph main(%x: f32[2,6,5,3]) -> (%s, %l) {\n%s = Softmax(%x) {axis = 1} name \"s\"\n"
          "%l = LogSoftmax(%x) {axis = 2} name \"l\" }",
          "rows");
}
END_TEST

START_TEST(layer_norm_overlay) {
    check("graph main(%x: f32[1,10,48], %r: f32[1,10,48]) -> (%n, %a) {\n"
          "%w = constant f32[48] random 1 1.0\n%b = constant f32[48] random 2 1.0\n%a = Add(%x, %r) name "
          "\"a\"\n"
          "%n = LayerNormalization(%a, %w, %b) {epsilon = 1e-06} name \"n\" }",
          "rows");
}
END_TEST

START_TEST(activations_taken_whole) {
    check("graph main(%x: f32[1,10,48]) -> (%m) {\n%g = Gelu(%x) name \"g\"\n%t = Gelu(%g) {approximate = "
          "\"tanh\"} name \"t\"\n"
          "%h = HardSwish(%t) name \"h\"\n%m = Mish(%h) name \"m\" }",
          "elementwise");
}
END_TEST

START_TEST(reductions) {
    check("graph main(%x: f32[3,4,5,6]) -> (%a, %b, %c, %d, %e, %f) {\n"
          "%ax = constant i64[2] {2, 3}\n%ay = constant i64[1] {-1}\n%az = constant i64[2] {0, 2}\n"
          "%a = ReduceMean(%x, %ax) {keepdims = 0} name \"a\"\n%b = ReduceL2(%x, %ay) name \"b\"\n"
          "%c = ReduceMax(%x, %az) name \"c\"\n%d = ReduceSum(%x) name \"d\"\n%e = ReduceLogSumExp(%x, %ay) "
          "name \"e\"\n"
          "%f = ReduceProd(%x, %az) {keepdims = 0} name \"f\" }",
          "rows");
}
END_TEST

START_TEST(reduction_feeds_broadcast) {
    check("graph main(%x: f32[2,7,20]) -> (%d, %v) {\n%ax = constant i64[1] {-1}\n%un = constant i64[1] {2}\n"
          "%m = ReduceSum(%x, %ax) {keepdims = 0} name \"m\"\n%u = Unsqueeze(%m, %un) name \"u\"\n"
          "%e = Sub(%x, %u) name \"e\"\n%q = Mul(%e, %e) name \"q\"\n%v = ReduceMean(%q, %ax) name \"v\"\n"
          "%s = Sqrt(%v) name \"s\"\n%d = Div(%e, %s) name \"d\" }",
          "rows");
}
END_TEST

START_TEST(long_reductions_loop) {
    check("graph main(%x: f32[1,3,150,100]) -> (%m, %h) {\n%p = GlobalAveragePool(%x) name \"p\"\n%q = "
          "Relu(%x) name \"q\"\n"
          "%m = GlobalMaxPool(%q) name \"m\"\n%h = HardSigmoid(%p) name \"h\" }",
          "rows");
}
END_TEST

START_TEST(transposes) {
    check("graph main(%x: f32[2,9,40,3]) -> (%b, %c) {\n%a = Transpose(%x) {perm = [0, 2, 1, 3]} name \"a\"\n"
          "%b = Relu(%a) name \"b\"\n%c = Transpose(%b) {perm = [3, 2, 1, 0]} name \"c\" }",
          "copy");
    check("graph main(%x: f32[70,90]) -> (%b) {\n%a = Transpose(%x) name \"a\"\n%b = Transpose(%a) name "
          "\"b\" }",
          "view");
}
END_TEST

START_TEST(reshapes_are_views) {
    check("graph main(%x: f32[2,12,5]) -> (%d) {\n%s = constant i64[4] {2, 3, 4, 5}\n%t = constant i64[2] "
          "{-1, 15}\n"
          "%a = Reshape(%x, %s) name \"a\"\n%b = Transpose(%a) {perm = [0, 2, 1, 3]} name \"b\"\n"
          "%c = Reshape(%b, %t) name \"c\"\n%d = Flatten(%c) name \"d\" }",
          "view");
}
END_TEST

START_TEST(expand_is_materialised) {
    check("graph main(%x: f32[1,5,1]) -> (%e) {\n%s = constant i64[3] {3, 5, 4}\n%e = Expand(%x, %s) name "
          "\"e\" }",
          NULL);
    check("graph main(%x: f32[1,5,1], %y: f32[3,5,4]) -> (%a) {\n%s = constant i64[3] {3, 5, 4}\n"
          "%e = Expand(%x, %s) name \"e\"\n%a = Mul(%e, %y) name \"a\" }",
          "elementwise");
}
END_TEST

START_TEST(scalars) {
    check(
        "graph main(%x: f32[], %y: i64[1]) -> (%b, %d) {\n%a = Exp(%x) name \"a\"\n%b = Neg(%a) name \"b\"\n"
        "%one = constant i64[1] {1}\n%c = Add(%y, %one) name \"c\"\n%d = Mul(%c, %y) name \"d\" }",
        "elementwise");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("fusion rows");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, elementwise_chain);
    tcase_add_test(tests, constants_become_parameters);
    tcase_add_test(tests, broadcasts);
    tcase_add_test(tests, other_dtypes);
    tcase_add_test(tests, half_sums_are_f32);
    tcase_add_test(tests, unary_operators);
    tcase_add_test(tests, softmax_with_scale_and_mask);
    tcase_add_test(tests, layer_norm_overlay);
    tcase_add_test(tests, activations_taken_whole);
    tcase_add_test(tests, reductions);
    tcase_add_test(tests, reduction_feeds_broadcast);
    tcase_add_test(tests, long_reductions_loop);
    tcase_add_test(tests, transposes);
    tcase_add_test(tests, reshapes_are_views);
    tcase_add_test(tests, expand_is_materialised);
    tcase_add_test(tests, scalars);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
