#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l: numbers must not depend on the application's locale */
#endif
#include "core/base/base.h"

#include <errno.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any number that anybody prints: the smallest double in full has about 1080 characters. */
#define NUMBER_BYTES 1200

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_word_rest(char c) {
    return is_letter(c) || is_digit(c) || c == '.';
}

void ent_scan_init(ent_scan *scan, ent_arena *arena, const char *file, const char *text, size_t size) {
    *scan = (ent_scan){text, text, text ? text + size : text, file, 1, arena};
}

void ent_scan_skip(ent_scan *scan) {
    for (; scan->at < scan->end; scan->at++) {
        char c = *scan->at;
        if (c == '\n') {
            scan->line++;
        } else if (c == '#') {
            const char *newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));
            scan->at = newline ? newline - 1 : scan->end - 1;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

bool ent_scan_done(ent_scan *scan) {
    ent_scan_skip(scan);
    return scan->at == scan->end;
}

static size_t word_length(const char *at, const char *end) {
    const char *stop = at;
    if (stop < end && is_letter(*stop))
        while (stop < end && is_word_rest(*stop)) stop++;
    return (size_t)(stop - at);
}

bool ent_scan_accept(ent_scan *scan, const char *token) {
    ent_scan_skip(scan);
    size_t length = strlen(token);
    if (length > (size_t)(scan->end - scan->at)) return false;
    if (length && memcmp(scan->at, token, length) != 0) return false;
    bool is_word = length >= 2 && word_length(token, token + length) == length;
    if (is_word && word_length(scan->at, scan->end) != length) return false;
    scan->at += length;
    return true;
}

/* What stands at the cursor, short enough for a message. */
static const char *describe_here(ent_scan *scan) {
    ent_scan_skip(scan);
    if (scan->at == scan->end) return "the end of the text";
    size_t length = 0;
    while (length < 24 && length < (size_t)(scan->end - scan->at) && (unsigned char)scan->at[length] > ' ')
        length++;
    ent_text text;
    ent_text_init(&text, scan->arena);
    ent_text_add_json_string(&text, scan->at, length ? length : 1);
    return text.data;
}

ent_status ent_scan_error(ent_scan *scan, const char *format, ...) {
    const char *place = ent_arena_format(scan->arena, "%s:%u", scan->file, (unsigned)scan->line);
    va_list arguments;
    va_start(arguments, format);
    const char *text = ent_arena_format_list(scan->arena, format, arguments);
    va_end(arguments);
    return ent_status_make(scan->arena, ENT_ERROR_MODEL, "text.syntax", place, "%s", text);
}

/* Skips first, so that the line is that of what was found; hence the separate statement. */
static ent_status expected(ent_scan *scan, const char *what) {
    const char *found = describe_here(scan);
    return ent_scan_error(scan, "expected %s, found %s", what, found);
}

ent_status ent_scan_expect(ent_scan *scan, const char *token) {
    if (ent_scan_accept(scan, token)) return NULL;
    return expected(scan, ent_arena_format(scan->arena, "\"%s\"", token));
}

const char *ent_scan_word(ent_scan *scan) {
    ent_scan_skip(scan);
    size_t length = word_length(scan->at, scan->end);
    if (length == 0) return NULL;
    const char *word = ent_arena_strndup(scan->arena, scan->at, length);
    scan->at += length;
    return word;
}

static int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* The byte that the escape after a backslash means; moves *at past it. -1: no such escape. */
static int read_escape(const char **at, const char *end) {
    static const char letters[] = "ntr\"\\", bytes[] = "\n\t\r\"\\";
    if (*at == end) return -1;
    char c = *(*at)++;
    if (c == 'x' && end - *at >= 2 && hex_digit((*at)[0]) >= 0 && hex_digit((*at)[1]) >= 0) {
        int byte = hex_digit((*at)[0]) * 16 + hex_digit((*at)[1]);
        *at += 2;
        return byte;
    }
    const char *letter = c ? strchr(letters, c) : NULL;
    return letter ? bytes[letter - letters] : -1;
}

/* The closing quote of a string whose content starts at `at`; NULL if the line or the text ends first. */
static const char *closing_quote(const char *at, const char *end) {
    for (; at < end && *at != '\n'; at++) {
        if (*at == '"') return at;
        if (*at == '\\' && at + 1 < end && at[1] != '\n') at++;
    }
    return NULL;
}

ent_status ent_scan_string(ent_scan *scan, ent_str *out) {
    ent_scan_skip(scan);
    if (scan->at == scan->end || *scan->at != '"') return expected(scan, "a string in double quotes");
    const char *at = scan->at + 1;
    const char *end = closing_quote(at, scan->end);
    if (!end)
        return ent_scan_error(scan, "the string has no closing quote on its line; write a line break as \\n");
    char *data = ent_arena_array(scan->arena, (size_t)(end - at) + 1, 1);
    if (!data) return ent_status_out_of_memory();
    size_t size = 0;
    while (at < end) {
        if (*at != '\\') {
            data[size++] = *at++;
            continue;
        }
        at++;
        int byte = read_escape(&at, end);
        if (byte < 0)
            return ent_scan_error(
                scan, "unknown escape in a string; use \\n, \\t, \\r, \\\", \\\\ or \\x and two hex digits");
        data[size++] = (char)byte;
    }
    *out = (ent_str){data, size};
    scan->at = end + 1;
    return NULL;
}

/* Length of the number-like token at the cursor: "-12", "0x1f", "1.5e-3", "-inf". A sign is part of it only
 * at the start and after an exponent's letter. */
static size_t number_length(const ent_scan *scan) {
    size_t available = (size_t)(scan->end - scan->at), length = 0;
    const char *at = scan->at;
    bool is_hex = false;
    for (; length < available; length++) {
        char c = at[length];
        if (c == 'x' || c == 'X') {
            if (length == 0 || at[length - 1] != '0' || is_hex) break;
            is_hex = true;
            continue;
        }
        if (is_word_rest(c) && c != '_') continue;
        if (c != '+' && c != '-') break;
        char before = length ? at[length - 1] : ' ';
        bool exponent = is_hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
        if (length && !exponent) break;
    }
    return length;
}

ent_status ent_scan_int(ent_scan *scan, int64_t *out) {
    ent_scan_skip(scan);
    const char *at = scan->at, *end = scan->end;
    bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    int64_t value = 0;
    const char *first = at;
    for (; at < end && is_digit(*at); at++) {
        int digit = *at - '0';
        /* Built towards the sign, so that INT64_MIN fits. */
        if (!ent_mul_i64(value, 10, &value) || !ent_add_i64(value, negative ? -digit : digit, &value))
            return ent_scan_error(scan, "the integer does not fit in 64 bits");
    }
    if (at == first) return expected(scan, "an integer");
    *out = value;
    scan->at = at;
    return NULL;
}

/* Made once and never freed. Two threads may race to make it; the later one drops its own. */
static locale_t c_locale(void) {
    static _Atomic(locale_t) shared;
    locale_t locale = atomic_load(&shared);
    if (locale) return locale;
    locale_t none = (locale_t)0, made = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (atomic_compare_exchange_strong(&shared, &none, made)) return made;
    freelocale(made);
    return none;
}

ent_status ent_scan_number(ent_scan *scan, double *out) {
    ent_scan_skip(scan);
    char number[NUMBER_BYTES];
    size_t length = number_length(scan);
    if (length == 0) return expected(scan, "a number");
    if (length >= sizeof number)
        return ent_scan_error(scan, "the number has more than %d characters", NUMBER_BYTES - 1);
    memcpy(number, scan->at, length);
    number[length] = '\0';
    char *stop;
    double value = strtod_l(number, &stop, c_locale());
    /* What follows the number, such as the x of 2x3, is left to the caller. */
    if (stop == number) return expected(scan, "a number");
    *out = value;
    scan->at += stop - number;
    return NULL;
}
