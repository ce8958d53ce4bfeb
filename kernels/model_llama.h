/* SPDX-License-Identifier: Apache-2.0 */
/* The LLaMA-like network of kernels/llama.h on texts of kernels/tokens.h, as a model of the
 * framework.
 *
 * A sample is a document of model.context tokens and the one after; its loss is the mean over its
 * tokens, in nats a token. Gradients are sums over samples. The bits of a gradient depend on the
 * micro-batch, on model.threads and on model.blas_threads, never on who computes it.
 *
 * Memory of a lane: activations of up to `model.threads` times 512 tokens (16384 on a GPU, or what
 * it has room for) or one document each, whatever the micro-batch, a gradient for each thread
 * but the first, and in bf16 a rounded copy of the parameters for each thread. */
#ifndef ADL_KERNELS_MODEL_LLAMA_H
#define ADL_KERNELS_MODEL_LLAMA_H

#include "core/model.h"

struct adl_llama_config { /* keys "model.*", in the order of the rows */
    int preset;           /* index into adl_llama_presets, or `custom` behind the last */
    int64_t vocab, width, layers, heads, kv_heads, hidden, context; /* unset: the preset's */
    int tie;                                                        /* enum adl_tie */
    const char *data;
    double heldout;
    int64_t eval_samples;
    int64_t threads, blas_threads;
    int precision; /* enum adl_precision */
};
enum adl_precision { ADL_PRECISION_FP32, ADL_PRECISION_BF16 };
enum adl_tie { ADL_TIE_PRESET, ADL_TIE_YES, ADL_TIE_NO };

extern const struct adl_model_ops adl_model_llama;      /* on the CPU */
extern const struct adl_model_ops adl_model_llama_cuda; /* on a GPU: kernels/cuda_module.h */

#endif
