/* Damaged models: no crash, no leak, nothing left open; an error always has a code, a rule and a place. What
 * is still accepted must pass the verifier. Run under the sanitizers this is the importer's safety test. */
#include "import_build.h"

#include <dirent.h>
#include <stdio.h>

static const uint32_t variants = 2000;
static char data_name[64]; /* of the external data, beside the models */

static bytes make_branch(const char *op, const char *inputs, const char *output) {
    bytes graph = {0}, node = make_node(op, inputs, output);
    put_bytes(&graph, 1, &node);
    put_text(&graph, 2, "branch");
    put_value(&graph, 12, output, 1, 1, (const int64_t[]){4});
    return graph;
}

static void add_graph(bytes *node, const char *name, const bytes *graph) {
    bytes attribute;
    put_bytes(attribute_begin(&attribute, name, 5), 6, graph);
    put_bytes(node, 5, &attribute);
}

static void put_weights(bytes *graph) {
    const float numbers[] = {1, 2, 3, 4};
    bytes condition = make_tensor("c", 9, 0, NULL, "\1", 1);
    bytes raw = make_tensor("w", 1, 1, (const int64_t[]){4}, numbers, 16);
    bytes typed = make_tensor("t", 1, 1, (const int64_t[]){4}, NULL, 0);
    bytes packed = make_tensor("p", 22, 2, (const int64_t[]){3, 3}, "\x12\x34\x56\x78\x09", 5);
    bytes outside = make_tensor("e", 1, 1, (const int64_t[]){4}, NULL, 0), entry = {0};
    put_data(&typed, 4, numbers, 16);
    put_text(&entry, 1, "location");
    put_text(&entry, 2, data_name);
    put_bytes(&outside, 13, &entry);
    put_number(&outside, 14, 1);
    put_bytes(graph, 5, &condition);
    put_bytes(graph, 5, &raw);
    put_bytes(graph, 5, &typed);
    put_bytes(graph, 5, &packed);
    put_bytes(graph, 5, &outside);
}

static void put_function(bytes *model) {
    bytes function = {0}, node = make_node("Add", "a a", "b"), opset = {0};
    put_text(&function, 1, "Twice");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    put_bytes(&function, 7, &node);
    put_number(&opset, 2, 11);
    put_bytes(&function, 9, &opset);
    put_text(&function, 10, "my");
    put_bytes(model, 25, &function);
}

/* A bit of everything that the importer has code for, at an opset with upgrades. */
static bytes make_sample(void) {
    bytes graph = {0}, then_branch = make_branch("Add", "m w", "o1"),
          else_branch = make_branch("Mul", "m t", "o2");
    bytes call = make_node("Twice", "x", "m"), branch = make_node("If", "c", "i"),
          soft = make_node("Softmax", "i", "s");
    bytes reduce = make_node("ReduceSum", "s", "r"), constant = make_node("Constant", "", "k"),
          last = make_node("Add", "r k", "q");
    bytes again = make_node("Add", "q e", "y");
    put_text(&call, 7, "my");
    add_graph(&branch, "then_branch", &then_branch);
    add_graph(&branch, "else_branch", &else_branch);
    add_int(&soft, "axis", 0);
    add_ints(&reduce, "axes", 1, (const int64_t[]){0});
    bytes value = make_tensor("", 1, 0, NULL, "\0\0\x80\x3f", 4), attribute;
    put_bytes(attribute_begin(&attribute, "value", 4), 5, &value);
    put_bytes(&constant, 5, &attribute);
    const bytes *nodes[] = {&call, &branch, &soft, &reduce, &constant, &last, &again};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) put_bytes(&graph, 1, nodes[i]);
    put_text(&graph, 2, "sample");
    put_weights(&graph);
    put_value(&graph, 11, "x", 1, 1, (const int64_t[]){4});
    put_value(&graph, 12, "y", 1, 1, (const int64_t[]){4});
    bytes model = make_model(&graph, 11);
    put_function(&model);
    return model;
}

static uint32_t random_state = 12345;
static uint32_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state;
}

static int open_descriptors(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder)) count++;
    if (folder) closedir(folder);
    return count;
}

static bool try_model(const bytes *model) {
    ent_arena *arena = ent_arena_create(0);
    ent_module *module;
    ent_import_files *files;
    ent_status status = import_bytes(arena, model, &module, &files);
    if (status) {
        ck_assert_ptr_null(module);
        ck_assert_ptr_null(files);
        ck_assert(status->code == ENT_ERROR_MODEL || status->code == ENT_ERROR_UNSUPPORTED ||
                  status->code == ENT_ERROR_LIMIT);
        ck_assert_ptr_nonnull(strchr(status->rule, '.'));
        ck_assert_uint_gt(strlen(status->place), 0);
        ck_assert_uint_gt(strlen(status->text), 0);
    } else {
        ent_status verified = ent_module_verify(module, arena);
        ck_assert_msg(!verified, "%s", verified ? ent_status_text(arena, verified) : "");
        ck_assert_ptr_nonnull(ent_module_print(module, arena));
    }
    ent_import_files_close(files);
    ent_arena_destroy(arena);
    return status == NULL;
}

static void write_data_file(void) {
    char path[80];
    snprintf(path, sizeof path, "/tmp/%s", data_name);
    FILE *file = fopen(path, "wb");
    if (!file) return; /* then sample_is_good fails */
    fwrite("0123456789abcdef", 1, 16, file);
    fclose(file);
}

START_TEST(sample_is_good) {
    bytes model = make_sample();
    ck_assert(try_model(&model));
}
END_TEST

START_TEST(flipped_bits) {
    bytes sample = make_sample();
    uint32_t accepted = 0;
    int before = open_descriptors();
    for (uint32_t i = 0; i < variants; i++) {
        bytes model = sample;
        uint32_t flips = 1 + next_random() % 4;
        for (uint32_t k = 0; k < flips; k++)
            model.data[next_random() % model.size] ^= (uint8_t)(1u << next_random() % 8);
        accepted += try_model(&model);
    }
    ck_assert_int_eq(open_descriptors(), before);
    ck_assert_uint_gt(accepted, 0); /* some flips hit names and numbers only */
    ck_assert_uint_lt(accepted, variants);
}
END_TEST

START_TEST(cut_off) {
    bytes sample = make_sample();
    for (size_t size = 0; size < sample.size; size++) {
        bytes model = sample;
        model.size = size;
        bool accepted = try_model(&model);
        ck_assert(!accepted || size + 64 > sample.size); /* the function at the end may be gone */
    }
}
END_TEST

START_TEST(bytes_replaced) {
    bytes sample = make_sample();
    for (size_t at = 0; at < sample.size; at++) {
        bytes model = sample;
        model.data[at] = next_random() % 2 ? 0xff : 0x00;
        try_model(&model);
    }
}
END_TEST

int main(void) {
    snprintf(data_name, sizeof data_name, "entente_fuzz_%ld.bin", (long)getpid());
    write_data_file();
    Suite *suite = suite_create("import_fuzz");
    TCase *tests = tcase_create("fuzz");
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, sample_is_good);
    tcase_add_test(tests, flipped_bits);
    tcase_add_test(tests, cut_off);
    tcase_add_test(tests, bytes_replaced);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    char path[80];
    snprintf(path, sizeof path, "/tmp/%s", data_name);
    unlink(path);
    return failed ? 1 : 0;
}
