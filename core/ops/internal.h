/* What the files of core/ops share. Not for use outside this folder.
 *
 * An evaluation is one ent_ops_call. evaluate.c checks the arguments against the operator's dims rule, brings
 * every tensor into row-major order (except for operators that walk strides themselves), calls the operator's
 * function and frees all scratch. So an operator's function sees plain tensors of the right dtypes and dims,
 * and never cleans up. */
#ifndef ENT_OPS_INTERNAL_H
#define ENT_OPS_INTERNAL_H

#include "core/ops/ops.h"

#define ENT_OPS_CHUNK 256 /* elements that a chunked loop holds on the stack per operand */

/* Sets of dtypes, as bits of 1 << dtype. */
#define ENT_OPS_BIT(dtype) (1u << (dtype))
#define ENT_OPS_FLOATS                                                                                       \
    (ENT_OPS_BIT(ENT_DTYPE_F32) | ENT_OPS_BIT(ENT_DTYPE_F16) | ENT_OPS_BIT(ENT_DTYPE_BF16) |                 \
     ENT_OPS_BIT(ENT_DTYPE_F64))
#define ENT_OPS_UNSIGNED                                                                                     \
    (ENT_OPS_BIT(ENT_DTYPE_U8) | ENT_OPS_BIT(ENT_DTYPE_U16) | ENT_OPS_BIT(ENT_DTYPE_U32) |                   \
     ENT_OPS_BIT(ENT_DTYPE_U64))
#define ENT_OPS_SIGNED                                                                                       \
    (ENT_OPS_BIT(ENT_DTYPE_I8) | ENT_OPS_BIT(ENT_DTYPE_I16) | ENT_OPS_BIT(ENT_DTYPE_I32) |                   \
     ENT_OPS_BIT(ENT_DTYPE_I64))
#define ENT_OPS_INTEGERS (ENT_OPS_UNSIGNED | ENT_OPS_SIGNED)
#define ENT_OPS_BOOL ENT_OPS_BIT(ENT_DTYPE_BOOL)
#define ENT_OPS_SUB_BYTE                                                                                     \
    (ENT_OPS_BIT(ENT_DTYPE_I4) | ENT_OPS_BIT(ENT_DTYPE_U4) | ENT_OPS_BIT(ENT_DTYPE_I2) |                     \
     ENT_OPS_BIT(ENT_DTYPE_U2) | ENT_OPS_BIT(ENT_DTYPE_F4E2M1))
#define ENT_OPS_FLOAT8                                                                                       \
    (ENT_OPS_BIT(ENT_DTYPE_F8E4M3FN) | ENT_OPS_BIT(ENT_DTYPE_F8E4M3FNUZ) | ENT_OPS_BIT(ENT_DTYPE_F8E5M2) |   \
     ENT_OPS_BIT(ENT_DTYPE_F8E5M2FNUZ) | ENT_OPS_BIT(ENT_DTYPE_F8E8M0))
#define ENT_OPS_NUMBERS (ENT_OPS_FLOATS | ENT_OPS_INTEGERS)
#define ENT_OPS_NUMERIC (ENT_OPS_NUMBERS | ENT_OPS_BOOL | ENT_OPS_SUB_BYTE | ENT_OPS_FLOAT8)
#define ENT_OPS_STORED (ENT_OPS_NUMERIC | ENT_OPS_BIT(ENT_DTYPE_C64) | ENT_OPS_BIT(ENT_DTYPE_C128))

static inline bool ent_ops_dtype_in(uint32_t dtype, uint32_t set) {
    return dtype < ENT_DTYPE_COUNT && (set >> dtype & 1u) != 0;
}

struct ent_ops_scratch_block;

typedef struct ent_ops_call {
    uint32_t op;
    uint32_t input_count;
    uint32_t output_count;
    ent_attrs attrs;
    const ent_tensor *const *inputs;
    ent_tensor *const *outputs; /* NULL while only dims are asked for */
    const ent_ops_memory *memory;
    ent_ops_error *error; /* can be NULL */
    struct ent_ops_scratch_block *blocks;
} ent_ops_call;

/* How an operator is bound: its function, its dims rule, the dtypes of input 0. */
typedef ent_code (*ent_ops_function)(ent_ops_call *call);
typedef ent_code (*ent_ops_dims_rule)(ent_ops_call *call, ent_tensor *outputs);
typedef struct ent_ops_binding {
    ent_ops_function evaluate; /* NULL: absent */
    ent_ops_dims_rule dims;
    uint32_t dtypes;
    uint32_t flags; /* ent_ops_flag */
} ent_ops_binding;
typedef enum ent_ops_flag {
    ENT_OPS_WALKS_STRIDES = 1, /* takes any unblocked layout and sub-byte rows */
    ENT_OPS_MOVES_BYTES = 2    /* only moves elements: sub-byte elements are handed over one per byte */
} ent_ops_flag;
/* NULL for an id outside the table. */
const ent_ops_binding *ent_ops_binding_get(uint32_t op);

/* dims.c */
/* Arity, ranks and dtype of input 0; the binding of an operator that has a meaning. */
ent_code ent_ops_check_inputs(ent_ops_call *call, const ent_ops_binding **out);
/* False when a rank, an extent (beyond 2^40) or the bytes in row-major order cannot be right. */
bool ent_ops_check_extents(const ent_tensor *tensor);
/* Broadcasts dims into output's. */
ent_code ent_ops_dims_merge(ent_ops_call *call, const int64_t *dims, uint32_t rank, ent_tensor *output);

void ent_ops_dims_set(ent_tensor *output, uint32_t dtype, uint32_t rank, const int64_t *dims);

/* call.c: errors, scratch, reading inputs */
/* Writes "Operator: text" into the error and returns code. */
ent_code ent_ops_refuse(ent_ops_call *call, ent_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Freed when the call ends. NULL, with the error set, on overflow or lack of memory. 64-byte aligned. */
void *ent_ops_scratch(ent_ops_call *call, int64_t count, int64_t size_bytes);
void ent_ops_scratch_release(ent_ops_call *call);
/* NULL when the input is absent. */
const ent_tensor *ent_ops_input(const ent_ops_call *call, uint32_t index);
/* NULL when the output is not wanted. */
ent_tensor *ent_ops_output(const ent_ops_call *call, uint32_t index);
int64_t ent_ops_element_count(const ent_tensor *tensor);
/* A tensor's values in row-major order, as doubles or int64, in scratch. NULL with the error set. */
double *ent_ops_values_f64(ent_ops_call *call, const ent_tensor *tensor);
int64_t *ent_ops_values_i64(ent_ops_call *call, const ent_tensor *tensor);
/* Stores row-major values into a plain output; NULL outputs are skipped. */
void ent_ops_result_f64(const ent_tensor *output, const double *values);
void ent_ops_result_i64(const ent_tensor *output, const int64_t *values);
/* An input that holds a short list of integers (axes, shape, pads ...): at most `limit` values into out. */
ent_code ent_ops_input_list(ent_ops_call *call, uint32_t index, int64_t *out, uint32_t limit,
                            uint32_t *out_count);
/* axis in [-rank, rank) to [0, rank); refuses others. */
ent_code ent_ops_axis(ent_ops_call *call, int64_t axis, uint32_t rank, uint32_t *out_axis);
/* Copies dtype, rank, dims. */
void ent_ops_dims_copy(const ent_tensor *from, ent_tensor *to);
/* Product of dims[from..to). */
int64_t ent_ops_product(const int64_t *dims, uint32_t from, uint32_t to);
/* A dtype-valued attribute (Cast's `to`, output_dtype ...): an ent_dtype number, see ent_ops.def. `missing`
 * when absent or 0; NONE for a number unknown here. */
uint32_t ent_ops_attr_dtype(ent_attrs attrs, const char *name, uint32_t missing);

/* access.c: runs of elements; offset and stride in physical elements */
void ent_ops_load_run_f64(const void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                          double *out);
void ent_ops_store_run_f64(void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                           const double *in);
void ent_ops_load_run_i64(const void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                          int64_t *out);
void ent_ops_store_run_i64(void *data, uint32_t dtype, int64_t offset, int64_t stride, int64_t count,
                           const int64_t *in);
/* The bits of one element, as the low bits of the result; at most 8 bytes wide. */
uint64_t ent_ops_code_load(const void *data, uint32_t dtype, int64_t index);
void ent_ops_code_store(void *data, uint32_t dtype, int64_t index, uint64_t code);
/* Bits of the float format nearest to value, ties to even. saturate: beyond the largest finite value gives
 * that value instead of infinity or NaN (only for 8-bit and narrower formats). */
uint32_t ent_ops_float_encode(uint32_t dtype, double value, bool saturate);
/* F8E8M0 by rounding mode 'u' (up), 'd' (down), 'n' (nearest, ties up). */
uint32_t ent_ops_e8m0_encode(double value, bool saturate, char mode);

/* strides.c: unblocked layouts as strides, and a walk over several tensors at once */
/* Element stride of each logical axis; sub-byte rows are padded to a byte. The layout has no blocks. */
void ent_ops_strides(const ent_tensor *tensor, int64_t *out_strides);
/* Like ent_layout_offset, but counts the padding of sub-byte rows. Any strided layout. */
int64_t ent_ops_offset(const ent_tensor *tensor, const int64_t *index);

#define ENT_OPS_MAX_OPERANDS 8
/* One innermost run: operand i starts at element offset[i] and advances by stride[i]. */
typedef void (*ent_ops_run)(void *context, const int64_t *offset, const int64_t *stride, int64_t count);
/* Calls run until every element of `dims` (the first operand's) was visited. Operands broadcast to them,
 * numpy style. */
void ent_ops_walk(const ent_tensor *const *operands, uint32_t operand_count, ent_ops_run run, void *context);

/* copy.c: n-dimensional copy; strides in elements of size_bytes (1, 2, 4, 8 or 16) */
typedef struct ent_ops_copy_axis {
    int64_t extent;
    int64_t from_stride;
    int64_t to_stride;
} ent_ops_copy_axis;
#define ENT_OPS_COPY_AXES 24
/* axes is used up. Source strides may be 0 or negative. */
void ent_ops_copy(const void *from, void *to, int64_t size_bytes, ent_ops_copy_axis *axes,
                  uint32_t axis_count);

/* gemm.c: c += a b on doubles. a's and b's element (i, j) lies at i * row + j * column; c is m x n with rows
 * c_row apart. */
typedef struct ent_ops_matrix {
    const double *data;
    int64_t row, column;
} ent_ops_matrix;
/* NULL with the error set. One workspace serves any number of products, one at a time. */
double *ent_ops_gemm_workspace(ent_ops_call *call);
void ent_ops_gemm(double *workspace, int64_t m, int64_t n, int64_t k, ent_ops_matrix a, ent_ops_matrix b,
                  double *c, int64_t c_row);

/* gather.c: index in [-extent, extent) to [0, extent); refuses others. */
ent_code ent_ops_index(ent_ops_call *call, int64_t *index, int64_t extent);
/* Row number of one index tuple over dims[first .. first + tuple). */
ent_code ent_ops_index_row(ent_ops_call *call, const ent_tensor *x, uint32_t first, int64_t *index,
                           int64_t tuple, int64_t *out);

/* sort.c: sorts numbers, keeping the order of equals; room for as many. before: a goes before b. */
typedef bool (*ent_ops_before)(const void *context, int64_t a, int64_t b);
void ent_ops_sort(int64_t *items, int64_t count, int64_t *room, ent_ops_before before, const void *context);

/* window.c: geometry of Conv, ConvTranspose and the pools */
#define ENT_OPS_MAX_SPATIAL 6
typedef struct ent_ops_window {
    uint32_t rank; /* spatial axes */
    int64_t in[ENT_OPS_MAX_SPATIAL], out[ENT_OPS_MAX_SPATIAL];
    int64_t kernel[ENT_OPS_MAX_SPATIAL], stride[ENT_OPS_MAX_SPATIAL], dilation[ENT_OPS_MAX_SPATIAL];
    int64_t pad_begin[ENT_OPS_MAX_SPATIAL], pad_end[ENT_OPS_MAX_SPATIAL];
    int64_t kernel_count, in_count, out_count; /* products */
} ent_ops_window;
/* x is N x C x spatial. kernel: the weights' spatial extents, or NULL to take kernel_shape. */
ent_code ent_ops_window_resolve(ent_ops_call *call, const ent_tensor *x, const int64_t *kernel,
                                bool transposed, ent_ops_window *out);

/* Operators' functions and dims rules, bound in evaluate.c */
#define ENT_OPS_DECLARE(name) ent_code name(ent_ops_call *call)
#define ENT_OPS_DECLARE_DIMS(name) ent_code name(ent_ops_call *call, ent_tensor *outputs)
ENT_OPS_DECLARE(ent_ops_unary);
ENT_OPS_DECLARE(ent_ops_binary);
ENT_OPS_DECLARE(ent_ops_variadic);
ENT_OPS_DECLARE(ent_ops_clip);
ENT_OPS_DECLARE(ent_ops_where);
ENT_OPS_DECLARE(ent_ops_cast);
ENT_OPS_DECLARE(ent_ops_matmul);
ENT_OPS_DECLARE(ent_ops_matrix_gemm);
ENT_OPS_DECLARE(ent_ops_conv);
ENT_OPS_DECLARE(ent_ops_conv_transpose);
ENT_OPS_DECLARE(ent_ops_max_pool);
ENT_OPS_DECLARE(ent_ops_average_pool);
ENT_OPS_DECLARE(ent_ops_global_pool);
ENT_OPS_DECLARE(ent_ops_resize);
ENT_OPS_DECLARE(ent_ops_reduce);
ENT_OPS_DECLARE(ent_ops_arg_reduce);
ENT_OPS_DECLARE(ent_ops_softmax);
ENT_OPS_DECLARE(ent_ops_reshape);
ENT_OPS_DECLARE(ent_ops_transpose);
ENT_OPS_DECLARE(ent_ops_concat);
ENT_OPS_DECLARE(ent_ops_split);
ENT_OPS_DECLARE(ent_ops_slice);
ENT_OPS_DECLARE(ent_ops_expand);
ENT_OPS_DECLARE(ent_ops_tile);
ENT_OPS_DECLARE(ent_ops_pad);
ENT_OPS_DECLARE(ent_ops_depth_space);
ENT_OPS_DECLARE(ent_ops_dropout);
ENT_OPS_DECLARE(ent_ops_gather);
ENT_OPS_DECLARE(ent_ops_gather_elements);
ENT_OPS_DECLARE(ent_ops_gather_nd);
ENT_OPS_DECLARE(ent_ops_scatter_nd);
ENT_OPS_DECLARE(ent_ops_nonzero);
ENT_OPS_DECLARE(ent_ops_shape);
ENT_OPS_DECLARE(ent_ops_constant_of_shape);
ENT_OPS_DECLARE(ent_ops_range);
ENT_OPS_DECLARE(ent_ops_quantize);
ENT_OPS_DECLARE(ent_ops_dequantize);
ENT_OPS_DECLARE(ent_ops_batch_normalization);
ENT_OPS_DECLARE(ent_ops_instance_normalization);
ENT_OPS_DECLARE(ent_ops_layer_normalization);
ENT_OPS_DECLARE(ent_ops_attention);
ENT_OPS_DECLARE(ent_ops_rms_normalization);
ENT_OPS_DECLARE(ent_ops_group_normalization);
ENT_OPS_DECLARE(ent_ops_mean_variance_normalization);
ENT_OPS_DECLARE(ent_ops_lp_normalization);
ENT_OPS_DECLARE(ent_ops_lrn);
ENT_OPS_DECLARE(ent_ops_hardmax);
ENT_OPS_DECLARE(ent_ops_loss);
ENT_OPS_DECLARE(ent_ops_signal_window);
ENT_OPS_DECLARE(ent_ops_dft);
ENT_OPS_DECLARE(ent_ops_stft);
ENT_OPS_DECLARE(ent_ops_mel_matrix);
ENT_OPS_DECLARE(ent_ops_einsum);
ENT_OPS_DECLARE(ent_ops_det);
ENT_OPS_DECLARE(ent_ops_cumulate);
ENT_OPS_DECLARE(ent_ops_recurrent);
ENT_OPS_DECLARE(ent_ops_rotary);
ENT_OPS_DECLARE(ent_ops_linear_attention);
ENT_OPS_DECLARE(ent_ops_causal_conv);
ENT_OPS_DECLARE(ent_ops_bernoulli);
ENT_OPS_DECLARE(ent_ops_random);
ENT_OPS_DECLARE(ent_ops_multinomial);
ENT_OPS_DECLARE(ent_ops_lp_pool);
ENT_OPS_DECLARE(ent_ops_trilu);
ENT_OPS_DECLARE(ent_ops_scatter_elements);
ENT_OPS_DECLARE(ent_ops_tensor_scatter);
ENT_OPS_DECLARE(ent_ops_topk);
ENT_OPS_DECLARE(ent_ops_unique);
ENT_OPS_DECLARE(ent_ops_compress);
ENT_OPS_DECLARE(ent_ops_one_hot);
ENT_OPS_DECLARE(ent_ops_eye_like);
ENT_OPS_DECLARE(ent_ops_reverse_sequence);
ENT_OPS_DECLARE(ent_ops_center_crop_pad);
ENT_OPS_DECLARE(ent_ops_bit_cast);
ENT_OPS_DECLARE(ent_ops_nms);
ENT_OPS_DECLARE(ent_ops_grid_sample);
ENT_OPS_DECLARE(ent_ops_affine_grid);
ENT_OPS_DECLARE(ent_ops_roi_align);
ENT_OPS_DECLARE(ent_ops_max_roi_pool);
ENT_OPS_DECLARE(ent_ops_max_unpool);
ENT_OPS_DECLARE(ent_ops_col2im);
ENT_OPS_DECLARE(ent_ops_deform_conv);
ENT_OPS_DECLARE(ent_ops_integer_product);
ENT_OPS_DECLARE(ent_ops_qlinear_product);
ENT_OPS_DECLARE(ent_ops_dynamic_quantize);
ENT_OPS_DECLARE(ent_ops_qlinear_binary);
ENT_OPS_DECLARE(ent_ops_qlinear_unary);
ENT_OPS_DECLARE(ent_ops_qlinear_concat);
ENT_OPS_DECLARE(ent_ops_float_product);
ENT_OPS_DECLARE(ent_ops_matmul_nbits);
ENT_OPS_DECLARE(ent_ops_trees);
ENT_OPS_DECLARE(ent_ops_ngrams);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_trees);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_ngrams);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_batch_normalization);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_same);      /* dtype and dims of input 0 */
ENT_OPS_DECLARE_DIMS(ent_ops_dims_bool);      /* dims of input 0, bool */
ENT_OPS_DECLARE_DIMS(ent_ops_dims_broadcast); /* all inputs broadcast, dtype of input 0 */
ENT_OPS_DECLARE_DIMS(ent_ops_dims_compare);   /* all inputs broadcast, bool */
ENT_OPS_DECLARE_DIMS(ent_ops_dims_where);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_cast);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_matmul);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_gemm);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_conv);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_conv_transpose);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_pool);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_global_pool);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_resize);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_reduce);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_arg_reduce);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_reshape);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_flatten);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_squeeze);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_unsqueeze);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_transpose);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_concat);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_split);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_slice);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_expand);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_tile);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_pad);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_depth_space);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_dropout);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_gather);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_gather_elements);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_gather_nd);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_nonzero);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_shape);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_size);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_constant_of_shape);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_range);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_quantize);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_dequantize);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_layer_normalization);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_attention);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_rms_normalization);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_loss);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_signal_window);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_dft);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_stft);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_mel_matrix);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_einsum);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_det);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_recurrent);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_linear_attention);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_causal_conv);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_random);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_random_like);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_multinomial);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_topk);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_unique);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_compress);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_one_hot);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_eye_like);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_center_crop_pad);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_bit_cast);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_nms);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_grid_sample);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_affine_grid);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_roi_align);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_max_roi_pool);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_max_unpool);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_col2im);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_deform_conv);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_integer);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_dynamic_quantize);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_qlinear_binary);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_qlinear_concat);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_float_product);
ENT_OPS_DECLARE_DIMS(ent_ops_dims_matmul_nbits);

#endif
