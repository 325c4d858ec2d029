/* ScatterND, ScatterElements, TensorScatter: a copy of the data with some elements replaced or combined.
 * Indices may be negative; one outside its axis is refused. */
#include "core/ops/internal.h"

#include <string.h>

static int64_t element_bytes(const ent_tensor *tensor) {
    return ent_dtype_bits((ent_dtype)tensor->dtype) / 8;
}

static void copy_data(const ent_tensor *x, const ent_tensor *y) {
    int64_t bytes = ent_ops_element_count(x) * element_bytes(x);
    if (bytes > 0) memcpy(y->data, x->data, (size_t)bytes);
}

typedef enum scatter_mode { SCATTER_NONE, SCATTER_ADD, SCATTER_MUL, SCATTER_MAX, SCATTER_MIN } scatter_mode;

static ent_code scatter_mode_of(ent_ops_call *call, scatter_mode *out) {
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    uint32_t dtype = ent_ops_input(call, 0)->dtype;
    for (int i = SCATTER_NONE; i <= SCATTER_MIN; i++) {
        if (!ent_attrs_string_is(call->attrs, "reduction", "none", names[i])) continue;
        *out = (scatter_mode)i;
        if (i == SCATTER_NONE || ent_ops_dtype_in(dtype, ENT_OPS_NUMBERS | ENT_OPS_BOOL)) return ENT_OK;
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "no reduction of %s",
                              ent_dtype_name((ent_dtype)dtype));
    }
    return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "the reduction is unknown");
}

static void scatter_element(const ent_tensor *y, int64_t to, const ent_tensor *updates, int64_t from,
                            scatter_mode mode) {
    static const uint32_t maps[] = {ENT_MAP_COPY, ENT_MAP_ADD, ENT_MAP_MUL, ENT_MAP_MAX, ENT_MAP_MIN};
    const double none[2] = {0, 0};
    if (ent_ops_dtype_in(y->dtype, ENT_OPS_FLOATS)) {
        double value = ent_ops_load_f64(y->data, y->dtype, to),
               update = ent_ops_load_f64(updates->data, y->dtype, from);
        ent_ops_store_f64(y->data, y->dtype, to, ent_ops_map_f64(maps[mode], none, value, update, 0));
        return;
    }
    int64_t value = ent_ops_load_i64(y->data, y->dtype, to),
            update = ent_ops_load_i64(updates->data, y->dtype, from);
    int64_t flip =
        y->dtype == ENT_DTYPE_U64 && mode >= SCATTER_MAX ? INT64_MIN : 0; /* keeps the order of uint64 */
    ent_ops_store_i64(y->data, y->dtype, to,
                      ent_ops_map_i64(maps[mode], none, value ^ flip, update ^ flip, 0) ^ flip);
}

static ent_code scatter_check(ent_ops_call *call, int64_t *out_tuple) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1),
                     *updates = ent_ops_input(call, 2);
    int64_t tuple = indices->rank ? indices->dims[indices->rank - 1] : 0;
    if (tuple < 1 || tuple > x->rank || updates->dtype != x->dtype ||
        updates->rank != indices->rank - 1 + x->rank - (uint32_t)tuple)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the updates do not fit the data and indices");
    bool fits = true;
    for (uint32_t i = 0; i < updates->rank; i++) {
        uint32_t own = i + 1 < indices->rank ? i : i - (indices->rank - 1) + (uint32_t)tuple;
        fits = fits && updates->dims[i] == (i + 1 < indices->rank ? indices->dims[i] : x->dims[own]);
    }
    *out_tuple = tuple;
    return fits ? ENT_OK : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the updates' dims do not fit");
}

ent_code ent_ops_scatter_nd(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1),
                     *updates = ent_ops_input(call, 2);
    const ent_tensor *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    int64_t tuple = 0, size = element_bytes(x);
    scatter_mode mode = SCATTER_NONE;
    ent_code code = scatter_check(call, &tuple);
    if (code == ENT_OK) code = scatter_mode_of(call, &mode);
    if (code != ENT_OK) return code;
    int64_t *index = ent_ops_values_i64(call, indices);
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    copy_data(x, y);
    int64_t tuples = ent_ops_product(indices->dims, 0, indices->rank - 1);
    int64_t row = ent_ops_product(x->dims, (uint32_t)tuple, x->rank);
    for (int64_t i = 0; i < tuples; i++) {
        int64_t at = 0;
        code = ent_ops_index_row(call, x, 0, index + i * tuple, tuple, &at);
        if (code != ENT_OK) return code;
        if (mode == SCATTER_NONE && row > 0)
            memcpy((uint8_t *)y->data + at * row * size, (const uint8_t *)updates->data + i * row * size,
                   (size_t)(row * size));
        for (int64_t j = 0; mode != SCATTER_NONE && j < row; j++)
            scatter_element(y, at * row + j, updates, i * row + j, mode);
    }
    return ENT_OK;
}

static ent_code check_elements(ent_ops_call *call, uint32_t *out_axis) {
    const ent_tensor *x = ent_ops_input(call, 0), *indices = ent_ops_input(call, 1),
                     *updates = ent_ops_input(call, 2);
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", 0), x->rank, out_axis);
    if (code != ENT_OK) return code;
    bool fits = indices->rank == x->rank && updates->rank == x->rank && updates->dtype == x->dtype;
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = indices->dims[i] == updates->dims[i] && (i == *out_axis || indices->dims[i] <= x->dims[i]);
    return fits ? ENT_OK
                : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                 "the indices and updates do not fit the data");
}

ent_code ent_ops_scatter_elements(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *updates = ent_ops_input(call, 2),
                     *y = ent_ops_output(call, 0);
    if (!y) return ENT_OK;
    uint32_t axis = 0;
    scatter_mode mode = SCATTER_NONE;
    ent_code code = check_elements(call, &axis);
    if (code == ENT_OK) code = scatter_mode_of(call, &mode);
    if (code != ENT_OK) return code;
    int64_t *index = ent_ops_values_i64(call, ent_ops_input(call, 1)), stride[ENT_MAX_RANK];
    if (!index) return ENT_CODE_OUT_OF_MEMORY;
    int64_t count = ent_ops_element_count(updates), size = element_bytes(x);
    copy_data(x, y);
    ent_ops_strides(y, stride);
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i, to = 0;
        code = ent_ops_index(call, &index[i], x->dims[axis]);
        if (code != ENT_OK) return code;
        for (uint32_t j = x->rank; j-- > 0; rest /= updates->dims[j])
            to += (j == axis ? index[i] : rest % updates->dims[j]) * stride[j];
        if (mode != SCATTER_NONE)
            scatter_element(y, to, updates, i, mode);
        else
            memcpy((uint8_t *)y->data + to * size, (const uint8_t *)updates->data + i * size, (size_t)size);
    }
    return ENT_OK;
}

/* Rows of the update go to consecutive places of the cache's axis, from a start that each batch element has.
 */
ent_code ent_ops_tensor_scatter(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *update = ent_ops_input(call, 1),
                     *start = ent_ops_input(call, 2), *y = ent_ops_output(call, 0);
    uint32_t axis;
    ent_code code = ent_ops_axis(call, ent_attrs_int(call->attrs, "axis", -2), x->rank, &axis);
    if (code != ENT_OK || !y) return code;
    bool circular = ent_attrs_string_is(call->attrs, "mode", "linear", "circular");
    bool fits = axis > 0 && update->rank == x->rank && update->dtype == x->dtype &&
                (!start || (start->rank == 1 && start->dims[0] == x->dims[0]));
    for (uint32_t i = 0; fits && i < x->rank; i++)
        fits = i == axis ? update->dims[i] <= x->dims[i] : update->dims[i] == x->dims[i];
    if (!fits) return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "the update does not fit the cache");
    int64_t outer = ent_ops_product(x->dims, 0, axis), per_batch = ent_ops_product(x->dims, 1, axis),
            row = ent_ops_product(x->dims, axis + 1, x->rank) * element_bytes(x), length = update->dims[axis],
            extent = x->dims[axis];
    copy_data(x, y);
    for (int64_t o = 0; o < outer; o++) {
        int64_t first = start ? ent_ops_load_i64(start->data, start->dtype, o / per_batch) : 0;
        for (int64_t s = 0; s < length; s++) {
            int64_t to = circular ? ((first % extent + s) % extent + extent) % extent : first + s;
            code = first > INT64_MAX - length ? ENT_CODE_INVALID_ARGUMENT : ent_ops_index(call, &to, extent);
            if (code != ENT_OK) return code;
            memcpy((uint8_t *)y->data + (o * extent + to) * row,
                   (const uint8_t *)update->data + (o * length + s) * row, (size_t)row);
        }
    }
    return ENT_OK;
}
