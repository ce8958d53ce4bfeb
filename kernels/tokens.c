/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tokens.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/token_files.h"

enum {
    SYNTHETIC_TOKENS = 1 << 18,
    SYNTHETIC_LETTERS = 27,
    FEISTEL_ROUNDS = 6,
};

struct adl_tokens {
    struct adl_token_files files;
    int32_t *synthetic; /* [SYNTHETIC_TOKENS]; NULL: files */
    uint64_t *first;    /* [n_shards + 1] number of a shard's first window */
    size_t n_shards;
    uint64_t n_training, n_heldout;
    uint64_t seed;
    int context;
};

/* ---- orders */

uint64_t adl_permute(uint64_t seed, uint64_t stream, uint64_t pass, uint64_t i, uint64_t n)
{
    const struct adl_rng rng = adl_rng_make(seed, ADL_RNG_SHUFFLE, stream, pass);
    int half = 1;
    while (half < 32 && n > UINT64_C(1) << (2 * half))
        half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < FEISTEL_ROUNDS; round++) {
            uint32_t word[4];
            adl_rng_block(&rng, round << 32 | right, word);
            const uint64_t mixed = left ^ (word[0] & mask);
            left = right;
            right = mixed;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

uint64_t adl_tokens_sample(const struct adl_tokens *tokens, uint64_t stream, uint64_t index)
{
    const uint64_t n = tokens->n_training;
    return adl_permute(tokens->seed, stream, index / n, index % n, n);
}

/* ---- the synthetic text */

/* Successor `which` of letter b after a: the first goes by b alone, so that there is something to
 * learn early; the others are distinct. */
static int32_t successor(uint64_t seed, int32_t a, int32_t b, uint64_t which, int letters)
{
    const uint64_t n = (uint64_t)letters, alone = SYNTHETIC_LETTERS * SYNTHETIC_LETTERS;
    const uint64_t pair = (uint64_t)a * SYNTHETIC_LETTERS + (uint64_t)b;
    const uint64_t stream = which == 0 ? alone + (uint64_t)b : pair;
    return (int32_t)adl_permute(seed, stream, UINT64_MAX, which % n, n);
}

void adl_tokens_synthetic(uint64_t seed, int vocabulary, int32_t *text, uint64_t n)
{
    static const uint64_t which[8] = {0, 0, 0, 0, 1, 1, 2, 3};
    const int letters = vocabulary < SYNTHETIC_LETTERS ? vocabulary : SYNTHETIC_LETTERS;
    const struct adl_rng rng = adl_rng_make(seed, ADL_RNG_MODEL_SHAPE, 0, 0);
    int32_t a = 0, b = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t word[4];
        adl_rng_block(&rng, i, word);
        text[i] = successor(seed, a, b, which[word[0] & 7], letters);
        a = b;
        b = text[i];
    }
}

/* ---- opening */

static enum adl_status open_synthetic(struct adl_tokens *tokens,
                                      const struct adl_tokens_source *source, struct adl_err *err)
{
    tokens->synthetic = malloc(SYNTHETIC_TOKENS * sizeof *tokens->synthetic);
    if (!tokens->synthetic)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a synthetic text");
    adl_tokens_synthetic(source->seed, source->vocabulary, tokens->synthetic, SYNTHETIC_TOKENS);
    tokens->n_shards = 1;
    return ADL_OK;
}

static uint64_t shard_tokens(const struct adl_tokens *tokens, size_t shard)
{
    return tokens->synthetic ? SYNTHETIC_TOKENS : tokens->files.v[shard].n_tokens;
}

static enum adl_status count_windows(struct adl_tokens *tokens, struct adl_err *err)
{
    const uint64_t T = (uint64_t)tokens->context;
    tokens->first = calloc(tokens->n_shards + 1, sizeof *tokens->first);
    if (!tokens->first)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a list of %zu files", tokens->n_shards);
    for (size_t s = 0; s < tokens->n_shards; s++) {
        const uint64_t n = shard_tokens(tokens, s);
        if (n < T + 1)
            return adl_fail(err, ADL_ERR_INPUT,
                            "%s: has %llu tokens; a sample needs %llu (model.context + 1)",
                            tokens->synthetic ? "model.data: synthetic" : tokens->files.v[s].path,
                            (unsigned long long)n, (unsigned long long)T + 1);
        tokens->first[s + 1] = tokens->first[s] + (n - 1) / T;
    }
    return ADL_OK;
}

static enum adl_status hold_out(struct adl_tokens *tokens, const struct adl_tokens_source *source,
                                struct adl_err *err)
{
    const uint64_t n = tokens->first[tokens->n_shards];
    const double wanted = source->heldout < 1 ? source->heldout * (double)n : source->heldout;
    const uint64_t heldout = wanted < 1 ? 1 : wanted >= 0x1p63 ? UINT64_MAX : (uint64_t)wanted;
    if (heldout >= n)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.data: '%s' has %llu samples of %d tokens; model.heldout %g takes "
                        "all of them",
                        source->data, (unsigned long long)n, source->context, source->heldout);
    tokens->n_heldout = heldout;
    tokens->n_training = n - heldout;
    return ADL_OK;
}

static enum adl_status open_all(struct adl_tokens *tokens, const struct adl_tokens_source *source,
                                struct adl_err *err)
{
    if (strcmp(source->data, "synthetic") == 0) {
        ADL_TRY(open_synthetic(tokens, source, err));
    } else {
        ADL_TRY(adl_token_files_open(&tokens->files, source->data, source->base_dir,
                                     source->vocabulary, err));
        tokens->n_shards = tokens->files.n;
    }
    ADL_TRY(count_windows(tokens, err));
    return hold_out(tokens, source, err);
}

enum adl_status adl_tokens_open(const struct adl_tokens_source *source, struct adl_tokens **out,
                                struct adl_err *err)
{
    struct adl_tokens *tokens = calloc(1, sizeof *tokens);
    if (!tokens)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a text");
    tokens->seed = source->seed;
    tokens->context = source->context;
    const enum adl_status status = open_all(tokens, source, err);
    if (status != ADL_OK)
        adl_tokens_free(tokens);
    else
        *out = tokens;
    return status;
}

void adl_tokens_free(struct adl_tokens *tokens)
{
    if (!tokens)
        return;
    adl_token_files_close(&tokens->files);
    free(tokens->synthetic);
    free(tokens->first);
    free(tokens);
}

/* ---- reading */

uint64_t adl_tokens_training(const struct adl_tokens *tokens)
{
    return tokens->n_training;
}

uint64_t adl_tokens_heldout(const struct adl_tokens *tokens)
{
    return tokens->n_heldout;
}

static size_t shard_of(const struct adl_tokens *tokens, uint64_t number)
{
    size_t low = 0, high = tokens->n_shards;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (tokens->first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

enum adl_status adl_tokens_window(const struct adl_tokens *tokens, uint64_t number, int32_t *window,
                                  struct adl_err *err)
{
    const size_t n = (size_t)tokens->context + 1, shard = shard_of(tokens, number);
    const uint64_t at = (number - tokens->first[shard]) * (uint64_t)tokens->context;
    if (!tokens->synthetic)
        return adl_token_file_read(&tokens->files.v[shard], at, n, window, err);
    memcpy(window, tokens->synthetic + at, n * sizeof *window);
    return ADL_OK;
}
