/* External tensor data: which file, and which bytes of it.
 *
 * A location is relative, without `..`, and is walked component by component without following symbolic
 * links. Where a link is met, the file it leads to is opened as a mere path (nothing is read, a fifo does not
 * block), its real path is taken from the kernel and must lie in the model's folder or in the further allowed
 * root; then that very file is read. Only regular files are mapped, each once. A hard link cannot be told
 * from the file itself: whoever can make one inside an allowed folder can already read its target. A file
 * that another process cuts short while it is mapped ends this process with SIGBUS. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include "core/import/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reference {
    const char *location;
    uint64_t offset;
    bool has_length;
    uint64_t length;
} reference;

static ent_status fail(const ent_importer *importer, const char *place, const char *rule,
                       const char *location, const char *text) {
    return ent_status_make(importer->arena, ENT_ERROR_MODEL, rule, place, "external data '%s' %s",
                           location ? location : "", text);
}

/* Digits only, as the format says; a sign, a space or more than 63 bits is refused. */
static bool parse_size(const char *text, uint64_t *out) {
    uint64_t value = 0;
    if (!*text) return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return false;
        if (value > ((uint64_t)INT64_MAX - (uint64_t)(*text - '0')) / 10) return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *out = value;
    return true;
}

static ent_status read_reference(const ent_importer *importer, const Onnx__TensorProto *proto,
                                 const char *place, reference *out) {
    bool has_offset = false;
    *out = (reference){0};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = proto->external_data[i]->key, *value = proto->external_data[i]->value;
        if (!key) key = "";
        if (!value) value = "";
        bool repeated = false, bad = false;
        if (strcmp(key, "location") == 0) {
            repeated = out->location != NULL;
            out->location = value;
        } else if (strcmp(key, "offset") == 0) {
            repeated = has_offset;
            has_offset = true;
            bad = !parse_size(value, &out->offset);
        } else if (strcmp(key, "length") == 0) {
            repeated = out->has_length;
            out->has_length = true;
            bad = !parse_size(value, &out->length);
        } /* "checksum" and what later versions add do not change which bytes are meant */
        if (repeated) return fail(importer, place, "external-data.repeated-key", key, "is given twice");
        if (bad && strcmp(key, "offset") == 0)
            return fail(importer, place, "external-data.offset", value,
                        "is no offset: it must be a number from 0 to 2^63-1");
        if (bad)
            return fail(importer, place, "external-data.length", value,
                        "is no length: it must be a number from 0 to 2^63-1");
    }
    if (!out->location || !out->location[0])
        return fail(importer, place, "external-data.no-location", NULL,
                    "names no file; add a location entry");
    return NULL;
}

static ent_status check_location(const ent_importer *importer, const char *place, const char *location) {
    if (location[0] == '/')
        return fail(importer, place, "external-data.absolute", location,
                    "is an absolute path; it must be relative to the model");
    for (const char *at = location; *at;) {
        size_t size = strcspn(at, "/");
        if (size == 2 && at[0] == '.' && at[1] == '.')
            return fail(importer, place, "external-data.escapes", location,
                        "contains '..'; it must stay in the model's folder");
        at += size;
        at += *at == '/';
    }
    return NULL;
}

/* Walks without following links. Returns a descriptor, -1 (errno set), or -2 where a link stands in the way.
 */
static int open_plain(int root, const char *location) {
    char name[NAME_MAX + 1];
    int folder = dup(root);
    for (const char *at = location; folder >= 0;) {
        size_t size = strcspn(at, "/");
        bool last = at[size] == 0;
        if (size > NAME_MAX || (last && size == 0)) {
            close(folder);
            errno = ENOENT;
            return -1;
        }
        memcpy(name, at, size);
        name[size] = 0;
        if (size == 0) memcpy(name, ".", 2);
        struct stat info;
        int next = -1;
        if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0) {
            if (S_ISLNK(info.st_mode))
                next = -2;
            else if (!last)
                next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            else if (!S_ISREG(info.st_mode))
                errno = EINVAL;
            else
                next = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        }
        int error = errno;
        close(folder);
        errno = error;
        if (last || next < 0) return next;
        folder = next;
        at += size + 1;
    }
    return -1;
}

static bool real_path_of(int descriptor, char *out, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, out, size - 1);
    if (length <= 0 || out[0] != '/') return false;
    out[length] = 0;
    return true;
}

static bool lies_in(int root, const char *path) {
    char folder[PATH_MAX];
    if (root < 0 || !real_path_of(root, folder, sizeof folder)) return false;
    size_t size = strlen(folder);
    if (size == 1) return true; /* the root of the file system */
    return strncmp(folder, path, size) == 0 && path[size] == '/';
}

/* Follows links. Returns a descriptor, -1 (errno set), or -2 when the target lies outside both roots. */
static int open_linked(int folder, int further, const char *location) {
    char target[PATH_MAX], link[64];
    struct stat info;
    int path = openat(folder, location, O_PATH | O_CLOEXEC);
    if (path < 0) return -1;
    int result = -1;
    if (!real_path_of(path, target, sizeof target) ||
        (!lies_in(folder, target) && !lies_in(further, target))) {
        result = -2;
    } else if (fstat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        errno = EINVAL;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", path);
        result = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    int error = errno;
    close(path);
    errno = error;
    return result;
}

static int open_in(int folder, int further, const char *location) {
    int descriptor = open_plain(folder, location);
    return descriptor == -2 ? open_linked(folder, further, location) : descriptor;
}

static ent_status open_location(const ent_importer *importer, const char *place, const char *location,
                                int *out) {
    const char *slash = strrchr(importer->path, '/');
    const char *folder_path =
        slash ? ent_arena_strndup(importer->scratch, importer->path, (size_t)(slash - importer->path) + 1)
              : ".";
    const char *further_path = importer->options.external_data_root;
    int folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int further = further_path ? open(further_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int descriptor = folder < 0 ? -1 : open_in(folder, further, location);
    if (descriptor == -1 && errno == ENOENT && further >= 0) descriptor = open_in(further, folder, location);
    int error = errno;
    if (folder >= 0) close(folder);
    if (further >= 0) close(further);
    if (descriptor == -2)
        return fail(importer, place, "external-data.escapes", location,
                    "is a symbolic link out of the allowed folders; move the file, or allow its folder with "
                    "--external-data-root");
    if (descriptor < 0 && (error == EINVAL || error == ELOOP))
        return fail(importer, place, "external-data.not-a-file", location, "is not a regular file");
    if (descriptor < 0 && (error == ENOENT || error == ENOTDIR))
        return fail(importer, place, "external-data.missing", location, "does not exist beside the model");
    if (descriptor < 0) return fail(importer, place, "external-data.unreadable", location, strerror(error));
    *out = descriptor;
    return NULL;
}

static ent_status map_once(ent_importer *importer, const char *place, const char *location, int descriptor,
                           const ent_file_map **out) {
    struct stat info;
    if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode))
        return fail(importer, place, "external-data.not-a-file", location, "is not a regular file");
    for (uint32_t i = 1; i < importer->files->maps.count; i++) {
        const ent_import_mapped *mapped = &importer->files->maps.items[i];
        if (mapped->device == (uint64_t)info.st_dev && mapped->inode == (uint64_t)info.st_ino) {
            *out = &mapped->map;
            return NULL;
        }
    }
    ent_import_mapped mapped = {.device = (uint64_t)info.st_dev, .inode = (uint64_t)info.st_ino};
    ENT_TRY(ent_file_map_descriptor(importer->arena, descriptor, location, ENT_ERROR_MODEL, &mapped.map));
    ent_array_push(importer->arena, &importer->files->maps, mapped);
    *out = &importer->files->maps.items[importer->files->maps.count - 1].map;
    return NULL;
}

ent_status ent_import_external(ent_importer *importer, const Onnx__TensorProto *proto, const char *place,
                               uint64_t size_bytes, const uint8_t **out_data) {
    reference from;
    int descriptor = -1;
    const ent_file_map *map = NULL;
    ENT_TRY(read_reference(importer, proto, place, &from));
    ENT_TRY(check_location(importer, place, from.location));
    if (from.has_length && from.length != size_bytes)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "external-data.length", place,
                               "external data '%s' has length %llu, but dtype and dimensions need %llu bytes",
                               from.location, (unsigned long long)from.length,
                               (unsigned long long)size_bytes);
    ENT_TRY(open_location(importer, place, from.location, &descriptor));
    ent_status status = map_once(importer, place, from.location, descriptor, &map);
    close(descriptor);
    ENT_TRY(status);
    if (from.offset > map->size_bytes || size_bytes > map->size_bytes - from.offset)
        return ent_status_make(
            importer->arena, ENT_ERROR_MODEL, "external-data.past-end", place,
            "external data '%s' has %llu bytes; offset %llu and %llu bytes run past its end", from.location,
            (unsigned long long)map->size_bytes, (unsigned long long)from.offset,
            (unsigned long long)size_bytes);
    if (!from.has_length && from.offset == 0 && size_bytes != map->size_bytes)
        return ent_status_make(
            importer->arena, ENT_ERROR_MODEL, "external-data.length", place,
            "external data '%s' has %llu bytes without a length entry, but dtype and dimensions need %llu",
            from.location, (unsigned long long)map->size_bytes, (unsigned long long)size_bytes);
    *out_data = map->data ? map->data + from.offset : (const uint8_t *)"";
    return NULL;
}
