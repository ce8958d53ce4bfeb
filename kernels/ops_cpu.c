/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's operators: everything is done when a call returns. */
#include <stdlib.h>
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/ops_cpu_parts.h"
#include "kernels/ops_cpu_simd.h"

static enum adl_status open_cpu(struct adl_queue **out, struct adl_err *err)
{
    struct adl_queue *queue = malloc(sizeof *queue);
    if (!queue)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the scratch of an operator queue");
    *out = queue;
    return ADL_OK;
}

static void close_cpu(struct adl_queue *queue)
{
    free(queue);
}

static enum adl_status finish_cpu(struct adl_queue *queue, struct adl_err *err)
{
    (void)queue;
    (void)err;
    return ADL_OK;
}

static void upload_cpu(struct adl_queue *queue, void *to, const void *host, size_t bytes)
{
    (void)queue;
    memcpy(to, host, bytes);
}

static void download_cpu(struct adl_queue *queue, void *host, const void *from, size_t bytes)
{
    (void)queue;
    memcpy(host, from, bytes);
}

static void zero_cpu(struct adl_queue *queue, float *x, size_t n)
{
    (void)queue;
    memset(x, 0, n * sizeof *x);
}

ADL_SIMD static void add_cpu(struct adl_queue *queue, float *y, const float *x, size_t n)
{
    (void)queue;
    float *restrict to = y;
    for (size_t i = 0; i < n; i++)
        to[i] += x[i];
}

static void embed_cpu(struct adl_queue *queue, float *out, const float *table,
                      const int32_t *tokens, int N, int C)
{
    (void)queue;
    for (int n = 0; n < N; n++)
        memcpy(out + (size_t)n * C, table + (size_t)tokens[n] * C, (size_t)C * sizeof *out);
}

static void embed_backward_cpu(struct adl_queue *queue, float *dtable, const float *dout,
                               const int32_t *tokens, int N, int C)
{
    for (int n = 0; n < N; n++)
        add_cpu(queue, dtable + (size_t)tokens[n] * C, dout + (size_t)n * C, (size_t)C);
}

static void matmul_cpu(struct adl_queue *queue, float *out, const float *in, const float *w, int N,
                       int K, int M)
{
    (void)queue;
    adl_gemm(N, M, K, 1.0f, (struct adl_matrix){.v = in, .stride = K},
             (struct adl_matrix){.v = w, .stride = K, .transposed = true}, 0.0f, out, M);
}

static void matmul_backward_cpu(struct adl_queue *queue, float *din, float *dw, const float *dout,
                                const float *in, const float *w, int N, int K, int M)
{
    (void)queue;
    if (din)
        adl_gemm(N, K, M, 1.0f, (struct adl_matrix){.v = dout, .stride = M},
                 (struct adl_matrix){.v = w, .stride = K}, 0.0f, din, K);
    adl_gemm(M, K, N, 1.0f, (struct adl_matrix){.v = dout, .stride = M, .transposed = true},
             (struct adl_matrix){.v = in, .stride = K}, 1.0f, dw, K);
}

const struct adl_ops adl_ops_cpu = {
    .name = "cpu",
    .space = &adl_space_cpu,
    .activation_bytes = sizeof(float),
    .pass_tokens = 512,
    .open = open_cpu,
    .close = close_cpu,
    .finish = finish_cpu,
    .upload = upload_cpu,
    .download = download_cpu,
    .zero = zero_cpu,
    .add = add_cpu,
    .embed = embed_cpu,
    .embed_backward = embed_backward_cpu,
    .matmul = matmul_cpu,
    .matmul_backward = matmul_backward_cpu,
    .rmsnorm = adl_cpu_rmsnorm,
    .rmsnorm_backward = adl_cpu_rmsnorm_backward,
    .rope = adl_cpu_rope,
    .attention = adl_cpu_attention,
    .attention_backward = adl_cpu_attention_backward,
    .swiglu = adl_cpu_swiglu,
    .swiglu_backward = adl_cpu_swiglu_backward,
    .cross_entropy = adl_cpu_cross_entropy,
};
