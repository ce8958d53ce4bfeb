/* SPDX-License-Identifier: Apache-2.0 */
/* The operators on a GPU, in the CUDA module (kernels/cuda_module.h says how it is reached). */
#ifndef ADL_KERNELS_OPS_CUDA_H
#define ADL_KERNELS_OPS_CUDA_H

#include "kernels/ops.h"

/* Activations, products and sums in fp32. */
extern const struct adl_ops adl_cuda_ops_f32;
/* Activations and products in bfloat16, summed in fp32; parameters and their gradients in fp32. */
extern const struct adl_ops adl_cuda_ops_bf16;

#endif
