/* Checked reading of a JSON document with places as JSON pointers. Inside core/capability only. */
#ifndef ENT_CAPABILITY_READER_H
#define ENT_CAPABILITY_READER_H

#include <cjson/cJSON.h>

#include "core/capability/capability.h"

/* One object being read: fields are fetched by name, and finish refuses those nobody asked for. */
typedef struct ent_reader {
    ent_arena *arena;
    const char *document; /* file or device */
    const char *pointer;  /* JSON pointer of this object */
    const cJSON *object;
    const char *known[32];
    uint32_t known_count;
    ent_status status; /* first error; later reads return zeros */
} ent_reader;

void ent_reader_open(ent_reader *reader, ent_arena *arena, const char *document, const char *pointer,
                     const cJSON *object);
/* The reader of an element of an array field. */
void ent_reader_item(const ent_reader *parent, const char *field, uint32_t index, const cJSON *item,
                     ent_reader *out);
ent_status ent_reader_finish(ent_reader *reader);
void ent_reader_fail(ent_reader *reader, const char *field, const char *rule, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *ent_reader_text(ent_reader *reader, const char *field, bool required, const char *missing);
/* Index of the field's text among words; count when absent or in error. */
uint32_t ent_reader_word(ent_reader *reader, const char *field, bool required, const char *const *words,
                         uint32_t count);
double ent_reader_number(ent_reader *reader, const char *field, bool required, double missing, double min,
                         double max);
int64_t ent_reader_int(ent_reader *reader, const char *field, bool required, int64_t missing, int64_t min,
                       int64_t max);
bool ent_reader_bool(ent_reader *reader, const char *field, bool missing);
/* An array field; NULL when absent. Its elements must be objects (or strings, when strings is set). */
const cJSON *ent_reader_array(ent_reader *reader, const char *field, bool required, bool strings);
const cJSON *ent_reader_object(ent_reader *reader, const char *field, bool required);
/* Strings of an array field, copied. */
const char *const *ent_reader_texts(ent_reader *reader, const char *field, uint32_t *out_count);

/* pattern.c */
void ent_capability_read_pattern(ent_reader *reader, ent_pattern *out);

#endif
