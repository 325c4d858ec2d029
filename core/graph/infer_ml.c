/* Shape rules: operators of ai.onnx.ml, TfIdfVectorizer. */
#include "core/graph/infer.h"

ent_status ent_infer_ArrayFeatureExtractor(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0), *y = ent_infer_input(infer, 1);
    ent_dim dims[ENT_MAX_RANK] = {1};
    uint32_t rank = x->rank > 1 ? x->rank : 2;
    if (x->rank == 0) return ent_infer_fail(infer, "shape.rank", "a scalar has no features");
    for (uint32_t i = 0; i + 1 < x->rank; i++) dims[i] = x->dims[i];
    dims[rank - 1] = ent_infer_product(infer, y->dims, y->rank);
    ent_infer_set(infer, 0, x->dtype, rank, dims);
    return NULL;
}

ent_status ent_infer_Binarizer(ent_infer *infer) {
    ent_infer_copy(infer, 0, 0);
    return NULL;
}

ent_status ent_infer_TreeEnsemble(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    int64_t targets = ent_attrs_int(infer->attrs, "n_targets", 0);
    if (x->rank != 2 || targets < 1)
        return ent_infer_fail(infer, "shape.trees",
                              "%s is not batch x features, or n_targets %lld is not above 0",
                              ent_infer_text(infer, 0), (long long)targets);
    ent_dim dims[2] = {x->dims[0], targets};
    ent_infer_set(infer, 0, x->dtype, 2, dims);
    return NULL;
}

ent_status ent_infer_TfIdfVectorizer(ent_infer *infer) {
    const ent_value *x = ent_infer_input(infer, 0);
    const ent_attr *indexes = ent_attrs_find(infer->attrs, "ngram_indexes");
    int64_t largest = -1;
    for (uint32_t i = 0; indexes && indexes->type == ENT_ATTR_INTS && i < indexes->count; i++)
        if (indexes->ints[i] > largest) largest = indexes->ints[i];
    if (largest < 0 || largest == INT64_MAX)
        return ent_infer_fail(infer, "attribute.ngrams", "ngram_indexes names no column");
    if (x->rank > 2)
        return ent_infer_fail(infer, "shape.rank", "%s is not rows of tokens", ent_infer_text(infer, 0));
    ent_dim dims[2] = {x->rank == 2 ? x->dims[0] : largest + 1, largest + 1};
    ent_infer_set(infer, 0, ENT_DTYPE_F32, x->rank == 2 ? 2 : 1, dims);
    return NULL;
}
