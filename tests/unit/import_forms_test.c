/* forms.def against ent_ops.def: the last form of each operator is the one meaning that the IR knows. */
#include "core/import/internal.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* Where an upgrade leaves something out of every form: attributes without effect in inference. */
static const struct {
    const char *name;
    bool other_arity, other_attributes;
} exceptions[] = {{"Dropout", false, true}, {"Range", false, true}};

static bool may_differ(const char *name, bool arity) {
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strcmp(exceptions[i].name, name) == 0)
            return arity ? exceptions[i].other_arity : exceptions[i].other_attributes;
    return false;
}

/* "name:type" pairs of a list, without `!` and defaults, each found in the other list? */
static bool contains_all(const char *list, const char *other) {
    while (*list) {
        size_t size = strcspn(list, " =!"), found = 0;
        for (const char *at = other; *at; at += strcspn(at, " "), at += strspn(at, " "))
            found += strcspn(at, " =!") == size && memcmp(at, list, size) == 0;
        if (found != 1) return false;
        list += strcspn(list, " ");
        list += strspn(list, " ");
    }
    return true;
}

START_TEST(newest_forms_match_the_table) {
    const ent_op_info *info = ent_op_info_get((uint32_t)_i);
    ent_import_form form;
    if (!info->name) return; /* a gap in the ids */
    ck_assert_msg(ent_import_form_find(info->name, ENT_IMPORT_MAX_OPSET, &form), "%s", info->name);
    bool same_arity = form.min_in == info->min_inputs && form.max_in == info->max_inputs &&
                      form.min_out == info->min_outputs && form.max_out == info->max_outputs;
    bool same_attributes =
        contains_all(form.attributes, info->attributes) && contains_all(info->attributes, form.attributes);
    ck_assert_msg(same_arity != may_differ(info->name, true), "%s", info->name);
    ck_assert_msg(same_attributes != may_differ(info->name, false), "%s", info->name);
}
END_TEST

START_TEST(forms_begin_where_the_operator_does) {
    static const struct {
        const char *name;
        int64_t opset;
        bool exists;
    } cases[] = {{"Gelu", 19, false},     {"Gelu", 20, true},           {"Celu", 11, false},
                 {"Celu", 12, true},      {"Resize", 9, false},         {"Resize", 10, true},
                 {"Softplus", 7, true},   {"Where", 8, false},          {"Identity", 7, true},
                 {"GatherND", 10, false}, {"QuantizeLinear", 9, false}, {"Nonsense", 17, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ent_import_form form;
        bool exists = ent_import_form_find(cases[i].name, cases[i].opset, &form);
        ck_assert_msg(exists == cases[i].exists, "%s %d", cases[i].name, (int)cases[i].opset);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("import_forms");
    TCase *tests = tcase_create("forms");
    tcase_add_loop_test(tests, newest_forms_match_the_table, 1, ENT_OP_COUNT);
    tcase_add_test(tests, forms_begin_where_the_operator_does);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
