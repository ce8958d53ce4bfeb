/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for tests, in place of kernels/cuda_blas.cu: one sum after the other. A queue
 * keeps a little device memory for them, as there. */
#include "kernels/cuda_blas.cuh"

enum adl_status adl_cuda_blas_check(struct adl_err *)
{
    return ADL_OK;
}

struct adl_cuda_blas {
    void *workspace = nullptr;
};

void adl_cuda_blas_open(adl_queue *queue)
{
    queue->blas = new adl_cuda_blas;
    adl_cuda_check(queue, cudaMalloc(&queue->blas->workspace, cuda_emulator::WORKSPACE_BYTES),
                   "a workspace");
}

void adl_cuda_blas_close(adl_queue *queue)
{
    if (queue->blas)
        cudaFree(queue->blas->workspace);
    delete queue->blas;
    queue->blas = nullptr;
}

static float at(const void *x, bool bf16, size_t i)
{
    return bf16 ? adl_value(static_cast<const adl_bf16 *>(x)[i]) : static_cast<const float *>(x)[i];
}

void adl_cuda_multiply(adl_queue *queue, const adl_cuda_product &p)
{
    if (queue->what)
        return;
    const cuda_emulator::device_access access;
    const size_t rows = p.rows, cols = p.cols, inner = p.inner;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            float sum = p.add ? static_cast<float *>(p.c)[i * cols + j] : 0.0f;
            for (size_t k = 0; k < inner; k++)
                sum += at(p.a, p.bf16, p.a_transposed ? k * rows + i : i * inner + k) *
                       at(p.b, p.bf16, p.b_transposed ? j * inner + k : k * cols + j);
            if (p.c_bf16)
                adl_round_to(static_cast<adl_bf16 *>(p.c)[i * cols + j], sum);
            else
                static_cast<float *>(p.c)[i * cols + j] = sum;
        }
}
