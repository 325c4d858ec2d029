/* The functions of one ISA level, bound into its table by table.c. Included by kernel sources after vec.h. */
#ifndef ENT_CPU_KERNELS_ISA_H
#define ENT_CPU_KERNELS_ISA_H

#include "kernels.h"

void ENT_ISA(ent_cpu_gemm_run)(const ent_cpu_gemm *g);
void ENT_ISA(ent_cpu_gemm_dot_run)(const ent_cpu_gemm_dot *g);
void ENT_ISA(ent_cpu_gemm8_run)(const ent_cpu_gemm8 *g);
void ENT_ISA(ent_cpu_pack_a8)(const uint8_t *row, int64_t k_step, int64_t k, bool is_signed, int32_t zero,
                              void *out);
void ENT_ISA(ent_cpu_pack_b)(const float *b, int64_t k_stride, int64_t n_stride, int64_t k, int64_t n,
                             float *out, int64_t panel_stride);
void ENT_ISA(ent_cpu_window_run)(const ent_cpu_window *w);
void ENT_ISA(ent_cpu_transpose)(const void *in, int64_t in_stride, void *out, int64_t out_stride,
                                int64_t rows, int64_t columns, int64_t element_bytes);
void ENT_ISA(ent_cpu_gather_rows)(const void *in, int64_t in_stride_bytes, const int64_t *indices, int64_t n,
                                  void *out, int64_t out_stride_bytes, int64_t row_bytes);
void ENT_ISA(ent_cpu_copy_rows)(const void *in, int64_t in_stride_bytes, void *out, int64_t out_stride_bytes,
                                int64_t n, int64_t row_bytes);
void ENT_ISA(ent_cpu_multiply_add)(const float *a, int64_t a_step, const float *b, int64_t b_step,
                                   const float *c, int64_t c_step, float *y, int64_t n);
void ENT_ISA(ent_cpu_select)(const uint8_t *condition, int64_t condition_step, const void *a, int64_t a_step,
                             const void *b, int64_t b_step, void *y, int64_t n, int64_t element_bytes);
void ENT_ISA(ent_cpu_softmax_row)(const float *x, float *y, int64_t n, float scale);
float ENT_ISA(ent_cpu_exp_sum)(const float *x, float *y, int64_t n, float max);
void ENT_ISA(ent_cpu_layer_norm_row)(const float *x, float *y, int64_t n, const float *scale,
                                     const float *bias, float epsilon);
double ENT_ISA(ent_cpu_fma_work)(int64_t loops);
float ENT_ISA(ent_cpu_read_work)(const float *x, int64_t n);

/* Each source that owns rows of a sub-table fills them in. */
void ENT_ISA(ent_cpu_unary_bind)(ent_cpu_kernels *table);
void ENT_ISA(ent_cpu_binary_bind)(ent_cpu_kernels *table);
void ENT_ISA(ent_cpu_typed_bind)(ent_cpu_kernels *table);
void ENT_ISA(ent_cpu_cast_bind)(ent_cpu_kernels *table);
void ENT_ISA(ent_cpu_reduce_bind)(ent_cpu_kernels *table);

#endif
