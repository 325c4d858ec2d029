/* Inputs that become constants, which every later stage may fold; the bundle then checks the value it is
 * given.
 * --const INPUT=VALUE: one number, or as many as the input has elements, separated by commas. Samples: inputs
 * that come with a model to run, where their values decide shapes. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"
#include "core/pipeline.h"

static bool parse_item(const char **at, uint32_t dtype, void *data, int64_t index) {
    char *end = NULL;
    errno = 0;
    bool is_float =
        dtype == ENT_DTYPE_F32 || dtype == ENT_DTYPE_F64 || dtype == ENT_DTYPE_F16 || dtype == ENT_DTYPE_BF16;
    if (dtype == ENT_DTYPE_BOOL && (strncmp(*at, "true", 4) == 0 || strncmp(*at, "false", 5) == 0)) {
        bool value = **at == 't';
        ent_ops_store_i64(data, dtype, index, value);
        end = (char *)*at + (value ? 4 : 5);
    } else if (is_float) {
        ent_ops_store_f64(data, dtype, index, strtod(*at, &end));
    } else {
        ent_ops_store_i64(data, dtype, index, strtoll(*at, &end, 10));
    }
    if (end == *at || errno == ERANGE) return false;
    *at = end;
    return true;
}

/* The program gets the pair as a guard. */
static void replace(ent_pipeline *p, uint32_t input, const void *data, uint64_t bytes) {
    const ent_value value = *ent_module_value(p->module, input);
    uint32_t constant =
        ent_module_add_constant(p->module, 0, NULL, value.dtype, value.rank, value.dims, data, bytes, true);
    ent_module_replace_value(p->module, input, constant);
    ent_bound_input bound = {input, constant};
    ent_array_push(p->module->arena, &p->module->bound_inputs, bound);
}

ent_status ent_pipeline_set_constant(ent_pipeline *p, uint32_t input, const char *text, const char *place) {
    const ent_value value = *ent_module_value(p->module, input);
    int64_t elements = ent_value_elements(p->module, input);
    uint32_t bits = ent_dtype_bits(value.dtype);
    if (elements < 0 || bits < 8 || bits > 64)
        return ent_status_make(p->arena, ENT_ERROR_USAGE, "bind.constant", place,
                               "the input's size is open or its type takes no numbers; bind its shape first");
    void *data = ent_arena_array(p->arena, (size_t)elements + 1, bits / 8);
    if (!data) return ent_status_out_of_memory();
    const char *at = text;
    int64_t count = 0;
    for (; count < elements; count++) {
        if (!parse_item(&at, value.dtype, data, count)) break;
        if (*at == ',')
            at++;
        else if (count + 1 < elements && *at == 0 && count == 0) {
            for (int64_t k = 1; k < elements; k++) memcpy((char *)data + k * bits / 8, data, bits / 8);
            count = elements - 1;
        }
    }
    if (count != elements || *at != 0)
        return ent_status_make(p->arena, ENT_ERROR_USAGE, "bind.constant", place,
                               "'%s' is not one number or %lld numbers of type %s separated by commas", text,
                               (long long)elements, ent_dtype_name(value.dtype));
    replace(p, input, data, (uint64_t)elements * bits / 8);
    ent_module_add_note(p->module,
                        "input '%s' is fixed to %s by --const; the bundle is right for that value only",
                        value.name, text);
    return NULL;
}

/* "2,0,1", or the first eight of many. */
static const char *elements_text(ent_pipeline *p, uint32_t dtype, const void *data, int64_t count) {
    ent_text text;
    ent_text_init(&text, p->arena);
    ent_text_add(&text, "%s", count ? "" : "nothing");
    for (int64_t i = 0; i < count && i < 8; i++)
        ent_text_add(&text, "%s%.9g", i ? "," : "", ent_ops_load_f64(data, dtype, i));
    if (count > 8) ent_text_add(&text, ",...");
    return text.data;
}

ent_status ent_pipeline_bind_sample(ent_pipeline *p, uint32_t input, const entente_named_tensor *sample) {
    const ent_value value = *ent_module_value(p->module, input);
    const entente_tensor *tensor = sample->tensor;
    int64_t elements = ent_value_elements(p->module, input);
    uint64_t bytes = (uint64_t)elements * ent_dtype_bits(value.dtype) / 8;
    if (tensor->dtype != value.dtype || tensor->size_bytes < bytes)
        return ent_status_make(
            p->arena, ENT_ERROR_USAGE, "bind.sample", ent_arena_format(p->arena, "input '%s'", value.name),
            "has type %s and %llu bytes; the model wants %s and %llu", entente_dtype_name(tensor->dtype),
            (unsigned long long)tensor->size_bytes, ent_dtype_name(value.dtype), (unsigned long long)bytes);
    void *data = ent_arena_array(p->arena, bytes + 64, 1);
    if (!data) return ent_status_out_of_memory();
    if (bytes) memcpy(data, tensor->data, bytes);
    replace(p, input, data, bytes);
    const char *text = elements_text(p, value.dtype, data, elements);
    ent_log(ENT_LOG_INFO, "input '%s' is fixed to %s: its value decides a shape", value.name, text);
    ent_module_add_note(
        p->module,
        "input '%s' is fixed to %s because its value decides a shape; other values are refused "
        "when the bundle runs",
        value.name, text);
    return NULL;
}
