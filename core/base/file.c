#include "core/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_LIMIT_BYTES ((uint64_t)16 << 30)
#define FIRST_READ_BYTES ((size_t)4096)

static ent_status not_regular(ent_arena *arena, const char *path, ent_error_code code) {
    return ent_status_make(arena, code, "file.not-regular", path, "this is not a regular file; name one");
}

static ent_status check_regular(ent_arena *arena, int descriptor, const char *path, ent_error_code code,
                                uint64_t *out_size_bytes) {
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return ent_status_make(arena, code, "file.read", path, "cannot read the file: %s", strerror(errno));
    if (!S_ISREG(info.st_mode)) return not_regular(arena, path, code);
    *out_size_bytes = (uint64_t)info.st_size;
    return NULL;
}

static ent_status open_regular(ent_arena *arena, const char *path, ent_error_code code, int *out_descriptor,
                               uint64_t *out_size_bytes) {
    /* Without NONBLOCK, opening a FIFO would wait for a writer before it can be refused. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return ent_status_make(arena, code, "file.open", path, "cannot open the file: %s", strerror(errno));
    ent_status status = check_regular(arena, descriptor, path, code, out_size_bytes);
    if (status)
        close(descriptor);
    else
        *out_descriptor = descriptor;
    return status;
}

static ent_status too_large(ent_arena *arena, const char *path, uint64_t limit_bytes) {
    return ent_status_make(arena, ENT_ERROR_LIMIT, "file.too-large", path,
                           "the file has more than %llu bytes, which is the limit here",
                           (unsigned long long)limit_bytes);
}

/* Reads to the end and not to the size, which is 0 for files that the kernel makes up and may change
 * meanwhile. */
static ent_status read_to_end(ent_arena *arena, int descriptor, const char *path, ent_error_code code,
                              uint64_t limit_bytes, size_t capacity, ent_str *out) {
    char *data = ent_arena_array(arena, capacity, 1);
    size_t size = 0;
    if (!data) return ent_status_out_of_memory();
    for (;;) {
        if (size + 1 == capacity) {
            size_t larger = capacity + capacity / 2 + FIRST_READ_BYTES;
            char *moved = data;
            if (!ent_arena_extend(arena, data, capacity, larger)) {
                moved = ent_arena_array(arena, larger, 1);
                if (!moved) return ent_status_out_of_memory();
                memcpy(moved, data, size);
            }
            data = moved;
            capacity = larger;
        }
        ssize_t count = read(descriptor, data + size, capacity - size - 1);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0)
            return ent_status_make(arena, code, "file.read", path, "cannot read the file: %s",
                                   strerror(errno));
        if (count == 0) break;
        size += (size_t)count;
        if (size > limit_bytes) return too_large(arena, path, limit_bytes);
    }
    data[size] = '\0';
    *out = (ent_str){data, size};
    return NULL;
}

ent_status ent_file_read(ent_arena *arena, const char *path, ent_error_code code, uint64_t limit_bytes,
                         ent_str *out) {
    int descriptor;
    uint64_t size_bytes;
    if (limit_bytes == 0) limit_bytes = DEFAULT_LIMIT_BYTES;
    ENT_TRY(open_regular(arena, path, code, &descriptor, &size_bytes));
    ent_status status;
    if (size_bytes > limit_bytes)
        status = too_large(arena, path, limit_bytes);
    else /* two more: the NUL, and a byte that lets the last read see the end without growing */
        status = read_to_end(arena, descriptor, path, code, limit_bytes,
                             size_bytes ? (size_t)size_bytes + 2 : FIRST_READ_BYTES, out);
    close(descriptor);
    return status;
}

ent_status ent_file_map_descriptor(ent_arena *arena, int descriptor, const char *path, ent_error_code code,
                                   ent_file_map *out) {
    uint64_t size_bytes;
    ENT_TRY(check_regular(arena, descriptor, path, code, &size_bytes));
    *out = (ent_file_map){NULL, 0};
    if (size_bytes == 0) return NULL;
    if (size_bytes > PTRDIFF_MAX) return too_large(arena, path, PTRDIFF_MAX);
    void *data = mmap(NULL, (size_t)size_bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
        if (errno == ENOMEM) return ent_status_out_of_memory();
        return ent_status_make(arena, code, "file.read", path, "cannot map the file: %s", strerror(errno));
    }
    *out = (ent_file_map){data, size_bytes};
    return NULL;
}

ent_status ent_file_map_open(ent_arena *arena, const char *path, ent_error_code code, ent_file_map *out) {
    int descriptor;
    uint64_t size_bytes;
    ENT_TRY(open_regular(arena, path, code, &descriptor, &size_bytes));
    ent_status status = ent_file_map_descriptor(arena, descriptor, path, code, out);
    close(descriptor);
    return status;
}

void ent_file_map_close(ent_file_map *map) {
    /* munmap takes no const. */
    if (map->data) munmap((void *)(uintptr_t)map->data, (size_t)map->size_bytes);
    *map = (ent_file_map){NULL, 0};
}
