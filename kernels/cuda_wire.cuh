/* SPDX-License-Identifier: Apache-2.0 */
/* The wire formats of core/wire.h on a GPU, on a stream, bit for bit. */
#ifndef ADL_KERNELS_CUDA_WIRE_CUH
#define ADL_KERNELS_CUDA_WIRE_CUH

#include "kernels/cuda_queue.cuh"

/* Buffers are aligned to 16 bytes at least; x and y may be anything. */
void adl_cuda_wire_pack(adl_queue *queue, void *to, const float *x, size_t n, int wire);
void adl_cuda_wire_unpack(adl_queue *queue, float *y, const void *from, size_t n, int wire,
                          bool add);

#endif
