/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on the CPU: OpenBLAS where it is in the build, plain blocked loops elsewhere. */
#ifndef ADL_KERNELS_GEMM_H
#define ADL_KERNELS_GEMM_H

#include <stdbool.h>

#include "core/status.h"

struct adl_matrix { /* row-major, `stride` floats from row to row */
    const float *v;
    int stride;
    bool transposed; /* stands for the transpose of what is stored */
};

/* c (m, n), stride_c, = alpha a (m, k) b (k, n) + beta c; beta 0: c is not read.
 * m, n, k >= 1. Safe to call from several threads at once. */
void adl_gemm(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
              float beta, float *c, int stride_c);

/* The same by plain loops, whatever is in the build. */
void adl_gemm_plain(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
                    float beta, float *c, int stride_c);

/* OpenBLAS threads of every product of this process, >= 1. Their number changes bits, and more
 * than one makes products of different threads wait for each other. No effect without OpenBLAS in
 * the build; ADL_ERR_UNSUPPORTED where it is in the build and missing here: products would be the
 * plain ones, with other bits. */
enum adl_status adl_gemm_set_threads(int n, struct adl_err *err);

#endif
