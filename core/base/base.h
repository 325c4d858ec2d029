/* The folder's one header: status, arena, array, map, string, log, files. Depends on abi/ only.
 *
 * Memory: objects live in an arena and are freed with it. Only base/arena.c and the runtime call malloc. An
 * arena is used by one thread at a time.
 *
 * Running out of memory. Sizes that a file, a user or a plugin chooses go through ent_arena_array, which
 * returns NULL when the arena's limit or the machine is exhausted; the caller then returns
 * ent_status_out_of_memory(). Everything else here (alloc, copy, strings, push, map, text) asks for small
 * pieces and never returns NULL: past the limit they still succeed and turn ent_arena_failed true, which
 * ent_arena_check turns into an error: long work calls it for every node it looks at; when the machine itself
 * has nothing left they print one line and abort. */
#ifndef ENT_BASE_H
#define ENT_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "abi/ent_types.h"

/* ---- arena ---- */

typedef struct ent_arena ent_arena;
typedef struct ent_arena_mark {
    void *block;
    size_t used;
} ent_arena_mark;

/* What one piece of work, such as a compilation, may use over all its arenas. Zeroed: no limits. Outlives
 * them. */
typedef struct ent_budget {
    uint64_t limit_bytes; /* 0: no limit */
    uint64_t deadline_ns; /* of ent_time_ns; 0: none */
    uint64_t seconds;     /* what the deadline came from, for its message */
    uint64_t used_bytes;
    bool failed; /* the limit or the machine was exhausted once */
} ent_budget;

/* limit_bytes bounds ent_arena_used_bytes; 0: no limit. NULL when out of memory. */
ent_arena *ent_arena_create(size_t limit_bytes);
ent_arena *ent_arena_create_within(ent_budget *budget);
/* An empty arena under the budget that `arena` shares; without a limit if it shares none. */
ent_arena *ent_arena_create_beside(const ent_arena *arena);
void ent_arena_destroy(ent_arena *arena); /* NULL is fine */
/* 16-byte aligned, zeroed; size 0 is fine. Never NULL (see "Running out of memory"). For sizes that our own
 * code bounds. */
void *ent_arena_alloc(ent_arena *arena, size_t size_bytes);
/* The same for count * size_bytes, for sizes from outside: NULL when the product overflows, or the limit or
 * the machine is exhausted (the arena then counts as failed). count 0 gives a pointer that is not NULL. */
void *ent_arena_array(ent_arena *arena, size_t count, size_t size_bytes);
/* True if `data`, the newest allocation, could grow in place from old_bytes to new_bytes; the new part is
 * zeroed. */
bool ent_arena_extend(ent_arena *arena, void *data, size_t old_bytes, size_t new_bytes);
void *ent_arena_copy(ent_arena *arena, const void *data, size_t size_bytes);
/* Grows the one buffer of a writer that doubles it, in the form that ent_message_writer.grow wants: context
 * is an ent_arena_growth with size 0 at first. What it leaves behind in the arena is at most the final size
 * again. NULL as ent_arena_array. */
typedef struct ent_arena_growth {
    ent_arena *arena;
    size_t size;
} ent_arena_growth;
void *ent_arena_grow(void *context, void *old, size_t size_bytes);
char *ent_arena_strdup(ent_arena *arena, const char *text);
char *ent_arena_strndup(ent_arena *arena, const char *text, size_t size);
char *ent_arena_format(ent_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *ent_arena_format_list(ent_arena *arena, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* restore frees everything allocated since save; marks are restored in reverse order. What restore frees must
 * not be used, nor may an older array, map or text that grew in between. */
ent_arena_mark ent_arena_save(const ent_arena *arena);
void ent_arena_restore(ent_arena *arena, ent_arena_mark mark);
size_t ent_arena_used_bytes(const ent_arena *arena);
size_t ent_arena_left_bytes(const ent_arena *arena);    /* of its budget; SIZE_MAX: no limit */
bool ent_arena_failed(const ent_arena *arena);          /* the limit or the machine was exhausted once */
uint64_t ent_arena_deadline_ns(const ent_arena *arena); /* of its budget; 0: none */

/* ---- status ---- */

/* The project's error codes; they are the CLI's exit codes. */
typedef enum ent_error_code {
    ENT_ERROR_NONE = 0,
    ENT_ERROR_USAGE = 1,
    ENT_ERROR_MODEL = 2,
    ENT_ERROR_UNSUPPORTED = 3,
    ENT_ERROR_DEVICE = 4,
    ENT_ERROR_MISMATCH = 5,
    ENT_ERROR_LIMIT = 6,
    ENT_ERROR_INTERNAL = 7
} ent_error_code;

/* NULL is success. `place` says where (file, node, flag), `rule` is a short stable id such as
 * "external-data.escapes", `text` one sentence that says what is wrong and what to do. Lives in the arena
 * given when it was made; `rule` is a literal and is not copied, `place` is copied and may be NULL. */
typedef struct ent_status_data {
    ent_error_code code;
    const char *rule;
    const char *place;
    const char *text;
} ent_status_data;
typedef const ent_status_data *ent_status;

#define ENT_TRY(expression)                                                                                  \
    do {                                                                                                     \
        ent_status ent_try_status = (expression);                                                            \
        if (ent_try_status) return ent_try_status;                                                           \
    } while (0)

ent_status ent_status_make(ent_arena *arena, ent_error_code code, const char *rule, const char *place,
                           const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Static out-of-memory status (code LIMIT, rule "memory.exhausted"). */
ent_status ent_status_out_of_memory(void);
/* NULL while the arena's budget holds. Else code LIMIT, rule "limit.memory" or "limit.time". Nothing but this
 * error may depend on the time. */
ent_status ent_arena_check(ent_arena *arena, const char *place);
/* "place: text [rule]" into a string of the arena; without "place: " if it is empty. Success gives "ok". */
const char *ent_status_text(ent_arena *arena, ent_status status);

/* ---- growable arrays in an arena ---- */

/* ENT_ARRAY(T) declares {items, count, capacity}. Push copies into fresh arena room when full (old room is
 * left to the arena), so a pointer to an item is good until the next push. Start from zeroed memory. */
#define ENT_ARRAY(type)                                                                                      \
    struct {                                                                                                 \
        type *items;                                                                                         \
        uint32_t count;                                                                                      \
        uint32_t capacity;                                                                                   \
    }
void *ent_array_grow(ent_arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t item_bytes);
#define ent_array_push(arena, array, value)                                                                  \
    do {                                                                                                     \
        if ((array)->count == (array)->capacity)                                                             \
            (array)->items = ent_array_grow((arena), (array)->items, (array)->count, &(array)->capacity,     \
                                            sizeof *(array)->items);                                         \
        (array)->items[(array)->count++] = (value);                                                          \
    } while (0)

/* ---- map: string or u64 key -> u64 value, open addressing, insertion order kept for iteration ---- */

typedef struct ent_map ent_map;
ent_map *ent_map_create(ent_arena *arena);
/* String keys are copied; string and u64 keys never equal each other. set overwrites. find returns false if
 * absent; out_value may be NULL. */
void ent_map_set(ent_map *map, const char *key, uint64_t value);
bool ent_map_find(const ent_map *map, const char *key, uint64_t *out_value);
void ent_map_set_u64(ent_map *map, uint64_t key, uint64_t value);
bool ent_map_find_u64(const ent_map *map, uint64_t key, uint64_t *out_value);
uint32_t ent_map_count(const ent_map *map);
/* Entries in the order of their first set, index < count. key is NULL for a u64 key. */
typedef struct ent_map_entry {
    const char *key;
    uint64_t key_u64;
    uint64_t value;
} ent_map_entry;
ent_map_entry ent_map_at(const ent_map *map, uint32_t index);

/* ---- text building ---- */

/* Appends to a growing, NUL-terminated string of the arena; data is "" from the start. */
typedef struct ent_text {
    ent_arena *arena;
    char *data;
    size_t size;
    size_t capacity;
} ent_text;
void ent_text_init(ent_text *text, ent_arena *arena);
void ent_text_add(ent_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ent_text_add_bytes(ent_text *text, const char *data, size_t size);
/* JSON string with quotes and escapes; invalid UTF-8 becomes U+FFFD. */
void ent_text_add_json_string(ent_text *text, const char *data, size_t size);
/* Fewest digits of a correctly rounded decimal that parses back to the same double (or float when is_float);
 * nan, inf, -inf as such. The same in every locale. */
void ent_text_add_number(ent_text *text, double value, bool is_float);

/* ---- text scanning (for the text forms) ---- */

/* A cursor with line counting; `#` starts a comment to the end of the line. The text need not end in NUL and
 * must outlive the cursor. Errors have code MODEL, rule "text.syntax" and place "file:line"; the cursor then
 * stays where the error is. */
typedef struct ent_scan {
    const char *start, *at, *end;
    const char *file;
    uint32_t line;
    ent_arena *arena;
} ent_scan;
void ent_scan_init(ent_scan *scan, ent_arena *arena, const char *file, const char *text, size_t size);
void ent_scan_skip(ent_scan *scan); /* white space and comments */
bool ent_scan_done(ent_scan *scan); /* skips first */
/* Literal token, after skipping. A token that is a word of two or more letters must end where the word in the
 * text ends
 * ("node" does not accept "nodes"); any other token, such as "%" or "v", accepts whatever follows. */
bool ent_scan_accept(ent_scan *scan, const char *token);
ent_status ent_scan_expect(ent_scan *scan, const char *token);
/* [A-Za-z_][A-Za-z0-9_.]* copied to the arena; NULL, and nothing consumed but white space, if none is here.
 */
const char *ent_scan_word(ent_scan *scan);
/* "..." with \n \t \r \" \\ \xNN, on one line; copied to the arena, NUL-terminated there. */
ent_status ent_scan_string(ent_scan *scan, ent_str *out);
ent_status ent_scan_int(ent_scan *scan, int64_t *out); /* decimal, signed; refuses what does not fit */
ent_status ent_scan_number(ent_scan *scan,
                           double *out); /* what strtod takes in the C locale, nan and inf included */
ent_status ent_scan_error(ent_scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- log: stderr, one line each; level from -v. Any thread. Control characters become spaces. ---- */

typedef enum ent_log_level {
    ENT_LOG_ERROR = 0,
    ENT_LOG_WARNING = 1,
    ENT_LOG_INFO = 2,
    ENT_LOG_DEBUG = 3
} ent_log_level;
void ent_log_set_level(ent_log_level level);
bool ent_log_enabled(ent_log_level level);
void ent_log(ent_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Where lines go instead of stderr; process-wide. The struct is the caller's and stays until another is set.
 * NULL: stderr. */
typedef struct ent_log_sink {
    void (*write)(void *context, int level, const char *text); /* one line without its end; any thread */
    void *context;
} ent_log_sink;
void ent_log_set_sink(const ent_log_sink *sink);
/* Takes `sink` away if it is the one in use. */
void ent_log_clear_sink(const ent_log_sink *sink);

/* ---- files ---- */

/* Whole file in the arena, NUL-terminated after out->size. place of errors is the path; code is `code`; rules
 * are "file.open", "file.not-regular", "file.too-large" (code LIMIT), "file.read". Refuses non-regular files
 * and files over limit_bytes (0: 16 GiB). */
ent_status ent_file_read(ent_arena *arena, const char *path, ent_error_code code, uint64_t limit_bytes,
                         ent_str *out);
/* Read-only map of a regular file, private to this process; errors as above. An empty file gives data NULL,
 * size 0. Reading past the end of a file that somebody shortens meanwhile raises SIGBUS, as every map does.
 */
typedef struct ent_file_map {
    const uint8_t *data;
    uint64_t size_bytes;
} ent_file_map;
ent_status ent_file_map_open(ent_arena *arena, const char *path, ent_error_code code, ent_file_map *out);
/* The same for an open descriptor, which stays the caller's. */
ent_status ent_file_map_descriptor(ent_arena *arena, int descriptor, const char *path, ent_error_code code,
                                   ent_file_map *out);
void ent_file_map_close(ent_file_map *map); /* a zeroed or closed map is fine */
/* Atomic: temporary file in the same folder, fsync, rename; on failure nothing is left and an older file
 * stays as it was. chunks are written in order. A symbolic link is followed; a target that exists and is no
 * regular file is refused. Errors: rule "file.not-regular" or "file.write", code USAGE, or LIMIT when the
 * disk or a quota is full. */
typedef struct ent_file_chunk {
    const void *data;
    uint64_t size_bytes;
} ent_file_chunk;
ent_status ent_file_write_atomic(ent_arena *arena, const char *path, const ent_file_chunk *chunks,
                                 size_t count);

/* ---- hashes and time ---- */

typedef struct ent_hash128 {
    uint64_t low, high;
} ent_hash128;
ent_hash128 ent_hash_bytes(const void *data, size_t size); /* XXH3-128 */
uint64_t ent_hash_u64(const void *data, size_t size);      /* XXH3-64 */
uint64_t ent_time_ns(void);                                /* monotonic */

/* Checked arithmetic on int64; false on overflow. */
bool ent_mul_i64(int64_t a, int64_t b, int64_t *out);
bool ent_add_i64(int64_t a, int64_t b, int64_t *out);

#endif
