/* The CPU plugin as a host sees it: devices and their parameters, the declaration and its cache, blobs,
 * kernels, hostile bytes. */
#include "cpu_program.h"

#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

static const ent_plugin *plugin;
static ent_state *state;
static char said[1024];

/* What calls allocate lives until the next forget(). */
static void *blocks[65536];
static size_t block_count;

static void *call_allocate(void *context, size_t size) {
    (void)context;
    ck_assert_uint_lt(block_count, sizeof blocks / sizeof blocks[0]);
    return blocks[block_count++] = malloc(size);
}

static void forget(void) {
    while (block_count > 0) free(blocks[--block_count]);
}

static void call_fail(void *context, ent_str text) {
    (void)context;
    snprintf(said, sizeof said, "%.*s", (int)text.size, text.data);
}

static void host_log(void *context, uint32_t level, ent_str text) {
    (void)level;
    call_fail(context, text);
}

static const ent_call call = {
    .head = {sizeof(ent_call), ENT_STRUCT_CALL, NULL}, .allocate = call_allocate, .fail = call_fail};
static const ent_host host = {
    {sizeof(ent_host), ENT_STRUCT_HOST, NULL}, NULL, host_allocate, host_release, host_log};

static const void *interface_of(uint32_t id) {
    const void *table = plugin->get_interface(id, 1);
    ck_assert_ptr_nonnull(table);
    return table;
}

static ent_parameter parameter(const char *name, const char *value) {
    return (ent_parameter){{name, strlen(name)}, {value, strlen(value)}};
}

static ent_code open_device(const char *name, const char *value, ent_device **out) {
    const ent_device_v1 *api = interface_of(ENT_INTERFACE_DEVICE);
    ent_parameter p = parameter(name, value);
    said[0] = 0;
    *out = NULL;
    return api->open(state, &call, &p, name[0] ? 1 : 0, out);
}

static void close_device(ent_device *device) {
    const ent_device_v1 *api = interface_of(ENT_INTERFACE_DEVICE);
    api->close(device);
}

static void set_up(void) {
    char path[512];
    snprintf(path, sizeof path, "%s/lib/entente/plugins/libentente_cpu.so", ENT_TEST_BINARY_DIR);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    plugin = dlsym(library, "ent_plugin_v1");
    ck_assert_ptr_nonnull(plugin);
    unsetenv("ENTENTE_CPU_ISA");
    snprintf(path, sizeof path, "%s/tests/cpu_plugin_test_cache/probe.json", ENT_TEST_BINARY_DIR);
    setenv("ENTENTE_CPU_PROBE_CACHE", path, 1);
    ck_assert_int_eq(plugin->open(&host, &call, &state), ENT_OK);
}

static void tear_down(void) {
    plugin->close(state);
    forget();
}

/* ---- devices ---- */

START_TEST(devices_take_their_parameters) {
    static const struct {
        const char *name, *value;
        ent_code code;
        const char *says;
    } cases[] = {{"", "", ENT_OK, ""},
                 {"variant", "baseline", ENT_OK, ""},
                 {"variant", "avx3", ENT_CODE_INVALID_ARGUMENT, "baseline, avx2 or avx512"},
                 {"threads", "2", ENT_OK, ""},
                 {"hint.threads", "1", ENT_OK, ""},
                 {"hint.colour", "red", ENT_OK, ""},
                 {"threads", "0", ENT_CODE_INVALID_ARGUMENT, "threads is '0'"},
                 {"threads", "two", ENT_CODE_INVALID_ARGUMENT, "threads is 'two'"},
                 {"threads", "99999999999999999999", ENT_CODE_INVALID_ARGUMENT, "use 1 to"},
                 {"colour", "red", ENT_CODE_INVALID_ARGUMENT, "'colour'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ent_device *device;
        ent_code code = open_device(cases[i].name, cases[i].value, &device);
        ck_assert_msg(code == cases[i].code, "%s=%s gave %d: %s", cases[i].name, cases[i].value, code, said);
        ck_assert_msg(strstr(said, cases[i].says) != NULL, "%s=%s said: %s", cases[i].name, cases[i].value,
                      said);
        close_device(device);
    }
}
END_TEST

START_TEST(isa_beyond_the_machine_is_refused) {
    ent_device *device;
    setenv("ENTENTE_CPU_ISA", "baseline", 1);
    ck_assert_int_eq(open_device("variant", "avx2", &device), ENT_CODE_ISA_MISSING);
    ck_assert_ptr_nonnull(strstr(said, "avx2"));
    ck_assert_ptr_nonnull(strstr(said, "baseline"));
    setenv("ENTENTE_CPU_ISA", "sse9", 1);
    ck_assert_int_eq(open_device("", "", &device), ENT_CODE_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(said, "sse9"));
    unsetenv("ENTENTE_CPU_ISA");
    if (ent_cpu_isa_detect() < ENT_CPU_ISA_AVX512)
        ck_assert_int_eq(open_device("variant", "avx512", &device), ENT_CODE_ISA_MISSING);
}
END_TEST

/* ---- declaration ---- */

static cJSON *declaration(void) {
    const ent_device_v1 *api = interface_of(ENT_INTERFACE_DEVICE);
    ent_device *device;
    ent_bytes json = {NULL, 0};
    ck_assert_int_eq(open_device("threads", "2", &device), ENT_OK);
    ck_assert_int_eq(api->declare(device, &call, &json), ENT_OK);
    close_device(device);
    cJSON *root = cJSON_ParseWithLength((const char *)json.data, json.size);
    ck_assert_ptr_nonnull(root);
    return root;
}

static double gflops_of(const cJSON *root) {
    const cJSON *unit = cJSON_GetArrayItem(cJSON_GetObjectItem(root, "matrix_units"), 0);
    return cJSON_GetObjectItem(unit, "gflops")->valuedouble;
}

static void write_file(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

/* Figures come back from the cache; what is damaged or out of range is measured anew. */
START_TEST(probe_is_cached) {
    const char *path = getenv("ENTENTE_CPU_PROBE_CACHE");
    char text[8192] = {0};
    unlink(path);
    cJSON *first = declaration(), *second = declaration();
    ck_assert(gflops_of(first) > 0.5);
    ck_assert(gflops_of(first) == gflops_of(second));
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 100);
    fclose(file);
    char *at = strstr(text, "\"fma_flops\": ");
    ck_assert_ptr_nonnull(at);
    memcpy(at + 13, "-1e300,  \"x\": 1", 15); /* damages what follows, too */
    static const char *const hostile[] = {
        "", "{", "[]", "{\"processor\": 7}", "null", "{\"processor\": \"other\", \"fma_flops\": 1e99}"};
    for (size_t i = 0; i <= sizeof hostile / sizeof hostile[0]; i++) {
        write_file(path, i == 0 ? text : hostile[i - 1]);
        cJSON *again = declaration();
        ck_assert(gflops_of(again) > 0.5 && gflops_of(again) < 1e5);
        cJSON_Delete(again);
    }
    cJSON_Delete(first);
    cJSON_Delete(second);
}
END_TEST

START_TEST(no_cache_is_no_failure) {
    setenv("ENTENTE_CPU_PROBE_CACHE", "/proc/no/such/place.json", 1);
    cJSON *root = declaration();
    ck_assert_str_eq(cJSON_GetObjectItem(root, "name")->valuestring, "cpu");
    ck_assert_int_eq(cJSON_GetObjectItem(root, "units")->valueint, 2);
    cJSON_Delete(root);
}
END_TEST

/* ---- blobs and kernels ---- */

/* out = relu(x), 100 elements. */
static void make_program(build *b) {
    build_begin(b);
    uint32_t v = build_grid(b, 100, 32);
    uint32_t x = build_buffer(b, ENT_ROLE_INPUT, ENT_DTYPE_F32, 1, (int64_t[]){100});
    uint32_t y = build_buffer(b, ENT_ROLE_OUTPUT, ENT_DTYPE_F32, 1, (int64_t[]){100});
    uint32_t t = build_tile(b, ENT_DTYPE_F32, 1, 32, 0, 0, 0), access = build_access(b, x);
    build_index(b, access, 0, 0, v, 0, 1);
    build_load(b, t, access, 0);
    build_map(b, ENT_MAP_RELU, t, t, 0, 0, 0, 0);
    access = build_access(b, y);
    build_index(b, access, 0, 0, v, 0, 1);
    build_store(b, access, t);
}

static ent_bytes compile_program(ent_device *device, const build *b) {
    const ent_compile_v1 *api = interface_of(ENT_INTERFACE_COMPILE);
    size_t size;
    void *bytes = build_bytes(&b->program, &size);
    ent_bytes blob = {NULL, 0};
    ck_assert_msg(api->compile(device, &call, ENT_DEPTH_TILE, bytes, size, &blob) == ENT_OK, "%s", said);
    free(bytes);
    return blob;
}

/* Binds two fresh buffers of `bytes` each and runs the kernel once. */
static ent_code run_once(ent_device *device, ent_kernel *kernel, uint64_t bytes, float *x, float *y) {
    const ent_runtime_v1 *api = interface_of(ENT_INTERFACE_RUNTIME);
    ent_buffer *buffers[2];
    ent_queue *queue;
    ent_fence *fence;
    ck_assert_int_eq(api->buffer_import(device, &call, x, bytes, true, &buffers[0]), ENT_OK);
    ck_assert_int_eq(api->buffer_import(device, &call, y, bytes, false, &buffers[1]), ENT_OK);
    ck_assert_int_eq(api->queue_create(device, &call, &queue), ENT_OK);
    ck_assert_int_eq(api->fence_create(device, &call, 0, &fence), ENT_OK);
    ent_buffer_ref refs[2] = {{buffers[0], 0, bytes}, {buffers[1], 0, bytes}};
    ent_step step = {.kind = ENT_STEP_DISPATCH, .binding_count = 2, .kernel = kernel, .bindings = refs};
    ent_fence_point done = {fence, 1};
    ent_submit submit = {.head = {sizeof submit, ENT_STRUCT_SUBMIT, NULL},
                         .step_count = 1,
                         .steps = &step,
                         .signals = &done,
                         .signal_count = 1};
    ent_code code = api->submit(queue, &call, &submit);
    if (code == ENT_OK) code = api->fence_wait(fence, 1, UINT64_C(10000000000));
    api->queue_destroy(queue);
    api->fence_destroy(fence);
    for (int i = 0; i < 2; i++) api->buffer_destroy(buffers[i]);
    return code;
}

START_TEST(a_program_runs) {
    const ent_runtime_v1 *api = interface_of(ENT_INTERFACE_RUNTIME);
    const ent_blob_v1 *blobs = interface_of(ENT_INTERFACE_BLOB);
    static _Alignas(64) float x[128], y[128];
    ent_device *device;
    ent_kernel *kernel = NULL;
    build b;
    make_program(&b);
    ck_assert_int_eq(open_device("variant", "baseline", &device), ENT_OK);
    ent_bytes blob = compile_program(device, &b), text;
    ck_assert_int_eq(blobs->check(state, &call, blob.data, blob.size), ENT_OK);
    ck_assert_int_eq(blobs->requirement(state, &call, blob.data, blob.size, &text), ENT_OK);
    ck_assert_msg(text.size == 16 && memcmp(text.data, "cpu isa=baseline", 16) == 0, "%.*s", (int)text.size,
                  text.data);
    ck_assert_int_eq(api->kernel_load(device, &call, blob.data, blob.size, &kernel), ENT_OK);
    ent_kernel_info info = {.size = sizeof info};
    ck_assert_int_eq(api->kernel_info(kernel, &info), ENT_OK);
    ck_assert_uint_eq(info.tier, ENT_TIER_TUNED);
    ck_assert_ptr_nonnull(strstr(info.path, "baseline"));
    for (int i = 0; i < 100; i++) x[i] = (float)(i - 50);
    ck_assert_int_eq(run_once(device, kernel, 400, x, y), ENT_OK);
    for (int i = 0; i < 100; i++) ck_assert(y[i] == (float)(i < 50 ? 0 : i - 50));
    ck_assert_int_eq(run_once(device, kernel, 399, x, y), ENT_CODE_INVALID_ARGUMENT);
    api->kernel_unload(kernel);
    close_device(device);
}
END_TEST

START_TEST(blobs_above_the_cap_are_refused) {
    const ent_blob_v1 *blobs = interface_of(ENT_INTERFACE_BLOB);
    const ent_runtime_v1 *api = interface_of(ENT_INTERFACE_RUNTIME);
    ent_device *device, *low;
    ent_kernel *kernel;
    build b;
    if (ent_cpu_isa_detect() == ENT_CPU_ISA_BASELINE) return;
    make_program(&b);
    ck_assert_int_eq(open_device("variant", "avx2", &device), ENT_OK);
    ent_bytes blob = compile_program(device, &b);
    setenv("ENTENTE_CPU_ISA", "baseline", 1);
    ck_assert_int_eq(blobs->check(state, &call, blob.data, blob.size), ENT_CODE_ISA_MISSING);
    ck_assert_ptr_nonnull(strstr(said, "avx2"));
    ck_assert_ptr_nonnull(strstr(said, "baseline"));
    ck_assert_int_eq(open_device("", "", &low), ENT_OK);
    ck_assert_int_eq(api->kernel_load(low, &call, blob.data, blob.size, &kernel), ENT_CODE_ISA_MISSING);
    close_device(low);
    close_device(device);
}
END_TEST

/* Any byte may be wrong, and the blob may end anywhere: refused with a sentence, or loaded as what it then
 * says. */
START_TEST(hostile_blobs_do_no_harm) {
    const ent_runtime_v1 *api = interface_of(ENT_INTERFACE_RUNTIME);
    const ent_blob_v1 *blobs = interface_of(ENT_INTERFACE_BLOB);
    ent_device *device;
    build b;
    make_program(&b);
    ck_assert_int_eq(open_device("threads", "1", &device), ENT_OK);
    ent_bytes blob = compile_program(device, &b);
    uint8_t *copy = malloc(blob.size);
    int loaded = 0, refused = 0;
    for (size_t i = 0; i < 2 * blob.size + 4000; i++) {
        ent_kernel *kernel = NULL;
        size_t size = i < blob.size ? i : blob.size;
        memcpy(copy, blob.data, blob.size);
        if (i >= blob.size)
            copy[i < 2 * blob.size ? i - blob.size : random_u32() % blob.size] ^=
                (uint8_t)(1u << random_in(0, 7));
        said[0] = 0;
        blobs->check(state, &call, copy, size);
        ent_code code = api->kernel_load(device, &call, copy, size, &kernel);
        loaded += code == ENT_OK;
        refused += code != ENT_OK;
        ck_assert(code == ENT_OK || said[0] != 0);
        if (code == ENT_OK) api->kernel_unload(kernel);
    }
    ck_assert_int_gt(refused, 1000);
    ck_assert_int_gt(loaded, 10);
    free(copy);
    close_device(device);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("cpu_plugin");
    TCase *tests = tcase_create("plugin");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, devices_take_their_parameters);
    tcase_add_test(tests, isa_beyond_the_machine_is_refused);
    tcase_add_test(tests, probe_is_cached);
    tcase_add_test(tests, no_cache_is_no_failure);
    tcase_add_test(tests, a_program_runs);
    tcase_add_test(tests, blobs_above_the_cap_are_refused);
    tcase_add_test(tests, hostile_blobs_do_no_harm);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
