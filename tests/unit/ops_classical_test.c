/* TreeEnsemble and TfIdfVectorizer by hand. */
#include "tests/unit/ops_sample.h"

#define INTS(name, ...)                                                                                      \
    sample_ints(name, (const int64_t[]){__VA_ARGS__},                                                        \
                (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static ent_attr tensor_attr(const char *name, ent_tensor *tensor) {
    return (ent_attr){.name = {name, strlen(name)}, .type = ENT_ATTR_TENSOR, .tensor = tensor};
}

typedef struct stump {
    ent_tensor splits, modes, weights;
    ent_attr attrs[11];
} stump;

/* One node: x <= 2 has leaf 0 (target 1, weight 10), else leaf 1 (target 0, weight 3). */
static void make_stump(stump *s, int64_t no_node, int64_t no_is_leaf) {
    static int64_t no[1], no_leaf[1];
    *no = no_node;
    *no_leaf = no_is_leaf;
    s->splits = sample(ENT_DTYPE_F32, F32(2), DIMS(1));
    s->modes = sample(ENT_DTYPE_U8, F32(0), DIMS(1));
    s->weights = sample(ENT_DTYPE_F32, F32(10, 3), DIMS(2));
    static const int64_t zeros[2] = {0, 0}, one[1] = {1}, targets[2] = {1, 0};
    ent_attr attrs[11] = {
        sample_ints("nodes_featureids", zeros, 1),   sample_ints("nodes_truenodeids", zeros, 1),
        sample_ints("nodes_falsenodeids", no, 1),    sample_ints("nodes_trueleafs", one, 1),
        sample_ints("nodes_falseleafs", no_leaf, 1), sample_ints("leaf_targetids", targets, 2),
        sample_ints("tree_roots", zeros, 2),         sample_int("n_targets", 2),
        tensor_attr("nodes_splits", &s->splits),     tensor_attr("nodes_modes", &s->modes),
        tensor_attr("leaf_weights", &s->weights)};
    memcpy(s->attrs, attrs, sizeof attrs);
}

static void free_stump(stump *s) {
    free(s->splits.data);
    free(s->modes.data);
    free(s->weights.data);
}

START_TEST(rows_fall_to_leaves) {
    stump s;
    make_stump(&s, 1, 1);
    ent_tensor x = sample(ENT_DTYPE_F32, F32(2, 2.5, NAN), DIMS(3, 1));
    sample_expect(sample_run(ENT_OP_TreeEnsemble, (ent_attrs){s.attrs, 11}, &x, 1), DIMS(3, 2),
                  F32(0, 20, 6, 0, 6, 0));
    free_stump(&s);
}
END_TEST

static void expect_bad(stump *s, const char *text) {
    ent_ops_error error;
    ent_tensor x = sample(ENT_DTYPE_F32, F32(3), DIMS(1, 1));
    ck_assert_int_eq(sample_refusal(ENT_OP_TreeEnsemble, (ent_attrs){s->attrs, 11}, &x, 1, &error),
                     ENT_CODE_INVALID_ARGUMENT);
    ck_assert_str_eq(error.text, text);
    free_stump(s);
}

START_TEST(a_node_out_of_range_is_refused) {
    stump s;
    make_stump(&s, 7, 1);
    expect_bad(&s, "TreeEnsemble: node 0 points out of range");
}
END_TEST

START_TEST(a_circle_is_refused) {
    stump s;
    make_stump(&s, 0, 0);
    expect_bad(&s, "TreeEnsemble: its nodes run in a circle");
}
END_TEST

static ent_attr mode(const char *value) {
    return sample_string("mode", value);
}

/* Pool: 7 alone, then the pair 7 8. */
START_TEST(ngrams_skip_tokens) {
    const double weights[2] = {0.5, 3};
    ent_attr weight = {.name = {"weights", 7}, .type = ENT_ATTR_FLOATS, .count = 2, .floats = weights};
    ent_attr attrs[8] = {INTS("pool_int64s", 7, 7, 8),
                         INTS("ngram_counts", 0, 1),
                         INTS("ngram_indexes", 1, 0),
                         sample_int("min_gram_length", 1),
                         sample_int("max_gram_length", 2),
                         sample_int("max_skip_count", 1),
                         weight,
                         mode("TF")};
    ent_tensor x = sample(ENT_DTYPE_I32, F32(7, 8, 8, 8, 7, 7), DIMS(2, 3));
    sample_expect(sample_run(ENT_OP_TfIdfVectorizer, (ent_attrs){attrs, 8}, &x, 1), DIMS(2, 2),
                  F32(2, 1, 0, 2));
    attrs[7] = mode("TFIDF");
    x = sample(ENT_DTYPE_I64, F32(7, 8, 8), DIMS(3));
    sample_expect(sample_run(ENT_OP_TfIdfVectorizer, (ent_attrs){attrs, 8}, &x, 1), DIMS(2), F32(1, 3));
    attrs[7] = mode("IDF");
    x = sample(ENT_DTYPE_I64, F32(7, 8, 8), DIMS(3));
    sample_expect(sample_run(ENT_OP_TfIdfVectorizer, (ent_attrs){attrs, 8}, &x, 1), DIMS(2), F32(0.5, 3));
}
END_TEST

START_TEST(a_pool_that_does_not_fit_is_refused) {
    ent_attr attrs[7] = {INTS("pool_int64s", 7, 7),
                         INTS("ngram_counts", 0, 9),
                         INTS("ngram_indexes", 1, 0),
                         sample_int("min_gram_length", 1),
                         sample_int("max_gram_length", 2),
                         sample_int("max_skip_count", 1),
                         mode("TF")};
    ent_ops_error error;
    ent_tensor x = sample(ENT_DTYPE_I32, F32(7), DIMS(1));
    ck_assert_int_eq(sample_refusal(ENT_OP_TfIdfVectorizer, (ent_attrs){attrs, 7}, &x, 1, &error),
                     ENT_CODE_INVALID_ARGUMENT);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ops classical");
    TCase *all = tcase_create("all");
    tcase_add_test(all, rows_fall_to_leaves);
    tcase_add_test(all, a_node_out_of_range_is_refused);
    tcase_add_test(all, a_circle_is_refused);
    tcase_add_test(all, ngrams_skip_tokens);
    tcase_add_test(all, a_pool_that_does_not_fit_is_refused);
    suite_add_tcase(suite, all);
    return sample_main(suite);
}
