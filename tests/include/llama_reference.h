/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of kernels/ops.h and the network of kernels/llama.h forward, by plain loops in
 * double precision: what the fast ones are held against, and what finite differences are taken
 * of. */
#ifndef ADL_TESTS_LLAMA_REFERENCE_H
#define ADL_TESTS_LLAMA_REFERENCE_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/llama.h"

static inline double *ref_vector(size_t n)
{
    return calloc(n + 1, sizeof(double));
}

/* out (N, M) = in (N, K) w (M, K)^T */
static inline void ref_matmul(double *out, const double *in, const double *w, int N, int K, int M)
{
    for (int n = 0; n < N; n++)
        for (int m = 0; m < M; m++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += in[n * K + k] * w[m * K + k];
            out[n * M + m] = sum;
        }
}

static inline void ref_rmsnorm(double *out, const double *x, const double *w, int N, int C)
{
    for (int n = 0; n < N; n++) {
        double sum = 0;
        for (int c = 0; c < C; c++)
            sum += x[n * C + c] * x[n * C + c];
        for (int c = 0; c < C; c++)
            out[n * C + c] = x[n * C + c] / sqrt(sum / C + 1e-5) * w[c];
    }
}

/* In place. */
static inline void ref_rope(double *qkv, int N, const struct adl_attention *a)
{
    int half = a->D / 2, width = (a->H + 2 * a->K) * a->D;
    for (int n = 0; n < N; n++)
        for (int h = 0; h < a->H + a->K; h++)
            for (int i = 0; i < half; i++) {
                double angle = n % a->T * pow(10000, -(double)i / half);
                double *x = qkv + n * width + h * a->D;
                double left = x[i], right = x[i + half];
                x[i] = left * cos(angle) - right * sin(angle);
                x[i + half] = left * sin(angle) + right * cos(angle);
            }
}

static inline void ref_attention(double *out, const double *qkv, const struct adl_attention *a)
{
    int T = a->T, D = a->D, width = (a->H + 2 * a->K) * D;
    double *p = ref_vector((size_t)T);
    for (int b = 0; b < a->B; b++)
        for (int h = 0; h < a->H; h++)
            for (int t = 0; t < T; t++) {
                const double *document = qkv + (size_t)b * T * width;
                const double *q = document + t * width + h * D;
                const double *k = document + (a->H + h / (a->H / a->K)) * D, *v = k + a->K * D;
                double *o = out + ((size_t)b * T + t) * a->H * D + h * D, sum = 0;
                for (int s = 0; s <= t; s++) {
                    double score = 0;
                    for (int d = 0; d < D; d++)
                        score += q[d] * k[s * width + d];
                    sum += p[s] = exp(score / sqrt(D));
                }
                memset(o, 0, (size_t)D * sizeof *o);
                for (int s = 0; s <= t; s++)
                    for (int d = 0; d < D; d++)
                        o[d] += p[s] / sum * v[s * width + d];
            }
    free(p);
}

static inline void ref_swiglu(double *out, const double *gate_up, int N, int F)
{
    for (int n = 0; n < N; n++)
        for (int f = 0; f < F; f++) {
            double g = gate_up[n * 2 * F + f], u = gate_up[n * 2 * F + F + f];
            out[n * F + f] = g / (1 + exp(-g)) * u;
        }
}

static inline double ref_cross_entropy(const double *logits, int target, int V)
{
    double sum = 0;
    for (int v = 0; v < V; v++)
        sum += exp(logits[v]);
    return log(sum) - logits[target];
}

static inline void ref_block(const struct adl_llama_size *s, const double *theta, int e, double *x)
{
    int T = s->T, C = s->C, F = s->F, D = C / s->H, W = (s->H + 2 * s->K) * D;
    struct adl_attention a = {.B = 1, .T = T, .H = s->H, .K = s->K, .D = D};
    const double *w[ADL_LLAMA_PARTS];
    for (int part = 0; part < ADL_LLAMA_PARTS; part++)
        w[part] = theta + adl_llama_tensor(s, (size_t)(1 + e * ADL_LLAMA_PARTS + part)).offset;
    double *norm = ref_vector((size_t)(T * C)), *wide = ref_vector((size_t)(T * (W + 2 * F)));
    double *mixed = ref_vector((size_t)(T * (C + F))), *added = ref_vector((size_t)(T * C));
    ref_rmsnorm(norm, x, w[ADL_LLAMA_NORM1], T, C);
    ref_matmul(wide, norm, w[ADL_LLAMA_QKV], T, C, W);
    ref_rope(wide, T, &a);
    ref_attention(mixed, wide, &a);
    ref_matmul(added, mixed, w[ADL_LLAMA_OUT], T, C, C);
    for (int i = 0; i < T * C; i++)
        x[i] += added[i];
    ref_rmsnorm(norm, x, w[ADL_LLAMA_NORM2], T, C);
    ref_matmul(wide, norm, w[ADL_LLAMA_GATE_UP], T, C, 2 * F);
    ref_swiglu(mixed, wide, T, F);
    ref_matmul(added, mixed, w[ADL_LLAMA_DOWN], T, F, C);
    for (int i = 0; i < T * C; i++)
        x[i] += added[i];
    free(norm);
    free(wide);
    free(mixed);
    free(added);
}

/* Mean loss over one window of T + 1 tokens. */
static inline double ref_loss(const struct adl_llama_size *s, const double *theta,
                              const int32_t *window)
{
    int T = s->T, C = s->C;
    double *x = ref_vector((size_t)(T * C)), *norm = ref_vector((size_t)(T * C));
    double *logits = ref_vector((size_t)s->V), loss = 0;
    for (int t = 0; t < T; t++)
        memcpy(x + t * C, theta + window[t] * C, (size_t)C * sizeof *x);
    for (int e = 0; e < s->E; e++)
        ref_block(s, theta, e, x);
    size_t last = (size_t)(1 + s->E * ADL_LLAMA_PARTS);
    size_t head = s->tied ? 0 : adl_llama_tensor(s, last + 1).offset;
    ref_rmsnorm(norm, x, theta + adl_llama_tensor(s, last).offset, T, C);
    for (int t = 0; t < T; t++) {
        ref_matmul(logits, norm + t * C, theta + head, 1, C, s->V);
        loss += ref_cross_entropy(logits, window[t + 1], s->V);
    }
    free(x);
    free(norm);
    free(logits);
    return loss / T;
}

#endif
