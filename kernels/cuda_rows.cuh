/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of kernels/ops.h that work row by row, for activations of type E: float or
 * adl_bf16. Parameters, their gradients, rstd, losses and turns are floats in either case. */
#ifndef ADL_KERNELS_CUDA_ROWS_CUH
#define ADL_KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda_queue.cuh"

extern "C" {
#include "kernels/ops.h"
}

template <class E> struct adl_cuda_rows {
    static void add(adl_queue *queue, E *y, const E *x, size_t n);
    static void embed(adl_queue *queue, E *out, const float *table, const int32_t *tokens, int N,
                      int C);
    static void embed_backward(adl_queue *queue, float *dtable, const E *dout,
                               const int32_t *tokens, int N, int C);
    static void rmsnorm(adl_queue *queue, E *out, E *sum, float *rstd, const E *a, const E *b,
                        const float *w, int N, int C, float eps);
    static void rmsnorm_backward(adl_queue *queue, E *dx, float *dw, const E *dout, const E *x,
                                 const float *rstd, const float *w, int N, int C);
    static void rope(adl_queue *queue, E *qkv, const float *turns, int N,
                     const struct adl_attention *size, int backward);
    static void swiglu(adl_queue *queue, E *out, const E *gate_up, int N, int F);
    static void swiglu_backward(adl_queue *queue, E *dgate_up, const E *dout, const E *gate_up,
                                int N, int F);
    static void cross_entropy(adl_queue *queue, float *losses, E *logits, const int32_t *targets,
                              int N, int V, float scale);
};

#endif
