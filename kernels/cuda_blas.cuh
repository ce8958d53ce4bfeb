/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products on a GPU's queue: of floats, or of bfloat16 with sums in floats. */
#ifndef ADL_KERNELS_CUDA_BLAS_CUH
#define ADL_KERNELS_CUDA_BLAS_CUH

#include "kernels/cuda_queue.cuh"

extern "C" {
#include "core/status.h"
}

/* c (rows, cols) = a (rows, inner) b (inner, cols), plus what c held where `add`. Row-major,
 * dense; a transposed factor is stored as (inner, rows) or (cols, inner). */
struct adl_cuda_product {
    int rows, cols, inner;
    const void *a, *b;
    void *c;
    bool a_transposed, b_transposed;
    bool bf16;   /* a and b; else floats */
    bool c_bf16; /* c, only where bf16 and not add; else floats */
    bool add;
};

/* ADL_ERR_UNSUPPORTED where the library is of another major version than built for. */
enum adl_status adl_cuda_blas_check(struct adl_err *err);

/* The library's handle and its workspace, which the queue owns. Fails the queue. */
void adl_cuda_blas_open(adl_queue *queue);
void adl_cuda_blas_close(adl_queue *queue);
void adl_cuda_multiply(adl_queue *queue, const adl_cuda_product &product);

#endif
