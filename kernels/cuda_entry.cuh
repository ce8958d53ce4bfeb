/* SPDX-License-Identifier: Apache-2.0 */
/* The device of this process, once the module is open. */
#ifndef ADL_KERNELS_CUDA_ENTRY_CUH
#define ADL_KERNELS_CUDA_ENTRY_CUH

#include "kernels/cuda_device.cuh"

/* Makes it the calling thread's: CUDA keeps a device for each thread. Cheap. */
cudaError_t adl_cuda_use_device();

#endif
