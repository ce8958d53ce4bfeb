/* SPDX-License-Identifier: Apache-2.0 */
/* The operators that work row by row: memory-bound, one pass where possible. */
#include <math.h>

#include "kernels/ops_cpu_parts.h"
#include "kernels/ops_cpu_simd.h"

ADL_SIMD void adl_cpu_rmsnorm(struct adl_queue *queue, float *out, float *sum, float *rstd,
                              const float *a, const float *b, const float *w, int N, int C,
                              float eps)
{
    (void)queue;
    for (int n = 0; n < N; n++) {
        const float *x = a + (size_t)n * C;
        float *restrict y = out + (size_t)n * C;
        if (b) {
            const float *restrict more = b + (size_t)n * C;
            float *restrict s = sum + (size_t)n * C;
            for (int c = 0; c < C; c++)
                s[c] = x[c] + more[c];
            x = s;
        }
        const float r = 1.0f / sqrtf(adl_dot(x, x, C) / (float)C + eps);
        for (int c = 0; c < C; c++)
            y[c] = x[c] * r * w[c];
        rstd[n] = r;
    }
}

ADL_SIMD void adl_cpu_rmsnorm_backward(struct adl_queue *queue, float *dx, float *dw,
                                       const float *dout, const float *x, const float *rstd,
                                       const float *w, int N, int C)
{
    (void)queue;
    for (int n = 0; n < N; n++) {
        const float *restrict dy = dout + (size_t)n * C, *restrict xn = x + (size_t)n * C;
        float *restrict dxn = dx + (size_t)n * C;
        const float r = rstd[n];
        float lanes[ADL_LANES] = {0};
        int i = 0;
        for (; i + ADL_LANES <= C; i += ADL_LANES)
            for (int j = 0; j < ADL_LANES; j++)
                lanes[j] += dy[i + j] * w[i + j] * xn[i + j];
        for (int j = 0; i + j < C; j++)
            lanes[j] += dy[i + j] * w[i + j] * xn[i + j];
        const float along = adl_lanes_sum(lanes) * r * r / (float)C;
        for (int c = 0; c < C; c++) {
            dxn[c] += r * (dy[c] * w[c] - xn[c] * along);
            dw[c] += dy[c] * xn[c] * r;
        }
    }
}

ADL_SIMD void adl_cpu_rope(struct adl_queue *queue, float *qkv, const float *turns, int N,
                           const struct adl_attention *size, int backward)
{
    (void)queue;
    const int half = size->D / 2, width = (size->H + 2 * size->K) * size->D;
    const float sign = backward ? -1.0f : 1.0f;
    for (int n = 0; n < N; n++) {
        const float *restrict turn = turns + (size_t)(n % size->T) * size->D;
        for (int h = 0; h < size->H + size->K; h++) {
            float *restrict x = qkv + (size_t)n * width + (size_t)h * size->D;
            for (int i = 0; i < half; i++) {
                const float c = turn[2 * i], s = sign * turn[2 * i + 1];
                const float left = x[i], right = x[half + i];
                x[i] = left * c - right * s;
                x[half + i] = left * s + right * c;
            }
        }
    }
}

ADL_SIMD void adl_cpu_swiglu(struct adl_queue *queue, float *out, const float *gate_up, int N,
                             int F)
{
    (void)queue;
    for (int n = 0; n < N; n++) {
        const float *restrict g = gate_up + (size_t)n * 2 * F, *restrict u = g + F;
        float *restrict y = out + (size_t)n * F;
        for (int f = 0; f < F; f++)
            y[f] = g[f] / (1.0f + adl_exp(-g[f])) * u[f];
    }
}

ADL_SIMD void adl_cpu_swiglu_backward(struct adl_queue *queue, float *dgate_up, const float *dout,
                                      const float *gate_up, int N, int F)
{
    (void)queue;
    for (int n = 0; n < N; n++) {
        const float *g = gate_up + (size_t)n * 2 * F, *u = g + F, *dy = dout + (size_t)n * F;
        float *dg = dgate_up + (size_t)n * 2 * F, *du = dg + F;
        /* in place or not, an element only needs its own row's same column */
        ADL_APART
        for (int f = 0; f < F; f++) {
            const float gate = g[f], up = u[f], d = dy[f];
            const float s = 1.0f / (1.0f + adl_exp(-gate));
            dg[f] = d * up * s * (1.0f + gate * (1.0f - s));
            du[f] = d * gate * s;
        }
    }
}

ADL_SIMD void adl_cpu_cross_entropy(struct adl_queue *queue, float *losses, float *logits,
                                    const int32_t *targets, int N, int V, float scale)
{
    (void)queue;
    for (int n = 0; n < N; n++) {
        float *x = logits + (size_t)n * V;
        const float max = adl_max(x, V), target = x[targets[n]];
        const float sum = adl_exp_shifted(x, x, max, V), factor = scale / sum;
        for (int v = 0; v < V; v++)
            x[v] *= factor;
        x[targets[n]] -= scale;
        losses[n] = logf(sum) + max - target;
    }
}
