/* SPDX-License-Identifier: Apache-2.0 */
/* A LLaMA-like network over any operator table: pre-norm blocks of causal attention with rotary
 * positions and grouped-query heads, and SwiGLU; no biases; a final norm and a head, which may be
 * the embedding itself ("tied").
 *
 * All parameters are one flat vector, tensor after tensor without gaps, matrices as (outputs,
 * inputs), row-major. With the letters of kernels/ops.h and E blocks:
 *
 *   embed (V, C)
 *   for each block: norm1 (C), qkv (W, C), out (C, H D), norm2 (C), gate_up (2F, C), down (C, F)
 *   norm (C)
 *   head (V, C), unless tied */
#ifndef ADL_KERNELS_LLAMA_H
#define ADL_KERNELS_LLAMA_H

#include <stdbool.h>
#include <stdio.h>

#include "kernels/ops.h"

struct adl_llama_size {
    int V, C, E, H, K, F, T; /* all >= 1; H divides C, K divides H, C / H is even */
    bool tied;
};

struct adl_llama_preset {
    const char *name, *doc;
    struct adl_llama_size size;
};
extern const struct adl_llama_preset adl_llama_presets[]; /* ends at name == NULL */

/* ---- layout (llama_layout.c) */

enum adl_llama_part { /* of a block */
                      ADL_LLAMA_NORM1,
                      ADL_LLAMA_QKV,
                      ADL_LLAMA_OUT,
                      ADL_LLAMA_NORM2,
                      ADL_LLAMA_GATE_UP,
                      ADL_LLAMA_DOWN,
                      ADL_LLAMA_PARTS
};

struct adl_llama_tensor {
    char name[32];     /* "embed", "3.gate_up" */
    size_t offset;     /* in floats */
    size_t rows, cols; /* a vector has one row */
    double init;       /* standard deviation of the start; 0: all ones */
};

/* Number of tensors and of parameters. */
size_t adl_llama_n_tensors(const struct adl_llama_size *size);
size_t adl_llama_n_params(const struct adl_llama_size *size);
/* Tensor i of the flat vector. */
struct adl_llama_tensor adl_llama_tensor(const struct adl_llama_size *size, size_t i);
/* A line for each tensor: name, shape, offset; and their sum. */
void adl_llama_print_layout(const struct adl_llama_size *size, FILE *out);

/* Operations of a forward and a backward pass over one document: 6 a token and parameter that
 * multiplies (a table that is only looked up does not), and 6 T^2 H D a block for causal scores
 * and their use, recomputation not counted. */
double adl_llama_flops(const struct adl_llama_size *size);

/* ---- memory (llama_memory.c) */

struct adl_llama_demand { /* what a run takes of memory at once */
    int passes;           /* networks opened by adl_llama_open, each on its own queue */
    int vectors;          /* of parameters: theta, gradients, optimizer states */
};

/* How many documents each pass takes at once: as many as keep the operators busy and, where the
 * space knows what it has left, as many as fit beside all else: computed, then tried by asking for
 * all of it. ADL_ERR_NOMEM where not even one does. */
enum adl_status adl_llama_documents(const struct adl_ops *ops, const struct adl_llama_size *size,
                                    const struct adl_llama_demand *demand, int *documents,
                                    struct adl_err *err);

/* ---- passes (llama.c): one queue's activations, and what runs on them */

struct adl_llama; /* opaque */

/* For up to `documents` at once. turns: what adl_llama_turns made, borrowed. */
enum adl_status adl_llama_open(const struct adl_ops *ops, const struct adl_llama_size *size,
                               const float *turns, int documents, struct adl_llama **out,
                               struct adl_err *err);
void adl_llama_close(struct adl_llama *net); /* NULL is fine */
struct adl_queue *adl_llama_queue(const struct adl_llama *net);

/* Activations that a pass over so many documents keeps, rounded parameters included, in units of a
 * float. */
size_t adl_llama_activations(const struct adl_ops *ops, const struct adl_llama_size *size,
                             int documents);

/* The (T, D/2, 2) table of rotary positions, base 10000, in the space of ops; NULL: no memory. */
float *adl_llama_turns(const struct adl_ops *ops, struct adl_queue *queue,
                       const struct adl_llama_size *size);

/* windows: host, [n x (T + 1)] tokens, a document each. losses [n], host: mean over the document's
 * tokens of the loss in nats, summed in double. grad NULL: forward only; else grad += sum over
 * documents of the gradients of their losses. n may not exceed `documents`. */
enum adl_status adl_llama_run(struct adl_llama *net, const float *theta, const int32_t *windows,
                              int n, float *grad, double *losses, struct adl_err *err);

#endif
