/* Atomic file writing: readers see the old file or the whole new one. */
#include "core/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_TRIES 100
/* One write call takes at most 2 GiB on Linux. */
#define WRITE_BYTES ((uint64_t)1 << 30)

static ent_status write_error(ent_arena *arena, const char *path, const char *what, int error) {
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    return ent_status_make(arena, full ? ENT_ERROR_LIMIT : ENT_ERROR_USAGE, "file.write", path,
                           "cannot %s: %s", what, strerror(error));
}

/* The path to replace: links are followed, since renaming over a link such as /dev/stdout would destroy it.
 */
static ent_status resolve_target(ent_arena *arena, const char *path, const char **out_target) {
    struct stat info;
    *out_target = path;
    if (lstat(path, &info) != 0) {
        if (errno == ENOENT) return NULL;
        return write_error(arena, path, "look at the file to write", errno);
    }
    if (S_ISLNK(info.st_mode)) {
        char resolved[PATH_MAX];
        if (!realpath(path, resolved) || stat(resolved, &info) != 0)
            return write_error(arena, path, "follow the link to the file to write", errno);
        *out_target = ent_arena_strdup(arena, resolved);
    }
    if (!S_ISREG(info.st_mode))
        return ent_status_make(arena, ENT_ERROR_USAGE, "file.not-regular", path,
                               "exists and is not a regular file; name another one to write to");
    return NULL;
}

/* mkstemp would give mode 0600 whatever the user's umask says. */
static int create_temporary(ent_arena *arena, const char *target, const char **out_path) {
    static atomic_uint counter;
    const char *slash = strrchr(target, '/');
    int folder_length = slash ? (int)(slash - target) + 1 : 0;
    for (int i = 0; i < NAME_TRIES; i++) {
        unsigned number = atomic_fetch_add(&counter, 1);
        *out_path =
            ent_arena_format(arena, "%.*s.entente-%ld-%u.tmp", folder_length, target, (long)getpid(), number);
        int descriptor = open(*out_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

/* 0 or errno. */
static int write_chunk(int descriptor, const ent_file_chunk *chunk) {
    const char *data = chunk->data;
    for (uint64_t left = chunk->size_bytes; left > 0;) {
        ssize_t count = write(descriptor, data, (size_t)(left < WRITE_BYTES ? left : WRITE_BYTES));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        data += count;
        left -= (uint64_t)count;
    }
    return 0;
}

static int write_and_close(int descriptor, const ent_file_chunk *chunks, size_t count) {
    int error = 0;
    for (size_t i = 0; i < count && !error; i++) error = write_chunk(descriptor, &chunks[i]);
    if (!error && fsync(descriptor) != 0) error = errno;
    if (close(descriptor) != 0 && !error) error = errno;
    return error;
}

/* Makes the rename itself last through a power cut. The file is complete either way, so a failure is none of
 * the caller's. */
static void sync_folder(ent_arena *arena, const char *target) {
    const char *slash = strrchr(target, '/');
    size_t length = slash ? (slash == target ? 1 : (size_t)(slash - target)) : 0;
    const char *folder = slash ? ent_arena_strndup(arena, target, length) : ".";
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    fsync(descriptor);
    close(descriptor);
}

ent_status ent_file_write_atomic(ent_arena *arena, const char *path, const ent_file_chunk *chunks,
                                 size_t count) {
    const char *target, *temporary;
    ENT_TRY(resolve_target(arena, path, &target));
    int descriptor = create_temporary(arena, target, &temporary);
    if (descriptor < 0) return write_error(arena, path, "create a file in that folder", errno);
    int error = write_and_close(descriptor, chunks, count);
    if (!error && rename(temporary, target) != 0) error = errno;
    if (error) {
        unlink(temporary);
        return write_error(arena, path, "write the file", error);
    }
    sync_folder(arena, target);
    return NULL;
}
