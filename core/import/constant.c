/* Constant nodes become constants of their graph, whichever attribute holds the value. */
#include "core/import/internal.h"

#include <string.h>

static ent_status add(ent_importer *importer, const ent_import_scope *scope, const char *name, uint32_t dtype,
                      uint32_t rank, uint64_t count, const void *data, uint32_t *out_value) {
    int64_t dims[1] = {(int64_t)count};
    uint64_t bytes = count * (ent_dtype_bits((ent_dtype)dtype) / 8);
    *out_value = ent_module_add_constant(importer->module, scope->graph, name, dtype, rank, dims,
                                         bytes ? data : "", bytes, false);
    return NULL;
}

static ent_status add_tensor(ent_importer *importer, const ent_import_scope *scope, const char *name,
                             const char *place, const Onnx__TensorProto *proto, uint32_t *out_value) {
    ent_tensor tensor;
    bool borrow = false;
    if (!proto)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "constant.no-value", place,
                               "attribute 'value' holds no tensor");
    ENT_TRY(ent_import_tensor(importer, proto, place, &tensor, &borrow));
    *out_value = ent_module_add_constant(importer->module, scope->graph, name, tensor.dtype, tensor.rank,
                                         tensor.dims, tensor.data, tensor.size_bytes, borrow);
    return NULL;
}

static ent_status add_ints(ent_importer *importer, const ent_import_scope *scope, const char *name,
                           const Onnx__AttributeProto *from, uint32_t *out_value) {
    return add(importer, scope, name, ENT_DTYPE_I64, 1, from->n_ints, from->ints, out_value);
}

static ent_status wrong_type(ent_importer *importer, const char *place, const char *name) {
    return ent_status_make(importer->arena, ENT_ERROR_MODEL, "attribute.type", place,
                           "attribute '%s' has the wrong type", name);
}

static ent_status add_value(ent_importer *importer, const Onnx__AttributeProto *attribute,
                            const ent_import_scope *scope, const char *name, const char *place,
                            const char *output, uint32_t *out_value) {
    int64_t integer = attribute->i;
    float number = attribute->f;
    if (strcmp(name, "value") == 0)
        return add_tensor(importer, scope, output, place, attribute->t, out_value);
    if (strcmp(name, "value_int") == 0)
        return attribute->has_i ? add(importer, scope, output, ENT_DTYPE_I64, 0, 1, &integer, out_value)
                                : wrong_type(importer, place, name);
    if (strcmp(name, "value_float") == 0)
        return attribute->has_f ? add(importer, scope, output, ENT_DTYPE_F32, 0, 1, &number, out_value)
                                : wrong_type(importer, place, name);
    bool other = attribute->has_i || attribute->has_f || attribute->has_s || attribute->t;
    if (strcmp(name, "value_ints") == 0)
        return other || attribute->n_floats ? wrong_type(importer, place, name)
                                            : add_ints(importer, scope, output, attribute, out_value);
    if (strcmp(name, "value_floats") == 0)
        return other || attribute->n_ints ? wrong_type(importer, place, name)
                                          : add(importer, scope, output, ENT_DTYPE_F32, 1,
                                                attribute->n_floats, attribute->floats, out_value);
    if (strcmp(name, "value_string") == 0 || strcmp(name, "value_strings") == 0)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "tensor.string", place,
                               "string constants are not supported");
    if (strcmp(name, "sparse_value") == 0)
        return ent_status_make(importer->arena, ENT_ERROR_UNSUPPORTED, "constant.sparse", place,
                               "the attribute sparse_value is not supported; make the constant dense");
    return ent_status_make(importer->arena, ENT_ERROR_MODEL, "attribute.unknown", place,
                           "attribute '%s' is not one of Constant", name);
}

ent_status ent_import_constant_node(ent_importer *importer, const Onnx__NodeProto *proto,
                                    ent_import_scope *scope, uint32_t *out_value) {
    const char *place = ent_import_node_place(importer, proto);
    const Onnx__AttributeProto *from = NULL;
    const char *name = "";
    if (proto->n_input != 0 || proto->n_output != 1)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "operator.arity", place,
                               "Constant has no inputs and one output");
    size_t given = 0;
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = ent_import_attribute_resolve(scope, proto->attribute[i]);
        if (!attribute) continue;
        from = attribute;
        name = proto->attribute[i]->name ? proto->attribute[i]->name : "";
        given++;
    }
    if (given != 1)
        return ent_status_make(importer->arena, ENT_ERROR_MODEL, "constant.no-value", place,
                               "Constant has %zu attributes; it needs exactly one value", given);
    return add_value(importer, from, scope, name, place, proto->output[0], out_value);
}
