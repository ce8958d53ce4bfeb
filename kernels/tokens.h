/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as samples: windows of a fixed number of tokens, addressed by (stream, index).
 *
 * Windows of T + 1 tokens start at every T-th token of a shard, so that each token is predicted
 * once; none reaches over a shard's end. The last ones, in order, are held out; the others are
 * for training. Each stream runs through the training windows in an order of its own, and in
 * another one in every pass: a permutation computed from the seed, never stored. */
#ifndef ADL_KERNELS_TOKENS_H
#define ADL_KERNELS_TOKENS_H

#include <stdint.h>

#include "core/status.h"

struct adl_tokens; /* opaque */

struct adl_tokens_source {
    /* "synthetic", or files: one path, a glob pattern, or several of them as "[a, b]", relative
     * to base_dir. Names ending in .bin are token files as of llm.c: 256 int32 (magic 20240520,
     * version 1, number of tokens), then uint16 tokens. Others are text, a token a byte. */
    const char *data;
    const char *base_dir;
    int vocabulary; /* tokens are below */
    int context;    /* T */
    double heldout; /* below 1: a fraction of the windows, at least one; else their number */
    uint64_t seed;
};

/* Reads every file through once. ADL_ERR_INPUT with file and place for what is missing, not a
 * file, cut off, of another format or of too large a token, and for texts of too few windows. */
enum adl_status adl_tokens_open(const struct adl_tokens_source *source, struct adl_tokens **out,
                                struct adl_err *err);
void adl_tokens_free(struct adl_tokens *tokens); /* NULL is fine */

uint64_t adl_tokens_training(const struct adl_tokens *tokens); /* windows, likewise below */
uint64_t adl_tokens_heldout(const struct adl_tokens *tokens);

/* Number of the training window that is sample `index` of a stream. Within a pass, which is
 * adl_tokens_training samples, each comes once. */
uint64_t adl_tokens_sample(const struct adl_tokens *tokens, uint64_t stream, uint64_t index);

/* window [T + 1] = the tokens of window `number`: training ones first, then held-out ones.
 * Thread-safe. ADL_ERR_IO where a file has changed since it was opened. */
enum adl_status adl_tokens_window(const struct adl_tokens *tokens, uint64_t number, int32_t *window,
                                  struct adl_err *err);

/* The synthetic text, n tokens: letters 0..26 (fewer if the vocabulary is smaller), each drawn
 * from four successors with chances 1/2, 1/4, 1/8, 1/8: the first given by the letter before, the
 * others by the two letters before. Its entropy is at most 7/4 bits, 1.213 nats, a token. */
void adl_tokens_synthetic(uint64_t seed, int vocabulary, int32_t *text, uint64_t n);

/* A permutation of 0..n-1 at i < n, of its own for each (seed, stream, pass): a Feistel network on
 * the next power of four, repeated until it lands below n (Black & Rogaway 2002). */
uint64_t adl_permute(uint64_t seed, uint64_t stream, uint64_t pass, uint64_t i, uint64_t n);

#endif
