/* A composite and its decomposition compute the same: both are evaluated by core/ops on random data. Lives
 * with the rewrite tests because core/graph itself knows no operator meanings. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph.h"
#include "core/ops/ops.h"

static ent_tensor *make_tensor(ent_arena *arena, uint32_t dtype, uint32_t rank, const int64_t *dims) {
    ent_tensor *tensor = ent_arena_alloc(arena, sizeof *tensor);
    tensor->dtype = dtype;
    tensor->rank = rank;
    for (uint32_t i = 0; i < rank; i++) tensor->dims[i] = dims[i];
    tensor->layout = ent_layout_plain(rank);
    tensor->size_bytes = (uint64_t)ent_layout_bytes(&tensor->layout, (ent_dtype)dtype, dims);
    tensor->data = ent_arena_alloc(arena, tensor->size_bytes);
    return tensor;
}

static int64_t count_elements(const ent_tensor *tensor) {
    int64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++) count *= tensor->dims[i];
    return count;
}

/* The same numbers for the same input every time; small ones, so that f16 holds them. Masks keep the first
 * key. */
static void fill(ent_tensor *tensor, uint32_t salt) {
    uint64_t state = salt * 977u + 5u;
    for (int64_t i = 0; i < count_elements(tensor); i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double unit = (double)(state >> 40) / 16777216.0;
        if (tensor->dtype == ENT_DTYPE_BOOL)
            ent_ops_store_i64(tensor->data, tensor->dtype, i,
                              i % tensor->dims[tensor->rank - 1] == 0 || unit > 0.3);
        else
            ent_ops_store_f64(tensor->data, tensor->dtype, i, unit * 2.0 - 0.9);
    }
}

static void evaluate_node(ent_arena *arena, const ent_node *node, ent_tensor **values) {
    const ent_tensor *inputs[12] = {0};
    ent_tensor *outputs[8] = {0}, shapes[8] = {0};
    ent_ops_error error = {0};
    ck_assert_uint_le(node->input_count, 12);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != ENT_ID_NONE) inputs[i] = values[node->inputs[i]];
    ent_code code = ent_ops_output_dims(node->op, node->attrs, inputs, node->input_count, shapes,
                                        node->output_count, &error);
    ck_assert_msg(code == ENT_OK, "%s: %s", node->name, error.text);
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == ENT_ID_NONE) continue;
        outputs[i] = make_tensor(arena, shapes[i].dtype, shapes[i].rank, shapes[i].dims);
        values[node->outputs[i]] = outputs[i];
    }
    code = ent_ops_evaluate(node->op, node->attrs, inputs, node->input_count, outputs, node->output_count,
                            ent_ops_memory_default(), &error);
    ck_assert_msg(code == ENT_OK, "%s: %s", node->name, error.text);
}

static ent_tensor **evaluate(ent_arena *arena, const ent_module *module) {
    ent_tensor **values = ent_arena_alloc(arena, module->values.count * sizeof *values);
    for (uint32_t v = 0; v < module->values.count; v++)
        if (module->values.items[v].constant)
            values[v] = (ent_tensor *)(uintptr_t)&module->values.items[v].constant->tensor;
    const ent_graph *graph = ent_module_graph(module, 0);
    for (uint32_t i = 0; i < graph->inputs.count; i++) {
        const ent_value *value = ent_module_value(module, graph->inputs.items[i]);
        values[graph->inputs.items[i]] = make_tensor(arena, value->dtype, value->rank, value->dims);
        fill(values[graph->inputs.items[i]], i);
    }
    uint32_t at = 0, node;
    while (ent_graph_next(module, 0, &at, &node)) evaluate_node(arena, ent_module_node(module, node), values);
    return values;
}

/* Inferred shapes must be those of the evaluation too. */
static void compare(const ent_module *module, uint32_t value, const ent_tensor *a, const ent_tensor *b,
                    double tolerance) {
    const ent_value *v = ent_module_value(module, value);
    ck_assert_uint_eq(a->rank, v->rank);
    ck_assert_uint_eq(b->rank, v->rank);
    ck_assert_uint_eq(a->dtype, b->dtype);
    for (uint32_t i = 0; i < v->rank; i++) {
        ck_assert_int_eq(a->dims[i], v->dims[i]);
        ck_assert_int_eq(b->dims[i], v->dims[i]);
    }
    for (int64_t i = 0; i < count_elements(a); i++) {
        double x = ent_ops_load_f64(a->data, a->dtype, i), y = ent_ops_load_f64(b->data, b->dtype, i);
        ck_assert_msg(fabs(x - y) <= tolerance * (1.0 + fabs(x)), "%s[%lld]: whole %.9g, in pieces %.9g",
                      v->name, (long long)i, x, y);
    }
}

static const struct {
    const char *inputs, *outputs, *node;
    double tolerance;
} cases[] = {
    {"%x: f32[2,3,4,5], %s: f32[3], %b: f32[3], %m: f32[3], %v: f32[3]", "%y",
     "%vp = Mul(%v, %v) name \"p\" %y = BatchNormalization(%x, %s, %b, %m, %vp) {epsilon = 0.01} name \"c\"",
     2e-5},
    {"%x: f32[2,3]", "%y",
     "%s = constant f32[3] {1, 2, 3} %v = constant f32[3] {0.5, 4, 1} %y = BatchNormalization(%x, %s, %s, "
     "%v, %v) name \"c\"",
     2e-5},
    {"%x: f16[2,3,4], %s: f16[3], %b: f16[3]", "%y",
     "%v = constant f32[3] {0.5, 4, 1} %y = BatchNormalization(%x, %s, %b, %v, %v) name \"c\"", 4e-3},
    {"%x: f32[2,3,4,5], %s: f32[3], %b: f32[3]", "%y", "%y = InstanceNormalization(%x, %s, %b) name \"c\"",
     2e-5},
    {"%x: f32[2,3,4], %s: f32[4], %b: f32[4]", "%y, %mean, %inv",
     "%y, %mean, %inv = LayerNormalization(%x, %s, %b) name \"c\"", 2e-5},
    {"%x: f32[2,3,4], %s: f32[3,4]", "%y",
     "%y = LayerNormalization(%x, %s) {axis = 1, epsilon = 0.1} name \"c\"", 2e-5},
    {"%x: f16[2,3,4], %s: f16[4], %b: f16[4]", "%y, %inv",
     "%y, _, %inv = LayerNormalization(%x, %s, %b) name \"c\"", 4e-3},
    {"%x: f32[40]", "%y", "%y = Gelu(%x) name \"c\"", 1e-6},
    {"%x: f32[40]", "%y", "%y = Gelu(%x) {approximate = \"tanh\"} name \"c\"", 1e-6},
    {"%x: f32[40]", "%y", "%k = constant f32[] {5} %z = Mul(%x, %k) name \"p\" %y = HardSwish(%z) name \"c\"",
     1e-6},
    {"%x: f32[40]", "%y", "%y = Mish(%x) name \"c\"", 1e-6},
    {"%q: f32[2,3,4,8], %k: f32[2,3,5,8], %v: f32[2,3,5,6]", "%y", "%y = Attention(%q, %k, %v) name \"c\"",
     1e-5},
    {"%q: f32[2,4,5,8], %k: f32[2,2,5,8], %m: bool[5,5]", "%y",
     "%y = Attention(%q, %k, %k, %m) {is_causal = 1, scale = 0.7, softcap = 1.5} name \"c\"", 1e-5},
    {"%q: f32[2,4,24], %k: f32[2,6,12], %v: f32[2,6,10], %m: f32[2,1,4,6]", "%y",
     "%y = Attention(%q, %k, %v, %m) {q_num_heads = 4, kv_num_heads = 2} name \"c\"", 1e-5},
    {"%x: f32[2,3,4], %s: f32[3,4]", "%y", "%y = RMSNormalization(%x, %s) {axis = 1} name \"c\"", 2e-5},
    {"%x: f16[2,3,4], %s: f16[4]", "%y", "%y = RMSNormalization(%x, %s) {epsilon = 0.01} name \"c\"", 4e-3},
    {"%x: f32[2,6,4,5], %s: f32[6], %b: f32[6]", "%y",
     "%y = GroupNormalization(%x, %s, %b) {num_groups = 3} name \"c\"", 2e-5},
    {"%x: bf16[2,4,3], %s: bf16[4], %b: bf16[4]", "%y",
     "%y = GroupNormalization(%x, %s, %b) {num_groups = 2} name \"c\"", 4e-2},
    {"%x: f32[2,3,4,5]", "%y", "%y = MeanVarianceNormalization(%x) name \"c\"", 2e-5},
    {"%x: f16[2,3,4]", "%y", "%y = MeanVarianceNormalization(%x) {axes = [1, 2]} name \"c\"", 4e-3},
    {"%x: f32[2,3,4]", "%y", "%y = LpNormalization(%x) {axis = 1, p = 1} name \"c\"", 2e-5},
    {"%x: f16[2,3,4]", "%y", "%y = LpNormalization(%x) name \"c\"", 4e-3},
    {"%x: f32[2,3,4]", "%y, %log",
     "%t = constant i64[2,4] {0, 1, 2, 0, 2, 2, 1, 0} %y, %log = SoftmaxCrossEntropyLoss(%x, %t) "
     "{ignore_index = 2} name \"c\"",
     2e-5},
    {"%x: f16[2,3], %w: f16[3]", "%y, %log",
     "%t = constant i32[2] {0, 2} %y, %log = SoftmaxCrossEntropyLoss(%x, %t, %w) {reduction = \"none\"} name "
     "\"c\"",
     4e-3},
    {"%x: f32[40]", "%y", "%y = Swish(%x) {alpha = 1.5} name \"c\"", 1e-6},
    {"%x: f32[2,3,4,8], %co: f32[2,4,4], %si: f32[2,4,4]", "%y",
     "%y = RotaryEmbedding(%x, %co, %si) name \"c\"", 1e-6},
    {"%x: f32[2,4,24], %co: f32[9,3], %si: f32[9,3]", "%y",
     "%p = constant i64[2,4] {0, 1, 2, 8, 3, 3, 4, 5} %y = RotaryEmbedding(%x, %co, %si, %p) {num_heads = 3, "
     "interleaved = 1, rotary_embedding_dim = 6} name \"c\"",
     1e-6},
    {"%x: f16[1,2,3,6], %co: f16[1,3,2], %si: f16[1,3,2]", "%y",
     "%y = RotaryEmbedding(%x, %co, %si) {rotary_embedding_dim = 4} name \"c\"", 2e-3},
    {"%a: f32[2,3,4,5], %b: f32[2,6,3,5]", "%y",
     "%y = Einsum(%a, %b) {equation = \"bhqd,bkhd->bqhk\"} name \"c\"", 1e-5},
    {"%a: f32[2,3,4], %b: f32[4,5,3,2]", "%y", "%y = Einsum(%a, %b) {equation = \"abc,cdba->d\"} name \"c\"",
     1e-5},
    {"%a: f32[2,3,4], %b: f32[3,5,6]", "%y", "%y = Einsum(%a, %b) {equation = \"abc,bde->aec\"} name \"c\"",
     1e-5},
    {"%a: f32[2,3], %b: f32[4]", "%y", "%y = Einsum(%a, %b) {equation = \"ij,k->kij\"} name \"c\"", 1e-5},
    {"%a: f32[2,3,4]", "%y", "%y = Einsum(%a) {equation = \"ijk->kj\"} name \"c\"", 1e-5},
    {"%a: f32[2,3,4], %b: f32[2,4,5]", "%y", "%y = Einsum(%a, %b) {equation = \"...ij,...jk\"} name \"c\"",
     1e-5},
    {"%q: f16[1,2,4,8]", "%y", "%y = Attention(%q, %q, %q) {is_causal = 1, softmax_precision = 1} name \"c\"",
     4e-3},
    {"%x: f32[2,3,4]", "%y",
     "%s = constant f32[] {0.01} %z = constant i8[1] {-7} %y = QuantizeLinear(%x, %s, %z) name \"c\"", 0},
    {"%x: f32[2,3,40]", "%y",
     "%s = constant f32[3] {0.5, 0.001, 0.03} %z = constant u8[3] {0, 100, 255} %y = QuantizeLinear(%x, %s, "
     "%z) "
     "{axis = -2} name \"c\"",
     0},
    {"%x: f16[2,3,40], %s: f16[40]", "%y",
     "%a = Abs(%s) name \"a\" %y = QuantizeLinear(%x, %a) {axis = 2, output_dtype = 7} name \"c\"", 0},
    {"%x: f32[2,3,40]", "%y",
     "%s = constant f32[1] {0.01} %y = QuantizeLinear(%x, %s) {precision = 2} name \"c\"", 0},
    {"%x: f32[2,3,40], %s: f32[3]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %z = constant "
     "i8[3] {0, -100, 7} %y = DequantizeLinear(%i, %s, %z) name \"c\"",
     1e-6},
    {"%x: f32[4], %s: f16[]", "%y",
     "%k = constant f32[] {1000} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 9} name \"i\" %y = "
     "DequantizeLinear(%i, %s) name \"c\"",
     1e-3},
    {"%x: f32[3,50]", "%y, %s, %z", "%y, %s, %z = DynamicQuantizeLinear(%x) name \"c\"", 0},
    {"%x: f32[2,3,8], %w: f32[3,1]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %h = Mul(%w, %k) name \"h\" %j = "
     "Cast(%h) {to = 5} name \"j\" %y = QLinearAdd(%i, %s, %z, %j, %t, %z, %t, %z) name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearMul(%i, %s, %z, %i, %s, "
     "_, %t, %z) name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearSigmoid(%i, %s, %z, %t, "
     "%z) name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearLeakyRelu(%i, %s, %z, %t) "
     "{alpha = 0.3} name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearSoftmax(%i, %s, %z, %t, "
     "%z) {axis = 1, opset = 13} name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearAveragePool(%i, %s, %z, "
     "%t, %z) {kernel_shape = [3], pads = [1, 1], count_include_pad = 1} name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearGlobalAveragePool(%i, %s, "
     "%z, %t, %z) {channels_last = 0} name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %y = QLinearConcat(%t, %z, %i, %s, "
     "%z, %i, %t, %z, %i, %s, %z) {axis = -2} name \"c\"",
     1},
    {"%x: f32[2,3,8]", "%y",
     "%k = constant f32[] {100} %m = Mul(%x, %k) name \"m\" %i = Cast(%m) {to = 5} name \"i\" %s = constant "
     "f32[] {0.03} %t = constant f32[1] {0.05} %z = constant i8[] {-7} %b = constant u8[8,2] {1, 2, 3, 4, 5, "
     "6, 7, 8, 200, 201, 202, 203, 204, 205, 206, 255} %bs = constant f32[2] {0.1, 0.2} %bz = constant u8[2] "
     "{100, 0} %c = constant f32[2] {1, 2} %y = MatMulIntegerToFloat(%i, %b, %s, %bs, %z, %bz, %c) name "
     "\"c\"",
     1e-6},
    {"%x: f32[2,3,8]", "%y",
     "%b = constant i8[8,2] {1, 2, 3, 4, 5, 6, 7, 8, -100, -101, 102, 103, 104, 105, 106, 127} %bs = "
     "constant f32[1] {0.1} %y = DynamicQuantizeMatMul(%x, %b, %bs) name \"c\"",
     1e-6},
    {"%x: f32[3,2,4], %w: f32[1,5,4], %r: f32[1,5,5], %b: f32[1,10]", "%y, %h",
     "%y, %h = RNN(%x, %w, %r, %b) name \"c\"", 1e-5},
    {"%x: f32[3,2,4], %w: f32[1,20,4], %r: f32[1,20,5], %b: f32[1,40], %h: f32[1,2,5], %c: f32[1,2,5]",
     "%y, %g, %d",
     "%y, %g, %d = LSTM(%x, %w, %r, %b, _, %h, %c) {direction = \"reverse\", hidden_size = 5} name \"c\"",
     1e-5},
    {"%x: f32[2,3,4], %w: f32[2,20,4], %r: f32[2,20,5]", "%y, %d",
     "%y, _, %d = LSTM(%x, %w, %r) {direction = \"bidirectional\", activations = "
     "\"Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh\"} name \"c\"",
     1e-5},
    {"%x: f32[1,2,2], %h: f32[1,2,1]", "%y",
     "%w = constant f32[1,4,2] {1, 2, 0.5, -1, 0.3, 0.2, -0.7, 1} %r = constant f32[1,4,1] {1, -1, 0.5, 0.2} "
     "%b = constant f32[1,8] {1, 2, 3, 4, -1, 0.5, 0.25, -3} %y = LSTM(%x, %w, %r, %b, _, %h) name \"c\"",
     1e-5},
    {"%x: f32[3,2,4], %w: f32[2,15,4], %r: f32[2,15,5], %b: f32[2,30], %h: f32[2,2,5]", "%y, %g",
     "%y, %g = GRU(%x, %w, %r, %b, _, %h) {direction = \"bidirectional\"} name \"c\"", 1e-5},
    {"%x: f32[3,2,4], %w: f32[1,15,4], %r: f32[1,15,5], %b: f32[1,30]", "%y, %g",
     "%y, %g = GRU(%x, %w, %r, %b) {linear_before_reset = 1} name \"c\"", 1e-5},
    {"%x: f32[0,50]", "%y, %s, %z", "%y, %s, %z = DynamicQuantizeLinear(%x) name \"c\"", 0},
};

START_TEST(pieces_equal_the_whole) {
    ent_arena *arena = ent_arena_create(0);
    ent_module *whole = NULL, *pieces = NULL;
    char text[2048];
    snprintf(text, sizeof text, "module \"m\" { graph main(%s) -> (%s) { %s } }", cases[_i].inputs,
             cases[_i].outputs, cases[_i].node);
    ck_assert_ptr_null(ent_module_parse(arena, "case", text, &whole));
    ck_assert_ptr_null(ent_module_parse(arena, "case", text, &pieces));
    ent_status status = ent_module_infer(whole, arena);
    ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
    ck_assert_ptr_null(ent_module_infer(pieces, arena));
    ck_assert_ptr_null(ent_module_freeze(pieces, arena));
    ck_assert_ptr_null(ent_module_verify(pieces, arena));
    ck_assert_uint_eq(pieces->overlays.count, 1);
    ck_assert_uint_gt(pieces->overlays.items[0].node_count, 1);
    ent_tensor **a = evaluate(arena, whole), **b = evaluate(arena, pieces);
    const ent_graph *graph = ent_module_graph(pieces, 0);
    for (uint32_t i = 0; i < graph->outputs.count; i++) {
        uint32_t value = graph->outputs.items[i];
        ck_assert_uint_eq(value, ent_module_graph(whole, 0)->outputs.items[i]);
        compare(pieces, value, a[value], b[value], cases[_i].tolerance);
    }
    ent_arena_destroy(arena);
}
END_TEST

/* Operators without a meaning of their own: the body computes what the nodes beside it say. */
static const struct {
    const char *inputs, *outputs, *node, *spelled;
    double tolerance;
} equals[] = {
    {"%a: f32[2,4,3], %b: f32[2,5,4]", "%y",
     "%y = FusedMatMul(%a, %b) {transA = 1, transB = 1, alpha = 0.5} name \"c\"",
     "%p = Transpose(%a) {perm = [0, 2, 1]} %q = Transpose(%b) {perm = [0, 2, 1]} %m = MatMul(%p, %q) %k = "
     "constant "
     "f32[] {0.5} %y = Mul(%m, %k)",
     1e-5},
    {"%a: f32[3,2,4], %b: f32[2,4,5]", "%y", "%y = FusedMatMul(%a, %b) {transBatchA = 1} name \"c\"",
     "%p = Transpose(%a) {perm = [1, 0, 2]} %y = MatMul(%p, %b)", 1e-5},
    {"%a: f32[2,4], %b: f32[4]", "%y", "%y = BiasGelu(%a, %b) name \"c\"", "%s = Add(%a, %b) %y = Gelu(%s)",
     1e-6},
    {"%a: f32[2,4], %b: f32[4]", "%y", "%y = FastGelu(%a, %b) name \"c\"",
     "%s = Add(%a, %b) %y = Gelu(%s) {approximate = \"tanh\"}", 1e-6},
    {"%a: f32[2,4]", "%y", "%y = QuickGelu(%a) name \"c\"", "%y = Swish(%a) {alpha = 1.702}", 1e-6},
    {"%a: f32[2,3,4], %s: f32[2,3,4], %g: f32[4], %b: f32[4], %c: f32[4]", "%y, %z",
     "%y, _, _, %z = SkipLayerNormalization(%a, %s, %g, %b, %c) {epsilon = 0.01} name \"c\"",
     "%t = Add(%a, %s) %z = Add(%t, %c) %y = LayerNormalization(%z, %g, %b) {epsilon = 0.01}", 2e-5},
    {"%a: f16[3,4], %s: f16[3,4], %g: f16[4]", "%y, %z",
     "%y, _, _, %z = SkipSimplifiedLayerNormalization(%a, %s, %g) {epsilon = 0.01} name \"c\"",
     "%z = Add(%a, %s) %y = RMSNormalization(%z, %g) {epsilon = 0.01}", 8e-3},
    {"%a: f32[3,4], %g: f32[4]", "%y", "%y = SimplifiedLayerNormalization(%a, %g) name \"c\"",
     "%y = RMSNormalization(%a, %g)", 2e-5},
    {"%a: f32[3,4], %b: f32[5,4], %c: f32[5]", "%y",
     "%y = FusedGemm(%a, %b, %c) {transB = 1, activation = \"LeakyRelu\", activation_alpha = 0.3} name \"c\"",
     "%m = Gemm(%a, %b, %c) {transB = 1} %y = LeakyRelu(%m) {alpha = 0.3}", 1e-5},
    {"%a: f32[1,2,5], %b: f32[3,2,3], %c: f32[3], %z: f32[1,3,3]", "%y",
     "%y = FusedConv(%a, %b, %c, %z) {activation = \"Clip\", activation_params = [-0.5, 0.5]} name \"c\"",
     "%m = Conv(%a, %b, %c) %s = Add(%m, %z) %l = constant f32[] {-0.5} %h = constant f32[] {0.5} %y = "
     "Clip(%s, %l, %h)",
     1e-5},
};

START_TEST(body_equals_the_nodes) {
    ent_arena *arena = ent_arena_create(0);
    ent_module *module[2];
    ent_tensor **values[2];
    for (int i = 0; i < 2; i++) {
        char text[2048];
        snprintf(text, sizeof text, "module \"m\" { graph main(%s) -> (%s) { %s } }", equals[_i].inputs,
                 equals[_i].outputs, i ? equals[_i].spelled : equals[_i].node);
        ent_status status = ent_module_parse(arena, "case", text, &module[i]);
        if (!status) status = ent_module_infer(module[i], arena);
        if (!status && i == 0) status = ent_module_freeze(module[i], arena);
        if (!status) status = ent_module_verify(module[i], arena);
        ck_assert_msg(!status, "%s", status ? ent_status_text(arena, status) : "");
        values[i] = evaluate(arena, module[i]);
    }
    ck_assert_uint_eq(module[0]->overlays.count, 1);
    const ent_graph *a = ent_module_graph(module[0], 0), *b = ent_module_graph(module[1], 0);
    for (uint32_t i = 0; i < a->outputs.count; i++)
        compare(module[0], a->outputs.items[i], values[0][a->outputs.items[i]],
                values[1][b->outputs.items[i]], equals[_i].tolerance);
    ent_arena_destroy(arena);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("composite meaning");
    TCase *tests = tcase_create("meaning");
    tcase_add_loop_test(tests, pieces_equal_the_whole, 0, (int)(sizeof cases / sizeof *cases));
    tcase_add_loop_test(tests, body_equals_the_nodes, 0, (int)(sizeof equals / sizeof *equals));
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
