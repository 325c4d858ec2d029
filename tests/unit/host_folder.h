/* A fresh folder of manifests for tests of core/host and of plugins; removed afterwards. */
#ifndef ENT_TEST_HOST_FOLDER_H
#define ENT_TEST_HOST_FOLDER_H

#include "core/host/host.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct host_folder {
    ent_arena *arena;
    char path[64];
} host_folder;

static inline void host_folder_make(host_folder *folder) {
    folder->arena = ent_arena_create(0);
    strcpy(folder->path, "/tmp/entente-host-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder->path));
}

static inline int host_folder_remove_one(const char *path, const struct stat *info, int kind,
                                         struct FTW *where) {
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline void host_folder_remove(host_folder *folder) {
    nftw(folder->path, host_folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
    ent_arena_destroy(folder->arena);
}

/* Writes a file of the folder and returns its path. */
static inline const char *host_folder_write(host_folder *folder, const char *name, const char *text) {
    const char *path = ent_arena_format(folder->arena, "%s/%s", folder->path, name);
    ent_file_chunk chunk = {text, strlen(text)};
    ck_assert_ptr_null(ent_file_write_atomic(folder->arena, path, &chunk, 1));
    return path;
}

/* A whole manifest for a library. */
static inline const char *host_folder_manifest(host_folder *folder, const char *name, const char *library) {
    return host_folder_write(
        folder, ent_arena_format(folder->arena, "%s.json", name),
        ent_arena_format(folder->arena,
                         "{\"manifest\": 1, \"name\": \"%s\", \"library\": \"%s\", \"abi\": [1, 1], "
                         "\"architecture\": \"any\", \"depths\": [\"region\"], \"default\": false}",
                         name, library));
}

/* A library of tests/plugins. */
static inline const char *host_folder_library(host_folder *folder, const char *name) {
    return ent_arena_format(folder->arena, "%s/tests/plugins/%s.so", ENT_TEST_BINARY_DIR, name);
}

static inline ent_host_registry *host_folder_scan(host_folder *folder, const char *path) {
    ent_host_options options = {.plugin_path = path ? path : folder->path};
    ent_host_registry *registry = NULL;
    ck_assert_ptr_null(ent_host_scan(folder->arena, &options, &registry));
    return registry;
}

#endif
