/* Guards on the values of inputs: what was compiled for one value does not run with another. Bytes decide, so
 * that nothing here depends on an element type; only the message does. */
#include "core/runtime/internal.h"

#include <inttypes.h>
#include <string.h>

/* "5", or "" for types that do not print. */
static const char *element_text(ent_runtime *rt, uint32_t dtype, const void *data, uint64_t index) {
    switch (dtype) {
    case ENT_DTYPE_I64:
        return ent_arena_format(rt->errors, "%" PRId64, ((const int64_t *)data)[index]);
    case ENT_DTYPE_I32:
        return ent_arena_format(rt->errors, "%" PRId32, ((const int32_t *)data)[index]);
    case ENT_DTYPE_BOOL:
    case ENT_DTYPE_U8:
        return ent_arena_format(rt->errors, "%u", ((const uint8_t *)data)[index]);
    case ENT_DTYPE_F32:
        return ent_arena_format(rt->errors, "%.9g", (double)((const float *)data)[index]);
    case ENT_DTYPE_F64:
        return ent_arena_format(rt->errors, "%.17g", ((const double *)data)[index]);
    default:
        return "another value";
    }
}

static ent_status refuse(ent_runtime *rt, const ent_program_guard *guard, const ent_tensor *input) {
    const ent_program_constant *c = &rt->program->constants[guard->constant];
    uint64_t width = ent_dtype_bits((ent_dtype)c->dtype) / 8, at = 0;
    const uint8_t *have = input->data, *want = c->data;
    if (width == 0) width = 1;
    while (memcmp(have + at * width, want + at * width, width) == 0) at++;
    return ent_status_make(rt->errors, ENT_ERROR_UNSUPPORTED, "runtime.guard",
                           ent_arena_format(rt->errors, "input '%s'",
                                            runtime_main(rt)->values[rt->inputs[guard->input].value].name),
                           "its element %" PRIu64
                           " is %s; this bundle was compiled for %s there, so compile the model for this "
                           "value",
                           at, element_text(rt, c->dtype, have, at), element_text(rt, c->dtype, want, at));
}

ent_status ent_runtime_check_guards(ent_runtime *rt, const ent_tensor *inputs) {
    for (uint32_t i = 0; i < rt->program->guard_count; i++) {
        const ent_program_guard *guard = &rt->program->guards[i];
        const ent_program_value *value = &runtime_main(rt)->values[rt->inputs[guard->input].value];
        uint64_t bytes = (uint64_t)value->size_bytes;
        const void *want = rt->program->constants[guard->constant].data;
        if (bytes && memcmp(inputs[guard->input].data, want, bytes) != 0)
            return refuse(rt, guard, &inputs[guard->input]);
    }
    return NULL;
}
