#include "tests/unit/runtime_fixture.h"

static ent_tensor floats(float *data, int64_t rows, int64_t columns) {
    return (ent_tensor){.data = data,
                        .size_bytes = (uint64_t)(rows * columns) * 4,
                        .dtype = ENT_DTYPE_F32,
                        .rank = 2,
                        .dims = {rows, columns}};
}

static const char *const variants[] = {"fake", "fake:far", "fake:lazy"};
enum { VARIANTS = 3 };

#define KERNELS                                                                                              \
    "kernel \"double\" device 0 depth region tier generic requirement \"\" blob \"scale 2\"\n"               \
    "kernel \"add\" device 0 depth region tier generic requirement \"\" blob \"add\"\n"

/* ((x * 2 + w) * 2), the middle seen through an alias */
static const char chain[] =
    "program \"chain\"\n"
    "device \"%D\" plugin \"fake\" parameters \"\"\n"
    "constant f32 [2,2] bytes 16 hex x0000803f000000400000404000008040\n" KERNELS "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [2,2] bytes 16\n"
    "  value %1 \"w\" constant 0 device 0 f32 [2,2] bytes 16\n"
    "  value %2 \"a\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %3 \"b\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %4 \"b4\" alias %3 device 0 f32 [4] bytes 16\n"
    "  value %5 \"y\" output device 0 f32 [2,2] bytes 16\n"
    "  step dispatch \"s0\" device 0 kernel 0 values %0 %2 region 7 predicted 5\n"
    "  step dispatch \"s1\" device 0 kernel 1 values %2 %1 %3\n"
    "  step dispatch \"s2\" device 0 kernel 0 values %4 %5\n"
    "  inputs %0\n"
    "  outputs %5\n"
    "end\n";

static void check_chain(const float *x, const float *y) {
    for (int i = 0; i < 4; i++) ck_assert_float_eq(y[i], (x[i] * 2 + (float)(i + 1)) * 2);
}

START_TEST(runs_a_chain_in_any_memory) {
    fixture f;
    open_text(&f, variants[_i], chain, NULL);
    must_open(&f);
    _Alignas(64) float x[20], y[20];
    for (int offset = 0; offset < 4; offset++) { /* aligned or not, each twice */
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 4; i++) x[offset + i] = (float)(i * 3 + round + offset);
            ent_tensor in = floats(x + offset, 2, 2), out = {.data = y + offset, .size_bytes = 16};
            must_run(&f, &in, &out);
            check_chain(x + offset, y + offset);
            ck_assert_int_eq(out.dims[1], 2);
            ck_assert_uint_eq(out.size_bytes, 16);
            ck_assert_uint_eq(out.dtype, ENT_DTYPE_F32);
        }
    }
    ent_tensor in = floats(x, 2, 2), out = {0};
    must_run(&f, &in, &out);
    ck_assert_uint_eq((uintptr_t)out.data % 64, 0);
    check_chain(x, out.data);
    /* The steps of a static program go in one submission. */
    ck_assert_uint_eq(fake.submits, 9);
    close_fixture(&f);
}
END_TEST

START_TEST(the_steady_state_makes_nothing) {
    fixture f;
    open_text(&f, "fake", chain, NULL);
    must_open(&f);
    _Alignas(64) float x[4] = {1, 2, 3, 4}, y[4];
    ent_tensor in = floats(x, 2, 2), out = {.data = y, .size_bytes = 16};
    must_run(&f, &in, &out);
    fake_counts before = fake;
    for (int i = 0; i < 100; i++) must_run(&f, &in, &out);
    ck_assert_uint_eq(fake.created, before.created);
    ck_assert_uint_eq(fake.imported, before.imported);
    /* Constants and caller's memory are used in place: one arena is all that was made. */
    ck_assert_uint_eq(fake.imported, 2 + ((uintptr_t)f.program->constants[0].data % 64 == 0));
    close_fixture(&f);
}
END_TEST

START_TEST(wrong_tensors_are_refused) {
    fixture f;
    open_text(&f, "fake", chain, NULL);
    must_open(&f);
    float x[4] = {0}, y[4];
    ent_tensor good = floats(x, 2, 2), out = {.data = y, .size_bytes = 16}, in = good;
    static const char *const rules[] = {"input.dtype", "input.rank", "input.shape",
                                        "input.size",  "input.size", "output.size"};
    for (int i = 0; i < 6; i++) {
        in = good, out.size_bytes = 16;
        if (i == 0) in.dtype = ENT_DTYPE_I32;
        if (i == 1) in.rank = 1;
        if (i == 2) in.dims[1] = 3;
        if (i == 3) in.size_bytes = 15;
        if (i == 4) in.data = NULL;
        if (i == 5) out.size_bytes = 12;
        ent_status status = ent_runtime_run(f.runtime, &in, &out);
        ck_assert_ptr_nonnull(status);
        ck_assert_int_eq(status->code, ENT_ERROR_USAGE);
        ck_assert_str_eq(status->rule, rules[i]);
    }
    out.size_bytes = 16;
    must_run(&f, &good, &out);
    close_fixture(&f);
}
END_TEST

/* then: t*2*2 + t in its own frame behind main's, else: t passed through. main's own temporary must survive
 * the call. */
static const char branch[] =
    "program \"branch\"\n"
    "device \"%D\" plugin \"fake\" parameters \"\"\n" KERNELS
    "kernel \"greater\" device 0 depth region tier generic requirement \"\" blob \"greater 10\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [2,2] bytes 16\n"
    "  value %1 \"c\" temporary device 0 bool [] bytes 1\n"
    "  value %2 \"t\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %3 \"r\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %4 \"y\" output device 0 f32 [2,2] bytes 16\n"
    "  value %5 \"z\" output device 0 f32 [2,2] bytes 16\n"
    "  step dispatch \"cond\" device 0 kernel 2 values %0 %1\n"
    "  step dispatch \"double\" device 0 kernel 0 values %0 %2\n"
    "  step branch \"if\" device 0 condition %1 then 1 values %2 %3 else 2 values %2 %3\n"
    "  step call \"again\" device 0 function 1 values %3 %5\n"
    "  step dispatch \"sum\" device 0 kernel 1 values %2 %3 %4\n"
    "  inputs %0\n"
    "  outputs %4 %5 %0 %4 %2\n"
    "end\n"
    "function \"then\"\n"
    "  value %0 \"x\" input device 0 f32 [2,2] bytes 16\n"
    "  value %1 \"a\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %2 \"b\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %3 \"y\" output device 0 f32 [2,2] bytes 16\n"
    "  step dispatch \"t0\" device 0 kernel 0 values %0 %1\n"
    "  step dispatch \"t1\" device 0 kernel 0 values %1 %2\n"
    "  step dispatch \"t2\" device 0 kernel 1 values %2 %0 %3\n"
    "  inputs %0\n"
    "  outputs %3\n"
    "end\n"
    "function \"else\"\n"
    "  value %0 \"x\" input device 0 f32 [2,2] bytes 16\n"
    "  inputs %0\n"
    "  outputs %0\n"
    "end\n";

START_TEST(branches_calls_and_passed_through_results) {
    fixture f;
    open_text(&f, variants[_i], branch, NULL);
    must_open(&f);
    for (int round = 0; round < 4; round++) {
        bool taken = round % 2 == 0;
        float x[5];
        ent_tensor in = floats(x + round % 2, 2, 2), outs[5] = {{0}};
        for (int i = 0; i < 4; i++) x[round % 2 + i] = (float)(taken ? 11 : 2) + (float)i;
        must_run(&f, &in, outs);
        for (int i = 0; i < 4; i++) {
            float v = x[round % 2 + i], t = v * 2, r = taken ? t * 5 : t;
            ck_assert_float_eq(((float *)outs[0].data)[i], t + r);
            ck_assert_float_eq(((float *)outs[1].data)[i], r * 5);
            ck_assert_float_eq(((float *)outs[2].data)[i], v);
            ck_assert_float_eq(((float *)outs[3].data)[i], t + r);
            ck_assert_float_eq(((float *)outs[4].data)[i], t);
        }
    }
    close_fixture(&f);
}
END_TEST

static const char open_symbol[] =
    "program \"open\"\n"
    "symbol \"n\" min 1 max 64 multiple 2 input 0 axis 0\n"
    "expr e0 = symbol 0\n"
    "expr e1 = mul e0 16\n"
    "expr e2 = mul e0 4\n"
    "device \"%D\" plugin \"fake\" parameters \"\"\n" KERNELS
    "kernel \"fill\" device 0 depth region tier generic requirement \"\" blob \"fill\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [e0,4] bytes e1\n"
    "  value %1 \"n\" temporary device 0 f32 [e2] bytes e1\n"
    "  value %2 \"a\" temporary device 0 f32 [e0,4] bytes e1\n"
    "  value %3 \"b\" temporary device 0 f32 [e0,4] bytes e1\n"
    "  value %4 \"y\" output device 0 f32 [e0,4] bytes e1\n"
    "  step dispatch \"s0\" device 0 kernel 2 values %1\n"
    "  step dispatch \"s1\" device 0 kernel 0 values %0 %2\n"
    "  step dispatch \"s2\" device 0 kernel 1 values %1 %2 %3\n"
    "  step dispatch \"s3\" device 0 kernel 0 values %3 %4\n"
    "  inputs %0\n"
    "  outputs %4\n"
    "end\n";

START_TEST(an_open_symbol_runs_at_many_sizes) {
    fixture f;
    open_text(&f, variants[_i], open_symbol, NULL);
    must_open(&f);
    _Alignas(64) static float x[256], y[256];
    /* Growing, shrinking, more shapes than are kept, and back. */
    static const int64_t sizes[] = {2, 4, 64, 2, 8, 10, 12, 14, 16, 18, 20, 22, 4, 2, 64, 64};
    for (uint32_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int64_t n = sizes[k];
        for (int64_t i = 0; i < n * 4; i++) x[i] = (float)(i + k);
        ent_tensor in = floats(x, n, 4), out = {.data = k % 2 ? NULL : y, .size_bytes = sizeof y};
        must_run(&f, &in, &out);
        ck_assert_int_eq(out.dims[0], n);
        ck_assert_uint_eq(out.size_bytes, (uint64_t)n * 16);
        for (int64_t i = 0; i < n * 4; i++)
            ck_assert_float_eq(((float *)out.data)[i], ((float)n + x[i] * 2) * 2);
    }
    ent_runtime_memory memory;
    ck_assert_ptr_null(ent_runtime_memory_used(f.runtime, &memory));
    ck_assert_uint_eq(memory.arena_bytes, 3 * 1024);
    ck_assert_uint_eq(memory.arena_lower_bound_bytes, 3 * 1024);
    close_fixture(&f);
}
END_TEST

START_TEST(guards_are_checked_and_named) {
    fixture f;
    open_text(&f, "fake", open_symbol, NULL);
    must_open(&f);
    static float x[1024];
    static const int64_t sizes[] = {0, 3, 66};
    for (uint32_t k = 0; k < 3; k++) {
        ent_tensor in = floats(x, sizes[k], 4), out = {0};
        ent_status status = ent_runtime_run(f.runtime, &in, &out);
        ck_assert_ptr_nonnull(status);
        ck_assert_int_eq(status->code, ENT_ERROR_UNSUPPORTED);
        ck_assert_str_eq(status->rule, "runtime.guard");
        ck_assert_ptr_nonnull(strstr(status->text, "'n'"));
        ck_assert_ptr_nonnull(strstr(status->place, "'x'"));
    }
    ent_tensor in = floats(x, 2, 5), out = {0};
    ent_status status = ent_runtime_run(f.runtime, &in, &out);
    ck_assert_ptr_nonnull(status);
    ck_assert_str_eq(status->rule, "input.shape");
    close_fixture(&f);
}
END_TEST

/* x on device 0, doubled there, copied to 1, doubled, copied back, and summed with what stayed. */
static const char two_devices[] =
    "program \"two\"\n"
    "device \"%D\" plugin \"fake\" parameters \"\"\n"
    "device \"fake\" plugin \"fake\" parameters \"\"\n" KERNELS
    "kernel \"double\" device 1 depth region tier generic requirement \"\" blob \"scale 2\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [2,2] bytes 16\n"
    "  value %1 \"a\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %2 \"a1\" temporary device 1 f32 [2,2] bytes 16\n"
    "  value %3 \"b1\" temporary device 1 f32 [2,2] bytes 16\n"
    "  value %4 \"b\" temporary device 0 f32 [2,2] bytes 16\n"
    "  value %5 \"y\" output device 0 f32 [2,2] bytes 16\n"
    "  value %6 \"z\" output device 1 f32 [2,2] bytes 16\n"
    "  step dispatch \"s0\" device 0 kernel 0 values %0 %1\n"
    "  step copy \"c0\" device 1 values %1 %2\n"
    "  step dispatch \"s1\" device 1 kernel 2 values %2 %3\n"
    "  step copy \"c1\" device 0 values %3 %4\n"
    "  step dispatch \"s2\" device 0 kernel 1 values %1 %4 %5 waits 2\n"
    "  step dispatch \"s3\" device 1 kernel 2 values %3 %6 waits 4\n"
    "  inputs %0\n"
    "  outputs %5 %6\n"
    "end\n";

START_TEST(devices_meet_in_copies) {
    for (int swapped = 0; swapped < 2; swapped++) {
        fixture f;
        open_text(&f, variants[_i], two_devices, NULL);
        must_open(&f);
        ent_runtime_set_profiling(f.runtime, true);
        float x[4] = {1, 2, 3, 4};
        ent_tensor in = floats(x, 2, 2), out[2] = {{0}, {0}};
        must_run(&f, &in, out);
        for (int i = 0; i < 4; i++) ck_assert_float_eq(((float *)out[0].data)[i], x[i] * 6);
        for (int i = 0; i < 4; i++) ck_assert_float_eq(((float *)out[1].data)[i], x[i] * 8);
        uint32_t count;
        const ent_runtime_timing *timings = ent_runtime_timings(f.runtime, &count);
        ck_assert_uint_eq(count, 6);
        ck_assert_str_eq(timings[1].name, "c0");
        for (uint32_t i = 0; i < count; i++) ck_assert_uint_gt(timings[i].end_ns, timings[i].begin_ns);
        close_fixture(&f);
    }
}
END_TEST

START_TEST(times_come_per_step_and_only_when_asked) {
    fixture f;
    uint32_t count;
    open_text(&f, "fake", branch, NULL);
    must_open(&f);
    float x[4] = {1, 2, 3, 4};
    ent_tensor in = floats(x, 2, 2), outs[5] = {{0}};
    must_run(&f, &in, outs);
    ck_assert_ptr_null(ent_runtime_timings(f.runtime, &count));
    ck_assert_uint_eq(count, 0);
    ent_runtime_set_profiling(f.runtime, true);
    must_run(&f, &in, outs);
    const ent_runtime_timing *t = ent_runtime_timings(f.runtime, &count);
    /* cond, double, 3 of the branch not taken, 3 of the call, sum; the else side has no steps of its own */
    ck_assert_uint_eq(count, 9);
    for (uint32_t i = 0; i < count; i++) {
        bool skipped = i >= 2 && i < 5;
        ck_assert_int_eq(t[i].end_ns == 0, skipped);
        ck_assert(skipped || t[i].end_ns > t[i].begin_ns);
    }
    ck_assert_str_eq(t[2].function, "then");
    ck_assert_str_eq(t[0].path, "fake greater 10");
    ck_assert_uint_eq(t[0].tier, ENT_TIER_EMULATED);
    ent_runtime_set_profiling(f.runtime, false);
    must_run(&f, &in, outs);
    ck_assert_ptr_null(ent_runtime_timings(f.runtime, &count));
    close_fixture(&f);
}
END_TEST

static const char one_kernel[] =
    "program \"one\"\n"
    "device \"%D\" plugin \"fake\" parameters \"threads=3\"\n"
    "kernel \"k\" device 0 depth region tier generic requirement \"fake isa=wide\" blob \"BLOB\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [2,2] bytes 16\n"
    "  value %1 \"y\" output device 0 f32 [2,2] bytes 16\n"
    "  step dispatch \"s\" device 0 kernel 0 values %0 %1\n"
    "  inputs %0\n"
    "  outputs %1\n"
    "end\n";

static void open_kernel(fixture *f, const char *device, const char *blob,
                        const ent_runtime_options *options) {
    char text[1024];
    const char *hole = strstr(one_kernel, "BLOB");
    snprintf(text, sizeof text, "%.*s%s%s", (int)(hole - one_kernel), one_kernel, blob, hole + 4);
    open_text(f, device, text, options);
}

START_TEST(a_missing_instruction_set_is_named) {
    fixture f;
    open_kernel(&f, "fake", "isa wide", NULL);
    ck_assert_ptr_nonnull(f.status);
    ck_assert_ptr_null(f.runtime);
    ck_assert_int_eq(f.status->code, ENT_ERROR_DEVICE);
    ck_assert_str_eq(f.status->rule, "runtime.isa");
    ck_assert_ptr_nonnull(strstr(f.status->text, "fake isa=wide"));
    ck_assert_ptr_nonnull(strstr(f.status->text, "narrow"));
    close_fixture(&f);
    open_kernel(&f, "fake", "refused", NULL);
    ck_assert_str_eq(f.status->rule, "runtime.kernel");
    close_fixture(&f);
    open_kernel(&f, "nobody", "nop", NULL);
    ck_assert_int_eq(f.status->code, ENT_ERROR_DEVICE);
    close_fixture(&f);
    open_kernel(&f, "fake:absent", "nop", NULL);
    ck_assert_int_eq(f.status->code, ENT_ERROR_DEVICE);
    close_fixture(&f);
}
END_TEST

START_TEST(threads_reach_devices_that_know_them) {
    fixture f;
    ent_runtime_options options = {.threads = 7};
    open_kernel(&f, "fake", "scale 3", NULL);
    must_open(&f);
    ck_assert_str_eq(fake.threads, "3");
    close_fixture(&f);
    open_kernel(&f, "fake", "scale 3", &options);
    must_open(&f);
    ck_assert_str_eq(fake.threads, "7");
    close_fixture(&f);
    open_kernel(&f, "fake:lazy", "scale 3", &options);
    must_open(&f); /* refuses "threads", opened without */
    close_fixture(&f);
}
END_TEST

START_TEST(a_failing_kernel_fails_its_run_only) {
    fixture f;
    open_kernel(&f, variants[_i], "fail", _i ? &(ent_runtime_options){.threads = 1} : NULL);
    must_open(&f);
    float x[4] = {1, 2, 3, 4};
    ent_tensor in = floats(x, 2, 2), out = {0};
    for (int round = 0; round < 3; round++) {
        ent_status status = ent_runtime_run(f.runtime, &in, &out);
        ck_assert_ptr_nonnull(status);
        ck_assert_int_eq(status->code, ENT_ERROR_DEVICE);
    }
    close_fixture(&f);
}
END_TEST

/* ---- random programs against a plain evaluation ---- */

static uint64_t random_state = 0x2545f4914f6cdd1du;

static uint32_t random_below(uint32_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 11) % limit;
}

enum { NODES = 60, ELEMENTS = 40 };

/* Value i + 1 is the sum of two earlier ones; every value is on a device of its own choice, copied where
 * needed. */
static void random_program(ent_text *text, uint32_t devices, float *expected) {
    static float values[NODES + 1][ELEMENTS];
    uint32_t where[NODES + 1] = {0}, next = 1;
    ent_text steps;
    ent_text_init(&steps, text->arena);
    ent_text_add(text, "program \"random\"\n");
    for (uint32_t d = 0; d < devices; d++)
        ent_text_add(text, "device \"%s\" plugin \"fake\" parameters \"\"\n", variants[d]);
    for (uint32_t d = 0; d < devices; d++)
        ent_text_add(text,
                     "kernel \"add\" device %u depth region tier generic requirement \"\" blob \"add\"\n", d);
    ent_text_add(text, "function \"main\"\n  value %%0 \"x\" input device 0 f32 [2,20] bytes 160\n");
    uint32_t ids[NODES + 1] = {0};
    for (int e = 0; e < ELEMENTS; e++) values[0][e] = (float)e / 64;
    for (uint32_t n = 1; n <= NODES; n++) {
        uint32_t sources[2] = {random_below(n), n > 3 ? n - 1 - random_below(3) : random_below(n)}, bound[2];
        where[n] = n == NODES ? 0 : random_below(devices);
        for (uint32_t s = 0; s < 2; s++) {
            bound[s] = ids[sources[s]];
            if (where[sources[s]] == where[n]) continue;
            ent_text_add(text, "  value %%%u \"\" temporary device %u f32 [2,20] bytes 160\n", next,
                         where[n]);
            ent_text_add(&steps, "  step copy \"\" device %u values %%%u %%%u\n", where[n], bound[s], next);
            bound[s] = next++;
        }
        ent_text_add(text, "  value %%%u \"\" %s device %u f32 [2,20] bytes 160\n", next,
                     n == NODES ? "output" : "temporary", where[n]);
        ent_text_add(&steps, "  step dispatch \"\" device %u kernel %u values %%%u %%%u %%%u\n", where[n],
                     where[n], bound[0], bound[1], next);
        ids[n] = next++;
        for (int e = 0; e < ELEMENTS; e++) values[n][e] = values[sources[0]][e] + values[sources[1]][e];
    }
    ent_text_add(text, "%s  inputs %%0\n  outputs %%%u\nend\n", steps.data, ids[NODES]);
    memcpy(expected, values[NODES], sizeof values[NODES]);
}

START_TEST(random_programs_compute_what_they_say) {
    for (int round = 0; round < 30; round++) {
        fixture f;
        ent_arena *arena = ent_arena_create(0);
        ent_text text;
        float expected[ELEMENTS], x[ELEMENTS];
        ent_text_init(&text, arena);
        random_program(&text, 1 + (uint32_t)_i, expected);
        open_text(&f, "", text.data, NULL);
        must_open(&f);
        for (int e = 0; e < ELEMENTS; e++) x[e] = (float)e / 64;
        ent_tensor in = floats(x, 2, 20), out = {0};
        must_run(&f, &in, &out);
        must_run(&f, &in, &out);
        ck_assert_int_eq(memcmp(out.data, expected, sizeof expected), 0);
        close_fixture(&f);
        ent_arena_destroy(arena);
    }
}
END_TEST

START_TEST(forty_steps_cost_little) {
    fixture f;
    ent_arena *arena = ent_arena_create(0);
    ent_text text;
    ent_text_init(&text, arena);
    ent_text_add(
        &text,
        "program \"forty\"\ndevice \"fake\" plugin \"fake\" parameters \"\"\n"
        "kernel \"nop\" device 0 depth region tier generic requirement \"\" blob \"nop\"\nfunction \"main\"\n"
        "  value %%0 \"x\" input device 0 f32 [2,2] bytes 16\n");
    for (int i = 1; i < 40; i++)
        ent_text_add(&text, "  value %%%d \"\" temporary device 0 f32 [2,2] bytes 16\n", i);
    ent_text_add(&text, "  value %%40 \"y\" output device 0 f32 [2,2] bytes 16\n");
    for (int i = 0; i < 40; i++)
        ent_text_add(&text, "  step dispatch \"\" device 0 kernel 0 values %%%d %%%d\n", i, i + 1);
    ent_text_add(&text, "  inputs %%0\n  outputs %%40\nend\n");
    open_text(&f, "", text.data, NULL);
    must_open(&f);
    _Alignas(64) float x[4] = {0}, y[4];
    ent_tensor in = floats(x, 2, 2), out = {.data = y, .size_bytes = 16};
    uint64_t best = UINT64_MAX;
    for (int round = 0; round < 200; round++) {
        uint64_t begin = ent_time_ns();
        for (int i = 0; i < 10; i++) ck_assert_ptr_null(ent_runtime_run(f.runtime, &in, &out));
        uint64_t each = (ent_time_ns() - begin) / 10;
        if (each < best) best = each;
    }
    printf("40 steps that do nothing: %llu ns a run\n", (unsigned long long)best);
#if !defined(__SANITIZE_ADDRESS__) &&                                                                        \
    !defined(__clang__) /* a sanitizer build is about errors, not about time */
    ck_assert_uint_lt(best, 5000);
#endif
    close_fixture(&f);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("runtime_run");
    TCase *tests = tcase_create("run");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, runs_a_chain_in_any_memory, 0, VARIANTS);
    tcase_add_test(tests, the_steady_state_makes_nothing);
    tcase_add_test(tests, wrong_tensors_are_refused);
    tcase_add_loop_test(tests, branches_calls_and_passed_through_results, 0, VARIANTS);
    tcase_add_loop_test(tests, an_open_symbol_runs_at_many_sizes, 0, VARIANTS);
    tcase_add_test(tests, guards_are_checked_and_named);
    tcase_add_loop_test(tests, devices_meet_in_copies, 0, VARIANTS);
    tcase_add_test(tests, times_come_per_step_and_only_when_asked);
    tcase_add_test(tests, a_missing_instruction_set_is_named);
    tcase_add_test(tests, threads_reach_devices_that_know_them);
    tcase_add_loop_test(tests, a_failing_kernel_fails_its_run_only, 0, 1);
    tcase_add_loop_test(tests, random_programs_compute_what_they_say, 0, VARIANTS);
    tcase_add_test(tests, forty_steps_cost_little);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
