/* ent_ops_evaluate: the table that binds each operator of abi/ent_ops.def, and the frame around every
 * evaluation. */
#include "core/ops/internal.h"

#include <string.h>

/* One line an operator: function, dims rule, dtypes of input 0, flags. An operator without a line does not
 * compile. */
/* size: table */
#define FLOATS ENT_OPS_FLOATS
#define NUMBERS ENT_OPS_NUMBERS
#define WALKS ENT_OPS_WALKS_STRIDES
#define MOVES ENT_OPS_MOVES_BYTES
/* Elements of whole bytes that are no narrow floats. */
#define WHOLE (ENT_OPS_NUMBERS | ENT_OPS_BOOL | ENT_OPS_BIT(ENT_DTYPE_C64) | ENT_OPS_BIT(ENT_DTYPE_C128))
#define SIGNED_NUMBERS (ENT_OPS_FLOATS | ENT_OPS_SIGNED)
#define UNARY(dtypes)                                                                                        \
    { ent_ops_unary, ent_ops_dims_same, dtypes, WALKS }
#define BINARY(dtypes)                                                                                       \
    { ent_ops_binary, ent_ops_dims_broadcast, dtypes, WALKS }
#define COMPARE(dtypes)                                                                                      \
    { ent_ops_binary, ent_ops_dims_compare, dtypes, WALKS }
#define VARIADIC(dtypes)                                                                                     \
    { ent_ops_variadic, ent_ops_dims_broadcast, dtypes, WALKS }
#define REDUCE(dtypes)                                                                                       \
    { ent_ops_reduce, ent_ops_dims_reduce, dtypes, 0 }
#define MOVE(function, rule)                                                                                 \
    { function, rule, ENT_OPS_STORED, MOVES }
#define BIND_Abs UNARY(NUMBERS)
#define BIND_Neg UNARY(SIGNED_NUMBERS)
#define BIND_Sqrt UNARY(FLOATS)
#define BIND_Reciprocal UNARY(FLOATS)
#define BIND_Exp UNARY(FLOATS)
#define BIND_Log UNARY(FLOATS)
#define BIND_Erf UNARY(FLOATS)
#define BIND_Tanh UNARY(FLOATS)
#define BIND_Sigmoid UNARY(FLOATS)
#define BIND_Relu UNARY(SIGNED_NUMBERS)
#define BIND_LeakyRelu UNARY(FLOATS)
#define BIND_Elu UNARY(FLOATS)
#define BIND_Selu UNARY(FLOATS)
#define BIND_Celu UNARY(FLOATS)
#define BIND_ThresholdedRelu UNARY(FLOATS)
#define BIND_HardSigmoid UNARY(FLOATS)
#define BIND_Softplus UNARY(FLOATS)
#define BIND_Softsign UNARY(FLOATS)
#define BIND_Floor UNARY(FLOATS)
#define BIND_Ceil UNARY(FLOATS)
#define BIND_Round UNARY(FLOATS)
#define BIND_Sign UNARY(NUMBERS)
#define BIND_Not UNARY(ENT_OPS_BOOL)
#define BIND_IsNaN                                                                                           \
    { ent_ops_unary, ent_ops_dims_bool, FLOATS | ENT_OPS_FLOAT8, WALKS }
#define BIND_IsInf                                                                                           \
    { ent_ops_unary, ent_ops_dims_bool, FLOATS | ENT_OPS_FLOAT8, WALKS }
#define BIND_Sin UNARY(FLOATS)
#define BIND_Cos UNARY(FLOATS)
#define BIND_Tan UNARY(FLOATS)
#define BIND_Asin UNARY(FLOATS)
#define BIND_Acos UNARY(FLOATS)
#define BIND_Atan UNARY(FLOATS)
#define BIND_Sinh UNARY(FLOATS)
#define BIND_Cosh UNARY(FLOATS)
#define BIND_Asinh UNARY(FLOATS)
#define BIND_Acosh UNARY(FLOATS)
#define BIND_Atanh UNARY(FLOATS)
#define BIND_BitwiseNot UNARY(ENT_OPS_INTEGERS)
#define BIND_Identity MOVE(ent_ops_reshape, ent_ops_dims_same)
#define BIND_Cast                                                                                            \
    { ent_ops_cast, ent_ops_dims_cast, ENT_OPS_NUMERIC, WALKS }
#define BIND_CastLike                                                                                        \
    { ent_ops_cast, ent_ops_dims_cast, ENT_OPS_NUMERIC, WALKS }
#define BIND_Clip                                                                                            \
    { ent_ops_clip, ent_ops_dims_same, NUMBERS, WALKS }
#define BIND_Add BINARY(NUMBERS)
#define BIND_Sub BINARY(NUMBERS)
#define BIND_Mul BINARY(NUMBERS)
#define BIND_Div BINARY(NUMBERS)
#define BIND_Pow BINARY(NUMBERS)
#define BIND_Mod BINARY(NUMBERS)
#define BIND_PRelu BINARY(NUMBERS)
#define BIND_Equal COMPARE(NUMBERS | ENT_OPS_BOOL)
#define BIND_Less COMPARE(NUMBERS)
#define BIND_LessOrEqual COMPARE(NUMBERS)
#define BIND_Greater COMPARE(NUMBERS)
#define BIND_GreaterOrEqual COMPARE(NUMBERS)
#define BIND_And COMPARE(ENT_OPS_BOOL)
#define BIND_Or COMPARE(ENT_OPS_BOOL)
#define BIND_Xor COMPARE(ENT_OPS_BOOL)
#define BIND_BitwiseAnd BINARY(ENT_OPS_INTEGERS)
#define BIND_BitwiseOr BINARY(ENT_OPS_INTEGERS)
#define BIND_BitwiseXor BINARY(ENT_OPS_INTEGERS)
#define BIND_BitShift BINARY(ENT_OPS_UNSIGNED)
#define BIND_Max VARIADIC(NUMBERS)
#define BIND_Min VARIADIC(NUMBERS)
#define BIND_Sum VARIADIC(FLOATS)
#define BIND_Mean VARIADIC(FLOATS)
#define BIND_Where                                                                                           \
    { ent_ops_where, ent_ops_dims_where, ENT_OPS_BOOL, WALKS }
#define BIND_MatMul                                                                                          \
    { ent_ops_matmul, ent_ops_dims_matmul, NUMBERS, 0 }
#define BIND_Gemm                                                                                            \
    { ent_ops_matrix_gemm, ent_ops_dims_gemm, NUMBERS, 0 }
#define BIND_Conv                                                                                            \
    { ent_ops_conv, ent_ops_dims_conv, FLOATS, 0 }
#define BIND_ConvTranspose                                                                                   \
    { ent_ops_conv_transpose, ent_ops_dims_conv_transpose, FLOATS, 0 }
#define BIND_MaxPool                                                                                         \
    { ent_ops_max_pool, ent_ops_dims_pool, FLOATS | ENT_OPS_BIT(ENT_DTYPE_I8) | ENT_OPS_BIT(ENT_DTYPE_U8), 0 }
#define BIND_AveragePool                                                                                     \
    { ent_ops_average_pool, ent_ops_dims_pool, FLOATS, 0 }
#define BIND_GlobalAveragePool                                                                               \
    { ent_ops_global_pool, ent_ops_dims_global_pool, FLOATS, 0 }
#define BIND_GlobalMaxPool                                                                                   \
    { ent_ops_global_pool, ent_ops_dims_global_pool, FLOATS, 0 }
#define BIND_Resize                                                                                          \
    { ent_ops_resize, ent_ops_dims_resize, NUMBERS | ENT_OPS_BOOL, 0 }
#define BIND_ReduceSum REDUCE(NUMBERS)
#define BIND_ReduceMean REDUCE(NUMBERS)
#define BIND_ReduceMax REDUCE(NUMBERS | ENT_OPS_BOOL)
#define BIND_ReduceMin REDUCE(NUMBERS | ENT_OPS_BOOL)
#define BIND_ReduceProd REDUCE(NUMBERS)
#define BIND_ReduceL1 REDUCE(NUMBERS)
#define BIND_ReduceL2 REDUCE(NUMBERS)
#define BIND_ReduceSumSquare REDUCE(NUMBERS)
#define BIND_ReduceLogSum REDUCE(NUMBERS)
#define BIND_ReduceLogSumExp REDUCE(NUMBERS)
#define BIND_ArgMax                                                                                          \
    { ent_ops_arg_reduce, ent_ops_dims_arg_reduce, NUMBERS, 0 }
#define BIND_ArgMin                                                                                          \
    { ent_ops_arg_reduce, ent_ops_dims_arg_reduce, NUMBERS, 0 }
#define BIND_Softmax                                                                                         \
    { ent_ops_softmax, ent_ops_dims_same, FLOATS, 0 }
#define BIND_LogSoftmax                                                                                      \
    { ent_ops_softmax, ent_ops_dims_same, FLOATS, 0 }
#define BIND_Reshape MOVE(ent_ops_reshape, ent_ops_dims_reshape)
#define BIND_Flatten MOVE(ent_ops_reshape, ent_ops_dims_flatten)
#define BIND_Squeeze MOVE(ent_ops_reshape, ent_ops_dims_squeeze)
#define BIND_Unsqueeze MOVE(ent_ops_reshape, ent_ops_dims_unsqueeze)
#define BIND_Transpose MOVE(ent_ops_transpose, ent_ops_dims_transpose)
#define BIND_Concat MOVE(ent_ops_concat, ent_ops_dims_concat)
#define BIND_Split MOVE(ent_ops_split, ent_ops_dims_split)
#define BIND_Slice MOVE(ent_ops_slice, ent_ops_dims_slice)
#define BIND_Gather MOVE(ent_ops_gather, ent_ops_dims_gather)
#define BIND_GatherElements MOVE(ent_ops_gather_elements, ent_ops_dims_gather_elements)
#define BIND_GatherND MOVE(ent_ops_gather_nd, ent_ops_dims_gather_nd)
#define BIND_ScatterND                                                                                       \
    { ent_ops_scatter_nd, ent_ops_dims_same, WHOLE, 0 }
#define BIND_Expand MOVE(ent_ops_expand, ent_ops_dims_expand)
#define BIND_Tile MOVE(ent_ops_tile, ent_ops_dims_tile)
#define BIND_Pad MOVE(ent_ops_pad, ent_ops_dims_pad)
#define BIND_DepthToSpace MOVE(ent_ops_depth_space, ent_ops_dims_depth_space)
#define BIND_SpaceToDepth MOVE(ent_ops_depth_space, ent_ops_dims_depth_space)
#define BIND_NonZero                                                                                         \
    { ent_ops_nonzero, ent_ops_dims_nonzero, NUMBERS | ENT_OPS_BOOL, 0 }
#define BIND_Shape                                                                                           \
    { ent_ops_shape, ent_ops_dims_shape, ENT_OPS_STORED, WALKS }
#define BIND_Size                                                                                            \
    { ent_ops_shape, ent_ops_dims_size, ENT_OPS_STORED, WALKS }
#define BIND_ConstantOfShape                                                                                 \
    { ent_ops_constant_of_shape, ent_ops_dims_constant_of_shape, ENT_OPS_INTEGERS, MOVES }
#define BIND_Range                                                                                           \
    { ent_ops_range, ent_ops_dims_range, NUMBERS, 0 }
#define BIND_Dropout                                                                                         \
    { ent_ops_dropout, ent_ops_dims_dropout, FLOATS | ENT_OPS_FLOAT8, 0 }
#define BIND_QuantizeLinear                                                                                  \
    { ent_ops_quantize, ent_ops_dims_quantize, FLOATS | ENT_OPS_BIT(ENT_DTYPE_I32), WALKS }
#define BIND_DequantizeLinear                                                                                \
    { ent_ops_dequantize, ent_ops_dims_dequantize, ENT_OPS_NUMERIC, WALKS }
#define BIND_If                                                                                              \
    { NULL, NULL, 0, 0 } /* control: whoever runs graphs runs it */
#define BIND_Loop                                                                                            \
    { NULL, NULL, 0, 0 } /* control: whoever runs graphs runs it */
#define BIND_Scan                                                                                            \
    { NULL, NULL, 0, 0 } /* control: whoever runs graphs runs it */
#define BIND_BatchNormalization                                                                              \
    { ent_ops_batch_normalization, ent_ops_dims_batch_normalization, FLOATS, 0 }
#define BIND_InstanceNormalization                                                                           \
    { ent_ops_instance_normalization, ent_ops_dims_same, FLOATS, 0 }
#define BIND_LayerNormalization                                                                              \
    { ent_ops_layer_normalization, ent_ops_dims_layer_normalization, FLOATS, 0 }
#define BIND_Gelu UNARY(FLOATS)
#define BIND_HardSwish UNARY(FLOATS)
#define BIND_Mish UNARY(FLOATS)
#define BIND_Attention                                                                                       \
    { ent_ops_attention, ent_ops_dims_attention, FLOATS, 0 }
#define PLAIN(function, rule)                                                                                \
    { function, rule, FLOATS, 0 }
#define NUMERIC(function, rule)                                                                              \
    { function, rule, NUMBERS, 0 }
#define FROM_INTEGERS(function, rule)                                                                        \
    { function, rule, ENT_OPS_INTEGERS, 0 }
#define ALWAYS_DECOMPOSED                                                                                    \
    { NULL, NULL, 0, 0 }
#define BIND_RMSNormalization PLAIN(ent_ops_rms_normalization, ent_ops_dims_rms_normalization)
#define BIND_GroupNormalization PLAIN(ent_ops_group_normalization, ent_ops_dims_same)
#define BIND_MeanVarianceNormalization PLAIN(ent_ops_mean_variance_normalization, ent_ops_dims_same)
#define BIND_LpNormalization PLAIN(ent_ops_lp_normalization, ent_ops_dims_same)
#define BIND_LRN PLAIN(ent_ops_lrn, ent_ops_dims_same)
#define BIND_Hardmax PLAIN(ent_ops_hardmax, ent_ops_dims_same)
#define BIND_NegativeLogLikelihoodLoss PLAIN(ent_ops_loss, ent_ops_dims_loss)
#define BIND_SoftmaxCrossEntropyLoss PLAIN(ent_ops_loss, ent_ops_dims_loss)
#define BIND_Shrink UNARY(NUMBERS)
#define BIND_Swish UNARY(FLOATS)
#define BIND_HannWindow FROM_INTEGERS(ent_ops_signal_window, ent_ops_dims_signal_window)
#define BIND_HammingWindow FROM_INTEGERS(ent_ops_signal_window, ent_ops_dims_signal_window)
#define BIND_BlackmanWindow FROM_INTEGERS(ent_ops_signal_window, ent_ops_dims_signal_window)
#define BIND_DFT PLAIN(ent_ops_dft, ent_ops_dims_dft)
#define BIND_STFT PLAIN(ent_ops_stft, ent_ops_dims_stft)
#define BIND_MelWeightMatrix FROM_INTEGERS(ent_ops_mel_matrix, ent_ops_dims_mel_matrix)
#define BIND_Einsum NUMERIC(ent_ops_einsum, ent_ops_dims_einsum)
#define BIND_Det PLAIN(ent_ops_det, ent_ops_dims_det)
#define BIND_CumSum NUMERIC(ent_ops_cumulate, ent_ops_dims_same)
#define BIND_CumProd NUMERIC(ent_ops_cumulate, ent_ops_dims_same)
#define BIND_RNN PLAIN(ent_ops_recurrent, ent_ops_dims_recurrent)
#define BIND_GRU PLAIN(ent_ops_recurrent, ent_ops_dims_recurrent)
#define BIND_LSTM PLAIN(ent_ops_recurrent, ent_ops_dims_recurrent)
#define BIND_RotaryEmbedding PLAIN(ent_ops_rotary, ent_ops_dims_same)
#define BIND_LinearAttention PLAIN(ent_ops_linear_attention, ent_ops_dims_linear_attention)
#define BIND_CausalConvWithState PLAIN(ent_ops_causal_conv, ent_ops_dims_causal_conv)
#define BIND_Bernoulli PLAIN(ent_ops_bernoulli, ent_ops_dims_random_like)
#define BIND_RandomNormal PLAIN(ent_ops_random, ent_ops_dims_random)
#define BIND_RandomNormalLike                                                                                \
    { ent_ops_random, ent_ops_dims_random_like, ENT_OPS_NUMERIC, WALKS }
#define BIND_RandomUniform PLAIN(ent_ops_random, ent_ops_dims_random)
#define BIND_RandomUniformLike                                                                               \
    { ent_ops_random, ent_ops_dims_random_like, ENT_OPS_NUMERIC, WALKS }
#define BIND_Multinomial PLAIN(ent_ops_multinomial, ent_ops_dims_multinomial)
#define BIND_FusedMatMul ALWAYS_DECOMPOSED
#define BIND_BiasGelu ALWAYS_DECOMPOSED
#define BIND_FastGelu ALWAYS_DECOMPOSED
#define BIND_QuickGelu ALWAYS_DECOMPOSED
#define BIND_SkipLayerNormalization ALWAYS_DECOMPOSED
#define BIND_SimplifiedLayerNormalization ALWAYS_DECOMPOSED
#define BIND_SkipSimplifiedLayerNormalization ALWAYS_DECOMPOSED
#define BIND_FusedGemm ALWAYS_DECOMPOSED
#define BIND_FusedConv ALWAYS_DECOMPOSED

#define BYTES (ENT_OPS_BIT(ENT_DTYPE_I8) | ENT_OPS_BIT(ENT_DTYPE_U8))
#define BIND_Trilu MOVE(ent_ops_trilu, ent_ops_dims_same)
#define BIND_ScatterElements                                                                                 \
    { ent_ops_scatter_elements, ent_ops_dims_same, WHOLE, 0 }
#define BIND_TensorScatter MOVE(ent_ops_tensor_scatter, ent_ops_dims_same)
#define BIND_TopK                                                                                            \
    { ent_ops_topk, ent_ops_dims_topk, NUMBERS, 0 }
#define BIND_Unique                                                                                          \
    { ent_ops_unique, ent_ops_dims_unique, NUMBERS | ENT_OPS_BOOL, 0 }
#define BIND_Compress MOVE(ent_ops_compress, ent_ops_dims_compress)
#define BIND_OneHot                                                                                          \
    { ent_ops_one_hot, ent_ops_dims_one_hot, NUMBERS, 0 }
#define BIND_EyeLike                                                                                         \
    { ent_ops_eye_like, ent_ops_dims_eye_like, NUMBERS | ENT_OPS_BOOL, WALKS }
#define BIND_ReverseSequence MOVE(ent_ops_reverse_sequence, ent_ops_dims_same)
#define BIND_CenterCropPad MOVE(ent_ops_center_crop_pad, ent_ops_dims_center_crop_pad)
#define BIND_BitCast                                                                                         \
    { ent_ops_bit_cast, ent_ops_dims_bit_cast, ENT_OPS_STORED, 0 }
#define BIND_NonMaxSuppression                                                                               \
    { ent_ops_nms, ent_ops_dims_nms, ENT_OPS_BIT(ENT_DTYPE_F32), 0 }
#define BIND_GridSample                                                                                      \
    { ent_ops_grid_sample, ent_ops_dims_grid_sample, NUMBERS | ENT_OPS_BOOL, 0 }
#define BIND_AffineGrid                                                                                      \
    { ent_ops_affine_grid, ent_ops_dims_affine_grid, FLOATS, 0 }
#define BIND_RoiAlign                                                                                        \
    { ent_ops_roi_align, ent_ops_dims_roi_align, FLOATS, 0 }
#define BIND_MaxRoiPool                                                                                      \
    { ent_ops_max_roi_pool, ent_ops_dims_max_roi_pool, FLOATS, 0 }
#define BIND_MaxUnpool                                                                                       \
    { ent_ops_max_unpool, ent_ops_dims_max_unpool, FLOATS, 0 }
#define BIND_LpPool                                                                                          \
    { ent_ops_lp_pool, ent_ops_dims_pool, FLOATS, 0 }
#define BIND_GlobalLpPool                                                                                    \
    { ent_ops_global_pool, ent_ops_dims_global_pool, FLOATS, 0 }
#define BIND_Col2Im                                                                                          \
    { ent_ops_col2im, ent_ops_dims_col2im, NUMBERS | ENT_OPS_BOOL, 0 }
#define BIND_DeformConv                                                                                      \
    { ent_ops_deform_conv, ent_ops_dims_deform_conv, FLOATS, 0 }
#define BIND_ConvInteger                                                                                     \
    { ent_ops_integer_product, ent_ops_dims_integer, BYTES, 0 }
#define BIND_MatMulInteger                                                                                   \
    { ent_ops_integer_product, ent_ops_dims_integer, BYTES, 0 }
#define BIND_QLinearConv                                                                                     \
    { ent_ops_qlinear_product, ent_ops_dims_integer, BYTES, 0 }
#define BIND_QLinearMatMul                                                                                   \
    { ent_ops_qlinear_product, ent_ops_dims_integer, BYTES | ENT_OPS_FLOAT8, 0 }
#define BIND_DynamicQuantizeLinear                                                                           \
    { ent_ops_dynamic_quantize, ent_ops_dims_dynamic_quantize, ENT_OPS_BIT(ENT_DTYPE_F32), 0 }

#define BIND_QLinearAdd                                                                                      \
    { ent_ops_qlinear_binary, ent_ops_dims_qlinear_binary, BYTES, 0 }
#define BIND_QLinearMul                                                                                      \
    { ent_ops_qlinear_binary, ent_ops_dims_qlinear_binary, BYTES, 0 }
#define BIND_QLinearSigmoid                                                                                  \
    { ent_ops_qlinear_unary, ent_ops_dims_same, BYTES, 0 }
#define BIND_QLinearLeakyRelu                                                                                \
    { ent_ops_qlinear_unary, ent_ops_dims_same, BYTES, 0 }
#define BIND_QLinearSoftmax                                                                                  \
    { ent_ops_qlinear_unary, ent_ops_dims_same, BYTES, 0 }
#define BIND_QLinearAveragePool                                                                              \
    { ent_ops_qlinear_unary, ent_ops_dims_pool, BYTES, 0 }
#define BIND_QLinearGlobalAveragePool                                                                        \
    { ent_ops_qlinear_unary, ent_ops_dims_global_pool, BYTES, 0 }
#define BIND_QLinearConcat                                                                                   \
    { ent_ops_qlinear_concat, ent_ops_dims_qlinear_concat, FLOATS, 0 }
#define BIND_MatMulIntegerToFloat                                                                            \
    { ent_ops_float_product, ent_ops_dims_float_product, BYTES, 0 }
#define BIND_DynamicQuantizeMatMul                                                                           \
    { ent_ops_float_product, ent_ops_dims_float_product, ENT_OPS_BIT(ENT_DTYPE_F32), 0 }
#define BIND_MatMulNBits                                                                                     \
    { ent_ops_matmul_nbits, ent_ops_dims_matmul_nbits, FLOATS, 0 }

#define BIND_FlexAttention                                                                                   \
    { NULL, NULL, 0, 0 } /* its bodies are written out before */
#define BIND_ArrayFeatureExtractor ALWAYS_DECOMPOSED
#define BIND_Binarizer ALWAYS_DECOMPOSED
#define BIND_TreeEnsemble PLAIN(ent_ops_trees, ent_ops_dims_trees)
#define BIND_TfIdfVectorizer FROM_INTEGERS(ent_ops_ngrams, ent_ops_dims_ngrams)

const ent_ops_binding *ent_ops_binding_get(uint32_t op) {
    static const ent_ops_binding bindings[ENT_OP_COUNT] = {
#define ENT_OP(id, name, versions, class_, min_in, max_in, min_out, max_out, attributes) [id] = BIND_##name,
#include "abi/ent_ops.def"
    };
    return op > 0 && op < ENT_OP_COUNT ? &bindings[op] : NULL;
}

bool ent_ops_supported(uint32_t op, uint32_t dtype) {
    const ent_ops_binding *binding = ent_ops_binding_get(op);
    return binding && binding->evaluate && ent_ops_dtype_in(dtype, binding->dtypes);
}

/* The tensors as an operator's function sees them. */
typedef struct frame {
    const ent_tensor **inputs;
    ent_tensor **outputs;
    ent_tensor *copies; /* inputs first, then outputs */
    ent_tensor *dims;   /* what the dims rule says of the outputs */
} frame;

static ent_code frame_allocate(ent_ops_call *call, frame *out) {
    int64_t inputs = call->input_count, outputs = call->output_count;
    out->inputs = ent_ops_scratch(call, inputs + 1, sizeof *out->inputs);
    out->outputs = ent_ops_scratch(call, outputs, sizeof *out->outputs);
    out->copies = ent_ops_scratch(call, inputs + outputs, sizeof *out->copies);
    out->dims = ent_ops_scratch(call, outputs, sizeof *out->dims);
    if (!out->inputs || !out->outputs || !out->copies || !out->dims) return ENT_CODE_OUT_OF_MEMORY;
    memset(out->dims, 0, (size_t)outputs * sizeof *out->dims);
    return ENT_OK;
}

static bool is_sub_byte(const ent_tensor *tensor) {
    return ent_ops_dtype_in(tensor->dtype, ENT_OPS_SUB_BYTE);
}

static ent_code check_memory(ent_ops_call *call, const ent_tensor *tensor, const char *side, uint32_t index) {
    if (tensor->layout.kind != ENT_LAYOUT_STRIDED || tensor->layout.rank != tensor->rank ||
        tensor->layout.block_count > ENT_MAX_BLOCKS)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s %u has a layout that is not strided", side,
                              index);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (tensor->layout.order[i] < tensor->rank) seen |= 1u << tensor->layout.order[i];
    for (uint32_t i = 0; i < tensor->layout.block_count; i++)
        if (tensor->layout.block_axis[i] >= tensor->rank || tensor->layout.block_size[i] == 0)
            seen = UINT32_MAX;
    if (seen != (1u << tensor->rank) - 1)
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s %u has a layout that names a bad axis",
                              side, index);
    int64_t bytes = ent_layout_bytes(&tensor->layout, (ent_dtype)tensor->dtype, tensor->dims);
    if (bytes < 0 || (uint64_t)bytes > tensor->size_bytes || (bytes > 0 && !tensor->data))
        return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "%s %u has less memory than its dims need",
                              side, index);
    return ENT_OK;
}

static ent_code check_outputs(ent_ops_call *call, const ent_tensor *dims) {
    for (uint32_t i = 0; i < call->output_count; i++) {
        const ent_tensor *output = call->outputs[i];
        if (!output) continue;
        if (!ent_ops_check_extents(&dims[i]))
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT, "output %u would be too large", i);
        bool same = output->dtype == dims[i].dtype && output->rank == dims[i].rank;
        for (uint32_t j = 0; same && j < output->rank; j++) same = output->dims[j] == dims[i].dims[j];
        if (!same)
            return ent_ops_refuse(call, ENT_CODE_INVALID_ARGUMENT,
                                  "output %u has other dtype or dims than the inputs give", i);
        ent_code code = check_memory(call, output, "output", i);
        if (code != ENT_OK) return code;
    }
    return ENT_OK;
}

/* A row-major stand-in for a tensor, with one byte an element for sub-byte dtypes. */
static ent_code stand_in(ent_ops_call *call, const ent_tensor *tensor, bool unpack, ent_tensor *out) {
    *out = *tensor;
    out->layout = ent_layout_plain(tensor->rank);
    if (unpack) out->dtype = ENT_DTYPE_U8;
    int64_t bytes = ent_layout_bytes(&out->layout, (ent_dtype)out->dtype, out->dims);
    out->data = ent_ops_scratch(call, bytes, 1);
    out->size_bytes = (uint64_t)bytes;
    return out->data ? ENT_OK : ENT_CODE_OUT_OF_MEMORY;
}

typedef struct codes_context {
    const ent_tensor *to, *from;
} codes_context;

static void copy_codes(void *context, const int64_t *offset, const int64_t *stride, int64_t count) {
    const codes_context *c = context;
    for (int64_t i = 0; i < count; i++)
        ent_ops_code_store(c->to->data, c->to->dtype, offset[0] + i * stride[0],
                           ent_ops_code_load(c->from->data, c->from->dtype, offset[1] + i * stride[1]));
}

/* Unblocked layouts on both sides. */
static void move_codes(const ent_tensor *from, const ent_tensor *to) {
    codes_context context = {to, from};
    const ent_tensor *operands[2] = {to, from};
    ent_ops_walk(operands, 2, copy_codes, &context);
}

/* Row-major, same dtype; then, for sub-byte elements that only move, one byte each. */
static ent_code bring_in(ent_ops_call *call, uint32_t flags, const ent_tensor *input, ent_tensor *out) {
    ent_layout plain = ent_layout_plain(input->rank);
    bool keep = ent_layout_equal(&input->layout, &plain) ||
                ((flags & ENT_OPS_WALKS_STRIDES) && input->layout.block_count == 0);
    bool unpack = (flags & ENT_OPS_MOVES_BYTES) && is_sub_byte(input);
    *out = *input;
    ent_code code = ENT_OK;
    if (!keep) {
        code = stand_in(call, input, false, out);
        if (code == ENT_OK) code = ent_ops_convert(input, out, call->error);
    }
    if (code != ENT_OK || !unpack) return code;
    ent_tensor packed = *out;
    code = stand_in(call, &packed, true, out);
    if (code == ENT_OK) move_codes(&packed, out);
    return code;
}

static ent_code bring_out(ent_ops_call *call, const ent_tensor *result, ent_tensor *output) {
    ent_tensor packed = *result;
    if (result->dtype != output->dtype) {
        packed.dtype = output->dtype;
        int64_t bytes = ent_layout_bytes(&packed.layout, (ent_dtype)packed.dtype, packed.dims);
        packed.data = ent_ops_scratch(call, bytes, 1);
        packed.size_bytes = (uint64_t)bytes;
        if (!packed.data) return ENT_CODE_OUT_OF_MEMORY;
        memset(packed.data, 0, (size_t)bytes);
        move_codes(result, &packed);
    }
    return ent_ops_convert(&packed, output, call->error);
}

static ent_code frame_fill(ent_ops_call *call, uint32_t flags, frame *f) {
    ent_code code = ENT_OK;
    for (uint32_t i = 0; i < call->input_count && code == ENT_OK; i++) {
        f->inputs[i] = NULL;
        if (!call->inputs[i]) continue;
        code = bring_in(call, flags, call->inputs[i], &f->copies[i]);
        f->inputs[i] = &f->copies[i];
    }
    for (uint32_t i = 0; i < call->output_count && code == ENT_OK; i++) {
        ent_tensor *output = call->outputs[i], *copy = &f->copies[call->input_count + i];
        f->outputs[i] = NULL;
        if (!output) continue;
        ent_layout plain = ent_layout_plain(output->rank);
        bool unpack = (flags & ENT_OPS_MOVES_BYTES) && is_sub_byte(output);
        bool keep = !unpack && (ent_layout_equal(&output->layout, &plain) ||
                                ((flags & ENT_OPS_WALKS_STRIDES) && output->layout.block_count == 0));
        *copy = *output;
        if (!keep) code = stand_in(call, output, unpack, copy);
        f->outputs[i] = copy;
        /* Single elements are written into shared bytes; the row padding must end up zero. */
        if (is_sub_byte(copy) && code == ENT_OK) {
            int64_t bytes = ent_layout_bytes(&copy->layout, (ent_dtype)copy->dtype, copy->dims);
            if (bytes > 0) memset(copy->data, 0, (size_t)bytes);
        }
    }
    return code;
}

/* False: every wanted output is empty. Then loops over the other extents would only cost time. */
static bool writes_anything(const ent_ops_call *call) {
    for (uint32_t i = 0; i < call->output_count; i++) {
        const ent_tensor *output = call->outputs[i];
        bool empty = !output;
        for (uint32_t j = 0; !empty && j < output->rank; j++) empty = output->dims[j] == 0;
        if (!empty) return true;
    }
    return false;
}

static ent_code evaluate(ent_ops_call *call, ent_tensor *const *outputs) {
    const ent_ops_binding *binding;
    frame f;
    ent_code code = ent_ops_check_inputs(call, &binding);
    for (uint32_t i = 0; i < call->input_count && code == ENT_OK; i++)
        if (call->inputs[i]) code = check_memory(call, call->inputs[i], "input", i);
    if (code == ENT_OK) code = frame_allocate(call, &f);
    if (code == ENT_OK) code = binding->dims(call, f.dims);
    call->outputs = outputs;
    if (code == ENT_OK) code = check_outputs(call, f.dims);
    if (code == ENT_OK && !writes_anything(call)) return ENT_OK;
    if (code == ENT_OK) code = frame_fill(call, binding->flags, &f);
    if (code != ENT_OK) return code;
    call->inputs = f.inputs;
    call->outputs = f.outputs;
    code = binding->evaluate(call);
    for (uint32_t i = 0; i < call->output_count && code == ENT_OK; i++)
        if (outputs[i] && f.outputs[i]->data != outputs[i]->data)
            code = bring_out(call, f.outputs[i], outputs[i]);
    return code;
}

ent_code ent_ops_evaluate(uint32_t op, ent_attrs attrs, const ent_tensor *const *inputs, uint32_t input_count,
                          ent_tensor *const *outputs, uint32_t output_count, const ent_ops_memory *memory,
                          ent_ops_error *error) {
    ent_ops_call call = {.op = op,
                         .attrs = attrs,
                         .inputs = inputs,
                         .input_count = input_count,
                         .output_count = output_count,
                         .memory = memory ? memory : ent_ops_memory_default(),
                         .error = error};
    ent_code code = evaluate(&call, outputs);
    ent_ops_scratch_release(&call);
    return code;
}
