/* The probe's figures in a file of the user's cache, so that a processor is measured once. What the file
 * holds is checked like any other input; a file that does not fit is measured anew. */
#define _GNU_SOURCE
#include "cpu.h"

#include <cjson/cJSON.h>
#include <cpuid.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE_VERSION 5
#define MAX_FILE_BYTES 16384

static const struct field {
    const char *name;
    size_t offset;
    double low, high;
} fields[] = {
    {"fma_flops", offsetof(ent_cpu_probe, fma_flops), 1e8, 1e13},
    {"l1_read_bytes_per_ns", offsetof(ent_cpu_probe, l1_read_bytes_per_ns), 0.1, 1e4},
    {"l2_read_bytes_per_ns", offsetof(ent_cpu_probe, l2_read_bytes_per_ns), 0.1, 1e4},
    {"l3_read_bytes_per_ns", offsetof(ent_cpu_probe, l3_read_bytes_per_ns), 0.05, 1e4},
    {"dram_read_bytes_per_ns", offsetof(ent_cpu_probe, dram_read_bytes_per_ns), 0.02, 1e4},
    {"fork_join_ns", offsetof(ent_cpu_probe, fork_join_ns), 0, 1e8},
    {"gemm_share", offsetof(ent_cpu_probe, gemm_share), 0.001, 2},
    {"gemm8_share", offsetof(ent_cpu_probe, gemm8_share), 0.001, 16},
    {"depthwise_share", offsetof(ent_cpu_probe, depthwise_share), 0.001, 2},
    {"elementwise_cheap_ns", offsetof(ent_cpu_probe, elementwise_cheap_ns), 1e-4, 1e3},
    {"elementwise_costly_ns", offsetof(ent_cpu_probe, elementwise_costly_ns), 1e-4, 1e4},
    {"copy_bytes_per_ns", offsetof(ent_cpu_probe, copy_bytes_per_ns), 0.01, 1e4},
    {"reduce_ns", offsetof(ent_cpu_probe, reduce_ns), 1e-4, 1e3},
    {"softmax_ns", offsetof(ent_cpu_probe, softmax_ns), 1e-4, 1e4},
    {"divide_ns", offsetof(ent_cpu_probe, divide_ns), 1e-4, 1e3},
    {"launch_ns", offsetof(ent_cpu_probe, launch_ns), 1, 1e5},
    {"instance_ns", offsetof(ent_cpu_probe, instance_ns), 1, 1e5},
    {"op_ns", offsetof(ent_cpu_probe, op_ns), 1, 1e5},
    {"strided_ns", offsetof(ent_cpu_probe, strided_ns), 1e-3, 1e4},
    {"gather_ns", offsetof(ent_cpu_probe, gather_ns), 1e-3, 1e4},
    {"gemm_efficiency", offsetof(ent_cpu_probe, gemm_efficiency), 0.05, 1.5},
};
/* 0: unknown */
static const struct field sizes[] = {
    {"l1_bytes", offsetof(ent_cpu_probe, l1_bytes), 0, 1 << 24},
    {"l2_bytes", offsetof(ent_cpu_probe, l2_bytes), 0, 1 << 30},
    {"l3_bytes", offsetof(ent_cpu_probe, l3_bytes), 0, 1e12},
    {"l3_kept_bytes", offsetof(ent_cpu_probe, l3_kept_bytes), 0, 1e12},
};
#define SIZE_COUNT (sizeof sizes / sizeof sizes[0])
#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static double *field_of(ent_cpu_probe *probe, size_t i) {
    return (double *)(void *)((char *)probe + fields[i].offset);
}

static int64_t *size_of(ent_cpu_probe *probe, size_t i) {
    return (int64_t *)(void *)((char *)probe + sizes[i].offset);
}

/* Processor, level and threads: what the figures depend on. */
static void make_key(const cpu_device *device, char *out, size_t size) {
    unsigned brand[12] = {0}, a, b, c, d;
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) /* int in clang, unsigned in gcc */
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2],
                        &brand[4 * i + 3]);
    if (!__get_cpuid(1, &a, &b, &c, &d)) a = 0;
    snprintf(out, size, "%.48s|%08x|%s|%d|%d", (const char *)brand, a, ent_cpu_isa_name(device->isa),
             device->threads, CACHE_VERSION);
    for (char *at = out; *at; at++)
        if (*at < ' ' || *at == '"' || *at == '\\' || *at > '~') *at = ' ';
}

static uint64_t hash_of(const char *text) {
    uint64_t hash = 1469598103934665603u;
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
    return hash;
}

/* False when the environment names no place. */
static bool make_path(const char *key, char *out, size_t size) {
    const char *given = secure_getenv("ENTENTE_CPU_PROBE_CACHE"), *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    unsigned long long hash = hash_of(key);
    int length = 0;
    if (given && given[0])
        length = snprintf(out, size, "%s", given);
    else if (cache && cache[0] == '/')
        length = snprintf(out, size, "%s/entente/cpu-%016llx.json", cache, hash);
    else if (home && home[0] == '/')
        length = snprintf(out, size, "%s/.cache/entente/cpu-%016llx.json", home, hash);
    return length > 0 && (size_t)length < size;
}

static bool read_number(const cJSON *root, const struct field *field, double *out) {
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(root, field->name);
    if (!cJSON_IsNumber(number) || !(number->valuedouble >= field->low && number->valuedouble <= field->high))
        return false;
    *out = number->valuedouble;
    return true;
}

static bool read_fields(const char *text, const char *key, ent_cpu_probe *out) {
    cJSON *root = cJSON_Parse(text);
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(root, "processor");
    bool fits = cJSON_IsString(name) && strcmp(name->valuestring, key) == 0;
    double number = 0;
    for (size_t i = 0; i < FIELD_COUNT && fits; i++) fits = read_number(root, &fields[i], field_of(out, i));
    for (size_t i = 0; i < SIZE_COUNT && fits; i++) {
        fits = read_number(root, &sizes[i], &number);
        *size_of(out, i) = (int64_t)number;
    }
    cJSON_Delete(root);
    return fits;
}

static bool read_cache(const char *path, const char *key, ent_cpu_probe *out) {
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > MAX_FILE_BYTES) return false;
    FILE *file = fopen(path, "re");
    if (!file) return false;
    char text[MAX_FILE_BYTES + 1];
    size_t size = fread(text, 1, MAX_FILE_BYTES, file);
    fclose(file);
    text[size] = 0;
    return read_fields(text, key, out);
}

static void make_folders(const char *path) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *at = folder + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(folder, 0700) != 0 && errno != EEXIST) return;
        *at = '/';
    }
}

/* Written beside and renamed, so that nobody reads half of it. A folder that cannot be written is no failure.
 */
static void write_cache(const char *path, const char *key, ent_cpu_probe *probe) {
    char temporary[1100];
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(temporary, "wxe");
    if (!file) return;
    fprintf(file, "{\n  \"processor\": \"%s\"", key);
    for (size_t i = 0; i < FIELD_COUNT; i++)
        fprintf(file, ",\n  \"%s\": %.9g", fields[i].name, *field_of(probe, i));
    for (size_t i = 0; i < SIZE_COUNT; i++)
        fprintf(file, ",\n  \"%s\": %lld", sizes[i].name, (long long)*size_of(probe, i));
    fprintf(file, "\n}\n");
    bool bad = ferror(file) != 0;
    bad |= fclose(file) != 0;
    if (bad || rename(temporary, path) != 0) unlink(temporary);
}

static void keep_in_range(ent_cpu_probe *probe) {
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        double *value = field_of(probe, i);
        if (!(*value >= fields[i].low)) *value = fields[i].low;
        if (*value > fields[i].high) *value = fields[i].high;
    }
}

bool cpu_probe_get(cpu_device *device, ent_cpu_probe *out) {
    char key[160], path[1024];
    make_key(device, key, sizeof key);
    bool has_path = make_path(key, path, sizeof path);
    memset(out, 0, sizeof *out);
    ent_cpu_probe cached = {.isa = device->isa};
    if (has_path && read_cache(path, key, &cached)) {
        *out = cached;
        return true;
    }
    if (!ent_cpu_probe_run(device->kernels, device->pool, out) ||
        !ent_cpu_probe_steps(device->head.host, device->kernels, out))
        return false;
    keep_in_range(out);
    if (has_path) write_cache(path, key, out);
    return true;
}
