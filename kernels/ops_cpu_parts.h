/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU operators of kernels/ops.h that live in files of their own. */
#ifndef ADL_KERNELS_OPS_CPU_PARTS_H
#define ADL_KERNELS_OPS_CPU_PARTS_H

#include "kernels/ops.h"

/* Tiles of scores: so many queries by so many keys. The key tile is long, since most documents
 * then need a single one and no running maximum. */
enum { ADL_TILE_QUERIES = 64, ADL_TILE_KEYS = 256 };

struct adl_queue {
    float scores[ADL_TILE_QUERIES * ADL_TILE_KEYS];
    float dscores[ADL_TILE_QUERIES * ADL_TILE_KEYS];
    float max[ADL_TILE_QUERIES], sum[ADL_TILE_QUERIES]; /* running, by query */
};

void adl_cpu_attention(struct adl_queue *queue, float *out, float *lse, const float *qkv,
                       const struct adl_attention *size);
void adl_cpu_attention_backward(struct adl_queue *queue, float *dqkv, const float *dout,
                                const float *qkv, const float *out, const float *lse,
                                const struct adl_attention *size);

void adl_cpu_rmsnorm(struct adl_queue *queue, float *out, float *sum, float *rstd, const float *a,
                     const float *b, const float *w, int N, int C, float eps);
void adl_cpu_rmsnorm_backward(struct adl_queue *queue, float *dx, float *dw, const float *dout,
                              const float *x, const float *rstd, const float *w, int N, int C);
void adl_cpu_rope(struct adl_queue *queue, float *qkv, const float *turns, int N,
                  const struct adl_attention *size, int backward);
void adl_cpu_swiglu(struct adl_queue *queue, float *out, const float *gate_up, int N, int F);
void adl_cpu_swiglu_backward(struct adl_queue *queue, float *dgate_up, const float *dout,
                             const float *gate_up, int N, int F);
void adl_cpu_cross_entropy(struct adl_queue *queue, float *losses, float *logits,
                           const int32_t *targets, int N, int V, float scale);

#endif
