/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products where there is no OpenBLAS: blocks of both factors are copied into panels that
 * stay in cache, and panels are multiplied six rows by sixteen columns at a time. */
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/ops_cpu_simd.h"

enum {
    ROWS = 6,           /* of a micro-tile: with its columns, what 16 registers of 8 floats hold */
    COLS = ADL_LANES,   /* of a micro-tile */
    BLOCK_M = 8 * ROWS, /* of a block: a few tens of kilobytes on the stack */
    BLOCK_N = 8 * COLS,
    BLOCK_K = 128
};

typedef float columns __attribute__((vector_size(COLS * sizeof(float))));

static inline float at(struct adl_matrix x, int row, int col)
{
    return x.transposed ? x.v[(size_t)col * x.stride + row] : x.v[(size_t)row * x.stride + col];
}

/* panel: strips of ROWS rows, in each column after column; rows beyond m are 0. */
static void pack_a(float *panel, struct adl_matrix a, int row, int col, int m, int k)
{
    for (int i = 0; i < m; i += ROWS)
        for (int p = 0; p < k; p++)
            for (int r = 0; r < ROWS; r++)
                *panel++ = i + r < m ? at(a, row + i + r, col + p) : 0.0f;
}

/* panel: strips of COLS columns, in each row after row; columns beyond n are 0. */
static void pack_b(float *panel, struct adl_matrix b, int row, int col, int k, int n)
{
    for (int j = 0; j < n; j += COLS)
        for (int p = 0; p < k; p++)
            for (int c = 0; c < COLS; c++)
                *panel++ = j + c < n ? at(b, row + p, col + j + c) : 0.0f;
}

/* c (m <= ROWS, n <= COLS) += alpha times a strip of a by a strip of b. */
ADL_SIMD static void multiply(const float *restrict a, const float *restrict b, int k, float alpha,
                              float *c, int stride_c, int m, int n)
{
    columns sum[ROWS] = {{0}};
    for (int p = 0; p < k; p++) {
        columns row;
        memcpy(&row, b + p * COLS, sizeof row);
        for (int r = 0; r < ROWS; r++)
            sum[r] += a[p * ROWS + r] * row;
    }
    for (int r = 0; r < m; r++)
        for (int j = 0; j < n; j++)
            c[(size_t)r * stride_c + j] += alpha * sum[r][j];
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static void scale(int m, int n, float beta, float *c, int stride_c)
{
    for (int i = 0; i < m; i++) {
        float *row = c + (size_t)i * stride_c;
        if (beta == 0.0f)
            memset(row, 0, (size_t)n * sizeof *row);
        else if (beta != 1.0f)
            for (int j = 0; j < n; j++)
                row[j] *= beta;
    }
}

void adl_gemm_plain(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
                    float beta, float *c, int stride_c)
{
    float panel_a[BLOCK_M * BLOCK_K], panel_b[BLOCK_K * BLOCK_N];
    scale(m, n, beta, c, stride_c);
    for (int j = 0; j < n; j += BLOCK_N)
        for (int p = 0; p < k; p += BLOCK_K) {
            const int nb = smaller(BLOCK_N, n - j), kb = smaller(BLOCK_K, k - p);
            pack_b(panel_b, b, p, j, kb, nb);
            for (int i = 0; i < m; i += BLOCK_M) {
                const int mb = smaller(BLOCK_M, m - i);
                pack_a(panel_a, a, i, p, mb, kb);
                for (int r = 0; r < mb; r += ROWS)
                    for (int s = 0; s < nb; s += COLS)
                        multiply(panel_a + r * kb, panel_b + s * kb, kb, alpha,
                                 c + (size_t)(i + r) * stride_c + j + s, stride_c,
                                 smaller(ROWS, mb - r), smaller(COLS, nb - s));
            }
        }
}
