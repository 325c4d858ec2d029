#include "core/base/base.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY ((size_t)64)

void ent_text_init(ent_text *text, ent_arena *arena) {
    *text = (ent_text){arena, ent_arena_alloc(arena, FIRST_CAPACITY), 0, FIRST_CAPACITY};
}

/* Room for `size` more bytes and the NUL. */
static void reserve(ent_text *text, size_t size) {
    size_t needed;
    if (__builtin_add_overflow(text->size, size, &needed) || needed > (size_t)PTRDIFF_MAX / 2) {
        fputs("entente: error: out of memory: a text grew past what a pointer can span\n", stderr);
        abort();
    }
    needed++;
    if (needed <= text->capacity) return;
    size_t capacity = text->capacity * 2 > needed ? text->capacity * 2 : needed;
    if (!ent_arena_extend(text->arena, text->data, text->capacity, capacity)) {
        char *data = ent_arena_alloc(text->arena, capacity);
        memcpy(data, text->data, text->size + 1);
        text->data = data;
    }
    text->capacity = capacity;
}

void ent_text_add_bytes(ent_text *text, const char *data, size_t size) {
    if (size == 0) return;
    reserve(text, size);
    memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void ent_text_add(ent_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    size_t room = text->capacity - text->size;
    int length = vsnprintf(text->data + text->size, room, format, arguments);
    if (length >= 0 && (size_t)length >= room) {
        text->data[text->size] = '\0'; /* drops the cut attempt before the text moves */
        reserve(text, (size_t)length);
        length = vsnprintf(text->data + text->size, text->capacity - text->size, format, again);
    }
    if (length > 0) text->size += (size_t)length;
    text->data[text->size] = '\0';
    va_end(again);
    va_end(arguments);
}

/* Length of the well-formed UTF-8 sequence at data, 0 if there is none (overlong, surrogate, too large, cut).
 */
static size_t utf8_length(const unsigned char *data, size_t size) {
    unsigned char first = data[0];
    if (first < 0x80) return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((data[i] & 0xc0) != 0x80) return 0;
    if (first == 0xe0 && data[1] < 0xa0) return 0; /* overlong */
    if (first == 0xed && data[1] > 0x9f) return 0; /* surrogate */
    if (first == 0xf0 && data[1] < 0x90) return 0; /* overlong */
    if (first == 0xf4 && data[1] > 0x8f) return 0; /* past U+10FFFF */
    return length;
}

static void add_json_control(ent_text *text, unsigned char byte) {
    static const char *const short_forms[0x20] = {
        ['\b'] = "\\b", ['\f'] = "\\f", ['\n'] = "\\n", ['\r'] = "\\r", ['\t'] = "\\t"};
    if (short_forms[byte])
        ent_text_add_bytes(text, short_forms[byte], 2);
    else
        ent_text_add(text, "\\u%04x", byte);
}

void ent_text_add_json_string(ent_text *text, const char *data, size_t size) {
    const unsigned char *bytes = (const unsigned char *)data;
    size_t plain = 0; /* start of the run that is copied as it is */
    ent_text_add_bytes(text, "\"", 1);
    for (size_t i = 0; i < size;) {
        unsigned char byte = bytes[i];
        size_t length = utf8_length(bytes + i, size - i);
        if (length && byte >= 0x20 && byte != '"' && byte != '\\') {
            i += length;
            continue;
        }
        ent_text_add_bytes(text, data + plain, i - plain);
        if (!length)
            ent_text_add_bytes(text, "\xef\xbf\xbd", 3);
        else if (byte < 0x20)
            add_json_control(text, byte);
        else
            ent_text_add(text, "\\%c", byte);
        plain = ++i;
    }
    if (size > plain) ent_text_add_bytes(text, data + plain, size - plain);
    ent_text_add_bytes(text, "\"", 1);
}

/* Replaces the locale's decimal mark, which may be several bytes, by a point. */
static void use_point(char *number) {
    char *to = number;
    bool in_mark = false;
    for (const char *from = number; *from; from++) {
        bool kept = strchr("0123456789+-e", *from) != NULL;
        if (kept)
            *to++ = *from;
        else if (!in_mark)
            *to++ = '.';
        in_mark = !kept;
    }
    *to = '\0';
}

void ent_text_add_number(ent_text *text, double value, bool is_float) {
    if (is_float) value = (float)value;
    if (isnan(value)) {
        ent_text_add_bytes(text, "nan", 3);
        return;
    }
    if (isinf(value)) {
        ent_text_add(text, "%sinf", value < 0 ? "-" : "");
        return;
    }
    /* Up to FLT_DIG or DBL_DIG digits survive a round trip and %g drops trailing zeros, so fewer need no try
     * of their own; subnormal numbers have less precision than that. */
    bool normal = value == 0 || fabs(value) >= (is_float ? (double)FLT_MIN : DBL_MIN);
    int last = is_float ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    char number[64];
    for (int digits = !normal ? 1 : is_float ? FLT_DIG : DBL_DIG; digits <= last; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        double back = is_float ? (double)strtof(number, NULL) : strtod(number, NULL);
        if (back == value) break;
    }
    use_point(number);
    ent_text_add_bytes(text, number, strlen(number));
}
