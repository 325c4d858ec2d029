/* TfIdfVectorizer on integers: how often each n-gram of a pool occurs in a row of tokens, with up to
 * max_skip_count tokens left out between neighbours. */
#include "core/ops/internal.h"

typedef struct ngrams {
    const ent_attr *pool, *starts, *columns, *weights;
    int64_t shortest, longest, skips, width;
    bool term, inverse; /* counts, weights */
} ngrams;

static const ent_attr *list(ent_ops_call *call, const char *name, ent_attr_type type) {
    const ent_attr *attr = ent_attrs_find(call->attrs, name);
    return attr && attr->type == type && attr->count > 0 ? attr : NULL;
}

/* Where the n-grams of a length begin and end in the pool. */
static int64_t first_of(const ngrams *g, int64_t size) {
    return size - 1 < g->starts->count ? g->starts->ints[size - 1] : g->pool->count;
}

static ent_code check_pool(ent_ops_call *call, const ngrams *g) {
    int64_t total = 0;
    for (int64_t size = 1; size <= g->starts->count; size++) {
        int64_t from = first_of(g, size), to = first_of(g, size + 1);
        if (from < 0 || to < from || to > g->pool->count || (to - from) % size != 0)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "ngram_counts do not fit the pool");
        total += (to - from) / size;
    }
    if (g->columns->count != total || (g->weights && g->weights->count != total))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%lld n-grams in the pool, but %u columns",
                              (long long)total, g->columns->count);
    for (uint32_t i = 0; i < g->columns->count; i++)
        if (g->columns->ints[i] < 0 || g->columns->ints[i] >= g->width)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "column %u is out of range", i);
    return ENT_OK;
}

static ent_code resolve(ent_ops_call *call, ngrams *g) {
    g->pool = list(call, "pool_int64s", ENT_ATTR_INTS);
    g->starts = list(call, "ngram_counts", ENT_ATTR_INTS);
    g->columns = list(call, "ngram_indexes", ENT_ATTR_INTS);
    g->weights = list(call, "weights", ENT_ATTR_FLOATS);
    g->shortest = ent_attrs_int(call->attrs, "min_gram_length", 1);
    g->longest = ent_attrs_int(call->attrs, "max_gram_length", 1);
    g->skips = ent_attrs_int(call->attrs, "max_skip_count", 0);
    g->term = !ent_attrs_string_is(call->attrs, "mode", "TF", "IDF");
    g->inverse = !ent_attrs_string_is(call->attrs, "mode", "TF", "TF");
    if (!g->pool)
        return ent_ops_refuse(call, ENT_CODE_UNSUPPORTED, "a pool of strings, or none, is not evaluated");
    if (!g->starts || !g->columns || g->shortest < 1 || g->longest < g->shortest || g->skips < 0)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "its lists and lengths make no n-grams");
    bool known =
        (g->inverse && !g->term) || !g->inverse || ent_attrs_string_is(call->attrs, "mode", "TF", "TFIDF");
    return known ? ENT_OK : ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "mode is not TF, IDF or TFIDF");
}

ent_code ent_ops_dims_ngrams(ent_ops_call *call, ent_tensor *outputs) {
    const ent_tensor *x = ent_ops_input(call, 0);
    const ent_attr *columns = list(call, "ngram_indexes", ENT_ATTR_INTS);
    int64_t width = 0;
    for (uint32_t i = 0; columns && i < columns->count; i++)
        if (columns->ints[i] >= width && columns->ints[i] < INT64_MAX) width = columns->ints[i] + 1;
    if (width == 0 || x->rank > 2)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                              "it wants rows of tokens and columns for them");
    int64_t dims[2] = {x->rank == 2 ? x->dims[0] : width, width};
    ent_ops_dims_set(&outputs[0], ENT_DTYPE_F32, x->rank == 2 ? 2 : 1, dims);
    return ENT_OK;
}

/* Occurrences of one n-gram of the pool whose neighbours stand `step` apart. */
static int64_t occurrences(const int64_t *gram, int64_t size, const int64_t *row, int64_t length,
                           int64_t step) {
    int64_t count = 0;
    if (size > 1 && step > (length - 1) / (size - 1)) return 0;
    for (int64_t at = 0; at + (size - 1) * step < length; at++) {
        int64_t same = 0;
        while (same < size && row[at + same * step] == gram[same]) same++;
        count += same == size;
    }
    return count;
}

/* Single tokens have no neighbours: they count once, whatever may be skipped. */
static int64_t count_gram(const ngrams *g, const int64_t *gram, int64_t size, const int64_t *row,
                          int64_t length) {
    int64_t count = 0, steps = size == 1 ? 1 : g->skips < length ? g->skips + 1 : length;
    for (int64_t step = 1; step <= steps; step++) count += occurrences(gram, size, row, length, step);
    return count;
}

/* Of n-grams written twice in the pool, the last has the occurrences. */
static bool is_repeated(const ngrams *g, int64_t size, int64_t gram) {
    for (int64_t other = gram + size; other < first_of(g, size + 1); other += size) {
        int64_t same = 0;
        while (same < size && g->pool->ints[other + same] == g->pool->ints[gram + same]) same++;
        if (same == size) return true;
    }
    return false;
}

static void count_row(const ngrams *g, const int64_t *row, int64_t length, double *result) {
    uint32_t id = 0;
    for (int64_t size = 1; size <= g->starts->count; size++)
        for (int64_t gram = first_of(g, size); gram < first_of(g, size + 1); gram += size, id++) {
            if (size < g->shortest || size > g->longest || is_repeated(g, size, gram)) continue;
            result[g->columns->ints[id]] += (double)count_gram(g, g->pool->ints + gram, size, row, length);
        }
}

/* A weight belongs to a column. */
static void weigh(const ngrams *g, double *result) {
    for (int64_t i = 0; i < g->width; i++) {
        if (!g->term) result[i] = result[i] > 0;
        if (g->inverse && g->weights) result[i] *= i < g->weights->count ? g->weights->floats[i] : 0;
    }
}

ent_code ent_ops_ngrams(ent_ops_call *call) {
    const ent_tensor *x = ent_ops_input(call, 0), *y = ent_ops_output(call, 0);
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, length = x->rank ? x->dims[x->rank - 1] : 1;
    ngrams g = {.width = y->dims[y->rank - 1]};
    ent_code code = resolve(call, &g);
    if (code == ENT_OK) code = check_pool(call, &g);
    if (code != ENT_OK) return code;
    int64_t *tokens = ent_ops_values_i64(call, x);
    double *result = ent_ops_scratch(call, rows * g.width, sizeof *result);
    if (!tokens || !result) return ENT_CODE_OUT_OF_MEMORY;
    for (int64_t i = 0; i < rows * g.width; i++) result[i] = 0;
    for (int64_t i = 0; i < rows; i++) {
        count_row(&g, tokens + i * length, length, result + i * g.width);
        weigh(&g, result + i * g.width);
    }
    ent_ops_result_f64(y, result);
    return ENT_OK;
}
