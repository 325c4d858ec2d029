/* The kernel table of one ISA level. */
#include "vec.h"
#include "kernels_isa.h"
#include "gemm_micro.h"

void ENT_ISA(ent_cpu_kernels_fill)(ent_cpu_kernels *table);

void ENT_ISA(ent_cpu_kernels_fill)(ent_cpu_kernels *table) {
    *table = (ent_cpu_kernels){
        .isa = (ent_cpu_isa)ENT_ISA_LEVEL,
        .lanes = VF_LANES,
        .gemm_m = GEMM_ROWS,
        .gemm_n = GEMM_VECTORS * VF_LANES,
        .gemm = ENT_ISA(ent_cpu_gemm_run),
        .gemm_dot = ENT_ISA(ent_cpu_gemm_dot_run),
        .gemm8 = ENT_ISA(ent_cpu_gemm8_run),
        .pack_a8 = ENT_ISA(ent_cpu_pack_a8),
        .a8_bytes = sizeof(int16_t),
        .gemm8_name = "pmaddwd",
        .pack_b = ENT_ISA(ent_cpu_pack_b),
        .window = ENT_ISA(ent_cpu_window_run),
        .multiply_add = ENT_ISA(ent_cpu_multiply_add),
        .select = ENT_ISA(ent_cpu_select),
        .softmax_row = ENT_ISA(ent_cpu_softmax_row),
        .exp_sum = ENT_ISA(ent_cpu_exp_sum),
        .layer_norm_row = ENT_ISA(ent_cpu_layer_norm_row),
        .transpose = ENT_ISA(ent_cpu_transpose),
        .gather_rows = ENT_ISA(ent_cpu_gather_rows),
        .copy_rows = ENT_ISA(ent_cpu_copy_rows),
        .fma_work = ENT_ISA(ent_cpu_fma_work),
        .read_work = ENT_ISA(ent_cpu_read_work),
    };
    ENT_ISA(ent_cpu_unary_bind)(table);
    ENT_ISA(ent_cpu_binary_bind)(table);
    ENT_ISA(ent_cpu_typed_bind)(table);
    ENT_ISA(ent_cpu_cast_bind)(table);
    ENT_ISA(ent_cpu_reduce_bind)(table);
}
