/* Data movement and layout changes against the operators' meaning. */
#include "tests/unit/fusion_check.h"

static void check(const char *body, const char *kind) {
    fusion_check_all(body, 0, kind);
}

START_TEST(slices) {
    check("graph main(%x: f32[3,20,30]) -> (%a, %b) {\n%s = constant i64[2] {5, -2}\n%e = constant i64[2] "
          "{100, -40}\n"
          "%ax = constant i64[2] {1, -1}\n%st = constant i64[2] {3, -4}\n%a = Slice(%x, %s, %e, %ax, %st) "
          "name \"a\"\n"
          "%t = constant i64[1] {1}\n%u = constant i64[1] {2}\n%b = Slice(%x, %t, %u) name \"b\" }",
          "copy");
}
END_TEST

START_TEST(joins_and_splits) {
    check("graph main(%x: f32[2,3,9,11], %y: f32[2,5,9,11], %z: f32[2,1,9,11]) -> (%j) {\n"
          "%a = Conv(%x, %w) name \"a\"\n%w = constant f32[3,3,1,1] random 1 1.0\n"
          "%j = Concat(%a, %y, %z) {axis = 1} name \"j\" }",
          "concat");
    check("graph main(%x: f32[1,1,40], %y: f32[1,99,40]) -> (%j, %k) {\n%j = Concat(%x, %y) {axis = 1} name "
          "\"j\"\n"
          "%k = Concat(%j, %j) {axis = -1} name \"k\" }",
          "concat");
    check("graph main(%x: f32[4,7000]) -> (%a, %b, %c) {\n%n = constant i64[3] {1000, 5000, 1000}\n"
          "%a, %b, %c = Split(%x, %n) {axis = 1} name \"s\" }",
          "split");
    check("graph main(%x: f32[1,3000], %y: f32[1,5000]) -> (%j) {\n%j = Concat(%x, %y, %x) {axis = 1} name "
          "\"j\" }",
          "concat");
    check("graph main(%x: i64[6,10]) -> (%a, %b) {\n%a, %b = Split(%x) {axis = 0, num_outputs = 2} name "
          "\"s\" }",
          "split");
}
END_TEST

START_TEST(paddings) {
    check("graph main(%x: f32[2,3,40,50]) -> (%a, %b, %c) {\n%p = constant i64[8] {0, 1, 2, 3, 0, 0, 1, "
          "4}\n%v = constant f32[] {0.5}\n"
          "%q = constant i64[2] {3, 2}\n%ax = constant i64[1] {-1}\n%a = Pad(%x, %p, %v) name \"a\"\n"
          "%b = Pad(%x, %p) {mode = \"edge\"} name \"b\"\n%c = Pad(%x, %q, _, %ax) {mode = \"reflect\"} name "
          "\"c\" }",
          "copy");
    check("graph main(%x: f32[4,40]) -> (%a) {\n%p = constant i64[4] {-1, 0, 0, -5}\n%a = Pad(%x, %p) name "
          "\"a\" }",
          "copy");
}
END_TEST

START_TEST(gathers) {
    check("graph main(%x: f32[5,6,70], %i: i64[2,3], %f: f32[5,6,2]) -> (%a, %b, %c, %d) {\n"
          "%k = constant i64[2] {3, -1}\n%s = constant i64[] {2}\n%a = Gather(%x, %i) name \"a\"\n"
          "%b = Gather(%x, %k) {axis = 2} name \"b\"\n%c = Gather(%x, %s) {axis = 1} name \"c\"\n"
          "%g = Cast(%f) {to = 9} name \"g\"\n%d = GatherElements(%x, %g) {axis = 2} name \"d\" }",
          "copy");
}
END_TEST

START_TEST(tiles_and_depth) {
    check("graph main(%x: f32[2,1,5]) -> (%a) {\n%r = constant i64[3] {3, 4, 2}\n%a = Tile(%x, %r) name "
          "\"a\" }",
          "copy");
    check(
        "graph main(%x: f32[2,12,4,5]) -> (%a, %b, %c) {\n%a = DepthToSpace(%x) {blocksize = 2} name \"a\"\n"
        "%b = DepthToSpace(%x) {blocksize = 2, mode = \"CRD\"} name \"b\"\n%c = SpaceToDepth(%a) {blocksize "
        "= 2} name \"c\" }",
        "copy");
}
END_TEST

START_TEST(resize_nearest) {
    static const char *const modes[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
    static const char *const rounds[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    for (int i = 0; i < 16; i++) {
        char body[700];
        snprintf(body, sizeof body,
                 "graph main(%%x: f32[1,4,7,9]) -> (%%a, %%b) {\n%%s = constant i64[4] {1, 4, 14, 5}\n"
                 "%%c = constant f32[4] {1, 1, 3, 2}\n"
                 "%%a = Resize(%%x, _, _, %%s) {coordinate_transformation_mode = \"%s\", nearest_mode = "
                 "\"%s\"} name \"a\"\n"
                 "%%b = Resize(%%x, _, %%c) {coordinate_transformation_mode = \"%s\", nearest_mode = \"%s\"} "
                 "name \"b\" }",
                 modes[i / 4], rounds[i % 4], modes[i / 4], rounds[i % 4]);
        check(body, "copy");
    }
}
END_TEST

START_TEST(resize_linear) {
    static const char *const modes[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
    for (int i = 0; i < 4; i++) {
        char body[400];
        snprintf(body, sizeof body,
                 "graph main(%%x: f32[1,4,7,9]) -> (%%a) {\n%%s = constant i64[4] {1, 4, 20, 5}\n"
                 "%%a = Resize(%%x, _, _, %%s) {mode = \"linear\", coordinate_transformation_mode = \"%s\"} "
                 "name \"a\" }",
                 modes[i]);
        check(body, "resize");
    }
}
END_TEST

START_TEST(what_is_not_expressible_is_refused_with_a_reason) {
    fusion_check_all(
        "graph main(%x: f32[1,1,4,4]) -> (%a, %n) {\n%s = constant i64[4] {1, 1, 8, 8}\n"
        "%a = Resize(%x, _, _, %s) {mode = \"cubic\"} name \"a\"\n%b = ReduceMean(%x) name \"r\"\n"
        "%n = Acosh(%b) name \"n\" }",
        2, "rows");
}
END_TEST

static void check_convert(fusion_case *c, uint32_t value, const ent_layout *from, const ent_layout *to) {
    ent_fusion_candidate candidate;
    ent_status status =
        ent_fusion_make_convert(c->module, value, from, to, fusion_test_capability(), c->arena, &candidate);
    ck_assert_msg(!status, "%s", ent_status_text(c->arena, status));
    fusion_run_candidate(c, &candidate);
}

START_TEST(converts_between_all_orders) {
    ent_arena *arena = ent_arena_create(0);
    fusion_case c;
    fusion_case_make(
        &c, fusion_module(arena, "graph main(%x: f32[2,33,3,40]) -> (%y) {\n%y = Relu(%x) name \"y\" }"),
        arena);
    fusion_evaluate(&c, 3, 5);
    static const uint8_t orders[][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {3, 2, 1, 0}, {1, 0, 3, 2}, {2, 0, 1, 3}};
    for (int i = 0; i < 25; i++) {
        ent_layout from = ent_layout_plain(4), to = from;
        memcpy(from.order, orders[i / 5], 4);
        memcpy(to.order, orders[i % 5], 4);
        check_convert(&c, ent_module_graph(c.module, 0)->inputs.items[0], &from, &to);
    }
    ent_layout plain = ent_layout_plain(4), blocked = plain;
    blocked.block_count = 1;
    blocked.block_axis[0] = 3;
    blocked.block_size[0] = 8;
    check_convert(&c, ent_module_graph(c.module, 0)->inputs.items[0], &plain, &blocked);
    check_convert(&c, ent_module_graph(c.module, 0)->inputs.items[0], &blocked, &plain);
    blocked.block_axis[0] = 1; /* 33 channels in blocks of 8 would need padding */
    ent_fusion_candidate refused;
    ck_assert(ent_fusion_make_convert(c.module, ent_module_graph(c.module, 0)->inputs.items[0], &plain,
                                      &blocked, fusion_test_capability(), arena, &refused) != NULL);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("fusion movement");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, slices);
    tcase_add_test(tests, joins_and_splits);
    tcase_add_test(tests, paddings);
    tcase_add_test(tests, gathers);
    tcase_add_test(tests, tiles_and_depth);
    tcase_add_test(tests, resize_nearest);
    tcase_add_test(tests, resize_linear);
    tcase_add_test(tests, what_is_not_expressible_is_refused_with_a_reason);
    tcase_add_test(tests, converts_between_all_orders);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
