/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/gemm.h"

#include "build_config.h"

#ifdef ADL_HAVE_BLAS
#include <cblas.h>

static CBLAS_TRANSPOSE way(struct adl_matrix x)
{
    return x.transposed ? CblasTrans : CblasNoTrans;
}

void adl_gemm(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
              float beta, float *c, int stride_c)
{
    cblas_sgemm(CblasRowMajor, way(a), way(b), m, n, k, alpha, a.v, a.stride, b.v, b.stride, beta,
                c, stride_c);
}

void adl_gemm_set_threads(int n)
{
    openblas_set_num_threads(n);
}

#else

void adl_gemm(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
              float beta, float *c, int stride_c)
{
    adl_gemm_plain(m, n, k, alpha, a, b, beta, c, stride_c);
}

void adl_gemm_set_threads(int n)
{
    (void)n;
}

#endif
