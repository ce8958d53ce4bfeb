/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention (kernels/ops.h) by tiles (Dao et al. 2022, Dao 2023): scores exist for one tile
 * at a time, in shared memory; backward recomputes them. Nothing is added atomically: queries'
 * gradients and those of keys and values are summed by kernels of their own. */
#ifndef ADL_KERNELS_CUDA_ATTENTION_CUH
#define ADL_KERNELS_CUDA_ATTENTION_CUH

#include "kernels/cuda_queue.cuh"

extern "C" {
#include "kernels/ops.h"
}

enum { ADL_CUDA_MAX_HEAD = 128 }; /* widest head; wider ones fail */

template <class E> struct adl_cuda_attention {
    static void forward(adl_queue *queue, E *out, float *lse, const E *qkv,
                        const struct adl_attention *size);
    static void backward(adl_queue *queue, E *dqkv, const E *dout, const E *qkv, const E *out,
                         const float *lse, const struct adl_attention *size);
};

#endif
