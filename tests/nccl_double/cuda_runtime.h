/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA runtime that real/nccl/nccl.c uses, on the host: see double.h. */
#ifndef ADL_TESTS_CUDA_RUNTIME_DOUBLE_H
#define ADL_TESTS_CUDA_RUNTIME_DOUBLE_H

#include <stddef.h>

#define CUDART_VERSION 13000

typedef enum {
    cudaSuccess = 0,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNotReady = 600
} cudaError_t;
enum { cudaStreamNonBlocking = 1, cudaMemcpyDefault = 4 };
enum { cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76 };

typedef struct stream_double *cudaStream_t;
#define cudaStreamPerThread ((cudaStream_t)NULL)

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceGetStreamPriorityRange(int *lowest, int *highest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *x);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                            cudaStream_t stream);

#endif
