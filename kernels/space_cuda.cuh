/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory as core/space.h sees it. Calls run on the calling thread's own stream, so that
 * workers on different threads overlap, and are complete when they return. They have no way to
 * fail: the first failure is kept, and the next get, put or adl_ops finish reports it.
 * Element-wise results have the CPU's bits; dot adds in a fixed tree instead of index order. */
#ifndef ADL_KERNELS_SPACE_CUDA_CUH
#define ADL_KERNELS_SPACE_CUDA_CUH

#include "kernels/cuda_device.cuh"

extern "C" {
#include "core/space.h"
extern const struct adl_space adl_cuda_space;
}

/* The first failure of a space's call since the last time it was asked, or cudaSuccess. */
cudaError_t adl_cuda_space_failure();

#endif
