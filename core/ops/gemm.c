/* The one matrix product of the reference, on doubles: blocked and packed so that the inner loop reads
 * sequential memory, in plain C that compilers vectorise. Sums run over k in ascending order within blocks of
 * BLOCK_K. */
#include "core/ops/internal.h"

#define BLOCK_K 256
#define BLOCK_N 256
#define ROWS 4
#define COLUMNS 4

double *ent_ops_gemm_workspace(ent_ops_call *call) {
    return ent_ops_scratch(call, BLOCK_K * BLOCK_N + BLOCK_K * ROWS, sizeof(double));
}

/* COLUMNS columns at a time, k rows each; missing columns are zero. */
static void pack_b(double *to, ent_ops_matrix b, int64_t n, int64_t k) {
    for (int64_t j = 0; j < n; j += COLUMNS) {
        int64_t width = n - j < COLUMNS ? n - j : COLUMNS;
        const double *from = b.data + j * b.column;
        for (int64_t p = 0; p < k; p++, to += COLUMNS)
            for (int64_t q = 0; q < COLUMNS; q++) to[q] = q < width ? from[p * b.row + q * b.column] : 0;
    }
}

static void pack_a(double *to, ent_ops_matrix a, int64_t m, int64_t k) {
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t p = 0; p < k; p++) to[p * ROWS + i] = i < m ? a.data[i * a.row + p * a.column] : 0;
}

static void multiply_tile(const double *restrict a, const double *restrict b, int64_t k,
                          double *restrict out) {
    double sum[ROWS * COLUMNS] = {0};
    for (int64_t p = 0; p < k; p++, a += ROWS, b += COLUMNS) {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++) sum[i * COLUMNS + j] += a[i] * b[j];
    }
    for (int i = 0; i < ROWS * COLUMNS; i++) out[i] = sum[i];
}

static void multiply_block(double *packed_a, const double *packed_b, int64_t m, int64_t n, int64_t k,
                           ent_ops_matrix a, double *c, int64_t c_row) {
    double tile[ROWS * COLUMNS];
    for (int64_t i = 0; i < m; i += ROWS) {
        int64_t height = m - i < ROWS ? m - i : ROWS;
        ent_ops_matrix rows = {a.data + i * a.row, a.row, a.column};
        pack_a(packed_a, rows, height, k);
        for (int64_t j = 0; j < n; j += COLUMNS) {
            int64_t width = n - j < COLUMNS ? n - j : COLUMNS;
            multiply_tile(packed_a, packed_b + j * k, k, tile);
            for (int64_t p = 0; p < height; p++)
                for (int64_t q = 0; q < width; q++) c[(i + p) * c_row + j + q] += tile[p * COLUMNS + q];
        }
    }
}

void ent_ops_gemm(double *workspace, int64_t m, int64_t n, int64_t k, ent_ops_matrix a, ent_ops_matrix b,
                  double *c, int64_t c_row) {
    double *packed_b = workspace, *packed_a = workspace + BLOCK_K * BLOCK_N;
    for (int64_t p = 0; p < k; p += BLOCK_K) {
        int64_t depth = k - p < BLOCK_K ? k - p : BLOCK_K;
        for (int64_t j = 0; j < n; j += BLOCK_N) {
            int64_t width = n - j < BLOCK_N ? n - j : BLOCK_N;
            ent_ops_matrix b_block = {b.data + p * b.row + j * b.column, b.row, b.column};
            ent_ops_matrix a_block = {a.data + p * a.column, a.row, a.column};
            pack_b(packed_b, b_block, width, depth);
            multiply_block(packed_a, packed_b, m, width, depth, a_block, c + j, c_row);
        }
    }
}
