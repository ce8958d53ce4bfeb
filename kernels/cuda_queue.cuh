/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of operators on a GPU: a stream, scratch memory of its own, page-locked host memory that
 * copies pass through, and the first failure, which finish reports. Launches, copies and errors of
 * kernels/ops.h go through here. */
#ifndef ADL_KERNELS_CUDA_QUEUE_CUH
#define ADL_KERNELS_CUDA_QUEUE_CUH

#include <type_traits>

#include "kernels/cuda_device.cuh"
#include "kernels/cuda_entry.cuh"

extern "C" {
#include "core/status.h"
}

struct adl_cuda_blas;  /* matrix products' own, kernels/cuda_blas.cuh */
struct adl_cuda_stage; /* what copies pass through, kernels/cuda_queue.cu */

struct adl_queue {
    cudaStream_t stream;
    void *scratch; /* [scratch_bytes] */
    size_t scratch_bytes;
    adl_cuda_blas *blas;
    adl_cuda_stage *stage;
    const char *what, *why; /* what failed first, static texts; NULL: nothing did */
    cudaError_t error;      /* its code; cudaSuccess where it is not the runtime's */
};

/* Remembers the failure unless there is one already. */
static inline void adl_cuda_failed(adl_queue *queue, const char *what, const char *why)
{
    if (!queue->what) {
        queue->what = what;
        queue->why = why;
    }
}

static inline void adl_cuda_check(adl_queue *queue, cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    cudaGetLastError(); /* CUDA remembers it too, and would tell the next launch */
    if (queue->what)
        return;
    adl_cuda_failed(queue, what, cudaGetErrorString(error));
    queue->error = error;
}

/* open, close, finish, upload and download of struct adl_ops. */
enum adl_status adl_cuda_queue_open(adl_queue **out, struct adl_err *err);
void adl_cuda_queue_close(adl_queue *queue);
enum adl_status adl_cuda_queue_finish(adl_queue *queue, struct adl_err *err);
void adl_cuda_upload(adl_queue *queue, void *to, const void *host, size_t bytes);
void adl_cuda_download(adl_queue *queue, void *host, const void *from, size_t bytes);

/* Scratch of so many bytes, aligned to 256; what it held is lost. NULL after a failure: the caller
 * leaves its work undone. */
void *adl_cuda_scratch(adl_queue *queue, size_t bytes);

/* After a failure nothing is launched any more: its operands may not exist. */
template <class... P>
static inline void adl_launch(adl_queue *queue, const char *what, void (*kernel)(P...), dim3 grid,
                              dim3 block, size_t shared_bytes,
                              typename std::common_type<P>::type... args)
{
    adl_cuda_check(queue, adl_cuda_use_device(), what);
    if (!queue->what && shared_bytes > 48 * 1024)
        adl_cuda_check(queue,
                       cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(shared_bytes)),
                       what);
    if (queue->what)
        return;
#ifdef __CUDACC__
    kernel<<<grid, block, shared_bytes, queue->stream>>>(args...);
#else
    cuda_emulator::launch(grid, block, shared_bytes, reinterpret_cast<const void *>(kernel),
                          [&] { kernel(args...); });
#endif
    adl_cuda_check(queue, cudaGetLastError(), what);
}

#endif
