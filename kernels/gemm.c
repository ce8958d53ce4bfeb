/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS is loaded at the first product: its 14,000 relocations and its threads would be a tenth
 * of the time of programs that multiply nothing, as simulations of one collective. */
#include "kernels/gemm.h"

#include "build_config.h"

#ifdef ADL_HAVE_BLAS
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

static struct {
    __typeof__(cblas_sgemm) *sgemm; /* NULL: it cannot be loaded */
    __typeof__(openblas_set_num_threads) *set_threads;
    char why[256];
} blas;

static void load(void)
{
    void *library = dlopen(ADL_BLAS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void *sgemm = library ? dlsym(library, "cblas_sgemm") : NULL;
    void *set_threads = sgemm ? dlsym(library, "openblas_set_num_threads") : NULL;
    if (!set_threads) {
        const char *cause = dlerror();
        snprintf(blas.why, sizeof blas.why, "%s", cause ? cause : "unknown");
        return;
    }
    *(void **)&blas.set_threads = set_threads;
    *(void **)&blas.sgemm = sgemm;
}

static bool have_blas(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return blas.sgemm != NULL;
}

static CBLAS_TRANSPOSE way(struct adl_matrix x)
{
    return x.transposed ? CblasTrans : CblasNoTrans;
}

void adl_gemm(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
              float beta, float *c, int stride_c)
{
    if (!have_blas())
        adl_gemm_plain(m, n, k, alpha, a, b, beta, c, stride_c);
    else
        blas.sgemm(CblasRowMajor, way(a), way(b), m, n, k, alpha, a.v, a.stride, b.v, b.stride,
                   beta, c, stride_c);
}

enum adl_status adl_gemm_set_threads(int n, struct adl_err *err)
{
    if (!have_blas())
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "OpenBLAS, which this program was built with, cannot be loaded: %s",
                        blas.why);
    blas.set_threads(n);
    return ADL_OK;
}

#else

void adl_gemm(int m, int n, int k, float alpha, struct adl_matrix a, struct adl_matrix b,
              float beta, float *c, int stride_c)
{
    adl_gemm_plain(m, n, k, alpha, a, b, beta, c, stride_c);
}

enum adl_status adl_gemm_set_threads(int n, struct adl_err *err)
{
    (void)n;
    (void)err;
    return ADL_OK;
}

#endif
