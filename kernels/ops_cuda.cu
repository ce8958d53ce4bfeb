/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of operators. */
extern "C" {
#include "kernels/ops_cuda.h"
}

#include "kernels/cuda_attention.cuh"
#include "kernels/cuda_blas.cuh"
#include "kernels/cuda_entry.cuh"
#include "kernels/cuda_rows.cuh"
#include "kernels/space_cuda.cuh"

namespace
{

enum adl_status available_cuda(size_t *bytes, struct adl_err *err)
{
    size_t all;
    cudaError_t error = adl_cuda_use_device();
    if (error == cudaSuccess)
        error = cudaMemGetInfo(bytes, &all);
    if (error == cudaSuccess)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_RUNTIME, "CUDA: asking for free memory failed: %s",
                    cudaGetErrorString(error));
}

/* ---- products */

enum { ROUND_THREADS = 256 };

__global__ void round_kernel(adl_bf16 *to, const float *from, size_t n, bool wide)
{
    constexpr int pack = adl_pack<adl_bf16>;
    const size_t i = (size_t(blockIdx.x) * ROUND_THREADS + threadIdx.x) * pack;
    if (i >= n)
        return;
    wide = wide && i + pack <= n;
    float v[pack];
    adl_load(v, from, i, n, wide);
    adl_store(to, v, i, n, wide);
}

void round_cuda(adl_queue *queue, float *to, const float *from, size_t n)
{
    if (n > 0)
        adl_launch(queue, "round", round_kernel,
                   adl_ceil_div(n, ROUND_THREADS * adl_pack<adl_bf16>), ROUND_THREADS, 0,
                   reinterpret_cast<adl_bf16 *>(to), from, n, adl_aligned(to) && adl_aligned(from));
}

template <class E> constexpr bool is_bf16 = sizeof(E) == sizeof(adl_bf16);

/* ---- the tables: activations are E, whatever their pointers say */

template <class E> E *as(float *x)
{
    return reinterpret_cast<E *>(x);
}

template <class E> const E *as(const float *x)
{
    return reinterpret_cast<const E *>(x);
}

template <class E> struct table {
    static void zero(adl_queue *queue, float *x, size_t n)
    {
        adl_cuda_check(queue, cudaMemsetAsync(x, 0, n * sizeof *x, queue->stream), "zero");
    }
    static void add(adl_queue *queue, float *y, const float *x, size_t n)
    {
        adl_cuda_rows<float>::add(queue, y, x, n);
    }
    static void embed(adl_queue *queue, float *out, const float *table, const int32_t *tokens,
                      int N, int C)
    {
        adl_cuda_rows<E>::embed(queue, as<E>(out), table, tokens, N, C);
    }
    static void embed_backward(adl_queue *queue, float *dtable, const float *dout,
                               const int32_t *tokens, int N, int C)
    {
        adl_cuda_rows<E>::embed_backward(queue, dtable, as<E>(dout), tokens, N, C);
    }
    static void matmul(adl_queue *queue, float *out, const float *in, const float *w, int N, int K,
                       int M)
    {
        adl_cuda_multiply(queue, {.rows = N,
                                  .cols = M,
                                  .inner = K,
                                  .a = in,
                                  .b = w,
                                  .c = out,
                                  .a_transposed = false,
                                  .b_transposed = true,
                                  .bf16 = is_bf16<E>,
                                  .c_bf16 = is_bf16<E>,
                                  .add = false});
    }
    static void matmul_backward(adl_queue *queue, float *din, float *dw, const float *dout,
                                const float *in, const float *w, int N, int K, int M)
    {
        if (din)
            adl_cuda_multiply(queue, {.rows = N,
                                      .cols = K,
                                      .inner = M,
                                      .a = dout,
                                      .b = w,
                                      .c = din,
                                      .a_transposed = false,
                                      .b_transposed = false,
                                      .bf16 = is_bf16<E>,
                                      .c_bf16 = is_bf16<E>,
                                      .add = false});
        adl_cuda_multiply(queue, {.rows = M,
                                  .cols = K,
                                  .inner = N,
                                  .a = dout,
                                  .b = in,
                                  .c = dw,
                                  .a_transposed = true,
                                  .b_transposed = false,
                                  .bf16 = is_bf16<E>,
                                  .c_bf16 = false,
                                  .add = true});
    }
    static void rmsnorm(adl_queue *queue, float *out, float *sum, float *rstd, const float *a,
                        const float *b, const float *w, int N, int C, float eps)
    {
        adl_cuda_rows<E>::rmsnorm(queue, as<E>(out), as<E>(sum), rstd, as<E>(a), as<E>(b), w, N, C,
                                  eps);
    }
    static void rmsnorm_backward(adl_queue *queue, float *dx, float *dw, const float *dout,
                                 const float *x, const float *rstd, const float *w, int N, int C)
    {
        adl_cuda_rows<E>::rmsnorm_backward(queue, as<E>(dx), dw, as<E>(dout), as<E>(x), rstd, w, N,
                                           C);
    }
    static void rope(adl_queue *queue, float *qkv, const float *turns, int N,
                     const struct adl_attention *size, int backward)
    {
        adl_cuda_rows<E>::rope(queue, as<E>(qkv), turns, N, size, backward);
    }
    static void attention(adl_queue *queue, float *out, float *lse, const float *qkv,
                          const struct adl_attention *size)
    {
        adl_cuda_attention<E>::forward(queue, as<E>(out), lse, as<E>(qkv), size);
    }
    static void attention_backward(adl_queue *queue, float *dqkv, const float *dout,
                                   const float *qkv, const float *out, const float *lse,
                                   const struct adl_attention *size)
    {
        adl_cuda_attention<E>::backward(queue, as<E>(dqkv), as<E>(dout), as<E>(qkv), as<E>(out),
                                        lse, size);
    }
    static void swiglu(adl_queue *queue, float *out, const float *gate_up, int N, int F)
    {
        adl_cuda_rows<E>::swiglu(queue, as<E>(out), as<E>(gate_up), N, F);
    }
    static void swiglu_backward(adl_queue *queue, float *dgate_up, const float *dout,
                                const float *gate_up, int N, int F)
    {
        adl_cuda_rows<E>::swiglu_backward(queue, as<E>(dgate_up), as<E>(dout), as<E>(gate_up), N,
                                          F);
    }
    static void cross_entropy(adl_queue *queue, float *losses, float *logits,
                              const int32_t *targets, int N, int V, float scale)
    {
        adl_cuda_rows<E>::cross_entropy(queue, losses, as<E>(logits), targets, N, V, scale);
    }

    static constexpr struct adl_ops make(const char *name)
    {
        return {
            .name = name,
            .space = &adl_cuda_space,
            .activation_bytes = sizeof(E),
            .pass_tokens = 16384,
            .available = available_cuda,
            .open = adl_cuda_queue_open,
            .close = adl_cuda_queue_close,
            .finish = adl_cuda_queue_finish,
            .upload = adl_cuda_upload,
            .download = adl_cuda_download,
            .zero = zero,
            .add = add,
            .embed = embed,
            .embed_backward = embed_backward,
            .round = is_bf16<E> ? round_cuda : nullptr,
            .matmul = matmul,
            .matmul_backward = matmul_backward,
            .rmsnorm = rmsnorm,
            .rmsnorm_backward = rmsnorm_backward,
            .rope = rope,
            .attention = attention,
            .attention_backward = attention_backward,
            .swiglu = swiglu,
            .swiglu_backward = swiglu_backward,
            .cross_entropy = cross_entropy,
        };
    }
};

} // namespace

extern "C" const struct adl_ops adl_cuda_ops_f32 = table<float>::make("cuda");
extern "C" const struct adl_ops adl_cuda_ops_bf16 = table<adl_bf16>::make("cuda_bf16");
