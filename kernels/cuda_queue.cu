/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda_queue.cuh"

#include <new>

#include "kernels/cuda_blas.cuh"
#include "kernels/space_cuda.cuh"

/* Copies between device and pageable memory wait for the stream, and may lock out other threads,
 * or read the host's memory after they return: CUDA leaves it open. So bytes pass through
 * page-locked memory, which is free again once the stream was waited for. */
constexpr size_t STAGE_BYTES = 1 << 20; /* tokens and losses of a pass of 80,000 tokens */
constexpr size_t STAGE_ALIGNMENT = 256;
constexpr int LANDINGS = 16;

struct adl_cuda_stage {
    char *memory; /* [STAGE_BYTES] */
    size_t used;
    struct {
        void *host;
        const char *from; /* in memory */
        size_t bytes;
    } landings[LANDINGS]; /* downloads: where they go when they have arrived */
    int n_landings;
};

namespace
{

/* Waits for the stream; what was downloaded reaches its place, and the stage is empty. */
void settle(adl_queue *queue)
{
    adl_cuda_stage *stage = queue->stage;
    adl_cuda_check(queue, cudaStreamSynchronize(queue->stream), "an operator");
    for (int i = 0; i < stage->n_landings && !queue->what; i++)
        memcpy(stage->landings[i].host, stage->landings[i].from, stage->landings[i].bytes);
    stage->n_landings = 0;
    stage->used = 0;
}

/* A piece of the stage, as much of `bytes` as fits: *piece of them. */
char *take(adl_queue *queue, size_t bytes, size_t *piece)
{
    adl_cuda_stage *stage = queue->stage;
    *piece = bytes < STAGE_BYTES ? bytes : STAGE_BYTES;
    if (stage->used + *piece > STAGE_BYTES || stage->n_landings == LANDINGS)
        settle(queue);
    char *at = stage->memory + stage->used;
    stage->used += (*piece + STAGE_ALIGNMENT - 1) / STAGE_ALIGNMENT * STAGE_ALIGNMENT;
    return at;
}

void open_stage(adl_queue *queue)
{
    queue->stage = new (std::nothrow) adl_cuda_stage();
    if (!queue->stage)
        adl_cuda_failed(queue, "page-locked memory", "no memory");
    else
        adl_cuda_check(queue, cudaMallocHost(&queue->stage->memory, STAGE_BYTES),
                       "page-locked memory");
}

void close_stage(adl_queue *queue)
{
    if (queue->stage)
        cudaFreeHost(queue->stage->memory);
    delete queue->stage;
}

enum adl_status report(adl_queue *queue, struct adl_err *err)
{
    if (!queue->what)
        return ADL_OK;
    const enum adl_status status =
        queue->error == cudaErrorMemoryAllocation ? ADL_ERR_NOMEM : ADL_ERR_RUNTIME;
    adl_fail(err, status, "CUDA: %s failed: %s", queue->what, queue->why);
    queue->what = nullptr;
    queue->error = cudaSuccess;
    return status;
}

} // namespace

enum adl_status adl_cuda_queue_open(adl_queue **out, struct adl_err *err)
{
    adl_queue *queue = new (std::nothrow) adl_queue();
    if (!queue)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for an operator queue");
    adl_cuda_check(queue, adl_cuda_use_device(), "taking the device");
    adl_cuda_check(queue, cudaStreamCreateWithFlags(&queue->stream, cudaStreamNonBlocking),
                   "making a stream");
    if (!queue->what)
        open_stage(queue);
    if (!queue->what)
        adl_cuda_blas_open(queue);
    const enum adl_status status = report(queue, err);
    if (status == ADL_OK)
        *out = queue;
    else
        adl_cuda_queue_close(queue);
    return status;
}

void adl_cuda_queue_close(adl_queue *queue)
{
    if (!queue)
        return;
    if (queue->stream)
        cudaStreamSynchronize(queue->stream);
    adl_cuda_blas_close(queue);
    close_stage(queue);
    cudaFree(queue->scratch);
    if (queue->stream)
        cudaStreamDestroy(queue->stream);
    delete queue;
}

enum adl_status adl_cuda_queue_finish(adl_queue *queue, struct adl_err *err)
{
    settle(queue);
    adl_cuda_check(queue, adl_cuda_space_failure(), "work on vectors");
    return report(queue, err);
}

void adl_cuda_upload(adl_queue *queue, void *to, const void *host, size_t bytes)
{
    adl_cuda_check(queue, adl_cuda_use_device(), "copying to the device");
    for (size_t at = 0, piece; at < bytes && !queue->what; at += piece) {
        char *stage = take(queue, bytes - at, &piece);
        memcpy(stage, static_cast<const char *>(host) + at, piece);
        adl_cuda_check(queue,
                       cudaMemcpyAsync(static_cast<char *>(to) + at, stage, piece,
                                       cudaMemcpyHostToDevice, queue->stream),
                       "copying to the device");
    }
}

void adl_cuda_download(adl_queue *queue, void *host, const void *from, size_t bytes)
{
    adl_cuda_check(queue, adl_cuda_use_device(), "copying from the device");
    for (size_t at = 0, piece; at < bytes && !queue->what; at += piece) {
        char *stage = take(queue, bytes - at, &piece);
        adl_cuda_check(queue,
                       cudaMemcpyAsync(stage, static_cast<const char *>(from) + at, piece,
                                       cudaMemcpyDeviceToHost, queue->stream),
                       "copying from the device");
        queue->stage->landings[queue->stage->n_landings++] = {static_cast<char *>(host) + at, stage,
                                                              piece};
    }
}

void *adl_cuda_scratch(adl_queue *queue, size_t bytes)
{
    adl_cuda_check(queue, adl_cuda_use_device(), "taking the device");
    if (queue->what)
        return nullptr;
    if (bytes > queue->scratch_bytes) {
        adl_cuda_check(queue, cudaStreamSynchronize(queue->stream), "an operator"); /* its users */
        adl_cuda_check(queue, cudaFree(queue->scratch), "scratch memory");
        queue->scratch = nullptr;
        queue->scratch_bytes = 0;
        adl_cuda_check(queue, cudaMalloc(&queue->scratch, bytes), "scratch memory");
        queue->scratch_bytes = queue->what ? 0 : bytes;
    }
    return queue->what ? nullptr : queue->scratch;
}
