#include "core/program/program.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The header's place of its own checksum, and of the section table (core/program/bundle.h). */
enum { HEADER_CHECKSUM = 24, TABLE = 64, ENTRY = 32, SECTIONS = 4, HEAD = TABLE + SECTIONS * ENTRY };

static const char text[] =
    "program \"two\"\n"
    "symbol \"n\" min 1 max 64 multiple 1 input 0 axis 0\n"
    "expr e0 = symbol 0\n"
    "expr e1 = mul e0 16\n"
    "device \"host\" plugin \"fake\" parameters \"threads=1\"\n"
    "constant f32 [4] bytes 16 hex x0000803f000000400000404000008040\n"
    "constant u8 [16] bytes 16 hex x0000803f000000400000404000008040\n"
    "constant u8 [3] bytes 3 hex x010203\n"
    "kernel \"k\" device 0 depth region tier tuned requirement \"fake isa=any\" blob \"scale 2\"\n"
    "kernel \"l\" device 0 depth tile tier tuned requirement \"\" blob \"scale 2\"\n"
    "function \"main\"\n"
    "  value %0 \"x\" input device 0 f32 [e0,4] bytes e1\n"
    "  value %1 \"w\" constant 0 device 0 f32 [4] bytes 16\n"
    "  value %2 \"t\" temporary device 0 f32 [4] bytes 16 at 0\n"
    "  value %3 \"u\" alias %2 device 0 f32 [2,2] bytes 16\n"
    "  value %4 \"y\" output device 0 f32 [e0,4] bytes e1\n"
    "  value %5 \"c\" input device 0 bool [] bytes 1\n"
    "  value %6 \"z\" temporary device 0 f32 [1,3,2,2] order 0 2 3 1 block 1 4 bytes 64 at 64\n"
    "  step dispatch \"s0\" device 0 kernel 0 values %0 %1 %2 predicted 12.5\n"
    "  step dispatch \"s1\" device 0 kernel 1 values %3 %6 waits 0 region 2\n"
    "  step branch \"b\" device 0 condition %5 then 1 values %0 %4 else 1 values %0 %4\n"
    "  inputs %0 %5\n"
    "  outputs %4\n"
    "  frame 0 bytes 128\n"
    "end\n"
    "function \"side\"\n"
    "  value %0 \"a\" input device 0 f32 [e0,4] bytes e1\n"
    "  value %1 \"b\" output device 0 f32 [e0,4] bytes e1\n"
    "  step copy \"c\" device 0 values %0 %1\n"
    "  inputs %0\n"
    "  outputs %1\n"
    "  frame 0 bytes 0\n"
    "end\n"
    "plan \"{\\\"regions\\\": []}\"\n";

static char path[256];

static ent_program *parse(ent_arena *arena) {
    ent_program *program = NULL;
    ent_status status = ent_program_parse(arena, "test", text, &program);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    return program;
}

static void save(ent_arena *arena, const ent_program *program) {
    ent_status status = ent_program_save(program, arena, path);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
}

static void write_file(const uint8_t *data, size_t size) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* A bundle of `text` as bytes (of malloc). */
static uint8_t *good_bundle(size_t *out_size) {
    ent_arena *arena = ent_arena_create(0);
    ent_str bytes;
    save(arena, parse(arena));
    ck_assert_ptr_null(ent_file_read(arena, path, ENT_ERROR_USAGE, 0, &bytes));
    uint8_t *copy = malloc(bytes.size);
    memcpy(copy, bytes.data, bytes.size);
    *out_size = bytes.size;
    ent_arena_destroy(arena);
    return copy;
}

/* Opens what lies at path; returns the rule of the refusal, or "" and touches everything that the program
 * points to. */
static const char *try_open(ent_error_code *out_code) {
    static char rule[64];
    ent_arena *arena = ent_arena_create(0);
    ent_bundle bundle;
    ent_status status = ent_bundle_open(arena, path, &bundle);
    snprintf(rule, sizeof rule, "%s", status ? status->rule : "");
    *out_code = status ? status->code : ENT_ERROR_NONE;
    if (!status) {
        volatile size_t length = strlen(ent_program_print(bundle.program, arena));
        ck_assert_uint_gt(length, 0);
        ent_memory_result memory;
        ent_status plan = ent_program_plan_memory(bundle.program, arena, &memory);
        ck_assert(!plan || plan->code == ENT_ERROR_LIMIT || plan->code == ENT_ERROR_MODEL);
        ent_bundle_close(&bundle);
    }
    ent_arena_destroy(arena);
    return rule;
}

static uint64_t get_u64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

static void put_u64(uint8_t *at, uint64_t value) {
    memcpy(at, &value, 8);
}

/* Makes every checksum right again, as somebody with bad intent would. */
static void fix_checksums(uint8_t *data, size_t size) {
    for (uint32_t i = 0; i < SECTIONS; i++) {
        uint8_t *entry = data + TABLE + i * ENTRY;
        uint64_t offset = get_u64(entry + 8), bytes = get_u64(entry + 16);
        if (offset <= size && bytes <= size - offset) put_u64(entry + 24, ent_hash_u64(data + offset, bytes));
    }
    put_u64(data + HEADER_CHECKSUM, 0);
    put_u64(data + HEADER_CHECKSUM, ent_hash_u64(data, HEAD));
}

START_TEST(what_is_saved_is_what_is_read) {
    ent_arena *arena = ent_arena_create(0);
    ent_program *program = parse(arena);
    ent_bundle bundle;
    save(arena, program);
    ck_assert(ent_bundle_is(path));
    ck_assert_ptr_null(ent_bundle_open(arena, path, &bundle));
    ck_assert_str_eq(ent_program_print(bundle.program, arena), ent_program_print(program, arena));
    ck_assert_uint_eq(bundle.program->constants[0].hash.low, program->constants[0].hash.low);
    for (uint32_t i = 0; i < 3; i++) ck_assert_uint_eq((uintptr_t)bundle.program->constants[i].data % 64, 0);
    /* Equal bytes lie in the file once. */
    ck_assert_ptr_eq(bundle.program->constants[0].data, bundle.program->constants[1].data);
    ck_assert_ptr_ne(bundle.program->constants[0].data, bundle.program->constants[2].data);
    ck_assert_ptr_eq(bundle.program->kernels[0].blob, bundle.program->kernels[1].blob);
    const uint8_t *data = bundle.program->constants[0].data;
    ck_assert(data >= bundle.map.data && data < bundle.map.data + bundle.map.size_bytes);
    ent_bundle_close(&bundle);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(every_flipped_bit_is_found) {
    size_t size;
    uint8_t *data = good_bundle(&size);
    ent_error_code code;
    ck_assert_str_eq(try_open(&code), "");
    int file = open(path, O_WRONLY);
    ck_assert_int_ge(file, 0);
    /* All bits of the head, then one bit a byte. */
    for (size_t at = 0; at < size; at++) {
        for (uint32_t bit = 0; bit < (at < 1024 ? 8u : 1u); bit++) {
            uint8_t flip = (uint8_t)(1u << (at < 1024 ? bit : at % 8));
            uint8_t flipped = data[at] ^ flip;
            ck_assert_int_eq(pwrite(file, &flipped, 1, (off_t)at), 1);
            const char *rule = try_open(&code);
            ck_assert_msg(code == ENT_ERROR_MODEL && strncmp(rule, "bundle.", 7) == 0,
                          "byte %zu bit %u: '%s' %d", at, bit, rule, code);
            ck_assert_int_eq(pwrite(file, &data[at], 1, (off_t)at), 1);
        }
    }
    ck_assert_int_eq(close(file), 0);
    free(data);
}
END_TEST

START_TEST(every_length_but_the_right_one_is_refused) {
    size_t size;
    uint8_t *data = good_bundle(&size);
    uint8_t *longer = calloc(1, size + 64);
    memcpy(longer, data, size);
    ent_error_code code;
    for (size_t length = 0; length < size + 64; length += length < 300 ? 1 : 61) {
        if (length == size) continue;
        write_file(longer, length);
        try_open(&code);
        ck_assert_int_eq(code, ENT_ERROR_MODEL);
    }
    free(longer);
    free(data);
}
END_TEST

/* With right checksums the reader must live with whatever the tables say: refuse it, or load something that
 * is consistent. */
START_TEST(hostile_tables_do_no_harm) {
    size_t size, opened = 0, refused = 0;
    uint8_t *data = good_bundle(&size);
    uint8_t *bad = malloc(size);
    uint64_t begin = get_u64(data + TABLE + 8), bytes = get_u64(data + TABLE + 16);
    ent_error_code code;
    static const uint8_t values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (size_t at = begin; at < begin + bytes; at++) {
        for (uint32_t v = 0; v < sizeof values; v++) {
            memcpy(bad, data, size);
            bad[at] = values[v];
            if (at % 3 == 0 && at + 4 < begin + bytes) memset(bad + at, values[v], 4);
            fix_checksums(bad, size);
            write_file(bad, size);
            try_open(&code);
            ck_assert(code == ENT_ERROR_NONE || code == ENT_ERROR_MODEL || code == ENT_ERROR_LIMIT);
            if (code)
                refused++;
            else
                opened++;
        }
    }
    ck_assert_uint_gt(refused, 100);
    ck_assert_uint_gt(opened, 10); /* names and prices may be anything */
    free(bad);
    free(data);
}
END_TEST

START_TEST(hostile_section_tables_are_refused) {
    size_t size;
    uint8_t *data = good_bundle(&size);
    uint8_t *bad = malloc(size);
    ent_error_code code;
    static const uint64_t values[] = {
        0, 1, 63, 64, 4096, UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63, INT64_MAX};
    for (uint32_t i = 0; i < SECTIONS; i++)
        for (uint32_t field = 0; field < 3; field++)
            for (uint32_t v = 0; v < sizeof values / sizeof values[0]; v++) {
                memcpy(bad, data, size);
                if (get_u64(bad + TABLE + i * ENTRY + field * 8) == values[v]) continue;
                put_u64(bad + TABLE + i * ENTRY + field * 8, values[v]);
                fix_checksums(bad, size);
                write_file(bad, size);
                try_open(&code);
                /* Kernels and plan may end anywhere in the zeros before the next section. */
                bool harmless = field == 2 && (i == 1 || i == 2);
                ck_assert_msg(code == ENT_ERROR_MODEL || (harmless && code == ENT_ERROR_NONE),
                              "section %u field %u value %u", i, field, v);
            }
    free(bad);
    free(data);
}
END_TEST

START_TEST(refusals_say_what_is_wrong) {
    size_t size;
    uint8_t *data = good_bundle(&size);
    ent_error_code code;
    for (uint8_t other = 1; other <= 3; other += 2) { /* an older format, a newer one */
        data[8] = other;
        write_file(data, size);
        ck_assert_str_eq(try_open(&code), "bundle.version");
    }
    write_file((const uint8_t *)"hello, world, this is text", 20);
    ck_assert_str_eq(try_open(&code), "bundle.magic");
    ck_assert(!ent_bundle_is(path));
    ck_assert(!ent_bundle_is("/no/such/file"));
    free(data);
}
END_TEST

START_TEST(a_failed_save_leaves_nothing) {
    ent_arena *arena = ent_arena_create(0);
    ent_status status = ent_program_save(parse(arena), arena, "/no/such/folder/x.ent");
    ck_assert_ptr_nonnull(status);
    ck_assert_int_eq(access("/no/such/folder/x.ent", F_OK), -1);
    ent_arena_destroy(arena);
}
END_TEST

START_TEST(large_bundles_open_fast) {
    enum { BYTES = 100 << 20 };
    ent_arena *arena = ent_arena_create(0);
    ent_program *program = parse(arena);
    uint8_t *weights = malloc(BYTES);
    for (size_t i = 0; i < BYTES / 8; i++) put_u64(weights + 8 * i, i * 0x9e3779b97f4a7c15u);
    ent_program_constant constants[4];
    memcpy(constants, program->constants, 3 * sizeof constants[0]);
    constants[3] = (ent_program_constant){.dtype = ENT_DTYPE_U8,
                                          .rank = 1,
                                          .dims = {BYTES},
                                          .layout = ent_layout_plain(1),
                                          .data = weights,
                                          .size_bytes = BYTES};
    program->constants = constants;
    program->constant_count = 4;
    save(arena, program);
    ent_bundle bundle;
    uint64_t begin = ent_time_ns();
    ck_assert_ptr_null(ent_bundle_open(arena, path, &bundle));
    double ms = (double)(ent_time_ns() - begin) * 1e-6;
    printf("open and check 100 MB: %.1f ms\n", ms);
    ck_assert_int_eq(memcmp(bundle.program->constants[3].data, weights, BYTES), 0);
    ck_assert_double_lt(ms, 2000);
    ent_bundle_close(&bundle);
    free(weights);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    /* Thousands of small files are written: in memory where the machine offers that. */
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(path, sizeof path, "%s/entente-bundle-test-%d.ent", folder, (int)getpid());
    Suite *suite = suite_create("program_bundle");
    TCase *tests = tcase_create("bundle");
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, what_is_saved_is_what_is_read);
    tcase_add_test(tests, every_flipped_bit_is_found);
    tcase_add_test(tests, every_length_but_the_right_one_is_refused);
    tcase_add_test(tests, hostile_tables_do_no_harm);
    tcase_add_test(tests, hostile_section_tables_are_refused);
    tcase_add_test(tests, refusals_say_what_is_wrong);
    tcase_add_test(tests, a_failed_save_leaves_nothing);
    tcase_add_test(tests, large_bundles_open_fast);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    unlink(path);
    return failed != 0;
}
