/* SPDX-License-Identifier: Apache-2.0 */
/* The operators a LLaMA-like network is made of, as one table: kernels/llama.h runs on any
 * implementation of it. Numbers are fp32, matrices row-major and dense.
 *
 *   N rows (tokens of whole documents, one document after the other)   T tokens of a document
 *   C width   V vocabulary   F hidden width   H heads   K heads of keys and values, K divides H
 *   D width of a head, even   W = (H + 2K) D, a row of queries, keys and values side by side
 *
 * `=` means that an operator overwrites a result, `+=` that it adds to it. Results and operands
 * do not overlap unless said otherwise. NaN and infinity pass through. The bits of a result depend
 * on operands and sizes alone, on one machine: never on the queue, on time or on threads.
 *
 * Adding an implementation: 1. a file with these functions; 2. its table, with the space whose
 * memory it works on; 3. a model that opens the network on it; 4. tests/unit/ops.c shows what
 * each operator is held against. */
#ifndef ADL_KERNELS_OPS_H
#define ADL_KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "core/space.h"
#include "core/status.h"

/* Where operators run one after the other, with scratch memory of its own; the implementation's.
 * Different queues may run at once; one queue is fed by one thread at a time. */
struct adl_queue;

struct adl_attention { /* sizes of an attention over B documents */
    int B, T, H, K, D;
};

struct adl_ops {
    const char *name;
    const struct adl_space *space; /* of all memory below but what is called host memory */

    /* Bytes of an element of an activation, which are out, dout, in, din, sum, a, b, dx, rmsnorm's
     * x, qkv, gate_up and logits: 4, or 2 where the implementation keeps them as bfloat16 behind
     * their type's back. Parameters, their gradients and all else are fp32. */
    int activation_bytes;
    int pass_tokens; /* so many tokens at once keep it busy */
    /* (optional, NULL: not known) Bytes that space may still hand out. */
    enum adl_status (*available)(size_t *bytes, struct adl_err *err);

    enum adl_status (*open)(struct adl_queue **out, struct adl_err *err);
    void (*close)(struct adl_queue *queue); /* NULL is fine */
    /* Waits until all is done; the first failure since the last call, if any. */
    enum adl_status (*finish)(struct adl_queue *queue, struct adl_err *err);

    /* Copies bytes from host memory; host may change once the call returns. */
    void (*upload)(struct adl_queue *queue, void *to, const void *host, size_t bytes);
    /* Copies bytes into host memory; they are there after finish. */
    void (*download)(struct adl_queue *queue, void *host, const void *from, size_t bytes);
    /* x [n] = 0 */
    void (*zero)(struct adl_queue *queue, float *x, size_t n);
    /* y [n] += x [n] */
    void (*add)(struct adl_queue *queue, float *y, const float *x, size_t n);

    /* out (N, C) = rows of table (V, C) at tokens [N], each in 0..V-1 */
    void (*embed)(struct adl_queue *queue, float *out, const float *table, const int32_t *tokens,
                  int N, int C);
    /* dtable (V, C) += rows of dout (N, C), in order */
    void (*embed_backward)(struct adl_queue *queue, float *dtable, const float *dout,
                           const int32_t *tokens, int N, int C);

    /* (optional, NULL: products take parameters as they are) to [n] = parameters [n] as elements of
     * an activation, which products then take for w: once for many products. */
    void (*round)(struct adl_queue *queue, float *to, const float *from, size_t n);
    /* out (N, M) = in (N, K) w (M, K)^T */
    void (*matmul)(struct adl_queue *queue, float *out, const float *in, const float *w, int N,
                   int K, int M);
    /* din (N, K) = dout (N, M) w (M, K); NULL: not wanted
     * dw (M, K) += dout^T in (N, K) */
    void (*matmul_backward)(struct adl_queue *queue, float *din, float *dw, const float *dout,
                            const float *in, const float *w, int N, int K, int M);

    /* sum (N, C) = a + b; b NULL: sum is not written, and a stands for it
     * rstd [N] = 1 / sqrt(mean_c sum^2 + eps)
     * out (N, C) = sum rstd w [C] */
    void (*rmsnorm)(struct adl_queue *queue, float *out, float *sum, float *rstd, const float *a,
                    const float *b, const float *w, int N, int C, float eps);
    /* x (N, C) is forward's sum. With g = dout w:
     * dx (N, C) += rstd (g - x rstd^2 mean_c(g x))
     * dw [C] += sum over rows of dout x rstd */
    void (*rmsnorm_backward)(struct adl_queue *queue, float *dx, float *dw, const float *dout,
                             const float *x, const float *rstd, const float *w, int N, int C);

    /* Turns queries and keys of qkv (N, W), in place, row n by position n mod T: elements i and
     * i + D/2 of each of the first H + K heads by the angle whose cosine and sine are
     * turns (T, D/2, 2). backward: the other way, which is what gradients need. */
    void (*rope)(struct adl_queue *queue, float *qkv, const float *turns, int N,
                 const struct adl_attention *size, int backward);

    /* Causal attention within each document; head h looks at keys and values h / (H/K):
     * out (N, H D) = softmax over s <= t of (q_t k_s / sqrt D) v_s
     * lse (B, H, T) = log of the sum of the exponentials */
    void (*attention)(struct adl_queue *queue, float *out, float *lse, const float *qkv,
                      const struct adl_attention *size);
    /* dqkv (N, W) = gradient of qkv, from dout and forward's out and lse; scores are recomputed */
    void (*attention_backward)(struct adl_queue *queue, float *dqkv, const float *dout,
                               const float *qkv, const float *out, const float *lse,
                               const struct adl_attention *size);

    /* gate_up (N, 2F) holds g (first F of a row) and u; out (N, F) = g sigmoid(g) u */
    void (*swiglu)(struct adl_queue *queue, float *out, const float *gate_up, int N, int F);
    /* dgate_up (N, 2F) = gradient, from dout (N, F); may be gate_up itself */
    void (*swiglu_backward)(struct adl_queue *queue, float *dgate_up, const float *dout,
                            const float *gate_up, int N, int F);

    /* losses [N] = log sum_v exp(logits) - logits[target], nats, logits (N, V), targets [N] in
     * 0..V-1; then logits = scale (softmax - one hot of target) */
    void (*cross_entropy)(struct adl_queue *queue, float *losses, float *logits,
                          const int32_t *targets, int N, int V, float scale);
};

/* Host memory; products through OpenBLAS where it is in the build. */
extern const struct adl_ops adl_ops_cpu;

#endif
